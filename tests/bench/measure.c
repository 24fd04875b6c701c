/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Runs one command and says what it took.
 *
 *     bench_measure RESULT COMMAND [ARGS]
 *
 * RESULT gets a line of numbers: seconds from start to end, seconds of user time, of system time, peak memory in KiB of
 * the largest process, exit code. A program of its own, because the peak memory that a kernel counts for a child begins
 * at its parent's: this one has next to none, a Python interpreter would hide all that is smaller than itself. */
#include <stdio.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double seconds(struct timeval time)
{
    return (double)time.tv_sec + (double)time.tv_usec / 1e6;
}

int main(int argc, char **argv)
{
    struct timespec start, end;
    struct rusage usage;
    int status;
    if (argc < 3) {
        fprintf(stderr, "usage: bench_measure RESULT COMMAND [ARGS]\n");
        return 2;
    }
    FILE *result = fopen(argv[1], "we");
    if (!result) {
        perror(argv[1]);
        return 2;
    }
    clock_gettime(CLOCK_MONOTONIC, &start);
    const pid_t child = fork();
    if (!child) {
        execvp(argv[2], argv + 2);
        perror(argv[2]);
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
