/* SPDX-License-Identifier: GPL-3.0-or-later */
/* inflate: reads ZIP (raw deflate, RFC 1951) and ZLIB (RFC 1950) as OpenPGP uses them (RFC 9580 5.6), through ISA-L
 * where it is built in, else zlib. */
#ifndef PGP_INFLATE_H
#define PGP_INFLATE_H

#include "stream/failure.h"
#include "stream/stream.h"

#include "algo.h"

/* Inflates BODY (borrowed) as it is pulled, in constant memory (about 330 KiB); finish reads to the end of the deflate
 * data and does not finish BODY. What follows the end in BODY is an error for ZLIB; for ZIP it is left alone, because
 * Sequoia hides the length of its messages behind padding there. GPG_ERR_COMPR_FAILED: damaged, a wrong Adler-32
 * (ZLIB), a preset dictionary. GPG_ERR_TRUNCATED: BODY ends before the deflate data does; gpg tolerates that, we do
 * not. */
MUST_CHECK gpg_error_t inflate_source_new(struct failure *failure, enum compress_algo algo, struct source *borrows_body,
                                          struct source **ret);
/* For ZIP too, what follows the end is an error. To be called before the first peek. */
void inflate_source_no_padding(struct source *inflate);

#endif
