/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "keys.h"

#include "pgp/keyboxd.h"
#include "pgp/keystore.h"

#include <signal.h>

/* The scripted server stands beside this file. */
static void server_file(char file[512])
{
    snprintf(file, 512, "%s", __FILE__);
    strcpy(strrchr(file, '/'), "/keyboxd.py");
}

/* A home with two certificates and what the server finds by which pattern. */
static struct home home_with_answers(void)
{
    static const char answers[] = "\tone two\n"
                                  "<ed25519@example.org\tone\n"
                                  "*example.org\tone two\n"
                                  "*Alpha\tone two\n"
                                  "=ed25519 Alpha <ed25519@example.org>\tone\n"
                                  "@example\tone two\n"
                                  "0xCA3B4E156864ED52371CBA128435BF636FFA307F\tone\n"
                                  "0x8435BF636FFA307F\tone\n"
                                  "0x59FC15196725BB4\t\n"
                                  "&0123456789ABCDEF0123456789ABCDEF01234567\ttwo\n"
                                  "*broken\terror\n"
                                  "*empty\tnone none none\n";
    struct home home = home_new();
    struct bytes one = sample_bytes("ed25519.pub.asc"), two = sample_bytes("multi.pub.asc");
    char file[128];
    snprintf(file, sizeof file, "%s/one", home.folder);
    file_write(file, one.at, one.n);
    snprintf(file, sizeof file, "%s/two", home.folder);
    file_write(file, two.at, two.n);
    snprintf(file, sizeof file, "%s/none", home.folder);
    file_write(file, "", 0);
    snprintf(file, sizeof file, "%s/answers", home.folder);
    file_write(file, answers, strlen(answers));
    bytes_clear(&one);
    bytes_clear(&two);
    return home;
}

static struct keyboxd *client(const struct home *home, bool must_run)
{
    struct keyboxd *keyboxd = NULL;
    char program[512], socket[128];
    server_file(program);
    snprintf(socket, sizeof socket, "%s/S.keyboxd", home->folder);
    struct keyboxd_params params = {.home = home->folder, .socket = socket, .program = program, .must_run = must_run};
    assert_int_equal(keyboxd_open(&params, &keyboxd), 0);
    return keyboxd;
}

/* The server of HOME ends with its socket. */
static void server_stop(const struct home *home)
{
    shell("kill $(cat %s/pid) 2>/dev/null; rm -f %s/S.keyboxd %s/pid", home->folder, home->folder, home->folder);
}

static size_t found(struct keyboxd *keyboxd, const char *text)
{
    struct key_spec spec;
    uint8_t *bytes = NULL;
    size_t n = 0, certificates = 0;
    if (text)
        assert_int_equal(key_spec_parse(text, &spec), 0);
    assert_int_equal(keyboxd_search(NULL, keyboxd, text ? &spec : NULL, &bytes, &n), 0);
    for (size_t at = 0; at < n; certificates++) {
        struct certificate *certificate = NULL;
        size_t used;
        assert_int_equal(certificate_parse(NULL, bytes + at, n - at, &certificate, &used), 0);
        certificate_free(certificate);
        at += used;
    }
    free(bytes);
    return certificates;
}

static void test_search(void **state)
{
    (void)state;
    struct home home = home_with_answers();
    struct keyboxd *keyboxd = client(&home, false);
    assert_int_equal(found(keyboxd, "ed25519@example.org"), 1);
    assert_int_equal(found(keyboxd, "*example.org"), 2);
    assert_int_equal(found(keyboxd, "@example"), 2);
    assert_int_equal(found(keyboxd, "+Alpha x"), 2);
    assert_int_equal(found(keyboxd, "=ed25519 Alpha <ed25519@example.org>"), 1);
    assert_int_equal(found(keyboxd, "ca3b4e156864ed52371cba128435bf636ffa307f"), 1);
    assert_int_equal(found(keyboxd, "0x8435BF636FFA307F!"), 1);
    assert_int_equal(found(keyboxd, "&0123456789ABCDEF0123456789ABCDEF01234567"), 1);
    assert_int_equal(found(keyboxd, "nobody"), 0);
    assert_int_equal(found(keyboxd, NULL), 2);
    assert_int_equal(found(keyboxd, "*empty"), 0);
    keyboxd_free(keyboxd);
    /* One that runs is used, whether or not we would start one. */
    keyboxd = client(&home, true);
    assert_int_equal(found(keyboxd, "<ed25519@example.org>"), 1);
    keyboxd_free(keyboxd);
    char *asked = shell_output("cat %s/asked", home.folder);
    assert_non_null(strstr(asked, "SEARCH --openpgp -- <ed25519@example.org\nNEXT\n"));
    free(asked);
    server_stop(&home);
    home_remove(&home);
}

