//! `rubus advise`: what to change for a purpose, and what it would give.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, bail};
use rubus_advise::advice::{Advice, Known};
use rubus_advise::decide::{Question, advise};
use rubus_advise::text::{Depth, render};
use rubus_draw::quote::typed;
use rubus_fleet::subjects;
use rubus_host::capture::Captured;
use rubus_host::clock;
use rubus_machine::not_copied::NotCopied;
use rubus_recipes::{Queries, Wishes};
use rubus_runs::history::RunId;
use rubus_runs::share::shared_reason;
use rubus_runs::shown::shown;
use rubus_vocabulary::check::Check;
use rubus_vocabulary::compression_speed::CompressionSpeed;
use rubus_vocabulary::machine::{Machine, Origin};
use rubus_vocabulary::result::Run;

use crate::args::{Advise, General};
use crate::exit::Exit;
use rubus_command::places::{self, say};
use rubus_command::{Terminal, World, must_be_live};

/// Weighs and says.
pub fn run(general: &General, arguments: &Advise) -> anyhow::Result<Exit> {
    if let Some(page) = &arguments.html {
        places::must_be_writable(page)?;
    }
    let (mut machine, mut runs) = subject(general, arguments)?;
    let mut compression = Vec::new();
    let mut advice = advice(&machine, &runs, Vec::new(), arguments)?;
    let mut all_measured = true;
    if arguments.measure {
        must_be_live(general, "advise --measure", "a disk")?;
        if !general.quiet {
            rubus_command::message!(
                "measuring how this processor compresses a sample of / (2 to 5 s, reads at most 24 MiB)"
            );
        }
        compression =
            rubus_processor::files::measure(Path::new("/"), &NotCopied::of(&machine)).speeds;
        all_measured = measure(&advice, general.quiet)?;
        (machine, runs) = subject(general, arguments)?;
        advice = self::advice(&machine, &runs, compression.clone(), arguments)?;
    }
    let mut first = None;
    if arguments.from.is_none() {
        first = try_commands(&World::of(general)?, &machine, &mut advice)?;
    }
    let mut page = None;
    if arguments.html.is_some() {
        let of_page = advice_for_others(&machine, &runs, compression, arguments)?;
        page = Some(with_obstacles_of(&advice, first.as_ref(), of_page));
    }
    show(general, arguments, &advice, page.as_ref())?;
    Ok(if all_measured { Exit::Fine } else { Exit::AnswerIsNo })
}

/// Brings advice to its places; to the page, the advice that others may see.
///
/// # Errors
/// When they cannot be written.
pub fn show(
    general: &General,
    arguments: &Advise,
    advice: &Advice,
    for_others: Option<&Advice>,
) -> anyhow::Result<()> {
    if let (Some(page), Some(advice)) = (&arguments.html, for_others) {
        let text = rubus_page::advice::render(advice, env!("CARGO_PKG_VERSION"));
        places::write_whole(page, &text)?;
    }
    if arguments.json.wanted {
        return say(&(serde_json::to_string_pretty(advice)? + "\n"));
    }
    let depth = Depth { everything: arguments.verbose, pipes: arguments.pipes };
    say(&render(advice, depth, Terminal::of(general).style()))
}

/// What a machine is advised, with what is known of it.
///
/// # Errors
/// When a wish cannot be fulfilled on it.
pub fn advice(
    machine: &Machine,
    runs: &[(RunId, Run)],
    compression: Vec<CompressionSpeed>,
    arguments: &Advise,
) -> anyhow::Result<Advice> {
    let known = Known { compression, ..Known::of(machine, runs) };
    let question =
        Question { machine, known: &known, purpose: arguments.purpose(), with: &arguments.with };
    advise(&question).map_err(anyhow::Error::msg)
}

/// The same for a page, which others may see: of the machine and its runs without what identifies them.
///
/// # Errors
/// As for [`advice`].
pub fn advice_for_others(
    machine: &Machine,
    runs: &[(RunId, Run)],
    compression: Vec<CompressionSpeed>,
    arguments: &Advise,
) -> anyhow::Result<Advice> {
    let machine = shown(machine, false)?;
    let runs = runs.iter().map(|(id, run)| Ok((*id, shown(run, false)?)));
    let runs: Vec<(RunId, Run)> = runs.collect::<anyhow::Result<_>>()?;
    advice(&machine, &runs, compression, arguments)
}

/// Obstacles were found on the machine itself; of their words the public ones stay. What comes first here comes first there.
fn with_obstacles_of(own: &Advice, first: Option<&Remedy>, mut for_others: Advice) -> Advice {
    let public = |own: &[String]| own.iter().map(|text| shared_reason(text)).collect();
    if let Some(first) = first {
        for_others.mend_first(&shared_reason(&first.so_that), &shared_reason(&first.words));
    }
    for_others.obstacles = public(&own.obstacles);
    for (subject, own) in for_others.subjects.iter_mut().zip(&own.subjects) {
        subject.obstacles = public(&own.obstacles);
    }
    for_others
}

