/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "gpgtar/passphrase.h"

#include "gpgtar/signals.h"
#include "pgp/crypt_init.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <cmocka.h>

static char file_name[] = "/tmp/gpgtar-test-passphrase-XXXXXX";

static int set_up(void **state)
{
    (void)state;
    int fd = mkstemp(file_name);
    if (fd < 0 || close(fd))
        return -1;
    return crypt_init(NULL) ? -1 : 0;
}

static int tear_down(void **state)
{
    (void)state;
    return unlink(file_name);
}

static void fill(const void *bytes, size_t n)
{
    FILE *file = fopen(file_name, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, n, file), n);
    assert_int_equal(fclose(file), 0);
}

static gpg_error_t get(const struct passphrase_origin *origin, bool is_new, struct secret **ret,
                       char sentence[FAILURE_SENTENCE_MAX])
{
    const struct passphrase_request request = {
        .source = origin, .is_new = is_new, .repeat = 1, .batch = true, .what = "a passphrase"};
    struct failure failure;
    failure_init(&failure);
    gpg_error_t err = passphrase_get(&request, &failure, ret);
    assert_int_equal(failure_get(&failure, sentence), err);
    failure_destroy(&failure);
    return err;
}

static void expect(const struct passphrase_origin *origin, const char *expected)
{
    char sentence[FAILURE_SENTENCE_MAX];
    struct secret *secret = NULL;
    assert_int_equal(get(origin, false, &secret, sentence), 0);
    assert_int_equal(secret->n, strlen(expected));
    assert_memory_equal(secret->bytes, expected, secret->n);
    secret_free(secret);
}

static void refuse(const struct passphrase_origin *origin, bool is_new, gpg_err_code_t code, const char *word)
{
    char sentence[FAILURE_SENTENCE_MAX];
    struct secret *secret = NULL;
    assert_int_equal(gpg_err_code(get(origin, is_new, &secret, sentence)), code);
    assert_null(secret);
    if (!strstr(sentence, word))
        fail_msg("\"%s\" does not say \"%s\"", sentence, word);
}

/* The same through a file and through a descriptor. */
static void test_file_and_fd(void **state)
{
    static const struct {
        const char *content, *expected;
    } table[] = {
        {"secret", "secret"},
        {"secret\n", "secret"},
        {"secret\r\n", "secret\r"}, /* as gpg reads it */
        {"two\nlines\n", "two"},
        {" blanks \n", " blanks "},
        {"", ""},
        {"\n", ""},
        {"\r\n", "\r"},
        {"a\rb\n", "a\rb"},
        {"p\xc3\xa4ss\n", "p\xc3\xa4ss"},
        {"end\r", "end\r"},
    };
    const struct passphrase_origin file = {.kind = PASSPHRASE_FILE, .name = file_name};
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        fill(table[i].content, strlen(table[i].content));
        expect(&file, table[i].expected);
        const struct passphrase_origin fd = {.kind = PASSPHRASE_FD, .fd = open(file_name, O_RDONLY)};
        expect(&fd, table[i].expected);
        close(fd.fd);
        if (table[i].expected[0] == '\0')
            refuse(&file, true, GPG_ERR_NO_PASSPHRASE, "empty");
    }
}

/* What follows the line is left for whoever reads next. */
static void test_fd_takes_one_line(void **state)
{
    char rest[8];
    int ends[2];
    (void)state;
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], "one\nrest", 8), 8);
    close(ends[1]);
    const struct passphrase_origin fd = {.kind = PASSPHRASE_FD, .fd = ends[0]};
    expect(&fd, "one");
    assert_int_equal(read(ends[0], rest, sizeof rest), 4);
    assert_memory_equal(rest, "rest", 4);
    close(ends[0]);
    refuse(&fd, false, GPG_ERR_EBADF, "descriptor");
}

static void test_lengths(void **state)
{
    static char text[PASSPHRASE_MAX + 8];
    const struct passphrase_origin file = {.kind = PASSPHRASE_FILE, .name = file_name};
    char sentence[FAILURE_SENTENCE_MAX];
    (void)state;
    for (size_t n = PASSPHRASE_MAX - 2; n <= PASSPHRASE_MAX + 4; n++) {
        for (int ending = 0; ending < 2; ending++) {
            static const char *const endings[] = {"", "\n"};
            memset(text, 'x', n);
            strcpy(text + n, endings[ending]);
            fill(text, n + strlen(endings[ending]));
            if (n > PASSPHRASE_MAX) {
                refuse(&file, false, GPG_ERR_TOO_LARGE, file_name);
                continue;
            }
            struct secret *secret = NULL;
            assert_int_equal(get(&file, true, &secret, sentence), 0);
            assert_int_equal(secret->n, n);
            secret_free(secret);
        }
    }
}

static void test_missing_file(void **state)
{
    const struct passphrase_origin file = {.kind = PASSPHRASE_FILE, .name = (char[]){"/nonexistent/file"}};
    const struct passphrase_origin folder = {.kind = PASSPHRASE_FILE, .name = (char[]){"/tmp"}};
    (void)state;
    refuse(&file, false, GPG_ERR_ENOENT, "/nonexistent/file");
    refuse(&folder, false, GPG_ERR_EISDIR, "/tmp");
}

