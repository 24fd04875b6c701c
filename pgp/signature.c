/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "signature.h"

#include "cursor.h"
#include "framing.h"

#include <stdlib.h>
#include <string.h>

/* RFC 9580 table 5, and LibrePGP's 34 and 38 */
enum subpacket {
    SUB_CREATED = 2,
    SUB_EXPIRES = 3,
    SUB_EXPORTABLE = 4,
    SUB_TRUST = 5,
    SUB_REGEX = 6,
    SUB_REVOCABLE = 7,
    SUB_KEY_EXPIRES = 9,
    SUB_PREF_CIPHER = 11,
    SUB_REVOCATION_KEY = 12,
    SUB_ISSUER = 16,
    SUB_NOTATION = 20,
    SUB_PREF_DIGEST = 21,
    SUB_PREF_COMPRESS = 22,
    SUB_KEYSERVER_FLAGS = 23,
    SUB_KEYSERVER = 24,
    SUB_PRIMARY_UID = 25,
    SUB_POLICY = 26,
    SUB_FLAGS = 27,
    SUB_SIGNER_UID = 28,
    SUB_REASON = 29,
    SUB_FEATURES = 30,
    SUB_TARGET = 31,
    SUB_EMBEDDED = 32,
    SUB_ISSUER_FPR = 33,
    SUB_PREF_AEAD = 34,
    SUB_RECIPIENT_FPR = 35,
    SUB_ATTESTED = 37,
    SUB_KEY_BLOCK = 38,
    SUB_PREF_SUITES = 39,
};
#define SUB_CRITICAL 0x80

/* Where a subpacket stands. */
enum area { AREA_HASHED, AREA_UNHASHED };

static gpg_error_t parse(const uint8_t *body, size_t n, bool embedded, struct signature **ret);

static uint32_t take_time(struct cursor *value)
{
    return cursor_u32(value);
}

static bool take_flag(struct cursor *value)
{
    return cursor_u8(value) != 0;
}

/* A list of numbers; what goes beyond our capacity would never be chosen. */
static void take_list(struct cursor *value, uint8_t *to, size_t capacity, uint8_t *ret_n)
{
    size_t n = value->left;
    const uint8_t *bytes = cursor_bytes(value, n);
    *ret_n = (uint8_t)(n < capacity ? n : capacity);
    memcpy(to, bytes, *ret_n);
}

/* The first octet of a string of flags. */
static uint8_t take_flags(struct cursor *value)
{
    uint8_t first = value->left ? cursor_u8(value) : 0;
    (void)cursor_bytes(value, value->left);
    return first;
}

static void take_issuer_fpr(struct signature *signature, struct cursor *value)
{
    uint8_t version = cursor_u8(value);
    size_t n = version == 4 ? 20 : 32;
    const uint8_t *fpr = cursor_bytes(value, n);
    if (!fpr)
        return;
    memcpy(signature->issuer_fpr, fpr, n);
    signature->issuer_fpr_n = (uint8_t)n;
}

static void take_issuer(struct signature *signature, struct cursor *value)
{
    const uint8_t *keyid = cursor_bytes(value, sizeof signature->issuer_keyid);
    if (!keyid)
        return;
    memcpy(signature->issuer_keyid, keyid, sizeof signature->issuer_keyid);
    signature->has_issuer_keyid = true;
}

static bool is_text(const uint8_t *bytes, size_t n, const char *text)
{
    return n == strlen(text) && memcmp(bytes, text, n) == 0;
}

/* The notations that gpg knows: critical ones of other names are not understood. */
static void take_notation(struct signature *signature, struct cursor *value, bool critical)
{
    (void)cursor_u32(value);
    uint16_t name_n = cursor_u16(value);
    uint16_t value_n = cursor_u16(value);
    const uint8_t *name = cursor_bytes(value, name_n);
    (void)cursor_bytes(value, value_n);
    if (critical && name && !is_text(name, name_n, "preferred-email-encoding@pgp.com") &&
        !is_text(name, name_n, "pka-address@gnupg.org"))
        signature->critical_unknown = true;
}

