/* SPDX-License-Identifier: GPL-3.0-or-later */
/* trustdb: what GnuPG's trustdb.gpg says about owners and user ids; read only, never recomputed. */
#ifndef PGP_TRUSTDB_H
#define PGP_TRUSTDB_H

#include "stream/failure.h"

#include <stdbool.h>

/* In gpg's order, so that they compare; the low four bits of its trust octets. */
enum trust {
    TRUST_UNKNOWN = 0, /* nothing is stored */
    TRUST_EXPIRED = 1,
    TRUST_UNDEFINED = 2,
    TRUST_NEVER = 3,
    TRUST_MARGINAL = 4,
    TRUST_FULL = 5,
    TRUST_ULTIMATE = 6,
};

struct trustdb;

/* Maps FILE (version 3, records of 40 octets). A missing or empty file is a database that knows nothing; another
 * version or a broken first record is GPG_ERR_BAD_DATA with a sentence. */
MUST_CHECK gpg_error_t trustdb_open(struct failure *failure, const char *file, struct trustdb **ret);
void trustdb_free(struct trustdb *trustdb);

/* What the user has said of the owner of the primary key with this fingerprint (FPR_N: 20 or 32; gpg folds the long
 * ones into 20 octets). RET_DISABLED (may be NULL): the owner of the home has disabled the key. TRUSTDB may be NULL:
 * unknown. */
enum trust trustdb_ownertrust(const struct trustdb *trustdb, const uint8_t *fpr, size_t fpr_n, bool *ret_disabled);

/* Validity of the user id (raw octets) as gpg last computed it; UID NULL: the best of all user ids of the key. A key
 * of ultimate ownertrust is valid whether or not gpg has got round to its check. TRUSTDB may be NULL: unknown. */
enum trust trustdb_validity(const struct trustdb *trustdb, const uint8_t *fpr, size_t fpr_n, const char *uid,
                            size_t uid_n);

#endif
