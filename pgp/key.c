/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "key.h"

#include "cursor.h"
#include "framing.h"

#include <stdlib.h>
#include <string.h>

/* Smallest modulus that is worth a check: shorter ones are broken by anyone. */
#define MODULUS_BITS_MIN 1024
/* What no real key goes beyond, so that a check of a signature takes milliseconds: an RSA exponent as long as its
 * modulus of 16384 bits took 2.5 s, and a certificate may ask for thousands. FIPS 186-4 4.2: 160 to 256 bits for q. */
#define RSA_EXPONENT_BITS_MAX 64
#define DSA_MODULUS_BITS_MAX  4096
#define DSA_ORDER_BITS_MIN    160
#define DSA_ORDER_BITS_MAX    512

static const struct curve curves[] = {
    {"NIST P-256", CURVE_WEIERSTRASS, 8, 32, 256, {0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x03, 0x01, 0x07}},
    {"NIST P-384", CURVE_WEIERSTRASS, 5, 48, 384, {0x2B, 0x81, 0x04, 0x00, 0x22}},
    {"NIST P-521", CURVE_WEIERSTRASS, 5, 66, 521, {0x2B, 0x81, 0x04, 0x00, 0x23}},
    {"brainpoolP256r1", CURVE_WEIERSTRASS, 9, 32, 256, {0x2B, 0x24, 0x03, 0x03, 0x02, 0x08, 0x01, 0x01, 0x07}},
    {"brainpoolP384r1", CURVE_WEIERSTRASS, 9, 48, 384, {0x2B, 0x24, 0x03, 0x03, 0x02, 0x08, 0x01, 0x01, 0x0B}},
    {"brainpoolP512r1", CURVE_WEIERSTRASS, 9, 64, 512, {0x2B, 0x24, 0x03, 0x03, 0x02, 0x08, 0x01, 0x01, 0x0D}},
    {"secp256k1", CURVE_WEIERSTRASS, 5, 32, 256, {0x2B, 0x81, 0x04, 0x00, 0x0A}},
    {"Ed25519", CURVE_EDWARDS, 9, 32, 255, {0x2B, 0x06, 0x01, 0x04, 0x01, 0xDA, 0x47, 0x0F, 0x01}},
    {"Ed25519", CURVE_EDWARDS, 3, 32, 255, {0x2B, 0x65, 0x70}},
    {"Ed448", CURVE_EDWARDS, 3, 57, 448, {0x2B, 0x65, 0x71}},
    {"Curve25519", CURVE_MONTGOMERY, 10, 32, 255, {0x2B, 0x06, 0x01, 0x04, 0x01, 0x97, 0x55, 0x01, 0x05, 0x01}},
    {"Curve25519", CURVE_MONTGOMERY, 3, 32, 255, {0x2B, 0x65, 0x6E}},
    {"X448", CURVE_MONTGOMERY, 3, 56, 448, {0x2B, 0x65, 0x6F}},
};

const struct curve *curve_by_oid(const uint8_t *oid, size_t n)
{
    for (size_t i = 0; i < ARRAY_SIZE(curves); i++)
        if (curves[i].oid_n == n && memcmp(curves[i].oid, oid, n) == 0)
            return &curves[i];
    return NULL;
}

static const struct curve *curve_by_name(const char *name)
{
    for (size_t i = 0; i < ARRAY_SIZE(curves); i++)
        if (strcmp(curves[i].name, name) == 0)
            return &curves[i];
    return NULL;
}

/* The curve that an algorithm fixes (RFC 9580 5.5.5.7 … 5.5.5.10); NULL where the packet names it or there is none. */
static const struct curve *curve_of_algo(unsigned algo)
{
    switch (algo) {
    case PUBKEY_X25519:
        return curve_by_name("Curve25519");
    case PUBKEY_X448:
        return curve_by_name("X448");
    case PUBKEY_ED25519:
        return curve_by_name("Ed25519");
    case PUBKEY_ED448:
        return curve_by_name("Ed448");
    default:
        return NULL;
    }
}

