# SPDX-License-Identifier: GPL-3.0-or-later
"""The commands that bench.py runs side by side: gpgtar itself, other programs that do the same, and the limits."""
import os
import re
import shlex
import shutil
import subprocess

USER = "bench@example.org"


class Command:
    def __init__(self, name, kind, line, before=None):
        self.name = name
        self.kind = kind  # ours, limit, rival
        self.line = line  # for bash, in an empty folder of its own
        self.before = before  # called with that folder, not measured


def q(*words):
    return shlex.join(words)


class Rivals:
    """All lines leave their result in the current folder."""

    def __init__(self, options, tools, scratch, environment):
        self.tools = tools
        self.scratch = scratch
        self.environment = environment
        self.missing = set()
        self.archives = {}
        self.wanted = None if options.rivals == "all" else set(options.rivals.replace("none", "").split(","))
        self.gpg = os.environ.get("GPG") or "/usr/bin/gpg"
        self.stock = os.environ.get("GPGTAR") or self.stock_path()
        self.home = environment["GNUPGHOME"]
        self.cert = os.path.join(scratch, "bench.pub")
        self.key = os.path.join(scratch, "bench.sec")
        self.age_key = os.path.join(scratch, "age.key")
        self.make_keys()

    def stock_path(self):
        """The gpgtar that came with the gpg."""
        beside = os.path.join(os.path.dirname(self.gpg), "gpgtar")
        return beside if os.access(beside, os.X_OK) else "/usr/bin/gpgtar"

    # ---- what is there ----

    def has(self, program, name=None):
        name = name or os.path.basename(program)
        if self.wanted is not None and name not in self.wanted:
            return False
        if not shutil.which(program):
            self.missing.add(name)
            return False
        return True

    def shell(self, line, **more):
        return subprocess.run(["/bin/bash", "-c", "set -eo pipefail; " + line], env=self.environment, check=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more).stdout

    def make_keys(self):
        """One key pair without a passphrase, for everybody."""
        os.mkdir(self.home, 0o700)
        gpg = self.gpg_line()
        try:
            self.shell(f"{gpg} --passphrase '' --quick-gen-key {USER} ed25519 cert,sign never && "
                       f"fpr=$({gpg} --list-keys --with-colons {USER} | awk -F: '/^fpr/ {{ print $10; exit }}') && "
                       f"{gpg} --passphrase '' --quick-add-key $fpr cv25519 encr never && "
                       f"{gpg} --export {USER} >{q(self.cert)} && {gpg} --export-secret-keys {USER} >{q(self.key)}")
        except subprocess.CalledProcessError as error:
            raise SystemExit(f"bench.py: {self.gpg} makes no key: {error.stderr.decode(errors='replace')}") from error
        if self.has("age"):
            self.shell(f"age-keygen -o {q(self.age_key)}")
        if self.has("rnp"):
            rnp = os.path.join(self.scratch, "rnp")
            os.mkdir(rnp, 0o700)
            self.shell(f"rnpkeys --homedir {q(rnp)} --import {q(self.key)}")

    def versions(self):
        texts = []
        for name, line in (("gpg", f"{q(self.gpg)} --version"), ("GNU tar", "tar --version"), ("bsdtar", "bsdtar --version"),
                           ("age", "age --version"), ("rnp", "rnp --version"), ("sq", "sq --version 2>&1"),
                           ("restic", "restic version"), ("borg", "borg --version")):
            program = line.split()[0]
            if shutil.which(program) and (name in ("gpg", "GNU tar") or self.wanted is None or name in self.wanted):
                found = re.search(r"\d+\.[\w.]+", self.shell(line).decode(errors="replace"))
                texts.append(f"{name} {found.group(0) if found else '?'}")
        return ", ".join(texts)

    # ---- gpgtar ----

    def gpgtar(self):
        return q(self.tools["program"], "--batch", "--yes", "--no-default-keyring", "--keyring", self.cert,
                 "--secret-key-file", self.key, "--trust-model", "always", "-q")

    def ours(self, name, words, tree, more="-o \"$PWD/out\""):
        recipient = f" -f {q(self.cert)}" if "-e" in words.split()[0] and words.split()[0] != "--create" else ""
        if words.startswith("--create"):
            return Command(name, "ours", f"{q(self.tools['program'])} {words} {more} -C {q(tree.parent, tree.name)}")
        return Command(name, "ours", f"{self.gpgtar()} {words}{recipient} {more} -C {q(tree.parent, tree.name)}")

    def archive(self, kind, words, tree):
        """An archive made by gpgtar, outside of what is measured."""
        path = os.path.join(self.scratch, f"{kind}-{tree.name}-{tree.files}-{tree.bytes}.gpg")
        if path not in self.archives:
            self.shell(self.ours("", words, tree, f"-o {q(path)}").line)
            self.archives[path] = True
        return path

    def ours_extract(self, name, archive):
        return Command(name, "ours", f"{self.gpgtar()} -d -C . {q(archive)}")

    def ours_read(self, name, archive):
        return Command(name, "ours", f"{self.gpgtar()} --verify {q(archive)}")

    # ---- limits ----

    def limit(self, kind, tree):
        files = " ".join(q(os.path.join(tree.path, name)) for name in sorted(os.listdir(tree.path))) \
            if tree.files <= 100 else "-"
        line = f"{q(self.tools['limits'])} {kind} {files}"
        if files == "-":
            line = f"{q(self.tools['limits'])} {kind} {q(self.plain_tar(tree))}"
        return Command(f"limit {kind}", "limit", line)

    def cat(self, tree):
        return Command("cat", "limit", f"cat {q(tree.path)}/* >out")

    # ---- tar ----

    @staticmethod
    def pipe(tree):
        return f"tar -C {q(tree.parent)} -cf - {q(tree.name)}"

    def tar(self, tree):
        return Command("tar", "rival", f"tar -C {q(tree.parent)} -cf out {q(tree.name)}")

    def plain_tar(self, tree):
        path = os.path.join(self.scratch, f"{tree.name}-{tree.files}-{tree.bytes}.tar")
        if not os.path.exists(path):
            self.shell(f"tar -C {q(tree.parent)} -cf {q(path, tree.name)}")
        return path

    def untar(self, tree):
        return Command("tar xf", "rival", f"tar -xf {q(self.plain_tar(tree))}")

    def packers(self, tree, without=()):
        found = []
        if "tar" not in without:
            found.append(self.tar(tree))
        if self.has("bsdtar"):
            found.append(Command("bsdtar", "rival", f"bsdtar -C {q(tree.parent)} -cf out {q(tree.name)}"))
        return found

    # ---- encrypt ----

    def gpg_line(self, words=""):
        return f"{q(self.gpg)} --homedir {q(self.home)} --batch --yes --quiet --no-tty --trust-model always {words}"

    def stock_line(self, words, gpg_words=""):
        args = f"--homedir {self.home} --batch --yes --quiet --no-tty --trust-model always {gpg_words}".strip()
        return f"{q(self.stock, '--gpg', self.gpg, '--gpg-args', args)} {words}"

    def rnp_line(self, words):
        return f"rnp --homedir {q(os.path.join(self.scratch, 'rnp'))} --password '' --notty --overwrite {words}"

    def sq_words(self):
        """sq has renamed its options more than once."""
        words = self.shell("sq encrypt --help 2>&1").decode(errors="replace")
        to = next((o for o in ("--for-file", "--recipient-file", "--recipient-cert") if o in words), "--recipient-cert")
        by = next((o for o in ("--signer-file", "--signer-key") if o in words), "--signer-key")
        return f"{to} {q(self.cert)}", f"{by} {q(self.key)}"

    def encrypters(self, tree, only=None):
        tar, found = self.pipe(tree), []
        if self.has(self.gpg, "gpg"):
            found.append(Command("tar | gpg", "rival", f"{tar} | {self.gpg_line(f'-z0 -e -r {USER} -o out')}"))
        if self.has(self.stock, "gpgtar"):
            words = f"-e -r {USER} -o \"$PWD/out\" -C {q(tree.parent, tree.name)}"
            found.append(Command("stock gpgtar", "rival", self.stock_line(words, "-z0")))
        if self.has("age"):
            found.append(Command("tar | age", "rival", f"{tar} | age -R <(age-keygen -y {q(self.age_key)}) -o out"))
        if self.has("rnp"):
            found.append(Command("tar | rnp", "rival", f"{tar} | {self.rnp_line(f'-z 0 -e -r {USER} --output out')}"))
        if self.has("sq"):
            to, _ = self.sq_words()
            found.append(Command("tar | sq", "rival", f"{tar} | sq encrypt --compression none -B {to} -o out"))
        found += self.archivers(tree)
        return [c for c in found if only is None or c.name in only]

    def archivers(self, tree):
        """Programs with formats of their own; none of them compresses here."""
        found = []
        if self.has("7z"):
            found.append(Command("7z", "rival", f"7z a -bd -psecret -mhe=on -mx0 out.7z {q(tree.path)}"))
        if self.has("restic"):
            def make_restic(folder):
                self.shell(f"RESTIC_PASSWORD=secret restic init -q -r {q(folder)}/repo")
            help_text = self.shell("restic --help 2>&1").decode(errors="replace")
            raw = " --compression off" if "--compression" in help_text else ""
            found.append(Command("restic", "rival", f"env RESTIC_PASSWORD=secret RESTIC_CACHE_DIR=cache restic "
                                 f"-q -r repo{raw} backup {q(tree.path)}", make_restic))
        if self.has("borg"):
            borg = f"env BORG_BASE_DIR={q(os.path.join(self.scratch, 'borg'))} BORG_PASSPHRASE=secret " \
                   "BORG_RELOCATED_REPO_ACCESS_IS_OK=yes BORG_UNKNOWN_UNENCRYPTED_REPO_ACCESS_IS_OK=yes borg"

            def make_borg(folder):
                shutil.rmtree(os.path.join(self.scratch, "borg"), ignore_errors=True)
                self.shell(f"{borg} init -e repokey {q(folder)}/repo")
            found.append(Command("borg", "rival", f"{borg} create -C none \"$PWD\"/repo::a {q(tree.path)}", make_borg))
        return found

    # ---- sign and encrypt ----

    def signers(self, tree, compress=False):
        """With what each does by default where COMPRESS is set."""
        tar, found, z = self.pipe(tree), [], "" if compress else "-z0 "
        if self.has(self.gpg, "gpg"):
            found.append(Command("tar | gpg -s", "rival",
                                 f"{tar} | {self.gpg_line(f'{z}-s -e -u {USER} -r {USER} -o out')}"))
        if self.has(self.stock, "gpgtar"):
            words = f"-s -e -u {USER} -r {USER} -o \"$PWD/out\" -C {q(tree.parent, tree.name)}"
            found.append(Command("stock gpgtar -s", "rival", self.stock_line(words, z.strip())))
        if self.has("rnp"):
            rnp = self.rnp_line(f"{z or '-z 6 --zip '}-s -e -u {USER} -r {USER} --output out")
            found.append(Command("tar | rnp -s", "rival", f"{tar} | {rnp}"))
        if self.has("sq"):
            to, by = self.sq_words()
            kind = "zip" if compress else "none"
            found.append(Command("tar | sq -s", "rival", f"{tar} | sq encrypt --compression {kind} -B {to} {by} -o out"))
        return found

    # ---- read ----

    def theirs(self, tree, compress):
        """Each program opens what it wrote itself: gpg before 2.3 cannot read OCB."""
        made = {}
        for command in self.signers(tree, compress):
            path = os.path.join(self.scratch, re.sub(r"\W+", "-", f"{command.name} {tree.files} {tree.bytes} {compress}"))
            if not os.path.exists(path):
                folder = os.path.join(self.scratch, "theirs")
                os.makedirs(folder, exist_ok=True)
                self.shell(command.line, cwd=folder)
                os.rename(os.path.join(folder, "out"), path)
            made[command.name] = path
        return made

    def extracters(self, tree, compress=False):
        made, found = self.theirs(tree, compress), []
        if "tar | gpg -s" in made:
            found.append(Command("gpg -d | tar x", "rival", f"{self.gpg_line('-d')} {q(made['tar | gpg -s'])} | tar -xf -"))
        if "stock gpgtar -s" in made:
            found.append(Command("stock gpgtar -d", "rival",
                                 self.stock_line(f"-d -C . {q(made['stock gpgtar -s'])}")))
        if "tar | rnp -s" in made:
            rnp = self.rnp_line(f"-d {q(made['tar | rnp -s'])} --output -")
            found.append(Command("rnp -d | tar x", "rival", f"{rnp} | tar -xf -"))
        if "tar | sq -s" in made:
            found.append(Command("sq decrypt | tar x", "rival", f"{self.sq_decrypt(made['tar | sq -s'])} | tar -xf -"))
        if self.has("bsdtar"):
            found.append(Command("bsdtar -x", "rival", f"bsdtar -xf {q(self.plain_tar(tree))}"))
        return found

    def sq_decrypt(self, path):
        words = self.shell("sq decrypt --help 2>&1").decode(errors="replace")
        by = "--signer-file" if "--signer-file" in words else "--signer-cert"
        return f"sq decrypt --recipient-key {q(self.key)} {by} {q(self.cert, path)}"

    def verifiers(self, tree):
        made, found = self.theirs(tree, False), []
        if "tar | gpg -s" in made:
            found.append(Command("gpg -d >/dev/null", "rival", f"{self.gpg_line('-d')} {q(made['tar | gpg -s'])} >/dev/null"))
        if "stock gpgtar -s" in made:
            found.append(Command("stock gpgtar -t", "rival", self.stock_line(f"-t {q(made['stock gpgtar -s'])}")))
        if "tar | sq -s" in made:
            found.append(Command("sq decrypt", "rival", f"{self.sq_decrypt(made['tar | sq -s'])} >/dev/null"))
        return found

    # ---- growth ----

    def streams(self, tree):
        """A hole is read as zeros by all of them (--portable: no sparse maps); nothing of the output is kept."""
        words = "--no-compress --force-ocb --portable"
        found = [self.ours("gpgtar -e", f"-e {words}", tree, "-o - >/dev/null"),
                 self.ours("gpgtar -es", f"-es {words}", tree, "-o - >/dev/null")]
        encrypt = self.ours("", f"-e {words}", tree, "-o -").line
        found.append(Command("gpgtar -e | gpgtar --verify", "ours", f"{encrypt} | {self.gpgtar()} --verify -"))
        found.append(Command("tar", "rival", f"{self.pipe(tree)} | cat >/dev/null"))
        if self.has(self.gpg, "gpg"):
            found.append(Command("tar | gpg", "rival",
                                 f"{self.pipe(tree)} | {self.gpg_line(f'-z0 -e -r {USER} -o -')} >/dev/null"))
        return found

    def counts(self, tree):
        archive = self.archive("count", "-e --no-compress --force-ocb", tree)
        found = [self.ours("gpgtar -e", "-e --force-ocb", tree), self.ours_extract("gpgtar -d", archive),
                 self.tar(tree), self.untar(tree)]
        if self.has(self.gpg, "gpg"):
            found.append(Command("tar | gpg", "rival", f"{self.pipe(tree)} | {self.gpg_line(f'-z0 -e -r {USER} -o out')}"))
        return found
