/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "s2k.h"

#include <gcrypt.h>
#include <string.h>

#define SALT_SIZE        8
#define ARGON2_SALT_SIZE 16
#define COUNT_MAX        65011712
#define COUNT_DEFAULT    COUNT_MAX

/* Iterated S2K hashes salt and passphrase over and over: laid out many times in a buffer of about this size, so that
 * the digest works on long runs and not on 20 octets at a time. */
#define UNROLLED 8192

static gpg_error_t parse_digest(struct failure *failure, uint8_t digest)
{
    if (!algo_digest(digest))
        return fail(failure, gpg_error(GPG_ERR_NOT_SUPPORTED),
                    "digest algorithm %u of a passphrase's key derivation is not supported", digest);
    return 0;
}

/* After the mode octet 101: digest, "GNU", the extension's number and, for a card, its serial number. */
static gpg_error_t parse_gnu(struct failure *failure, struct cursor *cursor, struct s2k *s2k)
{
    s2k->digest = cursor_u8(cursor);
    const uint8_t *magic = cursor_bytes(cursor, 3);
    s2k->gnu = cursor_u8(cursor);
    if (!magic || cursor->flawed)
        return 0;
    if (memcmp(magic, "GNU", 3) != 0 || (s2k->gnu != 1 && s2k->gnu != 2))
        return fail(failure, gpg_error(GPG_ERR_NOT_SUPPORTED), "private kind %u of key derivation is not supported",
                    S2K_GNU);
    if (s2k->gnu == 2) {
        s2k->serial_n = cursor_u8(cursor);
        const uint8_t *serial = s2k->serial_n <= sizeof s2k->serial ? cursor_bytes(cursor, s2k->serial_n) : NULL;
        if (!serial)
            cursor->flawed = true;
        else
            memcpy(s2k->serial, serial, s2k->serial_n);
    }
    return 0;
}

static gpg_error_t parse_argon2(struct failure *failure, struct cursor *cursor, struct s2k *s2k)
{
    const uint8_t *salt = cursor_bytes(cursor, ARGON2_SALT_SIZE);
    s2k->passes = cursor_u8(cursor);
    s2k->lanes = cursor_u8(cursor);
    s2k->memory_bits = cursor_u8(cursor);
    if (!salt || cursor->flawed)
        return 0;
    memcpy(s2k->salt, salt, ARGON2_SALT_SIZE);
    /* RFC 9580 3.7.1.4: at least 8 KiB a lane, and at most 2^31 KiB. */
    if (!s2k->passes || !s2k->lanes || s2k->memory_bits > 31 ||
        (UINT64_C(1) << s2k->memory_bits) < UINT64_C(8) * s2k->lanes)
        return fail(failure, gpg_error(GPG_ERR_INV_PACKET), "the parameters of Argon2 are out of range");
    return 0;
}

gpg_error_t s2k_parse(struct failure *failure, struct cursor *cursor, struct s2k *ret)
{
    struct s2k s2k = {.mode = cursor_u8(cursor)};
    gpg_error_t err = 0;
    switch (cursor->flawed ? -1 : s2k.mode) {
    case -1:
        break;
    case S2K_SIMPLE:
    case S2K_SALTED:
    case S2K_ITERATED: {
        s2k.digest = cursor_u8(cursor);
        const uint8_t *salt = s2k.mode == S2K_SIMPLE ? NULL : cursor_bytes(cursor, SALT_SIZE);
        if (salt)
            memcpy(s2k.salt, salt, SALT_SIZE);
        if (s2k.mode == S2K_ITERATED)
            s2k.count = cursor_u8(cursor);
        if (!cursor->flawed)
            err = parse_digest(failure, s2k.digest);
        break;
    }
    case S2K_ARGON2:
        err = parse_argon2(failure, cursor, &s2k);
        break;
    case S2K_GNU:
        err = parse_gnu(failure, cursor, &s2k);
        break;
    default:
        err = fail(failure, gpg_error(GPG_ERR_NOT_SUPPORTED), "kind %u of key derivation is not supported", s2k.mode);
    }
    if (cursor->flawed)
        return fail(failure, gpg_error(GPG_ERR_INV_PACKET), "a key derivation specifier is cut short");
    if (!err)
        *ret = s2k;
    return err;
}

size_t s2k_put(const struct s2k *s2k, uint8_t out[S2K_MAX])
{
    uint8_t *at = out;
    *at++ = s2k->mode;
    if (s2k->mode == S2K_ARGON2) {
        memcpy(at, s2k->salt, ARGON2_SALT_SIZE);
        at += ARGON2_SALT_SIZE;
        *at++ = s2k->passes;
        *at++ = s2k->lanes;
        *at++ = s2k->memory_bits;
        return (size_t)(at - out);
    }
    *at++ = s2k->digest;
    if (s2k->mode == S2K_SALTED || s2k->mode == S2K_ITERATED) {
        memcpy(at, s2k->salt, SALT_SIZE);
        at += SALT_SIZE;
    }
    if (s2k->mode == S2K_ITERATED)
        *at++ = s2k->count;
    if (s2k->mode == S2K_GNU) {
        memcpy(at, "GNU", 3);
        at += 3;
        *at++ = s2k->gnu;
        if (s2k->gnu == 2) {
            *at++ = s2k->serial_n;
            memcpy(at, s2k->serial, s2k->serial_n);
            at += s2k->serial_n;
        }
    }
    return (size_t)(at - out);
}

uint32_t s2k_count_octets(uint8_t code)
{
    return (16u + (code & 15u)) << ((code >> 4) + 6); /* RFC 9580 3.7.1.3 */
}

