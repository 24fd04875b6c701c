#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
# The tar inside: readable by every tar, and every tar read (CASES.md 3.1 and 3.2).
load common

gt() {
    /usr/bin/gpgtar --batch "$@"
}

# The names in a listing of ours, stock's or GNU tar's: what stands behind the date and the time.
names_of() {
    sed -E 's/^([^ ]+ +){3}[0-9]+ [0-9-]+ [0-9:]+ //; s/ -> .*//' "$1"
}

@test "T001 numeric fields that GNU's gpgtar reads" {
    small
    good --create --portable -o a.tar d
    mkdir x
    gt --extract -C x a.tar 2>"$ERR"
    not_said 'invalid'
    same_files d x/d
}

@test "T001 every header field is octal digits and a NUL" {
    small
    good --create -o a.tar d
    $PYTHON - <<'EOF'
data = open('a.tar', 'rb').read()
at = blocks = 0
while data[at:at + 1] != b'\0':
    head = data[at:at + 512]
    for start, end in ((100, 108), (108, 116), (116, 124), (124, 136), (136, 148)):
        field = head[start:end]
        assert field[-1] == 0 and set(field[:-1]) <= set(b'01234567'), (at, field)
    size = int(head[124:135], 8)
    at += 512 + (size + 511) // 512 * 512
    blocks += 1
assert blocks >= 5, blocks
EOF
}

@test "T002 archives of GNU's gpgtar" {
    small
    gt --create -o a.tar d 2>"$ERR"
    mkdir x
    good --extract -C x a.tar
    same_tree d x/d --no-links --content
    [ "$(readlink x/d/sub/link)" = ../f ]
    [ "$(stat -c %Y d/f)" = "$(stat -c %Y x/d/f)" ]
}

@test "T003 GNU long names" {
    mkdir d x
    touch "d/$(printf %0150d 0)"
    tar --format=gnu -cf a.tar d
    good --extract -C x a.tar
    [ "$(ls x/d)" = "$(printf %0150d 0)" ]
    [ "$(ls -A x)" = d ]
}

@test "T004 names of 99 to 255 bytes and a path of 900" {
    local deep=d
    mkdir d
    for n in 99 100 101 155 156 255; do
        touch "d/$(head -c "$n" /dev/zero | tr '\0' a)"
    done
    for i in 1 2 3 4 5 6; do
        deep=$deep/$(head -c 150 /dev/zero | tr '\0' "$i")
    done
    mkdir -p "$deep"
    echo deep >"$deep/f"
    good --create -o a.tar d
    find d | sort >want
    good --skip-crypto -t a.tar
    names_of "$OUT" | sed 's,/$,,' | sort | diff want -
    tar tf a.tar | sed 's,/$,,' | sort | diff want -
    bsdtar tf a.tar | sed 's,/$,,' | sort | diff want -
    mkdir gt nt
    good --extract -C nt a.tar
    same_tree d nt/d
    # Stock 2.2.40 reads pax records only with "path"; it extracts what it lists.
    gt --skip-crypto -t a.tar >gt.list 2>"$ERR" || true
    [ "$(grep -c ' d/a' gt.list)" -ge 3 ]
}

@test "T005 link targets of 99 to 150 bytes" {
    mkdir d x
    for n in 99 100 101 150; do
        ln -s "$(printf "%0${n}d" 0)" "d/l$n"
    done
    good --create -o a.tar d
    good --extract -C x a.tar
    same_tree d x/d
    tar tvf a.tar >list
    for n in 99 100 101 150; do
        grep -q "d/l$n -> $(printf "%0${n}d" 0)\$" list
    done
}

@test "T006 long name and sparse file together" {
    local folder
    folder=$(printf %0150d 0)
    mkdir -p "d/$folder" x
    truncate -s 500000 "d/$folder/sparse"
    printf end >>"d/$folder/sparse"
    good --create -o a.tar d
    for reader in tar bsdtar; do
        rm -rf x && mkdir x
        $reader -xf a.tar -C x
        same_files d x/d
    done
    good --create --portable -o p.tar d
    rm -rf x && mkdir x
    good --extract -C x p.tar
    same_tree d x/d
}

# sparse_tar FORMAT NAME: GNU tar's archive of an 8 GiB file and of z, made without writing 8 GiB.
sparse_tar() {
    local head=512
    [ "$1" = gnu ] || head=1536
    truncate -s 8589934592 big
    tar --format="$1" -cf - big 2>/dev/null | head -c $head >"$2"
    truncate -s $((head + 8589934592)) "$2"
    tar --format="$1" -cf - z >>"$2"
}

