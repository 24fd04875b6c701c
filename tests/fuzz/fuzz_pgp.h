/* SPDX-License-Identifier: GPL-3.0-or-later */
/* fuzz_pgp: libgcrypt and a passphrase for the targets that need them. */
#ifndef TESTS_FUZZ_PGP_H
#define TESTS_FUZZ_PGP_H

#include "fuzz.h"

#include "pgp/crypt_init.h"
#include "pgp/secret_key.h"

#include <gcrypt.h>

/* Only there in builds with the address sanitizer. */
__attribute__((weak)) void __lsan_disable(void);
__attribute__((weak)) void __lsan_enable(void);

/* libgcrypt keeps the memory of its entropy source where the leak checker does not see it. */
static inline void fuzz_crypt_init(void)
{
    static bool ready;
    uint8_t octets[32];
    if (ready)
        return;
    if (__lsan_disable)
        __lsan_disable();
    FUZZ_CHECK(!crypt_init(NULL));
    gcry_randomize(octets, sizeof octets, GCRY_VERY_STRONG_RANDOM);
    if (__lsan_enable)
        __lsan_enable();
    ready = true;
}

/* A passphrase_source that says CONTEXT, a string, once. */
static inline gpg_error_t fuzz_passphrase(void *context, const struct key *key, unsigned attempt, bool is_new,
                                          struct secret **ret)
{
    (void)key;
    (void)is_new;
    if (attempt)
        return gpg_error(GPG_ERR_NO_PASSPHRASE);
    *ret = secret_from(context, strlen(context));
    return *ret ? 0 : gpg_error(GPG_ERR_ENOMEM);
}

#endif
