//! A share of the kernel's NFS server on the quick board, behind a pair of virtual cables: the pipe that is made narrow, link, round
//! trip, mount option or the server's disk, is the one that a checkup names.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use rubus_lab::board::{Board, Throttle};
use rubus_lab::cache::Cache;
use rubus_lab::extra_packages;
use rubus_lab::product::{can_boot, rubus_or_skip};
use rubus_lab::session::{Options, Session};
use serde_json::Value;

use crate::common::can_run;
use rubus_lab::devices::needs::Need;

const TEST: &str = "vm_pc_nas";
const SOON: Duration = Duration::from_secs(300);
/// A checkup and what makes its server narrow.
const LONG: Duration = Duration::from_secs(900);
const ARCHIVE: &str = "nas.tar";

/// The server, and modules of the board's kernel that its disks lack.
const PACKAGES: [&str; 3] = ["linux-image-amd64", "nfs-kernel-server", "nfs-common"];
const FILES: [&str; 14] = [
    "*/modules/*/kernel/fs/nfs/*",
    "*/modules/*/kernel/fs/nfsd/*",
    "*/modules/*/kernel/fs/nfs_common/*",
    "*/modules/*/kernel/fs/lockd/*",
    "*/modules/*/kernel/fs/netfs/*",
    "*/modules/*/kernel/net/sunrpc/*",
    "*/modules/*/kernel/net/dns_resolver/*",
    "*/modules/*/kernel/net/sched/sch_netem*",
    "*/modules/*/kernel/drivers/net/veth*",
    "*/etc/services",
    "*/sbin/*nfs*",
    "*/sbin/exportfs",
    "*/sbin/rpc.*",
    "*/lib/x86_64-linux-gnu/*.so*",
];

/// The server in this machine's own network, on the USB disk; the client in one of its own. The film is not in the server's
/// memory when it is measured.
const SERVE: &str = r"
set -e
tar -xf /run/lab/push/nas.tar -C / --skip-old-files --keep-directory-symlink
ldconfig
depmod
modprobe -a nfsd nfs nfsv4 veth sch_netem
ip netns add client
ip link add nas0 type veth peer name wire0 netns client
ip addr add 192.0.2.1/24 dev nas0
ip link set lo up
ip link set nas0 up
ip -n client addr add 192.0.2.2/24 dev wire0
ip -n client link set wire0 up
mkfs.ext4 -qF DISK 700M
mkdir -p /srv/media /var/lib/nfs/v4recovery /mnt/nas
mount DISK /srv/media
dd if=/dev/urandom of=/srv/media/film bs=1M count=40 status=none
sync
mount -t nfsd nfsd /proc/fs/nfsd
touch /var/lib/nfs/etab /var/lib/nfs/rmtab
echo '/srv/media 192.0.2.2(rw,sync,no_root_squash,no_subtree_check,fsid=0)' >/etc/exports
exportfs -a
rpc.mountd --no-nfs-version 3
rpc.nfsd --no-nfs-version 3 --port 2049 4
echo Y >/proc/fs/nfsd/v4_end_grace
";

/// A checkup from the other end of the cable. `mount` itself asks no helper: the options are the kernel's.
const CHECKUP: &str = r"
set -e
sync
echo 3 >/proc/sys/vm/drop_caches
ip netns exec client sh -c '
  set -e
  mount -i -t nfs4 -o OPTIONS,addr=192.0.2.1,clientaddr=192.0.2.2 192.0.2.1:/ /mnt/nas
  rubus checkup /mnt/nas --no-history --no-html --json
  umount /mnt/nas
'
";

/// What is made narrow, and the stage that a checkup has to name.
struct Narrow {
    stage: &'static str,
    /// The queue at both ends of the cable, in the words of netem.
    wire: &'static str,
    /// Bytes per second of the server's disk.
    disk: Option<u64>,
    /// Options of the mount.
    options: &'static str,
}

impl Narrow {
    const fn path(wire: &'static str) -> Narrow {
        Narrow { stage: "path", wire, disk: None, options: USUAL }
    }

    const fn round_trip(wire: &'static str) -> Narrow {
        Narrow { stage: "round-trip", wire, disk: None, options: USUAL }
    }

    const fn disk(bytes_per_second: u64) -> Narrow {
        Narrow { stage: "server-disk", wire: "", disk: Some(bytes_per_second), options: USUAL }
    }

    const fn small_requests(options: &'static str) -> Narrow {
        Narrow { stage: "small-requests", wire: "", disk: None, options }
    }
}

const USUAL: &str = "vers=4.2,sec=sys";

