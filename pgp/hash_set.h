/* SPDX-License-Identifier: GPL-3.0-or-later */
/* hash_set: the digests of what passes by in blocks, for signatures. */
#ifndef PGP_HASH_SET_H
#define PGP_HASH_SET_H

#include "stream/failure.h"
#include "stream/ring.h"

#include "algo.h"

#include <gcrypt.h>

/* A set of running digests over the same bytes; each has its algorithm and the salt that goes before the bytes (v6
 * signatures). */
struct hash_set;

/* Most digests in one set: a message with more signatures than that is refused. */
#define HASH_SET_MAX 32

struct hash_set *hash_set_new(void);
void hash_set_free(struct hash_set *set);
/* Adds a digest (equal ones are shared) and gives its number. GPG_ERR_DIGEST_ALGO for an unknown algorithm,
 * GPG_ERR_TOO_MANY. TEXT: bytes are hashed with line ends as CR LF (signature type 0x01). Only before the first byte.
 */
MUST_CHECK gpg_error_t hash_set_add(struct hash_set *set, enum digest_algo algo, const void *salt, size_t salt_n,
                                    bool text, unsigned *ret_number);
void hash_set_update(struct hash_set *set, const void *bytes, size_t n);
/* A copy of the digest's state, to be finished with a signature's trailer; the caller closes it. */
MUST_CHECK gpg_error_t hash_set_copy(const struct hash_set *set, unsigned number, gcry_md_hd_t *ret);
uint64_t hash_set_bytes(const struct hash_set *set);

/* Digests of what goes through a sink or source of blocks of BLOCK_SIZE bytes, taken in place, by one worker or none.
 * SET (borrowed) must outlive it and is its own until it was finished. */
struct block_job hash_set_job(struct hash_set *set, size_t block_size);

/* The same for blocks of a message in which the content lies: in a literal packet that begins after SKIP octets, as
 * literal_sink_new writes it. To be said before the first of them. */
void hash_set_expect_literal(struct hash_set *set, size_t skip);
struct block_observer hash_set_observer(struct hash_set *set);

#endif
