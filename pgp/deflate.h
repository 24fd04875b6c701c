/* SPDX-License-Identifier: GPL-3.0-or-later */
/* deflate: ZIP (raw deflate, RFC 1951) and ZLIB (RFC 1950) as OpenPGP uses them (RFC 9580 5.6).
 *
 * Compression works on independent blocks in parallel, so the bytes do not depend on the number of workers. A block
 * that does not shrink is stored. ISA-L does the fast levels and inflate where it is built in, zlib the rest. */
#ifndef PGP_DEFLATE_H
#define PGP_DEFLATE_H

#include "stream/run.h"
#include "stream/stream.h"

#include "algo.h"

/* The level that is used where none is given: the fast one. */
#define DEFLATE_LEVEL_DEFAULT (-1)

/* ALGO: COMPRESS_ZIP or COMPRESS_ZLIB; LEVEL -1 … 9 (0: stored). WORKERS = 0: no threads, RUN may be NULL. */
MUST_CHECK gpg_error_t deflate_sink_new(struct run *run, enum compress_algo algo, int level, unsigned workers,
                                        struct sink *takes_below, struct sink **ret);

/* Inflates BODY (borrowed) as it is pulled. Nothing may follow the end of the deflate data in BODY
 * (GPG_ERR_COMPR_FAILED…); the Adler-32 of ZLIB is checked by finish. A ZIP stream may be raw; gpg tolerates a missing
 * end, we do not. */
MUST_CHECK gpg_error_t inflate_source_new(struct failure *failure, enum compress_algo algo, struct source *borrows_body,
                                          struct source **ret);

#endif
