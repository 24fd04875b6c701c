/* SPDX-License-Identifier: GPL-3.0-or-later */
/* mdc: SEIPD version 1: CFB with a modification detection code (RFC 9580 5.13.1); and packet 9, which has none. */
#ifndef PGP_MDC_H
#define PGP_MDC_H

#include "stream/run.h"
#include "stream/stream.h"

#include "algo.h"
#include "secret.h"

/* Encrypts everything written, with random prefix and the MDC packet at the end. The version octet is the caller's.
 * WORKERS > 0: SHA-1 and CFB on threads of their own. */
MUST_CHECK gpg_error_t mdc_sink_new(struct run *run, enum cipher_algo cipher, const struct secret *key,
                                    unsigned workers, struct sink *takes_below, struct sink **ret);

/* BODY: behind the version octet, borrowed. The bytes lent are not yet proven; finish checks the MDC (GPG_ERR_BAD_MDC…
 * any flaw gives the same code). The last 22 octets are never lent. The repeated prefix octets are checked (quick
 * check) only where QUICK_CHECK is set (passphrase-made session keys): no oracle for public-key messages. */
MUST_CHECK gpg_error_t mdc_source_new(struct run *run, enum cipher_algo cipher, const struct secret *key,
                                      bool quick_check, unsigned workers, struct source *borrows_body,
                                      struct source **ret);

/* Packet 9: CFB with resynchronisation and no check at all. */
MUST_CHECK gpg_error_t sed_source_new(struct failure *failure, enum cipher_algo cipher, const struct secret *key,
                                      struct source *borrows_body, struct source **ret);

#endif
