/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "preference.h"

#include <gcrypt.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* 1 MiB. Chunks of 64 KiB, 256 KiB, 1 MiB and 4 MiB were measured: 400 MB of random data took 0.5 s of CPU time with
 * each, and gpg, RNP and OpenPGP.js read them all. 1 MiB is few tags, and a reader that seeks loses little. */
#define CHUNK_OCTET_DEFAULT 14

/* Features octet, RFC 9580 5.2.3.32 and LibrePGP. */
#define FEATURE_OCB     0x02
#define FEATURE_SEIPD_2 0x08

static bool preference_add(struct preference_list *list, int algo)
{
    for (unsigned i = 0; i < list->n; i++)
        if (list->algo[i] == algo)
            return true;
    if (list->n == PREFERENCE_MAX)
        return false;
    list->algo[list->n++] = (uint8_t)algo;
    return true;
}

static int preference_algo(const char *word, char type)
{
    switch (type) {
    case 'S':
        return algo_cipher_by_name(word) ? (int)algo_cipher_by_name(word) : -1;
    case 'H':
        return algo_digest_by_name(word) ? (int)algo_digest_by_name(word) : -1;
    default:
        return algo_compress_by_name(word);
    }
}

gpg_error_t preference_parse(struct failure *failure, const char *text, char type, struct preference_list *ret)
{
    struct preference_list list = {.n = 0};
    char word[32];
    if (!strcmp(text, "none")) {
        *ret = list;
        return 0;
    }
    for (;;) {
        text += strspn(text, " \t,");
        const size_t n = strcspn(text, " \t,");
        if (n == 0)
            break;
        if (n >= sizeof word)
            return fail(failure, gpg_error(GPG_ERR_INV_VALUE), "'%.40s' is not the name of an algorithm", text);
        memcpy(word, text, n);
        word[n] = '\0';
        text += n;
        const int algo = preference_algo(word, type);
        if (algo < 0 || !preference_add(&list, algo))
            return fail(failure, gpg_error(GPG_ERR_INV_VALUE), "'%s' is not a %s that can be preferred", word,
                        type == 'S'   ? "cipher"
                        : type == 'H' ? "digest"
                                      : "compression");
    }
    *ret = list;
    return 0;
}

/* One kind of preference of a recipient. */
static const uint8_t *self_list(const struct signature *self, char type, size_t *ret_n)
{
    *ret_n = 0;
    if (!self)
        return NULL;
    switch (type) {
    case 'S':
        *ret_n = self->pref_cipher_n;
        return self->pref_cipher;
    case 'H':
        *ret_n = self->pref_digest_n;
        return self->pref_digest;
    default:
        *ret_n = self->pref_compress_n;
        return self->pref_compress;
    }
}

struct votes {
    unsigned score[256]; /* sum of places, 0: nobody named it */
    unsigned named[256]; /* how many recipients can read it */
};

/* What each recipient can read, with gpg's points for the places. gpg also counts 3DES and SHA-1 as named by everybody
 * (RFC 4880 13.2); we take neither, so where nothing else is left the callers have a word of their own. */
static void votes_count(struct votes *votes, char type, const struct signature *const *selves, size_t n)
{
    memset(votes, 0, sizeof *votes);
    for (size_t r = 0; r < n; r++) {
        size_t items = 0;
        const uint8_t *list = self_list(selves[r], type, &items);
        bool seen[256] = {false};
        unsigned place = 1;
        for (size_t i = 0; i < items; i++) {
            if (!seen[list[i]])
                votes->named[list[i]]++;
            seen[list[i]] = true;
            votes->score[list[i]] += place++;
        }
        if (type != 'Z')
            continue;
        if (items == 0) {
            /* RFC 4880 13.3.1. Whoever has no list sets the points anew in gpg, and ends the others' say so far. */
            seen[COMPRESS_ZIP] = true;
            votes->named[COMPRESS_ZIP]++;
            votes->score[COMPRESS_ZIP] = 1;
            votes->score[COMPRESS_NONE] = 2;
        }
        if (!seen[COMPRESS_NONE]) {
            votes->named[COMPRESS_NONE]++;
            votes->score[COMPRESS_NONE] += place;
        }
    }
}

/* Whether we would write it without having been told to by name. */
static bool worth_writing(char type, unsigned algo, unsigned digest_min)
{
    switch (type) {
    case 'S': {
        const struct cipher_info *cipher = algo_cipher(algo);
        return cipher && !cipher->legacy;
    }
    case 'H': {
        const struct digest_info *digest = algo_digest(algo);
        return digest && !digest->weak && digest->size >= digest_min;
    }
    default:
        return algo <= COMPRESS_BZIP2;
    }
}

