/* SPDX-License-Identifier: GPL-3.0-or-later */
/* s2k: from a passphrase to a key (RFC 9580 3.7). */
#ifndef PGP_S2K_H
#define PGP_S2K_H

#include "stream/failure.h"

#include "algo.h"
#include "cursor.h"
#include "secret.h"

enum s2k_mode { S2K_SIMPLE = 0, S2K_SALTED = 1, S2K_ITERATED = 3, S2K_ARGON2 = 4, S2K_GNU = 101 };

/* Octets that a specifier takes at most: the GNU one of a card, with a serial number of 16 octets. */
#define S2K_MAX 23

/* What Argon2 may fill where nobody says otherwise, bytes: RFC 9106's first choice takes just this much. */
#define S2K_ARGON2_MEMORY_DEFAULT (UINT64_C(2) << 30)
/* Passes × memory may be that many times the memory limit: a bound on the time, some 20 seconds of one core at the
 * default. */
#define S2K_ARGON2_WORK_FACTOR 8

struct s2k {
    uint8_t mode;                       /* enum s2k_mode */
    uint8_t digest;                     /* not for Argon2 */
    uint8_t salt[16];                   /* 8 octets for modes 1 and 3, 16 for Argon2 */
    uint8_t count;                      /* coded, mode 3 */
    uint8_t passes, lanes, memory_bits; /* Argon2: t, p, log2 of KiB */
    uint8_t gnu;                        /* GNU extension: 1 = dummy, 2 = on a card */
    uint8_t serial[16];                 /* card's serial number */
    uint8_t serial_n;
};

struct s2k_limits {
    uint64_t argon2_memory; /* bytes; 0: S2K_ARGON2_MEMORY_DEFAULT */
};

/* Reads a specifier. GPG_ERR_NOT_SUPPORTED (unknown mode, digest) or GPG_ERR_INV_PACKET. */
MUST_CHECK gpg_error_t s2k_parse(struct failure *failure, struct cursor *cursor, struct s2k *ret);
/* Writes it; the number of octets. */
size_t s2k_put(const struct s2k *s2k, uint8_t out[S2K_MAX]);
/* The smallest coded count of at least COUNT iterated octets (1024 … 65011712; beyond: the nearest end). */
uint8_t s2k_count_code(uint32_t count);
uint32_t s2k_count_octets(uint8_t code);
/* A fresh specifier with random salt: iterated with COUNT octets (0: 65011712), or Argon2 with RFC 9106's second choice
 * (t 3, p 4, 64 MiB). */
void s2k_new_iterated(enum digest_algo digest, uint32_t count, struct s2k *ret);
void s2k_new_argon2(struct s2k *ret);
/* Derives N octets. GPG_ERR_RESOURCE_LIMIT where Argon2 wants more memory or work than LIMITS allow (LIMITS may be
 * NULL); GPG_ERR_NO_SECKEY for a GNU extension, which holds no secret. */
MUST_CHECK gpg_error_t s2k_derive(struct failure *failure, const struct s2k *s2k, const struct secret *passphrase,
                                  size_t n, const struct s2k_limits *limits, struct secret **ret);

#endif
