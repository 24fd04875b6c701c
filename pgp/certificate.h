/* SPDX-License-Identifier: GPL-3.0-or-later */
/* certificate: a transferable public key, checked: which keys are bound, valid, for what, and what its owner prefers
 * (RFC 9580 10.1; choices as gpg makes them). A certificate that lies is never used. */
#ifndef PGP_CERTIFICATE_H
#define PGP_CERTIFICATE_H

#include "key.h"
#include "signature.h"

/* Octets of one certificate at most (GnuPG's keybox limit is 5 MiB). */
#define CERTIFICATE_MAX (5 * 1024 * 1024)

enum key_use { KEY_CERTIFIES = 1, KEY_SIGNS = 2, KEY_ENCRYPTS = 4 | 8, KEY_AUTHENTICATES = 32 };

enum key_state {
    KEY_VALID,
    KEY_EXPIRED,
    KEY_REVOKED,      /* hard: as if it never had been valid */
    KEY_REVOKED_SOFT, /* superseded, retired or uid gone: signatures before the revocation stay good */
    KEY_UNBOUND,      /* no valid binding (or back signature): never used */
    KEY_NOT_YET,      /* made in the future */
};

struct certificate;

/* Parses one transferable key (public or secret: the public parts of it) from N octets of packets and checks its own
 * signatures as of now; *RET_USED is where the next certificate begins. Unknown packets are skipped. Weak digests in
 * self-signatures as in README (SHA-1 only before 2013… as gpg does). */
MUST_CHECK gpg_error_t certificate_parse(struct failure *failure, const uint8_t *bytes, size_t n,
                                         struct certificate **ret, size_t *ret_used);
struct certificate *certificate_ref(struct certificate *certificate);
void certificate_free(struct certificate *certificate);

/* Number of keys; 0 is the primary. */
unsigned certificate_keys(const struct certificate *certificate);
struct key *certificate_key(const struct certificate *certificate, unsigned number);
/* State of a key at WHEN (seconds since 1970), the primary's state included: a subkey of an expired or revoked primary
 * is that too. */
enum key_state certificate_key_state(const struct certificate *certificate, unsigned number, uint32_t when);
/* When it expires (0: never), when it was revoked (0: not). */
uint32_t certificate_key_expires(const struct certificate *certificate, unsigned number);
uint32_t certificate_key_revoked(const struct certificate *certificate, unsigned number);
unsigned certificate_key_uses(const struct certificate *certificate, unsigned number); /* enum key_use bits */

/* User ids, primary first; raw bytes, not NUL-terminated by the format but here. */
unsigned certificate_uids(const struct certificate *certificate);
const char *certificate_uid(const struct certificate *certificate, unsigned number, bool *ret_revoked);
/* Of the primary user id's (or direct-key) newest valid self-signature. NULL: none given. */
const struct signature *certificate_preferences(const struct certificate *certificate);
bool certificate_disabled(const struct certificate *certificate);
void certificate_set_disabled(struct certificate *certificate, bool disabled);

/* The (sub)key that gpg would take for USE (KEY_SIGNS or KEY_ENCRYPTS) at WHEN: newest valid subkey able to, else the
 * primary; EXACT ≥ 0 demands that number (KEYID!). GPG_ERR_UNUSABLE_PUBKEY, GPG_ERR_KEY_EXPIRED, GPG_ERR_CERT_REVOKED,
 * GPG_ERR_KEY_DISABLED: no sentence, the caller names the recipient. */
MUST_CHECK gpg_error_t certificate_choose(const struct certificate *certificate, enum key_use use, uint32_t when,
                                          int exact, unsigned *ret_number);

#endif
