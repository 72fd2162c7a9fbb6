//! The recipe that makes what helps last: rules by the disk's own identity, never by its name, which moves.

use std::path::Path;

use rubus_host::Files;

use crate::disk_seen::{AttributeOf, IDENTITY_FILES};
use crate::place::Place;
use crate::setting::{Candidate, Setting};

/// Name of the recipe, of its rule file and of its file.
pub const NAME: &str = "tune";

/// What a recipe is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lasting {
    /// The recipe, as a TOML file.
    pub recipe: String,
    /// The rule file that it writes, if a setting of a disk is among the winners.
    pub has_rule: bool,
}

/// The recipe for these winners on the disk of a place.
///
/// # Errors
/// In words, why none can be made.
pub fn lasting(
    place: &Place,
    winners: &[&Candidate],
    files: &dyn Files,
) -> Result<Lasting, String> {
    let rule = rule_file();
    if winners.iter().any(|one| one.setting != Setting::Governor) && files.exists(Path::new(&rule))
    {
        return Err(format!(
            "{rule} of an earlier `rubus tune` would be replaced; take it back first: `sudo rubus undo`"
        ));
    }
    let set_by: Vec<String> = winners
        .iter()
        .flat_map(|winner| {
            winner.set_by.iter().map(|file| format!("{} is set by {file}", winner.setting.title()))
        })
        .collect();
    if !set_by.is_empty() {
        return Err(format!("{}; change it there, since two files would fight", set_by.join(", ")));
    }
    let of_disk: Vec<&&Candidate> =
        winners.iter().filter(|one| one.setting != Setting::Governor).collect();
    let governor = winners.iter().find(|one| one.setting == Setting::Governor);
    let mut steps = String::new();
    if !of_disk.is_empty() {
        let matches = identity(&place.disk, files)?;
        steps.push_str(&rule_step(&matches, &of_disk, &place.disk));
    }
    if let Some(governor) = governor {
        steps.push_str(&governor_steps(governor));
    }
    let done: Vec<String> =
        winners.iter().map(|one| format!("{} {}", one.setting.title(), one.to)).collect();
    let recipe = format!(
        "# Made by `rubus tune` from what it measured on this machine.\n\
         name = \"{NAME}\"\n\
         title = \"Keep what `rubus tune` has found to help: {}.\"\n\
         notes = [\"Undoing it removes the files; the running kernel keeps the values until it restarts.\"]\n{steps}",
        done.join(", ")
    );
    Ok(Lasting { recipe, has_rule: !of_disk.is_empty() })
}

fn rule_step(matches: &[String], winners: &[&&Candidate], disk: &str) -> String {
    let sets = winners.iter().map(|one| {
        let attribute = match one.setting {
            Setting::ReadAhead => "queue/read_ahead_kb",
            Setting::Scheduler => "queue/scheduler",
            Setting::Requests => "queue/nr_requests",
            Setting::Governor => unreachable!("it is of no disk"),
        };
        (one.setting, format!("ATTR{{{attribute}}}=\"{}\"", one.to))
    });
    // Another scheduler resets the queue, so it comes first.
    let mut sets: Vec<(Setting, String)> = sets.collect();
    sets.sort_by_key(|(setting, _)| *setting != Setting::Scheduler);
    let mut parts = vec![
        "ACTION==\"add|change\"".to_string(),
        "SUBSYSTEM==\"block\"".to_string(),
        "ENV{DEVTYPE}==\"disk\"".to_string(),
    ];
    parts.extend(matches.iter().cloned());
    parts.extend(sets.into_iter().map(|(_, set)| set));
    format!(
        "\n[[step]]\ndo = \"write_file\"\nwhy = \"udev gives this disk, known by its own identity, the values at each \
         start.\"\npath = \"{}\"\ntext = '''\n# Made by `rubus tune` for the disk that was {disk}.\n{}\n'''\n",
        rule_file(),
        parts.join(", ")
    )
}

/// The rule file.
pub fn rule_file() -> String {
    format!("/etc/udev/rules.d/90-rubus-{NAME}.rules")
}

