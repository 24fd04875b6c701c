/* SPDX-License-Identifier: GPL-3.0-or-later */
/* failure: the first failure of an operation, its code and its sentence.
 *
 * The function that notices a failure says so once, here; everyone above passes the code on. The first
 * sentence stands, later ones are dropped: they are consequences. */
#ifndef STREAM_FAILURE_H
#define STREAM_FAILURE_H

#include "bytes.h"

#include <gpg-error.h>
#include <pthread.h>

/* Longest sentence, in bytes with its NUL; a longer one is cut. */
#define FAILURE_SENTENCE_MAX 1024

struct failure {
    pthread_mutex_t lock;
    gpg_error_t code;                    /* 0: nothing has failed; lock */
    char sentence[FAILURE_SENTENCE_MAX]; /* no newline, no "gpgtar:" before it; lock */
};

void failure_init(struct failure *failure);
void failure_destroy(struct failure *failure);

/* Notes CODE (not 0) and the sentence if FAILURE is the first; always returns CODE. FAILURE may be NULL: then
 * only the code travels. Safe from any thread. Names of files and keys in the sentence are raw bytes: the one who
 * prints escapes them. */
gpg_error_t fail(struct failure *failure, gpg_error_t code, const char *format, ...) PRINTF_LIKE(3, 4);

/* The same for the system error NUMBER (errno): returns its code; ": " and its English text end the sentence. */
gpg_error_t fail_errno(struct failure *failure, int number, const char *format, ...) PRINTF_LIKE(3, 4);

/* Puts "PREFIX: " before the sentence that stands, once it is known what it is about; nothing if nothing has failed or
 * the sentence names PREFIX already. */
void failure_prefix(struct failure *failure, const char *prefix);

/* The code that stands (0: none). RET_SENTENCE may be NULL; else it takes a copy, "" if nothing has failed. */
gpg_error_t failure_get(struct failure *failure, char ret_sentence[FAILURE_SENTENCE_MAX]);

#endif
