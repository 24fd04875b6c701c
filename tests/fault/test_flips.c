/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Every bit of small messages flipped and every length cut, in each format: nothing comes to be released that was not
 * sent. What may change without a word is what nobody protects (an octet of armor, an unhashed subpacket), and then the
 * content is the same and as well protected as before. */
#include "../pgp/faulty.h"
#include "../pgp/samples.h"

#include "pgp/aead.h"
#include "pgp/keystore.h"
#include "pgp/message_read.h"
#include "pgp/message_write.h"

#define NOW        1717243200U /* 2024-06-01 */
#define PASSPHRASE "correct horse 7"
/* Several chunks of 64 octets, and more than one deflate block would need. */
#define CONTENT_N 300

struct format {
    const char *name;
    enum protection protection;
    uint8_t aead;
    uint8_t compress;
    bool signs, for_key, for_passphrase;
};

static const struct format formats[] = {
    {"SEIPD 1, key, signed", PROTECT_SEIPD_1, 0, COMPRESS_ZLIB, true, true, false},
    {"SEIPD 1, passphrase", PROTECT_SEIPD_1, 0, COMPRESS_NONE, false, false, true},
    {"packet 20, passphrase, signed", PROTECT_PACKET_20, AEAD_OCB, COMPRESS_NONE, true, false, true},
    {"packet 20, key", PROTECT_PACKET_20, AEAD_OCB, COMPRESS_ZIP, false, true, false},
    {"SEIPD 2, passphrase, signed", PROTECT_SEIPD_2, AEAD_OCB, COMPRESS_NONE, true, false, true},
    {"SEIPD 2 with GCM, passphrase", PROTECT_SEIPD_2, AEAD_GCM, COMPRESS_ZLIB, false, false, true},
    {"signed only", PROTECT_NONE, 0, COMPRESS_NONE, true, false, false},
    {"signed only, compressed", PROTECT_NONE, 0, COMPRESS_ZLIB, true, false, false},
};

static struct {
    struct keystore *keystore;
    struct certificate *certificate;
    struct secret_key *signer;
    struct secret *passphrase;
    uint8_t content[CONTENT_N];
    unsigned long variants, released;
    /* Without FAULT_FULL every third bit is flipped, and every fourth octet mangled: 50 s are too long each time. */
    bool full;
} world;

static gpg_error_t ask(void *context, const struct key *key, unsigned attempt, bool is_new, struct secret **ret)
{
    (void)context;
    (void)key;
    (void)is_new;
    if (attempt)
        return gpg_error(GPG_ERR_NO_PASSPHRASE);
    *ret = secret_from(PASSPHRASE, strlen(PASSPHRASE));
    return *ret ? 0 : gpg_error(GPG_ERR_ENOMEM);
}

static int make_world(void **state)
{
    struct key_match match;
    assert_int_equal(crypt_setup(state), 0);
    world.keystore = keystore_new(NULL);
    assert_non_null(world.keystore);
    assert_int_equal(keystore_add_secret_file(world.keystore, TESTDATA "/samples/keys/ed25519.sec.asc", NULL), 0);
    assert_int_equal(keystore_find(world.keystore, "ed25519@example.org", KEY_ENCRYPTS, NOW, &match), 0);
    world.certificate = match.certificate;
    assert_int_equal(keystore_secret(world.keystore, certificate_key(world.certificate, 0), &world.signer), 0);
    world.passphrase = secret_from(PASSPHRASE, strlen(PASSPHRASE));
    assert_non_null(world.passphrase);
    fill_text(world.content, sizeof world.content, 1);
    world.full = getenv("FAULT_FULL");
    return 0;
}

static int drop_world(void **state)
{
    print_message("%lu variants, %lu of them harmless\n", world.variants, world.released);
    secret_key_free(world.signer);
    secret_free(world.passphrase);
    certificate_free(world.certificate);
    keystore_free(world.keystore);
    return crypt_teardown(state);
}

static void make_message(const struct format *format, struct gathered *ret)
{
    unsigned number;
    struct sink *sink;
    assert_int_equal(certificate_choose(world.certificate, KEY_ENCRYPTS, NOW, -1, &number), 0);
    const struct message_recipient recipient = {.key = certificate_key(world.certificate, number)};
    const struct message_signer signer = {world.signer, DIGEST_SHA512};
    const struct secret *const passphrases[] = {world.passphrase};
    struct message_params params = {
        .protection = format->protection,
        .cipher = CIPHER_AES256,
        .aead = format->aead,
        .recipients = &recipient,
        .recipient_n = format->for_key,
        .passphrases = passphrases,
        .passphrase_n = format->for_passphrase,
        .signers = &signer,
        .signer_n = format->signs,
        .compress = format->compress,
        .compress_level = -1,
        .now = NOW,
    };
    s2k_new_iterated(DIGEST_SHA256, 1024, &params.s2k);
    assert_int_equal(message_sink_new(NULL, &params, faulty_sink_new(ret, SIZE_MAX), &sink), 0);
    assert_int_equal(push(sink, world.content, sizeof world.content, 0), 0);
}

