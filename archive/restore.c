/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "restore.h"
#include "beneath.h"

#include <archive.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

/* Linux: a 4-byte version, then entries of tag, permissions (2 bytes each) and id (4), little-endian. */
#define ACL_VERSION 2
#define ACL_ENTRY   8
/* Entries taken from one member; an xattr has at most 64 KiB anyway. */
#define ACL_ENTRIES_MAX 8000
/* Room for the strings of one passwd or group entry. */
#define LOOKUP_SIZE 65536

static void problem(struct restore *restore, const char *name, const char *what)
{
    restore->problems++;
    notice(restore->params->read.notices, NOTICE_RESTORE, name, gpg_error_from_syserror(), what);
}

gpg_error_t restore_init(struct restore *restore, const struct tar_extract_params *params)
{
    struct stat stat;
    if (fstat(params->root_fd, &stat))
        return fail_errno(params->read.failure, errno, "cannot look at the temporary folder");
    *restore = (struct restore){.params = params, .privileged = !geteuid(), .uid = geteuid()};
    restore->gid = stat.st_mode & S_ISGID ? stat.st_gid : getegid();
    return 0;
}

/* ---- owners ---- */

static bool find_user(const char *name, uid_t *ret)
{
    struct passwd entry, *found = NULL;
    char *room = malloc(LOOKUP_SIZE);
    if (room && !getpwnam_r(name, &entry, room, LOOKUP_SIZE, &found) && found)
        *ret = entry.pw_uid;
    free(room);
    return found;
}

static bool find_group(const char *name, gid_t *ret)
{
    struct group entry, *found = NULL;
    char *room = malloc(LOOKUP_SIZE);
    if (room && !getgrnam_r(name, &entry, room, LOOKUP_SIZE, &found) && found)
        *ret = entry.gr_gid;
    free(room);
    return found;
}

static uid_t number(int64_t id)
{
    return id < 0 || id > UINT32_MAX ? (uid_t)-1 : (uid_t)id;
}

/* By NAME where the system knows it, else ID; (uid_t)-1 if that is no number of a user. */
static uid_t user_of(struct restore *restore, const char *name, int64_t id)
{
    if (restore->params->numeric_owner || !*name || strlen(name) >= sizeof restore->uname)
        return number(id);
    if (strcmp(name, restore->uname) != 0) {
        strcpy(restore->uname, name);
        if (!find_user(name, &restore->uname_uid))
            restore->uname_uid = (uid_t)-1;
    }
    return restore->uname_uid == (uid_t)-1 ? number(id) : restore->uname_uid;
}

static gid_t group_of(struct restore *restore, const char *name, int64_t id)
{
    if (restore->params->numeric_owner || !*name || strlen(name) >= sizeof restore->gname)
        return number(id);
    if (strcmp(name, restore->gname) != 0) {
        strcpy(restore->gname, name);
        if (!find_group(name, &restore->gname_gid))
            restore->gname_gid = (gid_t)-1;
    }
    return restore->gname_gid == (gid_t)-1 ? number(id) : restore->gname_gid;
}

/* Gives LEAF in FOLDER (LEAF "": FOLDER itself) the member's owner. */
static void restore_owner(struct restore *restore, const struct tar_member *member, int folder, const char *leaf)
{
    if (!restore->params->same_owner)
        return;
    uid_t uid = user_of(restore, member->uname, member->uid);
    gid_t gid = group_of(restore, member->gname, member->gid);
    if (uid == restore->uid && gid == restore->gid)
        return;
    errno = EINVAL;
    if (uid == (uid_t)-1 || gid == (gid_t)-1 ||
        fchownat(folder, leaf, uid, gid, AT_SYMLINK_NOFOLLOW | (*leaf ? 0 : AT_EMPTY_PATH)))
        problem(restore, member->name, "owner");
}

static bool owner_differs(struct restore *restore, const struct tar_member *member)
{
    return restore->params->same_owner && (user_of(restore, member->uname, member->uid) != restore->uid ||
                                           group_of(restore, member->gname, member->gid) != restore->gid);
}

/* ---- modes ---- */

mode_t restore_mode(struct restore *restore, const struct tar_member *member)
{
    const struct tar_extract_params *params = restore->params;
    if (params->same_permissions && restore->privileged)
        return member->mode;
    if (member->mode & 07000)
        notice(params->read.notices, NOTICE_DROPPED_MODE, member->name, 0, "setuid, setgid or sticky");
    return member->mode & 0777 & (params->same_permissions ? 0777 : ~params->umask);
}

bool restore_is_late(struct restore *restore, const struct tar_member *member, mode_t mode)
{
    const struct tar_extract_params *params = restore->params;
    return (mode & 07000) || (mode & params->umask) || owner_differs(restore, member) ||
           (!params->no_xattrs && archive_entry_xattr_count(member->entry) > 0) ||
           (!params->no_acls && (archive_entry_acl_types(member->entry) & ARCHIVE_ENTRY_ACL_TYPE_POSIX1E));
}

