/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "archive/libarchive.h"
#include "archive/tar_header.h"
#include "tree.h"

#include <archive.h>
#include <archive_entry.h>

static struct tar_member plain(const char *name)
{
    return (struct tar_member){.name = name, .type = '0', .mode = 0644, .mtime = {1000, 0}};
}

/* The header of MEMBER followed by the end marker, as a file for other programs. */
static void write_archive(const struct tar_member *member, const struct tar_buffer *records, struct tar_buffer *ret)
{
    static const char zeros[2 * TAR_BLOCK];
    assert_int_equal(tar_header_add(ret, member, records), 0);
    assert_int_equal(ret->n % TAR_BLOCK, 0);
    assert_int_equal(tar_buffer_add(ret, zeros, sizeof zeros), 0);
    int fd = open("x.tar", O_WRONLY | O_CREAT | O_TRUNC, 0644);
    assert_int_equal(write(fd, ret->bytes, ret->n), (ssize_t)ret->n);
    close(fd);
}

static void test_fields(void **state)
{
    (void)state;
    struct tar_buffer buffer = {0};
    struct tar_member member = plain("f");
    member.size = 077777777777;
    member.uid = 07777777;
    member.uname = "user";
    write_archive(&member, NULL, &buffer);
    assert_int_equal(buffer.n, 3 * TAR_BLOCK);
    assert_string_equal((char *)buffer.bytes, "f");
    assert_string_equal((char *)buffer.bytes + 100, "0000644");
    assert_string_equal((char *)buffer.bytes + 108, "7777777");
    assert_string_equal((char *)buffer.bytes + 116, "0000000");
    assert_string_equal((char *)buffer.bytes + 124, "77777777777");
    assert_string_equal((char *)buffer.bytes + 136, "00000001750");
    assert_string_equal((char *)buffer.bytes + 265, "user");
    assert_memory_equal(buffer.bytes + 257, "ustar\00000", 8);
    tar_buffer_free(&buffer);

    /* One more than octal holds: base-256, and a pax record that says the same. */
    member.size = 0100000000000;
    write_archive(&member, NULL, &buffer);
    assert_int_equal(buffer.n, 5 * TAR_BLOCK);
    assert_int_equal(buffer.bytes[156], 'x');
    assert_memory_equal(buffer.bytes + TAR_BLOCK, "19 size=8589934592\n", 19);
    assert_memory_equal(buffer.bytes + 2 * TAR_BLOCK + 124, "\x80\0\0\0\0\0\0\x02\0\0\0\0", 12);
    tar_buffer_free(&buffer);
}

/* A buffer that is used again holds nothing of what it held; the checksum is the plain sum of all bytes, whatever they
 * are. */
static void test_used_again(void **state)
{
    (void)state;
    char name[256], link[101];
    struct tar_buffer used = {0};
    for (size_t n = 1; n < sizeof name - 1; n++) {
        memset(name, 0xff, n);
        name[n] = 0;
        if (n > 40)
            name[n - 30] = '/';
        memset(link, 0xff, n % 100);
        link[n % 100] = 0;
        struct tar_member member = plain(name);
        member.link = n % 2 ? link : NULL;
        member.uname = member.gname = n % 3 ? "owner" : NULL;
        member.mtime.tv_nsec = n % 5 ? 0 : (long)n;
        struct tar_buffer fresh = {0};
        assert_int_equal(tar_header_add(&fresh, &member, NULL), 0);
        if (used.capacity)
            memset(used.bytes, 0xff, used.capacity);
        used.n = 0;
        assert_int_equal(tar_header_add(&used, &member, NULL), 0);
        assert_int_equal(used.n, fresh.n);
        assert_memory_equal(used.bytes, fresh.bytes, fresh.n);
        const uint8_t *header = fresh.bytes + fresh.n - TAR_BLOCK;
        unsigned sum = 8 * ' ';
        for (size_t i = 0; i < TAR_BLOCK; i++)
            sum += i < 148 || i >= 156 ? header[i] : 0;
        assert_int_equal(strtoul((const char *)header + 148, NULL, 8), sum);
        tar_buffer_free(&fresh);
    }
    tar_buffer_free(&used);
}

/* What does not fit is refused, and the buffer left as it was. */
static void test_too_large(void **state)
{
    (void)state;
    struct tar_member member = plain("f");
    struct tar_buffer buffer = {0}, records = {.n = (size_t)1 << 30, .capacity = (size_t)1 << 30};
    member.mtime.tv_nsec = 1;
    records.bytes = calloc(1, records.n);
    assert_non_null(records.bytes);
    assert_int_equal(tar_buffer_add(&buffer, "before", 6), 0);
    assert_int_equal(gpg_err_code(tar_header_add(&buffer, &member, &records)), GPG_ERR_TOO_LARGE);
    assert_int_equal(buffer.n, 6);
    assert_memory_equal(buffer.bytes, "before", 6);
    tar_buffer_free(&buffer);
    tar_buffer_free(&records);
}

