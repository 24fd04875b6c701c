/* SPDX-License-Identifier: GPL-3.0-or-later */
/* list: one line a member, in the columns of GnuPG's gpgtar; and verify, which only reads. */
#ifndef ARCHIVE_LIST_H
#define ARCHIVE_LIST_H

#include "tar_read.h"

struct tar_list_params {
    struct tar_read_params read;
    bool null; /* names raw, each line ended by NUL; else names escaped and lines ended by a newline */
};

struct tar_list_result {
    uint64_t members; /* listed */
    uint64_t bytes;   /* sum of their sizes */
    struct tar_read_counts read;
};

/* `TYPE+MODE 0 UID/GID SIZE(12) YYYY-MM-DD HH:MM:SS NAME[ -> TARGET]` in UTC; TYPE is - d l h c b f or ?; a folder's
 * name ends with a slash. SINK gets whole lines and is not finished. *RET is written on success and failure. Errors:
 * see tar_read.h. */
MUST_CHECK gpg_error_t tar_list(const struct tar_list_params *params, struct source *borrows_source,
                                struct sink *borrows_sink, struct tar_list_result *ret);

/* Reads every member and its content and writes nothing: the structure of the tar is sound if the result is 0 and
 * read.flaws too. Names that no target can take are flaws (NOTICE_BAD_NAME, NOTICE_BAD_HARDLINK);
 * where a symlink leads is the business of who extracts. */
MUST_CHECK gpg_error_t tar_verify(const struct tar_read_params *params, struct source *borrows_source,
                                  struct tar_list_result *ret);

#endif
