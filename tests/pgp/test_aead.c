/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "faulty.h"
#include "samples.h"

#include "pgp/aead.h"
#include "pgp/framing.h"

#define LENGTH_MAX (3 * AEAD_BLOCK_SIZE)

static const uint8_t session_key[32] = "a session key of thirty-two octe";
static uint8_t plain[LENGTH_MAX + 100];

static struct aead_params params_of(enum aead_kind kind, enum aead_algo aead, uint8_t chunk_octet)
{
    struct aead_params params = {
        .kind = kind, .cipher = CIPHER_AES256, .aead = (uint8_t)aead, .chunk_octet = chunk_octet};
    memset(params.iv, 0xAB, sizeof params.iv);
    memset(params.salt, 0x5A, sizeof params.salt);
    return params;
}

static void seal(struct run *run, const struct aead_params *params, size_t n, size_t step, unsigned workers,
                 struct gathered *ret)
{
    struct sink *sink;
    struct secret *key = secret_from(session_key, sizeof session_key);
    assert_int_equal(aead_sink_new(run, params, key, workers, NULL, faulty_sink_new(ret, SIZE_MAX), &sink), 0);
    secret_free(key);
    assert_int_equal(push(sink, plain, n, step), 0);
    assert_int_equal(ret->finished, 1);
    assert_int_equal(ret->freed, 1);
}

static gpg_error_t unseal(struct run *run, const struct aead_params *params, const uint8_t *bytes, size_t n,
                          size_t step, unsigned workers, struct gathered *ret)
{
    struct source *body = faulty_source_new(bytes, n, step, SIZE_MAX), *source;
    struct secret *key = secret_from(session_key, sizeof session_key);
    assert_int_equal(aead_source_new(run, params, key, workers, body, &source), 0);
    secret_free(key);
    gpg_error_t err = pull(source, ret);
    source_free(body);
    return err;
}

/* Octets of the body for N octets of plaintext. */
static size_t sealed_size(const struct aead_params *params, size_t n)
{
    size_t chunk = (size_t)64 << params->chunk_octet;
    return n + (n + chunk - 1) / chunk * AEAD_TAG_SIZE + AEAD_TAG_SIZE;
}

static void round_trip(struct run *run, const struct aead_params *params, size_t n, size_t step, unsigned workers)
{
    struct gathered sealed, back;
    seal(run, params, n, step, workers, &sealed);
    assert_int_equal(sealed.n, sealed_size(params, n));
    assert_int_equal(unseal(run, params, sealed.bytes, sealed.n, step, workers, &back), 0);
    assert_int_equal(back.n, n);
    if (n)
        assert_memory_equal(back.bytes, plain, n);
    gathered_clear(&sealed);
    gathered_clear(&back);
}

/* Lengths around the ends of chunks, all modes and kinds, in steps. */
static void lengths_and_steps(void **state)
{
    (void)state;
    static const size_t lengths[] = {0, 1, 15, 16, 17, 63, 64, 65, 127, 128, 129, 192, 1000};
    for (unsigned kind = AEAD_PACKET_20; kind <= AEAD_SEIPD_2; kind++)
        for (unsigned aead = AEAD_EAX; aead <= AEAD_GCM; aead++)
            for (uint8_t octet = 0; octet < 3; octet++)
                for (size_t i = 0; i < ARRAY_SIZE(lengths); i++)
                    for (size_t step = 1; step < 300; step = 3 * step + 1) {
                        const struct aead_params params = params_of(kind, aead, octet);
                        round_trip(NULL, &params, lengths[i], step, 0);
                    }
}

