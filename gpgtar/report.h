/* SPDX-License-Identifier: GPL-3.0-or-later */
/* report: every word that the program says to a person, on stderr or in the log file.
 *
 * Each message is one line, "gpgtar: SENTENCE", written whole. Control bytes, and bytes that are not UTF-8, are shown
 * as \n, \t or \xHH, so that a file name cannot steer a terminal. All functions are safe from any thread; those that
 * take a report take NULL as "nobody listens". */
#ifndef GPGTAR_REPORT_H
#define GPGTAR_REPORT_H

#include "archive/notice.h"
#include "stream/failure.h"

#include <stdbool.h>

struct report;

/* Opens /dev/null on each of descriptors 0, 1 and 2 that is closed, so that no file opened later takes its number.
 * The first thing main does. */
MUST_CHECK gpg_error_t report_claim_standard_fds(void);

/* Speaks to FD (2 in the program), which stays the caller's. NULL: out of core. */
struct report *report_new(int fd);
void report_free(struct report *report); /* takes NULL */

/* quiet: no notes. verbose: 1 adds what report_verbose says. */
void report_levels(struct report *report, bool quiet, unsigned verbose);
/* From now on messages are appended to the file NAME instead (mode 0600 if it is made), with date and time before
 * each. */
MUST_CHECK gpg_error_t report_log_file(struct report *report, struct failure *failure, const char *name);

/* From now on messages are also appended to the file NAME in DIRECTORY_FD, likewise. */
MUST_CHECK gpg_error_t report_copy_file(struct report *report, struct failure *failure, int directory_fd,
                                        const char *name);

/* An error: the exit code becomes 1. */
void report_error(struct report *report, const char *format, ...) PRINTF_LIKE(2, 3);
/* "warning: …"; the exit code stays. */
void report_warning(struct report *report, const char *format, ...) PRINTF_LIKE(2, 3);
/* Worth knowing, not with --quiet. */
void report_note(struct report *report, const char *format, ...) PRINTF_LIKE(2, 3);
/* Only with --verbose. */
void report_verbose(struct report *report, const char *format, ...) PRINTF_LIKE(2, 3);
/* The sentence of FAILURE as an error; its code alone where there is no sentence; nothing if nothing has failed. */
void report_failure(struct report *report, struct failure *failure);
/* What happened to a member, in words; the kinds that CLI.md 3 and 4 end with exit 1 are errors. */
void report_notice(struct report *report, const struct notice *notice);
/* report_notice for archive/; borrows REPORT. */
struct notices report_notices(struct report *report);

/* A line that the next one overwrites (progress on a terminal); "" takes it away. Nothing where FD is no terminal. */
void report_transient(struct report *report, const char *line);
/* Whether FD is a terminal and there is no log file. */
bool report_on_terminal(struct report *report);

unsigned long report_errors(struct report *report);
unsigned long report_warnings(struct report *report);

/* Asks "gpgtar: QUESTION (y/N) " on the terminal /dev/tty. False without a terminal, and for any answer that does not
 * begin with y or Y. The caller looks at --batch, --yes and --no. */
bool report_ask(struct report *report, const char *format, ...) PRINTF_LIKE(2, 3);

/* TEXT (N bytes) made safe for a terminal, as messages show it. The caller frees it; NULL: out of core. */
char *report_escape(const char *text, size_t n);

/* To descriptor FD; the error of the write. */
MUST_CHECK gpg_error_t report_help(int fd);
MUST_CHECK gpg_error_t report_version(int fd);
MUST_CHECK gpg_error_t report_option_names(int fd);

#endif
