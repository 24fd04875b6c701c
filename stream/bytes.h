/* SPDX-License-Identifier: GPL-3.0-or-later */
/* bytes: big-endian fields, and the few macros every file uses. */
#ifndef STREAM_BYTES_H
#define STREAM_BYTES_H

#include <stddef.h>
#include <stdint.h>

/* The struct of TYPE whose member MEMBER is at POINTER. */
#define CONTAINER(pointer, type, member) ((type *)(void *)((char *)(pointer)-offsetof(type, member)))

/* A result that must not be dropped. */
#define MUST_CHECK __attribute__((warn_unused_result))

/* A function that takes a printf format as its argument number POSITION and the values from number FIRST on. */
#define PRINTF_LIKE(position, first) __attribute__((format(printf, position, first)))

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

static inline uint16_t get_be16(const void *from)
{
    const uint8_t *p = from;
    return (uint16_t)((p[0] << 8) | p[1]);
}

static inline uint32_t get_be32(const void *from)
{
    const uint8_t *p = from;
    return ((uint32_t)p[0] << 24) | ((uint32_t)p[1] << 16) | ((uint32_t)p[2] << 8) | p[3];
}

static inline uint64_t get_be64(const void *from)
{
    const uint8_t *p = from;
    return ((uint64_t)get_be32(p) << 32) | get_be32(p + 4);
}

static inline void put_be16(void *to, uint16_t value)
{
    uint8_t *p = to;
    p[0] = (uint8_t)(value >> 8);
    p[1] = (uint8_t)value;
}

static inline void put_be32(void *to, uint32_t value)
{
    uint8_t *p = to;
    p[0] = (uint8_t)(value >> 24);
    p[1] = (uint8_t)(value >> 16);
    p[2] = (uint8_t)(value >> 8);
    p[3] = (uint8_t)value;
}

static inline void put_be64(void *to, uint64_t value)
{
    uint8_t *p = to;
    put_be32(p, (uint32_t)(value >> 32));
    put_be32(p + 4, (uint32_t)value);
}

#endif
