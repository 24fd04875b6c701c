/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "faulty.h"
#include "samples.h"

#include "pgp/session_key.h"

static const struct s2k s2k = {.mode = S2K_ITERATED, .digest = DIGEST_SHA256, .salt = "saltsalt", .count = 0};

/* The packet in GATHERED, parsed. */
static gpg_error_t parse(const struct gathered *gathered, unsigned type, struct esk **ret)
{
    struct packet_view packet;
    struct octets octets = {gathered->bytes, gathered->n};
    assert_true(nth_packet(octets, type, 0, &packet));
    assert_int_equal(packet.body + packet.body_n - gathered->bytes, gathered->n);
    return esk_parse(NULL, type, packet.body, packet.body_n, ret);
}

static void expect_same(const struct session_key *a, const struct session_key *b)
{
    assert_int_equal(a->key->n, b->key->n);
    assert_memory_equal(a->key->bytes, b->key->bytes, a->key->n);
    assert_true(!b->cipher || a->cipher == b->cipher);
}

static void vector(const char *file, const char *passphrase, const char *key)
{
    struct octets octets = sample_file(file), expected = from_hex(key);
    struct packet_view packet;
    struct esk *esk;
    struct session_key session_key;
    struct secret *secret = secret_from(passphrase, strlen(passphrase));
    assert_true(nth_packet(octets, PACKET_SKESK, 0, &packet));
    assert_int_equal(esk_parse(NULL, PACKET_SKESK, packet.body, packet.body_n, &esk), 0);
    assert_int_equal(skesk_open(NULL, esk, secret, NULL, &session_key), 0);
    assert_int_equal(session_key.key->n, expected.n);
    assert_memory_equal(session_key.key->bytes, expected.bytes, expected.n);
    session_key_clear(&session_key);
    esk_free(esk);
    secret_free(secret);
    free(octets.bytes);
    free(expected.bytes);
}

/* RFC 9580 A.9 … A.11: version 6; A.12: version 4 with Argon2 (t 1, p 4, 2 GiB). */
static void vectors(void **state)
{
    (void)state;
    vector("rfc9580/a9.asc", "password", "3881bafe985412459b86c36f98cb9a5e");
    vector("rfc9580/a10.asc", "password", "28e79ab82397d3c63de24ac217d7b791");
    vector("rfc9580/a11.asc", "password", "1936fc8568980274bb900d8319360c77");
    vector("rfc9580/a12-aes128.asc", "password", "01FE16BBACFD1E7B78EF3B865187374F");
    vector("rfc9580/a12-aes192.asc", "password", "27006DAE68E509022CE45A14E569E91001C2955AF8DFE194");
    vector("rfc9580/a12-aes256.asc", "password", "BBEDA55B9AAE63DAC45D4F49D89DACF4AF37FEFC13BAB2F1F8E18FB74580D8B0");
}

/* RFC 9580 A.8.1: version 6 for X25519. */
static void pkesk_vector(void **state)
{
    (void)state;
    struct octets octets = sample_file("rfc9580/a8.asc"), expected = from_hex("dd708f6fa1ed65114d68d2343e7c2f1d");
    struct packet_view packet;
    struct esk *esk;
    struct session_key session_key;
    struct secret_key *secret_key = sample_secret("rfc9580/a4.sec.asc", NULL, 1);
    assert_true(nth_packet(octets, PACKET_PKESK, 0, &packet));
    assert_int_equal(esk_parse(NULL, PACKET_PKESK, packet.body, packet.body_n, &esk), 0);
    assert_true(esk_for_key(esk, secret_key->key));
    assert_false(esk_hidden(esk));
    assert_int_equal(pkesk_open(NULL, esk, secret_key, &session_key), 0);
    assert_int_equal(session_key.cipher, CIPHER_NONE);
    assert_int_equal(session_key.key->n, 16);
    assert_memory_equal(session_key.key->bytes, expected.bytes, 16);
    session_key_clear(&session_key);
    esk_free(esk);
    secret_key_free(secret_key);
    free(octets.bytes);
    free(expected.bytes);
}

static void passphrase_round_trips(void **state)
{
    (void)state;
    static const enum cipher_algo ciphers[] = {CIPHER_AES128, CIPHER_AES192, CIPHER_AES256, CIPHER_CAMELLIA256,
                                               CIPHER_TWOFISH};
    struct secret *right = secret_from("right", 5), *wrong = secret_from("wrong", 5);
    for (unsigned version = 4; version <= 6; version++)
        for (size_t i = 0; i < ARRAY_SIZE(ciphers); i++)
            for (unsigned aead = AEAD_EAX; aead <= (version == 4 ? AEAD_EAX : AEAD_GCM); aead++) {
                struct session_key session_key, back;
                struct gathered out;
                struct esk *esk;
                assert_int_equal(session_key_new(ciphers[i], &session_key), 0);
                struct sink *sink = faulty_sink_new(&out, SIZE_MAX);
                assert_int_equal(skesk_write(NULL, version, right, &s2k, ciphers[i], aead, &session_key, sink), 0);
                sink_free(sink);
                assert_int_equal(parse(&out, PACKET_SKESK, &esk), 0);
                assert_true(esk->symmetric);
                assert_int_equal(esk->version, version);
                assert_int_equal(skesk_open(NULL, esk, right, NULL, &back), 0);
                expect_same(&session_key, &back);
                session_key_clear(&back);
                if (version > 4)
                    assert_int_equal(gpg_err_code(skesk_open(NULL, esk, wrong, NULL, &back)), GPG_ERR_BAD_PASSPHRASE);
                esk_free(esk);
                session_key_clear(&session_key);
                gathered_clear(&out);
            }
    secret_free(right);
    secret_free(wrong);
}

