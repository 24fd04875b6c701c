/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent.h"

#include "agent_link.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Octets of a user id that a question shows at most: with all of them escaped, the line still fits. */
#define UID_SHOWN_MAX 160
#define GRIP_OCTETS   20
#define GRIP_HEX      40

struct agent_entry {
    uint8_t grip[GRIP_OCTETS];
    bool on_card;
    bool locked; /* has a passphrase, which the agent does not have in its cache */
};

struct agent {
    struct agent_params params;
    struct agent_link *link; /* NULL: not connected */
    struct agent_entry *list;
    size_t list_n;
    bool listed;      /* the list has been asked for */
    bool ask_each;    /* a restricted agent does not list its keys: ask for each */
    bool unreachable; /* noticed by `have`, which is asked for many keys in a row */
    gpg_error_t why;  /* of the first failure to reach it: later ones may only say that no program may be started now */
    char sentence[FAILURE_SENTENCE_MAX];
};

struct agent_key {
    struct secret_key secret_key;
    struct agent *agent;
};

struct agent_keys {
    struct secret_provider provider;
    struct agent *agent;
};

gpg_error_t agent_open(struct failure *failure, const struct agent_params *params, struct agent **ret)
{
    if (params->home[0] != '/')
        return fail(failure, gpg_error(GPG_ERR_INV_NAME), "the home folder %s is not an absolute name", params->home);
    struct agent *agent = calloc(1, sizeof *agent);
    if (!agent)
        return gpg_error_from_syserror();
    agent->params = *params;
    *ret = agent;
    return 0;
}

static void disconnect(struct agent *agent)
{
    agent_link_free(agent->link);
    agent->link = NULL;
}

void agent_free(struct agent *agent)
{
    if (!agent)
        return;
    disconnect(agent);
    free(agent->list);
    free(agent);
}

static gpg_error_t command(struct agent *agent, const char *line, const struct agent_command *command)
{
    gpg_error_t err = agent_link_command(agent->link, line, command);
    if (agent_link_broken(agent->link))
        disconnect(agent);
    return err;
}

/* Connected, and with nothing left over from the operation before. An agent that has gone since then is replaced. */
static gpg_error_t ready(struct failure *failure, struct agent *agent)
{
    if (agent->link && !command(agent, "RESET", NULL))
        return 0;
    disconnect(agent);
    struct failure own;
    failure_init(&own);
    gpg_error_t err = agent_link_open(&own, &agent->params, &agent->link);
    if (err && !agent->why) {
        agent->why = err;
        failure_get(&own, agent->sentence);
    }
    failure_destroy(&own);
    return err ? fail(failure, agent->why, "%s", *agent->sentence ? agent->sentence : gpg_strerror(agent->why)) : 0;
}

gpg_error_t agent_connect(struct failure *failure, struct agent *agent)
{
    if (agent->unreachable)
        return fail(failure, agent->why, "%s", agent->sentence);
    return agent->link ? 0 : ready(failure, agent);
}

/* Percent-plus escape: letters, digits and a few signs stand for themselves, and so does what is not ASCII, because the
 * agent takes %C and %F for its own placeholders. Control characters become '?'. */
static void append_escaped(char *line, size_t size, const char *text, size_t n)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.,:-_/@<>()=";
    size_t at = strlen(line);
    for (size_t i = 0; i < n && at + 4 <= size; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c == ' ')
            line[at++] = '+';
        else if (c >= 0x80 || strchr(plain, c))
            line[at++] = (char)c;
        else if ((c < 0x20 && c != '\n') || c == 0x7F)
            line[at++] = '?';
        else
            at += (size_t)snprintf(line + at, size - at, "%%%02X", c);
    }
    line[at] = '\0';
}

static void append_text(char *line, size_t size, const char *text)
{
    append_escaped(line, size, text, strlen(text));
}

