#!/usr/bin/python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""packet9.py PASSPHRASE: encrypts stdin as programs did before there was integrity protection (packet 9, AES-128)."""
import hashlib
import os
import struct
import sys

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes


def packet(tag, body):
    return bytes([0xc0 | tag, 0xff]) + struct.pack('>I', len(body)) + body


def cfb(key, iv, data):
    encryptor = Cipher(algorithms.AES(key), modes.CFB(iv)).encryptor()
    return encryptor.update(data) + encryptor.finalize()


salt = os.urandom(8)
key = hashlib.sha256(salt + sys.argv[1].encode()).digest()[:16]
start = os.urandom(16)
head = cfb(key, bytes(16), start + start[-2:])
literal = packet(11, b'b\0\0\0\0\0' + sys.stdin.buffer.read())
# RFC 4880 13.9: after the repeated bytes, CFB starts anew from the last 16 bytes of ciphertext.
sys.stdout.buffer.write(packet(3, b'\x04\x07\x01\x08' + salt) + packet(9, head + cfb(key, head[2:], literal)))
