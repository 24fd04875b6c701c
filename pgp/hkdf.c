/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "hkdf.h"

#include <gcrypt.h>
#include <string.h>

#define DIGEST_SIZE_MAX 64

static gpg_error_t hmac_open(const struct digest_info *info, const void *key, size_t key_n, gcry_md_hd_t *ret)
{
    gcry_md_hd_t md;
    gpg_error_t err = gcry_md_open(&md, info->gcry, GCRY_MD_FLAG_HMAC | GCRY_MD_FLAG_SECURE);
    if (err)
        return err;
    err = gcry_md_setkey(md, key, key_n);
    if (err) {
        gcry_md_close(md);
        return err;
    }
    *ret = md;
    return 0;
}

/* RFC 5869 2.2: the pseudorandom key. */
static gpg_error_t extract(const struct digest_info *digest, const struct secret *input, const void *salt,
                           size_t salt_n, struct secret **ret)
{
    static const uint8_t zeros[DIGEST_SIZE_MAX];
    gcry_md_hd_t md;
    gpg_error_t err = hmac_open(digest, salt_n ? salt : zeros, salt_n ? salt_n : digest->size, &md);
    if (err)
        return err;
    gcry_md_write(md, input->bytes, input->n);
    struct secret *prk = secret_from(gcry_md_read(md, digest->gcry), digest->size);
    gcry_md_close(md);
    if (!prk)
        return gpg_error(GPG_ERR_ENOMEM);
    *ret = prk;
    return 0;
}

gpg_error_t hkdf(enum digest_algo algo, const struct secret *input, const void *salt, size_t salt_n, const void *info,
                 size_t info_n, size_t n, struct secret **ret)
{
    struct secret *prk = NULL;
    struct secret *output = NULL;
    gcry_md_hd_t md = NULL;
    gpg_error_t err;
    const struct digest_info *digest = algo_digest(algo);
    if (!digest)
        return gpg_error(GPG_ERR_DIGEST_ALGO);
    if (n > 255u * digest->size)
        return gpg_error(GPG_ERR_INV_KEYLEN);
    err = extract(digest, input, salt, salt_n, &prk);
    if (err)
        goto out;
    output = secret_new(n);
    if (!output) {
        err = gpg_error(GPG_ERR_ENOMEM);
        goto out;
    }
    err = hmac_open(digest, prk->bytes, prk->n, &md);
    if (err)
        goto out;
    /* RFC 5869 2.3: T(i) = HMAC(T(i-1) info i) */
    uint8_t counter = 0;
    for (size_t done = 0; done < n;) {
        size_t part = n - done < digest->size ? n - done : digest->size;
        gcry_md_reset(md);
        if (counter)
            gcry_md_write(md, output->bytes + done - digest->size, digest->size);
        gcry_md_write(md, info, info_n);
        counter++;
        gcry_md_write(md, &counter, 1);
        memcpy(output->bytes + done, gcry_md_read(md, digest->gcry), part);
        done += part;
    }
    *ret = output;
    output = NULL;
out:
    gcry_md_close(md);
    secret_free(output);
    secret_free(prk);
    return err;
}
