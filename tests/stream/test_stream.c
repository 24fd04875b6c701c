/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "stream/stream.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* Implementations that count how they are called, and fail when told to. */
struct counter {
    struct sink sink;
    struct source source;
    gpg_error_t write_error, finish_error, peek_error, skip_error;
    size_t writes, finishes, peeks, skips, reads, frees;
};

static gpg_error_t count_write(struct sink *sink, const void *bytes, size_t n)
{
    struct counter *counter = CONTAINER(sink, struct counter, sink);
    assert_true(bytes && n);
    counter->writes++;
    return counter->write_error;
}

static gpg_error_t count_sink_finish(struct sink *sink)
{
    struct counter *counter = CONTAINER(sink, struct counter, sink);
    counter->finishes++;
    return counter->finish_error;
}

static void count_sink_free(struct sink *sink)
{
    CONTAINER(sink, struct counter, sink)->frees++;
}

static gpg_error_t count_peek(struct source *source, const void **ret_bytes, size_t *ret_n)
{
    struct counter *counter = CONTAINER(source, struct counter, source);
    counter->peeks++;
    *ret_bytes = "abc";
    *ret_n = 3;
    return counter->peek_error;
}

static void count_consume(struct source *source, size_t n)
{
    (void)source;
    assert_true(n > 0);
}

static gpg_error_t count_skip(struct source *source, uint64_t n)
{
    struct counter *counter = CONTAINER(source, struct counter, source);
    assert_true(n > 0);
    counter->skips++;
    return counter->skip_error;
}

static gpg_error_t count_read(struct source *source, void *to, size_t n, size_t *ret_got)
{
    struct counter *counter = CONTAINER(source, struct counter, source);
    counter->reads++;
    *ret_got = counter->reads > 3 ? 0 : n < 2 ? n : 2;
    memset(to, 'r', *ret_got);
    return counter->peek_error;
}

static gpg_error_t count_source_finish(struct source *source)
{
    struct counter *counter = CONTAINER(source, struct counter, source);
    counter->finishes++;
    return counter->finish_error;
}

static void count_source_free(struct source *source)
{
    CONTAINER(source, struct counter, source)->frees++;
}

static const struct sink_ops count_sink_ops = {
    .write = count_write, .finish = count_sink_finish, .free = count_sink_free};
static const struct source_ops count_source_ops = {
    .peek = count_peek, .consume = count_consume, .finish = count_source_finish, .free = count_source_free};
static const struct source_ops count_full_ops = {.peek = count_peek,
                                                 .consume = count_consume,
                                                 .read = count_read,
                                                 .skip = count_skip,
                                                 .finish = count_source_finish,
                                                 .free = count_source_free};

static void test_sink_contract(void **state)
{
    (void)state;
    struct counter counter = {0};
    sink_init(&counter.sink, &count_sink_ops);
    assert_int_equal(sink_write(&counter.sink, NULL, 0), 0);
    assert_int_equal(counter.writes, 0);
    assert_int_equal(sink_write(&counter.sink, "a", 1), 0);
    assert_int_equal(sink_finish(&counter.sink), 0);
    assert_int_equal(sink_finish(&counter.sink), 0);
    assert_int_equal(counter.finishes, 1);
    assert_int_equal(gpg_err_code(sink_write(&counter.sink, "a", 1)), GPG_ERR_INV_STATE);
    assert_int_equal(counter.writes, 1);

    counter = (struct counter){.write_error = gpg_error(GPG_ERR_EIO)};
    sink_init(&counter.sink, &count_sink_ops);
    for (int i = 0; i < 2; i++)
        assert_int_equal(gpg_err_code(sink_write(&counter.sink, "a", 1)), GPG_ERR_EIO);
    assert_int_equal(gpg_err_code(sink_finish(&counter.sink)), GPG_ERR_EIO);
    assert_int_equal(counter.writes, 1);
    assert_int_equal(counter.finishes, 0);

    counter = (struct counter){.finish_error = gpg_error(GPG_ERR_ENOSPC)};
    sink_init(&counter.sink, &count_sink_ops);
    for (int i = 0; i < 2; i++)
        assert_int_equal(gpg_err_code(sink_finish(&counter.sink)), GPG_ERR_ENOSPC);
    assert_int_equal(counter.finishes, 1);
    sink_free(&counter.sink);
    assert_int_equal(counter.frees, 1);
    sink_free(NULL);
}

struct lending_sink {
    struct sink sink;
    uint8_t bytes[4];
    size_t n;
};