void parts_clear(struct parts *parts)
{
    for (unsigned i = 0; i < parts->n; i++)
        free(parts->part[i].bytes);
    *parts = (struct parts){0};
}

gpg_error_t parts_add(struct parts *parts, const void *bytes, size_t n, size_t left_pad)
{
    if (parts->n == KEY_PARTS_MAX)
        return gpg_error(GPG_ERR_TOO_MANY);
    uint8_t *copy = calloc(1, left_pad + n + 1);
    if (!copy)
        return gpg_error_from_syserror();
    if (n)
        memcpy(copy + left_pad, bytes, n);
    parts->part[parts->n++] = (struct part){copy, left_pad + n};
    return 0;
}

static void strip_zeros(const uint8_t **bytes, size_t *n)
{
    while (*n && **bytes == 0) {
        ++*bytes;
        --*n;
    }
}

gpg_error_t parts_add_mpi(struct parts *parts, struct cursor *cursor)
{
    size_t n = 0;
    const uint8_t *bytes = cursor_mpi(cursor, &n);
    if (cursor->flawed)
        return 0;
    strip_zeros(&bytes, &n);
    return parts_add(parts, bytes, n, 0);
}

unsigned part_bits(const struct part *part)
{
    if (!part->n || !part->bytes[0])
        return 0;
    unsigned bits = (unsigned)part->n * 8;
    for (unsigned mask = 0x80; !(part->bytes[0] & mask); mask >>= 1)
        bits--;
    return bits;
}

static gpg_error_t parse_mpis(struct key *key, struct cursor *cursor, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        gpg_error_t err = parts_add_mpi(&key->parts, cursor);
        if (err)
            return err;
        if (cursor->flawed || key->parts.part[i].n == 0)
            return gpg_error(GPG_ERR_INV_PACKET);
    }
    key->bits = part_bits(&key->parts.part[0]);
    return 0;
}

/* Points of 25519 come with 0x40 before them in version 4 keys; those of 448 are octet strings whose leading zeros an
 * MPI reader may have dropped. */
static gpg_error_t parse_point(struct key *key, struct cursor *cursor)
{
    size_t n = 0;
    const uint8_t *point = cursor_mpi(cursor, &n);
    if (cursor->flawed)
        return gpg_error(GPG_ERR_INV_PACKET);
    if (!key->curve)
        return 0;
    strip_zeros(&point, &n);
    size_t octets = key->curve->octets;
    if (key->curve->kind == CURVE_WEIERSTRASS)
        return n == 1 + 2 * octets && point[0] == 0x04 ? parts_add(&key->parts, point, n, 0)
                                                       : gpg_error(GPG_ERR_INV_PACKET);
    if (n == octets + 1 && point[0] == 0x40) {
        point++;
        n--;
    }
    return n && n <= octets ? parts_add(&key->parts, point, n, octets - n) : gpg_error(GPG_ERR_INV_PACKET);
}

static gpg_error_t parse_elliptic(struct key *key, struct cursor *cursor)
{
    uint8_t oid_n = cursor_u8(cursor);
    const uint8_t *oid = cursor_bytes(cursor, oid_n);
    if (cursor->flawed || oid_n == 0 || oid_n == 0xFF) /* RFC 9580 9.2: both reserved */
        return gpg_error(GPG_ERR_INV_PACKET);
    key->curve = curve_by_oid(oid, oid_n);
    key->bits = key->curve ? key->curve->bits : 0;
    gpg_error_t err = parse_point(key, cursor);
    if (err || key->algo != PUBKEY_ECDH)
        return err;
    struct cursor kdf = cursor_part(cursor, cursor_u8(cursor));
    if (cursor_u8(&kdf) != 1)
        return gpg_error(GPG_ERR_INV_PACKET);
    key->kdf_digest = cursor_u8(&kdf);
    key->kdf_cipher = cursor_u8(&kdf);
    return cursor_done(&kdf) ? 0 : gpg_error(GPG_ERR_INV_PACKET);
}

