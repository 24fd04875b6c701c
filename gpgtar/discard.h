/* SPDX-License-Identifier: GPL-3.0-or-later */
/* discard: a sink for --dry-run, where everything is read and nothing is written. */
#ifndef GPGTAR_DISCARD_H
#define GPGTAR_DISCARD_H

#include "stream/stream.h"

MUST_CHECK gpg_error_t discard_new(struct sink **ret);

#endif
