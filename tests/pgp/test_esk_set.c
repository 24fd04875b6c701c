/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "faulty.h"
#include "samples.h"

#include "pgp/esk_set.h"
#include "pgp/mdc.h"

static const struct s2k cheap = {.mode = S2K_ITERATED, .digest = DIGEST_SHA256, .salt = "saltsalt"};

static gpg_error_t add_body(struct esk_set *set, unsigned type, const void *body, size_t n)
{
    const struct esk *esk;
    return esk_set_add(set, NULL, type, body, n, &esk);
}

static void add_packet(struct esk_set *set, struct gathered *gathered)
{
    struct packet_view packet;
    assert_true(nth_packet((struct octets){gathered->bytes, gathered->n}, 0, 0, &packet));
    assert_int_equal(add_body(set, packet.type, packet.body, packet.body_n), 0);
    gathered_clear(gathered);
}

static void add_passphrase(struct esk_set *set, unsigned version, const char *passphrase,
                           const struct session_key *session_key)
{
    struct gathered out;
    struct sink *sink = faulty_sink_new(&out, SIZE_MAX);
    struct secret *secret = secret_from(passphrase, strlen(passphrase));
    assert_int_equal(skesk_write(NULL, version, secret, &cheap, CIPHER_AES256, AEAD_OCB, session_key, sink), 0);
    sink_free(sink);
    secret_free(secret);
    add_packet(set, &out);
}

/* For the encryption subkey of a sample. */
static void add_key(struct esk_set *set, const char *name, unsigned version, bool hidden,
                    const struct session_key *session_key)
{
    char file[64];
    struct gathered out;
    snprintf(file, sizeof file, "samples/keys/%s.sec.asc", name);
    struct secret_key *secret_key = sample_secret(file, NULL, 1);
    struct sink *sink = faulty_sink_new(&out, SIZE_MAX);
    assert_int_equal(pkesk_write(NULL, version, secret_key->key, hidden, session_key, sink), 0);
    sink_free(sink);
    secret_key_free(secret_key);
    add_packet(set, &out);
}

/* The start of data that SESSION_KEY encrypts. */
static void put_head(const struct session_key *session_key, uint8_t head[MDC_PREFIX_MAX])
{
    struct gathered out;
    struct sink *sink;
    assert_int_equal(
        mdc_sink_new(NULL, session_key->cipher, session_key->key, 0, faulty_sink_new(&out, SIZE_MAX), &sink), 0);
    assert_int_equal(push(sink, "", 0, 0), 0);
    memcpy(head, out.bytes, MDC_PREFIX_MAX);
    gathered_clear(&out);
}

static void expect_open(struct esk_set *set, const struct read_params *params, const struct esk_target *target,
                        const struct session_key *session_key)
{
    struct failure failure;
    struct esk_opened opened;
    failure_init(&failure);
    gpg_error_t err = esk_set_open(set, &failure, params, target, &opened);
    if (err)
        print_error("%s\n", failure.sentence);
    assert_int_equal(err, 0);
    assert_int_equal(opened.session_key.key->n, session_key->key->n);
    assert_memory_equal(opened.session_key.key->bytes, session_key->key->bytes, session_key->key->n);
    session_key_clear(&opened.session_key);
    failure_destroy(&failure);
}

static gpg_err_code_t refused(struct esk_set *set, const struct read_params *params, const struct esk_target *target)
{
    struct failure failure;
    struct esk_opened opened;
    failure_init(&failure);
    gpg_error_t err = esk_set_open(set, &failure, params, target, &opened);
    assert_true(err != 0);
    assert_int_equal(gpg_err_code(failure_get(&failure, NULL)), gpg_err_code(err));
    assert_true(strlen(failure.sentence) > 10);
    failure_destroy(&failure);
    return gpg_err_code(err);
}

static struct keystore *keystore_of(struct failure *failure, const char *name)
{
    char path[256];
    struct keystore *keystore = keystore_new(failure);
    snprintf(path, sizeof path, "%s/samples/keys/%s.sec.asc", TESTDATA, name);
    assert_int_equal(keystore_add_secret_file(keystore, path, NULL), 0);
    return keystore;
}

/* Version 4 says little about a wrong passphrase: among many packets the right one is found by the data itself. */
/* OTHERS packets for other passphrases, then one for "right": some of the others seem to fit it too (version 4). */
static struct esk_set *right_behind(unsigned others, const struct session_key *session_key)
{
    struct esk_set *set = esk_set_new();
    for (unsigned i = 0; i < others; i++) {
        char other[24];
        snprintf(other, sizeof other, "other %u", i);
        add_passphrase(set, 4, other, session_key);
    }
    add_passphrase(set, 4, "right", session_key);
    return set;
}

