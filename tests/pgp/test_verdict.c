/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "faulty.h"
#include "samples.h"

#include "pgp/verdict.h"

#define NOW       1800000000 /* 2027 */
#define IN_2024   1717243200 /* keys of the samples are of 2024-01-15 */
#define TOO_OLD   1600000000
#define IN_2021   1623758400 /* the expired key was good then */
#define CONTENT   "what is signed\n"
#define CONTENT_N (sizeof CONTENT - 1)

struct setup {
    struct failure failure;
    struct keystore *keystore;
};

static void setup(struct setup *setup, const char *name)
{
    char path[256];
    failure_init(&setup->failure);
    setup->keystore = keystore_new(&setup->failure);
    assert_non_null(setup->keystore);
    snprintf(path, sizeof path, "%s/samples/keys/%s.pub.asc", TESTDATA, name);
    assert_int_equal(keystore_add_keyring(setup->keystore, path, false), 0);
}

static void cleanup(struct setup *setup)
{
    keystore_free(setup->keystore);
    failure_destroy(&setup->failure);
}

/* The one-pass packet and the signature by secret key NUMBER of a sample. */
struct signed_text {
    struct gathered one_pass, signature;
};

static void sign(const char *name, unsigned number, const struct signature_params *wanted, const char *content,
                 struct signed_text *ret)
{
    char file[64];
    snprintf(file, sizeof file, "samples/keys/%s.sec.asc", name);
    struct secret_key *secret_key = sample_secret(file, NULL, number);
    struct signature_params params = *wanted;
    signature_params_salt(secret_key->key, &params);
    struct sink *sink = faulty_sink_new(&ret->one_pass, SIZE_MAX);
    assert_int_equal(one_pass_write(secret_key->key, &params, true, sink), 0);
    sink_free(sink);
    gcry_md_hd_t md;
    assert_int_equal(gcry_md_open(&md, algo_digest(params.digest)->gcry, 0), 0);
    if (secret_key->key->version == 6)
        gcry_md_write(md, params.salt, algo_digest(params.digest)->salt_size);
    gcry_md_write(md, content, strlen(content));
    sink = faulty_sink_new(&ret->signature, SIZE_MAX);
    assert_int_equal(signature_write(NULL, secret_key, &params, md, sink), 0);
    sink_free(sink);
    secret_key_free(secret_key);
}

static void signed_clear(struct signed_text *text)
{
    gathered_clear(&text->one_pass);
    gathered_clear(&text->signature);
}

static struct packet_view packet_of(const struct gathered *gathered)
{
    struct packet_view packet;
    assert_true(nth_packet((struct octets){gathered->bytes, gathered->n}, 0, 0, &packet));
    return packet;
}

static gpg_error_t announce(struct verdict *verdict, const struct signed_text *text)
{
    struct packet_view packet = packet_of(&text->one_pass);
    return verdict_announce(verdict, NULL, 1, packet.body, packet.body_n);
}

static gpg_error_t conclude(struct verdict *verdict, const struct signed_text *text)
{
    struct packet_view packet = packet_of(&text->signature);
    return verdict_signature(verdict, NULL, 1, packet.body, packet.body_n);
}

/* Announced, hashed and concluded; and the same as a prefix signature. */
static enum signature_status status_of(const struct read_params *params, const struct signed_text *text)
{
    static const struct literal literal = {.format = 'b'};
    struct verdict *verdict = verdict_new(params);
    assert_int_equal(announce(verdict, text), 0);
    verdict_update(verdict, CONTENT, CONTENT_N);
    assert_int_equal(verdict_content_end(verdict, &literal), 0);
    assert_int_equal(verdict_pending(verdict, 1), 1);
    assert_int_equal(verdict_pending(verdict, 2), 0);
    assert_int_equal(conclude(verdict, text), 0);
    assert_int_equal(verdict_pending(verdict, 1), 0);
    verdict_layer_end(verdict, 1);
    const struct message_verdict *message = verdict_message(verdict);
    assert_int_equal(message->signatures, 1);
    assert_int_equal(message->good + message->bad + message->unknown, 1);
    enum signature_status status = message->verdict[0].status;
    assert_int_equal(!message->verdict[0].code, message->good);
    verdict_free(verdict);

    verdict = verdict_new(params);
    struct packet_view packet = packet_of(&text->signature);
    assert_int_equal(verdict_prefix(verdict, NULL, packet.body, packet.body_n), 0);
    verdict_update(verdict, CONTENT, CONTENT_N);
    assert_int_equal(verdict_content_end(verdict, &literal), 0);
    struct message_verdict *taken = verdict_take(verdict);
    assert_int_equal(taken->signatures, 1);
    assert_int_equal(taken->verdict[0].status, status);
    message_verdict_free(taken);
    return status;
}

