/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "archive/extract.h"
#include "archive/staging.h"
#include "tar_maker.h"

#include <sys/xattr.h>

/* What one extraction gave. */
struct outcome {
    gpg_error_t error;
    struct tar_extract_result result;
    struct staging_release_result released;
    struct heard heard;
};

/* Extracts TAR into a staging folder and, if the archive was read to its end, releases it into the target. */
static void extract_with(const struct ground *ground, const struct tar *tar, struct tar_extract_params params,
                         enum staging_policy policy, struct outcome *ret)
{
    struct outcome *outcome = ret;
    memset(outcome, 0, sizeof *outcome);
    const struct notices notices = {.report = hear, .context = &outcome->heard};
    struct staging *staging;
    struct source *source = memory_source_new(tar->bytes, tar->n, 0);
    assert_non_null(source);
    assert_int_equal(staging_new(ground->target, "target", NULL, &staging), 0);
    params.root_fd = staging_fd(staging);
    params.umask = 022;
    params.read.notices = &notices;
    umask(022);
    outcome->error = tar_extract(&params, source, &outcome->result);
    if (!outcome->error) {
        struct staging_release_params release = {.policy = policy, .notices = &notices};
        outcome->error = staging_release(staging, &release, &outcome->released);
    }
    staging_free(staging);
    source_free(source);
    /* Whatever happened, no staging folder stays. */
    assert_true(target_is(ground, "! ls -d .gpgtar-* 2>/dev/null"));
}

static void extract(const struct ground *ground, const struct tar *tar, struct outcome *ret)
{
    struct tar_extract_params params = {.same_owner = false};
    extract_with(ground, tar, params, STAGING_KEEP, ret);
}

static void test_bad_names_are_refused_one_by_one(void **state)
{
    (void)state;
    static const char *const bad[] = {"../esc", "a/../../esc", "..", "a/..", "../outside/file", "a/../b", ""};
    struct ground ground;
    struct outcome outcome;
    ground_open(&ground);
    struct tar tar = {0};
    tar_file(&tar, "ok1", 0644, "one");
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        tar_file(&tar, bad[i], 0644, "bad");
        tar_pax(&tar, "path", *bad[i] ? bad[i] : "../x");
        tar_file(&tar, "harmless", 0644, "bad");
    }
    tar_file(&tar, "ok2", 0644, "two");
    tar_end(&tar);
    extract(&ground, &tar, &outcome);
    assert_int_equal(outcome.error, 0);
    assert_int_equal(outcome.result.extracted, 2);
    assert_int_equal(outcome.result.badname, 2 * ARRAY_SIZE(bad));
    assert_int_equal(outcome.heard.kinds[NOTICE_BAD_NAME], 2 * ARRAY_SIZE(bad));
    assert_true(target_is(&ground, "test \"$(ls -A | tr '\\n' ' ')\" = 'ok1 ok2 '"));
    tar_clear(&tar);
    ground_close(&ground);
}

static void test_absolute_names_land_below(void **state)
{
    (void)state;
    struct ground ground;
    struct outcome outcome;
    ground_open(&ground);
    struct tar tar = {0};
    char name[128];
    snprintf(name, sizeof name, "%s/outside/file", ground.path);
    tar_file(&tar, name, 0644, "changed");
    tar_file(&tar, "//etc//x", 0644, "changed");
    tar_end(&tar);
    extract(&ground, &tar, &outcome);
    assert_int_equal(outcome.error, 0);
    assert_int_equal(outcome.result.extracted, 2);
    assert_int_equal(outcome.heard.kinds[NOTICE_ROOT_STRIPPED], 1);
    assert_true(target_is(&ground, "test -f etc/x && test -f tmp/*/outside/file"));
    tar_clear(&tar);
    ground_close(&ground);
}

