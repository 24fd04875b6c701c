/* SPDX-License-Identifier: GPL-3.0-or-later */
/* key: public parts of key packets (RFC 9580 5.5.2), fingerprints and keygrips. */
#ifndef PGP_KEY_H
#define PGP_KEY_H

#include "stream/failure.h"

#include "algo.h"

#include <gcrypt.h>

#define KEY_BODY_MAX  (16 * 1024) /* octets of the public part of a key packet */
#define KEY_FPR_MAX   32
#define KEY_PARTS_MAX 4

/* A number or octet string of a key, signature or encrypted session key. MPIs are big-endian without leading zeros;
 * native strings (algorithms 25 … 28) are as they are. */
struct part {
    uint8_t *bytes;
    size_t n;
};

/* Up to four parts, owned. */
struct parts {
    unsigned n;
    struct part part[KEY_PARTS_MAX];
};
void parts_clear(struct parts *parts);
/* Appends a copy of N octets, after LEFT_PAD zeros. */
MUST_CHECK gpg_error_t parts_add(struct parts *parts, const void *bytes, size_t n, size_t left_pad);
/* Appends an MPI read from CURSOR: leading zeros are dropped. A flaw is left to the cursor. */
struct cursor;
MUST_CHECK gpg_error_t parts_add_mpi(struct parts *parts, struct cursor *cursor);
/* Bits of a number: 0 for none. */
unsigned part_bits(const struct part *part);

/* Curves by their OID (RFC 9580 9.2; LibrePGP's and RFC 8410's short OIDs as well). */
enum curve_kind { CURVE_WEIERSTRASS, CURVE_EDWARDS, CURVE_MONTGOMERY };
struct curve {
    const char *name; /* libgcrypt's: "NIST P-256", "brainpoolP256r1", "secp256k1", "Ed25519", "Curve25519", "Ed448"… */
    enum curve_kind kind;
    uint8_t oid_n;
    uint8_t octets; /* of a coordinate (Weierstrass) or of a native point and secret */
    uint16_t bits;
    uint8_t oid[11];
};
const struct curve *curve_by_oid(const uint8_t *oid, size_t n);

struct key {
    uint8_t version; /* 4, 5 (LibrePGP) or 6 */
    uint8_t algo;    /* enum pubkey_algo, perhaps unknown: then parts is empty and the key cannot be used */
    bool subkey;
    uint32_t created;               /* seconds since 1970 */
    const struct curve *curve;      /* elliptic keys, ids 25 … 28 too; NULL where unknown or none */
    uint8_t kdf_digest, kdf_cipher; /* ECDH */
    /* Public parts in packet order: RSA n e; DSA p q g y; Elgamal p g y; ECC the point: 0x04 x y on Weierstrass curves,
     * else native and without the 0x40 of version 4 keys. Empty for unknown algorithms and curves. */
    struct parts parts;
    unsigned bits; /* size for words: RSA and discrete-log modulus, size of the curve; 0 unknown */
    uint8_t fpr[KEY_FPR_MAX];
    uint8_t fpr_n; /* 20 or 32 */
    uint8_t keyid[8];
    uint8_t keygrip[20];
    bool has_keygrip;
    uint8_t *body; /* the public part of the packet's body, owned: what fingerprints and signatures hash */
    size_t body_n;
    unsigned refs; /* keys are shared by reference, on one thread */
};

/* Parses the public part of a packet 5, 6, 7 or 14; *RET_PUBLIC_N is the number of octets used (secret packets go on
 * from there; octets left over in a public packet are refused). Unknown algorithms and curves give a key that
 * key_usable() refuses. GPG_ERR_INV_PACKET; GPG_ERR_NOT_SUPPORTED for versions 2 and 3, and for a version 4 secret key
 * of an unknown algorithm, whose public part has no known end; GPG_ERR_UNKNOWN_VERSION for other versions. */
MUST_CHECK gpg_error_t key_parse(struct failure *failure, unsigned packet_type, const uint8_t *body, size_t n,
                                 struct key **ret, size_t *ret_public_n);
struct key *key_ref(struct key *key);
void key_free(struct key *key);

bool key_can_sign_algo(const struct key *key);
bool key_can_encrypt_algo(const struct key *key);
/* 0, or GPG_ERR_NOT_SUPPORTED with a sentence that names the algorithm or curve. */
MUST_CHECK gpg_error_t key_usable(struct failure *failure, const struct key *key);
/* libgcrypt's (public-key …), as gpg and gpg-agent build it. Only for keys that key_usable() accepts. */
MUST_CHECK gpg_error_t key_sexp(const struct key *key, gcry_sexp_t *ret);
/* Whether libgcrypt can verify with the point of an Edwards key (others: 0). GPG_ERR_BAD_PUBKEY: it would abort the
 * process, as libgcrypt 1.10 does where a coordinate is shorter than its field by a limb or more. Nobody has such a key
 * by chance (2^-63). To be asked before gcry_pk_verify. */
MUST_CHECK gpg_error_t key_point_check(const struct key *key);
/* Feeds what a signature over this key hashes (RFC 9580 5.2.4): 0x99, 0x9A or 0x9B, the length, the body. */
void key_hash(const struct key *key, gcry_md_hd_t md);
/* Upper-case hex of the fingerprint into OUT, NUL-terminated. */
void key_fpr_hex(const struct key *key, char out[2 * KEY_FPR_MAX + 1]);

#endif