@test "T008 T009 sizes of 8 GiB, by GNU tar: pax and base-256" {
    echo t >z
    for format in posix gnu; do
        sparse_tar $format $format.tar
        good --skip-crypto -t $format.tar
        grep -Eq ' 8589934592 .* big$' "$OUT"
        grep -Eq ' 2 .* z$' "$OUT"
    done
}

@test "T010 our own member of 8 GiB" {
    truncate -s 8589934592 big
    echo t >z
    nt --create big z | tar tvf - >list
    grep -Eq ' 8589934592 .* big$' list
    grep -Eq ' 2 .* z$' list
    nt --create --portable big z | tee >(head -c 10240 >start; cat >/dev/null) | tar tvf - >list
    grep -Eq ' 8589934592 .* big$' list
    grep -Eq ' 2 .* z$' list
    $PYTHON - <<'EOF'
data = open('start', 'rb').read()
head = next(data[at:at + 512] for at in range(0, 10240, 512) if data[at:at + 4] == b'big\0')
assert head[124] == 0x80 and int.from_bytes(head[125:136], 'big') == 8589934592, head[124:136]
EOF
}

@test "T012 sparse members of GNU tar in every form" {
    mkdir d
    printf island >d/s
    truncate -s 3000000 d/s
    printf island >>d/s
    truncate -s 9000000 d/s
    truncate -s 2000000 d/hole
    # Only pax keeps more than seconds.
    touch -d '2020-02-02 UTC' d/s d/hole d
    for how in --format=gnu --format=oldgnu "--format=posix --sparse-version=0.0" "--format=posix --sparse-version=0.1" \
        "--format=posix --sparse-version=1.0"; do
        rm -rf x && mkdir x
        # shellcheck disable=SC2086
        tar -S $how -cf a.tar d
        good --extract -C x a.tar
        same_tree d x/d
    done
}

@test "T014 negative and huge sizes" {
    for field in ffffffffffffffffffffffff 800000007fffffffffffffff 80ffffffffffffffffffffff 800000010000000000000000; do
        mkdir x
        $BAD file:a=one "size:$field" >a.tar
        expect 1 nt --extract -C x a.tar
        said '^gpgtar: '
        absent x/sized
        rm -r x
    done
}

@test "T015 an empty member name" {
    mkdir x
    $BAD file:a=one file:= file:b=two >a.tar
    expect 1 nt --extract -C x a.tar
    [ "$(ls -A x | tr '\n' ' ')" = "a b " ]
}

@test "T016 a global pax header makes no file" {
    mkdir repo x
    git init -q repo
    echo hi >repo/f
    git -C repo add f
    git -C repo -c user.name=n -c user.email=e -c commit.gpgsign=false commit -qm m
    git -C repo archive HEAD >a.tar
    good --extract -C x a.tar
    [ "$(ls -A x)" = f ]
    [ "$(cat x/f)" = hi ]
}

@test "T019 a pax record of 70000 bytes" {
    mkdir x
    $PYTHON - <<'EOF'
import io, tarfile
with tarfile.open('a.tar', 'w', format=tarfile.PAX_FORMAT) as tar:
    member = tarfile.TarInfo('f')
    member.size = 2
    member.pax_headers = {'comment': 'c' * 70000}
    tar.addfile(member, io.BytesIO(b'hi'))
EOF
    good --extract -C x a.tar
    [ "$(cat x/f)" = hi ]
}

@test "T021 missing parents" {
    mkdir foo x
    echo 1 >one
    echo 2 >foo/two
    tar cf a.tar one foo/two
    good --extract -C x a.tar
    same_files foo x/foo
    cmp one x/one
}

@test "T022 sizes around a block" {
    mkdir d x g
    for n in 0 1 511 512 513 1024; do
        head -c $n /dev/urandom >d/$n
    done
    good --create -o a.tar d
    good --extract -C x a.tar
    gt --extract -C g a.tar 2>"$ERR"
    same_tree d x/d
    same_files d g/d
}

@test "T024 concatenated archives" {
    echo 1 >a
    echo 2 >b
    mkdir x y
    tar cf a.tar a
    tar cf b.tar b
    cat a.tar b.tar >ab.tar
    expect 1 nt --extract -C x ab.tar
    said 'end'
    good --extract --concatenated -C y ab.tar
    cmp a y/a
    cmp b y/b
}

