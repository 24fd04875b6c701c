/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "gpgtar/config.h"
#include "gpgtar/options.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

struct result {
    gpg_error_t err;
    int status_fd;
    struct options *options; /* NULL on failure */
    char sentence[FAILURE_SENTENCE_MAX];
};

/* TEXT is split as --gpg-args would be, without the program's name. */
static struct result load_in(const struct options_environment *environment, const char *text)
{
    struct result result = {0};
    struct failure failure;
    char **words = NULL, **argv = NULL;
    size_t n = 0;
    assert_int_equal(config_split(text, &words, &n), 0);
    argv = calloc(n + 2, sizeof *argv);
    assert_non_null(argv);
    argv[0] = (char[]){"gpgtar"};
    for (size_t i = 0; i < n; i++)
        argv[i + 1] = words[i];
    failure_init(&failure);
    result.err = options_load((int)n + 1, argv, environment, &failure, &result.status_fd, &result.options);
    assert_int_equal(failure_get(&failure, result.sentence), result.err);
    failure_destroy(&failure);
    free(argv);
    config_words_free(words, n);
    if (result.err) {
        assert_null(result.options);
        assert_true(result.sentence[0] != '\0');
    }
    return result;
}

static struct result load(const char *text)
{
    const struct options_environment nowhere = {.gnupghome = "/nonexistent/home"};
    return load_in(&nowhere, text);
}

/* A command in one word: its name's first letters, then what creating does. */
static void summary(const struct options *options, char *to, size_t n)
{
    static const char *const names[] = {"none",    "create", "extract", "list", "verify",
                                        "compare", "help",   "version", "dump"};
    snprintf(to, n, "%s%s%s%s%s%s", names[options->command], options->encrypt || options->sign ? ":" : "",
             options->encrypt ? "e" : "", options->sign ? "s" : "", options->symmetric ? "+c" : "",
             options->skip_crypto ? " plain" : "");
}

