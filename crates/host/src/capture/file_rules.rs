//! What of each recorded file, name and answer goes into a capture: every file has a rule by its path, and one that has none
//! keeps only that it is there.
//!
//! Names that stay where they stand, such as a server's in a table of mounts, are noted, so that they get one pseudonym in all
//! files and paths.

use std::collections::BTreeSet;

use super::kernel_forms::{self, Words};
use super::known_forms::{self, Form};
use super::{containers, known_names, module_names, shapes};
use crate::files::ReadError;
use crate::shareable::list::is_product_word;
use crate::shareable::words::phrase;
use crate::shareable::{LEFT_OUT, Pseudonyms, kernel_names, options, paths};
use crate::simulated::recorder::Record;

/// What a capture has of a text of which it keeps that it is there.
pub const TEXT_IS_THERE: &[u8] = b"#\n";
/// The same of what is neither a text nor a program.
pub const FILE_IS_THERE: &[u8] = &[0xff, 0];

/// What may pass of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    /// The kernel's own words and numbers, which hold no names that people gave.
    AsItIs,
    /// Lines of a file that people write.
    Lines(Form),
    /// Words and numbers of the kernel, udev and packages.
    Kernel(Words),
    /// An identity, which has a pseudonym everywhere.
    Identity,
    /// A name that people gave.
    Name,
    /// A path, a device or an address.
    Target,
    /// The environment of process 1.
    Environment,
    /// The control groups of process 1.
    Groups,
    /// That it is there.
    Presence,
}

/// Files by their whole path; `*` stands for one component, `**` at the end for all below. The first that fits holds.
const PATHS: &[(&str, Rule)] = &[
    ("/proc/cmdline", Rule::Lines(Form::CommandLine)),
    ("/proc/self/mountinfo", Rule::Lines(Form::Mountinfo)),
    ("/proc/swaps", Rule::Lines(Form::Swaps)),
    ("/proc/cpuinfo", Rule::Kernel(Words::Cpuinfo)),
    ("/proc/meminfo", Rule::AsItIs),
    ("/proc/vmstat", Rule::AsItIs),
    ("/proc/stat", Rule::AsItIs),
    ("/proc/filesystems", Rule::Kernel(Words::Given)),
    ("/proc/pressure/*", Rule::Kernel(Words::Pressure)),
    ("/proc/self/auxv", Rule::AsItIs),
    ("/proc/self/smaps", Rule::Kernel(Words::Smaps)),
    ("/proc/config.gz", Rule::Kernel(Words::PackedConfig)),
    (containers::ENVIRONMENT, Rule::Environment),
    ("/proc/1/cgroup", Rule::Groups),
    ("/proc/*/comm", Rule::Kernel(Words::Value)),
    ("/proc/sys/kernel/hostname", Rule::Name),
    ("/proc/sys/kernel/osrelease", Rule::Kernel(Words::Release)),
    ("/proc/sys/vm/*", Rule::Kernel(Words::Number)),
    ("/proc/sys/**", Rule::Kernel(Words::Value)),
    ("/proc/device-tree/serial-number", Rule::Identity),
    ("/proc/device-tree/system/linux,serial", Rule::Identity),
    ("/proc/device-tree/model", Rule::Kernel(Words::Product)),
    ("/proc/device-tree/compatible", Rule::Kernel(Words::Product)),
    ("/proc/device-tree/chosen/bootloader/version", Rule::Kernel(Words::Commit)),
    ("/proc/device-tree/chosen/bootloader/build-timestamp", Rule::Kernel(Words::Seconds)),
    ("/proc/device-tree/**", Rule::Kernel(Words::Cell)),
    ("/boot/firmware/new/state", Rule::Kernel(Words::Value)),
    ("/boot/new/state", Rule::Kernel(Words::Value)),
    ("/etc/hostname", Rule::Name),
    ("/etc/machine-id", Rule::Identity),
    ("/etc/fstab", Rule::Lines(Form::Fstab)),
    ("/etc/crypttab", Rule::Lines(Form::Crypttab)),
    ("/etc/os-release", Rule::Kernel(Words::OsRelease)),
    ("/usr/lib/os-release", Rule::Kernel(Words::OsRelease)),
    ("/etc/**", Rule::Lines(Form::Settings)),
    ("/lib/modules/*/modules.builtin", Rule::Kernel(Words::Modules)),
    ("/lib/modules/*/modules.dep", Rule::Kernel(Words::Modules)),
    ("/lib/modules/**", Rule::Presence),
    ("/run/udev/data/*", Rule::Kernel(Words::Udev)),
    ("/run/host/container-manager", Rule::Kernel(Words::Value)),
    ("/run/systemd/container", Rule::Kernel(Words::Value)),
    ("/sys/kernel/debug/*/ios", Rule::AsItIs),
    ("/sys/kernel/debug/zswap/*", Rule::Kernel(Words::Number)),
    ("/sys/class/net/*/address", Rule::Identity),
    ("/sys/**", Rule::Kernel(Words::Value)),
];

