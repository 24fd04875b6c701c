/* SPDX-License-Identifier: GPL-3.0-or-later */
/* ahead: has files brought into the page cache, by threads of its own, shortly before they are read.
 *
 * Reading many small files that are not cached is one wait for the disk after another; here the waits overlap (14 000
 * files, 240 MB, cold virtual disk: 2.4 s without, 0.9 s with one thread, 0.7 s with four). All of it is a hint:
 * nothing fails, no byte is handed over, and what goes wrong is met again by who reads the file. */
#ifndef STREAM_AHEAD_H
#define STREAM_AHEAD_H

#include "run.h"

struct ahead;

/* Hints that can wait; more are not taken. */
#define AHEAD_HINTS 64

/* The threads start now and sleep. RUN is borrowed. */
MUST_CHECK gpg_error_t ahead_new(struct run *run, struct ahead **ret);
/* Drops what waits, and waits for what is being read. Takes NULL. */
void ahead_free(struct ahead *ahead);

/* The names that follow are in the folder FD, which is duplicated. With hints waiting in eight folders already, nothing
 * is done for those names. All together 16 descriptors are used at most. */
void ahead_folder(struct ahead *ahead, int fd);

/* NAME (copied) will be read soon: the first 256 KiB of a regular file, or of the first 16 regular files of a folder
 * (IS_FOLDER). No link is followed, no other file system entered, nothing but regular files opened for reading. false:
 * too many hints wait, say it again later. */
bool ahead_hint(struct ahead *ahead, const char *name, bool is_folder);

#endif
