/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "faulty.h"

#include "pgp/framing.h"

static gpg_error_t next_of(const void *bytes, size_t n, struct packet *packet, bool *end)
{
    struct source *source = memory_source_new(bytes, n, 1);
    gpg_error_t error = packet_next(NULL, source, packet, end);
    source_free(source);
    return error;
}

struct header_case {
    const char *bytes;
    size_t n;
    unsigned type;
    enum packet_length form;
    uint64_t length;
};

#define BYTES(literal) (literal), sizeof(literal) - 1

static const struct header_case good_headers[] = {
    /* RFC 9580 4.2.3 */
    {BYTES("\xCB\x64"), 11, LENGTH_DEFINITE, 100},
    {BYTES("\xCB\xC5\xFB"), 11, LENGTH_DEFINITE, 1723},
    {BYTES("\xCB\xFF\x00\x01\x86\xA0"), 11, LENGTH_DEFINITE, 100000},
    {BYTES("\xCB\xEF"), 11, LENGTH_PARTIAL, 32768},
    {BYTES("\xD2\xE9"), 18, LENGTH_PARTIAL, 512},
    {BYTES("\xC8\xFE"), 8, LENGTH_PARTIAL, 1 << 30},
    {BYTES("\xD4\xE9"), 20, LENGTH_PARTIAL, 512},
    {BYTES("\xC9\xE9"), 9, LENGTH_PARTIAL, 512},
    {BYTES("\xC1\x00"), 1, LENGTH_DEFINITE, 0},
    {BYTES("\xC1\xBF"), 1, LENGTH_DEFINITE, 191},
    {BYTES("\xC1\xC0\x00"), 1, LENGTH_DEFINITE, 192},
    {BYTES("\xC1\xDF\xFF"), 1, LENGTH_DEFINITE, 8383},
    {BYTES("\xFE\xFF\xFF\xFF\xFF\xFF"), 62, LENGTH_DEFINITE, UINT32_MAX},
    {BYTES("\x84\x5E"), 1, LENGTH_DEFINITE, 94},
    {BYTES("\x85\x01\x0C"), 1, LENGTH_DEFINITE, 268},
    {BYTES("\x86\x00\x01\x00\x00"), 1, LENGTH_DEFINITE, 65536},
    {BYTES("\xA3"), 8, LENGTH_INDETERMINATE, 0},
    {BYTES("\xA7"), 9, LENGTH_INDETERMINATE, 0},
    {BYTES("\xAF"), 11, LENGTH_INDETERMINATE, 0},
};

static void reads_headers(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(good_headers); i++) {
        const struct header_case *good = &good_headers[i];
        struct packet packet;
        bool end = true;
        assert_int_equal(next_of(good->bytes, good->n, &packet, &end), 0);
        assert_false(end);
        assert_int_equal(packet.type, good->type);
        assert_int_equal(packet.form, good->form);
        assert_true(packet.length == good->length);
        assert_int_equal(packet.old_format, !(good->bytes[0] & 0x40));
        assert_int_equal(packet.header_n, good->n);
        assert_memory_equal(packet.header, good->bytes, good->n);
        for (size_t cut = 1; cut < good->n; cut++)
            assert_int_equal(gpg_err_code(next_of(good->bytes, cut, &packet, &end)), GPG_ERR_TRUNCATED);
    }
    struct packet packet;
    bool end = false;
    assert_int_equal(next_of("", 0, &packet, &end), 0);
    assert_true(end);
}

static void refuses_headers(void **state)
{
    static const struct {
        const char *bytes;
        size_t n;
    } bad[] = {
        {BYTES("\x00")},     {BYTES("-----")},    {BYTES("\x7F\x01")}, {BYTES("\xC0\x01")},
        {BYTES("\x80\x01")}, {BYTES("\x87")},     {BYTES("\xC1\xE9")}, {BYTES("\xC2\xE9")},
        {BYTES("\xCB\xE8")}, {BYTES("\xD2\xE0")}, {BYTES("\xD1\xE9")}, {BYTES("\x8B")},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct packet packet;
        bool end;
        assert_int_equal(gpg_err_code(next_of(bad[i].bytes, bad[i].n, &packet, &end)), GPG_ERR_INV_PACKET);
    }
}

