/* SPDX-License-Identifier: GPL-3.0-or-later */
/* status: the lines "[GNUPG:] KEYWORD args" for other programs (GnuPG's doc/DETAILS), on --status-fd.
 *
 * Each line is written whole, at once, with one write (more only where the descriptor takes part of it). Safe from any
 * thread. A write error is kept, not raised: the work goes on, status_finish tells. All functions take NULL as "no
 * status descriptor". */
#ifndef GPGTAR_STATUS_H
#define GPGTAR_STATUS_H

#include "stream/failure.h"

#include <stdbool.h>
#include <time.h>

struct status;

/* FD must be open for writing, else GPG_ERR_EBADF with a sentence (exit 2). FD stays the caller's. FD -1: *RET is
 * NULL. */
MUST_CHECK gpg_error_t status_new(int fd, struct failure *failure, struct status **ret);
void status_free(struct status *status);

/* KEYWORD and arguments. Control bytes in the whole become %XX; format and arguments have no newline of their own.
 * ARGS "" writes the keyword alone. Free text that the reader percent-decodes goes through status_escape first. */
void status_line(struct status *status, const char *keyword, const char *args, ...) PRINTF_LIKE(3, 4);
/* TEXT with control bytes, DEL, '%', '+' and, if SPACES, blanks as %XX. The caller frees it; NULL: out of core. */
char *status_escape(const char *text, bool spaces);

/* The last line: SUCCESS for CODE 0, else "FAILURE - CODE". Later calls, and lines after it, write nothing. Returns the
 * first error of any write. */
MUST_CHECK gpg_error_t status_finish(struct status *status, gpg_error_t code);

/* PHASE: 'c' (files counted; UNIT NULL) or 's' (bytes: scaled to B, KiB, MiB … so that TOTAL fits 2^20). TOTAL 0: not
 * known. */
void status_progress(struct status *status, char phase, uint64_t current, uint64_t total);

struct status_extract {
    uint64_t extracted; /* regular files written */
    uint64_t skipped, bad_name, suspicious, symlink, hardlink, other;
};
void status_extract(struct status *status, const struct status_extract *counts);

/* Numbers as in OpenPGP packets. MDC_METHOD: 2 (SHA-1) with SEIPDv1, else 0; AEAD 0: none. */
void status_begin_encryption(struct status *status, int mdc_method, int cipher, int aead);
void status_end_encryption(struct status *status);
void status_begin_signing(struct status *status, int digest);
/* FINGERPRINT in hex. TYPE 'S' (standard) or 'D' (detached); SIG_CLASS 0x00. */
void status_sig_created(struct status *status, char type, int pubkey, int digest, int sig_class, time_t created,
                        const char *fingerprint);
void status_key_considered(struct status *status, const char *fingerprint, int flags);
/* REASON as in doc/DETAILS: 1 not found, 2 ambiguous, 3 wrong usage, 4 revoked, 5 expired, 9 no secret key,
 * 10 not trusted, 0 other. NAME as the person gave it. */
void status_inv_recp(struct status *status, int reason, const char *name);
void status_inv_sgnr(struct status *status, int reason, const char *name);
void status_no_recp(struct status *status, int reason);
void status_no_sgnr(struct status *status, int reason);
/* The input is no OpenPGP message: NODATA 1 and 2, as gpg says it. */
void status_no_data(struct status *status);
/* FORMAT is the literal packet's (b, t, u); NAME its file name, raw. */
void status_plaintext(struct status *status, unsigned char format, uint32_t date, const char *name);

#endif
