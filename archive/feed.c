/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "feed.h"

#include <errno.h>

void feed_init(struct feed *feed, struct source *borrows_from, struct run *run)
{
    *feed = (struct feed){.from = borrows_from, .run = run};
}

/* libarchive may step back inside the block that is lent: it is dropped only when the next one is wanted. */
static void drop(struct feed *feed)
{
    if (!feed->gathered)
        source_consume(feed->from, feed->lent_n);
    feed->lent_at += feed->lent_n;
    feed->lent_n = 0;
    feed->gathered = false;
}

static void lend_gathered(struct feed *feed, size_t at, size_t n)
{
    feed->lent = feed->gather + at;
    feed->lent_n = n;
    feed->gathered = true;
}

gpg_error_t feed_next(struct feed *feed, const uint8_t **ret_bytes, size_t *ret_n)
{
    drop(feed);
    if (feed->run && !feed->error)
        feed->error = run_cancelled(feed->run);
    if (feed->error)
        return feed->error;
    const void *bytes;
    size_t n;
    if (feed->kept_n) {
        lend_gathered(feed, feed->kept_at, feed->kept_n);
        feed->kept_n = 0;
    } else if ((feed->error = source_peek(feed->from, &bytes, &n))) {
        return feed->error;
    } else if (n >= FEED_UNIT) {
        feed->lent = bytes;
        feed->lent_n = n - n % FEED_UNIT;
    } else {
        size_t got;
        gpg_error_t error = source_read(feed->from, feed->gather, FEED_UNIT, &got);
        /* The bytes before an error are good; the error comes again with the next call. */
        if (error && !got)
            return feed->error = error;
        lend_gathered(feed, 0, got);
    }
    feed->ended = !feed->lent_n;
    *ret_bytes = feed->lent;
    *ret_n = feed->lent_n;
    return 0;
}

static la_ssize_t read_callback(struct archive *archive, void *context, const void **ret_bytes)
{
    struct feed *feed = context;
    const uint8_t *bytes;
    size_t n;
    if (feed_next(feed, &bytes, &n)) {
        archive_set_error(archive, EIO, "the source failed");
        return -1;
    }
    *ret_bytes = bytes;
    return (la_ssize_t)n;
}

static la_int64_t skip_callback(struct archive *archive, void *context, la_int64_t request)
{
    struct feed *feed = context;
    (void)archive;
    drop(feed);
    /* What was kept must be read first. */
    if (feed->kept_n || request <= 0)
        return 0;
    if (!feed->error)
        feed->error = source_skip(feed->from, (uint64_t)request);
    /* libarchive takes an error code for a number of bytes and asks again for ever: the read that follows fails. */
    if (feed->error)
        return 0;
    feed->lent_at += (uint64_t)request;
    return request;
}

int feed_open(struct feed *feed, struct archive *archive, bool skips)
{
    archive_read_set_callback_data(archive, feed);
    archive_read_set_read_callback(archive, read_callback);
    if (skips)
        archive_read_set_skip_callback(archive, skip_callback);
    return archive_read_open1(archive);
}

bool feed_settle(struct feed *feed, uint64_t position)
{
    bool complete = position >= feed->lent_at;
    size_t used = 0;
    if (position > feed->lent_at)
        used = position - feed->lent_at < feed->lent_n ? (size_t)(position - feed->lent_at) : feed->lent_n;
    if (feed->gathered) {
        feed->kept_at = (size_t)(feed->lent - feed->gather) + used;
        feed->kept_n = feed->lent_n - used;
    } else {
        source_consume(feed->from, used);
    }
    feed->lent_n = 0;
    feed->gathered = false;
    feed->lent_at = 0;
    return complete;
}
