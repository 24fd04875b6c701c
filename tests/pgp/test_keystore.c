/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "keys.h"

#include "pgp/keystore.h"

#define NOW 1764000000u
#define T0  1705320000u
#define DAY 86400u

static void add_sample(struct keystore *keystore, const char *name)
{
    char file[512];
    sample_name(name, file);
    assert_int_equal(keystore_add_keyring(keystore, file, false), 0);
}

static struct keystore *keystore_of(const char *const *names)
{
    struct keystore *keystore = keystore_new(NULL);
    assert_non_null(keystore);
    for (; *names; names++)
        add_sample(keystore, *names);
    return keystore;
}

static void add_ring(struct keystore *keystore, const struct home *home, const char *name, const struct bytes *bytes)
{
    char file[128];
    snprintf(file, sizeof file, "%s/%s", home->folder, name);
    file_write(file, bytes->at, bytes->n);
    assert_int_equal(keystore_add_keyring(keystore, file, false), 0);
}

/* ---- finding ---- */

static const struct {
    const char *spec;
    enum key_use use;
    unsigned code;
    const char *found; /* how its primary user id begins */
    int exact;
    unsigned ambiguous;
} finds[] = {
    {"ed25519@example.org", KEY_ENCRYPTS, 0, "ed25519 ", -1, 0},
    {"<ED25519@EXAMPLE.ORG>", KEY_ENCRYPTS, 0, "ed25519 ", -1, 0},
    {"=ed25519 Alpha <ed25519@example.org>", KEY_ENCRYPTS, 0, "ed25519 ", -1, 0},
    {"=ed25519 alpha <ed25519@example.org>", KEY_ENCRYPTS, GPG_ERR_NO_PUBKEY, NULL, -1, 0},
    {"25519@example.org", KEY_ENCRYPTS, 0, "ed25519 ", -1, 1}, /* no such address: as a substring */
    {"<25519@example.org>", KEY_ENCRYPTS, GPG_ERR_NO_PUBKEY, NULL, -1, 0},
    {"CA3B4E156864ED52371CBA128435BF636FFA307F", KEY_ENCRYPTS, 0, "ed25519 ", -1, 0},
    {"CA3B 4E15 6864 ED52 371C  BA12 8435 BF63 6FFA 307F", KEY_ENCRYPTS, 0, "ed25519 ", -1, 0},
    {"0x6FFA307F", KEY_ENCRYPTS, 0, "ed25519 ", -1, 0},
    {"27FF088300740B072A82DC61CB3FE2FCB4C1C758", KEY_ENCRYPTS, 0, "multi ", -1, 0},
    {"090F2BF19A638B258AD4957C605DEC5B3E615FCE!", KEY_ENCRYPTS, 0, "multi ", 3, 0},
    {"605DEC5B3E615FCE!", KEY_ENCRYPTS, 0, "multi ", 3, 0},
    {"E0B01B0F203FB9B28D956F19525621E6833AEE7E!", KEY_ENCRYPTS, GPG_ERR_UNUSABLE_PUBKEY, NULL, -1, 0},
    {"FB186C61446BE4D9C3C3975658CC776FFB90243AACC5C08B79AFC6BB3503B9CB", KEY_ENCRYPTS, 0, "v6x25519 ", -1, 0},
    {"99AFCAB25C042022", KEY_ENCRYPTS, 0, "ed448 ", -1, 0},
    {"expired@example.org", KEY_ENCRYPTS, GPG_ERR_KEY_EXPIRED, NULL, -1, 0},
    {"revoked@example.org", KEY_ENCRYPTS, GPG_ERR_CERT_REVOKED, NULL, -1, 0},
    {"signonly@example.org", KEY_ENCRYPTS, GPG_ERR_UNUSABLE_PUBKEY, NULL, -1, 0},
    {"ky768@example.org", KEY_ENCRYPTS, GPG_ERR_PUBKEY_ALGO, NULL, -1, 0},
    {"Alpha", KEY_ENCRYPTS, 0, "ed25519 ", -1, 8}, /* not the expired one, which comes first */
    {"nobody@example.org", KEY_ENCRYPTS, GPG_ERR_NO_PUBKEY, NULL, -1, 0},
    {"0123456789ABCDEF", KEY_ENCRYPTS, GPG_ERR_NO_PUBKEY, NULL, -1, 0},
    {"", KEY_ENCRYPTS, GPG_ERR_INV_USER_ID, NULL, -1, 0},
    {"0x12", KEY_ENCRYPTS, GPG_ERR_INV_USER_ID, NULL, -1, 0},
    {"ed25519@example.org", KEY_SIGNS, GPG_ERR_NO_SECKEY, NULL, -1, 0},
};

