//! `/etc/fstab`: what is mounted where.
//!
//! Format: fstab(5), util-linux: six columns between blanks, white space inside a column as `\040`, `#` begins a
//! comment line. An edit changes the columns that it is about; every other byte of the file stays.

pub use rubus_vocabulary::mount_entry::Entry;
use std::ops::Range;

use super::mount_options::refused;
use super::volume::{Name, NamedVolume, are_members};
use rubus_vocabulary::mount_entry::unescape_octal;

/// The text of `/etc/fstab`, which can be asked and edited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fstab {
    text: String,
}

/// Something in the table that can keep a board from starting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hazard {
    /// No volume has that name.
    NotThere(Entry),
    /// A volume has it but for capital letters, and is not found by it; with the volume's own.
    OtherCase(Entry, String),
    /// Several volumes have that name.
    Ambiguous(Entry, Vec<String>),
    /// The volume holds another filesystem.
    OtherFilesystem(Entry, String),
    /// The line has an option that the filesystem of the volume refuses; with that option and the filesystem.
    RefusedOption(Entry, String, String),
    /// The start waits for a volume that is not the root and may be missing: neither `nofail` nor `noauto`.
    NotOptional(Entry),
    /// Two lines mount at one place.
    Twice(Entry),
}

fn columns(entry: &Entry) -> [String; 6] {
    [
        escaped(&entry.source),
        escaped(&entry.target),
        escaped(&entry.filesystem),
        escaped(&entry.options),
        entry.dump.to_string(),
        entry.pass.to_string(),
    ]
}

impl Fstab {
    /// Any text. Lines that are no entries are kept and passed over.
    pub fn parse(text: impl Into<String>) -> Self {
        Fstab { text: text.into() }
    }

    /// The whole text, to be written back.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// All entries in order.
    pub fn entries(&self) -> Vec<Entry> {
        let lines = self.lines().into_iter();
        lines.filter_map(|span| entry_of(&self.text[span])).collect()
    }

    /// The entry that is mounted at a place; of several the last.
    pub fn at(&self, target: &str) -> Option<Entry> {
        let mut entries = self.entries().into_iter().rev();
        entries.find(|entry| !entry.is_swap() && same_place(&entry.target, target))
    }

    /// The swap areas.
    pub fn swaps(&self) -> Vec<Entry> {
        let mut entries = self.entries();
        entries.retain(Entry::is_swap);
        entries
    }

    /// Puts an entry in the place of that with the same target (for swap areas: the same source), or
    /// behind the others. The line keeps its columns where they can be kept.
    pub fn set(&mut self, entry: &Entry) {
        let is_old = |old: &Entry| {
            if entry.is_swap() {
                old.is_swap() && old.source == entry.source
            } else {
                !old.is_swap() && same_place(&old.target, &entry.target)
            }
        };
        self.set_where(entry, is_old);
    }

    /// Puts an entry in the place of the last one that `is_old` picks, or behind the others.
    pub fn set_where(&mut self, entry: &Entry, is_old: impl Fn(&Entry) -> bool) {
        let place = self
            .lines()
            .into_iter()
            .rev()
            .find(|span| entry_of(&self.text[span.clone()]).is_some_and(|old| is_old(&old)));
        match place {
            Some(span) => {
                let line = rewritten(&self.text[span.clone()], &columns(entry));
                self.text.replace_range(span, &line);
            }
            None => self.append(&columns(entry).join("  ")),
        }
    }

    /// Removes the lines whose entries `is_it` picks. How many.
    pub fn remove(&mut self, is_it: impl Fn(&Entry) -> bool) -> usize {
        let mut kept = String::with_capacity(self.text.len());
        let mut removed = 0;
        for line in self.text.split_inclusive('\n') {
            if entry_of(line).is_some_and(|entry| is_it(&entry)) {
                removed += 1;
            } else {
                kept.push_str(line);
            }
        }
        self.text = kept;
        removed
    }

    /// What can keep a board with these volumes from starting, in the order of the lines. Whatever is mounted
    /// below `essential` places ("/", "/boot/firmware") may be waited for.
    pub fn hazards(&self, volumes: &[NamedVolume], essential: &[&str]) -> Vec<Hazard> {
        let entries = self.entries();
        let mut hazards = Vec::new();
        for (index, entry) in entries.iter().enumerate() {
            let is_twice = entries[..index]
                .iter()
                .any(|other| is_place(entry) && same_place(&other.target, &entry.target));
            if is_twice {
                hazards.push(Hazard::Twice(entry.clone()));
            }
            hazards.extend(hazard_of(entry, volumes, essential));
        }
        // Without the disk of the root nothing starts, with or without this line.
        let root = self.at("/").and_then(|entry| disk_of(&entry, volumes));
        let is_beside_root = |entry: &Entry| root.is_some() && disk_of(entry, volumes) == root;
        hazards.retain(|hazard| match hazard {
            Hazard::NotOptional(entry) => !is_beside_root(entry),
            _ => true,
        });
        hazards
    }

