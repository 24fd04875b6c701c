/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "samples.h"

#include "pgp/s2k.h"

static void expect_key(const char *specifier, const char *passphrase, const char *key)
{
    struct octets octets = from_hex(specifier), expected = from_hex(key);
    struct cursor cursor = cursor_over(octets.bytes, octets.n);
    struct s2k s2k;
    assert_int_equal(s2k_parse(NULL, &cursor, &s2k), 0);
    assert_true(cursor_done(&cursor));
    struct secret *secret = secret_from(passphrase, strlen(passphrase)), *derived;
    assert_int_equal(s2k_derive(NULL, &s2k, secret, expected.n, NULL, &derived), 0);
    assert_int_equal(derived->n, expected.n);
    assert_memory_equal(derived->bytes, expected.bytes, expected.n);
    secret_free(derived);
    secret_free(secret);
    free(octets.bytes);
    free(expected.bytes);
}

/* RFC 9580 A.9.2, A.10.2, A.11.2. */
static void vectors(void **state)
{
    (void)state;
    expect_key("0308a5ae579d1fc5d82bff", "password", "154967e590aa1f923e1c0ac64c88f23d");
    expect_key("030856a298d2f5e36453ff", "password", "e80de243a362d93b9dc607ede96a7356");
    expect_key("0308e9d39785b2070008ff", "password", "25028171 5bba7828 ef71ef64 c4784753");
}

/* The specifier is taken from the key of RFC 9580 A.5. */
static void argon2_vector(void **state)
{
    (void)state;
    struct octets key = sample_file("rfc9580/a5.sec.asc");
    struct packet_view packet;
    assert_true(nth_packet(key, PACKET_SECRET_KEY, 0, &packet));
    /* 42 octets of public key, usage 253, length, cipher, AEAD, length of the specifier */
    struct cursor cursor = cursor_over(packet.body + 42 + 5, 20);
    struct s2k s2k;
    assert_int_equal(s2k_parse(NULL, &cursor, &s2k), 0);
    assert_true(cursor_done(&cursor));
    assert_int_equal(s2k.mode, S2K_ARGON2);
    struct secret *passphrase = secret_from("correct horse battery staple", 28), *derived;
    struct octets expected = from_hex("832bd2662a5c2b251ee3fc82aec349a766ca539015880133002e5a21960b3bcf");
    assert_int_equal(s2k_derive(NULL, &s2k, passphrase, 32, NULL, &derived), 0);
    assert_memory_equal(derived->bytes, expected.bytes, 32);
    secret_free(derived);

    const struct s2k_limits tight = {.argon2_memory = ((uint64_t)1024 << s2k.memory_bits) - 1};
    assert_int_equal(gpg_err_code(s2k_derive(NULL, &s2k, passphrase, 32, &tight, &derived)), GPG_ERR_RESOURCE_LIMIT);
    s2k.passes = 255;
    const struct s2k_limits just = {.argon2_memory = (uint64_t)1024 << s2k.memory_bits};
    assert_int_equal(gpg_err_code(s2k_derive(NULL, &s2k, passphrase, 32, &just, &derived)), GPG_ERR_RESOURCE_LIMIT);
    s2k.memory_bits = 31;
    s2k.passes = 1;
    assert_int_equal(gpg_err_code(s2k_derive(NULL, &s2k, passphrase, 32, NULL, &derived)), GPG_ERR_RESOURCE_LIMIT);
    secret_free(passphrase);
    free(expected.bytes);
    free(key.bytes);
}

/* libgcrypt's own derivation is the measure, for every length of passphrase around the ends of the buffer. */
static void same_as_libgcrypt(void **state)
{
    (void)state;
    static const size_t lengths[] = {1, 8, 63, 64, 4087, 4088, 4089, 8183, 8184, 8185, 12000};
    static const int kdf[] = {[S2K_SIMPLE] = GCRY_KDF_SIMPLE_S2K,
                              [S2K_SALTED] = GCRY_KDF_SALTED_S2K,
                              [S2K_ITERATED] = GCRY_KDF_ITERSALTED_S2K};
    char text[12000];
    memset(text, 'p', sizeof text);
    for (size_t i = 0; i < ARRAY_SIZE(lengths); i++)
        for (unsigned mode = S2K_SIMPLE; mode <= S2K_ITERATED; mode++) {
            if (mode == 2)
                continue;
            struct secret *passphrase = secret_from(text, lengths[i]), *derived;
            struct s2k s2k = {.mode = (uint8_t)mode, .digest = DIGEST_SHA1, .salt = "saltsalt", .count = 17};
            for (size_t n = 16; n <= 56; n += 8) {
                uint8_t expected[56];
                assert_int_equal(gcry_kdf_derive(text, lengths[i], kdf[mode], GCRY_MD_SHA1,
                                                 mode == S2K_SIMPLE ? NULL : "saltsalt", mode == S2K_SIMPLE ? 0 : 8,
                                                 s2k_count_octets(17), n, expected),
                                 0);
                assert_int_equal(s2k_derive(NULL, &s2k, passphrase, n, NULL, &derived), 0);
                assert_memory_equal(derived->bytes, expected, n);
                secret_free(derived);
            }
            secret_free(passphrase);
        }
}

