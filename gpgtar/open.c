/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 *   fd ▸ armor ▸ framing ▸ [ring: aead ×M] ▸ inflate ▸ literal ▸ [ring: digests] ▸ tar_read ▸ extract into staging
 *   └────────────── helpers ─────────────┘ └───────── helpers ─────────────────┘ └─ main ─┘  then: verdict ▸ rename
 *
 * Who would have to wait for the ring before him helps there instead.
 *
 * Nothing has its real name before the verdict on the whole message.
 */
#include "open.h"

#include "archive/compare.h"
#include "archive/extract.h"
#include "archive/libarchive.h"
#include "archive/list.h"
#include "archive/names.h"
#include "archive/staging.h"
#include "confine.h"
#include "detached.h"
#include "events.h"
#include "members.h"
#include "progress.h"
#include "signals.h"
#include "stream/fd.h"
#include "stream/ring.h"
#include "wishes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* A thread hop costs 10 µs (measured), so blocks between threads are large. */
#define OPEN_BLOCK (256 * 1024)

struct opening {
    const struct program *program;
    struct keys *keys;
    struct events events;
    struct session_key session_key;
    struct read_params read;
    struct strings members;
    unsigned workers;
    struct source *raw;         /* the archive's bytes, until CONTENT owns them */
    bool quick;                 /* --quick, of an archive in which one can seek */
    struct source *signed_file; /* --verify SIGNATURE FILE */
    struct source *message;     /* NULL for a plain tar; owned by CONTENT */
    struct source *content;     /* the tar's bytes */
    int directory_fd;           /* -C or the current folder */
    struct staging *staging;
    struct tar_read_params tar;
    gpg_error_t salvage_code; /* what was wrong with a message that is being salvaged */
};

static struct failure *open_failure(const struct opening *opening)
{
    return program_failure(opening->program);
}

/* ---- the bytes ---- */

/* --quick is for those who take parts: listing and extraction. */
static bool open_is_quick(const struct options *options, int fd)
{
    struct stat status;
    return options->quick && fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
           (options->command == COMMAND_LIST || (options->command == COMMAND_EXTRACT && !options->dry_run));
}

static gpg_error_t open_archive(struct opening *opening, struct source **ret)
{
    const char *name = opening->program->options->archive;
    struct run *run = opening->program->run;
    if (!name) {
        opening->quick = open_is_quick(opening->program->options, STDIN_FILENO);
        return fd_source_new(run, STDIN_FILENO, "standard input", false, 0, ret);
    }
    const int fd = open(name, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        gpg_error_t err = gpg_error_from_syserror();
        return fail(open_failure(opening), err, "'%s' cannot be opened: %s", name, gpg_strerror(err));
    }
    struct stat status;
    if (fstat(fd, &status) == 0 && S_ISDIR(status.st_mode)) {
        close(fd);
        return fail(open_failure(opening), gpg_error(GPG_ERR_EISDIR), "'%s' is a folder, not an archive", name);
    }
    opening->quick = open_is_quick(opening->program->options, fd);
    return fd_source_new(run, fd, name, true, 0, ret);
}

static gpg_error_t open_read_params(struct opening *opening)
{
    const struct program *program = opening->program;
    bool given = false;
    gpg_error_t err = keys_new(program, &opening->keys);
    if (!err)
        err = wishes_session_key(program, &opening->session_key, &given);
    if (err)
        return err;
    opening->events = (struct events){.program = program, .keys = opening->keys};
    opening->read = (struct read_params){
        .keystore = stores_keystore(keys_stores(opening->keys)),
        .passphrases = prompts_for_archives(keys_prompts(opening->keys)),
        .session_key = given ? &opening->session_key : NULL,
        .ignore_mdc_error = program->options->ignore_mdc_error,
        .now = (uint32_t)time(NULL),
        .jobs = opening->workers,
        .event = events_message,
        .context = &opening->events,
    };
    return 0;
}

