#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
# Detached signatures, zstd, member lists, comparison, links that lead out, logs, snapshots: one scenario each.
load common.bash

setup_file() {
    suite_home alice bob
}

teardown_file() {
    suite_end
}

make_input() {
    mkdir -p d/sub
    echo one >d/one
    echo two >d/sub/two
    ln -s one d/link
}

@test "a detached signature of an archive: made, checked here and by gpg" {
    make_input
    good --create -o x.tar d
    for how in "" "-a"; do
        # shellcheck disable=SC2086
        good -s --detach-sign $how --yes -u alice -o x.tar.sig x.tar
        gpg --batch --verify x.tar.sig x.tar 2>"$ERR"
        good --verify x.tar.sig x.tar
        expect 0 nt --verify --signer alice x.tar.sig x.tar
        expect 1 nt --verify --signer bob x.tar.sig x.tar
        expect 0 "$GPGTAR" --batch --verify x.tar.sig - <x.tar
    done
    "$GPGTAR" --batch -b -u alice <x.tar >stdin.sig
    good --verify --status-fd 1 stdin.sig x.tar
    grep -q '^\[GNUPG:\] GOODSIG' "$OUT"
    [ "$(tail -n 1 "$OUT")" = '[GNUPG:] SUCCESS' ]
    gpg --batch --detach-sign -u alice -o gpg.sig x.tar
    good --verify gpg.sig x.tar
}

@test "a detached signature of something else, by an unknown key, or alone, is refused" {
    make_input
    good --create -o x.tar d
    good -b -u alice -o x.sig x.tar
    cp x.tar y.tar
    printf 'x' | dd of=y.tar bs=1 seek=600 conv=notrunc status=none
    expect 1 nt --verify --status-fd 1 x.sig y.tar
    grep -q '^\[GNUPG:\] BADSIG' "$OUT"
    said 'not acceptable'
    GNUPGHOME=$BATS_TEST_TMPDIR/empty expect 1 nt --verify --status-fd 1 x.sig x.tar
    grep -q '^\[GNUPG:\] NO_PUBKEY' "$OUT"
    expect 1 nt --verify x.sig
    said 'detached signature'
    expect 1 nt -d x.sig
    said 'detached signature'
    expect 1 nt --verify x.sig nowhere
    said 'nowhere'
    only d x.tar x.sig y.tar
}

@test "--detach-sign takes one file and nothing else" {
    make_input
    usage_error 'exclude each other' -b -e -r alice d/one
    usage_error 'exclude each other' -b -c d/one
    usage_error 'exclude each other' --skip-crypto -b d/one
    usage_error 'exclude each other' -b -T list
    usage_error 'one file' -b d/one d/sub/two
    expect 1 nt -b -u alice -o s d
    said 'is a folder'
    only d
}

@test "half of an archive is told in words that need no RFC" {
    mkdir d
    head -c 100000 /dev/urandom >d/noise
    for format in --force-ocb --rfc4880; do
        good -e $format --yes -r alice -o x.gpg d
        head -c 50000 x.gpg >half.gpg
        bad 'half.gpg: truncated: it ends inside the encrypted data' -d half.gpg
        [ ! -e half_1_ ]
        head -c 60 x.gpg >start.gpg
        bad 'start.gpg: truncated: it ends inside an encrypted session key' -d start.gpg
    done
}

@test "zstd inside, and outside of encryption" {
    make_input
    head -c 3000000 /dev/zero >d/zeros
    good -e -r alice --zstd -o z.gpg d
    [ "$(stat -c %s z.gpg)" -lt 20000 ]
    gpg --batch --quiet -d z.gpg 2>"$ERR" | tar --zstd -tf - >list
    grep -qx d/sub/two list
    good -d z.gpg
    diff -r d z_1_/d
    good --create --zstd=19 -o z.tar.zst d
    tar --zstd -xOf z.tar.zst d/one >"$OUT"
    [ "$(cat "$OUT")" = one ]
    for jobs in 1 4; do
        good --create --zstd -j $jobs -o j$jobs.zst d
    done
    cmp j1.zst j4.zst
    usage_error 'between 1 and 22' --create --zstd=23 -o q d
}

