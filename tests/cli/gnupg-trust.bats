#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
# Whom an archive is encrypted to: trust, and keys that cannot be used. gpg is asked the same each time.
load common

# keys NAME…: certificates of strangers, made in a home of their own.
keys() {
    local name
    for name in "$@"; do
        printf '%%no-protection\nKey-Type: EDDSA\nKey-Curve: ed25519\nKey-Usage: sign\nSubkey-Type: ECDH\nSubkey-Curve: cv25519\n'
        printf 'Subkey-Usage: encrypt\nName-Real: %s\nName-Email: %s@example.org\nCreation-Date: 20200101T000000\n%%commit\n' "$name" "$name"
    done | gpg --batch --quiet --gen-key 2>>"$SUITE/gpg.log"
}

quietly() {
    gpg --batch --quiet --no-tty --yes --pinentry-mode loopback --passphrase '' "$@" 2>>"$SUITE/gpg.log"
}

# edit FINGERPRINT COMMAND…
edit() {
    local fpr=$1
    shift
    printf '%s\n' "$@" save | gpg --no-tty --quiet --command-fd 0 --status-fd 2 --edit-key "$fpr" 2>>"$SUITE/gpg.log"
}

setup_file() {
    local strangers=$SUITE name
    suite_home
    strangers=$SUITE/s
    mkdir -m 700 "$strangers"
    export GNUPGHOME=$strangers
    keys full signed friend marginal never unknown disabled revoked signonly expired twin
    quietly --quick-set-expire "$(fingerprint expired)" 20200201T000000
    # Two certificates with one address: the older has expired.
    quietly --quick-set-expire "$(fingerprint twin)" 20200201T000000
    quietly --quick-gen-key 'twin two <twin@example.org>' ed25519 cert,sign never
    quietly --quick-add-key "$(gpg --batch --with-colons --list-keys '=twin two <twin@example.org>' | awk -F: '/^fpr/ { print $10; exit }')" cv25519 encr never
    quietly --quick-gen-key 'uids <uids@example.org>' ed25519 cert,sign never
    quietly --quick-add-key "$(fingerprint uids)" cv25519 encr never
    quietly --quick-add-uid "$(fingerprint uids)" 'unsure <unsure@example.org>'
    edit "$(fingerprint signonly)" 'key 1' delkey y
    edit "$(fingerprint revoked)" revkey y 0 '' y
    quietly --export-secret-keys "$(fingerprint friend)" >"$SUITE/friend.sec"
    quietly --export >"$SUITE/all.pub"
    for name in unknown full twin expired; do
        quietly --export "$(fingerprint $name)" >"$SUITE/keys/$name.pub"
    done
    gpgconf --kill all
    export GNUPGHOME=$SUITE/home
    keys me
    quietly --import "$SUITE/friend.sec"
    quietly --import "$SUITE/all.pub"
    # I vouch for full and for friend, friend for signed; friend's word counts half after that.
    quietly --quick-lsign-key "$(fingerprint full)"
    quietly --quick-lsign-key "$(fingerprint friend)"
    quietly --quick-lsign-key "$(fingerprint uids)" 'uids <uids@example.org>'
    quietly --quick-lsign-key "$(fingerprint never)"
    quietly --default-key "$(fingerprint friend)" --quick-sign-key "$(fingerprint signed)"
    quietly --default-key "$(fingerprint friend)" --quick-sign-key "$(fingerprint marginal)"
    printf '%s:6:\n%s:4:\n%s:3:\n' "$(fingerprint me)" "$(fingerprint friend)" "$(fingerprint never)" | quietly --import-ownertrust
    edit "$(fingerprint disabled)" disable
    quietly --check-trustdb
}

# Exit code, and what the status lines say about recipients.
verdict() {
    local code=$1 file=$2
    [ "$code" = 0 ] || code=refused
    printf '%s %s' "$code" "$(sed -n 's/^\[GNUPG:\] \(INV_RECP [0-9]*\|NO_RECP\).*/\1/p' "$file" | tr '\n' ' ')"
}

# both EXPECTED WORDS…: gpg and this program both come to that result, and nothing is written where it is a refusal.
both() {
    local want=$1 theirs=0 ours=0
    shift
    rm -f a.gpg b.gpg
    gpg --batch --no-tty --no-auto-key-locate -e "$@" --status-fd 3 -o a.gpg f 3>theirs 2>theirs.err </dev/null || theirs=$?
    nt -e "$@" --status-fd 3 -o b.gpg f 3>ours 2>"$ERR" || ours=$?
    [ "$(verdict "$theirs" theirs)$(verdict "$ours" ours)" = "$want$want" ] || {
        echo "$*: $want, but gpg: $(verdict "$theirs" theirs), we: $(verdict "$ours" ours)" >&2
        cat theirs.err "$ERR" >&2
        return 1
    }
    [ "$ours" = 0 ] || absent b.gpg
}