/// Files below /sys by the end of their path, before the rules above.
const ATTRIBUTES: &[(&str, Rule)] = &[
    ("queue/scheduler", Rule::Kernel(Words::Given)),
    ("ssr", Rule::Kernel(Words::Register)),
    ("csd", Rule::Kernel(Words::Register)),
    ("cid", Rule::Identity),
    ("serial", Rule::Identity),
    ("serial_number", Rule::Identity),
    ("product_serial", Rule::Identity),
    ("board_serial", Rule::Identity),
    ("chassis_serial", Rule::Identity),
    ("vpd_pg80", Rule::Identity),
    ("vpd_pg83", Rule::Presence),
    ("wwid", Rule::Identity),
    ("eui", Rule::Identity),
    ("nguid", Rule::Identity),
    ("uuid", Rule::Identity),
    ("product_uuid", Rule::Identity),
    ("unique_id", Rule::Identity),
    ("address", Rule::Identity),
    ("dm/name", Rule::Name),
    ("model", Rule::Kernel(Words::Product)),
    ("vendor", Rule::Kernel(Words::Product)),
    ("product", Rule::Kernel(Words::Product)),
    ("manufacturer", Rule::Kernel(Words::Product)),
    ("name", Rule::Kernel(Words::Product)),
    ("type", Rule::Kernel(Words::Product)),
    ("firmware_rev", Rule::Kernel(Words::Product)),
    ("compatible", Rule::Kernel(Words::Product)),
    ("sys_vendor", Rule::Kernel(Words::Product)),
    ("product_name", Rule::Kernel(Words::Product)),
    ("bios_vendor", Rule::Kernel(Words::Product)),
    ("bios_version", Rule::Kernel(Words::Product)),
    ("loop/backing_file", Rule::Target),
    ("backing_dev", Rule::Target),
    ("backend", Rule::Target),
    ("uevent", Rule::Kernel(Words::Uevent)),
    ("size", Rule::Kernel(Words::Number)),
    ("start", Rule::Kernel(Words::Number)),
    ("disksize", Rule::Kernel(Words::Number)),
    ("stat", Rule::Kernel(Words::Number)),
    ("io_stat", Rule::Kernel(Words::Number)),
    ("mm_stat", Rule::Kernel(Words::Number)),
    ("bd_stat", Rule::Kernel(Words::Number)),
    ("errors_count", Rule::Kernel(Words::Number)),
    ("temp", Rule::Kernel(Words::Number)),
    ("affected_cpus", Rule::Kernel(Words::Number)),
    ("related_cpus", Rule::Kernel(Words::Number)),
];

/// Ends of the names of attributes below /sys whose values are numbers of a unit, and the directories of such attributes.
const NUMBERED: [&str; 6] = ["_freq", "_bytes", "_kb", "_input", "_time", "_us"];
const OF_NUMBERS: [&str; 2] = ["queue", "cpufreq"];

