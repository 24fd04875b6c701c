/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ecdh.h"

#include "hkdf.h"

#include <string.h>

#define POINT_MAX (1 + 2 * 66) /* P-521 */
/* Octets that AES key wrap adds, RFC 3394 */
#define WRAP_EXTRA 8
/* Frames of all AES sizes are padded to this, which hides the size of the session key (RFC 9580 11.5) */
#define FRAME_PADDED 40
/* The size octet before a wrapped key: 255 is reserved (RFC 9580 11.5) */
#define WRAPPED_MAX 254

/* The point as libgcrypt takes it: with 0x40 on Curve25519. */
struct point {
    uint8_t bytes[POINT_MAX];
    size_t n;
};

/* X25519 and X448 as algorithms of their own: native strings, HKDF. */
static bool is_native(const struct key *key)
{
    return key->algo == PUBKEY_X25519 || key->algo == PUBKEY_X448;
}

/* Takes a point with and without 0x40, and short where a reader of MPIs dropped leading zeros; gives it without. */
static gpg_error_t point_from(const struct curve *curve, const uint8_t *bytes, size_t n, struct point *ret)
{
    struct point point = {.n = curve->octets};
    if (curve->kind == CURVE_WEIERSTRASS)
        point.n = 1 + 2 * (size_t)curve->octets;
    else if (n == point.n + 1 && bytes[0] == 0x40) {
        bytes++;
        n--;
    }
    if (n == 0 || n > point.n || (curve->kind == CURVE_WEIERSTRASS && (n != point.n || bytes[0] != 0x04)))
        return gpg_error(GPG_ERR_INV_DATA);
    memcpy(point.bytes + point.n - n, bytes, n);
    *ret = point;
    return 0;
}

static bool wants_prefix(const struct curve *curve)
{
    return curve->kind == CURVE_MONTGOMERY && curve->octets == 32;
}

static void add_prefix(struct point *point)
{
    memmove(point->bytes + 1, point->bytes, point->n);
    point->bytes[0] = 0x40;
    point->n++;
}

static gpg_error_t point_sexp(const struct curve *curve, const struct point *native, const struct part *wrapped,
                              gcry_sexp_t *ret)
{
    struct point point = *native;
    if (wants_prefix(curve))
        add_prefix(&point);
    /* The wrapped key has no use for the arithmetic, but gpg sends it, and smartcards' drivers expect the form. */
    return gcry_sexp_build(ret, NULL, "(enc-val(ecdh(s%b)(e%b)))", wrapped ? (int)wrapped->n : 0,
                           wrapped ? (const char *)wrapped->bytes : "", (int)point.n, point.bytes);
}

gpg_error_t ecdh_sexp(const struct key *key, const struct parts *parts, gcry_sexp_t *ret)
{
    struct point point;
    if (parts->n != 2 || parts->part[1].n > WRAPPED_MAX)
        return gpg_error(GPG_ERR_INV_DATA);
    gpg_error_t err = point_from(key->curve, parts->part[0].bytes, parts->part[0].n, &point);
    return err ? err : point_sexp(key->curve, &point, &parts->part[1], ret);
}

/* The shared secret as an octet string of the curve's size: x alone. */
static gpg_error_t shared_secret(const struct curve *curve, const uint8_t *value, size_t n, struct secret **ret)
{
    size_t octets = curve->octets;
    if (curve->kind == CURVE_WEIERSTRASS && n == 1 + 2 * octets && value[0] == 0x04) {
        value++;
        n = octets;
    } else if (curve->kind == CURVE_MONTGOMERY && n == octets + 1 && value[0] == 0x40) {
        value++;
        n--;
    }
    if (n == 0 || n > octets)
        return gpg_error(GPG_ERR_DECRYPT_FAILED);
    uint8_t any = 0;
    for (size_t i = 0; i < n; i++)
        any |= value[i];
    if (!any) /* a point of small order: RFC 7748 6.1 */
        return gpg_error(GPG_ERR_DECRYPT_FAILED);
    struct secret *secret = secret_new(octets);
    if (!secret)
        return gpg_error(GPG_ERR_ENOMEM);
    memcpy(secret->bytes + octets - n, value, n);
    *ret = secret;
    return 0;
}

/* RFC 9580 11.4, 11.5. Version 5 keys give 20 octets of their fingerprint, as GnuPG does. */
static gpg_error_t derive_kdf(const struct key *key, const struct secret *shared, struct secret **ret)
{
    static const uint8_t counter[] = {0, 0, 0, 1};
    const uint8_t kdf[] = {PUBKEY_ECDH, 3, 1, key->kdf_digest, key->kdf_cipher};
    const struct digest_info *digest = algo_digest(key->kdf_digest);
    const struct cipher_info *cipher = algo_cipher(key->kdf_cipher);
    gcry_md_hd_t md;
    gpg_error_t err = gcry_md_open(&md, digest->gcry, GCRY_MD_FLAG_SECURE);
    if (err)
        return err;
    gcry_md_write(md, counter, sizeof counter);
    gcry_md_write(md, shared->bytes, shared->n);
    gcry_md_putc(md, key->curve->oid_n);
    gcry_md_write(md, key->curve->oid, key->curve->oid_n);
    gcry_md_write(md, kdf, sizeof kdf);
    gcry_md_write(md, "Anonymous Sender    ", 20);
    gcry_md_write(md, key->fpr, key->version == 6 ? 32 : 20);
    *ret = secret_from(gcry_md_read(md, digest->gcry), cipher->key_size);
    gcry_md_close(md);
    return *ret ? 0 : gpg_error(GPG_ERR_ENOMEM);
}

