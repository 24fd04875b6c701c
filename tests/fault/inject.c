/* SPDX-License-Identifier: GPL-3.0-or-later */
/* inject: loaded before the C library (LD_PRELOAD), it makes one call of the program fail.
 *
 * FAULT_CALLS  the group of calls that are counted, see the table
 * FAULT_NTH    the number of the call that fails, from 1 on
 * FAULT_HOW    a number: that errno; "short": reads and writes do only a part
 * FAULT_ON     "1": all later calls of the group fail as well (a disk that stays full)
 * FAULT_HIT    a file that comes into being when the call was reached
 * Calls that the C library makes inside itself are not seen, but its malloc is. */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* The library of a program that hides its symbols must show these. */
#define SHOWN __attribute__((visibility("default")))

enum group { READ, WRITE, OPEN, SYNC, NAME, REMOVE, META, LIST, MEMORY, THREAD, CLOSE, OTHER, GROUPS };

static const char *const group_names[GROUPS] = {"read", "write", "open",   "sync",   "name",  "remove",
                                                "meta", "list",  "memory", "thread", "close", "other"};

static struct {
    enum group group;
    long nth;
    int number;
    bool partly, on;
    const char *hit;
} fault = {.group = GROUPS};

static atomic_long calls;
/* Before main it is not the program that works. */
static atomic_bool running;

__attribute__((constructor)) static void setup(void)
{
    const char *group = getenv("FAULT_CALLS"), *nth = getenv("FAULT_NTH"), *how = getenv("FAULT_HOW");
    if (!group || !nth || !how)
        return;
    fault.nth = atol(nth);
    fault.partly = !strcmp(how, "short");
    fault.number = atoi(how);
    fault.on = getenv("FAULT_ON") != NULL;
    fault.hit = getenv("FAULT_HIT");
    for (int i = 0; i < GROUPS; i++)
        if (!strcmp(group, group_names[i]))
            fault.group = (enum group)i;
}

/* Whether this call, one of GROUP, is the one. */
static bool falls(enum group group)
{
    if (fault.group != group || !atomic_load(&running))
        return false;
    long n = atomic_fetch_add(&calls, 1) + 1;
    if (n != fault.nth && !(fault.on && n > fault.nth))
        return false;
    int saved = errno;
    if (fault.hit && n == fault.nth) {
        long fd = syscall(SYS_openat, AT_FDCWD, fault.hit, O_WRONLY | O_CREAT, 0600);
        if (fd >= 0)
            syscall(SYS_close, fd);
    }
    errno = fault.partly ? saved : fault.number;
    return true;
}

static int (*real_main)(int, char **, char **);

static int counted_main(int n, char **arguments, char **environment)
{
    atomic_store(&running, true);
    return real_main(n, arguments, environment);
}

SHOWN int __libc_start_main(int (*entry)(int, char **, char **), int n, char **arguments, void (*init)(void),
                            void (*fini)(void), void (*end)(void), void *stack);
SHOWN int __libc_start_main(int (*entry)(int, char **, char **), int n, char **arguments, void (*init)(void),
                            void (*fini)(void), void (*end)(void), void *stack)
{
    int (*real)(int (*)(int, char **, char **), int, char **, void (*)(void), void (*)(void), void (*)(void), void *);
    *(void **)&real = dlsym(RTLD_NEXT, "__libc_start_main");
    real_main = entry;
    return real(counted_main, n, arguments, init, fini, end, stack);
}

/* The function of this name below us. */
static void *below(const char *name)
{
    return dlsym(RTLD_NEXT, name);
}

