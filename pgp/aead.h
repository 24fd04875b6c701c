/* SPDX-License-Identifier: GPL-3.0-or-later */
/* aead: chunked authenticated encryption: LibrePGP's packet 20 and RFC 9580's SEIPD version 2 (5.13.2).
 *
 * No byte leaves a chunk before its tag is checked; the last tag authenticates the total length. */
#ifndef PGP_AEAD_H
#define PGP_AEAD_H

#include "stream/ring.h"
#include "stream/run.h"
#include "stream/stream.h"

#include "algo.h"
#include "secret.h"

enum aead_kind { AEAD_PACKET_20, AEAD_SEIPD_2 };

#define AEAD_CHUNK_BITS_MAX 16 /* the octet: chunk = 2^(octet + 6) octets, 4 MiB at most; RFC 9580 5.13.2 */
#define AEAD_TAG_SIZE       16
#define AEAD_IV_MAX         16
#define AEAD_SALT_SIZE      32

struct aead_params {
    enum aead_kind kind;
    uint8_t cipher;               /* enum cipher_algo; 128-bit blocks only */
    uint8_t aead;                 /* enum aead_algo */
    uint8_t chunk_octet;          /* 0 … AEAD_CHUNK_BITS_MAX */
    uint8_t iv[AEAD_IV_MAX];      /* packet 20: the IV of nonce_size octets */
    uint8_t salt[AEAD_SALT_SIZE]; /* SEIPD 2 */
};

/* Octets of a body's start at most: version, cipher, AEAD, chunk octet and the salt. */
#define AEAD_HEADER_MAX (4 + AEAD_SALT_SIZE)

/* A block of the ring is as many whole chunks as fit into this, or one chunk where that is larger. */
#define AEAD_BLOCK_SIZE (256 * 1024)

/* Reads algorithms and IV or salt at the start of the body (borrowed) of a packet 20 or 18 whose version octet (1 or 2)
 * has been consumed already. GPG_ERR_NOT_SUPPORTED names what is not, a chunk size of more than 4 MiB among it. */
MUST_CHECK gpg_error_t aead_read_header(struct failure *failure, enum aead_kind kind, struct source *body,
                                        struct aead_params *ret);
/* The body's start including the version octet, into OUT; the number of octets. */
size_t aead_put_header(const struct aead_params *params, uint8_t out[AEAD_HEADER_MAX]);
/* Draws a fresh IV or salt. */
void aead_params_fresh(struct aead_params *params);

/* KEY: the session key (copied into cipher handles). The key size must match the cipher: GPG_ERR_INV_KEYLEN. BELOW gets
 * the body after the header: chunks with their tags, and the last tag. Nothing written: the last tag alone. OBSERVER
 * (NULL: none) sees what is written. */
MUST_CHECK gpg_error_t aead_sink_new(struct run *run, const struct aead_params *params, const struct secret *key,
                                     unsigned workers, const struct block_observer *observer, struct sink *takes_below,
                                     struct sink **ret);
/* The reverse: BODY (borrowed, behind its header) to plaintext. GPG_ERR_CHECKSUM for a wrong tag, which is also what a
 * missing chunk or last tag comes to, GPG_ERR_TRUNCATED where there is not even room for the last tag; no sentence: the
 * caller words it, so that a wrong session key and damaged data read the same. */
MUST_CHECK gpg_error_t aead_source_new(struct run *run, const struct aead_params *params, const struct secret *key,
                                       unsigned workers, struct source *borrows_body, struct source **ret);
/* The same without threads for who takes only parts: skip goes over whole chunks by skipping in BODY, which is one of
 * packet_body_source. What is lent is still authenticated by its chunk. After such a skip finish goes to the end of
 * BODY by skipping too, and checks the last tag alone: with it the number of chunks and the total length. Memory: one
 * chunk. */
MUST_CHECK gpg_error_t aead_seek_source_new(struct failure *failure, const struct aead_params *params,
                                            const struct secret *key, struct source *borrows_body, struct source **ret);
/* SOURCE is one of aead_seek_source_new. Whether a skip of N octets goes over a chunk. */
bool aead_skip_passes(const struct source *source, uint64_t n);
/* Whether one did. */
bool aead_has_passed(const struct source *source);

/* One piece of its own, for encrypted session keys and secret keys: TEXT (N bytes) is encrypted, or decrypted, in
 * place. NONCE has the AEAD's nonce size. The lengths of CIPHER's and KEY's key must match (GPG_ERR_INV_KEYLEN).
 * aead_open: GPG_ERR_CHECKSUM, and TEXT is wiped, where TAG is wrong. */
MUST_CHECK gpg_error_t aead_seal(enum cipher_algo cipher, enum aead_algo aead, const struct secret *key,
                                 const uint8_t *nonce, const void *ad, size_t ad_n, void *text, size_t n,
                                 uint8_t tag[AEAD_TAG_SIZE]);
MUST_CHECK gpg_error_t aead_open(enum cipher_algo cipher, enum aead_algo aead, const struct secret *key,
                                 const uint8_t *nonce, const void *ad, size_t ad_n, void *text, size_t n,
                                 const uint8_t tag[AEAD_TAG_SIZE]);

#endif
