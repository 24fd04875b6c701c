/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ring.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Blocks go round in this order, each counted by a number that only grows:
 *
 *     producer fills ▸ closed ▸ looked at ▸ worked on ▸ slot.done ▸ consumer takes out ▸ released ▸ producer fills
 *
 * Block I lives in slot I % n_slots. One end is the caller's, the outer one: the producer of a sink, the consumer of a
 * source; the inner one moves blocks to or from the stream below. No stage has a thread of its own: who has nothing
 * else to do, a helper or the caller that would have to wait, takes the next thing that can be done, whatever it is, so
 * that no processor is idle while there is work (15 % of the time where each stage had its thread, on two processors,
 * measured). What has to be done in order is done by one thread at a time. As long as no helper was started the caller
 * does everything, and no wait ever blocks. */
struct slot {
    struct block block; /* producer, then one worker, then consumer */
    uint8_t *in;        /* in_capacity bytes */
    uint8_t *out;       /* out_capacity bytes, perhaps the same as in */
    size_t settled;     /* bytes of it that the observers have seen already */
    gpg_error_t error;  /* of the work; written before done */
    bool done;          /* lock */
};

struct observing {
    struct block_observer observer;
    uint64_t looked; /* blocks seen; lock */
    bool busy;       /* lock */
};

/* What the caller at the outer end waits for. */
enum want { WANT_NOTHING, WANT_SPACE, WANT_SEEN, WANT_RELEASED, WANT_BLOCK };

enum step { STEP_LOOK, STEP_WORK, STEP_INNER };

struct task {
    enum step step;
    unsigned number; /* of the observer or the worker */
    struct slot *slot;
};

struct ring {
    struct block_job job;
    struct run *run;
    struct run_hook hook;
    unsigned workers;
    size_t in_capacity;
    size_t out_capacity;
    size_t n_slots;
    struct slot *slots;

    bool threaded;              /* helpers were started; before that only the caller knows the ring */
    struct run_thread **helper; /* NULL where none was started */
    unsigned helpers;
    /* Moves one block at the inner end. Its error ends the ring. */
    gpg_error_t (*inner)(void *stage);
    void *stage;
    bool is_sink;

    /* The producer's own. */
    struct slot *filling; /* NULL: the next block has no slot yet */
    bool absorbs;         /* the work on it begins while it is filled */
    size_t fill;          /* bytes in it */
    uint8_t *carry;       /* the bytes behind the block closed last: they begin the next */
    size_t carried;
    size_t settled; /* bytes of it that the observers have seen */

    pthread_mutex_t lock; /* for what follows */
    pthread_cond_t outer; /* the caller at the outer end waits for WANT, or for something to do */
    pthread_cond_t more;  /* helpers wait for something to do */
    enum want want;
    unsigned idle; /* helpers that wait */
    uint64_t closed;
    uint64_t taken;
    uint64_t released;
    struct observing observing[BLOCK_OBSERVERS_MAX];
    unsigned observers;
    unsigned *worker; /* numbers of workers that are free, the first worker_n */
    unsigned worker_n;
    bool inner_busy;
    bool stalled;          /* all slots were full: no block is begun before half of them are free */
    uint64_t bad;          /* the first block whose work failed: what follows it is not worked on */
    bool ended;            /* the producer closes no more blocks; why is in end_error */
    gpg_error_t end_error; /* of the stream that the producer reads, to be given out after the last block */
    gpg_error_t error;     /* the consumer's first */
    atomic_bool stop;      /* the consumer failed or the stage is being freed; written under lock */
};

/* Whether blocks need to know if they are the last; a bare boundary needs not. */
static bool is_bare(const struct ring *ring)
{
    return !ring->job.work && !ring->job.in_order && !ring->job.emit && !ring->observers;
}

static void ring_free(struct ring *ring)
{
    if (!ring)
        return;
    for (size_t i = 0; ring->slots && i < ring->n_slots; i++) {
        if (ring->slots[i].out != ring->slots[i].in)
            free(ring->slots[i].out);
        free(ring->slots[i].in);
    }
    free(ring->slots);
    free(ring->helper);
    free(ring->worker);
    free(ring->carry);
    pthread_cond_destroy(&ring->more);
    pthread_cond_destroy(&ring->outer);
    pthread_mutex_destroy(&ring->lock);
    free(ring);
}

