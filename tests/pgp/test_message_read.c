/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "faulty.h"
#include "samples.h"

#include "pgp/aead.h"
#include "pgp/deflate.h"
#include "pgp/literal.h"
#include "pgp/mdc.h"
#include "pgp/message_read.h"
#include "stream/fd.h"

#define EVENTS_MAX 64

static const struct s2k cheap = {.mode = S2K_ITERATED, .digest = DIGEST_SHA256, .salt = "saltsalt"};

/* What one reading came to. */
struct outcome {
    gpg_error_t code;
    char sentence[FAILURE_SENTENCE_MAX];
    struct gathered content;
    struct message_verdict verdict; /* the counts and flags only */
    enum signature_status status;   /* of the first signature */
    enum message_event_kind event[EVENTS_MAX];
    unsigned events;
    struct session_key session_key; /* kept where the reading began with none */
};

static void outcome_clear(struct outcome *outcome)
{
    gathered_clear(&outcome->content);
    session_key_clear(&outcome->session_key);
}

static void note_event(void *context, const struct message_event *event)
{
    struct outcome *outcome = context;
    if (outcome->events < EVENTS_MAX)
        outcome->event[outcome->events++] = event->kind;
    if (event->kind == EVENT_SESSION_KEY && !outcome->session_key.key) {
        outcome->session_key.cipher = event->session_key->cipher;
        outcome->session_key.key = secret_from(event->session_key->key->bytes, event->session_key->key->n);
    }
}

static gpg_error_t read_all(struct source *message, struct outcome *outcome)
{
    struct sink *sink = faulty_sink_new(&outcome->content, SIZE_MAX);
    gpg_error_t err = pump(message, sink, NULL);
    if (!err)
        err = source_finish(message);
    sink_free(sink);
    const struct message_verdict *verdict = message_verdict(message);
    outcome->verdict = *verdict;
    if (verdict->signatures)
        outcome->status = verdict->verdict[0].status;
    return err;
}

/* FAIL_AT: as faulty_source_new. */
static void read_from(const struct read_params *base, const uint8_t *bytes, size_t n, size_t step, size_t fail_at,
                      struct outcome *ret)
{
    *ret = (struct outcome){0};
    struct run *run = run_new();
    struct read_params params = *base;
    params.event = note_event;
    params.context = ret;
    if (!params.now)
        params.now = 1800000000;
    struct source *message;
    bool freed = false;
    struct source *raw = faulty_source_new(bytes, n, step, fail_at);
    CONTAINER(raw, struct faulty_source, source)->freed = &freed;
    ret->code = message_source_new(run, &params, raw, &message);
    if (!ret->code) {
        ret->code = read_all(message, ret);
        assert_int_equal(ret->verdict.complete, !ret->code);
        source_free(message);
    }
    assert_true(freed);
    gpg_error_t noted = failure_get(run_failure(run), ret->sentence);
    assert_int_equal(gpg_err_code(noted), gpg_err_code(ret->code));
    run_free(run);
}

static gpg_err_code_t code_of(const struct read_params *params, const uint8_t *bytes, size_t n)
{
    struct outcome outcome;
    read_from(params, bytes, n, 0, SIZE_MAX, &outcome);
    gpg_err_code_t code = gpg_err_code(outcome.code);
    outcome_clear(&outcome);
    return code;
}

/* --- Making messages --- */

static void put_literal(struct gathered *to, const void *content, size_t n)
{
    struct sink *sink;
    assert_int_equal(literal_sink_new(512, faulty_sink_new(to, SIZE_MAX), false, &sink), 0);
    assert_int_equal(push(sink, content, n, 0), 0);
}

/* ESK and encrypted packet over the packets in INNER. */
static void put_encrypted(struct gathered *to, enum protection protection, const char *passphrase,
                          const struct gathered *inner)
{
    struct session_key session_key;
    struct secret *secret = secret_from(passphrase, strlen(passphrase));
    struct sink *out = faulty_sink_new(to, SIZE_MAX), *body, *sink;
    unsigned version = protection == PROTECT_SEIPD_1 ? 4 : protection == PROTECT_PACKET_20 ? 5 : 6;
    uint8_t header[AEAD_HEADER_MAX] = {1};
    size_t header_n = 1;
    assert_int_equal(session_key_new(CIPHER_AES256, &session_key), 0);
    assert_int_equal(skesk_write(NULL, version, secret, &cheap, CIPHER_AES256, AEAD_OCB, &session_key, out), 0);
    struct aead_params params = {.kind = protection == PROTECT_PACKET_20 ? AEAD_PACKET_20 : AEAD_SEIPD_2,
                                 .cipher = CIPHER_AES256,
                                 .aead = AEAD_OCB};
    aead_params_fresh(&params);
    if (protection != PROTECT_SEIPD_1)
        header_n = aead_put_header(&params, header);
    assert_int_equal(
        packet_body_sink(protection == PROTECT_PACKET_20 ? PACKET_AEAD : PACKET_SEIPD, 512, out, false, &body), 0);
    assert_int_equal(sink_write(body, header, header_n), 0);
    if (protection == PROTECT_SEIPD_1)
        assert_int_equal(mdc_sink_new(NULL, CIPHER_AES256, session_key.key, 0, NULL, body, &sink), 0);
    else
        assert_int_equal(aead_sink_new(NULL, &params, session_key.key, 0, NULL, body, &sink), 0);
    assert_int_equal(push(sink, inner->bytes, inner->n, 0), 0);
    session_key_clear(&session_key);
    secret_free(secret);
}

