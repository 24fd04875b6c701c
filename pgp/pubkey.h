/* SPDX-License-Identifier: GPL-3.0-or-later */
/* pubkey: the public-key operations, and secret keys behind one function type: in memory, or at gpg-agent. */
#ifndef PGP_PUBKEY_H
#define PGP_PUBKEY_H

#include "key.h"
#include "secret.h"

/* Checks a signature value over DIGEST. GPG_ERR_BAD_SIGNATURE where it is wrong, or DIGEST is too short for the key
 * (RFC 9580 5.2.3.2 … 5.2.3.5); GPG_ERR_NOT_SUPPORTED. */
MUST_CHECK gpg_error_t pubkey_verify(const struct key *key, enum digest_algo algo, const uint8_t *digest, size_t n,
                                     const struct parts *signature);

/* What libgcrypt signs for DIGEST: (data …). GPG_ERR_DIGEST_ALGO where DIGEST is too short for the key. */
MUST_CHECK gpg_error_t pubkey_digest_sexp(const struct key *key, enum digest_algo algo, const uint8_t *digest, size_t n,
                                          gcry_sexp_t *ret);

/* Encrypts FRAME for KEY. FRAME is the session key as the packet wants it before padding: for v3 PKESK algorithm octet,
 * key, 2-octet checksum; for v6 key and checksum; for X25519/X448 the session key alone (no checksum). PKCS#1, ECDH's
 * KDF and key wrap (RFC 6637 8, RFC 9580 5.1.5) and X25519's HKDF are done here. Parts come out as the PKESK carries
 * them: RSA 1, Elgamal 2, ECDH point and wrapped key, X25519 point and wrapped key. */
MUST_CHECK gpg_error_t pubkey_encrypt(struct failure *failure, const struct key *key, const struct secret *frame,
                                      struct parts *ret);

/* A secret key able to work. Implementations: secret_key.c (in memory), agent.c. */
struct secret_key;
struct secret_key_ops {
    /* Signs DIGEST; the value comes as libgcrypt's and the agent's (sig-val …). */
    gpg_error_t (*sign)(struct secret_key *self, struct failure *failure, enum digest_algo algo, const uint8_t *digest,
                        size_t n, gcry_sexp_t *ret_sig);
    /* Decrypts (enc-val …): RSA and Elgamal give the PKCS#1 frame (leading zero octet optional) or, with *RET_UNPADDED,
     * what was in it; ECDH gives the shared point as libgcrypt and the agent do: 0x40 x, or 0x04 x y, or x alone. */
    gpg_error_t (*decrypt)(struct secret_key *self, struct failure *failure, gcry_sexp_t enc, struct secret **ret_value,
                           bool *ret_unpadded);
    void (*free)(struct secret_key *self);
};
struct secret_key {
    const struct secret_key_ops *ops;
    struct key *key; /* its public part, a reference of its own */
    bool on_card;    /* asked after the software keys, once at most */
};
void secret_key_free(struct secret_key *secret_key);

/* Signs and gives the value in the parts that a signature packet of this key's algorithm carries. The value is checked
 * with the public key before it is given out (a fault must not leak the key). */
MUST_CHECK gpg_error_t pubkey_sign(struct failure *failure, struct secret_key *secret_key, enum digest_algo algo,
                                   const uint8_t *digest, size_t n, struct parts *ret);
/* Opens a PKESK's parts: undoes what pubkey_encrypt did and gives the frame (checksum not yet checked). Any flaw inside
 * is the one code GPG_ERR_DECRYPT_FAILED without a sentence; agent errors (cancelled, bad passphrase, no secret key)
 * come through. Points of cv25519 with and without 0x40 are taken. */
MUST_CHECK gpg_error_t pubkey_decrypt(struct failure *failure, struct secret_key *secret_key, const struct parts *parts,
                                      struct secret **ret_frame);

#endif
