/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "gpgtar/signals.h"

#include "stream/bytes.h"

#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* Runs BODY in a child and returns how it ended. */
static int in_child(void (*body)(int number), int number)
{
    int status = 0;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        if (signals_install())
            _exit(99);
        body(number);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static void caught_and_reraised(int number)
{
    if (signals_caught())
        _exit(1);
    raise(number);
    if (signals_caught() != number)
        _exit(2);
    signals_reraise();
    _exit(3);
}

static void wakes_the_run(int number)
{
    struct run *run = run_new();
    if (!run)
        _exit(1);
    signals_watch(run);
    struct pollfd wake = {.fd = run_wake_fd(run), .events = POLLIN};
    if (poll(&wake, 1, 0) != 0)
        _exit(2);
    raise(number);
    if (poll(&wake, 1, 0) != 1 || gpg_err_code(run_cancelled(run)) != GPG_ERR_CANCELED)
        _exit(3);
    signals_watch(NULL);
    run_free(run);
    /* One that comes before there is a run reaches the next. */
    run = run_new();
    signals_watch(run);
    if (gpg_err_code(run_cancelled(run)) != GPG_ERR_CANCELED)
        _exit(4);
    signals_watch(NULL);
    run_free(run);
}

static void second_interrupt(int number)
{
    (void)number;
    raise(SIGINT);
    raise(SIGINT);
    _exit(1);
}

static void second_of_another_kind(int number)
{
    raise(SIGINT);
    raise(number);
    _exit(signals_caught() == SIGINT ? 0 : 1);
}

static void broken_pipe(int number)
{
    int ends[2];
    (void)number;
    if (pipe(ends))
        _exit(1);
    close(ends[0]);
    _exit(write(ends[1], "x", 1) < 0 && errno == EPIPE ? 0 : 2);
}

static void test_each_signal(void **state)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
        int status = in_child(caught_and_reraised, numbers[i]);
        assert_true(WIFSIGNALED(status));
        assert_int_equal(WTERMSIG(status), numbers[i]);
        status = in_child(wakes_the_run, numbers[i]);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
    }
}

static void test_second(void **state)
{
    (void)state;
    int status = in_child(second_interrupt, 0);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 128 + SIGINT);
    status = in_child(second_of_another_kind, SIGTERM);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void test_pipe(void **state)
{
    (void)state;
    int status = in_child(broken_pipe, 0);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void test_ignored_stays_ignored(void **state)
{
    (void)state;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        signal(SIGHUP, SIG_IGN);
        if (signals_install())
            _exit(99);
        raise(SIGHUP);
        _exit(signals_caught() ? 1 : 0);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_signal),
        cmocka_unit_test(test_second),
        cmocka_unit_test(test_pipe),
        cmocka_unit_test(test_ignored_stays_ignored),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