static void reads_back_what_it_writes(void **state)
{
    static const uint32_t lengths[] = {0, 1, 191, 192, 193, 8383, 8384, 8385, 65535, 65536, UINT32_MAX};
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
        uint8_t header[6];
        size_t n = packet_header_put(header, PACKET_SIGNATURE, lengths[i]);
        struct packet packet;
        bool end;
        assert_int_equal(next_of(header, n, &packet, &end), 0);
        assert_int_equal(packet.type, PACKET_SIGNATURE);
        assert_int_equal(packet.form, LENGTH_DEFINITE);
        assert_true(packet.length == lengths[i]);
    }
    struct gathered gathered;
    struct sink *sink = faulty_sink_new(&gathered, SIZE_MAX);
    assert_int_equal(gpg_err_code(packet_header_write(sink, 2, (uint64_t)UINT32_MAX + 1)), GPG_ERR_TOO_LARGE);
    assert_int_equal(packet_write(sink, PACKET_MARKER, "PGP", 3), 0);
    assert_int_equal(gathered.n, 5);
    assert_memory_equal(gathered.bytes, "\xCA\x03PGP", 5);
    sink_free(sink);
    gathered_clear(&gathered);
}

/* What stands behind a body in the tests. */
#define TAIL "\xCA\x03PGP"

/* Takes the body out of BYTES, whose tail must be left over. */
static void read_body(const uint8_t *bytes, size_t n, size_t step, const uint8_t *expected, size_t expected_n)
{
    struct source *raw = faulty_source_new(bytes, n, step, SIZE_MAX);
    struct source *body;
    struct packet packet;
    struct gathered got, tail;
    bool end;
    assert_int_equal(packet_next(NULL, raw, &packet, &end), 0);
    assert_int_equal(packet_body_source(NULL, &packet, raw, &body), 0);
    assert_int_equal(pull(body, &got), 0);
    assert_int_equal(got.n, expected_n);
    assert_memory_equal(got.bytes ? got.bytes : (const uint8_t *)"", expected, expected_n);
    assert_int_equal(pull(raw, &tail), 0);
    assert_int_equal(tail.n, sizeof TAIL - 1);
    assert_memory_equal(tail.bytes, TAIL, sizeof TAIL - 1);
    gathered_clear(&got);
    gathered_clear(&tail);
}

static void body_lengths_and_steps(void **state)
{
    static const size_t lengths[] = {0, 1, 2, 191, 192, 511, 512, 513, 1023, 1024, 1025, 2000, 5000};
    static const size_t steps[] = {0, 1, 3, 511, 512, 513, 1024, 1500};
    uint8_t content[5000];
    (void)state;
    fill_random(content, sizeof content, 1);
    for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
        struct gathered first = {0};
        for (size_t j = 0; j < ARRAY_SIZE(steps); j++) {
            struct gathered out;
            struct sink *below = faulty_sink_new(&out, SIZE_MAX), *sink;
            assert_int_equal(packet_body_sink(PACKET_LITERAL, 512, below, true, &sink), 0);
            assert_int_equal(push(sink, content, lengths[i], steps[j]), 0);
            assert_int_equal(out.finished, 0);
            assert_int_equal(out.freed, 0);
            assert_int_equal(sink_write(below, TAIL, sizeof TAIL - 1), 0);
            sink_free(below);
            if (lengths[i] < 512)
                assert_int_equal(out.bytes[1] >= 224 && out.bytes[1] < 255, 0);
            if (j) {
                assert_int_equal(out.n, first.n);
                assert_memory_equal(out.bytes, first.bytes, out.n);
            }
            for (size_t k = 0; k < ARRAY_SIZE(steps); k++)
                read_body(out.bytes, out.n, steps[k], content, lengths[i]);
            if (!j)
                first = out;
            else
                gathered_clear(&out);
        }
        gathered_clear(&first);
    }
}