/* The winner, or -1. */
static int votes_winner(const struct votes *votes, char type, size_t n, const struct preference_list *personal,
                        unsigned digest_min)
{
    for (unsigned i = 0; i < personal->n; i++) {
        const unsigned algo = personal->algo[i];
        if (votes->named[algo] == n && worth_writing(type, algo, digest_min))
            return (int)algo;
    }
    int winner = -1;
    unsigned best = UINT_MAX;
    for (unsigned algo = 0; algo < 256; algo++) {
        if (votes->score[algo] == 0 || votes->named[algo] != n || votes->score[algo] >= best)
            continue;
        if (!worth_writing(type, algo, digest_min))
            continue;
        best = votes->score[algo];
        winner = (int)algo;
    }
    return winner;
}

static bool all_have(const struct signature *const *selves, const struct key *const *keys, size_t n, uint8_t feature)
{
    for (size_t r = 0; r < n; r++) {
        /* A version 6 key that states no features can only belong to a reader of RFC 9580. */
        if (keys[r]->version == 6 && feature == FEATURE_SEIPD_2 && !(selves[r] && selves[r]->has_features))
            continue;
        if (!selves[r] || !(selves[r]->features & feature))
            return false;
    }
    return n > 0;
}

static enum protection choose_protection(const struct preference_wishes *wishes, const struct signature *const *selves,
                                         const struct key *const *keys, size_t n)
{
    switch (wishes->dialect) {
    case DIALECT_RFC4880:
        return PROTECT_SEIPD_1;
    case DIALECT_RFC9580:
        return PROTECT_SEIPD_2;
    case DIALECT_AUTO:
        if (!wishes->force_ocb && all_have(selves, keys, n, FEATURE_SEIPD_2))
            return PROTECT_SEIPD_2;
        break;
    case DIALECT_LIBREPGP:
        break;
    }
    return wishes->force_ocb || all_have(selves, keys, n, FEATURE_OCB) ? PROTECT_PACKET_20 : PROTECT_SEIPD_1;
}

/* Whether every recipient that states suites (RFC 9580 5.2.3.15) has CIPHER with AEAD; AES-128 with OCB is implied. */
static bool suite_for_all(const struct signature *const *selves, size_t n, uint8_t cipher, uint8_t aead)
{
    if (cipher == CIPHER_AES128 && aead == AEAD_OCB)
        return true;
    for (size_t r = 0; r < n; r++) {
        if (!selves[r] || selves[r]->pref_suites_n == 0)
            continue;
        bool has = false;
        for (size_t i = 0; i + 1 < selves[r]->pref_suites_n; i += 2)
            has = has || (selves[r]->pref_suites[i] == cipher && selves[r]->pref_suites[i + 1] == aead);
        if (!has)
            return false;
    }
    return true;
}

/* Cipher and mode for SEIPD 2. OCB is by far the fastest of the three, so it goes first. */
static void choose_suite(const struct preference_wishes *wishes, const struct signature *const *selves, size_t n,
                         struct preference_choice *choice)
{
    static const uint8_t modes[] = {AEAD_OCB, AEAD_GCM, AEAD_EAX};
    static const uint8_t ciphers[] = {CIPHER_AES256, CIPHER_AES192, CIPHER_AES128};
    choice->aead = AEAD_OCB;
    if (wishes->cipher) {
        choice->cipher = wishes->cipher;
        for (size_t m = 0; m < ARRAY_SIZE(modes); m++)
            if (suite_for_all(selves, n, wishes->cipher, modes[m])) {
                choice->aead = modes[m];
                return;
            }
        return; /* asked for by name: gpg obeys, so do we */
    }
    for (size_t m = 0; m < ARRAY_SIZE(modes); m++) {
        for (unsigned i = 0; i < wishes->ciphers.n; i++) {
            const struct cipher_info *cipher = algo_cipher(wishes->ciphers.algo[i]);
            if (cipher && cipher->block_size == 16 && suite_for_all(selves, n, (uint8_t)cipher->id, modes[m])) {
                choice->cipher = (uint8_t)cipher->id;
                choice->aead = modes[m];
                return;
            }
        }
        for (size_t i = 0; i < ARRAY_SIZE(ciphers); i++)
            if (suite_for_all(selves, n, ciphers[i], modes[m])) {
                choice->cipher = ciphers[i];
                choice->aead = modes[m];
                return;
            }
    }
}

