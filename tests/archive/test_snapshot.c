/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "archive/snapshot.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define LIMIT 65536

static const struct timespec before = {.tv_sec = 900}, start = {.tv_sec = 1000, .tv_nsec = 5}, after = {.tv_sec = 1001};

static struct stat a_file(ino_t ino, const struct timespec *mtime, const struct timespec *ctime)
{
    return (struct stat){.st_dev = 7, .st_ino = ino, .st_mode = S_IFREG | 0644, .st_mtim = *mtime, .st_ctim = *ctime};
}

static struct stat a_folder(ino_t ino)
{
    return (struct stat){.st_dev = 7, .st_ino = ino, .st_mode = S_IFDIR | 0755, .st_mtim = after, .st_ctim = after};
}

/* The first snapshot: folders d and d/sub, and the file f given by name. */
static struct sink *first_snapshot(void)
{
    struct sink *memory = memory_sink_new(LIMIT);
    struct snapshot *snapshot = NULL;
    const struct stat d = a_folder(1), sub = a_folder(2), f = a_file(3, &before, &before);
    bool take = false;
    assert_non_null(memory);
    assert_int_equal(snapshot_new(NULL, "s", NULL, &start, memory, &snapshot), 0);
    assert_int_equal(snapshot_look(snapshot, "d", &d, true, &take), 0);
    assert_true(take);
    assert_int_equal(snapshot_look(snapshot, "d/old", &f, false, &take), 0);
    assert_true(take);
    assert_int_equal(snapshot_look(snapshot, "d/sub", &sub, false, &take), 0);
    assert_int_equal(snapshot_look(snapshot, "f", &f, true, &take), 0);
    assert_true(take);
    snapshot_free(snapshot);
    return memory;
}

static struct snapshot *second(struct sink *first, size_t step, struct sink *memory)
{
    size_t n;
    const uint8_t *bytes = memory_sink_bytes(first, &n);
    struct source *old = memory_source_new(bytes, n, step);
    struct snapshot *snapshot = NULL;
    assert_non_null(old);
    assert_int_equal(snapshot_new(NULL, "s", old, &after, memory, &snapshot), 0);
    source_free(old);
    return snapshot;
}

static bool takes(struct snapshot *snapshot, const char *path, struct stat status, bool given)
{
    bool take = false;
    assert_int_equal(snapshot_look(snapshot, path, &status, given, &take), 0);
    return take;
}

static void test_file_format(void **state)
{
    static const char expected[] = "gpgtar snapshot 1\n1000.000000005\n7 1 d\0"
                                   "7 2 d/sub\0"
                                   "7 3 f";
    (void)state;
    size_t n;
    struct sink *first = first_snapshot();
    const uint8_t *bytes = memory_sink_bytes(first, &n);
    assert_int_equal(n, sizeof expected);
    assert_memory_equal(bytes, expected, n);
    sink_free(first);
}

static void test_what_changed_is_taken(void **state)
{
    static const size_t steps[] = {1, 3, 0};
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
        struct sink *first = first_snapshot(), *memory = memory_sink_new(LIMIT);
        struct snapshot *snapshot = second(first, steps[i], memory);
        assert_true(takes(snapshot, "d", a_folder(1), true));
        assert_false(takes(snapshot, "d/old", a_file(3, &before, &before), false));
        assert_true(takes(snapshot, "d/written", a_file(4, &after, &after), false));
        assert_true(takes(snapshot, "d/touched-back", a_file(5, &before, &after), false));
        /* In the very tick in which the first walk began: nobody knows which of the two came first. */
        assert_true(takes(snapshot, "d/same-time", a_file(6, &before, &start), false));
        assert_true(takes(snapshot, "d/sub", a_folder(2), false));
        assert_false(takes(snapshot, "d/sub/old", a_file(8, &before, &before), false));
        assert_false(takes(snapshot, "f", a_file(3, &before, &before), true));
        snapshot_free(snapshot);
        sink_free(memory);
        sink_free(first);
    }
}

/* Of a folder that was moved or made anew all is taken, though its files are old. */
static void test_new_folders_are_taken_whole(void **state)
{
    (void)state;
    struct sink *first = first_snapshot(), *memory = memory_sink_new(LIMIT);
    struct snapshot *snapshot = second(first, 0, memory);
    const struct stat old = a_file(9, &before, &before);
    assert_true(takes(snapshot, "d", a_folder(1), true));
    assert_true(takes(snapshot, "d/moved", a_folder(2), false));
    assert_true(takes(snapshot, "d/moved/old", old, false));
    assert_true(takes(snapshot, "d/sub", a_folder(22), false));
    assert_true(takes(snapshot, "d/sub/old", old, false));
    assert_false(takes(snapshot, "d/old", old, false));
    assert_true(takes(snapshot, "/", a_folder(30), true));
    assert_true(takes(snapshot, "/old", old, false));
    assert_true(takes(snapshot, ".", a_folder(31), true));
    assert_true(takes(snapshot, "old", old, false));
    assert_true(takes(snapshot, "given-anew", old, true));
    assert_true(takes(snapshot, "f", old, true)); /* another file under the name */
    snapshot_free(snapshot);
    sink_free(memory);
    sink_free(first);
}

/* A second snapshot is as good as a first one, cut at any octet it is refused or has less in it, and never crashes. */
static void test_damaged_snapshots(void **state)
{
    (void)state;
    size_t n;
    struct sink *first = first_snapshot();
    const uint8_t *bytes = memory_sink_bytes(first, &n);
    for (size_t cut = 0; cut < n; cut++) {
        struct sink *memory = memory_sink_new(LIMIT);
        struct source *old = memory_source_new(bytes, cut, 0);
        struct snapshot *snapshot = NULL;
        gpg_error_t err = snapshot_new(NULL, "s", old, &after, memory, &snapshot);
        const bool whole_records = cut && (bytes[cut - 1] == '\0' || (bytes[cut - 1] == '\n' && cut > 20));
        assert_int_equal(gpg_err_code(err), whole_records ? 0 : GPG_ERR_BAD_DATA);
        snapshot_free(snapshot);
        source_free(old);
        sink_free(memory);
    }
    sink_free(first);
    static const char *const bad[] = {"",
                                      "GNU tar-1.34-2\n",
                                      "gpgtar snapshot 2\n1.0\n",
                                      "gpgtar snapshot 1\n-1.0\n",
                                      "gpgtar snapshot 1\n1.1000000000\n",
                                      "gpgtar snapshot 1\n99999999999999999999999.0\n",
                                      "gpgtar snapshot 1\n1\n"};
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct sink *memory = memory_sink_new(LIMIT);
        struct source *old = memory_source_new(bad[i], strlen(bad[i]), 0);
        struct snapshot *snapshot = NULL;
        struct failure failure;
        char sentence[FAILURE_SENTENCE_MAX];
        failure_init(&failure);
        assert_int_equal(gpg_err_code(snapshot_new(&failure, "state", old, &after, memory, &snapshot)),
                         GPG_ERR_BAD_DATA);
        failure_get(&failure, sentence);
        assert_non_null(strstr(sentence, "'state'"));
        failure_destroy(&failure);
        source_free(old);
        sink_free(memory);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_file_format),
        cmocka_unit_test(test_what_changed_is_taken),
        cmocka_unit_test(test_new_folders_are_taken_whole),
        cmocka_unit_test(test_damaged_snapshots),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
