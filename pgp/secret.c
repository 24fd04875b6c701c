/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "secret.h"

#include <gcrypt.h>
#include <stdlib.h>
#include <string.h>

struct secret *secret_new(size_t n)
{
    if (n > SECRET_MAX)
        return NULL;
    struct secret *secret = calloc(1, sizeof *secret);
    if (!secret)
        return NULL;
    /* One byte more, so that an empty secret has an address too. */
    secret->bytes = gcry_calloc_secure(1, n + 1);
    if (!secret->bytes) {
        free(secret);
        return NULL;
    }
    secret->n = n;
    return secret;
}

struct secret *secret_from(const void *bytes, size_t n)
{
    struct secret *secret = secret_new(n);
    if (secret && n)
        memcpy(secret->bytes, bytes, n);
    return secret;
}

void secret_free(struct secret *secret)
{
    if (!secret)
        return;
    gcry_free(secret->bytes); /* wipes secure memory, all of it */
    free(secret);
}

bool bytes_equal_secretly(const void *a, const void *b, size_t n)
{
    const volatile uint8_t *p = a;
    const volatile uint8_t *q = b;
    uint8_t difference = 0;
    for (size_t i = 0; i < n; i++)
        difference |= (uint8_t)(p[i] ^ q[i]);
    return difference == 0;
}

void bytes_wipe(void *bytes, size_t n)
{
    explicit_bzero(bytes, n);
}
