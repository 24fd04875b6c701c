/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "faulty.h"
#include "samples.h"

#include "pgp/hash_set.h"
#include "pgp/literal.h"

static void expect_digest(const struct hash_set *set, unsigned number, enum digest_algo algo, const void *bytes,
                          size_t n)
{
    uint8_t expected[64];
    gcry_md_hd_t md;
    gcry_md_hash_buffer(algo_digest(algo)->gcry, expected, bytes, n);
    assert_int_equal(hash_set_copy(set, number, &md), 0);
    assert_memory_equal(gcry_md_read(md, 0), expected, algo_digest(algo)->size);
    gcry_md_close(md);
}

/* Through blocks on both ways, in every step. */
static void digests_what_passes(void **state)
{
    (void)state;
    uint8_t bytes[300];
    fill_random(bytes, sizeof bytes, 1);
    for (size_t n = 0; n <= sizeof bytes; n += 50)
        for (size_t step = 1; step <= n + 1; step += 7) {
            struct hash_set *set = hash_set_new();
            unsigned a, b;
            struct gathered out;
            struct sink *sink;
            assert_int_equal(hash_set_add(set, DIGEST_SHA256, NULL, 0, false, &a), 0);
            assert_int_equal(hash_set_add(set, DIGEST_SHA512, NULL, 0, false, &b), 0);
            struct run *run = step % 2 ? run_new() : NULL;
            const struct block_job job = hash_set_job(set, 7);
            assert_int_equal(block_sink_new(run, &job, run ? 1 : 0, faulty_sink_new(&out, SIZE_MAX), &sink), 0);
            assert_int_equal(push(sink, bytes, n, step), 0);
            assert_int_equal(out.n, n);
            assert_int_equal(out.finished, 1);
            run_free(run);
            expect_digest(set, a, DIGEST_SHA256, bytes, n);
            expect_digest(set, b, DIGEST_SHA512, bytes, n);
            assert_int_equal(hash_set_bytes(set), n);
            gathered_clear(&out);
            hash_set_free(set);

            set = hash_set_new();
            struct source *source;
            assert_int_equal(hash_set_add(set, DIGEST_SHA256, NULL, 0, false, &a), 0);
            run = step % 2 ? NULL : run_new();
            const struct block_job small = hash_set_job(set, 11);
            assert_int_equal(
                block_source_new(run, &small, run ? 1 : 0, faulty_source_new(bytes, n, step, SIZE_MAX), &source), 0);
            assert_int_equal(n % 100 ? source_finish(source) : pull(source, &out), 0);
            expect_digest(set, a, DIGEST_SHA256, bytes, n);
            if (n % 100)
                source_free(source);
            else
                gathered_clear(&out);
            run_free(run);
            hash_set_free(set);
        }
}

static void text_has_cr_lf(void **state)
{
    (void)state;
    static const char text[] = "one\ntwo\r\nthree\n\nfour\r\r\nfive\rsix\n";
    static const char hashed[] = "one\r\ntwo\r\nthree\r\n\r\nfour\r\r\nfive\rsix\r\n";
    for (size_t step = 1; step < sizeof text; step++) {
        struct hash_set *set = hash_set_new();
        unsigned as_text, as_bytes;
        assert_int_equal(hash_set_add(set, DIGEST_SHA256, NULL, 0, true, &as_text), 0);
        assert_int_equal(hash_set_add(set, DIGEST_SHA256, NULL, 0, false, &as_bytes), 0);
        assert_int_not_equal(as_text, as_bytes);
        for (size_t at = 0; at < sizeof text - 1; at += step) {
            size_t n = sizeof text - 1 - at;
            hash_set_update(set, text + at, n < step ? n : step);
        }
        expect_digest(set, as_text, DIGEST_SHA256, hashed, sizeof hashed - 1);
        expect_digest(set, as_bytes, DIGEST_SHA256, text, sizeof text - 1);
        hash_set_free(set);
    }
}

