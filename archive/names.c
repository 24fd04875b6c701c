/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "names.h"

#include <stdlib.h>
#include <string.h>

/* The next component of *AT; its length in *RET_N, *AT behind it. NULL at the end. */
static const char *next_component(const char **at, size_t *ret_n)
{
    const char *start = *at;
    while (*start == '/')
        start++;
    *at = strchrnul(start, '/');
    *ret_n = (size_t)(*at - start);
    return *ret_n ? start : NULL;
}

static bool is_dot(const char *component, size_t n)
{
    return n == 1 && component[0] == '.';
}

static bool is_dotdot(const char *component, size_t n)
{
    return n == 2 && component[0] == '.' && component[1] == '.';
}

/* NAME's components joined by single slashes, without `.` ones; with ROOT behind a `/`. */
static char *join(const char *name, bool root)
{
    char *path = malloc(strlen(name) + 3);
    if (!path)
        return NULL;
    size_t used = 0, n;
    if (root)
        path[used++] = '/';
    const char *component;
    while ((component = next_component(&name, &n))) {
        if (is_dot(component, n))
            continue;
        if (used && path[used - 1] != '/')
            path[used++] = '/';
        memcpy(path + used, component, n);
        used += n;
    }
    if (!used)
        path[used++] = '.';
    path[used] = 0;
    return path;
}

gpg_error_t names_disk(const char *given, char **ret_path)
{
    if (!*given || strlen(given) > NAMES_MAX)
        return gpg_error(GPG_ERR_INV_NAME);
    char *path = join(given, given[0] == '/');
    if (!path)
        return gpg_error_from_syserror();
    *ret_path = path;
    return 0;
}

const char *names_member(const char *path)
{
    const char *at = path, *start = path + strspn(path, "/"), *component;
    size_t n;
    while ((component = next_component(&at, &n)))
        if (is_dotdot(component, n))
            start = at + strspn(at, "/");
    return *start ? start : ".";
}

enum names_flaw names_check(const char *name)
{
    if (!*name)
        return NAMES_EMPTY;
    if (strlen(name) > NAMES_MAX)
        return NAMES_TOO_LONG;
    bool nothing = true;
    const char *component;
    size_t n;
    while ((component = next_component(&name, &n))) {
        if (is_dotdot(component, n))
            return NAMES_DOTDOT;
        if (n > NAMES_COMPONENT_MAX)
            return NAMES_TOO_LONG;
        if (!is_dot(component, n))
            nothing = false;
    }
    return nothing ? NAMES_NOTHING : NAMES_SOUND;
}

const char *names_flaw_text(enum names_flaw flaw)
{
    switch (flaw) {
    case NAMES_EMPTY:
        return "empty name";
    case NAMES_DOTDOT:
        return "name contains '..'";
    case NAMES_TOO_LONG:
        return "name is too long";
    case NAMES_NOTHING:
        return "name is that of the target folder";
    case NAMES_SOUND:
        break;
    }
    return "sound name";
}

gpg_error_t names_extracted(const char *name, char **ret_name, bool *ret_stripped)
{
    char *result = join(name, false);
    if (!result)
        return gpg_error_from_syserror();
    if (ret_stripped)
        *ret_stripped = name[0] == '/';
    *ret_name = result;
    return 0;
}

const char *names_strip(const char *name, unsigned count)
{
    const char *component;
    size_t n;
    while (count) {
        if (!(component = next_component(&name, &n)))
            return NULL;
        if (!is_dot(component, n))
            count--;
    }
    name += strspn(name, "/");
    return *name ? name : NULL;
}

bool names_link_inside(const char *member, const char *target)
{
    if (!*target || *target == '/')
        return false;
    size_t depth = 0, n;
    const char *component;
    while ((component = next_component(&member, &n)))
        if (!is_dot(component, n))
            depth++;
    if (depth)
        depth--;
    while ((component = next_component(&target, &n))) {
        if (is_dot(component, n))
            continue;
        if (!is_dotdot(component, n))
            depth++;
        else if (depth-- == 0)
            return false;
    }
    return true;
}

size_t names_utf8(const uint8_t *text, size_t n)
{
    if (text[0] < 0x80)
        return 1;
    /* RFC 3629: length and the range of the second byte by the first. */
    size_t length;
    uint8_t low = 0x80, high = 0xbf;
    if (text[0] >= 0xc2 && text[0] <= 0xdf) {
        length = 2;
    } else if (text[0] >= 0xe0 && text[0] <= 0xef) {
        length = 3;
        if (text[0] == 0xe0)
            low = 0xa0;
        if (text[0] == 0xed)
            high = 0x9f;
    } else if (text[0] >= 0xf0 && text[0] <= 0xf4) {
        length = 4;
        if (text[0] == 0xf0)
            low = 0x90;
        if (text[0] == 0xf4)
            high = 0x8f;
    } else {
        return 0;
    }
    if (n < length || text[1] < low || text[1] > high)
        return 0;
    for (size_t i = 2; i < length; i++)
        if ((text[i] & 0xc0) != 0x80)
            return 0;
    return length;
}

