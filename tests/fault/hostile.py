#!/usr/bin/python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hostile tars of every kind, extracted beside a tree that must not change by one bit.

Each case names its members; what may come of it (exit code, counts of GPGTAR_EXTRACT, names that must be there and names
that must not) is judged, and always: nothing outside the target changed, nothing of gpgtar is left, no crash, no hang.
hostile.py --write FOLDER writes the tars for other tests.
"""
import io
import os
import re
import struct
import sys
import tarfile

FORMATS = {'ustar': tarfile.USTAR_FORMAT, 'pax': tarfile.PAX_FORMAT, 'gnu': tarfile.GNU_FORMAT}
KINDS = {'file': tarfile.REGTYPE, 'dir': tarfile.DIRTYPE, 'sym': tarfile.SYMTYPE, 'hard': tarfile.LNKTYPE,
         'fifo': tarfile.FIFOTYPE, 'chr': tarfile.CHRTYPE, 'blk': tarfile.BLKTYPE, 'cont': tarfile.CONTTYPE}
END = bytes(1024)


def member(kind, name, value='', fmt=tarfile.PAX_FORMAT, content=None, **fields):
    """One member's blocks; VALUE is the content or the link's target."""
    info = tarfile.TarInfo(name)
    info.type = KINDS[kind]
    info.mode = fields.pop('mode', 0o755 if kind == 'dir' else 0o644)
    info.mtime = fields.pop('mtime', 1_000_000_000)
    pax = fields.pop('pax', None)
    for key, what in fields.items():
        setattr(info, key, what)
    if pax:
        info.pax_headers = pax
    body = value.encode() if kind == 'file' and content is None else content or b''
    if kind in ('sym', 'hard'):
        info.linkname = value
    info.size = len(body)
    return info.tobuf(fmt, 'utf-8', 'surrogateescape') + body + bytes(-len(body) % 512)


def header(name=b'raw', size=b'%011o\0' % 0, kind=b'0', mode=b'0000644\0', mtime=b'%011o\0' % 10**9, link=b'',
           magic=b'ustar\x0000', prefix=b'', checksum=None, uid=b'0000000\0', device=b'0000000\0'):
    """One header, field by field, with a right checksum unless one is given."""
    block = bytearray(512)
    for at, n, what in ((0, 100, name), (100, 8, mode), (108, 8, uid), (116, 8, uid), (124, 12, size), (136, 12, mtime),
                        (156, 1, kind), (157, 100, link), (257, 8, magic), (329, 8, device), (337, 8, device),
                        (345, 155, prefix)):
        block[at:at + min(len(what), n)] = what[:n]
    block[148:156] = b' ' * 8
    block[148:156] = checksum(block) if checksum else b'%06o\0 ' % sum(block)
    return bytes(block)


def extended(records, kind=b'x', size=None):
    """A pax header of these bytes."""
    return header(b'PaxHeader', b'%011o\0' % (len(records) if size is None else size), kind) + records + bytes(-len(records) % 512)


def record(key, value):
    rest = b' ' + key + b'=' + value + b'\n'
    n = len(rest) + 1
    while len(str(n)) + len(rest) != n:
        n = len(str(n)) + len(rest)
    return str(n).encode() + rest


def pax_file(records, body=b'x\n', name=b'raw'):
    return extended(records) + header(name, b'%011o\0' % len(body)) + body + bytes(-len(body) % 512)


def long_name(text, kind=b'L'):
    return header(b'././@LongLink', b'%011o\0' % (len(text) + 1), kind, magic=b'ustar  \0') + text + b'\0' + bytes(-(len(text) + 1) % 512)


def old_sparse(pairs, real, body=b'', size=None):
    """GNU's old sparse header: four pieces in the header."""
    block = bytearray(header(b'sparse', b'%011o\0' % (len(body) if size is None else size), b'S', magic=b'ustar  \0'))
    at = 386
    for offset, n in pairs[:4]:
        for value in (offset, n):
            block[at:at + 12] = value if isinstance(value, bytes) else b'%011o\0' % value
            at += 12
    block[483:495] = real if isinstance(real, bytes) else b'%011o\0' % real
    block[148:156] = b' ' * 8
    block[148:156] = b'%06o\0 ' % sum(block)
    return bytes(block) + body + bytes(-len(body) % 512)


