/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "passphrase.h"

#include "signals.h"

#include "stream/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

/* Waits until FD can be read. Signals are let in only while it waits, so that none can come unseen between the look at
 * signals_caught and the wait. */
static gpg_error_t wait_readable(int fd)
{
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    sigset_t ending, before;
    gpg_error_t err = 0;
    int n = 0;

    sigemptyset(&ending);
    sigaddset(&ending, SIGINT);
    sigaddset(&ending, SIGTERM);
    sigaddset(&ending, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &ending, &before);
    while (!err && n <= 0) {
        if (signals_caught())
            err = gpg_error(GPG_ERR_CANCELED);
        else if ((n = ppoll(&ready, 1, NULL, &before)) < 0 && errno != EINTR)
            err = gpg_error_from_syserror();
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return err;
}

/* One byte from FD into *TO; *RET_GOT false at the end. */
static gpg_error_t read_byte(int fd, uint8_t *to, bool *ret_got)
{
    for (;;) {
        gpg_error_t err = wait_readable(fd);
        if (err)
            return err;
        ssize_t n = read(fd, to, 1);
        if (n >= 0) {
            *ret_got = n == 1;
            return 0;
        }
        if (errno != EINTR && errno != EAGAIN)
            return gpg_error_from_syserror();
    }
}

/* The first line of FD, not a byte more: what follows belongs to somebody else. *RET_ANY (may be NULL): whether there
 * was anything, at least a line end. */
static gpg_error_t read_line(int fd, struct secret **ret, bool *ret_any)
{
    struct secret *line = secret_new(PASSPHRASE_MAX + 2);
    bool got = true, any = false;
    size_t n = 0;
    gpg_error_t err = 0;

    if (!line)
        return gpg_error(GPG_ERR_ENOMEM);
    for (;;) {
        err = read_byte(fd, line->bytes + n, &got);
        if (err || !got)
            break;
        any = true;
        if (line->bytes[n] == '\n')
            break;
        if (++n > PASSPHRASE_MAX + 1) {
            err = gpg_error(GPG_ERR_TOO_LARGE);
            break;
        }
    }
    if (!err && n > PASSPHRASE_MAX)
        err = gpg_error(GPG_ERR_TOO_LARGE);
    if (err) {
        secret_free(line);
        return err;
    }
    bytes_wipe(line->bytes + n, line->n - n);
    line->n = n;
    *ret = line;
    if (ret_any)
        *ret_any = any;
    return 0;
}

static gpg_error_t explain(struct failure *failure, gpg_error_t err, const char *from)
{
    if (!err)
        return 0;
    if (gpg_err_code(err) == GPG_ERR_TOO_LARGE)
        return fail(failure, err, "the passphrase from %s is longer than %d bytes", from, PASSPHRASE_MAX);
    if (gpg_err_code(err) == GPG_ERR_CANCELED)
        return fail(failure, err, "stopped while the passphrase was read from %s", from);
    return fail(failure, err, "the passphrase cannot be read from %s: %s", from, gpg_strerror(err));
}

static gpg_error_t from_fd(int fd, struct failure *failure, struct secret **ret)
{
    char from[32];
    snprintf(from, sizeof from, "descriptor %d", fd);
    return explain(failure, read_line(fd, ret, NULL), from);
}

static gpg_error_t from_file(const char *name, struct failure *failure, struct secret **ret)
{
    int fd = open(name, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    gpg_error_t err = fd < 0 ? gpg_error_from_syserror() : read_line(fd, ret, NULL);
    if (fd >= 0)
        close(fd);
    return explain(failure, err, name);
}

/* The rest is read too, so that the command does not die of a closed pipe. */
static gpg_error_t drain(int fd)
{
    uint8_t bytes[512];
    size_t got = sizeof bytes;
    gpg_error_t err = 0;
    while (!err && got == sizeof bytes)
        err = fd_read_full(fd, bytes, sizeof bytes, &got);
    bytes_wipe(bytes, sizeof bytes);
    return err;
}

/* Starts /bin/sh -c COMMAND with /dev/null as its input; *RET_FD reads its output. */
static gpg_error_t start_command(const char *command, pid_t *ret_pid, int *ret_fd)
{
    char shell[] = "sh", option[] = "-c";
    char *const argv[] = {shell, option, (char *)(uintptr_t)command, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t defaults;
    int ends[2];

    if (pipe2(ends, O_CLOEXEC))
        return gpg_error_from_syserror();
    sigemptyset(&defaults);
    sigaddset(&defaults, SIGPIPE);
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    posix_spawnattr_setsigdefault(&attributes, &defaults);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
    int error = posix_spawn(ret_pid, "/bin/sh", &actions, &attributes, argv, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    if (error) {
        close(ends[0]);
        return gpg_error_from_errno(error);
    }
    *ret_fd = ends[0];
    return 0;
}

static gpg_error_t from_command(const char *command, struct failure *failure, struct secret **ret)
{
    struct secret *line = NULL;
    int fd = -1, status = 0;
    pid_t pid = -1;
    gpg_error_t err = start_command(command, &pid, &fd);
    if (err)
        return explain(failure, err, "--passphrase-command");
    err = read_line(fd, &line, NULL);
    if (!err)
        err = drain(fd);
    close(fd);
    if (signals_caught())
        kill(pid, SIGTERM);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    err = explain(failure, err, "--passphrase-command");
    if (!err && !(WIFEXITED(status) && WEXITSTATUS(status) == 0))
        err = WIFEXITED(status) ? fail(failure, gpg_error(GPG_ERR_NO_PASSPHRASE),
                                       "--passphrase-command failed with exit status %d", WEXITSTATUS(status))
                                : fail(failure, gpg_error(GPG_ERR_NO_PASSPHRASE),
                                       "--passphrase-command was ended by signal %d", WTERMSIG(status));
    if (err)
        secret_free(line);
    else
        *ret = line;
    return err;
}

/* Asks once on TERMINAL, whose echo is off. */
static gpg_error_t ask_once(int terminal, const char *what, const char *ending, struct secret **ret)
{
    char prompt[512];
    bool any = false;
    int n = snprintf(prompt, sizeof prompt, "gpgtar: %s%s: ", what, ending);
    if (n >= (int)sizeof prompt)
        n = (int)sizeof prompt - 1;
    gpg_error_t err = fd_write_full(terminal, prompt, (size_t)n);
    if (!err)
        err = read_line(terminal, ret, &any);
    /* The line end that was typed was not shown. */
    gpg_error_t ignored = fd_write_full(terminal, "\n", 1);
    (void)ignored;
    if (!err && !any) {
        secret_free(*ret);
        err = gpg_error(GPG_ERR_CANCELED);
    }
    return err;
}

static gpg_error_t ask_all(int terminal, const struct passphrase_request *request, struct failure *failure,
                           struct secret **ret)
{
    struct secret *first = NULL;
    gpg_error_t err = ask_once(terminal, request->what, "", &first);
    if (err)
        return explain(failure, err, "the terminal");
    for (unsigned i = 0; !err && request->is_new && first->n > 0 && i < request->repeat; i++) {
        struct secret *again = NULL;
        err = explain(failure, ask_once(terminal, request->what, " (again)", &again), "the terminal");
        if (!err && (again->n != first->n || !bytes_equal_secretly(first->bytes, again->bytes, first->n)))
            err = fail(failure, gpg_error(GPG_ERR_BAD_PASSPHRASE), "the two passphrases are not the same");
        if (again)
            secret_free(again);
    }
    if (err)
        secret_free(first);
    else
        *ret = first;
    return err;
}

static gpg_error_t from_terminal(const struct passphrase_request *request, struct failure *failure, struct secret **ret)
{
    struct termios old, silent;
    int terminal = request->batch ? -1 : open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
    if (terminal < 0 || tcgetattr(terminal, &old)) {
        if (terminal >= 0)
            close(terminal);
        return fail(failure, gpg_error(GPG_ERR_NO_PASSPHRASE),
                    "%s is needed, and nobody can be asked%s: use --passphrase-fd, --passphrase-file or "
                    "--passphrase-command",
                    request->what, request->batch ? " with --batch" : " without a terminal");
    }
    silent = old;
    silent.c_lflag &= ~(tcflag_t)(ECHO | ECHOE | ECHOK | ECHONL);
    gpg_error_t err = tcsetattr(terminal, TCSAFLUSH, &silent) ? gpg_error_from_syserror() : 0;
    if (err)
        err = explain(failure, err, "the terminal");
    else
        err = ask_all(terminal, request, failure, ret);
    /* Also after a signal: handlers only set a flag, and the wait above has ended. */
    tcsetattr(terminal, TCSAFLUSH, &old);
    close(terminal);
    return err;
}

gpg_error_t passphrase_get(const struct passphrase_request *request, struct failure *failure, struct secret **ret)
{
    const struct passphrase_origin *source = request->source;
    struct secret *secret = NULL;
    gpg_error_t err = 0;
    switch (source->kind) {
    case PASSPHRASE_FD:
        err = from_fd(source->fd, failure, &secret);
        break;
    case PASSPHRASE_FILE:
        err = from_file(source->name, failure, &secret);
        break;
    case PASSPHRASE_COMMAND:
        err = from_command(source->name, failure, &secret);
        break;
    case PASSPHRASE_DEFAULT:
        err = from_terminal(request, failure, &secret);
        break;
    }
    if (!err && request->is_new && secret->n == 0) {
        secret_free(secret);
        err = fail(failure, gpg_error(GPG_ERR_NO_PASSPHRASE), "%s is empty: it would protect nothing", request->what);
    }
    if (!err)
        *ret = secret;
    return err;
}
