# SPDX-License-Identifier: GPL-3.0-or-later
"""What the tests of this folder share: places to work in, trees, and pictures of trees before and after."""
import concurrent.futures
import contextlib
import hashlib
import os
import random
import shutil
import signal
import stat
import subprocess
import sys
import tempfile

GPGTAR = os.environ['GPGTAR']
KEYS = os.environ['FAULT_KEYS']  # testdata/samples/keys
FULL = bool(os.environ.get('FAULT_FULL'))
SEED = int(os.environ.get('FAULT_SEED', '1'))
# Nothing here takes longer than a second; what takes this long hangs.
TIMEOUT = 60

SECRET = os.path.join(KEYS, 'ed25519.sec.asc')
PUBLIC = os.path.join(KEYS, 'ed25519.pub.asc')
ENCRYPT = ['-es', '-f', PUBLIC, '--secret-key-file', SECRET, '--keyring', PUBLIC]
DECRYPT = ['--secret-key-file', SECRET, '--keyring', PUBLIC, '--trust-model', 'always', '--require-signature']

failures = []
counts = {}


def check(good, where, what, detail=''):
    """Notes a failure; the test goes on."""
    counts[where.split()[0]] = counts.get(where.split()[0], 0) + 1
    if not good:
        failures.append(f'{where}: {what}')
        print(f'FAILED {where}: {what}\n{detail}'.rstrip(), flush=True)
    return good


def finish():
    for name, n in sorted(counts.items()):
        print(f'{name}: {n} checks')
    print(f'{len(failures)} failures (seed {SEED}, {"full" if FULL else "sample"})')
    sys.exit(1 if failures else 0)


class Place:
    """A folder of its own with an empty home, removed at the end."""

    def __init__(self, parent=None):
        # In memory where that can be: a disk would be synced thousands of times. FAULT_DIR names another place.
        shared = '/dev/shm' if os.access('/dev/shm', os.W_OK) else None
        self.path = tempfile.mkdtemp(prefix='gpgtar-fault-', dir=parent or os.environ.get('FAULT_DIR') or shared)
        self.home = self.under('home')
        os.mkdir(self.home, 0o700)
        with open(self.under('pw'), 'w', encoding='ascii') as out:
            out.write('a passphrase\n')
        self.symmetric = ['-c', '--passphrase-file', self.under('pw'), '--s2k-count', '1024']
        self.passphrase = ['--passphrase-file', self.under('pw')]

    def under(self, *parts):
        return os.path.join(self.path, *parts)

    def environment(self, more=None):
        env = {k: v for k, v in os.environ.items() if not k.startswith('FAULT_') and k not in ('GPG_TTY', 'DISPLAY')}
        # Confined, the leak checker cannot look at its own process; a finding must not look like exit code 1.
        env.update(ASAN_OPTIONS='detect_leaks=0:exitcode=99', UBSAN_OPTIONS='exitcode=99')
        env.update(GNUPGHOME=self.home, LC_ALL='C.UTF-8', TZ='UTC', HOME=self.home)
        env.update(more or {})
        return env

    def run(self, *arguments, env=None, cwd=None, **more):
        """Runs the program: (code, what it said). A hang is the code 'hang'."""
        try:
            done = subprocess.run([GPGTAR, '--batch', *arguments], env=self.environment(env), cwd=cwd or self.path,
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  timeout=TIMEOUT, check=False, **more)
        except subprocess.TimeoutExpired:
            return 'hang', ''
        return done.returncode, done.stderr.decode('utf-8', 'replace')

    def start(self, *arguments, cwd=None, **more):
        return subprocess.Popen([GPGTAR, '--batch', *arguments], env=self.environment(), cwd=cwd or self.path,
                                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, **more)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        remove(self.path)


def remove(path):
    """As rm -rf, whatever the modes and however deep."""
    subprocess.run(['chmod', '-R', 'u+rwX', path], stderr=subprocess.DEVNULL, check=False)
    subprocess.run(['rm', '-rf', path], check=False)


def look(path, name, times):
    st = os.lstat(path)
    kind = stat.S_IFMT(st.st_mode)
    entry = [kind, stat.S_IMODE(st.st_mode), st.st_uid, st.st_gid]
    if stat.S_ISREG(kind):
        with open(path, 'rb') as file:
            entry += [st.st_size, hashlib.sha256(file.read()).hexdigest()]
    elif stat.S_ISLNK(kind):
        entry += [os.readlink(path)]
    elif not stat.S_ISDIR(kind):
        entry += [st.st_rdev]
    if times and not (times == 'files' and stat.S_ISDIR(kind)):
        entry += [st.st_mtime_ns]
    if not stat.S_ISLNK(kind):
        with contextlib.suppress(OSError):
            entry += [sorted((x, os.getxattr(path, x)) for x in os.listxattr(path))]
    return name, entry


def picture(root, times=True):
    """Everything below ROOT: name -> what it is. TIMES 'files': those of folders do not count."""
    seen = dict([look(root, '.', times and times != 'files')])
    for folder, folders, files in os.walk(root):
        for entry in folders + files:
            path = os.path.join(folder, entry)
            name, what = look(path, os.path.relpath(path, root), times)
            seen[name] = what
    return seen


def difference(old, new):
    return sorted(name for name in old.keys() | new.keys() if old.get(name) != new.get(name))


def write(path, content, mode=None):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, 'wb') as out:
        out.write(content if isinstance(content, bytes) else content.encode())
    if mode is not None:
        os.chmod(path, mode)


def make_tree(root, big=300_000):
    """A bit of everything, always the same."""
    rng = random.Random(7)
    write(f'{root}/big', rng.randbytes(big))
    write(f'{root}/empty', b'')
    write(f'{root}/few', 'a few bytes\n', 0o640)
    write(f'{root}/text', 'the same line again\n' * 4000)
    write(f'{root}/sub/deeper/file', 'deep\n', 0o755)
    os.link(f'{root}/few', f'{root}/sub/hard')
    os.symlink('deeper/file', f'{root}/sub/link')
    os.mkfifo(f'{root}/sub/fifo')
    with open(f'{root}/sparse', 'wb') as out:
        out.truncate(2_000_000)
        out.seek(1_000_000)
        out.write(b'in the middle')
    with contextlib.suppress(OSError):
        os.setxattr(f'{root}/few', 'user.colour', b'green')
    for folder, _, files in os.walk(root, topdown=False):
        for name in files:
            os.utime(os.path.join(folder, name), ns=(10**18 + 5, 10**18 + 5), follow_symlinks=False)
        os.utime(folder, ns=(10**18 + 7, 10**18 + 7))
    os.chmod(f'{root}/sub/deeper', 0o750)
    return root


def in_parallel(work, items):
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        for future in [pool.submit(work, item) for item in items]:
            future.result()


def exit_text(code):
    if isinstance(code, int) and code < 0:
        return f'killed by {signal.Signals(-code).name}'
    return f'exit {code}'


def copy_tree(src, dst):
    shutil.copytree(src, dst, symlinks=True)
