/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "certificate.h"

#include "framing.h"
#include "packet_view.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* User ids that are longer are ignored, as gpg does: each of thousands of signatures would hash megabytes. */
#define UID_OCTETS_MAX 2048

/* Signatures that claim to be of the primary key itself, in file order; owned. */
struct claims {
    struct signature **at;
    size_t n, room;
};

struct component {
    struct key *key;
    struct claims claims;
    struct signature *binding; /* of a subkey: the newest valid one; of the primary: its direct-key signature; owned */
    bool checked; /* a subkey's claims are looked at when somebody asks for it: half a millisecond or more for each */
    bool bound;
    enum { STANDS, GONE_SOFT, GONE_HARD } revocation;
    uint32_t revoked; /* when; earliest */
    uint32_t expires; /* 0: never */
    unsigned uses;
};

struct user_id {
    char *text; /* NUL behind it */
    size_t n;
    struct claims claims;
    struct signature *self; /* newest valid certification; owned */
    bool revoked;
};

/* What the packets say. Twins share it. */
struct contents {
    unsigned refs;
    struct component *keys; /* the primary first */
    unsigned key_n;
    struct user_id *uids;
    unsigned uid_n;
    unsigned checks; /* signature values looked at */
    uint32_t now;    /* of the parse: signatures expire */
};

/* How somebody found it, and what the keystore says of it. */
struct certificate {
    unsigned refs;
    bool disabled;
    int named_uid; /* the user id by which somebody found it; -1: none */
    struct contents *contents;
};

/* ---- taking apart ---- */

static void claims_clear(struct claims *claims)
{
    for (size_t i = 0; i < claims->n; i++)
        signature_free(claims->at[i]);
    free(claims->at);
    *claims = (struct claims){0};
}

/* Room for one element more of SIZE octets in the array at *ARRAY, N of which are in use: grown by doubling. */
static gpg_error_t array_room(void **array, size_t n, size_t *room, size_t size)
{
    if (n < *room)
        return 0;
    size_t wanted = *room ? 2 * *room : 4;
    void *grown = reallocarray(*array, wanted, size);
    if (!grown)
        return gpg_error_from_syserror();
    *array = grown;
    *room = wanted;
    return 0;
}

static gpg_error_t claims_add(struct claims *claims, struct signature *takes_signature)
{
    void *at = claims->at;
    gpg_error_t err = array_room(&at, claims->n, &claims->room, sizeof *claims->at);
    claims->at = at;
    if (err)
        signature_free(takes_signature);
    else
        claims->at[claims->n++] = takes_signature;
    return err;
}

static void user_id_clear(struct user_id *uid)
{
    free(uid->text);
    claims_clear(&uid->claims);
    signature_free(uid->self);
}

static void contents_free(struct contents *contents)
{
    if (!contents || --contents->refs)
        return;
    for (unsigned i = 0; i < contents->key_n; i++) {
        key_free(contents->keys[i].key);
        claims_clear(&contents->keys[i].claims);
        signature_free(contents->keys[i].binding);
    }
    for (unsigned i = 0; i < contents->uid_n; i++)
        user_id_clear(&contents->uids[i]);
    free(contents->keys);
    free(contents->uids);
    free(contents);
}

struct certificate *certificate_ref(struct certificate *certificate)
{
    if (certificate)
        certificate->refs++;
    return certificate;
}

void certificate_free(struct certificate *certificate)
{
    if (!certificate || --certificate->refs)
        return;
    contents_free(certificate->contents);
    free(certificate);
}

static struct certificate *certificate_over(struct contents *contents)
{
    struct certificate *certificate = calloc(1, sizeof *certificate);
    if (certificate) {
        contents->refs++;
        *certificate = (struct certificate){.refs = 1, .named_uid = -1, .contents = contents};
    }
    return certificate;
}

struct certificate *certificate_twin(const struct certificate *certificate)
{
    return certificate_over(certificate->contents);
}

static bool is_primary(unsigned type)
{
    return type == PACKET_PUBLIC_KEY || type == PACKET_SECRET_KEY;
}

