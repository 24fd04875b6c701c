/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "pgp/preference.h"

#include <gcrypt.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "pgp/crypt_init.h"

/* A self-signature with these lists of algorithms, octets ending with END each. */
#define END 255

static void fill(uint8_t *list, uint8_t *n, const uint8_t *octets)
{
    for (*n = 0; octets && octets[*n] != END; ++*n)
        list[*n] = octets[*n];
}

static struct signature self_of(const uint8_t *ciphers, const uint8_t *digests, const uint8_t *compressions,
                                uint8_t features)
{
    struct signature self = {.has_features = true, .features = features};
    fill(self.pref_cipher, &self.pref_cipher_n, ciphers);
    fill(self.pref_digest, &self.pref_digest_n, digests);
    fill(self.pref_compress, &self.pref_compress_n, compressions);
    return self;
}

#define LIST(...) ((const uint8_t[]){__VA_ARGS__, END})
#define NOTHING   ((const uint8_t[]){END})

static const struct preference_wishes no_wishes = {.compress = -1, .chunk_octet = -1};

static struct preference_list list_of(const char *text, char type)
{
    struct preference_list list;
    assert_int_equal(preference_parse(NULL, text, type, &list), 0);
    return list;
}

static struct preference_choice choose(const struct preference_wishes *wishes, const struct signature *selves, size_t n)
{
    static const struct key key = {.version = 4};
    const struct signature *pointers[4];
    const struct key *keys[4];
    struct preference_choice choice;
    assert_true(n <= 4);
    for (size_t i = 0; i < n; i++) {
        pointers[i] = &selves[i];
        keys[i] = &key;
    }
    assert_int_equal(preference_choose(NULL, wishes, pointers, keys, n, &choice), 0);
    return choice;
}

static void lists_are_parsed(void **state)
{
    (void)state;
    struct preference_list list = list_of("AES256 AES, S10  twofish AES", 'S');
    assert_int_equal(list.n, 3);
    assert_int_equal(list.algo[0], CIPHER_AES256);
    assert_int_equal(list.algo[1], CIPHER_AES128);
    assert_int_equal(list.algo[2], CIPHER_TWOFISH);
    assert_int_equal(list_of("", 'H').n, 0);
    assert_int_equal(list_of("none", 'S').n, 0);
    assert_int_equal(list_of("none", 'Z').n, 0); /* a list of nothing, as in gpg, and not "do not compress" */
    list = list_of("Uncompressed Z2", 'Z');
    assert_int_equal(list.n, 2);
    assert_int_equal(list.algo[0], COMPRESS_NONE);
    static const char *const wrong[] = {"AES512", "AES256 ZLIB", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "S",
                                        "S999"};
    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
        assert_int_equal(gpg_err_code(preference_parse(NULL, wrong[i], 'S', &list)), GPG_ERR_INV_VALUE);
}

static void least_sum_of_places_wins(void **state)
{
    (void)state;
    struct signature selves[2] = {
        self_of(LIST(CIPHER_AES256, CIPHER_TWOFISH, CIPHER_AES128), NULL, LIST(COMPRESS_ZLIB, COMPRESS_ZIP), 1),
        self_of(LIST(CIPHER_TWOFISH, CIPHER_AES256), NULL, LIST(COMPRESS_ZIP), 1)};
    /* 1 + 2 each: the lower number. */
    assert_int_equal(choose(&no_wishes, selves, 2).cipher, CIPHER_AES256);
    assert_int_equal(choose(&no_wishes, selves, 2).compress, COMPRESS_ZIP);
    assert_int_equal(choose(&no_wishes, &selves[1], 1).cipher, CIPHER_TWOFISH);
    /* The personal list goes first, as far as all can read it. */
    struct preference_wishes wishes = no_wishes;
    wishes.ciphers = list_of("AES TWOFISH", 'S');
    assert_int_equal(choose(&wishes, selves, 2).cipher, CIPHER_TWOFISH);
    wishes.cipher = CIPHER_CAMELLIA256;
    assert_int_equal(choose(&wishes, selves, 2).cipher, CIPHER_CAMELLIA256);
}

