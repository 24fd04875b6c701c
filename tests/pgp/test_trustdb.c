/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "keys.h"

#include "pgp/trustdb.h"

#include <gcrypt.h>
#include <sys/stat.h>

/* ---- databases of our own making ---- */

struct record {
    uint8_t octets[40];
};

static struct record version_record(unsigned version)
{
    struct record record = {{1, 'g', 'p', 'g', (uint8_t)version}};
    return record;
}

static struct record trust_record(const uint8_t fpr[20], unsigned ownertrust, unsigned least, uint32_t valid)
{
    struct record record = {{12}};
    memcpy(record.octets + 2, fpr, 20);
    record.octets[22] = (uint8_t)ownertrust;
    record.octets[24] = (uint8_t)least;
    put_be32(record.octets + 26, valid);
    return record;
}

static struct record valid_record(const char *uid, unsigned validity, uint32_t next)
{
    struct record record = {{13}};
    gcry_md_hash_buffer(GCRY_MD_RMD160, record.octets + 2, uid, strlen(uid));
    record.octets[22] = (uint8_t)validity;
    put_be32(record.octets + 23, next);
    return record;
}

static struct trustdb *database(const struct home *home, const void *records, size_t n)
{
    struct trustdb *trustdb = NULL;
    char file[128];
    snprintf(file, sizeof file, "%s/db", home->folder);
    remove(file); /* what an older mapping shows must not change */
    file_write(file, records, n);
    assert_int_equal(trustdb_open(NULL, file, &trustdb), 0);
    return trustdb;
}

static void test_records(void **state)
{
    (void)state;
    struct home home = home_new();
    uint8_t a[20] = {1}, b[20] = {2}, c[20] = {3}, d[20] = {4}, nobody[20] = {9};
    const struct record records[] = {
        version_record(3),                          /* 0 */
        trust_record(a, TRUST_FULL, 0, 2),          /* 1 */
        valid_record("one", TRUST_MARGINAL, 3),     /* 2 */
        valid_record("two", TRUST_FULL | 0x10, 0),  /* 3: flag bits above the mask */
        trust_record(b, TRUST_NEVER | 0x80, 0, 0),  /* 4: disabled */
        trust_record(c, TRUST_ULTIMATE, 0, 0),      /* 5 */
        trust_record(d, 0, TRUST_MARGINAL, 7),      /* 6 */
        valid_record("ring", TRUST_MARGINAL, 8),    /* 7 */
        valid_record("ring two", TRUST_EXPIRED, 7), /* 8: round and round */
    };
    struct trustdb *trustdb = database(&home, records, sizeof records);
    bool disabled = true;
    assert_int_equal(trustdb_ownertrust(trustdb, a, 20, &disabled), TRUST_FULL);
    assert_false(disabled);
    assert_int_equal(trustdb_ownertrust(trustdb, b, 20, &disabled), TRUST_NEVER);
    assert_true(disabled);
    assert_int_equal(trustdb_ownertrust(trustdb, nobody, 20, &disabled), TRUST_UNKNOWN);
    assert_false(disabled);
    assert_int_equal(trustdb_ownertrust(trustdb, d, 20, NULL), TRUST_MARGINAL);
    assert_int_equal(trustdb_validity(trustdb, a, 20, "one", 3), TRUST_MARGINAL);
    assert_int_equal(trustdb_validity(trustdb, a, 20, "two", 3), TRUST_FULL);
    assert_int_equal(trustdb_validity(trustdb, a, 20, "three", 5), TRUST_UNKNOWN);
    assert_int_equal(trustdb_validity(trustdb, a, 20, NULL, 0), TRUST_FULL);
    assert_int_equal(trustdb_validity(trustdb, c, 20, "any", 3), TRUST_ULTIMATE);
    assert_int_equal(trustdb_validity(trustdb, d, 20, "none", 4), TRUST_UNKNOWN);
    assert_int_equal(trustdb_validity(trustdb, d, 20, NULL, 0), TRUST_MARGINAL);
    assert_int_equal(trustdb_validity(trustdb, nobody, 20, NULL, 0), TRUST_UNKNOWN);
    trustdb_free(trustdb);
    home_remove(&home);
}

