/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "archive/select.h"
#include "tree.h"

static struct select *with(const char *pattern)
{
    struct select *select = select_new();
    assert_non_null(select);
    assert_int_equal(select_exclude(select, pattern), 0);
    return select;
}

static void test_anchoring(void **state)
{
    (void)state;
    static const struct {
        const char *pattern, *path;
        bool excluded;
    } cases[] = {
        {"./proc", "proc", true},
        {"./proc", "usr/include/proc", false},
        {"proc", "usr/include/proc", true},
        {"proc", "process", false},
        {"proc", "xproc", false},
        {"*.o", "a/b.o", true},
        {"/home/x", "/home/x", true},
        {"/home/x", "home/x", false},
        {"/proc", "usr/proc", false},
        {"include/proc", "usr/include/proc", true},
        {"usr/inc", "usr/include", false},
        {"proc/", "proc", true},
        {"a*c", "x/a/b/c", true},
        {".//proc/", "proc", true},
        {"./*.o", "a/b.o", true},
        {".hidden", "a/.hidden", true},
        {".", ".", true},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct select *select = with(cases[i].pattern);
        if (select_excludes(select, cases[i].path) != cases[i].excluded)
            fail_msg("%s %s", cases[i].pattern, cases[i].path);
        select_free(select);
    }
    assert_false(select_excludes(NULL, "a"));
    select_free(NULL);
}

/* GNU tar leaves out the same files. */
static void test_as_gnu_tar(void **state)
{
    (void)state;
    tree_run("mkdir -p usr/include/proc proc a/b; touch usr/include/proc/f proc/g a/x.o a/b/y.o x.o z");
    static const char *const patterns[] = {"./proc",  "proc",    "*.o",   "./*.o", "b/y.o",
                                           "include", "usr/inc", "[xz]*", "a/*"};
    static const char *const paths[] = {"usr",
                                        "usr/include",
                                        "usr/include/proc",
                                        "usr/include/proc/f",
                                        "proc",
                                        "proc/g",
                                        "a",
                                        "a/x.o",
                                        "a/b",
                                        "a/b/y.o",
                                        "x.o",
                                        "z"};
    for (size_t i = 0; i < ARRAY_SIZE(patterns); i++) {
        char command[256], line[64];
        snprintf(command, sizeof command, "(echo; tar cf - --exclude='%s' . | tar tf - | sed 's,/$,,')", patterns[i]);
        char *listed = tree_output(command, NULL);
        struct select *select = with(patterns[i]);
        for (size_t j = 0; j < ARRAY_SIZE(paths); j++) {
            bool excluded = false;
            char path[64];
            /* With a folder goes what is in it. */
            for (size_t n = 1; n <= strlen(paths[j]); n++)
                if (!paths[j][n] || paths[j][n] == '/') {
                    snprintf(path, sizeof path, "%.*s", (int)n, paths[j]);
                    excluded = excluded || select_excludes(select, path);
                }
            snprintf(line, sizeof line, "\n./%s\n", paths[j]);
            if (excluded != !strstr(listed, line))
                fail_msg("%s %s", patterns[i], paths[j]);
        }
        select_free(select);
        free(listed);
    }
}

static void test_from_list(void **state)
{
    (void)state;
    static const char lines[] = "a b\n\n*.o\nlast";
    for (size_t step = 1; step <= sizeof lines; step++) {
        struct select *select = select_new();
        struct source *source = memory_source_new(lines, sizeof lines - 1, step);
        assert_int_equal(select_exclude_from(select, source, "list", NULL), 0);
        source_free(source);
        assert_true(select_excludes(select, "a b"));
        assert_true(select_excludes(select, "x.o"));
        assert_true(select_excludes(select, "last"));
        assert_false(select_excludes(select, "a"));
        select_free(select);
    }
    struct select *select = select_new();
    struct source *source = memory_source_new("", 0, 0);
    assert_int_equal(select_exclude_from(select, source, "empty", NULL), 0);
    source_free(source);
    assert_false(select_excludes(select, "a"));
    select_free(select);
}

static void test_long_line(void **state)
{
    (void)state;
    size_t n = 1024 * 1024 + 1;
    char *line = malloc(n);
    memset(line, 'a', n);
    struct select *select = select_new();
    struct failure failure;
    failure_init(&failure);
    struct source *source = memory_source_new(line, n, 0);
    assert_int_equal(gpg_err_code(select_exclude_from(select, source, "list", &failure)), GPG_ERR_LINE_TOO_LONG);
    char sentence[FAILURE_SENTENCE_MAX];
    assert_int_not_equal(failure_get(&failure, sentence), 0);
    assert_non_null(strstr(sentence, "list"));
    source_free(source);
    failure_destroy(&failure);
    select_free(select);
    free(line);
}

static void test_vcs(void **state)
{
    (void)state;
    struct select *select = select_new();
    assert_int_equal(select_exclude_vcs(select), 0);
    assert_true(select_excludes(select, "a/.git"));
    assert_true(select_excludes(select, ".svn"));
    assert_false(select_excludes(select, "git"));
    select_free(select);
}

static void test_newer(void **state)
{
    (void)state;
    struct select *select = select_new();
    struct stat status = {.st_mode = S_IFREG, .st_mtim = {100, 5}};
    assert_false(select_too_old(select, &status));
    select_options(select)->newer = true;
    select_options(select)->newer_than = (struct timespec){100, 6};
    assert_true(select_too_old(select, &status));
    select_options(select)->newer_than = (struct timespec){100, 5};
    assert_false(select_too_old(select, &status));
    select_options(select)->newer_than = (struct timespec){101, 0};
    assert_true(select_too_old(select, &status));
    status.st_mode = S_IFDIR;
    assert_false(select_too_old(select, &status));
    select_free(select);
}

static void test_cache(void **state)
{
    (void)state;
    int fd = open(".", O_RDONLY | O_DIRECTORY);
    assert_false(select_is_cache(fd));
    tree_file("CACHEDIR.TAG", "Signature: 8a477f597d28d172789f06886806bc56");
    assert_false(select_is_cache(fd));
    tree_file("CACHEDIR.TAG", "Signature: 8a477f597d28d172789f06886806bc55\n# more");
    assert_true(select_is_cache(fd));
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_anchoring),
        cmocka_unit_test_setup_teardown(test_as_gnu_tar, tree_setup, tree_teardown),
        cmocka_unit_test(test_from_list),
        cmocka_unit_test(test_long_line),
        cmocka_unit_test(test_vcs),
        cmocka_unit_test(test_newer),
        cmocka_unit_test_setup_teardown(test_cache, tree_setup, tree_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
