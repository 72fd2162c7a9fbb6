#!/bin/sh
# What an operation costs in the engine and in Debian's fio, side by side: user instructions per
# operation (callgrind) and processor nanoseconds per operation (user and system time of a plain
# run). Targets that do nothing, so that the engine is all there is to see: 4 KiB random writes to
# /dev/null, 4 KiB random reads from /dev/zero, queue depths 1 and 32.
#
# Every number is the difference of a long and a short run divided by the difference of their
# operations, so that the start of the program cancels. Times are the least of several tries: what
# disturbs only ever adds.
#
# Needs: cargo, valgrind, fio, python3, bash. Usage: benches/engine_cost.sh [TRIES]
set -eu

cd "$(dirname "$0")/.."
tries=${1:-5}
for program in cargo valgrind fio python3; do
    command -v "$program" >/dev/null || {
        echo "engine_cost: '$program' is missing; on Debian: apt install valgrind fio python3" >&2
        exit 2
    }
done

cargo build --quiet --package rubus-measure --profile profiling --examples
exec python3 benches/engine_cost.py "${CARGO_TARGET_DIR:-target}/profiling/examples" "$tries"
