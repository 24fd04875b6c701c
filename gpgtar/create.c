/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 *   walk ▸ tar_write ▸ literal ▸ [ring: digests, compress ×N] ▸ packet ▸ [ring: aead ×M] ▸ framing ▸ outfile
 *   └────── main thread ──────┘ └──────── helpers ───────────────────┘ └──────── helpers ───────────────┘
 *
 * The main thread helps where it would have to wait, and so do the helpers of the first ring in the second. Where files
 * are not in the page cache, a few threads read those ahead that the walk comes to next (stream/ahead).
 *
 * Passphrases, keys and the agent are asked first, before a file is looked at. The archive has its name last, when all
 * of it is on disk.
 */
#include "create.h"

#include "archive/pack.h"
#include "archive/tar_write.h"
#include "detached.h"
#include "discard.h"
#include "incremental.h"
#include "keys.h"
#include "progress.h"
#include "stream/fd.h"
#include "stream/outfile.h"
#include "stream/ring.h"
#include "wishes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* A thread hop costs 10 µs (measured), so blocks between threads are large. */
#define CREATE_BLOCK (256 * 1024)
/* Each worker of bzip2 takes 4.4 MiB (measured): with more than this the program would be above 64 MiB, so more have to
 * be asked for. */
#define BZIP2_JOBS 10

struct create {
    const struct program *program;
    int directory_fd;
    struct outfile *outfile; /* NULL: standard output, or nothing with --dry-run */
    struct keys *keys;
    struct select *select;
    struct incremental *incremental; /* --listed-incremental; NULL: none */
    struct progress *progress;
    struct tar_progress counts;
    /* What message_params borrows. */
    struct chosen_keys recipients, signer_keys;
    struct secret_key **signer_secrets;
    struct message_recipient *message_recipients;
    struct message_signer *message_signers;
    const struct signature **selves;
    const struct key **recipient_keys;
    struct secret *passphrase;
    const struct secret *passphrases[1];
    struct notation *notations;
    char **comments;
    struct session_key session_key;
    struct message_params message;
};

static struct failure *create_failure(const struct create *create)
{
    return program_failure(create->program);
}

/* ---- the message: who and how ---- */

static void create_signed_one(void *context, const struct signature_made *made)
{
    const struct create *create = context;
    char fpr[2 * KEY_FPR_MAX + 1];
    key_fpr_hex(made->key, fpr);
    status_sig_created(create->program->status, create->message.detached ? 'D' : 'S', made->key->algo, made->digest,
                       made->type, (time_t)made->created, fpr);
    report_verbose(create->program->report, "signed with key %s, digest %s", fpr, algo_digest_name(made->digest));
}

static void create_session_key_made(void *context, const struct session_key *session_key)
{
    const struct create *create = context;
    if (!create->program->options->show_session_key)
        return;
    char text[8 + 2 * 64 + 1];
    size_t at = (size_t)snprintf(text, sizeof text, "%u:", session_key->cipher);
    for (size_t i = 0; i < session_key->key->n && at + 3 <= sizeof text; i++)
        at += (size_t)snprintf(text + at, 3, "%02X", session_key->key->bytes[i]);
    status_line(create->program->status, "SESSION_KEY", "%s", text);
    report_note(create->program->report, "session key: '%s'", text);
    bytes_wipe(text, sizeof text);
}

static gpg_error_t create_recipients(struct create *create)
{
    gpg_error_t err = keys_recipients(create->keys, &create->recipients);
    if (err)
        return err;
    const size_t n = create->recipients.n;
    create->message_recipients = calloc(n + 1, sizeof *create->message_recipients);
    create->selves = calloc(n + 1, sizeof *create->selves);
    create->recipient_keys = calloc(n + 1, sizeof *create->recipient_keys);
    if (!create->message_recipients || !create->selves || !create->recipient_keys)
        return gpg_error_from_syserror();
    for (size_t i = 0; i < n; i++) {
        const struct chosen_key *chosen = &create->recipients.items[i];
        create->recipient_keys[i] = certificate_key(chosen->certificate, chosen->number);
        create->selves[i] = certificate_preferences(chosen->certificate);
        create->message_recipients[i] =
            (struct message_recipient){.key = create->recipient_keys[i], .hidden = chosen->hidden};
    }
    create->message.recipients = create->message_recipients;
    create->message.recipient_n = n;
    return 0;
}