static gpg_error_t parse_native(struct key *key, struct cursor *cursor)
{
    key->curve = curve_of_algo(key->algo);
    key->bits = key->curve->bits;
    const uint8_t *point = cursor_bytes(cursor, key->curve->octets);
    return point ? parts_add(&key->parts, point, key->curve->octets, 0) : gpg_error(GPG_ERR_INV_PACKET);
}

/* The key material. *RET_KNOWN: its end is known from the algorithm. */
static gpg_error_t parse_material(struct key *key, struct cursor *cursor, bool *ret_known)
{
    *ret_known = true;
    switch (key->algo) {
    case PUBKEY_RSA:
    case PUBKEY_RSA_ENCRYPT:
    case PUBKEY_RSA_SIGN:
        return parse_mpis(key, cursor, 2);
    case PUBKEY_DSA:
        return parse_mpis(key, cursor, 4);
    case PUBKEY_ELGAMAL:
    case PUBKEY_ELGAMAL_SIGN:
        return parse_mpis(key, cursor, 3);
    case PUBKEY_ECDH:
    case PUBKEY_ECDSA:
    case PUBKEY_EDDSA:
        return parse_elliptic(key, cursor);
    case PUBKEY_X25519:
    case PUBKEY_X448:
    case PUBKEY_ED25519:
    case PUBKEY_ED448:
        return parse_native(key, cursor);
    default:
        *ret_known = false;
        return 0;
    }
}

static void hash_header(const struct key *key, uint8_t out[5], size_t *ret_n)
{
    if (key->version == 4) {
        out[0] = 0x99;
        put_be16(out + 1, (uint16_t)key->body_n);
        *ret_n = 3;
        return;
    }
    out[0] = key->version == 5 ? 0x9A : 0x9B;
    put_be32(out + 1, (uint32_t)key->body_n);
    *ret_n = 5;
}

void key_hash(const struct key *key, gcry_md_hd_t md)
{
    uint8_t header[5];
    size_t n;
    hash_header(key, header, &n);
    gcry_md_write(md, header, n);
    gcry_md_write(md, key->body, key->body_n);
}

/* RFC 9580 5.5.4; LibrePGP for version 5. */
static gpg_error_t make_fingerprint(struct key *key)
{
    int algo = key->version == 4 ? GCRY_MD_SHA1 : GCRY_MD_SHA256;
    gcry_md_hd_t md;
    gpg_error_t err = gcry_md_open(&md, algo, 0);
    if (err)
        return err;
    key_hash(key, md);
    key->fpr_n = key->version == 4 ? 20 : 32;
    memcpy(key->fpr, gcry_md_read(md, algo), key->fpr_n);
    gcry_md_close(md);
    memcpy(key->keyid, key->version == 4 ? key->fpr + 12 : key->fpr, sizeof key->keyid);
    return 0;
}

static gpg_error_t make_keygrip(struct key *key)
{
    gcry_sexp_t sexp = NULL;
    if (key_usable(NULL, key))
        return 0;
    gpg_error_t err = key_sexp(key, &sexp);
    if (!err)
        key->has_keygrip = gcry_pk_get_keygrip(sexp, key->keygrip) != NULL;
    gcry_sexp_release(sexp);
    return err;
}

