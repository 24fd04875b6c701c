/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "message_write.h"

#include "armor.h"
#include "bzip2.h"
#include "deflate.h"
#include "framing.h"
#include "hash_set.h"
#include "literal.h"
#include "mdc.h"

#include "stream/prelude.h"
#include "stream/ring.h"

#include <stdlib.h>
#include <string.h>

/* A thread hop costs 10 µs (measured), so blocks between threads are large. */
#define HOP_SIZE ((size_t)256 * 1024)

/* All encrypted session keys together, octets: as many as a reader takes, with the largest keys. */
#define ESKS_MAX ((size_t)4 * 1024 * 1024)

/* All one-pass packets together, octets: HASH_SET_MAX different signatures, and equal ones of many keys. */
#define ONE_PASS_MAX ((size_t)1024 * 1024)

/* A signature that will stand behind the content. */
struct signing {
    struct signature_params params;
    unsigned digest; /* its number in the hash set */
};

struct message_sink {
    struct sink sink;
    struct run *run;
    const struct message_params *params; /* borrowed */
    struct hash_set *hashes;
    struct signing *signing; /* one for each signer */
    struct session_key session_key;
    struct sink *packets; /* takes the packets inside compression and encryption, down to BELOW; digests are taken of
                             the blocks of the first ring on the way */
    struct sink *content; /* takes what is signed: literal, which borrows PACKETS */
    uint64_t written;     /* octets of content */
};

static struct failure *message_failure(const struct message_sink *self)
{
    return run_failure(self->run);
}

/* ---- signatures ---- */

static gpg_error_t prepare_signatures(struct message_sink *self)
{
    const struct message_params *params = self->params;
    gpg_error_t error = 0;
    if (!params->signer_n)
        return 0;
    self->hashes = hash_set_new();
    self->signing = calloc(params->signer_n, sizeof *self->signing);
    if (!self->hashes || !self->signing)
        return gpg_error_from_syserror();
    for (size_t i = 0; i < params->signer_n && !error; i++) {
        const struct key *key = params->signers[i].secret_key->key;
        const struct digest_info *digest = algo_digest(params->signers[i].digest);
        struct signing *signing = &self->signing[i];
        if (!digest || (key->version == 6 && !digest->salt_size))
            return fail(message_failure(self), gpg_error(GPG_ERR_DIGEST_ALGO),
                        "digest algorithm %u cannot be used for a signature of version %u", params->signers[i].digest,
                        key->version);
        signing->params = (struct signature_params){
            .type = SIG_BINARY,
            .digest = params->signers[i].digest,
            .created = params->now,
            .notations = params->notations,
            .notation_n = params->notation_n,
            .literal = params->detached ? NULL : literal_start,
            .literal_n = params->detached ? 0 : LITERAL_START_SIZE,
        };
        signature_params_salt(key, &signing->params);
        error = hash_set_add(self->hashes, digest->id, signing->params.salt, key->version == 6 ? digest->salt_size : 0,
                             false, &signing->digest);
        if (gpg_err_code(error) == GPG_ERR_TOO_MANY)
            fail(message_failure(self), error, "too many signers: at most %d different signatures fit into a message",
                 HASH_SET_MAX);
    }
    return error;
}

/* RFC 9580 5.4: the one-pass packets stand in the order of the signers, the last one says that it is. What they take is
 * what the digests have to go over. */
static gpg_error_t write_one_pass(struct message_sink *self)
{
    const struct message_params *params = self->params;
    gpg_error_t error = 0;
    if (!params->signer_n)
        return 0;
    struct sink *packets = memory_sink_new(ONE_PASS_MAX);
    if (!packets)
        return gpg_error_from_syserror();
    for (size_t i = 0; i < params->signer_n && !error; i++)
        error = one_pass_write(params->signers[i].secret_key->key, &self->signing[i].params, i + 1 == params->signer_n,
                               packets);
    if (!error) {
        size_t n;
        const uint8_t *bytes = memory_sink_bytes(packets, &n);
        const bool behind_prefix = params->compress == COMPRESS_NONE && params->protection == PROTECT_SEIPD_1;
        hash_set_expect_literal(self->hashes, n + (behind_prefix ? mdc_prefix_size(params->cipher) : 0));
        error = sink_write(self->packets, bytes, n);
    }
    sink_free(packets);
    return error;
}

static gpg_error_t write_signature(struct message_sink *self, const struct message_signer *signer,
                                   const struct signing *signing)
{
    const struct message_params *params = self->params;
    gcry_md_hd_t md;
    gpg_error_t error = hash_set_copy(self->hashes, signing->digest, &md);
    if (!error)
        error = signature_write(message_failure(self), signer->secret_key, &signing->params, md, self->packets);
    if (!error && params->signed_one) {
        const struct signature_made made = {
            .key = signer->secret_key->key,
            .type = signing->params.type,
            .digest = signing->params.digest,
            .created = signing->params.created,
        };
        params->signed_one(params->context, &made);
    }
    return error;
}

