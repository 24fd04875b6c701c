/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "keys.h"

#include "config.h"
#include "confine.h"
#include "passphrase.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct keys {
    const struct program *program;
    struct keystore *store;
    struct agent *agent;
    struct trustdb *trustdb;
    char *home; /* absolute */
    bool default_home;
    char ttyname[64];                             /* "" where there is no terminal */
    struct passphrase_source key_passphrases;     /* for locked keys and the agent's loopback */
    struct passphrase_source message_passphrases; /* for archives */
    struct secret *given;                         /* read from fd, file or command: asked once */
    struct certificate *asked_about;
};

void chosen_keys_clear(struct chosen_keys *chosen)
{
    for (size_t i = 0; i < chosen->n; i++)
        certificate_free(chosen->items[i].certificate);
    free(chosen->items);
    chosen->items = NULL;
    chosen->n = 0;
}

/* Where CHOSEN has KEY; -1: nowhere. */
static ptrdiff_t chosen_keys_index(const struct chosen_keys *chosen, const struct key *key)
{
    for (size_t i = 0; i < chosen->n; i++) {
        const struct key *other = certificate_key(chosen->items[i].certificate, chosen->items[i].number);
        if (other->fpr_n == key->fpr_n && !memcmp(other->fpr, key->fpr, key->fpr_n))
            return (ptrdiff_t)i;
    }
    return -1;
}

static gpg_error_t chosen_keys_add(struct chosen_keys *chosen, struct certificate *takes_certificate, unsigned number,
                                   bool hidden)
{
    struct chosen_key *items = realloc(chosen->items, (chosen->n + 1) * sizeof *items);
    if (!items) {
        certificate_free(takes_certificate);
        return gpg_error_from_syserror();
    }
    chosen->items = items;
    items[chosen->n++] = (struct chosen_key){.certificate = takes_certificate, .number = number, .hidden = hidden};
    return 0;
}

/* A key named twice is a recipient once: as it is named last, which is what gpg does. */
static gpg_error_t chosen_keys_add_last(struct chosen_keys *chosen, struct certificate *takes_certificate,
                                        unsigned number, bool hidden)
{
    const ptrdiff_t earlier = chosen_keys_index(chosen, certificate_key(takes_certificate, number));
    if (earlier >= 0) {
        struct chosen_key *item = &chosen->items[earlier];
        certificate_free(item->certificate);
        memmove(item, item + 1, (chosen->n - (size_t)earlier - 1) * sizeof *item);
        chosen->n--;
    }
    return chosen_keys_add(chosen, takes_certificate, number, hidden);
}

/* ---- passphrases ---- */

/* A copy of the passphrase that fd, file or command gave; those can be read only once. */
static gpg_error_t keys_given(struct keys *keys, bool is_new, struct secret **ret)
{
    if (!keys->given) {
        const struct passphrase_request request = {
            .source = &keys->program->options->passphrase, .is_new = is_new, .batch = true, .what = "Passphrase"};
        gpg_error_t err = passphrase_get(&request, program_failure(keys->program), &keys->given);
        if (err)
            return err;
    }
    *ret = secret_from(keys->given->bytes, keys->given->n);
    return *ret ? 0 : gpg_error_from_syserror();
}

static const char *keys_uid(void *context, const struct key *key)
{
    struct keys *keys = context;
    unsigned number = 0;
    bool revoked = false;
    certificate_free(keys->asked_about);
    keys->asked_about = NULL;
    if (keystore_issuer(keys->store, key->fpr, key->fpr_n, &keys->asked_about, &number) ||
        certificate_uids(keys->asked_about) == 0)
        return NULL;
    return certificate_uid(keys->asked_about, 0, &revoked);
}

static gpg_error_t keys_ask_terminal(struct keys *keys, const char *what, bool is_new, struct secret **ret)
{
    const struct options *options = keys->program->options;
    const struct passphrase_origin terminal = {.kind = PASSPHRASE_DEFAULT};
    const struct passphrase_request request = {.source = &terminal,
                                               .is_new = is_new,
                                               .repeat = options->passphrase_repeat,
                                               .batch = options->batch,
                                               .what = what};
    return passphrase_get(&request, program_failure(keys->program), ret);
}

