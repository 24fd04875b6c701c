/* SPDX-License-Identifier: GPL-3.0-or-later */
/* With real agents in throw-away homes, and a pinentry that is a script. */
#include "samples.h"

#include "pgp/agent.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

struct home {
    char path[64];
    struct agent *agent;
    struct secret_provider *provider;
    struct failure failure;
};

static void shell(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void shell(const char *format, ...)
{
    char command[2048];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(command, sizeof command, format, arguments);
    va_end(arguments);
    if (system(command))
        fail_msg("failed: %s", command);
}

static void write_file(const struct home *home, const char *name, const char *text, mode_t mode)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", home->path, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    fclose(file);
    assert_int_equal(chmod(path, mode), 0);
}

/* What the scripted pinentry answers to GETPIN: a passphrase, or "!" to cancel. It notes the description. */
static void pinentry_says(const struct home *home, const char *answer)
{
    write_file(home, "answer", answer, 0600);
}

static void home_new(struct home *home)
{
    char text[2048];
    *home = (struct home){.path = "/tmp/test_agent_XXXXXX"};
    assert_non_null(mkdtemp(home->path));
    failure_init(&home->failure);
    snprintf(
        text, sizeof text,
        "#!/bin/sh\n"
        "echo OK ready\n"
        "while read -r verb rest; do\n"
        "  case $verb in\n"
        "  SETDESC) echo \"$rest\" >> %s/described; echo OK;;\n"
        "  SETERROR) echo \"$rest\" >> %s/errors; echo OK;;\n"
        "  GETPIN) answer=$(cat %s/answer)\n"
        "    if [ \"$answer\" = '!' ]; then echo 'ERR 83886179 cancelled'; else echo \"D $answer\"; echo OK; fi;;\n"
        "  BYE) echo OK; exit;;\n"
        "  *) echo OK;;\n"
        "  esac\n"
        "done\n",
        home->path, home->path, home->path);
    write_file(home, "pinentry", text, 0700);
    snprintf(text, sizeof text, "pinentry-program %s/pinentry\ndefault-cache-ttl 0\nmax-cache-ttl 0\n", home->path);
    write_file(home, "gpg-agent.conf", text, 0600);
    pinentry_says(home, "!");
}

static void import(const struct home *home, const char *name, const char *passphrase)
{
    shell("gpg --homedir %s --batch --quiet --pinentry-mode loopback --passphrase '%s' --import "
          "%s/samples/keys/%s.sec.asc >/dev/null 2>&1",
          home->path, passphrase, TESTDATA, name);
}

static void stop_agent(const struct home *home)
{
    shell("gpgconf --homedir %s --kill gpg-agent", home->path);
}

static void open_agent(struct home *home, struct agent_params params)
{
    params.home = home->path;
    assert_int_equal(agent_open(&home->failure, &params, &home->agent), 0);
    home->provider = agent_provider(home->agent);
    assert_non_null(home->provider);
}

static void close_agent(struct home *home)
{
    home->provider->free(home->provider);
    agent_free(home->agent);
}

static void home_free(struct home *home)
{
    stop_agent(home);
    shell("gpgconf --homedir %s --remove-socketdir >/dev/null 2>&1 || true", home->path);
    failure_destroy(&home->failure);
    shell("rm -rf %s", home->path);
}

/* Key NUMBER of a sample, at the agent. */
static gpg_error_t get_key(struct home *home, const char *name, unsigned number, struct secret_key **ret)
{
    char file[64];
    snprintf(file, sizeof file, "samples/keys/%s.sec.asc", name);
    struct secret_key *in_file = sample_secret(file, NULL, number);
    gpg_error_t err = home->provider->get(home->provider, &home->failure, in_file->key, ret);
    secret_key_free(in_file);
    return err;
}

static gpg_error_t sign(struct home *home, struct secret_key *secret_key, enum digest_algo algo)
{
    uint8_t digest[64];
    struct parts parts = {0};
    const struct digest_info *info = algo_digest(algo);
    gcry_md_hash_buffer(info->gcry, digest, "text", 4);
    gpg_error_t err = pubkey_sign(&home->failure, secret_key, algo, digest, info->size, &parts);
    parts_clear(&parts);
    return err;
}

