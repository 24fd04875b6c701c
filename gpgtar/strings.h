/* SPDX-License-Identifier: GPL-3.0-or-later */
/* strings: a growing list of strings, each owned by it. */
#ifndef GPGTAR_STRINGS_H
#define GPGTAR_STRINGS_H

#include "stream/bytes.h"

#include <gpg-error.h>

/* Starts with all zero, ends with strings_clear. */
struct strings {
    char **items; /* n strings, each owned */
    size_t n;
};

/* Adds a copy of TEXT. */
MUST_CHECK gpg_error_t strings_add(struct strings *strings, const char *text);
void strings_clear(struct strings *strings);

/* *WHERE becomes a copy of TEXT; what it was is freed. */
MUST_CHECK gpg_error_t strings_set(char **where, const char *text);

#endif
