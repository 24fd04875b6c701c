/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "stream/fd.h"
#include "stream/ring.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { BLOCK = 16, WHOLE = 5 * BLOCK + 9 };

static const unsigned worker_counts[] = {0, 1, 2, 4};
static const size_t holds[] = {0, 1, 5, BLOCK, BLOCK + 3};

/* With each number of processors in turn: it decides how many helpers there are. */
static struct run *new_run(void)
{
    static unsigned processors;
    struct run *run = run_new();
    assert_non_null(run);
    run_set_processors(run, 1 + processors++ % 6);
    return run;
}

/* A job that checks what it is given, adds INDEX + 1 to every byte, and fails where it is told to. */
struct trial {
    unsigned workers;
    size_t hold;
    uint64_t bad_work;  /* this block fails in work; UINT64_MAX: none */
    uint64_t bad_order; /* in in_order */
    bool last_seen;     /* in_order only */
    uint64_t in_order_next;
    uint64_t total;
    atomic_uint works;
};

static gpg_error_t trial_work(void *context, unsigned worker, struct block *block)
{
    struct trial *trial = context;
    assert_true(worker < (trial->workers ? trial->workers : 1));
    if (!block->last)
        assert_int_equal(block->n_in, BLOCK);
    else
        assert_true(block->n_in <= BLOCK + trial->hold && (block->index == 0 || block->n_in > trial->hold));
    atomic_fetch_add(&trial->works, 1);
    if (block->index % 3 == 0)
        usleep(50); /* so that blocks are done out of order */
    for (size_t i = 0; i < block->n_in; i++)
        block->out[i] = (uint8_t)(block->in[i] + block->index + 1);
    block->n_out = block->n_in;
    block->user[0] = block->index;
    return block->index == trial->bad_work ? gpg_error(GPG_ERR_CHECKSUM) : 0;
}

static gpg_error_t trial_in_order(void *context, struct block *block)
{
    struct trial *trial = context;
    assert_int_equal(block->index, trial->in_order_next);
    assert_int_equal(block->user[0], block->index);
    assert_false(trial->last_seen);
    trial->in_order_next++;
    trial->last_seen = block->last;
    trial->total += block->n_in;
    return block->index == trial->bad_order ? gpg_error(GPG_ERR_BAD_DATA) : 0;
}

static struct block_job trial_job(struct trial *trial, bool in_place)
{
    return (struct block_job){
        .context = trial,
        .block_size = BLOCK,
        .hold = trial->hold,
        .out_size = in_place ? 0 : BLOCK + trial->hold,
        .work = trial_work,
        .in_order = trial_in_order,
    };
}

static struct trial trial_of(unsigned workers, size_t hold)
{
    return (struct trial){.workers = workers, .hold = hold, .bad_work = UINT64_MAX, .bad_order = UINT64_MAX};
}

/* Blocks of a stream of N bytes: the last takes what would leave at most HOLD behind a full one. */
static size_t blocks_of(size_t n, size_t hold)
{
    size_t blocks = 1;
    for (; n > BLOCK + hold; n -= BLOCK)
        blocks++;
    return blocks;
}

static void check_bytes(const uint8_t *bytes, size_t n, size_t total, size_t hold)
{
    size_t blocks = blocks_of(total, hold);
    for (size_t i = 0; i < n; i++) {
        size_t index = i / BLOCK < blocks ? i / BLOCK : blocks - 1;
        assert_int_equal(bytes[i], (uint8_t)(i * 7 + index + 1));
    }
}

static void fill(uint8_t *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        bytes[i] = (uint8_t)(i * 7);
}

/* ---- streams that fail at a byte ---- */

struct failing_sink {
    struct sink sink;
    struct sink *below;
    size_t left;
    bool fails; /* after LEFT bytes, or at finish */
    bool *freed;
};

static gpg_error_t failing_write(struct sink *sink, const void *bytes, size_t n)
{
    struct failing_sink *self = CONTAINER(sink, struct failing_sink, sink);
    size_t part = n < self->left ? n : self->left;
    gpg_error_t error = sink_write(self->below, bytes, part);
    self->left -= part;
    return !error && part < n ? gpg_error(GPG_ERR_ENOSPC) : error;
}

static gpg_error_t failing_finish(struct sink *sink)
{
    struct failing_sink *self = CONTAINER(sink, struct failing_sink, sink);
    return self->fails ? gpg_error(GPG_ERR_ENOSPC) : sink_finish(self->below);
}

static void failing_free(struct sink *sink)
{
    struct failing_sink *self = CONTAINER(sink, struct failing_sink, sink);
    *self->freed = true;
    free(self);
}

static const struct sink_ops failing_ops = {.write = failing_write, .finish = failing_finish, .free = failing_free};

/* BELOW stays the caller's, who looks at what arrived. */
static struct sink *failing_sink_new(struct sink *below, size_t left, bool fails, bool *freed)
{
    struct failing_sink *self = calloc(1, sizeof *self);
    assert_non_null(self);
    sink_init(&self->sink, &failing_ops);
    *self = (struct failing_sink){self->sink, below, left, fails, freed};
    *freed = false;
    return &self->sink;
}

