/* SPDX-License-Identifier: GPL-3.0-or-later */
/* preference: what to write: packet forms and algorithms that all recipients can read, chosen as gpg chooses them.
 *
 * Intersection and ranking follow RFC 9580 13.4 and gpg's votes: each recipient's list gives places, the algorithm with
 * the lowest sum that everybody has wins, and the user's personal list goes before that. */
#ifndef PGP_PREFERENCE_H
#define PGP_PREFERENCE_H

#include "aead.h"
#include "message_write.h"
#include "signature.h"

enum dialect { DIALECT_AUTO, DIALECT_RFC4880, DIALECT_LIBREPGP, DIALECT_RFC9580 };

/* Longest personal list. */
#define PREFERENCE_MAX 32

struct preference_list {
    uint8_t algo[PREFERENCE_MAX];
    unsigned n;
};

/* What the user asked for. */
struct preference_wishes {
    enum dialect dialect;
    bool force_ocb;
    uint8_t cipher;                                        /* enum cipher_algo; 0: not given */
    uint8_t digest;                                        /* enum digest_algo; 0: not given */
    int compress;                                          /* enum compress_algo; -1: not given */
    uint8_t s2k_cipher;                                    /* 0: not given; for passphrases alone */
    int chunk_octet;                                       /* -1: the default */
    struct preference_list ciphers, digests, compressions; /* personal lists */
};

struct preference_choice {
    enum protection protection;
    uint8_t cipher, aead, chunk_octet, compress;
    bool legacy_cipher; /* asked for by name: warn */
};

/* A list such as "AES256 AES" or "S9 S7, H10": TYPE is 'S', 'H' or 'Z'; names that do not fit are GPG_ERR_INV_VALUE
 * with a sentence. "none" is an empty list. */
MUST_CHECK gpg_error_t preference_parse(struct failure *failure, const char *text, char type,
                                        struct preference_list *ret);

/* SELVES: a preference signature for each recipient (NULL: it states none); KEYS: the recipients' keys. N = 0: a
 * passphrase alone. GPG_ERR_CIPHER_ALGO with a sentence where what was asked for cannot be had. */
MUST_CHECK gpg_error_t preference_choose(struct failure *failure, const struct preference_wishes *wishes,
                                         const struct signature *const *selves, const struct key *const *keys, size_t n,
                                         struct preference_choice *ret);

/* The compression of a message that is only signed or has only passphrases. */
uint8_t preference_compress_alone(const struct preference_wishes *wishes);

/* The digests for signatures by KEYS, RET[i] for KEYS[i], in a message to N recipients (0: none). gpg takes one for all
 * where that can be: the recipients' choice as far as each key's size allows. */
void preference_digests(const struct preference_wishes *wishes, const struct key *const *keys, size_t key_n,
                        const struct signature *const *selves, size_t n, uint8_t *ret);

#endif
