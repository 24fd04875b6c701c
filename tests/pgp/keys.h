/* SPDX-License-Identifier: GPL-3.0-or-later */
/* keys: what the tests of certificates, keyrings and the keystore share: sample files, throw-away homes of gpg, and
 * certificates forged packet by packet. */
#ifndef TESTS_KEYS_H
#define TESTS_KEYS_H

#include "pgp/certificate.h"
#include "pgp/crypt_init.h"
#include "pgp/framing.h"
#include "pgp/keyring.h"
#include "pgp/packet_view.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define assert_code(err, code) assert_int_equal(gpg_err_code(err), code)

/* ---- bytes that grow ---- */

struct bytes {
    uint8_t *at;
    size_t n;
};

static inline void bytes_add(struct bytes *bytes, const void *more, size_t n)
{
    bytes->at = realloc(bytes->at, bytes->n + n + 1);
    assert_non_null(bytes->at);
    memcpy(bytes->at + bytes->n, more, n);
    bytes->n += n;
}

static inline void bytes_add_u8(struct bytes *bytes, unsigned value)
{
    uint8_t octet = (uint8_t)value;
    bytes_add(bytes, &octet, 1);
}

static inline void bytes_add_u16(struct bytes *bytes, unsigned value)
{
    uint8_t octets[2];
    put_be16(octets, (uint16_t)value);
    bytes_add(bytes, octets, 2);
}

static inline void bytes_add_u32(struct bytes *bytes, uint32_t value)
{
    uint8_t octets[4];
    put_be32(octets, value);
    bytes_add(bytes, octets, 4);
}

static inline void bytes_clear(struct bytes *bytes)
{
    free(bytes->at);
    *bytes = (struct bytes){0};
}

static inline void bytes_add_packet(struct bytes *bytes, unsigned type, const void *body, size_t n)
{
    uint8_t header[6];
    bytes_add(bytes, header, packet_header_put(header, type, (uint32_t)n));
    bytes_add(bytes, body, n);
}

/* ---- files ---- */

static inline struct bytes file_bytes(const char *file)
{
    struct bytes bytes = {0};
    uint8_t block[4096];
    size_t n;
    FILE *stream = fopen(file, "rb");
    if (!stream)
        fail_msg("%s is missing", file);
    while ((n = fread(block, 1, sizeof block, stream)))
        bytes_add(&bytes, block, n);
    fclose(stream);
    return bytes;
}

static inline void file_write(const char *file, const void *bytes, size_t n)
{
    FILE *stream = fopen(file, "wb");
    assert_non_null(stream);
    assert_int_equal(fwrite(bytes, 1, n, stream), n);
    assert_int_equal(fclose(stream), 0);
}

/* The packets of the first certificate in a file. */
static inline struct bytes certificate_bytes(const char *file)
{
    struct keyring *keyring = NULL;
    struct bytes bytes = {0};
    const uint8_t *packets;
    size_t n, position = 0;
    if (keyring_open(NULL, file, &keyring))
        fail_msg("%s cannot be opened", file);
    assert_int_equal(keyring_next(NULL, keyring, NULL, &position, &packets, &n), 0);
    bytes_add(&bytes, packets, n);
    keyring_free(keyring);
    return bytes;
}

/* The name of a sample key's file in testdata/, wherever the samples stand there. */
static inline void sample_name(const char *name, char file[512])
{
    snprintf(file, 512, "%s/samples/keys/%s", TESTDATA, name);
    if (access(file, F_OK))
        snprintf(file, 512, "%s/keys/%s", TESTDATA, name);
}

static inline struct bytes sample_bytes(const char *name)
{
    char file[512];
    sample_name(name, file);
    return certificate_bytes(file);
}

static inline struct certificate *parsed(const struct bytes *bytes)
{
    struct certificate *certificate = NULL;
    size_t used = 0;
    assert_int_equal(certificate_parse(NULL, bytes->at, bytes->n, &certificate, &used), 0);
    assert_int_equal(used, bytes->n);
    return certificate;
}

/* ---- throw-away homes ---- */

struct home {
    char folder[64];
};

/* Runs a shell command; its output, to be freed. */
static inline char *shell_output(const char *format, ...) PRINTF_LIKE(1, 2);
static inline char *shell_output(const char *format, ...)
{
    char command[4096];
    struct bytes output = {0};
    va_list arguments;
    va_start(arguments, format);
    assert_true((size_t)vsnprintf(command, sizeof command, format, arguments) < sizeof command);
    va_end(arguments);
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    int c;
    while ((c = fgetc(pipe)) != EOF)
        bytes_add_u8(&output, (unsigned)c);
    int status = pclose(pipe);
    bytes_add_u8(&output, 0);
    if (status)
        fail_msg("%s: status %d: %s", command, status, (char *)output.at);
    return (char *)output.at;
}

