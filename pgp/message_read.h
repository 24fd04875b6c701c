/* SPDX-License-Identifier: GPL-3.0-or-later */
/* message_read: an OpenPGP message taken apart while it streams by, with a strict verdict at the end.
 *
 *   raw ▸ (armor) ▸ framing ▸ [aead ×M | mdc] ▸ inflate ▸ literal ▸ hash_tap ▸ content
 *
 * Grammar (RFC 9580 10.3): one message, one literal, nothing after it; marker and padding are ignored, unknown packets
 * skipped or, when critical, refused. */
#ifndef PGP_MESSAGE_READ_H
#define PGP_MESSAGE_READ_H

#include "stream/run.h"
#include "stream/stream.h"

#include "keystore.h"
#include "literal.h"
#include "message_write.h"
#include "session_key.h"

/* Nesting of compressed and encrypted packets at most (gpg allows 32). */
#define MESSAGE_NESTING_MAX 32
/* Encrypted session keys and signatures of one message at most. */
#define MESSAGE_ESK_MAX        1024
#define MESSAGE_SIGNATURES_MAX 32

enum signature_status {
    SIGNATURE_GOOD,
    SIGNATURE_GOOD_KEY_EXPIRED, /* made while the key was valid, expired since: good, with a warning */
    SIGNATURE_EXPIRED,          /* the signature itself has expired */
    SIGNATURE_KEY_EXPIRED,      /* made after the key's expiry: refused */
    SIGNATURE_KEY_REVOKED,      /* hard, or softly before the signature: refused */
    SIGNATURE_BAD,              /* the value is wrong */
    SIGNATURE_NO_KEY,           /* no certificate of the signer */
    SIGNATURE_WEAK,             /* weak digest */
    SIGNATURE_UNSUPPORTED,      /* algorithm or version that we cannot check */
    SIGNATURE_NOT_ALLOWED,      /* the key may not sign, is unbound, or the signature has a critical unknown part */
    SIGNATURE_MISSING,          /* one-pass packet without its signature */
};

struct signature_verdict {
    enum signature_status status;
    const struct signature *signature; /* NULL for SIGNATURE_MISSING */
    struct certificate *certificate;   /* NULL without the key; borrowed */
    unsigned key_number;
    uint8_t issuer[KEY_FPR_MAX]; /* as claimed */
    uint8_t issuer_n;            /* 8, 20 or 32 */
    gpg_error_t code;
};

enum message_event_kind {
    EVENT_ENC_TO,         /* esk */
    EVENT_NO_SECKEY,      /* esk: nobody has its secret key */
    EVENT_DECRYPTION_KEY, /* key (and certificate where known): it opened the message */
    EVENT_SESSION_KEY,    /* session_key: for --show-session-key */
    EVENT_BEGIN_DECRYPTION,
    EVENT_DECRYPTION_INFO, /* protection, cipher, aead */
    EVENT_PLAINTEXT,       /* literal */
    EVENT_SIGNATURE,       /* verdict */
    EVENT_DECRYPTION_OKAY,
    EVENT_DECRYPTION_FAILED,
    EVENT_GOOD_MDC, /* integrity was proven (MDC or all AEAD tags) */
    EVENT_END_DECRYPTION,
    EVENT_WARNING, /* text: e.g. weak S2K, legacy cipher */
};
struct message_event {
    enum message_event_kind kind;
    const struct esk *esk;
    const struct key *key;
    struct certificate *certificate;
    const struct session_key *session_key;
    enum protection protection;
    uint8_t cipher, aead;
    const struct literal *literal;
    const struct signature_verdict *verdict;
    gpg_error_t code;
    const char *text;
};

struct read_params {
    struct keystore *keystore;                   /* borrowed; NULL: none */
    const struct passphrase_source *passphrases; /* for SKESK; asked once with key NULL per attempt; NULL: none */
    const struct session_key *session_key;       /* --override-session-key; NULL: none */
    struct s2k_limits s2k_limits;
    bool ignore_mdc_error; /* read packet 9 and ignore a bad or missing MDC: marked unverified */
    bool allow_weak_digests;
    uint64_t max_output; /* bytes of content at most, 0: no limit (bomb limit) */
    uint32_t now;
    unsigned jobs;                                                   /* 0: no threads */
    void (*event)(void *context, const struct message_event *event); /* called on the thread that pulls; may be NULL */
    void *context;
};

/* What is known after source_finish (whether it failed or not). */
struct message_verdict {
    bool encrypted;
    bool integrity_ok;   /* every tag or the MDC was checked and right */
    bool unprotected;    /* packet 9, or an MDC error that was ignored */
    bool complete;       /* read to the very end, grammar kept */
    unsigned signatures; /* number of verdicts */
    const struct signature_verdict *verdict;
    unsigned good, bad,
        unknown; /* GOOD and GOOD_KEY_EXPIRED; BAD, EXPIRED, KEY_*, WEAK, NOT_ALLOWED; NO_KEY, UNSUPPORTED, MISSING */
    struct literal literal;
};

/* Reads up to the start of the content: session keys are opened (passphrases and agent are asked) here. *RET gives the
 * literal's content; its finish reads to the very end of RAW, checks the last tag or MDC, trailing packets and bytes,
 * and signatures. finish fails for damage of any kind and for grammar; signatures do not make it fail: the verdict
 * tells, the caller has the policy. RAW is finished too. Codes: GPG_ERR_NO_DATA (not OpenPGP), GPG_ERR_NO_SECKEY,
 * GPG_ERR_BAD_PASSPHRASE / GPG_ERR_NO_PASSPHRASE, GPG_ERR_DECRYPT_FAILED / GPG_ERR_CHECKSUM / GPG_ERR_BAD_MDC..
 * (damaged or wrong key, one sentence for public-key messages), GPG_ERR_NO_MDC… (packet 9), GPG_ERR_NOT_SUPPORTED,
 * GPG_ERR_TRUNCATED, GPG_ERR_INV_PACKET. */
MUST_CHECK gpg_error_t message_source_new(struct run *run, const struct read_params *params, struct source *takes_raw,
                                          struct source **ret);
/* Borrowed; valid until the source is freed. */
const struct message_verdict *message_verdict(const struct source *message);

/* A detached signature: SIGNATURES (armored or not) over CONTENT. Both are read to their ends and finished. */
MUST_CHECK gpg_error_t message_verify_detached(struct run *run, const struct read_params *params,
                                               struct source *takes_signatures, struct source *takes_content,
                                               struct message_verdict **ret);
void message_verdict_free(struct message_verdict *verdict);

#endif
