//! What of the files that the kernel, udev and packages write goes into a capture: words and numbers of known forms.

use std::collections::BTreeSet;
use std::io::{Read, Write};

use super::{cpu_flags, module_names, shapes};
use crate::shareable::kernel_names::is_device;
use crate::shareable::list::is_product_word;
use crate::shareable::products::is_product;
use crate::shareable::words::{phrase, spelt_words};
use crate::shareable::{LEFT_OUT, Pseudonyms, identities, options, paths, releases};

/// What such a file is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Words {
    /// Public words, and numbers that are short or round.
    Value,
    /// The same where numbers are sizes, counters, times or rates, whatever they are.
    Number,
    /// The name of a product, of its maker or its version.
    Product,
    /// A version of the kernel.
    Release,
    /// The digits of a commit.
    Commit,
    /// The digits of a card's register.
    Register,
    /// How long tasks waited.
    Pressure,
    /// A number of four bytes, or public words.
    Cell,
    /// Seconds since 1970 in four bytes, written by the firmware.
    Seconds,
    /// `name : value` of known names.
    Cpuinfo,
    /// Sizes of mappings.
    Smaps,
    /// A kernel's configuration.
    Config,
    /// The same, packed with gzip.
    PackedConfig,
    /// Modules' paths.
    Modules,
    /// What modules call filesystems and schedulers.
    Given,
    /// The name and version of a distribution.
    OsRelease,
    /// The udev database.
    Udev,
    /// What the kernel tells udev.
    Uevent,
}

/// The file as it goes into a capture.
pub(super) fn said(words: Words, bytes: &[u8], names: &mut Pseudonyms) -> Vec<u8> {
    let text = String::from_utf8_lossy(bytes);
    let kept = |is_kept: fn(&str) -> bool| {
        kept_lines(&text, |line| is_kept(line).then(|| line.to_string()))
    };
    let said = match words {
        Words::PackedConfig => return packed_config(bytes),
        Words::Cell if is_cell(bytes) => return bytes.to_vec(),
        Words::Seconds if bytes.len() == 4 => return bytes.to_vec(),
        Words::Seconds => whole(&text, false),
        Words::Value | Words::Cell => whole(&text, is_public(&text)),
        Words::Number => {
            whole(&text, text.split_whitespace().all(is_value) && !has_letters_alone(&text))
        }
        Words::Product => products(&text),
        Words::Commit => {
            let digits = text.trim_matches(['\0', '\n']);
            whole(&text, digits.len() <= 40 && digits.bytes().all(|b| b.is_ascii_hexdigit()))
        }
        Words::Register => {
            let digits = text.trim_end();
            whole(&text, digits.len() <= MAX_REGISTER_DIGITS && shapes::is_hex(digits))
        }
        Words::Pressure => kept(is_pressure_line),
        Words::Release => {
            note_release(text.trim(), names);
            text.into_owned()
        }
        Words::Cpuinfo => kept_lines(&text, cpu_line),
        Words::Smaps => kept_lines(&text, mapping),
        Words::Config => config(&text),
        Words::Modules => kept_lines(&text, module_names::line_of),
        Words::Given => {
            module_names::note_given(&text, names);
            text.into_owned()
        }
        Words::OsRelease => kept_lines(&text, release_line),
        Words::Udev => {
            kept_lines(&text, |line| is_udev_line(line, names).then(|| line.to_string()))
        }
        Words::Uevent => kept(is_uevent_line),
    };
    said.into_bytes()
}

/// The text where it may pass, else what says that it was left out.
fn whole(text: &str, may_pass: bool) -> String {
    if may_pass { text.to_string() } else { format!("{LEFT_OUT}\n") }
}

/// Names of products, each at its end; of a list of them, those that may pass stay.
fn products(text: &str) -> String {
    const ENDS: [char; 2] = ['\0', '\n'];
    if !text.contains(ENDS) {
        return whole(text, is_product(text.trim()));
    }
    let each = text.split_inclusive(ENDS).map(|part| {
        let core = part.trim_end_matches(ENDS);
        let said = if is_product(core.trim()) { core } else { LEFT_OUT };
        said.to_string() + &part[core.len()..]
    });
    each.collect()
}

/// The lines of which something is kept.
fn kept_lines(text: &str, mut keep: impl FnMut(&str) -> Option<String>) -> String {
    let lines = text.split_inclusive('\n').filter_map(|line| {
        let core = line.trim_end_matches('\n');
        Some(keep(core)? + &line[core.len()..])
    });
    lines.collect()
}

