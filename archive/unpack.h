/* SPDX-License-Identifier: GPL-3.0-or-later */
/* unpack: a source that decompresses another one (gzip, bzip2, xz, zstd), for a compressed tar inside a message. */
#ifndef ARCHIVE_UNPACK_H
#define ARCHIVE_UNPACK_H

#include "feed.h"
#include "stream/failure.h"

/* The name of the compression that starts with these N bytes; NULL: none that is known. */
const char *unpack_kind(const uint8_t *bytes, size_t n);

/* KIND: a result of unpack_kind. BELOW (copied) lends nothing at the moment; its source is borrowed, and neither
 * finished nor freed. GPG_ERR_TRUNCATED where the compressed data is cut, GPG_ERR_BAD_DATA where it is damaged; the
 * sentence goes to FAILURE (may be NULL). */
MUST_CHECK gpg_error_t unpack_source_new(const struct feed *below, struct failure *failure, const char *kind,
                                         struct source **ret);

/* After the end of SOURCE: reads what is below to its last byte. *RET_TRAILING: bytes other than zero followed. */
MUST_CHECK gpg_error_t unpack_drain(struct source *source, bool *ret_trailing);

#endif
