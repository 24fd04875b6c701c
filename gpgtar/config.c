/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "config.h"

#include "stream/fd.h"

#include <errno.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '\f' || c == '\v';
}

static char *trimmed(char *text)
{
    while (is_blank(*text))
        text++;
    size_t n = strlen(text);
    while (n > 0 && is_blank(text[n - 1]))
        text[--n] = '\0';
    return text;
}

/* LINE is changed. */
static gpg_error_t take_line(char *line, const char *where, config_line *take, void *context)
{
    char *name = trimmed(line);
    /* Section heads in brackets belong to gpgrt's own files and have no meaning for options. */
    if (*name == '\0' || *name == '#' || *name == '[')
        return 0;
    if (strncmp(name, "--", 2) == 0)
        name += 2;
    char *end = name;
    while (*end != '\0' && !is_blank(*end))
        end++;
    char *value = NULL;
    if (*end != '\0') {
        *end = '\0';
        value = trimmed(end + 1);
        size_t n = strlen(value);
        if (n >= 2 && value[0] == '"' && value[n - 1] == '"') {
            value[n - 1] = '\0';
            value++;
        }
    }
    return take(context, name, value, where);
}

gpg_error_t config_read(const char *folder, const char *base, struct failure *failure, config_line *take, void *context)
{
    char *path = NULL, *where = NULL;
    uint8_t *bytes = NULL;
    char *text = NULL;
    size_t n = 0;
    unsigned number = 0;
    gpg_error_t err = 0;

    if (asprintf(&path, "%s/%s", folder, base) < 0) {
        path = NULL;
        err = gpg_error(GPG_ERR_ENOMEM);
        goto out;
    }
    /* A folder that this user may not enter (another user's home under su or sudo) has nothing for him. */
    if (access(path, F_OK) && (errno == ENOENT || errno == ENOTDIR || errno == EACCES))
        goto out;
    err = file_read_whole(failure, path, CONFIG_MAX_BYTES, &bytes, &n);
    if (err)
        goto out;
    if (n > 0 && memchr(bytes, 0, n)) {
        err = fail(failure, gpg_error(GPG_ERR_SYNTAX), "%s is not a text file", path);
        goto out;
    }
    text = malloc(n + 1);
    if (!text) {
        err = gpg_error_from_syserror();
        goto out;
    }
    if (n > 0)
        memcpy(text, bytes, n);
    text[n] = '\0';

    for (char *line = text, *next; line && !err; line = next) {
        next = strchr(line, '\n');
        if (next)
            *next++ = '\0';
        if (asprintf(&where, "%s, line %u", path, ++number) < 0) {
            where = NULL;
            err = gpg_error(GPG_ERR_ENOMEM);
            break;
        }
        err = take_line(line, where, take, context);
        free(where);
        where = NULL;
    }
out:
    free(where);
    free(text);
    free(bytes);
    free(path);
    return err;
}

void config_words_free(char **words, size_t n)
{
    for (size_t i = 0; i < n; i++)
        free(words[i]);
    free(words);
}

/* Copies the word at *AT without its quotes to TO, which has room for the whole text. False: a quote stays open. */
static bool copy_word(const char **at, char *to)
{
    const char *p = *at;
    char quote = '\0';
    for (; *p != '\0' && (quote || !is_blank(*p)); p++) {
        if (quote && *p == quote)
            quote = '\0';
        else if (!quote && (*p == '\'' || *p == '"'))
            quote = *p;
        else
            *to++ = *p;
    }
    *to = '\0';
    *at = p;
    return !quote;
}

gpg_error_t config_split(const char *text, char ***ret_words, size_t *ret_n)
{
    size_t length = strlen(text), n = 0;
    /* Words are at least one byte with a blank between them. */
    char **words = calloc(length / 2 + 2, sizeof *words);
    char *word = malloc(length + 1);
    gpg_error_t err = 0;

    if (!words || !word) {
        err = gpg_error_from_syserror();
        goto out;
    }
    for (;;) {
        while (is_blank(*text))
            text++;
        if (*text == '\0')
            break;
        if (!copy_word(&text, word)) {
            err = gpg_error(GPG_ERR_SYNTAX);
            goto out;
        }
        words[n] = strdup(word);
        if (!words[n]) {
            err = gpg_error_from_syserror();
            goto out;
        }
        n++;
    }
    *ret_words = words;
    *ret_n = n;
    words = NULL;
    n = 0;
out:
    config_words_free(words, n);
    free(word);
    return err;
}

static bool given(const char *text)
{
    return text && *text != '\0';
}

/* HOME, or what the user database has; the caller frees. NULL: neither. */
static char *user_folder(const char *home)
{
    if (given(home))
        return strdup(home);
    const struct passwd *user = getpwuid(geteuid());
    return user && given(user->pw_dir) ? strdup(user->pw_dir) : NULL;
}

gpg_error_t config_home(const char *homedir, const char *gnupghome, const char *home, struct failure *failure,
                        char **ret)
{
    const char *named = given(homedir) ? homedir : given(gnupghome) ? gnupghome : NULL;
    const char *below = named ? named + 1 : "/.gnupg";
    char *user = NULL, *path = NULL;
    gpg_error_t err = 0;

    if (named && strncmp(named, "~/", 2) != 0) {
        path = strdup(named);
        if (!path)
            err = gpg_error_from_syserror();
        goto out;
    }
    user = user_folder(home);
    if (!user) {
        err = fail(failure, gpg_error(GPG_ERR_NOT_FOUND),
                   "there is no home folder: set HOME or GNUPGHOME, or use --homedir");
        goto out;
    }
    size_t n = strlen(user);
    while (n > 1 && user[n - 1] == '/')
        n--;
    if (n == 1 && user[0] == '/')
        n = 0;
    if (asprintf(&path, "%.*s%s", (int)n, user, below) < 0) {
        path = NULL;
        err = gpg_error(GPG_ERR_ENOMEM);
    }
out:
    free(user);
    if (!err) {
        *ret = path;
        path = NULL;
    }
    free(path);
    return err;
}
