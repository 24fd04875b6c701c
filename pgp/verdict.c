/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "verdict.h"

#include <stdlib.h>
#include <string.h>

#define V5_LITERAL_MAX (2 + 255 + 4)

/* What callers see, with what it points to. */
struct outcome {
    struct message_verdict message;
    struct signature_verdict list[MESSAGE_SIGNATURES_MAX];
    struct signature *signature[MESSAGE_SIGNATURES_MAX]; /* owned; NULL where list has none */
};

/* A digest being taken for a signature. */
struct announced {
    bool one_pass; /* its signature comes after the content */
    bool done;     /* has its verdict */
    bool hashed;   /* NUMBER is valid: the algorithm is known */
    unsigned layer;
    unsigned number; /* in the hash set */
    uint8_t digest;
    bool text;
    uint8_t salt[64];
    uint8_t salt_n;
    struct one_pass packet;      /* of one-pass packets of known versions */
    struct signature *signature; /* of prefix signatures; NULL: of an unknown version */
};

struct verdict {
    const struct read_params *params;
    struct hash_set *hashes;
    struct announced announced[MESSAGE_SIGNATURES_MAX];
    unsigned n;
    struct outcome *outcome;
    uint8_t literal[V5_LITERAL_MAX]; /* as version 5 signatures hash it */
    size_t literal_n;                /* 0: detached */
};

void message_verdict_free(struct message_verdict *message)
{
    if (!message)
        return;
    struct outcome *outcome = CONTAINER(message, struct outcome, message);
    for (unsigned i = 0; i < message->signatures; i++) {
        certificate_free(outcome->list[i].certificate);
        signature_free(outcome->signature[i]);
    }
    free(outcome);
}

struct verdict *verdict_new(const struct read_params *params)
{
    struct verdict *verdict = calloc(1, sizeof *verdict);
    if (!verdict)
        return NULL;
    verdict->params = params;
    verdict->hashes = hash_set_new();
    verdict->outcome = calloc(1, sizeof *verdict->outcome);
    if (!verdict->hashes || !verdict->outcome) {
        verdict_free(verdict);
        return NULL;
    }
    verdict->outcome->message.verdict = verdict->outcome->list;
    return verdict;
}

void verdict_free(struct verdict *verdict)
{
    if (!verdict)
        return;
    for (unsigned i = 0; i < verdict->n; i++)
        signature_free(verdict->announced[i].signature);
    hash_set_free(verdict->hashes);
    if (verdict->outcome)
        message_verdict_free(&verdict->outcome->message);
    free(verdict);
}

struct message_verdict *verdict_message(struct verdict *verdict)
{
    return &verdict->outcome->message;
}

struct message_verdict *verdict_take(struct verdict *takes_verdict)
{
    struct message_verdict *message = &takes_verdict->outcome->message;
    takes_verdict->outcome = NULL;
    verdict_free(takes_verdict);
    return message;
}

void verdict_update(struct verdict *verdict, const void *bytes, size_t n)
{
    hash_set_update(verdict->hashes, bytes, n);
}

/* Room for one more, with its digest begun. An algorithm that we do not know is left to the verdict. */
static gpg_error_t announce(struct verdict *verdict, struct failure *failure, const struct announced *announced)
{
    if (verdict->n == MESSAGE_SIGNATURES_MAX)
        return fail(failure, gpg_error(GPG_ERR_TOO_MANY), "the message has more than %u signatures",
                    MESSAGE_SIGNATURES_MAX);
    struct announced *slot = &verdict->announced[verdict->n];
    *slot = *announced;
    if (slot->digest) {
        gpg_error_t err =
            hash_set_add(verdict->hashes, slot->digest, slot->salt, slot->salt_n, slot->text, &slot->number);
        if (err && gpg_err_code(err) != GPG_ERR_DIGEST_ALGO)
            return err;
        slot->hashed = !err;
    }
    verdict->n++;
    return 0;
}

