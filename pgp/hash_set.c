/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "hash_set.h"

#include "literal.h"

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

/* Where a stream of packets is: before the literal packet, in its parts, behind it. */
struct place {
    size_t before;     /* octets before its first length, of those that are still to come */
    size_t fields;     /* octets of the body before the content, likewise */
    uint32_t left;     /* octets of the part, likewise */
    uint8_t length[5]; /* of the next part, as far as it came */
    uint8_t length_n;
    bool last; /* no part follows this one */
};

struct hash_set {
    struct digest digest[HASH_SET_MAX];
    unsigned n;
    uint64_t bytes;
    bool after_cr; /* the last byte was CR: a LF that follows belongs to it */
    struct place place;
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

void hash_set_expect_literal(struct hash_set *set, size_t skip)
{
    set->place = (struct place){.before = skip + 1, .fields = LITERAL_START_SIZE};
}

/* Takes one octet of a part's length (RFC 9580 4.2.1). */
static void place_length(struct place *place, uint8_t octet)
{
    place->length[place->length_n++] = octet;
    const uint8_t *length = place->length;
    const unsigned n = place->length_n;
    if (length[0] >= 224 && length[0] < 255)
        place->left = UINT32_C(1) << (length[0] & 31);
    else if (length[0] < 192)
        place->left = length[0];
    else if (length[0] < 224 && n == 2)
        place->left = ((length[0] - 192U) << 8) + length[1] + 192;
    else if (n == 5)
        place->left = get_be32(length + 1);
    else
        return;
    place->last = length[0] < 224 || length[0] == 255;
    place->length_n = 0;
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static void look_at_packets(void *context, const struct block *block)
{
    struct hash_set *set = context;
    struct place *place = &set->place;
    const uint8_t *at = block->in;
    const uint8_t *const end = at + block->n_in;
    while (at < end && (place->before || place->left || !place->last)) {
        size_t step = 1;
        if (place->before) {
            step = least(place->before, (size_t)(end - at));
            place->before -= step;
        } else if (place->left) {
            step = least(place->left, (size_t)(end - at));
            const size_t fields = least(place->fields, step);
            hash_set_update(set, at + fields, step - fields);
            place->fields -= fields;
            place->left -= (uint32_t)step;
        } else {
            place_length(place, *at);
        }
        at += step;
    }
}

struct block_observer hash_set_observer(struct hash_set *set)
{
    return (struct block_observer){.context = set, .look = look_at_packets};
}