/* One that cannot be read is as if it were absent: it may come from the unhashed area, where anybody can put one. */
static gpg_error_t take_embedded(struct signature *signature, struct cursor *value, bool inside)
{
    struct signature *embedded = NULL;
    size_t n = value->left;
    const uint8_t *body = cursor_bytes(value, n);
    gpg_error_t err = inside ? 0 : parse(body, n, true, &embedded);
    if (gpg_err_code(err) == GPG_ERR_ENOMEM)
        return err;
    if (embedded) {
        signature_free(signature->embedded);
        signature->embedded = embedded;
    }
    return 0;
}

static gpg_error_t take_preference(struct signature *signature, unsigned type, struct cursor *value)
{
    switch (type) {
    case SUB_PREF_CIPHER:
        take_list(value, signature->pref_cipher, sizeof signature->pref_cipher, &signature->pref_cipher_n);
        break;
    case SUB_PREF_DIGEST:
        take_list(value, signature->pref_digest, sizeof signature->pref_digest, &signature->pref_digest_n);
        break;
    case SUB_PREF_COMPRESS:
        take_list(value, signature->pref_compress, sizeof signature->pref_compress, &signature->pref_compress_n);
        break;
    case SUB_PREF_AEAD:
        take_list(value, signature->pref_aead, sizeof signature->pref_aead, &signature->pref_aead_n);
        break;
    default:
        if (value->left % 2)
            return gpg_error(GPG_ERR_INV_PACKET);
        take_list(value, signature->pref_suites, sizeof signature->pref_suites, &signature->pref_suites_n);
        break;
    }
    return 0;
}

/* A subpacket of the hashed area. */
static gpg_error_t take_hashed(struct signature *signature, unsigned type, bool critical, struct cursor *value,
                               bool inside)
{
    switch (type) {
    case SUB_CREATED:
        signature->created = take_time(value);
        signature->has_created = true;
        break;
    case SUB_EXPIRES:
        signature->expires = take_time(value);
        break;
    case SUB_EXPORTABLE:
        signature->exportable = take_flag(value);
        break;
    case SUB_KEY_EXPIRES:
        signature->key_expires = take_time(value);
        signature->has_key_expires = true;
        break;
    case SUB_PREF_CIPHER:
    case SUB_PREF_DIGEST:
    case SUB_PREF_COMPRESS:
    case SUB_PREF_AEAD:
    case SUB_PREF_SUITES:
        return take_preference(signature, type, value);
    case SUB_ISSUER:
        take_issuer(signature, value);
        break;
    case SUB_ISSUER_FPR:
        take_issuer_fpr(signature, value);
        break;
    case SUB_NOTATION:
        take_notation(signature, value, critical);
        break;
    case SUB_PRIMARY_UID:
        signature->primary_uid = take_flag(value);
        break;
    case SUB_FLAGS:
        signature->flags = take_flags(value);
        signature->has_flags = true;
        break;
    case SUB_REASON:
        signature->reason = cursor_u8(value);
        signature->has_reason = true;
        (void)cursor_bytes(value, value->left);
        break;
    case SUB_FEATURES:
        signature->features = take_flags(value);
        signature->has_features = true;
        break;
    case SUB_EMBEDDED:
        return take_embedded(signature, value, inside);
    case SUB_TRUST:
    case SUB_REGEX:
    case SUB_REVOCABLE:
    case SUB_REVOCATION_KEY:
    case SUB_KEYSERVER_FLAGS:
    case SUB_KEYSERVER:
    case SUB_POLICY:
    case SUB_SIGNER_UID:
    case SUB_TARGET:
    case SUB_RECIPIENT_FPR:
    case SUB_ATTESTED:
    case SUB_KEY_BLOCK:
        (void)cursor_bytes(value, value->left); /* known, and without bearing on what we do */
        break;
    default:
        (void)cursor_bytes(value, value->left);
        signature->critical_unknown |= critical;
        break;
    }
    return 0;
}

