/* SPDX-License-Identifier: GPL-3.0-or-later */
/* stores: where the keys of a run are, by the options: GnuPG's home, its keyrings or keyboxd, its agent and its
 * trustdb, and files of keys. */
#ifndef GPGTAR_STORES_H
#define GPGTAR_STORES_H

#include "pgp/pgp.h"
#include "program.h"

struct stores;

/* Opens the files that the options ask for; the daemons wait for the first look-up and the first secret key.
 * KEY_PASSPHRASES is borrowed: for locked keys and the agent's loopback. */
MUST_CHECK gpg_error_t stores_new(const struct program *program, const struct passphrase_source *key_passphrases,
                                  struct stores **ret);
void stores_free(struct stores *stores);

/* Start the daemons now, while programs can still be started. What goes wrong with them comes up again, with its
 * sentence, if they turn out to be needed. */
void stores_start_keyboxd(struct stores *stores);
void stores_start_agent(struct stores *stores);

/* All borrowed. */
struct keystore *stores_keystore(const struct stores *stores);
struct agent *stores_agent(const struct stores *stores);
const struct trustdb *stores_trustdb(const struct stores *stores); /* NULL: none, nobody is trusted */
const char *stores_home(const struct stores *stores);              /* absolute */

#endif
