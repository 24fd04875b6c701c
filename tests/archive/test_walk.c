/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "archive/names.h"
#include "archive/walk.h"
#include "tree.h"

#include <dirent.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

/* What a walk gave, as text: a line an entry, and the kinds of the notices. */
struct seen {
    char *text;
    size_t used, capacity;
    unsigned notices[64];
    void (*before)(const char *member); /* called as each entry comes */
    const char *output;                 /* name that is_output answers for */
    bool open_files;
    bool cold;     /* every entry has to be waited for, so that others are read ahead */
    size_t opened; /* files that the walk had open */
};

static void count_notice(void *context, const struct notice *notice)
{
    struct seen *seen = context;
    seen->notices[notice->kind]++;
}

static bool is_named_output(void *context, dev_t dev, ino_t ino)
{
    struct seen *seen = context;
    struct stat status;
    return seen->output && stat(seen->output, &status) == 0 && status.st_dev == dev && status.st_ino == ino;
}

static void collect(struct seen *seen, struct walk_names *names, const struct select *select,
                    struct walk_counts *ret_counts)
{
    const struct notices notices = {.report = count_notice, .context = seen};
    struct run *run = seen->cold ? run_new() : NULL;
    const struct walk_params params = {
        .base_fd = AT_FDCWD,
        .names = names,
        .select = select,
        .is_output = is_named_output,
        .output_context = seen,
        .open_files = seen->open_files,
        .run = run,
        .notices = &notices,
    };
    struct walk *walk;
    assert_int_equal(walk_new(&params, &walk), 0);
    const struct walk_entry *entry;
    for (;;) {
        assert_int_equal(walk_next(walk, &entry), 0);
        if (!entry)
            break;
        seen->opened += S_ISREG(entry->stat.st_mode) && entry->fd >= 0;
        if (seen->before)
            seen->before(entry->member);
        if (seen->cold)
            walk_cold(walk);
        size_t n = strlen(entry->member);
        if (seen->used + n + 2 > seen->capacity) {
            seen->capacity = 2 * (seen->used + n + 2);
            seen->text = realloc(seen->text, seen->capacity);
        }
        memcpy(seen->text + seen->used, entry->member, n);
        seen->used += n;
        seen->text[seen->used++] = '\n';
        seen->text[seen->used] = 0;
    }
    if (ret_counts)
        *ret_counts = *walk_counts(walk);
    walk_free(walk);
    walk_names_free(names);
    run_free(run);
}

static void expect_one(const char *names_given, const struct select *select, bool open_files, bool cold,
                       const char *wanted)
{
    struct seen seen = {.open_files = open_files, .cold = cold};
    struct walk_names *names = walk_names_new();
    char *copy = strdup(names_given), *save = NULL;
    for (char *name = strtok_r(copy, " ", &save); name; name = strtok_r(NULL, " ", &save))
        assert_int_equal(walk_names_add(names, name), 0);
    collect(&seen, names, select, NULL);
    assert_string_equal(seen.text ? seen.text : "", wanted);
    free(seen.text);
    free(copy);
}

/* Walks NAMES (blank separated), without files opened, with, and with others read ahead, and compares. */
static void expect(const char *names_given, const struct select *select, const char *wanted)
{
    expect_one(names_given, select, false, false, wanted);
    expect_one(names_given, select, true, false, wanted);
    expect_one(names_given, select, true, true, wanted);
}

static void make_small(void)
{
    tree_run("mkdir -p d/b d/a d/b.x; touch d/b/2 d/b/1 d/a/z d/c e; ln -s d link");
}

static void test_order(void **state)
{
    (void)state;
    make_small();
    expect("d", NULL, "d\nd/a\nd/a/z\nd/b\nd/b/1\nd/b/2\nd/b.x\nd/c\n");
    expect("e d/a", NULL, "e\nd/a\nd/a/z\n");
    expect(".", NULL, ".\nd\nd/a\nd/a/z\nd/b\nd/b/1\nd/b/2\nd/b.x\nd/c\ne\nlink\n");
    expect("./d//a/", NULL, "d/a\nd/a/z\n");
    expect("d/../e", NULL, "e\n");
    expect("d/a/..", NULL, ".\na\na/z\nb\nb/1\nb/2\nb.x\nc\n");
    expect("link", NULL, "link\n");
    expect("link/a", NULL, "link/a\nlink/a/z\n");
}

