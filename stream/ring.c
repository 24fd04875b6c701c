/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ring.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Blocks go round in this order, each counted by a number that only grows:
 *
 *     producer fills ▸ closed ▸ a worker takes ▸ slot.done ▸ consumer takes out ▸ released ▸ producer fills
 *
 * Block I lives in slot I % n_slots. The producer of a sink is the caller of write and its consumer is the pump thread;
 * of a source it is the other way round. With no workers the one caller is all of them, and no wait ever blocks. */
struct slot {
    struct block block; /* producer, then one worker, then consumer */
    uint8_t *in;        /* in_capacity bytes */
    uint8_t *out;       /* out_capacity bytes, perhaps the same as in */
    gpg_error_t error;  /* of the work; written before done */
    bool done;          /* lock */
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

    struct run_thread *pump;
    struct run_thread **worker; /* WORKERS threads, NULL where none was started */
    atomic_uint next_worker;    /* numbers them */

    /* The producer's own. */
    struct slot *filling; /* NULL: the next block has no slot yet */
    size_t fill;          /* bytes in it */
    uint8_t *carry;       /* the bytes behind the block closed last: they begin the next */
    size_t carried;

    pthread_mutex_t lock; /* for what follows */
    pthread_cond_t space; /* released has grown: the producer waits */
    pthread_cond_t work;  /* closed has grown: workers wait */
    pthread_cond_t ready; /* slot RELEASED is done, or the end came: the consumer waits */
    uint64_t closed;
    uint64_t taken;
    uint64_t released;
    uint64_t bad;          /* the first block whose work failed: what follows it is not worked on */
    bool ended;            /* the producer closes no more blocks; why is in end_error */
    gpg_error_t end_error; /* of the stream that the producer reads, to be given out after the last block */
    gpg_error_t error;     /* the consumer's first */
    atomic_bool stop;      /* the consumer failed or the stage is being freed; written under lock */
};

