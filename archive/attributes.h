/* SPDX-License-Identifier: GPL-3.0-or-later */
/* attributes: xattrs and POSIX ACLs of a file on disk → pax records.
 *
 * One listxattr a file says that there are none of either; a file system without xattrs is asked once. */
#ifndef ARCHIVE_ATTRIBUTES_H
#define ARCHIVE_ATTRIBUTES_H

#include "owners.h"
#include "tar_header.h"

struct attributes;

struct attributes_params {
    bool no_xattrs;
    bool no_acls;
    struct owners *owners; /* borrowed; NULL: numbers only */
};

/* The file: an open descriptor, or (fd = -1) a name in a folder, whose last component is followed with FOLLOW. */
struct attributes_file {
    int fd;
    int folder_fd;
    const char *leaf;
    bool follow;
    dev_t dev;
};

struct attributes *attributes_new(const struct attributes_params *params); /* NULL: out of core */
void attributes_free(struct attributes *attributes);

/* Appends SCHILY.xattr.NAME records (value as it is, `%` and `=` of the name as %25 and %3D as GNU tar does),
 * SCHILY.acl.access and SCHILY.acl.default (text with comma separated entries, star's form with the number as a fourth
 * field), sorted by name. Attributes of the system.* kind other than ACLs are left out. An error is out of core; else
 * *RET_FLAW (NULL if there is none) names what could not be read and *RET_CODE says why. */
MUST_CHECK gpg_error_t attributes_read(struct attributes *attributes, const struct attributes_file *file,
                                       struct tar_buffer *records, const char **ret_flaw, gpg_error_t *ret_code);

/* The text of the ACL in the kernel's form (N bytes, linux/posix_acl_xattr.h version 2) appended to TEXT.
 * GPG_ERR_INV_DATA where it is none. */
MUST_CHECK gpg_error_t attributes_acl_text(const void *acl, size_t n, struct owners *owners, struct tar_buffer *text);

#endif
