/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "keystore.h"

#include "framing.h"
#include "keyring.h"
#include "packet_view.h"

#include <stdlib.h>
#include <string.h>

/* Where certificates are looked for: one of the two. */
struct place {
    struct keyring *keyring;
    struct keyboxd *keyboxd;
};

/* A secret key packet of a --secret-key-file. */
struct secret_packet {
    struct key *key;
    uint8_t type;
    struct secret *body;
    const struct passphrase_source *passphrases; /* borrowed; may be NULL */
};

/* Secret encryption keys by where they are, in the order in which they are to be tried. */
enum { LIST_FILES, LIST_SOFTWARE, LIST_CARDS, LIST_COUNT };
struct key_list {
    struct key **at; /* references */
    size_t n, room;
};

/* A certificate that was checked: each signature in it costs half a millisecond or more, and one command asks for the
 * same certificate up to five times (as recipient, as signer, for its secret key, for its user id, for the verdict). */
struct known {
    uint8_t digest[32]; /* SHA-256 of the public part of its packets */
    struct certificate *certificate;
};
#define KNOWN_MAX 8
/* Octets of packets: larger ones are not kept, so that memory stays small. */
#define KNOWN_OCTETS_MAX (256 * 1024)

struct keystore {
    struct failure *failure;
    const struct trustdb *trustdb; /* borrowed; may be NULL */
    bool ignores_disabled;
    const char *place_name; /* borrowed; may be NULL */
    struct secret_provider *provider;
    struct place *places;
    size_t place_n;
    struct secret_packet *secrets;
    size_t secret_n;
    struct known known[KNOWN_MAX];
    unsigned known_next; /* where the next one goes */
    bool listed;         /* the lists below are filled */
    struct key_list lists[LIST_COUNT];
};

struct keystore *keystore_new(struct failure *failure)
{
    struct keystore *keystore = calloc(1, sizeof *keystore);
    if (keystore)
        keystore->failure = failure;
    return keystore;
}

static void forget_lists(struct keystore *keystore)
{
    for (unsigned i = 0; i < LIST_COUNT; i++) {
        struct key_list *list = &keystore->lists[i];
        for (size_t j = 0; j < list->n; j++)
            key_free(list->at[j]);
        free(list->at);
        *list = (struct key_list){0};
    }
    keystore->listed = false;
}

void keystore_free(struct keystore *keystore)
{
    if (!keystore)
        return;
    forget_lists(keystore);
    for (size_t i = 0; i < keystore->place_n; i++) {
        keyring_free(keystore->places[i].keyring);
        keyboxd_free(keystore->places[i].keyboxd);
    }
    for (size_t i = 0; i < keystore->secret_n; i++) {
        key_free(keystore->secrets[i].key);
        secret_free(keystore->secrets[i].body);
    }
    for (unsigned i = 0; i < KNOWN_MAX; i++)
        certificate_free(keystore->known[i].certificate);
    free(keystore->places);
    free(keystore->secrets);
    if (keystore->provider)
        keystore->provider->free(keystore->provider);
    free(keystore);
}

void keystore_set_provider(struct keystore *keystore, struct secret_provider *takes_provider)
{
    forget_lists(keystore);
    if (keystore->provider)
        keystore->provider->free(keystore->provider);
    keystore->provider = takes_provider;
}

void keystore_set_trustdb(struct keystore *keystore, const struct trustdb *trustdb)
{
    keystore->trustdb = trustdb;
}

void keystore_ignore_disabled(struct keystore *keystore, bool ignore)
{
    keystore->ignores_disabled = ignore;
}

void keystore_set_place(struct keystore *keystore, const char *place)
{
    keystore->place_name = place;
}

const char *keystore_place(const struct keystore *keystore)
{
    return keystore->place_name;
}

/* ---- certificates ---- */

static bool is_secret(unsigned type)
{
    return type == PACKET_SECRET_KEY || type == PACKET_SECRET_SUBKEY;
}

