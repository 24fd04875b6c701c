/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "armor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Text that is skipped before a block, and headers of a block, bytes at most. */
#define TEXT_MAX (64 * 1024)
/* Of a line only so much is looked at: a BEGIN line is shorter. */
#define LINE_MAX_SEEN 256
#define KIND_MAX      64

#define BEGIN_WORD "-----BEGIN "
#define END_WORD   "-----END "
#define DASHES     "-----"

/* Some editors write it before text. Its first octet would be a packet of the unassigned type 47. */
#define BYTE_ORDER_MARK "\xEF\xBB\xBF"

/* ---- CRC24 (RFC 9580 6.1) ---- */

#define CRC24_INIT 0xB704CEU
#define CRC24_POLY 0x864CFBU

/* table[K][B]: the octet B, then K zero octets; the sum stands in the upper 24 bits. */
struct crc24 {
    uint32_t sum;
    uint32_t table[4][256];
};

static void crc24_start(struct crc24 *crc)
{
    crc->sum = CRC24_INIT << 8;
}

static void crc24_init(struct crc24 *crc)
{
    for (unsigned octet = 0; octet < 256; octet++) {
        uint32_t sum = octet << 24;
        for (unsigned bit = 0; bit < 8; bit++)
            sum = sum << 1 ^ (sum >> 31 ? CRC24_POLY << 8 : 0);
        crc->table[0][octet] = sum;
    }
    for (unsigned k = 1; k < 4; k++) {
        for (unsigned octet = 0; octet < 256; octet++) {
            uint32_t sum = crc->table[k - 1][octet];
            crc->table[k][octet] = sum << 8 ^ crc->table[0][sum >> 24];
        }
    }
    crc24_start(crc);
}

static void crc24_update(struct crc24 *crc, const uint8_t *bytes, size_t n)
{
    uint32_t sum = crc->sum;
    for (; n >= 4; n -= 4, bytes += 4) {
        sum ^= get_be32(bytes);
        sum = crc->table[3][sum >> 24] ^ crc->table[2][sum >> 16 & 255] ^ crc->table[1][sum >> 8 & 255] ^
              crc->table[0][sum & 255];
    }
    for (; n; n--, bytes++)
        sum = sum << 8 ^ crc->table[0][sum >> 24 ^ *bytes];
    crc->sum = sum;
}

static uint32_t crc24_value(const struct crc24 *crc)
{
    return crc->sum >> 8;
}

/* ---- reading ---- */

gpg_error_t armor_detect(struct source *source, bool *ret_armored)
{
    const void *bytes;
    size_t n;
    gpg_error_t error = source_peek(source, &bytes, &n);
    if (error)
        return error;
    bool marked = n && !memcmp(bytes, BYTE_ORDER_MARK, n < 3 ? n : 3);
    *ret_armored = n && (marked || !(*(const uint8_t *)bytes & 0x80));
    return 0;
}

enum armor_state {
    ARMOR_TEXT,     /* lines before a BEGIN line */
    ARMOR_HEADERS,  /* up to the empty line */
    ARMOR_BODY,     /* base64 */
    ARMOR_CHECKSUM, /* the line that begins with = */
    ARMOR_TAIL,     /* the END line */
    ARMOR_AFTER,    /* what follows the block */
    ARMOR_END,
};

#define DECODED_MAX (48 * 1024)

/* text ▸ lines outside, base64 inside a block ▸ decoded ▸ lent */
struct armor_source {
    struct source source;
    struct failure *failure;
    struct source *text;
    char wanted[KIND_MAX]; /* "": any */
    char kind[KIND_MAX];   /* of this block */
    bool multi;
    bool checksum_wrong;
    bool found; /* a block has been begun */
    enum armor_state state;
    char line[LINE_MAX_SEEN]; /* the line being read, without its end */
    size_t line_n;
    size_t skipped; /* bytes of text or headers so far */

