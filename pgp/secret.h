/* SPDX-License-Identifier: GPL-3.0-or-later */
/* secret: the one type that holds passphrases, session keys and secret key material: in libgcrypt's secure memory,
 * wiped when freed. */
#ifndef PGP_SECRET_H
#define PGP_SECRET_H

#include "stream/bytes.h"

#include <stdbool.h>

struct secret {
    size_t n;       /* bytes in use; may be lowered by the owner */
    uint8_t *bytes; /* secure memory */
};

/* Largest secret, bytes: an unencrypted RSA-16384 secret key fits. */
#define SECRET_MAX 16384

/* N zero bytes. NULL: out of secure memory or N > SECRET_MAX. */
struct secret *secret_new(size_t n);
/* A copy. */
struct secret *secret_from(const void *bytes, size_t n);
/* Wipes and frees; takes NULL. */
void secret_free(struct secret *secret);
/* Constant-time. */
bool bytes_equal_secretly(const void *a, const void *b, size_t n);
/* A wipe that the compiler keeps. */
void bytes_wipe(void *bytes, size_t n);

#endif
