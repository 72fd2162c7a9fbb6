//! Records that others may see: without what identifies the machine or its owner.
//!
//! Serial numbers, UUIDs and hardware addresses become the pseudonyms that a capture of the machine has for them. Names of
//! home directories and of servers, and addresses, become words that are the same for everyone. Of the kernel's command
//! line only what matters to storage stays. Labels, and other names of directories, stay: their owner chose them.

#![deny(clippy::disallowed_methods)]

use rubus_host::capture::{Identifiers, Replacer};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// A record (a run, a comparison, advice) without what identifies its machine. `salt` is
/// [`rubus_host::capture::salt`].
///
/// # Errors
/// When the record cannot become JSON and back, which its own tests rule out.
pub fn redacted<T: Serialize + DeserializeOwned>(
    record: &T,
    salt: &[u8],
) -> Result<T, serde_json::Error> {
    let mut value = serde_json::to_value(record)?;
    redact(&mut value, salt);
    serde_json::from_value(value)
}

/// The same with any JSON, fields that this version does not know included.
pub fn redact(value: &mut Value, salt: &[u8]) {
    let mut found = Identifiers::new(salt);
    collect(value, Kind::Other, &mut found);
    replace(value, Kind::Other, &found.into_replacer());
}

/// What a text is, by the name of the field that it stands in or below.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Serial,
    Id,
    CommandLine,
    /// `user@host`, or what answers at the other end of a connection.
    Host,
    Other,
}

impl Kind {
    fn of(field: &str, above: Kind) -> Kind {
        match field {
            "serial" => Kind::Serial,
            "uuid" | "partuuid" => Kind::Id,
            "command_line" => Kind::CommandLine,
            "destination" | "peer" => Kind::Host,
            // Where a fact was read is a path of the kernel or the name of a document.
            "source" | "unknown" => Kind::Other,
            _ => above,
        }
    }
}