static gpg_error_t create_signers(struct create *create, const struct preference_wishes *wishes)
{
    gpg_error_t err = keys_signers(create->keys, &create->signer_keys, &create->signer_secrets);
    if (err)
        return err;
    const size_t n = create->signer_keys.n;
    const struct key **keys = calloc(n, sizeof *keys);
    uint8_t *digests = calloc(n, 1);
    create->message_signers = calloc(n, sizeof *create->message_signers);
    if (!keys || !digests || !create->message_signers) {
        err = gpg_error_from_syserror();
        goto out;
    }
    for (size_t i = 0; i < n; i++)
        keys[i] = certificate_key(create->signer_keys.items[i].certificate, create->signer_keys.items[i].number);
    preference_digests(wishes, keys, n, create->selves, create->message.recipient_n, digests);
    /* The first signer's is the innermost signature, as gpg has it. */
    for (size_t i = 0; i < n; i++)
        create->message_signers[n - 1 - i] =
            (struct message_signer){.secret_key = create->signer_secrets[i], .digest = digests[i]};
    create->message.signers = create->message_signers;
    create->message.signer_n = n;
out:
    free(keys);
    free(digests);
    return err;
}

static gpg_error_t create_protection(struct create *create, const struct preference_wishes *wishes)
{
    struct message_params *message = &create->message;
    struct preference_choice choice;
    const struct options *options = create->program->options;
    if (!options->encrypt && !options->symmetric) {
        message->protection = PROTECT_NONE;
        message->compress = preference_compress_alone(wishes);
        return 0;
    }
    gpg_error_t err = preference_choose(create_failure(create), wishes, create->selves, create->recipient_keys,
                                        message->recipient_n, &choice);
    if (err)
        return err;
    if (choice.legacy_cipher)
        report_warning(create->program->report,
                       "%s is an old cipher with blocks of 64 bits: use it for old readers only",
                       algo_cipher_name(choice.cipher));
    message->protection = choice.protection;
    message->cipher = choice.cipher;
    message->aead = choice.aead;
    message->chunk_octet = choice.chunk_octet;
    message->compress = choice.compress;
    return 0;
}

static gpg_error_t create_level(struct create *create)
{
    const struct options *options = create->program->options;
    create->message.compress_level = options->compress_level;
    create->message.detached = options->detach_sign;
    if (options->zstd_level || options->detach_sign)
        create->message.compress = COMPRESS_NONE;
    if (create->message.compress == COMPRESS_BZIP2 && options->bzip2_level >= 0)
        create->message.compress_level = options->bzip2_level;
    /* --comment values, NULL-terminated as the armor wants them. */
    create->comments = calloc(options->comments.n + 1, sizeof *create->comments);
    if (!create->comments)
        return gpg_error_from_syserror();
    for (size_t i = 0; i < options->comments.n; i++)
        if (strpbrk(options->comments.items[i], "\r\n"))
            return fail(create_failure(create), gpg_error(GPG_ERR_INV_VALUE),
                        "--comment: a header of the armor is one line and cannot have a line break");
    for (size_t i = 0; i < options->comments.n; i++)
        create->comments[i] = options->comments.items[i];
    create->message.comments = (const char *const *)create->comments;
    create->message.armor = options->armor;
    return 0;
}

