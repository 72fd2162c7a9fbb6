//! Finding what identifies one machine: serial numbers, hardware addresses, UUIDs, names.
//!
//! Found in three ways: in the files that are known to hold them, read from the machine even when
//! the survey did not; in names under `/dev/disk`; and by their shape in everything recorded.
//! What is done with them is in `redact.rs`.

mod disk_links;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use self::disk_links::LinkKind;
use super::{escapes, partition_types, shapes};
use crate::files::Files;
use crate::shareable::identities;
use crate::shareable::list::is_word;
use crate::shareable::products::is_product;
use crate::shareable::releases;
use crate::simulated::recorder::Record;
use crate::simulated::tree::Contents;

/// How a secret looks, and so how its pseudonym must look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Shape {
    /// Hexadecimal digits with separators that stay: UUIDs, world-wide names.
    Hex,
    /// A board's number of sixteen hexadecimal digits, of which the last eight stand alone in other places.
    Board,
    /// A hardware address; the first half, which names the maker, stays.
    Address,
    /// Any text: "S4EVNX0R123456".
    Serial,
    /// The host name.
    Name,
}

/// Where a secret is replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reach {
    /// Wherever its characters stand.
    Everywhere,
    /// Wherever it stands alone: not inside a longer word or number.
    Words,
    /// Alone, and only in files and names that are about identities: it is so short or plain that
    /// elsewhere the same characters mean something else.
    IdentityPlaces,
    /// Alone, and only in files of serial numbers and in what udev makes of them: it is a word that
    /// stands for other things everywhere else.
    SerialPlaces,
    /// Alone, and only right behind a directory of users: a short name, a word or a number.
    UserPlaces,
}

/// What is to be replaced.
#[derive(Debug, Default)]
pub(crate) struct Secrets {
    /// By lower-case text.
    pub(crate) found: BTreeMap<String, (Shape, Reach)>,
}

/// Everything that identifies the machine, as far as it can be read.
pub(crate) fn find(files: &dyn Files, record: &Record, names: &[String]) -> Secrets {
    let mut secrets = Secrets::default();
    for name in names {
        secrets.add_name(name);
    }
    for (path, contents) in record.files.iter() {
        secrets.add_file(path, &contents.bytes);
    }
    for path in telling_files(files) {
        if let Ok(bytes) = files.read_prefix(Path::new(&path), 1 << 20) {
            secrets.add_file(&path, &bytes);
        }
    }
    secrets.add_disk_links(files, record);
    for text in texts(record) {
        secrets.add_shapes(&text);
    }
    secrets.forget_places(record);
    secrets.forget_version(record);
    secrets.add_host_names(files, record);
    secrets
}

/// Files that hold an identity by their name, wherever they stand.
pub(crate) const SERIAL_FILES: [&str; 6] =
    ["serial", "serial-number", "product_serial", "board_serial", "chassis_serial", "vpd_pg80"];
pub(crate) const ID_FILES: [&str; 7] =
    ["wwid", "eui", "nguid", "uuid", "product_uuid", "unique_id", "machine-id"];

/// Paths on the machine that tell its identities.
fn telling_files(files: &dyn Files) -> Vec<String> {
    let mut paths: Vec<String> = [
        "/proc/cpuinfo",
        "/proc/device-tree/serial-number",
        "/etc/machine-id",
        "/var/lib/dbus/machine-id",
    ]
    .map(str::to_string)
    .to_vec();
    let below: [(&str, &[&str]); 6] = [
        (
            "/sys/block",
            &["serial", "wwid", "device/serial", "device/wwid", "device/vpd_pg80", "dm/uuid"],
        ),
        ("/sys/bus/usb/devices", &["serial"]),
        ("/sys/bus/mmc/devices", &["serial"]),
        ("/sys/class/nvme", &["serial"]),
        ("/sys/class/net", &["address"]),
        ("/run/udev/data", &[""]),
    ];
    for (directory, leaves) in below {
        for name in files.list(Path::new(directory)).unwrap_or_default() {
            for leaf in leaves {
                let path = format!("{directory}/{name}/{leaf}");
                paths.push(path.trim_end_matches('/').to_string());
            }
        }
    }
    let dmi = ["product_serial", "board_serial", "chassis_serial", "product_uuid"];
    paths.extend(dmi.map(|leaf| format!("/sys/class/dmi/id/{leaf}")));
    paths
}

