/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "owners.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* A tree has a handful of owners; more than this many share slots and are asked for again. A power of two. */
#define SLOTS 64
/* A group entry lists its members; far larger ones are taken as nameless. */
#define ENTRY_BYTES (1024 * 1024)

struct slot {
    bool used;
    id_t id;
    char *name;
};

struct owners {
    struct slot users[SLOTS], groups[SLOTS];
};

struct owners *owners_new(void)
{
    return calloc(1, sizeof(struct owners));
}

void owners_free(struct owners *owners)
{
    if (!owners)
        return;
    for (size_t i = 0; i < SLOTS; i++) {
        free(owners->users[i].name);
        free(owners->groups[i].name);
    }
    free(owners);
}

static int user_name(id_t id, char *memory, size_t n, const char **ret_name)
{
    struct passwd entry, *found = NULL;
    int error = getpwuid_r(id, &entry, memory, n, &found);
    *ret_name = found ? found->pw_name : NULL;
    return error;
}

static int group_name(id_t id, char *memory, size_t n, const char **ret_name)
{
    struct group entry, *found = NULL;
    int error = getgrgid_r(id, &entry, memory, n, &found);
    *ret_name = found ? found->gr_name : NULL;
    return error;
}

static const char *look_up(struct slot *slots, id_t id, int (*ask)(id_t, char *, size_t, const char **))
{
    struct slot *slot = &slots[id & (SLOTS - 1)];
    if (slot->used && slot->id == id)
        return slot->name;
    free(slot->name);
    *slot = (struct slot){.used = true, .id = id};
    int error = ERANGE;
    for (size_t n = 1024; error == ERANGE && n <= ENTRY_BYTES; n *= 4) {
        const char *name = NULL;
        char *memory = malloc(n);
        if (!memory)
            return NULL;
        error = ask(id, memory, n, &name);
        if (!error && name && *name)
            slot->name = strdup(name);
        free(memory);
    }
    return slot->name;
}

const char *owners_user(struct owners *owners, uid_t uid)
{
    return look_up(owners->users, uid, user_name);
}

const char *owners_group(struct owners *owners, gid_t gid)
{
    return look_up(owners->groups, gid, group_name);
}
