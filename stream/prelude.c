/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "prelude.h"

#include <stdlib.h>

struct prelude {
    struct sink sink;
    struct sink *below;
    struct run *run;
    gpg_error_t (*make)(void *context, struct sink *to);
    void *context;
    struct sink *made;         /* in memory; NULL: it was written below */
    struct run_thread *thread; /* NULL: it has ended */
};

static gpg_error_t prelude_main(void *arg)
{
    struct prelude *prelude = arg;
    return prelude->make(prelude->context, prelude->made);
}

static gpg_error_t prelude_join(struct prelude *prelude)
{
    gpg_error_t error = run_join(prelude->run, prelude->thread);
    prelude->thread = NULL;
    return error;
}

static gpg_error_t prelude_settle(struct prelude *prelude)
{
    size_t n;
    if (!prelude->made)
        return 0;
    gpg_error_t error = prelude_join(prelude);
    if (error)
        return error;
    const uint8_t *bytes = memory_sink_bytes(prelude->made, &n);
    error = sink_write(prelude->below, bytes, n);
    sink_free(prelude->made);
    prelude->made = NULL;
    return error;
}

static gpg_error_t prelude_write(struct sink *sink, const void *bytes, size_t n)
{
    struct prelude *prelude = CONTAINER(sink, struct prelude, sink);
    gpg_error_t error = prelude_settle(prelude);
    return error ? error : sink_write(prelude->below, bytes, n);
}

static gpg_error_t prelude_finish(struct sink *sink)
{
    struct prelude *prelude = CONTAINER(sink, struct prelude, sink);
    gpg_error_t error = prelude_settle(prelude);
    return error ? error : sink_finish(prelude->below);
}

static void prelude_free(struct sink *sink)
{
    struct prelude *prelude = CONTAINER(sink, struct prelude, sink);
    if (prelude->thread)
        run_thread_cancel(prelude->run, prelude->thread);
    (void)prelude_join(prelude);
    sink_free(prelude->made);
    sink_free(prelude->below);
    free(prelude);
}

static const struct sink_ops prelude_ops = {.write = prelude_write, .finish = prelude_finish, .free = prelude_free};

gpg_error_t prelude_sink_new(struct run *run, gpg_error_t (*make)(void *context, struct sink *to), void *context,
                             size_t limit, struct sink *takes_below, struct sink **ret)
{
    struct prelude *prelude = calloc(1, sizeof *prelude);
    if (!prelude) {
        gpg_error_t error = gpg_error_from_syserror();
        sink_free(takes_below);
        return error;
    }
    sink_init(&prelude->sink, &prelude_ops);
    prelude->below = takes_below;
    prelude->run = run;
    prelude->make = make;
    prelude->context = context;
    prelude->made = memory_sink_new(limit);
    gpg_error_t error = prelude->made ? 0 : gpg_error_from_syserror();
    if (!error && run && run_processors(run) > 1)
        error = run_start(run, "prelude", prelude_main, prelude, &prelude->thread);
    else if (!error)
        error = prelude_main(prelude);
    if (error) {
        prelude_free(&prelude->sink);
        return error;
    }
    *ret = &prelude->sink;
    return 0;
}