static void test_absolute(void **state)
{
    make_small();
    char path[256], wanted[600];
    snprintf(path, sizeof path, "%s/d/a", (char *)*state);
    snprintf(wanted, sizeof wanted, "%s\n%s/z\n", path + 1, path + 1);
    expect(path, NULL, wanted);
    struct seen seen = {0};
    struct walk_names *names = walk_names_new();
    assert_int_equal(walk_names_add(names, path), 0);
    assert_int_equal(walk_names_add(names, path), 0);
    collect(&seen, names, NULL, NULL);
    assert_string_equal(seen.text, wanted);
    assert_int_equal(seen.notices[NOTICE_STRIPPED_ROOT], 1);
    free(seen.text);
}

static void test_twice(void **state)
{
    (void)state;
    make_small();
    expect("e e ./e", NULL, "e\n");
    expect("d/a d/a/z d/a", NULL, "d/a\nd/a/z\n");
    expect("d/b/1 d/b", NULL, "d/b/1\nd/b\nd/b/2\n");
    expect("d/a d", NULL, "d/a\nd/a/z\nd\nd/b\nd/b/1\nd/b/2\nd/b.x\nd/c\n");
    expect(". d/a", NULL, ".\nd\nd/a\nd/a/z\nd/b\nd/b/1\nd/b/2\nd/b.x\nd/c\ne\nlink\n");
    expect("d/b d/b.x", NULL, "d/b\nd/b/1\nd/b/2\nd/b.x\n");
}

static void test_options(void **state)
{
    (void)state;
    make_small();
    struct select *select = select_new();
    select_options(select)->no_recursion = true;
    expect("d e", select, "d\ne\n");
    expect("d d/a", select, "d\nd/a\n");
    select_free(select);

    select = select_new();
    select_options(select)->dereference = true;
    expect("link/b", select, "link/b\nlink/b/1\nlink/b/2\n");
    expect("link/a d/../link", select, "link/a\nlink/a/z\nlink\nlink/b\nlink/b/1\nlink/b/2\nlink/b.x\nlink/c\n");
    tree_run("rm -r d/b d/b.x; ln -s .. d/loop; ln -s nowhere d/dangling");
    expect("link", select, "link\nlink/a\nlink/a/z\nlink/c\nlink/dangling\nlink/loop\nlink/loop/e\n");
    select_free(select);

    select = select_new();
    select_options(select)->exclude_caches = true;
    tree_file("d/a/CACHEDIR.TAG", "Signature: 8a477f597d28d172789f06886806bc55");
    expect("d/a", select, "d/a\nd/a/CACHEDIR.TAG\n");
    assert_int_equal(select_exclude(select, "./d/loop"), 0);
    assert_int_equal(select_exclude(select, "c"), 0);
    expect("d c", select, "d\nd/a\nd/a/CACHEDIR.TAG\nd/dangling\n");
    select_free(select);
}

static void test_lists(void **state)
{
    (void)state;
    tree_run("touch a bb ' c ' 'd\r'; touch \"$(printf 'x\\ny')\"");
    static const char lines[] = "a\n\nbb\n c \nd\r";
    static const char nuls[] = "a\0\0x\ny\0bb";
    for (size_t step = 1; step < 16; step++) {
        struct seen seen = {0};
        struct walk_names *names = walk_names_new();
        struct source *source = memory_source_new(lines, sizeof lines - 1, step);
        assert_int_equal(walk_names_add_list(names, source, '\n', "list"), 0);
        collect(&seen, names, NULL, NULL);
        assert_string_equal(seen.text, "a\nbb\n c \nd\r\n");
        free(seen.text);

        seen = (struct seen){0};
        names = walk_names_new();
        source = memory_source_new(nuls, sizeof nuls - 1, step);
        assert_int_equal(walk_names_add_list(names, source, 0, "list"), 0);
        collect(&seen, names, NULL, NULL);
        assert_string_equal(seen.text, "a\nx\ny\nbb\n");
        free(seen.text);
    }
}

static gpg_error_t walk_list(const char *bytes, size_t n, struct failure *failure)
{
    struct walk_names *names = walk_names_new();
    assert_int_equal(walk_names_add_list(names, memory_source_new(bytes, n, 0), '\n', "the-list"), 0);
    const struct walk_params params = {.base_fd = AT_FDCWD, .names = names, .failure = failure};
    struct walk *walk;
    assert_int_equal(walk_new(&params, &walk), 0);
    const struct walk_entry *entry;
    gpg_error_t err = walk_next(walk, &entry);
    walk_free(walk);
    walk_names_free(names);
    return err;
}