/* Whether blocks need to know if they are the last; a bare boundary needs not. */
static bool is_bare(const struct ring *ring)
{
    return !ring->job.work && !ring->job.in_order && !ring->job.emit;
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
    free(ring->worker);
    free(ring->carry);
    pthread_cond_destroy(&ring->ready);
    pthread_cond_destroy(&ring->work);
    pthread_cond_destroy(&ring->space);
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
    ring->worker = calloc(ring->workers + 1, sizeof *ring->worker);
    ring->carry = malloc(ring->job.hold + 1);
    if (!ring->slots || !ring->worker || !ring->carry)
        return gpg_error_from_syserror();
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

static gpg_error_t ring_new(struct run *run, const struct block_job *job, unsigned workers, struct ring **ret)
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
    atomic_init(&ring->next_worker, 0);
    pthread_mutex_init(&ring->lock, NULL);
    pthread_cond_init(&ring->space, NULL);
    pthread_cond_init(&ring->work, NULL);
    pthread_cond_init(&ring->ready, NULL);
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

static gpg_error_t status_locked(struct ring *ring)
{
    pthread_mutex_lock(&ring->lock);
    gpg_error_t error = status(ring);
    pthread_mutex_unlock(&ring->lock);
    return error;
}

static void wake_all(struct ring *ring)
{
    pthread_cond_broadcast(&ring->space);
    pthread_cond_broadcast(&ring->work);
    pthread_cond_broadcast(&ring->ready);
}

static void cancel_hook(struct run_hook *hook)
{
    struct ring *ring = CONTAINER(hook, struct ring, hook);
    pthread_mutex_lock(&ring->lock);
    wake_all(ring);
    pthread_mutex_unlock(&ring->lock);
}

/* Nothing moves in RING any more. ERROR 0: it is only given up. Returns whether it was moving before. */
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

/* Makes sure that the producer has a slot to fill; waits for one. */
static gpg_error_t producer_open(struct ring *ring)
{
    gpg_error_t error;
    if (ring->filling)
        return 0;
    pthread_mutex_lock(&ring->lock);
    /* Who has to wait waits for half of the slots, so that the two threads wake one another less often. */
    size_t most = ring->closed - ring->released == ring->n_slots ? ring->n_slots / 2 : ring->n_slots - 1;
    while (!(error = status(ring)) && ring->closed - ring->released > most)
        pthread_cond_wait(&ring->space, &ring->lock);
    if (!error)
        ring->filling = slot_of(ring, ring->closed);
    pthread_mutex_unlock(&ring->lock);
    if (error)
        return error;
    memcpy(ring->filling->in, ring->carry, ring->carried);
    ring->fill = ring->carried;
    ring->carried = 0;
    return 0;
}

static void do_work(struct ring *ring, unsigned worker, struct slot *slot)
{
    slot->error = ring->job.work ? ring->job.work(ring->job.context, worker, &slot->block) : 0;
    if (!slot->error && slot->block.n_out > ring->out_capacity)
        slot->error = gpg_error(GPG_ERR_BUFFER_TOO_SHORT);
}

/* Closes the block being filled after its first N_IN bytes; the rest is carried into the next. */
static void producer_close(struct ring *ring, size_t n_in, bool last)
{
    struct slot *slot = ring->filling;
    bool in_place = slot->out == slot->in;
    bool works_here = !ring->workers || !ring->job.work;
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
    if (works_here)
        do_work(ring, 0, slot);
    ring->filling = NULL;
    ring->fill = 0;
    pthread_mutex_lock(&ring->lock);
    slot->done = works_here;
    ring->closed++;
    ring->ended = last;
    bool first = ring->closed - ring->released == 1;
    pthread_mutex_unlock(&ring->lock);
    /* Behind the lock, here and below: the thread that is woken need not wait for it. */
    if (!works_here)
        pthread_cond_signal(&ring->work);
    else if (first)
        pthread_cond_signal(&ring->ready);
}

/* No block follows, because the stream that is read failed with ERROR. */
static void producer_fail(struct ring *ring, gpg_error_t error)
{
    pthread_mutex_lock(&ring->lock);
    ring->ended = true;
    ring->end_error = error;
    wake_all(ring);
    pthread_mutex_unlock(&ring->lock);
}

/* The next block in order, worked on, until consumer_release; NULL: the end. */
static gpg_error_t consumer_take(struct ring *ring, struct block **ret)
{
    struct slot *slot = NULL;
    gpg_error_t error;
    pthread_mutex_lock(&ring->lock);
    for (;;) {
        error = status(ring);
        if (error)
            break;
        if (ring->released < ring->closed) {
            slot = slot_of(ring, ring->released);
            if (slot->done)
                break;
        } else if (ring->ended) {
            slot = NULL;
            error = ring->end_error;
            break;
        }
        pthread_cond_wait(&ring->ready, &ring->lock);
    }
    pthread_mutex_unlock(&ring->lock);
    if (!error && slot) {
        error = slot->error;
        if (!error && ring->job.in_order)
            error = ring->job.in_order(ring->job.context, &slot->block);
        if (!error && slot->block.n_out > ring->out_capacity)
            error = gpg_error(GPG_ERR_BUFFER_TOO_SHORT);
    }
    if (!error)
        *ret = slot ? &slot->block : NULL;
    return error;
}

static void consumer_release(struct ring *ring)
{
    pthread_mutex_lock(&ring->lock);
    slot_of(ring, ring->released)->done = false;
    ring->released++;
    bool enough = ring->closed - ring->released == ring->n_slots / 2; /* what producer_open waits for */
    pthread_mutex_unlock(&ring->lock);
    if (enough)
        pthread_cond_signal(&ring->space);
}

static gpg_error_t worker_main(void *arg)
{
    struct ring *ring = arg;
    unsigned number = atomic_fetch_add(&ring->next_worker, 1);
    pthread_mutex_lock(&ring->lock);
    for (;;) {
        while (!status(ring) && ring->taken == ring->closed && !ring->ended)
            pthread_cond_wait(&ring->work, &ring->lock);
        if (status(ring) || ring->taken == ring->closed)
            break;
        uint64_t index = ring->taken++;
        struct slot *slot = slot_of(ring, index);
        if (index < ring->bad) {
            pthread_mutex_unlock(&ring->lock);
            do_work(ring, number, slot);
            pthread_mutex_lock(&ring->lock);
            if (slot->error && index < ring->bad)
                ring->bad = index;
        } else {
            slot->error = gpg_error(GPG_ERR_CANCELED); /* never seen: block BAD comes first */
        }
        slot->done = true;
        if (index == ring->released) {
            pthread_mutex_unlock(&ring->lock);
            pthread_cond_signal(&ring->ready);
            pthread_mutex_lock(&ring->lock);
        }
    }
    /* With the end, the other workers that wait must go too. */
    pthread_cond_broadcast(&ring->work);
    pthread_mutex_unlock(&ring->lock);
    return 0; /* a failed block is its own messenger, in order */
}

static gpg_error_t ring_start(struct ring *ring, gpg_error_t (*pump_main)(void *arg), void *arg)
{
    gpg_error_t error = 0;
    if (!ring->workers)
        return 0;
    ring->hook.cancel = cancel_hook;
    run_hook_add(ring->run, &ring->hook);
    for (unsigned i = 0; ring->job.work && i < ring->workers && !error; i++)
        error = run_start(ring->run, "worker", worker_main, ring, &ring->worker[i]);
    if (!error)
        error = run_start(ring->run, "pump", pump_main, arg, &ring->pump);
    return error;
}

/* Waits for the threads, which end by themselves after the end or ring_stop. */
static void ring_join(struct ring *ring)
{
    if (!ring->workers || !ring->hook.cancel)
        return;
    (void)run_join(ring->run, ring->pump);
    ring->pump = NULL;
    for (unsigned i = 0; i < ring->workers; i++) {
        (void)run_join(ring->run, ring->worker[i]);
        ring->worker[i] = NULL;
    }
    run_hook_remove(ring->run, &ring->hook);
    ring->hook.cancel = NULL;
}

/* Stops the threads wherever they are, also while they wait in the stream below, and leaves the rest of the run alone.
 */
static void ring_abandon(struct ring *ring)
{
    ring_stop(ring, 0);
    if (ring->pump)
        run_thread_cancel(ring->run, ring->pump);
    ring_join(ring);
}

/* ---- sink ---- */

struct block_sink {
    struct sink sink;
    struct sink *below; /* the pump thread's while it runs */
    struct ring *ring;
};

/* Takes blocks out and writes them; up to the end (RET_END) or, without threads, as many as there are. */
static gpg_error_t write_block(struct block_sink *stage, bool *ret_end)
{
    struct block *block;
    gpg_error_t error = consumer_take(stage->ring, &block);
    if (error)
        return error;
    *ret_end = !block || block->last;
    if (block && stage->ring->job.emit)
        error = stage->ring->job.emit(stage->ring->job.context, block, stage->below);
    else if (block)
        error = sink_write(stage->below, block->out, block->n_out);
    if (!error && block)
        consumer_release(stage->ring);
    return error;
}

static gpg_error_t sink_pump(void *arg)
{
    struct block_sink *stage = arg;
    gpg_error_t error = 0;
    bool end = false;
    while (!error && !end)
        error = write_block(stage, &end);
    if (!error)
        error = sink_finish(stage->below);
    if (!error)
        return 0;
    /* Our own error is set before the run's, so that write returns it rather than GPG_ERR_CANCELED. */
    if (!ring_stop(stage->ring, error))
        return 0; /* the stage is being freed: nobody's failure */
    run_cancel(stage->ring->run, error);
    return error;
}

static gpg_error_t close_and_write(struct block_sink *stage, size_t n_in, bool last)
{
    bool end;
    producer_close(stage->ring, n_in, last);
    return stage->ring->workers ? 0 : write_block(stage, &end);
}

static gpg_error_t block_sink_room(struct sink *sink, void **ret_room, size_t *ret_n)
{
    struct block_sink *stage = CONTAINER(sink, struct block_sink, sink);
    struct ring *ring = stage->ring;
    const size_t full = ring->job.block_size + ring->job.hold;
    gpg_error_t error = atomic_load(&ring->stop) ? status_locked(ring) : 0;
    if (!error && ring->filling && ring->fill == full)
        error = close_and_write(stage, ring->job.block_size, false);
    if (!error)
        error = producer_open(ring);
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
        memcpy(room, from, part);
        ring->fill += part;
        from += part;
        n -= part;
    }
    return 0;
}

