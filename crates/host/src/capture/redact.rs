//! Replacing identities by pseudonyms, everywhere in a record.
//!
//! A pseudonym is a number that is counted within one capture, is as long as the secret, and looks like
//! it where something reads it: hexadecimal digits stay hexadecimal digits, separators stay. So
//! `root=PARTUUID=…` still finds its partition, and offsets in binary pages stay right.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Range;

use super::patterns::{Pattern, Patterns};
use super::secrets::{ID_FILES, Reach, SERIAL_FILES, Secrets, Shape};
use super::{escapes, shapes};
use crate::files::ReadError;
use crate::shareable::words::HOMES;
use crate::simulated::recorder::Record;
use crate::simulated::tree::Contents;

/// Knows what to replace and by what.
pub(crate) struct Redactor {
    /// What was replaced so far, by what is the same in all its spellings, with its number.
    numbers: RefCell<BTreeMap<Vec<u8>, u32>>,
    patterns: Patterns,
    count: usize,
}

impl Redactor {
    pub(crate) fn new(secrets: Secrets) -> Self {
        let mut redactor = Redactor {
            numbers: RefCell::default(),
            patterns: Patterns::new([]),
            count: secrets.found.len(),
        };
        let mut patterns = Vec::new();
        for (text, (shape, reach)) in secrets.found {
            if matches!(shape, Shape::Hex | Shape::Address) {
                patterns.extend(redactor.binary_forms(&text, shape));
            }
            patterns.push(Pattern { bytes: text.into_bytes(), shape, reach, raw: None });
        }
        redactor.patterns = Patterns::new(patterns);
        redactor
    }

    /// How many different identities are replaced.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// The same digits as bytes, in the order of the digits, and for a UUID also as partition
    /// tables have it, with the first three fields turned round. Short ones would be found
    /// everywhere by chance.
    fn binary_forms(&self, text: &str, shape: Shape) -> Vec<Pattern> {
        let Some(old) = digits_as_bytes(text.as_bytes()).filter(|old| old.len() >= 6) else {
            return Vec::new();
        };
        let Some(new) = digits_as_bytes(&self.pseudonym(text.as_bytes(), shape)) else {
            return Vec::new();
        };
        let raw = |bytes: Vec<u8>, raw: Vec<u8>| Pattern {
            bytes,
            shape: Shape::Hex,
            reach: Reach::Everywhere,
            raw: Some(raw),
        };
        let is_uuid = old.len() == 16;
        let turned = is_uuid.then(|| raw(turned(&old), turned(&new)));
        turned.into_iter().chain([raw(old, new)]).collect()
    }

    /// Replaces everything in place.
    pub(crate) fn redact(&self, record: &mut Record) {
        let kinds = card_kinds(record);
        record.files = std::mem::take(&mut record.files)
            .into_iter()
            .map(|(path, contents)| {
                let bytes = self.file(&path, &contents.bytes, &kinds);
                let whole = contents.whole;
                (self.path(&path), Contents { bytes, whole })
            })
            .collect();
        record.directories = std::mem::take(&mut record.directories)
            .into_iter()
            .map(|(path, names)| {
                let prefix = if path == "/" { "/" } else { &format!("{path}/") };
                let mut names: Vec<String> = names
                    .iter()
                    .map(|name| self.path(&format!("{prefix}{name}")))
                    .map(|full| full.rsplit('/').next().unwrap_or_default().to_string())
                    .collect();
                names.sort_unstable();
                (self.path(&path), names)
            })
            .collect();
        record.links = std::mem::take(&mut record.links)
            .into_iter()
            .map(|(path, target)| (self.path(&path), self.path(&target)))
            .collect();
        record.spaces = std::mem::take(&mut record.spaces)
            .into_iter()
            .map(|(path, space)| (self.path(&path), space))
            .collect();
        record.programs = std::mem::take(&mut record.programs)
            .into_iter()
            .map(|(call, answer)| {
                let call = call.iter().map(|word| self.text(word)).collect();
                let answer =
                    answer.map(|output| self.text(&output)).map_err(|error| self.error(error));
                (call, answer)
            })
            .collect();
        record.errors = std::mem::take(&mut record.errors)
            .into_iter()
            .map(|((path, question), error)| ((self.path(&path), question), self.error(error)))
            .collect();
    }

