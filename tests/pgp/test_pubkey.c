/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "samples.h"

#include "pgp/ecdh.h"
#include "pgp/session_key.h"

/* RFC 9580 A.8: the session key of the published packet. */
static void published_x25519(void **state)
{
    static const uint8_t expected[] = {0xDD, 0x70, 0x8F, 0x6F, 0xA1, 0xED, 0x65, 0x11,
                                       0x4D, 0x68, 0xD2, 0x34, 0x3E, 0x7C, 0x2F, 0x1D};
    struct octets point = from_hex("87cf18d5f1b53f817cce5a004cf393cc8958bddc065f25f84af509b17dd36764");
    struct octets wrapped = from_hex("dea3554379566179 01e06957fbca8a6a 47a5b5153e8d3ab7");
    struct secret_key *secret_key = sample_secret("rfc9580/a4.sec.asc", NULL, 1);
    struct parts parts = {0};
    struct secret *frame = NULL;
    (void)state;
    assert_int_equal(parts_add(&parts, point.bytes, point.n, 0), 0);
    assert_int_equal(parts_add(&parts, wrapped.bytes, wrapped.n, 0), 0);
    assert_int_equal(pubkey_decrypt(NULL, secret_key, &parts, &frame), 0);
    assert_int_equal(frame->n, sizeof expected);
    assert_memory_equal(frame->bytes, expected, sizeof expected);
    secret_free(frame);
    /* Every bit of both parts counts. */
    for (unsigned which = 0; which < 2; which++)
        for (size_t i = 0; i < parts.part[which].n; i++)
            for (unsigned bit = 1; bit < 256; bit <<= 1) {
                parts.part[which].bytes[i] ^= (uint8_t)bit;
                gpg_err_code_t code = gpg_err_code(pubkey_decrypt(NULL, secret_key, &parts, &frame));
                parts.part[which].bytes[i] ^= (uint8_t)bit;
                assert_int_equal(code, GPG_ERR_DECRYPT_FAILED);
            }
    parts_clear(&parts);
    secret_key_free(secret_key);
    free(point.bytes);
    free(wrapped.bytes);
}

static struct octets raw_file(const char *name)
{
    char path[512];
    struct octets octets = {malloc(SAMPLE_FILE_MAX), 0};
    snprintf(path, sizeof path, "%s/%s", TESTDATA, name);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    octets.n = fread(octets.bytes, 1, SAMPLE_FILE_MAX, file);
    fclose(file);
    return octets;
}

/* Session keys in messages of many programs open, and their checksums are right. */
static void sample_messages(void **state)
{
    static const struct {
        const char *message, *key, *passphrase;
    } rows[] = {
        {"rsa2048.gpg", "rsa2048", ""},
        {"elgamal.gpg", "dsaelg", ""},
        {"p256.gpg", "p256", ""},
        {"bp256.gpg", "bp256", ""},
        {"bp384-ocb.gpg", "bp384", ""},
        {"bp512.gpg", "bp512", ""},
        {"p521-pw.gpg", "p521", "p521 pass"},
        {"ed25519.gpg", "ed25519", ""},
        {"ed448-ocb.gpg", "ed448", ""},
        {"secp256k1.gpg", "k256", ""},
        {"ed25519-25ocb.gpg", "ed25519n", ""},
        {"rnp-ed.gpg", "rnped", "rnp pass A"},
        {"pgpy-rsa.gpg", "pgpyrsa", "pgpy pass A"},
    };
    (void)state;
    for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
        char file[64];
        struct passphrase_source source = {says, (void *)(uintptr_t)rows[i].passphrase};
        struct packet_view packet;
        struct esk *esk = NULL;
        struct session_key session_key = {0};
        snprintf(file, sizeof file, "samples/keys/%s.sec.asc", rows[i].key);
        struct secret_key *secret_key = sample_secret(file, &source, 1);
        snprintf(file, sizeof file, "samples/msgs/%s", rows[i].message);
        struct octets octets = raw_file(file);
        assert_true(nth_packet(octets, PACKET_PKESK, 0, &packet));
        assert_int_equal(esk_parse(NULL, packet.type, packet.body, packet.body_n, &esk), 0);
        assert_true(esk_for_key(esk, secret_key->key));
        assert_int_equal(pkesk_open(NULL, esk, secret_key, &session_key), 0);
        assert_int_equal(session_key.key->n, algo_cipher(session_key.cipher)->key_size);
        session_key_clear(&session_key);
        esk_free(esk);
        secret_key_free(secret_key);
        free(octets.bytes);
    }
}

