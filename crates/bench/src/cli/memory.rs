//! `rubus bench memory`: memory is measured in its room, and the run is kept and shown.

use rubus_command::{Exit, General, Keeping, message};
use rubus_memory::cli::memory::{self, Around, BenchMemory};
use rubus_vocabulary::doubt::Doubt;
use rubus_vocabulary::memory::SUITE;
use rubus_vocabulary::result::Figures;

use crate::parts::PartsRun;

/// Measures, keeps and shows.
pub fn run(general: &General, args: &BenchMemory) -> anyhow::Result<Exit> {
    if let Some(exit) = memory::serve(args) {
        return Ok(exit);
    }
    let keeping = Keeping::without_page(&args.kept);
    let frame = PartsRun::begin(general, args.json.as_deref(), &keeping, "the memory")?;
    let around = Around {
        machine: &frame.machine,
        cancel: &frame.cancel,
        says: &|what| frame.line.says(what),
        announce: &|what| {
            if !general.quiet {
                message!("{what}");
            }
        },
    };
    let figures = Figures::Memory(memory::measure(args, &around)?);
    let mut doubts = Vec::new();
    if frame.is_interrupted() {
        doubts.push(Doubt::Interrupted);
    }
    doubts.extend(frame.power_doubts());
    frame.end(SUITE, "memory", figures, doubts, |run| memory::complete(run, args))
}
