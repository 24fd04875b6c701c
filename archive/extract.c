/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "extract.h"
#include "beneath.h"
#include "names.h"
#include "nameset.h"
#include "restore.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Folders that are open at once, at most. Deeper ones take the place of the last. */
#define OPEN_MAX 32

struct open_folder {
    size_t n; /* its path is the first N bytes of parent_path */
    int fd;
};

struct extract {
    const struct tar_extract_params *params;
    struct tar_extract_result *result;
    struct tar_reader *reader;
    struct restore restore;
    bool root_stripped; /* reported */
    /* The folder of the last member and some above it: most members lie in one of them, or right below. Whatever takes
     * the place of a folder is itself a member of a folder above, so that the one whose place it takes is closed then.
     */
    char *parent_path; /* malloced, NULL: none */
    struct open_folder open[OPEN_MAX];
    unsigned n_open;
    /* Modes and times that come last. */
    struct restore_folder *folders;
    size_t n_folders, folders_room;
    /* Links whose text does not say where they lead (beneath_climbs): malloced paths. */
    char **climbers;
    size_t n_climbers, climbers_room;
    /* Places of links that were refused, and of folders that took such a place later. What was meant to go through a
     * refused link must not land in a folder that merely has its name. NULL: none. */
    struct nameset *refused;
};

enum { REFUSED_LINK, REFUSED_THEN_FOLDER };

/* The member at hand: PATH is its plain name, LEAF the last component, PARENT the folder that it goes into. */
struct place {
    char *path;
    const char *leaf;
    int parent;
};

/* ---- reports ---- */

static void refuse(struct extract *extract, const struct tar_member *member, enum notice_kind kind, gpg_error_t code,
                   const char *detail)
{
    struct tar_extract_result *result = extract->result;
    switch (kind) {
    case NOTICE_BAD_NAME:
        result->badname++;
        break;
    case NOTICE_BAD_SYMLINK:
        result->symlink++;
        break;
    case NOTICE_BAD_HARDLINK:
        result->hardlink++;
        break;
    case NOTICE_THROUGH_LINK:
    case NOTICE_WRONG_KIND:
    case NOTICE_SUSPICIOUS:
        result->suspicious++;
        break;
    default:
        result->other++;
    }
    result->skipped++;
    notice(extract->params->read.notices, kind, member->name, code, detail);
}

/* Whether ERROR is one of the whole disk or process: to go on with the next member makes no sense. */
static bool is_fatal(gpg_error_t error)
{
    switch (gpg_err_code(error)) {
    case GPG_ERR_ENOSPC:
    case GPG_ERR_EDQUOT:
    case GPG_ERR_EIO:
    case GPG_ERR_EROFS:
    case GPG_ERR_ENOMEM:
    case GPG_ERR_EMFILE:
    case GPG_ERR_ENFILE:
        return true;
    default:
        return false;
    }
}

/* MEMBER could not be made (errno): the end of the extraction, or of this member. */
static gpg_error_t not_made(struct extract *extract, const struct tar_member *member)
{
    gpg_error_t error = gpg_error_from_syserror();
    if (is_fatal(error))
        return fail(extract->params->read.failure, error, "cannot make %s: %s", member->name, gpg_strerror(error));
    switch (gpg_err_code(error)) {
    case GPG_ERR_ELOOP:
        refuse(extract, member, NOTICE_THROUGH_LINK, error, "its path runs through a link of the archive");
        break;
    case GPG_ERR_ENOTDIR:
        refuse(extract, member, NOTICE_WRONG_KIND, error, "its path runs through a file of the archive");
        break;
    case GPG_ERR_ENOTEMPTY:
    case GPG_ERR_EEXIST:
        refuse(extract, member, NOTICE_WRONG_KIND, error, "a folder that is not empty stands in its place");
        break;
    case GPG_ERR_ENAMETOOLONG:
        refuse(extract, member, NOTICE_BAD_NAME, error, "the name is too long for the file system");
        break;
    default:
        /* Counted as other: what the system does not let us make is not suspicious by itself. */
        extract->result->other++;
        extract->result->skipped++;
        notice(extract->params->read.notices, NOTICE_SUSPICIOUS, member->name, error, "cannot be made");
    }
    return 0;
}

