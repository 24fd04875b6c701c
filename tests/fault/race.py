#!/usr/bin/python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""A second process swaps folders and links while the program extracts into them, or archives them.

Nothing outside is ever written, and nothing from outside is ever archived. FAULT_SECONDS says how long each part takes
(3; 60 with FAULT_FULL=1).
"""
import ctypes
import multiprocessing
import os
import signal
import tarfile
import time

import common
from common import Place, check, difference, picture, write

SECONDS = float(os.environ.get('FAULT_SECONDS', '60' if common.FULL else '3'))
EXCHANGE = 2
libc = ctypes.CDLL(None, use_errno=True)


def swap(one, other):
    """Of each (descriptor of a folder, name): the folders stay the same, wherever links lead meanwhile."""
    return libc.renameat2(one[0], one[1].encode(), other[0], other[1].encode(), EXCHANGE)


def at(path):
    return os.open(os.path.dirname(path), os.O_PATH | os.O_DIRECTORY), os.path.basename(path)


def swapper(pairs, staging, count):
    """Swaps each pair for ever; moves staging folders in STAGING away and back, with a link in their place."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    turn = 0
    while True:
        for one, other in pairs:
            count.value += swap(one, other) == 0
        turn += 1
        if not staging or turn % 50:
            continue
        for name in os.listdir(staging):
            if name.startswith('.gpgtar-'):
                path = os.path.join(staging, name)
                try:
                    os.rename(path, path + '.moved')
                    os.symlink('../outside', path)
                    os.unlink(path)
                    os.rename(path + '.moved', path)
                except OSError:
                    pass


class Attack:
    swaps = 0

    def __init__(self, pairs, staging=None):
        self.count = multiprocessing.RawValue('L', 0)  # without a lock, which a killed process would keep
        self.process = multiprocessing.Process(target=swapper, args=(pairs, staging, self.count), daemon=True)

    def __enter__(self):
        self.process.start()

    def __exit__(self, *_):
        self.process.kill()
        self.process.join()
        Attack.swaps += self.count.value


def outside_tree(place):
    outside = place.under('outside')
    for name in ('file', 'a', 'sub/a', 'sub/deep/a', 'tree/a', 'tree/sub/a'):
        write(f'{outside}/{name}', 'SENTINEL OUTSIDE\n', 0o666)
    return outside


def source_tree(place):
    for name in ('tree/a', 'tree/sub/a', 'tree/sub/deep/a', 'tree/b', 'tree/sub/b', 'tree/sub/deep/b', 'tree/sub/new/c'):
        write(place.under('source', name), f'of the archive: {name}\n')
    for i in range(200):
        write(place.under('source', 'tree', 'sub', 'deep', f'n{i}'), f'of the archive {i}\n')
    return place.under('source')


def extracting(place, outside, archive):
    """The target's folders become links and back, and so does the target's name."""
    target = place.under('target')
    before = picture(outside)
    names = ('tree', 'tree/sub', 'tree/sub/deep', 'tree/a')
    pairs = []
    for i, name in enumerate(names):
        if name.endswith('/a'):
            write(f'{target}/{name}', 'old\n')
        else:
            os.makedirs(f'{target}/{name}', exist_ok=True)
        link = f'{target}/swap{i}'
        os.symlink(f'{outside}/{name.removeprefix("tree/")}' if i else outside, link)
        pairs.append((at(f'{target}/{name}'), at(link)))
    runs, codes = 0, {}
    end = time.monotonic() + SECONDS
    with Attack(pairs, target):
        while time.monotonic() < end:
            code, said = place.run('--extract', '--yes', '-C', target, archive)
            codes[code] = codes.get(code, 0) + 1
            check(code in (0, 1), 'race-extract', common.exit_text(code), said)
            runs += 1
            if not check(picture(outside) == before, 'race-extract', f'outside changed: {difference(before, picture(outside))}', said):
                break
    print(f'race-extract: {runs} runs, codes {codes}')


def extracting_into_swapped(place, outside, archive):
    """-C names a folder that is a link half of the time: all goes to one place."""
    one, other = place.under('one'), place.under('other')
    write(f'{one}/mine', 'mine\n')
    os.symlink('outside2', other)
    write(place.under('outside2', 'theirs'), 'theirs\n')
    runs = 0
    end = time.monotonic() + SECONDS / 2
    want = picture(place.under('source', 'tree'), None)
    while time.monotonic() < end:
        pair = (at(one), at(other))
        with Attack([pair]):
            code, said = place.run('--extract', '--yes', '-C', one, archive)
        check(code == 0, 'race-directory', common.exit_text(code), said)
        if os.path.islink(one):
            swap(*pair)
        for folder, _ in pair:
            os.close(folder)
        got = [d for d in (one, place.under('outside2')) if os.path.exists(f'{d}/tree')]
        check(len(got) == 1 and picture(f'{got[0]}/tree', None) == want, 'race-directory', f'{got}', said)
        check(os.path.exists(f'{one}/mine') and os.path.exists(place.under('outside2', 'theirs')), 'race-directory', 'lost a file')
        for folder in got:
            common.remove(f'{folder}/tree')
        runs += 1
    print(f'race-directory: {runs} runs')


def creating(place, outside):
    """Folders and files of the tree become links to outside and back."""
    tree = place.under('made', 'tree')
    pairs = []
    for i, name in enumerate(('sub', 'sub/deep', 'a', 'sub/a')):
        if name.endswith('a'):
            write(f'{tree}/{name}', 'inside\n')
        else:
            os.makedirs(f'{tree}/{name}', exist_ok=True)
        write(f'{tree}/{name}{"" if name.endswith("a") else "/x"}', 'inside\n')
        link = place.under('made', f'swap{i}')
        os.symlink(f'{outside}/{name}', link)
        pairs.append((at(f'{tree}/{name}'), at(link)))
    for i in range(100):
        write(f'{tree}/sub/deep/n{i}', 'inside\n')
    runs, flawed = 0, 0
    out = place.under('out.tar')
    end = time.monotonic() + SECONDS
    with Attack(pairs):
        while time.monotonic() < end:
            code, said = place.run('--create', '--yes', '-o', out, '-C', place.under('made'), 'tree')
            check(code in (0, 1), 'race-create', common.exit_text(code), said)
            runs += 1
            flawed += code == 1
            if not os.path.exists(out):
                continue
            with open(out, 'rb') as file:
                check(b'SENTINEL' not in file.read(), 'race-create', 'a file from outside was archived', said)
            with tarfile.open(out) as tar:
                tar.getmembers()
    print(f'race-create: {runs} runs, {flawed} with code 1')


def main():
    with Place() as place:
        outside, source = outside_tree(place), source_tree(place)
        archive = place.under('archive.tar')
        code, said = place.run('--create', '-o', archive, '-C', source, 'tree')
        assert code == 0, said
        extracting(place, outside, archive)
        extracting_into_swapped(place, outside, archive)
        before = picture(outside)
        creating(place, outside)
        check(picture(outside) == before, 'race-create', 'outside changed')
        check(Attack.swaps > 100, 'race-swaps', f'{Attack.swaps} swaps are no race')
        print(f'{Attack.swaps} swaps')
    common.finish()


main()
