/* SPDX-License-Identifier: GPL-3.0-or-later */
/* hardlinks: the first name of each file that has several, until the last of them was seen. */
#ifndef ARCHIVE_HARDLINKS_H
#define ARCHIVE_HARDLINKS_H

#include "stream/bytes.h"

#include <gpg-error.h>
#include <sys/stat.h>

struct hardlinks;

struct hardlinks *hardlinks_new(void); /* NULL: out of core */
void hardlinks_free(struct hardlinks *links);
/* The name under which the file was added, NULL if it was not. Valid until the next call; counts as one link seen. */
const char *hardlinks_find(struct hardlinks *links, const struct stat *status);
/* Adds a file that was not found, of status->st_nlink links. */
MUST_CHECK gpg_error_t hardlinks_add(struct hardlinks *links, const struct stat *status, const char *name);

#endif