static void takes_below_unless_it_borrows(void **state)
{
    struct gathered out;
    struct sink *sink;
    (void)state;
    assert_int_equal(packet_body_sink(PACKET_SEIPD, 0, faulty_sink_new(&out, SIZE_MAX), false, &sink), 0);
    assert_int_equal(push(sink, "abc", 3, 0), 0);
    assert_int_equal(out.finished, 1);
    assert_int_equal(out.freed, 1);
    assert_memory_equal(out.bytes,
                        "\xD2\x03"
                        "abc",
                        5);
    gathered_clear(&out);
    static const size_t bad[] = {1, 256, 511, 513, 1000, ((size_t)1 << 30) + 1, (size_t)1 << 31};
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        assert_int_equal(gpg_err_code(packet_body_sink(11, bad[i], faulty_sink_new(&out, SIZE_MAX), false, &sink)),
                         GPG_ERR_INV_ARG);
        assert_int_equal(out.freed, 1);
    }
}

static void big_writes_pass_through(void **state)
{
    static uint8_t content[300000];
    struct gathered out;
    struct sink *sink;
    (void)state;
    assert_int_equal(packet_body_sink(PACKET_LITERAL, 0, faulty_sink_new(&out, SIZE_MAX), false, &sink), 0);
    assert_int_equal(push(sink, content, sizeof content, 0), 0);
    assert_true(out.writes <= 2 * (sizeof content / 65536) + 1);
    gathered_clear(&out);
}

static void other_forms(void **state)
{
    uint8_t bytes[700];
    struct gathered got;
    struct source *raw, *body;
    struct packet packet;
    bool end;
    (void)state;
    /* indeterminate: to the end of the input */
    fill_random(bytes, sizeof bytes, 2);
    bytes[0] = 0xAF;
    for (size_t step = 1; step < 800; step += 37) {
        raw = memory_source_new(bytes, sizeof bytes, step);
        assert_int_equal(packet_next(NULL, raw, &packet, &end), 0);
        assert_int_equal(packet_body_source(NULL, &packet, raw, &body), 0);
        assert_int_equal(pull(body, &got), 0);
        assert_int_equal(got.n, sizeof bytes - 1);
        assert_memory_equal(got.bytes, bytes + 1, got.n);
        gathered_clear(&got);
        source_free(raw);
    }
}

/* Later parts may be as small as one octet, the last one may be empty. */
static void small_parts(void **state)
{
    uint8_t bytes[600], expected[600];
    (void)state;
    memset(bytes, 'x', sizeof bytes);
    memset(expected, 'x', sizeof expected);
    memcpy(bytes, "\xCB\xE9", 2);
    memcpy(bytes + 2 + 512, "\xE0y\xE1zz\xFF\0\0\0\1w" TAIL, 11 + sizeof TAIL - 1);
    memcpy(expected + 512, "yzzw", 4);
    for (size_t step = 1; step < 20; step++)
        read_body(bytes, 2 + 512 + 11 + sizeof TAIL - 1, step, expected, 516);
    memcpy(bytes + 2 + 512, "\xE0y\0" TAIL, 3 + sizeof TAIL - 1);
    for (size_t step = 1; step < 20; step++)
        read_body(bytes, 2 + 512 + 3 + sizeof TAIL - 1, step, expected, 513);
}

