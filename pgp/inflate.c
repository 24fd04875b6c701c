/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "inflate.h"

#include "expand.h"

#include <limits.h>
#include <stdlib.h>
#ifdef HAVE_ISAL
#include <isa-l/igzip_lib.h>
#else
#include <zlib.h>
#endif

#define INFLATED_MAX (256 * 1024)
/* Who reads less than that at once is lent what is in the buffer: ISA-L moves its window of 32 KiB in and out with each
 * call. */
#define DIRECT_MIN (128 * 1024)

struct inflate_source {
    struct expand_source expand;
#ifdef HAVE_ISAL
    struct inflate_state isal;
#else
    z_stream zlib;
#endif
    uint8_t inflated[INFLATED_MAX];
};

#ifdef HAVE_ISAL
static gpg_error_t inflate_step(struct expand_source *expand, struct expand_step *step)
{
    struct inflate_state *isal = &CONTAINER(expand, struct inflate_source, expand)->isal;
    uint32_t avail = step->in_n < UINT32_MAX ? (uint32_t)step->in_n : UINT32_MAX;
    uint32_t room = step->out_n < UINT32_MAX ? (uint32_t)step->out_n : UINT32_MAX;
    isal->next_in = (uint8_t *)(uintptr_t)step->in;
    isal->avail_in = avail;
    isal->next_out = step->out;
    isal->avail_out = room;
    int result = isal_inflate(isal);
    /* After a flaw ISA-L has counted octets that it never wrote: what was inflated by this call is not used. */
    if (result == ISAL_INCORRECT_CHECKSUM)
        return expand_damaged(expand, "its checksum is wrong");
    if (result != ISAL_DECOMP_OK)
        return expand_damaged(expand, "this is no deflate data");
    step->done = isal->block_state == ISAL_BLOCK_FINISH;
    step->full = !isal->avail_out;
    step->made = room - isal->avail_out;
    step->used = avail - isal->avail_in;
    step->left = step->done && isal->read_in_length >= 8 ? (size_t)isal->read_in_length / 8 : 0;
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
static gpg_error_t inflate_step(struct expand_source *expand, struct expand_step *step)
{
    z_stream *zlib = &CONTAINER(expand, struct inflate_source, expand)->zlib;
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
        return expand_damaged(expand, zlib->msg ? zlib->msg : "this is no deflate data");
    step->done = result == Z_STREAM_END;
    step->full = !zlib->avail_out;
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

static void inflate_free(struct expand_source *expand)
{
    struct inflate_source *inflater = CONTAINER(expand, struct inflate_source, expand);
    inflater_end(inflater);
    free(inflater);
}

static const struct expand_ops inflate_ops = {.step = inflate_step, .free = inflate_free};

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
    expand_source_init(&inflater->expand, &inflate_ops, failure, borrows_body);
    inflater->expand.buffer = inflater->inflated;
    inflater->expand.size = INFLATED_MAX;
    inflater->expand.direct_min = DIRECT_MIN;
    inflater->expand.padded = algo == COMPRESS_ZIP;
    *ret = &inflater->expand.source;
    return 0;
}

void inflate_source_no_padding(struct source *inflate)
{
    CONTAINER(inflate, struct inflate_source, expand.source)->expand.padded = false;
}
