/* SPDX-License-Identifier: GPL-3.0-or-later */
/* memory: what happens when there is none left, where libgcrypt cannot return an error. */
#ifndef GPGTAR_MEMORY_H
#define GPGTAR_MEMORY_H

/* libgcrypt aborts, or crashes, where an allocation of its own fails. From here on it waits for up to a second until
 * others gave memory back, and then the process ends with one sentence and exit code 1, as if it had been killed:
 * nothing has its name yet. Call before anything uses libgcrypt. */
void memory_install(void);

/* Says on FD that there is no memory, without using any. */
void memory_say(int fd);

#endif