static gpg_error_t decrypt(struct home *home, struct secret_key *secret_key)
{
    struct secret *frame = secret_from("\x09seventeen octets", 17), *back = NULL;
    struct parts parts = {0};
    assert_int_equal(pubkey_encrypt(NULL, secret_key->key, frame, &parts), 0);
    gpg_error_t err = pubkey_decrypt(&home->failure, secret_key, &parts, &back);
    if (!err) {
        assert_int_equal(back->n, frame->n);
        assert_memory_equal(back->bytes, frame->bytes, frame->n);
    }
    secret_free(frame);
    secret_free(back);
    parts_clear(&parts);
    return err;
}

/* The sentence that stands names the home, or says what it has to. */
static void sentence_says(struct home *home, const char *words)
{
    char sentence[FAILURE_SENTENCE_MAX];
    failure_get(&home->failure, sentence);
    if (!strstr(sentence, words))
        fail_msg("no \"%s\" in \"%s\"", words, sentence);
    failure_destroy(&home->failure);
    failure_init(&home->failure);
}

/* All kinds of keys, without a passphrase: the agent is started by us. */
static void unlocked_keys(void **state)
{
    static const char *const names[] = {"rsa2048", "dsaelg", "p256", "bp256", "ed25519", "k256"};
    struct home home;
    (void)state;
    home_new(&home);
    for (unsigned i = 0; i < ARRAY_SIZE(names); i++)
        import(&home, names[i], "");
    stop_agent(&home);
    open_agent(&home, (struct agent_params){.ttyname = "/dev/null", .ttytype = "dumb", .lc_ctype = "C"});
    for (unsigned i = 0; i < ARRAY_SIZE(names); i++) {
        struct secret_key *primary = NULL, *subkey = NULL;
        assert_int_equal(get_key(&home, names[i], 0, &primary), 0);
        assert_int_equal(get_key(&home, names[i], 1, &subkey), 0);
        assert_false(primary->on_card);
        assert_int_equal(sign(&home, primary, DIGEST_SHA512), 0);
        assert_int_equal(sign(&home, primary, DIGEST_SHA256), 0);
        assert_int_equal(decrypt(&home, subkey), 0);
        assert_int_equal(decrypt(&home, subkey), 0);
        secret_key_free(primary);
        secret_key_free(subkey);
    }
    close_agent(&home);
    home_free(&home);
}

/* The restricted socket that is forwarded to other machines: such an agent does not list its keys. */
static void restricted(void **state)
{
    struct home home, here;
    struct secret_key *secret_key = NULL;
    (void)state;
    home_new(&home);
    import(&home, "ed25519", "");
    home_new(&here);
    char *socket_name = NULL, *forwarded = NULL;
    assert_int_equal(agent_socket_name(home.path, false, &socket_name), 0);
    assert_int_equal(agent_socket_name(here.path, false, &forwarded), 0);
    shell("ln -s %s.extra %s", socket_name, forwarded);
    open_agent(&here, (struct agent_params){.must_run = true});
    assert_int_equal(gpg_err_code(get_key(&here, "p256", 0, &secret_key)), GPG_ERR_NO_SECKEY);
    assert_int_equal(get_key(&here, "ed25519", 0, &secret_key), 0);
    assert_int_equal(sign(&here, secret_key, DIGEST_SHA256), 0);
    secret_key_free(secret_key);
    assert_int_equal(get_key(&here, "ed25519", 1, &secret_key), 0);
    assert_int_equal(decrypt(&here, secret_key), 0);
    secret_key_free(secret_key);
    close_agent(&here);
    shell("rm %s", forwarded);
    free(socket_name);
    free(forwarded);
    home_free(&here);
    home_free(&home);
}

static void unknown_key(void **state)
{
    struct home home;
    struct secret_key *secret_key = NULL;
    bool on_card = true;
    (void)state;
    home_new(&home);
    open_agent(&home, (struct agent_params){0});
    assert_int_equal(gpg_err_code(get_key(&home, "rsa2048", 0, &secret_key)), GPG_ERR_NO_SECKEY);
    struct secret_key *other = sample_secret("samples/keys/p256.sec.asc", NULL, 0);
    assert_int_equal(gpg_err_code(home.provider->have(home.provider, other->key, &on_card)), GPG_ERR_NO_SECKEY);
    secret_key_free(other);
    close_agent(&home);
    home_free(&home);
}

static const char *uid_of(void *context, const struct key *key)
{
    (void)key;
    return context;
}

