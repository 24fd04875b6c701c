/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "fd.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

/* Bytes that a pipe is to hold. With the 64 KiB that it begins with, the two programs wake one another so often that
 * the pipe costs more than what they do: an archive piped from one gpgtar to another takes 1.8 s a GB with 64 KiB,
 * 1.1 s with 256 KiB, 0.9 s with this and with 1 MiB. */
#define PIPE_SIZE (512 * 1024)

/* What read and write have to know about a descriptor. */
struct descriptor {
    struct run *run;
    int fd;
    bool closes;
    bool regular;
    bool socket;
    bool waits;   /* may block for ever: poll first, so that a cancel ends the wait */
    size_t chunk; /* most bytes that one write may take without blocking after poll */
    char *name;   /* owned */
};

static gpg_error_t descriptor_init(struct descriptor *descriptor, struct run *run, int fd, const char *name,
                                   bool closes)
{
    struct stat status;
    descriptor->run = run;
    descriptor->fd = fd;
    descriptor->closes = closes;
    descriptor->name = strdup(name);
    if (!descriptor->name)
        return gpg_error_from_syserror();
    if (fstat(fd, &status) != 0)
        return fail_errno(run_failure(run), errno, "cannot open '%s'", name);
    descriptor->regular = S_ISREG(status.st_mode);
    descriptor->socket = S_ISSOCK(status.st_mode);
    descriptor->waits = S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode) || S_ISCHR(status.st_mode);
    /* A pipe that polls writable has room for this much (pipe(7)); a terminal is treated alike. */
    bool little = S_ISFIFO(status.st_mode) || (S_ISCHR(status.st_mode) && isatty(fd));
    descriptor->chunk = little ? PIPE_BUF : SSIZE_MAX;
    if (S_ISFIFO(status.st_mode) && fcntl(fd, F_GETPIPE_SZ) < PIPE_SIZE)
        (void)fcntl(fd, F_SETPIPE_SZ, PIPE_SIZE); /* only a help: who has very many pipes may not */
    return 0;
}

static void descriptor_free(struct descriptor *descriptor)
{
    if (descriptor->closes && descriptor->fd >= 0)
        close(descriptor->fd);
    free(descriptor->name);
}

/* Waits where the descriptor may have to. */
static gpg_error_t descriptor_wait(struct descriptor *descriptor, short events)
{
    gpg_error_t error = run_wait(descriptor->run, descriptor->fd, events);
    if (error && gpg_err_code(error) != GPG_ERR_CANCELED)
        fail(run_failure(descriptor->run), error, "cannot wait for '%s'", descriptor->name);
    return error;
}

/* As read(2): 0 only at the end. */
static gpg_error_t descriptor_read(struct descriptor *descriptor, void *to, size_t n, size_t *ret_got)
{
    bool wait = descriptor->waits;
    for (;;) {
        if (run_cancelled(descriptor->run))
            return gpg_error(GPG_ERR_CANCELED);
        gpg_error_t error = wait ? descriptor_wait(descriptor, POLLIN) : 0;
        if (error)
            return error;
        ssize_t got = read(descriptor->fd, to, n < SSIZE_MAX ? n : SSIZE_MAX);
        if (got >= 0) {
            *ret_got = (size_t)got;
            return 0;
        }
        if (errno == EAGAIN || errno == EWOULDBLOCK)
            wait = true;
        else if (errno != EINTR)
            return fail_errno(run_failure(descriptor->run), errno, "cannot read '%s'", descriptor->name);
    }
}

