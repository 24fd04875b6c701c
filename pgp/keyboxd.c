/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "keyboxd.h"

#include "agent.h"

#include <assuan.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* gpg waits as long for a daemon that it started: tries, and milliseconds between them. */
#define START_TRIES    50
#define START_INTERVAL 100

struct keyboxd {
    char *home, *socket, *program; /* PROGRAM may be NULL */
    bool must_run;
    assuan_context_t context; /* NULL: not connected */
};

static void keyboxd_disconnect(struct keyboxd *keyboxd)
{
    if (keyboxd->context)
        assuan_release(keyboxd->context);
    keyboxd->context = NULL;
}

void keyboxd_free(struct keyboxd *keyboxd)
{
    if (!keyboxd)
        return;
    keyboxd_disconnect(keyboxd);
    free(keyboxd->home);
    free(keyboxd->socket);
    free(keyboxd->program);
    free(keyboxd);
}

/* keyboxd's socket stands beside gpg-agent's. */
static gpg_error_t socket_beside_agent(const struct keyboxd_params *params, char **ret)
{
    static const char name[] = "S.keyboxd";
    char *agent = NULL;
    gpg_error_t err = agent_socket_name(params->home, params->default_home, &agent);
    if (err)
        return err;
    const char *slash = strrchr(agent, '/');
    size_t folder_n = slash ? (size_t)(slash + 1 - agent) : 0;
    char *socket = malloc(folder_n + sizeof name);
    if (socket) {
        memcpy(socket, agent, folder_n);
        memcpy(socket + folder_n, name, sizeof name);
        *ret = socket;
    } else {
        err = gpg_error_from_syserror();
    }
    free(agent);
    return err;
}

gpg_error_t keyboxd_open(const struct keyboxd_params *params, struct keyboxd **ret)
{
    gpg_error_t err = 0;
    struct keyboxd *keyboxd = calloc(1, sizeof *keyboxd);
    if (!keyboxd)
        return gpg_error_from_syserror();
    keyboxd->must_run = params->must_run;
    keyboxd->home = strdup(params->home);
    if (params->program)
        keyboxd->program = strdup(params->program);
    if (params->socket)
        keyboxd->socket = strdup(params->socket);
    else
        err = socket_beside_agent(params, &keyboxd->socket);
    if (!err && (!keyboxd->home || !keyboxd->socket || (params->program && !keyboxd->program)))
        err = gpg_error(GPG_ERR_ENOMEM);
    if (err)
        keyboxd_free(keyboxd);
    else
        *ret = keyboxd;
    return err;
}

static int log_nothing(assuan_context_t context, void *data, unsigned category, const char *message)
{
    (void)context, (void)data, (void)category, (void)message;
    return 0;
}

/* One try. */
static gpg_error_t connect_once(struct keyboxd *keyboxd)
{
    assuan_context_t context = NULL;
    gpg_error_t err = assuan_new_ext(&context, GPG_ERR_SOURCE_DEFAULT, assuan_get_malloc_hooks(), log_nothing, NULL);
    if (!err)
        err = assuan_socket_connect(context, keyboxd->socket, ASSUAN_INVALID_PID, 0);
    if (err)
        assuan_release(context);
    else
        keyboxd->context = context;
    return err;
}

