/* SPDX-License-Identifier: GPL-3.0-or-later */
/* keyboxd: certificates at GnuPG's key daemon (2.3 and later, `use-keyboxd` in common.conf), asked over Assuan; it is
 * started where it is not running. One thread at a time per object. */
#ifndef PGP_KEYBOXD_H
#define PGP_KEYBOXD_H

#include "stream/failure.h"

#include "key_spec.h"

/* Octets of all certificates of one answer at most. */
#define KEYBOXD_ANSWER_MAX (256u * 1024 * 1024)

/* Strings are copied. */
struct keyboxd_params {
    const char *home;    /* GnuPG's home folder, absolute */
    bool default_home;   /* HOME is the one that gpg takes without --homedir and GNUPGHOME */
    const char *socket;  /* NULL: S.keyboxd where gpgconf would put it for HOME */
    const char *program; /* NULL: keyboxd in the folders where distributions install it, then in PATH */
    bool must_run;       /* never start one */
};

struct keyboxd;

/* Nothing is connected or started before the first search. */
MUST_CHECK gpg_error_t keyboxd_open(const struct keyboxd_params *params, struct keyboxd **ret);
void keyboxd_free(struct keyboxd *keyboxd);

/* All certificates that SPEC matches (NULL: all there are), their packets one after the other in memory that the caller
 * frees; none: *RET_N = 0 and *RET_BYTES = NULL. With a sentence that names HOME: GPG_ERR_NO_KEYBOXD (not running, and
 * cannot be started), GPG_ERR_ASSUAN_SERVER_FAULT (it went away), GPG_ERR_TOO_LARGE, or what keyboxd says. */
MUST_CHECK gpg_error_t keyboxd_search(struct failure *failure, struct keyboxd *keyboxd, const struct key_spec *spec,
                                      uint8_t **ret_bytes, size_t *ret_n);

#endif
