/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "options.h"

#include "config.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

/* Where an option may stand. */
enum context {
    LINE = 1,     /* the command line */
    CONF = 2,     /* gpgtar.conf */
    GPG_ARGS = 4, /* --gpg-args */
    GPG_CONF = 8, /* gpg.conf */
    TAR_ARGS = 16,
    COMMON_CONF = 32,
    STOCK = 64, /* no context: GnuPG's gpgtar has the option, its abbreviations win */
};
#define OWN  (LINE | CONF)
#define GPG  (LINE | CONF | GPG_ARGS | GPG_CONF)
#define TAR  (LINE | CONF | TAR_ARGS)
#define BOTH (LINE | CONF | GPG_ARGS)

enum action {
    IGNORE,
    SET,    /* a bool gets the value NUMBER */
    TOGGLE, /* an enum toggle gets the value NUMBER */
    TEXT,   /* a char * */
    LIST,   /* a struct strings gets one more */
    NUMBER, /* an int, or an unsigned, between LOW and NUMBER (not negative) */
    SIZE,   /* a uint64_t with K, M, G or T */
    TAKE,   /* a function with NUMBER */
};

struct parser;
struct row {
    const char *name;
    char letter;
    unsigned char contexts;
    unsigned char group;
    unsigned char action;
    unsigned short offset;
    int low;
    int number;
    gpg_error_t (*take)(struct parser *parser, const struct row *row, const char *value);
    const char *value; /* NULL: takes none; "[…]": may be left out */
    const char *help;
};

/* What the command line says about commands, as bits, so that any order gives the same. */
enum {
    ASK_ENCRYPT = 1,
    ASK_SIGN = 2,
    ASK_SYMMETRIC = 4,
    ASK_CREATE = 8, /* --create */
    ASK_DECRYPT = 16,
    ASK_EXTRACT = 32, /* --extract */
    ASK_LIST = 64,
    ASK_VERIFY = 128,
    ASK_COMPARE = 256,
    ASK_HELP = 512,
    ASK_VERSION = 1024,
    ASK_DUMP = 2048,
};

/* Options that are settled only when everything has been read. */
struct parser {
    struct options *options;
    struct failure *failure;
    unsigned context;
    const char *where;            /* before sentences: file and line, or --gpg-args; NULL on the command line */
    unsigned asked;               /* ASK_ bits */
    const char *encryption_asked; /* the first option on the command line that names a recipient; NULL: none */
    const char *homedir;          /* borrowed from argv */
    bool no_options;
    bool no_encrypt_to;
    char *default_recipient;
    bool default_recipient_self;
    char *common_log;
    struct strings groups; /* "NAME=VALUE VALUE" */
    struct strings gpg_args, tar_args;
};

static gpg_error_t refuse(struct parser *parser, const char *format, ...) PRINTF_LIKE(2, 3);
static gpg_error_t refuse(struct parser *parser, const char *format, ...)
{
    char sentence[FAILURE_SENTENCE_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(sentence, sizeof sentence, format, args);
    va_end(args);
    return fail(parser->failure, gpg_error(GPG_ERR_INV_ARG), "%s%s%s", parser->where ? parser->where : "",
                parser->where ? ": " : "", sentence);
}

static gpg_error_t add_string(struct strings *strings, const char *text)
{
    char **items = realloc(strings->items, (strings->n + 1) * sizeof *items);
    if (!items)
        return gpg_error_from_syserror();
    strings->items = items;
    items[strings->n] = strdup(text);
    if (!items[strings->n])
        return gpg_error_from_syserror();
    strings->n++;
    return 0;
}

static gpg_error_t set_string(char **where, const char *text)
{
    char *copy = strdup(text);
    if (!copy)
        return gpg_error_from_syserror();
    free(*where);
    *where = copy;
    return 0;
}

static void clear_strings(struct strings *strings)
{
    for (size_t i = 0; i < strings->n; i++)
        free(strings->items[i]);
    free(strings->items);
    memset(strings, 0, sizeof *strings);
}

static gpg_error_t add_recipient(struct recipients *recipients, enum recipient_kind kind, const char *name)
{
    struct recipient *items = realloc(recipients->items, (recipients->n + 1) * sizeof *items);
    if (!items)
        return gpg_error_from_syserror();
    recipients->items = items;
    items[recipients->n].kind = kind;
    items[recipients->n].name = strdup(name);
    if (!items[recipients->n].name)
        return gpg_error_from_syserror();
    recipients->n++;
    return 0;
}

static void clear_recipients(struct recipients *recipients)
{
    for (size_t i = 0; i < recipients->n; i++)
        free(recipients->items[i].name);
    free(recipients->items);
    memset(recipients, 0, sizeof *recipients);
}

static bool on_line(const struct parser *parser)
{
    return parser->context & (LINE | GPG_ARGS | TAR_ARGS);
}

/* Values. */

static gpg_error_t parse_int(struct parser *parser, const struct row *row, const char *value, int low, int high,
                             int *ret)
{
    char *end;
    errno = 0;
    long number = strtol(value, &end, 10);
    if (errno || end == value || *end != '\0' || number < low || number > high)
        return refuse(parser, "--%s needs a number between %d and %d, not \"%s\"", row->name, low, high, value);
    *ret = (int)number;
    return 0;
}

static gpg_error_t parse_size(struct parser *parser, const struct row *row, const char *value, uint64_t *ret)
{
    static const char units[] = "KMGT";
    char *end;
    unsigned shift = 0;
    errno = 0;
    unsigned long long number = strtoull(value, &end, 10);
    bool good = !errno && value[0] >= '0' && value[0] <= '9';
    if (good && *end != '\0') {
        char upper = (char)(*end >= 'a' && *end <= 'z' ? *end - 'a' + 'A' : *end);
        const char *unit = strchr(units, upper);
        good = unit && end[1] == '\0';
        shift = good ? 10 * (unsigned)(unit - units + 1) : 0;
    }
    if (!good || number == 0 || number > ((uint64_t)INT64_MAX >> shift))
        return refuse(parser, "--%s needs a number greater than 0, perhaps with K, M, G or T after it, not \"%s\"",
                      row->name, value);
    *ret = (uint64_t)number << shift;
    return 0;
}

/* "@SECONDS", or a date with or without a time, local unless it ends in Z. */
static bool parse_date(const char *value, struct timespec *ret)
{
    static const char *const forms[] = {"%Y-%m-%d", "%Y-%m-%d %H:%M", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M",
                                        "%Y-%m-%dT%H:%M:%S"};
    if (*value == '@') {
        char *end;
        errno = 0;
        long long seconds = strtoll(value + 1, &end, 10);
        *ret = (struct timespec){.tv_sec = (time_t)seconds};
        return !errno && end != value + 1 && *end == '\0';
    }
    for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
        struct tm tm = {.tm_isdst = -1};
        const char *end = strptime(value, forms[i], &tm);
        if (!end || (*end != '\0' && strcmp(end, "Z") != 0))
            continue;
        *ret = (struct timespec){.tv_sec = *end == 'Z' ? timegm(&tm) : mktime(&tm)};
        return true;
    }
    return false;
}

static gpg_error_t take_newer(struct parser *parser, const struct row *row, const char *value)
{
    struct stat st;
    struct timespec when;
    if (!parse_date(value, &when)) {
        if (stat(value, &st))
            return refuse(parser,
                          "--%s needs a date (2024-01-31, 2024-01-31 12:00, @SECONDS) or an existing file, "
                          "not \"%s\"",
                          row->name, value);
        when = st.st_mtim;
    }
    parser->options->newer = when;
    parser->options->has_newer = true;
    return 0;
}

struct choice {
    const char *name;
    int value;
};

static gpg_error_t choose(struct parser *parser, const struct row *row, const char *value, const struct choice *choices,
                          size_t n, int *ret)
{
    char all[128] = "";
    for (size_t i = 0; i < n; i++) {
        if (strcasecmp(value, choices[i].name) == 0) {
            *ret = choices[i].value;
            return 0;
        }
        size_t used = strlen(all);
        snprintf(all + used, sizeof all - used, "%s%s", i ? ", " : "", choices[i].name);
    }
    return refuse(parser, "--%s does not know \"%s\": use one of %s", row->name, value, all);
}