/* A definite and a partial body, cut or failing at every byte. */
static void ends_early(void **state)
{
    uint8_t content[1300];
    (void)state;
    fill_random(content, sizeof content, 3);
    for (unsigned partial = 0; partial < 2; partial++) {
        struct gathered out;
        struct sink *sink;
        if (partial)
            assert_int_equal(packet_body_sink(PACKET_LITERAL, 512, faulty_sink_new(&out, SIZE_MAX), false, &sink), 0);
        else
            sink = faulty_sink_new(&out, SIZE_MAX);
        if (!partial)
            assert_int_equal(packet_header_write(sink, PACKET_LITERAL, sizeof content), 0);
        assert_int_equal(push(sink, content, sizeof content, 0), 0);
        for (size_t at = 3; at < out.n; at++) {
            for (unsigned fails = 0; fails < 2; fails++) {
                struct source *raw = faulty_source_new(out.bytes, fails ? out.n : at, 100, fails ? at : SIZE_MAX);
                struct source *body;
                struct packet packet;
                struct gathered got;
                bool end;
                assert_int_equal(packet_next(NULL, raw, &packet, &end), 0);
                assert_int_equal(packet_body_source(NULL, &packet, raw, &body), 0);
                assert_int_equal(gpg_err_code(pull(body, &got)), fails ? FAULT : GPG_ERR_TRUNCATED);
                assert_true(got.n < sizeof content);
                assert_memory_equal(got.bytes ? got.bytes : content, content, got.n);
                gathered_clear(&got);
                source_free(raw);
            }
        }
        gathered_clear(&out);
    }
}

static void read_and_skip(void **state)
{
    uint8_t content[3000], some[700];
    struct gathered out;
    struct sink *sink;
    (void)state;
    fill_random(content, sizeof content, 4);
    assert_int_equal(packet_body_sink(PACKET_SEIPD, 1024, faulty_sink_new(&out, SIZE_MAX), false, &sink), 0);
    assert_int_equal(push(sink, content, sizeof content, 0), 0);
    for (size_t skip = 0; skip <= sizeof content; skip += 50) {
        struct source *raw = faulty_source_new(out.bytes, out.n, 77, SIZE_MAX), *body;
        struct packet packet;
        bool end;
        size_t got;
        assert_int_equal(packet_next(NULL, raw, &packet, &end), 0);
        assert_int_equal(packet_body_source(NULL, &packet, raw, &body), 0);
        assert_int_equal(source_skip(body, skip), 0);
        assert_int_equal(source_read(body, some, sizeof some, &got), 0);
        size_t expected = sizeof content - skip < sizeof some ? sizeof content - skip : sizeof some;
        assert_int_equal(got, expected);
        assert_memory_equal(some, content + skip, got);
        assert_int_equal(gpg_err_code(source_skip(body, sizeof content)), GPG_ERR_TRUNCATED);
        source_free(body);
        source_free(raw);
    }
    gathered_clear(&out);
}

/* What comes before a failure is read, at whatever octet the source fails. */
static void reads_up_to_a_failure(void **state)
{
    uint8_t content[700], some[1000];
    struct gathered out;
    struct sink *sink;
    (void)state;
    fill_random(content, sizeof content, 5);
    assert_int_equal(packet_body_sink(PACKET_SEIPD, 512, faulty_sink_new(&out, SIZE_MAX), false, &sink), 0);
    assert_int_equal(push(sink, content, sizeof content, 0), 0);
    for (size_t fault = 3; fault < out.n; fault++) {
        struct source *raw = faulty_source_new(out.bytes, out.n, 77, fault), *body;
        struct packet packet;
        bool end;
        size_t got, passed = fault - 2; /* less the length of the first part, and of the second one */
        passed -= passed > 512;
        assert_int_equal(packet_next(NULL, raw, &packet, &end), 0);
        assert_int_equal(packet_body_source(NULL, &packet, raw, &body), 0);
        assert_int_equal(gpg_err_code(source_read(body, some, sizeof some, &got)), FAULT);
        assert_int_equal(got, passed);
        assert_memory_equal(some, content, got);
        source_free(body);
        source_free(raw);
    }
    gathered_clear(&out);
}