/* One system call's worth of what is left of HEAD and BODY; chunk limits what waits on a descriptor. */
static ssize_t descriptor_put(struct descriptor *descriptor, struct iovec head, struct iovec body)
{
    if (head.iov_len > descriptor->chunk)
        head.iov_len = descriptor->chunk;
    if (body.iov_len > descriptor->chunk - head.iov_len)
        body.iov_len = descriptor->chunk - head.iov_len;
    struct iovec parts[] = {head, body};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    if (descriptor->socket)
        return sendmsg(descriptor->fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (!head.iov_len)
        return write(descriptor->fd, body.iov_base, body.iov_len);
    return writev(descriptor->fd, parts, 2);
}

/* Drops up to N bytes from the front of PART; how many are left of N. */
static size_t part_drop(struct iovec *part, size_t n)
{
    size_t of_part = n < part->iov_len ? n : part->iov_len;
    if (of_part)
        part->iov_base = (uint8_t *)part->iov_base + of_part;
    part->iov_len -= of_part;
    return n - of_part;
}

/* Writes all of HEAD, then all of BODY; either may be empty. */
static gpg_error_t descriptor_write(struct descriptor *descriptor, struct iovec head, struct iovec body)
{
    bool wait = descriptor->waits;
    while (head.iov_len || body.iov_len) {
        if (run_cancelled(descriptor->run))
            return gpg_error(GPG_ERR_CANCELED);
        gpg_error_t error = wait ? descriptor_wait(descriptor, POLLOUT) : 0;
        if (error)
            return error;
        ssize_t written = descriptor_put(descriptor, head, body);
        if (written > 0) {
            part_drop(&body, part_drop(&head, (size_t)written));
        } else if (written < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            wait = true;
        } else if (written == 0 || errno != EINTR) {
            /* A device that takes nothing has no room. */
            int number = written == 0 ? ENOSPC : errno;
            return fail_errno(run_failure(descriptor->run), number, "cannot write '%s'", descriptor->name);
        }
    }
    return 0;
}

/* ---- source ---- */

/* What is read at once behind a seek: a page, for who seeks has perhaps only a few octets to look at. */
#define AFTER_SEEK ((size_t)4096)
/* Less than this is read rather than skipped: four system calls take as long as reading some 10 KiB from the cache, and
 * disks read ahead more than that. */
#define SEEK_MIN ((uint64_t)32 * 1024)

struct fd_source {
    struct source source;
    struct descriptor descriptor;
    uint8_t *block;
    size_t capacity; /* of BLOCK */
    size_t fill;     /* to be read into BLOCK next: little after a seek, then more and more */
    size_t begin;    /* BLOCK[begin … end) was read and not consumed */
    size_t end;
    bool at_end; /* a terminal would go on after its end */
};

static gpg_error_t fd_source_fill(struct fd_source *file, void *to, size_t n, size_t *ret_got)
{
    *ret_got = 0;
    if (file->at_end)
        return 0;
    gpg_error_t error = descriptor_read(&file->descriptor, to, n, ret_got);
    file->at_end = !error && !*ret_got;
    return error;
}

static gpg_error_t fd_source_peek(struct source *source, const void **ret_bytes, size_t *ret_n)
{
    struct fd_source *file = CONTAINER(source, struct fd_source, source);
    if (file->begin == file->end) {
        if (!file->block)
            file->block = malloc(file->capacity); /* only now: source_read needs none */
        if (!file->block)
            return gpg_error_from_syserror();
        file->begin = file->end = 0;
        gpg_error_t error = fd_source_fill(file, file->block, file->fill, &file->end);
        if (error)
            return error;
        file->fill = file->fill < file->capacity / 2 ? 2 * file->fill : file->capacity;
    }
    *ret_bytes = file->block + file->begin;
    *ret_n = file->end - file->begin;
    return 0;
}

static void fd_source_consume(struct source *source, size_t n)
{
    struct fd_source *file = CONTAINER(source, struct fd_source, source);
    assert(n <= file->end - file->begin);
    file->begin += n;
}

static gpg_error_t fd_source_read(struct source *source, void *to, size_t n, size_t *ret_got)
{
    struct fd_source *file = CONTAINER(source, struct fd_source, source);
    size_t there = file->end - file->begin;
    if (!there)
        return fd_source_fill(file, to, n, ret_got);
    *ret_got = there < n ? there : n;
    memcpy(to, file->block + file->begin, *ret_got);
    file->begin += *ret_got;
    return 0;
}

/* Moves the position of a regular file N bytes on, where it has them. */
static gpg_error_t fd_source_seek(struct fd_source *file, uint64_t n)
{
    struct failure *failure = run_failure(file->descriptor.run);
    struct stat status;
    off_t at = lseek(file->descriptor.fd, 0, SEEK_CUR);
    if (at < 0 || fstat(file->descriptor.fd, &status) != 0)
        return fail_errno(failure, errno, "cannot seek in '%s'", file->descriptor.name);
    if (at > status.st_size || n > (uint64_t)(status.st_size - at))
        return fail(failure, gpg_error(GPG_ERR_TRUNCATED), "'%s' ends too early", file->descriptor.name);
    if (lseek(file->descriptor.fd, (off_t)n, SEEK_CUR) < 0)
        return fail_errno(failure, errno, "cannot seek in '%s'", file->descriptor.name);
    file->fill = file->capacity < AFTER_SEEK ? file->capacity : AFTER_SEEK;
    return 0;
}

static gpg_error_t fd_source_skip(struct source *source, uint64_t n)
{
    struct fd_source *file = CONTAINER(source, struct fd_source, source);
    for (;;) {
        size_t there = file->end - file->begin;
        size_t part = there < n ? there : (size_t)n;
        file->begin += part;
        n -= part;
        if (!n)
            return 0;
        if (file->descriptor.regular && n >= SEEK_MIN)
            return fd_source_seek(file, n);
        const void *bytes;
        gpg_error_t error = fd_source_peek(source, &bytes, &there);
        if (error)
            return error;
        if (!there)
            return fail(run_failure(file->descriptor.run), gpg_error(GPG_ERR_TRUNCATED), "'%s' ends too early",
                        file->descriptor.name);
    }
}

static gpg_error_t fd_source_finish(struct source *source)
{
    struct fd_source *file = CONTAINER(source, struct fd_source, source);
    gpg_error_t error = 0;
    const void *bytes;
    size_t n = 1;
    while (!file->descriptor.regular && !error && n) {
        file->begin = file->end;
        error = fd_source_peek(source, &bytes, &n);
    }
    return error;
}

static void fd_source_free(struct source *source)
{
    struct fd_source *file = CONTAINER(source, struct fd_source, source);
    descriptor_free(&file->descriptor);
    free(file->block);
    free(file);
}

static const struct source_ops fd_source_ops = {
    .peek = fd_source_peek,
    .consume = fd_source_consume,
    .read = fd_source_read,
    .skip = fd_source_skip,
    .finish = fd_source_finish,
    .free = fd_source_free,
};

gpg_error_t fd_source_new(struct run *run, int fd, const char *name, bool closes, size_t block, struct source **ret)
{
    struct fd_source *file = calloc(1, sizeof *file);
    if (!file) {
        gpg_error_t error = gpg_error_from_syserror();
        if (closes)
            close(fd);
        return error;
    }
    source_init(&file->source, &fd_source_ops);
    file->capacity = block ? block : 256 * 1024;
    file->fill = file->capacity;
    gpg_error_t error = descriptor_init(&file->descriptor, run, fd, name, closes);
    if (error) {
        fd_source_free(&file->source);
        return error;
    }
    if (file->descriptor.regular)
        (void)posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL); /* only a hint */
    *ret = &file->source;
    return 0;
}

