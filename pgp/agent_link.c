/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent_link.h"

#include <assuan.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* An agent that has just been started may take a moment until it listens: so many looks, so far apart. */
#define START_LOOKS    50
#define START_PAUSE_MS 100

struct agent_link {
    assuan_context_t assuan;
    int wake; /* 0: none */
    bool broken;
};

/* Octets of the hash that name a home's folder of sockets, and the letters they make (zbase32: 5 bits each). */
#define HASH_OCTETS  15
#define HASH_LETTERS (HASH_OCTETS * 8 / 5)

static void hash_name(const char *home, size_t home_n, char out[HASH_LETTERS + 1])
{
    static const char letters[] = "ybndrfg8ejkmcpqxot1uwisza345h769";
    uint8_t digest[20];
    gcry_md_hash_buffer(GCRY_MD_SHA1, digest, home, home_n);
    for (unsigned i = 0; i < HASH_LETTERS; i++) {
        unsigned bit = 5 * i;
        unsigned pair = (unsigned)digest[bit / 8] << 8 | digest[bit / 8 + 1];
        out[i] = letters[pair >> (11 - bit % 8) & 31];
    }
    out[HASH_LETTERS] = '\0';
}

/* A folder for us alone; made where it is missing. */
static bool own_folder(const char *name)
{
    struct stat stat_;
    if (mkdir(name, 0700) && errno != EEXIST)
        return false;
    return stat(name, &stat_) == 0 && S_ISDIR(stat_.st_mode) && stat_.st_uid == getuid() &&
           !(stat_.st_mode & (S_IRWXG | S_IRWXO));
}

/* The folder of sockets below /run into OUT; false: they are in the home. */
static bool run_folder(const char *home, size_t home_n, bool default_home, char *out, size_t out_n)
{
    static const char *const bases[] = {"/run/gnupg", "/run", "/var/run/gnupg", "/var/run"};
    struct stat stat_;
    for (unsigned i = 0; i < ARRAY_SIZE(bases); i++) {
        snprintf(out, out_n, "%s/user/%u", bases[i], (unsigned)getuid());
        if (stat(out, &stat_) || !S_ISDIR(stat_.st_mode))
            continue;
        size_t n = strlen(out);
        snprintf(out + n, out_n - n, "/gnupg");
        if (stat_.st_uid != getuid() || !own_folder(out))
            return false;
        if (default_home)
            return true;
        char hash[HASH_LETTERS + 1];
        hash_name(home, home_n, hash);
        n = strlen(out);
        snprintf(out + n, out_n - n, "/d.%s", hash);
        return own_folder(out);
    }
    return false;
}

gpg_error_t agent_socket_name(const char *home, bool default_home, char **ret)
{
    char folder[128];
    size_t home_n = strlen(home);
    while (home_n > 1 && home[home_n - 1] == '/')
        home_n--;
    bool below_run = run_folder(home, home_n, default_home, folder, sizeof folder);
    int got =
        below_run ? asprintf(ret, "%s/S.gpg-agent", folder) : asprintf(ret, "%.*s/S.gpg-agent", (int)home_n, home);
    return got < 0 ? gpg_error(GPG_ERR_ENOMEM) : 0;
}

/* Runs the agent, which goes into the background and ends its first process once it listens. It gets no descriptor of
 * ours, default signals, and a process group of its own, so that a Ctrl-C meant for us does not reach it. */
