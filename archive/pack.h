/* SPDX-License-Identifier: GPL-3.0-or-later */
/* pack: a sink that compresses with zstd, through libarchive. The reverse of unpack. */
#ifndef ARCHIVE_PACK_H
#define ARCHIVE_PACK_H

#include "stream/failure.h"
#include "stream/stream.h"

#define PACK_LEVEL_MAX 22

/* LEVEL: 1 … PACK_LEVEL_MAX. THREADS: zstd's own workers, at least 1; the bytes do not depend on their number. Where
 * libarchive's zstd has no threads, the caller's does the work. finish finishes BELOW. FAILURE may be NULL.
 *
 * Memory of the whole program, measured with 2 and 4 workers: level 1: 35 and 40 MiB, level 2: 62 and 72, level 3: 117
 * and 135, level 9: 165 with 2; levels above 19 have windows of up to 128 MiB and are for machines that have it. */
MUST_CHECK gpg_error_t pack_sink_new(struct failure *failure, int level, unsigned threads, struct sink *takes_below,
                                     struct sink **ret);

#endif