/* "X" stands for nothing. */
static void append_argument(char *line, size_t size, const char *text)
{
    size_t n = strlen(line);
    if (n + 1 < size)
        memcpy(line + n, " ", 2);
    append_text(line, size, text && *text ? text : "X");
}

/* What pinentry shows: which key, and whose. */
static void describe(const struct agent *agent, const struct key *key, char line[AGENT_LINE_MAX])
{
    const char *uid = agent->params.uid ? agent->params.uid(agent->params.context, key) : NULL;
    const char *algo = algo_pubkey_name(key->algo);
    char text[256], day[16];
    time_t created = key->created;
    struct tm when;
    strcpy(line, "SETKEYDESC ");
    append_text(line, AGENT_LINE_MAX, "Please enter the passphrase to unlock this OpenPGP secret key:\n");
    if (uid && *uid) {
        size_t n = strlen(uid);
        append_text(line, AGENT_LINE_MAX, "\"");
        while (n > UID_SHOWN_MAX || (n < strlen(uid) && ((unsigned char)uid[n] & 0xC0) == 0x80))
            n--; /* never in the middle of a UTF-8 character */
        append_escaped(line, AGENT_LINE_MAX, uid, n);
        append_text(line, AGENT_LINE_MAX, n < strlen(uid) ? "...\"\n" : "\"\n");
    }
    gmtime_r(&created, &when);
    strftime(day, sizeof day, "%Y-%m-%d", &when);
    snprintf(text, sizeof text, "%u-bit %s key, ID %08X%08X,\ncreated %s.\n", key->bits, algo ? algo : "unknown",
             (unsigned)get_be32(key->keyid), (unsigned)get_be32(key->keyid + 4), day);
    append_text(line, AGENT_LINE_MAX, text);
}

static gpg_error_t grip_command(struct agent *agent, const char *name, const struct key *key)
{
    char line[64];
    size_t at = (size_t)snprintf(line, sizeof line, "%s ", name);
    for (unsigned i = 0; i < GRIP_OCTETS; i++)
        at += (size_t)snprintf(line + at, sizeof line - at, "%02X", key->keygrip[i]);
    return command(agent, line, NULL);
}

/* KEYINFO GRIP TYPE SERIAL ID CACHED PROTECTION …; type T: on a card (token), cached 1, protection P: a passphrase. */
static gpg_error_t note_key(void *context, const char *line)
{
    struct agent *agent = context;
    struct agent_entry entry;
    char type;
    if (strncmp(line, "KEYINFO ", 8) != 0 || strlen(line) < 8 + GRIP_HEX + 2)
        return 0;
    for (unsigned i = 0; i < GRIP_OCTETS; i++) {
        unsigned octet;
        if (sscanf(line + 8 + 2 * i, "%2x", &octet) != 1)
            return 0;
        entry.grip[i] = (uint8_t)octet;
    }
    type = line[8 + GRIP_HEX + 1];
    char cached = '-', protection = '-';
    entry.on_card = type == 'T';
    entry.locked = type == 'D' && sscanf(line + 8 + GRIP_HEX + 2, " %*s %*s %c %c", &cached, &protection) == 2 &&
                   cached != '1' && protection == 'P';
    if (type != 'T' && type != 'D')
        return 0;
    struct agent_entry *grown = reallocarray(agent->list, agent->list_n + 1, sizeof *grown);
    if (!grown)
        return gpg_error_from_syserror();
    agent->list = grown;
    agent->list[agent->list_n++] = entry;
    return 0;
}

static gpg_error_t list_keys(struct failure *failure, struct agent *agent)
{
    const struct agent_command listing = {.status = note_key, .status_context = agent};
    if (agent->listed)
        return 0;
    gpg_error_t err = ready(failure, agent);
    if (err)
        return err;
    agent->list_n = 0;
    err = command(agent, "KEYINFO --list", &listing);
    if (gpg_err_code(err) == GPG_ERR_FORBIDDEN) {
        agent->ask_each = true;
        err = 0;
    }
    if (gpg_err_code(err) == GPG_ERR_NOT_FOUND) /* not one key */
        err = 0;
    agent->listed = !err;
    return err ? fail(failure, err, "gpg-agent of %s does not list its keys: %s", agent->params.home, gpg_strerror(err))
               : 0;
}