/* Runs PROGRAM as gpg does; it puts itself into the background once its socket is there. */
static bool start_program(const char *program, const char *home)
{
    const char *const argv[] = {"keyboxd", "--homedir", home, "--daemon", NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, all;
    pid_t pid;
    int status = 0;
    if (posix_spawn_file_actions_init(&actions))
        return false;
    if (posix_spawnattr_init(&attributes)) {
        posix_spawn_file_actions_destroy(&actions);
        return false;
    }
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSID);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
    bool started = posix_spawnp(&pid, program, &actions, &attributes, (char *const *)argv, environ) == 0;
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    if (!started)
        return false;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static bool start_any(const struct keyboxd *keyboxd)
{
    static const char *const programs[] = {"/usr/libexec/keyboxd", "/usr/lib/gnupg/keyboxd", "/usr/lib/gnupg2/keyboxd",
                                           "/usr/local/libexec/keyboxd", "keyboxd"};
    if (keyboxd->program)
        return start_program(keyboxd->program, keyboxd->home);
    for (size_t i = 0; i < ARRAY_SIZE(programs); i++)
        if (start_program(programs[i], keyboxd->home))
            return true;
    return false;
}

static gpg_error_t keyboxd_connect(struct failure *failure, struct keyboxd *keyboxd)
{
    struct sockaddr_un address;
    if (keyboxd->context)
        return 0;
    if (strlen(keyboxd->socket) >= sizeof address.sun_path)
        return fail(failure, gpg_error(GPG_ERR_NO_KEYBOXD), "the name of keyboxd's socket %s is too long",
                    keyboxd->socket);
    gpg_error_t err = connect_once(keyboxd);
    if (!err)
        return 0;
    if (!keyboxd->must_run && start_any(keyboxd)) {
        for (unsigned i = 0; err && i < START_TRIES; i++) {
            struct timespec interval = {.tv_nsec = START_INTERVAL * 1000000L};
            err = connect_once(keyboxd);
            if (err)
                nanosleep(&interval, NULL);
        }
    }
    if (err)
        err = fail(failure, gpg_error(GPG_ERR_NO_KEYBOXD),
                   "common.conf in %s says that the keys are in keyboxd, but keyboxd is not running and cannot be "
                   "started (its socket is %s)",
                   keyboxd->home, keyboxd->socket);
    return err;
}

/* What one search brings. */
struct answer {
    uint8_t *bytes;
    size_t n, room;
};

static gpg_error_t answer_add(void *opaque, const void *bytes, size_t n)
{
    struct answer *answer = opaque;
    if (n > KEYBOXD_ANSWER_MAX - answer->n)
        return gpg_error(GPG_ERR_TOO_LARGE);
    if (n > answer->room - answer->n) {
        size_t room = 2 * (answer->n + n);
        uint8_t *grown = realloc(answer->bytes, room);
        if (!grown)
            return gpg_error_from_syserror();
        answer->bytes = grown;
        answer->room = room;
    }
    memcpy(answer->bytes + answer->n, bytes, n);
    answer->n += n;
    return 0;
}

/* Puts the words of SPEC behind COMMAND. GPG_ERR_INV_USER_ID for what does not fit a line. */
static gpg_error_t search_line(const struct key_spec *spec, char line[ASSUAN_LINELENGTH])
{
    static const char digits[] = "0123456789ABCDEF";
    size_t at = (size_t)snprintf(line, ASSUAN_LINELENGTH, "SEARCH --openpgp --");
    if (!spec)
        return 0;
    line[at++] = ' ';
    if (key_spec_names_key(spec)) {
        at += (size_t)snprintf(line + at, ASSUAN_LINELENGTH - at, spec->kind == SPEC_KEYGRIP ? "&" : "0x");
        for (size_t i = 0; i < spec->id_n; i++) {
            line[at++] = digits[spec->id[i] >> 4];
            line[at++] = digits[spec->id[i] & 15];
        }
        line[at] = '\0';
        return 0;
    }
    size_t n = spec->text_n;
    if (spec->kind == SPEC_WORDS) /* keyboxd cannot search for several: the first one here, the rest in its answer */
        n = strcspn(spec->text, " ") < n ? strcspn(spec->text, " ") : n;
    if (memchr(spec->text, '\n', n) || n + at + 2 > ASSUAN_LINELENGTH - 2)
        return gpg_error(GPG_ERR_INV_USER_ID);
    line[at++] = spec->kind == SPEC_MAIL        ? '<'
                 : spec->kind == SPEC_MAIL_PART ? '@'
                 : spec->kind == SPEC_EXACT     ? '='
                                                : '*';
    memcpy(line + at, spec->text, n);
    line[at + n] = '\0';
    return 0;
}

/* GPG_ERR_EOF that libassuan itself makes (with our error source) means that the connection is gone. */
static bool nothing_more(gpg_error_t err)
{
    return gpg_err_code(err) == GPG_ERR_NOT_FOUND || gpg_err_code(err) == GPG_ERR_NOTHING_FOUND ||
           (gpg_err_code(err) == GPG_ERR_EOF && gpg_err_source(err) != GPG_ERR_SOURCE_DEFAULT);
}

static gpg_error_t ask(struct keyboxd *keyboxd, const char *line, struct answer *answer)
{
    return assuan_transact(keyboxd->context, line, answer_add, answer, NULL, NULL, NULL, NULL);
}

gpg_error_t keyboxd_search(struct failure *failure, struct keyboxd *keyboxd, const struct key_spec *spec,
                           uint8_t **ret_bytes, size_t *ret_n)
{
    struct answer answer = {0};
    char line[ASSUAN_LINELENGTH];
    gpg_error_t err = search_line(spec, line);
    if (!err)
        err = keyboxd_connect(failure, keyboxd);
    if (err)
        return err;
    for (err = ask(keyboxd, line, &answer); !err;) {
        size_t before = answer.n;
        err = ask(keyboxd, "NEXT", &answer);
        if (!err && answer.n == before)
            err = gpg_error(GPG_ERR_NOT_FOUND); /* a match without data would go on for ever */
    }
    if (nothing_more(err)) {
        *ret_bytes = answer.bytes;
        *ret_n = answer.n;
        return 0;
    }
    free(answer.bytes);
    keyboxd_disconnect(keyboxd); /* the rest of an answer may still be on its way */
    if (gpg_err_source(err) == GPG_ERR_SOURCE_DEFAULT && gpg_err_code(err) != GPG_ERR_TOO_LARGE &&
        gpg_err_code(err) != GPG_ERR_ENOMEM) /* not keyboxd's word: the connection's */
        err = gpg_error(GPG_ERR_ASSUAN_SERVER_FAULT);
    return fail(failure, err, "keyboxd of %s cannot be searched: %s", keyboxd->home, gpg_strerror(err));
}