gpg_error_t verdict_announce(struct verdict *verdict, struct failure *failure, unsigned layer, const uint8_t *one_pass,
                             size_t n)
{
    struct announced announced = {.one_pass = true, .layer = layer};
    struct one_pass *packet = &announced.packet;
    gpg_error_t err = one_pass_parse(failure, one_pass, n, packet);
    if (err && gpg_err_code(err) != GPG_ERR_UNKNOWN_VERSION)
        return err;
    if (!err) {
        announced.digest = packet->digest;
        announced.text = packet->type == SIG_TEXT;
        announced.salt_n = packet->salt_n;
        memcpy(announced.salt, packet->salt, packet->salt_n);
    }
    return announce(verdict, failure, &announced);
}

static gpg_error_t parse_signature(struct failure *failure, const uint8_t *bytes, size_t n, struct signature **ret)
{
    *ret = NULL;
    gpg_error_t err = signature_parse(failure, bytes, n, ret);
    return gpg_err_code(err) == GPG_ERR_UNKNOWN_VERSION ? 0 : err;
}

gpg_error_t verdict_prefix(struct verdict *verdict, struct failure *failure, const uint8_t *bytes, size_t n)
{
    struct announced announced = {0};
    gpg_error_t err = parse_signature(failure, bytes, n, &announced.signature);
    if (err)
        return err;
    const struct signature *signature = announced.signature;
    if (signature) {
        announced.digest = signature->digest;
        announced.text = signature->type == SIG_TEXT;
        announced.salt_n = signature->salt_n;
        memcpy(announced.salt, signature->salt, signature->salt_n);
    }
    err = announce(verdict, failure, &announced);
    if (err)
        signature_free(announced.signature);
    return err;
}

/* --- Judging --- */

static void set_issuer(struct signature_verdict *one, const uint8_t *fpr, unsigned fpr_n, const uint8_t *keyid)
{
    if (fpr_n) {
        memcpy(one->issuer, fpr, fpr_n);
        one->issuer_n = (uint8_t)fpr_n;
    } else if (keyid) {
        memcpy(one->issuer, keyid, 8);
        one->issuer_n = 8;
    }
}

static void say(struct signature_verdict *one, enum signature_status status, gpg_err_code_t code)
{
    one->status = status;
    one->code = code ? gpg_error(code) : 0;
}

/* A right value by a key that is ours to judge: may it, and when. */
static void judge_key(const struct read_params *params, struct signature_verdict *one)
{
    const struct signature *signature = one->signature;
    const struct digest_info *digest = algo_digest(signature->digest);
    uint32_t created = signature->created;
    if (signature->critical_unknown || (signature->type != SIG_BINARY && signature->type != SIG_TEXT)) {
        say(one, SIGNATURE_NOT_ALLOWED, GPG_ERR_BAD_SIGNATURE);
        return;
    }
    if (digest->weak && !params->allow_weak_digests) {
        say(one, SIGNATURE_WEAK, GPG_ERR_DIGEST_ALGO);
        return;
    }
    switch (certificate_key_state(one->certificate, one->key_number, created)) {
    case KEY_VALID:
        break;
    case KEY_EXPIRED:
        say(one, SIGNATURE_KEY_EXPIRED, GPG_ERR_KEY_EXPIRED);
        return;
    case KEY_REVOKED:
    case KEY_REVOKED_SOFT:
        say(one, SIGNATURE_KEY_REVOKED, GPG_ERR_CERT_REVOKED);
        return;
    case KEY_UNBOUND:
        say(one, SIGNATURE_NOT_ALLOWED, GPG_ERR_UNUSABLE_PUBKEY);
        return;
    case KEY_NOT_YET:
        say(one, SIGNATURE_NOT_ALLOWED, GPG_ERR_TIME_CONFLICT);
        return;
    }
    if (!(certificate_key_uses(one->certificate, one->key_number) & KEY_SIGNS))
        say(one, SIGNATURE_NOT_ALLOWED, GPG_ERR_WRONG_KEY_USAGE);
    else if (created > params->now && created - params->now > SIGNATURE_CLOCK_SKEW)
        say(one, SIGNATURE_NOT_ALLOWED, GPG_ERR_TIME_CONFLICT);
    else if (signature->expires && (uint64_t)created + signature->expires <= params->now)
        say(one, SIGNATURE_EXPIRED, GPG_ERR_SIG_EXPIRED);
    else if (certificate_key_state(one->certificate, one->key_number, params->now) == KEY_EXPIRED)
        say(one, SIGNATURE_GOOD_KEY_EXPIRED, 0);
    else
        say(one, SIGNATURE_GOOD, 0);
}

