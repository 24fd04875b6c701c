#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
# Hostile archives change nothing outside their target (CASES.md 3.3). A sentinel tree stands beside every target.
load common

setup_file() {
    suite_home alice
    mkdir -p "$SUITE/victims"
}

setup() {
    chmod 755 "$BATS_TEST_TMPDIR"
    OUT=$BATS_TEST_TMPDIR/out
    ERR=$BATS_TEST_TMPDIR/err
    # The target is w/x; everything else must stay as it is.
    WORLD=$BATS_TEST_TMPDIR/world
    VICTIM=$WORLD/victim
    mkdir -p "$VICTIM/sub" "$WORLD/w/x"
    echo precious >"$VICTIM/file"
    echo precious >"$WORLD/passwd"
    chmod 0640 "$VICTIM/file"
    chmod 0710 "$VICTIM/sub"
    touch -d '2001-01-01 UTC' "$VICTIM/sub" "$VICTIM/file"
    cd "$WORLD/w" || return 1
}

# Remembers everything but the target, and then demands that it is the same.
remember() {
    mv x "$BATS_TEST_TMPDIR/aside"
    $TREE show "$WORLD" >"$BATS_TEST_TMPDIR/before"
    mv "$BATS_TEST_TMPDIR/aside" x
}

unchanged() {
    mv x "$BATS_TEST_TMPDIR/x"
    # The folder that the target stood in was touched by the moves.
    diff <(sed "s/^\(b'w' [^ ]*\) [0-9]*/\1/" "$BATS_TEST_TMPDIR/before") \
        <($TREE show "$WORLD" | sed "s/^\(b'w' [^ ]*\) [0-9]*/\1/") >&2
    mv "$BATS_TEST_TMPDIR/x" x
}

# hostile CODE MEMBER…: extracts such a tar, plain and then encrypted, into x; both must do the same.
hostile() {
    local code=$1
    shift
    $BAD "$@" >"$BATS_TEST_TMPDIR/a.tar"
    gpg --batch --quiet -e -r alice -o "$BATS_TEST_TMPDIR/a.gpg" "$BATS_TEST_TMPDIR/a.tar"
    cp -a x "$BATS_TEST_TMPDIR/fresh"
    remember
    expect "$code" nt -d -C x "$BATS_TEST_TMPDIR/a.gpg"
    unchanged
    mv x "$BATS_TEST_TMPDIR/first"
    mv "$BATS_TEST_TMPDIR/fresh" x
    expect "$code" nt --extract -C x "$BATS_TEST_TMPDIR/a.tar"
    unchanged
    same_tree "$BATS_TEST_TMPDIR/first" x --content
    rm -rf "$BATS_TEST_TMPDIR/first" "$BATS_TEST_TMPDIR/a.tar" "$BATS_TEST_TMPDIR/a.gpg"
}

# Only these regular files are in the target.
holds() {
    local have want
    have=$(cd x && find . -type f -printf '%P\n' | LC_ALL=C sort | tr '\n' ' ')
    want=$(printf '%s\n' "$@" | sed '/^$/d' | LC_ALL=C sort | tr '\n' ' ')
    [ "$have" = "$want" ] || die "x holds: $have; not: $want"
}

@test "T056 T057 names that climb out, one by one; the rest is extracted" {
    for name in ../esc a/../../esc .. a/.. ../../passwd ./../esc sub/../../esc ..//esc; do
        rm -rf x && mkdir x
        hostile 1 file:ok1=one "file:$name=evil" file:ok2=two
        holds ok1 ok2
        said '^gpgtar: .*\.\.'
    done
}

@test "T056 names that climb out in pax records" {
    for name in ../esc a/../../esc ..; do
        rm -rf x && mkdir x
        hostile 1 file:ok1=one "pax:harmless=$name" file:ok2=two
        holds ok1 ok2
    done
}

@test "T056 absolute names land below the target" {
    hostile 0 file:ok=1 "file:$VICTIM/file=evil"
    holds ok "${VICTIM#/}/file"
}

