#!/usr/bin/env python3
"""`rubus serve` beside nbdkit, nbd-server and qemu-nbd: requests per second, times, and the servers' processor time.

All serve one image in /dev/shm, the same for all: where an image happens to lie in the memory of a virtual machine
makes more difference than the servers do. Interleaved rounds of short bursts in random order; medians, and for the
processor's time sums. At depth 1 client and server share one processor, so that the software is measured and not the
waking of another processor; else the client has processor 0 and the server 1, and four connections have both. Servers
and load have the highest priority that this user may give, as sessions and as processes: without, a server with many
threads has more of a busy machine than one with few. For `cold` the image is on the disk, and
its pages are dropped before each burst. `tls` copies the image out with nbdcopy. `clones` is benches/nbd_clones.py.
`disks` is `hot` over TCP with the image on ext4 and on xfs, in filesystems made for it on loop devices (as root); all of
the image is in memory, so that the disk counts for writes alone. `crowd` has many connections busy at once: memory,
and how many requests the slowest got beside the quickest (--crowd=N connections, 1000).

Needs nbdkit, nbd-server, qemu-nbd, nbdcopy and release builds:
    cargo build --release && cargo build --release -p rubus-nbd --example nbd_load
Usage: benches/nbd_servers.py RUBUS NBD_LOAD [--rounds=N] [--seconds=S] [--write=docs/data/nbd-servers.tsv]
           [hot] [disks] [cold] [tls] [memory] [crowd] [clones]
Everything takes about ten minutes. --write puts the rows of every load into that file, in the place of those of
the same images.
"""

import contextlib
import io
import json
import os
import random
import re
import select
import shutil
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time

TICK = os.sysconf("SC_CLK_TCK")
SIZE = 512 << 20
COLD_SIZE = 2 << 30
NAMES = ["rubus", "nbdkit", "nbd-server", "qemu-nbd"]
SHAPES = ((1, 1), (32, 1), (1, 4), (32, 4))
LOADS = [
    (order, kind, block, depth, connections)
    for order, block in (("random", 4096), ("sequential", 256 << 10))
    for kind in ("read", "write")
    for depth, connections in SHAPES
]
COLUMNS = ["image", "load", *NAMES, "speed", "CPU", "p99"]
# Of every table of loads, as --write keeps them.
ROWS = []


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def command_of(name, rubus, image, place, way, tls=None):
    """The command of a server, and the address of its export; `tls` is a directory of certificates."""
    port, path = free_port(), f"{place}/{name}.sock"
    scheme, end = ("nbds", f"?tls-certificates={tls}") if tls else ("nbd", "")
    host = "localhost" if tls else "127.0.0.1"
    uri = f"{scheme}://{host}:{port}/{end}" if way == "tcp" else f"nbd+unix:///?socket={path}"
    if name == "rubus":
        where = ["--listen", f"127.0.0.1:{port}"] if way == "tcp" else ["--unix", path]
        secret = ["--tls", "require", "--certificates", tls] if tls else []
        return [rubus, "serve", "--quiet", image, *where, *secret], uri
    if name == "nbdkit":
        where = ["-i", "127.0.0.1", "-p", str(port)] if way == "tcp" else ["-U", path]
        secret = ["--tls=require", f"--tls-certificates={tls}"] if tls else []
        return ["nbdkit", "-f", *where, *secret, "file", image], uri
    if name == "qemu-nbd":
        where = ["-b", "127.0.0.1", "-p", str(port)] if way == "tcp" else ["-k", path]
        secret = ["--object", f"tls-creds-x509,id=t,endpoint=server,dir={tls},verify-peer=no", "--tls-creds", "t"] if tls else []
        options = ["-f", "raw", "-x", "", "-e", "64", "-t", "--cache=writeback", "--aio=threads"]
        return ["qemu-nbd", *options, *where, *secret, image], uri
    config = f"{place}/{name}.conf"
    with open(config, "w") as file:
        file.write(f"[generic]\nlistenaddr=127.0.0.1\nport={port}\n")
        if way == "unix":
            file.write(f"unixsock={path}\n")
        if tls:
            file.write(f"certfile={tls}/server-cert.pem\nkeyfile={tls}/server-key.pem\ncacertfile={tls}/ca-cert.pem\nforce_tls=true\n")
        file.write(f"allowlist=true\n[e]\nexportname={image}\nflush=true\nfua=true\ntrim=true\n")
    uri = uri.replace(f":{port}/", f":{port}/e") if way == "tcp" else f"nbd+unix:///e?socket={path}"
    return ["nbd-server", "-C", config, "-p", f"{place}/pid"], uri


