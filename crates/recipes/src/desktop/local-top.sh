#!/bin/sh
# Made by rubus (desktop). Waits for the disk with the root. If it does not answer in time, the old system starts.
# What can do without that disk, such as a root on the network, comes first.
case $1 in prereqs) echo rubus-network-root; exit 0 ;; esac

[ "$ROOT" = 'PARTUUID=@PARTUUID@' ] || exit 0
disk=/dev/disk/by-partuuid/@PARTUUID@

# Seconds since the start.
seconds() {
  read -r up rest </proc/uptime
  echo "${up%%.*}"
}
end=$(($(seconds) + @WAIT@))
while [ ! -e "$disk" ] && [ "$(seconds)" -lt "$end" ]; do
  sleep 0.2 2>/dev/null || sleep 1
done
[ ! -e "$disk" ] || exit 0

why='@DISK@ did not answer within @WAIT@ s'
if [ ! -e '@OLD_NODE@' ]; then
  echo "rubus: $why, and @OLD@ is not there either"
  exit 0
fi
echo "rubus: this start is from @OLD@: $why"
echo "<3>rubus: this start is from @OLD@: $why" >/dev/kmsg
# For those who ask later, and for everyone who logs in.
mkdir -p /run/rubus /run/motd.d
echo "@PARTUUID@
$why" >@MARK@
echo "This board started from @OLD@, because $why.
What is changed now is not on that disk. Check its plug and power, then restart: sudo reboot
'rubus status' says more." >/run/motd.d/rubus
echo "ROOT='@OLD_ROOT@'
ROOTFSTYPE='@OLD_KIND@'
FSTYPE='@OLD_KIND@'
ROOTFLAGS='@OLD_FLAGS@'" >>/conf/param.conf