def base256(value):
    return b'\x80' + value.to_bytes(11, 'big') if value >= 0 else (value + (1 << 96)).to_bytes(12, 'big')


def new_sparse(text, name=b'sparse', real=b'1000', body=b''):
    """GNU 1.0 in pax: the map, as text, stands before the data."""
    text += bytes(-len(text) % 512)
    body = text + body
    records = (record(b'GNU.sparse.major', b'1') + record(b'GNU.sparse.minor', b'0') + record(b'GNU.sparse.name', name) +
               record(b'GNU.sparse.realsize', real))
    return pax_file(records, body)


OK = [('file', 'ok1', 'one'), ('file', 'zz/ok2', 'two')]


class Case:
    """MEMBERS: tuples for member(), or bytes. REFUSED: the skipped of GPGTAR_EXTRACT (None: any). THERE and AWAY: names."""

    def __init__(self, name, members, code=1, refused=None, there=('ok1', 'zz/ok2'), away=(), around=True, formats=None,
                 arguments=()):
        self.name, self.code, self.refused = name, code, refused
        self.there, self.away, self.arguments = there, away, arguments
        self.members = [OK[0], *members, OK[1]] if around else members
        plain = all(isinstance(m, tuple) for m in members)
        self.formats = formats or (list(FORMATS) if plain else ['raw'])

    def tar(self, fmt):
        out = io.BytesIO()
        for item in self.members:
            if isinstance(item, bytes):
                out.write(item)
                continue
            kind, name, *rest = item
            fields = rest.pop() if rest and isinstance(rest[-1], dict) else {}
            out.write(member(kind, name, *rest, fmt=FORMATS.get(fmt, tarfile.PAX_FORMAT), **fields))
        return out.getvalue() + END


def cases(outside):
    """OUTSIDE is the absolute path of the sentinel tree, which is `../outside` from the target."""
    yield from bad_names(outside)
    yield from bad_links(outside)
    yield from bad_metadata(outside)
    yield from bad_headers()
    yield from bad_sizes()
    yield from bad_sparse()


def bad_names(outside):
    for i, name in enumerate(['../outside/new', '../outside/file', 'a/../../outside/file', '..', 'a/..', '../', './../outside/file',
                              'a/b/../../../outside/file', '//../outside/file', '/../outside/file', 'a/../ok1', '.../../../outside/file']):
        yield Case(f'dots-{i}', [('file', name, 'evil')], refused=1)
        yield Case(f'dots-pax-{i}', [pax_file(record(b'path', name.encode()))], refused=1)
        yield Case(f'dots-folder-{i}', [('dir', name)], refused=1)
        yield Case(f'dots-L-{i}', [long_name(name.encode()) + header(b'x')], refused=1)
        yield Case(f'dots-prefix-{i}', [header(b'tail', prefix=name.encode())], refused=1)
    yield Case('absolute', [('file', f'{outside}/file', 'evil')], code=0, refused=0, there=['ok1', outside.lstrip('/') + '/file'])
    yield Case('absolute-folder', [('dir', outside, {'mode': 0o777})], code=0, refused=0)
    yield Case('backslash', [('file', '..\\outside\\file', 'x')], code=0, refused=0, there=['..\\outside\\file'])
    yield Case('dots-lookalike', [('file', '․․/x', 'x'), ('file', '..x/y', 'x'), ('file', '...', 'x')], code=0, refused=0,
               there=['․․/x', '..x/y', '...'])
    yield Case('unicode', [('file', 'a\u202etxt.exe', 'x'), ('file', 'nfd-e\u0301', 'x'), ('file', 'nfd-\u00e9', 'x'),
                           ('file', '／etc／passwd', 'x')], code=0, refused=0)
    yield Case('not-utf8', [header(b'\xff\xfe/\xc0\xae\xc0\xae/x'), header(b'\xed\xa0\x80')], code=0, refused=0)
    yield Case('empty-name', [header(b'')])
    yield Case('slash-name', [header(b'/')], code=None)
    yield Case('dot-name', [('dir', '.', {'mode': 0o777})], code=0)
    yield Case('dot-tail', [('dir', 'a/.'), ('file', 'a/./b', 'x')], code=0, there=['ok1', 'a/b'])
    yield Case('dot-file', [header(b'.')], code=None)
    yield Case('slash-file', [header(b'f/', kind=b'0', size=b'%011o\0' % 2) + b'x\n' + bytes(510)], code=None)
    yield Case('slash-link', [header(b'f/', kind=b'2', link=outside.encode()[:99])], code=None)
    yield Case('long-component', [('file', 'n' * 256, 'x')], refused=1, formats=['pax', 'gnu'])
    yield Case('long-path', [('file', '/'.join(['d' * 200] * 40), 'x')], code=None, formats=['pax', 'gnu'])
    yield Case('huge-path', [pax_file(record(b'path', b'p/' * 200_000 + b'x'))], code=None)
    yield Case('pax-nul', [pax_file(record(b'path', b'ok\0/../../outside/file'))], code=None)
    yield Case('pax-empty-path', [pax_file(record(b'path', b''))], code=None)
    yield Case('control', [('file', 'a\x1b[2Jb\nc', 'x')], code=0)
    yield Case('staging-name', [('file', '.gpgtar-abcDEF', 'x'), ('dir', '.gpgtar-abcDE1')], code=0)