/// All text of a record: contents, paths, names, targets, outputs and errors.
fn texts(record: &Record) -> Vec<String> {
    let mut texts: Vec<String> = Vec::new();
    for (path, Contents { bytes, .. }) in &record.files {
        texts.push(path.clone());
        texts.push(String::from_utf8_lossy(bytes).into_owned());
    }
    for (path, names) in &record.directories {
        texts.push(path.clone());
        texts.extend(names.iter().cloned());
    }
    for (path, target) in &record.links {
        texts.push(path.clone());
        texts.push(target.clone());
    }
    texts.extend(record.spaces.keys().cloned());
    for (call, answer) in &record.programs {
        texts.push(call.join(" "));
        texts.push(format!("{answer:?}"));
        texts.extend(answer.as_ref().ok().cloned());
    }
    for ((path, _), error) in &record.errors {
        texts.push(path.clone());
        texts.push(error.to_string());
    }
    texts
}

/// What a text is looked for as. ASCII letters are compared without their case; other letters as they stand, so each of their
/// cases is a spelling of its own.
fn spellings(text: &str) -> BTreeSet<String> {
    let cases = [text.to_string(), text.to_lowercase(), text.to_uppercase()];
    cases.iter().map(|text| text.to_ascii_lowercase()).collect()
}

impl Secrets {
    fn add(&mut self, text: &str, shape: Shape, reach: Reach) {
        for key in spellings(text.trim()).into_iter().filter(|key| !key.is_empty()) {
            // The wider reach of two holds.
            let entry = self.found.entry(key).or_insert((shape, reach));
            entry.1 = entry.1.min(reach);
        }
    }

    /// Takes back serial numbers that are names of places in the machine: the kernel gives a USB
    /// root hub the name of its controller ("0000:00:14.0", "3f980000.usb") for one. Replaced, it
    /// would no longer be the place that other facts name.
    fn forget_places(&mut self, record: &Record) {
        let paths = record.files.keys().chain(record.directories.keys());
        let links = record.links.iter().flat_map(|(path, target)| [path, target]);
        for path in paths.chain(links) {
            if let Some((_, below)) = path.split_once("/devices/") {
                for name in below.split('/') {
                    for key in spellings(name) {
                        if matches!(self.found.get(&key), Some((Shape::Serial, _))) {
                            self.found.remove(&key);
                        }
                    }
                }
            }
        }
    }

    /// Takes back an address that is the version of the kernel, unless it is known from elsewhere, too.
    fn forget_version(&mut self, record: &Record) {
        let release = record.files.get("/proc/sys/kernel/osrelease");
        let release = release.map(|contents| String::from_utf8_lossy(&contents.bytes));
        if let Some(numbers) = release.as_deref().and_then(releases::four_numbers)
            && self.found.get(numbers) == Some(&(Shape::Name, Reach::Words))
        {
            self.found.remove(numbers);
        }
    }

    /// A serial number; spaces in it become `_` in udev's names.
    fn add_serial(&mut self, text: &str) {
        let text = text.trim_matches(|c: char| c.is_whitespace() || c == '\0');
        let digits = text.strip_prefix("0x").unwrap_or(text);
        if !shapes::identifies(digits) {
            return;
        }
        if text.starts_with("0x") && shapes::is_hex(digits) {
            self.add(digits, Shape::Hex, reach_of(digits));
            return;
        }
        self.add(text, Shape::Serial, reach_of(text));
        if text.contains(' ') {
            self.add(&text.replace(' ', "_"), Shape::Serial, reach_of(text));
            for form in escapes::forms(text) {
                self.add(&form, Shape::Serial, Reach::Words);
            }
        }
    }

    /// A serial number that is a plain word: it may be anything, even a name that the owner gave the
    /// device. Zeros and the like identify no device.
    pub(crate) fn add_word(&mut self, text: &str) {
        self.add_plain_word(text, Reach::SerialPlaces);
    }

    fn add_plain_word(&mut self, text: &str, reach: Reach) {
        let text = text.trim_matches(|c: char| c.is_whitespace() || c == '\0');
        let has_letter = text.chars().any(char::is_alphabetic);
        if has_letter && distinct(text) > 1 && !shapes::identifies(text) {
            self.add(text, Shape::Serial, reach);
        }
    }