static void direct_key(void **state)
{
    (void)state;
    struct secret *passphrase = secret_from("right", 5);
    struct session_key session_key, back;
    struct gathered out;
    struct esk *esk;
    struct sink *sink = faulty_sink_new(&out, SIZE_MAX);
    assert_int_equal(skesk_write_direct(NULL, passphrase, &s2k, CIPHER_AES256, sink, &session_key), 0);
    sink_free(sink);
    assert_int_equal(parse(&out, PACKET_SKESK, &esk), 0);
    assert_null(esk->encrypted);
    assert_int_equal(skesk_open(NULL, esk, passphrase, NULL, &back), 0);
    expect_same(&session_key, &back);
    assert_int_equal(back.cipher, CIPHER_AES256);
    session_key_clear(&back);
    session_key_clear(&session_key);
    esk_free(esk);
    secret_free(passphrase);
    gathered_clear(&out);
}

/* Versions 5 and 6: no flipped bit opens; and nothing cut parses. */
static void every_flip_and_cut_is_refused(void **state)
{
    (void)state;
    struct secret *passphrase = secret_from("right", 5);
    for (unsigned version = 4; version <= 6; version++) {
        struct session_key session_key, back;
        struct gathered out;
        struct packet_view packet;
        assert_int_equal(session_key_new(CIPHER_AES256, &session_key), 0);
        struct sink *sink = faulty_sink_new(&out, SIZE_MAX);
        assert_int_equal(skesk_write(NULL, version, passphrase, &s2k, CIPHER_AES256, AEAD_OCB, &session_key, sink), 0);
        sink_free(sink);
        assert_true(nth_packet((struct octets){out.bytes, out.n}, PACKET_SKESK, 0, &packet));
        uint8_t *body = malloc(packet.body_n);
        assert_non_null(body);
        for (size_t at = 0; at < packet.body_n; at++) {
            struct esk *esk = NULL;
            memcpy(body, packet.body, packet.body_n);
            for (unsigned bit = 0; bit < 8 && version > 4; bit += 3) {
                body[at] ^= (uint8_t)(1 << bit);
                gpg_error_t err = esk_parse(NULL, PACKET_SKESK, body, packet.body_n, &esk);
                if (!err && esk->s2k.mode != S2K_ARGON2) {
                    err = skesk_open(NULL, esk, passphrase, NULL, &back);
                    if (!err)
                        session_key_clear(&back);
                }
                assert_true(err != 0);
                esk_free(esk);
                esk = NULL;
                body[at] ^= (uint8_t)(1 << bit);
            }
            gpg_error_t err = esk_parse(NULL, PACKET_SKESK, body, at, &esk);
            if (!err) { /* a shorter encrypted key: version 4 has no tag, 5 and 6 do not open */
                err = skesk_open(NULL, esk, passphrase, NULL, &back);
                if (!err && version == 4 && !esk->encrypted)
                    session_key_clear(&back);
                else
                    assert_true(err != 0);
            }
            esk_free(esk);
        }
        free(body);
        session_key_clear(&session_key);
        gathered_clear(&out);
    }
    secret_free(passphrase);
}

/* Number of the first secret subkey that can encrypt. */
static struct secret_key *encryption_key(const char *file, const struct passphrase_source *source)
{
    for (unsigned number = 1;; number++) {
        struct secret_key *secret_key = sample_secret(file, source, number);
        if (key_can_encrypt_algo(secret_key->key))
            return secret_key;
        secret_key_free(secret_key);
    }
}