/* Page alignment: a block read from a file then lies in memory as it lies in the page cache. */
static gpg_error_t buffer_new(size_t n, uint8_t **ret)
{
    void *buffer;
    int number = posix_memalign(&buffer, 4096, n);
    if (number)
        return gpg_error_from_errno(number);
    *ret = buffer;
    return 0;
}

static gpg_error_t allocate_slots(struct ring *ring)
{
    ring->slots = calloc(ring->n_slots, sizeof *ring->slots);
    ring->helper = calloc(ring->helpers, sizeof(struct run_thread *));
    ring->worker = calloc(ring->workers + 1, sizeof *ring->worker);
    ring->carry = malloc(ring->job.hold + 1);
    if (!ring->slots || !ring->helper || !ring->worker || !ring->carry)
        return gpg_error_from_syserror();
    while (ring->worker_n < ring->workers) {
        ring->worker[ring->worker_n] = ring->worker_n;
        ring->worker_n++;
    }
    for (size_t i = 0; i < ring->n_slots; i++) {
        struct slot *slot = &ring->slots[i];
        gpg_error_t error = buffer_new(ring->in_capacity, &slot->in);
        slot->out = slot->in;
        if (!error && ring->job.work && ring->job.out_size && !ring->job.in_place)
            error = buffer_new(ring->out_capacity, &slot->out);
        if (error) {
            slot->out = slot->in;
            return error;
        }
    }
    return 0;
}

static gpg_error_t ring_new(struct run *run, const struct block_job *job, unsigned workers,
                            gpg_error_t (*inner)(void *stage), void *stage, struct ring **ret)
{
    /* Far above what any job needs, far below where a sum could overflow. */
    const size_t limit = SIZE_MAX / 8;
    if (!job->block_size || job->block_size > limit || job->hold > limit || job->out_size > limit || workers > 1024 ||
        (workers && !run))
        return gpg_error(GPG_ERR_INV_ARG);
    struct ring *ring = calloc(1, sizeof *ring);
    if (!ring)
        return gpg_error_from_syserror();
    ring->job = *job;
    ring->run = run;
    ring->workers = workers;
    ring->inner = inner;
    ring->stage = stage;
    for (unsigned i = 0; i < BLOCK_OBSERVERS_MAX; i++) {
        if (job->observer[i].look)
            ring->observing[ring->observers++] = (struct observing){.observer = job->observer[i]};
    }
    /* One for each thing that can be done at the same time. */
    ring->helpers = 1 + ring->observers + (job->work ? workers : 0);
    /* One slot for each worker, as many again that wait for their turn, one being filled, one being taken out, and four
     * more, because who waits for room waits for half of them: the others must last for the time a wake-up takes. */
    ring->n_slots = workers ? 2 * (size_t)workers + 6 : 1;
    /* One byte more, read ahead by a source to know whether more than HOLD bytes follow. */
    ring->in_capacity = job->block_size + job->hold + 1;
    ring->out_capacity = job->out_size ? job->out_size : ring->in_capacity;
    if ((!job->work || job->in_place) && ring->in_capacity < ring->out_capacity)
        ring->in_capacity = ring->out_capacity;
    ring->bad = UINT64_MAX;
    atomic_init(&ring->stop, false);
    pthread_mutex_init(&ring->lock, NULL);
    pthread_cond_init(&ring->outer, NULL);
    pthread_cond_init(&ring->more, NULL);
    gpg_error_t error = allocate_slots(ring);
    if (error) {
        ring_free(ring);
        return error;
    }
    *ret = ring;
    return 0;
}

static struct slot *slot_of(struct ring *ring, uint64_t index)
{
    return &ring->slots[index % ring->n_slots];
}

