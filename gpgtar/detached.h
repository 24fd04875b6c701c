/* SPDX-License-Identifier: GPL-3.0-or-later */
/* detached: signatures in a file of their own: made by --detach-sign, checked by --verify SIGNATURE FILE. */
#ifndef GPGTAR_DETACHED_H
#define GPGTAR_DETACHED_H

#include "events.h"
#include "stream/stream.h"

/* Whether RAW begins as a detached signature does: with a signature packet, or as an armored "PGP SIGNATURE". Looks at
 * what the first peek lends. */
MUST_CHECK gpg_error_t detached_is_signature(struct source *borrows_raw, bool *ret);

/* Opens NAME ("-": standard input), a file or a pipe, as what is, or shall be, signed; relative to DIRECTORY_FD. */
MUST_CHECK gpg_error_t detached_open(const struct program *program, int directory_fd, const char *name,
                                     struct source **ret);

/* Checks the signatures over CONTENT, says what they are, and judges. At least one must be good and none bad. */
MUST_CHECK gpg_error_t detached_verify(const struct events *events, const struct read_params *read,
                                       struct source *takes_signatures, struct source *takes_content);

#endif
