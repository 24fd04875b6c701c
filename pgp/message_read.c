/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 *   raw ▸ (armor) ▸ [ring] ▸ framing ▸ [ring: aead ×M | mdc] ▸ framing ▸ inflate ▸ framing ▸ literal ▸ [ring: digests]
 * ▸ content
 *
 * Each container (compressed, encrypted) is a layer over the one it stands in. Layers are opened until the literal is
 * found; behind its content they are read to their ends and closed again, innermost first.
 */
#include "message_read.h"

#include "aead.h"
#include "armor.h"
#include "bzip2.h"
#include "esk_set.h"
#include "framing.h"
#include "inflate.h"
#include "mdc.h"
#include "verdict.h"

#include "stream/ring.h"

#include <stdlib.h>
#include <string.h>

/* A block between threads. */
#define HOP (256 * 1024)
/* RFC 9580 4.3: unknown packets below this number are critical. */
#define FIRST_NON_CRITICAL 40
/* Octets inside compression that mean nothing, at most: a few hundred can expand to terabytes of them. */
#define INFLATED_IGNORED_MAX (64 * 1024 * 1024)

struct layer {
    struct source *packets; /* the packets in it; BODY, INNER or the raw source: borrowed */
    struct source *body;    /* of the container's packet; NULL in the outermost layer */
    struct source *head;    /* gives octets again that were read to check a session key; NULL elsewhere */
    struct source *inner;   /* what is made of the body; NULL where the body itself is */
    bool encrypted;
    enum protection protection; /* of an encrypted one */
    bool announced;             /* a signature was announced in it, or stood in it, before the content */
};

struct message {
    struct source source;
    struct run *run;
    struct read_params params;
    struct failure failure; /* of what is outside the encryption */
    struct failure inside;  /* of what is in encrypted data: told only when that is known to be genuine */
    struct source *raw;
    struct layer layer[MESSAGE_NESTING_MAX + 1];
    unsigned layers;
    bool any_packet;
    struct esk_set *esks;
    struct verdict *signatures;
    struct message_verdict *verdict; /* SIGNATURES' */
    bool by_passphrase, doubtful;    /* how the session key was found, see esk_set.h */
    struct source *content;          /* the literal's body */
    struct source *ahead;            /* CONTENT read and hashed by helpers; NULL: neither */
    struct source pumped;            /* what AHEAD reads from; it and the next two belong to AHEAD's helpers */
    gpg_error_t pumped_error;        /* why CONTENT ended early; ours when AHEAD is at its end */
    uint64_t given;                  /* octets of content taken from CONTENT */
    const uint8_t *lent;
    uint64_t ignored; /* octets that came out of compression and were dropped */
};

static struct layer *top(struct message *message)
{
    return &message->layer[message->layers - 1];
}

/* Where a flaw found now is noted. */
static struct failure *notes(struct message *message)
{
    return message->verdict->encrypted ? &message->inside : &message->failure;
}

static void emit(const struct message *message, const struct message_event *event)
{
    if (message->params.event)
        message->params.event(message->params.context, event);
}

static void emit_kind(const struct message *message, enum message_event_kind kind, gpg_error_t code)
{
    emit(message, &(struct message_event){.kind = kind, .code = code});
}

/* --- Octets looked at before, given again --- */

struct replay {
    struct source source;
    struct source *body; /* borrowed */
    size_t at, n;
    uint8_t head[MDC_PREFIX_MAX];
};

static gpg_error_t replay_peek(struct source *source, const void **ret_bytes, size_t *ret_n)
{
    struct replay *replay = CONTAINER(source, struct replay, source);
    if (replay->at == replay->n)
        return source_peek(replay->body, ret_bytes, ret_n);
    *ret_bytes = replay->head + replay->at;
    *ret_n = replay->n - replay->at;
    return 0;
}

static void replay_consume(struct source *source, size_t n)
{
    struct replay *replay = CONTAINER(source, struct replay, source);
    if (replay->at < replay->n)
        replay->at += n;
    else
        source_consume(replay->body, n);
}

static gpg_error_t replay_finish(struct source *source)
{
    (void)source; /* the layer finishes the body */
    return 0;
}

static void replay_free(struct source *source)
{
    free(CONTAINER(source, struct replay, source));
}

static const struct source_ops replay_ops = {
    .peek = replay_peek, .consume = replay_consume, .finish = replay_finish, .free = replay_free};

static gpg_error_t replay_new(struct source *borrows_body, struct replay **ret)
{
    struct replay *replay = calloc(1, sizeof *replay);
    if (!replay)
        return gpg_error_from_syserror();
    source_init(&replay->source, &replay_ops);
    replay->body = borrows_body;
    gpg_error_t err = source_read(borrows_body, replay->head, sizeof replay->head, &replay->n);
    if (err)
        free(replay);
    else
        *ret = replay;
    return err;
}

