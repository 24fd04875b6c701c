/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "algo.h"

#include <ctype.h>
#include <gcrypt.h>
#include <stdlib.h>
#include <string.h>

static const struct cipher_info ciphers[] = {
    {CIPHER_IDEA, "IDEA", GCRY_CIPHER_IDEA, 16, 8, true},
    {CIPHER_3DES, "3DES", GCRY_CIPHER_3DES, 24, 8, true},
    {CIPHER_CAST5, "CAST5", GCRY_CIPHER_CAST5, 16, 8, true},
    {CIPHER_BLOWFISH, "BLOWFISH", GCRY_CIPHER_BLOWFISH, 16, 8, true},
    {CIPHER_AES128, "AES", GCRY_CIPHER_AES128, 16, 16, false},
    {CIPHER_AES192, "AES192", GCRY_CIPHER_AES192, 24, 16, false},
    {CIPHER_AES256, "AES256", GCRY_CIPHER_AES256, 32, 16, false},
    {CIPHER_TWOFISH, "TWOFISH", GCRY_CIPHER_TWOFISH, 32, 16, false},
    {CIPHER_CAMELLIA128, "CAMELLIA128", GCRY_CIPHER_CAMELLIA128, 16, 16, false},
    {CIPHER_CAMELLIA192, "CAMELLIA192", GCRY_CIPHER_CAMELLIA192, 24, 16, false},
    {CIPHER_CAMELLIA256, "CAMELLIA256", GCRY_CIPHER_CAMELLIA256, 32, 16, false},
};

static const struct digest_info digests[] = {
    {DIGEST_MD5, "MD5", GCRY_MD_MD5, 16, 0, true},
    {DIGEST_SHA1, "SHA1", GCRY_MD_SHA1, 20, 0, true},
    {DIGEST_RMD160, "RIPEMD160", GCRY_MD_RMD160, 20, 0, true},
    {DIGEST_SHA256, "SHA256", GCRY_MD_SHA256, 32, 16, false},
    {DIGEST_SHA384, "SHA384", GCRY_MD_SHA384, 48, 24, false},
    {DIGEST_SHA512, "SHA512", GCRY_MD_SHA512, 64, 32, false},
    {DIGEST_SHA224, "SHA224", GCRY_MD_SHA224, 28, 16, false},
    {DIGEST_SHA3_256, "SHA3-256", GCRY_MD_SHA3_256, 32, 16, false},
    {DIGEST_SHA3_512, "SHA3-512", GCRY_MD_SHA3_512, 64, 32, false},
};

static const struct aead_info aeads[] = {
    {AEAD_EAX, "EAX", GCRY_CIPHER_MODE_EAX, 16},
    {AEAD_OCB, "OCB", GCRY_CIPHER_MODE_OCB, 15},
    {AEAD_GCM, "GCM", GCRY_CIPHER_MODE_GCM, 12},
};

/* A number with a name. */
struct named {
    unsigned id;
    const char *name;
};

static const struct named pubkeys[] = {
    {PUBKEY_RSA, "RSA"},         {PUBKEY_RSA_ENCRYPT, "RSA"}, {PUBKEY_RSA_SIGN, "RSA"},
    {PUBKEY_KYBER, "Kyber"},     {PUBKEY_ELGAMAL, "Elgamal"}, {PUBKEY_DSA, "DSA"},
    {PUBKEY_ECDH, "ECDH"},       {PUBKEY_ECDSA, "ECDSA"},     {PUBKEY_ELGAMAL_SIGN, "Elgamal (sign and encrypt)"},
    {PUBKEY_EDDSA, "EdDSA"},     {PUBKEY_X25519, "X25519"},   {PUBKEY_X448, "X448"},
    {PUBKEY_ED25519, "Ed25519"}, {PUBKEY_ED448, "Ed448"},
};

static const struct named compressions[] = {
    {COMPRESS_NONE, "Uncompressed"},
    {COMPRESS_ZIP, "ZIP"},
    {COMPRESS_ZLIB, "ZLIB"},
    {COMPRESS_BZIP2, "BZIP2"},
};

/* Other spellings. */
static const struct named cipher_aliases[] = {{CIPHER_AES128, "AES128"}, {CIPHER_3DES, "TRIPLEDES"}};
static const struct named digest_aliases[] = {{DIGEST_RMD160, "RMD160"}};
static const struct named compress_aliases[] = {
    {COMPRESS_NONE, "NONE"}, {COMPRESS_ZIP, "DEFLATE"}, {COMPRESS_BZIP2, "BZ2"}, {COMPRESS_BZIP2, "BZIP"}};

