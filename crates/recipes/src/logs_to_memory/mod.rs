//! logs-to-memory: /var/log lies in memory while the system runs, and is saved to the disk when it stops.
//!
//! A shell program does it, so that a start of the system needs nothing of rubus. It changes nothing of a running system, where
//! programs have their logs open: the next start brings the logs to memory, and the first one after undoing leaves them on the disk.
//!
//! The journal is not copied to memory: journald starts a new one there, the closed journals stay on the disk, and
//! links show them to journalctl. So the disk keeps more of it than the memory has room for.

mod unit_files;

use std::path::{Path, PathBuf};

use super::units::{UNITS, check_running, enable};
use super::{OptionSpec, PlanBuilder, PlanInput, Queries, Recipe, Wishes, journal_to_memory};
use super::{mounting::FSTAB, programs};
use rubus_boot::fstab::Fstab;
use rubus_change::plan::Action;
use rubus_change::plan::promise::{Look, Promise};
use rubus_change::steps::ReadUnits;
use rubus_vocabulary::machine::{Machine, Mount};
use rubus_vocabulary::units::{bytes_iec, parse_size};

pub(super) static RECIPE: Recipe = Recipe {
    name: "logs-to-memory",
    title: "Keep /var/log in memory, and save it to the disk once a day and when the system stops.",
    guide: super::Guide {
        changes: "Writes a program and units of systemd. A power cut loses what was logged since the last save.",
        needs: "systemd, and memory for the logs. Takes effect at the next start.",
        example: "sudo rubus plan logs-to-memory size=64M save=daily",
    },
    options: &[
        OptionSpec {
            name: "size",
            what: "most memory that the logs may take, such as 64M; else an eighth of the memory, from 32M to 256M",
            default: None,
            check: |value| match parse_size(value)? {
                bytes if bytes >= MIN_BYTES => Ok(()),
                _ => Err("write a size of at least 32M".into()),
            },
        },
        OptionSpec {
            name: "save",
            what: "how often they are saved in between: hourly, daily or weekly",
            default: Some("daily"),
            check: |value| {
                if ["hourly", "daily", "weekly"].contains(&value) {
                    Ok(())
                } else {
                    Err("write hourly, daily or weekly".into())
                }
            },
        },
    ],
    look_at,
    draw_up,
};

const LOGS: &str = "/var/log";
const JOURNAL: &str = "/var/log/journal";
/// What the kernel calls the mount.
const SOURCE: &str = "rubus-logs";
const MIN_BYTES: u64 = 32 << 20;
/// What journald takes at least in a filesystem, of which it takes a tenth else.
const MIN_JOURNAL_BYTES: u64 = 16 << 20;
/// What journald takes at most by itself.
const MAX_JOURNAL_BYTES: u64 = 4 << 30;
/// Programs of others that do the same, by their units.
const OTHERS: [&str; 4] = [
    "log2ram.service",
    "folder2ram_startup.service",
    "armbian-ramlog.service",
    "dietpi-ramlog.service",
];
const UNITS_OF_PACKAGES: [&str; 2] = ["/usr/lib/systemd/system", "/lib/systemd/system"];
/// What the program calls that systems without Debian's essential packages may lack.
const PROGRAMS: [&str; 6] = ["find", "xargs", "comm", "mount", "umount", "systemctl"];

fn look_at(_: &Machine, _: &Wishes) -> Queries {
    let mut paths = unit_files::look_at();
    paths.extend(journal_to_memory::settings());
    paths.extend([FSTAB, LOGS, JOURNAL].map(PathBuf::from));
    paths.extend(units_of_others());
    paths.extend(programs::paths(PROGRAMS));
    Queries { directories: [LOGS, JOURNAL].map(PathBuf::from).into(), ..Queries::paths(paths) }
}

fn units_of_others() -> impl Iterator<Item = PathBuf> {
    let directories = [UNITS].into_iter().chain(UNITS_OF_PACKAGES);
    directories.flat_map(|directory| OTHERS.map(|unit| Path::new(directory).join(unit)))
}

/// What is mounted at /var/log, or below it.
fn mounts<'a>(situation: &PlanInput<'a>) -> impl Iterator<Item = &'a Mount> {
    let mounts = situation.machine.mounts.iter();
    mounts.filter(|mount| Path::new(&mount.point).starts_with(LOGS) && mount.source != SOURCE)
}