static void test_commands(void **state)
{
    static const struct {
        const char *line, *expected;
    } table[] = {
        {"-e -r A d", "create:e"},
        {"--encrypt --recipient A d", "create:e"},
        {"-s d", "create:s"},
        {"-c d", "create+c"},
        {"-ce d", "create+c"},
        {"-c -r A d", "create:e+c"},
        {"-ce -r A d", "create:e+c"},
        {"-esc -r A d", "create:es+c"},
        {"-ecs -r A d", "create:es+c"},
        {"-ces -r A d", "create:es+c"},
        {"-cse -r A d", "create:es+c"},
        {"-sec -r A d", "create:es+c"},
        {"-sce -r A d", "create:es+c"},
        {"-s -e -c -r A d", "create:es+c"},
        {"-c -s -e -r A d", "create:es+c"},
        {"d -r A -c -s -e", "create:es+c"},
        {"-esr A d", "create:es"},
        {"-esrA d", "create:es"},
        {"-es -R A d", "create:es"},
        {"-es -f A d", "create:es"},
        {"-es -F A d", "create:es"},
        {"--create d", "create plain"},
        {"--create --encrypt d", "create plain"},
        {"--skip-crypto --encrypt d", "create plain"},
        {"--skip-crypto -e --gpg gpg --gpg-args \"--no-permission-warning --always-trust\" d", "create plain"},
        {"--extract x", "extract plain"},
        {"-d --skip-crypto x", "extract plain"},
        {"-d --extract x", "extract plain"},
        {"-d", "extract"},
        {"--decrypt x", "extract"},
        {"-t x", "list"},
        {"--skip-crypto -t -", "list plain"},
        {"--list-archive --skip-crypto x", "list plain"},
        {"--verify x", "verify"},
        {"--compare x", "compare"},
        {"--diff x", "compare"},
        {"--help", "help"},
        {"-h", "help"},
        {"-e --help --nonsense-after-it", "help"},
        {"--version", "version"},
        {"--warranty", "version"},
        {"--dump-options", "dump"},
        {"-e --gpg-args --sign -r A d", "create:es"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        char got[64] = "failed";
        struct result result = load(table[i].line);
        if (result.options)
            summary(result.options, got, sizeof got);
        if (strcmp(got, table[i].expected) != 0)
            fail_msg("%s: %s instead of %s (%s)", table[i].line, got, table[i].expected, result.sentence);
        options_free(result.options);
    }
}

/* Each is exit 2; the sentence has to name what is wrong. */
static void test_refused(void **state)
{
    static const struct {
        const char *line, *first, *second;
    } table[] = {
        {"", "no command", ""},
        {"d", "no command", ""},
        {"-o x", "no command", ""},
        {"-e d", "--recipient", "--symmetric"},
        {"-es d", "--recipient", "--symmetric"},
        {"--create -r A d", "--create", "--recipient"},
        {"--create -R A d", "--create", "--hidden-recipient"},
        {"--create -f A d", "--create", "--recipient-file"},
        {"--create -F A d", "--create", "--hidden-recipient-file"},
        {"--create -c d", "--create", "--symmetric"},
        {"--create -s d", "--create", "--sign"},
        {"--create -e -r A d", "--create", "--recipient"},
        {"--create --gpg-args '-r A' d", "--create", "--recipient"},
        {"--create --gpg-args --symmetric d", "--create", "--symmetric"},
        {"--skip-crypto -c d", "--skip-crypto", "--symmetric"},
        {"-s --skip-crypto d", "--skip-crypto", "--sign"},
        {"--skip-crypto -e -r A d", "--skip-crypto", "--recipient"},
        {"--extract --require-signature x", "--extract", "--require-signature"},
        {"--extract --signer A x", "--extract", "--signer"},
        {"-s -r A d", "--recipient", "--encrypt"},
        {"-d -e -r A x", "--encrypt", "--decrypt"},
        {"-d -c x", "--symmetric", "--decrypt"},
        {"-d -t x", "--decrypt", "--list-archive"},
        {"-t --verify x", "--list-archive", "--verify"},
        {"--compare --verify x", "--verify", "--compare"},
        {"--create --extract x", "--create", "--extract"},
        {"-e -r A", "nothing to archive", ""},
        {"-e -r '' d", "--recipient", "empty"},
        {"-d --bogus x", "--bogus", "unknown"},
        {"-d -Q x", "-Q", "unknown"},
        {"-d -vQ x", "-Q", "unknown"},
        {"-d --max-size", "--max-size", "needs a value"},
        {"-e d -r", "-r", "needs a value"},
        {"-d --batch=1 x", "--batch", "no value"},
        {"-d --no-same x", "--no-same", "can mean"},
        {"-c --passphrase secret d", "--passphrase-file", "ps"},
        {"-c --passphrase=secret d", "--passphrase-file", "ps"},
        {"-c --gpg-args '--passphrase secret' d", "--passphrase-file", "ps"},
        {"--cms -e -r A d", "--cms", "not supported"},
        {"-c --passphrase-fd 0 -T -", "--files-from", "--passphrase-fd 0"},
        {"-c --gpg-args '--passphrase-fd 0' --null -T -", "--files-from", "--passphrase-fd 0"},
        {"-d --passphrase-fd 0", "the archive", "--passphrase-fd 0"},
        {"-d --passphrase-fd 0 -", "the archive", "--passphrase-fd 0"},
        {"-d -T - ", "the archive", "--files-from"},
        {"-c --passphrase-fd 0 --exclude-from - d", "--exclude-from", "--passphrase-fd 0"},
        {"-d --override-session-key-fd 0", "the archive", "--override-session-key-fd 0"},
        {"-c --passphrase-fd -1 d", "--passphrase-fd", "number"},
        {"-c --passphrase-fd x d", "--passphrase-fd", "number"},
        {"-c --passphrase-fd 99999999999999999999 d", "--passphrase-fd", "number"},
        {"-c -z 10 d", "--compress-level", "number"},
        {"-c -z d", "--compress-level", "number"},
        {"-c -z -2 d", "--compress-level", "number"},
        {"-c --jobs 257 d", "--jobs", "number"},
        {"-c -jx d", "--jobs", "number"},
        {"-c --chunk-size 5 d", "--chunk-size", "number"},
        {"-c --chunk-size 23 d", "--chunk-size", "number"},
        {"-c --s2k-mode 2 d", "--s2k-mode", ""},
        {"-c --s2k-count 1 d", "--s2k-count", "number"},
        {"-c --zstd=99 d", "--zstd", "number"},
        {"-d --max-size 0 x", "--max-size", "greater"},
        {"-d --max-size -1 x", "--max-size", "greater"},
        {"-d --max-size 1X x", "--max-size", "greater"},
        {"-d --max-size 1KB x", "--max-size", "greater"},
        {"-d --max-size 9999999999T x", "--max-size", "greater"},
        {"-d --max-size 99999999999999999999 x", "--max-size", "greater"},
        {"-d --strip-components -1 x", "--strip-components", "number"},
        {"-c --newer-mtime nonsense d", "--newer-mtime", "date"},
        {"-e -r A --trust-model tofu d", "--trust-model", "always"},
        {"-c --pinentry-mode maybe d", "--pinentry-mode", "loopback"},
        {"-s -N nodomain=x d", "--set-notation", "DOMAIN"},
        {"-e -r A --group x d", "--group", "NAME="},
        {"-c --status-fd 1 d", "--status-fd 1", "--output"},
        {"-c --status-fd 1 -o - d", "--status-fd 1", "--output"},
        {"-t --status-fd 1 x", "--status-fd 1", ""},
        {"-dO --status-fd 1 x", "--status-fd 1", ""},
        {"-t --status-fd -1 x", "--status-fd", "number"},
        {"-d --keep-old-files --skip-old-files x", "--keep-old-files", "--skip-old-files"},
        {"-d --yes --no x", "--yes", "--no"},
        {"-d --salvage --require-signature x", "--salvage", "--require-signature"},
        {"-d --salvage --signer A x", "--salvage", "--signer"},
        {"-d --quick --signer A x", "--quick", "--signer"},
        {"-c --gpg-args '--no-such-thing' d", "--gpg-args", "--no-such-thing"},
        {"-c --gpg-args 'word' d", "--gpg-args", "word"},
        {"-c --gpg-args '--passphrase-file \"x' d", "--gpg-args", "quote"},
        {"-c --gpg-args \"--comment 'x\" d", "--gpg-args", "quote"},
        {"-c --gpg-args --passphrase-file d", "--gpg-args", "needs a value"},
        {"-c --gpg-args --decrypt d", "--gpg-args", "--decrypt"},
        {"-c --tar-args --no-such d", "--tar-args", "--no-such"},
        {"-c --tar-args '-C' d", "--tar-args", "needs a value"},
        {"-c --no-tty d", "--no-tty", "unknown"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        struct result result = load(table[i].line);
        if (!result.err || !strstr(result.sentence, table[i].first) || !strstr(result.sentence, table[i].second))
            fail_msg("%s: \"%s\" names not \"%s\" and \"%s\"", table[i].line, result.sentence, table[i].first,
                     table[i].second);
        options_free(result.options);
    }
}

static void test_no_recipient_has_its_code(void **state)
{
    (void)state;
    assert_int_equal(gpg_err_code(load("-e d").err), GPG_ERR_NO_USER_ID);
    assert_int_equal(gpg_err_code(load("-d --bogus").err), GPG_ERR_INV_ARG);
}

/* What GnuPG's gpgtar and its users call, options in every place. */
static void test_stock_calls(void **state)
{
    (void)state;
    struct result r = load("--batch --gpg-args --lc-messages=C --status-fd 9 --gpg-args --no-tty --gpg-args "
                           "--charset=utf8 --gpg-args --enable-progress-filter --encrypt --gpg-args --always-trust -r "
                           "FPR --output F --directory D --files-from - --null --utf8-strings");
    assert_int_equal(r.err, 0);
    assert_true(r.options->batch && r.options->encrypt && r.options->null);
    assert_int_equal(r.options->status_fd, 9);
    assert_int_equal(r.status_fd, 9);
    assert_int_equal(r.options->trust_model, TRUST_ALWAYS);
    assert_string_equal(r.options->output, "F");
    assert_string_equal(r.options->directory, "D");
    assert_string_equal(r.options->files_from, "-");
    options_free(r.options);

    r = load("--batch --decrypt --directory D -- F");
    assert_int_equal(r.err, 0);
    assert_string_equal(r.options->archive, "F");
    assert_int_equal(r.options->names.n, 0);
    options_free(r.options);

    r = load("-d --batch --tar-args --directory=. x m1 m2");
    assert_int_equal(r.err, 0);
    assert_string_equal(r.options->directory, ".");
    assert_int_equal(r.options->names.n, 2);
    assert_string_equal(r.options->names.items[1], "m2");
    options_free(r.options);

    r = load(
        "--symmetric --gpg-args '--cipher=IDEA --passphrase-file=F' --output=o --tar gtar --tar-args '-C /home/x/' d");
    assert_int_equal(r.err, 0);
    assert_string_equal(r.options->cipher_algo, "IDEA");
    assert_int_equal(r.options->passphrase.kind, PASSPHRASE_FILE);
    assert_string_equal(r.options->passphrase.name, "F");
    assert_string_equal(r.options->directory, "/home/x/");
    options_free(r.options);

    r = load("--create --null -o x");
    assert_int_equal(r.err, 0);
    assert_string_equal(r.options->files_from, "-");
    options_free(r.options);
}

static void test_options_after_names(void **state)
{
    (void)state;
    struct result r = load("--create d -o x e -- -o y --");
    assert_int_equal(r.err, 0);
    assert_string_equal(r.options->output, "x");
    static const char *const names[] = {"d", "e", "-o", "y", "--"};
    assert_int_equal(r.options->names.n, 5);
    for (size_t i = 0; i < 5; i++)
        assert_string_equal(r.options->names.items[i], names[i]);
    options_free(r.options);

    r = load("--create - d");
    assert_int_equal(r.err, 0);
    assert_string_equal(r.options->names.items[0], "-");
    options_free(r.options);
}

static void test_values(void **state)
{
    static const char *const forms[] = {"-e -r A -oFILE -z6 -j4 d", "-er A -o FILE -z 6 -j 4 d",
                                        "-e --recip A --out=FILE --compress-level=6 --jobs=4 d",
                                        "--enc -rA --output FILE --compress-lev 6 --job 4 d"};
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
        struct result r = load(forms[i]);
        assert_int_equal(r.err, 0);
        assert_string_equal(r.options->output, "FILE");
        assert_string_equal(r.options->recipients.items[0].name, "A");
        assert_int_equal(r.options->compress_level, 6);
        assert_int_equal(r.options->jobs, 4);
        options_free(r.options);
    }
    struct result r = load("-d --max-size 3K --max-files 7 -vvq --no-xattrs --acls --strip-components=2 "
                           "--newer-mtime @77 --zstd -pO --no-wildcards --signer A --signer B x '\\*'");
    assert_int_equal(r.err, 0);
    assert_int_equal(r.options->max_size, 3072);
    assert_int_equal(r.options->max_files, 7);
    assert_int_equal(r.options->verbose, 2);
    assert_true(r.options->quiet && r.options->same_permissions && r.options->to_stdout && r.options->no_wildcards);
    assert_int_equal(r.options->xattrs, TOGGLE_OFF);
    assert_int_equal(r.options->acls, TOGGLE_ON);
    assert_int_equal(r.options->same_owner, TOGGLE_DEFAULT);
    assert_int_equal(r.options->strip_components, 2);
    assert_true(r.options->has_newer);
    assert_int_equal(r.options->newer.tv_sec, 77);
    assert_int_equal(r.options->zstd_level, 1);
    assert_true(r.options->require_signature);
    assert_int_equal(r.options->allowed_signers.n, 2);
    assert_string_equal(r.options->names.items[0], "\\*");
    options_free(r.options);

    static const struct {
        const char *line;
        uint64_t size;
    } sizes[] = {{"-d --max-size 1", 1},
                 {"-d --max-size 2k", 2048},
                 {"-d --max-size 5M", 5 << 20},
                 {"-d --max-size 1G", 1 << 30},
                 {"-d --max-size 8T", (uint64_t)8 << 40}};
    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        r = load(sizes[i].line);
        assert_int_equal(r.err, 0);
        assert_int_equal(r.options->max_size, sizes[i].size);
        options_free(r.options);
    }
}

