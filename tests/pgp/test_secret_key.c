/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "samples.h"

static const uint8_t frame_bytes[] = {9,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16, 17,
                                      18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 2,  16};

static void signs(struct secret_key *secret_key)
{
    uint8_t digest[64];
    struct parts parts = {0};
    gcry_md_hash_buffer(GCRY_MD_SHA512, digest, "text", 4);
    assert_int_equal(pubkey_sign(NULL, secret_key, DIGEST_SHA512, digest, 64, &parts), 0);
    assert_int_equal(pubkey_verify(secret_key->key, DIGEST_SHA512, digest, 64, &parts), 0);
    digest[0] ^= 1;
    assert_int_equal(gpg_err_code(pubkey_verify(secret_key->key, DIGEST_SHA512, digest, 64, &parts)),
                     GPG_ERR_BAD_SIGNATURE);
    parts_clear(&parts);
}

static void decrypts(struct secret_key *secret_key)
{
    bool native = secret_key->key->algo == PUBKEY_X25519 || secret_key->key->algo == PUBKEY_X448;
    struct secret *frame = secret_from(frame_bytes, native ? 32 : sizeof frame_bytes);
    struct secret *back = NULL;
    struct parts parts = {0};
    assert_int_equal(pubkey_encrypt(NULL, secret_key->key, frame, &parts), 0);
    assert_int_equal(pubkey_decrypt(NULL, secret_key, &parts, &back), 0);
    assert_int_equal(back->n, frame->n);
    assert_memory_equal(back->bytes, frame->bytes, frame->n);
    secret_free(back);
    secret_free(frame);
    parts_clear(&parts);
}

static void check_packet(const struct sample *sample, const struct packet_view *packet)
{
    struct passphrase_source source = {says, (void *)(uintptr_t)sample->passphrase};
    struct secret_key *secret_key = NULL;
    bool locked = sample->passphrase[0];
    assert_int_equal(secret_key_parse(NULL, packet->type, packet->body, packet->body_n, &source, &secret_key), 0);
    if (secret_key_state(secret_key) == SECRET_DUMMY) {
        assert_string_equal(sample->name, "stub");
        assert_int_equal(gpg_err_code(secret_key_unlock(NULL, secret_key)), GPG_ERR_NO_SECKEY);
        secret_key_free(secret_key);
        return;
    }
    assert_int_equal(secret_key_state(secret_key), locked ? SECRET_LOCKED : SECRET_PLAIN);
    if (key_can_sign_algo(secret_key->key))
        signs(secret_key);
    if (key_can_encrypt_algo(secret_key->key))
        decrypts(secret_key);
    assert_int_equal(secret_key_state(secret_key), SECRET_PLAIN);
    secret_key_free(secret_key);
}

static void check_sample(const struct sample *sample)
{
    char file[64];
    struct packet_view packet;
    unsigned count = 0;
    if (strncmp(sample->name, "ky", 2) == 0)
        return;
    snprintf(file, sizeof file, "samples/keys/%s.sec.asc", sample->name);
    struct octets octets = sample_file(file);
    struct cursor cursor = cursor_over(octets.bytes, octets.n);
    while (packet_view_next(&cursor, &packet))
        if (packet.type == PACKET_SECRET_KEY || packet.type == PACKET_SECRET_SUBKEY) {
            check_packet(sample, &packet);
            count++;
        }
    assert_true(count > 0);
    free(octets.bytes);
}

/* Keys of many programs parse, unlock, sign and decrypt. */
static void all_samples(void **state)
{
    (void)state;
    assert_true(samples(check_sample) > 30);
}

/* A source that counts its questions, gives ANSWERS one after the other, and then ERR. */
struct script {
    const char *answers[4];
    gpg_error_t err;
    unsigned asked;
};

static gpg_error_t ask_script(void *context, const struct key *key, unsigned attempt, bool is_new, struct secret **ret)
{
    struct script *script = context;
    assert_non_null(key);
    assert_false(is_new);
    assert_int_equal(attempt, script->asked);
    const char *answer = script->answers[script->asked++];
    if (!answer)
        return script->err;
    *ret = secret_from(answer, strlen(answer));
    return 0;
}

