/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "parser.h"

#include "config.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

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

gpg_error_t parser_open(struct parser *parser, struct failure *failure)
{
    memset(parser, 0, sizeof *parser);
    parser->failure = failure;
    parser->options = options_new();
    return parser->options ? 0 : gpg_error_from_syserror();
}

void parser_close(struct parser *parser)
{
    options_free(parser->options);
    free(parser->default_recipient);
    free(parser->common_log);
    strings_clear(&parser->groups);
    strings_clear(&parser->gpg_args);
    strings_clear(&parser->tar_args);
}

gpg_error_t parser_refuse(struct parser *parser, const char *format, ...)
{
    char sentence[FAILURE_SENTENCE_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(sentence, sizeof sentence, format, args);
    va_end(args);
    return fail(parser->failure, gpg_error(GPG_ERR_INV_ARG), "%s%s%s", parser->where ? parser->where : "",
                parser->where ? ": " : "", sentence);
}

static bool on_line(const struct parser *parser)
{
    return parser->context & (LINE | GPG_ARGS | TAR_ARGS);
}

/* Values. */

static gpg_error_t parse_int(struct parser *parser, const struct option_row *row, const char *value, int low, int high,
                             int *ret)
{
    char *end;
    errno = 0;
    long number = strtol(value, &end, 10);
    if (errno || end == value || *end != '\0' || number < low || number > high)
        return parser_refuse(parser, "--%s needs a number between %d and %d, not \"%s\"", row->name, low, high, value);
    *ret = (int)number;
    return 0;
}

static gpg_error_t parse_size(struct parser *parser, const struct option_row *row, const char *value, uint64_t *ret)
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
        return parser_refuse(parser,
                             "--%s needs a number greater than 0, perhaps with K, M, G or T after it, not \"%s\"",
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

static gpg_error_t take_newer(struct parser *parser, const struct option_row *row, const char *value)
{
    struct stat st;
    struct timespec when;
    if (!parse_date(value, &when)) {
        if (stat(value, &st))
            return parser_refuse(parser,
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

static gpg_error_t choose(struct parser *parser, const struct option_row *row, const char *value,
                          const struct choice *choices, size_t n, int *ret)
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
    return parser_refuse(parser, "--%s does not know \"%s\": use one of %s", row->name, value, all);
}

static gpg_error_t take_trust_model(struct parser *parser, const struct option_row *row, const char *value)
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

static gpg_error_t take_pinentry_mode(struct parser *parser, const struct option_row *row, const char *value)
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

static gpg_error_t take_compliance(struct parser *parser, const struct option_row *row, const char *value)
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

static gpg_error_t take_profile(struct parser *parser, const struct option_row *row, const char *value)
{
    (void)value;
    parser->options->profile = (enum profile)row->number;
    return 0;
}

static gpg_error_t take_command(struct parser *parser, const struct option_row *row, const char *value)
{
    (void)value;
    parser->asked |= (unsigned)row->number;
    return 0;
}

static gpg_error_t take_recipient(struct parser *parser, const struct option_row *row, const char *value)
{
    if (*value == '\0')
        return parser_refuse(parser, "--%s needs a name that is not empty", row->name);
    if (on_line(parser) && !parser->encryption_asked)
        parser->encryption_asked = row->name;
    return recipients_add(&parser->options->recipients, (enum recipient_kind)row->number, value);
}

static gpg_error_t take_encrypt_to(struct parser *parser, const struct option_row *row, const char *value)
{
    return recipients_add(&parser->options->encrypt_to, (enum recipient_kind)row->number, value);
}

static gpg_error_t take_no_encrypt_to(struct parser *parser, const struct option_row *row, const char *value)
{
    (void)row;
    (void)value;
    parser->no_encrypt_to = true;
    return 0;
}

static gpg_error_t take_default_recipient(struct parser *parser, const struct option_row *row, const char *value)
{
    (void)row;
    parser->default_recipient_self = false;
    return strings_set(&parser->default_recipient, value);
}

/* NUMBER 1: self; 0: none at all. */
static gpg_error_t take_recipient_self(struct parser *parser, const struct option_row *row, const char *value)
{
    (void)value;
    parser->default_recipient_self = row->number;
    free(parser->default_recipient);
    parser->default_recipient = NULL;
    return 0;
}

static gpg_error_t take_group(struct parser *parser, const struct option_row *row, const char *value)
{
    const char *equal = strchr(value, '=');
    if (!equal || equal == value)
        return parser_refuse(parser, "--%s needs NAME=VALUE…, not \"%s\"", row->name, value);
    return strings_add(&parser->groups, value);
}

static gpg_error_t take_no_groups(struct parser *parser, const struct option_row *row, const char *value)
{
    (void)row;
    (void)value;
    strings_clear(&parser->groups);
    return 0;
}

static gpg_error_t take_signer(struct parser *parser, const struct option_row *row, const char *value)
{
    if (*value == '\0')
        return parser_refuse(parser, "--%s needs a name that is not empty", row->name);
    parser->options->require_signature = true;
    return strings_add(&parser->options->allowed_signers, value);
}

/* NUMBER: the kind. */
static gpg_error_t take_passphrase(struct parser *parser, const struct option_row *row, const char *value)
{
    struct passphrase_origin *source = &parser->options->passphrase;
    int fd = -1;
    gpg_error_t err = 0;
    if (row->number == PASSPHRASE_FD)
        err = parse_int(parser, row, value, 0, INT_MAX, &fd);
    if (!err)
        err = strings_set(&source->name, value);
    if (!err) {
        source->kind = (enum passphrase_kind)row->number;
        source->fd = fd;
    }
    return err;
}

static gpg_error_t refuse_passphrase(struct parser *parser, const struct option_row *row, const char *value)
{
    (void)value;
    return parser_refuse(parser,
                         "--%s is refused: every user of this machine can see a passphrase on a command line (ps); use "
                         "--passphrase-fd, --passphrase-file or --passphrase-command",
                         row->name);
}

static gpg_error_t refuse_cms(struct parser *parser, const struct option_row *row, const char *value)
{
    (void)value;
    return parser_refuse(parser, "--%s is not supported: only OpenPGP archives are", row->name);
}

static gpg_error_t take_level(struct parser *parser, const struct option_row *row, const char *value)
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

static gpg_error_t take_s2k_count(struct parser *parser, const struct option_row *row, const char *value)
{
    int count = 0;
    /* The largest count that one octet can say, RFC 9580 3.7.1.3. */
    gpg_error_t err = parse_int(parser, row, value, 1024, 65011712, &count);
    if (!err)
        parser->options->s2k_count = (uint32_t)count;
    return err;
}

static gpg_error_t take_zstd(struct parser *parser, const struct option_row *row, const char *value)
{
    /* Level 3, zstd's own, takes 120 MiB with 2 workers (measured), level 1 takes 35 MiB. */
    parser->options->zstd_level = 1;
    return value ? parse_int(parser, row, value, 1, 22, &parser->options->zstd_level) : 0;
}

static gpg_error_t take_verbose(struct parser *parser, const struct option_row *row, const char *value)
{
    (void)value;
    parser->options->verbose = row->number ? parser->options->verbose + 1 : 0;
    return 0;
}

static gpg_error_t take_no_comments(struct parser *parser, const struct option_row *row, const char *value)
{
    (void)row;
    (void)value;
    strings_clear(&parser->options->comments);
    return 0;
}

static gpg_error_t take_notation(struct parser *parser, const struct option_row *row, const char *value)
{
    const char *name = *value == '!' ? value + 1 : value;
    const char *equal = strchr(name, '=');
    if (!equal || equal == name || !memchr(name, '@', (size_t)(equal - name)))
        return parser_refuse(parser, "--%s needs NAME@DOMAIN=VALUE, not \"%s\"", row->name, value);
    return strings_add(&parser->options->notations, value);
}

static gpg_error_t take_homedir(struct parser *parser, const struct option_row *row, const char *value)
{
    (void)row;
    parser->homedir = value;
    return 0;
}

static gpg_error_t take_no_options(struct parser *parser, const struct option_row *row, const char *value)
{
    (void)row;
    (void)value;
    parser->no_options = true;
    return 0;
}

static gpg_error_t take_common_log(struct parser *parser, const struct option_row *row, const char *value)
{
    (void)row;
    return strings_set(&parser->common_log, value);
}

/* NUMBER 0: --gpg-args; 1: --tar-args. The words of all of them are one list: a value may follow in the next. */
static gpg_error_t take_args(struct parser *parser, const struct option_row *row, const char *value)
{
    char **words = NULL;
    size_t n = 0;
    gpg_error_t err = config_split(value, &words, &n);
    if (gpg_err_code(err) == GPG_ERR_SYNTAX)
        return parser_refuse(parser, "--%s has a quote that is not closed: %s", row->name, value);
    for (size_t i = 0; !err && i < n; i++)
        err = strings_add(row->number ? &parser->tar_args : &parser->gpg_args, words[i]);
    config_words_free(words, n);
    return err;
}

static gpg_error_t (*const takers[])(struct parser *parser, const struct option_row *row, const char *value) = {
    [TAKE_NEWER] = take_newer,
    [TAKE_TRUST_MODEL] = take_trust_model,
    [TAKE_PINENTRY_MODE] = take_pinentry_mode,
    [TAKE_COMPLIANCE] = take_compliance,
    [TAKE_PROFILE] = take_profile,
    [TAKE_COMMAND] = take_command,
    [TAKE_RECIPIENT] = take_recipient,
    [TAKE_ENCRYPT_TO] = take_encrypt_to,
    [TAKE_NO_ENCRYPT_TO] = take_no_encrypt_to,
    [TAKE_DEFAULT_RECIPIENT] = take_default_recipient,
    [TAKE_RECIPIENT_SELF] = take_recipient_self,
    [TAKE_GROUP] = take_group,
    [TAKE_NO_GROUPS] = take_no_groups,
    [TAKE_SIGNER] = take_signer,
    [TAKE_PASSPHRASE] = take_passphrase,
    [REFUSE_PASSPHRASE] = refuse_passphrase,
    [REFUSE_CMS] = refuse_cms,
    [TAKE_LEVEL] = take_level,
    [TAKE_S2K_COUNT] = take_s2k_count,
    [TAKE_ZSTD] = take_zstd,
    [TAKE_VERBOSE] = take_verbose,
    [TAKE_NO_COMMENTS] = take_no_comments,
    [TAKE_NOTATION] = take_notation,
    [TAKE_HOMEDIR] = take_homedir,
    [TAKE_NO_OPTIONS] = take_no_options,
    [TAKE_COMMON_LOG] = take_common_log,
    [TAKE_ARGS] = take_args,
};

/* Finding and applying. */

/* Whether only somebody who wants encryption or a signature would give the option. */
static bool is_crypto(const struct option_row *row)
{
    return (row->action == LIST && row->offset == offsetof(struct options, signers)) ||
           (row->action == TAKE && (row->take == TAKE_PASSPHRASE || row->take == TAKE_ENCRYPT_TO));
}

static gpg_error_t apply(struct parser *parser, const struct option_row *row, const char *value)
{
    if (on_line(parser) && !parser->crypto_asked && is_crypto(row))
        parser->crypto_asked = row->name;
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
        return strings_set(field, value);
    case LIST:
        return strings_add(field, value);
    case NUMBER:
        return parse_int(parser, row, value, row->low, row->number, field);
    case SIZE:
        return parse_size(parser, row, value, field);
    case TAKE:
        return takers[row->take](parser, row, value);
    }
    return gpg_error(GPG_ERR_BUG);
}

/* Whether two names are of one option. */
static bool same_option(const struct option_row *a, const struct option_row *b)
{
    return a->action == b->action && a->offset == b->offset && a->take == b->take && a->number == b->number &&
           !a->value == !b->value && (a->action != IGNORE || a == b);
}

/* The only option of PARSER's context that NAME (N bytes) begins; with STOCK in WANTED, only of stock ones. *RET_OTHER
 * is a second one where there are several. */
static const struct option_row *find_prefix(const struct parser *parser, unsigned wanted, const char *name, size_t n,
                                            const struct option_row **ret_other)
{
    const struct option_row *found = NULL, *row;
    *ret_other = NULL;
    for (size_t i = 0; (row = option_table_row(i)); i++) {
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

static gpg_error_t find_long(struct parser *parser, const char *name, size_t n, const struct option_row **ret)
{
    const struct option_row *row, *other;
    for (size_t i = 0; (row = option_table_row(i)); i++)
        if ((row->contexts & parser->context) && strlen(row->name) == n && memcmp(row->name, name, n) == 0) {
            *ret = row;
            return 0;
        }
    const struct option_row *found = n > 0 ? find_prefix(parser, STOCK, name, n, &other) : NULL;
    if (!found || other)
        found = find_prefix(parser, 0, name, n, &other);
    if (!found || n == 0)
        return parser_refuse(parser, "unknown option --%.*s (see gpgtar --help)", (int)n, name);
    if (other)
        return parser_refuse(parser, "option --%.*s can mean --%s or --%s", (int)n, name, found->name, other->name);
    *ret = found;
    return 0;
}

/* The word at *AT; *AT goes on past it and past its value. */
static gpg_error_t parse_long(struct parser *parser, char *const *words, size_t n, size_t *at)
{
    const char *name = words[*at] + 2;
    const char *equal = strchr(name, '=');
    const char *value = equal ? equal + 1 : NULL;
    const struct option_row *row = NULL;
    gpg_error_t err = find_long(parser, name, equal ? (size_t)(equal - name) : strlen(name), &row);
    if (err)
        return err;
    ++*at;
    if (value && !row->value)
        return parser_refuse(parser, "option --%s takes no value", row->name);
    if (!value && row->value && *row->value != '[') {
        if (*at >= n)
            return parser_refuse(parser, "option --%s needs a value (%s)", row->name, row->value);
        value = words[(*at)++];
    }
    return apply(parser, row, value);
}

static gpg_error_t parse_letters(struct parser *parser, char *const *words, size_t n, size_t *at)
{
    const char *letters = words[(*at)++] + 1;
    gpg_error_t err = 0;
    while (!err && *letters != '\0') {
        const struct option_row *row;
        for (size_t i = 0; (row = option_table_row(i)); i++)
            if ((row->contexts & parser->context) && row->letter == *letters)
                break;
        if (!row)
            return parser_refuse(parser, "unknown option -%c (see gpgtar --help)", *letters);
        letters++;
        if (!row->value) {
            err = apply(parser, row, NULL);
            continue;
        }
        if (*letters != '\0')
            return apply(parser, row, letters);
        if (*at >= n)
            return parser_refuse(parser, "option -%c needs a value (%s)", row->letter, row->value);
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
            err = parser_refuse(parser, "\"%s\" is not an option", word);
        } else {
            err = strings_add(names, word);
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

gpg_error_t parser_line(struct parser *parser, int argc, char *const *argv)
{
    if (argc < 1)
        return 0;
    parser->context = LINE;
    gpg_error_t err = parse_words(parser, argv + 1, (size_t)argc - 1, &parser->options->names);
    return err ? err : parse_args(parser);
}

gpg_error_t parser_config(void *context, const char *name, const char *value, const char *where)
{
    struct parser *parser = context;
    const struct option_row *row;
    for (size_t i = 0; (row = option_table_row(i)); i++)
        if ((row->contexts & parser->context) && strcmp(row->name, name) == 0)
            break;
    if (!row && parser->context != CONF)
        return 0;
    parser->where = where;
    gpg_error_t err = 0;
    if (!row)
        err = parser_refuse(parser, "unknown option %s", name);
    else if (value && *value != '\0' && !row->value)
        err = parser_refuse(parser, "option %s takes no value", name);
    else if (!value && row->value && *row->value != '[')
        err = parser_refuse(parser, "option %s needs a value (%s)", name, row->value);
    else
        err = apply(parser, row, row->value ? value : NULL);
    parser->where = NULL;
    return err;
}