/// A number of four bytes, and no text of as many.
fn is_cell(bytes: &[u8]) -> bool {
    let others: Vec<u8> = bytes.iter().copied().filter(|byte| *byte != 0).collect();
    let is_of_text = |byte: &u8| byte.is_ascii_graphic() || byte.is_ascii_whitespace();
    bytes.len() == 4 && (others.len() < 2 || !others.iter().all(is_of_text))
}

/// Values of which no number could be a telephone's or an identity's.
fn is_public(text: &str) -> bool {
    let is_short = |token: &str| {
        let digits = token.trim_matches(|c: char| !c.is_ascii_digit());
        let is_plain = digits.len() > 5 && digits.bytes().all(|b| b.is_ascii_digit());
        !shapes::is_split_number(token) && (!is_plain || options::is_round_number(digits))
    };
    let is_gap = |c: char| c.is_whitespace() || c == '\0';
    let is_one = text.split(is_gap).filter(|part| !part.is_empty()).count() < 2;
    (is_one || spelt_words(text).is_empty())
        && text.split_whitespace().all(|token| is_value(token) && is_short(token))
}

/// Letters one by one spell what they like.
fn has_letters_alone(text: &str) -> bool {
    let letters = text.split_whitespace().filter(|token| token.len() == 1);
    letters.filter(|token| token.chars().all(char::is_alphabetic)).count() > 2
}

/// A number of the kernel's, as sizes and counters are, a device's number, or a public word.
fn is_value(token: &str) -> bool {
    let core = token.trim_matches(|c: char| "[](){}<>,;:~\0".contains(c));
    core.is_empty()
        || core.split('\0').all(|part| is_kernel_number(part) || options::is_words(part))
}

/// Sizes and counters of 64 bits, short hexadecimal numbers, and lists of short ones ("179:2", "0-3").
fn is_kernel_number(text: &str) -> bool {
    let is_hex = |text: &str, most: usize| {
        (1..=most).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_hexdigit())
    };
    let digits = text.trim_start_matches(['-', '+']);
    if let Some(hex) = digits.strip_prefix("0x") {
        return is_hex(hex, 8);
    }
    let is_decimal = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    let is_list = || digits.split([':', '.', '-', ',', '/']).all(|part| is_hex(part, 4));
    is_decimal && digits.len() <= 20
        || digits.len() <= 16 && !identities::is_address(digits) && is_list()
}

/// Public words of each line of a program's answer.
pub(super) fn lines(output: &str) -> String {
    let each = output.split('\n').map(|line| {
        let (clock, line) = line.split_at(clock_bytes(line));
        let spelt = spelt_words(line);
        let mut before = ("", "");
        let words = line.split(' ').enumerate().map(|(number, word)| {
            let said_before = before;
            before = (said_before.1, word);
            if spelt.iter().any(|words| words.contains(&number)) {
                "…".to_string()
            } else if is_answer(said_before, word) {
                word.to_string()
            } else {
                phrase(word, &BTreeSet::new(), &Pseudonyms::default())
            }
        });
        clock.to_string() + &words.collect::<Vec<_>>().join(" ")
    });
    each.collect::<Vec<_>>().join("\n")
}

/// How long the clock is that the kernel puts before a message: "[    5.123456] ".
fn clock_bytes(line: &str) -> usize {
    const MARK: &str = "] ";
    let is_number = |text: &str, digits: std::ops::RangeInclusive<usize>| {
        digits.contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit())
    };
    let inside = line.strip_prefix('[').and_then(|rest| rest.split_once(MARK));
    let time = inside.and_then(|(inside, _)| inside.trim_start().split_once('.'));
    let is_clock = time.is_some_and(|(s, us)| is_number(s, 1..=7) && is_number(us, 6..=6));
    line.find(MARK).filter(|_| is_clock).map_or(0, |at| at + MARK.len())
}

