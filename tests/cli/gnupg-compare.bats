#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
# The same words and the same gpg.conf for gpg and for this program: the packets are compared.
load common

setup_file() {
    suite_home
}

@test "gpg and gpgtar choose the same keys, ciphers, formats, compression, digests and S2K" {
    mkdir "$SUITE/f"
    $PYTHON "$BATS_TEST_DIRNAME/gnupg_compare.py" "$GPGTAR" "$SUITE/f" >rows 2>&1 || {
        grep -v '^ok' rows >&2
        return 1
    }
    [ "$(grep -c '^ok' rows)" -gt 300 ]
}
