/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "faulty.h"
#include "samples.h"

#include "pgp/bzip2.h"
#include "pgp/framing.h"
#include "pgp/inflate.h"
#include "pgp/literal.h"
#include "pgp/mdc.h"
#include "pgp/message_write.h"
#include "pgp/secret_key.h"

#include <dirent.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define PASSPHRASE "correct horse 7"
#define NOW        1717200000U /* 2024-06-01 */

/* A throw-away home with two keys that gpg has made, and files beside it. */
struct world {
    char folder[64];
    struct secret_key *signer[2];
    struct key *encryption[2];
    struct secret *passphrase;
};

static struct world world;

static void run_shell(const char *command, int expected)
{
    char line[2048];
    snprintf(line, sizeof line, "cd %s && export GNUPGHOME=%s && %s", world.folder, world.folder, command);
    int status = system(line);
    if (status != expected << 8)
        print_message("%s: status 0x%x\n", command, (unsigned)status);
    assert_int_equal(status, expected << 8);
}

static void write_file(const char *name, const void *bytes, size_t n)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", world.folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, n, file), n);
    assert_int_equal(fclose(file), 0);
}

static void read_file(const char *name, struct gathered *ret)
{
    char path[128];
    struct sink *sink = faulty_sink_new(ret, SIZE_MAX);
    snprintf(path, sizeof path, "%s/%s", world.folder, name);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    uint8_t bytes[4096];
    size_t n;
    while ((n = fread(bytes, 1, sizeof bytes, file)) > 0)
        assert_int_equal(sink_write(sink, bytes, n), 0);
    fclose(file);
    sink_free(sink);
}

/* The primary key to SIGNER and the subkey to ENCRYPTION. */
static void load_key(const char *name, struct secret_key **signer, struct key **encryption)
{
    struct gathered file;
    read_file(name, &file);
    struct source *raw = memory_source_new(file.bytes, file.n, 0);
    struct packet packet;
    bool end;
    while (assert_int_equal(packet_next(NULL, raw, &packet, &end), 0), !end) {
        uint8_t *body;
        size_t n, public_n;
        assert_int_equal(packet_body_read(NULL, &packet, raw, 100000, &body, &n), 0);
        if (packet.type == PACKET_SECRET_KEY)
            assert_int_equal(secret_key_parse(NULL, packet.type, body, n, NULL, signer), 0);
        if (packet.type == PACKET_SECRET_SUBKEY)
            assert_int_equal(key_parse(NULL, packet.type, body, n, encryption, &public_n), 0);
        free(body);
    }
    source_free(raw);
    gathered_clear(&file);
}

static int make_world(void **state)
{
    assert_int_equal(crypt_setup(state), 0);
    strcpy(world.folder, "/tmp/message-write-XXXXXX");
    assert_non_null(mkdtemp(world.folder));
    run_shell("gpg --batch --faked-system-time 20240115T120000 --passphrase '' --quick-gen-key 'One <one@example.org>' "
              "future-default default never "
              "2>/dev/null",
              0);
    run_shell("gpg --batch --faked-system-time 20240115T120000 --passphrase '' --quick-gen-key 'Two <two@example.org>' "
              "rsa2048 sign never 2>/dev/null",
              0);
    run_shell("gpg --batch --faked-system-time 20240115T120000 --passphrase '' --quick-add-key $(gpg --list-keys "
              "--with-colons two@ 2>/dev/null | "
              "sed -n 's/^fpr:*\\([0-9A-F]*\\):/\\1/p' | head -n 1) rsa2048 encrypt never 2>/dev/null",
              0);
    run_shell("gpg --batch --passphrase '' --export-secret-keys one@ > one && "
              "gpg --batch --passphrase '' --export-secret-keys two@ > two",
              0);
    load_key("one", &world.signer[0], &world.encryption[0]);
    load_key("two", &world.signer[1], &world.encryption[1]);
    world.passphrase = secret_from(PASSPHRASE, strlen(PASSPHRASE));
    assert_non_null(world.passphrase);
    return 0;
}

