#!/usr/bin/env python3
"""`rubus copy` beside `cp -ax` and `rsync -aHAXx`, from a cold slow ext4 to a btrfs with compress=zstd:3. Prints the
table of BENCHMARKS.md.

Trees: 100 000 small files (or another count) in directories of 50, made in an order that is not that of their names, a tenth of them made anew
afterwards; and a Debian root from a tar file (`mmdebstrap --variant=important trixie root.tar`).
Devices: a loop device held to 20 MB/s and 1500 reads per second (the kernel's block throttle, which gains nothing from
depth: each request counts, however many wait); and one that answers each read after 1 ms plus 50 ns per byte, 16 at a time (nbdkit's delay
filter behind nbdfuse), as a card with a queue does.

Each copy begins with both filesystems mounted afresh, so nothing is in memory, and ends when the target is on its
device (`sync -f` after cp and rsync; Rubus does it itself). The tools take turns.
Needs root, mkfs.ext4, mkfs.btrfs, rsync, nbdkit, nbdfuse, and the block control group of version 1.
Usage: benches/copy.py RUBUS ROOT.tar [files] [root] [throttled] [latent] [rounds=N] [count=N]
"""

import contextlib
import os
import random
import subprocess
import sys
import tempfile
import time

GROUP = "/sys/fs/cgroup/blkio/rubus-bench-copy"
BYTES_PER_SECOND, READS_PER_SECOND = 20_000_000, 1500
FILES, PER_DIRECTORY = 100_000, 50
# Files that were just written are read more carefully; those of a system are old.
REST_SECONDS = 12


def run(*words, **more):
    return subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True, **more).stdout.strip()


@contextlib.contextmanager
def loop(path):
    device = run("losetup", "-f", "--show", path)
    try:
        yield device
    finally:
        run("losetup", "-d", device)


@contextlib.contextmanager
def mounted(device, point, options="defaults"):
    os.makedirs(point, exist_ok=True)
    run("mount", "-o", options, device, point)
    try:
        yield point
    finally:
        for _ in range(20):
            if subprocess.run(["umount", point]).returncode == 0:
                break
            time.sleep(0.5)