struct failing_source {
    struct source source;
    struct source *below;
    size_t left;
    bool fails;
};

static gpg_error_t failing_peek(struct source *source, const void **ret_bytes, size_t *ret_n)
{
    struct failing_source *self = CONTAINER(source, struct failing_source, source);
    if (!self->left && self->fails)
        return gpg_error(GPG_ERR_EIO);
    gpg_error_t error = source_peek(self->below, ret_bytes, ret_n);
    if (!error && *ret_n > self->left)
        *ret_n = self->left;
    return error;
}

static void failing_consume(struct source *source, size_t n)
{
    struct failing_source *self = CONTAINER(source, struct failing_source, source);
    self->left -= n;
    source_consume(self->below, n);
}

static gpg_error_t failing_source_finish(struct source *source)
{
    struct failing_source *self = CONTAINER(source, struct failing_source, source);
    return self->fails ? gpg_error(GPG_ERR_BAD_SIGNATURE) : source_finish(self->below);
}

static void failing_source_free(struct source *source)
{
    struct failing_source *self = CONTAINER(source, struct failing_source, source);
    source_free(self->below);
    free(self);
}

static const struct source_ops failing_source_ops = {
    .peek = failing_peek,
    .consume = failing_consume,
    .finish = failing_source_finish,
    .free = failing_source_free,
};

static struct source *failing_source_new(struct source *takes_below, size_t left, bool fails)
{
    struct failing_source *self = calloc(1, sizeof *self);
    assert_non_null(self);
    source_init(&self->source, &failing_source_ops);
    self->below = takes_below;
    self->left = left;
    self->fails = fails;
    return &self->source;
}

/* ---- whole passes ---- */

static gpg_error_t write_in_steps(struct sink *sink, const uint8_t *bytes, size_t n, size_t step)
{
    gpg_error_t error = 0;
    bool lend = false; /* every other step goes straight into the block */
    for (size_t at = 0, part; at < n && !error; at += part, lend = !lend) {
        void *room;
        size_t room_n = 0;
        part = step < n - at ? step : n - at;
        if (lend)
            error = sink_room(sink, &room, &room_n);
        if (error)
            return error;
        if (!room_n) {
            error = sink_write(sink, bytes + at, part);
            continue;
        }
        part = part < room_n ? part : room_n;
        memcpy(room, bytes + at, part);
        error = sink_filled(sink, part);
    }
    return error ? error : sink_finish(sink);
}

static void sink_pass(unsigned workers, size_t hold, size_t n, size_t step, bool in_place)
{
    struct run *run = workers ? new_run() : NULL;
    struct trial trial = trial_of(workers, hold);
    struct block_job job = trial_job(&trial, in_place);
    uint8_t bytes[WHOLE * 2];
    bool freed;
    size_t got;
    struct sink *memory = memory_sink_new(SIZE_MAX), *sink;
    fill(bytes, n);
    assert_int_equal(block_sink_new(run, &job, workers, failing_sink_new(memory, SIZE_MAX, false, &freed), &sink), 0);
    assert_int_equal(write_in_steps(sink, bytes, n, step), 0);
    const uint8_t *out = memory_sink_bytes(memory, &got);
    assert_int_equal(got, n);
    check_bytes(out, got, n, hold);
    assert_true(trial.last_seen);
    assert_int_equal(trial.in_order_next, blocks_of(n, hold));
    assert_int_equal(atomic_load(&trial.works), blocks_of(n, hold)); /* none twice */
    assert_int_equal(gpg_err_code(sink_write(sink, "x", 1)), GPG_ERR_INV_STATE);
    sink_free(sink);
    assert_true(freed);
    assert_int_equal(run_cancelled(run), 0);
    sink_free(memory);
    run_free(run);
}

static size_t read_in_steps(struct source *source, uint8_t *to, size_t step, gpg_error_t *ret_error)
{
    size_t total = 0, n;
    const void *lent;
    for (;;) {
        *ret_error = source_peek(source, &lent, &n);
        if (*ret_error || !n)
            return total;
        size_t part = n < step ? n : step;
        memcpy(to + total, lent, part);
        total += part;
        source_consume(source, part);
    }
}

static void source_pass(unsigned workers, size_t hold, size_t n, size_t step, bool in_place)
{
    struct run *run = workers ? new_run() : NULL;
    struct trial trial = trial_of(workers, hold);
    struct block_job job = trial_job(&trial, in_place);
    uint8_t bytes[WHOLE * 2], out[WHOLE * 2];
    gpg_error_t error;
    struct source *source;
    fill(bytes, n);
    assert_int_equal(block_source_new(run, &job, workers, memory_source_new(bytes, n, step), &source), 0);
    size_t got = read_in_steps(source, out, step, &error);
    assert_int_equal(error, 0);
    assert_int_equal(got, n);
    check_bytes(out, got, n, hold);
    assert_true(trial.last_seen);
    assert_int_equal(trial.in_order_next, blocks_of(n, hold));
    assert_int_equal(atomic_load(&trial.works), blocks_of(n, hold)); /* none twice */
    assert_int_equal(source_finish(source), 0);
    source_free(source);
    assert_int_equal(run_cancelled(run), 0);
    run_free(run);
}