def bad_links(outside):
    for i, target in enumerate([outside, '..', '../outside', '../../..', '/', 'a/../..', './..//outside', 'zz/../../outside']):
        yield Case(f'link-out-{i}', [('sym', 'l', target)], refused=1, away=['l'])
        yield Case(f'link-then-file-{i}', [('sym', 'l', target), ('file', 'l/file', 'evil')])
        yield Case(f'link-then-folder-{i}', [('sym', 'l', target), ('dir', 'l', {'mode': 0o777})], code=None)
        yield Case(f'folder-then-link-{i}', [('dir', 'l', {'mode': 0o777, 'mtime': 5}), ('sym', 'l', target)], refused=1)
        yield Case(f'hard-out-{i}', [('hard', 'h', target + '/file'), ('hard', 'h2', target)], refused=2, away=['h', 'h2'])
        yield Case(f'hard-then-write-{i}', [('hard', 'h', target + '/file'), ('file', 'h', 'evil')], refused=1)
        yield Case(f'hard-content-{i}', [header(b'h', b'%011o\0' % 5, b'1', link=(target + '/file').encode()[:99]) + b'evil!' + bytes(507)], code=None)
    yield Case('through-inner-link', [('dir', 'd'), ('sym', 'l', 'd'), ('file', 'l/x', 'x')], refused=1, away=['d/x'])
    yield Case('chain', [('sym', 'a', 'b'), ('sym', 'b', 'c'), ('sym', 'c', outside), ('file', 'a/file', 'evil')], code=1)
    yield Case('chain-by-climb', [('dir', 'x/y'), ('sym', 'l', 'x/y'), ('sym', 'm', 'l/../..'), ('file', 'm/outside/file', 'evil')])
    yield Case('climb-by-link', [('dir', 'x/y/z'), ('sym', 'x/up', 'y/z'), ('sym', 'x/out', 'up/../../../..')], away=['x/out'])
    yield Case('deep-chain', [('sym', f'c{i}', f'c{i + 1}') for i in range(60)] + [('sym', 'c60', '../outside'), ('file', 'c0/file', 'x')])
    yield Case('loop', [('sym', 'p', 'q'), ('sym', 'q', 'p'), ('file', 'p/x', 'x')], refused=1)
    yield Case('self', [('sym', 's', 's'), ('file', 's/x', 'x')], refused=1)
    yield Case('link-then-same-file', [('sym', 'ok3', 'ok1'), ('file', 'ok3', 'new')], code=0, refused=0, there=['ok1', 'ok3'])
    yield Case('hard-to-link', [('sym', 's', 'ok1'), ('hard', 'h', 's'), ('file', 'h', 'x')], code=0)
    yield Case('hard-to-link-moved', [('dir', 'deep/er'), ('sym', 'deep/er/s', '../../ok1'), ('hard', 'h', 'deep/er/s')], refused=1)
    yield Case('hard-to-folder', [('dir', 'd'), ('hard', 'h', 'd')], refused=1)
    yield Case('hard-to-itself', [('hard', 'h', 'h')], refused=1)
    yield Case('hard-to-later', [('hard', 'h', 'zz/ok2')], refused=1)
    yield Case('hard-through-link', [('dir', 'd'), ('file', 'd/x', 'x'), ('sym', 'l', 'd'), ('hard', 'h', 'l/x')], refused=1)
    yield Case('hard-replaced', [('file', 'f', 'one'), ('hard', 'h', 'f'), ('file', 'h', 'two')], code=0)
    yield Case('pax-linkpath', [extended(record(b'linkpath', outside.encode())) + header(b'l', kind=b'2', link=b'ok1')], refused=1, away=['l'])
    yield Case('gnu-longlink', [long_name(outside.encode(), b'K') + header(b'l', kind=b'2', link=b'ok1')], refused=1, away=['l'])
    yield Case('link-empty', [header(b'l', kind=b'2')], refused=1, away=['l'])
    yield Case('link-huge', [('sym', 'l', 'x/' * 3000 + 'y')], code=None, formats=['pax', 'gnu'])
    yield Case('file-as-folder', [('file', 'f', 'x'), ('file', 'f/x', 'x')], refused=1)
    yield Case('file-over-folder', [('file', 'd/x', 'x'), ('file', 'd', 'x')], refused=1)
    yield Case('folder-over-file', [('file', 'f', 'x'), ('dir', 'f')], code=0)
    yield Case('swap-swap', [('dir', 'd'), ('sym', 'd', 'zz'), ('dir', 'd'), ('sym', 'd', outside), ('file', 'd/file', 'x')])
    yield Case('twice', [('file', 'f', str(i)) for i in range(20)], code=0)
    yield Case('dir-link-dir', [('dir', 'd'), ('sym', 'd/up', '..'), ('file', 'd/up/d/up/d/up/f', 'x')], refused=1)


