/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "keys.h"

#include <fcntl.h>
#include <sys/stat.h>

static const char *const names[] = {"ed25519", "p256", "photo", "v6x25519", "ed448", "nouid"};

/* The samples one after the other. */
static struct bytes joined(void)
{
    struct bytes all = {0};
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        char file[64];
        snprintf(file, sizeof file, "%s.pub.asc", names[i]);
        struct bytes one = sample_bytes(file);
        bytes_add(&all, one.at, one.n);
        bytes_clear(&one);
    }
    return all;
}

static struct keyring *in_memory(const struct bytes *bytes)
{
    struct keyring *keyring = NULL;
    uint8_t *copy = malloc(bytes->n + !bytes->n);
    assert_non_null(copy);
    if (bytes->n)
        memcpy(copy, bytes->at, bytes->n);
    assert_int_equal(keyring_from_memory("memory", copy, bytes->n, &keyring), 0);
    return keyring;
}

/* How many certificates TEXT (NULL: any) matches; all of them parse. */
static unsigned count(const struct keyring *keyring, const char *text)
{
    struct key_spec spec;
    const uint8_t *bytes;
    size_t n, used, position = 0;
    unsigned found = 0;
    gpg_error_t err;
    if (text)
        assert_int_equal(key_spec_parse(text, &spec), 0);
    while (!(err = keyring_next(NULL, keyring, text ? &spec : NULL, &position, &bytes, &n))) {
        struct certificate *certificate = NULL;
        assert_int_equal(certificate_parse(NULL, bytes, n, &certificate, &used), 0);
        certificate_free(certificate);
        found++;
    }
    assert_code(err, GPG_ERR_EOF);
    return found;
}

static void check_searches(const struct keyring *keyring)
{
    assert_int_equal(count(keyring, NULL), ARRAY_SIZE(names));
    assert_int_equal(count(keyring, "example.org"), ARRAY_SIZE(names) - 1);
    assert_int_equal(count(keyring, "photo@example.org"), 1);
    assert_int_equal(count(keyring, "=photo Alpha <photo@example.org>"), 1);
    assert_int_equal(count(keyring, "nobody@example.org"), 0);
    assert_int_equal(count(keyring, "CA3B4E156864ED52371CBA128435BF636FFA307F"), 1);
    assert_int_equal(count(keyring, "0x648A2F90C89AF281E2707C71760F11CA141B56CB!"), 1); /* a subkey */
    assert_int_equal(count(keyring, "FB186C61446BE4D9C3C3975658CC776FFB90243AACC5C08B79AFC6BB3503B9CB"), 1);
    assert_int_equal(count(keyring, "FB186C61446BE4D9"), 1); /* version 6: the first octets */
    assert_int_equal(count(keyring, "99AFCAB25C042022"), 1); /* version 5 too */
    assert_int_equal(count(keyring, "6FFA307F"), 1);
    assert_int_equal(count(keyring, "F735536073027AB87812B68F8F2159FA484F1A4E"), 1);
    assert_int_equal(count(keyring, "0000000000000000"), 0);
}

static void test_binary(void **state)
{
    (void)state;
    struct home home = home_new();
    struct bytes all = joined();
    struct keyring *keyring = in_memory(&all);
    check_searches(keyring);
    keyring_free(keyring);
    char file[128];
    snprintf(file, sizeof file, "%s/ring", home.folder);
    file_write(file, all.at, all.n);
    assert_int_equal(keyring_open(NULL, file, &keyring), 0);
    /* gpg writes a new file and renames it: the old state stays readable. */
    char other[160];
    snprintf(other, sizeof other, "%s.new", file);
    file_write(other, "\x99", 1);
    assert_int_equal(rename(other, file), 0);
    check_searches(keyring);
    keyring_free(keyring);
    bytes_clear(&all);
    home_remove(&home);
}

/* Armored blocks one after the other, as they are in the samples. */
static void test_armored(void **state)
{
    (void)state;
    struct home home = home_new();
    struct bytes text = {0};
    struct keyring *keyring = NULL;
    char file[512];
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        char name[64];
        snprintf(name, sizeof name, "%s.pub.asc", names[i]);
        sample_name(name, file);
        struct bytes one = file_bytes(file);
        bytes_add(&text, one.at, one.n);
        bytes_clear(&one);
    }
    snprintf(file, sizeof file, "%s/ring", home.folder);
    file_write(file, text.at, text.n);
    assert_int_equal(keyring_open(NULL, file, &keyring), 0);
    check_searches(keyring);
    keyring_free(keyring);
    /* The same from a pipe, which cannot be mapped. */
    char fifo[128];
    snprintf(fifo, sizeof fifo, "%s/fifo", home.folder);
    assert_int_equal(mkfifo(fifo, 0600), 0);
    char command[1024];
    snprintf(command, sizeof command, "cat %s >%s &", file, fifo);
    assert_int_equal(system(command), 0);
    assert_int_equal(keyring_open(NULL, fifo, &keyring), 0);
    check_searches(keyring);
    keyring_free(keyring);
    bytes_clear(&text);
    home_remove(&home);
}