@test "T058 a link that leaves the target, and a file through it" {
    hostile 1 file:ok=1 sym:l=.. file:l/passwd=evil file:l/new=evil
    absent x/l
    [ "$(cat x/ok)" = 1 ]
    rm -rf x && mkdir x
    hostile 1 file:ok=1 "sym:l=$VICTIM" file:l/file=evil file:l/sub/new=evil dir:l/sub,mode=777
    absent x/l
    [ "$(cat x/ok)" = 1 ]
    rm -rf x && mkdir x
    hostile 1 dir:d sym:d/in=../../../victim file:d/in/file=evil file:ok=1
    absent x/d/in
    [ "$(cat x/ok)" = 1 ]
}

@test "T058 a harmless link, and a file through it" {
    hostile 1 dir:d sym:l=d file:l/new=evil file:ok=1
    holds ok
    [ "$(readlink x/l)" = d ]
}

@test "T058 links through links" {
    hostile 1 dir:a sym:a/up=.. sym:up2=a/up/.. file:ok=1
    holds ok
    absent x/up2
    rm -rf x && mkdir x
    hostile 1 dir:d sym:one=d sym:two=one/../.. file:ok=1
    holds ok
    absent x/two
    rm -rf x && mkdir x
    hostile 1 dir:d dir:d/e sym:one=d/e sym:two=one/../../.. file:two/passwd=evil file:ok=1
    [ ! -L x/two ]
    [ "$(cat x/ok)" = 1 ]
}

@test "T059 a link, then a file of the same name" {
    hostile 1 "sym:l=$VICTIM/file" file:l=mine file:ok=1
    holds l ok
    [ "$(cat x/l)" = mine ]
    rm -rf x && mkdir x
    hostile 0 file:real=1 sym:l=real file:l=mine
    [ "$(cat x/l)" = mine ]
    [ "$(cat x/real)" = 1 ]
}

@test "T060 links that stand in the target already are not followed" {
    ln -s "$VICTIM" x/d
    ln -s "$VICTIM/file" x/f
    hostile 1 file:d/file=evil file:d/new=evil file:f=evil file:ok=1
    [ -L x/d ]
    [ -L x/f ]
    $BAD file:f=mine file:ok2=1 >a.tar
    remember
    good --yes --extract -C x a.tar
    unchanged
    [ ! -L x/f ]
    [ "$(cat x/f)" = mine ]
}

@test "T060 a dangling link in the target" {
    ln -s "$VICTIM/new" x/f
    hostile 1 file:f=evil file:ok=1
    absent "$VICTIM/new"
}

@test "hard links out of the archive" {
    hostile 1 file:ok=1 "hard:h=$VICTIM/file" hard:g=../../passwd hard:n=nothing
    holds ok
    rm -rf x && mkdir x
    hostile 1 "sym:l=$VICTIM/file" hard:h=l file:h=evil file:ok=1
    [ "$(cat x/ok)" = 1 ]
    rm -rf x && mkdir x
    echo mine >x/there
    hostile 1 hard:h=there file:ok=1
    [ "$(stat -c %h x/there)" = 1 ]
}

@test "T063 a folder entry and a link of one name, both orders" {
    hostile 1 "sym:s=$VICTIM/sub" dir:s,mode=777,mtime=5 file:ok=1
    rm -rf x && mkdir x
    hostile 1 dir:s,mode=777,mtime=5 "sym:s=$VICTIM/sub" file:ok=1
    holds ok
    rm -rf x && mkdir x
    hostile 1 dir:s,mode=777,mtime=5 dir:s/sub "sym:s=$VICTIM" file:s/file=evil dir:s/sub,mode=777,mtime=7 file:ok=1
    [ "$(cat x/ok)" = 1 ]
}

@test "T065 harmless links are made" {
    hostile 0 sym:lib.so=lib.so.1 file:lib.so.1=lib dir:a sym:a/b=../c file:c=c sym:dangling=later
    [ "$(readlink x/lib.so)" = lib.so.1 ]
    [ "$(readlink x/a/b)" = ../c ]
    [ "$(readlink x/dangling)" = later ]
    [ "$(cat x/lib.so)" = lib ]
}

@test "links that leave the target are refused, each by itself" {
    hostile 1 "sym:abs=$VICTIM/file" sym:up=../victim sym:up2=a/../../x sym:good=ok file:ok=1
    absent x/abs x/up x/up2
    [ "$(readlink x/good)" = ok ]
    [ "$(wc -l <"$ERR")" -ge 3 ]
}

