/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "archive/owners.h"
#include "tree.h"

static void test_all(void **state)
{
    (void)state;
    struct owners *owners = owners_new();
    /* 64 numbers apart share a slot. */
    for (int round = 0; round < 3; round++) {
        assert_string_equal(owners_user(owners, 0), "root");
        assert_null(owners_user(owners, 64 * 50000));
        assert_string_equal(owners_user(owners, 65534), "nobody");
        assert_string_equal(owners_group(owners, 0), "root");
        assert_null(owners_group(owners, 64 * 50000));
    }
    owners_free(owners);
    owners_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_all)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
