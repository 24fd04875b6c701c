/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "framing.h"

#include <stdlib.h>
#include <string.h>

/* RFC 9580 4.2.1.4: the first partial length is at least this. */
#define FIRST_PART_MIN 512

/* Small against the pieces of 256 KiB that the stages before give, so that little is gathered; large enough that its
 * two writes do not count (0.01 ns/byte to a file). */
#define PART_DEFAULT (64 * 1024)
#define PART_MAX     ((size_t)1 << 30)

/* ---- reading ---- */

static bool is_data_packet(unsigned type)
{
    return type == PACKET_COMPRESSED || type == PACKET_SED || type == PACKET_LITERAL || type == PACKET_SEIPD ||
           type == PACKET_AEAD;
}

/* One octet; *RET_END without one. */
static gpg_error_t next_octet(struct source *raw, uint8_t *ret, bool *ret_end)
{
    const void *bytes;
    size_t n;
    gpg_error_t error = source_peek(raw, &bytes, &n);
    if (error)
        return error;
    *ret_end = !n;
    if (n) {
        *ret = *(const uint8_t *)bytes;
        source_consume(raw, 1);
    }
    return 0;
}

static gpg_error_t header_octet(struct failure *failure, struct source *raw, struct packet *packet, uint8_t *ret)
{
    bool end;
    gpg_error_t error = next_octet(raw, ret, &end);
    if (!error && end)
        error = fail(failure, gpg_error(GPG_ERR_TRUNCATED), "truncated: it ends inside a packet's header");
    if (!error && packet->header_n < sizeof packet->header)
        packet->header[packet->header_n++] = *ret;
    return error;
}

/* A big-endian length of N octets. */
static gpg_error_t length_octets(struct failure *failure, struct source *raw, struct packet *packet, unsigned n)
{
    packet->length = 0;
    while (n--) {
        uint8_t octet = 0;
        gpg_error_t error = header_octet(failure, raw, packet, &octet);
        if (error)
            return error;
        packet->length = packet->length << 8 | octet;
    }
    return 0;
}

static gpg_error_t new_format_length(struct failure *failure, struct source *raw, struct packet *packet)
{
    uint8_t first = 0, second = 0;
    gpg_error_t error = header_octet(failure, raw, packet, &first);
    if (error)
        return error;
    packet->form = LENGTH_DEFINITE;
    packet->length = first;
    if (first < 192)
        return 0;
    if (first == 255)
        return length_octets(failure, raw, packet, 4);
    if (first >= 224) {
        packet->form = LENGTH_PARTIAL;
        packet->length = (uint64_t)1 << (first & 31);
        return 0;
    }
    error = header_octet(failure, raw, packet, &second);
    if (!error)
        packet->length = ((uint64_t)(first - 192) << 8) + second + 192;
    return error;
}

static gpg_error_t old_format_length(struct failure *failure, struct source *raw, struct packet *packet,
                                     unsigned length_type)
{
    packet->form = LENGTH_DEFINITE;
    packet->length = 0;
    if (length_type == 3) {
        packet->form = LENGTH_INDETERMINATE;
        return 0;
    }
    return length_octets(failure, raw, packet, 1U << length_type);
}