static void salt_comes_first(void **state)
{
    (void)state;
    struct hash_set *set = hash_set_new();
    unsigned a, b, again;
    assert_int_equal(hash_set_add(set, DIGEST_SHA256, "salt", 4, false, &a), 0);
    assert_int_equal(hash_set_add(set, DIGEST_SHA256, "malt", 4, false, &b), 0);
    assert_int_equal(hash_set_add(set, DIGEST_SHA256, "salt", 4, false, &again), 0);
    assert_int_equal(a, again);
    assert_int_not_equal(a, b);
    hash_set_update(set, "bytes", 5);
    expect_digest(set, a, DIGEST_SHA256, "saltbytes", 9);
    expect_digest(set, b, DIGEST_SHA256, "maltbytes", 9);
    hash_set_free(set);
}

static void refuses(void **state)
{
    (void)state;
    struct hash_set *set = hash_set_new();
    unsigned number;
    gcry_md_hd_t md;
    assert_int_equal(gpg_err_code(hash_set_add(set, 99, NULL, 0, false, &number)), GPG_ERR_DIGEST_ALGO);
    assert_int_equal(gpg_err_code(hash_set_copy(set, 0, &md)), GPG_ERR_INV_INDEX);
    for (uint8_t i = 0; i < HASH_SET_MAX; i++)
        assert_int_equal(hash_set_add(set, DIGEST_SHA256, &i, 1, false, &number), 0);
    assert_int_equal(gpg_err_code(hash_set_add(set, DIGEST_SHA1, NULL, 0, false, &number)), GPG_ERR_TOO_MANY);
    hash_set_update(set, "x", 1);
    assert_int_equal(gpg_err_code(hash_set_add(set, DIGEST_SHA1, NULL, 0, false, &number)), GPG_ERR_INV_STATE);
    hash_set_free(set);
    hash_set_free(NULL);
}

/* The content alone is hashed, wherever the literal packet begins and its parts end, and nothing that follows it. */
static void finds_the_content(void **state)
{
    (void)state;
    static const size_t lengths[] = {0, 1, 185, 186, 187, 505, 506, 507, 1018, 1019, 3000, 9000};
    static const char before[] = "packets before it";
    uint8_t content[9000];
    fill_random(content, sizeof content, 3);
    for (size_t i = 0; i < ARRAY_SIZE(lengths); i++)
        for (size_t block = 1; block < 2000; block = 3 * block + 1)
            for (size_t skip = 0; skip < sizeof before; skip += 8) {
                struct hash_set *set = hash_set_new();
                struct run *run = block % 2 ? run_new() : NULL;
                struct block_job job = {.block_size = block, .observer = {hash_set_observer(set)}};
                struct gathered out;
                struct sink *packets, *literal;
                unsigned number;
                assert_int_equal(hash_set_add(set, DIGEST_SHA256, NULL, 0, false, &number), 0);
                hash_set_expect_literal(set, skip);
                assert_int_equal(block_sink_new(run, &job, run ? 1 : 0, faulty_sink_new(&out, SIZE_MAX), &packets), 0);
                assert_int_equal(sink_write(packets, before, skip), 0);
                assert_int_equal(literal_sink_new(512, packets, true, &literal), 0);
                assert_int_equal(push(literal, content, lengths[i], 100), 0);
                assert_int_equal(sink_settle(packets), 0);
                assert_int_equal(hash_set_bytes(set), lengths[i]);
                assert_int_equal(push(packets, content, 700, 0), 0);
                assert_int_equal(hash_set_bytes(set), lengths[i]);
                expect_digest(set, number, DIGEST_SHA256, content, lengths[i]);
                gathered_clear(&out);
                run_free(run);
                hash_set_free(set);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(digests_what_passes), cmocka_unit_test(text_has_cr_lf), cmocka_unit_test(salt_comes_first),
        cmocka_unit_test(finds_the_content),   cmocka_unit_test(refuses),
    };
    return cmocka_run_group_tests(tests, crypt_setup, NULL);
}