static void test_links_out_and_through(void **state)
{
    (void)state;
    struct ground ground;
    struct outcome outcome;
    ground_open(&ground);
    struct tar tar = {0};
    char outside[128];
    snprintf(outside, sizeof outside, "%s/outside", ground.path);
    tar_symlink(&tar, "abs", outside);
    tar_symlink(&tar, "up", "../outside");
    tar_symlink(&tar, "d/up2", "../../outside");
    tar_symlink(&tar, "mixed", "d/../../outside");
    tar_symlink(&tar, "none", "");
    /* Meant to go through a refused link: no folder of that name takes them, unless the archive has one. */
    tar_file(&tar, "up/x", 0644, "through");
    tar_file(&tar, "abs/sub/x", 0644, "through");
    tar_folder(&tar, "mixed", 0755);
    tar_file(&tar, "mixed/x", 0644, "sound");
    /* A harmless one, and members through it. */
    tar_folder(&tar, "real", 0755);
    tar_symlink(&tar, "l", "real");
    tar_file(&tar, "l/x", 0644, "through");
    tar_folder(&tar, "l/y", 0755);
    tar_symlink(&tar, "l/z", "x");
    tar_hard_link(&tar, "l/h", "real/x");
    /* Sound by the text, but s1/s2/l is the root: m leads above it. */
    tar_folder(&tar, "s1/s2", 0755);
    tar_symlink(&tar, "s1/s2/l", "../..");
    tar_symlink(&tar, "m", "s1/s2/l/../outside");
    /* A hard link to a symlink at another depth. */
    tar_symlink(&tar, "s1/s2/deep", "../../real");
    tar_hard_link(&tar, "shallow", "s1/s2/deep");
    tar_symlink(&tar, "lib.so", "lib.so.1");
    tar_symlink(&tar, "a/b", "../c");
    tar_symlink(&tar, "odd", "real/../real");
    tar_end(&tar);
    extract(&ground, &tar, &outcome);
    assert_int_equal(outcome.error, 0);
    assert_int_equal(outcome.result.symlink, 6);
    assert_int_equal(outcome.result.suspicious, 6);
    assert_int_equal(outcome.heard.kinds[NOTICE_THROUGH_LINK], 6);
    assert_int_equal(outcome.result.hardlink, 1);
    assert_true(target_is(&ground, "! test -e up && ! test -e abs && test -f mixed/x"));
    assert_true(target_is(&ground, "test -L lib.so && test -L a/b && test -L odd && test -L l && test -L s1/s2/l"));
    assert_true(target_is(&ground, "! test -L abs && ! test -L up && ! test -L d/up2 && ! test -L mixed && ! test -L m "
                                   "&& ! test -L shallow && test -z \"$(ls real)\""));
    tar_clear(&tar);
    ground_close(&ground);
}

static void test_duplicates_and_wrong_kinds(void **state)
{
    (void)state;
    struct ground ground;
    struct outcome outcome;
    ground_open(&ground);
    struct tar tar = {0};
    tar_file(&tar, "f", 0644, "old");
    tar_hard_link(&tar, "keeps", "f");
    tar_file(&tar, "f", 0644, "new");
    tar_symlink(&tar, "link", "f");
    tar_file(&tar, "link", 0644, "no link any more");
    tar_folder(&tar, "full", 0755);
    tar_file(&tar, "full/x", 0644, "x");
    tar_file(&tar, "full", 0644, "refused");
    tar_file(&tar, "f/below", 0644, "refused");
    tar_folder(&tar, "empty", 0755);
    tar_symlink(&tar, "empty", "full");
    tar_folder(&tar, "keeps2", 0700);
    tar_hard_link(&tar, "f", "f");
    tar_end(&tar);
    extract(&ground, &tar, &outcome);
    assert_int_equal(outcome.error, 0);
    assert_int_equal(outcome.heard.kinds[NOTICE_WRONG_KIND], 2);
    assert_true(target_is(&ground,
                          "test \"$(cat f)\" = new && test \"$(cat keeps)\" = old && test -L empty && ! test -L "
                          "link && test \"$(stat -c %a full)\" = 755 && test \"$(stat -c %a keeps2)\" = 700"));
    tar_clear(&tar);
    ground_close(&ground);
}

/* A folder, then a link of the same name: the mode and time that come last must not go through the link (and reverse).
 */
