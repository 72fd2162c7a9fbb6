//! The guard's "no", for a person to read.

use std::fmt;

// Names come from other people's disks and mount points.
use rubus_draw::text::clean;
use rubus_vocabulary::units::{bytes_iec, bytes_si};

use super::facts::{Content, DeviceFacts, TargetFacts};
use super::judge::{Confirmation, ConsentNeeded, Passing, Reason, Verdict, quoted};

/// Why a device was not opened. Shown, it is a few lines of text that end with what to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    facts: TargetFacts,
    why: Why,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Why {
    Reasons(Vec<Reason>),
    Consent(ConsentNeeded),
}

impl Refusal {
    pub(super) fn new(facts: &TargetFacts, verdict: Verdict) -> Self {
        let why = match verdict {
            Verdict::Refused(reasons) => Why::Reasons(reasons),
            Verdict::NeedsConsent(needed) => Why::Consent(needed),
            // Unreachable: refusals are not made from approvals. If one were, it must still refuse.
            Verdict::Allowed => Why::Reasons(Vec::new()),
        };
        Refusal { facts: facts.clone(), why }
    }

    /// What the user has to type when consent is all that is missing; none when no confirmation
    /// would help.
    pub fn expected_confirmation(&self) -> Option<&Confirmation> {
        match &self.why {
            Why::Consent(needed) => Some(&needed.expected),
            Why::Reasons(_) => None,
        }
    }

    /// The reasons, when no confirmation would help.
    pub fn reasons(&self) -> &[Reason] {
        match &self.why {
            Why::Reasons(reasons) => reasons,
            Why::Consent(_) => &[],
        }
    }

    /// Whether it passes by itself: it lasts as long as the reason that lasts longest.
    pub(super) fn passing(&self) -> Passing {
        let reasons = self.reasons().iter();
        let longest = reasons.map(|reason| reason.passing).max();
        longest.unwrap_or(Passing::Never)
    }

    /// Whether this user may not even look at it.
    pub fn is_denied(&self) -> bool {
        match &self.facts {
            TargetFacts::Unreachable { why, .. } => why.is_denied(),
            TargetFacts::Device(device) => device.is_denied,
            _ => false,
        }
    }

    /// The facts on which the refusal rests.
    pub fn facts(&self) -> &TargetFacts {
        &self.facts
    }
}

impl std::error::Error for Refusal {}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let asked = clean(self.facts.asked());
        match &self.why {
            Why::Reasons(reasons) => {
                writeln!(f, "{asked} was not touched.")?;
                self.card(f)?;
                writeln!(f)?;
                list(f, reasons)
            }
            Why::Consent(needed) => {
                writeln!(f, "{}", headline(&asked, &self.facts, needed))?;
                self.card(f)?;
                ask(f, needed)
            }
        }
    }
}

fn headline(asked: &str, facts: &TargetFacts, needed: &ConsentNeeded) -> String {
    if let Some(wrong) = &needed.wrong {
        let wrong = clean(wrong);
        return format!("{asked} was not touched: the confirmation '{wrong}' does not name it.");
    }
    let blank = matches!(facts, TargetFacts::Device(device) if device.contents.is_empty());
    if blank {
        return format!("{asked} was not touched: who else uses it cannot be seen from here.");
    }
    format!("{asked} was not touched: it holds data that would be lost.")
}

fn ask(f: &mut fmt::Formatter<'_>, needed: &ConsentNeeded) -> fmt::Result {
    let Confirmation { text, kind } = &needed.expected;
    writeln!(f)?;
    writeln!(f, "If all of this may be lost, confirm it with {}:", kind.phrase())?;
    write!(f, "  --i-will-lose-everything-on={}", clean(&quoted(text)))
}

fn list(f: &mut fmt::Formatter<'_>, reasons: &[Reason]) -> fmt::Result {
    for (index, reason) in reasons.iter().enumerate() {
        let (what, next) = (clean(&reason.what), clean(&reason.next));
        if index > 0 {
            writeln!(f)?;
        }
        if reasons.len() == 1 {
            write!(f, "{what}\n  {next}")?;
        } else {
            write!(f, "{}. {what}\n   {next}", index + 1)?;
        }
    }
    Ok(())
}

