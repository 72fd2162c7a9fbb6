# What a release has to pass beside the tests: power cuts, fuzzing, the model and the benchmarks. Read by scripts/test.
# shellcheck shell=bash

# Each is a name, how long it takes in minutes on two processors, and a command. Cuts come in pieces, so that an
# interrupted run loses little.
campaigns() {
  local mode=$1 seed target minutes=0
  for seed in $(seq 16); do
    campaign "power cuts in desktop, piece $seed" 50 power_cuts "desktop-$seed" --runs 40 --seed "$seed" --lengths 60,1 \
      --recipe desktop --option 'device={usb0}' --option compress=zstd:1 --resume-each 4 -- --i-will-lose-everything-on=4C530001230914116022
  done
  campaign 'power cuts in desktop, at each record' 100 power_cuts desktop-records --runs 0 --every-record \
    --recipe desktop --option 'device={usb0}' --option compress=zstd:1 --resume-each 8 -- --i-will-lose-everything-on=4C530001230914116022
  for seed in 1 2 3 4; do
    campaign "power cuts in network-root, piece $seed" 90 power_cuts "network-root-$seed" --runs 40 --seed "$seed" --recipe network-root \
      --option wait=20 --export 2147483648 --resume-each 4 -- '--i-will-lose-everything-on={export}'
  done
  campaign 'power cuts in zswap' 60 power_cuts zswap --runs 130 --every-sync --recipe zswap
  # 1000 cuts that lose what was not flushed.
  local usb=4C530001230914116022 lost=--i-will-lose-everything-on tests=lab/tests/power_cuts
  campaign 'power cuts in desktop, replayed' 60 replayed_cuts desktop 200 --resume-each 0 -- --recipe desktop --option 'device={usb0}' \
    --option compress=zstd:1 --option wait=300 -- $lost=$usb
  campaign 'power cuts in desktop on ext4, replayed' 60 replayed_cuts desktop-ext4 150 --resume-each 0 -- --recipe desktop \
    --option 'device={usb0}' --option filesystem=ext4 --option wait=300 -- $lost=$usb
  campaign 'power cuts in a trial, replayed' 60 replayed_cuts trial 150 --resume-each 0 -- --recipe desktop --option 'device={usb0}' \
    --option compress=zstd:1 --option wait=300 --option trial=yes -- $lost=$usb
  campaign 'power cuts in desktop from disk to disk, replayed' 60 replayed_cuts desktop-again 150 --resume-each 0 -- --script $tests/twice.sh \
    --usb 2147483648 --recipe desktop --option 'device={usb1}' --option compress=zstd:1 --option wait=300 -- $lost=4C530001230914116023
  campaign 'power cuts in network-root, replayed' 60 replayed_cuts network-root 100 --resume-each 0 -- --recipe network-root \
    --option wait=20 --export 2147483648 -- "$lost={export}"
  campaign 'power cuts in swap, replayed' 30 replayed_cuts swap 150 --resume-each 0 -- --recipe swap --option 'to=disk:{usb0}' \
    --option swappiness=60 -- $lost=$usb
  campaign 'power cuts in zswap, replayed' 30 replayed_cuts zswap 150 --resume-each 0 -- --recipe zswap
  campaign 'power cuts in raid0, replayed' 30 replayed_cuts raid0 150 --resume-each 0 -- --recipe raid0 --usb 268435456 --usb 268435456 \
    --option 'devices={usb1},{usb2}' --option at=/mnt/fast -- $lost=4C530001230914116023 $lost=4C530001230914116024
  campaign 'power cuts in text files, replayed' 30 replayed_cuts tidy 100 --resume-each 4 -- --script $tests/tidy.sh --recipe /root/tidy.toml
  campaign 'power cuts in a change on top of another, replayed' 30 replayed_cuts again 100 --resume-each 4 -- --script $tests/tidy.sh \
    --script $tests/again.sh --recipe /root/again.toml
  # 500 rounds with the kernel's own client, others in each release.
  for seed in $(seq 10); do
    campaign "kills under the kernel's NBD client, piece $seed" 15 kernel_kills 50 "$seed"
  done
  for target in both_ends client_flight client_handshake client_inquiry copy_journal server_handshake server_transmission; do
    campaign "fuzzing $target" 9 fuzz "$target"
  done
  for target in run gallery fleet survey journal inventory smart; do
    campaign "fuzzing what strangers give as $target" 10 fuzz "stranger_$target" 262144
  done
  # README's two commands, on what a newcomer has.
  for target in bookworm trixie; do
    campaign "README's commands on a bare $target" 90 "$lab" bare "$target" -- 'sudo apt-get update -qq && sudo apt-get install -qq -y git gcc libc6-dev &&
      cargo run --release && sudo -E scripts/test'
  done
  campaign 'security advisories' 1 advisories
  campaign 'the model against measurements' 30 "$lab" model --write MODEL.md
  campaign 'release programs' 15 release_programs
  campaign 'benchmark of the engine' 10 bench benches/engine_cost.sh
  campaign 'benchmark beside fio' 10 bench benches/side_by_side.py "$release"
  campaign 'benchmark of the NBD server' 10 bench benches/nbd_servers.py "$release" "$load"
  campaign 'benchmark of nbd copy' 5 bench benches/nbd_copy.py "$release"
  campaign 'benchmark of clones' 5 bench benches/nbd_clones.py "$release" "$load"
  campaign 'benchmark of compression' 5 bench benches/compression.py "$release"
  campaign 'benchmark of watch' 5 bench benches/watch.py "$release"
  campaign 'benchmark of Linpack' 5 bench benches/linpack.py "$release"
  [ "$mode" = run ] || echo "and after the tests some $((minutes / 60)) hours of campaigns"
}

