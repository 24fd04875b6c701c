/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "stream/fd.h"
#include "stream/outfile.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
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

/* Each test runs in a folder of its own, on the disk and on a tmpfs. */
static const char *const parents[] = {"/var/tmp", "/dev/shm"};

struct place {
    char path[64];
    int fd;
};

static struct place place_new(size_t parent)
{
    struct place place;
    snprintf(place.path, sizeof place.path, "%s/gpgtar-test-XXXXXX", parents[parent]);
    assert_non_null(mkdtemp(place.path));
    place.fd = open(place.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(place.fd >= 0);
    return place;
}

/* Whatever was made must be named here: nothing else may be left. */
static void place_free(struct place *place, ...)
{
    va_list names;
    const char *name;
    va_start(names, place);
    while ((name = va_arg(names, const char *)))
        assert_int_equal(unlinkat(place->fd, name, 0), 0);
    va_end(names);
    close(place->fd);
    assert_int_equal(rmdir(place->path), 0);
}

static void put(struct place *place, const char *name, const char *text)
{
    int fd = openat(place->fd, name, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    assert_true(fd >= 0);
    assert_int_equal(fd_write_full(fd, text, strlen(text)), 0);
    close(fd);
}

static const char *get(struct place *place, const char *name)
{
    static char text[128];
    size_t n = 0;
    int fd = openat(place->fd, name, O_RDONLY | O_NOFOLLOW);
    if (fd < 0)
        return NULL;
    assert_int_equal(fd_read_full(fd, text, sizeof text - 1, &n), 0);
    text[n] = 0;
    close(fd);
    return text;
}

static bool exists(struct place *place, const char *name)
{
    struct stat status;
    return fstatat(place->fd, name, &status, AT_SYMLINK_NOFOLLOW) == 0;
}

static gpg_error_t write_text(struct outfile *outfile, const char *text)
{
    struct sink *sink;
    gpg_error_t error = outfile_sink(outfile, &sink);
    if (error)
        return error;
    error = sink_write(sink, text, strlen(text));
    if (!error)
        error = sink_finish(sink);
    sink_free(sink);
    return error;
}

static gpg_error_t make(int folder, const char *name, enum outfile_exists how, const char *text)
{
    struct outfile *outfile;
    gpg_error_t error = outfile_open(NULL, folder, name, 0666, how, &outfile);
    if (error)
        return error;
    error = write_text(outfile, text);
    if (!error)
        error = outfile_commit(outfile);
    outfile_free(outfile);
    return error;
}

/* ---- system calls that fail ---- */

/* Lets the system call NUMBER fail with ERROR from now on where its argument ARGUMENT has one of the bits of MASK. */
static void deny(int number, unsigned argument, unsigned mask, int error)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)number, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (unsigned)(offsetof(struct seccomp_data, args) + 8 * argument)),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, mask, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {ARRAY_SIZE(filter), filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
        _exit(99);
}

enum { O_TMPFILE_BIT = O_TMPFILE & ~O_DIRECTORY };

enum system {
    SYSTEM_AS_IT_IS,
    SYSTEM_NO_TMPFILE,
    SYSTEM_NO_NOREPLACE, /* and no O_TMPFILE */
    SYSTEM_ALL,
};

static void degrade(enum system system)
{
    if (system >= SYSTEM_NO_TMPFILE)
        deny(SYS_openat, 2, O_TMPFILE_BIT, EOPNOTSUPP);
    if (system >= SYSTEM_NO_NOREPLACE)
        deny(SYS_renameat2, 4, RENAME_NOREPLACE, EINVAL);
}