static const struct cipher_info *cipher_entry(unsigned id)
{
    for (size_t i = 0; i < ARRAY_SIZE(ciphers); i++)
        if (ciphers[i].id == id)
            return &ciphers[i];
    return NULL;
}

static const struct digest_info *digest_entry(unsigned id)
{
    for (size_t i = 0; i < ARRAY_SIZE(digests); i++)
        if (digests[i].id == id)
            return &digests[i];
    return NULL;
}

static const char *named_find(const struct named *table, size_t n, unsigned id)
{
    for (size_t i = 0; i < n; i++)
        if (table[i].id == id)
            return table[i].name;
    return NULL;
}

const struct cipher_info *algo_cipher(unsigned id)
{
    const struct cipher_info *info = cipher_entry(id);
    return info && !gcry_cipher_test_algo(info->gcry) ? info : NULL;
}

const struct digest_info *algo_digest(unsigned id)
{
    const struct digest_info *info = digest_entry(id);
    return info && !gcry_md_test_algo(info->gcry) ? info : NULL;
}

const struct aead_info *algo_aead(unsigned id)
{
    for (size_t i = 0; i < ARRAY_SIZE(aeads); i++)
        if (aeads[i].id == id)
            return &aeads[i];
    return NULL;
}

/* Whether A and B are the same but for case and hyphens: "sha-3-256" is "SHA3-256". */
static bool same_name(const char *a, const char *b)
{
    for (;; a++, b++) {
        while (*a == '-')
            a++;
        while (*b == '-')
            b++;
        if (toupper((unsigned char)*a) != toupper((unsigned char)*b))
            return false;
        if (!*a)
            return true;
    }
}

/* The number in a name such as "S9" (LETTER in any case, then digits), -1 for anything else. */
static int lettered_number(const char *name, char letter)
{
    if (toupper((unsigned char)name[0]) != letter || !isdigit((unsigned char)name[1]) || strlen(name) > 4)
        return -1;
    char *end;
    long number = strtol(name + 1, &end, 10);
    return *end ? -1 : (int)number;
}

static int alias_find(const struct named *table, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (same_name(table[i].name, name))
            return (int)table[i].id;
    return -1;
}

enum cipher_algo algo_cipher_by_name(const char *name)
{
    int number = lettered_number(name, 'S');
    if (number < 0)
        number = alias_find(cipher_aliases, ARRAY_SIZE(cipher_aliases), name);
    for (size_t i = 0; number < 0 && i < ARRAY_SIZE(ciphers); i++)
        if (same_name(ciphers[i].name, name))
            number = (int)ciphers[i].id;
    return number > 0 && algo_cipher((unsigned)number) ? (enum cipher_algo)number : CIPHER_NONE;
}

enum digest_algo algo_digest_by_name(const char *name)
{
    int number = lettered_number(name, 'H');
    if (number < 0)
        number = alias_find(digest_aliases, ARRAY_SIZE(digest_aliases), name);
    for (size_t i = 0; number < 0 && i < ARRAY_SIZE(digests); i++)
        if (same_name(digests[i].name, name))
            number = (int)digests[i].id;
    return number > 0 && algo_digest((unsigned)number) ? (enum digest_algo)number : (enum digest_algo)0;
}

enum aead_algo algo_aead_by_name(const char *name)
{
    int number = lettered_number(name, 'A');
    for (size_t i = 0; number < 0 && i < ARRAY_SIZE(aeads); i++)
        if (same_name(aeads[i].name, name))
            number = (int)aeads[i].id;
    return number > 0 && algo_aead((unsigned)number) ? (enum aead_algo)number : AEAD_NONE;
}

int algo_compress_by_name(const char *name)
{
    int number = lettered_number(name, 'Z');
    if (number < 0)
        number = alias_find(compress_aliases, ARRAY_SIZE(compress_aliases), name);
    if (number < 0)
        number = alias_find(compressions, ARRAY_SIZE(compressions), name);
    return number >= 0 && algo_compress_name((unsigned)number) ? number : -1;
}

const char *algo_pubkey_name(unsigned id)
{
    return named_find(pubkeys, ARRAY_SIZE(pubkeys), id);
}

const char *algo_cipher_name(unsigned id)
{
    const struct cipher_info *info = cipher_entry(id);
    return info ? info->name : NULL;
}

const char *algo_digest_name(unsigned id)
{
    const struct digest_info *info = digest_entry(id);
    return info ? info->name : NULL;
}

const char *algo_compress_name(unsigned id)
{
    return named_find(compressions, ARRAY_SIZE(compressions), id);
}

const char *algo_aead_name(unsigned id)
{
    const struct aead_info *info = algo_aead(id);
    return info ? info->name : NULL;
}