static void test_dates(void **state)
{
    static const struct {
        const char *line;
        time_t when;
    } dates[] = {{"-c --newer-mtime @0 d", 0},
                 {"-c --newer-mtime 1970-01-02T00:00:00Z d", 86400},
                 {"-c --newer-mtime '1970-01-02 00:01Z' d", 86460},
                 {"-c --newer-mtime 2024-02-29Z d", 1709164800},
                 {"-c --newer-mtime @-5 d", -5}};
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(dates); i++) {
        struct result r = load(dates[i].line);
        assert_int_equal(r.err, 0);
        assert_int_equal(r.options->newer.tv_sec, dates[i].when);
        options_free(r.options);
    }
    struct stat st;
    assert_int_equal(stat("/", &st), 0);
    struct result r = load("-c --newer-mtime / d");
    assert_int_equal(r.err, 0);
    assert_int_equal(r.options->newer.tv_sec, st.st_mtim.tv_sec);
    assert_int_equal(r.options->newer.tv_nsec, st.st_mtim.tv_nsec);
    options_free(r.options);
}

/* Stock abbreviations keep their meaning although there are more options now. */
static void test_abbreviations(void **state)
{
    (void)state;
    struct result r = load("--dec --dir D --rec A --li-nothing");
    assert_true(r.err != 0);
    r = load("--dec --dir D --no-comp --verb --qu --stat 2 x");
    assert_int_equal(r.err, 0);
    assert_int_equal(r.options->command, COMMAND_EXTRACT);
    assert_string_equal(r.options->directory, "D");
    assert_true(r.options->no_compress);
    assert_int_equal(r.options->status_fd, 2);
    options_free(r.options);
    r = load("--list x");
    assert_int_equal(r.err, 0);
    assert_int_equal(r.options->command, COMMAND_LIST);
    options_free(r.options);
    r = load("--symm --gpg-args '--alw --cipher AES --pers-nothing' d");
    assert_true(r.err != 0);
    r = load("--symm --gpg-args '--alw --cipher AES --pinentry loopback' d");
    assert_int_equal(r.err, 0);
    assert_int_equal(r.options->pinentry_mode, PINENTRY_LOOPBACK);
    options_free(r.options);
}

