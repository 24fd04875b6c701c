/* SPDX-License-Identifier: GPL-3.0-or-later */
/* prelude: the first bytes of a stream, made at the same time as what stands behind them. */
#ifndef STREAM_PRELUDE_H
#define STREAM_PRELUDE_H

#include "run.h"
#include "stream.h"

/* A sink that has MAKE write the first bytes, at most LIMIT of them, and puts before what is written here. MAKE runs on
 * a thread of its own where RUN keeps more than one processor busy; the first write or finish waits for it. Else (RUN
 * NULL too) it runs before this returns, and so does its error.
 *
 * MAKE writes to memory and finishes nothing; what it reads through CONTEXT (borrowed) must not change before the first
 * write has returned, or the sink was freed. Its error is returned by that write or by finish, and cancels the run, as
 * that of any thread of a run does. Freeing waits for MAKE, which nobody interrupts.
 *
 * TAKES_BELOW on success and failure. */
MUST_CHECK gpg_error_t prelude_sink_new(struct run *run, gpg_error_t (*make)(void *context, struct sink *to),
                                        void *context, size_t limit, struct sink *takes_below, struct sink **ret);

#endif
