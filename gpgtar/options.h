/* SPDX-License-Identifier: GPL-3.0-or-later */
/* options: the command line and the configuration files become one struct that nobody changes afterwards.
 *
 * One table (option_table.c) describes every option: its names, where it may stand (command line, gpgtar.conf,
 * --gpg-args, gpg.conf, --tar-args), its value and its help. libgpg-error's gpgrt_argparse is not used: it prints and
 * exits by itself, keeps state in globals and cannot say which word was wrong, and one table has to serve five
 * contexts.
 *
 * A long option may be abbreviated. Where an abbreviation fits several options, the one that GnuPG's gpgtar has wins,
 * so that scripts written for it go on working; else it is an error that names two candidates. */
#ifndef GPGTAR_OPTIONS_H
#define GPGTAR_OPTIONS_H

#include "recipients.h"
#include "stream/failure.h"
#include "strings.h"

#include <stdbool.h>
#include <time.h>

enum command {
    COMMAND_NONE, /* never in the result of options_load */
    COMMAND_CREATE,
    COMMAND_EXTRACT,
    COMMAND_LIST,
    COMMAND_VERIFY,
    COMMAND_COMPARE,
    COMMAND_HELP,
    COMMAND_VERSION,
    COMMAND_DUMP_OPTIONS,
};

/* An option with a --no- twin whose default depends on something else. */
enum toggle { TOGGLE_DEFAULT, TOGGLE_ON, TOGGLE_OFF };

enum passphrase_kind {
    PASSPHRASE_DEFAULT, /* none given: gpg-agent, or the terminal */
    PASSPHRASE_FD,
    PASSPHRASE_FILE,
    PASSPHRASE_COMMAND,
};

struct passphrase_origin {
    enum passphrase_kind kind;
    int fd;     /* PASSPHRASE_FD */
    char *name; /* PASSPHRASE_FILE: path; PASSPHRASE_COMMAND: words for /bin/sh -c */
};

enum pinentry_mode { PINENTRY_DEFAULT, PINENTRY_CANCEL, PINENTRY_ERROR, PINENTRY_LOOPBACK };
enum trust_model { TRUST_AUTO, TRUST_PGP, TRUST_DIRECT, TRUST_ALWAYS };
enum profile { PROFILE_DEFAULT, PROFILE_GNUPG, PROFILE_RFC4880, PROFILE_RFC9580 };

struct options {
    /* What to do. */
    enum command command;
    bool encrypt;     /* -e, or -c together with recipients: public-key encryption to RECIPIENTS */
    bool sign;        /* -s */
    bool symmetric;   /* -c */
    bool detach_sign; /* -b: only the signature of one file is written; SIGN is true, the next two are false */
    bool skip_crypto; /* plain tar: --create, --extract, --skip-crypto. Then the three above are false */

    /* On what. */
    struct strings names; /* creating: files and folders; reading: members or patterns (none: all);
                             DETACH_SIGN: at most one file (none: stdin) */
    char *archive;        /* reading: the archive; NULL: stdin */
    char *output;         /* creating: -o; NULL: stdout ("-" is turned into NULL) */
    char *directory;      /* -C; NULL: not given */
    char *files_from;     /* -T; "-": stdin; NULL: not given. Creating: more files; reading: more members */
    char *set_filename;   /* names the folder that -d makes; NULL: not given */
    bool null;            /* --null: names in -T end with NUL; names in listings are raw */

    /* Keys. */
    char *home;                   /* absolute or as given, never NULL: --homedir, $GNUPGHOME, else ~/.gnupg */
    struct recipients recipients; /* in order, groups expanded, a default recipient already in it */
    bool recipient_default;       /* that one is all there is */
    bool recipient_self;          /* no recipient given, and default-recipient-self: the default key is it */
    struct recipients encrypt_to; /* --encrypt-to (NAME), --hidden-encrypt-to (HIDDEN_NAME); empty after
                                     --no-encrypt-to */
    bool throw_keyids;            /* all recipients are hidden */
    struct strings signers;       /* -u, in order */
    struct strings default_keys;  /* --default-key, in order: used when SIGNERS is empty */
    struct strings keyrings;      /* --keyring, in order */
    bool no_default_keyring;      /* only KEYRINGS */
    bool use_keyboxd;             /* common.conf says that keys are in keyboxd */
    enum trust_model trust_model;
    struct strings secret_key_files; /* --secret-key-file */
    char *agent_program;             /* NULL: the default */

    /* Passphrases. */
    struct passphrase_origin passphrase; /* the last source named */
    unsigned passphrase_repeat;          /* how often a new one is asked again; default 1 */
    enum pinentry_mode pinentry_mode;
    char *override_session_key;  /* "ALGO:HEX"; NULL: none */
    int override_session_key_fd; /* -1: none; first line is such a string */
    bool show_session_key;