static gpg_err_code_t unlock_with(const char *file, struct script *script)
{
    struct passphrase_source source = {ask_script, script};
    struct secret_key *secret_key = sample_secret(file, script ? &source : NULL, 0);
    gpg_error_t err = secret_key_unlock(NULL, secret_key);
    assert_int_equal(secret_key_state(secret_key), err ? SECRET_LOCKED : SECRET_PLAIN);
    if (!err)
        assert_int_equal(secret_key_unlock(NULL, secret_key), 0); /* and asks no more */
    secret_key_free(secret_key);
    return gpg_err_code(err);
}

static void attempts(void **state)
{
    const char *file = "samples/keys/rsa3072.sec.asc";
    (void)state;
    struct script right = {{"wrong", "wronger", "rsa pass A"}, 0, 0};
    assert_int_equal(unlock_with(file, &right), 0);
    assert_int_equal(right.asked, 3);
    struct script wrong = {{"a", "b", "c", "rsa pass A"}, 0, 0};
    assert_int_equal(unlock_with(file, &wrong), GPG_ERR_BAD_PASSPHRASE);
    assert_int_equal(wrong.asked, SECRET_KEY_ATTEMPTS);
    struct script cancelled = {{"a"}, gpg_error(GPG_ERR_CANCELED), 0};
    assert_int_equal(unlock_with(file, &cancelled), GPG_ERR_CANCELED);
    assert_int_equal(cancelled.asked, 2);
    struct script one = {{"a"}, gpg_error(GPG_ERR_NO_PASSPHRASE), 0};
    assert_int_equal(unlock_with(file, &one), GPG_ERR_BAD_PASSPHRASE);
    struct script none = {{NULL}, gpg_error(GPG_ERR_NO_PASSPHRASE), 0};
    assert_int_equal(unlock_with(file, &none), GPG_ERR_NO_PASSPHRASE);
    assert_int_equal(unlock_with(file, NULL), GPG_ERR_NO_PASSPHRASE);
    struct script argon2 = {{"x", "argon pass A"}, 0, 0};
    assert_int_equal(unlock_with("samples/keys/v6argon.sec.asc", &argon2), 0);
    struct script legacy = {{"x", "aead pass A"}, 0, 0};
    assert_int_equal(unlock_with("samples/keys/v4aeadpw.sec.asc", &legacy), 0);
}

/* RFC 9580 A.4, A.5: the same secrets, plain and locked. */
static void published_keys(void **state)
{
    struct passphrase_source source = {says, (void *)(uintptr_t) "correct horse battery staple"};
    (void)state;
    for (unsigned number = 0; number < 2; number++) {
        struct secret_key *plain = sample_secret("rfc9580/a4.sec.asc", NULL, number);
        struct secret_key *locked = sample_secret("rfc9580/a5.sec.asc", &source, number);
        assert_int_equal(secret_key_state(plain), SECRET_PLAIN);
        assert_int_equal(secret_key_state(locked), SECRET_LOCKED);
        assert_memory_equal(plain->key->fpr, locked->key->fpr, 32);
        if (number == 0) {
            signs(plain);
            signs(locked);
        } else {
            decrypts(plain);
            decrypts(locked);
        }
        secret_key_free(plain);
        secret_key_free(locked);
    }
}

/* A packet body under construction. */
struct packet_body {
    uint8_t bytes[4096];
    size_t n;
};

static void put(struct packet_body *body, const void *bytes, size_t n)
{
    assert_true(body->n + n <= sizeof body->bytes);
    memcpy(body->bytes + body->n, bytes, n);
    body->n += n;
}

static void put_octet(struct packet_body *body, unsigned octet)
{
    uint8_t value = (uint8_t)octet;
    put(body, &value, 1);
}

/* The public part and the secret numbers (without their sum) of a plain version 4 sample. */
static void take_apart(const char *name, struct packet_body *ret_public, struct packet_body *ret_secret)
{
    struct octets octets = sample_file(name);
    struct packet_view packet;
    struct key *key = NULL;
    size_t n;
    assert_true(nth_packet(octets, PACKET_SECRET_KEY, 0, &packet));
    assert_int_equal(key_parse(NULL, packet.type, packet.body, packet.body_n, &key, &n), 0);
    assert_int_equal(packet.body[n], 0);
    *ret_public = *ret_secret = (struct packet_body){.n = 0};
    put(ret_public, packet.body, n);
    put(ret_secret, packet.body + n + 1, packet.body_n - n - 3);
    key_free(key);
    free(octets.bytes);
}