const NETWORK: [Narrow; 8] = [
    Narrow::path("rate 16mbit limit 400"),
    Narrow::path("rate 20mbit limit 400"),
    Narrow::path("rate 24mbit limit 400"),
    Narrow::path("rate 32mbit limit 400"),
    Narrow::round_trip("delay 15ms limit 4000"),
    Narrow::round_trip("delay 20ms limit 4000"),
    Narrow::round_trip("delay 30ms limit 4000"),
    Narrow::round_trip("delay 40ms limit 4000"),
];

const SERVER: [Narrow; 6] = [
    Narrow::disk(1_500_000),
    Narrow::disk(2_000_000),
    Narrow::disk(3_000_000),
    Narrow::disk(4_000_000),
    Narrow::disk(5_000_000),
    Narrow::small_requests("vers=4.2,sec=sys,rsize=8192,wsize=8192"),
];

#[test]
fn a_slow_network_beyond_this_machine_is_named() {
    each_is_named(&[Narrow::path("rate 24mbit limit 400")]);
}

#[test]
fn each_network_made_narrow_is_named() {
    each_is_named(&NETWORK);
}

#[test]
fn each_server_and_mount_made_narrow_is_named() {
    each_is_named(&SERVER);
}

fn each_is_named(cases: &[Narrow]) {
    let Some(mut board) = served() else {
        return;
    };
    let wrong: Vec<String> = cases.iter().filter_map(|it| misnamed(&mut board, it)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    board.switch_off().unwrap();
}

/// A board that serves a share to itself, over a pair of virtual cables.
fn served() -> Option<Session> {
    let needs = [Need::Root, Need::Program("mmdebstrap", "mmdebstrap")];
    if !can_boot(TEST, Board::Pc) || !can_run(TEST, &needs) {
        return None;
    }
    let rubus = rubus_or_skip(TEST, Board::Pc)?;
    let cache = Cache::of_this_machine();
    let directory = tempfile::tempdir().unwrap();
    let push = vec![rubus, packed(&cache, directory.path())];
    let options = Options { push, ..Options::default() };
    let mut board = Session::boot(&cache, Board::Pc, &options).unwrap();
    let disk = board.usb_device(0).unwrap();
    board.must(&SERVE.replace("DISK", &disk), "root", LONG).unwrap();
    Some(board)
}

/// What a checkup says where it does not name the narrow stage.
fn misnamed(board: &mut Session, narrow: &Narrow) -> Option<String> {
    both_ends(board, narrow.wire);
    let limits =
        narrow.disk.map(|bytes_per_second| Throttle { bytes_per_second, operations_per_second: 0 });
    board.throttle_usb(0, limits).unwrap();
    let found = board.must(&CHECKUP.replace("OPTIONS", narrow.options), "root", LONG).unwrap();
    let found: Value = serde_json::from_str(&found).expect("JSON");
    let nas = &found["verdict"]["nas"];
    let case = format!("{} {} {:?} {}", narrow.stage, narrow.wire, narrow.disk, narrow.options);
    eprintln!("{case}: {} {} {}", nas["narrow"], nas["sureness"], nas["headline"]);
    (nas["narrow"] != narrow.stage)
        .then(|| format!("{case}: {nas:#}\n{:#}", found["run"]["target"]["nas"]))
}

/// Both ends of the cable send through this queue; an empty one is none.
fn both_ends(board: &mut Session, queue: &str) {
    let mut script = String::from("set -e\n");
    for (command, interface) in [("tc", "nas0"), ("tc -n client", "wire0")] {
        script += &format!("{command} qdisc del dev {interface} root 2>/dev/null || true\n");
        if !queue.is_empty() {
            script += &format!("{command} qdisc add dev {interface} root netem {queue}\n");
        }
    }
    board.must(&script, "root", SOON).unwrap();
}

/// The files of the packages that are needed, and no others: the board unpacks them with an emulated processor.
fn packed(cache: &Cache, directory: &Path) -> PathBuf {
    let packages = extra_packages::archive(cache, Board::Pc, &PACKAGES).unwrap();
    let (all, archive) = (packages.join(extra_packages::ARCHIVE), directory.join(ARCHIVE));
    let tree = tempfile::tempdir().unwrap();
    let mut unpack = Command::new("tar");
    unpack.arg("-xf").arg(all).arg("-C").arg(tree.path()).arg("--wildcards").args(FILES);
    assert!(unpack.status().unwrap().success());
    let mut pack = Command::new("tar");
    pack.arg("-cf").arg(&archive).arg("-C").arg(tree.path()).arg(".");
    assert!(pack.status().unwrap().success());
    archive
}
