#!/usr/bin/env python3
"""`rubus enough` beside the real programs, on disks of known slowness. Prints the tables of docs/how-to/fast-enough.md.

Each disk is an image in memory behind benches/slow_disk.py, nbdfuse and a loop device, with an ext4 on it. On each,
the real program works for a while and `rubus enough` does, in alternating order, never at the same time; the stalls begin
anew for each. From the waits of the program follows what the answer should be, by the limits of docs/how-to/fast-enough.md: no, if one
wait was too long or the 99th percentile is beyond the edge; yes, but, if it is beyond the good limit or 1 wait in 1000 is
beyond the edge; else yes. For a camera recorder it is no if a picture was lost. Where Rubus is undecided it measures again for
longer, as its answer advises, and that answer counts. A disk without slowness is beside each: if
its commits wait, the machine stands still, and both are measured again.

Needs root, mkfs.ext4, nbdfuse, strace, git, ffmpeg, PostgreSQL 15, and etcd and etcdctl, which
    go install go.etcd.io/etcd/server/v3@v3.6.8 && go install go.etcd.io/etcd/etcdctl/v3@v3.6.8
do not install because of their replace directives; in a module of your own `go get` both and `go build` them.
Usage: benches/enough.py RUBUS [etcd=PATH etcdctl=PATH] [postgres=DIRECTORY] [seconds=30] [results=FILE]
           [PROGRAM...] [PROGRAM:DISK...]
Everything takes about an hour. results= adds each disk to a file and leaves out those that it has.
"""

import contextlib
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

from enough_programs import PROGRAMS, quantile, run, wait_until

HERE = os.path.dirname(os.path.abspath(__file__))
IMAGE_BYTES = 8 << 30
# So often is a disk measured while the machine stands still.
TRIES = 3
# What an undecided answer advises: "measure longer to decide: --time 7m". No longer than that is waited for.
ADVICE = re.compile(r"--time (\d+)([smh])")
LONGEST_S = 900

# Per program: name of the disk, and what benches/slow_disk.py is told.
DISKS = {
    "etcd": {
        "fast": "flush_ms=0.5 mb_per_s=100",
        "flushes of 2 ms": "flush_ms=2 mb_per_s=50",
        "flushes of 6 ms": "flush_ms=6 mb_per_s=50",
        "flushes of 16 ms": "flush_ms=16 mb_per_s=50",
        "flushes of 60 ms": "flush_ms=60 write_ms=1 mb_per_s=5",
        "2 % slow commits": "flush_ms=0.5 mb_per_s=50 slow_share=0.01 slow_ms=60",
        "0.4 % slow commits": "flush_ms=0.5 mb_per_s=50 slow_share=0.002 slow_ms=80",
        "stalls of 1.6 s": "flush_ms=0.5 mb_per_s=50 stall_every_s=17 stall_s=1.6",
        "stalls of 0.5 s": "flush_ms=0.5 mb_per_s=50 stall_every_s=17 stall_s=0.5",
    },
    "home-assistant": {
        "fast": "flush_ms=1 mb_per_s=50",
        "flushes of 40 ms": "flush_ms=40 mb_per_s=20",
        "flushes of 80 ms": "flush_ms=80 mb_per_s=20",
        "flushes of 300 ms": "flush_ms=300 mb_per_s=20",
        "small writes of 8 ms": "flush_ms=20 write_ms=8 mb_per_s=20",
        "0.8 MB/s": "flush_ms=5 mb_per_s=0.8",
        "stalls of 2 s": "flush_ms=2 mb_per_s=50 stall_every_s=13 stall_s=2",
        "stalls of 8 s": "flush_ms=2 mb_per_s=50 stall_every_s=17 stall_s=8",
    },
    "database": {
        "fast": "flush_ms=0.5 mb_per_s=100",
        "flushes of 14 ms": "flush_ms=14 mb_per_s=50",
        "flushes of 120 ms": "flush_ms=120 mb_per_s=50",
        "4 % slow commits": "flush_ms=0.5 mb_per_s=50 slow_share=0.03 slow_ms=300",
        "stalls of 1.6 s": "flush_ms=0.5 mb_per_s=50 stall_every_s=13 stall_s=1.6",
        "stalls of 0.5 s": "flush_ms=0.5 mb_per_s=50 stall_every_s=17 stall_s=0.5",
    },
    "git-server": {
        "fast": "flush_ms=1 mb_per_s=100",
        "flushes of 40 ms": "flush_ms=40 mb_per_s=40",
        "flushes of 350 ms": "flush_ms=350 mb_per_s=40",
        "flushes of 3 s": "flush_ms=3000 mb_per_s=10",
        "8 MB/s": "flush_ms=5 mb_per_s=8",
        "2 MB/s": "flush_ms=5 mb_per_s=2",
        "stalls of 4 s": "flush_ms=2 mb_per_s=50 stall_every_s=15 stall_s=4",
        "stalls of 14 s": "flush_ms=2 mb_per_s=50 stall_every_s=18 stall_s=14",
    },
    "camera-recorder": {
        "fast": "flush_ms=1 mb_per_s=50",
        "4 MB/s": "flush_ms=2 mb_per_s=4",
        "1.2 MB/s": "flush_ms=2 mb_per_s=1.2",
        "0.5 MB/s": "flush_ms=2 mb_per_s=0.5",
        "flushes of 80 ms": "flush_ms=80 mb_per_s=20",
        "stalls of 1 s": "flush_ms=2 mb_per_s=50 stall_every_s=13 stall_s=1",
        "stalls of 6 s": "flush_ms=2 mb_per_s=50 stall_every_s=15 stall_s=6",
    },
}


