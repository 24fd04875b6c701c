/* SPDX-License-Identifier: GPL-3.0-or-later */
/* message_read: an OpenPGP message taken apart while it streams by, with a strict verdict at the end.
 *
 *   raw ▸ (armor) ▸ framing ▸ [aead ×M | mdc] ▸ inflate ▸ literal ▸ [digests] ▸ content
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
    const struct signature *signature; /* NULL: SIGNATURE_MISSING, or SIGNATURE_UNSUPPORTED of an unknown version */
    struct certificate *certificate;   /* NULL without the key; the verdict's own reference */
    unsigned key_number;
    uint8_t issuer[KEY_FPR_MAX]; /* as claimed */
    uint8_t issuer_n;            /* 8, 20 or 32; 0: not said */
    gpg_error_t code;            /* 0 for SIGNATURE_GOOD and SIGNATURE_GOOD_KEY_EXPIRED */
};
/* A signature may be that many seconds newer than now: clocks differ. A newer one is SIGNATURE_NOT_ALLOWED. */
#define SIGNATURE_CLOCK_SKEW 3600

enum message_event_kind {
    EVENT_ENC_TO,         /* esk */
    EVENT_NO_SECKEY,      /* esk: nobody has its secret key */
    EVENT_DECRYPTION_KEY, /* key (and certificate where known): it opened the message */
    EVENT_SESSION_KEY,    /* session_key: for --show-session-key */
    EVENT_BEGIN_DECRYPTION,
    EVENT_DECRYPTION_INFO, /* protection (PROTECT_NONE: packet 9), cipher, aead */
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
    struct keystore *keystore;                   /* NULL: none */
    const struct passphrase_source *passphrases; /* for SKESK; asked once with key NULL per attempt; NULL: none */
    const struct session_key *session_key;       /* --override-session-key; NULL: none */
    struct s2k_limits s2k_limits;
    bool ignore_mdc_error; /* read packet 9 and ignore a bad or missing MDC: marked unverified */
    bool allow_weak_digests;
    uint64_t max_output; /* bytes of content at most, 0: no limit (bomb limit) */
    uint32_t now;
    bool seek;     /* RAW can skip cheaply, and parts of the content will be skipped: see message_seeks */
    unsigned jobs; /* 0: no threads */
    void (*event)(void *context, const struct message_event *event); /* called on the thread that pulls; may be NULL */
    void *context;
};

/* What is known after source_finish (whether it failed or not). */
struct message_verdict {
    bool encrypted;
    bool integrity_ok;   /* every tag or the MDC was checked and right */
    bool announced;      /* signatures were announced before the content; as `encrypted` known from the start on */
    bool unprotected;    /* packet 9, or an MDC error that was ignored */
    bool complete;       /* read to the very end, grammar kept */
    bool passed_over;    /* parts of the content were skipped unread: what was lent is authenticated, and the last tag
                            was right, but no signature was looked at */
    unsigned signatures; /* number of verdicts */
    const struct signature_verdict *verdict;
    unsigned good;    /* GOOD and GOOD_KEY_EXPIRED */
    unsigned bad;     /* BAD, EXPIRED, KEY_EXPIRED, KEY_REVOKED, WEAK, NOT_ALLOWED */
    unsigned unknown; /* NO_KEY, UNSUPPORTED, MISSING */
    struct literal literal;
};

/* Reads up to the start of the content: session keys are opened (passphrases and agent are asked) here. *RET gives the
 * literal's content; its finish reads to the very end of RAW, checks the last tag or MDC, trailing packets and bytes,
 * and signatures. finish fails for damage of any kind and for grammar; signatures do not make it fail: the verdict
 * tells, the caller has the policy. RAW is finished too. What PARAMS points to is borrowed until the source is freed;
 * RUN may be NULL for jobs = 0.
 *
 * Threads (jobs > 0): a ring (stream/ring.h) for reading and decryption, with JOBS workers for EAX and one for what is
 * faster than reading, and one for expanding and hashing, where there is any: another one behind *RET does not pay.
 *
 * Codes: GPG_ERR_NO_DATA: not an OpenPGP message (keys, a detached signature among them). GPG_ERR_NO_SECKEY,
 * GPG_ERR_BAD_PASSPHRASE, GPG_ERR_NO_PASSPHRASE, and what key and agent say. GPG_ERR_DECRYPT_FAILED: damaged, or the
 * wrong session key: one sentence for both. GPG_ERR_CHECKSUM: the same where a passphrase opened the message, so that
 * it is known to be damage. GPG_ERR_UNSUPPORTED_PROTECTION: packet 9. GPG_ERR_NOT_SUPPORTED, GPG_ERR_UNKNOWN_PACKET (a
 * critical one), GPG_ERR_TRUNCATED, GPG_ERR_INV_PACKET, GPG_ERR_TOO_LARGE (max_output), GPG_ERR_COMPR_FAILED. Where
 * SEIPD 1 protects the data, flaws found inside are reported only after the MDC was found right; else the MDC is. */
MUST_CHECK gpg_error_t message_source_new(struct run *run, const struct read_params *params, struct source *takes_raw,
                                          struct source **ret);
/* With read_params.seek: whether source_skip on the content goes over what it skips, which is so for AEAD where nothing
 * is compressed or armored. A chunk is passed over where all of it is skipped; until one was, all is read and hashed,
 * and signatures are checked as ever. After that finish goes to the last tag by skipping too: the content's rest, what
 * follows it in the encryption and signatures are left unread (passed_over). Else skip reads, and threads are started
 * as without the flag. */
bool message_seeks(const struct source *message);
/* Borrowed; valid until the source is freed. */
const struct message_verdict *message_verdict(const struct source *message);

/* Detached signatures: SIGNATURES (armored or not) over CONTENT. Both are read to their ends and finished. As above, it
 * is the verdict that says whether they are good. Of PARAMS keystore, allow_weak_digests, now, jobs and event count. */
MUST_CHECK gpg_error_t message_verify_detached(struct run *run, const struct read_params *params,
                                               struct source *takes_signatures, struct source *takes_content,
                                               struct message_verdict **ret);
void message_verdict_free(struct message_verdict *verdict);

#endif
