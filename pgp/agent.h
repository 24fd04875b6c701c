/* SPDX-License-Identifier: GPL-3.0-or-later */
/* agent: secret keys and passphrases at a running gpg-agent (libassuan); it is started where it is not running.
 *
 * gpg-agent is the one program that this folder starts. One thread at a time per agent. The process must ignore
 * SIGPIPE: an agent may go away at any time. */
#ifndef PGP_AGENT_H
#define PGP_AGENT_H

#include "keystore.h"

/* --pinentry-mode */
enum agent_pinentry {
    AGENT_PINENTRY_ASK,
    AGENT_PINENTRY_CANCEL,
    AGENT_PINENTRY_ERROR,
    AGENT_PINENTRY_LOOPBACK, /* the agent asks us, and we ask SOURCE */
};

/* All strings and pointers are borrowed and must outlive the agent; NULL: not known, the agent's default stands. */
struct agent_params {
    const char *home;    /* GnuPG's home folder, an absolute name as gpg would see it (its text is hashed) */
    bool default_home;   /* HOME is the one that gpg takes without --homedir and GNUPGHOME */
    const char *program; /* NULL: "gpg-agent", looked for in PATH */
    bool must_run;       /* never start one */
    const char *display, *xauthority, *ttyname, *ttytype, *lc_ctype, *lc_messages, *pinentry_user_data;
    int wake; /* a descriptor that becomes readable when a wait for the agent shall end (run_wake_fd); 0: none */
    enum agent_pinentry pinentry;
    const struct passphrase_source *source; /* for loopback */
    /* The user id that a question about KEY shall name, borrowed until the next call; may be NULL or return NULL. */
    const char *(*uid)(void *context, const struct key *key);
    void *context;
};

struct agent;

/* Nothing is connected or started before the agent is first needed: errors about that come then. They are
 * GPG_ERR_NO_AGENT (not running, cannot be started) and GPG_ERR_ASSUAN_SERVER_FAULT (it went away), each with a
 * sentence that names HOME. */
MUST_CHECK gpg_error_t agent_open(struct failure *failure, const struct agent_params *params, struct agent **ret);
/* Secret keys and providers made from it must be gone before. */
void agent_free(struct agent *agent);

/* Connects to the agent now, and starts it where it is not running: for who is about to lose the right to start
 * programs. The errors above; the next use tries again, but when that fails as well this first failure is told. FAILURE
 * may be NULL. */
MUST_CHECK gpg_error_t agent_connect(struct failure *failure, struct agent *agent);

/* A provider for keystore_set_provider. Its secret keys fail with GPG_ERR_NO_SECKEY, GPG_ERR_CANCELED,
 * GPG_ERR_BAD_PASSPHRASE, GPG_ERR_NO_AGENT or what the agent (or a card behind it) says. An agent that cannot be
 * reached has no keys for `have` and `get`: GPG_ERR_NO_AGENT from `get`. NULL: out of core. */
struct secret_provider *agent_provider(struct agent *agent);

/* Lets the agent ask for the passphrase of SECRET_KEY (which its provider gave) now and not when all data has been
 * hashed, where the key has one that is not cached. Keys on cards are left alone: each use may count there. Errors as
 * of a signature. */
MUST_CHECK gpg_error_t agent_unlock(struct failure *failure, struct agent *agent, struct secret_key *secret_key);

/* Asks the person for a passphrase (GET_PASSPHRASE). CACHE_ID: NULL, or a name under which the agent keeps it. ERROR:
 * NULL, or what was wrong with the last one. With REPEAT it is a new one, to be typed twice and checked by the agent's
 * rules. GPG_ERR_CANCELED; GPG_ERR_NO_PIN_ENTRY and the like come through with a sentence. In loopback mode SOURCE is
 * asked with a NULL key. */
MUST_CHECK gpg_error_t agent_get_passphrase(struct failure *failure, struct agent *agent, const char *cache_id,
                                            const char *error, const char *prompt, const char *description, bool repeat,
                                            struct secret **ret);
/* Makes the agent forget the passphrase kept under CACHE_ID; failures do not matter. */
void agent_clear_passphrase(struct agent *agent, const char *cache_id);

/* The name of the agent's socket for a home folder, to be freed with free(): where gpgconf says it is
 * (/run/user/UID/gnupg/S.gpg-agent, …/d.HASH/S.gpg-agent, else in the home). */
MUST_CHECK gpg_error_t agent_socket_name(const char *home, bool default_home, char **ret);

#endif
