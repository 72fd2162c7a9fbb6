//! The kernel's command line: parameters that are known pass where their value has the known form.

use super::options::{is_number, is_public_number, is_words, mount_options};
use super::paths;
use super::pseudonyms::Pseudonyms;

/// What stands at the end of a line of which something was left out.
pub const MORE: &str = "…";

/// What the value of a parameter may be.
#[derive(Clone, Copy)]
enum Value {
    /// Nothing, numbers or public words.
    Words,
    /// A number.
    Number,
    /// A device or other volume.
    Volume,
    /// Options of a mount.
    Options,
    /// A path.
    Path,
    /// Quirks of USB bridges: `152d:0578:u`.
    Quirks,
    /// Public words with signs between them: `tmpfs:swap=1,recurse=0`.
    Listed,
}

/// Parameters that say something of storage and starting, or that boards have by themselves. A name that ends with a dot or
/// an underscore stands for all that begin so (Documentation/admin-guide/kernel-parameters.txt; systemd's and dracut's own).
const PARAMETERS: &[(&str, Value)] = {
    use Value::{
        Listed as L, Number as N, Options as O, Path as P, Quirks as Q, Volume as V, Words as W,
    };
    &[
        ("root", V),
        ("resume", V),
        ("resume_offset", N),
        ("rootfstype", W),
        ("rootflags", O),
        ("rootwait", W),
        ("rootdelay", W),
        ("ro", W),
        ("rw", W),
        ("init", P),
        ("quiet", W),
        ("splash", W),
        ("plymouth.ignore-serial-consoles", W),
        ("console", W),
        ("noswap", W),
        ("psi", W),
        ("elevator", W),
        ("mitigations", W),
        ("fsck.", W),
        ("zswap.", W),
        ("zram.", W),
        ("cgroup_", W),
        ("usb-storage.quirks", Q),
        ("usb_storage.quirks", Q),
        ("usb-storage.", W),
        ("usbcore.quirks", Q),
        ("usbcore.", W),
        ("uas.", W),
        ("nvme.", W),
        ("nvme_core.default_ps_max_latency_us", W),
        ("nvme_core.io_timeout", W),
        ("nvme_core.multipath", W),
        ("pcie_", W),
        ("pcie_aspm", W),
        ("pci", W),
        ("mmc_", W),
        ("dwc_otg.", W),
        ("coherent_pool", W),
        ("scsi_mod.", W),
        ("snd_bcm2835.", W),
        ("8250.nr_uarts", W),
        ("vc_mem.", W),
        ("cma", W),
        ("swiotlb", W),
        ("numa", W),
        ("numa_policy", W),
        ("system_heap.", W),
        ("kgdboc", W),
        ("loglevel", W),
        ("logo.nologo", W),
        ("vt.global_cursor_default", W),
        ("consoleblank", W),
        ("isolcpus", W),
        ("nohz_full", W),
        ("threadirqs", W),
        ("systemd.zram", W),
        ("systemd.swap", W),
        ("overlayroot", L),
        ("systemd.volatile", W),
        ("boot", W),
        ("net.ifnames", W),
        ("noresume", W),
        ("nosplash", W),
        ("panic", W),
        ("maxcpus", W),
        ("mem", W),
        ("systemd.run", P),
        ("systemd.run_success_action", W),
        ("systemd.unit", W),
    ]
};

/// A command line of which what is not known is left out; `…` stands at its end then. Quoted values are one word, as the
/// kernel reads them.
pub fn shareable(line: &str, names: &mut Pseudonyms) -> String {
    let words = words(line);
    let mut kept: Vec<String> = Vec::new();
    let mut is_short = false;
    for word in &words {
        if word == MORE {
            is_short = true;
            continue;
        }
        match parameter(word, names) {
            Some(word) => kept.push(word),
            None => {
                names.remember(word);
                is_short = true;
            }
        }
    }
    if is_short {
        kept.push(MORE.into());
    }
    kept.join(" ")
}

