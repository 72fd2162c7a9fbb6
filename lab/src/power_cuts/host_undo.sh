# Ends a change on the root filesystem that is mounted at $1, whose boot partition's files are in $2, with $4, a rubus in $3; without $4
# it only says how far the change is. Needs a mount namespace of its own. Says `rubus status --json` at the end.
root=$1 boot=$2 rubus=$3 command=$4
mount --bind "$boot" "$root/boot/firmware" || exit 100
mount -t proc proc "$root/proc" || exit 100
# Settings of this machine's kernel are none of the change's business.
mount -o bind,ro "$root/proc/sys" "$root/proc/sys" 2>/dev/null || mount --bind "$root/proc/sys" "$root/proc/sys" && mount -o remount,bind,ro "$root/proc/sys" || exit 100
mount -o bind,ro /sys "$root/sys" || exit 100
mount -t tmpfs tmpfs "$root/run" || exit 100
mount -t tmpfs tmpfs "$root/dev" || exit 100
mknod -m 666 "$root/dev/null" c 1 3
mknod -m 666 "$root/dev/urandom" c 1 9
# What the root lies on can be looked at there, as on a board, so that the product knows which filesystem it runs from.
device=$(findmnt -nvo SOURCE "$root") && mknod -m 600 "$root$device" b $(stat -c '0x%t 0x%T' "$device") || exit 100
touch "$root/run/rubus" && mount --bind "$rubus" "$root/run/rubus" || exit 100
# That the boot partition's files are on FAT, which goes by rules of its own, is what strace answers: the magic number of its statfs. Nor are this
# machine's disks and swap the change's business.
fat=$(cd "$boot" && find . -type f -printf '-P /boot/firmware/%P\n')
within() {
  # shellcheck disable=SC2086
  strace -f --seccomp-bpf -qq -o /dev/null -P /boot/firmware $fat -e trace=statfs \
    -e inject=statfs:poke_exit=@arg2=444d000000000000 \
  env -i PATH=/usr/sbin:/usr/bin HOME=/root setpriv --bounding-set=-sys_admin,-sys_rawio,-sys_boot,-sys_module --inh-caps=-all \
    chroot "$root" "$@"
}
status=0
if [ -n "$command" ]; then
  # shellcheck disable=SC2086
  within /run/rubus $command >&2 || status=$?
fi
within /run/rubus status --json
exit $status