    /* Algorithms: names or numbers as given (pgp/ knows them); NULL: not given. */
    char *cipher_algo;
    char *digest_algo;
    char *compress_algo;
    char *s2k_cipher_algo;
    char *s2k_digest_algo;
    char *personal_cipher_preferences;
    char *personal_digest_preferences;
    char *personal_compress_preferences;
    bool no_compress;   /* --no-compress, or a compress level of 0 */
    int compress_level; /* -z, --compress-level: 1 … 9; -1: not given */
    int bzip2_level;    /* 1 … 9; -1: not given */
    int s2k_mode;       /* 0, 1, 3, 4 (Argon2); -1: not given */
    uint32_t s2k_count; /* 1024 … 65011712 bytes; 0: not given */
    bool force_ocb;
    int chunk_size; /* AEAD chunks of 2^N bytes, 6 … 22; -1: not given */
    enum profile profile;
    bool armor;
    struct strings comments;  /* armor headers */
    struct strings notations; /* NAME@DOMAIN=VALUE, perhaps with "!" before it */
    bool require_compliance;

    /* Verification. */
    bool require_signature;         /* also set by --signer */
    struct strings allowed_signers; /* --signer: one of them must have signed; empty: any */
    bool ignore_mdc_error;          /* read data without integrity protection, marked unverified */
    bool allow_unprotected;         /* -d takes a message neither encrypted nor signed */
    uint64_t max_size;              /* bytes of all members; 0: no limit */
    uint64_t max_files;             /* members; 0: no limit */
    bool salvage;
    bool quick; /* seek to the members wanted */

    /* What to archive. */
    struct strings exclude;      /* patterns */
    struct strings exclude_from; /* files with patterns; "-": stdin */
    bool exclude_caches;
    bool exclude_vcs;
    bool one_file_system;
    bool has_newer;
    struct timespec newer; /* only files changed after this time (--newer-mtime) */
    bool no_recursion;
    bool dereference;
    bool numeric_owner; /* creating and extracting */
    bool portable;
    int zstd_level;           /* 1 … 22; 0: the tar is not compressed */
    char *listed_incremental; /* snapshot file; NULL: none */
    bool allow_empty;
    bool strict;

    /* What to extract. */
    bool no_wildcards; /* names are literal; default: they are patterns, "\*" is a literal star */
    unsigned strip_components;
    bool same_permissions;
    enum toggle same_owner; /* default: on as root */
    enum toggle xattrs;     /* default: on */
    enum toggle acls;       /* default: on */
    bool keep_old_files;
    bool skip_old_files;
    bool to_stdout;
    bool concatenated;
    bool outside_links; /* make symlinks that lead out of the target folder */

    /* Running. */
    unsigned jobs;        /* 0: as many as processors; at most 256 */
    enum toggle progress; /* default: on a terminal */
    bool dry_run;
    bool batch;
    bool yes;
    bool no;
    unsigned verbose; /* how often -v was given */
    bool quiet;
    int status_fd;  /* -1: none */
    char *log_file; /* NULL: none. common.conf's is here only with --batch */
    bool with_log;
    bool debug;
};

/* Where defaults come from; in tests anything, in the program options_environment_get(). Strings are borrowed, NULL
 * where there is none. */
struct options_environment {
    const char *gnupghome;  /* $GNUPGHOME */
    const char *home;       /* $HOME; NULL: the home folder of the user database */
    const char *config_dir; /* folder of the system's configuration, /etc/gnupg */
};
void options_environment_get(struct options_environment *ret);

/* Reads ARGV (ARGV[0] is the program) and the configuration: CONFIG_DIR's and the home's common.conf, the home's
 * gpg.conf, CONFIG_DIR's and the home's gpgtar.conf, the command line; what comes later overrides single values and
 * adds to lists. Any failure has its sentence in FAILURE and means exit 2; GPG_ERR_NO_USER_ID: encryption without a
 * recipient. *RET_STATUS_FD (may be NULL) is written on success and failure: the --status-fd seen so far, else -1, so
 * that a failure can be told there. The caller frees *RET with options_free. */
MUST_CHECK gpg_error_t options_load(int argc, char *const *argv, const struct options_environment *environment,
                                    struct failure *failure, int *ret_status_fd, struct options **ret);
void options_free(struct options *options); /* takes NULL */

/* For --help and --dump-options: option number I of the table, in the order of the help. False after the last. */
enum option_group {
    GROUP_COMMANDS,
    GROUP_FILES,
    GROUP_KEYS,
    GROUP_PASSPHRASES,
    GROUP_ALGORITHMS,
    GROUP_VERIFICATION,
    GROUP_ARCHIVING,
    GROUP_EXTRACTING,
    GROUP_RUNNING,
    GROUP_HIDDEN, /* accepted, but not worth a line in the help */
};
struct option_help {
    enum option_group group;
    bool on_line;      /* may stand on the command line; else only in --gpg-args, --tar-args or a file */
    char letter;       /* 0: none */
    const char *name;  /* without -- */
    const char *value; /* "FILE"; NULL: takes none; in brackets: may be left out */
    const char *help;  /* NULL: another name of an option above */
};
bool options_help(size_t i, struct option_help *ret);

#endif
