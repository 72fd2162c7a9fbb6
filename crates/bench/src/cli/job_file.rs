//! `rubus bench --fio-job FILE`: the jobs of a job file in fio's format.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use anyhow::Context;
use rubus_command::messages::write_few;
use rubus_command::{
    Exit, General, Terminal, World, file_text, message, must_be_live, places, signals,
};
use rubus_fio::job_file::{Included, JobFileError, Lowered, NoteKind, Plan, Surroundings};
use rubus_host::files::document::{self, MAX_LIST_BYTES};
use rubus_vocabulary::machine::Machine;
use rubus_vocabulary::units::bytes_iec;

use super::bench_args::Bench;
use super::far_end::{ask_nodes, ask_server};
use crate::job_files::{self, Placed};
use crate::measuring;
use crate::outputs::{self, Outputs};
use crate::target::Allowance;

/// Runs the job file on each target, or where it says itself.
pub fn run(general: &General, bench: &Bench, path: &Path) -> anyhow::Result<Exit> {
    must_be_live(general, "a bench", "a disk")?;
    let wanted = super::bench_options::wanted(bench);
    outputs::check(&wanted)?;
    anyhow::ensure!(
        bench.lanes.is_none(),
        "cannot use --lanes with the job file {}: its jobs say themselves how many rings they have\nSet numjobs=N in it: \
         each copy has a ring and a thread of its own.",
        path.display()
    );
    anyhow::ensure!(
        !bench.hipri,
        "cannot use --hipri with the job file {}: its jobs wait for interrupts\nMeasure with a suite, or leave --hipri out.",
        path.display()
    );
    let queueing = super::bench_options::queueing(bench)?;
    let world = World::of(general)?;
    let machine = world.survey();
    let plan = read(path, bench, &machine)?;
    let allowance =
        Allowance { may_lose: bench.i_will_lose_everything_on.clone(), ..Allowance::default() };
    // Every place is checked before the first is touched.
    let mut ready = Vec::new();
    let targets: Vec<_> = match &bench.targets[..] {
        [] => vec![None],
        targets => targets.iter().map(Some).collect(),
    };
    for target in targets {
        let placed = job_files::place(&plan, target, &machine, world.files(), &allowance)?;
        let mut lowered = plan.lower(&placed.facts).map_err(|error| told(path, &error))?;
        match (bench.seed, lowered.wants_fresh_seed) {
            (Some(seed), _) => lowered.suite.seed = seed,
            (None, true) => {
                lowered.suite.seed = u64::from(super::bench_options::random_seed());
            }
            (None, false) => {}
        }
        placed.must_have_room(&lowered)?;
        ready.push((placed, lowered));
    }
    // Until here, nothing has to be ended in order: a server may be waited for.
    let cancel = signals::cancel_flag()?;
    let targets = ready.iter_mut().map(|(placed, _)| &mut placed.target);
    ask_server(bench, targets, &cancel)?;
    let clusters = ready.iter();
    let clusters = clusters.filter_map(|(placed, _)| placed.target.identity.cluster.as_deref());
    ask_nodes(bench, clusters)?;
    if !general.quiet {
        let told = plan.notes.iter().filter(|note| note.kind != NoteKind::NoEffect);
        let (ignored, notes): (Vec<_>, Vec<_>) =
            told.partition(|note| note.kind == NoteKind::Ignored);
        for (kind, notes) in [("ignored", ignored), ("note", notes)] {
            let lines = notes.iter().map(|note| format!("{kind}: {note}"));
            write_few(&lines.collect::<Vec<_>>(), ": see job_file in the JSON");
        }
    }
    let mut is_complete = true;
    let mut outputs = Outputs::new(general, wanted, ready.len());
    for (placed, lowered) in ready {
        if !general.quiet {
            message!("{}", announced(path, &placed, &lowered));
        }
        let mut measured = measuring::measure(
            placed.places(&lowered),
            &lowered.suite,
            &world,
            machine.clone(),
            &cancel,
            queueing,
            Terminal::of(general),
        )?;
        let mut job_file = lowered.job_file;
        is_complete &= measured.left_out.is_empty();
        let left_out = measured.left_out.iter().map(|reason| format!("left out: {reason}"));
        let left_out: Vec<String> = left_out.collect();
        let lines = left_out.iter().map(|reason| format!("rubus: {reason}"));
        write_few(&lines.collect::<Vec<_>>(), ": see job_file.ignored in the JSON");
        job_file.ignored.extend(left_out);
        measured.run.job_file = Some(job_file);
        outputs.take(measured)?;
        if cancel.load(Ordering::Relaxed) {
            break;
        }
    }
    match outputs.finish()? {
        Exit::Fine if !is_complete => Ok(Exit::AnswerIsNo),
        exit => Ok(exit),
    }
}

