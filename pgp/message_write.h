/* SPDX-License-Identifier: GPL-3.0-or-later */
/* message_write: an OpenPGP message made in one pass: literal, signed, compressed, encrypted, armored, as asked for.
 *
 *   bytes ▸ literal ▸ ([compress ×N]) ▸ ([aead ×M] | [mdc]) ▸ framing ▸ prelude ▸ (armor) ▸ below
 *   one-pass packets ▸ ┘ ◂ signatures                         encrypted session keys ▸ ┘
 *
 * […] are rings (stream/ring.h), with threads where there are jobs. Digests for signatures are taken of the blocks in
 * the first of them; where there is none, in one of their own. */
#ifndef PGP_MESSAGE_WRITE_H
#define PGP_MESSAGE_WRITE_H

#include "stream/run.h"
#include "stream/stream.h"

#include "aead.h"
#include "session_key.h"
#include "signature.h"

enum protection { PROTECT_NONE, PROTECT_SEIPD_1, PROTECT_PACKET_20, PROTECT_SEIPD_2 };

struct message_recipient {
    const struct key *key;
    bool hidden;
};

struct message_signer {
    struct secret_key *secret_key; /* borrowed */
    uint8_t digest;                /* enum digest_algo */
};

struct signature_made { /* for status lines */
    const struct key *key;
    uint8_t type, digest;
    uint32_t created;
};

struct message_params {
    enum protection protection;
    uint8_t cipher; /* enum cipher_algo */
    uint8_t aead;   /* PROTECT_PACKET_20, PROTECT_SEIPD_2 */
    uint8_t chunk_octet;
    const struct message_recipient *recipients;
    size_t recipient_n;
    const struct secret *const *passphrases;
    size_t passphrase_n;
    struct s2k s2k; /* for the passphrases (a fresh salt is drawn for each) */
    const struct message_signer *signers;
    size_t signer_n;
    bool detached; /* only the signatures are written */
    const struct notation *notations;
    size_t notation_n;
    uint8_t compress;   /* enum compress_algo */
    int compress_level; /* -1: default */
    bool armor;
    const char *const *comments;           /* NULL-terminated, or NULL */
    const struct session_key *session_key; /* NULL: a random one */
    uint32_t now;                          /* time of the signatures */
    unsigned jobs;                         /* 0: no threads at all; else workers for compression and AEAD */
    void (*signed_one)(void *context, const struct signature_made *made);
    /* The session key in use, told before the first byte, from message_sink_new (--show-session-key); may be NULL. */
    void (*session_key_made)(void *context, const struct session_key *session_key);
    void *context;
};

/* PARAMS and what it points to are borrowed until the sink is freed. RUN gives the failure slot and is needed for jobs
 * > 0. What can be known early (unknown algorithms, keys that cannot encrypt) fails here. Nothing is written below
 * before the session key is encrypted for everybody, which with jobs > 0 and several processors is done meanwhile on a
 * thread of its own, unless a single passphrase makes the session key. finish makes the signatures, on the caller's
 * thread, and finishes what is below.
 *
 * The bytes do not depend on jobs and on the sizes of the writes, but for what is random in them. Detached: neither
 * compression nor encryption. GPG_ERR_INV_ARG: protection without anybody who could open it. A message with neither
 * protection nor signers is made if asked for: it is for the caller to refuse.
 *
 * Memory besides the keys: 0.2 MiB for framing; with signers and jobs 1 MiB; deflate (2·jobs + 2) · 0.5 + jobs · 0.6
 * MiB; AEAD 2 MiB for AES in OCB or GCM, else (2·jobs + 2) · 0.5 MiB, and more with chunks above 256 KiB. An S2K with
 * Argon2 has its own at the same time. With 2 jobs and the usual algorithms that is 8 MiB, with 16 jobs 30 MiB. */
MUST_CHECK gpg_error_t message_sink_new(struct run *run, const struct message_params *params, struct sink *takes_below,
                                        struct sink **ret);

#endif
