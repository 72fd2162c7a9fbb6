#!/bin/bash
# What an operation costs on a device that completes late: Rubus's engine, fio's t/io_uring and fio, each tuned, in one run.
#
#   benches/late_device.sh ONE_JOB IO_URING FIO [SECONDS]
#
# The device is the kernel's null_blk: it holds no data, and a timer's interrupt ends each request after 10 µs or 100 µs
# (irqmode 2), so requests wait, are reaped in small groups, and the processor sleeps or does other things meanwhile, as with an
# NVMe drive. Where the kernel has no null_blk it is a loop device over an image in memory, whose requests a kernel thread ends.
# ONE_JOB is `cargo build --release -p rubus-measure --example one-job`. IO_URING is
# t/io_uring from fio's sources (`./configure && make t/io_uring`); it keeps no latencies, so it is the floor. FIO runs with
# registered memory and files, batches, and without its latency histograms where it can do without. One at a time there are two
# ways: all three make a call for each (pread, t/io_uring preadv2), or all three use a ring.
#
# Everything is the difference of a long and a short run: operations are counted by the device, seconds by the clock, processor
# time (user and system) by the kernel. On a board whose clock counts instructions (`rubus-lab run pc --count-instructions`, 2 ns
# each) a nanosecond is half an instruction.
#
# Needs root, and null_blk with configfs or losetup. It makes and removes a device of its own, and touches no other.
set -euo pipefail
shopt -s inherit_errexit

engine=$1 io_uring=$2 fio=$3 seconds=${4:-4}
disk=/sys/kernel/config/nullb/rubus-late
export LC_ALL=C TIMEFORMAT='%R %U %S'

make_disk() { # completion_nsec poll_queues
    mkdir "$disk"
    for wish in irqmode=2 "completion_nsec=$1" queue_mode=2 "submit_queues=$(nproc)" "poll_queues=$2" hw_queue_depth=256 \
        size=4096 blocksize=4096 memory_backed=0; do
        echo "${wish#*=}" >"$disk/${wish%%=*}"
    done
    echo 1 >"$disk/power"
    # Newer kernels call it as its directory.
    local tries
    for tries in $(seq 50); do
        for device in "/dev/${disk##*/}" "/dev/nullb$(cat "$disk/index")"; do
            [ ! -b "$device" ] || break 2
        done
        sleep 0.1
    done
    echo none >"/sys/block/${device#/dev/}/queue/scheduler"
}

make_loop() {
    image=/dev/shm/rubus-late.img
    dd if=/dev/zero of="$image" bs=1M count=1024 status=none
    device=$(losetup --find --show "$image")
}

remove_disk() {
    [ ! -d "$disk" ] || { echo 0 >"$disk/power"; rmdir "$disk"; }
    [ -z "${image-}" ] || { losetup --detach "$device"; rm -f "$image"; }
}
said=$(mktemp)
trap 'remove_disk; rm -f "$said"' EXIT

completed() { awk '{ print $1 }' "/sys/block/${device#/dev/}/stat"; }

# Operations, seconds, user and system seconds of a command.
spent() {
    local before after times
    before=$(completed)
    times=$({ time "$@" >"$said" 2>&1; } 2>&1) || { cat "$said" >&2; exit 1; }
    after=$(completed)
    echo "$((after - before)) $times"
}

# A command whose last word is its seconds, long and short.
measure() { # name command...
    local name=$1 short long
    shift
    short=$(spent "$@" 1)
    long=$(spent "$@" "$((1 + seconds))")
    echo "$short $long" | awk -v name="$name" '{
        operations = $5 - $1; busy = $7 + $8 - $3 - $4
        printf "%s %.0f %.0f\n", name, operations / ($6 - $2), busy / operations * 1e9
    }'
}

# Each takes: operations in flight, lanes, the way (pread, ring or polled), seconds.
run_rubus() {
    local way=() kind=ring
    case $3 in
    polled) way=(--hipri) ;;
    ring) way=(--ring) ;;
    pread) kind=positional ;;
    esac
    # Where it cannot use a ring it does without and says so.
    "$engine" read "$device" --depth "$1" --lanes "$2" "${way[@]}" --seconds "$4" | grep "engine $kind "
}
run_io_uring() {
    local way
    case $3 in
    polled) way=(-p1 -B1 -F1) ;;
    ring) way=(-p0 -B1 -F1) ;;
    pread) way=(-p0 -B0 -F0 -S1) ;;
    esac
    "$io_uring" -d"$(($1 / $2))" -s"$batch" -c"$batch" -b4096 "${way[@]}" -R1 -n"$2" -r"$4" "$device"
}
run_fio() {
    local way=(--ioengine=io_uring --fixedbufs --registerfiles)
    case $3 in
    polled) way+=(--hipri) ;;
    pread) way=(--ioengine=psync) ;;
    esac
    "$fio" --name=late --filename="$device" --direct=1 --rw=randread --bs=4k "${way[@]}" \
        --norandommap --random_generator=lfsr --gtod_reduce=1 --iodepth="$(($1 / $2))" --iodepth_batch_submit="$batch" \
        --iodepth_batch_complete_min=1 --iodepth_batch_complete_max="$batch" --numjobs="$2" --thread --group_reporting \
        --time_based --runtime="$4"
}

# Of t/io_uring the better of two sizes of its batches: it waits for as many completions as it submits at once.
best_io_uring() {
    local size last=0
    for size in $(($1 / $2 / 2)) $(($1 / $2 / 8)); do
        [ "$size" -ge 1 ] || size=1
        [ "$size" != "$last" ] || continue
        last=$size
        batch=$size measure io_uring run_io_uring "$@"
    done | sort -k2 -n | tail -n 1
}

row() { # label depth lanes way
    local label=$1 results
    batch=$(($2 / $3 / 2 < 1 ? 1 : $2 / $3 / 2))
    shift
    results=$(measure rubus run_rubus "$@"; best_io_uring "$@"; measure fio run_fio "$@")
    echo "$results" | awk -v label="| $label | $1 | $2 | $3 |" '
        { rate[$1] = $2; cost[$1] = $3 }
        END {
            printf "%s %d | %d | %d | **%.2f** | %d | %d | %d | **%.2f** |\n", label, rate["rubus"], rate["io_uring"], rate["fio"],
                rate["rubus"] / rate["io_uring"], cost["rubus"], cost["io_uring"], cost["fio"], cost["rubus"] / cost["io_uring"]
        }'
}

rows() { # label
    row "$1" 1 1 pread
    for depth in 1 8 32 128; do
        row "$1" "$depth" 1 ring
    done
    for lanes in $(seq 2 "$cores"); do
        row "$1" "$((32 * lanes))" "$lanes" ring
    done
}

cores=$(nproc)
echo "Linux $(uname -r), $cores processors; $("$fio" --version); $seconds s, $(cut -d' ' -f1 /proc/loadavg) load."
echo
echo "| device | in flight | lanes | way | per second: rubus | t/io_uring | fio | rubus / t/io_uring | CPU ns: rubus | t/io_uring | fio | rubus / t/io_uring |"
echo "|---|---:|---:|---|---:|---:|---:|---:|---:|---:|---:|---:|"
if ! modprobe null_blk nr_devices=0 2>/dev/null; then
    make_loop
    rows "loop, image in memory"
    exit
fi
mountpoint -q /sys/kernel/config || mount -t configfs none /sys/kernel/config
for completion in 10 100; do
    make_disk "${completion}000" 0
    rows "null_blk, $completion µs"
    remove_disk
done
make_disk 10000 1
row "null_blk, 10 µs" 32 1 polled