/* In the reverse order of the one-pass packets. */
static gpg_error_t write_signatures(struct message_sink *self)
{
    gpg_error_t error = 0;
    for (size_t i = self->params->signer_n; i-- && !error;)
        error = write_signature(self, &self->params->signers[i], &self->signing[i]);
    return error;
}

/* ---- session key ---- */

static gpg_error_t copy_session_key(const struct session_key *given, enum cipher_algo cipher, struct session_key *ret)
{
    const struct cipher_info *info = algo_cipher(cipher);
    if (!info)
        return gpg_error(GPG_ERR_CIPHER_ALGO);
    if (given->key->n != info->key_size)
        return gpg_error(GPG_ERR_INV_KEYLEN);
    ret->cipher = (uint8_t)cipher;
    ret->key = secret_from(given->key->bytes, given->key->n);
    return ret->key ? 0 : gpg_error(GPG_ERR_ENOMEM);
}

/* As gpg -c: a single passphrase makes the session key itself. */
static bool is_direct(const struct message_params *params)
{
    return params->protection == PROTECT_SEIPD_1 && params->passphrase_n == 1 && !params->recipient_n &&
           !params->session_key;
}

static gpg_error_t write_skesk(struct message_sink *self, const struct secret *passphrase, struct sink *esks)
{
    const struct message_params *params = self->params;
    struct s2k s2k = params->s2k;
    gcry_create_nonce(s2k.salt, sizeof s2k.salt);
    if (is_direct(params))
        return skesk_write_direct(message_failure(self), passphrase, &s2k, params->cipher, esks, &self->session_key);
    unsigned version = params->protection == PROTECT_SEIPD_2 ? 6 : params->protection == PROTECT_PACKET_20 ? 5 : 4;
    return skesk_write(message_failure(self), version, passphrase, &s2k, params->cipher, params->aead,
                       &self->session_key, esks);
}

/* Encrypts the session key for everybody. */
static gpg_error_t write_esks(void *context, struct sink *esks)
{
    struct message_sink *self = context;
    const struct message_params *params = self->params;
    const unsigned version = params->protection == PROTECT_SEIPD_2 ? 6 : 3;
    gpg_error_t error = 0;
    for (size_t i = 0; i < params->recipient_n && !error; i++)
        error = pkesk_write(message_failure(self), version, params->recipients[i].key, params->recipients[i].hidden,
                            &self->session_key, esks);
    for (size_t i = 0; i < params->passphrase_n && !error; i++)
        error = write_skesk(self, params->passphrases[i], esks);
    return error;
}

static gpg_error_t make_session_key(struct message_sink *self)
{
    const struct message_params *params = self->params;
    if (!params->recipient_n && !params->passphrase_n && !params->session_key)
        return gpg_error(GPG_ERR_INV_ARG);
    for (size_t i = 0; i < params->recipient_n; i++) {
        if (!key_can_encrypt_algo(params->recipients[i].key))
            return fail(message_failure(self), gpg_error(GPG_ERR_WRONG_PUBKEY_ALGO),
                        "a recipient's key is of an algorithm that cannot encrypt");
    }
    if (params->session_key)
        return copy_session_key(params->session_key, params->cipher, &self->session_key);
    return is_direct(params) ? 0 : session_key_new(params->cipher, &self->session_key);
}

/* ---- stages; each takes *CHAIN, puts itself on top of it, and leaves NULL there on failure ---- */

static gpg_error_t stage_armor(const struct message_sink *self, struct sink **chain)
{
    const struct message_params *params = self->params;
    /* RFC 9580 6.1: no checksum where new readers are meant, and old ones want it. */
    bool crc = params->protection != PROTECT_SEIPD_2;
    for (size_t i = 0; i < params->signer_n; i++)
        crc = crc && params->signers[i].secret_key->key->version != 6;
    struct sink *below = *chain;
    *chain = NULL;
    return armor_sink_new(params->detached ? "PGP SIGNATURE" : "PGP MESSAGE", params->comments, crc, below, chain);
}

/* What the session key is encrypted with takes its time: 0.5 ms for a key, 50 ms for a passphrase (measured). Nobody
 * needs it before the first encrypted block comes out, unless the passphrase makes the session key. */