/* Runs BODY in a process of its own, whose system calls may be crippled: the code of its error. */
static gpg_err_code_t in_child(enum system system, gpg_error_t (*body)(struct place *), struct place *place)
{
    int status, ends[2];
    gpg_error_t error = 0;
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (!child) {
        degrade(system);
        error = body(place);
        _exit(write(ends[1], &error, sizeof error) == sizeof error ? 0 : 98);
    }
    close(ends[1]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(read(ends[0], &error, sizeof error), sizeof error);
    close(ends[0]);
    return gpg_err_code(error);
}

static gpg_error_t make_new(struct place *place)
{
    return make(place->fd, "a", OUTFILE_NEW, "new");
}

static gpg_error_t replace(struct place *place)
{
    return make(place->fd, "a", OUTFILE_REPLACE, "new");
}

/* Somebody makes the name between open and commit. */
static gpg_error_t make_too_late(struct place *place)
{
    struct outfile *outfile;
    gpg_error_t error = outfile_open(NULL, place->fd, "a", 0600, OUTFILE_NEW, &outfile);
    if (error)
        return error;
    error = write_text(outfile, "new");
    int fd = openat(place->fd, "a", O_WRONLY | O_CREAT | O_EXCL, 0600);
    if (!error && (fd < 0 || close(fd) != 0))
        error = gpg_error(GPG_ERR_INTERNAL);
    if (!error)
        error = outfile_commit(outfile);
    outfile_free(outfile);
    return error;
}

static gpg_error_t give_up(struct place *place)
{
    struct outfile *outfile;
    gpg_error_t error = outfile_open(NULL, place->fd, "a", 0600, OUTFILE_REPLACE, &outfile);
    if (error)
        return error;
    error = write_text(outfile, "half");
    outfile_free(outfile);
    return error;
}

static gpg_error_t fail_to_sync(struct place *place)
{
    struct outfile *outfile;
    gpg_error_t error = outfile_open(NULL, place->fd, "a", 0600, OUTFILE_REPLACE, &outfile);
    if (error)
        return error;
    error = write_text(outfile, "lost");
    deny(SYS_fsync, 0, ~0U, EIO);
    if (!error)
        error = outfile_commit(outfile);
    outfile_free(outfile);
    return error;
}

/* As a full disk, but with EFBIG. */
static gpg_error_t write_too_much(struct place *place)
{
    struct rlimit limit = {3, 3};
    signal(SIGXFSZ, SIG_IGN);
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0)
        return gpg_error_from_syserror();
    return make(place->fd, "a", OUTFILE_REPLACE, "four");
}

static void test_names(void **state)
{
    (void)state;
    for (size_t parent = 0; parent < ARRAY_SIZE(parents); parent++)
        for (enum system system = 0; system < SYSTEM_ALL; system++) {
            struct place place = place_new(parent);
            assert_int_equal(in_child(system, give_up, &place), 0);
            assert_false(exists(&place, "a"));
            assert_int_equal(in_child(system, fail_to_sync, &place), GPG_ERR_EIO);
            assert_false(exists(&place, "a"));
            assert_int_equal(in_child(system, make_too_late, &place), GPG_ERR_EEXIST);
            assert_string_equal(get(&place, "a"), "");
            assert_int_equal(in_child(system, make_new, &place), GPG_ERR_EEXIST);
            assert_int_equal(unlinkat(place.fd, "a", 0), 0);
            assert_int_equal(in_child(system, make_new, &place), 0);
            assert_string_equal(get(&place, "a"), "new");
            put(&place, "a", "old");
            assert_int_equal(in_child(system, give_up, &place), 0);
            assert_int_equal(in_child(system, fail_to_sync, &place), GPG_ERR_EIO);
            assert_int_equal(in_child(system, write_too_much, &place), GPG_ERR_EFBIG);
            assert_string_equal(get(&place, "a"), "old");
            assert_int_equal(in_child(system, replace, &place), 0);
            assert_string_equal(get(&place, "a"), "new");
            assert_int_equal(unlinkat(place.fd, "a", 0), 0);
            assert_int_equal(in_child(system, replace, &place), 0);
            assert_string_equal(get(&place, "a"), "new");
            place_free(&place, "a", NULL);
        }
}