    /// The identity of a filesystem, a partition or a disk, of which some programs let people give a word.
    fn add_volume_id(&mut self, text: &str) {
        self.add_id(text);
        self.add_plain_word(text, Reach::IdentityPlaces);
    }

    /// A UUID or other identifier of hexadecimal digits; anything else counts as a serial number.
    pub(crate) fn add_id(&mut self, text: &str) {
        let text = text.trim().trim_matches('"');
        let plain: String = text.chars().filter(|c| !"-:".contains(*c)).collect();
        if !shapes::is_hex(&plain) {
            self.add_serial(text);
            return;
        }
        if !shapes::identifies(&plain) {
            return;
        }
        match text.split_once('-') {
            // A partition of an MBR disk: the disk's signature and a number that stays.
            Some((disk, number)) if disk.len() == 8 && number.len() == 2 => {
                self.add(&format!("{disk}-"), Shape::Hex, Reach::Everywhere);
                self.add(disk, Shape::Hex, reach_of(disk));
            }
            Some(_) => {
                self.add(text, Shape::Hex, Reach::Everywhere);
                if plain.len() >= 12 {
                    self.add(&plain, Shape::Hex, Reach::Everywhere);
                }
            }
            None => self.add(text, Shape::Hex, reach_of(text)),
        }
    }

    fn add_address(&mut self, text: &str) {
        let text = text.trim();
        if !shapes::is_address(text) {
            return;
        }
        let plain = text.replace([':', '-'], "").to_lowercase();
        if distinct(&plain) < 2 {
            return;
        }
        for separator in [":", "-", ""] {
            let variant = shapes::pairs(&plain).join(separator);
            self.add(&variant, Shape::Address, Reach::Everywhere);
        }
    }

    /// A name that people gave, or an address: of a server, a user, a share, a volume. It is the same name in each of its
    /// writings.
    fn add_name(&mut self, text: &str) {
        let plain = escapes::decoded(text);
        self.add_plain_name(&plain);
        if let Some(link) = text.strip_prefix("by-id/").or(text.strip_prefix("/dev/disk/by-id/"))
            && plain != text
        {
            // The parts of one with escapes are not found in its writing.
            self.add(link, Shape::Name, Reach::Words);
        }
        let plain = plain.trim_matches(['/', '[', ']']);
        let Some((shape, _)) = self.found.get(&plain.to_ascii_lowercase()).copied() else {
            return;
        };
        let forms = escapes::forms(plain).into_iter().chain([text.to_string()]);
        for form in forms.filter(|form| form != plain && form.contains(['\\', '%'])) {
            self.add(&form, shape, Reach::Words);
        }
    }

    fn add_plain_name(&mut self, text: &str) {
        let text = text.trim_matches(['/', '[', ']']);
        if shapes::is_address(text) {
            self.add_address(text);
            return;
        }
        if identities::is_address(text) {
            for part in text.split(['@', ':', '/']).filter(|part| !identities::is_address(part)) {
                self.add_name(part);
            }
        }
        if let Some(name) = text.strip_prefix("by-id/").or(text.strip_prefix("/dev/disk/by-id/")) {
            let known = self.found.len();
            self.add_link_name(LinkKind::Id, name);
            let names = spellings(name);
            // One inside a longer word is not replaced there.
            let is_replaced = |name: &str, secret: &str, reach: Reach| {
                let mut places = name.match_indices(secret).map(|(at, _)| at);
                let is_alone = |at| shapes::stands_alone(name.as_bytes(), at, secret.len());
                match reach {
                    Reach::Everywhere => places.next().is_some(),
                    Reach::Words | Reach::IdentityPlaces | Reach::SerialPlaces => {
                        places.any(is_alone)
                    }
                    Reach::UserPlaces => false,
                }
            };
            let has_secret = |(secret, (_, reach)): (&String, &(Shape, Reach))| {
                names.iter().any(|name| is_replaced(name, secret, *reach))
            };
            if self.found.len() > known || self.found.iter().any(has_secret) {
                return;
            }
            self.add_name(name);
            return;
        }
        self.add_id(text);
        // A short number stands for other things everywhere else.
        let is_number = text.len() < 6 && text.bytes().all(|b| b.is_ascii_digit());
        let is_plain = text.chars().count() < 3 || is_word(text) || is_number;
        if !is_plain || !self.found.contains_key(&text.to_lowercase()) {
            let reach = if is_plain { Reach::UserPlaces } else { Reach::Words };
            self.add(text, Shape::Name, reach);
        }
    }

