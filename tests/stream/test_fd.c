/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "stream/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

enum { LENGTH = 100 };

static uint8_t bytes[LENGTH];

static int file_of(size_t n)
{
    char name[] = "/tmp/gpgtar-test-XXXXXX";
    int fd = mkostemp(name, O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(unlink(name), 0);
    assert_int_equal(write(fd, bytes, n), n);
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    return fd;
}

static int pipe_of(size_t n)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], bytes, n), n);
    close(ends[1]);
    return ends[0];
}

/* Reads FIRST bytes of N, skips, and reads the rest. */
static void read_and_skip(int fd, size_t block, size_t n, size_t first, size_t skip)
{
    struct source *source;
    uint8_t to[LENGTH];
    size_t got;
    const void *lent;
    assert_int_equal(fd_source_new(NULL, fd, "x", true, block, &source), 0);
    if (first % 2) /* with and without bytes in the buffer */
        assert_int_equal(source_peek(source, &lent, &got), 0);
    assert_int_equal(source_read(source, to, first, &got), 0);
    assert_int_equal(got, first);
    gpg_error_t error = source_skip(source, skip);
    if (skip > n - first) {
        assert_int_equal(gpg_err_code(error), GPG_ERR_TRUNCATED);
    } else {
        assert_int_equal(error, 0);
        assert_int_equal(source_read(source, to + first, LENGTH - first, &got), 0);
        assert_int_equal(got, n - first - skip);
        assert_memory_equal(to, bytes, first);
        assert_memory_equal(to + first, bytes + first + skip, got);
        assert_int_equal(source_peek(source, &lent, &got), 0);
        assert_int_equal(got, 0);
        assert_int_equal(source_finish(source), 0);
    }
    source_free(source);
    assert_int_equal(fcntl(fd, F_GETFD), -1);
}

static void test_read_and_skip(void **state)
{
    (void)state;
    static const size_t blocks[] = {1, 7, 64, 1000};
    for (size_t b = 0; b < ARRAY_SIZE(blocks); b++)
        for (size_t n = 0; n <= LENGTH; n += 20)
            for (size_t first = 0; first <= n; first += 9) {
                size_t rest = n - first;
                const size_t skips[] = {0, 1, rest / 2, rest, rest + 1};
                for (size_t s = 0; s < ARRAY_SIZE(skips); s++) {
                    read_and_skip(pipe_of(n), blocks[b], n, first, skips[s]);
                    read_and_skip(file_of(n), blocks[b], n, first, skips[s]);
                }
            }
}

/* Large enough to seek, and then to read a few octets and many. */
static void test_seek(void **state)
{
    enum { BIG = 700000 };
    static uint8_t content[BIG], to[BIG];
    (void)state;
    for (size_t i = 0; i < BIG; i++)
        content[i] = (uint8_t)(i * i >> 7 ^ i);
    int fd = file_of(0);
    assert_int_equal(write(fd, content, BIG), BIG);
    static const size_t skips[] = {1000, 32767, 32768, 32769, 200000, BIG - 300000, BIG - 300000 + 1};
    for (size_t block = 0; block <= 300000; block = block * 10 + 300)
        for (size_t s = 0; s < ARRAY_SIZE(skips); s++)
            for (unsigned peeks = 0; peeks < 2; peeks++) {
                struct source *source;
                const void *lent;
                size_t got, first = 300000, skip = skips[s];
                assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
                assert_int_equal(fd_source_new(NULL, fd, "x", false, block, &source), 0);
                if (peeks)
                    assert_int_equal(source_peek(source, &lent, &got), 0);
                assert_int_equal(source_read(source, to, first, &got), 0);
                gpg_error_t error = source_skip(source, skip);
                if (skip > BIG - first) {
                    assert_int_equal(gpg_err_code(error), GPG_ERR_TRUNCATED);
                } else {
                    assert_int_equal(error, 0);
                    size_t at = first + skip;
                    while (source_peek(source, &lent, &got) == 0 && got) {
                        assert_memory_equal(lent, content + at, got);
                        source_consume(source, got);
                        at += got;
                    }
                    assert_int_equal(at, BIG);
                    assert_int_equal(source_finish(source), 0);
                }
                source_free(source);
            }
    close(fd);
}

