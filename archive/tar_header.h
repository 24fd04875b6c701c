/* SPDX-License-Identifier: GPL-3.0-or-later */
/* tar_header: one member's description → its header blocks, readable by GNU tar, bsdtar, Python and GnuPG's gpgtar.
 *
 * Written here and not by libarchive, whose writer ends octal fields with a blank (gpgtar reads them as 0) and has no
 * way to store a name outside the locale without a hdrcharset record (GNU tar warns): each of its headers would have to
 * be taken apart again. Every numeric field is octal with a NUL behind; a value that octal cannot hold is base-256 in
 * the header and, but for times, which are clamped there, a pax record as well. Names: ustar name and prefix where they
 * fit with a NUL behind each, else a pax path record; valid UTF-8 or not, as bytes, with hdrcharset=BINARY only where a
 * record is not UTF-8 (libarchive fails on those without it). */
#ifndef ARCHIVE_TAR_HEADER_H
#define ARCHIVE_TAR_HEADER_H

#include "stream/bytes.h"

#include <gpg-error.h>
#include <stdbool.h>
#include <time.h>

#define TAR_BLOCK 512

/* Bytes from N to the next block. */
static inline size_t tar_padding(uint64_t n)
{
    return (size_t)((TAR_BLOCK - n % TAR_BLOCK) % TAR_BLOCK);
}

/* Grows as needed; start with all zero, end with tar_buffer_free. */
struct tar_buffer {
    uint8_t *bytes;
    size_t n;
    size_t capacity;
};
void tar_buffer_free(struct tar_buffer *buffer);
/* BYTES = NULL: zeros. */
MUST_CHECK gpg_error_t tar_buffer_add(struct tar_buffer *buffer, const void *bytes, size_t n);

/* One record of a pax extended header (POSIX 1003.1 pax, "LEN KEY=VALUE\n"). VALUE is any bytes. */
MUST_CHECK gpg_error_t tar_pax_add(struct tar_buffer *records, const char *key, const void *value, size_t n);

struct tar_member {
    const char *name; /* no trailing slash; folders get one */
    const char *link; /* symlink target or name of the first hard link; NULL */
    char type;        /* '0' file, '1' hard link, '2' symlink, '3' char, '4' block, '5' folder, '6' FIFO */
    uint32_t mode;    /* permission bits with setuid, setgid, sticky */
    uint64_t uid, gid;
    const char *uname, *gname; /* NULL: none */
    struct timespec mtime;
    uint64_t size; /* bytes that follow in the archive */
    uint32_t dev_major, dev_minor;
    bool sparse;        /* size counts the map and the data; GNU sparse 1.0 */
    uint64_t real_size; /* of a sparse member */
};

/* Appends to BUFFER the header blocks of MEMBER: a pax extended header if MEMBER needs one or RECORDS (may be NULL)
 * has any, then the ustar header. GPG_ERR_TOO_LARGE if the extended header would pass 1 GiB. */
MUST_CHECK gpg_error_t tar_header_add(struct tar_buffer *buffer, const struct tar_member *member,
                                      const struct tar_buffer *records);

#endif
