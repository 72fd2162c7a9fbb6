//! The decision as a table: facts, consent, verdict.

use proptest::prelude::*;
use rubus_host::block::blockdev::{DeviceNumber, Geometry};

use super::*;
use crate::guard::facts::{Content, Identity};
use crate::unseen::Unseen;

/// A blank, unused 64 GB USB disk with a serial number.
pub(in crate::guard) fn disk() -> DeviceFacts {
    DeviceFacts {
        asked: "/dev/sda".into(),
        path: "/dev/sda".into(),
        name: "sda".into(),
        number: DeviceNumber { major: 8, minor: 0 },
        kind: BlockKind::Disk,
        disk: None,
        geometry: Some(Geometry {
            size_bytes: 64_000_000_000,
            logical_block_bytes: 512,
            read_only: false,
            disk_sequence: Some(7),
        }),
        identity: Identity {
            model: Some("SanDisk Ultra".into()),
            serial: Some("4C530001".into()),
            by_id: Some("usb-SanDisk_Ultra_4C530001-0:0".into()),
            connected: "USB".into(),
            ..Identity::default()
        },
        uses: Vec::new(),
        contents: Vec::new(),
        unreadable: Vec::new(),
        is_denied: false,
    }
}

pub(in crate::guard) fn content(partition: Option<&str>, what: &str) -> Content {
    Content { partition: partition.map(str::to_string), what: what.into(), size_bytes: None }
}

pub(in crate::guard) fn used(device: &str, relation: Relation, kind: UseKind) -> Use {
    Use { device: device.into(), relation, kind }
}

fn mount_at(points: &[&str]) -> UseKind {
    UseKind::Mounted {
        filesystem: "ext4".into(),
        points: points.iter().map(|point| point.to_string()).collect(),
    }
}

fn holder(what: &str) -> UseKind {
    UseKind::Holder { what: what.into() }
}

fn open(pid: u32, program: &str, writes: bool) -> UseKind {
    UseKind::Open { pid, program: program.into(), writes }
}

#[derive(Debug)]
enum Expect {
    Allowed,
    /// The words that would be accepted.
    Consent(&'static str),
    /// One fragment for every reason, in order.
    Refused(&'static [&'static str]),
}

use Expect::{Allowed, Refused};

type Change = fn(&mut DeviceFacts);

fn full(device: &mut DeviceFacts) {
    device.contents.push(content(None, "an ext4 filesystem"));
}

fn no_serial(device: &mut DeviceFacts) {
    full(device);
    device.identity.serial = None;
}

fn partition(device: &mut DeviceFacts) {
    full(device);
    device.path = "/dev/sda2".into();
    device.name = "sda2".into();
    device.kind = BlockKind::Partition;
    device.disk = Some("sda".into());
    device.identity.partition = Some(2);
}

fn geometry(device: &mut DeviceFacts) -> &mut Geometry {
    device.geometry.as_mut().unwrap()
}

