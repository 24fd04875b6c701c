#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# One command does all the set-up: packages, build, and the job itself.
set -eu
cd "$(dirname "$0")"
top=$PWD

usage() {
    cat <<END
usage: ./build.sh try [FOLDER]      archive FOLDER signed and encrypted, list, verify, extract and compare it
       ./build.sh test [PRESET]     build and run the whole test suite (PRESET: release, asan, tsan, clang, ...)
       ./build.sh fuzz [SECONDS]    run every fuzz target for SECONDS (60)
       ./build.sh bench [ARGS]      run the benchmark against its rivals (see tests/bench/)
       ./build.sh install [PREFIX]  build and install (/usr/local)
       ./build.sh build [PRESET]    only build; the program is build/PRESET/gpgtar/gpgtar
END
}

say() {
    printf '== %s\n' "$*" >&2
}

# What each job needs from Debian 12.
build_packages="gcc cmake ninja-build pkg-config libc6-dev libarchive-dev libgcrypt20-dev libgpg-error-dev libassuan-dev
 zlib1g-dev libbz2-dev libisal-dev"
try_packages="gpg gpg-agent attr acl time diffutils"
test_packages="$try_packages gnupg gnupg-utils libcmocka-dev bats libarchive-tools tar python3 sq sqop rnp pgpainless-cli python3-pgpy python3-cryptography
 strace procps util-linux libcap2-bin expect git gpgsm gpgconf bzip2 xz-utils zstd softhsm2 gnupg-pkcs11-scd opensc openssl"

need() {
    local missing="" package
    for package in "$@"; do
        [ "$(dpkg-query -W -f='${Status}' "$package" 2>/dev/null)" = "install ok installed" ] || missing="$missing $package"
    done
    [ -n "$missing" ] || return 0
    say "installing:$missing"
    local root=""
    if [ "$(id -u)" != 0 ]; then
        command -v sudo >/dev/null || { echo "build.sh: these packages are missing and this is not root:$missing" >&2; exit 1; }
        root=sudo
    fi
    $root apt-get update -qq
    # shellcheck disable=SC2086 # words
    $root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null
}

# Node.js and OpenPGP.js, the only free program here that writes version 6 messages.
openpgpjs_version=6.3.2
need_openpgpjs() {
    command -v node >/dev/null && command -v npm >/dev/null || need nodejs npm
    [ -d build/npm/node_modules/openpgp ] && return 0
    say "installing OpenPGP.js $openpgpjs_version"
    mkdir -p build/npm
    npm install --silent --no-audit --no-fund --no-package-lock --prefix build/npm "openpgp@$openpgpjs_version" >/dev/null
}

# build PRESET [ARGUMENTS…]: what they ask of cmake --build; without any, the tests are built as well.
build() {
    # shellcheck disable=SC2086
    need $build_packages
    [ "$1" != clang ] && [ "$1" != fuzz ] || need clang libclang-rt-14-dev
    say "building ($1)"
    cmake --preset "$1" >"build-$1.log" 2>&1 || { cat "build-$1.log" >&2; rm -f "build-$1.log"; exit 1; }
    rm -f "build-$1.log"
    cmake --build --preset "$@" >"build-$1.log" 2>&1 || { cat "build-$1.log" >&2; rm -f "build-$1.log"; exit 1; }
    tail -n 1 "build-$1.log"
    rm -f "build-$1.log"
}

run_tests() {
    local preset=$1
    shift
    # shellcheck disable=SC2086
    need $test_packages
    need_openpgpjs
    build "$preset"
    say "testing ($preset)"
    (cd "build/$preset" && ctest --output-on-failure -j "$(nproc)" "$@")
}

job=${1:-help}
[ $# -eq 0 ] || shift
case $job in
build)
    build "${1:-release}"
    ;;
try)
    # shellcheck disable=SC2086
    need $try_packages
    build release --target gpgtar
    exec tests/cli/try.sh "$top/build/release/gpgtar/gpgtar" "$@"
    ;;
test)
    preset=${1:-release}
    [ $# -eq 0 ] || shift
    run_tests "$preset" "$@"
    ;;
fuzz)
    build fuzz
    exec tests/fuzz/run.sh "$top/build/fuzz" "${1:-60}"
    ;;
bench)
    need libarchive-tools tar gnupg time python3
    build release
    exec tests/bench/bench.py --program "$top/build/release/gpgtar/gpgtar" "$@"
    ;;
install)
    build release --target gpgtar
    cmake --install build/release --prefix "${1:-/usr/local}"
    ;;
*)
    usage
    [ "$job" = help ] || exit 2
    ;;
esac