/* --- Layers --- */

static void layer_free(struct layer *layer)
{
    source_free(layer->inner);
    source_free(layer->head);
    source_free(layer->body);
}

/* A new layer on PACKET's body, still without what is made of it. */
static gpg_error_t layer_push(struct message *message, const struct packet *packet)
{
    if (message->layers == ARRAY_SIZE(message->layer))
        return fail(notes(message), gpg_error(GPG_ERR_INV_PACKET), "the message is nested more than %u times",
                    MESSAGE_NESTING_MAX);
    struct source *body;
    gpg_error_t err = packet_body_source(notes(message), packet, top(message)->packets, &body);
    if (err)
        return err;
    message->layer[message->layers++] = (struct layer){.packets = body, .body = body};
    return 0;
}

static gpg_error_t read_octet(struct message *message, struct source *body, uint8_t *ret)
{
    size_t got;
    gpg_error_t err = source_read(body, ret, 1, &got);
    if (!err && !got)
        err = fail(notes(message), gpg_error(GPG_ERR_INV_PACKET), "a packet is empty");
    return err;
}

static gpg_error_t open_compressed(struct message *message, const struct packet *packet)
{
    uint8_t algo;
    gpg_error_t err = layer_push(message, packet);
    if (err)
        return err;
    struct layer *layer = top(message);
    err = read_octet(message, layer->body, &algo);
    if (err)
        return err;
    switch (algo) {
    case COMPRESS_NONE:
        return 0;
    case COMPRESS_ZIP:
    case COMPRESS_ZLIB:
        err = inflate_source_new(notes(message), (enum compress_algo)algo, layer->body, &layer->inner);
        /* Without encryption anybody could append there, gpg's packets being of indeterminate length. */
        if (!err && !message->verdict->encrypted)
            inflate_source_no_padding(layer->inner);
        break;
    case COMPRESS_BZIP2:
        err = bunzip2_source_new(notes(message), layer->body, &layer->inner);
        break;
    default:
        err = fail(notes(message), gpg_error(GPG_ERR_NOT_SUPPORTED), "compression algorithm %u is not supported", algo);
    }
    if (!err)
        layer->packets = layer->inner;
    return err;
}

/* Version octet and, of AEAD kinds, the rest of the header. */
static gpg_error_t read_protection(struct message *message, const struct packet *packet, struct aead_params *aead)
{
    struct layer *layer = top(message);
    uint8_t version = 0;
    gpg_error_t err = 0;
    layer->encrypted = true;
    if (packet->type != PACKET_SED)
        err = read_octet(message, layer->body, &version);
    if (err)
        return err;
    if (packet->type == PACKET_SED) {
        layer->protection = PROTECT_NONE;
        if (!message->params.ignore_mdc_error)
            return fail(notes(message), gpg_error(GPG_ERR_UNSUPPORTED_PROTECTION),
                        "the message is encrypted without protection against changes (an old format); "
                        "--ignore-mdc-error reads it all the same");
    } else if (packet->type == PACKET_SEIPD && version == 1) {
        layer->protection = PROTECT_SEIPD_1;
    } else if (packet->type == PACKET_SEIPD && version == 2) {
        layer->protection = PROTECT_SEIPD_2;
        return aead_read_header(notes(message), AEAD_SEIPD_2, layer->body, aead);
    } else if (packet->type == PACKET_AEAD && version == 1) {
        layer->protection = PROTECT_PACKET_20;
        return aead_read_header(notes(message), AEAD_PACKET_20, layer->body, aead);
    } else {
        return fail(notes(message), gpg_error(GPG_ERR_NOT_SUPPORTED),
                    "version %u of encrypted data (packet %u) is not supported", version, packet->type);
    }
    return 0;
}

static gpg_error_t start_decryption(struct message *message, const struct aead_params *aead,
                                    const struct session_key *session_key)
{
    struct layer *layer = top(message);
    unsigned jobs = message->params.jobs;
    enum cipher_algo cipher = aead->cipher ? aead->cipher : session_key->cipher;
    emit_kind(message, EVENT_BEGIN_DECRYPTION, 0);
    emit(message, &(struct message_event){.kind = EVENT_DECRYPTION_INFO,
                                          .protection = layer->protection,
                                          .cipher = (uint8_t)cipher,
                                          .aead = aead->aead});
    if (algo_cipher(cipher) && algo_cipher(cipher)->legacy)
        emit(message, &(struct message_event){.kind = EVENT_WARNING,
                                              .text = "the message is encrypted with an old cipher of 64-bit blocks"});
    gpg_error_t err;
    switch (layer->protection) {
    case PROTECT_SEIPD_1:
        err = mdc_source_new(message->run, cipher, session_key->key, jobs, layer->head, &layer->inner);
        break;
    case PROTECT_PACKET_20:
    case PROTECT_SEIPD_2:
        /* OCB and GCM are faster than reading (measured): one worker. EAX is not. */
        if (jobs && aead->aead != AEAD_EAX)
            jobs = 1;
        if (message->params.seek)
            err = aead_seek_source_new(notes(message), aead, session_key->key, layer->body, &layer->inner);
        else
            err = aead_source_new(message->run, aead, session_key->key, jobs, layer->body, &layer->inner);
        break;
    default:
        message->verdict->unprotected = true;
        err = sed_source_new(cipher, session_key->key, layer->head, &layer->inner);
    }
    if (!err)
        layer->packets = layer->inner;
    return err;
}