static int drop_world(void **state)
{
    run_shell("gpgconf --kill all; rm -rf private-keys-v1.d openpgp-revocs.d crls.d; find . -type f -delete; true", 0);
    for (unsigned i = 0; i < 2; i++) {
        secret_key_free(world.signer[i]);
        key_free(world.encryption[i]);
    }
    secret_free(world.passphrase);
    run_shell("rm -rf ./S.* ; true", 0);
    assert_int_equal(crypt_teardown(state), 0);
    return rmdir(world.folder);
}

/* What a message is to have, as bits. */
enum {
    SIGN_ONE = 1,
    SIGN_TWO = 2,
    FOR_KEYS = 4,
    FOR_PASSPHRASE = 8,
    ARMORED = 16,
    DETACHED = 32,
    HIDDEN = 64,
    FOR_TWO = 128
};

struct wish {
    unsigned what;
    enum protection protection;
    uint8_t aead;
    uint8_t compress;
};

struct params {
    struct message_params message;
    struct message_signer signers[2];
    struct message_recipient recipients[2];
    const struct secret *passphrases[1];
    unsigned signed_n, session_key_n;
};

static void signed_one(void *context, const struct signature_made *made)
{
    struct params *params = context;
    assert_int_equal(made->created, NOW);
    assert_int_equal(made->type, SIG_BINARY);
    params->signed_n++;
}

static void session_key_made(void *context, const struct session_key *session_key)
{
    struct params *params = context;
    assert_int_equal(session_key->cipher, CIPHER_AES256);
    assert_int_equal(session_key->key->n, 32);
    params->session_key_n++;
}

static void fill_params(const struct wish *wish, unsigned jobs, struct params *params)
{
    *params = (struct params){.message = {.protection = wish->protection,
                                          .cipher = CIPHER_AES256,
                                          .aead = wish->aead,
                                          .chunk_octet = 10,
                                          .compress = wish->compress,
                                          .compress_level = -1,
                                          .armor = wish->what & ARMORED,
                                          .detached = wish->what & DETACHED,
                                          .now = NOW,
                                          .jobs = jobs,
                                          .signed_one = signed_one,
                                          .session_key_made = session_key_made,
                                          .context = params}};
    if (wish->what & SIGN_ONE)
        params->signers[params->message.signer_n++] = (struct message_signer){world.signer[0], DIGEST_SHA256};
    if (wish->what & SIGN_TWO)
        params->signers[params->message.signer_n++] = (struct message_signer){world.signer[1], DIGEST_SHA512};
    params->message.signers = params->signers;
    for (unsigned i = wish->what & FOR_TWO ? 1 : 0; wish->what & (FOR_KEYS | FOR_TWO) && i < 2; i++)
        params->recipients[params->message.recipient_n++] =
            (struct message_recipient){world.encryption[i], wish->what & HIDDEN};
    params->message.recipients = params->recipients;
    params->passphrases[0] = world.passphrase;
    params->message.passphrases = params->passphrases;
    params->message.passphrase_n = !!(wish->what & FOR_PASSPHRASE);
    s2k_new_iterated(DIGEST_SHA256, 1024, &params->message.s2k);
}

static void make_message(const struct wish *wish, unsigned jobs, const uint8_t *bytes, size_t n, size_t step,
                         struct gathered *ret)
{
    struct params params;
    struct run *run = run_new();
    struct sink *sink;
    assert_non_null(run);
    fill_params(wish, jobs, &params);
    assert_int_equal(message_sink_new(run, &params.message, faulty_sink_new(ret, SIZE_MAX), &sink), 0);
    assert_int_equal(push(sink, bytes, n, step), 0);
    assert_int_equal(ret->finished, 1);
    assert_int_equal(ret->freed, 1);
    assert_int_equal(params.signed_n, params.message.signer_n);
    assert_int_equal(params.session_key_n, wish->protection != PROTECT_NONE);
    run_free(run);
}

