/* SPDX-License-Identifier: GPL-3.0-or-later */
/* fd: source and sink on a descriptor. EINTR, short reads and writes, and non-blocking descriptors are dealt with here;
 * a wait on a pipe, socket or terminal ends when the run is cancelled. Pipes are made to hold 512 KiB where the system
 * lets us, and stay so for whoever else has them. */
#ifndef STREAM_FD_H
#define STREAM_FD_H

#include "run.h"
#include "stream.h"

/* A source that reads FD in blocks of BLOCK bytes (0: 256 KiB). NAME is for sentences (copied). CLOSES: free closes FD,
 * and so does a failure here. skip seeks in regular files, over 32 KiB or more. finish reads on to the end, so that who
 * writes to a pipe is not killed; not in regular files, where nobody would notice. RUN may be NULL: then waits cannot
 * be cancelled. */
MUST_CHECK gpg_error_t fd_source_new(struct run *run, int fd, const char *name, bool closes, size_t block,
                                     struct source **ret);

/* A sink that writes to FD. finish syncs nothing (that is outfile's work) and with CLOSES closes FD, reporting the
 * error of close; free closes without, and so does a failure here. A closed pipe is GPG_ERR_EPIPE; the program ignores
 * SIGPIPE. NAME and RUN as above. */
MUST_CHECK gpg_error_t fd_sink_new(struct run *run, int fd, const char *name, bool closes, struct sink **ret);
/* What goes to a regular file in pieces of up to 512 bytes waits for the next write or for finish, so that a packet's
 * header and the block behind it are one system call. Only for who finishes: free drops what waits. SINK is one of
 * fd_sink_new. */
void fd_sink_hold(struct sink *sink);

/* Reads until N bytes or the end: for small files. Waits where FD is non-blocking. No sentence: the caller knows the
 * name. */
MUST_CHECK gpg_error_t fd_read_full(int fd, void *to, size_t n, size_t *ret_got);
MUST_CHECK gpg_error_t fd_write_full(int fd, const void *bytes, size_t n);

/* Reads the whole of the file NAME (at most LIMIT bytes, else GPG_ERR_TOO_LARGE) into memory the caller frees. Regular
 * files, pipes and devices alike. */
MUST_CHECK gpg_error_t file_read_whole(struct failure *failure, const char *name, size_t limit, uint8_t **ret_bytes,
                                       size_t *ret_n);

#endif
