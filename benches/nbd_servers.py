#!/usr/bin/env python3
"""`rubus serve` beside nbdkit, nbd-server and qemu-nbd: requests per second, times, and the servers' processor time.

Interleaved rounds of short bursts in random order, medians. The image is in /dev/shm; for `cold` it is on the disk, and its
pages are dropped before each burst. At depth 1 client and server share one processor, so that the software is measured and
not the waking of another processor; else the client has processor 0 and the server 1, and four connections have both.

Needs nbdkit, nbd-server, qemu-nbd and release builds:
    cargo build --release && cargo build --release -p rubus-nbd --example nbd_load
Usage: benches/nbd_servers.py RUBUS NBD_LOAD [--rounds=N] [--seconds=S] [hot] [cold] [memory]
"""

import contextlib
import json
import os
import random
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time

TICK = os.sysconf("SC_CLK_TCK")
SIZE = 512 << 20
COLD_SIZE = 2 << 30
NAMES = ["rubus", "nbdkit", "nbd-server", "qemu-nbd"]
LOADS = [
    (order, kind, block, depth, connections)
    for order, block in (("random", 4096), ("sequential", 256 << 10))
    for kind in ("read", "write")
    for depth, connections in ((1, 1), (32, 1), (32, 4))
]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def command_of(name, rubus, image, place, way):
    """The command of a server, and the address of its export."""
    port, path = free_port(), f"{place}/{name}.sock"
    uri = f"nbd://127.0.0.1:{port}/" if way == "tcp" else f"nbd+unix:///?socket={path}"
    if name == "rubus":
        where = ["--listen", f"127.0.0.1:{port}"] if way == "tcp" else ["--unix", path]
        return [rubus, "serve", "--quiet", image, *where], uri
    if name == "nbdkit":
        where = ["-i", "127.0.0.1", "-p", str(port)] if way == "tcp" else ["-U", path]
        return ["nbdkit", "-f", *where, "file", image], uri
    if name == "qemu-nbd":
        where = ["-b", "127.0.0.1", "-p", str(port)] if way == "tcp" else ["-k", path]
        return ["qemu-nbd", "-f", "raw", "-x", "", "-e", "64", "-t", "--cache=writeback", "--aio=threads", *where, image], uri
    config = f"{place}/{name}.conf"
    with open(config, "w") as file:
        file.write(f"[generic]\nlistenaddr=127.0.0.1\nport={port}\n")
        if way == "unix":
            file.write(f"unixsock={path}\n")
        file.write(f"allowlist=true\n[e]\nexportname={image}\nflush=true\nfua=true\ntrim=true\n")
    uri = uri.replace(f":{port}/", f":{port}/e") if way == "tcp" else f"nbd+unix:///e?socket={path}"
    return ["nbd-server", "-C", config, "-p", f"{place}/pid"], uri


@contextlib.contextmanager
def server(name, rubus, image, place, way):
    command, uri = command_of(name, rubus, image, place, way)
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    path = uri.split("socket=")[1] if "socket=" in uri else None
    end = time.monotonic() + 10
    while True:
        try:
            with socket.socket(socket.AF_UNIX if path else socket.AF_INET) as probe:
                probe.connect(path or ("127.0.0.1", int(uri.split(":")[2].split("/")[0])))
            break
        except OSError:
            # nbd-server goes into the background.
            if child.poll() not in (None, 0) or time.monotonic() > end:
                sys.exit(f"nbd_servers: {' '.join(command)} does not serve")
            time.sleep(0.02)
    pid = child.pid
    with contextlib.suppress(FileNotFoundError), open(f"{place}/pid") as file:
        pid = int(file.read())
    try:
        yield pid, uri
    finally:
        for one in tree(pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(one, 15)
        child.wait(20)


def tree(pid):
    pids = [pid]
    for parent in pids:
        with contextlib.suppress(OSError):
            for task in os.listdir(f"/proc/{parent}/task"):
                with open(f"/proc/{parent}/task/{task}/children") as file:
                    pids += [int(child) for child in file.read().split()]
    return pids


def cpu_seconds(pid):
    """Of the process and all that it has or had below it."""
    total = 0
    for one in tree(pid):
        with contextlib.suppress(OSError), open(f"/proc/{one}/stat") as file:
            fields = file.read().rsplit(")", 1)[1].split()
            total += sum(int(field) for field in fields[11:15])
    return total / TICK


def resident_mib(pid):
    total = 0
    for one in tree(pid):
        with contextlib.suppress(OSError), open(f"/proc/{one}/smaps_rollup") as file:
            total += sum(int(line.split()[1]) for line in file if line.startswith("Pss:"))
    return total / 1024


def pin(pid, processors):
    for one in tree(pid):
        with contextlib.suppress(OSError):
            for task in os.listdir(f"/proc/{one}/task"):
                with contextlib.suppress(OSError):
                    os.sched_setaffinity(int(task), processors)


def burst(load_program, pid, uri, load, seconds, window=None):
    order, kind, block, depth, connections = load
    if connections > 1:
        mine, theirs = {0, 1}, {0, 1}
    else:
        mine, theirs = ({0}, {0}) if depth == 1 else ({0}, {1})
    pin(pid, theirs)
    arguments = [uri, kind, order, str(block), str(depth), str(connections), str(seconds)]
    if window:
        arguments.append(str(window))
    before = cpu_seconds(pid)
    done = subprocess.run([load_program, *arguments], capture_output=True, text=True, check=True,
                          preexec_fn=lambda: os.sched_setaffinity(0, mine))
    time.sleep(0.02)
    result = json.loads(done.stdout)
    result["cpu_us"] = (cpu_seconds(pid) - before) / max(result["requests"], 1) * 1e6
    return result


def median(results, field):
    return statistics.median(result[field] for result in results)


def table(title, found):
    print(f"\n{title}\n")
    print("| load | server | requests/s | MiB/s | p50 µs | p99 µs | CPU s per million | CPU s per GiB | of the best other: speed | CPU |")
    print("|---|---|---:|---:|---:|---:|---:|---:|---:|---:|")
    for load, by_name in found.items():
        order, kind, block, depth, connections = load
        others = [results for name, results in by_name.items() if name != "rubus" and results]
        best = max(others, key=lambda results: median(results, "iops")) if others else None
        for name, results in by_name.items():
            if not results:
                continue
            iops, cpu = median(results, "iops"), median(results, "cpu_us")
            ratio = ""
            if name == "rubus" and best:
                other_cpu = median(best, "cpu_us")
                ratio = f"**{iops / median(best, 'iops'):.2f}** | {cpu / other_cpu:.2f}" if other_cpu else ""
            print(f"| {order} {kind} {block >> 10} KiB, depth {depth}, {connections} conn. | {name} | {iops:.0f} "
                  f"| {iops * block / 2**20:.0f} | {median(results, 'p50_us'):.1f} | {median(results, 'p99_us'):.1f} "
                  f"| {cpu:.2f} | {cpu * 2**30 / block / 1e6:.2f} | {ratio or ' | '} |", flush=True)


def image_of(directory, size):
    path = f"{directory}/disk.img"
    block = os.urandom(1 << 20)
    with open(path, "wb") as file:
        for _ in range(size >> 20):
            file.write(block)
        os.fsync(file.fileno())
    return path


def hot(rubus, load_program, rounds, seconds):
    present = [name for name in NAMES if name == "rubus" or shutil.which(name)]
    for way in ("tcp", "unix"):
        with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="rubus-bench-") as place, contextlib.ExitStack() as stack:
            servers = {}
            for name in present:
                # An image each: rubus locks its own.
                own = f"{place}/{name}"
                os.mkdir(own)
                image = image_of(own, SIZE)
                servers[name] = stack.enter_context(server(name, rubus, image, own, way))
            found = {load: {name: [] for name in present} for load in LOADS}
            for _ in range(rounds):
                for load in LOADS:
                    for name in random.sample(present, len(present)):
                        pid, uri = servers[name]
                        found[load][name].append(burst(load_program, pid, uri, load, seconds))
            table(f"Image in memory, {way}, medians of {rounds}", found)


