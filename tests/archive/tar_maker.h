/* SPDX-License-Identifier: GPL-3.0-or-later */
/* tar_maker: tars put together by hand, so that they can be wrong; and folders to extract them in. For tests only. */
#ifndef TESTS_TAR_MAKER_H
#define TESTS_TAR_MAKER_H

#include "archive/notice.h"
#include "stream/stream.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <ftw.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- tars ---- */

struct tar {
    uint8_t *bytes;
    size_t n;
};

static inline void tar_raw(struct tar *tar, const void *bytes, size_t n)
{
    size_t padded = (n + 511) / 512 * 512;
    tar->bytes = realloc(tar->bytes, tar->n + padded + 1);
    assert_non_null(tar->bytes);
    memset(tar->bytes + tar->n, 0, padded + 1);
    if (n)
        memcpy(tar->bytes + tar->n, bytes, n);
    tar->n += padded;
}

static inline void tar_checksum(uint8_t *header)
{
    unsigned sum = 0;
    memset(header + 148, ' ', 8);
    for (int i = 0; i < 512; i++)
        sum += header[i];
    snprintf((char *)header + 148, 8, "%06o", sum);
}

static inline void tar_header(struct tar *tar, const char *name, char type, unsigned mode, size_t size,
                              const char *link)
{
    uint8_t header[512] = {0};
    memcpy(header, name, strnlen(name, 100));
    snprintf((char *)header + 100, 8, "%07o", mode & 07777777);
    snprintf((char *)header + 108, 8, "%07o", (unsigned)geteuid() & 07777777);
    snprintf((char *)header + 116, 8, "%07o", (unsigned)getegid() & 07777777);
    snprintf((char *)header + 124, 12, "%011lo", (unsigned long)size & 077777777777UL);
    snprintf((char *)header + 136, 12, "%011o", 1000000000u);
    header[156] = (uint8_t)type;
    if (link)
        memcpy(header + 157, link, strnlen(link, 100));
    memcpy(header + 257, "ustar\00000", 8);
    tar_checksum(header);
    tar_raw(tar, header, sizeof header);
}

static inline void tar_file(struct tar *tar, const char *name, unsigned mode, const char *text)
{
    tar_header(tar, name, '0', mode, strlen(text), NULL);
    tar_raw(tar, text, strlen(text));
}

static inline void tar_folder(struct tar *tar, const char *name, unsigned mode)
{
    tar_header(tar, name, '5', mode, 0, NULL);
}

static inline void tar_symlink(struct tar *tar, const char *name, const char *target)
{
    tar_header(tar, name, '2', 0777, 0, target);
}

static inline void tar_hard_link(struct tar *tar, const char *name, const char *target)
{
    tar_header(tar, name, '1', 0644, 0, target);
}

/* A pax header with one record for the member that follows. */
static inline void tar_pax(struct tar *tar, const char *key, const char *value)
{
    size_t n = strlen(key) + strlen(value) + 3, digits = 1;
    for (size_t limit = 10; n + digits >= limit; limit *= 10)
        digits++;
    char *record = malloc(n + digits + 1);
    assert_non_null(record);
    int length = snprintf(record, n + digits + 1, "%zu %s=%s\n", n + digits, key, value);
    assert_int_equal(length, n + digits);
    tar_header(tar, "pax", 'x', 0644, (size_t)length, NULL);
    tar_raw(tar, record, (size_t)length);
    free(record);
}

static inline void tar_end(struct tar *tar)
{
    const uint8_t zeros[1024] = {0};
    tar_raw(tar, zeros, sizeof zeros);
}

static inline void tar_clear(struct tar *tar)
{
    free(tar->bytes);
    *tar = (struct tar){0};
}

/* ---- notices ---- */

struct heard {
    unsigned kinds[NOTICE_DIFFERS + 1];
    char last[NOTICE_DIFFERS + 1][128];
    char detail[NOTICE_DIFFERS + 1][128];
};

static inline void hear(void *context, const struct notice *notice)
{
    struct heard *heard = context;
    heard->kinds[notice->kind]++;
    snprintf(heard->last[notice->kind], sizeof heard->last[0], "%s", notice->name ? notice->name : "");
    snprintf(heard->detail[notice->kind], sizeof heard->detail[0], "%s", notice->detail ? notice->detail : "");
}

/* ---- folders ---- */

/* A folder with `target`, empty, and `outside`, which must never change. */
struct ground {
    char path[64];
    int target;
    char *outside; /* its snapshot */
};

/* All that can be seen of the tree PATH. The caller frees. */
static inline char *snapshot(const char *path)
{
    char command[512];
    snprintf(command, sizeof command,
             "cd '%s' && find . -printf '%%p %%y %%m %%U %%T@ %%s %%n %%l\\n' | LC_ALL=C sort; find . -type f -exec "
             "cat {} +",
             path);
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    char *text = calloc(1, 1 << 20);
    assert_non_null(text);
    size_t n = fread(text, 1, (1 << 20) - 1, pipe);
    text[n] = '\0';
    pclose(pipe);
    return text;
}

static inline void run_in(const struct ground *ground, const char *command)
{
    char line[4096];
    snprintf(line, sizeof line, "cd '%s' && umask 022 && %s", ground->path, command);
    assert_int_equal(system(line), 0);
}

static inline void ground_open(struct ground *ground)
{
    char path[128], outside[128];
    strcpy(ground->path, "/tmp/archive-test-XXXXXX");
    assert_non_null(mkdtemp(ground->path));
    run_in(ground, "mkdir target outside outside/folder && echo secret >outside/file && echo deep >outside/folder/deep "
                   "&& ln -s file outside/link && touch -d 2001-01-01 outside/file outside/folder outside");
    snprintf(path, sizeof path, "%s/target", ground->path);
    snprintf(outside, sizeof outside, "%s/outside", ground->path);
    ground->target = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(ground->target >= 0);
    ground->outside = snapshot(outside);
}

/* Checks that nothing outside has changed. */
static inline void ground_close(struct ground *ground)
{
    char outside[128];
    snprintf(outside, sizeof outside, "%s/outside", ground->path);
    char *now = snapshot(outside);
    assert_string_equal(now, ground->outside);
    free(now);
    free(ground->outside);
    close(ground->target);
    char command[256];
    snprintf(command, sizeof command, "chmod -R u+rwX '%s'; rm -rf '%s'", ground->path, ground->path);
    assert_int_equal(system(command), 0);
}

/* Whether COMMAND, a shell test in the target, holds. */
static inline bool target_is(const struct ground *ground, const char *command)
{
    char line[4096];
    snprintf(line, sizeof line, "cd '%s/target' && %s", ground->path, command);
    return system(line) == 0;
}

/* Runs TESTS as the user that we are and, as root, once more as one who is not. */
static inline int run_as_both(int (*tests)(void))
{
    int result = tests();
    if (geteuid())
        return result;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        if (setgroups(0, NULL) || setgid(65534) || setuid(65534) || prctl(PR_SET_DUMPABLE, 1))
            _exit(99);
        exit(tests());
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status))
        return 99;
    return result + WEXITSTATUS(status);
}

#endif