static gpg_error_t block_sink_finish(struct sink *sink)
{
    struct block_sink *stage = CONTAINER(sink, struct block_sink, sink);
    struct ring *ring = stage->ring;
    gpg_error_t error = producer_open(ring);
    if (!error)
        error = close_and_write(stage, ring->fill, true);
    if (error)
        return error;
    if (!ring->workers)
        return sink_finish(stage->below);
    error = run_join(ring->run, ring->pump);
    ring->pump = NULL;
    ring_join(ring);
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
    gpg_error_t error = ring_new(run, job, workers, &stage->ring);
    if (!error)
        error = ring_start(stage->ring, sink_pump, stage);
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
    struct source *below; /* the pump thread's while it runs */
    bool borrowed;
    struct ring *ring;
    struct block *lent; /* NULL: none */
    size_t used;        /* bytes of it that were consumed */
    bool at_end;
};

/* Fills one block from below and closes it. An error of the stream below is left for the consumer, as end_error. */
static gpg_error_t read_block(struct block_source *stage)
{
    struct ring *ring = stage->ring;
    const size_t block_size = ring->job.block_size;
    const size_t wanted = is_bare(ring) ? block_size : block_size + ring->job.hold + 1;
    gpg_error_t error = producer_open(ring);
    if (error)
        return error;
    size_t got;
    error = source_read(stage->below, ring->filling->in + ring->fill, wanted - ring->fill, &got);
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
    return error;
}

static gpg_error_t source_pump(void *arg)
{
    struct block_source *stage = arg;
    gpg_error_t error = 0;
    while (!error && !stage->ring->ended) /* only this thread writes `ended` */
        error = read_block(stage);
    return 0; /* the consumer is told in its turn, and tells whoever reads */
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
        if (!ring->workers && !ring->ended)
            (void)read_block(stage); /* its error comes with the block or after it */
        error = consumer_take(ring, &stage->lent);
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
    gpg_error_t error = ring_new(run, job, workers, &stage->ring);
    if (!error)
        error = ring_start(stage->ring, source_pump, stage);
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
