# Looks at a card that a power cut has left, without a board: $1 the image, $2 where its boot partition begins in bytes, $3 where its
# root filesystem does, $4 rubus, $5 an empty directory, $6 1 when the change had ended. Says what is wrong, a line each.
# Needs a mount namespace of its own. $7 lists the files that the boot partition had before, as sha256sum does.
image=$1 boot=$2 root=$3 rubus=$4 place=$5 ended=$6
before=$(cat "$7")
wrong() { echo "$*"; }
mkdir "$place/root" "$place/boot"
dd if="$image" of="$place/fat" bs=1M iflag=skip_bytes,count_bytes skip="$boot" count=$((root - boot)) conv=sparse status=none
# As every boot does.
fsck.vfat -a "$place/fat" >"$place/fsck" 2>&1
[ $? -le 1 ] || wrong "fsck.vfat: $(tail -n 3 "$place/fsck" | tr '\n' ' ')"
mount -o "loop,noatime,offset=$root" "$image" "$place/root" 2>"$place/mount" ||
  { wrong "the root filesystem cannot be mounted: $(cat "$place/mount")"; exit 0; }
mount -t tmpfs tmpfs "$place/root/boot/firmware"
mcopy -s -n -Q -i "$place/fat" :: "$place/root/boot/firmware" 2>"$place/mcopy" ||
  wrong "the boot partition cannot be read: $(cat "$place/mcopy")"
# FAT keeps no modes and shows 755 for all, which the plan has of those that it changes; this filesystem keeps them, and those that are
# new were planned with 644.
(
  cd "$place/root/boot/firmware" || exit
  find . -type f | while IFS= read -r file; do
    mode=644; grep -qF "  $file" "$7" && mode=755
    chmod $mode "$file"
  done
)
mount -t proc proc "$place/root/proc"
mount -o bind,ro /sys "$place/root/sys"
mount -t tmpfs tmpfs "$place/root/run"
cp "$rubus" "$place/root/run/rubus"
list() { (cd "$place/root/boot/firmware" && find . -type f ! -name 'FSCK*.REC' | sort | xargs -d '\n' sha256sum); }
within() { env -i PATH=/usr/sbin:/usr/bin HOME=/root chroot "$place/root" "$@"; }
last='import json, sys
changes = json.load(sys.stdin)
last = max(changes, key=lambda c: c["name"]) if changes else {"way": "undo", "is_finished": True}
print(last["way"], last["is_finished"])'
state() { within /run/rubus status --json 2>"$place/said" | python3 -c "$last" 2>>"$place/said" || wrong "status: $(tr '\n' ' ' <"$place/said")"; }
[ "$(cat "$place/root/boot/firmware/config.txt" | wc -c)" -gt 0 ] || wrong "config.txt is empty"
found=$(state)
case $found in
  'undo True') ;;
  apply*|undo*)
    within /run/rubus undo --yes >"$place/said" 2>&1 || wrong "undo: $(tr '\n' ' ' <"$place/said")"
    after=$(state)
    [ "$after" = 'undo True' ] || wrong "after undo: $after" ;;
  *) wrong "$found" ;;
esac
[ "$ended" != 1 ] || [ "$found" = 'apply True' ] || wrong "it had ended, and is: $found"
after=$(list)
[ "$after" = "$before" ] || wrong "not as before: $(diff <(echo "$before") <(echo "$after") | grep '^[<>]' | cut -c1-2,67- | tr '\n' ' ')"
