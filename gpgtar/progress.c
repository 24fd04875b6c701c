/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define SECOND ((uint64_t)1000000000)
/* Short work says nothing on the terminal. */
#define QUIET_AT_FIRST (2 * SECOND)
#define TERMINAL_EVERY (SECOND / 5)
#define LINE_EVERY     (10 * SECOND)
#define STATUS_EVERY   SECOND

struct progress {
    struct report *report;
    struct status *status;
    bool visible, terminal;
    progress_clock *clock;
    void *clock_context;
    uint64_t begun, started; /* the whole; the phase that has a rate */
    uint64_t next_line, next_status;
    uint64_t files, bytes, total_files, total_bytes;
};

static uint64_t system_clock(void *context)
{
    struct timespec now = {0};
    (void)context;
    /* Precise enough, and read without a system call. */
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return (uint64_t)now.tv_sec * SECOND + (uint64_t)now.tv_nsec;
}

struct progress *progress_new(struct report *report, struct status *status, bool visible, progress_clock *clock,
                              void *clock_context)
{
    struct progress *progress = calloc(1, sizeof *progress);
    if (!progress)
        return NULL;
    progress->report = report;
    progress->status = status;
    progress->visible = visible;
    progress->terminal = report_on_terminal(report);
    progress->clock = clock ? clock : system_clock;
    progress->clock_context = clock_context;
    progress->begun = progress->started = progress->clock(clock_context);
    progress->next_line = progress->begun + QUIET_AT_FIRST;
    progress->next_status = progress->begun + STATUS_EVERY;
    return progress;
}

void progress_free(struct progress *progress)
{
    if (!progress)
        return;
    if (progress->visible)
        report_transient(progress->report, "");
    free(progress);
}

static void format_bytes(uint64_t bytes, char *to, size_t n)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double value = (double)bytes;
    size_t unit = 0;
    while (value >= 1024 && unit < ARRAY_SIZE(units) - 1) {
        value /= 1024;
        unit++;
    }
    snprintf(to, n, unit ? "%.1f %s" : "%.0f %s", value, units[unit]);
}

/* " 120.0 MiB/s" and, where the whole is known, " 1:02 left". */
static void format_rate(const struct progress *progress, uint64_t now, char *to, size_t n)
{
    char rate[32];
    double seconds = (double)(now - progress->started) / (double)SECOND;
    to[0] = '\0';
    if (seconds < 0.5 || progress->bytes == 0)
        return;
    double per_second = (double)progress->bytes / seconds;
    format_bytes((uint64_t)per_second, rate, sizeof rate);
    int used = snprintf(to, n, ", %s/s", rate);
    if (progress->total_bytes > progress->bytes && used > 0 && (size_t)used < n) {
        unsigned long left = (unsigned long)((double)(progress->total_bytes - progress->bytes) / per_second + 0.5);
        snprintf(to + used, n - (size_t)used, ", %lu:%02lu left", left / 60, left % 60);
    }
}

static void show_line(struct progress *progress, uint64_t now, bool counting)
{
    char line[192], done[32], whole[32], rate[80];
    if (counting) {
        snprintf(line, sizeof line, "%" PRIu64 " files found", progress->files);
    } else {
        format_bytes(progress->bytes, done, sizeof done);
        format_bytes(progress->total_bytes, whole, sizeof whole);
        format_rate(progress, now, rate, sizeof rate);
        snprintf(line, sizeof line, "%" PRIu64 " files, %s%s%s%s", progress->files, done,
                 progress->total_bytes ? " of " : "", progress->total_bytes ? whole : "", rate);
    }
    if (progress->terminal)
        report_transient(progress->report, line);
    else
        report_note(progress->report, "%s", line);
}

static void show(struct progress *progress, bool counting)
{
    const uint64_t now = progress->clock(progress->clock_context);
    if (progress->status && now >= progress->next_status) {
        progress->next_status = now + STATUS_EVERY;
        if (counting)
            status_progress(progress->status, 'c', progress->files, 0);
        else
            status_progress(progress->status, 's', progress->bytes, progress->total_bytes);
    }
    if (progress->visible && now >= progress->next_line) {
        progress->next_line = now + (progress->terminal ? TERMINAL_EVERY : LINE_EVERY);
        show_line(progress, now, counting);
    }
}

void progress_counting(struct progress *progress, uint64_t files)
{
    if (!progress)
        return;
    progress->files = files;
    show(progress, true);
}

void progress_start(struct progress *progress, uint64_t total_files, uint64_t total_bytes)
{
    if (!progress)
        return;
    progress->total_files = total_files;
    progress->total_bytes = total_bytes;
    progress->files = progress->bytes = 0;
    progress->started = progress->clock(progress->clock_context);
    status_progress(progress->status, 'c', 0, total_files);
    status_progress(progress->status, 's', 0, total_bytes);
    progress->next_status = progress->started + STATUS_EVERY;
}

void progress_update(struct progress *progress, uint64_t files, uint64_t bytes)
{
    if (!progress)
        return;
    progress->files = files;
    progress->bytes = bytes;
    show(progress, false);
}

void progress_finish(struct progress *progress)
{
    if (!progress)
        return;
    /* What was not known, or has changed since it was counted, is what was done. */
    status_progress(progress->status, 'c', progress->files, progress->files);
    status_progress(progress->status, 's', progress->bytes, progress->bytes);
    if (progress->visible)
        report_transient(progress->report, "");
}
