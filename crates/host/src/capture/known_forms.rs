//! What of the files that people write goes into a capture: lines of the known forms, with the parameters that are known.
//!
//! The kernel command line, tables of mounts and configuration files may hold passwords, addresses and remarks. Their
//! parameters pass by the rules of [`crate::shareable`]; what has none is left out, comments too. Names that stay where
//! they stand, such as a server's in a table of mounts, are noted, so that they get one pseudonym in all files.

use super::{known_names, module_names};
use crate::shareable::words::{spaced_identities, spelt_words};
use crate::shareable::{Pseudonyms, command_line, identities, options, paths};

/// What a file that people write is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    CommandLine,
    Fstab,
    Mountinfo,
    Crypttab,
    Swaps,
    FirmwareConfig,
    Settings,
}

/// A whole file of a form. A line that is not UTF-8 stays one, since a plan says which it is.
pub(super) fn text_of(form: Form, bytes: &[u8], names: &mut Pseudonyms) -> Vec<u8> {
    if bytes.contains(&0) {
        return vec![NOT_UTF8, 0];
    }
    let lines = bytes.split_inclusive(|byte| *byte == b'\n').map(|raw| {
        let line = String::from_utf8_lossy(raw);
        let core = line.trim_end_matches(['\n', '\r']);
        let end = &line[core.len()..];
        let mut said = line_of(form, core, names).into_bytes();
        if std::str::from_utf8(raw).is_err() {
            said.push(NOT_UTF8);
        }
        said.extend_from_slice(end.as_bytes());
        said
    });
    lines.flatten().collect()
}

/// A byte that no UTF-8 text has.
const NOT_UTF8: u8 = 0xff;

/// What stands for a comment and for a line of no known form.
const LEFT_OUT: &str = "#";

pub(super) fn line_of(form: Form, line: &str, names: &mut Pseudonyms) -> String {
    let start = line.trim_start_matches('\u{feff}').trim_start();
    if start.is_empty() {
        return line.to_string();
    }
    if form != Form::CommandLine && form != Form::Mountinfo && start.starts_with(['#', ';']) {
        return LEFT_OUT.into();
    }
    match form {
        Form::CommandLine => command_line::in_place(line, names),
        Form::Fstab => columns(line, names, fstab_columns),
        Form::Crypttab => columns(line, names, crypttab_columns),
        Form::Swaps => columns(line, names, |columns, names| {
            let (first, rest) = columns.split_first_mut()?;
            *first = paths::volume(first, names);
            rest.iter().all(|column| is_of_swaps(column)).then_some(())
        }),
        Form::Mountinfo => columns(line, names, mountinfo_columns),
        Form::FirmwareConfig => firmware_line(line, names).unwrap_or_else(|| LEFT_OUT.into()),
        Form::Settings => setting(line, names).unwrap_or_else(|| LEFT_OUT.into()),
    }
}

/// A line of columns, with the white space between them as it was.
fn columns(
    line: &str,
    names: &mut Pseudonyms,
    change: impl Fn(&mut Vec<String>, &mut Pseudonyms) -> Option<()>,
) -> String {
    // A hardware address that fills several columns.
    if spaced_identities(line).iter().any(|words| words.start() != words.end()) {
        return LEFT_OUT.into();
    }
    let is_blank = |c: char| c == ' ' || c == '\t';
    let mut words: Vec<String> = Vec::new();
    let mut gaps: Vec<&str> = Vec::new();
    let mut rest = line;
    loop {
        let gap = rest.len() - rest.trim_start_matches(is_blank).len();
        let (blank, behind) = rest.split_at(gap);
        gaps.push(blank);
        let end = behind.find(is_blank).unwrap_or(behind.len());
        let (word, behind) = behind.split_at(end);
        if word.is_empty() {
            break;
        }
        words.push(word.to_string());
        rest = behind;
    }
    let count = words.len();
    if change(&mut words, names).is_none() {
        return LEFT_OUT.into();
    }
    if words.len() != count {
        return words.join(" ");
    }
    let mut said = String::new();
    for (gap, word) in gaps.iter().zip(words.iter().map(String::as_str).chain([""])) {
        said.push_str(gap);
        said.push_str(word);
    }
    said
}

