/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "keys.h"

#define NOW    1764000000u /* 2025-11-24: after every sample's making, before those that expire in 2027 */
#define T0     1705320000u /* 2024-01-15 12:00 UTC, when most samples were made */
#define DAY    86400u
#define NOBODY (-1)

/* ---- samples of many programs ---- */

static const struct {
    const char *file;
    unsigned keys;
    int encrypts, signs; /* number of the key, or NOBODY */
    unsigned encrypt_code, sign_code;
    unsigned uids;
    unsigned features;
} samples[] = {
    {"rsa2048.pub.asc", 2, 1, 0, 0, 0, 1, 1},
    {"rsa3072.pub.asc", 2, 1, 0, 0, 0, 1, 7},
    {"rsa4096.pub.asc", 4, 3, 2, 0, 0, 1, 1},
    {"dsaelg.pub.asc", 2, 1, 0, 0, 0, 1, 1},
    {"p256.pub.asc", 2, 1, 0, 0, 0, 1, 1},
    {"p384.pub.asc", 2, 1, 0, 0, 0, 1, 7},
    {"p521.pub.asc", 2, 1, 0, 0, 0, 1, 7},
    {"bp256.pub.asc", 2, 1, 0, 0, 0, 1, 1},
    {"bp384.pub.asc", 2, 1, 0, 0, 0, 1, 7},
    {"bp512.pub.asc", 2, 1, 0, 0, 0, 1, 7},
    {"ed25519.pub.asc", 2, 1, 0, 0, 0, 1, 1},
    {"ed25519.sec.asc", 2, 1, 0, 0, 0, 1, 1},
    {"ed25519pw.sec.asc", 2, 1, 0, 0, 0, 1, 7},
    {"ed25519n.pub.asc", 2, 1, 0, 0, 0, 1, 7},
    {"ed448.pub.asc", 2, 1, 0, 0, 0, 1, 7},
    {"ed448.sec.asc", 2, 1, 0, 0, 0, 1, 7},
    {"k256.pub.asc", 2, 1, 0, 0, 0, 1, 1},
    {"v6x25519.pub.asc", 2, 1, 0, 0, 0, 1, 9},
    {"v6x448.pub.asc", 2, 1, 0, 0, 0, 1, 9},
    {"v6argon.sec.asc", 2, 1, 0, 0, 0, 1, 9},
    {"v4x25519.pub.asc", 2, 1, 0, 0, 0, 1, 9},
    {"v4aeadpw.sec.asc", 2, 1, 0, 0, 0, 1, 9},
    {"multi.pub.asc", 4, 1, 0, 0, 0, 1, 1}, /* three of one age: the first in the file, as gpg */
    {"expired.pub.asc", 2, NOBODY, NOBODY, GPG_ERR_KEY_EXPIRED, GPG_ERR_KEY_EXPIRED, 1, 1},
    {"revoked.pub.asc", 2, NOBODY, NOBODY, GPG_ERR_CERT_REVOKED, GPG_ERR_CERT_REVOKED, 1, 1},
    {"subrevoked.pub.asc", 3, 2, 0, 0, 0, 1, 1},
    {"signsub.pub.asc", 3, 2, 1, 0, 0, 1, 1},
    {"signonly.pub.asc", 1, NOBODY, 0, GPG_ERR_UNUSABLE_PUBKEY, 0, 1, 7},
    {"nouid.pub.asc", 4, 3, 1, 0, 0, 0, 1},
    {"stub.sec.asc", 3, 2, 1, 0, 0, 1, 7},
    {"photo.pub.asc", 2, 1, 0, 0, 0, 1, 7},
    {"rnped.pub.asc", 2, 1, 0, 0, 0, 1, 0},
    {"pgpyrsa.pub.asc", 2, 1, 0, 0, 0, 1, 1},
    {"painless.pub.asc", 3, 1, 2, 0, 0, 1, 1},
    {"sopkey.pub.asc", 3, 2, 1, 0, 0, 1, 1},
};

static void check_choice(const struct certificate *certificate, const char *file, enum key_use use, uint32_t when,
                         int number, unsigned code)
{
    unsigned chosen = 99;
    gpg_error_t err = certificate_choose(certificate, use, when, -1, &chosen);
    if (gpg_err_code(err) != code || (number >= 0 && chosen != (unsigned)number))
        fail_msg("%s: use %d: %s, number %u", file, (int)use, gpg_strerror(err), chosen);
}

/* The samples made at run time are younger than NOW. */
static uint32_t when_for(const struct certificate *certificate)
{
    uint32_t created = certificate_key(certificate, 0)->created;
    return created > NOW ? created + DAY : NOW;
}

static void test_samples(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(samples); i++) {
        struct bytes bytes = sample_bytes(samples[i].file);
        struct certificate *certificate = parsed(&bytes);
        uint32_t when = when_for(certificate);
        assert_int_equal(certificate_keys(certificate), samples[i].keys);
        check_choice(certificate, samples[i].file, KEY_ENCRYPTS, when, samples[i].encrypts, samples[i].encrypt_code);
        check_choice(certificate, samples[i].file, KEY_SIGNS, when, samples[i].signs, samples[i].sign_code);
        assert_int_equal(certificate_uids(certificate), samples[i].uids);
        assert_non_null(certificate_preferences(certificate));
        assert_int_equal(certificate_preferences(certificate)->features, samples[i].features);
        certificate_free(certificate);
        bytes_clear(&bytes);
    }
}