/// Where packages and administrators put settings, beside /etc.
const SETTINGS: [&str; 4] = ["/usr/lib/", "/usr/local/lib/", "/lib/", "/run/"];

fn rule(path: &str) -> Rule {
    if path.starts_with("/sys/")
        && let Some((_, rule)) = ATTRIBUTES.iter().find(|(end, _)| ends_with(path, end))
    {
        return *rule;
    }
    let (directory, name) = path.rsplit_once('/').unwrap_or(("", path));
    let is_number = NUMBERED.iter().any(|end| name.ends_with(end))
        || OF_NUMBERS.iter().any(|of| ends_with(directory, of));
    if path.starts_with("/sys/") && is_number {
        return Rule::Kernel(Words::Number);
    }
    if let Some((_, rule)) = PATHS.iter().find(|(pattern, _)| matches(path, pattern)) {
        return *rule;
    }
    let is_boot = directory.starts_with("/boot");
    let is_setting = name.ends_with(".conf") && SETTINGS.iter().any(|at| path.starts_with(at));
    if is_boot && name.contains("cmdline") {
        Rule::Lines(Form::CommandLine)
    } else if is_boot && name.starts_with("config-") {
        Rule::Kernel(Words::Config)
    } else if is_boot && name.ends_with(".txt") {
        Rule::Lines(Form::FirmwareConfig)
    } else if is_setting {
        Rule::Lines(Form::Settings)
    } else {
        Rule::Presence
    }
}

fn ends_with(path: &str, end: &str) -> bool {
    path.strip_suffix(end).is_some_and(|before| before.ends_with('/'))
}

fn matches(path: &str, pattern: &str) -> bool {
    if let Some(start) = pattern.strip_suffix("**") {
        return path.starts_with(start);
    }
    let (parts, wanted) = (path.split('/'), pattern.split('/'));
    parts.clone().count() == wanted.clone().count()
        && parts.zip(wanted).all(|(part, wanted)| wanted == "*" || part == wanted)
}

/// Leaves out of a record what no rule knows, and gives the names that stay.
pub(super) fn let_through(record: &mut Record) -> Vec<String> {
    let mut names = Pseudonyms::noting();
    // The paths of files are the program's own, or made of names that stand in lists and files.
    let command_lines = command_lines(record);
    for (path, contents) in &mut record.files {
        let rule = match rule(path) {
            Rule::Lines(Form::FirmwareConfig) if command_lines.contains(&small_name(path)) => {
                Rule::Lines(Form::CommandLine)
            }
            rule => rule,
        };
        let said = said_by(rule, path, &contents.bytes, &mut names);
        // A file of which less is left is whole.
        contents.whole |= said.len() != contents.bytes.len();
        contents.bytes = said;
    }
    for (directory, entries) in &record.directories {
        let prefix = directory.trim_end_matches('/');
        entries.iter().for_each(|entry| note_path(&format!("{prefix}/{entry}"), &mut names));
    }
    record.links.values().for_each(|target| note_path(target, &mut names));
    let keys = record.links.keys().chain(record.spaces.keys());
    let keys = keys.chain(record.errors.keys().map(|(path, _)| path));
    keys.for_each(|path| note_path(path, &mut names));
    record.errors.values_mut().for_each(shorten);
    for (call, answer) in &mut record.programs {
        match answer {
            Ok(output) => *output = output_of(call, output),
            Err(error) => shorten(error),
        }
    }
    names.noted()
}

