/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "faulty.h"
#include "samples.h"

#include "pgp/agent.h"
#include "pgp/esk_set.h"
#include "pgp/mdc.h"

#include <signal.h>
#include <unistd.h>

static const struct s2k cheap = {.mode = S2K_ITERATED, .digest = DIGEST_SHA256, .salt = "saltsalt"};

static gpg_error_t add_body(struct esk_set *set, unsigned type, const void *body, size_t n)
{
    const struct esk *esk;
    return esk_set_add(set, NULL, type, body, n, &esk);
}

static void add_packet(struct esk_set *set, struct gathered *gathered)
{
    struct packet_view packet;
    assert_true(nth_packet((struct octets){gathered->bytes, gathered->n}, 0, 0, &packet));
    assert_int_equal(add_body(set, packet.type, packet.body, packet.body_n), 0);
    gathered_clear(gathered);
}

static void add_passphrase(struct esk_set *set, unsigned version, const char *passphrase,
                           const struct session_key *session_key)
{
    struct gathered out;
    struct sink *sink = faulty_sink_new(&out, SIZE_MAX);
    struct secret *secret = secret_from(passphrase, strlen(passphrase));
    assert_int_equal(skesk_write(NULL, version, secret, &cheap, CIPHER_AES256, AEAD_OCB, session_key, sink), 0);
    sink_free(sink);
    secret_free(secret);
    add_packet(set, &out);
}

/* For the encryption subkey of a sample. */
static void add_key(struct esk_set *set, const char *name, unsigned version, bool hidden,
                    const struct session_key *session_key)
{
    char file[64];
    struct gathered out;
    snprintf(file, sizeof file, "samples/keys/%s.sec.asc", name);
    struct secret_key *secret_key = sample_secret(file, NULL, 1);
    struct sink *sink = faulty_sink_new(&out, SIZE_MAX);
    assert_int_equal(pkesk_write(NULL, version, secret_key->key, hidden, session_key, sink), 0);
    sink_free(sink);
    secret_key_free(secret_key);
    add_packet(set, &out);
}

/* The start of data that SESSION_KEY encrypts. */
static void put_head(const struct session_key *session_key, uint8_t head[MDC_PREFIX_MAX])
{
    struct gathered out;
    struct sink *sink;
    assert_int_equal(
        mdc_sink_new(NULL, session_key->cipher, session_key->key, 0, NULL, faulty_sink_new(&out, SIZE_MAX), &sink), 0);
    assert_int_equal(push(sink, "", 0, 0), 0);
    memcpy(head, out.bytes, MDC_PREFIX_MAX);
    gathered_clear(&out);
}

static void expect_open(struct esk_set *set, const struct read_params *params, const struct esk_target *target,
                        const struct session_key *session_key)
{
    struct failure failure;
    struct esk_opened opened;
    failure_init(&failure);
    gpg_error_t err = esk_set_open(set, &failure, params, target, &opened);
    if (err)
        print_error("%s\n", failure.sentence);
    assert_int_equal(err, 0);
    assert_int_equal(opened.session_key.key->n, session_key->key->n);
    assert_memory_equal(opened.session_key.key->bytes, session_key->key->bytes, session_key->key->n);
    session_key_clear(&opened.session_key);
    failure_destroy(&failure);
}

static gpg_err_code_t refused(struct esk_set *set, const struct read_params *params, const struct esk_target *target)
{
    struct failure failure;
    struct esk_opened opened;
    failure_init(&failure);
    gpg_error_t err = esk_set_open(set, &failure, params, target, &opened);
    assert_true(err != 0);
    assert_int_equal(gpg_err_code(failure_get(&failure, NULL)), gpg_err_code(err));
    assert_true(strlen(failure.sentence) > 10);
    failure_destroy(&failure);
    return gpg_err_code(err);
}

