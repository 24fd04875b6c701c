/* SPDX-License-Identifier: GPL-3.0-or-later */
/* run: the threads of one operation, its first failure, its cancel and its wake pipe.
 *
 * The only place that makes threads. When a thread of the run fails, every ring of the run is cancelled, so that every
 * blocked call returns GPG_ERR_CANCELED, and descriptors that wait are woken by the pipe. */
#ifndef STREAM_RUN_H
#define STREAM_RUN_H

#include "failure.h"

#include <stdbool.h>

struct run;
struct run_thread;

/* NULL: out of core or no descriptors. The wake pipe is close-on-exec and non-blocking. */
struct run *run_new(void);
/* All threads must have been joined. Takes NULL. */
void run_free(struct run *run);

/* Where the filters of this run note their failures; borrowed. */
struct failure *run_failure(struct run *run);

/* Starts a thread named NAME (at most 15 bytes) that runs BODY(ARG). A result other than 0 ends the run as run_cancel
 * does. Signals are blocked in it: the main thread takes them. */
MUST_CHECK gpg_error_t run_start(struct run *run, const char *name, gpg_error_t (*body)(void *arg), void *arg,
                                 struct run_thread **ret_thread);
/* Waits for THREAD, frees it and returns what its body returned. Takes NULL (0). */
gpg_error_t run_join(struct run *run, struct run_thread *thread);

/* Cancels the run with CODE (first one stands): all registered cancel hooks are called, the wake pipe becomes readable.
 */
void run_cancel(struct run *run, gpg_error_t code);
/* The code given to the first run_cancel, 0 if there was none. */
gpg_error_t run_cancelled(struct run *run);

/* The reading end of the wake pipe: readable from the first cancel on. */
int run_wake_fd(struct run *run);
/* For a signal handler: async-signal-safe; makes the wake pipe readable. Whoever polls finds run_cancelled, so the
 * handler sets CODE first. */
void run_interrupt(struct run *run, gpg_error_t code);

/* A hook called (at most once, from any thread) on cancel; at once if the run is cancelled already. HOOK must only set
 * a flag and signal. Remove before what it points to goes away. */
struct run_hook {
    void (*cancel)(struct run_hook *hook);
    struct run_hook *next;
};
void run_hook_add(struct run *run, struct run_hook *hook);
void run_hook_remove(struct run *run, struct run_hook *hook);

#endif
