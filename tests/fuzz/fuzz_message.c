/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Messages, read to the end. What begins like a message is one, for some sample keys and one passphrase; below the
 * encryption, where a changed octet would only ever fail the check of integrity, the fuzzer gets by a first octet:
 *   0  detached signatures over a fixed content
 *   1  packets to be encrypted with an MDC
 *   2  packets to be encrypted in packet 20 (OCB)
 *   3  packets to be encrypted in SEIPD 2 (GCM)
 *   4  a whole message, read with --ignore-mdc-error and a session key given
 */
#include "fuzz_pgp.h"

#include "pgp/aead.h"
#include "pgp/framing.h"
#include "pgp/mdc.h"
#include "pgp/message_read.h"
#include "pgp/session_key.h"

#define NOW        1717243200U /* 2024-06-01 */
#define OUTPUT_MAX (1024 * 1024)
#define INPUT_MAX  (64 * 1024)
#define PASSPHRASE "correct horse 7"

/* Key derivations of 60 MB make an input slow, and nothing else: few of them, and for every sixteenth input only. */
#define SLOW_MAX         4
#define SLOW_EVERY       16
#define CHEAP_COUNT_CODE 0x90

/* Inputs of which length are read with threads as well. */
#define THREADED_EVERY 8

/* One for all inputs: loading keys costs more than reading a message. */
static struct keystore *keystore;

static struct keystore *load_keys(void)
{
    static const char *const names[] = {"rsa2048", "dsaelg",   "p256",   "ed25519", "ed25519n", "ed448",
                                        "multi",   "v4x25519", "v6x448", "signsub", "v6x25519"};
    struct keystore *store = keystore_new(NULL);
    FUZZ_CHECK(store);
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        char path[512];
        snprintf(path, sizeof path, TESTDATA "/samples/keys/%s.sec.asc", names[i]);
        FUZZ_CHECK(!keystore_add_secret_file(store, path, NULL));
    }
    return store;
}

/* What the events and the verdict must agree on. */
struct seen {
    unsigned plaintexts, okay, failed, good_mdc, verdicts;
};

static void event(void *context, const struct message_event *event)
{
    struct seen *seen = context;
    seen->plaintexts += event->kind == EVENT_PLAINTEXT;
    seen->okay += event->kind == EVENT_DECRYPTION_OKAY;
    seen->failed += event->kind == EVENT_DECRYPTION_FAILED;
    seen->good_mdc += event->kind == EVENT_GOOD_MDC;
    seen->verdicts += event->kind == EVENT_SIGNATURE;
    FUZZ_CHECK(event->kind != EVENT_WARNING || *event->text);
    FUZZ_CHECK(event->kind != EVENT_SESSION_KEY || event->session_key->key->n);
}

static void check_verdict(const struct message_verdict *verdict, const struct seen *seen)
{
    FUZZ_CHECK(verdict->signatures == verdict->good + verdict->bad + verdict->unknown);
    FUZZ_CHECK(verdict->signatures == seen->verdicts);
    FUZZ_CHECK(verdict->signatures <= MESSAGE_SIGNATURES_MAX);
    for (unsigned i = 0; i < verdict->signatures; i++) {
        const struct signature_verdict *one = &verdict->verdict[i];
        bool good = one->status == SIGNATURE_GOOD || one->status == SIGNATURE_GOOD_KEY_EXPIRED;
        FUZZ_CHECK(good == !one->code);
        if (good)
            FUZZ_CHECK(one->signature && one->certificate && one->issuer_n &&
                       one->key_number < certificate_keys(one->certificate));
    }
}

struct outcome {
    gpg_err_code_t code;
    uint64_t given, hash;
    unsigned good, bad, unknown;
};

static struct outcome read_once(struct run *run, const uint8_t *bytes, size_t n, size_t step, struct read_params params)
{
    struct outcome outcome = {0};
    struct source *message = NULL;
    struct seen seen = {0};
    params.context = &seen;
    params.event = event;
    gpg_error_t err = message_source_new(run, &params, fuzz_source(bytes, n, step), &message);
    outcome.code = gpg_err_code(err);
    if (err)
        return outcome;
    const struct message_verdict *verdict = message_verdict(message);
    err = fuzz_read_all(message, params.max_output, &outcome.given, &outcome.hash);
    if (!err)
        err = source_finish(message);
    FUZZ_CHECK(!err == verdict->complete);
    FUZZ_CHECK(seen.plaintexts <= 1 && seen.okay <= 1 && seen.failed <= 1);
    if (!err) {
        FUZZ_CHECK(seen.plaintexts == 1 && !seen.failed && seen.okay == verdict->encrypted);
        FUZZ_CHECK(!verdict->encrypted || verdict->integrity_ok != verdict->unprotected);
    }
    check_verdict(verdict, &seen);
    outcome.code = gpg_err_code(err);
    outcome.good = verdict->good;
    outcome.bad = verdict->bad;
    outcome.unknown = verdict->unknown;
    source_free(message);
    return outcome;
}

/* With threads it must come to the same. */
static void read_message(const uint8_t *bytes, size_t n, size_t step, struct read_params params)
{
    struct outcome alone = read_once(NULL, bytes, n, step, params), threaded;
    if (n % THREADED_EVERY)
        return;
    struct run *run = run_new();
    FUZZ_CHECK(run);
    params.jobs = 2;
    threaded = read_once(run, bytes, n, step, params);
    run_free(run);
    /* Damage of compressed data is found sooner or later than a flaw in what comes out of it: that depends on the sizes
     * of the reads. */
    if (threaded.code != GPG_ERR_COMPR_FAILED && alone.code != GPG_ERR_COMPR_FAILED)
        FUZZ_CHECK(threaded.code == alone.code);
    FUZZ_CHECK(!threaded.code == !alone.code);
    if (!alone.code)
        FUZZ_CHECK(threaded.given == alone.given && threaded.hash == alone.hash && threaded.good == alone.good &&
                   threaded.bad == alone.bad && threaded.unknown == alone.unknown);
}

