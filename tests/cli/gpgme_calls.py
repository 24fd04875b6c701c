#!/usr/bin/python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""gpgme_calls.py PROGRAM SIGNER RECIPIENT: calls PROGRAM as GPGME does, in a folder with d/, and demands what GPGME demands.

Status lines come on descriptor 9, names go to stdin with NUL after each, data is in files. Any line on the status
descriptor that is not a whole status line, or a missing keyword, is a failure.
"""
import os
import subprocess
import sys

PROGRAM, SIGNER, RECIPIENT = sys.argv[1:]
FRONT = ['--batch', '--gpg-args', '--lc-messages=C', '--status-fd', '9', '--gpg-args', '--no-tty', '--gpg-args', '--charset=utf8',
         '--gpg-args', '--enable-progress-filter']


def call(name, args, stdin, demanded, code=0, last='SUCCESS'):
    reader, writer = os.pipe()
    process = subprocess.Popen([PROGRAM, *FRONT, *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               preexec_fn=lambda: os.dup2(writer, 9), close_fds=False)
    os.close(writer)
    try:
        process.stdin.write(stdin)
        process.stdin.close()
    except BrokenPipeError:
        pass  # it may have failed and ended before it came to its names
    with os.fdopen(reader, 'rb') as status:
        text = status.read()
    stdout, stderr = process.stdout.read(), process.stderr.read()
    process.wait()
    words = []
    assert text.endswith(b'\n'), (name, text)
    for line in text[:-1].split(b'\n'):
        assert line.startswith(b'[GNUPG:] '), (name, line)
        words.append(line.split(b' ')[1].decode())
    assert process.returncode == code, (name, process.returncode, stderr, text)
    assert words[-1] == last, (name, words)
    assert not stdout, (name, stdout[:100])
    at = 0
    for word in demanded:
        assert word in words[at:], (name, word, words)
        at += words[at:].index(word) + 1
    print(f'{name}: {" ".join(words)}')
    return text.decode()


def main():
    top = os.getcwd()
    names = b'd/f\0d/sub\0'
    create = ['--directory', top, '--files-from', '-', '--null', '--utf8-strings']
    read = ['--directory', 'x', '--']

    call('encrypt', ['--encrypt', '--gpg-args', '--always-trust', '-r', RECIPIENT, '--output', f'{top}/e.gpg', *create], names,
         ['BEGIN_ENCRYPTION', 'END_ENCRYPTION', 'SUCCESS'])
    call('sign', ['--sign', '--gpg-args', '-u', '--gpg-args', SIGNER, '--output', f'{top}/s.gpg', *create], names,
         ['BEGIN_SIGNING', 'SIG_CREATED', 'SUCCESS'])
    text = call('encrypt and sign', ['--encrypt', '--sign', '-u', SIGNER, '--gpg-args', '--always-trust', '-r', RECIPIENT, '--output',
                f'{top}/es.gpg', *create], names, ['BEGIN_SIGNING', 'SIG_CREATED', 'END_ENCRYPTION', 'SUCCESS'])
    assert f' {SIGNER}\n' in text, text
    text = call('progress', ['--encrypt', '-r', RECIPIENT, '--output', f'{top}/p.gpg', *create], names, ['PROGRESS', 'SUCCESS'])

    for archive, demanded in (('e.gpg', ['DECRYPTION_OKAY', 'SUCCESS']),
                              ('s.gpg', ['NEWSIG', 'GOODSIG', 'VALIDSIG', 'TRUST_ULTIMATE', 'SUCCESS']),
                              ('es.gpg', ['NEWSIG', 'GOODSIG', 'VALIDSIG', 'TRUST_ULTIMATE', 'DECRYPTION_OKAY', 'SUCCESS'])):
        os.makedirs('x')
        call(f'decrypt {archive}', ['--decrypt', *read, archive], b'', demanded)
        for name in ('f', 'sub/numbers'):
            with open(f'd/{name}', 'rb') as want, open(f'x/d/{name}', 'rb') as have:
                assert want.read() == have.read(), name
        subprocess.run(['rm', '-r', 'x'], check=True)

    call('no such recipient', ['--encrypt', '-r', 'nobody@example.org', '--output', f'{top}/n.gpg', *create], names,
         ['INV_RECP', 'FAILURE'], code=1, last='FAILURE')
    assert not os.path.exists('n.gpg')
    with open('e.gpg', 'rb') as file:
        data = bytearray(file.read())
    data[-1] ^= 1
    with open('bad.gpg', 'wb') as file:
        file.write(data)
    os.makedirs('x')
    text = call('damaged', ['--decrypt', *read, 'bad.gpg'], b'', ['DECRYPTION_FAILED', 'FAILURE'], code=1, last='FAILURE')
    assert 'DECRYPTION_OKAY' not in text, text
    assert not os.listdir('x')


main()