static uint8_t *new_content(size_t n)
{
    uint8_t *content = malloc(n + 1);
    assert_non_null(content);
    fill_text(content, n / 2, n);
    fill_random(content + n / 2, n - n / 2, n);
    return content;
}

static const size_t lengths[] = {0, 1, 70000, 1300000};

/* gpg opens it, finds all signatures good, and gives the content. */
static void gpg_reads(void **state)
{
    static const struct wish wishes[] = {
        {FOR_PASSPHRASE, PROTECT_SEIPD_1, 0, COMPRESS_NONE},
        {FOR_PASSPHRASE | ARMORED, PROTECT_PACKET_20, AEAD_OCB, COMPRESS_ZLIB},
        {FOR_KEYS, PROTECT_SEIPD_1, 0, COMPRESS_ZIP},
        {FOR_KEYS | FOR_PASSPHRASE | SIGN_ONE, PROTECT_PACKET_20, AEAD_OCB, COMPRESS_BZIP2},
        {FOR_KEYS | HIDDEN | SIGN_ONE | SIGN_TWO | ARMORED, PROTECT_SEIPD_1, 0, COMPRESS_ZLIB},
        {FOR_TWO | SIGN_TWO, PROTECT_SEIPD_1, 0, COMPRESS_BZIP2},
        {SIGN_TWO, PROTECT_NONE, 0, COMPRESS_NONE},
        {SIGN_ONE | SIGN_TWO | ARMORED, PROTECT_NONE, 0, COMPRESS_ZIP},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(wishes); i++) {
        for (size_t j = 0; j < ARRAY_SIZE(lengths); j++) {
            struct gathered message, back;
            uint8_t *content = new_content(lengths[j]);
            make_message(&wishes[i], j % 2 * 2, content, lengths[j], 10240, &message);
            if (wishes[i].what & ARMORED)
                assert_memory_equal(message.bytes, "-----BEGIN PGP MESSAGE-----\n", 28);
            write_file("message", message.bytes, message.n);
            unsigned keys = wishes[i].what & (SIGN_ONE | SIGN_TWO);
            char command[512];
            snprintf(command, sizeof command,
                     "rm -f back && gpg --batch --pinentry-mode loopback --passphrase '%s' --trust-model always "
                     "--status-fd 3 -o back -d message 2>log 3>status && test $(grep -c GOODSIG status) = %u && "
                     "test $(grep -c BADSIG status) = 0 %s || { cat log status; false; }",
                     PASSPHRASE, (keys & 1) + (keys >> 1 & 1),
                     wishes[i].protection == PROTECT_NONE ? "" : "&& grep -q DECRYPTION_OKAY status");
            run_shell(command, 0);
            read_file("back", &back);
            assert_int_equal(back.n, lengths[j]);
            if (back.n)
                assert_memory_equal(back.bytes, content, back.n);
            gathered_clear(&back);
            gathered_clear(&message);
            free(content);
        }
    }
}

static void gpg_verifies_detached(void **state)
{
    static const struct wish wishes[] = {{SIGN_ONE | DETACHED, PROTECT_NONE, 0, COMPRESS_ZLIB},
                                         {SIGN_ONE | SIGN_TWO | DETACHED | ARMORED, PROTECT_NONE, 0, COMPRESS_NONE}};
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(wishes); i++) {
        for (size_t j = 0; j < ARRAY_SIZE(lengths); j++) {
            struct gathered message;
            uint8_t *content = new_content(lengths[j]);
            make_message(&wishes[i], j % 2 * 2, content, lengths[j], 10240, &message);
            if (wishes[i].what & ARMORED)
                assert_memory_equal(message.bytes, "-----BEGIN PGP SIGNATURE-----\n", 30);
            write_file("sig", message.bytes, message.n);
            write_file("data", content, lengths[j]);
            run_shell("gpg --batch --verify sig data 2>log || { cat log; false; }", 0);
            write_file("data", "x", 1);
            if (lengths[j] != 1 || content[0] != 'x')
                run_shell("gpg --batch --verify sig data 2>log", 1);
            gathered_clear(&message);
            free(content);
        }
    }
}

