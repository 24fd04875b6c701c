/* SPDX-License-Identifier: GPL-3.0-or-later */
/* gpgtar: parse the options, run the command, say how it went. */
#include "create.h"
#include "memory.h"
#include "open.h"
#include "signals.h"

#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Exit codes of CLI.md 5. */
enum { EXIT_GOOD = 0, EXIT_REPORTED = 1, EXIT_USAGE = 2 };

static gpg_error_t main_run(const struct program *program)
{
    switch (program->options->command) {
    case COMMAND_HELP:
        return report_help(STDOUT_FILENO);
    case COMMAND_VERSION:
        return report_version(STDOUT_FILENO);
    case COMMAND_DUMP_OPTIONS:
        return report_option_names(STDOUT_FILENO);
    case COMMAND_CREATE:
        return create_command(program);
    default:
        return open_command(program);
    }
}

/* Runs the command with all that surrounds it; the exit code. */
static int main_command(const struct options *options, struct report *report)
{
    int code = EXIT_REPORTED;
    struct status *status = NULL;
    struct run *run = run_new();
    if (!run) {
        report_error(report, "out of memory or descriptors");
        return code;
    }
    if (options->jobs)
        run_set_processors(run, options->jobs);
    gpg_error_t err = status_new(options->status_fd, run_failure(run), &status);
    if (err) {
        code = EXIT_USAGE;
        goto out;
    }
    if (options->log_file && (err = report_log_file(report, run_failure(run), options->log_file)))
        goto out;
    if ((err = signals_install()))
        goto out;
    signals_watch(run);
    const struct program program = {.options = options, .report = report, .status = status, .run = run};
    err = main_run(&program);
    signals_watch(NULL);

out:
    /* In a chain of threads the top may see only that the run was cancelled; the run knows why. */
    if (err && run_cancelled(run))
        err = run_cancelled(run);
    /* Whoever reads a listing may have seen enough: not worth a word. */
    const bool unread = gpg_err_code(err) == GPG_ERR_EPIPE && options->command == COMMAND_LIST;
    /* A name or number in an option that is none. */
    if (gpg_err_code(err) == GPG_ERR_INV_VALUE)
        code = EXIT_USAGE;
    if (err && signals_caught()) {
        report_error(report, "stopped by a signal (%s): %s", strsignal(signals_caught()),
                     options->command == COMMAND_CREATE ? "no archive was made" : "nothing was released");
    } else if (err && !unread) {
        fail(run_failure(run), err, "%s", gpg_strerror(err));
        report_failure(report, run_failure(run));
    }
    if (!err && report_errors(report))
        err = gpg_error(GPG_ERR_GENERAL);
    if (status_finish(status, err) && !err) {
        report_error(report, "the status lines could not be written");
        err = gpg_error(GPG_ERR_EIO);
    }
    status_free(status);
    run_free(run);
    return err ? code : EXIT_GOOD;
}

int main(int argc, char **argv)
{
    if (report_claim_standard_fds())
        return EXIT_USAGE;
    struct report *report = report_new(STDERR_FILENO);
    struct options_environment environment;
    struct options *options = NULL;
    struct failure failure;
    int status_fd = -1, code = EXIT_USAGE;
    if (!report) {
        memory_say(STDERR_FILENO);
        return EXIT_REPORTED;
    }
    memory_install();
    failure_init(&failure);
    options_environment_get(&environment);
    gpg_error_t err = options_load(argc, argv, &environment, &failure, &status_fd, &options);
    if (err) {
        struct status *status = NULL;
        code = gpg_err_code(err) == GPG_ERR_ENOMEM ? EXIT_REPORTED : EXIT_USAGE;
        fail(&failure, err, "%s", gpg_strerror(err));
        report_failure(report, &failure);
        const gpg_error_t opened = status_new(status_fd, NULL, &status);
        if (!opened && gpg_err_code(err) == GPG_ERR_NO_USER_ID)
            status_no_recp(status, 0);
        if (!opened && status_finish(status, err))
            report_error(report, "the status lines could not be written");
        status_free(status);
    } else {
        report_levels(report, options->quiet, options->verbose);
        code = main_command(options, report);
    }
    options_free(options);
    failure_destroy(&failure);
    report_free(report);
    /* A signal that came when all was done changes nothing. */
    if (code != EXIT_GOOD)
        signals_reraise();
    return code;
}
