/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "gpgtar/report.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* A report that speaks into a file without a name. */
static struct report *to_file(FILE **ret_file)
{
    FILE *file = tmpfile();
    assert_non_null(file);
    struct report *report = report_new(fileno(file));
    assert_non_null(report);
    *ret_file = file;
    return report;
}

/* What FILE has, from its start; the file is emptied. */
static const char *said(FILE *file)
{
    static char text[65536];
    ssize_t n = pread(fileno(file), text, sizeof text - 1, 0);
    assert_true(n >= 0);
    text[n] = '\0';
    assert_int_equal(ftruncate(fileno(file), 0), 0);
    assert_int_equal(lseek(fileno(file), 0, SEEK_SET), 0);
    return text;
}

static void test_escape(void **state)
{
    static const struct {
        const char *raw, *safe;
    } table[] = {
        {"", ""},
        {"plain - text", "plain - text"},
        {"a\nb\tc\033[2J\001\177", "a\\nb\\tc\\x1b[2J\\x01\\x7f"},
        {"\r", "\\x0d"},
        {"gr\xc3\xbcn \xe2\x82\xac \xf0\x9f\x94\x92", "gr\xc3\xbcn \xe2\x82\xac \xf0\x9f\x94\x92"},
        {"a\xff\xc3", "a\\xff\\xc3"},
        {"\xc3\xc3\xbc", "\\xc3\xc3\xbc"},
        {"\xc0\xaf", "\\xc0\\xaf"},
        {"\xed\xa0\x80", "\\xed\\xa0\\x80"},
        {"\xc2\x9b"
         "2J",
         "\\xc2\\x9b"
         "2J"},
        {"\xc2\xa0", "\xc2\xa0"},
        {"\xe2\x80\xae"
         "x\xe2\x81\xa6",
         "\\xe2\\x80\\xaex\\xe2\\x81\\xa6"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        char *safe = report_escape(table[i].raw, strlen(table[i].raw));
        assert_string_equal(safe, table[i].safe);
        free(safe);
    }
}

static void test_every_byte_is_safe(void **state)
{
    (void)state;
    for (int a = 0; a < 256; a++) {
        for (int b = 0; b < 256; b++) {
            const char raw[2] = {(char)a, (char)b};
            char *safe = report_escape(raw, 2);
            assert_non_null(safe);
            for (const char *p = safe; *p; p++)
                assert_true((unsigned char)*p >= 0x20 && *p != 0x7f);
            free(safe);
        }
    }
}

static void test_levels(void **state)
{
    FILE *file;
    struct report *report = to_file(&file);
    (void)state;
    report_error(report, "%s failed", "a\nb");
    report_warning(report, "careful");
    report_note(report, "by the way");
    report_verbose(report, "details");
    assert_string_equal(said(file), "gpgtar: a\\nb failed\ngpgtar: warning: careful\ngpgtar: by the way\n");
    report_levels(report, true, 2);
    report_error(report, "e");
    report_note(report, "n");
    report_verbose(report, "v");
    assert_string_equal(said(file), "gpgtar: e\ngpgtar: v\n");
    assert_int_equal(report_errors(report), 2);
    assert_int_equal(report_warnings(report), 1);
    report_free(report);
    fclose(file);

    report_error(NULL, "nobody");
    report_transient(NULL, "nobody");
    assert_int_equal(report_errors(NULL), 0);
    report_free(NULL);
}

static void test_failure(void **state)
{
    FILE *file;
    struct report *report = to_file(&file);
    struct failure failure;
    (void)state;
    failure_init(&failure);
    report_failure(report, &failure);
    assert_string_equal(said(file), "");
    /* In parentheses, for cmocka has a macro of that name. */
    (fail)(&failure, gpg_error(GPG_ERR_ENOENT), "%s is not there", "f\033");
    report_failure(report, &failure);
    assert_string_equal(said(file), "gpgtar: f\\x1b is not there\n");
    assert_int_equal(report_errors(report), 1);
    failure_destroy(&failure);
    report_free(report);
    fclose(file);
}

/* Which kinds mean exit 1. */
static void test_notices(void **state)
{
    FILE *file;
    struct report *report = to_file(&file);
    const struct notices notices = report_notices(report);
    (void)state;
    report_levels(report, false, 1);
    for (int kind = NOTICE_ADDED; kind <= NOTICE_DIFFERS; kind++) {
        const bool sound = kind <= NOTICE_EXCLUDED_CACHE || (kind >= NOTICE_EXTRACTED && kind <= NOTICE_LEFTOVER);
        const unsigned long before = report_errors(report);
        notice(&notices, (enum notice_kind)kind, "na\nme", 0, NULL);
        assert_int_equal(report_errors(report) - before, sound ? 0 : 1);
        const char *text = said(file);
        assert_non_null(strstr(text, "gpgtar: na\\nme: "));
        assert_null(strstr(text, "unknown"));
        assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
    }
    notice(&notices, NOTICE_UNREADABLE, "f", gpg_error(GPG_ERR_EACCES), "open");
    assert_non_null(strstr(said(file), "f: cannot be read, left out: open: Permission denied\n"));
    notice(&notices, NOTICE_EMPTY_ARCHIVE, NULL, 0, NULL);
    assert_string_equal(said(file), "gpgtar: the archive is empty\n");
    report_free(report);
    fclose(file);
}

static void test_log_file(void **state)
{
    char folder[] = "/tmp/gpgtar-test-report-XXXXXX", path[64], text[256];
    FILE *file;
    struct report *report = to_file(&file);
    struct failure failure;
    struct stat st;
    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/log", folder);
    failure_init(&failure);
    assert_int_equal(report_log_file(report, &failure, path), 0);
    report_error(report, "into the log");
    assert_string_equal(said(file), "");
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    FILE *log = fopen(path, "r");
    assert_non_null(log);
    assert_non_null(fgets(text, sizeof text, log));
    fclose(log);
    assert_non_null(strstr(text, " gpgtar: into the log\n"));
    assert_int_equal(gpg_err_code(report_log_file(report, &failure, folder)), GPG_ERR_EISDIR);
    failure_destroy(&failure);
    unlink(path);
    rmdir(folder);
    report_free(report);
    fclose(file);
}

static void *shout(void *report)
{
    for (int i = 0; i < 200; i++)
        report_error(report, "0123456789012345678901234567890123456789");
    return NULL;
}

static void test_lines_stay_whole(void **state)
{
    FILE *file;
    struct report *report = to_file(&file);
    pthread_t threads[4];
    (void)state;
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, shout, report), 0);
    for (size_t i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(report_errors(report), 800);
    char *text = strdup(said(file)), *rest = text;
    size_t n = 0;
    for (char *line; (line = strsep(&rest, "\n")) && *line; n++)
        assert_string_equal(line, "gpgtar: 0123456789012345678901234567890123456789");
    assert_int_equal(n, 800);
    free(text);
    report_free(report);
    fclose(file);
}