/* Around the ends of ring blocks, with and without threads: the same octets. */
static void blocks_and_workers(void **state)
{
    (void)state;
    static const uint8_t octets[] = {0, 6, 12, 13, 14};
    struct run *run = run_new();
    for (size_t o = 0; o < ARRAY_SIZE(octets); o++)
        for (size_t at = AEAD_BLOCK_SIZE; at <= LENGTH_MAX; at += AEAD_BLOCK_SIZE)
            for (size_t n = at - 17; n <= at + 17; n += n == at - 1 || n == at ? 1 : 16) {
                const struct aead_params params = params_of(AEAD_SEIPD_2, AEAD_OCB, octets[o]);
                struct gathered serial, threaded;
                seal(NULL, &params, n, 100000, 0, &serial);
                seal(run, &params, n, 70001, 2, &threaded);
                assert_int_equal(serial.n, threaded.n);
                assert_memory_equal(serial.bytes, threaded.bytes, serial.n);
                gathered_clear(&serial);
                gathered_clear(&threaded);
                for (unsigned workers = 0; workers <= 2; workers++)
                    round_trip(run, &params, n, 65537, workers);
            }
    run_free(run);
}

/* What is encrypted while it is written is the same, however it comes. */
static void steps_of_writing(void **state)
{
    (void)state;
    static const size_t steps[] = {1, 15, 16, 17, 33, 4099, 65536, 65537, 0};
    const size_t n = AEAD_BLOCK_SIZE + 1003;
    for (unsigned aead = AEAD_EAX; aead <= AEAD_GCM; aead++) {
        const struct aead_params params = params_of(AEAD_SEIPD_2, aead, 12);
        struct gathered first, other, back;
        seal(NULL, &params, n, steps[0], 0, &first);
        assert_int_equal(first.n, sealed_size(&params, n));
        assert_int_equal(unseal(NULL, &params, first.bytes, first.n, 0, 0, &back), 0);
        assert_int_equal(back.n, n);
        assert_memory_equal(back.bytes, plain, n);
        gathered_clear(&back);
        for (size_t s = 1; s < ARRAY_SIZE(steps); s++) {
            seal(NULL, &params, n, steps[s], 0, &other);
            assert_int_equal(other.n, first.n);
            assert_memory_equal(other.bytes, first.bytes, first.n);
            gathered_clear(&other);
        }
        gathered_clear(&first);
    }
}

/* SEALED is refused, and what was lent before is the true beginning. */
static void expect_refused(struct run *run, const struct aead_params *params, const uint8_t *sealed, size_t n,
                           unsigned workers)
{
    struct gathered back;
    gpg_err_code_t code = gpg_err_code(unseal(run, params, sealed, n, 50, workers, &back));
    assert_true(code == GPG_ERR_CHECKSUM || (code == GPG_ERR_TRUNCATED && n < AEAD_TAG_SIZE));
    assert_true(back.n <= sizeof plain);
    if (back.n)
        assert_memory_equal(back.bytes, plain, back.n);
    gathered_clear(&back);
}

static void every_flip_and_cut_is_refused(void **state)
{
    (void)state;
    struct run *run = run_new();
    for (unsigned kind = AEAD_PACKET_20; kind <= AEAD_SEIPD_2; kind++)
        for (unsigned aead = AEAD_EAX; aead <= AEAD_GCM; aead++)
            for (size_t n = 0; n <= 200; n += 50) {
                const struct aead_params params = params_of(kind, aead, 0);
                struct gathered sealed;
                seal(NULL, &params, n, 0, 0, &sealed);
                for (size_t at = 0; at < sealed.n; at++) {
                    sealed.bytes[at] ^= (uint8_t)(1 << at % 8);
                    expect_refused(NULL, &params, sealed.bytes, sealed.n, 0);
                    if (at % 16 == 0)
                        expect_refused(run, &params, sealed.bytes, sealed.n, 2);
                    sealed.bytes[at] ^= (uint8_t)(1 << at % 8);
                    expect_refused(NULL, &params, sealed.bytes, at, 0);
                }
                uint8_t *longer = calloc(1, sealed.n + 40);
                assert_non_null(longer);
                memcpy(longer, sealed.bytes, sealed.n);
                for (size_t more = 1; more <= 40; more++)
                    expect_refused(NULL, &params, longer, sealed.n + more, 0);
                free(longer);
                gathered_clear(&sealed);
            }
    run_free(run);
}

