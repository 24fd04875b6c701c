#!/usr/bin/python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Signals at random moments: SIGKILL leaves no final name or a whole one, the others clean up and end with the signal.

30 moments for each command; FAULT_KILLS says how many.
"""
import os
import random
import signal
import time

import common
from common import DECRYPT, ENCRYPT, Place, check, difference, make_tree, picture, write

MOMENTS = int(os.environ.get('FAULT_KILLS', '200' if common.FULL else '30'))
POLITE = [signal.SIGTERM, signal.SIGINT, signal.SIGHUP]


def interrupted(place, arguments, number, delay, cwd):
    """Runs and sends NUMBER after DELAY: the code."""
    # A test that runs in the background has SIGINT ignored, and the program respects that.
    process = place.start('--yes', *arguments, cwd=cwd,
                          preexec_fn=lambda: [signal.signal(s, signal.SIG_DFL) for s in POLITE])
    time.sleep(delay)
    process.send_signal(number)
    try:
        said = process.communicate(timeout=common.TIMEOUT)[1]
    except Exception:
        process.kill()
        said = process.communicate()[1]
        return 'hang', said
    return process.returncode, said


def duration(place, arguments, cwd):
    start = time.monotonic()
    code, said = place.run('--yes', *arguments, cwd=cwd)
    assert code == 0, said
    return time.monotonic() - start


def left(folder):
    return [n for n in os.listdir(folder) if n.startswith('.gpgtar-')]


def judge_code(where, number, code, said):
    """The signal came early and it died of it, or late and all was done."""
    check(code in (0, -number), where, common.exit_text(code), said)


def creating(place, rng, how, opening, number, i):
    folder = place.under(f'c{i}')
    write(f'{folder}/out', 'the old archive')
    arguments = [*how, '-o', f'{folder}/out', '-C', place.under('source'), 'tree']
    where = f'create-{number.name} {i} {how[0]}'
    code, said = interrupted(place, arguments, number, rng.random() * 1.1 * place.took[how[0]], folder)
    judge_code(where, number, code, said)
    if number != signal.SIGKILL:
        check(not left(folder), where, f'left {left(folder)}')
    with open(f'{folder}/out', 'rb') as file:
        old = file.read() == b'the old archive'
    if old:
        check(code != 0, where, 'exit 0 and the old file')
    else:
        code, said = place.run('--verify', *opening, f'{folder}/out')
        check(code == 0, where, 'a new archive that is not whole', said)
    common.remove(folder)


def extracting(place, rng, archive, opening, number, i):
    folder = place.under(f'x{i}')
    write(f'{folder}/tree/few', 'the old few')
    write(f'{folder}/tree/mine', 'mine')
    old = picture(folder, None)
    where = f'extract-{number.name} {i}'
    code, said = interrupted(place, [*opening, '-C', folder, archive], number,
                             rng.random() * 1.1 * place.took[opening[0]], folder)
    judge_code(where, number, code, said)
    rest = left(folder)
    if number == signal.SIGKILL and rest:
        # It is told of, and not in the way.
        again, words = place.run('--yes', *opening, '-C', folder, archive)
        check(again == 0 and rest[0] in words, where, 'nothing was said of the leftover', words)
        common.remove(os.path.join(folder, rest[0]))
    elif number != signal.SIGKILL:
        check(not rest, where, f'left {rest}')
    now = picture(folder, None)
    if not difference(old, now):
        check(code != 0, where, 'exit 0 and the old state')
    else:
        # Each name is the old or the new file, whole.
        source = picture(place.under('source'), None)
        bad = [n for n in now if now[n] not in (old.get(n), source.get(n)) and n not in ('.', 'tree')]
        check(not bad, where, f'neither old nor new: {bad}')
        check(code not in (0, -signal.SIGTERM, -signal.SIGINT, -signal.SIGHUP) or
              not [n for n in source if n not in ('.', 'tree') and now.get(n) != source[n]], where, 'a half')
    common.remove(folder)


def main():
    rng = random.Random(common.SEED)
    with Place() as place:
        place.took = {}
        make_tree(place.under('source', 'tree'), big=4_000_000)
        for i in range(300):
            write(place.under('source', 'tree', 'many', str(i)), 'x' * i)
        archive = place.under('archive.gpg')
        commands = [(['--create'], ['--extract'])] + [(ENCRYPT, ['-d', *DECRYPT])]
        for how, opening in commands:
            place.took[how[0]] = duration(place, [*how, '-o', archive, '-C', place.under('source'), 'tree'], None)
            os.mkdir(place.under('first'))
            place.took[opening[0]] = duration(place, [*opening, '-C', place.under('first'), archive], None)
            common.remove(place.under('first'))
            judge = ['--skip-crypto'] if how[0] == '--create' else DECRYPT

            def one(i, how=how, opening=opening, judge=judge):
                number = signal.SIGKILL if i % 2 else POLITE[i // 2 % 3]
                creating(place, rng, how, judge, number, f'{i}{how[0]}')
                extracting(place, rng, archive, opening, number, f'{i}{how[0]}')

            common.in_parallel(one, range(MOMENTS))
    common.finish()


main()
