/* SPDX-License-Identifier: GPL-3.0-or-later */
/* keybox: GnuPG's pubring.kbx in memory: a chain of blobs, each a certificate with an index of its keys and user ids,
 * so that a search need not take certificates apart.
 *
 * Blobs (big-endian): u32 length, type (1 first blob, 2 OpenPGP, 3 X.509, 0 deleted), version, u16 flags (2:
 * ephemeral), u32 offset and u32 length of the certificate, u16 number of keys, u16 size of a key's record, the
 * records; u16 length of a serial number, it; u16 number of user ids, u16 size of a user id's record, the records (u32
 * offset, u32 length, …). A key's record is 20 octets of fingerprint and an offset in version 1; 32 octets of
 * fingerprint, u16 flags (0x80: all 32 count, else the first 20), u16 reserved and perhaps 20 octets of keygrip in
 * version 2. */
#ifndef PGP_KEYBOX_H
#define PGP_KEYBOX_H

#include "key_spec.h"

struct keybox_blob {
    const uint8_t *bytes; /* the whole blob */
    size_t n;
    const uint8_t *certificate; /* its packets */
    size_t certificate_n;
};

/* Whether a file begins like a keybox; N may be small. */
bool keybox_is(const uint8_t *bytes, size_t n);

/* The next OpenPGP blob from octet *AT of a keybox on; *AT goes behind it. Passes over deleted and ephemeral blobs,
 * those with X.509 certificates and unknown types. GPG_ERR_EOF at the end, GPG_ERR_BAD_DATA where a blob does not keep
 * to its own lengths (*AT stays there): no sentences. */
MUST_CHECK gpg_error_t keybox_next(const uint8_t *bytes, size_t n, size_t *at, struct keybox_blob *ret);

/* Whether the index says that SPEC matches; true where the index does not tell (keygrips in old blobs). The index is a
 * hint: what is found is compared again with the certificate itself. */
bool keybox_blob_matches(const struct keybox_blob *blob, const struct key_spec *spec);

#endif