static gpg_error_t lend_room(struct sink *sink, void **ret_room, size_t *ret_n)
{
    struct lending_sink *self = CONTAINER(sink, struct lending_sink, sink);
    if (self->n == sizeof self->bytes)
        return gpg_error(GPG_ERR_ENOSPC);
    *ret_room = self->bytes + self->n;
    *ret_n = sizeof self->bytes - self->n;
    return 0;
}

static gpg_error_t lend_filled(struct sink *sink, size_t n)
{
    CONTAINER(sink, struct lending_sink, sink)->n += n;
    return 0;
}

static const struct sink_ops lending_ops = {
    .write = count_write, .room = lend_room, .filled = lend_filled, .finish = count_sink_finish};

static void test_room(void **state)
{
    (void)state;
    struct counter counter = {0};
    void *room;
    size_t n = 1;
    sink_init(&counter.sink, &count_sink_ops);
    assert_int_equal(sink_room(&counter.sink, &room, &n), 0); /* it lends none */
    assert_int_equal(n, 0);
    assert_int_equal(sink_filled(&counter.sink, 0), 0);

    struct lending_sink lending = {.n = 0};
    sink_init(&lending.sink, &lending_ops);
    for (size_t left = 4; left; left--) {
        assert_int_equal(sink_room(&lending.sink, &room, &n), 0);
        assert_int_equal(n, left);
        memset(room, (int)left, n);
        assert_int_equal(sink_filled(&lending.sink, 1), 0);
        assert_int_equal(sink_filled(&lending.sink, 0), 0);
    }
    assert_memory_equal(lending.bytes, "\4\3\2\1", 4);
    assert_int_equal(gpg_err_code(sink_room(&lending.sink, &room, &n)), GPG_ERR_ENOSPC);
    assert_int_equal(gpg_err_code(sink_filled(&lending.sink, 1)), GPG_ERR_ENOSPC);
    assert_int_equal(gpg_err_code(sink_finish(&lending.sink)), GPG_ERR_ENOSPC);
    assert_int_equal(lending.n, 4);

    sink_init(&counter.sink, &count_sink_ops);
    assert_int_equal(sink_finish(&counter.sink), 0);
    assert_int_equal(gpg_err_code(sink_room(&counter.sink, &room, &n)), GPG_ERR_INV_STATE);
}

static gpg_error_t settle_ok(struct sink *sink)
{
    CONTAINER(sink, struct lending_sink, sink)->n++;
    return 0;
}

static const struct sink_ops settling_ops = {.write = count_write, .settle = settle_ok, .finish = count_sink_finish};

static void test_settle(void **state)
{
    (void)state;
    struct counter counter = {0};
    sink_init(&counter.sink, &count_sink_ops);
    assert_int_equal(gpg_err_code(sink_settle(&counter.sink)), GPG_ERR_NOT_IMPLEMENTED);
    assert_int_equal(gpg_err_code(sink_write(&counter.sink, "a", 1)), GPG_ERR_NOT_IMPLEMENTED); /* an error sticks */
    struct lending_sink settling = {.n = 0};
    sink_init(&settling.sink, &settling_ops);
    assert_int_equal(sink_settle(&settling.sink), 0);
    assert_int_equal(settling.n, 1);
    sink_init(&counter.sink, &count_sink_ops);
    assert_int_equal(sink_finish(&counter.sink), 0);
    assert_int_equal(gpg_err_code(sink_settle(&counter.sink)), GPG_ERR_INV_STATE);
}

static void test_source_contract(void **state)
{
    (void)state;
    const void *bytes;
    size_t n;
    struct counter counter = {0};
    source_init(&counter.source, &count_source_ops);
    assert_int_equal(source_peek(&counter.source, &bytes, &n), 0);
    assert_int_equal(n, 3);
    source_consume(&counter.source, 0);
    assert_int_equal(source_finish(&counter.source), 0);
    assert_int_equal(source_finish(&counter.source), 0);
    assert_int_equal(counter.finishes, 1);
    assert_int_equal(gpg_err_code(source_peek(&counter.source, &bytes, &n)), GPG_ERR_INV_STATE);
    assert_int_equal(gpg_err_code(source_skip(&counter.source, 1)), GPG_ERR_INV_STATE);
    char byte;
    assert_int_equal(gpg_err_code(source_read(&counter.source, &byte, 1, &n)), GPG_ERR_INV_STATE);

    counter = (struct counter){.peek_error = gpg_error(GPG_ERR_CHECKSUM)};
    source_init(&counter.source, &count_source_ops);
    n = 77;
    for (int i = 0; i < 2; i++)
        assert_int_equal(gpg_err_code(source_peek(&counter.source, &bytes, &n)), GPG_ERR_CHECKSUM);
    assert_int_equal(n, 77); /* written only on success */
    assert_int_equal(gpg_err_code(source_finish(&counter.source)), GPG_ERR_CHECKSUM);
    assert_int_equal(counter.peeks, 1);
    assert_int_equal(counter.finishes, 0);
    source_free(&counter.source);
    assert_int_equal(counter.frees, 1);
    source_free(NULL);
}