/* Kyber subkeys (version 5 in a version 4 certificate) are bound; whether they can be used is the library's matter. */
static void test_kyber(void **state)
{
    static const char *const files[] = {"ky768.pub.asc", "ky1024.pub.asc"};
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
        struct bytes bytes = sample_bytes(files[i]);
        struct certificate *certificate = parsed(&bytes);
        assert_int_equal(certificate_keys(certificate), 2);
        assert_int_equal(certificate_key(certificate, 0)->version, 4);
        assert_int_equal(certificate_key(certificate, 1)->version, 5);
        assert_int_equal(certificate_key_state(certificate, 1, NOW), KEY_VALID);
        assert_int_equal(certificate_key_uses(certificate, 1), KEY_ENCRYPTS);
        check_choice(certificate, files[i], KEY_ENCRYPTS, NOW, -1,
                     key_usable(NULL, certificate_key(certificate, 1)) ? GPG_ERR_PUBKEY_ALGO : 0);
        certificate_free(certificate);
        bytes_clear(&bytes);
    }
}

static void test_times(void **state)
{
    (void)state;
    struct bytes bytes = sample_bytes("expired.pub.asc");
    struct certificate *certificate = parsed(&bytes);
    uint32_t made = certificate_key(certificate, 0)->created, end = certificate_key_expires(certificate, 0);
    assert_int_equal(end, 1642161600);
    assert_int_equal(certificate_key_state(certificate, 0, made - 1), KEY_NOT_YET);
    assert_int_equal(certificate_key_state(certificate, 0, made), KEY_VALID);
    assert_int_equal(certificate_key_state(certificate, 1, end - 1), KEY_VALID);
    assert_int_equal(certificate_key_state(certificate, 1, end), KEY_EXPIRED);
    check_choice(certificate, "expired", KEY_ENCRYPTS, end - 1, 1, 0);
    certificate_free(certificate);
    bytes_clear(&bytes);

    bytes = sample_bytes("revoked.pub.asc");
    certificate = parsed(&bytes);
    assert_int_equal(certificate_key_state(certificate, 0, T0), KEY_REVOKED);
    assert_int_equal(certificate_key_state(certificate, 1, T0), KEY_REVOKED);
    certificate_free(certificate);
    bytes_clear(&bytes);

    bytes = sample_bytes("subrevoked.pub.asc");
    certificate = parsed(&bytes);
    uint32_t revoked = certificate_key_revoked(certificate, 1);
    assert_int_equal(revoked, 1725192000);
    assert_int_equal(certificate_key_state(certificate, 1, revoked - 1), KEY_VALID);
    assert_int_equal(certificate_key_state(certificate, 1, revoked), KEY_REVOKED_SOFT);
    assert_int_equal(certificate_key_state(certificate, 0, NOW), KEY_VALID);
    certificate_free(certificate);
    bytes_clear(&bytes);
}

/* ---- choices ---- */

static bool refuse(void *context, const struct key *key)
{
    return key != context;
}

static void test_choose(void **state)
{
    (void)state;
    unsigned number = 99;
    struct bytes bytes = sample_bytes("multi.pub.asc");
    struct certificate *certificate = parsed(&bytes);
    for (int exact = 1; exact < 4; exact++) {
        assert_int_equal(certificate_choose(certificate, KEY_ENCRYPTS, NOW, exact, &number), 0);
        assert_int_equal(number, exact);
    }
    assert_code(certificate_choose(certificate, KEY_ENCRYPTS, NOW, 0, &number), GPG_ERR_UNUSABLE_PUBKEY);
    assert_code(certificate_choose(certificate, KEY_SIGNS, NOW, 1, &number), GPG_ERR_UNUSABLE_PUBKEY);
    assert_code(certificate_choose(certificate, KEY_ENCRYPTS, NOW, 4, &number), GPG_ERR_UNUSABLE_PUBKEY);
    assert_int_equal(
        certificate_choose_among(certificate, KEY_ENCRYPTS, NOW, -1, refuse, certificate_key(certificate, 1), &number),
        0);
    assert_int_equal(number, 2);
    assert_code(
        certificate_choose_among(certificate, KEY_SIGNS, NOW, -1, refuse, certificate_key(certificate, 0), &number),
        GPG_ERR_NO_SECKEY);
    certificate_set_disabled(certificate, true);
    assert_true(certificate_disabled(certificate));
    assert_code(certificate_choose(certificate, KEY_ENCRYPTS, NOW, -1, &number), GPG_ERR_KEY_DISABLED);
    certificate_free(certificate_ref(certificate));
    certificate_free(certificate);
    bytes_clear(&bytes);
}

/* ---- damage ---- */

struct span {
    size_t from, n;
};

/* Where the body of packet number INDEX of TYPE lies. */
static struct span packet_span(const struct bytes *bytes, unsigned type, unsigned index)
{
    struct cursor cursor = cursor_over(bytes->at, bytes->n);
    struct packet_view packet;
    while (packet_view_next(&cursor, &packet))
        if (packet.type == type && !index--)
            return (struct span){(size_t)(packet.body - bytes->at), packet.body_n};
    fail_msg("no packet %u", type);
    return (struct span){0, 0};
}

static void flip_everywhere(const char *file)
{
    struct bytes bytes = sample_bytes(file);
    for (size_t i = 0; i < bytes.n; i++) {
        for (unsigned bit = 0; bit < 8; bit += 3) {
            struct certificate *certificate = NULL;
            size_t used;
            bytes.at[i] ^= (uint8_t)(1 << bit);
            /* A copy of its exact size, so that a sanitizer sees a step too far. */
            uint8_t *copy = malloc(bytes.n);
            assert_non_null(copy);
            memcpy(copy, bytes.at, bytes.n);
            gpg_error_t err = certificate_parse(NULL, copy, bytes.n, &certificate, &used);
            if (!err) {
                assert_true(used <= bytes.n);
                for (unsigned k = 0; k < certificate_keys(certificate); k++)
                    assert_in_range(certificate_key_state(certificate, k, NOW), KEY_VALID, KEY_NOT_YET);
                certificate_free(certificate);
            }
            free(copy);
            bytes.at[i] ^= (uint8_t)(1 << bit);
        }
    }
    bytes_clear(&bytes);
}