/// A commit of the firmware ("version COMMIT", "hash is COMMIT"), a card's address on its bus, a time in seconds behind its year, and flags of the firmware.
fn is_answer(before: (&str, &str), word: &str) -> bool {
    let is_hex =
        |length: usize| word.len() == length && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    let seconds = word.strip_prefix('(').and_then(|rest| rest.strip_suffix(')'));
    let year = before.1.parse::<u64>().unwrap_or(0);
    let is_of_year = |s: u64| (s / 31_556_952 + 1970).abs_diff(year) <= 1;
    let is_seconds = seconds.is_some_and(|s| s.len() == 10 && s.parse().is_ok_and(is_of_year));
    let is_of_disk = ["sector", "sectors", "block", "blocks"].contains(&before.1);
    let number = word.trim_end_matches([',', ':', ')']);
    let is_place = is_of_disk && number.len() <= 20 && number.bytes().all(|b| b.is_ascii_digit());
    let flags = word.strip_prefix("throttled=");
    let is_of_firmware = before.1 == "version" || before == ("hash", "is");
    is_place
        || (is_hex(40) && is_of_firmware)
        || is_hex(4) && before.1 == "address"
        || is_seconds
        || flags.is_some_and(is_kernel_number)
}

/// Notes the name at the end of what device mapper calls a mapping: "CRYPT-LUKS2-UUID-name", "CRYPT-PLAIN-name".
pub(super) fn note_mapping(text: &str, names: &mut Pseudonyms) {
    let Some((_, rest)) = text.trim().split_once("CRYPT-") else {
        return;
    };
    let Some((_, rest)) = rest.split_once('-') else {
        return;
    };
    let is_uuid = |text: &str| text.len() == 32 && shapes::is_hex(text);
    let name = match rest.split_once('-') {
        Some((uuid, name)) if uuid.is_empty() || is_uuid(uuid) => name,
        _ if is_uuid(rest) => return,
        _ => rest,
    };
    names.note(name);
}

/// The same where another program made the mapping: what follows the program's mark is a name unless it is an identity.
pub(super) fn note_mapping_id(text: &str, names: &mut Pseudonyms) {
    const MARKS: [&str; 6] = ["LVM-", "mpath-", "stratis-", "part", "CRYPT-", "VERITY-"];
    let text = text.trim();
    note_mapping(text, names);
    if MARKS.iter().any(|mark| text.starts_with(mark)) || text.is_empty() {
        return;
    }
    let name = text.strip_prefix("DMRAID-").unwrap_or(text);
    names.note(name);
}

/// Notes the name that people gave in a link below /dev/disk/by-id, where it has one.
pub(super) fn note_link_by_id(link: &str, names: &mut Pseudonyms) {
    let given = ["dm-name-", "md-name-"].iter().find_map(|start| link.strip_prefix(start));
    match given {
        Some(name) => names.note(name),
        None => match link.strip_prefix("dm-uuid-") {
            Some(id) => note_mapping_id(id, names),
            None => note_mapping(link, names),
        },
    }
}

/// Notes what an owner added to the version of a kernel.
pub(super) fn note_release(release: &str, names: &mut Pseudonyms) {
    releases::addresses_in(release).into_iter().for_each(|address| names.note(address));
    for piece in release.split(['.', '-', '+', '_', '~']) {
        if !piece.is_empty() && !options::is_words(piece) {
            names.note(piece);
        }
    }
}

/// Names of lines of /proc/cpuinfo. The serial number is among them, since it has a pseudonym.
const CPU_LINES: &str = "processor|bogomips|features|cpu implementer|cpu architecture|cpu variant|cpu part|cpu revision|\
     hardware|revision|serial|model|model name|vendor_id|cpu family|stepping|microcode|cpu mhz|cache size|physical id|\
     siblings|core id|cpu cores|apicid|initial apicid|fpu|fpu_exception|cpuid level|wp|flags|vmx flags|bugs|clflush size|\
     cache_alignment|address sizes|power management|tlb size|isa|hart|mmu|uarch";

/// Those of them whose values are the kernel's words for what a processor can do.
const CPU_FLAGS: [&str; 6] = ["features", "flags", "vmx flags", "bugs", "isa", "power management"];

/// What makers of processors call themselves to programs (x86, CPUID).
const CPU_VENDORS: [&str; 6] =
    ["GenuineIntel", "AuthenticAMD", "HygonGenuine", "CentaurHauls", "Shanghai", "Zhaoxin"];

