/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "archive/staging.h"
#include "tar_maker.h"

#include <sys/file.h>

/* A staging folder in the target, with what COMMAND makes in it. */
static struct staging *stage(const struct ground *ground, const char *command)
{
    struct staging *staging;
    char line[1024];
    assert_int_equal(staging_new(ground->target, "target", NULL, &staging), 0);
    assert_true(staging_is_name(staging_name(staging)));
    snprintf(line, sizeof line, "cd target/%s/tree && %s", staging_name(staging), command);
    run_in(ground, line);
    return staging;
}

static gpg_error_t release(struct staging *staging, enum staging_policy policy, struct heard *heard,
                           struct staging_release_result *ret)
{
    const struct notices notices = {.report = hear, .context = heard};
    const struct staging_release_params params = {.policy = policy, .notices = &notices};
    memset(heard, 0, sizeof *heard);
    return staging_release(staging, &params, ret);
}

static const char contents[] =
    "mkdir -p d/e new && echo new >d/f && echo new >d/e/g && echo new >d/only && echo x >new/x && "
    "ln -s ../outside link && echo top >top";
static const char existing[] = "mkdir -p target/d/e && echo old >target/d/f && echo old >target/d/e/g && echo mine "
                               ">target/d/mine && chmod 750 target/d && ln -s ../outside/file target/top";

static void test_new_names(void **state)
{
    (void)state;
    struct ground ground;
    struct heard heard;
    struct staging_release_result result;
    ground_open(&ground);
    struct staging *staging = stage(&ground, contents);
    assert_int_equal(release(staging, STAGING_KEEP, &heard, &result), 0);
    staging_free(staging);
    assert_int_equal(result.moved, 4);
    assert_int_equal(result.conflicts, 0);
    assert_true(target_is(&ground, "test \"$(ls -A | tr '\\n' ' ')\" = 'd link new top ' && test -f d/e/g"));
    ground_close(&ground);
}

static void test_policies(void **state)
{
    (void)state;
    struct ground ground;
    struct heard heard;
    struct staging_release_result result;
    ground_open(&ground);
    run_in(&ground, existing);
    char *before = snapshot(ground.path);

    struct staging *staging = stage(&ground, contents);
    assert_int_equal(gpg_err_code(release(staging, STAGING_KEEP, &heard, &result)), GPG_ERR_EEXIST);
    staging_free(staging);
    assert_int_equal(heard.kinds[NOTICE_EXISTS], 3);
    char *after = snapshot(ground.path);
    /* The time of the target itself has changed, for the staging folder stood in it. */
    assert_int_equal(strlen(before), strlen(after));
    free(before);
    free(after);
    assert_true(
        target_is(&ground, "test \"$(cat d/f d/e/g | tr '\\n' ' ')\" = 'old old ' && test -L top && ! test -e new"));

    staging = stage(&ground, contents);
    assert_int_equal(release(staging, STAGING_SKIP_OLD, &heard, &result), 0);
    staging_free(staging);
    assert_int_equal(heard.kinds[NOTICE_KEPT_OLD], 3);
    assert_int_equal(result.errors, 0);
    assert_int_equal(result.moved, 3);
    assert_true(target_is(&ground, "test \"$(cat d/f d/only | tr '\\n' ' ')\" = 'old new ' && test -e new/x"));

    staging = stage(&ground, contents);
    assert_int_equal(release(staging, STAGING_KEEP_OLD, &heard, &result), 0);
    staging_free(staging);
    assert_int_equal(heard.kinds[NOTICE_EXISTS], 6);
    assert_int_equal(result.errors, 6);

    staging = stage(&ground, contents);
    assert_int_equal(release(staging, STAGING_REPLACE, &heard, &result), 0);
    staging_free(staging);
    assert_int_equal(result.replaced, 6);
    assert_true(target_is(&ground,
                          "test \"$(cat d/f d/e/g d/mine top | tr '\\n' ' ')\" = 'new new mine top ' && ! test -L "
                          "top && test \"$(stat -c %a d)\" = 750 && ! ls -d .gpgtar-* 2>/dev/null"));
    ground_close(&ground);
}

