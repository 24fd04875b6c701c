#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
# Where keys are: keybox, old keyring, several, keyboxd; homes of every kind; and what needs no agent.
load common

setup_file() {
    suite_home alice bob
    mkdir -m 700 "$SUITE/o"
    # carol and dave are in keyrings of their own.
    GNUPGHOME=$SUITE/o
    for name in carol dave; do
        new_key $name ed25519 cv25519
    done
    gpgconf --kill all
    export GNUPGHOME=$SUITE/home
    for name in carol dave; do
        gpg --batch --quiet --no-default-keyring --keyring "$SUITE/$name.kbx" --import "$SUITE/keys/$name.pub"
        cp "$SUITE/keys/$name.pub" "$SUITE/$name.gpg"
    done
    # A signature needs its owner only to be made.
    cd "$SUITE"
    small
    "$GPGTAR" --batch -es -u alice -r alice -o "$SUITE/alice.gpg" d
    "$GPGTAR" --batch -s -u alice -o "$SUITE/signed.gpg" d
    gpgconf --kill all
}

# A PATH whose gpg-agent and keyboxd leave a trace, and do nothing.
watched() {
    mkdir -p watch
    printf '#!/bin/sh\ntouch "%s/started"\nexit 1\n' "$PWD" >watch/gpg-agent
    cp watch/gpg-agent watch/keyboxd
    chmod 755 watch/*
    PATH=$PWD/watch:$PATH
}

# home NAME: an empty home in a folder with a short name.
home() {
    export GNUPGHOME=$BATS_TEST_TMPDIR/$1
    mkdir -m 700 "$GNUPGHOME"
}

finds() {
    rm -f o.gpg
    good -e --always-trust -o o.gpg "$@" d
}

misses() {
    rm -f o.gpg
    bad "$1" -e --always-trust -o o.gpg -r "$2" d
    absent o.gpg
}

# The id of the encryption subkey of NAME in the archive.
was_to() {
    gpg --batch --list-packets --list-only o.gpg 2>/dev/null | grep -q "keyid $(gpg --batch --with-colons --show-keys "$SUITE/keys/$1.pub" | awk -F: '/^sub/ { print $5 }')"
}

@test "pubring.kbx, pubring.gpg, and both (T124)" {
    small
    home h
    cp "$SUITE/carol.gpg" "$GNUPGHOME/pubring.gpg"
    finds -r carol
    was_to carol
    misses "'$GNUPGHOME'" dave
    # Where there is a keybox it is the one, as in gpg.
    cp "$SUITE/dave.kbx" "$GNUPGHOME/pubring.kbx"
    finds -r dave
    expect 2 gpg --batch --always-trust --no-auto-key-locate -e -r carol -o /dev/null d/f
    misses "'$GNUPGHOME'" carol
}

@test "a keybox with X.509 certificates only, beside an old keyring" {
    small
    home h
    cp "$SUITE/carol.gpg" "$GNUPGHOME/pubring.gpg"
    openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=x -keyout x.key -out x.crt 2>/dev/null
    gpgsm --batch --disable-dirmngr --import x.crt 2>"$ERR"
    [ -s "$GNUPGHOME/pubring.kbx" ]
    gpg --batch --always-trust --no-auto-key-locate -e -r carol -o g.gpg d/f 2>"$ERR"
    finds -r carol
    was_to carol
    gpgconf --kill all
}

@test "--keyring, several of them, and --no-default-keyring" {
    small
    for ring in kbx gpg; do
        finds --keyring "$SUITE/carol.$ring" -r carol -r bob
        finds --keyring "$SUITE/carol.$ring" --keyring "$SUITE/dave.$ring" -r carol -r dave -r alice
        expect 1 nt -e --always-trust --no-default-keyring --keyring "$SUITE/carol.$ring" -r bob -o n.gpg d
        said "'bob': no such key"
        finds --no-default-keyring --keyring "$SUITE/carol.$ring" -r carol
    done
    misses 'no such key' dave
    bad 'nothing.gpg' -e --always-trust --keyring ./nothing.gpg -r bob -o n.gpg d
    absent n.gpg
}

@test "--keyring in gpg.conf, in the home without a slash, below ~/" {
    small
    home h
    cp "$SUITE/carol.gpg" "$GNUPGHOME/more.gpg"
    printf 'keyring more.gpg\n' >"$GNUPGHOME/gpg.conf"
    finds -r carol
    printf 'keyring gnupg-ring:more.gpg\n' >"$GNUPGHOME/gpg.conf"
    gpg --batch --always-trust --no-auto-key-locate -e -r carol -o g.gpg d/f 2>"$ERR"
    finds -r carol
    mkdir house
    cp "$SUITE/dave.gpg" house/rings.gpg
    # shellcheck disable=SC2088 # it is the program that knows what ~ is
    printf 'keyring ~/rings.gpg\n' >"$GNUPGHOME/gpg.conf"
    HOME=$PWD/house gpg --batch --always-trust --no-auto-key-locate -e -r dave -o g2.gpg d/f 2>"$ERR"
    HOME=$PWD/house finds -r dave
}

@test "the same name in two keyrings: the default one first, as gpg" {
    local fpr
    small
    home h
    gpg --batch --quiet --passphrase '' --quick-gen-key 'twice <carol@example.org>' ed25519 cert,sign never 2>"$ERR"
    fpr=$(gpg --batch --with-colons --list-keys twice | awk -F: '/^fpr/ { print $10; exit }')
    gpg --batch --quiet --passphrase '' --quick-add-key "$fpr" cv25519 encr never
    printf 'keyring %s\n' "$SUITE/carol.gpg" >"$GNUPGHOME/gpg.conf"
    gpg --batch --always-trust -e -r '*example.org' -o g.gpg d/f 2>"$ERR"
    finds -r '*example.org'
    same_recipient
    printf 'keyring %s\nkeyring %s\nno-default-keyring\n' "$SUITE/dave.gpg" "$SUITE/carol.gpg" >"$GNUPGHOME/gpg.conf"
    gpg --batch --yes --always-trust -e -r '*example.org' -o g.gpg d/f 2>"$ERR"
    finds -r '*example.org'
    same_recipient
    gpgconf --kill all
}

same_recipient() {
    diff <(gpg --batch --list-packets --list-only g.gpg 2>/dev/null | grep -o 'keyid .*') \
        <(gpg --batch --list-packets --list-only o.gpg 2>/dev/null | grep -o 'keyid .*') >&2
}

@test "keyboxd: started, asked, and named where there is none (T124)" {
    small
    home h
    printf 'use-keyboxd\n' >"$GNUPGHOME/common.conf"
    misses "keyboxd.*$GNUPGHOME|$GNUPGHOME.*keyboxd" carol
    mkdir -m 700 "$GNUPGHOME/store" bin
    (GNUPGHOME=$GNUPGHOME/store gpg --batch --quiet --import "$SUITE/keys/carol.pub" "$SUITE/keys/dave.pub" "$SUITE/keys/alice.pub")
    printf '#!/bin/sh\nexec %s %s/gnupg_keyboxd.py "$@"\n' "$PYTHON" "$BATS_TEST_DIRNAME" >bin/keyboxd
    chmod 755 bin/keyboxd
    PATH=$PWD/bin:$PATH
    finds -r carol
    was_to carol
    finds -r dave@example.org
    was_to dave
    finds -r "$(gpg --batch --with-colons --show-keys "$SUITE/keys/dave.pub" | awk -F: '/^fpr/ { print $10; exit }')"
    was_to dave
    misses 'no such key' bob
    grep -q '^SEARCH --openpgp -- <dave@example.org' "$GNUPGHOME/asked"
    # Verification finds the signer there as well.
    good --verify --signer alice@example.org "$SUITE/signed.gpg"
    kill "$(cat "$GNUPGHOME/keyboxd.pid")"
    rm -f "$(gpgconf --list-dirs socketdir)/S.keyboxd"
}

@test "GNUPGHOME, --homedir, and which of them wins" {
    small
    home h
    cp "$SUITE/carol.kbx" "$GNUPGHOME/pubring.kbx"
    finds -r carol
    misses "'$GNUPGHOME'" bob
    finds --homedir "$SUITE/home" -r bob
    rm -f o.gpg
    expect 1 nt -e --homedir "$SUITE/home" -r carol -o o.gpg d
    said "'$SUITE/home'"
    mkdir house
    ln -s "$GNUPGHOME" house/.gnupg
    expect 0 env -u GNUPGHOME HOME="$PWD/house" "$GPGTAR" --batch -e --always-trust -r carol -o o.gpg d
    expect 1 env -u GNUPGHOME HOME="$PWD/house" "$GPGTAR" --batch -e --always-trust -r bob -o p.gpg d
    said "'$PWD/house/.gnupg'"
    cd house
    expect 0 env GNUPGHOME=.gnupg "$GPGTAR" --batch -e --always-trust -r carol -o o.gpg ../d
}

@test "no home at all: what needs none works, the rest names where it looked" {
    small
    export GNUPGHOME=$PWD/nowhere
    bad "'$GNUPGHOME'" -e -r bob -o o.gpg d
    good -e -f "$SUITE/keys/bob.pub" -o o.gpg d
    good -c --passphrase-file "$SUITE/pw" -o c.gpg d
    good -t --passphrase-file "$SUITE/pw" c.gpg
    good -t --secret-key-file "$SUITE/keys/bob.sec" o.gpg
    good --create -o p.tar d
    absent nowhere
    expect 1 nt -q -t o.gpg
    said "$GNUPGHOME"
    absent nowhere/S.gpg-agent
}

@test "HOME of another user, as under sudo without -H: the home that was searched is named (T125)" {
    small
    mkdir -m 755 house
    mkdir -m 700 house/.gnupg
    user_folder user
    cp -r d user/d
    ! is_root || chown -R 65534:65534 user/d
    cd user
    # As root everything can be read; so one that is ours is asked by somebody else, where there is somebody else.
    if is_root; then
        expect 1 setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all env -u GNUPGHOME HOME="$BATS_TEST_TMPDIR/w/house" \
            ./gpgtar --batch -e -r bob -o o.gpg d
        said "$BATS_TEST_TMPDIR/w/house/.gnupg"
        absent o.gpg
    fi
    expect 1 env -u GNUPGHOME HOME="$BATS_TEST_TMPDIR/w/house" "$GPGTAR" --batch -e -r bob -o o.gpg d
    said "$BATS_TEST_TMPDIR/w/house/.gnupg"
    absent o.gpg
}

# A home of the user as whom ./gpgtar runs, which he may only read.
read_only_home() {
    user_folder user
    cp -r d user/
    mkdir -m 700 user/h
    cp "$SUITE/home/pubring.kbx" "$SUITE/home/trustdb.gpg" user/h
    cp -r "$SUITE/home/private-keys-v1.d" user/h
    ! is_root || chown -R 65534:65534 user
    chmod 500 user/h user/h/private-keys-v1.d
    cd user
}

# as_owner WORDS…: as the owner of that home.
as_owner() {
    if is_root; then
        setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all env GNUPGHOME="$PWD/h" HOME="$PWD" "$@"
    else
        env GNUPGHOME="$PWD/h" HOME="$PWD" "$@"
    fi
}

@test "a read-only home: public keys work; without a place for a socket the agent's absence is said" {
    small
    read_only_home
    expect 0 as_owner ./gpgtar --batch -e -r bob -o o.gpg d
    expect 0 as_owner ./gpgtar --batch --verify "$SUITE/signed.gpg"
    if [ "$(as_owner gpgconf --list-dirs socketdir 2>/dev/null)" = "$PWD/h" ]; then
        # The home cannot hold a socket, as on a volume of FAT: no agent can serve it.
        expect 1 as_owner ./gpgtar --batch -q -d o.gpg
        said "gpg-agent.*$PWD/h|$PWD/h.*gpg-agent"
        absent o_1_
        expect 1 as_owner ./gpgtar --batch -q -s -u alice -o s.gpg d
        said "gpg-agent.*$PWD/h|$PWD/h.*gpg-agent"
        absent s.gpg
    else
        expect 0 as_owner ./gpgtar --batch -q -t o.gpg
    fi
    as_owner gpgconf --kill all
}

@test "a home with a long name: public keys work; the socket's limit is said" {
    local long
    small
    long=$PWD/$(printf '%0120d' 0)
    mkdir -m 700 "$long"
    cp "$SUITE/home/pubring.kbx" "$SUITE/home/trustdb.gpg" "$long"
    cp -r "$SUITE/home/private-keys-v1.d" "$long"
    export GNUPGHOME=$long
    good -e -r bob -o o.gpg d
    good --verify "$SUITE/signed.gpg"
    good -t --secret-key-file "$SUITE/keys/bob.sec" o.gpg
    if [ "$(gpgconf --list-dirs socketdir)" = "$long" ]; then
        expect 1 nt -q -t o.gpg
        said 'gpg-agent'
        said "$long"
        said 'too long'
    else
        good -t o.gpg
    fi
}

@test "a socket that a file of the home redirects, as on volumes without sockets" {
    small
    home h
    cp "$SUITE/home/pubring.kbx" "$SUITE/home/trustdb.gpg" "$GNUPGHOME"
    if [ "$(gpgconf --list-dirs socketdir)" = "$GNUPGHOME" ]; then
        cp -r "$SUITE/home/private-keys-v1.d" "$GNUPGHOME"
        printf '%%Assuan%%\nsocket=%s/elsewhere\n' "$BATS_TEST_TMPDIR" >"$GNUPGHOME/S.gpg-agent"
        good -t "$SUITE/alice.gpg"
        [ -S "$BATS_TEST_TMPDIR/elsewhere" ]
        [ -f "$GNUPGHOME/S.gpg-agent" ]
        gpgconf --kill all
    fi
}

@test "work with public keys alone starts no agent and no keyboxd" {
    small
    gpgconf --kill all
    watched
    finds -r bob -r alice -R alice
    finds -f "$SUITE/keys/carol.pub"
    good --yes -c --passphrase-file "$SUITE/pw" -o o.gpg d
    good --verify "$SUITE/signed.gpg"
    good --verify --signer alice "$SUITE/signed.gpg"
    good -t "$SUITE/signed.gpg"
    mkdir out
    good -d -C out "$SUITE/signed.gpg"
    same_files d out/d
    good -t --passphrase-file "$SUITE/pw" o.gpg
    good -t --secret-key-file "$SUITE/keys/alice.sec" "$SUITE/alice.gpg"
    good -s --secret-key-file "$SUITE/keys/alice.sec" -o s.gpg d
    absent started "$GNUPGHOME/S.gpg-agent"
    # The trace is real: a signature by a key in the home needs the agent.
    expect 1 nt -q -s -u alice -o t.gpg d
    [ -e started ]
    absent t.gpg
}

@test "a keybox that gpg writes to at the same time" {
    small
    home h
    cp "$SUITE/home/pubring.kbx" "$SUITE/home/trustdb.gpg" "$GNUPGHOME"
    for i in 1 2 3 4 5 6 7 8; do
        gpg --batch --quiet --import "$SUITE/keys/carol.pub"
        gpg --batch --quiet --yes --delete-keys carol@example.org
    done &
    for i in 1 2 3 4 5 6 7 8 9 10 11 12; do
        rm -f o.gpg
        good -e -r bob -o o.gpg d
    done
    wait
}

@test "a keyring that is damaged or not one is named" {
    small
    home h
    head -c 3000 /dev/urandom >"$GNUPGHOME/pubring.kbx"
    expect 1 nt -q -e -r bob -o o.gpg d
    said "$GNUPGHOME"
    absent o.gpg
    head -c 700 "$SUITE/home/pubring.kbx" >"$GNUPGHOME/pubring.kbx"
    expect 1 nt -q -e -r bob -o o.gpg d
    said "$GNUPGHOME"
    absent o.gpg
}