static void test_optional_operations(void **state)
{
    (void)state;
    struct counter counter = {.skip_error = gpg_error(GPG_ERR_TRUNCATED)};
    char bytes[16];
    size_t got;
    source_init(&counter.source, &count_full_ops);
    assert_int_equal(source_read(&counter.source, bytes, 3, &got), 0);
    assert_int_equal(got, 3);
    assert_int_equal(counter.reads, 2);
    assert_int_equal(source_read(&counter.source, bytes, 16, &got), 0);
    assert_int_equal(got, 2); /* then came the end */
    assert_int_equal(counter.peeks, 0);
    assert_false(counter.source.skipped);
    assert_int_equal(gpg_err_code(source_skip(&counter.source, 5)), GPG_ERR_TRUNCATED);
    assert_true(counter.source.skipped);
    assert_int_equal(gpg_err_code(source_skip(&counter.source, 5)), GPG_ERR_TRUNCATED);
    assert_int_equal(counter.skips, 1);

    counter = (struct counter){.peek_error = gpg_error(GPG_ERR_EIO)};
    source_init(&counter.source, &count_full_ops);
    got = 5;
    assert_int_equal(gpg_err_code(source_read(&counter.source, bytes, 3, &got)), GPG_ERR_EIO);
    assert_int_equal(got, 0);
    assert_int_equal(gpg_err_code(source_read(&counter.source, bytes, 3, &got)), GPG_ERR_EIO);
    assert_int_equal(counter.reads, 1);
}

static void test_skip_and_read(void **state)
{
    (void)state;
    uint8_t bytes[40], to[64];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)i;
    for (size_t n = 0; n <= sizeof bytes; n++)
        for (size_t step = 0; step < 9; step++)
            for (size_t skip = 0; skip <= n + 1; skip++) {
                struct source *source = memory_source_new(bytes, n, step);
                gpg_error_t error = source_skip(source, skip);
                size_t got = 99;
                if (skip > n) {
                    assert_int_equal(gpg_err_code(error), GPG_ERR_TRUNCATED);
                    assert_int_equal(gpg_err_code(source_read(source, to, 1, &got)), GPG_ERR_TRUNCATED);
                    assert_int_equal(got, 0);
                } else {
                    assert_int_equal(error, 0);
                    assert_int_equal(source_read(source, to, 7, &got), 0);
                    size_t left = n - skip;
                    assert_int_equal(got, left < 7 ? left : 7);
                    assert_memory_equal(to, bytes + skip, got);
                    assert_int_equal(source_finish(source), 0);
                }
                assert_false(source->skipped);
                source_free(source);
            }
}

static void test_pump_and_limit(void **state)
{
    (void)state;
    static uint8_t bytes[3000];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(i * 11);
    static const size_t steps[] = {0, 1, 7, 256, 257, 2999};
    for (size_t n = 0; n <= sizeof bytes; n += n < 5 ? 1 : 599)
        for (size_t s = 0; s < ARRAY_SIZE(steps); s++)
            for (int room = 0; room < 2; room++) {
                size_t limit = room || !n ? n : n - 1, got;
                uint64_t moved = 99;
                struct source *source = memory_source_new(bytes, n, steps[s]);
                struct sink *sink = memory_sink_new(limit);
                gpg_error_t error = pump(source, sink, &moved);
                const uint8_t *out = memory_sink_bytes(sink, &got);
                if (limit == n) {
                    assert_int_equal(error, 0);
                    assert_int_equal(got, n);
                    assert_int_equal(sink_finish(sink), 0);
                } else {
                    assert_int_equal(gpg_err_code(error), GPG_ERR_TOO_LARGE);
                    assert_true(got <= limit);
                }
                assert_int_equal(moved, got);
                assert_memory_equal(out, bytes, got);
                source_free(source);
                sink_free(sink);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_room),
        cmocka_unit_test(test_settle),
        cmocka_unit_test(test_sink_contract),
        cmocka_unit_test(test_source_contract),
        cmocka_unit_test(test_optional_operations),
        cmocka_unit_test(test_skip_and_read),
        cmocka_unit_test(test_pump_and_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
