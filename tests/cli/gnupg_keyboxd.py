#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""A keyboxd over another home of gpg 2.2, which has none: called as keyboxd --homedir HOME --daemon.

HOME/store is a GnuPG home; what SEARCH asks is looked up there by gpg. What was asked is written to HOME/asked.
"""
import os
import socket
import subprocess
import sys

home = sys.argv[sys.argv.index("--homedir") + 1]
folder = subprocess.run(["gpgconf", "--homedir", home, "--list-dirs", "socketdir"], stdout=subprocess.PIPE,
                        check=True).stdout.decode().strip()
name = folder + "/S.keyboxd"
if os.path.exists(name):
    os.unlink(name)
listener = socket.socket(socket.AF_UNIX)
listener.bind(name)
listener.listen()
if os.fork():
    sys.exit(0)
with open(home + "/keyboxd.pid", "w") as file:
    file.write("%d\n" % os.getpid())


def gpg(*words):
    return subprocess.run(["gpg", "--homedir", home + "/store", "--batch", "--no-auto-check-trustdb", *words],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout


def search(pattern):
    lines = gpg("--with-colons", "--list-keys", *([pattern] if pattern else [])).decode().splitlines()
    return [lines[i + 1].split(":")[9] for i, line in enumerate(lines) if line.startswith("pub:")]


def answer(pending, code):
    if not pending:
        return b"ERR %d scripted\n" % (8 << 24 | code)
    content = gpg("--export", pending.pop(0))
    out = b"S PUBKEY_INFO 1 0000\n"
    for i in range(0, len(content), 300):
        out += b"D " + b"".join(b"%%%02X" % c if c in b"%\r\n" else bytes([c]) for c in content[i:i + 300]) + b"\n"
    return out + b"OK\n"


def serve(connection):
    pending = []
    connection.sendall(b"OK scripted\n")
    for line in connection.makefile("rb"):
        line = line.rstrip(b"\n").decode()
        with open(home + "/asked", "a") as log:
            log.write(line + "\n")
        word = line.split(" ")[0]
        if word == "SEARCH":
            pending = search(line[len("SEARCH --openpgp --"):].strip())
            connection.sendall(answer(pending, 27))
        elif word == "NEXT":
            connection.sendall(answer(pending, 16383))
        elif word == "BYE":
            return
        else:
            connection.sendall(b"OK\n")


while True:
    try:
        serve(listener.accept()[0])
    except OSError:
        pass  # a client that left
