/* SPDX-License-Identifier: GPL-3.0-or-later */
/* names: pure policy on names as byte strings. No disk, no locale: a name is any bytes but NUL. */
#ifndef ARCHIVE_NAMES_H
#define ARCHIVE_NAMES_H

#include "stream/bytes.h"

#include <gpg-error.h>
#include <stdbool.h>

/* Longest member name that extraction takes and creation gives, in bytes without NUL; Linux's PATH_MAX is 4096, names
 * relative to a descriptor may be put together longer, up to this. */
#define NAMES_MAX 65535
/* Longest single component (Linux NAME_MAX). */
#define NAMES_COMPONENT_MAX 255

/* The path of a file as the disk is to be asked for it: `//`, `/./`, leading `./` and trailing `/` and `/.` are taken
 * off, a leading `/` and every `..` stay. "." for the folder itself. GPG_ERR_INV_NAME for "" and for names longer than
 * NAMES_MAX. The caller frees. */
MUST_CHECK gpg_error_t names_disk(const char *given, char **ret_path);

/* Where in PATH (a result of names_disk, or such a path with components appended) the member name starts: behind a
 * leading `/` and behind the last `..` component, as GNU tar does, so `a/../b` is stored as `b`. "." if nothing is
 * left: `/`, `..`, `d/..` store the folder's content without a folder above it. */
const char *names_member(const char *path);

/* What is wrong with a member name found in an archive. An absolute name is sound once its root is stripped. */
enum names_flaw {
    NAMES_SOUND,
    NAMES_EMPTY,
    NAMES_DOTDOT,   /* a `..` component */
    NAMES_TOO_LONG, /* NAMES_MAX, or a component over NAMES_COMPONENT_MAX */
    NAMES_NOTHING,  /* only `/` and `.`: the target folder itself; sound for a folder, a flaw for anything else */
};
/* Judges NAME after a leading `/` is stripped. Control characters are ordinary. */
enum names_flaw names_check(const char *name);
/* A few words for a notice; never NULL. */
const char *names_flaw_text(enum names_flaw flaw);

/* NAME in the form in which it is made on disk: root stripped, `//`, `./` and trailing `/` taken off. Only for names
 * that names_check finds sound ("." for NAMES_NOTHING). *RET_STRIPPED (may be NULL): a leading `/` was there. The
 * caller frees. */
MUST_CHECK gpg_error_t names_extracted(const char *name, char **ret_name, bool *ret_stripped);

/* NAME less its first COUNT components; NULL where nothing is left. Points into NAME. */
const char *names_strip(const char *name, unsigned count);

/* Whether a symlink at MEMBER (a sound name) to TARGET stays inside the extraction folder, judged on the text alone:
 * relative, and never above the folder at any point on its way. */
bool names_link_inside(const char *member, const char *target);

/* NAME with control bytes, DEL, backslash, bytes that are not valid UTF-8, and C1 and bidirectional controls written as
 * \n, \t, \\, \033 and so on; valid UTF-8 stays. Whatever the locale. NULL: out of core. The caller frees. */
char *names_escape(const char *name);
/* The same on N bytes. */
char *names_escape_bytes(const void *bytes, size_t n);

/* The length of the valid UTF-8 sequence at TEXT (N bytes long, N > 0); 0 where there is none. */
size_t names_utf8(const uint8_t *text, size_t n);

/* Shell-like match of the whole of NAME: `*` (also over `/`), `?` (one UTF-8 character, or one byte that is none),
 * `[a-z]`, `[!a]`, and `\` before a character taken literally. Bytes, whatever the locale. Time: product of the
 * lengths. */
bool names_match(const char *pattern, const char *name);

#endif