static struct keystore *keystore_of(struct failure *failure, const char *name)
{
    char path[256];
    struct keystore *keystore = keystore_new(failure);
    snprintf(path, sizeof path, "%s/samples/keys/%s.sec.asc", TESTDATA, name);
    assert_int_equal(keystore_add_secret_file(keystore, path, NULL), 0);
    return keystore;
}

/* Version 4 says little about a wrong passphrase: among many packets the right one is found by the data itself. */
/* OTHERS packets for other passphrases, then one for "right": some of the others seem to fit it too (version 4). */
static struct esk_set *right_behind(unsigned others, const struct session_key *session_key)
{
    struct esk_set *set = esk_set_new();
    for (unsigned i = 0; i < others; i++) {
        char other[24];
        snprintf(other, sizeof other, "other %u", i);
        add_passphrase(set, 4, other, session_key);
    }
    add_passphrase(set, 4, "right", session_key);
    return set;
}

static void passphrase_among_many(void **state)
{
    (void)state;
    struct session_key session_key;
    uint8_t head[MDC_PREFIX_MAX];
    assert_int_equal(session_key_new(CIPHER_AES256, &session_key), 0);
    struct esk_set *set = right_behind(63, &session_key);
    put_head(&session_key, head);
    char right[] = "right", wrong[] = "wrong";
    struct passphrase_source source = {.ask = says, .context = right};
    const struct read_params params = {.passphrases = &source};
    const struct esk_target target = {.protection = PROTECT_SEIPD_1, .head = head, .head_n = sizeof head};
    expect_open(set, &params, &target, &session_key);
    source.context = wrong;
    assert_int_equal(refused(set, &params, &target), GPG_ERR_BAD_PASSPHRASE);
    esk_set_free(set);
    /* A passphrase is tried on 64 packets and no more. */
    source.context = right;
    set = right_behind(64, &session_key);
    assert_int_equal(refused(set, &params, &target), GPG_ERR_BAD_PASSPHRASE);
    session_key_clear(&session_key);
    esk_set_free(set);
}

static void keys_named_and_hidden(void **state)
{
    (void)state;
    struct failure failure;
    struct session_key session_key;
    failure_init(&failure);
    struct keystore *keystore = keystore_of(&failure, "p256");
    const struct read_params params = {.keystore = keystore};
    assert_int_equal(session_key_new(CIPHER_AES256, &session_key), 0);
    for (unsigned hidden = 0; hidden <= 1; hidden++) {
        struct esk_set *set = esk_set_new();
        add_key(set, "rsa2048", 3, hidden, &session_key);
        add_key(set, "ed25519", 3, hidden, &session_key); /* ECDH as well: tried in vain where it is hidden */
        const struct esk_target target = {.protection = PROTECT_PACKET_20, .cipher = CIPHER_AES256};
        assert_int_equal(refused(set, &params, &target), GPG_ERR_NO_SECKEY);
        add_key(set, "p256", 3, hidden, &session_key);
        assert_int_equal(esk_set_count(set), 3);
        expect_open(set, &params, &target, &session_key);
        /* Another cipher than the session key's is no fit. */
        const struct esk_target camellia = {.protection = PROTECT_PACKET_20, .cipher = CIPHER_CAMELLIA256};
        gpg_err_code_t code = refused(set, &params, &camellia);
        assert_int_equal(code, hidden ? GPG_ERR_NO_SECKEY : GPG_ERR_DECRYPT_FAILED);
        esk_set_free(set);
    }
    session_key_clear(&session_key);
    keystore_free(keystore);
    failure_destroy(&failure);
}