static gpg_error_t take_unhashed(struct signature *signature, unsigned type, struct cursor *value, bool inside)
{
    if (type == SUB_ISSUER && !signature->has_issuer_keyid)
        take_issuer(signature, value);
    else if (type == SUB_ISSUER_FPR && !signature->issuer_fpr_n)
        take_issuer_fpr(signature, value);
    else if (type == SUB_EMBEDDED && !signature->embedded)
        return take_embedded(signature, value, inside);
    else
        (void)cursor_bytes(value, value->left);
    return 0;
}

/* RFC 9580 5.2.3.7 */
static struct cursor next_subpacket(struct cursor *area)
{
    uint32_t n = cursor_u8(area);
    if (n == 255)
        n = cursor_u32(area);
    else if (n >= 192)
        n = ((n - 192) << 8) + cursor_u8(area) + 192;
    if (n == 0)
        area->flawed = true;
    return cursor_part(area, n);
}

static gpg_error_t parse_area(struct signature *signature, enum area which, struct cursor area, bool inside)
{
    while (area.left && !area.flawed) {
        struct cursor value = next_subpacket(&area);
        uint8_t octet = cursor_u8(&value);
        unsigned type = octet & ~(unsigned)SUB_CRITICAL;
        if (value.flawed)
            return gpg_error(GPG_ERR_INV_PACKET);
        gpg_error_t err = which == AREA_HASHED
                              ? take_hashed(signature, type, (octet & SUB_CRITICAL) != 0, &value, inside)
                              : take_unhashed(signature, type, &value, inside);
        if (err)
            return err;
        if (!cursor_done(&value))
            return gpg_error(GPG_ERR_INV_PACKET);
    }
    return area.flawed ? gpg_error(GPG_ERR_INV_PACKET) : 0;
}

/* The value itself. Unknown algorithms: what is left over is not looked at. */
static gpg_error_t parse_value(struct signature *signature, struct cursor *cursor)
{
    unsigned count = 0;
    size_t native = 0;
    switch (signature->algo) {
    case PUBKEY_RSA:
    case PUBKEY_RSA_SIGN:
        count = 1;
        break;
    case PUBKEY_DSA:
    case PUBKEY_ECDSA:
    case PUBKEY_EDDSA:
        count = 2;
        break;
    case PUBKEY_ED25519:
        native = 64;
        break;
    case PUBKEY_ED448:
        native = 114;
        break;
    default:
        return cursor->flawed ? gpg_error(GPG_ERR_INV_PACKET) : 0;
    }
    gpg_error_t err = 0;
    for (unsigned i = 0; i < count && !err; i++)
        err = parts_add_mpi(&signature->parts, cursor);
    const uint8_t *bytes = native ? cursor_bytes(cursor, native) : NULL;
    if (bytes)
        err = parts_add(&signature->parts, bytes, native, 0);
    return err ? err : cursor_done(cursor) ? 0 : gpg_error(GPG_ERR_INV_PACKET);
}

static gpg_error_t keep_hashed(struct signature *signature, const uint8_t *bytes, size_t n)
{
    signature->hashed = malloc(n);
    if (!signature->hashed)
        return gpg_error_from_syserror();
    memcpy(signature->hashed, bytes, n);
    signature->hashed_n = n;
    return 0;
}

static void take_left16(struct signature *signature, struct cursor *cursor)
{
    signature->left16[0] = cursor_u8(cursor);
    signature->left16[1] = cursor_u8(cursor);
}

/* Behind the version octet. */
static gpg_error_t parse_v3(struct signature *signature, struct cursor *cursor)
{
    if (cursor_u8(cursor) != 5)
        return gpg_error(GPG_ERR_INV_PACKET);
    const uint8_t *hashed = cursor_bytes(cursor, 5);
    if (!hashed)
        return gpg_error(GPG_ERR_INV_PACKET);
    signature->type = hashed[0];
    signature->created = get_be32(hashed + 1);
    signature->has_created = true;
    take_issuer(signature, cursor);
    signature->algo = cursor_u8(cursor);
    signature->digest = cursor_u8(cursor);
    take_left16(signature, cursor);
    return keep_hashed(signature, hashed, 5);
}