/* The scripted pinentry: right, wrong, cancelled; what it shows. */
static void asked_by_pinentry(void **state)
{
    struct home home;
    struct secret_key *primary = NULL, *subkey = NULL;
    (void)state;
    home_new(&home);
    import(&home, "rsa3072", "rsa pass A");
    open_agent(&home, (struct agent_params){.uid = uid_of,
                                            .context = (void *)(uintptr_t) "J\xC3\xB6rg \"x\" <j@example.org>\x1B"});
    assert_int_equal(get_key(&home, "rsa3072", 0, &primary), 0);
    assert_int_equal(get_key(&home, "rsa3072", 1, &subkey), 0);
    assert_int_equal(gpg_err_code(sign(&home, primary, DIGEST_SHA256)), GPG_ERR_CANCELED);
    sentence_says(&home, "cancelled");
    assert_int_equal(gpg_err_code(decrypt(&home, subkey)), GPG_ERR_CANCELED);
    sentence_says(&home, "cancelled");
    pinentry_says(&home, "wrong");
    assert_int_equal(gpg_err_code(sign(&home, primary, DIGEST_SHA256)), GPG_ERR_BAD_PASSPHRASE);
    sentence_says(&home, "wrong passphrase");
    pinentry_says(&home, "rsa pass A");
    assert_int_equal(sign(&home, primary, DIGEST_SHA256), 0);
    assert_int_equal(decrypt(&home, subkey), 0);
    shell("grep -q 'J\xC3\xB6rg %%22x%%22 <j@example.org>?' %s/described", home.path);
    shell("grep -q '3072-bit RSA key, ID 3466169E19D80C1E,' %s/described", home.path);
    shell("grep -q 'created 2024-01-15' %s/described", home.path);
    secret_key_free(primary);
    secret_key_free(subkey);
    close_agent(&home);
    home_free(&home);
}

/* Answers one after the other, NULL: nothing (more). */
struct script {
    const char *answers[5];
    gpg_error_t err;
    unsigned asked;
};

static gpg_error_t ask_script(void *context, const struct key *key, unsigned attempt, bool is_new, struct secret **ret)
{
    struct script *script = context;
    assert_non_null(key);
    assert_false(is_new);
    assert_int_equal(attempt, script->asked);
    const char *answer = script->answers[script->asked++];
    if (!answer)
        return script->err;
    *ret = secret_from(answer, strlen(answer));
    return 0;
}

static void loopback_case(struct home *home, unsigned number, struct script script, gpg_err_code_t code, unsigned asked)
{
    struct passphrase_source source = {ask_script, &script};
    struct secret_key *secret_key = NULL;
    open_agent(home, (struct agent_params){.pinentry = AGENT_PINENTRY_LOOPBACK, .source = &source});
    assert_int_equal(get_key(home, "ed25519pw", number, &secret_key), 0);
    gpg_error_t err = number ? decrypt(home, secret_key) : sign(home, secret_key, DIGEST_SHA512);
    assert_int_equal(gpg_err_code(err), code);
    assert_int_equal(script.asked, asked);
    if (err)
        sentence_says(home, "passphrase");
    secret_key_free(secret_key);
    close_agent(home);
}

static void loopback(void **state)
{
    struct home home;
    gpg_error_t none = gpg_error(GPG_ERR_NO_PASSPHRASE);
    (void)state;
    home_new(&home);
    import(&home, "ed25519pw", "ed pass A");
    /* Few wrong ones: the agent takes two seconds for each. */
    loopback_case(&home, 0, (struct script){{"ed pass A"}, none, 0}, 0, 1);
    loopback_case(&home, 0, (struct script){{"a", "b", "c", "ed pass A"}, none, 0}, GPG_ERR_BAD_PASSPHRASE, 3);
    loopback_case(&home, 0, (struct script){{"a"}, none, 0}, GPG_ERR_BAD_PASSPHRASE, 2);
    loopback_case(&home, 0, (struct script){{NULL}, none, 0}, GPG_ERR_NO_PASSPHRASE, 1);
    loopback_case(&home, 1, (struct script){{"a", "ed pass A"}, none, 0}, 0, 2);
    loopback_case(&home, 1, (struct script){{NULL}, gpg_error(GPG_ERR_CANCELED), 0}, GPG_ERR_CANCELED, 1);
    open_agent(&home, (struct agent_params){.pinentry = AGENT_PINENTRY_LOOPBACK});
    struct secret_key *secret_key = NULL;
    assert_int_equal(get_key(&home, "ed25519pw", 0, &secret_key), 0);
    assert_int_equal(gpg_err_code(sign(&home, secret_key, DIGEST_SHA512)), GPG_ERR_NO_PASSPHRASE);
    secret_key_free(secret_key);
    close_agent(&home);
    home_free(&home);
}