static gpg_error_t refuse_link(struct extract *extract, const struct tar_member *member, const char *path)
{
    refuse(extract, member, NOTICE_BAD_SYMLINK, 0, *member->target ? member->target : "it has no target");
    if (!extract->refused)
        extract->refused = nameset_new();
    if (!extract->refused)
        return gpg_error_from_syserror();
    return nameset_add(extract->refused, REFUSED_LINK, path, strlen(path), NULL);
}

/* Whether a folder on the way to PATH is a link that was refused. */
static bool goes_through_refused(const struct extract *extract, const char *path)
{
    if (!extract->refused)
        return false;
    for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
        const size_t n = (size_t)(slash - path);
        if (nameset_has(extract->refused, REFUSED_LINK, path, n) &&
            !nameset_has(extract->refused, REFUSED_THEN_FOLDER, path, n))
            return true;
    }
    return false;
}

/* ---- places ---- */

/* The folder PATH, made where it is missing. -1 and errno. */
static int make_folders(int root, char *path)
{
    int folder = root;
    for (char *component = path; component;) {
        char *slash = strchr(component, '/');
        if (slash)
            *slash = '\0';
        int next = beneath_folder(folder, component, O_PATH);
        if (next < 0 && errno == ENOENT && (!mkdirat(folder, component, 0777) || errno == EEXIST))
            next = beneath_folder(folder, component, O_PATH);
        int saved = errno;
        if (slash)
            *slash = '/';
        if (folder != root)
            close(folder);
        if (next < 0) {
            errno = saved;
            return -1;
        }
        folder = next;
        component = slash ? slash + 1 : NULL;
    }
    return folder;
}

/* Closes all open folders that are not on the way to the first N bytes of PATH. */
static void close_folders(struct extract *extract, const char *path, size_t n)
{
    while (extract->n_open) {
        const struct open_folder *last = &extract->open[extract->n_open - 1];
        if (last->n <= n && !memcmp(extract->parent_path, path, last->n) && (last->n == n || path[last->n] == '/'))
            return;
        close(last->fd);
        extract->n_open--;
    }
}

/* Opens the folder of PLACE, whose path and leaf are set; FALSE: errno says why not. */
static bool open_parent(struct extract *extract, struct place *place)
{
    size_t n = place->leaf == place->path ? 0 : (size_t)(place->leaf - place->path - 1);
    close_folders(extract, place->path, n);
    const struct open_folder *above = extract->n_open ? &extract->open[extract->n_open - 1] : NULL;
    place->parent = above ? above->fd : extract->params->root_fd;
    if (above ? above->n == n : !n)
        return true;
    char *path = strndup(place->path, n);
    if (!path)
        return false;
    char *rest = path + (above ? above->n + 1 : 0);
    int fd = beneath_folder(place->parent, rest, O_PATH);
    if (fd < 0 && errno == ENOENT)
        fd = make_folders(place->parent, rest);
    if (fd < 0) {
        int saved = errno;
        free(path);
        errno = saved;
        return false;
    }
    if (extract->n_open == OPEN_MAX)
        close(extract->open[--extract->n_open].fd);
    free(extract->parent_path);
    extract->parent_path = path;
    extract->open[extract->n_open++] = (struct open_folder){.n = n, .fd = fd};
    place->parent = fd;
    return true;
}

/* Takes away what an earlier member of the same name made. FALSE: errno. */
static bool clear_way(const struct place *place)
{
    if (!unlinkat(place->parent, place->leaf, 0))
        return true;
    return (errno == EISDIR || errno == EPERM) && !unlinkat(place->parent, place->leaf, AT_REMOVEDIR);
}

/* After a call that answered EEXIST: whether it is worth to try again. */
static bool again(const struct place *place)
{
    return errno == EEXIST && clear_way(place);
}

/* ---- files ---- */

static gpg_error_t cannot_write(struct extract *extract, const struct tar_member *member, gpg_error_t error)
{
    return fail(extract->params->read.failure, error, "cannot write %s: %s", member->name, gpg_strerror(error));
}