    fn error(&self, error: ReadError) -> ReadError {
        match error {
            ReadError::Failed { status, complaint, output } => ReadError::Failed {
                status,
                complaint: self.text(&complaint),
                output: self.text(&output),
            },
            ReadError::Other(text) => ReadError::Other(self.text(&text)),
            plain => plain,
        }
    }

    fn path(&self, path: &str) -> String {
        self.lossless(path, Place::of_path(path))
    }

    fn text(&self, text: &str) -> String {
        self.lossless(text, Place::Anywhere)
    }

    fn lossless(&self, text: &str, place: Place) -> String {
        let replaced = self.replace(text.as_bytes(), place);
        String::from_utf8_lossy(&replaced).into_owned()
    }

    fn file(&self, path: &str, bytes: &[u8], kinds: &BTreeMap<String, String>) -> Vec<u8> {
        let (directory, name) = path.rsplit_once('/').unwrap_or(("", path));
        if name == "cid" {
            return self.card_register(bytes, kinds.get(directory).map(String::as_str));
        }
        if path.starts_with(UDEV) {
            let lines = bytes.split_inclusive(|byte| *byte == b'\n');
            return lines.flat_map(|line| self.replace(line, Place::of_udev_line(line))).collect();
        }
        self.replace(bytes, Place::of_path(path))
    }

    /// Everything else in the register says what kind of card it is and stays; the check digits at
    /// the end would give seven bits of the serial number away.
    fn card_register(&self, bytes: &[u8], kind: Option<&str>) -> Vec<u8> {
        let text = String::from_utf8_lossy(bytes).into_owned();
        let register = text.trim();
        if register.len() != 32 || !shapes::is_hex(register) {
            return self.replace(bytes, Place::Serials);
        }
        let (start, end) = shapes::serial_in_cid(kind);
        let pseudonym = self.pseudonym(&register.as_bytes()[start..end], Shape::Hex);
        let newline = if text.ends_with('\n') { "\n" } else { "" };
        format!(
            "{}{}{}00{newline}",
            &register[..start],
            String::from_utf8_lossy(&pseudonym),
            &register[end..30]
        )
        .into_bytes()
    }

    /// One pass from left to right, so that no pseudonym is replaced again.
    fn replace(&self, bytes: &[u8], place: Place) -> Vec<u8> {
        let mut out = Vec::with_capacity(bytes.len());
        let mut at = 0;
        while at < bytes.len() {
            match self.match_at(bytes, at, place) {
                Some(pattern) => {
                    let found = &bytes[at..at + pattern.bytes.len()];
                    match &pattern.raw {
                        Some(raw) => out.extend_from_slice(raw),
                        None => out.extend(self.pseudonym(found, pattern.shape)),
                    }
                    let end = at + pattern.bytes.len();
                    let rest = self.overhang(bytes, at..end, place);
                    at = end + rest.len();
                    out.extend(rest);
                }
                None => {
                    out.push(bytes[at]);
                    at += 1;
                }
            }
        }
        out
    }

    /// What stands behind a secret for the rest of others that begin inside it and end after it: "b-c" in "a-b-c" where "a-b"
    /// was replaced. It is as long as that rest.
    fn overhang(&self, bytes: &[u8], replaced: Range<usize>, place: Place) -> Vec<u8> {
        let (mut out, mut at, mut end) = (Vec::new(), replaced.start + 1, replaced.end);
        while at < end {
            if let Some(pattern) = self.match_at(bytes, at, place)
                && at + pattern.bytes.len() > end
            {
                let length = at + pattern.bytes.len() - end;
                let rest = &bytes[end..end + length];
                match (&pattern.raw, pattern.shape) {
                    (Some(raw), _) => out.extend_from_slice(&raw[raw.len() - length..]),
                    // What names the maker is not in the rest, or not whole.
                    (None, Shape::Address | Shape::Board) => {
                        out.extend(self.pseudonym(rest, Shape::Hex));
                    }
                    (None, shape @ (Shape::Hex | Shape::Serial | Shape::Name)) => {
                        out.extend(self.pseudonym(rest, shape));
                    }
                }
                end += length;
            }
            at += 1;
        }
        out
    }