static gpg_error_t open_encrypted(struct message *message, const struct packet *packet)
{
    struct aead_params aead = {0};
    if (message->verdict->encrypted)
        return fail(notes(message), gpg_error(GPG_ERR_NOT_SUPPORTED), "the message is encrypted twice");
    gpg_error_t err = layer_push(message, packet);
    if (!err)
        err = read_protection(message, packet, &aead);
    if (err)
        return err;
    message->verdict->encrypted = true;
    struct layer *layer = top(message);
    struct esk_target target = {.protection = layer->protection, .cipher = aead.cipher};
    if (!aead.cipher) {
        struct replay *replay = NULL;
        err = replay_new(layer->body, &replay);
        if (err)
            return err;
        layer->head = &replay->source;
        target.head = replay->head;
        target.head_n = replay->n;
    }
    struct esk_opened opened;
    err = esk_set_open(message->esks, notes(message), &message->params, &target, &opened);
    if (err)
        return err;
    message->by_passphrase = opened.by_passphrase;
    message->doubtful = opened.doubtful;
    err = start_decryption(message, &aead, &opened.session_key);
    session_key_clear(&opened.session_key);
    return err;
}

/* Whether what stands in the first LAYERS layers has come out of compression. */
static bool is_inflated(const struct message *message, unsigned layers)
{
    for (unsigned i = 0; i < layers; i++)
        if (message->layer[i].inner && !message->layer[i].encrypted)
            return true;
    return false;
}

/* Reads BODY on to its end, drops it and finishes it. INFLATED: it has come out of compression. */
static gpg_error_t drop_body(struct message *message, struct source *body, bool inflated)
{
    for (;;) {
        const void *bytes;
        size_t n;
        gpg_error_t err = source_peek(body, &bytes, &n);
        if (err)
            return err;
        if (!n)
            return source_finish(body);
        if (inflated) {
            message->ignored += n;
            if (message->ignored > INFLATED_IGNORED_MAX)
                return fail(notes(message), gpg_error(GPG_ERR_TOO_LARGE),
                            "the message has more than %u MiB of padding in compressed data",
                            INFLATED_IGNORED_MAX >> 20);
        }
        source_consume(body, n);
    }
}

/* Reads on to the end of PACKET's body and drops it. */
static gpg_error_t skip_packet(struct message *message, const struct packet *packet)
{
    struct source *body;
    gpg_error_t err = packet_body_source(notes(message), packet, top(message)->packets, &body);
    if (err)
        return err;
    err = drop_body(message, body, is_inflated(message, message->layers));
    source_free(body);
    return err;
}

/* Whether PACKET may stand anywhere and means nothing. */
static bool is_ignored(const struct packet *packet)
{
    return packet->type == PACKET_MARKER || packet->type == PACKET_PADDING || packet->type >= FIRST_NON_CRITICAL;
}

static gpg_error_t refuse_packet(struct message *message, const struct packet *packet)
{
    switch (packet->type) {
    case PACKET_SECRET_KEY:
    case PACKET_PUBLIC_KEY:
    case PACKET_SECRET_SUBKEY:
    case PACKET_PUBLIC_SUBKEY:
    case PACKET_USER_ID:
    case PACKET_USER_ATTRIBUTE:
        return fail(notes(message), gpg_error(message->layers == 1 ? GPG_ERR_NO_DATA : GPG_ERR_INV_PACKET),
                    "these are keys, not an OpenPGP message");
    case PACKET_TRUST:
    case PACKET_MDC:
        return fail(notes(message), gpg_error(GPG_ERR_INV_PACKET), "a packet of type %u has no place in a message",
                    packet->type);
    default:
        return fail(notes(message), gpg_error(GPG_ERR_UNKNOWN_PACKET),
                    "a packet of unknown type %u is critical: the message cannot be understood without it",
                    packet->type);
    }
}

static gpg_error_t out_of_order(struct message *message, const struct packet *packet)
{
    return fail(notes(message), gpg_error(GPG_ERR_INV_PACKET),
                "a packet of type %u stands where a message may not have it", packet->type);
}

