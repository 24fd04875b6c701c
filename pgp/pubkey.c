/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "pubkey.h"

#include "ecdh.h"

#include <string.h>

/* PKCS#1 v1.5: 00 02, at least eight octets of padding, 00 */
#define PKCS1_OVERHEAD 11

static bool is_rsa(const struct key *key)
{
    return key->algo == PUBKEY_RSA || key->algo == PUBKEY_RSA_ENCRYPT || key->algo == PUBKEY_RSA_SIGN;
}

static bool is_eddsa(const struct key *key)
{
    return key->algo == PUBKEY_EDDSA || key->algo == PUBKEY_ED25519 || key->algo == PUBKEY_ED448;
}

/* Ed25519 and Ed448 as algorithms of their own: one native string holds both halves of the signature. */
static bool is_native_eddsa(const struct key *key)
{
    return key->algo == PUBKEY_ED25519 || key->algo == PUBKEY_ED448;
}

/* Octets of a digest that KEY signs at least: those of the group's order, at most 64 (there is no longer digest); RFC
 * 9580 5.2.3.2, 5.2.3.4, 5.2.3.5. */
static size_t digest_octets_needed(const struct key *key)
{
    if (key->algo == PUBKEY_DSA)
        return (part_bits(&key->parts.part[1]) + 7) / 8;
    if (is_eddsa(key))
        return key->curve->octets == 32 ? 32 : 64;
    if (key->algo == PUBKEY_ECDSA)
        return key->curve->octets > 64 ? 64 : key->curve->octets;
    return 0;
}

gpg_error_t pubkey_digest_sexp(const struct key *key, enum digest_algo algo, const uint8_t *digest, size_t n,
                               gcry_sexp_t *ret)
{
    const struct digest_info *info = algo_digest(algo);
    size_t needed = digest_octets_needed(key);
    if (!info || info->size != n || n < needed)
        return gpg_error(GPG_ERR_DIGEST_ALGO);
    if (is_rsa(key))
        return gcry_sexp_build(ret, NULL, "(data(flags pkcs1)(hash%s%b))", gcry_md_algo_name(info->gcry), (int)n,
                               digest);
    if (is_eddsa(key))
        return key->curve->octets == 32
                   ? gcry_sexp_build(ret, NULL, "(data(flags eddsa)(hash-algo sha512)(value%b))", (int)n, digest)
                   : gcry_sexp_build(ret, NULL, "(data(value%b))", (int)n, digest);
    /* DSA and ECDSA: the leftmost octets, as many as the order has. */
    gcry_mpi_t number = NULL;
    gpg_error_t err = gcry_mpi_scan(&number, GCRYMPI_FMT_USG, digest, n < needed ? n : needed, NULL);
    if (!err)
        err = gcry_sexp_build(ret, NULL, "(data(flags raw)(value%m))", number);
    gcry_mpi_release(number);
    return err;
}

/* The halves of an EdDSA signature, each of the curve's full size. */
static gpg_error_t eddsa_halves(const struct key *key, const struct parts *signature, uint8_t out[2 * 57])
{
    size_t octets = key->curve->octets;
    if (is_native_eddsa(key)) {
        if (signature->n != 1 || signature->part[0].n != 2 * octets)
            return gpg_error(GPG_ERR_BAD_SIGNATURE);
        memcpy(out, signature->part[0].bytes, 2 * octets);
        return 0;
    }
    if (signature->n != 2 || signature->part[0].n > octets || signature->part[1].n > octets)
        return gpg_error(GPG_ERR_BAD_SIGNATURE);
    memset(out, 0, 2 * octets);
    for (unsigned i = 0; i < 2; i++)
        memcpy(out + (i + 1) * octets - signature->part[i].n, signature->part[i].bytes, signature->part[i].n);
    return 0;
}

