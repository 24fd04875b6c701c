/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "secret_key.h"

#include "cursor.h"
#include "hkdf.h"

#include <stdlib.h>
#include <string.h>

/* S2K usage octets (RFC 9580 3.7.2.1); any other is a cipher, with MD5 of the passphrase as its key. */
enum usage { USAGE_PLAIN = 0, USAGE_AEAD = 253, USAGE_SHA1 = 254, USAGE_SUM = 255 };

#define AEAD_TAG 16
#define SHA1_N   20
#define SUM_N    2

/* Octets of a point and of a secret. */
#define ED25519_N 32

struct memory_key {
    struct secret_key secret_key;
    const struct passphrase_source *source; /* borrowed, or NULL */
    enum secret_state state;
    uint8_t packet_type;
    uint8_t usage;
    uint8_t cipher;
    uint8_t aead;
    uint8_t iv[16];
    uint8_t iv_n;
    struct s2k s2k;
    struct secret *material; /* as it stands in the packet, encrypted or not */
    gcry_sexp_t sexp;        /* (private-key …); NULL until the first use */
};

static const struct secret_key_ops memory_ops;

static struct memory_key *memory_key(struct secret_key *secret_key)
{
    return CONTAINER(secret_key, struct memory_key, secret_key);
}

static void memory_free(struct secret_key *secret_key)
{
    struct memory_key *self = memory_key(secret_key);
    key_free(self->secret_key.key);
    secret_free(self->material);
    gcry_sexp_release(self->sexp);
    free(self);
}

static void unsupported(struct memory_key *self)
{
    self->state = SECRET_UNSUPPORTED;
}

/* Octets of the IV, or 0 with the state set where algorithm or mode are not known. */
static size_t iv_size(struct memory_key *self)
{
    const struct cipher_info *cipher = algo_cipher(self->cipher);
    const struct aead_info *aead = algo_aead(self->aead);
    if (!cipher || (self->usage == USAGE_AEAD && (!aead || cipher->block_size != 16))) {
        unsupported(self);
        return 0;
    }
    return self->usage == USAGE_AEAD ? aead->nonce_size : cipher->block_size;
}

static gpg_error_t parse_s2k(struct memory_key *self, struct cursor *cursor)
{
    if (self->usage < USAGE_AEAD) {
        self->s2k = (struct s2k){.mode = S2K_SIMPLE, .digest = DIGEST_MD5};
        return 0;
    }
    bool counted = self->secret_key.key->version == 6;
    struct cursor part = counted ? cursor_part(cursor, cursor_u8(cursor)) : *cursor;
    gpg_error_t err = s2k_parse(NULL, &part, &self->s2k);
    if (!counted)
        *cursor = part;
    else if (!err && !cursor_done(&part))
        return gpg_error(GPG_ERR_INV_PACKET);
    if (gpg_err_code(err) == GPG_ERR_NOT_SUPPORTED) {
        unsupported(self);
        return 0;
    }
    if (!err && self->s2k.mode == S2K_GNU)
        self->state = self->s2k.gnu == 1 ? SECRET_DUMMY : SECRET_ON_CARD;
    return err;
}

/* What stands between the usage octet and the encrypted secret. */
static gpg_error_t parse_protection(struct memory_key *self, struct cursor *cursor)
{
    self->state = SECRET_LOCKED;
    if (self->secret_key.key->version == 6 && self->usage != USAGE_AEAD && self->usage != USAGE_SHA1)
        return gpg_error(GPG_ERR_INV_PACKET); /* RFC 9580 3.7.2.1 */
    self->cipher = self->usage >= USAGE_AEAD ? cursor_u8(cursor) : self->usage;
    self->aead = self->usage == USAGE_AEAD ? cursor_u8(cursor) : 0;
    gpg_error_t err = parse_s2k(self, cursor);
    if (err || self->state != SECRET_LOCKED)
        return err;
    size_t n = iv_size(self);
    const uint8_t *iv = cursor_bytes(cursor, n);
    if (!iv)
        return gpg_error(GPG_ERR_INV_PACKET);
    memcpy(self->iv, iv, n);
    self->iv_n = (uint8_t)n;
    return 0;
}