@test "T066 an existing file is kept in batch; --yes, --keep-old-files, --skip-old-files" {
    echo old >x/f
    $BAD file:f=new file:g=new >a.tar
    expect 1 nt --extract -C x a.tar
    said "f.*exists"
    [ "$(cat x/f)" = old ]
    absent x/g
    good --skip-old-files --extract -C x a.tar
    [ "$(cat x/f)" = old ]
    [ "$(cat x/g)" = new ]
    echo old >x/g
    expect 1 nt --keep-old-files --extract -C x a.tar
    [ "$(cat x/f x/g | tr '\n' ' ')" = "old old " ]
    good --yes --extract -C x a.tar
    [ "$(cat x/f)" = new ]
}

@test "folders merge, and what was in them stays" {
    mkdir x/d
    echo mine >x/d/mine
    hostile 0 dir:d file:d/theirs=theirs
    [ "$(cat x/d/mine)" = mine ]
    [ "$(cat x/d/theirs)" = theirs ]
}

@test "a file where a folder stands, a folder where a file stands" {
    mkdir x/d
    echo mine >x/d/mine
    echo old >x/f
    $BAD file:d=evil dir:f file:f/in=1 file:ok=1 >a.tar
    expect 1 nt --yes --extract -C x a.tar
    [ "$(cat x/d/mine)" = mine ]
}

@test "T068 escape sequences in names reach no terminal" {
    $BAD 'file:\x1b[31mred\x07=1' 'file:../\x1b[2J=evil' 'file:new\nline=2' >a.tar
    expect 1 nt --extract -C x a.tar
    ! LC_ALL=C grep -q $'[\x01-\x09\x0b-\x1f\x7f]' "$ERR"
    good --skip-crypto -t a.tar || [ -s "$OUT" ]
    ! LC_ALL=C grep -q $'[\x01-\x09\x0b-\x1f\x7f]' "$OUT"
    [ "$(wc -l <"$OUT")" = 3 ]
}

@test "T069 setuid and setgid are dropped without -p, kept by root with it" {
    $BAD file:suid=1,mode=4755 file:sgid=1,mode=2755 dir:sticky,mode=1777 >a.tar
    good --extract -C x a.tar
    [ "$(stat -c %a x/suid x/sgid | tr '\n' ' ')" = "755 755 " ]
    ! is_root || {
        mkdir p
        good -p --extract -C p a.tar
        [ "$(stat -c %a p/suid p/sgid p/sticky | tr '\n' ' ')" = "4755 2755 1777 " ]
    }
}

@test "one name twice: the last one stands, once" {
    hostile 0 file:f=one file:f=two
    [ "$(cat x/f)" = two ]
}

@test "--max-files and --max-size stop a bomb, and nothing is left" {
    $BAD file:a=1 file:b=2 file:c=3 >a.tar
    bad 'more than 2 members' --max-files 2 --extract -C x a.tar
    empty_folder x
    head -c 3000000 /dev/zero >zeros
    tar czf z.tar zeros
    bad 'larger than|more than' --max-size 1M --extract -C x z.tar
    empty_folder x
    good --max-size 10M --max-files 5 --extract -C x z.tar
}

@test "members by name, patterns, a literal star, --strip-components, -O" {
    small
    touch 'd/st*r' d/star
    good -e -r alice -o a.gpg d
    good -d -C x a.gpg d/f
    holds d/f
    rm -rf x && mkdir x
    good -d -C x a.gpg 'd/st\*r'
    holds 'd/st*r'
    rm -rf x && mkdir x
    good -d -C x a.gpg 'd/st*r'
    holds 'd/st*r' d/star
    rm -rf x && mkdir x
    good -d --no-wildcards -C x a.gpg 'd/st*r'
    holds 'd/st*r'
    rm -rf x && mkdir x
    good -d --strip-components 1 -C x a.gpg
    same_files d x
    good -d -O a.gpg d/sub/numbers
    cmp "$OUT" d/sub/numbers
    rm -rf x && mkdir x
    expect 1 nt -d -C x a.gpg d/f nothing
    said 'nothing'
}

@test "--dry-run writes nothing" {
    small
    good -e -r alice --dry-run -o a.gpg d
    absent a.gpg
    good -e -r alice -o a.gpg d
    good -d --dry-run -C x a.gpg
    empty_folder x
    good -d --dry-run a.gpg
    only a.gpg d x
}
