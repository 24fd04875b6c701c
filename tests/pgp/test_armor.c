/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "faulty.h"

#include "pgp/armor.h"

#include <stdio.h>

#define HEAD "-----BEGIN PGP MESSAGE-----\n"
#define TAIL "-----END PGP MESSAGE-----\n"

static gpg_error_t decode(const char *text, size_t step, const char *kind, bool multi, struct gathered *ret,
                          bool *ret_wrong)
{
    struct source *armor;
    assert_int_equal(armor_source_new(NULL, faulty_source_new(text, strlen(text), step, SIZE_MAX), kind, multi, &armor),
                     0);
    struct sink *sink = faulty_sink_new(ret, SIZE_MAX);
    gpg_error_t error = pump(armor, sink, NULL);
    if (!error)
        error = source_finish(armor);
    if (ret_wrong)
        *ret_wrong = armor_checksum_wrong(armor);
    sink_free(sink);
    source_free(armor);
    return error;
}

static void encode(const void *bytes, size_t n, size_t step, bool crc, struct gathered *ret)
{
    struct sink *sink;
    assert_int_equal(armor_sink_new("PGP MESSAGE", NULL, crc, faulty_sink_new(ret, SIZE_MAX), &sink), 0);
    assert_int_equal(push(sink, bytes, n, step), 0);
    assert_int_equal(ret->finished, 1);
    assert_int_equal(ret->freed, 1);
    ret->bytes = realloc(ret->bytes, ret->n + 1);
    assert_non_null(ret->bytes);
    ret->bytes[ret->n] = 0;
}

/* Checks of CRC-24/OPENPGP that everybody publishes. */
static void checksum_vectors(void **state)
{
    struct gathered out;
    (void)state;
    encode("123456789", 9, 1, true, &out); /* 0x21CF02 */
    assert_string_equal((char *)out.bytes, HEAD "\nMTIzNDU2Nzg5\n=Ic8C\n" TAIL);
    gathered_clear(&out);
    encode("", 0, 0, true, &out); /* 0xB704CE */
    assert_string_equal((char *)out.bytes, HEAD "\n=twTO\n" TAIL);
    gathered_clear(&out);
    encode("", 0, 0, false, &out);
    assert_string_equal((char *)out.bytes, HEAD "\n" TAIL);
    gathered_clear(&out);
}

/* RFC 4648 10 */
static void base64_vectors(void **state)
{
    static const char *const cases[][2] = {{"f", "Zg=="},        {"fo", "Zm8="},        {"foo", "Zm9v"},
                                           {"foob", "Zm9vYg=="}, {"fooba", "Zm9vYmE="}, {"foobar", "Zm9vYmFy"}};
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char text[200];
        struct gathered out;
        snprintf(text, sizeof text, HEAD "\n%s\n" TAIL, cases[i][1]);
        encode(cases[i][0], strlen(cases[i][0]), 0, false, &out);
        assert_string_equal((char *)out.bytes, text);
        gathered_clear(&out);
        for (size_t step = 1; step < 70; step++) {
            assert_int_equal(decode(text, step, "PGP MESSAGE", false, &out, NULL), 0);
            assert_int_equal(out.n, strlen(cases[i][0]));
            assert_memory_equal(out.bytes, cases[i][0], out.n);
            gathered_clear(&out);
        }
    }
}

static void lengths_and_steps(void **state)
{
    static const size_t lengths[] = {1, 2, 3, 47, 48, 49, 95, 96, 97, 1000, 49152, 60001};
    static const size_t steps[] = {0, 1, 2, 47, 48, 49, 65, 1000};
    static uint8_t bytes[60001];
    (void)state;
    fill_random(bytes, sizeof bytes, 1);
    for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
        for (size_t j = 0; j < ARRAY_SIZE(steps); j++) {
            struct gathered text, back;
            bool wrong = true;
            encode(bytes, lengths[i], steps[j], j & 1, &text);
            assert_int_equal(decode((char *)text.bytes, steps[j], NULL, false, &back, &wrong), 0);
            assert_false(wrong);
            assert_int_equal(back.n, lengths[i]);
            assert_memory_equal(back.bytes, bytes, back.n);
            gathered_clear(&text);
            gathered_clear(&back);
        }
    }
}

struct text_case {
    const char *text;
    bool multi, wrong;
    gpg_err_code_t code;
    const char *content;
};

