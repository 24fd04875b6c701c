/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "stores.h"

#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct stores {
    const struct program *program;
    const struct passphrase_source *key_passphrases; /* borrowed */
    struct keystore *keystore;
    struct agent *agent;
    struct trustdb *trustdb;
    char *home; /* absolute */
    bool default_home;
    char ttyname[64]; /* "" where there is no terminal */
    struct certificate *asked_about;
};

static gpg_error_t stores_find_home(struct stores *stores)
{
    struct failure *failure = program_failure(stores->program);
    const char *home = stores->program->options->home;
    struct options_environment environment;
    char *standard = NULL;
    options_environment_get(&environment);
    gpg_error_t err = config_home(NULL, NULL, environment.home, failure, &standard);
    if (err)
        return err;
    stores->default_home = !strcmp(home, standard);
    free(standard);
    if (*home == '/') {
        stores->home = strdup(home);
    } else {
        char *cwd = getcwd(NULL, 0);
        if (!cwd || asprintf(&stores->home, "%s/%s", cwd, home) < 0)
            stores->home = NULL;
        free(cwd);
    }
    return stores->home ? 0 : gpg_error_from_syserror();
}

static char *stores_in_home(const struct stores *stores, const char *base)
{
    char *path = NULL;
    return asprintf(&path, "%s/%s", stores->home, base) < 0 ? NULL : path;
}

/* gpg replaces a keybox by two renames, and for a moment only the old one is there, as NAME~. */
#define RENAME_LOOKS 20
#define RENAME_PAUSE (5 * 1000 * 1000) /* nanoseconds */

static bool stores_ring_exists(const char *path)
{
    const struct timespec pause = {.tv_nsec = RENAME_PAUSE};
    struct stat status;
    char *old = NULL;
    bool exists = stat(path, &status) == 0;
    if (!exists && asprintf(&old, "%s~", path) > 0) {
        for (unsigned looks = 0; !exists && looks < RENAME_LOOKS && stat(old, &status) == 0; looks++) {
            nanosleep(&pause, NULL);
            exists = stat(path, &status) == 0;
        }
        free(old);
    }
    return exists;
}

static gpg_error_t stores_add_home_ring(struct stores *stores, const char *base, bool *ret_exists)
{
    char *path = stores_in_home(stores, base);
    if (!path)
        return gpg_error_from_syserror();
    *ret_exists = stores_ring_exists(path);
    gpg_error_t err = keystore_add_keyring(stores->keystore, path, true);
    free(path);
    return err;
}

static gpg_error_t stores_add_keyboxd(struct stores *stores)
{
    const struct keyboxd_params params = {.home = stores->home, .default_home = stores->default_home};
    struct keyboxd *keyboxd = NULL;
    gpg_error_t err = keyboxd_open(&params, &keyboxd);
    return err ? err : keystore_add_keyboxd(stores->keystore, keyboxd);
}

/* Whether the home's keybox was made by gpgsm for X.509 alone: octets 6 and 7 of its first blob are flags, and bit 1
 * says that gpg uses it too. */
static bool stores_keybox_is_gpgsm(const struct stores *stores)
{
    uint8_t head[8] = {0};
    char *path = stores_in_home(stores, "pubring.kbx");
    const int fd = path ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
    const bool is_read = fd >= 0 && read(fd, head, sizeof head) == (ssize_t)sizeof head;
    if (fd >= 0)
        close(fd);
    free(path);
    return is_read && head[4] == 1 && !(head[7] & 0x02);
}

/* The home's own keyring: the keybox where there is one for gpg, else the old format, as gpg takes them. */
static gpg_error_t stores_add_default_ring(struct stores *stores)
{
    bool exists = false;
    gpg_error_t err = 0;
    if (stores->program->options->use_keyboxd)
        return stores_add_keyboxd(stores);
    if (stores_keybox_is_gpgsm(stores))
        err = stores_add_home_ring(stores, "pubring.gpg", &exists);
    if (!err && !exists)
        err = stores_add_home_ring(stores, "pubring.kbx", &exists);
    if (!err && !exists)
        err = stores_add_home_ring(stores, "pubring.gpg", &exists);
    return err;
}

/* The file that a --keyring means: in the home where it has no slash, below the user's folder where it begins with ~/.
 * What kind it is shows in its bytes, so the prefix that says so is dropped. NULL: out of core. */
static char *stores_ring_path(const struct stores *stores, const char *name)
{
    static const char *const prefixes[] = {"gnupg-ring:", "gnupg-kbx:"};
    struct options_environment environment;
    char *path = NULL;
    for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++)
        if (!strncmp(name, prefixes[i], strlen(prefixes[i])))
            name += strlen(prefixes[i]);
    options_environment_get(&environment);
    if (!strncmp(name, "~/", 2) && environment.home)
        return asprintf(&path, "%s%s", environment.home, name + 1) < 0 ? NULL : path;
    return strchr(name, '/') ? strdup(name) : stores_in_home(stores, name);
}

static gpg_error_t stores_add_ring(struct stores *stores, const char *name)
{
    char *path = stores_ring_path(stores, name);
    if (!path)
        return gpg_error_from_syserror();
    gpg_error_t err = keystore_add_keyring(stores->keystore, path, false);
    free(path);
    return err;
}