/* A secret key whose decryption gives what the test wants. */
struct oracle {
    struct secret_key secret_key;
    struct octets value;
    bool unpadded;
};

static gpg_error_t oracle_decrypt(struct secret_key *self, struct failure *failure, gcry_sexp_t enc,
                                  struct secret **ret_value, bool *ret_unpadded)
{
    struct oracle *oracle = CONTAINER(self, struct oracle, secret_key);
    (void)failure;
    (void)enc;
    *ret_value = secret_from(oracle->value.bytes, oracle->value.n);
    *ret_unpadded = oracle->unpadded;
    return 0;
}

static const struct secret_key_ops oracle_ops = {.decrypt = oracle_decrypt};

/* RSA-2048 with VALUE out of the arithmetic; the length of what was in it, or -1. */
static int unpadded_length(const struct key *key, const uint8_t *value, size_t n, bool unpadded)
{
    struct oracle oracle = {
        {&oracle_ops, (struct key *)(uintptr_t)key, false}, {(uint8_t *)(uintptr_t)value, n}, unpadded};
    struct parts parts = {0};
    struct secret *frame = NULL;
    assert_int_equal(parts_add(&parts, "\1", 1, 0), 0);
    gpg_error_t err = pubkey_decrypt(NULL, &oracle.secret_key, &parts, &frame);
    int got = err ? -1 : (int)frame->n;
    if (err)
        assert_int_equal(gpg_err_code(err), GPG_ERR_DECRYPT_FAILED);
    else if (got)
        assert_memory_equal(frame->bytes, value + n - frame->n, frame->n);
    secret_free(frame);
    parts_clear(&parts);
    return got;
}

static void pkcs1(void **state)
{
    struct secret_key *secret_key = sample_secret("samples/keys/rsa2048.sec.asc", NULL, 1);
    const struct key *key = secret_key->key;
    uint8_t block[256];
    (void)state;
    /* The zero at each place: at least eight octets of padding go before it. */
    for (size_t zero = 2; zero <= sizeof block; zero++) {
        memset(block, 0x55, sizeof block);
        block[0] = 0;
        block[1] = 2;
        if (zero < sizeof block)
            block[zero] = 0;
        int expected = zero < 10 || zero == sizeof block ? -1 : (int)(sizeof block - zero - 1);
        assert_int_equal(unpadded_length(key, block, sizeof block, false), expected);
        /* The leading zero is lost where the value was a number. */
        assert_int_equal(unpadded_length(key, block + 1, sizeof block - 1, false), expected);
        if (zero == 100) {
            block[200] = 0; /* the first zero ends the padding */
            assert_int_equal(unpadded_length(key, block, sizeof block, false), 155);
        }
        block[1] = 1;
        assert_int_equal(unpadded_length(key, block, sizeof block, false), -1);
        block[1] = 2;
        block[0] = 1;
        assert_int_equal(unpadded_length(key, block, sizeof block, false), -1);
    }
    assert_int_equal(unpadded_length(key, block, 0, false), -1);
    assert_int_equal(unpadded_length(key, (const uint8_t *)"abc", 3, false), -1);
    assert_int_equal(unpadded_length(key, (const uint8_t *)"abc", 3, true), 3); /* a card undid the padding */
    uint8_t longer[257] = {0, 0, 2};
    assert_int_equal(unpadded_length(key, longer, sizeof longer, false), -1);
    secret_key_free(secret_key);
}