/* The digest of all that certificate_parse looks at: a key's public packet and the public part of its secret packet are
 * the same to it. False: malformed, or out of memory. */
static bool digest_certificate(const uint8_t *bytes, size_t n, uint8_t ret[32])
{
    struct cursor cursor = cursor_over(bytes, n);
    struct packet_view packet;
    gcry_md_hd_t md = NULL;
    if (gcry_md_open(&md, GCRY_MD_SHA256, 0))
        return false;
    while (packet_view_next(&cursor, &packet)) {
        uint8_t head[5] = {(uint8_t)packet.type};
        size_t length = packet.body_n;
        struct key *key = NULL;
        if (is_secret(packet.type) && !key_parse(NULL, packet.type, packet.body, packet.body_n, &key, &length))
            head[0] = packet.type == PACKET_SECRET_KEY ? PACKET_PUBLIC_KEY : PACKET_PUBLIC_SUBKEY;
        key_free(key);
        put_be32(head + 1, (uint32_t)length);
        gcry_md_write(md, head, sizeof head);
        gcry_md_write(md, packet.body, length);
    }
    memcpy(ret, gcry_md_read(md, GCRY_MD_SHA256), 32);
    gcry_md_close(md);
    return !cursor.flawed;
}

/* certificate_parse, once for the same packets. */
static gpg_error_t parse_certificate(struct keystore *keystore, struct failure *failure, const uint8_t *bytes, size_t n,
                                     struct certificate **ret)
{
    struct known fresh = {.certificate = NULL};
    size_t used;
    if (n > KNOWN_OCTETS_MAX || !digest_certificate(bytes, n, fresh.digest))
        return certificate_parse(failure, bytes, n, ret, &used);
    for (unsigned i = 0; i < KNOWN_MAX; i++) {
        const struct known *known = &keystore->known[i];
        if (known->certificate && memcmp(known->digest, fresh.digest, sizeof fresh.digest) == 0) {
            *ret = certificate_twin(known->certificate);
            return *ret ? 0 : gpg_error(GPG_ERR_ENOMEM);
        }
    }
    gpg_error_t err = certificate_parse(failure, bytes, n, ret, &used);
    if (err || !(fresh.certificate = certificate_twin(*ret)))
        return err; /* not kept is no failure */
    certificate_free(keystore->known[keystore->known_next].certificate);
    keystore->known[keystore->known_next] = fresh;
    keystore->known_next = (keystore->known_next + 1) % KNOWN_MAX;
    return 0;
}

/* ---- places ---- */

static gpg_error_t add_place(struct keystore *keystore, struct place takes_place)
{
    struct place *grown = reallocarray(keystore->places, keystore->place_n + 1, sizeof *grown);
    if (!grown) {
        gpg_error_t err = gpg_error_from_syserror();
        keyring_free(takes_place.keyring);
        keyboxd_free(takes_place.keyboxd);
        return err;
    }
    keystore->places = grown;
    grown[keystore->place_n++] = takes_place;
    forget_lists(keystore);
    return 0;
}

static gpg_error_t open_present(struct keystore *keystore, const char *file, struct keyring **ret)
{
    gpg_error_t err = keyring_open(keystore->failure, file, ret);
    if (gpg_err_code(err) == GPG_ERR_ENOENT)
        err = fail(keystore->failure, err, "the key file %s does not exist", file);
    return err;
}

gpg_error_t keystore_add_keyring(struct keystore *keystore, const char *file, bool may_be_missing)
{
    struct keyring *keyring = NULL;
    gpg_error_t err =
        may_be_missing ? keyring_open(keystore->failure, file, &keyring) : open_present(keystore, file, &keyring);
    if (may_be_missing && gpg_err_code(err) == GPG_ERR_ENOENT)
        return 0;
    return err ? err : add_place(keystore, (struct place){.keyring = keyring});
}

