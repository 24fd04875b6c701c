/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "attributes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>

/* The kernel's limits: XATTR_LIST_MAX and XATTR_SIZE_MAX. */
#define LIST_BYTES  (64 * 1024)
#define VALUE_BYTES (64 * 1024)
/* The kernel allocates and clears as much as it is offered: LIST_BYTES at once made an archive of 62 000 files take 1.3
 * s instead of 0.4. This much serves nearly every file. */
#define FIRST_LIST_BYTES 512

struct attributes {
    struct attributes_params params;
    bool unsupported_known;
    dev_t unsupported; /* the last file system found to have none */
    char names[LIST_BYTES + 1];
    char value[VALUE_BYTES];
};

struct attributes *attributes_new(const struct attributes_params *params)
{
    struct attributes *attributes = malloc(sizeof *attributes);
    if (!attributes)
        return NULL;
    attributes->params = *params;
    attributes->unsupported_known = false;
    return attributes;
}

void attributes_free(struct attributes *attributes)
{
    free(attributes);
}

/* The path by which calls without a descriptor reach the file; NULL: out of core. The caller frees. */
static char *path_of(const struct attributes_file *file)
{
    char *path;
    if (file->leaf[0] == '/' || file->folder_fd < 0)
        return strdup(file->leaf);
    return asprintf(&path, "/proc/self/fd/%d/%s", file->folder_fd, file->leaf) < 0 ? NULL : path;
}

static ssize_t list_names(const struct attributes_file *file, const char *path, char *names)
{
    ssize_t got = -1;
    for (size_t n = FIRST_LIST_BYTES;; n = LIST_BYTES) {
        if (file->fd >= 0)
            got = flistxattr(file->fd, names, n);
        else
            got = file->follow ? listxattr(path, names, n) : llistxattr(path, names, n);
        if (got >= 0 || errno != ERANGE || n == LIST_BYTES)
            return got;
    }
}

static ssize_t get_value(const struct attributes_file *file, const char *path, const char *name, char *value)
{
    if (file->fd >= 0)
        return fgetxattr(file->fd, name, value, VALUE_BYTES);
    return file->follow ? getxattr(path, name, value, VALUE_BYTES) : lgetxattr(path, name, value, VALUE_BYTES);
}

static uint32_t get_le(const uint8_t *from, size_t n)
{
    uint32_t value = 0;
    while (n--)
        value = value << 8 | from[n];
    return value;
}

static gpg_error_t acl_entry(const uint8_t *entry, struct owners *owners, bool first, struct tar_buffer *text)
{
    /* linux/posix_acl.h */
    enum { USER_OBJ = 1, USER = 2, GROUP_OBJ = 4, GROUP = 8, MASK = 16, OTHER = 32 };
    uint32_t tag = get_le(entry, 2), bits = get_le(entry + 2, 2), id = get_le(entry + 4, 4);
    const char *kind, *name = NULL;
    switch (tag) {
    case USER_OBJ:
    case USER:
        kind = "user";
        break;
    case GROUP_OBJ:
    case GROUP:
        kind = "group";
        break;
    case MASK:
        kind = "mask";
        break;
    case OTHER:
        kind = "other";
        break;
    default:
        return gpg_error(GPG_ERR_INV_DATA);
    }
    char number[16] = "", extra[20] = "";
    if (tag == USER || tag == GROUP) {
        snprintf(number, sizeof number, "%u", id);
        snprintf(extra, sizeof extra, ":%u", id);
        if (owners)
            name = tag == USER ? owners_user(owners, id) : owners_group(owners, id);
    }
    char line[512];
    int n = snprintf(line, sizeof line, "%s%s:%s:%c%c%c%s", first ? "" : ",", kind, name ? name : number,
                     bits & 4 ? 'r' : '-', bits & 2 ? 'w' : '-', bits & 1 ? 'x' : '-', extra);
    if (n >= (int)sizeof line)
        return gpg_error(GPG_ERR_INV_DATA);
    return tar_buffer_add(text, line, (size_t)n);
}

gpg_error_t attributes_acl_text(const void *acl, size_t n, struct owners *owners, struct tar_buffer *text)
{
    const uint8_t *bytes = acl;
    if (n < 4 || (n - 4) % 8 || get_le(bytes, 4) != 2)
        return gpg_error(GPG_ERR_INV_DATA);
    for (size_t at = 4; at < n; at += 8) {
        gpg_error_t err = acl_entry(bytes + at, owners, at == 4, text);
        if (err)
            return err;
    }
    return 0;
}

