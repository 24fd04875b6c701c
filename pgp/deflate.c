/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "deflate.h"

#include "stream/ring.h"

#include <limits.h>
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

static uint32_t adler(const uint8_t *bytes, size_t n)
{
#ifdef HAVE_ISAL
    return isal_adler32(1, bytes, n);
#else
    return (uint32_t)adler32(1, bytes, (uInt)n);
#endif
}

/* ---- compressing ---- */

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

/* Deflates IN to at most OUT_N octets, ended at a full octet; 0 where that is not enough room. */
static size_t zlib_block(struct compressor *compressor, const struct block *block, uint8_t *out, size_t out_n)
{
    z_stream *zlib = &compressor->zlib;
    (void)deflateReset(zlib);
    zlib->next_in = (z_const Bytef *)block->in;
    zlib->avail_in = (uInt)block->n_in;
    zlib->next_out = out;
    zlib->avail_out = (uInt)out_n;
    int result = deflate(zlib, block->last ? Z_FINISH : Z_FULL_FLUSH);
    bool whole = block->last ? result == Z_STREAM_END : result == Z_OK && zlib->avail_out;
    return whole ? out_n - zlib->avail_out : 0;
}

static size_t isal_block(struct compressor *compressor, int level, const struct block *block, uint8_t *out,
                         size_t out_n)
{
#ifdef HAVE_ISAL
    struct isal_zstream *isal = &compressor->isal;
    isal_deflate_stateless_init(isal);
    isal->level = (uint32_t)level;
    isal->level_buf = compressor->level_buffer;
    isal->level_buf_size = (uint32_t)isal_buffer_size(level);
    isal->next_in = (uint8_t *)(uintptr_t)block->in;
    isal->avail_in = (uint32_t)block->n_in;
    isal->next_out = out;
    isal->avail_out = (uint32_t)out_n;
    isal->flush = FULL_FLUSH;
    isal->end_of_stream = block->last;
    return isal_deflate_stateless(isal) == COMP_OK && !isal->avail_in ? out_n - isal->avail_out : 0;
#else
    (void)compressor, (void)level, (void)block, (void)out, (void)out_n;
    return 0;
#endif
}

/* A probe looks at PIECES pieces of PIECE bytes, spread evenly: 8 of 256 KiB, so that it costs little where it finds
 * nothing (0.05 ns/byte measured). */
#define PIECES 8
#define PIECE  1024

/* Whether it is worth trying to deflate the block: some octets are more frequent than others, or groups of four come
 * again. Only what the block holds decides, so that the bytes do not depend on the workers. */
static bool looks_compressible(const struct block *block)
{
    uint32_t count[2][256] = {{0}};
    uint32_t seen[1024] = {0};
    uint64_t sum = 0;
    unsigned again = 0;
    const size_t n = (size_t)PIECES * PIECE;
    if (block->n_in < 2 * n)
        return true;
    size_t stride = (block->n_in - PIECE) / (PIECES - 1);
    for (unsigned i = 0; i < PIECES; i++) {
        const uint8_t *piece = block->in + i * stride;
        for (size_t j = 0; j + 4 <= PIECE; j += 4) {
            uint32_t group;
            memcpy(&group, piece + j, 4);
            count[0][group & 255]++;
            count[1][group >> 8 & 255]++;
            count[0][group >> 16 & 255]++;
            count[1][group >> 24]++;
            uint32_t *slot = &seen[group * 2654435761U >> 22];
            again += *slot == group;
            *slot = group;
        }
    }
    for (unsigned i = 0; i < 256; i++) {
        uint64_t octets = count[0][i] + count[1][i];
        sum += octets * octets;
    }
    /* Where all octets are alike, sum is near n²/256 + n. A ninth more means a collision entropy below 7.83 bits. */
    return again > n / 4 / 100 || sum * 256 * 8 > (uint64_t)n * n * 9;
}

/* n_out = 0: the block is to be stored. */
static gpg_error_t deflate_work(void *context, unsigned worker, struct block *block)
{
    const struct deflate_sink *deflate_sink = context;
    struct compressor *compressor = deflate_sink->compressor[worker];
    int level = deflate_sink->level;
    if (deflate_sink->zlib_format)
        block->user[0] = adler(block->in, block->n_in);
    block->n_out = 0;
    /* Only as much room as the block itself takes: what does not shrink is stored. */
    if (level && looks_compressible(block))
        block->n_out = uses_isal(level) ? isal_block(compressor, level, block, block->out, block->n_in)
                                        : zlib_block(compressor, block, block->out, block->n_in);
    return 0;
}