static void test_long_fingerprint(void **state)
{
    (void)state;
    struct home home = home_new();
    uint8_t fpr[32], folded[20];
    for (unsigned i = 0; i < 32; i++)
        fpr[i] = (uint8_t)i;
    memcpy(folded, fpr + 20, 12);
    memcpy(folded + 12, fpr, 8);
    const struct record records[] = {version_record(3), trust_record(folded, TRUST_MARGINAL, 0, 0)};
    struct trustdb *trustdb = database(&home, records, sizeof records);
    assert_int_equal(trustdb_ownertrust(trustdb, fpr, 32, NULL), TRUST_MARGINAL);
    trustdb_free(trustdb);
    home_remove(&home);
}

static void test_no_database(void **state)
{
    (void)state;
    struct home home = home_new();
    struct failure failure;
    struct trustdb *trustdb = NULL;
    char file[128];
    uint8_t fpr[20] = {0};
    bool disabled = true;
    snprintf(file, sizeof file, "%s/db", home.folder);
    assert_int_equal(trustdb_open(NULL, file, &trustdb), 0);
    assert_int_equal(trustdb_ownertrust(trustdb, fpr, 20, &disabled), TRUST_UNKNOWN);
    trustdb_free(trustdb);
    trustdb = database(&home, "", 0);
    assert_int_equal(trustdb_validity(trustdb, fpr, 20, NULL, 0), TRUST_UNKNOWN);
    trustdb_free(trustdb);
    assert_int_equal(trustdb_ownertrust(NULL, fpr, 20, &disabled), TRUST_UNKNOWN);
    assert_false(disabled);
    assert_int_equal(trustdb_validity(NULL, fpr, 20, "x", 1), TRUST_UNKNOWN);
    trustdb_free(NULL);
    const struct record old = version_record(2);
    file_write(file, &old, sizeof old);
    failure_init(&failure);
    assert_code(trustdb_open(&failure, file, &trustdb), GPG_ERR_BAD_DATA);
    assert_non_null(strstr(failure.sentence, file));
    failure_destroy(&failure);
    file_write(file, "not a database at all, but longer than 40", 41);
    assert_code(trustdb_open(NULL, file, &trustdb), GPG_ERR_BAD_DATA);
    file_write(file, "\1gpg\3", 5);
    assert_code(trustdb_open(NULL, file, &trustdb), GPG_ERR_BAD_DATA);
    assert_code(trustdb_open(NULL, home.folder, &trustdb), GPG_ERR_BAD_DATA);
    home_remove(&home);
}

/* ---- gpg's own ---- */

static void fpr_of(const struct home *home, const char *name, uint8_t fpr[20])
{
    char *hex =
        shell_output(GPG "--with-colons --list-keys =%s | grep ^fpr | head -n 1 | cut -d: -f10", home->folder, name);
    for (unsigned i = 0; i < 20; i++) {
        unsigned octet;
        assert_int_equal(sscanf(hex + 2 * i, "%2x", &octet), 1);
        fpr[i] = (uint8_t)octet;
    }
    free(hex);
}

/* gpg without its trust model "always". */
#define GPG_TRUST "gpg --homedir %s --batch --quiet --no-tty --pinentry-mode loopback --passphrase '' "

static enum trust by_letter(const char *letter)
{
    static const char letters[] = "-eqnmfu"; /* in the order of enum trust */
    const char *found = letter[0] ? strchr(letters, letter[0]) : NULL;
    return letter[0] == 'o' ? TRUST_UNKNOWN : found ? (enum trust)(found - letters) : TRUST_UNKNOWN;
}

/* Our answers beside gpg's listing of one user id. */
static void compare(const struct home *home, const struct trustdb *trustdb, const char *name)
{
    uint8_t fpr[20];
    bool disabled;
    fpr_of(home, name, fpr);
    char *uses = shell_output(GPG_TRUST "--with-colons --list-keys =%s | grep ^pub | cut -d: -f12", home->folder, name);
    char *owner = shell_output(GPG_TRUST "--with-colons --list-keys =%s | grep ^pub | cut -d: -f9", home->folder, name);
    char *validity = shell_output(GPG_TRUST "--with-colons --list-keys =%s | grep '^uid:.*:%s:' | cut -d: -f2",
                                  home->folder, name, name);
    enum trust trust = trustdb_ownertrust(trustdb, fpr, 20, &disabled);
    if (trust != by_letter(owner) || trustdb_validity(trustdb, fpr, 20, name, strlen(name)) != by_letter(validity))
        fail_msg("%s: owner %d, validity %d; gpg: %s%s", name, (int)trust,
                 (int)trustdb_validity(trustdb, fpr, 20, name, strlen(name)), owner, validity);
    assert_int_equal(disabled, strchr(uses, 'D') != NULL);
    free(uses);
    free(owner);
    free(validity);
}