static void test_lengths(void **state)
{
    (void)state;
    static const size_t steps[] = {1, 3, BLOCK, BLOCK + 1, WHOLE * 2};
    static const size_t lengths[] = {0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK - 1, 2 * BLOCK, 2 * BLOCK + 1, WHOLE};
    for (size_t w = 0; w < ARRAY_SIZE(worker_counts); w++)
        for (size_t h = 0; h < ARRAY_SIZE(holds); h++)
            for (size_t l = 0; l < ARRAY_SIZE(lengths); l++)
                for (size_t s = 0; s < ARRAY_SIZE(steps); s++)
                    for (size_t plus = 0; plus <= (holds[h] ? holds[h] : 0); plus += holds[h] ? holds[h] : 1) {
                        sink_pass(worker_counts[w], holds[h], lengths[l] + plus, steps[s], s % 2);
                        source_pass(worker_counts[w], holds[h], lengths[l] + plus, steps[s], s % 2);
                    }
}

/* ---- failures ---- */

/* What a sink may have written below when the block BAD failed: whole blocks before it, in order, and no more. */
static void sink_failure(unsigned workers, bool in_order, uint64_t bad)
{
    struct run *run = workers ? new_run() : NULL;
    struct trial trial = trial_of(workers, 3);
    *(in_order ? &trial.bad_order : &trial.bad_work) = bad;
    struct block_job job = trial_job(&trial, true);
    uint8_t bytes[WHOLE];
    bool freed;
    size_t got;
    struct sink *memory = memory_sink_new(SIZE_MAX), *sink;
    fill(bytes, WHOLE);
    assert_int_equal(block_sink_new(run, &job, workers, failing_sink_new(memory, SIZE_MAX, false, &freed), &sink), 0);
    gpg_error_t error = write_in_steps(sink, bytes, WHOLE, 5);
    assert_int_equal(gpg_err_code(error), in_order ? GPG_ERR_BAD_DATA : GPG_ERR_CHECKSUM);
    assert_int_equal(sink_write(sink, "x", 1), error);
    assert_int_equal(sink_finish(sink), error);
    sink_free(sink);
    assert_true(freed);
    const uint8_t *out = memory_sink_bytes(memory, &got);
    assert_int_equal(got, bad * BLOCK);
    check_bytes(out, got, WHOLE, 3);
    assert_int_equal(run_cancelled(run), workers ? error : 0);
    sink_free(memory);
    run_free(run);
}

static void source_failure(unsigned workers, bool in_order, uint64_t bad)
{
    struct run *run = workers ? new_run() : NULL;
    struct trial trial = trial_of(workers, 3);
    *(in_order ? &trial.bad_order : &trial.bad_work) = bad;
    struct block_job job = trial_job(&trial, true);
    uint8_t bytes[WHOLE], out[WHOLE];
    gpg_error_t error;
    struct source *source;
    fill(bytes, WHOLE);
    assert_int_equal(block_source_new(run, &job, workers, memory_source_new(bytes, WHOLE, 7), &source), 0);
    size_t got = read_in_steps(source, out, 5, &error);
    assert_int_equal(gpg_err_code(error), in_order ? GPG_ERR_BAD_DATA : GPG_ERR_CHECKSUM);
    assert_int_equal(got, bad * BLOCK);
    check_bytes(out, got, WHOLE, 3);
    assert_int_equal(source_finish(source), error);
    source_free(source);
    assert_int_equal(run_cancelled(run), 0); /* the reader decides what becomes of the run */
    run_free(run);
}

static void test_bad_block(void **state)
{
    (void)state;
    for (size_t w = 0; w < ARRAY_SIZE(worker_counts); w++)
        for (uint64_t bad = 0; bad < blocks_of(WHOLE, 3); bad++)
            for (int in_order = 0; in_order < 2; in_order++) {
                sink_failure(worker_counts[w], in_order, bad);
                source_failure(worker_counts[w], in_order, bad);
            }
}

static void test_bad_sink_below(void **state)
{
    (void)state;
    uint8_t bytes[WHOLE];
    fill(bytes, WHOLE);
    for (size_t w = 0; w < ARRAY_SIZE(worker_counts); w++)
        for (size_t left = 0; left <= WHOLE; left++) {
            struct run *run = new_run();
            struct trial trial = trial_of(worker_counts[w], 0);
            struct block_job job = trial_job(&trial, true);
            bool freed;
            size_t got;
            struct sink *memory = memory_sink_new(SIZE_MAX), *sink;
            assert_int_equal(
                block_sink_new(run, &job, worker_counts[w], failing_sink_new(memory, left, true, &freed), &sink), 0);
            assert_int_equal(gpg_err_code(write_in_steps(sink, bytes, WHOLE, 11)), GPG_ERR_ENOSPC);
            sink_free(sink);
            assert_true(freed);
            check_bytes(memory_sink_bytes(memory, &got), left, WHOLE, 0);
            assert_int_equal(got, left);
            assert_int_equal(gpg_err_code(run_cancelled(run)), worker_counts[w] ? GPG_ERR_ENOSPC : 0);
            sink_free(memory);
            run_free(run);
        }
}

