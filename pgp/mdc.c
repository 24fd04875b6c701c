/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "mdc.h"

#include "stream/ring.h"

#include <gcrypt.h>
#include <stdlib.h>
#include <string.h>

#define SHA1_SIZE 20
/* Type octet (packet 19, new format) and length of the MDC packet; the digest covers them too. */
static const uint8_t mdc_header[MDC_SIZE - SHA1_SIZE] = {0xD3, 0x14};

/* Encrypted or decrypted at a time: small enough for the second-level cache. */
#define PIECE (64 * 1024)
/* A block on its way to another thread. */
#define HOP (256 * 1024)

static gpg_error_t cfb_open(enum cipher_algo algo, const struct secret *key, gcry_cipher_hd_t *ret)
{
    const struct cipher_info *info = algo_cipher(algo);
    if (!info)
        return gpg_error(GPG_ERR_CIPHER_ALGO);
    if (key->n != info->key_size)
        return gpg_error(GPG_ERR_INV_KEYLEN);
    gcry_cipher_hd_t cipher;
    gpg_error_t err = gcry_cipher_open(&cipher, info->gcry, GCRY_CIPHER_MODE_CFB, GCRY_CIPHER_SECURE);
    if (err)
        return err;
    err = gcry_cipher_setkey(cipher, key->bytes, key->n);
    if (!err)
        err = gcry_cipher_setiv(cipher, NULL, 0); /* zeros */
    if (err) {
        gcry_cipher_close(cipher);
        return err;
    }
    *ret = cipher;
    return 0;
}

/* --- Writing: prefix, what is written, header of the MDC packet ▸ [ring: SHA-1; CFB by one worker] ▸ below --- */

struct mdc_sink {
    struct sink sink;
    gcry_cipher_hd_t cipher; /* the worker's */
    gcry_md_hd_t sha1;       /* the observer's; after the last block the worker's */
    struct sink *blocks;
    size_t prefix_n;
    bool begun; /* the prefix has been written */
};

size_t mdc_prefix_size(enum cipher_algo cipher)
{
    const struct cipher_info *info = algo_cipher(cipher);
    return info ? info->block_size + 2u : 0;
}

static gpg_error_t mdc_begin(struct mdc_sink *self)
{
    uint8_t prefix[MDC_PREFIX_MAX];
    if (self->begun)
        return 0;
    self->begun = true;
    const size_t n = self->prefix_n;
    gcry_randomize(prefix, n - 2, GCRY_STRONG_RANDOM);
    memcpy(prefix + n - 2, prefix + n - 4, 2);
    return sink_write(self->blocks, prefix, n);
}

static gpg_error_t mdc_write(struct sink *sink, const void *bytes, size_t n)
{
    struct mdc_sink *self = CONTAINER(sink, struct mdc_sink, sink);
    gpg_error_t err = mdc_begin(self);
    return err ? err : sink_write(self->blocks, bytes, n);
}

static gpg_error_t mdc_sink_settle(struct sink *sink)
{
    return sink_settle(CONTAINER(sink, struct mdc_sink, sink)->blocks);
}

static gpg_error_t mdc_sink_finish(struct sink *sink)
{
    struct mdc_sink *self = CONTAINER(sink, struct mdc_sink, sink);
    gpg_error_t err = mdc_begin(self);
    if (!err)
        err = sink_write(self->blocks, mdc_header, sizeof mdc_header);
    return err ? err : sink_finish(self->blocks);
}

static void mdc_sink_free(struct sink *sink)
{
    struct mdc_sink *self = CONTAINER(sink, struct mdc_sink, sink);
    sink_free(self->blocks);
    gcry_cipher_close(self->cipher);
    gcry_md_close(self->sha1);
    free(self);
}

static void sha1_block(void *context, const struct block *block)
{
    gcry_md_write(context, block->in, block->n_in);
}

/* The digest of all blocks stands behind the last one. */
static gpg_error_t cfb_block(void *context, unsigned worker, struct block *block)
{
    struct mdc_sink *self = context;
    (void)worker;
    if (block->last) {
        memcpy(block->out + block->n_in, gcry_md_read(self->sha1, GCRY_MD_SHA1), SHA1_SIZE);
        block->n_out += SHA1_SIZE;
    }
    return gcry_cipher_encrypt(self->cipher, block->out, block->n_out, NULL, 0);
}

static const struct sink_ops mdc_sink_ops = {
    .write = mdc_write,
    .settle = mdc_sink_settle,
    .finish = mdc_sink_finish,
    .free = mdc_sink_free,
};

