/* SPDX-License-Identifier: GPL-3.0-or-later */
/* config: lines of a configuration file, as GnuPG writes them: a long option's name, perhaps with "--" before it, and
 * the rest of the line as its value; "#" begins a comment line; a value in double quotes loses them. */
#ifndef GPGTAR_CONFIG_H
#define GPGTAR_CONFIG_H

#include "stream/failure.h"

/* Larger files are refused. */
#define CONFIG_MAX_BYTES ((size_t)1 << 20)

/* Called for each line that has an option. VALUE is NULL where there is none. WHERE is "FILE, line N", for sentences.
 * An error ends the reading. */
typedef gpg_error_t config_line(void *context, const char *name, const char *value, const char *where);

/* Reads FOLDER/BASE; a file that does not exist is an empty one. Failures have their sentence in FAILURE. */
MUST_CHECK gpg_error_t config_read(const char *folder, const char *base, struct failure *failure, config_line *take,
                                   void *context);

/* Splits TEXT at blanks; '…' and "…" keep blanks (no escapes inside, quotes may be a part of a word: --a="b c"). The
 * words are given to TAKE in order. An unclosed quote is GPG_ERR_SYNTAX without a sentence: the caller knows where. */
MUST_CHECK gpg_error_t config_split(const char *text, char ***ret_words, size_t *ret_n);
void config_words_free(char **words, size_t n);

/* The home folder of GnuPG: HOMEDIR if not NULL or "", else GNUPGHOME likewise, else HOME/.gnupg (HOME NULL or "": the
 * user database's). A leading ~/ in HOMEDIR is HOME. The caller frees *RET. */
MUST_CHECK gpg_error_t config_home(const char *homedir, const char *gnupghome, const char *home,
                                   struct failure *failure, char **ret);

#endif