static void test_bad_source_below(void **state)
{
    (void)state;
    uint8_t bytes[WHOLE], out[WHOLE];
    fill(bytes, WHOLE);
    for (size_t w = 0; w < ARRAY_SIZE(worker_counts); w++)
        for (int bare = 0; bare < 2; bare++)
            for (size_t left = 0; left < WHOLE; left++) {
                struct run *run = new_run();
                struct trial trial = trial_of(worker_counts[w], 2);
                struct block_job job = trial_job(&trial, true);
                if (bare)
                    job = (struct block_job){.block_size = BLOCK};
                gpg_error_t error;
                struct source *source;
                struct source *below = failing_source_new(memory_source_new(bytes, WHOLE, 7), left, true);
                assert_int_equal(block_source_new(run, &job, worker_counts[w], below, &source), 0);
                size_t got = read_in_steps(source, out, WHOLE, &error);
                assert_int_equal(gpg_err_code(error), GPG_ERR_EIO);
                if (bare) {
                    /* Every byte that was good arrives. */
                    assert_int_equal(got, left);
                    assert_memory_equal(out, bytes, left);
                } else {
                    /* A block is known to be whole when more than the two held bytes follow it. */
                    assert_int_equal(got, left < 3 ? 0 : (left - 3) / BLOCK * BLOCK);
                    check_bytes(out, got, WHOLE, 2);
                }
                source_free(source);
                run_free(run);
            }
}

static void test_verdict_of_the_source_below(void **state)
{
    (void)state;
    uint8_t bytes[WHOLE];
    fill(bytes, WHOLE);
    for (size_t w = 0; w < ARRAY_SIZE(worker_counts); w++) {
        struct run *run = new_run();
        struct trial trial = trial_of(worker_counts[w], 2);
        struct block_job job = trial_job(&trial, true);
        struct source *below = failing_source_new(memory_source_new(bytes, WHOLE, 0), SIZE_MAX, true), *source;
        assert_int_equal(block_source_new(run, &job, worker_counts[w], below, &source), 0);
        assert_int_equal(gpg_err_code(source_finish(source)), GPG_ERR_BAD_SIGNATURE);
        source_free(source);
        run_free(run);
    }
}

/* ---- early ends ---- */

static void test_freed_early(void **state)
{
    (void)state;
    uint8_t bytes[WHOLE];
    fill(bytes, WHOLE);
    for (size_t w = 0; w < ARRAY_SIZE(worker_counts); w++)
        for (size_t used = 0; used < WHOLE; used += 6) {
            struct run *run = new_run();
            struct trial trial = trial_of(worker_counts[w], 2);
            struct block_job job = trial_job(&trial, false);
            struct source *source;
            size_t got;
            uint8_t out[WHOLE];
            assert_int_equal(block_source_new(run, &job, worker_counts[w], memory_source_new(bytes, WHOLE, 5), &source),
                             0);
            assert_int_equal(source_read(source, out, used, &got), 0);
            source_free(source);

            trial = trial_of(worker_counts[w], 2);
            bool freed;
            struct sink *memory = memory_sink_new(SIZE_MAX), *sink;
            assert_int_equal(
                block_sink_new(run, &job, worker_counts[w], failing_sink_new(memory, SIZE_MAX, false, &freed), &sink),
                0);
            assert_int_equal(sink_write(sink, bytes, used), 0);
            sink_free(sink);
            assert_true(freed);
            sink_free(memory);
            assert_int_equal(run_cancelled(run), 0);
            run_free(run);
        }
}

/* The pump, or the pump of the stage below it, waits for a pipe that stays silent; free must not. */
static void test_freed_while_it_waits(void **state)
{
    (void)state;
    for (int stages = 1; stages <= 3; stages++) {
        struct run *run = new_run();
        struct block_job job = {.block_size = BLOCK};
        int ends[2];
        struct source *source;
        assert_int_equal(pipe(ends), 0);
        assert_int_equal(fd_source_new(run, ends[0], "pipe", true, 0, &source), 0);
        for (int i = 0; i < stages; i++)
            assert_int_equal(block_source_new(run, &job, 1, source, &source), 0);
        assert_int_equal(write(ends[1], "0123456789abcdef0123456789", 26), 26);
        usleep(1000); /* the pumps are then most likely waiting */
        source_free(source);
        assert_int_equal(run_cancelled(run), 0);
        close(ends[1]);

        struct sink *sink;
        static const uint8_t much[1 << 20];
        assert_int_equal(pipe(ends), 0);
        assert_int_equal(fd_sink_new(run, ends[1], "pipe", true, &sink), 0);
        job.block_size = sizeof much / 2;
        for (int i = 0; i < stages; i++)
            assert_int_equal(block_sink_new(run, &job, 1, sink, &sink), 0);
        assert_int_equal(sink_write(sink, much, sizeof much), 0);
        usleep(1000);
        sink_free(sink);
        assert_int_equal(run_cancelled(run), 0);
        close(ends[0]);
        run_free(run);
    }
}

static gpg_error_t cancel_soon(void *arg)
{
    usleep(2000);
    run_cancel(arg, gpg_error(GPG_ERR_FULLY_CANCELED));
    return 0;
}