static void put_packet(struct gathered *to, unsigned type, const void *body, size_t n)
{
    struct gathered whole;
    struct sink *sink = faulty_sink_new(&whole, SIZE_MAX);
    if (to->n)
        assert_int_equal(sink_write(sink, to->bytes, to->n), 0);
    assert_int_equal(packet_write(sink, type, body, n), 0);
    sink_free(sink);
    gathered_clear(to);
    *to = whole;
}

/* --- Passphrases --- */

/* Says these one after the other. */
struct passphrases {
    const char *const *list;
    unsigned asked;
};

static gpg_error_t ask(void *context, const struct key *key, unsigned attempt, bool is_new, struct secret **ret)
{
    struct passphrases *passphrases = context;
    assert_null(key);
    assert_false(is_new);
    assert_int_equal(attempt, passphrases->asked);
    const char *text = passphrases->list[attempt];
    if (!text)
        return gpg_error(GPG_ERR_NO_PASSPHRASE);
    passphrases->asked++;
    *ret = secret_from(text, strlen(text));
    return 0;
}

/* --- Tests --- */

static void lengths_steps_and_jobs(void **state)
{
    (void)state;
    static uint8_t content[300000];
    static const size_t lengths[] = {0, 1, 500, 512, 513, 1100, 262144, 300000};
    static const char *const right[] = {"right", NULL};
    fill_text(content, sizeof content, 1);
    for (size_t i = 0; i < ARRAY_SIZE(lengths); i++)
        for (unsigned protection = PROTECT_NONE; protection <= PROTECT_SEIPD_2; protection++)
            for (unsigned jobs = 0; jobs <= 2; jobs++)
                for (size_t step = lengths[i] > 2000 ? 999 : 1; step < 4000; step *= 37) {
                    struct passphrases passphrases = {.list = right};
                    const struct passphrase_source source = {.ask = ask, .context = &passphrases};
                    const struct read_params params = {.passphrases = &source, .jobs = jobs};
                    struct gathered literal, message;
                    struct outcome outcome;
                    put_literal(&literal, content, lengths[i]);
                    if (protection)
                        put_encrypted(&message, protection, "right", &literal);
                    const struct gathered *made = protection ? &message : &literal;
                    read_from(&params, made->bytes, made->n, step, SIZE_MAX, &outcome);
                    assert_int_equal(outcome.code, 0);
                    assert_int_equal(outcome.content.n, lengths[i]);
                    if (lengths[i])
                        assert_memory_equal(outcome.content.bytes, content, lengths[i]);
                    assert_int_equal(outcome.verdict.encrypted, protection != PROTECT_NONE);
                    assert_int_equal(outcome.verdict.integrity_ok, protection != PROTECT_NONE);
                    assert_false(outcome.verdict.unprotected);
                    outcome_clear(&outcome);
                    if (protection)
                        gathered_clear(&message);
                    gathered_clear(&literal);
                }
}

/* From the encrypted packet on, every octet matters; and every octet has to be there. */
static void every_flip_and_cut_is_refused(void **state)
{
    (void)state;
    static const char *const right[] = {"right", NULL};
    uint8_t content[150];
    struct gathered literal;
    fill_text(content, sizeof content, 1);
    put_literal(&literal, content, sizeof content);
    for (unsigned protection = PROTECT_SEIPD_1; protection <= PROTECT_SEIPD_2; protection++) {
        struct passphrases passphrases = {.list = right};
        const struct passphrase_source source = {.ask = ask, .context = &passphrases};
        struct read_params params = {.passphrases = &source};
        struct gathered message;
        struct outcome first, outcome;
        put_encrypted(&message, protection, "right", &literal);
        read_from(&params, message.bytes, message.n, 0, SIZE_MAX, &first);
        assert_int_equal(first.code, 0);
        params.session_key = &first.session_key;
        struct packet_view esk;
        assert_true(nth_packet((struct octets){message.bytes, message.n}, PACKET_SKESK, 0, &esk));
        size_t start = (size_t)(esk.body + esk.body_n - message.bytes);
        for (size_t at = 1; at < message.n; at++) {
            for (unsigned bit = 0; at >= start && bit < 8; bit++) {
                params.jobs = (at + bit) % 16 ? 0 : 2;
                message.bytes[at] ^= (uint8_t)(1 << bit);
                read_from(&params, message.bytes, message.n, 40, SIZE_MAX, &outcome);
                if (!outcome.code)
                    fail_msg("protection %u: bit %u of octet %zu changed, and nothing noticed", protection, bit, at);
                if (protection != PROTECT_SEIPD_1 && outcome.content.n) {
                    assert_true(outcome.content.n <= sizeof content);
                    assert_memory_equal(outcome.content.bytes, content, outcome.content.n);
                }
                outcome_clear(&outcome);
                message.bytes[at] ^= (uint8_t)(1 << bit);
            }
            params.jobs = at % 16 ? 0 : 2;
            read_from(&params, message.bytes, at, 40, SIZE_MAX, &outcome);
            assert_true(outcome.code != 0);
            outcome_clear(&outcome);
        }
        outcome_clear(&first);
        gathered_clear(&message);
    }
    gathered_clear(&literal);
}