/* Lengths that reach over a power of ten count the digit they add. */
static void test_pax_lengths(void **state)
{
    (void)state;
    char *value = malloc(100100);
    memset(value, 'v', 100100);
    static const size_t around[] = {0,   1,   3,   4,   5,    6,    90,   91,   92,    93,    94,    95,    989,
                                    990, 991, 992, 993, 9987, 9988, 9989, 9990, 99985, 99986, 99987, 99988, 99989};
    for (size_t i = 0; i < ARRAY_SIZE(around); i++) {
        struct tar_buffer records = {0};
        assert_int_equal(tar_pax_add(&records, "k", value, around[i]), 0);
        char *end;
        assert_int_equal(strtoul((char *)records.bytes, &end, 10), records.n);
        assert_memory_equal(end, " k=", 3);
        assert_int_equal((size_t)(end - (char *)records.bytes) + 3 + around[i] + 1, records.n);
        assert_int_equal(records.bytes[records.n - 1], '\n');
        tar_buffer_free(&records);
    }
    free(value);
}

static void check_listing(const char *command, const char *name)
{
    char *text = tree_output(command, NULL);
    if (!strstr(text, name))
        fail_msg("%s: %s is not in %s", command, name, text);
    free(text);
}

/* Every length of a plain name, and of one in a folder, is read by four programs. */
static void test_name_lengths(void **state)
{
    (void)state;
    for (size_t folder = 0; folder <= 160; folder += folder < 90 ? 45 : folder < 151 ? 20 : 1) {
        static const size_t leaves[] = {1, 98, 99, 100, 101, 154, 155, 156, 255};
        for (size_t i = 0; i < ARRAY_SIZE(leaves); i++) {
            char name[600];
            memset(name, 'd', folder);
            if (folder)
                name[folder] = '/';
            size_t at = folder ? folder + 1 : 0;
            memset(name + at, 'n', leaves[i]);
            name[at + leaves[i]] = 0;
            struct tar_buffer buffer = {0};
            struct tar_member member = plain(name);
            member.type = i % 2 ? '5' : '0';
            write_archive(&member, NULL, &buffer);
            tar_buffer_free(&buffer);
            check_listing("tar tf x.tar 2>&1", name);
            check_listing("bsdtar tf x.tar 2>&1", name);
            int status;
            char *text = tree_output("gpgtar --skip-crypto -t x.tar 2>&1", &status);
            assert_int_equal(status, 0);
            assert_non_null(strstr(text, name));
            assert_null(strstr(text, "gpgtar:"));
            free(text);
        }
    }
}

/* What libarchive reads out of the header of MEMBER. */
static struct archive_entry *read_back(const struct tar_member *member, const struct tar_buffer *records,
                                       struct archive **ret_archive)
{
    struct tar_buffer buffer = {0};
    write_archive(member, records, &buffer);
    tar_buffer_free(&buffer);
    assert_int_equal(libarchive_load(NULL), 0);
    struct archive *archive = archive_read_new();
    archive_read_support_format_tar(archive);
    assert_int_equal(archive_read_open_filename(archive, "x.tar", 512), ARCHIVE_OK);
    struct archive_entry *entry;
    int result = archive_read_next_header(archive, &entry);
    /* In the C locale libarchive warns of names that are UTF-8, and gives the bytes all the same. */
    assert_true(result == ARCHIVE_OK || result == ARCHIVE_WARN);
    *ret_archive = archive;
    return entry;
}

static void test_large_values(void **state)
{
    (void)state;
    char link[5000], owner[100];
    memset(link, 'l', sizeof link - 1);
    link[sizeof link - 1] = 0;
    memset(owner, 'o', sizeof owner - 1);
    owner[sizeof owner - 1] = 0;
    struct tar_member member = plain("f");
    member.type = '2';
    member.link = link;
    member.uid = 4000000000;
    member.gid = 2097152;
    member.uname = owner;
    member.gname = owner;
    member.mtime = (struct timespec){10000000000, 987654321};
    struct archive *archive;
    struct archive_entry *entry = read_back(&member, NULL, &archive);
    assert_string_equal(archive_entry_symlink(entry), link);
    assert_int_equal(archive_entry_uid(entry), 4000000000);
    assert_int_equal(archive_entry_gid(entry), 2097152);
    assert_string_equal(archive_entry_uname(entry), owner);
    assert_string_equal(archive_entry_gname(entry), owner);
    assert_int_equal(archive_entry_mtime(entry), 10000000000);
    assert_int_equal(archive_entry_mtime_nsec(entry), 987654321);
    archive_read_free(archive);
}

