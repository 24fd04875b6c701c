/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "libarchive.h"

#ifdef LIBARCHIVE_SONAME

#include <archive.h>
#include <archive_entry.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Everything of libarchive that the program uses: each gets a pointer, and a function of its name that calls what the
 * pointer leads to. Who calls one that is not here gets an error from the linker. */
#define FUNCTIONS(FUNCTION)                                                                                            \
    FUNCTION(archive_entry_acl_next)                                                                                   \
    FUNCTION(archive_entry_acl_reset)                                                                                  \
    FUNCTION(archive_entry_acl_types)                                                                                  \
    FUNCTION(archive_entry_filetype)                                                                                   \
    FUNCTION(archive_entry_free)                                                                                       \
    FUNCTION(archive_entry_gid)                                                                                        \
    FUNCTION(archive_entry_gname)                                                                                      \
    FUNCTION(archive_entry_hardlink)                                                                                   \
    FUNCTION(archive_entry_mtime)                                                                                      \
    FUNCTION(archive_entry_mtime_is_set)                                                                               \
    FUNCTION(archive_entry_mtime_nsec)                                                                                 \
    FUNCTION(archive_entry_new)                                                                                        \
    FUNCTION(archive_entry_pathname)                                                                                   \
    FUNCTION(archive_entry_perm)                                                                                       \
    FUNCTION(archive_entry_rdev)                                                                                       \
    FUNCTION(archive_entry_set_filetype)                                                                               \
    FUNCTION(archive_entry_set_pathname)                                                                               \
    FUNCTION(archive_entry_size)                                                                                       \
    FUNCTION(archive_entry_symlink)                                                                                    \
    FUNCTION(archive_entry_uid)                                                                                        \
    FUNCTION(archive_entry_uname)                                                                                      \
    FUNCTION(archive_entry_xattr_count)                                                                                \
    FUNCTION(archive_entry_xattr_next)                                                                                 \
    FUNCTION(archive_entry_xattr_reset)                                                                                \
    FUNCTION(archive_errno)                                                                                            \
    FUNCTION(archive_error_string)                                                                                     \
    FUNCTION(archive_filter_bytes)                                                                                     \
    FUNCTION(archive_read_data_block)                                                                                  \
    FUNCTION(archive_read_free)                                                                                        \
    FUNCTION(archive_read_header_position)                                                                             \
    FUNCTION(archive_read_new)                                                                                         \
    FUNCTION(archive_read_next_header)                                                                                 \
    FUNCTION(archive_read_open1)                                                                                       \
    FUNCTION(archive_read_set_callback_data)                                                                           \
    FUNCTION(archive_read_set_read_callback)                                                                           \
    FUNCTION(archive_read_set_skip_callback)                                                                           \
    FUNCTION(archive_read_support_filter_bzip2)                                                                        \
    FUNCTION(archive_read_support_filter_gzip)                                                                         \
    FUNCTION(archive_read_support_filter_xz)                                                                           \
    FUNCTION(archive_read_support_filter_zstd)                                                                         \
    FUNCTION(archive_read_support_format_empty)                                                                        \
    FUNCTION(archive_read_support_format_raw)                                                                          \
    FUNCTION(archive_read_support_format_tar)                                                                          \
    FUNCTION(archive_version_details)                                                                                  \
    FUNCTION(archive_write_add_filter_zstd)                                                                            \
    FUNCTION(archive_write_close)                                                                                      \
    FUNCTION(archive_write_data)                                                                                       \
    FUNCTION(archive_write_free)                                                                                       \
    FUNCTION(archive_write_header)                                                                                     \
    FUNCTION(archive_write_new)                                                                                        \
    FUNCTION(archive_write_open2)                                                                                      \
    FUNCTION(archive_write_set_bytes_per_block)                                                                        \
    FUNCTION(archive_write_set_filter_option)                                                                          \
    FUNCTION(archive_write_set_format_raw)                                                                             \
    FUNCTION(archive_set_error)

static struct {
#define POINTER(NAME) __typeof__(NAME) *NAME;
    FUNCTIONS(POINTER)
} libarchive;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool loaded;
static char why[256];

