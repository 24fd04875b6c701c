/* SPDX-License-Identifier: GPL-3.0-or-later */
/* prompts: which passphrase is wanted, for a key or an archive, and who is asked for it: what the options name,
 * gpg-agent or the terminal. */
#ifndef GPGTAR_PROMPTS_H
#define GPGTAR_PROMPTS_H

#include "pgp/pgp.h"
#include "program.h"

struct prompts;

/* NULL: out of core. */
struct prompts *prompts_new(const struct program *program);
void prompts_free(struct prompts *prompts);
/* Whose pinentry asks; borrowed. To be set before anything is asked. */
void prompts_set_agent(struct prompts *prompts, struct agent *agent);

/* Reads the passphrase where file, descriptor or command give it; it is kept. Asks nobody. */
MUST_CHECK gpg_error_t prompts_read_given(struct prompts *prompts);
/* A passphrase for the archive: asked once, twice where a person types a new one. */
MUST_CHECK gpg_error_t prompts_new_passphrase(struct prompts *prompts, struct secret **ret);
/* For locked keys and the agent's loopback. */
const struct passphrase_source *prompts_for_keys(const struct prompts *prompts);
/* For archives that are read. */
const struct passphrase_source *prompts_for_archives(const struct prompts *prompts);

#endif