static gpg_error_t stage_esks(struct message_sink *self, struct sink **chain)
{
    struct run *run = self->params->jobs && !is_direct(self->params) ? self->run : NULL;
    struct sink *below = *chain;
    *chain = NULL;
    gpg_error_t error = prelude_sink_new(run, write_esks, self, ESKS_MAX, below, chain);
    if (!error && self->params->session_key_made)
        self->params->session_key_made(self->params->context, &self->session_key);
    return error;
}

/* Parts of packets with AEAD: who seeks reads each part's length, so they are many times what a disk reads at once, and
 * not larger than the blocks that come out of AEAD, so that little of them is gathered. */
#define AEAD_PART (1024 * 1024)

/* A packet of TYPE in parts of PART octets (0: the usual) whose body begins with HEADER. */
static gpg_error_t stage_packet(unsigned type, size_t part, const void *header, size_t header_n, struct sink **chain)
{
    struct sink *below = *chain;
    *chain = NULL;
    gpg_error_t error = packet_body_sink(type, part, below, false, chain);
    return error ? error : sink_write(*chain, header, header_n);
}

static gpg_error_t stage_mdc(const struct message_sink *self, const struct block_observer *observer,
                             struct sink **chain)
{
    static const uint8_t version = 1;
    gpg_error_t error = stage_packet(PACKET_SEIPD, HOP_SIZE, &version, 1, chain);
    if (error)
        return error;
    struct sink *below = *chain;
    *chain = NULL;
    return mdc_sink_new(self->run, self->params->cipher, self->session_key.key, self->params->jobs, observer, below,
                        chain);
}

static gpg_error_t stage_aead(const struct message_sink *self, const struct block_observer *observer,
                              struct sink **chain)
{
    const struct message_params *params = self->params;
    bool seipd = params->protection == PROTECT_SEIPD_2;
    struct aead_params aead = {
        .kind = seipd ? AEAD_SEIPD_2 : AEAD_PACKET_20,
        .cipher = params->cipher,
        .aead = params->aead,
        .chunk_octet = params->chunk_octet,
    };
    uint8_t header[AEAD_HEADER_MAX];
    aead_params_fresh(&aead);
    gpg_error_t error =
        stage_packet(seipd ? PACKET_SEIPD : PACKET_AEAD, AEAD_PART, header, aead_put_header(&aead, header), chain);
    if (error)
        return error;
    /* AES in OCB and GCM is faster than everything around it (0.07 and 0.2 ns/byte): one worker keeps up. */
    bool fast = params->aead != AEAD_EAX && params->cipher >= CIPHER_AES128 && params->cipher <= CIPHER_AES256;
    unsigned workers = fast && params->jobs ? 1 : params->jobs;
    struct sink *below = *chain;
    *chain = NULL;
    return aead_sink_new(self->run, &aead, self->session_key.key, workers, observer, below, chain);
}

static gpg_error_t stage_compress(const struct message_sink *self, const struct block_observer *observer,
                                  struct sink **chain)
{
    const struct message_params *params = self->params;
    gpg_error_t error = stage_packet(PACKET_COMPRESSED, 0, &params->compress, 1, chain);
    if (error)
        return error;
    struct sink *below = *chain;
    *chain = NULL;
    if (params->compress == COMPRESS_BZIP2)
        return bzip2_sink_new(self->run, params->compress_level, params->jobs, observer, below, chain);
    return deflate_sink_new(self->run, params->compress, params->compress_level, params->jobs, observer, below, chain);
}

/* Where nothing is compressed or encrypted, the digests have a ring of their own. */
static gpg_error_t stage_digests(const struct message_sink *self, const struct block_observer *observer,
                                 struct sink **chain)
{
    const struct block_job job = {.block_size = HOP_SIZE, .observer = {*observer}};
    struct sink *below = *chain;
    *chain = NULL;
    return block_sink_new(self->run, &job, self->params->jobs ? 1 : 0, below, chain);
}

/* Everything from the packets inside down to BELOW, to which nothing comes yet: what the packets' first octets are
 * waits in the stages. */
static gpg_error_t build_packets(struct message_sink *self, struct sink *takes_below)
{
    const struct message_params *params = self->params;
    struct sink *chain = takes_below;
    gpg_error_t error = 0;
    if (params->armor)
        error = stage_armor(self, &chain);
    if (!error && !params->detached && params->protection != PROTECT_NONE)
        error = stage_esks(self, &chain);
    if (!error && !params->detached) {
        const bool compressed = params->compress != COMPRESS_NONE;
        const struct block_observer digests =
            self->hashes ? hash_set_observer(self->hashes) : (struct block_observer){0};
        const struct block_observer *observer = self->hashes ? &digests : NULL;
        if (params->protection == PROTECT_SEIPD_1)
            error = stage_mdc(self, compressed ? NULL : observer, &chain);
        else if (params->protection != PROTECT_NONE)
            error = stage_aead(self, compressed ? NULL : observer, &chain);
        else if (observer && !compressed)
            error = stage_digests(self, observer, &chain);
        if (!error && compressed)
            error = stage_compress(self, observer, &chain);
    }
    self->packets = chain;
    return error;
}