/* Versions that do not go with the data are not used, so that its protection cannot be exchanged. */
static void versions_go_together(void **state)
{
    (void)state;
    struct failure failure;
    struct session_key session_key;
    uint8_t head[MDC_PREFIX_MAX];
    failure_init(&failure);
    struct keystore *keystore = keystore_of(&failure, "p256");
    assert_int_equal(session_key_new(CIPHER_AES256, &session_key), 0);
    put_head(&session_key, head);
    char right[] = "right";
    const struct passphrase_source source = {.ask = says, .context = right};
    const struct read_params params = {.keystore = keystore, .passphrases = &source};
    for (unsigned version = 3; version <= 6; version++)
        for (unsigned protection = PROTECT_SEIPD_1; protection <= PROTECT_SEIPD_2; protection++)
            for (unsigned key = version == 4 || version == 5 ? 0 : version == 3; key <= (version % 3 == 0); key++) {
                struct esk_set *set = esk_set_new();
                if (key)
                    add_key(set, "p256", version, false, &session_key);
                else
                    add_passphrase(set, version, right, &session_key);
                const struct esk_target target = {.protection = protection,
                                                  .cipher = protection == PROTECT_SEIPD_1 ? 0 : CIPHER_AES256,
                                                  .head = head,
                                                  .head_n = sizeof head};
                bool goes = protection == PROTECT_SEIPD_2     ? version == 6
                            : protection == PROTECT_PACKET_20 ? version <= 5
                                                              : version <= 4;
                if (goes)
                    expect_open(set, &params, &target, &session_key);
                else
                    assert_int_equal(refused(set, &params, &target), GPG_ERR_INV_PACKET);
                esk_set_free(set);
            }
    session_key_clear(&session_key);
    keystore_free(keystore);
    failure_destroy(&failure);
}

static void session_key_given(void **state)
{
    (void)state;
    struct session_key session_key;
    struct esk_set *set = esk_set_new();
    assert_int_equal(session_key_new(CIPHER_AES128, &session_key), 0);
    const struct read_params params = {.session_key = &session_key};
    struct esk_target target = {.protection = PROTECT_PACKET_20, .cipher = CIPHER_AES128};
    expect_open(set, &params, &target, &session_key);
    target.cipher = CIPHER_AES256;
    assert_int_equal(refused(set, &params, &target), GPG_ERR_BAD_KEY);
    session_key_clear(&session_key);
    esk_set_free(set);
}

static void what_is_skipped(void **state)
{
    (void)state;
    static const uint8_t newer[] = {10, 1, 2, 3}, kyber[] = {3, 1, 2, 3, 4, 5, 6, 7, 8, PUBKEY_KYBER, 0};
    static const uint8_t cipher_99[] = {4, 99, 0, 8}, cut[] = {3, 1, 2};
    const struct esk_target target = {.protection = PROTECT_PACKET_20, .cipher = CIPHER_AES256};
    const struct read_params params = {0};
    struct esk_set *set = esk_set_new();
    assert_int_equal(refused(set, &params, &target), GPG_ERR_NO_SECKEY);
    assert_int_equal(add_body(set, PACKET_PKESK, newer, sizeof newer), 0);
    assert_int_equal(refused(set, &params, &target), GPG_ERR_NOT_SUPPORTED);
    esk_set_free(set);
    set = esk_set_new();
    assert_int_equal(add_body(set, PACKET_PKESK, kyber, sizeof kyber), 0);
    assert_int_equal(refused(set, &params, &target), GPG_ERR_NOT_SUPPORTED);
    esk_set_free(set);
    set = esk_set_new();
    assert_int_equal(add_body(set, PACKET_SKESK, cipher_99, sizeof cipher_99), 0);
    assert_int_equal(refused(set, &params, &target), GPG_ERR_NOT_SUPPORTED);
    assert_int_equal(gpg_err_code(add_body(set, PACKET_PKESK, cut, sizeof cut)), GPG_ERR_INV_PACKET);
    for (unsigned i = 1; i < MESSAGE_ESK_MAX; i++)
        assert_int_equal(add_body(set, PACKET_PKESK, newer, sizeof newer), 0);
    assert_int_equal(gpg_err_code(add_body(set, PACKET_PKESK, newer, sizeof newer)), GPG_ERR_TOO_MANY);
    esk_set_free(set);
    esk_set_free(NULL);
}

