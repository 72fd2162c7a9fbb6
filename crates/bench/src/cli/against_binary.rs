//! `rubus bench cpu --against-binary FILE`: another rubus and this one measure the processor in turns, and are compared.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, bail, ensure};
use rubus_command::progress::Line;
use rubus_command::{Exit, General, Terminal, must_be_live, places, signals};
use rubus_host::files::document;
use rubus_host::process::programs::{self, RunError};
use rubus_processor::cli::cpu::BenchCpu;
use rubus_remote::elf::{self, Built};
use rubus_runs::compare::{Comparison, compare, turns};
use rubus_vocabulary::processor::MIN_SECONDS;
use rubus_vocabulary::result::Run;
use rubus_watch::live::terminal;

/// In the order A B, B A, so that a steady drift of the machine cancels.
const ROUNDS: usize = 6;
/// Of the time of a figure, in each round.
const SHARE: f64 = 0.25;

/// Measures with both and shows how they compare.
pub fn run(general: &General, args: &BenchCpu, other: &Path) -> anyhow::Result<Exit> {
    must_be_live(general, "a bench", "a processor")?;
    for path in [&args.json, &args.kept.csv, &args.kept.markdown].into_iter().flatten() {
        places::must_be_writable(path)?;
    }
    let cancel = signals::cancel_flag()?;
    let this = std::env::current_exe().context("cannot find the file of this program")?;
    is_of_this_version(other, &cancel)?;
    let line = Line::new(Terminal::of(general));
    let arguments = arguments(args);
    let mut rounds: Vec<[Run; 2]> = Vec::new();
    for round in 0..ROUNDS {
        let turn = |program: &Path| {
            line.says(&format!("round {} of {ROUNDS}: {}", round + 1, program.display()));
            measure(program, &arguments, &cancel)
        };
        let both = match round % 2 {
            0 => turn(other).and_then(|baseline| Ok([baseline, turn(&this)?])),
            _ => turn(&this).and_then(|own| Ok([turn(other)?, own])),
        };
        match both {
            Ok(both) => rounds.push(both),
            Err(_) if cancel.load(Ordering::Relaxed) => break,
            Err(error) => return Err(error),
        }
    }
    drop(line);
    let names = [named(other, &rounds, 0), named(&this, &rounds, 1)];
    let mut subjects = turns::subjects(names.each_ref().map(String::as_str), &rounds)
        .context("it was interrupted before the first round was complete")?;
    subjects[0].note = rounds.first().and_then(emulated);
    let comparison = compare(&subjects);
    ensure!(
        !comparison.rows.is_empty(),
        "the two have no figure in common; `{} bench cpu` says what it could not measure",
        other.display()
    );
    show(general, args, &comparison)?;
    if cancel.load(Ordering::Relaxed) { Ok(Exit::AnswerIsNo) } else { Ok(Exit::Fine) }
}

/// "rubus-armv7 (32 bits, arm)".
fn named(program: &Path, rounds: &[[Run; 2]], side: usize) -> String {
    let name = program.file_name().unwrap_or(program.as_os_str());
    let processor = rounds.first().and_then(|round| round[side].processor());
    let built = processor.map_or(String::new(), |processor| {
        format!(" ({} bits, {})", processor.pointer_bits, processor.architecture)
    });
    format!("{}{built}", name.to_string_lossy())
}

/// What to know about two programs for processors of different kinds, of which one machine runs only one by itself.
fn emulated(round: &[Run; 2]) -> Option<String> {
    let [theirs, own] = round.each_ref().map(|run| run.processor());
    let (theirs, own) = (&theirs?.architecture, &own?.architecture);
    (!elf::are_of_one_family(theirs, own)).then(|| {
        format!(
            "for {theirs}, and the other for {own}: no processor runs both by itself, so one of them ran in an emulator, and \
             the ratio is that of the emulator"
        )
    })
}

/// What each of the two is asked for.
fn arguments(args: &BenchCpu) -> Vec<String> {
    let mut all: Vec<String> = vec!["bench".into(), "cpu".into()];
    all.extend(args.wanted_parts().iter().map(|part| part.name().to_string()));
    let seconds = (args.seconds * SHARE).max(MIN_SECONDS);
    all.push(format!("--seconds={seconds}"));
    all.push(format!("--data={}", args.data.display()));
    let lists = [
        ("methods", args.methods.join(",")),
        ("blocks", joined(&args.blocks)),
        ("unknowns", args.unknowns.map_or(String::new(), |n| n.to_string())),
    ];
    let given = lists.iter().filter(|(_, list)| !list.is_empty());
    all.extend(given.map(|(name, list)| format!("--{name}={list}")));
    all.extend(["--alone", "--no-history", "--quiet", "--json=-"].map(String::from));
    all
}