/// Policies of the processor do not move, so their paths can be named.
fn governor_steps(governor: &Candidate) -> String {
    let mut text = format!(
        "\n[[step]]\ndo = \"write_file\"\nwhy = \"The kernel forgets the governor when it stops.\"\n\
         path = \"/etc/tmpfiles.d/rubus-{NAME}.conf\"\ntext = '''\n# Made by `rubus tune`; see tmpfiles.d(5).\n"
    );
    for knob in &governor.knobs {
        text.push_str(&format!("w {} - - - - {}\n", knob.path.display(), governor.to));
    }
    text.push_str("'''\n");
    for knob in &governor.knobs {
        text.push_str(&format!(
            "\n[[step]]\ndo = \"set_knob\"\nwhy = \"The same now, without a restart.\"\npath = \"{}\"\nvalue = \"{}\"\n",
            knob.path.display(),
            governor.to
        ));
    }
    text
}

/// What of a udev rule matches this disk and no other one.
///
/// # Errors
/// In words, when the disk has no identity of its own, or another connected one has the same.
pub fn identity(disk: &str, files: &dyn Files) -> Result<Vec<String>, String> {
    let none = |why: String| {
        format!("after a restart, {disk} cannot be told from other disks: {why}; set it by hand")
    };
    let own = matches(disk, files).ok_or_else(|| none("it has no serial number".into()))?;
    let names = files
        .list(Path::new("/sys/block"))
        .map_err(|error| none(format!("/sys/block: {error}")))?;
    let twin = names
        .iter()
        .find(|name| *name != disk && matches(name, files).is_some_and(|other| other == own));
    match twin {
        Some(twin) => Err(none(format!("{twin} has the same serial number"))),
        None => Ok(own),
    }
}

/// The identity as attributes of the kernel, which do not depend on the order of udev's rules.
fn matches(disk: &str, files: &dyn Files) -> Option<Vec<String>> {
    let directory = Path::new("/sys/block").join(disk);
    let read = |file: &Path| files.text(&directory.join(file)).ok().filter(|text| is_plain(text));
    let size = read(Path::new("size"))?;
    let with = |matches: Vec<String>| {
        let mut matches = matches;
        matches.push(format!("ATTR{{size}}==\"{size}\""));
        Some(matches)
    };
    for file in IDENTITY_FILES.iter().filter(|file| file.is_for_rules) {
        let key = match file.of {
            AttributeOf::Disk => "ATTR",
            AttributeOf::Device => "ATTRS",
        };
        if let Some(value) = read(&file.path()) {
            return with(vec![format!("{key}{{{}}}==\"{value}\"", file.attribute)]);
        }
    }
    // Behind USB the serial number is that of the bridge, which other disks come to be in; a stick is its own bridge.
    if files.text(&directory.join("removable")).is_ok_and(|text| text.trim() == "0") {
        return None;
    }
    let real = files.real_path(&directory).ok()?;
    let device = real.ancestors().find(|above| files.exists(&above.join("idVendor")))?;
    let of = |name: &str| files.text(&device.join(name)).ok().filter(|text| is_plain(text));
    let (vendor, product, serial) = (of("idVendor")?, of("idProduct")?, of("serial")?);
    with(vec![
        format!("ATTRS{{idVendor}}==\"{vendor}\""),
        format!("ATTRS{{idProduct}}==\"{product}\""),
        format!("ATTRS{{serial}}==\"{serial}\""),
    ])
}

/// Whether a rule can name a value: no quotes, no patterns, nothing that only looks like an identity.
fn is_plain(text: &str) -> bool {
    let is_name = |c: char| c.is_ascii_alphanumeric() || " ._:,+=/-".contains(c);
    let body = text.split_once('.').map_or(text, |(_, body)| body);
    let is_filler = body.starts_with("00000000") || body.contains("12345678");
    let says_something = !is_filler && body.chars().any(|c| c.is_ascii_alphanumeric() && c != '0');
    says_something && text.len() <= 200 && text.chars().all(is_name)
}

#[cfg(test)]
mod tests {
    use rubus_host::simulated::fake::FakeFiles;

    use super::*;
    use crate::setting::{Risk, Work};

