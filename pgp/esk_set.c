/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "esk_set.h"

#include "framing.h"
#include "mdc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Questions for a passphrase, as gpg. */
#define ATTEMPTS 3
/* Packets that one passphrase is tried on: each derivation may take 0.1 s, and nobody has that many passphrases. */
#define DERIVATIONS_MAX 64
/* Recipients named in a sentence. */
#define NAMED_MAX 3
/* Keys on cards that one message is tried with. Nobody has that many cards. */
#define CARD_KEYS_MAX 32
/* Bits by which a number may be shorter than its modulus: one in 2^64 is. */
#define SHORTER_MAX 64

struct esk_set {
    struct esk *esk[MESSAGE_ESK_MAX];
    unsigned n;
    unsigned skipped;
    struct failure unusable; /* why the first skipped one was skipped */
};

/* One search. */
struct search {
    struct esk_set *set;
    const struct read_params *params;
    const struct esk_target *target;
    struct esk_opened *ret;
    bool damaged;           /* a packet for a key we have did not open */
    unsigned without_key;   /* packets for keys that nobody here has */
    struct failure trouble; /* the first failure of a key, agent or derivation */
    uint8_t asked[CARD_KEYS_MAX][sizeof((struct key *)0)->keygrip]; /* keys on cards that had their one try */
    unsigned asked_n;
    bool left_out; /* a key on a card had its try, and there were more packets that may be for it */
};

struct esk_set *esk_set_new(void)
{
    struct esk_set *set = calloc(1, sizeof *set);
    if (set)
        failure_init(&set->unusable);
    return set;
}

void esk_set_free(struct esk_set *set)
{
    if (!set)
        return;
    for (unsigned i = 0; i < set->n; i++)
        esk_free(set->esk[i]);
    failure_destroy(&set->unusable);
    free(set);
}

gpg_error_t esk_set_add(struct esk_set *set, struct failure *failure, unsigned packet_type, const uint8_t *body,
                        size_t n, const struct esk **ret)
{
    if (esk_set_count(set) == MESSAGE_ESK_MAX)
        return fail(failure, gpg_error(GPG_ERR_TOO_MANY), "the message has more than %u encrypted session keys",
                    MESSAGE_ESK_MAX);
    struct esk *esk = NULL;
    struct failure why;
    failure_init(&why);
    gpg_error_t err = esk_parse(&why, packet_type, body, n, &esk);
    char sentence[FAILURE_SENTENCE_MAX];
    failure_get(&why, sentence);
    failure_destroy(&why);
    gpg_err_code_t code = gpg_err_code(err);
    if (code == GPG_ERR_UNKNOWN_VERSION || code == GPG_ERR_NOT_SUPPORTED) {
        fail(&set->unusable, gpg_error(GPG_ERR_NOT_SUPPORTED), "%s", sentence);
        set->skipped++;
        *ret = NULL;
        return 0;
    }
    if (err)
        return fail(failure, err, "%s", *sentence ? sentence : gpg_strerror(err));
    set->esk[set->n++] = esk;
    *ret = esk;
    return 0;
}

unsigned esk_set_count(const struct esk_set *set)
{
    return set->n + set->skipped;
}

static void emit(const struct search *search, const struct message_event *event)
{
    if (search->params->event)
        search->params->event(search->params->context, event);
}

/* Whether ESK's version goes with the encrypted data. */
static bool goes_with(const struct esk *esk, const struct esk_target *target)
{
    if (target->protection == PROTECT_SEIPD_2)
        return esk->version == 6;
    if (!esk->symmetric)
        return esk->version == 3;
    return esk->version == 4 || (esk->version == 5 && target->protection == PROTECT_PACKET_20);
}

/* Whether the key has the size of its cipher, and that is the cipher of the data. */
static bool fits_cipher(const struct session_key *session_key, const struct esk_target *target)
{
    unsigned cipher = target->cipher ? target->cipher : session_key->cipher;
    const struct cipher_info *info = algo_cipher(cipher);
    return info && session_key->key->n == info->key_size && (!session_key->cipher || session_key->cipher == cipher);
}