static void test_flips(void **state)
{
    (void)state;
    flip_everywhere("ed25519.pub.asc");
    flip_everywhere("v6x25519.pub.asc");
}

static void test_cuts(void **state)
{
    (void)state;
    struct bytes bytes = sample_bytes("photo.pub.asc");
    for (size_t n = 0; n < bytes.n; n++) {
        struct certificate *certificate = NULL;
        size_t used;
        uint8_t *copy = malloc(n + !n);
        assert_non_null(copy);
        memcpy(copy, bytes.at, n);
        gpg_error_t err = certificate_parse(NULL, copy, n, &certificate, &used);
        if (!err)
            certificate_free(certificate);
        else
            assert_true(gpg_err_code(err) == GPG_ERR_INV_PACKET || gpg_err_code(err) == GPG_ERR_NO_DATA);
        assert_true(certificate_span(copy, n) == n);
        free(copy);
    }
    bytes_clear(&bytes);
}

/* The state of key NUMBER of bytes with octet AT changed; KEY_UNBOUND also where nothing is left to ask. */
static enum key_state state_after(struct bytes *bytes, size_t at, unsigned number)
{
    struct certificate *certificate = NULL;
    size_t used;
    enum key_state state = KEY_UNBOUND;
    bytes->at[at] ^= 0x01;
    if (!certificate_parse(NULL, bytes->at, bytes->n, &certificate, &used)) {
        if (number < certificate_keys(certificate))
            state = certificate_key_state(certificate, number, NOW);
        certificate_free(certificate);
    }
    bytes->at[at] ^= 0x01;
    return state;
}

/* Every octet that a signature packet authenticates, and its value. */
static void flips_unbind(const char *file, unsigned signature_index, unsigned number)
{
    struct bytes bytes = sample_bytes(file);
    struct span span = packet_span(&bytes, PACKET_SIGNATURE, signature_index);
    size_t hashed = 6u + get_be16(bytes.at + span.from + 4);
    size_t unhashed = get_be16(bytes.at + span.from + hashed);
    size_t value = hashed + 2 + unhashed + 2;
    for (size_t i = 0; i < span.n; i++) {
        bool counts = i < hashed || i >= value + 2;
        if (counts && state_after(&bytes, span.from + i, number) != KEY_UNBOUND)
            fail_msg("%s: octet %zu of signature %u does not matter", file, i, signature_index);
    }
    bytes_clear(&bytes);
}

static void test_flipped_bindings(void **state)
{
    (void)state;
    flips_unbind("rsa2048.pub.asc", 0, 0); /* the only user id's */
    flips_unbind("rsa2048.pub.asc", 1, 1);
    flips_unbind("signsub.pub.asc", 1, 1); /* with a back signature */
    flips_unbind("ed25519.pub.asc", 1, 1);
}

/* A subkey packet changed anywhere is another key, and not bound. */
static void test_flipped_subkey(void **state)
{
    (void)state;
    struct bytes bytes = sample_bytes("p256.pub.asc");
    struct span span = packet_span(&bytes, PACKET_PUBLIC_SUBKEY, 0);
    for (size_t i = 0; i < span.n; i++)
        assert_int_equal(state_after(&bytes, span.from + i, 1), KEY_UNBOUND);
    bytes_clear(&bytes);
}

/* ---- spliced ---- */

/* Adds packet number INDEX of TYPE from FROM to TO. */
static void splice(struct bytes *to, const struct bytes *from, unsigned type, unsigned index)
{
    struct span span = packet_span(from, type, index);
    bytes_add_packet(to, type, from->at + span.from, span.n);
}

static void test_stolen_subkey(void **state)
{
    (void)state;
    struct bytes thief = sample_bytes("signonly.pub.asc"), victim = sample_bytes("signsub.pub.asc");
    for (unsigned subkey = 0; subkey < 2; subkey++) {
        struct bytes forged = {0};
        bytes_add(&forged, thief.at, thief.n);
        splice(&forged, &victim, PACKET_PUBLIC_SUBKEY, subkey);
        splice(&forged, &victim, PACKET_SIGNATURE, subkey + 1);
        struct certificate *certificate = parsed(&forged);
        assert_int_equal(certificate_keys(certificate), 2);
        assert_int_equal(certificate_key_state(certificate, 1, NOW), KEY_UNBOUND);
        assert_int_equal(certificate_key_uses(certificate, 1), 0);
        check_choice(certificate, "stolen", KEY_SIGNS, NOW, 0, 0);
        check_choice(certificate, "stolen", KEY_ENCRYPTS, NOW, -1, GPG_ERR_UNUSABLE_PUBKEY);
        certificate_free(certificate);
        bytes_clear(&forged);
    }
    bytes_clear(&thief);
    bytes_clear(&victim);
}

/* A user id with the certification of another certificate is none of its. */
static void test_stolen_uid(void **state)
{
    (void)state;
    struct bytes own = sample_bytes("signonly.pub.asc"), other = sample_bytes("ed25519.pub.asc"), forged = {0};
    bytes_add(&forged, own.at, own.n);
    splice(&forged, &other, PACKET_USER_ID, 0);
    splice(&forged, &other, PACKET_SIGNATURE, 0);
    splice(&forged, &other, PACKET_USER_ID, 0); /* without any */
    struct certificate *certificate = parsed(&forged);
    assert_int_equal(certificate_uids(certificate), 1);
    assert_string_equal(certificate_uid(certificate, 0, NULL), "signonly Alpha <signonly@example.org>");
    assert_int_equal(certificate_uid_length(certificate, 0), 37);
    certificate_free(certificate);
    bytes_clear(&own);
    bytes_clear(&other);
    bytes_clear(&forged);
}

