/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Packets: headers and bodies come out the same however they are read; then every parser of a body, and what the keys
 * and signatures found are used for. */
#include "fuzz_pgp.h"

#include "pgp/cursor.h"
#include "pgp/framing.h"
#include "pgp/literal.h"
#include "pgp/session_key.h"
#include "pgp/signature.h"

#define BODY_MAX   (64 * 1024)
#define PASSPHRASE "fuzz"
/* Cheap key derivations only: the parameters are not what is looked at here. */
#define S2K_COUNT_CODE_MAX 0x90
#define ARGON2_PASSES_MAX  2
#define ARGON2_MEMORY_MAX  10

enum reading { READ_BODY, READ_PIECES, READ_SKIP };

struct walk {
    struct failure failure;
    uint64_t headers, bodies; /* hashes */
    uint64_t packets, octets;
};

/* The body of PACKET through a source of its own. */
static gpg_error_t walk_body(struct walk *walk, const struct packet *packet, struct source *raw, enum reading reading)
{
    struct source *body;
    uint64_t n = 0, hash = 0;
    gpg_error_t err = packet_body_source(&walk->failure, packet, raw, &body);
    FUZZ_CHECK(!err);
    if (reading == READ_SKIP && packet->form == LENGTH_DEFINITE) {
        err = source_skip(body, packet->length);
        n = packet->length;
    } else {
        err = fuzz_read_all(body, BODY_MAX, &n, &hash);
    }
    if (!err)
        err = source_finish(body);
    walk->octets += err ? 0 : n;
    walk->bodies = fuzz_hash(walk->bodies, &hash, sizeof hash);
    source_free(body);
    return err;
}

static gpg_error_t walk_packets(struct walk *walk, const uint8_t *bytes, size_t n, size_t step, enum reading reading)
{
    struct source *raw = fuzz_source(bytes, n, step);
    gpg_error_t err = 0;
    *walk = (struct walk){.headers = FUZZ_HASH_START, .bodies = FUZZ_HASH_START};
    failure_init(&walk->failure);
    while (!err) {
        struct packet packet;
        bool end = false;
        err = packet_next(&walk->failure, raw, &packet, &end);
        if (err || end)
            break;
        walk->packets++;
        walk->headers = fuzz_hash(walk->headers, packet.header, packet.header_n);
        if (reading == READ_BODY && packet.form == LENGTH_DEFINITE) {
            uint8_t *body;
            size_t body_n;
            err = packet_body_read(&walk->failure, &packet, raw, BODY_MAX, &body, &body_n);
            if (gpg_err_code(err) == GPG_ERR_TOO_LARGE) /* as it would be read in pieces */
                err = gpg_error(GPG_ERR_TRUNCATED);
            if (err)
                break;
            uint64_t hash = fuzz_hash(FUZZ_HASH_START, body, body_n);
            walk->bodies = fuzz_hash(walk->bodies, &hash, sizeof hash);
            walk->octets += body_n;
            free(body);
        } else {
            err = walk_body(walk, &packet, raw, reading);
        }
    }
    source_free(raw);
    failure_destroy(&walk->failure);
    return err;
}

static void check_framing(const uint8_t *bytes, size_t n, size_t step)
{
    struct walk body, pieces, skip;
    gpg_err_code_t code = gpg_err_code(walk_packets(&body, bytes, n, 0, READ_BODY));
    FUZZ_CHECK(code == gpg_err_code(walk_packets(&pieces, bytes, n, step, READ_PIECES)));
    FUZZ_CHECK(code == gpg_err_code(walk_packets(&skip, bytes, n, step, READ_SKIP)));
    FUZZ_CHECK(body.packets == pieces.packets && body.packets == skip.packets);
    FUZZ_CHECK(body.headers == pieces.headers && body.headers == skip.headers);
    FUZZ_CHECK(body.octets == pieces.octets && body.octets == skip.octets);
    if (!code)
        FUZZ_CHECK(body.bodies == pieces.bodies);
}

/* ---- bodies ---- */

