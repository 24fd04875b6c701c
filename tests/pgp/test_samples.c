/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Every row of testdata/samples/manifest.tsv: messages and detached signatures by many programs, good and broken, each
 * with every key or passphrase that opens it, without threads and with. */
#include "pgp/crypt_init.h"
#include "pgp/message_read.h"
#include "stream/fd.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <fcntl.h>
#include <gcrypt.h>
#include <glob.h>
#include <time.h>

#define SAMPLES TESTDATA "/samples/"

enum column { FILE_NAME, OPENS_WITH, OUTCOME, SHA256, SIGNERS, NOTES, COLUMNS };

/* What opens one message. */
struct opener {
    char key[64]; /* name of the secret key; "" none */
    char key_passphrase[64];
    char passphrase[64]; /* of the message */
};

struct result {
    gpg_error_t code;
    char sentence[FAILURE_SENTENCE_MAX];
    char sha256[65];
    unsigned signatures, good, bad, unknown, warnings;
    enum signature_status status[MESSAGE_SIGNATURES_MAX];
    char signer[MESSAGE_SIGNATURES_MAX][65]; /* fingerprint of the primary key; "" unknown */
};

static gpg_error_t ask(void *context, const struct key *key, unsigned attempt, bool is_new, struct secret **ret)
{
    const struct opener *opener = context;
    const char *passphrase = key ? opener->key_passphrase : opener->passphrase;
    if (attempt || is_new || !*passphrase)
        return gpg_error(GPG_ERR_NO_PASSPHRASE);
    *ret = secret_from(passphrase, strlen(passphrase));
    return *ret ? 0 : gpg_error(GPG_ERR_ENOMEM);
}

static void count_warnings(void *context, const struct message_event *event)
{
    struct result *result = context;
    result->warnings += event->kind == EVENT_WARNING;
}

