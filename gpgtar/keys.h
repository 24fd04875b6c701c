/* SPDX-License-Identifier: GPL-3.0-or-later */
/* keys: whose keys a run works with: recipients and signers, as the options name them. */
#ifndef GPGTAR_KEYS_H
#define GPGTAR_KEYS_H

#include "prompts.h"
#include "stores.h"

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

/* Borrowed. */
struct stores *keys_stores(const struct keys *keys);
struct prompts *keys_prompts(const struct keys *keys);

/* The recipients of the options with encrypt-to, in order, each (sub)key once. A name that cannot be used ends it, with
 * INV_RECP and a sentence that says which and why. */
MUST_CHECK gpg_error_t keys_recipients(struct keys *keys, struct chosen_keys *ret);

/* The signers (-u, default-key, else the first secret key that signs), with their secret keys: *RET_SECRETS has as many
 * entries as RET, each to be freed with secret_key_free, the array with free. Locked keys from files are unlocked now.
 */
MUST_CHECK gpg_error_t keys_signers(struct keys *keys, struct chosen_keys *ret, struct secret_key ***ret_secrets);

/* Whether CERTIFICATE is one that the options' --signer names. */
MUST_CHECK gpg_error_t keys_is_allowed_signer(struct keys *keys, const struct certificate *certificate, bool *ret);

#endif
