/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "session_key.h"

#include "aead.h"
#include "framing.h"
#include "hkdf.h"

#include <gcrypt.h>
#include <stdlib.h>
#include <string.h>

#define X25519_SIZE  32
#define X448_SIZE    56
#define KEY_SIZE_MAX 32 /* octets of any cipher's key */
#define CHECKSUM     2
/* Type octet of packet 3 in the new format, version, cipher, AEAD: associated data of SKESK v5 and v6, and v6's HKDF
 * information. */
#define SKESK_AD 4
/* Version and four more octets, S2K specifier, nonce, encrypted session key, tag. */
#define SKESK_BODY_MAX (5 + 1 + S2K_MAX + AEAD_IV_MAX + 1 + KEY_SIZE_MAX + AEAD_TAG_SIZE)

void session_key_clear(struct session_key *session_key)
{
    secret_free(session_key->key);
    *session_key = (struct session_key){0};
}

gpg_error_t session_key_new(enum cipher_algo cipher, struct session_key *ret)
{
    const struct cipher_info *info = algo_cipher(cipher);
    if (!info)
        return gpg_error(GPG_ERR_CIPHER_ALGO);
    struct secret *key = secret_new(info->key_size);
    if (!key)
        return gpg_error(GPG_ERR_ENOMEM);
    gcry_randomize(key->bytes, key->n, GCRY_STRONG_RANDOM);
    *ret = (struct session_key){.cipher = (uint8_t)cipher, .key = key};
    return 0;
}

static gpg_error_t part_add(struct parts *parts, const uint8_t *bytes, size_t n)
{
    struct part *part = &parts->part[parts->n];
    part->bytes = malloc(n + 1);
    if (!part->bytes)
        return gpg_error_from_syserror();
    if (n)
        memcpy(part->bytes, bytes, n);
    part->n = n;
    parts->n++;
    return 0;
}

static gpg_error_t parse_mpis(struct cursor *cursor, unsigned count, struct parts *parts)
{
    gpg_error_t err = 0;
    for (unsigned i = 0; !err && i < count; i++) {
        size_t n;
        const uint8_t *mpi = cursor_mpi(cursor, &n);
        if (mpi)
            err = part_add(parts, mpi, n);
    }
    return err;
}

/* The wrapped session key of ECDH, X25519 and X448: a length octet and as many octets. */
static gpg_error_t parse_wrapped(struct cursor *cursor, struct esk *esk)
{
    size_t n = cursor_u8(cursor);
    bool native = esk->algo != PUBKEY_ECDH;
    if (native && esk->version == 3) {
        esk->cleartext_cipher = cursor_u8(cursor);
        cursor->flawed |= !n;
        n -= n ? 1 : 0;
    }
    const uint8_t *wrapped = cursor_bytes(cursor, n);
    return wrapped ? part_add(&esk->parts, wrapped, n) : 0;
}

static gpg_error_t parse_pkesk_fields(struct cursor *cursor, struct esk *esk)
{
    gpg_error_t err;
    switch (esk->algo) {
    case PUBKEY_RSA:
    case PUBKEY_RSA_ENCRYPT:
        return parse_mpis(cursor, 1, &esk->parts);
    case PUBKEY_ELGAMAL:
        return parse_mpis(cursor, 2, &esk->parts);
    case PUBKEY_ECDH:
        err = parse_mpis(cursor, 1, &esk->parts);
        return err ? err : parse_wrapped(cursor, esk);
    case PUBKEY_X25519:
    case PUBKEY_X448: {
        size_t n = esk->algo == PUBKEY_X25519 ? X25519_SIZE : X448_SIZE;
        const uint8_t *point = cursor_bytes(cursor, n);
        err = point ? part_add(&esk->parts, point, n) : 0;
        return err ? err : parse_wrapped(cursor, esk);
    }
    default:
        cursor->left = 0; /* its shape is not known, and it still names its key */
        return 0;
    }
}