gpg_error_t mdc_sink_new(struct run *run, enum cipher_algo cipher, const struct secret *key, unsigned workers,
                         const struct block_observer *observer, struct sink *takes_below, struct sink **ret)
{
    struct mdc_sink *self = calloc(1, sizeof *self);
    if (!self) {
        gpg_error_t err = gpg_error_from_syserror();
        sink_free(takes_below);
        return err;
    }
    sink_init(&self->sink, &mdc_sink_ops);
    gpg_error_t err = cfb_open(cipher, key, &self->cipher);
    if (!err)
        err = gcry_md_open(&self->sha1, GCRY_MD_SHA1, 0);
    if (err) {
        sink_free(takes_below);
        goto out;
    }
    self->prefix_n = mdc_prefix_size(cipher);
    /* CFB is serial: one worker, however many there are. */
    struct block_job job = {
        .context = self,
        .block_size = HOP,
        .out_size = HOP + SHA1_SIZE,
        .in_place = true,
        .observer = {{.context = self->sha1, .look = sha1_block}},
        .work = cfb_block,
    };
    if (observer)
        job.observer[1] = *observer;
    err = block_sink_new(run, &job, workers ? 1 : 0, takes_below, &self->blocks);
    if (err)
        goto out;
    *ret = &self->sink;
    return 0;
out:
    mdc_sink_free(&self->sink);
    return err;
}

/* --- Reading --- */

struct mdc_source {
    struct source source;
    gcry_cipher_hd_t cipher;
    gcry_md_hd_t sha1;
    struct source *body; /* borrowed */
    size_t prefix_left;  /* octets of the prefix still to be dropped */
    size_t from, to;     /* of TEXT: lent, and hashed already */
    size_t end;          /* of TEXT: decrypted; the MDC_SIZE octets before it may be the MDC */
    bool ended;          /* the body is at its end */
    uint8_t text[PIECE + MDC_SIZE];
};

/* Decrypts what BODY lends behind TEXT's end. */
static gpg_error_t mdc_fetch(struct mdc_source *self)
{
    const void *bytes;
    size_t n;
    gpg_error_t err = source_peek(self->body, &bytes, &n);
    if (err)
        return err;
    if (!n) {
        self->ended = true;
        return 0;
    }
    size_t room = sizeof self->text - self->end;
    if (n > room)
        n = room;
    err = gcry_cipher_decrypt(self->cipher, self->text + self->end, n, bytes, n);
    if (err)
        return err;
    source_consume(self->body, n);
    self->end += n;
    return 0;
}

/* Makes sure that something can be lent, from FROM to TO; both equal: the end. */
static gpg_error_t mdc_fill(struct mdc_source *self)
{
    while (self->from == self->to && !self->ended) {
        memmove(self->text, self->text + self->to, self->end - self->to);
        self->end -= self->to;
        self->from = self->to = 0;
        gpg_error_t err = mdc_fetch(self);
        if (err)
            return err;
        if (self->end <= MDC_SIZE)
            continue;
        self->to = self->end - MDC_SIZE;
        gcry_md_write(self->sha1, self->text, self->to);
        size_t drop = self->to < self->prefix_left ? self->to : self->prefix_left;
        self->from += drop;
        self->prefix_left -= drop;
    }
    return 0;
}

static gpg_error_t mdc_peek(struct source *source, const void **ret_bytes, size_t *ret_n)
{
    struct mdc_source *self = CONTAINER(source, struct mdc_source, source);
    gpg_error_t err = mdc_fill(self);
    if (err)
        return err;
    *ret_bytes = self->text + self->from;
    *ret_n = self->to - self->from;
    return 0;
}

static void mdc_consume(struct source *source, size_t n)
{
    CONTAINER(source, struct mdc_source, source)->from += n;
}

static gpg_error_t mdc_source_finish(struct source *source)
{
    struct mdc_source *self = CONTAINER(source, struct mdc_source, source);
    while (!self->ended) {
        self->from = self->to;
        gpg_error_t err = mdc_fill(self);
        if (err)
            return err;
    }
    const uint8_t *mdc = self->text + self->to;
    if (self->prefix_left || self->end - self->to != MDC_SIZE)
        return gpg_error(GPG_ERR_CHECKSUM);
    gcry_md_write(self->sha1, mdc, sizeof mdc_header);
    uint8_t expected[MDC_SIZE];
    memcpy(expected, mdc_header, sizeof mdc_header);
    memcpy(expected + sizeof mdc_header, gcry_md_read(self->sha1, GCRY_MD_SHA1), SHA1_SIZE);
    return bytes_equal_secretly(expected, mdc, MDC_SIZE) ? 0 : gpg_error(GPG_ERR_CHECKSUM);
}