static gpg_error_t take_trust_model(struct parser *parser, const struct row *row, const char *value)
{
    static const struct choice choices[] = {{"pgp", TRUST_PGP},
                                            {"classic", TRUST_PGP},
                                            {"direct", TRUST_DIRECT},
                                            {"always", TRUST_ALWAYS},
                                            {"auto", TRUST_AUTO}};
    int model = TRUST_AUTO;
    gpg_error_t err = choose(parser, row, value ? value : "always", choices, ARRAY_SIZE(choices), &model);
    if (!err)
        parser->options->trust_model = (enum trust_model)model;
    return err;
}

static gpg_error_t take_pinentry_mode(struct parser *parser, const struct row *row, const char *value)
{
    static const struct choice choices[] = {{"default", PINENTRY_DEFAULT},
                                            {"ask", PINENTRY_DEFAULT},
                                            {"cancel", PINENTRY_CANCEL},
                                            {"error", PINENTRY_ERROR},
                                            {"loopback", PINENTRY_LOOPBACK}};
    int mode = PINENTRY_DEFAULT;
    gpg_error_t err = choose(parser, row, value, choices, ARRAY_SIZE(choices), &mode);
    if (!err)
        parser->options->pinentry_mode = (enum pinentry_mode)mode;
    return err;
}

static gpg_error_t take_compliance(struct parser *parser, const struct row *row, const char *value)
{
    static const struct choice choices[] = {{"gnupg", PROFILE_GNUPG},
                                            {"rfc4880", PROFILE_RFC4880},
                                            {"openpgp", PROFILE_RFC4880},
                                            {"rfc9580", PROFILE_RFC9580}};
    int profile = PROFILE_DEFAULT;
    gpg_error_t err = choose(parser, row, value, choices, ARRAY_SIZE(choices), &profile);
    if (!err)
        parser->options->profile = (enum profile)profile;
    return err;
}

static gpg_error_t take_profile(struct parser *parser, const struct row *row, const char *value)
{
    (void)value;
    parser->options->profile = (enum profile)row->number;
    return 0;
}

static gpg_error_t take_command(struct parser *parser, const struct row *row, const char *value)
{
    (void)value;
    parser->asked |= (unsigned)row->number;
    return 0;
}

static gpg_error_t take_recipient(struct parser *parser, const struct row *row, const char *value)
{
    if (*value == '\0')
        return refuse(parser, "--%s needs a name that is not empty", row->name);
    if (on_line(parser) && !parser->encryption_asked)
        parser->encryption_asked = row->name;
    return add_recipient(&parser->options->recipients, (enum recipient_kind)row->number, value);
}

static gpg_error_t take_encrypt_to(struct parser *parser, const struct row *row, const char *value)
{
    return add_recipient(&parser->options->encrypt_to, (enum recipient_kind)row->number, value);
}

static gpg_error_t take_no_encrypt_to(struct parser *parser, const struct row *row, const char *value)
{
    (void)row;
    (void)value;
    parser->no_encrypt_to = true;
    return 0;
}

static gpg_error_t take_default_recipient(struct parser *parser, const struct row *row, const char *value)
{
    (void)row;
    parser->default_recipient_self = false;
    return set_string(&parser->default_recipient, value);
}

/* NUMBER 1: self; 0: none at all. */
static gpg_error_t take_recipient_self(struct parser *parser, const struct row *row, const char *value)
{
    (void)value;
    parser->default_recipient_self = row->number;
    free(parser->default_recipient);
    parser->default_recipient = NULL;
    return 0;
}

static gpg_error_t take_group(struct parser *parser, const struct row *row, const char *value)
{
    const char *equal = strchr(value, '=');
    if (!equal || equal == value)
        return refuse(parser, "--%s needs NAME=VALUE…, not \"%s\"", row->name, value);
    return add_string(&parser->groups, value);
}

static gpg_error_t take_no_groups(struct parser *parser, const struct row *row, const char *value)
{
    (void)row;
    (void)value;
    clear_strings(&parser->groups);
    return 0;
}

static gpg_error_t take_signer(struct parser *parser, const struct row *row, const char *value)
{
    if (*value == '\0')
        return refuse(parser, "--%s needs a name that is not empty", row->name);
    parser->options->require_signature = true;
    return add_string(&parser->options->allowed_signers, value);
}

/* NUMBER: the kind. */
static gpg_error_t take_passphrase(struct parser *parser, const struct row *row, const char *value)
{
    struct passphrase_origin *source = &parser->options->passphrase;
    int fd = -1;
    gpg_error_t err = 0;
    if (row->number == PASSPHRASE_FD)
        err = parse_int(parser, row, value, 0, INT_MAX, &fd);
    if (!err)
        err = set_string(&source->name, value);
    if (!err) {
        source->kind = (enum passphrase_kind)row->number;
        source->fd = fd;
    }
    return err;
}

static gpg_error_t refuse_passphrase(struct parser *parser, const struct row *row, const char *value)
{
    (void)value;
    return refuse(parser,
                  "--%s is refused: every user of this machine can see a passphrase on a command line (ps); use "
                  "--passphrase-fd, --passphrase-file or --passphrase-command",
                  row->name);
}

static gpg_error_t refuse_cms(struct parser *parser, const struct row *row, const char *value)
{
    (void)value;
    return refuse(parser, "--%s is not supported: only OpenPGP archives are", row->name);
}

static gpg_error_t take_level(struct parser *parser, const struct row *row, const char *value)
{
    struct options *options = parser->options;
    int level = -1;
    gpg_error_t err = parse_int(parser, row, value, -1, 9, &level);
    if (err)
        return err;
    options->no_compress = level == 0;
    options->compress_level = level > 0 ? level : -1;
    options->bzip2_level = level > 0 ? level : -1;
    return 0;
}

static gpg_error_t take_s2k_count(struct parser *parser, const struct row *row, const char *value)
{
    int count = 0;
    /* The largest count that one octet can say, RFC 9580 3.7.1.3. */
    gpg_error_t err = parse_int(parser, row, value, 1024, 65011712, &count);
    if (!err)
        parser->options->s2k_count = (uint32_t)count;
    return err;
}

static gpg_error_t take_zstd(struct parser *parser, const struct row *row, const char *value)
{
    parser->options->zstd_level = 3;
    return value ? parse_int(parser, row, value, 1, 22, &parser->options->zstd_level) : 0;
}

static gpg_error_t take_verbose(struct parser *parser, const struct row *row, const char *value)
{
    (void)value;
    parser->options->verbose = row->number ? parser->options->verbose + 1 : 0;
    return 0;
}

static gpg_error_t take_no_comments(struct parser *parser, const struct row *row, const char *value)
{
    (void)row;
    (void)value;
    clear_strings(&parser->options->comments);
    return 0;
}

static gpg_error_t take_notation(struct parser *parser, const struct row *row, const char *value)
{
    const char *name = *value == '!' ? value + 1 : value;
    const char *equal = strchr(name, '=');
    if (!equal || equal == name || !memchr(name, '@', (size_t)(equal - name)))
        return refuse(parser, "--%s needs NAME@DOMAIN=VALUE, not \"%s\"", row->name, value);
    return add_string(&parser->options->notations, value);
}

static gpg_error_t take_homedir(struct parser *parser, const struct row *row, const char *value)
{
    (void)row;
    parser->homedir = value;
    return 0;
}

static gpg_error_t take_no_options(struct parser *parser, const struct row *row, const char *value)
{
    (void)row;
    (void)value;
    parser->no_options = true;
    return 0;
}

static gpg_error_t take_common_log(struct parser *parser, const struct row *row, const char *value)
{
    (void)row;
    return set_string(&parser->common_log, value);
}

/* NUMBER 0: --gpg-args; 1: --tar-args. The words of all of them are one list: a value may follow in the next. */
static gpg_error_t take_args(struct parser *parser, const struct row *row, const char *value)
{
    char **words = NULL;
    size_t n = 0;
    gpg_error_t err = config_split(value, &words, &n);
    if (gpg_err_code(err) == GPG_ERR_SYNTAX)
        return refuse(parser, "--%s has a quote that is not closed: %s", row->name, value);
    for (size_t i = 0; !err && i < n; i++)
        err = add_string(row->number ? &parser->tar_args : &parser->gpg_args, words[i]);
    config_words_free(words, n);
    return err;
}

/* The table. */

