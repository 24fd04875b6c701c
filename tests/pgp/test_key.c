/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "samples.h"

#include "pgp/key.h"

static bool is_key(unsigned type)
{
    return type == PACKET_PUBLIC_KEY || type == PACKET_PUBLIC_SUBKEY || type == PACKET_SECRET_KEY ||
           type == PACKET_SECRET_SUBKEY;
}

/* Every key of a file has the fingerprint that its maker gave it. */
static void check_file(const char *file, const struct sample *sample)
{
    struct octets octets = sample_file(file);
    struct cursor cursor = cursor_over(octets.bytes, octets.n);
    struct packet_view packet;
    char *fprs = strdup(sample->fprs), *rest = fprs;
    while (packet_view_next(&cursor, &packet)) {
        struct key *key = NULL;
        size_t public_n = 0;
        char fpr[2 * KEY_FPR_MAX + 1];
        if (!is_key(packet.type))
            continue;
        assert_int_equal(key_parse(NULL, packet.type, packet.body, packet.body_n, &key, &public_n), 0);
        key_fpr_hex(key, fpr);
        assert_string_equal(fpr, strsep(&rest, ","));
        assert_int_equal(public_n, key->body_n);
        bool kyber = key->algo == PUBKEY_KYBER;
        assert_int_equal(gpg_err_code(key_usable(NULL, key)), kyber ? GPG_ERR_NOT_SUPPORTED : 0);
        assert_int_equal(key->has_keygrip, !kyber);
        assert_int_equal(key->subkey, packet.type == PACKET_PUBLIC_SUBKEY || packet.type == PACKET_SECRET_SUBKEY);
        assert_memory_equal(key->keyid, key->fpr + (key->version == 4 ? 12 : 0), 8);
        key_free(key);
    }
    assert_false(cursor.flawed);
    free(fprs);
    free(octets.bytes);
}

static void check_sample(const struct sample *sample)
{
    char file[128];
    snprintf(file, sizeof file, "samples/keys/%s.pub.asc", sample->name);
    check_file(file, sample);
    if (strncmp(sample->name, "ky", 2) != 0) {
        snprintf(file, sizeof file, "samples/keys/%s.sec.asc", sample->name);
        check_file(file, sample);
    }
}

static void fingerprints(void **state)
{
    (void)state;
    assert_true(samples(check_sample) > 30);
}

static void first_vector(void **state)
{
    (void)state;
    /* RFC 9580 A.1, body of the packet */
    struct octets body = from_hex("0453f35f0b16092b06010401da470f010107403f098994bdd916ed4053197934e4a87c80733a1280d62f"
                                  "8010992e43ee3b2406");
    char fpr[2 * KEY_FPR_MAX + 1];
    struct key *key = NULL;
    size_t public_n;
    assert_int_equal(key_parse(NULL, PACKET_PUBLIC_KEY, body.bytes, body.n, &key, &public_n), 0);
    key_fpr_hex(key, fpr);
    assert_string_equal(fpr, "C959BDBAFA32A2F89A153B678CFDE12197965A9A");
    assert_int_equal(key->created, 0x53F35F0B);
    assert_string_equal(key->curve->name, "Ed25519");
    assert_int_equal(key->bits, 255);
    struct key *again = key_ref(key);
    key_free(key);
    assert_int_equal(again->algo, PUBKEY_EDDSA);
    key_free(again);
    free(body.bytes);
}

static void sixth_version(void **state)
{
    static const char *const fprs[] = {"CB186C4F0609A697E4D52DFA6C722B0C1F1E27C18A56708F6525EC27BAD9ACC9",
                                       "12C83F1E706F6308FE151A417743A1F033790E93E9978488D1DB378DA9930885"};
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        struct octets octets = sample_file("rfc9580/a3.pub.asc");
        struct packet_view packet;
        struct key *key = NULL;
        size_t public_n;
        char fpr[2 * KEY_FPR_MAX + 1];
        assert_true(nth_packet(octets, i ? PACKET_PUBLIC_SUBKEY : PACKET_PUBLIC_KEY, 0, &packet));
        assert_int_equal(key_parse(NULL, packet.type, packet.body, packet.body_n, &key, &public_n), 0);
        key_fpr_hex(key, fpr);
        assert_string_equal(fpr, fprs[i]);
        assert_int_equal(key_can_sign_algo(key), i == 0);
        assert_int_equal(key_can_encrypt_algo(key), i == 1);
        key_free(key);
        free(octets.bytes);
    }
}