def bad_metadata(outside):
    xattr = lambda name: {'pax': {f'SCHILY.xattr.{name}': 'evil'}}
    for i, name in enumerate(['security.capability', 'security.selinux', 'trusted.overlay.opaque', 'system.posix_acl_access', 'system.x', 'x', '']):
        yield Case(f'xattr-{i}', [('file', 'f', 'x', xattr(name))], code=None, formats=['pax'])
        yield Case(f'xattr-on-link-{i}', [('dir', 'd', xattr(name)), ('sym', 'd', '../outside'), ('sym', 'e', 'zz', xattr(name))], code=None, formats=['pax'])
    yield Case('xattr-huge', [('file', 'f', 'x', {'pax': {'user.x': 'y', 'SCHILY.xattr.user.big': 'z' * 300_000}})], code=None, formats=['pax'])
    yield Case('xattr-many', [pax_file(b''.join(record(b'SCHILY.xattr.user.%d' % i, b'v') for i in range(3000)))], code=None)
    yield Case('acl', [('dir', 'd', {'pax': {'SCHILY.acl.access': 'user::rwx,user:0:rwx,group::rwx,mask::rwx,other::rwx'}}), ('sym', 'd', '../outside')], formats=['pax'])
    yield Case('acl-nonsense', [('file', 'f', 'x', {'pax': {'SCHILY.acl.access': 'user:' * 5000, 'SCHILY.acl.default': 'other:7:rwxst'}})], code=None, formats=['pax'])
    yield Case('setuid', [('file', 'f', 'x', {'mode': 0o6755}), ('dir', 'd', {'mode': 0o7777})], code=0, refused=0)
    yield Case('owner', [('file', 'f', 'x', {'uid': 2**21 - 2, 'gid': 2**21 - 2, 'uname': 'nobody' * 5, 'gname': '../x'})], code=None)
    yield Case('owner-huge', [pax_file(record(b'uid', b'99999999999999999999') + record(b'gid', b'-1'))], code=None)
    yield Case('device-nonsense', [header(b'd', kind=b'3', device=b'7777777\0')], code=None)
    yield Case('fifo', [('fifo', 'p'), ('file', 'p/x', 'x')], refused=1)
    yield Case('fifo-then-file', [('fifo', 'p'), ('file', 'p', 'x')], code=0)
    yield Case('time-nonsense', [pax_file(record(b'mtime', b'1e400') + record(b'atime', b'nan') + record(b'ctime', b'-'))], code=None)
    yield Case('time-far', [pax_file(record(b'mtime', b'9223372036854775807.999999999999')), pax_file(record(b'mtime', b'-9223372036854775808'))], code=None)
    yield Case('locked-folder', [('dir', 'd', {'mode': 0}), ('file', 'd/x', 'x'), ('dir', 'd/e', {'mode': 0}), ('file', 'd/e/y', 'y')], code=0)
    yield Case('deferred-on-link', [('dir', 'd/e', {'mode': 0o777, 'mtime': 1}), ('file', 'd/e', 'x'), ('dir', 'd', {'mode': 0o700})], code=None)


