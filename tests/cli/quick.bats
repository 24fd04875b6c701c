#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
# --quick: what is not wanted is passed over unread. That it really is shows where it is damaged.
load common.bash

# Three large members between small ones; signed, and with a passphrase.
setup_file() {
    suite_home alice
    mkdir -p "$SUITE/in/d"
    (
        cd "$SUITE/in" || exit 1
        echo first >d/a
        for name in b1 c1 e1; do
            head -c 6000000 /dev/urandom >d/$name
        done
        seq 1 30000 >d/d
        echo last >d/z
        "$GPGTAR" --batch -c --passphrase-file "$SUITE/pw" -s -u alice --force-ocb --no-compress -o x.gpg d
    )
}

teardown_file() {
    suite_end
}

opened() {
    good --passphrase-file "$SUITE/pw" --status-fd 3 "$@" 3>status
}

refused() {
    expect 1 nt --passphrase-file "$SUITE/pw" --status-fd 3 "$@" 3>status
}

has_status() {
    keywords status | grep -qw "$1"
}

lacks_status() {
    ! has_status "$1" || die "status line $1"
}

# flip FILE POSITION: one bit less or more there.
flip() {
    local octet
    octet=$(od -An -tu1 -j "$2" -N 1 "$1")
    # shellcheck disable=SC2059
    printf "\\x$(printf %x $((octet ^ 1)))" | dd of="$1" bs=1 seek="$2" conv=notrunc status=none
}

unverified() {
    said 'only parts of the archive were read: its signature was not checked'
    has_status DECRYPTION_OKAY
    for keyword in GOODSIG BADSIG ERRSIG NEWSIG GOODMDC; do
        lacks_status $keyword
    done
}

verified() {
    has_status DECRYPTION_OKAY
    has_status GOODSIG
    has_status GOODMDC
    not_said 'only parts'
}

@test "quick lists and extracts the same as ever, and says that the signature was not checked" {
    opened -t "$SUITE/in/x.gpg"
    verified
    cp "$OUT" list
    opened -t --quick "$SUITE/in/x.gpg"
    unverified
    cmp list "$OUT"
    for name in a b1 c1 d e1 z; do
        opened -d --quick -C . "$SUITE/in/x.gpg" "d/$name"
        unverified
        cmp "d/$name" "$SUITE/in/d/$name"
        opened -d --quick -O "$SUITE/in/x.gpg" "d/$name"
        unverified
        cmp "$OUT" "$SUITE/in/d/$name"
    done
    opened -t --quick --jobs 1 "$SUITE/in/x.gpg"
    unverified
    cmp list "$OUT"
    expect 0 "$GPGTAR" --batch --passphrase-file "$SUITE/pw" --status-fd 3 -t --quick - <"$SUITE/in/x.gpg" 3>status
    unverified
    cmp list "$OUT"
}

@test "quick does not notice damage in what it passes over, and refuses what it would show" {
    cp "$SUITE/in/x.gpg" y.gpg
    flip y.gpg 9000000
    refused -t y.gpg
    has_status DECRYPTION_FAILED
    opened -t --quick y.gpg
    unverified
    opened -d --quick -C . y.gpg d/b1 d/e1
    cmp d/b1 "$SUITE/in/d/b1"
    cmp d/e1 "$SUITE/in/d/e1"
    refused -d --quick -C . y.gpg d/c1
    has_status DECRYPTION_FAILED
    absent d/c1
    flip y.gpg 9000000
    flip y.gpg 300
    refused -t --quick y.gpg
}

@test "quick checks the length of the whole by the last tag" {
    size=$(stat -c %s "$SUITE/in/x.gpg")
    cp "$SUITE/in/x.gpg" y.gpg
    flip y.gpg $((size - 1))
    refused -t --quick y.gpg
    has_status DECRYPTION_FAILED
    lacks_status DECRYPTION_OKAY
    refused -d --quick -C . y.gpg d/b1
    absent d
    for cut in 1 16 17 100000 7000000; do
        head -c $((size - cut)) "$SUITE/in/x.gpg" >y.gpg
        refused -t --quick y.gpg
        lacks_status DECRYPTION_OKAY
        refused -d --quick -C . y.gpg d/a
        absent d
    done
    cat "$SUITE/in/x.gpg" "$SUITE/pw" >y.gpg
    refused -t --quick y.gpg
    cat "$SUITE/in/x.gpg" "$SUITE/in/x.gpg" >y.gpg
    refused -t --quick y.gpg
}

@test "where nothing can be passed over, quick reads all and checks the signature" {
    cd "$SUITE/in"
    make=(-c --passphrase-file "$SUITE/pw" -s -u alice --yes)
    good "${make[@]}" --force-ocb -o compressed.gpg d
    good "${make[@]}" --no-compress -o mdc.gpg d
    good "${make[@]}" --force-ocb --no-compress -a -o armored.gpg d
    good "${make[@]}" --force-ocb --no-compress -o small.gpg d/a d/d d/z
    cd "$BATS_TEST_TMPDIR/w"
    for name in compressed mdc armored small; do
        opened -t --quick "$SUITE/in/$name.gpg"
        verified
        cp "$OUT" list
        opened -t "$SUITE/in/$name.gpg"
        cmp list "$OUT"
        opened -d --quick -O "$SUITE/in/$name.gpg" d/z
        verified
        cmp "$OUT" "$SUITE/in/d/z"
    done
    # shellcheck disable=SC2002
    expect 0 sh -c 'cat "$SUITE/in/x.gpg" | "$GPGTAR" --batch --passphrase-file "$SUITE/pw" --status-fd 3 -t --quick - 3>status'
    verified
    # Whoever wants all gets all.
    opened --verify --quick "$SUITE/in/x.gpg"
    verified
    opened -d --dry-run --quick "$SUITE/in/x.gpg"
    verified
    good -s --no-compress -u alice --yes -o signed.gpg "$SUITE/in/d"
    opened -t --quick signed.gpg
    has_status GOODSIG
}

@test "quick does not go with a demand for a signature, which it does not check" {
    usage_error 'quick' -t --quick --require-signature "$SUITE/in/x.gpg"
    usage_error 'quick' -t --quick --signer alice "$SUITE/in/x.gpg"
}
