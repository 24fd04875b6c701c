#!/usr/bin/python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Full disks and files that may not grow: the old state stays, one sentence says why.

As root in a mount namespace of its own with small file systems; for everybody with /dev/full and a limit of file sizes.
"""
import os
import resource
import subprocess
import sys

import common
from common import DECRYPT, ENCRYPT, Place, check, difference, make_tree, picture, write

INSIDE = 'FAULT_MOUNTS'


def mount(folder, options):
    os.makedirs(folder, exist_ok=True)
    subprocess.run(['mount', '-t', 'tmpfs', '-o', options, 'none', folder], check=True)


def create_on_small(place, how, size):
    where = f'full-create {how[0]} {size}'
    folder = place.under('small')
    mount(folder, f'size={size}')
    write(f'{folder}/out', 'the old archive')
    code, said = place.run('--yes', *how, '-o', f'{folder}/out', '-C', place.under('source'), 'tree')
    with open(f'{folder}/out', 'rb') as file:
        old = file.read() == b'the old archive'
    check(code == (1 if old else 0), where, f'{common.exit_text(code)}, old {old}', said)
    check(code == 0 or 'No space left' in said, where, 'no sentence', said)
    check(os.listdir(folder) == ['out'], where, f'left {os.listdir(folder)}', said)
    subprocess.run(['umount', folder], check=True)
    return code


def extract_on_small(place, how, archive, options):
    where = f'full-extract {how[0]} {options}'
    folder = place.under('small')
    mount(folder, options)
    write(f'{folder}/tree/few', 'the old few')
    old = picture(folder, None)
    code, said = place.run('--yes', *how, '-C', folder, archive)
    if code == 0:
        bad = [n for n in difference(picture(place.under('source'), None), picture(folder, None)) if n not in ('.', 'tree')]
        check(not bad, where, f'exit 0, but {bad}', said)
    else:
        check(code == 1 and 'No space left' in said, where, common.exit_text(code), said)
        check(not difference(old, picture(folder, None)), where, f'changed {difference(old, picture(folder, None))}', said)
    subprocess.run(['umount', folder], check=True)
    return code


def small_disks(place, archives):
    sizes = range(16, 1200, 4 if common.FULL else 64)
    codes = set()
    for how, opening, archive in archives:
        for kib in sizes:
            codes.add(('create', create_on_small(place, how, f'{kib}k')))
        for kib in sizes:
            codes.add(('extract', extract_on_small(place, opening, archive, f'size={kib}k')))
        for inodes in range(4, 24):
            codes.add(('inodes', extract_on_small(place, opening, archive, f'size=8m,nr_inodes={inodes}')))
    for kind in ('create', 'extract', 'inodes'):
        check({(kind, 0), (kind, 1)} <= codes, f'full-{kind}', 'the sizes do not reach from too small to enough')


def limited(place, archives):
    """RLIMIT_FSIZE: the signal of it must not kill us."""
    for how, opening, archive in archives:
        for limit in (0, 1, 511, 4096, 100_000, 250_000):
            lower = lambda limit=limit: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
            where = f'limit {how[0]} {limit}'
            folder = place.under('limited')
            write(f'{folder}/c/out', 'the old archive')
            write(f'{folder}/x/tree/few', 'the old few')
            before = picture(folder, None)
            code, said = place.run('--yes', *how, '-o', f'{folder}/c/out', '-C', place.under('source'), 'tree', preexec_fn=lower)
            check(code == 1 and said.startswith('gpgtar: '), where, common.exit_text(code), said)
            code, said = place.run('--yes', *opening, '-C', f'{folder}/x', archive, preexec_fn=lower)
            check(code == 1 and said.startswith('gpgtar: '), where, common.exit_text(code), said)
            after = picture(folder, None)
            # What does not fit may be refused by itself; the rest stands, whole.
            bad = [n for n in difference(before, after) if n not in ('.', 'x', 'x/tree')]
            whole = picture(place.under('source'), None)
            check(all(after.get(n) == whole.get(n.removeprefix('x/')) for n in bad if n in after), where, f'changed {bad}', said)
            check(not [n for n in after if '.gpgtar-' in n], where, 'left something', said)
            common.remove(folder)


def to_full_device(place, archives):
    for how, opening, archive in archives:
        for arguments in ([*how, '-C', place.under('source'), 'tree'], [*opening, '-O', archive], ['-t', *opening[1:], archive] if
                          opening[0] == '-d' else ['-t', '--skip-crypto', archive]):
            with open('/dev/full', 'wb') as full:
                done = subprocess.run([common.GPGTAR, '--batch', *arguments], env=place.environment(), stdin=subprocess.DEVNULL,
                                      stdout=full, stderr=subprocess.PIPE, timeout=common.TIMEOUT, check=False)
            said = done.stderr.decode()
            check(done.returncode == 1 and 'No space left' in said, f'dev-full {arguments[0]}', common.exit_text(done.returncode), said)
        code, said = place.run('--yes', *how, '-o', '/dev/full', '-C', place.under('source'), 'tree')
        check(code == 1 and 'No space left' in said, f'dev-full {how[0]}', common.exit_text(code), said)


def main():
    if os.geteuid() == 0 and INSIDE not in os.environ:
        if subprocess.run(['unshare', '-m', 'true'], stderr=subprocess.DEVNULL, check=False).returncode == 0:
            os.execvpe('unshare', ['unshare', '-m', sys.executable, *sys.argv], dict(os.environ, **{INSIDE: '1'}))
    with Place() as place:
        make_tree(place.under('source', 'tree'))
        archives = []
        for name, how, opening in (('plain', ['--create'], ['--extract']), ('sealed', ENCRYPT, ['-d', *DECRYPT])):
            archive = place.under(name)
            code, said = place.run(*how, '-o', archive, '-C', place.under('source'), 'tree')
            assert code == 0, said
            archives.append((how, opening, archive))
        if os.environ.get(INSIDE):
            small_disks(place, archives)
        else:
            print('not root: no small file systems were mounted')
        limited(place, archives)
        to_full_device(place, archives)
        check(os.path.exists('/dev/full'), 'dev-full', 'the device is gone')
    common.finish()


main()