/// What stands for a parameter that is left out where it stands. Its length is that of the parameter, rounded up, since a line
/// may be too long for the kernel.
const FILLER: &str = "left-out";

/// A command line in which each parameter that is not known is replaced where it stands; white space and marks of comments
/// stay, so that it reads as the original does.
pub fn in_place(line: &str, names: &mut Pseudonyms) -> String {
    const BYTE_ORDER_MARK: char = '\u{feff}';
    let body = line.trim_start_matches(BYTE_ORDER_MARK);
    let mut said = line[..line.len() - body.len()].to_string();
    let mut rest = body;
    for word in words(body) {
        let at = rest.find(word.as_str()).unwrap_or(0);
        said.push_str(&rest[..at]);
        rest = &rest[at + word.len()..];
        match parameter(&word, names) {
            Some(word) => said.push_str(&word),
            None if word.chars().all(|c| c == '#') => said.push_str(&word),
            None if is_remote(&word) => said.push_str(&remote_root(&word)),
            None => {
                said.push_str(if word.starts_with('#') { "#" } else { "" });
                said.push_str(&filler(word.len()));
            }
        }
    }
    said + rest
}

fn is_remote(word: &str) -> bool {
    word.strip_prefix("root=").is_some_and(is_remote_root)
}

/// "root=nbd:left-out": that the root comes over the network, without from where.
fn remote_root(word: &str) -> String {
    let value = word.trim_start_matches("root=");
    let scheme = value.split([':', '/', '@']).next().unwrap_or_default();
    if is_words(scheme) && !scheme.is_empty() {
        format!("root={scheme}:{FILLER}")
    } else {
        format!("root={FILLER}:")
    }
}

fn filler(bytes: usize) -> String {
    let length = bytes.div_ceil(FILLER.len()).max(1) * FILLER.len();
    // A format's width ends at 65,535.
    format!("{FILLER}{}", "x".repeat(length - FILLER.len()))
}

/// The words of the line; white space between quotes separates none (`next_arg` in the kernel's lib/cmdline.c).
fn words(line: &str) -> Vec<String> {
    let mut all = Vec::new();
    let mut word = String::new();
    let mut is_quoted = false;
    for c in line.chars() {
        if c == '"' {
            is_quoted = !is_quoted;
        }
        if c.is_whitespace() && !is_quoted {
            all.push(std::mem::take(&mut word));
        } else {
            word.push(c);
        }
    }
    all.push(word);
    all.retain(|word| !word.is_empty());
    all
}

fn parameter(word: &str, names: &mut Pseudonyms) -> Option<String> {
    let (name, value) = match word.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (word, None),
    };
    let is_name = |known: &str| {
        if known.ends_with(['.', '_']) {
            name.strip_prefix(known).is_some_and(|rest| !rest.is_empty() && is_words(rest))
        } else {
            name == known
        }
    };
    let (_, form) = PARAMETERS.iter().find(|(known, _)| is_name(known))?;
    let Some(value) = value else {
        return Some(name.to_string());
    };
    let value = match form {
        Value::Words => {
            let is_public = value.is_empty() || is_words(value) || is_public_number(value);
            is_public.then(|| value.to_string())?
        }
        Value::Listed => {
            let mut pieces = value.split([':', ',', '=']);
            let is_public =
                |piece: &str| piece.is_empty() || is_words(piece) || is_public_number(piece);
            pieces.all(is_public).then(|| value.to_string())?
        }
        Value::Number => is_number(value).then(|| value.to_string())?,
        Value::Volume if is_remote_root(value) => return None,
        Value::Volume if value == "/dev/nfs" => value.to_string(),
        Value::Volume => paths::volume(value, names),
        Value::Options => mount_options(value, names),
        Value::Path => paths::path(value, names),
        Value::Quirks => {
            value.trim_matches('"').split(',').all(is_quirk).then(|| value.to_string())?
        }
    };
    Some(format!("{name}={value}"))
}