PROGRAMS_BY_NAME = {program.name: program for program in PROGRAMS}
WORDS = {"yes": "yes", "yes_but": "yes, but", "no": "no", "undecided": "undecided", "none": "gives up"}


class Disk:
    def __init__(self, server, mount):
        self.server, self.mount = server, mount
        self.is_slow = False

    def slow(self):
        self.is_slow = True
        self.server.send_signal(signal.SIGUSR1)

    def fast(self):
        self.is_slow = False
        self.server.send_signal(signal.SIGUSR2)


@contextlib.contextmanager
def slow_disk(wishes):
    with tempfile.TemporaryDirectory(prefix="rubus-enough-", dir="/dev/shm") as directory, contextlib.ExitStack() as after:
        image, disk, point = f"{directory}/image", f"{directory}/disk", f"{directory}/mount"
        for name in (image, disk):
            open(name, "w").close()
        os.mkdir(point)
        os.truncate(image, IMAGE_BYTES)
        run("mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0", image)
        os.chmod(directory, 0o755)
        socket = f"{directory}/socket"
        server = subprocess.Popen([sys.executable, f"{HERE}/slow_disk.py", socket, image, *wishes.split()])
        after.callback(server.wait)
        wait_until(lambda: os.path.exists(socket))
        fuse = subprocess.Popen(["nbdfuse", disk, "--unix", socket])
        after.callback(fuse.wait)
        wait_until(lambda: os.path.getsize(disk))
        after.callback(run, "umount", disk)
        device = run("losetup", "-f", "--show", "--direct-io=on", disk)
        after.callback(run, "losetup", "-d", device)
        # It keeps what others have set: a loop device that is write through hands no flush on.
        with open(f"/sys/block/{os.path.basename(device)}/queue/write_cache", "w") as out:
            out.write("write back")
        run("mount", device, point)
        after.callback(run, "umount", point)
        # Nothing is slow any more when it is taken down.
        after.callback(server.send_signal, signal.SIGUSR2)
        yield Disk(server, point)


class Witness:
    """Commits to a disk without any slowness, ten per second: what they wait for is the machine's doing. Only while the other
    disk is measured: what prepares a program goes before everything else, too."""

    def __init__(self, calm, measured):
        self.file = open(f"{calm.mount}/witness", "wb", buffering=0)
        self.measured = measured
        self.longest_s, self.is_over = 0.0, threading.Event()
        self.thread = threading.Thread(target=self.watch, daemon=True)
        self.thread.start()

    def watch(self):
        while not self.is_over.wait(0.1):
            was_slow, began = self.measured.is_slow, time.monotonic()
            self.file.write(bytes(4096))
            os.fdatasync(self.file)
            if was_slow and self.measured.is_slow:
                self.longest_s = max(self.longest_s, time.monotonic() - began)

    def end(self):
        self.is_over.set()
        self.thread.join()
        self.file.close()
        return self.longest_s * 1e3


