/* SPDX-License-Identifier: GPL-3.0-or-later */
/* expand: what every source that decompresses a packet's body does alike: pulling, lending, and the end. */
#ifndef PGP_EXPAND_H
#define PGP_EXPAND_H

#include "stream/failure.h"
#include "stream/stream.h"

/* What one step takes and gives. */
struct expand_step {
    const uint8_t *in; /* not NULL */
    size_t in_n;       /* 0: the body has ended */
    uint8_t *out;
    size_t out_n;
    size_t used; /* octets of IN; to be set */
    size_t made; /* octets in OUT; to be set */
    bool full;   /* OUT was, so that there may be more without more input; to be set */
    bool done;   /* the compressed data is at its end; to be set */
    size_t left; /* octets behind that end that were used; to be set */
};

struct expand_source;

struct expand_ops {
    gpg_error_t (*step)(struct expand_source *expand, struct expand_step *step);
    /* Frees all of what EXPAND is a part of. */
    void (*free)(struct expand_source *expand);
};

/* The first member of a source that decompresses, which finds itself with CONTAINER. */
struct expand_source {
    struct source source;
    const struct expand_ops *ops;
    struct failure *failure;
    struct source *body; /* borrowed */
    uint8_t *buffer;     /* SIZE octets; the source's own */
    size_t size;
    size_t direct_min; /* who reads that much at once gets it without the detour through the buffer */
    bool padded;       /* what follows the compressed data is ignored */
    /* What follows is expand.c's. */
    size_t n, at;
    bool full;
    bool done;
};

/* Makes EXPAND a source that borrows BODY and neither finishes nor frees it. Its finish reads to the end of the
 * compressed data, behind which nothing may stand where it is not padded (GPG_ERR_COMPR_FAILED). GPG_ERR_TRUNCATED: the
 * body ends before. */
void expand_source_init(struct expand_source *expand, const struct expand_ops *ops, struct failure *failure,
                        struct source *borrows_body);

/* GPG_ERR_COMPR_FAILED, with a sentence. */
gpg_error_t expand_damaged(struct expand_source *expand, const char *why);

#endif
