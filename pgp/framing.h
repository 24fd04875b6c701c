/* SPDX-License-Identifier: GPL-3.0-or-later */
/* framing: packet headers and body lengths (RFC 9580 4.2), a packet's body as source and as sink. */
#ifndef PGP_FRAMING_H
#define PGP_FRAMING_H

#include "stream/failure.h"
#include "stream/stream.h"

/* RFC 9580 5 and LibrePGP (AEAD: packet 20) */
enum packet_type {
    PACKET_PKESK = 1,
    PACKET_SIGNATURE = 2,
    PACKET_SKESK = 3,
    PACKET_ONE_PASS = 4,
    PACKET_SECRET_KEY = 5,
    PACKET_PUBLIC_KEY = 6,
    PACKET_SECRET_SUBKEY = 7,
    PACKET_COMPRESSED = 8,
    PACKET_SED = 9,
    PACKET_MARKER = 10,
    PACKET_LITERAL = 11,
    PACKET_TRUST = 12,
    PACKET_USER_ID = 13,
    PACKET_PUBLIC_SUBKEY = 14,
    PACKET_USER_ATTRIBUTE = 17,
    PACKET_SEIPD = 18,
    PACKET_MDC = 19,
    PACKET_AEAD = 20,
    PACKET_PADDING = 21,
};

enum packet_length { LENGTH_DEFINITE, LENGTH_PARTIAL, LENGTH_INDETERMINATE };

struct packet {
    uint8_t type;
    enum packet_length form;
    uint64_t length; /* of a definite body; of the first part of a partial one */
    bool old_format;
    uint8_t header[6]; /* as read, header_n octets (1 … 6) */
    uint8_t header_n;
};

/* Reads the next packet header from SOURCE (raw packets). *RET_END is true at the clean end of the input, and then
 * nothing else is written. GPG_ERR_INV_PACKET for a first octet without bit 7, for partial lengths where they are not
 * allowed (only data packets 8, 9, 11, 18, 20; first part at least 512 octets), GPG_ERR_TRUNCATED for an end inside the
 * header. */
MUST_CHECK gpg_error_t packet_next(struct failure *failure, struct source *source, struct packet *ret, bool *ret_end);

/* The body of PACKET as a source of its own over the raw source it stands in, which is borrowed and left right behind
 * the body when the body has been read to its end. The body ending early is GPG_ERR_TRUNCATED. finish of the body reads
 * to its end and does not finish the raw source. */
MUST_CHECK gpg_error_t packet_body_source(struct failure *failure, const struct packet *packet,
                                          struct source *borrows_raw, struct source **ret);

/* The whole body of a definite packet of at most LIMIT octets (more: GPG_ERR_TOO_LARGE), in memory that the caller
 * frees (wipe it where it holds secrets). */
MUST_CHECK gpg_error_t packet_body_read(struct failure *failure, const struct packet *packet, struct source *raw,
                                        size_t limit, uint8_t **ret_bytes, size_t *ret_n);

/* Writes a header in new format with definite length. */
MUST_CHECK gpg_error_t packet_header_write(struct sink *sink, unsigned type, uint64_t length);
/* The same into OUT (at least 6 octets); the number of octets used. */
size_t packet_header_put(uint8_t *out, unsigned type, uint32_t length);
MUST_CHECK gpg_error_t packet_write(struct sink *sink, unsigned type, const void *body, size_t n);

/* A sink for the body of a packet whose length is not known: partial lengths of PART octets (a power of two from 512 to
 * 2^30; 0: 64 KiB … the best measured). A body shorter than the first part gets a definite length. finish ends the body
 * and does NOT finish BELOW if BORROWS; else it finishes it. */
MUST_CHECK gpg_error_t packet_body_sink(unsigned type, size_t part, struct sink *below, bool borrows,
                                        struct sink **ret);

#endif