gpg_error_t packet_next(struct failure *failure, struct source *source, struct packet *ret, bool *ret_end)
{
    struct packet packet = {0};
    uint8_t first = 0;
    bool end;
    gpg_error_t error = next_octet(source, &first, &end);
    if (error)
        return error;
    if (end) {
        *ret_end = true;
        return 0;
    }
    packet.header[packet.header_n++] = first;
    if (!(first & 0x80))
        return fail(failure, gpg_error(GPG_ERR_INV_PACKET), "no OpenPGP packet begins with the octet 0x%02x", first);
    packet.old_format = !(first & 0x40);
    packet.type = packet.old_format ? (first >> 2) & 15 : first & 63;
    if (!packet.type)
        return fail(failure, gpg_error(GPG_ERR_INV_PACKET), "packet of the reserved type 0");
    if (packet.old_format)
        error = old_format_length(failure, source, &packet, first & 3);
    else
        error = new_format_length(failure, source, &packet);
    if (error)
        return error;
    if (packet.form != LENGTH_DEFINITE && !is_data_packet(packet.type))
        return fail(failure, gpg_error(GPG_ERR_INV_PACKET), "packet of type %u without a definite length", packet.type);
    if (packet.form == LENGTH_PARTIAL && packet.length < FIRST_PART_MIN)
        return fail(failure, gpg_error(GPG_ERR_INV_PACKET), "the first part of a packet of type %u is too short",
                    packet.type);
    *ret = packet;
    *ret_end = false;
    return 0;
}

/* Whoever has half of a download need not know numbers of packet types. */
static gpg_error_t packet_cut(struct failure *failure, unsigned type)
{
    const char *what = type == PACKET_SEIPD || type == PACKET_AEAD || type == PACKET_SED ? "the encrypted data"
                       : type == PACKET_COMPRESSED                                       ? "the compressed data"
                       : type == PACKET_LITERAL                                          ? "the content"
                       : type == PACKET_PKESK || type == PACKET_SKESK                    ? "an encrypted session key"
                       : type == PACKET_SIGNATURE || type == PACKET_ONE_PASS             ? "a signature"
                                                                                         : NULL;
    if (what)
        return fail(failure, gpg_error(GPG_ERR_TRUNCATED), "truncated: it ends inside %s", what);
    return fail(failure, gpg_error(GPG_ERR_TRUNCATED), "truncated: it ends inside a packet of type %u", type);
}

/* raw ▸ bounded by the lengths ▸ lent */
struct body_source {
    struct source source;
    struct failure *failure;
    struct source *raw; /* borrowed */
    uint8_t type;
    enum packet_length form; /* of the part being read: LENGTH_PARTIAL: another follows */
    uint64_t left;           /* in this part; not for LENGTH_INDETERMINATE */
    uint64_t part, before;   /* lengths of this part and the one before it; 0: definite, or none */
    bool assumes;            /* that parts which are skipped are as long as this one */
    bool assumed;            /* and has done so: the next length octet is where one was expected */
};

static gpg_error_t body_cut(struct body_source *body)
{
    return packet_cut(body->failure, body->type);
}

/* Reads part lengths until octets are left in a part, or *RET_END. */
static gpg_error_t body_ready(struct body_source *body, bool *ret_end)
{
    while (body->form == LENGTH_PARTIAL && !body->left) {
        struct packet part = {0};
        gpg_error_t error = new_format_length(body->failure, body->raw, &part);
        if (error)
            return error;
        if (body->assumed && part.form == LENGTH_PARTIAL && part.length != body->part)
            return fail(body->failure, gpg_error(GPG_ERR_INV_PACKET),
                        "the content stands in parts of different lengths, over which nobody can seek: read it as a "
                        "whole");
        body->assumed = false;
        body->form = part.form;
        body->left = part.length;
        body->before = body->part;
        body->part = part.form == LENGTH_PARTIAL ? part.length : 0;
    }
    *ret_end = body->form == LENGTH_DEFINITE && !body->left;
    return 0;
}

static size_t body_bounded(const struct body_source *body, size_t n)
{
    return body->form != LENGTH_INDETERMINATE && n > body->left ? (size_t)body->left : n;
}

static void body_used(struct body_source *body, size_t n)
{
    if (body->form != LENGTH_INDETERMINATE)
        body->left -= n;
}

static gpg_error_t body_source_peek(struct source *source, const void **ret_bytes, size_t *ret_n)
{
    struct body_source *body = CONTAINER(source, struct body_source, source);
    bool end;
    gpg_error_t error = body_ready(body, &end);
    if (error || end)
        return error;
    error = source_peek(body->raw, ret_bytes, ret_n);
    if (error)
        return error;
    if (!*ret_n && body->form != LENGTH_INDETERMINATE)
        return body_cut(body);
    *ret_n = body_bounded(body, *ret_n);
    return 0;
}

