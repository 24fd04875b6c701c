#!/usr/bin/python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Archives with a flipped bit or cut short, through the whole program: what is released is what was sent, or nothing.

test_flips.c tries every offset of small messages; here it is a sample of archives of several chunks.
"""
import os
import random

import common
from common import DECRYPT, ENCRYPT, PUBLIC, SECRET, Place, check, difference, make_tree, picture, write

SIGN = ['-s', '--secret-key-file', SECRET, '--keyring', PUBLIC]
VARIANTS = 400 if common.FULL else 30


def formats(place):
    yield 'seipd1', ENCRYPT, DECRYPT
    yield 'packet20', [*place.symmetric, '--force-ocb', '--chunk-size', '12'], place.passphrase
    yield 'seipd2', [*place.symmetric, '--rfc9580', '--chunk-size', '12'], place.passphrase
    yield 'signed', SIGN, DECRYPT


def damage(rng, whole):
    """Half of them where the packets begin and end."""
    content = bytearray(whole)
    kind = rng.randrange(4)
    at = rng.choice([rng.randrange(min(600, len(content))), len(content) - 1 - rng.randrange(300), rng.randrange(len(content))])
    if kind == 0:
        return f'cut {at}', content[:at]
    if kind == 1:
        return f'more {at}', content + content[at:at + 50]
    content[at] ^= 1 << rng.randrange(8)
    return f'flip {at}', content


def main():
    with Place() as place:
        source = make_tree(place.under('source', 'tree'), big=60_000)
        for name, how, opening in formats(place):
            whole = place.under(name)
            code, said = place.run(*how, '-o', whole, '-C', place.under('source'), 'tree')
            assert code == 0, said
            with open(whole, 'rb') as file:
                content = file.read()

            def one(i, name=name, opening=opening, content=content):
                what, bad = damage(random.Random(f'{common.SEED} {name} {i}'), content)
                where = f'flips-{name} {what}'
                folder = place.under(f'{name}{i}')
                os.mkdir(folder)
                write(f'{folder}.gpg', bytes(bad))
                code, said = place.run('-d', *opening, '-C', folder, f'{folder}.gpg')
                check(code in (0, 1) and (code == 0 or said.startswith('gpgtar: ')), where, common.exit_text(code), said)
                if code == 0:
                    check(not difference(picture(source, 'files'), picture(f'{folder}/tree', 'files')), where, 'other files', said)
                else:
                    check(not os.listdir(folder), where, f'released {os.listdir(folder)}', said)
                common.remove(folder)

            common.in_parallel(one, range(VARIANTS))
    common.finish()


main()
