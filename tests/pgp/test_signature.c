/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "samples.h"

/* What a signature in a certificate can be about: the parts read so far. */
struct certificate_reader {
    struct key *primary;
    struct key *last; /* the last subkey, or NULL */
    struct packet_view uid;
    unsigned checked;
};

static struct key *parse_key(const struct packet_view *packet)
{
    struct key *key = NULL;
    size_t n;
    assert_int_equal(key_parse(NULL, packet->type, packet->body, packet->body_n, &key, &n), 0);
    return key;
}

static gpg_error_t check_one(const struct certificate_reader *reader, const struct signature *signature)
{
    bool about_uid = (signature->type >= SIG_CERT_GENERIC && signature->type <= SIG_CERT_POSITIVE) ||
                     signature->type == SIG_CERT_REVOCATION;
    if (about_uid)
        return signature_check_uid(signature, reader->primary, reader->primary, reader->uid.type, reader->uid.body,
                                   reader->uid.body_n);
    return signature_check_key(signature, reader->primary, reader->primary, reader->last);
}

/* A self-signature: right for what it is about, and for nothing else. */
static void check_signature(struct certificate_reader *reader, const struct packet_view *packet)
{
    struct signature *signature = NULL;
    assert_int_equal(signature_parse(NULL, packet->body, packet->body_n, &signature), 0);
    assert_true(signature->has_created);
    assert_true(signature_by(signature, reader->primary));
    assert_false(signature->critical_unknown);
    assert_int_equal(check_one(reader, signature), 0);
    if (signature->embedded && reader->last) {
        assert_int_equal(signature->embedded->type, SIG_PRIMARY_BINDING);
        assert_int_equal(signature_check_key(signature->embedded, reader->last, reader->primary, reader->last), 0);
        assert_int_equal(
            gpg_err_code(signature_check_key(signature->embedded, reader->primary, reader->primary, reader->last)),
            GPG_ERR_BAD_SIGNATURE);
    }
    struct certificate_reader wrong = *reader;
    wrong.last = reader->last ? NULL : reader->primary;
    wrong.uid.body_n -= wrong.uid.body_n > 0;
    assert_int_equal(gpg_err_code(check_one(&wrong, signature)), GPG_ERR_BAD_SIGNATURE);
    signature_free(signature);
    reader->checked++;
}

/* All signatures of a certificate. */
static unsigned check_certificate(const char *file)
{
    struct octets octets = sample_file(file);
    struct cursor cursor = cursor_over(octets.bytes, octets.n);
    struct packet_view packet;
    struct certificate_reader reader = {0};
    while (packet_view_next(&cursor, &packet))
        switch (packet.type) {
        case PACKET_PUBLIC_KEY:
        case PACKET_SECRET_KEY:
            reader.primary = parse_key(&packet);
            break;
        case PACKET_PUBLIC_SUBKEY:
        case PACKET_SECRET_SUBKEY:
            key_free(reader.last);
            reader.last = parse_key(&packet);
            break;
        case PACKET_USER_ID:
        case PACKET_USER_ATTRIBUTE:
            reader.uid = packet;
            break;
        case PACKET_SIGNATURE:
            check_signature(&reader, &packet);
            break;
        default:
            break;
        }
    assert_false(cursor.flawed);
    key_free(reader.primary);
    key_free(reader.last);
    free(octets.bytes);
    return reader.checked;
}

static void check_sample(const struct sample *sample)
{
    char file[64];
    snprintf(file, sizeof file, "samples/keys/%s.pub.asc", sample->name);
    assert_true(check_certificate(file) > 0);
}

static void certificates(void **state)
{
    (void)state;
    samples(check_sample);
    assert_int_equal(check_certificate("rfc9580/a3.pub.asc"), 2);
    assert_int_equal(check_certificate("rfc9580/a4.sec.asc"), 2);
}

static struct key *sample_primary(const char *file)
{
    struct octets octets = sample_file(file);
    struct packet_view packet;
    assert_true(nth_packet(octets, PACKET_PUBLIC_KEY, 0, &packet));
    struct key *key = parse_key(&packet);
    free(octets.bytes);
    return key;
}