/// What stands behind an area in /proc/swaps: its type, numbers, and their headings.
fn is_of_swaps(column: &str) -> bool {
    const WORDS: [&str; 6] = ["partition", "file", "Type", "Size", "Used", "Priority"];
    let digits = column.strip_prefix('-').unwrap_or(column);
    WORDS.contains(&column) || !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())
}

/// fstab(5): source, place, filesystem, options, and two numbers. A line with three columns is one, and a comment may stand
/// behind them.
fn fstab_columns(columns: &mut Vec<String>, names: &mut Pseudonyms) -> Option<()> {
    let comment = columns.iter().position(|column| column.starts_with('#'));
    columns.truncate(comment.unwrap_or(FSTAB_COLUMNS).min(FSTAB_COLUMNS));
    let [source, place, kind, rest @ ..] = columns.as_mut_slice() else {
        return None;
    };
    // Numbers in a row are no line of a table.
    if kind.starts_with(|c: char| c.is_ascii_digit()) && kind != "9p" {
        return None;
    }
    *source = paths::volume(source, names);
    *place = paths::path(place, names);
    note_filesystem(kind, names);
    if let Some((options, numbers)) = rest.split_first_mut() {
        *options = options::mount_options(options, names);
        numbers.iter_mut().for_each(|number| *number = small_number(number));
    }
    Some(())
}

const FSTAB_COLUMNS: usize = 6;

/// A number of two digits. A longer one says what any does that is not zero, and what is no number says what zero does.
fn small_number(text: &str) -> String {
    let is_number = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if !is_number {
        "x".into()
    } else if text.len() <= 2 {
        text.to_string()
    } else {
        "1".into()
    }
}

/// Notes a type of filesystem that is none of the kernel's: programs give those behind `fuse.` their names.
fn note_filesystem(text: &str, names: &mut Pseudonyms) {
    const KNOWN: [&str; 5] = ["portal", "gvfsd-fuse", "lxcfs", "snapfuse", "encfs"];
    let kind = text.strip_prefix("fuse.").or(text.strip_prefix("fuseblk.")).unwrap_or(text);
    if !KNOWN.contains(&kind) && !module_names::is_given(kind) {
        names.note(kind);
    }
}

/// crypttab(5): name, device, key file, options.
fn crypttab_columns(columns: &mut Vec<String>, names: &mut Pseudonyms) -> Option<()> {
    columns.truncate(4);
    let [name, device, rest @ ..] = columns.as_mut_slice() else {
        return None;
    };
    names.note(name);
    *device = paths::volume(device, names);
    if let Some(key) = rest.first_mut() {
        *key = if key.starts_with('/') { paths::path(key, names) } else { "none".into() };
    }
    if let Some(options) = rest.get_mut(1) {
        *options = options::mount_options(options, names);
    }
    Some(())
}

