/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tar_header.h"

#include "names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXTENDED_MAX (1024u * 1024 * 1024)
/* The largest time in eleven octal digits: the year 2242. */
#define OCTAL_TIME_MAX 077777777777

/* POSIX 1003.1, pax, "ustar Interchange Format". */
struct ustar {
    char name[100];
    char mode[8];
    char uid[8];
    char gid[8];
    char size[12];
    char mtime[12];
    char checksum[8];
    char type;
    char link[100];
    char magic[6];
    char version[2];
    char uname[32];
    char gname[32];
    char dev_major[8];
    char dev_minor[8];
    char prefix[155];
    char rest[12];
};
_Static_assert(sizeof(struct ustar) == TAR_BLOCK, "a header is one block");

void tar_buffer_free(struct tar_buffer *buffer)
{
    free(buffer->bytes);
    *buffer = (struct tar_buffer){0};
}

/* Room for N more bytes, counted but not cleared; NULL: out of core. */
static uint8_t *extend(struct tar_buffer *buffer, size_t n)
{
    if (n > SIZE_MAX / 2 - buffer->n)
        return NULL;
    if (buffer->n + n > buffer->capacity) {
        size_t capacity = 2 * (buffer->n + n);
        uint8_t *grown = realloc(buffer->bytes, capacity);
        if (!grown)
            return NULL;
        buffer->bytes = grown;
        buffer->capacity = capacity;
    }
    uint8_t *room = buffer->bytes + buffer->n;
    buffer->n += n;
    return room;
}

/* Not inlined: gcc makes `rep stos` of a length that it knows, three times as slow as memset. */
__attribute__((noinline)) gpg_error_t tar_buffer_add(struct tar_buffer *buffer, const void *bytes, size_t n)
{
    if (!n)
        return 0;
    uint8_t *room = extend(buffer, n);
    if (!room)
        return gpg_error(GPG_ERR_ENOMEM);
    if (bytes)
        memcpy(room, bytes, n);
    else
        memset(room, 0, n);
    return 0;
}

/* The longest decimal number. */
#define DECIMAL_BYTES 20

static size_t decimal_digits(uint64_t value)
{
    size_t digits = 1;
    for (uint64_t limit = 10; value >= limit && digits < DECIMAL_BYTES; limit *= 10)
        digits++;
    return digits;
}

/* Writes VALUE, at least WIDTH digits of it, and returns how many. By hand: printf took a tenth of the time of an
 * archive of small files. */
static size_t put_decimal(char *to, uint64_t value, size_t width)
{
    size_t digits = decimal_digits(value), n = digits < width ? width : digits;
    for (size_t i = n; i--; value /= 10)
        to[i] = (char)('0' + value % 10);
    return n;
}

gpg_error_t tar_pax_add(struct tar_buffer *records, const char *key, const void *value, size_t n)
{
    /* The length counts its own digits, which may take it over the next power of ten. */
    size_t n_key = strlen(key), rest = n_key + n + 3, total = rest + decimal_digits(rest);
    total = rest + decimal_digits(total);
    if (n > EXTENDED_MAX || records->n > EXTENDED_MAX - total)
        return gpg_error(GPG_ERR_TOO_LARGE);
    uint8_t *room = extend(records, total);
    if (!room)
        return gpg_error(GPG_ERR_ENOMEM);
    room += put_decimal((char *)room, total, 1);
    *room++ = ' ';
    memcpy(room, key, n_key);
    room += n_key;
    *room++ = '=';
    if (n)
        memcpy(room, value, n);
    room[n] = '\n';
    return 0;
}

static gpg_error_t add_text(struct tar_buffer *records, const char *key, const char *value)
{
    return tar_pax_add(records, key, value, strlen(value));
}

static gpg_error_t add_number(struct tar_buffer *records, const char *key, uint64_t value)
{
    char text[DECIMAL_BYTES];
    return tar_pax_add(records, key, text, put_decimal(text, value, 1));
}

static gpg_error_t add_time(struct tar_buffer *records, const char *key, const struct timespec *time)
{
    /* A time before 1970 has a positive part of a second: -1 s + 0.25 s is -0.75. */
    bool negative = time->tv_sec < 0;
    uint64_t seconds = negative ? 0 - (uint64_t)time->tv_sec : (uint64_t)time->tv_sec;
    unsigned nanoseconds = (unsigned)time->tv_nsec;
    if (negative && nanoseconds) {
        seconds--;
        nanoseconds = 1000000000 - nanoseconds;
    }
    char text[DECIMAL_BYTES + 11];
    size_t n = 0;
    if (negative)
        text[n++] = '-';
    n += put_decimal(text + n, seconds, 1);
    if (nanoseconds) {
        text[n++] = '.';
        n += put_decimal(text + n, nanoseconds, 9);
        while (text[n - 1] == '0')
            n--;
    }
    return tar_pax_add(records, key, text, n);
}

static bool fits_octal(size_t width, uint64_t value)
{
    return value >> (3 * (width - 1)) == 0;
}