static gpg_error_t keys_ask_for_key(void *context, const struct key *key, unsigned attempt, bool is_new,
                                    struct secret **ret)
{
    struct keys *keys = context;
    if (keys->program->options->passphrase.kind != PASSPHRASE_DEFAULT)
        return attempt ? gpg_error(GPG_ERR_NO_PASSPHRASE) : keys_given(keys, is_new, ret);
    char what[128] = "Passphrase";
    char fpr[2 * KEY_FPR_MAX + 1];
    if (key) {
        key_fpr_hex(key, fpr);
        snprintf(what, sizeof what, "%sPassphrase for key %s", attempt ? "Wrong. " : "", fpr);
    }
    return keys_ask_terminal(keys, what, is_new, ret);
}

/* Whether questions go to gpg-agent's pinentry and not to our own terminal. */
static bool keys_agent_asks(const struct keys *keys)
{
    const struct options *options = keys->program->options;
    return options->passphrase.kind == PASSPHRASE_DEFAULT && options->pinentry_mode != PINENTRY_LOOPBACK &&
           options->secret_key_files.n == 0;
}

static gpg_error_t keys_ask_agent(struct keys *keys, unsigned attempt, bool is_new, struct secret **ret)
{
    return agent_get_passphrase(program_failure(keys->program), keys->agent, NULL, attempt ? "Bad passphrase" : NULL,
                                "Passphrase:",
                                is_new ? "Please enter the passphrase that will protect the archive"
                                       : "Please enter the passphrase of the archive",
                                is_new, ret);
}

static gpg_error_t keys_ask_for_message(void *context, const struct key *key, unsigned attempt, bool is_new,
                                        struct secret **ret)
{
    struct keys *keys = context;
    (void)key;
    if (keys->program->options->passphrase.kind != PASSPHRASE_DEFAULT)
        return attempt ? gpg_error(GPG_ERR_NO_PASSPHRASE) : keys_given(keys, is_new, ret);
    if (keys_agent_asks(keys))
        return keys_ask_agent(keys, attempt, is_new, ret);
    return keys_ask_terminal(keys, attempt ? "Wrong. Passphrase of the archive" : "Passphrase of the archive", is_new,
                             ret);
}

gpg_error_t keys_new_passphrase(struct keys *keys, struct secret **ret)
{
    if (keys->program->options->passphrase.kind != PASSPHRASE_DEFAULT)
        return keys_given(keys, true, ret);
    if (keys_agent_asks(keys))
        return keys_ask_agent(keys, 0, true, ret);
    return keys_ask_terminal(keys, "New passphrase", true, ret);
}

const struct passphrase_source *keys_passphrases(struct keys *keys)
{
    return &keys->message_passphrases;
}

/* ---- the stores ---- */

static gpg_error_t keys_find_home(struct keys *keys)
{
    struct failure *failure = program_failure(keys->program);
    const char *home = keys->program->options->home;
    struct options_environment environment;
    char *standard = NULL;
    options_environment_get(&environment);
    gpg_error_t err = config_home(NULL, NULL, environment.home, failure, &standard);
    if (err)
        return err;
    keys->default_home = !strcmp(home, standard);
    free(standard);
    if (*home == '/') {
        keys->home = strdup(home);
    } else {
        char *cwd = getcwd(NULL, 0);
        if (!cwd || asprintf(&keys->home, "%s/%s", cwd, home) < 0)
            keys->home = NULL;
        free(cwd);
    }
    return keys->home ? 0 : gpg_error_from_syserror();
}

static char *keys_in_home(const struct keys *keys, const char *base)
{
    char *path = NULL;
    return asprintf(&path, "%s/%s", keys->home, base) < 0 ? NULL : path;
}

static gpg_error_t keys_add_home_ring(struct keys *keys, const char *base, bool *ret_exists)
{
    char *path = keys_in_home(keys, base);
    if (!path)
        return gpg_error_from_syserror();
    struct stat status;
    *ret_exists = stat(path, &status) == 0;
    gpg_error_t err = keystore_add_keyring(keys->store, path, true);
    free(path);
    return err;
}

