#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""A scripted keyboxd: called as the real one is, keyboxd --homedir HOME --daemon.

HOME/answers has lines of a pattern, a tab and the names of files in HOME whose content is found for it.
What is asked is written to HOME/asked. The pattern "die" ends the server in mid-answer.
"""
import os
import socket
import sys

home = sys.argv[sys.argv.index("--homedir") + 1]
if os.path.exists(home + "/refuse"):
    sys.exit(2)
listener = socket.socket(socket.AF_UNIX)
listener.bind(home + "/S.keyboxd")
listener.listen()
if os.fork():
    sys.exit(0)
with open(home + "/pid", "w") as file:
    file.write("%d\n" % os.getpid())
answers = {}
with open(home + "/answers") as lines:
    for line in lines:
        pattern, files = line.rstrip("\n").split("\t")
        answers[pattern] = files.split()


def error(code):
    return b"ERR %d scripted\n" % (8 << 24 | code)


def data(name):
    with open(home + "/" + name, "rb") as file:
        content = file.read()
    out = b""
    for i in range(0, len(content), 300):
        part = content[i:i + 300]
        out += b"D " + b"".join(b"%%%02X" % c if c in b"%\r\n" else bytes([c]) for c in part) + b"\n"
    return b"S PUBKEY_INFO 1 0000\n" + out + b"OK\n"


def serve(connection):
    pending = []
    connection.sendall(b"OK scripted\n")
    stream = connection.makefile("rb")
    for line in stream:
        line = line.rstrip(b"\n").decode()
        with open(home + "/asked", "a") as log:
            log.write(line + "\n")
        word = line.split(" ")[0]
        if word == "SEARCH":
            pattern = line[len("SEARCH --openpgp --"):].lstrip(" ")
            if pattern == "*die":
                connection.sendall(b"D half an ans")
                os._exit(0)
            pending = list(answers.get(pattern, []))
        elif word == "BYE":
            return
        elif word != "NEXT":
            connection.sendall(b"OK\n")
            continue
        if pending and pending[0] == "error":
            connection.sendall(error(69))
        elif pending:
            connection.sendall(data(pending.pop(0)))
        else:
            connection.sendall(error(16383 if word == "NEXT" else 27))


while True:
    try:
        serve(listener.accept()[0])
    except OSError:
        pass  # a client that left
