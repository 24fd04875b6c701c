/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "recipients.h"

#include <stdlib.h>
#include <string.h>

gpg_error_t recipients_add(struct recipients *recipients, enum recipient_kind kind, const char *name)
{
    struct recipient *items = realloc(recipients->items, (recipients->n + 1) * sizeof *items);
    if (!items)
        return gpg_error_from_syserror();
    recipients->items = items;
    items[recipients->n].kind = kind;
    items[recipients->n].name = strdup(name);
    if (!items[recipients->n].name)
        return gpg_error_from_syserror();
    recipients->n++;
    return 0;
}

void recipients_clear(struct recipients *recipients)
{
    for (size_t i = 0; i < recipients->n; i++)
        free(recipients->items[i].name);
    free(recipients->items);
    memset(recipients, 0, sizeof *recipients);
}
