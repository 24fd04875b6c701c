/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "options.h"

#include "config.h"
#include "parser.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

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
        err = config_read(files[i].folder, files[i].base, parser->failure, parser_config, parser);
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
                err = recipients_add(&expanded, one->kind, words[w]);
            config_words_free(words, n);
        }
        if (!err && !found)
            err = recipients_add(&expanded, one->kind, one->name);
    }
    if (!err) {
        struct recipients old = *recipients;
        *recipients = expanded;
        expanded = old;
    }
    recipients_clear(&expanded);
    return err;
}

/* The first command among those asked that is in MASK, as a person wrote it. */
static const char *command_name(unsigned asked, unsigned mask)
{
    const struct option_row *row;
    for (size_t i = 0; (row = option_table_row(i)); i++)
        if (row->action == TAKE && row->take == TAKE_COMMAND && ((unsigned)row->number & asked & mask))
            return row->name;
    return NULL;
}

static gpg_error_t settle_command(struct parser *parser)
{
    static const struct {
        unsigned mask;
        enum command command;
    } kinds[] = {{ASK_ENCRYPT | ASK_SIGN | ASK_DETACH | ASK_SYMMETRIC | ASK_CREATE, COMMAND_CREATE},
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
            return parser_refuse(parser, "--%s and --%s exclude each other", command_name(asked, first),
                                 command_name(asked, kinds[i].mask));
        first = kinds[i].mask;
        options->command = kinds[i].command;
    }
    if (!first)
        return parser_refuse(parser,
                             "no command was given: --encrypt, --sign or --symmetric make an archive, --decrypt "
                             "extracts one (see gpgtar --help)");
    options->encrypt = asked & ASK_ENCRYPT;
    options->sign = asked & (ASK_SIGN | ASK_DETACH);
    options->detach_sign = asked & ASK_DETACH;
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
        against = parser->encryption_asked ? parser->encryption_asked : parser->crypto_asked;
    if (!against && options->command != COMMAND_CREATE && options->require_signature)
        against = options->allowed_signers.n > 0 ? "signer" : "require-signature";
    if (against)
        return parser_refuse(parser, "--%s, which means a plain tar, and --%s exclude each other", plain, against);
    options->encrypt = false;
    return 0;
}

/* A signature apart from what it signs: of one file, and nothing else is done to it. */
static gpg_error_t settle_detached(struct parser *parser)
{
    struct options *options = parser->options;
    if (!options->detach_sign)
        return 0;
    const char *against = options->encrypt || parser->encryption_asked ? "encrypt"
                          : options->symmetric                         ? "symmetric"
                          : options->files_from                        ? "files-from"
                          : options->null                              ? "null"
                                                                       : NULL;
    if (against)
        return parser_refuse(parser, "--detach-sign, which signs a file as it is, and --%s exclude each other",
                             against);
    if (options->names.n > 1)
        return parser_refuse(parser, "--detach-sign signs one file, and %zu were named: sign an archive of them",
                             options->names.n);
    if (options->names.n == 1 && strcmp(options->names.items[0], "-") == 0)
        strings_clear(&options->names);
    return 0;
}

static gpg_error_t settle_recipients(struct parser *parser)
{
    struct options *options = parser->options;
    gpg_error_t err = 0;
    if (parser->no_encrypt_to)
        recipients_clear(&options->encrypt_to);
    if (options->command != COMMAND_CREATE || options->skip_crypto)
        return 0;
    if (!options->encrypt && !options->symmetric && parser->encryption_asked)
        return parser_refuse(parser, "--%s asks for encryption, but there is no --encrypt: add it",
                             parser->encryption_asked);
    if (options->symmetric && parser->encryption_asked)
        options->encrypt = true;
    if (options->encrypt && options->recipients.n == 0 && parser->default_recipient) {
        options->recipient_default = true;
        err = recipients_add(&options->recipients, RECIPIENT_NAME, parser->default_recipient);
    }
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
            return strings_set(&options->files_from, "-");
        if (options->names.n == 0 && !options->files_from && !options->allow_empty && !options->detach_sign)
            return parser_refuse(parser, "nothing to archive was named: give files or folders, or --files-from");
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
        {options->detach_sign && options->names.n == 0, "the file to sign"},
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
            return parser_refuse(parser, "%s and %s cannot both be read from standard input", first, readers[i].what);
        first = readers[i].what;
    }
    bool data_on_stdout =
        options->command == COMMAND_CREATE
            ? !options->output && !options->dry_run
            : options->command == COMMAND_LIST || options->command == COMMAND_COMPARE || options->to_stdout;
    if (options->status_fd == 1 && data_on_stdout)
        return parser_refuse(parser,
                             "--status-fd 1 would mix status lines into the data on standard output: use another "
                             "descriptor%s",
                             options->command == COMMAND_CREATE ? ", or --output" : "");
    if (options->status_fd == 0)
        return parser_refuse(parser, "--status-fd 0 is standard input, nothing can be written there");
    return 0;
}

static gpg_error_t check_pairs(struct parser *parser)
{
    const struct options *options = parser->options;
    if (options->keep_old_files && options->skip_old_files)
        return parser_refuse(parser, "--keep-old-files and --skip-old-files exclude each other");
    if (options->yes && options->no)
        return parser_refuse(parser, "--yes and --no exclude each other");
    if (options->s2k_mode == 2)
        return parser_refuse(parser, "--s2k-mode needs 0, 1, 3 or 4");
    if (options->salvage && options->require_signature)
        return parser_refuse(parser, "--salvage, which takes what is not verified, and --%s exclude each other",
                             options->allowed_signers.n > 0 ? "signer" : "require-signature");
    if (options->quick && options->require_signature)
        return parser_refuse(parser, "--quick, which does not check the signature, and --%s exclude each other",
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
    gpg_error_t (*const steps[])(struct parser *) = {settle_command, settle_plain,  settle_detached, settle_recipients,
                                                     settle_names,   check_streams, check_pairs};
    gpg_error_t err = 0;
    for (size_t i = 0; !err && i < ARRAY_SIZE(steps); i++)
        err = steps[i](parser);
    return err;
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
        err = parser_line(&scout, argc, argv);
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
        err = parser_line(&parser, argc, argv);
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
    const struct option_row *row;
    for (size_t i = 0; (row = option_table_row(i)); i++) {
        void *field = (char *)options + row->offset;
        if (row->action == TEXT) {
            free(*(char **)field);
            *(char **)field = NULL;
        } else if (row->action == LIST) {
            strings_clear(field);
        }
    }
    strings_clear(&options->names);
    strings_clear(&options->notations);
    strings_clear(&options->allowed_signers);
    recipients_clear(&options->recipients);
    recipients_clear(&options->encrypt_to);
    free(options->archive);
    free(options->passphrase.name);
    free(options->home);
    free(options);
}