static gpg_error_t keys_add_keyboxd(struct keys *keys)
{
    const struct keyboxd_params params = {.home = keys->home, .default_home = keys->default_home};
    struct keyboxd *keyboxd = NULL;
    gpg_error_t err = keyboxd_open(&params, &keyboxd);
    return err ? err : keystore_add_keyboxd(keys->store, keyboxd);
}

/* Whether the home's keybox was made by gpgsm for X.509 alone: octets 6 and 7 of its first blob are flags, and bit 1
 * says that gpg uses it too. */
static bool keys_keybox_is_gpgsm(const struct keys *keys)
{
    uint8_t head[8] = {0};
    char *path = keys_in_home(keys, "pubring.kbx");
    const int fd = path ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
    const bool is_read = fd >= 0 && read(fd, head, sizeof head) == (ssize_t)sizeof head;
    if (fd >= 0)
        close(fd);
    free(path);
    return is_read && head[4] == 1 && !(head[7] & 0x02);
}

/* The home's own keyring: the keybox where there is one for gpg, else the old format, as gpg takes them. */
static gpg_error_t keys_add_default_ring(struct keys *keys)
{
    bool exists = false;
    gpg_error_t err = 0;
    if (keys->program->options->use_keyboxd)
        return keys_add_keyboxd(keys);
    if (keys_keybox_is_gpgsm(keys))
        err = keys_add_home_ring(keys, "pubring.gpg", &exists);
    if (!err && !exists)
        err = keys_add_home_ring(keys, "pubring.kbx", &exists);
    if (!err && !exists)
        err = keys_add_home_ring(keys, "pubring.gpg", &exists);
    return err;
}

/* The file that a --keyring means: in the home where it has no slash, below the user's folder where it begins with ~/.
 * What kind it is shows in its bytes, so the prefix that says so is dropped. NULL: out of core. */
static char *keys_ring_path(const struct keys *keys, const char *name)
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
    return strchr(name, '/') ? strdup(name) : keys_in_home(keys, name);
}

static gpg_error_t keys_add_ring(struct keys *keys, const char *name)
{
    char *path = keys_ring_path(keys, name);
    if (!path)
        return gpg_error_from_syserror();
    gpg_error_t err = keystore_add_keyring(keys->store, path, false);
    free(path);
    return err;
}

static gpg_error_t keys_add_stores(struct keys *keys)
{
    const struct options *options = keys->program->options;
    gpg_error_t err = 0;
    for (size_t i = 0; i < options->secret_key_files.n && !err; i++)
        err = keystore_add_secret_file(keys->store, options->secret_key_files.items[i], &keys->key_passphrases);
    if (!err && !options->no_default_keyring)
        err = keys_add_default_ring(keys);
    for (size_t i = 0; i < options->keyrings.n && !err; i++)
        err = keys_add_ring(keys, options->keyrings.items[i]);
    return err;
}

static gpg_error_t keys_add_agent(struct keys *keys)
{
    const struct options *options = keys->program->options;
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
    if (ttyname_r(STDIN_FILENO, keys->ttyname, sizeof keys->ttyname) &&
        ttyname_r(STDERR_FILENO, keys->ttyname, sizeof keys->ttyname))
        keys->ttyname[0] = '\0';
    const char *tty = getenv("GPG_TTY");
    const struct agent_params params = {
        .home = keys->home,
        .default_home = keys->default_home,
        .program = options->agent_program,
        .display = getenv("DISPLAY"),
        .xauthority = getenv("XAUTHORITY"),
        .ttyname = tty              ? tty
                   : *keys->ttyname ? keys->ttyname
                                    : NULL,
        .ttytype = getenv("TERM"),
        .lc_ctype = getenv("LC_CTYPE"),
        .lc_messages = getenv("LC_MESSAGES"),
        .pinentry_user_data = getenv("PINENTRY_USER_DATA"),
        .pinentry = mode,
        .source = &keys->key_passphrases,
        .uid = keys_uid,
        .context = keys,
    };
    gpg_error_t err = agent_open(program_failure(keys->program), &params, &keys->agent);
    if (err)
        return err;
    struct secret_provider *provider = agent_provider(keys->agent);
    if (!provider)
        return gpg_error_from_syserror();
    keystore_set_provider(keys->store, provider);
    return 0;
}

