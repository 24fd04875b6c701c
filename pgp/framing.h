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

/* Reads the next packet header from SOURCE (raw packets). *RET_END tells the clean end of the input, and then *RET is
 * not written. GPG_ERR_INV_PACKET: a first octet without bit 7, the reserved type 0, a length that is not definite
 * where that is not allowed (it is for data packets only: 8, 9, 11, 18, 20), a first part of less than 512 octets.
 * GPG_ERR_TRUNCATED: the end inside the header. */
MUST_CHECK gpg_error_t packet_next(struct failure *failure, struct source *source, struct packet *ret, bool *ret_end);

/* The body of PACKET as a source of its own over the raw source it stands in, which is borrowed and left right behind
 * the body when the body has been read to its end. It lends what the raw source lends, bounded. The body ending early
 * is GPG_ERR_TRUNCATED; an indeterminate one ends where RAW does. finish reads to the end of the body and does not
 * finish the raw source. skip skips in the raw source. */
MUST_CHECK gpg_error_t packet_body_source(struct failure *failure, const struct packet *packet,
                                          struct source *borrows_raw, struct source **ret);

/* BODY is one of the above. From now on its skip takes the parts of a partial body for equally long once two
 * neighbours were, and goes over the length octets between those it skips without a look: in an encrypted packet each
 * look costs a chunk. The next length octet that is read must fit (GPG_ERR_INV_PACKET: the parts differ); a skip
 * beyond the end of the body may be noticed only there. */
void packet_body_assume_equal_parts(struct source *body);

/* Goes to the end of BODY, one of the above with lengths, by skipping: *RET_PASSED octets were left. TAIL gets the last
 * N of them, or all, where there are fewer. */
MUST_CHECK gpg_error_t packet_body_to_end(struct source *body, uint8_t *tail, size_t n, uint64_t *ret_passed);

/* The whole body of a packet of at most LIMIT octets (more: GPG_ERR_TOO_LARGE, before anything is allocated), in memory
 * that the caller frees (wipe it where it holds secrets). GPG_ERR_INV_PACKET where the length is not definite. */
MUST_CHECK gpg_error_t packet_body_read(struct failure *failure, const struct packet *packet, struct source *raw,
                                        size_t limit, uint8_t **ret_bytes, size_t *ret_n);

/* Writes a header in new format with definite length (GPG_ERR_TOO_LARGE from 2^32 on). */
MUST_CHECK gpg_error_t packet_header_write(struct sink *sink, unsigned type, uint64_t length);
/* The same into OUT (at least 6 octets); the number of octets used. */
size_t packet_header_put(uint8_t *out, unsigned type, uint32_t length);
MUST_CHECK gpg_error_t packet_write(struct sink *sink, unsigned type, const void *body, size_t n);

/* A sink for the body of a packet whose length is not known: partial lengths of PART octets, a power of two from 512 to
 * 2^30, else GPG_ERR_INV_ARG; 0: 64 KiB. A body shorter than one part gets a definite length. Where the parts end
 * depends on PART only, not on the sizes of the writes. Only what fills no part yet is copied. Memory: one part.
 * BORROWS: finish and free leave BELOW alone; else they finish and free it, and it is taken, also on
 * failure. */
MUST_CHECK gpg_error_t packet_body_sink(unsigned type, size_t part, struct sink *below, bool borrows,
                                        struct sink **ret);

#endif
