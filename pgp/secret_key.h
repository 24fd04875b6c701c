/* SPDX-License-Identifier: GPL-3.0-or-later */
/* secret_key: secret key packets (RFC 9580 5.5.3) from files, locked or not. */
#ifndef PGP_SECRET_KEY_H
#define PGP_SECRET_KEY_H

#include "pubkey.h"
#include "s2k.h"

/* Asked for a passphrase. ATTEMPT: 0, 1, 2 …; a source that has nothing (more) to say returns GPG_ERR_NO_PASSPHRASE or
 * GPG_ERR_CANCELED. KEY names what it is for (NULL: a message's passphrase). NEW: a passphrase being chosen, to be
 * repeated. */
struct passphrase_source {
    gpg_error_t (*ask)(void *context, const struct key *key, unsigned attempt, bool is_new, struct secret **ret);
    void *context;
};

/* How the secret part is kept. */
enum secret_state {
    SECRET_PLAIN, /* or unlocked by now */
    SECRET_LOCKED,
    SECRET_DUMMY,
    SECRET_ON_CARD,
    SECRET_UNSUPPORTED, /* a key derivation, cipher or mode that we do not have */
};

/* Times that a passphrase is asked for. */
#define SECRET_KEY_ATTEMPTS 3

/* Parses a packet 5 or 7 whole; errors as for key_parse. A locked key is unlocked at its first use with a passphrase
 * from SOURCE (borrowed, may be NULL: GPG_ERR_NO_PASSPHRASE then); a wrong one is GPG_ERR_BAD_PASSPHRASE, a secret that
 * does not fit the public part GPG_ERR_BAD_SECKEY. Dummy and card stubs cannot be used: GPG_ERR_NO_SECKEY. Every usage
 * octet: 0, 253 (AEAD), 254, 255 and old direct cipher octets. */
MUST_CHECK gpg_error_t secret_key_parse(struct failure *failure, unsigned packet_type, const uint8_t *body, size_t n,
                                        const struct passphrase_source *source, struct secret_key **ret);
/* Also of keys that are not ours (agent.c): on a card or locked. */
enum secret_state secret_key_state(const struct secret_key *secret_key);
/* Whether it is one of secret_key_parse, and not one of an agent. */
bool secret_key_in_memory(const struct secret_key *secret_key);
/* Unlocks now, so that no question comes later; does nothing for keys that are not ours. */
MUST_CHECK gpg_error_t secret_key_unlock(struct failure *failure, struct secret_key *secret_key);

#endif