static gpg_error_t interrupt_soon(void *arg)
{
    usleep(2000);
    run_interrupt(arg, gpg_error(GPG_ERR_FULLY_CANCELED));
    return 0;
}

static void cancelled_while_it_waits(gpg_error_t (*canceller)(void *))
{
    struct block_job job = {.block_size = BLOCK};
    struct run *run = new_run();
    struct run_thread *thread;
    int in[2], out[2];
    struct source *source;
    struct sink *sink;
    const void *bytes;
    size_t n;
    static const uint8_t much[1 << 20];
    assert_int_equal(pipe(in), 0);
    assert_int_equal(pipe(out), 0);
    assert_int_equal(fd_source_new(run, in[0], "pipe", true, 0, &source), 0);
    assert_int_equal(block_source_new(run, &job, 1, source, &source), 0);
    assert_int_equal(block_source_new(run, &job, 1, source, &source), 0);
    assert_int_equal(fd_sink_new(run, out[1], "pipe", true, &sink), 0);
    assert_int_equal(block_sink_new(run, &job, 1, sink, &sink), 0);
    assert_int_equal(block_sink_new(run, &job, 1, sink, &sink), 0);
    assert_int_equal(run_start(run, "canceller", canceller, run, &thread), 0);
    assert_int_equal(gpg_err_code(source_peek(source, &bytes, &n)), GPG_ERR_CANCELED);
    assert_int_equal(gpg_err_code(sink_write(sink, much, sizeof much)), GPG_ERR_CANCELED);
    assert_int_equal(run_join(run, thread), 0);
    assert_int_equal(gpg_err_code(run_cancelled(run)), GPG_ERR_FULLY_CANCELED);
    source_free(source);
    sink_free(sink);
    close(in[1]);
    close(out[0]);
    run_free(run);
}

static void test_cancelled_while_it_waits(void **state)
{
    (void)state;
    cancelled_while_it_waits(cancel_soon);
    cancelled_while_it_waits(interrupt_soon);
}

/* The sink at the bottom fails: every stage above stops, and the run knows why. */
static void test_chain_fails_below(void **state)
{
    (void)state;
    uint8_t bytes[WHOLE];
    fill(bytes, WHOLE);
    for (size_t left = 0; left <= WHOLE; left += 3) {
        struct run *run = new_run();
        struct trial trials[3] = {trial_of(2, 0), trial_of(4, 3), trial_of(1, 0)};
        bool freed;
        struct sink *memory = memory_sink_new(SIZE_MAX);
        struct sink *sink = failing_sink_new(memory, left, true, &freed);
        for (int i = 0; i < 3; i++) {
            struct block_job job = trial_job(&trials[i], true);
            assert_int_equal(block_sink_new(run, &job, trials[i].workers, sink, &sink), 0);
        }
        gpg_error_t error = write_in_steps(sink, bytes, WHOLE, 4);
        assert_true(gpg_err_code(error) == GPG_ERR_ENOSPC || gpg_err_code(error) == GPG_ERR_CANCELED);
        sink_free(sink);
        assert_int_equal(gpg_err_code(run_cancelled(run)), GPG_ERR_ENOSPC);
        sink_free(memory);
        run_free(run);
    }
}

static void test_borrowed_source_goes_on(void **state)
{
    (void)state;
    uint8_t bytes[WHOLE], out[WHOLE];
    fill(bytes, WHOLE);
    for (size_t w = 0; w < ARRAY_SIZE(worker_counts); w++) {
        struct run *run = new_run();
        struct trial trial = trial_of(worker_counts[w], 4);
        struct block_job job = trial_job(&trial, true);
        struct source *below = memory_source_new(bytes, WHOLE, 3), *source;
        gpg_error_t error;
        const void *rest;
        size_t n;
        assert_int_equal(block_source_borrow(run, &job, worker_counts[w], below, &source), 0);
        assert_int_equal(read_in_steps(source, out, 9, &error), WHOLE);
        assert_int_equal(source_peek(below, &rest, &n), 0); /* still there, at its end */
        assert_int_equal(n, 0);
        assert_int_equal(source_finish(source), 0);
        source_free(source);
        assert_int_equal(source_finish(below), 0);
        source_free(below);
        run_free(run);
    }
}

static void test_bare_boundary(void **state)
{
    (void)state;
    uint8_t bytes[WHOLE], out[WHOLE];
    fill(bytes, WHOLE);
    for (unsigned workers = 0; workers < 2; workers++)
        for (size_t n = 0; n <= WHOLE; n++)
            for (size_t step = 1; step < 2 * BLOCK; step += 7) {
                struct run *run = new_run();
                struct block_job job = {.block_size = BLOCK};
                struct source *source = memory_source_new(bytes, n, step);
                struct sink *memory = memory_sink_new(SIZE_MAX), *sink;
                bool freed;
                size_t got;
                gpg_error_t error;
                assert_int_equal(block_source_new(run, &job, workers, source, &source), 0);
                assert_int_equal(read_in_steps(source, out, step, &error), n);
                assert_int_equal(source_finish(source), 0);
                assert_memory_equal(out, bytes, n);
                source_free(source);
                sink = failing_sink_new(memory, SIZE_MAX, false, &freed);
                assert_int_equal(block_sink_new(run, &job, workers, sink, &sink), 0);
                assert_int_equal(write_in_steps(sink, bytes, n, step), 0);
                sink_free(sink);
                assert_memory_equal(memory_sink_bytes(memory, &got), bytes, n);
                assert_int_equal(got, n);
                sink_free(memory);
                run_free(run);
            }
}

