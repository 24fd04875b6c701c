/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "faulty.h"

#include "pgp/deflate.h"

#include <zlib.h>

static void compress_to(struct run *run, enum compress_algo algo, int level, unsigned workers, const uint8_t *bytes,
                        size_t n, size_t step, struct gathered *ret)
{
    struct sink *sink;
    assert_int_equal(deflate_sink_new(run, algo, level, workers, NULL, faulty_sink_new(ret, SIZE_MAX), &sink), 0);
    assert_int_equal(push(sink, bytes, n, step), 0);
    assert_int_equal(ret->finished, 1);
    assert_int_equal(ret->freed, 1);
}

static gpg_error_t expand(enum compress_algo algo, const uint8_t *bytes, size_t n, size_t step, struct gathered *ret)
{
    struct source *body = faulty_source_new(bytes, n, step, SIZE_MAX), *source;
    assert_int_equal(inflate_source_new(NULL, algo, body, &source), 0);
    gpg_error_t error = pull(source, ret);
    source_free(body);
    return error;
}

static void check_content(const struct gathered *got, const uint8_t *bytes, size_t n)
{
    assert_int_equal(got->n, n);
    if (n)
        assert_memory_equal(got->bytes, bytes, n);
}

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

/* Text, random bytes, zeros, and all of them by turns. */
enum content { TEXT, RANDOM, ZEROS, MIXED, CONTENTS };