#define shell(...) free(shell_output(__VA_ARGS__))

static inline struct home home_new(void)
{
    struct home home = {"/tmp/gpgtar-test-XXXXXX"};
    assert_non_null(mkdtemp(home.folder));
    return home;
}

/* gpg with HOME and ARGUMENTS. */
#define GPG "gpg --homedir %s --batch --quiet --no-tty --pinentry-mode loopback --passphrase '' --trust-model always "

static inline void home_remove(struct home *home)
{
    shell("gpgconf --homedir %s --kill all; rm -rf %s", home->folder, home->folder);
}

/* ---- forged certificates ---- */

/* A key on P-256: ECDSA (19) or ECDH (18). */
struct forged {
    gcry_sexp_t pair;
    uint8_t algo;
    struct bytes body;
    struct key *key;
};

static inline void bytes_add_token(struct bytes *bytes, gcry_sexp_t sexp, const char *token)
{
    size_t n;
    gcry_sexp_t found = gcry_sexp_find_token(sexp, token, 0);
    assert_non_null(found);
    gcry_mpi_t mpi = gcry_sexp_nth_mpi(found, 1, GCRYMPI_FMT_USG);
    uint8_t octets[256];
    assert_int_equal(gcry_mpi_print(GCRYMPI_FMT_PGP, octets, sizeof octets, &n, mpi), 0);
    bytes_add(bytes, octets, n);
    gcry_mpi_release(mpi);
    gcry_sexp_release(found);
}

static inline struct forged forged_new(unsigned algo, bool subkey, uint32_t created)
{
    static const uint8_t oid[] = {8, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x03, 0x01, 0x07}, kdf[] = {3, 1, 8, 7};
    struct forged forged = {.algo = (uint8_t)algo};
    gcry_sexp_t params;
    size_t used;
    assert_int_equal(gcry_sexp_build(&params, NULL, "(genkey (ecc (curve \"NIST P-256\") (flags transient-key)))"), 0);
    assert_int_equal(gcry_pk_genkey(&forged.pair, params), 0);
    gcry_sexp_release(params);
    bytes_add_u8(&forged.body, 4);
    bytes_add_u32(&forged.body, created);
    bytes_add_u8(&forged.body, algo);
    bytes_add(&forged.body, oid, sizeof oid);
    gcry_sexp_t public = gcry_sexp_find_token(forged.pair, "public-key", 0);
    bytes_add_token(&forged.body, public, "q");
    gcry_sexp_release(public);
    if (algo == PUBKEY_ECDH)
        bytes_add(&forged.body, kdf, sizeof kdf);
    assert_int_equal(key_parse(NULL, subkey ? PACKET_PUBLIC_SUBKEY : PACKET_PUBLIC_KEY, forged.body.at, forged.body.n,
                               &forged.key, &used),
                     0);
    return forged;
}

static inline void forged_clear(struct forged *forged)
{
    gcry_sexp_release(forged->pair);
    bytes_clear(&forged->body);
    key_free(forged->key);
}

/* What a forged signature says. */
struct claim {
    unsigned type;
    uint32_t created;
    unsigned digest;          /* 0: SHA-256 */
    unsigned flags;           /* key flags, GIVEN(n); 0: none */
    uint32_t key_expires;     /* 0: none */
    uint32_t expires;         /* 0: none */
    unsigned reason;          /* for a revocation, GIVEN(n); 0: none */
    bool primary;             /* primary user id */
    bool critical;            /* an unknown critical subpacket */
    const struct bytes *back; /* a back signature's body; NULL: none */
    const char *uid;          /* what is certified; NULL: keys */
};
#define CLAIM(...) ((struct claim){__VA_ARGS__})
#define GIVEN(n)   (0x100u | (n))

static inline void add_subpacket(struct bytes *area, unsigned type, const void *value, size_t n)
{
    if (n + 1 < 192) {
        bytes_add_u8(area, (unsigned)n + 1);
    } else {
        bytes_add_u8(area, 255);
        bytes_add_u32(area, (uint32_t)n + 1);
    }
    bytes_add_u8(area, type);
    bytes_add(area, value, n);
}

