/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "samples.h"

#include "pgp/crypt_init.h"

static void twice_is_once(void **state)
{
    (void)state;
    struct failure failure;
    failure_init(&failure);
    assert_int_equal(crypt_init(&failure), 0);
    assert_true(gcry_control(GCRYCTL_INITIALIZATION_FINISHED_P));
    assert_int_equal(crypt_init(&failure), 0);
    assert_int_equal(failure_get(&failure, NULL), 0);
    failure_destroy(&failure);
}

/* What 64 workers and some keys need (crypt_init.h). */
static void pool_is_large_enough(void **state)
{
    (void)state;
    gcry_cipher_hd_t cipher[64];
    for (size_t i = 0; i < ARRAY_SIZE(cipher); i++)
        assert_int_equal(gcry_cipher_open(&cipher[i], GCRY_CIPHER_AES256, GCRY_CIPHER_MODE_OCB, GCRY_CIPHER_SECURE), 0);
    struct secret *secret = secret_new(SECRET_MAX);
    assert_non_null(secret);
    secret_free(secret);
    for (size_t i = 0; i < ARRAY_SIZE(cipher); i++)
        gcry_cipher_close(cipher[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(twice_is_once), cmocka_unit_test(pool_is_large_enough)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
