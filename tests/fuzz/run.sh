#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# tests/fuzz/run.sh BUILD SECONDS [NAME...]: runs every fuzz target of the build folder BUILD for SECONDS, a line each.
# What it learns stays in BUILD/tests/fuzz/corpus/NAME; an input that broke something is left beside the log there.
set -u
build=${1:?usage: run.sh BUILD SECONDS [NAME...]}
seconds=${2:?usage: run.sh BUILD SECONDS [NAME...]}
shift 2
cd "$build/tests/fuzz" || exit 2
names=${*:-armor packet certificate keybox message tar}

# Longest input, octets: as long as the seeds, so that libFuzzer does not cut them.
max_len=20480
broken=0

for name in $names; do
    if [ ! -x "fuzz_$name" ]; then
        echo "fuzz_$name is missing in $build: build it with -DGPGTAR_FUZZ=ON and clang" >&2
        exit 2
    fi
    mkdir -p "corpus/$name"
    mapfile -t args <"corpus_$name.args"
    "./replay_$name" "${args[@]}" >/dev/null || exit 2
    # libFuzzer counts RSS of the sanitizer's quarantine too: kept small.
    ASAN_OPTIONS=quarantine_size_mb=32:detect_leaks=1 UBSAN_OPTIONS=print_stacktrace=1 \
        "./fuzz_$name" -max_total_time="$seconds" -max_len="$max_len" -rss_limit_mb=512 -timeout=10 \
        -print_final_stats=1 -artifact_prefix="found-$name-" "corpus/$name" >"fuzz_$name.log" 2>&1
    status=$?
    runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "fuzz_$name.log")
    # The last line of progress tells the code reached.
    cov=$(sed -n 's/.* cov: \([0-9]*\) .*/\1/p' "fuzz_$name.log" | tail -n 1)
    if [ "$status" = 0 ]; then
        printf '%-12s %4d s %10s inputs, %5s edges: nothing found\n' "$name" "$seconds" "${runs:-?}" "${cov:-?}"
    else
        printf '%-12s failed (%s/fuzz_%s.log):\n' "$name" "$PWD" "$name"
        grep -E '(ERROR|runtime error|does not hold|SUMMARY|Test unit written)' "fuzz_$name.log" | head -n 8
        broken=1
    fi
done
exit "$broken"
