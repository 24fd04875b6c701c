/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "archive/pack.h"
#include "archive/unpack.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define LONGEST ((size_t)9 << 20) /* more than one job of zstd's workers */

static uint8_t *content;

static int make_content(void **state)
{
    (void)state;
    content = malloc(LONGEST);
    if (!content)
        return -1;
    uint32_t x = 1;
    for (size_t i = 0; i < LONGEST; i++) {
        x = x * 1664525 + 1013904223;
        content[i] = (uint8_t)(i % 7 ? i / 1000 : x >> 24);
    }
    return 0;
}

static int free_content(void **state)
{
    (void)state;
    free(content);
    return 0;
}

/* The first N bytes of the content packed, written in steps of STEP. The caller frees the memory sink. */
static struct sink *packed(size_t n, size_t step, int level, unsigned threads);

/* A sink that lends another one's life: memory_sink is freed by the test and not by what is above it. */
struct borrow {
    struct sink sink;
    struct sink *below;
    size_t left; /* bytes until it fails */
};

static gpg_error_t borrow_write(struct sink *sink, const void *bytes, size_t n)
{
    struct borrow *borrow = CONTAINER(sink, struct borrow, sink);
    if (n > borrow->left)
        return gpg_error(GPG_ERR_ENOSPC);
    borrow->left -= n;
    return sink_write(borrow->below, bytes, n);
}

static gpg_error_t borrow_finish(struct sink *sink)
{
    (void)sink;
    return 0;
}

static void borrow_free(struct sink *sink)
{
    free(CONTAINER(sink, struct borrow, sink));
}

static struct sink *borrow_new(struct sink *below, size_t left)
{
    static const struct sink_ops ops = {.write = borrow_write, .finish = borrow_finish, .free = borrow_free};
    struct borrow *borrow = malloc(sizeof *borrow);
    assert_non_null(borrow);
    sink_init(&borrow->sink, &ops);
    borrow->below = below;
    borrow->left = left;
    return &borrow->sink;
}

static gpg_error_t write_steps(struct sink *sink, size_t n, size_t step)
{
    gpg_error_t err = 0;
    for (size_t at = 0; at < n && !err; at += step)
        err = sink_write(sink, content + at, at + step < n ? step : n - at);
    return err ? err : sink_finish(sink);
}

static struct sink *packed(size_t n, size_t step, int level, unsigned threads)
{
    struct sink *memory = memory_sink_new(2 * LONGEST), *pack = NULL;
    assert_non_null(memory);
    assert_int_equal(pack_sink_new(NULL, level, threads, borrow_new(memory, SIZE_MAX), &pack), 0);
    assert_int_equal(write_steps(pack, n, step), 0);
    sink_free(pack);
    return memory;
}

static void assert_unpacks(struct sink *memory, size_t n)
{
    size_t packed_n, got = 0;
    const uint8_t *bytes = memory_sink_bytes(memory, &packed_n);
    assert_string_equal(unpack_kind(bytes, packed_n), "zstd");
    struct source *source = memory_source_new(bytes, packed_n, 0), *unpack = NULL;
    struct feed feed;
    feed_init(&feed, source, NULL);
    assert_int_equal(unpack_source_new(&feed, NULL, "zstd", &unpack), 0);
    uint8_t *back = malloc(n + 1);
    assert_non_null(back);
    assert_int_equal(source_read(unpack, back, n + 1, &got), 0);
    assert_int_equal(got, n);
    assert_memory_equal(back, content, n);
    free(back);
    source_free(unpack);
    source_free(source);
}

static void test_round_trip(void **state)
{
    static const size_t lengths[] = {1, 511, 512, 10240, 300001, LONGEST};
    static const size_t steps[] = {1000, 262144, LONGEST};
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(lengths); i++)
        for (size_t j = 0; j < ARRAY_SIZE(steps); j++) {
            struct sink *memory = packed(lengths[i], steps[j], 3, 2);
            assert_unpacks(memory, lengths[i]);
            sink_free(memory);
        }
}

static void test_levels(void **state)
{
    static const int levels[] = {1, 9, 19, PACK_LEVEL_MAX};
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(levels); i++) {
        struct sink *memory = packed(300001, 262144, levels[i], 1);
        assert_unpacks(memory, 300001);
        sink_free(memory);
    }
}

static void test_bytes_do_not_depend_on_threads(void **state)
{
    size_t n, other_n;
    (void)state;
    struct sink *one = packed(LONGEST, 262144, 3, 1), *other = packed(LONGEST, 262144, 3, 3);
    const uint8_t *bytes = memory_sink_bytes(one, &n), *other_bytes = memory_sink_bytes(other, &other_n);
    assert_int_equal(n, other_n);
    assert_memory_equal(bytes, other_bytes, n);
    sink_free(one);
    sink_free(other);
}

/* The error of the sink below comes through, wherever it happens, and nothing is written behind it. */
static void test_failures_below(void **state)
{
    (void)state;
    size_t whole;
    struct sink *good = packed(300001, 10240, 3, 1);
    memory_sink_bytes(good, &whole);
    sink_free(good);
    for (size_t left = 0; left < whole; left += left < 64 ? 1 : 4099) {
        struct sink *memory = memory_sink_new(2 * LONGEST), *pack = NULL;
        assert_non_null(memory);
        gpg_error_t err = pack_sink_new(NULL, 3, 1, borrow_new(memory, left), &pack);
        if (!err)
            err = write_steps(pack, 300001, 10240);
        assert_int_equal(gpg_err_code(err), GPG_ERR_ENOSPC);
        sink_free(pack);
        size_t n;
        memory_sink_bytes(memory, &n);
        assert_true(n <= left);
        sink_free(memory);
    }
}

static void test_unfinished_is_no_sound_stream(void **state)
{
    struct sink *memory = memory_sink_new(2 * LONGEST), *pack = NULL;
    size_t n, got = 0;
    (void)state;
    assert_int_equal(pack_sink_new(NULL, 3, 1, borrow_new(memory, SIZE_MAX), &pack), 0);
    assert_int_equal(sink_write(pack, content, 300001), 0);
    sink_free(pack);
    const uint8_t *bytes = memory_sink_bytes(memory, &n);
    if (n >= 4) {
        struct source *source = memory_source_new(bytes, n, 0), *unpack = NULL;
        struct feed feed;
        feed_init(&feed, source, NULL);
        uint8_t *back = malloc(LONGEST);
        gpg_error_t err = unpack_source_new(&feed, NULL, "zstd", &unpack);
        if (!err)
            err = source_read(unpack, back, LONGEST, &got);
        assert_int_not_equal(err, 0);
        free(back);
        source_free(unpack);
        source_free(source);
    }
    sink_free(memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_levels),
        cmocka_unit_test(test_bytes_do_not_depend_on_threads),
        cmocka_unit_test(test_failures_below),
        cmocka_unit_test(test_unfinished_is_no_sound_stream),
    };
    return cmocka_run_group_tests(tests, make_content, free_content);
}