size_t certificate_span(const uint8_t *bytes, size_t n)
{
    struct cursor cursor = cursor_over(bytes, n);
    struct packet_view packet;
    bool seen = false;
    for (size_t at = 0; packet_view_next(&cursor, &packet); at = n - cursor.left) {
        if (is_primary(packet.type) && seen)
            return at;
        seen = seen || is_primary(packet.type);
    }
    return n;
}

/* What the signatures that come next are about. */
struct place {
    struct component *key;
    struct user_id *uid; /* stands before KEY; both NULL: something that we do not look at */
};

static gpg_error_t add_key(struct contents *contents, const struct packet_view *packet, struct place *place,
                           struct failure *failure)
{
    *place = (struct place){0};
    struct key *key = NULL;
    size_t public_n;
    if (contents->key_n == CERTIFICATE_KEYS_MAX)
        return 0;
    gpg_error_t err = key_parse(failure, packet->type, packet->body, packet->body_n, &key, &public_n);
    if (err) /* a subkey that we cannot read is left out, with its signatures */
        return contents->key_n && gpg_err_code(err) != GPG_ERR_ENOMEM ? 0 : err;
    if (!contents->keys) {
        contents->keys = calloc(CERTIFICATE_KEYS_MAX, sizeof *contents->keys);
        if (!contents->keys) {
            err = gpg_error_from_syserror();
            key_free(key);
            return err;
        }
    }
    place->key = &contents->keys[contents->key_n++];
    place->key->key = key;
    return 0;
}

static gpg_error_t add_uid(struct contents *contents, const struct packet_view *packet, struct place *place)
{
    *place = (struct place){0};
    if (contents->uid_n == CERTIFICATE_UIDS_MAX || packet->body_n > UID_OCTETS_MAX)
        return 0;
    if (!contents->uids && !(contents->uids = calloc(CERTIFICATE_UIDS_MAX, sizeof *contents->uids)))
        return gpg_error_from_syserror();
    struct user_id *uid = &contents->uids[contents->uid_n];
    uid->text = malloc(packet->body_n + 1);
    if (!uid->text)
        return gpg_error_from_syserror();
    memcpy(uid->text, packet->body, packet->body_n);
    uid->text[packet->body_n] = '\0';
    uid->n = packet->body_n;
    contents->uid_n++;
    place->uid = uid;
    return 0;
}

static bool about_uid(const struct signature *signature)
{
    return (signature->type >= SIG_CERT_GENERIC && signature->type <= SIG_CERT_POSITIVE) ||
           signature->type == SIG_CERT_REVOCATION;
}

/* Keeps a signature where it belongs if it claims to be the primary key's and may count at all. */
static gpg_error_t add_signature(struct contents *contents, const struct packet_view *packet, const struct place *place)
{
    struct signature *signature = NULL;
    struct component *primary = &contents->keys[0];
    if (packet->body_n > SIGNATURE_BODY_MAX)
        return 0;
    gpg_error_t err = signature_parse(NULL, packet->body, packet->body_n, &signature);
    if (err)
        return gpg_err_code(err) == GPG_ERR_ENOMEM ? err : 0;
    struct claims *claims = NULL;
    if (signature->critical_unknown || !signature->has_created || signature->digest == DIGEST_MD5 ||
        signature->created < primary->key->created || !signature_by(signature, primary->key))
        claims = NULL;
    else if (signature->type == SIG_DIRECT_KEY || signature->type == SIG_KEY_REVOCATION)
        claims = &primary->claims;
    else if (place->uid && about_uid(signature))
        claims = &place->uid->claims;
    else if (place->key && place->key != primary &&
             (signature->type == SIG_SUBKEY_BINDING || signature->type == SIG_SUBKEY_REVOCATION))
        claims = &place->key->claims;
    if (claims)
        return claims_add(claims, signature);
    signature_free(signature);
    return 0;
}