static void test_find(void **state)
{
    static const char *const names[] = {"expired.pub.asc",
                                        "ed25519.pub.asc",
                                        "multi.pub.asc",
                                        "v6x25519.pub.asc",
                                        "ed448.pub.asc",
                                        "revoked.pub.asc",
                                        "signonly.pub.asc",
                                        "subrevoked.pub.asc",
                                        "ky768.pub.asc",
                                        "ed25519.pub.asc",
                                        NULL};
    (void)state;
    struct keystore *keystore = keystore_of(names);
    for (size_t i = 0; i < ARRAY_SIZE(finds); i++) {
        struct key_match match = {0};
        gpg_error_t err = keystore_find(keystore, finds[i].spec, finds[i].use, NOW, &match);
        if (gpg_err_code(err) != finds[i].code)
            fail_msg("%s: %s", finds[i].spec, gpg_strerror(err));
        if (err)
            continue;
        assert_memory_equal(certificate_uid(match.certificate, 0, NULL), finds[i].found, strlen(finds[i].found));
        assert_int_equal(match.exact, finds[i].exact);
        assert_int_equal(match.ambiguous, finds[i].ambiguous);
        certificate_free(match.certificate);
    }
    keystore_free(keystore);
}

static void test_files(void **state)
{
    (void)state;
    struct home home = home_new();
    struct failure failure;
    struct certificate *certificate = NULL;
    char missing[128], file[512];
    snprintf(missing, sizeof missing, "%s/missing", home.folder);
    failure_init(&failure);
    struct keystore *keystore = keystore_new(&failure);
    assert_int_equal(keystore_add_keyring(keystore, missing, true), 0);
    assert_int_equal(failure.code, 0);
    assert_code(keystore_add_keyring(keystore, missing, false), GPG_ERR_ENOENT);
    assert_non_null(strstr(failure.sentence, missing));
    assert_code(keystore_add_secret_file(keystore, missing, NULL), GPG_ERR_ENOENT);
    sample_name("ed25519.pub.asc", file);
    assert_code(keystore_add_secret_file(keystore, file, NULL), GPG_ERR_NO_SECKEY);
    assert_int_equal(keystore_certificate_file(keystore, file, &certificate), 0);
    assert_int_equal(certificate_keys(certificate), 2);
    certificate_free(certificate);
    assert_code(keystore_certificate_file(keystore, missing, &certificate), GPG_ERR_ENOENT);
    file_write(missing, "", 0);
    assert_code(keystore_certificate_file(keystore, missing, &certificate), GPG_ERR_NO_DATA);
    keystore_free(keystore);
    keystore_free(NULL);
    failure_destroy(&failure);
    home_remove(&home);
}

/* A certificate with UID and an encryption subkey, both made at CREATED; EXPIRES (0: never) counts for the primary. */
static struct bytes simple(const char *uid, uint32_t created, uint32_t expires, struct forged *ret_primary)
{
    struct forged primary = forged_new(PUBKEY_ECDSA, false, created), sub = forged_new(PUBKEY_ECDH, true, created);
    struct bytes bytes = {0};
    add_forged_key(&bytes, &primary);
    add_forged_uid(&bytes, &primary, uid,
                   CLAIM(.type = 0x13, .created = created, .flags = GIVEN(3), .key_expires = expires));
    add_forged_key(&bytes, &sub);
    add_forged_signature(&bytes, &primary, &primary, &sub, CLAIM(.type = 0x18, .created = created, .flags = GIVEN(12)));
    forged_clear(&sub);
    if (ret_primary)
        *ret_primary = primary;
    else
        forged_clear(&primary);
    return bytes;
}

