//! `rubus checkup`: the main job. Survey, announce, measure, judge, show, keep.

use std::path::Path;

use anyhow::Context;
use rubus_core::result::Run;
use rubus_core::verdict::Verdict;

use super::fallen_back;
use crate::args::{Checkup, General};
use crate::exit::Exit;
use crate::measuring;
use crate::outputs::{self, Outputs, Wanted};
use crate::signals;
use crate::target::{self, Allowance};
use crate::world::{self, Terminal, World};

/// Does a checkup of the disk under a directory.
pub fn run(general: &General, checkup: &Checkup) -> anyhow::Result<Exit> {
    world::must_be_live(general, "a checkup", "a disk")?;
    outputs::check(&wanted(checkup))?;
    let cancel = signals::cancel_flag()?;
    let terminal = Terminal::of(general);
    let world = World::of(general)?;
    let machine = world.survey();
    let target = target::resolve(
        &checkup.path.clone().into(),
        &machine,
        world.files(),
        &Allowance::default(),
    )?;
    let suite = measuring::suite_for("quick", &target, measuring::Wanted::default())?;
    if !general.quiet {
        for words in fallen_back::of_machine(world.files()) {
            eprintln!("{words}");
        }
        eprintln!("{}", measuring::announce(&suite, &target));
    }
    let measured = measuring::measure(target, &suite, &world, machine, &cancel, true, terminal)?;
    let mut outputs = Outputs::new(general, wanted(checkup), 1);
    outputs.take(measured)?;
    outputs.finish()
}

/// Where the result goes besides the terminal.
pub fn wanted(checkup: &Checkup) -> Wanted<'_> {
    Wanted {
        json: checkup.json.wanted.then_some(Path::new("-")),
        fio_json: None,
        keeping: &checkup.keeping,
    }
}

/// The run as one JSON object, with the verdict beside its fields.
pub fn json(run: &Run, verdict: &Verdict) -> anyhow::Result<String> {
    let mut object = serde_json::to_value(run).context("cannot write the run as JSON")?;
    // A verdict is about a disk.
    if run.memory.is_none() && run.processor.is_none() {
        object["verdict"] =
            serde_json::to_value(verdict).context("cannot write the verdict as JSON")?;
    }
    Ok(serde_json::to_string_pretty(&object)?)
}