/* Frames of every length, and the sizes that come out: AES sizes are not told apart. */
static void ecdh_frames(void **state)
{
    static const char *const files[] = {"samples/keys/p256.sec.asc",     "samples/keys/p384.sec.asc",
                                        "samples/keys/ed25519.sec.asc",  "samples/keys/ed448.sec.asc",
                                        "samples/keys/v6x25519.sec.asc", "samples/keys/v6x448.sec.asc"};
    (void)state;
    for (unsigned i = 0; i < ARRAY_SIZE(files); i++) {
        struct secret_key *secret_key = sample_secret(files[i], NULL, 1);
        bool native = secret_key->key->algo != PUBKEY_ECDH;
        for (size_t n = native ? 16 : 1; n <= (native ? 32u : 60u); n += native ? 8 : 1) {
            struct secret *frame = secret_new(n), *back = NULL;
            struct parts parts = {0};
            memset(frame->bytes, 0x5A, n);
            assert_int_equal(pubkey_encrypt(NULL, secret_key->key, frame, &parts), 0);
            assert_int_equal(parts.n, 2);
            size_t padded = native ? n : n < 40 ? 40 : (n / 8 + 1) * 8;
            assert_int_equal(parts.part[1].n, padded + 8);
            assert_int_equal(pubkey_decrypt(NULL, secret_key, &parts, &back), 0);
            assert_int_equal(back->n, n);
            assert_memory_equal(back->bytes, frame->bytes, n);
            secret_free(frame);
            secret_free(back);
            parts_clear(&parts);
        }
        secret_key_free(secret_key);
    }
}

/* Curve25519's point with its 0x40, without it, and without leading zeros. */
static void points_without_prefix(void **state)
{
    struct secret_key *secret_key = sample_secret("samples/keys/ed25519.sec.asc", NULL, 1);
    struct secret *frame = secret_from("\x07seventeen octets", 17);
    unsigned with_zero = 0;
    (void)state;
    for (unsigned i = 0; i < 20000 && with_zero == 0; i++) {
        struct parts parts = {0}, bare = {0};
        struct secret *back = NULL;
        assert_int_equal(pubkey_encrypt(NULL, secret_key->key, frame, &parts), 0);
        const struct part *point = &parts.part[0];
        assert_int_equal(point->n, 33);
        assert_int_equal(point->bytes[0], 0x40);
        bool zero = point->bytes[1] == 0;
        with_zero += zero;
        if (i < 10 || zero) {
            assert_int_equal(parts_add(&bare, point->bytes + 1 + zero, 32u - zero, 0), 0);
            assert_int_equal(parts_add(&bare, parts.part[1].bytes, parts.part[1].n, 0), 0);
            assert_int_equal(pubkey_decrypt(NULL, secret_key, &bare, &back), 0);
            assert_int_equal(back->n, 17);
            secret_free(back);
        }
        parts_clear(&parts);
        parts_clear(&bare);
    }
    assert_true(with_zero > 0);
    secret_free(frame);
    secret_key_free(secret_key);
}

/* Points that are none, of small order, of another curve; wrapped keys of any length. */
static void bad_parts(void **state)
{
    static const char *const files[] = {"samples/keys/p256.sec.asc",   "samples/keys/ed25519.sec.asc",
                                        "samples/keys/ed448.sec.asc",  "samples/keys/rsa2048.sec.asc",
                                        "samples/keys/dsaelg.sec.asc", "rfc9580/a4.sec.asc"};
    uint8_t bytes[300];
    (void)state;
    for (unsigned i = 0; i < ARRAY_SIZE(files); i++) {
        struct secret_key *secret_key = sample_secret(files[i], NULL, 1);
        for (unsigned fill = 0; fill < 3; fill++)
            for (size_t n = 0; n < sizeof bytes; n += n < 70 ? 1 : 17) {
                struct parts parts = {0};
                struct secret *frame = NULL;
                memset(bytes, fill == 0 ? 0 : fill == 1 ? 1 : 0xFF, sizeof bytes);
                bytes[0] = fill == 2 ? 4 : 0x40;
                assert_int_equal(parts_add(&parts, bytes, n, 0), 0);
                assert_int_equal(parts_add(&parts, bytes, n, 0), 0);
                assert_int_equal(gpg_err_code(pubkey_decrypt(NULL, secret_key, &parts, &frame)),
                                 GPG_ERR_DECRYPT_FAILED);
                parts_clear(&parts);
                assert_int_equal(gpg_err_code(pubkey_decrypt(NULL, secret_key, &parts, &frame)),
                                 GPG_ERR_DECRYPT_FAILED);
            }
        secret_key_free(secret_key);
    }
}