/* Runs a command, its output into OUT. */
static void run_command(const char *command, char *out, size_t n)
{
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    size_t got = fread(out, 1, n - 1, pipe);
    out[got] = 0;
    assert_int_equal(pclose(pipe), 0);
}

/* The keygrips that gpg gives for a file. */
static void check_keygrips(const char *home, const char *name)
{
    char command[512], file[64], *out = malloc(65536);
    snprintf(command, sizeof command,
             "gpg --homedir %s --no-options --batch --quiet --with-colons --with-keygrip --show-keys "
             "%s/samples/keys/%s.pub.asc",
             home, TESTDATA, name);
    run_command(command, out, 65536);
    snprintf(file, sizeof file, "samples/keys/%s.pub.asc", name);
    struct octets octets = sample_file(file);
    struct cursor cursor = cursor_over(octets.bytes, octets.n);
    struct packet_view packet;
    const char *at = out;
    unsigned count = 0;
    while (packet_view_next(&cursor, &packet)) {
        struct key *key = NULL;
        size_t public_n;
        char grip[41];
        if (!is_key(packet.type))
            continue;
        assert_int_equal(key_parse(NULL, packet.type, packet.body, packet.body_n, &key, &public_n), 0);
        for (unsigned i = 0; i < 20; i++)
            snprintf(grip + 2 * i, 3, "%02X", key->keygrip[i]);
        assert_non_null(at = strstr(at, "\ngrp:"));
        assert_memory_equal(at + strlen("\ngrp:::::::::"), grip, 40);
        at++;
        key_free(key);
        count++;
    }
    assert_true(count > 0);
    free(octets.bytes);
    free(out);
}

static void keygrips(void **state)
{
    static const char *const names[] = {"rsa2048", "dsaelg", "p256",    "p384", "p521",  "bp256",
                                        "bp384",   "bp512",  "ed25519", "k256", "multi", "subrevoked"};
    (void)state;
    char home[] = "/tmp/test_key_XXXXXX", command[64];
    assert_non_null(mkdtemp(home));
    for (unsigned i = 0; i < ARRAY_SIZE(names); i++)
        check_keygrips(home, names[i]);
    snprintf(command, sizeof command, "rm -r %s", home);
    run_command(command, command, sizeof command);
}

/* A body that must be refused with CODE. */
static void refuse(const char *hex, unsigned type, gpg_err_code_t code)
{
    struct octets body = from_hex(hex);
    struct key *key = NULL;
    size_t public_n;
    assert_int_equal(gpg_err_code(key_parse(NULL, type, body.bytes, body.n, &key, &public_n)), code);
    assert_null(key);
    free(body.bytes);
}

static void refuses(void **state)
{
    (void)state;
    refuse("", PACKET_PUBLIC_KEY, GPG_ERR_INV_PACKET);
    refuse("03 53f35f0b 0000 01 0008ff 000211", PACKET_PUBLIC_KEY, GPG_ERR_NOT_SUPPORTED);
    refuse("02 53f35f0b 0000 01 0008ff 000211", PACKET_PUBLIC_KEY, GPG_ERR_NOT_SUPPORTED);
    refuse("07 53f35f0b 01 0008ff 000211", PACKET_PUBLIC_KEY, GPG_ERR_UNKNOWN_VERSION);
    refuse("04 53f35f0b 01 0008ff 000203 00", PACKET_PUBLIC_KEY, GPG_ERR_INV_PACKET); /* trailing */
    refuse("04 53f35f0b 01 0008ff 0000", PACKET_PUBLIC_KEY, GPG_ERR_INV_PACKET);      /* zero */
    refuse("04 53f35f0b 01 ffffff", PACKET_PUBLIC_KEY, GPG_ERR_INV_PACKET);
    refuse("04 53f35f0b 63 0008ff", PACKET_SECRET_KEY, GPG_ERR_NOT_SUPPORTED); /* where does it end? */
    refuse("04 53f35f0b 16 00 000840", PACKET_PUBLIC_KEY, GPG_ERR_INV_PACKET); /* reserved size of an OID */
    refuse("04 53f35f0b 16 ff 000840", PACKET_PUBLIC_KEY, GPG_ERR_INV_PACKET);
    refuse("06 53f35f0b 1b 00000021 f94da7bb48d60a61e567706a6587d0331999bb9d891a08242ead84543df895a3 00",
           PACKET_PUBLIC_KEY, GPG_ERR_INV_PACKET);
    refuse("06 53f35f0b 1b ffffffff f94d", PACKET_PUBLIC_KEY, GPG_ERR_INV_PACKET);
}