@test "T025 junk behind the tar, inside the signature" {
    tarball a.tar
    (cat a.tar; echo junk) | gpg --batch -s -u alice -o j.gpg
    mkdir x
    expect 1 nt -d -C x j.gpg
    same_files d x/d
}

@test "T027 zeros are an empty archive; nothing and noise are no tar" {
    head -c 10240 /dev/zero >zeros
    : >nothing
    head -c 10240 /dev/urandom >noise
    good --skip-crypto -t zeros
    said 'empty'
    [ ! -s "$OUT" ]
    for file in nothing noise; do
        bad 'not a tar' --skip-crypto -t "$file"
        [ ! -s "$OUT" ]
    done
}

@test "T029 a compressed tar inside" {
    small
    find d -exec touch -h -d '2020-02-02 UTC' {} +
    for how in gzip bzip2 xz zstd; do
        rm -rf x && mkdir x
        tar --$how -cf - d | gpg --batch --quiet -e -r alice -o z.gpg
        good -d -C x z.gpg
        same_tree d x/d
        rm z.gpg
    done
}

@test "T030 what is no tar leaves no folder" {
    echo hi | gpg --batch --quiet -e -r alice -o hi.gpg
    bad 'not a tar' -d hi.gpg
    only hi.gpg
    mkdir x
    bad 'not a tar' -d -C x hi.gpg
    empty_folder x
}

@test "T031 odd ways to write a name" {
    small
    mkdir d/s2
    for arg in d//sub ./d/ . d/. d/sub/../ d/s2/..; do
        good --create -o "$BATS_TEST_TMPDIR/a.tar" "$arg"
        mkdir "$BATS_TEST_TMPDIR/x"
        good --extract -C "$BATS_TEST_TMPDIR/x" "$BATS_TEST_TMPDIR/a.tar"
        tar tf "$BATS_TEST_TMPDIR/a.tar" >"$BATS_TEST_TMPDIR/list"
        ! grep -Eq '(^|/)\.\.(/|$)|//' "$BATS_TEST_TMPDIR/list"
        [ "$(find "$BATS_TEST_TMPDIR/x" -name numbers | wc -l)" = 1 ]
        rm -rf "$BATS_TEST_TMPDIR/x" "$BATS_TEST_TMPDIR/a.tar"
    done
    expect 1 nt --create -o a.tar ""
    absent a.tar
}

@test "T033 times before 1970 and far away" {
    mkdir d x
    touch -d '1960-01-01 00:00:00.123456789 UTC' d/1960
    touch -d '1969-12-31 23:59:58.5 UTC' d/1969
    touch -d '2040-02-29 12:00:00.000000001 UTC' d/2040
    touch -d '2250-01-01 00:00:00.999999999 UTC' d/2250
    good --create -o a.tar d
    good --extract -C x a.tar
    same_tree d x/d
    tar tvf a.tar >list
    grep -q '1960-01-01 .* d/1960' list
    grep -q '2250-01-01 .* d/2250' list
    mkdir g
    tar xf a.tar -C g
    same_tree d/ g/d
}

@test "T034 T035 folder modes and times are set last" {
    user_folder u
    cd u
    mkdir d d/closed
    echo 1 >d/closed/f
    # Else the folder's owner could not write into it while root made it.
    ! is_root || chown -R 65534:65534 d
    touch -d '2001-02-03 04:05:06.7 UTC' d/closed
    chmod 0555 d/closed
    tar --format=posix -cf a.tar d
    $BAD dir:top,mode=644 file:top/f=x dir:zero,mode=0 dir:zero/sub file:zero/sub/g=y >b.tar
    mkdir x
    ! is_root || chown -R 65534:65534 x
    expect 0 as_user ./gpgtar --batch --extract -C x a.tar
    [ "$(stat -c '%a %.1Y' x/d/closed)" = "555 981173106.7" ]
    expect 0 as_user ./gpgtar --batch --extract -C x b.tar
    [ "$(stat -c %a x/top x/zero | tr '\n' ' ')" = "644 0 " ]
    chmod u+rwx x/zero x/top x/zero/sub
    [ "$(cat x/top/f x/zero/sub/g)" = xy ]
}