static void failures_come_through(void **state)
{
    (void)state;
    static const char *const right[] = {"right", NULL};
    struct gathered literal, message;
    put_literal(&literal, "content", 7);
    for (unsigned protection = PROTECT_SEIPD_1; protection <= PROTECT_SEIPD_2; protection++) {
        put_encrypted(&message, protection, "right", &literal);
        for (size_t at = 0; at < message.n; at++)
            for (unsigned jobs = 0; jobs <= 2; jobs += 2) {
                struct passphrases passphrases = {.list = right};
                const struct passphrase_source source = {.ask = ask, .context = &passphrases};
                const struct read_params params = {.passphrases = &source, .jobs = jobs};
                struct outcome outcome;
                read_from(&params, message.bytes, message.n, 20, at, &outcome);
                assert_int_equal(gpg_err_code(outcome.code), FAULT);
                outcome_clear(&outcome);
            }
        gathered_clear(&message);
    }
    gathered_clear(&literal);
}

/* Sequences of packets, as hex. A literal with one octet of content is "cb07 62 00 00000000 78". */
#define LITERAL "cb07 62 00 00000000 78"
static void grammar(void **state)
{
    (void)state;
    static const struct {
        const char *packets;
        gpg_err_code_t code;
    } rows[] = {
        {LITERAL, 0},
        {"ca03 504750" LITERAL, 0},                /* marker before */
        {LITERAL "ca03 504750", 0},                /* and after */
        {"d504 00010203" LITERAL "d500", 0},       /* padding */
        {"fe02 0102" LITERAL "e800", 0},           /* types 62 and 40 are not critical */
        {"e7 00" LITERAL, GPG_ERR_UNKNOWN_PACKET}, /* 39 is */
        {"e2 00" LITERAL, GPG_ERR_UNKNOWN_PACKET},
        {LITERAL "e2 00", GPG_ERR_INV_PACKET},
        {LITERAL LITERAL, GPG_ERR_INV_PACKET},
        {LITERAL "c809 00" LITERAL, GPG_ERR_INV_PACKET},
        {"c80a 00" LITERAL, 0}, /* not compressed */
        {"c813 00" LITERAL LITERAL, GPG_ERR_INV_PACKET},
        {"c80f 00" LITERAL "ca03 504750", 0},
        {"c80a 63" LITERAL, GPG_ERR_NOT_SUPPORTED}, /* compression algorithm 99 */
        {"c801 00", GPG_ERR_INV_PACKET},
        {"c800", GPG_ERR_INV_PACKET},
        {"c80c 00 c80a 00" LITERAL, GPG_ERR_TRUNCATED}, /* the inner one is longer than the outer */
        {"", GPG_ERR_NO_DATA},
        {"ca03 504750", GPG_ERR_NO_DATA},
        {"d200" LITERAL, GPG_ERR_INV_PACKET},
        {"d201 03", GPG_ERR_NOT_SUPPORTED},
        {"d401 02", GPG_ERR_NOT_SUPPORTED},
        {"c905 0102030405", GPG_ERR_UNSUPPORTED_PROTECTION},
        {"c30d 04 09 03 08 7361 6c74 7361 6c74 00", GPG_ERR_TRUNCATED},
        {"c30d 04 09 03 08 7361 6c74 7361 6c74 00" LITERAL, GPG_ERR_INV_PACKET},
        {"c301 0b c100", GPG_ERR_INV_PACKET},
        {"c60d 04 00000000 01 0001 01 0002 03", GPG_ERR_NO_DATA},
        {"d300" LITERAL, GPG_ERR_INV_PACKET},
        {"c40d 03 00 08 01 0000000000000000 01", GPG_ERR_TRUNCATED},
        {"c40d 03 00 08 01 0000000000000000 01" LITERAL, 0}, /* its signature is missing: the verdict says so */
        {"c40c 03 00 08 01 0000000000000000" LITERAL, GPG_ERR_INV_PACKET},
        {"cb05 62 00 000000", GPG_ERR_INV_PACKET},
        {"cb08 62 00 00000000 78", GPG_ERR_TRUNCATED},
        {"80", GPG_ERR_INV_PACKET},
        {"ff", GPG_ERR_TRUNCATED},
    };
    const struct read_params params = {0};
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct octets octets = from_hex(rows[i].packets);
        gpg_err_code_t code = code_of(&params, octets.bytes, octets.n);
        if (code != rows[i].code)
            print_error("%s: %s\n", rows[i].packets, gpg_strerror(gpg_error(code)));
        assert_int_equal(code, rows[i].code);
        free(octets.bytes);
    }
}

static void text_is_no_message(void **state)
{
    (void)state;
    const struct read_params params = {0};
    assert_int_equal(code_of(&params, (const uint8_t *)"hello, this is text\n", 20), GPG_ERR_NO_DATA);
}

