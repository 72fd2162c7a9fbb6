//! The guard's "no", for a person to read.

use std::fmt;

use rubus_core::units::{bytes_iec, bytes_si};

use super::facts::{Content, DeviceFacts, TargetFacts};
use super::judge::{Confirmation, ConsentNeeded, Reason, Verdict, quoted};

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
            // Nobody makes a refusal of an approval; if somebody did, it must still refuse.
            Verdict::Allowed => Why::Reasons(Vec::new()),
        };
        Refusal {
            facts: facts.clone(),
            why,
        }
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

    /// The facts on which the refusal rests.
    pub fn facts(&self) -> &TargetFacts {
        &self.facts
    }
}

impl std::error::Error for Refusal {}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let asked = self.facts.asked();
        match &self.why {
            Why::Reasons(reasons) => {
                writeln!(f, "{asked} was not touched.")?;
                self.card(f)?;
                writeln!(f)?;
                list(f, reasons)
            }
            Why::Consent(needed) => {
                writeln!(f, "{}", headline(asked, &self.facts, needed))?;
                self.card(f)?;
                ask(f, needed)
            }
        }
    }
}

fn headline(asked: &str, facts: &TargetFacts, needed: &ConsentNeeded) -> String {
    if let Some(wrong) = &needed.wrong {
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
    writeln!(
        f,
        "If all of this may be lost, confirm it with {}:",
        kind.phrase()
    )?;
    write!(f, "  --i-will-lose-everything-on={}", quoted(text))
}

fn list(f: &mut fmt::Formatter<'_>, reasons: &[Reason]) -> fmt::Result {
    for (index, reason) in reasons.iter().enumerate() {
        if index > 0 {
            writeln!(f)?;
        }
        if reasons.len() == 1 {
            write!(f, "{}\n  {}", reason.what, reason.next)?;
        } else {
            write!(f, "{}. {}\n   {}", index + 1, reason.what, reason.next)?;
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
        writeln!(f)?;
        for (name, value) in rows(device) {
            writeln!(f, "  {name:<10} {value}")?;
        }
        Ok(())
    }
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

fn content_words(content: &Content) -> String {
    let size = content
        .size_bytes
        .map(|size| format!(" ({})", bytes_iec(size)));
    let what = format!("{}{}", content.what, size.unwrap_or_default());
    match &content.partition {
        Some(partition) => format!("{partition}: {what}"),
        None => what,
    }
}
