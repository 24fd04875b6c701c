/* SPDX-License-Identifier: GPL-3.0-or-later */
/* trust: how far the user trusts that a certificate is whose it says, by trust model and trustdb. */
#ifndef GPGTAR_TRUST_H
#define GPGTAR_TRUST_H

#include "options.h"
#include "pgp/pgp.h"

/* TRUSTDB may be NULL everywhere: nobody is trusted. */
enum trust_level { LEVEL_UNDEFINED, LEVEL_NEVER, LEVEL_MARGINAL, LEVEL_FULL, LEVEL_ULTIMATE };
enum trust_level trust_level(enum trust_model model, const struct trustdb *trustdb,
                             const struct certificate *certificate);
/* How far the user trusts its owner to certify others, as a letter of gpg's --with-colons. */
char trust_owner_letter(const struct trustdb *trustdb, const struct certificate *certificate);
/* "pgp", "direct", "always" as status lines name the model. */
const char *trust_model_name(enum trust_model model);

#endif
