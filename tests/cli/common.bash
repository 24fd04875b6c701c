# shellcheck shell=bash
# SPDX-License-Identifier: GPL-3.0-or-later
# What all suites share: the program, a home of their own, keys, and ways to demand things.
# $GPGTAR is the program under test (set by CMake).
bats_require_minimum_version 1.5.0
: "${GPGTAR:?set GPGTAR to the program under test}"

# Debian's own Python: python3-pgpy is installed for it.
PYTHON=/usr/bin/python3
TREE="$PYTHON $BATS_TEST_DIRNAME/tree.py"
BAD="$PYTHON $BATS_TEST_DIRNAME/bad_tars.py"

# For setup_file: a GNUPGHOME that lives as long as the suite. Its path is short, for the agent's socket lies in it.
suite_home() {
    local name
    # Other users look in here in some tests.
    chmod 755 "$BATS_RUN_TMPDIR" "$BATS_FILE_TMPDIR"
    export SUITE=$BATS_FILE_TMPDIR
    export GNUPGHOME=$SUITE/home
    mkdir -m 700 "$GNUPGHOME"
    mkdir "$SUITE/keys"
    printf 'a passphrase\n' >"$SUITE/pw"
    printf 'another one\n' >"$SUITE/wrong-pw"
    unset GPG_TTY DISPLAY
    export LC_ALL=C.UTF-8 TZ=UTC
    for name in "$@"; do
        new_key "$name" ed25519 cv25519
    done
}

# new_key NAME PRIMARY SUBKEY: a key without a passphrase, in the home and as keys/NAME.sec and keys/NAME.pub.
new_key() {
    local fpr
    gpg --batch --quiet --passphrase '' --quick-gen-key "$1 <$1@example.org>" "$2" cert,sign never 2>"$SUITE/gpg.log"
    fpr=$(fingerprint "$1")
    [ -z "${3:-}" ] || gpg --batch --quiet --passphrase '' --quick-add-key "$fpr" "$3" encr never
    gpg --batch --quiet --export-secret-keys "$fpr" >"$SUITE/keys/$1.sec"
    gpg --batch --quiet --export "$fpr" >"$SUITE/keys/$1.pub"
}

# The primary key's fingerprint of NAME.
fingerprint() {
    gpg --batch --quiet --with-colons --list-keys "=$1 <$1@example.org>" | awk -F: '/^fpr:/ { print $10; exit }'
}

suite_end() {
    gpgconf --kill all
    # Folders of mode 0555 are hard to remove for those who are not root.
    chmod -R u+rwX "$BATS_FILE_TMPDIR" 2>/dev/null || true
}

setup_file() {
    suite_home alice bob
}

teardown_file() {
    suite_end
}

# Each test stands in an empty folder; what programs say goes beside it.
setup() {
    chmod 755 "$BATS_TEST_TMPDIR"
    OUT=$BATS_TEST_TMPDIR/out
    ERR=$BATS_TEST_TMPDIR/err
    mkdir "$BATS_TEST_TMPDIR/w"
    cd "$BATS_TEST_TMPDIR/w" || return 1
}

teardown() {
    chmod -R u+rwX "$BATS_TEST_TMPDIR" 2>/dev/null || true
}

die() {
    printf '%s\n' "$*" >&2
    return 1
}

# expect CODE COMMAND…: it must exit with CODE. Its output is then in $OUT and $ERR. Never waits for a keyboard.
expect() {
    local want=$1 code=0
    shift
    "$@" >"$OUT" 2>"$ERR" || code=$?
    [ "$code" = "$want" ] && return 0
    printf 'exit %s, not %s:' "$code" "$want" >&2
    printf ' %q' "$@" >&2
    printf '\n' >&2
    head -n 30 "$ERR" >&2
    return 1
}

nt() {
    "$GPGTAR" --batch "$@" </dev/null
}

good() {
    expect 0 nt "$@"
}