/* RFC 1951 3.2.4; begins and ends at a full octet. */
static gpg_error_t emit_stored(const struct block *block, struct sink *below)
{
    const uint8_t *in = block->in;
    size_t left = block->n_in;
    gpg_error_t error;
    do {
        const size_t part = left < DEFLATE_STORED_MAX ? left : DEFLATE_STORED_MAX;
        left -= part;
        const uint8_t header[STORED_HEADER] = {!left && block->last, (uint8_t)part, (uint8_t)(part >> 8),
                                               (uint8_t)~part, (uint8_t)(~part >> 8)};
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
        error = block->n_out ? sink_write(below, block->out, block->n_out) : emit_stored(block, below);
    if (error || !deflate_sink->zlib_format)
        return error;
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
    deflate_sink->checksum = 1;
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

/* ---- inflating ---- */

#define INFLATED_MAX (256 * 1024)
/* Who reads that much at once gets it without a detour. For less, ISA-L would copy more often than we do: with each
 * call it moves its window of 32 KiB in and out. */
#define DIRECT_MIN (128 * 1024)

/* compressed ▸ inflated ▸ lent, or straight into the reader's block */
struct inflate_source {
    struct source source;
    struct failure *failure;
    struct source *body; /* borrowed */
    bool padded;         /* what follows the deflate data is ignored */
    bool done;           /* the deflate data and its checksum are at their end */
    bool more;           /* the buffer was full, so that there may be more without more input */
    size_t n;            /* inflated */
    size_t at;
#ifdef HAVE_ISAL
    struct inflate_state isal;
#else
    z_stream zlib;
#endif
    uint8_t inflated[INFLATED_MAX];
};

static gpg_error_t inflate_bad(struct inflate_source *inflater, const char *why)
{
    return fail(inflater->failure, gpg_error(GPG_ERR_COMPR_FAILED), "the compressed data is damaged: %s", why);
}

/* What one step takes and gives. */
struct step {
    const uint8_t *in;
    size_t in_n;
    uint8_t *out;
    size_t out_n;
    size_t used; /* of IN */
    size_t made; /* in OUT */
    size_t left; /* octets behind the end that were used */
};

/* Inflates some. */
#ifdef HAVE_ISAL
static gpg_error_t inflate_some(struct inflate_source *inflater, struct step *step)
{
    struct inflate_state *isal = &inflater->isal;
    uint32_t avail = step->in_n < UINT32_MAX ? (uint32_t)step->in_n : UINT32_MAX;
    uint32_t room = step->out_n < UINT32_MAX ? (uint32_t)step->out_n : UINT32_MAX;
    isal->next_in = (uint8_t *)(uintptr_t)step->in;
    isal->avail_in = avail;
    isal->next_out = step->out;
    isal->avail_out = room;
    int result = isal_inflate(isal);
    /* After a flaw ISA-L has counted octets that it never wrote: what was inflated by this call is not used. */
    if (result == ISAL_INCORRECT_CHECKSUM)
        return inflate_bad(inflater, "its checksum is wrong");
    if (result != ISAL_DECOMP_OK)
        return inflate_bad(inflater, "this is no deflate data");
    inflater->done = isal->block_state == ISAL_BLOCK_FINISH;
    inflater->more = !isal->avail_out;
    step->made = room - isal->avail_out;
    step->used = avail - isal->avail_in;
    step->left = inflater->done && isal->read_in_length >= 8 ? (size_t)isal->read_in_length / 8 : 0;
    return 0;
}

static gpg_error_t inflater_init(struct inflate_source *inflater, enum compress_algo algo)
{
    isal_inflate_init(&inflater->isal);
    inflater->isal.crc_flag = algo == COMPRESS_ZLIB ? ISAL_ZLIB : ISAL_DEFLATE;
    return 0;
}

static void inflater_end(struct inflate_source *inflater)
{
    (void)inflater;
}
#else
static gpg_error_t inflate_some(struct inflate_source *inflater, struct step *step)
{
    z_stream *zlib = &inflater->zlib;
    uInt avail = step->in_n < UINT_MAX ? (uInt)step->in_n : UINT_MAX;
    uInt room = step->out_n < UINT_MAX ? (uInt)step->out_n : UINT_MAX;
    zlib->next_in = (z_const Bytef *)step->in;
    zlib->avail_in = avail;
    zlib->next_out = step->out;
    zlib->avail_out = room;
    int result = inflate(zlib, Z_NO_FLUSH);
    if (result == Z_MEM_ERROR)
        return gpg_error(GPG_ERR_ENOMEM);
    if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR)
        return inflate_bad(inflater, zlib->msg ? zlib->msg : "this is no deflate data");
    inflater->done = result == Z_STREAM_END;
    inflater->more = !zlib->avail_out;
    step->made = room - zlib->avail_out;
    step->used = avail - zlib->avail_in;
    return 0;
}

static gpg_error_t inflater_init(struct inflate_source *inflater, enum compress_algo algo)
{
    return inflateInit2(&inflater->zlib, algo == COMPRESS_ZLIB ? 15 : -15) == Z_OK ? 0 : gpg_error(GPG_ERR_ENOMEM);
}

static void inflater_end(struct inflate_source *inflater)
{
    inflateEnd(&inflater->zlib);
}
#endif

/* Nothing may stand behind the end, but padding. */
static gpg_error_t inflate_end(struct inflate_source *inflater, size_t left)
{
    const void *bytes;
    size_t n = 0;
    if (inflater->padded)
        return 0;
    gpg_error_t error = left ? 0 : source_peek(inflater->body, &bytes, &n);
    if (!error && (left || n))
        error = inflate_bad(inflater, "something follows its end");
    return error;
}

/* Inflates until there is something at OUT or the end has come (*RET_MADE = 0). */
static gpg_error_t inflate_next(struct inflate_source *inflater, uint8_t *out, size_t out_n, size_t *ret_made)
{
    struct step step = {.out = out, .out_n = out_n};
    while (!step.made && !inflater->done) {
        const void *bytes = NULL;
        bool more = inflater->more;
        gpg_error_t error = source_peek(inflater->body, &bytes, &step.in_n);
        if (error)
            return error;
        step.in = bytes ? bytes : (const uint8_t *)"";
        error = inflate_some(inflater, &step);
        if (error)
            return error;
        if (!step.in_n && !step.made && !inflater->done && !more)
            return fail(inflater->failure, gpg_error(GPG_ERR_TRUNCATED), "the compressed data ends early");
        source_consume(inflater->body, step.used);
    }
    *ret_made = step.made;
    return inflater->done ? inflate_end(inflater, step.left) : 0;
}

static gpg_error_t inflate_source_peek(struct source *source, const void **ret_bytes, size_t *ret_n)
{
    struct inflate_source *inflater = CONTAINER(source, struct inflate_source, source);
    if (inflater->at == inflater->n && !inflater->done) {
        inflater->at = inflater->n = 0;
        gpg_error_t error = inflate_next(inflater, inflater->inflated, INFLATED_MAX, &inflater->n);
        if (error)
            return error;
    }
    *ret_bytes = inflater->inflated + inflater->at;
    *ret_n = inflater->n - inflater->at;
    return 0;
}

static gpg_error_t inflate_source_read(struct source *source, void *to, size_t n, size_t *ret_got)
{
    struct inflate_source *inflater = CONTAINER(source, struct inflate_source, source);
    const void *bytes;
    size_t lent;
    if (inflater->at == inflater->n && !inflater->done && n >= DIRECT_MIN)
        return inflate_next(inflater, to, n < INFLATED_MAX ? n : INFLATED_MAX, ret_got);
    gpg_error_t error = inflate_source_peek(source, &bytes, &lent);
    if (error)
        return error;
    *ret_got = n < lent ? n : lent;
    memcpy(to, bytes, *ret_got);
    inflater->at += *ret_got;
    return 0;
}

static void inflate_source_consume(struct source *source, size_t n)
{
    CONTAINER(source, struct inflate_source, source)->at += n;
}

static void inflate_source_free(struct source *source)
{
    struct inflate_source *inflater = CONTAINER(source, struct inflate_source, source);
    inflater_end(inflater);
    free(inflater);
}

static const struct source_ops inflate_source_ops = {
    .peek = inflate_source_peek,
    .consume = inflate_source_consume,
    .read = inflate_source_read,
    .finish = source_drain,
    .free = inflate_source_free,
};

gpg_error_t inflate_source_new(struct failure *failure, enum compress_algo algo, struct source *borrows_body,
                               struct source **ret)
{
    if (algo != COMPRESS_ZIP && algo != COMPRESS_ZLIB)
        return gpg_error(GPG_ERR_COMPR_ALGO);
    struct inflate_source *inflater = calloc(1, sizeof *inflater);
    if (!inflater)
        return gpg_error_from_syserror();
    gpg_error_t error = inflater_init(inflater, algo);
    if (error) {
        free(inflater);
        return error;
    }
    source_init(&inflater->source, &inflate_source_ops);
    inflater->failure = failure;
    inflater->body = borrows_body;
    inflater->padded = algo == COMPRESS_ZIP;
    *ret = &inflater->source;
    return 0;
}

void inflate_source_no_padding(struct source *inflate)
{
    CONTAINER(inflate, struct inflate_source, source)->padded = false;
}