fn draw_up(situation: &PlanInput<'_>, draft: &mut PlanBuilder) {
    let remedy = "only systemd runs these units";
    check_running(remedy, situation, draft);
    let mut there = mounts(situation).filter(|mount| mount.point == LOGS);
    if let Some(mount) = there.find(|mount| mount.filesystem == "tmpfs") {
        return draft.notes.push(format!(
            "{LOGS} is in memory already: {} ({}) is mounted there.",
            mount.source, mount.filesystem
        ));
    }
    check_others(situation, draft);
    let written = situation.text(&super::units::path(unit_files::SERVICE));
    let written = unit_files::sizes(written);
    let size = size(written, situation);
    let journal = written.map_or_else(|| journal_bytes(situation), |(_, journal)| journal);
    // What is there already takes that memory.
    if written.is_none_or(|(was, _)| was != size) {
        check_memory(size, situation, draft);
    }
    steps(size, journal, situation, draft);
    programs::check_each(&PROGRAMS, situation, draft);
    draft.promises.push(Promise {
        what: format!("{LOGS} is in memory"),
        look: Look::InMemory { at: LOGS.into() },
        needs_boot: true,
    });
    words(size, journal, situation, draft);
}

fn steps(size: u64, journal: u64, situation: &PlanInput<'_>, draft: &mut PlanBuilder) {
    let save = situation.option("save").unwrap_or("daily");
    let texts = [
        (
            "service",
            "It brings the logs to memory before anything logs, and back after the last has.",
            unit_files::SERVICE,
            unit_files::service(size, journal),
        ),
        (
            "save",
            "It saves what has changed: sudo systemctl start rubus-logs-save",
            unit_files::SAVE,
            unit_files::save(),
        ),
        (
            "timer",
            "What is saved, no power cut takes away.",
            unit_files::TIMER,
            unit_files::timer(save),
        ),
    ];
    let path = super::units::path;
    let program = Path::new(unit_files::PROGRAM);
    let is_new = |(_, _, unit, text): &(_, _, &str, String)| situation.text(&path(unit)) != text;
    if texts.iter().any(is_new) || situation.text(program) != unit_files::PROGRAM_TEXT {
        draft.step(
            "units-read",
            "Undoing ends with this step. What runs goes on until the system stops, and then saves the logs for the last time.",
            Action::ReadUnits(ReadUnits {}),
        );
        draft.needs_boot = true;
    }
    draft.write_program(
        "program",
        "It copies the logs to memory and back, with nothing but what each Debian has.",
        program,
        unit_files::PROGRAM_TEXT.into(),
        situation,
    );
    for (id, why, unit, text) in texts {
        draft.write(id, why, &path(unit), text, situation);
    }
    let why = "Each start brings the logs to memory.";
    enable(unit_files::SERVICE, unit_files::TARGET, why, situation, draft);
}

/// Most memory for the logs, in bytes.
fn size(written: Option<(u64, u64)>, situation: &PlanInput<'_>) -> u64 {
    let wished = situation.option("size");
    let wished = wished.and_then(|text| parse_size(text).ok());
    let total = situation.machine.memory.total_bytes.get();
    // In whole steps, since a new kernel may leave a little more or less of the memory.
    let usual = total.map(|total| ((total / 8) >> 22 << 22).clamp(32 << 20, 256 << 20));
    let kept = written.map(|(size, _)| size);
    wished.or(kept).or(usual).unwrap_or(32 << 20) >> 10 << 10
}

/// How much of the journal the disk keeps: what journald would keep there.
fn journal_bytes(situation: &PlanInput<'_>) -> u64 {
    let told = journal_to_memory::setting("SystemMaxUse", situation);
    if let Some(bytes) = told.and_then(|text| parse_size(text).ok()) {
        return bytes;
    }
    let mounts = situation.machine.mounts.iter();
    let holding = mounts
        .filter(|mount| Path::new(LOGS).starts_with(&mount.point) && mount.source != SOURCE)
        .max_by_key(|mount| mount.point.len());
    let size = holding.and_then(|mount| mount.size_bytes.get());
    size.map_or(MAX_JOURNAL_BYTES, |bytes| (bytes / 10).min(MAX_JOURNAL_BYTES))
}

fn check_others(situation: &PlanInput<'_>, draft: &mut PlanBuilder) {
    let mount = mounts(situation).next();
    draft.check(
        "nothing else is mounted at /var/log or below it",
        mount.is_none(),
        mount.map_or("nothing is".to_string(), |mount| {
            format!("{} ({}) is mounted at {}", mount.source, mount.filesystem, mount.point)
        }),
        "what is mounted there would be hidden; take it away first if the logs may lie in memory",
    );
    let unit = units_of_others().find(|path| situation.is_there(path));
    let fstab = Fstab::parse(situation.text(Path::new(FSTAB)));
    let found = match (&unit, fstab.at(LOGS)) {
        (Some(path), _) => format!("{} is there", path.display()),
        (None, Some(line)) => format!("{FSTAB} mounts {} at {LOGS}", line.source),
        (None, None) => "nothing does".into(),
    };
    draft.check(
        "nothing else is to bring the logs to memory",
        unit.is_none() && fstab.at(LOGS).is_none(),
        found,
        "remove it first: two of them lose logs",
    );
}

