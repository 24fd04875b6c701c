/* SPDX-License-Identifier: GPL-3.0-or-later */
/* hkdf: HMAC-based key derivation (RFC 5869), which libgcrypt 1.10 does not have. */
#ifndef PGP_HKDF_H
#define PGP_HKDF_H

#include "algo.h"
#include "secret.h"

#include <gpg-error.h>

/* Extracts from INPUT with SALT (N bytes; 0: as many zeros as the digest has, as the RFC says) and expands with INFO to
 * N octets: at most 255 digests, else GPG_ERR_INV_KEYLEN. */
MUST_CHECK gpg_error_t hkdf(enum digest_algo algo, const struct secret *input, const void *salt, size_t salt_n,
                            const void *info, size_t info_n, size_t n, struct secret **ret);

#endif