/* Fills the lists from the packets of one certificate. */
static gpg_error_t collect(struct failure *failure, struct contents *contents, const uint8_t *bytes, size_t n,
                           size_t *ret_used)
{
    struct cursor cursor = cursor_over(bytes, n);
    struct packet_view packet;
    struct place place = {0};
    gpg_error_t err = 0;
    *ret_used = 0;
    while (!err && packet_view_next(&cursor, &packet)) {
        if (is_primary(packet.type) && contents->key_n)
            return 0;
        *ret_used = n - cursor.left;
        if (*ret_used > CERTIFICATE_MAX)
            return fail(failure, gpg_error(GPG_ERR_TOO_LARGE), "a certificate is larger than %u bytes",
                        (unsigned)CERTIFICATE_MAX);
        if (is_primary(packet.type))
            err = add_key(contents, &packet, &place, failure);
        else if (!contents->key_n)
            continue;
        else if (packet.type == PACKET_PUBLIC_SUBKEY || packet.type == PACKET_SECRET_SUBKEY)
            err = add_key(contents, &packet, &place, NULL);
        else if (packet.type == PACKET_USER_ID)
            err = add_uid(contents, &packet, &place);
        else if (packet.type == PACKET_SIGNATURE)
            err = add_signature(contents, &packet, &place);
        else if (packet.type == PACKET_USER_ATTRIBUTE)
            place = (struct place){0};
    }
    if (!err && cursor.flawed)
        err = fail(failure, gpg_error(GPG_ERR_INV_PACKET), "a certificate has a malformed packet header");
    if (!err && !contents->key_n)
        err = fail(failure, gpg_error(GPG_ERR_NO_DATA), "there is no certificate in the data");
    return err;
}

/* ---- binding ---- */

/* A signature takes part in a check: a comparison for qsort puts the newest first, the later in the file first among
 * equals. */
struct candidate {
    struct signature **claim;
    size_t position;
};

static int newest_first(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;
    uint32_t made_x = (*x->claim)->created, made_y = (*y->claim)->created;
    if (made_x != made_y)
        return made_x > made_y ? -1 : 1;
    return x->position > y->position ? -1 : x->position < y->position;
}

static void sort_claims(struct claims *claims, struct candidate *scratch)
{
    for (size_t i = 0; i < claims->n; i++)
        scratch[i] = (struct candidate){.claim = &claims->at[i], .position = i};
    qsort(scratch, claims->n, sizeof *scratch, newest_first);
}

/* Sorts CLAIMS, newest first. */
static gpg_error_t order(struct claims *claims)
{
    if (claims->n < 2)
        return 0;
    struct candidate *scratch = calloc(claims->n, sizeof *scratch);
    struct signature **sorted = calloc(claims->n, sizeof *sorted);
    gpg_error_t err = scratch && sorted ? 0 : gpg_error_from_syserror();
    if (!err) {
        sort_claims(claims, scratch);
        for (size_t i = 0; i < claims->n; i++)
            sorted[i] = *scratch[i].claim;
        memcpy(claims->at, sorted, claims->n * sizeof(struct signature *));
    }
    free(scratch);
    free(sorted);
    return err;
}

static bool expired(const struct signature *signature, uint32_t now)
{
    return signature->expires && (uint64_t)signature->created + signature->expires <= now;
}

/* Whether the value of SIGNATURE over the primary key, or it and TARGET, is right. */
static bool key_signature_good(struct contents *contents, const struct signature *signature, const struct key *target)
{
    const struct key *primary = contents->keys[0].key;
    return contents->checks++ < CERTIFICATE_CHECKS_MAX && signature_check_key(signature, primary, primary, target) == 0;
}

/* RFC 9580 5.2.3.31: these three are said while the key is still its owner's. */
static bool reason_is_soft(const struct signature *signature)
{
    return signature->has_reason && (signature->reason == 1 || signature->reason == 3 || signature->reason == 32);
}