gpg_error_t keystore_add_keyboxd(struct keystore *keystore, struct keyboxd *takes_keyboxd)
{
    return add_place(keystore, (struct place){.keyboxd = takes_keyboxd});
}

static gpg_error_t add_secret(struct keystore *keystore, const struct packet_view *packet,
                              const struct passphrase_source *passphrases)
{
    struct secret_packet secret = {.type = packet->type, .passphrases = passphrases};
    size_t public_n;
    gpg_error_t err = key_parse(NULL, packet->type, packet->body, packet->body_n, &secret.key, &public_n);
    if (err)
        return gpg_err_code(err) == GPG_ERR_ENOMEM ? err : 0;
    struct secret_packet *grown = reallocarray(keystore->secrets, keystore->secret_n + 1, sizeof *grown);
    if (grown)
        keystore->secrets = grown;
    if (grown && packet->body_n <= SECRET_MAX)
        secret.body = secret_from(packet->body, packet->body_n);
    if (!secret.body) {
        key_free(secret.key);
        return gpg_error(packet->body_n > SECRET_MAX ? GPG_ERR_TOO_LARGE : GPG_ERR_ENOMEM);
    }
    grown[keystore->secret_n++] = secret;
    return 0;
}

gpg_error_t keystore_add_secret_file(struct keystore *keystore, const char *file,
                                     const struct passphrase_source *passphrases)
{
    struct keyring *keyring = NULL;
    const uint8_t *bytes;
    size_t n, position = 0, before = keystore->secret_n;
    gpg_error_t err = open_present(keystore, file, &keyring);
    while (!err) {
        struct packet_view packet;
        err = keyring_next(keystore->failure, keyring, NULL, &position, &bytes, &n);
        struct cursor cursor = err ? cursor_over(NULL, 0) : cursor_over(bytes, n);
        while (!err && packet_view_next(&cursor, &packet))
            if (is_secret(packet.type))
                err = add_secret(keystore, &packet, passphrases);
    }
    if (gpg_err_code(err) == GPG_ERR_EOF)
        err = keystore->secret_n > before
                  ? 0
                  : fail(keystore->failure, gpg_error(GPG_ERR_NO_SECKEY), "there is no secret key in %s", file);
    if (err) {
        keyring_free(keyring);
        return fail(keystore->failure, err, "the secret keys in %s cannot be used: %s", file, gpg_strerror(err));
    }
    return add_place(keystore, (struct place){.keyring = keyring});
}

gpg_error_t keystore_certificate_file(struct keystore *keystore, const char *file, struct certificate **ret)
{
    struct keyring *keyring = NULL;
    const uint8_t *bytes;
    size_t n, position = 0;
    gpg_error_t err = open_present(keystore, file, &keyring);
    if (!err)
        err = keyring_next(keystore->failure, keyring, NULL, &position, &bytes, &n);
    if (!err)
        err = parse_certificate(keystore, keystore->failure, bytes, n, ret);
    if (err)
        err = fail(keystore->failure, gpg_err_code(err) == GPG_ERR_EOF ? gpg_error(GPG_ERR_NO_DATA) : err,
                   "there is no usable certificate in %s", file);
    keyring_free(keyring);
    return err;
}

/* ---- the walk over all places ---- */

struct walk {
    struct keystore *keystore;
    const struct key_spec *spec; /* NULL: everything */
    size_t place;                /* the one that is being walked through */
    size_t position;             /* in its keyring */
    struct keyring *answer;      /* keyboxd's; owned */
};

static void walk_end(struct walk *walk)
{
    keyring_free(walk->answer);
    walk->answer = NULL;
}

static gpg_error_t walk_ask(struct walk *walk, struct keyboxd *keyboxd)
{
    uint8_t *bytes = NULL;
    size_t n = 0;
    gpg_error_t err = keyboxd_search(walk->keystore->failure, keyboxd, walk->spec, &bytes, &n);
    return err ? err : keyring_from_memory("from keyboxd", bytes, n, &walk->answer);
}

