//! journal-to-memory: systemd-journald keeps its journal in memory (`Storage=volatile`, journald.conf(5)).
//!
//! A drop-in file is enough, since of all drop-ins the one whose name sorts last wins, in whichever directory it is.
//! The old journal is left where it is: undoing finds it again, and journalctl goes on showing it.
//!
//! It promises nothing: `rubus status` compares the file anyway, journald always runs, and what is in /run/log/journal stays
//! there when a later drop-in has moved the journal back to the disk, so that it proves nothing.

use std::path::{Path, PathBuf};

use super::{
    Answer, OptionSpec, PathState, PlanBuilder, PlanInput, Queries, Recipe, Wishes, programs, units,
};
use rubus_change::plan::{Action, When};
use rubus_change::steps::RestartService;
use rubus_vocabulary::machine::{Machine, Origin};
use rubus_vocabulary::units::{bytes_iec, parse_size};

pub(super) static RECIPE: Recipe = Recipe {
    name: "journal-to-memory",
    title: "Keep the systemd journal in memory, so that logging writes nothing to the disk.",
    guide: super::Guide {
        changes: "Writes a drop-in file for systemd-journald and restarts it. The logs end with each start of the machine.",
        needs: "systemd, and some memory.",
        example: "sudo rubus plan journal-to-memory size=32M",
    },
    options: &[OptionSpec {
        name: "size",
        what: "most memory that the journal may take, such as 32M; else what journald takes by itself, a tenth of /run",
        default: None,
        check: |value| match parse_size(value)? {
            bytes if bytes >= MIN_BYTES => Ok(()),
            _ => Err("write a size of at least 4M".into()),
        },
    }],
    look_at,
    draw_up,
};

const STORAGE: &str = "Storage";
const SERVICE: &str = "systemd-journald.service";
/// From systemd 255 on a journal that was in memory is brought to the disk again by this service alone.
const FLUSH_SERVICE: &str = "systemd-journal-flush.service";
/// Where it is, and where one of the same name takes its place.
const FLUSH_UNITS: [&str; 2] = ["/usr/lib/systemd/system", "/lib/systemd/system"];
const OWN_UNITS: [&str; 2] = ["/etc/systemd/system", "/run/systemd/system"];
const OLD_JOURNAL: &str = "/var/log/journal";
const DROP_IN: &str = "/etc/systemd/journald.conf.d/90-rubus-journal-to-memory.conf";
const MAIN_FILE: &str = "/etc/systemd/journald.conf";
/// Where drop-ins are; of two with the same name the one in the earlier directory counts.
const DIRECTORIES: [&str; 4] = [
    "/etc/systemd/journald.conf.d",
    "/run/systemd/journald.conf.d",
    "/usr/local/lib/systemd/journald.conf.d",
    "/usr/lib/systemd/journald.conf.d",
];
/// Below it journald has no room for the files of more than a few programs.
const MIN_BYTES: u64 = 4 << 20;
const RSYSLOG: &str = "rsyslogd";

/// Where journald is told what to do.
pub(super) fn settings() -> Vec<PathBuf> {
    let drop_ins = DIRECTORIES.map(|directory| Path::new(directory).join("*"));
    drop_ins.into_iter().chain([MAIN_FILE.into()]).collect()
}

fn look_at(_: &Machine, _: &Wishes) -> Queries {
    let mut paths = settings();
    let others = [DROP_IN, DIRECTORIES[0], "/etc/systemd", OLD_JOURNAL];
    paths.extend(others.map(PathBuf::from));
    paths.extend(flush_units(&FLUSH_UNITS).chain(flush_units(&OWN_UNITS)));
    paths.extend(units::first_programs());
    paths.extend(programs::paths(["systemctl", RSYSLOG]));
    Queries::paths(paths)
}

fn draw_up(situation: &PlanInput<'_>, draft: &mut PlanBuilder) {
    let remedy = "only systemd has this journal; another logger has settings of its own";
    units::check_running(remedy, situation, draft);
    let size = situation.option("size").and_then(|text| parse_size(text).ok());
    check_size(size, situation, draft);
    let text = drop_in(size);
    let is_written = situation.text(Path::new(DROP_IN)) == text;
    if let (None, false, Some(path)) = (size, is_written, volatile_by_others(situation)) {
        return draft.notes.push(format!(
            "The journal is in memory already: {} says Storage=volatile.",
            path.display()
        ));
    }
    check_later(situation, draft);
    if !is_written {
        steps(text, situation, draft);
    }
    programs::check(situation, draft);
    words(size, situation, draft);
}

