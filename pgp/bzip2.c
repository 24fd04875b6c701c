/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bzip2.h"

#include "expand.h"

#include "stream/ring.h"

#include <bzlib.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* ---- compressing ----
 *
 * gpg stops at the end of the first bzip2 stream, so streams cannot simply stand one behind the other. But a stream is
 * a header, blocks that know nothing of each other, and a footer with a sum over the blocks' checksums:
 *
 *     "BZh" level | block magic, CRC, data | … | footer magic, sum of CRCs | zero bits to a full octet
 *
 * Each worker makes a stream of exactly one block; in order, the blocks' bits are put behind each other into one. */
#define BLOCK_MAGIC  0x314159265359U
#define FOOTER_MAGIC 0x177245385090U
#define HEADER_SIZE  4
#define FOOTER_BITS  80
#define LEVEL_GPG    6

/* libbz2 closes a block when level * 100000 - 19 octets are in it after its first step, in which four octets can become
 * five. */
static size_t piece_size(int level)
{
    return ((size_t)level * 100000 - 19) / 5 * 4 - 8;
}

struct bzip2_sink {
    struct sink sink;
    struct sink *blocks;
    int level;
    size_t piece;
    size_t room; /* for a compressed piece */
    /* in_order's own */
    uint32_t sum;
    uint8_t carry; /* the bits that do not fill an octet yet, from the top */
    unsigned carry_n;
};

static gpg_error_t bzip2_work(void *context, unsigned worker, struct block *block)
{
    const struct bzip2_sink *bzip2 = context;
    unsigned n = (unsigned)bzip2->room;
    (void)worker;
    int result = BZ2_bzBuffToBuffCompress((char *)block->out, &n, (char *)(uintptr_t)block->in, (unsigned)block->n_in,
                                          bzip2->level, 0, 0);
    if (result != BZ_OK)
        return gpg_error(result == BZ_MEM_ERROR ? GPG_ERR_ENOMEM : GPG_ERR_INTERNAL);
    block->n_out = n;
    return 0;
}

/* N bits, at most 64, from bit AT on. */
static uint64_t get_bits(const uint8_t *bytes, size_t at, unsigned n)
{
    uint64_t value = 0;
    for (; n; n--, at++)
        value = value << 1 | (bytes[at / 8] >> (7 - at % 8) & 1);
    return value;
}

static size_t put_bits(uint8_t *bytes, size_t at, uint64_t value, unsigned n)
{
    while (n--) {
        uint8_t mask = (uint8_t)(0x80 >> at % 8);
        if (value >> n & 1)
            bytes[at / 8] |= mask;
        else
            bytes[at / 8] &= (uint8_t)~mask;
        at++;
    }
    return at;
}

/* Bits of the one block in the stream of N octets, from behind its header to its footer; 0 where it is not one block.
 */
static size_t block_bits(const uint8_t *stream, size_t n, uint32_t *ret_crc)
{
    if (n < HEADER_SIZE + 10 + FOOTER_BITS / 8 || get_bits(stream, 8 * HEADER_SIZE, 48) != BLOCK_MAGIC)
        return 0;
    uint32_t crc = get_be32(stream + HEADER_SIZE + 6);
    for (unsigned padding = 0; padding < 8; padding++) {
        size_t footer = 8 * n - padding - FOOTER_BITS;
        if (get_bits(stream, footer, 48) == FOOTER_MAGIC && get_bits(stream, footer + 48, 32) == crc) {
            *ret_crc = crc;
            return footer - 8 * HEADER_SIZE;
        }
    }
    return 0;
}

/* Moves N octets at FROM down to TO, SHIFT bits to the right; the bits that come in are CARRY's upper ones. */
static void shift_down(uint8_t *to, const uint8_t *from, size_t n, uint8_t carry, unsigned shift)
{
    unsigned before = carry;
    for (size_t i = 0; i < n; i++) {
        unsigned octet = from[i];
        to[i] = (uint8_t)((i ? before << (8 - shift) : before) | octet >> shift);
        before = octet;
    }
    to[n] = (uint8_t)(before << (8 - shift));
}

static gpg_error_t bzip2_in_order(void *context, struct block *block)
{
    struct bzip2_sink *bzip2 = context;
    uint8_t *start = block->out + (block->index ? 0 : HEADER_SIZE);
    size_t bits = 0;
    if (block->n_in) {
        uint32_t crc;
        bits = block_bits(block->out, block->n_out, &crc);
        if (!bits)
            return gpg_error(GPG_ERR_INTERNAL);
        bzip2->sum = (bzip2->sum << 1 | bzip2->sum >> 31) ^ crc;
    }
    shift_down(start, block->out + HEADER_SIZE, (bits + 7) / 8, bzip2->carry, bzip2->carry_n);
    bits += bzip2->carry_n;
    if (block->last) {
        bits = put_bits(start, bits, FOOTER_MAGIC, 48);
        bits = put_bits(start, bits, bzip2->sum, 32);
        bits = put_bits(start, bits, 0, (unsigned)(-bits & 7));
    }
    bzip2->carry_n = bits & 7;
    bzip2->carry = (uint8_t)(start[bits / 8] & 0xFF00 >> bzip2->carry_n);
    block->n_out = (size_t)(start - block->out) + bits / 8;
    return 0;
}