static void put_sum(struct packet_body *body, const struct packet_body *of)
{
    unsigned sum = 0;
    for (size_t i = 0; i < of->n; i++)
        sum += of->bytes[i];
    put_octet(body, sum >> 8 & 0xFF);
    put_octet(body, sum & 0xFF);
}

/* Puts SECRET encrypted in CFB with KEY and an IV of BLOCK octets of 7. */
static void put_cfb(struct packet_body *body, const struct packet_body *secret, int algo, const struct secret *key,
                    size_t block)
{
    struct packet_body encrypted = *secret;
    uint8_t iv[16];
    gcry_cipher_hd_t cipher;
    memset(iv, 7, sizeof iv);
    put(body, iv, block);
    assert_int_equal(gcry_cipher_open(&cipher, algo, GCRY_CIPHER_MODE_CFB, 0), 0);
    assert_int_equal(gcry_cipher_setkey(cipher, key->bytes, key->n), 0);
    assert_int_equal(gcry_cipher_setiv(cipher, iv, block), 0);
    assert_int_equal(gcry_cipher_encrypt(cipher, encrypted.bytes, encrypted.n, NULL, 0), 0);
    gcry_cipher_close(cipher);
    put(body, encrypted.bytes, encrypted.n);
}

/* BODY as a secret key: it works with the passphrase "pass", and not with another. */
static void works(const struct packet_body *body)
{
    struct passphrase_source source = {says, (void *)(uintptr_t) "pass"};
    struct passphrase_source wrong = {says, (void *)(uintptr_t) "Pass"};
    struct secret_key *secret_key = NULL;
    assert_int_equal(secret_key_parse(NULL, PACKET_SECRET_KEY, body->bytes, body->n, &source, &secret_key), 0);
    signs(secret_key);
    secret_key_free(secret_key);
    assert_int_equal(secret_key_parse(NULL, PACKET_SECRET_KEY, body->bytes, body->n, &wrong, &secret_key), 0);
    if (secret_key_state(secret_key) == SECRET_LOCKED)
        assert_int_equal(gpg_err_code(secret_key_unlock(NULL, secret_key)), GPG_ERR_BAD_PASSPHRASE);
    secret_key_free(secret_key);
}

static const struct s2k salted = {.mode = S2K_SALTED, .digest = DIGEST_SHA256, .salt = "12345678"};

/* Usage 255, and cipher octets with MD5 of the passphrase. */
static void old_protections(void **state)
{
    static const uint8_t ciphers[] = {CIPHER_CAST5, CIPHER_3DES, CIPHER_AES128, CIPHER_TWOFISH};
    static const struct s2k md5 = {.mode = S2K_SIMPLE, .digest = DIGEST_MD5};
    struct secret *pass = secret_from("pass", 4);
    (void)state;
    for (unsigned i = 0; i < ARRAY_SIZE(ciphers); i++)
        for (unsigned old = 0; old < 2; old++) {
            struct packet_body body, secret;
            const struct cipher_info *cipher = algo_cipher(ciphers[i]);
            struct secret *kek = NULL;
            uint8_t specifier[S2K_MAX];
            take_apart("samples/keys/ed25519.sec.asc", &body, &secret);
            struct packet_body plain = secret;
            put_sum(&secret, &plain);
            if (!old)
                put_octet(&body, 255);
            put_octet(&body, ciphers[i]);
            if (!old)
                put(&body, specifier, s2k_put(&salted, specifier));
            assert_int_equal(s2k_derive(NULL, old ? &md5 : &salted, pass, cipher->key_size, NULL, &kek), 0);
            put_cfb(&body, &secret, cipher->gcry, kek, cipher->block_size);
            works(&body);
            secret_free(kek);
        }
    secret_free(pass);
}