/* 0: go on. Call with the lock held. */
static gpg_error_t status(struct ring *ring)
{
    if (ring->error)
        return ring->error;
    if (atomic_load(&ring->stop) || run_cancelled(ring->run))
        return gpg_error(GPG_ERR_CANCELED);
    return 0;
}

/* How many blocks all observers have seen. Call with the lock held. */
static uint64_t seen(const struct ring *ring)
{
    uint64_t least = ring->closed;
    for (unsigned i = 0; i < ring->observers; i++) {
        if (ring->observing[i].looked < least)
            least = ring->observing[i].looked;
    }
    return least;
}

static gpg_error_t status_locked(struct ring *ring)
{
    pthread_mutex_lock(&ring->lock);
    gpg_error_t error = status(ring);
    pthread_mutex_unlock(&ring->lock);
    return error;
}

static void wake_all(struct ring *ring)
{
    pthread_cond_broadcast(&ring->outer);
    pthread_cond_broadcast(&ring->more);
}

static void cancel_hook(struct run_hook *hook)
{
    struct ring *ring = CONTAINER(hook, struct ring, hook);
    pthread_mutex_lock(&ring->lock);
    wake_all(ring);
    pthread_mutex_unlock(&ring->lock);
}

/* ---- what can be done ---- */

/* Whether a block can be begun. Who finds all slots full waits for half of them, so that the two ends wake one another
 * less often. */
static bool has_space(struct ring *ring)
{
    const uint64_t full = ring->closed - ring->released;
    if (full == ring->n_slots)
        ring->stalled = true;
    else if (full <= ring->n_slots / 2)
        ring->stalled = false;
    return !ring->stalled;
}

/* Whether the next block in order can be taken out. */
static bool is_ready(struct ring *ring)
{
    return ring->released < ring->closed && slot_of(ring, ring->released)->done && ring->released < seen(ring);
}

static bool can_move_inner(struct ring *ring)
{
    if (ring->inner_busy)
        return false;
    return ring->is_sink ? is_ready(ring) : !ring->ended && has_space(ring);
}

static bool find_move(struct ring *ring, struct task *ret)
{
    *ret = (struct task){.step = STEP_INNER};
    return can_move_inner(ring);
}

static bool find_work(struct ring *ring, struct task *ret)
{
    for (unsigned i = 0; i < ring->observers; i++) {
        struct observing *observing = &ring->observing[i];
        if (!observing->busy && observing->looked < ring->closed) {
            *ret = (struct task){.step = STEP_LOOK, .number = i, .slot = slot_of(ring, observing->looked)};
            return true;
        }
    }
    if (!ring->job.work || !ring->worker_n || ring->taken >= seen(ring))
        return false;
    *ret = (struct task){
        .step = STEP_WORK, .number = ring->worker[ring->worker_n - 1], .slot = slot_of(ring, ring->taken)};
    return true;
}

/* Finds something to do. What is done in order and takes long, the digests, comes first: everything waits for it in the
 * end. Only the helpers of a source read on first until half of the slots are full: the reader, who has to do what
 * nobody can do for him, then finds blocks to work on where he would have to read them, with the helpers looking on (a
 * fifth of the time of an extraction, measured on two processors). Call with the lock held. */
static bool find_task(struct ring *ring, bool caller, struct task *ret)
{
    if (status(ring))
        return false;
    const bool move_first = !ring->is_sink && !caller && ring->closed - ring->released < ring->n_slots / 2;
    if (move_first && find_move(ring, ret))
        return true;
    return find_work(ring, ret) || find_move(ring, ret);
}

static void claim_task(struct ring *ring, const struct task *task)
{
    if (task->step == STEP_LOOK) {
        ring->observing[task->number].busy = true;
    } else if (task->step == STEP_WORK) {
        ring->worker_n--;
        ring->taken++;
    } else {
        ring->inner_busy = true;
    }
}

static bool is_satisfied(struct ring *ring)
{
    switch (ring->want) {
    case WANT_SPACE:
        return has_space(ring);
    case WANT_SEEN:
        return seen(ring) == ring->closed;
    case WANT_RELEASED:
        return ring->released == ring->closed;
    case WANT_BLOCK:
        return is_ready(ring) || (ring->ended && ring->released == ring->closed);
    case WANT_NOTHING:
        break;
    }
    return false;
}