static void mdc_source_free(struct source *source)
{
    struct mdc_source *self = CONTAINER(source, struct mdc_source, source);
    gcry_cipher_close(self->cipher);
    gcry_md_close(self->sha1);
    free(self);
}

static const struct source_ops mdc_source_ops = {
    .peek = mdc_peek, .consume = mdc_consume, .finish = mdc_source_finish, .free = mdc_source_free};

gpg_error_t mdc_source_new(struct run *run, enum cipher_algo cipher, const struct secret *key, unsigned workers,
                           struct source *borrows_body, struct source **ret)
{
    struct mdc_source *self = calloc(1, sizeof *self);
    gpg_error_t err = self ? cfb_open(cipher, key, &self->cipher) : gpg_error_from_syserror();
    if (!err)
        err = gcry_md_open(&self->sha1, GCRY_MD_SHA1, 0);
    if (err) {
        if (self)
            gcry_cipher_close(self->cipher);
        free(self);
        return err;
    }
    source_init(&self->source, &mdc_source_ops);
    self->body = borrows_body;
    self->prefix_left = mdc_prefix_size(cipher);
    if (!workers) {
        *ret = &self->source;
        return 0;
    }
    const struct block_job hop = {.block_size = HOP};
    return block_source_new(run, &hop, 1, &self->source, ret);
}

bool mdc_quick_check(enum cipher_algo algo, const struct secret *key, const uint8_t *head, size_t n)
{
    gcry_cipher_hd_t cipher;
    uint8_t prefix[MDC_PREFIX_MAX];
    if (cfb_open(algo, key, &cipher))
        return false;
    size_t block_size = algo_cipher(algo)->block_size;
    bool fits = n >= block_size + 2 && !gcry_cipher_decrypt(cipher, prefix, block_size + 2, head, block_size + 2) &&
                bytes_equal_secretly(prefix + block_size - 2, prefix + block_size, 2);
    gcry_cipher_close(cipher);
    bytes_wipe(prefix, sizeof prefix);
    return fits;
}

/* --- Packet 9 --- */

struct sed_source {
    struct source source;
    gcry_cipher_hd_t cipher;
    struct source *body; /* borrowed */
    size_t block_size;
    bool begun; /* the prefix has been read */
    size_t from, end;
    uint8_t text[PIECE];
};

/* Drops the prefix; the last block of its ciphertext is the IV of the rest (RFC 9580 5.7). */
static gpg_error_t sed_begin(struct sed_source *self)
{
    uint8_t prefix[MDC_PREFIX_MAX];
    size_t n = self->block_size + 2, got;
    if (self->begun)
        return 0;
    self->begun = true;
    gpg_error_t err = source_read(self->body, prefix, n, &got);
    if (!err && got < n)
        err = gpg_error(GPG_ERR_TRUNCATED);
    return err ? err : gcry_cipher_setiv(self->cipher, prefix + 2, self->block_size);
}

static gpg_error_t sed_peek(struct source *source, const void **ret_bytes, size_t *ret_n)
{
    struct sed_source *self = CONTAINER(source, struct sed_source, source);
    gpg_error_t err = sed_begin(self);
    if (!err && self->from == self->end) {
        const void *bytes;
        size_t n;
        err = source_peek(self->body, &bytes, &n);
        if (!err && n > PIECE)
            n = PIECE;
        if (!err && n)
            err = gcry_cipher_decrypt(self->cipher, self->text, n, bytes, n);
        if (!err) {
            source_consume(self->body, n);
            self->from = 0;
            self->end = n;
        }
    }
    *ret_bytes = self->text + self->from;
    *ret_n = self->end - self->from;
    return err;
}

static void sed_consume(struct source *source, size_t n)
{
    CONTAINER(source, struct sed_source, source)->from += n;
}

static void sed_free(struct source *source)
{
    struct sed_source *self = CONTAINER(source, struct sed_source, source);
    gcry_cipher_close(self->cipher);
    free(self);
}

static const struct source_ops sed_source_ops = {
    .peek = sed_peek, .consume = sed_consume, .finish = source_drain, .free = sed_free};

gpg_error_t sed_source_new(enum cipher_algo cipher, const struct secret *key, struct source *borrows_body,
                           struct source **ret)
{
    struct sed_source *self = calloc(1, sizeof *self);
    gpg_error_t err = self ? cfb_open(cipher, key, &self->cipher) : gpg_error_from_syserror();
    if (err) {
        free(self);
        return err;
    }
    source_init(&self->source, &sed_source_ops);
    self->body = borrows_body;
    self->block_size = algo_cipher(cipher)->block_size;
    *ret = &self->source;
    return 0;
}
