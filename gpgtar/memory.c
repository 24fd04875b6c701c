/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "memory.h"

#include "stream/fd.h"

#include <errno.h>
#include <gcrypt.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* 100 × 10 ms. */
#define TRIES 100
/* What libgcrypt allocates for itself is smaller; what is larger (the memory of Argon2), it can do without. */
#define SMALL 65536

static atomic_uint tries;

static void say(int fd, const char *text)
{
    gpg_error_t ignored = fd_write_full(fd, text, strlen(text));
    (void)ignored;
}

void memory_say(int fd)
{
    say(fd, "gpgtar: out of memory\n");
}

/* Whether libgcrypt is to try again. */
static int out_of_core(void *context, size_t n, unsigned flags)
{
    (void)context;
    (void)n;
    (void)flags;
    if (atomic_fetch_add(&tries, 1) >= TRIES)
        return 0;
    nanosleep(&(struct timespec){.tv_nsec = 10 * 1000 * 1000}, NULL);
    return 1;
}

/* For what libgcrypt allocates without looking whether it got it (1.10: the context of a curve, points). */
static void *allocate(size_t n)
{
    void *bytes;
    if (!n) {
        errno = EINVAL;
        return NULL;
    }
    while (!(bytes = malloc(n)))
        if (n > SMALL || !out_of_core(NULL, n, 0))
            break;
    if (!bytes && n <= SMALL) {
        memory_say(STDERR_FILENO);
        _exit(1);
    }
    return bytes;
}

static void fatal(void *context, int code, const char *text)
{
    (void)context;
    if (gpg_err_code((gpg_error_t)code) == GPG_ERR_ENOMEM) {
        memory_say(STDERR_FILENO);
    } else {
        say(STDERR_FILENO, "gpgtar: libgcrypt cannot go on: ");
        say(STDERR_FILENO, text ? text : gpg_strerror((gpg_error_t)code));
        say(STDERR_FILENO, "\n");
    }
    _exit(1);
}

void memory_install(void)
{
    /* The second call already makes libgcrypt allocate. */
    gcry_set_fatalerror_handler(fatal, NULL);
    gcry_set_outofcore_handler(out_of_core, NULL);
    /* Secure memory, and all freeing, stay libgcrypt's own. */
    gcry_set_allocation_handler(allocate, NULL, NULL, NULL, NULL);
}
