/* SPDX-License-Identifier: GPL-3.0-or-later */
/* disk ▸ walk ▸ one member at a time: its header from tar_header, its content read straight into the block that the
 * sink lends, or else into one of our own that goes to the sink when it is full. */
#include "tar_write.h"

#include "attributes.h"
#include "hardlinks.h"
#include "owners.h"
#include "tar_header.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <unistd.h>

/* What is gathered before a sink that lends no room is called. Larger ones measured no faster. */
#define OUT_BYTES (256 * 1024)
/* More pieces of data than this are not kept apart: the last takes all that follows. 16 bytes each in memory. */
#define EXTENTS_MAX (256 * 1024)

struct extent {
    uint64_t at, n;
};

struct writer {
    const struct tar_create_params *params;
    struct sink *sink;
    struct walk *walk;
    struct owners *owners;
    struct attributes *attributes;
    struct hardlinks *links; /* NULL with portable */
    struct tar_create_result *result;
    struct tar_buffer header, records, target;
    uint8_t *own;  /* OUT_BYTES, for a sink that lends no room; NULL until then */
    uint8_t *room; /* where bytes are gathered: what the sink lent, or OWN */
    size_t used, size;
    bool asks; /* whether files are cached is asked, as others may be read ahead */
    bool deaf; /* the file system DEV cannot say */
    dev_t dev;
};

static void flaw(struct writer *writer, const struct walk_entry *entry, enum notice_kind kind, gpg_error_t code,
                 const char *detail)
{
    writer->result->flawed++;
    notice(writer->params->walk.notices, kind, entry->path, code, detail);
}

/* Hands over what was gathered. */
static gpg_error_t flush(struct writer *writer)
{
    const size_t n = writer->used;
    writer->used = writer->size = 0;
    return writer->room == writer->own ? sink_write(writer->sink, writer->room, n) : sink_filled(writer->sink, n);
}

/* Makes room for at least one byte at room + used. */
static gpg_error_t make_room(struct writer *writer)
{
    if (writer->used < writer->size)
        return 0;
    void *room;
    size_t n;
    gpg_error_t err = flush(writer);
    if (!err)
        err = sink_room(writer->sink, &room, &n);
    if (err)
        return err;
    if (!n) {
        if (!writer->own && !(writer->own = malloc(OUT_BYTES)))
            return gpg_error(GPG_ERR_ENOMEM);
        room = writer->own;
        n = OUT_BYTES;
    }
    writer->room = room;
    writer->size = n;
    return 0;
}

/* Writes N bytes, zeros where BYTES is NULL. */
static gpg_error_t put(struct writer *writer, const void *bytes, uint64_t n)
{
    while (n) {
        gpg_error_t err = make_room(writer);
        if (err)
            return err;
        size_t left = writer->size - writer->used, part = n < left ? (size_t)n : left;
        if (bytes) {
            memcpy(writer->room + writer->used, bytes, part);
            bytes = (const char *)bytes + part;
        } else {
            memset(writer->room + writer->used, 0, part);
        }
        writer->used += part;
        n -= part;
    }
    return 0;
}

/* Describes the entry as far as its status goes. */
static struct tar_member describe(struct writer *writer, const struct walk_entry *entry, const struct stat *status,
                                  char type)
{
    bool names = !writer->params->numeric_owner;
    return (struct tar_member){
        .name = entry->member,
        .type = type,
        .mode = status->st_mode & 07777,
        .uid = status->st_uid,
        .gid = status->st_gid,
        .uname = names ? owners_user(writer->owners, status->st_uid) : NULL,
        .gname = names ? owners_group(writer->owners, status->st_gid) : NULL,
        .mtime = status->st_mtim,
    };
}

/* Reads the entry's attributes into the writer's records. */
static gpg_error_t read_attributes(struct writer *writer, const struct walk_entry *entry, int fd)
{
    const struct attributes_file file = {
        .fd = fd,
        .folder_fd = entry->folder_fd,
        .leaf = entry->leaf,
        .follow = entry->follow,
        .dev = entry->stat.st_dev,
    };
    const char *what;
    gpg_error_t code;
    gpg_error_t err = attributes_read(writer->attributes, &file, &writer->records, &what, &code);
    if (!err && what)
        flaw(writer, entry, NOTICE_METADATA, code, what);
    return err;
}