static void old_ciphers_only_by_name(void **state)
{
    (void)state;
    struct signature self = self_of(LIST(CIPHER_CAST5, CIPHER_3DES), NULL, NULL, 1);
    struct preference_wishes wishes = no_wishes;
    assert_int_equal(choose(&wishes, &self, 1).cipher, CIPHER_AES128);
    assert_false(choose(&wishes, &self, 1).legacy_cipher);
    wishes.ciphers = list_of("3DES", 'S');
    assert_int_equal(choose(&wishes, &self, 1).cipher, CIPHER_AES128);
    assert_int_equal(choose(&wishes, NULL, 0).cipher, CIPHER_AES256);
    wishes.cipher = CIPHER_3DES;
    assert_int_equal(choose(&wishes, &self, 1).cipher, CIPHER_3DES);
    assert_true(choose(&wishes, &self, 1).legacy_cipher);
}

static void who_has_no_list_sets_compression_anew(void **state)
{
    (void)state;
    struct signature selves[2] = {self_of(NULL, NULL, LIST(COMPRESS_NONE, COMPRESS_ZIP), 1),
                                  self_of(NULL, NULL, NULL, 1)};
    struct signature turned[2] = {selves[1], selves[0]};
    /* What gpg 2.2.40 does with these, in both orders. */
    assert_int_equal(choose(&no_wishes, selves, 2).compress, COMPRESS_ZIP);
    assert_int_equal(choose(&no_wishes, turned, 2).compress, COMPRESS_ZIP);
    assert_int_equal(choose(&no_wishes, &selves[0], 1).compress, COMPRESS_NONE);
    assert_int_equal(choose(&no_wishes, &selves[1], 1).compress, COMPRESS_ZIP);
}

static void form_from_features(void **state)
{
    (void)state;
    struct signature old = self_of(LIST(CIPHER_AES256), NULL, NULL, 1),
                     ocb = self_of(LIST(CIPHER_AES256), NULL, NULL, 3),
                     new = self_of(LIST(CIPHER_AES256), NULL, NULL, 9);
    struct signature mixed[2] = {ocb, old};
    struct preference_wishes wishes = no_wishes;
    assert_int_equal(choose(&wishes, &old, 1).protection, PROTECT_SEIPD_1);
    assert_int_equal(choose(&wishes, &ocb, 1).protection, PROTECT_PACKET_20);
    assert_int_equal(choose(&wishes, &new, 1).protection, PROTECT_SEIPD_2);
    assert_int_equal(choose(&wishes, mixed, 2).protection, PROTECT_SEIPD_1);
    assert_int_equal(choose(&wishes, NULL, 0).protection, PROTECT_SEIPD_1);
    wishes.force_ocb = true;
    assert_int_equal(choose(&wishes, mixed, 2).protection, PROTECT_PACKET_20);
    wishes = no_wishes;
    wishes.dialect = DIALECT_RFC4880;
    assert_int_equal(choose(&wishes, &ocb, 1).protection, PROTECT_SEIPD_1);
    wishes = no_wishes;
    wishes.cipher = CIPHER_3DES;
    assert_int_equal(choose(&wishes, &ocb, 1).protection, PROTECT_SEIPD_1);
}

/* What the digest depends on: a key's algorithm and the size of its curve or, for DSA, of its q. */
static const struct curve p256 = {.bits = 256}, p384 = {.bits = 384}, p521 = {.bits = 521}, ed25519 = {.bits = 255};

static struct key key_of(unsigned algo, const struct curve *curve)
{
    return (struct key){.version = 4, .algo = (uint8_t)algo, .curve = curve};
}

#define STOCK LIST(DIGEST_SHA512, DIGEST_SHA384, DIGEST_SHA256, DIGEST_SHA224, DIGEST_SHA1)

static unsigned digest(const struct preference_wishes *wishes, const struct key *key, const struct signature *self)
{
    uint8_t chosen = 0;
    preference_digests(wishes, &key, 1, &self, self ? 1 : 0, &chosen);
    return chosen;
}

/* Where nobody decides it is one of these, by speed. */
static void assert_by_speed(unsigned algo)
{
    assert_true(algo == DIGEST_SHA256 || algo == DIGEST_SHA512);
}