/* Keys that parse and cannot be used. */
static void unusable(void **state)
{
    static const char *const hex[] = {
        "04 53f35f0b 63 0102030405",           /* algorithm 99 */
        "06 53f35f0b 63 00000003 010203",      /* the same, with its length */
        "04 53f35f0b 01 0008ff 000203",        /* RSA of 8 bits */
        "04 53f35f0b 13 03 2b6500 0003 04",    /* an unknown curve */
        "04 53f35f0b 14 0008ff 000203 000203", /* Elgamal that signs */
        "05 53f35f0b 08 00000004 03 2b6571",   /* Kyber: recognised */
    };
    (void)state;
    for (unsigned i = 0; i < ARRAY_SIZE(hex); i++) {
        struct octets body = from_hex(hex[i]);
        struct key *key = NULL;
        size_t public_n;
        assert_int_equal(key_parse(NULL, PACKET_PUBLIC_KEY, body.bytes, body.n, &key, &public_n), 0);
        struct failure failure;
        char sentence[FAILURE_SENTENCE_MAX];
        failure_init(&failure);
        assert_int_equal(gpg_err_code(key_usable(&failure, key)), GPG_ERR_NOT_SUPPORTED);
        failure_get(&failure, sentence);
        assert_true(strlen(sentence) > 10);
        if (i == 5)
            assert_non_null(strstr(sentence, "Kyber"));
        failure_destroy(&failure);
        assert_false(key->has_keygrip);
        key_free(key);
        free(body.bytes);
    }
}

/* Cut at every octet, and every octet changed: refused or another key, never the same fingerprint. */
static void mutations_of(const char *file)
{
    struct octets octets = sample_file(file);
    struct packet_view packet;
    struct key *key = NULL;
    size_t public_n;
    uint8_t fpr[KEY_FPR_MAX];
    assert_true(nth_packet(octets, 0, 0, &packet));
    assert_int_equal(key_parse(NULL, packet.type, packet.body, packet.body_n, &key, &public_n), 0);
    memcpy(fpr, key->fpr, sizeof fpr);
    key_free(key);
    for (size_t i = 0; i < public_n; i++) {
        uint8_t *cut = malloc(i + 1);
        memcpy(cut, packet.body, i);
        assert_int_not_equal(key_parse(NULL, packet.type, cut, i, &key, &public_n), 0);
        free(cut);
    }
    for (size_t i = 0; i < packet.body_n; i++)
        for (unsigned bit = 1; bit < 256; bit <<= 1) {
            uint8_t *changed = malloc(packet.body_n);
            memcpy(changed, packet.body, packet.body_n);
            changed[i] ^= (uint8_t)bit;
            if (!key_parse(NULL, packet.type, changed, packet.body_n, &key, &public_n)) {
                assert_memory_not_equal(fpr, key->fpr, 20);
                key_free(key);
            }
            free(changed);
        }
    free(octets.bytes);
}

static void mutations(void **state)
{
    (void)state;
    mutations_of("samples/keys/rsa2048.pub.asc");
    mutations_of("samples/keys/p256.pub.asc");
    mutations_of("samples/keys/ed25519.pub.asc");
    mutations_of("samples/keys/ed448.pub.asc");
    mutations_of("rfc9580/a3.pub.asc");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fingerprints), cmocka_unit_test(first_vector), cmocka_unit_test(sixth_version),
        cmocka_unit_test(keygrips),     cmocka_unit_test(refuses),      cmocka_unit_test(unusable),
        cmocka_unit_test(mutations),
    };
    return cmocka_run_group_tests(tests, crypt_setup, crypt_teardown);
}