/* RFC 9580 5.1.6, 5.1.7: the points go into the key derivation, the fingerprint does not. */
static gpg_error_t derive_native(const struct key *key, const struct point *ephemeral, const struct secret *shared,
                                 struct secret **ret)
{
    bool is_448 = key->algo == PUBKEY_X448;
    const char *info = is_448 ? "OpenPGP X448" : "OpenPGP X25519";
    size_t octets = key->curve->octets;
    struct secret *input = secret_new(3 * octets);
    if (!input)
        return gpg_error(GPG_ERR_ENOMEM);
    memcpy(input->bytes, ephemeral->bytes, octets);
    memcpy(input->bytes + octets, key->parts.part[0].bytes, octets);
    memcpy(input->bytes + 2 * octets, shared->bytes, octets);
    gpg_error_t err =
        hkdf(is_448 ? DIGEST_SHA512 : DIGEST_SHA256, input, NULL, 0, info, strlen(info), is_448 ? 32 : 16, ret);
    secret_free(input);
    return err;
}

static gpg_error_t derive(const struct key *key, const struct point *ephemeral, const struct secret *shared,
                          struct secret **ret)
{
    return is_native(key) ? derive_native(key, ephemeral, shared, ret) : derive_kdf(key, shared, ret);
}

static gpg_error_t wrap_open(const struct secret *kek, gcry_cipher_hd_t *ret)
{
    int algo = kek->n == 16 ? GCRY_CIPHER_AES128 : kek->n == 24 ? GCRY_CIPHER_AES192 : GCRY_CIPHER_AES256;
    gcry_cipher_hd_t cipher;
    gpg_error_t err = gcry_cipher_open(&cipher, algo, GCRY_CIPHER_MODE_AESWRAP, GCRY_CIPHER_SECURE);
    if (err)
        return err;
    err = gcry_cipher_setkey(cipher, kek->bytes, kek->n);
    if (err) {
        gcry_cipher_close(cipher);
        return err;
    }
    *ret = cipher;
    return 0;
}

static gpg_error_t wrap(const struct secret *kek, const struct secret *plain, uint8_t out[WRAPPED_MAX], size_t *ret_n)
{
    gcry_cipher_hd_t cipher;
    if (plain->n + WRAP_EXTRA > WRAPPED_MAX)
        return gpg_error(GPG_ERR_TOO_LARGE);
    gpg_error_t err = wrap_open(kek, &cipher);
    if (err)
        return err;
    *ret_n = plain->n + WRAP_EXTRA;
    err = gcry_cipher_encrypt(cipher, out, *ret_n, plain->bytes, plain->n);
    gcry_cipher_close(cipher);
    return err;
}

static gpg_error_t unwrap(const struct secret *kek, const struct part *wrapped, struct secret **ret)
{
    if (wrapped->n < 16 + WRAP_EXTRA || wrapped->n % 8 || wrapped->n > WRAPPED_MAX)
        return gpg_error(GPG_ERR_DECRYPT_FAILED);
    gcry_cipher_hd_t cipher = NULL;
    struct secret *plain = secret_new(wrapped->n - WRAP_EXTRA);
    gpg_error_t err = plain ? wrap_open(kek, &cipher) : gpg_error(GPG_ERR_ENOMEM);
    if (!err && gcry_cipher_decrypt(cipher, plain->bytes, plain->n, wrapped->bytes, wrapped->n))
        err = gpg_error(GPG_ERR_DECRYPT_FAILED);
    gcry_cipher_close(cipher);
    if (err) {
        secret_free(plain);
        return err;
    }
    *ret = plain;
    return 0;
}

/* RFC 8018's padding to whole eights: each octet says how many there are. */
static struct secret *pad(const struct secret *frame)
{
    size_t padded = frame->n < FRAME_PADDED ? FRAME_PADDED : (frame->n / 8 + 1) * 8;
    struct secret *secret = secret_new(padded);
    if (!secret)
        return NULL;
    memset(secret->bytes, (int)(padded - frame->n), padded);
    memcpy(secret->bytes, frame->bytes, frame->n);
    return secret;
}

/* The key wrap is authenticated: what is wrong here was wrong when it was made, and timing tells nobody anything. */
static gpg_error_t unpad(struct secret *frame)
{
    uint8_t count = frame->bytes[frame->n - 1];
    if (count == 0 || count >= frame->n)
        return gpg_error(GPG_ERR_DECRYPT_FAILED);
    for (size_t i = frame->n - count; i < frame->n; i++)
        if (frame->bytes[i] != count)
            return gpg_error(GPG_ERR_DECRYPT_FAILED);
    frame->n -= count;
    return 0;
}