static void test_gpg_args(void **state)
{
    char line[2600], text[2049];
    (void)state;
    struct result r = load("-c --gpg-args \"--passphrase-file 'a b'\" --gpg-args --cipher-algo --gpg-args AES256 "
                           "--gpg-args --comment=x=y --gpg-args '--comment \"\"' --gpg-args -z0 --gpg-args '' d");
    assert_int_equal(r.err, 0);
    assert_string_equal(r.options->passphrase.name, "a b");
    assert_string_equal(r.options->cipher_algo, "AES256");
    assert_int_equal(r.options->comments.n, 2);
    assert_string_equal(r.options->comments.items[0], "x=y");
    assert_string_equal(r.options->comments.items[1], "");
    assert_true(r.options->no_compress);
    options_free(r.options);

    memset(text, 'x', 2048);
    text[2048] = '\0';
    snprintf(line, sizeof line, "-c --gpg-args --comment=%s d", text);
    r = load(line);
    assert_int_equal(r.err, 0);
    assert_string_equal(r.options->comments.items[0], text);
    options_free(r.options);

    r = load("-c --gpg-args '--comment a\\b' d");
    assert_int_equal(r.err, 0);
    assert_string_equal(r.options->comments.items[0], "a\\b");
    options_free(r.options);

    r = load("-c --gpg-args '--no-tty --charset utf8 --enable-progress-filter --exit-on-status-write-error "
             "--lc-messages C --lc-ctype=C --display :0 --ttyname /dev/tty --ttytype vt100 --request-origin remote "
             "--no-permission-warning --no-symkey-cache --proc-all-sigs --input-size-hint 5 --no-auto-check-trustdb "
             "--disable-dirmngr' d");
    assert_int_equal(r.err, 0);
    options_free(r.options);
}

