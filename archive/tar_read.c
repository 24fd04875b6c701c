/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tar_read.h"
#include "feed.h"
#include "libarchive.h"
#include "names.h"
#include "unpack.h"

#include <errno.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>

/* The checksum in a header of any tar: octal digits. */
#define CHECKSUM_AT   148
#define CHECKSUM_SIZE 8
/* Where a header says what it is a header of. */
#define TYPE_AT 156

struct tar_reader {
    const struct tar_read_params *params;
    struct source *source;
    struct source *unpacked; /* decompresses source; NULL: it is not compressed */
    struct feed feed;        /* of the tar bytes */
    struct archive *archive;
    locale_t c_locale;
    bool *found;       /* one for each of params->names */
    bool opened;       /* an archive is being read, or was */
    bool ended;        /* no more members */
    bool passing_over; /* damaged headers, of which the first was reported */
    bool data_ended;
    uint64_t size;  /* content given out */
    uint64_t files; /* members given out */
    struct tar_read_counts counts;
    struct tar_member member;
    char *name;   /* of the member, where it is asked for or stripped: malloced */
    char *target; /* of a hard link, where components were stripped: malloced */
};

void tar_reader_flaw(struct tar_reader *reader, const char *name, gpg_error_t code, const char *detail)
{
    reader->counts.flaws++;
    notice(reader->params->notices, NOTICE_FLAW, name, code, detail);
}

gpg_error_t tar_reader_new(const struct tar_read_params *params, struct source *borrows_source, struct tar_reader **ret)
{
    gpg_error_t error = libarchive_load(params->failure);
    if (error)
        return error;
    struct tar_reader *reader = calloc(1, sizeof *reader);
    if (!reader)
        return gpg_error_from_syserror();
    reader->params = params;
    reader->source = borrows_source;
    reader->c_locale = newlocale(LC_CTYPE_MASK, "C", (locale_t)0);
    reader->found = calloc(params->n_names + 1, sizeof *reader->found);
    if (!reader->c_locale || !reader->found) {
        error = gpg_error_from_syserror();
        tar_reader_free(reader);
        return error;
    }
    *ret = reader;
    return 0;
}

void tar_reader_free(struct tar_reader *reader)
{
    if (!reader)
        return;
    archive_read_free(reader->archive);
    source_free(reader->unpacked);
    if (reader->c_locale)
        freelocale(reader->c_locale);
    free(reader->found);
    free(reader->name);
    free(reader->target);
    free(reader);
}

const struct tar_read_counts *tar_reader_counts(const struct tar_reader *reader)
{
    return &reader->counts;
}

/* ---- errors ---- */

static gpg_error_t not_a_tar(struct tar_reader *reader, const char *what)
{
    /* What was decrypted may yet turn out to be damaged: whoever finishes the source says which it is. */
    return fail(reader->params->decrypted ? NULL : reader->params->failure, gpg_error(TAR_NOT_A_TAR),
                "the content is not a tar archive%s", what);
}

/* libarchive gave up at member NAME (NULL: at a header). */
static gpg_error_t broken(struct tar_reader *reader, const char *name)
{
    /* With salvage it is not a failure. */
    struct failure *failure = reader->params->salvage ? NULL : reader->params->failure;
    const char *at = name ? name : "a member's header";
    gpg_error_t error = reader->feed.error;
    if (gpg_err_code(error) == GPG_ERR_TRUNCATED || (!error && reader->feed.ended))
        return fail(failure, gpg_error(GPG_ERR_TRUNCATED), "the tar archive is cut off inside %s", at);
    if (error)
        return error;
    if (archive_errno(reader->archive) == ENOMEM)
        return fail(failure, gpg_error(GPG_ERR_ENOMEM), "out of core while reading the tar archive");
    const char *why = archive_error_string(reader->archive);
    return fail(failure, gpg_error(GPG_ERR_BAD_DATA), "the tar archive is damaged at %s: %s", at,
                why ? why : "unknown");
}

/* What could not be read on from: an error, or with salvage the end. */
static gpg_error_t give_up(struct tar_reader *reader, const char *name, gpg_error_t error)
{
    if (!reader->params->salvage || gpg_err_code(error) == GPG_ERR_CANCELED ||
        gpg_err_code(error) == GPG_ERR_TOO_LARGE || gpg_err_code(error) == GPG_ERR_ENOMEM ||
        gpg_err_code(error) == TAR_NOT_A_TAR)
        return error;
    reader->ended = true;
    reader->counts.cut_by = error;
    tar_reader_flaw(reader, name, error, "the archive is cut off or damaged here, what follows is lost");
    return 0;
}

