/* SPDX-License-Identifier: GPL-3.0-or-later */
/* key_spec: how a person names a key, as in "How to Specify a User ID" of gpg's manual, and what that matches. */
#ifndef PGP_KEY_SPEC_H
#define PGP_KEY_SPEC_H

#include "key.h"

enum key_spec_kind {
    SPEC_FPR,       /* 40 or 64 hexadecimal digits, blanks and colons between them allowed, 0x before */
    SPEC_KEYID,     /* 8 or 16 digits */
    SPEC_KEYGRIP,   /* & and 40 digits */
    SPEC_EXACT,     /* = and a whole user id */
    SPEC_MAIL,      /* <address>, or a plain address */
    SPEC_MAIL_PART, /* @ and a part of an address */
    SPEC_WORDS,     /* + and words that all occur, in any order */
    SPEC_SUBSTRING, /* *text, or plain text */
};

struct key_spec {
    enum key_spec_kind kind;
    bool exact_key;          /* `!` behind it: this very key or subkey */
    bool or_substring;       /* a plain address: where no user id has it as its address, the text anywhere in one */
    uint8_t id[KEY_FPR_MAX]; /* SPEC_FPR, SPEC_KEYID, SPEC_KEYGRIP */
    uint8_t id_n;            /* 20 or 32; 4 or 8; 20 */
    const char *text;        /* the others; borrowed from what was parsed, not NUL-terminated */
    size_t text_n;
};

/* GPG_ERR_INV_USER_ID for what gpg cannot use either (empty, X.509 forms, digits of a strange number after 0x): no
 * sentence. */
MUST_CHECK gpg_error_t key_spec_parse(const char *text, struct key_spec *ret);
/* By a fingerprint (N 20 or 32) or key id (N 8). */
struct key_spec key_spec_of_id(const uint8_t *id, size_t n);

/* Whether it names keys (the first three kinds) and not user ids. */
bool key_spec_names_key(const struct key_spec *spec);
/* False for kinds that do not name keys. */
bool key_spec_matches_key(const struct key_spec *spec, const struct key *key);
/* ASCII letters of any case are alike, but for SPEC_EXACT. False for kinds that name keys. */
bool key_spec_matches_uid(const struct key_spec *spec, const char *uid, size_t n);

#endif
