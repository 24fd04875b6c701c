/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "keys.h"

#include "pgp/keybox.h"

#define T0 1705320000u

/* ---- keyboxes of our own making: both versions of blobs ---- */

static void add_first_blob(struct bytes *box)
{
    bytes_add_u32(box, 32);
    bytes_add(box, "\1\1\0\2KBXf", 8);
    for (unsigned i = 0; i < 5; i++)
        bytes_add_u32(box, 0);
}

struct blob {
    unsigned version, type, flags;
    const struct forged *keys[2]; /* the second may be NULL */
    const char *uid;
    bool with_keygrip; /* version 2 */
};

/* The size of a key's record. */
static size_t record_size(const struct blob *blob)
{
    return blob->version == 1 ? 28 : blob->with_keygrip ? 56 : 36;
}

static void add_record(struct bytes *box, const struct blob *blob, const struct key *key, size_t keyid_at)
{
    static const uint8_t zeros[12];
    bytes_add(box, key->fpr, 20);
    if (blob->version == 1) {
        bytes_add_u32(box, (uint32_t)keyid_at);
        bytes_add_u32(box, 0);
        return;
    }
    bytes_add(box, zeros, 12);
    bytes_add_u32(box, 0);
    if (blob->with_keygrip)
        bytes_add(box, key->keygrip, 20);
}

static void add_blob(struct bytes *box, const struct blob *blob)
{
    static const uint8_t checksum[20];
    struct bytes packets = {0}, index = {0};
    unsigned key_n = blob->keys[1] ? 2 : 1;
    add_forged_key(&packets, blob->keys[0]);
    bytes_add_packet(&packets, PACKET_USER_ID, blob->uid, strlen(blob->uid));
    if (blob->keys[1])
        add_forged_key(&packets, blob->keys[1]);
    /* The user id is found in the packets, behind the key and a header of two octets. */
    size_t uid_in_packets = 2 + blob->keys[0]->body.n + 2;
    size_t head = 20 + key_n * record_size(blob) + 2 + 4 + 12 + 4 + 20;
    bytes_add_u16(&index, key_n);
    bytes_add_u16(&index, (unsigned)record_size(blob));
    for (unsigned i = 0; i < key_n; i++)
        add_record(&index, blob, blob->keys[i]->key, 20 + 12);
    bytes_add_u16(&index, 0);
    bytes_add_u16(&index, 1);
    bytes_add_u16(&index, 12);
    bytes_add_u32(&index, (uint32_t)(head + uid_in_packets));
    bytes_add_u32(&index, (uint32_t)strlen(blob->uid));
    bytes_add_u32(&index, 0);
    bytes_add_u16(&index, 0);
    bytes_add_u16(&index, 4);
    for (unsigned i = 0; i < 5; i++)
        bytes_add_u32(&index, 0);
    assert_int_equal(16 + index.n, head);
    bytes_add_u32(box, (uint32_t)(head + packets.n + sizeof checksum));
    bytes_add_u8(box, blob->type);
    bytes_add_u8(box, blob->version);
    bytes_add_u16(box, blob->flags);
    bytes_add_u32(box, (uint32_t)head);
    bytes_add_u32(box, (uint32_t)packets.n);
    bytes_add(box, index.at, index.n);
    bytes_add(box, packets.at, packets.n);
    bytes_add(box, checksum, sizeof checksum);
    bytes_clear(&packets);
    bytes_clear(&index);
}

/* How many blobs SPEC (NULL: any) matches; fails on damage. */
static unsigned count(const struct bytes *box, const struct key_spec *spec)
{
    struct keybox_blob blob;
    size_t at = 0;
    unsigned n = 0;
    gpg_error_t err;
    while (!(err = keybox_next(box->at, box->n, &at, &blob)))
        n += !spec || keybox_blob_matches(&blob, spec);
    assert_code(err, GPG_ERR_EOF);
    assert_int_equal(at, box->n);
    return n;
}

static unsigned count_text(const struct bytes *box, const char *text)
{
    struct key_spec spec;
    assert_int_equal(key_spec_parse(text, &spec), 0);
    return count(box, &spec);
}