/* Reads all up to the end of the public part into KEY. */
static gpg_error_t parse_body(struct failure *failure, struct key *key, bool secret, const uint8_t *body, size_t n,
                              size_t *ret_n)
{
    struct cursor cursor = cursor_over(body, n);
    key->version = cursor_u8(&cursor);
    if (!cursor.flawed && (key->version == 2 || key->version == 3))
        return fail(failure, gpg_error(GPG_ERR_NOT_SUPPORTED), "keys of version %u are not supported", key->version);
    if (!cursor.flawed && (key->version < 4 || key->version > 6))
        return fail(failure, gpg_error(GPG_ERR_UNKNOWN_VERSION), "a key has unknown version %u", key->version);
    key->created = cursor_u32(&cursor);
    key->algo = cursor_u8(&cursor);
    bool counted = key->version > 4;
    struct cursor material = cursor_part(&cursor, counted ? cursor_u32(&cursor) : cursor.left);
    bool known = false;
    gpg_error_t err = cursor.flawed ? gpg_error(GPG_ERR_INV_PACKET) : parse_material(key, &material, &known);
    if (!err && !known && !counted && secret)
        return fail(failure, gpg_error(GPG_ERR_NOT_SUPPORTED),
                    "secret keys of public-key algorithm %u are not supported", key->algo);
    if (!err && known && (counted || !secret) && !cursor_done(&material))
        err = gpg_error(GPG_ERR_INV_PACKET);
    if (!err && !secret && cursor.left)
        err = gpg_error(GPG_ERR_INV_PACKET);
    *ret_n = n - cursor.left - (known && !counted ? material.left : 0);
    if (!err && *ret_n > KEY_BODY_MAX)
        err = gpg_error(GPG_ERR_INV_PACKET);
    return gpg_err_code(err) == GPG_ERR_INV_PACKET ? fail(failure, err, "a key packet is malformed") : err;
}

gpg_error_t key_parse(struct failure *failure, unsigned packet_type, const uint8_t *body, size_t n, struct key **ret,
                      size_t *ret_public_n)
{
    size_t public_n = 0;
    bool secret = packet_type == PACKET_SECRET_KEY || packet_type == PACKET_SECRET_SUBKEY;
    struct key *key = calloc(1, sizeof *key);
    if (!key)
        return gpg_error_from_syserror();
    key->refs = 1;
    key->subkey = packet_type == PACKET_PUBLIC_SUBKEY || packet_type == PACKET_SECRET_SUBKEY;
    gpg_error_t err = parse_body(failure, key, secret, body, n, &public_n);
    if (err)
        goto out;
    key->body = malloc(public_n);
    if (!key->body) {
        err = gpg_error_from_syserror();
        goto out;
    }
    memcpy(key->body, body, public_n);
    key->body_n = public_n;
    err = make_fingerprint(key);
    if (!err)
        err = make_keygrip(key);
    if (err)
        goto out;
    *ret_public_n = public_n;
    *ret = key;
    key = NULL;
out:
    key_free(key);
    return err;
}

struct key *key_ref(struct key *key)
{
    key->refs++;
    return key;
}

void key_free(struct key *key)
{
    if (!key || --key->refs)
        return;
    parts_clear(&key->parts);
    free(key->body);
    free(key);
}

bool key_can_sign_algo(const struct key *key)
{
    switch (key->algo) {
    case PUBKEY_RSA:
    case PUBKEY_RSA_SIGN:
    case PUBKEY_DSA:
    case PUBKEY_ECDSA:
    case PUBKEY_EDDSA:
    case PUBKEY_ED25519:
    case PUBKEY_ED448:
        return true;
    default:
        return false;
    }
}

bool key_can_encrypt_algo(const struct key *key)
{
    switch (key->algo) {
    case PUBKEY_RSA:
    case PUBKEY_RSA_ENCRYPT:
    case PUBKEY_ELGAMAL:
    case PUBKEY_ECDH:
    case PUBKEY_X25519:
    case PUBKEY_X448:
        return true;
    default:
        return false;
    }
}

