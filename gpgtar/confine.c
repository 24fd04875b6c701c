/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "confine.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Rights that Debian 12's header or older ones do not name: Linux 5.19, 6.2, 6.10. */
#define RIGHT_REFER     ((uint64_t)1 << 13)
#define RIGHT_TRUNCATE  ((uint64_t)1 << 14)
#define RIGHT_IOCTL_DEV ((uint64_t)1 << 15)

#define RIGHTS_READ (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
/* Rights a rule on something that is no folder may have. */
#define RIGHTS_FILE                                                                                                    \
    (LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_READ_FILE | RIGHT_TRUNCATE |      \
     RIGHT_IOCTL_DEV)
#define RIGHTS_ABI_1                                                                                                   \
    (RIGHTS_READ | LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR |        \
     LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_DIR |                     \
     LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO |                       \
     LANDLOCK_ACCESS_FS_MAKE_BLOCK | LANDLOCK_ACCESS_FS_MAKE_SYM)

gpg_error_t confine_secrets(struct failure *failure)
{
    const struct rlimit none = {0, 0};
    if (setrlimit(RLIMIT_CORE, &none))
        return fail(failure, gpg_error_from_syserror(), "core dumps cannot be turned off: %s", strerror(errno));
    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0))
        return fail(failure, gpg_error_from_syserror(), "other processes cannot be kept from tracing this one: %s",
                    strerror(errno));
    return 0;
}

/* Everything that the kernel's version can forbid; EXECUTE stays forbidden everywhere. */
static uint64_t handled_rights(int abi)
{
    uint64_t rights = RIGHTS_ABI_1;
    if (abi >= 2)
        rights |= RIGHT_REFER;
    if (abi >= 3)
        rights |= RIGHT_TRUNCATE;
    if (abi >= 5)
        rights |= RIGHT_IOCTL_DEV;
    return rights;
}

static int allow_below(int ruleset, int folder, uint64_t rights)
{
    struct stat st;
    if (fstat(folder, &st))
        return -1;
    if (!S_ISDIR(st.st_mode))
        rights &= RIGHTS_FILE;
    const struct landlock_path_beneath_attr rule = {.allowed_access = rights, .parent_fd = folder};
    return (int)syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
}

static int restrict_to(const struct confine_folders *folders, int abi)
{
    const uint64_t handled = handled_rights(abi);
    const uint64_t writing = handled & ~(uint64_t)(LANDLOCK_ACCESS_FS_EXECUTE | RIGHT_IOCTL_DEV);
    const struct landlock_ruleset_attr attributes = {.handled_access_fs = handled};
    int ruleset = (int)syscall(SYS_landlock_create_ruleset, &attributes, sizeof attributes.handled_access_fs, 0);
    if (ruleset < 0)
        return -1;
    int result = 0;
    for (size_t i = 0; !result && i < folders->n_write; i++)
        result = allow_below(ruleset, folders->write_fds[i], writing);
    for (size_t i = 0; !result && i < folders->n_read; i++)
        result = allow_below(ruleset, folders->read_fds[i], RIGHTS_READ);
    if (!result && folders->terminal_fd >= 0)
        result = allow_below(ruleset, folders->terminal_fd,
                             (handled & (RIGHTS_READ | LANDLOCK_ACCESS_FS_WRITE_FILE | RIGHT_IOCTL_DEV)));
    if (!result)
        result = (int)syscall(SYS_landlock_restrict_self, ruleset, 0);
    const int saved = errno;
    close(ruleset);
    errno = saved;
    return result;
}

size_t confine_open_system(int ret[CONFINE_SYSTEM_MAX])
{
    static const char *const names[] = {"/etc", "/usr", "/lib", "/lib64", "/run/systemd/userdb", "/var/lib/sss/mc"};
    _Static_assert(ARRAY_SIZE(names) <= CONFINE_SYSTEM_MAX, "room for all");
    size_t n = 0;
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        const int fd = open(names[i], O_PATH | O_CLOEXEC);
        if (fd >= 0)
            ret[n++] = fd;
    }
    return n;
}

gpg_error_t confine_files(const struct confine_folders *folders, struct failure *failure, int *ret_abi)
{
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
        return fail(failure, gpg_error_from_syserror(), "new privileges cannot be given up: %s", strerror(errno));
    int abi = (int)syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
    /* ENOSYS: not built in; EOPNOTSUPP: turned off at boot. */
    if (abi < 1) {
        *ret_abi = 0;
        return 0;
    }
    if (restrict_to(folders, abi))
        return fail(failure, gpg_error_from_syserror(), "this process cannot be confined with Landlock: %s",
                    strerror(errno));
    *ret_abi = abi;
    return 0;
}
