//! `rubus bench memory`: how fast memory is, and how much more than itself it carries.

use rubus_memory::pressure::suite::{self, PressureOptions, PressureSuite};
use rubus_memory::pressure::{keeper, load_process};
use rubus_memory::sequence;
use rubus_vocabulary::doubt::Doubt;
use rubus_vocabulary::memory::{Memory, Part, SUITE};
use rubus_vocabulary::result::{Figures, Run};

use crate::args::{BenchMemory, General, Keeping};
use crate::exit::Exit;
use crate::parts::{self, PartsRun};

/// Measures, keeps and shows.
pub fn run(general: &General, args: &BenchMemory) -> anyhow::Result<Exit> {
    if args.memory_load || args.keeper {
        let is_fine = if args.memory_load { load_process::serve() } else { keeper::serve() };
        return Ok(if is_fine { Exit::Fine } else { Exit::AnswerIsNo });
    }
    let keeping = Keeping::without_page(&args.kept);
    let frame = PartsRun::begin(general, args.json.as_deref(), &keeping, "the memory")?;
    let (machine, cancel, line) = (&frame.machine, &*frame.cancel, &frame.line);
    let mut memory = Memory {
        cores: std::thread::available_parallelism().map_or(1, usize::from) as u32,
        ..Memory::default()
    };
    let wanted = args.wanted_parts();
    if args.compare && wanted.contains(&Part::Pressure) {
        suite::must_be_on_a_disk(&args.directory, machine)?;
    }
    if wanted.contains(&Part::Bandwidth) {
        line.says("reading, writing and copying in order");
        sequence::in_order(&mut memory, machine, cancel);
    }
    if wanted.contains(&Part::Latency) {
        line.says("one load after the other");
        sequence::load_to_load(&mut memory, machine, args.seed, cancel);
    }
    if wanted.contains(&Part::Pressure) {
        let told = |what: &str| {
            if !general.quiet {
                eprintln!("{what}");
            }
        };
        let suite = PressureSuite {
            options: &options(args),
            machine,
            cancel,
            announce: &told,
            says: &|what| line.says(what),
        };
        let all = suite.run(&mut memory.left_out);
        let is_alone = wanted.len() == 1;
        let all = parts::taken(all, Part::Pressure, is_alone, &mut memory.left_out)?;
        memory.pressure = all.unwrap_or_default();
    }
    let mut doubts = Vec::new();
    if frame.is_interrupted() {
        doubts.push(Doubt::Interrupted);
    }
    doubts.extend(frame.power_doubts());
    frame.end(SUITE, "memory", Figures::Memory(memory), doubts, |run| complete(run, args))
}

fn options(args: &BenchMemory) -> PressureOptions {
    PressureOptions {
        compare: args.compare,
        whole_machine: args.whole_machine,
        directory: args.directory.clone(),
        limit_ns: args.limit,
        memory_bytes: args.memory,
        content_percent: args.content,
        budget_bytes: args.budget,
        seconds: args.seconds,
        most: args.max_working_set,
        seed: args.seed,
    }
}

/// What a run of memory says of itself besides its figures.
fn complete(mut run: Run, args: &BenchMemory) -> Run {
    let pressure = run.memory().map_or(&[][..], |memory| &memory.pressure);
    let bytes_written = pressure.iter().map(|one| one.written_bytes).sum();
    let first = pressure.first();
    let region_bytes = first.map_or(0, |first| first.group.memory_bytes);
    run.bytes_written = bytes_written;
    run.target.region_bytes = region_bytes;
    run.target.content = format!("compressible to {} %", args.content);
    run.seed = args.seed;
    run
}