/* Looks for revocations of TYPE in the claims of COMPONENT. A hard one ends the search. */
static void check_revocations(struct contents *contents, struct component *component, unsigned type,
                              const struct key *target)
{
    for (size_t i = 0; i < component->claims.n; i++) {
        const struct signature *signature = component->claims.at[i];
        bool soft = reason_is_soft(signature);
        if (signature->type != type || !key_signature_good(contents, signature, target))
            continue;
        if (soft && component->revocation == GONE_HARD)
            continue;
        if (component->revocation == STANDS || (!soft && component->revocation == GONE_SOFT) ||
            signature->created < component->revoked)
            component->revoked = signature->created;
        component->revocation = soft ? GONE_SOFT : GONE_HARD;
    }
}

/* The newest valid signature of TYPE that has not expired moves from the claims to the binding. */
static void check_binding(struct contents *contents, struct component *component, unsigned type,
                          const struct key *target)
{
    for (size_t i = 0; i < component->claims.n; i++) {
        struct signature *signature = component->claims.at[i];
        if (signature->type != type || expired(signature, contents->now) ||
            !key_signature_good(contents, signature, target))
            continue;
        component->binding = signature;
        component->claims.at[i] = NULL;
        return;
    }
}

/* Finds the newest valid certification or revocation of UID. */
static void check_uid(struct contents *contents, struct user_id *uid)
{
    const struct key *primary = contents->keys[0].key;
    for (size_t i = 0; i < uid->claims.n; i++) {
        struct signature *signature = uid->claims.at[i];
        if (contents->checks++ >= CERTIFICATE_CHECKS_MAX)
            return;
        if (signature_check_uid(signature, primary, primary, PACKET_USER_ID, (const uint8_t *)uid->text, uid->n))
            continue;
        uid->revoked = uid->revoked || signature->type == SIG_CERT_REVOCATION || expired(signature, contents->now);
        if (signature->type == SIG_CERT_REVOCATION)
            continue; /* an older certification still says that the user id was the owner's */
        uid->self = signature;
        uid->claims.at[i] = NULL;
        return;
    }
}

/* What a key of this algorithm is for where nobody says. */
static unsigned uses_of_algo(unsigned algo)
{
    switch (algo) {
    case PUBKEY_RSA:
        return KEY_CERTIFIES | KEY_SIGNS | KEY_ENCRYPTS | KEY_AUTHENTICATES;
    case PUBKEY_RSA_SIGN:
        return KEY_CERTIFIES | KEY_SIGNS;
    case PUBKEY_DSA:
    case PUBKEY_ECDSA:
    case PUBKEY_EDDSA:
    case PUBKEY_ED25519:
    case PUBKEY_ED448:
        return KEY_CERTIFIES | KEY_SIGNS | KEY_AUTHENTICATES;
    case PUBKEY_RSA_ENCRYPT:
    case PUBKEY_ELGAMAL:
    case PUBKEY_ECDH:
    case PUBKEY_X25519:
    case PUBKEY_X448:
    case PUBKEY_KYBER:
        return KEY_ENCRYPTS;
    default:
        return 0;
    }
}

/* SIGNATURE may be NULL, or without flags. */
static unsigned uses_of(const struct signature *signature, const struct key *key)
{
    unsigned able = uses_of_algo(key->algo);
    return signature && signature->has_flags ? able & signature->flags : able;
}

/* When KEY expires by SIGNATURE (0: never). Times end in 2106, as the format's do. */
static uint32_t expiry_of(const struct signature *signature, const struct key *key)
{
    if (!signature || !signature->has_key_expires || !signature->key_expires)
        return 0;
    uint64_t when = (uint64_t)key->created + signature->key_expires;
    return when > UINT32_MAX ? UINT32_MAX : (uint32_t)when;
}

/* Whether the subkey itself says that it belongs to this certificate (RFC 9580 5.2.1.8). */
static bool back_signature_good(struct contents *contents, const struct component *component)
{
    const struct signature *back = component->binding->embedded;
    return back && back->type == SIG_PRIMARY_BINDING && !back->critical_unknown && back->has_created &&
           back->created >= component->key->created && back->digest != DIGEST_MD5 && !expired(back, contents->now) &&
           contents->checks++ < CERTIFICATE_CHECKS_MAX &&
           signature_check_key(back, component->key, contents->keys[0].key, component->key) == 0;
}