/// The files of the boot partition that a config.txt names as command lines.
fn command_lines(record: &Record) -> BTreeSet<String> {
    let texts = record.files.iter().filter(|(path, _)| {
        path.starts_with("/boot/") && rule(path) == Rule::Lines(Form::FirmwareConfig)
    });
    let mut names = BTreeSet::new();
    for (_, contents) in texts {
        for line in String::from_utf8_lossy(&contents.bytes).lines() {
            let value = line.trim_start().strip_prefix("cmdline").map(|rest| rest.trim_start());
            // Firmware may also take the setting without its sign.
            let value = value.map(|rest| rest.strip_prefix('=').unwrap_or(rest).trim());
            names.extend(value.filter(|value| !value.is_empty()).map(small_name));
        }
    }
    names
}

/// The last component, which FAT finds in any case.
fn small_name(path: &str) -> String {
    path.rsplit('/').next().unwrap_or(path).to_lowercase()
}

fn said_by(rule: Rule, path: &str, bytes: &[u8], names: &mut Pseudonyms) -> Vec<u8> {
    match rule {
        Rule::AsItIs => bytes.to_vec(),
        Rule::Lines(form) => known_forms::text_of(form, bytes, names),
        Rule::Kernel(words) => kernel_forms::said(words, bytes, names),
        Rule::Identity => {
            if ends_with(path, "dm/uuid") {
                kernel_forms::note_mapping_id(&String::from_utf8_lossy(bytes), names);
            }
            bytes.to_vec()
        }
        Rule::Name => {
            names.note(String::from_utf8_lossy(bytes).trim());
            bytes.to_vec()
        }
        Rule::Target => {
            let text = String::from_utf8_lossy(bytes);
            let core = text.trim_end();
            (paths::target(core, names) + &text[core.len()..]).into_bytes()
        }
        Rule::Environment => containers::environment(bytes),
        Rule::Groups => containers::groups(bytes),
        Rule::Presence => presence(bytes),
    }
}

/// Something that is a text where the file is one, and is none where it is none. A program tells for what machine it is made.
fn presence(bytes: &[u8]) -> Vec<u8> {
    if bytes.is_empty() {
        Vec::new()
    } else if bytes.starts_with(b"\x7fELF") {
        program_head(bytes)
    } else if std::str::from_utf8(bytes).is_ok_and(|text| !text.contains('\0')) {
        TEXT_IS_THERE.to_vec()
    } else {
        FILE_IS_THERE.to_vec()
    }
}

/// Of a program's head, its class, its order of bytes, its version and its system, then its type and its machine (elf(5)).
fn program_head(bytes: &[u8]) -> Vec<u8> {
    const HEAD_BYTES: usize = 20;
    // Nothing reads what fills the head up to its type.
    const FILLED: std::ops::Range<usize> = 8..16;
    let head = bytes.iter().take(HEAD_BYTES).enumerate();
    head.map(|(at, byte)| if FILLED.contains(&at) { 0 } else { *byte }).collect()
}

/// Directories of which the system's packages give the names.
const PACKAGED: [&str; 7] =
    ["/usr/", "/bin/", "/sbin/", "/lib/", "/proc/", "/run/udev/", "/run/systemd/"];

/// Directories in which firmware, packages and people put files side by side, and none of a user's.
const BROUGHT: [&str; 4] = ["/boot/", "/etc/", "/run/rubus/", "/var/log/"];

/// Notes the names in a path that people gave.
fn note_path(path: &str, names: &mut Pseudonyms) {
    let modules = path.strip_prefix("/lib/modules/").or(path.strip_prefix("/usr/lib/modules/"));
    let is_packaged = PACKAGED.iter().any(|start| path.starts_with(start));
    if let Some(below) = path.strip_prefix("/sys/") {
        note_sysfs(below, names);
    } else if let Some(below) = path.strip_prefix("/dev/") {
        note_device(below, names);
    } else if let Some(below) = modules {
        let mut parts = below.split('/');
        kernel_forms::note_release(parts.next().unwrap_or_default(), names);
        let is_public = |part: &&str| module_names::is_known(part) || is_product_word(part);
        parts.filter(|part| !is_public(part)).for_each(|part| names.note(part));
    } else if BROUGHT.iter().any(|start| path.starts_with(start)) {
        let given: Vec<&str> =
            path.split('/').filter(|part| !known_names::is_known(part)).collect();
        paths::path(&given.join("/"), names);
    } else if path.starts_with("/usr/local/") || !is_packaged {
        paths::path(path, names);
    } else if let Some(name) = path.rsplit('/').next().filter(|name| name.ends_with(".conf")) {
        // Settings are also put beside those of packages.
        if !options::is_words(name) {
            names.note(name);
        }
    }
}