static void test_several(void **state)
{
    (void)state;
    struct bytes one = sample_bytes("ed25519.pub.asc"), two = sample_bytes("photo.pub.asc"), both = {0};
    static const uint8_t marker[] = "PGP";
    struct certificate *certificate = NULL;
    size_t used = 0;
    bytes_add_packet(&both, PACKET_MARKER, marker, 3);
    bytes_add(&both, one.at, one.n);
    bytes_add_packet(&both, 60, "private", 7);
    bytes_add(&both, two.at, two.n);
    assert_int_equal(certificate_parse(NULL, both.at, both.n, &certificate, &used), 0);
    assert_int_equal(used, both.n - two.n);
    assert_int_equal(certificate_span(both.at, both.n), used);
    check_choice(certificate, "first of two", KEY_ENCRYPTS, NOW, 1, 0);
    certificate_free(certificate);
    assert_code(certificate_parse(NULL, both.at, 5, &certificate, &used), GPG_ERR_NO_DATA);
    assert_code(certificate_parse(NULL, NULL, 0, &certificate, &used), GPG_ERR_NO_DATA);
    bytes_clear(&one);
    bytes_clear(&two);
    bytes_clear(&both);
}

/* ---- forged ---- */

struct forgery {
    struct forged primary, sub;
    struct bytes bytes;
};

/* A primary key with one user id, and a subkey of ALGO not yet bound. */
static struct forgery forgery_new(unsigned algo)
{
    struct forgery forgery = {forged_new(PUBKEY_ECDSA, false, T0), forged_new(algo, true, T0), {0}};
    add_forged_key(&forgery.bytes, &forgery.primary);
    add_forged_uid(&forgery.bytes, &forgery.primary, "Alice <alice@example.org>",
                   CLAIM(.type = 0x13, .created = T0, .flags = GIVEN(3)));
    add_forged_key(&forgery.bytes, &forgery.sub);
    return forgery;
}

static void forgery_sign(struct forgery *forgery, struct claim claim)
{
    add_forged_signature(&forgery->bytes, &forgery->primary, &forgery->primary, &forgery->sub, claim);
}

static void forgery_clear(struct forgery *forgery)
{
    forged_clear(&forgery->primary);
    forged_clear(&forgery->sub);
    bytes_clear(&forgery->bytes);
}

static void forgery_is(struct forgery *forgery, enum key_state state, unsigned uses)
{
    struct certificate *certificate = parsed(&forgery->bytes);
    assert_int_equal(certificate_key_state(certificate, 1, NOW), state);
    assert_int_equal(certificate_key_uses(certificate, 1), uses);
    assert_int_equal(certificate_key_state(certificate, 0, NOW), KEY_VALID);
    certificate_free(certificate);
}

/* Bindings of an encryption subkey: what makes them count or not, by what is signed. */
static const struct {
    const char *what;
    struct claim claims[2]; /* the second with type 0: none */
    enum key_state state;
    unsigned uses;
} bindings[] = {
    {"none", {{.type = 0}}, KEY_UNBOUND, 0},
    {"plain", {{.type = 0x18, .created = T0, .flags = GIVEN(12)}}, KEY_VALID, 12},
    {"without flags", {{.type = 0x18, .created = T0}}, KEY_VALID, 12},
    {"no flags set", {{.type = 0x18, .created = T0, .flags = GIVEN(0)}}, KEY_VALID, 0},
    {"flags the key cannot keep", {{.type = 0x18, .created = T0, .flags = GIVEN(0x2F)}}, KEY_VALID, 12},
    {"storage only", {{.type = 0x18, .created = T0, .flags = GIVEN(8)}}, KEY_VALID, 8},
    {"MD5", {{.type = 0x18, .created = T0, .flags = GIVEN(12), .digest = DIGEST_MD5}}, KEY_UNBOUND, 0},
    {"SHA-1, too short for the curve",
     {{.type = 0x18, .created = T0, .flags = GIVEN(12), .digest = DIGEST_SHA1}},
     KEY_UNBOUND,
     0},
    {"critical", {{.type = 0x18, .created = T0, .flags = GIVEN(12), .critical = true}}, KEY_UNBOUND, 0},
    {"older than the key", {{.type = 0x18, .created = T0 - 1, .flags = GIVEN(12)}}, KEY_UNBOUND, 0},
    {"binding expired", {{.type = 0x18, .created = T0, .flags = GIVEN(12), .expires = DAY}}, KEY_UNBOUND, 0},
    {"key expired", {{.type = 0x18, .created = T0, .flags = GIVEN(12), .key_expires = DAY}}, KEY_EXPIRED, 12},
    {"expiry extended",
     {{.type = 0x18, .created = T0 + 9, .flags = GIVEN(12)},
      {.type = 0x18, .created = T0, .flags = GIVEN(12), .key_expires = DAY}},
     KEY_VALID,
     12},
    {"expiry set later",
     {{.type = 0x18, .created = T0, .flags = GIVEN(12)},
      {.type = 0x18, .created = T0 + 9, .flags = GIVEN(12), .key_expires = DAY}},
     KEY_EXPIRED,
     12},
    {"revoked without reason",
     {{.type = 0x18, .created = T0, .flags = GIVEN(12)}, {.type = 0x28, .created = T0}},
     KEY_REVOKED,
     12},
    {"compromised",
     {{.type = 0x28, .created = T0, .reason = GIVEN(2)}, {.type = 0x18, .created = T0 + 9, .flags = GIVEN(12)}},
     KEY_REVOKED,
     12},
    {"strange reason",
     {{.type = 0x28, .created = T0, .reason = GIVEN(77)}, {.type = 0x18, .created = T0, .flags = GIVEN(12)}},
     KEY_REVOKED,
     12},
    {"superseded, and bound again later",
     {{.type = 0x28, .created = T0, .reason = GIVEN(1)}, {.type = 0x18, .created = T0 + 9, .flags = GIVEN(12)}},
     KEY_REVOKED_SOFT,
     12},
    {"retired",
     {{.type = 0x18, .created = T0, .flags = GIVEN(12)}, {.type = 0x28, .created = T0, .reason = GIVEN(3)}},
     KEY_REVOKED_SOFT,
     12},
    {"soft, then hard",
     {{.type = 0x28, .created = T0, .reason = GIVEN(3)}, {.type = 0x28, .created = T0 + 9, .reason = GIVEN(2)}},
     KEY_UNBOUND,
     0},
};

