/* SPDX-License-Identifier: GPL-3.0-or-later */
/* owners: names of users and groups by number, each asked of the system once. */
#ifndef ARCHIVE_OWNERS_H
#define ARCHIVE_OWNERS_H

#include <sys/types.h>

struct owners;

struct owners *owners_new(void); /* NULL: out of core */
void owners_free(struct owners *owners);
/* NULL where the number has no name. Valid until the next call on OWNERS for the same kind. */
const char *owners_user(struct owners *owners, uid_t uid);
const char *owners_group(struct owners *owners, gid_t gid);

#endif
