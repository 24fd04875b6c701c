/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "archive/libarchive.h"

#include <archive.h>
#include <archive_entry.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* What is called is the library that is installed, and it does what its header says. */
static void test_loads(void **state)
{
    (void)state;
    assert_int_equal(libarchive_load(NULL), 0);
    assert_int_equal(libarchive_load(NULL), 0); /* again it does nothing */
    assert_non_null(strstr(archive_version_details(), "libarchive "));
    struct archive_entry *entry = archive_entry_new();
    assert_non_null(entry);
    archive_entry_set_pathname(entry, "folder/name");
    archive_entry_set_filetype(entry, AE_IFREG);
    assert_string_equal(archive_entry_pathname(entry), "folder/name");
    assert_int_equal(archive_entry_filetype(entry), AE_IFREG);
    assert_null(archive_entry_symlink(entry));
    archive_entry_free(entry);
}

static void test_error_has_its_words(void **state)
{
    (void)state;
    assert_int_equal(libarchive_load(NULL), 0);
    struct archive *archive = archive_read_new();
    assert_non_null(archive);
    archive_set_error(archive, 5, "%s: %d of %c", "name", 7, 'x');
    assert_string_equal(archive_error_string(archive), "name: 7 of x");
    assert_int_equal(archive_errno(archive), 5);
    assert_int_equal(archive_read_free(archive), ARCHIVE_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_loads),
        cmocka_unit_test(test_error_has_its_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