fn flush_units(directories: &'static [&'static str]) -> impl Iterator<Item = PathBuf> {
    directories.iter().map(|directory| Path::new(directory).join(FLUSH_SERVICE))
}

/// Whether the service is there as systemd brought it.
fn can_flush(situation: &PlanInput<'_>) -> bool {
    let is_absent =
        |path: PathBuf| matches!(situation.facts.seen.get(&path), None | Some(PathState::Absent));
    flush_units(&FLUSH_UNITS).any(|path| situation.is_there(&path))
        && flush_units(&OWN_UNITS).all(is_absent)
}

fn steps(text: String, situation: &PlanInput<'_>, draft: &mut PlanBuilder) {
    let restart = |when| Action::RestartService(RestartService { unit: SERVICE.into(), when });
    if can_flush(situation) {
        draft.step(
            "flushed-after-undo",
            "Undoing ends with this step: journald goes back to the journal on the disk.",
            Action::RestartService(RestartService {
                unit: FLUSH_SERVICE.into(),
                when: When::Undone,
            }),
        );
    }
    draft.step(
        "restarted-after-undo",
        "When this is undone, journald reads its settings again, without the file below.",
        restart(When::Undone),
    );
    draft.write(
        "volatile",
        "journald keeps the journal below /run, which is memory.",
        Path::new(DROP_IN),
        text,
        situation,
    );
    draft.step(
        "restarted",
        "journald reads its settings only when it starts; programs stay connected to it meanwhile.",
        restart(When::Applied),
    );
}

fn drop_in(size: Option<u64>) -> String {
    let mut text = String::from(
        "# Made by rubus (journal-to-memory): the journal is kept in memory.\n\
         # `rubus undo` removes this file.\n\
         [Journal]\n\
         Storage=volatile\n",
    );
    if let Some(bytes) = size {
        text.push_str(&match bytes % (1 << 20) {
            0 => format!("RuntimeMaxUse={}M\n", bytes >> 20),
            _ => format!("RuntimeMaxUse={bytes}\n"),
        });
    }
    text
}

/// The value that a file of settings gives a key last.
fn value<'a>(wanted: &str, text: &'a str) -> Option<&'a str> {
    let mut assigned = text.lines().filter_map(|line| {
        let (key, value) = line.split_once('=')?;
        (key.trim() == wanted).then_some(value.trim())
    });
    assigned.next_back()
}

/// What journald takes for a key, if a file says it.
pub(super) fn setting<'a>(wanted: &str, situation: &PlanInput<'a>) -> Option<&'a str> {
    let main = situation.file(Path::new(MAIN_FILE));
    let last = drop_ins(wanted, situation).pop().map(|(_, value)| value);
    last.or_else(|| value(wanted, &main?.text))
}

/// Drop-ins of others that say something of a key, with the value, in the order in which journald reads them.
fn drop_ins<'a>(wanted: &str, situation: &PlanInput<'a>) -> Vec<(&'a Path, &'a str)> {
    let mut found: Vec<(&Path, &str)> = Vec::new();
    for directory in DIRECTORIES {
        for (path, sight) in &situation.facts.seen {
            let is_drop_in = path.parent() == Some(Path::new(directory))
                && path.extension().is_some_and(|ending| ending == "conf")
                && path != Path::new(DROP_IN);
            let is_hidden =
                found.iter().any(|(earlier, _)| earlier.file_name() == path.file_name());
            match sight {
                PathState::Text(file) if is_drop_in && !is_hidden => found.push((path, &file.text)),
                _ => {}
            }
        }
    }
    found.sort_by_key(|(path, _)| path.file_name());
    let says = found.into_iter();
    says.filter_map(|(path, text)| Some((path, value(wanted, text)?))).collect()
}

