//! `rubus checkup`: the main job. Survey, announce, measure, judge, show, keep.

use std::path::Path;

use rubus_draw::text::clean;
use rubus_measure::Queueing;
use rubus_recipes::fallen_back;
use rubus_runs::aged_disks;
use rubus_runs::named::open_existing;
use rubus_watch::health;
use rubus_watch::probe::health::told;

use crate::args::{Checkup, General};
use crate::exit::Exit;
use crate::measuring;
use crate::outputs::{self, Outputs, ResultOutputs};
use crate::target::{self, Allowance};
use rubus_command::messages::in_columns;
use rubus_command::signals;
use rubus_command::{Terminal, World, must_be_live};

/// Does a checkup of the disk under a directory.
pub fn run(general: &General, checkup: &Checkup) -> anyhow::Result<Exit> {
    must_be_live(general, "a checkup", "a disk")?;
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
    let suite = measuring::suite_for("quick", &target, measuring::SuiteLimits::default())?;
    if !general.quiet {
        for words in fallen_back::of_machine(world.files()) {
            eprintln!("{words}");
        }
        for words in health::warnings(&health::of_machine(&machine, &told(world.files(), vec![]))) {
            eprintln!("{}", in_columns(&words));
        }
        eprintln!("{}", in_columns(&measuring::announce(&suite, &target)));
    }
    let queueing = Queueing::USUAL;
    let measured =
        measuring::measure(target, &suite, &world, machine, &cancel, queueing, terminal)?;
    let mut outputs = Outputs::new(general, wanted(checkup), 1);
    outputs.take(measured)?;
    let exit = outputs.finish()?;
    say_what_changed(general, checkup);
    Ok(exit)
}

/// How the run compares with earlier ones of the same disk, where it was kept. A history that cannot be read was told when the run was
/// to be kept, and makes no checkup fail.
fn say_what_changed(general: &General, checkup: &Checkup) {
    if general.quiet || checkup.keeping.kept.no_history {
        return;
    }
    let Ok(Some(store)) = open_existing() else {
        return;
    };
    for words in aged_disks::of_newest(&store).unwrap_or_default() {
        eprintln!("{}", in_columns(&clean(&format!("compared with earlier runs, {words}"))));
    }
}

/// Where the result goes besides the terminal.
pub fn wanted(checkup: &Checkup) -> ResultOutputs<'_> {
    ResultOutputs {
        json: checkup.json.wanted.then_some(Path::new("-")),
        fio_json: None,
        keeping: &checkup.keeping,
    }
}
