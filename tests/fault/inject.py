#!/usr/bin/python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lets each call of the program fail in turn (inject.c) and looks at what is left.

After every run: exit 0 and the whole new state, or another code, a sentence, and the old state. With exit 1 the new state
may stand with less than all of it, if each file that it lacks was named. Never a crash, a hang or a temporary name left.
A sample of the calls; all of them with FAULT_FULL=1.
"""
import errno
import itertools
import os
import random
import sys
import tarfile

import common
from common import DECRYPT, ENCRYPT, FULL, Place, check, difference, make_tree, picture, write

INJECT = os.environ['FAULT_INJECT']
ASAN = os.environ.get('FAULT_ASAN', '')  # the sanitizer's library, which must come first
# Words that do not say what failed. Without memory there may be no others.
BARE = {os.strerror(number) for number in errno.errorcode} - {os.strerror(errno.ENOMEM)}

# group: ways to fail
FAULTS = {
    'read': ['EIO', 'EINTR', 'short'],
    'write': ['ENOSPC', 'EIO', 'EINTR', 'short', 'ENOSPC on'],
    'open': ['EMFILE', 'EACCES', 'EMFILE on'],
    'sync': ['EIO', 'ENOSPC'],
    'name': ['ENOSPC', 'EACCES', 'EIO on'],
    'remove': ['EACCES', 'EIO'],
    'meta': ['EIO', 'EPERM'],
    'list': ['EIO', 'ENOMEM'],
    'memory': ['ENOMEM', 'ENOMEM on'],
    'thread': ['EAGAIN', 'EAGAIN on'],
    'close': ['EIO'],
    'other': ['EINTR', 'EIO'],
}
# Runs of one (scenario, group, way) in the sample.
SAMPLE = 3
SAMPLE_MEMORY = 10
LIMIT = 3000  # calls of a group; none has so many


class Scenario:
    """One command, done in a new folder each time."""

    def __init__(self, place, name, jobs):
        self.place, self.name, self.jobs = place, name, jobs
        self.number = itertools.count()
        self.calls = {}

    def arguments(self, folder):
        raise NotImplementedError

    def prepare(self, folder):
        raise NotImplementedError

    def judge(self, folder, code, said, where):
        raise NotImplementedError

    def run(self, env):
        folder = self.place.under(f'{self.name}-{next(self.number)}')
        os.mkdir(folder)
        self.prepare(folder)
        code, said = self.place.run('--yes', *self.jobs, *self.arguments(folder), env=env, cwd=folder)
        return folder, code, said


class Create(Scenario):
    def __init__(self, place, name, how, opening, jobs=(), old=True):
        super().__init__(place, name, jobs)
        self.how, self.opening, self.old = how, opening, old

    def prepare(self, folder):
        if self.old:
            write(f'{folder}/out', 'the old archive')

    def arguments(self, folder):
        return [*self.how, '-o', f'{folder}/out', '-C', self.place.under('source'), 'tree']

    def judge(self, folder, code, said, where):
        names = os.listdir(folder)
        check(set(names) <= {'out'}, where, f'left {names}', said)
        if 'out' not in names:
            check(not self.old and code != 0, where, f'no output, code {code}', said)
            return
        with open(f'{folder}/out', 'rb') as file:
            content = file.read()
        if content == b'the old archive':
            check(code != 0, where, 'exit 0 and the old file', said)
            return
        there = f'{folder}-x'
        os.mkdir(there)
        again, words = self.place.run('--extract' if self.opening is None else '-d', *(self.opening or []), '-C', there,
                                      f'{folder}/out')
        check(again == 0, where, f'code {code}, and an archive that opens with {again}', said + words)
        expect_named(self.place.under('source'), there, code, said, where)
        common.remove(there)


class Extract(Scenario):
    def __init__(self, place, name, archive, opening, jobs=(), named=False):
        super().__init__(place, name, jobs)
        self.archive, self.opening, self.named = archive, opening, named
        if not named:
            self.prepare(place.under(f'{name}-old'))
            self.old = picture(place.under(f'{name}-old', 't'), 'files')

    def prepare(self, folder):
        if not self.named:
            write(f'{folder}/t/tree/few', 'the old few', 0o600)
            write(f'{folder}/t/tree/mine', 'mine', 0o444)
            os.symlink('/nowhere', f'{folder}/t/tree/empty')
            for name in ('few', 'mine', 'empty'):
                os.utime(f'{folder}/t/tree/{name}', ns=(10**18, 10**18), follow_symlinks=False)

    def arguments(self, folder):
        return [*self.opening, *([] if self.named else ['-C', f'{folder}/t']), self.archive]

    def judge(self, folder, code, said, where):
        base = f'{folder}/archive_1_' if self.named else f'{folder}/t'
        names = os.listdir(folder)
        # Who can never again open a folder or has no memory cannot remove a folder either.
        if ' on ' in where:
            names = [n for n in names if not n.startswith('.gpgtar-')]
        check(set(names) <= {os.path.basename(base)}, where, f'left {names}', said)
        if not os.path.isdir(base):
            check(code != 0, where, 'exit 0 and nothing there', said)
            return
        after = picture(base, 'files')
        if not self.named:
            kept = without_ours(after)
            check(kept == after or ' on ' in where, where, f'left {after.keys() - kept.keys()}', said)
            after = kept
            if not difference(self.old, after):
                check(code != 0, where, 'exit 0 and the old state', said)
                return
            check(after.get('tree/mine') == self.old['tree/mine'], where, 'tree/mine was changed', said)
            os.chmod(f'{base}/tree', 0o755)
            os.unlink(f'{base}/tree/mine')
        expect_named(self.place.under('source'), base, code, said, where)


class Verify(Scenario):
    def __init__(self, place, name, archive, opening, jobs=()):
        super().__init__(place, name, jobs)
        self.archive, self.opening = archive, opening

    def prepare(self, folder):
        pass

    def arguments(self, folder):
        return ['--verify', *self.opening, self.archive]

    def judge(self, folder, code, said, where):
        check(not os.listdir(folder), where, 'something was written', said)


def expect_named(wanted, got, code, said, where):
    """GOT is WANTED; what is not, was named, and the code is not 0."""
    wanted, got = picture(wanted, 'files'), without_ours(picture(got, 'files'))
    wanted.pop('.')
    got.pop('.')
    # Who replaces a tree that was there keeps the mode of its folder.
    bad = [n for n in difference(wanted, got) if n != 'tree' or n not in got]
    if code == 0:
        check(not bad, where, f'exit 0, but {bad} differ', said)
        return
    # A folder that was named stands for all in it, and a first name for its hard links.
    unnamed = [n for n in bad if not any(p in said for p in parts(n)) and not (n.endswith(('few', 'hard')) and 'few' in said)]
    check(not unnamed, where, f'exit {code}, but nothing was said of {unnamed}', said)


def parts(name):
    found = name.split('/')
    return ['/'.join(found[:i]) + ':' for i in range(1, len(found))] + [name]


def sentence(said):
    lines = [line for line in said.splitlines() if line.startswith('gpgtar: ')]
    return any(line.removeprefix('gpgtar: ') not in BARE for line in lines)


def without_ours(names):
    return {n: what for n, what in names.items() if not n.startswith('.gpgtar-')}


def inject(scenario, group, way, nth):
    """FALSE: there is no NTH call."""
    hit = scenario.place.under(f'hit-{scenario.name}-{group}-{way}-{nth}'.replace(' ', ''))
    how, _, on = way.partition(' ')
    env = {'LD_PRELOAD': f'{ASAN} {INJECT}'.strip(), 'FAULT_CALLS': group, 'FAULT_NTH': str(nth), 'FAULT_HIT': hit,
           'FAULT_HOW': how if how == 'short' else str(getattr(errno, how))}
    if on:
        env['FAULT_ON'] = '1'
    where = f'{scenario.name} {group} {way} {nth}'
    folder, code, said = scenario.run(env)
    was_hit = os.path.exists(hit)
    check(code in (0, 1), where, common.exit_text(code), said)
    # Without any memory libarchive says so by itself.
    check(code == 0 or sentence(said) or (group == 'memory' and on and said), where, f'no sentence, code {code}', said)
    if how in ('EINTR', 'short') and group in ('read', 'write'):
        check(code == 0, where, f'not tried again, code {code}', said)
    scenario.judge(folder, code, said, where)
    common.remove(folder)
    if was_hit:
        os.unlink(hit)
    return was_hit


def last_call(scenario, group, way):
    """How many calls of GROUP there are, by doubling and halving."""
    low, high = 0, 1
    while high < LIMIT and inject(scenario, group, way, high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        if inject(scenario, group, way, middle):
            low = middle
        else:
            high = middle
    return low


def all_of(scenario, group, way):
    if FULL:
        n = 1
        while n < LIMIT and inject(scenario, group, way, n):
            n += 1
        return n - 1
    rng = random.Random(f'{common.SEED} {scenario.name} {group} {way}')
    # About the same number for each way to fail.
    n = scenario.calls.get(group)
    if n is None:
        n = scenario.calls[group] = last_call(scenario, group, way)
    for nth in rng.sample(range(1, n + 1), min(n, SAMPLE_MEMORY if group == 'memory' else SAMPLE)):
        inject(scenario, group, way, nth)
    return n


def main():
    only = set(sys.argv[1:])
    with Place() as place:
        make_tree(place.under('source', 'tree'))
        plain, sealed, secret = (place.under(n, 'archive.gpg') for n in ('plain', 'sealed', 'secret'))
        for path, how in ((plain, ['--create']), (sealed, ENCRYPT), (secret, place.symmetric)):
            os.mkdir(os.path.dirname(path))
            code, said = place.run(*how, '-o', path, '-C', place.under('source'), 'tree')
            assert code == 0, said
        with tarfile.open(plain) as tar:
            assert 'tree/sub/link' in tar.getnames()
        one = ('--jobs', '1')
        scenarios = [
            Create(place, 'create-plain', ['--create'], None),
            Create(place, 'create-sealed', ENCRYPT, DECRYPT),
            Create(place, 'create-sealed-1', ENCRYPT, DECRYPT, one, old=False),
            Create(place, 'create-secret-1', place.symmetric, place.passphrase, one),
            Extract(place, 'extract-plain-1', plain, ['--extract'], one),
            Extract(place, 'extract-sealed', sealed, ['-d', *DECRYPT]),
            Extract(place, 'extract-sealed-1', sealed, ['-d', *DECRYPT], one, named=True),
            Extract(place, 'extract-secret', secret, ['-d', *place.passphrase], named=True),
            Verify(place, 'verify-sealed', sealed, DECRYPT),
        ]
        # A group at a time, so that its calls are counted once.
        jobs = [(s, g, ways) for s in scenarios for g, ways in FAULTS.items()
                if (not only or s.name in only or g in only) and not (ASAN and g == 'memory')]
        common.in_parallel(lambda job: [all_of(job[0], job[1], way) for way in job[2]], jobs)
    common.finish()


main()
