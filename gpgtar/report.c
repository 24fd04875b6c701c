/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "report.h"

#include "memory.h"
#include "options.h"

#include "archive/libarchive.h"
#include "archive/names.h"
#include "stream/fd.h"

#include <archive.h>
#include <errno.h>
#include <fcntl.h>
#include <gcrypt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct report {
    pthread_mutex_t lock;
    int fd;
    int log;  /* -1: none */
    int copy; /* a second log; -1: none */
    bool terminal;
    bool quiet;
    unsigned verbose;
    bool transient;                 /* a line stands that the next one overwrites; lock */
    unsigned long errors, warnings; /* lock */
};

gpg_error_t report_claim_standard_fds(void)
{
    for (int fd = 0; fd <= 2; fd++) {
        if (fcntl(fd, F_GETFD) >= 0)
            continue;
        /* The lowest free number is FD, for all below it are open. Data for a closed standard output must not vanish
         * quietly: writing to it fails. Messages may vanish. */
        int opened = open("/dev/null", fd == 2 ? O_WRONLY : O_RDONLY);
        if (opened < 0)
            return gpg_error_from_syserror();
        if (opened != fd) {
            close(opened);
            return gpg_error(GPG_ERR_INTERNAL);
        }
    }
    return 0;
}

struct report *report_new(int fd)
{
    struct report *report = calloc(1, sizeof *report);
    if (!report)
        return NULL;
    pthread_mutex_init(&report->lock, NULL);
    report->fd = fd;
    report->log = -1;
    report->copy = -1;
    report->terminal = isatty(fd);
    return report;
}

void report_free(struct report *report)
{
    if (!report)
        return;
    if (report->log >= 0)
        close(report->log);
    if (report->copy >= 0)
        close(report->copy);
    pthread_mutex_destroy(&report->lock);
    free(report);
}

void report_levels(struct report *report, bool quiet, unsigned verbose)
{
    if (!report)
        return;
    report->quiet = quiet;
    report->verbose = verbose;
}

gpg_error_t report_log_file(struct report *report, struct failure *failure, const char *name)
{
    if (!report)
        return 0;
    int log = open(name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0600);
    if (log < 0)
        return fail(failure, gpg_error_from_syserror(), "the log file %s cannot be opened: %s", name, strerror(errno));
    if (report->log >= 0)
        close(report->log);
    report->log = log;
    return 0;
}

gpg_error_t report_copy_file(struct report *report, struct failure *failure, int directory_fd, const char *name)
{
    if (!report)
        return 0;
    int copy = openat(directory_fd, name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW, 0600);
    if (copy < 0)
        return fail(failure, gpg_error_from_syserror(), "the log file %s cannot be opened: %s", name, strerror(errno));
    if (report->copy >= 0)
        close(report->copy);
    report->copy = copy;
    return 0;
}

char *report_escape(const char *text, size_t n)
{
    char *escaped = malloc(4 * n + 1);
    if (!escaped)
        return NULL;
    char *to = escaped;
    const uint8_t *from = (const uint8_t *)text, *end = from + n;
    while (from < end) {
        size_t length = names_utf8(from, (size_t)(end - from));
        bool control = length == 1 && (*from < 0x20 || *from == 0x7f);
        /* U+0080 … U+009F steer terminals; U+202A … E and U+2066 … 9 turn text around. */
        bool hidden = (length == 2 && from[0] == 0xc2 && from[1] < 0xa0) ||
                      (length == 3 && from[0] == 0xe2 && from[1] == 0x80 && from[2] >= 0xaa && from[2] <= 0xae) ||
                      (length == 3 && from[0] == 0xe2 && from[1] == 0x81 && from[2] >= 0xa6 && from[2] <= 0xa9);
        if (length > 0 && !control && !hidden) {
            memcpy(to, from, length);
            to += length;
            from += length;
        } else if (control && (*from == '\n' || *from == '\t')) {
            *to++ = '\\';
            *to++ = *from++ == '\n' ? 'n' : 't';
        } else {
            size_t bytes = length > 0 ? length : 1;
            for (size_t i = 0; i < bytes; i++)
                to += sprintf(to, "\\x%02x", *from++);
        }
    }
    *to = '\0';
    return escaped;
}

