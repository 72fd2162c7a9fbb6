//! Mounts of a file server (NFS, SMB), their options, and servers that do not answer.

use super::Look::Facts;
use super::{Rule, Seen, Weight};
use crate::parse::network_mount;
use rubus_vocabulary::kernel_log::TroubleKind;
use rubus_vocabulary::machine::{Machine, Mount};
use rubus_vocabulary::nas::{FileProtocol, NetworkMount};
use rubus_vocabulary::units::{bytes_iec, counted};

const SHARE_MEASURED: &str = "`rubus checkup` there, then after a remount with the option changed: the same rates, \
    and it costs nothing.";

pub(super) static RULES: &[Rule] = &[
    Rule {
        name: "nas-old-protocol",
        weight: Weight::Cost,
        when: "a share is mounted with version 1 of SMB, or with version 2 of NFS",
        source: "mount.cifs(8): vers=1.0 has small requests and no large credits; NFS 2 (RFC 1094) moves 8 KiB at a time",
        disproof: SHARE_MEASURED,
        look: Facts(old_protocol),
    },
    Rule {
        name: "nas-small-requests",
        weight: Weight::Cost,
        when: "a share is mounted with an rsize or wsize below 64 KiB",
        source: "nfs(5): the usual size over TCP is 1 MiB; nfsroot.txt of the kernel: 4 KiB for a network root",
        disproof: SHARE_MEASURED,
        look: Facts(small_requests),
    },
    Rule {
        name: "nas-uncached",
        weight: Weight::Cost,
        when: "a share is mounted with noac, actimeo=0 or cache=none",
        source: "nfs(5), mount.cifs(8): without a cache each read and each look at a file asks the server",
        disproof: SHARE_MEASURED,
        look: Facts(uncached),
    },
    Rule {
        name: "nas-sync",
        weight: Weight::Cost,
        when: "a share is mounted with sync",
        source: "nfs(5): with sync each write waits until the server has it on its disk",
        disproof: SHARE_MEASURED,
        look: Facts(synchronous),
    },
    Rule {
        name: "nas-soft-writes",
        weight: Weight::Danger,
        when: "a share is mounted over NFS with soft, for writing",
        source: "nfs(5): a soft timeout can cause silent data corruption in certain cases",
        disproof: "`nfsstat -m`: the flags have hard and not soft, and writes wait for the server.",
        look: Facts(soft_writes),
    },
    Rule {
        name: "nas-goes-silent",
        weight: Weight::Cost,
        when: "the kernel's log tells three times or more that a file server did not answer, ten minutes apart",
        source: "Linux, messages of net/sunrpc/clnt.c and fs/smb/client/connect.c",
        disproof: "`dmesg | grep -e 'not responding' -e 'not responded'`: the times are those of restarts of the \
                   server, and it is well.",
        look: Facts(silent),
    },
];

/// A server that is restarted does not answer once: our choice.
const MANY_SILENCES: u64 = 3;

/// Below this, requests are small: our choice. Every version in use does 64 KiB.
const SMALL_REQUEST_BYTES: u64 = 64 << 10;

/// Whether requests of this size cost a round trip too often; none is told where the protocol leaves it open.
pub fn is_small_request(bytes: u64) -> bool {
    bytes > 0 && bytes < SMALL_REQUEST_BYTES
}

fn shares(machine: &Machine) -> impl Iterator<Item = (&Mount, NetworkMount)> {
    machine.mounts.iter().filter_map(|mount| Some((mount, of(mount)?)))
}

fn of(mount: &Mount) -> Option<NetworkMount> {
    network_mount::of(&mount.filesystem, &mount.options)
}

fn seen(mount: &Mount, evidence: String, consequence: &str, fix: &str) -> Seen {
    Seen {
        about: mount.point.clone(),
        evidence,
        read_from: "/proc/self/mountinfo".into(),
        consequence: consequence.into(),
        fix: fix.into(),
        command: None,
    }
}

