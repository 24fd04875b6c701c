#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
# Command line, files, signals, status lines and exit codes (CASES.md 3.5).
load common

setup_file() {
    suite_home alice bob
    mkdir "$SUITE/big"
    head -c 120000000 /dev/urandom >"$SUITE/big/noise"
}

# No temporary file or staging folder is left in the current folder.
no_leftovers() {
    [ -z "$(find . -name '.gpgtar*')" ] || die "left: $(find . -name '.gpgtar*')"
}

@test "T087 an existing output is kept; --yes replaces it at the end" {
    small
    good -e -r alice -o e.gpg d
    cp -a e.gpg first
    bad 'e\.gpg.*exists' -e -r alice -o e.gpg d
    cmp e.gpg first
    good --yes -e -r alice -o e.gpg d
    ! cmp -s e.gpg first
    [ "$(stat -c %i e.gpg)" != "$(stat -c %i first)" ]
    mkdir x
    good -d -C x e.gpg
    same_tree d x/d
    no_leftovers
}

@test "T087 a symlink as output stays, and the file it names is replaced" {
    small
    echo old >real
    ln -s real link
    good --yes -e -r alice -o link d
    [ "$(readlink link)" = real ]
    mkdir x
    good -d -C x real
}

@test "T088 a failure does not touch an existing file" {
    small
    echo old >o.gpg
    bad 'nobody' --yes -e -r nobody@example.org -o o.gpg d
    [ "$(cat o.gpg)" = old ]
    bad 'missing' --yes -e -r alice -o o.gpg missing || said 'missing'
    [ "$(cat o.gpg)" = old ]
    expect 1 nt --yes -es -u nobody -r alice -o o.gpg d
    [ "$(cat o.gpg)" = old ]
    bad 'passphrase' --yes -c --passphrase-file /nonexistent/pw -o o.gpg d
    [ "$(cat o.gpg)" = old ]
    only d o.gpg
}

# Whether process $1 has a file called $2 open.
has_open() {
    ls -l "/proc/$1/fd" | grep -q "/$2\$"
}

@test "T090 TERM, INT, HUP and KILL while creating: no file, and an old one stays" {
    local pid code before signal
    # 200 GiB of nothing, which --portable has to read and pack: it is in the middle of it whenever the signal comes.
    truncate -s 200G huge
    for signal in TERM:143 INT:130 HUP:129 KILL:137; do
        for before in none old; do
            rm -f o.gpg
            [ $before = none ] || echo old >o.gpg
            setsid env --default-signal=INT "$GPGTAR" --batch --yes --portable -e -r alice -o o.gpg huge 2>"$ERR" </dev/null &
            pid=$!
            await has_open $pid huge
            kill -${signal%:*} $pid
            code=0
            wait $pid || code=$?
            [ $code = ${signal#*:} ] || die "exit $code after $signal"
            if [ $before = none ]; then absent o.gpg; else [ "$(cat o.gpg)" = old ]; fi
            [ ${signal%:*} = KILL ] || no_leftovers
            find . -name '.gpgtar*' -delete
        done
    done
}

@test "T090 TERM, INT and KILL while extracting: nothing under a final name" {
    local pid code
    good -e -r alice -o "$PWD/a.gpg" -C "$SUITE" big
    mkfifo in
    for signal in TERM INT KILL; do
        mkdir x
        setsid env --default-signal=INT "$GPGTAR" --batch -d -C x <in 2>"$ERR" &
        pid=$!
        # All but the end: it waits for the rest.
        exec 8>in
        head -c 60000000 a.gpg >&8
        kill -$signal $pid
        code=0
        wait $pid || code=$?
        exec 8>&-
        case $signal in
        TERM) [ $code = 143 ] ;;
        INT) [ $code = 130 ] ;;
        KILL) [ $code = 137 ] ;;
        esac
        absent x/big
        [ $signal = KILL ] || empty_folder x
        rm -rf x
    done
}

