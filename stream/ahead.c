/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ahead.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Two and more wait for the disk at once; from four on little is won (see ahead.h). */
#define THREADS 4
/* Of a file: the rest of a larger one is read ahead by the kernel, once its reader has begun. */
#define BYTES ((off_t)256 * 1024)
/* Folders that hints wait in: each takes a descriptor, and they are not ours alone. */
#define BASES 8
/* Of a folder: who comes to it hints at all of its files. */
#define FILES_OF_FOLDER 16

/* A folder that hints are relative to. */
struct base {
    int fd;
    unsigned uses; /* hints, and being the current one; lock */
};

struct hint {
    struct base *base;
    bool is_folder;
    char name[NAME_MAX + 1];
};

struct ahead {
    struct run *run;
    struct run_thread *threads[THREADS];
    struct base *current; /* the caller's */
    pthread_mutex_t lock; /* for what follows */
    pthread_cond_t work;
    uint64_t given, taken; /* hints; number I is in hints[I % AHEAD_HINTS] */
    unsigned bases;        /* that exist */
    bool stop;
    struct hint hints[AHEAD_HINTS];
};

/* Call with the lock held. */
static void base_release(struct ahead *ahead, struct base *base)
{
    if (!base || --base->uses)
        return;
    ahead->bases--;
    close(base->fd);
    free(base);
}

/* As openat, but neither through links nor into another file system; a kernel without openat2 gets no hints. */
static int open_beside(int folder, const char *name, int flags)
{
    struct open_how how = {
        .flags = (unsigned)(O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | flags),
        .resolve = RESOLVE_NO_XDEV | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
    };
    return (int)syscall(SYS_openat2, folder, name, &how, sizeof how);
}

static void read_file(int folder, const char *name)
{
    int fd = open_beside(folder, name, 0);
    if (fd < 0)
        return;
    (void)posix_fadvise(fd, 0, BYTES, POSIX_FADV_WILLNEED);
    close(fd);
}

static void read_folder(int folder, const char *name)
{
    int fd = open_beside(folder, name, O_DIRECTORY);
    DIR *listing = fd < 0 ? NULL : fdopendir(fd);
    if (!listing) {
        if (fd >= 0)
            close(fd);
        return;
    }
    unsigned files = 0;
    for (const struct dirent *entry; files < FILES_OF_FOLDER && (entry = readdir(listing));)
        if (entry->d_type == DT_REG) {
            read_file(fd, entry->d_name);
            files++;
        }
    closedir(listing);
}

static gpg_error_t ahead_main(void *arg)
{
    struct ahead *ahead = arg;
    struct hint hint;
    pthread_mutex_lock(&ahead->lock);
    for (;;) {
        while (!ahead->stop && ahead->taken == ahead->given)
            pthread_cond_wait(&ahead->work, &ahead->lock);
        if (ahead->stop)
            break;
        hint = ahead->hints[ahead->taken++ % AHEAD_HINTS];
        pthread_mutex_unlock(&ahead->lock);
        if (hint.is_folder)
            read_folder(hint.base->fd, hint.name);
        else
            read_file(hint.base->fd, hint.name);
        pthread_mutex_lock(&ahead->lock);
        base_release(ahead, hint.base);
    }
    pthread_mutex_unlock(&ahead->lock);
    return 0;
}

gpg_error_t ahead_new(struct run *run, struct ahead **ret)
{
    struct ahead *ahead = calloc(1, sizeof *ahead);
    if (!ahead)
        return gpg_error_from_syserror();
    ahead->run = run;
    pthread_mutex_init(&ahead->lock, NULL);
    pthread_cond_init(&ahead->work, NULL);
    gpg_error_t error = 0;
    for (size_t i = 0; i < THREADS && !error; i++)
        error = run_start(run, "ahead", ahead_main, ahead, &ahead->threads[i]);
    if (error)
        ahead_free(ahead);
    else
        *ret = ahead;
    return error;
}

void ahead_free(struct ahead *ahead)
{
    if (!ahead)
        return;
    pthread_mutex_lock(&ahead->lock);
    ahead->stop = true;
    pthread_mutex_unlock(&ahead->lock);
    pthread_cond_broadcast(&ahead->work);
    for (size_t i = 0; i < THREADS; i++)
        (void)run_join(ahead->run, ahead->threads[i]);
    while (ahead->taken < ahead->given)
        base_release(ahead, ahead->hints[ahead->taken++ % AHEAD_HINTS].base);
    base_release(ahead, ahead->current);
    pthread_cond_destroy(&ahead->work);
    pthread_mutex_destroy(&ahead->lock);
    free(ahead);
}

void ahead_folder(struct ahead *ahead, int fd)
{
    pthread_mutex_lock(&ahead->lock);
    base_release(ahead, ahead->current);
    const bool room = ahead->bases < BASES;
    pthread_mutex_unlock(&ahead->lock);
    ahead->current = NULL;
    struct base *base = room ? malloc(sizeof *base) : NULL;
    const int copy = base ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1;
    if (copy < 0) {
        free(base);
        return;
    }
    *base = (struct base){.fd = copy, .uses = 1};
    ahead->current = base;
    pthread_mutex_lock(&ahead->lock);
    ahead->bases++;
    pthread_mutex_unlock(&ahead->lock);
}

bool ahead_hint(struct ahead *ahead, const char *name, bool is_folder)
{
    const size_t n = strlen(name);
    if (!ahead->current || n > NAME_MAX)
        return true; /* there is nothing to be done for it, now or later */
    pthread_mutex_lock(&ahead->lock);
    const bool room = ahead->given - ahead->taken < AHEAD_HINTS;
    if (room) {
        struct hint *hint = &ahead->hints[ahead->given++ % AHEAD_HINTS];
        hint->base = ahead->current;
        hint->base->uses++;
        hint->is_folder = is_folder;
        memcpy(hint->name, name, n + 1);
    }
    pthread_mutex_unlock(&ahead->lock);
    if (room)
        pthread_cond_signal(&ahead->work);
    return room;
}