@test "T037 attributes, ACLs and a capability; GNU tar has nothing to warn of" {
    mkdir d x y
    echo 1 >d/a
    echo 2 >d/ro
    setfattr -n user.x -v value d/a
    setfacl -m u:nobody:r d/a
    setfacl -d -m u:nobody:rx d
    setfattr -n user.y -v 2 d/ro
    chmod 0444 d/ro
    ! is_root || setcap cap_net_raw+ep d/ro
    good --create -o a.tar d
    good --extract -p -C x a.tar
    same_tree d x/d
    tar xf a.tar -C y 2>tar.err
    cat tar.err
    [ ! -s tar.err ]
    mkdir no
    good --extract --no-acls --no-xattrs -C no a.tar
    [ -z "$(getfattr -d -m - no/d/a)" ]
    # A capability is root's to give, and only with -p.
    mkdir nop
    good --extract -C nop a.tar
    [ -z "$(getcap nop/d/ro)" ]
}

@test "T039 empty folder and 210 levels" {
    local deep=d
    for ((i = 0; i < 210; i++)); do
        deep=$deep/n
    done
    mkdir -p "$deep" d/empty x
    echo bottom >"$deep/f"
    good --create -o a.tar d
    good --extract -C x a.tar
    same_tree d x/d
}

@test "T040 FIFO, socket and device are never opened" {
    mkdir d x
    mkfifo ff d/ff
    $PYTHON -c 'import socket; socket.socket(socket.AF_UNIX).bind("d/so")'
    good --create -o a.tar ff d
    said 'd/so.*socket'
    good --extract -C x a.tar
    [ -p x/ff ] && [ -p x/d/ff ]
    absent x/d/so
    ! is_root || {
        mknod d/null c 1 3
        mknod d/loop b 7 300
        good --create -o b.tar d
        mkdir y
        good --extract -C y b.tar
        [ "$(stat -c '%F %t %T' y/d/null)" = "character special file 1 3" ]
        [ "$(stat -c '%F %t %T' y/d/loop)" = "block special file 7 12c" ]
    }
}

@test "T041 hard links: pair, triple, twice the same, full copies for --portable" {
    mkdir -p d/one d/two x p g
    echo pair >d/a
    ln d/a d/b
    seq 1 1000 >d/one/t
    ln d/one/t d/two/t
    ln d/one/t d/t
    good --create -o a.tar d d/a d
    good --extract -C x a.tar
    same_tree d x/d
    [ "$(tar tf a.tar | sort | uniq -d | wc -l)" = 0 ]
    good --create --portable -o p.tar d
    good --extract -C p p.tar
    same_files d p/d
    [ "$(stat -c %h p/d/a)" = 1 ]
    gt --extract -C g p.tar 2>"$ERR"
    same_files d g/d
}

@test "T041 the first name of a hard link cannot be read" {
    user_folder u
    cd u
    mkdir -p d/no d/yes
    echo content >d/no/f
    ln d/no/f d/yes/f
    chmod -R a+rX d
    ! is_root || chown -R 65534:65534 d
    as_user chmod 000 d/no
    expect 1 as_user ./gpgtar --batch --create -o a.tar d
    as_user mkdir x
    as_user ./gpgtar --batch --extract -C x a.tar
    [ "$(cat x/d/yes/f)" = content ]
}

@test "T043 same tree, same tar, whatever order the disk gives" {
    mkdir d e
    for i in $(seq 1 50); do
        echo "$i" >"d/$i"
    done
    touch "d/$(printf %0200d 1)"
    for i in $(seq 50 -1 1); do
        echo "$i" >"e/$i"
        touch -r "d/$i" "e/$i"
    done
    touch -r "d/$(printf %0200d 1)" "e/$(printf %0200d 1)"
    touch -d '2020-01-01 UTC' d e
    good --create -o 1.tar d
    good --create -o 2.tar d
    cmp 1.tar 2.tar
    mkdir other
    mv e other/d
    good --create -o ../3.tar -C other d
    $PYTHON - <<'EOF'
import tarfile
one, three = (tarfile.open(name).getnames() for name in ('1.tar', '3.tar'))
assert one == three, (one, three)
EOF
}