/* Behind the public part. Versions 5 and 6 count the fields of the protection, version 5 always (LibrePGP 5.5.3), and
 * the secret as well: without the checksum where it is plain. */
static gpg_error_t parse_secret(struct memory_key *self, struct cursor *cursor)
{
    unsigned version = self->secret_key.key->version;
    self->usage = cursor_u8(cursor);
    bool counted = version == 5 || (version == 6 && self->usage != USAGE_PLAIN);
    struct cursor fields = counted ? cursor_part(cursor, cursor_u8(cursor)) : *cursor;
    gpg_error_t err = cursor->flawed || fields.flawed ? gpg_error(GPG_ERR_INV_PACKET) : 0;
    if (!err && self->usage != USAGE_PLAIN)
        err = parse_protection(self, &fields);
    if (err || self->state == SECRET_DUMMY || self->state == SECRET_ON_CARD || self->state == SECRET_UNSUPPORTED)
        return err;
    if (!counted)
        *cursor = fields;
    else if (!cursor_done(&fields))
        return gpg_error(GPG_ERR_INV_PACKET);
    if (version == 5) {
        uint32_t n = cursor_u32(cursor);
        if (n != cursor->left && (self->usage != USAGE_PLAIN || cursor->left < SUM_N || n != cursor->left - SUM_N))
            return gpg_error(GPG_ERR_INV_PACKET);
    }
    size_t n = cursor->left;
    if (cursor->flawed || n > SECRET_MAX)
        return gpg_error(GPG_ERR_INV_PACKET);
    self->material = secret_from(cursor_bytes(cursor, n), n);
    return self->material ? 0 : gpg_error(GPG_ERR_ENOMEM);
}

gpg_error_t secret_key_parse(struct failure *failure, unsigned packet_type, const uint8_t *body, size_t n,
                             const struct passphrase_source *source, struct secret_key **ret)
{
    size_t public_n = 0;
    struct memory_key *self = calloc(1, sizeof *self);
    if (!self)
        return gpg_error_from_syserror();
    self->secret_key.ops = &memory_ops;
    self->source = source;
    self->packet_type = (uint8_t)packet_type;
    gpg_error_t err = key_parse(failure, packet_type, body, n, &self->secret_key.key, &public_n);
    if (err)
        goto out;
    struct cursor cursor = cursor_over(body + public_n, n - public_n);
    err = parse_secret(self, &cursor);
    if (err) {
        char fpr[2 * KEY_FPR_MAX + 1];
        key_fpr_hex(self->secret_key.key, fpr);
        fail(failure, err, "the secret part of key %s is malformed", fpr);
        goto out;
    }
    *ret = &self->secret_key;
    self = NULL;
out:
    if (self)
        memory_free(&self->secret_key);
    return err;
}

/* The four numbers of RSA as libgcrypt wants them: p < q, u = 1/p mod q. */
static gpg_error_t rsa_sexp(const struct key *key, gcry_mpi_t secrets[4], gcry_sexp_t *ret)
{
    gcry_mpi_t n = NULL, e = NULL;
    gcry_mpi_t p = secrets[1], q = secrets[2], u = secrets[3];
    const struct part *part = key->parts.part;
    gpg_error_t err = gcry_mpi_scan(&n, GCRYMPI_FMT_USG, part[0].bytes, part[0].n, NULL);
    if (!err)
        err = gcry_mpi_scan(&e, GCRYMPI_FMT_USG, part[1].bytes, part[1].n, NULL);
    if (!err && gcry_mpi_cmp(p, q) > 0) {
        gcry_mpi_swap(p, q);
        if (!gcry_mpi_invm(u, p, q))
            err = gpg_error(GPG_ERR_BAD_SECKEY);
    }
    if (!err)
        err = gcry_sexp_build(ret, NULL, "(private-key(rsa(n%m)(e%m)(d%m)(p%m)(q%m)(u%m)))", n, e, secrets[0], p, q, u);
    gcry_mpi_release(n);
    gcry_mpi_release(e);
    return err;
}

