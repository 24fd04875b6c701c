# SPDX-License-Identifier: GPL-3.0-or-later
"""The trees that bench.py archives. Each is made when it is first asked for, and all go with the scratch folder."""
import os
import random
import shutil

# Where text is found on every Debian: first what there is most of.
TEXT_FOLDERS = ["/usr/include", "/usr/share/doc", "/usr/lib/python3", "/usr/share/perl", "/usr/share/vim",
                "/usr/share/cmake-3.25", "/usr/share"]
TEXT_FILES = 14000
TEXT_BYTES = 260 * 1000 * 1000


class Tree:
    def __init__(self, parent, name, files, n_bytes):
        self.parent, self.name, self.files, self.bytes = parent, name, files, n_bytes
        self.path = os.path.join(parent, name)


def is_text(path):
    with open(path, "rb") as file:
        start = file.read(4096)
    return bool(start) and b"\0" not in start and sum(byte < 127 for byte in start) > 0.95 * len(start)


class Data:
    def __init__(self, folder, options):
        self.folder = folder
        self.options = options
        self.made = {}
        os.mkdir(folder)

    def once(self, key, make):
        if key not in self.made:
            parent = os.path.join(self.folder, key)
            os.mkdir(parent)
            self.made[key] = make(parent)
        return self.made[key]

    def drop(self, tree):
        for key, made in list(self.made.items()):
            if made is tree:
                del self.made[key]
                shutil.rmtree(tree.parent)

    def random(self):
        """Five files of random bytes: nothing can make them smaller."""
        return self.once("random", self.make_random)

    def make_random(self, parent):
        each = int(self.options.size * self.options.scale * 1e9) // 5
        os.mkdir(os.path.join(parent, "random"))
        with open("/dev/urandom", "rb") as source:
            for number in range(5):
                with open(os.path.join(parent, "random", f"file{number}.bin"), "wb") as file:
                    left = each
                    while left:
                        left -= file.write(source.read(min(left, 1 << 22)))
        return Tree(parent, "random", 5, 5 * each)

    def text(self):
        """Headers and documentation of this system as they are, a fifth of it compressed already: zlib's level 6 leaves
        37 % of it. What is missing is made up by more copies."""
        return self.once("text", lambda parent: self.make_text(parent, self.all_files))

    def plain_text(self):
        """Text alone, of which zlib's level 6 leaves 20 %."""
        return self.once("plain", lambda parent: self.make_text(parent, self.text_files))

    def make_text(self, parent, sources):
        wanted_files, wanted_bytes = int(TEXT_FILES * self.options.scale), int(TEXT_BYTES * self.options.scale)
        top = os.path.join(parent, "text")
        os.mkdir(top)
        files = n_bytes = copy = 0
        while files < wanted_files and n_bytes < wanted_bytes:
            before = files
            for source in sources():
                if files >= wanted_files or n_bytes >= wanted_bytes:
                    break
                to = os.path.join(top, str(copy), source.lstrip("/"))
                os.makedirs(os.path.dirname(to), exist_ok=True)
                shutil.copy2(source, to)  # with its times: fractions of a second take a header of their own in a tar
                files += 1
                n_bytes += os.path.getsize(to)
            copy += 1
            if files == before:
                raise SystemExit("bench.py: no text is found in " + ", ".join(TEXT_FOLDERS))
        return Tree(parent, "text", files, n_bytes)

    @staticmethod
    def all_files():
        seen = set()
        for folder in TEXT_FOLDERS:
            for where, folders, names in os.walk(folder):
                folders.sort()
                for name in sorted(names):
                    path = os.path.join(where, name)
                    if path not in seen and os.path.isfile(path) and not os.path.islink(path):
                        seen.add(path)
                        yield path

    @staticmethod
    def text_files():
        """Larger files go with the many small ones, for an average of 15 KB."""
        for path in Data.all_files():
            if 256 <= os.path.getsize(path) <= 1 << 20 and is_text(path):
                yield path

    def small(self, count):
        """COUNT files of 1 KB, 500 to a folder; random words, so that they compress as text does."""
        return self.once(f"small-{count}", lambda parent: self.make_small(parent, count))

    @staticmethod
    def make_small(parent, count):
        words = ["".join(random.choices("abcdefghijklmnopqrstuvwxyz", k=random.randint(2, 9))) for _ in range(2000)]
        pool = " ".join(random.choices(words, k=200000)).encode()
        top = os.path.join(parent, "small")
        os.mkdir(top)
        for number in range(count):
            folder = os.path.join(top, f"{number // 500:05}")
            if number % 500 == 0:
                os.mkdir(folder)
            start = random.randrange(len(pool) - 1024)
            with open(os.path.join(folder, f"file{number:07}.txt"), "wb") as file:
                file.write(pool[start:start + 1024])
        return Tree(parent, "small", count, 1024 * count)

    def stream(self, n_bytes):
        """One file of N_BYTES that takes no room: all of it is a hole."""
        return self.once(f"stream-{n_bytes}", lambda parent: self.make_stream(parent, n_bytes))

    @staticmethod
    def make_stream(parent, n_bytes):
        os.mkdir(os.path.join(parent, "stream"))
        with open(os.path.join(parent, "stream", "hole"), "wb") as file:
            file.truncate(n_bytes)
        return Tree(parent, "stream", 1, n_bytes)
