/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "archive/tar_write.h"
#include "tree.h"

#include <errno.h>
#include <locale.h>
#include <sys/syscall.h>

/* Fails reads from an offset on, in this program only: 0 = never. */
static off_t failing_from;

ssize_t pread64(int fd, void *to, size_t n, off_t at);
ssize_t pread64(int fd, void *to, size_t n, off_t at)
{
    if (failing_from && at >= failing_from) {
        errno = EIO;
        return -1;
    }
    if (failing_from && at + (off_t)n > failing_from)
        n = (size_t)(failing_from - at);
    return syscall(SYS_pread64, fd, to, n, at);
}

struct job {
    struct tar_create_params params;
    struct tar_create_result result;
    unsigned notices[64];
    void (*hook)(const char *path); /* called with d/victim when AT was looked at */
    const char *at;                 /* NULL: d/victim itself */
    bool hooked;
};

static void count_notice(void *context, const struct notice *notice)
{
    struct job *job = context;
    job->notices[notice->kind]++;
}

static bool call_hook(void *context, dev_t dev, ino_t ino)
{
    struct job *job = context;
    struct stat status;
    const char *at = job->at ? job->at : "d/victim";
    if (job->hook && !job->hooked && stat(at, &status) == 0 && status.st_dev == dev && status.st_ino == ino) {
        job->hooked = true;
        job->hook("d/victim");
    }
    return false;
}

static gpg_error_t create_into(struct job *job, struct sink *sink, const char *const *given)
{
    const struct notices notices = {.report = count_notice, .context = job};
    struct walk_names *names = walk_names_new();
    for (; *given; given++)
        assert_int_equal(walk_names_add(names, *given), 0);
    job->params.walk.base_fd = AT_FDCWD;
    job->params.walk.names = names;
    job->params.walk.notices = &notices;
    job->params.walk.is_output = call_hook;
    job->params.walk.output_context = job;
    gpg_error_t err = tar_create(&job->params, sink, &job->result);
    walk_names_free(names);
    return err;
}

