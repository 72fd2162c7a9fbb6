#!/bin/sh
# Made by rubus (network-root). Takes the root from the network when its server answers in time. Otherwise nothing is
# changed here, and the root is the one that root= on the kernel's command line names: the card's.
case $1 in prereqs) exit 0 ;; esac

address='' most='' ip=dhcp
set -f
for word in $(cat /proc/cmdline); do
  case $word in
    rubus.root=*) address=${word#*=} ;;
    rubus.wait=*) most=${word#*=} ;;
    rubus.ip=*) ip=${word#*=} ;;
  esac
done
[ -n "$address" ] || exit 0
case $most in '' | *[!0-9]*) most=30 ;; esac

# Seconds since the start, and how many of them are left.
seconds() {
  read -r up rest </proc/uptime
  echo "${up%%.*}"
}
end=$(($(seconds) + most))
is_time_left() {
  left=$((end - $(seconds)))
  [ "$left" -gt 0 ]
}

# Says a line on the console and in the kernel's log.
say() {
  echo "rubus: $2"
  echo "<$1>rubus: $2" >/dev/kmsg
}

# Leaves everything as it is: the root will be the card's. Says why, now and to those who ask later.
take_the_card() {
  say 3 "this start is from the card, and not from the network: $1"
  mkdir -p /run/rubus
  echo "$1" >/run/rubus/root-from-card
  exit 0
}

# Asks for an address on every network card with a cable, until one has it. A card may come late, when it is on USB.
begin_network() {
  set +f
  while is_time_left; do
    for device in /sys/class/net/*; do
      [ -e "$device/device" ] && [ ! -e "$device/phy80211" ] || continue
      is_time_left || return 1
      patience=$left
      [ "$patience" -le 10 ] || patience=10
      case $ip in
        dhcp) ipconfig -t "$patience" -c dhcp -d "${device##*/}" ;;
        *) ipconfig -t "$patience" -d "$ip" ;;
      esac
      for told in /run/net-*.conf; do
        [ ! -e "$told" ] || return 0
      done
    done
    sleep 1
  done
  return 1
}

# Programs that set networks up have to leave this one alone, and names have to be found all the same. What lies in /run
# holds for this start only.
tell_managers() {
  . "$told"
  # A card may get another name later, and keeps its address.
  mac=$(cat "/sys/class/net/$DEVICE/address")
  mkdir -p /run/NetworkManager/conf.d /run/systemd/network /run/systemd/resolved.conf.d
  servers=''
  for server in ${IPV4DNS0-} ${IPV4DNS1-}; do
    case $server in 0.0.0.0) ;; *) servers="$servers${servers:+,}$server" ;; esac
  done
  {
    echo "# Made by rubus (network-root): the root is reached over $DEVICE."
    echo '[keyfile]'
    echo "unmanaged-devices=mac:$mac"
    if [ -n "$servers" ]; then
      echo '[global-dns-domain-*]'
      echo "servers=$servers"
    fi
  } >/run/NetworkManager/conf.d/90-rubus-network-root.conf
  echo "[Match]
MACAddress=$mac
[Link]
Unmanaged=yes" >/run/systemd/network/05-rubus-network-root.network
  if [ -n "$servers" ]; then
    echo "[Resolve]
DNS=$servers" >/run/systemd/resolved.conf.d/90-rubus-network-root.conf
  fi
}

# Reads which filesystem is on the disk. A server may give the disk and then freeze, and nothing that reads from it can
# be ended: so the reader is not waited for longer than a start may wait, but for 5 s if the server was late.
told_uuid=/run/rubus-root-uuid
find_uuid() {
  least=$(($(seconds) + 5))
  [ "$least" -le "$end" ] || end=$least
  { blkid -p -o value -s UUID @DEVICE@ >"$told_uuid.new"; mv "$told_uuid.new" "$told_uuid"; } >/dev/null &
  while [ ! -e "$told_uuid" ]; do
    is_time_left || return 1
    sleep 0.1 2>/dev/null || sleep 1
  done
  uuid=$(cat "$told_uuid")
}

say 5 "the root is $address; its server has $most s to answer"
modprobe -q nbd
begin_network || take_the_card "no network within $most s: no cable, or nobody who gives addresses (DHCP)"
is_time_left || left=1
why=$(@HELPER@ attach "$address" @DEVICE@ "--wait=$left" @OPTIONS@ 2>&1 >/dev/null)
if [ $? -ne 0 ]; then
  set -f
  # In one line.
  set -- $why
  take_the_card "within $most s the server did not give the disk: $*"
fi
if ! find_uuid; then
  # What waits fails then, the reader too.
  @HELPER@ detach --give-up @DEVICE@ >/dev/null
  take_the_card "the server gave the disk and then did not answer within $most s"
fi
if [ "$uuid" != @UUID@ ]; then
  @HELPER@ detach @DEVICE@ >/dev/null
  take_the_card "$address holds another filesystem than the one that was made there (UUID '$uuid' and not @UUID@)"
fi
tell_managers
say 5 "the root is taken from the network"
echo "ROOT=@DEVICE@
ROOTFSTYPE=@KIND@
FSTYPE=@KIND@
ROOTFLAGS='-o @FLAGS@'" >>/conf/param.conf
