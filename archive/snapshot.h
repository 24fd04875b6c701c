/* SPDX-License-Identifier: GPL-3.0-or-later */
/* snapshot: what an earlier archive has, so that the next one takes only what changed since.
 *
 * The file: "gpgtar snapshot 1\n", the time at which the walk began as "SECONDS.NANOSECONDS\n", then for each folder,
 * and each file that was given by name, "DEVICE INODE PATH\0". A file is unchanged if mtime and ctime are before that
 * time and its folder (or itself, where it was given by name) is in the snapshot with the same device, inode and path:
 * whatever is moved into a folder, or gets new content, gets a new ctime, but for files in a folder that was moved.
 *
 * Memory: 8 to 16 bytes for each folder, see nameset.h. */
#ifndef ARCHIVE_SNAPSHOT_H
#define ARCHIVE_SNAPSHOT_H

#include "stream/failure.h"
#include "stream/stream.h"

#include <stdbool.h>
#include <sys/stat.h>
#include <time.h>

struct snapshot;

/* OLD: the earlier snapshot, read to its end now; NULL: there is none, and everything is taken. NOW: of the clock by
 * which files are stamped (CLOCK_REALTIME_COARSE), before the first of them is looked at. NEW: where the next snapshot
 * is written while the walk goes; borrowed, not finished. NAME is for sentences. GPG_ERR_BAD_DATA: OLD is no snapshot.
 */
MUST_CHECK gpg_error_t snapshot_new(struct failure *failure, const char *name, struct source *borrows_old,
                                    const struct timespec *now, struct sink *borrows_new, struct snapshot **ret);
void snapshot_free(struct snapshot *snapshot); /* takes NULL */

/* Notes PATH and tells whether it is to be taken: always for folders, which come before what is in them. GIVEN: named
 * by the user, not found in a folder. */
MUST_CHECK gpg_error_t snapshot_look(struct snapshot *snapshot, const char *path, const struct stat *status, bool given,
                                     bool *ret_take);

#endif