/* RFC 9580 A.2 */
static void version_four_vector(void **state)
{
    struct octets key_body = from_hex("0453f35f0b16092b06010401da470f010107403f098994bdd916ed4053197934e4a87c80733a1280"
                                      "d62f8010992e43ee3b2406");
    struct octets body = from_hex("040016080006050255f95f95000a09108cfde12197965a9af62200ff56f90cca98e2102637bd983fdb16"
                                  "c131dfd27ed82bf4dde5606e0d756aed33660100d09c4fa11527f038e0f57f2201d82f2ea2c9033265fa"
                                  "6ceb489e854bae61b404");
    struct packet_view packet = {PACKET_PUBLIC_KEY, key_body.bytes, key_body.n};
    struct key *key = parse_key(&packet);
    struct signature *signature = NULL;
    (void)state;
    assert_int_equal(signature_parse(NULL, body.bytes, body.n, &signature), 0);
    assert_int_equal(signature->created, 0x55F95F95);
    assert_true(signature_by(signature, key));
    for (unsigned right = 0; right < 2; right++) {
        gcry_md_hd_t md;
        assert_int_equal(gcry_md_open(&md, GCRY_MD_SHA256, 0), 0);
        gcry_md_write(md, right ? "OpenPGP" : "openPGP", 7);
        assert_int_equal(gpg_err_code(signature_check(signature, key, md, NULL, 0)), right ? 0 : GPG_ERR_BAD_SIGNATURE);
    }
    signature_free(signature);
    key_free(key);
    free(key_body.bytes);
    free(body.bytes);
}

/* RFC 9580 A.6, A.7: one-pass packet, text, signature. */
static void version_six_vector(void **state)
{
    static const char text[] = "What we need from the grocery store:\r\n\r\n- tofu\r\n- vegetables\r\n- noodles\r\n";
    struct octets message = sample_file("rfc9580/a7.asc");
    struct packet_view packet;
    struct one_pass one_pass;
    struct signature *signature = NULL;
    gcry_md_hd_t md;
    struct key *key = sample_primary("rfc9580/a3.pub.asc");
    (void)state;
    assert_true(nth_packet(message, PACKET_ONE_PASS, 0, &packet));
    assert_int_equal(one_pass_parse(NULL, packet.body, packet.body_n, &one_pass), 0);
    assert_int_equal(one_pass.version, 6);
    assert_int_equal(one_pass.type, SIG_TEXT);
    assert_int_equal(one_pass.digest, DIGEST_SHA512);
    assert_int_equal(one_pass.algo, PUBKEY_ED25519);
    assert_int_equal(one_pass.salt_n, 32);
    assert_memory_equal(one_pass.fpr, key->fpr, 32);
    assert_true(one_pass.last);
    assert_true(nth_packet(message, PACKET_SIGNATURE, 0, &packet));
    assert_int_equal(signature_parse(NULL, packet.body, packet.body_n, &signature), 0);
    assert_memory_equal(signature->salt, one_pass.salt, 32);
    assert_int_equal(gcry_md_open(&md, GCRY_MD_SHA512, 0), 0);
    gcry_md_write(md, signature->salt, signature->salt_n);
    gcry_md_write(md, text, sizeof text - 1);
    assert_int_equal(signature_check(signature, key, md, NULL, 0), 0);
    signature_free(signature);
    key_free(key);
    free(message.bytes);
}

static struct octets raw_file(const char *name)
{
    char path[512];
    struct octets octets = {malloc(SAMPLE_FILE_MAX), 0};
    snprintf(path, sizeof path, "%s/%s", TESTDATA, name);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    octets.n = fread(octets.bytes, 1, SAMPLE_FILE_MAX, file);
    fclose(file);
    return octets;
}

