/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cursor.h"

#define MPI_BITS_MAX 16384

struct cursor cursor_over(const void *bytes, size_t n)
{
    return (struct cursor){.at = bytes ? bytes : "", .left = n};
}

const uint8_t *cursor_bytes(struct cursor *cursor, size_t n)
{
    if (cursor->flawed || n > cursor->left) {
        cursor->flawed = true;
        return NULL;
    }
    const uint8_t *bytes = cursor->at;
    cursor->at += n;
    cursor->left -= n;
    return bytes;
}

uint8_t cursor_u8(struct cursor *cursor)
{
    const uint8_t *bytes = cursor_bytes(cursor, 1);
    return bytes ? bytes[0] : 0;
}

uint16_t cursor_u16(struct cursor *cursor)
{
    const uint8_t *bytes = cursor_bytes(cursor, 2);
    return bytes ? get_be16(bytes) : 0;
}

uint32_t cursor_u32(struct cursor *cursor)
{
    const uint8_t *bytes = cursor_bytes(cursor, 4);
    return bytes ? get_be32(bytes) : 0;
}

const uint8_t *cursor_mpi(struct cursor *cursor, size_t *ret_n)
{
    unsigned bits = cursor_u16(cursor);
    if (bits > MPI_BITS_MAX)
        cursor->flawed = true;
    size_t n = (bits + 7) / 8;
    const uint8_t *bytes = cursor_bytes(cursor, n);
    *ret_n = bytes ? n : 0;
    return bytes;
}

struct cursor cursor_part(struct cursor *cursor, size_t n)
{
    const uint8_t *bytes = cursor_bytes(cursor, n);
    struct cursor part = cursor_over(bytes, bytes ? n : 0);
    part.flawed = cursor->flawed;
    return part;
}

bool cursor_done(const struct cursor *cursor)
{
    return !cursor->flawed && !cursor->left;
}