/* Opens the encryption with the passphrase: the packets inside. */
static void open_message(const struct gathered *message, struct gathered *ret)
{
    struct source *raw = memory_source_new(message->bytes, message->n, 0), *body, *plain;
    struct session_key session_key = {0};
    struct packet packet;
    uint8_t version, *bytes;
    size_t n;
    bool end;
    for (;;) {
        assert_int_equal(packet_next(NULL, raw, &packet, &end), 0);
        assert_false(end);
        if (packet.type != PACKET_SKESK && packet.type != PACKET_PKESK)
            break;
        assert_int_equal(packet_body_read(NULL, &packet, raw, ESK_BODY_MAX, &bytes, &n), 0);
        if (packet.type == PACKET_SKESK) {
            struct esk *esk;
            assert_int_equal(esk_parse(NULL, packet.type, bytes, n, &esk), 0);
            assert_int_equal(skesk_open(NULL, esk, world.passphrase, NULL, &session_key), 0);
            esk_free(esk);
        }
        free(bytes);
    }
    assert_int_equal(packet_body_source(NULL, &packet, raw, &body), 0);
    assert_int_equal(source_read(body, &version, 1, &n), 0);
    if (packet.type == PACKET_SEIPD && version == 1) {
        assert_int_equal(mdc_source_new(NULL, CIPHER_AES256, session_key.key, 0, body, &plain), 0);
    } else {
        struct aead_params params;
        enum aead_kind kind = packet.type == PACKET_SEIPD ? AEAD_SEIPD_2 : AEAD_PACKET_20;
        assert_int_equal(aead_read_header(NULL, kind, body, &params), 0);
        assert_int_equal(aead_source_new(NULL, &params, session_key.key, 0, body, &plain), 0);
    }
    assert_int_equal(pull(plain, ret), 0);
    assert_int_equal(source_finish(body), 0);
    assert_int_equal(packet_next(NULL, raw, &packet, &end), 0);
    assert_true(end);
    source_free(body);
    source_free(raw);
    session_key_clear(&session_key);
}

/* The packet that must come next in RAW. */
static struct source *expect_packet(struct source *raw, unsigned type)
{
    struct packet packet;
    struct source *body;
    bool end;
    assert_int_equal(packet_next(NULL, raw, &packet, &end), 0);
    assert_false(end);
    assert_int_equal(packet.type, type);
    assert_int_equal(packet_body_source(NULL, &packet, raw, &body), 0);
    return body;
}

static void expect_end(struct source *raw)
{
    struct packet packet;
    bool end;
    assert_int_equal(packet_next(NULL, raw, &packet, &end), 0);
    assert_true(end);
}

/* (compressed (one-pass … literal … signature)), and the content. */
static void check_inside(const struct wish *wish, const struct gathered *inside, const uint8_t *content, size_t n)
{
    struct source *raw = memory_source_new(inside->bytes, inside->n, 0), *compressed = NULL, *packets = raw, *body;
    unsigned signers = (wish->what & 1) + (wish->what >> 1 & 1);
    struct gathered got;
    struct literal literal;
    size_t octets;
    if (wish->compress) {
        uint8_t algo;
        compressed = expect_packet(raw, PACKET_COMPRESSED);
        assert_int_equal(source_read(compressed, &algo, 1, &octets), 0);
        assert_int_equal(algo, wish->compress);
        if (algo == COMPRESS_BZIP2)
            assert_int_equal(bunzip2_source_new(NULL, compressed, &packets), 0);
        else
            assert_int_equal(inflate_source_new(NULL, algo, compressed, &packets), 0);
    }
    for (unsigned i = 0; i < signers; i++) {
        body = expect_packet(packets, PACKET_ONE_PASS);
        assert_int_equal(pull(body, &got), 0);
        assert_int_equal(got.bytes[got.n - 1], i + 1 == signers);
        gathered_clear(&got);
    }
    body = expect_packet(packets, PACKET_LITERAL);
    assert_int_equal(literal_read(NULL, body, &literal), 0);
    assert_int_equal(pull(body, &got), 0);
    assert_int_equal(got.n, n);
    if (n)
        assert_memory_equal(got.bytes, content, n);
    gathered_clear(&got);
    for (unsigned i = 0; i < signers; i++) {
        struct signature *signature;
        body = expect_packet(packets, PACKET_SIGNATURE);
        assert_int_equal(pull(body, &got), 0);
        assert_int_equal(signature_parse(NULL, got.bytes, got.n, &signature), 0);
        assert_true(signature_by(signature, world.signer[wish->what & SIGN_TWO ? signers - 1 - i : 0]->key) ||
                    !(wish->what & SIGN_ONE));
        signature_free(signature);
        gathered_clear(&got);
    }
    expect_end(packets);
    if (wish->compress) {
        source_free(packets);
        source_free(compressed);
        expect_end(raw);
    }
    source_free(raw);
}