/* Several certificates with one address: usable before others, then the newest; validity before age. */
static void test_same_address(void **state)
{
    (void)state;
    struct home home = home_new();
    struct keystore *keystore = keystore_new(NULL);
    struct forged old;
    struct key_match match;
    struct trustdb *trustdb = NULL;
    const char *uid = "Alice <alice@example.org>";
    struct bytes rings[] = {simple(uid, T0 + 9, DAY, NULL), simple(uid, T0, 0, &old), simple(uid, T0 + 5, 0, NULL),
                            simple("Alice <other@example.org>", T0 + 7, 0, NULL)};
    for (size_t i = 0; i < ARRAY_SIZE(rings); i++) {
        char name[16];
        snprintf(name, sizeof name, "ring%zu", i);
        add_ring(keystore, &home, name, &rings[i]);
        bytes_clear(&rings[i]);
    }
    assert_int_equal(keystore_find(keystore, "alice@example.org", KEY_ENCRYPTS, NOW, &match), 0);
    assert_int_equal(certificate_key(match.certificate, 0)->created, T0 + 5);
    assert_int_equal(match.kind, SPEC_MAIL);
    assert_int_equal(match.ambiguous, 2);
    certificate_free(match.certificate);
    assert_int_equal(keystore_find(keystore, "Alice", KEY_ENCRYPTS, NOW, &match), 0); /* not an address: the first */
    assert_int_equal(certificate_key(match.certificate, 0)->created, T0);
    assert_int_equal(match.ambiguous, 3);
    certificate_free(match.certificate);
    /* The old one is trusted. */
    uint8_t records[2][40] = {{1, 'g', 'p', 'g', 3}, {12}};
    memcpy(records[1] + 2, old.key->fpr, 20);
    records[1][22] = TRUST_ULTIMATE;
    char file[128];
    snprintf(file, sizeof file, "%s/db", home.folder);
    file_write(file, records, sizeof records);
    assert_int_equal(trustdb_open(NULL, file, &trustdb), 0);
    keystore_set_trustdb(keystore, trustdb);
    assert_int_equal(keystore_find(keystore, "alice@example.org", KEY_ENCRYPTS, NOW, &match), 0);
    assert_int_equal(certificate_key(match.certificate, 0)->created, T0);
    certificate_free(match.certificate);
    trustdb_free(trustdb);
    /* And then disabled. */
    records[1][22] |= 0x80;
    remove(file);
    file_write(file, records, sizeof records);
    assert_int_equal(trustdb_open(NULL, file, &trustdb), 0);
    keystore_set_trustdb(keystore, trustdb);
    assert_int_equal(keystore_find(keystore, "alice@example.org", KEY_ENCRYPTS, NOW, &match), 0);
    assert_int_equal(certificate_key(match.certificate, 0)->created, T0 + 5);
    certificate_free(match.certificate);
    char fpr[2 * KEY_FPR_MAX + 1];
    key_fpr_hex(old.key, fpr);
    assert_code(keystore_find(keystore, fpr, KEY_ENCRYPTS, NOW, &match), GPG_ERR_KEY_DISABLED);
    keystore_free(keystore);
    trustdb_free(trustdb);
    forged_clear(&old);
    home_remove(&home);
}