advisories() {
  if ! command -v cargo-deny >/dev/null || ! cargo deny --locked fetch db; then
    skip "security advisories about the libraries: the RustSec database could not be fetched"
    return
  fi
  cargo deny --locked check advisories
}

# What packages have.
release=target/dist/rubus
load=target/dist/examples/nbd_load

campaign() {
  local name=$1
  minutes=$((minutes + $2))
  shift 2
  [ "$mode" = run ] || return 0
  section "$name"
  step "$name" "$@"
}

power_cuts() {
  local name=$1
  shift
  "$lab" power-cuts --jobs 2 --markdown "$work/reports/cuts-$name.md" --keep-failures "$work/cuts-$name" "$@"
}

# One recording, and cuts from it on disks that lose what was not flushed; every 25th is started on a board too. How many and how they are
# judged comes before "--", what is recorded behind it. Each release makes others.
replayed_cuts() {
  local name=$1 recording="$work/recording-$1" judged=(--runs "$2") seed
  shift 2
  while [ "$1" != -- ]; do
    judged+=("$1")
    shift
  done
  shift
  seed=$(($(git rev-parse --short=7 HEAD | sed 's/^/0x/')))
  [ -e "$recording/recording.json" ] || "$lab" power-cuts --lossy 1 --record "$recording" "$@" || return
  "$lab" power-cuts --lossy "$seed" --replay "$recording" "${judged[@]}" --board-each 25 --jobs 2 \
    --markdown "$work/reports/cuts-replayed-$name.md" --keep-failures "$work/cuts-replayed-$name"
}

# Number of rounds. Each piece is one board.
kernel_kills() {
  local seed=$(($(git rev-parse --short=7 HEAD | sed 's/^/0x/') + $2))
  RUBUS_LAB_KILLS=$1 RUBUS_LAB_KILLS_SEED=$seed cargo nextest run --workspace --locked --profile beside --success-output final \
    -E 'binary_id(rubus-lab::lab) & test(vm_pc_nbd_kills::nothing_acknowledged)'
}

fuzz() {
  command -v cargo-fuzz >/dev/null || cargo install --locked --root "$tools" cargo-fuzz
  (cd fuzz && cargo +nightly fuzz run -s none "$1" -- -max_len="${2:-4096}" -max_total_time=515)
}

release_programs() {
  cargo build --profile dist --locked -p rubus && cargo build --profile dist --locked -p rubus-nbd --example nbd_load
}

bench() {
  "$@" | tee "$work/reports/$(basename "$1").txt"
}