static gpg_error_t stores_add_all(struct stores *stores)
{
    const struct options *options = stores->program->options;
    gpg_error_t err = 0;
    for (size_t i = 0; i < options->secret_key_files.n && !err; i++)
        err = keystore_add_secret_file(stores->keystore, options->secret_key_files.items[i], stores->key_passphrases);
    /* Another user's home, as under su or sudo: keys from files and passphrases work without it. */
    if (access(stores->home, X_OK) && errno == EACCES)
        report_warning(stores->program->report, "the home '%s' may not be entered: no key in it is used", stores->home);
    else if (!err && !options->no_default_keyring)
        err = stores_add_default_ring(stores);
    for (size_t i = 0; i < options->keyrings.n && !err; i++)
        err = stores_add_ring(stores, options->keyrings.items[i]);
    return err;
}

static const char *stores_uid(void *context, const struct key *key)
{
    struct stores *stores = context;
    unsigned number = 0;
    bool revoked = false;
    certificate_free(stores->asked_about);
    stores->asked_about = NULL;
    if (keystore_issuer(stores->keystore, key->fpr, key->fpr_n, &stores->asked_about, &number) ||
        certificate_uids(stores->asked_about) == 0)
        return NULL;
    return certificate_uid(stores->asked_about, 0, &revoked);
}

static gpg_error_t stores_add_agent(struct stores *stores)
{
    const struct options *options = stores->program->options;
    static const enum agent_pinentry modes[] = {
        [PINENTRY_DEFAULT] = AGENT_PINENTRY_ASK,
        [PINENTRY_CANCEL] = AGENT_PINENTRY_CANCEL,
        [PINENTRY_ERROR] = AGENT_PINENTRY_ERROR,
        [PINENTRY_LOOPBACK] = AGENT_PINENTRY_LOOPBACK,
    };
    enum agent_pinentry mode = modes[options->pinentry_mode];
    /* A passphrase that was given answers the agent's questions too: nobody would expect a window then. */
    if (options->passphrase.kind != PASSPHRASE_DEFAULT && options->pinentry_mode == PINENTRY_DEFAULT)
        mode = AGENT_PINENTRY_LOOPBACK;
    if (ttyname_r(STDIN_FILENO, stores->ttyname, sizeof stores->ttyname) &&
        ttyname_r(STDERR_FILENO, stores->ttyname, sizeof stores->ttyname))
        stores->ttyname[0] = '\0';
    const char *tty = getenv("GPG_TTY");
    const struct agent_params params = {
        .home = stores->home,
        .default_home = stores->default_home,
        .program = options->agent_program,
        .display = getenv("DISPLAY"),
        .xauthority = getenv("XAUTHORITY"),
        .ttyname = tty                ? tty
                   : *stores->ttyname ? stores->ttyname
                                      : NULL,
        .ttytype = getenv("TERM"),
        .lc_ctype = getenv("LC_CTYPE"),
        .lc_messages = getenv("LC_MESSAGES"),
        .pinentry_user_data = getenv("PINENTRY_USER_DATA"),
        .pinentry = mode,
        .source = stores->key_passphrases,
        .uid = stores_uid,
        .context = stores,
    };
    gpg_error_t err = agent_open(program_failure(stores->program), &params, &stores->agent);
    if (err)
        return err;
    struct secret_provider *provider = agent_provider(stores->agent);
    if (!provider)
        return gpg_error_from_syserror();
    keystore_set_provider(stores->keystore, provider);
    return 0;
}

/* Opened at the start: later the process may be confined. A database that cannot be read trusts nobody. */
static void stores_open_trustdb(struct stores *stores)
{
    char *path = stores_in_home(stores, "trustdb.gpg");
    const bool closed = access(stores->home, X_OK) && errno == EACCES; /* said already */
    if (path && !closed && trustdb_open(NULL, path, &stores->trustdb))
        report_warning(stores->program->report, "'%s' cannot be read: no key is trusted", path);
    free(path);
    keystore_set_trustdb(stores->keystore, stores->trustdb);
    keystore_set_place(stores->keystore, stores->home);
}

gpg_error_t stores_new(const struct program *program, const struct passphrase_source *key_passphrases,
                       struct stores **ret)
{
    struct stores *stores = calloc(1, sizeof *stores);
    if (!stores)
        return gpg_error_from_syserror();
    stores->program = program;
    stores->key_passphrases = key_passphrases;
    gpg_error_t err = stores_find_home(stores);
    if (!err) {
        stores->keystore = keystore_new(program_failure(program));
        err = stores->keystore ? stores_add_all(stores) : gpg_error_from_syserror();
    }
    if (!err)
        err = stores_add_agent(stores);
    if (!err)
        stores_open_trustdb(stores);
    if (err)
        stores_free(stores);
    else
        *ret = stores;
    return err;
}

void stores_free(struct stores *stores)
{
    if (!stores)
        return;
    certificate_free(stores->asked_about);
    keystore_free(stores->keystore);
    agent_free(stores->agent);
    trustdb_free(stores->trustdb);
    free(stores->home);
    free(stores);
}

void stores_start_keyboxd(struct stores *stores)
{
    static const uint8_t nobody[8];
    struct certificate *certificate = NULL;
    unsigned number = 0;
    if (stores->program->options->use_keyboxd &&
        !keystore_issuer(stores->keystore, nobody, sizeof nobody, &certificate, &number))
        certificate_free(certificate);
}

void stores_start_agent(struct stores *stores)
{
    if (agent_connect(NULL, stores->agent))
        report_verbose(stores->program->report, "there is no gpg-agent for '%s'", stores->home);
}

struct keystore *stores_keystore(const struct stores *stores)
{
    return stores->keystore;
}

struct agent *stores_agent(const struct stores *stores)
{
    return stores->agent;
}

const struct trustdb *stores_trustdb(const struct stores *stores)
{
    return stores->trustdb;
}

const char *stores_home(const struct stores *stores)
{
    return stores->home;
}
