#!/usr/bin/env python3
"""Instructions that solving a system of equations takes on aarch64: `rubus` (NEON) beside dgesv of OpenBLAS, on one thread.

No board is needed: QEMU's user emulation runs both, and a plugin counts. A run that solves once more, less one that does not, is one
solution; OpenBLAS's includes copying the matrix (n² numbers), since dgesv overwrites it. `rubus` solves with each block; the least
counts, since on a board it chooses its block too. Half the instructions are not half the time: that depends on how many of
them a core issues per cycle.

Needs QEMU's user emulation, dynamically linked (qemu-user), a C compiler, the example for aarch64, and a root of Debian for arm64:
    cargo zigbuild --release --target aarch64-unknown-linux-musl -p rubus-processor --example linpack-solve
    mmdebstrap --variant=extract --architectures=arm64 --include=python3,libopenblas0-pthread trixie ROOT
    ln -s usr/lib ROOT/lib
Usage: benches/linpack_instructions.py EXAMPLE ROOT [--unknowns=N,N] [--blocks=N,N] [--cpus=NAME,NAME] [--qemu=PROGRAM]
"""

import ctypes
import glob
import os
import re
import subprocess
import sys
import tempfile

# What QEMU emulates, with OpenBLAS's name for its loops.
CORES = {"cortex-a53": "CORTEXA53", "cortex-a72": "CORTEXA72", "cortex-a76": "NEOVERSEN1"}


def solve(library, n, times):
    """The work of an emulated process: the same system, that often."""
    lapack = ctypes.CDLL(library, mode=ctypes.RTLD_GLOBAL)
    lapack.openblas_get_config.restype = lapack.openblas_get_corename.restype = ctypes.c_char_p
    integer = lambda value: ctypes.byref(ctypes.c_int(value))
    original, matrix, right = (ctypes.c_double * (n * n))(), (ctypes.c_double * (n * n))(), (ctypes.c_double * n)()
    pivots, info, seed = (ctypes.c_int * n)(), ctypes.c_int(), (ctypes.c_int * 4)(1, 2, 3, 5)
    lapack.dlarnv_(integer(2), seed, integer(n * n), original)
    lapack.dlarnv_(integer(2), seed, integer(n), right)
    for _ in range(times):
        ctypes.memmove(matrix, original, n * n * 8)
        lapack.dgesv_(integer(n), integer(1), matrix, integer(n), pivots, right, integer(n), ctypes.byref(info))
        assert info.value == 0, f"dgesv says {info.value}"
    print(lapack.openblas_get_config().decode(), lapack.openblas_get_corename().decode(), sep="|")


def counted(qemu, plugin, core, root, words):
    """Instructions of an emulated program, and what it printed."""
    environment = dict(os.environ, OPENBLAS_NUM_THREADS="1", OPENBLAS_CORETYPE=CORES[core], PYTHONHASHSEED="0")
    command = [qemu, "-cpu", core, "-plugin", plugin, "-L", root, *words]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    return int(re.search(r"instructions: (\d+)", done.stderr).group(1)), done.stdout.strip()


def main():
    options = dict(part[2:].split("=") for part in sys.argv[1:] if part.startswith("--"))
    example, root = (os.path.abspath(part) for part in sys.argv[1:] if not part.startswith("--"))
    sizes = [int(n) for n in options.get("unknowns", "500,1000").split(",")]
    blocks = [int(block) for block in options.get("blocks", "32,48,64,96,128").split(",")]
    cores, qemu = options.get("cpus", ",".join(CORES)).split(","), options.get("qemu", "qemu-aarch64")
    library = glob.glob(f"{root}/usr/lib/aarch64-linux-gnu/openblas-pthread/libopenblas.so.0")[0]
    python = os.path.realpath(f"{root}/usr/bin/python3")
    print("| unknowns | core | rubus | OpenBLAS | OpenBLAS / rubus |\n|---|---|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as home:
        plugin = f"{home}/count_instructions.so"
        source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "count_instructions.c")
        subprocess.run(["cc", "-shared", "-fPIC", "-o", plugin, source], check=True)
        for n in sizes:
            for core in cores:
                count = lambda *words: counted(qemu, plugin, core, root, [str(word) for word in words])
                made, _ = count(example, n, blocks[0], 0)
                own = {block: count(example, n, block, 1)[0] - made for block in blocks}
                block = min(own, key=own.get)
                once, twice = (count(python, __file__, "--solve", library, n, times) for times in (1, 2))
                theirs, said = twice[0] - once[0], twice[1].split("|")
                cells = f"{own[block] / 1e6:.1f} million, blocks of {block} | {theirs / 1e6:.1f} million, {said[1]}"
                print(f"| {n} | {core} | {cells} | **{theirs / own[block]:.2f}** |", flush=True)
    print(f"\n{said[0]}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--solve"]:
        solve(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
    else:
        main()
