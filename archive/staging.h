/* SPDX-License-Identifier: GPL-3.0-or-later */
/* staging: a private folder in which an extraction grows until the verdict.
 *
 * It is called `.gpgtar-XXXXXX` (mode 0700), stands in the folder in which the result will stand, so on the same file
 * system, and holds `tree`, what is extracted. All work is relative
 * to descriptors and follows no link; only what was made here is removed. Its descriptor holds a lock (flock), by which
 * the leftover of a killed run is told from one at work. */
#ifndef ARCHIVE_STAGING_H
#define ARCHIVE_STAGING_H

#include "notice.h"
#include "stream/failure.h"

#include <stdbool.h>
#include <sys/types.h>

struct staging;

/* Makes the staging folder in TARGET_FD (borrowed until staging_free; AT_FDCWD: the current folder). TARGET_NAME is for
 * sentences (copied). */
MUST_CHECK gpg_error_t staging_new(int target_fd, const char *target_name, struct failure *failure,
                                   struct staging **ret);

/* The folder to extract into; owned by STAGING. */
int staging_fd(const struct staging *staging);

/* `.gpgtar-XXXXXX`, for a message about it. */
const char *staging_name(const struct staging *staging);

/* What to do with something that stands in the target under the name of a member. A folder and a folder always merge;
 * the one that stood there keeps its mode and owner. A folder that is not empty is never replaced by something else
 * (NOTICE_WRONG_KIND), nor one that may not be moved away. A link that stood there is never followed: it counts as an
 * existing file. */
enum staging_policy {
    STAGING_KEEP,     /* any conflict (NOTICE_EXISTS for each): GPG_ERR_EEXIST, and nothing was moved */
    STAGING_KEEP_OLD, /* --keep-old-files: keeps it, NOTICE_EXISTS each, moves the rest */
    STAGING_SKIP_OLD, /* --skip-old-files: keeps it, NOTICE_KEPT_OLD each */
    STAGING_REPLACE,  /* replaces it atomically */
};

enum staging_answer { STAGING_ANSWER_REPLACE, STAGING_ANSWER_KEEP, STAGING_ANSWER_QUIT };

struct staging_release_params {
    enum staging_policy policy;
    /* With STAGING_KEEP: asked about each conflict before anything is moved. KEEP counts as kept, QUIT gives
     * GPG_ERR_CANCELED and nothing was moved. NULL: nobody can be asked. NAME is the path below the target. */
    enum staging_answer (*ask)(void *context, const char *name);
    void *ask_context;
    const struct notices *notices; /* may be NULL */
    struct failure *failure;       /* may be NULL */
};

struct staging_release_result {
    uint64_t moved;     /* names taken; a folder moved as a whole counts once */
    uint64_t replaced;  /* of these */
    uint64_t conflicts; /* kept old ones, wrong kinds */
    uint64_t errors;    /* of the conflicts those that make exit 1 */
    uint64_t kept;      /* regular files of the archive that did not take their names, as the old ones were kept */
};

/* Moves all of the tree into the target, entry by entry (renameat2 without replacing, or an exchange), after a first
 * pass that looks for conflicts. The file system is synced before the moves and after them (an error of the disk that
 * shows only then counts). When a move fails in the middle, what was moved goes back and the code is returned; if
 * even that fails, NOTICE_RESTORE names each entry that stays. *RET is written on success and failure. */
MUST_CHECK gpg_error_t staging_release(struct staging *staging, const struct staging_release_params *params,
                                       struct staging_release_result *ret);

/* Gives the whole tree the name BASE_N_ in the target with the first free N = 1, 2 … (mode 0700), synced like
 * staging_release. The caller frees
 * *RET_NAME. */
MUST_CHECK gpg_error_t staging_release_as(struct staging *staging, const char *base, struct failure *failure,
                                          char **ret_name);

/* Removes the staging folder with all that is in it, whatever its modes and however deep. After a release it removes
 * what is left over. Takes NULL. An error (noted in FAILURE, may be NULL) leaves the rest there. */
gpg_error_t staging_discard(struct staging *staging, struct failure *failure);

/* staging_discard, then frees. Takes NULL. */
void staging_free(struct staging *staging);

/* Whether NAME is the name of a staging folder, or of a file that outfile has not given its name yet: creation leaves
 * them out. */
bool staging_is_name(const char *name);

/* Calls FOUND for each staging folder in DIRFD that a run of this user left behind (no process holds its lock), and
 * with REMOVES removes it before. RET_COUNT may be NULL. */
MUST_CHECK gpg_error_t staging_leftovers(int dirfd, bool removes, void (*found)(void *context, const char *name),
                                         void *context, struct failure *failure, uint64_t *ret_count);

#endif
