#!/usr/bin/python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Makes and shows folders with everything that an archive has to keep.

tree.py make DIR            a folder with every kind of member
tree.py show [OPTION] DIR   one line a member; two folders that print the same are the same
    --content    only regular files: name and content
    --no-owner   without owner and group
    --no-links   without link counts
"""
import errno
import hashlib
import os
import random
import stat
import sys


def write(path, data):
    with open(path, 'wb') as file:
        file.write(data)


def tolerate(what, function, *args):
    """Some file systems and containers have no such thing: said, not hidden."""
    try:
        function(*args)
    except OSError as error:
        if error.errno not in (errno.ENOTSUP, errno.EPERM):
            raise
        print(f'tree.py: not possible here: {what}', file=sys.stderr)


def acl(*entries):
    """The kernel's form of an ACL: version 2, then tag, permissions, id of each entry."""
    return b'\x02\0\0\0' + b''.join(
        tag.to_bytes(2, 'little') + perm.to_bytes(2, 'little') + (who & 0xffffffff).to_bytes(4, 'little')
        for tag, perm, who in entries)


def make(top):
    top = os.fsencode(top)
    rng = random.Random(2)
    join = lambda *names: os.path.join(top, *names)
    os.makedirs(join(b'sub', b'deeper'))
    os.mkdir(join(b'empty'))
    for size in (0, 1, 511, 512, 513, 1024, 10240, 65536, 65537):
        write(join(b'size-%d' % size), rng.randbytes(size))
    write(join(b'random.bin'), rng.randbytes(20_000_000))
    write(join(b'text'), b''.join(b'line %d\n' % i for i in range(200_000)))
    write(join(b'zeros'), bytes(1_000_000))
    with open(join(b'sparse'), 'wb') as file:
        for at in (0, 3_000_000, 17_000_000):
            file.seek(at)
            file.write(b'island')
        file.truncate(30_000_000)
    with open(join(b'hole'), 'wb') as file:
        file.truncate(5_000_000)

    os.symlink(b'text', join(b'link'))
    os.symlink(b'../text', join(b'sub', b'up'))
    os.symlink(b'nowhere', join(b'dangling'))
    os.symlink(b'sub', join(b'link to folder'))
    os.symlink(b'x' * 150, join(b'long link'))
    os.link(join(b'text'), join(b'sub', b'hard'))
    os.link(join(b'text'), join(b'sub', b'deeper', b'third'))
    os.mkfifo(join(b'fifo'), 0o640)

    for name in ('ü', '日本語', 'e\u0301'):
        write(join(name.encode()), name.encode())
    for name in (b'not utf-8 \xff\xfe', b'new\nline', b'tab\t', b'esc\x1b[31m', b'-dash', b' blank ', b'back\\slash', b'*',
                 b'quote\'"', b'..foo', b'#', b'$x', b'x' * 255, b'n' * 99, b'n' * 100, b'n' * 101):
        write(join(name), name)
    deep = join(b'deep')
    for i in range(12):
        deep = os.path.join(deep, b'%02d' % i * 20)
    os.makedirs(deep)
    write(os.path.join(deep, b'bottom'), b'bottom')

    for mode in (0o400, 0o444, 0o600, 0o640, 0o755, 0o711):
        write(join(b'mode-%o' % mode), b'mode')
        os.chmod(join(b'mode-%o' % mode), mode)
    tolerate('user.* attributes', os.setxattr, join(b'text'), b'user.note', b'kept \0\xff')
    tolerate('user.* attributes', os.setxattr, join(b'sub'), b'user.folder', b'too')
    who = acl((1, 6, -1), (2, 4, 65534), (4, 4, -1), (16, 4, -1), (32, 0, -1))
    tolerate('access control lists', os.setxattr, join(b'size-1'), b'system.posix_acl_access', who)
    inherited = acl((1, 7, -1), (2, 5, 65534), (4, 5, -1), (16, 5, -1), (32, 0, -1))
    tolerate('access control lists', os.setxattr, join(b'empty'), b'system.posix_acl_default', inherited)
    if os.getuid() == 0:
        write(join(b'owned'), b'by somebody')
        os.chown(join(b'owned'), 1234, 4321)
        os.lchown(join(b'dangling'), 1234, 4321)
        tolerate('devices', os.mknod, join(b'null'), 0o620 | stat.S_IFCHR, os.makedev(1, 3))
        tolerate('devices', os.mknod, join(b'block'), 0o640 | stat.S_IFBLK, os.makedev(7, 300))

    for name, ns in ((b'old', -315_619_199_876_543_211), (b'before', -1_000_000_000), (b'half', -1_500_000_000), (b'epoch', 0),
                     (b'y2038', 2_200_000_000_123_456_789), (b'y2243', 8_600_000_000_000_000_001)):
        write(join(b'time-' + name), name)
        os.utime(join(b'time-' + name), ns=(ns, ns))
    os.utime(join(b'link'), ns=(0, 1_000_000_000_123_456_789), follow_symlinks=False)
    os.utime(join(b'fifo'), ns=(0, 1_000_000_000_000_000_789))
    os.mkdir(join(b'closed'))
    write(join(b'closed', b'in'), b'in')
    os.utime(join(b'closed'), ns=(0, 1_000_000_000_987_654_321))
    os.chmod(join(b'closed'), 0o555)
    os.utime(join(b'sub'), ns=(0, 981_173_106_000_000_000))
    os.utime(top, ns=(0, 1_234_567_890_123_456_789))


