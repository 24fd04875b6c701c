/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The kernel takes PATH_MAX bytes with the NUL. */
#define PIECE_MAX (PATH_MAX - 1)

static int open_resolved(int root, const char *path, int flags, uint64_t resolve)
{
    struct open_how how = {.flags = (unsigned)(flags | O_CLOEXEC), .resolve = resolve};
    return (int)syscall(SYS_openat2, root, path, &how, sizeof how);
}

static bool no_openat2(void)
{
    /* Sandboxes answer EPERM for calls that they do not know. */
    return errno == ENOSYS || errno == EPERM;
}

/* One component, without openat2. */
static int open_component(int folder, const char *name, int flags)
{
    int fd = openat(folder, name, flags | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0 || (errno != ENOTDIR && errno != ELOOP))
        return fd;
    struct stat stat;
    errno = !fstatat(folder, name, &stat, AT_SYMLINK_NOFOLLOW) && S_ISLNK(stat.st_mode) ? ELOOP : ENOTDIR;
    return -1;
}

static int open_by_components(int root, char *path, int flags)
{
    int folder = root;
    for (char *component = path; component;) {
        char *slash = strchr(component, '/');
        if (slash)
            *slash = '\0';
        int next = open_component(folder, component, slash ? O_PATH : flags);
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

/* A path of at most PIECE_MAX bytes. */
static int open_piece(int root, char *path, int flags)
{
    int fd = open_resolved(root, path, flags | O_DIRECTORY, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
    if (fd >= 0 || !no_openat2())
        return fd;
    return open_by_components(root, path, flags);
}

static int open_pieces(int root, char *path, int flags)
{
    int folder = root;
    for (char *at = path; at;) {
        char *cut = NULL;
        if (strlen(at) > PIECE_MAX) {
            cut = at + PIECE_MAX;
            while (cut > at && *cut != '/')
                cut--;
            if (cut == at) {
                errno = ENAMETOOLONG;
                cut = NULL;
                if (folder != root)
                    close(folder);
                return -1;
            }
            *cut = '\0';
        }
        int next = open_piece(folder, at, cut ? O_PATH : flags);
        int saved = errno;
        if (folder != root)
            close(folder);
        if (next < 0) {
            errno = saved;
            return -1;
        }
        folder = next;
        at = cut ? cut + 1 : NULL;
    }
    return folder;
}

int beneath_folder(int root, const char *path, int flags)
{
    char *copy = strdup(*path ? path : ".");
    if (!copy)
        return -1;
    int fd = open_pieces(root, copy, flags);
    int saved = errno;
    free(copy);
    errno = saved;
    return fd;
}

int beneath_parent(int root, const char *path, int flags, const char **ret_leaf)
{
    const char *slash = strrchr(path, '/');
    if (!slash) {
        *ret_leaf = path;
        return beneath_folder(root, ".", flags);
    }
    char *parent = strndup(path, (size_t)(slash - path));
    if (!parent)
        return -1;
    int fd = open_pieces(root, parent, flags);
    int saved = errno;
    free(parent);
    errno = saved;
    *ret_leaf = slash + 1;
    return fd;
}

bool beneath_climbs(const char *target)
{
    bool descended = false;
    for (const char *at = target; *at;) {
        at += strspn(at, "/");
        size_t n = strcspn(at, "/");
        if (n == 2 && !strncmp(at, "..", 2)) {
            if (descended)
                return true;
        } else if (n && !(n == 1 && *at == '.')) {
            descended = true;
        }
        at += n;
    }
    return false;
}

bool beneath_escapes(int root, const char *path)
{
    if (strlen(path) > PIECE_MAX)
        return true;
    int fd = open_resolved(root, path, O_PATH, RESOLVE_BENEATH);
    if (fd >= 0) {
        close(fd);
        return false;
    }
    return no_openat2() || errno == EAGAIN || errno == EXDEV;
}