static gpg_error_t discrete_log_sexp(const struct key *key, gcry_mpi_t x, gcry_sexp_t *ret)
{
    gcry_mpi_t mpi[KEY_PARTS_MAX] = {NULL};
    gpg_error_t err = 0;
    for (unsigned i = 0; i < key->parts.n && !err; i++)
        err = gcry_mpi_scan(&mpi[i], GCRYMPI_FMT_USG, key->parts.part[i].bytes, key->parts.part[i].n, NULL);
    if (!err && key->algo == PUBKEY_DSA)
        err = gcry_sexp_build(ret, NULL, "(private-key(dsa(p%m)(q%m)(g%m)(y%m)(x%m)))", mpi[0], mpi[1], mpi[2], mpi[3],
                              x);
    else if (!err)
        err = gcry_sexp_build(ret, NULL, "(private-key(elg(p%m)(g%m)(y%m)(x%m)))", mpi[0], mpi[1], mpi[2], x);
    for (unsigned i = 0; i < KEY_PARTS_MAX; i++)
        gcry_mpi_release(mpi[i]);
    return err;
}

/* Secrets that are numbers: RSA's d, p, q, u; else one. */
static gpg_error_t numbers_to_sexp(const struct key *key, struct cursor *cursor, gcry_sexp_t *ret)
{
    bool rsa = key->parts.n == 2;
    gcry_mpi_t secrets[4] = {NULL};
    gpg_error_t err = 0;
    for (unsigned i = 0; i < (rsa ? 4u : 1u) && !err; i++) {
        size_t n;
        const uint8_t *bytes = cursor_mpi(cursor, &n);
        err = bytes && n ? gcry_mpi_scan(&secrets[i], GCRYMPI_FMT_USG, bytes, n, NULL) : gpg_error(GPG_ERR_INV_PACKET);
    }
    if (!err && !cursor_done(cursor))
        err = gpg_error(GPG_ERR_INV_PACKET);
    if (!err)
        err = rsa ? rsa_sexp(key, secrets, ret) : discrete_log_sexp(key, secrets[0], ret);
    for (unsigned i = 0; i < 4; i++)
        gcry_mpi_release(secrets[i]);
    return err;
}

/* The native secret of X25519 as the number that libgcrypt wants: most significant octet first, clamped (RFC 7748 5).
 */
static void clamp_25519(uint8_t *secret)
{
    for (unsigned i = 0; i < 16; i++) {
        uint8_t octet = secret[i];
        secret[i] = secret[31 - i];
        secret[31 - i] = octet;
    }
    secret[0] = (uint8_t)((secret[0] & 0x7F) | 0x40);
    secret[31] &= 0xF8;
}

/* Whether D is the secret of an Ed25519 key: libgcrypt makes the point from it. A fifth of what a signature and its
 * verification cost. */
static gpg_error_t check_ed25519(const struct key *key, const struct secret *d)
{
    const struct part *point = &key->parts.part[0];
    gcry_sexp_t secret = NULL;
    gcry_ctx_t curve = NULL;
    gcry_mpi_t made = NULL;
    unsigned bits = 0;
    gpg_error_t err =
        gcry_sexp_build(&secret, NULL, "(private-key(ecc(curve Ed25519)(flags eddsa)(d%b)))", (int)d->n, d->bytes);
    if (!err)
        err = gcry_mpi_ec_new(&curve, secret, NULL);
    if (!err && !(made = gcry_mpi_ec_get_mpi("q@eddsa", curve, 1)))
        err = gpg_error(GPG_ERR_ENOMEM);
    const uint8_t *octets = made ? gcry_mpi_get_opaque(made, &bits) : NULL;
    if (!err &&
        (!octets || bits != 8u * ED25519_N || point->n != ED25519_N || memcmp(point->bytes, octets, ED25519_N) != 0))
        err = gpg_error(GPG_ERR_BAD_SECKEY);
    gcry_mpi_release(made);
    gcry_ctx_release(curve);
    gcry_sexp_release(secret);
    return err;
}