/* A user id that its owner revoked, or that nobody certified, does not name the certificate. */
static void test_revoked_uid(void **state)
{
    (void)state;
    struct home home = home_new();
    struct keystore *keystore = keystore_new(NULL);
    struct forged primary = forged_new(PUBKEY_ECDSA, false, T0);
    struct key_match match;
    struct bytes bytes = {0};
    add_forged_key(&bytes, &primary);
    add_forged_uid(&bytes, &primary, "gone@example.org", CLAIM(.type = 0x13, .created = T0));
    add_forged_signature(&bytes, &primary, &primary, NULL,
                         CLAIM(.type = 0x30, .created = T0 + 1, .uid = "gone@example.org"));
    add_forged_uid(&bytes, &primary, "here@example.org", CLAIM(.type = 0x13, .created = T0));
    bytes_add_packet(&bytes, PACKET_USER_ID, "victim@example.org", 18);
    add_ring(keystore, &home, "ring", &bytes);
    assert_code(keystore_find(keystore, "gone@example.org", KEY_CERTIFIES, NOW, &match), GPG_ERR_CERT_REVOKED);
    assert_int_equal(keystore_find(keystore, "here@example.org", KEY_CERTIFIES, NOW, &match), 0);
    certificate_free(match.certificate);
    assert_code(keystore_find(keystore, "victim@example.org", KEY_CERTIFIES, NOW, &match), GPG_ERR_NO_PUBKEY);
    bytes_clear(&bytes);
    forged_clear(&primary);
    keystore_free(keystore);
    home_remove(&home);
}

/* The same certificate, in whatever file, is checked once; what is noted on one find does not show on the next. */
static void test_checked_once(void **state)
{
    static const char *const files[] = {"ed25519.pub.asc", "ed25519.sec.asc", "multi.pub.asc"};
    (void)state;
    struct keystore *keystore = keystore_new(NULL);
    struct certificate *found[2 * ARRAY_SIZE(files)] = {NULL};
    for (unsigned i = 0; i < ARRAY_SIZE(found); i++) {
        char file[512];
        sample_name(files[i % ARRAY_SIZE(files)], file);
        assert_int_equal(keystore_certificate_file(keystore, file, &found[i]), 0);
        assert_false(certificate_disabled(found[i]));
        assert_int_equal(certificate_named_uid(found[i]), -1);
        certificate_set_disabled(found[i], true);
        certificate_set_named_uid(found[i], 0);
    }
    const struct key *key = certificate_key(found[0], 0), *other = certificate_key(found[2], 0);
    assert_ptr_not_equal(key, other);
    assert_ptr_equal(key, certificate_key(found[1], 0)); /* the secret packets' public part is the same */
    assert_ptr_equal(key, certificate_key(found[3], 0));
    assert_ptr_equal(key, certificate_key(found[4], 0));
    assert_ptr_equal(other, certificate_key(found[5], 0));
    keystore_free(keystore);
    for (unsigned i = 0; i < ARRAY_SIZE(found); i++) {
        assert_int_equal(certificate_key_state(found[i], 1, NOW), KEY_VALID);
        certificate_free(found[i]);
    }
}

/* More certificates than are remembered, twice over: each is itself. */
static void test_forgotten(void **state)
{
    static const char *const files[] = {"expired.pub.asc", "ed25519.pub.asc",    "multi.pub.asc",    "v6x25519.pub.asc",
                                        "revoked.pub.asc", "subrevoked.pub.asc", "signonly.pub.asc", "signsub.pub.asc",
                                        "rsa2048.pub.asc", "p256.pub.asc"};
    (void)state;
    struct keystore *keystore = keystore_new(NULL);
    for (unsigned i = 0; i < 2 * ARRAY_SIZE(files); i++) {
        const char *name = files[i % ARRAY_SIZE(files)];
        struct certificate *certificate = NULL;
        struct bytes bytes = sample_bytes(name);
        struct certificate *truth = parsed(&bytes);
        char file[512];
        sample_name(name, file);
        assert_int_equal(keystore_certificate_file(keystore, file, &certificate), 0);
        assert_memory_equal(certificate_key(certificate, 0)->fpr, certificate_key(truth, 0)->fpr, 20);
        assert_int_equal(certificate_keys(certificate), certificate_keys(truth));
        for (unsigned key = 0; key < certificate_keys(truth); key++)
            assert_int_equal(certificate_key_state(certificate, key, NOW), certificate_key_state(truth, key, NOW));
        certificate_free(certificate);
        certificate_free(truth);
        bytes_clear(&bytes);
    }
    keystore_free(keystore);
}