/* Wakes somebody where there is something to do that nobody will come to. Call with the lock held. */
static void rouse(struct ring *ring)
{
    struct task task;
    if ((ring->idle || ring->want != WANT_NOTHING) && find_task(ring, !ring->idle, &task))
        pthread_cond_signal(ring->idle ? &ring->more : &ring->outer);
}

/* Moves nothing in RING any more. ERROR 0: it is only given up. Returns whether it was moving before. */
static bool ring_stop(struct ring *ring, gpg_error_t error)
{
    pthread_mutex_lock(&ring->lock);
    bool moved = !atomic_load(&ring->stop);
    if (!ring->error)
        ring->error = error;
    atomic_store(&ring->stop, true);
    wake_all(ring);
    pthread_mutex_unlock(&ring->lock);
    return moved;
}

/* ---- doing it ---- */

/* Shows the observer N_IN bytes at IN of the block INDEX. */
static void look(struct observing *observing, uint64_t index, const uint8_t *in, size_t n_in)
{
    const struct block part = {.index = index, .in = in, .n_in = n_in};
    if (n_in)
        observing->observer.look(observing->observer.context, &part);
}

static void look_at_slot(struct observing *observing, const struct slot *slot)
{
    look(observing, slot->block.index, slot->block.in + slot->settled, slot->block.n_in - slot->settled);
}

static void do_work(struct ring *ring, unsigned worker, struct slot *slot)
{
    slot->error = ring->job.work ? ring->job.work(ring->job.context, worker, &slot->block) : 0;
    if (!slot->error && slot->block.n_out > ring->out_capacity)
        slot->error = gpg_error(GPG_ERR_BUFFER_TOO_SHORT);
}

static void move_inner(struct ring *ring)
{
    gpg_error_t error = ring->inner(ring->stage);
    /* Our own error is set before the run's, so that the caller gets it rather than GPG_ERR_CANCELED. That one is
     * nobody's failure: the run was cancelled before, or the thread belongs to a stage that is being freed, as this one
     * may be too. */
    if (error && ring_stop(ring, error) && gpg_err_code(error) != GPG_ERR_CANCELED)
        run_cancel(ring->run, error);
}

/* Does one thing, if there is one, without the lock; returns whether it did. Call with the lock held. */
static bool help(struct ring *ring, bool caller)
{
    struct task task;
    if (!find_task(ring, caller, &task))
        return false;
    claim_task(ring, &task);
    const bool skipped = task.step == STEP_WORK && task.slot->block.index > ring->bad;
    rouse(ring);
    pthread_mutex_unlock(&ring->lock);
    if (task.step == STEP_LOOK)
        look_at_slot(&ring->observing[task.number], task.slot);
    else if (task.step == STEP_INNER)
        move_inner(ring);
    else if (skipped)
        task.slot->error = gpg_error(GPG_ERR_CANCELED); /* never seen: block BAD comes first */
    else
        do_work(ring, task.number, task.slot);
    pthread_mutex_lock(&ring->lock);
    if (task.step == STEP_LOOK) {
        ring->observing[task.number].busy = false;
        ring->observing[task.number].looked++;
    } else if (task.step == STEP_INNER) {
        ring->inner_busy = false;
    } else {
        if (task.slot->error && task.slot->block.index < ring->bad)
            ring->bad = task.slot->block.index;
        task.slot->done = true;
        ring->worker[ring->worker_n++] = task.number;
    }
    if (is_satisfied(ring))
        pthread_cond_signal(&ring->outer);
    return true;
}

/* Helps until what is wanted is there. Call with the lock held. */
static gpg_error_t wait_for(struct ring *ring, enum want want)
{
    gpg_error_t error;
    for (;;) {
        ring->want = want;
        error = status(ring);
        const bool there = is_satisfied(ring);
        ring->want = WANT_NOTHING;
        if (error || there)
            break;
        if (help(ring, true))
            continue;
        ring->want = want;
        pthread_cond_wait(&ring->outer, &ring->lock);
    }
    ring->want = WANT_NOTHING;
    rouse(ring);
    return error;
}