fn collect(value: &Value, kind: Kind, found: &mut Identifiers) {
    match value {
        Value::String(text) => {
            match kind {
                Kind::Serial => found.add_serial(text),
                Kind::Id => found.add_id(text),
                _ => {}
            }
            found.add_shapes(text);
        }
        Value::Array(list) => list.iter().for_each(|one| collect(one, kind, found)),
        Value::Object(fields) => {
            for (name, one) in fields {
                collect(one, Kind::of(name, kind), found);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn replace(value: &mut Value, kind: Kind, replacer: &Replacer) {
    match value {
        Value::String(text) => *text = replaced(text, kind, replacer),
        Value::Array(list) => {
            for one in list {
                replace(one, kind, replacer);
            }
        }
        Value::Object(fields) => {
            hide_server_of_mount(fields);
            for (name, one) in fields {
                replace(one, Kind::of(name, kind), replacer);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn replaced(text: &str, kind: Kind, replacer: &Replacer) -> String {
    match kind {
        Kind::Serial => replacer.identifier(text),
        Kind::Host => "host".into(),
        Kind::CommandLine => place(&replacer.text(&storage_words(text))),
        Kind::Id | Kind::Other => place(&replacer.text(text)),
    }
}

/// A network filesystem is mounted from `server:/directory` or `//server/share`.
fn hide_server_of_mount(fields: &mut Map<String, Value>) {
    if !(fields.contains_key("point") && fields.contains_key("filesystem")) {
        return;
    }
    let Some(Value::String(source)) = fields.get_mut("source") else {
        return;
    };
    if source.starts_with("//") {
        *source = "//server/share".into();
    } else if source.contains(":/") {
        *source = "server:/directory".into();
    }
}

/// A text in which names of home directories, servers and addresses are those of anybody. Doing it twice changes nothing.
pub fn place(text: &str) -> String {
    without_addresses(&without_servers(&without_homes(text)))
}

/// Directories below which there is one for each user.
const HOMES: [&str; 3] = ["/home/", "/run/media/", "/media/"];
/// The user of every Raspberry Pi, and what stands for all others.
const ANYBODY: [&str; 2] = ["pi", "user"];

fn without_homes(text: &str) -> String {
    let ends = |c: char| matches!(c, '/' | ':' | ',' | '\'' | '"') || c.is_whitespace();
    replaced_behind(text, &HOMES, ends, |name| match ANYBODY.contains(&name) {
        true => None,
        false => Some("user"),
    })
}

/// Schemes of addresses that name a machine of the owner's.
const SCHEMES: [&str; 3] = ["nbd://", "nbds://", "ssh://"];

fn without_servers(text: &str) -> String {
    let ends = |c: char| matches!(c, '/' | '?' | '#' | '\'' | '"' | ')' | ',') || c.is_whitespace();
    replaced_behind(text, &SCHEMES, ends, |_| Some("server"))
}

/// The text in which each name behind one of the starts, as far as what ends it, is replaced, where there is something for
/// it.
fn replaced_behind(
    text: &str,
    starts: &[&str],
    ends: impl Fn(char) -> bool,
    instead: impl Fn(&str) -> Option<&'static str>,
) -> String {
    let mut left = text.to_string();
    for start in starts {
        let mut out = String::with_capacity(left.len());
        let mut rest = left.as_str();
        while let Some(at) = rest.find(start) {
            let (before, name) = rest.split_at(at + start.len());
            let (name, behind) = name.split_at(name.find(&ends).unwrap_or(name.len()));
            out.push_str(before);
            let other = instead(name).filter(|_| !name.is_empty());
            out.push_str(other.unwrap_or(name));
            rest = behind;
        }
        out.push_str(rest);
        left = out;
    }
    left
}

/// The address that documents use (RFC 5737).
const ADDRESS: &str = "192.0.2.1";

/// IPv4 addresses: four numbers up to 255 with dots between them, and nothing else beside them.
fn without_addresses(text: &str) -> String {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '.';
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(is_part) {
        out.push_str(&rest[..start]);
        rest = &rest[start..];
        let length = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        let word = rest[..length].trim_end_matches('.');
        match word.parse::<std::net::Ipv4Addr>() {
            Ok(address) if !address.is_loopback() && !address.is_unspecified() => {
                out.push_str(ADDRESS);
                out.push_str(&rest[word.len()..length]);
            }
            _ => out.push_str(&rest[..length]),
        }
        rest = &rest[length..];
    }
    out.push_str(rest);
    out
}

/// Parameters that matter to storage or that every board of a kind has, by name or by the start of it.
const KEPT: [&str; 28] = [
    "root",
    "rootfstype",
    "rootflags",
    "rootwait",
    "rootdelay",
    "ro",
    "rw",
    "quiet",
    "splash",
    "resume",
    "noswap",
    "psi",
    "elevator",
    "mitigations",
    "fsck.",
    "zswap.",
    "zram.",
    "cgroup_",
    "usb-storage.",
    "usbcore.",
    "uas.",
    "nvme",
    "pcie_",
    "pcie_aspm",
    "mmc_",
    "dwc_otg.",
    "coherent_pool",
    "scsi_mod.",
];

/// A command line without the rest, which may name hosts, addresses and passwords.
fn storage_words(line: &str) -> String {
    let is_kept = |word: &&str| {
        let name = word.split('=').next().unwrap_or(word);
        KEPT.iter().any(|kept| match kept.ends_with(['.', '_']) || *kept == "nvme" {
            true => name.starts_with(kept),
            false => name == *kept,
        })
    };
    let all: Vec<&str> = line.split_whitespace().collect();
    let mut kept: Vec<&str> = all.iter().copied().filter(is_kept).collect();
    if kept.len() < all.len() && kept.last() != Some(&"…") {
        kept.push("…");
    }
    kept.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use rubus_vocabulary::fact::Fact;
    use rubus_vocabulary::fixture;
    use rubus_vocabulary::result::Run;

    const SALT: &[u8] = b"salt of a test";

    fn revealing_run() -> Run {
        let mut run = fixture::slow_sd_card_run();
        run.machine.board.serial =
            Fact::known("100000004f3a2b1c".into(), "/proc/device-tree/serial-number");
        run.machine.system.command_line = Fact::known(
            "console=serial0,115200 root=PARTUUID=4f2a9c1d-02 rootwait zswap.enabled=1 ip=10.1.2.3::10.1.2.1 \
             smsc95xx.macaddr=B8:27:EB:3A:2B:1C wifi.password=tr0ub4dor"
                .into(),
            "/proc/cmdline",
        );
        let disk = &mut run.machine.block_devices[0];
        disk.serial = Fact::known("0x8a2f9c01".into(), "/sys/block/mmcblk0/device/serial");
        run.machine.block_devices[1].identity.uuid =
            Some("0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9".into());
        run.machine.block_devices[1].identity.partuuid = Some("4f2a9c1d-02".into());
        let mut share = run.machine.mounts[0].clone();
        share.source = "attic-nas:/export/alice".into();
        share.point = "/media/alice/films".into();
        share.filesystem = "nfs4".into();
        run.machine.mounts.push(share);
        run.target.path = "/home/alice/bench".into();
        run.target.named = "nbd://attic-nas:10809/disk".into();
        run
    }

    #[test]
    fn nothing_that_identifies_the_owner_is_left() {
        let run = redacted(&revealing_run(), SALT).unwrap();
        let text = serde_json::to_string(&run).unwrap().to_lowercase();
        for secret in [
            "4f3a2b1c",
            "8a2f9c01",
            "0a1b2c3d",
            "4f2a9c1d",
            "3a:2b:1c",
            "10.1.2.3",
            "alice",
            "attic-nas",
            "tr0ub4dor",
        ] {
            assert!(!text.contains(secret), "{secret} is left");
        }
        let line = run.machine.system.command_line.text().unwrap();
        assert!(line.contains("zswap.enabled=1") && line.ends_with('…'), "{line}");
        let root = line.split_whitespace().find_map(|word| word.strip_prefix("root=PARTUUID="));
        assert_eq!(
            root,
            run.machine.block_devices[1].identity.partuuid.as_deref(),
            "one pseudonym for one partition"
        );
        assert_eq!(run.target.path, "/home/user/bench");
        assert_eq!(run.target.named, "nbd://server/disk");
    }

    #[test]
    fn what_was_measured_stays_to_the_last_bit() {
        let run = revealing_run();
        let said = redacted(&run, SALT).unwrap();
        assert_eq!(said.results, run.results);
        assert_eq!(
            (said.seed, &said.started, &said.findings),
            (run.seed, &run.started, &run.findings)
        );
        assert_eq!(said.machine.board.model, run.machine.board.model);
    }

    #[test]
    fn a_second_time_changes_nothing_but_pseudonyms() {
        for text in [
            "/home/alice/x and '/media/bob'",
            "nbds://10.0.0.7:10809/disk?tls",
            "1.2.3.4, Linux 6.12.47",
            "firmware 1.2.3.4.5",
            "/home/pi",
            "127.0.0.1",
            "",
            "/home/",
            "https://www.raspberrypi.com/documentation",
        ] {
            assert_eq!(place(&place(text)), place(text), "{text}");
        }
        assert_eq!(place("/home/alice/x and '/media/bob'"), "/home/user/x and '/media/user'");
        assert_eq!(place("nbds://10.0.0.7:10809/disk?tls"), "nbds://server/disk?tls");
        assert_eq!(place("at 1.2.3.4, Linux 6.12.47"), "at 192.0.2.1, Linux 6.12.47");
        for same in [
            "firmware 1.2.3.4.5",
            "/home/pi",
            "https://www.raspberrypi.com/documentation",
            "127.0.0.1",
        ] {
            assert_eq!(place(same), same);
        }
        let line = "root=/dev/sda1 secret=1";
        assert_eq!(storage_words(&storage_words(line)), "root=/dev/sda1 …");
    }
}