/* Detached signatures by gpg, of version 4 and 5. */
static void detached(void **state)
{
    static const char *const names[] = {"ed25519", "rsa2048", "ed448"};
    struct octets payload = raw_file("samples/plain/payload.tar");
    (void)state;
    for (unsigned i = 0; i < ARRAY_SIZE(names); i++)
        for (unsigned wrong = 0; wrong < 2; wrong++) {
            char file[64];
            snprintf(file, sizeof file, "samples/msgs/payload.tar.%s.sig", names[i]);
            struct octets octets = raw_file(file);
            struct packet_view packet;
            struct signature *signature = NULL;
            gcry_md_hd_t md;
            snprintf(file, sizeof file, "samples/keys/%s.pub.asc", names[i]);
            struct key *key = sample_primary(file);
            assert_true(nth_packet(octets, PACKET_SIGNATURE, 0, &packet));
            assert_int_equal(signature_parse(NULL, packet.body, packet.body_n, &signature), 0);
            assert_true(signature_by(signature, key));
            assert_int_equal(signature->version, i == 2 ? 5 : 4);
            assert_int_equal(gcry_md_open(&md, algo_digest(signature->digest)->gcry, 0), 0);
            gcry_md_write(md, payload.bytes, payload.n - wrong);
            assert_int_equal(gpg_err_code(signature_check(signature, key, md, NULL, 0)),
                             wrong ? GPG_ERR_BAD_SIGNATURE : 0);
            signature_free(signature);
            key_free(key);
            free(octets.bytes);
        }
    free(payload.bytes);
}

static const uint8_t literal[] = {'b', 3, 'x', 'y', 'z', 1, 2, 3, 4};

/* Writes a signature over "text" and gives the packet. */
static struct octets write_signature(struct secret_key *secret_key, const struct signature_params *params)
{
    struct sink *sink = memory_sink_new(65536);
    gcry_md_hd_t md;
    size_t n;
    assert_int_equal(gcry_md_open(&md, algo_digest(params->digest)->gcry, 0), 0);
    if (secret_key->key->version == 6)
        gcry_md_write(md, params->salt, algo_digest(params->digest)->salt_size);
    gcry_md_write(md, "text", 4);
    assert_int_equal(signature_write(NULL, secret_key, params, md, sink), 0);
    const uint8_t *bytes = memory_sink_bytes(sink, &n);
    struct octets octets = {malloc(n), n};
    memcpy(octets.bytes, bytes, n);
    sink_free(sink);
    return octets;
}

static void check_one_pass(const struct key *key, const struct signature_params *params)
{
    struct sink *sink = memory_sink_new(1024);
    struct octets octets = {NULL, 0};
    struct packet_view packet;
    struct one_pass one_pass;
    assert_int_equal(one_pass_write(key, params, true, sink), 0);
    octets.bytes = (uint8_t *)(uintptr_t)memory_sink_bytes(sink, &octets.n);
    assert_true(nth_packet(octets, PACKET_ONE_PASS, 0, &packet));
    assert_int_equal(one_pass_parse(NULL, packet.body, packet.body_n, &one_pass), 0);
    assert_int_equal(one_pass.version, key->version == 6 ? 6 : 3);
    assert_int_equal(one_pass.algo, key->algo);
    assert_int_equal(one_pass.digest, params->digest);
    assert_true(one_pass.last);
    if (key->version == 6)
        assert_memory_equal(one_pass.salt, params->salt, one_pass.salt_n);
    assert_memory_equal(one_pass.keyid, key->keyid, 8);
    for (size_t n = 0; n < packet.body_n; n++)
        assert_int_not_equal(one_pass_parse(NULL, packet.body, n, &one_pass), 0);
    sink_free(sink);
}

