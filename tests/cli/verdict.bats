#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
# Wrong keys, damaged data, missing signatures: one sentence, exit not 0, and nothing under a final name (CASES.md 3.4).
load common

setup_file() {
    suite_home alice bob
    cd "$SUITE"
    small
    # More than one AEAD chunk and several partial lengths, that does not compress.
    head -c 700000 /dev/urandom >d/noise
    tar --format=posix -cf d.tar d
    "$GPGTAR" --batch -e -r alice -o e.gpg d
    "$GPGTAR" --batch -e -r alice --force-ocb --chunk-size 16 -o ocb.gpg d
    "$GPGTAR" --batch -e -r alice --rfc9580 -o v2.gpg d
    "$GPGTAR" --batch -c --passphrase-file pw -o c.gpg d
    "$GPGTAR" --batch -c -e -r alice --passphrase-file pw -o ce.gpg d
    "$GPGTAR" --batch -s -u alice --no-compress -o s.gpg d
    "$GPGTAR" --batch -es -u alice -r bob -o es.gpg d
    "$GPGTAR" --batch --create -o plain.tar d
}

# refused PATTERN ARGUMENTS…: extraction into a folder with an existing file, and into a new folder, fails with one
# sentence that matches, and leaves everything as it was.
refused() {
    local pattern=$1
    shift
    [ -d x ] || { mkdir -p x/d && echo old >x/d/f; }
    bad "$pattern" --yes -d -C x "$@"
    [ "$(find x | LC_ALL=C sort | tr '\n' ' ')" = "x x/d x/d/f " ] || die "x holds $(find x)"
    [ "$(cat x/d/f)" = old ]
    bad "$pattern" -d "$@"
    [ -z "$(find . -maxdepth 1 -name '*_1_')" ] || die "a new folder: $(ls)"
    [ -z "$(find . -name '.gpgtar*')" ] || die "a staging folder is left: $(find . -name '.gpgtar*')"
}

# $PYTHON with the bytes of $1 in `data`; writes what the code leaves in it to $2.
edit() {
    $PYTHON -c "
import sys
data = bytearray(open(sys.argv[1], 'rb').read())
$3
open(sys.argv[2], 'wb').write(data)" "$1" "$2"
}

@test "the archives of this suite are good" {
    for name in e ocb v2 c ce s es; do
        mkdir $name
        good -d --passphrase-file "$SUITE/pw" -C $name "$SUITE/$name.gpg"
        same_tree "$SUITE/d" $name/d
    done
}

@test "T081 wrong passphrase" {
    refused 'passphrase' --passphrase-file "$SUITE/wrong-pw" "$SUITE/c.gpg"
    GNUPGHOME=$BATS_TEST_TMPDIR/none refused 'passphrase' --passphrase-file "$SUITE/wrong-pw" "$SUITE/ce.gpg"
    # The key opens it all the same.
    mkdir y
    good -d -C y --passphrase-file "$SUITE/wrong-pw" "$SUITE/ce.gpg"
    same_tree "$SUITE/d" y/d
}

@test "no passphrase at hand, in batch" {
    export GNUPGHOME=$BATS_TEST_TMPDIR/none
    refused 'passphrase' --pinentry-mode loopback "$SUITE/c.gpg"
}

@test "missing secret key: the message names it" {
    mkdir -m 700 "$BATS_TEST_TMPDIR/empty"
    local subkey
    subkey=$(gpg --batch --with-colons -k alice | awk -F: '/^sub:/ { print $5 }')
    GNUPGHOME=$BATS_TEST_TMPDIR/empty refused "$subkey|secret key" "$SUITE/e.gpg"
    not_said 'passphrase'
}