static gpg_error_t curve_usable(struct failure *failure, const struct key *key)
{
    const char *algo = algo_pubkey_name(key->algo);
    if (!key->curve)
        return fail(failure, gpg_error(GPG_ERR_NOT_SUPPORTED), "the curve of a key for %s is not known",
                    algo ? algo : "elliptic curves");
    enum curve_kind kind = key->curve->kind;
    bool fits = key->algo == PUBKEY_ECDSA   ? kind == CURVE_WEIERSTRASS
                : key->algo == PUBKEY_EDDSA ? kind == CURVE_EDWARDS
                                            : kind != CURVE_EDWARDS;
    if (!fits)
        return fail(failure, gpg_error(GPG_ERR_NOT_SUPPORTED), "%s on the curve %s is not supported", algo,
                    key->curve->name);
    const struct digest_info *digest = algo_digest(key->kdf_digest);
    const struct cipher_info *cipher = algo_cipher(key->kdf_cipher);
    if (key->algo == PUBKEY_ECDH && (!digest || !cipher || digest->size < cipher->key_size || digest->weak ||
                                     key->kdf_cipher < CIPHER_AES128 || key->kdf_cipher > CIPHER_AES256))
        return fail(failure, gpg_error(GPG_ERR_NOT_SUPPORTED),
                    "ECDH with digest algorithm %u and cipher %u for its key wrap is not supported", key->kdf_digest,
                    key->kdf_cipher);
    return 0;
}

static gpg_error_t number_usable(struct failure *failure, const struct key *key)
{
    const char *name = algo_pubkey_name(key->algo);
    unsigned second = part_bits(&key->parts.part[1]);
    if (key->bits < MODULUS_BITS_MIN)
        return fail(failure, gpg_error(GPG_ERR_NOT_SUPPORTED), "%s keys of only %u bits are not supported", name,
                    key->bits);
    if (key->algo == PUBKEY_DSA &&
        (key->bits > DSA_MODULUS_BITS_MAX || second < DSA_ORDER_BITS_MIN || second > DSA_ORDER_BITS_MAX))
        return fail(failure, gpg_error(GPG_ERR_NOT_SUPPORTED), "DSA keys of %u and %u bits are not supported",
                    key->bits, second);
    if (key->algo != PUBKEY_DSA && key->algo != PUBKEY_ELGAMAL && second > RSA_EXPONENT_BITS_MAX)
        return fail(failure, gpg_error(GPG_ERR_NOT_SUPPORTED),
                    "RSA keys with a public exponent of %u bits are not supported", second);
    return 0;
}

gpg_error_t key_usable(struct failure *failure, const struct key *key)
{
    const char *name = algo_pubkey_name(key->algo);
    switch (key->algo) {
    case PUBKEY_RSA:
    case PUBKEY_RSA_ENCRYPT:
    case PUBKEY_RSA_SIGN:
    case PUBKEY_DSA:
    case PUBKEY_ELGAMAL:
        return number_usable(failure, key);
    case PUBKEY_ECDH:
    case PUBKEY_ECDSA:
    case PUBKEY_EDDSA:
        return curve_usable(failure, key);
    case PUBKEY_X25519:
    case PUBKEY_X448:
    case PUBKEY_ED25519:
    case PUBKEY_ED448:
        return 0;
    default:
        if (name)
            return fail(failure, gpg_error(GPG_ERR_NOT_SUPPORTED), "public-key algorithm %s is not supported", name);
        return fail(failure, gpg_error(GPG_ERR_NOT_SUPPORTED), "public-key algorithm %u is not supported", key->algo);
    }
}

static gpg_error_t curve_sexp(const struct key *key, gcry_sexp_t *ret)
{
    const struct part *point = &key->parts.part[0];
    bool is_25519 = key->curve->octets == 32 && key->curve->kind != CURVE_WEIERSTRASS;
    if (!is_25519)
        return gcry_sexp_build(ret, NULL, "(public-key(ecc(curve%s)(q%b)))", key->curve->name, (int)point->n,
                               point->bytes);
    uint8_t prefixed[33] = {0x40};
    memcpy(prefixed + 1, point->bytes, point->n);
    return gcry_sexp_build(ret, NULL, "(public-key(ecc(curve%s)(flags%s)(q%b)))", key->curve->name,
                           key->curve->kind == CURVE_EDWARDS ? "eddsa" : "djb-tweak", (int)sizeof prefixed, prefixed);
}