static gpg_error_t numbers_sexp(const char *one, const char *two, const struct parts *parts, gcry_sexp_t *ret)
{
    gcry_mpi_t mpi[2] = {NULL, NULL};
    unsigned count = two ? 2 : 1;
    gpg_error_t err = parts->n == count ? 0 : gpg_error(GPG_ERR_INV_DATA);
    for (unsigned i = 0; i < count && !err; i++) {
        err = parts->part[i].n ? 0 : gpg_error(GPG_ERR_INV_DATA);
        if (!err)
            err = gcry_mpi_scan(&mpi[i], GCRYMPI_FMT_USG, parts->part[i].bytes, parts->part[i].n, NULL);
    }
    if (!err)
        err = two ? gcry_sexp_build(ret, NULL, two, mpi[0], mpi[1]) : gcry_sexp_build(ret, NULL, one, mpi[0]);
    gcry_mpi_release(mpi[0]);
    gcry_mpi_release(mpi[1]);
    return err;
}

static gpg_error_t signature_sexp(const struct key *key, const struct parts *signature, gcry_sexp_t *ret)
{
    if (is_rsa(key))
        return numbers_sexp("(sig-val(rsa(s%m)))", NULL, signature, ret);
    if (key->algo == PUBKEY_DSA)
        return numbers_sexp(NULL, "(sig-val(dsa(r%m)(s%m)))", signature, ret);
    if (key->algo == PUBKEY_ECDSA)
        return numbers_sexp(NULL, "(sig-val(ecdsa(r%m)(s%m)))", signature, ret);
    uint8_t halves[2 * 57];
    int octets = key->curve->octets;
    gpg_error_t err = eddsa_halves(key, signature, halves);
    return err ? err
               : gcry_sexp_build(ret, NULL, "(sig-val(eddsa(r%b)(s%b)))", octets, halves, octets, halves + octets);
}

/* libgcrypt's DSA computes on with an inverse of s modulo q that is not there, and aborts the process. That happens
 * where q is no prime, which is nothing but an attack: a signature is refused before libgcrypt sees it. */
static gpg_error_t dsa_has_inverse(const struct key *key, const struct parts *signature)
{
    const struct part *order = &key->parts.part[1], *value = &signature->part[1];
    gcry_mpi_t q = NULL, s = NULL, divisor = gcry_mpi_new(0);
    gpg_error_t err = gcry_mpi_scan(&q, GCRYMPI_FMT_USG, order->bytes, order->n, NULL);
    if (!err)
        err = gcry_mpi_scan(&s, GCRYMPI_FMT_USG, value->bytes, value->n, NULL);
    if (!err && !gcry_mpi_gcd(divisor, s, q))
        err = gpg_error(GPG_ERR_BAD_SIGNATURE);
    gcry_mpi_release(divisor);
    gcry_mpi_release(q);
    gcry_mpi_release(s);
    return err;
}

gpg_error_t pubkey_verify(const struct key *key, enum digest_algo algo, const uint8_t *digest, size_t n,
                          const struct parts *signature)
{
    gcry_sexp_t public_key = NULL, data = NULL, value = NULL;
    gpg_error_t err = key_usable(NULL, key);
    if (err)
        return err;
    if (!algo_digest(algo))
        return gpg_error(GPG_ERR_NOT_SUPPORTED);
    if (!key_can_sign_algo(key))
        return gpg_error(GPG_ERR_BAD_SIGNATURE);
    err = key_sexp(key, &public_key);
    if (!err)
        err = pubkey_digest_sexp(key, algo, digest, n, &data);
    if (!err)
        err = signature_sexp(key, signature, &value);
    if (!err && key->algo == PUBKEY_DSA)
        err = dsa_has_inverse(key, signature);
    if (!err)
        err = key_point_check(key);
    if (!err)
        err = gcry_pk_verify(value, data, public_key);
    gcry_sexp_release(public_key);
    gcry_sexp_release(data);
    gcry_sexp_release(value);
    /* Whatever else libgcrypt says of numbers that are out of range: they are no signature. */
    return !err || gpg_err_code(err) == GPG_ERR_ENOMEM ? err : gpg_error(GPG_ERR_BAD_SIGNATURE);
}