static void test_failures(void **state)
{
    (void)state;
    struct home home = home_with_answers();
    struct keyboxd *keyboxd = client(&home, true);
    struct failure failure;
    struct key_spec spec;
    uint8_t *bytes = NULL;
    size_t n = 0;
    char line[2000];
    assert_int_equal(key_spec_parse("*die", &spec), 0);
    failure_init(&failure);
    assert_code(keyboxd_search(&failure, keyboxd, &spec, &bytes, &n), GPG_ERR_NO_KEYBOXD);
    assert_non_null(strstr(failure.sentence, home.folder));
    failure_destroy(&failure);
    keyboxd_free(keyboxd);
    /* One that does not start. */
    snprintf(line, sizeof line, "%s/refuse", home.folder);
    file_write(line, "", 0);
    keyboxd = client(&home, false);
    assert_code(keyboxd_search(NULL, keyboxd, &spec, &bytes, &n), GPG_ERR_NO_KEYBOXD);
    remove(line);
    /* One that goes away in mid-answer is not "nothing found"; the next search starts another. */
    failure_init(&failure);
    assert_code(keyboxd_search(&failure, keyboxd, &spec, &bytes, &n), GPG_ERR_ASSUAN_SERVER_FAULT);
    assert_non_null(strstr(failure.sentence, home.folder));
    failure_destroy(&failure);
    server_stop(&home);
    assert_int_equal(found(keyboxd, "ed25519@example.org"), 1);
    assert_int_equal(key_spec_parse("*broken", &spec), 0);
    assert_code(keyboxd_search(NULL, keyboxd, &spec, &bytes, &n), GPG_ERR_NOT_IMPLEMENTED);
    /* What does not fit a line. */
    memset(line, 'x', sizeof line - 1);
    line[sizeof line - 1] = '\0';
    assert_int_equal(key_spec_parse(line, &spec), 0);
    assert_code(keyboxd_search(NULL, keyboxd, &spec, &bytes, &n), GPG_ERR_INV_USER_ID);
    assert_int_equal(key_spec_parse("a\nKILLKEYBOXD", &spec), 0);
    assert_code(keyboxd_search(NULL, keyboxd, &spec, &bytes, &n), GPG_ERR_INV_USER_ID);
    keyboxd_free(keyboxd);
    keyboxd_free(NULL);
    server_stop(&home);
    home_remove(&home);
}

static void test_socket_names(void **state)
{
    (void)state;
    char socket[200];
    struct keyboxd *keyboxd = NULL;
    struct failure failure;
    uint8_t *bytes;
    size_t n;
    memset(socket, 'x', sizeof socket - 1);
    socket[sizeof socket - 1] = '\0';
    struct keyboxd_params params = {.home = "/nowhere", .socket = socket, .must_run = true};
    assert_int_equal(keyboxd_open(&params, &keyboxd), 0);
    failure_init(&failure);
    assert_code(keyboxd_search(&failure, keyboxd, NULL, &bytes, &n), GPG_ERR_NO_KEYBOXD);
    assert_non_null(strstr(failure.sentence, "too long"));
    failure_destroy(&failure);
    keyboxd_free(keyboxd);
    /* Beside gpg-agent's. */
    params = (struct keyboxd_params){.home = "/nowhere", .must_run = true};
    assert_int_equal(keyboxd_open(&params, &keyboxd), 0);
    failure_init(&failure);
    assert_code(keyboxd_search(&failure, keyboxd, NULL, &bytes, &n), GPG_ERR_NO_KEYBOXD);
    assert_non_null(strstr(failure.sentence, "/S.keyboxd)"));
    failure_destroy(&failure);
    keyboxd_free(keyboxd);
}

static void test_keystore(void **state)
{
    (void)state;
    struct home home = home_with_answers();
    struct keystore *keystore = keystore_new(NULL);
    struct key_match match;
    assert_int_equal(keystore_add_keyboxd(keystore, client(&home, false)), 0);
    assert_int_equal(keystore_find(keystore, "ed25519@example.org", KEY_ENCRYPTS, 1764000000, &match), 0);
    assert_string_equal(certificate_uid(match.certificate, 0, NULL), "ed25519 Alpha <ed25519@example.org>");
    certificate_free(match.certificate);
    assert_int_equal(keystore_find(keystore, "*example.org", KEY_ENCRYPTS, 1764000000, &match), 0);
    assert_int_equal(match.ambiguous, 1);
    certificate_free(match.certificate);
    assert_code(keystore_find(keystore, "nobody", KEY_ENCRYPTS, 1764000000, &match), GPG_ERR_NO_PUBKEY);
    keystore_free(keystore);
    server_stop(&home);
    home_remove(&home);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_search),
        cmocka_unit_test(test_failures),
        cmocka_unit_test(test_socket_names),
        cmocka_unit_test(test_keystore),
    };
    signal(SIGPIPE, SIG_IGN);
    return crypt_init(NULL) ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