@test "T046 T047 T048 names are bytes in any locale" {
    mkdir d
    for name in ü "$(printf 'a\377')" "$(printf 'n\nl')" "$(printf 'e\033[31m')" 'back\slash' -dash 'trail ' '*' "it's" '"' \
        "$(printf 't\tb')" '..foo'; do
        echo "$name" >"d/$name"
    done
    for locale in C C.UTF-8 de_DE.UTF-8 POSIX; do
        mkdir x
        expect 0 env LC_ALL=$locale "$GPGTAR" --batch --yes --create -o a.tar d
        [ ! -s "$ERR" ]
        expect 0 env LC_ALL=$locale "$GPGTAR" --batch --extract -C x a.tar
        [ ! -s "$ERR" ]
        same_tree d x/d
        ! grep -aq hdrcharset a.tar
        rm -r x
    done
    mkdir x g
    expect 0 env -i "$GPGTAR" --create -o b.tar d
    cmp a.tar b.tar
    expect 0 env -i "$GPGTAR" --extract -C x b.tar
    same_tree d x/d
    LC_ALL=C tar xf a.tar -C g 2>tar.err
    [ ! -s tar.err ]
    same_tree d g/d
    good --skip-crypto -t a.tar
    ! LC_ALL=C grep -q '[[:cntrl:]]' "$OUT"
    [ "$(wc -l <"$OUT")" = 13 ]
    good --skip-crypto --null -t a.tar
    grep -aqF "$(printf 'e\033[31m')" "$OUT"
}

@test "T049 -T with names of one character, no final newline, blanks, CR, empty lines" {
    echo 1 >a
    echo 2 >bb
    echo 3 >' c '
    echo 4 >"$(printf 'd\r')"
    printf 'a\nbb\n\n c \nd\r' >list
    good --create -o x.tar -T list
    [ "$(tar tf x.tar | wc -l)" = 4 ]
    mkdir x
    good --extract -C x x.tar
    for name in a bb ' c ' "$(printf 'd\r')"; do
        cmp "$name" "x/$name"
    done
    printf 'a\0bb\0 c ' | expect 0 "$GPGTAR" --batch --create -o y.tar --null -T -
    [ "$(tar tf y.tar | wc -l)" = 3 ]
    printf '*\n' >star
    expect 1 nt --create -o z.tar -T star
    absent z.tar
}

@test "T051 a missing name in -T: the others are archived, exit 1" {
    echo 1 >a
    printf 'a\nmissing\n' >list
    expect 1 nt --create -o x.tar -T list
    said 'missing'
    [ "$(tar tf x.tar)" = a ]
}

@test "T052 an empty list is an error, and nothing is written" {
    : >list
    bad 'nothing' --create -o x.tar -T list
    absent x.tar
    bad 'nothing' -e -r alice -o x.gpg -T list
    absent x.gpg
    good --create --allow-empty -o x.tar -T list
    [ -z "$(tar tf x.tar)" ]
    small
    good --create -o y.tar --exclude-from list d
    [ "$(tar tf y.tar | wc -l)" = 6 ]
}

@test "a FIFO that is mounted over a file is never opened, whatever the folder says of it" {
    # Mounts of its own: as root, else in a user namespace, where the kernel lets everybody have one.
    local own="unshare -m"
    is_root || own="unshare -rm"
    $own true || skip "this kernel gives $(id -un) no mounts"
    mkdir d
    mkfifo real
    echo file >d/beside
    touch d/ff
    # Opening a FIFO to read sets free who writes, and the words are lost.
    $own bash -c '
        mount --bind real d/ff
        (trap "" PIPE; echo precious >real; echo set free >free) &
        writer=$!
        sleep 0.2
        "$GPGTAR" --create -o a.tar d
        echo $? >code
        kill $writer
        wait' 2>"$ERR"
    [ "$(cat code)" = 0 ]
    absent free
    tar tvf a.tar | grep -q '^p.*d/ff'
    [ "$(tar xOf a.tar d/beside)" = file ]
}

@test "T053 names and passphrase cannot both come from stdin" {
    echo 1 >a
    printf 'a\n' | expect 2 "$GPGTAR" --batch -c --passphrase-fd 0 -T - -o x.gpg
    said '(stdin|standard input|descriptor 0)'
    absent x.gpg
}

@test "T054 exclude ./proc leaves usr/include/proc" {
    mkdir -p t/proc t/usr/include/proc
    touch t/proc/1 t/usr/include/proc/2
    good --create -o "$PWD/x.tar" --exclude ./proc -C t .
    tar tf x.tar >list
    ! grep -q '^\(\./\)\?proc' list
    grep -q 'usr/include/proc/2$' list
}