/* Archives the folder d to the file OUTPUT. */
static void create(struct job *job, const char *output)
{
    static const char *const names[] = {"d", NULL};
    struct sink *sink = memory_sink_new(256 << 20);
    assert_int_equal(create_into(job, sink, names), 0);
    size_t n;
    const uint8_t *bytes = memory_sink_bytes(sink, &n);
    assert_int_equal(n % 512, 0);
    int fd = open(output, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    for (size_t at = 0; at < n;) {
        ssize_t wrote = write(fd, bytes + at, n - at);
        assert_true(wrote > 0);
        at += (size_t)wrote;
    }
    close(fd);
    sink_free(sink);
}

static void make_tree(void)
{
    tree_run("mkdir -p d/empty d/ro d/h1 d/h2; for n in 0 1 511 512 513 1024 300000; do head -c $n /dev/urandom "
             ">d/s$n; done");
    tree_run("for n in 99 100 101 155 156 255; do touch d/$(printf %0${n}d 0); ln -s $(printf %0${n}d 0) d/l$n; done");
    tree_run("p=d; for i in 1 2 3 4; do p=$p/$(printf %0220d $i); done; mkdir -p $p; echo deep >$p/f");
    tree_run("touch d/ü \"d/$(printf 'a\\377')\" \"d/$(printf 'a\\nb\\tc\\033\\\\')\" d/-dash 'd/blank ' 'd/*'");
    tree_run("mkdir \"d/$(printf 'x\\377%0120d' 0)\"; touch \"d/$(printf 'x\\377%0120d' 0)/ü$(printf %0120d 0)\"");
    tree_run("echo hl >d/h1/a; ln d/h1/a d/h1/b; ln d/h1/a d/h2/c; ln -s s1 d/ln; mkfifo d/ff");
    tree_run("truncate -s 100000 d/allhole; truncate -s 3000000 d/sparse;"
             "for at in 1000000 2000000; do printf x | dd of=d/sparse bs=1 seek=$at conv=notrunc 2>/dev/null; done");
    tree_run("chmod 4755 d/s1; chmod 2755 d/s511; chmod 1777 d/empty; chmod 0640 d/s512; chmod 0555 d/ro");
    tree_run("touch -d '1960-01-01 00:00:00.123456789 UTC' d/s0; touch -d '2300-05-05 00:00:00.5 UTC' d/s513;"
             "touch -d 2001-01-01 d/ro; touch -h -d '2001-02-03 04:05:06.7' d/ln");
    tree_run("setfattr -n user.foo -v bar d/s1024; setfacl -m u:nobody:r d/s512; setfacl -d -m u:nobody:rx d/h1");
    if (geteuid() == 0)
        tree_run("setcap cap_net_raw+ep d/s1024; mknod d/null c 1 3; chown 3000000:70000 d/s511");
}

/* Compares type, mode, owner, mtime in nanoseconds, link target and link count, then content, ACLs and xattrs. */
static void compare_trees(const char *a, const char *b, const char *format)
{
    char command[2048];
    const char *const folders[] = {a, b};
    for (int i = 0; i < 2; i++) {
        snprintf(command, sizeof command,
                 "cd %s && (find d -printf '%s' && getfattr -hRd -m - d && getfacl -Rnp d) 2>/dev/null | "
                 "grep -av '^$' | sort >'%s.list'; cd - >/dev/null; mv %s/%s.list list.%d",
                 folders[i], format, i ? "b" : "a", folders[i], i ? "b" : "a", i);
        tree_run(command);
    }
    snprintf(command, sizeof command,
             "cmp list.0 list.1 && diff -r --no-dereference %s/d %s/d --exclude=ff --exclude=null", a, b);
    tree_run(command);
}

#define EVERYTHING "%%y %%m %%U %%G %%T@ %%l %%P\\0\\n"

static void test_round_trip(void **state)
{
    (void)state;
    make_tree();
    struct job job = {0};
    create(&job, "a.tar");
    assert_int_equal(job.result.flawed, 0);
    for (size_t i = 0; i < ARRAY_SIZE(job.notices); i++)
        assert_int_equal(job.notices[i], i == NOTICE_ADDED ? job.result.members : 0);
    tree_run("mkdir x; tar -C x --xattrs --xattrs-include='*' --acls -xpf a.tar 2>errors");
    /* GNU tar has nothing to say but about strange times and the charset of a name that is none. */
    tree_run("! grep -v -e 'time stamp' -e hdrcharset errors");
    compare_trees(".", "x", EVERYTHING);
    tree_run("test $(stat -c %h x/d/h2/c) = 3; test $(stat -c %b x/d/sparse) -lt 1000");
    /* libarchive 3.6 takes the fraction of a time before 1970 with the wrong sign. */
    tree_run("rm -rf x; mkdir x; touch -d '1960-01-01 UTC' d/s0");
    create(&job, "a.tar");
    tree_run("LC_ALL=C.UTF-8 bsdtar -C x --xattrs --acls -xpf a.tar");
    compare_trees(".", "x", EVERYTHING);
    tree_run(
        "python3 -c 'import tarfile; t = tarfile.open(\"a.tar\"); assert t.getmember(\"d/sparse\").size == 3000000;"
        "assert t.extractfile(\"d/sparse\").read() == open(\"d/sparse\", \"rb\").read();"
        "assert t.getmember(\"d/h2/c\").linkname == \"d/h1/a\"'");
}

/* Regular files come out of GnuPG's gpgtar as they went in; it says nothing but that it skips other kinds. */
static void test_gpgtar(void **state)
{
    (void)state;
    make_tree();
    struct job job = {.params = {.portable = true}};
    create(&job, "p.tar");
    tree_run("mkdir z; gpgtar --skip-crypto --extract -C z p.tar 2>errors; ! grep -v skipped errors");
    tree_run(
        "cd d; find . -type f -o -type d | sort >../list.0; cd ../z/d; find . -type f -o -type d | sort >../../list.1");
    tree_run("cmp list.0 list.1; cd d; find . -type f -exec cmp '{}' '../z/d/{}' ';' | (! grep .)");
    tree_run("gpgtar --skip-crypto -t p.tar | grep -q 'd/sparse'");
    /* In the rich form as well the list is whole, and what is no sparse file and no link is extracted. */
    job = (struct job){0};
    create(&job, "a.tar");
    tree_run("mkdir y; gpgtar --skip-crypto --extract -C y a.tar 2>errors; ! grep -v skipped errors");
    tree_run("cmp d/s300000 y/d/s300000; cmp d/h1/a y/d/h1/a; test -f y/d/GNUSparseFile.0.sparse");
}

static void test_reproducible(void **state)
{
    (void)state;
    make_tree();
    struct job job = {0};
    create(&job, "a.tar");
    assert_non_null(setlocale(LC_ALL, "C.UTF-8"));
    create(&job, "b.tar");
    setlocale(LC_ALL, "C");
    tree_run("cmp a.tar b.tar");
    /* No process number in the names of extended headers. */
    tree_run("! LC_ALL=C grep -aq 'PaxHeaders[.][0-9]' a.tar");
    job.params.numeric_owner = true;
    create(&job, "n.tar");
    tree_run("tar tvf n.tar 2>/dev/null | grep -q ' 0/0 \\| 65534/65534 ' && ! tar tvf n.tar 2>/dev/null | grep root/");
    struct tar_create_result scanned;
    struct walk_names *names = walk_names_new();
    assert_int_equal(walk_names_add(names, "d"), 0);
    job.params.walk.names = names;
    assert_int_equal(tar_create_scan(&job.params, &scanned), 0);
    assert_int_equal(scanned.members, job.result.members);
    assert_int_equal(scanned.bytes, job.result.bytes);
    walk_names_free(names);
}

static void test_large(void **state)
{
    (void)state;
    tree_run("mkdir d; truncate -s 8589934592 d/big; echo t >d/z");
    struct job job = {0};
    create(&job, "a.tar");
    tree_run("tar tvf a.tar | grep -q ' 8589934592 .* d/big' && bsdtar tvf a.tar | grep -q ' 8589934592 .* d/big'");
    tree_run("tar tf a.tar | grep -q d/z");
}

static void shrink(const char *path)
{
    assert_int_equal(truncate(path, 100), 0);
}

static void grow(const char *path)
{
    tree_run("echo more >>d/victim");
    (void)path;
}

static void remove_it(const char *path)
{
    assert_int_equal(unlink(path), 0);
}

static void make_link(const char *path)
{
    assert_int_equal(unlink(path), 0);
    assert_int_equal(symlink("/etc/passwd", path), 0);
}

static void make_other(const char *path)
{
    assert_int_equal(rename("d/zz-other", path), 0);
}

static void make_fifo(const char *path)
{
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0644), 0);
}