/* Keys seen so far, for the signatures that follow. */
struct keys {
    struct failure failure;
    bool used; /* computed with: slow, so only for every eighth input, by its length */
    struct key *primary, *last;
};

static bool is_cheap(const struct s2k *s2k)
{
    if (s2k->mode == S2K_ARGON2)
        return s2k->passes <= ARGON2_PASSES_MAX && s2k->memory_bits <= ARGON2_MEMORY_MAX;
    return s2k->mode != S2K_ITERATED || s2k->count <= S2K_COUNT_CODE_MAX;
}

/* Whether a key derivation that starts anywhere in the first octets of a secret part would be slow: said too often
 * rather than too seldom. */
static bool secret_is_cheap(const uint8_t *bytes, size_t n)
{
    for (size_t at = 0; at < 8 && at < n; at++) {
        struct cursor cursor = cursor_over(bytes + at, n - at);
        struct s2k s2k;
        if (!s2k_parse(NULL, &cursor, &s2k) && !is_cheap(&s2k))
            return false;
    }
    return true;
}

static void use_secret(struct failure *failure, struct secret_key *secret_key)
{
    static const uint8_t digest[64] = "what is signed";
    struct parts parts = {0};
    if (secret_key_unlock(failure, secret_key))
        return;
    FUZZ_CHECK(secret_key_state(secret_key) == SECRET_PLAIN);
    /* Larger keys take seconds for each operation and do nothing that these do not. */
    if (key_can_sign_algo(secret_key->key) && secret_key->key->bits <= 2048) {
        gpg_error_t err = pubkey_sign(failure, secret_key, DIGEST_SHA512, digest, sizeof digest, &parts);
        if (!err)
            FUZZ_CHECK(!pubkey_verify(secret_key->key, DIGEST_SHA512, digest, sizeof digest, &parts));
        parts_clear(&parts);
    }
}

static void parse_secret_key(struct keys *keys, const struct packet *packet, const uint8_t *body, size_t n)
{
    const struct passphrase_source source = {.ask = fuzz_passphrase, .context = (char[]){PASSPHRASE}};
    struct secret_key *secret_key = NULL;
    struct key *key = NULL;
    size_t public_n;
    if (key_parse(NULL, packet->type, body, n, &key, &public_n))
        return;
    FUZZ_CHECK(public_n <= n);
    bool cheap = secret_is_cheap(body + public_n, n - public_n);
    key_free(key);
    if (!secret_key_parse(&keys->failure, packet->type, body, n, &source, &secret_key) && cheap && keys->used)
        use_secret(&keys->failure, secret_key);
    secret_key_free(secret_key);
}

static void use_key(struct failure *failure, const struct key *key)
{
    char hex[2 * KEY_FPR_MAX + 1];
    gcry_sexp_t sexp = NULL;
    struct parts parts = {0};
    key_fpr_hex(key, hex);
    FUZZ_CHECK(strlen(hex) == 2u * key->fpr_n);
    if (key_usable(failure, key))
        return;
    if (!key_sexp(key, &sexp))
        gcry_sexp_release(sexp);
    struct secret *frame = secret_new(40);
    FUZZ_CHECK(frame);
    if (key_can_encrypt_algo(key) && key->bits <= 2048 && !pubkey_encrypt(failure, key, frame, &parts))
        parts_clear(&parts);
    secret_free(frame);
}

static void parse_key(struct keys *keys, const struct packet *packet, const uint8_t *body, size_t n)
{
    struct key *key = NULL;
    size_t public_n;
    if (key_parse(&keys->failure, packet->type, body, n, &key, &public_n))
        return;
    FUZZ_CHECK(public_n <= n);
    if (keys->used)
        use_key(&keys->failure, key);
    key_free(keys->last);
    keys->last = key;
    if (!key->subkey) {
        key_free(keys->primary);
        keys->primary = key_ref(key);
    }
}

