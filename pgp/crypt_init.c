/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "crypt_init.h"

#include <gcrypt.h>

gpg_error_t crypt_init(struct failure *failure)
{
    if (gcry_control(GCRYCTL_INITIALIZATION_FINISHED_P))
        return 0;
    if (!gcry_check_version("1.10.0"))
        return fail(failure, gpg_error(GPG_ERR_NOT_SUPPORTED), "libgcrypt %s is too old, 1.10 is needed",
                    gcry_check_version(NULL));
    /* The warning that memory cannot be locked belongs on a terminal we may not own. */
    gcry_control(GCRYCTL_SUSPEND_SECMEM_WARN);
    gpg_error_t err = gcry_control(GCRYCTL_INIT_SECMEM, CRYPT_SECURE_POOL, 0);
    if (err && gpg_err_code(err) != GPG_ERR_GENERAL) /* GENERAL: not locked, usable all the same */
        return fail(failure, err, "secure memory cannot be set up: %s", gpg_strerror(err));
    gcry_control(GCRYCTL_INITIALIZATION_FINISHED, 0);
    return 0;
}