/* A thief's certificate with another's subkey comes first, and is passed over. */
static void test_stolen(void **state)
{
    (void)state;
    struct home home = home_new();
    struct keystore *keystore = keystore_new(NULL);
    struct bytes thief = simple("Thief <thief@example.org>", T0, 0, NULL), victim = sample_bytes("signsub.pub.asc");
    struct certificate *certificate = NULL, *truth = parsed(&victim);
    struct key_match match;
    unsigned number = 99;
    struct cursor cursor = cursor_over(victim.at, victim.n);
    struct packet_view packet;
    for (unsigned i = 0; packet_view_next(&cursor, &packet); i++)
        if (i >= 3 && (packet.type == PACKET_PUBLIC_SUBKEY || packet.type == PACKET_SIGNATURE))
            bytes_add_packet(&thief, packet.type, packet.body, packet.body_n);
    add_ring(keystore, &home, "thief", &thief);
    const struct key *stolen = certificate_key(truth, 1);
    assert_int_equal(keystore_issuer(keystore, stolen->keyid, 8, &certificate, &number), 0);
    assert_int_equal(certificate_key_state(certificate, number, NOW), KEY_UNBOUND);
    certificate_free(certificate);
    char fpr[2 * KEY_FPR_MAX + 1];
    key_fpr_hex(stolen, fpr);
    assert_code(keystore_find(keystore, fpr, KEY_ENCRYPTS, NOW, &match), GPG_ERR_NO_PUBKEY);
    add_ring(keystore, &home, "victim", &victim);
    assert_int_equal(keystore_issuer(keystore, stolen->keyid, 8, &certificate, &number), 0);
    assert_string_equal(certificate_uid(certificate, 0, NULL), "signsub Alpha <signsub@example.org>");
    assert_int_equal(number, 1);
    certificate_free(certificate);
    assert_int_equal(keystore_issuer(keystore, stolen->fpr, 20, &certificate, &number), 0);
    assert_int_equal(certificate_key_state(certificate, number, NOW), KEY_VALID);
    certificate_free(certificate);
    assert_int_equal(keystore_find(keystore, fpr, KEY_ENCRYPTS, NOW, &match), 0);
    assert_int_equal(certificate_keys(match.certificate), 3);
    certificate_free(match.certificate);
    uint8_t nobody[32] = {7};
    assert_code(keystore_issuer(keystore, nobody, 8, &certificate, &number), GPG_ERR_NO_PUBKEY);
    assert_code(keystore_issuer(keystore, nobody, 32, &certificate, &number), GPG_ERR_NO_PUBKEY);
    certificate_free(truth);
    bytes_clear(&thief);
    bytes_clear(&victim);
    keystore_free(keystore);
    home_remove(&home);
}

/* ---- secret keys ---- */

/* Has the keys with these key ids; those from CARD on are on cards. */
struct fake_provider {
    struct secret_provider provider;
    const char *const *keyids; /* hex, NULL-terminated */
    size_t card;
    unsigned asked;
};

static size_t fake_find(const struct fake_provider *fake, const struct key *key)
{
    char hex[17];
    size_t i = 0;
    snprintf(hex, sizeof hex, "%08X%08X", get_be32(key->keyid), get_be32(key->keyid + 4));
    while (fake->keyids[i] && strcmp(fake->keyids[i], hex) != 0)
        i++;
    return i;
}

static gpg_error_t fake_have(struct secret_provider *self, const struct key *key, bool *ret_on_card)
{
    struct fake_provider *fake = CONTAINER(self, struct fake_provider, provider);
    size_t i = fake_find(fake, key);
    fake->asked++;
    if (!fake->keyids[i])
        return gpg_error(GPG_ERR_NO_SECKEY);
    *ret_on_card = i >= fake->card;
    return 0;
}