static gpg_error_t spawn(const char *program, const char *home)
{
    char *const argv[] = {(char *)(uintptr_t)program,     (char *)(uintptr_t) "--homedir",
                          (char *)(uintptr_t)home,        (char *)(uintptr_t) "--use-standard-socket",
                          (char *)(uintptr_t) "--daemon", NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t all, none;
    pid_t pid;
    int status = 0;
    sigfillset(&all);
    sigemptyset(&none);
    int error = posix_spawn_file_actions_init(&actions);
    if (error)
        return gpg_error_from_errno(error);
    error = posix_spawnattr_init(&attributes);
    if (error) {
        posix_spawn_file_actions_destroy(&actions);
        return gpg_error_from_errno(error);
    }
    for (int fd = 0; fd < 3 && !error; fd++)
        error = posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", fd ? O_WRONLY : O_RDONLY, 0);
    if (!error)
        error = posix_spawn_file_actions_addclosefrom_np(&actions, 3);
    if (!error)
        error = posix_spawnattr_setsigdefault(&attributes, &all);
    if (!error)
        error = posix_spawnattr_setsigmask(&attributes, &none);
    if (!error)
        error = posix_spawnattr_setflags(&attributes,
                                         POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
    if (!error)
        error = posix_spawnp(&pid, program, &actions, &attributes, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    if (error)
        return gpg_error_from_errno(error);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    return 0;
}

/* libassuan would look for log files in the environment otherwise. */
static int log_nothing(assuan_context_t assuan, void *hook, unsigned category, const char *message)
{
    (void)assuan;
    (void)hook;
    (void)category;
    (void)message;
    return 0;
}

static gpg_error_t connect_once(const char *socket_name, assuan_context_t *ret)
{
    assuan_context_t assuan = NULL;
    gpg_error_t err = assuan_new_ext(&assuan, GPG_ERR_SOURCE_DEFAULT, assuan_get_malloc_hooks(), log_nothing, NULL);
    if (err)
        return err;
    assuan_set_flag(assuan, ASSUAN_NO_LOGGING, 1);
    err = assuan_socket_connect(assuan, socket_name, ASSUAN_INVALID_PID, 0);
    if (err) {
        assuan_release(assuan);
        return err;
    }
    *ret = assuan;
    return 0;
}

static gpg_error_t start_and_connect(struct failure *failure, const struct agent_params *params,
                                     const char *socket_name, assuan_context_t *ret)
{
    const char *program = params->program ? params->program : "gpg-agent";
    if (strlen(socket_name) >= sizeof((struct sockaddr_un *)NULL)->sun_path)
        return fail(failure, gpg_error(GPG_ERR_NO_AGENT),
                    "gpg-agent cannot have a socket for %s: the name of the folder is too long for one (%zu octets)",
                    params->home, sizeof((struct sockaddr_un *)NULL)->sun_path);
    if (access(params->home, F_OK))
        return fail(failure, gpg_error(GPG_ERR_NO_AGENT), "there is no home folder %s: no gpg-agent can run for it",
                    params->home);
    gpg_error_t err = spawn(program, params->home);
    if (err)
        return fail(failure, gpg_error(GPG_ERR_NO_AGENT), "no gpg-agent runs for %s, and %s cannot be started: %s",
                    params->home, program, gpg_strerror(err));
    for (unsigned look = 0; look < START_LOOKS; look++) {
        err = connect_once(socket_name, ret);
        if (!err)
            return 0;
        /* The first process has ended: what is there now is either about to listen or was refused. */
        struct timespec pause = {0, START_PAUSE_MS * 1000000L};
        nanosleep(&pause, NULL);
    }
    return fail(failure, gpg_error(GPG_ERR_NO_AGENT), "%s was started for %s, but does not answer at %s", program,
                params->home, socket_name);
}

/* An option that the agent does not know does not matter. */
static gpg_error_t send_option(struct agent_link *link, const char *name, const char *value)
{
    char line[AGENT_LINE_MAX];
    if (!value || strpbrk(value, "\r\n") || strlen(name) + strlen(value) + sizeof "OPTION =" > sizeof line)
        return 0;
    snprintf(line, sizeof line, *value ? "OPTION %s=%s" : "OPTION %s", name, value);
    gpg_error_t err = agent_link_command(link, line, NULL);
    return gpg_err_code(err) == GPG_ERR_ASSUAN_SERVER_FAULT ? err : 0;
}

static gpg_error_t send_pinentry_mode(struct failure *failure, struct agent_link *link,
                                      const struct agent_params *params)
{
    static const char *const lines[] = {
        [AGENT_PINENTRY_CANCEL] = "OPTION pinentry-mode=cancel",
        [AGENT_PINENTRY_ERROR] = "OPTION pinentry-mode=error",
        [AGENT_PINENTRY_LOOPBACK] = "OPTION pinentry-mode=loopback",
    };
    if (params->pinentry == AGENT_PINENTRY_ASK)
        return 0;
    gpg_error_t err = agent_link_command(link, lines[params->pinentry], NULL);
    if (!err || gpg_err_code(err) == GPG_ERR_ASSUAN_SERVER_FAULT)
        return err;
    return fail(failure, err, "gpg-agent of %s refuses %s: %s", params->home, strchr(lines[params->pinentry], ' ') + 1,
                gpg_strerror(err));
}

static gpg_error_t send_options(struct failure *failure, struct agent_link *link, const struct agent_params *params)
{
    const struct {
        const char *name, *value;
    } options[] = {
        {"display", params->display},   {"xauthority", params->xauthority},
        {"ttyname", params->ttyname},   {"ttytype", params->ttytype},
        {"lc-ctype", params->lc_ctype}, {"lc-messages", params->lc_messages},
        {"allow-pinentry-notify", ""},  {"pinentry-user-data", params->pinentry_user_data},
        {"agent-awareness", "2.1.0"},
    };
    gpg_error_t err = agent_link_command(link, "RESET", NULL);
    for (size_t i = 0; i < ARRAY_SIZE(options) && !err; i++)
        err = send_option(link, options[i].name, options[i].value);
    return err ? err : send_pinentry_mode(failure, link, params);
}

gpg_error_t agent_link_open(struct failure *failure, const struct agent_params *params, struct agent_link **ret)
{
    char *socket_name = NULL;
    struct agent_link *link = calloc(1, sizeof *link);
    if (!link)
        return gpg_error_from_syserror();
    gpg_error_t err = agent_socket_name(params->home, params->default_home, &socket_name);
    if (err)
        goto out;
    err = connect_once(socket_name, &link->assuan);
    if (err && params->must_run)
        err = fail(failure, gpg_error(GPG_ERR_NO_AGENT), "no gpg-agent runs for %s", params->home);
    else if (err)
        err = start_and_connect(failure, params, socket_name, &link->assuan);
    if (err)
        goto out;
    link->wake = params->wake;
    err = send_options(failure, link, params);
    if (err) {
        fail(failure, err, "gpg-agent of %s does not answer: %s", params->home, gpg_strerror(err));
        goto out;
    }
    *ret = link;
    link = NULL;
out:
    free(socket_name);
    agent_link_free(link);
    return err;
}

void agent_link_free(struct agent_link *link)
{
    if (!link)
        return;
    assuan_release(link->assuan);
    free(link);
}

/* One command in progress. */
struct transaction {
    struct agent_link *link;
    const struct agent_command *command;
    struct secret *data;
    size_t data_n;
    gpg_error_t error; /* the first of our own */
};

static gpg_error_t take_data(struct transaction *transaction, const void *bytes, size_t n)
{
    if (!transaction->command->ret_data || n > SECRET_MAX - transaction->data_n)
        return gpg_error(GPG_ERR_TOO_LARGE);
    if (!transaction->data)
        transaction->data = secret_new(SECRET_MAX);
    if (!transaction->data)
        return gpg_error(GPG_ERR_ENOMEM);
    memcpy(transaction->data->bytes + transaction->data_n, bytes, n);
    transaction->data_n += n;
    return 0;
}

static bool has_keyword(const char *line, const char *keyword)
{
    size_t n = strlen(keyword);
    return strncmp(line, keyword, n) == 0 && (line[n] == '\0' || line[n] == ' ');
}

/* Answers what the agent asks, or cancels the command. */
static gpg_error_t take_inquiry(struct transaction *transaction, const char *line)
{
    const struct agent_command *command = transaction->command;
    assuan_context_t assuan = transaction->link->assuan;
    const void *bytes = NULL;
    size_t n = 0;
    for (size_t i = 0; i < command->answer_n && !transaction->error; i++)
        if (has_keyword(line, command->answers[i].keyword))
            transaction->error = command->answers[i].give(command->answers[i].context, &bytes, &n);
    if (transaction->error)
        return assuan_write_line(assuan, "CAN");
    assuan_begin_confidential(assuan);
    gpg_error_t err = n ? assuan_send_data(assuan, bytes, n) : 0;
    if (!err)
        err = assuan_send_data(assuan, NULL, 0); /* the last line of it, and END */
    assuan_end_confidential(assuan);
    return err;
}

/* Waits until the agent says something, perhaps for as long as somebody thinks about a passphrase. */
static gpg_error_t wait_for_agent(struct agent_link *link)
{
    assuan_fd_t active[2]; /* libassuan wants room for two */
    if (!link->wake || assuan_pending_line(link->assuan) ||
        assuan_get_active_fds(link->assuan, 0, active, ARRAY_SIZE(active)) < 1)
        return 0;
    for (;;) {
        struct pollfd fds[] = {{.fd = active[0], .events = POLLIN}, {.fd = link->wake, .events = POLLIN}};
        int got = poll(fds, ARRAY_SIZE(fds), -1);
        if (got < 0 && errno != EINTR)
            return gpg_error_from_syserror();
        if (got > 0 && fds[1].revents)
            return gpg_error(GPG_ERR_CANCELED);
        if (got > 0)
            return 0;
    }
}

/* One response. *RET_DONE: it was the last, and *RET_RESULT is what came of the command. */
static gpg_error_t take_response(struct transaction *transaction, bool *ret_done, gpg_error_t *ret_result)
{
    assuan_context_t assuan = transaction->link->assuan;
    assuan_response_t response;
    char *line;
    int n, offset;
    gpg_error_t err = wait_for_agent(transaction->link);
    if (!err)
        err = assuan_client_read_response(assuan, &line, &n);
    if (!err)
        err = assuan_client_parse_response(assuan, line, n, &response, &offset);
    if (err)
        return err;
    line += offset;
    n -= offset;
    switch (response) {
    case ASSUAN_RESPONSE_OK:
        *ret_done = true;
        return 0;
    case ASSUAN_RESPONSE_ERROR:
        *ret_done = true;
        *ret_result = (gpg_error_t)strtoul(line, NULL, 10);
        return *ret_result ? 0 : gpg_error(GPG_ERR_ASS_INV_RESPONSE);
    case ASSUAN_RESPONSE_DATA:
        if (!transaction->error)
            transaction->error = take_data(transaction, line, (size_t)n);
        return 0;
    case ASSUAN_RESPONSE_INQUIRE:
        return take_inquiry(transaction, line);
    case ASSUAN_RESPONSE_STATUS:
        if (transaction->command->status && !transaction->error)
            transaction->error = transaction->command->status(transaction->command->status_context, line);
        return 0;
    default:
        return 0;
    }
}

static gpg_error_t converse(struct transaction *transaction, const char *line)
{
    bool done = false;
    gpg_error_t result = 0;
    gpg_error_t err = assuan_write_line(transaction->link->assuan, line);
    while (!err && !done)
        err = take_response(transaction, &done, &result);
    if (err) {
        transaction->link->broken = true;
        return gpg_err_code(err) == GPG_ERR_CANCELED ? err : gpg_error(GPG_ERR_ASSUAN_SERVER_FAULT);
    }
    /* If the failure was ours, the agent only says that we cancelled. */
    return transaction->error ? transaction->error : result;
}

gpg_error_t agent_link_command(struct agent_link *link, const char *line, const struct agent_command *command)
{
    static const struct agent_command nothing;
    struct transaction transaction = {.link = link, .command = command ? command : &nothing};
    struct secret *data = NULL;
    if (strlen(line) > AGENT_LINE_MAX)
        return gpg_error(GPG_ERR_ASS_LINE_TOO_LONG);
    if (link->broken)
        return gpg_error(GPG_ERR_ASSUAN_SERVER_FAULT);
    gpg_error_t err = converse(&transaction, line);
    if (!err && transaction.command->ret_data) {
        data = transaction.data ? secret_from(transaction.data->bytes, transaction.data_n) : secret_new(0);
        if (data)
            *transaction.command->ret_data = data;
        else
            err = gpg_error(GPG_ERR_ENOMEM);
    }
    secret_free(transaction.data);
    return err;
}

bool agent_link_broken(const struct agent_link *link)
{
    return link->broken;
}