def cold(rubus, load_program, rounds, seconds):
    present = [name for name in NAMES if name == "rubus" or shutil.which(name)]
    loads = [("random", "read", 4096, 32, 1), ("random", "read", 4096, 1, 1), ("sequential", "read", 256 << 10, 32, 1)]
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="rubus-bench-") as place:
        image = image_of(place, COLD_SIZE)
        found = {load: {name: [] for name in present} for load in loads}
        for _ in range(rounds):
            for load in loads:
                for name in random.sample(present, len(present)):
                    fd = os.open(image, os.O_RDONLY)
                    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
                    os.close(fd)
                    with server(name, rubus, image, place, "tcp") as (pid, uri):
                        found[load][name].append(burst(load_program, pid, uri, load, seconds))
        table(f"Image on the disk, nothing of it in memory, tcp, medians of {rounds}", found)


def memory(rubus, load_program, *_):
    present = [name for name in NAMES if name == "rubus" or shutil.which(name)]
    print("\n| server | memory, MiB: started | 1000 connections in the handshake or idle | 64 busy |\n|---|---:|---:|---:|")
    for name in present:
        with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="rubus-bench-") as place:
            image = image_of(place, 64 << 20)
            with server(name, rubus, image, place, "unix") as (pid, uri):
                path, export = uri.split("socket=")[1], b"e" if "/e?" in uri else b""
                at_first = resident_mib(pid)
                idle = [agreed(path, export) for _ in range(1000)] if name != "qemu-nbd" else []
                time.sleep(3)
                with_idle = resident_mib(pid) if idle else None
                for one in idle:
                    one.close()
                time.sleep(0.5)
                child = subprocess.Popen([load_program, uri, "write", "random", str(128 << 10), "16", "64", "2"],
                                         stdout=subprocess.DEVNULL)
                time.sleep(1.2)
                busy = resident_mib(pid)
                child.wait()
            idle_text = f"{with_idle:.1f}" if with_idle else "(64 at most)"
            print(f"| {name} | {at_first:.1f} | {idle_text} | {busy:.1f} |", flush=True)


def agreed(path, export):
    """A connection that has agreed on the export and then says nothing."""
    one = socket.socket(socket.AF_UNIX)
    one.connect(path)
    one.recv(18, socket.MSG_WAITALL)
    one.sendall(b"\0\0\0\3IHAVEOPT\0\0\0\1" + len(export).to_bytes(4, "big") + export)
    one.recv(10, socket.MSG_WAITALL)
    return one


def main():
    arguments = [argument for argument in sys.argv[1:] if not argument.startswith("--")]
    options = dict(argument[2:].split("=") for argument in sys.argv[1:] if argument.startswith("--"))
    if len(arguments) < 2:
        sys.exit(__doc__)
    rubus, load_program = (os.path.abspath(path) for path in arguments[:2])
    rounds, seconds = int(options.get("rounds", 5)), float(options.get("seconds", 0.5))
    print(f"Linux {os.uname().release}, {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}")
    for part in arguments[2:] or ["hot", "cold", "memory"]:
        {"hot": hot, "cold": cold, "memory": memory}[part](rubus, load_program, rounds, seconds)


main()