static void test_bindings(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(bindings); i++) {
        struct forgery forgery = forgery_new(PUBKEY_ECDH);
        for (unsigned j = 0; j < 2; j++)
            if (bindings[i].claims[j].type)
                forgery_sign(&forgery, bindings[i].claims[j]);
        struct certificate *certificate = parsed(&forgery.bytes);
        enum key_state got = certificate_key_state(certificate, 1, NOW);
        if (got != bindings[i].state || certificate_key_uses(certificate, 1) != bindings[i].uses)
            fail_msg("%s: state %d, uses %u", bindings[i].what, (int)got, certificate_key_uses(certificate, 1));
        certificate_free(certificate);
        forgery_clear(&forgery);
    }
}

/* Bound by a key that is not the primary one, and for another primary key. */
static void test_foreign_binding(void **state)
{
    (void)state;
    struct forgery forgery = forgery_new(PUBKEY_ECDH);
    struct forged stranger = forged_new(PUBKEY_ECDSA, false, T0);
    size_t before = forgery.bytes.n;
    add_forged_signature(&forgery.bytes, &stranger, &forgery.primary, &forgery.sub, CLAIM(.type = 0x18, .created = T0));
    forgery_is(&forgery, KEY_UNBOUND, 0);
    /* The stranger's signature with the primary's key id in it: the value must be checked, not the name. */
    struct bytes body =
        forged_signature(&stranger, &forgery.primary, &forgery.sub, &CLAIM(.type = 0x18, .created = T0));
    size_t issuer = 6u + get_be16(body.at + 4) + 4;
    memcpy(body.at + issuer, forgery.primary.key->keyid, 8);
    bytes_add_packet(&forgery.bytes, PACKET_SIGNATURE, body.at, body.n);
    forgery_is(&forgery, KEY_UNBOUND, 0);
    bytes_clear(&body);
    forgery.bytes.n = before;
    add_forged_signature(&forgery.bytes, &forgery.primary, &stranger, &forgery.sub, CLAIM(.type = 0x18, .created = T0));
    forgery_is(&forgery, KEY_UNBOUND, 0);
    forged_clear(&stranger);
    forgery_clear(&forgery);
}

/* Back signatures: by whom, over what, of which kind. */
static void test_back_signatures(void **state)
{
    (void)state;
    struct forged stranger = forged_new(PUBKEY_ECDSA, false, T0);
    struct forgery forgery = forgery_new(PUBKEY_ECDSA);
    size_t before = forgery.bytes.n;
    struct bytes good =
        forged_signature(&forgery.sub, &forgery.primary, &forgery.sub, &CLAIM(.type = 0x19, .created = T0));
    struct bytes bad[] = {
        forged_signature(&stranger, &forgery.primary, &forgery.sub, &CLAIM(.type = 0x19, .created = T0)),
        forged_signature(&forgery.primary, &forgery.primary, &forgery.sub, &CLAIM(.type = 0x19, .created = T0)),
        forged_signature(&forgery.sub, &stranger, &forgery.sub, &CLAIM(.type = 0x19, .created = T0)),
        forged_signature(&forgery.sub, &forgery.primary, &forgery.sub, &CLAIM(.type = 0x18, .created = T0)),
        forged_signature(&forgery.sub, &forgery.primary, &forgery.sub,
                         &CLAIM(.type = 0x19, .created = T0, .expires = DAY)),
        forged_signature(&forgery.sub, &forgery.primary, &forgery.sub, &CLAIM(.type = 0x19, .created = T0 - DAY)),
        forged_signature(&forgery.sub, &forgery.primary, &forgery.sub,
                         &CLAIM(.type = 0x19, .created = T0, .digest = DIGEST_MD5)),
        forged_signature(&forgery.sub, &forgery.primary, &forgery.sub,
                         &CLAIM(.type = 0x19, .created = T0, .critical = true)),
    };
    forgery_sign(&forgery, CLAIM(.type = 0x18, .created = T0, .flags = GIVEN(2), .back = &good));
    forgery_is(&forgery, KEY_VALID, KEY_SIGNS);
    forgery.bytes.n = before;
    forgery_sign(&forgery, CLAIM(.type = 0x18, .created = T0, .flags = GIVEN(2)));
    forgery_is(&forgery, KEY_UNBOUND, 0);
    forgery.bytes.n = before;
    forgery_sign(&forgery, CLAIM(.type = 0x18, .created = T0, .flags = GIVEN(0x20))); /* authentication needs none */
    forgery_is(&forgery, KEY_VALID, KEY_AUTHENTICATES);
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        forgery.bytes.n = before;
        forgery_sign(&forgery, CLAIM(.type = 0x18, .created = T0, .flags = GIVEN(2), .back = &bad[i]));
        forgery_is(&forgery, KEY_UNBOUND, 0);
        bytes_clear(&bad[i]);
    }
    bytes_clear(&good);
    forged_clear(&stranger);
    forgery_clear(&forgery);
}