/* The packets of the next certificate, borrowed until the next call. GPG_ERR_EOF at the end. */
static gpg_error_t walk_raw(struct walk *walk, const uint8_t **ret_bytes, size_t *ret_n)
{
    gpg_error_t err = gpg_error(GPG_ERR_EOF);
    for (; walk->place < walk->keystore->place_n; walk->place++, walk->position = 0) {
        const struct place *place = &walk->keystore->places[walk->place];
        if (place->keyboxd && !walk->answer && (err = walk_ask(walk, place->keyboxd)))
            return err;
        err = keyring_next(walk->keystore->failure, place->keyboxd ? walk->answer : place->keyring, walk->spec,
                           &walk->position, ret_bytes, ret_n);
        if (gpg_err_code(err) != GPG_ERR_EOF)
            return err;
        walk_end(walk);
    }
    return err;
}

/* The same, parsed; those that cannot be are passed over. */
static gpg_error_t walk_next(struct walk *walk, struct certificate **ret)
{
    const uint8_t *bytes;
    size_t n;
    gpg_error_t err;
    while (!(err = walk_raw(walk, &bytes, &n))) {
        struct certificate *certificate = NULL;
        err = parse_certificate(walk->keystore, NULL, bytes, n, &certificate);
        if (gpg_err_code(err) == GPG_ERR_ENOMEM)
            return err;
        if (err)
            continue;
        bool disabled = false;
        const struct key *primary = certificate_key(certificate, 0);
        trustdb_ownertrust(walk->keystore->trustdb, primary->fpr, primary->fpr_n, &disabled);
        certificate_set_disabled(certificate, disabled && !walk->keystore->ignores_disabled);
        *ret = certificate;
        return 0;
    }
    return err;
}

/* ---- secret keys ---- */

static const struct secret_packet *find_secret(const struct keystore *keystore, const struct key *key, size_t *from)
{
    for (; *from < keystore->secret_n; ++*from) {
        const struct secret_packet *secret = &keystore->secrets[*from];
        if (secret->key->fpr_n == key->fpr_n && memcmp(secret->key->fpr, key->fpr, key->fpr_n) == 0)
            return &keystore->secrets[(*from)++];
    }
    return NULL;
}

/* From a file; GPG_ERR_NO_SECKEY for what only says that the secret is elsewhere. */
static gpg_error_t open_secret(const struct keystore *keystore, const struct secret_packet *packet,
                               struct secret_key **ret)
{
    struct secret_key *secret_key = NULL;
    gpg_error_t err = secret_key_parse(keystore->failure, packet->type, packet->body->bytes, packet->body->n,
                                       packet->passphrases, &secret_key);
    if (err)
        return err;
    enum secret_state state = secret_key_state(secret_key);
    if (state == SECRET_DUMMY || state == SECRET_ON_CARD) {
        secret_key_free(secret_key);
        return gpg_error(GPG_ERR_NO_SECKEY);
    }
    *ret = secret_key;
    return 0;
}

static bool file_has(const struct keystore *keystore, const struct key *key)
{
    const struct secret_packet *packet;
    for (size_t from = 0; (packet = find_secret(keystore, key, &from));) {
        struct secret_key *secret_key = NULL;
        if (secret_key_parse(NULL, packet->type, packet->body->bytes, packet->body->n, NULL, &secret_key))
            continue;
        enum secret_state state = secret_key_state(secret_key);
        secret_key_free(secret_key);
        if (state == SECRET_PLAIN || state == SECRET_LOCKED)
            return true;
    }
    return false;
}

/* Whether the secret key is at hand, and in which list it belongs. */
static bool has_secret(const struct keystore *keystore, const struct key *key, unsigned *ret_list)
{
    bool on_card = false;
    *ret_list = LIST_FILES;
    if (file_has(keystore, key))
        return true;
    if (!keystore->provider || !key->has_keygrip || keystore->provider->have(keystore->provider, key, &on_card))
        return false;
    *ret_list = on_card ? LIST_CARDS : LIST_SOFTWARE;
    return true;
}

