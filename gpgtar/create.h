/* SPDX-License-Identifier: GPL-3.0-or-later */
/* create: the command that makes an archive. */
#ifndef GPGTAR_CREATE_H
#define GPGTAR_CREATE_H

#include "program.h"

/* 0: the archive is written and has its name; inputs that were left out have been reported as errors (exit 1 all the
 * same). Else nothing has the name, and what had it before has it still. */
MUST_CHECK gpg_error_t create_command(const struct program *program);

#endif