/* ---- content ---- */

/* The end of the way where only signatures are written. */
static gpg_error_t drop_write(struct sink *sink, const void *bytes, size_t n)
{
    (void)sink, (void)bytes, (void)n;
    return 0;
}

static gpg_error_t drop_finish(struct sink *sink)
{
    (void)sink;
    return 0;
}

static void drop_free(struct sink *sink)
{
    free(sink);
}

static const struct sink_ops drop_ops = {.write = drop_write, .finish = drop_finish, .free = drop_free};

static gpg_error_t drop_sink_new(struct sink **ret)
{
    struct sink *sink = malloc(sizeof *sink);
    if (!sink)
        return gpg_error_from_syserror();
    sink_init(sink, &drop_ops);
    *ret = sink;
    return 0;
}

static gpg_error_t build_content(struct message_sink *self)
{
    if (!self->params->detached)
        return literal_sink_new(HOP_SIZE, self->packets, true, &self->content);
    struct sink *nothing = NULL;
    gpg_error_t error = self->hashes ? drop_sink_new(&nothing) : gpg_error(GPG_ERR_INV_ARG);
    if (error)
        return error;
    const struct block_job job = hash_set_job(self->hashes, HOP_SIZE);
    return block_sink_new(self->run, &job, self->params->jobs ? 1 : 0, nothing, &self->content);
}

/* ---- the sink ---- */

static gpg_error_t message_sink_write(struct sink *sink, const void *bytes, size_t n)
{
    struct message_sink *self = CONTAINER(sink, struct message_sink, sink);
    self->written += n;
    return sink_write(self->content, bytes, n);
}

static gpg_error_t message_sink_room(struct sink *sink, void **ret_room, size_t *ret_n)
{
    return sink_room(CONTAINER(sink, struct message_sink, sink)->content, ret_room, ret_n);
}

static gpg_error_t message_sink_filled(struct sink *sink, size_t n)
{
    struct message_sink *self = CONTAINER(sink, struct message_sink, sink);
    self->written += n;
    return sink_filled(self->content, n);
}

/* All digests are of all of the content. A wrong one would make a signature that nobody can verify. */
static gpg_error_t settle_digests(struct message_sink *self)
{
    if (!self->hashes)
        return 0;
    gpg_error_t error = self->params->detached ? 0 : sink_settle(self->packets);
    if (!error && hash_set_bytes(self->hashes) != self->written)
        error = gpg_error(GPG_ERR_BUG);
    return error;
}

/* Signatures are made on the thread of the caller, who may have to ask somebody for them. */
static gpg_error_t message_sink_finish(struct sink *sink)
{
    struct message_sink *self = CONTAINER(sink, struct message_sink, sink);
    gpg_error_t error = sink_finish(self->content);
    if (!error)
        error = settle_digests(self);
    if (!error)
        error = write_signatures(self);
    if (!error)
        error = sink_finish(self->packets);
    return error;
}

static void message_sink_free(struct sink *sink)
{
    struct message_sink *self = CONTAINER(sink, struct message_sink, sink);
    sink_free(self->content);
    sink_free(self->packets);
    session_key_clear(&self->session_key);
    hash_set_free(self->hashes);
    free(self->signing);
    free(self);
}

static const struct sink_ops message_sink_ops = {
    .write = message_sink_write,
    .room = message_sink_room,
    .filled = message_sink_filled,
    .finish = message_sink_finish,
    .free = message_sink_free,
};

gpg_error_t message_sink_new(struct run *run, const struct message_params *params, struct sink *takes_below,
                             struct sink **ret)
{
    gpg_error_t error = 0;
    struct message_sink *self = calloc(1, sizeof *self);
    if (!self) {
        error = gpg_error_from_syserror();
        goto out;
    }
    sink_init(&self->sink, &message_sink_ops);
    self->run = run;
    self->params = params;
    error = prepare_signatures(self);
    if (!error && params->protection != PROTECT_NONE && !params->detached)
        error = make_session_key(self);
    if (error)
        goto out;
    error = build_packets(self, takes_below);
    takes_below = NULL;
    if (!error && !params->detached)
        error = write_one_pass(self);
    if (!error)
        error = build_content(self);
    if (error)
        goto out;
    *ret = &self->sink;
    return 0;
out:
    sink_free(takes_below);
    if (self)
        message_sink_free(&self->sink);
    return error;
}
