/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "walk.h"

#include "names.h"
#include "nameset.h"
#include "staging.h"
#include "stream/ahead.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* As many entries a call of getdents64 as the kernel gives at once for usual names. */
#define LISTING_BYTES (64 * 1024)
/* Names that one walk_cold has read ahead: as what is read ahead is found in the cache, there is a wait for each so
 * many files only. */
#define COLD_NAMES 256
/* With fewer descriptors nothing is read ahead: it takes up to 16, and the walk and the rest of the program 60. */
#define COLD_DESCRIPTORS 128
/* Tag of a name that was given, for the nameset; a folder walked through is tagged with its device + 1. */
#define TAG_GIVEN 0

struct name_item {
    const char *name;      /* a single name, or */
    struct source *source; /* a list of names */
    char separator;
    const char *label;
};

struct walk_names {
    struct name_item *items;
    size_t n, next, capacity;
    char *line; /* the name being gathered from a list; NAMES_MAX + 1 bytes */
};

/* A folder on the path being walked. */
struct frame {
    int fd; /* -1: closed to save descriptors, or lost */
    dev_t dev;
    ino_t ino;
    char *arena;       /* the names, each with its d_type before and a NUL behind */
    uint32_t *offsets; /* of the names in the arena, sorted */
    size_t n, next;
    size_t hinted; /* names before this one are read ahead, or will not be */
    uint64_t number;
    size_t path_n; /* length of the folder's path */
};

struct walk {
    struct walk_params params;
    const struct select_options *options;
    struct walk_counts counts;
    struct nameset *seen; /* NULL where a single name was given */
    struct frame *frames;
    size_t n_frames, frames_capacity;
    char *path; /* of the current entry */
    size_t path_n, path_capacity;
    size_t member_at; /* where in path the member name starts */
    dev_t top_dev;    /* file system of the name given */
    int top_fd;       /* parent of an over-long name given, else -1 */
    bool stripped;    /* the notice was given */
    bool no_openat2;
    bool descend; /* entry is a folder to enter on the next call */
    uint8_t *listing;
    struct ahead *ahead; /* NULL until something was cold */
    unsigned cold;       /* names for which hints are still to be given */
    uint64_t pushed;     /* frames so far; numbers them */
    uint64_t ahead_in;   /* number of the frame that hints are relative to, 0: none */
    struct walk_entry entry;
};

struct walk_names *walk_names_new(void)
{
    return calloc(1, sizeof(struct walk_names));
}

void walk_names_free(struct walk_names *names)
{
    if (!names)
        return;
    for (size_t i = 0; i < names->n; i++)
        source_free(names->items[i].source);
    free(names->items);
    free(names->line);
    free(names);
}

static gpg_error_t add_item(struct walk_names *names, struct name_item item)
{
    if (names->n == names->capacity) {
        size_t capacity = names->capacity ? 2 * names->capacity : 16;
        struct name_item *grown = reallocarray(names->items, capacity, sizeof *grown);
        if (!grown)
            return gpg_error_from_syserror();
        names->items = grown;
        names->capacity = capacity;
    }
    names->items[names->n++] = item;
    return 0;
}

gpg_error_t walk_names_add(struct walk_names *names, const char *name)
{
    return add_item(names, (struct name_item){.name = name});
}

gpg_error_t walk_names_add_list(struct walk_names *names, struct source *takes_list, char separator, const char *label)
{
    gpg_error_t err = add_item(names, (struct name_item){.source = takes_list, .separator = separator, .label = label});
    if (err)
        source_free(takes_list);
    return err;
}