static void bind_subkey(struct contents *contents, struct component *component)
{
    check_revocations(contents, component, SIG_SUBKEY_REVOCATION, component->key);
    check_binding(contents, component, SIG_SUBKEY_BINDING, component->key);
    if (!component->binding || !contents->keys[0].bound)
        return;
    component->expires = expiry_of(component->binding, component->key);
    component->uses = uses_of(component->binding, component->key);
    component->bound = true;
    if (!(component->uses & (KEY_SIGNS | KEY_CERTIFIES)) || back_signature_good(contents, component))
        return;
    component->uses &= ~(unsigned)(KEY_SIGNS | KEY_CERTIFIES);
    component->bound = component->uses & KEY_ENCRYPTS;
    if (!component->bound)
        component->uses = 0;
}

/* Key NUMBER with all that its claims say. */
static const struct component *contents_key(struct contents *contents, unsigned number)
{
    struct component *component = &contents->keys[number];
    if (!component->checked) {
        component->checked = true;
        bind_subkey(contents, component);
        claims_clear(&component->claims);
    }
    return component;
}

/* Uses and expiry of the primary key from the direct-key signature, else the newest user id that tells. */
static void bind_primary(struct contents *contents)
{
    struct component *primary = &contents->keys[0];
    const struct signature *flags = NULL, *expiry = NULL;
    primary->bound = primary->binding != NULL;
    for (unsigned i = 0; i < contents->uid_n; i++) {
        const struct user_id *uid = &contents->uids[i];
        primary->bound = primary->bound || uid->self;
        if (!uid->self || uid->revoked)
            continue;
        if (uid->self->has_flags && (!flags || uid->self->created > flags->created))
            flags = uid->self;
        if (expiry_of(uid->self, primary->key) && (!expiry || uid->self->created > expiry->created))
            expiry = uid->self;
    }
    if (primary->binding && primary->binding->has_flags)
        flags = primary->binding;
    if (expiry_of(primary->binding, primary->key))
        expiry = primary->binding;
    primary->expires = expiry_of(expiry, primary->key);
    primary->uses = primary->bound ? uses_of(flags, primary->key) | KEY_CERTIFIES : 0;
}

/* Of two certified user ids, whether A is rather the primary one: standing before revoked, flagged before others, newer
 * before older; between equals gpg prefers the longer, then the greater bytes. */
static bool rather_primary(const struct user_id *a, const struct user_id *b)
{
    if (a->revoked != b->revoked)
        return b->revoked;
    if (a->self->primary_uid != b->self->primary_uid)
        return a->self->primary_uid;
    if (a->self->created != b->self->created)
        return a->self->created > b->self->created;
    return a->n != b->n ? a->n > b->n : memcmp(a->text, b->text, a->n) > 0;
}

/* Drops what nobody certified and puts the primary user id first, the others keeping their order. */
static void arrange_uids(struct contents *contents)
{
    unsigned kept = 0, best = 0;
    for (unsigned i = 0; i < contents->uid_n; i++) {
        if (!contents->uids[i].self) {
            user_id_clear(&contents->uids[i]);
            continue;
        }
        contents->uids[kept] = contents->uids[i];
        if (kept && rather_primary(&contents->uids[kept], &contents->uids[best]))
            best = kept;
        kept++;
    }
    contents->uid_n = kept;
    if (!best)
        return;
    struct user_id first = contents->uids[best];
    memmove(&contents->uids[1], &contents->uids[0], best * sizeof first);
    contents->uids[0] = first;
}