static gpg_error_t token_part(gcry_sexp_t sexp, const char *name, size_t octets, bool keep_zeros, struct parts *parts)
{
    size_t n = 0;
    gcry_sexp_t token = gcry_sexp_find_token(sexp, name, 1);
    const uint8_t *bytes = token ? (const uint8_t *)gcry_sexp_nth_data(token, 1, &n) : NULL;
    gpg_error_t err = bytes && n ? 0 : gpg_error(GPG_ERR_INV_OBJ);
    while (!err && n > 1 && bytes[0] == 0 && (!keep_zeros || n > octets)) {
        bytes++;
        n--;
    }
    if (!err)
        err = parts_add(parts, bytes, n, keep_zeros && n < octets ? octets - n : 0);
    gcry_sexp_release(token);
    return err;
}

/* Encrypts with padding of libgcrypt's own: RSA and Elgamal. */
static gpg_error_t encrypt_pkcs1(const struct key *key, const struct secret *frame, struct parts *ret)
{
    gcry_sexp_t public_key = NULL, data = NULL, value = NULL;
    struct parts parts = {0};
    gpg_error_t err = key_sexp(key, &public_key);
    if (!err)
        err = gcry_sexp_build(&data, NULL, "(data(flags pkcs1)(value%b))", (int)frame->n, frame->bytes);
    if (!err)
        err = gcry_pk_encrypt(&value, data, public_key);
    if (!err)
        err = token_part(value, "a", 0, false, &parts);
    if (!err && !is_rsa(key))
        err = token_part(value, "b", 0, false, &parts);
    gcry_sexp_release(public_key);
    gcry_sexp_release(data);
    gcry_sexp_release(value);
    if (err) {
        parts_clear(&parts);
        return err;
    }
    *ret = parts;
    return 0;
}

gpg_error_t pubkey_encrypt(struct failure *failure, const struct key *key, const struct secret *frame,
                           struct parts *ret)
{
    gpg_error_t err = key_usable(failure, key);
    if (err)
        return err;
    char fpr[2 * KEY_FPR_MAX + 1];
    key_fpr_hex(key, fpr);
    if (!key_can_encrypt_algo(key))
        return fail(failure, gpg_error(GPG_ERR_WRONG_PUBKEY_ALGO), "key %s cannot encrypt", fpr);
    if (key->curve)
        return ecdh_seal(failure, key, frame, ret);
    err = encrypt_pkcs1(key, frame, ret);
    return err ? fail(failure, err, "encryption for key %s failed: %s", fpr, gpg_strerror(err)) : 0;
}

void secret_key_free(struct secret_key *secret_key)
{
    if (secret_key)
        secret_key->ops->free(secret_key);
}

static gpg_error_t signature_parts(const struct key *key, gcry_sexp_t value, struct parts *ret)
{
    struct parts parts = {0}, joined = {0};
    gpg_error_t err = 0;
    /* A reader of Ed448's octet strings must not have to guess zeros (LibrePGP); MPIs drop them. */
    bool keep_zeros = is_native_eddsa(key) || (is_eddsa(key) && key->curve->octets != 32);
    size_t octets = key->curve ? key->curve->octets : 0;
    if (!is_rsa(key))
        err = token_part(value, "r", octets, keep_zeros, &parts);
    if (!err)
        err = token_part(value, "s", octets, keep_zeros, &parts);
    if (!err && is_native_eddsa(key)) {
        uint8_t both[2 * 57];
        if (parts.part[0].n == octets && parts.part[1].n == octets) {
            memcpy(both, parts.part[0].bytes, octets);
            memcpy(both + octets, parts.part[1].bytes, octets);
            err = parts_add(&joined, both, 2 * octets, 0);
        } else {
            err = gpg_error(GPG_ERR_INV_OBJ);
        }
        parts_clear(&parts);
        parts = joined;
    }
    if (err) {
        parts_clear(&parts);
        return err;
    }
    *ret = parts;
    return 0;
}