/* For passphrases alone: the first of the personal list that is worth it. */
static uint8_t choose_cipher_alone(const struct preference_wishes *wishes)
{
    for (unsigned i = 0; i < wishes->ciphers.n; i++)
        if (worth_writing('S', wishes->ciphers.algo[i], 0))
            return wishes->ciphers.algo[i];
    return wishes->s2k_cipher ? wishes->s2k_cipher : (uint8_t)CIPHER_AES256;
}

static void choose_cipher(const struct preference_wishes *wishes, const struct signature *const *selves, size_t n,
                          struct preference_choice *choice)
{
    struct votes votes;
    if (wishes->cipher) {
        choice->cipher = wishes->cipher;
    } else if (n == 0) {
        choice->cipher = choose_cipher_alone(wishes);
    } else {
        votes_count(&votes, 'S', selves, n);
        const int winner = votes_winner(&votes, 'S', n, &wishes->ciphers, 0);
        choice->cipher = winner < 0 ? (uint8_t)CIPHER_AES128 : (uint8_t)winner;
    }
}

gpg_error_t preference_choose(struct failure *failure, const struct preference_wishes *wishes,
                              const struct signature *const *selves, const struct key *const *keys, size_t n,
                              struct preference_choice *ret)
{
    struct preference_choice choice = {.protection = choose_protection(wishes, selves, keys, n)};
    if (choice.protection == PROTECT_SEIPD_2)
        choose_suite(wishes, selves, n, &choice);
    else
        choose_cipher(wishes, selves, n, &choice);

    const struct cipher_info *cipher = algo_cipher(choice.cipher);
    if (!cipher)
        return fail(failure, gpg_error(GPG_ERR_CIPHER_ALGO), "cipher algorithm %u is not supported", choice.cipher);
    choice.legacy_cipher = cipher->legacy;
    /* Authenticated modes need blocks of 128 bits; gpg falls back in the same way. */
    if (cipher->block_size != 16 && choice.protection != PROTECT_SEIPD_1) {
        if (wishes->dialect == DIALECT_RFC9580 || wishes->force_ocb)
            return fail(failure, gpg_error(GPG_ERR_CIPHER_ALGO),
                        "%s has blocks of 64 bits and cannot be used with authenticated encryption", cipher->name);
        choice.protection = PROTECT_SEIPD_1;
    }
    if (choice.protection == PROTECT_PACKET_20)
        choice.aead = AEAD_OCB;
    choice.chunk_octet = wishes->chunk_octet >= 0 ? (uint8_t)wishes->chunk_octet : CHUNK_OCTET_DEFAULT;

    if (wishes->compress >= 0) {
        choice.compress = (uint8_t)wishes->compress;
    } else if (n == 0) {
        choice.compress = preference_compress_alone(wishes);
    } else {
        struct votes votes;
        votes_count(&votes, 'Z', selves, n);
        const int winner = votes_winner(&votes, 'Z', n, &wishes->compressions, 0);
        choice.compress = winner < 0 ? (uint8_t)COMPRESS_NONE : (uint8_t)winner;
    }
    *ret = choice;
    return 0;
}

uint8_t preference_compress_alone(const struct preference_wishes *wishes)
{
    if (wishes->compress >= 0)
        return (uint8_t)wishes->compress;
    return wishes->compressions.n ? wishes->compressions.algo[0] : (uint8_t)COMPRESS_ZIP;
}

/* Whether SHA-256 runs on SHA instructions: then it is twice as fast as SHA-512, else the reverse (measured). */
static bool sha256_is_fast(void)
{
    char *features = gcry_get_config(0, "hwflist");
    const bool fast = features && (strstr(features, "intel-shaext") || strstr(features, "arm-sha2"));
    gcry_free(features);
    return fast;
}

/* Octets of a digest for signatures by KEY: of a DSA or ECDSA key those of its q, else the least that is sound. */
static unsigned digest_minimum(const struct key *key)
{
    switch (key->algo) {
    case PUBKEY_DSA:
        /* q is the second part */
        return key->parts.n > 1 ? (unsigned)key->parts.part[1].n : 0;
    case PUBKEY_ECDSA:
        /* No digest has 521 bits: SHA-512 is what P-521 goes with (RFC 9580 5.2.3.1). */
        return key->curve ? (key->curve->bits > 512 ? 64U : (key->curve->bits + 7U) / 8U) : 0;
    case PUBKEY_ED448:
        return 64;
    case PUBKEY_EDDSA:
        return key->curve && key->curve->bits > 300 ? 64 : 32;
    case PUBKEY_ED25519:
        return 32;
    default:
        return 0;
    }
}