fn read(path: &Path, bench: &Bench, machine: &Machine) -> anyhow::Result<Plan> {
    let is_standard_input = path.as_os_str() == "-";
    let name = named(path);
    let cannot = || format!("cannot read the job file {name}");
    let bytes = if is_standard_input {
        document::standard_input(MAX_LIST_BYTES)
    } else {
        document::bytes(path, MAX_LIST_BYTES)
    };
    let text = file_text::of_bytes(&name, bytes.with_context(cannot)?)?;
    let text = text.with_context(|| format!("{}: it is no text", cannot()))?;
    let include = |from: &str, wanted: &str| included(from, wanted);
    let mut given = bench.fio_option.clone();
    given.extend(bench.size.map(|bytes| ("size".to_string(), bytes.to_string())));
    let surroundings = Surroundings {
        variables: &places::variable,
        keywords: keywords(machine),
        include: &include,
        given: &given,
    };
    Plan::read(&name, &text, &surroundings, bench.ignore_unsupported)
        .map_err(|error| told(path, &error))
}

/// How a job file is called in messages.
fn named(path: &Path) -> String {
    if path.as_os_str() == "-" { "standard input".into() } else { path.display().to_string() }
}

/// A file that another one includes: beside that one, else below the current directory, as in fio.
fn included(from: &str, wanted: &str) -> Result<Included, String> {
    let beside = Path::new(from).parent().unwrap_or(Path::new("")).join(wanted);
    let path = if beside.exists() { beside } else { PathBuf::from(wanted) };
    let text = document::text(&path, MAX_LIST_BYTES).map_err(|error| error.to_string())?;
    Ok(Included { path: path.display().to_string(), text })
}

/// What `$pagesize`, `$mb_memory` and `$ncpus` stand for here.
fn keywords(machine: &Machine) -> BTreeMap<String, String> {
    let mut keywords =
        BTreeMap::from([("pagesize".to_string(), rustix::param::page_size().to_string())]);
    if let Ok(count) = std::thread::available_parallelism() {
        keywords.insert("ncpus".into(), count.to_string());
    }
    if let Some(bytes) = machine.memory.total_bytes.get() {
        keywords.insert("mb_memory".into(), (bytes >> 20).to_string());
    }
    keywords
}

/// The problems of a job file as an error: one line each.
fn told(path: &Path, error: &JobFileError) -> anyhow::Error {
    let lines: Vec<String> =
        error.problems.iter().map(|problem| format!("\n  {problem}")).collect();
    anyhow::anyhow!("cannot run {}:{}", named(path), lines.concat())
}

/// Says what is going to be written before anything is.
fn announced(path: &Path, placed: &Placed, lowered: &Lowered) -> String {
    let mut parts = vec![format!(
        "Running {} ({} in {}).",
        named(path),
        counted(lowered.job_file.jobs.len(), "job"),
        counted(lowered.suite.jobs.len(), "stage"),
    )];
    parts.extend(placed.announced(lowered));
    let writes = lowered.max_written_bytes;
    parts.push(match (writes, lowered.most_s) {
        (Some(0), _) => "The jobs only read.".into(),
        (Some(bytes), _) => format!("The jobs write {} at most.", bytes_iec(bytes)),
        (None, Some(seconds)) => {
            format!("The jobs write as much as they can in {seconds:.0} s.")
        }
        (None, None) => "The jobs write as much as they can until they are stopped.".into(),
    });
    parts.join("\n  ")
}

fn counted(count: usize, what: &str) -> String {
    match count {
        1 => format!("1 {what}"),
        count => format!("{count} {what}s"),
    }
}
