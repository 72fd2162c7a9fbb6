#!/usr/bin/env python3
"""Rubus beside fio on the same devices: peak IOPS and processor time per operation, the time to a ±5 % interval,
memory, and the size of the binary. Prints the tables of BENCHMARKS.md.

Needs root (loop devices, the block control group of version 1), fio and a release build of rubus.
Usage: benches/side_by_side.py RUBUS [peak] [precision] [memory]
"""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time

RUBUS = ""
SECONDS = 6
GROUP = "/sys/fs/cgroup/blkio/rubus-side-by-side"

# What the kernel holds a loop device to: name, read and write bytes per second, read and write IOPS.
DEVICES = [
    ("an SD card of class 10", 23e6, 12e6, 1600, 90),
    ("an SD card of class A2", 43e6, 31e6, 2050, 780),
    ("a USB stick", 32e6, 18e6, 1900, 40),
    ("an SSD on USB 2", 34e6, 31e6, 2900, 2400),
    ("an SSD on USB 3", 330e6, 280e6, 9500, 9000),
]


def run(command, **more):
    done = subprocess.run(command, capture_output=True, text=True, **more)
    if done.returncode not in (0, 1):
        sys.exit(f"side_by_side: {' '.join(command)} failed:\n{done.stderr}{done.stdout}")
    return done.stdout


@contextlib.contextmanager
def loop_device(mebibytes):
    """A loop device over a file in memory, filled, so that nothing is sparse."""
    with tempfile.NamedTemporaryFile(dir="/dev/shm", prefix="rubus-bench-") as file:
        block = os.urandom(1 << 20)
        for _ in range(mebibytes):
            file.write(block)
        file.flush()
        device = run(["losetup", "--find", "--show", "--direct-io=on", file.name]).strip()
        try:
            yield device
        finally:
            run(["losetup", "--detach", device])


@contextlib.contextmanager
def throttle(device, limits):
    """The block throttle; yields the prefix of commands that are held to it."""
    _, read_bytes, write_bytes, read_iops, write_iops = limits
    number = os.stat(device).st_rdev
    number = f"{os.major(number)}:{os.minor(number)}"
    os.makedirs(GROUP, exist_ok=True)
    for name, value in [
        ("read_bps", read_bytes), ("write_bps", write_bytes),
        ("read_iops", read_iops), ("write_iops", write_iops),
    ]:
        with open(f"{GROUP}/blkio.throttle.{name}_device", "w") as file:
            file.write(f"{number} {int(value)}")
    try:
        yield ["sh", "-c", f'echo $$ > {GROUP}/cgroup.procs && exec "$@"', "sh"]
    finally:
        time.sleep(0.2)
        os.rmdir(GROUP)


def fio(device, rw, depth, engine):
    out = run([
        "fio", "--name=job", f"--filename={device}", "--direct=1", "--bs=4k", f"--rw={rw}",
        f"--iodepth={depth}", f"--ioengine={engine}", "--time_based", f"--runtime={SECONDS}",
        "--ramp_time=1", "--thread", "--output-format=json",
    ])
    job = json.loads(out)["jobs"][0]
    side = job["read" if "read" in rw else "write"]
    cpu = (job["usr_cpu"] + job["sys_cpu"]) / 100 * side["runtime"] / 1000
    return side["iops"], cpu / side["total_ios"] * 1e6


def rubus_job(device, rw, depth):
    text = (
        f"[job]\nioengine=io_uring\nfilename={device}\ndirect=1\nbs=4k\nrw={rw}\niodepth={depth}\nnorandommap\n"
        f"time_based\nruntime={SECONDS}\nramp_time=1\n"
    )
    with tempfile.NamedTemporaryFile("w", suffix=".fio") as file:
        file.write(text)
        file.flush()
        out = run([
            RUBUS, "bench", "--fio-job", file.name, f"--i-will-lose-everything-on={device}",
            "--json", "-", "--no-html", "--no-history", "-q",
        ])
    result = json.loads(out)["results"][0]
    return result["iops"]["value"], result["cpu_ns_per_io"] / 1000, result["engine"]


def peak():
    print("| 4 KiB on a loop device in memory | depth | rubus IOPS | fio io_uring | fio libaio "
          "| rubus CPU µs/op | fio io_uring | fio libaio |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    with loop_device(512) as device:
        for rw in ("randread", "randwrite"):
            for depth in (1, 32, 128):
                ours = rubus_job(device, rw, depth)
                uring = fio(device, rw, depth, "io_uring")
                aio = fio(device, rw, depth, "libaio")
                print(f"| {rw} ({ours[2]}) | {depth} | {ours[0]:.0f} | {uring[0]:.0f} | {aio[0]:.0f} "
                      f"| {ours[1]:.2f} | {uring[1]:.2f} | {aio[1]:.2f} |", flush=True)
    print()


def precision():
    print("| quick, ±5 %, on | seconds | jobs at ±5 % or better | farthest from the truth | fio, 60 s × jobs |")
    print("|---|---:|---:|---:|---:|")
    for limits in DEVICES:
        with loop_device(512) as device, throttle(device, limits) as held:
            out = run(held + [
                RUBUS, "bench", device, f"--i-will-lose-everything-on={device}", "--precision=5%",
                "--json", "-", "--no-html", "--no-history", "-q",
            ])
        measured = json.loads(out)
        results = measured["results"]
        fine = sum(1 for result in results if half_width(result) <= 0.05)
        worst = max(off_the_truth(result, limits) for result in results if "bystander" not in result["job"])
        print(f"| {limits[0]} | {measured['elapsed_s']:.0f} | {fine} of {len(results)} | {worst * 100:.1f} % "
              f"| {60 * len(results)} |", flush=True)
    print()


def half_width(result):
    rate = result["bytes_per_second"]
    high = rate["high"] if rate["high"] is not None else float("inf")
    return max(high - rate["value"], rate["value"] - rate["low"]) / rate["value"]


def off_the_truth(result, limits):
    _, read_bytes, write_bytes, read_iops, write_iops = limits
    limit_bytes, limit_iops = (read_bytes, read_iops) if result["direction"] == "read" else (write_bytes, write_iops)
    truth = min(limit_bytes, limit_iops * result["block_bytes"])
    return abs(result["bytes_per_second"]["value"] / truth - 1)


def memory():
    """Peak resident memory of a whole run, as the kernel counts it."""
    print("| run | peak resident memory |")
    print("|---|---:|")
    for suite in ("quick", "queue-depth"):
        with tempfile.TemporaryDirectory(dir=".") as directory:
            pid = os.posix_spawn(RUBUS, [
                RUBUS, "bench", directory, "--suite", suite, "--no-html", "--no-history", "-q",
                "--json", "/dev/null",
            ], os.environ, file_actions=[(os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0)])
            _, _, usage = os.wait4(pid, 0)
        print(f"| `rubus bench --suite {suite}` | {usage.ru_maxrss / 1024:.1f} MiB |", flush=True)
    size = os.stat(RUBUS).st_size
    print(f"\nThe static binary has {size / 1e6:.1f} MB.\n")


def main():
    global RUBUS
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    RUBUS = os.path.abspath(sys.argv[1])
    parts = sys.argv[2:] or ["peak", "precision", "memory"]
    version = run(["fio", "--version"]).strip()
    print(f"{run([RUBUS, '--version']).strip()} beside {version}, Linux {os.uname().release}, "
          f"{os.cpu_count()} cores.\n")
    for part in parts:
        {"peak": peak, "precision": precision, "memory": memory}[part]()


main()