static void nesting(void **state)
{
    (void)state;
    const struct read_params params = {0};
    for (unsigned depth = MESSAGE_NESTING_MAX - 1; depth <= MESSAGE_NESTING_MAX + 1; depth++) {
        struct gathered message = {0};
        put_literal(&message, "x", 1);
        for (unsigned i = 0; i < depth; i++) {
            struct gathered outer = {0};
            uint8_t *body = malloc(message.n + 1);
            assert_non_null(body);
            body[0] = COMPRESS_NONE;
            memcpy(body + 1, message.bytes, message.n);
            put_packet(&outer, PACKET_COMPRESSED, body, message.n + 1);
            free(body);
            gathered_clear(&message);
            message = outer;
        }
        assert_int_equal(code_of(&params, message.bytes, message.n),
                         depth <= MESSAGE_NESTING_MAX ? 0 : GPG_ERR_INV_PACKET);
        gathered_clear(&message);
    }
}

static void encryption_in_encryption(void **state)
{
    (void)state;
    static const char *const right[] = {"right", "right", NULL};
    struct passphrases passphrases = {.list = right};
    const struct passphrase_source source = {.ask = ask, .context = &passphrases};
    const struct read_params params = {.passphrases = &source};
    struct gathered literal, once, twice;
    put_literal(&literal, "x", 1);
    put_encrypted(&once, PROTECT_SEIPD_2, "right", &literal);
    put_encrypted(&twice, PROTECT_SEIPD_2, "right", &once);
    assert_int_equal(code_of(&params, twice.bytes, twice.n), GPG_ERR_INV_PACKET);
    gathered_clear(&literal);
    gathered_clear(&once);
    gathered_clear(&twice);
}

static void output_limit(void **state)
{
    (void)state;
    uint8_t content[1000] = {0};
    struct gathered message;
    put_literal(&message, content, sizeof content);
    for (uint64_t limit = 998; limit <= 1002; limit++) {
        const struct read_params params = {.max_output = limit};
        struct outcome outcome;
        read_from(&params, message.bytes, message.n, 100, SIZE_MAX, &outcome);
        assert_int_equal(gpg_err_code(outcome.code), limit < 1000 ? GPG_ERR_TOO_LARGE : 0);
        assert_int_equal(outcome.content.n, limit < 1000 ? limit : 1000);
        outcome_clear(&outcome);
    }
    gathered_clear(&message);
}

static void passphrase_attempts(void **state)
{
    (void)state;
    static const struct {
        const char *said[5];
        unsigned asked;
        gpg_err_code_t code;
    } rows[] = {
        {{"right"}, 1, 0},
        {{"wrong", "right"}, 2, 0},
        {{"wrong", "false", "right"}, 3, 0},
        {{"wrong", "false", "not it", "right"}, 3, GPG_ERR_BAD_PASSPHRASE},
        {{"wrong"}, 1, GPG_ERR_BAD_PASSPHRASE},
        {{NULL}, 0, GPG_ERR_NO_PASSPHRASE},
    };
    struct gathered literal;
    put_literal(&literal, "x", 1);
    for (unsigned protection = PROTECT_SEIPD_1; protection <= PROTECT_SEIPD_2; protection++)
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
            struct passphrases passphrases = {.list = rows[i].said};
            const struct passphrase_source source = {.ask = ask, .context = &passphrases};
            const struct read_params params = {.passphrases = &source};
            struct gathered message;
            put_encrypted(&message, protection, "right", &literal);
            assert_int_equal(code_of(&params, message.bytes, message.n), rows[i].code);
            assert_int_equal(passphrases.asked, rows[i].asked);
            const struct read_params none = {0};
            assert_int_equal(code_of(&none, message.bytes, message.n), GPG_ERR_NO_PASSPHRASE);
            gathered_clear(&message);
        }
    gathered_clear(&literal);
}

/* --- Messages of testdata/ --- */

static struct keystore *keystore_with(struct failure *failure, const char *keyring, const char *secret)
{
    char path[256];
    struct keystore *keystore = keystore_new(failure);
    assert_non_null(keystore);
    snprintf(path, sizeof path, "%s/%s", TESTDATA, keyring);
    assert_int_equal(keystore_add_keyring(keystore, path, false), 0);
    if (secret) {
        snprintf(path, sizeof path, "%s/%s", TESTDATA, secret);
        assert_int_equal(keystore_add_secret_file(keystore, path, NULL), 0);
    }
    return keystore;
}

static void load(const char *name, uint8_t **ret, size_t *ret_n)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", TESTDATA, name);
    assert_int_equal(file_read_whole(NULL, path, 1 << 20, ret, ret_n), 0);
}

/* --- Content of several blocks --- */

enum { LONG_N = 600000 };

/* Announced and without its signature, compressed with ALGO (0: not). */
static void put_long(struct gathered *to, const uint8_t *content, uint8_t algo)
{
    static const uint8_t one_pass[] = {3, 0, DIGEST_SHA256, PUBKEY_EDDSA, 1, 2, 3, 4, 5, 6, 7, 8, 1};
    struct sink *out = faulty_sink_new(to, SIZE_MAX), *packets = out, *body = NULL, *literal;
    if (algo) {
        assert_int_equal(packet_body_sink(PACKET_COMPRESSED, 512, out, false, &body), 0);
        assert_int_equal(sink_write(body, &algo, 1), 0);
        assert_int_equal(deflate_sink_new(NULL, (enum compress_algo)algo, 1, 0, NULL, body, &packets), 0);
    }
    assert_int_equal(packet_write(packets, PACKET_ONE_PASS, one_pass, sizeof one_pass), 0);
    assert_int_equal(literal_sink_new(1 << 18, packets, false, &literal), 0);
    assert_int_equal(push(literal, content, LONG_N, 0), 0);
}