static void fake_key_free(struct secret_key *self)
{
    key_free(self->key);
    free(self);
}

static const struct secret_key_ops fake_ops = {.free = fake_key_free};

static gpg_error_t fake_get(struct secret_provider *self, struct failure *failure, const struct key *key,
                            struct secret_key **ret)
{
    bool on_card;
    (void)failure;
    if (fake_have(self, key, &on_card))
        return gpg_error(GPG_ERR_NO_SECKEY);
    struct secret_key *secret_key = calloc(1, sizeof *secret_key);
    assert_non_null(secret_key);
    struct key *copy = NULL;
    size_t used;
    assert_int_equal(
        key_parse(NULL, key->subkey ? PACKET_PUBLIC_SUBKEY : PACKET_PUBLIC_KEY, key->body, key->body_n, &copy, &used),
        0);
    *secret_key = (struct secret_key){.ops = &fake_ops, .key = copy, .on_card = on_card};
    *ret = secret_key;
    return 0;
}

static void fake_free(struct secret_provider *self)
{
    free(CONTAINER(self, struct fake_provider, provider));
}

static struct fake_provider *fake_new(const char *const *keyids, size_t card)
{
    struct fake_provider *fake = calloc(1, sizeof *fake);
    assert_non_null(fake);
    *fake = (struct fake_provider){.provider = {fake_have, fake_get, fake_free}, .keyids = keyids, .card = card};
    return fake;
}

static void add_secret_sample(struct keystore *keystore, const char *name, const struct passphrase_source *source)
{
    char file[512];
    sample_name(name, file);
    assert_int_equal(keystore_add_secret_file(keystore, file, source), 0);
}

static void test_secret_files(void **state)
{
    (void)state;
    struct keystore *keystore = keystore_new(NULL);
    struct secret_key *secret_key = NULL;
    struct key_match match;
    unsigned number = 99;
    add_secret_sample(keystore, "stub.sec.asc", NULL);
    add_secret_sample(keystore, "ed25519.sec.asc", NULL);
    add_secret_sample(keystore, "signsub.sec.asc", NULL);
    /* The primary of the first is only a stub: its subkey signs. */
    assert_int_equal(keystore_find(keystore, "stub@example.org", KEY_SIGNS, NOW, &match), 0);
    assert_code(keystore_secret(keystore, certificate_key(match.certificate, 0), &secret_key), GPG_ERR_NO_SECKEY);
    assert_int_equal(keystore_signing_key(keystore, &match, NOW, &number, &secret_key), 0);
    assert_int_equal(number, 1);
    assert_int_equal(secret_key_state(secret_key), SECRET_LOCKED);
    secret_key_free(secret_key);
    match.exact = 0;
    assert_code(keystore_signing_key(keystore, &match, NOW, &number, &secret_key), GPG_ERR_NO_SECKEY);
    certificate_free(match.certificate);
    assert_int_equal(keystore_find(keystore, "ed25519@example.org", KEY_SIGNS, NOW, &match), 0);
    assert_int_equal(keystore_signing_key(keystore, &match, NOW, &number, &secret_key), 0);
    assert_int_equal(number, 0);
    assert_int_equal(secret_key_state(secret_key), SECRET_PLAIN);
    secret_key_free(secret_key);
    certificate_free(match.certificate);
    assert_int_equal(keystore_default_signer(keystore, NOW, &match), 0);
    assert_string_equal(certificate_uid(match.certificate, 0, NULL), "stub Alpha <stub@example.org>");
    certificate_free(match.certificate);
    /* Three encryption keys, in the order of the files. */
    for (unsigned i = 0; i < 3; i++) {
        static const char *const expected[] = {"88ADB88AFF2468C7B74340066ECB9BC02BC26F0F",
                                               "648A2F90C89AF281E2707C71760F11CA141B56CB",
                                               "0CC2192966AB67139E8CABCAFCE79662A76F969B"};
        char fpr[2 * KEY_FPR_MAX + 1];
        assert_int_equal(keystore_secret_nth(keystore, i, &secret_key), 0);
        key_fpr_hex(secret_key->key, fpr);
        assert_string_equal(fpr, expected[i]);
        secret_key_free(secret_key);
    }
    assert_code(keystore_secret_nth(keystore, 3, &secret_key), GPG_ERR_EOF);
    keystore_free(keystore);
}

