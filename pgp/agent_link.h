/* SPDX-License-Identifier: GPL-3.0-or-later */
/* agent_link: a connection to gpg-agent: where its socket is, starting it, one command after the other. */
#ifndef PGP_AGENT_LINK_H
#define PGP_AGENT_LINK_H

#include "agent.h"

/* Octets of a command line at most, without its end (Assuan's limit). */
#define AGENT_LINE_MAX 1000

struct agent_link;

/* Connects, starts the agent where that is needed and allowed, and sends the options of PARAMS. GPG_ERR_NO_AGENT with a
 * sentence. Two programs that start one at the same time: the second agent sees the first one's socket and ends. */
MUST_CHECK gpg_error_t agent_link_open(struct failure *failure, const struct agent_params *params,
                                       struct agent_link **ret);
void agent_link_free(struct agent_link *link);

/* What the agent asks back: its keyword ("CIPHERTEXT"), and the answer. */
struct agent_answer {
    const char *keyword;
    /* Bytes borrowed until the transaction ends; *RET_N = 0 answers nothing. An error cancels the command and is its
     * result. */
    gpg_error_t (*give)(void *context, const void **ret_bytes, size_t *ret_n);
    void *context;
};

struct agent_command {
    const struct agent_answer *answers; /* a keyword of no answer is answered with nothing */
    size_t answer_n;
    struct secret **ret_data; /* what the agent sends, at most SECRET_MAX octets; NULL: refused */
    /* Each status line ("PADDING 0"); may be NULL. */
    gpg_error_t (*status)(void *context, const char *line);
    void *status_context;
};

/* Sends LINE and waits for the end of it. Codes are the agent's; GPG_ERR_ASSUAN_SERVER_FAULT where the agent went away,
 * GPG_ERR_CANCELED where the wake descriptor ended the wait: then agent_link_broken(), and the link is of no more use.
 * No sentence. */
MUST_CHECK gpg_error_t agent_link_command(struct agent_link *link, const char *line,
                                          const struct agent_command *command);
/* Whether the conversation ended in mid-sentence. */
bool agent_link_broken(const struct agent_link *link);

#endif