/* EXACT: after as many octets. What was expanded from flawed data is not all given out, and how much is depends on the
 * room that there was. */
static bool same_outcome(const struct outcome *one, const struct outcome *other, bool exact)
{
    const size_t n = one->content.n < other->content.n ? one->content.n : other->content.n;
    return one->code == other->code && !strcmp(one->sentence, other->sentence) && one->events == other->events &&
           !memcmp(one->event, other->event, one->events * sizeof *one->event) &&
           (!exact || one->content.n == other->content.n) &&
           (!n || !memcmp(one->content.bytes, other->content.bytes, n));
}

/* Whether threads read ahead or none: the same octets, then the same words. */
static void failures_come_in_turn(void **state)
{
    (void)state;
    static const char *const right[] = {"right", NULL};
    static const uint8_t algos[] = {0, COMPRESS_ZIP, COMPRESS_ZLIB};
    static uint8_t content[LONG_N];
    fill_text(content, LONG_N / 2, 1);
    fill_random(content + LONG_N / 2, LONG_N / 2, 1);
    for (unsigned protection = PROTECT_NONE; protection <= PROTECT_SEIPD_2; protection++)
        for (unsigned i = 0; i < ARRAY_SIZE(algos); i++) {
            struct gathered inner, message;
            put_long(&inner, content, algos[i]);
            for (unsigned where = 0; where < 20; where++) {
                struct passphrases passphrases[2] = {{.list = right}, {.list = right}};
                struct gathered *made = protection ? &message : &inner;
                struct outcome outcome[2];
                size_t at = inner.n / 5 * (where / 4) + where;
                /* A flaw inside, a flaw outside, the end too early, and a limit. */
                inner.bytes[at] ^= where % 4 == 0;
                if (protection)
                    put_encrypted(&message, protection, "right", &inner);
                made->bytes[made->n / 2] ^= where % 4 == 1 && where > 4;
                for (unsigned j = 0; j < 2; j++) {
                    const struct passphrase_source asked = {.ask = ask, .context = &passphrases[j]};
                    const struct read_params params = {
                        .passphrases = &asked, .jobs = j * 2, .max_output = where % 4 == 3 ? at : 0};
                    read_from(&params, made->bytes, where % 4 == 2 ? at : made->n, 4099, SIZE_MAX, &outcome[j]);
                }
                if (!same_outcome(&outcome[0], &outcome[1], !algos[i] || where % 4 > 1))
                    fail_msg("protection %u, compression %u, %u: %s after %zu octets; with threads %s after %zu",
                             protection, algos[i], where, outcome[0].sentence, outcome[0].content.n,
                             outcome[1].sentence, outcome[1].content.n);
                outcome_clear(&outcome[0]);
                outcome_clear(&outcome[1]);
                if (protection)
                    gathered_clear(&message);
                inner.bytes[at] ^= where % 4 == 0;
            }
            gathered_clear(&inner);
        }
}

/* RFC 9580 A.7: signed (version 6, text); A.8: for a key; A.9 … A.11: for a passphrase. */
static void rfc_messages(void **state)
{
    (void)state;
    static const char *const names[] = {"rfc9580/a7.asc", "rfc9580/a8.asc", "rfc9580/a9.asc", "rfc9580/a10.asc",
                                        "rfc9580/a11.asc"};
    static const char *const said[] = {"password", NULL};
    struct failure failure;
    failure_init(&failure);
    struct keystore *keystore = keystore_with(&failure, "rfc9580/a3.pub.asc", "rfc9580/a4.sec.asc");
    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        for (unsigned jobs = 0; jobs <= 2; jobs++) {
            struct passphrases passphrases = {.list = said};
            const struct passphrase_source source = {.ask = ask, .context = &passphrases};
            const struct read_params params = {.keystore = keystore, .passphrases = &source, .jobs = jobs};
            uint8_t *bytes;
            size_t n;
            struct outcome outcome;
            load(names[i], &bytes, &n);
            read_from(&params, bytes, n, 11, SIZE_MAX, &outcome);
            assert_int_equal(outcome.code, 0);
            if (i == 0) {
                assert_int_equal(outcome.verdict.good, 1);
                assert_int_equal(outcome.status, SIGNATURE_GOOD);
            } else {
                assert_int_equal(outcome.verdict.signatures, 0);
                assert_int_equal(outcome.content.n, 13);
                assert_memory_equal(outcome.content.bytes, "Hello, world!", 13);
            }
            outcome_clear(&outcome);
            free(bytes);
        }
    keystore_free(keystore);
    failure_destroy(&failure);
}

