/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "deflate.h"

#include "stream/ring.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#ifdef HAVE_ISAL
#include <isa-l/igzip_lib.h>
#endif

#define STORED_HEADER 5
/* What is deflated has to be smaller than the block, or the block is stored as it is. */
#define OUT_SIZE DEFLATE_BLOCK_SIZE

/* Levels up to this one are ISA-L's where it is built in. */
#define ISAL_LEVEL_MAX 3

/* The checksum of no octets. */
#define ADLER_START 1

/* CHECKSUM with N octets more. */
static uint32_t adler(uint32_t checksum, const uint8_t *bytes, size_t n)
{
#ifdef HAVE_ISAL
    return isal_adler32(checksum, bytes, n);
#else
    return (uint32_t)adler32(checksum, bytes, (uInt)n);
#endif
}

/* The tools of one worker. */
struct compressor {
    z_stream zlib;
    bool zlib_ready;
#ifdef HAVE_ISAL
    struct isal_zstream isal;
    uint8_t *level_buffer;
#endif
};

/* written ▸ [blocks: probe, deflate ×N] ▸ in order: ZLIB's header, deflated or stored, checksum ▸ below */
struct deflate_sink {
    struct sink sink;
    struct sink *blocks;
    bool zlib_format;
    int level;
    unsigned compressor_n;
    struct compressor **compressor;
    uint32_t checksum; /* emit's own */
};

static bool uses_isal(int level)
{
#ifdef HAVE_ISAL
    return level <= ISAL_LEVEL_MAX;
#else
    (void)level;
    return false;
#endif
}

static void compressor_free(struct compressor *compressor)
{
    if (!compressor)
        return;
    if (compressor->zlib_ready)
        deflateEnd(&compressor->zlib);
#ifdef HAVE_ISAL
    free(compressor->level_buffer);
#endif
    free(compressor);
}

#ifdef HAVE_ISAL
static size_t isal_buffer_size(int level)
{
    return level == 1 ? ISAL_DEF_LVL1_DEFAULT : level == 2 ? ISAL_DEF_LVL2_DEFAULT : ISAL_DEF_LVL3_DEFAULT;
}
#endif

static gpg_error_t compressor_new(int level, struct compressor **ret)
{
    gpg_error_t error = 0;
    struct compressor *compressor = calloc(1, sizeof *compressor);
    if (!compressor)
        return gpg_error_from_syserror();
    if (level && !uses_isal(level)) {
        /* -15: raw. 9: the largest table of matches. */
        if (deflateInit2(&compressor->zlib, level, Z_DEFLATED, -15, 9, Z_DEFAULT_STRATEGY) == Z_OK)
            compressor->zlib_ready = true;
        else
            error = gpg_error(GPG_ERR_ENOMEM);
    }
#ifdef HAVE_ISAL
    if (level && uses_isal(level)) {
        compressor->level_buffer = malloc(isal_buffer_size(level));
        if (!compressor->level_buffer)
            error = gpg_error_from_syserror();
    }
#endif
    if (error)
        compressor_free(compressor);
    else
        *ret = compressor;
    return error;
}

/* A part of a block that is deflated on its own. */
struct segment {
    const uint8_t *in;
    size_t n;
    bool last; /* nothing follows in the stream */
};

/* Deflates a segment to at most OUT_N octets, ended at a full octet; 0 where that is not enough room. */
static size_t zlib_segment(struct compressor *compressor, const struct segment *segment, uint8_t *out, size_t out_n)
{
    z_stream *zlib = &compressor->zlib;
    (void)deflateReset(zlib);
    zlib->next_in = (z_const Bytef *)segment->in;
    zlib->avail_in = (uInt)segment->n;
    zlib->next_out = out;
    zlib->avail_out = (uInt)out_n;
    int result = deflate(zlib, segment->last ? Z_FINISH : Z_FULL_FLUSH);
    bool whole = segment->last ? result == Z_STREAM_END : result == Z_OK && zlib->avail_out;
    return whole ? out_n - zlib->avail_out : 0;
}