    fn match_at(&self, bytes: &[u8], at: usize, place: Place) -> Option<&Pattern> {
        self.patterns.at_start_of(&bytes[at..]).find(|pattern| {
            let alone = || shapes::stands_alone(bytes, at, pattern.bytes.len());
            let is_user = || is_behind_homes(&bytes[..at]);
            let links = || links_before(&bytes[..at]);
            match pattern.reach {
                Reach::Everywhere => true,
                Reach::Words => alone(),
                // Filters of config.txt are by the board's number.
                Reach::IdentityPlaces => {
                    let marks: [&[u8]; 2] = [b"[0x", b"UUID="];
                    let is_named = marks.iter().any(|mark| bytes[..at].ends_with(mark));
                    (place != Place::Anywhere || is_named || links().is_some() || is_user())
                        && alone()
                }
                Reach::SerialPlaces => {
                    let is_by_id = || links().is_some_and(|directory| directory == b"by-id");
                    (place == Place::Serials || is_by_id() || is_user()) && alone()
                }
                Reach::UserPlaces => is_user() && alone(),
            }
        })
    }

    /// As long as the secret, and in its case.
    fn pseudonym(&self, secret: &[u8], shape: Shape) -> Vec<u8> {
        let number = self.number(secret, shape);
        match shape {
            Shape::Hex => with_digits(secret, 0, number),
            Shape::Board => {
                let (first, last) = secret.split_at(secret.len() - BOARD_DIGITS.min(secret.len()));
                [with_digits(first, 0, number), with_digits(last, 0, number)].concat()
            }
            // Six digits name the maker.
            Shape::Address => with_digits(secret, 6, number),
            Shape::Serial => named(b"serial-", secret, number),
            Shape::Name => named(b"host-", secret, number),
        }
    }

    /// The number of a secret in all its spellings, from 1.
    fn number(&self, secret: &[u8], shape: Shape) -> u32 {
        let board = match shape {
            Shape::Board => secret.len().saturating_sub(BOARD_DIGITS),
            Shape::Hex | Shape::Address | Shape::Serial | Shape::Name => 0,
        };
        let canonical: Vec<u8> = match shape {
            Shape::Hex | Shape::Board | Shape::Address => secret[board..]
                .iter()
                .filter(|byte| byte.is_ascii_hexdigit())
                .map(u8::to_ascii_lowercase)
                .collect(),
            Shape::Serial | Shape::Name => {
                let small = |unit: &escapes::Unit<'_>| match unit.byte {
                    b'_' => b' ',
                    byte => byte.to_ascii_lowercase(),
                };
                let units = escapes::units(secret);
                without_kind(&units.iter().map(small).collect::<Vec<u8>>())
            }
        };
        let mut numbers = self.numbers.borrow_mut();
        let next = numbers.len() as u32 + 1;
        *numbers.entry(canonical).or_insert(next)
    }
}

/// How many digits of a board's number stand alone: in a filter of config.txt, on the kernel's command line.
const BOARD_DIGITS: usize = 8;

/// `length` hexadecimal digits that end in a number. Their start keeps readers from taking them for zeros, which makers
/// use where there is no identity.
fn counted(number: u32, length: usize) -> Vec<u8> {
    let number = format!("{number:x}");
    // A format's width ends at 65,535.
    let mut digits = format!("5ec{}", "0".repeat(length.saturating_sub(3)));
    digits.truncate(length.saturating_sub(number.len()));
    let digits = digits + &number;
    digits.as_bytes()[digits.len() - length..].to_vec()
}

