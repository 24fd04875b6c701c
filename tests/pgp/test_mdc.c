/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "faulty.h"
#include "samples.h"

#include "pgp/mdc.h"

#define LENGTH_MAX (600 * 1024)

static const uint8_t session_key[32] = "a session key of thirty-two octe";
static uint8_t plain[LENGTH_MAX];

static const enum cipher_algo ciphers[] = {CIPHER_AES256, CIPHER_AES128, CIPHER_TWOFISH,  CIPHER_CAMELLIA192,
                                           CIPHER_3DES,   CIPHER_CAST5,  CIPHER_BLOWFISH, CIPHER_IDEA};

static struct secret *key_for(enum cipher_algo cipher)
{
    struct secret *key = secret_from(session_key, algo_cipher(cipher)->key_size);
    assert_non_null(key);
    return key;
}

static void seal(struct run *run, enum cipher_algo cipher, size_t n, size_t step, unsigned workers,
                 struct gathered *ret)
{
    struct secret *key = key_for(cipher);
    struct sink *sink;
    assert_int_equal(mdc_sink_new(run, cipher, key, workers, NULL, faulty_sink_new(ret, SIZE_MAX), &sink), 0);
    assert_int_equal(push(sink, plain, n, step), 0);
    assert_int_equal(ret->finished, 1);
    assert_int_equal(ret->n, n + algo_cipher(cipher)->block_size + 2u + MDC_SIZE);
    secret_free(key);
}

static gpg_error_t unseal(struct run *run, enum cipher_algo cipher, const uint8_t *bytes, size_t n, size_t step,
                          unsigned workers, struct gathered *ret)
{
    struct secret *key = key_for(cipher);
    struct source *body = faulty_source_new(bytes, n, step, SIZE_MAX), *source;
    assert_int_equal(mdc_source_new(run, cipher, key, workers, body, &source), 0);
    gpg_error_t err = pull(source, ret);
    source_free(body);
    secret_free(key);
    return err;
}

static void round_trip(struct run *run, enum cipher_algo cipher, size_t n, size_t step, unsigned workers)
{
    struct gathered sealed, back;
    seal(run, cipher, n, step, workers, &sealed);
    assert_int_equal(unseal(run, cipher, sealed.bytes, sealed.n, step, workers, &back), 0);
    assert_int_equal(back.n, n);
    if (n)
        assert_memory_equal(back.bytes, plain, n);
    gathered_clear(&sealed);
    gathered_clear(&back);
}

static void lengths_and_steps(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(ciphers); i++)
        for (size_t n = 0; n < 70; n++)
            for (size_t step = 1; step < 100; step = 2 * step + 1)
                round_trip(NULL, ciphers[i], n, step, 0);
}

/* Around the sizes of the buffers and of the blocks between threads. */
static void long_ones(void **state)
{
    (void)state;
    static const size_t around[] = {65536 - 18, 65536, 65536 + 22, 262144 - 40, 262144, 524288};
    struct run *run = run_new();
    for (size_t i = 0; i < ARRAY_SIZE(around); i++)
        for (size_t n = around[i] - 24; n <= around[i] + 24; n += 4)
            for (unsigned workers = 0; workers <= 2; workers++)
                round_trip(run, CIPHER_AES256, n, 33333, workers);
    run_free(run);
}

/* gcrypt's CFB over the whole gives back prefix, content and MDC. */
static void layout(void **state)
{
    (void)state;
    struct gathered sealed;
    gcry_cipher_hd_t cipher;
    seal(NULL, CIPHER_AES256, 100, 0, 0, &sealed);
    assert_int_equal(gcry_cipher_open(&cipher, GCRY_CIPHER_AES256, GCRY_CIPHER_MODE_CFB, 0), 0);
    assert_int_equal(gcry_cipher_setkey(cipher, session_key, 32), 0);
    assert_int_equal(gcry_cipher_setiv(cipher, NULL, 0), 0);
    assert_int_equal(gcry_cipher_decrypt(cipher, sealed.bytes, sealed.n, NULL, 0), 0);
    gcry_cipher_close(cipher);
    assert_memory_equal(sealed.bytes + 14, sealed.bytes + 16, 2);
    assert_memory_equal(sealed.bytes + 18, plain, 100);
    assert_memory_equal(sealed.bytes + 118, "\xd3\x14", 2);
    uint8_t digest[20];
    gcry_md_hash_buffer(GCRY_MD_SHA1, digest, sealed.bytes, 120);
    assert_memory_equal(sealed.bytes + 120, digest, 20);
    gathered_clear(&sealed);
}