    /// An LVM volume; device mapper has it without dashes.
    fn add_volume(&mut self, text: &str) {
        if shapes::is_volume_uuid(text) && shapes::identifies(text) {
            self.add(text, Shape::Serial, Reach::Everywhere);
            self.add(&text.replace('-', ""), Shape::Serial, Reach::Everywhere);
        }
    }

    /// What a file says by its name.
    fn add_file(&mut self, path: &str, bytes: &[u8]) {
        let name = path.rsplit('/').next().unwrap_or(path);
        let text = String::from_utf8_lossy(bytes);
        match name {
            "vpd_pg80" => {
                // Four bytes of head before the number.
                let serial = String::from_utf8_lossy(bytes.get(4..).unwrap_or_default());
                self.add_serial(&serial);
                self.add_word(&serial);
            }
            _ if SERIAL_FILES.contains(&name) => {
                self.add_board_serial(&text);
                self.add_word(&text);
            }
            _ if ID_FILES.contains(&name) => self.add_wide_id(&text),
            "address" => self.add_address(&text),
            "cpuinfo" => {
                let fields = text.lines().filter_map(|line| line.split_once(':'));
                for (_, serial) in
                    fields.filter(|(name, _)| name.trim().eq_ignore_ascii_case("serial"))
                {
                    self.add_board_serial(serial);
                }
            }
            _ if path.starts_with("/run/udev/data/") => self.add_udev_entry(&text),
            _ => {}
        }
    }

    /// A Raspberry Pi's number has leading digits that are the same on all boards; on the command
    /// line only the last eight stand.
    pub(crate) fn add_board_serial(&mut self, text: &str) {
        let text = text.trim_matches(|c: char| c.is_whitespace() || c == '\0');
        if text.len() == 16 && shapes::is_hex(text) && distinct(&text[8..]) > 2 {
            for (digits, shape) in [(text, Shape::Board), (&text[8..], Shape::Hex)] {
                self.add(digits, shape, reach_of(digits));
                // A filter of config.txt may have noted it as a name.
                let key = digits.to_ascii_lowercase();
                self.found.entry(key).and_modify(|known| known.0 = shape);
            }
        }
        self.add_serial(text);
    }

    /// "naa.5002538e40abcdef", "eui.…", "t10.ATA     MODEL      SERIAL", "nvme.VENDOR-SERIAL-…",
    /// "CRYPT-LUKS2-UUID-name", a plain UUID.
    fn add_wide_id(&mut self, text: &str) {
        let text = text.trim_matches(|c: char| c.is_whitespace() || c == '\0');
        let digits: String = text.split_whitespace().collect();
        let is_spaced = digits.len() < text.len() && shapes::is_hex(&digits);
        if is_spaced && shapes::identifies(&digits) {
            // The kernel writes an EUI with blanks between its bytes.
            self.add(text, Shape::Hex, Reach::Everywhere);
            self.add_id(&digits);
            return;
        }
        let (head, tail) = text.split_once('.').unwrap_or(("", text));
        if head.ends_with("nvme") {
            // Vendor, serial number and model, the latter two as the digits of their bytes.
            let mut parts = tail.split('-').skip(1);
            self.add_id(parts.next().unwrap_or(""));
            self.add_model_digits(parts.next().unwrap_or(""));
            return;
        }
        if let Some(last) = tail.split_whitespace().last().filter(|last| *last != tail) {
            self.add_serial(last);
            // Targets of iSCSI have names of their owners' before it.
            self.add_makers_names(&tail.split_whitespace().collect::<Vec<_>>().join("_"));
            return;
        }
        let plain = tail.replace('-', "");
        if shapes::is_hex(&plain) {
            self.add_id(tail);
        } else if !tail.contains('-') {
            self.add_serial(tail);
            self.add_plain_word(tail, Reach::IdentityPlaces);
        }
        let has_digit = |part: &&str| part.bytes().any(|byte| byte.is_ascii_digit());
        for part in tail.split('-').filter(|part| part.len() >= 12).filter(has_digit) {
            self.add_id(part);
        }
    }