    fn place() -> Place {
        Place {
            path: "/data".into(),
            filesystem: "ext4".into(),
            disk: "sda".into(),
            stacked_on: None,
            is_loop: false,
            is_usb: true,
            options: Vec::new(),
        }
    }

    fn winner(setting: Setting, to: &str, path: &str) -> Candidate {
        Candidate {
            setting,
            from: "x".into(),
            to: to.into(),
            knobs: vec![crate::live::Knob { path: path.into(), disk: None, resets: Vec::new() }],
            works: vec![Work::LargeRead],
            does: "",
            source: "",
            risk: Risk::None,
            set_by: Vec::new(),
        }
    }

    fn disk(files: FakeFiles, name: &str, wwid: &str) -> FakeFiles {
        files
            .file(format!("/sys/block/{name}/size"), "1000215216\n")
            .file(format!("/sys/block/{name}/device/wwid"), format!("{wwid}\n"))
    }

    #[test]
    fn the_rule_names_the_disk_by_its_identity_and_never_by_its_name() {
        let files = disk(FakeFiles::new(), "sda", "naa.5002538e40fedcba");
        let path = "/sys/devices/system/cpu/cpufreq/policy0/scaling_governor";
        let all = [
            winner(Setting::ReadAhead, "2048", ""),
            winner(Setting::Scheduler, "bfq", ""),
            winner(Setting::Governor, "performance", path),
        ];
        let recipe = lasting(&place(), &all.iter().collect::<Vec<_>>(), &files).unwrap().recipe;
        insta::assert_snapshot!(recipe);
        let rules = recipe.lines().filter(|line| line.starts_with("ACTION"));
        assert!(rules.clone().count() == 1 && rules.clone().all(|rule| !rule.contains("sda")));
        assert!(!recipe.contains("/sys/block"), "{recipe}");
    }

    #[test]
    fn a_disk_that_cannot_be_told_from_others_gets_no_rule() {
        let twins = disk(disk(FakeFiles::new(), "sda", "naa.1"), "sdb", "naa.1");
        assert!(identity("sda", &twins).unwrap_err().contains("sdb"));
        for wwid in ["", "0000", "naa.*", "a\"b"] {
            let files = disk(FakeFiles::new(), "sda", wwid);
            assert!(identity("sda", &files).is_err(), "{wwid}");
        }
        let usb = "/sys/devices/usb1/1-1";
        let files = FakeFiles::new()
            .file(format!("{usb}/idVendor"), "152d\n")
            .file(format!("{usb}/idProduct"), "0578\n")
            .file(format!("{usb}/serial"), "DD564198838F\n")
            .file(format!("{usb}/host0/block/sda/size"), "1000\n")
            .link("/sys/block/sda", "../devices/usb1/1-1/host0/block/sda");
        let found = identity("sda", &files).unwrap();
        assert!(found.contains(&"ATTRS{serial}==\"DD564198838F\"".to_string()), "{found:?}");
    }

    #[test]
    fn a_rule_matches_the_disk_or_the_device_that_it_is_on() {
        let rule = |file: &str| {
            let files = FakeFiles::new()
                .file("/sys/block/sda/size", "1000\n")
                .file(format!("/sys/block/sda/{file}"), "S4PTNF0M\n");
            identity("sda", &files).map(|matches| matches[0].clone()).ok()
        };
        let rules = IDENTITY_FILES.map(|file| rule(&file.path().to_string_lossy()));
        let expected = [
            Some("ATTR{wwid}==\"S4PTNF0M\""),
            Some("ATTRS{wwid}==\"S4PTNF0M\""),
            Some("ATTRS{cid}==\"S4PTNF0M\""),
            None,
            Some("ATTR{serial}==\"S4PTNF0M\""),
        ];
        assert_eq!(rules.each_ref().map(Option::as_deref), expected);
    }

    #[test]
    fn what_a_file_of_the_owner_sets_is_left_to_it() {
        let mut one = winner(Setting::ReadAhead, "2048", "");
        one.set_by = vec!["/etc/udev/rules.d/60-mine.rules".into()];
        let files = disk(FakeFiles::new(), "sda", "naa.1");
        let why = lasting(&place(), &[&one], &files).unwrap_err();
        assert!(why.contains("60-mine.rules"), "{why}");
    }
}