fn joined(numbers: &[u32]) -> String {
    let numbers: Vec<String> = numbers.iter().map(u32::to_string).collect();
    numbers.join(",")
}

/// Figures of two versions differ by more than what the two were built for.
fn is_of_this_version(program: &Path, cancel: &AtomicBool) -> anyhow::Result<()> {
    let shown = program.display();
    let about = program.metadata().with_context(|| format!("cannot look at {shown}"))?;
    ensure!(about.is_file(), "{shown} is no program: --against-binary wants the file of a rubus");
    ensure!(
        rustix::fs::access(program, rustix::fs::Access::EXEC_OK).is_ok(),
        "{shown} may not be run: allow it with `chmod +x {shown}`, on a filesystem that is not mounted noexec"
    );
    let said = ask(program, &["--version".into()], cancel)
        .with_context(|| format!("{shown} does not say which version it is"))?;
    let own = concat!("rubus ", env!("CARGO_PKG_VERSION"));
    match said.trim() {
        version if version == own => Ok(()),
        version if version.starts_with("rubus ") => bail!(
            "{shown} is {version}, and this is {own}: build both from the same source, so that they differ only in what \
             they were built for"
        ),
        said => bail!(
            "{shown} is no rubus: asked for its version, it says '{}'",
            said.lines().next().unwrap_or_default()
        ),
    }
}

/// One run of a program.
fn measure(program: &Path, arguments: &[String], cancel: &AtomicBool) -> anyhow::Result<Run> {
    let said = ask(program, arguments, cancel)?;
    let run = Run::of_json_text(&said).map_err(anyhow::Error::msg).with_context(|| {
        format!(
            "what {} printed is no result that this rubus can read: build both from the same source",
            program.display()
        )
    })?;
    ensure!(
        run.processor().is_some(),
        "{} measured something else than the processor",
        program.display()
    );
    Ok(run)
}

fn ask(program: &Path, arguments: &[String], cancel: &AtomicBool) -> anyhow::Result<String> {
    let program = absolute(program)?;
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let said = programs::run_file(&program, &arguments, cancel);
    let is_foreign = matches!(&said, Err(RunError::Unable { .. }));
    let said = said.map_err(anyhow::Error::from);
    if is_foreign { said.with_context(|| why_not(&program)) } else { said }
}

/// Why a program that is there and may be run cannot be run.
fn why_not(program: &Path) -> String {
    let own = format!("{} bits, {}", usize::BITS, std::env::consts::ARCH);
    let why = match built(program) {
        None => "it is no program, and what its first line names is not there or cannot be run"
            .to_string(),
        Some(built)
            if (u32::from(built.bits), built.architecture().as_str())
                == (usize::BITS, std::env::consts::ARCH) =>
        {
            format!(
                "it is built for {own} as this one, so the libraries that it needs are not there: build it static"
            )
        }
        Some(built) => format!(
            "it is built for {} bits, {}, and this one for {own}: this processor does not run such programs, or the kernel is \
             not set up for them, or the libraries that it needs are not there (build it static)",
            built.bits,
            built.architecture()
        ),
    };
    format!("this system cannot run it: {why}")
}

fn built(program: &Path) -> Option<Built> {
    let mut header = [0; elf::HEADER_BYTES];
    let mut file = document::open_regular(program).ok()?;
    file.read_exact(&mut header).ok()?;
    Built::of(&header)
}

fn absolute(program: &Path) -> anyhow::Result<PathBuf> {
    std::path::absolute(program)
        .with_context(|| format!("cannot tell where {} is", program.display()))
}

/// On the terminal, and wherever it was asked for.
fn show(general: &General, args: &BenchCpu, comparison: &Comparison) -> anyhow::Result<()> {
    let json = |comparison: &Comparison| {
        serde_json::to_string_pretty(comparison).unwrap_or_default() + "\n"
    };
    let outputs = [
        (&args.json, json as fn(&Comparison) -> String),
        (&args.kept.csv, rubus_runs::text::compare::csv),
        (&args.kept.markdown, rubus_runs::text::compare::markdown),
    ];
    let mut is_printed = false;
    for (path, form) in outputs {
        if let Some(path) = path {
            is_printed |= path.as_os_str() == "-";
            places::write_whole(path, &form(comparison))?;
        }
    }
    if !is_printed {
        let style = Terminal::of(general).style();
        let columns = terminal::size().0.into();
        places::say(&rubus_runs::text::compare::render(comparison, style, columns))?;
    }
    Ok(())
}
