/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "list.h"
#include "names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* `d` + nine letters + NUL. */
#define MODE_SIZE 11
/* A year may have twelve digits. */
#define TIME_SIZE 48

static void mode_text(const struct tar_member *member, char text[MODE_SIZE])
{
    static const char types[] = {[TAR_FILE] = '-', [TAR_FOLDER] = 'd', [TAR_SYMLINK] = 'l', [TAR_HARDLINK] = 'h',
                                 [TAR_FIFO] = 'f', [TAR_CHAR] = 'c',   [TAR_BLOCK] = 'b',   [TAR_OTHER] = '?'};
    static const char letters[] = "rwxrwxrwx";
    text[0] = types[member->kind];
    for (unsigned i = 0; i < 9; i++)
        text[1 + i] = member->mode & (0400u >> i) ? letters[i] : '-';
    text[10] = '\0';
    if (member->mode & 04000)
        text[3] = text[3] == 'x' ? 's' : 'S';
    if (member->mode & 02000)
        text[6] = text[6] == 'x' ? 's' : 'S';
    if (member->mode & 01000)
        text[9] = text[9] == 'x' ? 't' : 'T';
}

static void time_text(const struct tar_member *member, char text[TIME_SIZE])
{
    struct tm tm;
    if (!gmtime_r(&member->mtime.tv_sec, &tm)) {
        strcpy(text, "(no such time)");
        return;
    }
    snprintf(text, TIME_SIZE, "%04lld-%02d-%02d %02d:%02d:%02d", (long long)tm.tm_year + 1900, tm.tm_mon + 1,
             tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec);
}

/* NAME as it is shown; the caller frees. */
static char *shown(const char *name, bool raw)
{
    return raw ? strdup(name) : names_escape(name);
}

static bool lacks_slash(const struct tar_member *member)
{
    size_t n = strlen(member->name);
    return member->kind == TAR_FOLDER && (!n || member->name[n - 1] != '/');
}

static gpg_error_t list_member(const struct tar_list_params *params, const struct tar_member *member, struct sink *sink)
{
    char mode[MODE_SIZE], time[TIME_SIZE];
    mode_text(member, mode);
    time_text(member, time);
    const char *target_text = member->kind == TAR_SYMLINK ? member->target : NULL;
    char *line = NULL;
    char *name = shown(member->name, params->null);
    char *target = target_text ? shown(target_text, params->null) : NULL;
    gpg_error_t error = 0;
    int n = -1;
    if (name && (target || !target_text))
        n = asprintf(&line, "%s 0 %lld/%lld %12llu %s %s%s%s%s%c", mode, (long long)member->uid, (long long)member->gid,
                     (unsigned long long)member->size, time, name, lacks_slash(member) ? "/" : "", target ? " -> " : "",
                     target ? target : "", params->null ? '\0' : '\n');
    error = n < 0 ? gpg_error(GPG_ERR_ENOMEM) : sink_write(sink, line, (size_t)n);
    if (n >= 0)
        free(line);
    free(name);
    free(target);
    return error;
}

gpg_error_t tar_list(const struct tar_list_params *params, struct source *borrows_source, struct sink *borrows_sink,
                     struct tar_list_result *ret)
{
    struct tar_reader *reader;
    *ret = (struct tar_list_result){0};
    gpg_error_t error = tar_reader_new(&params->read, borrows_source, &reader);
    if (error)
        return error;
    for (;;) {
        const struct tar_member *member;
        error = tar_reader_next(reader, &member);
        if (error || !member)
            break;
        error = list_member(params, member, borrows_sink);
        if (error)
            break;
        ret->members++;
        ret->bytes += member->size;
    }
    ret->read = *tar_reader_counts(reader);
    tar_reader_free(reader);
    return error;
}

/* ---- verify ---- */

static void judge(struct tar_reader *reader, const struct tar_read_params *params, const struct tar_member *member,
                  uint64_t *flaws)
{
    enum names_flaw flaw = names_check(member->name);
    if (flaw != NAMES_SOUND && !(flaw == NAMES_NOTHING && member->kind == TAR_FOLDER)) {
        ++*flaws;
        notice(params->notices, NOTICE_BAD_NAME, member->name, gpg_error(GPG_ERR_INV_NAME), names_flaw_text(flaw));
    } else if (member->kind == TAR_HARDLINK && names_check(member->target) != NAMES_SOUND) {
        ++*flaws;
        notice(params->notices, NOTICE_BAD_HARDLINK, member->name, 0, member->target);
    } else if (member->kind == TAR_OTHER) {
        tar_reader_flaw(reader, member->name, 0, "a member of unknown kind");
    }
}

static gpg_error_t read_content(struct tar_reader *reader)
{
    for (;;) {
        const void *bytes;
        size_t n;
        uint64_t offset;
        gpg_error_t error = tar_reader_data(reader, &bytes, &n, &offset);
        if (error || !n)
            return error;
    }
}

gpg_error_t tar_verify(const struct tar_read_params *params, struct source *borrows_source, struct tar_list_result *ret)
{
    struct tar_reader *reader;
    uint64_t flaws = 0;
    *ret = (struct tar_list_result){0};
    gpg_error_t error = tar_reader_new(params, borrows_source, &reader);
    if (error)
        return error;
    for (;;) {
        const struct tar_member *member;
        error = tar_reader_next(reader, &member);
        if (error || !member)
            break;
        judge(reader, params, member, &flaws);
        ret->members++;
        ret->bytes += member->size;
        if (member->kind == TAR_FILE && (error = read_content(reader)))
            break;
    }
    ret->read = *tar_reader_counts(reader);
    ret->read.flaws += flaws;
    tar_reader_free(reader);
    return error;
}
