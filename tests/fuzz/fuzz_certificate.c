/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Certificates, one after the other, with everything that can be asked of them. */
#include "fuzz_pgp.h"

#include "pgp/certificate.h"

static bool accepts_odd(void *context, const struct key *key)
{
    (void)context;
    return key->fpr[0] & 1;
}

static void ask_keys(const struct certificate *certificate, uint32_t when)
{
    unsigned keys = certificate_keys(certificate);
    FUZZ_CHECK(keys && keys <= CERTIFICATE_KEYS_MAX);
    for (unsigned i = 0; i < keys; i++) {
        FUZZ_CHECK(certificate_key(certificate, i)->subkey == (i > 0));
        enum key_state state = certificate_key_state(certificate, i, when);
        if (state == KEY_UNBOUND)
            FUZZ_CHECK(!certificate_key_uses(certificate, i));
        (void)certificate_key_expires(certificate, i);
        (void)certificate_key_revoked(certificate, i);
    }
}

static void ask_uids(const struct certificate *certificate)
{
    unsigned uids = certificate_uids(certificate);
    FUZZ_CHECK(uids <= CERTIFICATE_UIDS_MAX);
    for (unsigned i = 0; i < uids; i++) {
        bool revoked;
        const char *uid = certificate_uid(certificate, i, &revoked);
        FUZZ_CHECK(uid[certificate_uid_length(certificate, i)] == 0);
    }
}

/* Only keys that are valid and able to are ever chosen. */
static void ask_choices(const struct certificate *certificate, uint32_t when)
{
    static const enum key_use uses[] = {KEY_SIGNS, KEY_ENCRYPTS};
    for (size_t i = 0; i < ARRAY_SIZE(uses); i++) {
        for (int exact = -1; exact < 3; exact++) {
            unsigned number;
            if (!certificate_choose(certificate, uses[i], when, exact, &number)) {
                FUZZ_CHECK(number < certificate_keys(certificate));
                FUZZ_CHECK(exact < 0 || number == (unsigned)exact);
                FUZZ_CHECK(certificate_key_state(certificate, number, when) == KEY_VALID);
                FUZZ_CHECK(certificate_key_uses(certificate, number) & uses[i]);
            }
            if (!certificate_choose_among(certificate, uses[i], when, exact, accepts_odd, NULL, &number))
                FUZZ_CHECK(certificate_key(certificate, number)->fpr[0] & 1);
        }
    }
}

static void ask(struct certificate *certificate)
{
    static const uint32_t times[] = {0, 1500000000, 1717200000, UINT32_MAX};
    for (size_t i = 0; i < ARRAY_SIZE(times); i++) {
        ask_keys(certificate, times[i]);
        ask_choices(certificate, times[i]);
    }
    ask_uids(certificate);
    const struct signature *preferences = certificate_preferences(certificate);
    if (preferences)
        FUZZ_CHECK(preferences->pref_cipher_n <= sizeof preferences->pref_cipher);
    certificate_set_disabled(certificate, true);
    FUZZ_CHECK(certificate_disabled(certificate));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    fuzz_crypt_init();
    while (n) {
        struct failure failure;
        struct certificate *certificate = NULL;
        size_t used = 0, span = certificate_span(bytes, n);
        FUZZ_CHECK(span && span <= n);
        failure_init(&failure);
        gpg_error_t err = certificate_parse(&failure, bytes, n, &certificate, &used);
        failure_destroy(&failure);
        if (!err) {
            FUZZ_CHECK(used && used <= n);
            ask(certificate);
            certificate_free(certificate_ref(certificate));
            certificate_free(certificate);
        }
        size_t next = err ? span : used;
        bytes += next;
        n -= next;
    }
    return 0;
}
