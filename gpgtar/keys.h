/* SPDX-License-Identifier: GPL-3.0-or-later */
/* keys: whose keys a run works with: recipients, signers, passphrases, and how far a certificate is trusted. */
#ifndef GPGTAR_KEYS_H
#define GPGTAR_KEYS_H

#include "pgp/pgp.h"
#include "program.h"

/* A key chosen for this run. */
struct chosen_key {
    struct certificate *certificate; /* a reference of its own */
    unsigned number;
    bool hidden;
};

struct chosen_keys {
    struct chosen_key *items;
    size_t n;
};
void chosen_keys_clear(struct chosen_keys *chosen);

struct keys;

/* Reads nothing that the options do not ask for: keyrings are opened at the first look-up, the agent at the first
 * secret key. */
MUST_CHECK gpg_error_t keys_new(const struct program *program, struct keys **ret);
void keys_free(struct keys *keys);

/* Does what must be done while programs can still be started and files opened: a passphrase is read where file,
 * descriptor or command give it, and for KEYS_SECRETS the agent is started. Asks nobody. */
enum keys_needs { KEYS_NO_SECRETS, KEYS_PASSPHRASE, KEYS_SECRETS };
MUST_CHECK gpg_error_t keys_get_ready(struct keys *keys, enum keys_needs needs);

struct keystore *keys_store(struct keys *keys);

/* The recipients of the options with encrypt-to, in order, each (sub)key once. A name that cannot be used ends it, with
 * INV_RECP and a sentence that says which and why. */
MUST_CHECK gpg_error_t keys_recipients(struct keys *keys, struct chosen_keys *ret);

/* The signers (-u, default-key, else the first secret key that signs), with their secret keys: *RET_SECRETS has as many
 * entries as RET, each to be freed with secret_key_free, the array with free. Locked keys from files are unlocked now.
 */
MUST_CHECK gpg_error_t keys_signers(struct keys *keys, struct chosen_keys *ret, struct secret_key ***ret_secrets);

/* A passphrase for the archive: asked once, twice where a person types a new one. */
MUST_CHECK gpg_error_t keys_new_passphrase(struct keys *keys, struct secret **ret);
/* Where message_read asks for the passphrase of an archive. */
const struct passphrase_source *keys_passphrases(struct keys *keys);

/* How far the user trusts that CERTIFICATE is whose it says. */
enum keys_trust { KEYS_UNDEFINED, KEYS_NEVER, KEYS_MARGINAL, KEYS_FULL, KEYS_ULTIMATE };
enum keys_trust keys_trust(struct keys *keys, struct certificate *certificate);
/* How far the user trusts its owner to certify others, as a letter of gpg's --with-colons. */
char keys_ownertrust_letter(struct keys *keys, const struct certificate *certificate);
/* "pgp", "direct", "always" as status lines name the trust model. */
const char *keys_trust_model(const struct keys *keys);

/* Whether KEY's certificate is one that the options' --signer names. */
MUST_CHECK gpg_error_t keys_is_allowed_signer(struct keys *keys, const struct certificate *certificate, bool *ret);

#endif