    fn lines(&self) -> Vec<Range<usize>> {
        let mut start = 0;
        let lines = self.text.split_inclusive('\n');
        lines
            .map(|line| {
                let span = start..start + line.len();
                start = span.end;
                span
            })
            .collect()
    }

    fn append(&mut self, line: &str) {
        if !self.text.is_empty() && !self.text.ends_with('\n') {
            self.text.push('\n');
        }
        self.text.push_str(line);
        self.text.push('\n');
    }
}

impl Hazard {
    /// The line that it is about.
    pub fn entry(&self) -> &Entry {
        match self {
            Hazard::NotThere(entry)
            | Hazard::OtherCase(entry, _)
            | Hazard::Ambiguous(entry, _)
            | Hazard::OtherFilesystem(entry, _)
            | Hazard::RefusedOption(entry, ..)
            | Hazard::NotOptional(entry)
            | Hazard::Twice(entry) => entry,
        }
    }

    /// What it is, as a sentence, with what to do.
    pub fn sentence(&self) -> String {
        match self {
            Hazard::NotThere(entry) => {
                format!("{} for {} is on no volume of this machine", entry.source, entry.target)
            }
            Hazard::OtherCase(entry, own) => format!(
                "{} for {} is not found: identifiers are compared letter by letter, and this one is {own}",
                entry.source, entry.target
            ),
            Hazard::Ambiguous(entry, paths) => {
                format!("{} for {} may be any of {}", entry.source, entry.target, paths.join(", "))
            }
            Hazard::OtherFilesystem(entry, found) => format!(
                "{} at {} is to be mounted as {}, but holds {found}",
                entry.source, entry.target, entry.filesystem
            ),
            Hazard::RefusedOption(entry, option, holds) => format!(
                "{} at {} has the option {option}, which {holds} refuses, and is not mounted",
                entry.source, entry.target
            ),
            Hazard::NotOptional(entry) => format!(
                "the start waits for {} at {}: without nofail, a missing disk ends in the emergency shell",
                entry.source, entry.target
            ),
            Hazard::Twice(entry) => format!("{} is mounted by two lines", entry.target),
        }
    }
}

fn hazard_of(entry: &Entry, volumes: &[NamedVolume], essential: &[&str]) -> Option<Hazard> {
    let name = Name::of(entry);
    let is_no_disk = !name.is_volume() || is_bind(entry) || is_made_at_start(&name);
    if is_no_disk || entry.has_option("noauto") {
        return None;
    }
    let is_optional =
        entry.has_option("nofail") || entry.is_late() && !is_essential(entry, essential);
    let found = name.resolve(volumes);
    match found.as_slice() {
        [] if !is_optional => Some(Hazard::NotThere(entry.clone())),
        [] => None,
        [_] if is_optional => None,
        [one] => {
            if let Some(own) = name.in_other_case(one).filter(|_| !entry.is_swap()) {
                return Some(Hazard::OtherCase(entry.clone(), own.into()));
            }
            let holds = one.filesystem.as_deref().unwrap_or(&entry.filesystem);
            if entry.filesystem != "auto" && !is_same_filesystem(&entry.filesystem, holds) {
                return Some(Hazard::OtherFilesystem(entry.clone(), holds.into()));
            }
            let is_native = !entry.is_swap() && !entry.filesystem.contains("fuse");
            if let Some(option) = refused(&entry.options, holds).filter(|_| is_native) {
                return Some(Hazard::RefusedOption(entry.clone(), option.into(), holds.into()));
            }
            (!is_essential(entry, essential)).then(|| Hazard::NotOptional(entry.clone()))
        }
        several if are_members(several) => None,
        several => Some(Hazard::Ambiguous(
            entry.clone(),
            several.iter().map(|volume| volume.path.clone()).collect(),
        )),
    }
}

/// The disk of the volume that a line means, where its name tells it.
fn disk_of<'a>(entry: &Entry, volumes: &'a [NamedVolume]) -> Option<&'a str> {
    match Name::of(entry).resolve(volumes).as_slice() {
        [one] => one.disk(),
        _ => None,
    }
}

/// Devices in memory are made by other parts of the start.
fn is_made_at_start(name: &Name) -> bool {
    matches!(name, Name::Path(path) if path.starts_with("/dev/zram") || path.starts_with("/dev/ram"))
}