/* Octal digits and a NUL where VALUE fits, else base-256 as GNU tar, star and GnuPG's gpgtar write it. */
static void put_number(char *field, size_t width, uint64_t value)
{
    if (fits_octal(width, value)) {
        memset(field, '0', width - 1);
        field[width - 1] = 0;
        for (char *digit = field + width - 1; value; value >>= 3)
            *--digit = (char)('0' + (value & 7));
        return;
    }
    for (size_t i = width; i--; value >>= 8)
        field[i] = (char)(uint8_t)value;
    field[0] = (char)((uint8_t)field[0] | 0x80);
}

/* TEXT as far as it fits. Not memcpy: gcc makes `rep movs` of a length whose bound it knows, which is slow. */
static void put_text(char *field, size_t width, const char *text)
{
    strncpy(field, text, width);
}

/* The longest name and prefix: POSIX lets them fill their fields, gpgtar demands a NUL behind. */
#define NAME_BYTES   99
#define PREFIX_BYTES 154

/* The place of the slash that divides NAME into prefix and name; 0: it fits without one; -1: it does not fit. */
static long split(const char *name, size_t n)
{
    if (n <= NAME_BYTES)
        return 0;
    for (size_t at = n - 1; at-- > 1 && n - at - 1 <= NAME_BYTES;)
        if (name[at] == '/' && at <= PREFIX_BYTES)
            return (long)at;
    return -1;
}

static void put_name(struct ustar *header, const char *name, size_t n)
{
    long at = split(name, n);
    if (at > 0) {
        put_text(header->prefix, (size_t)at, name);
        name += at + 1;
    }
    put_text(header->name, NAME_BYTES, name);
}

static uint64_t header_time(const struct timespec *time)
{
    if (time->tv_sec < 0)
        return 0;
    return time->tv_sec > OCTAL_TIME_MAX ? OCTAL_TIME_MAX : (uint64_t)time->tv_sec;
}

/* The sum of a header's bytes, eight at a time: what comes together in 16 bits is 128 bytes, at most 32640. */
static unsigned add_up(const struct ustar *header)
{
    const uint64_t odd = 0x00ff00ff00ff00ff, halves = 0x0000ffff0000ffff;
    const uint8_t *bytes = (const void *)header;
    uint64_t sums = 0;
    for (size_t i = 0; i < TAR_BLOCK; i += sizeof(uint64_t)) {
        uint64_t word;
        memcpy(&word, bytes + i, sizeof word);
        sums += (word & odd) + (word >> 8 & odd);
    }
    sums = (sums & halves) + (sums >> 16 & halves);
    return (uint32_t)sums + (uint32_t)(sums >> 32);
}

static void seal(struct ustar *header)
{
    memcpy(header->magic, "ustar", 6);
    memcpy(header->version, "00", 2);
    memset(header->checksum, ' ', sizeof header->checksum);
    /* Six digits, NUL, blank: the form of the field in every historical tar. */
    put_number(header->checksum, sizeof header->checksum - 1, add_up(header));
}

/* The name of a sparse member for programs that take its map for content: beside the true one, so that they need no
 * folder that has no member. The caller frees. */
static char *sparse_name(const char *name)
{
    static const char mark[] = "GNUSparseFile.0.";
    const char *slash = strrchr(name, '/');
    int n_folder = slash ? (int)(slash - name) + 1 : 0;
    int n_leaf = NAMES_COMPONENT_MAX - (int)strlen(mark);
    char *marked;
    return asprintf(&marked, "%.*s%s%.*s", n_folder, name, mark, n_leaf, name + n_folder) < 0 ? NULL : marked;
}

static bool is_utf8(const char *text)
{
    const uint8_t *bytes = (const uint8_t *)text;
    for (size_t left = text ? strlen(text) : 0, n; left; bytes += n, left -= n)
        if (!(n = names_utf8(bytes, left)))
            return false;
    return true;
}

static gpg_error_t add_sparse(struct tar_buffer *records, const struct tar_member *member)
{
    gpg_error_t err = add_text(records, "GNU.sparse.major", "1");
    if (!err)
        err = add_text(records, "GNU.sparse.minor", "0");
    if (!err)
        err = add_text(records, "GNU.sparse.name", member->name);
    if (!err)
        err = add_number(records, "GNU.sparse.realsize", member->real_size);
    return err;
}