static gpg_error_t put_header(struct writer *writer, const struct walk_entry *entry, const struct tar_member *member)
{
    writer->header.n = 0;
    gpg_error_t err = tar_header_add(&writer->header, member, &writer->records);
    if (gpg_err_code(err) == GPG_ERR_TOO_LARGE && writer->records.n) {
        flaw(writer, entry, NOTICE_METADATA, err, "extended attributes");
        err = tar_header_add(&writer->header, member, NULL);
    }
    if (!err)
        err = put(writer, writer->header.bytes, writer->header.n);
    if (err)
        return err;
    writer->result->members++;
    if (writer->params->progress)
        atomic_store_explicit(&writer->params->progress->files, writer->result->members, memory_order_relaxed);
    notice(writer->params->walk.notices, NOTICE_ADDED, entry->member, 0, NULL);
    return 0;
}

static void count_bytes(struct writer *writer, uint64_t n)
{
    writer->result->bytes += n;
    if (writer->params->progress)
        atomic_store_explicit(&writer->params->progress->bytes, writer->result->bytes, memory_order_relaxed);
}

/* Reads at most WANT bytes at offset AT. -1 with errno. */
static ssize_t read_at(int fd, void *to, size_t want, uint64_t at)
{
    ssize_t got;
    do
        got = pread(fd, to, want, (off_t)at);
    while (got < 0 && errno == EINTR);
    return got;
}

/* As read_at, for the N bytes that are left of the file, and perhaps one more: tells the walk when they have to be
 * waited for. */
static ssize_t read_rest(struct writer *writer, const struct walk_entry *entry, int fd, void *to, size_t want, size_t n,
                         uint64_t at)
{
    const bool deaf = writer->deaf && writer->dev == entry->stat.st_dev;
    if (writer->asks && !deaf) {
        const struct iovec part = {.iov_base = to, .iov_len = want};
        ssize_t got = preadv2(fd, &part, 1, (off_t)at, RWF_NOWAIT);
        const bool unknown = got < 0 && (errno == EOPNOTSUPP || errno == ENOSYS || errno == EINVAL);
        if (got >= (ssize_t)n || (got < 0 && !unknown && errno != EAGAIN && errno != EINTR))
            return got;
        if (unknown) {
            writer->deaf = true;
            writer->dev = entry->stat.st_dev;
        } else {
            walk_cold(writer->walk);
        }
    }
    return read_at(fd, to, want, at);
}

/* Whether the file, all of which has been read, ends at END. One of 0 bytes may have more all the same: those of procfs
 * say so of themselves. */
static void check_end(struct writer *writer, const struct walk_entry *entry, int fd, uint64_t end)
{
    char more;
    ssize_t got = read_at(fd, &more, 1, end);
    if (got)
        flaw(writer, entry, got > 0 ? NOTICE_GREW : NOTICE_READ_ERROR, got > 0 ? 0 : gpg_error_from_errno(errno), NULL);
}

/* Writes N bytes of FD from AT on. LAST: the file should end there. *SOUND is cleared when a notice was given: what
 * could not be read is zeros. */
static gpg_error_t put_content(struct writer *writer, const struct walk_entry *entry, int fd, struct extent part,
                               bool last, bool *sound)
{
    bool checked = !last;
    while (part.n) {
        gpg_error_t err = make_room(writer);
        if (err)
            return err;
        size_t room = writer->size - writer->used;
        /* One byte more than there should be tells, without another call, that the file has not grown. */
        bool ends = part.n < room;
        uint8_t *to = writer->room + writer->used;
        ssize_t got = ends ? read_rest(writer, entry, fd, to, (size_t)part.n + last, (size_t)part.n, part.at)
                           : read_at(fd, to, room, part.at);
        if (got <= 0) {
            if (*sound)
                flaw(writer, entry, got ? NOTICE_READ_ERROR : NOTICE_SHRANK, got ? gpg_error_from_errno(errno) : 0,
                     NULL);
            *sound = false;
            count_bytes(writer, part.n);
            return put(writer, NULL, part.n);
        }
        if ((uint64_t)got > part.n) {
            if (*sound)
                flaw(writer, entry, NOTICE_GREW, 0, NULL);
            *sound = false;
            got = (ssize_t)part.n;
        }
        checked = checked || ends;
        writer->used += (size_t)got;
        part.at += (uint64_t)got;
        part.n -= (uint64_t)got;
        count_bytes(writer, (uint64_t)got);
    }
    if (!checked && *sound)
        check_end(writer, entry, fd, part.at);
    return 0;
}