/* --- Up to the content --- */

static gpg_error_t take_esk(struct message *message, const struct packet *packet)
{
    uint8_t *body;
    size_t n;
    const struct esk *esk;
    gpg_error_t err = packet_body_read(notes(message), packet, top(message)->packets, ESK_BODY_MAX, &body, &n);
    if (err)
        return err;
    err = esk_set_add(message->esks, notes(message), packet->type, body, n, &esk);
    if (!err && esk && !esk->symmetric)
        emit(message, &(struct message_event){.kind = EVENT_ENC_TO, .esk = esk});
    free(body);
    return err;
}

static gpg_error_t take_announcement(struct message *message, const struct packet *packet)
{
    uint8_t *body;
    size_t n;
    struct layer *layer = top(message);
    gpg_error_t err = packet_body_read(notes(message), packet, layer->packets, SIGNATURE_BODY_MAX, &body, &n);
    if (err)
        return err;
    if (packet->type == PACKET_ONE_PASS)
        err = verdict_announce(message->signatures, notes(message), message->layers, body, n);
    else
        err = verdict_prefix(message->signatures, notes(message), body, n);
    layer->announced = true;
    message->verdict->announced = true;
    free(body);
    return err;
}

static gpg_error_t open_literal(struct message *message, const struct packet *packet)
{
    gpg_error_t err = packet_body_source(notes(message), packet, top(message)->packets, &message->content);
    if (!err)
        err = literal_read(notes(message), message->content, &message->verdict->literal);
    if (!err)
        emit(message, &(struct message_event){.kind = EVENT_PLAINTEXT, .literal = &message->verdict->literal});
    return err;
}

/* One packet before the content. Session keys are followed by the encrypted data, announcements by what is signed. */
static gpg_error_t descend_packet(struct message *message, const struct packet *packet)
{
    struct layer *layer = top(message);
    bool esks = esk_set_count(message->esks) && !message->verdict->encrypted;
    if (is_ignored(packet))
        return skip_packet(message, packet);
    message->any_packet = true;
    switch (packet->type) {
    case PACKET_PKESK:
    case PACKET_SKESK:
        if (layer->announced || message->verdict->encrypted)
            return out_of_order(message, packet);
        return take_esk(message, packet);
    case PACKET_SED:
    case PACKET_SEIPD:
    case PACKET_AEAD:
        return layer->announced ? out_of_order(message, packet) : open_encrypted(message, packet);
    case PACKET_ONE_PASS:
    case PACKET_SIGNATURE:
        return esks ? out_of_order(message, packet) : take_announcement(message, packet);
    case PACKET_COMPRESSED:
        return esks ? out_of_order(message, packet) : open_compressed(message, packet);
    case PACKET_LITERAL:
        return esks ? out_of_order(message, packet) : open_literal(message, packet);
    default:
        return refuse_packet(message, packet);
    }
}

static gpg_error_t no_content(struct message *message)
{
    if (message->layers > 1)
        return fail(notes(message), gpg_error(GPG_ERR_INV_PACKET), "the message has no content");
    if (esk_set_count(message->esks))
        return fail(notes(message), gpg_error(GPG_ERR_TRUNCATED),
                    "the message is cut short: session keys are there, and no encrypted data");
    if (!message->any_packet)
        return fail(notes(message), gpg_error(GPG_ERR_NO_DATA), "there is no OpenPGP message");
    if (message->layer[0].announced && !verdict_pending(message->signatures, 1))
        return fail(notes(message), gpg_error(GPG_ERR_NO_DATA),
                    "this is a detached signature: the data that it signs is needed too");
    return fail(notes(message), gpg_error(GPG_ERR_TRUNCATED), "the message is cut short: it has no content");
}

static gpg_error_t descend(struct message *message)
{
    while (!message->content) {
        struct packet packet;
        bool end;
        gpg_error_t err = packet_next(notes(message), top(message)->packets, &packet, &end);
        if (!err)
            err = end ? no_content(message) : descend_packet(message, &packet);
        if (err)
            return err;
    }
    return 0;
}

/* --- Behind the content --- */

/* What is left in the top layer: the signatures that were announced in it, and nothing else that means something. */
static gpg_error_t layer_tail(struct message *message)
{
    for (;;) {
        struct packet packet;
        bool end;
        struct layer *layer = top(message);
        gpg_error_t err = packet_next(notes(message), layer->packets, &packet, &end);
        if (err)
            return err;
        if (end)
            break;
        if (is_ignored(&packet)) {
            err = skip_packet(message, &packet);
        } else if (packet.type == PACKET_SIGNATURE && verdict_pending(message->signatures, message->layers)) {
            uint8_t *body;
            size_t n;
            err = packet_body_read(notes(message), &packet, layer->packets, SIGNATURE_BODY_MAX, &body, &n);
            if (err)
                return err;
            err = verdict_signature(message->signatures, notes(message), message->layers, body, n);
            free(body);
        } else {
            err = fail(notes(message), gpg_error(GPG_ERR_INV_PACKET),
                       "something follows the message that does not belong to it (packet of type %u)", packet.type);
        }
        if (err)
            return err;
    }
    verdict_layer_end(message->signatures, message->layers);
    return 0;
}

