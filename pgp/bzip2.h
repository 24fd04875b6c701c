/* SPDX-License-Identifier: GPL-3.0-or-later */
/* bzip2: OpenPGP compression algorithm 3, on libbz2. */
#ifndef PGP_BZIP2_H
#define PGP_BZIP2_H

#include "stream/run.h"
#include "stream/stream.h"

/* LEVEL 1 … 9, -1: 6 as gpg. WORKERS > 0: blocks of level × 100 000 bytes are compressed in parallel as streams of
 * their own only if readers (gpg, sq, rnp) take concatenated streams; else serially. */
MUST_CHECK gpg_error_t bzip2_sink_new(struct run *run, int level, unsigned workers, struct sink *takes_below,
                                      struct sink **ret);
MUST_CHECK gpg_error_t bunzip2_source_new(struct failure *failure, struct source *borrows_body, struct source **ret);

#endif
