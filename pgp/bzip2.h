/* SPDX-License-Identifier: GPL-3.0-or-later */
/* bzip2: OpenPGP compression algorithm 3, on libbz2. */
#ifndef PGP_BZIP2_H
#define PGP_BZIP2_H

#include "stream/ring.h"
#include "stream/run.h"
#include "stream/stream.h"

/* LEVEL 1 … 9, -1: 6 as gpg. Pieces of level × 80 000 bytes are compressed on their own, by WORKERS in parallel (0: no
 * threads, RUN may be NULL), and joined to one ordinary bzip2 stream, because gpg reads only one; the bytes do not
 * depend on the workers. OBSERVER (NULL: none) sees what is written. Memory: that of a block job (ring.h) with twice
 * the piece, and level × 0.8 MB for each worker.
 */
MUST_CHECK gpg_error_t bzip2_sink_new(struct run *run, int level, unsigned workers,
                                      const struct block_observer *observer, struct sink *takes_below,
                                      struct sink **ret);

/* Expands BODY (borrowed) as it is pulled; finish reads to the end and does not finish BODY. One bzip2 stream, as gpg
 * reads: anything behind it, damage and wrong checksums are GPG_ERR_COMPR_FAILED, an early end is GPG_ERR_TRUNCATED. */
MUST_CHECK gpg_error_t bunzip2_source_new(struct failure *failure, struct source *borrows_body, struct source **ret);

#endif
