#!/usr/bin/env python3
"""`rubus bench cpu linpack` beside LAPACK's dgesv with OpenBLAS and with BLIS: GFLOPS on one core and on all.

All solve systems of the same size, in turns in random order, each time in a process of its own that solves the system
three times. `rubus` chooses its block first, as always; that is not counted. Medians of the rounds; ratios are to the
better of the other two, of the medians, with the least and the greatest of the rounds behind. OpenBLAS has a dgesv of
its own; with BLIS it is LAPACK's. What takes longer than half a minute is stopped, has no more rounds, and is shown as
slower than that (BLIS starts its threads anew for each of LAPACK's small products: on several cores, with others at
work, each product waits for them). All have the highest priority that this user may give. Every solution is checked as
`rubus` and HPL check theirs: a scaled residual of 16 or more ends the benchmark.

Needs libopenblas0-pthread, libblis4-pthread, liblapack3 and a release build: cargo build --release
Usage: benches/linpack.py RUBUS [--unknowns=N] [--rounds=N] [--root=DIRECTORY]
The packages may be unpacked in a directory (dpkg-deb -x) instead of installed. A round of the default size takes
about half a minute.
"""

import contextlib
import ctypes
import glob
import json
import os
import platform
import random
import statistics
import subprocess
import sys
import tempfile
import time

TIMES = 3
LIMIT_S = 30
EPSILON = 2.0**-53
MOST_RESIDUAL = 16.0
# What is loaded of each, in this order; the first is asked for its version.
LIBRARIES = {
    "OpenBLAS": ["openblas-pthread/libopenblas.so.0"],
    "BLIS": ["blis-pthread/libblis.so.4", "blis-pthread/libblas.so.3", "lapack/liblapack.so.3"],
}


def directory(root):
    """Where the libraries of this architecture are."""
    found = glob.glob(f"{root}/usr/lib/{platform.machine().replace('armv7l', 'arm')}-linux-gnu*/openblas-pthread")
    if not found:
        sys.exit(f"linpack: no OpenBLAS below {root or '/'}: apt install libopenblas0-pthread libblis4-pthread liblapack3")
    return os.path.dirname(found[0])


def load(name, where):
    loaded = [ctypes.CDLL(f"{where}/{path}", mode=ctypes.RTLD_GLOBAL) for path in LIBRARIES[name]]
    version = loaded[0].openblas_get_config if name == "OpenBLAS" else loaded[0].bli_info_get_version_str
    version.restype = ctypes.c_char_p
    return loaded[-1], version().decode()


def solve(name, where, n, times):
    """Solves and checks, and prints what came out: the work of a process of its own."""
    lapack, version = load(name, where)
    blas = ctypes.CDLL(f"{where}/blis-pthread/libblas.so.3") if name == "BLIS" else lapack
    integer, real = (lambda value: ctypes.byref(ctypes.c_int(value))), (lambda value: ctypes.byref(ctypes.c_double(value)))
    matrix, right, solution = (ctypes.c_double * (n * n))(), (ctypes.c_double * n)(), (ctypes.c_double * n)()
    pivots, info, work = (ctypes.c_int * n)(), ctypes.c_int(), (ctypes.c_double * n)()
    lapack.dlange_.restype = ctypes.c_double

    def fill():
        # Uniform in (-1, 1), the same each time.
        seed = (ctypes.c_int * 4)(1, 2, 3, 5)
        lapack.dlarnv_(integer(2), seed, integer(n * n), matrix)
        lapack.dlarnv_(integer(2), seed, integer(n), right)

    def norm(values, columns):
        return lapack.dlange_(b"I", integer(n), integer(columns), values, integer(n), work)

    seconds, residual = [], 0.0
    for _ in range(times):
        fill()
        ctypes.memmove(solution, right, n * 8)
        begun = time.monotonic()
        lapack.dgesv_(integer(n), integer(1), matrix, integer(n), pivots, solution, integer(n), ctypes.byref(info))
        seconds.append(time.monotonic() - begun)
        if info.value != 0:
            sys.exit(f"linpack: dgesv of {name} says {info.value}")
        fill()
        scale = norm(matrix, n) * norm(solution, 1) + norm(right, 1)
        blas.dgemv_(b"N", integer(n), integer(n), real(-1.0), matrix, integer(n), solution, integer(1), real(1.0), right, integer(1))
        residual = max(residual, norm(right, 1) / (EPSILON * scale * n))
    print(json.dumps({"seconds": seconds, "residual": residual, "version": version}))