static gpg_error_t add_acl(struct attributes *attributes, const char *key, size_t n, struct tar_buffer *records)
{
    struct tar_buffer text = {0};
    gpg_error_t err = attributes_acl_text(attributes->value, n, attributes->params.owners, &text);
    if (!err && text.n)
        err = tar_pax_add(records, key, text.bytes, text.n);
    tar_buffer_free(&text);
    return err;
}

static gpg_error_t add_xattr(struct attributes *attributes, const char *name, size_t n, struct tar_buffer *records)
{
    static const char prefix[] = "SCHILY.xattr.";
    char key[sizeof prefix + 3 * 256], *to = key + sizeof prefix - 1;
    memcpy(key, prefix, sizeof prefix - 1);
    for (; *name && to < key + sizeof key - 4; name++) {
        if (*name == '%' || *name == '=')
            to += snprintf(to, 4, "%%%02X", (unsigned)*name);
        else
            *to++ = *name;
    }
    *to = 0;
    return tar_pax_add(records, key, attributes->value, n);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The names worth storing out of the list of N bytes, sorted. NULL: out of core. The caller frees. */
static const char **sorted_names(const struct attributes *attributes, size_t n, size_t *ret_count)
{
    size_t count = 0;
    for (size_t i = 0; i < n; i++)
        count += attributes->names[i] == 0;
    const char **names = calloc(count + 1, sizeof *names);
    if (!names)
        return NULL;
    *ret_count = 0;
    for (const char *name = attributes->names; name < attributes->names + n; name += strlen(name) + 1) {
        bool acl = strncmp(name, "system.posix_acl_", 17) == 0;
        bool taken = acl ? !attributes->params.no_acls : !attributes->params.no_xattrs && strncmp(name, "system.", 7);
        if (*name && taken)
            names[(*ret_count)++] = name;
    }
    if (*ret_count > 1)
        qsort(names, *ret_count, sizeof *names, by_name);
    return names;
}

static gpg_error_t add_one(struct attributes *attributes, const struct attributes_file *file, const char *path,
                           const char *name, struct tar_buffer *records, gpg_error_t *ret_code)
{
    ssize_t n = get_value(file, path, name, attributes->value);
    *ret_code = 0;
    if (n < 0) {
        /* Removed since it was listed: as if it had never been there. */
        if (errno != ENODATA)
            *ret_code = gpg_error_from_errno(errno);
        return 0;
    }
    gpg_error_t err;
    if (!strcmp(name, "system.posix_acl_access"))
        err = add_acl(attributes, "SCHILY.acl.access", (size_t)n, records);
    else if (!strcmp(name, "system.posix_acl_default"))
        err = add_acl(attributes, "SCHILY.acl.default", (size_t)n, records);
    else
        err = add_xattr(attributes, name, (size_t)n, records);
    if (!err || gpg_err_code(err) == GPG_ERR_ENOMEM)
        return err;
    *ret_code = err;
    return 0;
}

gpg_error_t attributes_read(struct attributes *attributes, const struct attributes_file *file,
                            struct tar_buffer *records, const char **ret_flaw, gpg_error_t *ret_code)
{
    *ret_flaw = NULL;
    *ret_code = 0;
    if (attributes->params.no_xattrs && attributes->params.no_acls)
        return 0;
    if (attributes->unsupported_known && attributes->unsupported == file->dev)
        return 0;
    gpg_error_t err = 0;
    const char **names = NULL;
    char *path = file->fd >= 0 ? NULL : path_of(file);
    if (file->fd < 0 && !path)
        return gpg_error(GPG_ERR_ENOMEM);
    ssize_t n = list_names(file, path, attributes->names);
    if (n < 0 && errno == ENOTSUP) {
        attributes->unsupported_known = true;
        attributes->unsupported = file->dev;
    } else if (n < 0) {
        *ret_flaw = "extended attributes";
        *ret_code = gpg_error_from_errno(errno);
    }
    if (n <= 0)
        goto out;
    attributes->names[n] = 0;
    size_t count;
    names = sorted_names(attributes, (size_t)n, &count);
    if (!names) {
        err = gpg_error(GPG_ERR_ENOMEM);
        goto out;
    }
    for (size_t i = 0; !err && i < count; i++) {
        gpg_error_t code;
        err = add_one(attributes, file, path, names[i], records, &code);
        if (code && !*ret_flaw) {
            *ret_flaw = names[i];
            *ret_code = code;
        }
    }
out:
    free(names);
    free(path);
    return err;
}
