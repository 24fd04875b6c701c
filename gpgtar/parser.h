/* SPDX-License-Identifier: GPL-3.0-or-later */
/* parser: words of a command line and lines of configuration files, by the table of options, into struct options. */
#ifndef GPGTAR_PARSER_H
#define GPGTAR_PARSER_H

#include "option_table.h"

/* Options that are settled only when everything has been read. */
struct parser {
    struct options *options;
    struct failure *failure;
    unsigned context;
    const char *where;            /* before sentences: file and line, or --gpg-args; NULL on the command line */
    unsigned asked;               /* ASK_ bits */
    const char *encryption_asked; /* the first option on the command line that names a recipient; NULL: none */
    const char *crypto_asked;     /* the same for any other option that only encryption or a signature has a use for */
    const char *homedir;          /* borrowed from argv */
    bool no_options;
    bool no_encrypt_to;
    char *default_recipient;
    bool default_recipient_self;
    char *common_log;
    struct strings groups; /* "NAME=VALUE VALUE" */
    struct strings gpg_args, tar_args;
};
MUST_CHECK gpg_error_t parser_open(struct parser *parser, struct failure *failure);
void parser_close(struct parser *parser);

/* GPG_ERR_INV_ARG with a sentence that starts with where the option stands. */
MUST_CHECK gpg_error_t parser_refuse(struct parser *parser, const char *format, ...) PRINTF_LIKE(2, 3);

/* The command line, then --gpg-args and --tar-args. */
MUST_CHECK gpg_error_t parser_line(struct parser *parser, int argc, char *const *argv);
/* A line of a configuration file, for config_read: CONTEXT is the parser, and its `context` says which file. In files
 * that belong to other programs, unknown names are theirs. */
MUST_CHECK gpg_error_t parser_config(void *context, const char *name, const char *value, const char *where);

#endif