def digest(path):
    sha = hashlib.sha256()
    with open(path, 'rb') as file:
        while block := file.read(1 << 20):
            sha.update(block)
    return sha.hexdigest()


def holes(path, size):
    """Whether a file has holes worth keeping; where exactly they begin is the file system's affair."""
    return size > 1_000_000 and os.stat(path).st_blocks * 512 < size // 2


def line(path, shown, options, first):
    st = os.lstat(path)
    if '--content' in options:
        return f'{shown!r} {digest(path)}' if stat.S_ISREG(st.st_mode) else None
    words = [repr(shown), stat.filemode(st.st_mode), str(st.st_mtime_ns)]
    if '--no-owner' not in options:
        words.append(f'{st.st_uid}:{st.st_gid}')
    if not stat.S_ISDIR(st.st_mode) and '--no-links' not in options:
        words.append(f'links={st.st_nlink}, as {first.setdefault((st.st_dev, st.st_ino), shown)!r}')
    if stat.S_ISREG(st.st_mode):
        words += [str(st.st_size), digest(path), 'sparse' if holes(path, st.st_size) else '']
    elif stat.S_ISLNK(st.st_mode):
        words.append(f'-> {os.readlink(path)!r}')
    elif stat.S_ISCHR(st.st_mode) or stat.S_ISBLK(st.st_mode):
        words.append(f'{os.major(st.st_rdev)},{os.minor(st.st_rdev)}')
    for name in sorted(os.listxattr(path, follow_symlinks=False)):
        words.append(f'{name}={os.getxattr(path, name, follow_symlinks=False)!r}')
    return ' '.join(words)


def show(top, options):
    top = os.fsencode(top)
    first = {}
    names = [b'']
    while names:
        name = names.pop()
        path = os.path.join(top, name) if name else top
        text = line(path, name, options, first)
        if text:
            print(text)
        if stat.S_ISDIR(os.lstat(path).st_mode):
            names += sorted((os.path.join(name, sub) for sub in os.listdir(path)), reverse=True)


def main():
    options = {word for word in sys.argv[2:] if word.startswith('--')}
    folders = [word for word in sys.argv[2:] if not word.startswith('--')]
    if len(folders) != 1 or sys.argv[1] not in ('make', 'show'):
        sys.exit(__doc__)
    if sys.argv[1] == 'make':
        make(folders[0])
    else:
        show(folders[0], options)


main()
