/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "hash_tap.h"

#include <stdlib.h>
#include <string.h>

#define SALT_MAX 64

struct digest {
    gcry_md_hd_t md;
    enum digest_algo algo;
    uint8_t salt[SALT_MAX];
    size_t salt_n;
    bool text;
};

struct hash_set {
    struct digest digest[HASH_SET_MAX];
    unsigned n;
    uint64_t bytes;
    bool after_cr; /* the last byte was CR: a LF that follows belongs to it */
};

struct hash_set *hash_set_new(void)
{
    return calloc(1, sizeof(struct hash_set));
}

void hash_set_free(struct hash_set *set)
{
    if (!set)
        return;
    for (unsigned i = 0; i < set->n; i++)
        gcry_md_close(set->digest[i].md);
    free(set);
}

gpg_error_t hash_set_add(struct hash_set *set, enum digest_algo algo, const void *salt, size_t salt_n, bool text,
                         unsigned *ret_number)
{
    const struct digest_info *info = algo_digest(algo);
    if (!info)
        return gpg_error(GPG_ERR_DIGEST_ALGO);
    if (set->bytes)
        return gpg_error(GPG_ERR_INV_STATE);
    if (salt_n > SALT_MAX)
        return gpg_error(GPG_ERR_TOO_LARGE);
    for (unsigned i = 0; i < set->n; i++) {
        const struct digest *digest = &set->digest[i];
        if (digest->algo == algo && digest->text == text && digest->salt_n == salt_n &&
            (!salt_n || !memcmp(digest->salt, salt, salt_n))) {
            *ret_number = i;
            return 0;
        }
    }
    if (set->n == HASH_SET_MAX)
        return gpg_error(GPG_ERR_TOO_MANY);
    struct digest *digest = &set->digest[set->n];
    gpg_error_t err = gcry_md_open(&digest->md, info->gcry, 0);
    if (err)
        return err;
    digest->algo = algo;
    digest->text = text;
    digest->salt_n = salt_n;
    if (salt_n) {
        memcpy(digest->salt, salt, salt_n);
        gcry_md_write(digest->md, salt, salt_n);
    }
    *ret_number = set->n++;
    return 0;
}

/* Hashes N bytes with every line end (LF or CR LF) as CR LF. A CR alone stays as it is: gpg and RFC 9580 5.2.4 convert
 * line endings, and a lone CR is none where this program runs. AFTER_CR: the byte before was CR. */
static void update_text(gcry_md_hd_t md, const uint8_t *bytes, size_t n, bool after_cr)
{
    size_t from = 0;
    for (size_t i = 0; i < n; i++) {
        const uint8_t *lf = memchr(bytes + i, '\n', n - i);
        if (!lf)
            break;
        i = (size_t)(lf - bytes);
        bool has_cr = i ? bytes[i - 1] == '\r' : after_cr;
        if (has_cr)
            continue;
        gcry_md_write(md, bytes + from, i - from);
        gcry_md_write(md, "\r", 1);
        from = i;
    }
    gcry_md_write(md, bytes + from, n - from);
}

void hash_set_update(struct hash_set *set, const void *bytes, size_t n)
{
    if (!n)
        return;
    for (unsigned i = 0; i < set->n; i++) {
        if (set->digest[i].text)
            update_text(set->digest[i].md, bytes, n, set->after_cr);
        else
            gcry_md_write(set->digest[i].md, bytes, n);
    }
    set->after_cr = ((const uint8_t *)bytes)[n - 1] == '\r';
    set->bytes += n;
}

gpg_error_t hash_set_copy(const struct hash_set *set, unsigned number, gcry_md_hd_t *ret)
{
    if (number >= set->n)
        return gpg_error(GPG_ERR_INV_INDEX);
    return gcry_md_copy(ret, set->digest[number].md);
}

uint64_t hash_set_bytes(const struct hash_set *set)
{
    return set->bytes;
}

static gpg_error_t hash_block(void *context, unsigned worker, struct block *block)
{
    (void)worker;
    if (block->n_in)
        hash_set_update(context, block->in, block->n_in);
    return 0;
}

struct block_job hash_set_job(struct hash_set *set, size_t block_size)
{
    return (struct block_job){.context = set, .block_size = block_size, .work = hash_block};
}

struct tap_source {
    struct source source;
    struct hash_set *set; /* borrowed */
    struct source *below;
    const uint8_t *lent;
};

static gpg_error_t tap_peek(struct source *source, const void **ret_bytes, size_t *ret_n)
{
    struct tap_source *tap = CONTAINER(source, struct tap_source, source);
    gpg_error_t err = source_peek(tap->below, ret_bytes, ret_n);
    if (!err)
        tap->lent = *ret_bytes;
    return err;
}

/* Hashes here, not in peek: only what is taken, and each byte once. */
static void tap_consume(struct source *source, size_t n)
{
    struct tap_source *tap = CONTAINER(source, struct tap_source, source);
    hash_set_update(tap->set, tap->lent, n);
    tap->lent += n;
    source_consume(tap->below, n);
}

static gpg_error_t tap_source_finish(struct source *source)
{
    struct tap_source *tap = CONTAINER(source, struct tap_source, source);
    for (;;) {
        const void *bytes;
        size_t n;
        gpg_error_t err = tap_peek(source, &bytes, &n);
        if (err)
            return err;
        if (!n)
            return source_finish(tap->below);
        tap_consume(source, n);
    }
}

static void tap_source_free(struct source *source)
{
    struct tap_source *tap = CONTAINER(source, struct tap_source, source);
    source_free(tap->below);
    free(tap);
}

static const struct source_ops tap_source_ops = {
    .peek = tap_peek, .consume = tap_consume, .finish = tap_source_finish, .free = tap_source_free};

gpg_error_t hash_tap_source_new(struct hash_set *set, struct source *takes_below, struct source **ret)
{
    struct tap_source *tap = calloc(1, sizeof *tap);
    if (!tap) {
        gpg_error_t err = gpg_error_from_syserror();
        source_free(takes_below);
        return err;
    }
    source_init(&tap->source, &tap_source_ops);
    tap->set = set;
    tap->below = takes_below;
    *ret = &tap->source;
    return 0;
}
