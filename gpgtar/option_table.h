/* SPDX-License-Identifier: GPL-3.0-or-later */
/* option_table: every option there is, as data: its names, where it may stand, what it does, its help. */
#ifndef GPGTAR_OPTION_TABLE_H
#define GPGTAR_OPTION_TABLE_H

#include "options.h"

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
/* Options that need more than a value put into a field; parser.c has a function for each. */
enum taker {
    TAKE_NEWER,
    TAKE_TRUST_MODEL,
    TAKE_PINENTRY_MODE,
    TAKE_COMPLIANCE,
    TAKE_PROFILE,
    TAKE_COMMAND,
    TAKE_RECIPIENT,
    TAKE_ENCRYPT_TO,
    TAKE_NO_ENCRYPT_TO,
    TAKE_DEFAULT_RECIPIENT,
    TAKE_RECIPIENT_SELF,
    TAKE_GROUP,
    TAKE_NO_GROUPS,
    TAKE_SIGNER,
    TAKE_PASSPHRASE,
    REFUSE_PASSPHRASE,
    REFUSE_CMS,
    TAKE_LEVEL,
    TAKE_S2K_COUNT,
    TAKE_ZSTD,
    TAKE_VERBOSE,
    TAKE_NO_COMMENTS,
    TAKE_NOTATION,
    TAKE_HOMEDIR,
    TAKE_NO_OPTIONS,
    TAKE_COMMON_LOG,
    TAKE_ARGS,
};

struct option_row {
    const char *name;
    char letter;
    unsigned char contexts;
    unsigned char group;
    unsigned char action;
    unsigned char take;    /* enum taker */
    unsigned short offset; /* in struct options */
    int low;
    int number;
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
    ASK_DETACH = 4096, /* --detach-sign; means ASK_SIGN too */
};

/* Row number I; NULL behind the last. */
const struct option_row *option_table_row(size_t i);

#endif