/// proc_pid_mountinfo(5): after the sixth column come optional ones up to a dash, and three behind it. Some filesystems print
/// a blank in an option as it is, so that the rest of a name stands in columns of its own.
fn mountinfo_columns(columns: &mut Vec<String>, names: &mut Pseudonyms) -> Option<()> {
    let dash = columns.iter().position(|column| column == "-").filter(|dash| *dash >= 6)?;
    columns.truncate(dash + 4);
    let is_id = |number: &str| {
        (1..=10).contains(&number.len()) && number.bytes().all(|b| b.is_ascii_digit())
    };
    // The mount, its parent and the device.
    if !columns[..3].iter().all(|column| column.split(':').all(is_id)) {
        return None;
    }
    for at in [3, 4] {
        let place = columns.get_mut(at)?;
        *place = paths::path(place, names);
    }
    let options = columns.get_mut(5)?;
    *options = options::mount_options(options, names);
    for field in &mut columns[6..dash] {
        let tag = field
            .split_once(':')
            .filter(|(_, group)| group.len() <= 7 && group.bytes().all(|b| b.is_ascii_digit()));
        let is_known =
            tag.is_some_and(|(tag, _)| ["shared", "master", "propagate_from"].contains(&tag));
        if !is_known {
            *field = "unbindable".into();
        }
    }
    note_filesystem(columns.get(dash + 1)?, names);
    let source = columns.get_mut(dash + 2)?;
    *source = paths::volume(source, names);
    if let Some(options) = columns.get_mut(dash + 3) {
        *options = options::mount_options(options, names);
    }
    Some(())
}

/// A line of config.txt, as the firmware reads it: a filter, a file that is included or loaded, or a setting with words and
/// numbers. The board's number in a filter is noted, since it has a pseudonym elsewhere.
fn firmware_line(line: &str, names: &mut Pseudonyms) -> Option<String> {
    let text = line.trim();
    let indent = &line[..line.len() - line.trim_start().len()];
    if let Some(rest) = text.strip_prefix('[') {
        let (filter, _) = rest.split_once(']')?;
        return Some(format!("{indent}[{}]", firmware_filter(filter.trim(), names)));
    }
    let word = text.split(char::is_whitespace).next().unwrap_or_default();
    if word == "include" || word == "initramfs" {
        let files = text[word.len()..].trim();
        let files = if word == "include" && !known_names::is_known(files) {
            paths::path(files, names)
        } else {
            files_to_load(files, names)
        };
        return Some(format!("{indent}{word} {files}"));
    }
    let (key, value) = text.split_once('=')?;
    let (key, value) = (key.trim(), value.trim());
    if FILE_SETTINGS.contains(&key) {
        let files = files_to_load(value, names);
        return Some(format!("{indent}{key}={files}"));
    }
    let is_named = key.starts_with(|first: char| first.is_ascii_alphabetic());
    let is_key = is_named && key.len() <= 40 && key.split([':', '_', '.']).all(is_setting_name);
    (is_key && is_firmware_value(value)).then(|| line.trim_end().to_string())
}

fn is_setting_name(part: &str) -> bool {
    // The number of a port or a mode; a longer one may be a telephone's.
    let is_number = part.len() <= 2 && part.bytes().all(|b| b.is_ascii_digit());
    part.is_empty() || is_overlay(part) || is_number
}

/// Settings whose values are files of the boot partition (Raspberry Pi documentation, "config.txt").
const FILE_SETTINGS: [&str; 10] = [
    "kernel",
    "ramfsfile",
    "initramfs",
    "cmdline",
    "device_tree",
    "os_prefix",
    "overlay_prefix",
    "start_file",
    "fixup_file",
    "armstub",
];

/// A text with its white space and commas as they are, and each piece between them changed.
fn pieces(text: &str, mut change: impl FnMut(&str) -> String) -> String {
    let is_gap = |c: char| c.is_whitespace() || c == ',';
    let each = text.split_inclusive(is_gap).map(|piece| {
        let core = piece.trim_end_matches(is_gap);
        if core.is_empty() { piece.to_string() } else { change(core) + &piece[core.len()..] }
    });
    each.collect()
}

/// Files with a place in memory. Several numbers in a row are neither, and may be a telephone's or spell a word.
fn files_to_load(text: &str, names: &mut Pseudonyms) -> String {
    let is_number = |piece: &&str| {
        options::is_public_number(piece)
            || (1..=4).contains(&piece.len()) && piece.bytes().all(|b| b.is_ascii_hexdigit())
    };
    let numbers = text.split([' ', '\t', ',']).filter(is_number).count();
    if numbers > 1 {
        names.note(text);
        return text.to_string();
    }
    pieces(text, |piece| file_to_load(piece, names))
}

