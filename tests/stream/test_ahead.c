/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "stream/ahead.h"
#include "stream/bytes.h"

#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define PAGE 4096

static size_t open_descriptors(void)
{
    size_t n = 0;
    DIR *listing = opendir("/proc/self/fd");
    assert_non_null(listing);
    while (readdir(listing))
        n++;
    closedir(listing);
    return n;
}

static void file_new(int folder, const char *name)
{
    uint8_t page[PAGE];
    memset(page, 'x', sizeof page);
    const int fd = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, page, sizeof page), PAGE);
    assert_int_equal(fsync(fd), 0);
    close(fd);
}

/* Asks the kernel to forget the file, which a file system in memory never does. */
static void forget(int folder, const char *name)
{
    const int fd = openat(folder, name, O_RDONLY);
    assert_true(fd >= 0);
    assert_int_equal(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), 0);
    close(fd);
}

static bool is_cached(int folder, const char *name)
{
    unsigned char resident = 0;
    const int fd = openat(folder, name, O_RDONLY);
    assert_true(fd >= 0);
    void *page = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0);
    assert_ptr_not_equal(page, MAP_FAILED);
    assert_int_equal(mincore(page, PAGE, &resident), 0);
    munmap(page, PAGE);
    close(fd);
    return resident & 1;
}

struct place {
    char path[32];
    int folder;
};

static struct place place_new(void)
{
    struct place place = {.path = "/var/tmp/ahead-test-XXXXXX"}; /* on a disk, where there is one */
    assert_non_null(mkdtemp(place.path));
    place.folder = open(place.path, O_RDONLY | O_DIRECTORY);
    assert_true(place.folder >= 0);
    return place;
}

static void place_clear(struct place *place)
{
    char command[64];
    close(place->folder);
    snprintf(command, sizeof command, "rm -r %s", place->path);
    assert_int_equal(system(command), 0);
}

static void test_files_come_into_the_cache(void **state)
{
    (void)state;
    struct run *run = run_new();
    struct place place = place_new();
    struct ahead *ahead;
    const size_t before = open_descriptors();
    file_new(place.folder, "file");
    assert_int_equal(mkdirat(place.folder, "folder", 0700), 0);
    file_new(place.folder, "folder/inside");
    assert_int_equal(symlinkat("target", place.folder, "link"), 0);
    file_new(place.folder, "target");
    static const char *const names[] = {"file", "folder/inside", "target"};
    bool forgets = true;
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        forget(place.folder, names[i]);
        forgets = forgets && !is_cached(place.folder, names[i]);
    }

    assert_int_equal(ahead_new(run, &ahead), 0);
    ahead_folder(ahead, place.folder);
    assert_true(ahead_hint(ahead, "file", false));
    assert_true(ahead_hint(ahead, "folder", true));
    assert_true(ahead_hint(ahead, "link", false));
    assert_true(ahead_hint(ahead, "missing", false));
    for (int tries = 0; tries < 1000 && !(is_cached(place.folder, names[0]) && is_cached(place.folder, names[1]));
         tries++)
        usleep(5000); /* the kernel reads in the background */
    ahead_free(ahead);
    assert_true(is_cached(place.folder, "file"));
    assert_true(is_cached(place.folder, "folder/inside"));
    assert_int_equal(is_cached(place.folder, "target"), !forgets); /* no link is followed */
    assert_int_equal(open_descriptors(), before);
    place_clear(&place);
    run_free(run);
}

/* A FIFO without a writer would hold up who opens it to read, and who then waits for that thread. */
static void test_fifo_holds_up_nobody(void **state)
{
    (void)state;
    struct run *run = run_new();
    struct place place = place_new();
    struct ahead *ahead;
    assert_int_equal(mkfifoat(place.folder, "fifo", 0600), 0);
    assert_int_equal(ahead_new(run, &ahead), 0);
    ahead_folder(ahead, place.folder);
    for (int i = 0; i < 8; i++)
        assert_true(ahead_hint(ahead, "fifo", i % 2));
    ahead_free(ahead);
    place_clear(&place);
    run_free(run);
}

static void test_no_more_than_can_wait(void **state)
{
    (void)state;
    struct run *run = run_new();
    struct place place = place_new();
    struct ahead *ahead;
    const size_t before = open_descriptors();
    char name[300];
    memset(name, 'n', sizeof name);
    name[299] = 0;
    assert_int_equal(ahead_new(run, &ahead), 0);
    assert_true(ahead_hint(ahead, "no folder yet", false));
    /* Folders come and go faster than hints are dealt with. */
    size_t refused = 0;
    for (int i = 0; i < 20000; i++) {
        if (i % 10 == 0)
            ahead_folder(ahead, place.folder);
        refused += !ahead_hint(ahead, "missing", i % 2);
    }
    assert_true(refused < 20000);
    assert_true(ahead_hint(ahead, name, false)); /* longer than any name: nothing to do */
    ahead_folder(ahead, -1);
    assert_true(ahead_hint(ahead, "missing", false));
    ahead_free(ahead); /* with hints that wait */
    assert_int_equal(open_descriptors(), before);
    ahead_free(NULL);
    place_clear(&place);
    run_free(run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_files_come_into_the_cache),
        cmocka_unit_test(test_fifo_holds_up_nobody),
        cmocka_unit_test(test_no_more_than_can_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
