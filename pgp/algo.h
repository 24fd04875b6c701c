/* SPDX-License-Identifier: GPL-3.0-or-later */
/* algo: OpenPGP's numbers for algorithms, their names, and libgcrypt's. Tables only. */
#ifndef PGP_ALGO_H
#define PGP_ALGO_H

#include "stream/bytes.h"

#include <stdbool.h>

/* RFC 9580 9.1 (and LibrePGP for Kyber) */
enum pubkey_algo {
    PUBKEY_RSA = 1,
    PUBKEY_RSA_ENCRYPT = 2,
    PUBKEY_RSA_SIGN = 3,
    PUBKEY_KYBER = 8,
    PUBKEY_ELGAMAL = 16,
    PUBKEY_DSA = 17,
    PUBKEY_ECDH = 18,
    PUBKEY_ECDSA = 19,
    PUBKEY_ELGAMAL_SIGN = 20,
    PUBKEY_EDDSA = 22, /* EdDSALegacy */
    PUBKEY_X25519 = 25,
    PUBKEY_X448 = 26,
    PUBKEY_ED25519 = 27,
    PUBKEY_ED448 = 28,
};

/* RFC 9580 9.3 */
enum cipher_algo {
    CIPHER_NONE = 0,
    CIPHER_IDEA = 1,
    CIPHER_3DES = 2,
    CIPHER_CAST5 = 3,
    CIPHER_BLOWFISH = 4,
    CIPHER_AES128 = 7,
    CIPHER_AES192 = 8,
    CIPHER_AES256 = 9,
    CIPHER_TWOFISH = 10,
    CIPHER_CAMELLIA128 = 11,
    CIPHER_CAMELLIA192 = 12,
    CIPHER_CAMELLIA256 = 13,
};

/* RFC 9580 9.4 */
enum compress_algo { COMPRESS_NONE = 0, COMPRESS_ZIP = 1, COMPRESS_ZLIB = 2, COMPRESS_BZIP2 = 3 };

/* RFC 9580 9.5 */
enum digest_algo {
    DIGEST_MD5 = 1,
    DIGEST_SHA1 = 2,
    DIGEST_RMD160 = 3,
    DIGEST_SHA256 = 8,
    DIGEST_SHA384 = 9,
    DIGEST_SHA512 = 10,
    DIGEST_SHA224 = 11,
    DIGEST_SHA3_256 = 12,
    DIGEST_SHA3_512 = 14,
};

/* RFC 9580 9.6 */
enum aead_algo { AEAD_NONE = 0, AEAD_EAX = 1, AEAD_OCB = 2, AEAD_GCM = 3 };

struct cipher_info {
    enum cipher_algo id;
    const char *name;   /* gpg's spelling: "AES256" */
    int gcry;           /* GCRY_CIPHER_… */
    uint8_t key_size;   /* octets */
    uint8_t block_size; /* octets: 8 or 16 */
    bool legacy;        /* 64-bit blocks: read; written only when named, with a warning */
};

struct digest_info {
    enum digest_algo id;
    const char *name;  /* "SHA256" */
    int gcry;          /* GCRY_MD_… */
    uint8_t size;      /* octets of the digest */
    uint8_t salt_size; /* octets of a v6 signature's salt, RFC 9580 table 23; 0: not for v6 */
    bool weak;         /* MD5, SHA-1, RIPEMD-160: signatures refused by default */
};

struct aead_info {
    enum aead_algo id;
    const char *name;   /* "OCB" */
    int gcry_mode;      /* GCRY_CIPHER_MODE_… */
    uint8_t nonce_size; /* octets: EAX 16, OCB 15, GCM 12 */
};

/* NULL: unknown number, or one that libgcrypt does not offer. */
const struct cipher_info *algo_cipher(unsigned id);
const struct digest_info *algo_digest(unsigned id);
const struct aead_info *algo_aead(unsigned id);

/* By gpg's names and their common variants in any case ("AES", "AES128", "sha-256", "S9", "H10"); 0 where unknown. */
enum cipher_algo algo_cipher_by_name(const char *name);
enum digest_algo algo_digest_by_name(const char *name);
enum aead_algo algo_aead_by_name(const char *name);
/* -1 where unknown ("none", "uncompressed" and "Z0" are COMPRESS_NONE). */
int algo_compress_by_name(const char *name);

/* For words: never NULL, "algorithm 99" style names are made by the caller: these return NULL where unknown. */
const char *algo_pubkey_name(unsigned id);
const char *algo_cipher_name(unsigned id);
const char *algo_digest_name(unsigned id);
const char *algo_compress_name(unsigned id);
const char *algo_aead_name(unsigned id);

#endif