static void make_victim(void)
{
    tree_run("rm -rf d; mkdir d; echo 1 >d/a; echo 2 >d/victim; echo 3 >d/zz-other; echo 4 >d/z");
}

/* A file chosen by its time is asked for its status before it is opened, and must be the same then. */
static void test_replaced(void **state)
{
    (void)state;
    static const struct {
        void (*hook)(const char *path);
        enum notice_kind kind;
    } cases[] = {
        {remove_it, NOTICE_VANISHED},
        {make_link, NOTICE_REPLACED},
        {make_other, NOTICE_REPLACED},
        {make_fifo, NOTICE_REPLACED},
    };
    struct select *select = select_new();
    select_options(select)->newer = true;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        make_victim();
        struct job job = {.params.walk.select = select, .hook = cases[i].hook};
        create(&job, "a.tar");
        assert_int_equal(job.notices[cases[i].kind], 1);
        /* The file that was moved onto the victim is missed at its old name. */
        assert_int_equal(job.result.flawed, cases[i].hook == make_other ? 2 : 1);
        tree_run("tar tf a.tar >list && grep -qx d/a list && grep -qx d/z list && ! grep -q victim list");
    }
    select_free(select);
}

/* Once a file is open, what becomes of its name does not matter. */
static void test_replaced_when_open(void **state)
{
    (void)state;
    static void (*const hooks[])(const char *path) = {remove_it, make_link, make_other, make_fifo};
    for (size_t i = 0; i < ARRAY_SIZE(hooks); i++) {
        make_victim();
        struct job job = {.hook = hooks[i]};
        create(&job, "a.tar");
        assert_true(job.hooked);
        assert_int_equal(job.result.flawed, hooks[i] == make_other ? 1 : 0);
        tree_run("test $(tar xOf a.tar d/victim) = 2 && tar tf a.tar | grep -qx d/z");
    }
}