static void every_flip_and_cut_is_refused(void **state)
{
    (void)state;
    struct gathered sealed, back;
    struct run *run = run_new();
    for (size_t i = 0; i < ARRAY_SIZE(ciphers); i += 4)
        for (size_t n = 0; n <= 100; n += 33) {
            seal(NULL, ciphers[i], n, 0, 0, &sealed);
            for (size_t at = 0; at < sealed.n; at++) {
                sealed.bytes[at] ^= (uint8_t)(1 << at % 8);
                assert_int_equal(gpg_err_code(unseal(NULL, ciphers[i], sealed.bytes, sealed.n, 10, 0, &back)),
                                 GPG_ERR_CHECKSUM);
                assert_int_equal(back.n, n); /* the last 22 octets never come out */
                gathered_clear(&back);
                if (at % 8 == 0) {
                    assert_int_equal(gpg_err_code(unseal(run, ciphers[i], sealed.bytes, sealed.n, 10, 1, &back)),
                                     GPG_ERR_CHECKSUM);
                    gathered_clear(&back);
                }
                sealed.bytes[at] ^= (uint8_t)(1 << at % 8);
                assert_int_equal(gpg_err_code(unseal(NULL, ciphers[i], sealed.bytes, at, 10, 0, &back)),
                                 GPG_ERR_CHECKSUM);
                gathered_clear(&back);
            }
            gathered_clear(&sealed);
        }
    run_free(run);
}

static void finish_alone_checks(void **state)
{
    (void)state;
    struct gathered sealed;
    struct secret *key = key_for(CIPHER_AES256);
    seal(NULL, CIPHER_AES256, 100000, 0, 0, &sealed);
    for (unsigned flip = 0; flip <= 1; flip++) {
        struct source *body = memory_source_new(sealed.bytes, sealed.n, 0), *source;
        sealed.bytes[70000] ^= (uint8_t)flip;
        assert_int_equal(mdc_source_new(NULL, CIPHER_AES256, key, 0, body, &source), 0);
        assert_int_equal(gpg_err_code(source_finish(source)), flip ? GPG_ERR_CHECKSUM : 0);
        source_free(source);
        source_free(body);
    }
    secret_free(key);
    gathered_clear(&sealed);
}

static void quick_check(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(ciphers); i++) {
        struct secret *key = key_for(ciphers[i]);
        size_t needed = algo_cipher(ciphers[i])->block_size + 2u;
        struct gathered sealed;
        seal(NULL, ciphers[i], 0, 0, 0, &sealed);
        for (size_t n = 0; n <= MDC_PREFIX_MAX; n++)
            assert_int_equal(mdc_quick_check(ciphers[i], key, sealed.bytes, n), n >= needed);
        sealed.bytes[needed - 1] ^= 1;
        assert_false(mdc_quick_check(ciphers[i], key, sealed.bytes, needed));
        key->n--;
        assert_false(mdc_quick_check(ciphers[i], key, sealed.bytes, needed));
        secret_free(key);
        gathered_clear(&sealed);
    }
}

