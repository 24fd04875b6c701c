/* SPDX-License-Identifier: GPL-3.0-or-later */
/* samples: keys and messages of testdata/ for the tests of this folder. */
#ifndef TESTS_PGP_SAMPLES_H
#define TESTS_PGP_SAMPLES_H

#include "pgp/armor.h"
#include "pgp/crypt_init.h"
#include "pgp/framing.h"
#include "pgp/packet_view.h"
#include "pgp/secret_key.h"
#include "pgp/signature.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SAMPLE_FILE_MAX (256 * 1024)

struct octets {
    uint8_t *bytes;
    size_t n;
};

/* An armored file of testdata/, as binary. */
static inline struct octets sample_file(const char *name)
{
    char path[512];
    char *text = malloc(SAMPLE_FILE_MAX);
    struct octets octets = {malloc(SAMPLE_FILE_MAX), 0};
    struct source *source = NULL;
    assert_non_null(text);
    assert_non_null(octets.bytes);
    snprintf(path, sizeof path, "%s/%s", TESTDATA, name);
    FILE *file = fopen(path, "rb");
    if (!file)
        fail_msg("%s cannot be opened", path);
    size_t n = fread(text, 1, SAMPLE_FILE_MAX, file);
    fclose(file);
    assert_int_equal(armor_source_new(NULL, memory_source_new(text, n, 0), NULL, false, &source), 0);
    assert_int_equal(source_read(source, octets.bytes, SAMPLE_FILE_MAX, &octets.n), 0);
    source_free(source);
    free(text);
    return octets;
}

static inline struct octets from_hex(const char *hex)
{
    struct octets octets = {malloc(strlen(hex) / 2 + 1), 0};
    assert_non_null(octets.bytes);
    for (const char *at = hex; *at;) {
        unsigned value;
        if (*at == ' ') {
            at++;
            continue;
        }
        assert_int_equal(sscanf(at, "%2x", &value), 1);
        octets.bytes[octets.n++] = (uint8_t)value;
        at += 2;
    }
    return octets;
}

/* A line of testdata/samples/keys.tsv. */
struct sample {
    char name[32];
    char passphrase[64]; /* "" for none */
    char fprs[512];      /* primary, then subkeys, each after a comma */
    unsigned version;
};

/* Calls EACH for every line; the number of them. */
static inline unsigned samples(void (*each)(const struct sample *sample))
{
    unsigned count = 0;
    char line[4096];
    FILE *file = fopen(TESTDATA "/samples/keys.tsv", "r");
    assert_non_null(file);
    assert_non_null(fgets(line, sizeof line, file));
    while (fgets(line, sizeof line, file)) {
        struct sample sample;
        char *rest = line;
        char *field[6];
        for (unsigned i = 0; i < ARRAY_SIZE(field); i++)
            assert_non_null(field[i] = strsep(&rest, "\t"));
        snprintf(sample.name, sizeof sample.name, "%s", field[0]);
        sample.version = (unsigned)field[1][1] - '0';
        snprintf(sample.passphrase, sizeof sample.passphrase, "%s", strcmp(field[2], "-") ? field[2] : "");
        snprintf(sample.fprs, sizeof sample.fprs, "%s,%s", field[3], field[4]);
        each(&sample);
        count++;
    }
    fclose(file);
    return count;
}

/* Number NUMBER of the packets of TYPE in BYTES, or of any type for 0. */
static inline bool nth_packet(struct octets octets, unsigned type, unsigned number, struct packet_view *ret)
{
    struct cursor cursor = cursor_over(octets.bytes, octets.n);
    while (packet_view_next(&cursor, ret))
        if ((type == 0 || ret->type == type) && number-- == 0)
            return true;
    assert_false(cursor.flawed);
    return false;
}

/* A passphrase source that always says CONTEXT, a string. */
static inline gpg_error_t says(void *context, const struct key *key, unsigned attempt, bool is_new, struct secret **ret)
{
    (void)key;
    (void)attempt;
    (void)is_new;
    *ret = secret_from(context, strlen(context));
    return *ret ? 0 : gpg_error(GPG_ERR_ENOMEM);
}

/* Secret key NUMBER (0: the primary) of a file of testdata/. */
static inline struct secret_key *sample_secret(const char *name, const struct passphrase_source *source,
                                               unsigned number)
{
    struct octets octets = sample_file(name);
    struct packet_view packet;
    struct secret_key *secret_key = NULL;
    assert_true(number ? nth_packet(octets, PACKET_SECRET_SUBKEY, number - 1, &packet)
                       : nth_packet(octets, PACKET_SECRET_KEY, 0, &packet));
    assert_int_equal(secret_key_parse(NULL, packet.type, packet.body, packet.body_n, source, &secret_key), 0);
    free(octets.bytes);
    return secret_key;
}

#if defined(__SANITIZE_ADDRESS__)
#define LEAKS_ARE_COUNTED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define LEAKS_ARE_COUNTED 1
#endif
#endif
#ifdef LEAKS_ARE_COUNTED
#include <sanitizer/lsan_interface.h>
#endif

static inline int crypt_setup(void **state)
{
    (void)state;
    if (crypt_init(NULL))
        return -1;
#ifdef LEAKS_ARE_COUNTED
    /* libgcrypt's random generator keeps 128 KiB for good at its first use, where the sanitizer does not find them. */
    __lsan_disable();
    gcry_free(gcry_random_bytes(1, GCRY_VERY_STRONG_RANDOM));
    __lsan_enable();
#endif
    return 0;
}

/* libgcrypt keeps the memory of its entropy source otherwise, which is reported as a leak. */
static inline int crypt_teardown(void **state)
{
    (void)state;
    gcry_control(GCRYCTL_CLOSE_RANDOM_DEVICE);
    return 0;
}

#endif