static void test_provider(void **state)
{
    static const char *const rings[] = {"signonly.pub.asc", "multi.pub.asc", "signsub.pub.asc", "ed25519.pub.asc",
                                        NULL};
    /* An encryption subkey on a card stands in the rings before those in software. */
    static const char *const keyids[] = {"FCE79662A76F969B", "DDC5D64A3FA6BBFD", "8435BF636FFA307F",
                                         "760F11CA141B56CB", "CB3FE2FCB4C1C758", NULL};
    static const char *const order[] = {"FCE79662A76F969B", "760F11CA141B56CB", "CB3FE2FCB4C1C758"};
    (void)state;
    struct keystore *keystore = keystore_of(rings);
    struct secret_key *secret_key = NULL;
    struct key_match match;
    unsigned number;
    assert_code(keystore_default_signer(keystore, NOW, &match), GPG_ERR_NO_SECKEY);
    assert_code(keystore_secret_nth(keystore, 0, &secret_key), GPG_ERR_EOF);
    struct fake_provider *fake = fake_new(keyids, 4);
    keystore_set_provider(keystore, &fake->provider);
    for (unsigned i = 0; i < 3; i++) {
        char hex[17];
        assert_int_equal(keystore_secret_nth(keystore, i, &secret_key), 0);
        snprintf(hex, sizeof hex, "%08X%08X", get_be32(secret_key->key->keyid), get_be32(secret_key->key->keyid + 4));
        assert_string_equal(hex, order[i]);
        assert_int_equal(secret_key->on_card, i == 2);
        secret_key_free(secret_key);
    }
    unsigned asked = fake->asked;
    assert_code(keystore_secret_nth(keystore, 3, &secret_key), GPG_ERR_EOF);
    assert_int_equal(fake->asked, asked); /* the rings are gone through once */
    /* The signer: signsub's signing subkey is not there, and its primary only certifies. */
    assert_int_equal(keystore_default_signer(keystore, NOW, &match), 0);
    assert_string_equal(certificate_uid(match.certificate, 0, NULL), "ed25519 Alpha <ed25519@example.org>");
    assert_int_equal(keystore_signing_key(keystore, &match, NOW, &number, &secret_key), 0);
    assert_int_equal(number, 0);
    secret_key_free(secret_key);
    certificate_free(match.certificate);
    assert_code(keystore_find(keystore, "signsub@example.org", KEY_SIGNS, NOW, &match), GPG_ERR_NO_SECKEY);
    assert_int_equal(keystore_find(keystore, "Alpha", KEY_SIGNS, NOW, &match), 0);
    assert_string_equal(certificate_uid(match.certificate, 0, NULL), "ed25519 Alpha <ed25519@example.org>");
    certificate_free(match.certificate);
    keystore_free(keystore);
}

/* Files come before the provider. */
static void test_file_first(void **state)
{
    static const char *const keyids[] = {"8435BF636FFA307F", "760F11CA141B56CB", NULL};
    (void)state;
    struct keystore *keystore = keystore_new(NULL);
    struct secret_key *secret_key = NULL;
    add_secret_sample(keystore, "ed25519.sec.asc", NULL);
    add_sample(keystore, "ed25519.pub.asc");
    keystore_set_provider(keystore, &fake_new(keyids, 9)->provider);
    assert_int_equal(keystore_secret_nth(keystore, 0, &secret_key), 0);
    assert_true(secret_key->ops != &fake_ops);
    secret_key_free(secret_key);
    assert_code(keystore_secret_nth(keystore, 1, &secret_key), GPG_ERR_EOF); /* not the same key twice */
    keystore_free(keystore);
}