# all_ways NAME EXPECTED…: by address and by fingerprint, with each trust model: pgp, auto, direct, always.
all_ways() {
    local name=$1 want=$2 way model
    shift
    for way in "$name@example.org" "$(of "$name@example.org")"; do
        for model in pgp auto direct always; do
            want=$1
            [ "$model" != direct ] || want=$2
            [ "$model" != always ] || want=$3
            both "$want" --trust-model "$model" -r "$way"
        done
    done
}

# The fingerprint of the first certificate with this address.
of() {
    gpg --batch --with-colons --list-keys "<$1>" | awk -F: '/^fpr/ { print $10; exit }'
}

UNTRUSTED='refused INV_RECP 10 '

@test "each degree of validity with each trust model, as gpg" {
    echo x >f
    #                 pgp, auto      direct         always
    all_ways me       '0 '           '0 '           '0 '
    all_ways full     '0 '           "$UNTRUSTED"   '0 '
    all_ways friend   '0 '           '0 '           '0 '
    all_ways marginal '0 '           "$UNTRUSTED"   '0 '
    all_ways unknown  "$UNTRUSTED"   "$UNTRUSTED"   '0 '
    # The owner is not trusted to certify others, but the key is his.
    all_ways never    '0 '           'refused INV_RECP 10 ' '0 '
}

@test "the validity is that of the user id that was asked for" {
    echo x >f
    both '0 ' -r uids@example.org
    both "$UNTRUSTED" -r unsure@example.org
    both "$UNTRUSTED" -r '=unsure <unsure@example.org>'
    both '0 ' -r "$(of uids@example.org)"
    both '0 ' --always-trust -r unsure@example.org
    both "$UNTRUSTED" --trust-model pgp -r "<unsure@example.org>"
}

@test "one untrusted recipient among good ones, hidden ones, and with -c" {
    echo x >f
    both "$UNTRUSTED" -r full@example.org -r unknown@example.org
    both "$UNTRUSTED" -r unknown@example.org -r full@example.org
    both "$UNTRUSTED" -R unknown@example.org
    both "$UNTRUSTED" -c --passphrase-file "$SUITE/pw" --pinentry-mode loopback -r unknown@example.org
}

@test "a full fingerprint does not stand for trust, as in gpg" {
    echo x >f
    both "$UNTRUSTED" -r "$(of unknown@example.org)"
    both "$UNTRUSTED" -r "0x$(of unknown@example.org)"
    both "$UNTRUSTED" -r "$(gpg --batch --with-colons --list-keys unknown@example.org | awk -F: '/^sub/ { print $5 }')!"
}

@test "a refusal in batch mode names the fingerprint and what to do (T118)" {
    small
    bad "unknown@example.org.*$(of unknown@example.org).*--always-trust" -e -r unknown@example.org -o o.gpg d
    absent o.gpg
    good -e -r unknown@example.org --always-trust -o o.gpg d
    good -e -r unknown@example.org --trust-model always --yes -o o.gpg d
}

@test "a key from a file needs no trust" {
    echo x >f
    both '0 ' -f "$SUITE/keys/unknown.pub"
    both '0 ' -F "$SUITE/keys/unknown.pub"
    both '0 ' -f "$SUITE/keys/unknown.pub" -r full@example.org
    both "$UNTRUSTED" -f "$SUITE/keys/unknown.pub" -r unknown@example.org
}

@test "a key from a file, with an empty home and without an agent (T120)" {
    small
    mkdir -m 700 h
    GNUPGHOME=$PWD/h good -e -f "$SUITE/keys/unknown.pub" -o o.gpg d
    empty_folder h
    bad 'expired' -e -f "$SUITE/keys/expired.pub" -o p.gpg d
    bad 'no usable certificate|does not exist' -e -f nothing -o p.gpg d
    echo rubbish >rubbish
    bad 'rubbish' -e -f rubbish -o p.gpg d
    absent p.gpg
}

@test "encrypt-to and default-recipient need no trust, as in gpg" {
    echo x >f
    both '0 ' -r full@example.org --encrypt-to unknown@example.org
    both '0 ' -r full@example.org --hidden-encrypt-to unknown@example.org
    both '0 ' -r full@example.org --encrypt-to disabled@example.org
    both '0 ' --default-recipient unknown@example.org
    both '0 ' --default-recipient disabled@example.org
}

@test "without a trust database nobody is trusted but by option" {
    echo x >f
    mkdir -m 700 h
    cp "$GNUPGHOME/pubring.kbx" h
    export GNUPGHOME=$PWD/h
    expect 1 nt -e -r full@example.org -o b.gpg f
    said 'nothing says'
    absent b.gpg
    good -e --trust-model always -r full@example.org -o b.gpg f
    absent h/trustdb.gpg
    # gpg makes an empty one, and says the same.
    both "$UNTRUSTED" -r full@example.org
}