static void test_deferred_modes_do_not_follow(void **state)
{
    (void)state;
    struct ground ground;
    struct outcome outcome;
    ground_open(&ground);
    struct tar tar = {0};
    tar_folder(&tar, "target", 0755);
    tar_folder(&tar, "sym", 0777);
    tar_symlink(&tar, "sym", "target");
    tar_symlink(&tar, "sym2", "target");
    tar_folder(&tar, "sym2", 0700);
    tar_end(&tar);
    extract(&ground, &tar, &outcome);
    assert_int_equal(outcome.error, 0);
    assert_int_equal(outcome.result.skipped + outcome.result.restores, 0);
    assert_true(target_is(&ground,
                          "test \"$(stat -c %a target)\" = 755 && test -L sym && test ! -L sym2 && test \"$(stat -c "
                          "%a sym2)\" = 700"));
    tar_clear(&tar);
    ground_close(&ground);
}

static void test_hard_links_to_outside(void **state)
{
    (void)state;
    struct ground ground;
    struct outcome outcome;
    ground_open(&ground);
    struct tar tar = {0};
    char outside[128];
    snprintf(outside, sizeof outside, "%s/outside/file", ground.path);
    run_in(&ground, "echo there >target/there");
    tar_hard_link(&tar, "h1", outside);
    tar_hard_link(&tar, "h2", "../outside/file");
    tar_hard_link(&tar, "h3", "there");
    tar_folder(&tar, "d", 0755);
    tar_hard_link(&tar, "h4", "d");
    tar_hard_link(&tar, "h5", "");
    /* With content: refused as a link, and the content is not written through it either. */
    tar_header(&tar, "h6", '1', 0644, 3, "../outside/file");
    tar_end(&tar);
    extract(&ground, &tar, &outcome);
    assert_int_equal(outcome.error, 0);
    assert_true(outcome.result.hardlink >= 5);
    assert_true(target_is(&ground, "! ls h* 2>/dev/null"));
    tar_clear(&tar);
    ground_close(&ground);
}

static void test_existing_links_are_not_followed(void **state)
{
    (void)state;
    struct ground ground;
    struct outcome outcome;
    ground_open(&ground);
    struct tar tar = {0};
    struct tar_extract_params params = {.same_owner = false};
    run_in(&ground, "ln -s ../outside target/d && ln -s ../outside/file target/f");
    tar_folder(&tar, "d", 0777);
    tar_file(&tar, "d/file", 0644, "evil");
    tar_file(&tar, "f", 0644, "evil");
    tar_end(&tar);
    extract_with(&ground, &tar, params, STAGING_KEEP, &outcome);
    assert_int_equal(gpg_err_code(outcome.error), GPG_ERR_EEXIST);
    assert_int_equal(outcome.heard.kinds[NOTICE_EXISTS], 2);
    assert_true(target_is(&ground, "test -L d && test -L f"));
    extract_with(&ground, &tar, params, STAGING_REPLACE, &outcome);
    assert_int_equal(outcome.error, 0);
    assert_int_equal(outcome.released.replaced, 2);
    assert_true(
        target_is(&ground, "test ! -L d && test ! -L f && test \"$(cat f)\" = evil && test \"$(cat d/file)\" = evil"));
    tar_clear(&tar);
    ground_close(&ground);
}

static void test_modes_and_times(void **state)
{
    (void)state;
    struct ground ground;
    struct outcome outcome;
    ground_open(&ground);
    struct tar tar = {0};
    struct tar_extract_params params = {.same_permissions = true};
    tar_folder(&tar, "ro", 0555);
    tar_file(&tar, "ro/f", 0444, "x");
    tar_folder(&tar, "none", 0000);
    tar_file(&tar, "none/f", 0666, "x");
    tar_file(&tar, "suid", 04755, "x");
    tar_folder(&tar, "sticky", 01777);
    tar_pax(&tar, "mtime", "-315619199.123456789");
    tar_file(&tar, "old", 0666, "x");
    tar_header(&tar, "fifo", '6', 0622, 0, NULL);
    tar_end(&tar);
    extract(&ground, &tar, &outcome);
    assert_int_equal(outcome.error, 0);
    assert_int_equal(outcome.result.skipped + outcome.result.restores, 0);
    assert_int_equal(outcome.heard.kinds[NOTICE_DROPPED_MODE], 2);
    assert_true(target_is(&ground,
                          "test \"$(stat -c %a ro none suid sticky old fifo | tr '\\n' ' ')\" = '555 0 755 755 644 "
                          "600 '"));
    assert_true(target_is(&ground, "test \"$(stat -c %Y ro none | tr '\\n' ' ')\" = '1000000000 1000000000 '"));
    assert_true(target_is(&ground, "test \"$(TZ=UTC stat -c %y old)\" = '1960-01-01 00:00:00.876543211 +0000'"));
    assert_true(target_is(&ground, "chmod 755 none && test \"$(stat -c %a none/f)\" = 644"));
    run_in(&ground, "chmod -R u+w target && rm -r target/*");
    extract_with(&ground, &tar, params, STAGING_KEEP, &outcome);
    assert_int_equal(outcome.error, 0);
    assert_true(target_is(&ground, geteuid()
                                       ? "test \"$(stat -c %a suid sticky old | tr '\\n' ' ')\" = '755 777 666 '"
                                       : "test \"$(stat -c %a suid sticky old | tr '\\n' ' ')\" = '4755 1777 666 '"));
    tar_clear(&tar);
    ground_close(&ground);
}