/* Every protection × compression; what is inside does not depend on jobs and steps. */
static void inside_does_not_depend_on_jobs(void **state)
{
    static const struct wish protections[] = {
        {FOR_PASSPHRASE, PROTECT_SEIPD_1, 0, 0},
        {FOR_PASSPHRASE, PROTECT_PACKET_20, AEAD_OCB, 0},
        {FOR_PASSPHRASE | FOR_KEYS, PROTECT_PACKET_20, AEAD_EAX, 0},
        {FOR_PASSPHRASE, PROTECT_SEIPD_2, AEAD_GCM, 0},
        {FOR_PASSPHRASE | FOR_KEYS, PROTECT_SEIPD_2, AEAD_OCB, 0},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(protections); i++) {
        for (uint8_t compress = COMPRESS_NONE; compress <= COMPRESS_BZIP2; compress++) {
            for (size_t j = 0; j < ARRAY_SIZE(lengths); j++) {
                struct wish wish = protections[i];
                struct gathered alone = {0};
                uint8_t *content = new_content(lengths[j]);
                wish.compress = compress;
                for (unsigned jobs = 0; jobs < 4; jobs++) {
                    struct gathered message, inside;
                    make_message(&wish, jobs, content, lengths[j], jobs ? 10240 * jobs : 0, &message);
                    open_message(&message, &inside);
                    gathered_clear(&message);
                    if (!jobs) {
                        check_inside(&wish, &inside, content, lengths[j]);
                        alone = inside;
                        continue;
                    }
                    assert_int_equal(inside.n, alone.n);
                    assert_memory_equal(inside.bytes, alone.bytes, alone.n);
                    gathered_clear(&inside);
                }
                gathered_clear(&alone);
                free(content);
            }
        }
    }
}

static void order_of_signatures(void **state)
{
    const struct wish wish = {FOR_PASSPHRASE | SIGN_ONE | SIGN_TWO, PROTECT_SEIPD_1, 0, COMPRESS_ZLIB};
    (void)state;
    for (unsigned jobs = 0; jobs < 3; jobs++) {
        uint8_t *content = new_content(300000);
        struct gathered message, inside;
        make_message(&wish, jobs, content, 300000, 0, &message);
        open_message(&message, &inside);
        check_inside(&wish, &inside, content, 300000);
        gathered_clear(&inside);
        gathered_clear(&message);
        free(content);
    }
}