#define AT(field) offsetof(struct options, field)
#define ROW(name_, letter_, contexts_, group_, action_, value_, help_, ...)                                            \
    {                                                                                                                  \
        .name = name_, .letter = letter_, .contexts = contexts_, .group = group_, .action = action_, .value = value_,  \
        .help = help_, __VA_ARGS__                                                                                     \
    }
#define COMMAND_ROW(name, letter, contexts, bit, help)                                                                 \
    ROW(name, letter, contexts, GROUP_COMMANDS, TAKE, NULL, help, .take = take_command, .number = bit)
#define ON_ROW(name, letter, contexts, group, field, help)                                                             \
    ROW(name, letter, contexts, group, SET, NULL, help, .offset = AT(field), .number = 1)
#define OFF_ROW(name, contexts, field)                                                                                 \
    ROW(name, 0, contexts, GROUP_HIDDEN, SET, NULL, NULL, .offset = AT(field), .number = 0)
#define TOGGLE_ROW(name, contexts, group, field, to, help)                                                             \
    ROW(name, 0, contexts, group, TOGGLE, NULL, help, .offset = AT(field), .number = to)
#define TEXT_ROW(name, letter, contexts, group, field, value, help)                                                    \
    ROW(name, letter, contexts, group, TEXT, value, help, .offset = AT(field))
#define LIST_ROW(name, letter, contexts, group, field, value, help)                                                    \
    ROW(name, letter, contexts, group, LIST, value, help, .offset = AT(field))
#define NUMBER_ROW(name, letter, contexts, group, field, low_, high, value, help)                                      \
    ROW(name, letter, contexts, group, NUMBER, value, help, .offset = AT(field), .low = low_, .number = high)
#define SIZE_ROW(name, contexts, group, field, value, help)                                                            \
    ROW(name, 0, contexts, group, SIZE, value, help, .offset = AT(field))
#define TAKE_ROW(name, letter, contexts, group, function, number_, value, help)                                        \
    ROW(name, letter, contexts, group, TAKE, value, help, .take = function, .number = number_)
#define IGNORE_ROW(name, contexts, value) ROW(name, 0, contexts, GROUP_HIDDEN, IGNORE, value, NULL, .number = 0)