static bool fits_signer(void *context, const struct key *key)
{
    unsigned list;
    return has_secret(context, key, &list);
}

gpg_error_t keystore_secret(struct keystore *keystore, const struct key *key, struct secret_key **ret)
{
    const struct secret_packet *packet;
    for (size_t from = 0; (packet = find_secret(keystore, key, &from));) {
        gpg_error_t err = open_secret(keystore, packet, ret);
        if (gpg_err_code(err) != GPG_ERR_NO_SECKEY)
            return err;
    }
    if (!keystore->provider)
        return gpg_error(GPG_ERR_NO_SECKEY);
    return keystore->provider->get(keystore->provider, keystore->failure, key, ret);
}

/* Whether there is a secret key for any key in the packets: so that only certificates that may serve are checked. */
static bool any_secret(const struct keystore *keystore, const uint8_t *bytes, size_t n)
{
    struct cursor cursor = cursor_over(bytes, n);
    struct packet_view packet;
    bool any = false;
    unsigned list;
    while (!any && packet_view_next(&cursor, &packet)) {
        struct key *key = NULL;
        size_t public_n;
        if ((packet.type == PACKET_PUBLIC_KEY || packet.type == PACKET_PUBLIC_SUBKEY || is_secret(packet.type)) &&
            !key_parse(NULL, packet.type, packet.body, packet.body_n, &key, &public_n))
            any = has_secret(keystore, key, &list);
        key_free(key);
    }
    return any;
}

static bool list_contains(const struct key_list *list, const struct key *key)
{
    for (size_t i = 0; i < list->n; i++)
        if (list->at[i]->fpr_n == key->fpr_n && memcmp(list->at[i]->fpr, key->fpr, key->fpr_n) == 0)
            return true;
    return false;
}

static gpg_error_t list_add(struct key_list *list, struct key *key)
{
    if (list_contains(list, key))
        return 0;
    if (list->n == list->room) {
        size_t room = list->room ? 2 * list->room : 16;
        struct key **grown = reallocarray(list->at, room, sizeof *grown);
        if (!grown)
            return gpg_error_from_syserror();
        list->at = grown;
        list->room = room;
    }
    list->at[list->n++] = key_ref(key);
    return 0;
}

/* Lists the encryption keys of CERTIFICATE whose secret is at hand. Those that are not bound are tried too, for a
 * secret file may have come without its bindings; those that are said to be for something else are not. */
static gpg_error_t list_keys(struct keystore *keystore, const struct certificate *certificate)
{
    gpg_error_t err = 0;
    for (unsigned i = 0; !err && i < certificate_keys(certificate); i++) {
        struct key *key = certificate_key(certificate, i);
        unsigned list;
        if (!key_can_encrypt_algo(key) || key_usable(NULL, key))
            continue;
        bool bound = certificate_key_state(certificate, i, 0) != KEY_UNBOUND;
        if ((bound && !(certificate_key_uses(certificate, i) & KEY_ENCRYPTS)) || !has_secret(keystore, key, &list))
            continue;
        err = list_add(&keystore->lists[list], key);
    }
    return err;
}

static gpg_error_t fill_lists(struct keystore *keystore)
{
    struct walk walk = {.keystore = keystore};
    const uint8_t *bytes;
    size_t n;
    gpg_error_t err = 0;
    if (keystore->listed)
        return 0;
    while (!err && !(err = walk_raw(&walk, &bytes, &n))) {
        struct certificate *certificate = NULL;
        if (!any_secret(keystore, bytes, n) || parse_certificate(keystore, NULL, bytes, n, &certificate))
            continue;
        err = list_keys(keystore, certificate);
        certificate_free(certificate);
    }
    walk_end(&walk);
    if (gpg_err_code(err) == GPG_ERR_EOF)
        err = 0;
    keystore->listed = !err;
    if (err)
        forget_lists(keystore);
    return err;
}

