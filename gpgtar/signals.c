/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "signals.h"

#include "stream/bytes.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

static const int watched[] = {SIGINT, SIGTERM, SIGHUP};

static volatile sig_atomic_t caught;
/* A lock-free pointer is async-signal-safe to read, C11 7.14.1.1. */
static struct run *_Atomic watching;

static void handle(int number)
{
    const int saved = errno;
    if (caught && number == SIGINT)
        _exit(128 + number);
    if (!caught)
        caught = number;
    struct run *run = atomic_load(&watching);
    if (run)
        run_interrupt(run, gpg_error(GPG_ERR_CANCELED));
    errno = saved;
}

gpg_error_t signals_install(void)
{
    struct sigaction action = {.sa_handler = handle}, old;
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < ARRAY_SIZE(watched); i++) {
        if (sigaction(watched[i], NULL, &old))
            return gpg_error_from_syserror();
        if (old.sa_handler != SIG_IGN && sigaction(watched[i], &action, NULL))
            return gpg_error_from_syserror();
    }
    /* A pipe that nobody reads and a file that may not grow are errors of write, to be told and cleaned up after. */
    action.sa_handler = SIG_IGN;
    if (sigaction(SIGPIPE, &action, NULL) || sigaction(SIGXFSZ, &action, NULL))
        return gpg_error_from_syserror();
    return 0;
}

void signals_watch(struct run *run)
{
    atomic_store(&watching, run);
    if (run && caught)
        run_interrupt(run, gpg_error(GPG_ERR_CANCELED));
}

int signals_caught(void)
{
    return caught;
}

void signals_reraise(void)
{
    const int number = caught;
    if (!number)
        return;
    struct sigaction action = {.sa_handler = SIG_DFL};
    sigset_t set;
    sigemptyset(&action.sa_mask);
    sigaction(number, &action, NULL);
    sigemptyset(&set);
    sigaddset(&set, number);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    raise(number);
    _exit(128 + number);
}