static void test_nothing_before_the_commit(void **state)
{
    (void)state;
    for (size_t parent = 0; parent < ARRAY_SIZE(parents); parent++) {
        struct place place = place_new(parent);
        struct outfile *outfile;
        struct stat old, new;
        put(&place, "a", "old");
        assert_int_equal(fstatat(place.fd, "a", &old, 0), 0);
        mode_t mask = umask(0027);
        assert_int_equal(outfile_open(NULL, place.fd, "a", 0666, OUTFILE_REPLACE, &outfile), 0);
        assert_true(outfile_is(outfile, old.st_dev, old.st_ino));
        assert_int_equal(write_text(outfile, "new"), 0);
        assert_string_equal(get(&place, "a"), "old");
        assert_int_equal(outfile_commit(outfile), 0);
        assert_string_equal(get(&place, "a"), "new");
        assert_int_equal(fstatat(place.fd, "a", &new, 0), 0);
        assert_true(outfile_is(outfile, new.st_dev, new.st_ino));
        assert_false(outfile_is(outfile, new.st_dev, new.st_ino ^ old.st_ino ^ 1));
        assert_int_equal(new.st_mode & 07777, 0640);
        outfile_free(outfile);
        umask(mask);
        place_free(&place, "a", NULL);
    }
}

static void test_links(void **state)
{
    (void)state;
    for (size_t parent = 0; parent < ARRAY_SIZE(parents); parent++) {
        struct place place = place_new(parent);
        char absolute[128];
        snprintf(absolute, sizeof absolute, "%s/d/there", place.path);
        assert_int_equal(mkdirat(place.fd, "d", 0700), 0);
        assert_int_equal(symlinkat("d/back", place.fd, "first"), 0);
        assert_int_equal(symlinkat("../file", place.fd, "d/back"), 0);
        assert_int_equal(symlinkat(absolute, place.fd, "absolute"), 0);
        assert_int_equal(symlinkat("loop", place.fd, "loop"), 0);
        assert_int_equal(symlinkat("nowhere/x", place.fd, "lost"), 0);
        /* Dangling at first: the file it names is made, the link stays. */
        assert_int_equal(make(place.fd, "first", OUTFILE_NEW, "one"), 0);
        assert_string_equal(get(&place, "file"), "one");
        assert_int_equal(gpg_err_code(make(place.fd, "first", OUTFILE_NEW, "two")), GPG_ERR_EEXIST);
        assert_int_equal(make(place.fd, "first", OUTFILE_REPLACE, "two"), 0);
        assert_string_equal(get(&place, "file"), "two");
        assert_int_equal(make(place.fd, "absolute", OUTFILE_NEW, "three"), 0);
        assert_string_equal(get(&place, "d/there"), "three");
        assert_int_equal(gpg_err_code(make(place.fd, "loop", OUTFILE_REPLACE, "x")), GPG_ERR_ELOOP);
        assert_int_equal(gpg_err_code(make(place.fd, "lost", OUTFILE_REPLACE, "x")), GPG_ERR_ENOENT);
        assert_int_equal(unlinkat(place.fd, "d/there", 0), 0);
        assert_int_equal(unlinkat(place.fd, "d/back", 0), 0);
        assert_int_equal(unlinkat(place.fd, "d", AT_REMOVEDIR), 0);
        place_free(&place, "first", "file", "absolute", "loop", "lost", NULL);
    }
}

static void test_folders(void **state)
{
    (void)state;
    struct place place = place_new(0);
    assert_int_equal(mkdirat(place.fd, "d", 0700), 0);
    static const char *const names[] = {"d/", ".", "..", "d/."};
    assert_int_equal(gpg_err_code(make(place.fd, "d", OUTFILE_NEW, "x")), GPG_ERR_EEXIST);
    assert_int_equal(gpg_err_code(make(place.fd, "d", OUTFILE_REPLACE, "x")), GPG_ERR_EISDIR);
    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        assert_int_equal(gpg_err_code(make(place.fd, names[i], OUTFILE_REPLACE, "x")), GPG_ERR_EISDIR);
    assert_int_equal(gpg_err_code(make(place.fd, "", OUTFILE_NEW, "x")), GPG_ERR_ENOENT);
    assert_int_equal(gpg_err_code(make(place.fd, "no/x", OUTFILE_NEW, "x")), GPG_ERR_ENOENT);
    put(&place, "f", "old");
    assert_int_equal(gpg_err_code(make(place.fd, "f/x", OUTFILE_NEW, "x")), GPG_ERR_ENOTDIR);
    assert_int_equal(unlinkat(place.fd, "d", AT_REMOVEDIR), 0);
    place_free(&place, "f", NULL);
}

