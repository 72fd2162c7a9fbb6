#!/usr/bin/env python3
"""`rubus nbd copy` beside nbdcopy: in turns, on the same images, over a Unix socket; medians and the median of the ratios of pairs.

The image is noise in pieces of 16 MiB: in every second one (`half`, the default), all (`full`), or one in 32 (`sparse`), and holes
between. It is in `--place` (/dev/shm); what is copied to files goes to `--to` (the same place). Both programs flush at the end;
`rubus` neither reads back nor, where nbdcopy cannot either, goes on after an interruption (the journal of a file is kept, as always).
One line more is `rubus` as it is used: with reading back.

Needs nbdkit, libnbd-bin and a release build: cargo build --release
Usage: benches/nbd_copy.py RUBUS [--rounds=N] [--size=MIB] [--shape=half|full|sparse] [--place=DIR] [--to=DIR] [--only=WORDS] [--without=verified]
"""

import os
import random
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

MIB = 1 << 20
PIECE = 16 * MIB


STEPS = {"half": 2, "full": 1, "sparse": 32}


def make_image(path, size, step):
    with open(path, "wb") as file:
        file.truncate(size)
        for at in range(0, size, step * PIECE):
            file.seek(at)
            file.write(os.urandom(min(PIECE, size - at)))


def empty(path, size):
    with open(path, "wb") as file:
        file.truncate(size)


def serve(command, socket):
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while not os.path.exists(socket):
        time.sleep(0.01)
    return server


def run(command):
    """Seconds on the clock and of processors."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.monotonic()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    took = time.monotonic() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return took, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main():
    options = dict(part[2:].split("=") for part in sys.argv[1:] if part.startswith("--"))
    rubus = [part for part in sys.argv[1:] if not part.startswith("--")][0]
    rounds, size = int(options.get("rounds", 5)), int(options.get("size", 1024)) * MIB
    subject = options.get("only", "")
    place = tempfile.mkdtemp(prefix="rubus-copy-", dir=options.get("place", "/dev/shm"))
    files = tempfile.mkdtemp(prefix="rubus-copy-", dir=options.get("to", options.get("place", "/dev/shm")))
    image, sink, out = f"{place}/disk.img", f"{place}/sink.img", f"{files}/out.img"
    servers = []
    try:
        make_image(image, size, STEPS[options.get("shape", "half")])
        empty(sink, size)
        uri = {}
        for name, program in (("rubus serve", rubus), ("nbdkit", "nbdkit")):
            for role, path, only in (("from", image, True), ("to", sink + name[0], False)):
                if role == "to":
                    empty(path, size)
                socket = f"{place}/{name[0]}-{role}"
                ro = (["--read-only"] if name[0] == "r" else ["-r"]) if only else []
                if program == rubus:
                    command = [rubus, "serve", "--quiet", path, "--name", "disk", "--unix", socket, *ro]
                else:
                    command = ["nbdkit", "-f", "-U", socket, *ro, "file", path]
                uri[name, role] = f"nbd+unix:///{'disk' if program == rubus else ''}?socket={socket}"
                # Two servers of one image: the second only reads.
                servers.append(serve(command, socket))
        print(f"{'':34} {'rubus':>9} {'nbdcopy':>9}   ratio (range)        CPU s rubus / nbdcopy    with reading back")
        for name in ("rubus serve", "nbdkit"):
            source, target = uri[name, "from"], uri[name, "to"]
            lost = f"--i-will-lose-everything-on={target}"
            for words, ours, theirs in (
                (f"{name} to a file", [source, out], [source, out]),
                (f"a file to {name}", [image, target, lost], [image, target]),
                (f"{name} to {name}", [source, target, lost], [source, target]),
            ):
                if subject not in words:
                    continue
                times = {"rubus": [], "nbdcopy": [], "verified": []}
                for _ in range(rounds):
                    order = ["rubus", "nbdcopy", "verified"]
                    random.shuffle(order)
                    for who in order:
                        for path in (out, out + ".partial"):
                            if os.path.exists(path):
                                os.unlink(path)
                        if who == "nbdcopy":
                            command = ["nbdcopy", "--flush", *theirs]
                        else:
                            command = [rubus, "nbd", "copy", "--quiet", *ours] + (["--no-verify"] if who == "rubus" else [])
                        if who in options.get("without", "").split(","):
                            times[who].append((float("nan"), float("nan")))
                            continue
                        times[who].append(run(command))
                wall = {who: statistics.median(t for t, _ in each) for who, each in times.items()}
                cpu = {who: statistics.median(c for _, c in each) for who, each in times.items()}
                rate = {who: size / MIB / seconds for who, seconds in wall.items()}
                ratios = [theirs[0] / ours[0] for ours, theirs in zip(times["rubus"], times["nbdcopy"])]
                print(
                    f"{words:34} {rate['rubus']:6.0f} MB {rate['nbdcopy']:6.0f} MB   {statistics.median(ratios):5.2f}"
                    f" ({min(ratios):.2f}-{max(ratios):.2f})"
                    f"    {cpu['rubus']:6.2f} / {cpu['nbdcopy']:6.2f}             {rate['verified']:6.0f} MB",
                    flush=True,
                )
    finally:
        for server in servers:
            server.terminate()
            server.wait()
        shutil.rmtree(place)
        shutil.rmtree(files)


main()