gpg_error_t keystore_secret_nth(struct keystore *keystore, unsigned i, struct secret_key **ret)
{
    size_t left = i;
    gpg_error_t err = fill_lists(keystore);
    for (unsigned which = 0; !err && which < LIST_COUNT; which++) {
        const struct key_list *list = &keystore->lists[which];
        if (left < list->n)
            return keystore_secret(keystore, list->at[left], ret);
        left -= list->n;
    }
    return err ? err : gpg_error(GPG_ERR_EOF);
}

/* ---- finding ---- */

/* What one certificate is worth for a search. */
struct rating {
    gpg_error_t reason; /* 0: usable */
    enum trust validity;
    uint32_t newest; /* when the key that would be used was made */
    int exact;
};

/* The key of CERTIFICATE that SPEC names; -1: none. One that is not bound names nothing, the primary apart. */
static int named_key(const struct certificate *certificate, const struct key_spec *spec)
{
    for (unsigned i = 0; i < certificate_keys(certificate); i++)
        if (key_spec_matches_key(spec, certificate_key(certificate, i)) &&
            (i == 0 || certificate_key_state(certificate, i, 0) != KEY_UNBOUND))
            return (int)i;
    return -1;
}

/* Whether a certified user id matches; and how valid those are, as far as they are not revoked. */
static bool rate_uids(const struct keystore *keystore, struct certificate *certificate, const struct key_spec *spec,
                      struct rating *rating)
{
    const struct key *primary = certificate_key(certificate, 0);
    bool matches = false, standing = false;
    for (unsigned i = 0; i < certificate_uids(certificate); i++) {
        bool revoked;
        const char *uid = certificate_uid(certificate, i, &revoked);
        size_t n = certificate_uid_length(certificate, i);
        if (!key_spec_matches_uid(spec, uid, n))
            continue;
        matches = true;
        if (revoked)
            continue;
        if (!standing)
            certificate_set_named_uid(certificate, (int)i);
        standing = true;
        enum trust validity = trustdb_validity(keystore->trustdb, primary->fpr, primary->fpr_n, uid, n);
        if (validity > rating->validity)
            rating->validity = validity;
    }
    if (matches && !standing)
        rating->reason = gpg_error(GPG_ERR_CERT_REVOKED);
    return matches;
}

/* Fills RATING; false where SPEC does not match after all. */
static bool rate(struct keystore *keystore, struct certificate *certificate, const struct key_spec *spec,
                 enum key_use use, uint32_t when, struct rating *rating)
{
    unsigned number = 0;
    *rating = (struct rating){.exact = -1};
    if (key_spec_names_key(spec)) {
        int named = named_key(certificate, spec);
        if (named < 0)
            return false;
        if (spec->exact_key)
            rating->exact = named;
    } else if (!rate_uids(keystore, certificate, spec, rating)) {
        return false;
    } else if (!rating->reason && certificate_disabled(certificate)) {
        rating->reason = gpg_error(GPG_ERR_KEY_DISABLED);
    }
    if (!rating->reason)
        rating->reason = certificate_choose_among(certificate, use, when, rating->exact,
                                                  use == KEY_SIGNS ? fits_signer : NULL, keystore, &number);
    if (!rating->reason)
        rating->newest = certificate_key(certificate, number)->created;
    return true;
}

/* gpg looks for the best of several certificates only where a plain address was given. */
static bool wants_best(const struct key_spec *spec, enum key_use use)
{
    return use == KEY_ENCRYPTS && spec->kind == SPEC_MAIL && spec->or_substring;
}

/* Whether A is a better find than B, which came before it. */
static bool better(const struct key_spec *spec, enum key_use use, const struct rating *a, const struct rating *b)
{
    if (!a->reason != !b->reason)
        return !a->reason;
    if (a->reason || !wants_best(spec, use))
        return false;
    return a->validity != b->validity ? a->validity > b->validity : a->newest > b->newest;
}

