/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "compare.h"
#include "names.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Room for the words on one member. */
#define DETAIL_SIZE 512
/* Bytes of a file on disk read at once. */
#define BLOCK_SIZE (256u << 10)
/* Room for the strings of one passwd or group entry. */
#define LOOKUP_SIZE 65536

struct compare {
    const struct tar_compare_params *params;
    struct tar_compare_result *result;
    struct tar_reader *reader;
    struct source *source;
    uint8_t *block; /* BLOCK_SIZE */
    uint8_t *room;  /* LOOKUP_SIZE */
    /* For what is extra on the disk: hashes of all member names, and the folders among them. */
    uint64_t *seen;
    size_t n_seen, seen_room;
    char **folders;
    size_t n_folders, folders_room;
};

/* What differs in one member. */
struct difference {
    char text[DETAIL_SIZE];
    size_t used;
};

static void PRINTF_LIKE(2, 3) add(struct difference *difference, const char *format, ...)
{
    va_list values;
    if (difference->used)
        difference->used += (size_t)snprintf(difference->text + difference->used, DETAIL_SIZE - difference->used, ", ");
    va_start(values, format);
    int n = vsnprintf(difference->text + difference->used, DETAIL_SIZE - difference->used, format, values);
    va_end(values);
    if (n > 0)
        difference->used += (size_t)n;
    if (difference->used > DETAIL_SIZE - 3)
        difference->used = DETAIL_SIZE - 3;
}

static void report(struct compare *compare, const char *name, gpg_error_t code, const char *detail)
{
    compare->result->differences++;
    notice(compare->params->read.notices, NOTICE_DIFFERS, name, code, detail);
}

/* ---- what was seen ---- */

/* FNV-1a, 64 bits: two names of one archive with the same value would hide an extra file, no more. */
static uint64_t hash(uint64_t value, const char *text)
{
    for (; *text; text++)
        value = (value ^ (uint8_t)*text) * 0x100000001b3;
    return value;
}

static uint64_t hash_name(const char *folder, const char *leaf)
{
    uint64_t value = 0xcbf29ce484222325;
    if (*folder)
        value = hash(hash(value, folder), "/");
    return hash(value, leaf);
}