static void test_help_and_version(void **state)
{
    FILE *file = tmpfile();
    (void)state;
    assert_int_equal(report_help(fileno(file)), 0);
    char *text = strdup(said(file));
    static const char *const words[] = {
        "-e, --encrypt", "-r, --recipient USER-ID", "--max-size BYTES", "--zstd[=LEVEL]",
        "Commands",      "--secret-key-file FILE",  "-j, --jobs N",     "Exit status"};
    for (size_t i = 0; i < ARRAY_SIZE(words); i++)
        if (!strstr(text, words[i]))
            fail_msg("the help has no %s", words[i]);
    char *rest = text;
    for (char *line; (line = strsep(&rest, "\n"));)
        if (strlen(line) > 110)
            fail_msg("a long line in the help: %s", line);
    free(text);
    assert_int_equal(report_version(fileno(file)), 0);
    text = strdup(said(file));
    assert_int_equal(strncmp(text, "gpgtar ", 7), 0);
    assert_non_null(strstr(text, "libgcrypt 1."));
    assert_non_null(strstr(text, "libarchive 3."));
    assert_non_null(strstr(text, "zlib/"));
    free(text);
    assert_int_equal(report_option_names(fileno(file)), 0);
    text = strdup(said(file));
    static const char *const names[] = {"--create",       "--list-archive", "--gpg-args",           "--null",
                                        "--utf8-strings", "--cms",          "--require-compliance", "--with-log",
                                        "--dump-options", "--skip-crypto"};
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        char line[64];
        snprintf(line, sizeof line, "%s\n", names[i]);
        const char *first = strstr(text, line);
        assert_non_null(first);
        assert_null(strstr(first + 1, line));
    }
    free(text);
    fclose(file);
    int full = open("/dev/full", O_WRONLY);
    assert_true(full >= 0);
    assert_int_equal(gpg_err_code(report_help(full)), GPG_ERR_ENOSPC);
    close(full);
}

/* In a child, with each set of the three closed. */
static void test_closed_descriptors(void **state)
{
    (void)state;
    for (int set = 0; set < 8; set++) {
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
            for (int fd = 0; fd <= 2; fd++)
                if (set & (1 << fd))
                    close(fd);
            if (report_claim_standard_fds())
                _exit(1);
            for (int fd = 0; fd <= 2; fd++)
                if (fcntl(fd, F_GETFD) < 0)
                    _exit(2);
            if ((set & 1) && read(0, &set, 1) != 0)
                _exit(3);
            int next = open("/dev/null", O_RDONLY);
            _exit(next > 2 ? 0 : 4);
        }
        int status;
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
    }
}

/* On a terminal a message takes the progress line away first. */
static void test_transient(void **state)
{
    char text[256] = "";
    size_t got = 0;
    int master = posix_openpt(O_RDWR | O_NOCTTY);
    (void)state;
    assert_true(master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0);
    int terminal = open(ptsname(master), O_RDWR | O_NOCTTY);
    assert_true(terminal >= 0);
    struct report *report = report_new(terminal);
    assert_true(report_on_terminal(report));
    report_transient(report, "50 %");
    report_note(report, "hello");
    report_transient(report, "");
    static const char expected[] = "\rgpgtar: 50 %\033[K\r\033[Kgpgtar: hello\r\n";
    while (got < sizeof expected - 1) {
        ssize_t n = read(master, text + got, sizeof text - 1 - got);
        assert_true(n > 0);
        got += (size_t)n;
    }
    assert_string_equal(text, expected);
    report_free(report);
    close(terminal);
    close(master);
}

/* Without a controlling terminal the answer is no, at once. */
static void test_ask_without_terminal(void **state)
{
    (void)state;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        setsid();
        _exit(report_ask(NULL, "replace %s?", "x") ? 1 : 0);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_escape),
        cmocka_unit_test(test_every_byte_is_safe),
        cmocka_unit_test(test_levels),
        cmocka_unit_test(test_failure),
        cmocka_unit_test(test_notices),
        cmocka_unit_test(test_log_file),
        cmocka_unit_test(test_lines_stay_whole),
        cmocka_unit_test(test_help_and_version),
        cmocka_unit_test(test_closed_descriptors),
        cmocka_unit_test(test_transient),
        cmocka_unit_test(test_ask_without_terminal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
