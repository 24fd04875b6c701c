/* SPDX-License-Identifier: GPL-3.0-or-later */
/* signals: INT, TERM and HUP end the run in good order, a second one at once. SIGPIPE is ignored, so that a closed
 * pipe is an error of write. Once per process: handlers have nothing but globals. */
#ifndef GPGTAR_SIGNALS_H
#define GPGTAR_SIGNALS_H

#include "stream/run.h"

/* Installs the handlers (a signal that was ignored when the program started, as nohup does, stays ignored). System
 * calls that wait are interrupted (no SA_RESTART). */
MUST_CHECK gpg_error_t signals_install(void);
/* A signal from now on calls run_interrupt(RUN, GPG_ERR_CANCELED); one that came before does so at once. NULL: no run.
 * Set to NULL before RUN is freed. */
void signals_watch(struct run *run);
/* The number of the first signal, 0: none. */
int signals_caught(void);
/* Ends the process as the caught signal would have (a shell sees 128+N). Returns only if no signal was caught. Call it
 * after everything has been cleaned up. */
void signals_reraise(void);

#endif