/* Too much memory for one packet: the others are tried, and if none opens, that is said. */
static void derivation_over_the_limit(void **state)
{
    (void)state;
    struct session_key session_key;
    struct esk_set *set = esk_set_new();
    uint8_t argon2[1 + 2 + 20 + 15 + 48] = {5, CIPHER_AES256, AEAD_OCB, S2K_ARGON2};
    argon2[3 + 17] = 1;  /* t */
    argon2[3 + 18] = 1;  /* p */
    argon2[3 + 19] = 22; /* 4 GiB */
    char right[] = "right";
    const struct passphrase_source source = {.ask = says, .context = right};
    const struct read_params params = {.passphrases = &source};
    const struct esk_target target = {.protection = PROTECT_PACKET_20, .cipher = CIPHER_AES256};
    assert_int_equal(session_key_new(CIPHER_AES256, &session_key), 0);
    assert_int_equal(add_body(set, PACKET_SKESK, argon2, sizeof argon2), 0);
    assert_int_equal(refused(set, &params, &target), GPG_ERR_RESOURCE_LIMIT);
    add_passphrase(set, 5, right, &session_key);
    expect_open(set, &params, &target, &session_key);
    session_key_clear(&session_key);
    esk_set_free(set);
}

/* ---- keys on cards, behind a scripted agent ---- */

/* Keys by letter. Of those of 2048 bits the modulus of 'a' is the greatest and that of 'c' the smallest, so that what
 * is for 'c' could always be for 'a' or 'b'. */
static const struct card_key {
    char letter;
    const char *name;
    unsigned number;
} card_keys[] = {{'a', "rsa2048", 1}, {'b', "multi", 1},  {'c', "pgpyrsa", 1}, {'d', "rsa3072", 1},
                 {'e', "p256", 1},    {'g', "dsaelg", 1}, {'k', "k256", 1},    {'x', "photo", 1}};

/* A message, and where the keys are. Capital: the packet names its key, else it hides it; '!' before it: it is damaged.
 */
struct card_row {
    const char *packets;
    const char *cards, *software;
    const char *asked; /* each PKDECRYPT: key, packet */
    bool opens;
    bool left_out; /* it is said that not everything was tried */
};

struct card_home {
    char path[64];
    char *socket_name;
    struct agent *agent;
    struct keystore *keystore;
    struct failure failure;
    struct session_key session_key;
    unsigned warnings;
};

static FILE *home_file(const struct card_home *home, const char *name, const char *mode)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", home->path, name);
    return fopen(path, mode);
}