static void events_in_order(void **state)
{
    (void)state;
    static const enum message_event_kind expected[] = {
        EVENT_ENC_TO,    EVENT_SESSION_KEY, EVENT_DECRYPTION_KEY,  EVENT_BEGIN_DECRYPTION, EVENT_DECRYPTION_INFO,
        EVENT_PLAINTEXT, EVENT_SIGNATURE,   EVENT_DECRYPTION_OKAY, EVENT_GOOD_MDC,         EVENT_END_DECRYPTION};
    struct failure failure;
    failure_init(&failure);
    struct keystore *keystore = keystore_with(&failure, "samples/keys/p256.pub.asc", "samples/keys/p256.sec.asc");
    const struct read_params params = {.keystore = keystore};
    uint8_t *bytes;
    size_t n;
    struct outcome outcome;
    load("samples/msgs/p256.gpg", &bytes, &n);
    read_from(&params, bytes, n, 0, SIZE_MAX, &outcome);
    assert_int_equal(outcome.code, 0);
    assert_int_equal(outcome.verdict.good, 1);
    assert_int_equal(outcome.events, ARRAY_SIZE(expected));
    assert_memory_equal(outcome.event, expected, sizeof expected);
    outcome_clear(&outcome);
    free(bytes);
    keystore_free(keystore);
    failure_destroy(&failure);
}

/* A flaw in the encrypted session key, at the start, in the middle and at the end of the data: the same words. */
static void no_oracle(void **state)
{
    (void)state;
    struct failure failure;
    failure_init(&failure);
    struct keystore *keystore = keystore_with(&failure, "samples/keys/p256.pub.asc", "samples/keys/p256.sec.asc");
    const struct read_params params = {.keystore = keystore};
    uint8_t *bytes;
    size_t n;
    char sentence[FAILURE_SENTENCE_MAX] = "";
    load("samples/msgs/p256.gpg", &bytes, &n);
    struct packet_view esk;
    assert_true(nth_packet((struct octets){bytes, n}, PACKET_PKESK, 0, &esk));
    size_t data = (size_t)(esk.body + esk.body_n - bytes) + 8;
    const size_t places[] = {data - 10, data + 4,   data + 16, data + 20, data + 30,
                             data + 60, data + 200, n - 25,    n - 1};
    for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
        struct outcome outcome;
        bytes[places[i]] ^= 0x10;
        read_from(&params, bytes, n, 0, SIZE_MAX, &outcome);
        assert_int_equal(gpg_err_code(outcome.code), GPG_ERR_DECRYPT_FAILED);
        if (i)
            assert_string_equal(outcome.sentence, sentence);
        memcpy(sentence, outcome.sentence, sizeof sentence);
        outcome_clear(&outcome);
        bytes[places[i]] ^= 0x10;
    }
    free(bytes);
    keystore_free(keystore);
    failure_destroy(&failure);
}

static void without_the_key(void **state)
{
    (void)state;
    struct failure failure;
    failure_init(&failure);
    struct keystore *keystore = keystore_with(&failure, "samples/keys/p256.pub.asc", NULL);
    const struct read_params params = {.keystore = keystore};
    uint8_t *bytes;
    size_t n;
    struct outcome outcome;
    load("samples/msgs/p256.gpg", &bytes, &n);
    read_from(&params, bytes, n, 0, SIZE_MAX, &outcome);
    assert_int_equal(gpg_err_code(outcome.code), GPG_ERR_NO_SECKEY);
    static const enum message_event_kind expected[] = {EVENT_ENC_TO, EVENT_NO_SECKEY, EVENT_BEGIN_DECRYPTION,
                                                       EVENT_DECRYPTION_FAILED, EVENT_END_DECRYPTION};
    assert_int_equal(outcome.events, ARRAY_SIZE(expected));
    assert_memory_equal(outcome.event, expected, sizeof expected);
    outcome_clear(&outcome);
    free(bytes);
    keystore_free(keystore);
    failure_destroy(&failure);
}

/* --- Seeking --- */

enum { SEEK_N = 5000 };
static uint8_t seek_content[SEEK_N];

/* A literal with the announcement of a signature that never comes, in chunks of 64 octets. */
static void put_announced(struct gathered *to, enum protection protection)
{
    static const uint8_t one_pass[] = {3, 0, DIGEST_SHA512, PUBKEY_EDDSA, 1, 2, 3, 4, 5, 6, 7, 8, 1};
    struct gathered literal, inner = {0};
    fill_text(seek_content, sizeof seek_content, 3);
    put_literal(&literal, seek_content, SEEK_N);
    put_packet(&inner, PACKET_ONE_PASS, one_pass, sizeof one_pass);
    struct gathered joined;
    struct sink *sink = faulty_sink_new(&joined, SIZE_MAX);
    assert_int_equal(sink_write(sink, inner.bytes, inner.n), 0);
    assert_int_equal(sink_write(sink, literal.bytes, literal.n), 0);
    sink_free(sink);
    put_encrypted(to, protection, "right", &joined);
    gathered_clear(&joined);
    gathered_clear(&inner);
    gathered_clear(&literal);
}