/// A line of a known name with a value of a product, public words and numbers: emulators let people name a processor.
fn cpu_line(line: &str) -> Option<String> {
    let Some((name, value)) = line.split_once(':') else {
        return line.trim().is_empty().then(|| line.to_string());
    };
    let known = name.trim().to_lowercase();
    if !CPU_LINES.split('|').any(|line| line == known) {
        return None;
    }
    let is_public = match known.as_str() {
        // One that identifies the board has a pseudonym.
        "serial" => is_board_serial(value.trim()),
        // A board's revision has up to eight digits; the kind of the board is among them.
        "revision" => value.trim().len() <= 8 && shapes::is_hex(value.trim()),
        "vendor_id" => CPU_VENDORS.contains(&value.trim()),
        flags if CPU_FLAGS.contains(&flags) && !value.trim().is_empty() => {
            let known = cpu_flags::known(value);
            return Some(format!("{name}: {}", known.as_deref().unwrap_or(LEFT_OUT)));
        }
        _ => is_cpu_value(value.trim()),
    };
    Some(if is_public { line.to_string() } else { format!("{name}: {LEFT_OUT}") })
}

/// A number that is replaced wherever it stands, or none.
fn is_board_serial(value: &str) -> bool {
    value.len() >= 12 && shapes::identifies(value) || value.bytes().all(|b| b == b'0')
}

fn is_cpu_value(value: &str) -> bool {
    // "Intel(R) Xeon(R) CPU E5-2650 v4 @ 2.20GHz"
    let (name, rate) = value.split_once(" @ ").unwrap_or((value, ""));
    is_product(name) && options::is_words(rate) || is_public(value)
}

/// The SD status is the longest, of 512 bits.
const MAX_REGISTER_DIGITS: usize = 128;

/// "some avg10=0.00 avg60=0.00 avg300=0.00 total=1234" (Documentation/accounting/psi.rst).
fn is_pressure_line(line: &str) -> bool {
    const KEYS: [&str; 4] = ["avg10", "avg60", "avg300", "total"];
    let is_number = |text: &str| text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let is_field = |word: &str| {
        word.split_once('=').is_some_and(|(key, value)| KEYS.contains(&key) && is_number(value))
    };
    let mut words = line.split_whitespace();
    words.next().is_none_or(|first| ["some", "full"].contains(&first)) && words.all(is_field)
}

/// Names of lines of smaps (proc_pid_smaps(5)) whose values are numbers.
const MAPPING_LINES: &str = "Size|KernelPageSize|MMUPageSize|Rss|Pss|Pss_Dirty|Shared_Clean|Shared_Dirty|Private_Clean|\
     Private_Dirty|Referenced|Anonymous|KSM|LazyFree|AnonHugePages|ShmemPmdMapped|FilePmdMapped|Shared_Hugetlb|\
     Private_Hugetlb|Swap|SwapPss|Locked|THPeligible|ProtectionKey";

/// A line of smaps without the path of what is mapped.
fn mapping(line: &str) -> Option<String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let is_number = |word: &&str| *word == "kB" || word.bytes().all(|b| b.is_ascii_digit());
    match words.split_first() {
        Some((first, rest)) if first.ends_with(':') => {
            let name = first.trim_end_matches(':');
            let is_flags = name == "VmFlags" && rest.iter().all(|flag| flag.len() == 2);
            let is_count =
                MAPPING_LINES.split('|').any(|known| known == name) && rest.iter().all(is_number);
            (is_flags || is_count).then(|| line.to_string())
        }
        _ => {
            // Addresses, rights, an offset, a device and a file's number.
            let head: Vec<&str> = words.into_iter().take(5).collect();
            let is_of_head = |b: u8| b.is_ascii_hexdigit() || b"rwxsp-:".contains(&b);
            head.iter().all(|word| word.bytes().all(is_of_head)).then(|| head.join(" "))
        }
    }
}

fn config(text: &str) -> String {
    let known = |line: &str| if is_config_line(line) { line.to_string() } else { "#".into() };
    kept_lines(text, |line| Some(known(line)))
}

/// `CONFIG_SWAP=y`, `# CONFIG_SWAP is not set`, of names of public words: others are asked for by no rule, and may name an owner.
fn is_config_line(line: &str) -> bool {
    let is_name = |name: &str| {
        let name = name.strip_prefix("CONFIG_");
        name.is_some_and(|name| {
            name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') && options::is_words(name)
        })
    };
    let unset = line.strip_prefix("# ").and_then(|rest| rest.strip_suffix(" is not set"));
    if let Some(name) = unset {
        return is_name(name);
    }
    let Some((name, value)) = line.split_once('=') else {
        return line.is_empty();
    };
    let plain = value.trim_matches('"');
    is_name(name) && (plain.is_empty() || options::is_words(plain) || is_kernel_number(plain))
}

