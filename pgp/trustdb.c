/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "trustdb.h"

#include <errno.h>
#include <fcntl.h>
#include <gcrypt.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Records (big-endian): octet 0 the type, 1 reserved. Version: "gpg" at 1, version at 4. Trust: fingerprint at 2,
 * ownertrust at 22, depth at 23, least ownertrust at 24, flags at 25, number of the first validity record at 26 (0:
 * none). Validity: RIPEMD-160 of the user id at 2, validity at 22, number of the next at 23. */
#define RECORD_SIZE    40
#define RECORD_VERSION 1
#define RECORD_TRUST   12
#define RECORD_VALID   13
#define TRUSTDB_FORMAT 3

#define TRUST_MASK    0x0F
#define FLAG_DISABLED 0x80 /* in the ownertrust octet */

struct trustdb {
    uint8_t *records; /* a mapping; NULL where there are none */
    size_t n;         /* octets of it */
};

void trustdb_free(struct trustdb *trustdb)
{
    if (!trustdb)
        return;
    if (trustdb->records)
        munmap(trustdb->records, trustdb->n);
    free(trustdb);
}

static gpg_error_t trustdb_map(struct failure *failure, const char *file, struct trustdb *trustdb)
{
    gpg_error_t err = 0;
    struct stat status;
    int fd = open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0)
        return errno == ENOENT ? 0 : fail_errno(failure, errno, "the trust database %s cannot be opened", file);
    if (fstat(fd, &status)) {
        err = fail_errno(failure, errno, "the trust database %s cannot be read", file);
    } else if (!S_ISREG(status.st_mode)) {
        err = fail(failure, gpg_error(GPG_ERR_BAD_DATA), "the trust database %s is not a regular file", file);
    } else if (status.st_size > 0) {
        void *map = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (map == MAP_FAILED)
            err = fail_errno(failure, errno, "the trust database %s cannot be read", file);
        else
            *trustdb = (struct trustdb){.records = map, .n = (size_t)status.st_size};
    }
    close(fd);
    return err;
}

gpg_error_t trustdb_open(struct failure *failure, const char *file, struct trustdb **ret)
{
    struct trustdb *trustdb = calloc(1, sizeof *trustdb);
    if (!trustdb)
        return gpg_error_from_syserror();
    gpg_error_t err = trustdb_map(failure, file, trustdb);
    const uint8_t *first = trustdb->records;
    if (!err && first && (trustdb->n < RECORD_SIZE || first[0] != RECORD_VERSION || memcmp(first + 1, "gpg", 3) != 0))
        err = fail(failure, gpg_error(GPG_ERR_BAD_DATA), "%s is not a trust database", file);
    else if (!err && first && first[4] != TRUSTDB_FORMAT)
        err = fail(failure, gpg_error(GPG_ERR_BAD_DATA), "the trust database %s has version %u, %u is needed", file,
                   first[4], TRUSTDB_FORMAT);
    if (err)
        trustdb_free(trustdb);
    else
        *ret = trustdb;
    return err;
}

/* Long fingerprints as gpg stores them: their last 12 octets, then the key id, so that it stays at the end. */
static void fold_fpr(const uint8_t *fpr, size_t n, uint8_t out[20])
{
    if (n < 32) {
        memcpy(out, fpr, 20);
        return;
    }
    memcpy(out, fpr + 20, 12);
    memcpy(out + 12, fpr, 8);
}

/* Record NUMBER if it is of TYPE, else NULL. */
static const uint8_t *record_at(const struct trustdb *trustdb, uint32_t number, unsigned type)
{
    if (number >= trustdb->n / RECORD_SIZE)
        return NULL;
    const uint8_t *record = trustdb->records + (size_t)number * RECORD_SIZE;
    return record[0] == type ? record : NULL;
}

/* A pass over the records: some thousands of 40 octets, so that gpg's hash tables would save nothing. */
static const uint8_t *find_owner(const struct trustdb *trustdb, const uint8_t *fpr, size_t fpr_n)
{
    uint8_t wanted[20];
    if (!trustdb)
        return NULL;
    fold_fpr(fpr, fpr_n, wanted);
    for (uint32_t number = 1; number < trustdb->n / RECORD_SIZE; number++) {
        const uint8_t *record = record_at(trustdb, number, RECORD_TRUST);
        if (record && memcmp(record + 2, wanted, sizeof wanted) == 0)
            return record;
    }
    return NULL;
}

static enum trust trust_of(uint8_t octet)
{
    octet &= TRUST_MASK;
    return octet <= TRUST_ULTIMATE ? (enum trust)octet : TRUST_UNKNOWN;
}

/* gpg lets the least ownertrust, which it sets from signatures of trust, count where the user said nothing less. */
static enum trust owner_trust(const uint8_t *record)
{
    enum trust said = trust_of(record[22]), least = trust_of(record[24]);
    return least > said ? least : said;
}

enum trust trustdb_ownertrust(const struct trustdb *trustdb, const uint8_t *fpr, size_t fpr_n, bool *ret_disabled)
{
    const uint8_t *record = find_owner(trustdb, fpr, fpr_n);
    if (ret_disabled)
        *ret_disabled = record && record[22] & FLAG_DISABLED;
    return record ? owner_trust(record) : TRUST_UNKNOWN;
}

enum trust trustdb_validity(const struct trustdb *trustdb, const uint8_t *fpr, size_t fpr_n, const char *uid,
                            size_t uid_n)
{
    const uint8_t *owner = find_owner(trustdb, fpr, fpr_n);
    enum trust best = TRUST_UNKNOWN;
    uint8_t hash[20];
    if (!owner)
        return TRUST_UNKNOWN;
    if (trust_of(owner[22]) == TRUST_ULTIMATE)
        return TRUST_ULTIMATE;
    if (uid)
        gcry_md_hash_buffer(GCRY_MD_RMD160, hash, uid, uid_n);
    uint32_t number = get_be32(owner + 26);
    /* A chain can have no more links than there are records: a ring ends too. */
    for (size_t links = trustdb->n / RECORD_SIZE; number && links; links--) {
        const uint8_t *valid = record_at(trustdb, number, RECORD_VALID);
        if (!valid)
            break;
        enum trust validity = trust_of(valid[22]);
        if (uid && memcmp(valid + 2, hash, sizeof hash) == 0)
            return validity;
        if (!uid && validity > best)
            best = validity;
        number = get_be32(valid + 23);
    }
    return best;
}
