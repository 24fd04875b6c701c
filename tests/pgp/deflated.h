/* SPDX-License-Identifier: GPL-3.0-or-later */
/* deflated: compressing, expanding and what to do it with, for the tests of deflate and inflate. */
#ifndef TEST_DEFLATED_H
#define TEST_DEFLATED_H

#include "faulty.h"

#include "pgp/deflate.h"
#include "pgp/inflate.h"

static inline void compress_to(struct run *run, enum compress_algo algo, int level, unsigned workers,
                               const uint8_t *bytes, size_t n, size_t step, struct gathered *ret)
{
    struct sink *sink;
    assert_int_equal(deflate_sink_new(run, algo, level, workers, NULL, faulty_sink_new(ret, SIZE_MAX), &sink), 0);
    assert_int_equal(push(sink, bytes, n, step), 0);
    assert_int_equal(ret->finished, 1);
    assert_int_equal(ret->freed, 1);
}

static inline gpg_error_t expand(enum compress_algo algo, const uint8_t *bytes, size_t n, size_t step,
                                 struct gathered *ret)
{
    struct source *body = faulty_source_new(bytes, n, step, SIZE_MAX), *source;
    assert_int_equal(inflate_source_new(NULL, algo, body, &source), 0);
    gpg_error_t error = pull(source, ret);
    source_free(body);
    return error;
}

static inline void check_content(const struct gathered *got, const uint8_t *bytes, size_t n)
{
    assert_int_equal(got->n, n);
    if (n)
        assert_memory_equal(got->bytes, bytes, n);
}

/* Text, random bytes, zeros, and all of them by turns. */
enum content { TEXT, RANDOM, ZEROS, MIXED, CONTENTS };

static inline void fill(uint8_t *bytes, size_t n, enum content content)
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

#define LENGTH_MAX (3 * DEFLATE_BLOCK_SIZE + 12345)

#endif