/* Signature values of any length and with zeros before them. */
static void signature_values(void **state)
{
    static const char *const files[] = {"samples/keys/rsa2048.sec.asc", "samples/keys/dsaelg.sec.asc",
                                        "samples/keys/p521.sec.asc",    "samples/keys/ed25519.sec.asc",
                                        "samples/keys/ed448.sec.asc",   "samples/keys/v6x448.sec.asc"};
    struct passphrase_source source = {says, (void *)(uintptr_t) "p521 pass"};
    uint8_t digest[64] = {1, 2, 3};
    (void)state;
    for (unsigned i = 0; i < ARRAY_SIZE(files); i++) {
        struct secret_key *secret_key = sample_secret(files[i], &source, 0);
        struct parts parts = {0};
        assert_int_equal(pubkey_sign(NULL, secret_key, DIGEST_SHA512, digest, 64, &parts), 0);
        assert_int_equal(gpg_err_code(pubkey_verify(secret_key->key, DIGEST_SHA512, digest, 63, &parts)),
                         GPG_ERR_BAD_SIGNATURE);
        assert_int_equal(gpg_err_code(pubkey_verify(secret_key->key, DIGEST_SHA256, digest, 64, &parts)),
                         GPG_ERR_BAD_SIGNATURE);
        assert_int_equal(gpg_err_code(pubkey_verify(secret_key->key, 99, digest, 64, &parts)), GPG_ERR_NOT_SUPPORTED);
        struct part *last = &parts.part[parts.n - 1];
        for (size_t cut = last->n; cut > 0; cut--) {
            last->n = cut - 1;
            assert_int_equal(gpg_err_code(pubkey_verify(secret_key->key, DIGEST_SHA512, digest, 64, &parts)),
                             GPG_ERR_BAD_SIGNATURE);
        }
        parts.n--;
        assert_int_equal(gpg_err_code(pubkey_verify(secret_key->key, DIGEST_SHA512, digest, 64, &parts)),
                         GPG_ERR_BAD_SIGNATURE);
        parts.n++;
        parts_clear(&parts);
        secret_key_free(secret_key);
    }
}

/* A key is asked only for what its algorithm does. */
static void wrong_use(void **state)
{
    struct secret_key *signer = sample_secret("samples/keys/ed25519.sec.asc", NULL, 0);
    struct secret_key *decrypter = sample_secret("samples/keys/ed25519.sec.asc", NULL, 1);
    struct secret *frame = secret_new(16);
    struct parts parts = {0};
    uint8_t digest[64] = {0};
    (void)state;
    assert_int_equal(gpg_err_code(pubkey_encrypt(NULL, signer->key, frame, &parts)), GPG_ERR_WRONG_PUBKEY_ALGO);
    assert_int_equal(gpg_err_code(pubkey_sign(NULL, decrypter, DIGEST_SHA512, digest, 64, &parts)),
                     GPG_ERR_WRONG_PUBKEY_ALGO);
    assert_int_equal(gpg_err_code(pubkey_decrypt(NULL, signer, &parts, &frame)), GPG_ERR_DECRYPT_FAILED);
    assert_int_equal(gpg_err_code(pubkey_verify(decrypter->key, DIGEST_SHA512, digest, 64, &parts)),
                     GPG_ERR_BAD_SIGNATURE);
    secret_free(frame);
    secret_key_free(signer);
    secret_key_free(decrypter);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_x25519),
        cmocka_unit_test(sample_messages),
        cmocka_unit_test(pkcs1),
        cmocka_unit_test(ecdh_frames),
        cmocka_unit_test(points_without_prefix),
        cmocka_unit_test(bad_parts),
        cmocka_unit_test(signature_values),
        cmocka_unit_test(wrong_use),
    };
    return cmocka_run_group_tests(tests, crypt_setup, crypt_teardown);
}
