//! `rubus checkup`: the main job. Survey, announce, measure, judge, show, keep.

use std::path::{Path, PathBuf};

use clap::Args;
use rubus_command::messages::in_columns;
use rubus_command::{
    Exit, General, Json, Keeping, Terminal, World, message, must_be_live, signals,
};
use rubus_draw::text::clean;
use rubus_fleet::remote::Remote;
use rubus_measure::Queueing;
use rubus_recipes::fallen_back;
use rubus_runs::aged_disks;
use rubus_runs::named::open_existing;
use rubus_vocabulary::verb::Page;
use rubus_watch::health;
use rubus_watch::probe::health::told;

use crate::measuring;
use crate::outputs::{self, Outputs, ResultOutputs};
use crate::target::{self, Allowance};

/// Exit statuses and examples.
pub(super) const PAGE: Page = Page {
    name: "rubus-checkup",
    statuses: super::MEASURED,
    examples: &[
        (
            "rubus checkup /mnt/ssd --html ssd.html",
            "Measure the disk under /mnt/ssd, and write the page to ssd.html.",
        ),
        (
            "rubus checkup --on pi@raspberrypi",
            "Measure the home disk of another machine, over ssh.",
        ),
    ],
};

/// Measure the disk under a directory and say what it can do (the default).
///
/// Takes about a minute. Writes one nameless file (at most 10 % of the free space, at most 1 GiB in
/// total, 4 GiB on an SSD or hard disk), which is gone at the end whatever
/// happens.
#[derive(Debug, Args)]
pub struct Checkup {
    /// Directory on the disk to be measured
    #[arg(default_value = ".")]
    pub path: PathBuf,
    #[command(flatten)]
    pub json: Json,
    #[command(flatten)]
    pub keeping: Keeping,
    #[command(flatten)]
    pub remote: Remote,
}

impl Checkup {
    /// What `rubus` without a command does.
    pub fn of_current_directory(json: Json) -> Self {
        Checkup {
            path: PathBuf::from("."),
            json,
            keeping: Keeping::default(),
            remote: Remote::default(),
        }
    }
}

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
            message!("{words}");
        }
        for words in health::warnings(&health::of_machine(&machine, &told(world.files(), vec![]))) {
            message!("{}", in_columns(&words));
        }
        message!("{}", in_columns(&measuring::announce(&suite, &target)));
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
        message!("{}", in_columns(&clean(&format!("compared with earlier runs, {words}"))));
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
