/* SPDX-License-Identifier: GPL-3.0-or-later */
/* keystore: where certificates and secret keys are looked for: files, keyrings, keybox, keyboxd, agent. */
#ifndef PGP_KEYSTORE_H
#define PGP_KEYSTORE_H

#include "certificate.h"
#include "secret_key.h"

struct keystore;

struct keystore *keystore_new(struct failure *failure);
void keystore_free(struct keystore *keystore);

/* Adds a keyring: transferable keys, binary or armored, or a keybox (told by its first bytes). A missing file is
 * GPG_ERR_NO_KEYRING… unless MAY_BE_MISSING. */
MUST_CHECK gpg_error_t keystore_add_keyring(struct keystore *keystore, const char *file, bool may_be_missing);
/* Adds transferable secret keys (--secret-key-file): usable for signing and decryption, and their certificates. */
MUST_CHECK gpg_error_t keystore_add_secret_file(struct keystore *keystore, const char *file,
                                                const struct passphrase_source *passphrases);
/* Reads exactly one certificate (the first) from a file (-f): it need not be in any keyring and is trusted by being
 * named. */
MUST_CHECK gpg_error_t keystore_certificate_file(struct keystore *keystore, const char *file, struct certificate **ret);

/* A provider of secret keys that are elsewhere (agent.c). GET gives GPG_ERR_NO_SECKEY where it does not have KEY. */
struct secret_provider {
    gpg_error_t (*have)(struct secret_provider *self, const struct key *key, bool *ret_on_card);
    gpg_error_t (*get)(struct secret_provider *self, struct failure *failure, const struct key *key,
                       struct secret_key **ret);
    void (*free)(struct secret_provider *self);
};
void keystore_set_provider(struct keystore *keystore, struct secret_provider *takes_provider);

/* How a user named a key: fingerprint, key id (8, 16 digits, 0x), keygrip (&…), `!` at the end, exact user id (=…),
 * mail (<…>, or a plain address), or a substring (*… or plain words), as gpg's "How to specify a user ID". */
enum key_spec_kind { SPEC_FPR, SPEC_KEYID, SPEC_KEYGRIP, SPEC_EXACT, SPEC_MAIL, SPEC_SUBSTRING };
struct key_match {
    struct certificate *certificate; /* a reference of the caller's */
    int exact;                       /* number of the key named with `!`, else -1 */
    enum key_spec_kind kind;
    unsigned ambiguous; /* further certificates that match as well */
};
/* Finds the best certificate for USE: a usable one before unusable ones, first found else. GPG_ERR_NO_PUBKEY,
 * GPG_ERR_INV_USER_ID; else as certificate_choose. */
MUST_CHECK gpg_error_t keystore_find(struct keystore *keystore, const char *spec, enum key_use use, uint32_t when,
                                     struct key_match *ret);
/* The certificate and key number for an issuer: fingerprint (N 20 or 32) or key id (N 8). GPG_ERR_NO_PUBKEY. */
MUST_CHECK gpg_error_t keystore_issuer(struct keystore *keystore, const uint8_t *id, size_t n, struct certificate **ret,
                                       unsigned *ret_number);
/* The secret key for KEY; GPG_ERR_NO_SECKEY where nobody has it. Owned by the caller. */
MUST_CHECK gpg_error_t keystore_secret(struct keystore *keystore, const struct key *key, struct secret_key **ret);
/* Number I of the secret encryption keys there are, for hidden recipients: software first. GPG_ERR_EOF at the end. */
MUST_CHECK gpg_error_t keystore_secret_nth(struct keystore *keystore, unsigned i, struct secret_key **ret);
/* First usable secret signing key: the default signer. */
MUST_CHECK gpg_error_t keystore_default_signer(struct keystore *keystore, uint32_t when, struct key_match *ret);

#endif