static int open_base64(uint8_t c)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *at = c ? strchr(digits, c) : NULL;
    return at ? (int)(at - digits) : -1;
}

/* The octet with which the first packet begins; armor begins behind the first empty line. 0: not to be seen. */
static unsigned open_first_octet(const uint8_t *bytes, size_t n)
{
    if (n && (bytes[0] & 0x80))
        return bytes[0];
    for (size_t i = 0; i + 4 < n; i++) {
        if (bytes[i] != '\n')
            continue;
        const size_t at = bytes[i + 1] == '\r' ? i + 2 : i + 1;
        if (bytes[at] != '\n' || at + 2 >= n)
            continue;
        const int high = open_base64(bytes[at + 1]), low = open_base64(bytes[at + 2]);
        return high < 0 || low < 0 ? 0 : (unsigned)(high << 2 | low >> 4);
    }
    return 0;
}

/* What may be needed to open the message, by its first packet (RFC 9580 5). */
static gpg_error_t open_needs(const struct opening *opening, enum keys_needs *ret)
{
    const bool given = opening->program->options->passphrase.kind != PASSPHRASE_DEFAULT;
    const void *bytes;
    size_t n;
    gpg_error_t err = source_peek(opening->raw, &bytes, &n);
    if (err)
        return err;
    const unsigned first = open_first_octet(bytes, n);
    const unsigned type = first & 0x40 ? first & 63 : (first >> 2) & 15;
    if (first && (type == 2 || type == 4 || type == 8 || type == 11)) /* signature, one-pass, compressed, literal */
        *ret = KEYS_NO_SECRETS;
    else if (first && type == 3 && given) /* symmetric-key encrypted session key */
        *ret = KEYS_PASSPHRASE;
    else
        *ret = n ? KEYS_SECRETS : KEYS_NO_SECRETS;
    return 0;
}

/* Everything that opens files or starts programs, or asks whoever may be asked only now. */
static gpg_error_t open_prepare(struct opening *opening)
{
    const struct options *options = opening->program->options;
    bool detached = false;
    enum keys_needs needs = KEYS_NO_SECRETS;
    opening->workers = program_workers(opening->program);
    gpg_error_t err = 0;
    if (!options->skip_crypto)
        err = open_read_params(opening);
    if (!err)
        err = open_archive(opening, &opening->raw);
    opening->read.seek = opening->quick;
    if (!err && !options->skip_crypto && options->command == COMMAND_VERIFY && options->names.n == 1)
        err = detached_is_signature(opening->raw, &detached);
    if (!err && detached) {
        if (!options->archive && !strcmp(options->names.items[0], "-"))
            return fail(open_failure(opening), gpg_error(GPG_ERR_CONFLICT),
                        "the signature and what it signs cannot both be read from standard input");
        return detached_open(opening->program, AT_FDCWD, options->names.items[0], &opening->signed_file);
    }
    if (!err)
        err = members_read(opening->program, &opening->members);
    if (!err && !options->skip_crypto)
        err = open_needs(opening, &needs);
    if (!err && !options->skip_crypto)
        err = keys_get_ready(opening->keys, needs);
    return err;
}

/* From here on this process and its threads write nowhere but below the target, and start no program. */
static gpg_error_t open_confine(struct opening *opening)
{
    const struct options *options = opening->program->options;
    const bool extracts = options->command == COMMAND_EXTRACT && !options->to_stdout && !options->dry_run;
    int reads[CONFINE_SYSTEM_MAX + 1], abi = 0;
    size_t n = confine_open_system(reads);
    const size_t n_system = n;
    if (options->command == COMMAND_COMPARE)
        reads[n++] = opening->directory_fd;
    const struct confine_folders folders = {
        .write_fds = &opening->directory_fd,
        .n_write = extracts ? 1 : 0,
        .read_fds = reads,
        .n_read = n,
        .terminal_fd = options->batch ? -1 : open("/dev/tty", O_PATH | O_CLOEXEC),
    };
    gpg_error_t err = confine_files(&folders, open_failure(opening), &abi);
    for (size_t i = 0; i < n_system; i++)
        close(reads[i]);
    if (folders.terminal_fd >= 0)
        close(folders.terminal_fd);
    if (!err && abi == 0)
        report_verbose(opening->program->report, "this kernel has no Landlock: the process is not confined");
    return err;
}

