/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "stream/prelude.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

struct maker {
    const char *text;
    unsigned wait; /* µs */
    gpg_error_t error;
    atomic_uint made;
    pthread_t thread;
};

static gpg_error_t make(void *context, struct sink *to)
{
    struct maker *maker = context;
    usleep(maker->wait);
    maker->thread = pthread_self();
    atomic_fetch_add(&maker->made, 1);
    return maker->error ? maker->error : sink_write(to, maker->text, strlen(maker->text));
}

/* Keeps what is written to it behind the memory that this test looks at. */
struct kept {
    struct sink sink;
    struct sink *memory;
    unsigned finished, freed;
};

static gpg_error_t kept_write(struct sink *sink, const void *bytes, size_t n)
{
    return sink_write(CONTAINER(sink, struct kept, sink)->memory, bytes, n);
}

static gpg_error_t kept_finish(struct sink *sink)
{
    CONTAINER(sink, struct kept, sink)->finished++;
    return 0;
}

static void kept_free(struct sink *sink)
{
    CONTAINER(sink, struct kept, sink)->freed++;
}

static const struct sink_ops kept_ops = {.write = kept_write, .finish = kept_finish, .free = kept_free};

static void kept_init(struct kept *kept, size_t limit)
{
    *kept = (struct kept){.memory = memory_sink_new(limit)};
    sink_init(&kept->sink, &kept_ops);
    assert_non_null(kept->memory);
}

static void expect_kept(struct kept *kept, const char *text)
{
    size_t n;
    const uint8_t *bytes = memory_sink_bytes(kept->memory, &n);
    assert_int_equal(n, strlen(text));
    assert_memory_equal(bytes, text, n);
    assert_int_equal(kept->freed, 1);
    sink_free(kept->memory);
}

/* NULL: no run; else with that many processors. */
static struct run *run_for(unsigned processors)
{
    struct run *run = processors ? run_new() : NULL;
    if (run)
        run_set_processors(run, processors);
    return run;
}

static void stands_before_the_rest(void **state)
{
    (void)state;
    for (unsigned processors = 0; processors < 4; processors++)
        for (unsigned wait = 0; wait < 3000; wait += 1000)
            for (unsigned writes = 0; writes < 3; writes++) {
                static const char *const all[] = {"first", "first,second", "first,second,third"};
                struct maker maker = {.text = "first", .wait = wait};
                struct run *run = run_for(processors);
                struct kept kept;
                struct sink *sink;
                kept_init(&kept, SIZE_MAX);
                assert_int_equal(prelude_sink_new(run, make, &maker, 5, &kept.sink, &sink), 0);
                if (writes > 0)
                    assert_int_equal(sink_write(sink, ",second", 7), 0);
                if (writes > 1)
                    assert_int_equal(sink_write(sink, ",third", 6), 0);
                assert_int_equal(sink_finish(sink), 0);
                assert_int_equal(atomic_load(&maker.made), 1);
                assert_int_equal(!pthread_equal(maker.thread, pthread_self()), processors > 1);
                assert_int_equal(kept.finished, 1);
                sink_free(sink);
                expect_kept(&kept, all[writes]);
                run_free(run);
            }
}

/* An error of the maker, or more than is allowed: at once without a thread, else with the first write or finish. */
static void making_fails(void **state)
{
    (void)state;
    for (unsigned processors = 0; processors < 3; processors++)
        for (unsigned long_text = 0; long_text < 2; long_text++)
            for (unsigned write = 0; write < 2; write++) {
                struct maker maker = {.text = "123456", .error = long_text ? 0 : gpg_error(GPG_ERR_CHECKSUM)};
                const gpg_err_code_t expected = long_text ? GPG_ERR_TOO_LARGE : GPG_ERR_CHECKSUM;
                struct run *run = run_for(processors);
                struct kept kept;
                struct sink *sink = NULL;
                kept_init(&kept, SIZE_MAX);
                gpg_error_t error = prelude_sink_new(run, make, &maker, 5, &kept.sink, &sink);
                assert_int_equal(!error, processors > 1);
                if (!error) {
                    error = write ? sink_write(sink, "x", 1) : sink_finish(sink);
                    assert_int_equal(gpg_err_code(run_cancelled(run)), expected);
                    sink_free(sink);
                }
                assert_int_equal(gpg_err_code(error), expected);
                assert_int_equal(kept.finished, 0);
                expect_kept(&kept, "");
                run_free(run);
            }
}

static void below_fails(void **state)
{
    (void)state;
    for (unsigned processors = 0; processors < 3; processors++)
        for (size_t room = 0; room < 8; room++) {
            struct maker maker = {.text = "first"};
            struct run *run = run_for(processors);
            struct kept kept;
            struct sink *sink;
            kept_init(&kept, room);
            assert_int_equal(prelude_sink_new(run, make, &maker, 5, &kept.sink, &sink), 0);
            assert_int_equal(gpg_err_code(sink_write(sink, "abc", 3)), GPG_ERR_TOO_LARGE);
            assert_int_equal(gpg_err_code(sink_finish(sink)), GPG_ERR_TOO_LARGE);
            sink_free(sink);
            expect_kept(&kept, room < 5 ? "" : "first");
            run_free(run);
        }
}

/* Freed before anything was written: nothing is written, and the maker has ended. */
static void given_up(void **state)
{
    (void)state;
    for (unsigned processors = 0; processors < 3; processors++)
        for (unsigned wait = 0; wait < 3000; wait += 1000) {
            struct maker maker = {.text = "first", .wait = wait};
            struct run *run = run_for(processors);
            struct kept kept;
            struct sink *sink;
            kept_init(&kept, SIZE_MAX);
            assert_int_equal(prelude_sink_new(run, make, &maker, 5, &kept.sink, &sink), 0);
            sink_free(sink);
            assert_int_equal(atomic_load(&maker.made), 1);
            expect_kept(&kept, "");
            run_free(run);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stands_before_the_rest),
        cmocka_unit_test(making_fails),
        cmocka_unit_test(below_fails),
        cmocka_unit_test(given_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
