//! `rubus bench cpu`: what the processor does for ciphers, ssh, compression and arithmetic.
//!
//! Each part fills its place in the result, or is left out with the reason.

use rubus_vocabulary::doubt::Doubt;
use rubus_vocabulary::processor::implementation::Offer;
use rubus_vocabulary::processor::{Ciphers, LeftOut, Part, ProcessorRun, SUITE, watched};
use rubus_vocabulary::result::Figures;
use rubus_watch::probe::HeatWatch;

use super::against_binary;
use crate::args::{BenchCpu, General, Keeping};
use crate::exit::Exit;
use crate::parts::{self, PartsRun};
use crate::processor::{CpuRun, crunching, openssl, ssh};

/// Measures, keeps and shows.
pub fn run(general: &General, args: &BenchCpu) -> anyhow::Result<Exit> {
    if let Some(other) = &args.against_binary {
        return against_binary::run(general, args, other);
    }
    let keeping = Keeping::without_page(&args.kept);
    let frame = PartsRun::begin(general, args.json.as_deref(), &keeping, "a processor")?;
    let mut processor = ProcessorRun {
        cores: std::thread::available_parallelism().map_or(1, usize::from) as u32,
        pointer_bits: usize::BITS,
        architecture: std::env::consts::ARCH.into(),
        seconds: args.seconds,
        ..ProcessorRun::default()
    };
    let watch = HeatWatch::start(&frame.machine);
    let course = CpuRun {
        machine: &frame.machine,
        args,
        cores: processor.cores,
        cancel: &frame.cancel,
        line: &frame.line,
    };
    let is_alone = args.parts.len() == 1;
    for part in args.wanted_parts() {
        if frame.is_interrupted() {
            break;
        }
        let measured = measure(part, &course, &mut processor);
        parts::taken(measured, part, is_alone, &mut processor.left_out)?;
    }
    let seen = watch.end();
    let mut doubts = watched::doubts(&seen.looks);
    for doubt in frame.power_doubts() {
        if !doubts.iter().any(|known| known.is_like(&doubt)) {
            doubts.push(doubt);
        }
    }
    doubts.extend(seen.stolen);
    if frame.is_interrupted() {
        doubts.push(Doubt::Interrupted);
    }
    processor.watched = watched::Watched::of(&seen.looks);
    let is_right = processor.is_right();
    let figures = Figures::Processor(Box::new(processor));
    match (
        frame.end(SUITE, "processor", figures, doubts, |run| run)?,
        is_right,
    ) {
        (Exit::Fine, false) => Ok(Exit::AnswerIsNo),
        (exit, _) => Ok(exit),
    }
}

/// One part.
fn measure(part: Part, course: &CpuRun<'_>, processor: &mut ProcessorRun) -> anyhow::Result<()> {
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

fn ciphers(course: &CpuRun<'_>, processor: &mut ProcessorRun) -> Ciphers {
    let features = course.machine.cpu.crypto_features.value();
    let offer = Offer {
        architecture: std::env::consts::ARCH,
        features: features.map_or(&[], Vec::as_slice),
    };
    let says = &mut |what: &str| course.line.says(what);
    let (cores, seconds) = (course.cores, course.args.seconds);
    let mut rows = rubus_processor::run::ciphers(cores, seconds, &offer, course.cancel, says);
    let (of_kernel, refused) =
        rubus_processor::run::kernel_ciphers(cores, seconds, course.cancel, says);
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