static void every_status(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        unsigned number; /* of the key */
        uint32_t created;
        uint8_t digest, type;
        bool allow_weak;
        enum signature_status status;
    } rows[] = {
        {"rsa2048", 0, IN_2024, DIGEST_SHA256, SIG_BINARY, false, SIGNATURE_GOOD},
        {"rsa2048", 0, NOW, DIGEST_SHA256, SIG_BINARY, false, SIGNATURE_GOOD},
        {"rsa2048", 0, NOW + SIGNATURE_CLOCK_SKEW, DIGEST_SHA256, SIG_BINARY, false, SIGNATURE_GOOD},
        {"rsa2048", 0, NOW + SIGNATURE_CLOCK_SKEW + 1, DIGEST_SHA256, SIG_BINARY, false, SIGNATURE_NOT_ALLOWED},
        {"rsa2048", 0, TOO_OLD, DIGEST_SHA256, SIG_BINARY, false, SIGNATURE_NOT_ALLOWED},
        {"rsa2048", 0, IN_2024, DIGEST_SHA1, SIG_BINARY, false, SIGNATURE_WEAK},
        {"rsa2048", 0, IN_2024, DIGEST_SHA1, SIG_BINARY, true, SIGNATURE_GOOD},
        {"rsa2048", 0, IN_2024, DIGEST_RMD160, SIG_BINARY, false, SIGNATURE_WEAK},
        {"rsa2048", 0, IN_2024, DIGEST_SHA256, SIG_CERT_GENERIC, false, SIGNATURE_NOT_ALLOWED},
        {"rsa2048", 1, IN_2024, DIGEST_SHA256, SIG_BINARY, false, SIGNATURE_NOT_ALLOWED},
        {"expired", 0, IN_2021, DIGEST_SHA256, SIG_BINARY, false, SIGNATURE_GOOD_KEY_EXPIRED},
        {"expired", 0, IN_2024, DIGEST_SHA256, SIG_BINARY, false, SIGNATURE_KEY_EXPIRED},
        {"revoked", 0, IN_2024, DIGEST_SHA256, SIG_BINARY, false, SIGNATURE_KEY_REVOKED},
        {"signsub", 1, IN_2024, DIGEST_SHA512, SIG_BINARY, false, SIGNATURE_GOOD},
        {"dsaelg", 0, IN_2024, DIGEST_SHA256, SIG_BINARY, false, SIGNATURE_GOOD},
        {"v6x25519", 0, IN_2024, DIGEST_SHA512, SIG_BINARY, false, SIGNATURE_GOOD},
        {"v6x448", 0, IN_2024, DIGEST_SHA3_512, SIG_BINARY, false, SIGNATURE_GOOD},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct setup own;
        struct signed_text text;
        setup(&own, rows[i].name);
        const struct signature_params params = {
            .type = rows[i].type, .digest = rows[i].digest, .created = rows[i].created};
        sign(rows[i].name, rows[i].number, &params, CONTENT, &text);
        const struct read_params read = {
            .keystore = own.keystore, .now = NOW, .allow_weak_digests = rows[i].allow_weak};
        enum signature_status status = status_of(&read, &text);
        if (status != rows[i].status)
            print_error("row %zu (%s): status %u\n", i, rows[i].name, status);
        assert_int_equal(status, rows[i].status);
        const struct read_params nobody = {.now = NOW};
        assert_int_equal(status_of(&nobody, &text), SIGNATURE_NO_KEY);
        signed_clear(&text);
        cleanup(&own);
    }
}

static void other_content_is_bad(void **state)
{
    (void)state;
    struct setup own;
    struct signed_text text;
    setup(&own, "ed25519");
    const struct signature_params params = {.type = SIG_BINARY, .digest = DIGEST_SHA256, .created = IN_2024};
    const struct read_params read = {.keystore = own.keystore, .now = NOW};
    sign("ed25519", 0, &params, "something else", &text);
    assert_int_equal(status_of(&read, &text), SIGNATURE_BAD);
    signed_clear(&text);
    cleanup(&own);
}

static void text_mode(void **state)
{
    (void)state;
    struct setup own;
    struct signed_text text;
    setup(&own, "ed25519");
    const struct signature_params params = {.type = SIG_TEXT, .digest = DIGEST_SHA256, .created = IN_2024};
    const struct read_params read = {.keystore = own.keystore, .now = NOW};
    sign("ed25519", 0, &params, "what is signed\r\n", &text);
    assert_int_equal(status_of(&read, &text), SIGNATURE_GOOD);
    signed_clear(&text);
    cleanup(&own);
}