static gpg_error_t helper_main(void *arg)
{
    struct ring *ring = arg;
    pthread_mutex_lock(&ring->lock);
    while (!status(ring)) {
        if (help(ring, false))
            continue;
        ring->idle++;
        pthread_cond_wait(&ring->more, &ring->lock);
        ring->idle--;
    }
    pthread_mutex_unlock(&ring->lock);
    return 0; /* a failed block is its own messenger, in order */
}

/* Starts helpers, unless those of other rings keep the processors busy: then the caller goes on doing everything. */
static gpg_error_t ring_start(struct ring *ring)
{
    gpg_error_t error = 0;
    ring->helpers = run_claim_helpers(ring->run, ring->helpers);
    ring->workers = ring->helpers ? ring->workers : 0;
    ring->threaded = ring->helpers;
    if (!ring->threaded)
        return 0;
    ring->taken = ring->closed; /* what was closed before was worked on by the caller */
    ring->hook.cancel = cancel_hook;
    run_hook_add(ring->run, &ring->hook);
    for (unsigned i = 0; i < ring->helpers && !error; i++)
        error = run_start(ring->run, "helper", helper_main, ring, &ring->helper[i]);
    return error;
}

/* Waits for the helpers, which end by themselves after ring_stop. */
static void ring_join(struct ring *ring)
{
    if (!ring->hook.cancel)
        return;
    for (unsigned i = 0; i < ring->helpers; i++) {
        (void)run_join(ring->run, ring->helper[i]);
        ring->helper[i] = NULL;
    }
    run_return_helpers(ring->run, ring->helpers);
    run_hook_remove(ring->run, &ring->hook);
    ring->hook.cancel = NULL;
}

/* Stops the helpers wherever they are, also while they wait in the stream below, and leaves the rest of the run alone.
 */
static void ring_abandon(struct ring *ring)
{
    ring_stop(ring, 0);
    for (unsigned i = 0; i < ring->helpers; i++) {
        if (ring->helper[i])
            run_thread_cancel(ring->run, ring->helper[i]);
    }
    ring_join(ring);
}

/* ---- the two ends ---- */

/* Begins the next block in the slot that is free for it. */
static void producer_begin(struct ring *ring)
{
    ring->absorbs = ring->job.absorb && !ring->threaded && !ring->observers && !ring->job.hold;
    ring->filling = slot_of(ring, ring->closed);
    memcpy(ring->filling->in, ring->carry, ring->carried);
    ring->fill = ring->carried;
    ring->carried = 0;
}

/* Closes the block being filled after its first N_IN bytes; the rest is carried into the next. */
static void producer_close(struct ring *ring, size_t n_in, bool last)
{
    struct slot *slot = ring->filling;
    bool in_place = slot->out == slot->in;
    bool works_here = !ring->threaded || !ring->job.work || ring->absorbs;
    ring->carried = ring->fill - n_in;
    memcpy(ring->carry, slot->in + n_in, ring->carried);
    /* Only the producer writes `closed`. */
    slot->block = (struct block){
        .index = ring->closed,
        .in = slot->in,
        .n_in = n_in,
        .last = last,
        .out = slot->out,
        .n_out = in_place ? n_in : 0,
    };
    slot->error = 0;
    slot->settled = ring->settled < n_in ? ring->settled : n_in;
    ring->settled -= slot->settled;
    for (unsigned i = 0; !ring->threaded && i < ring->observers; i++) {
        look_at_slot(&ring->observing[i], slot);
        ring->observing[i].looked++;
    }
    if (works_here)
        do_work(ring, 0, slot);
    ring->filling = NULL;
    ring->fill = 0;
    pthread_mutex_lock(&ring->lock);
    slot->done = works_here;
    if (works_here && ring->threaded && ring->job.work)
        ring->taken++; /* it was begun before there were helpers */
    ring->closed++;
    ring->ended = last;
    if (ring->is_sink)
        rouse(ring);
    pthread_mutex_unlock(&ring->lock);
}