static void passphrase_among_many(void **state)
{
    (void)state;
    struct session_key session_key;
    uint8_t head[MDC_PREFIX_MAX];
    assert_int_equal(session_key_new(CIPHER_AES256, &session_key), 0);
    struct esk_set *set = right_behind(63, &session_key);
    put_head(&session_key, head);
    char right[] = "right", wrong[] = "wrong";
    struct passphrase_source source = {.ask = says, .context = right};
    const struct read_params params = {.passphrases = &source};
    const struct esk_target target = {.protection = PROTECT_SEIPD_1, .head = head, .head_n = sizeof head};
    expect_open(set, &params, &target, &session_key);
    source.context = wrong;
    assert_int_equal(refused(set, &params, &target), GPG_ERR_BAD_PASSPHRASE);
    esk_set_free(set);
    /* A passphrase is tried on 64 packets and no more. */
    source.context = right;
    set = right_behind(64, &session_key);
    assert_int_equal(refused(set, &params, &target), GPG_ERR_BAD_PASSPHRASE);
    session_key_clear(&session_key);
    esk_set_free(set);
}

static void keys_named_and_hidden(void **state)
{
    (void)state;
    struct failure failure;
    struct session_key session_key;
    failure_init(&failure);
    struct keystore *keystore = keystore_of(&failure, "p256");
    const struct read_params params = {.keystore = keystore};
    assert_int_equal(session_key_new(CIPHER_AES256, &session_key), 0);
    for (unsigned hidden = 0; hidden <= 1; hidden++) {
        struct esk_set *set = esk_set_new();
        add_key(set, "rsa2048", 3, hidden, &session_key);
        add_key(set, "ed25519", 3, hidden, &session_key); /* ECDH as well: tried in vain where it is hidden */
        const struct esk_target target = {.protection = PROTECT_PACKET_20, .cipher = CIPHER_AES256};
        assert_int_equal(refused(set, &params, &target), GPG_ERR_NO_SECKEY);
        add_key(set, "p256", 3, hidden, &session_key);
        assert_int_equal(esk_set_count(set), 3);
        expect_open(set, &params, &target, &session_key);
        /* Another cipher than the session key's is no fit. */
        const struct esk_target camellia = {.protection = PROTECT_PACKET_20, .cipher = CIPHER_CAMELLIA256};
        gpg_err_code_t code = refused(set, &params, &camellia);
        assert_int_equal(code, hidden ? GPG_ERR_NO_SECKEY : GPG_ERR_DECRYPT_FAILED);
        esk_set_free(set);
    }
    session_key_clear(&session_key);
    keystore_free(keystore);
    failure_destroy(&failure);
}

/* Versions that do not go with the data are not used, so that its protection cannot be exchanged. */
static void versions_go_together(void **state)
{
    (void)state;
    struct failure failure;
    struct session_key session_key;
    uint8_t head[MDC_PREFIX_MAX];
    failure_init(&failure);
    struct keystore *keystore = keystore_of(&failure, "p256");
    assert_int_equal(session_key_new(CIPHER_AES256, &session_key), 0);
    put_head(&session_key, head);
    char right[] = "right";
    const struct passphrase_source source = {.ask = says, .context = right};
    const struct read_params params = {.keystore = keystore, .passphrases = &source};
    for (unsigned version = 3; version <= 6; version++)
        for (unsigned protection = PROTECT_SEIPD_1; protection <= PROTECT_SEIPD_2; protection++)
            for (unsigned key = version == 4 || version == 5 ? 0 : version == 3; key <= (version % 3 == 0); key++) {
                struct esk_set *set = esk_set_new();
                if (key)
                    add_key(set, "p256", version, false, &session_key);
                else
                    add_passphrase(set, version, right, &session_key);
                const struct esk_target target = {.protection = protection,
                                                  .cipher = protection == PROTECT_SEIPD_1 ? 0 : CIPHER_AES256,
                                                  .head = head,
                                                  .head_n = sizeof head};
                bool goes = protection == PROTECT_SEIPD_2     ? version == 6
                            : protection == PROTECT_PACKET_20 ? version <= 5
                                                              : version <= 4;
                if (goes)
                    expect_open(set, &params, &target, &session_key);
                else
                    assert_int_equal(refused(set, &params, &target), GPG_ERR_INV_PACKET);
                esk_set_free(set);
            }
    session_key_clear(&session_key);
    keystore_free(keystore);
    failure_destroy(&failure);
}