static int by_value(const void *left, const void *right)
{
    const uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

static gpg_error_t note_seen(struct compare *compare, const char *path, bool folder)
{
    if (compare->params->no_extra)
        return 0;
    if (compare->n_seen == compare->seen_room) {
        size_t room = compare->seen_room ? 2 * compare->seen_room : 1024;
        uint64_t *seen = reallocarray(compare->seen, room, sizeof *seen);
        if (!seen)
            return gpg_error_from_syserror();
        compare->seen = seen;
        compare->seen_room = room;
    }
    compare->seen[compare->n_seen++] = hash_name("", path);
    if (!folder)
        return 0;
    if (compare->n_folders == compare->folders_room) {
        size_t room = compare->folders_room ? 2 * compare->folders_room : 64;
        char **folders = reallocarray(compare->folders, room, sizeof *folders);
        if (!folders)
            return gpg_error_from_syserror();
        compare->folders = folders;
        compare->folders_room = room;
    }
    compare->folders[compare->n_folders] = strdup(path);
    return compare->folders[compare->n_folders++] ? 0 : gpg_error_from_syserror();
}

static bool was_seen(const struct compare *compare, const char *folder, const char *leaf)
{
    uint64_t value = hash_name(folder, leaf);
    return compare->n_seen && bsearch(&value, compare->seen, compare->n_seen, sizeof value, by_value);
}

static void report_extra(struct compare *compare, const char *path)
{
    int fd = openat(compare->params->root_fd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *folder = fd < 0 ? NULL : fdopendir(fd);
    const char *prefix = strcmp(path, ".") ? path : "";
    if (!folder) {
        if (fd >= 0)
            close(fd);
        /* Missing, or no folder: that was reported. */
        if (errno != ENOENT && errno != ENOTDIR && errno != ELOOP)
            report(compare, path, gpg_error_from_syserror(), "the folder cannot be listed");
        return;
    }
    const struct dirent *entry;
    while ((entry = readdir(folder))) {
        const char *leaf = entry->d_name;
        char *name = NULL;
        if (!strcmp(leaf, ".") || !strcmp(leaf, "..") || was_seen(compare, prefix, leaf))
            continue;
        if (asprintf(&name, "%s%s%s", prefix, *prefix ? "/" : "", leaf) < 0)
            name = NULL;
        report(compare, name ? name : leaf, 0, "not in the archive");
        free(name);
    }
    closedir(folder);
}

static void report_all_extra(struct compare *compare)
{
    if (compare->n_seen)
        qsort(compare->seen, compare->n_seen, sizeof *compare->seen, by_value);
    for (size_t i = 0; i < compare->n_folders; i++)
        report_extra(compare, compare->folders[i]);
}

/* ---- one member ---- */

static mode_t type_of(enum tar_kind kind)
{
    static const mode_t types[] = {[TAR_FILE] = S_IFREG, [TAR_FOLDER] = S_IFDIR, [TAR_SYMLINK] = S_IFLNK,
                                   [TAR_FIFO] = S_IFIFO, [TAR_CHAR] = S_IFCHR,   [TAR_BLOCK] = S_IFBLK};
    return kind < ARRAY_SIZE(types) ? types[kind] : 0;
}

/* Whether the name that the system has for the owner is that of the member; *RET_KNOWN: it has one. */
static bool same_user(struct compare *compare, const char *uname, uid_t uid, bool *ret_known)
{
    struct passwd entry, *found = NULL;
    *ret_known = !getpwuid_r(uid, &entry, (char *)compare->room, LOOKUP_SIZE, &found) && found;
    return *ret_known && !strcmp(found->pw_name, uname);
}

static bool same_group(struct compare *compare, const char *gname, gid_t gid, bool *ret_known)
{
    struct group entry, *found = NULL;
    *ret_known = !getgrgid_r(gid, &entry, (char *)compare->room, LOOKUP_SIZE, &found) && found;
    return *ret_known && !strcmp(found->gr_name, gname);
}

static void compare_owner(struct compare *compare, const struct tar_member *member, const struct stat *disk,
                          struct difference *difference)
{
    bool by_name = !compare->params->numeric_owner, known = false;
    if (compare->params->no_owner)
        return;
    if (member->uid != disk->st_uid || (by_name && *member->uname)) {
        bool same = by_name && *member->uname && same_user(compare, member->uname, disk->st_uid, &known);
        if (!same && (known || member->uid != disk->st_uid))
            add(difference, "owner differs (archive %s/%lld, disk %lu)", member->uname, (long long)member->uid,
                (unsigned long)disk->st_uid);
    }
    known = false;
    if (member->gid != disk->st_gid || (by_name && *member->gname)) {
        bool same = by_name && *member->gname && same_group(compare, member->gname, disk->st_gid, &known);
        if (!same && (known || member->gid != disk->st_gid))
            add(difference, "group differs (archive %s/%lld, disk %lu)", member->gname, (long long)member->gid,
                (unsigned long)disk->st_gid);
    }
}

/* To whole seconds where the archive has no more. */
static bool same_time(const struct tar_member *member, const struct stat *disk)
{
    return member->mtime.tv_sec == disk->st_mtim.tv_sec &&
           (!member->mtime.tv_nsec || member->mtime.tv_nsec == disk->st_mtim.tv_nsec);
}

static void compare_target(struct compare *compare, const struct tar_member *member, const char *path,
                           struct difference *difference)
{
    char target[4096];
    ssize_t n = readlinkat(compare->params->root_fd, path, target, sizeof target - 1);
    target[n < 0 ? 0 : n] = '\0';
    if (n < 0 || strcmp(target, member->target) != 0)
        add(difference, "link target differs");
}

static bool is_zero(const uint8_t *bytes, size_t n)
{
    return !n || (!bytes[0] && !memcmp(bytes, bytes + 1, n - 1));
}

/* Whether the next N bytes of FD are BYTES (NULL: zeros). */
static bool same_bytes(struct compare *compare, int fd, const uint8_t *bytes, uint64_t n)
{
    while (n) {
        size_t part = n < BLOCK_SIZE ? (size_t)n : BLOCK_SIZE;
        ssize_t got = read(fd, compare->block, part);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        if (bytes ? memcmp(compare->block, bytes, (size_t)got) != 0 : !is_zero(compare->block, (size_t)got))
            return false;
        bytes = bytes ? bytes + got : NULL;
        n -= (uint64_t)got;
    }
    return true;
}

/* The content of FD and of MEMBER, whose sizes are equal. */
static gpg_error_t same_content(struct compare *compare, const struct tar_member *member, int fd, bool *ret_same)
{
    uint64_t end = 0;
    *ret_same = true;
    for (;;) {
        const void *bytes;
        size_t n;
        uint64_t offset;
        gpg_error_t error = tar_reader_data(compare->reader, &bytes, &n, &offset);
        if (error)
            return error;
        if (!n)
            break;
        if (!*ret_same)
            continue;
        *ret_same = offset >= end && same_bytes(compare, fd, NULL, offset - end) && same_bytes(compare, fd, bytes, n);
        end = offset + n;
    }
    *ret_same = *ret_same && same_bytes(compare, fd, NULL, member->size - end);
    return 0;
}

static gpg_error_t compare_content(struct compare *compare, const struct tar_member *member, const char *path,
                                   const struct stat *disk, struct difference *difference)
{
    if ((uint64_t)disk->st_size != member->size) {
        add(difference, "size differs (archive %llu, disk %lld)", (unsigned long long)member->size,
            (long long)disk->st_size);
        return 0;
    }
    /* It was a regular file a moment ago; should it be a FIFO now, this does not hang. */
    int fd = openat(compare->params->root_fd, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) {
        add(difference, "content cannot be read: %s", gpg_strerror(gpg_error_from_syserror()));
        return 0;
    }
    bool same;
    gpg_error_t error = same_content(compare, member, fd, &same);
    close(fd);
    if (!error && !same)
        add(difference, "content differs");
    return error;
}

static gpg_error_t compare_inode(struct compare *compare, const struct tar_member *member, const char *path,
                                 const struct stat *disk, struct difference *difference)
{
    gpg_error_t error = 0;
    mode_t type = type_of(member->kind);
    if (!type || (disk->st_mode & S_IFMT) != type) {
        add(difference, "kind differs");
        return 0;
    }
    if (member->kind == TAR_FILE)
        error = compare_content(compare, member, path, disk, difference);
    if (member->kind == TAR_SYMLINK)
        compare_target(compare, member, path, difference);
    else if ((disk->st_mode & 07777) != member->mode)
        add(difference, "mode differs (archive %04o, disk %04o)", member->mode, disk->st_mode & 07777);
    if ((member->kind == TAR_CHAR || member->kind == TAR_BLOCK) && disk->st_rdev != member->rdev)
        add(difference, "device number differs");
    /* What a folder's time says shows in what is missing or extra. */
    if (member->kind != TAR_FOLDER && member->has_mtime && !same_time(member, disk))
        add(difference, "mtime differs");
    compare_owner(compare, member, disk, difference);
    return error;
}

static void compare_hard_link(struct compare *compare, const struct tar_member *member, const struct stat *disk,
                              struct difference *difference)
{
    struct stat target;
    char *path = NULL;
    if (names_check(member->target) != NAMES_SOUND || names_extracted(member->target, &path, NULL) ||
        fstatat(compare->params->root_fd, path, &target, AT_SYMLINK_NOFOLLOW) || target.st_ino != disk->st_ino ||
        target.st_dev != disk->st_dev)
        add(difference, "not linked to %.200s", member->target);
    free(path);
}

static gpg_error_t compare_member(struct compare *compare, const struct tar_member *member)
{
    struct difference difference = {.used = 0};
    struct stat disk;
    char *path = NULL;
    gpg_error_t error = 0;
    enum names_flaw flaw = names_check(member->name);
    if (flaw != NAMES_SOUND && !(flaw == NAMES_NOTHING && member->kind == TAR_FOLDER)) {
        tar_reader_flaw(compare->reader, member->name, gpg_error(GPG_ERR_INV_NAME), names_flaw_text(flaw));
        return 0;
    }
    error = names_extracted(member->name, &path, NULL);
    if (!error)
        error = note_seen(compare, path, member->kind == TAR_FOLDER);
    if (error)
        goto out;
    compare->result->members++;
    if (fstatat(compare->params->root_fd, path, &disk, AT_SYMLINK_NOFOLLOW)) {
        gpg_error_t why = gpg_error_from_syserror();
        add(&difference, gpg_err_code(why) == GPG_ERR_ENOENT ? "missing on the disk" : "cannot be looked at");
        report(compare, member->name, why, difference.text);
        goto out;
    }
    if (member->kind == TAR_HARDLINK)
        compare_hard_link(compare, member, &disk, &difference);
    else
        error = compare_inode(compare, member, path, &disk, &difference);
    if (!error && difference.used)
        report(compare, member->name, 0, difference.text);
out:
    free(path);
    return error;
}

static gpg_error_t compare_init(struct compare *compare)
{
    compare->block = malloc(BLOCK_SIZE);
    compare->room = malloc(LOOKUP_SIZE);
    if (!compare->block || !compare->room)
        return gpg_error_from_syserror();
    return tar_reader_new(&compare->params->read, compare->source, &compare->reader);
}

gpg_error_t tar_compare(const struct tar_compare_params *params, struct source *borrows_source,
                        struct tar_compare_result *ret)
{
    struct compare compare = {.params = params, .result = ret, .source = borrows_source};
    *ret = (struct tar_compare_result){0};
    gpg_error_t error = compare_init(&compare);
    while (!error) {
        const struct tar_member *member;
        error = tar_reader_next(compare.reader, &member);
        if (error || !member)
            break;
        error = compare_member(&compare, member);
    }
    if (!error && !params->no_extra)
        report_all_extra(&compare);
    if (compare.reader)
        ret->read = *tar_reader_counts(compare.reader);
    tar_reader_free(compare.reader);
    for (size_t i = 0; i < compare.n_folders; i++)
        free(compare.folders[i]);
    free(compare.folders);
    free(compare.seen);
    free(compare.block);
    free(compare.room);
    return error;
}