/// A file, or where in memory it goes.
fn file_to_load(piece: &str, names: &mut Pseudonyms) -> String {
    let is_place = options::is_public_number(piece) || is_place(piece);
    let is_public = is_place || is_overlay(piece) || known_names::is_known(piece);
    if is_public { piece.to_string() } else { paths::path(piece, names) }
}

/// "0x00f00000": a short number, or a place in memory, which is one of whole pages. Others may be serial numbers.
fn is_place(piece: &str) -> bool {
    piece.strip_prefix("0x").is_some_and(|digits| {
        digits.bytes().all(|b| b.is_ascii_hexdigit())
            && (digits.len() <= 5 || digits.len() <= 8 && digits.ends_with("000"))
    })
}

/// Eight or more hexadecimal digits with letters and figures among them, as serial numbers and addresses have.
fn holds_hex(text: &str) -> bool {
    text.split(|c: char| !c.is_ascii_alphanumeric()).any(|run| {
        let run = run.trim_start_matches("0x");
        run.len() >= 8
            && run.bytes().all(|b| b.is_ascii_hexdigit())
            && run.bytes().any(|b| b.is_ascii_digit())
            && run.bytes().any(|b| b.is_ascii_alphabetic())
    })
}

/// What stands between brackets. One that is not known applies to no board, and so does what stands for it.
fn firmware_filter(filter: &str, names: &mut Pseudonyms) -> String {
    const STANDS_FOR_UNKNOWN: &str = "left-out";
    if let Some(serial) = filter.strip_prefix("0x") {
        names.note(serial);
        return filter.to_string();
    }
    let is_value = |value: &str| {
        options::is_words(value)
            || options::is_public_number(value)
            || value.len() <= 6 && value.starts_with("0x")
    };
    match filter.split_once(['=', ':']) {
        None if is_overlay(filter) => filter.to_string(),
        None => STANDS_FOR_UNKNOWN.into(),
        Some((key, value)) if is_overlay(key) && key != "EDID" && is_value(value) => {
            filter.to_string()
        }
        Some((key, _)) if is_overlay(key) || key == "EDID" => format!("{key}={STANDS_FOR_UNKNOWN}"),
        Some(_) => format!("other={STANDS_FOR_UNKNOWN}"),
    }
}

/// Names of overlays, files and parameters, with numbers; nothing that holds an address or a long number.
fn is_firmware_value(value: &str) -> bool {
    let is_piece = |piece: &str| {
        options::is_words(piece)
            || options::is_public_number(piece)
            || is_place(piece)
            || is_overlay(piece)
    };
    !identities::is_address(value)
        && spelt_words(value).is_empty()
        && value.len() <= 120
        && value.split([',', '=', ' ', '/']).filter(|piece| !piece.is_empty()).all(is_piece)
}

/// "vc4-kms-v3d", "kernel8.img", "initramfs_2712": words of the firmware's own with numbers.
fn is_overlay(piece: &str) -> bool {
    const OWN: [&str; 24] = [
        "vc",
        "kms",
        "fkms",
        "dtparam",
        "dtoverlay",
        "img",
        "initramfs",
        "disable",
        "bt",
        "spi",
        "i",
        "c",
        "arm",
        "uart",
        "cma",
        "gpio",
        "fan",
        "rtc",
        "wlan",
        "miniuart",
        "dsi",
        "csi",
        "hat",
        "elf",
    ];
    const MAX_DIGITS: usize = 7;
    let pieces = piece.split(|c: char| !c.is_ascii_alphabetic()).filter(|part| !part.is_empty());
    pieces.clone().count() > 0
        && piece.is_ascii()
        && !holds_hex(piece)
        && piece.bytes().filter(u8::is_ascii_digit).count() <= MAX_DIGITS
        && !identities::is_address(piece)
        && spelt_words(piece).is_empty()
        && pieces.into_iter().all(|part| OWN.contains(&part) || options::is_words(part))
}

