/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "unpack.h"

#include "libarchive.h"

#include <archive_entry.h>
#include <stdlib.h>
#include <string.h>

struct unpack {
    struct source source;
    struct failure *failure;
    const char *kind;
    struct feed feed;
    struct archive *archive;
    bool open;
    bool ended;
    const uint8_t *block; /* libarchive's, until the next read */
    size_t left;
};

const char *unpack_kind(const uint8_t *bytes, size_t n)
{
    static const struct {
        const char *name;
        const char *magic;
        size_t length;
    } kinds[] = {
        {"gzip", "\x1f\x8b", 2},
        {"bzip2", "BZh", 3},
        {"xz",
         "\xfd"
         "7zXZ\0",
         6},
        {"zstd", "\x28\xb5\x2f\xfd", 4},
    };
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
        if (n >= kinds[i].length && !memcmp(bytes, kinds[i].magic, kinds[i].length))
            return kinds[i].name;
    return NULL;
}

static gpg_error_t failed(struct unpack *unpack)
{
    if (unpack->feed.error)
        return unpack->feed.error;
    if (unpack->feed.ended)
        return fail(unpack->failure, gpg_error(GPG_ERR_TRUNCATED), "the %s-compressed content is cut off",
                    unpack->kind);
    const char *why = archive_error_string(unpack->archive);
    return fail(unpack->failure, gpg_error(GPG_ERR_BAD_DATA), "the %s-compressed content is damaged: %s", unpack->kind,
                why ? why : "unknown error");
}

static gpg_error_t open_archive(struct unpack *unpack)
{
    struct archive *archive = unpack->archive;
    struct archive_entry *entry;
    unpack->open = true;
    if (feed_open(&unpack->feed, archive, false) != ARCHIVE_OK)
        return failed(unpack);
    int result = archive_read_next_header(archive, &entry);
    if (result == ARCHIVE_EOF)
        unpack->ended = true;
    else if (result != ARCHIVE_OK && result != ARCHIVE_WARN)
        return failed(unpack);
    return 0;
}

static gpg_error_t unpack_peek(struct source *source, const void **ret_bytes, size_t *ret_n)
{
    struct unpack *unpack = CONTAINER(source, struct unpack, source);
    if (!unpack->open) {
        gpg_error_t error = open_archive(unpack);
        if (error)
            return error;
    }
    while (!unpack->left && !unpack->ended) {
        const void *block;
        la_int64_t offset;
        int result = archive_read_data_block(unpack->archive, &block, &unpack->left, &offset);
        if (result == ARCHIVE_EOF) {
            unpack->ended = true;
            unpack->left = 0;
        } else if (result != ARCHIVE_OK) {
            unpack->left = 0;
            return failed(unpack);
        } else {
            unpack->block = block;
        }
    }
    *ret_bytes = unpack->block;
    *ret_n = unpack->left;
    return 0;
}

static void unpack_consume(struct source *source, size_t n)
{
    struct unpack *unpack = CONTAINER(source, struct unpack, source);
    unpack->block += n;
    unpack->left -= n;
}

static gpg_error_t unpack_finish(struct source *source)
{
    bool trailing;
    return unpack_drain(source, &trailing);
}

static void unpack_free(struct source *source)
{
    struct unpack *unpack = CONTAINER(source, struct unpack, source);
    archive_read_free(unpack->archive);
    free(unpack);
}

gpg_error_t unpack_drain(struct source *source, bool *ret_trailing)
{
    struct unpack *unpack = CONTAINER(source, struct unpack, source);
    bool trailing = !feed_settle(&unpack->feed, (uint64_t)archive_filter_bytes(unpack->archive, -1));
    for (;;) {
        const uint8_t *bytes;
        size_t n;
        gpg_error_t error = feed_next(&unpack->feed, &bytes, &n);
        if (error)
            return error;
        if (!n)
            break;
        for (size_t i = 0; i < n && !trailing; i++)
            trailing = bytes[i] != 0;
    }
    *ret_trailing = trailing;
    return 0;
}

gpg_error_t unpack_source_new(const struct feed *below, struct failure *failure, const char *kind, struct source **ret)
{
    static const struct source_ops ops = {
        .peek = unpack_peek, .consume = unpack_consume, .finish = unpack_finish, .free = unpack_free};
    gpg_error_t error = libarchive_load(failure);
    if (error)
        return error;
    struct unpack *unpack = calloc(1, sizeof *unpack);
    if (!unpack || !(unpack->archive = archive_read_new())) {
        free(unpack);
        return gpg_error(GPG_ERR_ENOMEM);
    }
    source_init(&unpack->source, &ops);
    unpack->failure = failure;
    unpack->kind = kind;
    unpack->feed = *below;
    archive_read_support_filter_gzip(unpack->archive);
    archive_read_support_filter_bzip2(unpack->archive);
    archive_read_support_filter_xz(unpack->archive);
    archive_read_support_filter_zstd(unpack->archive);
    archive_read_support_format_raw(unpack->archive);
    archive_read_support_format_empty(unpack->archive);
    *ret = &unpack->source;
    return 0;
}