static bool same_certificate(const struct certificate *a, const struct certificate *b)
{
    const struct key *x = certificate_key(a, 0), *y = certificate_key(b, 0);
    return x->fpr_n == y->fpr_n && memcmp(x->fpr, y->fpr, x->fpr_n) == 0;
}

/* How many further certificates the rest of WALK has: their claims only, for there may be thousands. */
static gpg_error_t count_rest(struct walk *walk, const struct certificate *found, unsigned *count)
{
    const uint8_t *bytes;
    size_t n;
    gpg_error_t err;
    while (!(err = walk_raw(walk, &bytes, &n))) {
        struct cursor cursor = cursor_over(bytes, n);
        struct packet_view packet;
        struct key *key = NULL;
        size_t public_n;
        const struct key *have = certificate_key(found, 0);
        if (!packet_view_next(&cursor, &packet) ||
            key_parse(NULL, packet.type, packet.body, packet.body_n, &key, &public_n))
            continue;
        if (key->fpr_n != have->fpr_n || memcmp(key->fpr, have->fpr, key->fpr_n) != 0)
            ++*count;
        key_free(key);
    }
    return gpg_err_code(err) == GPG_ERR_EOF ? 0 : err;
}

static gpg_error_t find_best(struct keystore *keystore, const struct key_spec *spec, enum key_use use, uint32_t when,
                             struct key_match *match, struct rating *best)
{
    struct walk walk = {.keystore = keystore, .spec = spec};
    struct certificate *certificate = NULL;
    gpg_error_t err;
    *match = (struct key_match){.exact = -1, .kind = spec->kind};
    while (!(err = walk_next(&walk, &certificate))) {
        struct rating rating;
        bool matches = rate(keystore, certificate, spec, use, when, &rating);
        bool again = match->certificate && same_certificate(certificate, match->certificate);
        if (matches && match->certificate && !again)
            match->ambiguous++;
        if (matches && (!match->certificate || better(spec, use, &rating, best))) {
            certificate_free(match->certificate);
            match->certificate = certificate;
            match->exact = rating.exact;
            *best = rating;
        } else {
            certificate_free(certificate);
        }
        if (match->certificate && !best->reason && !wants_best(spec, use)) {
            err = count_rest(&walk, match->certificate, &match->ambiguous);
            break;
        }
    }
    walk_end(&walk);
    if (gpg_err_code(err) == GPG_ERR_EOF)
        err = match->certificate ? 0 : gpg_error(GPG_ERR_NO_PUBKEY);
    return err;
}

/* The best match with its rating, usable or not; MATCH is to be freed after errors as well. */
static gpg_error_t find_spec(struct keystore *keystore, const char *spec, enum key_use use, uint32_t when,
                             struct key_match *match, struct rating *best)
{
    struct key_spec parsed;
    gpg_error_t err = key_spec_parse(spec, &parsed);
    if (err)
        return err;
    err = find_best(keystore, &parsed, use, when, match, best);
    if (gpg_err_code(err) == GPG_ERR_NO_PUBKEY && parsed.or_substring) {
        parsed.kind = SPEC_SUBSTRING;
        err = find_best(keystore, &parsed, use, when, match, best);
    }
    return err;
}

gpg_error_t keystore_find(struct keystore *keystore, const char *spec, enum key_use use, uint32_t when,
                          struct key_match *ret)
{
    struct key_match match = {0};
    struct rating best = {0};
    gpg_error_t err = find_spec(keystore, spec, use, when, &match, &best);
    if (!err)
        err = best.reason;
    if (err)
        certificate_free(match.certificate);
    else
        *ret = match;
    return err;
}

gpg_error_t keystore_look_up(struct keystore *keystore, const char *spec, struct certificate **ret)
{
    struct key_match match = {0};
    struct rating best = {0};
    gpg_error_t err = find_spec(keystore, spec, KEY_ENCRYPTS, 0, &match, &best);
    if (err)
        certificate_free(match.certificate);
    else
        *ret = match.certificate;
    return err;
}

