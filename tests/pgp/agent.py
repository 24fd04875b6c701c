#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""A scripted gpg-agent: called as the real one is, gpg-agent --homedir HOME --use-standard-socket --daemon.

HOME/socket   the name of the socket
HOME/keys     lines KEYGRIP TYPE LETTER; type T: on a card, D: in software
HOME/packets  lines LETTER NUMBER FRAME: the first number of what was encrypted to key LETTER, and what PKDECRYPT with
              that key gives for it, in hex; "-": nobody can decrypt it
Each PKDECRYPT is written to HOME/asked: the letter of the key, and that of the packet.
"""
import os
import re
import socket
import sys

home = sys.argv[sys.argv.index("--homedir") + 1]


def words(name):
    with open(home + "/" + name) as lines:
        return [line.split() for line in lines]


listener = socket.socket(socket.AF_UNIX)
listener.bind(words("socket")[0][0])
listener.listen()
if os.fork():
    sys.exit(0)
with open(home + "/pid", "w") as file:
    file.write("%d\n" % os.getpid())


def unescape(data):
    return re.sub(rb"%(..)", lambda match: bytes.fromhex(match[1].decode()), data)


def ciphertext(stream):
    data = b""
    for line in stream:
        if not line.startswith(b"D "):
            break
        data += unescape(line[2:].rstrip(b"\n"))
    return data


def number(sexp):
    """The first number of (enc-val (rsa (a N)) ...), (elg (a ...) ...) or (ecdh ... (e ...))."""
    match = re.search(rb"\(1:[ae](\d+):", sexp)
    return int.from_bytes(sexp[match.end():match.end() + int(match[1])], "big")


def decrypt(letter, sexp):
    wanted = number(sexp)
    for owner, hexadecimal, frame in words("packets"):
        if int(hexadecimal, 16) != wanted:
            continue
        with open(home + "/asked", "a") as log:
            log.write(letter + owner + " ")
        if owner != letter or frame == "-":
            break
        value = bytes.fromhex(frame)
        sexp = b"(5:value%d:%s)" % (len(value), value)
        return b"S PADDING 0\nD " + b"".join(b"%%%02X" % octet for octet in sexp) + b"\nOK\n"
    return b"ERR %d scripted\n" % (6 << 24 | 108)  # a card error


def serve(connection):
    letter = ""
    connection.sendall(b"OK scripted\n")
    stream = connection.makefile("rb")
    for line in stream:
        verb, *rest = line.decode().split()
        if verb == "KEYINFO":
            for grip, kind, _ in words("keys"):
                connection.sendall(b"S KEYINFO %s %s - - - C - - -\n" % (grip.encode(), kind.encode()))
        elif verb == "SETKEY":
            letter = next(letter for grip, _, letter in words("keys") if grip == rest[0])
        elif verb == "PKDECRYPT":
            connection.sendall(b"INQUIRE CIPHERTEXT\n")
            connection.sendall(decrypt(letter, ciphertext(stream)))
            continue
        elif verb == "BYE":
            return
        connection.sendall(b"OK\n")


while True:
    try:
        serve(listener.accept()[0])
    except OSError:
        pass  # a client that left