@test "T091 full disk while creating and extracting" {
    is_root || skip "mounting a small file system needs root"
    good -e -r alice -o "$PWD/a.gpg" -C "$SUITE" big
    cat >full.sh <<'EOF'
set -u
mkdir m
mount -t tmpfs -o size=20m none m || exit 77
echo old >m/old.gpg
"$GPGTAR" --batch -q -e -r alice -o "$PWD/m/o.gpg" -C "$SUITE" big 2>e1; echo "create $? $(ls -A m | tr '\n' ' ')"
"$GPGTAR" --batch -q --yes -e -r alice -o "$PWD/m/old.gpg" -C "$SUITE" big 2>e2; echo "replace $? $(cat m/old.gpg)"
mkdir m/x
"$GPGTAR" --batch -q -d -C m/x a.gpg 2>e3; echo "extract $? $(ls -A m/x)"
"$GPGTAR" --batch -q -e -r alice -C "$SUITE" big 2>e4 >m/redirected; echo "redirect $?"
EOF
    local code=0
    unshare -m bash full.sh >result 2>"$ERR" || code=$?
    if [ $code = 77 ]; then
        echo "# not possible here: mounting a tmpfs" >&3
        return 0
    fi
    diff result - <<'EOF'
create 1 old.gpg 
replace 1 old
extract 1 
redirect 1
EOF
    for n in 1 2 3 4; do
        cp e$n "$ERR"
        one_sentence
        said 'No space left'
    done
}

@test "T091 /dev/full" {
    small
    expect 1 sh -c '"$GPGTAR" --batch -q -e -r alice d >/dev/full'
    said 'No space left'
    one_sentence
    good --create -o a.tar d
    expect 1 sh -c '"$GPGTAR" --batch -q --skip-crypto -t a.tar >/dev/full'
    said 'No space left'
    [ -c /dev/full ]
    expect 1 nt -q -e -r alice -o /dev/full d
    said 'No space left'
    [ -c /dev/full ]
}

@test "T091 broken pipe and closed stdout" {
    small
    "$GPGTAR" --batch -e -r alice -C "$SUITE" big 2>"$ERR" | head -c 1000 >/dev/null
    code=${PIPESTATUS[0]}
    [ "$code" = 1 ] || [ "$code" = 141 ]
    [ "$(wc -l <"$ERR")" -le 1 ]
    mkdir many
    (cd many && seq 1 5000 | xargs touch)
    good --create -o many.tar many
    "$GPGTAR" --batch --skip-crypto -t many.tar 2>"$ERR" | head -n 1 >first
    [ ! -s "$ERR" ]
    [ -s first ]
    expect 1 sh -c '"$GPGTAR" --batch -q -e -r alice d >&-'
    said .
}

@test "T092 unreadable file and folder, vanished name: the rest is archived, exit 1; --strict writes nothing" {
    user_folder u
    cd u
    mkdir -p d/no
    echo 1 >d/yes
    echo 2 >d/secret
    echo 3 >d/no/in
    ! is_root || chown -R 65534:65534 d
    as_user chmod 000 d/secret d/no
    expect 1 as_user ./gpgtar --batch --create -o a.tar d gone
    said 'd/secret.*cannot be read'
    said 'd/no.*cannot be read'
    said 'gone'
    tar tf a.tar | grep -q '^d/yes$'
    ! tar tf a.tar | grep -q 'secret\|in$\|gone'
    expect 1 as_user ./gpgtar --batch --strict --create -o b.tar d
    absent b.tar
    expect 1 as_user ./gpgtar --batch --create -o c.tar gone
    absent c.tar
    chmod -R u+rwX d
}

@test "T095 order and bundling of commands" {
    small
    local n=0
    for how in "-esc" "-s -e -c" "-c -s -e" "-ces" "-e -c --sign" "--symmetric --encrypt --sign"; do
        n=$((n + 1))
        # shellcheck disable=SC2086
        good $how -u alice -r bob --passphrase-file "$SUITE/pw" -o $n.gpg d
        gpg --list-packets --batch --passphrase-file "$SUITE/pw" --pinentry-mode loopback $n.gpg >list 2>"$ERR"
        grep -q '^:symkey enc packet' list
        grep -q '^:pubkey enc packet' list
        grep -q '^:onepass_sig packet' list
    done
}

@test "T096 options after names; -- protects" {
    small
    touch ./-o
    good --create d -o x.tar
    [ "$(tar tf x.tar | wc -l)" = 6 ]
    good --create -o y.tar -- d -o
    [ "$(tar tf y.tar | wc -l)" = 7 ]
    good -e d -r alice -oz.gpg
    good -t z.gpg -v
    good --create --output=w.tar d
    cmp x.tar w.tar
    good --crea --outp v.tar d
    cmp x.tar v.tar
}