static gpg_error_t parse_pkesk(struct failure *failure, struct cursor *cursor, struct esk *esk)
{
    if (esk->version == 3) {
        const uint8_t *keyid = cursor_bytes(cursor, sizeof esk->keyid);
        if (keyid)
            memcpy(esk->keyid, keyid, sizeof esk->keyid);
    } else if (esk->version == 6) {
        struct cursor name = cursor_part(cursor, cursor_u8(cursor));
        if (name.left) {
            unsigned key_version = cursor_u8(&name);
            size_t n = name.left;
            const uint8_t *fpr = cursor_bytes(&name, n);
            if (!fpr || n != (key_version == 4 ? 20 : 32))
                cursor->flawed = true;
            else {
                memcpy(esk->fpr, fpr, n);
                esk->fpr_n = (uint8_t)n;
            }
        }
    } else {
        return fail(failure, gpg_error(GPG_ERR_UNKNOWN_VERSION),
                    "version %u of a session key encrypted for a key is not supported", esk->version);
    }
    esk->algo = cursor_u8(cursor);
    return parse_pkesk_fields(cursor, esk);
}

/* The nonce, and then what is encrypted with its tag. */
static void parse_skesk_aead(struct cursor *cursor, const struct aead_info *aead, struct esk *esk)
{
    const uint8_t *iv = cursor_bytes(cursor, aead->nonce_size);
    if (iv)
        memcpy(esk->iv, iv, aead->nonce_size);
    if (cursor->left < AEAD_TAG_SIZE || cursor->left > KEY_SIZE_MAX + AEAD_TAG_SIZE)
        cursor->flawed = true;
}

static gpg_error_t parse_skesk(struct failure *failure, struct cursor *cursor, struct esk *esk)
{
    if (esk->version < 4 || esk->version > 6)
        return fail(failure, gpg_error(GPG_ERR_UNKNOWN_VERSION),
                    "version %u of a session key encrypted with a passphrase is not supported", esk->version);
    size_t fields_n = 0, s2k_n = 0;
    if (esk->version == 6)
        fields_n = cursor_u8(cursor); /* cipher, AEAD, length of the specifier, specifier, nonce */
    esk->cipher = cursor_u8(cursor);
    if (esk->version > 4)
        esk->aead = cursor_u8(cursor);
    if (esk->version == 6)
        s2k_n = cursor_u8(cursor);
    if (cursor->flawed)
        return 0;
    if (!algo_cipher(esk->cipher))
        return fail(failure, gpg_error(GPG_ERR_NOT_SUPPORTED),
                    "a session key is encrypted with cipher algorithm %u, which is not supported", esk->cipher);
    const struct aead_info *aead = algo_aead(esk->aead);
    if (esk->version > 4 && !aead)
        return fail(failure, gpg_error(GPG_ERR_NOT_SUPPORTED),
                    "a session key is encrypted with AEAD algorithm %u, which is not supported", esk->aead);
    size_t before_s2k = cursor->left;
    gpg_error_t err = s2k_parse(failure, cursor, &esk->s2k);
    if (!err && esk->s2k.mode == S2K_GNU)
        err = fail(failure, gpg_error(GPG_ERR_INV_PACKET), "a session key has the key derivation of a card");
    if (err)
        return err;
    if (esk->version == 6 && (before_s2k - cursor->left != s2k_n || fields_n != 3 + s2k_n + aead->nonce_size))
        cursor->flawed = true;
    if (aead)
        parse_skesk_aead(cursor, aead, esk);
    else if (cursor->left > 1 + KEY_SIZE_MAX)
        cursor->flawed = true;
    esk->encrypted_n = cursor->left;
    const uint8_t *encrypted = cursor_bytes(cursor, cursor->left);
    if (!encrypted || !esk->encrypted_n)
        return 0;
    esk->encrypted = malloc(esk->encrypted_n);
    if (!esk->encrypted)
        return gpg_error_from_syserror();
    memcpy(esk->encrypted, encrypted, esk->encrypted_n);
    return 0;
}

gpg_error_t esk_parse(struct failure *failure, unsigned packet_type, const uint8_t *body, size_t n, struct esk **ret)
{
    struct esk *esk = calloc(1, sizeof *esk);
    if (!esk)
        return gpg_error_from_syserror();
    struct cursor cursor = cursor_over(body, n);
    esk->symmetric = packet_type == PACKET_SKESK;
    esk->version = cursor_u8(&cursor);
    gpg_error_t err = 0;
    if (!cursor.flawed)
        err = esk->symmetric ? parse_skesk(failure, &cursor, esk) : parse_pkesk(failure, &cursor, esk);
    if (!err && !cursor_done(&cursor))
        err = fail(failure, gpg_error(GPG_ERR_INV_PACKET), "an encrypted session key packet is malformed");
    if (err)
        esk_free(esk);
    else
        *ret = esk;
    return err;
}

