/* SPDX-License-Identifier: GPL-3.0-or-later */
/* armor: OpenPGP's ASCII form (RFC 9580 6), as source and as sink. */
#ifndef PGP_ARMOR_H
#define PGP_ARMOR_H

#include "stream/failure.h"
#include "stream/stream.h"

/* Looks at the first bytes (does not consume): is this armor, possibly with text before it? Binary OpenPGP has bit 7
 * set in its first octet. */
MUST_CHECK gpg_error_t armor_detect(struct source *source, bool *ret_armored);

/* Takes armored text, gives binary octets of the first armor block. Leading text is skipped (at most 64 KiB), headers
 * are ignored, the checksum is optional and, when present but wrong, an error is not raised (RFC 9580 6.1) but
 * armor_checksum_wrong() tells. Text after the tail line other than blanks is an error at finish, unless the tail is
 * followed by another block and MULTI is set: then the blocks are joined (keys files). KIND: the words after BEGIN that
 * are wanted ("PGP MESSAGE"…), NULL for any kind; another is GPG_ERR_NO_DATA. */
MUST_CHECK gpg_error_t armor_source_new(struct failure *failure, struct source *takes_text, const char *kind,
                                        bool multi, struct source **ret);
bool armor_checksum_wrong(const struct source *armor);

/* Armor without checksum? RFC 9580 says a CRC24 SHOULD NOT be made for v6; gpg wants none either: CRC selects it.
 * COMMENTS: NULL-terminated list of Comment header values, or NULL. */
MUST_CHECK gpg_error_t armor_sink_new(const char *kind, const char *const *comments, bool crc, struct sink *takes_below,
                                      struct sink **ret);

#endif