/* ---- opening ---- */

/* Looks at the first bytes and puts the decompressor in between where they ask for it. */
static gpg_error_t open_feed(struct tar_reader *reader)
{
    const struct tar_read_params *params = reader->params;
    struct feed feed;
    const uint8_t *bytes;
    size_t n;
    reader->opened = true;
    feed_init(&feed, reader->source, params->run);
    gpg_error_t error = feed_next(&feed, &bytes, &n);
    if (error)
        return error;
    if (!n)
        return not_a_tar(reader, ": it is empty");
    const char *kind = unpack_kind(bytes, n);
    (void)feed_settle(&feed, 0);
    if (!kind) {
        reader->feed = feed;
        return 0;
    }
    error = unpack_source_new(&feed, params->failure, kind, &reader->unpacked);
    if (!error)
        feed_init(&reader->feed, reader->unpacked, params->run);
    return error;
}

static bool all_zero(const uint8_t *bytes, size_t n)
{
    return !n || (!bytes[0] && !memcmp(bytes, bytes + 1, n - 1));
}

/* Whether these N bytes may be the start of a tar: a header whose checksum is right (some old programs added signed
 * bytes), or zeros. */
static bool starts_tar(const uint8_t *bytes, size_t n)
{
    if (n < FEED_UNIT)
        return false;
    long plain = 0, with_sign = 0, written = 0;
    for (size_t i = 0; i < FEED_UNIT; i++) {
        uint8_t byte = i >= CHECKSUM_AT && i < CHECKSUM_AT + CHECKSUM_SIZE ? ' ' : bytes[i];
        plain += byte;
        with_sign += (int8_t)byte;
    }
    const uint8_t *digit = bytes + CHECKSUM_AT, *end = digit + CHECKSUM_SIZE;
    while (digit < end && *digit == ' ')
        digit++;
    while (digit < end && *digit >= '0' && *digit <= '7')
        written = written * 8 + (*digit++ - '0');
    return written == plain || written == with_sign || all_zero(bytes, FEED_UNIT);
}

/* Starts with the tar that the feed stands before. *RET_IS_TAR: there is one. */
static gpg_error_t open_archive(struct tar_reader *reader, bool *ret_is_tar)
{
    const uint8_t *bytes;
    size_t n;
    gpg_error_t error = feed_next(&reader->feed, &bytes, &n);
    if (error)
        return error;
    *ret_is_tar = starts_tar(bytes, n);
    (void)feed_settle(&reader->feed, 0);
    if (!*ret_is_tar)
        return 0;
    archive_read_free(reader->archive);
    reader->archive = archive_read_new();
    if (!reader->archive)
        return gpg_error(GPG_ERR_ENOMEM);
    archive_read_support_format_tar(reader->archive);
    if (feed_open(&reader->feed, reader->archive, reader->params->quick) != ARCHIVE_OK)
        return broken(reader, NULL);
    return 0;
}

static gpg_error_t open_first(struct tar_reader *reader)
{
    bool is_tar = false;
    gpg_error_t error = open_feed(reader);
    if (!error)
        error = open_archive(reader, &is_tar);
    if (!error && !is_tar)
        error = not_a_tar(reader, "");
    return error;
}

/* ---- the end ---- */

/* Reads to the last byte of the tar, or, with AGAIN, up to the unit that is not zero: *RET_MORE. */
static gpg_error_t drain(struct tar_reader *reader, bool again, bool *ret_more)
{
    bool more = false;
    for (;;) {
        const uint8_t *bytes;
        size_t n;
        gpg_error_t error = feed_next(&reader->feed, &bytes, &n);
        if (error)
            return error;
        if (!n)
            break;
        if ((more && !again) || all_zero(bytes, n))
            continue;
        more = true;
        if (!again)
            continue;
        size_t at = 0;
        while (n - at > FEED_UNIT && all_zero(bytes + at, FEED_UNIT))
            at += FEED_UNIT;
        (void)feed_settle(&reader->feed, reader->feed.lent_at + at);
        break;
    }
    *ret_more = more;
    return 0;
}

/* An extended header without a member behind it: libarchive passes over it. A lone global header is what an empty
 * `git archive` consists of. */