static void given_session_key(void **state)
{
    const struct wish wish = {0, PROTECT_SEIPD_1, 0, COMPRESS_NONE};
    struct session_key session_key;
    struct params params;
    struct gathered message;
    struct sink *sink;
    (void)state;
    assert_int_equal(session_key_new(CIPHER_AES256, &session_key), 0);
    fill_params(&wish, 0, &params);
    assert_int_equal(gpg_err_code(message_sink_new(NULL, &params.message, faulty_sink_new(&message, SIZE_MAX), &sink)),
                     GPG_ERR_INV_ARG);
    assert_int_equal(message.freed, 1);
    params.message.session_key = &session_key;
    assert_int_equal(message_sink_new(NULL, &params.message, faulty_sink_new(&message, SIZE_MAX), &sink), 0);
    assert_int_equal(push(sink, "content", 7, 0), 0);
    write_file("message", message.bytes, message.n);
    char command[512];
    size_t at = (size_t)snprintf(command, sizeof command, "test \"$(gpg --batch --override-session-key 9:");
    for (size_t i = 0; i < 32; i++)
        at += (size_t)snprintf(command + at, sizeof command - at, "%02X", session_key.key->bytes[i]);
    snprintf(command + at, sizeof command - at, " -d message 2>log)\" = content || { cat log; false; }");
    run_shell(command, 0);
    gathered_clear(&message);
    session_key.key->n = 16;
    assert_int_equal(gpg_err_code(message_sink_new(NULL, &params.message, faulty_sink_new(&message, SIZE_MAX), &sink)),
                     GPG_ERR_INV_KEYLEN);
    assert_int_equal(message.n, 0);
    assert_int_equal(message.freed, 1);
    session_key_clear(&session_key);
}

/* Nothing has been written when what can fail early fails. */
static void fails_early(void **state)
{
    const struct wish wish = {SIGN_ONE | FOR_KEYS, PROTECT_PACKET_20, AEAD_OCB, COMPRESS_ZLIB};
    (void)state;
    for (unsigned flaw = 0; flaw < 6; flaw++) {
        struct params params;
        struct gathered message;
        struct sink *sink;
        struct run *run = run_new();
        assert_non_null(run);
        fill_params(&wish, 2, &params);
        if (flaw == 0)
            params.signers[0].digest = 99;
        else if (flaw == 1)
            params.recipients[1].key = world.signer[0]->key; /* cannot encrypt */
        else if (flaw == 2)
            params.message.aead = 9;
        else if (flaw == 3)
            params.message.chunk_octet = AEAD_CHUNK_BITS_MAX + 1;
        else if (flaw == 4)
            params.message.compress_level = 10;
        else
            params.message.cipher = 99;
        assert_int_not_equal(message_sink_new(run, &params.message, faulty_sink_new(&message, SIZE_MAX), &sink), 0);
        assert_int_equal(message.n, 0);
        assert_int_equal(message.freed, 1);
        gathered_clear(&message);
        run_free(run);
    }
}

/* The sink below fails at some bytes, or at its finish: the error comes out and nothing hangs. */
static void sink_fails(void **state)
{
    static const struct wish wishes[] = {{SIGN_ONE | FOR_PASSPHRASE, PROTECT_PACKET_20, AEAD_OCB, COMPRESS_ZLIB},
                                         {SIGN_ONE | FOR_PASSPHRASE, PROTECT_SEIPD_1, 0, COMPRESS_NONE},
                                         {SIGN_ONE | ARMORED, PROTECT_NONE, 0, COMPRESS_NONE}};
    enum { N = 900000 };
    uint8_t *content = new_content(N);
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(wishes); i++) {
        for (unsigned jobs = 0; jobs < 3; jobs += 2) {
            for (size_t at = 0; at < 450000; at = at < 300 ? at + 37 : at * 2) {
                struct run *run = run_new();
                struct params params;
                struct gathered message;
                struct sink *sink;
                assert_non_null(run);
                fill_params(&wishes[i], jobs, &params);
                gpg_error_t error = message_sink_new(run, &params.message, faulty_sink_new(&message, at), &sink);
                if (!error)
                    error = push(sink, content, N, 50000);
                assert_int_not_equal(error, 0);
                assert_int_equal(message.finished, 0);
                assert_int_equal(message.freed, 1);
                gathered_clear(&message);
                run_free(run);
            }
            struct run *run = run_new();
            struct params params;
            struct gathered message;
            struct sink *sink, *below = faulty_sink_new(&message, SIZE_MAX);
            assert_non_null(run);
            message.fail_finish = true;
            fill_params(&wishes[i], jobs, &params);
            assert_int_equal(message_sink_new(run, &params.message, below, &sink), 0);
            assert_int_equal(gpg_err_code(push(sink, content, N, 50000)), FAULT);
            gathered_clear(&message);
            run_free(run);
        }
    }
    free(content);
}