/* From the file to the tar's bytes; passphrases and keys are asked for here. */
static gpg_error_t open_content(struct opening *opening)
{
    const struct program *program = opening->program;
    const struct block_job boundary = {.block_size = OPEN_BLOCK};
    struct source *below = opening->raw;
    opening->raw = NULL;
    if (!program->options->skip_crypto) {
        struct source *raw = below;
        gpg_error_t err = message_source_new(program->run, &opening->read, raw, &below);
        if (gpg_err_code(err) == GPG_ERR_NO_DATA)
            status_no_data(program->status);
        if (err)
            return err;
        opening->message = below;
    }
    /* Skipping needs the source itself: a ring would have read the bytes already. */
    opening->quick = opening->quick && (!opening->message || message_seeks(opening->message));
    if (opening->quick || opening->workers == 0 || opening->message) {
        opening->content = below;
        return 0;
    }
    return block_source_new(program->run, &boundary, 1, below, &opening->content);
}

static void open_close_content(struct opening *opening)
{
    source_free(opening->content);
    opening->content = NULL;
    opening->message = NULL;
}

/* ---- the verdict ---- */

/* Reads to the end and judges. 0: the content may be released. */
static gpg_error_t open_verdict(struct opening *opening)
{
    gpg_error_t err = source_finish(opening->content);
    if (!opening->message)
        return err;
    const struct message_verdict *verdict = message_verdict(opening->message);
    if (!err && !verdict->passed_over)
        err = events_policy(&opening->events, verdict);
    else if (!err)
        report_note(opening->program->report, "only parts of the archive were read: its signature was not checked");
    if (!err && verdict->unprotected)
        report_warning(opening->program->report,
                       "the archive has no integrity protection: what was taken may be forged");
    return err;
}

/* ---- extraction ---- */

/* The folder BASE of CLI.md 4: the last component of --set-filename or the archive's name, less one known ending. */
static char *open_base(const struct options *options)
{
    static const char *const endings[] = {".gpg", ".pgp", ".asc", ".pem", ".p7m", ".p7e"};
    const char *name = options->set_filename ? options->set_filename : options->archive;
    if (!name || !*name)
        return strdup("GPGARCH");
    const char *slash = strrchr(name, '/');
    const char *base = slash ? slash + 1 : name;
    size_t n = strlen(base);
    for (size_t i = 0; i < ARRAY_SIZE(endings); i++) {
        const size_t ending = strlen(endings[i]);
        if (n > ending && !strcmp(base + n - ending, endings[i])) {
            n -= ending;
            break;
        }
    }
    return n ? strndup(base, n) : strdup("GPGARCH");
}

static enum staging_answer open_ask(void *context, const char *name)
{
    const struct opening *opening = context;
    return report_ask(opening->program->report, "'%s' exists; replace it?", name) ? STAGING_ANSWER_REPLACE
                                                                                  : STAGING_ANSWER_KEEP;
}

static gpg_error_t open_release(struct opening *opening, uint64_t *ret_kept)
{
    const struct program *program = opening->program;
    const struct options *options = program->options;
    if (!options->directory) {
        char *base = open_base(options), *name = NULL;
        if (!base)
            return gpg_error_from_syserror();
        gpg_error_t err = staging_release_as(opening->staging, base, open_failure(opening), &name);
        if (!err)
            report_note(program->report, "extracted to '%s/'", name);
        free(name);
        free(base);
        return err;
    }
    const struct notices notices = report_notices(program->report);
    struct staging_release_result result;
    const struct staging_release_params params = {
        .policy = options->keep_old_files   ? STAGING_KEEP_OLD
                  : options->skip_old_files ? STAGING_SKIP_OLD
                  : options->yes            ? STAGING_REPLACE
                                            : STAGING_KEEP,
        .ask = options->batch || options->no || !report_on_terminal(program->report) ? NULL : open_ask,
        .ask_context = opening,
        .notices = &notices,
        .failure = open_failure(opening),
    };
    gpg_error_t err = staging_release(opening->staging, &params, &result);
    *ret_kept = result.kept;
    return err;
}

