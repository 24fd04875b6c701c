// SPDX-License-Identifier: GPL-3.0-or-later
// OpenPGP.js as a program: node oj.mjs '{"do": …}'. $OPENPGPJS is the folder that holds node_modules.
import { readFileSync, writeFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';

const openpgp = await import(pathToFileURL(`${process.env.OPENPGPJS}/node_modules/openpgp/dist/node/openpgp.mjs`));
const job = JSON.parse(process.argv[2]);
const read = (name) => new Uint8Array(readFileSync(name));
const config = { enableParsingV5Entities: true, allowInsecureDecryptionWithSigningKeys: true, ...job.config };
if (job.compression) config.preferredCompressionAlgorithm = openpgp.enums.compression[job.compression];

// The secret and the public key of files NAME.sec and NAME.pub.
const secret = async (name) => openpgp.readPrivateKey({ binaryKey: read(`${name}.sec`), config });
const certificate = async (name) => openpgp.readKey({ binaryKey: read(`${name}.pub`), config });

async function generate() {
    const { privateKey, publicKey } = await openpgp.generateKey({
        type: 'curve25519', userIDs: [{ name: job.user, email: `${job.user}@example.org` }], format: 'binary', config });
    writeFileSync(`${job.key}.sec`, privateKey);
    writeFileSync(`${job.key}.pub`, publicKey);
}

async function make() {
    const options = { message: await openpgp.createMessage({ binary: read(job.in) }), format: 'binary', config };
    if (job.encrypt) options.encryptionKeys = await certificate(job.key);
    if (job.password) options.passwords = [job.password];
    if (job.sign) options.signingKeys = await secret(job.key);
    writeFileSync(job.out, await (job.encrypt || job.password ? openpgp.encrypt(options) : openpgp.sign(options)));
}

async function open() {
    const options = { message: await openpgp.readMessage({ binaryMessage: read(job.in), config }), format: 'binary', config };
    if (job.sign) {
        options.verificationKeys = await certificate(job.key);
        options.expectSigned = true;
    }
    if (job.encrypt) options.decryptionKeys = await secret(job.key);
    if (job.password) options.passwords = [job.password];
    const { data, signatures } = await (job.encrypt || job.password ? openpgp.decrypt(options) : openpgp.verify(options));
    for (const signature of signatures) await signature.verified;
    writeFileSync(job.out, data);
}

await { generate, make, open }[job.do]();