/* Freed in mid-way: nothing is finished, no thread stays. */
static void given_up(void **state)
{
    static const struct wish wishes[] = {{SIGN_ONE | FOR_PASSPHRASE, PROTECT_SEIPD_1, 0, COMPRESS_ZLIB},
                                         {SIGN_ONE | FOR_PASSPHRASE, PROTECT_PACKET_20, AEAD_OCB, COMPRESS_ZLIB}};
    enum { N = 2000000 };
    uint8_t *content = new_content(N);
    (void)state;
    for (unsigned turn = 0; turn < 12; turn++) {
        struct run *run = run_new();
        struct params params;
        struct gathered message;
        struct sink *sink;
        assert_non_null(run);
        run_set_processors(run, 3);
        fill_params(&wishes[turn % 2], turn / 2 % 3, &params);
        s2k_new_iterated(DIGEST_SHA256, 1 << 22, &params.message.s2k); /* some ms */
        assert_int_equal(message_sink_new(run, &params.message, faulty_sink_new(&message, SIZE_MAX), &sink), 0);
        if (turn < 6)
            assert_int_equal(sink_write(sink, content, N), 0);
        sink_free(sink);
        assert_int_equal(message.finished, 0);
        assert_int_equal(message.freed, 1);
        gathered_clear(&message);
        run_free(run);
    }
    free(content);
}

/* Where a passphrase cannot be used this shows after the pipeline stands: the error and its sentence come out, and
 * nothing is written. */
static void session_key_fails_late(void **state)
{
    const struct wish wish = {SIGN_ONE | FOR_PASSPHRASE, PROTECT_PACKET_20, AEAD_OCB, COMPRESS_ZLIB};
    enum { N = 3000000 };
    uint8_t *content = new_content(N);
    (void)state;
    for (unsigned turn = 0; turn < 6; turn++) {
        struct run *run = run_new();
        struct params params;
        struct gathered message;
        struct sink *sink;
        assert_non_null(run);
        run_set_processors(run, 1 + turn % 3);
        fill_params(&wish, 2, &params);
        params.message.s2k.mode = S2K_GNU;
        gpg_error_t error = message_sink_new(run, &params.message, faulty_sink_new(&message, SIZE_MAX), &sink);
        assert_true(error || turn % 3 > 0); /* with several processors it may show then already, or later */
        if (!error)
            error = push(sink, content, turn < 3 ? N : 10, 50000);
        assert_int_not_equal(error, 0);
        if (gpg_err_code(error) == GPG_ERR_CANCELED)
            error = run_cancelled(run);
        assert_int_equal(gpg_err_code(error), GPG_ERR_NO_SECKEY);
        char sentence[FAILURE_SENTENCE_MAX];
        (void)failure_get(run_failure(run), sentence);
        assert_string_equal(sentence, "the secret part of the key is not here");
        assert_int_equal(message.n, 0);
        assert_int_equal(message.finished, 0);
        assert_int_equal(message.freed, 1);
        gathered_clear(&message);
        run_free(run);
    }
    free(content);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gpg_reads),
        cmocka_unit_test(gpg_verifies_detached),
        cmocka_unit_test(inside_does_not_depend_on_jobs),
        cmocka_unit_test(order_of_signatures),
        cmocka_unit_test(given_session_key),
        cmocka_unit_test(fails_early),
        cmocka_unit_test(sink_fails),
        cmocka_unit_test(given_up),
        cmocka_unit_test(session_key_fails_late),
    };
    return cmocka_run_group_tests(tests, make_world, drop_world);
}