/* Appends the number of the block, in the room behind what came in. */
static gpg_error_t growing_work(void *context, unsigned worker, struct block *block)
{
    (void)context;
    (void)worker;
    assert_ptr_equal(block->in, block->out);
    block->out[block->n_in] = (uint8_t)block->index;
    block->n_out = block->n_in + 1;
    return 0;
}

static void test_grows_in_place(void **state)
{
    (void)state;
    const struct block_job job = {.block_size = BLOCK, .out_size = BLOCK + 1, .in_place = true, .work = growing_work};
    uint8_t bytes[WHOLE];
    fill(bytes, WHOLE);
    for (size_t w = 0; w < ARRAY_SIZE(worker_counts); w++)
        for (size_t n = 1; n <= WHOLE; n++) {
            struct run *run = new_run();
            struct sink *memory = memory_sink_new(SIZE_MAX), *sink;
            bool freed;
            size_t got;
            sink = failing_sink_new(memory, SIZE_MAX, false, &freed);
            assert_int_equal(block_sink_new(run, &job, worker_counts[w], sink, &sink), 0);
            assert_int_equal(write_in_steps(sink, bytes, n, 7), 0);
            sink_free(sink);
            const uint8_t *out = memory_sink_bytes(memory, &got);
            assert_int_equal(got, n + blocks_of(n, 0));
            for (size_t block = 0; block < blocks_of(n, 0); block++) {
                const size_t at = block * BLOCK, part = n - at < BLOCK ? n - at : BLOCK;
                assert_memory_equal(out + block * (BLOCK + 1), bytes + at, part);
                assert_int_equal(out[block * (BLOCK + 1) + part], block);
            }
            sink_free(memory);
            run_free(run);
        }
}

/* Adds one to what is absorbed; the work adds one to the rest. */
struct absorber {
    bool absorbed[BLOCK]; /* of the block being filled */
    size_t total;         /* octets absorbed */
    uint64_t last;        /* the last block of which any were */
    size_t fail_at;       /* fails when more than these were absorbed */
};

static gpg_error_t absorb(void *context, uint64_t index, uint8_t *in, size_t at, const uint8_t *from, size_t n)
{
    struct absorber *absorber = context;
    assert_true(n && at + n <= BLOCK && index >= absorber->last);
    absorber->last = index;
    absorber->total += n;
    for (size_t i = 0; i < n; i++) {
        in[at + i] = (uint8_t)(from[i] + 1);
        assert_false(absorber->absorbed[at + i]);
        absorber->absorbed[at + i] = true;
    }
    return absorber->total > absorber->fail_at ? gpg_error(GPG_ERR_CHECKSUM) : 0;
}

static gpg_error_t rest_work(void *context, unsigned worker, struct block *block)
{
    struct absorber *absorber = context;
    const bool mine = absorber->total && block->index <= absorber->last;
    assert_true(!mine || worker == 0);
    for (size_t i = 0; i < block->n_in; i++) {
        if (!mine || !absorber->absorbed[i])
            block->out[i] = (uint8_t)(block->in[i] + 1);
        else
            absorber->absorbed[i] = false;
    }
    return 0;
}

static void pass_nothing(void *context, const struct block *block)
{
    (void)context, (void)block;
}

/* Who works alone absorbs all, who gets helpers the first block, and where somebody observes nothing is absorbed. */
static void test_absorbs(void **state)
{
    (void)state;
    uint8_t bytes[WHOLE], expected[WHOLE];
    fill(bytes, WHOLE);
    for (size_t i = 0; i < WHOLE; i++)
        expected[i] = (uint8_t)(bytes[i] + 1);
    for (unsigned workers = 0; workers <= 4; workers++)
        for (unsigned observed = 0; observed < 2; observed++)
            for (size_t n = 0; n <= WHOLE; n++) {
                struct absorber absorber = {.fail_at = SIZE_MAX};
                const struct block_job job = {.context = &absorber,
                                              .block_size = BLOCK,
                                              .observer = {{.look = observed ? pass_nothing : NULL}},
                                              .work = rest_work,
                                              .absorb = absorb};
                struct run *run = new_run();
                struct sink *memory = memory_sink_new(SIZE_MAX), *sink;
                bool freed;
                size_t got;
                sink = failing_sink_new(memory, SIZE_MAX, false, &freed);
                assert_int_equal(block_sink_new(run, &job, workers, sink, &sink), 0);
                assert_int_equal(write_in_steps(sink, bytes, n, 7), 0);
                sink_free(sink);
                const uint8_t *out = memory_sink_bytes(memory, &got);
                assert_int_equal(got, n);
                if (n)
                    assert_memory_equal(out, expected, n);
                assert_true(observed ? !absorber.total : absorber.total || !n);
                if (!observed && n)
                    assert_int_equal(absorber.last, workers ? 0 : blocks_of(n, 0) - 1);
                sink_free(memory);
                run_free(run);
            }
}

