/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "packet_view.h"

/* RFC 9580 4.2.2.1: the length types 0, 1 and 2 of the old format; 3 has no end. */
static size_t old_length(struct cursor *cursor, unsigned length_type)
{
    switch (length_type) {
    case 0:
        return cursor_u8(cursor);
    case 1:
        return cursor_u16(cursor);
    case 2:
        return cursor_u32(cursor);
    default:
        cursor->flawed = true;
        return 0;
    }
}

/* RFC 9580 4.2.1 */
static size_t new_length(struct cursor *cursor)
{
    unsigned first = cursor_u8(cursor);
    if (first < 192)
        return first;
    if (first < 224)
        return ((first - 192) << 8) + cursor_u8(cursor) + 192;
    if (first == 255)
        return cursor_u32(cursor);
    cursor->flawed = true;
    return 0;
}

bool packet_view_next(struct cursor *cursor, struct packet_view *ret)
{
    if (cursor->flawed || !cursor->left)
        return false;
    unsigned tag = cursor_u8(cursor);
    bool is_new = tag & 0x40;
    struct packet_view view = {.type = (uint8_t)(is_new ? tag & 0x3F : (tag >> 2) & 0x0F)};
    if (!(tag & 0x80) || !view.type)
        cursor->flawed = true;
    view.body_n = is_new ? new_length(cursor) : old_length(cursor, tag & 3);
    view.body = cursor_bytes(cursor, view.body_n);
    if (cursor->flawed)
        return false;
    *ret = view;
    return true;
}