static gpg_error_t parse_salt(struct signature *signature, struct cursor *cursor)
{
    const struct digest_info *digest = algo_digest(signature->digest);
    uint8_t n = cursor_u8(cursor);
    const uint8_t *salt = cursor_bytes(cursor, n);
    if (!salt || n > sizeof signature->salt || (digest && n != digest->salt_size))
        return gpg_error(GPG_ERR_INV_PACKET);
    memcpy(signature->salt, salt, n);
    signature->salt_n = n;
    return 0;
}

/* Version 6 has wider counts, and a salt. */
static gpg_error_t parse_v4(struct signature *signature, const uint8_t *body, struct cursor *cursor, bool inside)
{
    bool wide = signature->version == 6;
    signature->type = cursor_u8(cursor);
    signature->algo = cursor_u8(cursor);
    signature->digest = cursor_u8(cursor);
    struct cursor hashed = cursor_part(cursor, wide ? cursor_u32(cursor) : cursor_u16(cursor));
    size_t hashed_n = (size_t)(cursor->at - body);
    struct cursor unhashed = cursor_part(cursor, wide ? cursor_u32(cursor) : cursor_u16(cursor));
    take_left16(signature, cursor);
    if (cursor->flawed)
        return gpg_error(GPG_ERR_INV_PACKET);
    gpg_error_t err = keep_hashed(signature, body, hashed_n);
    if (!err && wide)
        err = parse_salt(signature, cursor);
    if (!err)
        err = parse_area(signature, AREA_HASHED, hashed, inside);
    if (!err)
        err = parse_area(signature, AREA_UNHASHED, unhashed, inside);
    if (!err && signature->issuer_fpr_n && !signature->has_issuer_keyid) {
        memcpy(signature->issuer_keyid, signature->issuer_fpr + (signature->issuer_fpr_n == 20 ? 12 : 0),
               sizeof signature->issuer_keyid);
        signature->has_issuer_keyid = true;
    }
    return err;
}

/* EMBEDDED: it stands in another one, and holds no more of them. */
static gpg_error_t parse(const uint8_t *body, size_t n, bool embedded, struct signature **ret)
{
    struct cursor cursor = cursor_over(body, n);
    struct signature *signature = calloc(1, sizeof *signature);
    if (!signature)
        return gpg_error_from_syserror();
    signature->exportable = true;
    signature->version = cursor_u8(&cursor);
    gpg_error_t err;
    if (cursor.flawed || n > SIGNATURE_BODY_MAX)
        err = gpg_error(GPG_ERR_INV_PACKET);
    else if (signature->version == 3)
        err = parse_v3(signature, &cursor);
    else if (signature->version >= 4 && signature->version <= 6)
        err = parse_v4(signature, body, &cursor, embedded);
    else
        err = gpg_error(GPG_ERR_UNKNOWN_VERSION);
    if (!err)
        err = parse_value(signature, &cursor);
    if (err) {
        signature_free(signature);
        return err;
    }
    *ret = signature;
    return 0;
}

gpg_error_t signature_parse(struct failure *failure, const uint8_t *body, size_t n, struct signature **ret)
{
    gpg_error_t err = parse(body, n, false, ret);
    if (gpg_err_code(err) == GPG_ERR_INV_PACKET)
        return fail(failure, err, "a signature packet is malformed");
    return err;
}

void signature_free(struct signature *signature)
{
    if (!signature)
        return;
    signature_free(signature->embedded);
    parts_clear(&signature->parts);
    free(signature->hashed);
    free(signature);
}