def processor_busy():
    """Jiffies of all processors: busy, and all."""
    numbers = [int(n) for n in open("/proc/stat").readline().split()[1:9]]
    return sum(numbers) - numbers[3] - numbers[4], sum(numbers)


def of_program(program, disk, seconds):
    place = f"{disk.mount}/program"
    os.mkdir(place)
    os.chmod(place, 0o755)
    program.prepare(place)
    try:
        run("sync", "-f", disk.mount)
        disk.slow()
        found = program.run(place, seconds)
        disk.fast()
    finally:
        disk.fast()
        program.end()
        shutil.rmtree(place)
        run("sync", "-f", disk.mount)
    waits = found.pop("waits_s")
    found["waits"] = len(waits)
    found["p99_ms"], found["longest_ms"] = quantile(waits, 0.99) * 1e3, max(waits) * 1e3
    found["median_ms"] = quantile(waits, 0.5) * 1e3
    return found, waits


def of_rubus(rubus, program, disk):
    seconds = program.rubus_s
    while True:
        answer = asked(rubus, program, disk, seconds)
        advice = answer["answer"] == "undecided" and ADVICE.search(answer["sentence"])
        longer_s = advice and int(advice[1]) * {"s": 1, "m": 60, "h": 3600}[advice[2]]
        if not advice or not seconds < longer_s <= LONGEST_S:
            return answer
        seconds = longer_s


