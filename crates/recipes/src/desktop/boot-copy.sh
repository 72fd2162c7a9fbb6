#!/bin/sh
# Made by rubus (desktop, boot-copy=yes). This system starts from the boot partition of the old disk or from its copy on the
# new one. After each update of a kernel or an initial RAM filesystem the other one gets the same files. Where the old disk is
# out, the copy is mounted in its place; what was updated meanwhile goes to the old disk once it is back.
#
# Either of them may be damaged, or start another system. Nothing is changed unless all of the source could be read and would
# start this system. A file is replaced by one that is complete beside it. What the source lacks stays on the other one,
# except kernels that this script brought and whose modules are gone.
point='@POINT@'
first='@FIRST@'
copy='@COPY@'
root='@ROOT@'
cmdlines='@CMDLINES@'
# What the firmware reads of one of them alone.
own_files='autoboot.txt @TRIAL@'
modules=/lib/modules
there=/run/rubus-boot-copy
lists=/run/rubus-boot-copy.lists
mark=rubus-boot-copy
set -f
# Names are bytes, whatever they mean.
LC_ALL=C
export LC_ALL

say() { echo "rubus: boot partitions: $1" >&2; }

# How often $1 was updated. A mark without a number is damaged.
count() {
  [ -e "$1/$mark" ] || { echo 0; return 0; }
  n=$(head -n 1 "$1/$mark") || return 1
  case $n in '' | *[!0-9]* | 0?* | ??????????*) return 1 ;; esac
  echo "$n"
}

# The kernels that were brought to $1.
brought() {
  [ ! -e "$1/$mark" ] || sed 1d "$1/$mark"
}

# The mark of $1: the count $2, and the kernels that the list $3 has.
put_mark() {
  { echo "$2" && cat "$3"; } >"$1/$mark.rubus-new" && sync -f "$1" && mv -fT "$1/$mark.rubus-new" "$1/$mark" && sync -f "$1"
}

# Of several `root=` the kernel takes the last.
names_root() {
  [ "$(tr -s ' \t\r\n' '\n' <"$1" | grep '^root=' | tail -n 1 | tr A-Z a-z)" = "$root" ]
}

# The files below $1 that both should have, as the list $2. No name on a FAT has two lines.
list() {
  (cd "$1" && find . -type f -print0) >"$2.found" || return 1
  [ "$(tr -dc '\n' <"$2.found" | wc -c)" -eq 0 ] || return 1
  tr '\0' '\n' <"$2.found" | grep -v '\.rubus-new$' >"$2.all"
  grep -vixFf "$lists/own" "$2.all" >"$2"
  [ $? -le 1 ]
}

# The kernels and initial RAM filesystems that the settings of $1 name.
named() {
  tr -d '\r' <"$1/config.txt" | sed -n \
    -e 's/^[[:space:]]*kernel=\([^[:space:]#]*\).*/\1/p' \
    -e 's/^[[:space:]]*initramfs[[:space:]]\{1,\}\([^[:space:]#]*\).*/\1/p' | tr ',' '\n'
}

has() {
  [ ! -s "$1/$2" ] || return 0
  for prefix in $(tr -d '\r' <"$1/config.txt" | sed -n 's/^[[:space:]]*os_prefix=//p'); do
    [ ! -s "$1/$prefix$2" ] || return 0
  done
  return 1
}

