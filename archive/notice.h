/* SPDX-License-Identifier: GPL-3.0-or-later */
/* notice: what happened to one member, said to whoever prints it. The library itself is mute. */
#ifndef ARCHIVE_NOTICE_H
#define ARCHIVE_NOTICE_H

#include "stream/bytes.h"

#include <gpg-error.h>

enum notice_kind {
    /* Creating: nothing is lost. */
    NOTICE_ADDED,          /* the member NAME is in the archive (for -v) */
    NOTICE_STRIPPED_ROOT,  /* a leading / or ../ was taken off names; once a run */
    NOTICE_SKIPPED_SOCKET, /* sockets cannot be archived */
    NOTICE_SKIPPED_SELF,   /* the output file itself */
    NOTICE_SKIPPED_OURS,   /* a temporary file or staging folder, of a run at work or one that was killed */
    NOTICE_EXCLUDED_CACHE, /* folder marked with CACHEDIR.TAG */
    /* Creating: the archive is not what the disk has; exit 1. */
    NOTICE_UNREADABLE,  /* NAME cannot be opened or listed (code says why) */
    NOTICE_VANISHED,    /* NAME was there when its folder was listed, or was named, and is not any more */
    NOTICE_SHRANK,      /* padded with zeros to its size */
    NOTICE_GREW,        /* cut at its size */
    NOTICE_READ_ERROR,  /* padded with zeros from the error on */
    NOTICE_REPLACED,    /* became another file between listing and reading; left out */
    NOTICE_METADATA,    /* ACL, xattr or such of NAME could not be read or stored; detail says which */
    NOTICE_EMPTY_INPUT, /* nothing was named or nothing could be archived */
    /* Extracting, listing, comparing: sound. */
    NOTICE_EXTRACTED,     /* (for -v) */
    NOTICE_EMPTY_ARCHIVE, /* nothing but zeros */
    NOTICE_ROOT_STRIPPED, /* an absolute member name lands below the target; once a run */
    NOTICE_DROPPED_MODE,  /* setuid, setgid, sticky, owner or a privileged xattr was not restored without -p */
    NOTICE_KEPT_OLD,      /* --skip-old-files: NAME existed */
    NOTICE_LEFTOVER,      /* NAME is the staging folder of a run that was killed; it stays */
    /* Extracting: refused or flawed; exit 1. */
    NOTICE_BAD_NAME,     /* `..`, empty, over-long … ; refused */
    NOTICE_BAD_SYMLINK,  /* link leaves the target; refused */
    NOTICE_BAD_HARDLINK, /* names something outside, or that is not in the archive; refused */
    NOTICE_THROUGH_LINK, /* path runs through a link; refused */
    NOTICE_SUSPICIOUS,   /* any other member refused; detail says why */
    NOTICE_NEEDS_ROOT,   /* device node */
    NOTICE_EXISTS,       /* NAME exists in the target and is kept */
    NOTICE_WRONG_KIND,   /* a file where a folder is in the way, or the reverse */
    NOTICE_FLAW,         /* the tar itself is flawed (detail), sound members are taken */
    NOTICE_RESTORE,      /* mode, time, ACL, xattr of NAME could not be set; detail says which */
    NOTICE_DIFFERS,      /* comparing: detail says what differs */
};

struct notice {
    enum notice_kind kind;
    const char *name;   /* raw bytes of the member or file; NULL where it concerns the whole */
    gpg_error_t code;   /* 0 where there is none */
    const char *detail; /* a few words, NULL where there are none */
};

/* Where notices go. REPORT is called on the thread that works on the archive. */
struct notices {
    void (*report)(void *context, const struct notice *notice);
    void *context;
};

/* Takes NULL, and a NULL report, as "nobody listens". */
void notice(const struct notices *notices, enum notice_kind kind, const char *name, gpg_error_t code,
            const char *detail);

#endif
