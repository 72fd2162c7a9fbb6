#!/usr/bin/env python3
"""Counts what real work asks of its disk: the block requests behind an ext4 on a loop device, traced by the kernel.

    sudo benches/loads.py [--lab RUBUS-LAB] [--card RUBUS] [--keep DIR]

A Debian root is made on the loop device, and each work runs in it with cold caches: packages are installed, a browser
starts, SQLite logs, a package is built. With --lab, the start of an emulated board is traced too. How fast the device is
does not matter much: what is asked for is counted, not how long it takes. Needs mmdebstrap and a way to Debian's archive.

With --card all of it runs again on a device that the kernel holds to what a slow card gives (control groups of version 1).
`rubus bench` measures that device first. How much longer each work takes there than on the device that nothing holds is put
beside what its counts and the measured rates say.

Requests fall into the five kinds of the verdict (docs/explanation/verdict.md). A commit is a call that makes a file durable (fsync, fdatasync);
small writes for which such a call waits belong to it. Of the others, a request of at most 64 KiB that does not go on where one of
the last 64 of its direction ended is random, whatever its size, and any other is sequential.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import deque
from contextlib import contextmanager
from pathlib import Path

TRACING = next((path for path in map(Path, ("/sys/kernel/tracing", "/sys/kernel/debug/tracing")) if (path / "events").is_dir()), None)
SUITE = "trixie"
RANDOM_BYTES = 64 * 1024
STREAMS = 64
KINDS = ("sequential reads", "sequential writes", "random reads", "random writes", "commits")
# The job of the suite `quick` that measures each.
JOBS = dict(zip(KINDS, ("sequential-read", "sequential-write", "random-read", "random-write", "commit")))
THROTTLE = Path("/sys/fs/cgroup/blkio")
HELD_TO = {"read_bps": 22_000_000, "write_bps": 11_500_000, "read_iops": 1560, "write_iops": 83}
# A card as the verdict's page has it, in operations (bytes) per second.
CARD = {"sequential reads": 22e6, "sequential writes": 11.5e6, "random reads": 1560, "random writes": 83.3, "commits": 40}

ISSUED = re.compile(r"block_rq_issue: (\d+,\d+) (\w+) \d+ \(.*?\) (\d+) \+ (\d+)")
MADE_DURABLE = re.compile(r"ext4_sync_file_enter: dev (\d+,\d+)")
EVENTS = ("block/block_rq_issue", "ext4/ext4_sync_file_enter")

LOGGER = """
import sqlite3, time
log = sqlite3.connect("/var/lib/logger.db")
log.execute("create table if not exists seen (at real, sensor integer, value real)")
for number in range(300):
    log.execute("insert into seen values (?, ?, ?)", (time.time(), number % 20, number * 0.5))
    log.commit()
    time.sleep(0.1)
