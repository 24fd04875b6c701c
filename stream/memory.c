/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "stream.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct memory_source {
    struct source source;
    const uint8_t *bytes; /* borrowed */
    size_t n;             /* left at BYTES */
    size_t step;
};

static gpg_error_t memory_source_peek(struct source *source, const void **ret_bytes, size_t *ret_n)
{
    struct memory_source *memory = CONTAINER(source, struct memory_source, source);
    *ret_bytes = memory->bytes;
    *ret_n = memory->n < memory->step ? memory->n : memory->step;
    return 0;
}

static void memory_source_consume(struct source *source, size_t n)
{
    struct memory_source *memory = CONTAINER(source, struct memory_source, source);
    assert(n <= memory->n);
    memory->bytes += n;
    memory->n -= n;
}

static gpg_error_t memory_source_finish(struct source *source)
{
    (void)source;
    return 0;
}

static void memory_source_free(struct source *source)
{
    free(CONTAINER(source, struct memory_source, source));
}

static const struct source_ops memory_source_ops = {
    .peek = memory_source_peek,
    .consume = memory_source_consume,
    .finish = memory_source_finish,
    .free = memory_source_free,
};

struct source *memory_source_new(const void *bytes, size_t n, size_t step)
{
    struct memory_source *memory = calloc(1, sizeof *memory);
    if (!memory)
        return NULL;
    source_init(&memory->source, &memory_source_ops);
    memory->bytes = n ? bytes : (const uint8_t *)"";
    memory->n = n;
    memory->step = step ? step : SIZE_MAX;
    return &memory->source;
}

struct memory_sink {
    struct sink sink;
    uint8_t *bytes;
    size_t n;
    size_t capacity;
    size_t limit; /* of n */
};

static gpg_error_t memory_sink_write(struct sink *sink, const void *bytes, size_t n)
{
    struct memory_sink *memory = CONTAINER(sink, struct memory_sink, sink);
    if (n > memory->limit - memory->n)
        return gpg_error(GPG_ERR_TOO_LARGE);
    if (n > memory->capacity - memory->n) {
        size_t capacity = memory->capacity < 256 ? 256 : memory->capacity;
        while (capacity - memory->n < n)
            capacity = capacity > SIZE_MAX / 2 ? SIZE_MAX : capacity * 2;
        if (capacity > memory->limit)
            capacity = memory->limit;
        uint8_t *grown = realloc(memory->bytes, capacity);
        if (!grown)
            return gpg_error_from_syserror();
        memory->bytes = grown;
        memory->capacity = capacity;
    }
    memcpy(memory->bytes + memory->n, bytes, n);
    memory->n += n;
    return 0;
}

static gpg_error_t memory_sink_finish(struct sink *sink)
{
    (void)sink;
    return 0;
}

static void memory_sink_free(struct sink *sink)
{
    struct memory_sink *memory = CONTAINER(sink, struct memory_sink, sink);
    free(memory->bytes);
    free(memory);
}

static const struct sink_ops memory_sink_ops = {
    .write = memory_sink_write,
    .finish = memory_sink_finish,
    .free = memory_sink_free,
};

struct sink *memory_sink_new(size_t limit)
{
    struct memory_sink *memory = calloc(1, sizeof *memory);
    if (!memory)
        return NULL;
    sink_init(&memory->sink, &memory_sink_ops);
    memory->limit = limit;
    return &memory->sink;
}

const uint8_t *memory_sink_bytes(struct sink *sink, size_t *ret_n)
{
    struct memory_sink *memory = CONTAINER(sink, struct memory_sink, sink);
    *ret_n = memory->n;
    return memory->bytes ? memory->bytes : (const uint8_t *)"";
}
