/* SPDX-License-Identifier: GPL-3.0-or-later */
/* program: what every command is given: the options, where words and status lines go, and the run. All borrowed. */
#ifndef GPGTAR_PROGRAM_H
#define GPGTAR_PROGRAM_H

#include "options.h"
#include "report.h"
#include "status.h"
#include "stream/run.h"

struct program {
    const struct options *options;
    struct report *report;
    struct status *status; /* NULL: none */
    struct run *run;
};

/* Where failures of this run are noted. */
static inline struct failure *program_failure(const struct program *program)
{
    return run_failure(program->run);
}

/* Threads that compress and encrypt: --jobs, else one for each processor; 1 means no threads at all and gives 0. */
unsigned program_workers(const struct program *program);

/* Opens the folder of -C, or the current one, for reading names from and making names in. The caller closes it. */
MUST_CHECK gpg_error_t program_directory(const struct program *program, int *ret_fd);

#endif
