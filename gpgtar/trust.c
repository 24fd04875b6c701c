/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "trust.h"

/* As gpg: of the user id by which the certificate was asked for, else of the best one. */
static enum trust trust_validity(enum trust_model model, const struct trustdb *trustdb,
                                 const struct certificate *certificate)
{
    const struct key *primary = certificate_key(certificate, 0);
    const int named = certificate_named_uid(certificate);
    const enum trust owner = trustdb_ownertrust(trustdb, primary->fpr, primary->fpr_n, NULL);
    if (model == TRUST_DIRECT || owner == TRUST_ULTIMATE)
        return owner;
    if (named < 0)
        return trustdb_validity(trustdb, primary->fpr, primary->fpr_n, NULL, 0);
    return trustdb_validity(trustdb, primary->fpr, primary->fpr_n, certificate_uid(certificate, (unsigned)named, NULL),
                            certificate_uid_length(certificate, (unsigned)named));
}

enum trust_level trust_level(enum trust_model model, const struct trustdb *trustdb,
                             const struct certificate *certificate)
{
    if (model == TRUST_ALWAYS)
        return LEVEL_FULL;
    switch (trust_validity(model, trustdb, certificate)) {
    case TRUST_ULTIMATE:
        return LEVEL_ULTIMATE;
    case TRUST_FULL:
        return LEVEL_FULL;
    case TRUST_MARGINAL:
        return LEVEL_MARGINAL;
    case TRUST_NEVER:
        return LEVEL_NEVER;
    default:
        return LEVEL_UNDEFINED;
    }
}

char trust_owner_letter(const struct trustdb *trustdb, const struct certificate *certificate)
{
    static const char letters[] = {[TRUST_UNDEFINED] = 'q',
                                   [TRUST_NEVER] = 'n',
                                   [TRUST_MARGINAL] = 'm',
                                   [TRUST_FULL] = 'f',
                                   [TRUST_ULTIMATE] = 'u'};
    const struct key *primary = certificate_key(certificate, 0);
    bool disabled = false;
    const enum trust owner = trustdb_ownertrust(trustdb, primary->fpr, primary->fpr_n, &disabled);
    return (size_t)owner < sizeof letters && letters[owner] ? letters[owner] : '-';
}

const char *trust_model_name(enum trust_model model)
{
    switch (model) {
    case TRUST_ALWAYS:
        return "always";
    case TRUST_DIRECT:
        return "direct";
    default:
        return "pgp";
    }
}