def of_library(name, where, n, threads):
    """GFLOPS of a process that solves three times, and the library's version; nothing when it takes too long."""
    count = str(threads)
    environment = dict(os.environ, LD_LIBRARY_PATH=where, OPENBLAS_NUM_THREADS=count, BLIS_NUM_THREADS=count)
    command = [sys.executable, __file__, "--solve", name, where, str(n), str(TIMES)]
    try:
        out = subprocess.run(command, check=True, stdout=subprocess.PIPE, env=environment, timeout=LIMIT_S).stdout
    except subprocess.TimeoutExpired:
        return None
    out = json.loads(out)
    assert out["residual"] < MOST_RESIDUAL, f"{name} solved wrongly: {out}"
    return len(out["seconds"]) * operations(n) / sum(out["seconds"]) / 1e9, out["version"]


def of_rubus(rubus, n, home):
    """GFLOPS on one core and on all, and what multiplies."""
    command = [rubus, "bench", "cpu", "linpack", "--unknowns", str(n), "--alone", "--no-history", "--quiet", "--json", "-"]
    out = subprocess.run(command, check=True, stdout=subprocess.PIPE, env=dict(os.environ, HOME=home)).stdout
    found = json.loads(out)["processor"]["linpack"]
    parts = [part for part in (found["one"], found["all"]) if part]
    assert all(part["n"] == n and part["failed"] == 0 for part in parts), f"rubus solved wrongly: {found}"
    return [part["flops_per_second"]["value"] / 1e9 for part in parts], found["by"], found["block"]


def operations(n):
    """As HPL counts them."""
    return 2 / 3 * n**3 + 3 / 2 * n**2


def processor():
    with open("/proc/cpuinfo") as file:
        named = (line.split(": ", 1)[1].strip() for line in file if line.startswith("model name"))
        return next(named, platform.machine())


def main():
    options = dict(part[2:].split("=") for part in sys.argv[1:] if part.startswith("--"))
    rubus = [part for part in sys.argv[1:] if not part.startswith("--")][0]
    n, rounds = int(options.get("unknowns", 4000)), int(options.get("rounds", 7))
    where, cores = directory(options.get("root", "")), len(os.sched_getaffinity(0))
    counts = [1, cores] if cores > 1 else [1]
    found = {(name, count): [] for name in ["rubus", *LIBRARIES] for count in counts}
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, -20)
    versions, blocks, stopped, load_before = {}, set(), set(), os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="rubus-linpack-") as home:
        for _ in range(rounds):
            turns = ["rubus", *((name, count) for name in LIBRARIES for count in counts)]
            random.shuffle(turns)
            for turn in turns:
                if turn == "rubus":
                    rates, versions["rubus"], block = of_rubus(rubus, n, home)
                    blocks.add(block)
                    for count, rate in zip(counts, rates):
                        found["rubus", count].append(rate)
                elif turn not in stopped:
                    solved = of_library(turn[0], where, n, turn[1])
                    if solved:
                        found[turn].append(solved[0])
                        versions[turn[0]] = solved[1]
                    else:
                        stopped.add(turn)
    said = ", ".join(f"{name}: {version}" for name, version in versions.items())
    print(f"{cores} × {processor()}, a load of {load_before:.1f} before; {said}; blocks of {', '.join(map(str, sorted(blocks)))};")
    print(f"{n} unknowns, {rounds} rounds of {TIMES}.\n")
    print("| GFLOPS on | rubus | OpenBLAS | BLIS | rubus / the better |\n|---|---:|---:|---:|---:|")
    for count in counts:
        names = [name for name in ["rubus", *LIBRARIES] if (name, count) not in stopped]
        median = {name: statistics.median(found[name, count]) for name in names}
        if not names[1:]:
            sys.exit(f"linpack: nothing else solves {n} unknowns in {LIMIT_S} s: choose fewer with --unknowns")
        better = max(names[1:], key=lambda name: median[name])
        each = [own / its for own, its in zip(found["rubus", count], found[better, count])]
        slower = f"< {TIMES * operations(n) / LIMIT_S / 1e9:.1f}"
        cells = " | ".join(f"{median[name]:.1f}" if name in median else slower for name in ["rubus", *LIBRARIES])
        words = "one core" if count == 1 else f"{count} cores"
        print(f"| {words} | {cells} | **{median['rubus'] / median[better]:.2f}** ({min(each):.2f}–{max(each):.2f}) |")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--solve"]:
        solve(sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5]))
    else:
        main()
