/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "keyring.h"

#include "stream/fd.h"

#include "armor.h"
#include "certificate.h"
#include "framing.h"
#include "keybox.h"
#include "packet_view.h"
#include "secret.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct keyring {
    char *name;
    uint8_t *bytes; /* NULL where N is 0 */
    size_t n;
    bool mapped; /* else from malloc */
    bool is_keybox;
};

void keyring_free(struct keyring *keyring)
{
    if (!keyring)
        return;
    if (keyring->mapped)
        munmap(keyring->bytes, keyring->n);
    else if (keyring->bytes)
        bytes_wipe(keyring->bytes, keyring->n);
    if (!keyring->mapped)
        free(keyring->bytes);
    free(keyring->name);
    free(keyring);
}

static struct keyring *keyring_new(const char *name)
{
    struct keyring *keyring = calloc(1, sizeof *keyring);
    if (keyring && !(keyring->name = strdup(name))) {
        free(keyring);
        return NULL;
    }
    return keyring;
}

gpg_error_t keyring_from_memory(const char *name, uint8_t *takes_bytes, size_t n, struct keyring **ret)
{
    struct keyring *keyring = keyring_new(name);
    if (!keyring) {
        gpg_error_t err = gpg_error_from_syserror();
        if (takes_bytes)
            bytes_wipe(takes_bytes, n);
        free(takes_bytes);
        return err;
    }
    keyring->bytes = takes_bytes;
    keyring->n = n;
    keyring->is_keybox = keybox_is(takes_bytes, n);
    *ret = keyring;
    return 0;
}

/* Reads all of SOURCE; memory grows by doubling. */
static gpg_error_t read_all(struct source *source, uint8_t **ret_bytes, size_t *ret_n)
{
    size_t n = 0, room = 64 * 1024;
    uint8_t *bytes = malloc(room);
    gpg_error_t err = bytes ? 0 : gpg_error_from_syserror();
    while (!err) {
        size_t got = 0;
        err = source_read(source, bytes + n, room - n, &got);
        n += got;
        if (err || n < room)
            break;
        uint8_t *grown = room < KEYRING_ARMORED_MAX ? malloc(2 * room) : NULL;
        if (!grown) {
            err = room < KEYRING_ARMORED_MAX ? gpg_error_from_syserror() : gpg_error(GPG_ERR_TOO_LARGE);
            break;
        }
        memcpy(grown, bytes, n);
        bytes_wipe(bytes, n);
        free(bytes);
        bytes = grown;
        room *= 2;
    }
    if (!err)
        err = source_finish(source);
    if (err && bytes)
        bytes_wipe(bytes, n);
    if (err) {
        free(bytes);
        return err;
    }
    *ret_bytes = bytes;
    *ret_n = n;
    return 0;
}

/* Replaces armored text by what is in it. */
static gpg_error_t keyring_dearmor(struct failure *failure, struct keyring *keyring)
{
    struct source *text = memory_source_new(keyring->bytes, keyring->n, 0);
    struct source *binary = NULL;
    uint8_t *bytes = NULL;
    size_t n = 0;
    /* Without FAILURE: its sentences would not name the file. */
    gpg_error_t err = text ? armor_source_new(NULL, text, NULL, true, &binary) : gpg_error_from_syserror();
    if (!err)
        err = read_all(binary, &bytes, &n);
    source_free(binary);
    if (gpg_err_code(err) == GPG_ERR_NO_DATA)
        return fail(failure, err, "there is no OpenPGP key in %s", keyring->name);
    if (err)
        return fail(failure, err, "the keyring %s cannot be read: %s", keyring->name, gpg_strerror(err));
    if (keyring->mapped) {
        munmap(keyring->bytes, keyring->n);
    } else {
        bytes_wipe(keyring->bytes, keyring->n);
        free(keyring->bytes);
    }
    keyring->mapped = false;
    keyring->bytes = bytes;
    keyring->n = n;
    return 0;
}

/* From a pipe, or what else cannot be mapped. */
static gpg_error_t load_stream(struct failure *failure, struct keyring *keyring, int fd)
{
    struct source *source = NULL;
    gpg_error_t err = fd_source_new(NULL, fd, keyring->name, false, 0, &source);
    if (!err)
        err = read_all(source, &keyring->bytes, &keyring->n);
    source_free(source);
    return err ? fail(failure, err, "the keyring %s cannot be read: %s", keyring->name, gpg_strerror(err)) : 0;
}