void esk_free(struct esk *esk)
{
    if (!esk)
        return;
    parts_clear(&esk->parts);
    free(esk->encrypted);
    free(esk);
}

bool esk_hidden(const struct esk *esk)
{
    static const uint8_t zeros[sizeof esk->keyid];
    if (esk->symmetric)
        return false;
    return esk->version == 6 ? !esk->fpr_n : !memcmp(esk->keyid, zeros, sizeof zeros);
}

static bool same_algo(unsigned a, unsigned b)
{
    bool rsa_a = a == PUBKEY_RSA || a == PUBKEY_RSA_ENCRYPT;
    bool rsa_b = b == PUBKEY_RSA || b == PUBKEY_RSA_ENCRYPT;
    return a == b || (rsa_a && rsa_b);
}

bool esk_for_key(const struct esk *esk, const struct key *key)
{
    if (esk->symmetric || !same_algo(esk->algo, key->algo))
        return false;
    if (esk_hidden(esk))
        return true;
    if (esk->version == 6)
        return esk->fpr_n == key->fpr_n && !memcmp(esk->fpr, key->fpr, key->fpr_n);
    return !memcmp(esk->keyid, key->keyid, sizeof key->keyid);
}

static uint16_t checksum(const uint8_t *bytes, size_t n)
{
    uint16_t sum = 0;
    for (size_t i = 0; i < n; i++)
        sum = (uint16_t)(sum + bytes[i]);
    return sum;
}

/* Takes a frame apart: [algorithm octet] key [checksum]. NATIVE (X25519, X448): the key alone. */
static gpg_error_t frame_open(const struct esk *esk, bool native, const struct secret *frame, struct session_key *ret)
{
    size_t before = !native && esk->version == 3 ? 1 : 0;
    size_t after = native ? 0 : CHECKSUM;
    if (frame->n <= before + after)
        return gpg_error(GPG_ERR_DECRYPT_FAILED);
    unsigned cipher = before ? frame->bytes[0] : esk->cleartext_cipher;
    size_t key_n = frame->n - before - after;
    const uint8_t *key = frame->bytes + before;
    bool sound = true;
    if (after) {
        uint8_t sum[CHECKSUM];
        put_be16(sum, checksum(key, key_n));
        sound = bytes_equal_secretly(sum, key + key_n, CHECKSUM);
    }
    const struct cipher_info *info = algo_cipher(cipher);
    if (esk->version == 3)
        sound &= info && info->key_size == key_n;
    else
        sound &= key_n <= KEY_SIZE_MAX;
    if (!sound)
        return gpg_error(GPG_ERR_DECRYPT_FAILED);
    struct secret *copy = secret_from(key, key_n);
    if (!copy)
        return gpg_error(GPG_ERR_ENOMEM);
    *ret = (struct session_key){.cipher = esk->version == 3 ? (uint8_t)cipher : CIPHER_NONE, .key = copy};
    return 0;
}

static bool is_native(unsigned algo)
{
    return algo == PUBKEY_X25519 || algo == PUBKEY_X448;
}

gpg_error_t pkesk_open(struct failure *failure, const struct esk *esk, struct secret_key *secret_key,
                       struct session_key *ret)
{
    if (!esk->parts.n) {
        const char *name = algo_pubkey_name(esk->algo);
        return fail(failure, gpg_error(GPG_ERR_NOT_SUPPORTED), "public-key algorithm %u (%s) is not supported",
                    esk->algo, name ? name : "unknown");
    }
    struct secret *frame = NULL;
    gpg_error_t err = pubkey_decrypt(failure, secret_key, &esk->parts, &frame);
    if (!err)
        err = frame_open(esk, is_native(esk->algo), frame, ret);
    secret_free(frame);
    return err;
}