def grow_files(root, count):
    """Sizes as in a home directory: half below 2 kB, some of some hundred kB."""
    dice = random.Random(1)
    noise = dice.randbytes(4 << 20)
    names = []
    for number in range(count // PER_DIRECTORY):
        path = f"{root}/{number % 40}/{number:04d}"
        os.makedirs(path)
        names += [f"{path}/{n:02d}-of-some-length" for n in range(PER_DIRECTORY)]
    dice.shuffle(names)

    def write(name):
        length = min(int(dice.lognormvariate(7.5, 1.3)), 1 << 20)
        start = dice.randrange(len(noise) - (1 << 20))
        with open(name, "wb") as file:
            file.write(noise[start : start + length // 2] + b" text" * (length // 10))

    # Programs write directory by directory; shuffled blocks of 50 stand for that, and the rest for what came later.
    names.sort(key=lambda name: hash_of(os.path.dirname(name)))
    for name in names:
        write(name)
    for name in dice.sample(names, count // 10):
        os.unlink(name)
        write(name)


def hash_of(text):
    return sum(ord(c) * 31**i for i, c in enumerate(text)) % 999_983


def make_image(image, kind, tar, count):
    with open(image, "wb") as file:
        file.truncate(3 << 30)
    run("mkfs.ext4", "-q", "-F", image)
    with loop(image) as device, mounted(device, image + ".mount") as point:
        root = f"{point}/root"
        os.makedirs(root)
        if kind == "files":
            grow_files(root, count)
        else:
            run("tar", "--xattrs", "--xattrs-include=*", "-C", root, "-xpf", tar)
        entries = int(run("bash", "-c", f"find {root} | wc -l"))
        size = int(run("du", "-s", "--block-size=1", root).split()[0])
    time.sleep(REST_SECONDS)
    return entries, size


@contextlib.contextmanager
def slow(image, kind):
    """A device of known slowness over an image, and what brings a program under its limit."""
    if kind == "throttled":
        with loop(image) as device:
            os.makedirs(GROUP, exist_ok=True)
            number = os.stat(device).st_rdev
            number = f"{os.major(number)}:{os.minor(number)}"
            for file, limit in [("read_bps", BYTES_PER_SECOND), ("read_iops", READS_PER_SECOND)]:
                with open(f"{GROUP}/blkio.throttle.{file}_device", "w") as out:
                    out.write(f"{number} {limit}")
            try:
                yield device, ["sh", "-c", f'echo $$ > {GROUP}/cgroup.procs && exec "$@"', "sh"]
            finally:
                time.sleep(0.2)
                os.rmdir(GROUP)
        return
    with tempfile.TemporaryDirectory(prefix="rubus-bench-") as directory:
        socket, point = f"{directory}/socket", f"{directory}/disk"
        open(point, "w").close()
        filters = ["--filter=delay"]
        server = subprocess.Popen(["nbdkit", "-f", "-t", "16", "-U", socket, *filters, "file", image, "rdelay=1ms"])
        while not os.path.exists(socket):
            time.sleep(0.05)
        mount = subprocess.Popen(["nbdfuse", "-C", "1", point, "--unix", socket])
        while os.path.getsize(point) == 0:
            time.sleep(0.05)
        try:
            with loop(point) as device:
                run("losetup", "--direct-io=on", device)
                yield device, []
        finally:
            run("umount", point)
            mount.wait()
            server.terminate()
            server.wait()


def one(tool, source, target, under):
    """Seconds that a copy takes, cold."""
    program = {
        "rubus copy": [RUBUS, "copy", "--quiet", source, target],
        "cp -ax": ["cp", "-ax", source, target],
        "rsync -aHAXx": ["rsync", "-aHAXx", "--numeric-ids", source + "/", target],
    }[tool]
    started = time.monotonic()
    run(*under, *program)
    run("sync", "-f", os.path.dirname(target))
    return time.monotonic() - started


def measure(tree, device_kind, tar, rounds, count, directory):
    image, target_image = f"{directory}/source.img", f"{directory}/target.img"
    entries, size = make_image(image, tree, tar, count)
    tools = ["rubus copy", "cp -ax", "rsync -aHAXx"]
    times = {tool: [] for tool in tools}
    with slow(image, device_kind) as (device, under):
        for number in range(rounds):
            for tool in tools if number % 2 == 0 else reversed(tools):
                with open(target_image, "wb") as file:
                    file.truncate(4 << 30)
                run("mkfs.btrfs", "-q", "-f", target_image)
                with (
                    loop(target_image) as to,
                    mounted(device, f"{directory}/from", "ro") as source,
                    mounted(to, f"{directory}/to", "compress=zstd:3") as target,
                ):
                    took = one(tool, f"{source}/root", f"{target}/copy", under)
                times[tool].append(took)
                print(f"# {tree} {device_kind} {tool}: {took:.1f} s, load {os.getloadavg()[0]:.1f}", flush=True)
    ours = min(times["rubus copy"])
    cells = [f"{min(times[tool]):.1f} s" for tool in tools]
    ratios = [f"{min(times[tool]) / ours:.2f}" for tool in tools[1:]]
    return f"| {tree}: {entries} entries, {size / 1e6:.0f} MB | {device_kind} | " + " | ".join(cells + ratios) + " |"


def main():
    global RUBUS
    RUBUS, tar, *wishes = sys.argv[1:]
    number = lambda key, usual: next((int(w.split("=")[1]) for w in wishes if w.startswith(key)), usual)
    rounds, count = number("rounds=", 1), number("count=", FILES)
    chosen = lambda names: [name for name in names if name in wishes] or names
    rows = []
    for tree in chosen(["files", "root"]):
        for kind in chosen(["throttled", "latent"]):
            with tempfile.TemporaryDirectory(prefix="rubus-bench-", dir="/dev/shm") as directory:
                rows.append(measure(tree, kind, tar, rounds, count, directory))
    print("| tree | device | rubus copy | cp -ax | rsync -aHAXx | cp / rubus | rsync / rubus |")
    print("|---|---|---|---|---|---|---|")
    print("\n".join(rows))


main()