    bool line_start; /* body: nothing but blanks so far in this line */
    bool padded;     /* body: = was seen, no more data may follow */
    unsigned quad_n; /* base64 digits of a group so far, with padding */
    unsigned pad_n;  /* of these */
    uint32_t quad;

    uint8_t decoded[DECODED_MAX];
    size_t decoded_n;
    size_t decoded_at;
    struct crc24 crc;
};

/* The value of each base64 digit; 64 and up: none. */
static const uint8_t base64_values[256] = {
#define NONE4  64, 64, 64, 64
#define NONE16 NONE4, NONE4, NONE4, NONE4
    NONE16, NONE16,
    /* blank … / */
    NONE4, NONE4, 64, 64, 64, 62, 64, 64, 64, 63,
    /* 0 … 9 and : … ? */
    52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 64, 64, NONE4,
    /* @ A … Z [ … _ */
    64, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 64, NONE4,
    /* ` a … z { … */
    64, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 64,
    NONE4, NONE16, NONE16, NONE16, NONE16, NONE16, NONE16, NONE16, NONE16
#undef NONE4
#undef NONE16
};

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static gpg_error_t armor_bad(struct armor_source *armor, const char *why)
{
    return fail(armor->failure, gpg_error(GPG_ERR_INV_ARMOR), "the armored text is damaged: %s", why);
}

/* Whether the line is WORD, a kind and five dashes; the kind goes to RET. */
static bool line_is(const struct armor_source *armor, const char *word, char ret[KIND_MAX])
{
    size_t word_n = strlen(word), dashes_n = strlen(DASHES), n = armor->line_n;
    if (n < word_n + dashes_n || memcmp(armor->line, word, word_n) ||
        memcmp(armor->line + n - dashes_n, DASHES, dashes_n))
        return false;
    size_t kind_n = n - word_n - dashes_n;
    if (kind_n >= KIND_MAX)
        return false;
    memcpy(ret, armor->line + word_n, kind_n);
    ret[kind_n] = 0;
    return true;
}

static gpg_error_t begin_line(struct armor_source *armor)
{
    char kind[KIND_MAX];
    if (!armor->found && armor->line_n > 3 && !memcmp(armor->line, BYTE_ORDER_MARK, 3))
        memmove(armor->line, armor->line + 3, armor->line_n -= 3);
    if (!line_is(armor, BEGIN_WORD, kind) || strncmp(kind, "PGP ", 4))
        return 0;
    if (armor->wanted[0] && strcmp(kind, armor->wanted))
        return fail(armor->failure, gpg_error(GPG_ERR_NO_DATA), "armored data is a %s, a %s is needed", kind,
                    armor->wanted);
    if (!strcmp(kind, "PGP SIGNED MESSAGE"))
        return fail(armor->failure, gpg_error(GPG_ERR_NOT_SUPPORTED), "cleartext signatures (%s) are not supported",
                    kind);
    memcpy(armor->kind, kind, sizeof kind);
    armor->found = true;
    armor->state = ARMOR_HEADERS;
    armor->skipped = 0;
    return 0;
}

static void begin_body(struct armor_source *armor)
{
    armor->state = ARMOR_BODY;
    armor->line_start = true;
    armor->padded = false;
    armor->quad_n = 0;
    armor->pad_n = 0;
    armor->quad = 0;
    crc24_start(&armor->crc);
}

static gpg_error_t checksum_line(struct armor_source *armor)
{
    uint32_t sum = 0;
    if (armor->line_n != 4)
        return armor_bad(armor, "its checksum line is no checksum");
    for (unsigned i = 0; i < 4; i++) {
        uint8_t value = base64_values[(uint8_t)armor->line[i]];
        if (value > 63)
            return armor_bad(armor, "its checksum line is no checksum");
        sum = sum << 6 | value;
    }
    if (sum != crc24_value(&armor->crc))
        armor->checksum_wrong = true;
    armor->state = ARMOR_TAIL;
    return 0;
}

