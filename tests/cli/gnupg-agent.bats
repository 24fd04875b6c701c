#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
# Secret keys and passphrases at a real gpg-agent: loopback, a scripted pinentry, and agents that fail.
load common

setup_file() {
    suite_home alice
    cat >"$SUITE/parameters" <<'EOF'
Key-Type: RSA
Key-Length: 2048
Key-Usage: sign
Subkey-Type: RSA
Subkey-Length: 2048
Subkey-Usage: encrypt
Name-Real: rsa
Name-Email: rsa@example.org
Passphrase: a passphrase
%commit
Key-Type: EDDSA
Key-Curve: ed25519
Key-Usage: sign
Subkey-Type: ECDH
Subkey-Curve: cv25519
Subkey-Usage: encrypt
Name-Real: ecc
Name-Email: ecc@example.org
Passphrase: a passphrase
%commit
Key-Type: ECDSA
Key-Curve: nistp256
Key-Usage: sign
Subkey-Type: ECDH
Subkey-Curve: nistp256
Subkey-Usage: encrypt
Name-Real: nist
Name-Email: nist@example.org
Passphrase: a passphrase
%commit
EOF
    gpg --batch --quiet --gen-key "$SUITE/parameters" 2>"$SUITE/gpg.log"
    # Elgamal, from the samples: to make one takes long. It has no passphrase.
    gpg --batch --quiet --import "$BATS_TEST_DIRNAME/../../testdata/samples/keys/dsaelg.sec.asc"
    printf 'B6B1D54490D77B6336977D4A27CEBB73268D0422:6:\n' | gpg --batch --quiet --import-ownertrust
    export PINENTRY=$SUITE/pinentry
    # Its answers are the lines of $SUITE/answers, one each time; then it cancels. What it is told goes to $SUITE/asked.
    cat >"$PINENTRY" <<END
#!/bin/sh
echo OK
while read -r word rest; do
    echo "\$word \$rest" >>'$SUITE/asked'
    case \$word in
    GETPIN)
        answer=\$(head -n 1 '$SUITE/answers')
        sed -i 1d '$SUITE/answers'
        case \$answer in
        '') echo 'ERR 83886179 cancelled' ;;
        KILL) kill -9 \$PPID; exit ;;
        TOUCH*) touch "\${answer#TOUCH }"; echo 'D a passphrase'; echo OK ;;
        *) echo "D \$answer"; echo OK ;;
        esac ;;
    CONFIRM) echo 'ERR 83886179 cancelled' ;;
    BYE) echo OK; exit ;;
    *) echo OK ;;
    esac
done
END
    chmod 755 "$PINENTRY"
    printf 'pinentry-program %s\nallow-loopback-pinentry\n' "$PINENTRY" >"$GNUPGHOME/gpg-agent.conf"
    cd "$SUITE"
    small
    "$GPGTAR" --batch -e -r B6B1D54490D77B6336977D4A27CEBB73268D0422 -o "$SUITE/elg.gpg" d
    for name in rsa ecc nist; do
        "$GPGTAR" --batch -e -r "$name@example.org" -o "$SUITE/$name.gpg" d
    done
    "$GPGTAR" --batch -e -R rsa@example.org -R ecc@example.org -o "$SUITE/hidden.gpg" d
}

# answers LINE…: what the pinentry will say; nothing is cached.
answers() {
    gpgconf --kill gpg-agent
    : >"$SUITE/asked"
    printf '%s\n' "$@" >"$SUITE/answers"
}

# times_asked N: a passphrase was asked for so often.
times_asked() {
    [ "$(grep -c '^GETPIN' "$SUITE/asked")" = "$1" ] || die "asked $(grep -c '^GETPIN' "$SUITE/asked") times, not $1"
}

no_process() {
    ! kill -0 "$1" 2>/dev/null
}

LOOP="--pinentry-mode loopback"

