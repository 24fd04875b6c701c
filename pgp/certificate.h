/* SPDX-License-Identifier: GPL-3.0-or-later */
/* certificate: a transferable public key, checked: which keys are bound, valid, for what, and what its owner prefers
 * (RFC 9580 10.1; choices as gpg makes them). A certificate that lies is never used.
 *
 * Only self-signatures count. Their rules:
 * - the newest valid one of a kind stands, the later in the file among those of the same second; those with an unknown
 *   critical subpacket or a wrong value, and those older than the key, do not exist;
 * - MD5 does not count; SHA-1 and RIPEMD-160 count at any age, as for gpg (since 2019 it refuses SHA-1 only in
 *   certifications by other people, which are not looked at here);
 * - a primary key without any valid direct-key signature or certified user id is unbound, and so is all it has;
 * - a subkey that can sign needs a back signature: without one it does not sign, and if it can do nothing else it is
 *   unbound;
 * - revocations of keys cannot be taken back by later signatures, those of user ids can;
 * - key flags and expiry come from the direct-key signature where that has them, else from the newest user id that has
 *   them; without key flags the algorithm decides. */
#ifndef PGP_CERTIFICATE_H
#define PGP_CERTIFICATE_H

#include "key.h"
#include "signature.h"

/* Octets of one certificate at most (GnuPG's keybox limit is 5 MiB). */
#define CERTIFICATE_MAX (5 * 1024 * 1024)
/* Keys, and user ids, of one certificate at most: more are ignored. */
#define CERTIFICATE_KEYS_MAX 256
#define CERTIFICATE_UIDS_MAX 1024
/* Self-signatures whose value is checked in one certificate at most: later ones do not count. A flood of forged ones
 * costs no more than a second or two. */
#define CERTIFICATE_CHECKS_MAX 4096

enum key_use { KEY_CERTIFIES = 1, KEY_SIGNS = 2, KEY_ENCRYPTS = 4 | 8, KEY_AUTHENTICATES = 32 };

enum key_state {
    KEY_VALID,
    KEY_EXPIRED,
    KEY_REVOKED,      /* hard (no reason, compromised, unknown reason): as if it never had been valid */
    KEY_REVOKED_SOFT, /* superseded, retired or uid gone: signatures before the revocation stay good */
    KEY_UNBOUND,      /* no valid binding (or back signature): never used */
    KEY_NOT_YET,      /* made in the future */
};

/* A subkey's signatures are checked when it is first asked for, also through a const pointer: one thread at a time may
 * use a certificate and its twins. */
struct certificate;

/* Octets from BYTES to where the certificate that starts there ends (packets before its primary key included), as far
 * as the packet headers tell; N where nothing else follows or a header is malformed. Cheap: nothing is parsed. */
size_t certificate_span(const uint8_t *bytes, size_t n);

/* Parses one transferable key (public or secret: the public parts of it) from N octets of packets and checks its own
 * signatures as of now; *RET_USED is where the next certificate begins. Unknown packets, user attributes, keys and
 * signatures of unknown versions are skipped. GPG_ERR_NO_DATA: no key in it; GPG_ERR_INV_PACKET, GPG_ERR_TOO_LARGE;
 * GPG_ERR_NOT_SUPPORTED, GPG_ERR_UNKNOWN_VERSION for the version of the primary key. After an error certificate_span
 * tells where the next one begins. */
MUST_CHECK gpg_error_t certificate_parse(struct failure *failure, const uint8_t *bytes, size_t n,
                                         struct certificate **ret, size_t *ret_used);
struct certificate *certificate_ref(struct certificate *certificate);
/* A certificate of its own over the same checked contents: named by nobody, not disabled. NULL: out of memory. */
struct certificate *certificate_twin(const struct certificate *certificate);
void certificate_free(struct certificate *certificate);

/* Number of keys; 0 is the primary. */
unsigned certificate_keys(const struct certificate *certificate);
/* Borrowed. */
struct key *certificate_key(const struct certificate *certificate, unsigned number);
/* State of a key at WHEN (seconds since 1970), the primary's state included: a subkey of an expired or revoked primary
 * is that too. */
enum key_state certificate_key_state(const struct certificate *certificate, unsigned number, uint32_t when);
/* When it expires (0: never), when it was revoked (0: not); the key's own, the primary's not included. */
uint32_t certificate_key_expires(const struct certificate *certificate, unsigned number);
uint32_t certificate_key_revoked(const struct certificate *certificate, unsigned number);
/* enum key_use bits; 0 where it is unbound. */
unsigned certificate_key_uses(const struct certificate *certificate, unsigned number);

/* User ids that are certified by the primary key, primary user id first; raw bytes, not NUL-terminated by the format
 * but here. RET_REVOKED (may be NULL): revoked, or its certification has expired. */
unsigned certificate_uids(const struct certificate *certificate);
const char *certificate_uid(const struct certificate *certificate, unsigned number, bool *ret_revoked);
/* Octets of it: a hostile one may contain NULs. */
size_t certificate_uid_length(const struct certificate *certificate, unsigned number);
/* The user id by which the certificate was asked for, set by the keystore; -1: by a key, or not asked for. */
int certificate_named_uid(const struct certificate *certificate);
void certificate_set_named_uid(struct certificate *certificate, int number);
/* Of that user id's, else the primary one's (v6: the direct-key's) newest valid self-signature, else of the other kind.
 * NULL: none. */
const struct signature *certificate_preferences(const struct certificate *certificate);
/* Set by the keystore from the trust database. */
bool certificate_disabled(const struct certificate *certificate);
void certificate_set_disabled(struct certificate *certificate, bool disabled);

/* The (sub)key that gpg would take for USE (KEY_SIGNS or KEY_ENCRYPTS) at WHEN: the newest valid subkey able to, the
 * first in the file among those of the same second, else the primary; EXACT ≥ 0 demands that number (KEYID!). Keys that
 * key_usable refuses are passed over. GPG_ERR_KEY_EXPIRED, GPG_ERR_CERT_REVOKED, GPG_ERR_PUBKEY_ALGO (the only fitting
 * one is of an algorithm or curve that is not supported), GPG_ERR_UNUSABLE_PUBKEY (none fits), GPG_ERR_KEY_DISABLED
 * (for KEY_ENCRYPTS): no sentence, the caller names the recipient. */
MUST_CHECK gpg_error_t certificate_choose(const struct certificate *certificate, enum key_use use, uint32_t when,
                                          int exact, unsigned *ret_number);
/* The same among the keys that FITS accepts: for signers, whose secret key must be there. None: GPG_ERR_NO_SECKEY. */
MUST_CHECK gpg_error_t certificate_choose_among(const struct certificate *certificate, enum key_use use, uint32_t when,
                                                int exact, bool (*fits)(void *context, const struct key *key),
                                                void *context, unsigned *ret_number);

#endif
