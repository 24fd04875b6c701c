/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "aead.h"

#include "framing.h"
#include "hkdf.h"

#include "stream/ring.h"

#include <gcrypt.h>
#include <stdlib.h>
#include <string.h>

#define INDEX_SIZE   8
#define CIPHER_BLOCK 16 /* octets; other ciphers are not used with AEAD */
/* 0xD4 or 0xD2, version, cipher, AEAD, chunk octet; and for packet 20 the index, and in the last one the length. */
#define AD_FIXED 5
#define AD_MAX   (AD_FIXED + INDEX_SIZE + 8)

/* What the blocks on their way may take together. For blocks of 1 MiB that allows 9 workers, which seal 8 GB/s even
 * with EAX (1.1 ns/byte); for the largest, of 4 MiB, one worker, and 32 MiB all the same. */
#define AEAD_MEMORY ((size_t)24 * 1024 * 1024)

/* What both directions keep: borrowed by the block job, so it outlives the inner stage. */
struct codec {
    struct aead_params params;
    size_t nonce_size;
    size_t chunk;                /* octets of plaintext in every chunk but the last */
    size_t per_block;            /* chunks in a block */
    uint8_t prefix[AEAD_IV_MAX]; /* packet 20: the IV; SEIPD 2: the derived start of the nonces */
    gcry_cipher_hd_t *cipher;    /* one for each worker */
    unsigned ciphers;
    unsigned workers;
    bool begun;    /* a chunk was begun while its block is filled */
    size_t sealed; /* octets of it that are encrypted already */
};

struct aead_sink {
    struct sink sink;
    struct codec codec;
    struct block_job job;
    struct sink *stage;
};

struct aead_source {
    struct source source;
    struct codec codec;
    struct block_job job;
    struct source *stage;
};

static uint64_t chunk_size(uint8_t chunk_octet)
{
    return UINT64_C(1) << (chunk_octet + 6);
}

static gpg_error_t cipher_open(enum cipher_algo cipher, enum aead_algo aead, const struct secret *key,
                               gcry_cipher_hd_t *ret)
{
    const struct cipher_info *cipher_info = algo_cipher(cipher);
    const struct aead_info *aead_info = algo_aead(aead);
    if (!cipher_info || !aead_info || cipher_info->block_size != 16)
        return gpg_error(GPG_ERR_NOT_SUPPORTED);
    if (key->n != cipher_info->key_size)
        return gpg_error(GPG_ERR_INV_KEYLEN);
    gcry_cipher_hd_t handle;
    gpg_error_t err = gcry_cipher_open(&handle, cipher_info->gcry, aead_info->gcry_mode, GCRY_CIPHER_SECURE);
    if (err)
        return err;
    err = gcry_cipher_setkey(handle, key->bytes, key->n);
    if (err) {
        gcry_cipher_close(handle);
        return err;
    }
    *ret = handle;
    return 0;
}

static gpg_error_t piece_start(gcry_cipher_hd_t cipher, const uint8_t *nonce, size_t nonce_n, const void *ad,
                               size_t ad_n)
{
    gpg_error_t err = gcry_cipher_setiv(cipher, nonce, nonce_n);
    return !err && ad_n ? gcry_cipher_authenticate(cipher, ad, ad_n) : err;
}

/* TO may be FROM. All calls but the last of a piece have whole cipher blocks. */
static gpg_error_t piece_encrypt(gcry_cipher_hd_t cipher, void *to, const void *from, size_t n)
{
    return gcry_cipher_encrypt(cipher, to, n, to == from ? NULL : from, to == from ? 0 : n);
}

/* The last call for a piece; N may be 0. */
static gpg_error_t piece_seal(gcry_cipher_hd_t cipher, void *to, const void *from, size_t n, uint8_t *tag)
{
    gpg_error_t err = gcry_cipher_final(cipher);
    if (!err)
        err = piece_encrypt(cipher, to, from, n);
    return err ? err : gcry_cipher_gettag(cipher, tag, AEAD_TAG_SIZE);
}

static gpg_error_t piece_open(gcry_cipher_hd_t cipher, void *text, size_t n, const uint8_t *tag)
{
    gpg_error_t err = gcry_cipher_final(cipher);
    if (!err)
        err = gcry_cipher_decrypt(cipher, text, n, NULL, 0);
    return err ? err : gcry_cipher_checktag(cipher, tag, AEAD_TAG_SIZE);
}