static void test_devices_need_root(void **state)
{
    (void)state;
    struct ground ground;
    struct outcome outcome;
    ground_open(&ground);
    struct tar tar = {0};
    tar_header(&tar, "dev", '3', 0666, 0, NULL);
    tar_end(&tar);
    extract(&ground, &tar, &outcome);
    assert_int_equal(outcome.error, 0);
    if (geteuid()) {
        assert_int_equal(outcome.heard.kinds[NOTICE_NEEDS_ROOT], 1);
        assert_int_equal(outcome.result.other, 1);
    } else {
        assert_true(target_is(&ground, "test -c dev"));
    }
    tar_clear(&tar);
    ground_close(&ground);
}

static void test_xattrs_and_acls(void **state)
{
    (void)state;
    struct ground ground;
    struct outcome outcome;
    ground_open(&ground);
    struct tar tar = {0};
    tar_pax(&tar, "SCHILY.xattr.user.colour", "blue");
    tar_file(&tar, "f", 0444, "x");
    tar_pax(&tar, "SCHILY.xattr.security.capability", "nonsense");
    tar_file(&tar, "g", 0755, "x");
    tar_pax(&tar, "SCHILY.acl.access", "user::rw-,user:1234:rwx,group::r--,mask::rwx,other::---");
    tar_file(&tar, "acl", 0670, "x");
    tar_pax(&tar, "SCHILY.acl.default", "user::rwx,user:1234:rwx,group::r-x,mask::rwx,other::---");
    tar_folder(&tar, "dacl", 0755);
    tar_file(&tar, "dacl/inside", 0600, "x");
    tar_end(&tar);
    extract(&ground, &tar, &outcome);
    assert_int_equal(outcome.error, 0);
    assert_int_equal(outcome.result.restores, 0);
    assert_int_equal(outcome.heard.kinds[NOTICE_DROPPED_MODE], 1);
    char value[64] = "";
    int fd = openat(ground.target, "f", O_RDONLY);
    assert_int_equal(fgetxattr(fd, "user.colour", value, sizeof value), 4);
    assert_string_equal(value, "blue");
    close(fd);
    /* The mask less the umask 022, which shows as the group's mode. */
    assert_true(target_is(&ground,
                          "getfattr -n system.posix_acl_access acl >/dev/null 2>&1 && test \"$(stat -c %a acl)\" = "
                          "650"));
    assert_true(target_is(&ground, "getfattr -n system.posix_acl_default dacl >/dev/null 2>&1 && ! getfattr -n "
                                   "system.posix_acl_access dacl/inside >/dev/null 2>&1"));
    tar_clear(&tar);
    ground_close(&ground);
}

