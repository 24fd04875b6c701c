/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "detached.h"

#include "stream/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Octets of a signature packet, RFC 9580 5.2. */
#define SIGNATURE_PACKET 2

gpg_error_t detached_is_signature(struct source *borrows_raw, bool *ret)
{
    static const char begin[] = "-----BEGIN PGP SIGNATURE-----";
    const void *lent;
    size_t n;
    gpg_error_t err = source_peek(borrows_raw, &lent, &n);
    if (err)
        return err;
    const uint8_t *bytes = lent;
    if (n && (bytes[0] & 0x80))
        *ret = (bytes[0] & 0x40 ? bytes[0] & 63 : (bytes[0] >> 2) & 15) == SIGNATURE_PACKET;
    else
        *ret = n >= sizeof begin - 1 && !memcmp(bytes, begin, sizeof begin - 1);
    return 0;
}

gpg_error_t detached_open(const struct program *program, int directory_fd, const char *name, struct source **ret)
{
    struct failure *failure = program_failure(program);
    struct stat status;
    if (!strcmp(name, "-"))
        return fd_source_new(program->run, STDIN_FILENO, "standard input", false, 0, ret);
    const int fd = openat(directory_fd, name, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0) {
        const gpg_error_t err = gpg_error_from_syserror();
        return fail(failure, err, "'%s' cannot be opened: %s", name, gpg_strerror(err));
    }
    if (fstat(fd, &status) == 0 && S_ISDIR(status.st_mode)) {
        close(fd);
        return fail(failure, gpg_error(GPG_ERR_EISDIR),
                    "'%s' is a folder: a detached signature is for one file, perhaps an archive of the folder", name);
    }
    return fd_source_new(program->run, fd, name, true, 0, ret);
}

gpg_error_t detached_verify(const struct events *events, const struct read_params *read,
                            struct source *takes_signatures, struct source *takes_content)
{
    struct message_verdict *verdict = NULL;
    gpg_error_t err = message_verify_detached(events->program->run, read, takes_signatures, takes_content, &verdict);
    if (err)
        return err;
    err = events_detached_policy(events, verdict);
    message_verdict_free(verdict);
    return err;
}
