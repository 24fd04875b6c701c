#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
# A folder with every kind of member comes back the same: each mode, each user, any locale.
load common

setup_file() {
    suite_home alice bob
    $TREE make "$SUITE/tree"
    # The same for a user who may not read what is root's.
    user_folder "$SUITE/user"
    (umask 022 && as_user "$PYTHON" "$BATS_TEST_DIRNAME/tree.py" make "$SUITE/user/tree")
    cp "$SUITE"/keys/* "$SUITE/pw" "$SUITE/user/"
    chmod -R a+r "$SUITE/user/"*.sec "$SUITE/user/"*.pub "$SUITE/user/pw"
}

# round_trip ARGUMENTS…: makes a.gpg of the tree with them, extracts it, compares.
round_trip() {
    good "$@" -o "$PWD/a.gpg" -C "$SUITE" tree
    mkdir out
    good -d -C out --passphrase-file "$SUITE/pw" a.gpg
    same_tree "$SUITE/tree" out/tree
    only a.gpg out
}

@test "plain tar: --create, --extract" {
    good --create -o "$PWD/a.tar" -C "$SUITE" tree
    mkdir out
    good --extract -C out a.tar
    same_tree "$SUITE/tree" out/tree
}

@test "plain tar: --skip-crypto with -e and -d, through pipes" {
    nt --skip-crypto -e -C "$SUITE" tree >a.tar
    mkdir out
    "$GPGTAR" --batch --skip-crypto -d -C out <a.tar
    same_tree "$SUITE/tree" out/tree
}

@test "-c" {
    round_trip -c --passphrase-file "$SUITE/pw"
}

@test "-e -r" {
    round_trip -e -r alice
}

@test "-e -r, several recipients: each can open it" {
    small "$BATS_TEST_TMPDIR/d"
    good -e -r alice -r bob -o "$PWD/a.gpg" -C "$BATS_TEST_TMPDIR" d
    for who in alice bob; do
        mkdir "$who"
        expect 0 env GNUPGHOME=/nonexistent "$GPGTAR" --batch --secret-key-file "$SUITE/keys/$who.sec" -d -C "$who" a.gpg
        same_tree "$BATS_TEST_TMPDIR/d" "$who/d"
    done
}

@test "-e -f FILE, opened with --secret-key-file, without a home" {
    export GNUPGHOME=$BATS_TEST_TMPDIR/none
    good -e -f "$SUITE/keys/bob.pub" -o "$PWD/a.gpg" -C "$SUITE" tree
    mkdir out
    good -d -C out --secret-key-file "$SUITE/keys/bob.sec" a.gpg
    same_tree "$SUITE/tree" out/tree
    absent "$GNUPGHOME"
}

@test "-s" {
    round_trip -s -u alice
}

@test "-s and -es with --secret-key-file and --keyring, without a home" {
    export GNUPGHOME=$BATS_TEST_TMPDIR/none
    small "$BATS_TEST_TMPDIR/d"
    good -s --secret-key-file "$SUITE/keys/alice.sec" -o "$PWD/s.gpg" -C "$BATS_TEST_TMPDIR" d
    good -es --secret-key-file "$SUITE/keys/alice.sec" -f "$SUITE/keys/bob.pub" -o "$PWD/es.gpg" -C "$BATS_TEST_TMPDIR" d
    mkdir s es
    good -d --require-signature --keyring "$SUITE/keys/alice.pub" -C s s.gpg
    good -d --require-signature --keyring "$SUITE/keys/alice.pub" --secret-key-file "$SUITE/keys/bob.sec" -C es es.gpg
    same_tree "$BATS_TEST_TMPDIR/d" s/d
    same_tree "$BATS_TEST_TMPDIR/d" es/d
}

@test "-es" {
    round_trip -es -u alice -r bob
    mkdir again
    good -d --require-signature --signer "$(fingerprint alice)" -C again a.gpg
    same_tree "$SUITE/tree" again/tree
}

@test "-ce opens with the passphrase and with the key" {
    round_trip -ce -r alice --passphrase-file "$SUITE/pw"
    small "$BATS_TEST_TMPDIR/d"
    good -c -e -r alice --passphrase-file "$SUITE/pw" -o "$PWD/b.gpg" -C "$BATS_TEST_TMPDIR" d
    mkdir key pass
    good -d -C key b.gpg
    expect 0 env GNUPGHOME="$BATS_TEST_TMPDIR/none" "$GPGTAR" --batch --passphrase-file "$SUITE/pw" -d -C pass b.gpg
    same_tree "$BATS_TEST_TMPDIR/d" key/d
    same_tree "$BATS_TEST_TMPDIR/d" pass/d
}

@test "-esc" {
    round_trip -esc -u alice -r bob --passphrase-file "$SUITE/pw"
}

@test "--jobs 1 gives what --jobs 4 gives" {
    round_trip -es -u alice -r bob --jobs 1
    mkdir one
    good -d --jobs 1 -C one a.gpg
    same_tree "$SUITE/tree" one/tree
    good -e -r bob --jobs 4 -o "$PWD/four.gpg" -C "$SUITE" tree
    good -e -r bob --jobs 1 -o "$PWD/one.gpg" -C "$SUITE" tree
    gpg --quiet --batch -d four.gpg 2>"$ERR" | sha256sum >four
    gpg --quiet --batch -d one.gpg 2>"$ERR" | sha256sum >one.sum
    cmp four one.sum
}

@test "each compression and level" {
    small "$BATS_TEST_TMPDIR/d"
    for how in "--compress-algo none" "--compress-algo zip" "--compress-algo zlib" "--compress-algo bzip2" --no-compress "-z 0" \
        "-z 1" "-z 6" "-z 9" "--compress-algo bzip2 --bzip2-compress-level 1"; do
        mkdir out
        # shellcheck disable=SC2086 # words
        good -e -r alice $how -o "$PWD/a.gpg" -C "$BATS_TEST_TMPDIR" d
        good -d -C out a.gpg
        same_tree "$BATS_TEST_TMPDIR/d" out/d
        rm -r out a.gpg
    done
}

@test "--armor" {
    small "$BATS_TEST_TMPDIR/d"
    good -es -u alice -r bob --armor -o "$PWD/a.asc" -C "$BATS_TEST_TMPDIR" d
    [ "$(head -n 1 a.asc)" = "-----BEGIN PGP MESSAGE-----" ]
    [ "$(tail -n 1 a.asc)" = "-----END PGP MESSAGE-----" ]
    mkdir out
    good -d -C out a.asc
    same_tree "$BATS_TEST_TMPDIR/d" out/d
}

@test "LC_ALL=C" {
    export LC_ALL=C
    round_trip -es -u alice -r bob
}

@test "env -i, plain and encrypted" {
    expect 0 env -i "$GPGTAR" --create -o "$PWD/a.tar" -C "$SUITE" tree
    mkdir plain out
    expect 0 env -i "$GPGTAR" --extract -C plain a.tar
    same_tree "$SUITE/tree" plain/tree
    expect 0 env -i GNUPGHOME="$GNUPGHOME" "$GPGTAR" -es -u alice -r bob -o "$PWD/a.gpg" -C "$SUITE" tree
    expect 0 env -i GNUPGHOME="$GNUPGHOME" "$GPGTAR" -d -C out a.gpg
    same_tree "$SUITE/tree" out/tree
}

@test "with descriptors 0, 1 and 2 closed" {
    small "$BATS_TEST_TMPDIR/d"
    mkdir out
    nt -e -r alice -o "$PWD/a.gpg" -C "$BATS_TEST_TMPDIR" d <&- >&- 2>&-
    "$GPGTAR" --batch -d -C out a.gpg <&- >&- 2>&-
    same_tree "$BATS_TEST_TMPDIR/d" out/d
}

@test "as a user who is not root" {
    cd "$SUITE/user"
    export GNUPGHOME=/nonexistent
    expect 0 as_user ./gpgtar --batch --create -o a.tar tree
    expect 0 as_user ./gpgtar --batch -es --secret-key-file alice.sec -f bob.pub -o a.gpg tree
    expect 0 as_user env LC_ALL=C ./gpgtar --batch -c --passphrase-file pw -o c.gpg tree
    as_user mkdir out plain c
    expect 0 as_user ./gpgtar --batch --extract -C plain a.tar
    expect 0 as_user ./gpgtar --batch -d --require-signature --keyring ./alice.pub --secret-key-file bob.sec -C out a.gpg
    expect 0 as_user env -i ./gpgtar --batch --passphrase-file pw -d -C c c.gpg
    same_tree tree plain/tree
    same_tree tree out/tree
    same_tree tree c/tree
}

@test "modes under umask 077 and 000; -p keeps all of them as root" {
    mkdir d d/sticky d/private
    for mode in 4755 2755 6711 0700 0640; do
        echo x >"d/$mode"
        chmod "$mode" "d/$mode"
    done
    chmod 1777 d/sticky
    chmod 0700 d/private
    chmod 0777 d
    good -e -r alice -o a.gpg d
    for mask in 077 000; do
        (umask $mask && mkdir "p$mask" "u$mask")
        (umask $mask && good -d -p -C "p$mask" a.gpg)
        ! is_root || same_tree d "p$mask/d"
        (umask $mask && good -d -C "u$mask" a.gpg)
    done
    [ "$(stat -c %a u077/d/0640 u077/d/4755 u077/d u077/d/sticky | tr '\n' ' ')" = "600 700 700 700 " ]
    [ "$(stat -c %a u000/d/0640 u000/d/4755 u000/d/2755 u000/d | tr '\n' ' ')" = "640 755 755 777 " ]
}