/* Reads FIRST octets, skips, reads LAST more and finishes. */
static void seek_in(const struct gathered *made, bool seeks, uint64_t limit, size_t first, size_t skip, size_t last,
                    struct outcome *ret)
{
    static const char *const right[] = {"right", NULL};
    struct passphrases passphrases = {.list = right};
    const struct passphrase_source asked = {.ask = ask, .context = &passphrases};
    const struct read_params params = {.passphrases = &asked,
                                       .seek = true,
                                       .jobs = 1,
                                       .max_output = limit,
                                       .now = 1800000000,
                                       .event = note_event,
                                       .context = ret};
    struct run *run = run_new();
    struct source *message;
    uint8_t to[SEEK_N];
    size_t got;
    *ret = (struct outcome){0};
    struct source *raw = faulty_source_new(made->bytes, made->n, 333, SIZE_MAX);
    assert_int_equal(message_source_new(run, &params, raw, &message), 0);
    assert_int_equal(message_seeks(message), seeks);
    ret->code = source_read(message, to, first, &got);
    assert_memory_equal(to, seek_content, got);
    if (!ret->code)
        ret->code = source_skip(message, skip);
    if (!ret->code) {
        ret->code = source_read(message, to, last, &got);
        assert_memory_equal(to, seek_content + first + skip, got);
    }
    if (!ret->code)
        ret->code = source_finish(message);
    ret->verdict = *message_verdict(message);
    assert_int_equal(gpg_err_code(failure_get(run_failure(run), ret->sentence)), gpg_err_code(ret->code));
    source_free(message);
    run_free(run);
}

static bool has_event(const struct outcome *outcome, enum message_event_kind kind)
{
    for (unsigned i = 0; i < outcome->events; i++)
        if (outcome->event[i] == kind)
            return true;
    return false;
}

static void seeks_in_aead(void **state)
{
    (void)state;
    for (unsigned protection = PROTECT_SEIPD_1; protection <= PROTECT_SEIPD_2; protection++) {
        const bool seeks = protection != PROTECT_SEIPD_1;
        struct gathered made;
        put_announced(&made, protection);
        for (size_t first = 0; first <= 1300; first += 650)
            for (size_t skip = 0; skip <= SEEK_N - first; skip += 1 + skip / 2)
                for (size_t last = 0; last <= SEEK_N; last += SEEK_N / 2) {
                    struct outcome outcome;
                    seek_in(&made, seeks, 0, first, skip, last, &outcome);
                    const bool passed = outcome.verdict.passed_over;
                    assert_int_equal(outcome.code, 0);
                    /* Up to 63 octets of the chunk are open, so that less than 64 passes none and 127 and more does. */
                    if (!seeks || skip < 64 || skip >= 127)
                        assert_int_equal(passed, seeks && skip >= 127);
                    assert_int_equal(outcome.verdict.complete, !passed);
                    assert_int_equal(outcome.verdict.integrity_ok, !passed);
                    assert_int_equal(outcome.verdict.signatures, passed ? 0 : 1);
                    assert_int_equal(has_event(&outcome, EVENT_SIGNATURE), !passed);
                    assert_int_equal(has_event(&outcome, EVENT_GOOD_MDC), !passed);
                    assert_true(has_event(&outcome, EVENT_DECRYPTION_OKAY));
                    outcome_clear(&outcome);
                }
        gathered_clear(&made);
    }
}

/* Octets passed over may be wrong, all others and the length may not. */
static void seeking_and_damage(void **state)
{
    (void)state;
    for (unsigned protection = PROTECT_PACKET_20; protection <= PROTECT_SEIPD_2; protection++) {
        struct gathered made;
        struct outcome outcome;
        put_announced(&made, protection);
        for (unsigned last = 0; last < 2; last++) {
            made.bytes[made.n / 2] ^= 1;
            seek_in(&made, true, 0, 100, 4500, last, &outcome);
            assert_int_equal(outcome.code, 0);
            outcome_clear(&outcome);
            seek_in(&made, true, 0, 100, 1000, SEEK_N, &outcome);
            assert_int_equal(gpg_err_code(outcome.code), GPG_ERR_CHECKSUM);
            assert_true(has_event(&outcome, EVENT_DECRYPTION_FAILED));
            outcome_clear(&outcome);
            made.bytes[made.n / 2] ^= 1;
            made.bytes[made.n - 1] ^= 1;
            seek_in(&made, true, 0, 100, 4500, last, &outcome);
            assert_int_equal(gpg_err_code(outcome.code), GPG_ERR_CHECKSUM);
            assert_false(has_event(&outcome, EVENT_DECRYPTION_OKAY));
            outcome_clear(&outcome);
            made.bytes[made.n - 1] ^= 1;
            for (size_t cut = 1; cut < 600; cut += 7) {
                struct gathered shorter = made;
                shorter.n -= cut;
                seek_in(&shorter, true, 0, 100, 4500, last, &outcome);
                assert_int_not_equal(outcome.code, 0);
                assert_false(has_event(&outcome, EVENT_DECRYPTION_OKAY));
                outcome_clear(&outcome);
            }
        }
        /* Something behind the message, and more content than there may be or is. */
        put_packet(&made, PACKET_USER_ID, "x", 1);
        seek_in(&made, true, 0, 100, 4500, 0, &outcome);
        assert_int_equal(gpg_err_code(outcome.code), GPG_ERR_INV_PACKET);
        outcome_clear(&outcome);
        seek_in(&made, true, 4000, 100, 4500, 0, &outcome);
        assert_int_equal(gpg_err_code(outcome.code), GPG_ERR_TOO_LARGE);
        outcome_clear(&outcome);
        seek_in(&made, true, 0, 100, 14500, 0, &outcome);
        assert_int_not_equal(outcome.code, 0);
        outcome_clear(&outcome);
        gathered_clear(&made);
    }
}