/* ---- xattrs ---- */

static bool starts(const char *text, const char *with)
{
    return !strncmp(text, with, strlen(with));
}

static void restore_xattrs(struct restore *restore, const struct tar_member *member, int fd)
{
    const struct tar_extract_params *params = restore->params;
    const char *name;
    const void *value;
    size_t n;
    if (params->no_xattrs || !archive_entry_xattr_reset(member->entry))
        return;
    while (archive_entry_xattr_next(member->entry, &name, &value, &n) == ARCHIVE_OK) {
        bool root_only = !starts(name, "user.");
        /* ACLs come as ACLs. */
        if (starts(name, "system.posix_acl_"))
            continue;
        if (root_only && !(restore->privileged && params->same_permissions &&
                           (starts(name, "security.") || starts(name, "trusted.")))) {
            notice(params->read.notices, NOTICE_DROPPED_MODE, member->name, 0, name);
            continue;
        }
        if (fsetxattr(fd, name, value ? value : "", n, 0))
            problem(restore, member->name, name);
    }
}

/* ---- ACLs ---- */

static void put_le(uint8_t *to, uint32_t value, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        to[i] = (uint8_t)(value >> (8 * i));
}

/* The kernel wants the entries in the order of these tags. */
static const struct {
    int tag;
    uint16_t number;
} acl_tags[] = {
    {ARCHIVE_ENTRY_ACL_USER_OBJ, 0x01}, {ARCHIVE_ENTRY_ACL_USER, 0x02}, {ARCHIVE_ENTRY_ACL_GROUP_OBJ, 0x04},
    {ARCHIVE_ENTRY_ACL_GROUP, 0x08},    {ARCHIVE_ENTRY_ACL_MASK, 0x10}, {ARCHIVE_ENTRY_ACL_OTHER, 0x20},
};

/* What the umask takes off an entry: with a mask, the mask stands for the group. */
static unsigned acl_umask(mode_t mask, int tag, bool has_mask)
{
    if (tag == ARCHIVE_ENTRY_ACL_USER_OBJ)
        return mask >> 6 & 7;
    if (tag == ARCHIVE_ENTRY_ACL_OTHER)
        return mask & 7;
    return tag == (has_mask ? ARCHIVE_ENTRY_ACL_MASK : ARCHIVE_ENTRY_ACL_GROUP_OBJ) ? mask >> 3 & 7 : 0;
}

static uint32_t acl_id(struct restore *restore, int tag, int id, const char *name)
{
    if (tag == ARCHIVE_ENTRY_ACL_USER)
        return user_of(restore, name ? name : "", id);
    return tag == ARCHIVE_ENTRY_ACL_GROUP ? group_of(restore, name ? name : "", id) : UINT32_MAX;
}

static bool acl_has_mask(struct archive_entry *entry, int type)
{
    int kind, permissions, tag, id;
    const char *name;
    archive_entry_acl_reset(entry, type);
    while (archive_entry_acl_next(entry, type, &kind, &permissions, &tag, &id, &name) == ARCHIVE_OK)
        if (tag == ARCHIVE_ENTRY_ACL_MASK)
            return true;
    return false;
}

/* The ACL of TYPE, less MASK. Without one: RET->bytes = NULL. */
static gpg_error_t encode_acl(struct restore *restore, struct archive_entry *entry, int type, mode_t mask,
                              struct restore_acl *ret)
{
    int count = archive_entry_acl_reset(entry, type);
    *ret = (struct restore_acl){0};
    if (restore->params->no_acls || count <= 0 || !(archive_entry_acl_types(entry) & type))
        return 0;
    if (count > ACL_ENTRIES_MAX)
        return gpg_error(GPG_ERR_TOO_LARGE);
    bool has_mask = acl_has_mask(entry, type);
    /* Three more than were counted: libarchive adds owner, group and others from the mode. */
    size_t room = 4 + ((size_t)count + 3) * ACL_ENTRY;
    ret->bytes = calloc(1, room);
    if (!ret->bytes)
        return gpg_error_from_syserror();
    put_le(ret->bytes, ACL_VERSION, 4);
    ret->n = 4;
    for (size_t i = 0; i < ARRAY_SIZE(acl_tags); i++) {
        int kind, permissions, tag, id;
        const char *name;
        archive_entry_acl_reset(entry, type);
        while (archive_entry_acl_next(entry, type, &kind, &permissions, &tag, &id, &name) == ARCHIVE_OK) {
            if (tag != acl_tags[i].tag || ret->n + ACL_ENTRY > room)
                continue;
            uint8_t *at = ret->bytes + ret->n;
            put_le(at, acl_tags[i].number, 2);
            put_le(at + 2, (unsigned)permissions & 7 & ~acl_umask(mask, tag, has_mask), 2);
            put_le(at + 4, acl_id(restore, tag, id, name), 4);
            ret->n += ACL_ENTRY;
        }
    }
    return 0;
}