/* MD is taken; NULL: its digest was not taken. */
static void judge(const struct verdict *verdict, struct signature_verdict *one, gcry_md_hd_t takes_md)
{
    const struct signature *signature = one->signature;
    gcry_md_hd_t md = takes_md;
    set_issuer(one, signature->issuer_fpr, signature->issuer_fpr_n,
               signature->has_issuer_keyid ? signature->issuer_keyid : NULL);
    struct keystore *keystore = verdict->params->keystore;
    if (!keystore || !one->issuer_n ||
        keystore_issuer(keystore, one->issuer, one->issuer_n, &one->certificate, &one->key_number)) {
        one->certificate = NULL;
        say(one, SIGNATURE_NO_KEY, GPG_ERR_NO_PUBKEY);
    } else if (!signature->parts.n || !algo_digest(signature->digest)) {
        say(one, SIGNATURE_UNSUPPORTED, GPG_ERR_NOT_SUPPORTED);
    } else if (!md) {
        say(one, SIGNATURE_BAD, GPG_ERR_BAD_SIGNATURE);
    } else {
        const struct key *key = certificate_key(one->certificate, one->key_number);
        gpg_error_t err =
            signature_check(signature, key, md, verdict->literal_n ? verdict->literal : NULL, verdict->literal_n);
        md = NULL;
        if (!err)
            judge_key(verdict->params, one);
        else if (gpg_err_code(err) == GPG_ERR_NOT_SUPPORTED)
            say(one, SIGNATURE_UNSUPPORTED, GPG_ERR_NOT_SUPPORTED);
        else
            say(one, SIGNATURE_BAD, GPG_ERR_BAD_SIGNATURE);
    }
    gcry_md_close(md);
}

static void count(struct message_verdict *message, enum signature_status status)
{
    switch (status) {
    case SIGNATURE_GOOD:
    case SIGNATURE_GOOD_KEY_EXPIRED:
        message->good++;
        break;
    case SIGNATURE_EXPIRED:
    case SIGNATURE_KEY_EXPIRED:
    case SIGNATURE_KEY_REVOKED:
    case SIGNATURE_BAD:
    case SIGNATURE_WEAK:
    case SIGNATURE_NOT_ALLOWED:
        message->bad++;
        break;
    case SIGNATURE_NO_KEY:
    case SIGNATURE_UNSUPPORTED:
    case SIGNATURE_MISSING:
        message->unknown++;
        break;
    }
}

/* The verdict on ANNOUNCED, whose SIGNATURE (taken) is NULL where it is missing or of an unknown version. There is
 * room: one verdict for each announced one. */