@test "a trust database that is not one: a warning, and nobody is trusted" {
    small
    mkdir -m 700 h
    cp "$GNUPGHOME/pubring.kbx" h
    seq 1000 >h/trustdb.gpg
    export GNUPGHOME=$PWD/h
    expect 1 nt -e -r full@example.org -o b.gpg d
    said 'trustdb.gpg'
    absent b.gpg
}

# unusable NAME WORD REASON [ADDRESS]: refused by name with the fingerprint, with each trust model, alone and among good
# ones; nothing is written and what is there stays (T116, T117).
unusable() {
    local name=$1 word=$2 reason=$3 who model fpr
    fpr=$(of "$name@example.org")
    echo old >o.gpg
    for who in "$name@example.org" "$fpr"; do
        for model in pgp always; do
            # gpg refuses as well.
            expect 2 gpg --batch --no-tty --no-auto-key-locate --trust-model "$model" -e -r "$who" -o a.gpg f
            bad "recipient '$who': .*$fpr.*$word" -e --trust-model "$model" -r "$who" --yes -o o.gpg d
            bad "recipient '$who': .*$fpr.*$word" -e --trust-model "$model" -r full@example.org -r "$who" --yes -o o.gpg d
            bad "recipient '$who': .*$fpr.*$word" -es -u me --trust-model "$model" -r "$who" -r full@example.org -o new.gpg d
        done
        expect 1 nt --status-fd 2 -e -r "$who" -o new.gpg d
        grep -qx "\[GNUPG:\] INV_RECP $reason $who" "$ERR"
        [ "$(tail -n 1 "$ERR" | cut -d' ' -f1,2,3)" = '[GNUPG:] FAILURE -' ] || tail -n 1 "$ERR" | grep -q FAILURE
    done
    [ "$(cat o.gpg)" = old ]
    absent new.gpg
    # Nothing half-made is left beside it either.
    [ -z "$(find . -name '*.tmp*' -o -name '.o.gpg*' -o -name '.new*')" ]
}

@test "an expired recipient" {
    small
    echo x >f
    unusable expired 'has expired' 5
}

@test "a revoked recipient" {
    small
    echo x >f
    unusable revoked 'has been revoked' 4
}

@test "a recipient whose key only signs" {
    small
    echo x >f
    unusable signonly 'encrypt' 3
}

@test "a disabled recipient" {
    small
    echo x >f
    echo old >o.gpg
    bad "$(of disabled@example.org) is disabled" -e -r disabled@example.org --yes -o o.gpg d
    bad "$(of disabled@example.org) is disabled" -e --always-trust -r disabled@example.org --yes -o o.gpg d
    bad "$(of disabled@example.org) is disabled" -e -r full@example.org -r "$(of disabled@example.org)" --yes -o o.gpg d
    [ "$(cat o.gpg)" = old ]
    both 'refused INV_RECP 13 ' -r "$(of disabled@example.org)"
    # Where trust does not matter gpg takes it when it is named by its key.
    both '0 ' --always-trust -r "$(of disabled@example.org)"
}

@test "an unknown recipient" {
    small
    echo old >o.gpg
    for who in nobody nobody@example.org 0123456789ABCDEF 0123456789ABCDEF0123456789ABCDEF01234567 '=nobody' ; do
        bad "recipient '$who': no such key in '$GNUPGHOME'" -e -r "$who" --yes -o o.gpg d
        bad "recipient '$who': no such key" -e -r full@example.org -r "$who" -r me@example.org --yes -o o.gpg d
    done
    [ "$(cat o.gpg)" = old ]
    only d o.gpg
    echo x >f
    both 'refused INV_RECP 1 ' -r nobody@example.org
    both 'refused INV_RECP 1 ' -r 0123456789ABCDEF0123456789ABCDEF01234567
}

@test "names that nobody can have" {
    small
    for who in '#x' '/CN=x' '0x1' '&12'; do
        expect 1 nt --status-fd 2 -e -r "$who" -o o.gpg d
        grep -qx "\[GNUPG:\] INV_RECP 14 $who" "$ERR"
        absent o.gpg
    done
}

@test "an address of two keys, one expired: the other is taken, its fingerprint told (T117)" {
    local fpr
    small
    fpr=$(gpg --batch --with-colons --list-keys '=twin two <twin@example.org>' | awk -F: '/^fpr/ { print $10; exit }')
    good -v -e --always-trust -r twin@example.org -o o.gpg d
    said "twin@example.org.* 2 keys; $fpr"
    gpg --batch --list-packets --list-only o.gpg 2>/dev/null | grep -q "keyid $(gpg --batch --with-colons --list-keys "$fpr" | awk -F: '/^sub/ { print $5 }')"
}

@test "-c alone needs no recipient; -e without one is an error" {
    small
    good -c --passphrase-file "$SUITE/pw" -o c.gpg d
    usage_error 'for whom' -e -o e.gpg d
    absent e.gpg
    expect 2 nt --status-fd 2 -e -o e.gpg d
    grep -q '^\[GNUPG:\] FAILURE' "$ERR"
}