static mode_t acl_mask(const struct restore *restore)
{
    return restore->params->same_permissions ? 0 : restore->params->umask;
}

static void set_acl(struct restore *restore, const char *name, int fd, const char *xattr, const struct restore_acl *acl)
{
    if (acl->bytes && fsetxattr(fd, xattr, acl->bytes, acl->n, 0))
        problem(restore, name, "ACL");
}

/* ---- files ---- */

static void set_time(struct restore *restore, const struct tar_member *member, int folder, const char *leaf)
{
    if (!member->has_mtime)
        return;
    struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, member->mtime};
    int result = leaf ? utimensat(folder, leaf, times, AT_SYMLINK_NOFOLLOW) : futimens(folder, times);
    if (result)
        problem(restore, member->name, "time");
}

void restore_file(struct restore *restore, const struct tar_member *member, int fd, mode_t mode, bool late)
{
    if (late) {
        struct restore_acl acl;
        /* The owner first: a change of owner takes setuid and capabilities away. xattrs before the mode: a file that is
         * read-only takes none. */
        restore_owner(restore, member, fd, "");
        restore_xattrs(restore, member, fd);
        if (fchmod(fd, mode))
            problem(restore, member->name, "mode");
        gpg_error_t error = encode_acl(restore, member->entry, ARCHIVE_ENTRY_ACL_TYPE_ACCESS, acl_mask(restore), &acl);
        if (error) {
            errno = gpg_err_code_to_errno(gpg_err_code(error));
            problem(restore, member->name, "ACL");
        }
        set_acl(restore, member->name, fd, "system.posix_acl_access", &acl);
        free(acl.bytes);
    }
    set_time(restore, member, fd, NULL);
}

void restore_other(struct restore *restore, const struct tar_member *member, int folder, const char *leaf)
{
    restore_owner(restore, member, folder, leaf);
    if (member->kind != TAR_SYMLINK && fchmodat(folder, leaf, restore_mode(restore, member), 0))
        problem(restore, member->name, "mode");
    set_time(restore, member, folder, leaf);
}

/* ---- folders ---- */

void restore_folder_free(struct restore_folder *folder)
{
    free(folder->path);
    free(folder->access.bytes);
    free(folder->inherited.bytes);
}

gpg_error_t restore_folder_begin(struct restore *restore, const struct tar_member *member, int parent, const char *leaf,
                                 const char *path, struct restore_folder *ret)
{
    struct restore_folder folder = {.has_mtime = member->has_mtime, .mtime = member->mtime};
    gpg_error_t error = 0;
    restore_owner(restore, member, parent, leaf);
    folder.mode = restore_mode(restore, member);
    if (!restore->params->no_xattrs && archive_entry_xattr_count(member->entry) > 0) {
        int fd = openat(parent, leaf, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0)
            problem(restore, member->name, "extended attributes");
        else
            restore_xattrs(restore, member, fd);
        if (fd >= 0)
            close(fd);
    }
    error = encode_acl(restore, member->entry, ARCHIVE_ENTRY_ACL_TYPE_ACCESS, acl_mask(restore), &folder.access);
    if (!error)
        error = encode_acl(restore, member->entry, ARCHIVE_ENTRY_ACL_TYPE_DEFAULT, 0, &folder.inherited);
    if (!error && !(folder.path = strdup(path)))
        error = gpg_error_from_syserror();
    if (error)
        restore_folder_free(&folder);
    else
        *ret = folder;
    return error;
}

void restore_folder_end(struct restore *restore, const struct restore_folder *folder)
{
    int fd = beneath_folder(restore->params->root_fd, folder->path, O_RDONLY);
    struct stat stat;
    if (fd < 0) {
        if (errno != ELOOP && errno != ENOTDIR && errno != ENOENT)
            problem(restore, folder->path, "mode and time");
        return;
    }
    /* A setgid bit that came from the folder above stays. */
    mode_t kept = !fstat(fd, &stat) ? stat.st_mode & S_ISGID : 0;
    if (fchmod(fd, folder->mode | kept))
        problem(restore, folder->path, "mode");
    set_acl(restore, folder->path, fd, "system.posix_acl_access", &folder->access);
    set_acl(restore, folder->path, fd, "system.posix_acl_default", &folder->inherited);
    if (folder->has_mtime) {
        struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, folder->mtime};
        if (futimens(fd, times))
            problem(restore, folder->path, "time");
    }
    close(fd);
}
