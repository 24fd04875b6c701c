/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What no program can be faster than: one kind of work alone, on one thread, over the bytes of the files that are
 * named.
 *
 *     bench_limits cat|sha256|sha512|sha1|cfb|ocb|deflate FILE…      (- is standard input)
 *
 * It reads as the program does, in blocks of 256 KiB, and writes nothing; `cat` is the same reading without any work,
 * `deflate` is ISA-L's level 1. */
#include <errno.h>
#include <fcntl.h>
#include <gcrypt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef HAVE_ISAL
#include <isa-l/igzip_lib.h>
#endif

#define BLOCK ((size_t)256 * 1024)

struct limit {
    gcry_md_hd_t md;
    gcry_cipher_hd_t cipher;
    unsigned char *in, *out, *level;
    unsigned long long total, made;
};

typedef int (*limit_work)(struct limit *limit, size_t n);

static int work_cat(struct limit *limit, size_t n)
{
    (void)limit, (void)n;
    return 0;
}

static int work_digest(struct limit *limit, size_t n)
{
    gcry_md_write(limit->md, limit->in, n);
    return 0;
}

static int work_cipher(struct limit *limit, size_t n)
{
    return gcry_cipher_encrypt(limit->cipher, limit->out, BLOCK, limit->in, n) ? -1 : 0;
}

/* Chunks of their own, as in OpenPGP's packets: 256 KiB each. */
static int work_ocb(struct limit *limit, size_t n)
{
    static const unsigned char nonce[15];
    unsigned char tag[16];
    if (gcry_cipher_setiv(limit->cipher, nonce, sizeof nonce) || gcry_cipher_final(limit->cipher) ||
        work_cipher(limit, n) || gcry_cipher_gettag(limit->cipher, tag, sizeof tag))
        return -1;
    return 0;
}

#ifdef HAVE_ISAL
static int work_deflate(struct limit *limit, size_t n)
{
    struct isal_zstream stream;
    isal_deflate_stateless_init(&stream);
    stream.level = 1;
    stream.level_buf = limit->level;
    stream.level_buf_size = ISAL_DEF_LVL1_EXTRA_LARGE;
    stream.next_in = limit->in;
    stream.avail_in = (uint32_t)n;
    stream.next_out = limit->out;
    stream.avail_out = 2 * BLOCK;
    stream.end_of_stream = 1;
    if (isal_deflate_stateless(&stream) != COMP_OK)
        return -1;
    limit->made += stream.total_out;
    return 0;
}
#endif

#ifdef HAVE_ISAL
static int start_deflate(struct limit *limit, int parameter)
{
    (void)parameter;
    limit->level = malloc(ISAL_DEF_LVL1_EXTRA_LARGE);
    return limit->level ? 0 : -1;
}
#endif

static int start_digest(struct limit *limit, int algo)
{
    return gcry_md_open(&limit->md, algo, 0) ? -1 : 0;
}

static int start_cipher(struct limit *limit, int mode)
{
    static const unsigned char zeros[32];
    if (gcry_cipher_open(&limit->cipher, GCRY_CIPHER_AES256, mode, 0) ||
        gcry_cipher_setkey(limit->cipher, zeros, sizeof zeros))
        return -1;
    return mode == GCRY_CIPHER_MODE_CFB && gcry_cipher_setiv(limit->cipher, zeros, 16) ? -1 : 0;
}

static int start_none(struct limit *limit, int parameter)
{
    (void)limit, (void)parameter;
    return 0;
}

static const struct limit_kind {
    const char *name;
    int (*start)(struct limit *limit, int parameter);
    int parameter;
    limit_work work;
} kinds[] = {
    {"cat", start_none, 0, work_cat},
    {"sha256", start_digest, GCRY_MD_SHA256, work_digest},
    {"sha512", start_digest, GCRY_MD_SHA512, work_digest},
    {"sha1", start_digest, GCRY_MD_SHA1, work_digest},
    {"cfb", start_cipher, GCRY_CIPHER_MODE_CFB, work_cipher},
    {"ocb", start_cipher, GCRY_CIPHER_MODE_OCB, work_ocb},
#ifdef HAVE_ISAL
    {"deflate", start_deflate, 0, work_deflate},
#endif
};

/* Whole blocks, so that pipes count as files do. */
static ssize_t read_block(int fd, unsigned char *to)
{
    size_t n = 0;
    while (n < BLOCK) {
        const ssize_t got = read(fd, to + n, BLOCK - n);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -1;
        if (!got)
            break;
        n += (size_t)got;
    }
    return (ssize_t)n;
}

static int limit_file(struct limit *limit, limit_work work, const char *name)
{
    int result = -1;
    const int fd = strcmp(name, "-") ? open(name, O_RDONLY | O_CLOEXEC) : dup(STDIN_FILENO);
    if (fd < 0)
        return -1;
    for (;;) {
        const ssize_t n = read_block(fd, limit->in);
        if (n <= 0) {
            result = (int)n;
            break;
        }
        limit->total += (unsigned long long)n;
        if (work(limit, (size_t)n))
            break;
    }
    close(fd);
    return result;
}

static const struct limit_kind *find_kind(const char *name)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (!strcmp(kinds[i].name, name))
            return &kinds[i];
    return NULL;
}

int main(int argc, char **argv)
{
    struct limit limit = {.total = 0};
    int result = 1;
    const struct limit_kind *kind = argc > 2 ? find_kind(argv[1]) : NULL;
    if (!kind) {
        fprintf(stderr, "usage: bench_limits cat|sha256|sha512|sha1|cfb|ocb|deflate FILE...\n");
        return 2;
    }
    if (!gcry_check_version(NULL))
        return 1;
    gcry_control(GCRYCTL_DISABLE_SECMEM, 0);
    gcry_control(GCRYCTL_INITIALIZATION_FINISHED, 0);
    limit.in = malloc(BLOCK);
    limit.out = malloc(2 * BLOCK);
    if (!limit.in || !limit.out || kind->start(&limit, kind->parameter))
        goto out;
    for (int i = 2; i < argc; i++) {
        if (limit_file(&limit, kind->work, argv[i])) {
            fprintf(stderr, "bench_limits: %s: %s failed\n", argv[i], kind->name);
            goto out;
        }
    }
    printf("%llu bytes in, %llu bytes out\n", limit.total, limit.made);
    result = 0;
out:
    gcry_md_close(limit.md);
    gcry_cipher_close(limit.cipher);
    free(limit.in);
    free(limit.out);
    free(limit.level);
    return result;
}