/// The text with its hexadecimal digits from the given one on replaced by a number, in the same case.
fn with_digits(text: &[u8], from: usize, number: u32) -> Vec<u8> {
    let is_upper = text.iter().any(u8::is_ascii_uppercase);
    let count = text.iter().filter(|byte| byte.is_ascii_hexdigit()).count();
    let digits = counted(number, count.saturating_sub(from));
    let mut out = text.to_vec();
    let places = out.iter_mut().filter(|byte| byte.is_ascii_hexdigit()).skip(from);
    for (byte, digit) in places.zip(digits) {
        *byte = if is_upper { digit.to_ascii_uppercase() } else { digit };
    }
    out
}

/// The mark and a number, together of a length; a short one has no room for the mark.
fn marked(mark: &[u8], length: usize, number: u32) -> Vec<u8> {
    let mark = if length >= mark.len() + 4 { mark } else { b"" };
    [mark, &counted(number, length - mark.len())].concat()
}

/// What stands for a name, in its writing. What separates its words stays, since programs read these in several writings,
/// and so do those of its parts of which programs make something.
fn named(mark: &[u8], secret: &[u8], number: u32) -> Vec<u8> {
    let units = escapes::units(secret);
    let plain: Vec<u8> = units.iter().map(|unit| unit.byte).collect();
    let needed = format!("{number:x}").len().max(2);
    let is_separator = |byte: u8| b" _\t\n\\#".contains(&byte);
    let places = |kept: &[Range<usize>]| {
        let is_kept = |at: &usize| kept.iter().any(|part| part.contains(at));
        let others = (0..plain.len()).filter(|at| !is_kept(at) && !is_separator(plain[*at]));
        others.collect::<Vec<usize>>()
    };
    // The ending says the most.
    let kept = known_parts(&plain);
    let choices = [kept.as_slice(), kept.get(..1).unwrap_or_default(), &[]];
    let found = choices.into_iter().map(places).find(|places| places.len() >= needed);
    let places = found.unwrap_or_else(|| (0..plain.len()).collect());
    let is_whole = places.windows(2).all(|pair| pair[0] + 1 == pair[1]);
    let digits = marked(if is_whole { mark } else { b"" }, places.len(), number);
    let mut said = plain;
    for (place, digit) in places.into_iter().zip(digits) {
        said[place] = digit;
    }
    units.iter().zip(said).flat_map(|(unit, byte)| unit.written_as(byte)).collect()
}

/// Endings of files by which programs know what they are.
const ENDINGS: [&str; 34] = [
    "_efi.fd",
    "_efi.img",
    ".efi",
    ".img",
    ".bin",
    ".elf",
    ".txt",
    ".conf",
    ".dtb",
    ".dtbo",
    ".dat",
    ".gz",
    ".xz",
    ".zst",
    ".lz4",
    ".ko",
    ".ko.xz",
    ".ko.zst",
    ".ko.gz",
    ".iso",
    ".qcow2",
    ".snap",
    ".service",
    ".socket",
    ".mount",
    ".automount",
    ".swap",
    ".timer",
    ".path",
    ".target",
    ".rules",
    ".sh",
    ".json",
    ".cpio",
];
/// Words in names of files by which programs know what they are, or with what they belong together.
const WORDS: [&str; 10] = [
    "u-boot",
    "uboot",
    "u_boot",
    "barebox",
    "kernel",
    "vmlinuz",
    "vmlinux",
    "initrd",
    "initramfs",
    "cmdline",
];

/// What stays of the name of a file: its ending, a known word, the number by which files are put in order.
fn known_parts(name: &[u8]) -> Vec<Range<usize>> {
    let small = String::from_utf8_lossy(name).to_ascii_lowercase();
    // Of a name that is no text, other bytes would stand there.
    if small.len() != name.len() {
        return Vec::new();
    }
    let endings = ENDINGS.iter().filter(|ending| small.ends_with(**ending));
    let ending = endings.map(|ending| ending.len()).max().unwrap_or(0);
    // The firmware takes what belongs to a kernel by this word, and it has no ending.
    if ending == 0 && !small.contains("initramfs") {
        return Vec::new();
    }
    let end = name.len() - ending;
    let stem = &small[..end];
    let digits = stem.bytes().take_while(u8::is_ascii_digit).count();
    let is_order = (1..=2).contains(&digits) && stem[digits..].starts_with(['-', '_']);
    let order = is_order.then_some(0..digits + 1);
    let word = WORDS.iter().find_map(|word| Some((stem.find(word)?, word.len())));
    let word = word.map(|(at, length)| at..at + length);
    std::iter::once(end..name.len()).chain(word).chain(order).collect()
}