/* ---- sink ---- */

/* Writes of fewer bytes wait for the next one: packets come as a few octets of header and then a block. */
#define HELD_MAX ((size_t)512)

struct fd_sink {
    struct sink sink;
    struct descriptor descriptor;
    bool holds;
    size_t held_n;
    uint8_t held[HELD_MAX];
};

static gpg_error_t fd_sink_write(struct sink *sink, const void *bytes, size_t n)
{
    struct fd_sink *file = CONTAINER(sink, struct fd_sink, sink);
    if (file->holds && n <= HELD_MAX - file->held_n) {
        memcpy(file->held + file->held_n, bytes, n);
        file->held_n += n;
        return 0;
    }
    struct iovec head = {.iov_base = file->held, .iov_len = file->held_n};
    struct iovec body = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = n};
    file->held_n = 0;
    return descriptor_write(&file->descriptor, head, body);
}

static gpg_error_t fd_sink_finish(struct sink *sink)
{
    struct fd_sink *file = CONTAINER(sink, struct fd_sink, sink);
    struct descriptor *descriptor = &file->descriptor;
    gpg_error_t error = descriptor_write(descriptor, (struct iovec){0},
                                         (struct iovec){.iov_base = file->held, .iov_len = file->held_n});
    file->held_n = 0;
    if (error || !descriptor->closes)
        return error;
    int fd = descriptor->fd;
    descriptor->fd = -1;
    /* Linux has closed it also where close says EINTR. */
    if (close(fd) != 0 && errno != EINTR)
        return fail_errno(run_failure(descriptor->run), errno, "cannot write '%s'", descriptor->name);
    return 0;
}

static void fd_sink_free(struct sink *sink)
{
    struct fd_sink *file = CONTAINER(sink, struct fd_sink, sink);
    descriptor_free(&file->descriptor);
    free(file);
}

static const struct sink_ops fd_sink_ops = {
    .write = fd_sink_write,
    .finish = fd_sink_finish,
    .free = fd_sink_free,
};