/* Opened at the start: later the process may be confined. A database that cannot be read trusts nobody. */
static void keys_open_trustdb(struct keys *keys)
{
    char *path = keys_in_home(keys, "trustdb.gpg");
    if (path && trustdb_open(NULL, path, &keys->trustdb))
        report_warning(keys->program->report, "'%s' cannot be read: no key is trusted", path);
    free(path);
    keystore_set_trustdb(keys->store, keys->trustdb);
    keystore_set_place(keys->store, keys->home);
}

gpg_error_t keys_new(const struct program *program, struct keys **ret)
{
    struct failure *failure = program_failure(program);
    gpg_error_t err = crypt_init(failure);
    if (!err)
        err = confine_secrets(failure);
    if (err)
        return err;
    struct keys *keys = calloc(1, sizeof *keys);
    if (!keys)
        return gpg_error_from_syserror();
    keys->program = program;
    keys->key_passphrases = (struct passphrase_source){.ask = keys_ask_for_key, .context = keys};
    keys->message_passphrases = (struct passphrase_source){.ask = keys_ask_for_message, .context = keys};
    err = keys_find_home(keys);
    if (!err) {
        keys->store = keystore_new(failure);
        err = keys->store ? keys_add_stores(keys) : gpg_error_from_syserror();
    }
    if (!err)
        err = keys_add_agent(keys);
    if (!err)
        keys_open_trustdb(keys);
    if (err)
        keys_free(keys);
    else
        *ret = keys;
    return err;
}

void keys_free(struct keys *keys)
{
    if (!keys)
        return;
    certificate_free(keys->asked_about);
    keystore_free(keys->store);
    agent_free(keys->agent);
    trustdb_free(keys->trustdb);
    secret_free(keys->given);
    free(keys->home);
    free(keys);
}

gpg_error_t keys_get_ready(struct keys *keys, enum keys_needs needs)
{
    const struct options *options = keys->program->options;
    static const uint8_t nobody[8];
    struct certificate *certificate = NULL;
    struct secret *passphrase = NULL;
    unsigned number = 0;
    gpg_error_t err = 0;
    /* What goes wrong with the daemons comes up again, with its sentence, if they turn out to be needed. */
    if (options->use_keyboxd && !keystore_issuer(keys->store, nobody, sizeof nobody, &certificate, &number))
        certificate_free(certificate);
    if (needs == KEYS_NO_SECRETS)
        return 0;
    if (options->passphrase.kind != PASSPHRASE_DEFAULT)
        err = keys_given(keys, false, &passphrase);
    secret_free(passphrase);
    if (!err && needs == KEYS_SECRETS && options->secret_key_files.n == 0 && agent_connect(NULL, keys->agent))
        report_verbose(keys->program->report, "there is no gpg-agent for '%s'", keys->home);
    return err;
}

struct keystore *keys_store(struct keys *keys)
{
    return keys->store;
}

/* ---- trust ---- */

/* As gpg: of the user id by which the certificate was asked for, else of the best one. */
static enum trust keys_validity(struct keys *keys, const struct certificate *certificate)
{
    const struct key *primary = certificate_key(certificate, 0);
    const int named = certificate_named_uid(certificate);
    const enum trust owner = trustdb_ownertrust(keys->trustdb, primary->fpr, primary->fpr_n, NULL);
    if (keys->program->options->trust_model == TRUST_DIRECT || owner == TRUST_ULTIMATE)
        return owner;
    if (named < 0)
        return trustdb_validity(keys->trustdb, primary->fpr, primary->fpr_n, NULL, 0);
    return trustdb_validity(keys->trustdb, primary->fpr, primary->fpr_n,
                            certificate_uid(certificate, (unsigned)named, NULL),
                            certificate_uid_length(certificate, (unsigned)named));
}

enum keys_trust keys_trust(struct keys *keys, struct certificate *certificate)
{
    if (keys->program->options->trust_model == TRUST_ALWAYS)
        return KEYS_FULL;
    switch (keys_validity(keys, certificate)) {
    case TRUST_ULTIMATE:
        return KEYS_ULTIMATE;
    case TRUST_FULL:
        return KEYS_FULL;
    case TRUST_MARGINAL:
        return KEYS_MARGINAL;
    case TRUST_NEVER:
        return KEYS_NEVER;
    default:
        return KEYS_UNDEFINED;
    }
}

