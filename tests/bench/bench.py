#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs gpgtar beside its rivals and beside the limits of the machine, in pairs, and says what was reached.

Each job is a list of commands that do the same work. A round runs all of them one after another (A B C A B C ...), the
first round only warms up, and every ratio is the median of the ratios within the rounds. See README.md beside this file.
"""
import argparse
import json
import os
import platform
import random
import re
import shlex
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True

import data
import plot
import rivals

MIB = 1024 * 1024
TOUCH_MAX = 12 * 1024 * MIB  # a million small files, extracted


class Measured:
    """What the rounds of one command took."""

    def __init__(self, name, kind):
        self.name = name
        self.kind = kind  # ours, limit, rival
        self.rounds = {}  # number of the round -> dict(wall, user, sys, peak)
        self.syscalls = None
        self.output = None  # bytes
        self.failure = None

    def median(self, key):
        return statistics.median(r[key] for r in self.rounds.values()) if self.rounds else None

    def cpu(self):
        return statistics.median(r["user"] + r["sys"] for r in self.rounds.values()) if self.rounds else None

    def as_json(self):
        return {"name": self.name, "kind": self.kind, "rounds": list(self.rounds.values()), "syscalls": self.syscalls,
                "output": self.output, "failure": self.failure}


class Runner:
    """Runs commands and measures them."""

    def __init__(self, options, tools, scratch):
        self.options = options
        self.measure = tools["measure"]
        self.scratch = scratch
        self.touch = 0  # octets of memory that each command finds ready
        self.out = os.path.join(scratch, "out")  # every command's own folder, emptied before each run
        self.environment = dict(os.environ, LC_ALL="C.UTF-8", GNUPGHOME=os.path.join(scratch, "gnupg"))

    def fresh(self):
        subprocess.run(["chmod", "-R", "u+w", self.out], stderr=subprocess.DEVNULL, check=False)
        shutil.rmtree(self.out, ignore_errors=True)
        os.mkdir(self.out)

    def command(self, line):
        """What is one program is started as it is: bash alone takes 3 ms, as long as packing a small folder."""
        plain = line.replace('"$PWD/out"', shlex.quote(os.path.join(self.out, "out")))
        words = shlex.split(plain)
        if not set(plain) & set("|&;<>()$`*?[]{}~!#\n") and "=" not in words[0]:
            return words
        return ["/bin/bash", "-c", "set -o pipefail; " + line if "|" in line else "exec " + line]

    def once(self, line):
        """Seconds and peak memory of one run; the words of a failure instead."""
        result = os.path.join(self.scratch, "result")
        done = subprocess.run([self.measure, result, str(self.touch), *self.command(line)], cwd=self.out, env=self.environment,
                              stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
        with open(result, encoding="ascii") as file:
            wall, user, system, peak, code = file.read().split()
        if done.returncode or int(code):
            words = done.stderr.decode(errors="replace").strip().splitlines()
            return None, f"exit {code}: {words[-1] if words else ''}"
        return {"wall": float(wall), "user": float(user), "sys": float(system), "peak": int(peak) * 1024}, None

    def count_syscalls(self, line):
        if not shutil.which("strace"):
            return None
        table = os.path.join(self.scratch, "strace")
        subprocess.run(["strace", "-f", "-c", "-o", table, *self.command(line)], cwd=self.out, env=self.environment,
                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        with open(table, encoding="ascii", errors="replace") as file:
            for text in file:
                total = re.match(r"100\.00\s+\S+\s+(?:\S+\s+)?(\d+)\s+(?:\d+\s+)?total", text)
                if total:
                    return int(total.group(1))
        return None

    def output_size(self):
        size = 0
        for folder, _, names in os.walk(self.out):
            for name in names:
                size += os.lstat(os.path.join(folder, name)).st_size
        return size

    def one(self, command, measured, number):
        if measured.failure:
            return
        self.fresh()
        if command.before:
            command.before(self.out)
        took, failure = self.once(command.line)
        if failure:
            measured.failure = failure
            measured.rounds = {}
            return
        measured.output = self.output_size()
        if number >= 0:
            measured.rounds[number] = took
        elif took["wall"] > self.options.patience and measured.kind == "rival":
            measured.rounds[0] = took  # slow rivals are measured by their warm-up alone

    def job(self, commands):
        """All rounds of one job: A B C A B C ..., after one warm-up."""
        results = [Measured(command.name, command.kind) for command in commands]
        for number in range(-1, self.options.rounds):
            for command, measured in zip(commands, results):
                if number >= 0 and 0 in measured.rounds and measured.rounds[0]["wall"] > self.options.patience and \
                        measured.kind == "rival":
                    continue
                self.one(command, measured, number)
            say(f"   round {number + 1} of {self.options.rounds}" if number >= 0 else "   warm-up", end="\r")
        for command, measured in zip(commands, results):
            if self.options.syscalls and not measured.failure:
                self.fresh()
                if command.before:
                    command.before(self.out)
                measured.syscalls = self.count_syscalls(command.line)
        self.fresh()
        return results


def memory_to_touch(tree):
    """As much as the files of TREE take in a page cache, with their inodes; never what the machine does not have."""
    with open("/proc/meminfo", encoding="ascii") as file:
        free = next(int(line.split()[1]) * 1024 for line in file if line.startswith("MemFree:"))
    return min(tree.bytes * 5 // 4 + tree.files * 8192, TOUCH_MAX, free // 2)


def say(words, end="\n"):
    if end == "\n" or sys.stderr.isatty():
        print(words, end=end, file=sys.stderr, flush=True)


def pair_ratios(over, under):
    """The ratios of the rounds that both have; UNDER may be a list, whose largest counts in each round."""
    under = under if isinstance(under, list) else [under]
    ratios = []
    for number, took in over.rounds.items():
        walls = [u.rounds[number]["wall"] for u in under if number in u.rounds]
        if walls:
            ratios.append(took["wall"] / max(walls))
    return ratios


class Row:
    """A line of the last table: what was wanted and what came out."""

    def __init__(self, job, words, wanted, got, low=None, high=None, unit="x"):
        self.job, self.words, self.wanted, self.got, self.low, self.high, self.unit = \
            job, words, wanted, got, low, high, unit

    def reached(self):
        return self.got is not None and self.got <= self.wanted

    def cells(self):
        def form(value):
            return "-" if value is None else f"{value:.3g} {self.unit}".strip()
        spread = "" if self.low is None else f"{self.low:.2f}-{self.high:.2f}"
        return [self.job, self.words, form(self.wanted), form(self.got), spread, "yes" if self.reached() else "NO"]

    def as_json(self):
        return {"job": self.job, "what": self.words, "wanted": self.wanted, "got": self.got, "low": self.low,
                "high": self.high, "unit": self.unit, "reached": self.reached()}


def ratio_row(job, words, wanted, ours, under):
    ratios = pair_ratios(ours, under)
    if not ratios:
        return Row(job, words, wanted, None)
    return Row(job, words, wanted, statistics.median(ratios), min(ratios), max(ratios))


def table(head, lines):
    widths = [max(len(str(line[i])) for line in [head, *lines]) for i in range(len(head))]
    text = "| " + " | ".join(h.ljust(w) for h, w in zip(head, widths)) + " |\n"
    text += "|" + "|".join("-" * (w + 2) for w in widths) + "|\n"
    for line in lines:
        text += "| " + " | ".join(str(c).ljust(w) for c, w in zip(line, widths)) + " |\n"
    return text


def job_table(results, n_bytes):
    ours = next(m for m in results if m.kind == "ours")
    lines = []
    for m in results:
        if m.failure:
            lines.append([m.name, "failed", m.failure[:60], "", "", "", "", ""])
            continue
        if not m.rounds:
            continue
        ratios = pair_ratios(m, ours)
        lines.append([m.name, f"{m.median('wall'):.3f}", f"{m.cpu():.2f}", f"{n_bytes / m.median('wall') / 1e6:.0f}",
                      f"{m.median('peak') / MIB:.1f}", m.syscalls if m.syscalls is not None else "",
                      f"{m.output / 1e6:.1f}" if m.output else "", f"{statistics.median(ratios):.2f}" if ratios else
                      f"{m.median('wall') / ours.median('wall'):.2f}" if ours.rounds else ""])
    return table(["command", "s", "cpu s", "MB/s", "peak MiB", "syscalls", "out MB", "x gpgtar"], lines)


def named(results, name):
    return next((m for m in results if m.name == name), None)


def forget_files(before):
    """BEFORE, and then an empty page cache."""
    def prepare(folder):
        if before:
            before(folder)
        os.sync()
        with open("/proc/sys/vm/drop_caches", "w", encoding="ascii") as file:
            file.write("3")
    return prepare


JOBS = ("encrypt", "sign", "default", "extract", "seipd1", "verify", "text-create", "text-default", "text-extract",
        "plain-default", "plain-extract", "small", "cold", "start", "growth")


class Bench:
    """The jobs. Each measures, prints its table and adds rows to the last one."""

    def __init__(self, options, tools, scratch):
        self.options = options
        self.scratch = scratch
        self.runner = Runner(options, tools, scratch)
        self.data = data.Data(os.path.join(scratch, "data"), options)
        self.set = rivals.Rivals(options, tools, scratch, self.runner.environment)
        self.rows = []
        self.peak = 0  # MiB, the most of all runs of gpgtar
        self.results = {}
        self.points = {"size": [], "count": []}  # for the plot: (line, x, y)

    def run(self, job, commands, tree, words):
        if sys.stderr.isatty():
            say(f"== {job}: {words}")
        commands = [c for c in commands if c is not None]
        self.runner.touch = memory_to_touch(tree)
        results = self.runner.job(commands)
        self.results[job] = {"bytes": tree.bytes, "commands": [m.as_json() for m in results]}
        print(f"\n### {job}: {words}\n\n{job_table(results, tree.bytes)}", flush=True)
        self.peak = max([self.peak, *(m.median("peak") / MIB for m in results if m.kind == "ours" and m.rounds)])
        return results

    def encrypt(self):
        tree = self.data.random()
        r = self.run("encrypt", [self.set.cat(tree), self.set.ours("gpgtar -e", "-e --no-compress --force-ocb", tree),
                                 *self.set.packers(tree), *self.set.encrypters(tree)], tree,
                     "OCB, random files, no compression")
        self.rows.append(ratio_row("encrypt", "encrypt / cat files > out", 1.5, named(r, "gpgtar -e"), named(r, "cat")))

    def sign(self):
        tree = self.data.random()
        r = self.run("sign", [self.set.limit("sha256", tree),
                              self.set.ours("gpgtar -es", "-es --no-compress --force-ocb", tree),
                              *self.set.signers(tree)], tree, "sign + encrypt, random files, no compression")
        self.rows.append(ratio_row("sign", "sign + encrypt / SHA-256 alone", 1.2, named(r, "gpgtar -es"),
                                   named(r, "limit sha256")))

    def default(self):
        tree = self.data.random()
        r = self.run("default", [self.set.ours("gpgtar -es", "-es --force-ocb", tree),
                                 self.set.ours("gpgtar -es --no-compress", "-es --no-compress --force-ocb", tree),
                                 *self.set.signers(tree, compress=True)], tree,
                     "sign + encrypt with default options, random files")
        self.rows.append(ratio_row("default", "default options / --no-compress", 1.15, named(r, "gpgtar -es"),
                                   named(r, "gpgtar -es --no-compress")))

    def extract(self):
        tree = self.data.random()
        archive = self.set.archive("signed", "-es --no-compress --force-ocb", tree)
        r = self.run("extract", [self.set.limit("sha256", tree), self.set.cat(tree),
                                 self.set.ours_extract("gpgtar -d", archive), *self.set.extracters(tree)], tree,
                     "extract signed + encrypted, random files")
        self.rows.append(ratio_row("extract", "extract / larger of SHA-256 alone and cat", 1.3, named(r, "gpgtar -d"),
                                   [named(r, "limit sha256"), named(r, "cat")]))

    def seipd1(self):
        tree = self.data.random()
        r = self.run("seipd1", [self.set.limit("cfb", tree), self.set.limit("sha1", tree),
                                self.set.ours("gpgtar -e --rfc4880", "-e --no-compress --rfc4880", tree),
                                *self.set.encrypters(tree, only=["tar | gpg"])], tree,
                     "encrypt with CFB and MDC, random files")
        self.rows.append(ratio_row("seipd1", "SEIPDv1 encrypt / CFB alone", 1.15, named(r, "gpgtar -e --rfc4880"),
                                   named(r, "limit cfb")))

    def verify(self):
        tree = self.data.random()
        archive = self.set.archive("signed", "-es --no-compress --force-ocb", tree)
        r = self.run("verify", [self.set.limit("sha256", tree), self.set.ours_read("gpgtar --verify", archive),
                                *self.set.verifiers(tree)], tree, "verify a signed archive, writing nothing")
        self.rows.append(ratio_row("verify", "verify signed / SHA-256 alone", 1.1, named(r, "gpgtar --verify"),
                                   named(r, "limit sha256")))
        plain = self.set.archive("unsigned", "-e --no-compress --force-ocb", tree)
        r = self.run("verify-ocb", [self.set.limit("ocb", tree), self.set.ours_read("gpgtar --verify", plain)],
                     tree, "verify an unsigned OCB archive")
        ours = named(r, "gpgtar --verify")
        per_gb = ours.median("wall") / tree.bytes * 1e9 if ours.rounds else None
        self.rows.append(Row("verify-ocb", "verify unsigned OCB, 1 GB", 0.25, per_gb, unit="s"))

    def text_create(self):
        tree = self.data.text()
        r = self.run("text-create", [self.set.tar(tree), self.set.ours("gpgtar --create", "--create", tree),
                                     *self.set.packers(tree, without=["tar"])], tree,
                     f"plain tar of headers and documentation, {tree.files} files")
        self.rows.append(ratio_row("text-create", "--create / GNU tar", 1.0, named(r, "gpgtar --create"),
                                   named(r, "tar")))

    def text_default(self):
        self.text_default_of("text-default", self.data.text(), "headers and documentation")

    def text_extract(self):
        self.text_extract_of("text-extract", self.data.text(), "headers and documentation")

    def plain_default(self):
        self.text_default_of("plain-default", self.data.plain_text(), "text alone")

    def plain_extract(self):
        self.text_extract_of("plain-extract", self.data.plain_text(), "text alone")

    def text_default_of(self, job, tree, what):
        r = self.run(job, [self.set.tar(tree), self.set.limit("deflate", tree),
                           self.set.ours("gpgtar -es", "-es --force-ocb", tree),
                           *self.set.signers(tree, compress=True)], tree,
                     f"sign + encrypt with default options, {what}, {tree.files} files")
        self.rows.append(ratio_row(job, "default options / GNU tar plain", 1.8, named(r, "gpgtar -es"),
                                   named(r, "tar")))
        gpg, ours = named(r, "tar | gpg -s"), named(r, "gpgtar -es")
        if gpg and gpg.output and ours.output:
            self.rows.append(Row(job, "size of the output / gpg's", 1.1, ours.output / gpg.output))

    def text_extract_of(self, job, tree, what):
        archive = self.set.archive(job, "-es --force-ocb", tree)
        r = self.run(job, [self.set.untar(tree), self.set.ours_extract("gpgtar -d", archive),
                           *self.set.extracters(tree, compress=True)], tree,
                     f"extract signed + compressed, {what}, {tree.files} files")
        self.rows.append(ratio_row(job, "extract / tar xf of the plain tar", 1.5, named(r, "gpgtar -d"),
                                   named(r, "tar xf")))

    def small(self):
        tree = self.data.small(int(200000 * self.options.scale))
        r = self.run("small-create", [self.set.tar(tree), self.set.ours("gpgtar -e", "-e --force-ocb", tree),
                                      *self.set.packers(tree, without=["tar"]), *self.set.encrypters(tree)],
                     tree, f"create, encrypted, {tree.files} files of 1 KB")
        self.rows.append(ratio_row("small-create", "create encrypted / GNU tar plain", 1.1, named(r, "gpgtar -e"),
                                   named(r, "tar")))
        archive = self.set.archive("small", "-e --force-ocb", tree)
        r = self.run("small-extract", [self.set.untar(tree), self.set.ours_extract("gpgtar -d", archive),
                                       *self.set.extracters(tree)], tree,
                     f"extract, encrypted, {tree.files} files of 1 KB")
        self.rows.append(ratio_row("small-extract", "extract encrypted / GNU tar plain", 1.3, named(r, "gpgtar -d"),
                                   named(r, "tar xf")))

    def cold(self):
        """Files that are not in the page cache, as a nightly backup finds them. Only root can empty the cache, and only
        a file system on a disk has one."""
        if os.geteuid() != 0:
            print("\n### cold: not measured, only root can empty the page cache\n")
            return
        with tempfile.TemporaryDirectory(prefix="gpgtar-bench-", dir=self.options.disk) as disk:
            tree = data.Data(os.path.join(disk, "data"), self.options).text()
            commands = [self.set.tar(tree), self.set.ours("gpgtar --create", "--create", tree),
                        self.set.ours("gpgtar -es", "-es --force-ocb", tree),
                        *self.set.packers(tree, without=["tar"]), *self.set.signers(tree, compress=True),
                        *self.set.archivers(tree)]
            for command in commands:
                command.before = forget_files(command.before)
            r = self.run("cold", commands, tree, f"headers and documentation, {tree.files} files that have to come from the disk")
        self.rows.append(ratio_row("cold", "--create / GNU tar, files not cached", 1.0, named(r, "gpgtar --create"),
                                   named(r, "tar")))

    def start(self):
        tree = self.data.small(3)
        r = self.run("start", [self.set.tar(tree), self.set.ours("gpgtar -e", "-e --force-ocb", tree),
                               self.set.ours("gpgtar -es", "-es --force-ocb", tree),
                               *self.set.encrypters(tree, only=["tar | gpg", "tar | age"])], tree,
                     "a folder of three small files")
        for m in (m for m in r if m.kind == "ours" and m.rounds):
            self.rows.append(Row("start", f"{m.name} of a small folder", 10, m.median("wall") * 1000, unit="ms"))

    def growth(self):
        self.grow("growth-size", self.options.sizes, "size", "GB",
                  lambda x: self.data.stream(int(x * 1e9)), self.set.streams)
        self.grow("growth-count", self.options.counts, "count", "files",
                  lambda x: self.data.small(int(x)), self.set.counts)

    def grow(self, job, steps, axis, unit, make, commands):
        """The same work at each size; what one unit costs may not grow with their number."""
        costs = {}
        for x in steps:
            tree = make(x)
            r = self.run(f"{job}-{x:g}", commands(tree), tree, f"{x:g} {unit}")
            for m in (m for m in r if m.rounds):
                rate = tree.bytes / 1e6 if axis == "size" else tree.files
                self.points[axis].append((m.name, tree.bytes if axis == "size" else tree.files, rate / m.median("wall")))
                if m.kind == "ours":
                    costs.setdefault(m.name, []).append(m.median("wall") / x)
            self.data.drop(tree)
        for name, cost in costs.items():
            if len(cost) > 1:
                self.rows.append(Row(job, f"{name}: cost of one of the {unit}, most / first", 1.1,
                                     max(cost) / cost[0]))

    def jobs(self):
        return {name: getattr(self, name.replace("-", "_")) for name in JOBS}


def tool(options, name):
    """A helper that was built with the program: in tests/bench of the same build folder."""
    build = os.path.dirname(os.path.dirname(os.path.abspath(options.program)))
    path = os.path.join(options.tools or os.path.join(build, "tests", "bench"), name)
    if not os.access(path, os.X_OK):
        sys.exit(f"bench.py: '{path}' is missing: build the targets bench_limits and bench_measure, or say --tools DIR")
    return path


def arguments():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--program", help="the gpgtar to measure; not needed for --job list")
    p.add_argument("--tools", help="the folder of bench_limits and bench_measure")
    p.add_argument("--job", action="append", default=[], help="only these jobs (repeatable; 'list' names them)")
    p.add_argument("--rounds", type=int, default=5, help="rounds after the warm-up (5)")
    p.add_argument("--scale", type=float, default=1.0, help="multiplies all sizes and counts (1)")
    p.add_argument("--size", type=float, default=2.1, help="random data, GB (2.1)")
    p.add_argument("--rivals", default="all", help="names, comma-separated; all, none")
    p.add_argument("--patience", type=float, default=15, help="rivals slower than this many seconds run once (15)")
    p.add_argument("--no-syscalls", dest="syscalls", action="store_false", help="do not count system calls")
    p.add_argument("--sizes", default="1,4,10", help="growth: GB of a sparse stream, up to 100 (1,4,10)")
    p.add_argument("--counts", default="10000,100000", help="growth: numbers of files, up to 1000000 (10000,100000)")
    p.add_argument("--folder", default="/dev/shm", help="where data and output go (/dev/shm)")
    p.add_argument("--disk", default="/var/tmp", help="a folder on a disk, for job cold (/var/tmp)")
    p.add_argument("--json", metavar="FILE", help="write all samples to FILE")
    p.add_argument("--plot", metavar="FILE", help="write throughput against size and count to FILE (SVG; job growth)")
    options = p.parse_args()
    options.sizes = [float(x) * options.scale for x in options.sizes.split(",")]
    options.counts = [max(1, int(float(x) * options.scale)) for x in options.counts.split(",")]
    return options


def machine():
    cpu = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo", encoding="ascii", errors="replace")
                if line.startswith("model name")), platform.machine())
    return {"cpu": cpu, "cores": os.cpu_count(), "kernel": platform.release(), "load": os.getloadavg()}


def report(bench, options, about):
    if bench.peak:
        bench.rows.append(Row("all", "peak memory of gpgtar", 64, bench.peak, unit="MiB"))
    lines = [row.cells() for row in bench.rows]
    if lines and options.scale != 1:
        print(f"\nSizes and counts are scaled by {options.scale:g}: the targets below are meant for full size, start-up "
              "weighs more here.")
    if lines:
        print("\n### What was to be reached\n\n" +
              table(["job", "what", "at most", "measured", "lowest-highest", "reached"], lines))
    if bench.set.missing:
        print("Not installed, not measured: " + ", ".join(sorted(bench.set.missing)))
    print(f"{about['cpu']}, {about['cores']} cores, Linux {about['kernel']}; load {about['load'][0]:.1f} at the start, "
          f"{os.getloadavg()[0]:.1f} at the end; medians of {options.rounds} rounds; " + bench.set.versions())
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"machine": about, "jobs": bench.results, "rows": [row.as_json() for row in bench.rows]}, file,
                      indent=1)
    if options.plot:
        with open(options.plot, "w", encoding="utf-8") as file:
            file.write(plot.svg(bench.points))


def interrupted(number, frame):
    raise KeyboardInterrupt


def main():
    options = arguments()
    if "list" in options.job:
        print("\n".join(JOBS))
        return
    unknown = [job for job in options.job if job not in JOBS]
    if unknown:
        sys.exit(f"bench.py: no job '{unknown[0]}': there are {', '.join(JOBS)}")
    if not options.program:
        sys.exit("bench.py: say which gpgtar to measure, with --program")
    signal.signal(signal.SIGTERM, interrupted)  # the scratch folder is removed then, too
    signal.signal(signal.SIGHUP, interrupted)
    tools = {"measure": tool(options, "bench_measure"), "limits": tool(options, "bench_limits"),
             "program": os.path.abspath(options.program)}
    about = machine()
    random.seed(1)
    scratch = tempfile.mkdtemp(prefix="gpgtar-bench-", dir=options.folder)
    try:
        bench = Bench(options, tools, scratch)
        jobs = bench.jobs()
        try:
            for job in options.job or jobs:
                jobs[job]()
        except KeyboardInterrupt:
            say("stopped; what follows is what was measured until then")
        report(bench, options, about)
    finally:
        subprocess.run(["gpgconf", "--homedir", os.path.join(scratch, "gnupg"), "--kill", "all"], check=False,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        subprocess.run(["chmod", "-R", "u+w", scratch], check=False, stderr=subprocess.DEVNULL)
        shutil.rmtree(scratch, ignore_errors=True)


if __name__ == "__main__":
    main()