static void test_no_keyrings(void **state)
{
    (void)state;
    struct home home = home_new();
    struct keyring *keyring = NULL;
    struct failure failure;
    struct bytes none = {0};
    const uint8_t *bytes;
    size_t n, position = 0;
    char file[128];
    snprintf(file, sizeof file, "%s/ring", home.folder);
    failure_init(&failure);
    assert_code(keyring_open(&failure, file, &keyring), GPG_ERR_ENOENT);
    assert_int_equal(failure.code, 0);
    file_write(file, "", 0);
    assert_int_equal(keyring_open(&failure, file, &keyring), 0);
    assert_int_equal(count(keyring, NULL), 0);
    keyring_free(keyring);
    keyring = in_memory(&none);
    assert_int_equal(count(keyring, "x"), 0);
    keyring_free(keyring);
    keyring_free(NULL);
    file_write(file, "just some words\n", 16);
    assert_true(keyring_open(&failure, file, &keyring) != 0);
    assert_non_null(strstr(failure.sentence, file));
    failure_destroy(&failure);
    failure_init(&failure);
    file_write(file, "\x99\x01\x02", 3);
    assert_int_equal(keyring_open(&failure, file, &keyring), 0);
    assert_code(keyring_next(&failure, keyring, NULL, &position, &bytes, &n), GPG_ERR_BAD_DATA);
    assert_non_null(strstr(failure.sentence, "byte 0"));
    keyring_free(keyring);
    failure_destroy(&failure);
    home_remove(&home);
}

/* Trust packets, as pubring.gpg has them, and packets of unknown kinds. */
static void test_other_packets(void **state)
{
    (void)state;
    struct bytes one = sample_bytes("ed25519.pub.asc"), ring = {0};
    struct cursor cursor = cursor_over(one.at, one.n);
    struct packet_view packet;
    while (packet_view_next(&cursor, &packet)) {
        bytes_add_packet(&ring, packet.type, packet.body, packet.body_n);
        bytes_add(&ring, "\xB0\x02\0", 4);
        bytes_add_packet(&ring, 61, "private", 7);
    }
    struct keyring *keyring = in_memory(&ring);
    assert_int_equal(count(keyring, NULL), 1);
    assert_int_equal(count(keyring, "ed25519@example.org"), 1);
    keyring_free(keyring);
    bytes_clear(&one);
    bytes_clear(&ring);
}

static void walk_all(const struct bytes *bytes)
{
    static const char *const texts[] = {"example.org", "0x6FFA307F", "&0123456789ABCDEF0123456789ABCDEF01234567"};
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        struct keyring *keyring = in_memory(bytes);
        struct key_spec spec;
        const uint8_t *found;
        size_t n, position = 0;
        assert_int_equal(key_spec_parse(texts[i], &spec), 0);
        while (!keyring_next(NULL, keyring, &spec, &position, &found, &n))
            assert_true(n <= bytes->n);
        keyring_free(keyring);
    }
}

static void test_damage(void **state)
{
    (void)state;
    struct bytes one = sample_bytes("ed25519.pub.asc"), two = sample_bytes("v6x25519.pub.asc");
    bytes_add(&one, two.at, two.n);
    for (size_t i = 0; i < one.n; i++) {
        one.at[i] ^= 0x41;
        walk_all(&one);
        one.at[i] ^= 0x41;
    }
    for (size_t n = one.n; n--;) {
        one.n = n;
        walk_all(&one);
    }
    bytes_clear(&one);
    bytes_clear(&two);
}

/* gpg's own keybox and its export, with the same answers. */
static void test_gpg(void **state)
{
    (void)state;
    struct home home = home_new();
    char box[128], ring[128];
    snprintf(box, sizeof box, "%s/pubring.kbx", home.folder);
    snprintf(ring, sizeof ring, "%s/pubring.gpg", home.folder);
    for (unsigned i = 0; i < 6; i++)
        shell(GPG "--quick-gen-key 'user %u <user%u@example.org>' ed25519 default never 2>/dev/null", home.folder, i,
              i);
    shell(GPG "--export >%s", home.folder, ring);
    const char *const files[] = {box, ring};
    for (size_t i = 0; i < 2; i++) {
        struct keyring *keyring = NULL;
        assert_int_equal(keyring_open(NULL, files[i], &keyring), 0);
        assert_int_equal(count(keyring, NULL), 6);
        assert_int_equal(count(keyring, "user3@example.org"), 1);
        assert_int_equal(count(keyring, "USER"), 6);
        char *ids = shell_output(GPG "--with-colons --with-keygrip --list-keys | grep -E '^(fpr|grp):' | "
                                     "sed 's/grp:*/\\&/; s/fpr:*//; s/:$//'",
                                 home.folder);
        unsigned n = 0;
        for (char *id = strtok(ids, "\n"); id; id = strtok(NULL, "\n"), n++)
            if (id[0] != '&' || files[i] == ring)
                assert_int_equal(count(keyring, id), 1);
        assert_int_equal(n, 12);
        free(ids);
        keyring_free(keyring);
    }
    home_remove(&home);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_binary),        cmocka_unit_test(test_armored), cmocka_unit_test(test_no_keyrings),
        cmocka_unit_test(test_other_packets), cmocka_unit_test(test_damage),  cmocka_unit_test(test_gpg),
    };
    return crypt_init(NULL) ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
