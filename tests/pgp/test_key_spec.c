/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "keys.h"

#include "pgp/key_spec.h"

#define FPR40 "0123456789ABCDEF0123456789abcdef01234567"
#define FPR64 FPR40 "89ABCDEF0123456789ABCDEF"

static const struct {
    const char *text;
    int kind; /* -1: refused */
    unsigned id_n;
    bool exact;
    const char *words;
} specs[] = {
    {FPR40, SPEC_FPR, 20, false, NULL},
    {"0x" FPR40, SPEC_FPR, 20, false, NULL},
    {" " FPR40 "! ", SPEC_FPR, 20, true, NULL},
    {FPR64, SPEC_FPR, 32, false, NULL},
    {"0123 4567 89AB CDEF 0123  4567 89ab cdef 0123 4567", SPEC_FPR, 20, false, NULL},
    {"01:23:45:67:89:AB:CD:EF:01:23:45:67:89:ab:cd:ef:01:23:45:67", SPEC_FPR, 20, false, NULL},
    {"0" FPR40, SPEC_FPR, 20, false, NULL},
    {"01234567", SPEC_KEYID, 4, false, NULL},
    {"0x01234567!", SPEC_KEYID, 4, true, NULL},
    {"001234567", SPEC_KEYID, 4, false, NULL},
    {"0123456789ABCDEF", SPEC_KEYID, 8, false, NULL},
    {"0x0123456789ABCDEF!", SPEC_KEYID, 8, true, NULL},
    {"&" FPR40, SPEC_KEYGRIP, 20, false, NULL},
    {"&0123", -1, 0, false, NULL},
    {"0x123", -1, 0, false, NULL},
    {"0xhello", -1, 0, false, NULL},
    {"", -1, 0, false, NULL},
    {"   ", -1, 0, false, NULL},
    {"=", -1, 0, false, NULL},
    {"#123", -1, 0, false, NULL},
    {"/CN=x", -1, 0, false, NULL},
    {".x", -1, 0, false, NULL},
    {"=Alice <alice@example.org>", SPEC_EXACT, 0, false, "Alice <alice@example.org>"},
    {"<alice@example.org>", SPEC_MAIL, 0, false, "alice@example.org"},
    {"alice@example.org", SPEC_MAIL, 0, false, "alice@example.org"},
    {"@example.org", SPEC_MAIL_PART, 0, false, "example.org"},
    {"*Alice", SPEC_SUBSTRING, 0, false, "Alice"},
    {"+Alice Example", SPEC_WORDS, 0, false, "Alice Example"},
    {"Alice", SPEC_SUBSTRING, 0, false, "Alice"},
    {"Alice!", SPEC_SUBSTRING, 0, false, "Alice!"},
    {"Alice <alice@example.org>", SPEC_SUBSTRING, 0, false, "Alice <alice@example.org>"},
    {"cafe", SPEC_SUBSTRING, 0, false, "cafe"},
    {"a@b@c", SPEC_SUBSTRING, 0, false, "a@b@c"},
};

static void test_parse(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(specs); i++) {
        struct key_spec spec;
        gpg_error_t err = key_spec_parse(specs[i].text, &spec);
        if (specs[i].kind < 0) {
            assert_code(err, GPG_ERR_INV_USER_ID);
            continue;
        }
        if (err || (int)spec.kind != specs[i].kind)
            fail_msg("%s: %s, kind %d", specs[i].text, gpg_strerror(err), err ? -1 : (int)spec.kind);
        assert_int_equal(spec.exact_key, specs[i].exact);
        if (specs[i].id_n) {
            assert_int_equal(spec.id_n, specs[i].id_n);
            assert_int_equal(spec.id[0], 0x01);
            assert_int_equal(spec.id[3], 0x67);
        } else {
            assert_int_equal(spec.text_n, strlen(specs[i].words));
            assert_memory_equal(spec.text, specs[i].words, spec.text_n);
        }
    }
}

static const struct {
    const char *spec, *uid;
    bool matches;
} matches[] = {
    {"=Alice <alice@example.org>", "Alice <alice@example.org>", true},
    {"=alice <alice@example.org>", "Alice <alice@example.org>", false},
    {"=Alice", "Alice <alice@example.org>", false},
    {"<ALICE@example.org>", "Alice <alice@Example.ORG>", true},
    {"alice@example.org", "alice@example.org", true},
    {"alice@example.org", "malice <malice@example.org>", false},
    {"alice@example.org", "alice@example.org <other@example.org>", false},
    {"alice@example.org", "Alice <alice@example.organic>", false},
    {"alice@example.org", "Alice <alice@example.org", true},
    {"@example", "Alice <alice@Example.org>", true},
    {"@Alice Ex", "Alice Ex <a@example.org>", false},
    {"aLiC", "Malice", true},
    {"*alice@", "malice <malice@example.org>", true},
    {"x", "", false},
    {"+example ALICE", "Alice <alice@example.org>", true},
    {"+example Bob", "Alice <alice@example.org>", false},
    {"Alicia", "Alice", false},
};

static void test_matches(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(matches); i++) {
        struct key_spec spec;
        assert_int_equal(key_spec_parse(matches[i].spec, &spec), 0);
        if (key_spec_matches_uid(&spec, matches[i].uid, strlen(matches[i].uid)) != matches[i].matches)
            fail_msg("%s against %s", matches[i].spec, matches[i].uid);
    }
}

static void test_keys(void **state)
{
    (void)state;
    struct forged forged = forged_new(PUBKEY_ECDSA, false, 1700000000);
    struct key_spec spec = key_spec_of_id(forged.key->fpr, 20);
    assert_true(key_spec_matches_key(&spec, forged.key));
    assert_false(key_spec_matches_uid(&spec, "x", 1));
    spec = key_spec_of_id(forged.key->keyid, 8);
    assert_true(key_spec_matches_key(&spec, forged.key));
    spec = key_spec_of_id(forged.key->keyid + 4, 4);
    assert_true(key_spec_matches_key(&spec, forged.key));
    spec.id[0] ^= 1;
    assert_false(key_spec_matches_key(&spec, forged.key));
    spec = key_spec_of_id(forged.key->keygrip, 20);
    assert_false(key_spec_matches_key(&spec, forged.key));
    spec.kind = SPEC_KEYGRIP;
    assert_true(key_spec_matches_key(&spec, forged.key));
    forged_clear(&forged);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parse),
        cmocka_unit_test(test_matches),
        cmocka_unit_test(test_keys),
    };
    return crypt_init(NULL) ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