static void test_absorbing_fails(void **state)
{
    (void)state;
    uint8_t bytes[WHOLE];
    fill(bytes, WHOLE);
    for (size_t fail_at = 0; fail_at < WHOLE / 2 - 5; fail_at++) {
        struct absorber absorber = {.fail_at = fail_at};
        const struct block_job job = {.context = &absorber, .block_size = BLOCK, .work = rest_work, .absorb = absorb};
        struct sink *memory = memory_sink_new(SIZE_MAX), *sink;
        bool freed;
        size_t got;
        sink = failing_sink_new(memory, SIZE_MAX, false, &freed);
        assert_int_equal(block_sink_new(NULL, &job, 0, sink, &sink), 0);
        assert_int_equal(gpg_err_code(write_in_steps(sink, bytes, WHOLE, 5)), GPG_ERR_CHECKSUM);
        sink_free(sink);
        assert_true(freed);
        memory_sink_bytes(memory, &got);
        assert_true(got % BLOCK == 0 && got <= 2 * fail_at); /* every other step is not absorbed */
        sink_free(memory);
    }
}

static gpg_error_t greedy_work(void *context, unsigned worker, struct block *block)
{
    (void)context;
    (void)worker;
    block->n_out = 5; /* of 4 */
    return 0;
}

/* Writes a letter for each block's length instead of the block. */
static gpg_error_t letter_emit(void *context, const struct block *block, struct sink *below)
{
    assert_null(context);
    const char letters[] = {(char)('a' + block->n_in), block->last ? '.' : ','};
    return sink_write(below, letters, sizeof letters);
}

static void test_emit(void **state)
{
    (void)state;
    for (unsigned workers = 0; workers < 2; workers++) {
        struct run *run = workers ? new_run() : NULL;
        const struct block_job job = {.block_size = 4, .emit = letter_emit};
        struct sink *memory = memory_sink_new(SIZE_MAX), *sink;
        bool freed;
        size_t got;
        assert_int_equal(block_sink_new(run, &job, workers, failing_sink_new(memory, SIZE_MAX, false, &freed), &sink),
                         0);
        assert_int_equal(write_in_steps(sink, (const uint8_t *)"0123456789", 10, 3), 0);
        const uint8_t *out = memory_sink_bytes(memory, &got);
        assert_int_equal(got, 6);
        assert_memory_equal(out, "e,e,c.", 6);
        sink_free(sink);
        sink_free(memory);
        run_free(run);

        run = workers ? new_run() : NULL;
        memory = memory_sink_new(SIZE_MAX);
        assert_int_equal(block_sink_new(run, &job, workers, failing_sink_new(memory, 3, true, &freed), &sink), 0);
        assert_int_equal(gpg_err_code(write_in_steps(sink, (const uint8_t *)"0123456789", 10, 3)), GPG_ERR_ENOSPC);
        sink_free(sink);
        assert_true(freed);
        sink_free(memory);
        run_free(run);
    }
}

/* ---- observers ---- */

struct watcher {
    uint8_t seen[WHOLE];
    size_t n;
    uint64_t next;   /* the block that may come next */
    atomic_uint now; /* calls that are running */
};

static void watch(void *context, const struct block *block)
{
    struct watcher *watcher = context;
    assert_int_equal(atomic_fetch_add(&watcher->now, 1), 0);
    assert_true(block->index == watcher->next || block->index + 1 == watcher->next);
    watcher->next = block->index + 1;
    assert_true(block->n_in && block->n_in <= WHOLE - watcher->n);
    memcpy(watcher->seen + watcher->n, block->in, block->n_in);
    watcher->n += block->n_in;
    atomic_fetch_sub(&watcher->now, 1);
}

static void check_watchers(const struct watcher *watchers, unsigned n, const uint8_t *bytes, size_t written)
{
    for (unsigned i = 0; i < n; i++) {
        assert_int_equal(watchers[i].n, written);
        assert_memory_equal(watchers[i].seen, bytes, written);
    }
}

/* The first SETTLED bytes must have been seen when settle returns, all of them after finish, and none twice. */
static void observed_pass(unsigned workers, unsigned observers, bool works, size_t n, size_t settled)
{
    struct run *run = workers ? new_run() : NULL;
    struct trial trial = trial_of(workers, 0);
    struct watcher watchers[BLOCK_OBSERVERS_MAX] = {{.n = 0}};
    struct block_job job = works ? trial_job(&trial, true) : (struct block_job){.block_size = BLOCK};
    uint8_t bytes[WHOLE];
    bool freed;
    size_t got;
    fill(bytes, n);
    for (unsigned i = 0; i < observers; i++)
        job.observer[i] = (struct block_observer){.context = &watchers[i], .look = watch};
    struct sink *memory = memory_sink_new(SIZE_MAX), *sink;
    assert_int_equal(block_sink_new(run, &job, workers, failing_sink_new(memory, SIZE_MAX, false, &freed), &sink), 0);
    assert_int_equal(sink_write(sink, bytes, settled), 0);
    assert_int_equal(sink_settle(sink), 0);
    check_watchers(watchers, observers, bytes, settled);
    assert_int_equal(write_in_steps(sink, bytes + settled, n - settled, 5), 0);
    check_watchers(watchers, observers, bytes, n);
    const uint8_t *out = memory_sink_bytes(memory, &got);
    assert_int_equal(got, n);
    if (works)
        check_bytes(out, n, n, 0);
    else
        assert_memory_equal(out, bytes, n);
    sink_free(sink);
    sink_free(memory);
    run_free(run);
}

