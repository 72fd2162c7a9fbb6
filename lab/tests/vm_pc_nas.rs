//! A share of the kernel's NFS server, or of its SMB server, on the quick board, behind a pair of virtual cables: the pipe that is
//! made narrow, link, round trip, mount option or the server's disk, is the one that a checkup names.

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

/// A kind of file server: what the board lacks for it, how it begins to serve, and how a client mounts what it serves.
struct Server {
    /// The server, and modules of the board's kernel that its disks lack.
    packages: &'static [&'static str],
    /// What of their files is needed, beside [`FILES`].
    files: &'static [&'static str],
    modules: &'static str,
    /// Serves `/srv/media`, which is mounted, to 192.0.2.2.
    serve: &'static str,
    /// Mounts it on /mnt/nas with OPTIONS. `mount` itself asks no helper: the options are the kernel's.
    mount: &'static str,
    /// The options that are usual.
    usual: &'static str,
    small_requests: &'static str,
}

/// Needed of every server's packages.
const FILES: [&str; 4] = [
    "*/modules/*/kernel/fs/netfs/*",
    "*/modules/*/kernel/net/sched/sch_netem*",
    "*/modules/*/kernel/drivers/net/veth*",
    "*/lib/x86_64-linux-gnu/*.so*",
];

const NFS: Server = Server {
    packages: &["linux-image-amd64", "nfs-kernel-server", "nfs-common"],
    files: &[
        "*/modules/*/kernel/fs/nfs/*",
        "*/modules/*/kernel/fs/nfsd/*",
        "*/modules/*/kernel/fs/nfs_common/*",
        "*/modules/*/kernel/fs/lockd/*",
        "*/modules/*/kernel/net/sunrpc/*",
        "*/modules/*/kernel/net/dns_resolver/*",
        "*/etc/services",
        "*/sbin/*nfs*",
        "*/sbin/exportfs",
        "*/sbin/rpc.*",
    ],
    modules: "nfsd nfs nfsv4",
    serve: r"
mkdir -p /var/lib/nfs/v4recovery
mount -t nfsd nfsd /proc/fs/nfsd
touch /var/lib/nfs/etab /var/lib/nfs/rmtab
echo '/srv/media 192.0.2.2(rw,sync,no_root_squash,no_subtree_check,fsid=0)' >/etc/exports
exportfs -a
rpc.mountd --no-nfs-version 3
rpc.nfsd --no-nfs-version 3 --port 2049 4
echo Y >/proc/fs/nfsd/v4_end_grace
",
    mount: "mount -i -t nfs4 -o OPTIONS,addr=192.0.2.1,clientaddr=192.0.2.2 192.0.2.1:/ /mnt/nas",
    usual: "vers=4.2,sec=sys",
    small_requests: "vers=4.2,sec=sys,rsize=8192,wsize=8192",
};

/// The kernel's own server of SMB 3.
const SMB: Server = Server {
    packages: &["linux-image-amd64", "ksmbd-tools"],
    files: &[
        "*/modules/*/kernel/fs/smb/*",
        "*/modules/*/kernel/fs/nls/*",
        "*/modules/*/kernel/crypto/*",
        "*/modules/*/kernel/lib/*",
        "*/modules/*/kernel/net/dns_resolver/*",
        "*/modules/*/kernel/drivers/infiniband/core/*",
        "*/modules/*/kernel/fs/configfs/*",
        "*/sbin/ksmbd*",
        "*/libexec/ksmbd*",
    ],
    modules: "ksmbd cifs",
    serve: r"
mkdir -p /etc/ksmbd /run/ksmbd
cat >/etc/ksmbd/ksmbd.conf <<END
[global]
[media]
path = /srv/media
read only = no
force user = root
force group = root
END
ksmbd.adduser -a -p secret pi
ksmbd.mountd
for try in $(seq 60); do ss -ltn | grep -q ':445 ' && break; sleep 0.5; done
",
    mount: "mount -i -t cifs -o OPTIONS,username=pi,password=secret,ip=192.0.2.1 //192.0.2.1/media /mnt/nas",
    usual: "vers=3.1.1",
    small_requests: "vers=3.1.1,rsize=16384,wsize=16384",
};

/// The server in this machine's own network, on the USB disk; the client in one of its own. The film is not in the server's
/// memory when it is measured.
const SERVE: &str = r"
set -e
tar -xf /run/lab/push/nas.tar -C / --skip-old-files --keep-directory-symlink
ldconfig
depmod
modprobe -a MODULES veth sch_netem
ip netns add client
ip link add nas0 type veth peer name wire0 netns client
ip addr add 192.0.2.1/24 dev nas0
ip link set lo up
ip link set nas0 up
ip -n client addr add 192.0.2.2/24 dev wire0
ip -n client link set wire0 up
mkfs.ext4 -qF DISK 700M
mkdir -p /srv/media /mnt/nas
mount DISK /srv/media
dd if=/dev/urandom of=/srv/media/film bs=1M count=40 status=none
sync
";