static void check_signature(const struct keys *keys, const struct signature *signature)
{
    static const uint8_t literal[6] = {'b'};
    const struct digest_info *digest = algo_digest(signature->digest);
    gcry_md_hd_t md;
    if (!keys->used || !keys->primary || key_usable(NULL, keys->last) || key_usable(NULL, keys->primary))
        return;
    (void)signature_by(signature, keys->last);
    if (digest && !gcry_md_open(&md, digest->gcry, 0)) {
        gcry_md_write(md, "content", 7);
        (void)!signature_check(signature, keys->last, md, literal, sizeof literal);
    }
    (void)!signature_check_key(signature, keys->primary, keys->primary, keys->last->subkey ? keys->last : NULL);
    (void)!signature_check_uid(signature, keys->primary, keys->primary, PACKET_USER_ID, (const uint8_t *)"A", 1);
}

static void parse_signature(struct keys *keys, const uint8_t *body, size_t n)
{
    struct signature *signature = NULL;
    if (signature_parse(&keys->failure, body, n, &signature))
        return;
    check_signature(keys, signature);
    if (signature->embedded)
        check_signature(keys, signature->embedded);
    signature_free(signature);
}

static void parse_esk(struct keys *keys, const struct packet *packet, const uint8_t *body, size_t n)
{
    struct esk *esk = NULL;
    if (esk_parse(&keys->failure, packet->type, body, n, &esk))
        return;
    (void)esk_hidden(esk);
    if (keys->last)
        (void)esk_for_key(esk, keys->last);
    if (esk->symmetric && is_cheap(&esk->s2k)) {
        struct secret *secret = secret_from(PASSPHRASE, strlen(PASSPHRASE));
        struct session_key session_key;
        FUZZ_CHECK(secret);
        if (!skesk_open(&keys->failure, esk, secret, NULL, &session_key))
            session_key_clear(&session_key);
        secret_free(secret);
    }
    esk_free(esk);
}

static void parse_literal(struct keys *keys, const uint8_t *body, size_t n)
{
    struct source *source = fuzz_source(body, n, 1);
    struct literal literal;
    if (!literal_read(&keys->failure, source, &literal))
        FUZZ_CHECK(literal.name[literal.name_n] == 0);
    source_free(source);
}

static void parse_body(struct keys *keys, const struct packet *packet, const uint8_t *body, size_t n)
{
    struct one_pass one_pass;
    switch (packet->type) {
    case PACKET_PKESK:
    case PACKET_SKESK:
        parse_esk(keys, packet, body, n);
        break;
    case PACKET_SIGNATURE:
        parse_signature(keys, body, n);
        break;
    case PACKET_ONE_PASS:
        (void)!one_pass_parse(&keys->failure, body, n, &one_pass);
        break;
    case PACKET_SECRET_KEY:
    case PACKET_SECRET_SUBKEY:
        parse_secret_key(keys, packet, body, n);
        break;
    case PACKET_PUBLIC_KEY:
    case PACKET_PUBLIC_SUBKEY:
        parse_key(keys, packet, body, n);
        break;
    case PACKET_LITERAL:
        parse_literal(keys, body, n);
        break;
    default:
        break;
    }
}

static void parse_bodies(const uint8_t *bytes, size_t n)
{
    struct keys keys = {.used = n % 8 == 0};
    struct source *raw = fuzz_source(bytes, n, 0);
    struct packet packet;
    bool end;
    failure_init(&keys.failure);
    while (!packet_next(NULL, raw, &packet, &end) && !end) {
        uint8_t *body;
        size_t body_n;
        if (packet_body_read(NULL, &packet, raw, BODY_MAX, &body, &body_n))
            break;
        parse_body(&keys, &packet, body, body_n);
        free(body);
    }
    source_free(raw);
    key_free(keys.primary);
    key_free(keys.last);
    failure_destroy(&keys.failure);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    fuzz_crypt_init();
    if (n > BODY_MAX)
        return 0;
    check_framing(bytes, n, n ? 1 + bytes[n - 1] % 80 : 1);
    parse_bodies(bytes, n);
    return 0;
}
