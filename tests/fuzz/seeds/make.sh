#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Makes the small inputs in this folder that fuzzing starts from, besides testdata/samples. Needs gpg 2.2, tar, bsdtar,
# setfattr, xz and zstd. They need not be the same each time: any file of these kinds will do.
set -eu
cd "$(dirname "$0")"
keys=$PWD/../../../testdata/samples/keys
work=$(mktemp -d)
trap 'gpgconf --homedir "$work/home" --kill all; rm -rf "$work"' EXIT
mkdir -m 700 "$work/home"
export GNUPGHOME=$work/home
run_gpg() { gpg --batch --quiet --no-tty --faked-system-time 20240601T101500! --trust-model always "$@"; }
rm -rf keybox message tar
mkdir keybox message tar

# A keybox of three certificates and a trust database with validities.
run_gpg --import "$keys"/{ed25519,p256,subrevoked,signsub}.sec.asc "$keys/dsaelg.sec.asc"
echo CA3B4E156864ED52371CBA128435BF636FFA307F:6: | gpg --batch --quiet --no-tty --import-ownertrust
run_gpg --yes --local-user CA3B4E156864ED52371CBA128435BF636FFA307F --quick-lsign-key 5645433DA5A06AF064AA2E129A7890973EEC1A9E >/dev/null
gpg --batch --quiet --no-tty --check-trustdb
cp "$work/home/pubring.kbx" keybox/pubring.kbx
cp "$work/home/trustdb.gpg" keybox/trustdb.gpg

# Packets below the encryption, see fuzz_message.c for the first octet.
echo "some text to be signed" >"$work/text"
printf 'what the signatures are over\0' >"$work/content"
signed() { run_gpg "$@" -o - "$work/text"; }
for kind in 1 2 3; do
    { printf "\\$kind"; signed --compress-algo none -u ed25519 -s; } >"message/inside-$kind-signed"
done
{ printf '\1'; signed --compress-algo zip -u ed25519 -u p256 -s; } >message/inside-1-zip-two-signers
{ printf '\2'; signed --compress-algo zlib -u ed25519 -s; } >message/inside-2-zlib
{ printf '\3'; signed --compress-algo bzip2 -u dsaelg -s; } >message/inside-3-bzip2-dsa
{ printf '\1'; signed --compress-algo none --textmode -u ed25519 -s; } >message/inside-1-text-signature
{ printf '\1'; signed --compress-algo none --store; } >message/inside-1-literal
{ printf '\0'; run_gpg -u ed25519 -u p256 -b -o - "$work/content"; } >message/detached-two-signers

# Archives in every format, 512-byte blocks.
mkdir -p "$work/t/folder/inner" && cd "$work/t"
printf 'hello\n' >folder/file
ln folder/file folder/hard
ln -s file folder/soft
mkfifo folder/fifo
long=$(printf 'long%.0s' $(seq 40))
: >"folder/inner/$long"
printf 'x' | dd of=folder/sparse bs=1 seek=200000 status=none
setfattr -n user.note -v some folder/file
touch -d '1969-12-31 23:00:00.5 UTC' folder/inner
tars=$OLDPWD/tar
for format in v7 oldgnu gnu ustar posix; do
    tar -b1 --format=$format --exclude sparse --owner=alice:1000 --group=users:100 -cf "$tars/gnu-$format.tar" folder || true
done
tar -b1 --format=gnu -S -cf "$tars/sparse-gnu.tar" folder/sparse
for version in 0.0 0.1 1.0; do
    tar -b1 --format=posix -S --sparse-version=$version -cf "$tars/sparse-$version.tar" folder/sparse
done
tar -b1 --format=posix --xattrs --acls -cf "$tars/xattrs.tar" folder/file
bsdtar -b1 --format=pax --exclude sparse -cf "$tars/bsd-pax.tar" folder
tar -b1 -cf - folder/file folder/soft | gzip -9n >"$tars/gzip.tar.gz"
tar -b1 -cf - folder/file folder/soft | bzip2 -9 >"$tars/bzip2.tar.bz2"
tar -b1 -cf - folder/file folder/soft | xz -0 >"$tars/xz.tar.xz"
tar -b1 -cf - folder/file folder/soft | zstd -q >"$tars/zstd.tar.zst"