/* Finds the pieces of data of a file with holes. *RET_N = 0 and *RET_EXTENTS = NULL: it has none, or the file system
 * does not say. */
static gpg_error_t find_extents(int fd, uint64_t size, struct extent **ret_extents, size_t *ret_n)
{
    struct extent *extents = NULL;
    size_t n = 0, capacity = 0;
    uint64_t end = 0;
    *ret_extents = NULL;
    *ret_n = 0;
    while (end < size) {
        off_t start = lseek(fd, (off_t)end, SEEK_DATA);
        if (start < 0 && errno != ENXIO) {
            free(extents);
            return 0;
        }
        if (start < 0 || (uint64_t)start >= size)
            break;
        off_t stop = n + 1 == EXTENTS_MAX ? -1 : lseek(fd, start, SEEK_HOLE);
        end = stop < 0 || (uint64_t)stop > size ? size : (uint64_t)stop;
        if (n == capacity) {
            capacity = capacity ? 2 * capacity : 16;
            struct extent *grown = reallocarray(extents, capacity + 1, sizeof *grown);
            if (!grown) {
                free(extents);
                return gpg_error(GPG_ERR_ENOMEM);
            }
            extents = grown;
        }
        extents[n++] = (struct extent){.at = (uint64_t)start, .n = end - (uint64_t)start};
    }
    if (n == 1 && extents[0].n == size) {
        free(extents);
        return 0;
    }
    if (!extents && !(extents = malloc(sizeof *extents)))
        return gpg_error(GPG_ERR_ENOMEM);
    /* An empty piece at the end says how long the file is to readers that look only at the map. */
    if (!n || extents[n - 1].at + extents[n - 1].n < size)
        extents[n++] = (struct extent){.at = size, .n = 0};
    *ret_extents = extents;
    *ret_n = n;
    return 0;
}

/* The map of a GNU 1.0 sparse member (GNU tar manual, "Storing Sparse Files"): decimal numbers a line, padded to a
 * block. */
static gpg_error_t make_map(const struct extent *extents, size_t n, struct tar_buffer *map)
{
    char line[48];
    int length = snprintf(line, sizeof line, "%zu\n", n);
    gpg_error_t err = tar_buffer_add(map, line, (size_t)length);
    for (size_t i = 0; !err && i < n; i++) {
        length = snprintf(line, sizeof line, "%" PRIu64 "\n%" PRIu64 "\n", extents[i].at, extents[i].n);
        err = tar_buffer_add(map, line, (size_t)length);
    }
    static const char zeros[TAR_BLOCK];
    return err ? err : tar_buffer_add(map, zeros, tar_padding(map->n));
}

static gpg_error_t put_sparse(struct writer *writer, const struct walk_entry *entry, int fd, struct tar_member *member,
                              const struct extent *extents, size_t n)
{
    struct tar_buffer map = {0};
    gpg_error_t err = make_map(extents, n, &map);
    member->sparse = true;
    member->real_size = member->size;
    member->size = map.n;
    for (size_t i = 0; i < n; i++)
        member->size += extents[i].n;
    if (!err)
        err = put_header(writer, entry, member);
    if (!err)
        err = put(writer, map.bytes, map.n);
    bool sound = true;
    uint64_t end = 0;
    for (size_t i = 0; !err && i < n; i++) {
        count_bytes(writer, extents[i].at - end);
        end = extents[i].at + extents[i].n;
        err = put_content(writer, entry, fd, extents[i], end == member->real_size, &sound);
    }
    tar_buffer_free(&map);
    return err ? err : put(writer, NULL, tar_padding(member->size));
}

/* The regular file of the entry, opened unless the walk has done so, and then seen to be the one that was listed. -1:
 * reported. */
