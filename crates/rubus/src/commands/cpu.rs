//! `rubus bench cpu`: what the processor does for ciphers, ssh, compression and arithmetic.
//!
//! Each part fills its place in the result, or is left out with the reason.

use rubus_processor::suite::{CpuOptions, CpuSuite};
use rubus_vocabulary::doubt::Doubt;
use rubus_vocabulary::processor::{ProcessorRun, SUITE, watched};
use rubus_vocabulary::result::Figures;
use rubus_watch::probe::HeatWatch;

use super::against_binary;
use crate::args::{BenchCpu, General, Keeping};
use crate::exit::Exit;
use crate::parts::{self, PartsRun};

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
    let machine = &frame.machine;
    let options = options(args);
    let suite = CpuSuite {
        machine,
        options: &options,
        cores: processor.cores,
        cancel: &frame.cancel,
        says: &|what| frame.line.says(what),
        watched: &|work| {
            let watch = HeatWatch::start(machine);
            work();
            watch.end().looks
        },
    };
    let is_alone = args.parts.len() == 1;
    for part in args.wanted_parts() {
        if frame.is_interrupted() {
            break;
        }
        let measured = suite.measure(part, &mut processor);
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
    match (frame.end(SUITE, "processor", figures, doubts, |run| run)?, is_right) {
        (Exit::Fine, false) => Ok(Exit::AnswerIsNo),
        (exit, _) => Ok(exit),
    }
}

fn options(args: &BenchCpu) -> CpuOptions<'_> {
    CpuOptions {
        seconds: args.seconds,
        data: args.data.clone(),
        methods: Box::new(|page_bytes| args.wanted_methods(page_bytes)),
        unknowns: args.unknowns,
        blocks: args.wanted_blocks(),
        stability: args.stability,
        hpl: args.hpl.clone(),
        alone: args.alone,
    }
}
