//! Which disk a unit wrote to, as the kernel's control groups count it: on `pc`, since a kernel with the unified hierarchy is needed.

use std::time::Duration;

use rubus_lab::board::Board;
use rubus_lab::cache::Cache;
use rubus_lab::kit::UsbDisk;
use rubus_lab::product::{can_boot, rubus_or_skip};
use rubus_lab::session::{Options, Session};
use serde_json::Value;

const TEST: &str = "vm_pc_writers_unit";
const LIMIT: Duration = Duration::from_secs(300);
const MIB: u64 = 1 << 20;
/// What each of the two units writes.
const EACH_BYTES: u64 = 48 * MIB;

/// Two units on an ext4 of a USB disk: one writes through the page cache, and one past it by a program that ends at once. Gives the
/// name of the disk and the report.
const SCRIPT: &str = r#"
set -e
disk=
for _ in $(seq 100); do
  disk=$(lsblk -dno SERIAL,NAME | awk '$1 == "THE_SERIAL" { print $2 }')
  [ -z "$disk" ] || break
  sleep 0.2
done
mkfs.ext4 -qF "/dev/$disk"
mount "/dev/$disk" /mnt
groups=/sys/fs/cgroup
mountpoint -q $groups || mount -t cgroup2 cgroup2 $groups
mkdir -p $groups/system.slice
for at in $groups $groups/system.slice; do echo '+io +memory' >$at/cgroup.subtree_control; done
mkdir $groups/system.slice/cached.service $groups/system.slice/direct.service
rubus watch --interval 1 --record /root/day.rec >/dev/null &
recorder=$!
walks() { cat /root/day.rec 2>/dev/null | grep -c '"writers":' || true; }
await_walk() {
  local now
  now=$(walks)
  for _ in $(seq 600); do [ "$(walks)" -lt $((now + 2)) ] || return 0; sleep 0.1; done
  echo 'no walk over all programs' >&2
  return 1
}
within() { sh -c "echo \$\$ >$groups/system.slice/$1/cgroup.procs; $2"; }
await_walk
within cached.service 'dd if=/dev/zero of=/mnt/cached bs=64k count=768 conv=fsync status=none; sleep 15' &
within direct.service 'dd if=/dev/zero of=/mnt/direct bs=1M count=48 oflag=direct status=none; sleep 15' &
await_walk
wait %2 %3
await_walk
kill -INT $recorder
wait $recorder
echo "$disk"
rubus writers /root/day.rec --json
umount /mnt
"#;

#[test]
fn what_two_units_wrote_to_a_disk_is_told_to_within_5_percent() {
    if !can_boot(TEST, Board::Pc) {
        return;
    }
    let Some(rubus) = rubus_or_skip(TEST, Board::Pc) else {
        return;
    };
    let options = Options { push: vec![rubus], ..Options::default() };
    let mut board = Session::boot(&Cache::of_this_machine(), Board::Pc, &options).unwrap();
    let serial = UsbDisk::as_sold().serial;
    let script = SCRIPT.replace("THE_SERIAL", &serial);
    let said = board.must(&script, "root", LIMIT).unwrap();
    board.switch_off().unwrap();

    let (disk, report) = said.split_once('\n').expect("a disk and a report");
    let report: Value = serde_json::from_str(report).expect("JSON");
    for unit in ["cached.service", "direct.service"] {
        let units = report["units"].as_array().expect("units");
        let told = units.iter().find(|told| told["unit"] == unit);
        let told = told.unwrap_or_else(|| panic!("{unit} is not told: {report:#}"));
        let mut disks = told["disks"].as_array().expect("disks").iter();
        let on_disk = disks.find(|told| told["disk"] == disk);
        let on_disk = on_disk.unwrap_or_else(|| panic!("{unit} wrote nothing to {disk}: {told:#}"));
        for written in [&told["written_bytes"], &on_disk["written_bytes"]] {
            let written = written.as_u64().expect("bytes");
            assert!(
                written.abs_diff(EACH_BYTES) <= EACH_BYTES / 20,
                "{unit} wrote {EACH_BYTES}: {told:#}"
            );
        }
    }
}