static gpg_error_t write_at(int fd, const uint8_t *bytes, size_t n, uint64_t offset)
{
    while (n) {
        ssize_t written = pwrite(fd, bytes, n, (off_t)offset);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return written ? gpg_error_from_syserror() : gpg_error(GPG_ERR_EIO);
        bytes += written;
        n -= (size_t)written;
        offset += (uint64_t)written;
    }
    return 0;
}

/* The content of MEMBER, straight from the blocks that are lent; what no piece covers stays a hole. */
static gpg_error_t write_content(struct extract *extract, const struct tar_member *member, int fd)
{
    uint64_t end = 0;
    for (;;) {
        const void *bytes;
        size_t n;
        uint64_t offset;
        gpg_error_t error = tar_reader_data(extract->reader, &bytes, &n, &offset);
        if (error)
            return error;
        if (!n)
            break;
        error = write_at(fd, bytes, n, offset);
        if (error)
            return cannot_write(extract, member, error);
        extract->result->bytes += n;
        if (offset + n > end)
            end = offset + n;
    }
    /* A member that was cut (salvage) keeps the length that it has. */
    if (end < member->size && !tar_reader_counts(extract->reader)->cut_by && ftruncate(fd, (off_t)member->size))
        return cannot_write(extract, member, gpg_error_from_syserror());
    return 0;
}

static gpg_error_t make_file(struct extract *extract, const struct tar_member *member, const struct place *place)
{
    mode_t mode = restore_mode(&extract->restore, member);
    bool late = restore_is_late(&extract->restore, member, mode);
    const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    int fd;
    do
        fd = openat(place->parent, place->leaf, flags, late ? 0600 : mode);
    while (fd < 0 && again(place));
    if (fd < 0)
        return not_made(extract, member);
    gpg_error_t error = write_content(extract, member, fd);
    if (!error)
        restore_file(&extract->restore, member, fd, mode, late);
    if (close(fd) && !error)
        error = cannot_write(extract, member, gpg_error_from_syserror());
    if (error)
        return error;
    extract->result->extracted++;
    extract->result->made++;
    return 0;
}

/* ---- folders ---- */

/* Makes room for one more item of SIZE bytes. */
static gpg_error_t grow(void *array, size_t n, size_t *room, size_t size)
{
    if (n < *room)
        return 0;
    size_t wanted = *room ? 2 * *room : 64;
    void *old;
    memcpy(&old, array, sizeof old);
    void *grown = reallocarray(old, wanted, size);
    if (!grown)
        return gpg_error_from_syserror();
    memcpy(array, &grown, sizeof grown);
    *room = wanted;
    return 0;
}

static bool is_folder_at(const struct place *place)
{
    struct stat stat;
    return !fstatat(place->parent, place->leaf, &stat, AT_SYMLINK_NOFOLLOW) && S_ISDIR(stat.st_mode);
}

static gpg_error_t make_folder(struct extract *extract, const struct tar_member *member, const struct place *place)
{
    while (mkdirat(place->parent, place->leaf, 0700)) {
        if (errno != EEXIST)
            return not_made(extract, member);
        if (is_folder_at(place))
            break;
        if (!clear_way(place))
            return not_made(extract, member);
    }
    gpg_error_t error = grow(&extract->folders, extract->n_folders, &extract->folders_room, sizeof *extract->folders);
    if (error)
        return error;
    struct restore_folder *folder = &extract->folders[extract->n_folders];
    error = restore_folder_begin(&extract->restore, member, place->parent, place->leaf, place->path, folder);
    if (error)
        return error;
    folder->order = extract->n_folders++;
    extract->result->made++;
    return 0;
}

/* What is deep first, so that a folder that closes does not lock us out of those in it; of the same path the last. */
static int deep_first(const void *left, const void *right)
{
    const struct restore_folder *a = left, *b = right;
    int order = strcmp(b->path, a->path);
    return order ? order : (a->order < b->order) - (a->order > b->order);
}

