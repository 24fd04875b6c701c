/* SPDX-License-Identifier: GPL-3.0-or-later */
/* outfile: a file that has its name only when it is whole.
 *
 * A regular file is written unnamed (O_TMPFILE) where the file system can, else under a temporary name in the same
 * folder; outfile_commit syncs file and folder and gives it its name. Anything else that stands under the name (FIFO,
 * device, socket's end) is written to and never unlinked. A symlink stays, and the file it names is what is made or
 * replaced. /dev/stdout and other links of procfs to an open file are that open file, written on from where it stands.
 * Nothing is removed that this run did not make. */
#ifndef STREAM_OUTFILE_H
#define STREAM_OUTFILE_H

#include "run.h"
#include "stream.h"

struct outfile;

enum outfile_exists {
    OUTFILE_NEW,     /* fails with GPG_ERR_EEXIST when a regular file or a folder has the name */
    OUTFILE_REPLACE, /* replaces a regular file atomically at the commit; a folder is GPG_ERR_EISDIR */
};

/* Opens NAME relative to the folder DIRFD (AT_FDCWD: the current one). MODE is 0600 or 0666 (umask applies). The
 * existence of the name is checked now and, without OUTFILE_REPLACE, again atomically at the commit. Waits for the
 * reader of a FIFO until the run is cancelled. RUN may be NULL. */
MUST_CHECK gpg_error_t outfile_open(struct run *run, int dirfd, const char *name, mode_t mode,
                                    enum outfile_exists exists, struct outfile **ret);

/* The sink that writes to it, owned by the caller; its finish does not commit. Call once. */
MUST_CHECK gpg_error_t outfile_sink(struct outfile *outfile, struct sink **ret);

/* fsync, name, fsync of the folder; for what is no regular file only the fsync, where it can. GPG_ERR_CANCELED, and no
 * name, when the run was cancelled. Before it returns 0 the name does not exist, or is the old file. */
MUST_CHECK gpg_error_t outfile_commit(struct outfile *outfile);

/* Whether ST_DEV and ST_INO are those of the file being written or of the one it will replace: it must not be archived
 * into itself. */
bool outfile_is(const struct outfile *outfile, dev_t dev, ino_t ino);

/* Without a commit before it, leaves everything as it was before outfile_open. Takes NULL. */
void outfile_free(struct outfile *outfile);

#endif