/* Chunks put in the order of PICK (numbers of chunks; CHUNKS: the last tag), in small and in large chunks. */
static void expect_order_refused(uint8_t octet, const unsigned *pick, unsigned picks)
{
    enum { CHUNKS = 4 };
    size_t chunk = (size_t)64 << octet, piece = chunk + AEAD_TAG_SIZE;
    struct run *run = run_new();
    for (unsigned kind = AEAD_PACKET_20; kind <= AEAD_SEIPD_2; kind++)
        for (unsigned aead = AEAD_EAX; aead <= AEAD_GCM; aead++) {
            const struct aead_params params = params_of(kind, aead, octet);
            struct gathered sealed;
            seal(NULL, &params, CHUNKS * chunk, 0, 0, &sealed);
            uint8_t *made = malloc(picks * piece + 1);
            assert_non_null(made);
            size_t n = 0;
            for (unsigned i = 0; i < picks; i++) {
                size_t size = pick[i] == CHUNKS ? AEAD_TAG_SIZE : piece;
                memcpy(made + n, sealed.bytes + pick[i] * piece, size);
                n += size;
            }
            for (unsigned workers = 0; workers <= 2; workers += 2)
                expect_refused(run, &params, made, n, workers);
            free(made);
            gathered_clear(&sealed);
        }
    run_free(run);
}

static void order_is_kept(void **state)
{
    (void)state;
    for (uint8_t octet = 0; octet <= 10; octet += 10) {
        expect_order_refused(octet, (unsigned[]){1, 0, 2, 3, 4}, 5);
        expect_order_refused(octet, (unsigned[]){0, 1, 3, 2, 4}, 5);
        expect_order_refused(octet, (unsigned[]){0, 0, 1, 2, 3, 4}, 6);
        expect_order_refused(octet, (unsigned[]){0, 1, 2, 3, 3, 4}, 6);
        expect_order_refused(octet, (unsigned[]){1, 2, 3, 4}, 4);
        expect_order_refused(octet, (unsigned[]){0, 1, 3, 4}, 4);
        expect_order_refused(octet, (unsigned[]){0, 1, 2, 4}, 4);
        expect_order_refused(octet, (unsigned[]){0, 1, 2, 3}, 4);
        expect_order_refused(octet, (unsigned[]){4}, 1);
        expect_order_refused(octet, (unsigned[]){0, 1, 2, 3, 4, 4}, 6);
    }
}

/* Header fields are authenticated: another AEAD, chunk size, IV, salt or key opens nothing. */
static void header_counts(void **state)
{
    (void)state;
    for (unsigned kind = AEAD_PACKET_20; kind <= AEAD_SEIPD_2; kind++) {
        const struct aead_params params = params_of(kind, AEAD_OCB, 2);
        struct gathered sealed;
        seal(NULL, &params, 500, 0, 0, &sealed);
        struct aead_params other = params;
        other.chunk_octet = 3;
        expect_refused(NULL, &other, sealed.bytes, sealed.n, 0);
        other = params;
        other.aead = AEAD_EAX;
        expect_refused(NULL, &other, sealed.bytes, sealed.n, 0);
        other = params;
        other.cipher = CIPHER_CAMELLIA256;
        expect_refused(NULL, &other, sealed.bytes, sealed.n, 0);
        other = params;
        other.iv[0] ^= 1;
        other.salt[31] ^= 1;
        expect_refused(NULL, &other, sealed.bytes, sealed.n, 0);
        other = params;
        other.kind = kind == AEAD_PACKET_20 ? AEAD_SEIPD_2 : AEAD_PACKET_20;
        expect_refused(NULL, &other, sealed.bytes, sealed.n, 0);
        gathered_clear(&sealed);
    }
}

