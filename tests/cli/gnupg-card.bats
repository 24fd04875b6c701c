#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
# A smartcard of software behind a real gpg-agent: SoftHSM's token through gnupg-pkcs11-scd in scdaemon's place.
load common

setup_file() {
    suite_home alice bob
    export SOFTHSM2_CONF=$SUITE/softhsm2.conf
    local module part
    module=$(ls /usr/lib/softhsm/libsofthsm2.so /usr/lib/*/softhsm/libsofthsm2.so 2>/dev/null | head -n 1)
    [ -n "$module" ] || die "SoftHSM is missing: apt-get install softhsm2 gnupg-pkcs11-scd opensc openssl"
    mkdir "$SUITE/tokens"
    printf 'directories.tokendir = %s\nobjectstore.backend = file\nlog.level = ERROR\n' "$SUITE/tokens" >"$SOFTHSM2_CONF"
    softhsm2-util --init-token --free --label card --pin 123456 --so-pin 123456
    for part in 01 02; do
        openssl req -x509 -newkey rsa:2048 -nodes -subj "/CN=$part" -days 36500 -keyout "$SUITE/$part.key" -out "$SUITE/$part.crt" 2>/dev/null
        openssl x509 -in "$SUITE/$part.crt" -outform der -out "$SUITE/$part.der"
        softhsm2-util --import "$SUITE/$part.key" --token card --label "$part" --id "$part" --pin 123456
        pkcs11-tool --module "$module" --login --pin 123456 --token-label card --write-object "$SUITE/$part.der" --type cert --id "$part" --label "$part"
    done >"$SUITE/token.log" 2>&1
    printf 'providers soft\nprovider-soft-library %s\n' "$module" >"$GNUPGHOME/gnupg-pkcs11-scd.conf"
    pinentry 123456
    printf 'scdaemon-program /usr/bin/gnupg-pkcs11-scd\npinentry-program %s/pinentry\nlog-file %s/agent.log\ndebug ipc\n' \
        "$SUITE" "$SUITE" >"$GNUPGHOME/gpg-agent.conf"
    gpgconf --kill all
    gpg-connect-agent 'LEARN --sendinfo' /bye >"$SUITE/learned"
    printf 'Key-Type: RSA\nKey-Grip: %s\nKey-Usage: sign\nSubkey-Type: RSA\nSubkey-Grip: %s\nSubkey-Usage: encrypt\nName-Real: card\nName-Email: card@example.org\n%%commit\n' \
        "$(awk '/^S KEYPAIRINFO.*01$/ { print $3 }' "$SUITE/learned")" "$(awk '/^S KEYPAIRINFO.*02$/ { print $3 }' "$SUITE/learned")" |
        gpg --batch --quiet --gen-key 2>>"$SUITE/gpg.log"
    gpg --batch --quiet --with-colons --list-secret-keys card | grep -q '^sec:.*:D276' || die "the keys are not on a card"
}

# pinentry PIN: one that always says this, and notes that it was asked. It has no card to insert: such questions it
# cancels.
pinentry() {
    cat >"$SUITE/pinentry" <<END
#!/bin/sh
echo OK
while read -r word rest; do
    echo "\$word" >>'$SUITE/asked'
    case \$word in
    GETPIN) echo "D $1"; echo OK ;;
    CONFIRM) echo 'ERR 83886179 cancelled' ;;
    BYE) echo OK; exit ;;
    *) echo OK ;;
    esac
done
END
    chmod 755 "$SUITE/pinentry"
}

# Nothing is cached: the daemons start anew.
fresh() {
    gpgconf --kill all
    : >"$SUITE/asked"
    : >"$SUITE/agent.log"
}

pins() {
    grep -c '^GETPIN' "$SUITE/asked" || true
}

# How often the card decrypted or signed.
card_did() {
    grep -c -- "-> $1 SoftHSM" "$SUITE/agent.log" || true
}

@test "sign and decrypt with keys on a card: the PIN is asked for once" {
    small
    fresh
    good -es -u card -r card -o o.gpg d
    [ "$(card_did PKSIGN)" = 1 ] && [ "$(pins)" = 1 ]
    fresh
    mkdir out
    good -d --signer card -C out o.gpg
    same_files d out/d
    [ "$(card_did PKDECRYPT)" = 1 ] && [ "$(pins)" = 1 ]
}

@test "gpg reads what the card signed, and we what gpg made with it" {
    small
    tarball d.tar
    good -s -u card -o s.gpg d
    expect 0 gpg --batch --status-fd 1 -o /dev/null --yes --verify s.gpg
    grep -q VALIDSIG "$OUT"
    gpg --batch --quiet -es -u card -r card --always-trust -o g.gpg d.tar
    mkdir out
    good -d --signer card -C out g.gpg
    same_files d out/d
}

@test "software keys come first: the card is not asked where another key opens the archive" {
    small
    for to in '-r card -r alice' '-r alice -r card' '-R card -R alice' '-R alice -R card' '-R bob -R card -r alice' '-r card -R alice'; do
        # shellcheck disable=SC2086 # words
        good --yes -e $to -o o.gpg d
        fresh
        good -t o.gpg
        [ "$(card_did PKDECRYPT)" = 0 ] && [ "$(pins)" = 0 ] || die "$to: the card was asked"
    done
}

# stranger ALGO [USAGE]: a certificate in ALGO.pub whose secret key nobody has.
stranger() {
    mkdir -m 700 "h$1"
    GNUPGHOME=$PWD/h$1 gpg --batch --quiet --passphrase '' --quick-gen-key "$1" "$1" "${2-encr}" never 2>"$ERR"
    GNUPGHOME=$PWD/h$1 gpg --batch --quiet --export >"$1.pub"
    GNUPGHOME=$PWD/h$1 gpgconf --kill all
}

@test "a hidden recipient whose key is on the card, among strangers: one decryption, one PIN" {
    small
    stranger rsa2048
    stranger rsa3072
    stranger future-default default # cv25519
    local to
    for to in '-R card' '-F rsa3072.pub -F future-default.pub -R card' '-R card -F rsa2048.pub -F rsa3072.pub'; do
        # shellcheck disable=SC2086 # words
        good --yes -e $to -o o.gpg d
        fresh
        good -t o.gpg
        [ "$(card_did PKDECRYPT)" = 1 ] && [ "$(pins)" = 1 ] || die "$to: decrypted $(card_did PKDECRYPT) times"
    done
    # What may be for the card as well comes first: tried in vain, and then no more. (Or its number shows that it is not.)
    good --yes -e -F rsa2048.pub -R card -o o.gpg d
    fresh
    nt -t o.gpg >"$OUT" 2>"$ERR" || grep -q 'a key on a card is tried once' "$ERR"
    # The PIN is not counted here: gnupg-pkcs11-scd logs in anew by itself where the token fails.
    [ "$(card_did PKDECRYPT)" = 1 ]
}

@test "a wrong PIN: said so, nothing written, and the card is asked no more" {
    small
    good -e -r card -o o.gpg d
    pinentry 999999
    fresh
    expect 1 nt -q -d o.gpg
    [ -s "$ERR" ]
    only d o.gpg
    pinentry 123456
    fresh
    expect 0 nt -q -t o.gpg
    only d o.gpg
}