static struct certificate *forged_uids(const struct forged *primary, const char *const *uids,
                                       const struct claim *claims, size_t n)
{
    struct bytes bytes = {0};
    add_forged_key(&bytes, primary);
    for (size_t i = 0; i < n; i++) {
        if (uids[i])
            add_forged_uid(&bytes, primary, uids[i], claims[i]);
        else /* another signature on the user id before */
            add_forged_signature(&bytes, primary, primary, NULL, claims[i]);
    }
    struct certificate *certificate = parsed(&bytes);
    bytes_clear(&bytes);
    return certificate;
}

static void test_primary_uid(void **state)
{
    (void)state;
    struct forged primary = forged_new(PUBKEY_ECDSA, false, T0);
    bool revoked;
    /* Newest without flags; then the flagged; then the longer of two of one second. */
    struct certificate *certificate =
        forged_uids(&primary, (const char *const[]){"old", "new", "mid"},
                    (const struct claim[]){CLAIM(.type = 0x13, .created = T0), CLAIM(.type = 0x13, .created = T0 + 9),
                                           CLAIM(.type = 0x13, .created = T0 + 5)},
                    3);
    assert_string_equal(certificate_uid(certificate, 0, &revoked), "new");
    assert_string_equal(certificate_uid(certificate, 1, &revoked), "old");
    assert_string_equal(certificate_uid(certificate, 2, &revoked), "mid");
    assert_false(revoked);
    certificate_free(certificate);
    certificate = forged_uids(&primary, (const char *const[]){"new", "flagged", "flagged too"},
                              (const struct claim[]){CLAIM(.type = 0x13, .created = T0 + 9),
                                                     CLAIM(.type = 0x10, .created = T0, .primary = true),
                                                     CLAIM(.type = 0x13, .created = T0 + 1, .primary = true)},
                              3);
    assert_string_equal(certificate_uid(certificate, 0, NULL), "flagged too");
    certificate_free(certificate);
    certificate =
        forged_uids(&primary, (const char *const[]){"aaa", "bb", "aab"},
                    (const struct claim[]){CLAIM(.type = 0x13, .created = T0), CLAIM(.type = 0x13, .created = T0),
                                           CLAIM(.type = 0x13, .created = T0)},
                    3);
    assert_string_equal(certificate_uid(certificate, 0, NULL), "aab");
    certificate_free(certificate);
    /* A revocation stands until a newer certification. */
    certificate = forged_uids(&primary, (const char *const[]){"gone", NULL, "back", NULL, NULL, "lapsed", "stays"},
                              (const struct claim[]){CLAIM(.type = 0x13, .created = T0 + 9, .primary = true),
                                                     CLAIM(.type = 0x30, .created = T0 + 10, .uid = "gone"),
                                                     CLAIM(.type = 0x13, .created = T0),
                                                     CLAIM(.type = 0x30, .created = T0 + 1, .uid = "back"),
                                                     CLAIM(.type = 0x13, .created = T0 + 2, .uid = "back"),
                                                     CLAIM(.type = 0x13, .created = T0 + 20, .expires = DAY),
                                                     CLAIM(.type = 0x13, .created = T0)},
                              7);
    assert_int_equal(certificate_uids(certificate), 4);
    assert_string_equal(certificate_uid(certificate, 0, &revoked), "back");
    assert_false(revoked);
    assert_string_equal(certificate_uid(certificate, 1, &revoked), "gone");
    assert_true(revoked);
    assert_string_equal(certificate_uid(certificate, 2, &revoked), "lapsed");
    assert_true(revoked);
    assert_string_equal(certificate_uid(certificate, 3, &revoked), "stays");
    assert_false(revoked);
    certificate_free(certificate);
    forged_clear(&primary);
}

/* Expiry and flags of the primary key: from the newest user id that has them, the direct-key signature first. */
static void test_primary(void **state)
{
    (void)state;
    struct forged primary = forged_new(PUBKEY_ECDSA, false, T0);
    struct bytes bytes = {0};
    struct certificate *certificate = forged_uids(
        &primary, (const char *const[]){"a", "b", NULL},
        (const struct claim[]){CLAIM(.type = 0x13, .created = T0, .key_expires = 2 * DAY, .flags = GIVEN(1)),
                               CLAIM(.type = 0x13, .created = T0 + 9),
                               CLAIM(.type = 0x13, .created = T0 + 5, .uid = "b", .key_expires = DAY)},
        3);
    assert_int_equal(certificate_key_expires(certificate, 0), T0 + 2 * DAY);
    assert_int_equal(certificate_key_uses(certificate, 0), KEY_CERTIFIES);
    certificate_free(certificate);
    /* Without any flags the algorithm decides. */
    certificate = forged_uids(&primary, (const char *const[]){"a"},
                              (const struct claim[]){CLAIM(.type = 0x13, .created = T0)}, 1);
    assert_int_equal(certificate_key_uses(certificate, 0), KEY_CERTIFIES | KEY_SIGNS | KEY_AUTHENTICATES);
    certificate_free(certificate);
    /* Nothing at all, then a direct-key signature. */
    add_forged_key(&bytes, &primary);
    certificate = parsed(&bytes);
    assert_int_equal(certificate_key_state(certificate, 0, NOW), KEY_UNBOUND);
    assert_null(certificate_preferences(certificate));
    certificate_free(certificate);
    add_forged_signature(&bytes, &primary, &primary, NULL,
                         CLAIM(.type = 0x1F, .created = T0, .flags = GIVEN(3), .key_expires = DAY));
    add_forged_uid(&bytes, &primary, "a",
                   CLAIM(.type = 0x13, .created = T0 + 9, .flags = GIVEN(1), .key_expires = 5 * DAY));
    certificate = parsed(&bytes);
    assert_int_equal(certificate_key_uses(certificate, 0), KEY_CERTIFIES | KEY_SIGNS);
    assert_int_equal(certificate_key_expires(certificate, 0), T0 + DAY);
    assert_int_equal(certificate_preferences(certificate)->type, 0x13);
    certificate_free(certificate);
    /* A revocation by another key is none. */
    struct forged stranger = forged_new(PUBKEY_ECDSA, false, T0);
    add_forged_signature(&bytes, &stranger, &primary, NULL, CLAIM(.type = 0x20, .created = T0));
    certificate = parsed(&bytes);
    assert_int_equal(certificate_key_state(certificate, 0, T0 + 1), KEY_VALID);
    certificate_free(certificate);
    add_forged_signature(&bytes, &primary, &primary, NULL, CLAIM(.type = 0x20, .created = T0 + 7, .reason = GIVEN(1)));
    certificate = parsed(&bytes);
    assert_int_equal(certificate_key_state(certificate, 0, T0 + 6), KEY_VALID);
    assert_int_equal(certificate_key_state(certificate, 0, T0 + 7), KEY_REVOKED_SOFT);
    certificate_free(certificate);
    forged_clear(&stranger);
    forged_clear(&primary);
    bytes_clear(&bytes);
}

