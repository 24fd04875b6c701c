/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "gpgtar/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static char base[] = "/tmp/gpgtar-test-confine-XXXXXX";

static int kernel_abi(void)
{
    int abi = (int)syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
    return abi < 1 ? 0 : abi;
}

static int set_up(void **state)
{
    (void)state;
    if (!mkdtemp(base) || chdir(base) || mkdir("target", 0700) || mkdir("source", 0700) || mkdir("other", 0700))
        return -1;
    int fd = open("source/file", O_WRONLY | O_CREAT, 0600);
    if (fd < 0 || close(fd))
        return -1;
    fd = open("other/file", O_WRONLY | O_CREAT, 0600);
    return fd < 0 || close(fd) ? -1 : 0;
}

static int tear_down(void **state)
{
    static const char *const names[] = {"target/sub/made", "target/sub", "target/two", "target/fifo", "target/link",
                                        "source/file",     "other/file", "other/made", "source/made", "outside"};
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        if (unlink(names[i]))
            rmdir(names[i]);
    rmdir("target");
    rmdir("source");
    rmdir("other");
    if (chdir("/"))
        return -1;
    return rmdir(base);
}

static int in_child(int (*body)(void))
{
    int status = 0;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        _exit(body());
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static int confine_child(int *ret_abi)
{
    int target = open("target", O_RDONLY | O_DIRECTORY), source = open("source", O_RDONLY | O_DIRECTORY);
    const struct confine_folders folders = {&target, 1, &source, 1, -1};
    return confine_files(&folders, NULL, ret_abi) ? -1 : 0;
}

static bool made(const char *name)
{
    int fd = open(name, O_WRONLY | O_CREAT | O_EXCL, 0600);
    if (fd < 0)
        return false;
    bool good = write(fd, "x", 1) == 1;
    close(fd);
    return good;
}

static bool refused(bool done)
{
    return !done && errno == EACCES;
}

/* Each step has its own exit code. */
static int inside_works(void)
{
    int abi = -1, earlier = open("outside", O_WRONLY | O_CREAT, 0600);
    if (earlier < 0 || confine_child(&abi))
        return 1;
    if (abi != kernel_abi())
        return 2;
    if (mkdir("target/sub", 0700) || !made("target/sub/file") || !made("target/one"))
        return 3;
    if (rename("target/one", "target/two") || rename("target/sub/file", "target/sub/made"))
        return 4;
    if (abi != 1 && (rename("target/two", "target/sub/two") || rename("target/sub/two", "target/two")))
        return 5;
    if (symlink("two", "target/link") || mkfifo("target/fifo", 0600) || truncate("target/two", 0))
        return 6;
    if (open("source/file", O_RDONLY) < 0 || open("target/two", O_RDWR) < 0)
        return 7;
    if (write(earlier, "x", 1) != 1)
        return 8;
    if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1)
        return 9;
    return 0;
}

static int outside_is_refused(void)
{
    int abi = -1;
    if (confine_child(&abi))
        return 1;
    if (abi == 0)
        return 100;
    if (!refused(made("other/made")) || !refused(made("source/made")) || !refused(made("made")))
        return 2;
    if (!refused(open("other/file", O_RDONLY) >= 0) || !refused(open("other/file", O_WRONLY) >= 0))
        return 3;
    if (!refused(open("source/file", O_WRONLY) >= 0))
        return 4;
    if (!refused(unlink("other/file") == 0) || !refused(mkdir("other/sub", 0700) == 0))
        return 5;
    if (!refused(made("target/../other/made")) || !refused(open("/etc/passwd", O_RDONLY) >= 0))
        return 6;
    if (abi >= 3 && !refused(truncate("other/file", 0) == 0))
        return 7;
    char shell[] = "sh";
    char *const argv[] = {shell, NULL};
    execv("/bin/sh", argv);
    return errno == EACCES ? 0 : 8;
}

static void test_inside(void **state)
{
    (void)state;
    assert_int_equal(in_child(inside_works), 0);
}

/* Where the kernel has no Landlock, the result has to say so, and that alone can be asserted. */
static void test_outside(void **state)
{
    (void)state;
    assert_int_equal(in_child(outside_is_refused), kernel_abi() ? 0 : 100);
}

static int bad_folder(void)
{
    int none = 987, abi = -1;
    const struct confine_folders folders = {&none, 1, NULL, 0, -1};
    gpg_error_t err = confine_files(&folders, NULL, &abi);
    if (kernel_abi() == 0)
        return err || abi != 0;
    return gpg_err_code(err) == GPG_ERR_EBADF && abi == -1 ? 0 : 1;
}

static void test_bad_folder(void **state)
{
    (void)state;
    assert_int_equal(in_child(bad_folder), 0);
}

static int no_core(void)
{
    struct rlimit limit;
    if (confine_secrets(NULL) || getrlimit(RLIMIT_CORE, &limit))
        return 1;
    if (limit.rlim_cur != 0 || limit.rlim_max != 0)
        return 2;
    return prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 0 ? 0 : 3;
}

static void test_secrets(void **state)
{
    (void)state;
    assert_int_equal(in_child(no_core), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_inside),
        cmocka_unit_test(test_outside),
        cmocka_unit_test(test_bad_folder),
        cmocka_unit_test(test_secrets),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
