/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "outfile.h"

#include "fd.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

/* As the kernel's own limit (path_resolution(7)). */
#define LINKS_MAX 40

#define TEMPORARY_FORM   ".gpgtar-XXXXXX"
#define TEMPORARY_RANDOM 6
/* 36^6 names: when this many are taken, something else is wrong. */
#define TEMPORARY_TRIES 100

struct outfile {
    struct run *run;
    char *shown;  /* the name as it was given, for sentences */
    int folder;   /* O_PATH */
    char *name;   /* in FOLDER, no symlink at the time of opening */
    bool exists;  /* STATUS tells of what has the name */
    bool by_link; /* NAME is a link of procfs to an open file, which no path names */
    struct stat status;
    bool replaces;
    bool special; /* written where it stands: no temporary, no renaming */
    int fd;
    struct stat written;
    char temporary[sizeof TEMPORARY_FORM]; /* in FOLDER; "": FD has no name yet, or its real one */
};

static gpg_error_t fail_here(struct outfile *outfile, int number, const char *verb)
{
    return fail_errno(run_failure(outfile->run), number, "cannot %s '%s'", verb, outfile->shown);
}

/* ---- which file is meant ---- */

static bool in_procfs(int folder)
{
    struct statfs status;
    return fstatfs(folder, &status) == 0 && status.f_type == PROC_SUPER_MAGIC;
}

/* Makes FOLDER and NAME from PATH, which is relative to the folder AT. */
static gpg_error_t split(struct outfile *outfile, int at, const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *base = slash ? slash + 1 : path;
    if (!*path)
        return fail_here(outfile, ENOENT, "make");
    if (!*base || strcmp(base, ".") == 0 || strcmp(base, "..") == 0)
        return fail(run_failure(outfile->run), gpg_error(GPG_ERR_EISDIR), "'%s' is a folder, not a file",
                    outfile->shown);
    char *name = strdup(base);
    char *folder = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
    gpg_error_t error = 0;
    if (!name || !folder) {
        error = gpg_error_from_syserror();
    } else {
        int fd = openat(at, folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0) {
            error = fail_here(outfile, errno, "open the folder of");
        } else {
            if (outfile->folder >= 0)
                close(outfile->folder);
            outfile->folder = fd;
            free(outfile->name);
            outfile->name = name;
            name = NULL;
        }
    }
    free(folder);
    free(name);
    return error;
}

/* Where the link NAME in FOLDER leads, to be freed. */
static gpg_error_t read_link(struct outfile *outfile, char **ret)
{
    char *target = malloc(PATH_MAX);
    if (!target)
        return gpg_error_from_syserror();
    ssize_t n = readlinkat(outfile->folder, outfile->name, target, PATH_MAX - 1);
    if (n < 0) {
        gpg_error_t error = fail_here(outfile, errno, "read the link");
        free(target);
        return error;
    }
    target[n] = 0;
    *ret = target;
    return 0;
}

/* Follows links from PATH until NAME is none, and notes what has it. */
static gpg_error_t resolve(struct outfile *outfile, int dirfd, const char *path)
{
    char *target = NULL;
    gpg_error_t error = split(outfile, dirfd, path);
    for (int links = 0; !error; links++) {
        if (fstatat(outfile->folder, outfile->name, &outfile->status, AT_SYMLINK_NOFOLLOW) != 0) {
            if (errno != ENOENT)
                error = fail_here(outfile, errno, "make");
            break;
        }
        outfile->exists = !S_ISLNK(outfile->status.st_mode);
        if (outfile->exists)
            break;
        if (in_procfs(outfile->folder)) {
            if (fstatat(outfile->folder, outfile->name, &outfile->status, 0) != 0)
                error = fail_here(outfile, errno, "open");
            outfile->exists = outfile->by_link = !error;
            break;
        }
        if (links == LINKS_MAX) {
            error = fail_here(outfile, ELOOP, "make");
            break;
        }
        free(target);
        target = NULL;
        error = read_link(outfile, &target);
        if (!error)
            error = split(outfile, outfile->folder, target);
    }
    free(target);
    return error;
}

/* ---- opening ---- */

/* /dev/stdout and its like: the open file itself, at its position, not the file's beginning. Negative: none of ours. */
static int duplicate(struct outfile *outfile)
{
    char *end;
    struct stat status;
    errno = 0;
    long number = strtol(outfile->name, &end, 10);
    if (errno || *end || number < 0 || number > INT_MAX || fstat((int)number, &status) != 0 ||
        status.st_dev != outfile->status.st_dev || status.st_ino != outfile->status.st_ino)
        return -1;
    return fcntl((int)number, F_DUPFD_CLOEXEC, 0);
}

