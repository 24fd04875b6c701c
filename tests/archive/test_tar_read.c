/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "archive/tar_read.h"
#include "tar_maker.h"

#include <locale.h>

/* What a whole reading gave: names and contents one after the other. */
struct reading {
    gpg_error_t error;
    struct tar_read_counts counts;
    struct heard heard;
    char sentence[FAILURE_SENTENCE_MAX];
    char text[65536];
};

static void read_with(const struct tar *tar, size_t step, struct tar_read_params params, struct reading *ret)
{
    memset(ret, 0, sizeof *ret);
    struct failure failure;
    failure_init(&failure);
    const struct notices notices = {.report = hear, .context = &ret->heard};
    params.failure = &failure;
    params.notices = &notices;
    struct source *source = memory_source_new(tar->bytes, tar->n, step);
    struct tar_reader *reader;
    assert_non_null(source);
    assert_int_equal(tar_reader_new(&params, source, &reader), 0);
    const struct tar_member *member;
    while (!(ret->error = tar_reader_next(reader, &member)) && member) {
        strcat(strcat(ret->text, member->name), ":");
        const void *bytes;
        size_t n;
        uint64_t offset;
        while (!(ret->error = tar_reader_data(reader, &bytes, &n, &offset)) && n)
            strncat(ret->text, bytes, n);
        if (ret->error)
            break;
        strcat(ret->text, " ");
    }
    ret->counts = *tar_reader_counts(reader);
    tar_reader_free(reader);
    if (!ret->error) {
        /* Read to the last byte. */
        const void *bytes;
        size_t n = 1;
        assert_int_equal(source_peek(source, &bytes, &n), 0);
        assert_int_equal(n, 0);
    }
    source_free(source);
    failure_get(&failure, ret->sentence);
    failure_destroy(&failure);
    if (ret->error)
        assert_true(*ret->sentence);
}

static void read_all(const struct tar *tar, struct reading *ret)
{
    read_with(tar, 0, (struct tar_read_params){.n_names = 0}, ret);
}

static void make_plain(struct tar *tar, const char *first)
{
    tar_file(tar, first, 0644, "one");
    tar_folder(tar, "d/", 0755);
    tar_pax(tar, "path", "d/\xc3\xbc-long");
    tar_file(tar, "x", 0644, "two");
    tar_end(tar);
}

static void test_steps(void **state)
{
    (void)state;
    struct tar tar = {0};
    struct reading reading;
    make_plain(&tar, "a");
    make_plain(&tar, "b");
    for (size_t step = 0; step < 1100; step += step < 4 ? 1 : 127) {
        read_with(&tar, step, (struct tar_read_params){.concatenated = true}, &reading);
        assert_int_equal(reading.error, 0);
        assert_int_equal(reading.counts.flaws, 0);
        assert_string_equal(reading.text, "a:one d/: d/\xc3\xbc-long:two b:one d/: d/\xc3\xbc-long:two ");
        read_with(&tar, step, (struct tar_read_params){.concatenated = false}, &reading);
        assert_int_equal(reading.error, 0);
        assert_int_equal(reading.counts.flaws, 1);
        assert_string_equal(reading.text, "a:one d/: d/\xc3\xbc-long:two ");
    }
    tar_clear(&tar);
}

/* The same bytes whatever the locale, also those that are not UTF-8 or not normalised. */
static void test_names_are_bytes(void **state)
{
    (void)state;
    static const char *const names[] = {"\xc3\xbc", "u\xcc\x88", "a\xff", "\xed\xa0\x80", "tab\t", "\\"};
    static const char *const locales[] = {"C", "C.UTF-8"};
    for (size_t l = 0; l < ARRAY_SIZE(locales); l++) {
        assert_non_null(setlocale(LC_ALL, locales[l]));
        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
            struct tar tar = {0};
            struct reading reading;
            char expected[64];
            tar_pax(&tar, "path", names[i]);
            tar_file(&tar, "x", 0644, "1");
            tar_file(&tar, names[i], 0644, "2");
            tar_end(&tar);
            read_all(&tar, &reading);
            snprintf(expected, sizeof expected, "%s:1 %s:2 ", names[i], names[i]);
            assert_int_equal(reading.error, 0);
            assert_int_equal(reading.counts.flaws, 0);
            assert_string_equal(reading.text, expected);
            tar_clear(&tar);
        }
    }
    setlocale(LC_ALL, "C");
}

static void test_no_tar(void **state)
{
    (void)state;
    struct reading reading;
    uint8_t noise[4096];
    for (size_t i = 0; i < sizeof noise; i++)
        noise[i] = (uint8_t)(i * 7919 >> 3);
    struct tar tar = {.bytes = noise};
    for (size_t n = 0; n <= sizeof noise; n += 512) {
        tar.n = n;
        read_all(&tar, &reading);
        assert_int_equal(gpg_err_code(reading.error), TAR_NOT_A_TAR);
        assert_non_null(strstr(reading.sentence, "not a tar archive"));
    }
    memset(noise, 0, sizeof noise);
    read_all(&tar, &reading);
    assert_int_equal(reading.error, 0);
    assert_int_equal(reading.counts.flaws, 0);
    assert_int_equal(reading.heard.kinds[NOTICE_EMPTY_ARCHIVE], 1);
}