static void check_written(const char *file, uint8_t digest, bool with_literal)
{
    static const struct notation notations[] = {{"a@example.org", "first", false},
                                                {"b@example.org", "second value", false}};
    struct secret_key *secret_key = sample_secret(file, NULL, 0);
    const struct key *key = secret_key->key;
    struct signature_params params = {.type = SIG_BINARY,
                                      .digest = digest,
                                      .created = 1717236900,
                                      .notations = notations,
                                      .notation_n = 2,
                                      .literal = with_literal ? literal : NULL,
                                      .literal_n = with_literal ? sizeof literal : 0};
    struct packet_view packet;
    struct signature *signature = NULL;
    gcry_md_hd_t md;
    signature_params_salt(key, &params);
    check_one_pass(key, &params);
    struct octets octets = write_signature(secret_key, &params);
    assert_true(nth_packet(octets, PACKET_SIGNATURE, 0, &packet));
    assert_int_equal(signature_parse(NULL, packet.body, packet.body_n, &signature), 0);
    assert_int_equal(signature->version, key->version);
    assert_int_equal(signature->created, 1717236900);
    assert_true(signature_by(signature, key));
    assert_int_equal(signature->issuer_fpr_n, key->fpr_n);
    assert_memory_equal(signature->issuer_keyid, key->keyid, 8);
    for (unsigned right = 0; right < 2; right++) {
        assert_int_equal(gcry_md_open(&md, algo_digest(digest)->gcry, 0), 0);
        gcry_md_write(md, signature->salt, signature->salt_n);
        gcry_md_write(md, right ? "text" : "Text", 4);
        assert_int_equal(gpg_err_code(signature_check(signature, key, md, params.literal, params.literal_n)),
                         right ? 0 : GPG_ERR_BAD_SIGNATURE);
    }
    signature_free(signature);
    secret_key_free(secret_key);
    free(octets.bytes);
}

static void writes(void **state)
{
    static const char *const files[] = {
        "samples/keys/rsa2048.sec.asc", "samples/keys/dsaelg.sec.asc",   "samples/keys/p256.sec.asc",
        "samples/keys/p384.sec.asc",    "samples/keys/bp512.sec.asc",    "samples/keys/k256.sec.asc",
        "samples/keys/ed25519.sec.asc", "samples/keys/ed448.sec.asc",    "samples/keys/v4x25519.sec.asc",
        "rfc9580/a4.sec.asc",           "samples/keys/v6x25519.sec.asc", "samples/keys/v6x448.sec.asc",
    };
    (void)state;
    for (unsigned i = 0; i < ARRAY_SIZE(files); i++) {
        check_written(files[i], DIGEST_SHA512, false);
        check_written(files[i], DIGEST_SHA512, true);
        check_written(files[i], DIGEST_SHA3_512, false);
    }
    check_written("samples/keys/ed25519.sec.asc", DIGEST_SHA256, false);
    check_written("rfc9580/a4.sec.asc", DIGEST_SHA3_256, false);
    check_written("samples/keys/rsa2048.sec.asc", DIGEST_SHA224, false);
    /* Halves of EdDSA and numbers of ECDSA now and then have leading zeros. */
    for (unsigned i = 0; i < 300; i++)
        check_written("samples/keys/ed25519.sec.asc", DIGEST_SHA256, false);
}

/* gpg accepts what was written. */
static void verified_by_gpg(void **state)
{
    static const char *const names[] = {"rsa2048", "dsaelg", "p384", "bp256", "k256", "ed25519"};
    static const struct notation notation = {"a@example.org", "value", false};
    char home[] = "/tmp/test_signature_XXXXXX", command[1024];
    (void)state;
    assert_non_null(mkdtemp(home));
    for (unsigned i = 0; i < ARRAY_SIZE(names); i++) {
        char file[64], path[64];
        struct signature_params params = {.type = SIG_BINARY,
                                          .digest = DIGEST_SHA512,
                                          .created = 1717236900,
                                          .notations = &notation,
                                          .notation_n = 1};
        snprintf(file, sizeof file, "samples/keys/%s.sec.asc", names[i]);
        struct secret_key *secret_key = sample_secret(file, NULL, 0);
        struct octets octets = write_signature(secret_key, &params);
        snprintf(path, sizeof path, "%s/%s.sig", home, names[i]);
        FILE *out = fopen(path, "wb");
        assert_non_null(out);
        assert_int_equal(fwrite(octets.bytes, 1, octets.n, out), octets.n);
        fclose(out);
        snprintf(command, sizeof command,
                 "gpg --homedir %s --batch --quiet --import %s/samples/keys/%s.pub.asc 2>/dev/null && printf text | "
                 "gpg --homedir %s --batch --status-fd 1 --verify %s - 2>/dev/null | grep -q 'GOODSIG'",
                 home, TESTDATA, names[i], home, path);
        if (system(command))
            fail_msg("gpg does not accept the signature by %s", names[i]);
        secret_key_free(secret_key);
        free(octets.bytes);
    }
    snprintf(command, sizeof command, "gpgconf --homedir %s --kill all; rm -rf %s", home, home);
    assert_int_equal(system(command), 0);
}

