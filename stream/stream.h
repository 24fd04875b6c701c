/* SPDX-License-Identifier: GPL-3.0-or-later */
/* stream: the one interface through which bytes travel. Push on the way out (sink), pull on the way in (source).
 *
 * Memory never crosses a stream, only bytes do. One thread at a time per object. The functions below keep the contract
 * that an implementation would otherwise have to keep itself: an error sticks, finish runs at most once and never
 * after an error, free takes NULL. */
#ifndef STREAM_STREAM_H
#define STREAM_STREAM_H

#include "bytes.h"

#include <gpg-error.h>
#include <stdbool.h>

struct sink;
struct source;

struct sink_ops {
    /* Takes all N bytes (N > 0) or returns an error; keeps no pointer; may block. */
    gpg_error_t (*write)(struct sink *sink, const void *bytes, size_t n);
    /* Optional, both or none: room lends at least one byte of the buffer that write would copy to, until the next call
     * on SINK; filled takes the first N bytes of it (N > 0) as if they had been written. For who would otherwise read
     * into a buffer of his own. */
    gpg_error_t (*room)(struct sink *sink, void **ret_room, size_t *ret_n);
    gpg_error_t (*filled)(struct sink *sink, size_t n);
    /* Where there are block observers (ring.h) at or below SINK: returns when they have seen all that was written. */
    gpg_error_t (*settle)(struct sink *sink);
    /* No more bytes follow: writes trailers, then finishes the sink below. */
    gpg_error_t (*finish)(struct sink *sink);
    /* Frees SINK and what is below it; writes nothing, never fails. */
    void (*free)(struct sink *sink);
};

struct source_ops {
    /* Lends at least one byte until the next call on SOURCE; *RET_N = 0 is the end, and only where the format may end.
     */
    gpg_error_t (*peek)(struct source *source, const void **ret_bytes, size_t *ret_n);
    /* Drops N bytes of those lent by the last peek. */
    void (*consume)(struct source *source, size_t n);
    /* Optional: as read(2), 1 … N bytes straight into TO, *RET_GOT = 0 only at the end. For who would otherwise copy
     * what peek lends. */
    gpg_error_t (*read)(struct source *source, void *to, size_t n, size_t *ret_got);
    /* Optional: drops exactly N bytes, perhaps by seeking; the end before that is an error. */
    gpg_error_t (*skip)(struct source *source, uint64_t n);
    /* Reads to the very end, checks all there is to check, finishes the source below, and returns the verdict. */
    gpg_error_t (*finish)(struct source *source);
    void (*free)(struct source *source);
};

/* The first member of every implementation, which finds itself with CONTAINER. Fields after ops belong to stream.c. */
struct sink {
    const struct sink_ops *ops;
    gpg_error_t error; /* the first error; every later call returns it */
    bool finished;
};

struct source {
    const struct source_ops *ops;
    gpg_error_t error;
    bool finished;
    bool skipped; /* some bytes were never read: what finish returns is no verdict on the whole */
};

void sink_init(struct sink *sink, const struct sink_ops *ops);
void source_init(struct source *source, const struct source_ops *ops);

/* N = 0 does nothing. After finish: GPG_ERR_INV_STATE. */
MUST_CHECK gpg_error_t sink_write(struct sink *sink, const void *bytes, size_t n);
/* *RET_N = 0 where SINK lends nothing: it is written to then. */
MUST_CHECK gpg_error_t sink_room(struct sink *sink, void **ret_room, size_t *ret_n);
/* The first N bytes of what sink_room lent last, if nothing else was called in between. N = 0 does nothing. */
MUST_CHECK gpg_error_t sink_filled(struct sink *sink, size_t n);
/* For who needs what the observers below made of what was written so far. GPG_ERR_NOT_IMPLEMENTED: there are none. */
MUST_CHECK gpg_error_t sink_settle(struct sink *sink);
/* A second call does nothing and returns what the first did. */
MUST_CHECK gpg_error_t sink_finish(struct sink *sink);
void sink_free(struct sink *sink);

/* An error stays an error, but bytes lent before it were good as far as the format can tell at that point. After
 * finish: GPG_ERR_INV_STATE. */
MUST_CHECK gpg_error_t source_peek(struct source *source, const void **ret_bytes, size_t *ret_n);
void source_consume(struct source *source, size_t n);
/* Reads and drops where the implementation has no skip of its own (and only then leaves `skipped` as it was).
 * GPG_ERR_TRUNCATED if the end comes first. */
MUST_CHECK gpg_error_t source_skip(struct source *source, uint64_t n);
/* A second call does nothing and returns what the first did. */
MUST_CHECK gpg_error_t source_finish(struct source *source);
void source_free(struct source *source);

/* Reads and drops to the end. For a source's own finish, whose verdict comes with the last byte; so it works on what is
 * being finished, and only through SOURCE's own operations. */
MUST_CHECK gpg_error_t source_drain(struct source *source);

/* Reads up to N bytes, fewer only at the end. *RET_GOT is written on success and failure. */
MUST_CHECK gpg_error_t source_read(struct source *source, void *to, size_t n, size_t *ret_got);

/* Moves everything from SOURCE to SINK; finishes neither. RET_MOVED may be NULL. */
MUST_CHECK gpg_error_t pump(struct source *source, struct sink *sink, uint64_t *ret_moved);

/* A source over N bytes at BYTES (borrowed), lent at most STEP bytes at a time (0: all at once). NULL: out of core. */
struct source *memory_source_new(const void *bytes, size_t n, size_t step);

/* A sink that gathers at most LIMIT bytes, more is GPG_ERR_TOO_LARGE. NULL: out of core. */
struct sink *memory_sink_new(size_t limit);
/* What it gathered so far, borrowed until the next call on SINK. */
const uint8_t *memory_sink_bytes(struct sink *sink, size_t *ret_n);

#endif