static size_t isal_segment(struct compressor *compressor, int level, const struct segment *segment, uint8_t *out,
                           size_t out_n)
{
#ifdef HAVE_ISAL
    struct isal_zstream *isal = &compressor->isal;
    isal_deflate_stateless_init(isal);
    isal->level = (uint32_t)level;
    isal->level_buf = compressor->level_buffer;
    isal->level_buf_size = (uint32_t)isal_buffer_size(level);
    isal->next_in = (uint8_t *)(uintptr_t)segment->in;
    isal->avail_in = (uint32_t)segment->n;
    isal->next_out = out;
    isal->avail_out = (uint32_t)out_n;
    isal->flush = FULL_FLUSH;
    isal->end_of_stream = segment->last;
    return isal_deflate_stateless(isal) == COMP_OK && !isal->avail_in ? out_n - isal->avail_out : 0;
#else
    (void)compressor, (void)level, (void)segment, (void)out, (void)out_n;
    return 0;
#endif
}

/* The header of a stored piece of N octets (RFC 1951 3.2.4). */
static void put_stored_header(uint8_t out[STORED_HEADER], size_t n, bool last)
{
    out[0] = last;
    out[1] = (uint8_t)n;
    out[2] = (uint8_t)(n >> 8);
    out[3] = (uint8_t)~n;
    out[4] = (uint8_t)(~n >> 8);
}

/* Stores a segment; 0 where OUT_N octets are not enough. */
static size_t stored_segment(const struct segment *segment, uint8_t *out, size_t out_n)
{
    const size_t pieces = (segment->n + DEFLATE_STORED_MAX - 1) / DEFLATE_STORED_MAX;
    size_t at = 0;
    if (out_n < segment->n + pieces * STORED_HEADER)
        return 0;
    for (size_t done = 0; done < segment->n;) {
        const size_t left = segment->n - done, part = left < DEFLATE_STORED_MAX ? left : DEFLATE_STORED_MAX;
        put_stored_header(out + at, part, segment->last && part == left);
        memcpy(out + at + STORED_HEADER, segment->in + done, part);
        at += STORED_HEADER + part;
        done += part;
    }
    return at;
}

/* Files that are compressed already stand between others, so each span of a block is judged on its own. */
#define SPAN      4096
#define SPANS_MAX 64
_Static_assert(DEFLATE_BLOCK_SIZE <= SPAN * SPANS_MAX, "a bit for each span of a block");
/* The octets of a span that are looked at: PIECE at its begin, where the end of a file shows, and PIECE in its middle,
 * because pages of a database begin alike. Together 8 KiB of a block, which costs 0.05 ns/byte. */
#define PIECE  64
#define SAMPLE (2 * PIECE)

/* Two octets out of a sample are equal 32 times where all octets are alike, 5.6 times more or less; in base64 127
 * times, in text 500 times. */
#define DENSE_PAIRS_MAX 56

/* Adds the octets of a piece to COUNT; how many pairs of equal octets that makes. */
static unsigned equal_pairs(const uint8_t *piece, uint8_t count[256])
{
    unsigned pairs = 0;
    for (size_t i = 0; i < PIECE; i++)
        pairs += count[piece[i]]++;
    return pairs;
}

/* How many groups of four octets of the piece came before, as far as SEEN remembers them. */
static unsigned groups_again(const uint8_t *piece, uint32_t seen[1024])
{
    unsigned again = 0;
    for (size_t i = 0; i < PIECE; i += 4) {
        uint32_t group;
        memcpy(&group, piece + i, 4);
        uint32_t *slot = &seen[group * 2654435761U >> 22];
        again += *slot == group;
        *slot = group;
    }
    return again;
}

/* The spans, a bit for each, that do not look as if they could be deflated: all octets are as frequent as one another,
 * in each sample and in all together, and groups of four do not come again where the samples show it (a copy of dense
 * data within the 32 KiB that deflate looks back goes unseen where no two samples lie alike). Only what the block holds
 * decides, so that the bytes do not depend on the workers. A last, shorter span is like the one before it. */
static uint64_t dense_spans(const struct block *block)
{
    const size_t spans = block->n_in / SPAN;
    uint32_t seen[1024] = {0};
    uint16_t total[256] = {0};
    uint64_t dense = 0, n = 0, sum = 0;
    unsigned again = 0;
    for (size_t i = 0; i < spans; i++) {
        const uint8_t *begin = block->in + i * SPAN, *middle = begin + SPAN / 2;
        uint8_t count[256] = {0};
        unsigned pairs = equal_pairs(begin, count);
        pairs += equal_pairs(middle, count);
        if (pairs > DENSE_PAIRS_MAX)
            continue;
        again += groups_again(begin, seen) + groups_again(middle, seen);
        for (unsigned octet = 0; octet < 256; octet++)
            total[octet] = (uint16_t)(total[octet] + count[octet]);
        dense |= UINT64_C(1) << i;
        n += SAMPLE;
    }
    for (unsigned octet = 0; octet < 256; octet++)
        sum += (uint64_t)total[octet] * total[octet];
    /* Where all octets are alike, sum is near n²/256 + n, n/11 more or less. An eighth more of the first means a
     * collision entropy below 7.83 bits. */
    if (again > n / 4 / 100 || sum > n * n / 256 * 9 / 8 + n + n / 3)
        return 0;
    if (spans && spans < SPANS_MAX && dense >> (spans - 1))
        dense |= UINT64_C(1) << spans;
    return dense;
}