static void open_leftover(void *context, const char *name)
{
    const struct notices notices = report_notices(context);
    notice(&notices, NOTICE_LEFTOVER, name, 0, NULL);
}

static gpg_error_t open_extract(struct opening *opening)
{
    const struct program *program = opening->program;
    const struct options *options = program->options;
    const mode_t mask = umask(022);
    umask(mask);
    gpg_error_t err = staging_leftovers(opening->directory_fd, false, open_leftover, program->report, NULL, NULL);
    if (err)
        report_verbose(program->report, "the target cannot be listed, so nobody looked for leftovers in it: %s",
                       gpg_strerror(err));
    err = staging_new(opening->directory_fd, options->directory ? options->directory : ".", open_failure(opening),
                      &opening->staging);
    if (err)
        return err;
    struct tar_extract_result result = {.extracted = 0};
    uint64_t kept = 0;
    const struct tar_extract_params params = {
        .read = opening->tar,
        .root_fd = staging_fd(opening->staging),
        .umask = mask,
        .same_permissions = options->same_permissions,
        .same_owner = options->same_owner == TOGGLE_ON || (options->same_owner == TOGGLE_DEFAULT && geteuid() == 0),
        .numeric_owner = options->numeric_owner,
        .no_xattrs = options->xattrs == TOGGLE_OFF,
        .no_acls = options->acls == TOGGLE_OFF,
        .outside_links = options->outside_links,
    };
    err = tar_extract(&params, opening->content, &result);
    gpg_error_t verdict = err ? err : open_verdict(opening);
    if (verdict && options->salvage && result.made && !signals_caught()) {
        report_error(program->report,
                     "the archive is damaged; what could be read is kept, and NOTHING OF IT IS VERIFIED");
        opening->salvage_code = verdict;
        verdict = 0;
    }
    if (!verdict && (result.made || !result.read.flaws))
        verdict = open_release(opening, &kept);
    if (!verdict) {
        const struct status_extract counts = {result.extracted - kept, result.skipped + kept, result.badname,
                                              result.suspicious,       result.symlink,        result.hardlink,
                                              result.other + kept};
        status_extract(program->status, &counts);
    }
    if (!verdict && result.symlink && !options->outside_links)
        report_note(program->report, "--outside-links makes symlinks that lead out of the target: for backups of your "
                                     "own system");
    return verdict;
}

/* ---- the other commands ---- */

static gpg_error_t open_to_stdout(struct opening *opening, bool listing)
{
    const struct program *program = opening->program;
    struct sink *sink = NULL, *buffer = NULL;
    const struct block_job gather = {.block_size = OPEN_BLOCK};
    gpg_error_t err = fd_sink_new(program->run, STDOUT_FILENO, "standard output", false, &sink);
    if (!err)
        err = block_sink_new(program->run, &gather, 0, sink, &buffer);
    if (err)
        return err;
    if (listing) {
        struct tar_list_result result;
        const struct tar_list_params params = {.read = opening->tar, .null = program->options->null};
        err = tar_list(&params, opening->content, buffer, &result);
    } else {
        struct tar_extract_result result;
        err = tar_extract_to_sink(&opening->tar, opening->content, buffer, &result);
    }
    gpg_error_t flushed = err ? err : sink_finish(buffer);
    sink_free(buffer);
    if (flushed)
        return flushed;
    return open_verdict(opening);
}

