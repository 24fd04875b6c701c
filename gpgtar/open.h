/* SPDX-License-Identifier: GPL-3.0-or-later */
/* open: the commands that read an archive: extract, list, verify, compare. */
#ifndef GPGTAR_OPEN_H
#define GPGTAR_OPEN_H

#include "program.h"

/* 0: everything that was asked for was done; flaws that do not stop it (a bad member, a difference) have been reported
 * as errors (exit 1 all the same). Else nothing was released. */
MUST_CHECK gpg_error_t open_command(const struct program *program);

#endif