/// The most that a kernel's configuration is unpacked to.
const MAX_CONFIG_BYTES: u64 = 4 << 20;

fn packed_config(bytes: &[u8]) -> Vec<u8> {
    let mut text = String::new();
    let unpacker = flate2::read::GzDecoder::new(bytes);
    let unpacked = unpacker.take(MAX_CONFIG_BYTES).read_to_string(&mut text);
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    let packed = unpacked
        .and_then(|_| packer.write_all(config(&text).as_bytes()))
        .and_then(|()| packer.finish());
    // One that cannot be read tells a survey nothing either.
    packed.unwrap_or_default()
}

/// A line of os-release with what an owner called a distribution of their own left out: what it is made from stays.
fn release_line(line: &str) -> Option<String> {
    const KEYS: [&str; 11] = [
        "NAME",
        "ID",
        "ID_LIKE",
        "VERSION",
        "VERSION_ID",
        "VERSION_CODENAME",
        "PRETTY_NAME",
        "DEBIAN_VERSION_FULL",
        "UBUNTU_CODENAME",
        "VARIANT",
        "VARIANT_ID",
    ];
    const OTHER: &str = "other";
    let (key, value) = line.split_once('=').filter(|(key, _)| KEYS.contains(key))?;
    let plain = value.trim_matches(['"', '\'']);
    if is_product(plain) {
        return Some(line.to_string());
    }
    let is_known = |word: &str| {
        let core = word.trim_matches(|c: char| !c.is_ascii_alphanumeric());
        options::is_words(core) || is_product_word(core)
    };
    let words = plain.split(' ').map(|word| if is_known(word) { word } else { OTHER });
    let said = words.collect::<Vec<_>>().join(" ");
    let said = if is_product(&said) { said.as_str() } else { OTHER };
    Some(format!("{key}=\"{said}\""))
}

fn is_uevent_line(line: &str) -> bool {
    const KEYS: &str = "MAJOR|MINOR|DEVNAME|DEVTYPE|DISKSEQ|PARTN|DRIVER|PCI_ID|PCI_CLASS";
    line.split_once('=').is_some_and(|(key, value)| {
        KEYS.split('|').any(|known| known == key)
            && value.split(' ').all(is_value_or_node)
            && is_public(value)
    })
}

/// Properties of udev whose values are words and numbers.
const UDEV_WORDS: &str = "ID_BUS|ID_TYPE|ID_PART_TABLE_TYPE|ID_FS_TYPE|ID_FS_USAGE|ID_FS_VERSION|ID_FS_BLOCKSIZE|\
     ID_FS_LASTBLOCK|ID_FS_SIZE|ID_PART_ENTRY_SCHEME|ID_PART_ENTRY_NUMBER|ID_PART_ENTRY_OFFSET|ID_PART_ENTRY_SIZE|\
     ID_PART_ENTRY_DISK|ID_USB_DRIVER|ID_USB_TYPE|MAJOR|MINOR|DEVNAME|DEVTYPE|ID_VENDOR_ID|ID_MODEL_ID|ID_USB_VENDOR_ID|\
     ID_USB_MODEL_ID|SYSTEMD_READY|ID_ATA|DM_STATE|ID_ATA_ROTATION_RATE_RPM|ID_DRIVE_FLASH_SD|DISKSEQ";
/// Those of them that are numbers.
const UDEV_NUMBERS: &str = "ID_FS_BLOCKSIZE|ID_FS_LASTBLOCK|ID_FS_SIZE|ID_PART_ENTRY_OFFSET|ID_PART_ENTRY_SIZE|MAJOR|MINOR|DISKSEQ";
/// Those that are products.
const UDEV_PRODUCTS: &str = "ID_MODEL|ID_VENDOR|ID_NAME|ID_USB_MODEL|ID_USB_VENDOR|ID_REVISION|ID_USB_REVISION|\
     ID_VENDOR_FROM_DATABASE|ID_MODEL_FROM_DATABASE";
