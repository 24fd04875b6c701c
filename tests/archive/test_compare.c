/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "archive/compare.h"
#include "stream/fd.h"
#include "tar_maker.h"

static void compare(const struct ground *ground, const char *archive, struct tar_compare_params params,
                    struct heard *heard, struct tar_compare_result *ret)
{
    char path[128];
    const struct notices notices = {.report = hear, .context = heard};
    memset(heard, 0, sizeof *heard);
    snprintf(path, sizeof path, "%s/%s", ground->path, archive);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    struct source *source;
    assert_int_equal(fd_source_new(NULL, fd, archive, true, 0, &source), 0);
    params.root_fd = ground->target;
    params.read.notices = &notices;
    assert_int_equal(tar_compare(&params, source, ret), 0);
    source_free(source);
    assert_int_equal(heard->kinds[NOTICE_DIFFERS], ret->differences);
}

static const char tree[] =
    "mkdir -p target/d/sub && cd target/d && echo content >content && echo mode >mode && echo mtime >mtime "
    "&& echo gone >gone && ln -s content link && ln content hard && mkfifo fifo && truncate -s 300000 "
    "sparse && printf x | dd of=sparse bs=1 seek=100000 conv=notrunc status=none && echo deep >sub/deep && "
    "cd ../.. && tar -C target --format=posix -S -cf a.tar d && tar -C target --format=gnu -cf b.tar d";

static void test_same(void **state)
{
    (void)state;
    struct ground ground;
    struct heard heard;
    struct tar_compare_result result;
    ground_open(&ground);
    run_in(&ground, tree);
    compare(&ground, "a.tar", (struct tar_compare_params){.no_owner = false}, &heard, &result);
    assert_int_equal(result.differences, 0);
    assert_int_equal(result.members, 11);
    compare(&ground, "b.tar", (struct tar_compare_params){.numeric_owner = true}, &heard, &result);
    assert_int_equal(result.differences, 0);
    ground_close(&ground);
}

/* Each change shows as one difference of the right name. */
static void test_differences(void **state)
{
    (void)state;
    static const struct {
        const char *command, *name, *detail;
    } cases[] = {
        {"printf CONTENT\\\\n >content && touch -r hard content", "d/content", NULL},
        {"touch -r sparse stamp && printf y | dd of=sparse bs=1 seek=200000 conv=notrunc status=none && touch -r stamp "
         "sparse && "
         "rm stamp",
         "d/sparse", "content differs"},
        {"echo longer >>mode", "d/mode", "size differs"},
        {"chmod 600 mode", "d/mode", "mode differs"},
        {"touch -d 2001-01-01 mtime", "d/mtime", "mtime differs"},
        {"rm gone", "d/gone", "missing"},
        {"echo new >added", "d/added", "not in the archive"},
        {"mkdir sub/more && echo x >sub/more/x", "d/sub/more", "not in the archive"},
        {"ln -sf mode link", "d/link", "link target differs"},
        {"rm hard && cp -p content hard", "d/hard", NULL},
        {"rm fifo && echo x >fifo", "d/fifo", "kind differs"},
        {"rm mtime && mkfifo mtime", "d/mtime", "kind differs"},
        {"rm -r sub && echo x >sub", "d/sub", NULL},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct ground ground;
        struct heard heard;
        struct tar_compare_result result;
        char command[512];
        ground_open(&ground);
        run_in(&ground, tree);
        snprintf(command, sizeof command, "cd target/d && %s", cases[i].command);
        run_in(&ground, command);
        compare(&ground, "a.tar", (struct tar_compare_params){.no_owner = false}, &heard, &result);
        assert_true(result.differences > 0);
        if (cases[i].detail) {
            assert_int_equal(result.differences, 1);
            assert_string_equal(heard.last[NOTICE_DIFFERS], cases[i].name);
            assert_non_null(strstr(heard.detail[NOTICE_DIFFERS], cases[i].detail));
        }
        ground_close(&ground);
    }
}

static void test_owner(void **state)
{
    (void)state;
    struct ground ground;
    struct heard heard;
    struct tar_compare_result result;
    ground_open(&ground);
    run_in(&ground, "mkdir target/d && echo x >target/d/f && tar -C target --owner=no-such-user:77777 --group=:77777 "
                    "-cf a.tar d/f");
    compare(&ground, "a.tar", (struct tar_compare_params){.no_owner = false}, &heard, &result);
    assert_int_equal(result.differences, 1);
    compare(&ground, "a.tar", (struct tar_compare_params){.no_owner = true}, &heard, &result);
    assert_int_equal(result.differences, 0);
    ground_close(&ground);
}

static int tests(void)
{
    const struct CMUnitTest all[] = {
        cmocka_unit_test(test_same),
        cmocka_unit_test(test_differences),
        cmocka_unit_test(test_owner),
    };
    return cmocka_run_group_tests(all, NULL, NULL);
}

int main(void)
{
    return run_as_both(tests);
}