const CASES: &[(&str, Change, Option<&str>, Expect)] = &[
    ("blank", |_| (), None, Allowed),
    ("blank, named", |_| (), Some("4C530001"), Allowed),
    ("blank, but another one was named", |_| (), Some("4C530002"), Expect::Consent("4C530001")),
    ("full", full, None, Expect::Consent("4C530001")),
    ("full, named", full, Some("4C530001"), Allowed),
    ("full, named with a line feed", full, Some(" 4C530001\n"), Allowed),
    ("full, in small letters", full, Some("4c530001"), Expect::Consent("4C530001")),
    ("full, half a serial", full, Some("4C53"), Expect::Consent("4C530001")),
    ("full, 'yes'", full, Some("yes"), Expect::Consent("4C530001")),
    ("full, nothing typed", full, Some(""), Expect::Consent("4C530001")),
    ("full, its path instead of its serial", full, Some("/dev/sda"), Expect::Consent("4C530001")),
    ("partition", partition, None, Expect::Consent("4C530001-part2")),
    ("partition, named", partition, Some("4C530001-part2"), Allowed),
    (
        "partition, named by its disk only",
        partition,
        Some("4C530001"),
        Expect::Consent("4C530001-part2"),
    ),
    (
        "no serial, but a name by id",
        no_serial,
        None,
        Expect::Consent("usb-SanDisk_Ultra_4C530001-0:0"),
    ),
    (
        "neither",
        |device| {
            no_serial(device);
            device.identity.by_id = None;
        },
        None,
        Expect::Consent("/dev/sda"),
    ),
    (
        "neither, named by its path",
        |device| {
            no_serial(device);
            device.identity.by_id = None;
        },
        Some("/dev/sda"),
        Allowed,
    ),
    (
        "a serial that another disk has too",
        |device| {
            full(device);
            device.identity.serial_shared_with = Some("sdb".into());
        },
        Some("4C530001"),
        Expect::Consent("/dev/sda"),
    ),
    (
        "mounted",
        |device| device.uses.push(used("sda", Relation::Itself, mount_at(&["/mnt"]))),
        None,
        Refused(&["/dev/sda is mounted at /mnt (ext4)."]),
    ),
    (
        "mounted, and named all the same",
        |device| {
            full(device);
            device.uses.push(used("sda", Relation::Itself, mount_at(&["/mnt"])));
        },
        Some("4C530001"),
        Refused(&["is mounted at /mnt"]),
    ),
    (
        "the disk of the running system",
        |device| device.uses.push(used("sda2", Relation::Partition, mount_at(&["/", "/home"]))),
        Some("4C530001"),
        Refused(&[
            "/dev/sda2, a partition of /dev/sda, is mounted at /, /home (ext4). This system runs from it.",
        ]),
    ),
    (
        "a partition of a disk that is mounted as a whole",
        |device| {
            partition(device);
            device.uses.push(used("sda", Relation::WholeDisk, mount_at(&["/mnt"])));
        },
        Some("4C530001-part2"),
        Refused(&["/dev/sda, the disk that /dev/sda2 is a partition of, is mounted"]),
    ),
    (
        "two reasons are both told",
        |device| {
            device.uses.push(used("sda1", Relation::Partition, mount_at(&["/mnt"])));
            device.uses.push(used("sda2", Relation::Partition, UseKind::Swap));
        },
        None,
        Refused(&["/dev/sda1, a partition", "/dev/sda2, a partition of /dev/sda, is active swap."]),
    ),
    (
        "swap file on it",
        |device| {
            device.uses.push(used("sda1", Relation::Partition, mount_at(&["/data"])));
            let path = "/data/swap file".into();
            device.uses.push(used("sda1", Relation::Partition, UseKind::SwapFile { path }));
        },
        None,
        Refused(&[
            "mounted at /data",
            "The swap file /data/swap file lies on /dev/sda1, a partition of /dev/sda.",
        ]),
    ),
    (
        "array member",
        |device| device.uses.push(used("sda", Relation::Itself, holder("the RAID array md0"))),
        Some("4C530001"),
        Refused(&["/dev/sda is a part of the RAID array md0."]),
    ),
    (
        "array of a partition, mounted",
        |device| {
            device.uses.push(used("sda1", Relation::Partition, holder("the RAID array md0")));
            device.uses.push(used("md0", Relation::Above, mount_at(&["/srv"])));
        },
        None,
        Refused(&[
            "a part of the RAID array md0",
            "/dev/md0, which stands on /dev/sda, is mounted at /srv",
        ]),
    ),
    (
        "loop device over it",
        |device| {
            let kind = UseKind::Loop { name: "loop4".into(), backing: "/dev/sda".into() };
            device.uses.push(used("sda", Relation::Itself, kind));
        },
        None,
        Refused(&["The loop device loop4 (/dev/sda) stands on /dev/sda."]),
    ),
    (
        "the same file behind two loop devices",
        |device| {
            let backing = "/srv/disk.img".into();
            device.uses.push(used("loop5", Relation::Twin, UseKind::SameBacking { backing }));
        },
        None,
        Refused(&["/dev/sda and /dev/loop5 stand on the same file /srv/disk.img"]),
    ),
    (
        "its backing file is swap",
        |device| {
            let path = "/srv/disk.img".into();
            device.uses.push(used("loop5", Relation::Itself, UseKind::BackingIsSwap { path }));
        },
        None,
        Refused(&["Its backing file /srv/disk.img is active swap."]),
    ),
    (
        "what it stands on is mounted",
        |device| device.uses.push(used("sdb", Relation::Below, mount_at(&["/mnt"]))),
        None,
        Refused(&["/dev/sdb, on which /dev/sda stands, is mounted"]),
    ),
    (
        "btrfs by another device",
        |device| {
            let kind = UseKind::Btrfs { name: "pool".into(), points: vec!["/pool".into()] };
            device.uses.push(used("sda", Relation::Itself, kind));
        },
        None,
        Refused(&["/dev/sda belongs to the btrfs filesystem pool, which is mounted at /pool."]),
    ),
    (
        "btrfs that is mounted out of sight",
        |device| {
            let kind = UseKind::Btrfs { name: "pool".into(), points: vec![] };
            device.uses.push(used("sda", Relation::Itself, kind));
        },
        None,
        Refused(&["in use but not mounted where this program can see it"]),
    ),
    (
        "a writer",
        |device| device.uses.push(used("sda", Relation::Itself, open(812, "dd", true))),
        None,
        Refused(&["/dev/sda is open in process 812 (dd), which may write to it."]),
    ),
    (
        "an exporter that only reads",
        |device| device.uses.push(used("sda1", Relation::Partition, open(9, "nbdkit", false))),
        None,
        Refused(&["process 9 (nbdkit), which serves it to others"]),
    ),
    (
        "claimed by an unknown",
        |device| {
            let elsewhere = Vec::new();
            device.uses.push(used("sda", Relation::Itself, UseKind::Claimed { elsewhere }));
        },
        None,
        Refused(&["in use, but not by whom"]),
    ),
    (
        "mounted in a container",
        |device| {
            let elsewhere = vec!["/data as process 7 (init) sees it".into()];
            device.uses.push(used("sda", Relation::Itself, UseKind::Claimed { elsewhere }));
        },
        None,
        Refused(&["mounted in another mount namespace: /data as process 7 (init) sees it."]),
    ),
    (
        "write-protected",
        |device| geometry(device).read_only = true,
        Some("4C530001"),
        Refused(&["/dev/sda is write-protected."]),
    ),
    ("no medium", |device| geometry(device).size_bytes = 0, None, Refused(&["There is no medium"])),
    ("zram", |device| device.kind = BlockKind::Zram, None, Refused(&["is memory"])),
    ("RAM disk", |device| device.kind = BlockKind::Ram, None, Refused(&["is memory"])),
    ("optical", |device| device.kind = BlockKind::Rom, None, Refused(&["optical"])),
    (
        "boot area of an eMMC",
        |device| device.kind = BlockKind::MmcArea,
        None,
        Refused(&["can make the board unbootable"]),
    ),
    ("raw flash", |device| device.name = "mtdblock0".into(), None, Refused(&["raw flash"])),
    (
        "what cannot be read refuses",
        |device| {
            device.unreadable.push("/proc/swaps cannot be read: permission denied".into());
        },
        Some("4C530001"),
        Refused(&[
            "Not everything could be checked: /proc/swaps cannot be read: permission denied.",
        ]),
    ),
    (
        "a device that could not be opened",
        |device| {
            device.geometry = None;
            device.unreadable.push("/dev/sda cannot be opened: permission denied".into());
        },
        None,
        Refused(&["/dev/sda cannot be opened"]),
    ),
    (
        "network device, blank",
        |device| device.kind = BlockKind::Nbd,
        None,
        Expect::Consent("4C530001"),
    ),
    ("network device, named", |device| device.kind = BlockKind::Nbd, Some("4C530001"), Allowed),
    (
        "loop device, array, mapping without users are disks like others",
        |device| device.kind = BlockKind::Md,
        None,
        Allowed,
    ),
];