static void finish_folders(struct extract *extract)
{
    if (extract->n_folders)
        qsort(extract->folders, extract->n_folders, sizeof *extract->folders, deep_first);
    for (size_t i = 0; i < extract->n_folders; i++)
        if (!i || strcmp(extract->folders[i - 1].path, extract->folders[i].path) != 0)
            restore_folder_end(&extract->restore, &extract->folders[i]);
}

/* ---- links ---- */

static gpg_error_t note_climber(struct extract *extract, const char *path, const char *target)
{
    if (extract->params->outside_links || !beneath_climbs(target))
        return 0;
    gpg_error_t error =
        grow(&extract->climbers, extract->n_climbers, &extract->climbers_room, sizeof *extract->climbers);
    if (error)
        return error;
    extract->climbers[extract->n_climbers] = strdup(path);
    return extract->climbers[extract->n_climbers++] ? 0 : gpg_error_from_syserror();
}

static gpg_error_t make_symlink(struct extract *extract, const struct tar_member *member, const struct place *place)
{
    const bool anywhere = extract->params->outside_links && *member->target;
    if (!anywhere && !names_link_inside(place->path, member->target))
        return refuse_link(extract, member, place->path);
    while (symlinkat(member->target, place->parent, place->leaf))
        if (!again(place))
            return not_made(extract, member);
    restore_other(&extract->restore, member, place->parent, place->leaf);
    extract->result->made++;
    return note_climber(extract, place->path, member->target);
}

/* Links that lead out only by way of other links can be seen when all are there. */
static void check_climbers(struct extract *extract)
{
    const int root = extract->params->root_fd;
    for (size_t i = 0; i < extract->n_climbers; i++) {
        const char *path = extract->climbers[i], *leaf;
        if (!beneath_escapes(root, path))
            continue;
        int parent = beneath_parent(root, path, O_PATH, &leaf);
        struct stat stat;
        if (parent < 0)
            continue;
        if (!fstatat(parent, leaf, &stat, AT_SYMLINK_NOFOLLOW) && S_ISLNK(stat.st_mode) && !unlinkat(parent, leaf, 0)) {
            const struct tar_member member = {.name = path};
            extract->result->made--;
            refuse(extract, &member, NOTICE_BAD_SYMLINK, 0, "it leads out of the folder by way of other links");
        }
        close(parent);
    }
}

/* A hard link to a symlink is one more symlink, and may stand at another depth. *RET_TEXT: what it says, malloced. */
static bool linked_symlink_is_sound(const struct extract *extract, int parent, const char *leaf, const char *path,
                                    char **ret_text)
{
    char text[PATH_MAX];
    ssize_t n = readlinkat(parent, leaf, text, sizeof text - 1);
    if (n < 0)
        return false;
    text[n] = '\0';
    if (!extract->params->outside_links && !names_link_inside(path, text))
        return false;
    *ret_text = strdup(text);
    return *ret_text;
}

/* Links TARGET_LEAF in TARGET_PARENT to PLACE. FALSE: errno. */
static bool link_to(int target_parent, const char *target_leaf, const struct stat *target, const struct place *place)
{
    struct stat there;
    while (linkat(target_parent, target_leaf, place->parent, place->leaf, 0)) {
        if (errno != EEXIST || fstatat(place->parent, place->leaf, &there, AT_SYMLINK_NOFOLLOW))
            return false;
        if (there.st_ino == target->st_ino && there.st_dev == target->st_dev)
            return true;
        if (!clear_way(place))
            return false;
    }
    return true;
}