@test "T097 binary output to a terminal is refused" {
    small
    for how in "-e -r alice" "-s -u alice" --create; do
        script -qec "\"$GPGTAR\" --batch $how d" /dev/null </dev/null >tty && die "exit 0: $how"
        grep -q 'terminal' tty
        [ "$(wc -c <tty)" -lt 300 ]
        ! LC_ALL=C grep -aq $'[\x80-\xff]' tty
    done
    script -qec "\"$GPGTAR\" --batch -e --armor -r alice d" /dev/null </dev/null >tty
    grep -q 'BEGIN PGP MESSAGE' tty
}

@test "T098 an absolute path: the slash is taken off, one note" {
    small
    good -e -r alice -o a.gpg "$PWD/d" "$PWD/d/f"
    [ "$(grep -c 'leading /' "$ERR")" = 1 ]
    mkdir x
    good -d -C x a.gpg
    same_files d "x/$PWD/d"
}

@test "the archive never goes into itself" {
    small
    good --create -o d/self.tar d
    ! tar tf d/self.tar | grep -q self
    good --yes --create -o d/self.tar d
    said 'self.tar.*itself'
    ! tar tf d/self.tar | grep -q self
    nt --create . >self2.tar 2>"$ERR"
    ! tar tf self2.tar | grep -q self2
}

@test "T100 -C and a relative -o: inside the folder, as stock" {
    small
    good -C d --create -o rel.tar f
    [ "$(tar tf d/rel.tar)" = f ]
    absent rel.tar
}

@test "T101 -C to a folder that does not exist: one error" {
    small
    good -e -r alice -o a.gpg d
    bad "nowhere" -d -C nowhere a.gpg
    absent nowhere
    bad "nowhere" --create -C nowhere -o "$PWD/b.tar" d
    absent b.tar
}

@test "T102 names of the folders that -d makes" {
    small
    good -e -r alice -o x.gpg d
    while read -r file folder; do
        [ "$file" = x.gpg ] || cp x.gpg "$file"
        good -d "$file"
        same_tree d "$folder/d"
        [ "$(stat -c %a "$folder")" = 700 ]
        rm -rf "$folder"
    done <<'EOF'
x.gpg x_1_
x.tar.gpg x.tar_1_
x.asc x_1_
x.pgp x_1_
x.pem x_1_
x.p7m x_1_
x.sig x.sig_1_
x.GPG x.GPG_1_
noext noext_1_
EOF
    good -d --set-filename /a/b.gpg x.gpg
    same_tree d b_1_/d
    "$GPGTAR" --batch -d <x.gpg 2>"$ERR"
    same_tree d GPGARCH_1_/d
    good -d x.gpg
    good -d x.gpg
    same_tree d x_1_/d
    same_tree d x_2_/d
    mkdir sub
    mv x.tar.gpg sub
    good -d sub/x.tar.gpg
    same_tree d x.tar_1_/d
}

@test "T104 --gpg-args: words, quotes, errors" {
    small
    cp "$SUITE/pw" "pw with blank"
    good -c --gpg-args "--pinentry-mode loopback --passphrase-file '$PWD/pw with blank'" -o a.gpg d
    good -c --gpg-args "--pinentry-mode=loopback" --gpg-args "--passphrase-file \"$PWD/pw with blank\"" -o b.gpg d
    good -c --gpg-args "  --passphrase-file   $SUITE/pw   --no-symkey-cache " --gpg-args "" -o c.gpg d
    for file in a b c; do
        mkdir x
        good -d --passphrase-file "$SUITE/pw" -C x $file.gpg
        same_tree d x/d
        rm -r x
    done
    usage_error 'quote' -c --gpg-args "--passphrase-file 'unclosed" -o q.gpg d
    usage_error 'quote' -c --gpg-args '--comment "unclosed' -o q.gpg d
    good -e -r alice --armor --gpg-args "--comment '$(printf '%02000d' 7)'" -o long.asc d
    usage_error 'value' -e -r alice --gpg-args "--cipher-algo" -o q.gpg d
    absent q.gpg
}

@test "T105 --tar-args, --tar, --cms, --gpg, --openpgp" {
    small
    mkdir x
    good --tar /bin/tar --gpg /usr/bin/gpg --openpgp -e -r alice -o a.gpg d
    good -d --tar-args "-C x" a.gpg
    same_tree d x/d
    good -d --yes --tar-args "--directory=x" a.gpg
    (cd x && good --create --tar-args "--directory=.." -o x/b.tar d)
    usage_error 'cms|S/MIME|not supported' --cms -e -r alice -o c.gpg d
    absent c.gpg
}