static void session_key_given(void **state)
{
    (void)state;
    struct session_key session_key;
    struct esk_set *set = esk_set_new();
    assert_int_equal(session_key_new(CIPHER_AES128, &session_key), 0);
    const struct read_params params = {.session_key = &session_key};
    struct esk_target target = {.protection = PROTECT_PACKET_20, .cipher = CIPHER_AES128};
    expect_open(set, &params, &target, &session_key);
    target.cipher = CIPHER_AES256;
    assert_int_equal(refused(set, &params, &target), GPG_ERR_BAD_KEY);
    session_key_clear(&session_key);
    esk_set_free(set);
}

static void what_is_skipped(void **state)
{
    (void)state;
    static const uint8_t newer[] = {10, 1, 2, 3}, kyber[] = {3, 1, 2, 3, 4, 5, 6, 7, 8, PUBKEY_KYBER, 0};
    static const uint8_t cipher_99[] = {4, 99, 0, 8}, cut[] = {3, 1, 2};
    const struct esk_target target = {.protection = PROTECT_PACKET_20, .cipher = CIPHER_AES256};
    const struct read_params params = {0};
    struct esk_set *set = esk_set_new();
    assert_int_equal(refused(set, &params, &target), GPG_ERR_NO_SECKEY);
    assert_int_equal(add_body(set, PACKET_PKESK, newer, sizeof newer), 0);
    assert_int_equal(refused(set, &params, &target), GPG_ERR_NOT_SUPPORTED);
    esk_set_free(set);
    set = esk_set_new();
    assert_int_equal(add_body(set, PACKET_PKESK, kyber, sizeof kyber), 0);
    assert_int_equal(refused(set, &params, &target), GPG_ERR_NOT_SUPPORTED);
    esk_set_free(set);
    set = esk_set_new();
    assert_int_equal(add_body(set, PACKET_SKESK, cipher_99, sizeof cipher_99), 0);
    assert_int_equal(refused(set, &params, &target), GPG_ERR_NOT_SUPPORTED);
    assert_int_equal(gpg_err_code(add_body(set, PACKET_PKESK, cut, sizeof cut)), GPG_ERR_INV_PACKET);
    for (unsigned i = 1; i < MESSAGE_ESK_MAX; i++)
        assert_int_equal(add_body(set, PACKET_PKESK, newer, sizeof newer), 0);
    assert_int_equal(gpg_err_code(add_body(set, PACKET_PKESK, newer, sizeof newer)), GPG_ERR_TOO_MANY);
    esk_set_free(set);
    esk_set_free(NULL);
}

/* Too much memory for one packet: the others are tried, and if none opens, that is said. */
static void derivation_over_the_limit(void **state)
{
    (void)state;
    struct session_key session_key;
    struct esk_set *set = esk_set_new();
    uint8_t argon2[1 + 2 + 20 + 15 + 48] = {5, CIPHER_AES256, AEAD_OCB, S2K_ARGON2};
    argon2[3 + 17] = 1;  /* t */
    argon2[3 + 18] = 1;  /* p */
    argon2[3 + 19] = 22; /* 4 GiB */
    char right[] = "right";
    const struct passphrase_source source = {.ask = says, .context = right};
    const struct read_params params = {.passphrases = &source};
    const struct esk_target target = {.protection = PROTECT_PACKET_20, .cipher = CIPHER_AES256};
    assert_int_equal(session_key_new(CIPHER_AES256, &session_key), 0);
    assert_int_equal(add_body(set, PACKET_SKESK, argon2, sizeof argon2), 0);
    assert_int_equal(refused(set, &params, &target), GPG_ERR_RESOURCE_LIMIT);
    add_passphrase(set, 5, right, &session_key);
    expect_open(set, &params, &target, &session_key);
    session_key_clear(&session_key);
    esk_set_free(set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(passphrase_among_many), cmocka_unit_test(keys_named_and_hidden),
        cmocka_unit_test(versions_go_together),  cmocka_unit_test(session_key_given),
        cmocka_unit_test(what_is_skipped),       cmocka_unit_test(derivation_over_the_limit),
    };
    return cmocka_run_group_tests(tests, crypt_setup, NULL);
}