    /// A disk's model as the digits of its bytes, unless it is a product's name.
    fn add_model_digits(&mut self, digits: &str) {
        let byte = |pair: &&str| u8::from_str_radix(pair, 16).ok();
        let bytes: Vec<u8> = shapes::pairs(digits).iter().filter_map(byte).collect();
        if shapes::is_hex(digits) && !is_product(String::from_utf8_lossy(&bytes).trim()) {
            self.add_id(digits);
        }
    }

    fn add_udev_entry(&mut self, text: &str) {
        // One that stands twice has two values.
        let properties = |wanted: &str| {
            let all = text.lines().filter_map(|line| line.strip_prefix("E:")?.split_once('='));
            let named = all.filter(|(name, _)| *name == wanted);
            named.map(|(_, value)| value).collect::<Vec<&str>>()
        };
        for name in [
            "ID_SERIAL_SHORT",
            "ID_USB_SERIAL_SHORT",
            "ID_SCSI_SERIAL",
            "SCSI_IDENT_SERIAL",
            "ID_NVME_SERIAL",
        ] {
            for value in properties(name) {
                self.add_serial(value);
                self.add_word(value);
            }
        }
        for name in [
            "ID_WWN",
            "ID_WWN_WITH_EXTENSION",
            "ID_FS_UUID",
            "ID_FS_UUID_ENC",
            "ID_FS_UUID_SUB",
            "ID_PART_ENTRY_UUID",
            "ID_PART_TABLE_UUID",
            "ID_WWN_VENDOR_EXTENSION",
        ] {
            for value in properties(name) {
                self.add_volume_id(value.strip_prefix("0x").unwrap_or(value));
            }
        }
        for id in properties("DM_UUID") {
            self.add_wide_id(id);
        }
        for link in text.lines().filter_map(|line| line.strip_prefix("S:disk/by-")) {
            match link.split_once('/') {
                Some(("id", name)) => self.add_link_name(LinkKind::Id, name),
                Some(("uuid" | "partuuid", name)) => self.add_link_name(LinkKind::Uuid, name),
                _ => {}
            }
        }
        let models = [properties("ID_MODEL"), properties("ID_USB_MODEL")].concat();
        for name in ["ID_SERIAL", "ID_USB_SERIAL"] {
            for serial in properties(name) {
                self.add_makers_names(serial);
                self.add_serial(shapes::serial_in_name(serial));
                // Without a serial number, a product's name is all there is.
                let mut known = models.iter().filter(|model| !model.is_empty());
                if !known.any(|model| serial.ends_with(*model)) {
                    self.add_word(shapes::serial_in_name(serial));
                }
            }
        }
        for address in properties("ID_NET_NAME_MAC") {
            // "enxb827eb123456".
            let start = address.len().saturating_sub(12);
            if let Some(digits) = address.get(start..).filter(|digits| shapes::is_hex(digits)) {
                self.add_address(&shapes::pairs(digits).join(":"));
            }
        }
    }