@test "T106 status lines: on 1, 2, 9; every run ends with SUCCESS or FAILURE" {
    small
    good -es -u alice -r bob --status-fd 1 -o a.gpg d
    [ "$(tail -n 1 "$OUT" | cut -d' ' -f1,2)" = "[GNUPG:] SUCCESS" ]
    ! grep -qv '^\[GNUPG:\] ' "$OUT"
    grep -q '^\[GNUPG:\] BEGIN_ENCRYPTION [0-9]' "$OUT"
    grep -q '^\[GNUPG:\] BEGIN_SIGNING H[0-9]' "$OUT"
    grep -Eq "^\[GNUPG:\] SIG_CREATED S [0-9]+ [0-9]+ 00 [0-9]+ $(fingerprint alice)\$" "$OUT"
    mkdir x
    good -d -C x --status-fd 1 a.gpg
    cp "$OUT" all
    local last=0 line
    for word in ENC_TO BEGIN_DECRYPTION DECRYPTION_INFO PLAINTEXT NEWSIG GOODSIG VALIDSIG TRUST_ULTIMATE DECRYPTION_OKAY \
        GOODMDC END_DECRYPTION SUCCESS; do
        line=$(grep -n "^\[GNUPG:\] $word\( \|\$\)" all | head -n 1 | cut -d: -f1)
        [ -n "$line" ] || die "no $word in: $(keywords all)"
        [ "$line" -gt "$last" ] || die "$word is too early in: $(keywords all)"
        last=$line
    done
    grep -q '^\[GNUPG:\] GPGTAR_EXTRACT 3 0 0 0 0 0 0$' all || grep '^\[GNUPG:\] GPGTAR_EXTRACT' all
    grep -Eq '^\[GNUPG:\] GPGTAR_EXTRACT [0-9]+ 0 0 0 0 0 0$' all
    # Failures say FAILURE with a code, as the last line.
    expect 1 nt --status-fd 1 -e -r nobody -o b.gpg d
    grep -Eq '^\[GNUPG:\] INV_RECP [0-9]+ nobody' "$OUT"
    tail -n 1 "$OUT" | grep -Eq '^\[GNUPG:\] FAILURE [^ ]+ [0-9]+$'
    expect 1 nt --status-fd 9 -t /nonexistent 9>nine
    tail -n 1 nine | grep -Eq '^\[GNUPG:\] FAILURE [^ ]+ [0-9]+$'
    expect 2 nt --status-fd 9 --create -r alice d 9>nine
    tail -n 1 nine | grep -Eq '^\[GNUPG:\] FAILURE [^ ]+ [0-9]+$'
    expect 0 nt --status-fd 2 -t a.gpg
    tail -n 1 "$ERR" | grep -q '^\[GNUPG:\] SUCCESS'
    # Data and status lines on one descriptor: refused.
    expect 2 nt --status-fd 1 -e -r alice d
    ! grep -qv '^\[GNUPG:\] ' "$OUT"
    # A descriptor that is not open is an error before anything is done.
    expect 2 nt --status-fd 77 -e -r alice -o c.gpg d
    absent c.gpg
}

@test "T107 the calls that GPGME makes, with a reader that demands its lines" {
    small
    $PYTHON "$BATS_TEST_DIRNAME/gpgme_calls.py" "$GPGTAR" "$(fingerprint alice)" "$(fingerprint bob)"
}

@test "T108 an unknown gpg option is an error, gpg's front options are not" {
    small
    usage_error 'frobnicate' -e -r alice --gpg-args --frobnicate -o a.gpg d
    absent a.gpg
    good -e -r alice --gpg-args "--no-tty --charset utf8 --enable-progress-filter --exit-on-status-write-error --lc-messages=C \
--lc-ctype=C --display :0 --ttyname /dev/tty1 --ttytype xterm --request-origin none --no-permission-warning --no-symkey-cache \
--proc-all-sigs --input-size-hint 1000 --no-auto-check-trustdb --disable-dirmngr" -o a.gpg d
}