/// Of names in sysfs, people give those of network interfaces and of some block devices.
fn note_sysfs(below: &str, names: &mut Pseudonyms) {
    let parts: Vec<&str> = below.split('/').collect();
    for pair in parts.windows(2) {
        match pair {
            ["net", "bonding_masters"] => {}
            ["net", name] => match shapes::address_in_name(name) {
                // The rest of the name stays, and so does the maker.
                Some(address) => names.note(&address),
                None => drop(paths::interface(name, names)),
            },
            ["block", name] if !name.contains(':') => drop(paths::device(name, names)),
            _ => {}
        }
    }
}

fn note_device(below: &str, names: &mut Pseudonyms) {
    let is_known = |part: &str| kernel_names::is_kernel_name(part) || options::is_words(part);
    match below.split('/').collect::<Vec<_>>().as_slice() {
        ["disk", "by-label" | "by-partlabel", label, ..] => drop(paths::label(label, names)),
        ["disk", "by-id", link] => kernel_forms::note_link_by_id(link, names),
        // What is in the other directories of links is known by its form.
        ["disk" | "block", ..] | ["mapper", "control"] => {}
        ["mapper", name, ..] => names.note(name),
        parts => parts.iter().filter(|part| !is_known(part)).for_each(|part| names.note(part)),
    }
}

/// Public words of what a program answered; of one that is not known, nothing.
fn output_of(call: &[String], output: &str) -> String {
    match call.first().map_or("", String::as_str) {
        "dmesg" | "vcgencmd" | "rpi-eeprom-update" | "journalctl" | "uname" => {
            kernel_forms::lines(output)
        }
        _ => LEFT_OUT.into(),
    }
}