#[test]
fn the_table_of_verdicts() {
    for (name, change, typed, expected) in CASES {
        let mut device = disk();
        change(&mut device);
        let consent = typed.map(Consent::new);
        let verdict = judge(&TargetFacts::Device(Box::new(device)), consent.as_ref());
        match (expected, &verdict) {
            (Allowed, Verdict::Allowed) => {}
            (Expect::Consent(text), Verdict::NeedsConsent(needed)) => {
                assert_eq!(needed.expected.text, *text, "{name}");
                assert_eq!(needed.wrong.as_deref(), typed.map(str::trim), "{name}");
            }
            (Refused(fragments), Verdict::Refused(reasons)) => {
                assert_eq!(reasons.len(), fragments.len(), "{name}: {reasons:#?}");
                for (fragment, reason) in fragments.iter().zip(reasons) {
                    assert!(reason.what.contains(fragment), "{name}: {}", reason.what);
                    assert!(reason.what.ends_with('.'), "{name}: {}", reason.what);
                    assert!(reason.next.ends_with('.'), "{name}: {}", reason.next);
                }
            }
            _ => panic!("{name}: expected {expected:?}, got {verdict:#?}"),
        }
    }
}

#[test]
fn what_is_no_device_is_refused_with_or_without_consent() {
    let asked = || "/dev/x".to_string();
    let cases = [
        (TargetFacts::Missing { asked: asked() }, "nothing was created"),
        (
            TargetFacts::Dangling { asked: asked(), target: "../sdz".into() },
            "a symbolic link to ../sdz",
        ),
        (
            TargetFacts::Unreachable {
                asked: asked(),
                why: Unseen::Denied("permission denied".into()),
            },
            "cannot be opened: permission denied",
        ),
        (
            TargetFacts::NotBlock { asked: asked(), what: "a directory" },
            "is a directory, not a block device",
        ),
        (TargetFacts::NoMedium { asked: asked() }, "no medium"),
        (TargetFacts::Named { asked: asked() }, "Nothing is known"),
    ];
    for (facts, fragment) in cases {
        for consent in [None, Some(Consent::new("/dev/x"))] {
            let Verdict::Refused(reasons) = judge(&facts, consent.as_ref()) else {
                panic!("{facts:?} was not refused");
            };
            assert_eq!(reasons.len(), 1);
            assert!(reasons[0].what.contains(fragment), "{}", reasons[0].what);
        }
    }
}