static gpg_error_t bind_all(struct contents *contents)
{
    gpg_error_t err = 0;
    struct component *primary = &contents->keys[0];
    for (unsigned i = 0; !err && i < contents->key_n; i++)
        err = order(&contents->keys[i].claims);
    for (unsigned i = 0; !err && i < contents->uid_n; i++)
        err = order(&contents->uids[i].claims);
    if (err)
        return err;
    check_revocations(contents, primary, SIG_KEY_REVOCATION, NULL);
    check_binding(contents, primary, SIG_DIRECT_KEY, NULL);
    for (unsigned i = 0; i < contents->uid_n; i++) {
        check_uid(contents, &contents->uids[i]);
        claims_clear(&contents->uids[i].claims);
    }
    bind_primary(contents);
    claims_clear(&primary->claims);
    primary->checked = true;
    arrange_uids(contents);
    return 0;
}

gpg_error_t certificate_parse(struct failure *failure, const uint8_t *bytes, size_t n, struct certificate **ret,
                              size_t *ret_used)
{
    struct certificate *certificate = NULL;
    struct contents *contents = calloc(1, sizeof *contents);
    if (!contents)
        return fail_errno(failure, ENOMEM, "a certificate cannot be read");
    contents->refs = 1;
    contents->now = (uint32_t)time(NULL);
    size_t used = 0;
    gpg_error_t err = collect(failure, contents, bytes, n, &used);
    if (!err)
        err = bind_all(contents);
    if (!err && !(certificate = certificate_over(contents)))
        err = fail_errno(failure, ENOMEM, "a certificate cannot be read");
    contents_free(contents);
    if (err)
        return err;
    *ret = certificate;
    *ret_used = used;
    return 0;
}

/* ---- questions ---- */

unsigned certificate_keys(const struct certificate *certificate)
{
    return certificate->contents->key_n;
}

struct key *certificate_key(const struct certificate *certificate, unsigned number)
{
    return certificate->contents->keys[number].key;
}

static enum key_state own_state(const struct component *component, uint32_t when)
{
    if (!component->bound)
        return KEY_UNBOUND;
    if (component->revocation == GONE_HARD)
        return KEY_REVOKED;
    if (component->revocation == GONE_SOFT && when >= component->revoked)
        return KEY_REVOKED_SOFT;
    if (component->key->created > when)
        return KEY_NOT_YET;
    return component->expires && component->expires <= when ? KEY_EXPIRED : KEY_VALID;
}

enum key_state certificate_key_state(const struct certificate *certificate, unsigned number, uint32_t when)
{
    enum key_state own = own_state(contents_key(certificate->contents, number), when);
    enum key_state primary = own_state(contents_key(certificate->contents, 0), when);
    if (own == KEY_UNBOUND || primary == KEY_UNBOUND)
        return KEY_UNBOUND;
    if (own == KEY_REVOKED || primary == KEY_REVOKED)
        return KEY_REVOKED;
    return primary != KEY_VALID ? primary : own;
}

uint32_t certificate_key_expires(const struct certificate *certificate, unsigned number)
{
    return contents_key(certificate->contents, number)->expires;
}

uint32_t certificate_key_revoked(const struct certificate *certificate, unsigned number)
{
    return contents_key(certificate->contents, number)->revoked;
}

unsigned certificate_key_uses(const struct certificate *certificate, unsigned number)
{
    return contents_key(certificate->contents, number)->uses;
}

unsigned certificate_uids(const struct certificate *certificate)
{
    return certificate->contents->uid_n;
}

const char *certificate_uid(const struct certificate *certificate, unsigned number, bool *ret_revoked)
{
    if (ret_revoked)
        *ret_revoked = certificate->contents->uids[number].revoked;
    return certificate->contents->uids[number].text;
}

size_t certificate_uid_length(const struct certificate *certificate, unsigned number)
{
    return certificate->contents->uids[number].n;
}

const struct signature *certificate_preferences(const struct certificate *certificate)
{
    const struct component *primary = &certificate->contents->keys[0];
    const unsigned number = certificate->named_uid < 0 ? 0 : (unsigned)certificate->named_uid;
    const struct signature *uid = certificate->contents->uid_n ? certificate->contents->uids[number].self : NULL;
    if (primary->key->version >= 6)
        return primary->binding ? primary->binding : uid;
    return uid ? uid : primary->binding;
}

int certificate_named_uid(const struct certificate *certificate)
{
    return certificate->named_uid;
}