/// Puts each command that the advice gives through `plan`, and adds what stands in its way; what comes before the main one.
fn try_commands(
    world: &World,
    machine: &Machine,
    advice: &mut Advice,
) -> anyhow::Result<Option<Remedy>> {
    let mut first = None;
    if let Some(command) = &advice.command {
        let found = obstacles(world, machine, command)?;
        advice.obstacles = sentences(&found);
        first = found.into_iter().find_map(|obstacle| obstacle.remedy);
        if let Some(first) = &first {
            advice.mend_first(&first.so_that, &first.words);
        }
    }
    for subject in &mut advice.subjects {
        if let Some(command) = &subject.command {
            subject.obstacles = sentences(&obstacles(world, machine, command)?);
        }
    }
    Ok(first)
}

/// Why a plan would be refused.
struct Obstacle {
    /// As a sentence, with the remedy.
    words: String,
    remedy: Option<Remedy>,
}

/// How something comes to hold.
struct Remedy {
    /// What must hold.
    so_that: String,
    words: String,
}

fn sentences(all: &[Obstacle]) -> Vec<String> {
    all.iter().map(|obstacle| obstacle.words.clone()).collect()
}

/// Why the plan of such a command would be refused. What a capture does not hold refuses nothing.
fn obstacles(
    world: &World,
    machine: &Machine,
    command: &[String],
) -> anyhow::Result<Vec<Obstacle>> {
    let without_remedy = |words: String| Ok(vec![Obstacle { words, remedy: None }]);
    let ["rubus", "plan", name, wishes @ ..] = &words(command)[..] else {
        return Ok(Vec::new());
    };
    let Some(recipe) = rubus_recipes::by_name(name) else {
        return without_remedy(format!("there is no recipe {name}"));
    };
    let wishes = wishes.iter().filter_map(|wish| wish.split_once('='));
    let wishes: Wishes = wishes.map(|(k, v)| (k.into(), v.into())).collect();
    let look_at = Queries {
        // How long it would take is not asked here, and measuring that would take long itself.
        trees: Vec::new(),
        compression: false,
        ..(recipe.look_at)(machine, &wishes)
    };
    let facts = rubus_recipes::cli::facts(world, machine, &look_at)?;
    let plan = match recipe.plan(machine, &facts, &wishes, &clock::now_rfc3339()) {
        Ok(plan) => plan,
        Err(error) => return without_remedy(error.to_string()),
    };
    let failed = plan.checks.into_iter().filter(|check| !check.is_met && !check.is_unknown);
    let obstacle = |check: Check| {
        let remedy = check.remedy.as_ref().map(|remedy| format!(": {remedy}"));
        Obstacle {
            words: format!("{} (found: {}){}", check.what, check.found, remedy.unwrap_or_default()),
            remedy: check.remedy.map(|words| Remedy { so_that: check.what, words }),
        }
    };
    Ok(failed.map(obstacle).collect())
}

fn words(command: &[String]) -> Vec<&str> {
    command.iter().map(String::as_str).collect()
}

/// The machine that is meant, and what was measured on it.
fn subject(general: &General, arguments: &Advise) -> anyhow::Result<(Machine, Vec<(RunId, Run)>)> {
    let Some(from) = &arguments.from else {
        let world = World::of(general)?;
        let runs = match world {
            World::Live(_) => rubus_runs::recent::runs(),
            World::Captured(_) => Vec::new(),
        };
        return Ok((world.survey(), runs));
    };
    if let Some(machine) = &general.machine {
        bail!(
            "--from {from} and --machine {} both name a machine: give one of them",
            machine.display()
        );
    }
    let path = Path::new(from);
    let found = subjects::resolve(from)?;
    let runs: Vec<Run> = found.into_iter().filter_map(|found| found.run).collect();
    if let Some(run) = runs.first() {
        let mut machine = run.machine.clone();
        machine.origin =
            Origin::Capture { path: from.clone(), label: format!("the machine of {from}") };
        let runs = runs.into_iter().map(|run| (RunId(0), run)).collect();
        return Ok((machine, runs));
    }
    let captured = Captured::open(path)
        .with_context(|| format!("{from} is neither a run nor a captured machine"))?;
    let origin = Origin::Capture {
        path: captured.path().display().to_string(),
        label: captured.label().to_string(),
    };
    let machine = rubus_machine::probe::survey(&captured, captured.recorded_at(), origin);
    Ok((machine, Vec::new()))
}

/// Runs what the advice asks for, one after the other, with its words on standard error. False where one failed.
fn measure(advice: &Advice, is_quiet: bool) -> anyhow::Result<bool> {
    let program = std::env::current_exe().context("cannot find this program's own file")?;
    let mut all = true;
    for unknown in &advice.unknown {
        let Some([_, arguments @ ..]) = unknown.measurement.as_deref() else {
            continue;
        };
        let words = unknown.measurement.as_deref().unwrap_or_default();
        if !is_quiet {
            rubus_command::message!("\n{}: {}", unknown.what, typed(words));
        }
        let mut command = Command::new(&program);
        command.args(arguments).stdin(Stdio::null());
        // What is said of the measurement is not the advice.
        command.stdout(if is_quiet { Stdio::null() } else { std::io::stderr().into() });
        let status = command.status().with_context(|| format!("cannot run {}", typed(words)))?;
        if !status.success() {
            rubus_command::message!(
                "rubus: {} did not succeed; the advice continues without it",
                typed(words)
            );
            all = false;
        }
    }
    Ok(all)
}