gpg_error_t keystore_issuer(struct keystore *keystore, const uint8_t *id, size_t n, struct certificate **ret,
                            unsigned *ret_number)
{
    struct key_spec spec = key_spec_of_id(id, n);
    struct walk walk = {.keystore = keystore, .spec = &spec};
    struct certificate *certificate = NULL, *unbound = NULL;
    unsigned unbound_number = 0, number = 0;
    bool bound = false;
    gpg_error_t err;
    while (!bound && !(err = walk_next(&walk, &certificate))) {
        for (number = 0; number < certificate_keys(certificate); number++)
            if (key_spec_matches_key(&spec, certificate_key(certificate, number)))
                break;
        bool has_it = number < certificate_keys(certificate);
        bound = has_it && certificate_key_state(certificate, number, 0) != KEY_UNBOUND;
        if (!bound && has_it && !unbound) {
            unbound = certificate;
            unbound_number = number;
        } else if (!bound) {
            certificate_free(certificate);
        }
    }
    walk_end(&walk);
    if (bound || (gpg_err_code(err) == GPG_ERR_EOF && unbound)) {
        *ret = bound ? certificate : unbound;
        *ret_number = bound ? number : unbound_number;
        if (bound)
            certificate_free(unbound);
        return 0;
    }
    certificate_free(unbound);
    return gpg_err_code(err) == GPG_ERR_EOF ? gpg_error(GPG_ERR_NO_PUBKEY) : err;
}

/* ---- signers ---- */

gpg_error_t keystore_default_signer(struct keystore *keystore, uint32_t when, struct key_match *ret)
{
    struct walk walk = {.keystore = keystore};
    const uint8_t *bytes;
    size_t n;
    unsigned number;
    struct certificate *found = NULL;
    gpg_error_t err = 0;
    while (!found && !(err = walk_raw(&walk, &bytes, &n))) {
        struct certificate *certificate = NULL;
        bool disabled = false;
        if (!any_secret(keystore, bytes, n) || parse_certificate(keystore, NULL, bytes, n, &certificate))
            continue;
        const struct key *primary = certificate_key(certificate, 0);
        trustdb_ownertrust(keystore->trustdb, primary->fpr, primary->fpr_n, &disabled);
        if (!disabled && !certificate_choose_among(certificate, KEY_SIGNS, when, -1, fits_signer, keystore, &number))
            found = certificate;
        else
            certificate_free(certificate);
    }
    walk_end(&walk);
    if (!found)
        return gpg_err_code(err) == GPG_ERR_EOF ? gpg_error(GPG_ERR_NO_SECKEY) : err;
    *ret = (struct key_match){.certificate = found, .exact = -1, .kind = SPEC_FPR};
    return 0;
}

gpg_error_t keystore_file_signer(struct keystore *keystore, struct key_match *ret)
{
    struct certificate *certificate = NULL;
    unsigned number = 0;
    if (keystore->secret_n == 0)
        return gpg_error(GPG_ERR_EOF);
    const struct key *key = keystore->secrets[0].key;
    gpg_error_t err = keystore_issuer(keystore, key->fpr, key->fpr_n, &certificate, &number);
    if (!err)
        *ret = (struct key_match){.certificate = certificate, .exact = -1, .kind = SPEC_FPR};
    return err;
}

gpg_error_t keystore_signing_key(struct keystore *keystore, const struct key_match *match, uint32_t when,
                                 unsigned *ret_number, struct secret_key **ret)
{
    unsigned number;
    gpg_error_t err =
        certificate_choose_among(match->certificate, KEY_SIGNS, when, match->exact, fits_signer, keystore, &number);
    if (!err)
        err = keystore_secret(keystore, certificate_key(match->certificate, number), ret);
    if (!err)
        *ret_number = number;
    return err;
}