/* Whether the valid sequence of LENGTH bytes may be shown: no control character, and none that turns the direction of
 * what follows (U+061C, U+200E, U+200F, U+202A–E, U+2066–9) or breaks the line (U+2028, U+2029). */
static bool is_shown(const uint8_t *text, size_t length)
{
    if (length == 1)
        return text[0] >= 0x20 && text[0] != 0x7f && text[0] != '\\';
    if (length == 2)
        return !(text[0] == 0xc2 && text[1] < 0xa0) && !(text[0] == 0xd8 && text[1] == 0x9c);
    if (length == 3 && text[0] == 0xe2 && text[1] == 0x80)
        return !(text[2] == 0x8e || text[2] == 0x8f || (text[2] >= 0xa8 && text[2] <= 0xae));
    if (length == 3 && text[0] == 0xe2 && text[1] == 0x81)
        return !(text[2] >= 0xa6 && text[2] <= 0xa9);
    return true;
}

static char *escape_byte(char *to, uint8_t byte)
{
    static const char plain[] = "\a\b\t\n\v\f\r\\", letters[] = "abtnvfr\\";
    const char *found = byte ? strchr(plain, byte) : NULL;
    *to++ = '\\';
    if (found) {
        *to++ = letters[found - plain];
    } else {
        *to++ = (char)('0' + (byte >> 6));
        *to++ = (char)('0' + ((byte >> 3) & 7));
        *to++ = (char)('0' + (byte & 7));
    }
    return to;
}

char *names_escape_bytes(const void *bytes, size_t n)
{
    const uint8_t *text = bytes;
    char *result = malloc(4 * n + 1);
    if (!result)
        return NULL;
    char *to = result;
    for (size_t i = 0; i < n;) {
        size_t length = names_utf8(text + i, n - i);
        if (length && is_shown(text + i, length)) {
            memcpy(to, text + i, length);
            to += length;
            i += length;
            continue;
        }
        for (size_t end = i + (length ? length : 1); i < end; i++)
            to = escape_byte(to, text[i]);
    }
    *to = 0;
    return result;
}

char *names_escape(const char *name)
{
    return names_escape_bytes(name, strlen(name));
}

static size_t character(const char *text)
{
    size_t n = names_utf8((const uint8_t *)text, strnlen(text, 4));
    return n ? n : 1;
}

/* Orders two characters by their bytes, which for UTF-8 is the order of code points. */
static int order(const char *a, size_t n_a, const char *b, size_t n_b)
{
    int by_bytes = memcmp(a, b, n_a < n_b ? n_a : n_b);
    return by_bytes ? by_bytes : (n_a > n_b) - (n_a < n_b);
}

/* Matches the character at NAME against the bracket expression behind *PATTERN (at the `[`), and moves *PATTERN behind
 * it. *RET_MATCH says how it went; false if there is no closing bracket. */
static bool match_bracket(const char **pattern, const char *name, bool *ret_match)
{
    const char *p = *pattern + 1;
    bool negated = *p == '!' || *p == '^', match = false;
    size_t n_name = character(name);
    p += negated;
    for (bool first = true; first || *p != ']'; first = false) {
        if (*p == '\\' && p[1])
            p++;
        if (!*p)
            return false;
        const char *low = p, *high = p;
        size_t n_low = character(p), n_high = n_low;
        p += n_low;
        if (p[0] == '-' && p[1] && p[1] != ']') {
            p += p[1] == '\\' && p[2] ? 2 : 1;
            high = p;
            n_high = character(p);
            p += n_high;
        }
        if (order(name, n_name, low, n_low) >= 0 && order(name, n_name, high, n_high) <= 0)
            match = true;
    }
    *pattern = p + 1;
    *ret_match = match != negated;
    return true;
}

/* Matches one pattern element (no star) at *PATTERN with what is at *NAME, and moves both on. */
static bool match_one(const char **pattern, const char **name)
{
    if (!**name)
        return false;
    if (**pattern == '?') {
        *name += character(*name);
        ++*pattern;
        return true;
    }
    bool match;
    if (**pattern == '[' && match_bracket(pattern, *name, &match)) {
        *name += character(*name);
        return match;
    }
    if (**pattern == '\\' && (*pattern)[1])
        ++*pattern;
    return *(*pattern)++ == *(*name)++;
}

bool names_match(const char *pattern, const char *name)
{
    /* Only the last star needs to be tried again: an earlier one could not give it a better start. */
    const char *star = NULL, *star_name = NULL;
    while (*name || *pattern) {
        if (*pattern == '*') {
            star = ++pattern;
            star_name = name;
            continue;
        }
        if (*pattern && match_one(&pattern, &name))
            continue;
        if (!star || !*star_name)
            return false;
        pattern = star;
        name = ++star_name;
    }
    return true;
}
