/* SPDX-License-Identifier: GPL-3.0-or-later */
/* beneath: folders below a descriptor, reached without ever following a link. */
#ifndef ARCHIVE_BENEATH_H
#define ARCHIVE_BENEATH_H

#include "stream/bytes.h"

#include <stdbool.h>

/* The folder PATH (plain: no `..`, no leading or double slash; "" or ".": ROOT itself; any length) below ROOT, opened
 * with FLAGS (O_PATH or O_RDONLY; the rest is added). -1 and errno: ELOOP where a component is a link, ENOTDIR where
 * one is anything else but a folder, ENOENT. */
MUST_CHECK int beneath_folder(int root, const char *path, int flags);

/* The folder that holds PATH; *RET_LEAF is the last component, inside PATH. */
MUST_CHECK int beneath_parent(int root, const char *path, int flags, const char **ret_leaf);

/* Whether the link text TARGET has a `..` behind another component. That may be a link itself: where this leads is not
 * to be seen from the text. */
MUST_CHECK bool beneath_climbs(const char *target);

/* Whether following the link PATH below ROOT, and links on its way, leaves ROOT, or the kernel cannot say (no openat2).
 * What dangles stays inside. */
MUST_CHECK bool beneath_escapes(int root, const char *path);

#endif
