/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "gpgtar/status.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static struct status *to_file(FILE **ret_file)
{
    struct status *status = NULL;
    FILE *file = tmpfile();
    assert_non_null(file);
    assert_int_equal(status_new(fileno(file), NULL, &status), 0);
    assert_non_null(status);
    *ret_file = file;
    return status;
}

static void expect(FILE *file, const char *expected)
{
    static char text[65536];
    ssize_t n = pread(fileno(file), text, sizeof text - 1, 0);
    assert_true(n >= 0);
    text[n] = '\0';
    assert_string_equal(text, expected);
    assert_int_equal(ftruncate(fileno(file), 0), 0);
    assert_int_equal(lseek(fileno(file), 0, SEEK_SET), 0);
}

static void test_lines(void **state)
{
    FILE *file;
    struct status *status = to_file(&file);
    (void)state;
    status_line(status, "NODATA", "%d", 1);
    status_end_encryption(status);
    status_line(status, "GOODSIG", "%s %s", "0123456789ABCDEF", "A\nB\r\033 100% <a@b>");
    expect(file, "[GNUPG:] NODATA 1\n[GNUPG:] END_ENCRYPTION\n"
                 "[GNUPG:] GOODSIG 0123456789ABCDEF A%0AB%0D%1B 100% <a@b>\n");
    status_begin_encryption(status, 2, 9, 0);
    status_begin_encryption(status, 0, 9, 2);
    status_begin_signing(status, 8);
    status_sig_created(status, 'S', 22, 8, 0, 1700000000, "ABCD");
    status_key_considered(status, "ABCD", 0);
    expect(file, "[GNUPG:] BEGIN_ENCRYPTION 2 9\n[GNUPG:] BEGIN_ENCRYPTION 0 9 2\n[GNUPG:] BEGIN_SIGNING H8\n"
                 "[GNUPG:] SIG_CREATED S 22 8 00 1700000000 ABCD\n[GNUPG:] KEY_CONSIDERED ABCD 0\n");
    status_inv_recp(status, 10, "bob \n");
    status_inv_sgnr(status, 9, "x");
    status_no_recp(status, 0);
    status_no_sgnr(status, 0);
    status_plaintext(status, 'b', 5, "a b%");
    status_plaintext(status, 'u', 0, NULL);
    expect(file, "[GNUPG:] INV_RECP 10 bob %0A\n[GNUPG:] INV_SGNR 9 x\n[GNUPG:] NO_RECP 0\n[GNUPG:] NO_SGNR 0\n"
                 "[GNUPG:] PLAINTEXT 62 5 a%20b%25\n[GNUPG:] PLAINTEXT 75 0 \n");
    status_extract(status, &(struct status_extract){1, 2, 3, 4, 5, 6, 7});
    expect(file, "[GNUPG:] GPGTAR_EXTRACT 1 2 3 4 5 6 7\n");
    status_free(status);
    fclose(file);
}

static void test_progress(void **state)
{
    static const struct {
        char phase;
        uint64_t current, total;
        const char *line;
    } table[] = {
        {'c', 5, 0, "c 5 0"},
        {'c', 7, 5, "c 5 5"},
        {'s', 0, 0, "s 0 0 B"},
        {'s', 1, 2, "s 1 2 B"},
        {'s', 3, 2, "s 2 2 B"},
        {'s', 1048576, 1048576, "s 1048576 1048576 B"},
        {'s', 1048577, 1048577, "s 1024 1024 KiB"},
        {'s', 2000000, 0, "s 1953 0 KiB"},
        {'s', (uint64_t)1 << 40, (uint64_t)1 << 41, "s 1024 2048 GiB"},
        {'s', UINT64_MAX, UINT64_MAX, "s 16383 16383 PiB"},
    };
    FILE *file;
    struct status *status = to_file(&file);
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        char line[80];
        status_progress(status, table[i].phase, table[i].current, table[i].total);
        snprintf(line, sizeof line, "[GNUPG:] PROGRESS gpgtar %s\n", table[i].line);
        expect(file, line);
    }
    status_free(status);
    fclose(file);
}

static void test_one_last_line(void **state)
{
    FILE *file;
    struct status *status = to_file(&file);
    char line[64];
    (void)state;
    assert_int_equal(status_finish(status, 0), 0);
    assert_int_equal(status_finish(status, gpg_error(GPG_ERR_GENERAL)), 0);
    status_line(status, "NODATA", "1");
    expect(file, "[GNUPG:] SUCCESS\n");
    status_free(status);
    fclose(file);

    status = to_file(&file);
    assert_int_equal(status_finish(status, gpg_error(GPG_ERR_NO_SECKEY)), 0);
    snprintf(line, sizeof line, "[GNUPG:] FAILURE - %u\n", (unsigned)gpg_error(GPG_ERR_NO_SECKEY));
    expect(file, line);
    status_free(status);
    fclose(file);
}

static void test_bad_descriptors(void **state)
{
    struct failure failure;
    struct status *status = NULL;
    char sentence[FAILURE_SENTENCE_MAX];
    (void)state;
    assert_int_equal(status_new(-1, NULL, &status), 0);
    assert_null(status);
    status_line(status, "NODATA", "1");
    assert_int_equal(status_finish(status, 0), 0);
    status_free(status);

    failure_init(&failure);
    assert_int_equal(gpg_err_code(status_new(987, &failure, &status)), GPG_ERR_EBADF);
    failure_get(&failure, sentence);
    assert_non_null(strstr(sentence, "--status-fd 987"));
    failure_destroy(&failure);

    failure_init(&failure);
    int fd = open("/dev/null", O_RDONLY);
    assert_int_equal(gpg_err_code(status_new(fd, &failure, &status)), GPG_ERR_EBADF);
    failure_get(&failure, sentence);
    assert_non_null(strstr(sentence, "writing"));
    failure_destroy(&failure);
    close(fd);
}

static void test_write_errors_are_kept(void **state)
{
    struct status *status = NULL;
    int ends[2];
    (void)state;
    signal(SIGPIPE, SIG_IGN);
    assert_int_equal(pipe(ends), 0);
    close(ends[0]);
    assert_int_equal(status_new(ends[1], NULL, &status), 0);
    status_line(status, "NODATA", "1");
    assert_int_equal(gpg_err_code(status_finish(status, 0)), GPG_ERR_EPIPE);
    status_free(status);
    close(ends[1]);
}

static void *shout(void *status)
{
    for (int i = 0; i < 200; i++)
        status_line(status, "KEYWORD", "%s", "0123456789012345678901234567890123456789");
    return NULL;
}

static void test_lines_stay_whole(void **state)
{
    FILE *file;
    struct status *status = to_file(&file);
    pthread_t threads[4];
    char line[128];
    size_t n = 0;
    (void)state;
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, shout, status), 0);
    for (size_t i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    rewind(file);
    for (; fgets(line, sizeof line, file); n++)
        assert_string_equal(line, "[GNUPG:] KEYWORD 0123456789012345678901234567890123456789\n");
    assert_int_equal(n, 800);
    status_free(status);
    fclose(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_progress),
        cmocka_unit_test(test_one_last_line),
        cmocka_unit_test(test_bad_descriptors),
        cmocka_unit_test(test_write_errors_are_kept),
        cmocka_unit_test(test_lines_stay_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