static bool is_ed25519(const struct key *key)
{
    return key->curve && key->curve->kind == CURVE_EDWARDS && key->curve->octets == ED25519_N;
}

/* Secrets on curves: one string, of the curve's size once leading zeros that MPIs drop are back. */
static gpg_error_t curve_to_sexp(const struct key *key, struct cursor *cursor, gcry_sexp_t *ret)
{
    const struct curve *curve = key->curve;
    bool native = key->algo >= PUBKEY_X25519 && key->algo <= PUBKEY_ED448;
    size_t n = curve->octets;
    const uint8_t *bytes = native ? cursor_bytes(cursor, n) : cursor_mpi(cursor, &n);
    if (!bytes || n == 0 || !cursor_done(cursor))
        return gpg_error(GPG_ERR_INV_PACKET);
    while (n > curve->octets && bytes[0] == 0) {
        bytes++;
        n--;
    }
    if (n > curve->octets)
        return gpg_error(GPG_ERR_INV_PACKET);
    struct secret *d = secret_new(curve->octets);
    if (!d)
        return gpg_error(GPG_ERR_ENOMEM);
    memcpy(d->bytes + curve->octets - n, bytes, n);
    if (key->algo == PUBKEY_X25519)
        clamp_25519(d->bytes);
    const struct part *point = &key->parts.part[0];
    int point_n = (int)point->n, d_n = (int)d->n;
    gpg_error_t err = is_ed25519(key) ? check_ed25519(key, d) : 0;
    if (err)
        goto out;
    if (curve->octets != 32 || curve->kind == CURVE_WEIERSTRASS)
        err = gcry_sexp_build(ret, NULL, "(private-key(ecc(curve%s)(q%b)(d%b)))", curve->name, point_n, point->bytes,
                              d_n, d->bytes);
    else
        err =
            gcry_sexp_build(ret, NULL, "(private-key(ecc(curve%s)(flags%s)(q%b)(d%b)))", curve->name,
                            curve->kind == CURVE_EDWARDS ? "eddsa" : "djb-tweak", point_n, point->bytes, d_n, d->bytes);
out:
    secret_free(d);
    return err;
}

/* Whether the secret and the public part belong together. libgcrypt compares them, but for EdDSA: there the point made
 * from the secret tells, or a signature made for nobody (libgcrypt 1.10 makes no Ed448 point). */
static gpg_error_t test_key(const struct key *key, gcry_sexp_t secret)
{
    static const uint8_t digest[64];
    gcry_sexp_t public_key = NULL, data = NULL, value = NULL;
    if (is_ed25519(key))
        return 0; /* curve_to_sexp compared them */
    gpg_error_t err = gcry_pk_testkey(secret);
    if (err || !key->curve || key->curve->kind != CURVE_EDWARDS)
        goto out;
    err = key_point_check(key);
    if (!err)
        err = key_sexp(key, &public_key);
    if (!err)
        err = pubkey_digest_sexp(key, DIGEST_SHA512, digest, sizeof digest, &data);
    if (!err)
        err = gcry_pk_sign(&value, data, secret);
    if (!err)
        err = gcry_pk_verify(value, data, public_key);
out:
    gcry_sexp_release(public_key);
    gcry_sexp_release(data);
    gcry_sexp_release(value);
    return err ? gpg_error(GPG_ERR_BAD_SECKEY) : 0;
}

/* PLAIN without its checksum. A secret that does not fit the public part could leak when used with it. */
static gpg_error_t build(const struct key *key, const struct secret *plain, gcry_sexp_t *ret)
{
    gcry_sexp_t sexp = NULL;
    struct cursor cursor = cursor_over(plain->bytes, plain->n);
    gpg_error_t err = key->curve ? curve_to_sexp(key, &cursor, &sexp) : numbers_to_sexp(key, &cursor, &sexp);
    if (!err)
        err = test_key(key, sexp);
    if (err) {
        gcry_sexp_release(sexp);
        return err;
    }
    *ret = sexp;
    return 0;
}

