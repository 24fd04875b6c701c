/* SPDX-License-Identifier: GPL-3.0-or-later */
/* members: which members of an archive are wanted: the names of the command line and those of -T. */
#ifndef GPGTAR_MEMBERS_H
#define GPGTAR_MEMBERS_H

#include "program.h"

/* Bytes of a list of member names at most. */
#define MEMBERS_LIST_MAX ((size_t)64 << 20)

/* RET starts with all zero; the caller clears it, on success and failure. -T: a name a line, with --null each ended by
 * NUL; blanks are part of a name, empty ones are skipped, the last needs no end. A list without any name is
 * GPG_ERR_NO_DATA: it must not turn into "everything". */
MUST_CHECK gpg_error_t members_read(const struct program *program, struct strings *ret);

#endif
