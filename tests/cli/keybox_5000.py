#!/usr/bin/python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long one recipient takes to find among thousands of certificates.

usage: keybox_5000.py PROGRAM [COUNT]      (COUNT: 5000)
Makes COUNT certificates with signatures of their own, lets gpg import them into a keybox, and encrypts a
small folder to the first, the middle and the last, by address, fingerprint and part of a name, in pairs with gpg. The
look-up is the difference to a home with that one certificate. Prints medians in milliseconds; asserts nothing.
"""
import hashlib
import os
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import time

from cryptography.hazmat.primitives.asymmetric import ed25519, x25519
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

MADE = 1577836800
ROUNDS = 15


def packet(tag, body):
    return bytes([0xC0 | tag]) + (bytes([len(body)]) if len(body) < 192 else
                                  struct.pack(">BB", (len(body) - 192 >> 8) + 192, len(body) - 192 & 0xFF)) + body


def mpi(octets):
    octets = octets.lstrip(b"\0")
    return struct.pack(">H", 8 * len(octets) - 8 + octets[0].bit_length()) + octets


def raw(key):
    return key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)


def signature(key, kind, hashed, issuer, target):
    head = struct.pack(">BBBBH", 4, kind, 22, 8, len(hashed)) + hashed
    digest = hashlib.sha256(target + head + struct.pack(">BBI", 4, 0xFF, len(head))).digest()
    value = key.sign(digest)
    return packet(2, head + struct.pack(">HBB", 10, 9, 16) + issuer + digest[:2] + mpi(value[:32]) + mpi(value[32:]))


def framed(body):
    return b"\x99" + struct.pack(">H", len(body)) + body


def certificate(name):
    """Fingerprint and packets of a certificate for signing and encryption."""
    key, sub = ed25519.Ed25519PrivateKey.generate(), x25519.X25519PrivateKey.generate()
    primary = struct.pack(">BIB", 4, MADE, 22) + bytes.fromhex("092b06010401da470f01") + mpi(b"\x40" + raw(key))
    subkey = (struct.pack(">BIB", 4, MADE, 18) + bytes.fromhex("0a2b060104019755010501") + mpi(b"\x40" + raw(sub)) +
              bytes.fromhex("03010807"))
    fpr = hashlib.sha1(framed(primary)).digest()
    made = struct.pack(">BBI", 5, 2, MADE)
    uid = name.encode()
    flags = bytes.fromhex("021b03 040b090807 03150a08 021e01".replace(" ", ""))
    prefs = made + flags
    return fpr.hex().upper(), (
        packet(6, primary) + packet(13, uid) +
        signature(key, 0x13, prefs, fpr[-8:], framed(primary) + b"\xb4" + struct.pack(">I", len(uid)) + uid) +
        packet(14, subkey) +
        signature(key, 0x18, made + bytes.fromhex("021b0c"), fpr[-8:], framed(primary) + framed(subkey)))


def milliseconds(home, words):
    start = time.monotonic()
    subprocess.run(words, check=True, env=dict(os.environ, GNUPGHOME=home), stderr=subprocess.DEVNULL,
                   stdin=subprocess.DEVNULL)
    return 1000 * (time.monotonic() - start)


def main():
    program, count = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 5000
    work = tempfile.mkdtemp()
    try:
        measure(os.path.abspath(program), count, work)
    finally:
        shutil.rmtree(work)


def measure(program, count, work):
    made = [certificate("person %05d <person%05d@example.org>" % (i, i)) for i in range(count)]
    homes = {}
    for name, wanted in (("all", range(count)), ("first", [0]), ("middle", [count // 2]), ("last", [count - 1])):
        homes[name] = "%s/%s" % (work, name)
        os.mkdir(homes[name], 0o700)
        start = time.monotonic()
        subprocess.run(["gpg", "--batch", "--quiet", "--homedir", homes[name], "--import"], check=True,
                       input=b"".join(made[i][1] for i in wanted), stderr=subprocess.DEVNULL)
        print("imported %d in %.0f s" % (len(wanted), time.monotonic() - start), file=sys.stderr)
    os.mkdir(work + "/d")
    with open(work + "/d/f", "w") as file:
        file.write("small\n")
    print("%d certificates, keybox of %.1f MB, medians of %d rounds in ms" % (
        count, os.path.getsize(homes["all"] + "/pubring.kbx") / 1e6, ROUNDS))
    print("%-8s %-12s %8s %12s %9s %8s" % ("which", "named by", "gpgtar", "in a small", "look-up", "gpg"))
    for which, i in (("first", 0), ("middle", count // 2), ("last", count - 1)):
        address = "person%05d@example.org" % i
        for way, name in (("address", address), ("fingerprint", made[i][0]), ("substring", "*son%05d@ex" % i)):
            ours = [program, "--batch", "--yes", "--always-trust", "-e", "-r", name, "-C", work, "-o", work + "/o", "d"]
            theirs = ["gpg", "--batch", "--yes", "--always-trust", "-e", "-r", name, "-o", work + "/p", work + "/d/f"]
            rows = [(milliseconds(homes["all"], ours), milliseconds(homes[which], ours),
                     milliseconds(homes["all"], theirs)) for _ in range(ROUNDS)]
            large, small, gpg = (statistics.median(column) for column in zip(*rows))
            print("%-8s %-12s %8.1f %12.1f %9.1f %8.1f" % (which, way, large, small, large - small, gpg), flush=True)


main()