/* More forged self-signatures than are looked at: it ends, and what is good is found where it comes first. */
static void test_flood(void **state)
{
    (void)state;
    struct forgery forgery = forgery_new(PUBKEY_ECDH);
    struct bytes body =
        forged_signature(&forgery.primary, &forgery.primary, &forgery.sub, &CLAIM(.type = 0x18, .created = T0));
    body.at[body.n - 1] ^= 1;
    for (unsigned i = 0; i < 300; i++)
        bytes_add_packet(&forgery.bytes, PACKET_SIGNATURE, body.at, body.n);
    forgery_is(&forgery, KEY_UNBOUND, 0);
    body.at[body.n - 1] ^= 1;
    bytes_add_packet(&forgery.bytes, PACKET_SIGNATURE, body.at, body.n);
    forgery_is(&forgery, KEY_VALID, 12);
    bytes_clear(&body);
    forgery_clear(&forgery);
}

/* ---- against gpg ---- */

/* What gpg would encrypt to; -1: refused. */
static int gpg_choice(const struct home *home, const struct certificate *certificate)
{
    char fpr[2 * KEY_FPR_MAX + 1];
    key_fpr_hex(certificate_key(certificate, 0), fpr);
    char *output = shell_output("echo x | " GPG "-r %s -e 2>/dev/null | " GPG "--list-packets 2>/dev/null || true",
                                home->folder, fpr, home->folder);
    int number = -1;
    const char *found = strstr(output, "keyid ");
    for (unsigned i = 0; found && i < certificate_keys(certificate); i++) {
        char hex[17];
        const uint8_t *keyid = certificate_key(certificate, i)->keyid;
        snprintf(hex, sizeof hex, "%08X%08X", get_be32(keyid), get_be32(keyid + 4));
        if (strncmp(found + 6, hex, 16) == 0)
            number = (int)i;
    }
    free(output);
    return number;
}

/* Whether gpg shows the same user id first. */
static void compare_primary_uid(const struct home *home, const struct certificate *certificate)
{
    char fpr[2 * KEY_FPR_MAX + 1];
    key_fpr_hex(certificate_key(certificate, 0), fpr);
    char *output =
        shell_output(GPG "--with-colons --list-keys %s | grep ^uid: | head -n 1 | cut -d: -f10", home->folder, fpr);
    output[strcspn(output, "\n")] = '\0';
    assert_string_equal(certificate_uid(certificate, 0, NULL), output);
    free(output);
}

/* Compares all of what gpg has in HOME. */
static void compare_home(const struct home *home, unsigned expected, unsigned expected_usable)
{
    char file[128];
    unsigned compared = 0, usable = 0;
    struct keyring *keyring = NULL;
    const uint8_t *bytes;
    size_t n, used, position = 0;
    snprintf(file, sizeof file, "%s/pubring.kbx", home->folder);
    assert_int_equal(keyring_open(NULL, file, &keyring), 0);
    while (!keyring_next(NULL, keyring, NULL, &position, &bytes, &n)) {
        struct certificate *certificate = NULL;
        unsigned number = 0;
        assert_int_equal(certificate_parse(NULL, bytes, n, &certificate, &used), 0);
        gpg_error_t err = certificate_choose(certificate, KEY_ENCRYPTS, (uint32_t)time(NULL), -1, &number);
        int theirs = gpg_choice(home, certificate);
        if (theirs != (err ? -1 : (int)number))
            fail_msg("%s: gpg takes %d, we %d (%s)",
                     certificate_uids(certificate) ? certificate_uid(certificate, 0, NULL) : "?", theirs,
                     err ? -1 : (int)number, gpg_strerror(err));
        compare_primary_uid(home, certificate);
        certificate_free(certificate);
        compared++;
        usable += !err;
    }
    keyring_free(keyring);
    assert_int_equal(compared, expected);
    assert_int_equal(usable, expected_usable);
}

