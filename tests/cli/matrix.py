#!/usr/bin/python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""matrix.py PEER FOLDER: archives of ours opened by another OpenPGP program, and its archives opened by us.

Mode (e, c, s, es, ce) × key × encryption format are walked in full, and compression in such a way that each value meets
each mode, key and format. FOLDER has keys/KEY.sec and .pub, pw (a passphrase), d/ and d.tar.
Every cell is printed: ok, FAIL, or why the peer cannot do it. With MATRIX_ATTEMPT=1 those are tried all the same, and one
that works is a failure: its reason is not true.
"""
import collections
import json
import os
import shutil
import subprocess
import sys
import warnings

HERE = os.path.dirname(os.path.abspath(__file__))
Cell = collections.namedtuple('Cell', 'mode key compression format')
MODES = ('e', 'c', 's', 'es', 'ce')
KEYS = ('rsa', 'cv25519', 'p256', 'x25519', 'v6')
COMPRESSIONS = ('none', 'zip', 'zlib', 'bzip2')
FORMATS = ('v1', 'ocb', 'v2')
PASSWORD = 'a passphrase'


def cells():
    """Keys of version 6 go with SEIPD version 2 only, and a signature alone has no encryption format."""
    for mode in MODES:
        for k, key in enumerate(KEYS if mode != 'c' else ('-',)):
            for f, form in enumerate(FORMATS if mode != 's' else ('-',)):
                if key == 'v6' and form in ('v1', 'ocb'):
                    continue
                if mode in 'cs':
                    chosen = COMPRESSIONS if mode == 'c' else (COMPRESSIONS[k % 4],)
                else:
                    chosen = (COMPRESSIONS[(MODES.index(mode) + k + f) % 4],)
                for compression in chosen:
                    yield Cell(mode, key, compression, form)


class Failed(Exception):
    pass


def run(*args, stdin=None, env=None, want=None):
    """Runs a program; WANT must be in what it says."""
    process = subprocess.run(args, stdin=open(stdin, 'rb') if stdin else subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, env={**os.environ, **(env or {})}, check=False)
    said = process.stderr.decode(errors='replace')
    if process.returncode != 0:
        raise Failed(f'{os.path.basename(args[0])} exit {process.returncode}: {said.strip()[-400:]}')
    if want and want not in said:
        raise Failed(f'{os.path.basename(args[0])} did not say {want}: {said.strip()[-400:]}')
    return process.stdout


def write(name, data):
    with open(name, 'wb') as file:
        file.write(data)


def untar(tar, folder):
    run('tar', '-xf', tar, '-C', folder)


class Ours:
    """The program under test, with key files only."""
    env = {'GNUPGHOME': os.path.abspath('no-home')}

    def make(self, cell, archive):
        args = [os.environ['GPGTAR'], '--batch', '--yes', '-' + cell.mode, '-o', archive]
        args += {'v1': ['--rfc4880'], 'ocb': ['--force-ocb'], 'v2': ['--rfc9580'], '-': []}[cell.format]
        args += ['--compress-algo', cell.compression]
        if 'e' in cell.mode:
            args += ['-f', f'keys/{cell.key}.pub']
        if 's' in cell.mode:
            args += ['--secret-key-file', f'keys/{cell.key}.sec']
        if 'c' in cell.mode:
            args += ['--passphrase-file', 'pw']
        run(*args, 'd', env=self.env)

    def open(self, cell, archive, folder):
        args = [os.environ['GPGTAR'], '--batch', '-d', '-C', folder]
        if 's' in cell.mode:
            args += ['--require-signature', '--keyring', f'keys/{cell.key}.pub']
        if 'e' in cell.mode:
            args += ['--secret-key-file', f'keys/{cell.key}.sec']
        if cell.mode == 'c':
            args += ['--passphrase-file', 'pw']
        run(*args, archive, env=self.env)


class Peer:
    own_compression = False  # makes archives as it likes

    def setup(self):
        pass

    def cannot(self, cell):
        """Why it can neither open nor make such an archive."""
        if cell.key in ('v6', 'x25519'):
            return 'no keys of version 6 or with algorithms 25 and 27'
        if cell.format == 'v2':
            return 'no SEIPD version 2'
        return None

    def cannot_open(self, cell):
        return self.cannot(cell)

    def cannot_make(self, cell):
        return self.cannot(cell)


class Gpg(Peer):
    base = ['gpg', '--batch', '--yes', '--pinentry-mode', 'loopback', '--passphrase-file', 'pw', '--trust-model', 'always',
            '--status-fd', '2']

    def open(self, cell, archive, folder):
        run(*self.base, '-o', 'plain', '-d', archive, want='GOODSIG' if 's' in cell.mode else None)
        untar('plain', folder)

    def cannot_make(self, cell):
        if cell.format == 'ocb':
            return 'gpg 2.2 reads OCB, but does not write it'
        return self.cannot(cell)

    def make(self, cell, archive):
        run(*self.base, *self.words(cell), '--compress-algo', cell.compression, '-o', archive, '-' + cell.mode, 'd.tar')

    def words(self, cell):
        words = ['-r', cell.key] if 'e' in cell.mode else []
        return words + (['-u', cell.key] if 's' in cell.mode else [])


class Gpgtar(Gpg):
    base = ['/usr/bin/gpgtar', '--batch']
    gpg_words = '--pinentry-mode loopback --passphrase-file pw --yes --trust-model always'

    def open(self, cell, archive, folder):
        words = self.gpg_words.replace(' pw ', f' {os.path.abspath("pw")} ')
        run(*self.base, '--gpg-args', words, '--directory', folder, '--decrypt', archive,
            want='Good signature' if 's' in cell.mode else None)

    def cannot_make(self, cell):
        if cell.mode == 'ce':
            return 'its -c and -e exclude each other'
        return super().cannot_make(cell)

    def make(self, cell, archive):
        commands = {'e': ['--encrypt'], 's': ['--sign'], 'c': ['--symmetric'], 'es': ['--encrypt', '--sign']}[cell.mode]
        run(*self.base, '--gpg-args', f'{self.gpg_words} --compress-algo {cell.compression}', *self.words(cell), '--output',
            archive, *commands, 'd')


class Sq(Peer):

    def cannot(self, cell):
        if cell.mode == 'c':
            return 'sq 0.27 takes passphrases from a terminal only'
        if cell.format == 'ocb':
            return 'no OCB in its Nettle'
        return super().cannot(cell)

    def open(self, cell, archive, folder):
        signer = ['--signer-cert', f'keys/{cell.key}.pub'] if 's' in cell.mode else []
        if cell.mode == 's':
            write('plain', run('sq', 'verify', *signer, archive))
        else:
            write('plain', run('sq', 'decrypt', '--recipient-key', f'keys/{cell.key}.sec', *signer, '-n', str(len(signer) // 2),
                               archive))
        untar('plain', folder)

    def cannot_make(self, cell):
        if cell.mode == 'ce':
            return 'sq 0.27 takes passphrases from a terminal only'
        if cell.mode == 's' and cell.compression != 'none':
            return 'sq sign does not compress'
        return self.cannot(cell)

    def make(self, cell, archive):
        if cell.mode == 's':
            write(archive, run('sq', 'sign', '-B', '--signer-key', f'keys/{cell.key}.sec', 'd.tar'))
            return
        signer = ['--signer-key', f'keys/{cell.key}.sec'] if 's' in cell.mode else []
        write(archive, run('sq', 'encrypt', '-B', '--compression', cell.compression, '--recipient-cert', f'keys/{cell.key}.pub',
                           *signer, 'd.tar'))


class Sop(Peer):
    """Programs of the Stateless OpenPGP interface: it has no option for compression."""
    own_compression = True

    def open(self, cell, archive, folder):
        verify = [f'--verify-with=keys/{cell.key}.pub', f'--{self.verifications}=verified'] if 's' in cell.mode else []
        if os.path.exists('verified'):
            os.remove('verified')
        if cell.mode == 's':
            write('plain', run(self.program, 'inline-verify', f'--{self.verifications}=verified', f'keys/{cell.key}.pub', stdin=archive))
        elif cell.mode == 'c':
            write('plain', run(self.program, 'decrypt', '--with-password=pw', stdin=archive))
        else:
            write('plain', run(self.program, 'decrypt', *verify, f'keys/{cell.key}.sec', stdin=archive))
        if 's' in cell.mode and os.path.getsize('verified') == 0:
            raise Failed('no signature verified')
        untar('plain', folder)

    def make(self, cell, archive):
        key = f'keys/{cell.key}'
        if cell.mode == 's':
            write(archive, run(self.program, 'inline-sign', '--no-armor', f'{key}.sec', stdin='d.tar'))
            return
        args = ['--no-armor']
        args += [f'--sign-with={key}.sec'] if 's' in cell.mode else []
        args += ['--with-password=pw'] if 'c' in cell.mode else []
        args += [f'{key}.pub'] if 'e' in cell.mode else []
        write(archive, run(self.program, 'encrypt', *args, stdin='d.tar'))


class Sqop(Sop):
    program = 'sqop'
    verifications = 'verifications-out'

    def cannot(self, cell):
        return 'no OCB in its Nettle' if cell.format == 'ocb' else super().cannot(cell)


class Pgpainless(Sop):
    program = 'pgpainless-cli'
    verifications = 'verifications-out'

    def cannot(self, cell):
        return 'no packet 20' if cell.format == 'ocb' else super().cannot(cell)


class Rnp(Peer):
    base = ['rnp', '--homedir', 'rnp', '--notty', '--password', PASSWORD, '--overwrite']

    def setup(self):
        os.mkdir('rnp', 0o700)
        for key in KEYS[:3]:
            run('rnpkeys', '--homedir', 'rnp', '--notty', '--import-key', f'keys/{key}.sec')

    def open(self, cell, archive, folder):
        run(*self.base, '--output', 'plain', '-d', archive, want='Good signature' if 's' in cell.mode else None)
        untar('plain', folder)

    def make(self, cell, archive):
        args = ['--aead=OCB'] if cell.format == 'ocb' else []
        args += {'none': ['-z', '0'], 'zip': ['--zip'], 'zlib': ['--zlib'], 'bzip2': ['--bzip']}[cell.compression]
        args += ['-e', '-r', cell.key] if 'e' in cell.mode else []
        args += ['-s', '-u', cell.key] if 's' in cell.mode else []
        args += ['-c'] if 'c' in cell.mode else []
        run(*self.base, *args, '--output', archive, 'd.tar')


class Pgpy(Peer):
    def setup(self):
        warnings.simplefilter('ignore')
        import pgpy
        self.pgpy = pgpy

    def cannot(self, cell):
        return 'no packet 20' if cell.format == 'ocb' else super().cannot(cell)

    def key(self, cell, kind):
        return self.pgpy.PGPKey.from_file(f'keys/{cell.key}.{kind}')[0]

    def open(self, cell, archive, folder):
        message = self.pgpy.PGPMessage.from_file(archive)
        if 'e' in cell.mode:
            message = self.key(cell, 'sec').decrypt(message)
        elif 'c' in cell.mode:
            message = message.decrypt(PASSWORD)
        if 's' in cell.mode and not self.key(cell, 'pub').verify(message):
            raise Failed('pgpy: signature not good')
        write('plain', bytes(message.message))
        untar('plain', folder)

    def make(self, cell, archive):
        constants = self.pgpy.constants
        compression = {'none': 'Uncompressed', 'zip': 'ZIP', 'zlib': 'ZLIB', 'bzip2': 'BZ2'}[cell.compression]
        with open('d.tar', 'rb') as file:
            message = self.pgpy.PGPMessage.new(file.read(), file=False, format='b',
                                               compression=getattr(constants.CompressionAlgorithm, compression))
        if 's' in cell.mode:
            message |= self.key(cell, 'sec').sign(message)
        cipher = constants.SymmetricKeyAlgorithm.AES256
        session = cipher.gen_key()
        if 'e' in cell.mode:
            message = self.key(cell, 'pub').encrypt(message, cipher=cipher, sessionkey=session)
        if 'c' in cell.mode:
            message = message.encrypt(PASSWORD, cipher=cipher, sessionkey=session)
        write(archive, bytes(message))


class OpenPGPjs(Peer):
    def cannot(self, cell):
        return None

    def job(self, cell, **more):
        job = {'key': f'keys/{cell.key}', 'encrypt': 'e' in cell.mode, 'sign': 's' in cell.mode,
               'password': PASSWORD if 'c' in cell.mode else None, **more}
        run('node', f'{HERE}/oj.mjs', json.dumps(job))

    def open(self, cell, archive, folder):
        self.job(cell, do='open', **{'in': archive}, out='plain')
        untar('plain', folder)

    def cannot_make(self, cell):
        if cell.format == 'ocb':
            return 'OpenPGP.js 6 reads packet 20, but does not write it'
        if cell.compression == 'bzip2':
            return 'OpenPGP.js reads bzip2, but does not write it'
        if cell.mode == 's' and cell.compression != 'none':
            return 'OpenPGP.js does not compress what is only signed'
        return None

    def make(self, cell, archive):
        compression = {'none': 'uncompressed'}.get(cell.compression, cell.compression)
        # Without it a recipient whose features do not say so gets version 1.
        config = {'aeadProtect': cell.format == 'v2'}
        self.job(cell, do='make', **{'in': 'd.tar'}, out=archive, compression=compression, config=config)


PEERS = {'gpg': Gpg, 'gpgtar': Gpgtar, 'sq': Sq, 'sqop': Sqop, 'pgpainless-cli': Pgpainless, 'rnp': Rnp, 'pgpy': Pgpy,
         'openpgpjs': OpenPGPjs}


def attempt(cell, maker, opener, archive):
    """'ok', or how it failed."""
    shutil.rmtree('opened', ignore_errors=True)
    os.mkdir('opened')
    try:
        maker.make(cell, archive)
        opener.open(cell, archive, 'opened')
        for name in ('f', 'sub/numbers', 'noise'):
            with open(f'd/{name}', 'rb') as want, open(f'opened/d/{name}', 'rb') as have:
                if want.read() != have.read():
                    return f'FAIL: d/{name} differs'
        return 'ok'
    except Exception as error:
        return f'FAIL: {type(error).__name__}: {error}'


def main():
    name, folder = sys.argv[1:]
    os.chdir(folder)
    os.environ['GNUPGHOME'] = os.path.abspath('home')
    peer, ours = PEERS[name](), Ours()
    ours.env = {'GNUPGHOME': os.path.abspath('no-home')}
    peer.setup()
    done = collections.Counter()
    print(f'{"direction":24} mode key     compression format')
    for cell in cells():
        for maker, opener, reason in ((ours, peer, peer.cannot_open(cell)), (peer, ours, peer.cannot_make(cell))):
            if reason and 'MATRIX_ATTEMPT' not in os.environ:
                result = f'{name}: {reason}'
            else:
                result = attempt(cell, maker, opener, 'archive')
                if reason:
                    result = f'FAIL: works, though "{reason}"' if result == 'ok' else f'{name}: {reason} ({result[6:]})'
            own = maker is peer and peer.own_compression
            done['ok' if result == 'ok' else 'FAIL' if result.startswith('FAIL') else 'cannot'] += 1
            direction = f'gpgtar > {name}' if maker is ours else f'{name} > gpgtar'
            print(f'{direction:24} {cell.mode:4} {cell.key:7} {"own" if own else cell.compression:11} {cell.format:6} {result}')
    print(f'{name}: {done["ok"]} ok, {done["cannot"]} that it cannot, {done["FAIL"]} failed')
    if done['FAIL'] or not done['ok']:
        sys.exit(1)


main()
