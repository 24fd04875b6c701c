/* SPDX-License-Identifier: GPL-3.0-or-later */
/* armor: OpenPGP's ASCII form (RFC 9580 6), as source and as sink. */
#ifndef PGP_ARMOR_H
#define PGP_ARMOR_H

#include "stream/failure.h"
#include "stream/stream.h"

/* Looks at the first bytes (does not consume): is this text, so armor perhaps with other text before it? Binary OpenPGP
 * has bit 7 set in its first octet; a UTF-8 byte order mark counts as text. Nothing at all is not armored. */
MUST_CHECK gpg_error_t armor_detect(struct source *source, bool *ret_armored);

/* Takes armored text, gives the binary octets of its armor block.
 *
 * Text before the block is skipped (at most 64 KiB), headers with any key are ignored (64 KiB), lines may end in
 * blanks, CR and LF. The checksum is optional; a wrong one is no error (RFC 9580 6.1), but armor_checksum_wrong()
 * tells. The END line is needed and must match; after it only blank lines may follow, and that is checked before the
 * end is given out. MULTI (files of keys): the blocks of the text are joined, and text between and after them is
 * skipped. KIND: the words after BEGIN that are wanted ("PGP MESSAGE"), NULL for any.
 *
 * GPG_ERR_NO_DATA: no block, or one of another kind. GPG_ERR_INV_ARMOR: a character that is not base64, a group that is
 * not whole, a header without colon, an END line that does not match, text after it. GPG_ERR_TRUNCATED: no END line.
 * GPG_ERR_NOT_SUPPORTED: a cleartext signature. Memory: about 56 KiB. */
MUST_CHECK gpg_error_t armor_source_new(struct failure *failure, struct source *takes_text, const char *kind,
                                        bool multi, struct source **ret);
bool armor_checksum_wrong(const struct source *armor);

/* Writes a block of KIND in lines of 64 characters that end in LF. CRC: with a checksum, which old readers want and
 * which RFC 9580 6.1 says not to make for version 6 packets and SEIPD 2. COMMENTS: NULL-terminated list of Comment
 * header values, or NULL; GPG_ERR_INV_ARG where one has a line end. Nothing is written before the first write or
 * finish. */
MUST_CHECK gpg_error_t armor_sink_new(const char *kind, const char *const *comments, bool crc, struct sink *takes_below,
                                      struct sink **ret);

#endif
