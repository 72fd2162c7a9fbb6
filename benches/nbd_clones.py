#!/usr/bin/env python3
"""`rubus serve --clone-per-client` beside nbdkit's cow filter and qcow2 overlays: small writes into a fresh overlay.

Each burst has an overlay that nothing was written into. Interleaved rounds in random order, medians; the client has
processor 0 and the server 1, at depth 1 both have 0. Both have the highest priority that this user may give. Golden image and overlays are in /dev/shm, so that the software is measured and not a disk.
nbdkit's overlay is gone with its process and has nothing on the disk to keep in order; the others survive a crash.

Needs nbdkit, qemu-nbd, qemu-img and release builds:
    cargo build --release && cargo build --release -p rubus-nbd --example nbd_load
Usage: benches/nbd_clones.py RUBUS NBD_LOAD [--rounds=N] [--seconds=S]
"""

import contextlib
import json
import os
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import time

TICK = os.sysconf("SC_CLK_TCK")
SIZE = 1 << 30
NAMES = ["rubus", "nbdkit cow", "qcow2", "qcow2, extended L2"]
LOADS = [("write", 4096, 32), ("write", 4096, 1), ("read", 4096, 32)]


def command_of(name, rubus, golden, place):
    path = f"{place}/socket"
    if name == "rubus":
        command = [rubus, "serve", "--quiet", golden, "--name", "e", "--clone-per-client", f"{place}/clones", "--unix", path]
        return command, f"nbd+unix:///e/bench?socket={path}"
    uri = f"nbd+unix:///?socket={path}"
    if name == "nbdkit cow":
        return ["nbdkit", "-f", "--filter=cow", "-U", path, "file", golden], uri
    overlay = f"{place}/overlay.qcow2"
    options = ["-o", "extended_l2=on"] if "L2" in name else []
    subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", "-F", "raw", "-b", golden, *options, overlay], check=True)
    return ["qemu-nbd", "-f", "qcow2", "-x", "", "-t", "--cache=writeback", "-k", path, overlay], uri


@contextlib.contextmanager
def server(name, rubus, golden):
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="rubus-bench-") as place:
        command, uri = command_of(name, rubus, golden, place)
        environment = dict(os.environ, TMPDIR=place)
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                 env=environment, start_new_session=True)
        prefer(child.pid)
        end = time.monotonic() + 10
        while True:
            try:
                with socket.socket(socket.AF_UNIX) as probe:
                    probe.connect(f"{place}/socket")
                break
            except OSError:
                if child.poll() is not None or time.monotonic() > end:
                    sys.exit(f"nbd_clones: {' '.join(command)} does not serve")
                time.sleep(0.02)
        try:
            yield child.pid, uri
        finally:
            child.terminate()
            child.wait(20)


def prefer(pid):
    with contextlib.suppress(OSError), open(f"/proc/{pid}/autogroup", "w") as file:
        file.write("-20")
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError):
                os.setpriority(os.PRIO_PROCESS, int(task), -20)


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def burst(name, rubus, load_program, golden, load, seconds):
    kind, block, depth = load
    with server(name, rubus, golden) as (pid, uri):
        for task in os.listdir(f"/proc/{pid}/task"):
            os.sched_setaffinity(int(task), {0} if depth == 1 else {1})
        before = cpu_seconds(pid)
        arguments = [uri, kind, "random", str(block), str(depth), "1", str(seconds)]

        def placed():
            os.setsid()
            prefer("self")
            os.sched_setaffinity(0, {0})

        done = subprocess.run([load_program, *arguments], capture_output=True, text=True, check=True, preexec_fn=placed)
        time.sleep(0.02)
        result = json.loads(done.stdout)
        result["cpu_us"] = (cpu_seconds(pid) - before) / max(result["requests"], 1) * 1e6
        return result


def main():
    arguments = [argument for argument in sys.argv[1:] if not argument.startswith("--")]
    options = dict(argument[2:].split("=") for argument in sys.argv[1:] if argument.startswith("--"))
    if len(arguments) != 2:
        sys.exit(__doc__)
    rubus, load_program = (os.path.abspath(path) for path in arguments)
    rounds, seconds = int(options.get("rounds", 5)), float(options.get("seconds", 0.5))
    print(f"Linux {os.uname().release}, {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}\n")
    found = {load: {name: [] for name in NAMES} for load in LOADS}
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="rubus-bench-") as place:
        golden = f"{place}/golden.img"
        with open(golden, "wb") as file:
            for _ in range(SIZE >> 20):
                file.write(os.urandom(1 << 20))
        for _ in range(rounds):
            for load in LOADS:
                for name in random.sample(NAMES, len(NAMES)):
                    found[load][name].append(burst(name, rubus, load_program, golden, load, seconds))
    print("| load | overlay | requests/s | p50 µs | p99 µs | CPU s per million | of the best that survives a crash |")
    print("|---|---|---:|---:|---:|---:|---:|")
    for (kind, block, depth), by_name in found.items():
        def middle(name, field):
            return statistics.median(result[field] for result in by_name[name])
        best = max(middle(name, "iops") for name in NAMES if name.startswith("qcow2"))
        for name in NAMES:
            ratio = f"**{middle(name, 'iops') / best:.2f}**" if name == "rubus" else ""
            print(f"| random {kind} {block >> 10} KiB, depth {depth} | {name} | {middle(name, 'iops'):.0f} "
                  f"| {middle(name, 'p50_us'):.1f} | {middle(name, 'p99_us'):.1f} | {middle(name, 'cpu_us'):.2f} | {ratio} |")


main()
