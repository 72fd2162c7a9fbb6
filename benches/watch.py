#!/usr/bin/env python3
"""What `rubus watch` costs beside iostat, top and btop, each on a screen of 80 by 24 at one second.

    benches/watch.py RUBUS [--seconds S] [--rounds N]

All are on their screens at the same time (in terminals of this program's own, which are read and thrown away), so that the
machine is the same for all. The figure is processor time per second, user and system, of the program and what it started,
from its third second on; the median of the rounds. Programs that are not installed are left out. `btop` is told to update every second by a
configuration of its own.
"""

import argparse
import fcntl
import os
import pty
import select
import shutil
import signal
import statistics
import struct
import tempfile
import termios
import time


def start(arguments):
    process, terminal = pty.fork()
    if process == 0:
        os.environ.update(TERM="xterm-256color", LC_ALL="C.UTF-8", COLUMNS="80", LINES="24")
        os.execvp(arguments[0], arguments)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    return process, terminal


def used(process):
    """Seconds of all threads, as the scheduler counts them."""
    total = 0.0
    for thread in os.listdir(f"/proc/{process}/task"):
        with open(f"/proc/{process}/task/{thread}/schedstat", encoding="ascii") as file:
            total += int(file.read().split()[0]) / 1e9
    return total


def round_of(programs, seconds):
    running = {name: start(arguments) for name, arguments in programs.items()}
    said = dict.fromkeys(programs, 0)

    def read_until(end):
        while time.monotonic() < end:
            ready, _, _ = select.select([t for _, t in running.values()], [], [], max(0.0, end - time.monotonic()))
            for name, (_, terminal) in running.items():
                if terminal in ready:
                    said[name] += len(os.read(terminal, 65536))

    try:
        read_until(time.monotonic() + 2.5)
        before = {name: used(process) for name, (process, _) in running.items()}
        for name in said:
            said[name] = 0
        begin = time.monotonic()
        read_until(begin + seconds)
        elapsed = time.monotonic() - begin
        return {
            name: ((used(process) - before[name]) / elapsed, said[name] / elapsed)
            for name, (process, _) in running.items()
        }
    finally:
        for process, terminal in running.values():
            os.kill(process, signal.SIGTERM)
            # Who waits for its screen to take what it says must be able to end.
            deadline = time.monotonic() + 5
            while os.waitpid(process, os.WNOHANG)[0] == 0:
                if time.monotonic() > deadline:
                    os.kill(process, signal.SIGKILL)
                    os.waitpid(process, 0)
                    break
                try:
                    if select.select([terminal], [], [], 0.05)[0]:
                        os.read(terminal, 65536)
                except OSError:
                    pass
            os.close(terminal)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rubus")
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    programs = {
        "rubus watch": [os.path.abspath(given.rubus), "watch"],
        "iostat -x 1": ["iostat", "-x", "1"],
        "top -d 1": ["top", "-d", "1"],
        "btop": ["btop"],
    }
    programs = {name: a for name, a in programs.items() if shutil.which(a[0])}
    with tempfile.TemporaryDirectory() as home:
        os.environ["XDG_CONFIG_HOME"] = home
        os.makedirs(f"{home}/btop")
        with open(f"{home}/btop/btop.conf", "w", encoding="ascii") as file:
            file.write("update_ms = 1000\n")
        rounds = [round_of(programs, given.seconds) for _ in range(given.rounds)]
    processes = sum(name.isdigit() for name in os.listdir("/proc"))
    print(f"{processes} processes, {os.cpu_count()} processors, {given.rounds} rounds of {given.seconds:g} s\n")
    print("| | ms of processor time per second | bytes to the terminal per second |")
    print("|---|---:|---:|")
    for name in programs:
        cpu = statistics.median(one[name][0] for one in rounds) * 1000
        said = statistics.median(one[name][1] for one in rounds)
        print(f"| `{name}` | {cpu:.2f} | {said:.0f} |")


if __name__ == "__main__":
    main()
