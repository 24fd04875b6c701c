/* SPDX-License-Identifier: GPL-3.0-or-later */
/* wishes: the options' names of algorithms as pgp/ wants them. */
#ifndef GPGTAR_WISHES_H
#define GPGTAR_WISHES_H

#include "pgp/pgp.h"
#include "program.h"

/* GPG_ERR_INV_VALUE and the like with a sentence for a name that is not known. */
MUST_CHECK gpg_error_t wishes_read(const struct program *program, struct preference_wishes *ret);
/* The S2K specifier for a passphrase; with DIALECT_RFC9580 Argon2 unless an option says otherwise. */
MUST_CHECK gpg_error_t wishes_s2k(const struct program *program, struct s2k *ret);
/* --notation values, "!name@domain=value"; *RET (to be freed with free, once) points into the options. */
MUST_CHECK gpg_error_t wishes_notations(const struct program *program, struct notation **ret, size_t *ret_n);
/* --override-session-key and its fd form; *RET_GIVEN tells whether there is one. */
MUST_CHECK gpg_error_t wishes_session_key(const struct program *program, struct session_key *ret, bool *ret_given);

#endif