static void body_source_consume(struct source *source, size_t n)
{
    struct body_source *body = CONTAINER(source, struct body_source, source);
    source_consume(body->raw, n);
    body_used(body, n);
}

static gpg_error_t body_source_read(struct source *source, void *to, size_t n, size_t *ret_got)
{
    struct body_source *body = CONTAINER(source, struct body_source, source);
    bool end;
    gpg_error_t error = body_ready(body, &end);
    if (error || end)
        return error;
    error = source_read(body->raw, to, body_bounded(body, n), ret_got);
    if (error && !*ret_got) /* else it comes again behind what was read */
        return error;
    if (!*ret_got && body->form != LENGTH_INDETERMINATE)
        return body_cut(body);
    body_used(body, *ret_got);
    return 0;
}

/* How many whole parts behind this one a skip of N octets may go over unseen. */
static uint64_t parts_ahead(const struct body_source *body, uint64_t n)
{
    if (!body->assumes || body->form != LENGTH_PARTIAL || body->part != body->before || n <= body->left)
        return 0;
    return (n - body->left) / body->part;
}

static gpg_error_t body_source_skip(struct source *source, uint64_t n)
{
    struct body_source *body = CONTAINER(source, struct body_source, source);
    while (n) {
        bool end;
        gpg_error_t error = body_ready(body, &end);
        if (!error && end)
            error = gpg_error(GPG_ERR_TRUNCATED);
        if (error)
            return error;
        uint64_t part = body->form != LENGTH_INDETERMINATE && n > body->left ? body->left : n;
        uint64_t more = parts_ahead(body, n);
        error = source_skip(body->raw, part + more * (body->part + 1)); /* one length octet each */
        if (gpg_err_code(error) == GPG_ERR_TRUNCATED)
            return body_cut(body);
        if (error)
            return error;
        if (body->form != LENGTH_INDETERMINATE)
            body->left -= part;
        body->assumed = more;
        n -= part + more * body->part;
    }
    return 0;
}

void packet_body_assume_equal_parts(struct source *source)
{
    CONTAINER(source, struct body_source, source)->assumes = true;
}

/* Reads the next GOT octets behind those HELD in TAIL, of which only the last N stay. */
static gpg_error_t tail_read(struct body_source *body, uint8_t *tail, size_t n, size_t *held, size_t got)
{
    size_t drop = *held + got > n ? *held + got - n : 0, done;
    memmove(tail, tail + drop, *held - drop);
    *held -= drop;
    gpg_error_t error = source_read(body->raw, tail + *held, got, &done);
    if (!error && done < got)
        error = body_cut(body);
    *held += got;
    return error;
}

gpg_error_t packet_body_to_end(struct source *source, uint8_t *tail, size_t n, uint64_t *ret_passed)
{
    struct body_source *body = CONTAINER(source, struct body_source, source);
    uint64_t passed = 0;
    size_t held = 0;
    if (body->form == LENGTH_INDETERMINATE)
        return gpg_error(GPG_ERR_INV_PACKET);
    for (;;) {
        bool end;
        gpg_error_t error = body_ready(body, &end);
        if (error)
            return error;
        if (end)
            break;
        size_t last = body->left < n ? (size_t)body->left : n;
        error = source_skip(body->raw, body->left - last);
        if (gpg_err_code(error) == GPG_ERR_TRUNCATED)
            return body_cut(body);
        if (!error)
            error = tail_read(body, tail, n, &held, last);
        if (error)
            return error;
        passed += body->left;
        body->left = 0;
    }
    *ret_passed = passed;
    return 0;
}

static void body_source_free(struct source *source)
{
    free(CONTAINER(source, struct body_source, source));
}

