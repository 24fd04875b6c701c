/* SPDX-License-Identifier: GPL-3.0-or-later */
/* events: what message_read finds, in words and in gpg's status lines. */
#ifndef GPGTAR_EVENTS_H
#define GPGTAR_EVENTS_H

#include "keys.h"

struct events {
    const struct program *program;
    struct keys *keys;
};

/* For read_params: CONTEXT is a struct events. */
void events_message(void *context, const struct message_event *event);

/* The policy on VERDICT once the message was read: 0 when its content may be released. Says every reason in words; the
 * failure of the reading itself (DAMAGE, 0 if none) goes before. */
MUST_CHECK gpg_error_t events_policy(const struct events *events, const struct message_verdict *verdict);

/* The same where nothing but signatures protects, and nothing is released: of a detached signature. */
MUST_CHECK gpg_error_t events_detached_policy(const struct events *events, const struct message_verdict *verdict);

/* Before content leaves unverified (-O): 0 where it is encrypted or signatures were announced. */
MUST_CHECK gpg_error_t events_protected(const struct events *events, const struct message_verdict *verdict);

#endif
