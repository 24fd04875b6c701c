/* SPDX-License-Identifier: GPL-3.0-or-later */
/* keystore: where certificates and secret keys are looked for: files, keyrings, keybox, keyboxd, agent. */
#ifndef PGP_KEYSTORE_H
#define PGP_KEYSTORE_H

#include "certificate.h"
#include "key_spec.h"
#include "keyboxd.h"
#include "secret_key.h"
#include "trustdb.h"

struct keystore;

/* FAILURE takes the sentences about files, keyboxd and the agent. What is merely not found or not usable comes as a
 * code without a sentence: the caller names the recipient, the signer and the home that was searched. NULL: out of
 * core. */
struct keystore *keystore_new(struct failure *failure);
void keystore_free(struct keystore *keystore);

/* Places are searched in the order in which they were added. A keyring: transferable keys, binary or armored, or a
 * keybox (told by its first bytes). A missing file is GPG_ERR_ENOENT with a sentence unless MAY_BE_MISSING. */
MUST_CHECK gpg_error_t keystore_add_keyring(struct keystore *keystore, const char *file, bool may_be_missing);
/* Certificates at keyboxd. */
MUST_CHECK gpg_error_t keystore_add_keyboxd(struct keystore *keystore, struct keyboxd *takes_keyboxd);
/* Adds transferable secret keys (--secret-key-file): usable for signing and decryption, and their certificates.
 * PASSPHRASES (may be NULL) is borrowed as long as the keystore lives. GPG_ERR_NO_SECKEY: no secret key in FILE. */
MUST_CHECK gpg_error_t keystore_add_secret_file(struct keystore *keystore, const char *file,
                                                const struct passphrase_source *passphrases);
/* Reads exactly one certificate (the first) from a file (-f): it need not be in any keyring and is trusted by being
 * named. */
MUST_CHECK gpg_error_t keystore_certificate_file(struct keystore *keystore, const char *file, struct certificate **ret);

/* Keys that their user disabled are marked so, and between several certificates with the address asked for the more
 * valid one is taken. Borrowed as long as the keystore lives. */
void keystore_set_trustdb(struct keystore *keystore, const struct trustdb *trustdb);
/* Whether disabled keys are found as others are: gpg takes them for --encrypt-to and --default-recipient. */
void keystore_ignore_disabled(struct keystore *keystore, bool ignore);

/* A provider of secret keys that are elsewhere (agent.c). Both functions give GPG_ERR_NO_SECKEY where it does not have
 * KEY. */
struct secret_provider {
    gpg_error_t (*have)(struct secret_provider *self, const struct key *key, bool *ret_on_card);
    gpg_error_t (*get)(struct secret_provider *self, struct failure *failure, const struct key *key,
                       struct secret_key **ret);
    void (*free)(struct secret_provider *self);
};
/* Replaces the one there is, if any. */
void keystore_set_provider(struct keystore *keystore, struct secret_provider *takes_provider);

/* The name of the place that sentences give as searched (GnuPG's home). Borrowed as long as the keystore lives; NULL:
 * none. */
void keystore_set_place(struct keystore *keystore, const char *place);
const char *keystore_place(const struct keystore *keystore);

struct key_match {
    struct certificate *certificate; /* a reference of the caller's */
    int exact;                       /* number of the key named with `!`, else -1 */
    enum key_spec_kind kind;
    unsigned ambiguous; /* further certificates that match as well */
};
/* Finds the best certificate for USE: a usable one before unusable ones, first found else; for KEY_ENCRYPTS and a
 * plain address the one whose user id is most valid, then the one with the newest key, as gpg does. For KEY_SIGNS
 * usable means that the secret key is there too. A subkey that is not bound to the certificate names nothing. Specs as
 * in key_spec.h. GPG_ERR_NO_PUBKEY (for KEY_SIGNS GPG_ERR_NO_SECKEY where certificates match, but no secret key is
 * there), GPG_ERR_INV_USER_ID; else as certificate_choose: the reason of the first that matches (all user ids that
 * match are revoked: GPG_ERR_CERT_REVOKED; disabled: GPG_ERR_KEY_DISABLED). */
MUST_CHECK gpg_error_t keystore_find(struct keystore *keystore, const char *spec, enum key_use use, uint32_t when,
                                     struct key_match *ret);
/* The first certificate that SPEC names, whether or not it can be used: to tell which one is refused. */
MUST_CHECK gpg_error_t keystore_look_up(struct keystore *keystore, const char *spec, struct certificate **ret);
/* The certificate and key number for an issuer: fingerprint (N 20 or 32) or key id (N 8). A certificate to which the
 * key is bound comes before others that contain it. GPG_ERR_NO_PUBKEY. */
MUST_CHECK gpg_error_t keystore_issuer(struct keystore *keystore, const uint8_t *id, size_t n, struct certificate **ret,
                                       unsigned *ret_number);
/* The secret key for KEY, from secret files first, then from the provider; GPG_ERR_NO_SECKEY where nobody has it. Owned
 * by the caller. */
MUST_CHECK gpg_error_t keystore_secret(struct keystore *keystore, const struct key *key, struct secret_key **ret);
/* Number I of the secret encryption keys there are, for hidden recipients: those of secret files, then those that the
 * provider has for keys in the keyrings, keys on cards last. Whether they are valid does not matter for decryption.
 * GPG_ERR_EOF at the end. */
MUST_CHECK gpg_error_t keystore_secret_nth(struct keystore *keystore, unsigned i, struct secret_key **ret);
/* First usable secret signing key: the default signer. GPG_ERR_NO_SECKEY. */
MUST_CHECK gpg_error_t keystore_default_signer(struct keystore *keystore, uint32_t when, struct key_match *ret);
/* The certificate of the first secret key from a file, whether or not it can sign: who names a file means its key, and
 * no other may sign in its place. GPG_ERR_EOF where no file was added. */
MUST_CHECK gpg_error_t keystore_file_signer(struct keystore *keystore, struct key_match *ret);

/* The key of MATCH that signs at WHEN, among those whose secret key is there (the newest subkey may be on another
 * machine), and that secret key. Errors as certificate_choose; GPG_ERR_NO_SECKEY. */
MUST_CHECK gpg_error_t keystore_signing_key(struct keystore *keystore, const struct key_match *match, uint32_t when,
                                            unsigned *ret_number, struct secret_key **ret);

#endif