static void test_recipients(void **state)
{
    static const struct {
        enum recipient_kind kind;
        const char *name;
    } expected[] = {{RECIPIENT_NAME, "A"},        {RECIPIENT_HIDDEN_FILE, "f"}, {RECIPIENT_HIDDEN_NAME, "X"},
                    {RECIPIENT_HIDDEN_NAME, "Y"}, {RECIPIENT_HIDDEN_NAME, "Z"}, {RECIPIENT_FILE, "friends"}};
    (void)state;
    struct result r = load("-e -r A -F f -R Friends -f friends --group 'friends=X Y' --group friends=Z --encrypt-to me "
                           "--hidden-encrypt-to you d");
    assert_int_equal(r.err, 0);
    assert_int_equal(r.options->recipients.n, ARRAY_SIZE(expected));
    for (size_t i = 0; i < ARRAY_SIZE(expected); i++) {
        assert_int_equal(r.options->recipients.items[i].kind, expected[i].kind);
        assert_string_equal(r.options->recipients.items[i].name, expected[i].name);
    }
    assert_int_equal(r.options->encrypt_to.n, 2);
    assert_int_equal(r.options->encrypt_to.items[1].kind, RECIPIENT_HIDDEN_NAME);
    options_free(r.options);

    r = load("-e -r A --encrypt-to me --no-encrypt-to d");
    assert_int_equal(r.err, 0);
    assert_int_equal(r.options->encrypt_to.n, 0);
    options_free(r.options);

    r = load("-e --default-recipient B d");
    assert_int_equal(r.err, 0);
    assert_string_equal(r.options->recipients.items[0].name, "B");
    options_free(r.options);

    r = load("-e --default-recipient-self d");
    assert_int_equal(r.err, 0);
    assert_true(r.options->recipient_self);
    options_free(r.options);
}