def bad_headers():
    yield Case('checksum-wrong', [header(checksum=lambda b: b'%06o\0 ' % (sum(b) + 1))], code=None)
    yield Case('checksum-signed', [header(b'\xff\xfe', checksum=lambda b: b'%06o\0 ' % (sum(x - 256 if x > 127 else x for x in b) & 0o777777))], code=None)
    yield Case('checksum-text', [header(checksum=lambda b: b'evil!!!!')], code=None)
    yield Case('unknown-kinds', [header(b'k%d' % i, kind=bytes([i])) for i in (65, 68, 77, 78, 86, 122, 127, 200)], code=None)
    yield Case('pax-huge', [extended(record(b'comment', b'c' * 20_000_000)) + header(b'x')], code=None, there=())
    yield Case('pax-size-lies', [extended(b'10 path=x\n', size=2**33 - 1)], code=None, there=())
    yield Case('pax-length-lies', [extended(b'99999999999999999999 path=x\n') + header(b'x')], code=None)
    yield Case('pax-length-short', [extended(b'3 path=x\n') + header(b'x')], code=None)
    yield Case('pax-no-equals', [extended(b'9 pathxy\n') + header(b'x')], code=None)
    yield Case('pax-on-pax', [extended(record(b'path', b'a')) * 1000 + header(b'x')], code=None, there=())
    yield Case('pax-global', [extended(record(b'path', b'../outside/file'), b'g') + header(b'x')], code=None)
    yield Case('pax-global-link', [extended(record(b'linkpath', b'../outside'), b'g') + header(b'l', kind=b'2', link=b'ok1')], code=None)
    yield Case('pax-alone', [extended(record(b'path', b'a'))], code=None, around=False, there=())
    yield Case('longname-chain', [long_name(b'a' * 50) * 3000 + header(b'x')], code=None, there=())
    yield Case('longname-huge', [long_name(b'd/' * 4_000_000) + header(b'x')], code=None, there=())
    yield Case('longname-lies', [header(b'././@LongLink', b'77777777777\0', b'L')], code=None, there=())
    yield Case('magic-odd', [header(b'v7', magic=b''), header(b'odd', magic=b'ustar\0zz'), header(b'gnu', magic=b'ustar  \0')], code=None)
    yield Case('no-tar', [b'not a tar at all ' * 1000], around=False, there=(), code=1)
    yield Case('zeros-then-more', [bytes(1024), header(b'after')], code=None, there=['ok1'])
    yield Case('nothing', [], around=False, there=(), code=None)


def bad_sizes():
    for i, size in enumerate([base256(2**63), base256(2**63 - 1), b'\x80' + b'\xff' * 11, base256(-1), base256(-2**63), b'\xff' * 12, b'\x80' + bytes(11),
                              b'-0000000001\0', b'99999999999\0', b'\0' * 12, b' ' * 12, b'777777777777', b'0x10\0', b'1 2\0']):
        yield Case(f'size-{i}', [header(b'sized', size)], code=None, there=['ok1'] if i in (6, 9, 10) else ())
        yield Case(f'size-folder-{i}', [header(b'sized', size, kind=b'5')], code=None, there=())
        yield Case(f'size-link-{i}', [header(b'sized', size, kind=b'2', link=b'ok1')], code=None, there=())
        yield Case(f'size-pax-kind-{i}', [header(b'sized', size, kind=b'x')], code=None, there=())
    for i, size in enumerate([b'-1', b'9223372036854775807', b'9223372036854775808', b'18446744073709551616', b'1e3', b'', b' 1', b'0x1']):
        yield Case(f'size-record-{i}', [pax_file(record(b'size', size))], code=None, there=())