/* clang-format off */
static const struct row rows[] = {
    COMMAND_ROW("encrypt", 'e', LINE | GPG_ARGS | STOCK, ASK_ENCRYPT, "make an archive that is encrypted to keys (with -r)"),
    COMMAND_ROW("sign", 's', LINE | GPG_ARGS | STOCK, ASK_SIGN, "make an archive that is signed; goes with -e and -c"),
    COMMAND_ROW("symmetric", 'c', LINE | GPG_ARGS | STOCK, ASK_SYMMETRIC, "make an archive that a passphrase opens; goes with -r"),
    COMMAND_ROW("decrypt", 'd', LINE | STOCK, ASK_DECRYPT, "decrypt and verify an archive and extract it"),
    COMMAND_ROW("list-archive", 't', LINE | STOCK, ASK_LIST, "decrypt and verify an archive and list it"),
    COMMAND_ROW("verify", 0, LINE, ASK_VERIFY, "read all of an archive, check everything, write nothing"),
    COMMAND_ROW("compare", 0, LINE, ASK_COMPARE, "tell how an archive and the disk differ"),
    COMMAND_ROW("diff", 0, LINE, ASK_COMPARE, NULL),
    COMMAND_ROW("create", 0, LINE | STOCK, ASK_CREATE, "make a plain tar, neither encrypted nor signed"),
    COMMAND_ROW("extract", 0, LINE | STOCK, ASK_EXTRACT, "extract a plain tar"),
    COMMAND_ROW("help", 'h', LINE | STOCK, ASK_HELP, "show this"),
    COMMAND_ROW("version", 0, LINE | STOCK, ASK_VERSION, "show the version of the program and its libraries"),
    COMMAND_ROW("warranty", 0, LINE | STOCK, ASK_VERSION, NULL),
    COMMAND_ROW("dump-options", 0, LINE | STOCK, ASK_DUMP, "show the names of all options"),

    TEXT_ROW("output", 'o', LINE | STOCK, GROUP_FILES, output, "FILE", "write the archive to FILE (- or none: standard output)"),
    TEXT_ROW("directory", 'C', OWN | TAR_ARGS | STOCK, GROUP_FILES, directory, "DIR", "go to the folder DIR first; extract into it"),
    TEXT_ROW("files-from", 'T', LINE | TAR_ARGS | STOCK, GROUP_FILES, files_from, "FILE", "take names from FILE, one a line (-: standard input)"),
    ON_ROW("null", 0, OWN | TAR_ARGS | STOCK, GROUP_FILES, null, "names in -T end with NUL; names in listings are raw"),
    ON_ROW("skip-crypto", 0, LINE | STOCK, GROUP_FILES, skip_crypto, "plain tar: no encryption, no signature"),
    TEXT_ROW("set-filename", 0, LINE | GPG_ARGS | STOCK, GROUP_FILES, set_filename, "NAME", "-d makes its folder after NAME"),
    ON_ROW("dry-run", 0, OWN | STOCK, GROUP_FILES, dry_run, "do all but write"),
    ON_ROW("dry-run", 'n', GPG_ARGS, GROUP_HIDDEN, dry_run, NULL),
    ON_ROW("yes", 0, BOTH | STOCK, GROUP_FILES, yes, "replace files that exist; say yes to every question"),
    ON_ROW("no", 0, BOTH | STOCK, GROUP_FILES, no, "say no to every question"),

    TAKE_ROW("recipient", 'r', GPG | STOCK, GROUP_KEYS, take_recipient, RECIPIENT_NAME, "USER-ID", "encrypt to the key of USER-ID"),
    TAKE_ROW("remote-user", 0, GPG, GROUP_HIDDEN, take_recipient, RECIPIENT_NAME, "USER-ID", NULL),
    TAKE_ROW("hidden-recipient", 'R', GPG, GROUP_KEYS, take_recipient, RECIPIENT_HIDDEN_NAME, "USER-ID", "the same, without the key's id in the archive"),
    TAKE_ROW("recipient-file", 'f', GPG, GROUP_KEYS, take_recipient, RECIPIENT_FILE, "FILE", "encrypt to the key in FILE"),
    TAKE_ROW("hidden-recipient-file", 'F', GPG, GROUP_KEYS, take_recipient, RECIPIENT_HIDDEN_FILE, "FILE", "the same, without the key's id in the archive"),
    ON_ROW("throw-keyids", 0, GPG, GROUP_KEYS, throw_keyids, "no key ids in the archive at all"),
    OFF_ROW("no-throw-keyids", GPG, throw_keyids),
    LIST_ROW("local-user", 'u', GPG | STOCK, GROUP_KEYS, signers, "USER-ID", "sign with the key of USER-ID"),
    LIST_ROW("default-key", 0, GPG, GROUP_KEYS, default_keys, "USER-ID", "sign with this key where -u is not given"),
    TAKE_ROW("encrypt-to", 0, GPG, GROUP_KEYS, take_encrypt_to, RECIPIENT_NAME, "USER-ID", "one more recipient of every encrypted archive"),
    TAKE_ROW("hidden-encrypt-to", 0, GPG, GROUP_KEYS, take_encrypt_to, RECIPIENT_HIDDEN_NAME, "USER-ID", NULL),
    TAKE_ROW("no-encrypt-to", 0, GPG, GROUP_KEYS, take_no_encrypt_to, 0, NULL, "none of those"),
    TAKE_ROW("default-recipient", 0, GPG, GROUP_KEYS, take_default_recipient, 0, "USER-ID", "encrypt to this key where no recipient is given"),
    TAKE_ROW("default-recipient-self", 0, GPG, GROUP_KEYS, take_recipient_self, 1, NULL, "the same with the default key"),
    TAKE_ROW("no-default-recipient", 0, GPG, GROUP_HIDDEN, take_recipient_self, 0, NULL, NULL),
    TAKE_ROW("group", 0, GPG, GROUP_KEYS, take_group, 0, "NAME=IDS", "NAME as a recipient stands for these"),
    TAKE_ROW("no-groups", 0, GPG, GROUP_HIDDEN, take_no_groups, 0, NULL, NULL),
    TAKE_ROW("homedir", 0, LINE | GPG_ARGS, GROUP_KEYS, take_homedir, 0, "DIR", "GnuPG's home, instead of $GNUPGHOME or ~/.gnupg"),
    LIST_ROW("keyring", 0, GPG, GROUP_KEYS, keyrings, "FILE", "look for keys in FILE too"),
    ON_ROW("no-default-keyring", 0, GPG, GROUP_KEYS, no_default_keyring, "look for keys in those files only"),
    LIST_ROW("secret-key-file", 0, OWN, GROUP_KEYS, secret_key_files, "FILE", "sign or decrypt with the secret key in FILE, without gpg-agent"),
    TAKE_ROW("trust-model", 0, GPG, GROUP_KEYS, take_trust_model, 0, "MODEL", "pgp, direct, always or auto"),
    TAKE_ROW("always-trust", 0, GPG, GROUP_KEYS, take_trust_model, 0, NULL, "take every key as valid"),
    TEXT_ROW("agent-program", 0, GPG, GROUP_HIDDEN, agent_program, "FILE", NULL),
    ON_ROW("use-keyboxd", 0, CONF | COMMON_CONF, GROUP_HIDDEN, use_keyboxd, NULL),

    TAKE_ROW("passphrase-fd", 0, GPG, GROUP_PASSPHRASES, take_passphrase, PASSPHRASE_FD, "N", "read the passphrase from descriptor N"),
    TAKE_ROW("passphrase-file", 0, GPG, GROUP_PASSPHRASES, take_passphrase, PASSPHRASE_FILE, "FILE", "take the first line of FILE"),
    TAKE_ROW("passphrase-command", 0, OWN, GROUP_PASSPHRASES, take_passphrase, PASSPHRASE_COMMAND, "CMD", "take the first line that the shell command CMD writes"),
    TAKE_ROW("passphrase", 0, BOTH, GROUP_HIDDEN, refuse_passphrase, 0, "STRING", NULL),
    NUMBER_ROW("passphrase-repeat", 0, GPG, GROUP_HIDDEN, passphrase_repeat, 0, 10, "N", NULL),
    TAKE_ROW("pinentry-mode", 0, GPG, GROUP_PASSPHRASES, take_pinentry_mode, 0, "MODE", "default, cancel, error or loopback"),
    TEXT_ROW("override-session-key", 0, GPG, GROUP_PASSPHRASES, override_session_key, "KEY", "decrypt with this session key (ALGO:HEX)"),
    NUMBER_ROW("override-session-key-fd", 0, GPG, GROUP_PASSPHRASES, override_session_key_fd, 0, INT_MAX, "N", "the same, read from descriptor N"),
    ON_ROW("show-session-key", 0, GPG, GROUP_PASSPHRASES, show_session_key, "show the session key of the archive"),

    ON_ROW("no-compress", 0, GPG | STOCK, GROUP_ALGORITHMS, no_compress, "do not compress"),
    TAKE_ROW("compress-level", 'z', GPG, GROUP_ALGORITHMS, take_level, 0, "N", "0 (none), 1 (fast, the default) to 9"),
    TEXT_ROW("compress-algo", 0, GPG, GROUP_ALGORITHMS, compress_algo, "NAME", "none, zip, zlib or bzip2"),
    TEXT_ROW("compression-algo", 0, GPG, GROUP_HIDDEN, compress_algo, "NAME", NULL),
    NUMBER_ROW("bzip2-compress-level", 0, GPG, GROUP_ALGORITHMS, bzip2_level, 1, 9, "N", "1 to 9"),
    TEXT_ROW("cipher-algo", 0, GPG, GROUP_ALGORITHMS, cipher_algo, "NAME", "encrypt with this cipher"),
    TEXT_ROW("digest-algo", 0, GPG, GROUP_ALGORITHMS, digest_algo, "NAME", "sign with this digest"),
    TEXT_ROW("personal-cipher-preferences", 0, GPG, GROUP_HIDDEN, personal_cipher_preferences, "LIST", NULL),
    TEXT_ROW("personal-cipher-prefs", 0, GPG, GROUP_HIDDEN, personal_cipher_preferences, "LIST", NULL),
    TEXT_ROW("personal-digest-preferences", 0, GPG, GROUP_HIDDEN, personal_digest_preferences, "LIST", NULL),
    TEXT_ROW("personal-digest-prefs", 0, GPG, GROUP_HIDDEN, personal_digest_preferences, "LIST", NULL),
    TEXT_ROW("personal-compress-preferences", 0, GPG, GROUP_HIDDEN, personal_compress_preferences, "LIST", NULL),
    TEXT_ROW("personal-compress-prefs", 0, GPG, GROUP_HIDDEN, personal_compress_preferences, "LIST", NULL),
    NUMBER_ROW("s2k-mode", 0, GPG, GROUP_ALGORITHMS, s2k_mode, 0, 4, "N", "how a passphrase becomes a key: 3 (iterated), 4 (Argon2)"),
    TEXT_ROW("s2k-digest-algo", 0, GPG, GROUP_ALGORITHMS, s2k_digest_algo, "NAME", "the digest for that"),
    TEXT_ROW("s2k-cipher-algo", 0, GPG, GROUP_ALGORITHMS, s2k_cipher_algo, "NAME", "the cipher for passphrases"),
    TAKE_ROW("s2k-count", 0, GPG, GROUP_ALGORITHMS, take_s2k_count, 0, "N", "how many bytes are hashed for that"),
    ON_ROW("force-ocb", 0, GPG, GROUP_ALGORITHMS, force_ocb, "encrypt with OCB even where a key does not ask for it"),
    ON_ROW("force-aead", 0, GPG, GROUP_HIDDEN, force_ocb, NULL),
    NUMBER_ROW("chunk-size", 0, GPG, GROUP_ALGORITHMS, chunk_size, 6, 22, "N", "AEAD chunks of 2^N bytes"),
    TAKE_ROW("gnupg", 0, GPG, GROUP_ALGORITHMS, take_profile, PROFILE_GNUPG, NULL, "write what GnuPG reads"),
    TAKE_ROW("rfc4880", 0, GPG, GROUP_ALGORITHMS, take_profile, PROFILE_RFC4880, NULL, "write what RFC 4880 has"),
    TAKE_ROW("rfc9580", 0, GPG, GROUP_ALGORITHMS, take_profile, PROFILE_RFC9580, NULL, "write what RFC 9580 has"),
    TAKE_ROW("compliance", 0, GPG, GROUP_HIDDEN, take_compliance, 0, "NAME", NULL),
    ON_ROW("require-compliance", 0, BOTH | STOCK, GROUP_HIDDEN, require_compliance, NULL),
    ON_ROW("armor", 'a', GPG, GROUP_ALGORITHMS, armor, "write text (base64) instead of binary"),
    ON_ROW("armour", 0, GPG, GROUP_HIDDEN, armor, NULL),
    OFF_ROW("no-armor", GPG, armor),
    OFF_ROW("no-armour", GPG, armor),
    LIST_ROW("comment", 0, GPG, GROUP_ALGORITHMS, comments, "TEXT", "a comment at the start of that text"),
    TAKE_ROW("no-comments", 0, GPG, GROUP_HIDDEN, take_no_comments, 0, NULL, NULL),
    TAKE_ROW("set-notation", 'N', GPG, GROUP_ALGORITHMS, take_notation, 0, "NAME=VALUE", "put this notation into the signature"),
    TAKE_ROW("sig-notation", 0, GPG, GROUP_HIDDEN, take_notation, 0, "NAME=VALUE", NULL),

    ON_ROW("require-signature", 0, OWN, GROUP_VERIFICATION, require_signature, "take nothing without a good signature"),
    TAKE_ROW("signer", 0, OWN, GROUP_VERIFICATION, take_signer, 0, "USER-ID", "this key must have signed (several: one of them)"),
    SIZE_ROW("max-size", OWN, GROUP_VERIFICATION, max_size, "BYTES", "extract no more than this (K, M, G, T after the number)"),
    SIZE_ROW("max-files", OWN, GROUP_VERIFICATION, max_files, "N", "extract no more members than this"),
    ON_ROW("allow-unprotected", 0, OWN, GROUP_VERIFICATION, allow_unprotected, "-d takes what is neither encrypted nor signed"),
    ON_ROW("ignore-mdc-error", 0, GPG, GROUP_VERIFICATION, ignore_mdc_error, "read old data without protection against changes"),
    ON_ROW("salvage", 0, LINE, GROUP_VERIFICATION, salvage, "take what can be read of a damaged archive, unverified"),
    ON_ROW("quick", 0, LINE, GROUP_VERIFICATION, quick, "seek to single members; the signature is not checked"),

    LIST_ROW("exclude", 0, TAR, GROUP_ARCHIVING, exclude, "PATTERN", "leave out what matches"),
    LIST_ROW("exclude-from", 'X', TAR, GROUP_ARCHIVING, exclude_from, "FILE", "the same with the patterns in FILE"),
    ON_ROW("exclude-caches", 0, TAR, GROUP_ARCHIVING, exclude_caches, "leave out what is in folders with a CACHEDIR.TAG"),
    ON_ROW("exclude-vcs", 0, TAR, GROUP_ARCHIVING, exclude_vcs, "leave out .git, .svn and the like"),
    ON_ROW("one-file-system", 0, TAR, GROUP_ARCHIVING, one_file_system, "do not go into other file systems"),
    TAKE_ROW("newer-mtime", 0, TAR, GROUP_ARCHIVING, take_newer, 0, "DATE|FILE", "only what was changed after DATE, or after FILE was"),
    ON_ROW("no-recursion", 0, TAR, GROUP_ARCHIVING, no_recursion, "folders without what is in them"),
    OFF_ROW("recursion", TAR, no_recursion),
    ON_ROW("dereference", 0, OWN, GROUP_ARCHIVING, dereference, "store what symlinks point to"),
    ON_ROW("dereference", 'h', TAR_ARGS, GROUP_HIDDEN, dereference, NULL),
    ON_ROW("numeric-owner", 0, TAR, GROUP_ARCHIVING, numeric_owner, "numbers instead of user and group names"),
    ON_ROW("portable", 0, OWN, GROUP_ARCHIVING, portable, "for readers that are GnuPG's gpgtar: hard links as copies"),
    TAKE_ROW("zstd", 0, TAR, GROUP_ARCHIVING, take_zstd, 0, "[LEVEL]", "compress the tar with zstd"),
    TEXT_ROW("listed-incremental", 'g', TAR, GROUP_ARCHIVING, listed_incremental, "SNAPSHOT", "only what changed since SNAPSHOT was written"),
    ON_ROW("strict", 0, OWN, GROUP_ARCHIVING, strict, "write nothing if any input cannot be read"),
    ON_ROW("allow-empty", 0, OWN, GROUP_ARCHIVING, allow_empty, "an archive of nothing is no error"),

    OFF_ROW("wildcards", TAR, no_wildcards),
    ON_ROW("no-wildcards", 0, TAR, GROUP_EXTRACTING, no_wildcards, "member names are no patterns"),
    NUMBER_ROW("strip-components", 0, TAR, GROUP_EXTRACTING, strip_components, 0, 4096, "N", "take N folders off the front of each name"),
    ON_ROW("same-permissions", 'p', TAR, GROUP_EXTRACTING, same_permissions, "restore modes exactly; as root also setuid and capabilities"),
    ON_ROW("preserve-permissions", 0, TAR, GROUP_HIDDEN, same_permissions, NULL),
    OFF_ROW("no-same-permissions", TAR, same_permissions),
    TOGGLE_ROW("same-owner", TAR, GROUP_EXTRACTING, same_owner, TOGGLE_ON, "restore owners (as root the default)"),
    TOGGLE_ROW("no-same-owner", TAR, GROUP_EXTRACTING, same_owner, TOGGLE_OFF, "do not"),
    TOGGLE_ROW("xattrs", TAR, GROUP_HIDDEN, xattrs, TOGGLE_ON, NULL),
    TOGGLE_ROW("no-xattrs", TAR, GROUP_EXTRACTING, xattrs, TOGGLE_OFF, "leave extended attributes aside"),
    TOGGLE_ROW("acls", TAR, GROUP_HIDDEN, acls, TOGGLE_ON, NULL),
    TOGGLE_ROW("no-acls", TAR, GROUP_EXTRACTING, acls, TOGGLE_OFF, "leave access control lists aside"),
    ON_ROW("keep-old-files", 'k', TAR_ARGS, GROUP_HIDDEN, keep_old_files, NULL),
    ON_ROW("keep-old-files", 0, OWN, GROUP_EXTRACTING, keep_old_files, "a file that exists is an error, and is kept"),
    ON_ROW("skip-old-files", 0, TAR, GROUP_EXTRACTING, skip_old_files, "a file that exists is kept, without an error"),
    ON_ROW("to-stdout", 'O', LINE | TAR_ARGS, GROUP_EXTRACTING, to_stdout, "write the content of members to standard output"),
    ON_ROW("concatenated", 0, OWN, GROUP_EXTRACTING, concatenated, "read on after the end of a tar: several in a row"),

    NUMBER_ROW("jobs", 'j', OWN, GROUP_RUNNING, jobs, 0, 256, "N", "threads for compression and encryption (0: all processors)"),
    TAKE_ROW("verbose", 'v', BOTH | STOCK, GROUP_RUNNING, take_verbose, 1, NULL, "say more"),
    TAKE_ROW("no-verbose", 0, BOTH, GROUP_HIDDEN, take_verbose, 0, NULL, NULL),
    ON_ROW("quiet", 'q', BOTH | STOCK, GROUP_RUNNING, quiet, "say less"),
    TOGGLE_ROW("progress", OWN, GROUP_RUNNING, progress, TOGGLE_ON, "show how far the work is, even without a terminal"),
    TOGGLE_ROW("no-progress", OWN, GROUP_RUNNING, progress, TOGGLE_OFF, "never show it"),
    ON_ROW("batch", 0, BOTH | STOCK, GROUP_RUNNING, batch, "never ask anything"),
    OFF_ROW("no-batch", BOTH, batch),
    NUMBER_ROW("status-fd", 0, LINE | GPG_ARGS | STOCK, GROUP_RUNNING, status_fd, 0, INT_MAX, "N", "write status lines for programs to descriptor N"),
    TEXT_ROW("log-file", 0, BOTH, GROUP_RUNNING, log_file, "FILE", "write messages to FILE"),
    TAKE_ROW("log-file", 0, COMMON_CONF, GROUP_HIDDEN, take_common_log, 0, "FILE", NULL),
    ON_ROW("with-log", 0, OWN | STOCK, GROUP_RUNNING, with_log, "-d also writes its messages to a file beside its folder"),
    TAKE_ROW("gpg-args", 0, OWN | STOCK, GROUP_RUNNING, take_args, 0, "ARGS", "options in gpg's words"),
    TAKE_ROW("tar-args", 0, OWN | STOCK, GROUP_RUNNING, take_args, 1, "ARGS", "options in tar's words"),
    IGNORE_ROW("gpg", OWN | STOCK, "PROGRAM"),
    IGNORE_ROW("tar", OWN | STOCK, "PROGRAM"),
    IGNORE_ROW("openpgp", BOTH | STOCK, NULL),
    TAKE_ROW("cms", 0, OWN | STOCK, GROUP_HIDDEN, refuse_cms, 0, NULL, NULL),
    IGNORE_ROW("utf8-strings", BOTH | STOCK, NULL),
    ON_ROW("debug", 0, OWN | STOCK, GROUP_HIDDEN, debug, NULL),
    TAKE_ROW("no-options", 0, GPG_ARGS, GROUP_HIDDEN, take_no_options, 0, NULL, NULL),

    /* These steer gpg's front: its terminal, its locale, its network, its caches. Here they have nothing to steer. */
    IGNORE_ROW("allow-old-cipher-algos", GPG_ARGS, NULL),
    IGNORE_ROW("auto-check-trustdb", GPG_ARGS, NULL),
    IGNORE_ROW("auto-key-locate", GPG_ARGS, "LIST"),
    IGNORE_ROW("auto-key-retrieve", GPG_ARGS, NULL),
    IGNORE_ROW("charset", GPG_ARGS, "NAME"),
    IGNORE_ROW("debug", GPG_ARGS, "FLAGS"),
    IGNORE_ROW("disable-dirmngr", GPG_ARGS, NULL),
    IGNORE_ROW("disable-mdc", GPG_ARGS, NULL),
    IGNORE_ROW("display", GPG_ARGS, "NAME"),
    IGNORE_ROW("display-charset", GPG_ARGS, "NAME"),
    IGNORE_ROW("emit-version", GPG_ARGS, NULL),
    IGNORE_ROW("enable-progress-filter", GPG_ARGS, NULL),
    IGNORE_ROW("enable-special-filenames", GPG_ARGS, NULL),
    IGNORE_ROW("exit-on-status-write-error", GPG_ARGS, NULL),
    IGNORE_ROW("expert", GPG_ARGS, NULL),
    IGNORE_ROW("force-mdc", GPG_ARGS, NULL),
    IGNORE_ROW("include-key-block", GPG_ARGS, NULL),
    IGNORE_ROW("input-size-hint", GPG_ARGS, "N"),
    IGNORE_ROW("known-notation", GPG_ARGS, "NAME"),
    IGNORE_ROW("lc-ctype", GPG_ARGS, "NAME"),
    IGNORE_ROW("lc-messages", GPG_ARGS, "NAME"),
    IGNORE_ROW("lock-multiple", GPG_ARGS, NULL),
    IGNORE_ROW("lock-never", GPG_ARGS, NULL),
    IGNORE_ROW("lock-once", GPG_ARGS, NULL),
    IGNORE_ROW("no-auto-check-trustdb", GPG_ARGS, NULL),
    IGNORE_ROW("no-auto-key-locate", GPG_ARGS, NULL),
    IGNORE_ROW("no-auto-key-retrieve", GPG_ARGS, NULL),
    IGNORE_ROW("no-emit-version", GPG_ARGS, NULL),
    IGNORE_ROW("no-expert", GPG_ARGS, NULL),
    IGNORE_ROW("no-greeting", GPG_ARGS, NULL),
    IGNORE_ROW("no-include-key-block", GPG_ARGS, NULL),
    IGNORE_ROW("no-mdc-warning", GPG_ARGS, NULL),
    IGNORE_ROW("no-permission-warning", GPG_ARGS, NULL),
    IGNORE_ROW("no-random-seed-file", GPG_ARGS, NULL),
    IGNORE_ROW("no-secmem-warning", GPG_ARGS, NULL),
    IGNORE_ROW("no-sig-cache", GPG_ARGS, NULL),
    IGNORE_ROW("no-sk-comments", GPG_ARGS, NULL),
    IGNORE_ROW("no-symkey-cache", GPG_ARGS, NULL),
    IGNORE_ROW("no-tty", GPG_ARGS, NULL),
    IGNORE_ROW("no-use-agent", GPG_ARGS, NULL),
    IGNORE_ROW("no-version", GPG_ARGS, NULL),
    IGNORE_ROW("proc-all-sigs", GPG_ARGS, NULL),
    IGNORE_ROW("request-origin", GPG_ARGS, "NAME"),
    IGNORE_ROW("sender", GPG_ARGS, "MAIL"),
    IGNORE_ROW("sk-comments", GPG_ARGS, NULL),
    IGNORE_ROW("ttyname", GPG_ARGS, "NAME"),
    IGNORE_ROW("ttytype", GPG_ARGS, "NAME"),
    IGNORE_ROW("use-agent", GPG_ARGS, NULL),
    IGNORE_ROW("xauthority", GPG_ARGS, "NAME"),
};
/* clang-format on */