    /// UUIDs, hardware addresses and the like, wherever they stand.
    pub(crate) fn add_shapes(&mut self, text: &str) {
        for word in text.split(|c: char| !(c.is_ascii_alphanumeric() || "-:".contains(c))) {
            // Names put words in front and numbers behind: "md-uuid-…", "…-part1".
            let parts: Vec<&str> = word.trim_matches(['-', ':']).split('-').collect();
            for window in parts.windows(6).map(|window| window.join("-")) {
                self.add_address(&window);
            }
            // A mark may stand right before one: "nqn.2014-08.org.nvmexpress:uuid:…".
            for run in word.split(':') {
                let parts: Vec<&str> = run.split('-').collect();
                for window in parts.windows(7).map(|window| window.join("-")) {
                    self.add_volume(&window);
                }
                for window in parts.windows(5).map(|window| window.join("-")) {
                    if shapes::is_uuid(&window) && !partition_types::is_known(&window) {
                        self.add_id(&window);
                    }
                }
            }
            for part in parts.iter().map(|part| part.trim_matches(':')) {
                self.add_address(part);
                if shapes::is_array_uuid(part) {
                    self.add_id(part);
                }
            }
        }
        for word in text.split(|c: char| !(c.is_ascii_alphanumeric() || ".:%".contains(c))) {
            let word = word.split('%').next().unwrap_or(word).trim_matches(['.', ':']);
            let address = word.parse::<std::net::IpAddr>();
            if address.is_ok_and(|address| !address.is_loopback() && !address.is_unspecified()) {
                self.add(word, Shape::Name, Reach::Words);
            }
        }
        for (at, mark) in text.match_indices("UUID=") {
            let rest = text[at + mark.len()..].trim_start_matches('"');
            let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '-'));
            let value = &rest[..end.unwrap_or(rest.len())];
            // Types of partitions and words ("UUID=random") are no secrets.
            let is_id = value.len() >= 8 && value.bytes().any(|byte| byte.is_ascii_digit());
            if is_id && !partition_types::is_known(value) {
                self.add_id(value);
            }
        }
    }

    /// The host name, unless it is a word that stands for other things: "raspberrypi" is in the
    /// names of all boards.
    fn add_host_names(&mut self, files: &dyn Files, record: &Record) {
        const WORDS: [&str; 22] = [
            "localhost",
            "raspberrypi",
            "raspberry",
            "raspi",
            "rpi",
            "debian",
            "ubuntu",
            "dietpi",
            "armbian",
            "linux",
            "server",
            "host",
            "home",
            "disk",
            "root",
            "swap",
            "test",
            "boot",
            "none",
            "usb",
            "data",
            "backup",
        ];
        for path in ["/etc/hostname", "/proc/sys/kernel/hostname"] {
            let name = files.text(Path::new(path)).unwrap_or_default();
            let name = name.trim().to_lowercase();
            // One that the kernel has as well would make its files unfindable.
            let is_kernels = record
                .files
                .keys()
                .chain(record.directories.keys())
                .filter(|path| path.starts_with("/sys/") || path.starts_with("/proc/"))
                .any(|path| path.split('/').any(|part| part.to_lowercase() == name));
            if name.len() >= 3 && !WORDS.contains(&name.as_str()) && !is_kernels {
                self.add(&name, Shape::Name, Reach::Words);
            }
        }
    }
}

/// How far a secret of these characters can be looked for without hitting other things.
fn reach_of(text: &str) -> Reach {
    let only_digits = text.bytes().all(|byte| byte.is_ascii_digit());
    match text.len() {
        0..=5 => Reach::IdentityPlaces,
        6..=9 if only_digits => Reach::IdentityPlaces,
        6..=7 => Reach::Words,
        _ if only_digits => Reach::Words,
        _ => Reach::Everywhere,
    }
}

/// How many different characters a text has.
fn distinct(text: &str) -> usize {
    text.chars().collect::<BTreeSet<char>>().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_by_id_is_a_name_unless_a_secret_in_it_is_replaced() {
        let mut secrets = Secrets::default();
        secrets.add("qz", Shape::Name, Reach::Words);
        secrets.add_name("by-id/wwn-qzback");
        assert!(secrets.found.contains_key("wwn-qzback"), "{secrets:?}");
        secrets.add_serial("QZ123456");
        secrets.add_name("by-id/usb-QZ123456");
        assert!(!secrets.found.contains_key("usb-qz123456"), "{secrets:?}");
    }

    #[test]
    fn a_uuid_behind_a_mark_and_a_serial_number_with_escapes_are_found() {
        let mut secrets = Secrets::default();
        let uuid = "8ae58858-51d9-4d40-b1de-045395e1034b";
        secrets.add_shapes(&format!("nvme-nqn.2014-08.org.nvmexpress:uuid:{uuid}-part1"));
        assert!(secrets.found.contains_key(uuid), "{secrets:?}");
        secrets.add_name("by-id/usb-Disk_qz\\040ann-0:0");
        assert!(secrets.found.contains_key("usb-disk_qz\\040ann-0:0"), "{secrets:?}");
        secrets.add_serial("QZ Disk 42X7");
        for form in ["qz disk 42x7", "qz_disk_42x7", "qz\\040disk\\04042x7", "qz\\x20disk\\x2042x7"]
        {
            assert!(secrets.found.contains_key(form), "{form} in {secrets:?}");
        }
    }

    #[test]
    fn a_name_with_letters_beyond_ascii_is_looked_for_in_each_of_their_cases() {
        let mut secrets = Secrets::default();
        secrets.add("Ömer", Shape::Name, Reach::Words);
        // The rest is compared without its case.
        let keys: Vec<&str> = secrets.found.keys().map(String::as_str).collect();
        assert_eq!(keys, ["Ömer", "ömer"]);
        assert_eq!(spellings("S5GXNF0R"), BTreeSet::from(["s5gxnf0r".to_string()]));
    }
}
