/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "nameset.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

struct nameset {
    uint64_t key[2];
    uint64_t *slots; /* 0: free */
    size_t n, size;  /* size: a power of two, at most half full */
};

struct nameset *nameset_new(void)
{
    struct nameset *set = calloc(1, sizeof *set);
    if (set && getrandom(set->key, sizeof set->key, 0) != (ssize_t)sizeof set->key) {
        free(set);
        set = NULL;
    }
    return set;
}

void nameset_free(struct nameset *set)
{
    if (!set)
        return;
    free(set->slots);
    free(set);
}

static uint64_t rotate(uint64_t x, unsigned by)
{
    return (x << by) | (x >> (64 - by));
}

static void sip_rounds(uint64_t v[4], unsigned rounds)
{
    while (rounds--) {
        v[0] += v[1];
        v[2] += v[3];
        v[1] = rotate(v[1], 13) ^ v[0];
        v[3] = rotate(v[3], 16) ^ v[2];
        v[0] = rotate(v[0], 32);
        v[2] += v[1];
        v[0] += v[3];
        v[1] = rotate(v[1], 17) ^ v[2];
        v[3] = rotate(v[3], 21) ^ v[0];
        v[2] = rotate(v[2], 32);
    }
}

static void sip_word(uint64_t v[4], uint64_t word)
{
    v[3] ^= word;
    sip_rounds(v, 1);
    v[0] ^= word;
}

/* SipHash-1-3 (Aumasson, Bernstein) of TAG and NAME. Never 0. */
static uint64_t hash(const struct nameset *set, uint64_t tag, const char *name, size_t n)
{
    uint64_t v[4] = {set->key[0] ^ 0x736f6d6570736575, set->key[1] ^ 0x646f72616e646f6d,
                     set->key[0] ^ 0x6c7967656e657261, set->key[1] ^ 0x7465646279746573};
    sip_word(v, tag);
    uint64_t word;
    size_t left = n;
    for (; left >= 8; left -= 8, name += 8) {
        memcpy(&word, name, 8);
        sip_word(v, word);
    }
    word = 0;
    memcpy(&word, name, left);
    sip_word(v, word | (uint64_t)n << 56);
    v[2] ^= 0xff;
    sip_rounds(v, 3);
    uint64_t value = v[0] ^ v[1] ^ v[2] ^ v[3];
    return value ? value : 1;
}

static uint64_t *find(const struct nameset *set, uint64_t value)
{
    size_t at = value & (set->size - 1);
    while (set->slots[at] && set->slots[at] != value)
        at = (at + 1) & (set->size - 1);
    return &set->slots[at];
}

static gpg_error_t grow(struct nameset *set)
{
    struct nameset bigger = *set;
    bigger.size = set->size ? 2 * set->size : 64;
    bigger.slots = calloc(bigger.size, sizeof *bigger.slots);
    if (!bigger.slots)
        return gpg_error_from_syserror();
    for (size_t i = 0; i < set->size; i++)
        if (set->slots[i])
            *find(&bigger, set->slots[i]) = set->slots[i];
    free(set->slots);
    *set = bigger;
    return 0;
}

gpg_error_t nameset_add(struct nameset *set, uint64_t tag, const char *name, size_t n, bool *ret_new)
{
    if (2 * set->n >= set->size) {
        gpg_error_t err = grow(set);
        if (err)
            return err;
    }
    uint64_t value = hash(set, tag, name, n);
    uint64_t *slot = find(set, value);
    if (ret_new)
        *ret_new = !*slot;
    if (!*slot) {
        *slot = value;
        set->n++;
    }
    return 0;
}

bool nameset_has(const struct nameset *set, uint64_t tag, const char *name, size_t n)
{
    return set->size && *find(set, hash(set, tag, name, n)) != 0;
}
