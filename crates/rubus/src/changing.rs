//! Around the verbs that change the machine: what a recipe wants to know, and the user's word for every disk that is lost.

use std::io::IsTerminal;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use anyhow::Context;
use rubus_change::apply::GivenAway;
use rubus_change::losses::Question;
use rubus_change::recipe::{self, Facts, LookAt, Node, NodeKind, TreeSize};
use rubus_change::steps;
use rubus_change::unseen::Unseen;
use rubus_host::{Files, filling, starting};
use rubus_machine::not_copied::NotCopied;
use rubus_runs::history::{RunId, RunSummary};
use rubus_runs::store::History;
use rubus_vocabulary::machine::Machine;
use rubus_vocabulary::result::Run;

use crate::directory_size::bytes_below;
use crate::exit::Refused;
use rubus_command::World;
use rubus_command::places;

/// What a recipe wants to know besides the surveyed machine. Of a captured machine only what was captured.
///
/// # Errors
/// When the kernel gives no random numbers for the identifiers of new disks.
pub fn facts(world: &World, machine: &Machine, look_at: &LookAt) -> anyhow::Result<Facts> {
    let files = world.files();
    let mut facts = Facts {
        seen: rubus_change::sight::look(files, &look_at.paths),
        boot_id: steps::boot_id(files),
        ..Facts::default()
    };
    facts.kernels = rubus_change::sight::kernel_releases(files, machine, &facts.seen);
    facts.stop = rubus_change::sight::stop_of_next_start(files, machine, &facts.seen);
    let World::Live(live) = world else {
        // Nobody can look at a captured disk again.
        let surveyed = |path: &PathBuf| (path.clone(), recipe::surveyed_disk(machine, path));
        facts.disks = look_at.disks.iter().map(surveyed).collect();
        return Ok(facts);
    };
    let identity = |path: &PathBuf| (path.clone(), steps::identity(live, path));
    facts.disks = look_at.disks.iter().map(identity).collect();
    let measured = measured_before();
    facts.speeds = recipe::measured_speeds(machine, &measured);
    facts.together = recipe::measured_together(machine, &measured);
    let size = |path: &PathBuf| {
        let used = filling::usage(path).ok()?;
        Some((path.clone(), TreeSize { bytes: used.bytes, entries: used.entries }))
    };
    facts.trees = look_at.trees.iter().filter_map(size).collect();
    let bytes = |path: &PathBuf| Some((path.clone(), bytes_below(path).ok()?));
    facts.directories = look_at.directories.iter().filter_map(bytes).collect();
    let node = |path: &PathBuf| (path.clone(), node(path));
    facts.nodes = look_at.nodes.iter().map(node).collect();
    if look_at.compression {
        // One tree is enough: it is the processor that is measured.
        let top = look_at.trees.first().map_or(Path::new("/"), PathBuf::as_path);
        let measured = rubus_processor::files::measure(top, &NotCopied::of(machine));
        facts.compression = measured.speeds;
        facts.sample_bytes_per_second = measured.disk_bytes_per_second;
    }
    if look_at.program_starts {
        facts.program_start_s = starting::short_program_s();
    }
    facts.random = random(live)?;
    Ok(facts)
}

/// What is at the end of a path.
fn node(path: &Path) -> Result<Option<Node>, Unseen> {
    let found = match std::fs::metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Unseen::from(&error)),
    };
    let kind = found.file_type();
    Ok(Some(Node {
        kind: match () {
            () if kind.is_file() => NodeKind::File,
            () if kind.is_dir() => NodeKind::Directory,
            () if kind.is_block_device() => NodeKind::BlockDevice,
            () => NodeKind::Other,
        },
        user: found.uid(),
        group: found.gid(),
        size_bytes: if kind.is_file() { found.len() } else { 0 },
    }))
}

/// Numbers that nobody else has: the identifiers of new disks and filesystems.
///
/// # Errors
/// When they cannot be read: disks with equal identifiers would be taken for one another.
pub fn random(files: &dyn Files) -> anyhow::Result<[u8; 32]> {
    const SOURCE: &str = "/dev/urandom";
    let bytes = files.read_prefix(Path::new(SOURCE), 32);
    let bytes = bytes.map_err(|why| anyhow::anyhow!("cannot read {SOURCE}: {why}"))?;
    let count = bytes.len();
    let random = bytes.try_into();
    random.map_err(|_| anyhow::anyhow!("cannot read {SOURCE}: it gave {count} bytes instead of 32"))
}

/// The last runs of disks in the history, newest first. A plan can be made without any.
fn measured_before() -> Vec<(RunId, Run)> {
    last_runs(|line| line.device.is_some() || line.suite == rubus_runs::together::SUITE)
}

/// The last runs of anything in the history, newest first.
pub fn runs_before() -> Vec<(RunId, Run)> {
    last_runs(|_| true)
}

fn last_runs(is_wanted: impl Fn(&RunSummary) -> bool) -> Vec<(RunId, Run)> {
    const MAX: u32 = 50;
    let own = places::present_history().and_then(|path| History::open(&path).ok());
    let of_caller = places::history_of_caller().and_then(|path| History::open_to_read(&path).ok());
    let mut runs = Vec::new();
    for history in own.iter().chain(&of_caller) {
        let lines = history.list(MAX, 0).unwrap_or_default().into_iter();
        let wanted = lines.filter(&is_wanted);
        runs.extend(wanted.filter_map(|line| Some((line.id, history.get(line.id).ok()?.run))));
    }
    // Moments are in UTC and written in one way, so that they can be compared as texts.
    runs.sort_by(|(_, a), (_, b)| b.started.cmp(&a.started));
    runs.truncate(MAX as usize);
    runs
}

/// The user's word for the loss of what is on each disk that is asked about: from `given`, else typed. Gives what is to be
/// written down.
///
/// # Errors
/// [`Refused`] when a disk is not there or in use, or its loss is not confirmed.
pub fn confirm_losses(
    questions: impl Iterator<Item = Result<Question, String>>,
    given: &[String],
) -> anyhow::Result<Vec<GivenAway>> {
    questions
        .map(|question| {
            let question = question.map_err(Refused)?;
            let is_given = given.iter().any(|words| question.is_confirmed_by(words));
            if is_given || is_typed(&question)? {
                return Ok(question.consent());
            }
            Err(Refused(question.refusal()).into())
        })
        .collect()
}

/// Whether the user types the confirmation; no without a terminal.
fn is_typed(question: &Question) -> anyhow::Result<bool> {
    if !(std::io::stdin().is_terminal() && std::io::stderr().is_terminal()) {
        return Ok(false);
    }
    eprint!("{}", question.prompt());
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer).context("cannot read the confirmation")?;
    Ok(question.is_confirmed_by(&answer))
}

#[cfg(test)]
mod tests {
    use rubus_host::fake::FakeFiles;

    use super::*;

    #[test]
    fn random_numbers_that_cannot_be_read_are_an_error_and_not_zeros() {
        let missing = random(&FakeFiles::new()).unwrap_err();
        assert!(missing.to_string().starts_with("cannot read /dev/urandom"), "{missing}");
        let short = FakeFiles::new().file("/dev/urandom", "short");
        let short = random(&short).unwrap_err();
        assert!(short.to_string().contains("5 bytes instead of 32"), "{short}");
        let whole = FakeFiles::new().file("/dev/urandom", vec![7; 32]);
        assert_eq!(random(&whole).unwrap(), [7; 32]);
    }
}