/* The next name of a list, NULL at its end. */
static gpg_error_t next_of_list(struct walk_names *names, const struct name_item *item, struct failure *failure,
                                const char **ret_name)
{
    if (!names->line && !(names->line = malloc(NAMES_MAX + 1)))
        return gpg_error_from_syserror();
    size_t used = 0;
    for (;;) {
        const void *lent;
        size_t n;
        gpg_error_t err = source_peek(item->source, &lent, &n);
        if (err)
            return err;
        if (!n)
            break;
        const char *end = memchr(lent, item->separator, n);
        size_t part = end ? (size_t)(end - (const char *)lent) : n;
        if (part > NAMES_MAX - used)
            return fail(failure, gpg_error(GPG_ERR_LINE_TOO_LONG), "a name in the list '%s' is longer than %d bytes",
                        item->label, NAMES_MAX);
        if (memchr(lent, 0, part))
            return fail(failure, gpg_error(GPG_ERR_INV_NAME),
                        "the list of names '%s' holds a NUL byte: is it separated by NULs (--null)?", item->label);
        memcpy(names->line + used, lent, part);
        used += part;
        source_consume(item->source, part + (end != NULL));
        if (end && used)
            break;
    }
    names->line[used] = 0;
    *ret_name = used ? names->line : NULL;
    return 0;
}

static gpg_error_t next_name(struct walk_names *names, struct failure *failure, const char **ret_name)
{
    *ret_name = NULL;
    while (names->next < names->n && !*ret_name) {
        struct name_item *item = &names->items[names->next];
        if (item->name) {
            *ret_name = item->name;
            names->next++;
            continue;
        }
        gpg_error_t err = next_of_list(names, item, failure, ret_name);
        if (err)
            return err;
        if (!*ret_name)
            names->next++;
    }
    return 0;
}

gpg_error_t walk_new(const struct walk_params *params, struct walk **ret)
{
    struct walk *walk = calloc(1, sizeof *walk);
    if (!walk)
        return gpg_error_from_syserror();
    walk->params = *params;
    walk->options = select_get(params->select);
    walk->top_fd = -1;
    walk->entry.fd = -1;
    walk->listing = malloc(LISTING_BYTES);
    bool several = params->names->n > 1 || (params->names->n == 1 && params->names->items[0].source);
    if (several)
        walk->seen = nameset_new();
    if (!walk->listing || (several && !walk->seen)) {
        gpg_error_t err = gpg_error_from_syserror();
        walk_free(walk);
        return err;
    }
    *ret = walk;
    return 0;
}

static void frame_clear(struct frame *frame)
{
    if (frame->fd >= 0)
        close(frame->fd);
    free(frame->arena);
    free(frame->offsets);
}

/* Forgets the current entry. */
static void leave(struct walk *walk)
{
    if (walk->entry.fd >= 0)
        close(walk->entry.fd);
    walk->entry = (struct walk_entry){.fd = -1};
}

void walk_free(struct walk *walk)
{
    if (!walk)
        return;
    ahead_free(walk->ahead);
    while (walk->n_frames)
        frame_clear(&walk->frames[--walk->n_frames]);
    leave(walk);
    if (walk->top_fd >= 0)
        close(walk->top_fd);
    nameset_free(walk->seen);
    free(walk->frames);
    free(walk->path);
    free(walk->listing);
    free(walk);
}

const struct walk_counts *walk_counts(const struct walk *walk)
{
    return &walk->counts;
}

/* Reports what is wrong with the current path; the walk goes on. */
static void flaw(struct walk *walk, enum notice_kind kind, gpg_error_t code)
{
    walk->counts.flawed++;
    notice(walk->params.notices, kind, walk->path, code, NULL);
}

static void flaw_errno(struct walk *walk, int number)
{
    flaw(walk, number == ENOENT ? NOTICE_VANISHED : NOTICE_UNREADABLE, gpg_error_from_errno(number));
}

/* Makes the path its first KEEP bytes and NAME behind them. */
static gpg_error_t set_path(struct walk *walk, size_t keep, const char *name)
{
    size_t n = strlen(name);
    if (keep + n + 2 > walk->path_capacity) {
        size_t capacity = 2 * (keep + n + 2);
        char *grown = realloc(walk->path, capacity);
        if (!grown)
            return gpg_error_from_syserror();
        walk->path = grown;
        walk->path_capacity = capacity;
    }
    if (keep && *name && walk->path[keep - 1] != '/')
        walk->path[keep++] = '/';
    memcpy(walk->path + keep, name, n + 1);
    walk->path_n = keep + n;
    return 0;
}