static gpg_error_t number_sexp(const struct key *key, gcry_sexp_t *ret)
{
    gcry_mpi_t mpi[KEY_PARTS_MAX] = {NULL};
    gpg_error_t err = 0;
    for (unsigned i = 0; i < key->parts.n && !err; i++)
        err = gcry_mpi_scan(&mpi[i], GCRYMPI_FMT_USG, key->parts.part[i].bytes, key->parts.part[i].n, NULL);
    if (err)
        goto out;
    if (key->algo == PUBKEY_DSA)
        err = gcry_sexp_build(ret, NULL, "(public-key(dsa(p%m)(q%m)(g%m)(y%m)))", mpi[0], mpi[1], mpi[2], mpi[3]);
    else if (key->algo == PUBKEY_ELGAMAL)
        err = gcry_sexp_build(ret, NULL, "(public-key(elg(p%m)(g%m)(y%m)))", mpi[0], mpi[1], mpi[2]);
    else
        err = gcry_sexp_build(ret, NULL, "(public-key(rsa(n%m)(e%m)))", mpi[0], mpi[1]);
out:
    for (unsigned i = 0; i < KEY_PARTS_MAX; i++)
        gcry_mpi_release(mpi[i]);
    return err;
}

gpg_error_t key_sexp(const struct key *key, gcry_sexp_t *ret)
{
    return key->curve ? curve_sexp(key, ret) : number_sexp(key, ret);
}

/* Both coordinates fill the highest limb that the field has. */
static bool fills_limbs(gcry_mpi_point_t point, const struct curve *curve)
{
    const unsigned limb = 8 * sizeof(unsigned long);
    unsigned below = (curve->bits + limb - 1) / limb * limb - limb;
    gcry_mpi_t x = gcry_mpi_new(0), y = gcry_mpi_new(0);
    gcry_mpi_point_get(x, y, NULL, point); /* z is 1 behind decoding */
    bool fills = gcry_mpi_get_nbits(x) > below && gcry_mpi_get_nbits(y) > below;
    gcry_mpi_release(x);
    gcry_mpi_release(y);
    return fills;
}

gpg_error_t key_point_check(const struct key *key)
{
    if (!key->curve || key->curve->kind != CURVE_EDWARDS)
        return 0;
    const struct part *part = &key->parts.part[0];
    gcry_ctx_t curve = NULL;
    gpg_error_t err = gcry_mpi_ec_new(&curve, NULL, key->curve->name);
    if (err)
        return err;
    gcry_mpi_t octets = gcry_mpi_set_opaque_copy(NULL, part->bytes, 8 * (unsigned)part->n);
    gcry_mpi_point_t point = gcry_mpi_point_new(0);
    if (!octets)
        err = gpg_error_from_syserror();
    else if (gcry_mpi_ec_decode_point(point, octets, curve) || !fills_limbs(point, key->curve))
        err = gpg_error(GPG_ERR_BAD_PUBKEY);
    gcry_mpi_point_release(point);
    gcry_mpi_release(octets);
    gcry_ctx_release(curve);
    return err;
}

void key_fpr_hex(const struct key *key, char out[2 * KEY_FPR_MAX + 1])
{
    static const char digits[] = "0123456789ABCDEF";
    for (unsigned i = 0; i < key->fpr_n; i++) {
        out[2 * i] = digits[key->fpr[i] >> 4];
        out[2 * i + 1] = digits[key->fpr[i] & 15];
    }
    out[2 * key->fpr_n] = 0;
}
