/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "wishes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stream/fd.h"

#define SESSION_KEY_TEXT_MAX 256

static gpg_error_t wishes_unknown(const struct program *program, const char *option, const char *name)
{
    return fail(program_failure(program), gpg_error(GPG_ERR_INV_VALUE),
                "--%s: '%s' is not an algorithm that is supported", option, name);
}

static gpg_error_t wishes_lists(const struct program *program, struct preference_wishes *wishes)
{
    const struct options *options = program->options;
    struct failure *failure = program_failure(program);
    gpg_error_t err = 0;
    if (options->personal_cipher_preferences)
        err = preference_parse(failure, options->personal_cipher_preferences, 'S', &wishes->ciphers);
    if (!err && options->personal_digest_preferences)
        err = preference_parse(failure, options->personal_digest_preferences, 'H', &wishes->digests);
    if (!err && options->personal_compress_preferences)
        err = preference_parse(failure, options->personal_compress_preferences, 'Z', &wishes->compressions);
    return err;
}

/* The compression's name; a bare number is one too, as in the gpg of old. */
static int wishes_compress(const char *name)
{
    char numbered[8];
    if (!*name || strlen(name) > 2 || name[strspn(name, "0123456789")])
        return algo_compress_by_name(name);
    snprintf(numbered, sizeof numbered, "Z%s", name);
    return algo_compress_by_name(numbered);
}

gpg_error_t wishes_read(const struct program *program, struct preference_wishes *ret)
{
    static const enum dialect dialects[] = {
        [PROFILE_DEFAULT] = DIALECT_AUTO,
        [PROFILE_GNUPG] = DIALECT_LIBREPGP,
        [PROFILE_RFC4880] = DIALECT_RFC4880,
        [PROFILE_RFC9580] = DIALECT_RFC9580,
    };
    const struct options *options = program->options;
    struct preference_wishes wishes = {
        .dialect = dialects[options->profile],
        .force_ocb = options->force_ocb,
        .compress = -1,
        /* The option counts octets as a power of two, the packet from 2^6 on. */
        .chunk_octet = options->chunk_size < 0 ? -1 : options->chunk_size - 6,
    };
    if (options->cipher_algo && !(wishes.cipher = (uint8_t)algo_cipher_by_name(options->cipher_algo)))
        return wishes_unknown(program, "cipher-algo", options->cipher_algo);
    if (options->digest_algo && !(wishes.digest = (uint8_t)algo_digest_by_name(options->digest_algo)))
        return wishes_unknown(program, "digest-algo", options->digest_algo);
    if (wishes.digest && algo_digest(wishes.digest)->weak)
        return fail(program_failure(program), gpg_error(GPG_ERR_DIGEST_ALGO),
                    "--digest-algo %s: signatures with this digest are weak and would be refused on reading",
                    options->digest_algo);
    if (options->s2k_cipher_algo && !(wishes.s2k_cipher = (uint8_t)algo_cipher_by_name(options->s2k_cipher_algo)))
        return wishes_unknown(program, "s2k-cipher-algo", options->s2k_cipher_algo);
    if (options->compress_algo && (wishes.compress = wishes_compress(options->compress_algo)) < 0)
        return wishes_unknown(program, "compress-algo", options->compress_algo);
    if (options->no_compress)
        wishes.compress = COMPRESS_NONE;
    gpg_error_t err = wishes_lists(program, &wishes);
    if (!err)
        *ret = wishes;
    return err;
}

gpg_error_t wishes_s2k(const struct program *program, struct s2k *ret)
{
    const struct options *options = program->options;
    const bool argon2 =
        options->s2k_mode == S2K_ARGON2 || (options->s2k_mode < 0 && options->profile == PROFILE_RFC9580);
    if (argon2) {
        s2k_new_argon2(ret);
        return 0;
    }
    /* gpg derives with SHA-1 unless told otherwise; every reader has SHA-256 too. */
    enum digest_algo digest = DIGEST_SHA256;
    if (options->s2k_digest_algo && !(digest = algo_digest_by_name(options->s2k_digest_algo)))
        return wishes_unknown(program, "s2k-digest-algo", options->s2k_digest_algo);
    s2k_new_iterated(digest, options->s2k_count, ret);
    if (options->s2k_mode == S2K_SIMPLE || options->s2k_mode == S2K_SALTED) {
        report_warning(program->report, "S2K mode %d makes passphrases easy to guess", options->s2k_mode);
        ret->mode = (uint8_t)options->s2k_mode;
    }
    return 0;
}

gpg_error_t wishes_notations(const struct program *program, struct notation **ret, size_t *ret_n)
{
    const struct strings *given = &program->options->notations;
    *ret = NULL;
    *ret_n = 0;
    if (given->n == 0)
        return 0;
    /* Names and values are cut out of the option's text; one block holds the structs and the copies. */
    size_t size = given->n * sizeof(struct notation);
    for (size_t i = 0; i < given->n; i++)
        size += strlen(given->items[i]) + 1;
    struct notation *notations = malloc(size);
    if (!notations)
        return gpg_error_from_syserror();
    char *text = (char *)(notations + given->n);
    for (size_t i = 0; i < given->n; i++) {
        const char *item = given->items[i];
        notations[i].critical = *item == '!';
        strcpy(text, item + notations[i].critical);
        char *equals = strchr(text, '=');
        if (!equals || !strchr(text, '@') || strchr(text, '@') > equals) {
            free(notations);
            return fail(program_failure(program), gpg_error(GPG_ERR_INV_VALUE),
                        "the notation '%s' is not of the form name@domain=value", item);
        }
        *equals = '\0';
        notations[i].name = text;
        notations[i].value = equals + 1;
        text = equals + 1 + strlen(equals + 1) + 1;
    }
    *ret = notations;
    *ret_n = given->n;
    return 0;
}

static int wishes_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

static gpg_error_t wishes_parse_session_key(const char *text, struct session_key *ret)
{
    char *end = NULL;
    const unsigned long cipher = strtoul(text, &end, 10);
    if (end == text || *end != ':' || cipher > 255)
        return gpg_error(GPG_ERR_INV_VALUE);
    const char *hex = end + 1;
    const size_t n = strspn(hex, "0123456789abcdefABCDEF");
    if (n < 2 || n % 2 || n > 128 || hex[n])
        return gpg_error(GPG_ERR_INV_VALUE);
    struct secret *key = secret_new(n / 2);
    if (!key)
        return gpg_error_from_syserror();
    for (size_t i = 0; i < n / 2; i++)
        key->bytes[i] = (uint8_t)(wishes_digit(hex[2 * i]) * 16 + wishes_digit(hex[2 * i + 1]));
    *ret = (struct session_key){.cipher = (uint8_t)cipher, .key = key};
    return 0;
}

gpg_error_t wishes_session_key(const struct program *program, struct session_key *ret, bool *ret_given)
{
    const struct options *options = program->options;
    char line[SESSION_KEY_TEXT_MAX] = "";
    const char *text = options->override_session_key;
    *ret_given = text || options->override_session_key_fd >= 0;
    if (!*ret_given)
        return 0;
    gpg_error_t err = 0;
    if (!text) {
        size_t got = 0;
        err = fd_read_full(options->override_session_key_fd, line, sizeof line - 1, &got);
        line[got] = '\0';
        line[strcspn(line, "\r\n")] = '\0';
        text = line;
    }
    if (!err)
        err = wishes_parse_session_key(text, ret);
    bytes_wipe(line, sizeof line);
    if (err)
        return fail(program_failure(program), err, "the session key to use is not of the form ALGORITHM:HEX");
    return 0;
}
