/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Keyrings in memory (keyboxes or bare certificates), searched in every way; and trust databases. */
#include "fuzz_pgp.h"

#include "pgp/certificate.h"
#include "pgp/keybox.h"
#include "pgp/keyring.h"
#include "pgp/trustdb.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

/* Certificates of one keyring that are parsed: their signatures cost time. Only every eighth input, by its length, is
 * worth it: fuzz_certificate does nothing else. */
#define PARSED_MAX 2

static bool inside(const void *part, size_t part_n, const uint8_t *whole, size_t n)
{
    const uint8_t *at = part;
    return at >= whole && part_n <= n && (size_t)(at - whole) <= n - part_n;
}

static void check_blobs(const uint8_t *bytes, size_t n)
{
    size_t at = 0;
    struct keybox_blob blob;
    for (;;) {
        size_t before = at;
        gpg_error_t err = keybox_next(bytes, n, &at, &blob);
        if (err) {
            FUZZ_CHECK(gpg_err_code(err) == GPG_ERR_EOF || gpg_err_code(err) == GPG_ERR_BAD_DATA);
            break;
        }
        FUZZ_CHECK(at > before && at <= n);
        FUZZ_CHECK(inside(blob.bytes, blob.n, bytes, n));
        FUZZ_CHECK(inside(blob.certificate, blob.certificate_n, blob.bytes, blob.n));
    }
}

static void search(const struct keyring *keyring, const struct key_spec *spec, unsigned parses)
{
    size_t position = 0, n;
    const uint8_t *bytes;
    struct failure failure;
    failure_init(&failure);
    for (;;) {
        size_t before = position;
        gpg_error_t err = keyring_next(&failure, keyring, spec, &position, &bytes, &n);
        if (err)
            break;
        FUZZ_CHECK(position > before);
        if (parses) {
            struct certificate *certificate = NULL;
            size_t used;
            parses--;
            if (!certificate_parse(&failure, bytes, n, &certificate, &used))
                FUZZ_CHECK(used <= n);
            certificate_free(certificate);
        }
    }
    failure_destroy(&failure);
}

static void check_keyring(const uint8_t *bytes, size_t n)
{
    static const char *const specs[] = {"alice@example.org",
                                        "<ed25519@example.org>",
                                        "Alpha",
                                        "=ed25519 Alpha <ed25519@example.org>",
                                        "@example",
                                        "+Alpha ed25519",
                                        "0x8435BF636FFA307F",
                                        "&0123456789012345678901234567890123456789",
                                        "0x6FFA307F",
                                        "CA3B4E156864ED52371CBA128435BF636FFA307F",
                                        "8435BF636FFA307F!"};
    struct keyring *keyring = NULL;
    uint8_t *copy = malloc(n ? n : 1);
    FUZZ_CHECK(copy);
    memcpy(copy, bytes, n);
    FUZZ_CHECK(!keyring_from_memory("keyring", copy, n, &keyring));
    search(keyring, NULL, n % 8 ? 0 : PARSED_MAX);
    for (size_t i = 0; i < ARRAY_SIZE(specs); i++) {
        struct key_spec spec;
        FUZZ_CHECK(!key_spec_parse(specs[i], &spec));
        search(keyring, &spec, 0);
    }
    keyring_free(keyring);
}

/* A trust database is mapped: it goes by way of a file in memory. */
static void check_trustdb(const uint8_t *bytes, size_t n)
{
    char name[64];
    struct trustdb *trustdb = NULL;
    int fd = memfd_create("trustdb", MFD_CLOEXEC);
    FUZZ_CHECK(fd >= 0 && write(fd, bytes, n) == (ssize_t)n);
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    if (!trustdb_open(NULL, name, &trustdb)) {
        bool disabled;
        static const char uid[] = "ed25519 Alpha <ed25519@example.org>";
        /* The octets at the end of a record with a key are a fingerprint that is there. */
        for (size_t at = 0; at + 40 <= n && at < 40 * 64; at += 40) {
            enum trust trust = trustdb_ownertrust(trustdb, bytes + at + 2, 20, &disabled);
            FUZZ_CHECK(trust <= TRUST_ULTIMATE);
            FUZZ_CHECK(trustdb_validity(trustdb, bytes + at + 2, 20, NULL, 0) <= TRUST_ULTIMATE);
            FUZZ_CHECK(trustdb_validity(trustdb, bytes + at + 2, 20, uid, sizeof uid - 1) <= TRUST_ULTIMATE);
            FUZZ_CHECK(trustdb_ownertrust(trustdb, bytes + at, 32, NULL) <= TRUST_ULTIMATE);
        }
        trustdb_free(trustdb);
    }
    close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    fuzz_crypt_init();
    if (n && bytes[0] == 1) { /* the first octet of every trust database */
        check_trustdb(bytes, n);
        return 0;
    }
    if (keybox_is(bytes, n))
        check_blobs(bytes, n);
    check_keyring(bytes, n);
    return 0;
}