static void failures_come_through(void **state)
{
    (void)state;
    struct secret *key = key_for(CIPHER_AES256);
    struct gathered sealed, out;
    seal(NULL, CIPHER_AES256, 50, 0, 0, &sealed);
    for (unsigned workers = 0; workers <= 1; workers++)
        for (size_t at = 0; at < sealed.n; at++) {
            struct run *run = run_new();
            struct sink *sink;
            assert_int_equal(mdc_sink_new(run, CIPHER_AES256, key, workers, NULL, faulty_sink_new(&out, at), &sink), 0);
            assert_int_equal(gpg_err_code(push(sink, plain, 50, 7)), FAULT);
            assert_int_equal(out.freed, 1);
            gathered_clear(&out);
            run_free(run);
            run = run_new();
            struct source *body = faulty_source_new(sealed.bytes, sealed.n, 9, at), *source;
            assert_int_equal(mdc_source_new(run, CIPHER_AES256, key, workers, body, &source), 0);
            assert_int_equal(gpg_err_code(pull(source, &out)), FAULT);
            gathered_clear(&out);
            source_free(body);
            run_free(run);
        }
    gathered_clear(&sealed);
    struct sink *sink;
    key->n--;
    assert_int_equal(
        gpg_err_code(mdc_sink_new(NULL, CIPHER_AES256, key, 0, NULL, faulty_sink_new(&out, SIZE_MAX), &sink)),
        GPG_ERR_INV_KEYLEN);
    assert_int_equal(out.freed, 1);
    assert_int_equal(gpg_err_code(mdc_sink_new(NULL, 99, key, 0, NULL, faulty_sink_new(&out, SIZE_MAX), &sink)),
                     GPG_ERR_CIPHER_ALGO);
    secret_free(key);
}

/* libgcrypt's own OpenPGP mode makes the data of packet 9. */
static void packet_9(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(ciphers); i++)
        for (size_t n = 0; n < 80; n++) {
            const struct cipher_info *info = algo_cipher(ciphers[i]);
            size_t prefix = info->block_size + 2u;
            uint8_t bytes[120] = "random prefix.....";
            gcry_cipher_hd_t cipher;
            memcpy(bytes + prefix - 2, bytes + prefix - 4, 2);
            memcpy(bytes + prefix, plain, n);
            assert_int_equal(gcry_cipher_open(&cipher, info->gcry, GCRY_CIPHER_MODE_CFB, GCRY_CIPHER_ENABLE_SYNC), 0);
            assert_int_equal(gcry_cipher_setkey(cipher, session_key, info->key_size), 0);
            assert_int_equal(gcry_cipher_setiv(cipher, NULL, 0), 0);
            assert_int_equal(gcry_cipher_encrypt(cipher, bytes, prefix, NULL, 0), 0);
            gcry_cipher_sync(cipher);
            assert_int_equal(gcry_cipher_encrypt(cipher, bytes + prefix, n, NULL, 0), 0);
            gcry_cipher_close(cipher);
            struct secret *key = key_for(ciphers[i]);
            assert_true(mdc_quick_check(ciphers[i], key, bytes, prefix));
            for (size_t cut = 0; cut <= prefix; cut++) {
                size_t total = cut == prefix ? prefix + n : cut;
                struct source *body = faulty_source_new(bytes, total, 1 + n % 20, SIZE_MAX), *source;
                struct gathered back;
                assert_int_equal(sed_source_new(ciphers[i], key, body, &source), 0);
                assert_int_equal(gpg_err_code(pull(source, &back)), cut == prefix ? 0 : GPG_ERR_TRUNCATED);
                assert_int_equal(back.n, cut == prefix ? n : 0);
                if (back.n)
                    assert_memory_equal(back.bytes, plain, n);
                gathered_clear(&back);
                source_free(body);
            }
            secret_free(key);
        }
}

static int setup(void **state)
{
    fill_random(plain, sizeof plain, 4);
    return crypt_setup(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layout),
        cmocka_unit_test(lengths_and_steps),
        cmocka_unit_test(long_ones),
        cmocka_unit_test(every_flip_and_cut_is_refused),
        cmocka_unit_test(finish_alone_checks),
        cmocka_unit_test(quick_check),
        cmocka_unit_test(failures_come_through),
        cmocka_unit_test(packet_9),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