static gpg_error_t find(struct failure *failure, struct agent *agent, const struct key *key, bool *ret_on_card)
{
    if (!key->has_keygrip)
        return gpg_error(GPG_ERR_NO_SECKEY);
    gpg_error_t err = list_keys(failure, agent);
    if (err)
        return err;
    if (agent->ask_each) {
        err = agent->link ? 0 : ready(failure, agent);
        if (!err)
            err = grip_command(agent, "HAVEKEY", key);
        *ret_on_card = false;
        return err;
    }
    for (size_t i = 0; i < agent->list_n; i++)
        if (memcmp(agent->list[i].grip, key->keygrip, GRIP_OCTETS) == 0) {
            *ret_on_card = agent->list[i].on_card;
            return 0;
        }
    return gpg_error(GPG_ERR_NO_SECKEY);
}

/* The sentence for what went wrong in an operation with KEY. */
static gpg_error_t explain(struct failure *failure, const struct agent *agent, const struct key *key, gpg_error_t err)
{
    const char *home = agent->params.home;
    char fpr[2 * KEY_FPR_MAX + 1];
    key_fpr_hex(key, fpr);
    switch (gpg_err_code(err)) {
    case GPG_ERR_CANCELED:
    case GPG_ERR_FULLY_CANCELED:
    case GPG_ERR_ASS_CANCELED:
        return fail(failure, gpg_error(GPG_ERR_CANCELED), "cancelled: no passphrase for secret key %s", fpr);
    case GPG_ERR_BAD_PASSPHRASE:
    case GPG_ERR_BAD_PIN:
        return fail(failure, gpg_error(GPG_ERR_BAD_PASSPHRASE), "wrong passphrase for secret key %s", fpr);
    case GPG_ERR_NO_PASSPHRASE:
        return fail(failure, err, "secret key %s is locked, and there is no passphrase for it", fpr);
    case GPG_ERR_NO_SECKEY:
    case GPG_ERR_NOT_FOUND:
    case GPG_ERR_ENOENT:
        return fail(failure, gpg_error(GPG_ERR_NO_SECKEY), "gpg-agent of %s does not have secret key %s", home, fpr);
    case GPG_ERR_NO_PIN_ENTRY:
        return fail(failure, err, "gpg-agent of %s has no way to ask for the passphrase of key %s", home, fpr);
    case GPG_ERR_TIMEOUT:
        return fail(failure, err, "nobody entered the passphrase for secret key %s in time", fpr);
    case GPG_ERR_ASSUAN_SERVER_FAULT:
        return fail(failure, err, "gpg-agent of %s went away while it worked with key %s", home, fpr);
    default:
        return fail(failure, err, "gpg-agent of %s cannot use secret key %s: %s", home, fpr, gpg_strerror(err));
    }
}

/* The agent asks for KEY's passphrase (loopback). */
struct question {
    const struct agent *agent;
    const struct key *key;
    unsigned attempt;
    bool asked;
    struct secret *passphrase;
};

static gpg_error_t give_passphrase(void *context, const void **ret_bytes, size_t *ret_n)
{
    struct question *question = context;
    const struct passphrase_source *source = question->agent->params.source;
    if (!source)
        return gpg_error(GPG_ERR_NO_PASSPHRASE);
    secret_free(question->passphrase);
    question->passphrase = NULL;
    question->asked = true;
    gpg_error_t err = source->ask(source->context, question->key, question->attempt, false, &question->passphrase);
    if (err)
        return err;
    *ret_bytes = question->passphrase->bytes;
    *ret_n = question->passphrase->n;
    return 0;
}