bool options_help(size_t i, struct option_help *ret)
{
    if (i >= ARRAY_SIZE(rows))
        return false;
    const struct row *row = &rows[i];
    *ret = (struct option_help){.group = row->contexts & LINE ? (enum option_group)row->group : GROUP_HIDDEN,
                                .on_line = row->contexts & LINE,
                                .letter = row->letter,
                                .name = row->name,
                                .value = row->value,
                                .help = row->help};
    return true;
}

/* Finding and applying. */

static gpg_error_t apply(struct parser *parser, const struct row *row, const char *value)
{
    void *field = (char *)parser->options + row->offset;
    switch ((enum action)row->action) {
    case IGNORE:
        return 0;
    case SET:
        *(bool *)field = row->number;
        return 0;
    case TOGGLE:
        *(enum toggle *)field = (enum toggle)row->number;
        return 0;
    case TEXT:
        return set_string(field, value);
    case LIST:
        return add_string(field, value);
    case NUMBER:
        return parse_int(parser, row, value, row->low, row->number, field);
    case SIZE:
        return parse_size(parser, row, value, field);
    case TAKE:
        return row->take(parser, row, value);
    }
    return gpg_error(GPG_ERR_BUG);
}

/* Whether two names are of one option. */
static bool same_option(const struct row *a, const struct row *b)
{
    return a->action == b->action && a->offset == b->offset && a->take == b->take && a->number == b->number &&
           !a->value == !b->value && (a->action != IGNORE || a == b);
}