gpg_error_t aead_seal(enum cipher_algo cipher, enum aead_algo aead, const struct secret *key, const uint8_t *nonce,
                      const void *ad, size_t ad_n, void *text, size_t n, uint8_t tag[AEAD_TAG_SIZE])
{
    gcry_cipher_hd_t handle;
    gpg_error_t err = cipher_open(cipher, aead, key, &handle);
    if (err)
        return err;
    err = piece_start(handle, nonce, algo_aead(aead)->nonce_size, ad, ad_n);
    if (!err)
        err = piece_seal(handle, text, text, n, tag);
    gcry_cipher_close(handle);
    return err;
}

gpg_error_t aead_open(enum cipher_algo cipher, enum aead_algo aead, const struct secret *key, const uint8_t *nonce,
                      const void *ad, size_t ad_n, void *text, size_t n, const uint8_t tag[AEAD_TAG_SIZE])
{
    gcry_cipher_hd_t handle;
    gpg_error_t err = cipher_open(cipher, aead, key, &handle);
    if (err)
        return err;
    err = piece_start(handle, nonce, algo_aead(aead)->nonce_size, ad, ad_n);
    if (!err)
        err = piece_open(handle, text, n, tag);
    if (err)
        bytes_wipe(text, n);
    gcry_cipher_close(handle);
    return err;
}

static uint8_t version_of(enum aead_kind kind)
{
    return kind == AEAD_PACKET_20 ? 1 : 2;
}

static gpg_error_t check_params(struct failure *failure, const struct aead_params *params)
{
    const struct cipher_info *cipher = algo_cipher(params->cipher);
    if (!cipher || cipher->block_size != 16)
        return fail(failure, gpg_error(GPG_ERR_NOT_SUPPORTED),
                    "the message is encrypted with cipher algorithm %u, which is not supported here", params->cipher);
    if (!algo_aead(params->aead))
        return fail(failure, gpg_error(GPG_ERR_NOT_SUPPORTED),
                    "the message is encrypted with AEAD algorithm %u, which is not supported", params->aead);
    if (params->chunk_octet > AEAD_CHUNK_BITS_MAX)
        return fail(failure, gpg_error(GPG_ERR_NOT_SUPPORTED),
                    "the message is encrypted in chunks of 2^%u octets, more than 2^%u are not supported",
                    params->chunk_octet + 6u, AEAD_CHUNK_BITS_MAX + 6u);
    return 0;
}

gpg_error_t aead_read_header(struct failure *failure, enum aead_kind kind, struct source *body, struct aead_params *ret)
{
    struct aead_params params = {.kind = kind};
    uint8_t fields[3];
    size_t got;
    gpg_error_t err = source_read(body, fields, sizeof fields, &got);
    if (!err && got < sizeof fields)
        err = fail(failure, gpg_error(GPG_ERR_TRUNCATED), "the encrypted data is cut short");
    if (err)
        return err;
    params.cipher = fields[0];
    params.aead = fields[1];
    params.chunk_octet = fields[2];
    err = check_params(failure, &params);
    if (err)
        return err;
    uint8_t *start = kind == AEAD_PACKET_20 ? params.iv : params.salt;
    size_t n = kind == AEAD_PACKET_20 ? algo_aead(params.aead)->nonce_size : AEAD_SALT_SIZE;
    err = source_read(body, start, n, &got);
    if (!err && got < n)
        err = fail(failure, gpg_error(GPG_ERR_TRUNCATED), "the encrypted data is cut short");
    if (!err)
        *ret = params;
    return err;
}

size_t aead_put_header(const struct aead_params *params, uint8_t out[AEAD_HEADER_MAX])
{
    out[0] = version_of(params->kind);
    out[1] = params->cipher;
    out[2] = params->aead;
    out[3] = params->chunk_octet;
    const struct aead_info *info = algo_aead(params->aead);
    size_t n = params->kind == AEAD_SEIPD_2 ? AEAD_SALT_SIZE : info ? info->nonce_size : 0;
    memcpy(out + 4, params->kind == AEAD_SEIPD_2 ? params->salt : params->iv, n);
    return 4 + n;
}

void aead_params_fresh(struct aead_params *params)
{
    if (params->kind == AEAD_SEIPD_2)
        gcry_create_nonce(params->salt, sizeof params->salt);
    else
        gcry_create_nonce(params->iv, sizeof params->iv);
}

