/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "gpgtar/config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void test_split(void **state)
{
    static const struct {
        const char *text, *words; /* words with | after each; NULL: refused */
    } table[] = {
        {"", ""},
        {"   \t ", ""},
        {"a", "a|"},
        {" a  b\tc\n", "a|b|c|"},
        {"'a b'", "a b|"},
        {"\"a b\" c", "a b|c|"},
        {"--a='b c'd", "--a=b cd|"},
        {"''", "|"},
        {"a '' \"\"", "a|||"},
        {"'\"' \"'\"", "\"|'|"},
        {"a\\ b", "a\\|b|"},
        {"'", NULL},
        {"\"", NULL},
        {"a 'b", NULL},
        {"a \"b'c", NULL},
        {"'a\"", NULL},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        char **words = NULL, got[128] = "";
        size_t n = 0;
        gpg_error_t err = config_split(table[i].text, &words, &n);
        if (!table[i].words) {
            assert_int_equal(gpg_err_code(err), GPG_ERR_SYNTAX);
            continue;
        }
        assert_int_equal(err, 0);
        for (size_t w = 0; w < n; w++) {
            strcat(got, words[w]);
            strcat(got, "|");
        }
        assert_string_equal(got, table[i].words);
        config_words_free(words, n);
    }
}

static void test_home(void **state)
{
    static const struct {
        const char *homedir, *gnupghome, *home, *expected;
    } table[] = {
        {"/h", "/g", "/u", "/h"},     {NULL, "/g", "/u", "/g"},    {NULL, NULL, "/u", "/u/.gnupg"},
        {"", "", "/u", "/u/.gnupg"},  {"~/x", NULL, "/u", "/u/x"}, {NULL, "~/y", "/u/", "/u/y"},
        {NULL, NULL, "/", "/.gnupg"}, {"rel", NULL, NULL, "rel"},  {NULL, "", "//", "/.gnupg"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        char *home = NULL;
        assert_int_equal(config_home(table[i].homedir, table[i].gnupghome, table[i].home, NULL, &home), 0);
        assert_string_equal(home, table[i].expected);
        free(home);
    }
    char *home = NULL;
    assert_int_equal(config_home(NULL, NULL, NULL, NULL, &home), 0);
    assert_non_null(strstr(home, "/.gnupg"));
    free(home);
}

static gpg_error_t gather(void *context, const char *name, const char *value, const char *where)
{
    char *to = context;
    const char *line = strstr(where, "line ");
    assert_non_null(line);
    sprintf(to + strlen(to), "%s:%s=%s;", line + 5, name, value ? value : "(none)");
    return strcmp(name, "stop") == 0 ? gpg_error(GPG_ERR_CANCELED) : 0;
}

static gpg_error_t read_text(const char *text, size_t n, char *got, char sentence[FAILURE_SENTENCE_MAX])
{
    char folder[] = "/tmp/gpgtar-test-config-XXXXXX", path[64];
    struct failure failure;
    failure_init(&failure);
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/x.conf", folder);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, n, file), n);
    assert_int_equal(fclose(file), 0);
    got[0] = '\0';
    gpg_error_t err = config_read(folder, "x.conf", &failure, gather, got);
    failure_get(&failure, sentence);
    failure_destroy(&failure);
    unlink(path);
    rmdir(folder);
    return err;
}

static void test_lines(void **state)
{
    static const struct {
        const char *text, *expected;
    } table[] = {
        {"", ""},
        {"a", "1:a=(none);"},
        {"a\n", "1:a=(none);"},
        {"a \r\n--b  c d \n", "1:a=(none);2:b=c d;"},
        {"#x\n  # y\n[section]\nk v#w\n", "4:k=v#w;"},
        {"k \"v w\"\nk \"\"\nk \"\n", "1:k=v w;2:k=;3:k=\";"},
        {"a\nstop\nb\n", "1:a=(none);2:stop=(none);"},
    };
    char got[256], sentence[FAILURE_SENTENCE_MAX];
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        gpg_error_t err = read_text(table[i].text, strlen(table[i].text), got, sentence);
        assert_string_equal(got, table[i].expected);
        assert_int_equal(gpg_err_code(err), strstr(table[i].text, "stop") ? GPG_ERR_CANCELED : 0);
    }
    assert_int_equal(gpg_err_code(read_text("a\0b", 3, got, sentence)), GPG_ERR_SYNTAX);
    assert_non_null(strstr(sentence, "x.conf"));
}

static void test_missing_and_unreadable(void **state)
{
    char got[256] = "", sentence[FAILURE_SENTENCE_MAX];
    struct failure failure;
    (void)state;
    failure_init(&failure);
    assert_int_equal(config_read("/nonexistent", "x.conf", &failure, gather, got), 0);
    assert_int_equal(config_read("/etc/passwd", "x.conf", &failure, gather, got), 0);
    assert_string_equal(got, "");
    assert_true(config_read("/", "etc", &failure, gather, got) != 0);
    failure_get(&failure, sentence);
    assert_non_null(strstr(sentence, "//etc"));
    failure_destroy(&failure);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_split),
        cmocka_unit_test(test_home),
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_missing_and_unreadable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
