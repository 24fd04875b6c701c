/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "events.h"

#include "trust.h"

#include <gcrypt.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define HEX_MAX (2 * KEY_FPR_MAX + 1)

static const char *events_hex(const uint8_t *bytes, size_t n, char out[HEX_MAX])
{
    for (size_t i = 0; i < n && i < KEY_FPR_MAX; i++)
        snprintf(out + 2 * i, 3, "%02X", bytes[i]);
    out[2 * (n < KEY_FPR_MAX ? n : KEY_FPR_MAX)] = '\0';
    return out;
}

static const char *events_uid(const struct signature_verdict *verdict)
{
    bool revoked = false;
    if (!verdict->certificate || certificate_uids(verdict->certificate) == 0)
        return "";
    return certificate_uid(verdict->certificate, 0, &revoked);
}

/* The issuer's id as 16 hex digits of a key id, or a fingerprint where the signature has only that. */
static const char *events_issuer(const struct signature_verdict *verdict, char out[HEX_MAX])
{
    if (verdict->certificate) {
        const struct key *key = certificate_key(verdict->certificate, verdict->key_number);
        return events_hex(key->keyid, sizeof key->keyid, out);
    }
    /* The key id of a version 4 fingerprint is its end, of later versions its start (RFC 9580 5.5.4). */
    if (verdict->issuer_n == 20)
        return events_hex(verdict->issuer + 12, 8, out);
    return events_hex(verdict->issuer, verdict->issuer_n < 8 ? verdict->issuer_n : 8, out);
}

static void events_enc_to(const struct events *events, const struct message_event *event, const char *keyword)
{
    const struct esk *esk = event->esk;
    char id[HEX_MAX];
    if (esk->symmetric)
        return;
    if (esk->version == 6 && esk->fpr_n >= 8)
        events_hex(esk->fpr_n == 20 ? esk->fpr + 12 : esk->fpr, 8, id);
    else
        events_hex(esk->keyid, sizeof esk->keyid, id);
    if (!strcmp(keyword, "ENC_TO")) {
        status_line(events->program->status, keyword, "%s %u 0", id, esk->algo);
        report_verbose(events->program->report, "encrypted with %s key, ID %s",
                       algo_pubkey_name(esk->algo) ? algo_pubkey_name(esk->algo) : "an unknown", id);
    } else {
        status_line(events->program->status, keyword, "%s", id);
    }
}

static void events_decryption_key(const struct events *events, const struct message_event *event)
{
    char fpr[HEX_MAX], primary[HEX_MAX];
    if (!event->key)
        return;
    key_fpr_hex(event->key, fpr);
    key_fpr_hex(event->certificate ? certificate_key(event->certificate, 0) : event->key, primary);
    status_key_considered(events->program->status, primary, 0);
    status_line(events->program->status, "DECRYPTION_KEY", "%s %s %c", fpr, primary,
                event->certificate ? trust_owner_letter(stores_trustdb(keys_stores(events->keys)), event->certificate)
                                   : '-');
    report_verbose(events->program->report, "decrypted with key %s", fpr);
}

static void events_session_key(const struct events *events, const struct message_event *event)
{
    if (!events->program->options->show_session_key || !event->session_key->key)
        return;
    char text[8 + 2 * 64 + 1];
    size_t at = (size_t)snprintf(text, sizeof text, "%u:", event->session_key->cipher);
    for (size_t i = 0; i < event->session_key->key->n && at + 3 <= sizeof text; i++)
        at += (size_t)snprintf(text + at, 3, "%02X", event->session_key->key->bytes[i]);
    status_line(events->program->status, "SESSION_KEY", "%s", text);
    report_note(events->program->report, "session key: '%s'", text);
    bytes_wipe(text, sizeof text);
}

static void events_decryption_info(const struct events *events, const struct message_event *event)
{
    const bool mdc = event->protection == PROTECT_SEIPD_1 && event->aead == AEAD_NONE;
    status_line(events->program->status, "DECRYPTION_INFO", "%d %u %u", mdc ? 2 : 0, event->cipher, event->aead);
    report_verbose(events->program->report, "%s encrypted data%s%s", algo_cipher_name(event->cipher),
                   event->aead ? "." : "", event->aead ? algo_aead_name(event->aead) : "");
}

/* ---- signatures ---- */

