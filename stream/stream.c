/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "stream.h"

#include <string.h>

void sink_init(struct sink *sink, const struct sink_ops *ops)
{
    *sink = (struct sink){.ops = ops};
}

void source_init(struct source *source, const struct source_ops *ops)
{
    *source = (struct source){.ops = ops};
}

gpg_error_t sink_write(struct sink *sink, const void *bytes, size_t n)
{
    if (sink->error)
        return sink->error;
    if (sink->finished)
        return gpg_error(GPG_ERR_INV_STATE);
    if (n)
        sink->error = sink->ops->write(sink, bytes, n);
    return sink->error;
}

gpg_error_t sink_room(struct sink *sink, void **ret_room, size_t *ret_n)
{
    void *room = NULL;
    size_t n = 0;
    if (sink->error)
        return sink->error;
    if (sink->finished)
        return gpg_error(GPG_ERR_INV_STATE);
    if (sink->ops->room)
        sink->error = sink->ops->room(sink, &room, &n);
    if (sink->error)
        return sink->error;
    *ret_room = room;
    *ret_n = n;
    return 0;
}

gpg_error_t sink_filled(struct sink *sink, size_t n)
{
    if (sink->error)
        return sink->error;
    if (n)
        sink->error = sink->ops->filled(sink, n);
    return sink->error;
}

gpg_error_t sink_settle(struct sink *sink)
{
    if (sink->error)
        return sink->error;
    if (sink->finished)
        return gpg_error(GPG_ERR_INV_STATE);
    sink->error = sink->ops->settle ? sink->ops->settle(sink) : gpg_error(GPG_ERR_NOT_IMPLEMENTED);
    return sink->error;
}

gpg_error_t sink_finish(struct sink *sink)
{
    if (!sink->error && !sink->finished) {
        sink->finished = true;
        sink->error = sink->ops->finish(sink);
    }
    return sink->error;
}

void sink_free(struct sink *sink)
{
    if (sink)
        sink->ops->free(sink);
}

gpg_error_t source_peek(struct source *source, const void **ret_bytes, size_t *ret_n)
{
    if (source->error)
        return source->error;
    if (source->finished)
        return gpg_error(GPG_ERR_INV_STATE);
    const void *bytes = NULL;
    size_t n = 0;
    source->error = source->ops->peek(source, &bytes, &n);
    if (source->error)
        return source->error;
    *ret_bytes = bytes;
    *ret_n = n;
    return 0;
}

void source_consume(struct source *source, size_t n)
{
    if (n)
        source->ops->consume(source, n);
}

static gpg_error_t read_and_drop(struct source *source, uint64_t n)
{
    while (n) {
        const void *bytes;
        size_t lent;
        gpg_error_t error = source_peek(source, &bytes, &lent);
        if (error)
            return error;
        if (!lent)
            return source->error = gpg_error(GPG_ERR_TRUNCATED);
        size_t part = lent < n ? lent : (size_t)n;
        source_consume(source, part);
        n -= part;
    }
    return 0;
}

gpg_error_t source_skip(struct source *source, uint64_t n)
{
    if (source->error)
        return source->error;
    if (source->finished)
        return gpg_error(GPG_ERR_INV_STATE);
    if (!n)
        return 0;
    if (!source->ops->skip)
        return read_and_drop(source, n);
    source->skipped = true;
    source->error = source->ops->skip(source, n);
    return source->error;
}

gpg_error_t source_drain(struct source *source)
{
    for (;;) {
        const void *bytes;
        size_t n = 0;
        gpg_error_t error = source->ops->peek(source, &bytes, &n);
        if (error || !n)
            return error;
        source->ops->consume(source, n);
    }
}

gpg_error_t source_finish(struct source *source)
{
    if (!source->error && !source->finished) {
        source->finished = true;
        source->error = source->ops->finish(source);
    }
    return source->error;
}

void source_free(struct source *source)
{
    if (source)
        source->ops->free(source);
}

/* 1 … N bytes from SOURCE, *RET_GOT = 0 at the end. */
static gpg_error_t read_some(struct source *source, void *to, size_t n, size_t *ret_got)
{
    if (source->ops->read && !source->error && !source->finished) {
        size_t got = 0;
        source->error = source->ops->read(source, to, n, &got);
        *ret_got = source->error ? 0 : got;
        return source->error;
    }
    const void *bytes;
    size_t lent;
    *ret_got = 0;
    gpg_error_t error = source_peek(source, &bytes, &lent);
    if (error || !lent)
        return error;
    *ret_got = lent < n ? lent : n;
    memcpy(to, bytes, *ret_got);
    source_consume(source, *ret_got);
    return 0;
}

gpg_error_t source_read(struct source *source, void *to, size_t n, size_t *ret_got)
{
    size_t total = 0;
    gpg_error_t error = 0;
    while (total < n) {
        size_t got;
        error = read_some(source, (uint8_t *)to + total, n - total, &got);
        if (error || !got)
            break;
        total += got;
    }
    *ret_got = total;
    return error;
}

gpg_error_t pump(struct source *source, struct sink *sink, uint64_t *ret_moved)
{
    uint64_t moved = 0;
    gpg_error_t error;
    for (;;) {
        const void *bytes;
        size_t n;
        error = source_peek(source, &bytes, &n);
        if (error || !n)
            break;
        error = sink_write(sink, bytes, n);
        if (error)
            break;
        source_consume(source, n);
        moved += n;
    }
    if (ret_moved)
        *ret_moved = moved;
    return error;
}