void certificate_set_named_uid(struct certificate *certificate, int number)
{
    certificate->named_uid = number < (int)certificate->contents->uid_n ? number : -1;
}

bool certificate_disabled(const struct certificate *certificate)
{
    return certificate->disabled;
}

void certificate_set_disabled(struct certificate *certificate, bool disabled)
{
    certificate->disabled = disabled;
}

/* ---- choice ---- */

struct choice {
    const struct certificate *certificate;
    enum key_use use;
    uint32_t when;
    bool (*fits)(void *context, const struct key *key); /* may be NULL */
    void *context;
    gpg_error_t reason; /* why the best of those passed over was: the reason that comes nearest to success */
};

/* How near to success a reason is: which one the person wants to hear. */
static int nearness(gpg_error_t reason)
{
    switch (gpg_err_code(reason)) {
    case GPG_ERR_NO_SECKEY:
        return 4;
    case GPG_ERR_PUBKEY_ALGO:
        return 3;
    case GPG_ERR_KEY_EXPIRED:
        return 2;
    case GPG_ERR_CERT_REVOKED:
        return 1;
    default:
        return 0;
    }
}

static gpg_error_t check_choice(const struct choice *choice, unsigned number)
{
    const struct key *key = certificate_key(choice->certificate, number);
    /* What its algorithm cannot do, no signature allows. */
    if (!(uses_of_algo(key->algo) & (unsigned)choice->use) ||
        !(certificate_key_uses(choice->certificate, number) & (unsigned)choice->use))
        return gpg_error(GPG_ERR_UNUSABLE_PUBKEY);
    switch (certificate_key_state(choice->certificate, number, choice->when)) {
    case KEY_VALID:
        break;
    case KEY_EXPIRED:
        return gpg_error(GPG_ERR_KEY_EXPIRED);
    case KEY_REVOKED:
    case KEY_REVOKED_SOFT:
        return gpg_error(GPG_ERR_CERT_REVOKED);
    default:
        return gpg_error(GPG_ERR_UNUSABLE_PUBKEY);
    }
    if (key_usable(NULL, key))
        return gpg_error(GPG_ERR_PUBKEY_ALGO);
    if (choice->fits && !choice->fits(choice->context, key))
        return gpg_error(GPG_ERR_NO_SECKEY);
    return 0;
}

static bool choice_fits(struct choice *choice, unsigned number)
{
    gpg_error_t reason = check_choice(choice, number);
    if (reason && nearness(reason) >= nearness(choice->reason))
        choice->reason = reason;
    return !reason;
}

gpg_error_t certificate_choose_among(const struct certificate *certificate, enum key_use use, uint32_t when, int exact,
                                     bool (*fits)(void *context, const struct key *key), void *context,
                                     unsigned *ret_number)
{
    struct choice choice = {.certificate = certificate, .use = use, .when = when, .fits = fits, .context = context};
    unsigned best = 0;
    if (certificate->disabled && use == KEY_ENCRYPTS)
        return gpg_error(GPG_ERR_KEY_DISABLED);
    if (exact >= 0) {
        best = (unsigned)exact;
        if (best >= certificate->contents->key_n || !choice_fits(&choice, best))
            return choice.reason ? choice.reason : gpg_error(GPG_ERR_UNUSABLE_PUBKEY);
        *ret_number = best;
        return 0;
    }
    /* From the end, where the newest mostly stand: what is older than the best so far need not be checked. */
    for (unsigned i = certificate->contents->key_n; i-- > 1;)
        if ((!best || certificate_key(certificate, i)->created >= certificate_key(certificate, best)->created) &&
            choice_fits(&choice, i))
            best = i;
    if (!best && !choice_fits(&choice, 0))
        return choice.reason;
    *ret_number = best;
    return 0;
}

gpg_error_t certificate_choose(const struct certificate *certificate, enum key_use use, uint32_t when, int exact,
                               unsigned *ret_number)
{
    return certificate_choose_among(certificate, use, when, exact, NULL, NULL, ret_number);
}