static void test_kinds(void **state)
{
    (void)state;
    struct ground ground;
    struct heard heard;
    struct staging_release_result result;
    ground_open(&ground);
    run_in(&ground,
           "mkdir target/full target/empty && echo x >target/full/x && echo f >target/file && ln -s ../outside "
           "target/link");
    struct staging *staging = stage(
        &ground, "echo new >full && echo new >empty && mkdir file link && echo in >file/in && echo in >link/file");
    assert_int_equal(release(staging, STAGING_REPLACE, &heard, &result), 0);
    staging_free(staging);
    assert_int_equal(heard.kinds[NOTICE_WRONG_KIND], 1);
    assert_int_equal(result.errors, 1);
    assert_true(target_is(&ground,
                          "test -f full/x && test -f empty && test -f file/in && ! test -L link && test -f link/file"));
    ground_close(&ground);
}

static enum staging_answer answer(void *context, const char *name)
{
    ++*(unsigned *)context;
    return !strcmp(name, "d/f") ? STAGING_ANSWER_REPLACE : STAGING_ANSWER_KEEP;
}

static enum staging_answer quit(void *context, const char *name)
{
    (void)context;
    (void)name;
    return STAGING_ANSWER_QUIT;
}

static void test_asking(void **state)
{
    (void)state;
    struct ground ground;
    struct staging_release_result result;
    unsigned asked = 0;
    ground_open(&ground);
    run_in(&ground, existing);
    struct staging_release_params params = {.policy = STAGING_KEEP, .ask = quit, .ask_context = &asked};
    struct staging *staging = stage(&ground, contents);
    assert_int_equal(gpg_err_code(staging_release(staging, &params, &result)), GPG_ERR_CANCELED);
    assert_true(target_is(&ground, "! test -e new"));
    params.ask = answer;
    assert_int_equal(staging_release(staging, &params, &result), 0);
    staging_free(staging);
    assert_int_equal(asked, 3);
    assert_int_equal(result.replaced, 1);
    assert_int_equal(result.conflicts, 2);
    assert_true(
        target_is(&ground, "test \"$(cat d/f d/e/g | tr '\\n' ' ')\" = 'new old ' && test -L top && test -e new/x"));
    ground_close(&ground);
}

/* A folder of the target that cannot be written to: what was moved before goes back. Root can write anywhere. */
static void test_roll_back(void **state)
{
    (void)state;
    if (!geteuid())
        return;
    struct ground ground;
    struct heard heard;
    struct staging_release_result result;
    ground_open(&ground);
    run_in(&ground, "mkdir target/b target/z && echo old >target/f && echo old >target/z/old && chmod 555 target/b");
    char *before = snapshot(ground.path);
    struct staging *staging =
        stage(&ground, "mkdir a b z && echo a >a/a && echo new >b/new && echo new >z/new && echo new >f");
    assert_int_equal(gpg_err_code(release(staging, STAGING_REPLACE, &heard, &result)), GPG_ERR_EACCES);
    staging_free(staging);
    assert_int_equal(heard.kinds[NOTICE_RESTORE], 0);
    assert_int_equal(result.moved, 0);
    char *after = snapshot(ground.path);
    assert_int_equal(strlen(before), strlen(after));
    assert_true(target_is(
        &ground, "test \"$(ls -AR . | tr '\\n' ' ')\" = '.: b f z  ./b:  ./z: old ' && test \"$(cat f)\" = old"));
    free(before);
    free(after);
    ground_close(&ground);
}

static void test_read_only_folder_moves(void **state)
{
    (void)state;
    struct ground ground;
    struct heard heard;
    struct staging_release_result result;
    ground_open(&ground);
    struct staging *staging = stage(&ground, "mkdir ro no && echo x >ro/x && chmod 555 ro && chmod 000 no");
    assert_int_equal(release(staging, STAGING_KEEP, &heard, &result), 0);
    staging_free(staging);
    assert_true(target_is(&ground, "test \"$(stat -c %a ro no | tr '\\n' ' ')\" = '555 0 '"));
    ground_close(&ground);
}

static void test_new_folder(void **state)
{
    (void)state;
    struct ground ground;
    ground_open(&ground);
    char *name;
    run_in(&ground, "mkdir target/x.tar_1_ && ln -s nowhere target/x.tar_2_");
    struct staging *staging = stage(&ground, "echo x >x");
    assert_int_equal(staging_release_as(staging, "x.tar", NULL, &name), 0);
    staging_free(staging);
    assert_string_equal(name, "x.tar_3_");
    free(name);
    assert_true(target_is(&ground, "test -f x.tar_3_/x && test \"$(stat -c %a x.tar_3_)\" = 700 && ! ls -d .gpgtar-* "
                                   "2>/dev/null && test -z \"$(ls -A x.tar_1_)\""));
    ground_close(&ground);
}

