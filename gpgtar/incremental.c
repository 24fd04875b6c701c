/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "incremental.h"

#include "discard.h"
#include "stream/fd.h"
#include "stream/outfile.h"
#include "stream/ring.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

struct incremental {
    const struct program *program;
    struct outfile *outfile; /* NULL with --dry-run */
    struct sink *sink;
    struct snapshot *snapshot;
};

/* The old snapshot; *RET is NULL where there is none. */
static gpg_error_t incremental_old(const struct program *program, const char *name, struct source **ret)
{
    const int fd = open(name, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0 && errno == ENOENT) {
        report_note(program->report, "there is no snapshot '%s' yet: everything is archived", name);
        return 0;
    }
    if (fd < 0)
        return fail_errno(program_failure(program), errno, "the snapshot '%s' cannot be opened", name);
    return fd_source_new(program->run, fd, name, true, 0, ret);
}

static gpg_error_t incremental_sink(struct incremental *incremental, const char *name)
{
    struct run *run = incremental->program->run;
    struct sink *file = NULL;
    if (incremental->program->options->dry_run)
        return discard_new(&incremental->sink);
    gpg_error_t err = outfile_open(run, AT_FDCWD, name, 0600, OUTFILE_REPLACE, &incremental->outfile);
    if (!err)
        err = outfile_sink(incremental->outfile, &file);
    if (err)
        return err;
    /* Records are short. */
    const struct block_job gather = {.block_size = (size_t)64 * 1024};
    return block_sink_new(run, &gather, 0, file, &incremental->sink);
}

gpg_error_t incremental_new(const struct program *program, struct incremental **ret)
{
    const char *name = program->options->listed_incremental;
    struct source *old = NULL;
    struct timespec now;
    struct incremental *incremental = calloc(1, sizeof *incremental);
    if (!incremental)
        return gpg_error_from_syserror();
    incremental->program = program;
    gpg_error_t err = clock_gettime(CLOCK_REALTIME_COARSE, &now) ? gpg_error_from_syserror() : 0;
    if (!err)
        err = incremental_old(program, name, &old);
    if (!err)
        err = incremental_sink(incremental, name);
    if (!err)
        err = snapshot_new(program_failure(program), name, old, &now, incremental->sink, &incremental->snapshot);
    source_free(old);
    if (err)
        incremental_free(incremental);
    else
        *ret = incremental;
    return err;
}

struct snapshot *incremental_snapshot(struct incremental *incremental)
{
    return incremental ? incremental->snapshot : NULL;
}

bool incremental_is_file(const struct incremental *incremental, dev_t dev, ino_t ino)
{
    return incremental && incremental->outfile && outfile_is(incremental->outfile, dev, ino);
}

gpg_error_t incremental_commit(struct incremental *incremental)
{
    if (!incremental)
        return 0;
    gpg_error_t err = sink_finish(incremental->sink);
    if (!err && incremental->outfile)
        err = outfile_commit(incremental->outfile);
    return err;
}

void incremental_free(struct incremental *incremental)
{
    if (!incremental)
        return;
    snapshot_free(incremental->snapshot);
    sink_free(incremental->sink);
    outfile_free(incremental->outfile);
    free(incremental);
}
