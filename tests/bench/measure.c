/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Runs one command and says what it took.
 *
 *     bench_measure RESULT TOUCH COMMAND [ARGS]
 *
 * TOUCH octets of memory are written to and given back before the clock starts: a virtual machine may have handed its
 * free pages to the host, and whichever command takes them back pays for it (a file of 2 GB on tmpfs: 0.8 or 1.8 s). So
 * every command finds that many pages ready. RESULT gets a line of numbers: seconds from start to end, seconds
 * of user time, of system time, peak memory in KiB of the largest process, exit code. A program of its own, because the
 * peak memory that a kernel counts for a child begins at its parent's: this one has next to none, a Python interpreter
 * would hide all that is smaller than itself. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double seconds(struct timeval time)
{
    return (double)time.tv_sec + (double)time.tv_usec / 1e6;
}

/* In a process of its own, so that the command's peak memory does not begin with it. */
static void touch(size_t n)
{
    const pid_t child = n ? fork() : -1;
    if (!child) {
        void *memory = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
        _exit(memory == MAP_FAILED);
    }
    if (child > 0)
        (void)waitpid(child, NULL, 0);
}

int main(int argc, char **argv)
{
    struct timespec start, end;
    struct rusage usage;
    int status;
    if (argc < 4) {
        fprintf(stderr, "usage: bench_measure RESULT TOUCH COMMAND [ARGS]\n");
        return 2;
    }
    FILE *result = fopen(argv[1], "we");
    if (!result) {
        perror(argv[1]);
        return 2;
    }
    touch(strtoull(argv[2], NULL, 10));
    clock_gettime(CLOCK_MONOTONIC, &start);
    const pid_t child = fork();
    if (!child) {
        execvp(argv[3], argv + 3);
        perror(argv[3]);
        _exit(127);
    }
    if (child < 0 || wait4(child, &status, 0, &usage) != child) {
        perror("bench_measure");
        return 2;
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    fprintf(result, "%.6f %.6f %.6f %ld %d\n",
            (double)(end.tv_sec - start.tv_sec) + (double)(end.tv_nsec - start.tv_nsec) / 1e9, seconds(usage.ru_utime),
            seconds(usage.ru_stime), usage.ru_maxrss, WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
    return fclose(result) ? 2 : 0;
}
