/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "snapshot.h"

#include "names.h"
#include "nameset.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char magic[] = "gpgtar snapshot 1\n";

/* "DEVICE INODE " or "SECONDS.NANOSECONDS\n" at most, each number of 20 digits. */
#define NUMBERS_MAX 44

struct snapshot {
    struct nameset *old;         /* PATH with the tag of device and inode; NULL: everything is taken */
    struct nameset *new_folders; /* paths of folders that OLD does not have */
    struct timespec since;       /* of OLD */
    struct sink *sink;
};

static uint64_t tag_of(uint64_t dev, uint64_t ino)
{
    return ino ^ (dev << 32 | dev >> 32);
}

/* Reads up to and with END into TEXT of SIZE; *RET_N is without it. *RET_MORE false: the source was at its end. */
static gpg_error_t read_until(struct source *source, char end, char *text, size_t size, size_t *ret_n, bool *ret_more)
{
    size_t n = 0;
    for (;;) {
        const void *lent;
        size_t lent_n;
        gpg_error_t err = source_peek(source, &lent, &lent_n);
        if (err)
            return err;
        if (!lent_n) {
            *ret_more = false;
            return n ? gpg_error(GPG_ERR_BAD_DATA) : 0;
        }
        const char *found = memchr(lent, end, lent_n);
        const size_t part = found ? (size_t)(found - (const char *)lent) : lent_n;
        if (part >= size - n)
            return gpg_error(GPG_ERR_BAD_DATA);
        memcpy(text + n, lent, part);
        n += part;
        source_consume(source, part + (found ? 1 : 0));
        if (found)
            break;
    }
    text[n] = '\0';
    *ret_n = n;
    *ret_more = true;
    return 0;
}

/* Digits at *AT, ended by END; *AT goes behind it. */
static bool take_number(const char **at, char end, uint64_t *ret)
{
    char *behind;
    if (**at < '0' || **at > '9')
        return false;
    errno = 0;
    *ret = strtoull(*at, &behind, 10);
    if (errno || *behind != end)
        return false;
    *at = behind + (end ? 1 : 0);
    return true;
}

static gpg_error_t read_head(struct snapshot *snapshot, struct source *old)
{
    char text[NUMBERS_MAX];
    size_t n;
    bool more = false;
    uint64_t seconds, nanoseconds;
    gpg_error_t err = read_until(old, '\n', text, sizeof text, &n, &more);
    if (!err && (!more || n != sizeof magic - 2 || memcmp(text, magic, n)))
        err = gpg_error(GPG_ERR_BAD_DATA);
    if (!err)
        err = read_until(old, '\n', text, sizeof text, &n, &more);
    const char *at = text;
    if (!err && (!more || !take_number(&at, '.', &seconds) || !take_number(&at, '\0', &nanoseconds) ||
                 nanoseconds >= 1000000000 || seconds > INT64_MAX))
        err = gpg_error(GPG_ERR_BAD_DATA);
    if (!err)
        snapshot->since = (struct timespec){.tv_sec = (time_t)seconds, .tv_nsec = (long)nanoseconds};
    return err;
}

static gpg_error_t read_old(struct snapshot *snapshot, struct source *old)
{
    gpg_error_t err = read_head(snapshot, old);
    char *record = malloc(NUMBERS_MAX + NAMES_MAX + 1);
    if (!err && !record)
        err = gpg_error(GPG_ERR_ENOMEM);
    bool more = true;
    while (!err && more) {
        size_t n = 0;
        uint64_t dev, ino;
        err = read_until(old, '\0', record, NUMBERS_MAX + NAMES_MAX + 1, &n, &more);
        if (err || !more)
            break;
        const char *at = record;
        if (!take_number(&at, ' ', &dev) || !take_number(&at, ' ', &ino) || !*at)
            err = gpg_error(GPG_ERR_BAD_DATA);
        else
            err = nameset_add(snapshot->old, tag_of(dev, ino), at, strlen(at), NULL);
    }
    free(record);
    return err;
}

gpg_error_t snapshot_new(struct failure *failure, const char *name, struct source *borrows_old,
                         const struct timespec *now, struct sink *borrows_new, struct snapshot **ret)
{
    char head[sizeof magic + NUMBERS_MAX];
    struct snapshot *snapshot = calloc(1, sizeof *snapshot);
    if (!snapshot)
        return gpg_error_from_syserror();
    snapshot->sink = borrows_new;
    gpg_error_t err = 0;
    if (borrows_old) {
        snapshot->old = nameset_new();
        snapshot->new_folders = nameset_new();
        err = snapshot->old && snapshot->new_folders ? read_old(snapshot, borrows_old) : gpg_error(GPG_ERR_ENOMEM);
        if (gpg_err_code(err) == GPG_ERR_BAD_DATA)
            fail(failure, err, "'%s' is no snapshot of gpgtar: name another file, or remove it for a full archive",
                 name);
    }
    const int n = snprintf(head, sizeof head, "%s%lld.%09ld\n", magic, (long long)now->tv_sec, now->tv_nsec);
    if (!err)
        err = sink_write(borrows_new, head, (size_t)n);
    if (err)
        snapshot_free(snapshot);
    else
        *ret = snapshot;
    return err;
}

void snapshot_free(struct snapshot *snapshot)
{
    if (!snapshot)
        return;
    nameset_free(snapshot->old);
    nameset_free(snapshot->new_folders);
    free(snapshot);
}

static gpg_error_t note(struct snapshot *snapshot, const char *path, const struct stat *status)
{
    char numbers[NUMBERS_MAX];
    const int n = snprintf(numbers, sizeof numbers, "%" PRIu64 " %" PRIu64 " ", (uint64_t)status->st_dev,
                           (uint64_t)status->st_ino);
    gpg_error_t err = sink_write(snapshot->sink, numbers, (size_t)n);
    return err ? err : sink_write(snapshot->sink, path, strlen(path) + 1);
}

static bool is_before(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec < b->tv_sec || (a->tv_sec == b->tv_sec && a->tv_nsec < b->tv_nsec);
}

/* Whether the folder that PATH is in is one that the old snapshot does not have. */
static bool in_new_folder(const struct snapshot *snapshot, const char *path)
{
    const char *slash = strrchr(path, '/');
    if (!slash)
        return nameset_has(snapshot->new_folders, 0, ".", 1);
    return nameset_has(snapshot->new_folders, 0, path, slash == path ? 1 : (size_t)(slash - path));
}

gpg_error_t snapshot_look(struct snapshot *snapshot, const char *path, const struct stat *status, bool given,
                          bool *ret_take)
{
    const bool folder = S_ISDIR(status->st_mode);
    bool known = true;
    gpg_error_t err = 0;
    *ret_take = true;
    if (folder || given)
        err = note(snapshot, path, status);
    if (err || !snapshot->old)
        return err;
    if (folder || given)
        known = nameset_has(snapshot->old, tag_of(status->st_dev, status->st_ino), path, strlen(path));
    if (folder)
        return known ? 0 : nameset_add(snapshot->new_folders, 0, path, strlen(path), NULL);
    *ret_take = !known || !is_before(&status->st_mtim, &snapshot->since) ||
                !is_before(&status->st_ctim, &snapshot->since) || (!given && in_new_folder(snapshot, path));
    return 0;
}