/* A line outside the base64 is whole. */
static gpg_error_t line_done(struct armor_source *armor)
{
    gpg_error_t error = 0;
    char kind[KIND_MAX];
    while (armor->line_n && is_blank(armor->line[armor->line_n - 1]))
        armor->line_n--;
    switch (armor->state) {
    case ARMOR_TEXT:
        error = begin_line(armor);
        break;
    case ARMOR_HEADERS:
        if (!armor->line_n)
            begin_body(armor);
        else if (!memchr(armor->line, ':', armor->line_n))
            error = armor_bad(armor, "a header line has no colon, or the empty line after the headers is missing");
        break;
    case ARMOR_CHECKSUM:
        error = checksum_line(armor);
        break;
    case ARMOR_TAIL:
        if (!armor->line_n)
            break;
        if (!line_is(armor, END_WORD, kind) || strcmp(kind, armor->kind))
            return armor_bad(armor, "its END line does not match");
        armor->state = armor->multi ? ARMOR_TEXT : ARMOR_AFTER;
        armor->skipped = 0;
        break;
    case ARMOR_AFTER:
        if (armor->line_n)
            error = armor_bad(armor, "text follows the END line");
        break;
    case ARMOR_BODY:
    case ARMOR_END:
        break;
    }
    armor->line_n = 0;
    return error;
}

/* Takes bytes of one line; the number used. */
static gpg_error_t take_line(struct armor_source *armor, const uint8_t *bytes, size_t n, size_t *ret_used)
{
    const uint8_t *newline = memchr(bytes, '\n', n);
    size_t line_n = newline ? (size_t)(newline - bytes) : n;
    size_t room = sizeof armor->line - armor->line_n;
    size_t used = newline ? line_n + 1 : n;
    memcpy(armor->line + armor->line_n, bytes, line_n < room ? line_n : room);
    armor->line_n += line_n < room ? line_n : room;
    *ret_used = used;
    armor->skipped += used;
    if (armor->skipped > TEXT_MAX) {
        if (armor->state == ARMOR_TEXT && !armor->found)
            return fail(armor->failure, gpg_error(GPG_ERR_NO_DATA), "no OpenPGP data found");
        return armor_bad(armor, "too much text outside its base64");
    }
    return newline ? line_done(armor) : 0;
}

static void put_group(struct armor_source *armor)
{
    uint8_t *to = armor->decoded + armor->decoded_n;
    to[0] = (uint8_t)(armor->quad >> 16);
    to[1] = (uint8_t)(armor->quad >> 8);
    to[2] = (uint8_t)armor->quad;
    armor->decoded_n += 3 - armor->pad_n;
    armor->quad_n = 0;
    armor->quad = 0;
}

/* One byte of the body that is not part of a whole group of four digits in a row. */
static gpg_error_t body_byte(struct armor_source *armor, uint8_t byte)
{
    uint8_t value = base64_values[byte];
    if (byte == '\n') {
        armor->line_start = true;
        return 0;
    }
    if (is_blank((char)byte))
        return 0;
    if (armor->line_start && !armor->quad_n && (byte == '=' || byte == '-')) {
        crc24_update(&armor->crc, armor->decoded, armor->decoded_n);
        armor->state = byte == '=' ? ARMOR_CHECKSUM : ARMOR_TAIL;
        armor->line[0] = '-';
        armor->line_n = byte == '-';
        armor->skipped = 0;
        return 0;
    }
    armor->line_start = false;
    if (byte == '=' && armor->quad_n >= 2) {
        armor->padded = true;
        armor->pad_n++;
    } else if (value > 63 || armor->padded) {
        return armor_bad(armor, byte == '-' || armor->padded ? "it ends in mid-line" : "a character is not base64");
    }
    armor->quad = armor->quad << 6 | (value & 63); /* = counts as 0 */
    if (++armor->quad_n == 4)
        put_group(armor);
    return 0;
}