static void events_sig_id(const struct events *events, const struct signature *signature)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    /* As gpg's: a digest over the algorithms, the time and the values as MPIs, in base 64 without padding. */
    gcry_md_hd_t md;
    uint8_t head[6] = {signature->algo, signature->digest};
    if (gcry_md_open(&md, GCRY_MD_SHA1, 0))
        return;
    put_be32(head + 2, signature->created);
    gcry_md_write(md, head, sizeof head);
    for (unsigned i = 0; i < signature->parts.n; i++) {
        const uint8_t *bytes = signature->parts.part[i].bytes;
        size_t n = signature->parts.part[i].n;
        for (; n && !*bytes; n--)
            bytes++;
        unsigned width = 0;
        while (n && *bytes >> width)
            width++;
        put_be16(head, (uint16_t)(n ? 8 * (n - 1) + width : 0));
        gcry_md_write(md, head, 2);
        gcry_md_write(md, bytes, n);
    }
    const uint8_t *digest = gcry_md_read(md, GCRY_MD_SHA1);
    char text[28];
    unsigned bits = 0, held = 0, at = 0;
    for (unsigned i = 0; i < 20; i++) {
        bits = (bits << 8) | digest[i];
        for (held += 8; held >= 6; held -= 6)
            text[at++] = digits[(bits >> (held - 6)) & 63];
    }
    text[at++] = digits[(bits << (6 - held)) & 63];
    text[at] = '\0';
    gcry_md_close(md);
    const time_t created = (time_t)signature->created;
    struct tm tm;
    char date[16] = "1970-01-01";
    if (gmtime_r(&created, &tm))
        strftime(date, sizeof date, "%Y-%m-%d", &tm);
    status_line(events->program->status, "SIG_ID", "%s %s %u", text, date, signature->created);
}

static void events_valid_sig(const struct events *events, const struct signature_verdict *verdict)
{
    const struct signature *signature = verdict->signature;
    char fpr[HEX_MAX], primary[HEX_MAX], date[16] = "1970-01-01";
    const time_t created = (time_t)signature->created;
    struct tm tm;
    if (gmtime_r(&created, &tm))
        strftime(date, sizeof date, "%Y-%m-%d", &tm);
    key_fpr_hex(certificate_key(verdict->certificate, verdict->key_number), fpr);
    key_fpr_hex(certificate_key(verdict->certificate, 0), primary);
    status_line(events->program->status, "VALIDSIG", "%s %s %u %u %u 0 %u %u %02X %s", fpr, date, signature->created,
                signature->expires ? signature->created + signature->expires : 0, signature->version, signature->algo,
                signature->digest, signature->type, primary);
}

static void events_trust(const struct events *events, struct certificate *certificate)
{
    static const char *const keyword[] = {
        [LEVEL_UNDEFINED] = "TRUST_UNDEFINED", [LEVEL_NEVER] = "TRUST_NEVER",       [LEVEL_MARGINAL] = "TRUST_MARGINAL",
        [LEVEL_FULL] = "TRUST_FULLY",          [LEVEL_ULTIMATE] = "TRUST_ULTIMATE",
    };
    const enum trust_model model = events->program->options->trust_model;
    const enum trust_level trust = trust_level(model, stores_trustdb(keys_stores(events->keys)), certificate);
    status_line(events->program->status, keyword[trust], "0 %s", trust_model_name(model));
    if (trust == LEVEL_NEVER)
        report_warning(events->program->report, "the signer's key is not trusted at all");
    else if (trust < LEVEL_MARGINAL)
        report_warning(
            events->program->report,
            "the signer's key is not certified by anyone you trust: nothing says that it belongs to its owner");
    else if (trust == LEVEL_MARGINAL)
        report_note(events->program->report, "the signer's key is only marginally trusted");
}

static const char *events_verdict_word(enum signature_status status)
{
    switch (status) {
    case SIGNATURE_GOOD:
        return "good signature";
    case SIGNATURE_GOOD_KEY_EXPIRED:
        return "good signature, by a key that has expired since,";
    case SIGNATURE_EXPIRED:
        return "expired signature";
    case SIGNATURE_KEY_EXPIRED:
        return "signature made after the expiry of the key";
    case SIGNATURE_KEY_REVOKED:
        return "signature by a revoked key";
    case SIGNATURE_BAD:
        return "BAD signature";
    case SIGNATURE_WEAK:
        return "signature with a weak digest";
    case SIGNATURE_NOT_ALLOWED:
        return "signature by a key that may not sign";
    case SIGNATURE_UNSUPPORTED:
        return "signature that is not supported";
    case SIGNATURE_NO_KEY:
        return "signature by an unknown key";
    case SIGNATURE_MISSING:
        return "announced signature that is missing";
    }
    return "signature";
}