uint8_t s2k_count_code(uint32_t count)
{
    unsigned code = 0;
    while (code < 255 && s2k_count_octets((uint8_t)code) < count)
        code++;
    return (uint8_t)code;
}

void s2k_new_iterated(enum digest_algo digest, uint32_t count, struct s2k *ret)
{
    *ret = (struct s2k){.mode = S2K_ITERATED, .digest = (uint8_t)digest};
    ret->count = s2k_count_code(count ? count : COUNT_DEFAULT);
    gcry_create_nonce(ret->salt, SALT_SIZE);
}

void s2k_new_argon2(struct s2k *ret)
{
    *ret = (struct s2k){.mode = S2K_ARGON2, .passes = 3, .lanes = 4, .memory_bits = 16};
    gcry_create_nonce(ret->salt, ARGON2_SALT_SIZE);
}

static gpg_error_t derive_argon2(struct failure *failure, const struct s2k *s2k, const struct secret *passphrase,
                                 const struct s2k_limits *limits, struct secret *key)
{
    uint64_t limit = limits && limits->argon2_memory ? limits->argon2_memory : S2K_ARGON2_MEMORY_DEFAULT;
    uint64_t memory = UINT64_C(1024) << s2k->memory_bits;
    if (memory > limit)
        return fail(failure, gpg_error(GPG_ERR_RESOURCE_LIMIT),
                    "the passphrase's key derivation (Argon2) wants %llu MiB of memory, the limit is %llu MiB",
                    (unsigned long long)(memory >> 20), (unsigned long long)(limit >> 20));
    if (memory * s2k->passes > limit * S2K_ARGON2_WORK_FACTOR)
        return fail(failure, gpg_error(GPG_ERR_RESOURCE_LIMIT),
                    "the passphrase's key derivation (Argon2) wants %u passes over %llu MiB, which is beyond the limit",
                    s2k->passes, (unsigned long long)(memory >> 20));
    const unsigned long param[] = {key->n, s2k->passes, 1ul << s2k->memory_bits, s2k->lanes};
    gcry_kdf_hd_t kdf;
    gpg_error_t err = gcry_kdf_open(&kdf, GCRY_KDF_ARGON2, GCRY_KDF_ARGON2ID, param, ARRAY_SIZE(param),
                                    passphrase->bytes, passphrase->n, s2k->salt, ARGON2_SALT_SIZE, NULL, 0, NULL, 0);
    if (!err) {
        err = gcry_kdf_compute(kdf, NULL);
        if (!err)
            err = gcry_kdf_final(kdf, key->n, key->bytes);
        gcry_kdf_close(kdf);
    }
    if (err)
        return fail(failure, err, "the passphrase's key derivation (Argon2, %llu MiB) failed: %s",
                    (unsigned long long)(memory >> 20), gpg_strerror(err));
    return 0;
}

/* Modes 0, 1 and 3: as many digests as the key needs, number I over I zeros and then salt and passphrase, repeated
 * until COUNT octets have been hashed, at least once. */
static gpg_error_t derive_hashed(const struct s2k *s2k, const struct secret *passphrase, struct secret *key)
{
    const struct digest_info *info = algo_digest(s2k->digest);
    size_t salt_n = s2k->mode == S2K_SIMPLE ? 0 : SALT_SIZE;
    size_t unit = salt_n + passphrase->n;
    size_t repeats = s2k->mode == S2K_ITERATED && unit && unit < UNROLLED ? UNROLLED / unit : 1;
    size_t total = s2k->mode == S2K_ITERATED ? s2k_count_octets(s2k->count) : 0;
    if (total < unit)
        total = unit;
    struct secret *text = secret_new(unit * repeats);
    gcry_md_hd_t md = NULL;
    gpg_error_t err = text ? gcry_md_open(&md, info->gcry, GCRY_MD_FLAG_SECURE) : gpg_error(GPG_ERR_ENOMEM);
    if (err)
        goto out;
    for (size_t i = 0; i < repeats; i++) {
        memcpy(text->bytes + i * unit, s2k->salt, salt_n);
        memcpy(text->bytes + i * unit + salt_n, passphrase->bytes, passphrase->n);
    }
    unsigned number = 0;
    for (size_t done = 0; done < key->n; number++) {
        gcry_md_reset(md);
        for (unsigned i = 0; i < number; i++)
            gcry_md_putc(md, 0);
        for (size_t left = total; left;) {
            size_t part = left < text->n ? left : text->n;
            gcry_md_write(md, text->bytes, part);
            left -= part;
        }
        size_t part = key->n - done < info->size ? key->n - done : info->size;
        memcpy(key->bytes + done, gcry_md_read(md, info->gcry), part);
        done += part;
    }
out:
    gcry_md_close(md);
    secret_free(text);
    return err;
}

gpg_error_t s2k_derive(struct failure *failure, const struct s2k *s2k, const struct secret *passphrase, size_t n,
                       const struct s2k_limits *limits, struct secret **ret)
{
    if (s2k->mode == S2K_GNU)
        return fail(failure, gpg_error(GPG_ERR_NO_SECKEY), "the secret part of the key is not here");
    if (s2k->mode != S2K_ARGON2 && !algo_digest(s2k->digest))
        return parse_digest(failure, s2k->digest);
    struct secret *key = secret_new(n);
    if (!key)
        return fail(failure, gpg_error(GPG_ERR_ENOMEM), "out of secure memory");
    gpg_error_t err = s2k->mode == S2K_ARGON2 ? derive_argon2(failure, s2k, passphrase, limits, key)
                                              : derive_hashed(s2k, passphrase, key);
    if (err) {
        secret_free(key);
        return err;
    }
    *ret = key;
    return 0;
}
