#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
# Both ways with every OpenPGP program that Debian and npm offer (matrix.py). A missing program is a failure.
load common

setup_file() {
    suite_home
    new_key rsa rsa2048 rsa2048
    new_key cv25519 ed25519 cv25519
    new_key p256 nistp256 nistp256
    cd "$SUITE"
    node "$BATS_TEST_DIRNAME/oj.mjs" '{"do": "generate", "key": "keys/v6", "user": "v6",
        "config": {"v6Keys": true, "aeadProtect": true}}'
    node "$BATS_TEST_DIRNAME/oj.mjs" '{"do": "generate", "key": "keys/x25519", "user": "x25519", "config": {"aeadProtect": true}}'
    small
    # More than one AEAD chunk, partial length and deflate block.
    head -c 1500000 /dev/urandom >d/noise
    tar -cf d.tar d
}

# with PEER: the whole of its table, printed also when it passes.
with() {
    local code=0
    mkdir "$SUITE/$1"
    cp -r "$SUITE/home" "$SUITE/keys" "$SUITE/pw" "$SUITE/d" "$SUITE/d.tar" "$SUITE/$1/" 2>/dev/null || true
    $PYTHON "$BATS_TEST_DIRNAME/matrix.py" "$1" "$SUITE/$1" >table 2>&1 || code=$?
    sed 's/^/# /' table >&3
    GNUPGHOME=$SUITE/$1/home gpgconf --kill all
    grep FAIL table || true
    return $code
}

@test "gpg" {
    with gpg
}

@test "stock gpgtar" {
    with gpgtar
}

@test "sq" {
    with sq
}

@test "sqop" {
    with sqop
}

@test "rnp" {
    with rnp
}

@test "pgpainless-cli" {
    with pgpainless-cli
}

@test "python3-pgpy" {
    with pgpy
}

@test "OpenPGP.js" {
    with openpgpjs
}

@test "gpg -d | tar x" {
    cd "$SUITE"
    good -es -u cv25519 -r rsa --yes -o pipe.gpg d
    rm -rf piped && mkdir piped
    gpg --batch --quiet -d pipe.gpg 2>"$ERR" | tar -x -C piped
    same_tree d piped/d
}

@test "keys of version 5 (LibrePGP): none of the peers knows them, so ours reads its own" {
    local keys=$BATS_TEST_DIRNAME/../../testdata/samples/keys
    echo "# gpg 2.2, sq 0.27, sqop, rnp 0.16, pgpainless-cli, pgpy, OpenPGP.js: no keys of version 5" >&3
    export GNUPGHOME=$BATS_TEST_TMPDIR/none
    for how in "-e --force-ocb" -es -s; do
        rm -rf x && mkdir x
        # shellcheck disable=SC2086
        (cd "$SUITE" && nt --yes $how --secret-key-file "$keys/ed448.sec.asc" $([ "$how" = -s ] || echo -f "$keys/ed448.pub.asc") \
            -o v5.gpg d)
        good -d --secret-key-file "$keys/ed448.sec.asc" --keyring "$keys/ed448.pub.asc" \
            $([ "$how" = "-e --force-ocb" ] || echo --require-signature) -C x "$SUITE/v5.gpg"
        same_tree "$SUITE/d" x/d
    done
}