@contextlib.contextmanager
def server(name, rubus, image, place, way, tls=None):
    command, uri = command_of(name, rubus, image, place, way, tls)
    with contextlib.suppress(FileNotFoundError):
        os.remove(f"{place}/pid")
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                             start_new_session=True)
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
    for one in tree(pid):
        prefer(one)
    try:
        yield pid, uri
    finally:
        for one in tree(pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(one, 15)
        child.wait(20)


def prefer(pid="self"):
    """Gives the process's session the highest weight among sessions, as far as this user may, and each of its threads
    the highest priority, which those that it starts inherit: whatever else runs here then disturbs servers and load
    less, and all of them alike. Where sessions have no weights, only the priority counts."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/autogroup", "w") as file:
        file.write("-20")
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError):
                os.setpriority(os.PRIO_PROCESS, int(task), -20)


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

    def placed():
        os.setsid()
        prefer()
        os.sched_setaffinity(0, mine)

    before = cpu_seconds(pid)
    done = subprocess.run([load_program, *arguments], capture_output=True, text=True, check=True, preexec_fn=placed)
    time.sleep(0.02)
    result = json.loads(done.stdout)
    result["cpu_s"] = cpu_seconds(pid) - before
    return result


class Sum:
    """What all bursts of one server under one load say together."""

    def __init__(self, results):
        self.rounds = [result["iops"] for result in results]
        self.iops = statistics.median(self.rounds)
        self.p99_us = statistics.median(result["p99_us"] for result in results)
        requests = sum(result["requests"] for result in results)
        self.cpu_us = sum(result["cpu_s"] for result in results) / max(requests, 1) * 1e6

    def text(self, block):
        speed = f"{self.iops / 1e3:.1f} k" if block < 64 << 10 else f"{self.iops * block / 2**20:.0f} MiB/s"
        return f"{speed} · {self.cpu_us:.1f} · {self.p99_us:.0f}"

    def ratio(self, other):
        """Of the medians, and the least and the greatest of the rounds."""
        each = [own / its for own, its in zip(self.rounds, other.rounds)]
        return f"**{self.iops / other.iops:.2f}** ({min(each):.2f}–{max(each):.2f})"


def table(title, found):
    """A row for each load; ratios are to the best of the others: the one with most requests, and the lowest p99."""
    names = [name for name in NAMES if any(by_name.get(name) for by_name in found.values())]
    print(f"\n{title}\n")
    print(f"| load | {' | '.join(names)} | speed | CPU | p99 |")
    print(f"|---|{'---:|' * (len(names) + 3)}")
    for load, by_name in found.items():
        order, kind, block, depth, connections = load
        sums = {name: Sum(results) for name, results in by_name.items() if results}
        others = [sums[name] for name in sums if name != "rubus"]
        ratios = ["", "", ""]
        if others and "rubus" in sums:
            ours, best = sums["rubus"], max(others, key=lambda other: other.iops)
            least = min(other.p99_us for other in others)
            cpu = f"{ours.cpu_us / best.cpu_us:.2f}" if best.cpu_us else ""
            ratios = [ours.ratio(best), cpu, f"{ours.p99_us / least:.2f}"]
        cells = " | ".join(sums[name].text(block) if name in sums else "" for name in names)
        print(f"| {order} {kind} {block >> 10} KiB, depth {depth}, {connections} conn. | {cells} | {' | '.join(ratios)} |")
        kept = [sums[name].text(block) if name in sums else "" for name in NAMES]
        ratios = [ratio.replace("**", "") for ratio in ratios]
        ROWS.append([title.strip("*"), f"{order} {kind} {block >> 10} KiB, depth {depth}, {connections} conn.", *kept, *ratios])


def image_of(directory, size):
    path = f"{directory}/disk.img"
    with open(path, "wb") as file:
        block = os.urandom(1 << 20)
        for _ in range(size >> 20):
            file.write(block)
        os.fsync(file.fileno())
    return path


def present():
    return [name for name in NAMES if name == "rubus" or shutil.which(name)]


def interleaved(servers, loads, rounds, measure):
    found = {load: {name: [] for name in servers} for load in loads}
    for number in range(rounds):
        for load in loads:
            for name in random.sample(list(servers), len(servers)):
                found[load][name].append(measure(name, load))
        print(f"round {number + 1} of {rounds}", file=sys.stderr)
    return found


def hot(rubus, load_program, rounds, seconds):
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="rubus-bench-") as place:
        image = image_of(place, SIZE)
        for way, words in (("tcp", "TCP over loopback"), ("unix", "Unix socket")):
            with contextlib.ExitStack() as stack:
                servers = {name: stack.enter_context(server(name, rubus, image, place, way)) for name in present()}
                found = interleaved(servers, LOADS, rounds,
                                    lambda name, load: burst(load_program, *servers[name], load, seconds))
            table(f"**Image in memory, {words}**", found)


@contextlib.contextmanager
def filesystem(kind, place, size):
    """A new filesystem in a file of this directory, mounted."""
    image, mount = f"{place}/{kind}.fs", f"{place}/{kind}"
    with open(image, "wb") as file:
        file.truncate(size)
    subprocess.run([f"mkfs.{kind}", "-q", image], check=True, capture_output=True)
    os.mkdir(mount)
    subprocess.run(["mount", "-o", "loop", image, mount], check=True)
    try:
        yield mount
    finally:
        subprocess.run(["umount", mount], check=True)
        os.remove(image)


def disks(rubus, load_program, rounds, seconds):
    """What `hot` is, on filesystems that most images lie on: there a server has to find out what is in memory."""
    for kind in ("ext4", "xfs"):
        if os.geteuid() != 0 or not shutil.which(f"mkfs.{kind}"):
            print(f"\n**Image in memory, {kind}**: not measured, which takes root and mkfs.{kind}")
            continue
        with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="rubus-bench-") as place, \
                filesystem(kind, place, 2 * SIZE) as mount:
            image = image_of(mount, SIZE)
            with contextlib.ExitStack() as stack:
                servers = {name: stack.enter_context(server(name, rubus, image, place, "tcp")) for name in present()}

                def measure(name, load):
                    # Read whole, so that all servers find it in memory.
                    with open(image, "rb") as file:
                        while file.read(1 << 20):
                            pass
                    return burst(load_program, *servers[name], load, seconds)

                found = interleaved(servers, LOADS, rounds, measure)
            table(f"**Image in memory, on {kind}, TCP over loopback**", found)


def crowd(rubus, _, rounds, seconds, connections=1000):
    """Many busy connections, one read at a time on each."""
    print(f"\n**{connections} busy connections, random 4 KiB reads, depth 1, Unix socket**\n")
    print("| server | requests/s | least / most of one connection | MiB (PSS) | threads |\n|---|---:|---:|---:|---:|")
    for name in present():
        if name == "qemu-nbd":
            continue
        with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="rubus-bench-") as place:
            image = image_of(place, 64 << 20)
            with server(name, rubus, image, place, "unix") as (pid, uri):
                path, export = uri.split("socket=")[1], b"e" if "/e?" in uri else b""
                lines = [agreed(path, export) for _ in range(connections)]
                done, waits = dict.fromkeys(lines, 0), select.epoll()
                by_number = {line.fileno(): line for line in lines}

                def ask(line):
                    offset = random.randrange(0, 64 << 20, 4096)
                    line.sendall(struct.pack(">IHHQQI", 0x25609513, 0, 0, 1, offset, 4096))

                left = dict.fromkeys(lines, 16 + 4096)
                for line in lines:
                    waits.register(line, select.EPOLLIN)
                    ask(line)
                begin, busy, threads = time.monotonic(), 0, 0
                while (now := time.monotonic()) - begin < max(seconds * rounds, 2):
                    if not threads and now - begin > 1:
                        busy, threads = resident_mib(pid), sum(len(os.listdir(f"/proc/{one}/task")) for one in tree(pid))
                    for number, _ in waits.poll(0.1):
                        line = by_number[number]
                        got = len(line.recv(left[line]))
                        if not got:
                            sys.exit(f"nbd_servers: {name} hung up on one of {connections} connections")
                        left[line] -= got
                        if left[line] == 0:
                            done[line], left[line] = done[line] + 1, 16 + 4096
                            ask(line)
                took = time.monotonic() - begin
                for line in lines:
                    line.close()
                print(f"| {name} | {sum(done.values()) / took:.0f} | {min(done.values())} / {max(done.values())} | {busy:.1f} | {threads} |")


def cold(rubus, load_program, rounds, seconds):
    loads = [("random", "read", 4096, 32, 1), ("random", "read", 4096, 1, 1), ("sequential", "read", 256 << 10, 32, 1)]
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="rubus-bench-") as place:
        image = image_of(place, COLD_SIZE)

        def measure(name, load):
            fd = os.open(image, os.O_RDONLY)
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(fd)
            with server(name, rubus, image, place, "tcp") as (pid, uri):
                return burst(load_program, pid, uri, load, seconds)

        found = interleaved(present(), loads, rounds, measure)
        table("**Image on the disk, nothing of it in memory, TCP**", found)


def tls(rubus, _, rounds, *__):
    """nbdcopy reads the whole image through TLS and throws it away."""
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="rubus-bench-") as place:
        image = image_of(place, SIZE)
        secrets = f"{place}/tls"
        subprocess.run([rubus, "serve", "--make-certificates", secrets], check=True, capture_output=True)
        found = {}
        for _ in range(max(rounds // 2, 3)):
            for name in random.sample(present(), len(present())):
                for secret in (None, secrets):
                    with server(name, rubus, image, place, "tcp", secret) as (pid, uri):
                        before, start = cpu_seconds(pid), time.monotonic()
                        copied = subprocess.run(["nbdcopy", uri, "null:"], capture_output=True, text=True)
                        took = time.monotonic() - start
                        time.sleep(0.02)
                        if copied.returncode == 0:
                            found.setdefault((name, bool(secret)), []).append((took, cpu_seconds(pid) - before))
                        else:
                            print(f"{name}: {copied.stderr.strip()}", file=sys.stderr)
        print("\n**nbdcopy reads the image, TCP, four connections where the server offers that**\n")
        print("| server | clear MiB/s | CPU s per GiB | TLS MiB/s | CPU s per GiB |\n|---|---:|---:|---:|---:|")
        for name in present():
            cells = []
            for is_secret in (False, True):
                runs = found.get((name, is_secret))
                if runs:
                    took, cpu = (statistics.median(run[at] for run in runs) for at in (0, 1))
                    cells += [f"{SIZE / 2**20 / took:.0f}", f"{cpu * 2**30 / SIZE:.2f}"]
                else:
                    cells += ["", ""]
            print(f"| {name} | {' | '.join(cells)} |")


def memory(rubus, load_program, *_):
    print("\n**Memory, MiB (PSS of all processes)**\n")
    print("| server | started | 1000 idle connections | 64 busy ones, 128 KiB writes at depth 16 |\n|---|---:|---:|---:|")
    for name in present():
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
            idle_text = f"{with_idle:.1f}" if with_idle else "(has 64 at most)"
            print(f"| {name} | {at_first:.1f} | {idle_text} | {busy:.1f} |")


def agreed(path, export):
    """A connection that has agreed on the export and then says nothing."""
    one = socket.socket(socket.AF_UNIX)
    one.connect(path)
    one.recv(18, socket.MSG_WAITALL)
    one.sendall(b"\0\0\0\3IHAVEOPT\0\0\0\1" + len(export).to_bytes(4, "big") + export)
    one.recv(10, socket.MSG_WAITALL)
    return one


def clones(rubus, load_program, rounds, seconds):
    print("\n**A new clone for each burst, golden image in memory, Unix socket**\n", flush=True)
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "nbd_clones.py")
    arguments = [rubus, load_program, f"--rounds={rounds}", f"--seconds={seconds}"]
    done = subprocess.run([sys.executable, script, *arguments], stdout=subprocess.PIPE, text=True, check=True)
    print(done.stdout[done.stdout.index("|"):], end="")


def stolen():
    """Processor time that the host of a virtual machine gave to others, and all processor time, in ticks."""
    with open("/proc/stat") as file:
        fields = [int(field) for field in file.readline().split()[1:9]]
    return fields[7], sum(fields)


def version(*command):
    with contextlib.suppress(OSError):
        done = subprocess.run(command, capture_output=True, text=True)
        found = re.search(r"\d+(\.\d+)+", done.stdout + done.stderr)
        return f"{command[0]} {found[0]}" if found else command[0]
    return f"no {command[0]}"


def write(path):
    """Puts the rows into a table of tab-separated values, in the place of older ones of the same images."""
    images = {row[0] for row in ROWS}
    lines = []
    if os.path.exists(path):
        with open(path) as file:
            lines = [line.rstrip("\n").split("\t") for line in file][1:]
    lines = [line for line in lines if line[0] not in images] + ROWS
    with open(path, "w") as file:
        file.writelines("\t".join(line) + "\n" for line in [COLUMNS, *lines])


def main():
    arguments = [argument for argument in sys.argv[1:] if not argument.startswith("--")]
    options = dict(argument[2:].split("=", 1) for argument in sys.argv[1:] if argument.startswith("--"))
    if len(arguments) < 2:
        sys.exit(__doc__)
    rubus, load_program = (os.path.abspath(path) for path in arguments[:2])
    rounds, seconds = int(options.get("rounds", 5)), float(options.get("seconds", 0.35))
    prefer()
    peers = [version("nbdkit", "--version"), version("nbd-server", "-V"), version("qemu-nbd", "--version")]
    in_crowd = int(options.get("crowd", 1000))
    parts = {"hot": hot, "disks": disks, "cold": cold, "tls": tls, "memory": memory,
             "crowd": lambda *given: crowd(*given, connections=in_crowd), "clones": clones}
    output = io.StringIO()
    begin = time.monotonic()
    load_at_first, stolen_at_first = os.getloadavg()[0], stolen()
    with contextlib.redirect_stdout(output):
        for part in arguments[2:] or parts:
            parts[part](rubus, load_program, rounds, seconds)
    taken, ticks = (now - first for now, first in zip(stolen(), stolen_at_first))
    head = (f"Linux {os.uname().release}, {os.cpu_count()} processors, a load of {load_at_first:.1f} before, "
            f"{(time.monotonic() - begin) / 60:.0f} minutes, {100 * taken / ticks:.1f} % of the processors' time taken by the host; "
            f"{', '.join(peers)}; {rounds} rounds of bursts of {seconds} s. A server's cell is: speed · its CPU µs per request · p99 µs. "
            "The last three columns are Rubus's by the best other's: speed (and its range over the rounds) and CPU by those of the "
            "fastest, p99 by the lowest.\n")
    text = head + output.getvalue()
    print(text)
    if "write" in options:
        write(options["write"])


if __name__ == "__main__":
    main()