/* The spans that are stored: dense, and followed by another, because the end of a dense file lies somewhere in the last
 * of its spans. */
static uint64_t stored_spans(const struct block *block)
{
    const uint64_t dense = dense_spans(block);
    const size_t spans = (block->n_in + SPAN - 1) / SPAN;
    const uint64_t after_last = spans ? UINT64_C(1) << (spans - 1) : 0;
    return dense & (dense >> 1 | after_last);
}

/* The end of the run of spans that begins at FIRST, all stored or none of them. */
static size_t run_end(uint64_t stored, size_t first, size_t spans)
{
    size_t end = first;
    while (end < spans && (stored >> end & 1) == (stored >> first & 1))
        end++;
    return end;
}

static size_t deflated_segment(const struct deflate_sink *deflate_sink, struct compressor *compressor,
                               const struct segment *segment, uint8_t *out, size_t out_n)
{
    /* Only as much room as the segment itself takes: what does not shrink is stored. */
    const size_t room = out_n < segment->n ? out_n : segment->n;
    return uses_isal(deflate_sink->level) ? isal_segment(compressor, deflate_sink->level, segment, out, room)
                                          : zlib_segment(compressor, segment, out, room);
}

/* Deflates what is worth it, run by run; 0 where that does not make the block smaller. */
static size_t deflate_runs(const struct deflate_sink *deflate_sink, struct compressor *compressor,
                           const struct block *block, uint64_t stored)
{
    const size_t spans = (block->n_in + SPAN - 1) / SPAN;
    size_t at = 0;
    bool shrunk = false;
    for (size_t first = 0; first < spans;) {
        const size_t end = run_end(stored, first, spans), from = first * SPAN;
        const size_t to = end < spans ? end * SPAN : block->n_in;
        const struct segment segment = {block->in + from, to - from, block->last && end == spans};
        size_t n = stored >> first & 1
                       ? 0
                       : deflated_segment(deflate_sink, compressor, &segment, block->out + at, block->n_in - at);
        shrunk = shrunk || n;
        if (!n)
            n = stored_segment(&segment, block->out + at, block->n_in - at);
        if (!n)
            return 0;
        at += n;
        first = end;
    }
    return shrunk ? at : 0;
}

/* n_out = 0: the block is to be stored, and its checksum is made when it is. */
static gpg_error_t deflate_work(void *context, unsigned worker, struct block *block)
{
    const struct deflate_sink *deflate_sink = context;
    block->n_out = 0;
    if (deflate_sink->level && block->n_in)
        block->n_out = deflate_runs(deflate_sink, deflate_sink->compressor[worker], block, stored_spans(block));
    if (deflate_sink->zlib_format && block->n_out)
        block->user[0] = adler(ADLER_START, block->in, block->n_in);
    return 0;
}

/* What is stored goes through the caches once: whoever is below takes the octets while the checksum has brought them
 * there. */
static gpg_error_t emit_stored(struct deflate_sink *deflate_sink, const struct block *block, struct sink *below)
{
    const uint8_t *in = block->in;
    size_t left = block->n_in;
    gpg_error_t error;
    do {
        const size_t part = left < DEFLATE_STORED_MAX ? left : DEFLATE_STORED_MAX;
        uint8_t header[STORED_HEADER];
        left -= part;
        put_stored_header(header, part, !left && block->last);
        if (deflate_sink->zlib_format)
            deflate_sink->checksum = adler(deflate_sink->checksum, in, part);
        error = sink_write(below, header, sizeof header);
        if (!error)
            error = sink_write(below, in, part);
        in += part;
    } while (!error && left);
    return error;
}

