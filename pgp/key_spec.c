/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "key_spec.h"

#include <string.h>

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Reads the hexadecimal digits of TEXT into OUT (ROOM octets), passing over blanks and colons if SPACED. Their number,
 * or 0 where something else is in it or there are too many. */
static size_t hex_digits(const char *text, size_t n, bool spaced, uint8_t *out, size_t room)
{
    size_t digits = 0;
    for (size_t i = 0; i < n; i++) {
        int value = hex_value(text[i]);
        if (value < 0 && spaced && (text[i] == ' ' || text[i] == ':'))
            continue;
        if (value < 0 || digits / 2 >= room)
            return 0;
        out[digits / 2] = (uint8_t)(digits % 2 ? out[digits / 2] | value : value << 4);
        digits++;
    }
    return digits;
}

/* A fingerprint or key id. Whether TEXT is one; with 0x before it, it must be. */
static bool parse_id(const char *text, size_t n, struct key_spec *spec)
{
    uint8_t id[KEY_FPR_MAX] = {0};
    if (n && text[n - 1] == '!') {
        spec->exact_key = true;
        n--;
    }
    size_t digits = hex_digits(text, n, false, id, sizeof id);
    if ((digits == 9 || digits == 17 || digits == 41) && text[0] == '0') /* gpg takes a zero before the rest */
        digits = hex_digits(text + 1, n - 1, false, id, sizeof id);
    if (digits != 8 && digits != 16 && digits != 40 && digits != 64) {
        digits = hex_digits(text, n, true, id, sizeof id);
        if (digits != 40 && digits != 64)
            return false;
    }
    spec->kind = digits >= 40 ? SPEC_FPR : SPEC_KEYID;
    spec->id_n = (uint8_t)(digits / 2);
    memcpy(spec->id, id, sizeof id);
    return true;
}

/* As far as it takes to tell an address from words: one @ inside, no blanks, control characters or brackets. */
static bool is_address(const char *text, size_t n)
{
    const char *at = memchr(text, '@', n);
    if (!at || at == text || at == text + n - 1 || memchr(at + 1, '@', n - (size_t)(at + 1 - text)))
        return false;
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)text[i] <= ' ' || text[i] == 0x7F || strchr("<>()[],;\"", text[i]))
            return false;
    return text[n - 1] != '.';
}

static gpg_error_t parse_prefixed(struct key_spec *spec)
{
    char prefix = spec->text[0];
    spec->text++;
    spec->text_n--;
    switch (prefix) {
    case '=':
        spec->kind = SPEC_EXACT;
        break;
    case '*':
        spec->kind = SPEC_SUBSTRING;
        break;
    case '+':
        spec->kind = SPEC_WORDS;
        break;
    case '@':
        spec->kind = SPEC_MAIL_PART;
        break;
    case '<':
        spec->kind = SPEC_MAIL;
        if (spec->text_n && spec->text[spec->text_n - 1] == '>')
            spec->text_n--;
        break;
    case '&':
        spec->kind = SPEC_KEYGRIP;
        spec->id_n = 20;
        return hex_digits(spec->text, spec->text_n, false, spec->id, 20) == 40 ? 0 : gpg_error(GPG_ERR_INV_USER_ID);
    default:
        return gpg_error(GPG_ERR_INV_USER_ID);
    }
    return spec->text_n ? 0 : gpg_error(GPG_ERR_INV_USER_ID);
}

gpg_error_t key_spec_parse(const char *text, struct key_spec *ret)
{
    gpg_error_t err = 0;
    while (*text == ' ' || *text == '\t')
        text++;
    size_t n = strlen(text);
    while (n && (text[n - 1] == ' ' || text[n - 1] == '\t'))
        n--;
    struct key_spec spec = {.kind = SPEC_SUBSTRING, .text = text, .text_n = n};
    if (!n)
        return gpg_error(GPG_ERR_INV_USER_ID);
    if (strchr("=*+@<&#/.^", text[0])) {
        err = parse_prefixed(&spec);
    } else if (n > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X')) {
        if (!parse_id(text + 2, n - 2, &spec))
            err = gpg_error(GPG_ERR_INV_USER_ID);
    } else if (!parse_id(text, n, &spec)) {
        spec.exact_key = false;
        if (is_address(text, n)) {
            spec.kind = SPEC_MAIL;
            spec.or_substring = true;
        }
    }
    if (!err)
        *ret = spec;
    return err;
}

struct key_spec key_spec_of_id(const uint8_t *id, size_t n)
{
    struct key_spec spec = {.kind = n <= 8 ? SPEC_KEYID : SPEC_FPR};
    spec.id_n = (uint8_t)(n <= sizeof spec.id ? n : sizeof spec.id);
    memcpy(spec.id, id, spec.id_n);
    return spec;
}

bool key_spec_names_key(const struct key_spec *spec)
{
    return spec->kind == SPEC_FPR || spec->kind == SPEC_KEYID || spec->kind == SPEC_KEYGRIP;
}

bool key_spec_matches_key(const struct key_spec *spec, const struct key *key)
{
    switch (spec->kind) {
    case SPEC_FPR:
        return key->fpr_n == spec->id_n && memcmp(key->fpr, spec->id, spec->id_n) == 0;
    case SPEC_KEYID:
        return memcmp(key->keyid + 8 - spec->id_n, spec->id, spec->id_n) == 0;
    case SPEC_KEYGRIP:
        return key->has_keygrip && memcmp(key->keygrip, spec->id, spec->id_n) == 0;
    default:
        return false;
    }
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool alike(const char *a, const char *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (lower(a[i]) != lower(b[i]))
            return false;
    return true;
}

static bool contains(const char *text, size_t n, const char *part, size_t part_n)
{
    for (size_t i = 0; i + part_n <= n; i++)
        if (alike(text + i, part, part_n))
            return true;
    return false;
}

/* The address in a user id: between the first < and >, or all of it where it is an address. False where there is none.
 */
static bool find_address(const char *uid, size_t n, const char **ret, size_t *ret_n)
{
    const char *open = memchr(uid, '<', n);
    if (!open) {
        *ret = uid;
        *ret_n = n;
        return is_address(uid, n);
    }
    *ret = open + 1;
    size_t left = n - (size_t)(open + 1 - uid);
    const char *close = memchr(open + 1, '>', left);
    *ret_n = close ? (size_t)(close - open - 1) : left;
    return true;
}

static bool contains_words(const char *uid, size_t n, const char *words, size_t words_n)
{
    for (size_t at = 0; at < words_n;) {
        size_t word_n = 0;
        while (at + word_n < words_n && words[at + word_n] != ' ')
            word_n++;
        if (!contains(uid, n, words + at, word_n))
            return false;
        at += word_n + 1;
    }
    return true;
}

bool key_spec_matches_uid(const struct key_spec *spec, const char *uid, size_t n)
{
    const char *address;
    size_t address_n;
    switch (spec->kind) {
    case SPEC_EXACT:
        return n == spec->text_n && memcmp(uid, spec->text, n) == 0;
    case SPEC_MAIL:
        return find_address(uid, n, &address, &address_n) && address_n == spec->text_n &&
               alike(address, spec->text, address_n);
    case SPEC_MAIL_PART:
        return find_address(uid, n, &address, &address_n) && contains(address, address_n, spec->text, spec->text_n);
    case SPEC_WORDS:
        return contains_words(uid, n, spec->text, spec->text_n);
    case SPEC_SUBSTRING:
        return contains(uid, n, spec->text, spec->text_n);
    default:
        return false;
    }
}