static void test_gpg(void **state)
{
    static const char *const names[] = {"own",     "full", "marginal", "never",       "undefined",
                                        "nothing", "gone", "bycarol",  "bymarginals", "also-own"};
    (void)state;
    struct home home = home_new();
    struct trustdb *trustdb = NULL;
    char file[128];
    for (size_t i = 0; i < ARRAY_SIZE(names) - 1; i++)
        shell(GPG_TRUST "--quick-gen-key %s ed25519 default never 2>/dev/null", home.folder, names[i]);
    shell("H=%s; exec 2>/dev/null; G() { " GPG_TRUST "\"$@\"; }; "
          "F() { G --with-colons --list-keys \"=$1\" | grep ^fpr | head -n 1 | cut -d: -f10; }; "
          "for i in full:5 marginal:4 never:3 undefined:2 nothing:2 gone:130 bycarol:2 bymarginals:2; do "
          "printf '%%s:%%s:\\n' $(F ${i%%:*}) ${i#*:}; done | G --import-ownertrust; "
          "G --quick-add-uid $(F own) also-own; "
          "for i in full marginal never gone; do G -u own --quick-sign-key $(F $i); done; "
          "G -u full --quick-sign-key $(F bycarol); G -u marginal --quick-sign-key $(F bymarginals); "
          "G --check-trustdb; printf '%%s:2:\\n' $(F nothing) | G --import-ownertrust; G --check-trustdb",
          home.folder, home.folder);
    snprintf(file, sizeof file, "%s/trustdb.gpg", home.folder);
    assert_int_equal(trustdb_open(NULL, file, &trustdb), 0);
    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        compare(&home, trustdb, names[i]);
    uint8_t fpr[20];
    bool disabled;
    fpr_of(&home, "gone", fpr);
    assert_int_equal(trustdb_ownertrust(trustdb, fpr, 20, &disabled), TRUST_UNDEFINED);
    assert_true(disabled);
    fpr_of(&home, "bycarol", fpr);
    assert_int_equal(trustdb_validity(trustdb, fpr, 20, "bycarol", 7), TRUST_FULL);
    fpr_of(&home, "bymarginals", fpr);
    assert_int_equal(trustdb_validity(trustdb, fpr, 20, "bymarginals", 11), TRUST_MARGINAL);
    trustdb_free(trustdb);
    home_remove(&home);
}

/* Any octet changed, any length: answers, never a step outside the mapping. */
static void test_damage(void **state)
{
    (void)state;
    struct home home = home_new();
    uint8_t a[20] = {1};
    struct record records[] = {version_record(3), trust_record(a, TRUST_FULL, 0, 2),
                               valid_record("one", TRUST_MARGINAL, 3), valid_record("two", TRUST_FULL, 0)};
    for (size_t n = 40; n <= sizeof records; n++) {
        struct trustdb *trustdb = database(&home, records, n);
        assert_true(trustdb_validity(trustdb, a, 20, NULL, 0) <= TRUST_FULL);
        trustdb_free(trustdb);
    }
    for (size_t i = 40; i < sizeof records; i++) {
        ((uint8_t *)records)[i] ^= 0xFF;
        struct trustdb *trustdb = database(&home, records, sizeof records);
        assert_true(trustdb_validity(trustdb, a, 20, "two", 3) <= TRUST_ULTIMATE);
        assert_true(trustdb_ownertrust(trustdb, a, 20, NULL) <= TRUST_ULTIMATE);
        trustdb_free(trustdb);
        ((uint8_t *)records)[i] ^= 0xFF;
    }
    home_remove(&home);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_records), cmocka_unit_test(test_long_fingerprint), cmocka_unit_test(test_no_database),
        cmocka_unit_test(test_gpg),     cmocka_unit_test(test_damage),
    };
    return crypt_init(NULL) ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