static gpg_error_t give_secret(void *context, const void **ret_bytes, size_t *ret_n)
{
    const struct secret *secret = context;
    *ret_bytes = secret->bytes;
    *ret_n = secret->n;
    return 0;
}

static gpg_error_t note_padding(void *context, const char *line)
{
    int *padding = context;
    if (strncmp(line, "PADDING ", 8) == 0)
        *padding = atoi(line + 8);
    return 0;
}

/* One signature or decryption: what is told before, and the command that does it. */
struct job {
    const struct key *key;
    const char *select;             /* "SIGKEY" or "SETKEY" */
    const char *line;               /* sent before the last; may be NULL */
    const char *perform;            /* "PKSIGN" or "PKDECRYPT" */
    const struct secret *encrypted; /* may be NULL */
    int padding;                    /* what a PADDING status said, else -1 */
};

static gpg_error_t do_once(struct failure *failure, struct agent *agent, struct job *job, struct question *question,
                           struct secret **ret)
{
    char line[AGENT_LINE_MAX];
    const struct agent_answer answers[] = {
        {"PASSPHRASE", give_passphrase, question},
        {"CIPHERTEXT", give_secret, (void *)(uintptr_t)job->encrypted},
    };
    const struct agent_command performance = {
        .answers = answers,
        .answer_n = job->encrypted ? 2 : 1,
        .ret_data = ret,
        .status = note_padding,
        .status_context = &job->padding,
    };
    gpg_error_t err = ready(failure, agent);
    if (!err)
        err = grip_command(agent, job->select, job->key);
    if (!err) {
        describe(agent, job->key, line);
        err = command(agent, line, NULL);
    }
    if (!err && job->line)
        err = command(agent, job->line, NULL);
    return err ? err : command(agent, job->perform, &performance);
}

/* Pinentry asks again by itself; in loopback mode that is our part. */
static gpg_error_t perform(struct failure *failure, struct agent *agent, struct job *job, struct secret **ret)
{
    struct question question = {.agent = agent, .key = job->key};
    gpg_error_t err;
    gpg_error_t before = 0;
    for (;;) {
        err = do_once(failure, agent, job, &question, ret);
        bool wrong = gpg_err_code(err) == GPG_ERR_BAD_PASSPHRASE && question.asked;
        if (!wrong || ++question.attempt == SECRET_KEY_ATTEMPTS)
            break;
        before = err;
    }
    /* A source with one passphrase only: that one was wrong. */
    if (before && gpg_err_code(err) == GPG_ERR_NO_PASSPHRASE)
        err = before;
    secret_free(question.passphrase);
    return err ? explain(failure, agent, job->key, err) : 0;
}

static struct agent_key *agent_key(struct secret_key *secret_key)
{
    return CONTAINER(secret_key, struct agent_key, secret_key);
}

/* Canonical, perhaps with zeros after it. Secure as DATA is. */
static gpg_error_t parse_sexp(const struct secret *data, gcry_sexp_t *ret)
{
    size_t n = gcry_sexp_canon_len(data->bytes, data->n, NULL, NULL);
    return n ? gcry_sexp_sscan(ret, NULL, (const char *)data->bytes, n) : gpg_error(GPG_ERR_INV_SEXP);
}

static gpg_error_t key_sign(struct secret_key *secret_key, struct failure *failure, enum digest_algo algo,
                            const uint8_t *digest, size_t n, gcry_sexp_t *ret_sig)
{
    struct agent *agent = agent_key(secret_key)->agent;
    const struct digest_info *info = algo_digest(algo);
    char line[32 + 2 * 64];
    struct secret *data = NULL;
    if (!info || n > 64)
        return fail(failure, gpg_error(GPG_ERR_DIGEST_ALGO), "digest algorithm %u is not supported", (unsigned)algo);
    size_t at = (size_t)snprintf(line, sizeof line, "SETHASH %d ", info->gcry);
    for (size_t i = 0; i < n; i++)
        at += (size_t)snprintf(line + at, sizeof line - at, "%02X", digest[i]);
    struct job job = {.key = secret_key->key, .select = "SIGKEY", .line = line, .perform = "PKSIGN"};
    gpg_error_t err = perform(failure, agent, &job, &data);
    if (err)
        return err;
    err = parse_sexp(data, ret_sig);
    secret_free(data);
    return err ? explain(failure, agent, secret_key->key, err) : 0;
}

