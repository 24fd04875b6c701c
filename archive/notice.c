/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "notice.h"

void notice(const struct notices *notices, enum notice_kind kind, const char *name, gpg_error_t code,
            const char *detail)
{
    if (!notices || !notices->report)
        return;
    const struct notice event = {.kind = kind, .name = name, .code = code, .detail = detail};
    notices->report(notices->context, &event);
}
