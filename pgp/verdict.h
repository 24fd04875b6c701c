/* SPDX-License-Identifier: GPL-3.0-or-later */
/* verdict: the signatures of a message, from what announces them to what is said about each. */
#ifndef PGP_VERDICT_H
#define PGP_VERDICT_H

#include "hash_set.h"
#include "message_read.h"

/* A message's signatures and their running digests. */
struct verdict;

/* NULL: out of core. PARAMS is borrowed. */
struct verdict *verdict_new(const struct read_params *params);
void verdict_free(struct verdict *verdict);

/* What announces a signature, before the content: a one-pass packet's body, to be followed by its signature in the same
 * LAYER of the message; or a signature's, which is complete already. GPG_ERR_INV_PACKET, GPG_ERR_TOO_MANY. */
MUST_CHECK gpg_error_t verdict_announce(struct verdict *verdict, struct failure *failure, unsigned layer,
                                        const uint8_t *one_pass, size_t n);
MUST_CHECK gpg_error_t verdict_prefix(struct verdict *verdict, struct failure *failure, const uint8_t *signature,
                                      size_t n);
/* The content as it passes. */
void verdict_update(struct verdict *verdict, const void *bytes, size_t n);

/* After the content. LITERAL: its fields, NULL for detached signatures. Judges the signatures that came before it. */
MUST_CHECK gpg_error_t verdict_content_end(struct verdict *verdict, const struct literal *literal);
/* One-pass packets of LAYER whose signature has not come yet. */
unsigned verdict_pending(const struct verdict *verdict, unsigned layer);
/* A signature after the content, with something pending. */
MUST_CHECK gpg_error_t verdict_signature(struct verdict *verdict, struct failure *failure, unsigned layer,
                                         const uint8_t *signature, size_t n);
/* LAYER is at its end: what is pending is missing. */
void verdict_layer_end(struct verdict *verdict, unsigned layer);

/* To be filled in further by the reader; owned by VERDICT, but verdict_take gives it away and frees the rest. */
struct message_verdict *verdict_message(struct verdict *verdict);
struct message_verdict *verdict_take(struct verdict *takes_verdict);

#endif