static gpg_error_t open_verify(struct opening *opening)
{
    struct tar_list_result result;
    gpg_error_t err = tar_verify(&opening->tar, opening->content, &result);
    if (!err)
        err = open_verdict(opening);
    if (!err && report_errors(opening->program->report) == 0)
        report_note(opening->program->report, "%llu members, %llu bytes: the archive is sound",
                    (unsigned long long)result.members, (unsigned long long)result.bytes);
    return err;
}

/* Differences are what a comparison gives out: they go to standard output, all else is said as ever. */
struct open_differences {
    struct report *report;
    struct sink *sink;
    gpg_error_t error; /* of the first write that failed */
};

static void open_difference(void *context, const struct notice *notice)
{
    struct open_differences *differences = context;
    char *name = NULL, *line = NULL;
    if (notice->kind != NOTICE_DIFFERS) {
        report_notice(differences->report, notice);
        return;
    }
    if (differences->error)
        return;
    name = names_escape(notice->name ? notice->name : "");
    const int n = name ? asprintf(&line, "%s: %s\n", name, notice->detail ? notice->detail : "differs") : -1;
    differences->error = n < 0 ? gpg_error(GPG_ERR_ENOMEM) : sink_write(differences->sink, line, (size_t)n);
    if (n >= 0)
        free(line);
    free(name);
}

static gpg_error_t open_compare(struct opening *opening)
{
    const struct program *program = opening->program;
    struct open_differences differences = {.report = program->report};
    const struct notices notices = {.report = open_difference, .context = &differences};
    struct tar_compare_result result = {.members = 0};
    struct tar_compare_params params = {
        .read = opening->tar,
        .root_fd = opening->directory_fd,
        .numeric_owner = program->options->numeric_owner,
    };
    params.read.notices = &notices;
    gpg_error_t err = fd_sink_new(program->run, STDOUT_FILENO, "standard output", false, &differences.sink);
    if (!err)
        err = tar_compare(&params, opening->content, &result);
    if (!err)
        err = differences.error;
    sink_free(differences.sink);
    if (!err)
        err = open_verdict(opening);
    if (!err && result.differences)
        err = fail(open_failure(opening), gpg_error(GPG_ERR_GENERAL),
                   "%llu difference%s between the archive and the disk", (unsigned long long)result.differences,
                   result.differences == 1 ? "" : "s");
    return err;
}

static gpg_error_t open_work(struct opening *opening)
{
    const struct options *options = opening->program->options;
    const struct notices notices = report_notices(opening->program->report);
    opening->tar = (struct tar_read_params){
        .run = opening->program->run,
        .failure = open_failure(opening),
        .notices = &notices,
        .names = (const char *const *)opening->members.items,
        .n_names = opening->members.n,
        .wildcards = !options->no_wildcards,
        .strip_components = options->strip_components,
        .concatenated = options->concatenated,
        .decrypted = opening->message && message_verdict(opening->message)->encrypted,
        .salvage = options->salvage,
        .quick = opening->quick,
        .max_size = options->max_size,
        .max_files = options->max_files,
    };
    if (opening->message) {
        gpg_error_t err = events_protected(&opening->events, message_verdict(opening->message));
        if (err)
            return err;
    }
    switch (options->command) {
    case COMMAND_EXTRACT:
        if (options->dry_run)
            return open_verify(opening);
        return options->to_stdout ? open_to_stdout(opening, false) : open_extract(opening);
    case COMMAND_LIST:
        return open_to_stdout(opening, true);
    case COMMAND_COMPARE:
        return open_compare(opening);
    default:
        return open_verify(opening);
    }
}

/* "BASE_N_.log" with the number that the folder will have. NULL: out of core. */
static char *open_folder_log(const struct opening *opening)
{
    char *base = open_base(opening->program->options), *log = NULL;
    struct stat status;
    for (unsigned i = 1; base && !log; i++) {
        char *folder = NULL;
        if (asprintf(&folder, "%s_%u_", base, i) < 0)
            break;
        const bool is_free = fstatat(opening->directory_fd, folder, &status, AT_SYMLINK_NOFOLLOW) != 0;
        const int n = is_free ? asprintf(&log, "%s.log", folder) : 0;
        free(folder);
        if (n < 0) {
            log = NULL;
            break;
        }
    }
    free(base);
    return log;
}