/* No block follows, because the stream that is read failed with ERROR. */
static void producer_fail(struct ring *ring, gpg_error_t error)
{
    pthread_mutex_lock(&ring->lock);
    ring->ended = true;
    ring->end_error = error;
    pthread_mutex_unlock(&ring->lock);
}

/* The block that is_ready found, until consumer_release. */
static gpg_error_t consumer_take(struct ring *ring, struct block **ret)
{
    struct slot *slot = slot_of(ring, ring->released); /* only the consumer writes `released` */
    gpg_error_t error = slot->error;
    if (!error && ring->job.in_order)
        error = ring->job.in_order(ring->job.context, &slot->block);
    if (!error && slot->block.n_out > ring->out_capacity)
        error = gpg_error(GPG_ERR_BUFFER_TOO_SHORT);
    *ret = &slot->block;
    return error;
}

static void consumer_release(struct ring *ring)
{
    pthread_mutex_lock(&ring->lock);
    slot_of(ring, ring->released)->done = false;
    ring->released++;
    pthread_mutex_unlock(&ring->lock);
}

/* ---- sink ---- */

struct block_sink {
    struct sink sink;
    struct sink *below; /* whose turn it is at the inner end */
    struct ring *ring;
};

static gpg_error_t write_block(void *arg)
{
    struct block_sink *stage = arg;
    struct ring *ring = stage->ring;
    struct block *block;
    gpg_error_t error = consumer_take(ring, &block);
    if (!error && ring->job.emit)
        error = ring->job.emit(ring->job.context, block, stage->below);
    else if (!error)
        error = sink_write(stage->below, block->out, block->n_out);
    if (!error)
        consumer_release(ring);
    return error;
}

/* Makes sure that there is a slot to fill. */
static gpg_error_t open_block(struct ring *ring)
{
    if (ring->filling)
        return 0;
    pthread_mutex_lock(&ring->lock);
    gpg_error_t error = wait_for(ring, WANT_SPACE);
    pthread_mutex_unlock(&ring->lock);
    if (!error)
        producer_begin(ring);
    return error;
}

static gpg_error_t close_block(struct block_sink *stage, size_t n_in, bool last)
{
    struct ring *ring = stage->ring;
    if (ring->workers && !ring->threaded && !last) {
        gpg_error_t error = ring_start(ring);
        if (error)
            return error;
    }
    producer_close(ring, n_in, last);
    if (ring->threaded)
        return 0;
    gpg_error_t error = status_locked(ring);
    return error ? error : write_block(stage);
}

static gpg_error_t block_sink_room(struct sink *sink, void **ret_room, size_t *ret_n)
{
    struct block_sink *stage = CONTAINER(sink, struct block_sink, sink);
    struct ring *ring = stage->ring;
    const size_t full = ring->job.block_size + ring->job.hold;
    gpg_error_t error = atomic_load(&ring->stop) ? status_locked(ring) : 0;
    if (!error && ring->filling && ring->fill == full)
        error = close_block(stage, ring->job.block_size, false);
    if (!error)
        error = open_block(ring);
    if (error)
        return error;
    *ret_room = ring->filling->in + ring->fill;
    *ret_n = full - ring->fill;
    return 0;
}

static gpg_error_t block_sink_filled(struct sink *sink, size_t n)
{
    struct ring *ring = CONTAINER(sink, struct block_sink, sink)->ring;
    assert(ring->filling && n <= ring->job.block_size + ring->job.hold - ring->fill);
    ring->fill += n;
    return 0;
}

static gpg_error_t block_sink_write(struct sink *sink, const void *bytes, size_t n)
{
    struct block_sink *stage = CONTAINER(sink, struct block_sink, sink);
    struct ring *ring = stage->ring;
    const uint8_t *from = bytes;
    while (n) {
        void *room;
        size_t part;
        gpg_error_t error = block_sink_room(sink, &room, &part);
        if (error)
            return error;
        if (is_bare(ring) && !ring->workers && !ring->fill && n >= part)
            return sink_write(stage->below, from, n); /* a buffer would only copy */
        if (part > n)
            part = n;
        if (ring->absorbs)
            error = ring->job.absorb(ring->job.context, ring->closed, ring->filling->in, ring->fill, from, part);
        else
            memcpy(room, from, part);
        if (error)
            return error;
        ring->fill += part;
        from += part;
        n -= part;
    }
    return 0;
}