static void check_versions(unsigned version, bool with_keygrip)
{
    struct forged primary = forged_new(PUBKEY_ECDSA, false, T0), sub = forged_new(PUBKEY_ECDH, true, T0),
                  other = forged_new(PUBKEY_ECDSA, false, T0), absent = forged_new(PUBKEY_ECDSA, false, T0);
    struct bytes box = {0};
    add_first_blob(&box);
    add_blob(&box, &(struct blob){version, 2, 0, {&primary, &sub}, "Alice <alice@example.org>", with_keygrip});
    add_blob(&box, &(struct blob){version, 2, 0, {&other}, "Bob <bob@example.org>", with_keygrip});
    assert_true(keybox_is(box.at, box.n));
    assert_int_equal(count(&box, NULL), 2);
    const struct forged *const known[] = {&primary, &sub, &other};
    for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
        const struct key *key = known[i]->key;
        struct key_spec specs[] = {key_spec_of_id(key->fpr, 20), key_spec_of_id(key->keyid, 8),
                                   key_spec_of_id(key->keyid + 4, 4), key_spec_of_id(key->keygrip, 20)};
        specs[3].kind = SPEC_KEYGRIP;
        for (size_t j = 0; j < 3; j++)
            assert_int_equal(count(&box, &specs[j]), 1);
        assert_int_equal(count(&box, &specs[3]), with_keygrip ? 1 : 2);
    }
    struct key_spec spec = key_spec_of_id(absent.key->fpr, 20);
    assert_int_equal(count(&box, &spec), 0);
    assert_int_equal(count_text(&box, "alice@example.org"), 1);
    assert_int_equal(count_text(&box, "EXAMPLE.org"), 2);
    assert_int_equal(count_text(&box, "=Bob <bob@example.org>"), 1);
    assert_int_equal(count_text(&box, "=Bob"), 0);
    assert_int_equal(count_text(&box, "carol"), 0);
    bytes_clear(&box);
    forged_clear(&primary);
    forged_clear(&sub);
    forged_clear(&other);
    forged_clear(&absent);
}

static void test_versions(void **state)
{
    (void)state;
    check_versions(1, false);
    check_versions(2, false);
    check_versions(2, true);
}

/* A fingerprint of 32 octets; its key id are the first eight. */
static void test_long_fingerprint(void **state)
{
    (void)state;
    struct forged forged = forged_new(PUBKEY_ECDSA, false, T0);
    struct bytes box = {0};
    add_first_blob(&box);
    add_blob(&box, &(struct blob){2, 2, 0, {&forged}, "x", true});
    uint8_t *record = box.at + 32 + 20;
    for (unsigned i = 0; i < 32; i++)
        record[i] = (uint8_t)(i + 1);
    put_be16(record + 32, 0x80);
    struct key_spec spec = key_spec_of_id(record, 32);
    assert_int_equal(count(&box, &spec), 1);
    spec = key_spec_of_id(record, 20);
    assert_int_equal(count(&box, &spec), 0);
    spec = key_spec_of_id(record, 8);
    assert_int_equal(count(&box, &spec), 1);
    spec = key_spec_of_id(record + 4, 4);
    assert_int_equal(count(&box, &spec), 1);
    bytes_clear(&box);
    forged_clear(&forged);
}

/* X.509, deleted and ephemeral blobs, and types to come. */
static void test_passed_over(void **state)
{
    (void)state;
    struct forged forged = forged_new(PUBKEY_ECDSA, false, T0);
    struct bytes box = {0};
    struct blob blob = {1, 2, 0, {&forged}, "x", false};
    add_first_blob(&box);
    for (unsigned type = 0; type < 9; type++) {
        if (type == 1)
            continue;
        blob.type = type;
        blob.flags = 0;
        add_blob(&box, &blob);
        blob.flags = 2;
        add_blob(&box, &blob);
    }
    assert_int_equal(count(&box, NULL), 1);
    bytes_clear(&box);
    forged_clear(&forged);
}

static void test_is(void **state)
{
    (void)state;
    struct bytes box = {0};
    add_first_blob(&box);
    for (size_t n = 0; n < 12; n++)
        assert_false(keybox_is(box.at, n));
    assert_true(keybox_is(box.at, 12));
    box.at[8] ^= 1;
    assert_false(keybox_is(box.at, box.n));
    assert_false(keybox_is(NULL, 0));
    bytes_clear(&box);
}

/* ---- damage ---- */

/* Walks all of N octets with specs of each kind; whatever it finds must lie inside. */
static void walk(const uint8_t *bytes, size_t n)
{
    static const char *const texts[] = {"0x01234567",
                                        "0x0123456789ABCDEF",
                                        "&0123456789ABCDEF0123456789ABCDEF01234567",
                                        "0123456789ABCDEF0123456789ABCDEF01234567",
                                        "alice@example.org",
                                        "zzz"};
    struct keybox_blob blob;
    size_t at = 0;
    while (!keybox_next(bytes, n, &at, &blob)) {
        assert_true(blob.certificate >= bytes && blob.certificate + blob.certificate_n <= bytes + n);
        for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
            struct key_spec spec;
            assert_int_equal(key_spec_parse(texts[i], &spec), 0);
            bool ignored = keybox_blob_matches(&blob, &spec);
            (void)ignored;
        }
    }
    assert_true(at <= n);
}