static gpg_error_t make_hard_link(struct extract *extract, const struct tar_member *member, const struct place *place)
{
    char *target = NULL, *text = NULL;
    const char *leaf, *why = "it names nothing that was extracted before";
    struct stat stat;
    int parent = -1;
    gpg_error_t error = 0;
    if (names_check(member->target) != NAMES_SOUND) {
        refuse(extract, member, NOTICE_BAD_HARDLINK, 0, "it names something outside");
        return 0;
    }
    error = names_extracted(member->target, &target, NULL);
    if (error)
        return error;
    parent = beneath_parent(extract->params->root_fd, target, O_PATH, &leaf);
    bool sound = parent >= 0 && !fstatat(parent, leaf, &stat, AT_SYMLINK_NOFOLLOW) && !S_ISDIR(stat.st_mode);
    if (sound && S_ISLNK(stat.st_mode)) {
        sound = linked_symlink_is_sound(extract, parent, leaf, place->path, &text);
        why = "it names a symlink that would leave the folder from there";
    }
    if (!sound) {
        refuse(extract, member, NOTICE_BAD_HARDLINK, gpg_error(GPG_ERR_NOT_FOUND), why);
    } else if (!link_to(parent, leaf, &stat, place)) {
        error = not_made(extract, member);
    } else {
        extract->result->made++;
        if (text)
            error = note_climber(extract, place->path, text);
    }
    if (parent >= 0)
        close(parent);
    free(target);
    free(text);
    return error;
}

/* ---- everything else ---- */

static gpg_error_t make_special(struct extract *extract, const struct tar_member *member, const struct place *place)
{
    bool fifo = member->kind == TAR_FIFO;
    mode_t type = fifo ? S_IFIFO : member->kind == TAR_CHAR ? S_IFCHR : S_IFBLK;
    if (!fifo && !extract->restore.privileged) {
        refuse(extract, member, NOTICE_NEEDS_ROOT, 0, "only root can make devices");
        return 0;
    }
    while (mknodat(place->parent, place->leaf, type | 0600, fifo ? 0 : member->rdev))
        if (!again(place))
            return not_made(extract, member);
    restore_other(&extract->restore, member, place->parent, place->leaf);
    extract->result->made++;
    return 0;
}

static gpg_error_t make_member(struct extract *extract, const struct tar_member *member, const struct place *place)
{
    uint64_t skipped = extract->result->skipped;
    gpg_error_t error = 0;
    switch (member->kind) {
    case TAR_FILE:
        error = make_file(extract, member, place);
        break;
    case TAR_FOLDER:
        error = make_folder(extract, member, place);
        if (!error && extract->refused)
            error = nameset_add(extract->refused, REFUSED_THEN_FOLDER, place->path, strlen(place->path), NULL);
        break;
    case TAR_SYMLINK:
        error = make_symlink(extract, member, place);
        break;
    case TAR_HARDLINK:
        error = make_hard_link(extract, member, place);
        break;
    case TAR_FIFO:
    case TAR_CHAR:
    case TAR_BLOCK:
        error = make_special(extract, member, place);
        break;
    case TAR_OTHER:
        refuse(extract, member, NOTICE_SUSPICIOUS, 0, "a member of unknown kind");
    }
    if (!error && extract->result->skipped == skipped)
        notice(extract->params->read.notices, NOTICE_EXTRACTED, member->name, 0, NULL);
    return error;
}

static gpg_error_t extract_member(struct extract *extract, const struct tar_member *member)
{
    struct place place = {.parent = -1};
    bool stripped = false;
    enum names_flaw flaw = names_check(member->name);
    /* The target folder itself: it has its mode already. */
    if (flaw == NAMES_NOTHING && member->kind == TAR_FOLDER)
        return 0;
    if (flaw != NAMES_SOUND) {
        refuse(extract, member, NOTICE_BAD_NAME, gpg_error(GPG_ERR_INV_NAME), names_flaw_text(flaw));
        return 0;
    }
    gpg_error_t error = names_extracted(member->name, &place.path, &stripped);
    if (error)
        return error;
    if (stripped && !extract->root_stripped)
        notice(extract->params->read.notices, NOTICE_ROOT_STRIPPED, member->name, 0, NULL);
    extract->root_stripped |= stripped;
    const char *slash = strrchr(place.path, '/');
    place.leaf = slash ? slash + 1 : place.path;
    if (goes_through_refused(extract, place.path))
        refuse(extract, member, NOTICE_THROUGH_LINK, 0, "its path runs through a link that was refused");
    else if (open_parent(extract, &place))
        error = make_member(extract, member, &place);
    else
        error = not_made(extract, member);
    free(place.path);
    return error;
}