/* Nonce and associated data of chunk INDEX. */
static void chunk_nonce(const struct codec *codec, uint64_t index, uint8_t nonce[AEAD_IV_MAX])
{
    uint8_t *end = nonce + codec->nonce_size - INDEX_SIZE;
    memcpy(nonce, codec->prefix, codec->nonce_size);
    if (codec->params.kind == AEAD_PACKET_20)
        index ^= get_be64(end);
    put_be64(end, index);
}

static size_t chunk_ad(const struct codec *codec, uint64_t index, uint8_t ad[AD_MAX])
{
    bool packet_20 = codec->params.kind == AEAD_PACKET_20;
    ad[0] = packet_20 ? 0xD4 : 0xD2; /* the packet's type octet in the new format */
    ad[1] = version_of(codec->params.kind);
    ad[2] = codec->params.cipher;
    ad[3] = codec->params.aead;
    ad[4] = codec->params.chunk_octet;
    if (!packet_20)
        return AD_FIXED;
    put_be64(ad + AD_FIXED, index);
    return AD_FIXED + INDEX_SIZE;
}

static gpg_error_t chunk_start(const struct codec *codec, gcry_cipher_hd_t cipher, uint64_t index)
{
    uint8_t nonce[AEAD_IV_MAX], ad[AD_MAX];
    chunk_nonce(codec, index, nonce);
    return piece_start(cipher, nonce, codec->nonce_size, ad, chunk_ad(codec, index, ad));
}

/* The last tag: over nothing, INDEX being the number of chunks, with the length of all plaintext besides. */
static gpg_error_t final_start(const struct codec *codec, gcry_cipher_hd_t cipher, uint64_t index, uint64_t total)
{
    uint8_t nonce[AEAD_IV_MAX], ad[AD_MAX];
    chunk_nonce(codec, index, nonce);
    size_t n = chunk_ad(codec, index, ad);
    put_be64(ad + n, total);
    return piece_start(cipher, nonce, codec->nonce_size, ad, n + 8);
}

static gpg_error_t seal_chunk(const struct codec *codec, gcry_cipher_hd_t cipher, uint64_t index, uint8_t *to,
                              const uint8_t *from, size_t n)
{
    gpg_error_t err = chunk_start(codec, cipher, index);
    return err ? err : piece_seal(cipher, to, from, n, to + n);
}

/* Encrypts a chunk on its way into the block, in whole cipher blocks: what is copied first and encrypted afterwards
 * goes through the caches twice. */
static gpg_error_t absorb(void *context, uint64_t index, uint8_t *in, size_t at, const uint8_t *from, size_t n)
{
    struct codec *codec = context;
    gcry_cipher_hd_t cipher = codec->cipher[0];
    gpg_error_t err = 0;
    if (!codec->begun) {
        err = chunk_start(codec, cipher, index);
        codec->begun = true;
        codec->sealed = 0;
    }
    const size_t missing = (CIPHER_BLOCK - (at - codec->sealed) % CIPHER_BLOCK) % CIPHER_BLOCK;
    const size_t head = missing < n ? missing : n;
    memcpy(in + at, from, head);
    const size_t plain = at + head - codec->sealed;
    const size_t whole = plain % CIPHER_BLOCK ? 0 : n - head - (n - head) % CIPHER_BLOCK;
    if (!err && plain && plain % CIPHER_BLOCK == 0) {
        err = piece_encrypt(cipher, in + codec->sealed, in + codec->sealed, plain);
        codec->sealed += plain;
    }
    if (!err && whole) {
        err = piece_encrypt(cipher, in + codec->sealed, from + head, whole);
        codec->sealed += whole;
    }
    memcpy(in + at + head + whole, from + head + whole, n - head - whole);
    return err;
}

/* The rest of a chunk that absorb has begun. */
static gpg_error_t seal_rest(struct codec *codec, const struct block *block)
{
    uint8_t *rest = block->out + codec->sealed;
    uint8_t *tag = block->out + block->n_in;
    codec->begun = false;
    return piece_seal(codec->cipher[0], rest, rest, block->n_in - codec->sealed, tag);
}