gpg_error_t one_pass_parse(struct failure *failure, const uint8_t *body, size_t n, struct one_pass *ret)
{
    struct cursor cursor = cursor_over(body, n);
    struct one_pass one_pass = {.version = cursor_u8(&cursor)};
    if (!cursor.flawed && one_pass.version != 3 && one_pass.version != 6)
        return gpg_error(GPG_ERR_UNKNOWN_VERSION);
    one_pass.type = cursor_u8(&cursor);
    one_pass.digest = cursor_u8(&cursor);
    one_pass.algo = cursor_u8(&cursor);
    const uint8_t *id;
    if (one_pass.version == 6) {
        const struct digest_info *digest = algo_digest(one_pass.digest);
        one_pass.salt_n = cursor_u8(&cursor);
        const uint8_t *salt = cursor_bytes(&cursor, one_pass.salt_n);
        if (!salt || one_pass.salt_n > sizeof one_pass.salt || (digest && one_pass.salt_n != digest->salt_size))
            cursor.flawed = true;
        else
            memcpy(one_pass.salt, salt, one_pass.salt_n);
        one_pass.fpr_n = KEY_FPR_MAX;
        id = cursor_bytes(&cursor, one_pass.fpr_n);
        if (id)
            memcpy(one_pass.fpr, id, one_pass.fpr_n);
    } else {
        id = cursor_bytes(&cursor, sizeof one_pass.keyid);
    }
    one_pass.last = cursor_u8(&cursor) != 0;
    if (!id || !cursor_done(&cursor))
        return fail(failure, gpg_error(GPG_ERR_INV_PACKET), "a one-pass signature packet is malformed");
    memcpy(one_pass.keyid, id, sizeof one_pass.keyid);
    *ret = one_pass;
    return 0;
}

bool signature_by(const struct signature *signature, const struct key *key)
{
    if (signature->issuer_fpr_n)
        return signature->issuer_fpr_n == key->fpr_n && memcmp(signature->issuer_fpr, key->fpr, key->fpr_n) == 0;
    return signature->has_issuer_keyid &&
           memcmp(signature->issuer_keyid, key->keyid, sizeof signature->issuer_keyid) == 0;
}

/* What is hashed of a signature itself: HASHED and a trailer (RFC 9580 5.2.4; LibrePGP 5.2.4 for version 5). */
static void hash_trailer(gcry_md_hd_t md, uint8_t version, uint8_t type, const uint8_t *hashed, size_t hashed_n,
                         const uint8_t *literal, size_t literal_n)
{
    static const uint8_t no_literal[6];
    uint8_t trailer[10] = {version, 0xFF};
    size_t trailer_n = 6;
    gcry_md_write(md, hashed, hashed_n);
    if (version == 3)
        return;
    if (version == 5) {
        if (type == SIG_BINARY || type == SIG_TEXT)
            gcry_md_write(md, literal ? literal : no_literal, literal ? literal_n : sizeof no_literal);
        put_be64(trailer + 2, hashed_n);
        trailer_n = 10;
    } else {
        put_be32(trailer + 2, (uint32_t)hashed_n);
    }
    gcry_md_write(md, trailer, trailer_n);
}

/* RFC 9580 10.3.2.2: version 6 keys and signatures go only together. */
static bool go_together(const struct signature *signature, const struct key *key)
{
    bool both_rsa = (signature->algo == PUBKEY_RSA || signature->algo == PUBKEY_RSA_SIGN) &&
                    (key->algo == PUBKEY_RSA || key->algo == PUBKEY_RSA_SIGN);
    return (signature->version == 6) == (key->version == 6) && (signature->algo == key->algo || both_rsa);
}