/// What is the same of a kernel's name and of its initial RAM filesystem's, "kernel8.img" and "initramfs8".
fn without_kind(name: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(name);
    if text.contains("initramfs") || text.contains("kernel") {
        let stem = text.strip_suffix(".img").unwrap_or(&text);
        stem.replacen("initramfs", "kernel", 1).into_bytes()
    } else {
        name.to_vec()
    }
}

/// The kind of card by the directory of its files.
fn card_kinds(record: &Record) -> BTreeMap<String, String> {
    record
        .files
        .iter()
        .filter_map(|(path, contents)| {
            let directory = path.strip_suffix("/type")?;
            let kind = String::from_utf8_lossy(&contents.bytes).trim().to_string();
            Some((directory.to_string(), kind))
        })
        .collect()
}

/// Where udev keeps what it knows of each device.
const UDEV: &str = "/run/udev/data/";

/// What a text is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// Any text.
    Anywhere,
    /// Identities, labels that people gave among them.
    Identities,
    /// Serial numbers.
    Serials,
}

impl Place {
    fn of_path(path: &str) -> Place {
        let name = path.rsplit('/').next().unwrap_or(path);
        if SERIAL_FILES.contains(&name) || path.starts_with("/dev/disk/by-id/") {
            return Place::Serials;
        }
        let is_about =
            ID_FILES.contains(&name) || path.starts_with(UDEV) || path.starts_with("/dev/disk/");
        if is_about { Place::Identities } else { Place::Anywhere }
    }

    /// Of udev's properties, and of the links that it makes, some are serial numbers.
    fn of_udev_line(line: &[u8]) -> Place {
        let serials: [&[u8]; 6] = [
            b"E:ID_SERIAL",
            b"E:ID_USB_SERIAL",
            b"E:ID_SCSI_SERIAL",
            b"E:ID_NVME_SERIAL",
            b"E:SCSI_IDENT_SERIAL",
            b"S:disk/by-id/",
        ];
        if serials.iter().any(|start| line.starts_with(start)) {
            Place::Serials
        } else {
            Place::Identities
        }
    }
}

/// The directory of links below /dev/disk, such as "by-id", in which the name stands that is not at its end here.
fn links_before(before: &[u8]) -> Option<&[u8]> {
    const MAX_PATH: usize = 256;
    let near = &before[before.len().saturating_sub(MAX_PATH)..];
    let word = near.rsplit(u8::is_ascii_whitespace).next()?;
    let mut parts = word.rsplit(|byte| *byte == b'/').skip(1);
    let directory = parts.next().filter(|directory| directory.starts_with(b"by-"))?;
    parts.next().is_some_and(|parent| parent == b"disk").then_some(directory)
}

/// Whether a directory of users ends here; doubled slashes separate nothing.
fn is_behind_homes(before: &[u8]) -> bool {
    let slashes = before.iter().rev().take_while(|byte| **byte == b'/').count();
    let parent = &before[..before.len() - slashes];
    slashes > 0
        && HOMES.iter().any(|home| {
            parent
                .strip_suffix(home.as_bytes())
                .is_some_and(|rest| !rest.last().is_some_and(u8::is_ascii_alphanumeric))
        })
}