# bad PATTERN ARGUMENTS…: exit 1, and one sentence that says why and matches the pattern (-q: notes do not count).
bad() {
    local pattern=$1
    shift
    expect 1 nt -q "$@"
    said "$pattern"
    one_sentence
}

usage_error() {
    local pattern=$1
    shift
    expect 2 nt "$@"
    said "$pattern"
}

# The program said something that matches the extended regular expression.
said() {
    grep -Eiq -e "$1" "$ERR" || { printf 'not said: %s; but:\n' "$1" >&2; cat "$ERR" >&2; return 1; }
}

not_said() {
    ! grep -Eiq -e "$1" "$ERR" || { printf 'said: %s:\n' "$1" >&2; cat "$ERR" >&2; return 1; }
}

# Exactly one line on stderr besides warnings (which tell of each signature), from the program, without control bytes.
# Where there is no integrity before the end (SEIPD version 1), flaws of the tar may be told before it.
one_sentence() {
    if [ "$(grep -Evc '^gpgtar: (warning: |the tar is flawed: )' "$ERR")" != 1 ] || grep -vq '^gpgtar: .' "$ERR" || LC_ALL=C grep -q '[[:cntrl:]]' "$ERR"; then
        echo "not one sentence:" >&2
        cat -v "$ERR" >&2
        return 1
    fi
}

# Exactly these names (sorted, blank separated) are in the current folder, hidden ones too.
only() {
    local have want
    have=$(find . -mindepth 1 -maxdepth 1 -printf '%f\n' | LC_ALL=C sort | tr '\n' ' ')
    want=$(printf '%s\n' "$@" | sed '/^$/d' | LC_ALL=C sort | tr '\n' ' ')
    [ "$have" = "$want" ] || die "the folder holds: $have; not: $want"
}

absent() {
    local name
    for name in "$@"; do
        [ ! -e "$name" ] && [ ! -L "$name" ] || die "$name exists"
    done
}

empty_folder() {
    [ -d "$1" ] && [ -z "$(ls -A "$1")" ] || die "$1 is not an empty folder: $(ls -A "$1")"
}

# same_tree A B [OPTION…]: everything that tree.py shows is the same.
same_tree() {
    local a=$1 b=$2
    shift 2
    diff <($TREE show "$@" "$a") <($TREE show "$@" "$b") >&2
}

# same_files A B: the regular files are the same, by name and content.
same_files() {
    same_tree "$1" "$2" --content
}

# small [DIR]: a small folder, with something of each ordinary kind.
small() {
    local d=${1:-d}
    mkdir -p "$d/sub"
    printf 'data\n' >"$d/f"
    seq 1 20000 >"$d/sub/numbers"
    ln -s ../f "$d/sub/link"
    ln "$d/f" "$d/sub/hard"
}

# tarball NAME: a small tar by GNU tar, for those who encrypt it themselves.
tarball() {
    [ -d d ] || small
    tar -cf "$1" d
}

is_root() {
    [ "$(id -u)" = 0 ]
}

# As somebody who is not root, in folders that user_folder made.
as_user() {
    if is_root; then
        setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all env HOME=/nonexistent GNUPGHOME=/nonexistent "$@"
    else
        env GNUPGHOME=/nonexistent "$@"
    fi
}

# user_folder DIR: a folder that as_user may write to, with the program as DIR/gpgtar (the checkout may be closed).
user_folder() {
    mkdir -p "$1"
    cp "$GPGTAR" "$1/gpgtar"
    chmod 755 "$1/gpgtar"
    ! is_root || chown 65534:65534 "$1"
}

# The status lines of FILE, without arguments, one blank between.
keywords() {
    sed -n 's/^\[GNUPG:\] \([A-Z_]*\).*/\1/p' "$1" | tr '\n' ' '
}

# Waits until COMMAND is true; a safety net of a minute, not a measurement.
await() {
    local i
    for ((i = 0; i < 1200; i++)); do
        "$@" >/dev/null 2>&1 && return 0
        sleep 0.05
    done
    die "never came true: $*"
}