@test "T109 without terminal, display and stdin nothing waits" {
    small
    good -c --passphrase-file "$SUITE/pw" -o c.gpg d
    good -e -r alice -o e.gpg d
    mkdir -m 700 "$BATS_TEST_TMPDIR/empty"
    export GNUPGHOME=$BATS_TEST_TMPDIR/empty
    expect 1 timeout 60 setsid env -u DISPLAY -u GPG_TTY "$GPGTAR" --batch -q -d c.gpg </dev/null
    said 'passphrase'
    expect 1 timeout 60 setsid env -u DISPLAY -u GPG_TTY "$GPGTAR" --batch -q -c -o n.gpg d </dev/null
    said 'passphrase'
    expect 1 timeout 60 setsid env -u DISPLAY -u GPG_TTY "$GPGTAR" --batch -q -d e.gpg <&-
    said 'secret key'
    absent n.gpg c_1_ e_1_
    gpgconf --kill all
}

@test "T110 passphrases: descriptor, file, command; with and without newline; empty; in no process's arguments" {
    small
    printf 'a passphrase' >nonl
    printf 'a passphrase\r\n' >crlf
    : >empty
    good -c --passphrase-fd 5 -o fd.gpg d 5<"$SUITE/pw"
    good -c --passphrase-file nonl -o file.gpg d
    good -c --passphrase-command "cat '$SUITE/pw'" -o command.gpg d
    for file in fd file command; do
        for source in "--passphrase-file $SUITE/pw" "--passphrase-file nonl" "--passphrase-command cat<$SUITE/pw"; do
            mkdir x
            # shellcheck disable=SC2086
            good -d $source -C x $file.gpg
            same_tree d x/d
            rm -r x
        done
    done
    gpg --batch --quiet --pinentry-mode loopback --passphrase-file "$SUITE/pw" -d fd.gpg >"$BATS_TEST_TMPDIR/tar" 2>"$ERR"
    bad 'empty' -c --passphrase-file empty -o e.gpg d
    absent e.gpg
    usage_error 'passphrase.*(ps|process|visible|seen)' -c --passphrase 'a passphrase' -o e.gpg d
    usage_error 'passphrase' -c --gpg-args "--passphrase secret" -o e.gpg d
    bad '(command|false|exit)' -c --passphrase-command false -o e.gpg d
    absent e.gpg
    # While it works, nobody's arguments or environment show it.
    mkfifo out
    printf 'very secret words\n' >secret
    "$GPGTAR" --batch -c --passphrase-fd 5 -o "$PWD/out" -C "$SUITE" big 5<secret 2>"$ERR" &
    pid=$!
    exec 8<out
    head -c 100000 <&8 >/dev/null
    ! grep -aqs 'very secret' /proc/$pid/cmdline /proc/$pid/environ
    ! pgrep -f 'very secret words'
    cat <&8 >/dev/null
    exec 8<&-
    wait $pid
}

@test "T111 the passphrase is asked first, before any file is looked at" {
    small
    mkfifo pass
    strace -f -qq -e trace=openat,open,read -o trace "$GPGTAR" --batch -c --passphrase-file pass -o a.gpg d </dev/null &
    pid=$!
    echo words >pass
    wait $pid
    asked=$(grep -n '"pass"\|/pass"' trace | head -n 1 | cut -d: -f1)
    scanned=$(grep -n '"d"\|"numbers"' trace | head -n 1 | cut -d: -f1)
    [ -n "$asked" ] && [ -n "$scanned" ] && [ "$asked" -lt "$scanned" ]
}

@test "T114 progress: CUR reaches TOTAL; nothing on stderr" {
    expect 0 nt -e -r alice --status-fd 9 -o "$PWD/a.gpg" -C "$SUITE" big 9>status
    [ ! -s "$ERR" ]
    grep -q '^\[GNUPG:\] PROGRESS gpgtar c ' status
    grep '^\[GNUPG:\] PROGRESS gpgtar s ' status | tail -n 1 | awk '{ exit !($5 == $6 && $5 > 0) }'
}

@test "T082 never a plain archive where a secret one was asked for" {
    small
    usage_error . --create -r alice -o a d
    usage_error . --create -c -o a d
    usage_error . --create -s -o a d
    usage_error . --skip-crypto -c -o a d
    usage_error . --skip-crypto -e -r alice -o a d
    usage_error . --skip-crypto -es -r alice -o a d
    usage_error . --create -e -r alice -o a d
    usage_error . -e -f "$SUITE/keys/bob.pub" --skip-crypto -o a d
    absent a
    good --skip-crypto --encrypt -o a d
    [ "$(tar tf a | wc -l)" = 6 ]
}