/* What became another file since its folder was listed is what it now is. */
static void test_replaced_before(void **state)
{
    (void)state;
    static const struct {
        void (*hook)(const char *path);
        const char *test;
    } cases[] = {
        {remove_it, "! tar tf a.tar | grep -q victim"},
        {make_link, "tar tvf a.tar | grep -q '^l.* d/victim -> /etc/passwd'"},
        {make_other, "test $(tar xOf a.tar d/victim) = 3"},
        {make_fifo, "tar tvf a.tar | grep -q '^p.* d/victim'"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        make_victim();
        struct job job = {.hook = cases[i].hook, .at = "d/a"};
        create(&job, "a.tar");
        assert_true(job.hooked);
        unsigned missed = cases[i].hook == make_other || cases[i].hook == remove_it;
        assert_int_equal(job.notices[NOTICE_VANISHED], missed);
        assert_int_equal(job.result.flawed, missed);
        tree_run(cases[i].test);
        tree_run("tar tf a.tar | grep -qx d/z");
    }
}

/* A sink that changes the file d/victim when the first bytes come. */
struct changing {
    struct sink base;
    struct sink *below;
    void (*change)(const char *path);
    bool changed;
};

static gpg_error_t changing_write(struct sink *sink, const void *bytes, size_t n)
{
    struct changing *changing = CONTAINER(sink, struct changing, base);
    if (!changing->changed)
        changing->change("d/victim");
    changing->changed = true;
    return sink_write(changing->below, bytes, n);
}

static void test_changing(void **state)
{
    (void)state;
    static const struct sink_ops ops = {.write = changing_write};
    static const char *const names[] = {"d", NULL};
    static const struct {
        void (*change)(const char *path);
        enum notice_kind kind;
    } cases[] = {{shrink, NOTICE_SHRANK}, {grow, NOTICE_GREW}};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        tree_run("rm -rf d; mkdir d; head -c 600000 /dev/urandom >d/victim; cp d/victim was; echo 4 >d/z");
        struct job job = {0};
        struct changing changing = {.below = memory_sink_new(1 << 20), .change = cases[i].change};
        sink_init(&changing.base, &ops);
        assert_int_equal(create_into(&job, &changing.base, names), 0);
        assert_int_equal(job.notices[cases[i].kind], 1);
        assert_int_equal(job.result.flawed, 1);
        assert_int_equal(job.result.members, 3);
        assert_int_equal(job.result.bytes, 600002);
        size_t n;
        const uint8_t *bytes = memory_sink_bytes(changing.below, &n);
        int fd = open("a.tar", O_WRONLY | O_CREAT | O_TRUNC, 0644);
        assert_int_equal(write(fd, bytes, n), (ssize_t)n);
        close(fd);
        tree_run(
            "rm -rf x; mkdir x; tar -C x -xf a.tar; test $(cat x/d/z) = 4; test $(stat -c %s x/d/victim) = 600000");
        tree_run("cmp -n 200000 x/d/victim was");
        if (cases[i].change == grow)
            tree_run("cmp x/d/victim was");
        sink_free(changing.below);
    }
}

/* A sink that lends SIZE bytes at a time and is never written to. */
struct lending {
    struct sink base;
    struct sink *below;
    uint8_t *room;
    size_t size;
    unsigned lent, at; /* CHANGE is called when room is lent for the AT-th time */
    void (*change)(const char *path);
};

