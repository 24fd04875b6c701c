/* SPDX-License-Identifier: GPL-3.0-or-later */
/* tar_write: folders and files → the bytes of a tar in a sink.
 *
 * ustar where that can say everything, pax extended headers for a member that needs them, GNU 1.0 sparse members in
 * pax; no GNU long-name records, no global header, no current time: the same tree gives the same bytes. What is kept:
 * type, mode with setuid, setgid and sticky, owner with names, mtime in nanoseconds, symlinks, hard links, device
 * numbers, holes, xattrs (SCHILY.xattr.*, with security.capability), POSIX ACLs (SCHILY.acl.access and .default, as
 * star, GNU tar and libarchive read them). atime and ctime are not kept. */
#ifndef ARCHIVE_TAR_WRITE_H
#define ARCHIVE_TAR_WRITE_H

#include "stream/run.h"
#include "walk.h"

#include <stdatomic.h>

/* Read by another thread while the archive is made; only the one that makes it stores. */
struct tar_progress {
    _Atomic uint64_t files; /* members begun */
    _Atomic uint64_t bytes; /* content of regular files written, holes included */
};

struct tar_create_params {
    struct walk_params walk;
    bool numeric_owner; /* no user and group names */
    bool portable;      /* for GnuPG's gpgtar as reader: hard links as full copies, no sparse members */
    bool no_xattrs;     /* neither xattrs nor capabilities */
    bool no_acls;
    struct tar_progress *progress; /* may be NULL */
    struct run *run;               /* its cancel ends the work with its code; may be NULL */
};

struct tar_create_result {
    uint64_t members; /* in the archive, of any type */
    uint64_t bytes;   /* content of regular files, holes included */
    uint64_t skipped; /* sockets, the output, excluded, too old: nothing is wrong */
    uint64_t flawed;  /* reported: unreadable, vanished, shrank, grew, replaced, metadata lost … : exit 1 */
    uint64_t named;   /* names given; 0: nothing was asked for */
};

/* Writes all members and the end marker to SINK, which is not finished. members = 0 in the result: nothing could be
 * archived, only the end marker was written; the caller decides. *RET is written on success and failure. An error
 * is fatal (the sink failed, out of core, a name list that cannot be read): SINK then holds half an archive and must
 * not be finished. Runs on any thread; changes neither working directory nor umask. */
MUST_CHECK gpg_error_t tar_create(const struct tar_create_params *params, struct sink *borrows_sink,
                                  struct tar_create_result *ret);

/* Walks as tar_create would and counts members and bytes of regular files, for a total; opens no file and reports
 * nothing (notices are ignored). *RET is written on success. The names are used up. */
MUST_CHECK gpg_error_t tar_create_scan(const struct tar_create_params *params, struct tar_create_result *ret);

#endif