static gpg_error_t seal_block(void *context, unsigned worker, struct block *block)
{
    struct codec *codec = context;
    gcry_cipher_hd_t cipher = codec->cipher[worker];
    uint64_t index = block->index * codec->per_block;
    uint8_t *to = block->out;
    gpg_error_t err = 0;
    for (size_t done = 0; !err && done < block->n_in;) {
        size_t n = block->n_in - done < codec->chunk ? block->n_in - done : codec->chunk;
        if (codec->begun)
            err = seal_rest(codec, block);
        else
            err = seal_chunk(codec, cipher, index, to, block->in + done, n);
        index++;
        to += n + AEAD_TAG_SIZE;
        done += n;
    }
    if (!err && block->last) {
        uint64_t total = block->index * codec->per_block * codec->chunk + block->n_in;
        err = final_start(codec, cipher, index, total);
        if (!err)
            err = piece_seal(cipher, to, to, 0, to);
        to += AEAD_TAG_SIZE;
    }
    block->n_out = (size_t)(to - block->out);
    return err;
}

/* Decrypts the chunks where they are and moves them together, over the tags between them. */
static gpg_error_t open_block(void *context, unsigned worker, struct block *block)
{
    const struct codec *codec = context;
    gcry_cipher_hd_t cipher = codec->cipher[worker];
    uint64_t index = block->index * codec->per_block;
    size_t n_in = block->n_in;
    if (block->last) {
        if (n_in < AEAD_TAG_SIZE)
            return gpg_error(GPG_ERR_TRUNCATED);
        n_in -= AEAD_TAG_SIZE;
    }
    uint8_t *to = block->out;
    gpg_error_t err = 0;
    for (size_t done = 0; !err && done < n_in;) {
        size_t left = n_in - done;
        if (left < AEAD_TAG_SIZE)
            return gpg_error(GPG_ERR_CHECKSUM);
        size_t n = left - AEAD_TAG_SIZE < codec->chunk ? left - AEAD_TAG_SIZE : codec->chunk;
        uint8_t *from = block->out + done;
        err = chunk_start(codec, cipher, index++);
        if (!err)
            err = piece_open(cipher, from, n, from + n);
        if (!err && to != from)
            memmove(to, from, n);
        to += n;
        done += n + AEAD_TAG_SIZE;
    }
    block->n_out = (size_t)(to - block->out);
    if (!err && block->last) {
        uint64_t total = block->index * codec->per_block * codec->chunk + block->n_out;
        err = final_start(codec, cipher, index, total);
        if (!err)
            err = piece_open(cipher, NULL, 0, block->in + n_in);
    }
    return err;
}

static void codec_clear(struct codec *codec)
{
    for (unsigned i = 0; i < codec->ciphers; i++)
        gcry_cipher_close(codec->cipher[i]);
    free(codec->cipher);
    bytes_wipe(codec->prefix, sizeof codec->prefix);
}

/* The key that encrypts, and the start of the nonces. Packet 20 has the session key and its IV; SEIPD 2 derives both
 * (RFC 9580 5.13.2). */
static gpg_error_t codec_key(struct codec *codec, const struct secret *session_key, struct secret **ret)
{
    const struct aead_params *params = &codec->params;
    if (params->kind == AEAD_PACKET_20) {
        memcpy(codec->prefix, params->iv, codec->nonce_size);
        *ret = secret_from(session_key->bytes, session_key->n);
        return *ret ? 0 : gpg_error(GPG_ERR_ENOMEM);
    }
    uint8_t info[AD_MAX];
    memset(codec->prefix, 0, sizeof codec->prefix);
    struct secret *derived;
    size_t prefix_n = codec->nonce_size - INDEX_SIZE;
    size_t info_n = chunk_ad(codec, 0, info); /* the same five octets */
    gpg_error_t err = hkdf(DIGEST_SHA256, session_key, params->salt, AEAD_SALT_SIZE, info, info_n,
                           session_key->n + prefix_n, &derived);
    if (err)
        return err;
    memcpy(codec->prefix, derived->bytes + session_key->n, prefix_n);
    derived->n = session_key->n;
    *ret = derived;
    return 0;
}

/* Of WORKERS as many as the blocks of BLOCK octets leave below AEAD_MEMORY, and one at least. */
static unsigned workers_for(unsigned workers, size_t block)
{
    const size_t slots = AEAD_MEMORY / block;
    const size_t most = slots > 8 ? (slots - 6) / 2 : 1; /* as ring.h has it: 2·workers + 6 */
    return workers < most ? workers : (unsigned)most;
}