fn check_memory(size: u64, situation: &PlanInput<'_>, draft: &mut PlanBuilder) {
    let memory = &situation.machine.memory;
    let total = memory.total_bytes.get();
    let most = total.map(|total| total / 4);
    draft.check(
        "three quarters of the memory stay for programs",
        most.map(|most| size <= most),
        match total {
            Some(total) => format!("{} of {}", bytes_iec(size), bytes_iec(total)),
            None => "not known".into(),
        },
        &match most {
            Some(most) if most < MIN_BYTES => {
                "this machine has too little memory: journal-to-memory takes less".into()
            }
            Some(most) => format!("take at most size={}M", most >> 20),
            None => String::new(),
        },
    );
    let available = memory.available_bytes.get();
    draft.check(
        "that much memory is available",
        available.map(|available| size <= available),
        match available {
            Some(available) => format!("{} are", bytes_iec(available)),
            None => "not known".into(),
        },
        "stop what takes memory, or take a smaller size=",
    );
    let bytes = |path| situation.facts.directories.get(Path::new(path));
    let logs = bytes(LOGS).map(|logs| {
        let journal = bytes(JOURNAL).copied().unwrap_or(0);
        logs.saturating_sub(journal)
    });
    let room = size - MIN_JOURNAL_BYTES.max(size / 10);
    draft.check(
        "the logs fit in twice beside the journal",
        logs.map(|logs| logs * 2 <= room),
        match logs {
            Some(logs) => format!(
                "{} of logs, {} beside the journal",
                bytes_iec(logs),
                bytes_iec(room)
            ),
            None => "not known".into(),
        },
        &match logs.map(with_journal).zip(most) {
            Some((needed, most)) if needed <= most => format!("take size={}M", needed >> 20),
            _ => format!(
                "delete old logs first; the largest: sudo du -ak --exclude=journal {LOGS} | sort -n | tail"
            ),
        },
    );
}

/// The memory that holds this many bytes of logs twice, in whole MiB.
fn with_journal(logs: u64) -> u64 {
    let logs = logs * 2;
    (logs + MIN_JOURNAL_BYTES).max(logs / 9 * 10).next_multiple_of(1 << 20) + (1 << 20)
}

fn words(size: u64, journal: u64, situation: &PlanInput<'_>, draft: &mut PlanBuilder) {
    let (save, span) = match situation.option("save") {
        Some("hourly") => ("each hour", "hour"),
        Some("weekly") => ("each week", "week"),
        _ => ("each day", "day"),
    };
    draft.risks.push(format!(
        "A power cut or crash loses what was logged since the last save, up to a {span} of it, and the reason of a crash with it."
    ));
    draft.risks.push(format!(
        "When the {} are full, programs can log nothing more until old logs go, as on a full disk.",
        bytes_iec(size)
    ));
    draft.notes.push(format!(
        "The logs are saved {save} and when the system stops; sudo systemctl start rubus-logs-save does it at once. What is deleted \
         in memory is deleted on the disk then. Where not everything fits on the disk, the disk stays as it was."
    ));
    draft.notes.push(match journal_to_memory::setting("Storage", situation) {
        Some("volatile") => "The journal is not in /var/log here (Storage=volatile), so that it ends with each start as before.".into(),
        _ => format!(
            "The journal of a run takes {} of that memory by itself; what it has to drop before a save is lost. The disk keeps {} of \
             closed journals at most, and journalctl shows them as before.",
            bytes_iec(MIN_JOURNAL_BYTES.max(size / 10)),
            bytes_iec(journal)
        ),
    });
    draft.notes.push(
        "Where the logs of a start do not fit in memory, they stay on the disk: systemctl status rubus-logs says so, and rubus verify."
            .into(),
    );
    draft.notes.push(
        "After undoing, the logs stay in memory until the system stops; then they are saved, and the next start has them on the disk."
            .into(),
    );
    draft.gains_unknown = Some(
        "How much less is written depends on what logs here: `rubus writers`, before and after, shows it."
            .into(),
    );
}

#[cfg(test)]
mod tests;
