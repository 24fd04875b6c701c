/* SPDX-License-Identifier: GPL-3.0-or-later */
/* literal: the literal data packet (RFC 9580 5.9). */
#ifndef PGP_LITERAL_H
#define PGP_LITERAL_H

#include "stream/failure.h"
#include "stream/stream.h"

struct literal {
    uint8_t format; /* 'b', 't', 'u', 'm', 'l' or '1' */
    uint8_t name_n;
    char name[256]; /* NUL added; never used as a path */
    uint32_t date;  /* seconds since 1970 */
};

/* Reads the fields at the start of the body BODY (borrowed); what stays in BODY is the content. GPG_ERR_INV_PACKET: an
 * unknown format, or the body ends within the fields. */
MUST_CHECK gpg_error_t literal_read(struct failure *failure, struct source *body, struct literal *ret);

/* A sink that writes a literal packet (format b, empty name, date 0) with partial lengths of PART octets (0: 64 KiB) to
 * BELOW, which gets nothing before the first part is full or finish comes. BORROWS: as in packet_body_sink. */
MUST_CHECK gpg_error_t literal_sink_new(size_t part, struct sink *below, bool borrows, struct sink **ret);

/* What literal_sink_new writes before the content: format, name length, date. Signatures of version 5 hash it. */
#define LITERAL_START_SIZE 6
extern const uint8_t literal_start[LITERAL_START_SIZE];

#endif