static void put_line(const struct card_home *home, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void put_line(const struct card_home *home, const char *name, const char *format, ...)
{
    FILE *file = home_file(home, name, "a");
    va_list arguments;
    assert_non_null(file);
    va_start(arguments, format);
    assert_true(vfprintf(file, format, arguments) > 0);
    va_end(arguments);
    assert_int_equal(fclose(file), 0);
}

static void to_hex(const uint8_t *bytes, size_t n, char *out)
{
    for (size_t i = 0; i < n; i++)
        snprintf(out + 2 * i, 3, "%02X", bytes[i]);
}

static struct secret_key *card_key_of(const struct card_key *card_key)
{
    char file[64];
    snprintf(file, sizeof file, "samples/keys/%s.sec.asc", card_key->name);
    return sample_secret(file, NULL, card_key->number);
}

/* The agent knows the keys of ROW, and the keyring has the certificates of all. */
static void put_keys(struct card_home *home, const struct card_row *row)
{
    for (unsigned i = 0; i < ARRAY_SIZE(card_keys); i++) {
        char path[256], grip[41];
        snprintf(path, sizeof path, "%s/samples/keys/%s.pub.asc", TESTDATA, card_keys[i].name);
        assert_int_equal(keystore_add_keyring(home->keystore, path, false), 0);
        struct secret_key *secret_key = card_key_of(&card_keys[i]);
        to_hex(secret_key->key->keygrip, 20, grip);
        secret_key_free(secret_key);
        if (strchr(row->cards, card_keys[i].letter))
            put_line(home, "keys", "%s T %c\n", grip, card_keys[i].letter);
        if (strchr(row->software, card_keys[i].letter))
            put_line(home, "keys", "%s D %c\n", grip, card_keys[i].letter);
    }
}

/* Adds a packet for LETTER, and tells the agent what is in it. */
static void put_packet(const struct card_home *home, struct esk_set *set, char letter, bool damaged)
{
    unsigned i = 0;
    const bool hidden = letter >= 'a';
    const char owner = (char)(hidden ? letter : letter - 'A' + 'a');
    const struct secret *key = home->session_key.key;
    struct gathered out;
    struct packet_view packet;
    const struct esk *esk = NULL;
    char number[2 * 512 + 1], frame[2 * 64 + 1] = "-";
    while (card_keys[i].letter != owner)
        assert_true(++i < ARRAY_SIZE(card_keys));
    struct secret_key *secret_key = card_key_of(&card_keys[i]);
    struct sink *sink = faulty_sink_new(&out, SIZE_MAX);
    assert_int_equal(pkesk_write(NULL, 3, secret_key->key, hidden, &home->session_key, sink), 0);
    sink_free(sink);
    assert_true(nth_packet((struct octets){out.bytes, out.n}, 0, 0, &packet));
    assert_int_equal(esk_set_add(set, NULL, packet.type, packet.body, packet.body_n, &esk), 0);
    to_hex(esk->parts.part[0].bytes, esk->parts.part[0].n, number);
    if (!damaged && !secret_key->key->curve) {
        uint8_t octets[64] = {home->session_key.cipher};
        unsigned sum = 0;
        for (size_t j = 0; j < key->n; j++)
            sum += key->bytes[j];
        memcpy(octets + 1, key->bytes, key->n);
        put_be16(octets + 1 + key->n, (uint16_t)sum);
        to_hex(octets, key->n + 3, frame);
    }
    put_line(home, "packets", "%c %s %s\n", owner, number, frame);
    secret_key_free(secret_key);
    gathered_clear(&out);
}

static void card_home_new(struct card_home *home, const struct card_row *row)
{
    char program[512];
    *home = (struct card_home){.path = "/tmp/test_esk_set_XXXXXX"};
    failure_init(&home->failure);
    assert_non_null(mkdtemp(home->path));
    assert_int_equal(agent_socket_name(home->path, false, &home->socket_name), 0);
    put_line(home, "socket", "%s\n", home->socket_name);
    home->keystore = keystore_new(&home->failure);
    put_keys(home, row);
    snprintf(program, sizeof program, "%s", __FILE__);
    strcpy(strrchr(program, '/'), "/agent.py");
    const struct agent_params params = {.home = home->path, .program = program};
    assert_int_equal(agent_open(&home->failure, &params, &home->agent), 0);
    assert_int_equal(agent_connect(&home->failure, home->agent), 0);
    keystore_set_provider(home->keystore, agent_provider(home->agent));
    assert_int_equal(session_key_new(CIPHER_AES256, &home->session_key), 0);
}

static void card_home_free(struct card_home *home)
{
    char command[256];
    int pid = 0;
    FILE *file = home_file(home, "pid", "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%d", &pid), 1);
    fclose(file);
    keystore_free(home->keystore);
    agent_free(home->agent);
    session_key_clear(&home->session_key);
    failure_destroy(&home->failure);
    assert_int_equal(kill(pid, SIGTERM), 0);
    unlink(home->socket_name);
    *strrchr(home->socket_name, '/') = '\0';
    snprintf(command, sizeof command, "rm -r %s; rmdir %s 2>/dev/null", home->path, home->socket_name);
    assert_int_not_equal(system(command), -1);
    free(home->socket_name);
}