fn old_protocol(machine: &Machine) -> Vec<Seen> {
    let found = shares(machine).filter_map(|(mount, share)| {
        let version = share.version?;
        let is_old = match share.protocol {
            FileProtocol::Smb => version.starts_with("1."),
            FileProtocol::Nfs => version == "2" || version.starts_with("2."),
        };
        let evidence = format!("{} version {version}", share.protocol.name());
        is_old.then(|| {
            seen(
                mount,
                evidence,
                "Requests are small and few are in flight: a fraction of what the link carries. SMB 1 has no encryption, either.",
                "Mount it with vers=3 (SMB: 3.1.1, NFS: 4.2); the server may have to allow that.",
            )
        })
    });
    found.collect()
}

fn small_requests(machine: &Machine) -> Vec<Seen> {
    let found = shares(machine).filter_map(|(mount, share)| {
        let sizes = [("rsize", share.read_request_bytes), ("wsize", share.write_request_bytes)];
        let is_small = |bytes: &u64| is_small_request(*bytes);
        let small = sizes.into_iter().filter_map(|(name, bytes)| Some((name, bytes.filter(is_small)?)));
        let small: Vec<String> =
            small.map(|(name, bytes)| format!("{name} is {}", bytes_iec(bytes))).collect();
        (!small.is_empty()).then(|| {
            seen(
                mount,
                small.join(", "),
                "Each piece of that size is a request of its own, with a round trip and work at both ends.",
                "Mount it with rsize=1048576,wsize=1048576; for a network root in the options behind nfsroot=. The server may have a limit of its own.",
            )
        })
    });
    found.collect()
}

fn uncached(machine: &Machine) -> Vec<Seen> {
    let found = shares(machine).filter(|(_, share)| share.is_uncached).map(|(mount, _)| {
        seen(
            mount,
            "nothing of it is cached on this machine".into(),
            "Each read and each look at a file waits for a round trip, also of what was read a moment ago.",
            "Leave noac, actimeo=0 and cache=none out, unless several machines write the same files at the same time.",
        )
    });
    found.collect()
}

fn synchronous(machine: &Machine) -> Vec<Seen> {
    let found = shares(machine).filter(|(_, share)| share.is_sync).map(|(mount, _)| {
        seen(
            mount,
            "it is mounted with sync".into(),
            "Each write waits for a round trip and the server's disk: the rate is that of commits, not of writing.",
            "Leave sync out. Files are on the server's disk when a program closes them (NFS) or flushes them; until then a power cut of this machine loses what was written last.",
        )
    });
    found.collect()
}

fn soft_writes(machine: &Machine) -> Vec<Seen> {
    let is_at_risk = |(mount, share): &(&Mount, NetworkMount)| {
        let is_writable = !mount.options.iter().any(|option| option == "ro");
        share.protocol == FileProtocol::Nfs && share.is_soft && is_writable
    };
    let found = shares(machine).filter(is_at_risk).map(|(mount, _)| {
        seen(
            mount,
            "mounted with soft and writable".into(),
            "A server that is away for a moment makes writes fail, and a program that does not look loses them.",
            "Mount it with hard, which waits; or with ro where nothing is written.",
        )
    });
    found.collect()
}

fn silent(machine: &Machine) -> Vec<Seen> {
    let troubles = machine.kernel_log.value().map(Vec::as_slice).unwrap_or_default();
    let silent = troubles.iter().filter(|trouble| trouble.kind == TroubleKind::ServerSilent);
    let times = silent.map(|trouble| trouble.times).fold(0, u64::saturating_add);
    if times < MANY_SILENCES {
        return Vec::new();
    }
    // The log names servers as they were mounted; with one share it is clear which is meant.
    let points: Vec<&str> = shares(machine).map(|(mount, _)| mount.point.as_str()).collect();
    let about = match points.as_slice() {
        [only] => *only,
        _ => "a file server",
    };
    let reports = counted(times, "silence of a file server", "silences of a file server");
    vec![Seen {
        about: about.into(),
        evidence: format!("the kernel's log has {reports}"),
        read_from: machine.kernel_log.source().into(),
        consequence: "Each time, what programs read and write there stands still until it answers; with soft it fails.".into(),
        fix: "Look at the server first: its load, the sleep of its disks, its own log. Then at the way to it: `rubus checkup` of the share names the narrow stage.".into(),
        command: None,
    }]
}