static void test_device(void **state)
{
    (void)state;
    struct tar_member member = plain("tty");
    member.type = '3';
    member.dev_major = 4;
    member.dev_minor = 1048575;
    struct archive *archive;
    struct archive_entry *entry = read_back(&member, NULL, &archive);
    assert_int_equal(archive_entry_filetype(entry), AE_IFCHR);
    assert_int_equal(archive_entry_rdevmajor(entry), 4);
    assert_int_equal(archive_entry_rdevminor(entry), 1048575);
    archive_read_free(archive);
}

/* Times as Python, which takes the record as a decimal number, reads them. */
static void test_times(void **state)
{
    (void)state;
    static const struct {
        struct timespec time;
        const char *record;
    } cases[] = {
        {{-315619200, 123456789}, "mtime=-315619199.876543211\n"},
        {{-1, 250000000}, "mtime=-0.75\n"},
        {{-5, 0}, "mtime=-5\n"},
        {{0, 1}, "mtime=0.000000001\n"},
        {{5, 500000000}, "mtime=5.5\n"},
        {{8589934592, 0}, "mtime=8589934592\n"},
        {{5, 0}, NULL},
        {{8589934591, 0}, NULL},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct tar_buffer buffer = {0};
        struct tar_member member = plain("f");
        member.mtime = cases[i].time;
        write_archive(&member, NULL, &buffer);
        assert_int_equal(buffer.bytes[156], cases[i].record ? 'x' : '0');
        if (cases[i].record)
            assert_non_null(strstr((char *)buffer.bytes + TAR_BLOCK, cases[i].record));
        tar_buffer_free(&buffer);
        tree_run("tar tf x.tar >tar.out 2>&1 && test \"$(cat tar.out)\" = f");
    }
}

static void test_sparse_name(void **state)
{
    (void)state;
    char name[300];
    memset(name, 's', sizeof name);
    name[255] = 0;
    struct tar_member member = plain(name);
    member.sparse = true;
    member.size = 0;
    member.real_size = 100;
    struct tar_buffer buffer = {0};
    assert_int_equal(tar_header_add(&buffer, &member, NULL), 0);
    assert_non_null(strstr((char *)buffer.bytes + TAR_BLOCK, "path=GNUSparseFile.0.ssss"));
    /* No component that a file system would refuse. */
    assert_memory_equal(buffer.bytes + TAR_BLOCK, "265 path=", 9);
    tar_buffer_free(&buffer);
}

/* A hdrcharset record only where a record is not UTF-8. */
static void test_charset(void **state)
{
    (void)state;
    static const struct {
        const char *start;
        bool binary;
    } cases[] = {{"\xc3\xbc", false}, {"\xff", true}};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char name[400];
        snprintf(name, sizeof name, "%s%0200d", cases[i].start, 0);
        struct tar_member member = plain(name);
        struct archive *archive;
        struct archive_entry *entry = read_back(&member, NULL, &archive);
        assert_string_equal(archive_entry_pathname(entry), name);
        archive_read_free(archive);
        struct tar_buffer buffer = {0};
        assert_int_equal(tar_header_add(&buffer, &member, NULL), 0);
        assert_int_equal(memcmp(buffer.bytes + TAR_BLOCK, "21 hdrcharset=BINARY\n", 21) == 0, cases[i].binary);
        buffer.n = 0;
        name[50] = 0;
        assert_int_equal(tar_header_add(&buffer, &member, NULL), 0);
        assert_int_equal(buffer.n, TAR_BLOCK);
        tar_buffer_free(&buffer);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_fields, tree_setup, tree_teardown),
        cmocka_unit_test(test_used_again),
        cmocka_unit_test(test_too_large),
        cmocka_unit_test(test_pax_lengths),
        cmocka_unit_test_setup_teardown(test_name_lengths, tree_setup, tree_teardown),
        cmocka_unit_test_setup_teardown(test_large_values, tree_setup, tree_teardown),
        cmocka_unit_test_setup_teardown(test_device, tree_setup, tree_teardown),
        cmocka_unit_test_setup_teardown(test_times, tree_setup, tree_teardown),
        cmocka_unit_test(test_sparse_name),
        cmocka_unit_test_setup_teardown(test_charset, tree_setup, tree_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
