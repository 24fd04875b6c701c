/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "deflated.h"

#include <zlib.h>

/* zlib itself reads what we write. */
static void check_with_zlib(enum compress_algo algo, const struct gathered *out, const uint8_t *bytes, size_t n)
{
    z_stream zlib = {0};
    uint8_t *back = malloc(n + 1);
    assert_non_null(back);
    assert_int_equal(inflateInit2(&zlib, algo == COMPRESS_ZLIB ? 15 : -15), Z_OK);
    zlib.next_in = out->bytes;
    zlib.avail_in = (uInt)out->n;
    zlib.next_out = back;
    zlib.avail_out = (uInt)n + 1;
    assert_int_equal(inflate(&zlib, Z_FINISH), Z_STREAM_END);
    assert_int_equal(zlib.avail_in, 0);
    assert_int_equal(zlib.avail_out, 1);
    assert_memory_equal(back, bytes, n);
    inflateEnd(&zlib);
    free(back);
}

static const size_t lengths[] = {0,
                                 1,
                                 2,
                                 63,
                                 64,
                                 65,
                                 20000,
                                 DEFLATE_BLOCK_SIZE - 1,
                                 DEFLATE_BLOCK_SIZE,
                                 DEFLATE_BLOCK_SIZE + 1,
                                 3 * DEFLATE_BLOCK_SIZE + 12345};
static void lengths_contents_levels(void **state)
{
    static const int levels[] = {-1, 0, 1, 2, 3, 4, 6, 9};
    uint8_t *bytes = malloc(LENGTH_MAX);
    (void)state;
    assert_non_null(bytes);
    for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
        for (unsigned content = 0; content < CONTENTS; content++) {
            fill(bytes, lengths[i], content);
            for (size_t j = 0; j < ARRAY_SIZE(levels); j++) {
                enum compress_algo algo = j & 1 ? COMPRESS_ZIP : COMPRESS_ZLIB;
                struct gathered out, back;
                compress_to(NULL, algo, levels[j], 0, bytes, lengths[i], 70001, &out);
                check_with_zlib(algo, &out, bytes, lengths[i]);
                assert_int_equal(expand(algo, out.bytes, out.n, 50001, &back), 0);
                check_content(&back, bytes, lengths[i]);
                assert_true(out.n <= lengths[i] + 32 * (lengths[i] / DEFLATE_BLOCK_SIZE + 1));
                if (levels[j] && lengths[i] >= 20000 && (content == TEXT || content == ZEROS))
                    assert_true(out.n < lengths[i] / 3);
                gathered_clear(&back);
                gathered_clear(&out);
            }
        }
    }
    free(bytes);
}

static void bytes_do_not_depend_on_workers(void **state)
{
    static const int levels[] = {-1, 1, 3, 6};
    uint8_t *bytes = malloc(LENGTH_MAX);
    struct run *run = run_new();
    (void)state;
    assert_non_null(bytes);
    assert_non_null(run);
    run_set_processors(run, 4);
    for (size_t i = 0; i < ARRAY_SIZE(lengths); i++)
        for (size_t j = 0; j < ARRAY_SIZE(levels); j++) {
            struct gathered alone, out;
            fill(bytes, lengths[i], MIXED);
            for (size_t at = 5000; at + 9000 < lengths[i]; at += 20000) /* so that there are short segments */
                fill_random(bytes + at, 9000, at);
            compress_to(NULL, COMPRESS_ZLIB, levels[j], 0, bytes, lengths[i], 0, &alone);
            for (unsigned workers = 1; workers < 5; workers++) {
                compress_to(run, COMPRESS_ZLIB, levels[j], workers, bytes, lengths[i], 9999 * workers, &out);
                check_content(&out, alone.bytes, alone.n);
                gathered_clear(&out);
            }
            gathered_clear(&alone);
        }
    run_free(run);
    free(bytes);
}

/* Bytes that are all equally frequent but come again are not taken for random ones. */
static void ramp_is_compressed(void **state)
{
    static uint8_t bytes[DEFLATE_BLOCK_SIZE];
    struct gathered out;
    (void)state;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)i;
    compress_to(NULL, COMPRESS_ZIP, -1, 0, bytes, sizeof bytes, 0, &out);
    assert_true(out.n < sizeof bytes / 20);
    gathered_clear(&out);
}

static bool contains(const struct gathered *out, const uint8_t *bytes, size_t n)
{
    return memmem(out->bytes, out->n, bytes, n);
}

