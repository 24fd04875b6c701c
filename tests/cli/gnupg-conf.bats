#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
# gpg.conf and gpgtar.conf: what is in them counts, and verbose output shows whom they add. That gpg makes the same of
# gpg.conf is what gnupg-compare.bats shows.
load common

setup_file() {
    suite_home alice bob carol
}

# conf FILE LINE…: the home's configuration; taken away after each test.
conf() {
    local file=$1
    shift
    printf '%s\n' "$@" >"$GNUPGHOME/$file"
}

teardown() {
    rm -f "$GNUPGHOME/gpg.conf" "$GNUPGHOME/gpgtar.conf" "$GNUPGHOME/common.conf"
}

# goes_to NAME…: the archive's recipients, in this order.
goes_to() {
    local want="" name
    for name in "$@"; do
        want+="keyid $(gpg --batch --with-colons --list-keys "$name" | awk -F: '/^sub/ { print $5; exit }') "
    done
    [ "$(gpg --batch --list-packets --list-only o.gpg 2>/dev/null | grep -o '^:pubkey enc.*' | grep -o 'keyid .*' | tr '\n' ' ')" = "$want" ] ||
        die "not to $*: $(gpg --batch --list-packets --list-only o.gpg 2>/dev/null | grep '^:pubkey')"
}

@test "encrypt-to in either file, shown by -v, and --no-encrypt-to (T121)" {
    small
    for file in gpg.conf gpgtar.conf; do
        conf $file 'encrypt-to carol@example.org'
        good -v --yes -e -r bob@example.org -o o.gpg d
        said "carol@example.org.*$(fingerprint carol)"
        said "bob@example.org.*$(fingerprint bob)"
        goes_to bob carol
        good -v --yes -e --no-encrypt-to -r bob@example.org -o o.gpg d
        not_said carol
        goes_to bob
        rm "$GNUPGHOME/$file"
    done
    conf gpg.conf 'encrypt-to alice@example.org'
    conf gpgtar.conf 'encrypt-to carol@example.org'
    good --yes -e -r bob@example.org -o o.gpg d
    goes_to bob alice carol
}

@test "an encrypt-to that cannot be used: refused by name, nothing written" {
    small
    conf gpg.conf 'encrypt-to nobody@example.org'
    bad "nobody@example.org" -e -r bob@example.org -o o.gpg d
    absent o.gpg
    good -e --no-encrypt-to -r bob@example.org -o o.gpg d
}

@test "default-recipient, default-recipient-self, default-key and group, in either file" {
    small
    for file in gpg.conf gpgtar.conf; do
        conf $file 'default-recipient carol@example.org'
        good --yes -e -o o.gpg d
        goes_to carol
        conf $file default-recipient-self 'default-key bob@example.org'
        good -v --yes -e -o o.gpg d
        said "$(fingerprint bob)"
        goes_to bob
        good --yes -es -r carol@example.org -o o.gpg d
        goes_to carol
        good --verify --signer bob@example.org o.gpg
        conf $file 'group us=alice@example.org carol@example.org'
        good --yes -e -r us -o o.gpg d
        goes_to alice carol
        rm "$GNUPGHOME/$file"
    done
}

@test "gpgtar.conf has the last word over gpg.conf, the command line over both" {
    small
    conf gpg.conf 'cipher-algo AES192' 'default-recipient alice@example.org'
    conf gpgtar.conf 'cipher-algo TWOFISH' 'default-recipient carol@example.org'
    good --yes -e -o o.gpg d
    goes_to carol
    cipher TWOFISH
    good --yes -e --cipher-algo AES -o o.gpg d
    cipher AES
    rm "$GNUPGHOME/gpgtar.conf"
    good --yes -e -o o.gpg d
    goes_to alice
    cipher AES192
}

cipher() {
    expect 0 gpg --batch -v -o /dev/null --yes -d o.gpg
    said "^gpg: $1(\\.CFB)? encrypted data"
}

@test "options of gpg that mean nothing here are passed over in gpg.conf, and refused in gpgtar.conf" {
    small
    conf gpg.conf 'keyserver hkps://keys.example.org' no-greeting '# a comment' '' 'list-options show-uid-validity' \
        'personal-cipher-preferences AES192 AES256' 'use-agent' 'no-such-option at all'
    good --yes -e -r bob@example.org -o o.gpg d
    cipher AES192
    conf gpgtar.conf 'no-such-option'
    usage_error 'no-such-option' -e -r bob@example.org -o p.gpg d
    absent p.gpg
}

@test "names of algorithms that nobody knows, on the line and in the files: an error that names them" {
    small
    for option in cipher-algo digest-algo compress-algo s2k-cipher-algo s2k-digest-algo personal-cipher-preferences; do
        expect 2 nt -es -c --passphrase-file "$SUITE/pw" -r bob@example.org --$option ROT13 -o o.gpg d
        said 'ROT13'
        absent o.gpg
        conf gpg.conf "$option ROT13"
        expect 2 nt -es -c --passphrase-file "$SUITE/pw" -r bob@example.org -o o.gpg d
        said 'ROT13'
        absent o.gpg
        rm "$GNUPGHOME/gpg.conf"
    done
}

@test "armor, comment and throw-keyids in gpg.conf" {
    small
    conf gpg.conf armor 'comment from the file' throw-keyids
    good --yes -e -r bob@example.org -o o.asc d
    head -n 1 o.asc | grep -qx -- '-----BEGIN PGP MESSAGE-----'
    grep -qx 'Comment: from the file' o.asc
    gpg --batch --list-packets --list-only o.asc 2>/dev/null | grep -q 'keyid 0000000000000000'
    good -t o.asc
}