/* CFB with an IV of zeros, in place. */
static gpg_error_t cfb(const struct cipher_info *info, const struct secret *key, bool encrypt, void *text, size_t n)
{
    gcry_cipher_hd_t cipher;
    gpg_error_t err = gcry_cipher_open(&cipher, info->gcry, GCRY_CIPHER_MODE_CFB, GCRY_CIPHER_SECURE);
    if (err)
        return err;
    err = gcry_cipher_setkey(cipher, key->bytes, key->n);
    if (!err)
        err = gcry_cipher_setiv(cipher, NULL, 0);
    if (!err)
        err = encrypt ? gcry_cipher_encrypt(cipher, text, n, NULL, 0) : gcry_cipher_decrypt(cipher, text, n, NULL, 0);
    gcry_cipher_close(cipher);
    return err;
}

/* Version 4: DERIVED opens an algorithm octet and the session key, or is the session key itself. */
static gpg_error_t open_v4(const struct esk *esk, const struct secret *derived, struct session_key *ret)
{
    if (!esk->encrypted) {
        struct secret *key = secret_from(derived->bytes, derived->n);
        if (!key)
            return gpg_error(GPG_ERR_ENOMEM);
        *ret = (struct session_key){.cipher = esk->cipher, .key = key};
        return 0;
    }
    struct secret *text = secret_from(esk->encrypted, esk->encrypted_n);
    if (!text)
        return gpg_error(GPG_ERR_ENOMEM);
    gpg_error_t err = cfb(algo_cipher(esk->cipher), derived, false, text->bytes, text->n);
    const struct cipher_info *info = algo_cipher(text->bytes[0]);
    if (!err && (!info || info->key_size != text->n - 1))
        err = gpg_error(GPG_ERR_BAD_PASSPHRASE);
    if (!err) {
        struct secret *key = secret_from(text->bytes + 1, text->n - 1);
        if (key)
            *ret = (struct session_key){.cipher = text->bytes[0], .key = key};
        else
            err = gpg_error(GPG_ERR_ENOMEM);
    }
    secret_free(text);
    return err;
}

static void skesk_ad(const struct esk *esk, uint8_t ad[SKESK_AD])
{
    ad[0] = 0xC0 | PACKET_SKESK;
    ad[1] = esk->version;
    ad[2] = esk->cipher;
    ad[3] = esk->aead;
}

/* The key that wraps the session key: DERIVED itself, in version 6 what HKDF makes of it. */
static gpg_error_t wrapping_key(const struct esk *esk, const struct secret *derived, struct secret **ret)
{
    uint8_t ad[SKESK_AD];
    skesk_ad(esk, ad);
    if (esk->version == 6)
        return hkdf(DIGEST_SHA256, derived, NULL, 0, ad, sizeof ad, derived->n, ret);
    *ret = secret_from(derived->bytes, derived->n);
    return *ret ? 0 : gpg_error(GPG_ERR_ENOMEM);
}

static gpg_error_t open_aead(const struct esk *esk, const struct secret *derived, struct session_key *ret)
{
    uint8_t ad[SKESK_AD];
    skesk_ad(esk, ad);
    struct secret *wrapping = NULL;
    size_t n = esk->encrypted_n - AEAD_TAG_SIZE;
    struct secret *key = secret_from(esk->encrypted, n);
    gpg_error_t err = key ? wrapping_key(esk, derived, &wrapping) : gpg_error(GPG_ERR_ENOMEM);
    if (!err) {
        err = aead_open(esk->cipher, esk->aead, wrapping, esk->iv, ad, sizeof ad, key->bytes, n, esk->encrypted + n);
        if (gpg_err_code(err) == GPG_ERR_CHECKSUM)
            err = gpg_error(GPG_ERR_BAD_PASSPHRASE);
    }
    secret_free(wrapping);
    if (err)
        secret_free(key);
    else
        *ret = (struct session_key){.cipher = CIPHER_NONE, .key = key};
    return err;
}

gpg_error_t skesk_open(struct failure *failure, const struct esk *esk, const struct secret *passphrase,
                       const struct s2k_limits *limits, struct session_key *ret)
{
    struct secret *derived;
    gpg_error_t err = s2k_derive(failure, &esk->s2k, passphrase, algo_cipher(esk->cipher)->key_size, limits, &derived);
    if (err)
        return err;
    err = esk->version == 4 ? open_v4(esk, derived, ret) : open_aead(esk, derived, ret);
    secret_free(derived);
    return err;
}