/* What follows the public part of a key of version 5 or 6 made from the same secret. */
static void newer_versions(void **state)
{
    struct secret *pass = secret_from("pass", 4), *kek = NULL;
    uint8_t specifier[S2K_MAX], sha1[20];
    (void)state;
    assert_int_equal(s2k_derive(NULL, &salted, pass, 16, NULL, &kek), 0);
    uint8_t specifier_n = (uint8_t)s2k_put(&salted, specifier);
    for (unsigned version = 5; version <= 6; version++)
        for (unsigned locked = 0; locked < 2; locked++) {
            struct packet_body public_part, secret, body = {.n = 0};
            take_apart("samples/keys/rsa2048.sec.asc", &public_part, &secret);
            struct packet_body plain = secret;
            put_octet(&body, version);
            put(&body, public_part.bytes + 1, 5);
            uint8_t count[4];
            put_be32(count, (uint32_t)public_part.n - 6);
            put(&body, count, 4);
            put(&body, public_part.bytes + 6, public_part.n - 6);
            put_octet(&body, locked ? 254 : 0);
            if (locked) {
                gcry_md_hash_buffer(GCRY_MD_SHA1, sha1, plain.bytes, plain.n);
                put(&secret, sha1, 20);
                put_octet(&body, 1u + (version == 6) + specifier_n + 16);
                put_octet(&body, CIPHER_AES128);
                if (version == 6)
                    put_octet(&body, specifier_n);
                put(&body, specifier, specifier_n);
                struct packet_body encrypted = {.n = 0};
                put_cfb(&encrypted, &secret, GCRY_CIPHER_AES128, kek, 16);
                put(&body, encrypted.bytes, 16);
                put_be32(count, (uint32_t)secret.n);
                if (version == 5)
                    put(&body, count, 4);
                put(&body, encrypted.bytes + 16, encrypted.n - 16);
            } else {
                if (version == 5) {
                    put_octet(&body, 0);
                    put_be32(count, (uint32_t)secret.n);
                    put(&body, count, 4);
                    put_sum(&secret, &plain);
                }
                put(&body, secret.bytes, secret.n);
            }
            works(&body);
        }
    secret_free(kek);
    secret_free(pass);
}

/* GNU extensions: no secret, or a card's serial number. */
static void stubs(void **state)
{
    (void)state;
    for (unsigned mode = 1; mode <= 2; mode++) {
        struct packet_body body, secret;
        struct secret_key *secret_key = NULL;
        take_apart("samples/keys/ed25519.sec.asc", &body, &secret);
        put(&body, "\xFF\x07\x65\x00GNU", 7);
        put_octet(&body, mode);
        if (mode == 2)
            put(&body, "\x10\xD2\x76\x00\x01\x24\x01\x02\x00\x00\x05\x00\x00\x00\x01\x00\x00", 17);
        assert_int_equal(secret_key_parse(NULL, PACKET_SECRET_KEY, body.bytes, body.n, NULL, &secret_key), 0);
        assert_int_equal(secret_key_state(secret_key), mode == 1 ? SECRET_DUMMY : SECRET_ON_CARD);
        assert_int_equal(gpg_err_code(secret_key_unlock(NULL, secret_key)), GPG_ERR_NO_SECKEY);
        secret_key_free(secret_key);
    }
}

/* Protections that we do not have: the key parses, so that its public part can be used. */
static void unsupported(void **state)
{
    static const char *const tails[] = {"\xFE\x07\x09",
                                        "\xFE\x63\x01\x08"
                                        "12345678",
                                        "\xFD\x09\x09\x01\x08"
                                        "12345678",
                                        "\x63"};
    static const uint8_t sizes[] = {3, 12, 13, 1};
    (void)state;
    for (unsigned i = 0; i < ARRAY_SIZE(tails); i++) {
        struct packet_body body, secret;
        struct secret_key *secret_key = NULL;
        take_apart("samples/keys/ed25519.sec.asc", &body, &secret);
        put(&body, tails[i], sizes[i]);
        assert_int_equal(secret_key_parse(NULL, PACKET_SECRET_KEY, body.bytes, body.n, NULL, &secret_key), 0);
        assert_int_equal(secret_key_state(secret_key), SECRET_UNSUPPORTED);
        assert_int_equal(gpg_err_code(secret_key_unlock(NULL, secret_key)), GPG_ERR_NOT_SUPPORTED);
        secret_key_free(secret_key);
    }
}

