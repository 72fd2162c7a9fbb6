//! The filters in brackets: which are on, and whether they let a setting through.
//!
//! Source: Raspberry Pi documentation, "Conditional filters": those of one kind replace each other, those of
//! different kinds must all apply, `[all]` ends them all.

use std::collections::{BTreeMap, BTreeSet};

use super::{CAPITALS, Model, Reader};

/// The filters that are on at a line, the last of each kind.
#[derive(Debug, Default)]
pub(super) struct Filters {
    on: BTreeMap<Kind, String>,
}

/// Whether a setting under filters counts.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Yes,
    No,
    /// If all of these apply.
    If(BTreeSet<String>),
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// Boards, `none`, and whatever is not known.
    Model,
    Tryboot,
    Serial,
    Monitor,
    Port,
    Pin(String),
    /// `name=value` of another name.
    Other(String),
    /// Whatever filter an unread included file ends with.
    Included,
    /// One in capital letters is taken for that in small ones.
    Capitals,
}

impl Filters {
    /// A filter line is passed.
    pub(super) fn meet(&mut self, name: &str) {
        let small = name.to_ascii_lowercase();
        let is_known = matches!(small.as_str(), "all" | "none" | "tryboot");
        if small != name && (is_known || Model::is_filter(&small)) {
            self.meet(&small);
            self.on.insert(Kind::Capitals, String::new());
            return;
        }
        if name == "all" {
            self.on.clear();
            return;
        }
        let kind = kind(name);
        if kind == Kind::Model {
            self.on.remove(&Kind::Capitals);
        }
        self.on.insert(kind, name.into());
    }

    /// A line includes a file that is not looked into: it may have left a filter on.
    pub(super) fn meet_inclusion(&mut self) {
        self.on.insert(Kind::Included, String::new());
    }

    /// Whether none is on.
    pub(super) fn is_for_all(&self) -> bool {
        self.on.is_empty()
    }

    pub(super) fn answer(&self, reader: &Reader<'_>) -> Answer {
        let mut doubtful = BTreeSet::new();
        for (kind, name) in &self.on {
            match applies(kind, name, reader) {
                Some(true) => {}
                Some(false) => return Answer::No,
                None if *kind == Kind::Capitals => {
                    doubtful.insert(CAPITALS.to_string());
                }
                None => {
                    doubtful.insert(format!("[{name}]"));
                }
            }
        }
        if doubtful.is_empty() { Answer::Yes } else { Answer::If(doubtful) }
    }
}

fn kind(name: &str) -> Kind {
    match name.split_once(['=', ':']) {
        None if name == "tryboot" => Kind::Tryboot,
        None if name.starts_with("0x") => Kind::Serial,
        None => Kind::Model,
        Some(("board-type", _)) => Kind::Model,
        Some(("EDID", _)) => Kind::Monitor,
        Some(("HDMI", _)) => Kind::Port,
        Some((pin, _)) if pin.starts_with("gpio") => Kind::Pin(pin.into()),
        Some((other, _)) => Kind::Other(other.into()),
    }
}

/// A filter that the firmware does not know has been seen to let settings through (raspberrypi/firmware, issue 1839).
fn by_name(name: &str, reader: &Reader<'_>) -> Option<bool> {
    let is_known = name == "none" || Model::is_filter(name);
    is_known.then(|| reader.model.filters.contains(&name))
}

/// Whether one filter applies; absent where only the board knows.
fn applies(kind: &Kind, name: &str, reader: &Reader<'_>) -> Option<bool> {
    match kind {
        Kind::Tryboot => Some(reader.tryboot),
        // It says to which port a setting belongs; it keeps nothing out.
        Kind::Port => Some(true),
        Kind::Model => match name.strip_prefix("board-type=") {
            Some(number) => {
                let wanted = super::number(number.trim())?;
                reader.model.type_number.map(|own| u64::from(own) == wanted)
            }
            None => by_name(name, reader),
        },
        // Only the lower half of the serial number is written in older files.
        Kind::Serial => {
            let wanted = super::number(name)?;
            let own = reader.serial?;
            Some(own == wanted || own & 0xFFFF_FFFF == wanted)
        }
        Kind::Other(other) if other == "boot_partition" => by_partition(name, reader),
        Kind::Monitor | Kind::Pin(_) | Kind::Other(_) | Kind::Included | Kind::Capitals => None,
    }
}

/// `[boot_partition=N]`: firmware that does not know it may let settings through, and cards that have it are made for one that
/// does. Source: raspberrypi/rpi-eeprom, release notes of 2025-03-10.
fn by_partition(name: &str, reader: &Reader<'_>) -> Option<bool> {
    let read = reader.partition?;
    let wanted = super::number(name.split_once('=')?.1.trim())?;
    if u64::from(read.number) == wanted {
        read.is_filter_known.then_some(true)
    } else {
        Some(false)
    }
}
