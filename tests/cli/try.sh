#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# The main job on a real folder, shown step by step: archive, list, verify, extract, compare.
# usage: try.sh PROGRAM [FOLDER]
set -eu
program=$1
folder=${2:-}

work=$(mktemp -d "${TMPDIR:-/tmp}/gpgtar-try.XXXXXX")
export GNUPGHOME=$work/home
cleanup() {
    gpgconf --kill gpg-agent >/dev/null 2>&1 || true
    chmod -R u+rwX "$work" 2>/dev/null || true
    rm -rf "$work"
}
trap cleanup EXIT
mkdir -m 700 "$GNUPGHOME"

# A folder with what ordinary tools lose: links, holes, times, odd names, odd modes.
make_folder() {
    local d=$1
    mkdir -p "$d/sub/deep" "$d/empty" "$d/read only"
    printf 'hello\n' >"$d/file"
    head -c 20000000 /dev/urandom >"$d/random.bin"
    seq 1 500000 >"$d/text"
    truncate -s 100M "$d/sparse"
    printf end >>"$d/sparse"
    ln "$d/file" "$d/sub/hard link"
    ln -s ../file "$d/sub/symlink"
    mkfifo "$d/fifo"
    touch "$d/sub/$(printf 'not utf-8 \377')" "$d/sub/$(printf 'new\nline')" "$d/sub/-dash" "$d/sub/ü" "$d/ trailing "
    touch -d '1960-01-01 00:00:00.123456789 UTC' "$d/old"
    printf x >"$d/sub/deep/$(printf '%0200d' 7)"
    chmod 4755 "$d/text"
    chmod 0555 "$d/read only"
    if command -v setfattr >/dev/null; then setfattr -n user.note -v kept "$d/file" 2>/dev/null || true; fi
}

say() {
    printf '\n== %s\n' "$*"
}

# Shows a command, runs it, and says how long it took.
run() {
    local start end
    printf '$'
    printf ' %q' "$@" | sed "s|$program|gpgtar|"
    printf '\n'
    start=$(date +%s.%N)
    "$@"
    end=$(date +%s.%N)
    seconds=$(awk -v a="$start" -v b="$end" 'BEGIN { printf "%.2f", b - a }')
}

rate() {
    awk -v b="$bytes" -v s="$seconds" 'BEGIN { printf "   %.2f s, %.0f MB/s\n", s, b / 1e6 / (s > 0.01 ? s : 0.01) }'
}

# Names, types, modes, times, link targets, sizes and content of a tree, one line each.
manifest() {
    (cd "$1" && find . -printf '%P\t%y\t%m\t%s\t%T@\t%l\t%n\n' | awk -F'\t' -v OFS='\t' '$2 == "d" { $4 = $7 = 0 } 1' | LC_ALL=C sort
        find . -type f -print0 | LC_ALL=C sort -z | xargs -0 -r sha256sum)
}

say "two throw-away keys"
for who in alice bob; do
    gpg --batch --quiet --passphrase '' --quick-gen-key "$who <$who@example.org>" default default never 2>/dev/null
done
if [ -z "$folder" ]; then
    folder=$work/folder
    make_folder "$folder"
fi
parent=$(cd "$(dirname "$folder")" && pwd)
name=$(basename "$folder")
[ "$name" != / ] || { echo "try.sh: name a folder, not /" >&2; exit 2; }
bytes=$(du -sb "$folder" 2>/dev/null | cut -f1)
files=$(find "$folder" 2>/dev/null | wc -l)
echo "folder: $folder, $files entries, $bytes bytes"

say "archive it, signed by alice, encrypted to bob"
run "$program" -es -u alice -r bob -o "$work/archive.gpg" -C "$parent" "$name"
rate
ls -l "$work/archive.gpg" | awk '{ print "   " $5 " bytes" }'

say "list it (first lines)"
"$program" -t "$work/archive.gpg" >"$work/list" 2>/dev/null
head -n 5 "$work/list"
echo "   … $(wc -l <"$work/list") members"

say "verify it, writing nothing"
run "$program" --verify --require-signature "$work/archive.gpg"
rate

say "extract it"
mkdir "$work/out"
# Links that leave the folder are refused unless one says that the archive is one's own.
outside=()
if find "$folder" -type l \( -lname '/*' -o -lname '*..*' \) -print -quit 2>/dev/null | grep -q .; then
    outside=(--outside-links)
fi
run "$program" -d "${outside[@]}" -C "$work/out" "$work/archive.gpg"
rate

say "compare"
manifest "$folder" >"$work/before"
manifest "$work/out/$name" >"$work/after"
# Without -p a set-user-id bit is dropped on purpose.
if diff <(sed -E 's/^([^\t]*\t[^\t]*\t)[2467]([0-7]{3})\t/\1\2\t/' "$work/before") "$work/after" >"$work/diff"; then
    echo "identical: names, types, modes, times, links, sizes and content"
else
    head -n 20 "$work/diff"
    echo "DIFFERENT" >&2
    exit 1
fi