static void test_ends(void **state)
{
    (void)state;
    struct tar tar = {0};
    struct reading reading;
    tar_file(&tar, "a", 0644, "one");
    read_all(&tar, &reading);
    assert_int_equal(reading.error, 0);
    assert_int_equal(reading.counts.flaws, 1);
    tar_end(&tar);
    read_all(&tar, &reading);
    assert_int_equal(reading.counts.flaws, 0);
    tar_end(&tar);
    read_all(&tar, &reading);
    assert_int_equal(reading.counts.flaws, 0);
    tar_raw(&tar, "junk", 4);
    read_all(&tar, &reading);
    assert_int_equal(reading.error, 0);
    assert_int_equal(reading.counts.flaws, 1);
    assert_string_equal(reading.text, "a:one ");
    tar_clear(&tar);
    /* A pax header without a member; a global header alone. */
    tar_file(&tar, "a", 0644, "one");
    tar_pax(&tar, "path", "b");
    tar_end(&tar);
    read_all(&tar, &reading);
    assert_int_equal(reading.counts.flaws, 1);
    tar_clear(&tar);
    tar_header(&tar, "pax_global_header", 'g', 0644, 13, NULL);
    tar_raw(&tar, "13 comment=a\n", 13);
    tar_end(&tar);
    read_all(&tar, &reading);
    assert_int_equal(reading.error, 0);
    assert_int_equal(reading.counts.flaws, 0);
    tar_clear(&tar);
}

static void test_salvage(void **state)
{
    (void)state;
    struct tar tar = {0};
    struct reading reading;
    make_plain(&tar, "a");
    for (size_t n = 513; n < 1024; n += 100) {
        tar.n = n;
        read_all(&tar, &reading);
        assert_int_equal(gpg_err_code(reading.error), GPG_ERR_TRUNCATED);
        read_with(&tar, 0, (struct tar_read_params){.salvage = true}, &reading);
        assert_int_equal(reading.error, 0);
        assert_int_equal(gpg_err_code(reading.counts.cut_by), GPG_ERR_TRUNCATED);
        assert_int_equal(reading.counts.flaws, 1);
        assert_string_equal(reading.sentence, "");
    }
    tar_clear(&tar);
}

static void test_bad_sizes_and_checksums(void **state)
{
    (void)state;
    struct reading reading;
    for (int kind = 0; kind < 3; kind++) {
        struct tar tar = {0};
        tar_file(&tar, "ok", 0644, "one");
        tar_file(&tar, "bad", 0644, "two");
        tar_file(&tar, "ok2", 0644, "three");
        tar_end(&tar);
        uint8_t *header = tar.bytes + 1024;
        memset(header + 124, 0xff, 12);
        if (kind == 1) {
            memset(header + 124, 0x7f, 12);
            header[124] = 0x80;
        }
        tar_checksum(header);
        if (kind == 2) {
            memcpy(header + 124, "00000000003", 12);
            header[0] ^= 1;
        }
        read_all(&tar, &reading);
        if (kind == 2) {
            assert_int_equal(reading.error, 0);
            assert_int_equal(reading.counts.flaws, 1);
            assert_string_equal(reading.text, "ok:one ok2:three ");
        } else {
            assert_int_not_equal(reading.error, 0);
        }
        tar_clear(&tar);
    }
}

static void test_selection(void **state)
{
    (void)state;
    static const struct {
        const char *name, *expected;
        bool wildcards;
        unsigned strip;
    } cases[] = {
        {"a", "a:one ", false, 0},
        {"d", "d/: d/\xc3\xbc-long:two ", false, 0},
        {"./d/", "d/: d/\xc3\xbc-long:two ", false, 0},
        {"d/\xc3\xbc-lon", "", false, 0},
        {"*", "", false, 0},
        {"*", "a:one d/: d/\xc3\xbc-long:two ", true, 0},
        {"d/?-*", "d/\xc3\xbc-long:two ", true, 0},
        {"[d]", "d/: d/\xc3\xbc-long:two ", true, 0},
        {"\\*", "", true, 0},
        {"d", "\xc3\xbc-long:two ", false, 1},
    };
    struct tar tar = {0};
    struct reading reading;
    make_plain(&tar, "a");
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const struct tar_read_params params = {
            .names = &cases[i].name, .n_names = 1, .wildcards = cases[i].wildcards, .strip_components = cases[i].strip};
        read_with(&tar, 0, params, &reading);
        assert_int_equal(reading.error, 0);
        assert_string_equal(reading.text, cases[i].expected);
        assert_int_equal(reading.counts.flaws, !*cases[i].expected);
    }
    tar_clear(&tar);
}

/* Every byte of a sound tar changed: an answer, and no crash. */
static void test_mutations(void **state)
{
    (void)state;
    struct tar tar = {0};
    struct reading reading;
    make_plain(&tar, "a");
    for (size_t i = 0; i < tar.n; i++)
        for (int bit = 0; bit < 8; bit += 3) {
            tar.bytes[i] ^= (uint8_t)(1 << bit);
            read_all(&tar, &reading);
            tar.bytes[i] ^= (uint8_t)(1 << bit);
        }
    tar_clear(&tar);
}

int main(void)
{
    const struct CMUnitTest all[] = {
        cmocka_unit_test(test_steps),     cmocka_unit_test(test_names_are_bytes),
        cmocka_unit_test(test_no_tar),    cmocka_unit_test(test_ends),
        cmocka_unit_test(test_salvage),   cmocka_unit_test(test_bad_sizes_and_checksums),
        cmocka_unit_test(test_selection), cmocka_unit_test(test_mutations),
    };
    return cmocka_run_group_tests(all, NULL, NULL);
}
