/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "program.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

unsigned program_workers(const struct program *program)
{
    unsigned jobs = program->options->jobs;
    if (jobs == 0)
        jobs = run_processors(program->run) < 16 ? run_processors(program->run) : 16;
    return jobs == 1 ? 0 : jobs;
}

gpg_error_t program_directory(const struct program *program, int *ret_fd)
{
    const char *name = program->options->directory ? program->options->directory : ".";
    const int fd = open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        const gpg_error_t err = gpg_error_from_syserror();
        return fail(program_failure(program), err, "the folder '%s' cannot be opened: %s", name, gpg_strerror(err));
    }
    *ret_fd = fd;
    return 0;
}