static void test_bad_lists(void **state)
{
    (void)state;
    struct failure failure;
    char sentence[FAILURE_SENTENCE_MAX];
    failure_init(&failure);
    assert_int_equal(gpg_err_code(walk_list("a\0b\n", 4, &failure)), GPG_ERR_INV_NAME);
    assert_int_not_equal(failure_get(&failure, sentence), 0);
    assert_non_null(strstr(sentence, "the-list"));
    failure_destroy(&failure);
    char *endless = malloc(NAMES_MAX + 1);
    memset(endless, 'a', NAMES_MAX + 1);
    assert_int_equal(gpg_err_code(walk_list(endless, NAMES_MAX + 1, NULL)), GPG_ERR_LINE_TOO_LONG);
    free(endless);
    assert_int_equal(walk_list("", 0, NULL), 0);
}

static void test_skipped(void **state)
{
    (void)state;
    tree_run("mkdir d; mkfifo d/fifo; touch d/out d/x");
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "d/socket"};
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    struct seen seen = {.output = "d/out"};
    struct walk_names *names = walk_names_new();
    assert_int_equal(walk_names_add(names, "d"), 0);
    assert_int_equal(walk_names_add(names, "missing"), 0);
    assert_int_equal(walk_names_add(names, ""), 0);
    struct walk_counts counts;
    collect(&seen, names, NULL, &counts);
    assert_string_equal(seen.text, "d\nd/fifo\nd/x\n");
    assert_int_equal(seen.notices[NOTICE_SKIPPED_SELF], 1);
    assert_int_equal(seen.notices[NOTICE_SKIPPED_SOCKET], 1);
    assert_int_equal(seen.notices[NOTICE_VANISHED], 1);
    assert_int_equal(seen.notices[NOTICE_UNREADABLE], 1);
    assert_int_equal(counts.named, 3);
    assert_int_equal(counts.skipped, 2);
    assert_int_equal(counts.flawed, 2);
    free(seen.text);
    close(fd);
}

static void test_leftovers(void **state)
{
    (void)state;
    tree_run("mkdir -p d/.gpgtar-abcDE1/tree d/.gpgtar-long_name; touch d/.gpgtar-abcdef d/.gpgtar-abcDE1/tree/x; "
             "ln -s x d/.gpgtar-abcDE2");
    struct seen seen = {0};
    struct walk_names *names = walk_names_new();
    assert_int_equal(walk_names_add(names, "d"), 0);
    struct walk_counts counts;
    collect(&seen, names, NULL, &counts);
    assert_string_equal(seen.text, "d\nd/.gpgtar-abcDE2\nd/.gpgtar-long_name\n");
    assert_int_equal(seen.notices[NOTICE_SKIPPED_OURS], 2);
    assert_int_equal(counts.skipped, 2);
    assert_int_equal(counts.flawed, 0);
    free(seen.text);
    /* Whoever names one gets it. */
    seen = (struct seen){0};
    names = walk_names_new();
    assert_int_equal(walk_names_add(names, "d/.gpgtar-abcDE1"), 0);
    collect(&seen, names, NULL, &counts);
    assert_string_equal(seen.text, "d/.gpgtar-abcDE1\nd/.gpgtar-abcDE1/tree\nd/.gpgtar-abcDE1/tree/x\n");
    free(seen.text);
}

static void test_unreadable(void **state)
{
    (void)state;
    if (geteuid() == 0) /* root reads everything; the walk as another user is what the test is about */
        assert_int_equal(seteuid(65534), 0);
    umask(0);
    char folder[] = "/tmp/gpgtar-unreadable-XXXXXX";
    assert_non_null(mkdtemp(folder));
    assert_int_equal(chdir(folder), 0);
    tree_run("mkdir d d/shut d/open; touch d/open/x d/open/y; chmod 0 d/shut d/open/y");
    struct seen seen = {.open_files = true};
    struct walk_names *names = walk_names_new();
    assert_int_equal(walk_names_add(names, "d"), 0);
    struct walk_counts counts;
    collect(&seen, names, NULL, &counts);
    assert_string_equal(seen.text, "d\nd/open\nd/open/x\nd/open/y\nd/shut\n");
    assert_int_equal(seen.opened, 1);
    assert_int_equal(seen.notices[NOTICE_UNREADABLE], 1);
    assert_int_equal(counts.flawed, 1);
    free(seen.text);
    tree_run("chmod 700 d/shut; rm -r d");
    assert_int_equal(rmdir(folder), 0);
    if (getuid() == 0)
        assert_int_equal(seteuid(0), 0);
    assert_int_equal(chdir(*state), 0);
}