/* What the public-key operation encrypts; see frame_open. */
static gpg_error_t frame_make(unsigned version, unsigned algo, const struct session_key *session_key,
                              struct secret **ret)
{
    const struct secret *key = session_key->key;
    if (is_native(algo)) {
        *ret = secret_from(key->bytes, key->n);
        return *ret ? 0 : gpg_error(GPG_ERR_ENOMEM);
    }
    size_t before = version == 3 ? 1 : 0;
    struct secret *frame = secret_new(before + key->n + CHECKSUM);
    if (!frame)
        return gpg_error(GPG_ERR_ENOMEM);
    if (before)
        frame->bytes[0] = session_key->cipher;
    memcpy(frame->bytes + before, key->bytes, key->n);
    put_be16(frame->bytes + before + key->n, checksum(key->bytes, key->n));
    *ret = frame;
    return 0;
}

static uint8_t *put_mpi(uint8_t *to, const struct part *part)
{
    const uint8_t *bytes = part->bytes;
    size_t n = part->n;
    while (n && !*bytes) {
        bytes++;
        n--;
    }
    unsigned bits = (unsigned)(8 * n);
    for (unsigned mask = 0x80; n && !(bytes[0] & mask); mask >>= 1)
        bits--;
    put_be16(to, (uint16_t)bits);
    memcpy(to + 2, bytes, n);
    return to + 2 + n;
}

static uint8_t *put_wrapped(uint8_t *to, const struct part *part, unsigned cleartext_cipher)
{
    *to++ = (uint8_t)(part->n + (cleartext_cipher ? 1 : 0));
    if (cleartext_cipher)
        *to++ = (uint8_t)cleartext_cipher;
    memcpy(to, part->bytes, part->n);
    return to + part->n;
}

static uint8_t *put_pkesk_name(uint8_t *to, unsigned version, const struct key *key, bool hidden)
{
    *to++ = (uint8_t)version;
    if (version == 3) {
        memcpy(to, key->keyid, sizeof key->keyid);
        if (hidden)
            memset(to, 0, sizeof key->keyid);
        return to + sizeof key->keyid;
    }
    if (hidden) {
        *to++ = 0;
        return to;
    }
    *to++ = (uint8_t)(1 + key->fpr_n);
    *to++ = key->version;
    memcpy(to, key->fpr, key->fpr_n);
    return to + key->fpr_n;
}

gpg_error_t pkesk_write(struct failure *failure, unsigned version, const struct key *key, bool hidden,
                        const struct session_key *session_key, struct sink *sink)
{
    struct secret *frame = NULL;
    struct parts parts = {0};
    uint8_t *body = NULL;
    gpg_error_t err = frame_make(version, key->algo, session_key, &frame);
    if (!err)
        err = pubkey_encrypt(failure, key, frame, &parts);
    if (err)
        goto out;
    size_t size = 64 + KEY_FPR_MAX;
    for (unsigned i = 0; i < parts.n; i++)
        size += parts.part[i].n;
    body = malloc(size);
    if (!body) {
        err = gpg_error_from_syserror();
        goto out;
    }
    uint8_t *to = put_pkesk_name(body, version, key, hidden);
    *to++ = key->algo;
    if (is_native(key->algo)) {
        memcpy(to, parts.part[0].bytes, parts.part[0].n);
        to = put_wrapped(to + parts.part[0].n, &parts.part[1], version == 3 ? session_key->cipher : CIPHER_NONE);
    } else {
        to = put_mpi(to, &parts.part[0]);
        if (key->algo == PUBKEY_ECDH)
            to = put_wrapped(to, &parts.part[1], CIPHER_NONE);
        else if (parts.n > 1)
            to = put_mpi(to, &parts.part[1]);
    }
    err = packet_write(sink, PACKET_PKESK, body, (size_t)(to - body));
out:
    free(body);
    parts_clear(&parts);
    secret_free(frame);
    return err;
}

/* Everything up to and without the nonce and the encrypted session key. */
static uint8_t *put_skesk_start(uint8_t *to, const struct esk *esk)
{
    uint8_t s2k[S2K_MAX];
    size_t n = s2k_put(&esk->s2k, s2k);
    *to++ = esk->version;
    if (esk->version == 6)
        *to++ = (uint8_t)(3 + n + algo_aead(esk->aead)->nonce_size);
    *to++ = esk->cipher;
    if (esk->version > 4)
        *to++ = esk->aead;
    if (esk->version == 6)
        *to++ = (uint8_t)n;
    memcpy(to, s2k, n);
    return to + n;
}