/* Whole groups in a row, as they stand in all but the ends of lines; the number of bytes used. */
static size_t take_groups(struct armor_source *armor, const uint8_t *bytes, size_t n)
{
    const uint8_t *at = bytes;
    uint8_t *to = armor->decoded + armor->decoded_n;
    size_t groups = (DECODED_MAX - armor->decoded_n) / 3;
    if (n / 4 < groups)
        groups = n / 4;
    for (; groups; groups--, at += 4, to += 3) {
        uint32_t a = base64_values[at[0]], b = base64_values[at[1]];
        uint32_t c = base64_values[at[2]], d = base64_values[at[3]];
        if ((a | b | c | d) & 64)
            break;
        uint32_t quad = a << 18 | b << 12 | c << 6 | d;
        to[0] = (uint8_t)(quad >> 16);
        to[1] = (uint8_t)(quad >> 8);
        to[2] = (uint8_t)quad;
    }
    armor->decoded_n = (size_t)(to - armor->decoded);
    if (at != bytes)
        armor->line_start = false;
    return (size_t)(at - bytes);
}

/* Decodes until the buffer is full, the bytes are used up or the body ends. */
static gpg_error_t take_body(struct armor_source *armor, const uint8_t *bytes, size_t n, size_t *ret_used)
{
    size_t used = 0;
    gpg_error_t error = 0;
    while (used < n && armor->decoded_n <= DECODED_MAX - 3 && armor->state == ARMOR_BODY && !error) {
        if (!armor->quad_n && !armor->padded)
            used += take_groups(armor, bytes + used, n - used);
        if (used < n && armor->decoded_n <= DECODED_MAX - 3)
            error = body_byte(armor, bytes[used++]);
    }
    if (armor->state == ARMOR_BODY)
        crc24_update(&armor->crc, armor->decoded, armor->decoded_n);
    *ret_used = used;
    return error;
}

/* The text is at its end. */
static gpg_error_t armor_text_end(struct armor_source *armor)
{
    gpg_error_t error = 0;
    if (armor->state != ARMOR_BODY)
        error = line_done(armor);
    if (error)
        return error;
    if (!armor->found)
        return fail(armor->failure, gpg_error(GPG_ERR_NO_DATA), "no OpenPGP data found");
    if (armor->state != ARMOR_AFTER && armor->state != ARMOR_TEXT)
        return fail(armor->failure, gpg_error(GPG_ERR_TRUNCATED), "the armored text ends without its END line");
    armor->state = ARMOR_END;
    return 0;
}

static gpg_error_t armor_source_peek(struct source *source, const void **ret_bytes, size_t *ret_n)
{
    struct armor_source *armor = CONTAINER(source, struct armor_source, source);
    while (armor->decoded_at == armor->decoded_n && armor->state != ARMOR_END) {
        const void *bytes;
        size_t n, used = 0;
        armor->decoded_at = armor->decoded_n = 0;
        gpg_error_t error = source_peek(armor->text, &bytes, &n);
        if (!error && !n)
            error = armor_text_end(armor);
        else if (!error && armor->state == ARMOR_BODY)
            error = take_body(armor, bytes, n, &used);
        else if (!error)
            error = take_line(armor, bytes, n, &used);
        if (error)
            return error;
        source_consume(armor->text, used);
    }
    *ret_bytes = armor->decoded + armor->decoded_at;
    *ret_n = armor->decoded_n - armor->decoded_at;
    return 0;
}

static void armor_source_consume(struct source *source, size_t n)
{
    CONTAINER(source, struct armor_source, source)->decoded_at += n;
}

static gpg_error_t armor_source_finish(struct source *source)
{
    gpg_error_t error = source_drain(source);
    return error ? error : source_finish(CONTAINER(source, struct armor_source, source)->text);
}

static void armor_source_free(struct source *source)
{
    struct armor_source *armor = CONTAINER(source, struct armor_source, source);
    source_free(armor->text);
    /* secret keys come in armor, too */
    explicit_bzero(armor->decoded, sizeof armor->decoded);
    free(armor);
}