/* Where even this cannot be written, nobody can be told. */
static void put(int fd, const char *bytes, size_t n)
{
    gpg_error_t ignored = fd_write_full(fd, bytes, n);
    (void)ignored;
}

/* Takes SENTENCE (may be NULL: out of core) and writes it whole. Under the lock. */
static void write_line(struct report *report, const char *level, char *takes_sentence)
{
    char when[32] = "", *safe = NULL, *line = NULL;
    if (report->log >= 0 || report->copy >= 0) {
        time_t now = time(NULL);
        struct tm tm;
        if (localtime_r(&now, &tm))
            strftime(when, sizeof when, "%Y-%m-%d %H:%M:%S ", &tm);
    }
    if (takes_sentence)
        safe = report_escape(takes_sentence, strlen(takes_sentence));
    int n = asprintf(&line, "%sgpgtar: %s%s\n", when, level, safe ? safe : "out of core");
    if (n > 0) {
        const size_t dated = strlen(when);
        if (report->log >= 0)
            put(report->log, line, (size_t)n);
        if (report->copy >= 0)
            put(report->copy, line, (size_t)n);
        if (report->log < 0 && report->transient)
            put(report->fd, "\r\033[K", 4);
        if (report->log < 0)
            put(report->fd, line + dated, (size_t)n - dated);
        free(line);
    } else {
        memory_say(report->log >= 0 ? report->log : report->fd);
    }
    if (report->log < 0)
        report->transient = false;
    free(safe);
    free(takes_sentence);
}

static PRINTF_LIKE(1, 0) char *vformat(const char *format, va_list args)
{
    char *sentence = NULL;
    return vasprintf(&sentence, format, args) < 0 ? NULL : sentence;
}

enum level { LEVEL_VERBOSE, LEVEL_NOTE, LEVEL_WARNING, LEVEL_ERROR };

/* Whether nobody hears what has this level: then no sentence need be made. */
static bool is_mute(const struct report *report, enum level level)
{
    return !report || (level == LEVEL_VERBOSE && report->verbose == 0) || (level == LEVEL_NOTE && report->quiet);
}

static void say(struct report *report, enum level level, char *takes_sentence)
{
    if (is_mute(report, level)) {
        free(takes_sentence);
        return;
    }
    pthread_mutex_lock(&report->lock);
    report->errors += level == LEVEL_ERROR;
    report->warnings += level == LEVEL_WARNING;
    write_line(report, level == LEVEL_WARNING ? "warning: " : "", takes_sentence);
    pthread_mutex_unlock(&report->lock);
}

void report_error(struct report *report, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    say(report, LEVEL_ERROR, vformat(format, args));
    va_end(args);
}

void report_warning(struct report *report, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    say(report, LEVEL_WARNING, vformat(format, args));
    va_end(args);
}

void report_note(struct report *report, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    say(report, LEVEL_NOTE, vformat(format, args));
    va_end(args);
}

void report_verbose(struct report *report, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    say(report, LEVEL_VERBOSE, vformat(format, args));
    va_end(args);
}

void report_failure(struct report *report, struct failure *failure)
{
    char sentence[FAILURE_SENTENCE_MAX];
    gpg_error_t code = failure_get(failure, sentence);
    if (code)
        report_error(report, "%s", sentence[0] != '\0' ? sentence : gpg_strerror(code));
}

/* What the kinds of notice mean: the level, and words around the name. */
struct wording {
    enum level level;
    const char *words; /* behind "NAME: "; alone where the notice has no name */
};