/* Once a process, as the program's other libraries are: what was loaded stays. */
static void load(void)
{
    static const struct {
        const char *name;
        void *pointer;
    } symbols[] = {
#define SYMBOL(NAME) {#NAME, &libarchive.NAME},
        FUNCTIONS(SYMBOL)};
    void *library = dlopen(LIBARCHIVE_SONAME, RTLD_NOW | RTLD_LOCAL);
    loaded = library != NULL;
    for (size_t i = 0; loaded && i < sizeof symbols / sizeof *symbols; i++) {
        void *symbol = dlsym(library, symbols[i].name);
        memcpy(symbols[i].pointer, &symbol, sizeof symbol);
        loaded = symbol != NULL;
    }
    if (!loaded) {
        const char *words = dlerror();
        snprintf(why, sizeof why, "%s", words ? words : "a function is missing");
    }
}

gpg_error_t libarchive_load(struct failure *failure)
{
    pthread_once(&once, load);
    return loaded ? 0 : fail(failure, gpg_error(GPG_ERR_NOT_FOUND), "libarchive cannot be loaded: %s", why);
}

int archive_entry_acl_next(struct archive_entry *entry, int want, int *type, int *permset, int *tag, int *qual,
                           const char **name)
{
    return libarchive.archive_entry_acl_next(entry, want, type, permset, tag, qual, name);
}

int archive_entry_acl_reset(struct archive_entry *entry, int want)
{
    return libarchive.archive_entry_acl_reset(entry, want);
}

int archive_entry_acl_types(struct archive_entry *entry)
{
    return libarchive.archive_entry_acl_types(entry);
}

mode_t archive_entry_filetype(struct archive_entry *entry)
{
    return libarchive.archive_entry_filetype(entry);
}

void archive_entry_free(struct archive_entry *entry)
{
    libarchive.archive_entry_free(entry);
}

la_int64_t archive_entry_gid(struct archive_entry *entry)
{
    return libarchive.archive_entry_gid(entry);
}

const char *archive_entry_gname(struct archive_entry *entry)
{
    return libarchive.archive_entry_gname(entry);
}

const char *archive_entry_hardlink(struct archive_entry *entry)
{
    return libarchive.archive_entry_hardlink(entry);
}

time_t archive_entry_mtime(struct archive_entry *entry)
{
    return libarchive.archive_entry_mtime(entry);
}

int archive_entry_mtime_is_set(struct archive_entry *entry)
{
    return libarchive.archive_entry_mtime_is_set(entry);
}

long archive_entry_mtime_nsec(struct archive_entry *entry)
{
    return libarchive.archive_entry_mtime_nsec(entry);
}

struct archive_entry *archive_entry_new(void)
{
    return libarchive.archive_entry_new();
}

const char *archive_entry_pathname(struct archive_entry *entry)
{
    return libarchive.archive_entry_pathname(entry);
}

mode_t archive_entry_perm(struct archive_entry *entry)
{
    return libarchive.archive_entry_perm(entry);
}

dev_t archive_entry_rdev(struct archive_entry *entry)
{
    return libarchive.archive_entry_rdev(entry);
}

void archive_entry_set_filetype(struct archive_entry *entry, unsigned type)
{
    libarchive.archive_entry_set_filetype(entry, type);
}

void archive_entry_set_pathname(struct archive_entry *entry, const char *name)
{
    libarchive.archive_entry_set_pathname(entry, name);
}

la_int64_t archive_entry_size(struct archive_entry *entry)
{
    return libarchive.archive_entry_size(entry);
}

const char *archive_entry_symlink(struct archive_entry *entry)
{
    return libarchive.archive_entry_symlink(entry);
}

la_int64_t archive_entry_uid(struct archive_entry *entry)
{
    return libarchive.archive_entry_uid(entry);
}

const char *archive_entry_uname(struct archive_entry *entry)
{
    return libarchive.archive_entry_uname(entry);
}

int archive_entry_xattr_count(struct archive_entry *entry)
{
    return libarchive.archive_entry_xattr_count(entry);
}

int archive_entry_xattr_next(struct archive_entry *entry, const char **name, const void **value, size_t *n)
{
    return libarchive.archive_entry_xattr_next(entry, name, value, n);
}

int archive_entry_xattr_reset(struct archive_entry *entry)
{
    return libarchive.archive_entry_xattr_reset(entry);
}

int archive_errno(struct archive *archive)
{
    return libarchive.archive_errno(archive);
}