/* The check of an encrypted layer's integrity, at its end. */
static gpg_error_t finish_decryption(struct message *message, struct layer *layer)
{
    gpg_error_t err = source_finish(layer->inner);
    if (gpg_err_code(err) == GPG_ERR_CHECKSUM && layer->protection == PROTECT_SEIPD_1 &&
        message->params.ignore_mdc_error) {
        message->verdict->unprotected = true;
        emit(message, &(struct message_event){.kind = EVENT_WARNING,
                                              .text = "the message was changed after encryption (ignored)"});
        err = 0;
    } else if (!err && layer->protection != PROTECT_NONE) {
        message->verdict->integrity_ok = !message->verdict->passed_over;
    }
    return err;
}

static gpg_error_t layer_close(struct message *message)
{
    struct layer *layer = top(message);
    gpg_error_t err = 0;
    if (layer->encrypted) {
        err = finish_decryption(message, layer);
        if (!err) {
            emit_kind(message, EVENT_DECRYPTION_OKAY, 0);
            if (message->verdict->integrity_ok)
                emit_kind(message, EVENT_GOOD_MDC, 0);
            emit_kind(message, EVENT_END_DECRYPTION, 0);
        }
    } else if (layer->inner) {
        err = source_finish(layer->inner);
    }
    if (!err && layer->body)
        err = drop_body(message, layer->body, is_inflated(message, message->layers - 1));
    if (err)
        return err;
    layer_free(layer);
    message->layers--;
    return 0;
}

/* Of a message parts of which were passed over, nothing more is read in the encryption. */
static void leave_content(struct message *message)
{
    while (!top(message)->encrypted) {
        layer_free(top(message));
        message->layers--;
    }
}

static gpg_error_t ascend(struct message *message)
{
    gpg_error_t err = 0;
    if (message->verdict->passed_over) {
        leave_content(message);
        err = layer_close(message);
    } else {
        err = source_finish(message->content);
        if (!err)
            err = verdict_content_end(message->signatures, &message->verdict->literal);
    }
    while (!err && message->layers > 1) {
        err = layer_tail(message);
        if (!err)
            err = layer_close(message);
    }
    if (!err)
        err = layer_tail(message);
    if (!err)
        err = source_finish(message->raw);
    return err;
}

/* --- Failing --- */

static gpg_error_t tell_damage(const struct message *message, struct failure *failure)
{
    if (!message->by_passphrase)
        return fail(failure, gpg_error(GPG_ERR_DECRYPT_FAILED), "%s", ESK_DAMAGED);
    if (message->doubtful)
        return fail(failure, gpg_error(GPG_ERR_CHECKSUM),
                    "decryption failed: the message is damaged, or the passphrase is wrong");
    return fail(failure, gpg_error(GPG_ERR_CHECKSUM),
                "the message is damaged: what comes out of decryption is not what was encrypted");
}

/* Says why the message cannot be read; nobody else reads in it any more. What is found in data whose integrity is shown
 * only at the end (SEIPD 1) counts only if that check succeeds, so that nobody learns from our words what a changed
 * message decrypts to. */
static gpg_error_t tell(struct message *message, gpg_error_t err)
{
    struct failure *failure = run_failure(message->run);
    struct layer *encrypted = NULL;
    for (unsigned i = 0; i < message->layers; i++)
        if (message->layer[i].inner && message->layer[i].encrypted)
            encrypted = &message->layer[i];
    gpg_err_code_t code = gpg_err_code(err);
    if (code == GPG_ERR_CANCELED || code == GPG_ERR_FULLY_CANCELED || code == GPG_ERR_ENOMEM)
        return fail(failure, err, "the message cannot be read: %s", gpg_strerror(err));
    gpg_error_t integrity = 0;
    if (encrypted) {
        integrity = encrypted->inner->error;
        if (!integrity && encrypted->protection == PROTECT_SEIPD_1 && !message->params.ignore_mdc_error)
            integrity = source_finish(encrypted->inner);
        emit_kind(message, EVENT_DECRYPTION_FAILED, integrity ? integrity : err);
        emit_kind(message, EVENT_END_DECRYPTION, 0);
    } else if (message->verdict && message->verdict->encrypted && !message->content) {
        /* Nobody could open it. */
        emit_kind(message, EVENT_BEGIN_DECRYPTION, 0);
        emit_kind(message, EVENT_DECRYPTION_FAILED, err);
        emit_kind(message, EVENT_END_DECRYPTION, 0);
    }
    if (gpg_err_code(integrity) == GPG_ERR_CHECKSUM)
        return tell_damage(message, failure);
    char sentence[FAILURE_SENTENCE_MAX];
    if (integrity) /* cut short or unreadable outside: nothing inside counts */
        err = integrity;
    if (integrity || !failure_get(&message->inside, sentence))
        failure_get(&message->failure, sentence);
    return fail(failure, err, "%s", *sentence ? sentence : gpg_strerror(err));
}