static void header_round_trip(void **state)
{
    (void)state;
    for (unsigned kind = AEAD_PACKET_20; kind <= AEAD_SEIPD_2; kind++)
        for (unsigned aead = AEAD_EAX; aead <= AEAD_GCM; aead++) {
            struct aead_params params = params_of(kind, aead, 16), back;
            uint8_t out[AEAD_HEADER_MAX], again[AEAD_HEADER_MAX];
            aead_params_fresh(&params);
            size_t n = aead_put_header(&params, out);
            assert_int_equal(out[0], kind == AEAD_PACKET_20 ? 1 : 2);
            for (size_t cut = 1; cut <= n; cut++) {
                struct source *body = faulty_source_new(out + 1, cut - 1, 1, SIZE_MAX);
                assert_int_equal(gpg_err_code(aead_read_header(NULL, kind, body, &back)),
                                 cut < n ? GPG_ERR_TRUNCATED : 0);
                source_free(body);
            }
            assert_int_equal(aead_put_header(&back, again), n);
            assert_memory_equal(out, again, n);
        }
}

static void refuses_parameters(void **state)
{
    (void)state;
    static const uint8_t headers[][3] = {
        {CIPHER_AES256, AEAD_OCB, 17}, {CIPHER_AES256, AEAD_OCB, 60}, {CIPHER_AES256, AEAD_OCB, 255},
        {CIPHER_AES256, 9, 4},         {CIPHER_AES256, 0, 4},         {99, AEAD_OCB, 4},
        {CIPHER_3DES, AEAD_OCB, 4},
    };
    for (size_t i = 0; i < ARRAY_SIZE(headers); i++) {
        struct source *body = memory_source_new(headers[i], 3, 0), *source;
        struct aead_params params;
        assert_int_equal(gpg_err_code(aead_read_header(NULL, AEAD_PACKET_20, body, &params)), GPG_ERR_NOT_SUPPORTED);
        params = params_of(AEAD_PACKET_20, headers[i][1], headers[i][2]);
        params.cipher = headers[i][0];
        struct secret *key = secret_from(session_key, 32);
        assert_int_equal(gpg_err_code(aead_source_new(NULL, &params, key, 0, body, &source)), GPG_ERR_NOT_SUPPORTED);
        secret_free(key);
        source_free(body);
    }
    const struct aead_params params = params_of(AEAD_SEIPD_2, AEAD_OCB, 4);
    struct secret *key = secret_from(session_key, 16);
    struct gathered out;
    struct sink *sink;
    assert_int_equal(gpg_err_code(aead_sink_new(NULL, &params, key, 0, NULL, faulty_sink_new(&out, SIZE_MAX), &sink)),
                     GPG_ERR_INV_KEYLEN);
    assert_int_equal(out.freed, 1);
    secret_free(key);
}

/* Failures above and below come through. */
static void failures_come_through(void **state)
{
    (void)state;
    const struct aead_params params = params_of(AEAD_SEIPD_2, AEAD_OCB, 0);
    struct secret *key = secret_from(session_key, sizeof session_key);
    struct gathered sealed, out;
    seal(NULL, &params, 150, 0, 0, &sealed);
    for (unsigned workers = 0; workers <= 2; workers += 2)
        for (size_t at = 0; at < sealed.n; at++) {
            struct run *run = run_new(); /* a failure in a thread ends its run */
            struct sink *sink;
            assert_int_equal(aead_sink_new(run, &params, key, workers, NULL, faulty_sink_new(&out, at), &sink), 0);
            assert_int_equal(gpg_err_code(push(sink, plain, 150, 7)), FAULT);
            assert_int_equal(out.freed, 1);
            gathered_clear(&out);
            run_free(run);
            run = run_new();
            struct source *body = faulty_source_new(sealed.bytes, sealed.n, 9, at), *source;
            assert_int_equal(aead_source_new(run, &params, key, workers, body, &source), 0);
            assert_int_equal(gpg_err_code(pull(source, &out)), FAULT);
            gathered_clear(&out);
            source_free(body);
            run_free(run);
        }
    gathered_clear(&sealed);
    secret_free(key);
}

/* --- Seeking --- */

