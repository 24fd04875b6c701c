/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "failure.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void failure_init(struct failure *failure)
{
    pthread_mutex_init(&failure->lock, NULL);
    failure->code = 0;
    failure->sentence[0] = 0;
}

void failure_destroy(struct failure *failure)
{
    pthread_mutex_destroy(&failure->lock);
}

/* Notes CODE, the sentence and, where DETAIL is not NULL, ": DETAIL". */
static void PRINTF_LIKE(4, 0)
    note(struct failure *failure, gpg_error_t code, const char *detail, const char *format, va_list values)
{
    pthread_mutex_lock(&failure->lock);
    if (!failure->code) {
        failure->code = code;
        int length = vsnprintf(failure->sentence, sizeof failure->sentence, format, values);
        if (length < 0) /* a broken format or an encoding error: the code still stands */
            failure->sentence[0] = 0;
        size_t used = strlen(failure->sentence);
        if (detail)
            snprintf(failure->sentence + used, sizeof failure->sentence - used, ": %s", detail);
    }
    pthread_mutex_unlock(&failure->lock);
}

gpg_error_t fail(struct failure *failure, gpg_error_t code, const char *format, ...)
{
    if (failure && code) {
        va_list values;
        va_start(values, format);
        note(failure, code, NULL, format, values);
        va_end(values);
    }
    return code;
}

gpg_error_t fail_errno(struct failure *failure, int number, const char *format, ...)
{
    gpg_error_t code = gpg_error_from_errno(number);
    if (failure && code) {
        /* Not strerror: its text depends on the locale. */
        const char *detail = strerrordesc_np(number);
        va_list values;
        va_start(values, format);
        note(failure, code, detail ? detail : "unknown system error", format, values);
        va_end(values);
    }
    return code;
}

gpg_error_t failure_get(struct failure *failure, char ret_sentence[FAILURE_SENTENCE_MAX])
{
    pthread_mutex_lock(&failure->lock);
    gpg_error_t code = failure->code;
    if (ret_sentence)
        memcpy(ret_sentence, failure->sentence, FAILURE_SENTENCE_MAX);
    pthread_mutex_unlock(&failure->lock);
    return code;
}

void failure_prefix(struct failure *failure, const char *prefix)
{
    char longer[FAILURE_SENTENCE_MAX];
    pthread_mutex_lock(&failure->lock);
    if (failure->code && *failure->sentence && !strstr(failure->sentence, prefix)) {
        const int n = snprintf(longer, sizeof longer, "%s: %s", prefix, failure->sentence);
        if (n > 0)
            memcpy(failure->sentence, longer, sizeof longer);
    }
    pthread_mutex_unlock(&failure->lock);
}
