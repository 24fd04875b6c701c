/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "strings.h"

#include <stdlib.h>
#include <string.h>

gpg_error_t strings_add(struct strings *strings, const char *text)
{
    char **items = realloc(strings->items, (strings->n + 1) * sizeof *items);
    if (!items)
        return gpg_error_from_syserror();
    strings->items = items;
    items[strings->n] = strdup(text);
    if (!items[strings->n])
        return gpg_error_from_syserror();
    strings->n++;
    return 0;
}

void strings_clear(struct strings *strings)
{
    for (size_t i = 0; i < strings->n; i++)
        free(strings->items[i]);
    free(strings->items);
    memset(strings, 0, sizeof *strings);
}

gpg_error_t strings_set(char **where, const char *text)
{
    char *copy = strdup(text);
    if (!copy)
        return gpg_error_from_syserror();
    free(*where);
    *where = copy;
    return 0;
}