/* The only option of PARSER's context that NAME (N bytes) begins; with STOCK in WANTED, only of stock ones. *RET_OTHER
 * is a second one where there are several. */
static const struct row *find_prefix(const struct parser *parser, unsigned wanted, const char *name, size_t n,
                                     const struct row **ret_other)
{
    const struct row *found = NULL;
    *ret_other = NULL;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        const struct row *row = &rows[i];
        if (!(row->contexts & parser->context) || (row->contexts & wanted) != wanted ||
            strncmp(row->name, name, n) != 0)
            continue;
        if (!found)
            found = row;
        else if (!same_option(found, row))
            *ret_other = row;
    }
    return found;
}

static gpg_error_t find_long(struct parser *parser, const char *name, size_t n, const struct row **ret)
{
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        if ((rows[i].contexts & parser->context) && strlen(rows[i].name) == n && memcmp(rows[i].name, name, n) == 0) {
            *ret = &rows[i];
            return 0;
        }
    const struct row *other, *found = n > 0 ? find_prefix(parser, STOCK, name, n, &other) : NULL;
    if (!found || other)
        found = find_prefix(parser, 0, name, n, &other);
    if (!found || n == 0)
        return refuse(parser, "unknown option --%.*s (see gpgtar --help)", (int)n, name);
    if (other)
        return refuse(parser, "option --%.*s can mean --%s or --%s", (int)n, name, found->name, other->name);
    *ret = found;
    return 0;
}

/* The word at *AT; *AT goes on past it and past its value. */
static gpg_error_t parse_long(struct parser *parser, char *const *words, size_t n, size_t *at)
{
    const char *name = words[*at] + 2;
    const char *equal = strchr(name, '=');
    const char *value = equal ? equal + 1 : NULL;
    const struct row *row = NULL;
    gpg_error_t err = find_long(parser, name, equal ? (size_t)(equal - name) : strlen(name), &row);
    if (err)
        return err;
    ++*at;
    if (value && !row->value)
        return refuse(parser, "option --%s takes no value", row->name);
    if (!value && row->value && *row->value != '[') {
        if (*at >= n)
            return refuse(parser, "option --%s needs a value (%s)", row->name, row->value);
        value = words[(*at)++];
    }
    return apply(parser, row, value);
}

static gpg_error_t parse_letters(struct parser *parser, char *const *words, size_t n, size_t *at)
{
    const char *letters = words[(*at)++] + 1;
    gpg_error_t err = 0;
    while (!err && *letters != '\0') {
        const struct row *row = NULL;
        for (size_t i = 0; !row && i < ARRAY_SIZE(rows); i++)
            if ((rows[i].contexts & parser->context) && rows[i].letter == *letters)
                row = &rows[i];
        if (!row)
            return refuse(parser, "unknown option -%c (see gpgtar --help)", *letters);
        letters++;
        if (!row->value) {
            err = apply(parser, row, NULL);
            continue;
        }
        if (*letters != '\0')
            return apply(parser, row, letters);
        if (*at >= n)
            return refuse(parser, "option -%c needs a value (%s)", row->letter, row->value);
        return apply(parser, row, words[(*at)++]);
    }
    return err;
}

/* All WORDS in PARSER's context; those that are no options go to NAMES (NULL: there must be none). */
static gpg_error_t parse_words(struct parser *parser, char *const *words, size_t n, struct strings *names)
{
    const unsigned at_once = ASK_HELP | ASK_VERSION | ASK_DUMP;
    bool ended = false;
    gpg_error_t err = 0;
    for (size_t at = 0; !err && at < n && !(parser->asked & at_once);) {
        const char *word = words[at];
        if (!ended && strcmp(word, "--") == 0) {
            ended = true;
            at++;
        } else if (!ended && word[0] == '-' && word[1] == '-') {
            err = parse_long(parser, words, n, &at);
        } else if (!ended && word[0] == '-' && word[1] != '\0') {
            err = parse_letters(parser, words, n, &at);
        } else if (!names) {
            err = refuse(parser, "\"%s\" is not an option", word);
        } else {
            err = add_string(names, word);
            at++;
        }
    }
    return err;
}

