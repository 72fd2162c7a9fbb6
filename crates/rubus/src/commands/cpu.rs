//! `rubus bench cpu`: what the processor does for ciphers, ssh, compression and arithmetic.
//!
//! Each part fills its place in the result, or is left out with the reason.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use anyhow::bail;
use indicatif::{ProgressBar, ProgressDrawTarget};
use rubus_core::doubt::Doubt;
use rubus_core::machine::Machine;
use rubus_core::processor::implementation::Offer;
use rubus_core::processor::{Ciphers, LeftOut, Part, ProcessorRun, SUITE, watched};
use rubus_core::result::{Access, Run, TargetFacts, TargetKind};
use rubus_core::verdict::verdict;
use rubus_host::clock;

use crate::args::{BenchCpu, General};
use crate::crunching;
use crate::exit::Exit;
use crate::heat_watch::HeatWatch;
use crate::measuring::{Measured, power_doubts};
use crate::outputs::{self, Outputs, Wanted};
use crate::processor::{openssl, ssh};
use crate::signals;
use crate::world::{Terminal, World};

/// What every part needs.
pub struct Course<'a> {
    /// As surveyed before the run.
    pub machine: &'a Machine,
    /// What was asked for.
    pub args: &'a BenchCpu,
    /// Cores that the program may use.
    pub cores: u32,
    /// Set when the user has had enough.
    pub cancel: &'a AtomicBool,
    /// Says on the terminal what is measured now.
    pub line: &'a Line,
}

/// Measures, keeps and shows.
pub fn run(general: &General, args: &BenchCpu) -> anyhow::Result<Exit> {
    if let Some(path) = &general.machine {
        bail!(
            "a bench measures a processor, and the captured machine {} has none to measure; \
             `rubus survey --machine FILE` shows what was captured",
            path.display()
        );
    }
    let keeping = args.keeping();
    let wanted = Wanted {
        json: args.json.as_deref(),
        fio_json: None,
        keeping: &keeping,
    };
    outputs::check(&wanted)?;
    let cancel = signals::cancel_flag()?;
    let world = World::of(general)?;
    let machine = world.survey();
    let (started, begun) = (clock::now_rfc3339(), Instant::now());
    let mut processor = ProcessorRun {
        cores: std::thread::available_parallelism().map_or(1, usize::from) as u32,
        pointer_bits: usize::BITS,
        architecture: std::env::consts::ARCH.into(),
        seconds: args.seconds,
        ..ProcessorRun::default()
    };
    let watch = HeatWatch::start(&machine);
    let line = Line::new(Terminal::of(general));
    let course = Course {
        machine: &machine,
        args,
        cores: processor.cores,
        cancel: &cancel,
        line: &line,
    };
    for part in args.wanted_parts() {
        if cancel.load(Ordering::Relaxed) {
            break;
        }
        if let Err(error) = measure(part, &course, &mut processor) {
            // Asked for alone, it is not just left out.
            if args.parts.len() == 1 {
                return Err(error);
            }
            let what = format!("{error:#}");
            processor.left_out.push(LeftOut { part, what });
        }
    }
    drop(line);
    let seen = watch.end();
    let mut doubts = watched::doubts(&seen.looks);
    for doubt in power_doubts(&machine.power, &world.survey().power) {
        let is_known =
            |known: &Doubt| std::mem::discriminant(known) == std::mem::discriminant(&doubt);
        if !doubts.iter().any(is_known) {
            doubts.push(doubt);
        }
    }
    doubts.extend(seen.stolen);
    if cancel.load(Ordering::Relaxed) {
        doubts.push(Doubt::Interrupted);
    }
    processor.watched = watched::Watched::of(&seen.looks);
    let elapsed_s = begun.elapsed().as_secs_f64();
    let run = run_of(machine, started, elapsed_s, processor, doubts);
    let is_right = run.processor.as_ref().is_none_or(ProcessorRun::is_right);
    let mut outputs = Outputs::new(general, wanted, 1);
    outputs.take(Measured {
        verdict: verdict(&run),
        run,
        ended_by: None,
        left_out: Vec::new(),
    })?;
    match (outputs.finish()?, is_right) {
        (Exit::Fine, false) => Ok(Exit::AnswerIsNo),
        (exit, _) => Ok(exit),
    }
}

/// One part.
fn measure(part: Part, course: &Course<'_>, processor: &mut ProcessorRun) -> anyhow::Result<()> {
    match part {
        Part::Ciphers => processor.ciphers = Some(ciphers(course, processor)),
        Part::Ssh => processor.ssh = Some(ssh::ssh(course, processor)?),
        Part::Compression => {
            processor.compression = Some(crunching::compression(course, processor)?)
        }
        Part::Linpack => processor.linpack = Some(crunching::linpack(course, processor)?),
    }
    Ok(())
}

fn ciphers(course: &Course<'_>, processor: &mut ProcessorRun) -> Ciphers {
    let features = course.machine.cpu.crypto_features.value();
    let offer = Offer {
        architecture: std::env::consts::ARCH,
        features: features.map_or(&[], Vec::as_slice),
    };
    let rows = rubus_bench::processor::ciphers(
        course.cores,
        course.args.seconds,
        &offer,
        course.cancel,
        &mut |what| course.line.says(what),
    );
    Ciphers {
        rows,
        peers: openssl::peers(course, &offer, processor),
    }
}

fn run_of(
    machine: Machine,
    started: String,
    elapsed_s: f64,
    processor: ProcessorRun,
    doubts: Vec<Doubt>,
) -> Run {
    Run {
        rubus_version: env!("CARGO_PKG_VERSION").into(),
        machine,
        target: TargetFacts {
            named: "processor".into(),
            kind: TargetKind::Ram,
            path: "processor".into(),
            filesystem: None,
            device: None,
            region_bytes: 0,
            access: Access::Buffered,
            content: "nothing".into(),
            network: None,
            link: None,
        },
        suite: SUITE.into(),
        seed: 0,
        started,
        elapsed_s,
        bytes_written: 0,
        calibration: None,
        results: Vec::new(),
        doubts,
        findings: Vec::new(),
        on: None,
        job_file: None,
        against: None,
        memory: None,
        processor: Some(processor),
    }
}

/// What is measured now, on a terminal.
pub struct Line(ProgressBar);

impl Line {
    fn new(terminal: Terminal) -> Self {
        let target = match terminal.live {
            true => ProgressDrawTarget::stderr_with_hz(10),
            false => ProgressDrawTarget::hidden(),
        };
        let bar = ProgressBar::with_draw_target(None, target);
        bar.set_style(indicatif::ProgressStyle::default_spinner());
        Line(bar)
    }

    /// Shows it.
    pub fn says(&self, what: &str) {
        self.0.set_message(what.to_string());
        self.0.tick();
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