/* Keys, passphrases, algorithms: everything that asks somebody or can be refused. */
static gpg_error_t create_message(struct create *create)
{
    const struct options *options = create->program->options;
    struct preference_wishes wishes;
    bool given = false;
    gpg_error_t err = keys_new(create->program, &create->keys);
    if (!err)
        err = wishes_read(create->program, &wishes);
    if (!err && options->encrypt)
        err = create_recipients(create);
    if (!err && options->sign)
        err = create_signers(create, &wishes);
    if (!err && options->symmetric) {
        err = prompts_new_passphrase(keys_prompts(create->keys), &create->passphrase);
        create->passphrases[0] = create->passphrase;
        create->message.passphrases = create->passphrases;
        create->message.passphrase_n = 1;
        if (!err)
            err = wishes_s2k(create->program, &create->message.s2k);
    }
    if (!err)
        err = create_protection(create, &wishes);
    if (!err)
        err = create_level(create);
    if (!err)
        err = wishes_notations(create->program, &create->notations, &create->message.notation_n);
    if (!err)
        err = wishes_session_key(create->program, &create->session_key, &given);
    if (given)
        create->message.session_key = &create->session_key;
    create->message.notations = create->notations;
    create->message.now = (uint32_t)time(NULL);
    create->message.jobs = program_workers(create->program);
    if (!options->jobs && create->message.compress == COMPRESS_BZIP2 && create->message.jobs > BZIP2_JOBS)
        create->message.jobs = BZIP2_JOBS;
    create->message.signed_one = create_signed_one;
    create->message.session_key_made = create_session_key_made;
    create->message.context = create;
    return err;
}

/* ---- where the bytes go ---- */

/* What to do where the file NAME exists: --yes or a person allows that it is replaced. */
static gpg_error_t create_may_replace(const struct create *create, const char *name, enum outfile_exists *ret)
{
    const struct options *options = create->program->options;
    struct stat status;
    *ret = options->yes ? OUTFILE_REPLACE : OUTFILE_NEW;
    /* /dev/stdout, /dev/fd/N: open already, written to and never replaced, whatever it leads to. */
    if (!strncmp(name, "/dev/", 5) || !strncmp(name, "/proc/", 6))
        return 0;
    if (options->yes || fstatat(create->directory_fd, name, &status, 0) || !S_ISREG(status.st_mode))
        return 0;
    if (options->batch || options->no || !report_ask(create->program->report, "'%s' exists; replace it?", name))
        return fail(create_failure(create), gpg_error(GPG_ERR_EEXIST), "'%s' exists and is kept (--yes replaces it)",
                    name);
    *ret = OUTFILE_REPLACE;
    return 0;
}

static gpg_error_t create_output(struct create *create, struct sink **ret)
{
    const struct options *options = create->program->options;
    struct run *run = create->program->run;
    if (options->dry_run)
        return discard_new(ret);
    if (!options->output) {
        if (isatty(STDOUT_FILENO) && !(options->armor && !options->skip_crypto))
            return fail(create_failure(create), gpg_error(GPG_ERR_CANCELED),
                        "an archive is not for a terminal: name a file with -o, or send it to a pipe");
        gpg_error_t err = fd_sink_new(run, STDOUT_FILENO, "standard output", false, ret);
        if (!err)
            fd_sink_hold(*ret);
        return err;
    }
    const bool is_secret = options->encrypt || options->symmetric;
    enum outfile_exists exists = OUTFILE_NEW;
    gpg_error_t err = create_may_replace(create, options->output, &exists);
    if (!err)
        err =
            outfile_open(run, create->directory_fd, options->output, is_secret ? 0600 : 0666, exists, &create->outfile);
    if (!err)
        err = outfile_sink(create->outfile, ret);
    return err;
}

static bool create_is_output(void *context, dev_t dev, ino_t ino)
{
    const struct create *create = context;
    struct stat status;
    if (incremental_is_file(create->incremental, dev, ino))
        return true;
    if (create->outfile)
        return outfile_is(create->outfile, dev, ino);
    return fstat(STDOUT_FILENO, &status) == 0 && S_ISREG(status.st_mode) && status.st_dev == dev &&
           status.st_ino == ino;
}

