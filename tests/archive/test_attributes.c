/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "archive/attributes.h"
#include "tree.h"

#include <errno.h>
#include <sys/xattr.h>

static void test_acl_text(void **state)
{
    (void)state;
    static const uint8_t acl[] = {
        2,    0, 0, 0,                         /* version */
        1,    0, 6, 0, 0xff, 0xff, 0xff, 0xff, /* user:: */
        2,    0, 4, 0, 0xfe, 0xff, 0,    0,    /* user nobody */
        2,    0, 5, 0, 0,    0x64, 0x31, 0,    /* a user without a name */
        4,    0, 4, 0, 0xff, 0xff, 0xff, 0xff, /* group:: */
        0x10, 0, 7, 0, 0xff, 0xff, 0xff, 0xff, /* mask:: */
        0x20, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, /* other:: */
    };
    struct owners *owners = owners_new();
    struct tar_buffer text = {0};
    assert_int_equal(attributes_acl_text(acl, sizeof acl, owners, &text), 0);
    static const char named[] =
        "user::rw-,user:nobody:r--:65534,user:3236864:r-x:3236864,group::r--,mask::rwx,other::---";
    assert_int_equal(text.n, sizeof named - 1);
    assert_memory_equal(text.bytes, named, text.n);
    text.n = 0;
    assert_int_equal(attributes_acl_text(acl, sizeof acl, NULL, &text), 0);
    assert_memory_equal(text.bytes, "user::rw-,user:65534:r--:65534,", 31);
    /* Cut anywhere inside an entry it is refused. */
    for (size_t n = 0; n < sizeof acl; n++) {
        text.n = 0;
        gpg_error_t err = attributes_acl_text(acl, n, owners, &text);
        assert_int_equal(err != 0, n < 4 || (n - 4) % 8);
    }
    uint8_t bad[12];
    memcpy(bad, acl, sizeof bad);
    bad[0] = 3;
    assert_int_equal(gpg_err_code(attributes_acl_text(bad, sizeof bad, owners, &text)), GPG_ERR_INV_DATA);
    bad[0] = 2;
    bad[4] = 3;
    assert_int_equal(gpg_err_code(attributes_acl_text(bad, sizeof bad, owners, &text)), GPG_ERR_INV_DATA);
    tar_buffer_free(&text);
    owners_free(owners);
}

static void read_file(const struct attributes_params *params, struct tar_buffer *records)
{
    struct attributes *attributes = attributes_new(params);
    for (int way = 0; way < 2; way++) {
        records->n = 0;
        int fd = open("f", O_RDONLY), folder = open(".", O_RDONLY | O_DIRECTORY);
        const struct attributes_file file = {.fd = way ? fd : -1, .folder_fd = folder, .leaf = "f"};
        const char *flaw;
        gpg_error_t code;
        assert_int_equal(attributes_read(attributes, &file, records, &flaw, &code), 0);
        assert_null(flaw);
        assert_int_equal(code, 0);
        close(fd);
        close(folder);
    }
    attributes_free(attributes);
}

static void test_read(void **state)
{
    (void)state;
    tree_file("f", "x");
    struct tar_buffer records = {0};
    const struct attributes_params all = {0};
    read_file(&all, &records);
    assert_int_equal(records.n, 0);
    assert_int_equal(setxattr("f", "user.zz", "\0\n=", 3, 0), 0);
    assert_int_equal(setxattr("f", "user.a=b%c", "", 0, 0), 0);
    tree_run("setfacl -m u:nobody:r f");
    read_file(&all, &records);
    char *start = (char *)records.bytes;
    assert_int_equal(strncmp(strchr(start, ' '), " SCHILY.acl.access=user::rw-,user:65534:r--:65534,", 50), 0);
    static const char rest[] = "32 SCHILY.xattr.user.a%3Db%25c=\n28 SCHILY.xattr.user.zz=\0\n=\n";
    assert_memory_equal(records.bytes + records.n - (sizeof rest - 1), rest, sizeof rest - 1);
    const struct attributes_params no_acls = {.no_acls = true};
    read_file(&no_acls, &records);
    assert_int_equal(records.n, sizeof rest - 1);
    const struct attributes_params none = {.no_acls = true, .no_xattrs = true};
    read_file(&none, &records);
    assert_int_equal(records.n, 0);
    /* More names than the first try has room for. */
    for (int i = 0; i < 60; i++) {
        char name[32];
        snprintf(name, sizeof name, "user.number-%d", i);
        if (setxattr("f", name, "v", 1, 0) < 0) {
            assert_int_equal(errno, ENOSPC);
            break;
        }
    }
    read_file(&no_acls, &records);
    assert_true(records.n > 60 * 28);
    tar_buffer_free(&records);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_acl_text),
        cmocka_unit_test_setup_teardown(test_read, tree_setup, tree_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