static void count_warnings(void *context, const struct message_event *event)
{
    struct card_home *home = context;
    home->warnings += event->kind == EVENT_WARNING;
}

static void card_case(const struct card_row *row)
{
    struct card_home home;
    struct esk_set *set = esk_set_new();
    char asked[64] = "";
    card_home_new(&home, row);
    for (const char *at = row->packets; *at; at++)
        if (*at != '!')
            put_packet(&home, set, *at, at > row->packets && at[-1] == '!');
    const struct read_params params = {.keystore = home.keystore, .event = count_warnings, .context = &home};
    const struct esk_target target = {.protection = PROTECT_PACKET_20, .cipher = CIPHER_AES256};
    if (row->opens)
        expect_open(set, &params, &target, &home.session_key);
    else
        refused(set, &params, &target);
    FILE *file = home_file(&home, "asked", "r");
    if (file) {
        assert_true(fgets(asked, sizeof asked, file));
        fclose(file);
        asked[strlen(asked) - 1] = '\0';
    }
    if (strcmp(asked, row->asked) != 0)
        fail_msg("\"%s\", cards \"%s\", software \"%s\": the agent was asked \"%s\", not \"%s\"", row->packets,
                 row->cards, row->software, asked, row->asked);
    assert_int_equal(home.warnings, row->left_out);
    card_home_free(&home);
    esk_set_free(set);
}

/* Every key on a card is asked at most once for a message, and software before any. */
static void cards_are_asked_once(void **state)
{
    (void)state;
    static const struct card_row rows[] = {
        {"A", "a", "", "aa", true, false},
        {"a", "a", "", "aa", true, false},
        /* What is for keys of another kind or size is passed over. */
        {"ega", "a", "", "aa", true, false},
        {"da", "a", "", "aa", true, false},
        {"ad", "d", "", "dd", true, false},
        {"ecag", "g", "", "gg", true, false},
        {"exk", "x", "", "xx", false, false},
        {"xe", "e", "", "ee", false, false},
        {"d", "a", "", "", false, false},
        /* Of those that fit only the first. */
        {"ac", "a", "", "aa", true, false},
        {"ca", "a", "", "ac", false, true},
        {"cccc", "a", "", "ac", false, true},
        {"ke", "e", "", "ek", false, true},
        /* Named before hidden; and the one try may be used up by then. */
        {"caA", "a", "", "aa", true, false},
        {"!Aa", "a", "", "aa", false, true},
        {"!AA", "a", "", "aa", false, true},
        /* Software first: on all packets, hidden ones too. */
        {"AB", "a", "b", "bb", true, false},
        {"cb", "c", "b", "bc bb", true, false},
        {"Ab", "a", "b", "bb", true, false},
        {"!bA", "a", "b", "bb aa", true, false},
        {"ca", "a", "bd", "bc ba dc da ac", false, true},
        /* Several cards. */
        {"!Cb", "bc", "", "cc bb", true, false},
        {"CB", "bc", "", "cc", true, false},
        {"cab", "ab", "", "ac bc", false, true},
        {"dca", "dc", "", "cc", true, false},
    };
    for (unsigned i = 0; i < ARRAY_SIZE(rows); i++)
        card_case(&rows[i]);
}

static int setup(void **state)
{
    signal(SIGPIPE, SIG_IGN); /* for the agent */
    return crypt_setup(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(passphrase_among_many), cmocka_unit_test(keys_named_and_hidden),
        cmocka_unit_test(versions_go_together),  cmocka_unit_test(session_key_given),
        cmocka_unit_test(what_is_skipped),       cmocka_unit_test(derivation_over_the_limit),
        cmocka_unit_test(cards_are_asked_once),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