static gpg_error_t parse_args(struct parser *parser)
{
    const unsigned context = parser->context;
    parser->context = GPG_ARGS;
    parser->where = "--gpg-args";
    gpg_error_t err = parse_words(parser, parser->gpg_args.items, parser->gpg_args.n, NULL);
    if (!err) {
        parser->context = TAR_ARGS;
        parser->where = "--tar-args";
        err = parse_words(parser, parser->tar_args.items, parser->tar_args.n, NULL);
    }
    parser->context = context;
    parser->where = NULL;
    return err;
}

/* A line of a configuration file; CONTEXT is the parser. In files that belong to other programs, unknown names are
 * theirs. */
static gpg_error_t take_config(void *context, const char *name, const char *value, const char *where)
{
    struct parser *parser = context;
    const struct row *row = NULL;
    for (size_t i = 0; !row && i < ARRAY_SIZE(rows); i++)
        if ((rows[i].contexts & parser->context) && strcmp(rows[i].name, name) == 0)
            row = &rows[i];
    if (!row && parser->context != CONF)
        return 0;
    parser->where = where;
    gpg_error_t err = 0;
    if (!row)
        err = refuse(parser, "unknown option %s", name);
    else if (value && *value != '\0' && !row->value)
        err = refuse(parser, "option %s takes no value", name);
    else if (!value && row->value && *row->value != '[')
        err = refuse(parser, "option %s needs a value (%s)", name, row->value);
    else
        err = apply(parser, row, row->value ? value : NULL);
    parser->where = NULL;
    return err;
}

static gpg_error_t read_config(struct parser *parser, const struct options_environment *environment)
{
    const char *home = parser->options->home;
    const struct {
        const char *folder, *base;
        unsigned context;
    } files[] = {{environment->config_dir, "common.conf", COMMON_CONF},
                 {home, "common.conf", COMMON_CONF},
                 {home, "gpg.conf", GPG_CONF},
                 {environment->config_dir, "gpgtar.conf", CONF},
                 {home, "gpgtar.conf", CONF}};
    gpg_error_t err = 0;
    for (size_t i = 0; !err && i < ARRAY_SIZE(files); i++) {
        if (!files[i].folder || (parser->no_options && files[i].context == GPG_CONF))
            continue;
        parser->context = files[i].context;
        err = config_read(files[i].folder, files[i].base, parser->failure, take_config, parser);
    }
    return err;
}

/* Settling. */

static gpg_error_t expand_groups(const struct strings *groups, struct recipients *recipients)
{
    struct recipients expanded = {0};
    gpg_error_t err = 0;
    for (size_t i = 0; !err && i < recipients->n; i++) {
        const struct recipient *one = &recipients->items[i];
        bool by_name = one->kind == RECIPIENT_NAME || one->kind == RECIPIENT_HIDDEN_NAME;
        bool found = false;
        for (size_t g = 0; !err && by_name && g < groups->n; g++) {
            const char *values = strchr(groups->items[g], '=') + 1;
            size_t name_n = (size_t)(values - 1 - groups->items[g]);
            while (name_n > 0 && groups->items[g][name_n - 1] == ' ')
                name_n--;
            if (strlen(one->name) != name_n || strncasecmp(one->name, groups->items[g], name_n) != 0)
                continue;
            char **words = NULL;
            size_t n = 0;
            found = true;
            err = config_split(values, &words, &n);
            for (size_t w = 0; !err && w < n; w++)
                err = add_recipient(&expanded, one->kind, words[w]);
            config_words_free(words, n);
        }
        if (!err && !found)
            err = add_recipient(&expanded, one->kind, one->name);
    }
    if (!err) {
        struct recipients old = *recipients;
        *recipients = expanded;
        expanded = old;
    }
    clear_recipients(&expanded);
    return err;
}

/* The first command among those asked that is in MASK, as a person wrote it. */
static const char *command_name(unsigned asked, unsigned mask)
{
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        if (rows[i].take == take_command && ((unsigned)rows[i].number & asked & mask))
            return rows[i].name;
    return NULL;
}

static gpg_error_t settle_command(struct parser *parser)
{
    static const struct {
        unsigned mask;
        enum command command;
    } kinds[] = {{ASK_ENCRYPT | ASK_SIGN | ASK_SYMMETRIC | ASK_CREATE, COMMAND_CREATE},
                 {ASK_DECRYPT | ASK_EXTRACT, COMMAND_EXTRACT},
                 {ASK_LIST, COMMAND_LIST},
                 {ASK_VERIFY, COMMAND_VERIFY},
                 {ASK_COMPARE, COMMAND_COMPARE}};
    struct options *options = parser->options;
    const unsigned asked = parser->asked;
    unsigned first = 0;
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        if (!(asked & kinds[i].mask))
            continue;
        if (first)
            return refuse(parser, "--%s and --%s exclude each other", command_name(asked, first),
                          command_name(asked, kinds[i].mask));
        first = kinds[i].mask;
        options->command = kinds[i].command;
    }
    if (!first)
        return refuse(parser, "no command was given: --encrypt, --sign or --symmetric make an archive, --decrypt "
                              "extracts one (see gpgtar --help)");
    options->encrypt = asked & ASK_ENCRYPT;
    options->sign = asked & ASK_SIGN;
    options->symmetric = asked & ASK_SYMMETRIC;
    return 0;
}

/* Never a plain archive where a secret or signed one was asked for. */
static gpg_error_t settle_plain(struct parser *parser)
{
    struct options *options = parser->options;
    const char *plain = parser->asked & ASK_CREATE    ? "create"
                        : parser->asked & ASK_EXTRACT ? "extract"
                        : options->skip_crypto        ? "skip-crypto"
                                                      : NULL;
    if (!plain)
        return 0;
    options->skip_crypto = true;
    const char *against = options->symmetric ? "symmetric" : options->sign ? "sign" : NULL;
    if (!against && options->command == COMMAND_CREATE)
        against = parser->encryption_asked;
    if (!against && options->command != COMMAND_CREATE && options->require_signature)
        against = options->allowed_signers.n > 0 ? "signer" : "require-signature";
    if (against)
        return refuse(parser, "--%s, which means a plain tar, and --%s exclude each other", plain, against);
    options->encrypt = false;
    return 0;
}

static gpg_error_t settle_recipients(struct parser *parser)
{
    struct options *options = parser->options;
    gpg_error_t err = 0;
    if (parser->no_encrypt_to)
        clear_recipients(&options->encrypt_to);
    if (options->command != COMMAND_CREATE || options->skip_crypto)
        return 0;
    if (!options->encrypt && !options->symmetric && parser->encryption_asked)
        return refuse(parser, "--%s asks for encryption, but there is no --encrypt: add it", parser->encryption_asked);
    if (options->symmetric && parser->encryption_asked)
        options->encrypt = true;
    if (options->encrypt && options->recipients.n == 0 && parser->default_recipient)
        err = add_recipient(&options->recipients, RECIPIENT_NAME, parser->default_recipient);
    if (!err)
        err = expand_groups(&parser->groups, &options->recipients);
    if (!err)
        err = expand_groups(&parser->groups, &options->encrypt_to);
    if (err || !options->encrypt || options->recipients.n > 0)
        return err;
    if (parser->default_recipient_self && !options->symmetric)
        options->recipient_self = true;
    else if (options->symmetric)
        options->encrypt = options->encrypt_to.n > 0;
    else
        return fail(parser->failure, gpg_error(GPG_ERR_NO_USER_ID),
                    "--encrypt needs to know for whom: give --recipient USER-ID, or --symmetric for a passphrase");
    return 0;
}

static gpg_error_t settle_names(struct parser *parser)
{
    struct options *options = parser->options;
    if (options->output && strcmp(options->output, "-") == 0) {
        free(options->output);
        options->output = NULL;
    }
    if (options->command == COMMAND_CREATE) {
        if (options->null && !options->files_from && options->names.n == 0)
            return set_string(&options->files_from, "-");
        if (options->names.n == 0 && !options->files_from && !options->allow_empty)
            return refuse(parser, "nothing to archive was named: give files or folders, or --files-from");
        return 0;
    }
    if (options->names.n == 0)
        return 0;
    options->archive = options->names.items[0];
    options->names.n--;
    memmove(options->names.items, options->names.items + 1, options->names.n * sizeof *options->names.items);
    if (strcmp(options->archive, "-") == 0) {
        free(options->archive);
        options->archive = NULL;
    }
    return 0;
}

