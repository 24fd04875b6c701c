#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
# Memory stays under 64 MiB, however much goes through. GPGTAR_MEMORY_FULL=1: 2 GiB and 200 000 files; else 300 MB and
# 20 000 files.
load common

LIMIT_KIB=65536

setup_file() {
    suite_home alice
    local megabytes=300 files=20000
    [ -z "${GPGTAR_MEMORY_FULL:-}" ] || { megabytes=2048 files=200000; }
    mkdir "$SUITE/big" "$SUITE/many"
    for ((i = 0; i < megabytes; i += 100)); do
        head -c 100000000 /dev/urandom >"$SUITE/big/$i"
    done
    # bzip2 is slow; its memory is the same for any length beyond some blocks.
    mkdir "$SUITE/some"
    head -c 30000000 "$SUITE/big/0" >"$SUITE/some/data"
    # Long names, so that whoever keeps them all is found out.
    (cd "$SUITE/many" && seq -f "%0100.0f" 1 $files | split -l 1000 --filter 'mkdir $FILE && cd $FILE && xargs touch' - d)
}

# measured ARGUMENTS…: runs the program, which must exit 0 and keep below the limit.
measured() {
    /usr/bin/time -f %M -o peak "$GPGTAR" --batch -q "$@" </dev/null >"$OUT" 2>"$ERR" || { cat "$ERR" >&2; return 1; }
    echo "$(cat peak) KiB: $*"
    [ "$(cat peak)" -lt $LIMIT_KIB ]
}

both_ways() {
    local folder=$1
    shift
    measured "$@" -o "$PWD/a.gpg" -C "$SUITE" "$folder"
    mkdir x
    measured -d --passphrase-file "$SUITE/pw" -C x a.gpg
    same_tree "$SUITE/$folder" "x/$folder" --content
    rm -r x
    measured --verify --passphrase-file "$SUITE/pw" a.gpg
    measured -t --passphrase-file "$SUITE/pw" a.gpg
    rm a.gpg
}

@test "much data: -es" {
    both_ways big -es -u alice -r alice
}

@test "much data: OCB, large chunks, many jobs" {
    both_ways big -e -r alice --force-ocb --chunk-size 22 --jobs 16
}

@test "bzip2, --jobs 4" {
    both_ways some -c --passphrase-file "$SUITE/pw" --compress-algo bzip2 --bzip2-compress-level 1 --jobs 4
}

@test "many files: -es, and plain" {
    both_ways many -es -u alice -r alice
    measured --create -o "$PWD/a.tar" -C "$SUITE" many
    mkdir x
    measured --extract -C x a.tar
    [ "$(find x -type f | wc -l)" = "$(find "$SUITE/many" -type f | wc -l)" ]
}