def bad_sparse():
    for i, pairs in enumerate([[(0, 2**33 - 1)], [(2**33 - 1, 1)], [(5, 5), (0, 5)], [(0, 5), (3, 5)], [(base256(-1), 5)],
                               [(base256(2**63 - 1), 100)], [(0, base256(2**64))], [(b'evil', b'evil')]]):
        for real in (5, 10, 2**33 - 1, base256(2**62), base256(-1), base256(2**63)):
            yield Case(f'old-sparse-{i}', [old_sparse(pairs, real, b'0123456789')], code=None, there=(), arguments=['--max-size', '10G'])
    for i, text in enumerate([b'1\n0\n99999999999\n', b'2\n5\n5\n0\n5\n', b'2\n0\n5\n3\n5\n', b'1\n-1\n5\n', b'1\n9223372036854775807\n10\n',
                              b'999999999\n' + b'0\n1\n' * 1000, b'x\n', b'-1\n', b'1\n', b'1' * 600, b'', b'1\n0\n5\n' + bytes(5)]):
        for real in (b'1000', b'0', b'-1', b'9223372036854775807', b'18446744073709551617'):
            yield Case(f'new-sparse-{i}', [new_sparse(text, real=real, body=b'0123456789' + bytes(502))], code=None, there=(), arguments=['--max-size', '10G'])
    yield Case('sparse-name', [new_sparse(b'1\n0\n5\n', name=b'../outside/file', body=bytes(512))], code=None, there=())
    yield Case('sparse-bomb', [new_sparse(b'1\n0\n0\n', real=str(2**50).encode())], code=None, there=(), arguments=['--max-size', '1G'])
    yield Case('sparse-many', [new_sparse(b'100000\n' + b''.join(b'%d\n1\n' % (i * 1000) for i in range(100_000)),
                                          real=b'100000000', body=bytes(100_352))], code=None, there=())
    yield Case('sparse-0.0', [pax_file(record(b'GNU.sparse.size', b'100') + record(b'GNU.sparse.numblocks', b'2') + record(b'GNU.sparse.offset', b'50') +
                                       record(b'GNU.sparse.numbytes', b'60') + record(b'GNU.sparse.offset', b'0') + record(b'GNU.sparse.numbytes', b'60'), bytes(120))], code=None, there=())
    yield Case('sparse-0.1', [pax_file(record(b'GNU.sparse.map', b'0,1,' * 50_000 + b'x') + record(b'GNU.sparse.size', b'10'))], code=None, there=())


def nested(n):
    """N folders in one another, and a file at the bottom: longer than any path may be."""
    return b''.join(header(b'd', kind=b'5') for _ in range(1)) + pax_file(record(b'path', b'd/' * n + b'f'))


def write_all(folder):
    os.makedirs(folder, exist_ok=True)
    for case in cases('/tmp/outside'):
        for fmt in case.formats:
            with open(os.path.join(folder, f'{case.name}-{fmt}.tar'), 'wb') as out:
                out.write(case.tar(fmt))


def sentinel(common, path):
    """A tree that everybody may write to, so that nothing but the program's care protects it."""
    common.write(f'{path}/file', 'sentinel\n', 0o666)
    common.write(f'{path}/folder/inner', 'inner\n', 0o666)
    os.symlink('file', f'{path}/link')
    for folder in (path, f'{path}/folder'):
        os.chmod(folder, 0o777)
        os.utime(folder, ns=(10**18, 10**18))


