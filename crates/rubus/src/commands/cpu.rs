//! `rubus bench cpu`: what the processor does for ciphers, ssh, compression and arithmetic.
//!
//! Each part fills its place in the result, or is left out with the reason.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use rubus_core::doubt::Doubt;
use rubus_core::machine::Machine;
use rubus_core::processor::implementation::Offer;
use rubus_core::processor::{Ciphers, LeftOut, Part, ProcessorRun, SUITE, watched};
use rubus_core::result::Run;
use rubus_host::clock;

use super::against_binary;
use crate::args::{BenchCpu, General, Keeping};
use crate::crunching;
use crate::exit::Exit;
use crate::heat_watch::HeatWatch;
use crate::measuring::{Measured, no_disk, power_doubts, run_of_no_jobs};
use crate::outputs::{self, Outputs, Wanted};
use crate::processor::{openssl, ssh};
use crate::progress::Line;
use crate::signals;
use crate::world::{self, Terminal, World};

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
    if let Some(other) = &args.against_binary {
        return against_binary::run(general, args, other);
    }
    world::must_be_live(general, "a bench", "a processor")?;
    let keeping = Keeping::without_page(&args.kept);
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
        if !doubts.iter().any(|known| known.is_like(&doubt)) {
            doubts.push(doubt);
        }
    }
    doubts.extend(seen.stolen);
    if cancel.load(Ordering::Relaxed) {
        doubts.push(Doubt::Interrupted);
    }
    processor.watched = watched::Watched::of(&seen.looks);
    let elapsed_s = begun.elapsed().as_secs_f64();
    let is_right = processor.is_right();
    let run = Run {
        processor: Some(processor),
        ..run_of_no_jobs(
            machine,
            no_disk("processor"),
            SUITE,
            started,
            elapsed_s,
            doubts,
        )
    };
    let mut outputs = Outputs::new(general, wanted, 1);
    outputs.take(Measured::of(run))?;
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
    let says = &mut |what: &str| course.line.says(what);
    let (cores, seconds) = (course.cores, course.args.seconds);
    let mut rows = rubus_bench::processor::ciphers(cores, seconds, &offer, course.cancel, says);
    let (of_kernel, refused) =
        rubus_bench::processor::kernel_ciphers(cores, seconds, course.cancel, says);
    rows.extend(of_kernel);
    let part = Part::Ciphers;
    let refused = refused.into_iter().map(|what| LeftOut { part, what });
    processor.left_out.extend(refused);
    Ciphers {
        rows,
        peers: match course.args.alone {
            true => Vec::new(),
            false => openssl::peers(course, &offer, processor),
        },
    }
}