/* Closed folders, 1000 levels, links to outside: all goes, and nothing else. */
static void test_discard(void **state)
{
    (void)state;
    struct ground ground;
    ground_open(&ground);
    struct staging *staging = stage(
        &ground, "mkdir -p a/b c/d && echo x >a/b/x && chmod 000 a/b && chmod 000 a && chmod 555 c && ln -s "
                 "../../../outside link && ln -s / root && mkdir 0 1 && echo y >0/y && (i=0; while [ $i -lt 1000 ]; do "
                 "mkdir deep && cd -P deep || exit 1; i=$((i+1)); done; echo z >z)");
    assert_int_equal(staging_discard(staging, NULL), 0);
    staging_free(staging);
    assert_true(target_is(&ground, "test -z \"$(ls -A)\""));
    ground_close(&ground);
}

static void test_keeps_folder_and_mode(void **state)
{
    (void)state;
    struct ground ground;
    struct heard heard;
    struct staging_release_result result;
    ground_open(&ground);
    run_in(&ground, "mkdir target/full target/stuck && echo x >target/full/x && chmod 555 target/full target/stuck");
    struct staging *staging = stage(&ground, "echo new >full && echo new >stuck && echo new >other");
    /* Root may move what others may not. */
    const bool is_root = geteuid() == 0;
    assert_int_equal(release(staging, STAGING_REPLACE, &heard, &result), 0);
    staging_free(staging);
    assert_int_equal(heard.kinds[NOTICE_WRONG_KIND], is_root ? 1 : 2);
    assert_int_equal(result.moved, is_root ? 2 : 1);
    assert_true(target_is(&ground, "test \"$(stat -c %a full)\" = 555 && test -f full/x && test -f other"));
    ground_close(&ground);
}

static void count(void *context, const char *name)
{
    assert_true(staging_is_name(name));
    ++*(unsigned *)context;
}

static void test_leftovers(void **state)
{
    (void)state;
    struct ground ground;
    unsigned found = 0;
    uint64_t n;
    ground_open(&ground);
    run_in(&ground,
           "cd target && mkdir -m 700 .gpgtar-abcDE1 && mkdir .gpgtar-abcDE1/tree && echo x >.gpgtar-abcDE1/tree/x && "
           "mkdir -m 755 .gpgtar-abcDE2 && mkdir -m 700 .gpgtar-abc .gpgtar-abcDE_ && ln -s ../outside "
           ".gpgtar-abcDE3 && echo x >.gpgtar-abcDE4");
    struct staging *working = stage(&ground, "echo x >x");
    assert_int_equal(staging_leftovers(ground.target, false, count, &found, NULL, &n), 0);
    assert_int_equal(found, 1);
    assert_true(target_is(&ground, "test -f .gpgtar-abcDE1/tree/x"));
    assert_int_equal(staging_leftovers(ground.target, true, count, &found, NULL, &n), 0);
    assert_int_equal(n, 1);
    assert_true(target_is(&ground,
                          "! test -e .gpgtar-abcDE1 && test -d .gpgtar-abcDE2 && test -d .gpgtar-abc && test -L "
                          ".gpgtar-abcDE3 && test -f .gpgtar-abcDE4"));
    assert_int_equal(staging_fd(working) >= 0, 1);
    staging_free(working);
    ground_close(&ground);
}

static int tests(void)
{
    const struct CMUnitTest all[] = {
        cmocka_unit_test(test_new_names),  cmocka_unit_test(test_policies),
        cmocka_unit_test(test_kinds),      cmocka_unit_test(test_asking),
        cmocka_unit_test(test_roll_back),  cmocka_unit_test(test_read_only_folder_moves),
        cmocka_unit_test(test_new_folder), cmocka_unit_test(test_discard),
        cmocka_unit_test(test_leftovers),  cmocka_unit_test(test_keeps_folder_and_mode),
    };
    return cmocka_run_group_tests(all, NULL, NULL);
}

int main(void)
{
    return run_as_both(tests);
}