gpg_error_t agent_unlock(struct failure *failure, struct agent *agent, struct secret_key *secret_key)
{
    uint8_t nothing[64];
    gcry_sexp_t signature = NULL;
    for (size_t i = 0; i < agent->list_n; i++) {
        struct agent_entry *entry = &agent->list[i];
        if (!entry->locked || memcmp(entry->grip, secret_key->key->keygrip, GRIP_OCTETS) != 0)
            continue;
        /* The agent has no command for this; so it signs what nobody will ever see. */
        gcry_randomize(nothing, sizeof nothing, GCRY_STRONG_RANDOM);
        gpg_error_t err = key_sign(secret_key, failure, DIGEST_SHA512, nothing, sizeof nothing, &signature);
        gcry_sexp_release(signature);
        entry->locked = err != 0;
        return err;
    }
    return 0;
}

static gpg_error_t canonical(gcry_sexp_t sexp, struct secret **ret)
{
    size_t n = gcry_sexp_sprint(sexp, GCRYSEXP_FMT_CANON, NULL, 0);
    struct secret *secret = n ? secret_new(n) : NULL;
    if (!secret)
        return gpg_error(n ? GPG_ERR_ENOMEM : GPG_ERR_INV_SEXP);
    secret->n = gcry_sexp_sprint(sexp, GCRYSEXP_FMT_CANON, secret->bytes, n);
    *ret = secret;
    return 0;
}

static gpg_error_t take_value(const struct secret *data, struct secret **ret)
{
    gcry_sexp_t sexp = NULL;
    size_t n = 0;
    gpg_error_t err = parse_sexp(data, &sexp);
    if (err)
        return err;
    gcry_sexp_t token = gcry_sexp_find_token(sexp, "value", 0);
    const char *bytes = token ? gcry_sexp_nth_data(token, 1, &n) : NULL;
    struct secret *value = bytes ? secret_from(bytes, n) : NULL;
    gcry_sexp_release(token);
    gcry_sexp_release(sexp);
    if (!value)
        return gpg_error(bytes ? GPG_ERR_ENOMEM : GPG_ERR_INV_SEXP);
    *ret = value;
    return 0;
}

static gpg_error_t key_decrypt(struct secret_key *secret_key, struct failure *failure, gcry_sexp_t enc,
                               struct secret **ret_value, bool *ret_unpadded)
{
    struct agent *agent = agent_key(secret_key)->agent;
    struct secret *encrypted = NULL, *data = NULL;
    gpg_error_t err = canonical(enc, &encrypted);
    if (err)
        return err;
    struct job job = {
        .key = secret_key->key, .select = "SETKEY", .perform = "PKDECRYPT", .encrypted = encrypted, .padding = -1};
    err = perform(failure, agent, &job, &data);
    if (!err) {
        err = take_value(data, ret_value);
        *ret_unpadded = job.padding == 0;
        if (err)
            explain(failure, agent, secret_key->key, err);
    }
    secret_free(encrypted);
    secret_free(data);
    return err;
}

static void key_release(struct secret_key *secret_key)
{
    key_free(secret_key->key);
    free(agent_key(secret_key));
}

static const struct secret_key_ops key_ops = {.sign = key_sign, .decrypt = key_decrypt, .free = key_release};

static struct agent *provider_agent(struct secret_provider *provider)
{
    return CONTAINER(provider, struct agent_keys, provider)->agent;
}