/* Hands the session key over if it may be the right one, else clears it. */
static bool accept(const struct search *search, struct session_key *session_key, bool by_passphrase, bool doubtful)
{
    const struct esk_target *target = search->target;
    bool fits = fits_cipher(session_key, target);
    if (fits && doubtful && !target->cipher)
        fits = mdc_quick_check(session_key->cipher, session_key->key, target->head, target->head_n);
    if (!fits) {
        session_key_clear(session_key);
        return false;
    }
    *search->ret =
        (struct esk_opened){.session_key = *session_key, .by_passphrase = by_passphrase, .doubtful = doubtful};
    emit(search, &(struct message_event){.kind = EVENT_SESSION_KEY, .session_key = &search->ret->session_key});
    return true;
}

/* The certificate that KEY is in, to be freed, or NULL. */
static struct certificate *certificate_of(const struct search *search, const struct key *key)
{
    struct certificate *certificate;
    unsigned number;
    return keystore_issuer(search->params->keystore, key->fpr, key->fpr_n, &certificate, &number) ? NULL : certificate;
}

/* Notes why a key did not work. Keys that are not here are no trouble, a packet that does not open is told apart. */
static void note_trouble(struct search *search, gpg_error_t err, struct failure *why)
{
    char sentence[FAILURE_SENTENCE_MAX];
    failure_get(why, sentence);
    if (gpg_err_code(err) == GPG_ERR_DECRYPT_FAILED)
        search->damaged = true;
    else
        fail(&search->trouble, err, "%s", *sentence ? sentence : gpg_strerror(err));
}

/* Tries one key on one packet. */
static bool try_key(struct search *search, const struct esk *esk, struct secret_key *secret_key, bool hidden)
{
    struct session_key session_key;
    struct failure why;
    failure_init(&why);
    gpg_error_t err = pkesk_open(&why, esk, secret_key, &session_key);
    bool opened = !err && accept(search, &session_key, false, false);
    if (!opened && !hidden)
        note_trouble(search, err ? err : gpg_error(GPG_ERR_DECRYPT_FAILED), &why);
    else if (err && gpg_err_code(err) != GPG_ERR_DECRYPT_FAILED)
        note_trouble(search, err, &why);
    failure_destroy(&why);
    if (opened) {
        struct certificate *certificate = certificate_of(search, secret_key->key);
        emit(search,
             &(struct message_event){.kind = EVENT_DECRYPTION_KEY, .key = secret_key->key, .certificate = certificate});
        certificate_free(certificate);
    }
    return opened;
}

/* The secret key that a packet names. GPG_ERR_NO_SECKEY where nobody has it. */
static gpg_error_t find_secret(const struct search *search, const struct esk *esk, struct secret_key **ret)
{
    struct keystore *keystore = search->params->keystore;
    struct certificate *certificate;
    unsigned number;
    gpg_error_t err = esk->version == 6
                          ? keystore_issuer(keystore, esk->fpr, esk->fpr_n, &certificate, &number)
                          : keystore_issuer(keystore, esk->keyid, sizeof esk->keyid, &certificate, &number);
    if (err)
        return gpg_error(GPG_ERR_NO_SECKEY);
    struct key *key = certificate_key(certificate, number);
    err = esk_for_key(esk, key) ? keystore_secret(keystore, key, ret) : gpg_error(GPG_ERR_NO_SECKEY);
    certificate_free(certificate);
    return err;
}

/* Whether KEY, which is on a card, may be asked: the first time only, for each may take a PIN and count on the card. */
static bool has_its_try(struct search *search, const struct key *key)
{
    bool first = search->asked_n < CARD_KEYS_MAX;
    for (unsigned i = 0; i < search->asked_n; i++)
        first = first && memcmp(search->asked[i], key->keygrip, sizeof key->keygrip) != 0;
    if (first)
        memcpy(search->asked[search->asked_n++], key->keygrip, sizeof key->keygrip);
    else
        search->left_out = true;
    return first;
}

