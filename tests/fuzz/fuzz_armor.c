/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Armor: what comes out does not depend on the sizes of the reads, and binary survives the way there and back. */
#include "fuzz.h"

#include "pgp/armor.h"

#define BINARY_MAX (1024 * 1024)

struct outcome {
    gpg_error_t err;
    uint64_t n, hash;
    bool checksum_wrong;
};

static struct outcome decode(const uint8_t *bytes, size_t n, size_t step, const char *kind, bool multi)
{
    struct outcome outcome = {0};
    struct failure failure;
    struct source *armor = NULL;
    failure_init(&failure);
    outcome.err = armor_source_new(&failure, fuzz_source(bytes, n, step), kind, multi, &armor);
    FUZZ_CHECK(!outcome.err);
    outcome.err = fuzz_read_all(armor, BINARY_MAX, &outcome.n, &outcome.hash);
    if (!outcome.err)
        outcome.err = source_finish(armor);
    outcome.checksum_wrong = armor_checksum_wrong(armor);
    FUZZ_CHECK(!outcome.err == !failure_get(&failure, NULL));
    source_free(armor);
    failure_destroy(&failure);
    return outcome;
}

static void check_steps(const uint8_t *bytes, size_t n, size_t step, const char *kind, bool multi)
{
    struct outcome whole = decode(bytes, n, 0, kind, multi), pieces = decode(bytes, n, step, kind, multi);
    FUZZ_CHECK(gpg_err_code(whole.err) == gpg_err_code(pieces.err));
    FUZZ_CHECK(whole.checksum_wrong == pieces.checksum_wrong);
    if (!whole.err)
        FUZZ_CHECK(whole.n == pieces.n && whole.hash == pieces.hash);
}

static void check_detect(const uint8_t *bytes, size_t n)
{
    bool whole = false, pieces = false;
    struct source *source = fuzz_source(bytes, n, 0);
    FUZZ_CHECK(!armor_detect(source, &whole));
    source_free(source);
    source = fuzz_source(bytes, n, 3);
    FUZZ_CHECK(!armor_detect(source, &pieces));
    source_free(source);
    FUZZ_CHECK(whole == pieces);
}

static void check_round_trip(const uint8_t *bytes, size_t n, size_t step)
{
    struct sink *armor, *text = memory_sink_new(2 * n + 1024);
    struct source *in = fuzz_source(bytes, n, step);
    size_t text_n;
    const uint8_t *copy;
    uint8_t *kept;
    FUZZ_CHECK(text);
    struct sink *tee = text;
    FUZZ_CHECK(!armor_sink_new("PGP MESSAGE", NULL, step & 1, tee, &armor));
    FUZZ_CHECK(!pump(in, armor, NULL));
    FUZZ_CHECK(!sink_finish(armor));
    copy = memory_sink_bytes(text, &text_n);
    kept = malloc(text_n);
    FUZZ_CHECK(kept);
    memcpy(kept, copy, text_n);
    struct outcome outcome = decode(kept, text_n, step, "PGP MESSAGE", false);
    FUZZ_CHECK(!outcome.err && outcome.n == n && outcome.hash == fuzz_hash(FUZZ_HASH_START, bytes, n));
    FUZZ_CHECK(!outcome.checksum_wrong);
    free(kept);
    sink_free(armor);
    source_free(in);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    /* 1 … 80, taken from the input so that the fuzzer chooses */
    size_t step = n ? 1 + bytes[n - 1] % 80 : 1;
    check_steps(bytes, n, step, NULL, false);
    check_steps(bytes, n, step, NULL, true);
    check_steps(bytes, n, step, "PGP PUBLIC KEY BLOCK", true);
    check_detect(bytes, n);
    check_round_trip(bytes, n, step);
    return 0;
}
