/* SPDX-License-Identifier: GPL-3.0-or-later */
/* aead: chunked authenticated encryption: LibrePGP's packet 20 and RFC 9580's SEIPD version 2 (5.13.2).
 *
 * No byte leaves a chunk before its tag is checked; the last tag authenticates the total length. */
#ifndef PGP_AEAD_H
#define PGP_AEAD_H

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

/* Reads version, algorithms and IV or salt at the start of the body (borrowed) of a packet 20 or 18 whose version octet
 * has been consumed already. GPG_ERR_NOT_SUPPORTED names what is not. */
MUST_CHECK gpg_error_t aead_read_header(struct failure *failure, enum aead_kind kind, struct source *body,
                                        struct aead_params *ret);
/* The body's start including the version octet, into OUT (at most 36 octets); the number of octets. */
size_t aead_put_header(const struct aead_params *params, uint8_t out[40]);

/* KEY: the session key (copied into cipher handles). The key size must match the cipher: GPG_ERR_INV_KEYLEN. BELOW gets
 * the body after the header: chunks with their tags, and the last tag. */
MUST_CHECK gpg_error_t aead_sink_new(struct run *run, const struct aead_params *params, const struct secret *key,
                                     unsigned workers, struct sink *takes_below, struct sink **ret);
/* The reverse: BODY (borrowed, behind its header) to plaintext. GPG_ERR_CHECKSUM for a wrong tag, GPG_ERR_TRUNCATED
 * where the last one is missing; no sentence that tells a wrong session key from damaged data (the caller words it). */
MUST_CHECK gpg_error_t aead_source_new(struct run *run, const struct aead_params *params, const struct secret *key,
                                       unsigned workers, struct source *borrows_body, struct source **ret);

#endif
