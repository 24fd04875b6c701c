/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "hardlinks.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

struct file {
    dev_t dev;
    ino_t ino;
    nlink_t left;
    char name[];
};

struct hardlinks {
    void *tree;
    struct file *done; /* the last of its links was seen; its name is still lent */
};

struct hardlinks *hardlinks_new(void)
{
    return calloc(1, sizeof(struct hardlinks));
}

void hardlinks_free(struct hardlinks *links)
{
    if (!links)
        return;
    tdestroy(links->tree, free);
    free(links->done);
    free(links);
}

static int compare(const void *a, const void *b)
{
    const struct file *x = a, *y = b;
    if (x->ino != y->ino)
        return x->ino < y->ino ? -1 : 1;
    return (x->dev > y->dev) - (x->dev < y->dev);
}

const char *hardlinks_find(struct hardlinks *links, const struct stat *status)
{
    free(links->done);
    links->done = NULL;
    const struct file key = {.dev = status->st_dev, .ino = status->st_ino};
    void *node = tfind(&key, &links->tree, compare);
    if (!node)
        return NULL;
    struct file *file = *(struct file **)node;
    if (--file->left == 0) {
        tdelete(file, &links->tree, compare);
        links->done = file;
    }
    return file->name;
}

gpg_error_t hardlinks_add(struct hardlinks *links, const struct stat *status, const char *name)
{
    if (status->st_nlink < 2)
        return 0;
    size_t n = strlen(name) + 1;
    struct file *file = malloc(sizeof *file + n);
    if (!file)
        return gpg_error_from_syserror();
    *file = (struct file){.dev = status->st_dev, .ino = status->st_ino, .left = status->st_nlink - 1};
    memcpy(file->name, name, n);
    void *node = tsearch(file, &links->tree, compare);
    if (!node || *(struct file **)node != file)
        free(file);
    return node ? 0 : gpg_error(GPG_ERR_ENOMEM);
}