/* A regular file is mapped, anything else (a pipe) read. */
static gpg_error_t keyring_load(struct failure *failure, struct keyring *keyring, int fd)
{
    struct stat status;
    if (fstat(fd, &status))
        return fail_errno(failure, errno, "the keyring %s cannot be read", keyring->name);
    if (!S_ISREG(status.st_mode))
        return load_stream(failure, keyring, fd);
    if (status.st_size == 0)
        return 0;
    void *map = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (map == MAP_FAILED)
        return fail_errno(failure, errno, "the keyring %s cannot be read", keyring->name);
    keyring->mapped = true;
    keyring->bytes = map;
    keyring->n = (size_t)status.st_size;
    return 0;
}

gpg_error_t keyring_open(struct failure *failure, const char *file, struct keyring **ret)
{
    gpg_error_t err = 0;
    struct keyring *keyring = keyring_new(file);
    int fd = -1;
    if (!keyring) {
        err = gpg_error_from_syserror();
        goto out;
    }
    fd = open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0) {
        err = errno == ENOENT ? gpg_error(GPG_ERR_ENOENT)
                              : fail_errno(failure, errno, "the keyring %s cannot be opened", file);
        goto out;
    }
    err = keyring_load(failure, keyring, fd);
    if (err)
        goto out;
    keyring->is_keybox = keybox_is(keyring->bytes, keyring->n);
    if (keyring->n && !keyring->is_keybox && !(keyring->bytes[0] & 0x80))
        err = keyring_dearmor(failure, keyring);
out:
    if (fd >= 0)
        close(fd);
    if (err)
        keyring_free(keyring);
    else
        *ret = keyring;
    return err;
}

static bool packet_matches(const struct packet_view *packet, const struct key_spec *spec)
{
    if (!key_spec_names_key(spec))
        return packet->type == PACKET_USER_ID && key_spec_matches_uid(spec, (const char *)packet->body, packet->body_n);
    if (packet->type != PACKET_PUBLIC_KEY && packet->type != PACKET_PUBLIC_SUBKEY &&
        packet->type != PACKET_SECRET_KEY && packet->type != PACKET_SECRET_SUBKEY)
        return false;
    struct key *key = NULL;
    size_t public_n;
    if (key_parse(NULL, packet->type, packet->body, packet->body_n, &key, &public_n))
        return false;
    bool matches = key_spec_matches_key(spec, key);
    key_free(key);
    return matches;
}

/* Whether SPEC matches a packet of the certificate in N octets. *RET_FLAWED: its headers are malformed. */
static bool certificate_matches(const uint8_t *bytes, size_t n, const struct key_spec *spec, bool *ret_flawed)
{
    struct cursor cursor = cursor_over(bytes, n);
    struct packet_view packet;
    bool matches = !spec;
    while (packet_view_next(&cursor, &packet))
        matches = matches || packet_matches(&packet, spec);
    *ret_flawed = cursor.flawed;
    return matches;
}

static gpg_error_t damaged(struct failure *failure, const struct keyring *keyring, size_t at)
{
    return fail(failure, gpg_error(GPG_ERR_BAD_DATA), "the keyring %s is damaged (or no keyring) at byte %zu",
                keyring->name, at);
}

static gpg_error_t next_in_keybox(struct failure *failure, const struct keyring *keyring, const struct key_spec *spec,
                                  size_t *position, const uint8_t **ret_bytes, size_t *ret_n)
{
    struct keybox_blob blob;
    gpg_error_t err;
    do
        err = keybox_next(keyring->bytes, keyring->n, position, &blob);
    while (!err && spec && !keybox_blob_matches(&blob, spec));
    if (gpg_err_code(err) == GPG_ERR_BAD_DATA)
        return damaged(failure, keyring, *position);
    if (err)
        return err;
    *ret_bytes = blob.certificate;
    *ret_n = blob.certificate_n;
    return 0;
}

gpg_error_t keyring_next(struct failure *failure, const struct keyring *keyring, const struct key_spec *spec,
                         size_t *position, const uint8_t **ret_bytes, size_t *ret_n)
{
    if (keyring->is_keybox)
        return next_in_keybox(failure, keyring, spec, position, ret_bytes, ret_n);
    while (*position < keyring->n) {
        const uint8_t *bytes = keyring->bytes + *position;
        size_t n = certificate_span(bytes, keyring->n - *position);
        bool flawed;
        bool matches = certificate_matches(bytes, n, spec, &flawed);
        if (flawed)
            return damaged(failure, keyring, *position);
        *position += n;
        if (!matches)
            continue;
        *ret_bytes = bytes;
        *ret_n = n;
        return 0;
    }
    return gpg_error(GPG_ERR_EOF);
}
