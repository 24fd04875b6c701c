/* SPDX-License-Identifier: GPL-3.0-or-later */
/* run: the threads of one operation, its first failure, its cancel and its wake pipe.
 *
 * The only place that makes threads. When a thread of the run fails, every ring of the run is cancelled, so that every
 * blocked call returns GPG_ERR_CANCELED, and descriptors that wait are woken by the pipe. The code and the sentence of
 * what went wrong are in run_cancelled and run_failure. */
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

/* How many processors the threads of this run are to keep busy, 1 at least: those that this process may use where
 * nothing else was said. To be set before the first ring of the run. */
unsigned run_processors(const struct run *run);
void run_set_processors(struct run *run, unsigned n);

/* How many threads a stage that wants WANTED may start: with the caller and those that other stages claimed there are
 * no more than processors, or two where there is only one, because a thread that does what has to be done in order
 * should not have to wait for a processor (10 to 30 % of the time, measured). Where there are two or more to give, one
 * is left for the next stage that asks. May be 0. */
unsigned run_claim_helpers(struct run *run, unsigned wanted);
void run_return_helpers(struct run *run, unsigned n);

/* Where the filters of this run note their failures; borrowed. RUN may be NULL: NULL, which fail() accepts. */
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
/* Cancels what THREAD waits for, and nothing else: in that thread, and only there, run_cancelled gives GPG_ERR_CANCELED
 * from now on. For who gives up a stage of its own and must join its threads. The thread's result no longer ends the
 * run. */
void run_thread_cancel(struct run *run, struct run_thread *thread);
/* The code given to the first run_cancel or run_interrupt, 0 if there was none. Cheap; from any thread. RUN may be NULL
 * (0). */
gpg_error_t run_cancelled(struct run *run);

/* Waits until FD is ready for EVENTS of poll (or has failed or was hung up). GPG_ERR_CANCELED: the run, or the calling
 * thread, was cancelled before or meanwhile. RUN may be NULL: then only FD ends the wait. */
MUST_CHECK gpg_error_t run_wait(struct run *run, int fd, short events);

/* The reading end of the wake pipe: readable from the first cancel of the run on. Never read from it. */
int run_wake_fd(struct run *run);
/* For a signal handler: async-signal-safe; sets the code as run_cancel does and makes the wake pipe readable. The hooks
 * are called by the thread that notices first. */
void run_interrupt(struct run *run, gpg_error_t code);

/* A hook called (perhaps more than once, from any thread) on cancel, at once if the run is cancelled already. It only
 * makes waiters look at run_cancelled again: lock, broadcast, unlock. So its lock is never held while one of the
 * functions here is called, run_cancelled apart. Remove before what it points to goes away. */
struct run_hook {
    void (*cancel)(struct run_hook *hook);
    struct run_hook *next;
};
void run_hook_add(struct run *run, struct run_hook *hook);
void run_hook_remove(struct run *run, struct run_hook *hook);

#endif
