/* SPDX-License-Identifier: GPL-3.0-or-later */
/* ecdh: session keys under a key agreed on: ECDH (RFC 6637, RFC 9580 11.5), X25519 and X448 (RFC 9580 5.1.6, 5.1.7). */
#ifndef PGP_ECDH_H
#define PGP_ECDH_H

#include "key.h"
#include "secret.h"

/* Makes a key pair for this one use and wraps FRAME for KEY. RET: the point as the packet carries it, and the wrapped
 * key. */
MUST_CHECK gpg_error_t ecdh_seal(struct failure *failure, const struct key *key, const struct secret *frame,
                                 struct parts *ret);
/* libgcrypt's and the agent's (enc-val (ecdh …)) for the point in PARTS. GPG_ERR_INV_DATA where it is none. */
MUST_CHECK gpg_error_t ecdh_sexp(const struct key *key, const struct parts *parts, gcry_sexp_t *ret);
/* Unwraps with the shared point VALUE as libgcrypt or the agent gave it. Every flaw is GPG_ERR_DECRYPT_FAILED. */
MUST_CHECK gpg_error_t ecdh_open(const struct key *key, const struct parts *parts, const struct secret *value,
                                 struct secret **ret_frame);

#endif