static void other_modes(void **state)
{
    static const struct {
        enum agent_pinentry mode;
        gpg_err_code_t code;
    } rows[] = {{AGENT_PINENTRY_CANCEL, GPG_ERR_CANCELED}, {AGENT_PINENTRY_ERROR, GPG_ERR_NO_PIN_ENTRY}};
    struct home home;
    (void)state;
    home_new(&home);
    import(&home, "p521", "p521 pass");
    pinentry_says(&home, "p521 pass");
    for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
        struct secret_key *secret_key = NULL;
        open_agent(&home, (struct agent_params){.pinentry = rows[i].mode});
        assert_int_equal(get_key(&home, "p521", 0, &secret_key), 0);
        assert_int_equal(gpg_err_code(sign(&home, secret_key, DIGEST_SHA512)), rows[i].code);
        secret_key_free(secret_key);
        close_agent(&home);
    }
    home_free(&home);
}

/* An agent that ends between operations is started again; one that ends within is an error that says so. */
static void killed(void **state)
{
    struct home home;
    struct secret_key *secret_key = NULL, *locked = NULL;
    char text[512];
    (void)state;
    home_new(&home);
    import(&home, "p256", "");
    import(&home, "rsa3072", "rsa pass A");
    open_agent(&home, (struct agent_params){0});
    assert_int_equal(get_key(&home, "p256", 0, &secret_key), 0);
    assert_int_equal(sign(&home, secret_key, DIGEST_SHA256), 0);
    stop_agent(&home);
    assert_int_equal(sign(&home, secret_key, DIGEST_SHA256), 0);
    assert_int_equal(get_key(&home, "rsa3072", 0, &locked), 0);
    /* A pinentry whose answer is to kill the agent, its parent. */
    snprintf(text, sizeof text,
             "#!/bin/sh\necho OK ready\nwhile read -r verb rest; do\n"
             "case $verb in GETPIN) kill -9 $PPID; exit;; *) echo OK;; esac\ndone\n");
    write_file(&home, "pinentry", text, 0700);
    assert_int_equal(gpg_err_code(sign(&home, locked, DIGEST_SHA256)), GPG_ERR_ASSUAN_SERVER_FAULT);
    sentence_says(&home, home.path);
    assert_int_equal(sign(&home, secret_key, DIGEST_SHA256), 0);
    secret_key_free(secret_key);
    secret_key_free(locked);
    close_agent(&home);
    home_free(&home);
}

/* A signal ends the wait for somebody who thinks about a passphrase. */
static void woken(void **state)
{
    struct home home;
    struct secret_key *secret_key = NULL;
    char fifo[128], text[512];
    (void)state;
    home_new(&home);
    import(&home, "rsa3072", "rsa pass A");
    snprintf(fifo, sizeof fifo, "%s/fifo", home.path);
    assert_int_equal(mkfifo(fifo, 0600), 0);
    int wake = open(fifo, O_RDWR);
    assert_true(wake > 0);
    open_agent(&home, (struct agent_params){.wake = wake});
    assert_int_equal(get_key(&home, "rsa3072", 0, &secret_key), 0);
    pinentry_says(&home, "rsa pass A");
    assert_int_equal(sign(&home, secret_key, DIGEST_SHA256), 0);
    /* A pinentry that wakes us when it is asked, and never answers. */
    snprintf(text, sizeof text,
             "#!/bin/sh\necho OK ready\nwhile read -r verb rest; do\n"
             "case $verb in GETPIN) echo woken > %s; sleep 1; exit;; *) echo OK;; esac\ndone\n",
             fifo);
    write_file(&home, "pinentry", text, 0700);
    assert_int_equal(gpg_err_code(sign(&home, secret_key, DIGEST_SHA256)), GPG_ERR_CANCELED);
    sentence_says(&home, "cancelled");
    secret_key_free(secret_key);
    close_agent(&home);
    close(wake);
    home_free(&home);
}