static gpg_error_t codec_init(struct codec *codec, struct failure *failure, const struct aead_params *params,
                              const struct secret *session_key, unsigned workers)
{
    gpg_error_t err = check_params(failure, params);
    if (err)
        return err;
    if (session_key->n != algo_cipher(params->cipher)->key_size)
        return gpg_error(GPG_ERR_INV_KEYLEN);
    codec->params = *params;
    codec->nonce_size = algo_aead(params->aead)->nonce_size;
    codec->chunk = (size_t)chunk_size(params->chunk_octet);
    codec->per_block = codec->chunk < AEAD_BLOCK_SIZE ? AEAD_BLOCK_SIZE / codec->chunk : 1;
    struct secret *key = NULL;
    err = codec_key(codec, session_key, &key);
    if (err)
        return err;
    codec->workers = workers_for(workers, codec->per_block * codec->chunk);
    unsigned wanted = codec->workers ? codec->workers : 1;
    codec->cipher = calloc(wanted, sizeof *codec->cipher);
    if (!codec->cipher)
        err = gpg_error_from_syserror();
    while (!err && codec->ciphers < wanted) {
        err = cipher_open(params->cipher, params->aead, key, &codec->cipher[codec->ciphers]);
        if (!err)
            codec->ciphers++;
    }
    secret_free(key);
    return err;
}

static gpg_error_t aead_write(struct sink *sink, const void *bytes, size_t n)
{
    return sink_write(CONTAINER(sink, struct aead_sink, sink)->stage, bytes, n);
}

static gpg_error_t aead_sink_settle(struct sink *sink)
{
    return sink_settle(CONTAINER(sink, struct aead_sink, sink)->stage);
}

static gpg_error_t aead_sink_finish(struct sink *sink)
{
    return sink_finish(CONTAINER(sink, struct aead_sink, sink)->stage);
}

static void aead_sink_free(struct sink *sink)
{
    struct aead_sink *self = CONTAINER(sink, struct aead_sink, sink);
    sink_free(self->stage);
    codec_clear(&self->codec);
    free(self);
}

static const struct sink_ops aead_sink_ops = {
    .write = aead_write,
    .settle = aead_sink_settle,
    .finish = aead_sink_finish,
    .free = aead_sink_free,
};

gpg_error_t aead_sink_new(struct run *run, const struct aead_params *params, const struct secret *key, unsigned workers,
                          const struct block_observer *observer, struct sink *takes_below, struct sink **ret)
{
    struct aead_sink *self = calloc(1, sizeof *self);
    gpg_error_t err =
        self ? codec_init(&self->codec, run_failure(run), params, key, workers) : gpg_error_from_syserror();
    if (err) {
        sink_free(takes_below);
        goto out;
    }
    size_t block = self->codec.per_block * self->codec.chunk;
    const bool in_place = self->codec.per_block == 1; /* no tag between chunks */
    self->job = (struct block_job){.context = &self->codec,
                                   .block_size = block,
                                   .out_size = block + (self->codec.per_block + 1) * AEAD_TAG_SIZE,
                                   .in_place = in_place,
                                   .work = seal_block,
                                   .absorb = in_place ? absorb : NULL};
    if (observer)
        self->job.observer[0] = *observer;
    err = block_sink_new(run, &self->job, self->codec.workers, takes_below, &self->stage);
    if (err)
        goto out;
    sink_init(&self->sink, &aead_sink_ops);
    *ret = &self->sink;
    self = NULL;
out:
    if (self) {
        codec_clear(&self->codec);
        free(self);
    }
    return err;
}

static gpg_error_t aead_peek(struct source *source, const void **ret_bytes, size_t *ret_n)
{
    return source_peek(CONTAINER(source, struct aead_source, source)->stage, ret_bytes, ret_n);
}

static void aead_consume(struct source *source, size_t n)
{
    source_consume(CONTAINER(source, struct aead_source, source)->stage, n);
}

static gpg_error_t aead_source_finish(struct source *source)
{
    return source_finish(CONTAINER(source, struct aead_source, source)->stage);
}

static void aead_source_free(struct source *source)
{
    struct aead_source *self = CONTAINER(source, struct aead_source, source);
    source_free(self->stage);
    codec_clear(&self->codec);
    free(self);
}

static const struct source_ops aead_source_ops = {
    .peek = aead_peek, .consume = aead_consume, .finish = aead_source_finish, .free = aead_source_free};