static void test_pump(void **state)
{
    (void)state;
    for (size_t block = 1; block <= LENGTH + 1; block += 10)
        for (size_t n = 0; n <= LENGTH; n += 10) {
            struct source *source;
            struct sink *sink;
            uint64_t moved;
            uint8_t to[LENGTH];
            size_t got;
            int fd = file_of(0);
            assert_int_equal(fd_source_new(NULL, n % 20 ? pipe_of(n) : file_of(n), "x", true, block, &source), 0);
            assert_int_equal(fd_sink_new(NULL, fd, "y", false, &sink), 0);
            assert_int_equal(pump(source, sink, &moved), 0);
            assert_int_equal(moved, n);
            source_free(source);
            sink_free(sink);
            assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
            assert_int_equal(fd_read_full(fd, to, LENGTH, &got), 0);
            assert_int_equal(got, n);
            assert_memory_equal(to, bytes, n);
            close(fd);
        }
}

/* Little writes to a file wait for a larger one or for the end; none is lost or put elsewhere. */
static void test_little_writes(void **state)
{
    (void)state;
    static const size_t sizes[] = {1, 2, 511, 1, 512, 513, 1, 5, 600, 3, 256, 256, 1, 7};
    uint8_t written[4096], read_back[4096];
    size_t n = 0, got;
    struct sink *sink;
    int fd = file_of(0);
    for (size_t i = 0; i < sizeof written; i++)
        written[i] = (uint8_t)(i * 31 >> 3);
    assert_int_equal(fd_sink_new(NULL, fd, "x", false, &sink), 0);
    assert_int_equal(sink_write(sink, written, 1), 0); /* not yet asked to hold anything */
    assert_int_equal(lseek(fd, 0, SEEK_END), 1);
    n = 1;
    fd_sink_hold(sink);
    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        assert_int_equal(sink_write(sink, written + n, sizes[i]), 0);
        n += sizes[i];
        off_t there = lseek(fd, 0, SEEK_END);
        assert_in_range((uintmax_t)there, n < 512 ? 0 : n - 512, n);
    }
    assert_int_equal(sink_finish(sink), 0);
    sink_free(sink);
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    assert_int_equal(fd_read_full(fd, read_back, sizeof read_back, &got), 0);
    assert_int_equal(got, n);
    assert_memory_equal(read_back, written, n);
    close(fd);
}

static void test_not_closed(void **state)
{
    (void)state;
    int fd = file_of(3);
    struct source *source;
    struct sink *sink;
    assert_int_equal(fd_source_new(NULL, fd, "x", false, 0, &source), 0);
    source_free(source);
    assert_int_equal(fd_sink_new(NULL, fd, "x", false, &sink), 0);
    assert_int_equal(sink_finish(sink), 0);
    sink_free(sink);
    assert_int_equal(close(fd), 0);
}

static void test_read_error(void **state)
{
    (void)state;
    struct run *run = run_new();
    char sentence[FAILURE_SENTENCE_MAX];
    const void *lent;
    size_t n;
    struct source *source;
    int fd = open("/tmp", O_RDONLY | O_DIRECTORY);
    assert_int_equal(fd_source_new(run, fd, "the folder", true, 0, &source), 0);
    assert_int_equal(gpg_err_code(source_peek(source, &lent, &n)), GPG_ERR_EISDIR);
    failure_get(run_failure(run), sentence);
    assert_string_equal(sentence, "cannot read 'the folder': Is a directory");
    source_free(source);
    run_free(run);
}

static void test_write_error(void **state)
{
    (void)state;
    struct run *run = run_new();
    char sentence[FAILURE_SENTENCE_MAX];
    struct sink *sink;
    assert_int_equal(fd_sink_new(run, open("/dev/full", O_WRONLY), "/dev/full", true, &sink), 0);
    assert_int_equal(gpg_err_code(sink_write(sink, "x", 1)), GPG_ERR_ENOSPC);
    failure_get(run_failure(run), sentence);
    assert_string_equal(sentence, "cannot write '/dev/full': No space left on device");
    sink_free(sink);
    run_free(run);

    int ends[2];
    assert_int_equal(pipe(ends), 0);
    close(ends[0]);
    assert_int_equal(fd_sink_new(NULL, ends[1], "pipe", true, &sink), 0);
    assert_int_equal(gpg_err_code(sink_write(sink, "x", 1)), GPG_ERR_EPIPE);
    sink_free(sink);
    assert_int_equal(fcntl(ends[1], F_GETFD), -1);
}