static void test_observers(void **state)
{
    (void)state;
    for (size_t w = 0; w < ARRAY_SIZE(worker_counts); w++)
        for (unsigned observers = 0; observers <= BLOCK_OBSERVERS_MAX; observers++)
            for (size_t settled = 0; settled <= WHOLE; settled++) {
                observed_pass(worker_counts[w], observers, true, WHOLE, settled);
                if (worker_counts[w] < 2)
                    observed_pass(worker_counts[w], observers, false, WHOLE, settled);
                observed_pass(worker_counts[w], observers, true, settled, settled);
            }
}

static void test_source_is_observed(void **state)
{
    (void)state;
    uint8_t bytes[WHOLE], out[WHOLE];
    fill(bytes, WHOLE);
    for (size_t w = 0; w < ARRAY_SIZE(worker_counts); w++)
        for (size_t n = 0; n <= WHOLE; n++) {
            struct run *run = worker_counts[w] ? new_run() : NULL;
            struct trial trial = trial_of(worker_counts[w], 3);
            struct watcher watcher = {.n = 0};
            struct block_job job = trial_job(&trial, true);
            job.observer[0] = (struct block_observer){.context = &watcher, .look = watch};
            struct source *source;
            gpg_error_t error;
            assert_int_equal(block_source_new(run, &job, worker_counts[w], memory_source_new(bytes, n, 5), &source), 0);
            assert_int_equal(read_in_steps(source, out, 7, &error), n);
            assert_int_equal(source_finish(source), 0);
            check_watchers(&watcher, 1, bytes, n);
            check_bytes(out, n, n, 3);
            source_free(source);
            run_free(run);
        }
}

/* What fits into one block is worked on without a thread; its failure is the caller's alone. */
static void test_one_block(void **state)
{
    (void)state;
    for (size_t n = 0; n <= BLOCK + 1; n++) {
        struct run *run = new_run();
        struct trial trial = trial_of(2, 0);
        struct block_job job = trial_job(&trial, true);
        uint8_t bytes[BLOCK + 1];
        bool freed;
        fill(bytes, n);
        struct sink *memory = memory_sink_new(SIZE_MAX), *sink;
        assert_int_equal(block_sink_new(run, &job, 2, failing_sink_new(memory, SIZE_MAX, true, &freed), &sink), 0);
        assert_int_equal(gpg_err_code(write_in_steps(sink, bytes, n, 4)), GPG_ERR_ENOSPC);
        assert_int_equal(gpg_err_code(run_cancelled(run)), n > BLOCK ? GPG_ERR_ENOSPC : 0);
        sink_free(sink);
        assert_true(freed);
        sink_free(memory);
        run_free(run);
    }
}

static void test_refused(void **state)
{
    (void)state;
    struct run *run = new_run();
    struct source *source;
    struct block_job job = {.block_size = 0};
    assert_int_equal(gpg_err_code(block_source_new(run, &job, 1, memory_source_new("", 0, 0), &source)),
                     GPG_ERR_INV_ARG);
    job.block_size = 8;
    assert_int_equal(gpg_err_code(block_source_new(NULL, &job, 1, memory_source_new("", 0, 0), &source)),
                     GPG_ERR_INV_ARG); /* threads need a run */
    job.work = greedy_work;
    job.out_size = 4;
    const void *bytes;
    size_t n;
    assert_int_equal(block_source_new(run, &job, 2, memory_source_new("abc", 3, 0), &source), 0);
    assert_int_equal(gpg_err_code(source_peek(source, &bytes, &n)), GPG_ERR_BUFFER_TOO_SHORT);
    source_free(source);
    run_free(run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lengths),
        cmocka_unit_test(test_bad_block),
        cmocka_unit_test(test_bad_sink_below),
        cmocka_unit_test(test_bad_source_below),
        cmocka_unit_test(test_verdict_of_the_source_below),
        cmocka_unit_test(test_freed_early),
        cmocka_unit_test(test_freed_while_it_waits),
        cmocka_unit_test(test_cancelled_while_it_waits),
        cmocka_unit_test(test_chain_fails_below),
        cmocka_unit_test(test_borrowed_source_goes_on),
        cmocka_unit_test(test_bare_boundary),
        cmocka_unit_test(test_grows_in_place),
        cmocka_unit_test(test_absorbs),
        cmocka_unit_test(test_absorbing_fails),
        cmocka_unit_test(test_emit),
        cmocka_unit_test(test_observers),
        cmocka_unit_test(test_source_is_observed),
        cmocka_unit_test(test_one_block),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
