/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "prompts.h"

#include "passphrase.h"

#include <stdio.h>
#include <stdlib.h>

struct prompts {
    const struct program *program;
    struct agent *agent; /* borrowed */
    struct passphrase_source for_keys;
    struct passphrase_source for_archives;
    struct secret *given; /* read from fd, file or command: asked once */
};

/* A copy of the passphrase that fd, file or command gave; those can be read only once. */
static gpg_error_t prompts_given(struct prompts *prompts, bool is_new, struct secret **ret)
{
    if (!prompts->given) {
        const struct passphrase_request request = {
            .source = &prompts->program->options->passphrase, .is_new = is_new, .batch = true, .what = "Passphrase"};
        gpg_error_t err = passphrase_get(&request, program_failure(prompts->program), &prompts->given);
        if (err)
            return err;
    }
    *ret = secret_from(prompts->given->bytes, prompts->given->n);
    return *ret ? 0 : gpg_error_from_syserror();
}

static gpg_error_t prompts_ask_terminal(struct prompts *prompts, const char *what, bool is_new, struct secret **ret)
{
    const struct options *options = prompts->program->options;
    const struct passphrase_origin terminal = {.kind = PASSPHRASE_DEFAULT};
    const struct passphrase_request request = {.source = &terminal,
                                               .is_new = is_new,
                                               .repeat = options->passphrase_repeat,
                                               .batch = options->batch,
                                               .what = what};
    return passphrase_get(&request, program_failure(prompts->program), ret);
}

static gpg_error_t prompts_ask_for_key(void *context, const struct key *key, unsigned attempt, bool is_new,
                                       struct secret **ret)
{
    struct prompts *prompts = context;
    if (prompts->program->options->passphrase.kind != PASSPHRASE_DEFAULT)
        return attempt ? gpg_error(GPG_ERR_NO_PASSPHRASE) : prompts_given(prompts, is_new, ret);
    char what[128] = "Passphrase";
    char fpr[2 * KEY_FPR_MAX + 1];
    if (key) {
        key_fpr_hex(key, fpr);
        snprintf(what, sizeof what, "%sPassphrase for key %s", attempt ? "Wrong. " : "", fpr);
    }
    return prompts_ask_terminal(prompts, what, is_new, ret);
}

/* Whether questions go to gpg-agent's pinentry and not to our own terminal. */
static bool prompts_agent_asks(const struct prompts *prompts)
{
    const struct options *options = prompts->program->options;
    return options->passphrase.kind == PASSPHRASE_DEFAULT && options->pinentry_mode != PINENTRY_LOOPBACK &&
           options->secret_key_files.n == 0;
}

static gpg_error_t prompts_ask_agent(struct prompts *prompts, unsigned attempt, bool is_new, struct secret **ret)
{
    return agent_get_passphrase(program_failure(prompts->program), prompts->agent, NULL,
                                attempt ? "Bad passphrase" : NULL, "Passphrase:",
                                is_new ? "Please enter the passphrase that will protect the archive"
                                       : "Please enter the passphrase of the archive",
                                is_new, ret);
}

static gpg_error_t prompts_ask_for_archive(void *context, const struct key *key, unsigned attempt, bool is_new,
                                           struct secret **ret)
{
    struct prompts *prompts = context;
    (void)key;
    if (prompts->program->options->passphrase.kind != PASSPHRASE_DEFAULT)
        return attempt ? gpg_error(GPG_ERR_NO_PASSPHRASE) : prompts_given(prompts, is_new, ret);
    if (prompts_agent_asks(prompts))
        return prompts_ask_agent(prompts, attempt, is_new, ret);
    return prompts_ask_terminal(prompts, attempt ? "Wrong. Passphrase of the archive" : "Passphrase of the archive",
                                is_new, ret);
}

gpg_error_t prompts_new_passphrase(struct prompts *prompts, struct secret **ret)
{
    if (prompts->program->options->passphrase.kind != PASSPHRASE_DEFAULT)
        return prompts_given(prompts, true, ret);
    if (prompts_agent_asks(prompts))
        return prompts_ask_agent(prompts, 0, true, ret);
    return prompts_ask_terminal(prompts, "New passphrase", true, ret);
}

struct prompts *prompts_new(const struct program *program)
{
    struct prompts *prompts = calloc(1, sizeof *prompts);
    if (!prompts)
        return NULL;
    prompts->program = program;
    prompts->for_keys = (struct passphrase_source){.ask = prompts_ask_for_key, .context = prompts};
    prompts->for_archives = (struct passphrase_source){.ask = prompts_ask_for_archive, .context = prompts};
    return prompts;
}

void prompts_free(struct prompts *prompts)
{
    if (!prompts)
        return;
    secret_free(prompts->given);
    free(prompts);
}

void prompts_set_agent(struct prompts *prompts, struct agent *agent)
{
    prompts->agent = agent;
}

gpg_error_t prompts_read_given(struct prompts *prompts)
{
    struct secret *passphrase = NULL;
    if (prompts->program->options->passphrase.kind == PASSPHRASE_DEFAULT)
        return 0;
    gpg_error_t err = prompts_given(prompts, false, &passphrase);
    secret_free(passphrase);
    return err;
}

const struct passphrase_source *prompts_for_keys(const struct prompts *prompts)
{
    return &prompts->for_keys;
}

const struct passphrase_source *prompts_for_archives(const struct prompts *prompts)
{
    return &prompts->for_archives;
}