/* A packet over SEALED, and how to open it. */
struct seeking {
    struct aead_params params;
    struct gathered packet;
    struct source *raw, *body, *source;
};

static void seeking_open(struct seeking *seeking, const uint8_t *sealed, size_t n)
{
    struct sink *sink;
    struct packet packet;
    struct secret *key = secret_from(session_key, sizeof session_key);
    bool end;
    assert_int_equal(packet_body_sink(PACKET_AEAD, 512, faulty_sink_new(&seeking->packet, SIZE_MAX), false, &sink), 0);
    assert_int_equal(push(sink, sealed, n, 0), 0);
    seeking->raw = memory_source_new(seeking->packet.bytes, seeking->packet.n, 0);
    assert_int_equal(packet_next(NULL, seeking->raw, &packet, &end), 0);
    assert_int_equal(packet_body_source(NULL, &packet, seeking->raw, &seeking->body), 0);
    assert_int_equal(aead_seek_source_new(NULL, &seeking->params, key, seeking->body, &seeking->source), 0);
    secret_free(key);
}

static void seeking_close(struct seeking *seeking)
{
    source_free(seeking->source);
    source_free(seeking->body);
    source_free(seeking->raw);
    gathered_clear(&seeking->packet);
}

/* Reads FIRST octets, skips, reads LAST more (or what there is) and finishes. What is read must be right. */
static gpg_error_t seek_in(struct seeking *seeking, size_t first, size_t skip, size_t last)
{
    static uint8_t to[sizeof plain];
    size_t got;
    gpg_error_t err = source_read(seeking->source, to, first, &got);
    if (got)
        assert_memory_equal(to, plain, got);
    if (!err)
        err = source_skip(seeking->source, skip);
    if (err)
        return err;
    err = source_read(seeking->source, to, last, &got);
    if (got)
        assert_memory_equal(to, plain + first + skip, got);
    return err ? err : source_finish(seeking->source);
}

static void every_skip(void **state)
{
    (void)state;
    static const size_t lengths[] = {0, 1, 64, 65, 128, 200, 320, 600};
    for (unsigned kind = AEAD_PACKET_20; kind <= AEAD_SEIPD_2; kind++)
        for (uint8_t octet = 0; octet < 3; octet++)
            for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
                const size_t n = lengths[i];
                struct seeking seeking = {.params = params_of(kind, AEAD_OCB, octet)};
                struct gathered sealed;
                seal(NULL, &seeking.params, n, 0, 0, &sealed);
                for (size_t first = 0; first <= n; first += 1 + first)
                    for (size_t skip = 0; skip <= n - first + 70; skip += 1 + skip / 6)
                        for (size_t last = 0; last <= 130; last += 65) {
                            seeking_open(&seeking, sealed.bytes, sealed.n);
                            gpg_error_t err = seek_in(&seeking, first, skip, last);
                            if (skip <= n - first)
                                assert_int_equal(err, 0);
                            else /* a last chunk or tag taken for a whole chunk fails as one */
                                assert_true(gpg_err_code(err) == GPG_ERR_TRUNCATED ||
                                            gpg_err_code(err) == GPG_ERR_CHECKSUM);
                            seeking_close(&seeking);
                        }
                gathered_clear(&sealed);
            }
}

/* 5 chunks and a bit; 70 octets are read, so that two chunks are open, and skipped is up to octet TO: where CHUNK of a
 * changed octet is opened, it is noticed, and where it was passed over, not. */
static bool is_opened(size_t chunk, size_t to, bool reads)
{
    const size_t landing = to / 64;
    if (chunk < 2 || landing <= 2) /* the latter: no chunk is passed over, so all are opened in the end */
        return true;
    return chunk == landing && (reads || to % 64);
}