static gpg_error_t token_bytes(gcry_sexp_t sexp, const char *name, struct secret **ret)
{
    size_t n = 0;
    gcry_sexp_t token = gcry_sexp_find_token(sexp, name, 0);
    const char *bytes = token ? gcry_sexp_nth_data(token, 1, &n) : NULL;
    *ret = bytes ? secret_from(bytes, n) : NULL;
    gcry_sexp_release(token);
    return *ret ? 0 : gpg_error(GPG_ERR_NO_OBJ);
}

/* A key pair for one use: its point, and the secret that it shares with KEY. */
static gpg_error_t agree(const struct key *key, struct point *ret_ephemeral, struct secret **ret_shared)
{
    gcry_sexp_t wanted = NULL, pair = NULL, half = NULL, peer = NULL, result = NULL;
    struct secret *q = NULL, *value = NULL;
    struct point point;
    const struct curve *curve = key->curve;
    /* Randomness as strong as a session key's. What keys made to last ask for takes 15 ms to gather (measured). */
    const char *form = wants_prefix(curve) ? "(genkey(ecc(curve%s)(flags djb-tweak transient-key no-keytest)))"
                                           : "(genkey(ecc(curve%s)(flags transient-key no-keytest)))";
    gpg_error_t err = gcry_sexp_build(&wanted, NULL, form, curve->name);
    if (!err)
        err = gcry_pk_genkey(&pair, wanted);
    if (!err)
        err = (half = gcry_sexp_find_token(pair, "private-key", 0)) ? 0 : gpg_error(GPG_ERR_NO_OBJ);
    if (!err)
        err = token_bytes(half, "q", &q);
    if (!err)
        err = point_from(curve, q->bytes, q->n, ret_ephemeral);
    if (!err)
        err = point_from(curve, key->parts.part[0].bytes, key->parts.part[0].n, &point);
    if (!err)
        err = point_sexp(curve, &point, NULL, &peer);
    if (!err)
        err = gcry_pk_decrypt(&result, peer, half);
    if (!err)
        err = token_bytes(result, "value", &value);
    if (!err)
        err = shared_secret(curve, value->bytes, value->n, ret_shared);
    secret_free(q);
    secret_free(value);
    gcry_sexp_release(wanted);
    gcry_sexp_release(pair);
    gcry_sexp_release(half);
    gcry_sexp_release(peer);
    gcry_sexp_release(result);
    return err;
}

gpg_error_t ecdh_seal(struct failure *failure, const struct key *key, const struct secret *frame, struct parts *ret)
{
    struct point ephemeral;
    struct secret *shared = NULL, *kek = NULL, *padded = NULL;
    struct parts parts = {0};
    uint8_t wrapped[WRAPPED_MAX];
    size_t wrapped_n = 0;
    gpg_error_t err = agree(key, &ephemeral, &shared);
    if (err) {
        char fpr[2 * KEY_FPR_MAX + 1];
        key_fpr_hex(key, fpr);
        fail(failure, err, "no secret can be agreed on with key %s: %s", fpr, gpg_strerror(err));
        goto out;
    }
    err = derive(key, &ephemeral, shared, &kek);
    if (err)
        goto out;
    if (!is_native(key)) {
        padded = pad(frame);
        if (!padded) {
            err = gpg_error(GPG_ERR_ENOMEM);
            goto out;
        }
        if (wants_prefix(key->curve))
            add_prefix(&ephemeral);
    }
    err = wrap(kek, padded ? padded : frame, wrapped, &wrapped_n);
    if (!err)
        err = parts_add(&parts, ephemeral.bytes, ephemeral.n, 0);
    if (!err)
        err = parts_add(&parts, wrapped, wrapped_n, 0);
    if (err)
        goto out;
    *ret = parts;
    parts = (struct parts){0};
out:
    parts_clear(&parts);
    secret_free(padded);
    secret_free(kek);
    secret_free(shared);
    return err;
}

gpg_error_t ecdh_open(const struct key *key, const struct parts *parts, const struct secret *value,
                      struct secret **ret_frame)
{
    struct point ephemeral;
    struct secret *shared = NULL, *kek = NULL, *frame = NULL;
    gpg_error_t err = gpg_error(GPG_ERR_DECRYPT_FAILED);
    if (parts->n != 2 || point_from(key->curve, parts->part[0].bytes, parts->part[0].n, &ephemeral))
        goto out;
    err = shared_secret(key->curve, value->bytes, value->n, &shared);
    if (!err)
        err = derive(key, &ephemeral, shared, &kek);
    if (!err)
        err = unwrap(kek, &parts->part[1], &frame);
    if (!err && !is_native(key))
        err = unpad(frame);
    if (err)
        goto out;
    *ret_frame = frame;
    frame = NULL;
out:
    secret_free(frame);
    secret_free(kek);
    secret_free(shared);
    return err;
}
