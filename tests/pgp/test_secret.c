/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "samples.h"

#include "pgp/secret.h"

static void lives_in_secure_memory(void **state)
{
    (void)state;
    for (size_t n = 0; n <= SECRET_MAX; n = n ? 4 * n : 1) {
        struct secret *secret = secret_new(n);
        assert_non_null(secret);
        assert_int_equal(secret->n, n);
        assert_true(gcry_is_secure(secret->bytes));
        for (size_t i = 0; i < n; i++)
            assert_int_equal(secret->bytes[i], 0);
        secret_free(secret);
    }
    assert_null(secret_new(SECRET_MAX + 1));
    secret_free(NULL);
}

static void copies(void **state)
{
    (void)state;
    struct secret *secret = secret_from("open sesame", 11);
    assert_non_null(secret);
    assert_memory_equal(secret->bytes, "open sesame", 11);
    secret->n = 4; /* its owner may lower it */
    secret_free(secret);
    secret = secret_from(NULL, 0);
    assert_non_null(secret);
    secret_free(secret);
}

static void compares(void **state)
{
    (void)state;
    uint8_t a[40], b[40];
    memset(a, 7, sizeof a);
    for (size_t n = 0; n < sizeof a; n++)
        for (size_t at = 0; at < sizeof a; at++) {
            memcpy(b, a, sizeof b);
            b[at] ^= 0x80;
            assert_int_equal(bytes_equal_secretly(a, b, n), at >= n);
        }
}

static void wipes(void **state)
{
    (void)state;
    uint8_t bytes[3] = {1, 2, 3};
    bytes_wipe(bytes, 2);
    assert_int_equal(bytes[0] | bytes[1], 0);
    assert_int_equal(bytes[2], 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lives_in_secure_memory),
        cmocka_unit_test(copies),
        cmocka_unit_test(compares),
        cmocka_unit_test(wipes),
    };
    return cmocka_run_group_tests(tests, crypt_setup, NULL);
}