void fd_sink_hold(struct sink *sink)
{
    struct fd_sink *file = CONTAINER(sink, struct fd_sink, sink);
    file->holds = file->descriptor.regular;
}

/* A pipe is opened a second time where that is possible: only a file description of our own may be made non-blocking
 * (the other one may be shared with a shell), and then large writes need not be cut to PIPE_BUF. */
static void open_pipe_again(struct descriptor *descriptor)
{
    char path[32];
    if (descriptor->chunk != PIPE_BUF || descriptor->socket || isatty(descriptor->fd))
        return;
    snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor->fd);
    int fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
        return;
    if (descriptor->closes)
        close(descriptor->fd);
    descriptor->fd = fd;
    descriptor->closes = true;
    descriptor->waits = false; /* EAGAIN tells when to wait */
    descriptor->chunk = SSIZE_MAX;
}

gpg_error_t fd_sink_new(struct run *run, int fd, const char *name, bool closes, struct sink **ret)
{
    struct fd_sink *file = calloc(1, sizeof *file);
    if (!file) {
        gpg_error_t error = gpg_error_from_syserror();
        if (closes)
            close(fd);
        return error;
    }
    sink_init(&file->sink, &fd_sink_ops);
    gpg_error_t error = descriptor_init(&file->descriptor, run, fd, name, closes);
    if (error) {
        fd_sink_free(&file->sink);
        return error;
    }
    open_pipe_again(&file->descriptor);
    *ret = &file->sink;
    return 0;
}

/* ---- whole files ---- */

gpg_error_t fd_read_full(int fd, void *to, size_t n, size_t *ret_got)
{
    size_t total = 0;
    while (total < n) {
        ssize_t got = read(fd, (uint8_t *)to + total, n - total < SSIZE_MAX ? n - total : SSIZE_MAX);
        if (got == 0)
            break;
        if (got > 0) {
            total += (size_t)got;
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            gpg_error_t error = run_wait(NULL, fd, POLLIN);
            if (error)
                return error;
        } else if (errno != EINTR) {
            return gpg_error_from_syserror();
        }
    }
    *ret_got = total;
    return 0;
}

gpg_error_t fd_write_full(int fd, const void *bytes, size_t n)
{
    const uint8_t *from = bytes;
    while (n) {
        ssize_t written = write(fd, from, n < SSIZE_MAX ? n : SSIZE_MAX);
        if (written > 0) {
            from += written;
            n -= (size_t)written;
        } else if (written == 0) {
            return gpg_error_from_errno(ENOSPC);
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            gpg_error_t error = run_wait(NULL, fd, POLLOUT);
            if (error)
                return error;
        } else if (errno != EINTR) {
            return gpg_error_from_syserror();
        }
    }
    return 0;
}

/* Reads FD to its end, LIMIT bytes and one more at most. */
static gpg_error_t read_to_end(int fd, size_t limit, uint8_t **ret_bytes, size_t *ret_n)
{
    uint8_t *bytes = NULL;
    size_t capacity = 0, n = 0;
    gpg_error_t error = 0;
    while (!error && n == capacity && n <= limit) {
        size_t more = capacity ? capacity : 4096;
        capacity += more <= limit - n ? more : limit - n + 1;
        uint8_t *grown = realloc(bytes, capacity);
        if (!grown) {
            error = gpg_error_from_syserror();
            break;
        }
        bytes = grown;
        size_t got = 0;
        error = fd_read_full(fd, bytes + n, capacity - n, &got);
        n += got;
    }
    if (!error && n > limit)
        error = gpg_error(GPG_ERR_TOO_LARGE);
    if (error) {
        free(bytes);
        return error;
    }
    *ret_bytes = bytes;
    *ret_n = n;
    return 0;
}

gpg_error_t file_read_whole(struct failure *failure, const char *name, size_t limit, uint8_t **ret_bytes, size_t *ret_n)
{
    if (limit >= SIZE_MAX / 2)
        return gpg_error(GPG_ERR_INV_ARG);
    int fd = open(name, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
        return fail_errno(failure, errno, "cannot open '%s'", name);
    gpg_error_t error = read_to_end(fd, limit, ret_bytes, ret_n);
    close(fd);
    if (gpg_err_code(error) == GPG_ERR_TOO_LARGE)
        return fail(failure, error, "'%s' is larger than %zu bytes", name, limit);
    if (error)
        return fail_errno(failure, gpg_err_code_to_errno(gpg_err_code(error)), "cannot read '%s'", name);
    return 0;
}
