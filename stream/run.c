/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "run.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct run {
    struct failure failure;
    unsigned processors;
    unsigned helpers;       /* lock; claimed and not returned */
    atomic_uint code;       /* first cancel, 0 before it; any thread and the signal handler */
    int wake[2];            /* a byte is written on cancel and never read */
    pthread_key_t self;     /* the struct run_thread of a thread of this run */
    pthread_mutex_t lock;   /* for hooks; taken before the locks of what the hooks point to */
    struct run_hook *hooks; /* lock */
};

struct run_thread {
    struct run *run;
    pthread_t thread;
    gpg_error_t (*body)(void *arg);
    void *arg;
    char name[16];
    int wake;              /* eventfd: readable from run_thread_cancel on */
    atomic_bool cancelled; /* by run_thread_cancel */
    gpg_error_t result;    /* the thread; read after the join */
};

unsigned run_processors(const struct run *run)
{
    return run->processors;
}

void run_set_processors(struct run *run, unsigned n)
{
    run->processors = n ? n : 1;
}

unsigned run_claim_helpers(struct run *run, unsigned wanted)
{
    pthread_mutex_lock(&run->lock);
    const unsigned most = run->processors > 1 ? run->processors - 1 : 1;
    const unsigned left = most > run->helpers ? most - run->helpers : 0;
    const unsigned given = left > 1 ? left - 1 : left;
    const unsigned claimed = wanted < given ? wanted : given;
    run->helpers += claimed;
    pthread_mutex_unlock(&run->lock);
    return claimed;
}

void run_return_helpers(struct run *run, unsigned n)
{
    pthread_mutex_lock(&run->lock);
    run->helpers -= n;
    pthread_mutex_unlock(&run->lock);
}

struct run *run_new(void)
{
    struct run *run = calloc(1, sizeof *run);
    if (!run)
        return NULL;
    if (pipe2(run->wake, O_CLOEXEC | O_NONBLOCK) != 0) {
        free(run);
        return NULL;
    }
    int number = pthread_key_create(&run->self, NULL);
    if (number) {
        close(run->wake[0]);
        close(run->wake[1]);
        free(run);
        errno = number;
        return NULL;
    }
    failure_init(&run->failure);
    cpu_set_t usable;
    run_set_processors(run, sched_getaffinity(0, sizeof usable, &usable) == 0 ? (unsigned)CPU_COUNT(&usable) : 1);
    atomic_init(&run->code, 0);
    pthread_mutex_init(&run->lock, NULL);
    return run;
}

void run_free(struct run *run)
{
    if (!run)
        return;
    pthread_key_delete(run->self);
    pthread_mutex_destroy(&run->lock);
    failure_destroy(&run->failure);
    close(run->wake[0]);
    close(run->wake[1]);
    free(run);
}

struct failure *run_failure(struct run *run)
{
    return run ? &run->failure : NULL;
}

static void call_hooks(struct run *run)
{
    pthread_mutex_lock(&run->lock);
    for (struct run_hook *hook = run->hooks; hook; hook = hook->next)
        hook->cancel(hook);
    pthread_mutex_unlock(&run->lock);
}

void run_interrupt(struct run *run, gpg_error_t code)
{
    int saved = errno;
    unsigned none = 0;
    if (atomic_compare_exchange_strong(&run->code, &none, code)) {
        /* The pipe is empty before the first cancel, so this cannot fail for want of room. */
        ssize_t written;
        do
            written = write(run->wake[1], "", 1);
        while (written < 0 && errno == EINTR);
    }
    errno = saved;
}

void run_cancel(struct run *run, gpg_error_t code)
{
    run_interrupt(run, code);
    call_hooks(run);
}

gpg_error_t run_cancelled(struct run *run)
{
    if (!run)
        return 0;
    gpg_error_t code = atomic_load(&run->code);
    if (code)
        return code;
    struct run_thread *self = pthread_getspecific(run->self);
    return self && atomic_load(&self->cancelled) ? gpg_error(GPG_ERR_CANCELED) : 0;
}

int run_wake_fd(struct run *run)
{
    return run->wake[0];
}

static void *thread_main(void *arg)
{
    struct run_thread *thread = arg;
    struct run *run = thread->run;
    pthread_setspecific(run->self, thread);
    pthread_setname_np(pthread_self(), thread->name);
    thread->result = thread->body(thread->arg);
    if (thread->result && !atomic_load(&thread->cancelled))
        run_cancel(run, thread->result);
    else if (atomic_load(&run->code))
        call_hooks(run); /* after run_interrupt, which cannot */
    return NULL;
}

gpg_error_t run_start(struct run *run, const char *name, gpg_error_t (*body)(void *arg), void *arg,
                      struct run_thread **ret_thread)
{
    struct run_thread *thread = calloc(1, sizeof *thread);
    if (!thread)
        return gpg_error_from_syserror();
    thread->run = run;
    thread->body = body;
    thread->arg = arg;
    strncpy(thread->name, name, sizeof thread->name - 1);
    atomic_init(&thread->cancelled, false);
    thread->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (thread->wake < 0) {
        gpg_error_t error = fail_errno(&run->failure, errno, "cannot start a thread");
        free(thread);
        return error;
    }
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old); /* the new thread inherits the mask */
    int number = pthread_create(&thread->thread, NULL, thread_main, thread);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (number) {
        close(thread->wake);
        free(thread);
        return fail_errno(&run->failure, number, "cannot start a thread");
    }
    *ret_thread = thread;
    return 0;
}

gpg_error_t run_join(struct run *run, struct run_thread *thread)
{
    (void)run;
    if (!thread)
        return 0;
    pthread_join(thread->thread, NULL);
    gpg_error_t result = thread->result;
    close(thread->wake);
    free(thread);
    return result;
}

void run_thread_cancel(struct run *run, struct run_thread *thread)
{
    atomic_store(&thread->cancelled, true);
    eventfd_write(thread->wake, 1);
    call_hooks(run);
}

gpg_error_t run_wait(struct run *run, int fd, short events)
{
    struct run_thread *self = run ? pthread_getspecific(run->self) : NULL;
    struct pollfd fds[3] = {
        {.fd = fd, .events = events},
        {.fd = run ? run->wake[0] : -1, .events = POLLIN},
        {.fd = self ? self->wake : -1, .events = POLLIN},
    };
    for (;;) {
        if (run_cancelled(run))
            return gpg_error(GPG_ERR_CANCELED);
        int ready = poll(fds, ARRAY_SIZE(fds), -1);
        if (ready < 0 && errno != EINTR && errno != EAGAIN)
            return gpg_error_from_syserror();
        if (ready > 0 && !fds[1].revents && !fds[2].revents)
            return 0;
    }
}

void run_hook_add(struct run *run, struct run_hook *hook)
{
    pthread_mutex_lock(&run->lock);
    hook->next = run->hooks;
    run->hooks = hook;
    if (atomic_load(&run->code))
        hook->cancel(hook);
    pthread_mutex_unlock(&run->lock);
}

void run_hook_remove(struct run *run, struct run_hook *hook)
{
    pthread_mutex_lock(&run->lock);
    for (struct run_hook **at = &run->hooks; *at; at = &(*at)->next) {
        if (*at == hook) {
            *at = hook->next;
            break;
        }
    }
    pthread_mutex_unlock(&run->lock);
}