#[test]
fn a_command_to_type_is_quoted_where_a_shell_needs_it() {
    assert_eq!(quoted("/mnt/data"), "/mnt/data");
    assert_eq!(quoted("/mnt/my disk"), "'/mnt/my disk'");
    assert_eq!(quoted("it's"), r"'it'\''s'");
    assert_eq!(quoted(""), "''");
    let verdict = {
        let mut device = disk();
        let points = ["/mnt/my disk", "/mnt/my disk/in"];
        device.uses.push(used("sda", Relation::Itself, mount_at(&points)));
        judge(&TargetFacts::Device(Box::new(device)), None)
    };
    let Verdict::Refused(reasons) = verdict else {
        panic!("a mounted device was not refused");
    };
    assert_eq!(reasons[0].next, "Unmount it: `umount '/mnt/my disk/in'`, `umount '/mnt/my disk'`.");
}

/// Facts of any kind about a device, sensible or not.
fn any_device() -> impl Strategy<Value = DeviceFacts> {
    let kinds = vec![
        BlockKind::Disk,
        BlockKind::Partition,
        BlockKind::Loop,
        BlockKind::Md,
        BlockKind::Nbd,
        BlockKind::Zram,
        BlockKind::MmcArea,
    ];
    let uses = vec![
        used("sda", Relation::Itself, mount_at(&["/mnt"])),
        used("md0", Relation::Above, holder("the RAID array md0")),
        used("sda1", Relation::Partition, UseKind::Swap),
        used("sda", Relation::WholeDisk, open(1, "dd", true)),
    ];
    let geometry = proptest::option::of((0_u64..4, any::<bool>()));
    (
        prop::sample::select(kinds),
        prop::collection::vec(prop::sample::select(uses), 0..3),
        prop::collection::vec("[a-z]{1,8}", 0..3),
        prop::collection::vec("[a-z]{1,8}", 0..2),
        geometry,
        proptest::option::of("[A-C]{1,2}"),
        proptest::option::of(1_u32..3),
        any::<bool>(),
    )
        .prop_map(|(kind, uses, contents, unreadable, shape, serial, number, shared)| {
            let mut device = disk();
            device.kind = kind;
            device.uses = uses;
            device.contents = contents.iter().map(|what| content(None, what)).collect();
            device.unreadable = unreadable;
            device.geometry = shape.map(|(size_bytes, read_only)| Geometry {
                size_bytes,
                read_only,
                logical_block_bytes: 512,
                disk_sequence: None,
            });
            if device.geometry.is_none() {
                device.unreadable.push("/dev/sda cannot be opened".into());
            }
            device.identity.serial = serial;
            device.identity.partition = number;
            device.identity.serial_shared_with = shared.then(|| "sdb".into());
            device
        })
}

proptest! {
    #[test]
    fn nothing_in_use_or_unseen_is_ever_allowed(
        device in any_device(),
        typed in proptest::option::of("[A-C]{1,2}|[A-C]-part[12]|/dev/sda"),
    ) {
        let consent = typed.as_deref().map(Consent::new);
        let expected = confirmation(&device);
        let verdict = judge(&TargetFacts::Device(Box::new(device.clone())), consent.as_ref());
        let free = device.uses.is_empty() && device.unreadable.is_empty();
        let sound = device.geometry.is_some_and(|shape| shape.size_bytes > 0 && !shape.read_only);
        match verdict {
            Verdict::Allowed => {
                prop_assert!(free && sound);
                match &typed {
                    Some(typed) => prop_assert_eq!(typed, &expected.text),
                    None => prop_assert!(device.contents.is_empty()),
                }
            }
            Verdict::NeedsConsent(needed) => {
                prop_assert!(free && sound);
                // Typing what is asked for is enough, and nothing else is.
                let right = Consent::new(&needed.expected.text);
                let facts = TargetFacts::Device(Box::new(device));
                prop_assert_eq!(judge(&facts, Some(&right)), Verdict::Allowed);
            }
            Verdict::Refused(reasons) => prop_assert!(!reasons.is_empty()),
        }
    }
}
