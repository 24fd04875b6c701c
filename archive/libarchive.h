/* SPDX-License-Identifier: GPL-3.0-or-later */
/* libarchive: loads it when it is needed. Only reading archives and --zstd need it, and loading it takes 2.5 ms with
 * the libraries that it brings (libxml2, ICU, the C++ runtime): a third of the time that a small folder takes to
 * encrypt. */
#ifndef ARCHIVE_LIBARCHIVE_H
#define ARCHIVE_LIBARCHIVE_H

#include "stream/failure.h"

/* To be called before the first of libarchive's functions, and before the process is confined to the files it works on;
 * again it does nothing. GPG_ERR_NOT_FOUND, with a sentence: it is not there, or lacks a function. Does nothing where
 * the program was linked with libarchive (GPGTAR_LAZY_LIBARCHIVE=OFF). */
MUST_CHECK gpg_error_t libarchive_load(struct failure *failure);

#endif