/// The file of others that keeps the journal in memory, if the last word is that.
fn volatile_by_others<'a>(situation: &PlanInput<'a>) -> Option<&'a Path> {
    let main = Path::new(MAIN_FILE);
    let main_says = situation.file(main).and_then(|file| value(STORAGE, &file.text));
    let (path, value) = match drop_ins(STORAGE, situation).pop() {
        Some(last) => last,
        None => (Path::new(MAIN_FILE), main_says?),
    };
    (value == "volatile").then_some(path)
}

/// Checks that no drop-in which is read after this one says otherwise.
fn check_later(situation: &PlanInput<'_>, draft: &mut PlanBuilder) {
    let own = Path::new(DROP_IN).file_name();
    let mut drop_ins = drop_ins(STORAGE, situation).into_iter();
    let later = drop_ins.rfind(|(path, value)| path.file_name() > own && *value != "volatile");
    // A capture holds what a survey reads, and that is no drop-in.
    let is_captured = matches!(situation.machine.origin, Origin::Capture { .. });
    let (answer, found, remedy) = match later {
        Some((path, value)) => {
            (Answer::Fails, format!("{} says Storage={value}", path.display()), not_to_say(path))
        }
        None if is_captured => {
            (Answer::Unknown, "not known: the capture does not say".into(), String::new())
        }
        None => (Answer::Holds, "there is none".into(), String::new()),
    };
    let what = "no file that journald reads later says where the journal is kept";
    draft.check(what, answer, found, &remedy);
}

/// How a drop-in is kept from saying where the journal is: those of packages are not edited but hidden (journald.conf(5)).
fn not_to_say(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    if path.starts_with("/usr") {
        format!(
            "hide that file: sudo ln -s /dev/null {}",
            Path::new(DIRECTORIES[0]).join(name).display()
        )
    } else {
        format!("take that line out of {}", path.display())
    }
}

/// Size of the filesystem that holds the journal then, if it is known.
fn run_bytes(situation: &PlanInput<'_>) -> Option<u64> {
    let mut mounts = situation.machine.mounts.iter();
    mounts.rfind(|mount| mount.point == "/run")?.size_bytes.get()
}

fn check_size(size: Option<u64>, situation: &PlanInput<'_>, draft: &mut PlanBuilder) {
    let (Some(size), Some(run)) = (size, run_bytes(situation)) else {
        return;
    };
    draft.check(
        "half of /run stays for others",
        size <= run / 2,
        format!("{} of {}", bytes_iec(size), bytes_iec(run)),
        &format!("take at most size={}M", (run / 2) >> 20),
    );
}

fn words(size: Option<u64>, situation: &PlanInput<'_>, draft: &mut PlanBuilder) {
    draft.risks.push(
        "The logs end with each start: what was logged before a restart, a crash or a power cut is lost, and the reason of a crash \
         with it."
            .into(),
    );
    let most = match (size, run_bytes(situation)) {
        (Some(bytes), _) => format!("at most {}", bytes_iec(bytes)),
        (None, Some(run)) => format!("at most {}, a tenth of /run", bytes_iec(run / 10)),
        (None, None) => "at most a tenth of /run".into(),
    };
    draft
        .notes
        .push(format!("The journal takes {most}; when that is full, the oldest entries go."));
    // A capture holds what a survey reads, and that is no journal.
    let is_captured = matches!(situation.machine.origin, Origin::Capture { .. });
    match situation.facts.seen.get(Path::new(OLD_JOURNAL)) {
        Some(PathState::Absent) if !is_captured => draft.notes.push(format!(
            "There is no {OLD_JOURNAL}: unless it is set otherwise, the journal is in memory already, and this makes that last."
        )),
        _ => draft.notes.push(format!(
            "Old files in {OLD_JOURNAL} stay, and journalctl shows them as before. `journalctl --vacuum-size=1M` deletes the closed \
             ones of them."
        )),
    }
    let has_rsyslog = programs::paths([RSYSLOG]);
    if has_rsyslog.iter().any(|path| situation.is_there(path)) {
        draft.notes.push(
            "rsyslog is installed and still writes to /var/log: remove it, or these logs stay on the disk."
                .into(),
        );
    }
    draft.gains_unknown = Some(
        "How much less is written depends on what logs here: `rubus writers`, before and after, shows it."
            .into(),
    );
}

#[cfg(test)]
mod tests;
