/* SPDX-License-Identifier: GPL-3.0-or-later */
/* nameset: which names were seen, in 8 to 16 bytes a name however long it is.
 *
 * Holds 64-bit SipHash values under a random key, so that two names are taken for one with a probability of
 * n²/2^65 (1e-7 for a million names) that nobody can raise by choosing names. */
#ifndef ARCHIVE_NAMESET_H
#define ARCHIVE_NAMESET_H

#include "stream/bytes.h"

#include <gpg-error.h>
#include <stdbool.h>

struct nameset;

/* NULL: out of core, or no random bytes. */
struct nameset *nameset_new(void);
void nameset_free(struct nameset *set);
/* TAG tells sets within the set apart. *RET_NEW (may be NULL): it was not there. */
MUST_CHECK gpg_error_t nameset_add(struct nameset *set, uint64_t tag, const char *name, size_t n, bool *ret_new);
bool nameset_has(const struct nameset *set, uint64_t tag, const char *name, size_t n);

#endif