static void flips_beside_skips(void **state)
{
    (void)state;
    enum { N = 5 * 64 + 20, PIECE = 64 + AEAD_TAG_SIZE };
    for (unsigned kind = AEAD_PACKET_20; kind <= AEAD_SEIPD_2; kind++) {
        struct seeking seeking = {.params = params_of(kind, AEAD_OCB, 0)};
        struct gathered sealed;
        seal(NULL, &seeking.params, N, 0, 0, &sealed);
        for (size_t at = 0; at < sealed.n; at++)
            for (size_t to = 70; to < N; to += 14)
                for (unsigned last = 0; last < 2; last++) {
                    const bool in_last_tag = at >= sealed.n - AEAD_TAG_SIZE;
                    const bool noticed = in_last_tag || is_opened(at / PIECE, to, last);
                    sealed.bytes[at] ^= 1;
                    seeking_open(&seeking, sealed.bytes, sealed.n);
                    assert_int_equal(gpg_err_code(seek_in(&seeking, 70, to - 70, last)),
                                     noticed ? GPG_ERR_CHECKSUM : 0);
                    assert_int_equal(aead_has_passed(seeking.source), to / 64 > 2 && at / PIECE >= 2);
                    seeking_close(&seeking);
                    sealed.bytes[at] ^= 1;
                }
        gathered_clear(&sealed);
    }
}

/* Among the chunks passed over, or behind: one left out, one twice, octets missing or too many. */
static void wrong_lengths_beside_skips(void **state)
{
    (void)state;
    enum { CHUNKS = 8, N = CHUNKS * 64, PIECE = 64 + AEAD_TAG_SIZE };
    for (unsigned kind = AEAD_PACKET_20; kind <= AEAD_SEIPD_2; kind++) {
        struct seeking seeking = {.params = params_of(kind, AEAD_OCB, 0)};
        struct gathered sealed;
        uint8_t longer[N + (CHUNKS + 2) * PIECE];
        seal(NULL, &seeking.params, N, 0, 0, &sealed);
        for (size_t skip = 200; skip <= N - 10; skip += 31)
            for (unsigned last = 0; last < 2; last++)
                for (size_t change = 1; change <= PIECE; change++) {
                    const size_t at = 2 * PIECE + 5; /* in the third chunk */
                    memcpy(longer, sealed.bytes, at);
                    memcpy(longer + at, sealed.bytes + at + change, sealed.n - at - change);
                    seeking_open(&seeking, longer, sealed.n - change);
                    assert_int_not_equal(seek_in(&seeking, 10, skip, last), 0);
                    seeking_close(&seeking);
                    memcpy(longer + at + change, sealed.bytes + at, sealed.n - at);
                    seeking_open(&seeking, longer, sealed.n + change);
                    assert_int_not_equal(seek_in(&seeking, 10, skip, last), 0);
                    seeking_close(&seeking);
                }
        gathered_clear(&sealed);
    }
}

static void tells_what_a_skip_passes(void **state)
{
    (void)state;
    struct seeking seeking = {.params = params_of(AEAD_SEIPD_2, AEAD_OCB, 0)};
    struct gathered sealed;
    seal(NULL, &seeking.params, 640, 0, 0, &sealed);
    for (size_t first = 1; first < 200; first++)
        for (size_t skip = 0; skip < 300; skip += 3) {
            seeking_open(&seeking, sealed.bytes, sealed.n);
            assert_int_equal(source_skip(seeking.source, first), 0);
            const bool passed = aead_has_passed(seeking.source), passes = aead_skip_passes(seeking.source, skip);
            assert_int_equal(passed, first >= 64);
            assert_int_equal(source_skip(seeking.source, skip), 0);
            assert_int_equal(aead_has_passed(seeking.source), passed || passes);
            assert_int_equal(source_finish(seeking.source), 0);
            seeking_close(&seeking);
        }
    gathered_clear(&sealed);
}

