/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "expand.h"

#include <string.h>

gpg_error_t expand_damaged(struct expand_source *expand, const char *why)
{
    return fail(expand->failure, gpg_error(GPG_ERR_COMPR_FAILED), "the compressed data is damaged: %s", why);
}

/* Nothing may stand behind the end, but padding. */
static gpg_error_t check_end(struct expand_source *expand, size_t left)
{
    const void *bytes;
    size_t n = 0;
    if (expand->padded)
        return 0;
    gpg_error_t error = left ? 0 : source_peek(expand->body, &bytes, &n);
    if (!error && (left || n))
        error = expand_damaged(expand, "something follows its end");
    return error;
}

/* Expands until there is something at OUT or the end has come (*RET_MADE = 0). */
static gpg_error_t expand_next(struct expand_source *expand, uint8_t *out, size_t out_n, size_t *ret_made)
{
    struct expand_step step = {.out = out, .out_n = out_n};
    while (!step.made && !expand->done) {
        const void *bytes = NULL;
        const bool full = expand->full;
        gpg_error_t error = source_peek(expand->body, &bytes, &step.in_n);
        if (error)
            return error;
        step.in = bytes ? bytes : (const uint8_t *)"";
        error = expand->ops->step(expand, &step);
        if (error)
            return error;
        expand->full = step.full;
        expand->done = step.done;
        if (!step.in_n && !step.made && !step.done && !full)
            return fail(expand->failure, gpg_error(GPG_ERR_TRUNCATED), "the compressed data ends early");
        source_consume(expand->body, step.used);
    }
    *ret_made = step.made;
    return expand->done ? check_end(expand, step.left) : 0;
}

static gpg_error_t expand_peek(struct source *source, const void **ret_bytes, size_t *ret_n)
{
    struct expand_source *expand = CONTAINER(source, struct expand_source, source);
    if (expand->at == expand->n && !expand->done) {
        expand->at = expand->n = 0;
        gpg_error_t error = expand_next(expand, expand->buffer, expand->size, &expand->n);
        if (error)
            return error;
    }
    *ret_bytes = expand->buffer + expand->at;
    *ret_n = expand->n - expand->at;
    return 0;
}

static gpg_error_t expand_read(struct source *source, void *to, size_t n, size_t *ret_got)
{
    struct expand_source *expand = CONTAINER(source, struct expand_source, source);
    const void *bytes;
    size_t lent;
    if (expand->at == expand->n && !expand->done && n >= expand->direct_min)
        return expand_next(expand, to, n < expand->size ? n : expand->size, ret_got);
    gpg_error_t error = expand_peek(source, &bytes, &lent);
    if (error)
        return error;
    *ret_got = n < lent ? n : lent;
    memcpy(to, bytes, *ret_got);
    expand->at += *ret_got;
    return 0;
}

static void expand_consume(struct source *source, size_t n)
{
    CONTAINER(source, struct expand_source, source)->at += n;
}

static void expand_free(struct source *source)
{
    struct expand_source *expand = CONTAINER(source, struct expand_source, source);
    expand->ops->free(expand);
}

static const struct source_ops expand_source_ops = {
    .peek = expand_peek,
    .consume = expand_consume,
    .read = expand_read,
    .finish = source_drain,
    .free = expand_free,
};

void expand_source_init(struct expand_source *expand, const struct expand_ops *ops, struct failure *failure,
                        struct source *borrows_body)
{
    source_init(&expand->source, &expand_source_ops);
    expand->ops = ops;
    expand->failure = failure;
    expand->body = borrows_body;
}