static void fill(uint8_t *bytes, size_t n, enum content content)
{
    if (content == TEXT)
        fill_text(bytes, n, n);
    else if (content == RANDOM)
        fill_random(bytes, n, n);
    else
        memset(bytes, 0, n);
    for (size_t at = 0, turn = 0; content == MIXED && at < n; at += 100000, turn++)
        fill(bytes + at, n - at < 100000 ? n - at : 100000, turn % 3);
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
#define LENGTH_MAX (3 * DEFLATE_BLOCK_SIZE + 12345)

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
    uint8_t *bytes = malloc(LENGTH_MAX);
    struct run *run = run_new();
    (void)state;
    assert_non_null(bytes);
    assert_non_null(run);
    for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
        struct gathered alone, out;
        fill(bytes, lengths[i], MIXED);
        compress_to(NULL, COMPRESS_ZLIB, -1, 0, bytes, lengths[i], 0, &alone);
        for (unsigned workers = 1; workers < 5; workers++) {
            compress_to(run, COMPRESS_ZLIB, -1, workers, bytes, lengths[i], 9999 * workers, &out);
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

/* Base64 and bytes that use seven eighths of the values can be made smaller, if by little, and are. */
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

static void steps_of_reading(void **state)
{
    static const size_t steps[] = {1, 2, 3, 7, 100, 1000};
    enum { N = 150000 };
    uint8_t *bytes = malloc(N);
    (void)state;
    assert_non_null(bytes);
    for (unsigned content = 0; content < CONTENTS; content++) {
        for (unsigned algo = COMPRESS_ZIP; algo <= COMPRESS_ZLIB; algo++) {
            struct gathered out, back;
            fill(bytes, N, content);
            compress_to(NULL, algo, 6, 0, bytes, N, 0, &out);
            for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
                assert_int_equal(expand(algo, out.bytes, out.n, steps[i], &back), 0);
                check_content(&back, bytes, N);
                gathered_clear(&back);
            }
            gathered_clear(&out);
        }
    }
    free(bytes);
}

/* Read straight into blocks, small and large ones by turns with peeks. */
static void read_into_blocks(void **state)
{
    static const size_t blocks[] = {1, 1000, 131071, 131072, 200000, 262145, LENGTH_MAX};
    uint8_t *bytes = malloc(LENGTH_MAX), *back = malloc(LENGTH_MAX + 1);
    (void)state;
    assert_non_null(bytes);
    assert_non_null(back);
    fill(bytes, LENGTH_MAX, MIXED);
    for (unsigned algo = COMPRESS_ZIP; algo <= COMPRESS_ZLIB; algo++) {
        struct gathered out;
        compress_to(NULL, algo, 6, 0, bytes, LENGTH_MAX, 0, &out);
        for (size_t i = 0; i < ARRAY_SIZE(blocks); i++)
            for (size_t j = 0; j < ARRAY_SIZE(blocks); j++) {
                struct source *body = faulty_source_new(out.bytes, out.n, 70001, SIZE_MAX), *source;
                const void *lent;
                size_t at = 0, got = 1, n;
                assert_int_equal(inflate_source_new(NULL, algo, body, &source), 0);
                for (unsigned turn = 0; got && turn < 100; turn++) {
                    size_t most = blocks[turn % 2 ? i : j];
                    most = most < LENGTH_MAX + 1 - at ? most : LENGTH_MAX + 1 - at;
                    if (turn % 5 == 4)
                        assert_int_equal(source_peek(source, &lent, &n), 0);
                    assert_int_equal(source_read(source, back + at, most, &got), 0);
                    at += got;
                }
                assert_memory_equal(back, bytes, at);
                assert_true(got || at == LENGTH_MAX);
                assert_int_equal(source_finish(source), 0);
                source_free(source);
                source_free(body);
            }
        gathered_clear(&out);
    }
    free(back);
    free(bytes);
}

/* Cut at every byte, with every byte appended, failing at every byte. */
static void cut_appended_failing(void **state)
{
    uint8_t bytes[3000];
    (void)state;
    fill_text(bytes, 2000, 1);
    fill_random(bytes + 2000, 1000, 1);
    for (unsigned algo = COMPRESS_ZIP; algo <= COMPRESS_ZLIB; algo++) {
        for (int level = 0; level < 7; level += 3) {
            struct gathered out, back;
            compress_to(NULL, algo, level, 0, bytes, sizeof bytes, 0, &out);
            for (size_t at = 0; at < out.n; at++) {
                size_t step = at % 3 ? 100 : 1;
                assert_int_equal(gpg_err_code(expand(algo, out.bytes, at, step, &back)), GPG_ERR_TRUNCATED);
                assert_true(back.n <= sizeof bytes);
                if (back.n)
                    assert_memory_equal(back.bytes, bytes, back.n);
                gathered_clear(&back);
                struct source *body = faulty_source_new(out.bytes, out.n, step, at), *source;
                assert_int_equal(inflate_source_new(NULL, algo, body, &source), 0);
                assert_int_equal(gpg_err_code(pull(source, &back)), FAULT);
                source_free(body);
                gathered_clear(&back);
            }
            uint8_t *longer = malloc(out.n + 20);
            assert_non_null(longer);
            memcpy(longer, out.bytes, out.n);
            memset(longer + out.n, 0, 20);
            for (size_t more = 1; more <= 20; more++) {
                for (size_t step = 1; step < 4000; step += 999) {
                    gpg_error_t error = expand(algo, longer, out.n + more, step, &back);
                    if (algo == COMPRESS_ZIP) { /* padding, as Sequoia makes it */
                        assert_int_equal(error, 0);
                        assert_int_equal(back.n, sizeof bytes);
                        assert_memory_equal(back.bytes, bytes, sizeof bytes);
                    } else {
                        assert_int_equal(gpg_err_code(error), GPG_ERR_COMPR_FAILED);
                    }
                    gathered_clear(&back);
                }
            }
            free(longer);
            gathered_clear(&out);
        }
    }
}

/* Every bit flipped: an error or other data, no more; with a checksum an error, always. */
static void flipped(void **state)
{
    uint8_t bytes[700];
    (void)state;
    fill_text(bytes, sizeof bytes, 1);
    for (unsigned algo = COMPRESS_ZIP; algo <= COMPRESS_ZLIB; algo++) {
        struct gathered out, back;
        compress_to(NULL, algo, 6, 0, bytes, sizeof bytes, 0, &out);
        for (size_t bit = 0; bit < 8 * out.n; bit++) {
            out.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
            gpg_error_t error = expand(algo, out.bytes, out.n, 0, &back);
            out.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
            if (algo == COMPRESS_ZLIB)
                assert_int_not_equal(error, 0);
            gathered_clear(&back);
        }
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
    struct source *source;
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
    assert_int_equal(gpg_err_code(inflate_source_new(NULL, COMPRESS_BZIP2, NULL, &source)), GPG_ERR_COMPR_ALGO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lengths_contents_levels),
        cmocka_unit_test(bytes_do_not_depend_on_workers),
        cmocka_unit_test(ramp_is_compressed),
        cmocka_unit_test(dense_files_are_stored),
        cmocka_unit_test(nearly_dense_is_deflated),
        cmocka_unit_test(steps_of_reading),
        cmocka_unit_test(read_into_blocks),
        cmocka_unit_test(cut_appended_failing),
        cmocka_unit_test(flipped),
        cmocka_unit_test(sink_fails),
        cmocka_unit_test(refuses_arguments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