static const struct text_case cases[] = {
    {HEAD "\nZm9v\n" TAIL, false, false, 0, "foo"},
    {"Hello,\nhere it is:\n" HEAD "\nZm9v\n" TAIL, false, false, 0, "foo"},
    {"\xEF\xBB\xBF" HEAD "\nZm9v\n" TAIL, false, false, 0, "foo"},
    {HEAD "Version: x 1.0\nComment:\nX-Other: y\n\nZm9v\n" TAIL, false, false, 0, "foo"},
    {"-----BEGIN PGP MESSAGE-----\r\nA: b\r\n\r\nZm9v\r\n=zT12\r\n-----END PGP MESSAGE-----\r\n", false, true, 0,
     "foo"},
    {HEAD " \t\nZm9v  \nYmFy\n\n" TAIL "\n \r\n\t\n", false, false, 0, "foobar"},
    {HEAD "\nZm\n9v\nYmFy"
          "\n-----END PGP MESSAGE-----",
     false, false, 0, "foobar"},
    {HEAD "\nZ m 9 v\n" TAIL, false, false, 0, "foo"},
    {HEAD "\n" TAIL, false, false, 0, ""},
    {HEAD "\nZm9v\n=AAAA\n" TAIL, false, true, 0, "foo"},
    {"-----BEGIN CERTIFICATE-----\nZm9v\n-----END CERTIFICATE-----\n" HEAD "\nZm9v\n" TAIL, false, false, 0, "foo"},
    {HEAD "\nZm9v\n" TAIL HEAD "\nYmFy\n" TAIL, true, false, 0, "foobar"},
    {HEAD "\nZm9v\n" TAIL "words\n" HEAD "\nYg==\n" TAIL "\nand more words", true, false, 0, "foob"},
    /* refused */
    {"", false, false, GPG_ERR_NO_DATA, ""},
    {"just text\n", false, false, GPG_ERR_NO_DATA, ""},
    {"-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nZm9v\n-----END PGP PUBLIC KEY BLOCK-----\n", false, false,
     GPG_ERR_NO_DATA, ""},
    {" " HEAD "\nZm9v\n" TAIL, false, false, GPG_ERR_NO_DATA, ""},
    {HEAD "Zm9v\n" TAIL, false, false, GPG_ERR_INV_ARMOR, ""},
    {HEAD "\nZm!v\n" TAIL, false, false, GPG_ERR_INV_ARMOR, ""},
    {HEAD "\nZm9\n" TAIL, false, false, GPG_ERR_INV_ARMOR, ""},
    {HEAD "\nZ===\n" TAIL, false, false, GPG_ERR_INV_ARMOR, ""},
    {HEAD "\nZg==Zg==\n" TAIL, false, false, GPG_ERR_INV_ARMOR, ""},
    {HEAD "\nZg==\nZg==\n" TAIL, false, false, GPG_ERR_INV_ARMOR, ""},
    {HEAD "\nZg=g\n" TAIL, false, false, GPG_ERR_INV_ARMOR, ""},
    {HEAD "\nZm9v=AAAA\n" TAIL, false, false, GPG_ERR_INV_ARMOR, ""},
    {HEAD "\nZm9v\n=AAA\n" TAIL, false, false, GPG_ERR_INV_ARMOR, ""},
    {HEAD "\nZm9v\n=AA!A\n" TAIL, false, false, GPG_ERR_INV_ARMOR, ""},
    {HEAD "\nZm9v\n=AAAA\nZm9v\n" TAIL, false, false, GPG_ERR_INV_ARMOR, ""},
    {HEAD "\nZm9v\n-----END PGP SIGNATURE-----\n", false, false, GPG_ERR_INV_ARMOR, ""},
    {HEAD "\nZm9v\n" TAIL "x\n", false, false, GPG_ERR_INV_ARMOR, ""},
    {HEAD "\nZm9v\n" TAIL "x", false, false, GPG_ERR_INV_ARMOR, ""},
    {HEAD "\nZm9v\n" TAIL HEAD "\nYmFy\n" TAIL, false, false, GPG_ERR_INV_ARMOR, ""},
    {HEAD, false, false, GPG_ERR_TRUNCATED, ""},
    {HEAD "\n", false, false, GPG_ERR_TRUNCATED, ""},
    {HEAD "\nZm9v\n", false, false, GPG_ERR_TRUNCATED, ""},
    {HEAD "\nZm9v\n=AAAA\n", false, false, GPG_ERR_TRUNCATED, ""},
    {HEAD "\nZm9v\n" TAIL HEAD "\nYm", true, false, GPG_ERR_TRUNCATED, ""},
};

static void texts(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        for (size_t step = 0; step < 90; step++) {
            struct gathered out;
            bool wrong;
            gpg_error_t error = decode(cases[i].text, step, "PGP MESSAGE", cases[i].multi, &out, &wrong);
            if (gpg_err_code(error) != cases[i].code)
                print_message("case %zu, step %zu\n", i, step);
            assert_int_equal(gpg_err_code(error), cases[i].code);
            if (!error) {
                assert_int_equal(wrong, cases[i].wrong);
                assert_int_equal(out.n, strlen(cases[i].content));
                assert_memory_equal(out.bytes ? out.bytes : (const uint8_t *)"", cases[i].content, out.n);
            }
            gathered_clear(&out);
        }
    }
    struct gathered out;
    const char *cleartext = "-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA256\n\nwords\n";
    assert_int_equal(gpg_err_code(decode(cleartext, 0, NULL, false, &out, NULL)), GPG_ERR_NOT_SUPPORTED);
    gathered_clear(&out);
}