static void write_file(const char *folder, const char *base, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, base);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

struct folders {
    char system[64], home[64];
    struct options_environment environment;
};

static void make_folders(struct folders *folders)
{
    strcpy(folders->system, "/tmp/gpgtar-test-system-XXXXXX");
    strcpy(folders->home, "/tmp/gpgtar-test-home-XXXXXX");
    assert_non_null(mkdtemp(folders->system));
    assert_non_null(mkdtemp(folders->home));
    folders->environment = (struct options_environment){.gnupghome = folders->home, .config_dir = folders->system};
}

static void remove_folders(struct folders *folders)
{
    static const char *const bases[] = {"common.conf", "gpg.conf", "gpgtar.conf"};
    for (size_t i = 0; i < ARRAY_SIZE(bases); i++) {
        char path[256];
        snprintf(path, sizeof path, "%s/%s", folders->system, bases[i]);
        unlink(path);
        snprintf(path, sizeof path, "%s/%s", folders->home, bases[i]);
        unlink(path);
    }
    rmdir(folders->system);
    rmdir(folders->home);
}

static void test_configuration(void **state)
{
    struct folders folders;
    (void)state;
    make_folders(&folders);
    write_file(folders.system, "gpgtar.conf", "jobs 3\ncompress-level 2\nkeyring one\n");
    write_file(folders.home, "gpgtar.conf",
               "# mine\n\n  compress-level   4  \nkeyring \"two\"\n--verbose\ngpg-args --armor");
    write_file(folders.home, "gpg.conf",
               "no-such-option of ours\nkeyserver hkps://x\ndefault-key ME\nencrypt-to ME\ncompress-level 9\n"
               "group g = A B\nkeyring three\nthrow-keyids\ntrust-model always\nrecipient CONF\n");
    write_file(folders.home, "common.conf", "use-keyboxd\nlog-file /tmp/somewhere\nno-autostart\n");

    struct result r = load_in(&folders.environment, "-e -r g --keyring four d");
    assert_int_equal(r.err, 0);
    assert_string_equal(r.options->home, folders.home);
    assert_int_equal(r.options->jobs, 3);
    assert_int_equal(r.options->compress_level, 4);
    assert_int_equal(r.options->verbose, 1);
    assert_int_equal(r.options->keyrings.n, 4);
    static const char *const keyrings[] = {"three", "one", "two", "four"};
    for (size_t i = 0; i < 4; i++)
        assert_string_equal(r.options->keyrings.items[i], keyrings[i]);
    assert_string_equal(r.options->default_keys.items[0], "ME");
    assert_int_equal(r.options->encrypt_to.n, 1);
    assert_int_equal(r.options->recipients.n, 3);
    assert_string_equal(r.options->recipients.items[2].name, "B");
    assert_true(r.options->throw_keyids && r.options->use_keyboxd && r.options->armor);
    assert_int_equal(r.options->trust_model, TRUST_ALWAYS);
    assert_null(r.options->log_file);
    options_free(r.options);

    r = load_in(&folders.environment, "-e -r A --batch -z1 --gpg-args --no-options d");
    assert_int_equal(r.err, 0);
    assert_int_equal(r.options->compress_level, 1);
    assert_int_equal(r.options->default_keys.n, 0);
    assert_string_equal(r.options->log_file, "/tmp/somewhere");
    options_free(r.options);

    /* A recipient in gpg.conf is no wish for encryption on this command line. */
    r = load_in(&folders.environment, "--create d");
    assert_int_equal(r.err, 0);
    assert_true(r.options->skip_crypto);
    options_free(r.options);
    r = load_in(&folders.environment, "-s d");
    assert_int_equal(r.err, 0);
    options_free(r.options);
    remove_folders(&folders);
}

