/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A fuzz target without libFuzzer: replay [--binary] MUTATIONS PATH… gives it every file of PATH (a file or a folder)
 * as it is, and then MUTATIONS inputs made from them, the same ones every time. --binary: armor is taken off first.
 * replay [--binary] --save FOLDER PATH… writes the inputs to FOLDER instead, for libFuzzer to start from. */
#include "fuzz.h"

#include "pgp/armor.h"

#include <dirent.h>
#include <sys/stat.h>

/* Larger files would make the run long and find nothing that small ones do not. */
#define FILE_MAX (20 * 1024)
/* Changes of one mutated input at most, and bytes that one change touches at most. */
#define CHANGES_MAX 6
#define CHANGE_MAX  64
#define INPUT_MAX   (FILE_MAX + CHANGES_MAX * CHANGE_MAX)

struct input {
    char *name;
    uint8_t *bytes;
    size_t n;
};

struct inputs {
    struct input *input;
    size_t n;
    bool binary;
};

static void *need(void *memory)
{
    if (!memory) {
        perror("replay");
        exit(2);
    }
    return memory;
}

/* What is no armor stays as it is. */
static void take_armor_off(struct input *input)
{
    struct source *armor;
    size_t n;
    if (armor_source_new(NULL, fuzz_source(input->bytes, input->n, 0), NULL, true, &armor))
        return;
    uint8_t *bytes = need(malloc(input->n));
    if (!source_read(armor, bytes, input->n, &n) && n) {
        memcpy(input->bytes, bytes, n);
        input->bytes = need(realloc(input->bytes, n));
        input->n = n;
    }
    free(bytes);
    source_free(armor);
}

static void add_file(struct inputs *inputs, const char *name, size_t size)
{
    FILE *file = need(fopen(name, "rb"));
    inputs->input = need(realloc(inputs->input, (inputs->n + 1) * sizeof *inputs->input));
    struct input *input = &inputs->input[inputs->n++];
    input->name = need(strdup(name));
    /* Exactly as large as the file, so that the sanitizer sees a read behind it. */
    input->bytes = need(malloc(size ? size : 1));
    input->n = fread(input->bytes, 1, size, file);
    fclose(file);
    if (inputs->binary && input->n && !(input->bytes[0] & 0x80))
        take_armor_off(input);
}

static void add_path(struct inputs *inputs, const char *name)
{
    struct stat status;
    if (stat(name, &status)) {
        perror(name);
        exit(2);
    }
    if (S_ISREG(status.st_mode) && status.st_size <= FILE_MAX)
        add_file(inputs, name, (size_t)status.st_size);
    if (!S_ISDIR(status.st_mode))
        return;
    struct dirent **entries;
    int n = scandir(name, &entries, NULL, alphasort);
    for (int i = 0; i < n; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", name, entries[i]->d_name);
        if (entries[i]->d_name[0] != '.')
            add_path(inputs, path);
        free(entries[i]);
    }
    if (n >= 0)
        free(entries);
}

/* Gives them to libFuzzer, by number: names of several folders may be alike. */
static void save(const struct inputs *inputs, const char *folder)
{
    for (size_t i = 0; i < inputs->n; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/seed-%04zu", folder, i);
        FILE *file = need(fopen(path, "wb"));
        if (fwrite(inputs->input[i].bytes, 1, inputs->input[i].n, file) != inputs->input[i].n || fclose(file)) {
            perror(path);
            exit(2);
        }
    }
}

static uint64_t next(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static size_t below(uint64_t *state, size_t limit)
{
    return limit ? (size_t)(next(state) % limit) : 0;
}

/* One change of the N bytes at BYTES, which has room for CHANGE_MAX more; OTHER gives bytes to mix in. */
static size_t change(uint64_t *state, uint8_t *bytes, size_t n, const struct input *other)
{
    static const uint8_t interesting[] = {0, 1, 0x7F, 0x80, 0xBF, 0xC0, 0xDF, 0xE0, 0xFE, 0xFF};
    /* Half of all changes near the start, where the lengths are. */
    size_t at = below(state, next(state) & 1 || n < 64 ? n : 64);
    size_t part = 1 + below(state, CHANGE_MAX);
    size_t from = below(state, other->n);
    if (part > n - at)
        part = n - at;
    switch (below(state, 7)) {
    case 0:
        if (n)
            bytes[at] ^= (uint8_t)(1u << below(state, 8));
        return n;
    case 1:
        if (n)
            bytes[at] = interesting[below(state, sizeof interesting)];
        return n;
    case 2:
        if (n)
            bytes[at] = (uint8_t)next(state);
        return n;
    case 3: /* leaves bytes out */
        memmove(bytes + at, bytes + at + part, n - at - part);
        return n - part;
    case 4: /* gives them twice */
        memmove(bytes + at + part, bytes + at, n - at);
        return n + part;
    case 5: /* puts others over them */
        if (part > other->n - from)
            part = other->n - from;
        memcpy(bytes + at, other->bytes + from, part);
        return n;
    default:
        return next(state) & 7 ? n : at;
    }
}

static void run_one(const uint8_t *bytes, size_t n)
{
    /* A copy of its own size: see above. */
    uint8_t *copy = need(malloc(n ? n : 1));
    memcpy(copy, bytes, n);
    LLVMFuzzerTestOneInput(copy, n);
    free(copy);
}

static void run_mutated(const struct inputs *inputs, size_t mutations)
{
    uint64_t state = UINT64_C(0x9E3779B97F4A7C15);
    for (size_t i = 0; i < mutations; i++) {
        const struct input *input = &inputs->input[i % inputs->n];
        uint8_t bytes[INPUT_MAX];
        size_t n = input->n;
        memcpy(bytes, input->bytes, n);
        for (size_t changes = 1 + below(&state, CHANGES_MAX); changes; changes--)
            n = change(&state, bytes, n, &inputs->input[below(&state, inputs->n)]);
        run_one(bytes, n);
    }
}

int main(int argc, char **argv)
{
    struct inputs inputs = {0};
    const char *folder = NULL;
    size_t mutations = 0;
    int at = 1;
    if (at < argc && !strcmp(argv[at], "--binary")) {
        inputs.binary = true;
        at++;
    }
    if (at + 1 < argc && !strcmp(argv[at], "--save"))
        folder = argv[++at];
    else if (at < argc)
        mutations = strtoul(argv[at], NULL, 10);
    for (int i = at + 1; i < argc; i++)
        add_path(&inputs, argv[i]);
    if (!inputs.n) {
        fprintf(stderr, "usage: %s [--binary] MUTATIONS|--save FOLDER PATH...\n", argv[0]);
        return 2;
    }
    if (folder)
        save(&inputs, folder);
    for (size_t i = 0; i < inputs.n && !folder; i++)
        run_one(inputs.input[i].bytes, inputs.input[i].n);
    if (!folder)
        run_mutated(&inputs, mutations);
    printf("%zu files, %zu mutated inputs\n", inputs.n, mutations);
    for (size_t i = 0; i < inputs.n; i++) {
        free(inputs.input[i].name);
        free(inputs.input[i].bytes);
    }
    free(inputs.input);
    return 0;
}
