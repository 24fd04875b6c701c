/* SPDX-License-Identifier: GPL-3.0-or-later */
/* progress: how far a long run is, as a line on a terminal and as PROGRESS status lines.
 *
 * No thread of its own: the thread that works calls it with counts, and it speaks at most five times a second on the
 * terminal, once a second (and at the end of a phase) on the status descriptor. One thread at a time. */
#ifndef GPGTAR_PROGRESS_H
#define GPGTAR_PROGRESS_H

#include "report.h"
#include "status.h"

struct progress;

/* Nanoseconds that never go back; for tests. */
typedef uint64_t progress_clock(void *context);

/* REPORT and STATUS are borrowed and may be NULL. VISIBLE: also a line for the person, from two seconds on (a terminal
 * overwrites it; where stderr is none, a line every ten seconds). CLOCK NULL: the system's. NULL: out of core. */
struct progress *progress_new(struct report *report, struct status *status, bool visible, progress_clock *clock,
                              void *clock_context);
/* Takes the line away. Takes NULL. */
void progress_free(struct progress *progress);

/* All take NULL. Counting: FILES found so far. */
void progress_counting(struct progress *progress, uint64_t files);
/* Counting is over: what there is to do. TOTAL_BYTES 0: not known. */
void progress_start(struct progress *progress, uint64_t total_files, uint64_t total_bytes);
/* FILES and BYTES done so far. */
void progress_update(struct progress *progress, uint64_t files, uint64_t bytes);
/* The end of a good run: the last lines, in which CUR is TOTAL. */
void progress_finish(struct progress *progress);

#endif