/// A line of a configuration file: a section, or a setting; lists of words, as module names, stay too.
fn setting(line: &str, names: &mut Pseudonyms) -> Option<String> {
    let text = line.trim();
    let section = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    if let Some(section) = section {
        return options::is_words(section).then(|| line.to_string());
    }
    if text.contains('=') {
        return options::setting_line(text, names).map(|setting| {
            let indent = &line[..line.len() - line.trim_start().len()];
            format!("{indent}{setting}")
        });
    }
    if !spelt_words(text).is_empty() {
        return None;
    }
    let words: Option<Vec<String>> = text
        .split_whitespace()
        .map(|word| {
            if word.starts_with('/') {
                return Some(paths::path(word, names));
            }
            (options::is_words(word) || options::is_public_number(word)).then(|| word.to_string())
        })
        .collect();
    words.map(|words| words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_keep_their_form_and_lose_what_no_rule_knows() {
        let mut names = Pseudonyms::noting();
        let mut of = |form, line: &str| line_of(form, line, &mut names);
        let same = [
            (
                Form::Fstab,
                "PARTUUID=4f2a9c1d-02  /               ext4    defaults,noatime  0       1",
            ),
            (Form::Fstab, "tmpfs\t/tmp tmpfs size=100m 0 0"),
            (Form::CommandLine, "console=tty1 root=PARTUUID=4f2a9c1d-02 rootwait"),
            (Form::FirmwareConfig, "dtoverlay=vc4-kms-v3d,cma-256"),
            (Form::FirmwareConfig, "[pi4]"),
            (Form::FirmwareConfig, "auto_initramfs=1"),
            (Form::FirmwareConfig, "kernel=kernel8.img"),
            (Form::FirmwareConfig, "initramfs initramfs8 followkernel"),
            (Form::FirmwareConfig, "  initramfs initrd.img,more.img 0x00f00000"),
            (Form::FirmwareConfig, "include mine.txt"),
            (Form::FirmwareConfig, "[board-type=0x11]"),
            (Form::FirmwareConfig, "[boot_partition=2]"),
            (Form::FirmwareConfig, "[gpio4=1]"),
            (Form::FirmwareConfig, "[0xa1b2c3d4]"),
            (Form::FirmwareConfig, "os_prefix=old/"),
            (Form::FirmwareConfig, "os_prefix=8a7b6c5d/"),
            (Form::Fstab, "UUID=1 /mnt/data ext4"),
            (Form::Fstab, "/dev/sda1 /srv/data fuse.qzcorpfs rw 0 x"),
            (Form::Fstab, "LABEL=\"Qz Data\" /mnt/q defaults x x"),
            (Form::Mountinfo, "24 1 8:2 / / rw shared:1 master:2 - fuse.qzotherfs /dev/sdb rw"),
            (Form::Mountinfo, "24 1 8:2 / / rw - fuse.sshfs tmpfs rw"),
            (Form::FirmwareConfig, "hdmi_group:0=1"),
            (Form::Swaps, "Filename\t\t\tType\t\tSize\tUsed\tPriority"),
            (Form::Swaps, "/dev/sda2                partition\t1048572\t0\t-2"),
            (Form::Settings, "CONF_SWAPSIZE=100"),
            (Form::Settings, "[Main]"),
            (Form::Mountinfo, "24 1 179:2 / / rw,noatime shared:1 - ext4 /dev/mmcblk0p2 rw"),
        ];
        for (form, line) in same {
            assert_eq!(of(form, line), line);
        }
        assert_eq!(
            of(Form::Fstab, "//nas/x /mnt/m cifs username=alice,password=hunter2,vers=3.0 0 0"),
            "//nas/x /mnt/m cifs vers=3.0 0 0"
        );
        assert_eq!(of(Form::Fstab, "# //nas/x /mnt cifs password=hunter2"), "#");
        assert_eq!(
            of(Form::CommandLine, "quiet ip=10.1.2.3 wpa.psk=hunter2"),
            "quiet left-outxxxxxxxx left-outxxxxxxxx"
        );
        assert_eq!(
            of(Form::Fstab, "/dev/sda1 /srv ext4 rw 5551234 22 # x y"),
            "/dev/sda1 /srv ext4 rw 1 22"
        );
        assert_eq!(of(Form::Fstab, "/dev/sda1 /srv"), "#");
        assert_eq!(of(Form::Fstab, "98 56 50 55"), "#");
        assert_eq!(of(Form::Swaps, "/swap qzalice 1048572 0 -2"), "#");
        assert_eq!(of(Form::FirmwareConfig, "program_serial=0xa1b2c3d5"), "#");
        assert_eq!(of(Form::FirmwareConfig, "dtoverlay=e27a072e9b5b"), "#");
        assert_eq!(of(Form::FirmwareConfig, "gpu_mem=0x9f8e7d6c"), "#");
        assert_eq!(
            of(Form::Mountinfo, "24 1 8:2 / / rw qzalice - ext4 /dev/sdb rw"),
            "24 1 8:2 / / rw unbindable - ext4 /dev/sdb rw"
        );
        assert_eq!(of(Form::FirmwareConfig, "[EDID=ALI-TV1]"), "[EDID=left-out]");
        assert_eq!(of(Form::FirmwareConfig, "[alice]"), "[left-out]");
        assert_eq!(of(Form::FirmwareConfig, "alice=1"), "#");
        assert_eq!(of(Form::FirmwareConfig, "5551234=1"), "#");
        assert_eq!(of(Form::FirmwareConfig, "hdmi_group:5551234=1"), "#");
        assert_eq!(of(Form::FirmwareConfig, "# owner alice@example.org"), "#");
        assert_eq!(of(Form::Settings, "SECRET=hunter2"), "#");
        assert_eq!(of(Form::Settings, "8 1 . 1 3 5 . 2 4"), "#");
        assert_eq!(of(Form::FirmwareConfig, "[q\u{200b}z\u{200b}a]"), "[left-out]");
        assert_eq!(of(Form::FirmwareConfig, "dtparam=a=30 31 36 38"), "#");
        let noted = names.noted();
        for name in ["nas", "8a7b6c5d", "qzcorpfs", "qzotherfs", "\"Qz"] {
            assert!(noted.iter().any(|one| one == name), "{name} in {noted:?}");
        }
        assert!(!noted.iter().any(|one| one == "sshfs"), "{noted:?}");
    }

    #[test]
    fn no_capture_has_a_password_whatever_is_asked_for() {
        use super::super::{Captured, Identities, save};
        use crate::files::Files;
        use crate::simulated::fake::FakeFiles;
        use crate::simulated::recorder::Recorder;
        use std::path::Path;

        let table = Path::new("/etc/fstab");
        let config = Path::new("/boot/firmware/config.txt");
        let machine = FakeFiles::new()
            .file(table, "//nas/x /mnt cifs password=tr0ub4dor,uid=5 0 0\n")
            .file(config, "# wifi_password: tr0ub4dor\ngpu_mem=16\n");
        for identities in [Identities::Replace, Identities::Keep] {
            let recorder = Recorder::new(&machine);
            recorder.text(table).unwrap();
            recorder.text(config).unwrap();
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("capture.tar");
            save(&recorder, &path, "a test", "2026-11-21T12:00:00Z", identities).unwrap();
            let kept = Captured::open(&path).unwrap();
            let [table, config] = [table, config].map(|path| kept.text(path).unwrap());
            assert!(!table.contains("tr0ub4dor") && table.contains("uid=5 0 0"), "{table}");
            assert!(!config.contains("tr0ub4dor") && config.contains("gpu_mem=16"), "{config}");
        }
    }
}
