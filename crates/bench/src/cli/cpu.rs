//! `rubus bench cpu`: the processor is measured in its room, with its heat watched, and the run is kept and shown.

use rubus_command::{Exit, General, Keeping};
use rubus_processor::cli::cpu::{Around, BenchCpu, measure};
use rubus_vocabulary::doubt::Doubt;
use rubus_vocabulary::processor::{SUITE, watched};
use rubus_vocabulary::result::Figures;
use rubus_watch::probe::HeatWatch;

use super::against_binary;
use crate::parts::PartsRun;

/// Measures, keeps and shows.
pub fn run(general: &General, args: &BenchCpu) -> anyhow::Result<Exit> {
    if let Some(other) = &args.against_binary {
        return against_binary::run(general, args, other);
    }
    let keeping = Keeping::without_page(&args.kept);
    let frame = PartsRun::begin(general, args.json.as_deref(), &keeping, "a processor")?;
    let watch = HeatWatch::start(&frame.machine);
    let around = Around {
        machine: &frame.machine,
        cancel: &frame.cancel,
        says: &|what| frame.line.says(what),
        watched: &|work| {
            let watch = HeatWatch::start(&frame.machine);
            work();
            watch.end().looks
        },
    };
    let mut processor = measure(args, &around)?;
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