const char *archive_error_string(struct archive *archive)
{
    return libarchive.archive_error_string(archive);
}

la_int64_t archive_filter_bytes(struct archive *archive, int filter)
{
    return libarchive.archive_filter_bytes(archive, filter);
}

int archive_read_data_block(struct archive *archive, const void **bytes, size_t *n, la_int64_t *offset)
{
    return libarchive.archive_read_data_block(archive, bytes, n, offset);
}

int archive_read_free(struct archive *archive)
{
    return libarchive.archive_read_free(archive);
}

la_int64_t archive_read_header_position(struct archive *archive)
{
    return libarchive.archive_read_header_position(archive);
}

struct archive *archive_read_new(void)
{
    return libarchive.archive_read_new();
}

int archive_read_next_header(struct archive *archive, struct archive_entry **entry)
{
    return libarchive.archive_read_next_header(archive, entry);
}

int archive_read_open1(struct archive *archive)
{
    return libarchive.archive_read_open1(archive);
}

int archive_read_set_callback_data(struct archive *archive, void *context)
{
    return libarchive.archive_read_set_callback_data(archive, context);
}

int archive_read_set_read_callback(struct archive *archive, archive_read_callback *callback)
{
    return libarchive.archive_read_set_read_callback(archive, callback);
}

int archive_read_set_skip_callback(struct archive *archive, archive_skip_callback *callback)
{
    return libarchive.archive_read_set_skip_callback(archive, callback);
}

int archive_read_support_filter_bzip2(struct archive *archive)
{
    return libarchive.archive_read_support_filter_bzip2(archive);
}

int archive_read_support_filter_gzip(struct archive *archive)
{
    return libarchive.archive_read_support_filter_gzip(archive);
}

int archive_read_support_filter_xz(struct archive *archive)
{
    return libarchive.archive_read_support_filter_xz(archive);
}

int archive_read_support_filter_zstd(struct archive *archive)
{
    return libarchive.archive_read_support_filter_zstd(archive);
}

int archive_read_support_format_empty(struct archive *archive)
{
    return libarchive.archive_read_support_format_empty(archive);
}

int archive_read_support_format_raw(struct archive *archive)
{
    return libarchive.archive_read_support_format_raw(archive);
}

int archive_read_support_format_tar(struct archive *archive)
{
    return libarchive.archive_read_support_format_tar(archive);
}

const char *archive_version_details(void)
{
    return libarchive.archive_version_details();
}

int archive_write_add_filter_zstd(struct archive *archive)
{
    return libarchive.archive_write_add_filter_zstd(archive);
}

int archive_write_close(struct archive *archive)
{
    return libarchive.archive_write_close(archive);
}

la_ssize_t archive_write_data(struct archive *archive, const void *bytes, size_t n)
{
    return libarchive.archive_write_data(archive, bytes, n);
}

int archive_write_free(struct archive *archive)
{
    return libarchive.archive_write_free(archive);
}

int archive_write_header(struct archive *archive, struct archive_entry *entry)
{
    return libarchive.archive_write_header(archive, entry);
}

struct archive *archive_write_new(void)
{
    return libarchive.archive_write_new();
}

int archive_write_open2(struct archive *archive, void *context, archive_open_callback *open,
                        archive_write_callback *write, archive_close_callback *close, archive_free_callback *release)
{
    return libarchive.archive_write_open2(archive, context, open, write, close, release);
}

int archive_write_set_bytes_per_block(struct archive *archive, int n)
{
    return libarchive.archive_write_set_bytes_per_block(archive, n);
}

int archive_write_set_filter_option(struct archive *archive, const char *filter, const char *option, const char *value)
{
    return libarchive.archive_write_set_filter_option(archive, filter, option, value);
}

int archive_write_set_format_raw(struct archive *archive)
{
    return libarchive.archive_write_set_format_raw(archive);
}

void archive_set_error(struct archive *archive, int number, const char *format, ...)
{
    char words[256];
    va_list args;
    va_start(args, format);
    vsnprintf(words, sizeof words, format, args);
    va_end(args);
    libarchive.archive_set_error(archive, number, "%s", words);
}

#else

gpg_error_t libarchive_load(struct failure *failure)
{
    (void)failure;
    return 0;
}

#endif