static const struct wording wordings[] = {
    [NOTICE_ADDED] = {LEVEL_VERBOSE, "added"},
    [NOTICE_STRIPPED_ROOT] = {LEVEL_NOTE, "a leading / or ../ is taken off names"},
    [NOTICE_SKIPPED_SOCKET] = {LEVEL_NOTE, "a socket, left out"},
    [NOTICE_SKIPPED_SELF] = {LEVEL_NOTE, "the archive itself, left out"},
    [NOTICE_SKIPPED_OURS] = {LEVEL_NOTE, "a temporary file or folder of gpgtar itself, left out"},
    [NOTICE_EXCLUDED_CACHE] = {LEVEL_NOTE, "a cache folder, its content is left out"},
    [NOTICE_UNREADABLE] = {LEVEL_ERROR, "cannot be read, left out"},
    [NOTICE_VANISHED] = {LEVEL_ERROR, "does not exist (any more), left out"},
    [NOTICE_SHRANK] = {LEVEL_ERROR, "became shorter while it was read, filled up with zeros"},
    [NOTICE_GREW] = {LEVEL_ERROR, "became longer while it was read, cut at its first size"},
    [NOTICE_READ_ERROR] = {LEVEL_ERROR, "could not be read to its end, filled up with zeros"},
    [NOTICE_REPLACED] = {LEVEL_ERROR, "became another file while it was read, left out"},
    [NOTICE_METADATA] = {LEVEL_ERROR, "not all that belongs to it could be stored"},
    [NOTICE_EMPTY_INPUT] = {LEVEL_ERROR, "there is nothing to archive, nothing was written (--allow-empty permits it)"},
    [NOTICE_EXTRACTED] = {LEVEL_VERBOSE, "extracted"},
    [NOTICE_EMPTY_ARCHIVE] = {LEVEL_NOTE, "the archive is empty"},
    [NOTICE_ROOT_STRIPPED] = {LEVEL_NOTE, "names that begin with / are extracted below the target folder"},
    [NOTICE_DROPPED_MODE] = {LEVEL_NOTE, "some rights were not restored (as root, -p restores them)"},
    [NOTICE_KEPT_OLD] = {LEVEL_NOTE, "exists, kept"},
    [NOTICE_LEFTOVER] = {LEVEL_NOTE, "left over by an extraction that was killed; nothing needs it, it may be removed"},
    [NOTICE_BAD_NAME] = {LEVEL_ERROR, "a member with a bad name, refused"},
    [NOTICE_BAD_SYMLINK] = {LEVEL_ERROR, "a symlink that leads out of the target folder, refused"},
    [NOTICE_BAD_HARDLINK] = {LEVEL_ERROR,
                             "a hard link to something that was not extracted, refused (ask for that name as well)"},
    [NOTICE_THROUGH_LINK] = {LEVEL_ERROR, "its path runs through a link, refused"},
    [NOTICE_SUSPICIOUS] = {LEVEL_ERROR, "a suspicious member, refused"},
    [NOTICE_NEEDS_ROOT] = {LEVEL_ERROR, "only root can make a device, left out"},
    [NOTICE_EXISTS] = {LEVEL_ERROR, "exists and is kept (--yes replaces it)"},
    [NOTICE_WRONG_KIND] = {LEVEL_ERROR, "something of another kind is in the way, left out"},
    [NOTICE_FLAW] = {LEVEL_ERROR, "the tar is flawed"},
    [NOTICE_RESTORE] = {LEVEL_ERROR, "not all that belongs to it could be restored"},
    [NOTICE_DIFFERS] = {LEVEL_ERROR, "differs"},
};