/* Several signatures: in the order that RFC 9580 wants, in the other, one left out, one too many. */
static void several(void **state)
{
    (void)state;
    struct setup own;
    struct signed_text text[3];
    static const uint8_t digests[] = {DIGEST_SHA256, DIGEST_SHA512, DIGEST_SHA256};
    setup(&own, "rsa2048");
    for (unsigned i = 0; i < 3; i++) {
        const struct signature_params params = {.type = SIG_BINARY, .digest = digests[i], .created = IN_2024 + i};
        sign("rsa2048", 0, &params, CONTENT, &text[i]);
    }
    const struct read_params read = {.keystore = own.keystore, .now = NOW};
    for (unsigned way = 0; way < 3; way++) {
        struct verdict *verdict = verdict_new(&read);
        for (unsigned i = 0; i < 3; i++)
            assert_int_equal(announce(verdict, &text[i]), 0);
        verdict_update(verdict, CONTENT, CONTENT_N);
        assert_int_equal(verdict_content_end(verdict, NULL), 0);
        for (unsigned i = 0; i < 3 - way / 2; i++)
            assert_int_equal(conclude(verdict, &text[way == 1 ? i : 2 - i]), 0);
        verdict_layer_end(verdict, 1);
        const struct message_verdict *message = verdict_message(verdict);
        assert_int_equal(message->signatures, 3);
        assert_int_equal(message->good, way == 2 ? 2 : 3);
        assert_int_equal(message->unknown, way == 2);
        if (way == 2)
            assert_int_equal(message->verdict[2].status, SIGNATURE_MISSING);
        else
            assert_int_equal(gpg_err_code(conclude(verdict, &text[0])), GPG_ERR_INV_PACKET);
        verdict_free(verdict);
    }
    for (unsigned i = 0; i < 3; i++)
        signed_clear(&text[i]);
    cleanup(&own);
}

/* A one-pass packet for another digest than the signature has: the value cannot be right. */
static void wrong_announcement(void **state)
{
    (void)state;
    struct setup own;
    struct signed_text a, b;
    setup(&own, "rsa2048");
    struct signature_params params = {.type = SIG_BINARY, .digest = DIGEST_SHA256, .created = IN_2024};
    sign("rsa2048", 0, &params, CONTENT, &a);
    params.digest = DIGEST_SHA512;
    sign("rsa2048", 0, &params, CONTENT, &b);
    const struct read_params read = {.keystore = own.keystore, .now = NOW};
    struct verdict *verdict = verdict_new(&read);
    assert_int_equal(announce(verdict, &a), 0);
    verdict_update(verdict, CONTENT, CONTENT_N);
    assert_int_equal(verdict_content_end(verdict, NULL), 0);
    assert_int_equal(conclude(verdict, &b), 0);
    assert_int_equal(verdict_message(verdict)->verdict[0].status, SIGNATURE_BAD);
    verdict_free(verdict);
    signed_clear(&a);
    signed_clear(&b);
    cleanup(&own);
}

static void unknown_versions_and_limits(void **state)
{
    (void)state;
    const struct read_params read = {.now = NOW};
    struct verdict *verdict = verdict_new(&read);
    static const uint8_t strange[] = {9, 1, 2, 3}, cut[] = {4, 0};
    assert_int_equal(verdict_announce(verdict, NULL, 1, strange, sizeof strange), 0);
    assert_int_equal(verdict_prefix(verdict, NULL, strange, sizeof strange), 0);
    assert_int_equal(gpg_err_code(verdict_prefix(verdict, NULL, cut, sizeof cut)), GPG_ERR_INV_PACKET);
    for (unsigned i = 2; i < MESSAGE_SIGNATURES_MAX; i++)
        assert_int_equal(verdict_prefix(verdict, NULL, strange, sizeof strange), 0);
    assert_int_equal(gpg_err_code(verdict_prefix(verdict, NULL, strange, sizeof strange)), GPG_ERR_TOO_MANY);
    assert_int_equal(gpg_err_code(verdict_announce(verdict, NULL, 1, strange, sizeof strange)), GPG_ERR_TOO_MANY);
    assert_int_equal(verdict_content_end(verdict, NULL), 0);
    assert_int_equal(verdict_signature(verdict, NULL, 1, strange, sizeof strange), 0);
    const struct message_verdict *message = verdict_message(verdict);
    assert_int_equal(message->signatures, MESSAGE_SIGNATURES_MAX);
    assert_int_equal(message->unknown, MESSAGE_SIGNATURES_MAX);
    for (unsigned i = 0; i < message->signatures; i++) {
        assert_int_equal(message->verdict[i].status, SIGNATURE_UNSUPPORTED);
        assert_null(message->verdict[i].signature);
    }
    verdict_free(verdict);
    verdict_free(NULL);
    message_verdict_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_status),       cmocka_unit_test(other_content_is_bad),
        cmocka_unit_test(text_mode),          cmocka_unit_test(several),
        cmocka_unit_test(wrong_announcement), cmocka_unit_test(unknown_versions_and_limits),
    };
    return cmocka_run_group_tests(tests, crypt_setup, NULL);
}