/* The way from the message's content, or a plain tar, to the file. */
static gpg_error_t create_message_sink(struct create *create, struct sink **ret)
{
    const struct options *options = create->program->options;
    struct status *status = create->program->status;
    struct sink *output = NULL;
    gpg_error_t err = create_output(create, &output);
    if (err)
        return err;
    if (options->skip_crypto) {
        const struct block_job boundary = {.block_size = CREATE_BLOCK};
        return block_sink_new(create->program->run, &boundary, program_workers(create->program) ? 1 : 0, output, ret);
    }
    if (create->message.signer_n)
        status_begin_signing(status, create->message.signers[0].digest);
    if (create->message.protection != PROTECT_NONE)
        status_begin_encryption(status, create->message.protection == PROTECT_SEIPD_1 ? 2 : 0, create->message.cipher,
                                create->message.protection == PROTECT_SEIPD_1 ? 0 : create->message.aead);
    return message_sink_new(create->program->run, &create->message, output, ret);
}

/* The whole way from tar bytes to the file. */
static gpg_error_t create_pipeline(struct create *create, struct sink **ret)
{
    const int level = create->program->options->zstd_level;
    const unsigned workers = program_workers(create->program);
    struct sink *below = NULL;
    gpg_error_t err = create_message_sink(create, &below);
    if (err || !level) {
        if (!err)
            *ret = below;
        return err;
    }
    return pack_sink_new(create_failure(create), level, workers ? workers : 1, below, ret);
}

/* ---- progress ---- */

struct progress_sink {
    struct sink sink;
    struct sink *below; /* borrowed */
    struct create *create;
    uint64_t since; /* bytes since progress was told */
};

static void progress_sink_count(struct progress_sink *self, size_t n)
{
    self->since += n;
    if (self->since < CREATE_BLOCK)
        return;
    self->since = 0;
    progress_update(self->create->progress, atomic_load_explicit(&self->create->counts.files, memory_order_relaxed),
                    atomic_load_explicit(&self->create->counts.bytes, memory_order_relaxed));
}

static gpg_error_t progress_sink_write(struct sink *sink, const void *bytes, size_t n)
{
    struct progress_sink *self = CONTAINER(sink, struct progress_sink, sink);
    progress_sink_count(self, n);
    return sink_write(self->below, bytes, n);
}

static gpg_error_t progress_sink_room(struct sink *sink, void **ret_room, size_t *ret_n)
{
    return sink_room(CONTAINER(sink, struct progress_sink, sink)->below, ret_room, ret_n);
}

static gpg_error_t progress_sink_filled(struct sink *sink, size_t n)
{
    struct progress_sink *self = CONTAINER(sink, struct progress_sink, sink);
    progress_sink_count(self, n);
    return sink_filled(self->below, n);
}

static gpg_error_t progress_sink_finish(struct sink *sink)
{
    (void)sink;
    return 0;
}

static void progress_sink_free(struct sink *sink)
{
    (void)sink; /* on the stack */
}

static const struct sink_ops progress_sink_ops = {.write = progress_sink_write,
                                                  .room = progress_sink_room,
                                                  .filled = progress_sink_filled,
                                                  .finish = progress_sink_finish,
                                                  .free = progress_sink_free};

/* ---- what to archive ---- */

static gpg_error_t create_exclude_file(const struct create *create, const char *name)
{
    struct source *lines = NULL;
    const bool standard = !strcmp(name, "-");
    const int fd = standard ? STDIN_FILENO : open(name, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        gpg_error_t err = gpg_error_from_syserror();
        return fail(create_failure(create), err, "the exclude file '%s' cannot be read: %s", name, gpg_strerror(err));
    }
    gpg_error_t err = fd_source_new(create->program->run, fd, name, !standard, 0, &lines);
    if (!err)
        err = select_exclude_from(create->select, lines, name, create_failure(create));
    source_free(lines);
    return err;
}

