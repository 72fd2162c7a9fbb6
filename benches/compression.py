#!/usr/bin/env python3
"""`rubus compression` beside compsize: processor time and elapsed time on 100,000 files.

    benches/compression.py RUBUS [--files N] [--rounds N]

As root; makes a btrfs filesystem on a loop device with files of many sizes (three in ten too small for an extent of
their own), zstd, lzo and what does not compress, a copy that shares its extents and a snapshot. Both run in turns on the
whole filesystem and on one directory, caches warm; medians. The figures themselves must be the same.
"""

import argparse
import json
import os
import random
import resource
import shutil
import statistics
import subprocess
import tempfile
import time


def fill(top, files):
    chance = random.Random(1)
    words = [b"the narrowest pipe of a small computer %d " % i for i in range(50)]
    for i in range(files):
        directory = os.path.join(top, "tree", str(i // 500))
        if i % 500 == 0:
            os.makedirs(directory)
            if i % 5000 == 0:
                subprocess.run(["btrfs", "property", "set", directory, "compression", "lzo"], check=False)
        size = chance.choice([10, 200, 1500, 3000, 6000, 20000])
        if i % 10 == 0:
            data = chance.randbytes(size)
        else:
            data = b"".join(chance.choice(words) for _ in range(size // 40 + 1))[:size]
        with open(os.path.join(directory, str(i)), "wb") as file:
            file.write(data)
    subprocess.run(["cp", "--reflink=always", "-r", f"{top}/tree/1", f"{top}/shared"], check=True)
    subprocess.run(["btrfs", "subvolume", "snapshot", top, f"{top}/snapshot"], check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["sync", "-f", top], check=True)


def run(command):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begun = time.monotonic()
    out = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
    elapsed = time.monotonic() - begun
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return cpu, elapsed, out


def total_of_compsize(out):
    row = next(line for line in out.decode().splitlines() if line.startswith("TOTAL"))
    return [int(word) for word in row.split()[2:]]


def total_of_rubus(out):
    total = json.loads(out)["total"]
    return [total["stored_bytes"], total["original_bytes"], total["referenced_bytes"]]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rubus")
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    scratch = tempfile.mkdtemp(prefix="rubus-bench-", dir="/var/tmp")
    image, top = os.path.join(scratch, "image"), os.path.join(scratch, "top")
    os.mkdir(top)
    with open(image, "wb") as file:
        file.truncate(4 << 30)
    try:
        subprocess.run(["mkfs.btrfs", "-q", image], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        subprocess.run(["mount", "-o", "loop,compress=zstd:1", image, top], check=True)
        fill(top, options.files)
        print("| | rubus: CPU, elapsed | compsize: the same | CPU, ratio | elapsed, ratio |")
        print("|---|---|---|---|---|")
        for name, path in [("everything", top), ("one directory", f"{top}/tree")]:
            ours = [options.rubus, "compression", "--json", path]
            theirs = ["compsize", "-b", path]
            results = {"ours": [], "theirs": []}
            for _ in range(options.rounds):
                for who, command in [("ours", ours), ("theirs", theirs)]:
                    results[who].append(run(command))
            same = total_of_rubus(results["ours"][-1][2]) == total_of_compsize(results["theirs"][-1][2])
            assert same, f"the figures of {path} differ"
            cpu = {who: statistics.median(result[0] for result in results[who]) for who in results}
            elapsed = {who: statistics.median(result[1] for result in results[who]) for who in results}
            cell = lambda who: f"{cpu[who] * 1e3:.0f} ms, {elapsed[who] * 1e3:.0f} ms"
            print(
                f"| {name} | {cell('ours')} | {cell('theirs')} | {cpu['ours'] / cpu['theirs']:.2f} | "
                f"{elapsed['ours'] / elapsed['theirs']:.2f} |"
            )
    finally:
        subprocess.run(["umount", top], check=False)
        shutil.rmtree(scratch)


if __name__ == "__main__":
    main()