static gpg_error_t lending_room(struct sink *sink, void **ret_room, size_t *ret_n)
{
    struct lending *lending = CONTAINER(sink, struct lending, base);
    if (lending->change && ++lending->lent == lending->at)
        lending->change("d/victim");
    memset(lending->room, 0xee, lending->size);
    *ret_room = lending->room;
    *ret_n = lending->size;
    return 0;
}

static gpg_error_t lending_filled(struct sink *sink, size_t n)
{
    struct lending *lending = CONTAINER(sink, struct lending, base);
    assert_true(n > 0 && n <= lending->size);
    return sink_write(lending->below, lending->room, n);
}

static void create_lending(struct job *job, struct lending *lending)
{
    static const struct sink_ops ops = {.room = lending_room, .filled = lending_filled};
    static const char *const names[] = {"d", NULL};
    lending->below = memory_sink_new(16 << 20);
    lending->room = malloc(lending->size);
    sink_init(&lending->base, &ops);
    assert_int_equal(create_into(job, &lending->base, names), 0);
    free(lending->room);
}

static void test_lent(void **state)
{
    (void)state;
    static const char *const names[] = {"d", NULL};
    static const size_t sizes[] = {1, 7, 511, 512, 513, 1000, 4096, 70001, 1 << 20};
    make_tree();
    struct job job = {0};
    struct sink *sink = memory_sink_new(16 << 20);
    assert_int_equal(create_into(&job, sink, names), 0);
    size_t n, n_lent;
    const uint8_t *bytes = memory_sink_bytes(sink, &n);
    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        struct lending lending = {.size = sizes[i]};
        create_lending(&job, &lending);
        const uint8_t *lent = memory_sink_bytes(lending.below, &n_lent);
        assert_int_equal(n_lent, n);
        assert_memory_equal(lent, bytes, n);
        sink_free(lending.below);
    }
    sink_free(sink);
}

/* Room that ends with the file leaves none for the byte by which a change is seen. */
static void test_changing_lent(void **state)
{
    (void)state;
    static const struct {
        void (*change)(const char *path);
        enum notice_kind kind;
    } cases[] = {{shrink, NOTICE_SHRANK}, {grow, NOTICE_GREW}};
    for (unsigned i = 0; i < 2 * 6; i++) {
        tree_run("rm -rf d; mkdir d; head -c 1024 /dev/urandom >d/victim; echo 4 >d/z; touch -d @1 d d/victim d/z");
        /* The 1st is for the folder's header, the 2nd for the file's, the 3rd and the 4th for its content. */
        struct lending lending = {.size = 512, .at = 1 + i % 6, .change = cases[i / 6].change};
        struct job job = {0};
        create_lending(&job, &lending);
        bool seen = lending.at >= 2 && lending.at <= 4;
        assert_int_equal(job.notices[cases[i / 6].kind], seen);
        assert_int_equal(job.result.flawed, seen);
        assert_int_equal(job.result.members, 3);
        sink_free(lending.below);
    }
}

static void test_read_error(void **state)
{
    (void)state;
    tree_run("mkdir d; head -c 600000 /dev/urandom >d/f; echo 4 >d/z");
    struct job job = {0};
    failing_from = 300001;
    create(&job, "a.tar");
    failing_from = 0;
    assert_int_equal(job.notices[NOTICE_READ_ERROR], 1);
    assert_int_equal(job.result.flawed, 1);
    tree_run("mkdir x; tar -C x -xf a.tar; cmp -n 300001 x/d/f d/f; cmp d/z x/d/z; test $(stat -c %s x/d/f) = 600000");
    tree_run("tail -c 299999 x/d/f | tr -d '\\0' | (! grep -q .)");
}

