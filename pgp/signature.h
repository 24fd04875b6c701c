/* SPDX-License-Identifier: GPL-3.0-or-later */
/* signature: signature and one-pass packets, versions 3 to 6 (RFC 9580 5.2, 5.4; LibrePGP for v5). */
#ifndef PGP_SIGNATURE_H
#define PGP_SIGNATURE_H

#include "stream/stream.h"

#include "pubkey.h"

enum signature_type {
    SIG_BINARY = 0x00,
    SIG_TEXT = 0x01,
    SIG_CERT_GENERIC = 0x10,
    SIG_CERT_PERSONA = 0x11,
    SIG_CERT_CASUAL = 0x12,
    SIG_CERT_POSITIVE = 0x13,
    SIG_SUBKEY_BINDING = 0x18,
    SIG_PRIMARY_BINDING = 0x19,
    SIG_DIRECT_KEY = 0x1F,
    SIG_KEY_REVOCATION = 0x20,
    SIG_SUBKEY_REVOCATION = 0x28,
    SIG_CERT_REVOCATION = 0x30,
};

/* Octets of a signature packet's body at most; more is refused. */
#define SIGNATURE_BODY_MAX (256 * 1024)

struct notation {
    const char *name;  /* "name@domain" */
    const char *value; /* human-readable text */
    bool critical;
};

/* A parsed signature. Only subpackets of the hashed area count, but for two that prove themselves: the issuer may be a
 * hint from the unhashed area, and so may the embedded signature. Of several of a kind the last one counts. */
struct signature {
    uint8_t version;
    uint8_t type;
    uint8_t algo;   /* enum pubkey_algo */
    uint8_t digest; /* enum digest_algo */
    uint8_t left16[2];
    uint8_t salt[64];
    uint8_t salt_n; /* v6 */
    uint32_t created;
    uint32_t expires;     /* seconds after created; 0: never */
    uint32_t key_expires; /* seconds after the key's creation; 0: never; has_key_expires */
    bool has_created, has_key_expires, exportable, primary_uid, has_features, has_flags, has_reason;
    uint8_t issuer_keyid[8];
    bool has_issuer_keyid;
    uint8_t issuer_fpr[KEY_FPR_MAX];
    uint8_t issuer_fpr_n;
    uint8_t flags;    /* first key-flags octet */
    uint8_t features; /* first octet: 1 SEIPD 1, 2 OCB (packet 20), 4 v5 keys, 8 SEIPD 2 */
    uint8_t reason;   /* revocation code */
    uint8_t pref_cipher[32], pref_cipher_n;
    uint8_t pref_digest[32], pref_digest_n;
    uint8_t pref_compress[16], pref_compress_n;
    uint8_t pref_aead[16], pref_aead_n;     /* LibrePGP/crypto-refresh draft subpacket 34 */
    uint8_t pref_suites[32], pref_suites_n; /* RFC 9580 subpacket 39: pairs cipher, aead */
    bool critical_unknown;      /* a critical subpacket or notation that we do not know: the signature is not valid */
    struct signature *embedded; /* back signature; NULL where there is none */
    struct parts parts;
    /* What the digest covers, owned: from the version octet to the end of the hashed area; v3: type and time. */
    uint8_t *hashed;
    size_t hashed_n;
};

/* BODY of a packet 2. Unknown versions: GPG_ERR_UNKNOWN_VERSION without a sentence; unknown algorithms parse, parts is
 * empty. GPG_ERR_INV_PACKET for what is malformed, in a known subpacket too. */
MUST_CHECK gpg_error_t signature_parse(struct failure *failure, const uint8_t *body, size_t n, struct signature **ret);
void signature_free(struct signature *signature);

struct one_pass {
    uint8_t version;
    uint8_t type, digest, algo;
    uint8_t keyid[8];
    uint8_t fpr[KEY_FPR_MAX];
    uint8_t fpr_n;
    uint8_t salt[64];
    uint8_t salt_n;
    bool last; /* "nested" octet not zero: the last before the content */
};
/* BODY of a packet 4; errors as for signature_parse. */
MUST_CHECK gpg_error_t one_pass_parse(struct failure *failure, const uint8_t *body, size_t n, struct one_pass *ret);

/* Whether the issuer named in SIGNATURE is KEY (by fingerprint if it names one, else by key id). */
bool signature_by(const struct signature *signature, const struct key *key);

/* Completes the digest in MD (takes and closes it) over the trailer of SIGNATURE and checks the value with KEY. Says
 * nothing about time, policy, weak digests or critical_unknown. GPG_ERR_BAD_SIGNATURE (also for one without a creation
 * time, RFC 9580 5.2.3.11, and where KEY and SIGNATURE are of versions or algorithms that do not go together), or
 * GPG_ERR_NOT_SUPPORTED. For v5 document signatures LITERAL (the literal packet's format, name length, name and date:
 * LibrePGP 5.2.4) is hashed: NULL for the six zeros of a detached one. */
MUST_CHECK gpg_error_t signature_check(const struct signature *signature, const struct key *key, gcry_md_hd_t takes_md,
                                       const uint8_t *literal, size_t literal_n);

/* Signatures about keys: hash what the type covers and check with SIGNER. TARGET: the subkey of types 0x18, 0x19 and
 * 0x28, else NULL. UID: the body of a packet 13 or 17. A type that does not fit is GPG_ERR_BAD_SIGNATURE. */
MUST_CHECK gpg_error_t signature_check_key(const struct signature *signature, const struct key *signer,
                                           const struct key *primary, const struct key *target);
MUST_CHECK gpg_error_t signature_check_uid(const struct signature *signature, const struct key *signer,
                                           const struct key *primary, unsigned uid_packet_type, const uint8_t *uid,
                                           size_t uid_n);

/* Making a document signature. Version follows the key's (4, 5, 6). */
struct signature_params {
    uint8_t type; /* SIG_BINARY */
    uint8_t digest;
    uint32_t created;
    uint8_t salt[64]; /* v6: random, the same as in the one-pass packet and at the start of the hash */
    const struct notation *notations;
    size_t notation_n;
    /* v5: the literal packet's format, name length, name and date; NULL for a detached signature. */
    const uint8_t *literal;
    size_t literal_n;
};
/* Fills salt for a v6 key. */
void signature_params_salt(const struct key *key, struct signature_params *params);
MUST_CHECK gpg_error_t one_pass_write(const struct key *key, const struct signature_params *params, bool last,
                                      struct sink *sink);
/* Finishes MD (takes and closes it), signs and writes the signature packet to SINK. */
MUST_CHECK gpg_error_t signature_write(struct failure *failure, struct secret_key *secret_key,
                                       const struct signature_params *params, gcry_md_hd_t takes_md, struct sink *sink);

#endif