char keys_ownertrust_letter(struct keys *keys, const struct certificate *certificate)
{
    static const char letters[] = {[TRUST_UNDEFINED] = 'q',
                                   [TRUST_NEVER] = 'n',
                                   [TRUST_MARGINAL] = 'm',
                                   [TRUST_FULL] = 'f',
                                   [TRUST_ULTIMATE] = 'u'};
    const struct key *primary = certificate_key(certificate, 0);
    bool disabled = false;
    const enum trust owner = trustdb_ownertrust(keys->trustdb, primary->fpr, primary->fpr_n, &disabled);
    return (size_t)owner < sizeof letters && letters[owner] ? letters[owner] : '-';
}

const char *keys_trust_model(const struct keys *keys)
{
    switch (keys->program->options->trust_model) {
    case TRUST_ALWAYS:
        return "always";
    case TRUST_DIRECT:
        return "direct";
    default:
        return "pgp";
    }
}

/* ---- recipients ---- */

/* INV_RECP's and INV_SGNR's reason for a code of certificate_choose and keystore_find, doc/DETAILS. */
static int keys_reason(gpg_error_t err)
{
    switch (gpg_err_code(err)) {
    case GPG_ERR_NO_PUBKEY:
        return 1;
    case GPG_ERR_INV_USER_ID:
        return 14;
    case GPG_ERR_CERT_REVOKED:
        return 4;
    case GPG_ERR_KEY_EXPIRED:
        return 5;
    case GPG_ERR_NO_SECKEY:
        return 9;
    case GPG_ERR_NOT_TRUSTED:
        return 10;
    case GPG_ERR_UNUSABLE_PUBKEY:
        return 3;
    case GPG_ERR_KEY_DISABLED:
        return 13;
    default:
        return 0;
    }
}

/* The certificate that NAME would be, usable or not, so that its fingerprint can be told; NULL: none. */
static struct certificate *keys_look_up(struct keys *keys, const char *name)
{
    struct certificate *certificate = NULL;
    return keystore_look_up(keys->store, name, &certificate) ? NULL : certificate;
}

static gpg_error_t keys_refuse(struct keys *keys, gpg_error_t err, bool signer, const char *name,
                               const struct certificate *certificate)
{
    struct failure *failure = program_failure(keys->program);
    const char *who = signer ? "signer" : "recipient";
    char fpr[2 * KEY_FPR_MAX + 1] = "";
    if (signer)
        status_inv_sgnr(keys->program->status, keys_reason(err), name);
    else
        status_inv_recp(keys->program->status, keys_reason(err), name);
    if (certificate)
        key_fpr_hex(certificate_key(certificate, 0), fpr);
    switch (gpg_err_code(err)) {
    case GPG_ERR_NO_PUBKEY:
        return fail(failure, err, "%s '%s': no such key in '%s'; import it, or give it with %s", who, name, keys->home,
                    signer ? "--secret-key-file" : "--recipient-file");
    case GPG_ERR_NO_SECKEY:
        return fail(failure, err, "%s '%s': its secret key is not in '%s'", who, name, keys->home);
    case GPG_ERR_CERT_REVOKED:
        return fail(failure, err, "%s '%s': the key %s has been revoked", who, name, fpr);
    case GPG_ERR_KEY_EXPIRED:
        return fail(failure, err, "%s '%s': the key %s has expired", who, name, fpr);
    case GPG_ERR_KEY_DISABLED:
        return fail(failure, err, "%s '%s': the key %s is disabled", who, name, fpr);
    case GPG_ERR_NOT_TRUSTED:
        return fail(
            failure, err,
            "%s '%s': nothing says that the key %s belongs to its owner; check its fingerprint and certify it, or use "
            "--always-trust",
            who, name, fpr);
    case GPG_ERR_UNUSABLE_PUBKEY:
        return fail(failure, err, "%s '%s': the key %s has no part that can %s", who, name, fpr,
                    signer ? "sign" : "encrypt");
    default:
        return fail(failure, err, "%s '%s': %s", who, name, gpg_strerror(err));
    }
}