static void add_certificates(struct keystore *keystore)
{
    glob_t found;
    assert_int_equal(glob(SAMPLES "keys/*.pub.asc", 0, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++)
        if (!strstr(found.gl_pathv[i], "/stranger."))
            assert_int_equal(keystore_add_keyring(keystore, found.gl_pathv[i], false), 0);
    globfree(&found);
}

static void add_secret(struct keystore *keystore, const char *name, const struct passphrase_source *passphrases)
{
    char path[256];
    snprintf(path, sizeof path, SAMPLES "keys/%s.sec.asc", name);
    FILE *file = fopen(path, "r");
    if (!file) /* Kyber keys have none */
        return;
    fclose(file);
    assert_int_equal(keystore_add_secret_file(keystore, path, passphrases), 0);
}

static void hex(const uint8_t *bytes, size_t n, char *out)
{
    for (size_t i = 0; i < n; i++)
        snprintf(out + 2 * i, 3, "%02x", bytes[i]);
}

static void take_verdict(const struct message_verdict *verdict, struct result *result)
{
    result->signatures = verdict->signatures;
    result->good = verdict->good;
    result->bad = verdict->bad;
    result->unknown = verdict->unknown;
    for (unsigned i = 0; i < verdict->signatures; i++) {
        result->status[i] = verdict->verdict[i].status;
        if (verdict->verdict[i].certificate)
            key_fpr_hex(certificate_key(verdict->verdict[i].certificate, 0), result->signer[i]);
    }
}

static gpg_error_t hash_source(struct source *source, struct result *result)
{
    gcry_md_hd_t md;
    assert_int_equal(gcry_md_open(&md, GCRY_MD_SHA256, 0), 0);
    gpg_error_t err;
    for (;;) {
        const void *bytes;
        size_t n;
        err = source_peek(source, &bytes, &n);
        if (err || !n)
            break;
        gcry_md_write(md, bytes, n);
        source_consume(source, n);
    }
    hex(gcry_md_read(md, GCRY_MD_SHA256), 32, result->sha256);
    gcry_md_close(md);
    return err;
}

static struct source *open_file(struct run *run, const char *name)
{
    char path[256];
    snprintf(path, sizeof path, SAMPLES "%s", name);
    struct source *source;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(fd_source_new(run, fd, path, true, 0, &source), 0);
    return source;
}

static void read_message(struct run *run, const struct read_params *params, const char *name, struct result *result)
{
    struct source *message;
    result->code = message_source_new(run, params, open_file(run, name), &message);
    if (result->code)
        return;
    result->code = hash_source(message, result);
    if (!result->code)
        result->code = source_finish(message);
    take_verdict(message_verdict(message), result);
    assert_int_equal(message_verdict(message)->complete, !result->code);
    source_free(message);
}

static void read_detached(struct run *run, const struct read_params *params, const char *name, struct result *result)
{
    struct source *content = open_file(run, "plain/payload.tar");
    hash_source(content, result);
    source_free(content);
    struct message_verdict *verdict;
    result->code =
        message_verify_detached(run, params, open_file(run, name), open_file(run, "plain/payload.tar"), &verdict);
    if (result->code)
        return;
    take_verdict(verdict, result);
    message_verdict_free(verdict);
}

static void read_sample(const char *name, const struct opener *opener, unsigned jobs, struct result *result)
{
    *result = (struct result){0};
    struct run *run = run_new();
    assert_non_null(run);
    struct keystore *keystore = keystore_new(run_failure(run));
    assert_non_null(keystore);
    const struct passphrase_source passphrases = {.ask = ask, .context = (void *)opener};
    add_certificates(keystore);
    if (*opener->key)
        add_secret(keystore, opener->key, &passphrases);
    assert_int_equal(failure_get(run_failure(run), NULL), 0);
    const struct read_params params = {.keystore = keystore,
                                       .passphrases = &passphrases,
                                       .now = (uint32_t)time(NULL),
                                       .jobs = jobs,
                                       .event = count_warnings,
                                       .context = result};
    const char *end = strrchr(name, '.');
    if (end && !strcmp(end, ".sig"))
        read_detached(run, &params, name, result);
    else
        read_message(run, &params, name, result);
    gpg_error_t noted = failure_get(run_failure(run), result->sentence);
    if (result->code && (gpg_err_code(noted) != gpg_err_code(result->code) || !*result->sentence))
        fail_msg("%s: %s, but noted is: %s (%s)", name, gpg_strerror(result->code), gpg_strerror(noted),
                 result->sentence);
    keystore_free(keystore);
    run_free(run);
}

static bool has_signer(const struct result *result, const char *fpr, size_t n)
{
    for (unsigned i = 0; i < result->signatures; i++)
        if ((result->status[i] == SIGNATURE_GOOD || result->status[i] == SIGNATURE_GOOD_KEY_EXPIRED) &&
            strlen(result->signer[i]) == n && !strncmp(result->signer[i], fpr, n))
            return true;
    return false;
}

/* The signers named, but for the stranger, have signed, and nobody else's signature is unknown or bad. */
static bool signers_good(char *const row[COLUMNS], const struct result *result)
{
    if (!strcmp(row[SIGNERS], "-"))
        return !result->signatures;
    unsigned strangers = 0, named = 0;
    for (const char *at = row[SIGNERS]; *at; named++) {
        size_t n = strcspn(at, ",");
        bool stranger = !strncmp(at, "43551129450DE131B21B7FB15F516F4D1AD50C17", n);
        strangers += stranger;
        if (!stranger && !has_signer(result, at, n))
            return false;
        at += n + (at[n] == ',');
    }
    return result->good == named - strangers && !result->bad && result->unknown == strangers;
}

/* NULL, or what is wrong. */
static const char *compare(char *const row[COLUMNS], const struct result *result)
{
    const char *outcome = row[OUTCOME];
    bool either = strstr(row[NOTES], "either") != NULL;
    bool right_data = !result->code && !strcmp(result->sha256, row[SHA256]);
    if (!result->code && strcmp(row[SHA256], "-") != 0 && !right_data)
        return "wrong data";
    if (either && (result->code || right_data))
        return NULL;
    if (!strcmp(outcome, "corrupt"))
        return result->code ? NULL : "read without an error";
    if (!strcmp(outcome, "unsupported"))
        return right_data || gpg_err_code(result->code) == GPG_ERR_NOT_SUPPORTED ? NULL
                                                                                 : "not refused as not supported";
    if (!strcmp(outcome, "weak"))
        return gpg_err_code(result->code) == GPG_ERR_UNSUPPORTED_PROTECTION ||
                       (right_data && (result->warnings || result->status[0] == SIGNATURE_WEAK))
                   ? NULL
                   : "neither refused nor called weak";
    if (!right_data)
        return "not read";
    if (!strcmp(outcome, "good"))
        return signers_good(row, result) ? NULL : "signatures not as expected";
    if (!strcmp(outcome, "badsig"))
        return result->bad && !result->good ? NULL : "no bad signature";
    if (!strcmp(outcome, "nosig"))
        return result->unknown && !result->good && !result->bad ? NULL : "no signature that cannot be checked";
    return "outcome that this test does not know";
}

static unsigned try_row(char *const row[COLUMNS], const struct opener *opener)
{
    unsigned flaws = 0;
    for (unsigned jobs = 0; jobs <= 2; jobs += 2) {
        struct result result;
        read_sample(row[FILE_NAME], opener, jobs, &result);
        const char *flaw = compare(row, &result);
        if (!flaw)
            continue;
        flaws++;
        print_error("%s (%s%s, jobs %u; wanted: %s): %s: %s: %s; %u good, %u bad, %u unknown\n", row[FILE_NAME],
                    opener->key, opener->passphrase, jobs, row[OUTCOME], flaw, gpg_strerror(result.code),
                    result.sentence, result.good, result.bad, result.unknown);
        for (unsigned i = 0; i < result.signatures; i++)
            print_error("    status %u by %s\n", result.status[i], result.signer[i]);
    }
    return flaws;
}

/* A string between the double quotes after AT; the place behind it. */
static const char *quoted(const char *at, char *out, size_t size)
{
    at = strchr(at, '"');
    assert_non_null(at);
    size_t n = strcspn(at + 1, "\"");
    assert_true(n < size);
    memcpy(out, at + 1, n);
    out[n] = 0;
    return at + n + 2;
}

/* key:NAME, key:NAME(pw "…") or pw:"…", one after the other; "-": nothing is needed. */
static unsigned try_openers(char *const row[COLUMNS])
{
    if (!strcmp(row[OPENS_WITH], "-"))
        return try_row(row, &(struct opener){0});
    unsigned flaws = 0;
    for (const char *at = row[OPENS_WITH]; *at; at += *at == ',') {
        struct opener opener = {0};
        if (!strncmp(at, "pw:", 3)) {
            at = quoted(at, opener.passphrase, sizeof opener.passphrase);
        } else {
            assert_memory_equal(at, "key:", 4);
            at += 4;
            size_t n = strcspn(at, "(,");
            assert_true(n < sizeof opener.key);
            memcpy(opener.key, at, n);
            at += n;
            if (*at == '(') {
                at = quoted(at, opener.key_passphrase, sizeof opener.key_passphrase);
                assert_int_equal(*at, ')');
                at++;
            }
            /* One of several recipients whose key cannot be had here: the other openers count. */
            if (!strncmp(opener.key, "ky", 2) && strcmp(row[OUTCOME], "unsupported") != 0)
                continue;
        }
        flaws += try_row(row, &opener);
    }
    return flaws;
}

static void test_manifest(void **state)
{
    (void)state;
    uint8_t *text;
    size_t n;
    assert_int_equal(file_read_whole(NULL, SAMPLES "manifest.tsv", 1 << 20, &text, &n), 0);
    char *copy = strndup((char *)text, n);
    free(text);
    assert_non_null(copy);
    unsigned rows = 0, flaws = 0;
    const char *only = getenv("SAMPLE");
    char *rest = NULL;
    for (char *line = strtok_r(copy, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        char *row[COLUMNS];
        for (unsigned i = 0; i < COLUMNS; i++) {
            row[i] = strsep(&line, "\t");
            assert_non_null(row[i]);
        }
        if (!strcmp(row[FILE_NAME], "file") || (only && strcmp(row[FILE_NAME], only) != 0))
            continue;
        rows++;
        flaws += try_openers(row);
    }
    free(copy);
    assert_int_equal(flaws, 0);
    assert_true(only || rows >= 242);
}

static int setup(void **state)
{
    (void)state;
    return crypt_init(NULL) ? -1 : 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_manifest)};
    return cmocka_run_group_tests(tests, setup, NULL);
}