static int open_file(struct writer *writer, const struct walk_entry *entry, struct stat *ret_status)
{
    if (entry->fd >= 0) {
        *ret_status = entry->stat;
        return entry->fd;
    }
    int flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | (entry->follow ? 0 : O_NOFOLLOW);
    int fd = openat(entry->folder_fd, entry->leaf, flags);
    if (fd < 0) {
        enum notice_kind kind = errno == ENOENT  ? NOTICE_VANISHED
                                : errno == ELOOP ? NOTICE_REPLACED
                                                 : NOTICE_UNREADABLE;
        flaw(writer, entry, kind, gpg_error_from_errno(errno), NULL);
        return -1;
    }
    if (fstat(fd, ret_status) < 0 || ret_status->st_dev != entry->stat.st_dev ||
        ret_status->st_ino != entry->stat.st_ino || !S_ISREG(ret_status->st_mode)) {
        close(fd);
        flaw(writer, entry, NOTICE_REPLACED, 0, NULL);
        return -1;
    }
    return fd;
}

static gpg_error_t add_file(struct writer *writer, const struct walk_entry *entry)
{
    struct stat status;
    struct extent *extents = NULL;
    size_t n_extents = 0;
    int fd = open_file(writer, entry, &status);
    if (fd < 0)
        return 0;
    struct tar_member member = describe(writer, entry, &status, '0');
    member.size = (uint64_t)status.st_size;
    gpg_error_t err = read_attributes(writer, entry, fd);
    bool holes = !writer->params->portable && status.st_blocks < status.st_size / 512;
    if (!err && holes)
        err = find_extents(fd, member.size, &extents, &n_extents);
    if (err)
        goto out;
    if (n_extents) {
        err = put_sparse(writer, entry, fd, &member, extents, n_extents);
    } else {
        bool sound = true;
        err = put_header(writer, entry, &member);
        if (!err)
            err = put_content(writer, entry, fd, (struct extent){.at = 0, .n = member.size}, true, &sound);
        if (!err)
            err = put(writer, NULL, tar_padding(member.size));
    }
    if (!err && writer->links)
        err = hardlinks_add(writer->links, &status, entry->member);
out:
    free(extents);
    if (fd != entry->fd)
        close(fd);
    return err;
}

/* Adds a member that is a header and nothing else. */
static gpg_error_t add_bare(struct writer *writer, const struct walk_entry *entry, const struct tar_member *member)
{
    gpg_error_t err = read_attributes(writer, entry, entry->fd);
    if (!err)
        err = put_header(writer, entry, member);
    if (!err && member->type != '5' && writer->links)
        err = hardlinks_add(writer->links, &entry->stat, entry->member);
    return err;
}

static gpg_error_t add_symlink(struct writer *writer, const struct walk_entry *entry)
{
    struct tar_buffer *target = &writer->target;
    size_t room = (size_t)entry->stat.st_size + 2;
    ssize_t n;
    for (;; room *= 2) {
        if (room > target->capacity) {
            uint8_t *grown = realloc(target->bytes, room);
            if (!grown)
                return gpg_error_from_syserror();
            target->bytes = grown;
            target->capacity = room;
        }
        n = readlinkat(entry->folder_fd, entry->leaf, (char *)target->bytes, target->capacity);
        if (n < 0) {
            enum notice_kind kind = errno == ENOENT   ? NOTICE_VANISHED
                                    : errno == EINVAL ? NOTICE_REPLACED
                                                      : NOTICE_UNREADABLE;
            flaw(writer, entry, kind, gpg_error_from_errno(errno), NULL);
            return 0;
        }
        if ((size_t)n < target->capacity)
            break;
        room = target->capacity;
    }
    target->bytes[n] = 0;
    struct tar_member member = describe(writer, entry, &entry->stat, '2');
    member.link = (const char *)target->bytes;
    return add_bare(writer, entry, &member);
}

static gpg_error_t add_hardlink(struct writer *writer, const struct walk_entry *entry, const char *first)
{
    struct tar_member member = describe(writer, entry, &entry->stat, '1');
    member.link = first;
    return put_header(writer, entry, &member);
}

static gpg_error_t add_device(struct writer *writer, const struct walk_entry *entry)
{
    mode_t mode = entry->stat.st_mode;
    struct tar_member member = describe(writer, entry, &entry->stat, S_ISFIFO(mode) ? '6' : S_ISCHR(mode) ? '3' : '4');
    if (!S_ISFIFO(mode)) {
        member.dev_major = major(entry->stat.st_rdev);
        member.dev_minor = minor(entry->stat.st_rdev);
    }
    return add_bare(writer, entry, &member);
}