static gpg_error_t bzip2_sink_write(struct sink *sink, const void *bytes, size_t n)
{
    return sink_write(CONTAINER(sink, struct bzip2_sink, sink)->blocks, bytes, n);
}

static gpg_error_t bzip2_sink_settle(struct sink *sink)
{
    return sink_settle(CONTAINER(sink, struct bzip2_sink, sink)->blocks);
}

static gpg_error_t bzip2_sink_finish(struct sink *sink)
{
    return sink_finish(CONTAINER(sink, struct bzip2_sink, sink)->blocks);
}

static void bzip2_sink_free(struct sink *sink)
{
    struct bzip2_sink *bzip2 = CONTAINER(sink, struct bzip2_sink, sink);
    sink_free(bzip2->blocks);
    free(bzip2);
}

static const struct sink_ops bzip2_sink_ops = {
    .write = bzip2_sink_write,
    .settle = bzip2_sink_settle,
    .finish = bzip2_sink_finish,
    .free = bzip2_sink_free,
};

gpg_error_t bzip2_sink_new(struct run *run, int level, unsigned workers, const struct block_observer *observer,
                           struct sink *takes_below, struct sink **ret)
{
    struct bzip2_sink *bzip2 = NULL;
    gpg_error_t error = 0;
    if (level == -1)
        level = LEVEL_GPG;
    if (level < 1 || level > 9) {
        error = gpg_error(GPG_ERR_INV_ARG);
        goto out;
    }
    bzip2 = calloc(1, sizeof *bzip2);
    if (!bzip2) {
        error = gpg_error_from_syserror();
        goto out;
    }
    sink_init(&bzip2->sink, &bzip2_sink_ops);
    bzip2->level = level;
    bzip2->piece = piece_size(level);
    bzip2->room = bzip2->piece + bzip2->piece / 100 + 600; /* bzlib.h's promise */
    struct block_job job = {
        .context = bzip2,
        .block_size = bzip2->piece,
        .out_size = bzip2->room + FOOTER_BITS / 8 + 2,
        .work = bzip2_work,
        .in_order = bzip2_in_order,
    };
    if (observer)
        job.observer[0] = *observer;
    error = block_sink_new(run, &job, workers, takes_below, &bzip2->blocks);
    takes_below = NULL;
    if (error)
        goto out;
    *ret = &bzip2->sink;
    return 0;
out:
    sink_free(takes_below);
    free(bzip2);
    return error;
}

/* ---- expanding ---- */

#define EXPANDED_MAX (128 * 1024)

struct bunzip2_source {
    struct expand_source expand;
    bz_stream bz;
    uint8_t expanded[EXPANDED_MAX];
};

static gpg_error_t bunzip2_step(struct expand_source *expand, struct expand_step *step)
{
    bz_stream *bz = &CONTAINER(expand, struct bunzip2_source, expand)->bz;
    unsigned avail = step->in_n < UINT_MAX ? (unsigned)step->in_n : UINT_MAX;
    unsigned room = step->out_n < UINT_MAX ? (unsigned)step->out_n : UINT_MAX;
    bz->next_in = (char *)(uintptr_t)step->in;
    bz->avail_in = avail;
    bz->next_out = (char *)step->out;
    bz->avail_out = room;
    int result = BZ2_bzDecompress(bz);
    if (result == BZ_MEM_ERROR)
        return gpg_error(GPG_ERR_ENOMEM);
    if (result != BZ_OK && result != BZ_STREAM_END)
        return expand_damaged(expand, result == BZ_DATA_ERROR ? "a checksum is wrong" : "this is no bzip2 data");
    step->done = result == BZ_STREAM_END;
    step->full = !bz->avail_out;
    step->made = room - bz->avail_out;
    step->used = avail - bz->avail_in;
    return 0;
}

static void bunzip2_free(struct expand_source *expand)
{
    struct bunzip2_source *bunzip2 = CONTAINER(expand, struct bunzip2_source, expand);
    BZ2_bzDecompressEnd(&bunzip2->bz);
    free(bunzip2);
}

static const struct expand_ops bunzip2_ops = {.step = bunzip2_step, .free = bunzip2_free};

gpg_error_t bunzip2_source_new(struct failure *failure, struct source *borrows_body, struct source **ret)
{
    struct bunzip2_source *bunzip2 = calloc(1, sizeof *bunzip2);
    if (!bunzip2)
        return gpg_error_from_syserror();
    if (BZ2_bzDecompressInit(&bunzip2->bz, 0, 0) != BZ_OK) {
        free(bunzip2);
        return gpg_error(GPG_ERR_ENOMEM);
    }
    expand_source_init(&bunzip2->expand, &bunzip2_ops, failure, borrows_body);
    bunzip2->expand.buffer = bunzip2->expanded;
    bunzip2->expand.size = EXPANDED_MAX;
    bunzip2->expand.direct_min = EXPANDED_MAX;
    *ret = &bunzip2->expand.source;
    return 0;
}