static gpg_error_t keys_check_trust(struct keys *keys, struct certificate *certificate)
{
    const struct options *options = keys->program->options;
    char fpr[2 * KEY_FPR_MAX + 1];
    const enum keys_trust trust = keys_trust(keys, certificate);
    if (certificate_disabled(certificate))
        return gpg_error(GPG_ERR_KEY_DISABLED);
    if (trust >= KEYS_MARGINAL)
        return 0;
    key_fpr_hex(certificate_key(certificate, 0), fpr);
    if (!options->batch && trust != KEYS_NEVER &&
        report_ask(keys->program->report, "nothing says that the key %s belongs to its owner; use it anyway?", fpr))
        return 0;
    return gpg_error(GPG_ERR_NOT_TRUSTED);
}

/* How a list of recipients came about. */
enum keys_wish {
    KEYS_ASKED,   /* each is checked */
    KEYS_DEFAULT, /* default-recipient, encrypt-to: whoever wrote that into the configuration trusts them, even where
                     they are disabled */
};

static gpg_error_t keys_named_recipient(struct keys *keys, const struct recipient *recipient, enum keys_wish wish,
                                        uint32_t now, struct chosen_keys *chosen)
{
    const bool hidden = recipient->kind == RECIPIENT_HIDDEN_NAME || keys->program->options->throw_keyids;
    struct key_match match = {.certificate = NULL, .exact = -1};
    unsigned number = 0;
    /* gpg takes disabled keys there, and where their trust does not matter and they are named as such. */
    struct key_spec spec;
    const bool by_key = !key_spec_parse(recipient->name, &spec) && key_spec_names_key(&spec);
    keystore_ignore_disabled(keys->store,
                             wish == KEYS_DEFAULT || (by_key && keys->program->options->trust_model == TRUST_ALWAYS));
    gpg_error_t err = keystore_find(keys->store, recipient->name, KEY_ENCRYPTS, now, &match);
    keystore_ignore_disabled(keys->store, false);
    if (!err && wish == KEYS_ASKED)
        err = keys_check_trust(keys, match.certificate);
    if (!err)
        err = certificate_choose(match.certificate, KEY_ENCRYPTS, now, match.exact, &number);
    if (err) {
        if (!match.certificate)
            match.certificate = keys_look_up(keys, recipient->name);
        err = keys_refuse(keys, err, false, recipient->name, match.certificate);
        certificate_free(match.certificate);
        return err;
    }
    char fpr[2 * KEY_FPR_MAX + 1];
    key_fpr_hex(certificate_key(match.certificate, 0), fpr);
    status_key_considered(keys->program->status, fpr, 0);
    if (match.ambiguous)
        report_warning(keys->program->report, "'%s' fits %u keys; %s is taken", recipient->name, match.ambiguous + 1,
                       fpr);
    report_verbose(keys->program->report, "%sencrypting to '%s', key %s", wish == KEYS_DEFAULT ? "by default " : "",
                   recipient->name, fpr);
    return chosen_keys_add_last(chosen, match.certificate, number, hidden);
}

static gpg_error_t keys_file_recipient(struct keys *keys, const struct recipient *recipient, uint32_t now,
                                       struct chosen_keys *chosen)
{
    const bool hidden = recipient->kind == RECIPIENT_HIDDEN_FILE || keys->program->options->throw_keyids;
    struct certificate *certificate = NULL;
    unsigned number = 0;
    gpg_error_t err = keystore_certificate_file(keys->store, recipient->name, &certificate);
    if (err)
        return err;
    err = certificate_choose(certificate, KEY_ENCRYPTS, now, -1, &number);
    if (err) {
        err = keys_refuse(keys, err, false, recipient->name, certificate);
        certificate_free(certificate);
        return err;
    }
    return chosen_keys_add_last(chosen, certificate, number, hidden);
}

static gpg_error_t keys_list_recipients(struct keys *keys, const struct recipients *list, enum keys_wish wish,
                                        uint32_t now, struct chosen_keys *chosen)
{
    gpg_error_t err = 0;
    for (size_t i = 0; i < list->n && !err; i++) {
        const struct recipient *recipient = &list->items[i];
        if (recipient->kind == RECIPIENT_FILE || recipient->kind == RECIPIENT_HIDDEN_FILE)
            err = keys_file_recipient(keys, recipient, now, chosen);
        else
            err = keys_named_recipient(keys, recipient, wish, now, chosen);
    }
    return err;
}