/* What is in closed blocks the observers see by themselves, and the caller shows them what is not. */
static gpg_error_t block_sink_settle(struct sink *sink)
{
    struct ring *ring = CONTAINER(sink, struct block_sink, sink)->ring;
    gpg_error_t error = open_block(ring);
    if (error)
        return error;
    pthread_mutex_lock(&ring->lock);
    error = wait_for(ring, WANT_SEEN);
    pthread_mutex_unlock(&ring->lock);
    if (error)
        return error;
    for (unsigned i = 0; i < ring->observers; i++)
        look(&ring->observing[i], ring->closed, ring->filling->in + ring->settled, ring->fill - ring->settled);
    ring->settled = ring->fill;
    return 0;
}

static gpg_error_t block_sink_finish(struct sink *sink)
{
    struct block_sink *stage = CONTAINER(sink, struct block_sink, sink);
    struct ring *ring = stage->ring;
    gpg_error_t error = open_block(ring);
    if (!error)
        error = close_block(stage, ring->fill, true);
    if (error)
        return error;
    if (ring->threaded) {
        pthread_mutex_lock(&ring->lock);
        error = wait_for(ring, WANT_RELEASED);
        pthread_mutex_unlock(&ring->lock);
        ring_abandon(ring); /* all is written, or a helper may still wait in the stream below */
    }
    if (error)
        return error;
    error = sink_finish(stage->below);
    if (error && ring->threaded)
        run_cancel(ring->run, error);
    return error;
}

static void block_sink_free(struct sink *sink)
{
    struct block_sink *stage = CONTAINER(sink, struct block_sink, sink);
    if (stage->ring)
        ring_abandon(stage->ring);
    sink_free(stage->below);
    ring_free(stage->ring);
    free(stage);
}

static const struct sink_ops block_sink_ops = {
    .write = block_sink_write,
    .room = block_sink_room,
    .filled = block_sink_filled,
    .settle = block_sink_settle,
    .finish = block_sink_finish,
    .free = block_sink_free,
};

gpg_error_t block_sink_new(struct run *run, const struct block_job *job, unsigned workers, struct sink *takes_below,
                           struct sink **ret)
{
    struct block_sink *stage = calloc(1, sizeof *stage);
    if (!stage) {
        gpg_error_t error = gpg_error_from_syserror();
        sink_free(takes_below);
        return error;
    }
    sink_init(&stage->sink, &block_sink_ops);
    stage->below = takes_below;
    gpg_error_t error = ring_new(run, job, workers, write_block, stage, &stage->ring);
    if (!error)
        stage->ring->is_sink = true;
    if (error) {
        sink_free(&stage->sink);
        return error;
    }
    *ret = &stage->sink;
    return 0;
}

/* ---- source ---- */

struct block_source {
    struct source source;
    struct source *below; /* whose turn it is at the inner end */
    bool borrowed;
    struct ring *ring;
    struct block *lent; /* NULL: none */
    size_t used;        /* bytes of it that were consumed */
    bool at_end;
};

/* Fills one block from below and closes it. An error of the stream below is left for the consumer, as end_error. */
static gpg_error_t read_block(void *arg)
{
    struct block_source *stage = arg;
    struct ring *ring = stage->ring;
    const size_t block_size = ring->job.block_size;
    const size_t wanted = is_bare(ring) ? block_size : block_size + ring->job.hold + 1;
    size_t got;
    producer_begin(ring);
    gpg_error_t error = source_read(stage->below, ring->filling->in + ring->fill, wanted - ring->fill, &got);
    ring->fill += got;
    if (!error && ring->fill == wanted) {
        producer_close(ring, block_size, false);
    } else if (!error) {
        producer_close(ring, ring->fill, true);
    } else {
        /* Bytes before an error are good, but a part of a block is nothing that work could be done on. */
        if (is_bare(ring) && ring->fill)
            producer_close(ring, ring->fill, false);
        producer_fail(ring, error);
    }
    return 0;
}