static void test_deep_and_long(void **state)
{
    (void)state;
    struct ground ground;
    struct outcome outcome;
    ground_open(&ground);
    struct tar tar = {0};
    char path[6100] = "";
    /* 1000 levels, longer than PATH_MAX; every fourth folder is closed. */
    for (int i = 0; i < 1000; i++) {
        strcat(path, i ? "/deep" : "deep");
        if (i % 4)
            continue;
        tar_pax(&tar, "path", path);
        tar_folder(&tar, "x", i % 8 ? 0555 : 0700);
    }
    strcat(path, "/file");
    tar_pax(&tar, "path", path);
    tar_file(&tar, "x", 0644, "bottom");
    char component[300];
    memset(component, 'c', 256);
    component[256] = '\0';
    tar_pax(&tar, "path", component);
    tar_file(&tar, "x", 0644, "too long");
    tar_end(&tar);
    extract(&ground, &tar, &outcome);
    assert_int_equal(outcome.error, 0);
    assert_int_equal(outcome.result.extracted, 1);
    assert_int_equal(outcome.result.badname, 1);
    assert_int_equal(outcome.result.restores, 0);
    assert_true(target_is(
        &ground, "test \"$(find . -type d | wc -l)\" = 1001 && test \"$(find . -name file -printf '%s')\" = 6"));
    tar_clear(&tar);
    ground_close(&ground);
}

/* Down and up again, beside names that begin alike, and deeper than folders are kept open. */
static void test_up_and_down(void **state)
{
    (void)state;
    static const char *const names[] = {"a/b/c/1", "a/2",         "a/b/3",    "ab/4",     "a/b/c/5",
                                        "6",       "a/b/c/d/e/7", "a/b/cc/8", "a/b/c/d/9"};
    struct ground ground;
    struct outcome outcome;
    ground_open(&ground);
    struct tar tar = {0};
    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        tar_file(&tar, names[i], 0644, names[i]);
    for (size_t turn = 0; turn < 80; turn++) {
        char path[100] = "", text[110];
        for (size_t depth = turn < 40 ? turn : 79 - turn; depth; depth--)
            strcat(path, "x/");
        snprintf(text, sizeof text, "%s%zu", path, turn);
        tar_file(&tar, text, 0644, text);
    }
    /* A folder that was open, for a link that could not be made, gives way to a link to another one. */
    tar_folder(&tar, "a/gone", 0755);
    tar_hard_link(&tar, "a/gone/h", "missing");
    tar_symlink(&tar, "a/gone", "../ab");
    tar_file(&tar, "a/gone/through", 0644, "refused");
    tar_file(&tar, "ab/last", 0644, "ab/last");
    tar_end(&tar);
    extract(&ground, &tar, &outcome);
    assert_int_equal(outcome.error, 0);
    assert_int_equal(outcome.result.extracted, ARRAY_SIZE(names) + 80 + 1);
    assert_int_equal(outcome.result.hardlink, 1);
    assert_int_equal(outcome.result.suspicious, 1);
    assert_true(target_is(&ground, "test -L a/gone && test \"$(ls ab)\" = \"$(printf '4\\nlast')\" && "
                                   "test $(find . -type f | wc -l) = 90 && "
                                   "find . -type f -printf '%P\\n' | while read -r f; do "
                                   "test \"$(cat \"$f\")\" = \"$f\" || exit 1; done"));
    tar_clear(&tar);
    ground_close(&ground);
}

static void test_limits(void **state)
{
    (void)state;
    struct ground ground;
    struct outcome outcome;
    ground_open(&ground);
    struct tar tar = {0};
    struct tar_extract_params params = {.read = {.max_size = 9}};
    tar_file(&tar, "a", 0644, "12345");
    tar_file(&tar, "b", 0644, "12345");
    tar_end(&tar);
    extract_with(&ground, &tar, params, STAGING_KEEP, &outcome);
    assert_int_equal(gpg_err_code(outcome.error), GPG_ERR_TOO_LARGE);
    params.read = (struct tar_read_params){.max_size = 10, .max_files = 1};
    extract_with(&ground, &tar, params, STAGING_KEEP, &outcome);
    assert_int_equal(gpg_err_code(outcome.error), GPG_ERR_TOO_LARGE);
    assert_true(target_is(&ground, "test -z \"$(ls -A)\""));
    params.read = (struct tar_read_params){.max_size = 10, .max_files = 2};
    extract_with(&ground, &tar, params, STAGING_KEEP, &outcome);
    assert_int_equal(outcome.error, 0);
    tar_clear(&tar);
    ground_close(&ground);
}