/// The value of an even number of hexadecimal digits, separators left out.
fn digits_as_bytes(text: &[u8]) -> Option<Vec<u8>> {
    let digits: Vec<u8> = text
        .iter()
        .filter(|byte| byte.is_ascii_hexdigit())
        .map(|byte| (*byte as char).to_digit(16).unwrap_or(0) as u8)
        .collect();
    if digits.len() % 2 != 0 {
        return None;
    }
    Some(digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}

/// A UUID as GPT stores it: the first three fields little-endian.
fn turned(bytes: &[u8]) -> Vec<u8> {
    let mut turned = bytes.to_vec();
    turned[..4].reverse();
    turned[4..6].reverse();
    turned[6..8].reverse();
    turned
}

#[cfg(test)]
mod tests {
    use super::super::reading::read_everything_there;
    use super::super::secrets;
    use super::*;
    use crate::simulated::fake::FakeFiles;
    use crate::simulated::recorder::Recorder;

    #[test]
    fn a_pseudonym_is_as_long_as_what_it_stands_for() {
        for length in [1, 2, 3, 16, 70_000] {
            assert_eq!(counted(0x1f, length).len(), length, "{length}");
        }
        assert_eq!(counted(0x1f, 8), b"5ec0001f");
    }

    #[test]
    fn thousands_of_names_are_looked_for_in_one_pass() {
        let names: Vec<String> = (0..20_000).map(|n| format!("qzname{n}")).collect();
        let text = format!("{} ", names.join(" ")).repeat(4);
        let files = FakeFiles::new().file("/etc/x", &text);
        let recorder = Recorder::new(&files);
        read_everything_there(&recorder);
        let mut record = recorder.record();
        // Each tried at each place, this compares ten thousand million pairs.
        Redactor::new(secrets::find(&files, &record, &names)).redact(&mut record);
        let said = String::from_utf8_lossy(&record.files["/etc/x"].bytes).into_owned();
        assert!(!said.contains("qzname") && said.len() == text.len());
    }

    #[test]
    fn nothing_is_left_of_secrets_that_overlap() {
        let text = "nas-qzalice-qzfotos b8-27-eb-3a-2b-1c-9d-8e\n";
        let files = FakeFiles::new().file("/etc/x", text);
        let recorder = Recorder::new(&files);
        read_everything_there(&recorder);
        let mut record = recorder.record();
        let names = ["nas-qzalice", "qzalice-qzfotos"].map(str::to_string);
        Redactor::new(secrets::find(&files, &record, &names)).redact(&mut record);
        let said = String::from_utf8_lossy(&record.files["/etc/x"].bytes).into_owned();
        let left = ["qz", "fotos", "3a-2b", "9d", "8e"].map(|secret| said.contains(secret));
        assert_eq!((left, said.len()), ([false; 5], text.len()), "{said}");
    }

    #[test]
    fn the_version_of_a_kernel_is_no_address() {
        let release = "5.15.146.1-microsoft-standard-WSL2\n";
        let files = FakeFiles::new()
            .file("/proc/sys/kernel/osrelease", release)
            .file("/etc/x", "5.15.146.2\n");
        let recorder = Recorder::new(&files);
        read_everything_there(&recorder);
        let mut record = recorder.record();
        Redactor::new(secrets::find(&files, &record, &[])).redact(&mut record);
        let text = |path: &str| String::from_utf8_lossy(&record.files[path].bytes).into_owned();
        assert_eq!(text("/proc/sys/kernel/osrelease"), release);
        assert_ne!(text("/etc/x"), "5.15.146.2\n");
    }

    #[test]
    fn a_pseudonym_keeps_the_ends_and_the_writing_of_a_name() {
        let of = |name: &str| String::from_utf8(named(b"host-", name.as_bytes(), 0x1f)).unwrap();
        for (name, pseudonym) in [
            ("qzalice", "5ec001f"),
            ("qzalicebox", "host-5ec1f"),
            ("qzkernel.img", "1fkernel.img"),
            ("QZKernel.IMG", "1fKernel.IMG"),
            ("10-qzalice.conf", "10-5ec001f.conf"),
            ("u-boot-qz.bin", "u-boot51f.bin"),
            ("99-q.conf", "5e1f.conf"),
            ("qzimage1.img", "5ec0001f.img"),
            ("qzkernel8.img", "51kernelf.img"),
            ("my-kernel-qz.img", "5eckernel01f.img"),
            ("my-initramfs-qz", "5ecinitramfs01f"),
            ("99-qz-initramfs.conf", "99-51finitramfs.conf"),
            ("q.conf", "5ec01f"),
            ("Qz Root", "5e c01f"),
            ("Qz_Root", "5e_c01f"),
            ("Qz\\x20Root", "5e\\x20c01f"),
            ("Qz\\040Root", "5e\\040c01f"),
            ("%71%7A", "%31%66"),
        ] {
            assert_eq!(of(name), pseudonym, "{name}");
        }
    }

    #[test]
    fn the_last_digits_of_a_boards_number_are_those_of_its_pseudonym() {
        let own = "10000000aabbccdd";
        let files = FakeFiles::new()
            .file("/proc/cpuinfo", format!("Serial\t\t: {own}\n"))
            .file("/proc/device-tree/serial-number", format!("{own}\0"))
            .file("/proc/cmdline", "bcm2709.serial=0xaabbccdd\n")
            .file("/boot/firmware/config.txt", "[0xaabbccdd]\n[0xAABBCCDD]\n[0x11223344]\n");
        let recorder = Recorder::new(&files);
        read_everything_there(&recorder);
        let mut record = recorder.record();
        let names = ["aabbccdd", own, "11223344"].map(String::from);
        Redactor::new(secrets::find(&files, &record, &names)).redact(&mut record);
        let text = |path: &str| String::from_utf8_lossy(&record.files[path].bytes).into_owned();
        let serial = text("/proc/device-tree/serial-number");
        let serial = serial.trim_end_matches('\0');
        assert_ne!(serial, own);
        assert_eq!(serial.len(), own.len());
        let number = u64::from_str_radix(serial, 16).expect("it is a number") & 0xffff_ffff;
        assert_eq!(text("/proc/cpuinfo"), format!("Serial\t\t: {serial}\n"));
        assert_eq!(text("/proc/cmdline"), format!("bcm2709.serial={number:#x}\n"));
        let filters = text("/boot/firmware/config.txt");
        let filters: Vec<&str> = filters.lines().collect();
        assert_eq!(filters[0], format!("[{number:#x}]"));
        assert_eq!(filters[1], format!("[0x{number:X}]"));
        assert!(!filters[2].contains("11223344") && filters[2].len() == filters[0].len());
    }

    #[test]
    fn a_serial_number_that_is_a_word_is_replaced_where_it_is_one_and_nowhere_else() {
        let files = FakeFiles::new()
            .file("/sys/block/vda/serial", "root\n")
            .file("/sys/block/vdb/serial", "000000\n")
            .link("/dev/disk/by-id/virtio-root", "/sys/block/vda")
            .link("/dev/disk/by-label/root", "/sys/block/vda")
            .file(
                "/run/udev/data/b254:0",
                "S:disk/by-id/virtio-root\nE:ID_SERIAL=root\nE:ID_FS_LABEL=root\n",
            )
            .file("/proc/cmdline", "root=/dev/vda1 rootwait\n");
        let recorder = Recorder::new(&files);
        read_everything_there(&recorder);
        let mut record = recorder.record();
        Redactor::new(secrets::find(&files, &record, &[])).redact(&mut record);
        let text = |path: &str| {
            let contents = record.files.get(path).expect("it is recorded");
            String::from_utf8_lossy(&contents.bytes).into_owned()
        };
        let serial = text("/sys/block/vda/serial");
        let pseudonym = serial.trim();
        assert_ne!(pseudonym, "root");
        assert_eq!(pseudonym.len(), 4);
        assert_eq!(text("/sys/block/vdb/serial"), "000000\n");
        assert_eq!(text("/proc/cmdline"), "root=/dev/vda1 rootwait\n");
        assert_eq!(
            text("/run/udev/data/b254:0"),
            format!(
                "S:disk/by-id/virtio-{pseudonym}\nE:ID_SERIAL={pseudonym}\nE:ID_FS_LABEL=root\n"
            )
        );
        let links: Vec<&String> = record.links.keys().collect();
        assert!(links.contains(&&format!("/dev/disk/by-id/virtio-{pseudonym}")), "{links:?}");
        assert!(links.contains(&&"/dev/disk/by-label/root".to_string()), "{links:?}");
    }
}