static void key_round_trip(struct secret_key *secret_key, unsigned version, bool hidden, enum cipher_algo cipher)
{
    struct session_key session_key, back;
    struct gathered out;
    struct esk *esk;
    assert_int_equal(session_key_new(cipher, &session_key), 0);
    struct sink *sink = faulty_sink_new(&out, SIZE_MAX);
    assert_int_equal(pkesk_write(NULL, version, secret_key->key, hidden, &session_key, sink), 0);
    sink_free(sink);
    assert_int_equal(parse(&out, PACKET_PKESK, &esk), 0);
    assert_int_equal(esk->version, version);
    assert_int_equal(esk_hidden(esk), hidden);
    assert_true(esk_for_key(esk, secret_key->key));
    assert_int_equal(pkesk_open(NULL, esk, secret_key, &back), 0);
    expect_same(&session_key, &back);
    assert_int_equal(back.cipher, version == 3 ? cipher : CIPHER_NONE);
    session_key_clear(&back);
    /* A flaw in any part is one and the same code. */
    for (unsigned i = 0; i < esk->parts.n; i++) {
        struct part *part = &esk->parts.part[i];
        for (size_t at = 0; at < part->n; at += part->n / 3 + 1) {
            part->bytes[at] ^= 1;
            gpg_error_t err = pkesk_open(NULL, esk, secret_key, &back);
            if (!err) { /* Elgamal and RSA: one padding in 65536 is right by chance, its checksum in 2^32 */
                session_key_clear(&back);
                fail();
            }
            assert_int_equal(gpg_err_code(err), GPG_ERR_DECRYPT_FAILED);
            part->bytes[at] ^= 1;
        }
    }
    esk_free(esk);
    session_key_clear(&session_key);
    gathered_clear(&out);
}

static void key_round_trips(void **state)
{
    (void)state;
    static const char *const names[] = {"rsa2048", "dsaelg", "p256",     "p384",     "p521",   "bp256", "bp512",
                                        "ed25519", "ed448",  "v4x25519", "v6x25519", "v6x448", "k256"};
    char passphrase[] = "p521 pass";
    const struct passphrase_source source = {.ask = says, .context = passphrase};
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        char file[64];
        snprintf(file, sizeof file, "samples/keys/%s.sec.asc", names[i]);
        struct secret_key *secret_key = encryption_key(file, &source);
        for (unsigned version = 3; version <= 6; version += 3)
            for (unsigned hidden = 0; hidden <= 1; hidden++) {
                key_round_trip(secret_key, version, hidden, CIPHER_AES256);
                key_round_trip(secret_key, version, hidden, CIPHER_AES128);
            }
        secret_key_free(secret_key);
    }
}

static void other_versions_and_algorithms(void **state)
{
    (void)state;
    static const struct {
        unsigned type;
        const char *body;
        gpg_err_code_t code;
    } rows[] = {
        {PACKET_PKESK, "", GPG_ERR_INV_PACKET},
        {PACKET_PKESK, "0a 01020304", GPG_ERR_UNKNOWN_VERSION},
        {PACKET_PKESK, "02 01020304", GPG_ERR_UNKNOWN_VERSION},
        {PACKET_PKESK, "03 0102030405060708 01 ffff 00", GPG_ERR_INV_PACKET},
        {PACKET_PKESK, "03 0102030405060708 01 0008 ff ff", GPG_ERR_INV_PACKET},
        {PACKET_PKESK, "06 20 04 0000", GPG_ERR_INV_PACKET},
        {PACKET_PKESK, "03 0102030405060708 19", GPG_ERR_INV_PACKET},
        {PACKET_SKESK, "", GPG_ERR_INV_PACKET},
        {PACKET_SKESK, "04", GPG_ERR_INV_PACKET},
        {PACKET_SKESK, "0b 0102", GPG_ERR_UNKNOWN_VERSION},
        {PACKET_SKESK, "04 63 00 08", GPG_ERR_NOT_SUPPORTED},
        {PACKET_SKESK, "04 09 07 08", GPG_ERR_NOT_SUPPORTED},
        {PACKET_SKESK, "04 09 65 02 474e55 01", GPG_ERR_INV_PACKET},
        {PACKET_SKESK, "05 09 09 00 08", GPG_ERR_NOT_SUPPORTED},
        {PACKET_SKESK, "06 13 09 02 02 00 08", GPG_ERR_INV_PACKET},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct octets octets = from_hex(rows[i].body);
        struct esk *esk;
        assert_int_equal(gpg_err_code(esk_parse(NULL, rows[i].type, octets.bytes, octets.n, &esk)), rows[i].code);
        free(octets.bytes);
    }
    /* An unknown public-key algorithm still names its key. */
    struct octets octets = from_hex("03 0102030405060708 08 0123456789");
    struct esk *esk;
    struct session_key session_key;
    assert_int_equal(esk_parse(NULL, PACKET_PKESK, octets.bytes, octets.n, &esk), 0);
    assert_int_equal(esk->parts.n, 0);
    assert_memory_equal(esk->keyid, "\1\2\3\4\5\6\7\10", 8);
    assert_int_equal(gpg_err_code(pkesk_open(NULL, esk, NULL, &session_key)), GPG_ERR_NOT_SUPPORTED);
    esk_free(esk);
    free(octets.bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vectors),
        cmocka_unit_test(pkesk_vector),
        cmocka_unit_test(passphrase_round_trips),
        cmocka_unit_test(direct_key),
        cmocka_unit_test(every_flip_and_cut_is_refused),
        cmocka_unit_test(key_round_trips),
        cmocka_unit_test(other_versions_and_algorithms),
    };
    return cmocka_run_group_tests(tests, crypt_setup, NULL);
}
