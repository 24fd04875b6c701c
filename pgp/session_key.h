/* SPDX-License-Identifier: GPL-3.0-or-later */
/* session_key: encrypted session keys: PKESK v3 and v6, SKESK v4, v5 and v6 (RFC 9580 5.1, 5.3; LibrePGP for v5). */
#ifndef PGP_SESSION_KEY_H
#define PGP_SESSION_KEY_H

#include "stream/stream.h"

#include "pubkey.h"
#include "s2k.h"

struct session_key {
    uint8_t cipher; /* enum cipher_algo; 0 where the packet does not say (SKESK v5, PKESK and SKESK v6): the header of
                       the encrypted data does */
    struct secret *key;
};
void session_key_clear(struct session_key *session_key);
/* Fresh and random for CIPHER. */
MUST_CHECK gpg_error_t session_key_new(enum cipher_algo cipher, struct session_key *ret);

/* A parsed encrypted session key packet. */
struct esk {
    bool symmetric; /* SKESK */
    uint8_t version;
    uint8_t algo;             /* PKESK: public-key algorithm */
    uint8_t keyid[8];         /* PKESK v3; zeros: hidden */
    uint8_t fpr[KEY_FPR_MAX]; /* PKESK v6 */
    uint8_t fpr_n;            /* 0: hidden */
    struct parts parts;       /* PKESK; none for an algorithm that we do not know */
    uint8_t cleartext_cipher; /* PKESK v3 X25519/X448 carries it outside; else 0 */
    uint8_t cipher;           /* SKESK */
    uint8_t aead;             /* SKESK v5, v6 */
    struct s2k s2k;
    uint8_t iv[16];
    uint8_t *encrypted; /* SKESK: encrypted session key (with tag for AEAD); NULL: the derived key is the session key */
    size_t encrypted_n;
};
#define ESK_BODY_MAX (16 * 1024)

/* BODY of a packet 1 or 3. GPG_ERR_UNKNOWN_VERSION and GPG_ERR_NOT_SUPPORTED end nothing: the caller skips the packet,
 * and gives the sentence if no other opens. GPG_ERR_INV_PACKET for a malformed one. */
MUST_CHECK gpg_error_t esk_parse(struct failure *failure, unsigned packet_type, const uint8_t *body, size_t n,
                                 struct esk **ret);
void esk_free(struct esk *esk);
bool esk_hidden(const struct esk *esk);
/* Whether KEY is the one the PKESK names (or it is hidden and of this algorithm). */
bool esk_for_key(const struct esk *esk, const struct key *key);

/* Opens a PKESK. GPG_ERR_NOT_SUPPORTED (with a sentence) for an algorithm that we do not know. Checksum and length are
 * checked in constant time; every flaw is GPG_ERR_DECRYPT_FAILED. */
MUST_CHECK gpg_error_t pkesk_open(struct failure *failure, const struct esk *esk, struct secret_key *secret_key,
                                  struct session_key *ret);
/* Opens a SKESK. GPG_ERR_BAD_PASSPHRASE where the packet tells (v5, v6; v4 with encrypted key whose algorithm octet is
 * invalid); a v4 cannot always tell. */
MUST_CHECK gpg_error_t skesk_open(struct failure *failure, const struct esk *esk, const struct secret *passphrase,
                                  const struct s2k_limits *limits, struct session_key *ret);

/* Writes a PKESK packet: VERSION 3 (for SEIPD 1 and packet 20) or 6 (for SEIPD 2). HIDDEN: key id or fingerprint left
 * out. */
MUST_CHECK gpg_error_t pkesk_write(struct failure *failure, unsigned version, const struct key *key, bool hidden,
                                   const struct session_key *session_key, struct sink *sink);
/* Writes a SKESK packet: VERSION 4 (CFB), 5 (packet 20) or 6 (SEIPD 2), with S2K and AEAD (5, 6). */
MUST_CHECK gpg_error_t skesk_write(struct failure *failure, unsigned version, const struct secret *passphrase,
                                   const struct s2k *s2k, enum cipher_algo cipher, enum aead_algo aead,
                                   const struct session_key *session_key, struct sink *sink);
/* Version 4 without an encrypted session key, as gpg -c alone writes it: the derived key is the session key. */
MUST_CHECK gpg_error_t skesk_write_direct(struct failure *failure, const struct secret *passphrase,
                                          const struct s2k *s2k, enum cipher_algo cipher, struct sink *sink,
                                          struct session_key *ret);

#endif
