/* SPDX-License-Identifier: GPL-3.0-or-later */
/* walk: names → one disk entry at a time.
 *
 * Names keep the order in which they were given; what is inside a folder comes sorted by bytes, a folder before its
 * content, so that the same tree gives the same sequence. Everything is relative to descriptors of folders opened
 * without following links below the names given (in a name given by the user, links in its leading folders are
 * followed, the last component is not). A folder that was replaced meanwhile is noticed, not entered.
 *
 * Memory: the sorted names of the folders on the path being walked (one arena each, length + 6 bytes a name).
 * Descriptors: at most WALK_OPEN_MAX folders stay open however deep the tree is, and one file; upper folders are
 * reopened with `..` and checked by device and inode. */
#ifndef ARCHIVE_WALK_H
#define ARCHIVE_WALK_H

#include "notice.h"
#include "select.h"
#include "snapshot.h"
#include "stream/run.h"

#include <sys/stat.h>

#define WALK_OPEN_MAX 32

/* The names to walk, in order. */
struct walk_names;

struct walk_names *walk_names_new(void); /* NULL: out of core */
void walk_names_free(struct walk_names *names);
/* NAME is borrowed. */
MUST_CHECK gpg_error_t walk_names_add(struct walk_names *names, const char *name);
/* The names of a list (-T), read as the walk goes: SEPARATOR is '\n' or '\0'; blanks and CR are part of a name; empty
 * entries are skipped; the last needs no separator. LABEL (borrowed) names the list in sentences. At most NAMES_MAX
 * bytes a name. */
MUST_CHECK gpg_error_t walk_names_add_list(struct walk_names *names, struct source *takes_list, char separator,
                                           const char *label);

struct walk_params {
    int base_fd;                 /* borrowed; the folder that names are relative to, or AT_FDCWD */
    struct walk_names *names;    /* borrowed, used up by the walk */
    const struct select *select; /* borrowed; NULL: everything */
    /* Whether it is the archive being written. NULL: nothing is. */
    bool (*is_output)(void *context, dev_t dev, ino_t ino);
    void *output_context;
    bool open_files;               /* the files will be read: opens those that it can */
    struct run *run;               /* whose threads read ahead after walk_cold; may be NULL: none do */
    struct snapshot *snapshot;     /* only what changed since; borrowed; NULL: everything */
    const struct notices *notices; /* may be NULL */
    struct failure *failure;       /* may be NULL */
};

/* An entry, valid until the next call. */
struct walk_entry {
    const char *path;   /* as the user would name it; for messages */
    const char *member; /* the name in the archive: relative, no `..`, no trailing slash; "." for a bare folder */
    int folder_fd;      /* borrowed; with LEAF the way to the file: openat(folder_fd, leaf, …) */
    const char *leaf;   /* a component, or for a name given the path from the base folder */
    bool follow;        /* LEAF is a symlink, and STAT is that of what it names (dereference) */
    struct stat stat;   /* of the open file where fd >= 0, else from fstatat */
    int fd;             /* of a folder or regular file that the walk has opened (borrowed), else -1 */
};

struct walk_counts {
    uint64_t named;   /* names given */
    uint64_t skipped; /* sockets, the output, excluded, too old */
    uint64_t flawed;  /* vanished, unreadable: each was reported */
};

struct walk;

MUST_CHECK gpg_error_t walk_new(const struct walk_params *params, struct walk **ret);
/* *RET_ENTRY = NULL at the end. Files that cannot be reached are reported and passed over; an error is one of the walk
 * itself (out of core, a name list that cannot be read). A name (after normalisation) that was given before is
 * passed over, and so is all of it below a folder given before. */
MUST_CHECK gpg_error_t walk_next(struct walk *walk, const struct walk_entry **ret_entry);
/* The entry had to be waited for, as it was not in the page cache: of the next few hundred names in folders, those of
 * files that will be read are read ahead (see stream/ahead.h). What is cached costs nothing, as long as this is called
 * only for what is not. */
void walk_cold(struct walk *walk);
const struct walk_counts *walk_counts(const struct walk *walk);
void walk_free(struct walk *walk);

#endif
