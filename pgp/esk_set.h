/* SPDX-License-Identifier: GPL-3.0-or-later */
/* esk_set: the encrypted session keys of a message, and the search for the one that opens it. */
#ifndef PGP_ESK_SET_H
#define PGP_ESK_SET_H

#include "message_read.h"

struct esk_set;

/* NULL: out of core. */
struct esk_set *esk_set_new(void);
void esk_set_free(struct esk_set *set);

/* BODY of a packet 1 or 3. What is of an unknown version or algorithm is skipped, and named only if nothing else opens
 * the message. *RET is borrowed; NULL: skipped. GPG_ERR_TOO_MANY beyond MESSAGE_ESK_MAX, GPG_ERR_INV_PACKET. */
MUST_CHECK gpg_error_t esk_set_add(struct esk_set *set, struct failure *failure, unsigned packet_type,
                                   const uint8_t *body, size_t n, const struct esk **ret);
/* Packets added, the skipped ones included. */
unsigned esk_set_count(const struct esk_set *set);

/* The encrypted data that the session key is for. */
struct esk_target {
    enum protection protection; /* PROTECT_NONE: packet 9 */
    uint8_t cipher;             /* of packet 20 and SEIPD 2; else 0 */
    const uint8_t *head;        /* the first HEAD_N octets of packet 9 and SEIPD 1, for mdc_quick_check */
    size_t head_n;
};

struct esk_opened {
    struct session_key session_key; /* to be cleared by the caller */
    bool by_passphrase;
    bool doubtful; /* by passphrase, and a wrong one could have passed */
};

/* Tries, in this order: the session key of PARAMS; keys in software, on the packets that name them and then each on all
 * hidden ones of its algorithm; keys on cards, each once at most (RFC 9580 5.1 lets a reader try them all, but each try
 * may ask for the PIN and counts on the card): on the packet that names it, else on the first hidden one whose
 * algorithm and sizes fit, and on no further hidden one, which a warning says if nothing opens the message;
 * passphrases, up to three, each on all packets. Only packets of the versions that go with TARGET count (RFC
 * 9580 10.3.2.1, LibrePGP), so that nobody can strip the protection of a message. Emits the events. Codes as
 * message_source_new. */
MUST_CHECK gpg_error_t esk_set_open(struct esk_set *set, struct failure *failure, const struct read_params *params,
                                    const struct esk_target *target, struct esk_opened *ret);

/* The sentence for a message whose session key is wrong or whose data is damaged: one and the same. */
#define ESK_DAMAGED "decryption failed: the message is damaged, or it was made for another session key"

#endif