static void whole_body(void **state)
{
    struct packet packet;
    uint8_t *bytes = NULL;
    size_t n;
    bool end;
    (void)state;
    for (size_t limit = 0; limit < 5; limit++) {
        struct source *raw = memory_source_new("\xC2\x03xyz", 5, 2);
        assert_int_equal(packet_next(NULL, raw, &packet, &end), 0);
        gpg_error_t error = packet_body_read(NULL, &packet, raw, limit, &bytes, &n);
        assert_int_equal(gpg_err_code(error), limit < 3 ? GPG_ERR_TOO_LARGE : 0);
        if (!error) {
            assert_int_equal(n, 3);
            assert_memory_equal(bytes, "xyz", 3);
            free(bytes);
        }
        source_free(raw);
    }
    struct source *raw = memory_source_new("\xC2\x03xy", 4, 0);
    assert_int_equal(packet_next(NULL, raw, &packet, &end), 0);
    assert_int_equal(gpg_err_code(packet_body_read(NULL, &packet, raw, 10, &bytes, &n)), GPG_ERR_TRUNCATED);
    source_free(raw);
    raw = memory_source_new("\xCB\xE9", 2, 0);
    assert_int_equal(packet_next(NULL, raw, &packet, &end), 0);
    assert_int_equal(gpg_err_code(packet_body_read(NULL, &packet, raw, 10000, &bytes, &n)), GPG_ERR_INV_PACKET);
    source_free(raw);
}

/* The sink below refuses at every byte: the error comes out, and nothing is finished. */
static void sink_fails(void **state)
{
    uint8_t content[1300];
    (void)state;
    fill_random(content, sizeof content, 5);
    for (size_t at = 0; at < sizeof content + 5; at++) {
        struct gathered out;
        struct sink *sink;
        assert_int_equal(packet_body_sink(PACKET_LITERAL, 512, faulty_sink_new(&out, at), false, &sink), 0);
        assert_int_equal(gpg_err_code(push(sink, content, sizeof content, 300)), FAULT);
        assert_int_equal(out.finished, 0);
        assert_int_equal(out.freed, 1);
        gathered_clear(&out);
    }
}

static struct source *body_of(struct source *raw)
{
    struct source *body;
    struct packet packet;
    bool end;
    assert_int_equal(packet_next(NULL, raw, &packet, &end), 0);
    assert_int_equal(packet_body_source(NULL, &packet, raw, &body), 0);
    return body;
}

/* Reads FIRST octets, skips, and reads the rest. */
static void skip_equal_parts(const struct gathered *packet, const uint8_t *content, size_t n, size_t first, size_t skip)
{
    static uint8_t to[12000];
    struct source *raw = memory_source_new(packet->bytes, packet->n, 100), *body = body_of(raw);
    size_t got;
    packet_body_assume_equal_parts(body);
    assert_int_equal(source_read(body, to, first, &got), 0);
    gpg_error_t err = source_skip(body, skip);
    if (skip > n - first) { /* the last part may have been taken for a whole one: the next look notices */
        if (!err)
            err = source_read(body, to, 1, &got);
        assert_int_equal(gpg_err_code(err), GPG_ERR_TRUNCATED);
    } else {
        assert_int_equal(err, 0);
        assert_int_equal(source_read(body, to, sizeof to, &got), 0);
        assert_int_equal(got, n - first - skip);
        assert_memory_equal(to, content + first + skip, got);
    }
    source_free(body);
    source_free(raw);
}

static void skips_equal_parts(void **state)
{
    static const size_t ends[] = {0, 1, 190, 191, 192, 511};
    static uint8_t content[10 * 512 + 511];
    (void)state;
    fill_random(content, sizeof content, 8);
    for (size_t parts = 0; parts <= 10; parts += 5)
        for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
            struct gathered out;
            struct sink *sink;
            const size_t n = parts * 512 + ends[i];
            assert_int_equal(packet_body_sink(PACKET_LITERAL, 512, faulty_sink_new(&out, SIZE_MAX), false, &sink), 0);
            assert_int_equal(push(sink, content, n, 0), 0);
            for (size_t first = 0; first <= n; first += 73)
                for (size_t skip = 0; skip <= n - first + 2; skip += skip % 512 == 510 ? 1 : 10)
                    skip_equal_parts(&out, content, n, first, skip);
            gathered_clear(&out);
        }
}

