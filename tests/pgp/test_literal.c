/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "faulty.h"

#include "pgp/framing.h"
#include "pgp/literal.h"

static void reads_fields(void **state)
{
    static const char body[] = "u\x05"
                               "a/b.c\x5A\x00\x01\x02rest";
    (void)state;
    for (size_t step = 0; step < 20; step++) {
        struct source *source = memory_source_new(body, sizeof body - 1, step);
        struct literal literal;
        struct gathered rest;
        assert_int_equal(literal_read(NULL, source, &literal), 0);
        assert_int_equal(literal.format, 'u');
        assert_int_equal(literal.name_n, 5);
        assert_string_equal(literal.name, "a/b.c");
        assert_int_equal(literal.date, 0x5A000102);
        assert_int_equal(pull(source, &rest), 0);
        assert_int_equal(rest.n, 4);
        assert_memory_equal(rest.bytes, "rest", 4);
        gathered_clear(&rest);
    }
}

static void longest_name(void **state)
{
    uint8_t body[2 + 255 + 4];
    struct literal literal;
    (void)state;
    memset(body, 'n', sizeof body);
    body[0] = 'b';
    body[1] = 255;
    struct source *source = memory_source_new(body, sizeof body, 0);
    assert_int_equal(literal_read(NULL, source, &literal), 0);
    assert_int_equal(strlen(literal.name), 255);
    source_free(source);
}

static void refuses(void **state)
{
    static const char body[] = "b\x03"
                               "abc\0\0\0\0";
    struct literal literal;
    (void)state;
    for (size_t n = 0; n < sizeof body - 1; n++) {
        struct source *source = memory_source_new(body, n, 1);
        assert_int_equal(gpg_err_code(literal_read(NULL, source, &literal)), GPG_ERR_INV_PACKET);
        source_free(source);
        source = faulty_source_new(body, sizeof body - 1, 2, n);
        assert_int_equal(gpg_err_code(literal_read(NULL, source, &literal)), FAULT);
        source_free(source);
    }
    struct source *source = memory_source_new("x\0\0\0\0\0", 6, 0);
    assert_int_equal(gpg_err_code(literal_read(NULL, source, &literal)), GPG_ERR_INV_PACKET);
    source_free(source);
    source = memory_source_new("\0\0\0\0\0\0", 6, 0);
    assert_int_equal(gpg_err_code(literal_read(NULL, source, &literal)), GPG_ERR_INV_PACKET);
    source_free(source);
}

static void reads_back_what_it_writes(void **state)
{
    static uint8_t content[70000];
    static const size_t lengths[] = {0, 1, 500, 505, 506, 507, 512, 2000, 65535, 65536, 70000};
    (void)state;
    fill_random(content, sizeof content, 1);
    for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
        for (size_t part = 0; part < 2; part++) {
            struct gathered out, back;
            struct sink *sink;
            struct packet packet;
            struct literal literal;
            bool end;
            assert_int_equal(literal_sink_new(512 * part, faulty_sink_new(&out, SIZE_MAX), false, &sink), 0);
            assert_int_equal(out.n, 0);
            assert_int_equal(push(sink, content, lengths[i], 1000), 0);
            assert_int_equal(out.finished, 1);
            struct source *raw = memory_source_new(out.bytes, out.n, 0), *body;
            assert_int_equal(packet_next(NULL, raw, &packet, &end), 0);
            assert_int_equal(packet.type, PACKET_LITERAL);
            assert_int_equal(packet_body_source(NULL, &packet, raw, &body), 0);
            assert_int_equal(literal_read(NULL, body, &literal), 0);
            assert_int_equal(literal.format, 'b');
            assert_int_equal(literal.name_n, 0);
            assert_int_equal(literal.date, 0);
            assert_int_equal(pull(body, &back), 0);
            assert_int_equal(back.n, lengths[i]);
            assert_memory_equal(back.bytes ? back.bytes : content, content, back.n);
            gathered_clear(&back);
            gathered_clear(&out);
            source_free(raw);
        }
    }
    struct gathered out;
    struct sink *sink;
    assert_int_equal(gpg_err_code(literal_sink_new(100, faulty_sink_new(&out, SIZE_MAX), false, &sink)),
                     GPG_ERR_INV_ARG);
    assert_int_equal(out.freed, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_fields),
        cmocka_unit_test(longest_name),
        cmocka_unit_test(refuses),
        cmocka_unit_test(reads_back_what_it_writes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
