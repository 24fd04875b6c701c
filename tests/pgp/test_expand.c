/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "faulty.h"

#include "pgp/expand.h"

#define BUFFER 10
#define DIRECT 6

/* A format to try it with: "c3" is c three times, "." the end, anything else is damaged. */
struct repeats {
    struct expand_source expand;
    char octet; /* that is being repeated */
    unsigned times;
    uint8_t buffer[BUFFER];
    unsigned *freed;
};

static gpg_error_t repeats_step(struct expand_source *expand, struct expand_step *step)
{
    struct repeats *repeats = CONTAINER(expand, struct repeats, expand);
    step->used = step->made = 0;
    step->done = false;
    for (;;) {
        while (repeats->times && step->made < step->out_n) {
            step->out[step->made++] = (uint8_t)repeats->octet;
            repeats->times--;
        }
        step->full = step->made == step->out_n;
        if (step->full || step->used == step->in_n)
            return 0;
        const uint8_t next = step->in[step->used++];
        if (next == '.') {
            step->done = true;
            return 0;
        }
        if (next >= '0' && next <= '9' && repeats->octet)
            repeats->times = next - (unsigned)'0';
        else if (next >= 'a' && next <= 'z')
            repeats->octet = (char)next;
        else
            return expand_damaged(expand, "no letter");
    }
}

static void repeats_free(struct expand_source *expand)
{
    struct repeats *repeats = CONTAINER(expand, struct repeats, expand);
    ++*repeats->freed;
    free(repeats);
}

static const struct expand_ops repeats_ops = {.step = repeats_step, .free = repeats_free};

static struct source *repeats_new(struct failure *failure, struct source *body, bool padded, unsigned *freed)
{
    struct repeats *repeats = calloc(1, sizeof *repeats);
    assert_non_null(repeats);
    expand_source_init(&repeats->expand, &repeats_ops, failure, body);
    repeats->expand.buffer = repeats->buffer;
    repeats->expand.size = BUFFER;
    repeats->expand.direct_min = DIRECT;
    repeats->expand.padded = padded;
    repeats->freed = freed;
    return &repeats->expand.source;
}

static gpg_error_t expand_text(const char *text, size_t step, bool padded, struct gathered *ret)
{
    unsigned freed = 0;
    struct failure failure;
    failure_init(&failure);
    struct source *body = faulty_source_new((const uint8_t *)text, strlen(text), step, SIZE_MAX);
    gpg_error_t error = pull(repeats_new(&failure, body, padded, &freed), ret);
    assert_int_equal(freed, 1);
    source_free(body);
    if (error) {
        char sentence[FAILURE_SENTENCE_MAX];
        (void)failure_get(&failure, sentence);
        assert_non_null(strstr(sentence, "the compressed data "));
    }
    failure_destroy(&failure);
    return error;
}

static void expect(const char *text, bool padded, gpg_err_code_t code, const char *content)
{
    for (size_t step = 1; step < 12; step++) {
        struct gathered got;
        assert_int_equal(gpg_err_code(expand_text(text, step, padded, &got)), code);
        if (!code) {
            assert_int_equal(got.n, strlen(content));
            if (got.n)
                assert_memory_equal(got.bytes, content, got.n);
        } else {
            assert_true(got.n <= strlen(content));
            assert_true(!got.n || !memcmp(got.bytes, content, got.n));
        }
        gathered_clear(&got);
    }
}

static void pulled(void **state)
{
    (void)state;
    expect(".", false, 0, "");
    expect("a1.", false, 0, "a");
    expect("a0b0c0.", false, 0, "");
    expect("a3b2.", false, 0, "aaabb");
    expect("a9a1.", false, 0, "aaaaaaaaaa"); /* the buffer, filled exactly */
    expect("a9b9c9d9.", false, 0, "aaaaaaaaabbbbbbbbbcccccccccddddddddd");
    expect("a3.b", false, GPG_ERR_COMPR_FAILED, "aaa");
    expect("a3.b", true, 0, "aaa");
    expect("a3", false, GPG_ERR_TRUNCATED, "aaa");
    expect("a9a1", true, GPG_ERR_TRUNCATED, "aaaaaaaaaa");
    expect("", false, GPG_ERR_TRUNCATED, "");
    expect("a3?", false, GPG_ERR_COMPR_FAILED, "aaa");
}

/* Reads of every size, with peeks between, give the same; large ones go past the buffer. */
static void read_in_all_sizes(void **state)
{
    static const char text[] = "a9b9c1d7e9f3.", content[] = "aaaaaaaaabbbbbbbbbcdddddddeeeeeeeeefff";
    (void)state;
    for (size_t size = 1; size < sizeof content + 3; size++)
        for (unsigned peeks = 0; peeks < 3; peeks++) {
            unsigned freed = 0;
            struct source *body = faulty_source_new((const uint8_t *)text, strlen(text), 4, SIZE_MAX);
            struct source *source = repeats_new(NULL, body, false, &freed);
            uint8_t back[sizeof content + 3];
            size_t at = 0, got = 1, n;
            for (unsigned turn = 0; got; turn++) {
                const void *lent;
                const size_t most = size < sizeof back - at ? size : sizeof back - at;
                if (peeks && turn % peeks == 0)
                    assert_int_equal(source_peek(source, &lent, &n), 0);
                assert_int_equal(source_read(source, back + at, most, &got), 0);
                at += got;
            }
            assert_int_equal(at, sizeof content - 1);
            assert_memory_equal(back, content, at);
            assert_int_equal(source_finish(source), 0);
            source_free(source);
            source_free(body);
            assert_int_equal(freed, 1);
        }
}

static void body_fails(void **state)
{
    static const char text[] = "a9b9c1d7.";
    (void)state;
    for (size_t at = 0; at < sizeof text - 1; at++) {
        unsigned freed = 0;
        struct gathered got;
        struct source *body = faulty_source_new((const uint8_t *)text, sizeof text - 1, 2, at);
        assert_int_equal(gpg_err_code(pull(repeats_new(NULL, body, false, &freed), &got)), FAULT);
        gathered_clear(&got);
        source_free(body);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pulled),
        cmocka_unit_test(read_in_all_sizes),
        cmocka_unit_test(body_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