/* --- The content --- */

/* At most *N of the octets that come next may be taken; none of them: an error. */
static gpg_error_t within_limit(struct message *message, size_t *n)
{
    const uint64_t limit = message->params.max_output;
    if (!limit || !*n)
        return 0;
    if (message->given == limit)
        return fail(notes(message), gpg_error(GPG_ERR_TOO_LARGE), "the content is larger than the limit of %llu bytes",
                    (unsigned long long)limit);
    if (*n > limit - message->given)
        *n = (size_t)(limit - message->given);
    return 0;
}

static gpg_error_t content_peek(struct message *message, const void **ret_bytes, size_t *ret_n)
{
    gpg_error_t err = source_peek(message->content, ret_bytes, ret_n);
    return err ? err : within_limit(message, ret_n);
}

static void content_consume(struct message *message, size_t n)
{
    message->given += n;
    source_consume(message->content, n);
}

/* 1 … N octets; *RET_GOT = 0 at the end. */
static gpg_error_t content_read(struct message *message, void *to, size_t n, size_t *ret_got)
{
    const void *bytes;
    size_t lent = 0;
    gpg_error_t err = 0;
    *ret_got = 0;
    if (message->params.max_output) { /* where the limit is reached, it matters whether more comes */
        err = content_peek(message, &bytes, &lent);
        if (err || !lent)
            return err;
        n = n < lent ? n : lent;
    }
    err = source_read(message->content, to, n, ret_got);
    message->given += *ret_got;
    return *ret_got ? 0 : err; /* an error comes again */
}

/* A block before the end may be hashed and given out as it is, so an error is an end here, and told behind it. Only
 * when the ring that reads has come to an end is the message told to be damaged: then it is ours alone, and with
 * SEIPD 1 the check of what is left to read follows. */
static gpg_error_t pumped_peek(struct source *source, const void **ret_bytes, size_t *ret_n)
{
    struct message *message = CONTAINER(source, struct message, pumped);
    if (!message->pumped_error)
        message->pumped_error = content_peek(message, ret_bytes, ret_n);
    if (message->pumped_error)
        *ret_n = 0;
    return 0;
}

static void pumped_consume(struct source *source, size_t n)
{
    content_consume(CONTAINER(source, struct message, pumped), n);
}

static gpg_error_t pumped_read(struct source *source, void *to, size_t n, size_t *ret_got)
{
    struct message *message = CONTAINER(source, struct message, pumped);
    if (!message->pumped_error)
        message->pumped_error = content_read(message, to, n, ret_got);
    return 0;
}

static const struct source_ops pumped_ops = {.peek = pumped_peek, .consume = pumped_consume, .read = pumped_read};

static gpg_error_t hash_block(void *context, unsigned worker, struct block *block)
{
    struct message *message = context;
    (void)worker;
    verdict_update(message->signatures, block->out, block->n_out);
    return 0;
}

/* Whether the content costs next to nothing where it is taken, because nothing is hashed or expanded there. */
static bool is_light(const struct message *message)
{
    for (unsigned i = 1; i < message->layers; i++)
        if (message->layer[i].inner && message->layer[i].protection == PROTECT_NONE)
            return false; /* compression, or packet 9 */
    return !message->verdict->announced;
}

/* Reading (which expands) and hashing take about as long (1.0 and 0.6 ns/byte), and are done at the same time. */
static gpg_error_t run_ahead(struct message *message)
{
    const struct block_job job = {
        .context = message, .block_size = HOP, .work = message->verdict->announced ? hash_block : NULL};
    source_init(&message->pumped, &pumped_ops);
    return block_source_borrow(message->run, &job, 1, &message->pumped, &message->ahead);
}

/* --- The source --- */

static gpg_error_t message_peek(struct source *source, const void **ret_bytes, size_t *ret_n)
{
    struct message *message = CONTAINER(source, struct message, source);
    const void *bytes = NULL;
    size_t n = 0;
    gpg_error_t err = message->ahead ? source_peek(message->ahead, &bytes, &n) : content_peek(message, &bytes, &n);
    if (!err && !n && message->ahead)
        err = message->pumped_error;
    if (err)
        return tell(message, err);
    message->lent = bytes;
    *ret_bytes = bytes;
    *ret_n = n;
    return 0;
}