/// Those that are identities, which have pseudonyms.
const UDEV_IDENTITIES: &str = "ID_SERIAL|ID_SERIAL_SHORT|ID_USB_SERIAL|ID_USB_SERIAL_SHORT|ID_SCSI_SERIAL|SCSI_IDENT_SERIAL|\
     ID_NVME_SERIAL|ID_FS_UUID|ID_FS_UUID_ENC|ID_FS_UUID_SUB|ID_PART_ENTRY_UUID|ID_PART_TABLE_UUID|ID_WWN|\
     ID_WWN_WITH_EXTENSION|ID_WWN_VENDOR_EXTENSION";
/// Those that are names that people gave.
const UDEV_NAMES: &str =
    "ID_FS_LABEL|ID_FS_LABEL_ENC|ID_PART_ENTRY_NAME|DM_NAME|DM_VG_NAME|DM_LV_NAME|MD_NAME";

fn is_udev_line(line: &str, names: &mut Pseudonyms) -> bool {
    let Some((kind, rest)) = line.split_once(':') else {
        return false;
    };
    match kind {
        "E" => rest.split_once('=').is_some_and(|(key, value)| is_property(key, value, names)),
        "S" => is_udev_link(rest, names),
        "I" => rest.bytes().all(|b| b.is_ascii_digit()),
        "G" | "Q" | "V" => options::is_words(rest),
        _ => false,
    }
}

fn is_property(key: &str, value: &str, names: &mut Pseudonyms) -> bool {
    let is_of = |list: &str| list.split('|').any(|known| known == key);
    if is_of(UDEV_NAMES) {
        paths::label(value, names);
        return true;
    }
    match key {
        "ID_PATH" | "ID_PATH_TAG" => is_bus_path(value),
        // Types of partitions are UUIDs that all machines have.
        "ID_PART_ENTRY_TYPE" => is_partition_type(value),
        "DM_UUID" => {
            note_mapping_id(value, names);
            true
        }
        "ID_NET_NAME_MAC" => shapes::address_in_name(value).is_some(),
        _ if is_of(UDEV_IDENTITIES) => true,
        _ if is_of(UDEV_NUMBERS) => value.split(' ').all(is_value_or_node),
        _ if is_of(UDEV_WORDS) => value.split(' ').all(is_value_or_node) && is_public(value),
        _ => is_of(UDEV_PRODUCTS) && is_product(&value.replace('_', " ")),
    }
}

/// A link below /dev; names in it are noted.
fn is_udev_link(link: &str, names: &mut Pseudonyms) -> bool {
    let by = link.strip_prefix("disk/by-").and_then(|rest| rest.split_once('/'));
    match by {
        Some(("label" | "partlabel", label)) => {
            paths::label(label, names);
            true
        }
        Some(("id", link)) => {
            note_link_by_id(link, names);
            true
        }
        Some(("uuid" | "partuuid", _)) => true,
        Some(("diskseq" | "partnum", numbers)) => numbers.split("-part").all(is_count),
        Some(("path", path)) => is_bus_path(path),
        Some(_) => false,
        None => {
            names.note(link.rsplit('/').next().unwrap_or(link));
            link.starts_with("mapper/") || link.starts_with("md/")
        }
    }
}

fn is_value_or_node(value: &str) -> bool {
    is_value(value) || value.strip_prefix("/dev/").is_some_and(is_device)
}

/// "0x83", or the UUID of a type.
fn is_partition_type(value: &str) -> bool {
    let number = value.strip_prefix("0x");
    number.is_some_and(|digits| digits.len() <= 2 && shapes::is_hex(digits))
        || shapes::is_uuid(value)
}

/// How often a disk came, or which partition it is.
fn is_count(text: &str) -> bool {
    (1..=5).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit())
}