/* Reads as a command does that asks for integrity and, where it was signed, for the signature: whether it releases. */
static bool releases(const struct format *format, const uint8_t *bytes, size_t n, struct gathered *content)
{
    const struct passphrase_source passphrases = {.ask = ask};
    struct source *message = NULL;
    const struct read_params params = {
        .keystore = world.keystore,
        .passphrases = &passphrases,
        .max_output = 1024 * 1024,
        .now = NOW,
    };
    *content = (struct gathered){0};
    if (message_source_new(NULL, &params, memory_source_new(bytes, n, 0), &message))
        return false;
    struct sink *sink = faulty_sink_new(content, SIZE_MAX);
    gpg_error_t error = pump(message, sink, NULL);
    if (!error)
        error = source_finish(message);
    const struct message_verdict *verdict = message_verdict(message);
    bool good = !error && verdict->complete && !verdict->unprotected && !verdict->bad &&
                (verdict->encrypted ? verdict->integrity_ok : verdict->good > 0) &&
                (!format->signs || verdict->good == 1);
    sink_free(sink);
    source_free(message);
    return good;
}

/* Tries the message that is BYTES now. */
static void try(const struct format *format, const uint8_t *bytes, size_t n, const char *how, size_t at)
{
    struct gathered content;
    world.variants++;
    if (releases(format, bytes, n, &content)) {
        world.released++;
        if (content.n != sizeof world.content || memcmp(content.bytes, world.content, sizeof world.content) != 0)
            fail_msg("%s: %s at %zu was released", format->name, how, at);
    }
    gathered_clear(&content);
}

static void flip_and_cut(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(formats); i++) {
        const struct format *format = &formats[i];
        struct gathered message, content;
        make_message(format, &message);
        assert_true(releases(format, message.bytes, message.n, &content));
        assert_memory_equal(content.bytes, world.content, sizeof world.content);
        gathered_clear(&content);
        for (size_t at = 0; at < message.n; at++) {
            for (unsigned bit = 0; bit < 8; bit++) {
                if (!world.full && (8 * at + bit) % 3)
                    continue;
                message.bytes[at] ^= (uint8_t)(1U << bit);
                try(format, message.bytes, message.n, "a flipped bit", at);
                message.bytes[at] ^= (uint8_t)(1U << bit);
            }
            /* A cut message is never the whole of it. */
            world.variants++;
            if (releases(format, message.bytes, at, &content))
                fail_msg("%s: cut at %zu was released", format->name, at);
            gathered_clear(&content);
        }
        gathered_clear(&message);
    }
    assert_true(world.variants >= 10000);
}

/* Octets left out, doubled, set to the extremes, and something behind the end. */
static void mangle(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(formats); i++) {
        const struct format *format = &formats[i];
        struct gathered message, content;
        make_message(format, &message);
        uint8_t *bytes = malloc(message.n + 2);
        assert_non_null(bytes);
        for (size_t at = 0; at < message.n; at += world.full ? 1 : 4) {
            memcpy(bytes, message.bytes, at);
            memcpy(bytes + at, message.bytes + at + 1, message.n - at - 1);
            try(format, bytes, message.n - 1, "an octet left out", at);
            bytes[at] = message.bytes[at];
            memcpy(bytes + at + 1, message.bytes + at, message.n - at);
            try(format, bytes, message.n + 1, "an octet doubled", at);
            memcpy(bytes, message.bytes, message.n);
            bytes[at] = 0;
            try(format, bytes, message.n, "a zero", at);
            bytes[at] = 0xff;
            try(format, bytes, message.n, "a 255", at);
        }
        memcpy(bytes, message.bytes, message.n);
        bytes[message.n] = 0xd3;
        if (releases(format, bytes, message.n + 1, &content))
            fail_msg("%s: an octet behind the end was released", format->name);
        gathered_clear(&content);
        free(bytes);
        gathered_clear(&message);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(flip_and_cut), cmocka_unit_test(mangle)};
    return cmocka_run_group_tests(tests, make_world, drop_world);
}