static const struct source_ops armor_source_ops = {
    .peek = armor_source_peek,
    .consume = armor_source_consume,
    .finish = armor_source_finish,
    .free = armor_source_free,
};

gpg_error_t armor_source_new(struct failure *failure, struct source *takes_text, const char *kind, bool multi,
                             struct source **ret)
{
    struct armor_source *armor = NULL;
    gpg_error_t error = 0;
    if (kind && strlen(kind) >= KIND_MAX) {
        error = gpg_error(GPG_ERR_INV_ARG);
        goto out;
    }
    armor = calloc(1, sizeof *armor);
    if (!armor) {
        error = gpg_error_from_syserror();
        goto out;
    }
    source_init(&armor->source, &armor_source_ops);
    armor->failure = failure;
    armor->text = takes_text;
    armor->multi = multi;
    if (kind)
        strcpy(armor->wanted, kind);
    crc24_init(&armor->crc);
    *ret = &armor->source;
    return 0;
out:
    source_free(takes_text);
    return error;
}

bool armor_checksum_wrong(const struct source *armor)
{
    return armor->ops == &armor_source_ops &&
           ((const struct armor_source *)(const void *)((const char *)armor - offsetof(struct armor_source, source)))
               ->checksum_wrong;
}

/* ---- writing ---- */

/* RFC 9580 6: at most 76 characters in a line; everybody writes 64. */
#define LINE_OCTETS 48
#define LINE_TEXT   65 /* with its newline */
#define BLOCK_LINES 1024

/* octets ▸ gathered to whole lines ▸ base64 ▸ below */
struct armor_sink {
    struct sink sink;
    struct sink *below;
    char *head; /* BEGIN line, headers and the empty line; NULL: written */
    char tail[KIND_MAX + sizeof END_WORD + sizeof DASHES];
    bool crc_wanted;
    uint8_t rest[LINE_OCTETS]; /* octets that do not fill a line yet */
    size_t rest_n;
    char text[BLOCK_LINES * LINE_TEXT];
    struct crc24 crc;
};

/* N octets as base64 to TO, padded; the number of characters. */
static size_t base64_put(char *to, const uint8_t *bytes, size_t n)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char *start = to;
    for (; n >= 3; n -= 3, bytes += 3, to += 4) {
        uint32_t group = (uint32_t)bytes[0] << 16 | (uint32_t)bytes[1] << 8 | bytes[2];
        to[0] = digits[group >> 18];
        to[1] = digits[group >> 12 & 63];
        to[2] = digits[group >> 6 & 63];
        to[3] = digits[group & 63];
    }
    if (n) {
        uint32_t group = (uint32_t)bytes[0] << 16 | (n > 1 ? (uint32_t)bytes[1] << 8 : 0);
        to[0] = digits[group >> 18];
        to[1] = digits[group >> 12 & 63];
        to[2] = n > 1 ? digits[group >> 6 & 63] : '=';
        to[3] = '=';
        to += 4;
    }
    return (size_t)(to - start);
}

static size_t line_put(char *to, const uint8_t *bytes, size_t n)
{
    size_t text_n = base64_put(to, bytes, n);
    to[text_n] = '\n';
    return text_n + 1;
}

static gpg_error_t head_write(struct armor_sink *armor)
{
    if (!armor->head)
        return 0;
    gpg_error_t error = sink_write(armor->below, armor->head, strlen(armor->head));
    free(armor->head);
    armor->head = NULL;
    return error;
}