@test "a locked secret key and a wrong passphrase" {
    gpg --homedir "$BATS_TEST_TMPDIR/h" --version >/dev/null
    mkdir -p -m 700 "$BATS_TEST_TMPDIR/h"
    gpg --homedir "$BATS_TEST_TMPDIR/h" --batch --quiet --passphrase 'key pass' --pinentry-mode loopback \
        --quick-gen-key locked default default never 2>"$ERR"
    gpg --homedir "$BATS_TEST_TMPDIR/h" --batch --quiet --passphrase 'key pass' --pinentry-mode loopback \
        --export-secret-keys locked >locked.sec
    gpg --homedir "$BATS_TEST_TMPDIR/h" --batch --export locked >locked.pub
    gpgconf --homedir "$BATS_TEST_TMPDIR/h" --kill all
    export GNUPGHOME=$BATS_TEST_TMPDIR/none
    good -e -f locked.pub -o "$PWD/l.gpg" -C "$SUITE" d
    echo 'key pass' >key-pw
    refused 'passphrase' --secret-key-file locked.sec --passphrase-file "$SUITE/wrong-pw" l.gpg
    mkdir y
    good -d --secret-key-file locked.sec --passphrase-file key-pw -C y l.gpg
    same_tree "$SUITE/d" y/d
}

@test "T076 cut at many places" {
    for name in e ocb v2 c s es; do
        local size
        size=$(stat -c %s "$SUITE/$name.gpg")
        for keep in 0 1 2 5 20 90 200 1000 $((size / 3)) $((size / 2)) $((size - 40000)) $((size - 100)) $((size - 23)) \
            $((size - 22)) $((size - 17)) $((size - 16)) $((size - 2)) $((size - 1)); do
            head -c "$keep" "$SUITE/$name.gpg" >cut.gpg
            refused . --passphrase-file "$SUITE/pw" cut.gpg
        done
    done
}

@test "T077 one byte flipped: start, middle, last tag" {
    for name in e ocb v2 c es; do
        local size
        size=$(stat -c %s "$SUITE/$name.gpg")
        for at in $((size / 4)) $((size / 2)) $((size * 3 / 4)) $((size - 30)) $((size - 20)) $((size - 10)) $((size - 1)); do
            edit "$SUITE/$name.gpg" flip.gpg "data[$at] ^= 0x40"
            refused . --passphrase-file "$SUITE/pw" flip.gpg
        done
        # At the start it may turn one recipient into another: whatever it says, nothing comes out.
        # (12 is the algorithm; 13 the low bits of a bit count, which nobody has authenticated and gpg does not mind.)
        for at in 0 1 2 3 4 12 14 30 60; do
            edit "$SUITE/$name.gpg" flip.gpg "data[$at] ^= 0x01"
            refused . --passphrase-file "$SUITE/pw" flip.gpg
        done
    done
}

@test "appended bytes" {
    for name in e ocb v2 c s es; do
        for tail in '\x00' 'junk' '\xff\xff' '\xcb\x06b\x00\x00\x00\x00\x00' '\x00\x00\x00\x00\x00\x00\x00\x00'; do
            (cat "$SUITE/$name.gpg"; printf "$tail") >tail.gpg
            refused . --passphrase-file "$SUITE/pw" tail.gpg
        done
    done
}

@test "a second message behind the first" {
    for name in e ocb v2 c s es; do
        cat "$SUITE/$name.gpg" "$SUITE/$name.gpg" >two.gpg
        refused . --passphrase-file "$SUITE/pw" two.gpg
    done
    cat "$SUITE/s.gpg" "$SUITE/e.gpg" >mixed.gpg
    refused . mixed.gpg
}

@test "armor: cut, and a flipped letter" {
    good -e -r alice --armor -o "$PWD/a.asc" -C "$SUITE" d
    head -n 40 a.asc >cut.asc
    refused . cut.asc
    edit a.asc flip.asc "data[500000] = ord('A') if data[500000] != ord('A') else ord('B')"
    refused . flip.asc
    sed '$d' a.asc >noend.asc
    refused . noend.asc
}

