/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "faulty.h"

#include "pgp/bzip2.h"

#include <bzlib.h>

#define PIECE      79972 /* of level 1 */
#define LENGTH_MAX (4 * PIECE + 1234)

static void compress_to(struct run *run, int level, unsigned workers, const uint8_t *bytes, size_t n, size_t step,
                        struct gathered *ret)
{
    struct sink *sink;
    assert_int_equal(bzip2_sink_new(run, level, workers, NULL, faulty_sink_new(ret, SIZE_MAX), &sink), 0);
    assert_int_equal(push(sink, bytes, n, step), 0);
    assert_int_equal(ret->finished, 1);
    assert_int_equal(ret->freed, 1);
}

static gpg_error_t expand(const uint8_t *bytes, size_t n, size_t step, struct gathered *ret)
{
    struct source *body = faulty_source_new(bytes, n, step, SIZE_MAX), *source;
    assert_int_equal(bunzip2_source_new(NULL, body, &source), 0);
    gpg_error_t error = pull(source, ret);
    source_free(body);
    return error;
}

/* Text, random bytes, zeros, and runs of four: what the first step of bzip2 makes longest. */
enum content { TEXT, RANDOM, ZEROS, FOURS, CONTENTS };

static void fill(uint8_t *bytes, size_t n, enum content content)
{
    if (content == TEXT)
        fill_text(bytes, n, n);
    else if (content == RANDOM)
        fill_random(bytes, n, n);
    else
        memset(bytes, 0, n);
    for (size_t i = 0; content == FOURS && i < n; i++)
        bytes[i] = (uint8_t)(i / 4);
}

static const size_t lengths[] = {0, 1, 2, 1000, PIECE - 1, PIECE, PIECE + 1, 2 * PIECE, LENGTH_MAX};

static void lengths_and_contents(void **state)
{
    uint8_t *bytes = malloc(LENGTH_MAX + 1), *back = malloc(LENGTH_MAX + 1);
    (void)state;
    assert_non_null(bytes);
    assert_non_null(back);
    for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
        for (unsigned content = 0; content < CONTENTS; content++) {
            struct gathered out, ours;
            unsigned n = LENGTH_MAX + 1;
            fill(bytes, lengths[i], content);
            compress_to(NULL, 1, 0, bytes, lengths[i], 7001, &out);
            /* libbz2 by itself, which stops at the end of a stream */
            assert_int_equal(BZ2_bzBuffToBuffDecompress((char *)back, &n, (char *)out.bytes, (unsigned)out.n, 0, 0),
                             BZ_OK);
            assert_int_equal(n, lengths[i]);
            assert_memory_equal(back, bytes, n);
            assert_int_equal(expand(out.bytes, out.n, 501, &ours), 0);
            assert_int_equal(ours.n, lengths[i]);
            if (ours.n)
                assert_memory_equal(ours.bytes, bytes, ours.n);
            gathered_clear(&ours);
            gathered_clear(&out);
        }
    }
    free(back);
    free(bytes);
}

static void levels_and_workers(void **state)
{
    enum { N = 2000000 };
    uint8_t *bytes = malloc(N);
    struct run *run = run_new();
    (void)state;
    assert_non_null(bytes);
    assert_non_null(run);
    fill(bytes, N, TEXT);
    static const int levels[] = {-1, 1, 6, 9};
    for (size_t i = 0; i < ARRAY_SIZE(levels); i++) {
        struct gathered alone, out;
        compress_to(NULL, levels[i], 0, bytes, N, 0, &alone);
        compress_to(run, levels[i], 3, bytes, N, 12345, &out);
        assert_int_equal(out.bytes[3], levels[i] == -1 ? '6' : '0' + levels[i]);
        assert_int_equal(out.n, alone.n);
        assert_memory_equal(out.bytes, alone.bytes, out.n);
        gathered_clear(&alone);
        assert_int_equal(expand(out.bytes, out.n, 0, &alone), 0);
        assert_int_equal(alone.n, N);
        assert_memory_equal(alone.bytes, bytes, N);
        gathered_clear(&alone);
        gathered_clear(&out);
    }
    run_free(run);
    free(bytes);
}

static void cut_appended_failing(void **state)
{
    uint8_t bytes[1500];
    struct gathered out, back;
    (void)state;
    fill(bytes, sizeof bytes, TEXT);
    compress_to(NULL, 1, 0, bytes, sizeof bytes, 0, &out);
    for (size_t at = 0; at < out.n; at++) {
        assert_int_equal(gpg_err_code(expand(out.bytes, at, 10, &back)), GPG_ERR_TRUNCATED);
        gathered_clear(&back);
        struct source *body = faulty_source_new(out.bytes, out.n, 10, at), *source;
        assert_int_equal(bunzip2_source_new(NULL, body, &source), 0);
        assert_int_equal(gpg_err_code(pull(source, &back)), FAULT);
        gathered_clear(&back);
        source_free(body);
    }
    uint8_t *twice = malloc(2 * out.n);
    assert_non_null(twice);
    memcpy(twice, out.bytes, out.n);
    memcpy(twice + out.n, out.bytes, out.n);
    for (size_t more = 1; more <= out.n; more++) {
        assert_int_equal(gpg_err_code(expand(twice, out.n + more, more % 2 ? 0 : 1, &back)), GPG_ERR_COMPR_FAILED);
        gathered_clear(&back);
    }
    free(twice);
    for (size_t bit = 0; bit < 8 * out.n - 8; bit++) {
        out.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        gpg_error_t error = expand(out.bytes, out.n, 0, &back);
        out.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        /* a larger or smaller block size in the header does no harm where the block fits */
        if (bit / 8 != 3)
            assert_int_not_equal(error, 0);
        gathered_clear(&back);
    }
    gathered_clear(&out);
}

static void sink_fails(void **state)
{
    uint8_t *bytes = malloc(LENGTH_MAX);
    (void)state;
    assert_non_null(bytes);
    fill(bytes, LENGTH_MAX, RANDOM);
    for (unsigned workers = 0; workers < 3; workers++) {
        for (size_t at = 0; at < LENGTH_MAX; at += LENGTH_MAX / 5) {
            struct run *run = run_new();
            struct gathered some;
            struct sink *sink;
            assert_non_null(run);
            assert_int_equal(bzip2_sink_new(run, 1, workers, NULL, faulty_sink_new(&some, at), &sink), 0);
            assert_int_not_equal(push(sink, bytes, LENGTH_MAX, 100000), 0);
            assert_int_equal(some.finished, 0);
            assert_int_equal(some.freed, 1);
            gathered_clear(&some);
            run_free(run);
        }
    }
    struct gathered out;
    struct sink *sink;
    assert_int_equal(gpg_err_code(bzip2_sink_new(NULL, 0, 0, NULL, faulty_sink_new(&out, SIZE_MAX), &sink)),
                     GPG_ERR_INV_ARG);
    assert_int_equal(out.freed, 1);
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lengths_and_contents),
        cmocka_unit_test(levels_and_workers),
        cmocka_unit_test(cut_appended_failing),
        cmocka_unit_test(sink_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
