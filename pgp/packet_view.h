/* SPDX-License-Identifier: GPL-3.0-or-later */
/* packet_view: a packet that lies in memory whole, as in certificates and keyrings. */
#ifndef PGP_PACKET_VIEW_H
#define PGP_PACKET_VIEW_H

#include "cursor.h"

struct packet_view {
    uint8_t type; /* enum packet_type */
    const uint8_t *body;
    size_t body_n;
};

/* Takes the next packet from CURSOR; its body stays where it is. Both header formats, definite lengths only (RFC 9580
 * 4.2: partial ones are for data packets). False at the end and, with the flaw set, for anything else. */
bool packet_view_next(struct cursor *cursor, struct packet_view *ret);

#endif