/* The packets that name a key: ON_CARD selects which kind of secret key is asked in this round. */
static bool try_named(struct search *search, bool on_card)
{
    for (unsigned i = 0; i < search->set->n; i++) {
        const struct esk *esk = search->set->esk[i];
        if (esk->symmetric || esk_hidden(esk) || !esk->parts.n || !goes_with(esk, search->target))
            continue;
        struct secret_key *secret_key = NULL;
        gpg_error_t err = find_secret(search, esk, &secret_key);
        bool opened = false;
        if (!err && secret_key->on_card == on_card && (!on_card || has_its_try(search, secret_key->key)))
            opened = try_key(search, esk, secret_key, false);
        secret_key_free(secret_key);
        if (opened)
            return true;
        if (err && !on_card) {
            if (gpg_err_code(err) != GPG_ERR_NO_SECKEY)
                fail(&search->trouble, err, "the secret key cannot be used: %s", gpg_strerror(err));
            search->without_key++;
            emit(search, &(struct message_event){.kind = EVENT_NO_SECKEY, .esk = esk});
        }
    }
    return false;
}

/* Whether PART can be a number below MODULUS that was drawn at random. */
static bool fits_modulus(const struct part *part, const struct part *modulus)
{
    if (part->n > modulus->n || part_bits(part) + SHORTER_MAX < part_bits(modulus))
        return false;
    return part->n < modulus->n || memcmp(part->bytes, modulus->bytes, part->n) < 0;
}

/* Whether PART can be a point on CURVE; that of cv25519 may lack its 0x40, and then leading zeros too. */
static bool fits_curve(const struct part *part, const struct curve *curve)
{
    if (curve->kind == CURVE_WEIERSTRASS)
        return part->n == 1 + 2U * curve->octets;
    return part->n <= 1U + curve->octets && part_bits(part) + SHORTER_MAX >= 8U * curve->octets;
}

/* Whether the numbers of a hidden packet have the sizes that KEY, which has its algorithm, makes. */
static bool sizes_fit(const struct esk *esk, const struct key *key)
{
    if (key->curve)
        return fits_curve(&esk->parts.part[0], key->curve);
    for (unsigned i = 0; i < esk->parts.n; i++)
        if (!fits_modulus(&esk->parts.part[i], &key->parts.part[0]))
            return false;
    return true;
}

static bool is_hidden(const struct search *search, const struct esk *esk)
{
    return esk_hidden(esk) && esk->parts.n && goes_with(esk, search->target);
}

/* Software: all hidden packets of its algorithm. */
static bool try_on_all(struct search *search, struct secret_key *secret_key)
{
    for (unsigned i = 0; i < search->set->n; i++) {
        const struct esk *esk = search->set->esk[i];
        if (is_hidden(search, esk) && esk_for_key(esk, secret_key->key) && try_key(search, esk, secret_key, true))
            return true;
    }
    return false;
}

/* A card: the first hidden packet that fits. */
static bool try_on_first(struct search *search, struct secret_key *secret_key)
{
    for (unsigned i = 0; i < search->set->n; i++) {
        const struct esk *esk = search->set->esk[i];
        if (!is_hidden(search, esk) || !esk_for_key(esk, secret_key->key) || !sizes_fit(esk, secret_key->key))
            continue;
        if (!has_its_try(search, secret_key->key))
            return false;
        if (try_key(search, esk, secret_key, true))
            return true;
    }
    return false;
}

/* The packets that hide their key: every secret key there is of this round's kind. */
static bool try_hidden(struct search *search, bool on_card)
{
    unsigned hidden = 0;
    for (unsigned i = 0; i < search->set->n; i++)
        hidden += esk_hidden(search->set->esk[i]) && goes_with(search->set->esk[i], search->target);
    if (!hidden)
        return false;
    for (unsigned number = 0;; number++) {
        struct secret_key *secret_key;
        if (keystore_secret_nth(search->params->keystore, number, &secret_key))
            break;
        bool opened = false;
        if (secret_key->on_card == on_card)
            opened = on_card ? try_on_first(search, secret_key) : try_on_all(search, secret_key);
        secret_key_free(secret_key);
        if (opened)
            return true;
    }
    if (on_card)
        search->without_key += hidden;
    return false;
}