@test "conflicts and mistakes exit 2, and do nothing" {
    small
    usage_error . -o a d
    usage_error . -d -t a
    usage_error . -e -d -r alice a
    usage_error . --create --extract a
    usage_error 'recipient' -e -o a d
    usage_error 'frobnicate' --frobnicate -e -r alice -o a d
    usage_error . -e -r
    usage_error . -d a b --frob
    usage_error . -Z
    usage_error . --jobs many -e -r alice -o a d
    usage_error . -e -r alice --cipher-algo NONSENSE -o a d || expect 1 nt -e -r alice --cipher-algo NONSENSE -o a d
    expect 2 nt
    absent a
}

@test "--help, --version, --dump-options" {
    good --help
    grep -q -- '--encrypt' "$OUT"
    [ ! -s "$ERR" ]
    good --version
    head -n 1 "$OUT" | grep -Eq '^gpgtar .*[0-9]+\.[0-9]+'
    grep -q libgcrypt "$OUT"
    good --dump-options
    for option in --encrypt --decrypt --files-from --null --set-filename --gpg-args --status-fd --require-compliance --with-log; do
        grep -qx -e "$option" "$OUT"
    done
}

@test "stock scripts: -e -r K DIR > FILE, trailing slash, -C DIR ., loopback" {
    small
    "$GPGTAR" -e -r alice d/ >a.gpg 2>"$ERR" </dev/null
    mkdir x
    good -d -C x a.gpg
    same_tree d x/d
    good --gpg-args "--pinentry-mode loopback --passphrase-file $SUITE/pw" -c -C d -o ../b.gpg .
    mkdir y
    good --gpg-args "--pinentry-mode loopback --passphrase-file $SUITE/pw" -d -C y b.gpg
    same_files d y
    "$GPGTAR" --batch --encrypt --recipient alice --output c.gpg d </dev/null
    "$GPGTAR" --batch --list-archive c.gpg </dev/null >list
    grep -Eq '^-rw[-rwx]{7} 0 [0-9]+/[0-9]+ +5 [0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2} d/f$' list
    grep -Eq ' d/sub/link -> ../f$' list
}

@test "the mode of what is written: 0600 when encrypted, else less umask" {
    small
    umask 022
    good -e -r alice -o e.gpg d
    good -c --passphrase-file "$SUITE/pw" -o c.gpg d
    good -s -u alice -o s.gpg d
    good --create -o p.tar d
    [ "$(stat -c %a e.gpg c.gpg s.gpg p.tar | tr '\n' ' ')" = "600 600 644 644 " ]
}

@test "FIFOs and /dev/stdout as output are written to, never unlinked" {
    small
    mkfifo pipe
    cat pipe >got &
    good -e -r alice -o pipe d
    wait
    [ -p pipe ]
    mkdir x y
    good -d -C x got
    same_tree d x/d
    "$GPGTAR" --batch -e -r alice -o /dev/stdout d </dev/null 2>"$ERR" | cat >got2
    [ -L /dev/stdout ]
    good -d -C y got2
    same_tree d y/d
    "$GPGTAR" --batch -e -r alice -o - d </dev/null 2>"$ERR" >got3
    absent ./-
    good --verify got3
}

@test "--compare: five differences, exit 1" {
    small
    for n in 1 2 3 4; do
        echo $n >d/$n
    done
    good -e -r alice -o a.gpg d
    good --compare a.gpg
    echo other >d/1
    chmod 600 d/2
    touch -d 2001-01-01 d/3
    rm d/4
    expect 1 nt --compare a.gpg
    for name in d/1 d/2 d/3 d/4; do
        cat "$OUT" "$ERR" | grep -q "$name"
    done
}

@test "gpgtar.conf and gpg.conf in the home" {
    small
    export GNUPGHOME=$BATS_TEST_TMPDIR/h
    cp -r "$SUITE/home" "$GNUPGHOME"
    find "$GNUPGHOME" -type s -delete
    printf 'group friends = alice bob\nno-greeting\nuse-agent\n' >"$GNUPGHOME/gpg.conf"
    printf 'no-compress\n' >"$GNUPGHOME/gpgtar.conf"
    good -e -r friends -o a.gpg d
    [ "$(gpg --list-packets --batch a.gpg 2>/dev/null | grep -c '^:pubkey enc packet')" = 2 ]
    ! gpg --list-packets --batch a.gpg 2>/dev/null | grep -q '^:compressed'
    printf 'frobnicate\n' >>"$GNUPGHOME/gpgtar.conf"
    usage_error 'gpgtar.conf.*frobnicate' -e -r alice -o b.gpg d
    gpgconf --kill all
}
