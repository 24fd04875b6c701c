/* SPDX-License-Identifier: GPL-3.0-or-later */
/* crypt_init: libgcrypt made ready, once, before any thread starts. */
#ifndef PGP_CRYPT_INIT_H
#define PGP_CRYPT_INIT_H

#include "stream/failure.h"

/* Secure memory in bytes: an OCB handle takes 2 KiB of it, and there are up to 64 workers, besides keys and
 * passphrases. */
#define CRYPT_SECURE_POOL (512 * 1024)

/* Checks the version, sets up secure memory (locked where the limit allows) and the random generator. Calling it again
 * does nothing. GPG_ERR_NOT_SUPPORTED where libgcrypt is older than 1.10. */
MUST_CHECK gpg_error_t crypt_init(struct failure *failure);

#endif