/// A directory that is shown at another place, whatever its name looks like: `/dev/shm`.
fn is_bind(entry: &Entry) -> bool {
    ["bind", "rbind"].iter().any(|option| entry.has_option(option))
}

/// Swap areas are started beside the rest; a missing one only costs time.
fn is_essential(entry: &Entry, essential: &[&str]) -> bool {
    entry.is_swap() || essential.iter().any(|place| same_place(place, &entry.target))
}

/// Whether a filesystem of one name can be mounted under the other.
pub fn is_same_filesystem(wanted: &str, found: &str) -> bool {
    const EXTENDED: [&str; 3] = ["ext2", "ext3", "ext4"];
    let fat = |name: &str| matches!(name, "vfat" | "msdos");
    // The driver of ext4 mounts the older two; not the other way round. NTFS has several drivers, and what is
    // mounted through a program is the program's concern.
    wanted == found
        || wanted.contains("fuse")
        || wanted.contains("ntfs") && found == "ntfs"
        || wanted == "ext4" && EXTENDED.contains(&found)
        || wanted == "ext3" && found == "ext2"
        || fat(wanted) && fat(found)
        || wanted.split(',').any(|one| one == found)
}

fn is_place(entry: &Entry) -> bool {
    !entry.is_swap() && entry.target.starts_with('/')
}

fn same_place(one: &str, other: &str) -> bool {
    let bare = |path: &str| match path.trim_end_matches('/') {
        "" => "/".to_string(),
        path => path.to_string(),
    };
    bare(one) == bare(other)
}

fn entry_of(line: &str) -> Option<Entry> {
    let line = line.trim();
    if line.starts_with('#') {
        return None;
    }
    let mut columns = line.split_ascii_whitespace();
    let source = unescape_octal(columns.next()?);
    let target = unescape_octal(columns.next()?);
    let filesystem = unescape_octal(columns.next()?);
    // A comment may follow the columns that are there.
    let mut rest = columns.take_while(|column| !column.starts_with('#'));
    Some(Entry {
        source,
        target,
        filesystem,
        options: rest.next().map_or("defaults".into(), unescape_octal),
        dump: rest.next().and_then(|text| text.parse().ok()).unwrap_or(0),
        pass: rest.next().and_then(|text| text.parse().ok()).unwrap_or(0),
    })
}

fn escaped(column: &str) -> String {
    let mut out = String::with_capacity(column.len());
    for (index, c) in column.chars().enumerate() {
        match c {
            ' ' => out.push_str("\\040"),
            '\t' => out.push_str("\\011"),
            '\n' => out.push_str("\\012"),
            '\r' => out.push_str("\\015"),
            '\\' => out.push_str("\\134"),
            '#' if index == 0 => out.push_str("\\043"),
            c => out.push(c),
        }
    }
    out
}

/// A line with new columns and, as far as it goes, the old blanks between them: where the old column
/// was followed by spaces, the next one begins where it began.
fn rewritten(line: &str, columns: &[String; 6]) -> String {
    let body = line.trim_end();
    let mut out = line[..line.len() - line.trim_start().len()].to_string();
    let mut rest = body.trim_start();
    for (index, column) in columns.iter().enumerate() {
        let old = &rest[..blank_at(rest)];
        let behind = &rest[old.len()..];
        let is_comment = index > 2 && old.starts_with('#');
        let is_there = !old.is_empty() && !is_comment;
        if index > 2 && !is_there && columns[index..].iter().all(|c| c == "0" || c == "defaults") {
            // The line left out the columns that have their usual values.
            break;
        }
        let gap_bytes = behind.len() - behind.trim_start_matches([' ', '\t']).len();
        let gap = &behind[..gap_bytes];
        out.push_str(column);
        if is_there {
            rest = &behind[gap_bytes..];
        }
        if index + 1 < columns.len() {
            out.push_str(&match (is_there, gap.is_empty(), gap.contains('\t')) {
                (true, false, true) => gap.to_string(),
                (true, false, false) => {
                    let wished = (old.len() + gap.len()).saturating_sub(column.len());
                    " ".repeat(wished.max(1))
                }
                _ => " ".to_string(),
            });
        } else if is_there {
            out.push_str(gap);
        }
    }
    let mut out = if rest.is_empty() {
        out.trim_end().to_string()
    } else {
        format!("{} {rest}", out.trim_end())
    };
    out.push_str(&line[body.len()..]);
    out
}

fn blank_at(text: &str) -> usize {
    text.find(|c: char| c.is_ascii_whitespace()).unwrap_or(text.len())
}

#[cfg(test)]
mod tests;
