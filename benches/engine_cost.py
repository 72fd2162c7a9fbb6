"""Drives the counting and the timing for engine_cost.sh and prints the table."""

import os
import re
import resource
import subprocess
import sys
import tempfile

EXAMPLES, TRIES = sys.argv[1], int(sys.argv[2])
# Operations of the short and the long run: under callgrind, stepped, and timed.
COUNTED = (20_000, 60_000)
STEPPED = (1_000, 5_000)
TIMED = (200_000, 1_200_000)

CASES = [
    ("write", "/dev/null", 1),
    ("write", "/dev/null", 32),
    ("read", "/dev/zero", 1),
    ("read", "/dev/zero", 32),
]


def ours(case, operations):
    direction, device, depth = case
    return [f"{EXAMPLES}/engine-cost", direction, device, str(depth), str(operations)]


def fio(case, operations):
    direction, device, depth = case
    engine = "psync" if depth == 1 else "io_uring"
    return [
        "fio", "--name=cost", "--thread", f"--ioengine={engine}", f"--rw=rand{direction}",
        "--bs=4k", "--size=16g", "--direct=0", f"--filename={device}", f"--iodepth={depth}",
        f"--number_ios={operations}", "--output-format=terse",
    ]


def clock(_, readings):
    return [f"{EXAMPLES}/engine-cost", "clock", str(readings)]


def run(command):
    """Runs a command to its end; gives its standard error."""
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"engine_cost: {' '.join(command)} failed:\n{done.stderr}{done.stdout}")
    return done.stderr


def callgrind(command):
    with tempfile.TemporaryDirectory() as directory:
        out = os.path.join(directory, "callgrind")
        text = run(["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", *command])
    return int(re.search(r"Collected : (\d+)", text).group(1))


def stepped(command):
    return int(run([f"{EXAMPLES}/step-count", *command]).strip().splitlines()[-1])


def cpu_ns(command):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run(command)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return seconds * 1e9


def slope(measure, program, case, runs):
    short, long = runs
    return (measure(program(case, long)) - measure(program(case, short))) / (long - short)


def least(program, case):
    """The least time of the long run less the least of the short one, per operation."""
    short, long = TIMED
    times = {n: min(cpu_ns(program(case, n)) for _ in range(TRIES)) for n in TIMED}
    return (times[long] - times[short]) / (long - short)


def main():
    version = subprocess.run(["fio", "--version"], capture_output=True, text=True).stdout.strip()
    rows = []
    for case in CASES:
        print(f"... {case[0]} {case[1]}, depth {case[2]}", file=sys.stderr)
        rows.append((
            case,
            slope(callgrind, ours, case, COUNTED),
            slope(callgrind, fio, case, COUNTED),
            least(ours, case),
            least(fio, case),
        ))
    clock_stepped = slope(stepped, clock, None, STEPPED)
    clock_counted = slope(callgrind, clock, None, COUNTED)
    print(f"fio is {version}: psync at depth 1, io_uring at depth 32. Time is the least of {TRIES}.")
    print(f"One reading of the clock executes {clock_stepped:.0f} instructions; callgrind, which "
          f"hides the vDSO, counts {clock_counted:.0f}.")
    print("The engine reads it once per operation at depth 1 and once per turn of the queue above.")
    print()
    print("| 4 KiB random | depth | instructions: rubus | fio | fio/rubus "
          "| CPU ns: rubus | fio | fio/rubus |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    for (direction, device, depth), ours_i, fio_i, ours_ns, fio_ns in rows:
        print(f"| {direction} {device} | {depth} | {ours_i:.0f} | {fio_i:.0f} "
              f"| {fio_i / ours_i:.0f} | {ours_ns:.0f} | {fio_ns:.0f} "
              f"| {fio_ns / ours_ns:.1f} |")
    limits = {1: 80, 32: 100}
    over = [row for row in rows if row[1] > limits[row[0][2]]]
    for (direction, device, depth), instructions, *_ in over:
        print(f"engine_cost: {instructions:.0f} instructions per {direction} of {device} at depth "
              f"{depth}: more than {limits[depth]}", file=sys.stderr)
    sys.exit(1 if over else 0)


main()