static unsigned symmetric_count(const struct search *search)
{
    unsigned n = 0;
    for (unsigned i = 0; i < search->set->n; i++)
        n += search->set->esk[i]->symmetric && goes_with(search->set->esk[i], search->target);
    return n;
}

/* Tries PASSPHRASE on all packets; *RET_WRONG counts those that it was wrong for. */
static bool try_passphrase(struct search *search, const struct secret *passphrase, unsigned *ret_wrong)
{
    unsigned tried = 0;
    *ret_wrong = 0;
    for (unsigned i = 0; i < search->set->n && tried < DERIVATIONS_MAX; i++) {
        const struct esk *esk = search->set->esk[i];
        if (!esk->symmetric || !goes_with(esk, search->target))
            continue;
        tried++;
        struct session_key session_key;
        struct failure why;
        failure_init(&why);
        gpg_error_t err = skesk_open(&why, esk, passphrase, &search->params->s2k_limits, &session_key);
        bool opened = !err && accept(search, &session_key, true, esk->version == 4);
        if (opened && (esk->s2k.mode == S2K_SIMPLE || esk->s2k.mode == S2K_SALTED))
            emit(search,
                 &(struct message_event){.kind = EVENT_WARNING,
                                         .esk = esk,
                                         .text = "the message's passphrase is badly protected against guessing: "
                                                 "its key derivation is not iterated"});
        if (!opened && (!err || gpg_err_code(err) == GPG_ERR_BAD_PASSPHRASE))
            ++*ret_wrong;
        else if (err)
            note_trouble(search, err, &why);
        failure_destroy(&why);
        if (opened)
            return true;
    }
    return false;
}

/* There is no passphrase at all. GPG_ERR_EOF where a key's trouble says more. */
static gpg_error_t no_passphrase(struct search *search, struct failure *failure)
{
    if (search->damaged || failure_get(&search->trouble, NULL))
        return gpg_error(GPG_ERR_EOF);
    if (search->without_key)
        return fail(failure, gpg_error(GPG_ERR_NO_PASSPHRASE),
                    "the message needs a passphrase or a secret key, and none of them is here");
    return fail(failure, gpg_error(GPG_ERR_NO_PASSPHRASE), "the message needs a passphrase, and none was given");
}

/* Asks until a passphrase opens the message. GPG_ERR_EOF: there is nothing to be opened with one. */
static gpg_error_t try_passphrases(struct search *search, struct failure *failure)
{
    const struct passphrase_source *source = search->params->passphrases;
    if (!symmetric_count(search))
        return gpg_error(GPG_ERR_EOF);
    if (!source)
        return no_passphrase(search, failure);
    for (unsigned attempt = 0; attempt < ATTEMPTS; attempt++) {
        struct secret *passphrase = NULL;
        gpg_error_t err = source->ask(source->context, NULL, attempt, false, &passphrase);
        if (gpg_err_code(err) == GPG_ERR_NO_PASSPHRASE) {
            if (!attempt)
                return no_passphrase(search, failure);
            break;
        }
        if (err)
            return fail(failure, err, "no passphrase for the message: %s", gpg_strerror(err));
        unsigned wrong;
        bool opened = try_passphrase(search, passphrase, &wrong);
        secret_free(passphrase);
        if (opened)
            return 0;
        if (!wrong) /* no passphrase would help: a derivation that is refused, for all packets */
            return gpg_error(GPG_ERR_EOF);
    }
    return fail(failure, gpg_error(GPG_ERR_BAD_PASSPHRASE), "the passphrase is wrong");
}

/* "recipients" of a sentence: key ids or fingerprints of the first few. */
static void name_recipients(const struct search *search, char *out, size_t size)
{
    unsigned named = 0;
    size_t at = 0;
    out[0] = 0;
    for (unsigned i = 0; i < search->set->n && named < NAMED_MAX; i++) {
        const struct esk *esk = search->set->esk[i];
        if (esk->symmetric || esk_hidden(esk) || !goes_with(esk, search->target))
            continue;
        const uint8_t *id = esk->version == 6 ? esk->fpr : esk->keyid;
        unsigned n = esk->version == 6 ? esk->fpr_n : sizeof esk->keyid;
        at += (size_t)snprintf(out + at, size - at, "%s", named ? ", " : "");
        for (unsigned j = 0; j < n; j++)
            at += (size_t)snprintf(out + at, size - at, "%02X", id[j]);
        named++;
    }
    if (search->without_key > named)
        snprintf(out + at, size - at, "%s", named ? " and more" : "recipients who are not named");
}

