/* SPDX-License-Identifier: GPL-3.0-or-later */
/* mdc: SEIPD version 1: CFB with a modification detection code (RFC 9580 5.13.1); and packet 9, which has none. */
#ifndef PGP_MDC_H
#define PGP_MDC_H

#include "stream/ring.h"
#include "stream/run.h"
#include "stream/stream.h"

#include "algo.h"
#include "secret.h"

/* The MDC packet at the end of the plaintext: type, length, SHA-1. */
#define MDC_SIZE 22
/* Random block and its last two octets again at the start, at most. */
#define MDC_PREFIX_MAX 18

/* Octets of the prefix with CIPHER. */
size_t mdc_prefix_size(enum cipher_algo cipher);

/* Encrypts everything written, with random prefix and the MDC packet at the end. The version octet is the caller's.
 * OBSERVER (NULL: none) sees what is written, behind the prefix and before the MDC packet. WORKERS > 0: it, SHA-1, CFB
 * and what is below have a thread each. */
MUST_CHECK gpg_error_t mdc_sink_new(struct run *run, enum cipher_algo cipher, const struct secret *key,
                                    unsigned workers, const struct block_observer *observer, struct sink *takes_below,
                                    struct sink **ret);

/* BODY: behind the version octet, borrowed. The bytes lent are not yet proven; finish checks the MDC: GPG_ERR_CHECKSUM
 * for any flaw, a body that is too short among them, without a sentence. The last 22 octets are never lent, and the
 * repeated octets of the prefix are not looked at (an oracle otherwise). WORKERS > 0: decryption and SHA-1 on a thread
 * of their own. */
MUST_CHECK gpg_error_t mdc_source_new(struct run *run, enum cipher_algo cipher, const struct secret *key,
                                      unsigned workers, struct source *borrows_body, struct source **ret);

/* Whether KEY fits the start of an encrypted body (SEIPD 1 behind its version octet, or packet 9), by the repeated
 * octets of the prefix: a wrong key passes once in 65536. Only for keys made from passphrases, of which version 4 says
 * no more; with public keys it would be an oracle. HEAD has N octets, block size + 2 at least, else false. */
bool mdc_quick_check(enum cipher_algo cipher, const struct secret *key, const uint8_t *head, size_t n);

/* Packet 9: CFB with resynchronisation and no check at all. */
MUST_CHECK gpg_error_t sed_source_new(enum cipher_algo cipher, const struct secret *key, struct source *borrows_body,
                                      struct source **ret);

#endif
