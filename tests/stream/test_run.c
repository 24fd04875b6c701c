/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "stream/run.h"

#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

static bool readable(int fd)
{
    struct pollfd poller = {.fd = fd, .events = POLLIN};
    return poll(&poller, 1, 0) == 1;
}

struct watch {
    struct run_hook hook;
    atomic_int calls;
};

static void count(struct run_hook *hook)
{
    atomic_fetch_add(&CONTAINER(hook, struct watch, hook)->calls, 1);
}

static void test_cancel(void **state)
{
    (void)state;
    struct run *run = run_new();
    struct watch before = {.hook.cancel = count}, removed = before, after = before;
    run_hook_add(run, &before.hook);
    run_hook_add(run, &removed.hook);
    run_hook_remove(run, &removed.hook);
    assert_int_equal(run_cancelled(run), 0);
    assert_false(readable(run_wake_fd(run)));
    assert_int_equal(fcntl(run_wake_fd(run), F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    run_cancel(run, gpg_error(GPG_ERR_EIO));
    run_cancel(run, gpg_error(GPG_ERR_ENOSPC));
    assert_int_equal(gpg_err_code(run_cancelled(run)), GPG_ERR_EIO);
    assert_true(readable(run_wake_fd(run)));
    assert_true(atomic_load(&before.calls) >= 1);
    assert_int_equal(atomic_load(&removed.calls), 0);
    run_hook_add(run, &after.hook);
    assert_int_equal(atomic_load(&after.calls), 1);
    assert_int_equal(gpg_err_code(run_wait(run, -1, POLLIN)), GPG_ERR_CANCELED);
    run_hook_remove(run, &after.hook);
    run_hook_remove(run, &before.hook);
    run_free(run);
    run_free(NULL);
    assert_int_equal(run_cancelled(NULL), 0);
    assert_null(run_failure(NULL));
}

static void test_interrupt(void **state)
{
    (void)state;
    struct run *run = run_new();
    for (int i = 0; i < 100000; i++) /* more than a pipe holds: it must neither block nor fail */
        run_interrupt(run, gpg_error(GPG_ERR_CANCELED));
    assert_int_equal(gpg_err_code(run_cancelled(run)), GPG_ERR_CANCELED);
    assert_true(readable(run_wake_fd(run)));
    run_free(run);
}

static gpg_error_t give_back(void *arg)
{
    sigset_t set;
    pthread_sigmask(SIG_SETMASK, NULL, &set);
    assert_int_equal(sigismember(&set, SIGINT), 1);
    assert_int_equal(sigismember(&set, SIGTERM), 1);
    return *(gpg_error_t *)arg;
}

static void test_threads(void **state)
{
    (void)state;
    struct run *run = run_new();
    struct run_thread *thread;
    gpg_error_t result = 0;
    assert_int_equal(run_start(run, "a name that is far too long", give_back, &result, &thread), 0);
    assert_int_equal(run_join(run, thread), 0);
    assert_int_equal(run_cancelled(run), 0);
    sigset_t set;
    pthread_sigmask(SIG_SETMASK, NULL, &set);
    assert_int_equal(sigismember(&set, SIGINT), 0);
    result = gpg_error(GPG_ERR_BAD_DATA);
    assert_int_equal(run_start(run, "bad", give_back, &result, &thread), 0);
    assert_int_equal(run_join(run, thread), result);
    assert_int_equal(run_cancelled(run), result);
    assert_int_equal(run_join(run, NULL), 0);
    run_free(run);
}

struct waiter {
    struct run *run;
    int fd;
};

static gpg_error_t wait_for_fd(void *arg)
{
    struct waiter *waiter = arg;
    return run_wait(waiter->run, waiter->fd, POLLIN);
}

/* Two threads wait for the same silent pipe; one is given up, then the run is. */
static void test_wait_is_woken(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    struct run *run = run_new();
    struct waiter waiter = {run, ends[0]};
    struct run_thread *first, *second;
    assert_int_equal(run_start(run, "first", wait_for_fd, &waiter, &first), 0);
    assert_int_equal(run_start(run, "second", wait_for_fd, &waiter, &second), 0);
    run_thread_cancel(run, first);
    assert_int_equal(gpg_err_code(run_join(run, first)), GPG_ERR_CANCELED);
    assert_int_equal(run_cancelled(run), 0);
    run_cancel(run, gpg_error(GPG_ERR_EIO));
    assert_int_equal(gpg_err_code(run_join(run, second)), GPG_ERR_CANCELED);
    assert_int_equal(gpg_err_code(run_cancelled(run)), GPG_ERR_EIO);
    run_free(run);
    assert_int_equal(write(ends[1], "x", 1), 1);
    assert_int_equal(run_wait(NULL, ends[0], POLLIN), 0);
    close(ends[0]);
    close(ends[1]);
}

/* With the caller no more threads than processors, one helper at least, and one left for who asks next. */
static void test_helpers(void **state)
{
    (void)state;
    static const struct {
        unsigned processors, wanted, first, second, third;
    } cases[] = {
        {1, 5, 1, 0, 0}, {2, 5, 1, 0, 0}, {3, 5, 1, 1, 0}, {4, 5, 2, 1, 0},
        {8, 5, 5, 1, 1}, {8, 9, 6, 1, 0}, {8, 1, 1, 1, 1},
    };
    struct run *run = run_new();
    assert_true(run_processors(run) >= 1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        run_set_processors(run, cases[i].processors);
        assert_int_equal(run_processors(run), cases[i].processors);
        assert_int_equal(run_claim_helpers(run, cases[i].wanted), cases[i].first);
        assert_int_equal(run_claim_helpers(run, cases[i].wanted), cases[i].second);
        assert_int_equal(run_claim_helpers(run, cases[i].wanted), cases[i].third);
        run_return_helpers(run, cases[i].first + cases[i].second + cases[i].third);
    }
    run_set_processors(run, 0);
    assert_int_equal(run_processors(run), 1);
    run_free(run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cancel),        cmocka_unit_test(test_interrupt), cmocka_unit_test(test_threads),
        cmocka_unit_test(test_wait_is_woken), cmocka_unit_test(test_helpers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
