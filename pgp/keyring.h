/* SPDX-License-Identifier: GPL-3.0-or-later */
/* keyring: a file of certificates: transferable keys one after the other, binary or armored, or a keybox. Only read.
 *
 * The file is mapped. gpg replaces keyrings by renaming a new file over them, so that a mapping keeps the state it
 * began with; the few octets that gpg changes in place (a blob's type and flags) are read once each. */
#ifndef PGP_KEYRING_H
#define PGP_KEYRING_H

#include "stream/failure.h"

#include "key_spec.h"

/* Octets of an armored keyring at most: it is decoded into memory. */
#define KEYRING_ARMORED_MAX (256u * 1024 * 1024)

struct keyring;

/* GPG_ERR_ENOENT comes without a sentence; the rest (not readable, not a keyring) with one. An empty file is an empty
 * keyring. */
MUST_CHECK gpg_error_t keyring_open(struct failure *failure, const char *file, struct keyring **ret);
/* Over N octets of packets or a keybox from malloc; they are wiped before they are freed. NAME is for sentences. */
MUST_CHECK gpg_error_t keyring_from_memory(const char *name, uint8_t *takes_bytes, size_t n, struct keyring **ret);
void keyring_free(struct keyring *keyring);

/* The packets of the next certificate from *POSITION (0 at first) on that SPEC may match (NULL: any), borrowed from
 * KEYRING. What its packets claim is compared, no signature is checked. GPG_ERR_EOF (no sentence) at the end,
 * GPG_ERR_BAD_DATA with a sentence where the file is damaged. */
MUST_CHECK gpg_error_t keyring_next(struct failure *failure, const struct keyring *keyring, const struct key_spec *spec,
                                    size_t *position, const uint8_t **ret_bytes, size_t *ret_n);

#endif