/* ---- against gpg ---- */

static void test_gpg(void **state)
{
    static const char *const specs[] = {"one@example.org",
                                        "<one@example.org>",
                                        "One",
                                        "=Two <two@example.org>",
                                        "example.org",
                                        "*two",
                                        "@example.org",
                                        "nobody",
                                        "ne@example.org",
                                        "three@example.org",
                                        "Three"};
    (void)state;
    struct home home = home_new();
    struct keystore *keystore = keystore_new(NULL);
    char file[128];
    shell(
        "H=%s; exec 2>/dev/null; G() { " GPG "\"$@\"; }; "
        "F() { G --with-colons --list-keys \"=$1\" | grep ^fpr | tail -n 1 | cut -d: -f10; }; "
        "P() { G --with-colons --list-keys \"=$1\" | grep -A1 ^pub | tail -n 1 | cut -d: -f10; }; "
        "G --faked-system-time 20200101T000000 --quick-gen-key 'Three <three@example.org>' ed25519 default 1y; "
        "G --faked-system-time 20200101T000000 --quick-add-key $(P 'Three <three@example.org>') cv25519 encr never; "
        "G --faked-system-time 20220101T000000 --quick-gen-key 'One <one@example.org>' future-default default never; "
        "G --faked-system-time 20230101T000000 --quick-gen-key 'One B <one@example.org>' future-default default never; "
        "G --faked-system-time 20210101T000000 --quick-gen-key 'One C <one@example.org>' future-default default never; "
        "G --quick-gen-key 'Two <two@example.org>' future-default default never; "
        "G --quick-gen-key 'Three <three@example.org>' ed25519 sign never || true; "
        "G --yes --quick-gen-key 'Three D <three@example.org>' future-default default never",
        home.folder, home.folder);
    snprintf(file, sizeof file, "%s/pubring.kbx", home.folder);
    assert_int_equal(keystore_add_keyring(keystore, file, false), 0);
    for (size_t i = 0; i < ARRAY_SIZE(specs); i++) {
        struct key_match match = {0};
        unsigned number = 0;
        char ours[17] = "none";
        gpg_error_t err = keystore_find(keystore, specs[i], KEY_ENCRYPTS, (uint32_t)time(NULL), &match);
        if (!err) {
            assert_int_equal(
                certificate_choose(match.certificate, KEY_ENCRYPTS, (uint32_t)time(NULL), match.exact, &number), 0);
            const uint8_t *keyid = certificate_key(match.certificate, number)->keyid;
            snprintf(ours, sizeof ours, "%08X%08X", get_be32(keyid), get_be32(keyid + 4));
        }
        char *theirs =
            shell_output("echo x | " GPG "-r '%s' -e 2>/dev/null | " GPG
                         "--list-packets 2>/dev/null | sed -n 's/.*pubkey enc.*keyid //p' | grep . || echo none",
                         home.folder, specs[i], home.folder);
        theirs[strcspn(theirs, "\n")] = '\0';
        if (strcmp(ours, theirs) != 0)
            fail_msg("%s: gpg takes %s, we %s", specs[i], theirs, ours);
        free(theirs);
        certificate_free(match.certificate);
    }
    keystore_free(keystore);
    home_remove(&home);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_find),       cmocka_unit_test(test_files),        cmocka_unit_test(test_checked_once),
        cmocka_unit_test(test_forgotten),  cmocka_unit_test(test_same_address), cmocka_unit_test(test_revoked_uid),
        cmocka_unit_test(test_stolen),     cmocka_unit_test(test_secret_files), cmocka_unit_test(test_provider),
        cmocka_unit_test(test_file_first), cmocka_unit_test(test_gpg),
    };
    return crypt_init(NULL) ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