static void test_special_files_stay(void **state)
{
    (void)state;
    struct place place = place_new(0);
    struct stat status;
    char text[8];
    size_t n;
    assert_int_equal(mkfifoat(place.fd, "fifo", 0600), 0);
    int reader = openat(place.fd, "fifo", O_RDONLY | O_NONBLOCK);
    assert_int_equal(make(place.fd, "fifo", OUTFILE_NEW, "through"), 0);
    assert_int_equal(fd_read_full(reader, text, sizeof text, &n), 0);
    assert_int_equal(n, 7);
    close(reader);
    assert_int_equal(fstatat(place.fd, "fifo", &status, 0), 0);
    assert_true(S_ISFIFO(status.st_mode));
    place_free(&place, "fifo", NULL);

    assert_int_equal(make(AT_FDCWD, "/dev/null", OUTFILE_NEW, "gone"), 0);
    assert_int_equal(gpg_err_code(make(AT_FDCWD, "/dev/full", OUTFILE_REPLACE, "x")), GPG_ERR_ENOSPC);
    assert_int_equal(stat("/dev/null", &status), 0);
    assert_true(S_ISCHR(status.st_mode));
    assert_int_equal(stat("/dev/full", &status), 0);
    assert_true(S_ISCHR(status.st_mode));
}

static gpg_error_t write_to_stdout(struct place *place)
{
    int fd = openat(place->fd, "a", O_RDWR);
    if (fd < 0 || dup2(fd, 1) < 0 || write(1, "head ", 5) != 5)
        return gpg_error(GPG_ERR_INTERNAL);
    gpg_error_t error = make(AT_FDCWD, "/dev/stdout", OUTFILE_NEW, "body ");
    if (!error && write(1, "tail", 4) != 4)
        error = gpg_error(GPG_ERR_INTERNAL);
    return error;
}

/* A shell sent stdout to a file, and others write to it before and after. */
static void test_stdout_goes_on(void **state)
{
    (void)state;
    struct place place = place_new(0);
    put(&place, "a", "");
    assert_int_equal(in_child(SYSTEM_AS_IT_IS, write_to_stdout, &place), 0);
    assert_string_equal(get(&place, "a"), "head body tail");
    place_free(&place, "a", NULL);
}

static gpg_error_t cancel_soon(void *arg)
{
    usleep(2000);
    run_cancel(arg, gpg_error(GPG_ERR_FULLY_CANCELED));
    return 0;
}

static void test_cancel(void **state)
{
    (void)state;
    struct place place = place_new(0);
    struct run *run = run_new();
    struct run_thread *thread;
    struct outfile *outfile;
    char sentence[FAILURE_SENTENCE_MAX];
    put(&place, "b", "old");
    assert_int_equal(gpg_err_code(outfile_open(run, place.fd, "b", 0600, OUTFILE_NEW, &outfile)), GPG_ERR_EEXIST);
    failure_get(run_failure(run), sentence);
    assert_string_equal(sentence, "'b' exists already");
    assert_int_equal(outfile_open(run, place.fd, "a", 0600, OUTFILE_NEW, &outfile), 0);
    assert_int_equal(write_text(outfile, "text"), 0);
    assert_int_equal(mkfifoat(place.fd, "fifo", 0600), 0);
    assert_int_equal(run_start(run, "canceller", cancel_soon, run, &thread), 0);
    /* No reader comes. */
    struct outfile *fifo;
    assert_int_equal(gpg_err_code(outfile_open(run, place.fd, "fifo", 0600, OUTFILE_NEW, &fifo)), GPG_ERR_CANCELED);
    assert_int_equal(run_join(run, thread), 0);
    assert_int_equal(gpg_err_code(outfile_commit(outfile)), GPG_ERR_CANCELED);
    outfile_free(outfile);
    outfile_free(NULL);
    run_free(run);
    place_free(&place, "b", "fifo", NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),          cmocka_unit_test(test_nothing_before_the_commit),
        cmocka_unit_test(test_links),          cmocka_unit_test(test_folders),
        cmocka_unit_test(test_cancel),         cmocka_unit_test(test_special_files_stay),
        cmocka_unit_test(test_stdout_goes_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