/* Parts that turn out to differ are refused where their length octets are missed. */
static void parts_that_differ(void **state)
{
    uint8_t bytes[2 + 4 * 512 + 3 + 1024 + 2];
    size_t n = 0;
    (void)state;
    memset(bytes, 'x', sizeof bytes);
    bytes[n++] = 0xC0 | PACKET_LITERAL;
    for (unsigned i = 0; i < 4; i++, n += 512)
        bytes[n++] = 0xE9;
    bytes[n++] = 0xEA;
    n += 1024;
    bytes[n] = 0;
    for (size_t skip = 0; skip <= 4 * 512 + 1024; skip++) {
        struct source *raw = memory_source_new(bytes, n + 1, 0), *body = body_of(raw);
        packet_body_assume_equal_parts(body);
        const void *lent;
        size_t lent_n = 0;
        gpg_error_t err = source_skip(body, skip);
        if (!err)
            err = source_peek(body, &lent, &lent_n);
        if (skip < 5 * 512) /* nothing was missed */
            assert_int_equal(gpg_err_code(err), skip < 4 * 512 ? 0 : GPG_ERR_INV_PACKET);
        source_free(body);
        source_free(raw);
    }
}

/* The end of bodies in all forms, from every place in them. */
static void goes_to_the_end(void **state)
{
    enum { LENGTH = 1400, TAIL_MAX = 20 };
    static uint8_t content[LENGTH];
    static const size_t parts[] = {512, 1024, 2048};
    (void)state;
    fill_random(content, sizeof content, 9);
    for (size_t p = 0; p < ARRAY_SIZE(parts); p++)
        for (size_t n = 0; n <= LENGTH; n += n % 512 > 505 || n % 512 < 6 ? 1 : 50) {
            struct gathered out;
            struct sink *sink;
            assert_int_equal(packet_body_sink(PACKET_AEAD, parts[p], faulty_sink_new(&out, SIZE_MAX), false, &sink), 0);
            assert_int_equal(push(sink, content, n, 0), 0);
            for (size_t first = 0; first <= n; first += n - first > TAIL_MAX + 60 ? 60 : 1) {
                struct source *raw = memory_source_new(out.bytes, out.n, 0), *body = body_of(raw);
                uint8_t tail[TAIL_MAX], read[LENGTH];
                uint64_t passed;
                size_t got, expected = n - first < TAIL_MAX ? n - first : TAIL_MAX;
                assert_int_equal(source_read(body, read, first, &got), 0);
                assert_int_equal(packet_body_to_end(body, tail, TAIL_MAX, &passed), 0);
                assert_int_equal(passed, n - first);
                assert_memory_equal(tail, content + n - expected, expected);
                assert_int_equal(source_finish(body), 0);
                source_free(body);
                source_free(raw);
            }
            for (size_t cut = out.n - 1; cut > 2 && cut + 600 > out.n; cut--) {
                struct source *raw = memory_source_new(out.bytes, cut, 0), *body = body_of(raw);
                uint8_t tail[TAIL_MAX];
                uint64_t passed;
                assert_int_equal(gpg_err_code(packet_body_to_end(body, tail, TAIL_MAX, &passed)), GPG_ERR_TRUNCATED);
                source_free(body);
                source_free(raw);
            }
            gathered_clear(&out);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_headers),
        cmocka_unit_test(refuses_headers),
        cmocka_unit_test(reads_back_what_it_writes),
        cmocka_unit_test(body_lengths_and_steps),
        cmocka_unit_test(takes_below_unless_it_borrows),
        cmocka_unit_test(big_writes_pass_through),
        cmocka_unit_test(other_forms),
        cmocka_unit_test(small_parts),
        cmocka_unit_test(ends_early),
        cmocka_unit_test(read_and_skip),
        cmocka_unit_test(reads_up_to_a_failure),
        cmocka_unit_test(skips_equal_parts),
        cmocka_unit_test(parts_that_differ),
        cmocka_unit_test(goes_to_the_end),
        cmocka_unit_test(whole_body),
        cmocka_unit_test(sink_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