static void test_command(void **state)
{
    static const struct {
        const char *command, *expected; /* NULL: refused */
        const char *word;
    } table[] = {
        {"echo secret", "secret", NULL},
        {"printf secret", "secret", NULL},
        {"printf 'a b\\nrest\\n'", "a b", NULL},
        {"echo first; head -c 300000 /dev/zero", "first", NULL},
        {"cat; echo end-of-input", "end-of-input", NULL},
        {"printf ''", "", NULL},
        {"echo secret; exit 3", NULL, "status 3"},
        {"exit 1", NULL, "status 1"},
        {"/nonexistent/program 2>/dev/null", NULL, "status 127"},
        {"kill -9 $$", NULL, "signal 9"},
        {"head -c 10000 /dev/zero", NULL, "longer"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        struct passphrase_origin command = {.kind = PASSPHRASE_COMMAND, .name = strdup(table[i].command)};
        if (table[i].expected)
            expect(&command, table[i].expected);
        else
            refuse(&command, false, table[i].word[0] == 'l' ? GPG_ERR_TOO_LARGE : GPG_ERR_NO_PASSPHRASE, table[i].word);
        free(command.name);
    }
}

static void test_batch_never_asks(void **state)
{
    const struct passphrase_origin none = {.kind = PASSPHRASE_DEFAULT};
    (void)state;
    refuse(&none, true, GPG_ERR_NO_PASSPHRASE, "--batch");
}

/* A child with a terminal of its own asks twice; the parent types INPUT once each prompt is there. */
struct dialogue {
    const char *first, *second; /* typed at the first and second prompt; NULL: nothing */
    int signal;                 /* sent at the first prompt instead */
    int expected;               /* the child's exit code */
};

static void ask_in_child(const char *terminal_name)
{
    const struct passphrase_origin none = {.kind = PASSPHRASE_DEFAULT};
    const struct passphrase_request request = {
        .source = &none, .is_new = true, .repeat = 1, .what = "Passphrase for x"};
    struct secret *secret = NULL;
    struct termios before, after;
    setsid();
    int terminal = open(terminal_name, O_RDWR);
    if (terminal < 0 || ioctl(terminal, TIOCSCTTY, 0) || signals_install() || tcgetattr(terminal, &before))
        _exit(90);
    gpg_error_t err = passphrase_get(&request, NULL, &secret);
    if (tcgetattr(terminal, &after) || before.c_lflag != after.c_lflag || !(after.c_lflag & ECHO))
        _exit(91);
    int code = err ? (int)gpg_err_code(err) % 256 : secret->n == 6 && memcmp(secret->bytes, "secret", 6) == 0 ? 0 : 92;
    secret_free(secret);
    _exit(code);
}

/* Reads from MASTER until the text ends with ": ". */
static void wait_for_prompt(int master, char *text, size_t n)
{
    size_t got = strlen(text);
    while (got < 2 || strcmp(text + got - 2, ": ") != 0) {
        ssize_t more = read(master, text + got, n - 1 - got);
        assert_true(more > 0);
        got += (size_t)more;
        text[got] = '\0';
    }
}

static void test_terminal(void **state)
{
    static const struct dialogue table[] = {
        {"secret\n", "secret\n", 0, 0},         {"secret\n", "secreT\n", 0, GPG_ERR_BAD_PASSPHRASE},
        {"\n", NULL, 0, GPG_ERR_NO_PASSPHRASE}, {"\004", NULL, 0, GPG_ERR_CANCELED},
        {NULL, NULL, SIGINT, GPG_ERR_CANCELED}, {NULL, NULL, SIGTERM, GPG_ERR_CANCELED},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        char text[1024] = "";
        int status, master = posix_openpt(O_RDWR | O_NOCTTY);
        assert_true(master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0);
        /* Held open, so that the pseudo terminal is not hung up before the child has it. */
        int held = open(ptsname(master), O_RDWR | O_NOCTTY);
        assert_true(held >= 0);
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0)
            ask_in_child(ptsname(master));
        wait_for_prompt(master, text, sizeof text);
        if (table[i].signal)
            assert_int_equal(kill(pid, table[i].signal), 0);
        if (table[i].first)
            assert_int_equal(write(master, table[i].first, strlen(table[i].first)), strlen(table[i].first));
        if (table[i].second) {
            strcat(text, "|");
            wait_for_prompt(master, text, sizeof text);
            assert_non_null(strstr(text, "again"));
            assert_int_equal(write(master, table[i].second, strlen(table[i].second)), strlen(table[i].second));
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), table[i].expected % 256);
        assert_non_null(strstr(text, "gpgtar: Passphrase for x: "));
        assert_null(strstr(text, "secre"));
        close(held);
        close(master);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_file_and_fd), cmocka_unit_test(test_fd_takes_one_line),
        cmocka_unit_test(test_lengths),     cmocka_unit_test(test_missing_file),
        cmocka_unit_test(test_command),     cmocka_unit_test(test_batch_never_asks),
        cmocka_unit_test(test_terminal),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