static gpg_error_t open_special(struct outfile *outfile)
{
    outfile->special = true;
    if (outfile->by_link)
        outfile->fd = duplicate(outfile);
    bool fifo = S_ISFIFO(outfile->status.st_mode);
    while (outfile->fd < 0) {
        /* A blocking open of a FIFO could not be cancelled; a device may mean something else by O_NONBLOCK. */
        outfile->fd = openat(outfile->folder, outfile->name, O_WRONLY | O_CLOEXEC | O_NOCTTY | (fifo ? O_NONBLOCK : 0));
        if (outfile->fd >= 0)
            break;
        if (fifo && errno == ENXIO) {
            /* No reader yet, and nothing to poll for one. */
            struct pollfd wake = {.fd = outfile->run ? run_wake_fd(outfile->run) : -1, .events = POLLIN};
            (void)poll(&wake, 1, 20);
        } else if (errno != EINTR) {
            return fail_here(outfile, errno, "open");
        }
        if (run_cancelled(outfile->run))
            return gpg_error(GPG_ERR_CANCELED);
    }
    return 0;
}

static gpg_error_t temporary_name(char ret_name[sizeof TEMPORARY_FORM])
{
    static const char digits[] = "0123456789abcdefghijklmnopqrstuvwxyz";
    unsigned char random[TEMPORARY_RANDOM];
    if (getrandom(random, sizeof random, 0) != sizeof random)
        return gpg_error_from_syserror();
    memcpy(ret_name, TEMPORARY_FORM, sizeof TEMPORARY_FORM);
    for (size_t i = 0; i < TEMPORARY_RANDOM; i++)
        ret_name[sizeof TEMPORARY_FORM - 1 - TEMPORARY_RANDOM + i] = digits[random[i] % (sizeof digits - 1)];
    return 0;
}

static bool has_proc_entry(int fd, char ret_path[32])
{
    snprintf(ret_path, 32, "/proc/self/fd/%d", fd);
    return access(ret_path, F_OK) == 0;
}

