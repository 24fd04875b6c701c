/* SPDX-License-Identifier: GPL-3.0-or-later */
/* faulty: a source and a sink that fail at a given byte, and short ways to run a filter from memory to memory. */
#ifndef TESTS_PGP_FAULTY_H
#define TESTS_PGP_FAULTY_H

#include "stream/failure.h"
#include "stream/stream.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* The failure that is injected: no other place makes this code. */
#define FAULT GPG_ERR_USER_7

/* Lends STEP bytes at a time of the N at BYTES and fails instead of giving byte FAIL_AT (SIZE_MAX: never). What was
 * lent is freed at the next call, so that a sanitizer sees who keeps it. */
struct faulty_source {
    struct source source;
    const uint8_t *bytes;
    size_t n, at, step, fail_at;
    uint8_t *lent;
    bool *finished, *freed;
};

static gpg_error_t faulty_source_peek(struct source *source, const void **ret_bytes, size_t *ret_n)
{
    struct faulty_source *faulty = CONTAINER(source, struct faulty_source, source);
    size_t n = faulty->n - faulty->at;
    free(faulty->lent);
    faulty->lent = NULL;
    if (faulty->at >= faulty->fail_at)
        return gpg_error(FAULT);
    if (n > faulty->step)
        n = faulty->step;
    if (n > faulty->fail_at - faulty->at)
        n = faulty->fail_at - faulty->at;
    if (n) {
        faulty->lent = malloc(n);
        assert_non_null(faulty->lent);
        memcpy(faulty->lent, faulty->bytes + faulty->at, n);
    }
    *ret_bytes = faulty->lent;
    *ret_n = n;
    return 0;
}

static void faulty_source_consume(struct source *source, size_t n)
{
    struct faulty_source *faulty = CONTAINER(source, struct faulty_source, source);
    assert_true(n <= faulty->n - faulty->at);
    faulty->at += n;
}

static gpg_error_t faulty_source_finish(struct source *source)
{
    struct faulty_source *faulty = CONTAINER(source, struct faulty_source, source);
    if (faulty->finished)
        *faulty->finished = true;
    return 0;
}

static void faulty_source_free(struct source *source)
{
    struct faulty_source *faulty = CONTAINER(source, struct faulty_source, source);
    if (faulty->freed)
        *faulty->freed = true;
    free(faulty->lent);
    free(faulty);
}

static const struct source_ops faulty_source_ops = {
    .peek = faulty_source_peek,
    .consume = faulty_source_consume,
    .finish = faulty_source_finish,
    .free = faulty_source_free,
};

static inline struct source *faulty_source_new(const void *bytes, size_t n, size_t step, size_t fail_at)
{
    struct faulty_source *faulty = calloc(1, sizeof *faulty);
    assert_non_null(faulty);
    source_init(&faulty->source, &faulty_source_ops);
    faulty->bytes = bytes;
    faulty->n = n;
    faulty->step = step ? step : SIZE_MAX;
    faulty->fail_at = fail_at;
    return &faulty->source;
}

/* What a faulty sink was given; outlives it. */
struct gathered {
    uint8_t *bytes;
    size_t n, capacity;
    size_t fail_at; /* takes no more than this many bytes; SIZE_MAX: any number */
    bool fail_finish;
    unsigned finished, freed;
    size_t writes;
};

struct faulty_sink {
    struct sink sink;
    struct gathered *gathered;
};

static gpg_error_t faulty_sink_write(struct sink *sink, const void *bytes, size_t n)
{
    struct gathered *to = CONTAINER(sink, struct faulty_sink, sink)->gathered;
    assert_int_equal(to->finished, 0);
    to->writes++;
    if (n > to->fail_at - to->n)
        return gpg_error(FAULT);
    if (n > to->capacity - to->n) {
        to->capacity = 2 * (to->n + n);
        to->bytes = realloc(to->bytes, to->capacity);
        assert_non_null(to->bytes);
    }
    memcpy(to->bytes + to->n, bytes, n);
    to->n += n;
    return 0;
}

static gpg_error_t faulty_sink_finish(struct sink *sink)
{
    struct gathered *to = CONTAINER(sink, struct faulty_sink, sink)->gathered;
    to->finished++;
    return to->fail_finish ? gpg_error(FAULT) : 0;
}

static void faulty_sink_free(struct sink *sink)
{
    struct faulty_sink *faulty = CONTAINER(sink, struct faulty_sink, sink);
    faulty->gathered->freed++;
    free(faulty);
}

static const struct sink_ops faulty_sink_ops = {
    .write = faulty_sink_write,
    .finish = faulty_sink_finish,
    .free = faulty_sink_free,
};

/* Starts GATHERED afresh. */
static inline struct sink *faulty_sink_new(struct gathered *gathered, size_t fail_at)
{
    struct faulty_sink *faulty = calloc(1, sizeof *faulty);
    assert_non_null(faulty);
    sink_init(&faulty->sink, &faulty_sink_ops);
    faulty->gathered = gathered;
    *gathered = (struct gathered){.fail_at = fail_at};
    return &faulty->sink;
}

static inline void gathered_clear(struct gathered *gathered)
{
    free(gathered->bytes);
    *gathered = (struct gathered){0};
}

/* Writes N bytes in steps (0: at once), every other of them into the room that SINK lends, if it does, and finishes;
 * frees SINK. */
static inline gpg_error_t push(struct sink *sink, const void *bytes, size_t n, size_t step)
{
    const uint8_t *at = bytes;
    gpg_error_t error = 0;
    for (bool lent = false; n && !error; lent = !lent) {
        size_t part = step && step < n ? step : n, room_n = 0;
        void *room;
        if (lent && (error = sink_room(sink, &room, &room_n)))
            break;
        if (room_n) {
            part = part < room_n ? part : room_n;
            memcpy(room, at, part);
            error = sink_filled(sink, part);
            at += part;
            n -= part;
            continue;
        }
        uint8_t *copy = malloc(part);
        assert_non_null(copy);
        memcpy(copy, at, part);
        error = sink_write(sink, copy, part);
        free(copy);
        at += part;
        n -= part;
    }
    if (!error)
        error = sink_finish(sink);
    sink_free(sink);
    return error;
}

/* Reads to the end and finishes; frees SOURCE. What was lent is in *RET even where it failed. */
static inline gpg_error_t pull(struct source *source, struct gathered *ret)
{
    struct sink *sink = faulty_sink_new(ret, SIZE_MAX);
    gpg_error_t error = pump(source, sink, NULL);
    if (!error)
        error = source_finish(source);
    sink_free(sink);
    source_free(source);
    return error;
}

/* Bytes that look random, the same for the same SEED. */
static inline void fill_random(uint8_t *to, size_t n, uint64_t seed)
{
    uint64_t state = seed * 2862933555777941757U + 3037000493U;
    for (size_t i = 0; i < n; i++) {
        state = state * 6364136223846793005U + 1442695040888963407U;
        to[i] = (uint8_t)(state >> 56);
    }
}

/* Words, so that the bytes compress. */
static inline void fill_text(uint8_t *to, size_t n, uint64_t seed)
{
    static const char *const words[] = {"tar ", "archive ", "of ", "the ", "folder\n", "signed, ", "0000644", "root "};
    uint64_t state = seed + 1;
    size_t at = 0;
    while (at < n) {
        state = state * 6364136223846793005U + 1442695040888963407U;
        const char *word = words[state >> 61];
        size_t word_n = strlen(word) < n - at ? strlen(word) : n - at;
        memcpy(to + at, word, word_n);
        at += word_n;
    }
}

#endif
