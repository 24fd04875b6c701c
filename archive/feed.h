/* SPDX-License-Identifier: GPL-3.0-or-later */
/* feed: a source as libarchive's client: its blocks are lent on without a copy, and when libarchive has finished, the
 * source stands exactly behind the last byte that libarchive used. */
#ifndef ARCHIVE_FEED_H
#define ARCHIVE_FEED_H

#include "stream/run.h"
#include "stream/stream.h"

#include <archive.h>

/* The unit of a tar. Blocks are lent in multiples of it, so that libarchive never has to put one together. */
#define FEED_UNIT 512

struct feed {
    struct source *from; /* borrowed */
    struct run *run;     /* borrowed, may be NULL: its cancel ends the reading */
    gpg_error_t error;   /* of the source or the run; libarchive itself only says that reading failed */
    bool ended;          /* the source has no more bytes */
    const uint8_t *lent; /* the block that is lent, LENT_N = 0: none */
    size_t lent_n;
    uint64_t lent_at; /* its position, counted from the start of this archive */
    bool gathered;    /* it stands in GATHER: the source lends in steps that are too small */
    size_t kept_at;   /* what of GATHER was not used by the last archive: KEPT_N bytes at KEPT_AT */
    size_t kept_n;
    uint8_t gather[FEED_UNIT];
};

void feed_init(struct feed *feed, struct source *borrows_from, struct run *run);

/* Lends the next block, after dropping the last one. *RET_N = 0 at the end. */
MUST_CHECK gpg_error_t feed_next(struct feed *feed, const uint8_t **ret_bytes, size_t *ret_n);

/* Opens ARCHIVE, which has its formats and filters, on FEED. SKIPS: content passed over is skipped (source_skip).
 * Returns libarchive's result. */
MUST_CHECK int feed_open(struct feed *feed, struct archive *archive, bool skips);

/* Whoever read is finished and has used POSITION bytes since the start: drops these and counts from 0 again. Must be
 * called before another reads from FEED. False: some of what was lent behind POSITION is lost, because libarchive put
 * it together with a later block. */
bool feed_settle(struct feed *feed, uint64_t position);

#endif
