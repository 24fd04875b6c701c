#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
# What GnuPG's own test of gpgtar does, with this program in place of stock's.
load common

setup_file() {
    suite_home
    # An Elgamal-1024 subkey under DSA-1024, and RSA-1024, as old as the test is.
    cat >"$SUITE/parameters" <<'EOF'
%no-protection
Key-Type: DSA
Key-Length: 1024
Subkey-Type: ELG-E
Subkey-Length: 1024
Name-Real: Elgamal
Name-Email: elgamal@example.org
%commit
%no-protection
Key-Type: RSA
Key-Length: 1024
Key-Usage: sign
Name-Real: Signer
Name-Email: signer@example.org
%commit
EOF
    gpg --batch --quiet --gen-key "$SUITE/parameters" 2>"$SUITE/gpg.log"
}

# As its framework calls the program: always with a gpg to use and words for it.
gpgtar() {
    nt --gpg /usr/bin/gpg --gpg-args "--no-permission-warning --always-trust" "$@"
}

files() {
    mkdir -p top/a top/b
    seq 1 5000 >top/plain-1
    head -c 30000 /dev/urandom >top/data-9000
    echo x >top/a/y
}

# inout CREATE… -- EXTRACT…: creates, lists and extracts with such options.
inout() {
    local create=()
    while [ "$1" != -- ]; do
        create+=("$1")
        shift
    done
    shift
    rm -rf out test.tar.pgp
    expect 0 gpgtar "${create[@]}" --output test.tar.pgp top
    expect 0 gpgtar "$@" --list-archive test.tar.pgp
    for name in top/plain-1 top/data-9000 top/a/y; do
        grep -q " $name\$" "$OUT"
    done
    mkdir out
    expect 0 gpgtar "$@" --tar-args --directory=out --decrypt test.tar.pgp
    same_tree top out/top
}

@test "plain tar" {
    files
    expect 0 gpgtar --skip-crypto --encrypt --output test.tar top
    expect 0 gpgtar --skip-crypto --list-archive test.tar
    grep -q ' top/a/y$' "$OUT"
    mkdir out
    expect 0 gpgtar --skip-crypto --tar-args --directory=out --decrypt test.tar
    same_tree top out/top
    expect 0 gpgtar --create --output test2.tar top
    rm -rf out && mkdir out
    (cd out && expect 0 gpgtar --tar-args --directory=. --extract ../test2.tar)
    same_tree top out/top
}

@test "encryption to Elgamal 1024" {
    files
    inout --encrypt --recipient elgamal --
}

@test "signing with RSA 1024" {
    files
    inout --sign --local-user signer --
}

@test "signing and encryption" {
    files
    inout --sign --encrypt --local-user signer --recipient elgamal --
}

@test "a passphrase" {
    files
    inout --symmetric --gpg-args "--passphrase-file=$SUITE/pw" -- --gpg-args "--passphrase-file=$SUITE/pw"
}

@test "each cipher" {
    files
    for cipher in IDEA 3DES CAST5 BLOWFISH AES AES192 AES256 TWOFISH CAMELLIA128 CAMELLIA192 CAMELLIA256; do
        inout --symmetric --gpg-args "--passphrase-file=$SUITE/pw" --gpg-args "--cipher=$cipher" -- --gpg-args \
            "--passphrase-file=$SUITE/pw"
        gpg --batch --pinentry-mode loopback --passphrase-file "$SUITE/pw" --show-session-key -d test.tar.pgp 2>"$ERR" >/dev/null
    done
}

@test "passphrase, key and signature in one" {
    files
    inout --symmetric --encrypt --sign --local-user signer --recipient elgamal --gpg-args "--passphrase-file=$SUITE/pw" --
    inout --symmetric --encrypt --sign --local-user signer --recipient elgamal --gpg-args "--passphrase-file=$SUITE/pw" -- \
        --gpg-args "--passphrase-file=$SUITE/pw"
}
