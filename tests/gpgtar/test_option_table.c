/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "gpgtar/option_table.h"

#include "stream/fd.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MANUAL TESTDATA "/../doc/gpgtar.1"

/* The manual without fonts and escapes. */
static char *manual;

static int read_manual(void **state)
{
    (void)state;
    uint8_t *bytes = NULL;
    size_t n = 0;
    if (file_read_whole(NULL, MANUAL, 1 << 20, &bytes, &n) || !(manual = malloc(n + 1)))
        return -1;
    char *to = manual;
    for (size_t i = 0; i < n; i++) {
        if (bytes[i] != '\\' || i + 2 >= n)
            *to++ = bytes[i] == '\n' ? ' ' : (char)bytes[i];
        else if (bytes[i + 1] == 'f')
            i += 2;
        else
            *to++ = bytes[++i] == 'e' ? '\\' : (char)bytes[i];
    }
    *to = '\0';
    free(bytes);
    return 0;
}

static int free_manual(void **state)
{
    (void)state;
    free(manual);
    return 0;
}

static bool is_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
}

static bool manual_has(const char *name)
{
    char option[64];
    const size_t n = (size_t)snprintf(option, sizeof option, "--%s", name);
    for (const char *at = manual; (at = strstr(at, option)); at++)
        if (!is_name(at[n]) && (at == manual || at[-1] != '-'))
            return true;
    return false;
}

static void test_each_option_is_in_the_manual(void **state)
{
    struct option_help help;
    (void)state;
    for (size_t i = 0; options_help(i, &help); i++)
        if (help.on_line && !manual_has(help.name))
            fail_msg("--%s is not in the manual", help.name);
}

/* Behind the first letter, which is a capital there. */
static void test_the_manual_says_what_the_help_says(void **state)
{
    struct option_help help;
    (void)state;
    for (size_t i = 0; options_help(i, &help); i++)
        if (help.on_line && help.group != GROUP_HIDDEN && help.help && !strstr(manual, help.help + 1))
            fail_msg("--%s: the manual does not have \"%s\"", help.name, help.help);
}

static void test_the_manual_has_no_other_options(void **state)
{
    (void)state;
    for (const char *at = manual; (at = strstr(at, "--")); at += 2) {
        const char *name = at + 2;
        struct option_help help;
        size_t n = 0;
        bool known = false;
        while (is_name(name[n]))
            n++;
        for (size_t i = 0; n && !known && options_help(i, &help); i++)
            known = strlen(help.name) == n && !memcmp(help.name, name, n);
        if (n && !known)
            fail_msg("the manual has --%.*s", (int)n, name);
    }
}

static void test_names_and_letters_are_unique_where_they_stand(void **state)
{
    const unsigned where[] = {LINE, CONF, GPG_ARGS, GPG_CONF, TAR_ARGS, COMMON_CONF};
    const struct option_row *row, *other;
    (void)state;
    for (size_t i = 0; (row = option_table_row(i)); i++)
        for (size_t j = 0; j < i && (other = option_table_row(j)); j++)
            for (size_t k = 0; k < ARRAY_SIZE(where); k++) {
                if (!(row->contexts & other->contexts & where[k]))
                    continue;
                assert_string_not_equal(row->name, other->name);
                if (row->letter)
                    assert_int_not_equal(row->letter, other->letter);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_option_is_in_the_manual),
        cmocka_unit_test(test_the_manual_says_what_the_help_says),
        cmocka_unit_test(test_the_manual_has_no_other_options),
        cmocka_unit_test(test_names_and_letters_are_unique_where_they_stand),
    };
    return cmocka_run_group_tests(tests, read_manual, free_manual);
}