static void empty_passphrase(void **state)
{
    (void)state;
    uint8_t expected[20];
    struct secret *passphrase = secret_new(0), *derived;
    struct s2k s2k = {.mode = S2K_SIMPLE, .digest = DIGEST_SHA1};
    gcry_md_hash_buffer(GCRY_MD_SHA1, expected, "", 0);
    assert_int_equal(s2k_derive(NULL, &s2k, passphrase, 20, NULL, &derived), 0);
    assert_memory_equal(derived->bytes, expected, 20);
    secret_free(derived);
    secret_free(passphrase);
}

static void counts(void **state)
{
    (void)state;
    assert_int_equal(s2k_count_octets(0), 1024);
    assert_int_equal(s2k_count_octets(96), 65536);
    assert_int_equal(s2k_count_octets(255), 65011712);
    for (unsigned code = 0; code < 256; code++) {
        uint32_t octets = s2k_count_octets((uint8_t)code);
        assert_int_equal(s2k_count_code(octets), code);
        if (code) {
            assert_int_equal(s2k_count_code(octets - 1), code);
            assert_true(octets > s2k_count_octets((uint8_t)(code - 1)));
        }
    }
    assert_int_equal(s2k_count_code(0), 0);
    assert_int_equal(s2k_count_code(UINT32_MAX), 255);
}

/* What is put comes back, and nothing shorter passes. */
static void round_trips(void **state)
{
    (void)state;
    struct s2k fresh[7] = {
        {.mode = S2K_SIMPLE, .digest = DIGEST_SHA256},
        {.mode = S2K_SALTED, .digest = DIGEST_SHA256, .salt = "12345678"},
        {.mode = S2K_GNU, .digest = DIGEST_SHA1, .gnu = 1},
        {.mode = S2K_GNU, .digest = DIGEST_SHA1, .gnu = 2, .serial = "0123456789abcde", .serial_n = 16},
        {.mode = S2K_GNU, .gnu = 2},
    };
    s2k_new_iterated(DIGEST_SHA512, 0, &fresh[5]);
    s2k_new_argon2(&fresh[6]);
    assert_int_equal(fresh[5].count, 255);
    for (size_t i = 0; i < ARRAY_SIZE(fresh); i++) {
        uint8_t out[S2K_MAX], again[S2K_MAX];
        size_t n = s2k_put(&fresh[i], out);
        assert_true(n <= S2K_MAX);
        struct cursor cursor = cursor_over(out, n);
        struct s2k back;
        assert_int_equal(s2k_parse(NULL, &cursor, &back), 0);
        assert_true(cursor_done(&cursor));
        assert_int_equal(s2k_put(&back, again), n);
        assert_memory_equal(out, again, n);
        for (size_t cut = 0; cut < n; cut++) {
            cursor = cursor_over(out, cut);
            gpg_error_t err = s2k_parse(NULL, &cursor, &back);
            assert_true(gpg_err_code(err) == GPG_ERR_INV_PACKET || gpg_err_code(err) == GPG_ERR_NOT_SUPPORTED);
        }
    }
}

static void refuses(void **state)
{
    (void)state;
    static const struct {
        const char *specifier;
        gpg_err_code_t code;
    } rows[] = {
        {"0208", GPG_ERR_NOT_SUPPORTED},                                            /* reserved mode */
        {"0063", GPG_ERR_NOT_SUPPORTED},                                            /* digest 99 */
        {"6502585858", GPG_ERR_INV_PACKET},                                         /* cut */
        {"650258585801", GPG_ERR_NOT_SUPPORTED},                                    /* not "GNU" */
        {"6502474e5503", GPG_ERR_NOT_SUPPORTED},                                    /* GNU extension 3 */
        {"6502474e550211000000000000000000000000000000000000", GPG_ERR_INV_PACKET}, /* serial number of 17 */
        {"0400000000000000000000000000000000000410", GPG_ERR_INV_PACKET},           /* no passes */
        {"0400000000000000000000000000000000030010", GPG_ERR_INV_PACKET},           /* no lanes */
        {"0400000000000000000000000000000000030404", GPG_ERR_INV_PACKET},           /* 16 KiB for 4 lanes */
        {"0400000000000000000000000000000000030420", GPG_ERR_INV_PACKET},           /* 2^32 KiB */
        {"04000000000000000000000000000000000304ff", GPG_ERR_INV_PACKET},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct octets octets = from_hex(rows[i].specifier);
        struct cursor cursor = cursor_over(octets.bytes, octets.n);
        struct s2k s2k;
        struct failure failure;
        failure_init(&failure);
        assert_int_equal(gpg_err_code(s2k_parse(&failure, &cursor, &s2k)), rows[i].code);
        assert_int_equal(gpg_err_code(failure_get(&failure, NULL)), rows[i].code);
        failure_destroy(&failure);
        free(octets.bytes);
    }
    const struct s2k dummy = {.mode = S2K_GNU, .gnu = 1};
    struct secret *passphrase = secret_from("x", 1), *derived;
    assert_int_equal(gpg_err_code(s2k_derive(NULL, &dummy, passphrase, 16, NULL, &derived)), GPG_ERR_NO_SECKEY);
    secret_free(passphrase);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vectors),          cmocka_unit_test(argon2_vector), cmocka_unit_test(same_as_libgcrypt),
        cmocka_unit_test(empty_passphrase), cmocka_unit_test(counts),        cmocka_unit_test(round_trips),
        cmocka_unit_test(refuses),
    };
    return cmocka_run_group_tests(tests, crypt_setup, NULL);
}