static const struct source_ops body_source_ops = {
    .peek = body_source_peek,
    .consume = body_source_consume,
    .read = body_source_read,
    .skip = body_source_skip,
    .finish = source_drain,
    .free = body_source_free,
};

gpg_error_t packet_body_source(struct failure *failure, const struct packet *packet, struct source *borrows_raw,
                               struct source **ret)
{
    struct body_source *body = calloc(1, sizeof *body);
    if (!body)
        return gpg_error_from_syserror();
    source_init(&body->source, &body_source_ops);
    body->failure = failure;
    body->raw = borrows_raw;
    body->type = packet->type;
    body->form = packet->form;
    body->left = packet->length;
    body->part = packet->form == LENGTH_PARTIAL ? packet->length : 0;
    *ret = &body->source;
    return 0;
}

gpg_error_t packet_body_read(struct failure *failure, const struct packet *packet, struct source *raw, size_t limit,
                             uint8_t **ret_bytes, size_t *ret_n)
{
    if (packet->form != LENGTH_DEFINITE)
        return fail(failure, gpg_error(GPG_ERR_INV_PACKET), "packet of type %u without a definite length",
                    packet->type);
    if (packet->length > limit)
        return fail(failure, gpg_error(GPG_ERR_TOO_LARGE), "packet of type %u is too long: %llu octets", packet->type,
                    (unsigned long long)packet->length);
    size_t n = (size_t)packet->length, got;
    uint8_t *bytes = malloc(n ? n : 1);
    if (!bytes)
        return gpg_error_from_syserror();
    gpg_error_t error = source_read(raw, bytes, n, &got);
    if (!error && got < n)
        error = packet_cut(failure, packet->type);
    if (error) {
        explicit_bzero(bytes, n);
        free(bytes);
        return error;
    }
    *ret_bytes = bytes;
    *ret_n = n;
    return 0;
}

/* ---- writing ---- */

/* A definite length (RFC 9580 4.2.1) into OUT, at most 5 octets. */
static size_t length_put(uint8_t *out, uint32_t length)
{
    if (length < 192) {
        out[0] = (uint8_t)length;
        return 1;
    }
    if (length < 8384) {
        put_be16(out, (uint16_t)(length - 192 + (192 << 8)));
        return 2;
    }
    out[0] = 255;
    put_be32(out + 1, length);
    return 5;
}

size_t packet_header_put(uint8_t *out, unsigned type, uint32_t length)
{
    out[0] = (uint8_t)(0xC0 | type);
    return 1 + length_put(out + 1, length);
}

gpg_error_t packet_header_write(struct sink *sink, unsigned type, uint64_t length)
{
    uint8_t header[6];
    if (length > UINT32_MAX)
        return gpg_error(GPG_ERR_TOO_LARGE);
    return sink_write(sink, header, packet_header_put(header, type, (uint32_t)length));
}

gpg_error_t packet_write(struct sink *sink, unsigned type, const void *body, size_t n)
{
    gpg_error_t error = packet_header_write(sink, type, n);
    return error ? error : sink_write(sink, body, n);
}

/* In front of the gathered octets there is room for a header of 6, so that both go out in one write; and the octets lie
 * as a cache line does, for who reads a file into them. */
#define HEADER_ROOM 64

/* written ▸ what fills no part is gathered, the rest passes straight through ▸ below */
struct body_sink {
    struct sink sink;
    struct sink *below;
    bool borrows;
    bool started; /* the packet's header has been written */
    uint8_t type;
    uint8_t part_octet; /* the length octet of a full part */
    size_t part;        /* octets of a full part */
    size_t n;           /* gathered, fewer than PART */
    uint8_t *buffer;    /* HEADER_ROOM + PART */
};

/* What stands before a full part, into OUT (2 octets). */
static size_t part_header_put(struct body_sink *body, uint8_t *out)
{
    size_t n = 0;
    if (!body->started)
        out[n++] = (uint8_t)(0xC0 | body->type);
    body->started = true;
    out[n++] = body->part_octet;
    return n;
}