impl Refusal {
    /// Which device this is and what is on it, as a small table; nothing when it is no device.
    fn card(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TargetFacts::Device(device) = &self.facts else {
            return Ok(());
        };
        write!(f, "\n{}", card(device))
    }
}

/// A device as it is shown before everything on it is lost: what it is, and what is on it.
pub fn card(device: &DeviceFacts) -> String {
    let rows = rows(device).into_iter();
    let lines = rows.map(|(name, value)| format!("  {name:<10} {}\n", clean(&value)));
    lines.collect()
}

fn rows(device: &DeviceFacts) -> Vec<(&'static str, String)> {
    let mut rows = Vec::new();
    let identity = &device.identity;
    let device_row = match &device.disk {
        Some(disk) => format!("{}, a partition of /dev/{disk}", device.path),
        None => device.path.clone(),
    };
    rows.push(("device", device_row));
    rows.extend(identity.model.clone().map(|model| ("model", model)));
    if let Some(serial) = &identity.serial {
        rows.push(match &identity.serial_shared_with {
            Some(other) => ("serial", format!("{serial} (and so says {other})")),
            None => ("serial", serial.clone()),
        });
    }
    let size = device.geometry.map_or(0, |geometry| geometry.size_bytes);
    if size > 0 {
        rows.push(("size", format!("{} ({})", bytes_si(size), bytes_iec(size))));
    }
    if !identity.connected.is_empty() {
        rows.push(("connected", identity.connected.clone()));
    }
    if device.contents.is_empty() && size > 0 {
        rows.push(("on it", "nothing but zeros where it was looked".into()));
    }
    for (index, content) in device.contents.iter().enumerate() {
        let name = if index == 0 { "on it" } else { "" };
        rows.push((name, content_words(content)));
    }
    rows
}

/// Something on a device, in words.
pub fn content_words(content: &Content) -> String {
    let size = content.size_bytes.map(|size| format!(" ({})", bytes_iec(size)));
    let what = format!("{}{}", content.what, size.unwrap_or_default());
    match &content.partition {
        Some(partition) => format!("{partition}: {what}"),
        None => what,
    }
}

#[cfg(test)]
mod tests {
    use crate::guard::facts::{Relation, UseKind};
    use crate::guard::judge::tests::{content, disk, used};
    use crate::guard::{Consent, judge};

    use super::*;

    fn shown(device: DeviceFacts, typed: Option<&str>) -> String {
        let facts = TargetFacts::Device(Box::new(device));
        let consent = typed.map(Consent::new);
        Refusal::new(&facts, judge(&facts, consent.as_ref())).to_string()
    }

    fn full() -> DeviceFacts {
        let mut device = disk();
        device.contents = vec![
            content(None, "a GPT partition table"),
            content(Some("sda1"), "a vfat filesystem \"bootfs\""),
            content(Some("sda2"), "an ext4 filesystem \"rootfs\""),
        ];
        device.contents[1].size_bytes = Some(512 << 20);
        device.contents[2].size_bytes = Some(59 << 30);
        device
    }

    #[test]
    fn only_what_this_user_may_not_open_is_denied() {
        let is_denied = |device: DeviceFacts| {
            let facts = TargetFacts::Device(Box::new(device));
            Refusal::new(&facts, judge(&facts, None)).is_denied()
        };
        let mut device = disk();
        device.unreadable = vec!["/dev/sda cannot be opened: permission denied".into()];
        assert!(!is_denied(device.clone()));
        device.is_denied = true;
        assert!(is_denied(device));
    }