/* Cut at every 64th byte: an error and nothing in the target, or, behind the last member, everything. */
static void test_cut_anywhere(void **state)
{
    (void)state;
    struct ground ground;
    struct outcome outcome;
    ground_open(&ground);
    struct tar tar = {0};
    tar_folder(&tar, "d", 0755);
    tar_pax(&tar, "path", "d/long");
    tar_file(&tar, "x", 0644, "content");
    size_t end = tar.n;
    tar_end(&tar);
    for (size_t n = 0; n < end; n += 64) {
        struct tar cut = {.bytes = tar.bytes, .n = n};
        extract(&ground, &cut, &outcome);
        if (n == 512) {
            assert_int_equal(outcome.error, 0);
            assert_int_equal(outcome.heard.kinds[NOTICE_FLAW], 1);
            run_in(&ground, "rmdir target/d");
            continue;
        }
        assert_int_not_equal(outcome.error, 0);
        if (n > 512)
            assert_int_equal(gpg_err_code(outcome.error), GPG_ERR_TRUNCATED);
        assert_true(target_is(&ground, "test -z \"$(ls -A)\""));
    }
    tar_clear(&tar);
    ground_close(&ground);
}

/* Holes come out as zeros and count; a limit holds for them too. */
static void test_to_sink(void **state)
{
    (void)state;
    static const char *const formats[] = {"gnu", "posix --sparse-version=0.0", "posix --sparse-version=0.1",
                                          "posix --sparse-version=1.0"};
    for (size_t i = 0; i < ARRAY_SIZE(formats); i++) {
        struct ground ground;
        char command[256];
        ground_open(&ground);
        snprintf(command, sizeof command,
                 "truncate -s 70000 s && printf data | dd of=s bs=1 seek=40000 conv=notrunc status=none && echo end >e "
                 "&& tar -S "
                 "--format=%s -cf a.tar s e",
                 formats[i]);
        run_in(&ground, command);
        char path[128];
        static uint8_t bytes[200000];
        snprintf(path, sizeof path, "%s/a.tar", ground.path);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        struct tar tar = {.bytes = bytes, .n = (size_t)read(fd, bytes, sizeof bytes)};
        close(fd);
        for (uint64_t limit = 70003; limit <= 70004; limit++) {
            const struct tar_read_params params = {.max_size = limit};
            struct tar_extract_result result;
            struct source *source = memory_source_new(tar.bytes, tar.n, 1000);
            struct sink *sink = memory_sink_new(100000);
            gpg_error_t error = tar_extract_to_sink(&params, source, sink, &result);
            assert_int_equal(gpg_err_code(error), limit < 70004 ? GPG_ERR_TOO_LARGE : 0);
            if (!error) {
                size_t n;
                const uint8_t *got = memory_sink_bytes(sink, &n);
                assert_int_equal(n, 70004);
                assert_int_equal(result.bytes, 70004);
                assert_memory_equal(got + 40000, "data", 5);
                assert_memory_equal(got + 70000, "end\n", 4);
            }
            sink_free(sink);
            source_free(source);
        }
        struct outcome outcome;
        extract(&ground, &tar, &outcome);
        assert_int_equal(outcome.error, 0);
        assert_true(target_is(&ground, "cmp s ../s && test \"$(stat -c %b s)\" -lt 70"));
        ground_close(&ground);
    }
}

static int tests(void)
{
    const struct CMUnitTest all[] = {
        cmocka_unit_test(test_bad_names_are_refused_one_by_one),
        cmocka_unit_test(test_absolute_names_land_below),
        cmocka_unit_test(test_links_out_and_through),
        cmocka_unit_test(test_duplicates_and_wrong_kinds),
        cmocka_unit_test(test_deferred_modes_do_not_follow),
        cmocka_unit_test(test_hard_links_to_outside),
        cmocka_unit_test(test_existing_links_are_not_followed),
        cmocka_unit_test(test_modes_and_times),
        cmocka_unit_test(test_devices_need_root),
        cmocka_unit_test(test_xattrs_and_acls),
        cmocka_unit_test(test_deep_and_long),
        cmocka_unit_test(test_up_and_down),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_cut_anywhere),
        cmocka_unit_test(test_to_sink),
    };
    return cmocka_run_group_tests(all, NULL, NULL);
}

int main(void)
{
    return run_as_both(tests);
}
