/* SPDX-License-Identifier: GPL-3.0-or-later */
/* select: which files go into an archive, in GNU tar's words.
 *
 * Anchoring as in GNU tar: a pattern may match from any component on (`proc` and `*.o` leave out usr/include/proc and
 * a/b.o), must match to the end of a component, `*` goes over `/`, and with a folder goes all that is in it. A pattern
 * that starts with `/` or `./` matches at the start only: `./proc` is the proc of the folder archived and never
 * usr/include/proc; `/proc` is for names given with a leading `/`. A trailing `/` of a pattern is dropped. Patterns
 * apply to names given by the user as well. */
#ifndef ARCHIVE_SELECT_H
#define ARCHIVE_SELECT_H

#include "stream/failure.h"
#include "stream/stream.h"

#include <sys/stat.h>
#include <time.h>

struct select;

struct select_options {
    bool one_file_system; /* a folder on another file system is stored without its content */
    bool no_recursion;    /* folders without their content */
    bool dereference;     /* store what a symlink names; a link that names nothing is stored as the link it is */
    bool exclude_caches;  /* of a folder with a valid CACHEDIR.TAG only the folder and the tag */
    bool newer;           /* only what changed after newer_than; folders always */
    struct timespec newer_than;
};

/* Takes everything until told otherwise. NULL: out of core. */
struct select *select_new(void);
void select_free(struct select *select);

/* The options, to be set before the first use. */
struct select_options *select_options(struct select *select);

/* --exclude. */
MUST_CHECK gpg_error_t select_exclude(struct select *select, const char *pattern);
/* --exclude-from: a pattern a line, empty lines dropped; NAME is for sentences. At most 1 MiB a line. */
MUST_CHECK gpg_error_t select_exclude_from(struct select *select, struct source *borrows_lines, const char *name,
                                           struct failure *failure);
/* --exclude-vcs. */
MUST_CHECK gpg_error_t select_exclude_vcs(struct select *select);

/* Whether the file at PATH (names_disk form) is left out for its name. SELECT may be NULL: nothing is. */
bool select_excludes(const struct select *select, const char *path);
/* Whether any is left out for its name. */
bool select_has_patterns(const struct select *select);
/* Whether the file is left out for its time. */
bool select_too_old(const struct select *select, const struct stat *status);
/* Never NULL: all off where SELECT is. */
const struct select_options *select_get(const struct select *select);

/* Whether the open folder FD holds a CACHEDIR.TAG with the signature of https://bford.info/cachedir/. */
bool select_is_cache(int fd);

#endif
