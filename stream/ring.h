/* SPDX-License-Identifier: GPL-3.0-or-later */
/* ring: blocks of fixed size on their way between two streams, looked at and worked on by several threads, or by one.
 *
 * A block job cuts a stream into blocks, transforms each on its own (in any order, on any thread) and gives them out in
 * order. Deflate, AEAD chunks and a bare thread boundary are all such jobs. The bytes that come out do not depend on
 * the number of workers. */
#ifndef STREAM_RING_H
#define STREAM_RING_H

#include "run.h"
#include "stream.h"

struct block {
    uint64_t index;    /* 0, 1, … in stream order */
    const uint8_t *in; /* N_IN bytes */
    size_t n_in;       /* block_size for all but the last, which has more than HOLD and up to block_size + hold, or less
                          where the whole stream is shorter; 0 only where it is empty (index 0) */
    bool last;         /* no block follows */
    uint8_t *out;      /* room for out_size bytes; where the job is in place or has no work, the same bytes as IN */
    size_t n_out;      /* the work sets it */
    uint64_t user[2];  /* from work to in_order and emit: a checksum, a length */
};

/* Looks at the bytes of each block in stream order before the work on it, at the same time as other blocks are worked
 * on where there are threads; of a block it may read IN and n_in. A block may come in two parts where sink_settle was
 * called. For digests of what goes by, taken where it lies. */
struct block_observer {
    void *context; /* borrowed */
    void (*look)(void *context, const struct block *block);
};

#define BLOCK_OBSERVERS_MAX 2

struct block_job {
    void *context;     /* borrowed; handed to the functions below */
    size_t block_size; /* bytes in every block but the last */
    size_t hold;       /* a block is closed only when more than HOLD bytes follow it, so that the last block has up to
                          block_size + hold bytes: for a trailer that must not be torn (a last AEAD tag) */
    size_t out_size;   /* capacity of OUT; 0: the work is done in place and never grows a block */
    bool in_place;     /* the work is done in place also where OUT is larger: half the memory to go through */
    struct block_observer observer[BLOCK_OBSERVERS_MAX]; /* those with a function look; the work comes after all */
    /* Transforms a block. WORKER, 0 … workers - 1, numbers those that work at the same time, so that each can have a
     * context of its own; a single worker gets the blocks in stream order. NULL: no work, a bare thread boundary. */
    gpg_error_t (*work)(void *context, unsigned worker, struct block *block);
    /* Optional, for sinks that work in place: moves N bytes that are written from FROM to their place, AT bytes behind
     * the begin of the block IN, and may do a part of the work on them on the way. Only where the caller does the work,
     * as worker 0, which he does for block 0 at least, where nobody observes and HOLD is 0; the work gets the block
     * afterwards as any other. Bytes that were put into room
     * lent do not come here. */
    gpg_error_t (*absorb)(void *context, uint64_t index, uint8_t *in, size_t at, const uint8_t *from, size_t n);
    /* Optional: called for each block in stream order after its work, by who takes blocks out; may change
     * OUT and n_out within out_size. */
    gpg_error_t (*in_order)(void *context, struct block *block);
    /* Optional, for sinks: writes the block to BELOW, in stream order, where OUT alone is not what is to be written. */
    gpg_error_t (*emit)(void *context, const struct block *block, struct sink *below);
};

/* All three take their stream on success and failure, as `takes_` says. WORKERS = 0: no threads at all, RUN may be
 * NULL, the work is done by the caller's thread as worker 0. Memory: slots × (block_size + hold + out_size), with slots
 * = 2·workers + 6 when threaded and 1 otherwise. A job without work and WORKERS = 0 is a plain buffer of block_size.
 *
 * Threads (WORKERS > 0): helpers, as many as run_claim_helpers gives for what can be done at the same time: each
 * observer, as many blocks as WORKERS in work, moving blocks to or from the stream below. The caller, where he would
 * have to wait, does one of these things instead. So observers, work and the stream below are used by different
 * threads, but each by one at a time, and never by two with the same WORKER. Helpers are started with the second block:
 * what fits into one is not worth a thread (five take 1 ms to start, measured). Without helpers the caller does
 * everything. The reader of a source may help by reading on below: a block that became ready meanwhile comes after it.
 *
 * Failures: of the blocks that fail, the first in stream order counts; its bytes and all later ones go nowhere. Freeing
 * an unfinished stage stops its threads, also where they wait in the stream below, and leaves the rest of the run
 * alone. When the run is cancelled by others, every call returns GPG_ERR_CANCELED; run_cancelled knows why.
 *
 * Sink: write gathers into blocks. finish hands over the last block (also for an empty stream), waits until everything
 * has been written below, finishes the sink below and returns its result. A failure of a block or of the sink below is
 * returned by a later write or by finish, and cancels the run where there are helpers. */
MUST_CHECK gpg_error_t block_sink_new(struct run *run, const struct block_job *job, unsigned workers,
                                      struct sink *takes_below, struct sink **ret);

/* Source: lends transformed blocks. The source below is this one's until the end or an error; bytes
 * of a block whose work failed are never lent. A failure, also of the source below, is given out in its turn, after the
 * blocks before it, and cancels nothing: the reader decides. finish reads to the end, joins the threads, then finishes
 * the source below. BORROWS_BELOW: the source below is only used until the end was reached (or the block source is
 * freed); it is neither finished nor freed. Where it was freed before the end, the source below was read ahead by an
 * unknown length and may be left with GPG_ERR_CANCELED. */
MUST_CHECK gpg_error_t block_source_new(struct run *run, const struct block_job *job, unsigned workers,
                                        struct source *takes_below, struct source **ret);
MUST_CHECK gpg_error_t block_source_borrow(struct run *run, const struct block_job *job, unsigned workers,
                                           struct source *borrows_below, struct source **ret);

#endif