/// A checkup from the other end of the cable.
const CHECKUP: &str = r"
set -e
sync
echo 3 >/proc/sys/vm/drop_caches
ip netns exec client sh -c '
  set -e
  MOUNT
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
    /// The mount asks for small requests.
    has_small_requests: bool,
}

impl Narrow {
    const fn path(wire: &'static str) -> Narrow {
        Narrow { stage: "path", wire, disk: None, has_small_requests: false }
    }

    const fn round_trip(wire: &'static str) -> Narrow {
        Narrow { stage: "round-trip", wire, disk: None, has_small_requests: false }
    }

    const fn disk(bytes_per_second: u64) -> Narrow {
        let disk = Some(bytes_per_second);
        Narrow { stage: "server-disk", wire: "", disk, has_small_requests: false }
    }

    const fn small_requests() -> Narrow {
        Narrow { stage: "small-requests", wire: "", disk: None, has_small_requests: true }
    }
}

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
    Narrow::small_requests(),
];

/// The other server, each kind of pipe.
const OVER_SMB: [Narrow; 6] = [
    Narrow::path("rate 16mbit limit 400"),
    Narrow::path("rate 32mbit limit 400"),
    Narrow::round_trip("delay 20ms limit 4000"),
    Narrow::round_trip("delay 40ms limit 4000"),
    Narrow::disk(2_000_000),
    Narrow::disk(4_000_000),
];

#[test]
fn a_slow_network_beyond_this_machine_is_named() {
    each_is_named(&NFS, &[Narrow::path("rate 24mbit limit 400")]);
}

#[test]
fn each_network_made_narrow_is_named() {
    each_is_named(&NFS, &NETWORK);
}

#[test]
fn each_server_and_mount_made_narrow_is_named() {
    each_is_named(&NFS, &SERVER);
}

#[test]
fn each_pipe_of_an_smb_share_made_narrow_is_named() {
    each_is_named(&SMB, &OVER_SMB);
}

fn each_is_named(server: &Server, cases: &[Narrow]) {
    let Some(mut board) = served(server) else {
        return;
    };
    let wrong: Vec<String> =
        cases.iter().filter_map(|it| misnamed(&mut board, server, it)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    board.switch_off().unwrap();
}

/// A board that serves a share to itself, over a pair of virtual cables.
fn served(server: &Server) -> Option<Session> {
    let needs = [Need::Root, Need::Program("mmdebstrap", "mmdebstrap")];
    if !can_boot(TEST, Board::Pc) || !can_run(TEST, &needs) {
        return None;
    }
    let rubus = rubus_or_skip(TEST, Board::Pc)?;
    let cache = Cache::of_this_machine();
    let directory = tempfile::tempdir().unwrap();
    let push = vec![rubus, packed(&cache, server, directory.path())];
    let options = Options { push, ..Options::default() };
    let mut board = Session::boot(&cache, Board::Pc, &options).unwrap();
    let disk = board.usb_device(0).unwrap();
    let serve = SERVE.replace("DISK", &disk).replace("MODULES", server.modules) + server.serve;
    board.must(&serve, "root", LONG).unwrap();
    Some(board)
}

/// What a checkup says where it does not name the narrow stage.
fn misnamed(board: &mut Session, server: &Server, narrow: &Narrow) -> Option<String> {
    both_ends(board, narrow.wire);
    let limits =
        narrow.disk.map(|bytes_per_second| Throttle { bytes_per_second, operations_per_second: 0 });
    board.throttle_usb(0, limits).unwrap();
    let options = if narrow.has_small_requests { server.small_requests } else { server.usual };
    let mount = server.mount.replace("OPTIONS", options);
    let found = board.must(&CHECKUP.replace("MOUNT", &mount), "root", LONG).unwrap();
    let found: Value = serde_json::from_str(&found).expect("JSON");
    let nas = &found["verdict"]["nas"];
    let case = format!("{} {} {:?} {options}", narrow.stage, narrow.wire, narrow.disk);
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
fn packed(cache: &Cache, server: &Server, directory: &Path) -> PathBuf {
    let packages = extra_packages::archive(cache, Board::Pc, server.packages).unwrap();
    let (all, archive) = (packages.join(extra_packages::ARCHIVE), directory.join(ARCHIVE));
    let tree = tempfile::tempdir().unwrap();
    let mut unpack = Command::new("tar");
    unpack.arg("-xf").arg(all).arg("-C").arg(tree.path()).arg("--wildcards");
    unpack.args(FILES).args(server.files);
    assert!(unpack.status().unwrap().success());
    let mut pack = Command::new("tar");
    pack.arg("-cf").arg(&archive).arg("-C").arg(tree.path()).arg(".");
    assert!(pack.status().unwrap().success());
    archive
}