static void extract_clear(struct extract *extract)
{
    tar_reader_free(extract->reader);
    close_folders(extract, "", 0);
    free(extract->parent_path);
    for (size_t i = 0; i < extract->n_folders; i++)
        restore_folder_free(&extract->folders[i]);
    free(extract->folders);
    for (size_t i = 0; i < extract->n_climbers; i++)
        free(extract->climbers[i]);
    free(extract->climbers);
    nameset_free(extract->refused);
}

gpg_error_t tar_extract(const struct tar_extract_params *params, struct source *borrows_source,
                        struct tar_extract_result *ret)
{
    struct extract extract = {.params = params, .result = ret};
    *ret = (struct tar_extract_result){0};
    gpg_error_t error = restore_init(&extract.restore, params);
    if (error)
        goto out;
    error = tar_reader_new(&params->read, borrows_source, &extract.reader);
    if (error)
        goto out;
    for (;;) {
        const struct tar_member *member;
        error = tar_reader_next(extract.reader, &member);
        if (error || !member)
            break;
        error = extract_member(&extract, member);
        if (error)
            break;
    }
    if (!error) {
        check_climbers(&extract);
        finish_folders(&extract);
    }
    ret->restores = extract.restore.problems;
    ret->read = *tar_reader_counts(extract.reader);
out:
    extract_clear(&extract);
    return error;
}

/* ---- to a sink ---- */

static gpg_error_t write_zeros(struct sink *sink, uint64_t n)
{
    static const uint8_t zeros[65536];
    while (n) {
        size_t part = n < sizeof zeros ? (size_t)n : sizeof zeros;
        gpg_error_t error = sink_write(sink, zeros, part);
        if (error)
            return error;
        n -= part;
    }
    return 0;
}

static gpg_error_t pour(struct tar_reader *reader, const struct tar_member *member, struct sink *sink,
                        const struct tar_read_params *params, struct tar_extract_result *result)
{
    uint64_t end = 0;
    gpg_error_t error;
    /* Here holes come out as bytes, and a header of 512 bytes may promise 8 EiB of them. */
    if (params->max_size && (member->size > params->max_size || result->bytes > params->max_size - member->size))
        return fail(params->failure, gpg_error(GPG_ERR_TOO_LARGE), "the archive has more than %llu bytes of content",
                    (unsigned long long)params->max_size);
    for (;;) {
        const void *bytes;
        size_t n;
        uint64_t offset;
        error = tar_reader_data(reader, &bytes, &n, &offset);
        if (error || !n)
            break;
        if (offset < end)
            return fail(params->failure, gpg_error(GPG_ERR_BAD_DATA), "the sparse map of %s is not in order",
                        member->name);
        error = write_zeros(sink, offset - end);
        if (!error)
            error = sink_write(sink, bytes, n);
        if (error)
            return error;
        result->bytes += offset + n - end;
        end = offset + n;
    }
    if (error || tar_reader_counts(reader)->cut_by)
        return error;
    result->bytes += member->size - end;
    return write_zeros(sink, member->size - end);
}

gpg_error_t tar_extract_to_sink(const struct tar_read_params *params, struct source *borrows_source,
                                struct sink *borrows_sink, struct tar_extract_result *ret)
{
    struct tar_reader *reader;
    *ret = (struct tar_extract_result){0};
    gpg_error_t error = tar_reader_new(params, borrows_source, &reader);
    if (error)
        return error;
    for (;;) {
        const struct tar_member *member;
        error = tar_reader_next(reader, &member);
        if (error || !member)
            break;
        if (member->kind == TAR_HARDLINK && params->n_names) {
            /* Its content stands under the other name only; to go on without a word would lose it. */
            ret->hardlink++;
            ret->skipped++;
            notice(params->notices, NOTICE_BAD_HARDLINK, member->name, 0, member->target);
        }
        if (member->kind != TAR_FILE)
            continue;
        error = pour(reader, member, borrows_sink, params, ret);
        if (error)
            break;
        ret->extracted++;
    }
    ret->read = *tar_reader_counts(reader);
    tar_reader_free(reader);
    return error;
}