static gpg_error_t conclude(struct verdict *verdict, struct announced *announced, struct signature *takes_signature,
                            bool missing)
{
    struct outcome *outcome = verdict->outcome;
    struct message_verdict *message = &outcome->message;
    struct signature_verdict *one = &outcome->list[message->signatures];
    gcry_md_hd_t md = NULL;
    gpg_error_t err = 0;
    if (announced->hashed && takes_signature)
        err = hash_set_copy(verdict->hashes, announced->number, &md);
    if (err) {
        signature_free(takes_signature);
        return err;
    }
    announced->done = true;
    outcome->signature[message->signatures++] = takes_signature;
    one->signature = takes_signature;
    if (takes_signature) {
        judge(verdict, one, md);
    } else {
        set_issuer(one, announced->packet.fpr, announced->packet.fpr_n,
                   announced->packet.version == 3 ? announced->packet.keyid : NULL);
        if (missing)
            say(one, SIGNATURE_MISSING, GPG_ERR_NO_DATA);
        else
            say(one, SIGNATURE_UNSUPPORTED, GPG_ERR_NOT_SUPPORTED);
    }
    count(message, one->status);
    if (verdict->params->event)
        verdict->params->event(verdict->params->context,
                               &(struct message_event){.kind = EVENT_SIGNATURE, .verdict = one, .code = one->code});
    return 0;
}

gpg_error_t verdict_content_end(struct verdict *verdict, const struct literal *literal)
{
    if (literal) {
        uint8_t *to = verdict->literal;
        to[0] = literal->format;
        to[1] = literal->name_n;
        memcpy(to + 2, literal->name, literal->name_n);
        put_be32(to + 2 + literal->name_n, literal->date);
        verdict->literal_n = 6u + literal->name_n;
    }
    for (unsigned i = 0; i < verdict->n; i++) {
        struct announced *announced = &verdict->announced[i];
        if (announced->one_pass)
            continue;
        struct signature *signature = announced->signature;
        announced->signature = NULL;
        gpg_error_t err = conclude(verdict, announced, signature, false);
        if (err)
            return err;
    }
    return 0;
}

unsigned verdict_pending(const struct verdict *verdict, unsigned layer)
{
    unsigned n = 0;
    for (unsigned i = 0; i < verdict->n; i++)
        n += verdict->announced[i].one_pass && !verdict->announced[i].done && verdict->announced[i].layer == layer;
    return n;
}

static bool announces(const struct announced *announced, const struct signature *signature)
{
    return announced->hashed && announced->digest == signature->digest &&
           announced->text == (signature->type == SIG_TEXT) && announced->salt_n == signature->salt_n &&
           !memcmp(announced->salt, signature->salt, signature->salt_n);
}

/* The one-pass packet that a signature after the content closes: the last one pending. One further out that announces
 * its digest is taken where the last does not: some writers keep the order of the one-pass packets. */
static struct announced *announced_by(struct verdict *verdict, unsigned layer, const struct signature *signature)
{
    struct announced *last = NULL;
    for (unsigned i = verdict->n; i-- > 0;) {
        struct announced *announced = &verdict->announced[i];
        if (!announced->one_pass || announced->done || announced->layer != layer)
            continue;
        if (!signature || announces(announced, signature))
            return announced;
        if (!last)
            last = announced;
    }
    return last;
}

gpg_error_t verdict_signature(struct verdict *verdict, struct failure *failure, unsigned layer, const uint8_t *bytes,
                              size_t n)
{
    struct signature *signature;
    gpg_error_t err = parse_signature(failure, bytes, n, &signature);
    if (err)
        return err;
    struct announced *announced = announced_by(verdict, layer, signature);
    if (!announced) {
        signature_free(signature);
        return fail(failure, gpg_error(GPG_ERR_INV_PACKET), "a signature follows the content that nothing announced");
    }
    if (signature && !announces(announced, signature))
        announced->hashed = false; /* the digest that was taken is not this signature's */
    return conclude(verdict, announced, signature, false);
}

void verdict_layer_end(struct verdict *verdict, unsigned layer)
{
    for (unsigned i = verdict->n; i-- > 0;) {
        struct announced *announced = &verdict->announced[i];
        if (announced->one_pass && !announced->done && announced->layer == layer &&
            conclude(verdict, announced, NULL, true))
            return; /* cannot be: without a signature nothing is copied */
    }
}