gpg_error_t signature_check(const struct signature *signature, const struct key *key, gcry_md_hd_t takes_md,
                            const uint8_t *literal, size_t literal_n)
{
    const struct digest_info *digest = algo_digest(signature->digest);
    gpg_error_t err;
    if (!digest) {
        err = gpg_error(GPG_ERR_NOT_SUPPORTED);
        goto out;
    }
    err = key_usable(NULL, key);
    if (err)
        goto out;
    if (!signature->has_created || !go_together(signature, key)) {
        err = gpg_error(GPG_ERR_BAD_SIGNATURE);
        goto out;
    }
    hash_trailer(takes_md, signature->version, signature->type, signature->hashed, signature->hashed_n, literal,
                 literal_n);
    const uint8_t *value = gcry_md_read(takes_md, digest->gcry);
    if (!value)
        err = gpg_error(GPG_ERR_DIGEST_ALGO);
    else if (memcmp(value, signature->left16, sizeof signature->left16) != 0)
        err = gpg_error(GPG_ERR_BAD_SIGNATURE);
    else
        err = pubkey_verify(key, digest->id, value, digest->size, &signature->parts);
out:
    gcry_md_close(takes_md);
    return err;
}

/* A digest that begins as SIGNATURE's does: with its salt. */
static gpg_error_t hash_begin(const struct signature *signature, gcry_md_hd_t *ret)
{
    const struct digest_info *digest = algo_digest(signature->digest);
    if (!digest)
        return gpg_error(GPG_ERR_NOT_SUPPORTED);
    gpg_error_t err = gcry_md_open(ret, digest->gcry, 0);
    if (!err)
        gcry_md_write(*ret, signature->salt, signature->salt_n);
    return err;
}

gpg_error_t signature_check_key(const struct signature *signature, const struct key *signer, const struct key *primary,
                                const struct key *target)
{
    gcry_md_hd_t md;
    bool about_subkey = signature->type == SIG_SUBKEY_BINDING || signature->type == SIG_PRIMARY_BINDING ||
                        signature->type == SIG_SUBKEY_REVOCATION;
    bool about_key = signature->type == SIG_DIRECT_KEY || signature->type == SIG_KEY_REVOCATION;
    if (target ? !about_subkey : !about_key)
        return gpg_error(GPG_ERR_BAD_SIGNATURE);
    gpg_error_t err = hash_begin(signature, &md);
    if (err)
        return err;
    key_hash(primary, md);
    if (target)
        key_hash(target, md);
    return signature_check(signature, signer, md, NULL, 0);
}

gpg_error_t signature_check_uid(const struct signature *signature, const struct key *signer, const struct key *primary,
                                unsigned uid_packet_type, const uint8_t *uid, size_t uid_n)
{
    gcry_md_hd_t md;
    bool about_uid = (signature->type >= SIG_CERT_GENERIC && signature->type <= SIG_CERT_POSITIVE) ||
                     signature->type == SIG_CERT_REVOCATION;
    if (!about_uid)
        return gpg_error(GPG_ERR_BAD_SIGNATURE);
    gpg_error_t err = hash_begin(signature, &md);
    if (err)
        return err;
    key_hash(primary, md);
    if (signature->version != 3) {
        uint8_t header[5] = {uid_packet_type == PACKET_USER_ATTRIBUTE ? 0xD1 : 0xB4};
        put_be32(header + 1, (uint32_t)uid_n);
        gcry_md_write(md, header, sizeof header);
    }
    gcry_md_write(md, uid, uid_n);
    return signature_check(signature, signer, md, NULL, 0);
}

void signature_params_salt(const struct key *key, struct signature_params *params)
{
    const struct digest_info *digest = algo_digest(params->digest);
    if (key->version == 6 && digest)
        gcry_randomize(params->salt, digest->salt_size, GCRY_STRONG_RANDOM);
}

/* A packet body under construction. The first error sticks. */
struct body {
    struct sink *sink;
    gpg_error_t error;
};

static void body_put(struct body *body, const void *bytes, size_t n)
{
    if (!body->error)
        body->error = sink_write(body->sink, bytes, n);
}

static void body_put_u8(struct body *body, unsigned value)
{
    uint8_t octet = (uint8_t)value;
    body_put(body, &octet, 1);
}

static void body_put_u16(struct body *body, size_t value)
{
    uint8_t octets[2];
    put_be16(octets, (uint16_t)value);
    body_put(body, octets, sizeof octets);
}