static void message_consume(struct source *source, size_t n)
{
    struct message *message = CONTAINER(source, struct message, source);
    if (message->ahead) {
        source_consume(message->ahead, n);
        return;
    }
    if (!message->verdict->passed_over)
        verdict_update(message->signatures, message->lent, n);
    message->lent += n;
    content_consume(message, n);
}

static gpg_error_t message_finish(struct source *source)
{
    struct message *message = CONTAINER(source, struct message, source);
    while (!message->verdict->passed_over) {
        const void *bytes = NULL;
        size_t n = 0;
        gpg_error_t err = message_peek(source, &bytes, &n);
        if (err)
            return err;
        if (!n)
            break;
        message_consume(source, n);
    }
    gpg_error_t err = ascend(message);
    if (err)
        return tell(message, err);
    message->verdict->complete = !message->verdict->passed_over;
    return 0;
}

/* Reads N octets and drops them. */
static gpg_error_t read_over(struct source *source, uint64_t n)
{
    struct message *message = CONTAINER(source, struct message, source);
    while (n) {
        const void *bytes = NULL;
        size_t lent = 0;
        gpg_error_t err = message_peek(source, &bytes, &lent);
        if (err)
            return err;
        if (!lent)
            return fail(run_failure(message->run), gpg_error(GPG_ERR_TRUNCATED), "the content is cut short");
        const size_t part = lent < n ? lent : (size_t)n;
        message_consume(source, part);
        n -= part;
    }
    return 0;
}

static gpg_error_t message_skip(struct source *source, uint64_t n)
{
    struct message *message = CONTAINER(source, struct message, source);
    const struct source *aead = message->layer[1].inner;
    const uint64_t limit = message->params.max_output;
    if (!message->verdict->passed_over && !aead_skip_passes(aead, n))
        return read_over(source, n);
    gpg_error_t err = 0;
    if (limit && n > limit - message->given)
        err = fail(notes(message), gpg_error(GPG_ERR_TOO_LARGE), "the content is larger than the limit of %llu bytes",
                   (unsigned long long)limit);
    else
        err = source_skip(message->content, n);
    message->verdict->passed_over = aead_has_passed(aead);
    if (err)
        return tell(message, err);
    message->given += n;
    return 0;
}

static void message_free(struct source *source)
{
    struct message *message = CONTAINER(source, struct message, source);
    source_free(message->ahead);
    source_free(message->content);
    while (message->layers > 1) {
        layer_free(top(message));
        message->layers--;
    }
    source_free(message->raw);
    esk_set_free(message->esks);
    verdict_free(message->signatures);
    failure_destroy(&message->inside);
    failure_destroy(&message->failure);
    free(message);
}

static const struct source_ops message_ops = {
    .peek = message_peek, .consume = message_consume, .finish = message_finish, .free = message_free};

static const struct source_ops message_seek_ops = {.peek = message_peek,
                                                   .consume = message_consume,
                                                   .skip = message_skip,
                                                   .finish = message_finish,
                                                   .free = message_free};

/* Whether the content stands in AEAD as it is. */
static bool can_seek(const struct message *message)
{
    const struct layer *outer = &message->layer[1];
    if (!message->params.seek || message->layers < 2 || !outer->encrypted)
        return false;
    for (unsigned i = 2; i < message->layers; i++)
        if (message->layer[i].inner)
            return false;
    return outer->protection == PROTECT_PACKET_20 || outer->protection == PROTECT_SEIPD_2;
}

/* Whether the first packet belongs to an encrypted message: then decryption brings a thread of its own for reading. */
static gpg_error_t begins_encrypted(struct source *raw, bool *ret)
{
    const void *bytes;
    size_t n;
    gpg_error_t err = source_peek(raw, &bytes, &n);
    if (err)
        return err;
    unsigned first = n ? *(const uint8_t *)bytes : 0;
    unsigned type = first & 0x40 ? first & 63 : (first >> 2) & 15;
    *ret = type == PACKET_PKESK || type == PACKET_SKESK || type == PACKET_SEIPD || type == PACKET_AEAD;
    return 0;
}

/* Armor is taken off, and where it pays a thread put behind. */
static gpg_error_t open_raw(struct run *run, struct failure *failure, unsigned jobs, struct source *takes_raw,
                            struct source **ret, bool *ret_armored)
{
    struct source *raw = takes_raw;
    bool armored = false, encrypted = false;
    gpg_error_t err = armor_detect(raw, &armored);
    if (!err && armored) {
        struct source *text = raw;
        raw = NULL;
        err = armor_source_new(failure, text, NULL, false, &raw);
    }
    if (!err && jobs)
        err = begins_encrypted(raw, &encrypted);
    if (!err && jobs && !encrypted) {
        const struct block_job hop = {.block_size = HOP};
        struct source *below = raw;
        raw = NULL;
        err = block_source_new(run, &hop, 1, below, &raw);
    }
    if (err)
        source_free(raw);
    else
        *ret = raw;
    *ret_armored = armored;
    return err;
}