static void test_flawed_configuration(void **state)
{
    static const struct {
        const char *base, *text, *first, *second;
    } table[] = {
        {"gpgtar.conf", "quiet\nbogus 1\n", "line 2", "bogus"},
        {"gpgtar.conf", "encrypt\n", "line 1", "encrypt"},
        {"gpgtar.conf", "jobs many\n", "line 1", "--jobs"},
        {"gpgtar.conf", "jobs\n", "line 1", "needs a value"},
        {"gpgtar.conf", "batch yes\n", "line 1", "no value"},
        {"gpgtar.conf", "homedir /x\n", "line 1", "homedir"},
        {"gpg.conf", "\n\ntrust-model tofu\n", "gpg.conf, line 3", "tofu"},
    };
    struct folders folders;
    (void)state;
    make_folders(&folders);
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        write_file(folders.home, table[i].base, table[i].text);
        struct result r = load_in(&folders.environment, "-d --status-fd 7 x");
        assert_true(r.err != 0);
        assert_int_equal(r.status_fd, 7);
        assert_non_null(strstr(r.sentence, folders.home));
        assert_non_null(strstr(r.sentence, table[i].first));
        assert_non_null(strstr(r.sentence, table[i].second));
        r = load_in(&folders.environment, "--help");
        assert_int_equal(r.err, 0);
        options_free(r.options);
        write_file(folders.home, table[i].base, "");
    }
    remove_folders(&folders);
}

static void test_status_fd_of_a_bad_line(void **state)
{
    (void)state;
    assert_int_equal(load("--bogus --status-fd 5").status_fd, 5);
    assert_int_equal(load("--status-fd=6 --bogus").status_fd, 6);
    assert_int_equal(load("--bogus -- --status-fd 5").status_fd, -1);
    assert_int_equal(load("--bogus --status-fd").status_fd, -1);
}

static void test_help_is_whole(void **state)
{
    struct option_help help;
    size_t n = 0, letters[256] = {0};
    (void)state;
    for (; options_help(n, &help); n++) {
        if (help.group != GROUP_HIDDEN && help.help)
            assert_true(help.help[0] != '\0');
        if (help.on_line && help.letter)
            assert_int_equal(letters[(unsigned char)help.letter]++, 0);
    }
    assert_true(n > 150);
    for (const char *letter = "esctdruoCTvqRfFzaNXgpOjh"; *letter; letter++)
        assert_int_equal(letters[(unsigned char)*letter], 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_commands),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_no_recipient_has_its_code),
        cmocka_unit_test(test_stock_calls),
        cmocka_unit_test(test_options_after_names),
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_dates),
        cmocka_unit_test(test_abbreviations),
        cmocka_unit_test(test_gpg_args),
        cmocka_unit_test(test_recipients),
        cmocka_unit_test(test_configuration),
        cmocka_unit_test(test_flawed_configuration),
        cmocka_unit_test(test_status_fd_of_a_bad_line),
        cmocka_unit_test(test_help_is_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