static void body_put_u32(struct body *body, size_t value)
{
    uint8_t octets[4];
    put_be32(octets, (uint32_t)value);
    body_put(body, octets, sizeof octets);
}

static gpg_error_t body_open(struct body *body)
{
    *body = (struct body){.sink = memory_sink_new(SIGNATURE_BODY_MAX)};
    return body->sink ? 0 : gpg_error_from_syserror();
}

static gpg_error_t salt_size(const struct key *key, unsigned digest, uint8_t *ret)
{
    const struct digest_info *info = algo_digest(digest);
    if (!info || (key->version == 6 && info->salt_size == 0))
        return gpg_error(GPG_ERR_DIGEST_ALGO);
    *ret = key->version == 6 ? info->salt_size : 0;
    return 0;
}

gpg_error_t one_pass_write(const struct key *key, const struct signature_params *params, bool last, struct sink *sink)
{
    struct body body;
    uint8_t salt_n;
    gpg_error_t err = salt_size(key, params->digest, &salt_n);
    if (!err)
        err = body_open(&body);
    if (err)
        return err;
    body_put_u8(&body, key->version == 6 ? 6 : 3);
    body_put_u8(&body, params->type);
    body_put_u8(&body, params->digest);
    body_put_u8(&body, key->algo);
    if (key->version == 6) {
        body_put_u8(&body, salt_n);
        body_put(&body, params->salt, salt_n);
        body_put(&body, key->fpr, key->fpr_n);
    } else {
        body_put(&body, key->keyid, sizeof key->keyid);
    }
    body_put_u8(&body, last);
    size_t n;
    const uint8_t *bytes = memory_sink_bytes(body.sink, &n);
    err = body.error ? body.error : packet_write(sink, PACKET_ONE_PASS, bytes, n);
    sink_free(body.sink);
    return err;
}

/* The header of a subpacket whose value has N octets. */
static void put_subpacket(struct body *body, unsigned type, size_t n)
{
    size_t total = n + 1;
    if (total < 192) {
        body_put_u8(body, (unsigned)total);
    } else if (total < 8384) {
        body_put_u8(body, (unsigned)((total - 192) >> 8) + 192);
        body_put_u8(body, (unsigned)(total - 192) & 0xFF);
    } else {
        body_put_u8(body, 255);
        body_put_u32(body, total);
    }
    body_put_u8(body, type);
}

static void put_notation(struct body *body, const struct notation *notation)
{
    static const uint8_t human_readable[4] = {0x80};
    size_t name_n = strlen(notation->name), value_n = strlen(notation->value);
    if (name_n > UINT16_MAX || value_n > UINT16_MAX) {
        body->error = body->error ? body->error : gpg_error(GPG_ERR_TOO_LARGE);
        return;
    }
    put_subpacket(body, SUB_NOTATION | (notation->critical ? SUB_CRITICAL : 0), 8 + name_n + value_n);
    body_put(body, human_readable, sizeof human_readable);
    body_put_u16(body, name_n);
    body_put_u16(body, value_n);
    body_put(body, notation->name, name_n);
    body_put(body, notation->value, value_n);
}

static void put_hashed_area(struct body *body, const struct key *key, const struct signature_params *params)
{
    put_subpacket(body, SUB_ISSUER_FPR, 1u + key->fpr_n);
    body_put_u8(body, key->version);
    body_put(body, key->fpr, key->fpr_n);
    /* RFC 9580 5.2.3.11 wants it critical; readers of version 4 may be older than that. */
    put_subpacket(body, SUB_CREATED | (key->version == 6 ? SUB_CRITICAL : 0), 4);
    body_put_u32(body, params->created);
    for (size_t i = 0; i < params->notation_n; i++)
        put_notation(body, &params->notations[i]);
}