/// "platform-fd500000.pcie-pci-0000:01:00.0-usb-0:1:1.0-scsi-0:0:0:0-part1"; links that name a partition by its label or
/// UUID behind it are known elsewhere.
fn is_bus_path(path: &str) -> bool {
    // Registers begin at a round address; ACPI's names of Intel's chips begin with the maker's number.
    let is_place =
        |piece: &str| piece.len() <= 4 || piece.ends_with("00") || piece.starts_with("8086");
    let is_piece = |piece: &str| {
        let is_hex = piece.len() <= 8 && piece.bytes().all(|b| b.is_ascii_hexdigit());
        options::is_words(piece) || is_hex && is_place(piece)
    };
    !path.contains("-part/")
        && !identities::is_address(path)
        && path.split(['-', '_']).all(|part| part.split(['.', ':']).all(is_piece))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(words: Words, text: &str) -> String {
        String::from_utf8(said(words, text.as_bytes(), &mut Pseudonyms::noting())).unwrap()
    }

    #[test]
    fn the_kernels_words_and_numbers_stay_and_all_else_goes() {
        for same in [
            "2199023255040\n",
            "[none] mq-deadline kyber\n",
            "179:2\n",
            "152d\n",
            "0x000003\n",
            "0-3\n",
            "-1\n",
            "5.0 GT/s PCIe\n",
            "write back\n",
            "lzo-rle lzo lz4 [zstd]\n",
            "50000\n",
        ] {
            assert_eq!(of(Words::Value, same), same);
        }
        assert_eq!(of(Words::Number, "493055123 7\n"), "493055123 7\n");
        assert_eq!(of(Words::Value, "493055\n"), "left out\n");
        assert_eq!(of(Words::Cell, "qzalice\0"), "left out\n");
        for text in ["qz anna\0", "qzbobz\n\0", "qz\n\0", "q\0z\0a\0n\0"] {
            assert_eq!(of(Words::Cell, text), "left out\n", "{text:?}");
        }
        for number in [0x00c0_3111_u32, 0, 1, 0x0000_0041, 0x6903_9a20] {
            let bytes = number.to_be_bytes();
            assert_eq!(said(Words::Cell, &bytes, &mut Pseudonyms::noting()), bytes, "{number:x}");
        }
        for secret in [
            "alice\n",
            "b8:27:eb:12:34:56\n",
            "10.1.2.3",
            "iqn.2004-01.x:alice",
            "0x5002538e40aabbcc",
        ] {
            assert_eq!(of(Words::Value, secret), "left out\n", "{secret}");
        }
        assert_eq!(of(Words::Product, "Cruzer Blade    \n"), "Cruzer Blade    \n");
        assert_eq!(of(Words::Product, "brcm,bcm2711-emmc2\0"), "brcm,bcm2711-emmc2\0");
        assert_eq!(of(Words::Product, "Alice's <disk>"), "left out\n");
        assert_eq!(of(Words::Product, "Alice's <disk>\n"), "left out\n");
        assert_eq!(of(Words::Product, "qz,board\0brcm,bcm2711\0"), "left out\0brcm,bcm2711\0");
    }

    #[test]
    fn lines_of_known_names_stay() {
        let text = "processor\t: 0\nModel\t: Raspberry Pi 5\nOwner\t: alice\n\n";
        assert_eq!(of(Words::Cpuinfo, text), "processor\t: 0\nModel\t: Raspberry Pi 5\n\n");
        for same in [
            "vendor_id\t: AuthenticAMD\n",
            "model name\t: AMD EPYC\n",
            "model name\t: ARMv7 Processor rev 5 (v7l)\n",
            "address sizes\t: 52 bits physical, 57 bits virtual\n",
            "TLB size\t: 192 4K pages\n",
            "microcode\t: 0x1000065\n",
            "cpu MHz\t\t: 2794.748\n",
            "bogomips\t: 5589.49\n",
            "Revision\t: c03114\n",
            "Hardware\t: BCM2835\n",
            "Features\t: fp asimd evtstrm crc32 cpuid\n",
            "Serial\t\t: 10000000aabbccdd\n",
            "power management:\n",
        ] {
            assert_eq!(of(Words::Cpuinfo, same), same);
        }
        for (private, said) in [
            ("model name\t: Qzalice Lab vCPU 7\n", "model name\t: left out\n"),
            ("Hardware\t: Qzboard of qzcorp\n", "Hardware\t: left out\n"),
            ("microcode\t: 0x1a2b3c4d5e\n", "microcode\t: left out\n"),
            ("bugs\t\t: Qzalice\n", "bugs\t\t: left out\n"),
            ("bugs\t\t: qzbug spectre_v1\n", "bugs\t\t: spectre_v1\n"),
            ("Features\t: fp qzfeature crc32\n", "Features\t: fp crc32\n"),
        ] {
            assert_eq!(of(Words::Cpuinfo, private), said);
        }
        assert_eq!(of(Words::Config, "CONFIG_QZCORP_SECRET=y\n# CONFIG_QZ is not set\n"), "#\n#\n");
        let name = "ID=debian\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n";
        assert_eq!(of(Words::OsRelease, &format!("{name}HOME_URL=\"x\"\n")), name);
        let own = "ID=qzos\nID_LIKE=debian\nPRETTY_NAME=\"Qz OS 12\"\nNAME=\"b8 27 eb 3a 2b 1c\"\n";
        let said = "ID=\"other\"\nID_LIKE=debian\nPRETTY_NAME=\"other OS 12\"\nNAME=\"other\"\n";
        assert_eq!(of(Words::OsRelease, own), said);
        let config = "CONFIG_SWAP=y\n# CONFIG_ZRAM is not set\nCONFIG_LOCALVERSION=\"-alice\"\n";
        assert_eq!(of(Words::Config, config), "CONFIG_SWAP=y\n# CONFIG_ZRAM is not set\n#\n");
        let mapped = "00010000-0002b000 r-xp 00000000 b3:02 1 /home/alice/rubus\n\
                      KernelPageSize:        4 kB\n";
        assert_eq!(of(Words::Smaps, mapped), mapped.replace(" /home/alice/rubus", ""));
        let sizes = "Size: 4 kB\nVmFlags: rd ex\n";
        assert_eq!(of(Words::Smaps, &format!("{sizes}Qzline: qz\nRss: qz\nqz 1-2\n")), sizes);
        let waits = "some avg10=0.00 avg60=1.25 avg300=0.00 total=12345678\n";
        assert_eq!(of(Words::Pressure, &format!("{waits}qz avg10=1\nfull qz=1\n")), waits);
        assert_eq!(of(Words::Register, "00a0ff\n"), "00a0ff\n");
        assert_eq!(of(Words::Register, "a card of qz\n"), "left out\n");
        let udev = "E:ID_FS_TYPE=ext4\nE:ID_OWNER=alice\nS:disk/by-id/ata-X_1\nG:systemd\n\
                    E:ID_FS_LABEL=BACKUP\nE:ID_PATH=platform-fd500000.pcie-pci-0000:01:00.0\n";
        assert_eq!(of(Words::Udev, udev), udev.replace("E:ID_OWNER=alice\n", ""));
        let numbers = "S:disk/by-diskseq/3-part1\nS:disk/by-partnum/2\nE:ID_PART_ENTRY_TYPE=0x83\n\
                       E:ID_PATH=platform-80860F14:00\nE:ID_PATH=platform-3f202000.mmc\n";
        assert_eq!(of(Words::Udev, numbers), numbers);
        for private in [
            "S:disk/by-diskseq/alice\n",
            "S:disk/by-diskseq/5551234\n",
            "S:disk/by-path/platform-deadbeef.cafebabe-scsi-0:0:0:0\n",
            "E:ID_PART_ENTRY_TYPE=deadbeefcafe12345678\n",
        ] {
            assert_eq!(of(Words::Udev, private), "", "{private}");
        }
    }

    #[test]
    fn a_message_of_the_kernel_keeps_its_time() {
        let log = "[    5.123456] I/O error, dev sda, sector 77\n[12345.654321] usb 1-1.3: reset\n";
        assert_eq!(lines(log), log);
        for line in ["[5551234567.123456] x", "[555.1234] x", "[qz.123456] x", "x [1.123456] y"] {
            assert_eq!(clock_bytes(line), 0, "{line}");
        }
    }

    #[test]
    fn names_in_udevs_database_are_noted() {
        let mut names = Pseudonyms::noting();
        let text = "E:DM_NAME=alicebox-root\nE:ID_FS_LABEL=alicelabel\nS:mapper/alicebox-root\n";
        said(Words::Udev, text.as_bytes(), &mut names);
        note_release("6.1.0-alice", &mut names);
        note_release("6.192.168.1.5", &mut names);
        assert_eq!(names.noted(), ["192.168.1.5", "alice", "alicebox-root", "alicelabel"]);
    }

    #[test]
    fn a_packed_configuration_stays_packed() {
        let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        packer.write_all(b"CONFIG_SWAP=y\nCONFIG_DEFAULT_HOSTNAME=\"attic\"\n").unwrap();
        let packed = packer.finish().unwrap();
        let said = said(Words::PackedConfig, &packed, &mut Pseudonyms::noting());
        let mut text = String::new();
        flate2::read::GzDecoder::new(&said[..]).read_to_string(&mut text).unwrap();
        assert_eq!(text, "CONFIG_SWAP=y\n#\n");
    }
}