/* The next block in order, NULL at the end. */
static gpg_error_t take_block(struct ring *ring, struct block **ret)
{
    pthread_mutex_lock(&ring->lock);
    gpg_error_t error = wait_for(ring, WANT_BLOCK);
    const bool ready = is_ready(ring);
    if (!error && !ready)
        error = ring->end_error;
    pthread_mutex_unlock(&ring->lock);
    *ret = NULL;
    return error || !ready ? error : consumer_take(ring, ret);
}

/* Gets the next block that is not empty; at_end where there is none. */
static gpg_error_t next_block(struct block_source *stage)
{
    struct ring *ring = stage->ring;
    gpg_error_t error = 0;
    while (!error && !stage->at_end && !(stage->lent && stage->used < stage->lent->n_out)) {
        if (stage->lent)
            consumer_release(ring);
        stage->lent = NULL;
        stage->used = 0;
        if (ring->workers && !ring->threaded && !ring->ended && ring->closed)
            error = ring_start(ring);
        if (!error && !ring->threaded && !ring->ended)
            (void)read_block(stage); /* its error comes with the block or after it */
        if (!error)
            error = take_block(ring, &stage->lent);
        stage->at_end = !error && !stage->lent;
    }
    return error;
}

static gpg_error_t block_source_peek(struct source *source, const void **ret_bytes, size_t *ret_n)
{
    struct block_source *stage = CONTAINER(source, struct block_source, source);
    gpg_error_t error = next_block(stage);
    if (error || stage->at_end)
        ring_abandon(stage->ring); /* from here on nothing touches the source below */
    if (error)
        return error;
    *ret_bytes = stage->at_end ? NULL : stage->lent->out + stage->used;
    *ret_n = stage->at_end ? 0 : stage->lent->n_out - stage->used;
    return 0;
}

static void block_source_consume(struct source *source, size_t n)
{
    struct block_source *stage = CONTAINER(source, struct block_source, source);
    assert(stage->lent && n <= stage->lent->n_out - stage->used);
    stage->used += n;
}

static gpg_error_t block_source_finish(struct source *source)
{
    struct block_source *stage = CONTAINER(source, struct block_source, source);
    gpg_error_t error = source_drain(source);
    if (!error && !stage->borrowed)
        error = source_finish(stage->below);
    return error;
}

static void block_source_free(struct source *source)
{
    struct block_source *stage = CONTAINER(source, struct block_source, source);
    if (stage->ring)
        ring_abandon(stage->ring);
    if (!stage->borrowed)
        source_free(stage->below);
    ring_free(stage->ring);
    free(stage);
}

static const struct source_ops block_source_ops = {
    .peek = block_source_peek,
    .consume = block_source_consume,
    .finish = block_source_finish,
    .free = block_source_free,
};

static gpg_error_t new_source(struct run *run, const struct block_job *job, unsigned workers, struct source *below,
                              bool borrowed, struct source **ret)
{
    struct block_source *stage = calloc(1, sizeof *stage);
    if (!stage) {
        gpg_error_t error = gpg_error_from_syserror();
        if (!borrowed)
            source_free(below);
        return error;
    }
    source_init(&stage->source, &block_source_ops);
    stage->below = below;
    stage->borrowed = borrowed;
    gpg_error_t error = ring_new(run, job, workers, read_block, stage, &stage->ring);
    if (error) {
        source_free(&stage->source);
        return error;
    }
    *ret = &stage->source;
    return 0;
}

gpg_error_t block_source_new(struct run *run, const struct block_job *job, unsigned workers, struct source *takes_below,
                             struct source **ret)
{
    return new_source(run, job, workers, takes_below, false, ret);
}

gpg_error_t block_source_borrow(struct run *run, const struct block_job *job, unsigned workers,
                                struct source *borrows_below, struct source **ret)
{
    return new_source(run, job, workers, borrows_below, true, ret);
}