/* Cut anywhere before the end of the END line's dashes, it is an error; and so is a fault in the text. */
static void cut_and_failing(void **state)
{
    char text[2000];
    uint8_t bytes[500];
    struct gathered out;
    (void)state;
    fill_random(bytes, sizeof bytes, 2);
    encode(bytes, sizeof bytes, 0, true, &out);
    memcpy(text, out.bytes, out.n + 1);
    size_t n = out.n;
    gathered_clear(&out);
    for (size_t at = 0; at < n; at++) {
        struct source *armor;
        assert_int_equal(armor_source_new(NULL, faulty_source_new(text, n, 33, at), NULL, false, &armor), 0);
        assert_int_equal(gpg_err_code(pull(armor, &out)), FAULT);
        gathered_clear(&out);
        if (at >= n - 1)
            continue;
        assert_int_equal(armor_source_new(NULL, faulty_source_new(text, at, 33, SIZE_MAX), NULL, false, &armor), 0);
        assert_int_not_equal(gpg_err_code(pull(armor, &out)), 0);
        gathered_clear(&out);
    }
    for (size_t at = 0; at < n; at++) {
        struct sink *sink;
        assert_int_equal(armor_sink_new("PGP MESSAGE", NULL, true, faulty_sink_new(&out, at), &sink), 0);
        assert_int_equal(gpg_err_code(push(sink, bytes, sizeof bytes, 100)), FAULT);
        assert_int_equal(out.finished, 0);
        assert_int_equal(out.freed, 1);
        gathered_clear(&out);
    }
}

static void too_much_text(void **state)
{
    size_t n = 70000;
    char *text = malloc(n + 200);
    struct gathered out;
    (void)state;
    assert_non_null(text);
    memset(text, 'x', n);
    strcpy(text + n, "\n" HEAD "\nZm9v\n" TAIL);
    assert_int_equal(gpg_err_code(decode(text, 0, NULL, false, &out, NULL)), GPG_ERR_NO_DATA);
    gathered_clear(&out);
    assert_int_equal(decode(text + 10000, 0, NULL, false, &out, NULL), 0);
    assert_int_equal(out.n, 3);
    gathered_clear(&out);
    free(text);
}

static void comments_and_kind(void **state)
{
    static const char *const comments[] = {"one", "two words", NULL}, *const bad[] = {"a\nb", NULL};
    struct gathered out;
    struct sink *sink;
    (void)state;
    assert_int_equal(armor_sink_new("PGP SIGNATURE", comments, false, faulty_sink_new(&out, SIZE_MAX), &sink), 0);
    assert_int_equal(push(sink, "foo", 3, 0), 0);
    static const char expected[] = "-----BEGIN PGP SIGNATURE-----\nComment: one\nComment: two words\n\nZm9v\n"
                                   "-----END PGP SIGNATURE-----\n";
    assert_int_equal(out.n, sizeof expected - 1);
    assert_memory_equal(out.bytes, expected, out.n);
    gathered_clear(&out);
    assert_int_equal(gpg_err_code(armor_sink_new("PGP MESSAGE", bad, false, faulty_sink_new(&out, SIZE_MAX), &sink)),
                     GPG_ERR_INV_ARG);
    assert_int_equal(out.freed, 1);
}

static void detects(void **state)
{
    static const struct {
        const char *bytes;
        size_t n;
        bool armored;
    } inputs[] = {{"", 0, false},         {"-----", 5, true},         {"text", 4, true},     {"\xC1\x01", 2, false},
                  {"\x85\x02", 2, false}, {"\xEF\xBB\xBF-", 4, true}, {"\xEF\x01", 2, false}};
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(inputs); i++) {
        struct source *source = memory_source_new(inputs[i].bytes, inputs[i].n, 0);
        bool armored = !inputs[i].armored;
        assert_int_equal(armor_detect(source, &armored), 0);
        assert_int_equal(armored, inputs[i].armored);
        source_free(source);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(checksum_vectors),  cmocka_unit_test(base64_vectors),
        cmocka_unit_test(lengths_and_steps), cmocka_unit_test(texts),
        cmocka_unit_test(cut_and_failing),   cmocka_unit_test(too_much_text),
        cmocka_unit_test(comments_and_kind), cmocka_unit_test(detects),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