static void events_err_sig(const struct events *events, const struct signature_verdict *verdict, unsigned reason)
{
    char id[HEX_MAX], fpr[HEX_MAX];
    const struct signature *signature = verdict->signature;
    events_issuer(verdict, id);
    status_line(events->program->status, "ERRSIG", "%s %u %u %02x %u %u %s", id, signature ? signature->algo : 0U,
                signature ? signature->digest : 0U, signature ? signature->type : 0U,
                signature ? signature->created : 0U, reason,
                verdict->issuer_n >= 20 ? events_hex(verdict->issuer, verdict->issuer_n, fpr) : "-");
    if (verdict->status == SIGNATURE_NO_KEY)
        status_line(events->program->status, "NO_PUBKEY", "%s", id);
}

/* ERRSIG's reason codes, doc/DETAILS: 4 unknown algorithm, 9 missing key; others are gpg-error codes. */
static unsigned events_reason(const struct signature_verdict *verdict)
{
    if (verdict->status == SIGNATURE_NO_KEY)
        return 9;
    if (verdict->status == SIGNATURE_UNSUPPORTED)
        return 4;
    return verdict->status == SIGNATURE_WEAK ? 5 : gpg_err_code(verdict->code);
}

static void events_signature(const struct events *events, const struct signature_verdict *verdict)
{
    static const char *const keyword[] = {
        [SIGNATURE_GOOD] = "GOODSIG",          [SIGNATURE_GOOD_KEY_EXPIRED] = "EXPKEYSIG",
        [SIGNATURE_EXPIRED] = "EXPSIG",        [SIGNATURE_KEY_EXPIRED] = "EXPKEYSIG",
        [SIGNATURE_KEY_REVOKED] = "REVKEYSIG", [SIGNATURE_BAD] = "BADSIG",
    };
    struct status *status = events->program->status;
    char id[HEX_MAX];
    const char *uid = events_uid(verdict);
    events_issuer(verdict, id);
    status_line(status, "NEWSIG", "%s", "");
    if (verdict->certificate) {
        char primary[HEX_MAX];
        key_fpr_hex(certificate_key(verdict->certificate, 0), primary);
        status_key_considered(status, primary, 0);
    }

    const bool named = (size_t)verdict->status < ARRAY_SIZE(keyword) && keyword[verdict->status];
    if (!named || !verdict->certificate) {
        events_err_sig(events, verdict, events_reason(verdict));
    } else {
        char *text = status_escape(uid, false);
        if (verdict->status != SIGNATURE_BAD)
            events_sig_id(events, verdict->signature);
        status_line(status, keyword[verdict->status], "%s %s", id, text ? text : "");
        free(text);
        if (verdict->status != SIGNATURE_BAD)
            events_valid_sig(events, verdict);
    }

    const char *word = events_verdict_word(verdict->status);
    char fpr[HEX_MAX] = "";
    if (verdict->certificate)
        key_fpr_hex(certificate_key(verdict->certificate, 0), fpr);
    else if (verdict->issuer_n)
        events_hex(verdict->issuer, verdict->issuer_n, fpr);
    switch (verdict->status) {
    case SIGNATURE_GOOD:
        report_note(events->program->report, "%s by \"%s\", key %s", word, uid, fpr);
        if (certificate_key_revoked(verdict->certificate, verdict->key_number)) {
            status_line(events->program->status, "KEYREVOKED", "%s", "");
            report_warning(events->program->report, "the key %s has been retired since: its older signatures stay good",
                           fpr);
        }
        break;
    case SIGNATURE_GOOD_KEY_EXPIRED:
        report_warning(events->program->report, "%s by \"%s\", key %s", word, uid, fpr);
        break;
    case SIGNATURE_NO_KEY:
    case SIGNATURE_UNSUPPORTED:
    case SIGNATURE_MISSING:
        report_warning(events->program->report, "%s: key %s; it was not checked", word, *fpr ? fpr : "not named");
        break;
    default:
        report_warning(events->program->report, "%s by \"%s\", key %s", word, uid, fpr);
        break;
    }
    /* As gpg, no word on trust where the key has expired. */
    if (verdict->certificate && verdict->status <= SIGNATURE_KEY_REVOKED &&
        verdict->status != SIGNATURE_GOOD_KEY_EXPIRED && verdict->status != SIGNATURE_KEY_EXPIRED)
        events_trust(events, verdict->certificate);
}

