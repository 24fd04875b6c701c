/* SPDX-License-Identifier: GPL-3.0-or-later */
/* tree: temporary folders, files in them, and calls of other programs, for the tests of archive/. */
#ifndef TESTS_ARCHIVE_TREE_H
#define TESTS_ARCHIVE_TREE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Makes a new folder and makes it the current one, so that tests name files simply. Its path goes to the state. */
static inline int tree_setup(void **state)
{
    char template[] = "/tmp/gpgtar-test-XXXXXX";
    if (!mkdtemp(template) || chdir(template) < 0)
        return -1;
    umask(022);
    *state = strdup(template);
    return *state ? 0 : -1;
}

static inline int tree_teardown(void **state)
{
    char command[128];
    snprintf(command, sizeof command, "chmod -R u+rwX '%s'; rm -rf '%s'", (char *)*state, (char *)*state);
    int result = chdir("/") || system(command);
    free(*state);
    return result;
}

/* Writes TEXT to the file NAME, made anew. */
static inline void tree_file(const char *name, const char *text)
{
    int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
}

/* Runs COMMAND with sh and demands that it succeeds. */
static inline void tree_run(const char *command)
{
    int status = system(command);
    if (status)
        print_error("failed (%d): %s\n", status, command);
    assert_int_equal(status, 0);
}

/* What COMMAND prints; the caller frees. */
static inline char *tree_output(const char *command, int *ret_status)
{
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    char *text = calloc(1, 1 << 20);
    assert_non_null(text);
    size_t n = fread(text, 1, (1 << 20) - 1, pipe);
    text[n] = 0;
    int status = pclose(pipe);
    if (ret_status)
        *ret_status = status;
    else
        assert_int_equal(status, 0);
    return text;
}

#endif
