/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "faulty.h"

#include "pgp/cursor.h"

static void takes_fields_in_order(void **state)
{
    static const uint8_t bytes[] = {0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x00, 0x09, 0x01, 0xFF, 0xAA, 0xBB};
    struct cursor cursor = cursor_over(bytes, sizeof bytes);
    size_t n;
    (void)state;
    assert_int_equal(cursor_u8(&cursor), 0x01);
    assert_int_equal(cursor_u16(&cursor), 0x0203);
    assert_int_equal(cursor_u32(&cursor), 0x04050607);
    const uint8_t *mpi = cursor_mpi(&cursor, &n);
    assert_ptr_equal(mpi, bytes + 9);
    assert_int_equal(n, 2);
    assert_false(cursor_done(&cursor));
    struct cursor part = cursor_part(&cursor, 1);
    assert_int_equal(cursor_u8(&part), 0xAA);
    assert_true(cursor_done(&part));
    assert_int_equal(cursor.left, 1);
    assert_ptr_equal(cursor_bytes(&cursor, 1), bytes + 12);
    assert_true(cursor_done(&cursor));
    assert_non_null(cursor_bytes(&cursor, 0));
    assert_true(cursor_done(&cursor));
}

/* Every take past the end gives zeros, and so does every one after it. */
static void flaw_sticks(void **state)
{
    static const uint8_t bytes[] = {0xFF, 0xFF, 0xFF};
    (void)state;
    for (size_t n = 0; n <= sizeof bytes; n++) {
        struct cursor cursor = cursor_over(bytes, n);
        size_t mpi_n = 9;
        assert_int_equal(cursor_u32(&cursor), 0);
        assert_true(cursor.flawed);
        assert_int_equal(cursor_u8(&cursor), 0);
        assert_int_equal(cursor_u16(&cursor), 0);
        assert_null(cursor_bytes(&cursor, 0));
        assert_null(cursor_mpi(&cursor, &mpi_n));
        assert_int_equal(mpi_n, 0);
        struct cursor part = cursor_part(&cursor, 1);
        assert_true(part.flawed);
        assert_int_equal(cursor_u8(&part), 0);
        assert_false(cursor_done(&cursor));
    }
}

static void part_too_long_flaws_both(void **state)
{
    struct cursor cursor = cursor_over("abc", 3);
    (void)state;
    struct cursor part = cursor_part(&cursor, SIZE_MAX);
    assert_true(part.flawed);
    assert_true(cursor.flawed);
}

static void mpi_is_bounded(void **state)
{
    static uint8_t bytes[2 + 2049] = {0x40, 0x00};
    size_t n;
    (void)state;
    struct cursor cursor = cursor_over(bytes, sizeof bytes);
    assert_non_null(cursor_mpi(&cursor, &n));
    assert_int_equal(n, 2048);
    bytes[1] = 1;
    cursor = cursor_over(bytes, sizeof bytes);
    assert_null(cursor_mpi(&cursor, &n));
    assert_true(cursor.flawed);
    put_be16(bytes, 0);
    cursor = cursor_over(bytes, 2);
    assert_non_null(cursor_mpi(&cursor, &n));
    assert_int_equal(n, 0);
    assert_true(cursor_done(&cursor));
}

static void empty_and_null(void **state)
{
    struct cursor cursor = cursor_over(NULL, 0);
    (void)state;
    assert_true(cursor_done(&cursor));
    assert_non_null(cursor_bytes(&cursor, 0));
    assert_int_equal(cursor_u8(&cursor), 0);
    assert_true(cursor.flawed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_fields_in_order),    cmocka_unit_test(flaw_sticks),
        cmocka_unit_test(part_too_long_flaws_both), cmocka_unit_test(mpi_is_bounded),
        cmocka_unit_test(empty_and_null),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