static void test_nothing(void **state)
{
    (void)state;
    static const char *const none[] = {NULL}, *const missing[] = {"missing", NULL};
    struct job job = {0};
    struct sink *sink = memory_sink_new(1 << 20);
    assert_int_equal(create_into(&job, sink, none), 0);
    assert_int_equal(job.result.members, 0);
    assert_int_equal(job.result.named, 0);
    size_t n;
    (void)memory_sink_bytes(sink, &n);
    assert_int_equal(n, 1024);
    assert_int_equal(create_into(&job, sink, missing), 0);
    assert_int_equal(job.result.members, 0);
    assert_int_equal(job.result.named, 1);
    assert_int_equal(job.result.flawed, 1);
    sink_free(sink);
}

/* A sink that is full at any point ends the work with its error. */
static void test_full(void **state)
{
    (void)state;
    static const char *const names[] = {"d", NULL};
    tree_run("mkdir d; head -c 600000 /dev/urandom >d/f; head -c 300000 /dev/zero >d/g; truncate -s 1000000 d/h; ln "
             "d/f d/i");
    struct job job = {0};
    struct sink *sink = memory_sink_new(8 << 20);
    assert_int_equal(create_into(&job, sink, names), 0);
    size_t whole;
    (void)memory_sink_bytes(sink, &whole);
    sink_free(sink);
    for (size_t limit = 0; limit < whole; limit += 40009) {
        sink = memory_sink_new(limit);
        assert_int_equal(gpg_err_code(create_into(&job, sink, names)), GPG_ERR_TOO_LARGE);
        sink_free(sink);
    }
}

static void test_unreadable(void **state)
{
    (void)state;
    tree_run("mkdir -p d; echo 1 >d/a; echo 2 >d/b; ln d/b d/c; chmod 0 d/b; echo 3 >d/d");
    bool root = geteuid() == 0;
    if (root) {
        tree_run("chmod 755 .");
        assert_int_equal(seteuid(65534), 0);
    }
    static const char *const names[] = {"d", NULL};
    struct job job = {0};
    struct sink *sink = memory_sink_new(1 << 20);
    assert_int_equal(create_into(&job, sink, names), 0);
    if (root)
        assert_int_equal(seteuid(0), 0);
    assert_int_equal(job.notices[NOTICE_UNREADABLE], 2);
    assert_int_equal(job.result.members, 3);
    assert_int_equal(job.result.flawed, 2);
    sink_free(sink);
}

static void test_cancelled(void **state)
{
    (void)state;
    tree_run("mkdir d; touch d/a");
    static const char *const names[] = {"d", NULL};
    struct run *run = run_new();
    struct job job = {.params = {.run = run}};
    run_cancel(run, gpg_error(GPG_ERR_CANCELED));
    struct sink *sink = memory_sink_new(1 << 20);
    assert_int_equal(gpg_err_code(create_into(&job, sink, names)), GPG_ERR_CANCELED);
    sink_free(sink);
    run_free(run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_round_trip, tree_setup, tree_teardown),
        cmocka_unit_test_setup_teardown(test_gpgtar, tree_setup, tree_teardown),
        cmocka_unit_test_setup_teardown(test_reproducible, tree_setup, tree_teardown),
        cmocka_unit_test_setup_teardown(test_large, tree_setup, tree_teardown),
        cmocka_unit_test_setup_teardown(test_replaced, tree_setup, tree_teardown),
        cmocka_unit_test_setup_teardown(test_replaced_when_open, tree_setup, tree_teardown),
        cmocka_unit_test_setup_teardown(test_replaced_before, tree_setup, tree_teardown),
        cmocka_unit_test_setup_teardown(test_changing, tree_setup, tree_teardown),
        cmocka_unit_test_setup_teardown(test_lent, tree_setup, tree_teardown),
        cmocka_unit_test_setup_teardown(test_changing_lent, tree_setup, tree_teardown),
        cmocka_unit_test_setup_teardown(test_read_error, tree_setup, tree_teardown),
        cmocka_unit_test_setup_teardown(test_nothing, tree_setup, tree_teardown),
        cmocka_unit_test_setup_teardown(test_full, tree_setup, tree_teardown),
        cmocka_unit_test_setup_teardown(test_unreadable, tree_setup, tree_teardown),
        cmocka_unit_test_setup_teardown(test_cancelled, tree_setup, tree_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