/* --with-log: "FOLDER.log" beside the folder that is extracted into. */
static gpg_error_t open_log(const struct opening *opening)
{
    const struct options *options = opening->program->options;
    char *name = NULL;
    if (!options->with_log || options->command != COMMAND_EXTRACT || options->dry_run || options->to_stdout)
        return 0;
    if (options->directory) {
        size_t n = strlen(options->directory);
        while (n > 1 && options->directory[n - 1] == '/')
            n--;
        if (asprintf(&name, "%.*s.log", (int)n, options->directory) < 0)
            name = NULL;
    } else {
        name = open_folder_log(opening);
    }
    gpg_error_t err = name ? report_copy_file(opening->program->report, open_failure(opening), AT_FDCWD, name)
                           : gpg_error(GPG_ERR_ENOMEM);
    free(name);
    return err;
}

/* Whether CODE says something of the archive itself, and not of the disk, the agent or the target. */
static bool open_is_archive(gpg_error_t code)
{
    switch (gpg_err_code(code)) {
    case GPG_ERR_TRUNCATED:
    case GPG_ERR_INV_PACKET:
    case GPG_ERR_INV_ARMOR:
    case GPG_ERR_NO_DATA:
    case GPG_ERR_BAD_DATA:
    case GPG_ERR_CHECKSUM:
    case GPG_ERR_DECRYPT_FAILED:
    case GPG_ERR_COMPR_FAILED:
    case GPG_ERR_UNSUPPORTED_PROTECTION:
    case GPG_ERR_UNKNOWN_VERSION:
    case GPG_ERR_NOT_SUPPORTED:
    case GPG_ERR_BAD_SIGNATURE:
    case GPG_ERR_BAD_PASSPHRASE:
    case GPG_ERR_NO_SECKEY:
    case TAR_NOT_A_TAR:
        return true;
    default:
        return false;
    }
}

gpg_error_t open_command(const struct program *program)
{
    struct opening opening = {.program = program, .directory_fd = -1};
    /* The target first: nobody should type a passphrase for a folder that is not there. */
    gpg_error_t err = program_directory(program, &opening.directory_fd);
    if (!err)
        err = open_log(&opening);
    if (!err)
        err = open_prepare(&opening);
    if (!err)
        err = libarchive_load(open_failure(&opening)); /* afterwards its file cannot be opened */
    if (!err)
        err = open_confine(&opening);
    if (!err && opening.signed_file) {
        struct source *signatures = opening.raw, *content = opening.signed_file;
        opening.raw = opening.signed_file = NULL;
        err = detached_verify(&opening.events, &opening.read, signatures, content);
    } else if (!err) {
        err = open_content(&opening);
        if (!err)
            err = open_work(&opening);
    }
    if (err && opening.message && message_verdict(opening.message)->passed_over)
        report_note(program->report, "not all of the archive was read: without --quick it may be readable");
    if (gpg_err_code(err) == TAR_NOT_A_TAR && opening.tar.decrypted) {
        const gpg_error_t damage = source_finish(opening.content);
        err = damage ? damage : fail(program_failure(program), err, "decrypted, but the content is not a tar archive");
    }
    if (err && open_is_archive(err) && program->options->archive)
        failure_prefix(program_failure(program), program->options->archive);
    open_close_content(&opening);
    source_free(opening.raw);
    source_free(opening.signed_file);
    staging_free(opening.staging);
    strings_clear(&opening.members);
    session_key_clear(&opening.session_key);
    keys_free(opening.keys);
    if (opening.directory_fd >= 0)
        close(opening.directory_fd);
    return err ? err : opening.salvage_code;
}