static gpg_error_t provider_have(struct secret_provider *self, const struct key *key, bool *ret_on_card)
{
    struct agent *agent = provider_agent(self);
    if (agent->unreachable)
        return gpg_error(GPG_ERR_NO_AGENT);
    gpg_error_t err = find(NULL, agent, key, ret_on_card);
    agent->unreachable = gpg_err_code(err) == GPG_ERR_NO_AGENT;
    return err;
}

static gpg_error_t provider_get(struct secret_provider *self, struct failure *failure, const struct key *key,
                                struct secret_key **ret)
{
    struct agent *agent = provider_agent(self);
    bool on_card = false;
    gpg_error_t err = find(failure, agent, key, &on_card);
    if (err)
        return err;
    struct agent_key *agent_key_ = calloc(1, sizeof *agent_key_);
    if (!agent_key_)
        return gpg_error_from_syserror();
    agent_key_->secret_key = (struct secret_key){.ops = &key_ops, .on_card = on_card};
    agent_key_->secret_key.key = key_ref((struct key *)(uintptr_t)key);
    agent_key_->agent = agent;
    *ret = &agent_key_->secret_key;
    return 0;
}

static void provider_free(struct secret_provider *self)
{
    free(CONTAINER(self, struct agent_keys, provider));
}

struct secret_provider *agent_provider(struct agent *agent)
{
    struct agent_keys *keys = calloc(1, sizeof *keys);
    if (!keys)
        return NULL;
    keys->provider = (struct secret_provider){.have = provider_have, .get = provider_get, .free = provider_free};
    keys->agent = agent;
    return &keys->provider;
}

static gpg_error_t explain_passphrase(struct failure *failure, const struct agent *agent, gpg_error_t err)
{
    switch (gpg_err_code(err)) {
    case GPG_ERR_CANCELED:
    case GPG_ERR_FULLY_CANCELED:
        return fail(failure, gpg_error(GPG_ERR_CANCELED), "cancelled: no passphrase");
    case GPG_ERR_NO_PASSPHRASE:
        return fail(failure, err, "no passphrase was given");
    case GPG_ERR_NO_PIN_ENTRY:
        return fail(failure, err, "gpg-agent of %s has no way to ask for a passphrase", agent->params.home);
    case GPG_ERR_ASSUAN_SERVER_FAULT:
        return fail(failure, err, "gpg-agent of %s went away while it asked for a passphrase", agent->params.home);
    default:
        return fail(failure, err,
                    "gpg-agent of %s cannot ask for a passphrase (%s): where it has no terminal, give it with "
                    "--passphrase-fd, --passphrase-file or --passphrase-command",
                    agent->params.home, gpg_strerror(err));
    }
}

gpg_error_t agent_get_passphrase(struct failure *failure, struct agent *agent, const char *cache_id, const char *error,
                                 const char *prompt, const char *description, bool repeat, struct secret **ret)
{
    const struct passphrase_source *source = agent->params.source;
    gpg_error_t err;
    if (agent->params.pinentry == AGENT_PINENTRY_LOOPBACK) {
        err = source ? source->ask(source->context, NULL, 0, repeat, ret) : gpg_error(GPG_ERR_NO_PASSPHRASE);
        return err ? explain_passphrase(failure, agent, err) : 0;
    }
    char line[AGENT_LINE_MAX];
    const struct agent_command asking = {.ret_data = ret};
    err = ready(failure, agent);
    if (err)
        return err;
    snprintf(line, sizeof line, "GET_PASSPHRASE --data%s --", repeat ? " --check --repeat=1" : "");
    append_argument(line, sizeof line, cache_id);
    append_argument(line, sizeof line, error);
    append_argument(line, sizeof line, prompt);
    append_argument(line, sizeof line, description);
    err = command(agent, line, &asking);
    return err ? explain_passphrase(failure, agent, err) : 0;
}

void agent_clear_passphrase(struct agent *agent, const char *cache_id)
{
    char line[AGENT_LINE_MAX] = "CLEAR_PASSPHRASE";
    append_argument(line, sizeof line, cache_id);
    if (agent->link && command(agent, line, NULL))
        return;
}
