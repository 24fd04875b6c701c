/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "keys.h"

#include "confine.h"
#include "trust.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct keys {
    const struct program *program;
    struct prompts *prompts;
    struct stores *stores;
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
    keys->prompts = prompts_new(program);
    err =
        keys->prompts ? stores_new(program, prompts_for_keys(keys->prompts), &keys->stores) : gpg_error_from_syserror();
    if (err) {
        keys_free(keys);
        return err;
    }
    prompts_set_agent(keys->prompts, stores_agent(keys->stores));
    *ret = keys;
    return 0;
}

void keys_free(struct keys *keys)
{
    if (!keys)
        return;
    stores_free(keys->stores);
    prompts_free(keys->prompts);
    free(keys);
}

gpg_error_t keys_get_ready(struct keys *keys, enum keys_needs needs)
{
    stores_start_keyboxd(keys->stores);
    if (needs == KEYS_NO_SECRETS)
        return 0;
    gpg_error_t err = prompts_read_given(keys->prompts);
    if (!err && needs == KEYS_SECRETS && keys->program->options->secret_key_files.n == 0)
        stores_start_agent(keys->stores);
    return err;
}

struct stores *keys_stores(const struct keys *keys)
{
    return keys->stores;
}

struct prompts *keys_prompts(const struct keys *keys)
{
    return keys->prompts;
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
    return keystore_look_up(stores_keystore(keys->stores), name, &certificate) ? NULL : certificate;
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
        return fail(failure, err, "%s '%s': no such key in '%s'; import it, or give it with %s", who, name,
                    stores_home(keys->stores), signer ? "--secret-key-file" : "--recipient-file");
    case GPG_ERR_NO_SECKEY:
        return fail(failure, err, "%s '%s': its secret key is not in '%s'", who, name, stores_home(keys->stores));
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
    const enum trust_level trust = trust_level(options->trust_model, stores_trustdb(keys->stores), certificate);
    if (certificate_disabled(certificate))
        return gpg_error(GPG_ERR_KEY_DISABLED);
    if (trust >= LEVEL_MARGINAL)
        return 0;
    key_fpr_hex(certificate_key(certificate, 0), fpr);
    if (!options->batch && trust != LEVEL_NEVER &&
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
    keystore_ignore_disabled(stores_keystore(keys->stores),
                             wish == KEYS_DEFAULT || (by_key && keys->program->options->trust_model == TRUST_ALWAYS));
    gpg_error_t err = keystore_find(stores_keystore(keys->stores), recipient->name, KEY_ENCRYPTS, now, &match);
    keystore_ignore_disabled(stores_keystore(keys->stores), false);
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
    gpg_error_t err = keystore_certificate_file(stores_keystore(keys->stores), recipient->name, &certificate);
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
    gpg_error_t err = keystore_file_signer(stores_keystore(keys->stores), ret);
    if (gpg_err_code(err) != GPG_ERR_EOF)
        return err;
    for (size_t i = names->n; i-- > 0;) {
        if (!keystore_find(stores_keystore(keys->stores), names->items[i], KEY_SIGNS, now, ret))
            return 0;
        report_warning(keys->program->report, "the default key '%s' cannot sign", names->items[i]);
    }
    return keystore_default_signer(stores_keystore(keys->stores), now, ret);
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
        agent_connect(program_failure(keys->program), stores_agent(keys->stores))) {
        if (name)
            status_inv_sgnr(keys->program->status, keys_reason(err), name);
        return gpg_error(GPG_ERR_NO_AGENT);
    }
    if (!name && gpg_err_code(err) == GPG_ERR_NO_SECKEY)
        return fail(program_failure(keys->program), err,
                    "there is no secret key to sign with in '%s'; name one with -u or --secret-key-file",
                    stores_home(keys->stores));
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
    gpg_error_t err = name ? keystore_find(stores_keystore(keys->stores), name, KEY_SIGNS, now, &match)
                           : keys_default_signer(keys, now, &match);
    if (!err)
        err = keystore_signing_key(stores_keystore(keys->stores), &match, now, &number, &secret);
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
    /* Questions come now, and not when all has been read. */
    struct failure *failure = program_failure(keys->program);
    err = secret_key_in_memory(secret) ? secret_key_unlock(failure, secret)
                                       : agent_unlock(failure, stores_agent(keys->stores), secret);
    if (err) {
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