"""


def run(*command, **options):
    done = subprocess.run([str(word) for word in command], text=True, capture_output=True, check=False, **options)
    if done.returncode != 0:
        sys.exit(f"loads: {' '.join(map(str, command))}\nended with {done.returncode}: {done.stderr[-2000:]}")
    return done.stdout


class Counts:
    """What was asked for, by kind."""

    def __init__(self):
        self.ends = {"R": deque(maxlen=STREAMS), "W": deque(maxlen=STREAMS)}
        self.requests = {"R": 0, "W": 0}
        self.bytes = {"R": 0, "W": 0}
        self.kinds = dict.fromkeys(KINDS, 0)

    def add(self, flags, sector, sectors):
        # A flush comes before the operation, if there is one.
        operation = flags.removeprefix("F")[:1]
        if operation not in self.ends or not sectors:
            return
        size, ends = sectors * 512, self.ends[operation]
        goes_on = sector in ends
        if goes_on:
            ends.remove(sector)
        ends.append(sector + sectors)
        self.requests[operation] += 1
        self.bytes[operation] += size
        word = {"R": "reads", "W": "writes"}[operation]
        if goes_on or size > RANDOM_BYTES:
            self.kinds[f"sequential {word}"] += size
        elif operation == "R" or "S" not in flags:
            self.kinds[f"random {word}"] += 1

    def read(self, text, device):
        for line in text:
            if (found := ISSUED.search(line)) and found[1] == device:
                self.add(found[2], int(found[3]), int(found[4]))
            elif (found := MADE_DURABLE.search(line)) and found[1] == device:
                self.kinds["commits"] += 1
        return self

    def demands(self, rates):
        """Seconds that a disk needs for each kind."""
        return {kind: amount / rates[kind] for kind, amount in self.kinds.items()}


def narrowest(demands):
    return max(demands, key=demands.get)


@contextmanager
def traced(device, to):
    """Writes what a device is asked for into a file."""
    instance = TRACING / "instances" / f"rubus-{os.getpid()}"
    instance.mkdir()
    try:
        (instance / "buffer_size_kb").write_text("16384")
        major, minor = map(int, device.split(","))
        events = [instance / "events" / event for event in EVENTS]
        for event in events:
            (event / "filter").write_text(f"dev == {major << 20 | minor}")
            (event / "enable").write_text("1")
        with open(to, "wb") as file, subprocess.Popen(["cat", instance / "trace_pipe"], stdout=file) as reader:
            try:
                yield
            finally:
                run("sync")
                time.sleep(2)
                for event in events:
                    (event / "enable").write_text("0")
                time.sleep(1)
                reader.terminate()
        lost = sum(int(n) for cpu in (instance / "per_cpu").iterdir() for n in re.findall(r"overrun: (\d+)", (cpu / "stats").read_text()))
        if lost:
            sys.exit(f"loads: the kernel's buffer lost {lost} requests")
    finally:
        instance.rmdir()


@contextmanager
def debian_root(place):
    """A Debian root on an ext4 of a loop device, and the device's numbers."""
    image, top = place / "disk.img", place / "root"
    run("truncate", "--size=12G", image)
    loop = run("losetup", "--find", "--show", "--direct-io=on", image).strip()
    mounted = []
    try:
        run("mkfs.ext4", "-q", "-E", "lazy_itable_init=0,lazy_journal_init=0", loop)
        top.mkdir()
        run("mount", loop, top)
        mounted.append(top)
        run("mmdebstrap", "--quiet", "--variant=apt", "--include=ca-certificates", SUITE, top)
        for name in ("proc", "sys", "dev"):
            run("mount", "--rbind", f"/{name}", top / name)
            run("mount", "--make-rslave", top / name)
            mounted.append(top / name)
        shutil.copy("/etc/resolv.conf", top / "etc/resolv.conf")
        sources = (top / "etc/apt/sources.list").read_text()
        (top / "etc/apt/sources.list").write_text(sources + sources.replace("deb ", "deb-src "))
        (top / "usr/sbin/policy-rc.d").write_text("#!/bin/sh\nexit 101\n")
        (top / "usr/sbin/policy-rc.d").chmod(0o755)
        (top / "root/logger.py").write_text(LOGGER)
        yield top, run("lsblk", "-dno", "MAJ:MIN", loop).strip().replace(":", ",")
    finally:
        for at in reversed(mounted):
            subprocess.run(["umount", "-R", "-l" if at != top else "-R", at], check=False)
        subprocess.run(["losetup", "--detach", loop], check=False)


APT = "DEBIAN_FRONTEND=noninteractive apt-get -y -q --no-install-recommends"
BROWSE = "chromium --headless --no-sandbox --disable-gpu --user-data-dir=/root/profile --screenshot=/root/page.png {} >/dev/null 2>&1"
# Name, what is done before unseen, and what is traced.
WORKS = [
    ("installing Chromium and a compiler", f"{APT} update", f"{APT} install chromium build-essential debhelper python3 libjs-jquery"),
    ("a browser's first start", None, BROWSE.format("file:///usr/share/doc/")),
    ("a browser's second start", None, BROWSE.format("file:///usr/share/javascript/")),
    ("SQLite, 300 commits in 30 s", None, "python3 /root/logger.py"),
    # A mirror may lack the sources of one.
    (
        "building a package",
        "cd /root && for name in hello tree pv dash sed; do apt-get -q source $name && break; done; ls -d /root/*-*/",
        "cd /root/*-*/ && dpkg-buildpackage -b -d -uc",
    ),
]


def in_root(top, script):
    run("chroot", top, "env", "-i", "HOME=/root", "PATH=/usr/sbin:/usr/bin", "LC_ALL=C.UTF-8", "sh", "-ec", script)


def board_start(lab, place):
    """The requests of an emulated board's start, which starts no services beyond those that it needs, and makes nothing durable."""
    trace = run(
        lab, "run", "pc", "--kernel-words", "trace_event=block:block_rq_issue trace_buf_size=8M", "--",
        "mountpoint -q /sys/kernel/tracing || mount -t tracefs none /sys/kernel/tracing; cat /sys/kernel/tracing/trace",
    )
    (place / "board.trace").write_text(trace)
    # The card.
    return Counts().read(trace.splitlines(), "179,0")