@test "T070 a bad signature on a signed archive" {
    edit "$SUITE/s.gpg" bad.gpg "
at = data.index(b'data\n')
data[at:at+4] = b'EVIL'"
    refused 'bad signature|signature is bad|signature.*(bad|wrong|not match)' bad.gpg
    expect 1 nt --status-fd 1 --verify bad.gpg
    grep -q '^\[GNUPG:\] BADSIG ' "$OUT"
    ! grep -q 'GOODSIG\|VALIDSIG' "$OUT"
    [ "$(grep -c '^\[GNUPG:\] FAILURE ' "$OUT")" = 1 ]
}

@test "T070 a signature over something else, inside encryption" {
    gpg --batch -b -u alice -o other.sig "$SUITE/pw"
    $PYTHON - "$SUITE/d.tar" other.sig <<'EOF'
import struct, sys
tar, sig = (open(name, 'rb').read() for name in sys.argv[1:])
body = b'b\0\0\0\0\0' + tar
open('prefix.pgp', 'wb').write(sig + b'\xcb\xff' + struct.pack('>I', len(body)) + body)
EOF
    refused 'signature' prefix.pgp
}

@test "T071 the signer's key is missing" {
    export GNUPGHOME=$BATS_TEST_TMPDIR/empty
    mkdir -m 700 "$GNUPGHOME"
    refused 'key|signature' --require-signature "$SUITE/s.gpg"
    refused 'key|signature' "$SUITE/s.gpg"
    refused 'key|signature' --require-signature --secret-key-file "$SUITE/keys/bob.sec" "$SUITE/es.gpg"
    expect 1 nt --status-fd 1 --verify --require-signature "$SUITE/s.gpg"
    grep -q '^\[GNUPG:\] ERRSIG ' "$OUT"
    grep -q '^\[GNUPG:\] NO_PUBKEY ' "$OUT"
    ! grep -q 'GOODSIG\|BADSIG' "$OUT"
}

@test "T072 unsigned where a signature is demanded" {
    refused 'sign' --require-signature "$SUITE/e.gpg"
    gpg --batch --store -o store.gpg "$SUITE/d.tar"
    refused 'sign' --signer "$(fingerprint alice)" store.gpg
    refused 'sign' --signer "$(fingerprint alice)" "$SUITE/e.gpg"
    # Signed, but by somebody else.
    refused 'sign' --signer "$(fingerprint bob)" "$SUITE/es.gpg"
    mkdir y
    good -d --signer "$(fingerprint bob)" --signer "$(fingerprint alice)" -C y "$SUITE/es.gpg"
    good --verify --signer alice "$SUITE/es.gpg"
}

@test "T073 neither encrypted nor signed" {
    gpg --batch --store -o store.gpg "$SUITE/d.tar"
    refused 'allow-unprotected' store.gpg
    gpg --batch -z0 --store -o store0.gpg "$SUITE/d.tar"
    refused 'allow-unprotected' store0.gpg
    mkdir y
    good -d --allow-unprotected -C y store.gpg
    same_tree "$SUITE/d" y/d
    bad . -d -C y "$SUITE/plain.tar"
}