static void digest_of_one_signer(void **state)
{
    (void)state;
    const struct key rsa = key_of(PUBKEY_RSA, NULL), ed = key_of(PUBKEY_EDDSA, &ed25519),
                     small = key_of(PUBKEY_ECDSA, &p256), middle = key_of(PUBKEY_ECDSA, &p384),
                     large = key_of(PUBKEY_ECDSA, &p521), new448 = key_of(PUBKEY_ED448, NULL);
    struct preference_wishes wishes = no_wishes;
    const struct signature stock = self_of(NULL, STOCK, NULL, 1),
                           first384 = self_of(NULL, LIST(DIGEST_SHA384, DIGEST_SHA256), NULL, 1),
                           first224 = self_of(NULL, LIST(DIGEST_SHA224, DIGEST_SHA512), NULL, 1),
                           weak = self_of(NULL, LIST(DIGEST_SHA1, DIGEST_MD5), NULL, 1);
    assert_by_speed(digest(&wishes, &rsa, NULL));
    assert_by_speed(digest(&wishes, &ed, NULL));
    assert_int_equal(digest(&wishes, &small, NULL), DIGEST_SHA256);
    assert_int_equal(digest(&wishes, &middle, NULL), DIGEST_SHA384);
    assert_int_equal(digest(&wishes, &large, NULL), DIGEST_SHA512);
    assert_int_equal(digest(&wishes, &new448, NULL), DIGEST_SHA512);
    /* A list that somebody made counts; GnuPG's own says nothing; weak ones are not taken. */
    assert_int_equal(digest(&wishes, &rsa, &first384), DIGEST_SHA384);
    assert_int_equal(digest(&wishes, &rsa, &first224), DIGEST_SHA224);
    assert_int_equal(digest(&wishes, &ed, &first224), DIGEST_SHA512);
    assert_by_speed(digest(&wishes, &rsa, &stock));
    assert_by_speed(digest(&wishes, &rsa, &weak));
    assert_int_equal(digest(&wishes, &small, &first384), DIGEST_SHA256);
    assert_int_equal(digest(&wishes, &large, &first384), DIGEST_SHA512);
    /* The personal list: for ECDSA the size of the key stands above it. */
    wishes.digests = list_of("SHA384 SHA512", 'H');
    assert_int_equal(digest(&wishes, &rsa, NULL), DIGEST_SHA384);
    assert_int_equal(digest(&wishes, &rsa, &stock), DIGEST_SHA384);
    assert_int_equal(digest(&wishes, &small, NULL), DIGEST_SHA256);
    wishes.digest = DIGEST_SHA224;
    assert_int_equal(digest(&wishes, &small, &stock), DIGEST_SHA224);
}

static void digests_of_several_signers(void **state)
{
    (void)state;
    const struct key rsa = key_of(PUBKEY_RSA, NULL), small = key_of(PUBKEY_ECDSA, &p256),
                     large = key_of(PUBKEY_ECDSA, &p384);
    const struct signature stock = self_of(NULL, STOCK, NULL, 1);
    const struct signature *self = &stock;
    uint8_t chosen[2];
    /* One digest for all where that can be, as gpg 2.2.40 chooses: the order of the signers matters. */
    preference_digests(&no_wishes, (const struct key *[]){&large, &rsa}, 2, &self, 1, chosen);
    assert_int_equal(chosen[0], DIGEST_SHA384);
    assert_int_equal(chosen[1], DIGEST_SHA384);
    preference_digests(&no_wishes, (const struct key *[]){&small, &large}, 2, &self, 1, chosen);
    assert_int_equal(chosen[0], DIGEST_SHA256);
    assert_int_equal(chosen[1], DIGEST_SHA384);
    preference_digests(&no_wishes, (const struct key *[]){&large, &small}, 2, &self, 1, chosen);
    assert_int_equal(chosen[0], DIGEST_SHA384);
    assert_int_equal(chosen[1], DIGEST_SHA384);
    preference_digests(&no_wishes, (const struct key *[]){&large, &small}, 2, NULL, 0, chosen);
    assert_int_equal(chosen[0], DIGEST_SHA384);
    assert_int_equal(chosen[1], DIGEST_SHA256);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_are_parsed),           cmocka_unit_test(least_sum_of_places_wins),
        cmocka_unit_test(old_ciphers_only_by_name),   cmocka_unit_test(who_has_no_list_sets_compression_anew),
        cmocka_unit_test(form_from_features),         cmocka_unit_test(digest_of_one_signer),
        cmocka_unit_test(digests_of_several_signers),
    };
    if (crypt_init(NULL))
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