/* The encrypted packets of RFC 9580 A.8 … A.11, with the session keys given there. */
static void vectors(void **state)
{
    (void)state;
    static const char *const vector[][3] = {
        {"rfc9580/a8.asc", "dd708f6fa1ed65114d68d2343e7c2f1d", "d50ec5a2930729916281 47d72c8f86b7"},
        {"rfc9580/a9.asc", "3881bafe985412459b86c36f98cb9a5e", "d50eae5bf0cd6705500355816cb0c8ff"},
        {"rfc9580/a10.asc", "28e79ab82397d3c63de24ac217d7b791", "d50eae6aa1649b56aa835b2613902bd2"},
        {"rfc9580/a11.asc", "1936fc8568980274bb900d8319360c77", "d50e1ce2269a9eddef81032172b7ed7c"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(vector); i++) {
        struct octets file = sample_file(vector[i][0]), octets = from_hex(vector[i][1]);
        struct octets padding = from_hex(vector[i][2]);
        struct packet_view packet;
        assert_true(nth_packet(file, PACKET_SEIPD, 0, &packet));
        struct source *body = memory_source_new(packet.body + 1, packet.body_n - 1, 0), *source;
        struct aead_params params;
        assert_int_equal(aead_read_header(NULL, AEAD_SEIPD_2, body, &params), 0);
        struct secret *key = secret_from(octets.bytes, octets.n);
        assert_int_equal(aead_source_new(NULL, &params, key, 0, body, &source), 0);
        struct gathered back;
        assert_int_equal(pull(source, &back), 0);
        assert_int_equal(back.n, 37);
        assert_memory_equal(back.bytes, "\xcb\x13\x62\0\0\0\0\0Hello, world!", 21);
        assert_memory_equal(back.bytes + 21, padding.bytes, 16);

        /* Written again, with the same salt, it is the same. */
        struct gathered sealed;
        struct sink *sink;
        assert_int_equal(aead_sink_new(NULL, &params, key, 0, NULL, faulty_sink_new(&sealed, SIZE_MAX), &sink), 0);
        assert_int_equal(push(sink, back.bytes, back.n, 5), 0);
        assert_int_equal(sealed.n + 36, packet.body_n);
        assert_memory_equal(sealed.bytes, packet.body + 36, sealed.n);
        gathered_clear(&sealed);
        gathered_clear(&back);
        secret_free(key);
        source_free(body);
        free(file.bytes);
        free(octets.bytes);
        free(padding.bytes);
    }
}

static void single_pieces(void **state)
{
    (void)state;
    struct secret *key = secret_from(session_key, 32);
    uint8_t nonce[AEAD_IV_MAX] = {1, 2, 3}, text[50], tag[AEAD_TAG_SIZE];
    for (unsigned aead = AEAD_EAX; aead <= AEAD_GCM; aead++)
        for (size_t n = 0; n <= sizeof text; n++) {
            memcpy(text, plain, n);
            assert_int_equal(aead_seal(CIPHER_AES256, aead, key, nonce, "ad", 2, text, n, tag), 0);
            assert_int_equal(aead_open(CIPHER_AES256, aead, key, nonce, "ad", 2, text, n, tag), 0);
            assert_memory_equal(text, plain, n);
            assert_int_equal(gpg_err_code(aead_open(CIPHER_AES256, aead, key, nonce, "AD", 2, text, n, tag)),
                             GPG_ERR_CHECKSUM);
            for (size_t i = 0; i < n; i++)
                assert_int_equal(text[i], 0);
        }
    secret_free(key);
}

static int setup(void **state)
{
    fill_random(plain, sizeof plain, 3);
    return crypt_setup(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vectors),
        cmocka_unit_test(lengths_and_steps),
        cmocka_unit_test(blocks_and_workers),
        cmocka_unit_test(steps_of_writing),
        cmocka_unit_test(every_flip_and_cut_is_refused),
        cmocka_unit_test(order_is_kept),
        cmocka_unit_test(header_counts),
        cmocka_unit_test(header_round_trip),
        cmocka_unit_test(refuses_parameters),
        cmocka_unit_test(failures_come_through),
        cmocka_unit_test(every_skip),
        cmocka_unit_test(flips_beside_skips),
        cmocka_unit_test(wrong_lengths_beside_skips),
        cmocka_unit_test(tells_what_a_skip_passes),
        cmocka_unit_test(single_pieces),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
