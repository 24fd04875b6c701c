/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "status.h"

#include "stream/fd.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct status {
    pthread_mutex_t lock;
    int fd;
    bool finished;     /* lock */
    gpg_error_t error; /* of the first write that failed; lock */
};

gpg_error_t status_new(int fd, struct failure *failure, struct status **ret)
{
    if (fd == -1) {
        *ret = NULL;
        return 0;
    }
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0)
        return fail(failure, gpg_error(GPG_ERR_EBADF), "--status-fd %d: that descriptor is not open", fd);
    if ((flags & O_ACCMODE) == O_RDONLY)
        return fail(failure, gpg_error(GPG_ERR_EBADF), "--status-fd %d: that descriptor is not open for writing", fd);
    struct status *status = calloc(1, sizeof *status);
    if (!status)
        return fail(failure, gpg_error_from_syserror(), "out of core");
    pthread_mutex_init(&status->lock, NULL);
    status->fd = fd;
    *ret = status;
    return 0;
}

void status_free(struct status *status)
{
    if (!status)
        return;
    pthread_mutex_destroy(&status->lock);
    free(status);
}

static bool needs_escape(unsigned char c)
{
    return c < 0x20 || c == 0x7f;
}

/* "[GNUPG:] " and BODY with its control bytes as %XX and a line end. NULL: out of core. */
static char *whole_line(const char *body)
{
    static const char prefix[] = "[GNUPG:] ";
    char *line = malloc(sizeof prefix + 3 * strlen(body) + 1);
    if (!line)
        return NULL;
    char *to = stpcpy(line, prefix);
    for (const char *from = body; *from != '\0'; from++) {
        if (needs_escape((unsigned char)*from))
            to += sprintf(to, "%%%02X", (unsigned char)*from);
        else
            *to++ = *from;
    }
    *to++ = '\n';
    *to = '\0';
    return line;
}

/* Under the lock. */
static void write_body(struct status *status, const char *body)
{
    if (status->finished || status->error)
        return;
    char *line = whole_line(body);
    status->error = line ? fd_write_full(status->fd, line, strlen(line)) : gpg_error(GPG_ERR_ENOMEM);
    free(line);
}

void status_line(struct status *status, const char *keyword, const char *args, ...)
{
    char *rest = NULL, *body = NULL;
    if (!status)
        return;
    va_list list;
    va_start(list, args);
    int n = vasprintf(&rest, args, list);
    va_end(list);
    if (n >= 0 && asprintf(&body, "%s%s%s", keyword, n > 0 ? " " : "", rest) < 0)
        body = NULL;
    pthread_mutex_lock(&status->lock);
    if (body)
        write_body(status, body);
    else if (!status->error)
        status->error = gpg_error(GPG_ERR_ENOMEM);
    pthread_mutex_unlock(&status->lock);
    if (n >= 0)
        free(rest);
    free(body);
}

char *status_escape(const char *text, bool spaces)
{
    char *escaped = malloc(3 * strlen(text) + 1);
    if (!escaped)
        return NULL;
    char *to = escaped;
    for (; *text != '\0'; text++) {
        if (needs_escape((unsigned char)*text) || *text == '%' || *text == '+' || (spaces && *text == ' '))
            to += sprintf(to, "%%%02X", (unsigned char)*text);
        else
            *to++ = *text;
    }
    *to = '\0';
    return escaped;
}

gpg_error_t status_finish(struct status *status, gpg_error_t code)
{
    char body[32] = "SUCCESS";
    if (!status)
        return 0;
    if (code)
        snprintf(body, sizeof body, "FAILURE - %u", (unsigned)code);
    pthread_mutex_lock(&status->lock);
    write_body(status, body);
    status->finished = true;
    gpg_error_t err = status->error;
    pthread_mutex_unlock(&status->lock);
    return err;
}

void status_progress(struct status *status, char phase, uint64_t current, uint64_t total)
{
    static const char units[] = "BKMGTPE";
    /* Readers keep the numbers in an int: the same power of 1024 is taken off both, as gpg does it. */
    const uint64_t limit = 1024 * 1024;
    size_t unit = 0;
    if (total > 0 && current > total)
        current = total;
    if (phase == 'c') {
        status_line(status, "PROGRESS", "gpgtar c %" PRIu64 " %" PRIu64, current, total);
        return;
    }
    for (uint64_t larger = total > 0 ? total : current; larger > limit; larger /= 1024) {
        total /= 1024;
        current /= 1024;
        unit++;
    }
    status_line(status, "PROGRESS", "gpgtar s %" PRIu64 " %" PRIu64 " %c%s", current, total, units[unit],
                unit ? "iB" : "");
}

void status_extract(struct status *status, const struct status_extract *counts)
{
    status_line(status, "GPGTAR_EXTRACT",
                "%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64, counts->extracted,
                counts->skipped, counts->bad_name, counts->suspicious, counts->symlink, counts->hardlink,
                counts->other);
}

void status_begin_encryption(struct status *status, int mdc_method, int cipher, int aead)
{
    if (aead)
        status_line(status, "BEGIN_ENCRYPTION", "%d %d %d", mdc_method, cipher, aead);
    else
        status_line(status, "BEGIN_ENCRYPTION", "%d %d", mdc_method, cipher);
}

void status_end_encryption(struct status *status)
{
    status_line(status, "END_ENCRYPTION", "%s", "");
}

void status_begin_signing(struct status *status, int digest)
{
    status_line(status, "BEGIN_SIGNING", "H%d", digest);
}

void status_sig_created(struct status *status, char type, int pubkey, int digest, int sig_class, time_t created,
                        const char *fingerprint)
{
    status_line(status, "SIG_CREATED", "%c %d %d %02x %lld %s", type, pubkey, digest, (unsigned)sig_class,
                (long long)created, fingerprint);
}

void status_key_considered(struct status *status, const char *fingerprint, int flags)
{
    status_line(status, "KEY_CONSIDERED", "%s %d", fingerprint, flags);
}

void status_inv_recp(struct status *status, int reason, const char *name)
{
    status_line(status, "INV_RECP", "%d %s", reason, name);
}

void status_inv_sgnr(struct status *status, int reason, const char *name)
{
    status_line(status, "INV_SGNR", "%d %s", reason, name);
}

void status_no_recp(struct status *status, int reason)
{
    status_line(status, "NO_RECP", "%d", reason);
}

void status_no_sgnr(struct status *status, int reason)
{
    status_line(status, "NO_SGNR", "%d", reason);
}

void status_no_data(struct status *status)
{
    status_line(status, "NODATA", "%d", 1);
    status_line(status, "NODATA", "%d", 2);
}

void status_plaintext(struct status *status, unsigned char format, uint32_t date, const char *name)
{
    char *escaped = status_escape(name ? name : "", true);
    status_line(status, "PLAINTEXT", "%02X %" PRIu32 " %s", format, date, escaped ? escaped : "");
    free(escaped);
}