/* Digests that a key or a version does not allow. */
static void short_digests(void **state)
{
    static const struct {
        const char *file;
        uint8_t digest;
    } rows[] = {
        {"samples/keys/p384.sec.asc", DIGEST_SHA256},   {"samples/keys/bp512.sec.asc", DIGEST_SHA384},
        {"samples/keys/ed448.sec.asc", DIGEST_SHA256},  {"samples/keys/ed25519.sec.asc", DIGEST_SHA1},
        {"samples/keys/v6x25519.sec.asc", DIGEST_SHA1}, {"samples/keys/dsaelg.sec.asc", DIGEST_SHA1},
    };
    (void)state;
    for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
        struct secret_key *secret_key = sample_secret(rows[i].file, NULL, 0);
        struct signature_params params = {.digest = rows[i].digest};
        struct sink *sink = memory_sink_new(4096);
        struct failure failure;
        size_t n;
        gcry_md_hd_t md;
        failure_init(&failure);
        assert_int_equal(gcry_md_open(&md, algo_digest(params.digest)->gcry, 0), 0);
        assert_int_equal(gpg_err_code(signature_write(&failure, secret_key, &params, md, sink)), GPG_ERR_DIGEST_ALGO);
        assert_int_equal(gpg_err_code(failure_get(&failure, NULL)), GPG_ERR_DIGEST_ALGO);
        memory_sink_bytes(sink, &n);
        assert_int_equal(n, 0);
        failure_destroy(&failure);
        sink_free(sink);
        secret_key_free(secret_key);
    }
}

/* A version 4 signature with HASHED and UNHASHED subpackets and a value that is no matter. */
static struct octets with_subpackets(const char *hashed, const char *unhashed)
{
    char hex[4096];
    snprintf(hex, sizeof hex, "04 00 16 08 %04zx %s %04zx %s abcd 0001 01 0001 01", strlen(hashed) / 2, hashed,
             strlen(unhashed) / 2, unhashed);
    return from_hex(hex);
}

static struct signature *parsed(const char *hashed, const char *unhashed, gpg_err_code_t code)
{
    struct octets body = with_subpackets(hashed, unhashed);
    struct signature *signature = NULL;
    assert_int_equal(gpg_err_code(signature_parse(NULL, body.bytes, body.n, &signature)), code);
    free(body.bytes);
    return signature;
}

static void subpackets(void **state)
{
    (void)state;
    struct signature *signature = parsed("0502665B0000"          /* created */
                                         "050300000E10"          /* expires */
                                         "050900015180"          /* key expires */
                                         "020400"                /* not exportable */
                                         "021901"                /* primary user id */
                                         "040B090807"            /* ciphers */
                                         "03150A08"              /* digests */
                                         "0416020103"            /* compressions */
                                         "022202"                /* AEAD */
                                         "052709020702"          /* suites */
                                         "031B0C40"              /* flags */
                                         "021E0D"                /* features */
                                         "081D03616263646566",   /* reason */
                                         "09101122334455667788", /* issuer */
                                         0);
    assert_int_equal(signature->created, 0x665B0000);
    assert_int_equal(signature->expires, 3600);
    assert_true(signature->has_key_expires);
    assert_int_equal(signature->key_expires, 86400);
    assert_false(signature->exportable);
    assert_true(signature->primary_uid);
    assert_int_equal(signature->pref_cipher_n, 3);
    assert_memory_equal(signature->pref_cipher, "\x09\x08\x07", 3);
    assert_int_equal(signature->pref_digest_n, 2);
    assert_int_equal(signature->pref_compress_n, 3);
    assert_int_equal(signature->pref_aead_n, 1);
    assert_int_equal(signature->pref_suites_n, 4);
    assert_int_equal(signature->flags, 0x0C);
    assert_int_equal(signature->features, 0x0D);
    assert_true(signature->has_reason);
    assert_int_equal(signature->reason, 3);
    assert_true(signature->has_issuer_keyid);
    assert_memory_equal(signature->issuer_keyid, "\x11\x22\x33\x44\x55\x66\x77\x88", 8);
    signature_free(signature);
}

