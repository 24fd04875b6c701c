/* SPDX-License-Identifier: GPL-3.0-or-later */
/* recipients: for whom an archive is encrypted, as the options name them. */
#ifndef GPGTAR_RECIPIENTS_H
#define GPGTAR_RECIPIENTS_H

#include "stream/bytes.h"

#include <gpg-error.h>

enum recipient_kind {
    RECIPIENT_NAME,        /* -r: user id, key id, fingerprint */
    RECIPIENT_HIDDEN_NAME, /* -R */
    RECIPIENT_FILE,        /* -f: a file with one certificate */
    RECIPIENT_HIDDEN_FILE, /* -F */
};

struct recipient {
    enum recipient_kind kind;
    char *name;
};

struct recipients {
    struct recipient *items;
    size_t n;
};

/* Adds a copy of NAME. */
MUST_CHECK gpg_error_t recipients_add(struct recipients *recipients, enum recipient_kind kind, const char *name);
void recipients_clear(struct recipients *recipients);

#endif