/* A secret with the public part of another key. */
static void foreign_secret(void **state)
{
    static const char *const pairs[][2] = {{"samples/keys/ed25519.sec.asc", "samples/keys/signsub.sec.asc"},
                                           {"samples/keys/ed25519.sec.asc", "samples/keys/photo.sec.asc"},
                                           {"samples/keys/rsa2048.sec.asc", "samples/keys/stranger.sec.asc"},
                                           {"samples/keys/p256.sec.asc", "samples/keys/bp256.sec.asc"},
                                           {"samples/keys/p256.sec.asc", "samples/keys/k256.sec.asc"}};
    (void)state;
    for (unsigned i = 0; i < ARRAY_SIZE(pairs); i++) {
        struct packet_body body, secret, other_public, other_secret;
        struct secret_key *secret_key = NULL;
        take_apart(pairs[i][0], &body, &secret);
        take_apart(pairs[i][1], &other_public, &other_secret);
        put_octet(&body, 0);
        put(&body, other_secret.bytes, other_secret.n);
        put_sum(&body, &other_secret);
        assert_int_equal(secret_key_parse(NULL, PACKET_SECRET_KEY, body.bytes, body.n, NULL, &secret_key), 0);
        gpg_err_code_t code = gpg_err_code(secret_key_unlock(NULL, secret_key));
        assert_true(code == GPG_ERR_BAD_SECKEY || code == GPG_ERR_INV_PACKET);
        secret_key_free(secret_key);
    }
}

/* Every bit changed and every cut: refused when parsed or when used; never a crash, never a signature. */
static void mutations_of(const char *name, const char *passphrase, size_t step)
{
    struct passphrase_source source = {says, (void *)(uintptr_t)passphrase};
    struct octets octets = sample_file(name);
    struct packet_view packet;
    assert_true(nth_packet(octets, PACKET_SECRET_KEY, 0, &packet));
    struct secret_key *original = sample_secret(name, NULL, 0);
    for (size_t i = 0; i < 2 * packet.body_n; i += step) {
        bool cut = i >= packet.body_n;
        size_t n = cut ? i - packet.body_n : packet.body_n;
        uint8_t *changed = malloc(n + 1);
        struct secret_key *secret_key = NULL;
        memcpy(changed, packet.body, n);
        if (!cut)
            changed[i] ^= (uint8_t)(1u << i % 8);
        if (!secret_key_parse(NULL, PACKET_SECRET_KEY, changed, n, &source, &secret_key)) {
            bool same = memcmp(secret_key->key->fpr, original->key->fpr, 20) == 0;
            /* Only the creation time is not part of the numbers; and a changed count of bits may mean the same. */
            if (!secret_key_unlock(NULL, secret_key))
                assert_true(!same || (i > original->key->body_n && !cut));
            secret_key_free(secret_key);
        }
        free(changed);
    }
    secret_key_free(original);
    free(octets.bytes);
}

static void mutations(void **state)
{
    (void)state;
    mutations_of("samples/keys/ed25519.sec.asc", "", 1);
    mutations_of("samples/keys/p256.sec.asc", "", 1);
    mutations_of("samples/keys/rsa2048.sec.asc", "", 3);
    mutations_of("samples/keys/dsaelg.sec.asc", "", 7);
    mutations_of("samples/keys/ed448.sec.asc", "", 1);
    mutations_of("rfc9580/a4.sec.asc", "", 1);
    mutations_of("samples/keys/v4aeadpw.sec.asc", "aead pass A", 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_samples),     cmocka_unit_test(attempts),       cmocka_unit_test(published_keys),
        cmocka_unit_test(old_protections), cmocka_unit_test(newer_versions), cmocka_unit_test(stubs),
        cmocka_unit_test(unsupported),     cmocka_unit_test(foreign_secret), cmocka_unit_test(mutations),
    };
    return cmocka_run_group_tests(tests, crypt_setup, crypt_teardown);
}
