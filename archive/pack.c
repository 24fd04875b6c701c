/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "pack.h"

#include "libarchive.h"

#include <archive.h>
#include <archive_entry.h>
#include <stdio.h>
#include <stdlib.h>

struct pack {
    struct sink sink;
    struct failure *failure;
    struct sink *below;
    gpg_error_t below_error; /* of BELOW: libarchive itself only says that writing failed */
    struct archive *archive;
    bool given_up; /* what libarchive still wants to write is dropped */
};

static la_ssize_t give(struct archive *archive, void *context, const void *bytes, size_t n)
{
    struct pack *pack = context;
    if (pack->given_up)
        return (la_ssize_t)n;
    pack->below_error = sink_write(pack->below, bytes, n);
    if (!pack->below_error)
        return (la_ssize_t)n;
    archive_set_error(archive, -1, "writing failed");
    return -1;
}

static gpg_error_t failed(struct pack *pack)
{
    if (pack->below_error)
        return pack->below_error;
    const char *why = archive_error_string(pack->archive);
    return fail(pack->failure, gpg_error(GPG_ERR_COMPR_FAILED), "compression with zstd failed: %s",
                why ? why : "unknown error");
}

static gpg_error_t pack_write(struct sink *sink, const void *bytes, size_t n)
{
    struct pack *pack = CONTAINER(sink, struct pack, sink);
    const uint8_t *from = bytes;
    while (n) {
        la_ssize_t taken = archive_write_data(pack->archive, from, n);
        if (taken <= 0)
            return failed(pack);
        from += taken;
        n -= (size_t)taken;
    }
    return 0;
}

static gpg_error_t pack_finish(struct sink *sink)
{
    struct pack *pack = CONTAINER(sink, struct pack, sink);
    if (archive_write_close(pack->archive) != ARCHIVE_OK || pack->below_error)
        return failed(pack);
    return sink_finish(pack->below);
}

static void pack_free(struct sink *sink)
{
    struct pack *pack = CONTAINER(sink, struct pack, sink);
    /* Freed in the middle, libarchive writes the end of a sound stream; after archive_write_fail it leaks. */
    pack->given_up = true;
    archive_write_free(pack->archive);
    sink_free(pack->below);
    free(pack);
}

static const struct sink_ops pack_ops = {.write = pack_write, .finish = pack_finish, .free = pack_free};

/* libarchive's raw format: one entry without a header. */
static int start(struct pack *pack, int level, unsigned threads)
{
    struct archive *archive = pack->archive;
    char number[16];
    struct archive_entry *entry = archive_entry_new();
    if (!entry)
        return ARCHIVE_FATAL;
    archive_entry_set_filetype(entry, AE_IFREG);
    archive_entry_set_pathname(entry, "tar");
    int result = archive_write_add_filter_zstd(archive);
    if (result == ARCHIVE_OK)
        result = archive_write_set_format_raw(archive);
    if (result == ARCHIVE_OK)
        result = archive_write_set_bytes_per_block(archive, 0);
    snprintf(number, sizeof number, "%d", level);
    if (result == ARCHIVE_OK)
        result = archive_write_set_filter_option(archive, "zstd", "compression-level", number);
    snprintf(number, sizeof number, "%u", threads);
    /* An older libarchive does not know it: then there are no threads. */
    if (result == ARCHIVE_OK)
        (void)archive_write_set_filter_option(archive, "zstd", "threads", number);
    if (result == ARCHIVE_OK)
        result = archive_write_open2(archive, pack, NULL, give, NULL, NULL);
    if (result == ARCHIVE_OK)
        result = archive_write_header(archive, entry);
    archive_entry_free(entry);
    return result;
}

gpg_error_t pack_sink_new(struct failure *failure, int level, unsigned threads, struct sink *takes_below,
                          struct sink **ret)
{
    gpg_error_t err = libarchive_load(failure);
    struct pack *pack = calloc(1, sizeof *pack);
    if (!pack || err) {
        sink_free(takes_below);
        free(pack);
        return err ? err : gpg_error(GPG_ERR_ENOMEM);
    }
    sink_init(&pack->sink, &pack_ops);
    pack->failure = failure;
    pack->below = takes_below;
    pack->archive = archive_write_new();
    err = pack->archive ? 0 : gpg_error(GPG_ERR_ENOMEM);
    if (!err && start(pack, level, threads) != ARCHIVE_OK)
        err = failed(pack);
    if (err)
        sink_free(&pack->sink);
    else
        *ret = &pack->sink;
    return err;
}