def asked(rubus, program, disk, seconds):
    place = f"{disk.mount}/rubus"
    os.mkdir(place)
    run("sync", "-f", disk.mount)
    disk.slow()
    done = subprocess.run(
        [rubus, "enough", program.name, place, "--json", "--time", f"{seconds}s"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    disk.fast()
    shutil.rmtree(place)
    try:
        return json.loads(done.stdout) | {"asked_s": seconds}
    except ValueError:
        # It gives up on a disk that does nothing for half a minute.
        why = done.stderr.strip().splitlines()[-1]
        return {"answer": "none", "sentence": why, "commits": 0, "median_ms": 0, "p99_ms": None, "longest_ms": 0, "stalls": [], "asked_s": seconds}


def truth(program, found, waits):
    """What the answer should be."""
    if "lost" in found:
        return "no" if found["lost"] else "yes"
    good, edge, stall = program.limits_ms
    beyond = sum(wait * 1e3 > edge for wait in waits)
    if found["longest_ms"] >= stall or found["p99_ms"] > edge:
        return "no"
    return "yes_but" if found["p99_ms"] > good or beyond * 1000 >= len(waits) and beyond else "yes"


def one(rubus, program, name, wishes, seconds, rubus_first):
    with slow_disk(wishes) as disk, slow_disk("") as calm:
        witness = Witness(calm, disk)
        busy, began = processor_busy(), time.monotonic()
        theirs = lambda: of_program(program, disk, seconds)
        ours = lambda: of_rubus(rubus, program, disk)
        if rubus_first:
            judgement = ours()
            found, waits = theirs()
        else:
            found, waits = theirs()
            judgement = ours()
        after = processor_busy()
        witness_ms = witness.end()
    keep = ["answer", "sentence", "commits", "median_ms", "p99_ms", "longest_ms", "stalls", "asked_s"]
    return {
        "program": program.name,
        "disk": name,
        "wishes": wishes,
        "truth": truth(program, found, waits),
        "found": found,
        "rubus": {key: judgement[key] for key in keep},
        "busy": (after[0] - busy[0]) / (after[1] - busy[1]),
        "seconds": time.monotonic() - began,
        "witness_ms": witness_ms,
        "disturbed": witness_ms >= program.calm_ms,
    }


def verdict(row):
    """Right on which side of yes and no; the reservation of a yes is another matter."""
    if row.get("disturbed"):
        return "disturbed"
    answer = row["rubus"]["answer"]
    if answer in ("undecided", "none"):
        return "undecided"
    return "right" if (answer == "no") == (row["truth"] == "no") else "WRONG"


def ms(value):
    return f"{value:.1f} ms" if value < 100 else f"{value:.0f} ms" if value < 1000 else f"{value / 1e3:.1f} s"


def tables(rows):
    lines = ["| program | disks | right | the same word too | undecided | wrong | disturbed |", "|---|---:|---:|---:|---:|---:|---:|"]
    for name in [*DISKS, None]:
        some = [row for row in rows if name in (row["program"], None)]
        if some:
            count = lambda what: sum(verdict(row) == what for row in some)
            same = sum(verdict(row) == "right" and row["rubus"]["answer"] == row["truth"] for row in some)
            title = f"`{name}`" if name else "all"
            lines.append(f"| {title} | {len(some)} | {count('right')} | {same} | {count('undecided')} | {count('WRONG')} | {count('disturbed')} |")
    return "\n".join(lines)


def pairs(rows):
    """A line for each pair, as docs/data/enough.tsv has them."""
    lines = ["\t".join(["program", "disk", "the program: 99 %, longest", "so", "Rubus: 99 %, longest", "says", "judged"])]
    for row in rows:
        found, ours = row["found"], row["rubus"]
        p99 = ms(ours["p99_ms"]["value"]) if ours["p99_ms"] else "–"
        longer = f" in {ours['asked_s']} s" if ours.get("asked_s", 0) > PROGRAMS_BY_NAME[row["program"]].rubus_s else ""
        lost = f"; {100 * found['lost']:.0f} % lost" if found.get("lost") else ""
        cells = [row["program"], row["disk"], f"{ms(found['p99_ms'])}, {ms(found['longest_ms'])}{lost}"]
        cells += [WORDS[row["truth"]], f"{p99}, {ms(ours['longest_ms'])}{longer}", WORDS[ours["answer"]], verdict(row)]
        lines.append("\t".join(cells))
    return "\n".join(lines)


def main():
    rubus, *wishes = sys.argv[1:]
    # In a mount namespace of its own: a program that copies this one's mounts into another namespace would keep them busy.
    if os.readlink("/proc/self/ns/mnt") == os.readlink(f"/proc/{os.getppid()}/ns/mnt"):
        os.execvp("unshare", ["unshare", "--mount", sys.executable, *sys.argv])
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))
    # Other programs of a busy machine shall not be taken for slowness of the disk: all that is started here goes before them.
    os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    options = {"etcd": "etcd", "etcdctl": "etcdctl", "postgres": "/usr/lib/postgresql/15/bin", "seconds": "30", "results": ""}
    options |= dict(wish.split("=") for wish in wishes if "=" in wish)
    chosen = [wish for wish in wishes if "=" not in wish]
    rows = []
    if options["results"] and os.path.exists(options["results"]):
        rows = [json.loads(line) for line in open(options["results"])]
    for kind in PROGRAMS:
        wanted = [
            (number, disk)
            for number, disk in enumerate(DISKS[kind.name])
            if (not chosen or kind.name in chosen or f"{kind.name}:{disk}" in chosen)
            and not any((row["program"], row["disk"]) == (kind.name, disk) for row in rows)
        ]
        if not wanted:
            continue
        with tempfile.TemporaryDirectory(prefix="rubus-enough-", dir="/dev/shm") as scratch:
            program = kind(options, scratch)
            for number, disk in wanted:
                for _ in range(TRIES):
                    row = one(rubus, program, disk, DISKS[kind.name][disk], int(options["seconds"]), number % 2 == 1)
                    if not row["disturbed"]:
                        break
                    print(f"# {kind.name}, {disk}: a disk beside it waited {row['witness_ms']:.0f} ms, once more", flush=True)
                rows.append(row)
                if options["results"]:
                    with open(options["results"], "a") as out:
                        out.write(json.dumps(row) + "\n")
                print(f"# {kind.name}, {disk} ({row['wishes']}; a disk beside it up to {row['witness_ms']:.0f} ms): {verdict(row)}; truth {row['truth']}, {row['found']}", flush=True)
                print(f"#   {row['rubus']['sentence']} (processors {100 * row['busy']:.0f} % busy, {row['seconds']:.0f} s)", flush=True)
    order = [(name, disk) for name in DISKS for disk in DISKS[name]]
    rows = sorted((row for row in rows if (row["program"], row["disk"]) in order), key=lambda row: order.index((row["program"], row["disk"])))
    busy = sorted(row["busy"] for row in rows)
    print(tables(rows))
    print(f"\n{pairs(rows)}")
    print(f"\nLinux {platform.release()}, {os.cpu_count()} processors, {100 * busy[len(busy) // 2]:.0f} % busy (median; up to {100 * busy[-1]:.0f} %).")


main()