gpg_error_t message_source_new(struct run *run, const struct read_params *params, struct source *takes_raw,
                               struct source **ret)
{
    struct message *message = calloc(1, sizeof *message);
    if (!message) {
        gpg_error_t err = gpg_error_from_syserror();
        source_free(takes_raw);
        return err;
    }
    source_init(&message->source, &message_ops);
    failure_init(&message->failure);
    failure_init(&message->inside);
    message->run = run;
    message->params = *params;
    bool armored = false;
    message->esks = esk_set_new();
    message->signatures = verdict_new(&message->params);
    gpg_error_t err = message->esks && message->signatures ? 0 : gpg_error(GPG_ERR_ENOMEM);
    if (err)
        source_free(takes_raw);
    else
        err = open_raw(run, &message->failure, params->jobs, takes_raw, &message->raw, &armored);
    message->params.seek = params->seek && !armored;
    if (!err) {
        message->verdict = verdict_message(message->signatures);
        message->layer[0].packets = message->raw;
        message->layers = 1;
        err = descend(message);
    }
    if (!err && can_seek(message)) {
        message->source.ops = &message_seek_ops;
        packet_body_assume_equal_parts(message->content);
    } else if (!err && params->jobs && !is_light(message)) {
        err = run_ahead(message);
    }
    if (err) {
        err = tell(message, err);
        source_free(&message->source);
        return err;
    }
    *ret = &message->source;
    return 0;
}

bool message_seeks(const struct source *message)
{
    return message->ops == &message_seek_ops;
}

const struct message_verdict *message_verdict(const struct source *message)
{
    return CONTAINER(message, struct message, source)->verdict;
}

/* --- Detached signatures --- */

static gpg_error_t read_detached(struct verdict *verdict, struct failure *failure, struct source *packets)
{
    bool any = false;
    for (;;) {
        struct packet packet;
        bool end;
        gpg_error_t err = packet_next(failure, packets, &packet, &end);
        if (err)
            return err;
        if (end)
            break;
        if (packet.type != PACKET_SIGNATURE && !is_ignored(&packet))
            return fail(failure, gpg_error(any ? GPG_ERR_INV_PACKET : GPG_ERR_NO_DATA),
                        "a detached signature is expected, and a packet of type %u found", packet.type);
        uint8_t *body;
        size_t n;
        err = packet_body_read(failure, &packet, packets, SIGNATURE_BODY_MAX, &body, &n);
        if (err)
            return err;
        if (packet.type == PACKET_SIGNATURE) {
            err = verdict_prefix(verdict, failure, body, n);
            any = true;
        }
        free(body);
        if (err)
            return err;
    }
    return any ? 0 : fail(failure, gpg_error(GPG_ERR_NO_DATA), "there is no signature");
}

static gpg_error_t hash_content(struct verdict *verdict, struct source *content)
{
    for (;;) {
        const void *bytes;
        size_t n;
        gpg_error_t err = source_peek(content, &bytes, &n);
        if (err)
            return err;
        if (!n)
            return source_finish(content);
        verdict_update(verdict, bytes, n);
        source_consume(content, n);
    }
}

gpg_error_t message_verify_detached(struct run *run, const struct read_params *params, struct source *takes_signatures,
                                    struct source *takes_content, struct message_verdict **ret)
{
    struct failure *failure = run_failure(run);
    struct source *packets = NULL, *content = takes_content;
    struct verdict *verdict = verdict_new(params);
    bool armored;
    gpg_error_t err = open_raw(run, failure, 0, takes_signatures, &packets, &armored);
    if (!err && !verdict)
        err = gpg_error(GPG_ERR_ENOMEM);
    if (!err)
        err = read_detached(verdict, failure, packets);
    if (!err)
        err = source_finish(packets);
    if (!err && params->jobs) {
        const struct block_job hop = {.block_size = HOP};
        content = NULL;
        err = block_source_new(run, &hop, 1, takes_content, &content);
    }
    if (!err)
        err = hash_content(verdict, content);
    if (!err)
        err = verdict_content_end(verdict, NULL);
    source_free(content);
    source_free(packets);
    if (err) {
        verdict_free(verdict);
        return fail(failure, err, "the signature cannot be checked: %s", gpg_strerror(err));
    }
    struct message_verdict *message = verdict_take(verdict);
    message->complete = true;
    *ret = message;
    return 0;
}