static void no_agent(void **state)
{
    static const struct agent_params rows[] = {{.program = "/nonexistent/gpg-agent"}, {.must_run = true}};
    struct home home;
    (void)state;
    home_new(&home);
    for (unsigned i = 0; i < 2; i++) {
        struct secret_key *secret_key = NULL;
        bool on_card;
        open_agent(&home, rows[i]);
        struct secret_key *other = sample_secret("samples/keys/p256.sec.asc", NULL, 0);
        assert_int_equal(gpg_err_code(home.provider->have(home.provider, other->key, &on_card)), GPG_ERR_NO_AGENT);
        assert_int_equal(gpg_err_code(home.provider->have(home.provider, other->key, &on_card)), GPG_ERR_NO_AGENT);
        secret_key_free(other);
        assert_int_equal(gpg_err_code(get_key(&home, "p256", 0, &secret_key)), GPG_ERR_NO_AGENT);
        sentence_says(&home, home.path);
        close_agent(&home);
    }
    home_free(&home);
}

static void passphrases(void **state)
{
    struct home home;
    struct secret *secret = NULL;
    (void)state;
    home_new(&home);
    open_agent(&home, (struct agent_params){0});
    assert_int_equal(gpg_err_code(agent_get_passphrase(&home.failure, home.agent, NULL, NULL,
                                                       "Passphrase:", "For a file, 100% safe", false, &secret)),
                     GPG_ERR_CANCELED);
    sentence_says(&home, "cancelled");
    pinentry_says(&home, "with blanks + %41 signs");
    for (unsigned repeat = 0; repeat < 2; repeat++) {
        assert_int_equal(agent_get_passphrase(&home.failure, home.agent, repeat ? NULL : "gpgtar:test", "Not right",
                                              "Passphrase:", "For a file, 100% safe\nTwo lines", repeat, &secret),
                         0);
        /* The pinentry's answer is percent-escaped on the wire. */
        assert_int_equal(secret->n, strlen("with blanks + A signs"));
        assert_memory_equal(secret->bytes, "with blanks + A signs", secret->n);
        secret_free(secret);
    }
    agent_clear_passphrase(home.agent, "gpgtar:test");
    shell("grep -q '100%%25 safe' %s/described && grep -q 'Not right' %s/errors", home.path, home.path);
    close_agent(&home);

    struct passphrase_source source = {says, (void *)(uintptr_t) "mine"};
    open_agent(&home, (struct agent_params){.pinentry = AGENT_PINENTRY_LOOPBACK, .source = &source, .must_run = true});
    assert_int_equal(
        agent_get_passphrase(&home.failure, home.agent, NULL, NULL, "Passphrase:", "For a file", true, &secret), 0);
    assert_memory_equal(secret->bytes, "mine", 4);
    secret_free(secret);
    close_agent(&home);
    home_free(&home);
}

/* The same name as gpgconf's. */
static void socket_names(void **state)
{
    static const char *const homes[] = {"/tmp/test_agent_socket", "/tmp/../tmp/test_agent_socket",
                                        "/tmp/test_agent_socket/"};
    (void)state;
    shell("mkdir -p -m 700 /tmp/test_agent_socket");
    for (unsigned i = 0; i < ARRAY_SIZE(homes); i++) {
        char command[256], expected[256] = "";
        char *name = NULL;
        snprintf(command, sizeof command, "gpgconf --homedir %s --list-dirs agent-socket", homes[i]);
        FILE *pipe = popen(command, "r");
        assert_non_null(fgets(expected, sizeof expected, pipe));
        pclose(pipe);
        expected[strcspn(expected, "\n")] = '\0';
        assert_int_equal(agent_socket_name(homes[i], false, &name), 0);
        assert_string_equal(name, expected);
        free(name);
    }
    shell("gpgconf --homedir /tmp/test_agent_socket --remove-socketdir >/dev/null 2>&1; rmdir /tmp/test_agent_socket");
}

static int setup(void **state)
{
    signal(SIGPIPE, SIG_IGN);
    return crypt_setup(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unlocked_keys), cmocka_unit_test(restricted),
        cmocka_unit_test(unknown_key),   cmocka_unit_test(asked_by_pinentry),
        cmocka_unit_test(loopback),      cmocka_unit_test(other_modes),
        cmocka_unit_test(killed),        cmocka_unit_test(woken),
        cmocka_unit_test(no_agent),      cmocka_unit_test(passphrases),
        cmocka_unit_test(socket_names),
    };
    return cmocka_run_group_tests(tests, setup, crypt_teardown);
}