/* Takes the 16-bit sum off the end. */
static bool check_sum(struct secret *plain)
{
    if (plain->n < SUM_N)
        return false;
    plain->n -= SUM_N;
    uint16_t sum = 0;
    for (size_t i = 0; i < plain->n; i++)
        sum = (uint16_t)(sum + plain->bytes[i]);
    uint8_t octets[SUM_N];
    put_be16(octets, sum);
    return bytes_equal_secretly(octets, plain->bytes + plain->n, SUM_N);
}

static bool check_sha1(struct secret *plain)
{
    uint8_t digest[SHA1_N];
    if (plain->n < SHA1_N)
        return false;
    plain->n -= SHA1_N;
    gcry_md_hash_buffer(GCRY_MD_SHA1, digest, plain->bytes, plain->n);
    return bytes_equal_secretly(digest, plain->bytes + plain->n, SHA1_N);
}

static gpg_error_t decrypt_cfb(const struct memory_key *self, const struct secret *kek, struct secret *plain)
{
    gcry_cipher_hd_t cipher = NULL;
    gpg_error_t err =
        gcry_cipher_open(&cipher, algo_cipher(self->cipher)->gcry, GCRY_CIPHER_MODE_CFB, GCRY_CIPHER_SECURE);
    if (!err)
        err = gcry_cipher_setkey(cipher, kek->bytes, kek->n);
    if (!err)
        err = gcry_cipher_setiv(cipher, self->iv, self->iv_n);
    if (!err)
        err = gcry_cipher_decrypt(cipher, plain->bytes, plain->n, NULL, 0);
    gcry_cipher_close(cipher);
    if (!err && !(self->usage == USAGE_SHA1 ? check_sha1(plain) : check_sum(plain)))
        err = gpg_error(GPG_ERR_BAD_PASSPHRASE);
    return err;
}

static gpg_error_t decrypt_aead(const struct memory_key *self, const struct secret *kek, bool with_data,
                                struct secret *plain)
{
    const struct key *key = self->secret_key.key;
    gcry_cipher_hd_t cipher = NULL;
    uint8_t tag[AEAD_TAG];
    uint8_t type = (uint8_t)(0xC0 | self->packet_type);
    if (plain->n < AEAD_TAG)
        return gpg_error(GPG_ERR_BAD_PASSPHRASE);
    plain->n -= AEAD_TAG;
    memcpy(tag, plain->bytes + plain->n, sizeof tag);
    struct secret *data = secret_new(1 + key->body_n);
    if (!data)
        return gpg_error(GPG_ERR_ENOMEM);
    data->bytes[0] = type;
    memcpy(data->bytes + 1, key->body, key->body_n);
    gpg_error_t err = gcry_cipher_open(&cipher, algo_cipher(self->cipher)->gcry, algo_aead(self->aead)->gcry_mode,
                                       GCRY_CIPHER_SECURE);
    if (!err)
        err = gcry_cipher_setkey(cipher, kek->bytes, kek->n);
    if (!err)
        err = gcry_cipher_setiv(cipher, self->iv, self->iv_n);
    if (!err && with_data)
        err = gcry_cipher_authenticate(cipher, data->bytes, data->n);
    if (!err)
        err = gcry_cipher_final(cipher);
    if (!err)
        err = gcry_cipher_decrypt(cipher, plain->bytes, plain->n, NULL, 0);
    if (!err && gcry_cipher_checktag(cipher, tag, sizeof tag))
        err = gpg_error(GPG_ERR_BAD_PASSPHRASE);
    gcry_cipher_close(cipher);
    secret_free(data);
    return err;
}

/* The key of usage 253 (RFC 9580 5.5.3). */
static gpg_error_t expand(const struct memory_key *self, const struct secret *derived, struct secret **ret)
{
    const uint8_t info[] = {(uint8_t)(0xC0 | self->packet_type), self->secret_key.key->version, self->cipher,
                            self->aead};
    return hkdf(DIGEST_SHA256, derived, NULL, 0, info, sizeof info, derived->n, ret);
}