def extract(common, place, case, fmt, number, wrap):
    ground = place.under(f'g{number}')
    where = f'hostile-{fmt}{"-sealed" if wrap else ""} {case.name}'
    target, outside = f'{ground}/target', place.under('outside')
    os.makedirs(target)
    # What may stand there already: links that lead out.
    os.symlink(outside, f'{target}/old-link')
    os.symlink(outside, f'{ground}/outside')
    common.write(f'{target}/mine', 'mine\n')
    common.write(f'{ground}/tar', case.tar(fmt))
    archive = f'{ground}/tar'
    if wrap:
        archive = f'{ground}/tar.gpg'
        with open(archive, 'wb') as out:
            out.write(wrap(case.tar(fmt)))
    how = ['-d', *place.passphrase] if wrap else ['--extract']
    status = os.open(f'{ground}/status', os.O_RDWR | os.O_CREAT)
    code, said = place.run('--yes', *how, '--status-fd', str(status), *case.arguments, '-C', target, archive, pass_fds=[status])
    os.lseek(status, 0, os.SEEK_SET)
    line = re.search(rb'GPGTAR_EXTRACT (.*)', os.read(status, 100_000))
    os.close(status)
    check = common.check
    check(code in (0, 1), where, common.exit_text(code), said)
    if case.code is not None:
        check(code == case.code, where, f'exit {code}, not {case.code}', said)
    check(code == 0 or said.startswith('gpgtar: '), where, 'no sentence', said)
    fields = [int(n) for n in line[1].split()] if line else None
    if case.refused is not None:
        check(fields is not None and fields[1] == case.refused, where, f'counts {fields}, not {case.refused} refused', said)
    if fields:
        check(fields[1] == sum(fields[2:]), where, f'counts {fields} do not add up', said)
    for name in case.there:
        check(os.path.lexists(f'{target}/{name}'), where, f'{name} is not there', said)
    for name in case.away:
        check(not os.path.lexists(f'{target}/{name}'), where, f'{name} is there', said)
    check(os.readlink(f'{target}/old-link') == outside, where, 'old-link changed', said)
    left = [n for n in os.listdir(ground) + os.listdir(target) if n.startswith('.gpgtar-') and not case.name.startswith('staging')]
    check(not left, where, f'left {left}', said)
    check(sorted(set(os.listdir(ground)) - {'tar.gpg'}) == ['outside', 'status', 'tar', 'target'], where, 'something beside the target', said)
    climb(common, target, outside, where)
    common.remove(ground)


def climb(common, target, outside, where):
    """No link below the target leads out of it, set-id bits are gone."""
    real = os.path.realpath(target)
    for folder, folders, files in os.walk(target):
        for name in folders + files:
            path = os.path.join(folder, name)
            if len(path) > 4000:
                continue  # longer than any path that leads somewhere
            if os.path.islink(path):
                to = os.path.realpath(path)
                common.check(to.startswith(real + '/') or to == real or path == f'{target}/old-link', where, f'{path} leads to {to}')
            else:
                common.check(not os.lstat(path).st_mode & 0o6000, where, f'{path} has a set-id bit')


def main():
    import common
    with common.Place() as place:
        outside = place.under('outside')
        sentinel(common, outside)
        before = common.picture(outside)
        number = 0
        jobs = []
        for case in cases(outside):
            for fmt in case.formats:
                number += 1
                jobs.append((case, fmt, number))

        def seal(tar):
            """The same inside a message whose literal packet we make by encrypting with gpg's own tool."""
            import subprocess
            return subprocess.run(['gpg', '--batch', '--quiet', '--no-tty', '--pinentry-mode', 'loopback', '--passphrase', 'a passphrase', '--s2k-count', '1024', '-c'],
                                  input=tar, stdout=subprocess.PIPE, env=place.environment(), check=True).stdout

        def one(job):
            case, fmt, n = job
            extract(common, place, case, fmt, n, None)
            if n % 40 == 0 or (common.FULL and n % 4 == 0):
                extract(common, place, case, fmt, f'{n}s', seal)

        common.in_parallel(one, jobs)
        deep(common, place)
        common.check(common.picture(outside) == before, 'sentinel', 'the tree outside changed')
        print(f'{number} tars')
    common.finish()


def deep(common, place):
    for n in (1000, 2040, 100_000):
        target = place.under(f'deep{n}')
        os.mkdir(target)
        common.write(f'{target}.tar', nested(n) + END)
        code, said = place.run('--extract', '-C', target, f'{target}.tar')
        common.check(code in (0, 1), f'deep {n}', common.exit_text(code), said)
        left = [name for name in os.listdir(target) if name.startswith('.gpgtar-')]
        common.check(not left, f'deep {n}', f'left {left}', said)
        common.remove(target)


if __name__ == '__main__':
    if len(sys.argv) == 3 and sys.argv[1] == '--write':
        write_all(sys.argv[2])
    else:
        main()
