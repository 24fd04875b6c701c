#!/usr/bin/python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files that change, vanish, or cannot be read while they are archived: the archive is sound, and what it lacks is told."""
import os
import random
import tarfile
import threading
import time

import common
from common import Place, check, write

SECONDS = 30 if common.FULL else 4


def names_in(archive):
    with tarfile.open(archive) as tar:
        found = {}
        for member in tar.getmembers():
            found[member.name] = tar.extractfile(member).read() if member.isfile() else None
        return found


def create(place, *arguments, out=None, **more):
    out = out or place.under('out.tar')
    code, said = place.run('--create', '--yes', '-o', out, '-C', place.under('s'), *arguments, **more)
    return code, said, out


def mutate(root, stop, rng):
    """Grows, cuts, removes, replaces what is in ROOT."""
    while not stop.is_set():
        path = f'{root}/f{rng.randrange(60)}'
        try:
            kind = rng.randrange(8)
            if kind == 0:
                # It may be a FIFO by now.
                fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_NONBLOCK)
                os.write(fd, b'more' * rng.randrange(50_000))
                os.close(fd)
            elif kind == 1:
                os.truncate(path, rng.randrange(1000))
            elif kind == 2:
                os.unlink(path)
            elif kind == 3:
                os.unlink(path)
                os.mkfifo(path)
            elif kind == 4:
                os.unlink(path)
                os.symlink('/etc/hostname', path)
            elif kind == 5:
                os.unlink(path)
                os.mkdir(path)
            elif kind == 6:
                os.rmdir(path)
            else:
                write(path + '.new', b'x' * rng.randrange(200_000))
                os.rename(path + '.new', path)
        except OSError:
            pass


def changing(place):
    root = place.under('s', 'tree')
    rng = random.Random(common.SEED)
    for i in range(60):
        write(f'{root}/f{i}', rng.randbytes(50_000))
    stop = threading.Event()
    threads = [threading.Thread(target=mutate, args=(root, stop, random.Random(i))) for i in range(2)]
    for thread in threads:
        thread.start()
    codes = {}
    end = time.monotonic() + SECONDS
    try:
        while time.monotonic() < end:
            code, said, out = create(place, 'tree')
            codes[code] = codes.get(code, 0) + 1
            check(code == 0 or (code == 1 and said.startswith('gpgtar: ')), 'changing', common.exit_text(code), said)
            names_in(out)
            again, words = place.run('--verify', '--skip-crypto', out)
            check(again == 0, 'changing', 'an archive that is not sound', words)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    print(f'changing: codes {codes}')
    common.remove(root)


def standing(place):
    """What can be told in advance."""
    root = place.under('s', 'tree')
    write(f'{root}/ok', 'ok\n')
    os.mkfifo(f'{root}/fifo')
    code, said, out = create(place, 'tree', 'gone')
    check(code == 1 and 'gone' in said and names_in(out)['tree/ok'] == b'ok\n', 'vanished', common.exit_text(code), said)
    code, said, out = create(place, 'tree/fifo')
    check(code == 0 and list(names_in(out)) == ['tree/fifo'], 'fifo', common.exit_text(code), said)
    code, said, out = create(place, 'gone', out=place.under('never'))
    check(code == 1 and not os.path.exists(out), 'nothing', common.exit_text(code), said)
    code, said, out = create(place, 'tree', 'gone', '--strict', out=place.under('never'))
    check(code == 1 and not os.path.exists(out), 'strict', common.exit_text(code), said)
    # The output in the tree: made, made again, and never in itself.
    for _ in range(3):
        code, said, out = create(place, 'tree', out=f'{root}/out.tar')
        check(code == 0 and 'tree/out.tar' not in names_in(out), 'self', common.exit_text(code), said)
    os.symlink('out.tar', f'{root}/by-link')
    code, said, out = create(place, 'tree', out=f'{root}/by-link')
    check(code == 0 and 'tree/out.tar' not in names_in(out) and os.path.islink(out), 'self', common.exit_text(code), said)
    # A leftover of a killed run is no data.
    write(f'{root}/.gpgtar-abcDEF/tree/x', 'x')
    code, said, out = create(place, 'tree')
    check(code == 0 and not [n for n in names_in(out) if '.gpgtar-' in n], 'leftover', common.exit_text(code), said)
    # /proc has files that say 0 bytes and have more.
    code, said, out = create(place, '/proc/version')
    check(code == 1 and 'version' in said, 'proc', common.exit_text(code), said)


def unreadable(place):
    """Root reads everything: there another user tries, if it can run the program."""
    root = place.under('s', 'locked')
    write(f'{root}/ok', 'ok\n')
    write(f'{root}/secret', 'x', 0o000)
    write(f'{root}/folder/inner', 'x')
    os.chmod(f'{root}/folder', 0o000)
    more = {}
    out = None
    if os.geteuid() == 0:
        os.chmod(place.path, 0o755)
        os.makedirs(place.under('theirs'), exist_ok=True)
        os.chmod(place.under('theirs'), 0o777)
        out = place.under('theirs', 'out')
        more = {'env': {'HOME': '/nonexistent', 'GNUPGHOME': '/nonexistent'}, 'cwd': '/', 'user': 65534, 'group': 65534, 'extra_groups': []}
    try:
        code, said, out = create(place, 'locked', out=out, **more)
    except PermissionError:
        print('unreadable: the other user cannot run the program')
        return
    if not check(os.path.exists(out), 'unreadable', f'no archive, {common.exit_text(code)}', said):
        return
    names = names_in(out)
    check(code == 1 and 'secret' in said and 'folder' in said and names['locked/ok'] == b'ok\n' and 'locked/secret' not in names,
          'unreadable', common.exit_text(code), said)


def main():
    with Place() as place:
        os.mkdir(place.under('s'))
        standing(place)
        unreadable(place)
        changing(place)
    common.finish()


main()