static gpg_error_t add_entry(struct writer *writer, const struct walk_entry *entry)
{
    mode_t mode = entry->stat.st_mode;
    writer->records.n = 0;
    if (S_ISDIR(mode)) {
        struct tar_member member = describe(writer, entry, &entry->stat, '5');
        return add_bare(writer, entry, &member);
    }
    if (writer->links && entry->stat.st_nlink > 1) {
        const char *first = hardlinks_find(writer->links, &entry->stat);
        if (first)
            return add_hardlink(writer, entry, first);
    }
    if (S_ISREG(mode))
        return add_file(writer, entry);
    if (S_ISLNK(mode))
        return add_symlink(writer, entry);
    return add_device(writer, entry);
}

static void writer_clear(struct writer *writer)
{
    walk_free(writer->walk);
    attributes_free(writer->attributes);
    owners_free(writer->owners);
    hardlinks_free(writer->links);
    tar_buffer_free(&writer->header);
    tar_buffer_free(&writer->records);
    tar_buffer_free(&writer->target);
    free(writer->own);
}

static gpg_error_t writer_init(struct writer *writer, const struct tar_create_params *params, bool open_files)
{
    writer->params = params;
    struct walk_params walk = params->walk;
    walk.open_files = open_files;
    writer->asks = open_files && walk.run;
    writer->owners = owners_new();
    const struct attributes_params attributes = {
        .no_xattrs = params->no_xattrs,
        .no_acls = params->no_acls,
        .owners = params->numeric_owner ? NULL : writer->owners,
    };
    writer->attributes = attributes_new(&attributes);
    writer->links = params->portable ? NULL : hardlinks_new();
    if (!writer->owners || !writer->attributes || (!writer->links && !params->portable))
        return gpg_error(GPG_ERR_ENOMEM);
    return walk_new(&walk, &writer->walk);
}

/* Walks, and hands each entry to ADD. */
static gpg_error_t for_each(struct writer *writer, gpg_error_t (*add)(struct writer *, const struct walk_entry *))
{
    const struct walk_entry *entry;
    gpg_error_t err;
    while (!(err = walk_next(writer->walk, &entry)) && entry) {
        err = add(writer, entry);
        if (!err && writer->params->run)
            err = run_cancelled(writer->params->run);
        if (err)
            break;
    }
    const struct walk_counts *counts = walk_counts(writer->walk);
    writer->result->named = counts->named;
    writer->result->skipped += counts->skipped;
    writer->result->flawed += counts->flawed;
    return err;
}

gpg_error_t tar_create(const struct tar_create_params *params, struct sink *borrows_sink, struct tar_create_result *ret)
{
    *ret = (struct tar_create_result){0};
    struct writer writer = {.sink = borrows_sink, .result = ret};
    gpg_error_t err = writer_init(&writer, params, true);
    if (!err)
        err = for_each(&writer, add_entry);
    if (!err)
        err = put(&writer, NULL, 2 * TAR_BLOCK);
    if (!err)
        err = flush(&writer);
    if (gpg_err_code(err) == GPG_ERR_ENOMEM)
        err = fail(params->walk.failure, err, "out of memory while archiving");
    writer_clear(&writer);
    return err;
}

static gpg_error_t count_entry(struct writer *writer, const struct walk_entry *entry)
{
    writer->result->members++;
    if (!S_ISREG(entry->stat.st_mode))
        return 0;
    if (writer->links && entry->stat.st_nlink > 1) {
        if (hardlinks_find(writer->links, &entry->stat))
            return 0;
        gpg_error_t err = hardlinks_add(writer->links, &entry->stat, entry->member);
        if (err)
            return err;
    }
    writer->result->bytes += (uint64_t)entry->stat.st_size;
    return 0;
}

gpg_error_t tar_create_scan(const struct tar_create_params *params, struct tar_create_result *ret)
{
    struct tar_create_result result = {0};
    struct tar_create_params quiet = *params;
    quiet.walk.notices = NULL;
    struct writer writer = {.result = &result};
    gpg_error_t err = writer_init(&writer, &quiet, false);
    if (!err)
        err = for_each(&writer, count_entry);
    if (!err)
        *ret = result;
    writer_clear(&writer);
    return err;
}
