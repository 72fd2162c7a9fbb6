//! The programs that a plan's steps run: whether they are there, and in which package they are.

use std::path::{Path, PathBuf};

use super::{Answer, PathState, PlanBuilder, PlanInput, distribution};
use rubus_change::plan::commands::commands;
use rubus_draw::text::listed;
use rubus_vocabulary::machine::Origin;

/// Where programs of the system are.
const DIRECTORIES: [&str; 4] = ["/usr/sbin", "/usr/bin", "/sbin", "/bin"];

const NOT_CAPTURED: &str = "not known: the capture does not say";

/// Where this program must lie to be there at each boot.
pub(super) const INSTALLED: [&str; 4] =
    ["/usr/local/bin/rubus", "/usr/local/sbin/rubus", "/usr/bin/rubus", "/usr/sbin/rubus"];

/// Programs with the packages of Debian and Raspberry Pi OS that hold them.
const PACKAGES: [(&str, &str); 16] = [
    ("btrfs", "btrfs-progs"),
    ("chattr", "e2fsprogs"),
    ("fallocate", "util-linux"),
    ("mdadm", "mdadm"),
    ("mkfs.btrfs", "btrfs-progs"),
    ("mkfs.ext4", "e2fsprogs"),
    ("mkfs.f2fs", "f2fs-tools"),
    ("mkfs.vfat", "dosfstools"),
    ("mkinitramfs", "initramfs-tools"),
    ("mkswap", "util-linux"),
    ("mount", "mount"),
    ("swapoff", "mount"),
    ("swapon", "mount"),
    ("systemctl", "systemd"),
    ("systemd-tmpfiles", "systemd"),
    ("umount", "mount"),
];

/// Where these programs may be.
pub(super) fn paths<'a>(programs: impl IntoIterator<Item = &'a str>) -> Vec<PathBuf> {
    let programs = programs.into_iter();
    programs
        .flat_map(|program| DIRECTORIES.map(|directory| PathBuf::from(directory).join(program)))
        .collect()
}

/// The package that holds a program, where it is known.
pub(super) fn package(program: &str) -> Option<&'static str> {
    let known = PACKAGES.iter().find(|(name, _)| *name == program);
    known.map(|(_, package)| *package)
}

/// Checks that every program is there that the steps so far run. They have to be among what was looked at.
pub(super) fn check(situation: &PlanInput<'_>, draft: &mut PlanBuilder) {
    let mut programs: Vec<&str> = Vec::new();
    for command in draft.steps.iter().flat_map(|step| commands(&step.action)) {
        if !programs.contains(&command.program) {
            programs.push(command.program);
        }
    }
    check_each(&programs, situation, draft);
}

/// The same for programs that are named. What a capture does not say of them is one check: one thing to make sure of.
pub(super) fn check_each(programs: &[&str], situation: &PlanInput<'_>, draft: &mut PlanBuilder) {
    let (unknown, known): (Vec<&str>, Vec<&str>) = programs.iter().copied().partition(|program| {
        is_captured(situation) && look(program, situation).0 == Answer::Unknown
    });
    for program in known {
        check_one(program, situation, draft);
    }
    match unknown[..] {
        [] => {}
        [program] => check_one(program, situation, draft),
        _ => draft.check(
            &format!("the programs {} are there", listed(&unknown)),
            Answer::Unknown,
            NOT_CAPTURED,
            "",
        ),
    }
}

/// Checks that a program is there. What could not be looked at counts as there, and is said.
pub(super) fn check_one(program: &str, situation: &PlanInput<'_>, draft: &mut PlanBuilder) {
    let (answer, found) = look(program, situation);
    let remedy = match package(program) {
        Some(package) => distribution::install(situation.machine, &[package]),
        None => format!("install the package of your system that has {program}"),
    };
    draft.check(&format!("the program {program} is there"), answer, found, &remedy);
}

/// Whether a program is there, and where. Its [paths] have to be among what was looked at.
pub(super) fn look(program: &str, situation: &PlanInput<'_>) -> (Answer, String) {
    let sights = paths([program]);
    let mut sights = sights.iter().map(|path| (path, situation.facts.seen.get(path)));
    let there = sights
        .clone()
        .find(|(_, sight)| matches!(sight, Some(PathState::Something | PathState::Text(_))));
    let hidden = sights.find_map(|(path, sight)| match sight {
        Some(PathState::Hidden(why)) => Some((path, why)),
        _ => None,
    });
    match (there, hidden) {
        (Some((path, _)), _) => (Answer::Holds, path.display().to_string()),
        (None, _) if is_captured(situation) => (Answer::Unknown, NOT_CAPTURED.into()),
        (None, Some((path, why))) => {
            (Answer::Unknown, format!("not known: {}: {why}", path.display()))
        }
        (None, None) => (Answer::Fails, format!("not in {}", DIRECTORIES.join(", "))),
    }
}

/// A capture holds what a survey reads, and that is no program.
fn is_captured(situation: &PlanInput<'_>) -> bool {
    matches!(situation.machine.origin, Origin::Capture { .. })
}

/// Where this program is that each boot runs; an obstacle where it is nowhere that a boot finds it.
pub(super) fn check_installed(situation: &PlanInput<'_>, draft: &mut PlanBuilder) -> String {
    let there = INSTALLED.iter().find(|path| situation.is_there(Path::new(path)));
    draft.check(
        "rubus is installed where each boot finds it",
        there.is_some(),
        there.map_or(
            "it is in none of /usr/local/bin, /usr/local/sbin, /usr/bin, /usr/sbin".into(),
            |path| format!("{path} is there"),
        ),
        "copy it: sudo install rubus /usr/local/bin/rubus",
    );
    there.copied().unwrap_or(INSTALLED[0]).to_owned()
}