@test "-T names members when reading" {
    make_input
    good -e -r alice -o x.gpg d
    printf 'd/one\n\nd/sub' >list
    good -t x.gpg -T list
    [ "$(wc -l <"$OUT")" = 3 ]
    printf 'd/one\0d/link\0' >list0
    expect 0 "$GPGTAR" --batch -t x.gpg --null -T - <list0
    [ "$(tr -dc '\0' <"$OUT" | wc -c)" = 2 ]
    good -d x.gpg d/link -T list
    [ -L x_1_/d/link ] && [ -e x_1_/d/one ] && [ -e x_1_/d/sub/two ]
    # An empty list is not "everything".
    expect 1 nt -d x.gpg -T /dev/null
    said 'no name'
    expect 1 nt -t x.gpg -T list0
    said 'NUL'
    expect 1 nt -t x.gpg nosuch
    said 'nosuch: not in the archive'
}

@test "--compare: differences on standard output, and nothing else" {
    make_input
    good -es -r alice -u alice -o x.gpg d
    good --compare x.gpg
    [ ! -s "$OUT" ]
    echo three >d/one
    rm d/sub/two
    chmod 700 d/sub
    ln -sfn elsewhere d/link
    printf x >"d/new"$'\n'"line"
    expect 1 nt --compare x.gpg
    grep -q '^d/one: .*size' "$OUT"
    grep -q '^d/sub/two: .*missing' "$OUT"
    grep -q '^d/sub: .*mode\|^d/sub/: .*mode' "$OUT"
    grep -q '^d/link: .*target' "$OUT"
    grep -qF 'd/new\nline: ' "$OUT"
    [ "$(wc -l <"$OUT")" = 5 ]
    said '5 differences'
    expect 1 nt --diff x.gpg d/one
}

@test "links that lead out are made with --outside-links only, and the hint comes once" {
    make_input
    ln -s /etc/hostname d/out1
    ln -s ../../up d/out2
    good -e -r alice -o x.gpg d
    expect 1 nt -d x.gpg
    [ "$(grep -c 'outside-links' "$ERR")" = 1 ]
    [ ! -L x_1_/d/out1 ] && [ ! -L x_1_/d/out2 ] && [ -L x_1_/d/link ]
    good -d --outside-links x.gpg
    [ "$(readlink x_2_/d/out1)" = /etc/hostname ]
    [ "$(readlink x_2_/d/out2)" = ../../up ]
}

@test "--with-log writes beside the folder; --log-file instead of stderr; --dry-run neither" {
    make_input
    good -es -r alice -u alice -o x.gpg d
    good -d --with-log x.gpg
    grep -q 'good signature' x_1_.log
    said 'good signature'
    mkdir t
    good -d --with-log -C t/ x.gpg
    grep -q 'good signature' t.log
    good -d --log-file log x.gpg
    [ ! -s "$ERR" ]
    grep -q 'good signature' log
    good -d --with-log --dry-run x.gpg
    only d x.gpg x_1_ x_1_.log t t.log log x_2_
}

@test "incremental archives: what changed, in folders that are always there" {
    make_input
    sleep 0.05
    good --create -g state -o 0.tar d
    said 'no snapshot'
    good --create -g state -o 1.tar d
    [ "$(tar tf 1.tar | tr '\n' ' ')" = "d/ d/sub/ " ]
    cp state state1
    echo changed >d/one
    mv d/sub d/moved
    good --create -g state -o 2.tar d
    [ "$(tar tf 2.tar | tr '\n' ' ')" = "d/ d/moved/ d/moved/two d/one " ]
    # The same level again from a copy; and one after the other they give the tree.
    good --create -g state1 -o 2b.tar d
    cmp 2.tar 2b.tar
    mkdir back
    for n in 0 1 2; do
        good --extract $n.tar -C back --yes
    done
    [ "$(cat back/d/one)" = changed ]
    [ "$(cat back/d/moved/two)" = two ]
}

@test "a snapshot stays as it was when the archive fails, and a strange one is refused" {
    make_input
    good --create -g state -o 0.tar d
    cp state before
    echo more >d/more
    expect 1 nt --create -g state -o nowhere/1.tar d
    cmp state before
    expect 1 nt --create -g state --strict -o 1.tar d nosuch
    cmp state before
    good --create -g state --dry-run -o 1.tar d
    cmp state before
    echo 'GNU tar-1.34-2' >strange
    expect 1 nt --create -g strange -o 1.tar d
    said "strange.* is no snapshot"
    [ "$(cat strange)" = 'GNU tar-1.34-2' ]
    only d state before strange 0.tar
}