/* One way of decryption; LEGACY: usage 253 as an early draft had it, without HKDF and associated data, which is still
 * found in keys of version 4 (OpenPGP.js before 6) and 5. */
static gpg_error_t decrypt_once(const struct memory_key *self, const struct secret *derived, bool legacy,
                                struct secret **ret)
{
    struct secret *kek = NULL;
    struct secret *plain = secret_from(self->material->bytes, self->material->n);
    gpg_error_t err = plain ? 0 : gpg_error(GPG_ERR_ENOMEM);
    if (!err && self->usage != USAGE_AEAD)
        err = decrypt_cfb(self, derived, plain);
    else if (!err && legacy)
        err = decrypt_aead(self, derived, false, plain);
    else if (!err && !(err = expand(self, derived, &kek)))
        err = decrypt_aead(self, kek, true, plain);
    secret_free(kek);
    if (err) {
        secret_free(plain);
        return err;
    }
    *ret = plain;
    return 0;
}

static gpg_error_t try_passphrase(struct failure *failure, struct memory_key *self, const struct secret *passphrase)
{
    const struct key *key = self->secret_key.key;
    struct secret *derived = NULL, *plain = NULL;
    gpg_error_t err = s2k_derive(failure, &self->s2k, passphrase, algo_cipher(self->cipher)->key_size, NULL, &derived);
    if (err)
        goto out;
    err = decrypt_once(self, derived, false, &plain);
    if (gpg_err_code(err) == GPG_ERR_BAD_PASSPHRASE && self->usage == USAGE_AEAD && key->version < 6)
        err = decrypt_once(self, derived, true, &plain);
    if (!err)
        err = build(key, plain, &self->sexp);
    /* A sum of 16 bits is right by chance now and then, but no numbers come of it. */
    if (gpg_err_code(err) == GPG_ERR_INV_PACKET && self->usage != USAGE_AEAD && self->usage != USAGE_SHA1)
        err = gpg_error(GPG_ERR_BAD_PASSPHRASE);
out:
    secret_free(derived);
    secret_free(plain);
    return err;
}

static gpg_error_t unlock_plain(struct memory_key *self)
{
    if (self->secret_key.key->version != 6 && !check_sum(self->material))
        return gpg_error(GPG_ERR_CHECKSUM);
    return build(self->secret_key.key, self->material, &self->sexp);
}

static gpg_error_t unlock_asking(struct failure *failure, struct memory_key *self)
{
    const struct passphrase_source *source = self->source;
    if (!source)
        return gpg_error(GPG_ERR_NO_PASSPHRASE);
    gpg_error_t err = gpg_error(GPG_ERR_BAD_PASSPHRASE);
    for (unsigned attempt = 0; attempt < SECRET_KEY_ATTEMPTS && gpg_err_code(err) == GPG_ERR_BAD_PASSPHRASE;
         attempt++) {
        struct secret *passphrase = NULL;
        gpg_error_t asked = source->ask(source->context, self->secret_key.key, attempt, false, &passphrase);
        if (asked)
            return attempt && gpg_err_code(asked) == GPG_ERR_NO_PASSPHRASE ? err : asked;
        err = try_passphrase(failure, self, passphrase);
        secret_free(passphrase);
    }
    return err;
}