gpg_error_t pubkey_sign(struct failure *failure, struct secret_key *secret_key, enum digest_algo algo,
                        const uint8_t *digest, size_t n, struct parts *ret)
{
    const struct key *key = secret_key->key;
    gcry_sexp_t value = NULL;
    struct parts parts = {0};
    char fpr[2 * KEY_FPR_MAX + 1];
    gpg_error_t err = key_usable(failure, key);
    if (err)
        return err;
    key_fpr_hex(key, fpr);
    if (!key_can_sign_algo(key))
        return fail(failure, gpg_error(GPG_ERR_WRONG_PUBKEY_ALGO), "key %s cannot sign", fpr);
    if (n < digest_octets_needed(key))
        return fail(failure, gpg_error(GPG_ERR_DIGEST_ALGO), "key %s needs a digest of at least %zu bits", fpr,
                    8 * digest_octets_needed(key));
    err = secret_key->ops->sign(secret_key, failure, algo, digest, n, &value);
    if (!err)
        err = signature_parts(key, value, &parts);
    gcry_sexp_release(value);
    if (!err) {
        err = pubkey_verify(key, algo, digest, n, &parts);
        if (err)
            fail(failure, err, "the signature just made with key %s is wrong: %s", fpr, gpg_strerror(err));
    }
    if (err) {
        parts_clear(&parts);
        return err;
    }
    *ret = parts;
    return 0;
}

/* Undoes PKCS#1's padding for encryption (RFC 8017 7.2.2) in VALUE, left-padded to the modulus's N octets, without a
 * branch or an index that depends on the octets: only whether it was right, and the length, comes out. */
static gpg_error_t unpad_pkcs1(const struct secret *value, size_t n, struct secret **ret)
{
    if (value->n > n || n < PKCS1_OVERHEAD)
        return gpg_error(GPG_ERR_DECRYPT_FAILED);
    struct secret *block = secret_new(n);
    if (!block)
        return gpg_error(GPG_ERR_ENOMEM);
    memcpy(block->bytes + n - value->n, value->bytes, value->n);
    unsigned wrong = block->bytes[0] | (block->bytes[1] ^ 2u);
    unsigned searching = 1;
    size_t zero_at = 0;
    for (size_t i = 2; i < n; i++) {
        unsigned is_zero = ((unsigned)block->bytes[i] - 1u) >> 31;
        zero_at |= i & (0 - (size_t)(is_zero & searching));
        searching &= is_zero ^ 1u;
    }
    wrong |= searching;
    wrong |= (unsigned)((zero_at - (PKCS1_OVERHEAD - 1)) >> (8 * sizeof zero_at - 1));
    struct secret *message = wrong ? NULL : secret_from(block->bytes + zero_at + 1, n - zero_at - 1);
    gpg_error_t err = wrong ? gpg_error(GPG_ERR_DECRYPT_FAILED) : message ? 0 : gpg_error(GPG_ERR_ENOMEM);
    secret_free(block);
    if (!err)
        *ret = message;
    return err;
}

static gpg_error_t encrypted_sexp(const struct key *key, const struct parts *parts, gcry_sexp_t *ret)
{
    if (key->curve)
        return ecdh_sexp(key, parts, ret);
    if (is_rsa(key))
        return numbers_sexp("(enc-val(rsa(a%m)))", NULL, parts, ret);
    return numbers_sexp(NULL, "(enc-val(elg(a%m)(b%m)))", parts, ret);
}

gpg_error_t pubkey_decrypt(struct failure *failure, struct secret_key *secret_key, const struct parts *parts,
                           struct secret **ret_frame)
{
    const struct key *key = secret_key->key;
    gcry_sexp_t encrypted = NULL;
    struct secret *value = NULL;
    bool unpadded = false;
    gpg_error_t err = key_usable(failure, key);
    if (err)
        return err;
    if (!key_can_encrypt_algo(key) || encrypted_sexp(key, parts, &encrypted))
        return gpg_error(GPG_ERR_DECRYPT_FAILED);
    err = secret_key->ops->decrypt(secret_key, failure, encrypted, &value, &unpadded);
    gcry_sexp_release(encrypted);
    if (err)
        return err;
    if (key->curve) {
        err = ecdh_open(key, parts, value, ret_frame);
    } else if (unpadded) {
        *ret_frame = value;
        value = NULL;
    } else {
        err = unpad_pkcs1(value, (key->bits + 7) / 8, ret_frame);
    }
    secret_free(value);
    return err;
}
