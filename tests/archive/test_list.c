/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "archive/list.h"
#include "tar_maker.h"

static gpg_error_t list(const struct tar *tar, bool null, char text[8192], size_t *ret_n)
{
    const struct tar_list_params params = {.null = null};
    struct tar_list_result result;
    struct source *source = memory_source_new(tar->bytes, tar->n, 0);
    struct sink *sink = memory_sink_new(8191);
    assert_non_null(source);
    assert_non_null(sink);
    gpg_error_t error = tar_list(&params, source, sink, &result);
    const uint8_t *bytes = memory_sink_bytes(sink, ret_n);
    if (*ret_n)
        memcpy(text, bytes, *ret_n);
    text[*ret_n] = '\0';
    sink_free(sink);
    source_free(source);
    return error;
}

static void make(struct tar *tar)
{
    tar_folder(tar, "d", 01777);
    tar_file(tar, "d/f", 04755, "12345");
    tar_file(tar, "d/g", 06644, "");
    tar_symlink(tar, "d/l", "f\n");
    tar_hard_link(tar, "d/h", "d/f");
    tar_header(tar, "d/p", '6', 01600, 0, NULL);
    tar_header(tar, "d/c", '3', 0600, 0, NULL);
    tar_header(tar, "d/b", '4', 0600, 0, NULL);
    tar_file(tar, "e\033[31m\n\\", 0644, "x");
    tar_end(tar);
}

static void test_columns(void **state)
{
    (void)state;
    struct tar tar = {0};
    char text[8192], owner[64], expected[4096];
    size_t n;
    make(&tar);
    assert_int_equal(list(&tar, false, text, &n), 0);
    snprintf(owner, sizeof owner, "0 %u/%u", (unsigned)geteuid(), (unsigned)getegid());
    snprintf(expected, sizeof expected,
             "drwxrwxrwt %s            0 2001-09-09 01:46:40 d/\n"
             "-rwsr-xr-x %s            5 2001-09-09 01:46:40 d/f\n"
             "-rwSr-Sr-- %s            0 2001-09-09 01:46:40 d/g\n"
             "lrwxrwxrwx %s            0 2001-09-09 01:46:40 d/l -> f\\n\n"
             "hrw-r--r-- %s            0 2001-09-09 01:46:40 d/h\n"
             "frw------T %s            0 2001-09-09 01:46:40 d/p\n"
             "crw------- %s            0 2001-09-09 01:46:40 d/c\n"
             "brw------- %s            0 2001-09-09 01:46:40 d/b\n"
             "-rw-r--r-- %s            1 2001-09-09 01:46:40 e\\033[31m\\n\\\\\n",
             owner, owner, owner, owner, owner, owner, owner, owner, owner);
    assert_string_equal(text, expected);
    assert_int_equal(list(&tar, true, text, &n), 0);
    assert_memory_equal(text + n - sizeof "e\033[31m\n\\", "e\033[31m\n\\", sizeof "e\033[31m\n\\");
    tar_clear(&tar);
}

/* What is no tar shows nothing. */
static void test_no_tar(void **state)
{
    (void)state;
    char text[8192];
    size_t n;
    uint8_t noise[2048];
    memset(noise, 0x1b, sizeof noise);
    struct tar tar = {.bytes = noise, .n = sizeof noise};
    assert_int_equal(gpg_err_code(list(&tar, false, text, &n)), TAR_NOT_A_TAR);
    assert_int_equal(n, 0);
}

static void test_verify(void **state)
{
    (void)state;
    struct heard heard = {.kinds = {0}};
    const struct notices notices = {.report = hear, .context = &heard};
    const struct tar_read_params params = {.notices = &notices};
    struct tar_list_result result;
    struct tar tar = {0};
    make(&tar);
    struct source *source = memory_source_new(tar.bytes, tar.n, 0);
    assert_int_equal(tar_verify(&params, source, &result), 0);
    assert_int_equal(result.read.flaws, 0);
    assert_int_equal(result.members, 9);
    assert_int_equal(result.bytes, 6);
    source_free(source);
    source = memory_source_new(tar.bytes, 1200, 0);
    assert_int_equal(gpg_err_code(tar_verify(&params, source, &result)), GPG_ERR_TRUNCATED);
    source_free(source);
    tar.n -= 1024;
    tar_file(&tar, "../x", 0644, "x");
    tar_symlink(&tar, "l", "/etc");
    tar_hard_link(&tar, "h", "../x");
    tar_end(&tar);
    source = memory_source_new(tar.bytes, tar.n, 0);
    assert_int_equal(tar_verify(&params, source, &result), 0);
    assert_int_equal(result.read.flaws, 2);
    assert_int_equal(heard.kinds[NOTICE_BAD_NAME], 1);
    assert_int_equal(heard.kinds[NOTICE_BAD_HARDLINK], 1);
    assert_int_equal(heard.kinds[NOTICE_BAD_SYMLINK], 0);
    source_free(source);
    tar_clear(&tar);
}

int main(void)
{
    const struct CMUnitTest all[] = {
        cmocka_unit_test(test_columns),
        cmocka_unit_test(test_no_tar),
        cmocka_unit_test(test_verify),
    };
    return cmocka_run_group_tests(all, NULL, NULL);
}
