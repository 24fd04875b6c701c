/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "literal.h"

#include "framing.h"

#include <string.h>

static gpg_error_t read_exactly(struct failure *failure, struct source *body, void *to, size_t n)
{
    size_t got;
    gpg_error_t error = source_read(body, to, n, &got);
    if (!error && got < n)
        error = fail(failure, gpg_error(GPG_ERR_INV_PACKET), "the literal packet is too short");
    return error;
}

gpg_error_t literal_read(struct failure *failure, struct source *body, struct literal *ret)
{
    struct literal literal = {0};
    uint8_t start[2], date[4];
    gpg_error_t error = read_exactly(failure, body, start, sizeof start);
    if (error)
        return error;
    if (!start[0] || !strchr("btul1m", start[0]))
        return fail(failure, gpg_error(GPG_ERR_INV_PACKET), "literal packet of the unknown format 0x%02x", start[0]);
    literal.format = start[0];
    literal.name_n = start[1];
    error = read_exactly(failure, body, literal.name, literal.name_n);
    if (!error)
        error = read_exactly(failure, body, date, sizeof date);
    if (error)
        return error;
    literal.date = get_be32(date);
    *ret = literal;
    return 0;
}

const uint8_t literal_start[LITERAL_START_SIZE] = {'b'};

gpg_error_t literal_sink_new(size_t part, struct sink *below, bool borrows, struct sink **ret)
{
    struct sink *sink = NULL;
    gpg_error_t error = packet_body_sink(PACKET_LITERAL, part, below, borrows, &sink);
    if (error)
        return error;
    error = sink_write(sink, literal_start, sizeof literal_start);
    if (error) {
        sink_free(sink);
        return error;
    }
    *ret = sink;
    return 0;
}
