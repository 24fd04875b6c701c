/* SPDX-License-Identifier: GPL-3.0-or-later */
/* incremental: the snapshot file of --listed-incremental: the old one, and the new one that takes its name when the
 * archive has its own. */
#ifndef GPGTAR_INCREMENTAL_H
#define GPGTAR_INCREMENTAL_H

#include "archive/snapshot.h"
#include "program.h"

#include <sys/types.h>

struct incremental;

/* The options name the file; it is opened as the shell would, not below -C. With --dry-run no new one is made. */
MUST_CHECK gpg_error_t incremental_new(const struct program *program, struct incremental **ret);
/* The functions below take NULL. */
struct snapshot *incremental_snapshot(struct incremental *incremental);
/* Whether it is the old or the new snapshot file: neither belongs into the archive. */
bool incremental_is_file(const struct incremental *incremental, dev_t dev, ino_t ino);
MUST_CHECK gpg_error_t incremental_commit(struct incremental *incremental);
void incremental_free(struct incremental *incremental);

#endif