static bool stray_header(const struct tar_reader *reader, uint64_t header, uint64_t used)
{
    if (used <= 2 * FEED_UNIT)
        return false;
    const struct feed *feed = &reader->feed;
    if (header < feed->lent_at || header - feed->lent_at + FEED_UNIT > feed->lent_n)
        return true;
    return feed->lent[header - feed->lent_at + TYPE_AT] != 'g';
}

static void report_not_found(struct tar_reader *reader)
{
    for (size_t i = 0; i < reader->params->n_names; i++)
        if (!reader->found[i])
            tar_reader_flaw(reader, reader->params->names[i], gpg_error(GPG_ERR_NOT_FOUND), "not found in the archive");
}

/* The tar ends at POSITION. *RET_AGAIN: another archive follows and is wanted. */
static gpg_error_t end_at(struct tar_reader *reader, uint64_t position, bool *ret_again)
{
    bool more = false, trailing = false;
    *ret_again = false;
    (void)feed_settle(&reader->feed, position);
    gpg_error_t error = drain(reader, reader->params->concatenated, &more);
    if (error)
        return error;
    if (more && reader->params->concatenated) {
        *ret_again = true;
        return 0;
    }
    if (more)
        tar_reader_flaw(reader, NULL, 0, "bytes that are not zero follow the end marker (another archive?)");
    if (reader->unpacked) {
        error = unpack_drain(reader->unpacked, &trailing);
        if (error)
            return error;
        if (trailing)
            tar_reader_flaw(reader, NULL, 0, "bytes follow the end of the compressed content");
    }
    reader->ended = true;
    if (!reader->counts.members && !more)
        notice(reader->params->notices, NOTICE_EMPTY_ARCHIVE, NULL, 0, NULL);
    report_not_found(reader);
    return 0;
}

/* libarchive came to the end marker or to the end of the bytes. */
static gpg_error_t end_of_archive(struct tar_reader *reader, bool *ret_again)
{
    uint64_t position = (uint64_t)archive_filter_bytes(reader->archive, 0);
    uint64_t header = (uint64_t)archive_read_header_position(reader->archive);
    if (stray_header(reader, header, position - header))
        tar_reader_flaw(reader, NULL, 0, "an extended header without a member");
    if (position == header)
        tar_reader_flaw(reader, NULL, 0, "the end marker is missing");
    return end_at(reader, position, ret_again);
}

/* Whether libarchive gave up right behind an end marker of two units, after which nothing but zeros is in the block:
 * then it missed the member of an extended header, and nothing is lost. */
static bool gave_up_at_marker(const struct tar_reader *reader)
{
    const struct feed *feed = &reader->feed;
    uint64_t position = (uint64_t)archive_filter_bytes(reader->archive, 0);
    if (feed->error || position < feed->lent_at + 2 * FEED_UNIT || position > feed->lent_at + feed->lent_n)
        return false;
    size_t marker = (size_t)(position - feed->lent_at) - 2 * FEED_UNIT;
    return all_zero(feed->lent + marker, feed->lent_n - marker);
}

static gpg_error_t end_behind_stray_header(struct tar_reader *reader, bool *ret_again)
{
    tar_reader_flaw(reader, NULL, 0, "an extended header without a member");
    return end_at(reader, (uint64_t)archive_filter_bytes(reader->archive, 0), ret_again);
}

/* Another archive follows an end marker, if it is one. */
static gpg_error_t open_next(struct tar_reader *reader)
{
    bool is_tar, more;
    gpg_error_t error = open_archive(reader, &is_tar);
    if (error || is_tar)
        return error;
    tar_reader_flaw(reader, NULL, 0, "what follows the end marker is not a tar archive");
    reader->ended = true;
    report_not_found(reader);
    error = drain(reader, false, &more);
    if (!error && reader->unpacked)
        error = unpack_drain(reader->unpacked, &more);
    return error;
}

/* ---- members ---- */

static bool below(const char *name, const char *folder, size_t n)
{
    return !strncmp(name, folder, n) && (!name[n] || name[n] == '/');
}