static gpg_error_t create_select(struct create *create)
{
    const struct options *options = create->program->options;
    gpg_error_t err = 0;
    create->select = select_new();
    if (!create->select)
        return gpg_error_from_syserror();
    *select_options(create->select) = (struct select_options){
        .one_file_system = options->one_file_system,
        .no_recursion = options->no_recursion,
        .dereference = options->dereference,
        .exclude_caches = options->exclude_caches,
        .newer = options->has_newer,
        .newer_than = options->newer,
    };
    for (size_t i = 0; i < options->exclude.n && !err; i++)
        err = select_exclude(create->select, options->exclude.items[i]);
    for (size_t i = 0; i < options->exclude_from.n && !err; i++)
        err = create_exclude_file(create, options->exclude_from.items[i]);
    if (!err && options->exclude_vcs)
        err = select_exclude_vcs(create->select);
    return err;
}

/* The list of -T; a file is opened as the shell would, not below -C. */
static gpg_error_t create_list(const struct create *create, struct walk_names *names)
{
    const struct options *options = create->program->options;
    struct source *list = NULL;
    const bool standard = !strcmp(options->files_from, "-");
    const int fd = standard ? STDIN_FILENO : open(options->files_from, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        gpg_error_t err = gpg_error_from_syserror();
        return fail(create_failure(create), err, "the list '%s' cannot be read: %s", options->files_from,
                    gpg_strerror(err));
    }
    gpg_error_t err =
        fd_source_new(create->program->run, fd, standard ? "standard input" : options->files_from, !standard, 0, &list);
    if (err)
        return err;
    return walk_names_add_list(names, list, options->null ? '\0' : '\n', options->files_from);
}

static gpg_error_t create_names(const struct create *create, struct walk_names **ret)
{
    const struct options *options = create->program->options;
    struct walk_names *names = walk_names_new();
    gpg_error_t err = names ? 0 : gpg_error_from_syserror();
    for (size_t i = 0; i < options->names.n && !err; i++)
        err = walk_names_add(names, options->names.items[i]);
    if (!err && options->files_from)
        err = create_list(create, names);
    if (err)
        walk_names_free(names);
    else
        *ret = names;
    return err;
}

static struct tar_create_params create_tar_params(struct create *create, struct walk_names *names,
                                                  const struct notices *notices)
{
    const struct options *options = create->program->options;
    return (struct tar_create_params){
        .walk = {.base_fd = create->directory_fd,
                 .names = names,
                 .select = create->select,
                 .is_output = create_is_output,
                 .output_context = create,
                 .run = program_workers(create->program) ? create->program->run : NULL,
                 .snapshot = incremental_snapshot(create->incremental),
                 .notices = notices,
                 .failure = create_failure(create)},
        .numeric_owner = options->numeric_owner,
        .portable = options->portable,
        .no_xattrs = options->xattrs == TOGGLE_OFF,
        .no_acls = options->acls == TOGGLE_OFF,
        .progress = &create->counts,
        .run = create->program->run,
    };
}

/* A total needs a walk of its own; it is made only where somebody looks on and the names can be read twice. */
static gpg_error_t create_scan(struct create *create)
{
    const struct options *options = create->program->options;
    struct walk_names *names = NULL;
    struct tar_create_result total;
    if (!create->progress || options->files_from || create->incremental)
        return 0;
    gpg_error_t err = create_names(create, &names);
    if (err)
        return err;
    const struct tar_create_params params = create_tar_params(create, names, NULL);
    err = tar_create_scan(&params, &total);
    if (!err)
        progress_start(create->progress, total.members, total.bytes);
    walk_names_free(names);
    return err;
}

/* Whether what was archived is what was asked for. */
static gpg_error_t create_judge(const struct create *create, const struct tar_create_result *result)
{
    const struct options *options = create->program->options;
    if (options->strict && result->flawed)
        return fail(create_failure(create), gpg_error(GPG_ERR_UNFINISHED),
                    "%llu of the inputs could not be archived as they are, and --strict is given: nothing was written",
                    (unsigned long long)result->flawed);
    if (result->members > 0 || (result->named == 0 && options->allow_empty))
        return 0;
    /* Nothing has changed: that is what an incremental archive is to say. */
    if (result->named > 0 && result->flawed == 0 && create->incremental)
        return 0;
    if (result->named == 0)
        return fail(create_failure(create), gpg_error(GPG_ERR_NO_DATA),
                    "no files were named: nothing was written (--allow-empty makes an empty archive)");
    return fail(create_failure(create), gpg_error(GPG_ERR_NO_DATA),
                "nothing of what was named could be archived: nothing was written");
}