def row(name, seconds, counts):
    kinds = counts.kinds
    return (
        f"| {name} | {seconds} | {kinds['sequential reads'] / 1e6:.1f} MB | {kinds['sequential writes'] / 1e6:.1f} MB "
        f"| {kinds['random reads']} | {kinds['random writes']} | {kinds['commits']} | {narrowest(counts.demands(CARD))} |"
    )


@contextmanager
def held_to_a_card(device):
    """The kernel's throttle, for all programs."""
    limits = [(THROTTLE / f"blkio.throttle.{name}_device", value) for name, value in HELD_TO.items()]
    numbers = device.replace(",", ":")
    try:
        for file, value in limits:
            file.write_text(f"{numbers} {value}")
        yield
    finally:
        for file, _ in limits:
            file.write_text(f"{numbers} 0")


def measured_rates(rubus, top, keep):
    file = keep / "card.json"
    run(rubus, "bench", top, "--suite", "quick", "--json", file, "--quiet", "--no-history")
    results = {result["job"]: result for result in json.loads(file.read_text())["results"]}
    rate = lambda kind: results[JOBS[kind]]["bytes_per_second" if kind.startswith("sequential") else "iops"]["value"]
    return {kind: rate(kind) for kind in KINDS}


def all_works(top, device, keep):
    """Name, seconds and counts of each work."""
    for number, (name, before, script) in enumerate(WORKS):
        if before:
            in_root(top, before)
        run("sync")
        Path("/proc/sys/vm/drop_caches").write_text("3")
        trace = keep / f"{number}.trace"
        begin = time.monotonic()
        with traced(device, trace):
            in_root(top, script)
            run("sync", "--file-system", top)
            seconds = time.monotonic() - begin
        with open(trace, errors="replace") as text:
            yield name, seconds, Counts().read(text, device)


def on_a_card(rubus, place, keep, free):
    """All works on a device like a card, beside what is predicted from the counts on the free one."""
    place.mkdir()
    with debian_root(place) as (top, device), held_to_a_card(device):
        rates = measured_rates(rubus, top, keep)
        print("\nThe card: " + ", ".join(f"{kind} {rate:.4g} per second" for kind, rate in rates.items()))
        print("\n| work | free | on the card | longer by | predicted | error |\n|---|---:|---:|---:|---:|---:|", flush=True)
        for name, seconds, _ in all_works(top, device, keep):
            before, counts = free[name]
            predicted, longer = sum(counts.demands(rates).values()), seconds - before
            error = 100 * (predicted / longer - 1)
            print(f"| {name} | {before:.0f} s | {seconds:.0f} s | {longer:.0f} s | {predicted:.0f} s | {error:+.0f} % |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lab", help="the lab's program, to trace a board's start as well")
    parser.add_argument("--card", metavar="RUBUS", help="the program, to run all on a device like a slow card as well")
    parser.add_argument("--keep", type=Path, help="keep traces and counts in this directory")
    wanted = parser.parse_args()
    if os.geteuid() != 0 or TRACING is None:
        sys.exit("loads: needs root and a kernel with tracing of block requests (CONFIG_BLK_DEV_IO_TRACE)")
    if wanted.card and not (THROTTLE / "blkio.throttle.read_bps_device").exists():
        sys.exit("loads: --card needs the throttle of control groups of version 1")
    print("| work | seconds | read in order | written in order | small reads | small writes | commits | narrowest on a slow card |")
    print("|---|---:|---:|---:|---:|---:|---:|---|", flush=True)
    all_counts, free = {}, {}
    with tempfile.TemporaryDirectory(dir="/var/tmp") as directory:
        place = Path(directory)
        keep = wanted.keep or place
        keep.mkdir(exist_ok=True)
        if wanted.lab:
            counts = board_start(wanted.lab, keep)
            all_counts["a board's start"] = counts.kinds
            print(row("a board's start", "", counts), flush=True)
        with debian_root(place) as (top, device):
            for name, seconds, counts in all_works(top, device, keep):
                all_counts[name], free[name] = counts.kinds, (seconds, counts)
                print(row(name, f"{seconds:.0f}", counts), flush=True)
        if wanted.keep:
            (wanted.keep / "counts.json").write_text(json.dumps(all_counts, indent=2))
        if wanted.card:
            on_a_card(wanted.card, place / "card", keep, free)


main()