static inline struct bytes hashed_area(const struct claim *claim)
{
    struct bytes area = {0};
    uint8_t word[4], octet;
    put_be32(word, claim->created);
    add_subpacket(&area, 2, word, 4);
    put_be32(word, claim->expires);
    if (claim->expires)
        add_subpacket(&area, 3, word, 4);
    put_be32(word, claim->key_expires);
    if (claim->key_expires)
        add_subpacket(&area, 9, word, 4);
    octet = (uint8_t)claim->flags;
    if (claim->flags)
        add_subpacket(&area, 27, &octet, 1);
    octet = (uint8_t)claim->reason;
    if (claim->reason)
        add_subpacket(&area, 29, &octet, 1);
    octet = 1;
    if (claim->primary)
        add_subpacket(&area, 25, &octet, 1);
    if (claim->critical)
        add_subpacket(&area, 0x80 | 99, &octet, 1);
    if (claim->back)
        add_subpacket(&area, 32, claim->back->at, claim->back->n);
    return area;
}

static inline void hash_forged(gcry_md_hd_t md, const struct forged *forged)
{
    uint8_t head[3] = {0x99, (uint8_t)(forged->body.n >> 8), (uint8_t)forged->body.n};
    gcry_md_write(md, head, 3);
    gcry_md_write(md, forged->body.at, forged->body.n);
}

/* Signs the digest in MD with SIGNER and adds left 16 bits and value to BODY. */
static inline void add_value(struct bytes *body, const struct forged *signer, gcry_md_hd_t md, int algo)
{
    gcry_sexp_t data, value;
    const uint8_t *digest = gcry_md_read(md, algo);
    assert_int_equal(
        gcry_sexp_build(&data, NULL, "(data (flags raw) (value %b))", (int)gcry_md_get_algo_dlen(algo), digest), 0);
    gcry_sexp_t secret = gcry_sexp_find_token(signer->pair, "private-key", 0);
    assert_int_equal(gcry_pk_sign(&value, data, secret), 0);
    bytes_add(body, digest, 2);
    bytes_add_token(body, value, "r");
    bytes_add_token(body, value, "s");
    gcry_sexp_release(data);
    gcry_sexp_release(secret);
    gcry_sexp_release(value);
}

/* The body of a signature by SIGNER over PRIMARY and TARGET (may be NULL) or the claim's user id. */
static inline struct bytes forged_signature(const struct forged *signer, const struct forged *primary,
                                            const struct forged *target, const struct claim *claim)
{
    unsigned digest = claim->digest ? claim->digest : DIGEST_SHA256;
    int algo = digest == DIGEST_MD5 ? GCRY_MD_MD5 : digest == DIGEST_SHA1 ? GCRY_MD_SHA1 : GCRY_MD_SHA256;
    struct bytes body = {0}, hashed = hashed_area(claim);
    gcry_md_hd_t md;
    bytes_add_u8(&body, 4);
    bytes_add_u8(&body, claim->type);
    bytes_add_u8(&body, PUBKEY_ECDSA);
    bytes_add_u8(&body, digest);
    bytes_add_u16(&body, (unsigned)hashed.n);
    bytes_add(&body, hashed.at, hashed.n);
    bytes_clear(&hashed);
    assert_int_equal(gcry_md_open(&md, algo, 0), 0);
    hash_forged(md, primary);
    if (target)
        hash_forged(md, target);
    if (claim->uid) {
        uint8_t head[5] = {0xB4};
        put_be32(head + 1, (uint32_t)strlen(claim->uid));
        gcry_md_write(md, head, 5);
        gcry_md_write(md, claim->uid, strlen(claim->uid));
    }
    uint8_t trailer[6] = {4, 0xFF};
    put_be32(trailer + 2, (uint32_t)body.n);
    gcry_md_write(md, body.at, body.n);
    gcry_md_write(md, trailer, 6);
    bytes_add_u16(&body, 10); /* unhashed: the issuer's key id */
    add_subpacket(&body, 16, signer->key->keyid, 8);
    add_value(&body, signer, md, algo);
    gcry_md_close(md);
    return body;
}

static inline void add_forged_signature(struct bytes *to, const struct forged *signer, const struct forged *primary,
                                        const struct forged *target, struct claim claim)
{
    struct bytes body = forged_signature(signer, primary, target, &claim);
    bytes_add_packet(to, PACKET_SIGNATURE, body.at, body.n);
    bytes_clear(&body);
}

static inline void add_forged_key(struct bytes *to, const struct forged *forged)
{
    bytes_add_packet(to, forged->key->subkey ? PACKET_PUBLIC_SUBKEY : PACKET_PUBLIC_KEY, forged->body.at,
                     forged->body.n);
}

/* A user id with one certification. */
static inline void add_forged_uid(struct bytes *to, const struct forged *primary, const char *uid, struct claim claim)
{
    bytes_add_packet(to, PACKET_USER_ID, uid, strlen(uid));
    claim.uid = uid;
    add_forged_signature(to, primary, primary, NULL, claim);
}

#endif
