/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "keybox.h"

#include "cursor.h"

#include <string.h>

/* Shortest blobs, octets: any at all; one with a certificate, up to its number of keys. */
#define BLOB_MIN         5
#define BLOB_OPENPGP_MIN 20

enum { BLOB_DELETED = 0, BLOB_FIRST = 1, BLOB_OPENPGP = 2, BLOB_X509 = 3 };
#define FLAG_EPHEMERAL 2
#define FLAG_FPR32     0x80

bool keybox_is(const uint8_t *bytes, size_t n)
{
    return n >= 12 && bytes[4] == BLOB_FIRST && memcmp(bytes + 8, "KBXf", 4) == 0;
}

/* Fills RET for an OpenPGP blob of N octets; false where its certificate is not inside it. */
static bool blob_open(const uint8_t *bytes, size_t n, struct keybox_blob *ret)
{
    if (n < BLOB_OPENPGP_MIN)
        return false;
    size_t offset = get_be32(bytes + 8), length = get_be32(bytes + 12);
    if (offset > n || length > n - offset)
        return false;
    *ret = (struct keybox_blob){.bytes = bytes, .n = n, .certificate = bytes + offset, .certificate_n = length};
    return true;
}

gpg_error_t keybox_next(const uint8_t *bytes, size_t n, size_t *at, struct keybox_blob *ret)
{
    while (*at < n) {
        const uint8_t *blob = bytes + *at;
        size_t left = n - *at;
        size_t length = left >= BLOB_MIN ? get_be32(blob) : 0;
        if (length < BLOB_MIN || length > left)
            return gpg_error(GPG_ERR_BAD_DATA);
        uint8_t type = blob[4];
        if (type == BLOB_OPENPGP && !(length >= 8 && get_be16(blob + 6) & FLAG_EPHEMERAL)) {
            if (!blob_open(blob, length, ret))
                return gpg_error(GPG_ERR_BAD_DATA);
            *at += length;
            return 0;
        }
        *at += length;
    }
    return gpg_error(GPG_ERR_EOF);
}

/* The index of a blob, taken apart. */
struct blob_index {
    uint8_t version;
    unsigned key_n;
    size_t key_size; /* octets of a record */
    struct cursor keys;
    unsigned uid_n;
    size_t uid_size;
    struct cursor uids;
};

static bool index_open(const struct keybox_blob *blob, struct blob_index *index)
{
    struct cursor cursor = cursor_over(blob->bytes + 16, blob->n - 16);
    index->version = blob->bytes[5];
    index->key_n = cursor_u16(&cursor);
    index->key_size = cursor_u16(&cursor);
    index->keys = cursor_part(&cursor, index->key_n * index->key_size);
    cursor_bytes(&cursor, cursor_u16(&cursor)); /* the serial number, for X.509 */
    index->uid_n = cursor_u16(&cursor);
    index->uid_size = cursor_u16(&cursor);
    index->uids = cursor_part(&cursor, index->uid_n * index->uid_size);
    return !cursor.flawed && (index->version == 1 || index->version == 2) &&
           index->key_size >= (index->version == 1 ? 28 : 36) && (!index->uid_n || index->uid_size >= 8);
}

static bool record_matches(const struct blob_index *index, const uint8_t *record, const struct key_spec *spec)
{
    bool is_long = index->version == 2 && get_be16(record + 32) & FLAG_FPR32;
    size_t fpr_n = is_long ? 32 : 20;
    switch (spec->kind) {
    case SPEC_FPR:
        return spec->id_n == fpr_n && memcmp(record, spec->id, fpr_n) == 0;
    case SPEC_KEYID: /* the last 8 octets of a short fingerprint, the first 8 of a long one */
        return memcmp(record + (is_long ? 8 : 20) - spec->id_n, spec->id, spec->id_n) == 0;
    default:
        return index->version == 1 || index->key_size < 56 || memcmp(record + 36, spec->id, spec->id_n) == 0;
    }
}

bool keybox_blob_matches(const struct keybox_blob *blob, const struct key_spec *spec)
{
    struct blob_index index;
    if (!index_open(blob, &index))
        return true;
    if (key_spec_names_key(spec)) {
        for (unsigned i = 0; i < index.key_n; i++)
            if (record_matches(&index, cursor_bytes(&index.keys, index.key_size), spec))
                return true;
        return false;
    }
    for (unsigned i = 0; i < index.uid_n; i++) {
        const uint8_t *record = cursor_bytes(&index.uids, index.uid_size);
        size_t offset = get_be32(record), length = get_be32(record + 4);
        if (offset > blob->n || length > blob->n - offset)
            return true;
        if (key_spec_matches_uid(spec, (const char *)blob->bytes + offset, length))
            return true;
    }
    return false;
}
