/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "stream/failure.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#undef fail /* cmocka has one of its own */

static void test_first_stands(void **state)
{
    (void)state;
    struct failure failure;
    char sentence[FAILURE_SENTENCE_MAX] = "x";
    failure_init(&failure);
    assert_int_equal(failure_get(&failure, sentence), 0);
    assert_string_equal(sentence, "");
    gpg_error_t first = gpg_error(GPG_ERR_CHECKSUM);
    assert_int_equal(fail(&failure, first, "block %d of '%s' is damaged", 7, "a"), first);
    gpg_error_t second = gpg_error(GPG_ERR_EIO);
    assert_int_equal(fail(&failure, second, "consequence"), second);
    assert_int_equal(failure_get(&failure, NULL), first);
    assert_int_equal(failure_get(&failure, sentence), first);
    assert_string_equal(sentence, "block 7 of 'a' is damaged");
    failure_destroy(&failure);
}

static void test_without_a_place(void **state)
{
    (void)state;
    assert_int_equal(fail(NULL, gpg_error(GPG_ERR_EIO), "nobody reads this"), gpg_error(GPG_ERR_EIO));
    assert_int_equal(gpg_err_code(fail_errno(NULL, ENOSPC, "nor this")), GPG_ERR_ENOSPC);
}

static void test_system_error(void **state)
{
    (void)state;
    struct failure failure;
    char sentence[FAILURE_SENTENCE_MAX];
    failure_init(&failure);
    assert_int_equal(gpg_err_code(fail_errno(&failure, ENOSPC, "cannot write '%s'", "a.gpg")), GPG_ERR_ENOSPC);
    failure_get(&failure, sentence);
    assert_string_equal(sentence, "cannot write 'a.gpg': No space left on device");
    failure_destroy(&failure);
}

static void test_long_sentence_is_cut(void **state)
{
    (void)state;
    static char name[2 * FAILURE_SENTENCE_MAX];
    for (size_t n = FAILURE_SENTENCE_MAX - 30; n < sizeof name; n += n < FAILURE_SENTENCE_MAX + 3 ? 1 : 97) {
        struct failure failure;
        char sentence[FAILURE_SENTENCE_MAX];
        failure_init(&failure);
        memset(name, 'n', n);
        name[n] = 0;
        assert_int_equal(gpg_err_code(fail_errno(&failure, EIO, "%s", name)), GPG_ERR_EIO);
        failure_get(&failure, sentence);
        assert_true(strlen(sentence) < FAILURE_SENTENCE_MAX);
        assert_memory_equal(sentence, name, n < FAILURE_SENTENCE_MAX - 1 ? n : FAILURE_SENTENCE_MAX - 1);
        failure_destroy(&failure);
    }
}

static void test_prefix(void **state)
{
    (void)state;
    struct failure failure;
    char sentence[FAILURE_SENTENCE_MAX];
    failure_init(&failure);
    failure_prefix(&failure, "x.gpg");
    assert_int_equal(failure_get(&failure, sentence), 0);
    assert_string_equal(sentence, "");
    assert_int_equal(gpg_err_code(fail(&failure, gpg_error(GPG_ERR_TRUNCATED), "cut off")), GPG_ERR_TRUNCATED);
    failure_prefix(&failure, "x.gpg");
    failure_prefix(&failure, "x.gpg");
    failure_get(&failure, sentence);
    assert_string_equal(sentence, "x.gpg: cut off");
    failure_destroy(&failure);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_prefix),
        cmocka_unit_test(test_first_stands),
        cmocka_unit_test(test_without_a_place),
        cmocka_unit_test(test_system_error),
        cmocka_unit_test(test_long_sentence_is_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