void report_notice(struct report *report, const struct notice *event)
{
    const struct wording wording = (size_t)event->kind < ARRAY_SIZE(wordings)
                                       ? wordings[event->kind]
                                       : (struct wording){LEVEL_ERROR, "an unknown event"};
    if (is_mute(report, wording.level))
        return;
    char *name = event->name ? names_escape(event->name) : NULL;
    char *sentence = NULL;
    /* These codes say what the words say. */
    const gpg_err_code_t code = gpg_err_code(event->code);
    const bool explains = code && code != GPG_ERR_EEXIST && code != GPG_ERR_ENOENT && code != GPG_ERR_NOT_FOUND;
    /* A name that was asked for is no flaw of the tar. */
    const bool missing = event->kind == NOTICE_FLAW && code == GPG_ERR_NOT_FOUND;
    const char *detail = missing ? NULL : event->detail;
    if (asprintf(&sentence, "%s%s%s%s%s%s%s", name ? name : "", name ? ": " : "",
                 missing ? "not in the archive" : wording.words, detail ? ": " : "", detail ? detail : "",
                 explains ? ": " : "", explains ? gpg_strerror(event->code) : "") < 0)
        sentence = NULL;
    say(report, wording.level, sentence);
    free(name);
}

static void notice_hook(void *context, const struct notice *event)
{
    report_notice(context, event);
}

struct notices report_notices(struct report *report)
{
    return (struct notices){.report = notice_hook, .context = report};
}

void report_transient(struct report *report, const char *line)
{
    if (!report || !report_on_terminal(report))
        return;
    char *safe = report_escape(line, strlen(line)), *text = NULL;
    pthread_mutex_lock(&report->lock);
    bool shows = line[0] != '\0';
    if (safe && (shows || report->transient)) {
        int n = asprintf(&text, "\r%s%s\033[K", shows ? "gpgtar: " : "", safe);
        gpg_error_t ignored = n > 0 ? fd_write_full(report->fd, text, (size_t)n) : 0;
        (void)ignored;
        if (n > 0)
            free(text);
        report->transient = shows;
    }
    pthread_mutex_unlock(&report->lock);
    free(safe);
}

bool report_on_terminal(struct report *report)
{
    return report && report->terminal && report->log < 0;
}

unsigned long report_errors(struct report *report)
{
    if (!report)
        return 0;
    pthread_mutex_lock(&report->lock);
    unsigned long n = report->errors;
    pthread_mutex_unlock(&report->lock);
    return n;
}

unsigned long report_warnings(struct report *report)
{
    if (!report)
        return 0;
    pthread_mutex_lock(&report->lock);
    unsigned long n = report->warnings;
    pthread_mutex_unlock(&report->lock);
    return n;
}

/* Whether a person types a line that begins with y. A signal, or the end of input, ends the wait and means no. */
static bool read_yes(int terminal)
{
    char first = '\0', c = '\0';
    while (read(terminal, &c, 1) == 1 && c != '\n')
        if (first == '\0')
            first = c;
    return c == '\n' && (first == 'y' || first == 'Y');
}

bool report_ask(struct report *report, const char *format, ...)
{
    va_list args;
    char *prompt = NULL;
    bool yes = false;
    int terminal = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
    if (terminal < 0)
        return false;
    report_transient(report, "");
    va_start(args, format);
    char *question = vformat(format, args);
    va_end(args);
    char *safe = question ? report_escape(question, strlen(question)) : NULL;
    int n = safe ? asprintf(&prompt, "gpgtar: %s (y/N) ", safe) : -1;
    if (n > 0) {
        yes = !fd_write_full(terminal, prompt, (size_t)n) && read_yes(terminal);
        free(prompt);
    }
    free(safe);
    free(question);
    close(terminal);
    return yes;
}

/* Text for standard output. */

static const char usage[] =
    "Usage: gpgtar COMMAND [OPTION]… [NAME]…\n"
    "\n"
    "Turns files and folders into one signed and encrypted OpenPGP archive, and gets them back.\n"
    "\n"
    "  gpgtar -e -r bob@example.org -o x.tar.gpg FOLDER   encrypt FOLDER to Bob's key\n"
    "  gpgtar -es -r bob@example.org -o x.tar.gpg FOLDER  sign it as well\n"
    "  gpgtar -c -o x.tar.gpg FOLDER                      encrypt it with a passphrase\n"
    "  gpgtar -t x.tar.gpg                                list what is in it\n"
    "  gpgtar -d x.tar.gpg [MEMBER]…                      extract it into a new folder\n";

