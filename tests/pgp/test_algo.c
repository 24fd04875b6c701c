/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "samples.h"

#include "pgp/algo.h"

static void sizes_are_libgcrypts(void **state)
{
    (void)state;
    unsigned ciphers = 0, digests = 0, aeads = 0;
    for (unsigned id = 0; id < 256; id++) {
        const struct cipher_info *cipher = algo_cipher(id);
        const struct digest_info *digest = algo_digest(id);
        const struct aead_info *aead = algo_aead(id);
        if (cipher) {
            ciphers++;
            assert_int_equal(cipher->id, id);
            assert_int_equal(cipher->key_size, gcry_cipher_get_algo_keylen(cipher->gcry));
            assert_int_equal(cipher->block_size, gcry_cipher_get_algo_blklen(cipher->gcry));
            assert_int_equal(cipher->legacy, cipher->block_size == 8);
            assert_int_equal(algo_cipher_by_name(cipher->name), id);
            assert_string_equal(algo_cipher_name(id), cipher->name);
        }
        if (digest) {
            digests++;
            assert_int_equal(digest->id, id);
            assert_int_equal(digest->size, gcry_md_get_algo_dlen(digest->gcry));
            assert_int_equal(digest->weak, !digest->salt_size);
            assert_int_equal(algo_digest_by_name(digest->name), id);
        }
        if (aead) {
            aeads++;
            assert_int_equal(algo_aead_by_name(aead->name), id);
        }
    }
    assert_int_equal(ciphers, 11);
    assert_int_equal(digests, 9);
    assert_int_equal(aeads, 3);
}

static void names_and_their_variants(void **state)
{
    (void)state;
    assert_int_equal(algo_cipher_by_name("aes"), CIPHER_AES128);
    assert_int_equal(algo_cipher_by_name("AES-128"), CIPHER_AES128);
    assert_int_equal(algo_cipher_by_name("aes256"), CIPHER_AES256);
    assert_int_equal(algo_cipher_by_name("s9"), CIPHER_AES256);
    assert_int_equal(algo_cipher_by_name("3des"), CIPHER_3DES);
    assert_int_equal(algo_cipher_by_name("camellia256"), CIPHER_CAMELLIA256);
    assert_int_equal(algo_digest_by_name("sha-256"), DIGEST_SHA256);
    assert_int_equal(algo_digest_by_name("H10"), DIGEST_SHA512);
    assert_int_equal(algo_digest_by_name("sha3-256"), DIGEST_SHA3_256);
    assert_int_equal(algo_digest_by_name("ripemd160"), DIGEST_RMD160);
    assert_int_equal(algo_aead_by_name("ocb"), AEAD_OCB);
    assert_int_equal(algo_compress_by_name("none"), COMPRESS_NONE);
    assert_int_equal(algo_compress_by_name("Uncompressed"), COMPRESS_NONE);
    assert_int_equal(algo_compress_by_name("Z0"), COMPRESS_NONE);
    assert_int_equal(algo_compress_by_name("zlib"), COMPRESS_ZLIB);
    assert_int_equal(algo_compress_by_name("bzip2"), COMPRESS_BZIP2);
    assert_string_equal(algo_pubkey_name(PUBKEY_KYBER), "Kyber");
}

static void unknown_names(void **state)
{
    (void)state;
    static const char *const names[] = {"",   "S",       "S99", "S9x", "S0", "H99", "Z9",
                                        "A7", "aes2560", "ae",  "sha", "-",  "S-9", "S00000000000000000009"};
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        assert_int_equal(algo_cipher_by_name(names[i]), 0);
        assert_int_equal(algo_digest_by_name(names[i]), 0);
        assert_int_equal(algo_aead_by_name(names[i]), 0);
        assert_int_equal(algo_compress_by_name(names[i]), -1);
    }
    assert_null(algo_cipher(99));
    assert_null(algo_digest_name(99));
    assert_null(algo_pubkey_name(99));
    assert_null(algo_compress_name(99));
    assert_null(algo_aead_name(9));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_are_libgcrypts),
        cmocka_unit_test(names_and_their_variants),
        cmocka_unit_test(unknown_names),
    };
    return cmocka_run_group_tests(tests, crypt_setup, NULL);
}