@test "-O gives out nothing of what nothing protects" {
    make_input
    good --create -o x.tar d
    gpg --batch --quiet --store -o plain.gpg x.tar
    expect 1 nt -d -O plain.gpg
    [ ! -s "$OUT" ]
    said 'neither encrypted nor signed'
    expect 0 nt -d -O --allow-unprotected plain.gpg d/one
    [ "$(cat "$OUT")" = one ]
    good -s -u alice -o s.gpg d
    expect 0 nt -d -O s.gpg d/one
    [ "$(cat "$OUT")" = one ]
}

@test "what is appended to a signed message is refused" {
    make_input
    good --create -o x.tar d
    gpg --batch --quiet -s -u alice -o s.gpg x.tar
    good --verify s.gpg
    cat s.gpg s.gpg >two.gpg
    expect 1 nt -d two.gpg
    (cat s.gpg; echo junk) >junk.gpg
    expect 1 nt -d junk.gpg
    only d x.tar s.gpg two.gpg junk.gpg
}

@test "a secret key file that cannot sign: no other key signs in its place" {
    make_input
    for state in revoked expired; do
        bad "$state" -s --secret-key-file "$BATS_TEST_DIRNAME/../../testdata/samples/keys/$state.sec.asc" -o x.gpg d
        absent x.gpg
    done
}

@test "a weak digest is refused on writing, and a signature that could not be read back is not made" {
    make_input
    for digest in MD5 SHA1 RIPEMD160; do
        expect 1 nt -s -u alice --digest-algo "$digest" -o x.gpg d
        said "$digest"
        absent x.gpg
    done
}

@test "/dev/stdout that leads to a file is written to and stays what it is" {
    make_input
    "$GPGTAR" --batch --create -o /dev/stdout d >x.tar
    tar tf x.tar | grep -qx d/one
    [ -L /dev/stdout ]
}

@test "content that is no tar: the verdict of the decryption goes first, and damage is told apart" {
    echo secret >pw
    seq 1 5000 | gpg --batch -q --pinentry-mode loopback --passphrase-file pw --compress-algo none -c -o x.gpg
    bad 'x.gpg: decrypted, but the content is not a tar' -d --passphrase-file pw x.gpg
    expect 1 nt --status-fd 1 -d --passphrase-file pw x.gpg
    grep -qx '\[GNUPG:\] DECRYPTION_OKAY' "$OUT"
    python3 -c "import sys; b = bytearray(open('x.gpg', 'rb').read()); b[3000] ^= 1; open('y.gpg', 'wb').write(b)"
    bad 'y.gpg: .*damaged' -d --passphrase-file pw y.gpg
    not_said 'not a tar'
}

@test "a hard link alone: named with the file it needs, never empty without a word" {
    make_input
    ln d/one d/two
    good --create -o x.tar d
    expect 1 nt --extract -O x.tar d/two
    said 'd/two.*d/one'
    good --extract -O x.tar d/one
    [ "$(cat "$OUT")" = one ]
}

@test "a folder named with a slash, and a member that is not there" {
    make_input
    good --create -o x.tar d
    good --skip-crypto -t x.tar d/sub/
    grep -q 'd/sub/two' "$OUT"
    expect 1 nt --extract x.tar nope
    absent x.tar_1_
}

@test "what asks for a secret never makes a plain tar" {
    make_input
    echo secret >pw
    for words in "-u alice" "--passphrase-file pw" "--encrypt-to bob"; do
        # shellcheck disable=SC2086
        expect 2 nt --create $words -o x.tar d
        absent x.tar
    done
}

@test "files that are kept are not counted as extracted" {
    make_input
    good --create -o x.tar d
    mkdir x
    good --extract --status-fd 3 -C x x.tar 3>first
    grep -qx '\[GNUPG:\] GPGTAR_EXTRACT 2 0 0 0 0 0 0' first
    rm x/d/one
    good --extract --status-fd 3 --skip-old-files -C x x.tar 3>second
    grep -qx '\[GNUPG:\] GPGTAR_EXTRACT 1 1 0 0 0 0 1' second
}