@test "loopback: a passphrase from a file and from a descriptor, with keys of every kind" {
    small
    answers
    for name in rsa ecc nist; do
        gpgconf --kill gpg-agent
        # shellcheck disable=SC2086 # words
        good $LOOP --passphrase-file "$SUITE/pw" -s -u "$name@example.org" -o "$name.s" d
        gpgconf --kill gpg-agent
        # shellcheck disable=SC2086
        expect 0 "$GPGTAR" --batch $LOOP --passphrase-fd 7 -es -u "$name@example.org" -r alice -o "$name.es" d 7<"$SUITE/pw" </dev/null
        good --verify --signer "$name@example.org" "$name.s"
        gpgconf --kill gpg-agent
        # shellcheck disable=SC2086
        good $LOOP --passphrase-file "$SUITE/pw" -t "$SUITE/$name.gpg"
        gpgconf --kill gpg-agent
        # shellcheck disable=SC2086
        expect 0 "$GPGTAR" --batch $LOOP --passphrase-fd 7 -t "$SUITE/$name.gpg" 7<"$SUITE/pw" </dev/null
    done
    # A given passphrase answers without the mode as well: nobody expects a window then.
    gpgconf --kill gpg-agent
    good --passphrase-file "$SUITE/pw" -t "$SUITE/rsa.gpg"
    times_asked 0
}

@test "loopback with a wrong passphrase: said so, nothing written" {
    small
    answers
    echo old >o.gpg
    for name in rsa ecc; do
        gpgconf --kill gpg-agent
        # shellcheck disable=SC2086
        bad 'passphrase' $LOOP --passphrase-file "$SUITE/wrong-pw" -d "$SUITE/$name.gpg"
        # shellcheck disable=SC2086
        bad 'passphrase' $LOOP --passphrase-file "$SUITE/wrong-pw" -s -u "$name@example.org" --yes -o o.gpg d
    done
    [ "$(cat o.gpg)" = old ]
    only d o.gpg
}

@test "Elgamal and DSA" {
    small
    answers
    mkdir out
    good -d -C out "$SUITE/elg.gpg"
    same_files d out/d
    good -s -u B6B1D54490D77B6336977D4A27CEBB73268D0422 -o s.gpg d
    good --verify --signer B6B1D54490D77B6336977D4A27CEBB73268D0422 s.gpg
    times_asked 0
}

@test "pinentry: asked once, described, and cached by the agent" {
    small
    answers 'a passphrase' 'a passphrase'
    good -es -u rsa@example.org -r rsa@example.org -o o.gpg d
    times_asked 1
    grep -q '^SETDESC .*rsa <rsa@example.org>' "$SUITE/asked"
    grep -q '^SETDESC .*2048-bit RSA key' "$SUITE/asked"
    good --yes -s -u rsa@example.org -o o2.gpg d
    times_asked 1
    answers 'a passphrase'
    mkdir out
    good -d -C out "$SUITE/ecc.gpg"
    same_files "$SUITE/d" out/d
    times_asked 1
}

@test "pinentry: wrong, then right" {
    answers 'wrong' 'a passphrase'
    good -t "$SUITE/ecc.gpg"
    times_asked 2
}

@test "pinentry: wrong three times" {
    small
    answers wrong wrong wrong wrong
    bad 'wrong passphrase for secret key' -d "$SUITE/ecc.gpg"
    times_asked 3
    answers wrong wrong wrong wrong
    bad 'wrong passphrase for secret key' -s -u ecc@example.org -o o.gpg d
    only d
}

@test "pinentry: cancelled" {
    small
    echo old >o.gpg
    answers
    bad 'cancel' -d "$SUITE/rsa.gpg"
    bad 'cancel' -s -u rsa@example.org --yes -o o.gpg d
    bad 'cancel' -es -u rsa@example.org -r alice --yes -o o.gpg d
    bad 'cancel' -c --yes -o o.gpg d
    [ "$(cat o.gpg)" = old ]
    only d o.gpg
}

