/* SPDX-License-Identifier: GPL-3.0-or-later */
/* restore: owner, mode, xattrs, ACLs and times of what was extracted. */
#ifndef ARCHIVE_RESTORE_H
#define ARCHIVE_RESTORE_H

#include "extract.h"

/* The format of the system.posix_acl_* xattrs, NULL: none. */
struct restore_acl {
    uint8_t *bytes; /* malloced */
    size_t n;
};

struct restore {
    const struct tar_extract_params *params;
    bool privileged; /* the user is root */
    uid_t uid;       /* what a new file gets by itself */
    gid_t gid;
    uint64_t problems; /* NOTICE_RESTORE given */
    /* The last names asked for: archives mostly have one. */
    char uname[256], gname[256];
    uid_t uname_uid;
    gid_t gname_gid;
};

/* A folder's mode and time are set when nothing more is put into it. */
struct restore_folder {
    char *path; /* malloced */
    size_t order;
    mode_t mode;
    bool has_mtime;
    struct timespec mtime;
    struct restore_acl access, inherited;
};

MUST_CHECK gpg_error_t restore_init(struct restore *restore, const struct tar_extract_params *params);

/* The mode that MEMBER shall have. Reports what is left out of it. */
mode_t restore_mode(struct restore *restore, const struct tar_member *member);

/* Whether a new file of MEMBER, with MODE from restore_mode, needs more than its mode in open() and its time. */
bool restore_is_late(struct restore *restore, const struct tar_member *member, mode_t mode);

/* The file FD, made for MEMBER; all that cannot be set is reported. LATE: owner, xattrs, ACL and MODE too, else the
 * time only. */
void restore_file(struct restore *restore, const struct tar_member *member, int fd, mode_t mode, bool late);

/* LEAF in FOLDER (a link, FIFO or device), which only we can write to. */
void restore_other(struct restore *restore, const struct tar_member *member, int folder, const char *leaf);

/* Owner and xattrs of a folder that was made, and what is to come at the end: *RET, to be freed. */
MUST_CHECK gpg_error_t restore_folder_begin(struct restore *restore, const struct tar_member *member, int parent,
                                            const char *leaf, const char *path, struct restore_folder *ret);
/* What came last of FOLDER. Does nothing if something else stands there by now. */
void restore_folder_end(struct restore *restore, const struct restore_folder *folder);
void restore_folder_free(struct restore_folder *folder);

#endif