/* Writes HEADER and the gathered octets behind it. */
static gpg_error_t write_gathered(struct body_sink *body, const uint8_t *header, size_t header_n)
{
    uint8_t *start = body->buffer + HEADER_ROOM - header_n;
    memcpy(start, header, header_n);
    gpg_error_t error = sink_write(body->below, start, header_n + body->n);
    body->n = 0;
    return error;
}

static gpg_error_t body_sink_write(struct sink *sink, const void *bytes, size_t n)
{
    struct body_sink *body = CONTAINER(sink, struct body_sink, sink);
    const uint8_t *at = bytes;
    while (n >= body->part - body->n) {
        uint8_t header[2];
        size_t rest = body->part - body->n;
        gpg_error_t error = write_gathered(body, header, part_header_put(body, header));
        if (!error)
            error = sink_write(body->below, at, rest);
        if (error)
            return error;
        at += rest;
        n -= rest;
    }
    memcpy(body->buffer + HEADER_ROOM + body->n, at, n);
    body->n += n;
    return 0;
}

static gpg_error_t body_sink_room(struct sink *sink, void **ret_room, size_t *ret_n)
{
    struct body_sink *body = CONTAINER(sink, struct body_sink, sink);
    *ret_room = body->buffer + HEADER_ROOM + body->n;
    *ret_n = body->part - body->n;
    return 0;
}

static gpg_error_t body_sink_filled(struct sink *sink, size_t n)
{
    struct body_sink *body = CONTAINER(sink, struct body_sink, sink);
    uint8_t header[2];
    body->n += n;
    return body->n < body->part ? 0 : write_gathered(body, header, part_header_put(body, header));
}

static gpg_error_t body_sink_finish(struct sink *sink)
{
    struct body_sink *body = CONTAINER(sink, struct body_sink, sink);
    uint8_t header[6];
    size_t header_n;
    if (body->started)
        header_n = length_put(header, (uint32_t)body->n);
    else
        header_n = packet_header_put(header, body->type, (uint32_t)body->n);
    gpg_error_t error = write_gathered(body, header, header_n);
    if (!error && !body->borrows)
        error = sink_finish(body->below);
    return error;
}

static void body_sink_free(struct sink *sink)
{
    struct body_sink *body = CONTAINER(sink, struct body_sink, sink);
    if (!body->borrows)
        sink_free(body->below);
    free(body->buffer);
    free(body);
}

static const struct sink_ops body_sink_ops = {
    .write = body_sink_write,
    .room = body_sink_room,
    .filled = body_sink_filled,
    .finish = body_sink_finish,
    .free = body_sink_free,
};

static uint8_t part_octet(size_t part)
{
    uint8_t bits = 0;
    while (part >>= 1)
        bits++;
    return (uint8_t)(224 + bits);
}

gpg_error_t packet_body_sink(unsigned type, size_t part, struct sink *below, bool borrows, struct sink **ret)
{
    struct body_sink *body = NULL;
    gpg_error_t error = 0;
    if (!part)
        part = PART_DEFAULT;
    if (part < FIRST_PART_MIN || part > PART_MAX || (part & (part - 1))) {
        error = gpg_error(GPG_ERR_INV_ARG);
        goto out;
    }
    body = calloc(1, sizeof *body);
    if (body)
        body->buffer = aligned_alloc(HEADER_ROOM, HEADER_ROOM + part);
    if (!body || !body->buffer) {
        error = gpg_error_from_syserror();
        goto out;
    }
    sink_init(&body->sink, &body_sink_ops);
    body->below = below;
    body->borrows = borrows;
    body->type = (uint8_t)type;
    body->part = part;
    body->part_octet = part_octet(part);
    *ret = &body->sink;
    return 0;
out:
    if (!borrows)
        sink_free(below);
    free(body);
    return error;
}