static gpg_error_t deflate_emit(void *context, const struct block *block, struct sink *below)
{
    /* RFC 1950 2.2: deflate, a window of 32 KiB, no dictionary, "fastest" */
    static const uint8_t zlib_header[] = {0x78, 0x01};
    struct deflate_sink *deflate_sink = context;
    gpg_error_t error = 0;
    if (deflate_sink->zlib_format && !block->index)
        error = sink_write(below, zlib_header, sizeof zlib_header);
    if (!error)
        error = block->n_out ? sink_write(below, block->out, block->n_out) : emit_stored(deflate_sink, block, below);
    if (error || !deflate_sink->zlib_format)
        return error;
    if (block->n_out)
        deflate_sink->checksum =
            (uint32_t)adler32_combine(deflate_sink->checksum, (uLong)block->user[0], (z_off_t)block->n_in);
    if (!block->last)
        return 0;
    uint8_t checksum[4];
    put_be32(checksum, deflate_sink->checksum);
    return sink_write(below, checksum, sizeof checksum);
}

static gpg_error_t deflate_sink_write(struct sink *sink, const void *bytes, size_t n)
{
    return sink_write(CONTAINER(sink, struct deflate_sink, sink)->blocks, bytes, n);
}

static gpg_error_t deflate_sink_settle(struct sink *sink)
{
    return sink_settle(CONTAINER(sink, struct deflate_sink, sink)->blocks);
}

static gpg_error_t deflate_sink_finish(struct sink *sink)
{
    return sink_finish(CONTAINER(sink, struct deflate_sink, sink)->blocks);
}

static void deflate_sink_free(struct sink *sink)
{
    struct deflate_sink *deflate_sink = CONTAINER(sink, struct deflate_sink, sink);
    sink_free(deflate_sink->blocks);
    for (unsigned i = 0; deflate_sink->compressor && i < deflate_sink->compressor_n; i++)
        compressor_free(deflate_sink->compressor[i]);
    free(deflate_sink->compressor);
    free(deflate_sink);
}

static const struct sink_ops deflate_sink_ops = {
    .write = deflate_sink_write,
    .settle = deflate_sink_settle,
    .finish = deflate_sink_finish,
    .free = deflate_sink_free,
};

static gpg_error_t compressors_new(struct deflate_sink *deflate_sink, unsigned workers)
{
    gpg_error_t error = 0;
    deflate_sink->compressor_n = workers ? workers : 1;
    deflate_sink->compressor = calloc(deflate_sink->compressor_n, sizeof *deflate_sink->compressor);
    if (!deflate_sink->compressor)
        return gpg_error_from_syserror();
    for (unsigned i = 0; i < deflate_sink->compressor_n && !error; i++)
        error = compressor_new(deflate_sink->level, &deflate_sink->compressor[i]);
    return error;
}

gpg_error_t deflate_sink_new(struct run *run, enum compress_algo algo, int level, unsigned workers,
                             const struct block_observer *observer, struct sink *takes_below, struct sink **ret)
{
    struct deflate_sink *deflate_sink = NULL;
    gpg_error_t error = 0;
    if ((algo != COMPRESS_ZIP && algo != COMPRESS_ZLIB) || level < -1 || level > 9) {
        error = gpg_error(GPG_ERR_INV_ARG);
        goto out;
    }
    deflate_sink = calloc(1, sizeof *deflate_sink);
    if (!deflate_sink) {
        error = gpg_error_from_syserror();
        goto out;
    }
    sink_init(&deflate_sink->sink, &deflate_sink_ops);
    deflate_sink->zlib_format = algo == COMPRESS_ZLIB;
    deflate_sink->level = level != DEFLATE_LEVEL_DEFAULT ? level : uses_isal(2) ? 2 : 1;
    deflate_sink->checksum = ADLER_START;
    error = compressors_new(deflate_sink, workers);
    if (error)
        goto out;
    struct block_job job = {
        .context = deflate_sink,
        .block_size = DEFLATE_BLOCK_SIZE,
        .out_size = OUT_SIZE,
        .work = deflate_work,
        .emit = deflate_emit,
    };
    if (observer)
        job.observer[0] = *observer;
    error = block_sink_new(run, &job, workers, takes_below, &deflate_sink->blocks);
    takes_below = NULL;
    if (error)
        goto out;
    *ret = &deflate_sink->sink;
    return 0;
out:
    sink_free(takes_below);
    if (deflate_sink)
        deflate_sink_free(&deflate_sink->sink);
    return error;
}
