/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "gpgtar/progress.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define SECOND ((uint64_t)1000000000)

static uint64_t read_clock(void *context)
{
    return *(uint64_t *)context;
}

static size_t lines(FILE *file, char *last, size_t n)
{
    char line[256];
    size_t count = 0;
    fflush(file);
    rewind(file);
    while (fgets(line, sizeof line, file)) {
        snprintf(last, n, "%s", line);
        count++;
    }
    return count;
}

static void test_status_lines(void **state)
{
    FILE *file = tmpfile();
    struct status *status = NULL;
    uint64_t now = 5 * SECOND;
    char last[256] = "";
    (void)state;
    assert_int_equal(status_new(fileno(file), NULL, &status), 0);
    struct progress *progress = progress_new(NULL, status, false, read_clock, &now);
    for (int i = 0; i < 1000; i++)
        progress_counting(progress, (uint64_t)i);
    assert_int_equal(lines(file, last, sizeof last), 0);
    now += SECOND;
    for (int i = 0; i < 1000; i++)
        progress_counting(progress, 7);
    assert_int_equal(lines(file, last, sizeof last), 1);
    assert_string_equal(last, "[GNUPG:] PROGRESS gpgtar c 7 0\n");
    progress_start(progress, 10, 5000);
    assert_int_equal(lines(file, last, sizeof last), 3);
    assert_string_equal(last, "[GNUPG:] PROGRESS gpgtar s 0 5000 B\n");
    /* A hundred thousand calls within ten seconds are ten lines. */
    for (uint64_t i = 0; i < 100000; i++) {
        now += 10 * SECOND / 100000;
        progress_update(progress, 3, i / 20);
    }
    assert_int_equal(lines(file, last, sizeof last), 13);
    progress_update(progress, 10, 5000);
    progress_finish(progress);
    assert_int_equal(lines(file, last, sizeof last), 15);
    assert_string_equal(last, "[GNUPG:] PROGRESS gpgtar s 5000 5000 B\n");
    progress_free(progress);
    status_free(status);
    fclose(file);
}

static void test_lines_without_terminal(void **state)
{
    FILE *file = tmpfile();
    struct report *report = report_new(fileno(file));
    uint64_t now = 0;
    char last[256] = "";
    (void)state;
    struct progress *progress = progress_new(report, NULL, true, read_clock, &now);
    progress_start(progress, 2, (uint64_t)100 << 20);
    progress_update(progress, 0, 1);
    assert_int_equal(lines(file, last, sizeof last), 0);
    now = 4 * SECOND;
    progress_update(progress, 1, (uint64_t)40 << 20);
    progress_update(progress, 1, (uint64_t)40 << 20);
    assert_int_equal(lines(file, last, sizeof last), 1);
    assert_string_equal(last, "gpgtar: 1 files, 40.0 MiB of 100.0 MiB, 10.0 MiB/s, 0:06 left\n");
    progress_free(progress);
    /* Not asked for: nothing. */
    progress = progress_new(report, NULL, false, read_clock, &now);
    now += 100 * SECOND;
    progress_update(progress, 1, 1);
    progress_finish(progress);
    assert_int_equal(lines(file, last, sizeof last), 1);
    progress_free(progress);
    report_free(report);
    fclose(file);
}

static void test_nobody(void **state)
{
    (void)state;
    progress_counting(NULL, 1);
    progress_start(NULL, 1, 1);
    progress_update(NULL, 1, 1);
    progress_finish(NULL);
    progress_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_status_lines),
        cmocka_unit_test(test_lines_without_terminal),
        cmocka_unit_test(test_nobody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
