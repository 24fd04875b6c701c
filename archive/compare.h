/* SPDX-License-Identifier: GPL-3.0-or-later */
/* compare: the members of a tar with the disk. Nothing is written. */
#ifndef ARCHIVE_COMPARE_H
#define ARCHIVE_COMPARE_H

#include "tar_read.h"

struct tar_compare_params {
    struct tar_read_params read;
    int root_fd;        /* borrowed; the folder that names are relative to, or AT_FDCWD */
    bool numeric_owner; /* owners by number only; else by name where the archive has one and the system knows it */
    bool no_owner;      /* do not compare owners */
    bool no_extra;      /* do not report what the disk has in archived folders and the archive has not */
};

struct tar_compare_result {
    uint64_t members;     /* compared */
    uint64_t differences; /* NOTICE_DIFFERS given, one a member or extra file: exit 1 if not 0 */
    struct tar_read_counts read;
};

/* Kind, content, mode, mtime (not of folders; to the precision that the archive has), owner, link target, and what is
 * missing or extra. The detail of a notice names all that differs in a member. *RET is written on success and failure.
 * Errors: see tar_read.h. */
MUST_CHECK gpg_error_t tar_compare(const struct tar_compare_params *params, struct source *borrows_source,
                                   struct tar_compare_result *ret);

#endif
