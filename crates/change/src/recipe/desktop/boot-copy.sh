#!/bin/sh
# Made by rubus (desktop, boot-copy=yes). This system starts from the boot partition of the old disk or from its copy on the
# new one. After each update of a kernel or an initial RAM filesystem the other one gets the same files. Where the old disk is
# out, the copy is mounted in its place; what was updated meanwhile goes to the old disk once it is back.
point='@POINT@'
first='@FIRST@'
copy='@COPY@'
there=/run/rubus-boot-copy
mark=rubus-boot-copy

say() { echo "rubus: boot partitions: $1" >&2; }

# How often one was updated.
count() {
  n=$(cat "$1/$mark" 2>/dev/null)
  case $n in '' | *[!0-9]*) echo 0 ;; *) echo "$n" ;; esac
}

# What belongs to one of them alone.
is_own() {
  case $1 in ./autoboot.txt | ./tryboot.txt | "./$mark" | *.rubus-new) return 0 ;; esac
  return 1
}

# The files of $1 to $2, each under another name first: a power cut leaves the old or the new one.
bring() {
  find "$2" -name '*.rubus-new' -exec rm -f {} +
  (cd "$1" && find . -type d) | while IFS= read -r name; do
    mkdir -p "$2/$name" || exit 1
  done || return 1
  (cd "$1" && find . -type f) | while IFS= read -r name; do
    if is_own "$name" || cmp -s "$1/$name" "$2/$name"; then continue; fi
    cp "$1/$name" "$2/$name.rubus-new" && sync && mv "$2/$name.rubus-new" "$2/$name" || exit 1
  done || return 1
  (cd "$2" && find . -type f) | while IFS= read -r name; do
    if is_own "$name" || [ -e "$1/$name" ]; then continue; fi
    rm -f "$2/$name" || exit 1
  done || return 1
  sync
}

both() {
  echo "$1" >"$point/$mark" && echo "$1" >"$there/$mark" && sync
}

alike() {
  own=$(count "$point")
  theirs=$(count "$there")
  if [ "$1" != start ]; then
    [ "$theirs" -le "$own" ] || own=$theirs
    bring "$point" "$there" && both $((own + 1))
  elif [ "$theirs" -gt "$own" ]; then
    bring "$there" "$point" && both "$theirs"
  elif [ "$own" -gt "$theirs" ]; then
    bring "$point" "$there" && both "$own"
  fi
}

exec 9>/run/rubus-boot-copy.lock
flock 9
[ -e "$copy" ] || exit 0
if ! mountpoint -q "$point"; then
  # The old disk is there, and not mounted: that is its owner's wish.
  [ ! -e "$first" ] || exit 0
  mount -t vfat "$copy" "$point" || { say "$copy cannot be mounted at $point"; exit 0; }
fi
mounted=$(findmnt -n -o SOURCE -t vfat "$point" | tail -n 1)
if [ "$mounted" = "$(readlink -f "$first")" ]; then
  other=$copy
elif [ "$mounted" = "$(readlink -f "$copy")" ]; then
  other=$first
else
  exit 0
fi
if [ ! -e "$other" ]; then
  [ "$1" = start ] || echo $(($(count "$point") + 1)) >"$point/$mark"
  exit 0
fi
mkdir -p "$there"
if mount -t vfat "$other" "$there"; then
  alike "$1" || say "$other could not be brought up to date; it may start an older kernel, or none"
  umount "$there"
else
  say "$other cannot be mounted, and was not updated"
fi
exit 0