# Whether both start this system, and $1 has all that it needs for that, with lists of what is on both. A file that config.txt
# names for another board may be missing, where it always was.
would_start() {
  findmnt -n -o VFS-OPTIONS,FS-OPTIONS "$1" | tail -n 1 | {
    read -r mount filesystem
    case ,$mount,/,$filesystem, in *,rw,*/*,ro,*) exit 1 ;; esac
  } || { say "$1 was made read-only by the kernel because it is damaged"; return 1; }
  list "$1" "$lists/source" || { say "$1 cannot be read"; return 1; }
  list "$2" "$lists/target" || { say "$2 cannot be read"; return 1; }
  [ -s "$1/config.txt" ] || { say "$1/config.txt is missing or empty"; return 1; }
  for name in $cmdlines; do
    for side in "$1" "$2"; do
      names_root "$side/$name" || { say "$side/$name does not name the root of this system ($root)"; return 1; }
    done
  done
  named "$2" 2>/dev/null >"$lists/named"
  for name in $(named "$1"); do
    has "$1" "$name" || { grep -qxF "$name" "$lists/named" && ! has "$2" "$name"; } ||
      { say "config.txt names $name, which is missing or empty on $1"; return 1; }
  done
  for kind in '/bootcode\.bin' '/start[^/]*\.elf' '/fixup[^/]*\.dat' '\.dtb' '/overlays/[^/]*' '/\(kernel[^/]*\.img\|vmlinu[^/]*\)' \
    '/initr[^/]*'; do
    if grep -qi "$kind\$" "$lists/target" && ! grep -qi "$kind\$" "$lists/source"; then
      say "$1 has none of the files $(grep -i "$kind\$" "$lists/target" | head -n 1) and the like any more"
      return 1
    fi
  done
}

# The other partition is in no table of mounts, so nothing else checks it after a power cut.
make_writable() {
  [ "$1" = "$there" ] || return 0
  umount "$there" || return 1
  if command -v fsck.vfat >/dev/null; then
    fsck.vfat -a "$other" >/dev/null 2>&1
    [ $? -le 1 ] || { say "$other is damaged"; return 1; }
  fi
  mount -t vfat "$other" "$there"
}

drop_new() {
  find "$1/." -type f -name '*.rubus-new' -exec rm -f {} +
}

# The files of $1 that are not so on $2, complete and beside the old ones, and the list of them.
stage() {
  drop_new "$2" || return 1
  : >"$lists/changed" || return 1
  while IFS= read -r name; do
    [ -e "$1/$name" ] || { say "$1/$name cannot be read"; return 1; }
    if cmp -s "$1/$name" "$2/$name"; then continue; fi
    # That is what a power cut leaves.
    if [ ! -s "$1/$name" ] && [ -s "$2/$name" ]; then say "$1/$name is empty"; return 1; fi
    mkdir -p "$2/${name%/*}" && cp "$1/$name" "$2/$name.rubus-new" || return 1
    echo "$name" >>"$lists/changed" || return 1
  done <"$lists/source"
  sync -f "$2"
}

# The new files of the list $2 take the places of the old ones on $1.
take() {
  while IFS= read -r name; do
    mv -fT "$1/$name.rubus-new" "$1/$name" || return 1
  done <"$2"
  sync -f "$1"
}

# The files of $1 to $2. Those that name others are last.
bring() {
  would_start "$1" "$2" || return 1
  make_writable "$2" || return 1
  stage "$1" "$2" || { drop_new "$2"; return 1; }
  grep -vi '\.txt$' "$lists/changed" >"$lists/files"
  grep -i '\.txt$' "$lists/changed" >"$lists/texts"
  take "$2" "$lists/files" && take "$2" "$lists/texts" || return 1
  brought "$2" >"$lists/brought" || return 1
  grep -vxFf "$lists/source" "$lists/brought" >"$lists/gone"
  while IFS= read -r name; do
    file=${name##*/}
    if [ ! -d "$modules" ] || [ -d "$modules/${file#*-}" ]; then continue; fi
    rm -f "$2/$name" || return 1
  done <"$lists/gone"
  grep -E '/(vmlinu[xz]|initrd\.img|initramfs|System\.map|config)-[0-9][^/]*$' "$lists/source" >"$lists/kernels"
  put_mark "$2" "$3" "$lists/kernels"
}

exec 9>/run/rubus-boot-copy.lock
flock -w 300 9 || { say "another update of them does not end"; exit 0; }
# A copy of this system, or one that was left behind, has no say in what they hold.
names_root /proc/cmdline || exit 0
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
mkdir -p "$there" "$lists" || exit 0
printf './%s\n' $own_files "$mark" >"$lists/own" || exit 0
own=$(count "$point") || own=
theirs=0
is_there=
if [ -e "$other" ]; then
  if mountpoint -q "$there"; then umount "$there"; fi
  if mount -t vfat -o ro "$other" "$there"; then
    is_there=yes
    theirs=$(count "$there") || theirs=
  else
    say "$other cannot be mounted, and was not updated"
  fi
fi
if [ "$1" != start ]; then
  # First of all, so that the next start brings what a power cut keeps from being brought now.
  n=${own:-0}
  [ "$n" -ge "${theirs:-0}" ] || n=$theirs
  own=$((n + 1))
  theirs=$n
  brought "$point" >"$lists/brought" && put_mark "$point" "$own" "$lists/brought" ||
    { say "$point cannot be written to"; own=$theirs; }
elif [ -z "$own" ] || [ -z "$theirs" ]; then
  say "it is not known which was updated last, as a mark is damaged; the next update of a kernel puts that right"
  own=$theirs
fi
if [ -n "$is_there" ]; then
  if [ "${own:-0}" -gt "${theirs:-0}" ]; then
    bring "$point" "$there" "$own"
  elif [ "${theirs:-0}" -gt "${own:-0}" ]; then
    bring "$there" "$point" "$theirs"
  fi || say "one was not brought up to date from the other; it may start an older kernel, or none"
  if mountpoint -q "$there"; then umount "$there"; fi
fi
rm -rf "$lists"
exit 0