/* Of several default keys gpg takes the last that can be used, and where none can the first secret key there is. */
static gpg_error_t keys_default_signer(struct keys *keys, uint32_t now, struct key_match *ret)
{
    const struct strings *names = &keys->program->options->default_keys;
    for (size_t i = names->n; i-- > 0;) {
        if (!keystore_find(keys->store, names->items[i], KEY_SIGNS, now, ret))
            return 0;
        report_warning(keys->program->report, "the default key '%s' cannot sign", names->items[i]);
    }
    return keystore_default_signer(keys->store, now, ret);
}

/* default-recipient-self. */
static gpg_error_t keys_self_recipient(struct keys *keys, uint32_t now, struct chosen_keys *chosen)
{
    const struct strings *names = &keys->program->options->default_keys;
    struct key_match match = {.certificate = NULL, .exact = -1};
    unsigned number = 0;
    gpg_error_t err = keys_default_signer(keys, now, &match);
    if (!err)
        err = certificate_choose(match.certificate, KEY_ENCRYPTS, now, -1, &number);
    if (err) {
        err =
            keys_refuse(keys, err, false, names->n ? names->items[names->n - 1] : "the default key", match.certificate);
        certificate_free(match.certificate);
        return err;
    }
    char fpr[2 * KEY_FPR_MAX + 1];
    key_fpr_hex(certificate_key(match.certificate, 0), fpr);
    status_key_considered(keys->program->status, fpr, 0);
    report_verbose(keys->program->report, "by default encrypting to yourself, key %s", fpr);
    return chosen_keys_add_last(chosen, match.certificate, number, keys->program->options->throw_keyids);
}

gpg_error_t keys_recipients(struct keys *keys, struct chosen_keys *ret)
{
    const struct options *options = keys->program->options;
    const uint32_t now = (uint32_t)time(NULL);
    const enum keys_wish wish = options->recipient_default ? KEYS_DEFAULT : KEYS_ASKED;
    struct chosen_keys chosen = {.items = NULL};
    gpg_error_t err = keys_list_recipients(keys, &options->recipients, wish, now, &chosen);
    if (!err && options->recipient_self)
        err = keys_self_recipient(keys, now, &chosen);
    if (!err)
        err = keys_list_recipients(keys, &options->encrypt_to, KEYS_DEFAULT, now, &chosen);
    if (err)
        chosen_keys_clear(&chosen);
    else
        *ret = chosen;
    return err;
}

/* ---- signers ---- */

static gpg_error_t keys_refuse_signer(struct keys *keys, gpg_error_t err, const char *name,
                                      const struct certificate *certificate)
{
    /* A key that is not there and an agent that is not there are two things. */
    if (gpg_err_code(err) == GPG_ERR_NO_SECKEY && keys->program->options->secret_key_files.n == 0 &&
        agent_connect(program_failure(keys->program), keys->agent)) {
        if (name)
            status_inv_sgnr(keys->program->status, keys_reason(err), name);
        return gpg_error(GPG_ERR_NO_AGENT);
    }
    if (!name && gpg_err_code(err) == GPG_ERR_NO_SECKEY)
        return fail(program_failure(keys->program), err,
                    "there is no secret key to sign with in '%s'; name one with -u or --secret-key-file", keys->home);
    return keys_refuse(keys, err, true, name ? name : "the default key", certificate);
}

/* The signers found so far, with their secret keys. */
struct keys_signers {
    struct chosen_keys chosen;
    struct secret_key **secrets; /* as many as chosen.n */
};

static void keys_signers_clear(struct keys_signers *signers)
{
    for (size_t i = 0; signers->secrets && i < signers->chosen.n; i++)
        secret_key_free(signers->secrets[i]);
    free(signers->secrets);
    chosen_keys_clear(&signers->chosen);
}