static gpg_error_t armor_sink_write(struct sink *sink, const void *bytes, size_t n)
{
    struct armor_sink *armor = CONTAINER(sink, struct armor_sink, sink);
    const uint8_t *at = bytes;
    gpg_error_t error = head_write(armor);
    if (armor->crc_wanted)
        crc24_update(&armor->crc, at, n);
    while (n && !error) {
        size_t text_n = 0;
        if (armor->rest_n || n < LINE_OCTETS) {
            size_t take = LINE_OCTETS - armor->rest_n < n ? LINE_OCTETS - armor->rest_n : n;
            memcpy(armor->rest + armor->rest_n, at, take);
            armor->rest_n += take;
            at += take;
            n -= take;
            if (armor->rest_n < LINE_OCTETS)
                break;
            text_n = line_put(armor->text, armor->rest, LINE_OCTETS);
            armor->rest_n = 0;
        }
        for (; n >= LINE_OCTETS && text_n < sizeof armor->text; n -= LINE_OCTETS, at += LINE_OCTETS)
            text_n += line_put(armor->text + text_n, at, LINE_OCTETS);
        error = sink_write(armor->below, armor->text, text_n);
    }
    return error;
}

static gpg_error_t armor_sink_finish(struct sink *sink)
{
    struct armor_sink *armor = CONTAINER(sink, struct armor_sink, sink);
    size_t n = 0;
    gpg_error_t error = head_write(armor);
    if (error)
        return error;
    if (armor->rest_n)
        n = line_put(armor->text, armor->rest, armor->rest_n);
    if (armor->crc_wanted) {
        uint32_t sum = crc24_value(&armor->crc);
        uint8_t octets[3] = {(uint8_t)(sum >> 16), (uint8_t)(sum >> 8), (uint8_t)sum};
        armor->text[n++] = '=';
        n += line_put(armor->text + n, octets, sizeof octets);
    }
    size_t tail_n = strlen(armor->tail);
    memcpy(armor->text + n, armor->tail, tail_n);
    error = sink_write(armor->below, armor->text, n + tail_n);
    return error ? error : sink_finish(armor->below);
}

static void armor_sink_free(struct sink *sink)
{
    struct armor_sink *armor = CONTAINER(sink, struct armor_sink, sink);
    sink_free(armor->below);
    free(armor->head);
    explicit_bzero(armor, sizeof *armor);
    free(armor);
}

static const struct sink_ops armor_sink_ops = {
    .write = armor_sink_write,
    .finish = armor_sink_finish,
    .free = armor_sink_free,
};

/* BEGIN line, comments, empty line. */
static gpg_error_t head_new(const char *kind, const char *const *comments, char **ret)
{
    size_t n = strlen(BEGIN_WORD) + strlen(kind) + strlen(DASHES) + 3;
    for (size_t i = 0; comments && comments[i]; i++) {
        if (strpbrk(comments[i], "\r\n"))
            return gpg_error(GPG_ERR_INV_ARG);
        n += strlen("Comment: ") + strlen(comments[i]) + 1;
    }
    char *head = malloc(n), *at = head;
    if (!head)
        return gpg_error_from_syserror();
    at += sprintf(at, BEGIN_WORD "%s" DASHES "\n", kind);
    for (size_t i = 0; comments && comments[i]; i++)
        at += sprintf(at, "Comment: %s\n", comments[i]);
    strcpy(at, "\n");
    *ret = head;
    return 0;
}

gpg_error_t armor_sink_new(const char *kind, const char *const *comments, bool crc, struct sink *takes_below,
                           struct sink **ret)
{
    struct armor_sink *armor = NULL;
    gpg_error_t error = 0;
    if (strlen(kind) >= KIND_MAX) {
        error = gpg_error(GPG_ERR_INV_ARG);
        goto out;
    }
    armor = calloc(1, sizeof *armor);
    if (!armor) {
        error = gpg_error_from_syserror();
        goto out;
    }
    error = head_new(kind, comments, &armor->head);
    if (error)
        goto out;
    sink_init(&armor->sink, &armor_sink_ops);
    armor->below = takes_below;
    armor->crc_wanted = crc;
    sprintf(armor->tail, END_WORD "%s" DASHES "\n", kind);
    crc24_init(&armor->crc);
    *ret = &armor->sink;
    return 0;
out:
    sink_free(takes_below);
    free(armor);
    return error;
}
