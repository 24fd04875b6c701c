/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "select.h"

#include "names.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINE_MAX_BYTES (1024 * 1024)

struct pattern {
    char *text;
    bool anchored;
};

struct select {
    struct select_options options;
    struct pattern *patterns;
    size_t n_patterns, capacity;
};

struct select *select_new(void)
{
    return calloc(1, sizeof(struct select));
}

void select_free(struct select *select)
{
    if (!select)
        return;
    for (size_t i = 0; i < select->n_patterns; i++)
        free(select->patterns[i].text);
    free(select->patterns);
    free(select);
}

struct select_options *select_options(struct select *select)
{
    return &select->options;
}

const struct select_options *select_get(const struct select *select)
{
    static const struct select_options none;
    return select ? &select->options : &none;
}

static gpg_error_t add(struct select *select, const char *text, size_t n)
{
    bool anchored = n && (text[0] == '/' || (n > 1 && text[0] == '.' && text[1] == '/'));
    while (n > 1 && text[0] == '.' && text[1] == '/')
        for (text++, n--; n && *text == '/';)
            text++, n--;
    while (n > 1 && text[n - 1] == '/')
        n--;
    if (!n)
        return 0;
    if (select->n_patterns == select->capacity) {
        size_t capacity = select->capacity ? 2 * select->capacity : 16;
        struct pattern *grown = reallocarray(select->patterns, capacity, sizeof *grown);
        if (!grown)
            return gpg_error_from_syserror();
        select->patterns = grown;
        select->capacity = capacity;
    }
    char *copy = strndup(text, n);
    if (!copy)
        return gpg_error_from_syserror();
    select->patterns[select->n_patterns++] = (struct pattern){.text = copy, .anchored = anchored};
    return 0;
}

gpg_error_t select_exclude(struct select *select, const char *pattern)
{
    return add(select, pattern, strlen(pattern));
}

gpg_error_t select_exclude_from(struct select *select, struct source *borrows_lines, const char *name,
                                struct failure *failure)
{
    char *line = malloc(LINE_MAX_BYTES);
    if (!line)
        return gpg_error_from_syserror();
    size_t used = 0;
    const void *lent;
    size_t n;
    gpg_error_t err;
    while (!(err = source_peek(borrows_lines, &lent, &n)) && n) {
        const char *end = memchr(lent, '\n', n);
        size_t part = end ? (size_t)(end - (const char *)lent) : n;
        if (part > LINE_MAX_BYTES - used) {
            err = fail(failure, gpg_error(GPG_ERR_LINE_TOO_LONG),
                       "a line in the list of exclude patterns '%s' is too long", name);
            goto out;
        }
        memcpy(line + used, lent, part);
        used += part;
        source_consume(borrows_lines, part + (end != NULL));
        if (end) {
            err = add(select, line, used);
            if (err)
                goto out;
            used = 0;
        }
    }
    if (!err)
        err = add(select, line, used);
out:
    free(line);
    return err;
}

gpg_error_t select_exclude_vcs(struct select *select)
{
    /* The names in GNU tar's manual, "Excluding Some Files". */
    static const char *const names[] = {
        "CVS",         ".cvsignore",     "RCS",         "SCCS",      ".svn",    ".git",
        ".gitignore",  ".gitattributes", ".gitmodules", ".arch-ids", "{arch}",  ".bzr",
        ".hg",         ".bzrignore",     ".bzrtags",    ".hgignore", ".hgtags", "_darcs",
        "=RELEASE-ID", "=meta-update",   "=update",
    };
    gpg_error_t err = 0;
    for (size_t i = 0; !err && i < ARRAY_SIZE(names); i++)
        err = select_exclude(select, names[i]);
    return err;
}

bool select_excludes(const struct select *select, const char *path)
{
    for (size_t i = 0; select && i < select->n_patterns; i++) {
        const struct pattern *pattern = &select->patterns[i];
        if (names_match(pattern->text, path))
            return true;
        for (const char *at = path; !pattern->anchored && (at = strchr(at, '/'));)
            if (names_match(pattern->text, ++at))
                return true;
    }
    return false;
}

bool select_has_patterns(const struct select *select)
{
    return select && select->n_patterns;
}

bool select_too_old(const struct select *select, const struct stat *status)
{
    const struct select_options *options = select_get(select);
    if (!options->newer || S_ISDIR(status->st_mode))
        return false;
    const struct timespec *limit = &options->newer_than;
    return status->st_mtim.tv_sec < limit->tv_sec ||
           (status->st_mtim.tv_sec == limit->tv_sec && status->st_mtim.tv_nsec < limit->tv_nsec);
}

bool select_is_cache(int fd)
{
    static const char signature[] = "Signature: 8a477f597d28d172789f06886806bc55";
    char start[sizeof signature - 1];
    int tag = openat(fd, "CACHEDIR.TAG", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (tag < 0)
        return false;
    ssize_t got = read(tag, start, sizeof start);
    close(tag);
    return got == (ssize_t)sizeof start && memcmp(start, signature, sizeof start) == 0;
}