    #[test]
    fn content_asks_for_the_serial_number() {
        insta::assert_snapshot!(shown(full(), None), @r#"
        /dev/sda was not touched: it holds data that would be lost.

          device     /dev/sda
          model      SanDisk Ultra
          serial     4C530001
          size       64.0 GB (59.6 GiB)
          connected  USB
          on it      a GPT partition table
                     sda1: a vfat filesystem "bootfs" (512 MiB)
                     sda2: an ext4 filesystem "rootfs" (59.0 GiB)

        If all of this may be lost, confirm it with its serial number:
          --i-will-lose-everything-on=4C530001
        "#);
    }

    #[test]
    fn a_wrong_confirmation_is_quoted() {
        insta::assert_snapshot!(shown(full(), Some("4C530002")), @r#"
        /dev/sda was not touched: the confirmation '4C530002' does not name it.

          device     /dev/sda
          model      SanDisk Ultra
          serial     4C530001
          size       64.0 GB (59.6 GiB)
          connected  USB
          on it      a GPT partition table
                     sda1: a vfat filesystem "bootfs" (512 MiB)
                     sda2: an ext4 filesystem "rootfs" (59.0 GiB)

        If all of this may be lost, confirm it with its serial number:
          --i-will-lose-everything-on=4C530001
        "#);
    }

    #[test]
    fn all_reasons_are_listed_with_what_to_do() {
        let mut device = full();
        device.asked = "/dev/disk/by-label/rootfs".into();
        let kind =
            UseKind::Mounted { filesystem: "ext4".into(), points: vec!["/mnt/my data".into()] };
        device.uses.push(used("sda2", Relation::Partition, kind));
        device.uses.push(used("sda3", Relation::Partition, UseKind::Swap));
        insta::assert_snapshot!(shown(device, None), @r#"
        /dev/disk/by-label/rootfs was not touched.

          device     /dev/sda
          model      SanDisk Ultra
          serial     4C530001
          size       64.0 GB (59.6 GiB)
          connected  USB
          on it      a GPT partition table
                     sda1: a vfat filesystem "bootfs" (512 MiB)
                     sda2: an ext4 filesystem "rootfs" (59.0 GiB)

        1. /dev/sda2, a partition of /dev/sda, is mounted at /mnt/my data (ext4).
           Unmount it: `umount '/mnt/my data'`.
        2. /dev/sda3, a partition of /dev/sda, is active swap.
           Switch it off with `swapoff /dev/sda3`.
        "#);
    }

    #[test]
    fn nothing_from_a_disk_moves_the_cursor() {
        let mut device = full();
        device.contents[1].what = "a vfat filesystem \"\x1b[2J\n\"".into();
        let kind = UseKind::Mounted {
            filesystem: "vfat".into(),
            points: vec!["/media/\x1b]0;x\x07".into()],
        };
        device.uses.push(used("sda1", Relation::Partition, kind));
        let text = shown(device, None);
        assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{text:?}");
    }

    #[test]
    fn a_missing_node_needs_few_words() {
        let facts = TargetFacts::Missing { asked: "/dev/sdx".into() };
        let refusal = Refusal::new(&facts, judge(&facts, None));
        insta::assert_snapshot!(refusal.to_string(), @r"
        /dev/sdx was not touched.

        /dev/sdx does not exist, and nothing was created in its place.
          Run `lsblk` or `rubus survey` to see the devices of this machine.
        ");
        assert_eq!(refusal.expected_confirmation(), None);
        assert_eq!(refusal.reasons().len(), 1);
    }

    #[test]
    fn a_partition_without_any_number_is_confirmed_by_its_path() {
        let mut device = disk();
        device.asked = "/dev/loop3p1".into();
        device.path = "/dev/loop3p1".into();
        device.disk = Some("loop3".into());
        device.identity = crate::guard::Identity {
            connected: "loop device over /srv/my disk.img".into(),
            partition: Some(1),
            ..Default::default()
        };
        device.contents = vec![content(None, "data of an unknown kind")];
        insta::assert_snapshot!(shown(device, None), @r"
        /dev/loop3p1 was not touched: it holds data that would be lost.

          device     /dev/loop3p1, a partition of /dev/loop3
          size       64.0 GB (59.6 GiB)
          connected  loop device over /srv/my disk.img
          on it      data of an unknown kind

        If all of this may be lost, confirm it with its path (it has no serial number of its own):
          --i-will-lose-everything-on=/dev/loop3p1
        ");
    }
}