static const char *const group_titles[] = {
    [GROUP_COMMANDS] = "Commands (-e, -s and -c go together)",
    [GROUP_FILES] = "Files",
    [GROUP_KEYS] = "Keys",
    [GROUP_PASSPHRASES] = "Passphrases and session keys",
    [GROUP_ALGORITHMS] = "Algorithms and format",
    [GROUP_VERIFICATION] = "What to accept",
    [GROUP_ARCHIVING] = "What to archive",
    [GROUP_EXTRACTING] = "How to extract",
    [GROUP_RUNNING] = "Running",
};

static const char ending[] =
    "\n"
    "Long options may be shortened as long as they stay clear. Options may follow names; -- ends them.\n"
    "Memory: below 64 MiB, whatever the size or the number of files (more with -j above 16 or --zstd above 2).\n"
    "Exit status: 0 all good, 1 an error was reported, 2 wrong usage, 128+N ended by signal N.\n";

static void print_option(FILE *to, const struct option_help *help)
{
    char letter[6] = "    ", left[64];
    const char *value = help->value ? help->value : "";
    const bool optional = *value == '[';
    if (help->letter)
        snprintf(letter, sizeof letter, "-%c, ", help->letter);
    if (optional)
        snprintf(left, sizeof left, "--%s[=%s", help->name, value + 1);
    else
        snprintf(left, sizeof left, "--%s%s%s", help->name, *value ? " " : "", value);
    fprintf(to, "  %s%-29s %s\n", letter, left, help->help);
}

/* Writes what PRINT prints to FD. */
static gpg_error_t print_to(int fd, void (*print)(FILE *to))
{
    char *text = NULL;
    size_t n = 0;
    FILE *to = open_memstream(&text, &n);
    if (!to)
        return gpg_error_from_syserror();
    print(to);
    gpg_error_t err = fclose(to) ? gpg_error_from_syserror() : fd_write_full(fd, text, n);
    free(text);
    return err;
}

static void print_help(FILE *to)
{
    struct option_help help;
    fputs(usage, to);
    for (size_t group = 0; group < ARRAY_SIZE(group_titles); group++) {
        fprintf(to, "\n%s:\n", group_titles[group]);
        for (size_t i = 0; options_help(i, &help); i++)
            if (help.group == (enum option_group)group && help.help)
                print_option(to, &help);
    }
    fputs(ending, to);
}

static void print_version(FILE *to)
{
    fprintf(to,
            "gpgtar " GPGTAR_VERSION "\n"
            "libgcrypt %s\n"
            "libgpg-error %s\n"
            "%s\n"
#ifdef HAVE_ISAL
            "ISA-L " HAVE_ISAL "\n"
#endif
            "License GPL-3.0-or-later: free software that you may change and pass on. There is no warranty.\n",
            gcry_check_version(NULL), gpg_error_check_version(NULL),
            libarchive_load(NULL) ? "libarchive cannot be loaded" : archive_version_details());
}

static void print_option_names(FILE *to)
{
    struct option_help help, earlier;
    for (size_t i = 0; options_help(i, &help); i++) {
        bool again = false;
        for (size_t j = 0; !again && j < i && options_help(j, &earlier); j++)
            again = earlier.on_line && strcmp(earlier.name, help.name) == 0;
        if (help.on_line && !again)
            fprintf(to, "--%s\n", help.name);
    }
}

gpg_error_t report_help(int fd)
{
    return print_to(fd, print_help);
}

gpg_error_t report_version(int fd)
{
    return print_to(fd, print_version);
}

gpg_error_t report_option_names(int fd)
{
    return print_to(fd, print_option_names);
}