/* Keys as people come to have them. */
static void test_gpg_keys(void **state)
{
    static const char *const recipes[] = {
        "--quick-gen-key r1 rsa1024 cert,sign,encr never",
        "--quick-gen-key r2 rsa1024 sign never",
        "--quick-gen-key r3 future-default default 2y",
        "--quick-gen-key r4 ed25519 default never && G --quick-add-key $(F r4) cv25519 encr never && "
        "G --faked-system-time 20200101T000000 --list-keys r4",
        "--faked-system-time 20200101T000000 --quick-gen-key r5 ed25519 default never && "
        "G --faked-system-time 20210101T000000 --quick-add-key $(F r5) cv25519 encr 1y && "
        "G --faked-system-time 20200601T000000 --quick-add-key $(F r5) nistp256 encr never",
        "--faked-system-time 20200101T000000 --quick-gen-key r6 ed25519 default never && "
        "G --faked-system-time 20220101T000000 --quick-add-key $(F r6) cv25519 encr never && "
        "G --faked-system-time 20210101T000000 --quick-add-key $(F r6) nistp256 encr never",
        "--faked-system-time 20200101T000000 --quick-gen-key r7 rsa1024 cert,sign,encr 1y",
        "--faked-system-time 20200101T000000 --quick-gen-key r8 rsa1024 cert,sign,encr 1y && G --quick-set-expire $(F "
        "r8) 3y",
        "--faked-system-time 20200101T000000 --quick-gen-key r9 ed25519 default never && "
        "G --faked-system-time 20200101T000001 --quick-add-key $(F r9) cv25519 encr 1y && "
        "G --quick-set-expire $(F r9) 2y '*'",
        "--quick-gen-key r10 ed25519 default never && G --quick-add-key $(F r10) ed25519 sign never && "
        "G --quick-add-key $(F r10) cv25519 encr never && G --quick-add-uid $(F r10) r10b",
        "--quick-gen-key r11 ed25519 default never && G --quick-add-key $(F r11) cv25519 encr never && "
        "G --quick-add-uid $(F r11) r11b && G --quick-revoke-uid $(F r11) r11",
        "--quick-gen-key r12 ed25519 default never && G --quick-add-key $(F r12) cv25519 encr never && "
        "sed 's/^:---/---/' $H/openpgp-revocs.d/$(F r12).rev | G --import",
        "--cert-digest-algo SHA1 --quick-gen-key r13 rsa1024 cert,sign never && "
        "G --cert-digest-algo SHA1 --quick-add-key $(F r13) elg1024 encr never",
    };
    (void)state;
    struct home home = home_new();
    for (size_t i = 0; i < ARRAY_SIZE(recipes); i++)
        shell(
            "H=%s; exec 2>/dev/null >/dev/null; G() { " GPG "\"$@\"; }; "
            "F() { G --with-colons --list-keys \"=$1\" | sed -n 's/^fpr:::::::::\\(.*\\):/\\1/p' | head -n 1; }; G %s",
            home.folder, home.folder, recipes[i]);
    /* All but those that only sign, have expired or are revoked. */
    compare_home(&home, ARRAY_SIZE(recipes), 9);
    home_remove(&home);
}

/* The forged bindings, those that gpg imports: validity and capabilities in its listing. */
static void test_gpg_forgeries(void **state)
{
    (void)state;
    struct home home = home_new();
    char file[128];
    unsigned imported = 0;
    for (size_t i = 0; i < ARRAY_SIZE(bindings); i++) {
        struct forgery forgery = forgery_new(PUBKEY_ECDH);
        for (unsigned j = 0; j < 2; j++)
            if (bindings[i].claims[j].type)
                forgery_sign(&forgery, bindings[i].claims[j]);
        snprintf(file, sizeof file, "%s/forged", home.folder);
        file_write(file, forgery.bytes.at, forgery.bytes.n);
        shell(GPG "--import %s 2>/dev/null || true", home.folder, file);
        struct certificate *certificate = parsed(&forgery.bytes);
        unsigned number = 0;
        gpg_error_t err = certificate_choose(certificate, KEY_ENCRYPTS, (uint32_t)time(NULL), -1, &number);
        int theirs = gpg_choice(&home, certificate);
        if (theirs != (err ? -1 : (int)number))
            fail_msg("%s: gpg takes %d, we %d", bindings[i].what, theirs, err ? -1 : (int)number);
        imported += theirs >= 0;
        certificate_free(certificate);
        forgery_clear(&forgery);
    }
    assert_true(imported >= 5);
    home_remove(&home);
}

/* User ids of one second: which one gpg takes for the primary one. */
static void test_gpg_uids(void **state)
{
    static const char *const uids[][3] = {
        {"aaa", "aab", "bb"}, {"bb", "aab", "aaa"}, {"x", "y", "z"}, {"long one", "zz", "yy"}};
    (void)state;
    struct home home = home_new();
    char file[128];
    snprintf(file, sizeof file, "%s/forged", home.folder);
    for (size_t i = 0; i < ARRAY_SIZE(uids); i++) {
        struct forged primary = forged_new(PUBKEY_ECDSA, false, T0);
        struct bytes bytes = {0};
        add_forged_key(&bytes, &primary);
        for (unsigned j = 0; j < 3; j++)
            add_forged_uid(&bytes, &primary, uids[i][j], CLAIM(.type = 0x13, .created = T0, .primary = i % 2));
        file_write(file, bytes.at, bytes.n);
        shell(GPG "--import %s 2>/dev/null", home.folder, file);
        struct certificate *certificate = parsed(&bytes);
        compare_primary_uid(&home, certificate);
        certificate_free(certificate);
        bytes_clear(&bytes);
        forged_clear(&primary);
    }
    home_remove(&home);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_samples),
        cmocka_unit_test(test_kyber),
        cmocka_unit_test(test_times),
        cmocka_unit_test(test_choose),
        cmocka_unit_test(test_flips),
        cmocka_unit_test(test_cuts),
        cmocka_unit_test(test_flipped_bindings),
        cmocka_unit_test(test_flipped_subkey),
        cmocka_unit_test(test_stolen_subkey),
        cmocka_unit_test(test_stolen_uid),
        cmocka_unit_test(test_several),
        cmocka_unit_test(test_bindings),
        cmocka_unit_test(test_foreign_binding),
        cmocka_unit_test(test_back_signatures),
        cmocka_unit_test(test_primary_uid),
        cmocka_unit_test(test_primary),
        cmocka_unit_test(test_flood),
        cmocka_unit_test(test_gpg_keys),
        cmocka_unit_test(test_gpg_forgeries),
        cmocka_unit_test(test_gpg_uids),
    };
    return crypt_init(NULL) ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