/* Encrypts the session key at TO, where it stands already, and puts the tag behind it. */
static gpg_error_t wrap_aead(struct esk *esk, const struct secret *derived, uint8_t *to, size_t n)
{
    uint8_t ad[SKESK_AD];
    skesk_ad(esk, ad);
    struct secret *wrapping;
    gpg_error_t err = wrapping_key(esk, derived, &wrapping);
    if (err)
        return err;
    err = aead_seal(esk->cipher, esk->aead, wrapping, esk->iv, ad, sizeof ad, to, n, to + n);
    secret_free(wrapping);
    return err;
}

static gpg_error_t check_skesk(struct failure *failure, const struct esk *esk)
{
    if (esk->version < 4 || esk->version > 6 || !algo_cipher(esk->cipher) ||
        (esk->version > 4 && (!algo_aead(esk->aead) || algo_cipher(esk->cipher)->block_size != 16)))
        return fail(failure, gpg_error(GPG_ERR_NOT_SUPPORTED),
                    "a session key cannot be encrypted with version %u, cipher algorithm %u, AEAD algorithm %u",
                    esk->version, esk->cipher, esk->aead);
    return 0;
}

gpg_error_t skesk_write(struct failure *failure, unsigned version, const struct secret *passphrase,
                        const struct s2k *s2k, enum cipher_algo cipher, enum aead_algo aead,
                        const struct session_key *session_key, struct sink *sink)
{
    struct esk esk = {.symmetric = true, .version = (uint8_t)version, .cipher = (uint8_t)cipher, .s2k = *s2k};
    if (version > 4)
        esk.aead = (uint8_t)aead;
    uint8_t body[SKESK_BODY_MAX];
    struct secret *derived = NULL;
    const struct secret *key = session_key->key;
    gpg_error_t err = check_skesk(failure, &esk);
    if (err)
        return err;
    if (key->n > KEY_SIZE_MAX)
        return gpg_error(GPG_ERR_INV_KEYLEN);
    /* A message of one's own is not subject to the limits on other people's. */
    const struct s2k_limits limits = {.argon2_memory = UINT64_MAX / S2K_ARGON2_WORK_FACTOR};
    err = s2k_derive(failure, s2k, passphrase, algo_cipher(cipher)->key_size, &limits, &derived);
    if (err)
        return err;
    uint8_t *to = put_skesk_start(body, &esk);
    if (version == 4) {
        *to = session_key->cipher;
        memcpy(to + 1, key->bytes, key->n);
        err = cfb(algo_cipher(cipher), derived, true, to, 1 + key->n);
        to += 1 + key->n;
    } else {
        size_t nonce_n = algo_aead(aead)->nonce_size;
        gcry_create_nonce(esk.iv, nonce_n);
        memcpy(to, esk.iv, nonce_n);
        to += nonce_n;
        memcpy(to, key->bytes, key->n);
        err = wrap_aead(&esk, derived, to, key->n);
        to += key->n + AEAD_TAG_SIZE;
    }
    if (err)
        bytes_wipe(body, sizeof body);
    else
        err = packet_write(sink, PACKET_SKESK, body, (size_t)(to - body));
    secret_free(derived);
    return err;
}

gpg_error_t skesk_write_direct(struct failure *failure, const struct secret *passphrase, const struct s2k *s2k,
                               enum cipher_algo cipher, struct sink *sink, struct session_key *ret)
{
    struct esk esk = {.symmetric = true, .version = 4, .cipher = (uint8_t)cipher, .s2k = *s2k};
    uint8_t body[SKESK_BODY_MAX];
    struct secret *derived;
    gpg_error_t err = check_skesk(failure, &esk);
    if (err)
        return err;
    const struct s2k_limits limits = {.argon2_memory = UINT64_MAX / S2K_ARGON2_WORK_FACTOR};
    err = s2k_derive(failure, s2k, passphrase, algo_cipher(cipher)->key_size, &limits, &derived);
    if (err)
        return err;
    err = packet_write(sink, PACKET_SKESK, body, (size_t)(put_skesk_start(body, &esk) - body));
    if (err) {
        secret_free(derived);
        return err;
    }
    *ret = (struct session_key){.cipher = (uint8_t)cipher, .key = derived};
    return 0;
}