static int descriptors(void)
{
    int n = 0;
    DIR *folder = opendir("/proc/self/fd");
    assert_non_null(folder);
    while (readdir(folder))
        n++;
    closedir(folder);
    return n;
}

/* Files below a folder are opened where they are read, other kinds and what is left out are not, and nothing stays
 * open. */
static void test_opened(void **state)
{
    (void)state;
    tree_run("mkdir d; mkfifo d/fifo; ln -s x d/link; touch d/out d/x d/y d/z.o d/.gpgtar-abcdef");
    struct select *select = select_new();
    assert_int_equal(select_exclude(select, "*.o"), 0);
    const int before = descriptors();
    for (unsigned i = 0; i < 3; i++) {
        select_options(select)->newer = i == 2;
        struct seen seen = {.output = "d/out", .open_files = i > 0};
        struct walk_names *names = walk_names_new();
        assert_int_equal(walk_names_add(names, "d"), 0);
        struct walk_counts counts;
        collect(&seen, names, select, &counts);
        assert_string_equal(seen.text, "d\nd/fifo\nd/link\nd/x\nd/y\n");
        assert_int_equal(seen.opened, i == 1 ? 2 : 0);
        assert_int_equal(counts.skipped, 3);
        assert_int_equal(counts.flawed, 0);
        assert_int_equal(seen.notices[NOTICE_SKIPPED_SELF], 1);
        assert_int_equal(seen.notices[NOTICE_SKIPPED_OURS], 1);
        assert_int_equal(descriptors(), before);
        free(seen.text);
    }
    select_free(select);
}

/* Folders 300 deep with files on each level, and few descriptors. */
static void test_deep(void **state)
{
    (void)state;
    int fd = open(".", O_RDONLY | O_DIRECTORY);
    for (int i = 0; i < 300; i++) {
        assert_int_equal(mkdirat(fd, "folder-of-a-deep-tree", 0755), 0);
        int below = openat(fd, "folder-of-a-deep-tree", O_RDONLY | O_DIRECTORY);
        int file = openat(fd, "z", O_WRONLY | O_CREAT, 0644);
        close(file);
        close(fd);
        fd = below;
    }
    close(fd);
    struct rlimit old, limit;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
    limit = old;
    limit.rlim_cur = WALK_OPEN_MAX + 16;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    struct seen seen = {.open_files = true, .cold = true}; /* for which there are too few */
    struct walk_names *names = walk_names_new();
    assert_int_equal(walk_names_add(names, "."), 0);
    struct walk_counts counts;
    collect(&seen, names, NULL, &counts);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
    size_t lines = 0;
    for (const char *at = seen.text; (at = strchr(at, '\n')); at++)
        lines++;
    assert_int_equal(lines, 601);
    assert_int_equal(counts.flawed, 0);
    /* The innermost folder given by a name longer than PATH_MAX. */
    char *longest = strndup(seen.text + 2, 2 * 22 * 300), *end = longest;
    for (const char *line = seen.text; *line; line = strchr(line, '\n') + 1) {
        size_t n = strcspn(line, "\n");
        if (n > strlen(longest) || line == seen.text) {
            memcpy(longest, line, n);
            longest[n] = 0;
            end = longest + n;
        }
    }
    assert_true(end - longest > 4096);
    names = walk_names_new();
    struct seen single = {0};
    assert_int_equal(walk_names_add(names, longest), 0);
    collect(&single, names, NULL, &counts);
    assert_int_equal(counts.flawed, 0);
    assert_int_equal(single.used, strlen(longest) + 1);
    free(single.text);
    free(seen.text);
    free(longest);
}