gpg_error_t aead_source_new(struct run *run, const struct aead_params *params, const struct secret *key,
                            unsigned workers, struct source *borrows_body, struct source **ret)
{
    struct aead_source *self = calloc(1, sizeof *self);
    gpg_error_t err =
        self ? codec_init(&self->codec, run_failure(run), params, key, workers) : gpg_error_from_syserror();
    if (err)
        goto out;
    self->job = (struct block_job){.context = &self->codec,
                                   .block_size = self->codec.per_block * (self->codec.chunk + AEAD_TAG_SIZE),
                                   .hold = AEAD_TAG_SIZE,
                                   .work = open_block};
    err = block_source_borrow(run, &self->job, self->codec.workers, borrows_body, &self->stage);
    if (err)
        goto out;
    source_init(&self->source, &aead_source_ops);
    *ret = &self->source;
    self = NULL;
out:
    if (self) {
        codec_clear(&self->codec);
        free(self);
    }
    return err;
}

/* --- Seeking --- */

/* body ▸ chunk and what follows it ▸ opened in place ▸ lent */
struct aead_seek {
    struct source source;
    struct codec codec;
    struct source *body; /* borrowed */
    uint64_t index;      /* of the next chunk */
    uint64_t total;      /* octets of plaintext before it */
    size_t held;    /* octets of the next chunk at BLOCK + CHUNK + AEAD_TAG_SIZE: read to see whether it is there */
    size_t at, n;   /* BLOCK[at … n) was opened and not consumed */
    bool passed;    /* a chunk was skipped */
    bool end;       /* the last tag was right */
    uint8_t *block; /* a chunk and its tag, and AEAD_TAG_SIZE octets more */
};

static gpg_error_t check_last_tag(const struct aead_seek *seek, uint8_t *tag)
{
    gpg_error_t err = final_start(&seek->codec, seek->codec.cipher[0], seek->index, seek->total);
    return err ? err : piece_open(seek->codec.cipher[0], NULL, 0, tag);
}

/* Opens the chunk of which N octets with the tag stand in the block. */
static gpg_error_t open_chunk(struct aead_seek *seek, size_t n)
{
    gcry_cipher_hd_t cipher = seek->codec.cipher[0];
    if (n < AEAD_TAG_SIZE)
        return gpg_error(GPG_ERR_CHECKSUM);
    n -= AEAD_TAG_SIZE;
    gpg_error_t err = chunk_start(&seek->codec, cipher, seek->index);
    if (!err)
        err = piece_open(cipher, seek->block, n, seek->block + n);
    if (err)
        return err;
    seek->index++;
    seek->total += n;
    seek->n = n;
    return 0;
}

/* Reads and opens the next chunk, and checks the last tag where it follows. */
static gpg_error_t next_chunk(struct aead_seek *seek)
{
    const size_t unit = seek->codec.chunk + AEAD_TAG_SIZE;
    size_t got;
    seek->at = seek->n = 0;
    memmove(seek->block, seek->block + unit, seek->held);
    gpg_error_t err = source_read(seek->body, seek->block + seek->held, unit + AEAD_TAG_SIZE - seek->held, &got);
    if (err)
        return err;
    got += seek->held;
    seek->held = AEAD_TAG_SIZE;
    if (got == unit + AEAD_TAG_SIZE)
        return open_chunk(seek, unit);
    if (got < AEAD_TAG_SIZE)
        return gpg_error(GPG_ERR_TRUNCATED);
    seek->held = 0;
    got -= AEAD_TAG_SIZE;
    err = got ? open_chunk(seek, got) : 0;
    if (!err)
        err = check_last_tag(seek, seek->block + got);
    if (err)
        seek->n = 0;
    seek->end = !err;
    return err;
}

static gpg_error_t aead_seek_peek(struct source *source, const void **ret_bytes, size_t *ret_n)
{
    struct aead_seek *seek = CONTAINER(source, struct aead_seek, source);
    while (seek->at == seek->n && !seek->end) {
        gpg_error_t err = next_chunk(seek);
        if (err)
            return err;
    }
    *ret_bytes = seek->block + seek->at;
    *ret_n = seek->n - seek->at;
    return 0;
}

static void aead_seek_consume(struct source *source, size_t n)
{
    CONTAINER(source, struct aead_seek, source)->at += n;
}

bool aead_skip_passes(const struct source *source, uint64_t n)
{
    const struct aead_seek *seek = CONTAINER(source, struct aead_seek, source);
    const size_t open = seek->n - seek->at;
    return !seek->end && n >= open && n - open >= seek->codec.chunk;
}

