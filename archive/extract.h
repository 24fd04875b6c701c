/* SPDX-License-Identifier: GPL-3.0-or-later */
/* extract: tar → disk, below one folder and never outside of it.
 *
 * The folder is a staging folder: empty at the start, closed to others. Each member is made new (O_EXCL) in a folder
 * that was reached without a link; modes and times of folders come last. A hostile member is refused by itself with a
 * notice, the rest is extracted:
 *   NOTICE_BAD_NAME      `..`, empty, over-long
 *   NOTICE_BAD_SYMLINK   absolute or leading out, also by way of other links in the archive
 *   NOTICE_BAD_HARDLINK  to anything but a file extracted before
 *   NOTICE_THROUGH_LINK  a path through a link (even a harmless one)
 *   NOTICE_WRONG_KIND    a path through a file; anything over a folder that is not empty
 *   NOTICE_NEEDS_ROOT    devices
 *   NOTICE_SUSPICIOUS    of a kind unknown
 * A member given twice: the later replaces the earlier (unlink, then new: never written through). */
#ifndef ARCHIVE_EXTRACT_H
#define ARCHIVE_EXTRACT_H

#include "tar_read.h"

struct tar_extract_params {
    struct tar_read_params read;
    int root_fd;           /* borrowed: staging_fd() */
    mode_t umask;          /* of the process; taken off modes unless same_permissions */
    bool same_permissions; /* -p: modes as they are; as root also setuid, setgid, sticky, security.*, trusted.* */
    bool same_owner;       /* owners from the archive, by name, then by number; the default for root only */
    bool numeric_owner;    /* by number only */
    bool no_xattrs;
    bool no_acls;
    bool outside_links; /* make symlinks that lead out of the folder: a backup of one's own; paths through links are
                           refused all the same */
};

/* The fields of the status line GPGTAR_EXTRACT, and what else a summary may say. */
struct tar_extract_result {
    uint64_t extracted; /* regular files written */
    uint64_t skipped;   /* the sum of the five below */
    uint64_t badname;
    uint64_t suspicious; /* through a link, wrong kind, unknown kind */
    uint64_t symlink;
    uint64_t hardlink;
    uint64_t other;    /* devices without root, files that could not be made */
    uint64_t made;     /* members of any kind made */
    uint64_t bytes;    /* content written */
    uint64_t restores; /* NOTICE_RESTORE given: exit 1 */
    struct tar_read_counts read;
};

/* Extracts all that is wanted below PARAMS->root_fd. 0: the archive was read to the end; exit 1 if skipped, restores or
 * read.flaws is not 0. An error is fatal (see tar_read.h; also GPG_ERR_ENOSPC, GPG_ERR_EIO … of the disk): discard the
 * folder. *RET is written on success and failure. The source is not finished. */
MUST_CHECK gpg_error_t tar_extract(const struct tar_extract_params *params, struct source *borrows_source,
                                   struct tar_extract_result *ret);

/* -O: the content of the regular files wanted, one after the other, holes as zeros (they count for
 * max_size here). extracted, bytes and read of *RET are set. Neither SOURCE nor SINK is finished. */
MUST_CHECK gpg_error_t tar_extract_to_sink(const struct tar_read_params *params, struct source *borrows_source,
                                           struct sink *borrows_sink, struct tar_extract_result *ret);

#endif
