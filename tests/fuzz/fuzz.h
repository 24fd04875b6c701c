/* SPDX-License-Identifier: GPL-3.0-or-later */
/* fuzz: what the targets share. A target is LLVMFuzzerTestOneInput in a file of its own: libFuzzer calls it with inputs
 * that it makes up, replay_main.c with kept and mutated ones. It must give back all memory. */
#ifndef TESTS_FUZZ_H
#define TESTS_FUZZ_H

#include "stream/failure.h"
#include "stream/stream.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

/* Something that must hold for every input. */
#define FUZZ_CHECK(condition)                                                                                          \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            fuzz_broken(__FILE__, __LINE__, #condition);                                                               \
    } while (0)

static inline void fuzz_broken(const char *file, int line, const char *condition)
{
    fprintf(stderr, "%s:%d: does not hold: %s\n", file, line, condition);
    abort();
}

/* FNV-1a, to compare what two ways of reading give. */
#define FUZZ_HASH_START UINT64_C(0xcbf29ce484222325)

static inline uint64_t fuzz_hash(uint64_t hash, const void *bytes, size_t n)
{
    const uint8_t *at = bytes;
    for (; n; n--)
        hash = (hash ^ *at++) * UINT64_C(0x100000001b3);
    return hash;
}

static inline struct source *fuzz_source(const void *bytes, size_t n, size_t step)
{
    struct source *source = memory_source_new(bytes, n, step);
    FUZZ_CHECK(source);
    return source;
}

/* Reads SOURCE to its end, no more than LIMIT bytes; their number and hash. */
static inline gpg_error_t fuzz_read_all(struct source *source, uint64_t limit, uint64_t *ret_n, uint64_t *ret_hash)
{
    *ret_n = 0;
    *ret_hash = FUZZ_HASH_START;
    for (;;) {
        const void *bytes;
        size_t n;
        gpg_error_t err = source_peek(source, &bytes, &n);
        if (err || !n)
            return err;
        *ret_n += n;
        FUZZ_CHECK(*ret_n <= limit);
        *ret_hash = fuzz_hash(*ret_hash, bytes, n);
        source_consume(source, n);
    }
}

#endif
