#!/usr/bin/python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes a tar of the given members to stdout, however odd they are.

bad_tars.py MEMBER…, each TYPE:NAME[=VALUE][,KEY=VALUE]… with
    file:NAME=CONTENT   dir:NAME   sym:NAME=TARGET   hard:NAME=TARGET   fifo:NAME
    pax:REAL=NAME       a file whose header says REAL and whose pax record says NAME
    raw:HEX             bytes as they are (no checksum), after the members before it
    size:HEX            a file "sized" with these 12 bytes as its size field, and a right checksum
    keys: mode (octal), mtime
NAME, CONTENT and TARGET: Python escapes count (\\x1b).
"""
import io
import sys
import tarfile

TYPES = {'file': tarfile.REGTYPE, 'dir': tarfile.DIRTYPE, 'sym': tarfile.SYMTYPE, 'hard': tarfile.LNKTYPE, 'fifo': tarfile.FIFOTYPE}


def unescape(text):
    return text.encode('utf-8', 'surrogateescape').decode('unicode_escape')


def sized(field):
    member = tarfile.TarInfo('sized')
    block = bytearray(member.tobuf(tarfile.USTAR_FORMAT))
    block[124:136] = bytes.fromhex(field)
    block[148:156] = b' ' * 8
    block[148:156] = b'%06o\0 ' % sum(block)
    return bytes(block)


def main():
    out = io.BytesIO()
    tar = tarfile.open(fileobj=out, mode='w', format=tarfile.PAX_FORMAT)
    for word in sys.argv[1:]:
        kind, _, rest = word.partition(':')
        parts = rest.split(',')
        name, _, value = parts[0].partition('=')
        name, value = unescape(name), unescape(value)
        if kind == 'raw':
            out.write(bytes.fromhex(name))
            continue
        if kind == 'size':
            out.write(sized(name))
            continue
        member = tarfile.TarInfo(name)
        member.mode = 0o755 if kind == 'dir' else 0o644
        member.mtime = 1_000_000_000
        for part in parts[1:]:
            key, _, number = part.partition('=')
            setattr(member, key, int(number, 8) if key == 'mode' else int(number))
        if kind == 'pax':
            member.pax_headers = {'path': value}
            content = value.encode()
        else:
            member.type = TYPES[kind]
            content = value.encode('latin-1') if kind == 'file' else b''
            if kind in ('sym', 'hard'):
                member.linkname = value
        member.size = len(content)
        tar.addfile(member, io.BytesIO(content))
    tar.close()
    sys.stdout.buffer.write(out.getvalue())


main()
