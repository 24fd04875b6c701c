/* SPDX-License-Identifier: GPL-3.0-or-later */
/* confine: takes rights away from this process before bytes of strangers are read, so that a bug in a parser cannot
 * reach further than the target folder. */
#ifndef GPGTAR_CONFINE_H
#define GPGTAR_CONFINE_H

#include "stream/failure.h"

#include <stdbool.h>

/* Core dumps off and no ptrace by others: before the first secret is loaded. */
MUST_CHECK gpg_error_t confine_secrets(struct failure *failure);

struct confine_folders {
    const int *write_fds; /* open folders: reading, writing, making and removing below them stays possible */
    size_t n_write;
    const int *read_fds; /* open folders or files: reading below them stays possible */
    size_t n_read;
    int terminal_fd; /* /dev/tty, opened with O_PATH at least: questions can still be asked there; -1: none */
};

/* Opens what the C library reads long after the start (user names, character sets, unwinding): never secrets of the
 * user. Returns how many of RET were filled. The caller closes them. */
#define CONFINE_SYSTEM_MAX 8
size_t confine_open_system(int ret[CONFINE_SYSTEM_MAX]);

/* no_new_privs and a Landlock ruleset for the calling thread and the threads and processes it makes later; call it
 * before threads are made. Descriptors that are open already, and sockets that are connected, go on working.
 * *RET_ABI: Landlock's version in the kernel (1 …), 0 where there is none: then nothing but no_new_privs is done, and
 * 0 is returned; the caller says so with -v. Device nodes can be made below write_fds. */
MUST_CHECK gpg_error_t confine_files(const struct confine_folders *folders, struct failure *failure, int *ret_abi);

#endif
