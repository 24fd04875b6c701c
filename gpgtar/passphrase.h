/* SPDX-License-Identifier: GPL-3.0-or-later */
/* passphrase: gets a passphrase from a descriptor, a file, a command or the terminal, into secure memory. It is never
 * in argv or the environment of any process. */
#ifndef GPGTAR_PASSPHRASE_H
#define GPGTAR_PASSPHRASE_H

#include "options.h"
#include "pgp/secret.h"

/* Longest passphrase, bytes; a longer line is an error, never cut. */
#define PASSPHRASE_MAX 4096

struct passphrase_request {
    const struct passphrase_origin *source; /* PASSPHRASE_DEFAULT: the terminal */
    bool is_new;      /* it will protect something: must not be empty; asked again on a terminal */
    unsigned repeat;  /* how often it is asked again, with is_new */
    bool batch;       /* never ask a person */
    const char *what; /* "Passphrase for backup.gpg"; shown before ": " */
};

/* The first line of the source without its line end (LF or CR LF; none is needed). Errors: GPG_ERR_NO_PASSPHRASE
 * (nobody can be asked, or an empty new one), GPG_ERR_CANCELED (signal, or end of input on the terminal),
 * GPG_ERR_TOO_LARGE, those of reading. gcrypt must be ready (crypt_init). */
MUST_CHECK gpg_error_t passphrase_get(const struct passphrase_request *request, struct failure *failure,
                                      struct secret **ret);

#endif