/* Nothing opened the message: the most telling reason. */
static gpg_error_t give_up(const struct search *search, struct failure *failure)
{
    char text[FAILURE_SENTENCE_MAX];
    if (search->left_out)
        emit(search, &(struct message_event){
                         .kind = EVENT_WARNING,
                         .text = "a key on a card is tried once for a message, and this one has further encrypted "
                                 "session keys that may be for it"});
    if (search->damaged)
        return fail(failure, gpg_error(GPG_ERR_DECRYPT_FAILED), "%s", ESK_DAMAGED);
    gpg_error_t err = failure_get((struct failure *)&search->trouble, text);
    if (err)
        return fail(failure, err, "%s", text);
    if (search->without_key) {
        char names[NAMED_MAX * (2 * KEY_FPR_MAX + 2) + 40];
        name_recipients(search, names, sizeof names);
        const char *place = search->params->keystore ? keystore_place(search->params->keystore) : NULL;
        return fail(failure, gpg_error(GPG_ERR_NO_SECKEY), "no secret key%s%s for the message, which is for %s",
                    place ? " in " : "", place ? place : "", names);
    }
    err = failure_get(&search->set->unusable, text);
    if (err)
        return fail(failure, err, "%s", text);
    if (esk_set_count(search->set))
        return fail(failure, gpg_error(GPG_ERR_INV_PACKET),
                    "none of the encrypted session keys goes with the kind of encryption of the message");
    return fail(failure, gpg_error(GPG_ERR_NO_SECKEY), "the message has no encrypted session key");
}

/* Packets of algorithms that we do not know count as not supported, unless something else opens the message. */
static void note_unknown_algorithms(struct esk_set *set)
{
    for (unsigned i = 0; i < set->n; i++) {
        const struct esk *esk = set->esk[i];
        const char *name = algo_pubkey_name(esk->algo);
        if (!esk->symmetric && !esk->parts.n)
            fail(&set->unusable, gpg_error(GPG_ERR_NOT_SUPPORTED),
                 "the message is encrypted with public-key algorithm %u (%s), which is not supported", esk->algo,
                 name ? name : "unknown");
    }
}

static gpg_error_t use_override(const struct search *search, struct failure *failure)
{
    const struct session_key *given = search->params->session_key;
    struct session_key session_key = {.cipher = given->cipher, .key = secret_from(given->key->bytes, given->key->n)};
    if (!session_key.key)
        return fail(failure, gpg_error(GPG_ERR_ENOMEM), "out of secure memory");
    if (!accept(search, &session_key, false, false))
        return fail(failure, gpg_error(GPG_ERR_BAD_KEY), "the session key given does not fit the message");
    return 0;
}

gpg_error_t esk_set_open(struct esk_set *set, struct failure *failure, const struct read_params *params,
                         const struct esk_target *target, struct esk_opened *ret)
{
    struct search search = {.set = set, .params = params, .target = target, .ret = ret};
    if (params->session_key)
        return use_override(&search, failure);
    failure_init(&search.trouble);
    note_unknown_algorithms(set);
    bool opened = false;
    if (params->keystore)
        opened = try_named(&search, false) || try_hidden(&search, false) || try_named(&search, true) ||
                 try_hidden(&search, true);
    else
        for (unsigned i = 0; i < set->n; i++)
            search.without_key += !set->esk[i]->symmetric && set->esk[i]->parts.n;
    gpg_error_t err = 0;
    if (!opened) {
        err = try_passphrases(&search, failure);
        if (gpg_err_code(err) == GPG_ERR_EOF)
            err = give_up(&search, failure);
    }
    failure_destroy(&search.trouble);
    return err;
}