/* Whether PATTERN matches NAME or a folder above it. NAME is changed meanwhile. */
static bool pattern_takes(const char *pattern, char *name)
{
    if (names_match(pattern, name))
        return true;
    for (char *slash = strchr(name, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        bool match = names_match(pattern, name);
        *slash = '/';
        if (match)
            return true;
    }
    return false;
}

/* A name as it is asked for, less what GNU tar ignores too: "./" before it and slashes behind it. */
static const char *trimmed(const char *name, size_t *ret_n)
{
    while (name[0] == '/' || (name[0] == '.' && name[1] == '/'))
        name++;
    size_t n = strlen(name);
    while (n > 1 && name[n - 1] == '/')
        n--;
    *ret_n = n;
    return name;
}

/* Whether the member NAME (changed meanwhile) is wanted; notes which of the names asked for were found. */
static bool is_wanted(struct tar_reader *reader, char *name)
{
    const struct tar_read_params *params = reader->params;
    bool wanted = false;
    for (size_t i = 0; i < params->n_names; i++) {
        size_t n;
        const char *asked = trimmed(params->names[i], &n);
        bool takes =
            params->wildcards ? pattern_takes(asked, name) : below(name, asked, n) || (n == 1 && *asked == '.');
        wanted |= takes;
        reader->found[i] |= takes;
    }
    return wanted;
}

/* NAME without what does not count ("./", "//", a leading "/"); as it is where it is not sound. */
static gpg_error_t plain_name(const char *name, char **ret)
{
    enum names_flaw flaw = names_check(name);
    if (flaw == NAMES_SOUND || flaw == NAMES_NOTHING)
        return names_extracted(name, ret, NULL);
    *ret = strdup(name);
    return *ret ? 0 : gpg_error_from_syserror();
}

static enum tar_kind kind_of(struct archive_entry *entry)
{
    if (archive_entry_hardlink(entry))
        return TAR_HARDLINK;
    switch (archive_entry_filetype(entry)) {
    case AE_IFREG:
        return TAR_FILE;
    case AE_IFDIR:
        return TAR_FOLDER;
    case AE_IFLNK:
        return TAR_SYMLINK;
    case AE_IFIFO:
        return TAR_FIFO;
    case AE_IFCHR:
        return TAR_CHAR;
    case AE_IFBLK:
        return TAR_BLOCK;
    default:
        return TAR_OTHER;
    }
}

static const char *or_empty(const char *text)
{
    return text ? text : "";
}

/* pax writes a time before 1970 as a decimal: -0.75 is a second before 1970 and a quarter. libarchive reads the part of
 * a second as if it counted forwards, and its own writer, unlike all others, writes it so. */
static struct timespec mtime_of(struct archive_entry *entry)
{
    struct timespec time = {.tv_sec = archive_entry_mtime(entry), .tv_nsec = archive_entry_mtime_nsec(entry)};
    if (time.tv_sec < 0 && time.tv_nsec) {
        time.tv_sec--;
        time.tv_nsec = 1000000000 - time.tv_nsec;
    }
    return time;
}

/* The target of a hard link is a member name: it loses the same components. */
static gpg_error_t hard_link_target(struct tar_reader *reader, const char *given)
{
    free(reader->target);
    reader->target = NULL;
    reader->member.target = given;
    if (!reader->params->strip_components)
        return 0;
    gpg_error_t error = plain_name(given, &reader->target);
    if (error)
        return error;
    reader->member.target = or_empty(names_strip(reader->target, reader->params->strip_components));
    return 0;
}

static gpg_error_t fill_member(struct tar_reader *reader, struct archive_entry *entry, const char *name)
{
    struct tar_member *member = &reader->member;
    *member = (struct tar_member){
        .name = name,
        .kind = kind_of(entry),
        .mode = archive_entry_perm(entry) & 07777,
        .uid = archive_entry_uid(entry),
        .gid = archive_entry_gid(entry),
        .uname = or_empty(archive_entry_uname(entry)),
        .gname = or_empty(archive_entry_gname(entry)),
        .has_mtime = archive_entry_mtime_is_set(entry),
        .mtime = mtime_of(entry),
        .entry = entry,
    };
    if (member->kind == TAR_FILE && archive_entry_size(entry) > 0)
        member->size = (uint64_t)archive_entry_size(entry);
    if (member->kind == TAR_CHAR || member->kind == TAR_BLOCK)
        member->rdev = archive_entry_rdev(entry);
    if (member->kind == TAR_SYMLINK)
        member->target = or_empty(archive_entry_symlink(entry));
    if (member->kind != TAR_HARDLINK)
        return 0;
    if (archive_entry_size(entry) > 0)
        tar_reader_flaw(reader, name, 0, "a hard link with content, which is ignored");
    return hard_link_target(reader, archive_entry_hardlink(entry));
}

/* Takes the member ENTRY if it is wanted: *RET, else NULL. */
static gpg_error_t take_member(struct tar_reader *reader, struct archive_entry *entry, const struct tar_member **ret)
{
    const struct tar_read_params *params = reader->params;
    *ret = NULL;
    free(reader->name);
    reader->name = NULL;
    reader->data_ended = false;
    reader->counts.members++;
    const char *given = or_empty(archive_entry_pathname(entry)), *name = given;
    gpg_error_t error = 0;
    if (params->n_names || params->strip_components)
        error = plain_name(given, &reader->name);
    if (error || (params->n_names && !is_wanted(reader, reader->name)))
        return error;
    if (params->strip_components && !(name = names_strip(reader->name, params->strip_components)))
        return 0;
    if (params->max_files && ++reader->files > params->max_files)
        return fail(params->failure, gpg_error(GPG_ERR_TOO_LARGE), "the archive has more than %llu members",
                    (unsigned long long)params->max_files);
    error = fill_member(reader, entry, name);
    if (!error)
        *ret = &reader->member;
    return error;
}

/* libarchive converts names in pax headers from UTF-8 to the charset of the locale, and in UTF-8 locales even
 * normalises them. Under "C" ASCII is left alone, and what is not ASCII cannot be converted: then it keeps the bytes,
 * and warns. */
static int next_header(struct tar_reader *reader, struct archive_entry **ret_entry)
{
    locale_t old = uselocale(reader->c_locale);
    int result = archive_read_next_header(reader->archive, ret_entry);
    uselocale(old);
    const char *why = result == ARCHIVE_WARN ? archive_error_string(reader->archive) : NULL;
    if (why && strstr(why, "can't be converted from"))
        return ARCHIVE_OK;
    return result;
}

/* One header: a member that is wanted, the end, or (*RET NULL, not ended) something that was passed over. */
static gpg_error_t step(struct tar_reader *reader, const struct tar_member **ret)
{
    struct archive_entry *entry;
    bool again;
    gpg_error_t error;
    int result = next_header(reader, &entry);
    switch (result) {
    case ARCHIVE_OK:
    case ARCHIVE_WARN:
        reader->passing_over = false;
        if (result == ARCHIVE_WARN)
            tar_reader_flaw(reader, archive_entry_pathname(entry), 0, archive_error_string(reader->archive));
        return take_member(reader, entry, ret);
    case ARCHIVE_EOF:
        error = end_of_archive(reader, &again);
        return !error && again ? open_next(reader) : error;
    case ARCHIVE_RETRY:
        if (!reader->passing_over)
            tar_reader_flaw(reader, NULL, 0, "a damaged header; reading on at the next one that is sound");
        reader->passing_over = true;
        return 0;
    default:
        if (!gave_up_at_marker(reader))
            return broken(reader, NULL);
        error = end_behind_stray_header(reader, &again);
        return !error && again ? open_next(reader) : error;
    }
}

gpg_error_t tar_reader_next(struct tar_reader *reader, const struct tar_member **ret)
{
    gpg_error_t error = 0;
    const struct tar_member *member = NULL;
    reader->data_ended = true;
    if (!reader->opened && (error = open_first(reader)) && (error = give_up(reader, NULL, error)))
        return error;
    while (!reader->ended && !member) {
        error = step(reader, &member);
        if (error && (error = give_up(reader, NULL, error)))
            return error;
    }
    *ret = member;
    return 0;
}

gpg_error_t tar_reader_data(struct tar_reader *reader, const void **ret_bytes, size_t *ret_n, uint64_t *ret_offset)
{
    const struct tar_read_params *params = reader->params;
    *ret_n = 0;
    while (!reader->data_ended && !reader->ended) {
        const void *bytes;
        size_t n = 0;
        la_int64_t offset = 0;
        int result = archive_read_data_block(reader->archive, &bytes, &n, &offset);
        if (result == ARCHIVE_EOF) {
            reader->data_ended = true;
        } else if (result != ARCHIVE_OK && result != ARCHIVE_WARN) {
            return give_up(reader, reader->member.name, broken(reader, reader->member.name));
        } else if (n) {
            if (offset < 0 || (uint64_t)offset > reader->member.size || n > reader->member.size - (uint64_t)offset)
                return fail(params->failure, gpg_error(GPG_ERR_BAD_DATA), "the sparse map of %s is wrong",
                            reader->member.name);
            reader->size += n;
            if (params->max_size && reader->size > params->max_size)
                return fail(params->failure, gpg_error(GPG_ERR_TOO_LARGE),
                            "the archive has more than %llu bytes of content", (unsigned long long)params->max_size);
            *ret_bytes = bytes;
            *ret_n = n;
            *ret_offset = (uint64_t)offset;
            return 0;
        }
    }
    return 0;
}