@test "--pinentry-mode cancel and error: never a question" {
    small
    answers 'a passphrase' 'a passphrase'
    expect 1 nt -q --pinentry-mode cancel -d "$SUITE/rsa.gpg"
    expect 1 nt -q --pinentry-mode error -d "$SUITE/rsa.gpg"
    expect 1 nt -q --pinentry-mode cancel -s -u rsa@example.org -o o.gpg d
    times_asked 0
    only d
}

@test "the agent is killed while it asks: said so, nothing written" {
    small
    echo old >o.gpg
    answers KILL
    bad "gpg-agent.*$GNUPGHOME|$GNUPGHOME.*gpg-agent" -s -u ecc@example.org --yes -o o.gpg d
    answers KILL
    bad "gpg-agent.*$GNUPGHOME|$GNUPGHOME.*gpg-agent" -d "$SUITE/ecc.gpg"
    [ "$(cat o.gpg)" = old ]
    only d o.gpg
    # The next run starts another.
    answers 'a passphrase'
    good -t "$SUITE/ecc.gpg"
}

@test "the agent was killed before: another is started" {
    answers 'a passphrase' 'a passphrase'
    good -t "$SUITE/ecc.gpg"
    pid=$(gpg-connect-agent 'GETINFO pid' /bye | awk '/^D/ { print $2 }')
    kill -9 "$pid"
    await no_process "$pid"
    good -t "$SUITE/ecc.gpg"
    times_asked 2
}

@test "no gpg-agent to be had: said so, nothing written; a key in a file needs none" {
    small
    answers
    printf 'agent-program %s/nothing\n' "$PWD" >"$GNUPGHOME/gpg.conf"
    expect 1 nt -q -s -u ecc@example.org -o o.gpg d
    cp "$ERR" sign.err
    expect 1 nt -q -d "$SUITE/ecc.gpg"
    cp "$ERR" decrypt.err
    good -s --secret-key-file "$SUITE/keys/alice.sec" -o file.gpg d
    rm "$GNUPGHOME/gpg.conf"
    grep -q "gpg-agent runs for $GNUPGHOME" sign.err
    grep -q "gpg-agent runs for $GNUPGHOME" decrypt.err
    only d file.gpg sign.err decrypt.err
}

@test "hidden recipients with several secret keys" {
    # Every key is tried on each packet at most once.
    answers 'a passphrase' 'a passphrase' 'a passphrase' 'a passphrase'
    mkdir out
    good -d -C out "$SUITE/hidden.gpg"
    same_files "$SUITE/d" out/d
    small
    good -e -R alice -R rsa@example.org -o o.gpg d
    answers
    # shellcheck disable=SC2086
    expect 0 nt $LOOP --passphrase-file "$SUITE/pw" -t o.gpg
    times_asked 0
}

@test "-c by pinentry: asked for with a repetition, and again when it is read" {
    small
    answers "1 for the archive" "1 for the archive" "1 for the archive"
    good -c -o c.gpg d
    good -t c.gpg
    printf '1 for the archive\n' >pw
    good -t --passphrase-file pw c.gpg
    # shellcheck disable=SC2086
    expect 0 gpg --batch $LOOP --passphrase-file pw -o /dev/null --yes -d c.gpg
    # A wrong one is asked for again.
    answers wrong '1 for the archive'
    good -t c.gpg
    times_asked 2
}

@test "-c by a pinentry that cannot repeat: two that differ are refused" {
    small
    answers "1 of two" "2 of two"
    expect 1 nt -q -c -o c.gpg d
    absent c.gpg
}

@test "the passphrase is asked for once and first, before a file is looked at (T111)" {
    small
    answers "TOUCH $PWD/d/made-by-pinentry"
    good -es -u rsa@example.org -r rsa@example.org -o o.gpg d
    times_asked 1
    answers 'a passphrase'
    good -t o.gpg
    grep -q 'd/made-by-pinentry$' "$OUT"
    # The question comes before the names are read.
    answers
    bad cancel -s -u rsa@example.org -o n.gpg -T nothing
    absent n.gpg
}
