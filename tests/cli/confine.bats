#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
# What a bug in a parser could still do: nothing outside of the target, in no thread (write_outside.c plays the bug).
load common.bash

setup_file() {
    suite_home alice
    # The leak checker reads /proc and traces, which a confined process may not; unit tests look for leaks.
    export ASAN_OPTIONS=detect_leaks=0:verify_asan_link_order=0
    "${CC:-cc}" -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -shared -fPIC -o "$SUITE/write_outside.so" "$BATS_TEST_DIRNAME/write_outside.c" -ldl
}

teardown_file() {
    suite_end
}

# hooked ARGUMENTS…: the program with the bug in it; $TOLD is what became of it.
hooked() {
    TOLD=$BATS_TEST_TMPDIR/told
    mkdir -p "$BATS_TEST_TMPDIR/outside"
    OUTSIDE=$BATS_TEST_TMPDIR/outside LD_PRELOAD=$SUITE/write_outside.so \
        "$GPGTAR" --batch "$@" 9>"$TOLD" </dev/null
}

# Where the kernel cannot confine, the program must say so, and there is nothing more to demand.
kernel_confines() {
    "$GPGTAR" -v --skip-crypto -t "$1" >/dev/null 2>"$ERR"
    if grep -q 'no Landlock' "$ERR"; then
        skip "this kernel has no Landlock, and the program says so with -v"
    fi
}

make_input() {
    mkdir d
    head -c 3000000 /dev/urandom >d/noise
    echo text >d/text
    good --create -o plain.tar d
    kernel_confines plain.tar
}

# Each try was made, and refused.
only_refused() {
    local name
    for name in "$@"; do
        grep -q "^$name Permission denied" "$TOLD" || { echo "not tried and refused: $name" >&2; cat "$TOLD" >&2; return 1; }
    done
    ! grep -q made "$TOLD" || { cat "$TOLD" >&2; return 1; }
    [ -z "$(ls -A "$BATS_TEST_TMPDIR/outside")" ]
}

@test "the bug works where nothing is confined: creation" {
    make_input
    expect 0 hooked -c --passphrase-file "$SUITE/pw" -o x.gpg d
    grep -q '^encrypt made' "$TOLD"
    [ -e "$BATS_TEST_TMPDIR/outside/encrypt" ]
}

@test "extraction writes nowhere but below the target, in no thread" {
    local jobs format
    make_input
    for format in --force-ocb --rfc4880; do
        good -cs $format --passphrase-file "$SUITE/pw" --yes -o x.gpg d
        for jobs in 1 4; do
            rm -rf target x_1_
            mkdir target
            expect 0 hooked -j $jobs -d --passphrase-file "$SUITE/pw" -C target x.gpg
            only_refused decrypt header
            cmp d/noise target/d/noise
            expect 0 hooked -j $jobs -d --passphrase-file "$SUITE/pw" x.gpg
            only_refused decrypt header
            cmp d/noise x_1_/d/noise
        done
    done
}

@test "listing, verifying, comparing and -O write nowhere at all" {
    make_input
    good -cs --passphrase-file "$SUITE/pw" -o x.gpg d
    for call in "-t x.gpg" "--verify x.gpg" "--compare x.gpg" "-d -O x.gpg" "-d --dry-run x.gpg"; do
        # The folder that extraction could write to is outside now.
        OUTSIDE_IS=$PWD
        mkdir -p "$BATS_TEST_TMPDIR/outside"
        # shellcheck disable=SC2086
        expect 0 hooked --passphrase-file "$SUITE/pw" $call
        only_refused decrypt header
        rm -rf "$BATS_TEST_TMPDIR/outside"
        ln -s "$OUTSIDE_IS" "$BATS_TEST_TMPDIR/outside"
        # shellcheck disable=SC2086
        expect 0 hooked --passphrase-file "$SUITE/pw" $call
        grep -q '^decrypt Permission denied' "$TOLD"
        ! grep -q made "$TOLD"
        rm "$BATS_TEST_TMPDIR/outside"
    done
}

@test "a plain tar and a signed one are read under the same rules" {
    make_input
    expect 0 hooked --extract -C . --yes plain.tar
    only_refused header
    good -s -o s.gpg d
    expect 0 hooked -d s.gpg
    only_refused header
}

@test "the agent, started for the run, is not confined" {
    make_input
    good -e -r alice@example.org -o e.gpg d
    gpgconf --kill gpg-agent
    expect 0 hooked -d e.gpg
    only_refused decrypt header
    cmp d/noise e_1_/d/noise
    # It writes into its home: a new key proves it.
    gpg --batch --quiet --passphrase '' --quick-gen-key 'late <late@example.org>' ed25519 sign never 2>"$ERR"
    [ -n "$(fingerprint late)" ]
}

@test "questions can still be asked on the terminal" {
    make_input
    good -c --passphrase-file "$SUITE/pw" -o x.gpg d
    mkdir target target/d
    echo mine >target/d/text
    # script(1) gives a terminal; the answer is typed into it.
    printf 'y\n' | script -qec "$GPGTAR -d --passphrase-file $SUITE/pw -C target x.gpg" /dev/null >"$OUT" 2>&1
    grep -q 'replace it' "$OUT"
    cmp d/text target/d/text
}