@test "T074 good signatures by expired and revoked keys are told apart" {
    export GNUPGHOME=$BATS_TEST_TMPDIR/h
    mkdir -m 700 "$GNUPGHOME"
    local g="gpg --batch --quiet --passphrase ''" fpr
    # Signed while it was valid, expired since.
    gpg --batch --quiet --passphrase '' --faked-system-time 20200101T000000 --quick-gen-key old ed25519 cert,sign 1y 2>"$ERR"
    gpg --batch --quiet --faked-system-time 20200201T000000 -s -u old -o while.gpg "$SUITE/d.tar" 2>"$ERR"
    mkdir x1
    good -d --require-signature --always-trust -C x1 while.gpg
    said 'warning.*expired'
    same_tree "$SUITE/d" x1/d
    expect 0 nt --status-fd 1 --verify --always-trust while.gpg
    grep -q '^\[GNUPG:\] \(EXPKEYSIG\|GOODSIG\) ' "$OUT"
    # Signed, then revoked without a reason (hard).
    gpg --batch --quiet --passphrase '' --faked-system-time 20220101T000000 --quick-gen-key gone ed25519 cert,sign never 2>"$ERR"
    gpg --batch --quiet --faked-system-time 20220201T000000 -s -u gone -o gone.gpg "$SUITE/d.tar" 2>"$ERR"
    fpr=$(gpg --batch --with-colons -k gone | awk -F: '/^fpr:/ { print $10; exit }')
    sed 's/^:---/---/' "$GNUPGHOME/openpgp-revocs.d/$fpr.rev" | gpg --batch --quiet --import 2>"$ERR"
    refused 'revoked' --always-trust gone.gpg
    expect 1 nt --status-fd 1 --verify gone.gpg
    grep -q '^\[GNUPG:\] REVKEYSIG ' "$OUT"
    gpgconf --kill all
}

@test "T080 a packet without integrity protection" {
    $PYTHON "$BATS_TEST_DIRNAME/packet9.py" 'a passphrase' <"$SUITE/d.tar" >mdcless.gpg
    # It is what gpg takes for one.
    gpg --batch --quiet --ignore-mdc-error --passphrase-file "$SUITE/pw" --pinentry-mode loopback -d mdcless.gpg 2>"$ERR" |
        cmp - "$SUITE/d.tar"
    refused 'protection|integrity' --passphrase-file "$SUITE/pw" mdcless.gpg
    mkdir y
    good -d --ignore-mdc-error --passphrase-file "$SUITE/pw" -C y mdcless.gpg
    said 'protection|integrity|unverified|not verified'
    same_tree "$SUITE/d" y/d
}

@test "a packet 18 turned into packet 9 does not lose its protection" {
    gpg --batch --quiet -c --passphrase-file "$SUITE/pw" --pinentry-mode loopback -o c.gpg "$SUITE/pw" 2>"$ERR"
    edit c.gpg down.gpg "
at = data.index(b'\xd2')
data[at] = 0xc9"
    refused . --passphrase-file "$SUITE/pw" down.gpg
}

@test "T083 a key that wants OCB: written as OCB by default, as packet 18 with --rfc4880" {
    good -e -r alice -o "$PWD/a.gpg" -C "$SUITE" d
    gpg --list-packets --batch a.gpg 2>"$ERR" >list
    grep -q 'tag=18 \|tag=20 ' list
    good -e -r alice --rfc4880 -o "$PWD/b.gpg" -C "$SUITE" d
    gpg --list-packets --batch b.gpg 2>"$ERR" >list
    grep -q 'tag=18 ' list
    good -e -r alice --force-ocb -o "$PWD/c.gpg" -C "$SUITE" d
    gpg --list-packets --batch c.gpg 2>"$ERR" >list
    grep -q 'tag=20 ' list
}

@test "several signers, good and bad mixed: bad wins" {
    gpg --batch --quiet -s -u alice -u bob -o two.gpg "$SUITE/d.tar"
    mkdir y
    good -d --require-signature -C y two.gpg
    expect 0 nt --status-fd 1 --verify two.gpg
    [ "$(grep -c '^\[GNUPG:\] GOODSIG ' "$OUT")" = 2 ]
    gpg --batch --quiet -z0 -s -u alice -u bob -o plain2.gpg "$SUITE/d.tar"
    # The last byte belongs to the outermost signature only.
    edit plain2.gpg half.gpg "data[-1] ^= 1"
    refused 'signature' half.gpg
}

@test "--verify and -t give the same verdict as -d, and write nothing" {
    edit "$SUITE/e.gpg" flip.gpg "data[-1] ^= 1"
    bad . --verify flip.gpg
    expect 1 nt -t flip.gpg
    said .
    only flip.gpg
    good --verify "$SUITE/e.gpg"
    only flip.gpg
    [ ! -s "$OUT" ]
}