void events_message(void *context, const struct message_event *event)
{
    const struct events *events = context;
    struct status *status = events->program->status;
    switch (event->kind) {
    case EVENT_ENC_TO:
        events_enc_to(events, event, "ENC_TO");
        break;
    case EVENT_NO_SECKEY:
        events_enc_to(events, event, "NO_SECKEY");
        break;
    case EVENT_DECRYPTION_KEY:
        events_decryption_key(events, event);
        break;
    case EVENT_SESSION_KEY:
        events_session_key(events, event);
        break;
    case EVENT_BEGIN_DECRYPTION:
        status_line(status, "BEGIN_DECRYPTION", "%s", "");
        break;
    case EVENT_DECRYPTION_INFO:
        events_decryption_info(events, event);
        break;
    case EVENT_PLAINTEXT:
        status_plaintext(status, event->literal->format, event->literal->date, event->literal->name);
        break;
    case EVENT_SIGNATURE:
        events_signature(events, event->verdict);
        break;
    case EVENT_DECRYPTION_OKAY:
        status_line(status, "DECRYPTION_OKAY", "%s", "");
        break;
    case EVENT_DECRYPTION_FAILED:
        status_line(status, "DECRYPTION_FAILED", "%s", "");
        break;
    case EVENT_GOOD_MDC:
        status_line(status, "GOODMDC", "%s", "");
        break;
    case EVENT_END_DECRYPTION:
        status_line(status, "END_DECRYPTION", "%s", "");
        break;
    case EVENT_WARNING:
        report_warning(events->program->report, "%s", event->text);
        break;
    }
}

/* ---- policy ---- */

static gpg_error_t events_unprotected(const struct events *events)
{
    return fail(program_failure(events->program), gpg_error(GPG_ERR_NO_SIGNATURE_SCHEME),
                "the archive is neither encrypted nor signed: nothing was released (--allow-unprotected takes it)");
}

gpg_error_t events_protected(const struct events *events, const struct message_verdict *verdict)
{
    const struct options *options = events->program->options;
    return verdict->encrypted || verdict->announced || options->allow_unprotected || options->salvage
               ? 0
               : events_unprotected(events);
}

/* At least one signature is good and, with --signer, by one of those named. WHAT ends the sentences. */
static gpg_error_t events_required_signer(const struct events *events, const struct message_verdict *verdict,
                                          const char *what)
{
    struct failure *failure = program_failure(events->program);
    const struct options *options = events->program->options;
    if (verdict->good == 0 && verdict->unknown)
        return fail(failure, gpg_error(GPG_ERR_NO_PUBKEY),
                    "a signature is required, and no key to check it with is in '%s'%s", options->home, what);
    if (verdict->good == 0)
        return fail(failure, gpg_error(GPG_ERR_NO_SIGNATURE_SCHEME), "a signature is required, and there is none%s",
                    what);
    if (options->allowed_signers.n == 0)
        return 0;
    for (unsigned i = 0; i < verdict->signatures; i++) {
        const struct signature_verdict *one = &verdict->verdict[i];
        if (one->status != SIGNATURE_GOOD && one->status != SIGNATURE_GOOD_KEY_EXPIRED)
            continue;
        bool allowed = false;
        gpg_error_t err = keys_is_allowed_signer(events->keys, one->certificate, &allowed);
        if (err || allowed)
            return err;
    }
    return fail(failure, gpg_error(GPG_ERR_BAD_SIGNATURE), "none of the signers is one that --signer names%s", what);
}

gpg_error_t events_detached_policy(const struct events *events, const struct message_verdict *verdict)
{
    if (verdict->bad)
        return fail(program_failure(events->program), gpg_error(GPG_ERR_BAD_SIGNATURE),
                    "a signature is not acceptable: do not trust the file");
    return events_required_signer(events, verdict, "");
}

gpg_error_t events_policy(const struct events *events, const struct message_verdict *verdict)
{
    static const char nothing[] = ": nothing was released";
    struct failure *failure = program_failure(events->program);
    const struct options *options = events->program->options;
    if (verdict->bad)
        return fail(failure, gpg_error(GPG_ERR_BAD_SIGNATURE), "a signature is not acceptable%s", nothing);
    if (options->require_signature) {
        gpg_error_t err = events_required_signer(events, verdict, nothing);
        if (err)
            return err;
    }
    if (verdict->encrypted && !verdict->integrity_ok && !verdict->unprotected)
        return fail(failure, gpg_error(GPG_ERR_DECRYPT_FAILED), "the message was not read to its end%s", nothing);
    if (verdict->encrypted || verdict->good || options->allow_unprotected)
        return 0;
    if (!verdict->unknown)
        return events_unprotected(events);
    return fail(failure, gpg_error(GPG_ERR_NO_PUBKEY),
                "the archive is not encrypted, and no key to check its signature with is in '%s'%s "
                "(--allow-unprotected takes it)",
                options->home, nothing);
}