bool aead_has_passed(const struct source *source)
{
    return CONTAINER(source, struct aead_seek, source)->passed;
}

/* Skips N whole chunks. Whether they were there the last tag shows. */
static gpg_error_t pass_chunks(struct aead_seek *seek, uint64_t n)
{
    const uint64_t unit = seek->codec.chunk + AEAD_TAG_SIZE;
    if (n > UINT64_MAX / unit)
        return gpg_error(GPG_ERR_TRUNCATED);
    gpg_error_t err = source_skip(seek->body, n * unit - seek->held);
    if (err)
        return err;
    seek->passed = true;
    seek->held = 0;
    seek->index += n;
    seek->total += n * seek->codec.chunk;
    return 0;
}

static gpg_error_t aead_seek_skip(struct source *source, uint64_t n)
{
    struct aead_seek *seek = CONTAINER(source, struct aead_seek, source);
    for (;;) {
        const size_t open = seek->n - seek->at;
        const size_t part = open < n ? open : (size_t)n;
        seek->at += part;
        n -= part;
        gpg_error_t err = 0;
        if (!n)
            return 0;
        if (seek->end)
            return gpg_error(GPG_ERR_TRUNCATED);
        if (n >= seek->codec.chunk) {
            err = pass_chunks(seek, n / seek->codec.chunk);
            n %= seek->codec.chunk;
        } else {
            err = next_chunk(seek);
        }
        if (err)
            return err;
    }
}

/* From the last chunk opened to the last tag. */
static gpg_error_t pass_rest(struct aead_seek *seek)
{
    const uint64_t unit = seek->codec.chunk + AEAD_TAG_SIZE;
    const size_t held = seek->held;
    uint8_t end[2 * AEAD_TAG_SIZE]; /* the octets held, and the last ones of the body */
    uint64_t left;
    memcpy(end, seek->block + unit, held);
    gpg_error_t err = packet_body_to_end(seek->body, end + held, AEAD_TAG_SIZE, &left);
    if (err)
        return err;
    if (held + left < AEAD_TAG_SIZE)
        return gpg_error(GPG_ERR_TRUNCATED);
    const size_t seen = held + (left < AEAD_TAG_SIZE ? (size_t)left : AEAD_TAG_SIZE);
    left = left + held - AEAD_TAG_SIZE;
    const uint64_t rest = left % unit;
    if (rest && rest < AEAD_TAG_SIZE)
        return gpg_error(GPG_ERR_CHECKSUM);
    seek->index += left / unit + (rest ? 1 : 0);
    seek->total += left / unit * seek->codec.chunk + (rest ? rest - AEAD_TAG_SIZE : 0);
    return check_last_tag(seek, end + seen - AEAD_TAG_SIZE);
}

static gpg_error_t aead_seek_finish(struct source *source)
{
    struct aead_seek *seek = CONTAINER(source, struct aead_seek, source);
    gpg_error_t err = 0;
    while (!err && !seek->end && !seek->passed)
        err = next_chunk(seek);
    if (!err && !seek->end)
        err = pass_rest(seek);
    return err;
}

static void aead_seek_free(struct source *source)
{
    struct aead_seek *seek = CONTAINER(source, struct aead_seek, source);
    codec_clear(&seek->codec);
    free(seek->block);
    free(seek);
}

static const struct source_ops aead_seek_ops = {.peek = aead_seek_peek,
                                                .consume = aead_seek_consume,
                                                .skip = aead_seek_skip,
                                                .finish = aead_seek_finish,
                                                .free = aead_seek_free};

gpg_error_t aead_seek_source_new(struct failure *failure, const struct aead_params *params, const struct secret *key,
                                 struct source *borrows_body, struct source **ret)
{
    struct aead_seek *seek = calloc(1, sizeof *seek);
    if (!seek)
        return gpg_error_from_syserror();
    source_init(&seek->source, &aead_seek_ops);
    seek->body = borrows_body;
    gpg_error_t err = codec_init(&seek->codec, failure, params, key, 0);
    if (!err) {
        seek->block = malloc(seek->codec.chunk + 2 * AEAD_TAG_SIZE);
        if (!seek->block)
            err = gpg_error_from_syserror();
    }
    if (err)
        aead_seek_free(&seek->source);
    else
        *ret = &seek->source;
    return err;
}
