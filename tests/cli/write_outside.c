/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A bug in a parser, played: loaded before the libraries, it tries to make a file outside of the target from within
 * decryption (a thread) and from within the reading of the tar (the main thread). Descriptor 9 is told "NAME RESULT".
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <gcrypt.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void try_outside(const char *name)
{
    const char *folder = getenv("OUTSIDE");
    char path[4096], line[256];
    if (!folder)
        return;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    const int fd = open(path, O_WRONLY | O_CREAT, 0600);
    const int n = snprintf(line, sizeof line, "%s %s\n", name, fd < 0 ? strerror(errno) : "made");
    if (write(9, line, (size_t)n) != n)
        abort();
    if (fd >= 0)
        close(fd);
}

gcry_error_t gcry_cipher_decrypt(gcry_cipher_hd_t hd, void *out, size_t outsize, const void *in, size_t inlen)
{
    gcry_error_t (*real)(gcry_cipher_hd_t, void *, size_t, const void *, size_t);
    *(void **)&real = dlsym(RTLD_NEXT, "gcry_cipher_decrypt");
    try_outside("decrypt");
    return real(hd, out, outsize, in, inlen);
}

gcry_error_t gcry_cipher_encrypt(gcry_cipher_hd_t hd, void *out, size_t outsize, const void *in, size_t inlen)
{
    gcry_error_t (*real)(gcry_cipher_hd_t, void *, size_t, const void *, size_t);
    *(void **)&real = dlsym(RTLD_NEXT, "gcry_cipher_encrypt");
    try_outside("encrypt");
    return real(hd, out, outsize, in, inlen);
}

/* tar_read calls it before each header that it has libarchive read; libarchive's own functions are not looked for here,
 * because the program loads them itself. */
locale_t uselocale(locale_t locale)
{
    locale_t (*real)(locale_t);
    *(void **)&real = dlsym(RTLD_NEXT, "uselocale");
    try_outside("header");
    return real(locale);
}