static gpg_error_t create_archive(struct create *create, struct sink *top)
{
    struct walk_names *names = NULL;
    struct tar_create_result result = {.members = 0};
    struct progress_sink counter = {.below = top, .create = create};
    const struct notices notices = report_notices(create->program->report);
    sink_init(&counter.sink, &progress_sink_ops);
    gpg_error_t err = 0;
    if (create->program->options->listed_incremental)
        err = incremental_new(create->program, &create->incremental);
    if (!err)
        err = create_scan(create);
    if (!err)
        err = create_names(create, &names);
    if (err)
        return err;
    const struct tar_create_params params = create_tar_params(create, names, &notices);
    err = tar_create(&params, create->progress ? &counter.sink : top, &result);
    walk_names_free(names);
    if (!err)
        err = create_judge(create, &result);
    if (!err)
        err = sink_finish(top);
    if (!err && create->outfile)
        err = outfile_commit(create->outfile);
    if (!err)
        err = incremental_commit(create->incremental);
    if (!err) {
        progress_update(create->progress, result.members, result.bytes);
        progress_finish(create->progress);
    }
    return err;
}

/* --detach-sign: the bytes of one file or of standard input, as they are. */
static gpg_error_t create_detached(struct create *create, struct sink *top)
{
    const struct strings *names = &create->program->options->names;
    struct source *content = NULL;
    gpg_error_t err = detached_open(create->program, create->directory_fd, names->n ? names->items[0] : "-", &content);
    if (!err)
        err = pump(content, top, NULL);
    source_free(content);
    if (!err)
        err = sink_finish(top);
    if (!err && create->outfile)
        err = outfile_commit(create->outfile);
    return err;
}

static void create_clear(struct create *create)
{
    progress_free(create->progress);
    incremental_free(create->incremental);
    outfile_free(create->outfile);
    select_free(create->select);
    for (size_t i = 0; create->signer_secrets && i < create->signer_keys.n; i++)
        secret_key_free(create->signer_secrets[i]);
    free(create->signer_secrets);
    chosen_keys_clear(&create->signer_keys);
    chosen_keys_clear(&create->recipients);
    free(create->message_recipients);
    free(create->message_signers);
    free(create->selves);
    free(create->recipient_keys);
    secret_free(create->passphrase);
    session_key_clear(&create->session_key);
    free(create->notations);
    free(create->comments);
    keys_free(create->keys);
    if (create->directory_fd >= 0)
        close(create->directory_fd);
}

gpg_error_t create_command(const struct program *program)
{
    struct create create = {.program = program, .directory_fd = -1};
    const struct options *options = program->options;
    struct sink *top = NULL;
    const bool visible = options->progress == TOGGLE_ON || (options->progress == TOGGLE_DEFAULT && !options->quiet &&
                                                            report_on_terminal(program->report));

    gpg_error_t err = program_directory(program, &create.directory_fd);
    if (!err && !options->skip_crypto)
        err = create_message(&create);
    if (!err)
        err = create_select(&create);
    if (!err && !options->detach_sign && (visible || program->status))
        create.progress = progress_new(program->report, program->status, visible, NULL, NULL);
    if (!err)
        err = create_pipeline(&create, &top);
    if (!err && options->detach_sign)
        err = create_detached(&create, top);
    else if (!err)
        err = create_archive(&create, top);
    sink_free(top);
    if (!err && create.message.protection != PROTECT_NONE)
        status_end_encryption(program->status);
    create_clear(&create);
    return err;
}
