/* SPDX-License-Identifier: GPL-3.0-or-later */
/* cursor: bounded parsing of a packet body with a sticky flaw.
 *
 * Every take past the end sets the flaw and returns zeros or NULL, so that a parser reads straight on and asks once at
 * the end. */
#ifndef PGP_CURSOR_H
#define PGP_CURSOR_H

#include "stream/bytes.h"

#include <stdbool.h>

struct cursor {
    const uint8_t *at;
    size_t left;
    bool flawed;
};

struct cursor cursor_over(const void *bytes, size_t n);
uint8_t cursor_u8(struct cursor *cursor);
uint16_t cursor_u16(struct cursor *cursor);
uint32_t cursor_u32(struct cursor *cursor);
/* N borrowed bytes, NULL when flawed (N = 0 gives a pointer that is not NULL). */
const uint8_t *cursor_bytes(struct cursor *cursor, size_t n);
/* An MPI (RFC 9580 3.2): its octets as they stand, big-endian, borrowed; *RET_N = 0 where flawed. The first octet may
 * have more or fewer bits set than the count says, and may be zero, as gpg tolerates it. At most 16384 bits. */
const uint8_t *cursor_mpi(struct cursor *cursor, size_t *ret_n);
/* A part of its own: the next N bytes. Where they are not there, both the part and CURSOR are flawed. */
struct cursor cursor_part(struct cursor *cursor, size_t n);
/* No flaw, and nothing is left over. */
bool cursor_done(const struct cursor *cursor);

#endif