static void read_detached(const uint8_t *bytes, size_t n, struct read_params params)
{
    static const char content[] = "what the signatures are over";
    struct message_verdict *verdict = NULL;
    struct seen seen = {0};
    params.context = &seen;
    params.event = event;
    struct source *signatures = fuzz_source(bytes, n, 0), *signed_source = fuzz_source(content, sizeof content, 0);
    if (message_verify_detached(NULL, &params, signatures, signed_source, &verdict))
        return;
    check_verdict(verdict, &seen);
    message_verdict_free(verdict);
}

/* ---- encryption of what the fuzzer makes up ---- */

static struct session_key fixed_key(void)
{
    static const uint8_t octets[32] = "no secret at all, but fixed.....";
    struct session_key key = {.cipher = CIPHER_AES256, .key = secret_from(octets, sizeof octets)};
    FUZZ_CHECK(key.key);
    return key;
}

/* The body of the encrypted packet behind its header, into SINK. */
static void encrypt(unsigned protection, const struct session_key *key, const uint8_t *bytes, size_t n,
                    struct sink *takes_sink)
{
    struct aead_params params = {.kind = protection == 3 ? AEAD_SEIPD_2 : AEAD_PACKET_20,
                                 .cipher = CIPHER_AES256,
                                 .aead = protection == 3 ? AEAD_GCM : AEAD_OCB,
                                 .chunk_octet = 4};
    uint8_t header[AEAD_HEADER_MAX] = {1};
    struct sink *inside;
    if (protection == 1) {
        FUZZ_CHECK(!sink_write(takes_sink, header, 1));
        FUZZ_CHECK(!mdc_sink_new(NULL, CIPHER_AES256, key->key, 0, NULL, takes_sink, &inside));
    } else {
        FUZZ_CHECK(!sink_write(takes_sink, header, aead_put_header(&params, header)));
        FUZZ_CHECK(!aead_sink_new(NULL, &params, key->key, 0, NULL, takes_sink, &inside));
    }
    FUZZ_CHECK(!sink_write(inside, bytes, n));
    FUZZ_CHECK(!sink_finish(inside));
    sink_free(inside);
}

static void read_encrypted(unsigned protection, const uint8_t *bytes, size_t n, struct read_params params)
{
    struct session_key key = fixed_key();
    struct sink *body = NULL, *message = memory_sink_new(2 * INPUT_MAX);
    FUZZ_CHECK(message);
    FUZZ_CHECK(!packet_body_sink(protection == 2 ? PACKET_AEAD : PACKET_SEIPD, 512, message, true, &body));
    size_t message_n;
    struct sink *keeps = body;
    encrypt(protection, &key, bytes, n, keeps);
    const uint8_t *message_bytes = memory_sink_bytes(message, &message_n);
    params.session_key = &key;
    read_message(message_bytes, message_n, n % 100, params);
    sink_free(message);
    session_key_clear(&key);
}

/* ---- */

/* What PACKET of RAW costs: a derivation of some megabytes for the passphrase, or nothing much. */
static bool is_slow_packet(const struct packet *packet, struct source *raw)
{
    uint8_t *body;
    size_t n;
    struct esk *esk;
    if (packet->type != PACKET_SKESK || packet_body_read(NULL, packet, raw, ESK_BODY_MAX, &body, &n))
        return false;
    bool slow = false;
    if (!esk_parse(NULL, packet->type, body, n, &esk)) {
        slow = esk->s2k.mode == S2K_ITERATED && esk->s2k.count > CHEAP_COUNT_CODE;
        esk_free(esk);
    }
    free(body);
    return slow;
}

/* Passphrase packets of a binary message that take long. */
static unsigned slow_packets(const uint8_t *bytes, size_t n)
{
    struct source *raw = fuzz_source(bytes, n, 0);
    struct packet packet;
    unsigned count = 0;
    bool end;
    while (!packet_next(NULL, raw, &packet, &end) && !end && packet.form == LENGTH_DEFINITE) {
        if (packet.type == PACKET_SKESK)
            count += is_slow_packet(&packet, raw);
        else if (source_skip(raw, packet.length))
            break;
    }
    source_free(raw);
    return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    const struct passphrase_source passphrases = {.ask = fuzz_passphrase, .context = (char[]){PASSPHRASE}};
    fuzz_crypt_init();
    if (!keystore)
        keystore = load_keys();
    if (n > INPUT_MAX)
        return 0;
    struct read_params params = {.keystore = keystore,
                                 .passphrases = &passphrases,
                                 .s2k_limits = {.argon2_memory = 1024 * 1024},
                                 .max_output = OUTPUT_MAX,
                                 .now = NOW};
    unsigned what = n ? bytes[0] : 5;
    if (what == 0) {
        read_detached(bytes + 1, n - 1, params);
    } else if (what <= 3) {
        read_encrypted(what, bytes + 1, n - 1, params);
    } else if (what == 4) {
        struct session_key key = fixed_key();
        params.session_key = &key;
        params.ignore_mdc_error = true;
        params.allow_weak_digests = true;
        read_message(bytes + 1, n - 1, 7, params);
        session_key_clear(&key);
    } else if (slow_packets(bytes, n) <= (n % SLOW_EVERY ? 0 : SLOW_MAX)) {
        read_message(bytes, n, n % 100, params);
    }
    return 0;
}