static gpg_error_t keys_add_signer(struct keys_signers *signers, struct certificate *takes_certificate, unsigned number,
                                   struct secret_key *takes_secret)
{
    const size_t n = signers->chosen.n;
    gpg_error_t err = 0;
    if (chosen_keys_index(&signers->chosen, certificate_key(takes_certificate, number)) >= 0)
        goto out; /* a key named twice signs once */
    struct secret_key **secrets = realloc(signers->secrets, (n + 1) * sizeof *secrets);
    if (!secrets) {
        err = gpg_error_from_syserror();
        goto out;
    }
    signers->secrets = secrets;
    err = chosen_keys_add(&signers->chosen, takes_certificate, number, false);
    takes_certificate = NULL;
    if (!err) {
        secrets[n] = takes_secret;
        takes_secret = NULL;
    }
out:
    certificate_free(takes_certificate);
    secret_key_free(takes_secret);
    return err;
}

static gpg_error_t keys_one_signer(struct keys *keys, const char *name, uint32_t now, struct keys_signers *signers)
{
    struct key_match match = {.certificate = NULL, .exact = -1};
    struct secret_key *secret = NULL;
    unsigned number = 0;
    gpg_error_t err =
        name ? keystore_find(keys->store, name, KEY_SIGNS, now, &match) : keys_default_signer(keys, now, &match);
    if (!err)
        err = keystore_signing_key(keys->store, &match, now, &number, &secret);
    if (err) {
        if (!match.certificate && name)
            match.certificate = keys_look_up(keys, name);
        err = keys_refuse_signer(keys, err, name, match.certificate);
        certificate_free(match.certificate);
        return err;
    }
    char fpr[2 * KEY_FPR_MAX + 1];
    key_fpr_hex(certificate_key(match.certificate, 0), fpr);
    status_key_considered(keys->program->status, fpr, 0);
    report_verbose(keys->program->report, "signing with key %s", fpr);
    /* One that came from a file is unlocked already, and the agent may not even have it. */
    if (keys->program->options->secret_key_files.n == 0 &&
        (err = agent_unlock(program_failure(keys->program), keys->agent, secret))) {
        certificate_free(match.certificate);
        secret_key_free(secret);
        return err;
    }
    return keys_add_signer(signers, match.certificate, number, secret);
}

static gpg_error_t keys_find_signers(struct keys *keys, struct keys_signers *signers)
{
    const struct options *options = keys->program->options;
    const uint32_t now = (uint32_t)time(NULL);
    gpg_error_t err = 0;
    if (options->signers.n) {
        for (size_t i = 0; i < options->signers.n && !err; i++)
            err = keys_one_signer(keys, options->signers.items[i], now, signers);
        return err;
    }
    return keys_one_signer(keys, NULL, now, signers);
}

gpg_error_t keys_signers(struct keys *keys, struct chosen_keys *ret, struct secret_key ***ret_secrets)
{
    struct keys_signers signers = {.secrets = NULL};
    gpg_error_t err = keys_find_signers(keys, &signers);
    if (err) {
        keys_signers_clear(&signers);
        return err;
    }
    *ret = signers.chosen;
    *ret_secrets = signers.secrets;
    return 0;
}

/* Whether CERTIFICATE is what SPEC names: a key of it by id, or a user id that was not revoked. */
static bool keys_is_named(const struct certificate *certificate, const struct key_spec *spec)
{
    if (key_spec_names_key(spec)) {
        for (unsigned i = 0; i < certificate_keys(certificate); i++)
            if (key_spec_matches_key(spec, certificate_key(certificate, i)) &&
                certificate_key_state(certificate, i, (uint32_t)time(NULL)) != KEY_UNBOUND)
                return true;
        return false;
    }
    for (unsigned i = 0; i < certificate_uids(certificate); i++) {
        bool revoked = false;
        const char *uid = certificate_uid(certificate, i, &revoked);
        if (!revoked && key_spec_matches_uid(spec, uid, certificate_uid_length(certificate, i)))
            return true;
    }
    return false;
}

gpg_error_t keys_is_allowed_signer(struct keys *keys, const struct certificate *certificate, bool *ret)
{
    const struct strings *allowed = &keys->program->options->allowed_signers;
    *ret = false;
    for (size_t i = 0; i < allowed->n && !*ret; i++) {
        struct key_spec spec;
        gpg_error_t err = key_spec_parse(allowed->items[i], &spec);
        if (err)
            return fail(program_failure(keys->program), err, "--signer '%s': %s", allowed->items[i], gpg_strerror(err));
        *ret = keys_is_named(certificate, &spec);
    }
    return 0;
}
