/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "archive/nameset.h"
#include "tree.h"

static void test_all(void **state)
{
    (void)state;
    struct nameset *set = nameset_new();
    assert_non_null(set);
    assert_false(nameset_has(set, 0, "x", 1));
    char name[32];
    bool new;
    for (int i = 0; i < 100000; i++) {
        int n = snprintf(name, sizeof name, "folder/%d", i);
        assert_int_equal(nameset_add(set, 7, name, (size_t)n, &new), 0);
        assert_true(new);
    }
    for (int i = 0; i < 100000; i++) {
        int n = snprintf(name, sizeof name, "folder/%d", i);
        assert_true(nameset_has(set, 7, name, (size_t)n));
        assert_false(nameset_has(set, 8, name, (size_t)n));
        assert_int_equal(nameset_add(set, 7, name, (size_t)n, &new), 0);
        assert_false(new);
    }
    assert_false(nameset_has(set, 7, "folder/100000", 13));
    /* A name and the same with a NUL behind are two. */
    assert_false(nameset_has(set, 7, "folder/1\0", 9));
    nameset_free(set);
    nameset_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_all)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