#define FORWARD(group, type, failed, name, parameters, arguments)                                                      \
    SHOWN type name parameters;                                                                                        \
    SHOWN type name parameters                                                                                         \
    {                                                                                                                  \
        static type(*real) parameters;                                                                                 \
        if (falls(group))                                                                                              \
            return failed;                                                                                             \
        if (!real)                                                                                                     \
            *(void **)&real = below(#name);                                                                            \
        return real arguments;                                                                                         \
    }

/* Calls that move N bytes: they may also move a part. */
#define FORWARD_BYTES(group, name, parameters, arguments)                                                              \
    SHOWN ssize_t name parameters;                                                                                     \
    SHOWN ssize_t name parameters                                                                                      \
    {                                                                                                                  \
        static ssize_t(*real) parameters;                                                                              \
        if (falls(group)) {                                                                                            \
            if (!fault.partly)                                                                                         \
                return -1;                                                                                             \
            n = n > 1 ? n / 2 : n;                                                                                     \
        }                                                                                                              \
        if (!real)                                                                                                     \
            *(void **)&real = below(#name);                                                                            \
        return real arguments;                                                                                         \
    }

FORWARD_BYTES(READ, read, (int fd, void *to, size_t n), (fd, to, n))
FORWARD_BYTES(READ, pread64, (int fd, void *to, size_t n, off64_t at), (fd, to, n, at))
FORWARD_BYTES(READ, pread, (int fd, void *to, size_t n, off_t at), (fd, to, n, at))
FORWARD_BYTES(READ, __read_chk, (int fd, void *to, size_t n, size_t room), (fd, to, n, room))
FORWARD_BYTES(READ, __pread64_chk, (int fd, void *to, size_t n, off64_t at, size_t room), (fd, to, n, at, room))
/* The only use is to ask for what is cached, which may always be less. */
SHOWN ssize_t preadv64v2(int fd, const struct iovec *parts, int n, off64_t at, int flags)
{
    const long low = (long)at;
    if (falls(READ)) {
        if (!fault.partly)
            return -1;
        return pread(fd, parts->iov_base, parts->iov_len > 1 ? parts->iov_len / 2 : parts->iov_len, at);
    }
    return syscall(SYS_preadv2, fd, parts, (unsigned long)n, low, 0L, flags);
}

/* Of what is said the test wants to read all. */
SHOWN ssize_t write(int fd, const void *from, size_t n)
{
    if (fd != STDERR_FILENO && falls(WRITE)) {
        if (!fault.partly)
            return -1;
        n = n > 1 ? n / 2 : n;
    }
    return syscall(SYS_write, fd, from, n);
}

SHOWN ssize_t writev(int fd, const struct iovec *parts, int n)
{
    if (fd != STDERR_FILENO && falls(WRITE)) {
        if (!fault.partly)
            return -1;
        return syscall(SYS_write, fd, parts->iov_base, parts->iov_len > 1 ? parts->iov_len / 2 : parts->iov_len);
    }
    return syscall(SYS_writev, fd, parts, n);
}

FORWARD_BYTES(WRITE, pwrite64, (int fd, const void *from, size_t n, off64_t at), (fd, from, n, at))
FORWARD_BYTES(WRITE, pwrite, (int fd, const void *from, size_t n, off_t at), (fd, from, n, at))

FORWARD(OPEN, int, -1, __open64_2, (const char *path, int flags), (path, flags))
FORWARD(OPEN, int, -1, __openat64_2, (int at, const char *path, int flags), (at, path, flags))

SHOWN int open64(const char *path, int flags, ...);
SHOWN int open64(const char *path, int flags, ...)
{
    va_list rest;
    va_start(rest, flags);
    int mode = va_arg(rest, int);
    va_end(rest);
    return falls(OPEN) ? -1 : (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

SHOWN int openat64(int at, const char *path, int flags, ...);
SHOWN int openat64(int at, const char *path, int flags, ...)
{
    va_list rest;
    va_start(rest, flags);
    int mode = va_arg(rest, int);
    va_end(rest);
    return falls(OPEN) ? -1 : (int)syscall(SYS_openat, at, path, flags, mode);
}

/* openat2 has no function of its own in this C library. */
SHOWN long syscall(long number, ...)
{
    static long (*real)(long, ...);
    long values[6];
    va_list rest;
    va_start(rest, number);
    for (int i = 0; i < 6; i++)
        values[i] = va_arg(rest, long);
    va_end(rest);
    if (number == SYS_openat2 && falls(OPEN))
        return -1;
    if (!real)
        *(void **)&real = below("syscall");
    return real(number, values[0], values[1], values[2], values[3], values[4], values[5]);
}

FORWARD(SYNC, int, -1, fsync, (int fd), (fd))
FORWARD(SYNC, int, -1, syncfs, (int fd), (fd))

FORWARD(NAME, int, -1, renameat, (int from, const char *old, int to, const char *new), (from, old, to, new))
FORWARD(NAME, int, -1, renameat2, (int from, const char *old, int to, const char *new, unsigned flags),
        (from, old, to, new, flags))
FORWARD(NAME, int, -1, linkat, (int from, const char *old, int to, const char *new, int flags),
        (from, old, to, new, flags))
FORWARD(NAME, int, -1, symlinkat, (const char *text, int at, const char *name), (text, at, name))
FORWARD(NAME, int, -1, mkdirat, (int at, const char *name, mode_t mode), (at, name, mode))
FORWARD(NAME, int, -1, mknodat, (int at, const char *name, mode_t mode, dev_t device), (at, name, mode, device))
FORWARD(REMOVE, int, -1, unlinkat, (int at, const char *name, int flags), (at, name, flags))

FORWARD(META, int, -1, fstat64, (int fd, struct stat64 *to), (fd, to))
FORWARD(META, int, -1, fstatat64, (int at, const char *name, struct stat64 *to, int flags), (at, name, to, flags))
FORWARD(META, int, -1, fchmod, (int fd, mode_t mode), (fd, mode))
FORWARD(META, int, -1, fchmodat, (int at, const char *name, mode_t mode, int flags), (at, name, mode, flags))
FORWARD(META, int, -1, fchownat, (int at, const char *name, uid_t uid, gid_t gid, int flags),
        (at, name, uid, gid, flags))
FORWARD(META, int, -1, futimens, (int fd, const struct timespec times[2]), (fd, times))
FORWARD(META, int, -1, utimensat, (int at, const char *name, const struct timespec times[2], int flags),
        (at, name, times, flags))
FORWARD(META, int, -1, ftruncate64, (int fd, off64_t n), (fd, n))
FORWARD(META, off64_t, -1, lseek64, (int fd, off64_t at, int whence), (fd, at, whence))
FORWARD(META, ssize_t, -1, fgetxattr, (int fd, const char *name, void *to, size_t n), (fd, name, to, n))
FORWARD(META, ssize_t, -1, flistxattr, (int fd, char *to, size_t n), (fd, to, n))
FORWARD(META, int, -1, fsetxattr, (int fd, const char *name, const void *from, size_t n, int flags),
        (fd, name, from, n, flags))
FORWARD(META, ssize_t, -1, readlinkat, (int at, const char *name, char *to, size_t n), (at, name, to, n))

FORWARD(LIST, ssize_t, -1, getdents64, (int fd, void *to, size_t n), (fd, to, n))
FORWARD(LIST, DIR *, NULL, fdopendir, (int fd), (fd))
FORWARD(LIST, struct dirent64 *, NULL, readdir64, (DIR * folder), (folder))

/* Not by dlsym, which allocates itself. */
extern void *__libc_malloc(size_t n);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *old, size_t n);

#ifndef FAULT_NO_MEMORY
/* Of the allocations only those that the program and the libraries which it rests on make themselves: the C library's
 * name service and libgpg-error's streams assert that they always have memory. */
static struct {
    uintptr_t from, to;
} ranges[8];
static size_t n_ranges;

static int note_range(struct dl_phdr_info *object, size_t size, void *context)
{
    (void)size;
    (void)context;
    static const char *const ours[] = {"libarchive.so", "libgcrypt.so", "libassuan.so"};
    bool counts = !*object->dlpi_name; /* the program */
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        counts = counts || strstr(object->dlpi_name, ours[i]);
    for (size_t i = 0; counts && i < object->dlpi_phnum && n_ranges < sizeof ranges / sizeof *ranges; i++) {
        const ElfW(Phdr) *part = &object->dlpi_phdr[i];
        if (part->p_type != PT_LOAD || !(part->p_flags & PF_X))
            continue;
        ranges[n_ranges].from = object->dlpi_addr + part->p_vaddr;
        ranges[n_ranges++].to = object->dlpi_addr + part->p_vaddr + part->p_memsz;
    }
    return 0;
}

static bool memory_falls(const void *caller)
{
    if (fault.group != MEMORY)
        return false;
    for (size_t i = 0; i < n_ranges; i++)
        if ((uintptr_t)caller >= ranges[i].from && (uintptr_t)caller < ranges[i].to)
            return falls(MEMORY);
    return false;
}

__attribute__((constructor)) static void setup_ranges(void)
{
    dl_iterate_phdr(note_range, NULL);
}

#define MEMORY_FALLS() memory_falls(__builtin_return_address(0))

SHOWN void *malloc(size_t n)
{
    return MEMORY_FALLS() ? NULL : __libc_malloc(n);
}

SHOWN void *calloc(size_t n, size_t size)
{
    return MEMORY_FALLS() ? NULL : __libc_calloc(n, size);
}

SHOWN void *realloc(void *old, size_t n)
{
    return MEMORY_FALLS() ? NULL : __libc_realloc(old, n);
}

/* What allocates inside the C library on our behalf. */
SHOWN void *reallocarray(void *old, size_t n, size_t size)
{
    size_t bytes;
    if (MEMORY_FALLS())
        return NULL;
    if (!__builtin_mul_overflow(n, size, &bytes))
        return __libc_realloc(old, bytes);
    errno = ENOMEM;
    return NULL;
}

SHOWN char *strdup(const char *text)
{
    size_t n = strlen(text) + 1;
    char *copy = MEMORY_FALLS() ? NULL : __libc_malloc(n);
    return copy ? memcpy(copy, text, n) : NULL;
}

SHOWN char *strndup(const char *text, size_t most)
{
    size_t n = strnlen(text, most);
    char *copy = MEMORY_FALLS() ? NULL : __libc_malloc(n + 1);
    if (!copy)
        return NULL;
    copy[n] = 0;
    return memcpy(copy, text, n);
}

SHOWN int __vasprintf_chk(char **to, int flag, const char *format, va_list values);
SHOWN int __vasprintf_chk(char **to, int flag, const char *format, va_list values)
{
    static int (*real)(char **, int, const char *, va_list);
    if (MEMORY_FALLS())
        return -1;
    if (!real)
        *(void **)&real = below("__vasprintf_chk");
    return real(to, flag, format, values);
}

SHOWN int __asprintf_chk(char **to, int flag, const char *format, ...);
SHOWN int __asprintf_chk(char **to, int flag, const char *format, ...)
{
    static int (*real)(char **, int, const char *, va_list);
    if (MEMORY_FALLS())
        return -1;
    if (!real)
        *(void **)&real = below("__vasprintf_chk");
    va_list values;
    va_start(values, format);
    int result = real(to, flag, format, values);
    va_end(values);
    return result;
}
#endif

SHOWN int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*body)(void *), void *arg)
{
    static int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    if (falls(THREAD))
        return errno;
    if (!real)
        *(void **)&real = below("pthread_create");
    return real(thread, attributes, body, arg);
}

/* The descriptor is gone all the same, as with the kernel. */
SHOWN int close(int fd)
{
    bool fails = falls(CLOSE);
    int number = errno;
    long result = syscall(SYS_close, fd);
    if (!fails)
        return (int)result;
    errno = number;
    return -1;
}

FORWARD(OTHER, ssize_t, -1, getrandom, (void *to, size_t n, unsigned flags), (to, n, flags))
FORWARD(OTHER, int, -1, poll, (struct pollfd * fds, nfds_t n, int timeout), (fds, n, timeout))
FORWARD(OTHER, int, -1, pipe2, (int fds[2], int flags), (fds, flags))
FORWARD(OTHER, int, -1, flock, (int fd, int operation), (fd, operation))
FORWARD(OTHER, int, -1, posix_fadvise64, (int fd, off64_t at, off64_t n, int advice), (fd, at, n, advice))