/* Opens, component by component so that no length is too much, the folder whose path is the first N bytes of PATH.
 * Links are followed: the caller checks what it got, or the user named it so. -1 with errno. */
static int open_by_path(int base_fd, const char *path, size_t n)
{
    int fd = openat(base_fd, n && path[0] == '/' ? "/" : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    for (size_t at = 0; fd >= 0 && at < n;) {
        char part[NAMES_COMPONENT_MAX + 1];
        size_t n_part = 0;
        for (; at < n && path[at] != '/'; at++)
            if (n_part < sizeof part)
                part[n_part++] = path[at];
        at++;
        if (!n_part)
            continue;
        int below = -1, number = ENAMETOOLONG;
        if (n_part < sizeof part) {
            part[n_part] = 0;
            below = openat(fd, part, O_PATH | O_DIRECTORY | O_CLOEXEC);
            number = errno;
        }
        close(fd);
        fd = below;
        errno = number;
    }
    return fd;
}

static bool is_frame(const struct frame *frame, int fd)
{
    struct stat status;
    return fd >= 0 && fstat(fd, &status) == 0 && status.st_dev == frame->dev && status.st_ino == frame->ino;
}

/* Makes sure that the top frame has a descriptor after the one below it (BELOW_FD, or -1) was left. A folder that
 * cannot be found again is reported, and the rest of it passed over. */
static void reopen(struct walk *walk, int below_fd)
{
    struct frame *frame = &walk->frames[walk->n_frames - 1];
    if (frame->fd >= 0)
        return;
    int fd = below_fd >= 0 ? openat(below_fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
    if (!is_frame(frame, fd)) {
        if (fd >= 0)
            close(fd);
        fd = open_by_path(walk->params.base_fd, walk->path, frame->path_n);
    }
    if (is_frame(frame, fd)) {
        frame->fd = fd;
        return;
    }
    if (fd >= 0)
        close(fd);
    if (frame->next == frame->n)
        return;
    walk->path[frame->path_n] = 0;
    flaw(walk, NOTICE_VANISHED, gpg_error(GPG_ERR_ENOENT));
    frame->next = frame->n;
}

static void pop(struct walk *walk)
{
    struct frame done = walk->frames[--walk->n_frames];
    if (walk->n_frames)
        reopen(walk, done.fd);
    frame_clear(&done);
}

/* Appends NAME to the frame's names. */
static gpg_error_t add_name(struct frame *frame, const char *name, unsigned char type, size_t *used, size_t capacity[2])
{
    size_t n = strlen(name) + 1;
    if (*used + 1 + n > capacity[0]) {
        size_t wanted = capacity[0] + capacity[0] / 2 + 4096;
        if (wanted > UINT32_MAX)
            return gpg_error(GPG_ERR_TOO_LARGE);
        char *grown = realloc(frame->arena, wanted);
        if (!grown)
            return gpg_error_from_syserror();
        frame->arena = grown;
        capacity[0] = wanted;
    }
    if (frame->n == capacity[1]) {
        size_t wanted = capacity[1] + capacity[1] / 2 + 64;
        uint32_t *grown = reallocarray(frame->offsets, wanted, sizeof *grown);
        if (!grown)
            return gpg_error_from_syserror();
        frame->offsets = grown;
        capacity[1] = wanted;
    }
    frame->arena[(*used)++] = (char)type;
    memcpy(frame->arena + *used, name, n);
    frame->offsets[frame->n++] = (uint32_t)*used;
    *used += n;
    return 0;
}

static int by_bytes(const void *a, const void *b, void *arena)
{
    return strcmp((const char *)arena + *(const uint32_t *)a, (const char *)arena + *(const uint32_t *)b);
}

/* Reads and sorts the names in the frame's folder. A folder that cannot be read is reported and has none. */
static gpg_error_t list(struct walk *walk, struct frame *frame)
{
    size_t used = 0, capacity[2] = {0, 0};
    bool cache = walk->options->exclude_caches && select_is_cache(frame->fd);
    if (cache) {
        notice(walk->params.notices, NOTICE_EXCLUDED_CACHE, walk->path, 0, NULL);
        return add_name(frame, "CACHEDIR.TAG", DT_UNKNOWN, &used, capacity);
    }
    ssize_t got;
    while ((got = getdents64(frame->fd, walk->listing, LISTING_BYTES)) > 0) {
        for (size_t at = 0; at < (size_t)got;) {
            const struct dirent64 *found = (const void *)(walk->listing + at);
            at += found->d_reclen;
            if (!strcmp(found->d_name, ".") || !strcmp(found->d_name, ".."))
                continue;
            gpg_error_t err = add_name(frame, found->d_name, found->d_type, &used, capacity);
            if (err)
                return err;
        }
    }
    if (got < 0)
        flaw(walk, NOTICE_UNREADABLE, gpg_error_from_errno(errno));
    if (frame->n > 1)
        qsort_r(frame->offsets, frame->n, sizeof *frame->offsets, by_bytes, frame->arena);
    return 0;
}

/* Enters the folder of the current entry, taking its descriptor. */
static gpg_error_t push(struct walk *walk)
{
    if (walk->n_frames == walk->frames_capacity) {
        size_t capacity = walk->frames_capacity ? 2 * walk->frames_capacity : 16;
        struct frame *grown = reallocarray(walk->frames, capacity, sizeof *grown);
        if (!grown)
            return gpg_error_from_syserror();
        walk->frames = grown;
        walk->frames_capacity = capacity;
    }
    if (walk->n_frames >= WALK_OPEN_MAX) {
        struct frame *far = &walk->frames[walk->n_frames - WALK_OPEN_MAX];
        if (far->fd >= 0)
            close(far->fd);
        far->fd = -1;
    }
    bool bare = !walk->n_frames && !strcmp(walk->path, ".");
    walk->frames[walk->n_frames] = (struct frame){.fd = walk->entry.fd,
                                                  .dev = walk->entry.stat.st_dev,
                                                  .ino = walk->entry.stat.st_ino,
                                                  .number = ++walk->pushed,
                                                  .path_n = bare ? 0 : walk->path_n};
    walk->descend = false;
    walk->entry.fd = -1;
    return list(walk, &walk->frames[walk->n_frames++]);
}

static bool is_loop(const struct walk *walk, const struct stat *status)
{
    for (size_t i = 0; i < walk->n_frames; i++)
        if (walk->frames[i].dev == status->st_dev && walk->frames[i].ino == status->st_ino)
            return true;
    return false;
}

/* Opens the folder of the entry for its names; it is stored without them when it cannot be read. *RET_TAKE = false:
 * nothing is stored. */
static gpg_error_t open_folder(struct walk *walk, bool *ret_take)
{
    struct walk_entry *entry = &walk->entry;
    *ret_take = true;
    if (walk->options->dereference && is_loop(walk, &entry->stat)) {
        flaw(walk, NOTICE_UNREADABLE, gpg_error(GPG_ERR_ELOOP));
        *ret_take = false;
        return 0;
    }
    if (walk->options->no_recursion ||
        (walk->options->one_file_system && walk->n_frames && entry->stat.st_dev != walk->top_dev))
        return 0;
    int flags = O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC | (entry->follow ? 0 : O_NOFOLLOW);
    int fd = openat(entry->folder_fd, entry->leaf, flags);
    if (fd < 0) {
        bool replaced = errno == ENOTDIR || errno == ELOOP;
        *ret_take = !replaced && errno != ENOENT;
        if (replaced)
            flaw(walk, NOTICE_REPLACED, 0);
        else
            flaw_errno(walk, errno);
        return 0;
    }
    struct stat status;
    if (fstat(fd, &status) < 0 || status.st_dev != entry->stat.st_dev || status.st_ino != entry->stat.st_ino) {
        close(fd);
        flaw(walk, NOTICE_REPLACED, 0);
        *ret_take = false;
        return 0;
    }
    entry->stat = status;
    entry->fd = fd;
    walk->descend = true;
    if (!walk->seen)
        return 0;
    return nameset_add(walk->seen, (uint64_t)status.st_dev + 1, entry->member, strlen(entry->member), NULL);
}

/* Whether the current entry was stored already: given before, or inside a folder that was given before and walked. */
static gpg_error_t seen_before(struct walk *walk, bool *ret_seen)
{
    const char *member = walk->entry.member;
    uint64_t tag = (uint64_t)walk->entry.stat.st_dev + 1;
    *ret_seen = nameset_has(walk->seen, TAG_GIVEN, member, strlen(member));
    if (walk->n_frames || *ret_seen)
        return 0;
    for (const char *slash = member; !*ret_seen && (slash = strchr(slash, '/')); slash++)
        *ret_seen = nameset_has(walk->seen, tag, member, (size_t)(slash - member));
    *ret_seen = *ret_seen || nameset_has(walk->seen, tag, ".", 1);
    if (*ret_seen)
        return 0;
    return nameset_add(walk->seen, TAG_GIVEN, member, strlen(member), NULL);
}

/* Opens the entry, of which its folder says that it is a regular file, in place of asking for its status first: a call
 * less for each file. The folder knows nothing of what is mounted over the file, a device or a FIFO perhaps, so that
 * mounts are not crossed. False: the status says more. */
static bool open_regular(struct walk *walk)
{
    struct walk_entry *entry = &walk->entry;
    const struct walk_params *params = &walk->params;
    /* Of what is chosen by time, most is left out. */
    if (!params->open_files || params->snapshot || walk->options->newer || walk->no_openat2)
        return false;
    const struct open_how how = {.flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW | O_CLOEXEC,
                                 .resolve = RESOLVE_NO_XDEV};
    entry->fd = (int)syscall(SYS_openat2, entry->folder_fd, entry->leaf, &how, sizeof how);
    walk->no_openat2 = entry->fd < 0 && (errno == ENOSYS || errno == EPERM); /* EPERM: a container's filter */
    if (entry->fd >= 0 && fstat(entry->fd, &entry->stat) == 0 && S_ISREG(entry->stat.st_mode))
        return true;
    if (entry->fd >= 0)
        close(entry->fd);
    entry->fd = -1;
    return false;
}

static bool read_status(struct walk *walk, unsigned char type)
{
    struct walk_entry *entry = &walk->entry;
    if (type == DT_REG && open_regular(walk))
        return true;
    if (fstatat(entry->folder_fd, entry->leaf, &entry->stat, AT_SYMLINK_NOFOLLOW) < 0) {
        flaw_errno(walk, errno);
        return false;
    }
    if (walk->options->dereference && S_ISLNK(entry->stat.st_mode)) {
        struct stat status;
        entry->follow = fstatat(entry->folder_fd, entry->leaf, &status, 0) == 0;
        if (entry->follow)
            entry->stat = status;
    }
    return true;
}

/* Whether the current entry is none that belongs into an archive, and why. */
static bool is_no_data(const struct walk *walk, enum notice_kind *ret_why)
{
    const struct walk_params *params = &walk->params;
    const struct stat *status = &walk->entry.stat;
    if (params->is_output && params->is_output(params->output_context, status->st_dev, status->st_ino))
        *ret_why = NOTICE_SKIPPED_SELF;
    else if (S_ISSOCK(status->st_mode))
        *ret_why = NOTICE_SKIPPED_SOCKET;
    else if (walk->n_frames && (S_ISDIR(status->st_mode) || S_ISREG(status->st_mode)) &&
             staging_is_name(walk->entry.leaf))
        *ret_why = NOTICE_SKIPPED_OURS; /* whoever names it, wants it */
    else
        return false;
    return true;
}

/* Whether the current entry has changed since the snapshot. */
static gpg_error_t look_back(struct walk *walk, bool *ret_take)
{
    gpg_error_t err =
        snapshot_look(walk->params.snapshot, walk->path, &walk->entry.stat, walk->n_frames == 0, ret_take);
    if (!err && !*ret_take)
        walk->counts.skipped++;
    return err;
}

/* Looks at the file that folder_fd and leaf name; TYPE is what its folder says of it (DT_UNKNOWN: nothing). *RET_TAKE:
 * it is an entry. */
static gpg_error_t look(struct walk *walk, unsigned char type, bool *ret_take)
{
    struct walk_entry *entry = &walk->entry;
    const struct walk_params *params = &walk->params;
    *ret_take = false;
    if (select_excludes(params->select, walk->path)) {
        walk->counts.skipped++;
        return 0;
    }
    if (!read_status(walk, type))
        return 0;
    if (walk->seen) {
        bool seen;
        gpg_error_t err = seen_before(walk, &seen);
        if (err || seen)
            return err;
    }
    enum notice_kind why;
    bool no_data = is_no_data(walk, &why);
    if (no_data)
        notice(params->notices, why, walk->path, 0, NULL);
    if (no_data || select_too_old(params->select, &entry->stat)) {
        walk->counts.skipped++;
        return 0;
    }
    if (!walk->n_frames)
        walk->top_dev = entry->stat.st_dev;
    if (!S_ISDIR(entry->stat.st_mode)) {
        *ret_take = true;
        return params->snapshot ? look_back(walk, ret_take) : 0;
    }
    gpg_error_t err = open_folder(walk, ret_take);
    /* What is in a folder that is not entered will not be in the archive, so the snapshot must not have it. */
    return err || !walk->descend || !params->snapshot ? err : look_back(walk, ret_take);
}

/* Sets the way to the name given, which is the path. False: it was reported. */
static bool reach_given(struct walk *walk)
{
    struct walk_entry *entry = &walk->entry;
    if (walk->top_fd >= 0)
        close(walk->top_fd);
    walk->top_fd = -1;
    entry->folder_fd = walk->params.base_fd;
    entry->leaf = walk->path;
    const char *slash = strrchr(walk->path, '/');
    if (walk->path_n < PATH_MAX || !slash)
        return true;
    walk->top_fd = open_by_path(walk->params.base_fd, walk->path, (size_t)(slash - walk->path));
    if (walk->top_fd < 0) {
        flaw_errno(walk, errno);
        return false;
    }
    entry->folder_fd = walk->top_fd;
    entry->leaf = slash + 1;
    return true;
}

/* Makes NAME the current entry. */
static gpg_error_t look_at_given(struct walk *walk, const char *name, bool *ret_take)
{
    walk->counts.named++;
    *ret_take = false;
    char *path;
    gpg_error_t err = names_disk(name, &path);
    if (gpg_err_code(err) == GPG_ERR_INV_NAME) {
        walk->counts.flawed++;
        notice(walk->params.notices, NOTICE_UNREADABLE, name, err, NULL);
        return 0;
    }
    if (err)
        return err;
    err = set_path(walk, 0, path);
    free(path);
    if (err)
        return err;
    const char *member = names_member(walk->path);
    bool inside = member >= walk->path && member <= walk->path + walk->path_n;
    walk->member_at = inside ? (size_t)(member - walk->path) : walk->path_n + (walk->path[walk->path_n - 1] != '/');
    walk->entry.member = member;
    if (!inside && !strcmp(walk->path, "."))
        walk->member_at = 0;
    if (!reach_given(walk))
        return 0;
    err = look(walk, DT_UNKNOWN, ret_take);
    if (!err && *ret_take && walk->member_at && !walk->stripped) {
        walk->stripped = true;
        notice(walk->params.notices, NOTICE_STRIPPED_ROOT, walk->path, 0, NULL);
    }
    return err;
}

void walk_cold(struct walk *walk)
{
    struct rlimit limit;
    /* Of what is chosen by time, most is not read. */
    if (!walk->params.run || walk->params.snapshot || walk->options->newer || walk->cold ||
        getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur < COLD_DESCRIPTORS)
        return;
    if (!walk->ahead && ahead_new(walk->params.run, &walk->ahead))
        walk->ahead = NULL; /* all goes on without */
    walk->cold = walk->ahead ? COLD_NAMES : 0;
}

/* Whether the name number I of FRAME is to be read ahead. Sets the path to it. */
static bool is_read_soon(struct walk *walk, const struct frame *frame, size_t i)
{
    const char *leaf = frame->arena + frame->offsets[i];
    const unsigned char type = (unsigned char)leaf[-1];
    const struct select *select = walk->params.select;
    if (type == DT_DIR) /* in which nothing may be left out, as ahead does not know what */
        return !walk->options->no_recursion && !walk->options->exclude_caches && !select_has_patterns(select);
    return type == DT_REG && !set_path(walk, frame->path_n, leaf) && !select_excludes(select, walk->path);
}

/* Has the names that come next read ahead. */
static void hint_names(struct walk *walk, struct frame *frame)
{
    walk->cold--;
    if (frame->fd < 0)
        return;
    if (walk->ahead_in != frame->number)
        ahead_folder(walk->ahead, frame->fd);
    walk->ahead_in = frame->number;
    if (frame->hinted < frame->next + 1)
        frame->hinted = frame->next + 1;
    for (; frame->hinted < frame->n && frame->hinted < frame->next + AHEAD_HINTS; frame->hinted++) {
        const char *leaf = frame->arena + frame->offsets[frame->hinted];
        if (is_read_soon(walk, frame, frame->hinted) && !ahead_hint(walk->ahead, leaf, leaf[-1] == DT_DIR))
            break;
    }
}

/* Makes the next name of the innermost folder the current entry. */
static gpg_error_t look_at_next(struct walk *walk, bool *ret_take)
{
    struct frame *frame = &walk->frames[walk->n_frames - 1];
    if (walk->cold)
        hint_names(walk, frame);
    const char *leaf = frame->arena + frame->offsets[frame->next++];
    gpg_error_t err = set_path(walk, frame->path_n, leaf);
    if (err)
        return err;
    walk->entry.folder_fd = frame->fd;
    walk->entry.leaf = leaf;
    walk->entry.member = walk->path + walk->member_at;
    if (walk->path_n > NAMES_MAX) {
        *ret_take = false;
        flaw(walk, NOTICE_UNREADABLE, gpg_error(GPG_ERR_ENAMETOOLONG));
        return 0;
    }
    return look(walk, (unsigned char)leaf[-1], ret_take);
}

gpg_error_t walk_next(struct walk *walk, const struct walk_entry **ret_entry)
{
    gpg_error_t err = 0;
    bool take = false;
    if (walk->descend)
        err = push(walk);
    while (!err && !take) {
        leave(walk);
        if (walk->n_frames && walk->frames[walk->n_frames - 1].next == walk->frames[walk->n_frames - 1].n) {
            pop(walk);
            continue;
        }
        if (walk->n_frames) {
            err = look_at_next(walk, &take);
            continue;
        }
        const char *name;
        err = next_name(walk->params.names, walk->params.failure, &name);
        if (!err && !name) {
            *ret_entry = NULL;
            return 0;
        }
        if (!err)
            err = look_at_given(walk, name, &take);
    }
    if (err)
        return err;
    walk->entry.path = walk->path;
    *ret_entry = &walk->entry;
    return 0;
}