static gpg_error_t open_regular(struct outfile *outfile, mode_t mode)
{
    char path[32];
    outfile->fd = openat(outfile->folder, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, mode);
    if (outfile->fd >= 0) {
        if (has_proc_entry(outfile->fd, path))
            return 0;
        close(outfile->fd); /* without /proc it could never get its name */
        outfile->fd = -1;
    } else if (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL && errno != ENOENT) {
        return fail_here(outfile, errno, "make");
    }
    for (int i = 0; i < TEMPORARY_TRIES; i++) {
        char name[sizeof TEMPORARY_FORM];
        gpg_error_t error = temporary_name(name);
        if (error)
            return error;
        outfile->fd = openat(outfile->folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
        if (outfile->fd >= 0) {
            memcpy(outfile->temporary, name, sizeof name);
            return 0;
        }
        if (errno != EEXIST)
            break;
    }
    return fail_here(outfile, errno, "make");
}

/* Whether what has the name may be written or replaced. */
static gpg_error_t check_existing(struct outfile *outfile)
{
    struct failure *failure = run_failure(outfile->run);
    if (!outfile->exists)
        return 0;
    if (S_ISDIR(outfile->status.st_mode))
        return fail(failure, gpg_error(outfile->replaces ? GPG_ERR_EISDIR : GPG_ERR_EEXIST),
                    "'%s' is a folder, not a file", outfile->shown);
    if (S_ISREG(outfile->status.st_mode) && !outfile->by_link && !outfile->replaces)
        return fail(failure, gpg_error(GPG_ERR_EEXIST), "'%s' exists already", outfile->shown);
    return 0;
}

gpg_error_t outfile_open(struct run *run, int dirfd, const char *name, mode_t mode, enum outfile_exists exists,
                         struct outfile **ret)
{
    struct outfile *outfile = calloc(1, sizeof *outfile);
    if (!outfile)
        return gpg_error_from_syserror();
    outfile->run = run;
    outfile->folder = outfile->fd = -1;
    outfile->replaces = exists == OUTFILE_REPLACE;
    outfile->shown = strdup(name);
    gpg_error_t error = outfile->shown ? resolve(outfile, dirfd, name) : gpg_error_from_syserror();
    if (!error)
        error = check_existing(outfile);
    if (error)
        goto out;
    if (outfile->exists && (outfile->by_link || !S_ISREG(outfile->status.st_mode)))
        error = open_special(outfile);
    else
        error = open_regular(outfile, mode);
    if (!error && fstat(outfile->fd, &outfile->written) != 0)
        error = fail_here(outfile, errno, "make");
out:
    if (error)
        outfile_free(outfile);
    else
        *ret = outfile;
    return error;
}

gpg_error_t outfile_sink(struct outfile *outfile, struct sink **ret)
{
    struct sink *sink;
    gpg_error_t error = fd_sink_new(outfile->run, outfile->fd, outfile->shown, false, &sink);
    if (error)
        return error;
    fd_sink_hold(sink);
    *ret = sink;
    return 0;
}

bool outfile_is(const struct outfile *outfile, dev_t dev, ino_t ino)
{
    return (outfile->written.st_dev == dev && outfile->written.st_ino == ino) ||
           (outfile->exists && outfile->status.st_dev == dev && outfile->status.st_ino == ino);
}

/* ---- commit ---- */

/* fsync says so of what cannot be synced: pipes, terminals, some devices and file systems. */
static bool cannot_sync(int number)
{
    return number == EINVAL || number == EROFS || number == ENOTSUP || number == ENOSYS;
}

static gpg_error_t sync_file(struct outfile *outfile)
{
    while (fsync(outfile->fd) != 0) {
        if (cannot_sync(errno))
            return 0;
        if (errno != EINTR)
            return fail_here(outfile, errno, "write");
    }
    return 0;
}

static gpg_error_t sync_folder(struct outfile *outfile)
{
    int folder = openat(outfile->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    /* A folder that we may write but not read: sync all of its file system instead. */
    int result = folder >= 0 ? fsync(folder) : syncfs(outfile->fd);
    int number = errno;
    if (folder >= 0)
        close(folder);
    return result == 0 || cannot_sync(number)
               ? 0
               : fail_errno(run_failure(outfile->run), number, "cannot write the folder of '%s'", outfile->shown);
}

/* Gives the unnamed file the name NAME: 0 or an errno. */
static int link_unnamed(struct outfile *outfile, const char *name)
{
    char path[32];
    if (!has_proc_entry(outfile->fd, path))
        return errno;
    return linkat(AT_FDCWD, path, outfile->folder, name, AT_SYMLINK_FOLLOW) == 0 ? 0 : errno;
}

/* Gives it a temporary name, as only a named file can replace another: 0 or an errno. */
static int link_temporary(struct outfile *outfile)
{
    int number = EEXIST;
    for (int i = 0; i < TEMPORARY_TRIES && number == EEXIST; i++) {
        char name[sizeof TEMPORARY_FORM];
        if (temporary_name(name))
            return EIO;
        number = link_unnamed(outfile, name);
        if (!number)
            memcpy(outfile->temporary, name, sizeof name);
    }
    return number;
}

/* Renames the temporary where nothing has the name: 0 or an errno. */
static int name_new(struct outfile *outfile)
{
    if (renameat2(outfile->folder, outfile->temporary, outfile->folder, outfile->name, RENAME_NOREPLACE) == 0) {
        outfile->temporary[0] = 0;
        return 0;
    }
    if (errno != EINVAL && errno != ENOSYS)
        return errno;
    /* The file system does not know the flag; the temporary name goes with outfile_free. */
    return linkat(outfile->folder, outfile->temporary, outfile->folder, outfile->name, 0) == 0 ? 0 : errno;
}

/* Renames the temporary over a regular file: 0 or an errno. */
static int name_over(struct outfile *outfile)
{
    struct stat status;
    if (fstatat(outfile->folder, outfile->name, &status, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISREG(status.st_mode))
        return EEXIST; /* not what outfile_open found: a folder, a link, a device */
    if (renameat(outfile->folder, outfile->temporary, outfile->folder, outfile->name) != 0)
        return errno;
    outfile->temporary[0] = 0;
    return 0;
}

static gpg_error_t give_name(struct outfile *outfile)
{
    int number = 0;
    bool named = false;
    if (!outfile->temporary[0]) {
        number = link_unnamed(outfile, outfile->name);
        named = !number;
        if (number == EEXIST && outfile->replaces)
            number = link_temporary(outfile);
    }
    if (!number && !named)
        number = outfile->replaces ? name_over(outfile) : name_new(outfile);
    if (number == EEXIST)
        return fail(run_failure(outfile->run), gpg_error(GPG_ERR_EEXIST), "'%s' was made by somebody else meanwhile",
                    outfile->shown);
    return number ? fail_here(outfile, number, "make") : 0;
}

gpg_error_t outfile_commit(struct outfile *outfile)
{
    if (run_cancelled(outfile->run))
        return gpg_error(GPG_ERR_CANCELED);
    gpg_error_t error = sync_file(outfile);
    if (error || outfile->special)
        return error;
    error = give_name(outfile);
    if (error)
        return error;
    error = sync_folder(outfile);
    if (error && !outfile->exists)
        (void)unlinkat(outfile->folder, outfile->name, 0); /* what was replaced cannot come back */
    return error;
}

void outfile_free(struct outfile *outfile)
{
    if (!outfile)
        return;
    struct stat status;
    /* Only while the name is still our file's. */
    if (outfile->temporary[0] && fstatat(outfile->folder, outfile->temporary, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
        status.st_dev == outfile->written.st_dev && status.st_ino == outfile->written.st_ino)
        (void)unlinkat(outfile->folder, outfile->temporary, 0);
    if (outfile->fd >= 0)
        close(outfile->fd);
    if (outfile->folder >= 0)
        close(outfile->folder);
    free(outfile->name);
    free(outfile->shown);
    free(outfile);
}