static bool is_stdin(const char *name)
{
    return name && strcmp(name, "-") == 0;
}

/* At most one thing reads standard input, and nothing but data goes where data goes. */
static gpg_error_t check_streams(struct parser *parser)
{
    const struct options *options = parser->options;
    bool reads = options->command != COMMAND_CREATE;
    bool exclude_stdin = false;
    for (size_t i = 0; i < options->exclude_from.n; i++)
        exclude_stdin |= is_stdin(options->exclude_from.items[i]);
    const struct {
        bool reads_stdin;
        const char *what;
    } readers[] = {
        {reads && !options->archive, "the archive"},
        {is_stdin(options->files_from), "--files-from"},
        {exclude_stdin, "--exclude-from"},
        {options->passphrase.kind == PASSPHRASE_FD && options->passphrase.fd == 0, "--passphrase-fd 0"},
        {options->override_session_key_fd == 0, "--override-session-key-fd 0"},
    };
    const char *first = NULL;
    for (size_t i = 0; i < ARRAY_SIZE(readers); i++) {
        if (!readers[i].reads_stdin)
            continue;
        if (first)
            return refuse(parser, "%s and %s cannot both be read from standard input", first, readers[i].what);
        first = readers[i].what;
    }
    bool data_on_stdout =
        options->command == COMMAND_CREATE
            ? !options->output && !options->dry_run
            : options->command == COMMAND_LIST || options->command == COMMAND_COMPARE || options->to_stdout;
    if (options->status_fd == 1 && data_on_stdout)
        return refuse(parser,
                      "--status-fd 1 would mix status lines into the data on standard output: use another "
                      "descriptor%s",
                      options->command == COMMAND_CREATE ? ", or --output" : "");
    if (options->status_fd == 0)
        return refuse(parser, "--status-fd 0 is standard input, nothing can be written there");
    return 0;
}

static gpg_error_t check_pairs(struct parser *parser)
{
    const struct options *options = parser->options;
    if (options->keep_old_files && options->skip_old_files)
        return refuse(parser, "--keep-old-files and --skip-old-files exclude each other");
    if (options->yes && options->no)
        return refuse(parser, "--yes and --no exclude each other");
    if (options->s2k_mode == 2)
        return refuse(parser, "--s2k-mode needs 0, 1, 3 or 4");
    if (options->salvage && options->require_signature)
        return refuse(parser, "--salvage, which takes what is not verified, and --%s exclude each other",
                      options->allowed_signers.n > 0 ? "signer" : "require-signature");
    if (options->quick && options->require_signature)
        return refuse(parser, "--quick, which does not check the signature, and --%s exclude each other",
                      options->allowed_signers.n > 0 ? "signer" : "require-signature");
    return 0;
}

static gpg_error_t settle(struct parser *parser)
{
    struct options *options = parser->options;
    if (parser->asked & (ASK_HELP | ASK_VERSION | ASK_DUMP)) {
        options->command = parser->asked & ASK_HELP      ? COMMAND_HELP
                           : parser->asked & ASK_VERSION ? COMMAND_VERSION
                                                         : COMMAND_DUMP_OPTIONS;
        return 0;
    }
    static const char *const none[] = {"none", "uncompressed", "0", "Z0"};
    for (size_t i = 0; options->compress_algo && i < ARRAY_SIZE(none); i++)
        if (strcasecmp(options->compress_algo, none[i]) == 0)
            options->no_compress = true;
    if (options->batch && !options->log_file && parser->common_log) {
        options->log_file = parser->common_log;
        parser->common_log = NULL;
    }
    gpg_error_t (*const steps[])(struct parser *) = {settle_command, settle_plain,  settle_recipients,
                                                     settle_names,   check_streams, check_pairs};
    gpg_error_t err = 0;
    for (size_t i = 0; !err && i < ARRAY_SIZE(steps); i++)
        err = steps[i](parser);
    return err;
}

/* One reading. */

static struct options *options_new(void)
{
    struct options *options = calloc(1, sizeof *options);
    if (!options)
        return NULL;
    options->passphrase.fd = -1;
    options->override_session_key_fd = -1;
    options->passphrase_repeat = 1;
    options->compress_level = -1;
    options->bzip2_level = -1;
    options->s2k_mode = -1;
    options->chunk_size = -1;
    options->status_fd = -1;
    return options;
}

static gpg_error_t parser_open(struct parser *parser, struct failure *failure)
{
    memset(parser, 0, sizeof *parser);
    parser->failure = failure;
    parser->options = options_new();
    return parser->options ? 0 : gpg_error_from_syserror();
}

static void parser_close(struct parser *parser)
{
    options_free(parser->options);
    free(parser->default_recipient);
    free(parser->common_log);
    clear_strings(&parser->groups);
    clear_strings(&parser->gpg_args);
    clear_strings(&parser->tar_args);
}

static gpg_error_t parse_line(struct parser *parser, int argc, char *const *argv)
{
    if (argc < 1)
        return 0;
    parser->context = LINE;
    gpg_error_t err = parse_words(parser, argv + 1, (size_t)argc - 1, &parser->options->names);
    return err ? err : parse_args(parser);
}

/* --status-fd in a command line that cannot be parsed: whoever listens there should hear of it. -1: not found. */
static int guess_status_fd(int argc, char *const *argv)
{
    static const char name[] = "--status-fd";
    const size_t n = sizeof name - 1;
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        const char *value = NULL;
        if (strncmp(argv[i], name, n) == 0)
            value = argv[i][n] == '=' ? argv[i] + n + 1 : argv[i][n] == '\0' && i + 1 < argc ? argv[i + 1] : NULL;
        char *end;
        long fd = value ? strtol(value, &end, 10) : -1;
        if (value && end != value && *end == '\0' && fd > 0 && fd <= INT_MAX)
            return (int)fd;
    }
    return -1;
}

gpg_error_t options_load(int argc, char *const *argv, const struct options_environment *environment,
                         struct failure *failure, int *ret_status_fd, struct options **ret)
{
    struct parser scout = {0}, parser = {0};
    gpg_error_t err = 0;

    if (ret_status_fd)
        *ret_status_fd = -1;
    /* The command line is read twice: it names the home, and it has the last word over what is there. */
    err = parser_open(&scout, failure);
    if (!err)
        err = parse_line(&scout, argc, argv);
    if (ret_status_fd)
        *ret_status_fd = err ? guess_status_fd(argc, argv) : scout.options->status_fd;
    if (!err)
        err = parser_open(&parser, failure);
    if (err)
        goto out;
    err = config_home(scout.homedir, environment->gnupghome, environment->home, failure, &parser.options->home);
    if (!err) {
        parser.no_options = scout.no_options;
        if (!(scout.asked & (ASK_HELP | ASK_VERSION | ASK_DUMP)))
            err = read_config(&parser, environment);
    }
    if (!err)
        err = parse_line(&parser, argc, argv);
    if (!err)
        err = settle(&parser);
    if (err)
        goto out;
    *ret = parser.options;
    parser.options = NULL;
out:
    if (gpg_err_code(err) == GPG_ERR_ENOMEM)
        fail(failure, err, "out of core");
    parser_close(&parser);
    parser_close(&scout);
    return err;
}

void options_environment_get(struct options_environment *ret)
{
    *ret = (struct options_environment){
        .gnupghome = getenv("GNUPGHOME"), .home = getenv("HOME"), .config_dir = "/etc/gnupg"};
}

void options_free(struct options *options)
{
    if (!options)
        return;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        void *field = (char *)options + rows[i].offset;
        if (rows[i].action == TEXT) {
            free(*(char **)field);
            *(char **)field = NULL;
        } else if (rows[i].action == LIST) {
            clear_strings(field);
        }
    }
    clear_strings(&options->names);
    clear_strings(&options->notations);
    clear_strings(&options->allowed_signers);
    clear_recipients(&options->recipients);
    clear_recipients(&options->encrypt_to);
    free(options->archive);
    free(options->passphrase.name);
    free(options->home);
    free(options);
}