/// Roots over a network name servers, users and passwords in forms of their own (dracut.cmdline(7)).
fn is_remote_root(value: &str) -> bool {
    let scheme = value.split(':').next().unwrap_or_default();
    value.starts_with("//")
        || ["nfs", "nfs4", "nbd", "iscsi", "cifs", "http", "https", "live", "fcoe", "aoe"]
            .contains(&scheme)
        || value.contains('@')
}

/// "152d:0578:u".
fn is_quirk(text: &str) -> bool {
    let parts: Vec<&str> = text.split(':').collect();
    let is_id = |id: &str| (1..=4).contains(&id.len()) && id.bytes().all(|b| b.is_ascii_hexdigit());
    // More letters could spell a name.
    let is_flags = |flags: &str| flags.len() <= 2 && flags.bytes().all(|b| b.is_ascii_lowercase());
    matches!(parts.as_slice(), [vendor, product, flags @ ..]
        if is_id(vendor) && is_id(product) && flags.len() <= 1 && flags.iter().all(|f| is_flags(f)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_of_a_board_stays_but_for_its_identities() {
        let mut names = Pseudonyms::default();
        let line = "console=serial0,115200 console=tty1 root=PARTUUID=4f2a9c1d-02 rootfstype=ext4 fsck.repair=yes rootwait \
                    quiet usb-storage.quirks=152d:0578:u zswap.enabled=1 cgroup_enable=memory";
        assert_eq!(shareable(line, &mut names), line.replace("4f2a9c1d", "uuid-1"));
    }

    #[test]
    fn where_the_root_keeps_nothing_is_kept() {
        let line = "systemd.volatile=overlay overlayroot=tmpfs:swap=1,recurse=0 boot=overlay";
        assert_eq!(shareable(line, &mut Pseudonyms::noting()), line);
        let secret = "overlayroot=device:dev=/dev/disk/by-label/qzalice";
        assert_eq!(shareable(secret, &mut Pseudonyms::noting()), MORE);
    }

    #[test]
    fn a_long_number_is_a_size_where_it_has_a_unit_or_is_round() {
        let mut names = Pseudonyms::default();
        let line = "mem=512M mem=4096000 mem=4915551 quiet";
        assert_eq!(shareable(line, &mut names), "mem=512M mem=4096000 quiet …");
    }

    #[test]
    fn a_parameter_of_any_length_has_a_filler() {
        for bytes in [0, 1, FILLER.len(), 70_000] {
            assert!(filler(bytes).len() >= bytes.max(FILLER.len()), "{bytes}");
        }
    }

    #[test]
    fn what_is_not_known_is_left_out_whole() {
        for secret in [
            "ip=10.1.2.3::10.1.2.1:255.255.255.0:attic:eth0:off",
            "smsc95xx.macaddr=B8:27:EB:3A:2B:1C",
            "wifi.password=x1",
            "x=\"a root=hunter2 b\"",
            "nfsroot=10.1.1.1:/srv",
            "root=iscsi:user:pass@server::::iqn.x",
            "root=nbd:server:disk",
            "root=//server/share",
            "root=nfs:server:/x",
            "cifsroot=//server/s,password=p",
            "nvme_core.hostnqn=nqn.alice",
            "rd.luks.uuid=11112222-3333",
            "cryptdevice=UUID=2222:crypt",
            "systemd.hostname=attic",
            "init=/home/alice/x/../y",
            "usb-storage.quirks=152d:0578:alice",
            "usbcore.quirks=152d:0578:u,152d:0579:alice",
            "console=1 9 2",
            "panic=\"1 9 2 . 1 6 8\"",
            "cma=192_168_1_5",
        ] {
            let mut names = Pseudonyms::default();
            let kept = shareable(&format!("quiet {secret} splash"), &mut names);
            assert!(kept.starts_with("quiet "), "{kept}");
            for word in [
                "10.1", "attic", "B8:27", "hunter2", "server", "alice", "pass", "1111", "crypt",
                "x1",
            ] {
                assert!(!kept.contains(word), "{secret}: {kept}");
            }
            assert_eq!(shareable(&kept, &mut names), kept, "a second time changes nothing");
        }
    }
}