static enum digest_algo digest_of_size(unsigned size)
{
    return size <= 28 ? DIGEST_SHA224 : size <= 32 ? DIGEST_SHA256 : size <= 48 ? DIGEST_SHA384 : DIGEST_SHA512;
}

static unsigned digest_size(unsigned algo)
{
    const struct digest_info *info = algo_digest(algo);
    return info ? (unsigned)info->size : 0;
}

/* What the signers' keys ask of a digest that the recipients choose: MINIMUM octets, or EXACTly those for ECDSA. Where
 * keys of several sizes want one each gpg does not ask the recipients: false. */
static bool digest_bounds(const struct key *const *keys, size_t n, unsigned *ret_minimum, bool *ret_exact)
{
    *ret_minimum = 0;
    *ret_exact = false;
    for (size_t i = 0; i < n; i++) {
        const unsigned size = digest_minimum(keys[i]);
        if ((keys[i]->algo != PUBKEY_DSA && keys[i]->algo != PUBKEY_ECDSA) || size <= *ret_minimum)
            continue;
        if (keys[i]->algo == PUBKEY_ECDSA && *ret_exact)
            return false;
        *ret_exact = *ret_exact || keys[i]->algo == PUBKEY_ECDSA;
        *ret_minimum = size;
    }
    for (size_t i = 0; i < n && !*ret_exact; i++)
        if (digest_minimum(keys[i]) > *ret_minimum)
            *ret_minimum = digest_minimum(keys[i]);
    return true;
}

/* Whether the list is the one that gpg puts into every new key: then nobody has said what he prefers. */
static bool is_stock_list(const struct signature *self)
{
    static const uint8_t stock[] = {DIGEST_SHA512, DIGEST_SHA384, DIGEST_SHA256, DIGEST_SHA224, DIGEST_SHA1};
    size_t n = 0;
    const uint8_t *list = self_list(self, 'H', &n);
    return n == sizeof stock && !memcmp(list, stock, sizeof stock);
}

/* What the recipients agree on, or 0. SHA-512 as GnuPG's own lists have it costs more than all the rest of a message
 * where SHA-256 is fast: that order yields, one that a person made does not. */
static enum digest_algo digest_of_recipients(const struct preference_wishes *wishes,
                                             const struct signature *const *selves, size_t n, unsigned minimum,
                                             bool exact)
{
    struct votes votes;
    bool stock = wishes->digests.n == 0 && minimum <= 32;
    if (n == 0)
        return 0;
    votes_count(&votes, 'H', selves, n);
    for (size_t i = 0; i < n; i++)
        stock = stock && is_stock_list(selves[i]);
    for (unsigned algo = 0; exact && algo < 256; algo++)
        if (digest_size(algo) != minimum)
            votes.named[algo] = 0;
    if (stock && votes.named[DIGEST_SHA256] == n && sha256_is_fast())
        return DIGEST_SHA256;
    const int winner = votes_winner(&votes, 'H', n, &wishes->digests, minimum);
    return winner > 0 ? (enum digest_algo)winner : 0;
}

/* The digest for one key where neither an option nor the recipients decide. */
static enum digest_algo digest_of_key(const struct preference_wishes *wishes, const struct key *key)
{
    const unsigned minimum = digest_minimum(key);
    if (key->algo == PUBKEY_ECDSA)
        return digest_of_size(minimum);
    for (unsigned i = 0; i < wishes->digests.n; i++)
        if (worth_writing('H', wishes->digests.algo[i], minimum))
            return (enum digest_algo)wishes->digests.algo[i];
    if (key->algo == PUBKEY_DSA)
        return digest_of_size(minimum);
    if (minimum > 32)
        return DIGEST_SHA512;
    return sha256_is_fast() ? DIGEST_SHA256 : DIGEST_SHA512;
}

void preference_digests(const struct preference_wishes *wishes, const struct key *const *keys, size_t key_n,
                        const struct signature *const *selves, size_t n, uint8_t *ret)
{
    unsigned minimum = 0;
    bool exact = false;
    enum digest_algo agreed = 0;
    if (digest_bounds(keys, key_n, &minimum, &exact))
        agreed = digest_of_recipients(wishes, selves, n, minimum, exact);
    for (size_t i = 0; i < key_n; i++) {
        if (wishes->digest)
            ret[i] = wishes->digest;
        else if (agreed && digest_size(agreed) >= digest_minimum(keys[i]))
            ret[i] = (uint8_t)agreed;
        else
            ret[i] = (uint8_t)digest_of_key(wishes, keys[i]);
    }
}