fn shorten(error: &mut ReadError) {
    let public =
        |text: &str| phrase(&text.replace('\n', " "), &BTreeSet::new(), &Pseudonyms::default());
    match error {
        ReadError::Failed { complaint, output, .. } => {
            *complaint = public(complaint);
            *output = kernel_forms::lines(output);
        }
        ReadError::Other(text) => *text = public(text),
        ReadError::Absent | ReadError::Denied | ReadError::NotCaptured => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said_of(path: &str, bytes: &[u8], names: &mut Pseudonyms) -> Vec<u8> {
        said_by(rule(path), path, bytes, names)
    }

    #[test]
    fn every_file_has_a_rule_by_its_path_and_an_unknown_one_keeps_nothing() {
        for (path, expected) in [
            ("/proc/cmdline", Rule::Lines(Form::CommandLine)),
            ("/boot/firmware/cmdline.txt", Rule::Lines(Form::CommandLine)),
            ("/boot/firmware/config.txt", Rule::Lines(Form::FirmwareConfig)),
            ("/boot/config-6.12.47+rpt-rpi-v8", Rule::Kernel(Words::Config)),
            ("/boot/firmware/new/state", Rule::Kernel(Words::Value)),
            ("/etc/default/zramswap", Rule::Lines(Form::Settings)),
            ("/sys/devices/soc/usb1/1-1/serial", Rule::Identity),
            ("/sys/block/sda/size", Rule::Kernel(Words::Number)),
            ("/sys/block/sda/queue/nr_requests", Rule::Kernel(Words::Number)),
            ("/sys/block/sda/queue/read_ahead_kb", Rule::Kernel(Words::Number)),
            ("/sys/devices/system/cpu/cpufreq/policy0/affected_cpus", Rule::Kernel(Words::Number)),
            ("/sys/block/sda/device/state", Rule::Kernel(Words::Value)),
            ("/sys/block/loop0/loop/backing_file", Rule::Target),
            ("/usr/sbin/mkswap", Rule::Presence),
            ("/proc/1/environ", Rule::Environment),
            ("/proc/7/environ", Rule::Presence),
            ("/home/alice/.ssh/id_ed25519", Rule::Presence),
            ("/dev/sda", Rule::Presence),
            ("/var/lib/x", Rule::Presence),
        ] {
            assert_eq!(rule(path), expected, "{path}");
        }
        let mut names = Pseudonyms::noting();
        assert_eq!(said_of("/home/alice/key", b"hunter2\n", &mut names), b"#\n");
        assert_eq!(said_of("/boot/initramfs8", b"\x1f\x8b\0secret", &mut names), [0xff, 0]);
        for state in [&b"unknown\n"[..], b"trying\n", b"good\n", b"bad\n"] {
            assert_eq!(said_of("/boot/firmware/new/state", state, &mut names), state);
        }
        assert_eq!(said_of("/usr/bin/x", b"", &mut names), b"");
        let program = b"\x7fELF\x02\x01\x01\0\0qzalice\x02\0\xb7\0\x01\0\0\0qzsecret";
        let head = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x02\0\xb7\0";
        assert_eq!(said_of("/bin/sh", program, &mut names), head);
        assert_eq!(said_of("/bin/sh", &program[..5], &mut names), program[..5]);
    }

    #[test]
    fn names_that_people_gave_are_noted_in_paths() {
        let mut names = Pseudonyms::noting();
        for path in [
            "/sys/class/net/enxb827eb112233/speed",
            "/sys/devices/virtual/block/md_alice/size",
            "/dev/mapper/alicebox--vg-root",
            "/dev/disk/by-label/alicelabel",
            "/home/alice2/swap",
            "/boot/firmware/start4.elf",
            "/etc/mdadm/mdadm.conf",
            "/etc/systemd/system/log2ram.service",
            "/etc/systemd/system/backup-of-alice8.service",
            "/boot/firmware/overlays/alice7.dtbo",
            "/etc/sysctl.d/99-alice3.conf",
            "/lib/modules/6.1.0-alice4/modules.builtin",
            "/lib/modules/6.1.0-alice4/kernel/crypto/alice6.ko",
            "/usr/lib/modules/6.1.0/kernel/drivers/usb/storage/usb-storage.ko.xz",
            "/sys/block/mmcblk0/queue/scheduler",
            "/usr/lib/systemd/system-generators/zram-generator",
            "/usr/lib/sysctl.d/50-alice5.conf",
            "/usr/lib/sysctl.d/50-default.conf",
        ] {
            note_path(path, &mut names);
        }
        assert_eq!(
            names.noted(),
            [
                "50-alice5.conf",
                "99-alice3.conf",
                "alice",
                "alice2",
                "alice4",
                "alice6.ko",
                "alice7.dtbo",
                "alicebox--vg-root",
                "alicelabel",
                "b8:27:eb:11:22:33",
                "backup-of-alice8.service"
            ]
        );
    }

    #[test]
    fn programs_and_errors_keep_public_words() {
        let call = |words: &[&str]| words.iter().map(ToString::to_string).collect::<Vec<String>>();
        let log = "mmc0: new ultra high speed SDR104 SDXC card at address aaaa\n";
        assert_eq!(output_of(&call(&["journalctl", "--dmesg"]), log), log);
        assert_eq!(output_of(&call(&["mdadm", "--detail"]), "name=attic:0"), LEFT_OUT);
        let mut error = ReadError::Other("/home/alice/x: input/output error".into());
        shorten(&mut error);
        assert!(!error.to_string().contains("alice") && error.to_string().contains("error"));
    }
}