/* Reads slowly what the other thread writes, and compares. */
struct reader {
    int fd;
    size_t n;
};

static gpg_error_t read_slowly(void *arg)
{
    struct reader *reader = arg;
    static uint8_t part[5000];
    size_t got;
    for (size_t at = 0; at < reader->n; at += got) {
        gpg_error_t error = fd_read_full(reader->fd, part, sizeof part, &got);
        if (error || !got)
            return gpg_error(GPG_ERR_TRUNCATED);
        for (size_t i = 0; i < got; i++)
            if (part[i] != (uint8_t)((at + i) * 3))
                return gpg_error(GPG_ERR_BAD_DATA);
    }
    return fd_read_full(reader->fd, part, 1, &got) || got ? gpg_error(GPG_ERR_TOO_LARGE) : 0;
}

static void test_large_write_to_pipes_and_sockets(void **state)
{
    (void)state;
    enum { N = 1000003 };
    uint8_t *much = malloc(N);
    assert_non_null(much);
    for (size_t i = 0; i < N; i++)
        much[i] = (uint8_t)(i * 3);
    for (int kind = 0; kind < 4; kind++) {
        struct run *run = run_new();
        struct run_thread *thread;
        struct sink *sink;
        int ends[2];
        assert_int_equal(kind < 2 ? pipe(ends) : socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
        if (kind % 2)
            assert_int_equal(fcntl(ends[1], F_SETFL, O_NONBLOCK), 0);
        int flags = fcntl(ends[1], F_GETFL);
        struct reader reader = {ends[0], N};
        assert_int_equal(run_start(run, "reader", read_slowly, &reader, &thread), 0);
        assert_int_equal(fd_sink_new(run, ends[1], "pipe", false, &sink), 0);
        assert_int_equal(sink_write(sink, much, N), 0);
        assert_int_equal(sink_finish(sink), 0);
        sink_free(sink);
        assert_int_equal(fcntl(ends[1], F_GETFL), flags); /* shared with others: untouched */
        close(ends[1]);
        assert_int_equal(run_join(run, thread), 0);
        close(ends[0]);
        run_free(run);
    }
    free(much);
}

static gpg_error_t cancel_soon(void *arg)
{
    usleep(2000);
    run_cancel(arg, gpg_error(GPG_ERR_FULLY_CANCELED));
    return 0;
}

static void test_cancel_wakes(void **state)
{
    (void)state;
    static const uint8_t much[1 << 20];
    for (int kind = 0; kind < 4; kind++) {
        struct run *run = run_new();
        struct run_thread *thread;
        int ends[2];
        assert_int_equal(kind < 2 ? pipe(ends) : socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
        assert_int_equal(run_start(run, "canceller", cancel_soon, run, &thread), 0);
        if (kind % 2) {
            struct source *source;
            const void *lent;
            size_t n;
            assert_int_equal(fd_source_new(run, ends[0], "pipe", false, 0, &source), 0);
            assert_int_equal(gpg_err_code(source_peek(source, &lent, &n)), GPG_ERR_CANCELED);
            source_free(source);
        } else {
            struct sink *sink;
            assert_int_equal(fd_sink_new(run, ends[1], "pipe", false, &sink), 0);
            assert_int_equal(gpg_err_code(sink_write(sink, much, sizeof much)), GPG_ERR_CANCELED);
            sink_free(sink);
        }
        assert_int_equal(run_join(run, thread), 0);
        char sentence[FAILURE_SENTENCE_MAX];
        assert_int_equal(failure_get(run_failure(run), sentence), 0); /* a cancel needs no words */
        close(ends[0]);
        close(ends[1]);
        run_free(run);
    }
}

static void test_full(void **state)
{
    (void)state;
    uint8_t to[LENGTH];
    size_t got;
    int fd = pipe_of(30);
    assert_int_equal(fd_read_full(fd, to, LENGTH, &got), 0);
    assert_int_equal(got, 30);
    assert_memory_equal(to, bytes, 30);
    close(fd);
    assert_int_equal(gpg_err_code(fd_read_full(-1, to, 1, &got)), GPG_ERR_EBADF);
    assert_int_equal(gpg_err_code(fd_write_full(-1, to, 1)), GPG_ERR_EBADF);
    fd = file_of(0);
    assert_int_equal(fd_write_full(fd, bytes, LENGTH), 0);
    assert_int_equal(lseek(fd, 0, SEEK_END), LENGTH);
    close(fd);
}

static void test_whole_file(void **state)
{
    (void)state;
    static const size_t lengths[] = {0, 1, 4095, 4096, 4097, 8192, 20000};
    uint8_t *content = malloc(20000), *read;
    size_t n;
    struct failure failure;
    char sentence[FAILURE_SENTENCE_MAX], name[64];
    for (size_t i = 0; i < 20000; i++)
        content[i] = (uint8_t)(i * 5);
    for (size_t l = 0; l < ARRAY_SIZE(lengths); l++) {
        int fd = file_of(0);
        assert_int_equal(fd_write_full(fd, content, lengths[l]), 0);
        snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
        for (size_t more = 0; more < 2; more++) {
            assert_int_equal(file_read_whole(NULL, name, lengths[l] + more * 5000, &read, &n), 0);
            assert_int_equal(n, lengths[l]);
            assert_memory_equal(read, content, n);
            free(read);
        }
        if (lengths[l])
            assert_int_equal(gpg_err_code(file_read_whole(NULL, name, lengths[l] - 1, &read, &n)), GPG_ERR_TOO_LARGE);
        close(fd);
    }
    free(content);
    failure_init(&failure);
    assert_int_equal(gpg_err_code(file_read_whole(&failure, "/nonexistent/x", 9, &read, &n)), GPG_ERR_ENOENT);
    failure_get(&failure, sentence);
    assert_string_equal(sentence, "cannot open '/nonexistent/x': No such file or directory");
    failure_destroy(&failure);
    assert_int_equal(gpg_err_code(file_read_whole(NULL, "/dev/zero", 9, &read, &n)), GPG_ERR_TOO_LARGE);
    assert_int_equal(gpg_err_code(file_read_whole(NULL, "/tmp", 9, &read, &n)), GPG_ERR_EISDIR);
}

/* A pipe holds more behind either end, what is in it stays there, and a larger one is left as it is. */
static void test_wide_pipes(void **state)
{
    (void)state;
    for (unsigned reads = 0; reads < 2; reads++)
        for (int size = 4096; size <= 1 << 20; size *= 16) {
            int ends[2];
            struct source *source = NULL;
            struct sink *sink = NULL;
            uint8_t back[LENGTH];
            size_t got;
            assert_int_equal(pipe(ends), 0);
            const int given = fcntl(ends[1], F_SETPIPE_SZ, size); /* -1: more than this system lets us have */
            assert_int_equal(write(ends[1], bytes, LENGTH), LENGTH);
            if (reads)
                assert_int_equal(fd_source_new(NULL, ends[0], "x", false, 0, &source), 0);
            else
                assert_int_equal(fd_sink_new(NULL, ends[1], "x", false, &sink), 0);
            const int got_size = fcntl(ends[0], F_GETPIPE_SZ);
            if (given > 512 * 1024)
                assert_int_equal(got_size, given);
            else if (given >= 0)
                assert_true(got_size == 512 * 1024 || fcntl(ends[1], F_SETPIPE_SZ, 512 * 1024) < 0);
            if (reads)
                assert_int_equal(source_read(source, back, LENGTH, &got), 0);
            else
                assert_int_equal(read(ends[0], back, LENGTH), LENGTH);
            assert_memory_equal(back, bytes, LENGTH);
            source_free(source);
            sink_free(sink);
            close(ends[0]);
            close(ends[1]);
        }
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    for (size_t i = 0; i < LENGTH; i++)
        bytes[i] = (uint8_t)(i + 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read_and_skip), cmocka_unit_test(test_seek),
        cmocka_unit_test(test_pump),          cmocka_unit_test(test_little_writes),
        cmocka_unit_test(test_not_closed),    cmocka_unit_test(test_read_error),
        cmocka_unit_test(test_write_error),   cmocka_unit_test(test_large_write_to_pipes_and_sockets),
        cmocka_unit_test(test_cancel_wakes),  cmocka_unit_test(test_full),
        cmocka_unit_test(test_whole_file),    cmocka_unit_test(test_wide_pipes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
