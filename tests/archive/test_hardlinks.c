/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "archive/hardlinks.h"
#include "tree.h"

static void test_all(void **state)
{
    (void)state;
    struct hardlinks *links = hardlinks_new();
    struct stat a = {.st_dev = 1, .st_ino = 5, .st_nlink = 3}, b = {.st_dev = 2, .st_ino = 5, .st_nlink = 2};
    struct stat single = {.st_dev = 1, .st_ino = 6, .st_nlink = 1};
    assert_null(hardlinks_find(links, &a));
    assert_int_equal(hardlinks_add(links, &a, "first-a"), 0);
    assert_null(hardlinks_find(links, &b));
    assert_int_equal(hardlinks_add(links, &b, "first-b"), 0);
    assert_int_equal(hardlinks_add(links, &single, "single"), 0);
    assert_null(hardlinks_find(links, &single));
    assert_string_equal(hardlinks_find(links, &a), "first-a");
    assert_string_equal(hardlinks_find(links, &b), "first-b");
    /* The second link of b was its last: its number may be given to another file. */
    assert_null(hardlinks_find(links, &b));
    assert_string_equal(hardlinks_find(links, &a), "first-a");
    assert_null(hardlinks_find(links, &a));
    assert_int_equal(hardlinks_add(links, &a, "left"), 0);
    hardlinks_free(links);
    hardlinks_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_all)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
