/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Archives: verified, listed, written out and extracted; nothing may appear outside of the folder for it. */
#include "fuzz.h"

#include "archive/extract.h"
#include "archive/list.h"
#include "archive/staging.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SIZE_LIMIT  (1024 * 1024)
#define FILES_LIMIT 100
#define NOBODY      65534
#define BLOCK       512
/* As in fuzz_message.c; lines of a listing are bounded by names of 1 MiB, escaped. */
#define LISTING_MAX (64 * 1024 * 1024)

/* A folder of this process: target/ for the staging folder, and a file beside it that must stay as it is. */
static char world[] = "/tmp/fuzz-tar-XXXXXX";
static int world_fd = -1, target_fd = -1;

static void remove_world(void)
{
    unlinkat(world_fd, "beside", 0);
    unlinkat(world_fd, "target", AT_REMOVEDIR);
    rmdir(world);
}

static void make_world(void)
{
    FUZZ_CHECK(mkdtemp(world));
    world_fd = open(world, O_DIRECTORY | O_CLOEXEC);
    FUZZ_CHECK(world_fd >= 0 && !mkdirat(world_fd, "target", 0777));
    FUZZ_CHECK(!fchmodat(world_fd, "target", 0777, 0) && !chmod(world, 0755));
    target_fd = openat(world_fd, "target", O_DIRECTORY | O_CLOEXEC);
    int fd = openat(world_fd, "beside", O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
    FUZZ_CHECK(target_fd >= 0 && fd >= 0 && write(fd, "x", 1) == 1);
    FUZZ_CHECK(!fchmod(fd, 0666) && !close(fd));
    atexit(remove_world);
}

static unsigned names_in(int folder)
{
    unsigned n = 0;
    int fd = openat(folder, ".", O_DIRECTORY | O_CLOEXEC);
    FUZZ_CHECK(fd >= 0);
    DIR *dir = fdopendir(fd);
    FUZZ_CHECK(dir);
    for (struct dirent *entry; (entry = readdir(dir));)
        n += strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..");
    closedir(dir);
    return n;
}

static void check_world(void)
{
    struct stat status;
    FUZZ_CHECK(names_in(target_fd) == 0 && names_in(world_fd) == 2);
    FUZZ_CHECK(!fstatat(world_fd, "beside", &status, AT_SYMLINK_NOFOLLOW));
    FUZZ_CHECK(S_ISREG(status.st_mode) && status.st_size == 1 && status.st_nlink == 1);
    FUZZ_CHECK((status.st_mode & 07777) == 0666);
}

static void report(void *context, const struct notice *notice)
{
    unsigned *count = context;
    ++*count;
    FUZZ_CHECK(notice->kind <= NOTICE_DIFFERS);
}

/* A hole would let the input write anywhere: not with all rights of root. The system call changes this thread only;
 * seteuid would wait for libFuzzer's other thread, which sleeps. */
static void become(uid_t user)
{
    FUZZ_CHECK(!syscall(SYS_setresuid, -1, user, -1));
}

static void extract(const struct tar_read_params *read, const uint8_t *bytes, size_t n, size_t step)
{
    struct staging *staging = NULL;
    struct tar_extract_result result = {0};
    struct source *source = fuzz_source(bytes, n, step);
    uid_t user = geteuid();
    become(user ? user : NOBODY);
    FUZZ_CHECK(!staging_new(target_fd, "target", NULL, &staging));
    struct tar_extract_params params = {.read = *read, .root_fd = staging_fd(staging), .umask = 022};
    if (!tar_extract(&params, source, &result))
        FUZZ_CHECK(result.bytes <= SIZE_LIMIT && result.made <= FILES_LIMIT);
    FUZZ_CHECK(result.skipped == result.badname + result.suspicious + result.symlink + result.hardlink + result.other);
    FUZZ_CHECK(!staging_discard(staging, NULL));
    staging_free(staging);
    become(user);
    source_free(source);
    check_world();
}

static void list(const struct tar_read_params *read, const uint8_t *bytes, size_t n, size_t step)
{
    struct tar_list_params params = {.read = *read};
    struct tar_list_result result = {0};
    struct source *source = fuzz_source(bytes, n, step);
    struct sink *sink = memory_sink_new(LISTING_MAX);
    size_t text_n;
    FUZZ_CHECK(sink);
    (void)!tar_list(&params, source, sink, &result);
    const uint8_t *text = memory_sink_bytes(sink, &text_n);
    uint64_t lines = 0;
    for (size_t i = 0; i < text_n; i++) {
        FUZZ_CHECK(text[i] == '\n' || (text[i] >= ' ' && text[i] != 0x7F));
        lines += text[i] == '\n';
    }
    FUZZ_CHECK(lines == result.members && result.members <= result.read.members);
    sink_free(sink);
    source_free(source);
}

/* ---- headers made valid ---- */

static uint64_t octal(const uint8_t *field, size_t n)
{
    uint64_t value = 0;
    for (; n && *field == ' '; n--)
        field++;
    for (; n && *field >= '0' && *field <= '7'; n--)
        value = value << 3 | (uint64_t)(*field++ - '0');
    return value;
}

/* Gives each header of a bare tar the checksum that its changed octets have now: without it nothing would be read. */
static void repair(uint8_t *bytes, size_t n)
{
    for (size_t at = 0; n - at >= BLOCK;) {
        uint8_t *header = bytes + at;
        unsigned sum = 0;
        char text[8];
        memset(header + 148, ' ', 8);
        for (size_t i = 0; i < BLOCK; i++)
            sum += header[i];
        at += BLOCK;
        if (sum == 8 * ' ') { /* an end marker */
            memset(header + 148, 0, 8);
            continue;
        }
        snprintf(text, sizeof text, "%06o", sum & 0777777);
        memcpy(header + 148, text, 7);
        uint64_t size = octal(header + 124, 12), rest = n - at;
        if (header[156] < '1' || header[156] > '6') /* these have no content */
            at += size > rest - rest % BLOCK ? (size_t)rest : (size_t)(size + BLOCK - 1) / BLOCK * BLOCK;
    }
}

static void read_archive(const uint8_t *bytes, size_t n, unsigned how)
{
    unsigned count = 0;
    struct failure failure;
    const struct notices notices = {.report = report, .context = &count};
    if (world_fd < 0)
        make_world();
    failure_init(&failure);
    struct tar_read_params read = {
        .failure = &failure, .notices = &notices, .max_size = SIZE_LIMIT, .max_files = FILES_LIMIT};
    /* The ways to read. */
    read.concatenated = how & 1;
    read.salvage = how & 2;
    read.quick = how & 4;
    read.strip_components = how & 8 ? 1 : 0;
    size_t step = how & 16 ? 100 : 0;
    struct tar_list_result verified = {0};
    struct source *source = fuzz_source(bytes, n, step);
    (void)!tar_verify(&read, source, &verified);
    source_free(source);
    list(&read, bytes, n, step);
    extract(&read, bytes, n, step);
    struct tar_extract_result written = {0};
    struct sink *sink = memory_sink_new(SIZE_LIMIT);
    FUZZ_CHECK(sink);
    source = fuzz_source(bytes, n, 0);
    (void)!tar_extract_to_sink(&read, source, sink, &written);
    source_free(source);
    sink_free(sink);
    failure_destroy(&failure);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    /* By the last octet: what a tar ends with does not matter to it. */
    unsigned how = n ? bytes[n - 1] : 0;
    uint8_t *copy = malloc(n ? n : 1);
    FUZZ_CHECK(copy);
    memcpy(copy, bytes, n);
    if (!(how & 32))
        repair(copy, n);
    read_archive(copy, n, how);
    free(copy);
    return 0;
}
