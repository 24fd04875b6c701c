/* SPDX-License-Identifier: GPL-3.0-or-later */
/* deflate: writes ZIP (raw deflate, RFC 1951) and ZLIB (RFC 1950) as OpenPGP uses them (RFC 9580 5.6).
 *
 * Compression works on independent blocks in parallel, so the bytes do not depend on the number of workers. The parts
 * of a block that do not look as if they could shrink, such as files that are compressed already, are stored, and the
 * whole block where it does not shrink. ISA-L does the fast levels where it is built in, zlib the rest. */
#ifndef PGP_DEFLATE_H
#define PGP_DEFLATE_H

#include "stream/ring.h"
#include "stream/run.h"
#include "stream/stream.h"

#include "algo.h"

/* The level that is used where none is given: ISA-L's 2, which takes hardly longer than its 1 (1.69 and 1.65 ns/byte
 * of text) and leaves 1 to 3 % less; where it is not built in, zlib's 1. */
#define DEFLATE_LEVEL_DEFAULT (-1)

/* Bytes of a stored piece. Of the 65535 that RFC 1951 3.2.4 allows, so many that a piece and its header are 64 KiB, a
 * part of the packet's body: who frames them need not gather. */
#define DEFLATE_STORED_MAX ((size_t)64 * 1024 - 5)

/* Bytes that are compressed on their own. Matches never cross their ends: against blocks of 1 MiB blocks of 256 KiB
 * cost 0.3 (level 1) to 0.6 % (level 6) of the size, measured on /usr/include and /usr/share, and a quarter of the
 * memory. */
#define DEFLATE_BLOCK_SIZE (4 * DEFLATE_STORED_MAX)

/* ALGO: COMPRESS_ZIP or COMPRESS_ZLIB. LEVEL: 0 stores; 1 to 3 are ISA-L's where it is built in, else zlib's; 4 to 9
 * are zlib's. WORKERS = 0: no threads, RUN may be NULL. Memory: that of a block job (ring.h) with twice
 * DEFLATE_BLOCK_SIZE, and about 0.6 MiB for each worker. OBSERVER (NULL: none) sees what is written. */
MUST_CHECK gpg_error_t deflate_sink_new(struct run *run, enum compress_algo algo, int level, unsigned workers,
                                        const struct block_observer *observer, struct sink *takes_below,
                                        struct sink **ret);

#endif
