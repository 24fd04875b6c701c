/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "members.h"

#include "stream/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static gpg_error_t members_split(const uint8_t *bytes, size_t n, uint8_t separator, struct strings *ret)
{
    for (size_t at = 0; at < n;) {
        const uint8_t *end = memchr(bytes + at, separator, n - at);
        const size_t length = end ? (size_t)(end - bytes) - at : n - at;
        if (memchr(bytes + at, '\0', length))
            return gpg_error(GPG_ERR_INV_NAME);
        char *name = length ? strndup((const char *)bytes + at, length) : NULL;
        gpg_error_t err = name ? strings_add(ret, name) : length ? gpg_error(GPG_ERR_ENOMEM) : 0;
        free(name);
        if (err)
            return err;
        at += length + 1;
    }
    return 0;
}

/* The list of -T; a file is opened as the shell would, not below -C. */
static gpg_error_t members_list(const struct program *program, struct sink *to)
{
    const char *name = program->options->files_from;
    struct source *list = NULL;
    const bool standard = !strcmp(name, "-");
    const int fd = standard ? STDIN_FILENO : open(name, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
        return fail_errno(program_failure(program), errno, "the list '%s' cannot be opened", name);
    gpg_error_t err = fd_source_new(program->run, fd, standard ? "standard input" : name, !standard, 0, &list);
    if (!err)
        err = pump(list, to, NULL);
    source_free(list);
    if (gpg_err_code(err) == GPG_ERR_TOO_LARGE)
        return fail(program_failure(program), err, "the list '%s' is larger than %zu bytes", name, MEMBERS_LIST_MAX);
    return err;
}

/* A folder may be named with the slash that listings and shells put behind it. */
static void members_trim(struct strings *names)
{
    for (size_t i = 0; i < names->n; i++) {
        char *name = names->items[i];
        size_t n = strlen(name);
        while (n > 1 && name[n - 1] == '/')
            name[--n] = '\0';
    }
}

gpg_error_t members_read(const struct program *program, struct strings *ret)
{
    const struct options *options = program->options;
    struct failure *failure = program_failure(program);
    gpg_error_t err = 0;
    for (size_t i = 0; i < options->names.n && !err; i++)
        err = strings_add(ret, options->names.items[i]);
    if (err)
        return err;
    if (!options->files_from) {
        members_trim(ret);
        return 0;
    }
    struct sink *memory = memory_sink_new(MEMBERS_LIST_MAX);
    if (!memory)
        return gpg_error(GPG_ERR_ENOMEM);
    const size_t before = ret->n;
    err = members_list(program, memory);
    if (!err) {
        size_t n = 0;
        const uint8_t *bytes = memory_sink_bytes(memory, &n);
        err = members_split(bytes, n, options->null ? '\0' : '\n', ret);
    }
    sink_free(memory);
    if (gpg_err_code(err) == GPG_ERR_INV_NAME)
        return fail(failure, err, "the list '%s' has a NUL in a line: with --null, names end with NUL",
                    options->files_from);
    if (!err && ret->n == before)
        err = fail(failure, gpg_error(GPG_ERR_NO_DATA), "the list '%s' has no name in it", options->files_from);
    members_trim(ret);
    return err;
}
