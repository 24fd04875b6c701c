/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "samples.h"

#include "pgp/hkdf.h"

static void expect(enum digest_algo algo, const char *input, const char *salt, const char *info, const char *output)
{
    struct octets ikm = from_hex(input), s = from_hex(salt), i = from_hex(info), out = from_hex(output);
    struct secret *secret = secret_from(ikm.bytes, ikm.n), *key;
    /* Shorter outputs are the beginning of longer ones. */
    for (size_t n = 1; n <= out.n; n++) {
        assert_int_equal(hkdf(algo, secret, s.bytes, s.n, i.bytes, i.n, n, &key), 0);
        assert_int_equal(key->n, n);
        assert_memory_equal(key->bytes, out.bytes, n);
        secret_free(key);
    }
    secret_free(secret);
    free(ikm.bytes);
    free(s.bytes);
    free(i.bytes);
    free(out.bytes);
}

/* RFC 5869 A.1 and A.3, RFC 9580 A.8.4 and A.9.2. */
static void vectors(void **state)
{
    (void)state;
    expect(DIGEST_SHA256, "0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b", "000102030405060708090a0b0c",
           "f0f1f2f3f4f5f6f7f8f9",
           "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865");
    expect(DIGEST_SHA256, "0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b", "", "",
           "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8");
    expect(DIGEST_SHA256, "dd708f6fa1ed65114d68d2343e7c2f1d",
           "616416535be0b0716d60e052a56c4c407f9eb36b0efafe9ad0a0df9b033c69a2", "d202070206",
           "4512f7149d863341527c6567d5bffc425faf3250212ff9");
    expect(DIGEST_SHA256, "154967e590aa1f923e1c0ac64c88f23d", "", "c3060701", "2fce331f39dd955cc41e95d870c72139");
}

static void refuses(void **state)
{
    (void)state;
    struct secret *secret = secret_from("x", 1), *key;
    assert_int_equal(gpg_err_code(hkdf(99, secret, NULL, 0, "", 0, 16, &key)), GPG_ERR_DIGEST_ALGO);
    assert_int_equal(gpg_err_code(hkdf(DIGEST_SHA256, secret, NULL, 0, "", 0, 255 * 32 + 1, &key)), GPG_ERR_INV_KEYLEN);
    assert_int_equal(hkdf(DIGEST_SHA256, secret, NULL, 0, "", 0, 255 * 32, &key), 0);
    secret_free(key);
    secret_free(secret);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(vectors), cmocka_unit_test(refuses)};
    return cmocka_run_group_tests(tests, crypt_setup, NULL);
}