static gpg_error_t unlock(struct failure *failure, struct memory_key *self)
{
    const struct key *key = self->secret_key.key;
    char fpr[2 * KEY_FPR_MAX + 1];
    key_fpr_hex(key, fpr);
    if (self->sexp)
        return 0;
    if (self->state == SECRET_DUMMY)
        return fail(failure, gpg_error(GPG_ERR_NO_SECKEY), "the secret part of key %s was left out of its file", fpr);
    if (self->state == SECRET_ON_CARD)
        return fail(failure, gpg_error(GPG_ERR_NO_SECKEY), "the secret part of key %s is on a smartcard", fpr);
    if (self->state == SECRET_UNSUPPORTED)
        return fail(failure, gpg_error(GPG_ERR_NOT_SUPPORTED), "the protection of secret key %s is not supported", fpr);
    gpg_error_t err = key_usable(failure, key);
    if (err)
        return err;
    err = self->state == SECRET_PLAIN ? unlock_plain(self) : unlock_asking(failure, self);
    switch (gpg_err_code(err)) {
    case GPG_ERR_NO_ERROR:
        break;
    case GPG_ERR_BAD_PASSPHRASE:
        return fail(failure, err, "wrong passphrase for secret key %s", fpr);
    case GPG_ERR_NO_PASSPHRASE:
        return fail(failure, err, "secret key %s is locked, and there is no passphrase for it", fpr);
    case GPG_ERR_CANCELED:
        return fail(failure, err, "cancelled: no passphrase for secret key %s", fpr);
    default:
        return fail(failure, err, "secret key %s cannot be used: %s", fpr, gpg_strerror(err));
    }
    secret_free(self->material);
    self->material = NULL;
    self->state = SECRET_PLAIN;
    return 0;
}

static gpg_error_t memory_sign(struct secret_key *secret_key, struct failure *failure, enum digest_algo algo,
                               const uint8_t *digest, size_t n, gcry_sexp_t *ret_sig)
{
    struct memory_key *self = memory_key(secret_key);
    gcry_sexp_t data = NULL;
    gpg_error_t err = unlock(failure, self);
    if (err)
        return err;
    err = pubkey_digest_sexp(secret_key->key, algo, digest, n, &data);
    if (!err)
        err = gcry_pk_sign(ret_sig, data, self->sexp);
    gcry_sexp_release(data);
    if (err) {
        char fpr[2 * KEY_FPR_MAX + 1];
        key_fpr_hex(secret_key->key, fpr);
        fail(failure, err, "secret key %s cannot sign: %s", fpr, gpg_strerror(err));
    }
    return err;
}

static gpg_error_t memory_decrypt(struct secret_key *secret_key, struct failure *failure, gcry_sexp_t enc,
                                  struct secret **ret_value, bool *ret_unpadded)
{
    struct memory_key *self = memory_key(secret_key);
    gcry_sexp_t plain = NULL, token = NULL;
    gpg_error_t err = unlock(failure, self);
    if (err)
        return err;
    if (gcry_pk_decrypt(&plain, enc, self->sexp))
        return gpg_error(GPG_ERR_DECRYPT_FAILED);
    /* Without flags, libgcrypt gives RSA's and Elgamal's result as a bare number. */
    size_t n = 0;
    token = gcry_sexp_find_token(plain, "value", 0);
    const char *bytes = token ? gcry_sexp_nth_data(token, 1, &n) : gcry_sexp_nth_data(plain, 0, &n);
    struct secret *value = bytes ? secret_from(bytes, n) : NULL;
    gcry_sexp_release(token);
    gcry_sexp_release(plain);
    if (!value)
        return gpg_error(bytes ? GPG_ERR_ENOMEM : GPG_ERR_DECRYPT_FAILED);
    *ret_value = value;
    *ret_unpadded = false;
    return 0;
}

static const struct secret_key_ops memory_ops = {
    .sign = memory_sign,
    .decrypt = memory_decrypt,
    .free = memory_free,
};

bool secret_key_in_memory(const struct secret_key *secret_key)
{
    return secret_key->ops == &memory_ops;
}

enum secret_state secret_key_state(const struct secret_key *secret_key)
{
    if (secret_key->ops != &memory_ops)
        return secret_key->on_card ? SECRET_ON_CARD : SECRET_LOCKED;
    const struct memory_key *self = CONTAINER(secret_key, struct memory_key, secret_key);
    return self->state;
}

gpg_error_t secret_key_unlock(struct failure *failure, struct secret_key *secret_key)
{
    return secret_key->ops == &memory_ops ? unlock(failure, memory_key(secret_key)) : 0;
}