/* Files that cannot be made smaller are stored where they stand between text, which is deflated all the same. */
static void dense_files_are_stored(void **state)
{
    static const int levels[] = {1, 2, 3, 6, 9};
    static const size_t sizes[] = {9000, 20000, 70000, 300000};
    (void)state;
    uint8_t *bytes = malloc(LENGTH_MAX);
    assert_non_null(bytes);
    for (size_t i = 0; i < ARRAY_SIZE(levels); i++)
        for (size_t j = 0; j < ARRAY_SIZE(sizes); j++) {
            const size_t n = LENGTH_MAX, size = sizes[j];
            struct gathered out, back;
            size_t dense = 0;
            fill(bytes, n, TEXT);
            for (size_t at = 10000; at + size <= n; at += 3 * size, dense += size)
                fill_random(bytes + at, size, at);
            compress_to(NULL, COMPRESS_ZLIB, levels[i], 0, bytes, n, 0, &out);
            check_with_zlib(COMPRESS_ZLIB, &out, bytes, n);
            assert_int_equal(expand(COMPRESS_ZLIB, out.bytes, out.n, 0, &back), 0);
            check_content(&back, bytes, n);
            assert_true(out.n < dense + (n - dense) / 3);
            /* Away from its ends, the parts of the deflate block and the ends of spans. */
            assert_true(contains(&out, bytes + 10000 + 4096, 200));
            gathered_clear(&back);
            gathered_clear(&out);
        }
    free(bytes);
}

/* Base64 and octets that use three quarters of the values can be made smaller, if by little, and are. */
static void nearly_dense_is_deflated(void **state)
{
    (void)state;
    for (unsigned values = 64; values <= 224; values += 32) {
        uint8_t bytes[DEFLATE_BLOCK_SIZE];
        struct gathered out;
        fill_random(bytes, sizeof bytes, values);
        for (size_t i = 0; i < sizeof bytes; i++)
            bytes[i] = (uint8_t)(bytes[i] * values / 256);
        compress_to(NULL, COMPRESS_ZIP, -1, 0, bytes, sizeof bytes, 0, &out);
        /* bits of an octet out of 192 values: 7.58 */
        if (values <= 192)
            assert_true(out.n < sizeof bytes - sizeof bytes / 25);
        check_with_zlib(COMPRESS_ZIP, &out, bytes, sizeof bytes);
        gathered_clear(&out);
    }
}

static void sink_fails(void **state)
{
    uint8_t *bytes = malloc(LENGTH_MAX);
    (void)state;
    assert_non_null(bytes);
    fill(bytes, LENGTH_MAX, TEXT);
    for (unsigned workers = 0; workers < 3; workers++) {
        struct gathered out;
        compress_to(NULL, COMPRESS_ZIP, -1, 0, bytes, LENGTH_MAX, 0, &out);
        size_t n = out.n;
        gathered_clear(&out);
        for (size_t at = 0; at < n; at += n / 7) {
            struct run *run = run_new();
            struct sink *sink;
            assert_non_null(run);
            struct gathered some;
            assert_int_equal(deflate_sink_new(run, COMPRESS_ZIP, -1, workers, NULL, faulty_sink_new(&some, at), &sink),
                             0);
            assert_int_not_equal(push(sink, bytes, LENGTH_MAX, 100000), 0);
            assert_int_equal(some.finished, 0);
            assert_int_equal(some.freed, 1);
            gathered_clear(&some);
            run_free(run);
        }
    }
    free(bytes);
}

static void refuses_arguments(void **state)
{
    struct gathered out;
    struct sink *sink;
    (void)state;
    assert_int_equal(
        gpg_err_code(deflate_sink_new(NULL, COMPRESS_BZIP2, 1, 0, NULL, faulty_sink_new(&out, SIZE_MAX), &sink)),
        GPG_ERR_INV_ARG);
    assert_int_equal(out.freed, 1);
    assert_int_equal(
        gpg_err_code(deflate_sink_new(NULL, COMPRESS_ZIP, 10, 0, NULL, faulty_sink_new(&out, SIZE_MAX), &sink)),
        GPG_ERR_INV_ARG);
    assert_int_equal(
        gpg_err_code(deflate_sink_new(NULL, COMPRESS_ZIP, 1, 2, NULL, faulty_sink_new(&out, SIZE_MAX), &sink)),
        GPG_ERR_INV_ARG);
    assert_int_equal(out.freed, 1);
}

/* Pages that all begin with something random are not random. */
static void pages_are_deflated(void **state)
{
    static uint8_t bytes[DEFLATE_BLOCK_SIZE];
    struct gathered out;
    (void)state;
    fill_text(bytes, sizeof bytes, 5);
    for (size_t at = 0; at + 1000 <= sizeof bytes; at += 4096)
        fill_random(bytes + at, 1000, at);
    compress_to(NULL, COMPRESS_ZIP, -1, 0, bytes, sizeof bytes, 0, &out);
    check_with_zlib(COMPRESS_ZIP, &out, bytes, sizeof bytes);
    assert_true(out.n < sizeof bytes / 2);
    gathered_clear(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lengths_contents_levels),
        cmocka_unit_test(bytes_do_not_depend_on_workers),
        cmocka_unit_test(ramp_is_compressed),
        cmocka_unit_test(dense_files_are_stored),
        cmocka_unit_test(nearly_dense_is_deflated),
        cmocka_unit_test(pages_are_deflated),
        cmocka_unit_test(sink_fails),
        cmocka_unit_test(refuses_arguments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
