/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "deflated.h"

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

static void refuses_other_algorithms(void **state)
{
    struct source *source;
    (void)state;
    assert_int_equal(gpg_err_code(inflate_source_new(NULL, COMPRESS_BZIP2, NULL, &source)), GPG_ERR_COMPR_ALGO);
    assert_int_equal(gpg_err_code(inflate_source_new(NULL, COMPRESS_NONE, NULL, &source)), GPG_ERR_COMPR_ALGO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_of_reading),         cmocka_unit_test(read_into_blocks),
        cmocka_unit_test(cut_appended_failing),     cmocka_unit_test(flipped),
        cmocka_unit_test(refuses_other_algorithms),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