/* A tree whose paths grow longer than any reader takes: what is deeper is reported. */
static void test_too_deep(void **state)
{
    (void)state;
    char name[251];
    memset(name, 'n', 250);
    name[250] = 0;
    int fd = open(".", O_RDONLY | O_DIRECTORY);
    for (int i = 0; i < 270; i++) {
        assert_int_equal(mkdirat(fd, name, 0755), 0);
        int below = openat(fd, name, O_RDONLY | O_DIRECTORY);
        close(fd);
        fd = below;
    }
    close(fd);
    struct seen seen = {0};
    struct walk_names *names = walk_names_new();
    assert_int_equal(walk_names_add(names, "."), 0);
    struct walk_counts counts;
    collect(&seen, names, NULL, &counts);
    assert_int_equal(counts.flawed, 1);
    assert_int_equal(seen.notices[NOTICE_UNREADABLE], 1);
    free(seen.text);
}

static void swap_folder(const char *member)
{
    if (!strcmp(member, "d/a"))
        tree_run("mv d/b gone; ln -s /etc d/b");
    if (!strcmp(member, "d/c"))
        tree_run("rm d/d");
}

static void move_away(const char *member)
{
    if (!strncmp(member, "deep/0", 6) && strstr(member, "/last"))
        tree_run("mv deep moved");
}

/* Links and folders that change places while the walk goes. */
static void test_races(void **state)
{
    (void)state;
    tree_run("mkdir -p d/a d/b; touch d/b/x d/c d/d d/e");
    struct seen seen = {.before = swap_folder};
    struct walk_names *names = walk_names_new();
    assert_int_equal(walk_names_add(names, "d"), 0);
    collect(&seen, names, NULL, NULL);
    assert_string_equal(seen.text, "d\nd/a\nd/b\nd/c\nd/e\n");
    assert_int_equal(seen.notices[NOTICE_VANISHED], 1);
    free(seen.text);

    /* The whole tree is moved away while its depth is more than stays open: its folders are found through `..`. */
    tree_run("p=deep; for i in $(seq 0 40); do p=$p/0; done; mkdir -p $p; touch $p/last deep/z deep/0/z");
    seen = (struct seen){.before = move_away};
    names = walk_names_new();
    assert_int_equal(walk_names_add(names, "deep"), 0);
    collect(&seen, names, NULL, NULL);
    assert_non_null(strstr(seen.text, "\ndeep/0/z\ndeep/z\n"));
    assert_int_equal(seen.notices[NOTICE_VANISHED], 0);
    free(seen.text);
}

static void test_many(void **state)
{
    (void)state;
    assert_int_equal(mkdir("d", 0755), 0);
    int fd = open("d", O_RDONLY | O_DIRECTORY);
    for (int i = 0; i < 20000; i++) {
        char name[64];
        snprintf(name, sizeof name, "%05d-name-of-some-length", (i * 7919) % 20000);
        close(openat(fd, name, O_WRONLY | O_CREAT, 0644));
    }
    close(fd);
    for (int cold = 0; cold < 2; cold++) {
        struct seen seen = {.open_files = cold, .cold = cold};
        struct walk_names *names = walk_names_new();
        assert_int_equal(walk_names_add(names, "d"), 0);
        collect(&seen, names, NULL, NULL);
        const char *line = strchr(seen.text, '\n') + 1;
        for (int i = 0; i < 20000; i++) {
            assert_int_equal(atoi(line + 2), i);
            line = strchr(line, '\n') + 1;
        }
        assert_int_equal(*line, 0);
        free(seen.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_order, tree_setup, tree_teardown),
        cmocka_unit_test_setup_teardown(test_absolute, tree_setup, tree_teardown),
        cmocka_unit_test_setup_teardown(test_twice, tree_setup, tree_teardown),
        cmocka_unit_test_setup_teardown(test_options, tree_setup, tree_teardown),
        cmocka_unit_test_setup_teardown(test_lists, tree_setup, tree_teardown),
        cmocka_unit_test(test_bad_lists),
        cmocka_unit_test_setup_teardown(test_skipped, tree_setup, tree_teardown),
        cmocka_unit_test_setup_teardown(test_leftovers, tree_setup, tree_teardown),
        cmocka_unit_test_setup_teardown(test_unreadable, tree_setup, tree_teardown),
        cmocka_unit_test_setup_teardown(test_opened, tree_setup, tree_teardown),
        cmocka_unit_test_setup_teardown(test_deep, tree_setup, tree_teardown),
        cmocka_unit_test_setup_teardown(test_too_deep, tree_setup, tree_teardown),
        cmocka_unit_test_setup_teardown(test_races, tree_setup, tree_teardown),
        cmocka_unit_test_setup_teardown(test_many, tree_setup, tree_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
