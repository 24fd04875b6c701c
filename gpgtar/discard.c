/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "discard.h"

#include <stdlib.h>

static gpg_error_t discard_write(struct sink *sink, const void *bytes, size_t n)
{
    (void)sink;
    (void)bytes;
    (void)n;
    return 0;
}

static gpg_error_t discard_finish(struct sink *sink)
{
    (void)sink;
    return 0;
}

static void discard_free(struct sink *sink)
{
    free(sink);
}

gpg_error_t discard_new(struct sink **ret)
{
    static const struct sink_ops ops = {.write = discard_write, .finish = discard_finish, .free = discard_free};
    struct sink *sink = malloc(sizeof *sink);
    if (!sink)
        return gpg_error_from_syserror();
    sink_init(sink, &ops);
    *ret = sink;
    return 0;
}
