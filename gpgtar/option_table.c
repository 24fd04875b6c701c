/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "option_table.h"

#include <limits.h>

#define AT(field) offsetof(struct options, field)
#define ROW(name_, letter_, contexts_, group_, action_, value_, help_, ...)                                            \
    {                                                                                                                  \
        .name = name_, .letter = letter_, .contexts = contexts_, .group = group_, .action = action_, .value = value_,  \
        .help = help_, __VA_ARGS__                                                                                     \
    }
#define COMMAND_ROW(name, letter, contexts, bit, help)                                                                 \
    ROW(name, letter, contexts, GROUP_COMMANDS, TAKE, NULL, help, .take = TAKE_COMMAND, .number = bit)
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
#define TAKE_ROW(name, letter, contexts, group, taker, number_, value, help)                                           \
    ROW(name, letter, contexts, group, TAKE, value, help, .take = taker, .number = number_)
#define IGNORE_ROW(name, contexts, value) ROW(name, 0, contexts, GROUP_HIDDEN, IGNORE, value, NULL, .number = 0)

/* clang-format off */
static const struct option_row rows[] = {
    COMMAND_ROW("encrypt", 'e', LINE | GPG_ARGS | STOCK, ASK_ENCRYPT, "make an archive that is encrypted to keys (with -r)"),
    COMMAND_ROW("sign", 's', LINE | GPG_ARGS | STOCK, ASK_SIGN, "make an archive that is signed; goes with -e and -c"),
    COMMAND_ROW("symmetric", 'c', LINE | GPG_ARGS | STOCK, ASK_SYMMETRIC, "make an archive that a passphrase opens; goes with -r"),
    COMMAND_ROW("detach-sign", 'b', LINE | GPG_ARGS, ASK_DETACH, "sign one file as it is; write only the signature"),
    COMMAND_ROW("decrypt", 'd', LINE | STOCK, ASK_DECRYPT, "decrypt and verify an archive and extract it"),
    COMMAND_ROW("list-archive", 't', LINE | STOCK, ASK_LIST, "decrypt and verify an archive and list it"),
    COMMAND_ROW("verify", 0, LINE, ASK_VERIFY, "check all of an archive, write nothing; or SIGNATURE FILE"),
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

    TAKE_ROW("recipient", 'r', GPG | STOCK, GROUP_KEYS, TAKE_RECIPIENT, RECIPIENT_NAME, "USER-ID", "encrypt to the key of USER-ID"),
    TAKE_ROW("remote-user", 0, GPG, GROUP_HIDDEN, TAKE_RECIPIENT, RECIPIENT_NAME, "USER-ID", NULL),
    TAKE_ROW("hidden-recipient", 'R', GPG, GROUP_KEYS, TAKE_RECIPIENT, RECIPIENT_HIDDEN_NAME, "USER-ID", "the same, without the key's id in the archive"),
    TAKE_ROW("recipient-file", 'f', GPG, GROUP_KEYS, TAKE_RECIPIENT, RECIPIENT_FILE, "FILE", "encrypt to the key in FILE"),
    TAKE_ROW("hidden-recipient-file", 'F', GPG, GROUP_KEYS, TAKE_RECIPIENT, RECIPIENT_HIDDEN_FILE, "FILE", "the same, without the key's id in the archive"),
    ON_ROW("throw-keyids", 0, GPG, GROUP_KEYS, throw_keyids, "no key ids in the archive at all"),
    OFF_ROW("no-throw-keyids", GPG, throw_keyids),
    LIST_ROW("local-user", 'u', GPG | STOCK, GROUP_KEYS, signers, "USER-ID", "sign with the key of USER-ID"),
    LIST_ROW("default-key", 0, GPG, GROUP_KEYS, default_keys, "USER-ID", "sign with this key where -u is not given"),
    TAKE_ROW("encrypt-to", 0, GPG, GROUP_KEYS, TAKE_ENCRYPT_TO, RECIPIENT_NAME, "USER-ID", "one more recipient of every encrypted archive"),
    TAKE_ROW("hidden-encrypt-to", 0, GPG, GROUP_KEYS, TAKE_ENCRYPT_TO, RECIPIENT_HIDDEN_NAME, "USER-ID", NULL),
    TAKE_ROW("no-encrypt-to", 0, GPG, GROUP_KEYS, TAKE_NO_ENCRYPT_TO, 0, NULL, "none of those"),
    TAKE_ROW("default-recipient", 0, GPG, GROUP_KEYS, TAKE_DEFAULT_RECIPIENT, 0, "USER-ID", "encrypt to this key where no recipient is given"),
    TAKE_ROW("default-recipient-self", 0, GPG, GROUP_KEYS, TAKE_RECIPIENT_SELF, 1, NULL, "the same with the default key"),
    TAKE_ROW("no-default-recipient", 0, GPG, GROUP_HIDDEN, TAKE_RECIPIENT_SELF, 0, NULL, NULL),
    TAKE_ROW("group", 0, GPG, GROUP_KEYS, TAKE_GROUP, 0, "NAME=IDS", "NAME as a recipient stands for these"),
    TAKE_ROW("no-groups", 0, GPG, GROUP_HIDDEN, TAKE_NO_GROUPS, 0, NULL, NULL),
    TAKE_ROW("homedir", 0, LINE | GPG_ARGS, GROUP_KEYS, TAKE_HOMEDIR, 0, "DIR", "GnuPG's home, instead of $GNUPGHOME or ~/.gnupg"),
    LIST_ROW("keyring", 0, GPG, GROUP_KEYS, keyrings, "FILE", "look for keys in FILE too"),
    ON_ROW("no-default-keyring", 0, GPG, GROUP_KEYS, no_default_keyring, "look for keys in those files only"),
    LIST_ROW("secret-key-file", 0, OWN, GROUP_KEYS, secret_key_files, "FILE", "sign or decrypt with the secret key in FILE, without gpg-agent"),
    TAKE_ROW("trust-model", 0, GPG, GROUP_KEYS, TAKE_TRUST_MODEL, 0, "MODEL", "pgp, direct, always or auto"),
    TAKE_ROW("always-trust", 0, GPG, GROUP_KEYS, TAKE_TRUST_MODEL, 0, NULL, "take every key as valid"),
    TEXT_ROW("agent-program", 0, GPG, GROUP_HIDDEN, agent_program, "FILE", NULL),
    ON_ROW("use-keyboxd", 0, CONF | COMMON_CONF, GROUP_HIDDEN, use_keyboxd, NULL),

    TAKE_ROW("passphrase-fd", 0, GPG, GROUP_PASSPHRASES, TAKE_PASSPHRASE, PASSPHRASE_FD, "N", "read the passphrase from descriptor N"),
    TAKE_ROW("passphrase-file", 0, GPG, GROUP_PASSPHRASES, TAKE_PASSPHRASE, PASSPHRASE_FILE, "FILE", "take the first line of FILE"),
    TAKE_ROW("passphrase-command", 0, OWN, GROUP_PASSPHRASES, TAKE_PASSPHRASE, PASSPHRASE_COMMAND, "CMD", "take the first line that the shell command CMD writes"),
    TAKE_ROW("passphrase", 0, BOTH, GROUP_HIDDEN, REFUSE_PASSPHRASE, 0, "STRING", NULL),
    NUMBER_ROW("passphrase-repeat", 0, GPG, GROUP_HIDDEN, passphrase_repeat, 0, 10, "N", NULL),
    TAKE_ROW("pinentry-mode", 0, GPG, GROUP_PASSPHRASES, TAKE_PINENTRY_MODE, 0, "MODE", "default, cancel, error or loopback"),
    TEXT_ROW("override-session-key", 0, GPG, GROUP_PASSPHRASES, override_session_key, "KEY", "decrypt with this session key (ALGO:HEX)"),
    NUMBER_ROW("override-session-key-fd", 0, GPG, GROUP_PASSPHRASES, override_session_key_fd, 0, INT_MAX, "N", "the same, read from descriptor N"),
    ON_ROW("show-session-key", 0, GPG, GROUP_PASSPHRASES, show_session_key, "show the session key of the archive"),

    ON_ROW("no-compress", 0, GPG | STOCK, GROUP_ALGORITHMS, no_compress, "do not compress"),
    TAKE_ROW("compress-level", 'z', GPG, GROUP_ALGORITHMS, TAKE_LEVEL, 0, "N", "0 (none), 1 (fastest) to 9; the default is fast"),
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
    TAKE_ROW("s2k-count", 0, GPG, GROUP_ALGORITHMS, TAKE_S2K_COUNT, 0, "N", "how many bytes are hashed for that"),
    ON_ROW("force-ocb", 0, GPG, GROUP_ALGORITHMS, force_ocb, "encrypt with OCB even where a key does not ask for it"),
    ON_ROW("force-aead", 0, GPG, GROUP_HIDDEN, force_ocb, NULL),
    NUMBER_ROW("chunk-size", 0, GPG, GROUP_ALGORITHMS, chunk_size, 6, 22, "N", "AEAD chunks of 2^N bytes"),
    TAKE_ROW("gnupg", 0, GPG, GROUP_ALGORITHMS, TAKE_PROFILE, PROFILE_GNUPG, NULL, "write what GnuPG reads"),
    TAKE_ROW("rfc4880", 0, GPG, GROUP_ALGORITHMS, TAKE_PROFILE, PROFILE_RFC4880, NULL, "write what RFC 4880 has"),
    TAKE_ROW("rfc9580", 0, GPG, GROUP_ALGORITHMS, TAKE_PROFILE, PROFILE_RFC9580, NULL, "write what RFC 9580 has"),
    TAKE_ROW("compliance", 0, GPG, GROUP_HIDDEN, TAKE_COMPLIANCE, 0, "NAME", NULL),
    ON_ROW("require-compliance", 0, BOTH | STOCK, GROUP_HIDDEN, require_compliance, NULL),
    ON_ROW("armor", 'a', GPG, GROUP_ALGORITHMS, armor, "write text (base64) instead of binary"),
    ON_ROW("armour", 0, GPG, GROUP_HIDDEN, armor, NULL),
    OFF_ROW("no-armor", GPG, armor),
    OFF_ROW("no-armour", GPG, armor),
    LIST_ROW("comment", 0, GPG, GROUP_ALGORITHMS, comments, "TEXT", "a comment at the start of that text"),
    TAKE_ROW("no-comments", 0, GPG, GROUP_HIDDEN, TAKE_NO_COMMENTS, 0, NULL, NULL),
    TAKE_ROW("set-notation", 'N', GPG, GROUP_ALGORITHMS, TAKE_NOTATION, 0, "NAME=VALUE", "put this notation into the signature"),
    TAKE_ROW("sig-notation", 0, GPG, GROUP_HIDDEN, TAKE_NOTATION, 0, "NAME=VALUE", NULL),

    ON_ROW("require-signature", 0, OWN, GROUP_VERIFICATION, require_signature, "take nothing without a good signature"),
    TAKE_ROW("signer", 0, OWN, GROUP_VERIFICATION, TAKE_SIGNER, 0, "USER-ID", "this key must have signed (several: one of them)"),
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
    TAKE_ROW("newer-mtime", 0, TAR, GROUP_ARCHIVING, TAKE_NEWER, 0, "DATE|FILE", "only what was changed after DATE, or after FILE was"),
    ON_ROW("no-recursion", 0, TAR, GROUP_ARCHIVING, no_recursion, "folders without what is in them"),
    OFF_ROW("recursion", TAR, no_recursion),
    ON_ROW("dereference", 0, OWN, GROUP_ARCHIVING, dereference, "store what symlinks point to"),
    ON_ROW("dereference", 'h', TAR_ARGS, GROUP_HIDDEN, dereference, NULL),
    ON_ROW("numeric-owner", 0, TAR, GROUP_ARCHIVING, numeric_owner, "numbers instead of user and group names"),
    ON_ROW("portable", 0, OWN, GROUP_ARCHIVING, portable, "for readers that are GnuPG's gpgtar: hard links as copies"),
    TAKE_ROW("zstd", 0, TAR, GROUP_ARCHIVING, TAKE_ZSTD, 0, "[LEVEL]", "compress the tar with zstd"),
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
    ON_ROW("outside-links", 0, OWN, GROUP_EXTRACTING, outside_links, "make symlinks that lead out of the target too"),
    ON_ROW("concatenated", 0, OWN, GROUP_EXTRACTING, concatenated, "read on after the end of a tar: several in a row"),

    NUMBER_ROW("jobs", 'j', OWN, GROUP_RUNNING, jobs, 0, 256, "N", "threads to compress and encrypt (0: one a processor, at most 16)"),
    TAKE_ROW("verbose", 'v', BOTH | STOCK, GROUP_RUNNING, TAKE_VERBOSE, 1, NULL, "say more"),
    TAKE_ROW("no-verbose", 0, BOTH, GROUP_HIDDEN, TAKE_VERBOSE, 0, NULL, NULL),
    ON_ROW("quiet", 'q', BOTH | STOCK, GROUP_RUNNING, quiet, "say less"),
    TOGGLE_ROW("progress", OWN, GROUP_RUNNING, progress, TOGGLE_ON, "show how far the work is, even without a terminal"),
    TOGGLE_ROW("no-progress", OWN, GROUP_RUNNING, progress, TOGGLE_OFF, "never show it"),
    ON_ROW("batch", 0, BOTH | STOCK, GROUP_RUNNING, batch, "never ask anything"),
    OFF_ROW("no-batch", BOTH, batch),
    NUMBER_ROW("status-fd", 0, LINE | GPG_ARGS | STOCK, GROUP_RUNNING, status_fd, 0, INT_MAX, "N", "write status lines for programs to descriptor N"),
    TEXT_ROW("log-file", 0, BOTH, GROUP_RUNNING, log_file, "FILE", "write messages to FILE"),
    TAKE_ROW("log-file", 0, COMMON_CONF, GROUP_HIDDEN, TAKE_COMMON_LOG, 0, "FILE", NULL),
    ON_ROW("with-log", 0, OWN | STOCK, GROUP_RUNNING, with_log, "-d also writes its messages to a file beside its folder"),
    TAKE_ROW("gpg-args", 0, OWN | STOCK, GROUP_RUNNING, TAKE_ARGS, 0, "ARGS", "options in gpg's words"),
    TAKE_ROW("tar-args", 0, OWN | STOCK, GROUP_RUNNING, TAKE_ARGS, 1, "ARGS", "options in tar's words"),
    IGNORE_ROW("gpg", OWN | STOCK, "PROGRAM"),
    IGNORE_ROW("tar", OWN | STOCK, "PROGRAM"),
    IGNORE_ROW("openpgp", BOTH | STOCK, NULL),
    TAKE_ROW("cms", 0, OWN | STOCK, GROUP_HIDDEN, REFUSE_CMS, 0, NULL, NULL),
    IGNORE_ROW("utf8-strings", BOTH | STOCK, NULL),
    ON_ROW("debug", 0, OWN | STOCK, GROUP_HIDDEN, debug, NULL),
    TAKE_ROW("no-options", 0, GPG_ARGS, GROUP_HIDDEN, TAKE_NO_OPTIONS, 0, NULL, NULL),

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

const struct option_row *option_table_row(size_t i)
{
    return i < ARRAY_SIZE(rows) ? &rows[i] : NULL;
}

bool options_help(size_t i, struct option_help *ret)
{
    const struct option_row *row = option_table_row(i);
    if (!row)
        return false;
    *ret = (struct option_help){.group = row->contexts & LINE ? (enum option_group)row->group : GROUP_HIDDEN,
                                .on_line = row->contexts & LINE,
                                .letter = row->letter,
                                .name = row->name,
                                .value = row->value,
                                .help = row->help};
    return true;
}