static void hashed_goes_first(void **state)
{
    (void)state;
    /* Everything but the issuer in the unhashed area is ignored; the hashed issuer stands. */
    struct signature *signature = parsed("09101122334455667788", "0502665B0000021BFF0910AAAAAAAAAAAAAAAA", 0);
    assert_false(signature->has_created);
    assert_false(signature->has_flags);
    assert_memory_equal(signature->issuer_keyid, "\x11\x22\x33\x44\x55\x66\x77\x88", 8);
    signature_free(signature);
    /* The last of several counts. */
    signature = parsed("0502000000010502000000020502000000"
                       "03",
                       "", 0);
    assert_int_equal(signature->created, 3);
    signature_free(signature);
    /* Without a creation time nothing is signed. */
    struct key *key = sample_primary("samples/keys/ed25519.pub.asc");
    gcry_md_hd_t md;
    signature = parsed("", "", 0);
    assert_int_equal(gcry_md_open(&md, GCRY_MD_SHA256, 0), 0);
    assert_int_equal(gpg_err_code(signature_check(signature, key, md, NULL, 0)), GPG_ERR_BAD_SIGNATURE);
    signature_free(signature);
    key_free(key);
}

static void critical(void **state)
{
    static const struct {
        const char *hashed;
        bool unknown;
    } rows[] = {
        {"026401", false},       /* unknown, not critical */
        {"02E401", true},        /* unknown, critical */
        {"0582665B0000", false}, /* known */
        {"0B14800000000001000161"
         "62",
         false}, /* a notation a=b */
        {"0B94800000000001000161"
         "62",
         true}, /* critical */
        {"022A01", false},
    };
    (void)state;
    for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
        struct signature *signature = parsed(rows[i].hashed, "02E401", 0);
        assert_int_equal(signature->critical_unknown, rows[i].unknown);
        signature_free(signature);
    }
}

static void refuses(void **state)
{
    static const char *const areas[] = {
        "00",             /* a subpacket without a type */
        "0502665B00",     /* cut */
        "0402665B00",     /* a time of three octets */
        "06026655B00000", /* of five */
        "FF00",
        "FFFFFFFFFF02",
        "C0",
        "022104",
        "022703",
        "0A14800000000001000161",
    };
    (void)state;
    for (unsigned i = 0; i < ARRAY_SIZE(areas); i++)
        assert_null(parsed(areas[i], "", GPG_ERR_INV_PACKET));
    struct octets body = with_subpackets("0502665B0000", "");
    struct signature *signature = NULL;
    for (size_t n = 0; n < body.n; n++) {
        uint8_t *cut = malloc(n + 1);
        memcpy(cut, body.bytes, n);
        assert_int_equal(gpg_err_code(signature_parse(NULL, cut, n, &signature)), GPG_ERR_INV_PACKET);
        free(cut);
    }
    body.bytes[0] = 7;
    assert_int_equal(gpg_err_code(signature_parse(NULL, body.bytes, body.n, &signature)), GPG_ERR_UNKNOWN_VERSION);
    body.bytes[0] = 4;
    body.bytes[2] = 99; /* an unknown algorithm parses */
    assert_int_equal(signature_parse(NULL, body.bytes, body.n, &signature), 0);
    assert_int_equal(signature->parts.n, 0);
    signature_free(signature);
    free(body.bytes);
}

