/* SPDX-License-Identifier: GPL-3.0-or-later */
/* tar_read: the bytes of a tar → one member at a time, through libarchive.
 *
 * ustar, v7, pax (with global headers), GNU (long names, sparse old and new) and star; the whole may be compressed with
 * gzip, bzip2, xz or zstd. Names are the bytes of the archive in every locale. Limits: libarchive's 1 MiB for a pax
 * header, a long name or a sparse map; NAMES_MAX for a name.
 *
 * What extraction, listing and comparing share stands here: which members are wanted, the limits, where to report. */
#ifndef ARCHIVE_TAR_READ_H
#define ARCHIVE_TAR_READ_H

#include "notice.h"
#include "stream/run.h"
#include "stream/stream.h"

#include <archive_entry.h>
#include <sys/stat.h>

/* The codes with which an archive as a whole is refused; the sentence is written to `failure`:
 *   TAR_NOT_A_TAR          the content is not a tar archive (also when it is empty)
 *   GPG_ERR_TRUNCATED      cut inside a header or a member
 *   GPG_ERR_BAD_DATA       damaged beyond what can be passed over
 *   GPG_ERR_TOO_LARGE      more than max_size or max_files
 * and any code of the source, which wrote its own sentence. */
#define TAR_NOT_A_TAR GPG_ERR_INV_OBJ

struct tar_read_params {
    struct run *run;               /* its cancel ends the work; may be NULL */
    struct failure *failure;       /* may be NULL */
    const struct notices *notices; /* may be NULL */
    /* Members wanted, as GNU tar takes them: a name, or a folder with all that is below it. None: everything. */
    const char *const *names;
    size_t n_names;
    bool wildcards;            /* names are patterns (names_match); a match of a leading part takes what is below */
    unsigned strip_components; /* leading components taken off; a member with no more than these is passed over */
    bool concatenated;         /* read on after an end marker; else what follows is a flaw */
    /* What cannot be read on from ends the archive with a notice instead of an error; also a failing source. */
    bool salvage;
    bool decrypted;     /* the content was encrypted: TAR_NOT_A_TAR has no sentence then, as the verdict goes first */
    bool quick;         /* content that is not wanted is skipped (source_skip) instead of read */
    uint64_t max_size;  /* bytes of content of all members taken, 0: no limit */
    uint64_t max_files; /* members of any kind, 0: no limit */
};

/* What was seen, the same for every operation. */
struct tar_read_counts {
    uint64_t members;   /* all in the archive, wanted or not */
    uint64_t flaws;     /* NOTICE_FLAW and names asked for that were not found: exit 1 */
    gpg_error_t cut_by; /* salvage: the code at which reading ended, 0 if it reached the end */
};

enum tar_kind { TAR_FILE, TAR_FOLDER, TAR_SYMLINK, TAR_HARDLINK, TAR_FIFO, TAR_CHAR, TAR_BLOCK, TAR_OTHER };

/* A member; valid until the next call on its reader. */
struct tar_member {
    const char *name; /* bytes as they stand in the archive, less strip_components; "" if it has none */
    /* Of a symlink its text; of a hard link a member name less strip_components; else NULL. */
    const char *target;
    enum tar_kind kind;
    mode_t mode; /* 07777 */
    int64_t uid, gid;
    const char *uname, *gname; /* "" if the archive has none */
    bool has_mtime;
    struct timespec mtime;
    uint64_t size; /* of the content, holes included; 0 for all but TAR_FILE */
    dev_t rdev;
    struct archive_entry *entry; /* for xattrs and ACLs */
};

struct tar_reader;

/* PARAMS and SOURCE are borrowed until tar_reader_free. Reads nothing yet. */
MUST_CHECK gpg_error_t tar_reader_new(const struct tar_read_params *params, struct source *borrows_source,
                                      struct tar_reader **ret);

/* The next member that is wanted; *RET = NULL at the end, when SOURCE was read to its last byte (SOURCE is not
 * finished: the caller of the operation asks it for the verdict). Flaws of the tar are reported as NOTICE_FLAW. */
MUST_CHECK gpg_error_t tar_reader_next(struct tar_reader *reader, const struct tar_member **ret);

/* The next piece of the content of a TAR_FILE: N bytes that belong at OFFSET, lent until the next call; what no piece
 * covers is zero. *RET_N = 0 at the end. Content not asked for is passed over by tar_reader_next. Counts for
 * max_size. */
MUST_CHECK gpg_error_t tar_reader_data(struct tar_reader *reader, const void **ret_bytes, size_t *ret_n,
                                       uint64_t *ret_offset);

const struct tar_read_counts *tar_reader_counts(const struct tar_reader *reader);
/* Reports a flaw of the tar at member NAME (may be NULL) and counts it. */
void tar_reader_flaw(struct tar_reader *reader, const char *name, gpg_error_t code, const char *detail);
/* Takes NULL. */
void tar_reader_free(struct tar_reader *reader);

#endif