/* The part of the packet that is hashed. */
static gpg_error_t put_hashed(struct body *body, const struct key *key, const struct signature_params *params)
{
    struct body area;
    size_t n;
    gpg_error_t err = body_open(&area);
    if (err)
        return err;
    put_hashed_area(&area, key, params);
    const uint8_t *bytes = memory_sink_bytes(area.sink, &n);
    if (key->version != 6 && n > UINT16_MAX)
        area.error = gpg_error(GPG_ERR_TOO_LARGE);
    body_put_u8(body, key->version);
    body_put_u8(body, params->type);
    body_put_u8(body, key->algo);
    body_put_u8(body, params->digest);
    if (key->version == 6)
        body_put_u32(body, n);
    else
        body_put_u16(body, n);
    body_put(body, bytes, n);
    err = area.error ? area.error : body->error;
    sink_free(area.sink);
    return err;
}

static void put_unhashed(struct body *body, const struct key *key)
{
    if (key->version == 6) {
        body_put_u32(body, 0);
    } else if (key->version == 5) {
        body_put_u16(body, 0);
    } else {
        body_put_u16(body, 2 + sizeof key->keyid);
        put_subpacket(body, SUB_ISSUER, sizeof key->keyid);
        body_put(body, key->keyid, sizeof key->keyid);
    }
}

/* Octet strings with a leading zero (LibrePGP's Ed448) count all their bits. */
static void put_parts(struct body *body, const struct key *key, const struct parts *parts)
{
    bool native = key->algo == PUBKEY_ED25519 || key->algo == PUBKEY_ED448;
    for (unsigned i = 0; i < parts->n; i++) {
        const struct part *part = &parts->part[i];
        unsigned bits = part_bits(part);
        if (!native)
            body_put_u16(body, bits ? bits : part->n * 8);
        body_put(body, part->bytes, part->n);
    }
}

/* Hashes what BODY holds so far and the trailer, signs, and completes the packet. */
static gpg_error_t put_value(struct failure *failure, struct secret_key *secret_key,
                             const struct signature_params *params, gcry_md_hd_t md, uint8_t salt_n, struct body *body)
{
    const struct key *key = secret_key->key;
    const struct digest_info *digest = algo_digest(params->digest);
    struct parts parts = {0};
    size_t n;
    const uint8_t *hashed = memory_sink_bytes(body->sink, &n);
    hash_trailer(md, key->version, params->type, hashed, n, params->literal, params->literal_n);
    const uint8_t *value = gcry_md_read(md, digest->gcry);
    gpg_error_t err = value ? pubkey_sign(failure, secret_key, digest->id, value, digest->size, &parts)
                            : gpg_error(GPG_ERR_DIGEST_ALGO);
    if (err)
        return err;
    put_unhashed(body, key);
    body_put(body, value, 2);
    if (key->version == 6) {
        body_put_u8(body, salt_n);
        body_put(body, params->salt, salt_n);
    }
    put_parts(body, key, &parts);
    parts_clear(&parts);
    return body->error;
}

gpg_error_t signature_write(struct failure *failure, struct secret_key *secret_key,
                            const struct signature_params *params, gcry_md_hd_t takes_md, struct sink *sink)
{
    struct body body = {0};
    uint8_t salt_n;
    gpg_error_t err = salt_size(secret_key->key, params->digest, &salt_n);
    if (err) {
        fail(failure, err, "digest algorithm %u cannot be used for signatures of version %u", params->digest,
             secret_key->key->version);
        goto out;
    }
    err = body_open(&body);
    if (!err)
        err = put_hashed(&body, secret_key->key, params);
    if (gpg_err_code(err) == GPG_ERR_TOO_LARGE)
        fail(failure, err, "the notations are too long for a signature");
    if (!err)
        err = put_value(failure, secret_key, params, takes_md, salt_n, &body);
    if (!err) {
        size_t n;
        const uint8_t *bytes = memory_sink_bytes(body.sink, &n);
        err = packet_write(sink, PACKET_SIGNATURE, bytes, n);
    }
out:
    sink_free(body.sink);
    gcry_md_close(takes_md);
    return err;
}