static void test_damage(void **state)
{
    (void)state;
    struct forged primary = forged_new(PUBKEY_ECDSA, false, T0), sub = forged_new(PUBKEY_ECDH, true, T0);
    for (unsigned version = 1; version <= 2; version++) {
        struct bytes box = {0};
        add_first_blob(&box);
        add_blob(&box, &(struct blob){version, 2, 0, {&primary, &sub}, "Alice <alice@example.org>", true});
        for (size_t n = 0; n <= box.n; n++) {
            uint8_t *copy = malloc(n + !n);
            assert_non_null(copy);
            memcpy(copy, box.at, n);
            walk(copy, n);
            free(copy);
        }
        for (size_t i = 0; i < box.n; i++) {
            uint8_t *copy = malloc(box.n);
            assert_non_null(copy);
            memcpy(copy, box.at, box.n);
            for (unsigned value = 0; value < 256; value += 17) {
                copy[i] = (uint8_t)value;
                walk(copy, box.n);
            }
            free(copy);
        }
        bytes_clear(&box);
    }
    forged_clear(&primary);
    forged_clear(&sub);
}

/* A blob that is cut is damage, not the end. */
static void test_cut(void **state)
{
    (void)state;
    struct forged forged = forged_new(PUBKEY_ECDSA, false, T0);
    struct bytes box = {0};
    struct keybox_blob blob;
    add_first_blob(&box);
    add_blob(&box, &(struct blob){1, 2, 0, {&forged}, "x", false});
    for (size_t n = 33; n < box.n; n++) {
        size_t at = 0;
        assert_code(keybox_next(box.at, n, &at, &blob), GPG_ERR_BAD_DATA);
        assert_int_equal(at, 32);
    }
    put_be32(box.at + 32 + 12, (uint32_t)box.n);
    size_t at = 0;
    assert_code(keybox_next(box.at, box.n, &at, &blob), GPG_ERR_BAD_DATA);
    bytes_clear(&box);
    forged_clear(&forged);
}

/* ---- gpg's own ---- */

static void test_gpg(void **state)
{
    (void)state;
    struct home home = home_new();
    char file[128];
    shell(GPG "--quick-gen-key 'Alice <alice@example.org>' ed25519 default never 2>/dev/null", home.folder);
    shell(GPG "--quick-gen-key 'Bob <bob@example.org>' rsa1024 cert,encr never 2>/dev/null", home.folder);
    shell(GPG "--quick-gen-key 'Carol <carol@example.org>' ed25519 default never 2>/dev/null", home.folder);
    shell(GPG "--yes --delete-secret-and-public-key $(" GPG
              "--with-colons --list-keys carol | grep ^fpr | cut -d: -f10)"
              " 2>/dev/null",
          home.folder, home.folder);
    snprintf(file, sizeof file, "%s/pubring.kbx", home.folder);
    struct bytes box = file_bytes(file);
    assert_true(keybox_is(box.at, box.n));
    assert_int_equal(count(&box, NULL), 2);
    assert_int_equal(count_text(&box, "<alice@example.org>"), 1);
    assert_int_equal(count_text(&box, "example.org"), 2);
    assert_int_equal(count_text(&box, "carol"), 0);
    char *ids = shell_output(GPG "--with-colons --with-keygrip --list-keys | grep -E '^(fpr|grp):' | tr f '&' | "
                                 "cut -d: -f1,10 | sed 's/^&pr://; s/^grp:/\\&/'",
                             home.folder);
    unsigned n = 0;
    for (char *id = strtok(ids, "\n"); id; id = strtok(NULL, "\n"), n++)
        if (id[0] != '&' || box.at[32 + 5] == 2)
            assert_int_equal(count_text(&box, id), 1);
    assert_int_equal(n, 4);
    free(ids);
    bytes_clear(&box);
    home_remove(&home);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_versions), cmocka_unit_test(test_long_fingerprint), cmocka_unit_test(test_passed_over),
        cmocka_unit_test(test_is),       cmocka_unit_test(test_damage),           cmocka_unit_test(test_cut),
        cmocka_unit_test(test_gpg),
    };
    return crypt_init(NULL) ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