/* The records that MEMBER needs because its header (with NAME) cannot say it. */
static gpg_error_t add_needed(struct tar_buffer *records, const struct tar_member *member, const char *name,
                              size_t n_name)
{
    const struct ustar *fields = NULL;
    bool long_name = split(name, n_name) < 0;
    bool long_link = member->link && strlen(member->link) >= sizeof fields->link;
    gpg_error_t err = 0;
    /* Records are UTF-8 unless said otherwise: libarchive then demands it, GNU tar warns of the key. So it is there for
     * the few names that need it. */
    if (((long_name || member->sparse) && !is_utf8(member->name)) || (long_link && !is_utf8(member->link)))
        err = add_text(records, "hdrcharset", "BINARY");
    if (!err && long_name)
        err = tar_pax_add(records, "path", name, n_name);
    if (!err && long_link)
        err = add_text(records, "linkpath", member->link);
    if (!err && !fits_octal(sizeof fields->size, member->size))
        err = add_number(records, "size", member->size);
    if (!err && !fits_octal(sizeof fields->uid, member->uid))
        err = add_number(records, "uid", member->uid);
    if (!err && !fits_octal(sizeof fields->gid, member->gid))
        err = add_number(records, "gid", member->gid);
    if (!err && member->uname && strlen(member->uname) >= sizeof fields->uname)
        err = add_text(records, "uname", member->uname);
    if (!err && member->gname && strlen(member->gname) >= sizeof fields->gname)
        err = add_text(records, "gname", member->gname);
    if (!err && (member->mtime.tv_nsec || header_time(&member->mtime) != (uint64_t)member->mtime.tv_sec))
        err = add_time(records, "mtime", &member->mtime);
    if (!err && member->sparse)
        err = add_sparse(records, member);
    return err;
}

/* The header, cleared before, of N bytes of records for MEMBER. */
static void put_extended(struct ustar *header, const struct tar_member *member, size_t n)
{
    const char *slash = strrchr(member->name, '/'), *leaf = slash ? slash + 1 : member->name;
    static const char folder[] = "PaxHeaders/";
    memcpy(header->name, folder, sizeof folder - 1);
    put_text(header->name + sizeof folder - 1, NAME_BYTES - (sizeof folder - 1), leaf);
    put_number(header->mode, sizeof header->mode, 0644);
    put_number(header->uid, sizeof header->uid, 0);
    put_number(header->gid, sizeof header->gid, 0);
    put_number(header->size, sizeof header->size, n);
    put_number(header->mtime, sizeof header->mtime, header_time(&member->mtime));
    header->type = 'x';
    put_number(header->dev_major, sizeof header->dev_major, 0);
    put_number(header->dev_minor, sizeof header->dev_minor, 0);
    seal(header);
}

/* Adds the extended header, if there is anything to say in one. */
static gpg_error_t add_extended(struct tar_buffer *buffer, const struct tar_member *member, const char *name,
                                size_t n_name, const struct tar_buffer *records)
{
    const size_t start = buffer->n;
    gpg_error_t err = tar_buffer_add(buffer, NULL, TAR_BLOCK);
    if (!err)
        err = add_needed(buffer, member, name, n_name);
    if (err)
        return err;
    const size_t needed = buffer->n - start - TAR_BLOCK, n = needed + (records ? records->n : 0);
    if (n > EXTENDED_MAX)
        return gpg_error(GPG_ERR_TOO_LARGE);
    if (n > needed)
        err = tar_buffer_add(buffer, records->bytes, records->n);
    if (err)
        return err;
    if (!n) {
        buffer->n = start;
        return 0;
    }
    put_extended((struct ustar *)(buffer->bytes + start), member, n);
    return tar_buffer_add(buffer, NULL, tar_padding(n));
}

static gpg_error_t add_header(struct tar_buffer *buffer, const struct tar_member *member, const char *name, size_t n)
{
    gpg_error_t err = tar_buffer_add(buffer, NULL, TAR_BLOCK);
    if (err)
        return err;
    struct ustar *header = (struct ustar *)(buffer->bytes + buffer->n - TAR_BLOCK);
    put_name(header, name, n);
    put_number(header->mode, sizeof header->mode, member->mode);
    put_number(header->uid, sizeof header->uid, member->uid);
    put_number(header->gid, sizeof header->gid, member->gid);
    put_number(header->size, sizeof header->size, member->size);
    put_number(header->mtime, sizeof header->mtime, header_time(&member->mtime));
    header->type = member->type;
    if (member->link)
        put_text(header->link, sizeof header->link - 1, member->link);
    if (member->uname)
        put_text(header->uname, sizeof header->uname - 1, member->uname);
    if (member->gname)
        put_text(header->gname, sizeof header->gname - 1, member->gname);
    put_number(header->dev_major, sizeof header->dev_major, member->dev_major);
    put_number(header->dev_minor, sizeof header->dev_minor, member->dev_minor);
    seal(header);
    return 0;
}

gpg_error_t tar_header_add(struct tar_buffer *buffer, const struct tar_member *member, const struct tar_buffer *records)
{
    const size_t start = buffer->n;
    char *shown = NULL;
    const char *name = member->name;
    if (member->sparse)
        name = shown = sparse_name(member->name);
    else if (member->type == '5' && asprintf(&shown, "%s/", member->name) >= 0)
        name = shown;
    if (!shown && (member->sparse || member->type == '5'))
        return gpg_error(GPG_ERR_ENOMEM);
    const size_t n_name = strlen(name);
    gpg_error_t err = add_extended(buffer, member, name, n_name, records);
    if (!err)
        err = add_header(buffer, member, name, n_name);
    if (err)
        buffer->n = start;
    free(shown);
    return err;
}