/* A version 3 signature, made here: gpg made its last ones long ago. */
static void version_three(void **state)
{
    struct secret_key *secret_key = sample_secret("samples/keys/rsa2048.sec.asc", NULL, 0);
    static const uint8_t hashed[] = {SIG_BINARY, 0x40, 1, 2, 3};
    uint8_t digest[32], body[1024] = {3, 5};
    struct parts parts = {0};
    struct signature *signature = NULL;
    gcry_md_hd_t md;
    (void)state;
    gcry_md_hash_buffer(GCRY_MD_SHA256, digest, "text\x00\x40\x01\x02\x03", 9);
    assert_int_equal(pubkey_sign(NULL, secret_key, DIGEST_SHA256, digest, 32, &parts), 0);
    memcpy(body + 2, hashed, 5);
    memcpy(body + 7, secret_key->key->keyid, 8);
    body[15] = PUBKEY_RSA;
    body[16] = DIGEST_SHA256;
    memcpy(body + 17, digest, 2);
    put_be16(body + 19, (uint16_t)part_bits(&parts.part[0]));
    memcpy(body + 21, parts.part[0].bytes, parts.part[0].n);
    assert_int_equal(signature_parse(NULL, body, 21 + parts.part[0].n, &signature), 0);
    assert_int_equal(signature->created, 0x40010203);
    assert_true(signature_by(signature, secret_key->key));
    for (unsigned right = 0; right < 2; right++) {
        assert_int_equal(gcry_md_open(&md, GCRY_MD_SHA256, 0), 0);
        gcry_md_write(md, right ? "text" : "Text", 4);
        assert_int_equal(gpg_err_code(signature_check(signature, secret_key->key, md, NULL, 0)),
                         right ? 0 : GPG_ERR_BAD_SIGNATURE);
    }
    signature_free(signature);
    parts_clear(&parts);
    secret_key_free(secret_key);
}

/* Every bit of what is hashed, of the digest's start and of the value changed: never valid. */
static void mutations_of(const char *key_file)
{
    struct secret_key *secret_key = sample_secret(key_file, NULL, 0);
    struct signature_params params = {.type = SIG_BINARY, .digest = DIGEST_SHA512, .created = 1};
    struct packet_view packet;
    unsigned valid = 0;
    signature_params_salt(secret_key->key, &params);
    struct octets octets = write_signature(secret_key, &params);
    assert_true(nth_packet(octets, PACKET_SIGNATURE, 0, &packet));
    for (size_t i = 0; i < packet.body_n; i++)
        for (unsigned bit = 1; bit < 256; bit <<= 1) {
            uint8_t *changed = malloc(packet.body_n);
            struct signature *signature = NULL;
            gcry_md_hd_t md;
            memcpy(changed, packet.body, packet.body_n);
            changed[i] ^= (uint8_t)bit;
            if (!signature_parse(NULL, changed, packet.body_n, &signature)) {
                const struct digest_info *digest = algo_digest(signature->digest);
                assert_int_equal(gcry_md_open(&md, digest ? digest->gcry : GCRY_MD_SHA512, 0), 0);
                gcry_md_write(md, signature->salt, signature->salt_n);
                gcry_md_write(md, "text", 4);
                valid += !signature_check(signature, secret_key->key, md, NULL, 0);
                signature_free(signature);
            }
            free(changed);
        }
    /* The issuer of the unhashed area may change (10 octets there), and counts of bits within an octet. */
    assert_true(valid <= (secret_key->key->version == 4 ? 12 * 8u : 0u) + 14u);
    secret_key_free(secret_key);
    free(octets.bytes);
}

static void mutations(void **state)
{
    (void)state;
    mutations_of("samples/keys/rsa2048.sec.asc");
    mutations_of("samples/keys/dsaelg.sec.asc");
    mutations_of("samples/keys/p256.sec.asc");
    mutations_of("samples/keys/ed25519.sec.asc");
    mutations_of("samples/keys/ed448.sec.asc");
    mutations_of("rfc9580/a4.sec.asc");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(certificates),
        cmocka_unit_test(version_four_vector),
        cmocka_unit_test(version_six_vector),
        cmocka_unit_test(detached),
        cmocka_unit_test(writes),
        cmocka_unit_test(short_digests),
        cmocka_unit_test(verified_by_gpg),
        cmocka_unit_test(subpackets),
        cmocka_unit_test(hashed_goes_first),
        cmocka_unit_test(critical),
        cmocka_unit_test(refuses),
        cmocka_unit_test(version_three),
        cmocka_unit_test(mutations),
    };
    return cmocka_run_group_tests(tests, crypt_setup, crypt_teardown);
}