static void unprotected_on_request(void **state)
{
    (void)state;
    static const char *const said[] = {"correct horse 7", NULL};
    static const char *const names[] = {"samples/broken/sed-tag9.gpg", "samples/broken/mdc-bad.gpg"};
    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        for (unsigned ignore = 0; ignore <= 1; ignore++) {
            struct passphrases passphrases = {.list = said};
            const struct passphrase_source source = {.ask = ask, .context = &passphrases};
            const struct read_params params = {.passphrases = &source, .ignore_mdc_error = ignore};
            uint8_t *bytes;
            size_t n;
            struct outcome outcome;
            load(names[i], &bytes, &n);
            read_from(&params, bytes, n, 0, SIZE_MAX, &outcome);
            assert_int_equal(gpg_err_code(outcome.code), ignore ? 0
                                                         : i    ? GPG_ERR_CHECKSUM
                                                                : GPG_ERR_UNSUPPORTED_PROTECTION);
            assert_int_equal(outcome.verdict.unprotected, ignore);
            assert_false(outcome.verdict.integrity_ok);
            if (!ignore && !i) /* refused before anybody is asked */
                assert_int_equal(passphrases.asked, 0);
            outcome_clear(&outcome);
            free(bytes);
        }
}

static void detached(void **state)
{
    (void)state;
    struct failure failure;
    failure_init(&failure);
    struct keystore *keystore = keystore_with(&failure, "samples/keys/ed25519.pub.asc", NULL);
    uint8_t *content, *signatures;
    size_t content_n, signatures_n;
    load("samples/plain/payload.tar", &content, &content_n);
    load("samples/msgs/payload.tar.ed25519.sig", &signatures, &signatures_n);
    for (unsigned jobs = 0; jobs <= 1; jobs++)
        for (unsigned flip = 0; flip <= 1; flip++) {
            const struct read_params params = {.keystore = keystore, .now = 1800000000, .jobs = jobs};
            struct run *run = run_new();
            struct message_verdict *verdict;
            content[content_n / 2] ^= (uint8_t)flip;
            assert_int_equal(message_verify_detached(run, &params, memory_source_new(signatures, signatures_n, 3),
                                                     memory_source_new(content, content_n, 1000), &verdict),
                             0);
            content[content_n / 2] ^= (uint8_t)flip;
            assert_true(verdict->complete);
            assert_int_equal(verdict->signatures, 1);
            assert_int_equal(verdict->verdict[0].status, flip ? SIGNATURE_BAD : SIGNATURE_GOOD);
            assert_int_equal(verdict->good, !flip);
            message_verdict_free(verdict);
            run_free(run);
        }
    /* Not a signature, a cut one, and failures on both sides. */
    const struct read_params params = {.keystore = keystore, .now = 1800000000};
    struct message_verdict *verdict;
    assert_int_equal(gpg_err_code(message_verify_detached(NULL, &params, memory_source_new("", 0, 0),
                                                          memory_source_new(content, content_n, 0), &verdict)),
                     GPG_ERR_NO_DATA);
    for (size_t at = 1; at < signatures_n; at++) {
        assert_true(message_verify_detached(NULL, &params, memory_source_new(signatures, at, 0),
                                            memory_source_new(content, 100, 0), &verdict) != 0);
        assert_int_equal(
            gpg_err_code(message_verify_detached(NULL, &params, faulty_source_new(signatures, signatures_n, 9, at),
                                                 memory_source_new(content, 100, 0), &verdict)),
            FAULT);
    }
    assert_int_equal(gpg_err_code(message_verify_detached(NULL, &params, memory_source_new(signatures, signatures_n, 0),
                                                          faulty_source_new(content, 100, 9, 50), &verdict)),
                     FAULT);
    free(content);
    free(signatures);
    keystore_free(keystore);
    failure_destroy(&failure);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(failures_come_in_turn),
        cmocka_unit_test(rfc_messages),
        cmocka_unit_test(lengths_steps_and_jobs),
        cmocka_unit_test(every_flip_and_cut_is_refused),
        cmocka_unit_test(failures_come_through),
        cmocka_unit_test(grammar),
        cmocka_unit_test(text_is_no_message),
        cmocka_unit_test(nesting),
        cmocka_unit_test(encryption_in_encryption),
        cmocka_unit_test(output_limit),
        cmocka_unit_test(passphrase_attempts),
        cmocka_unit_test(events_in_order),
        cmocka_unit_test(no_oracle),
        cmocka_unit_test(without_the_key),
        cmocka_unit_test(seeks_in_aead),
        cmocka_unit_test(seeking_and_damage),
        cmocka_unit_test(unprotected_on_request),
        cmocka_unit_test(detached),
    };
    return cmocka_run_group_tests(tests, crypt_setup, NULL);
}
