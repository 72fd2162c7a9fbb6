//! `rubus checkup`: the main job. Survey, announce, measure, judge, show, keep.

use anyhow::Context;
use rubus_core::result::Run;
use rubus_core::verdict::Verdict;

use crate::args::{Checkup, General};
use crate::exit::Exit;
use crate::measuring::{self, Kept, Measured};
use crate::places;
use crate::signals;
use crate::target::{self, Allowance};
use crate::world::{self, Terminal, World};

/// Does a checkup of the disk under a directory.
pub fn run(general: &General, checkup: &Checkup) -> anyhow::Result<Exit> {
    world::must_be_live(general, "a checkup")?;
    checkup
        .keeping
        .html
        .as_deref()
        .map(places::must_be_writable)
        .transpose()?;
    let cancel = signals::cancel_flag()?;
    let terminal = Terminal::of(general);
    let world = World::of(general)?;
    let machine = world.survey();
    let target = target::resolve(
        &checkup.path,
        &machine,
        world.files(),
        &Allowance::default(),
    )?;
    let suite = measuring::suite_for("quick", &target)?;
    if !general.quiet {
        eprintln!("{}", measuring::announce(&suite, &target));
    }
    let measured = measuring::measure(target, &suite, &world, machine, &cancel, true, terminal)?;
    let kept = measuring::keep(&measured, &checkup.keeping);
    if checkup.json.wanted {
        places::say(&(json(&measured.run, &measured.verdict)? + "\n"))?;
    } else {
        let style = terminal.style();
        places::say(&rubus_show::checkup::render(
            &measured.run,
            &measured.verdict,
            style,
        ))?;
    }
    Ok(end(general, &measured, &kept))
}

/// The run as one JSON object, with the verdict beside its fields.
pub fn json(run: &Run, verdict: &Verdict) -> anyhow::Result<String> {
    let mut object = serde_json::to_value(run).context("cannot write the run as JSON")?;
    object["verdict"] =
        serde_json::to_value(verdict).context("cannot write the verdict as JSON")?;
    Ok(serde_json::to_string_pretty(&object)?)
}

/// Tells where the run was kept and how it ended; gives the exit status.
pub fn end(general: &General, measured: &Measured, kept: &Kept) -> Exit {
    if !general.quiet {
        if let Some(page) = &kept.page {
            eprintln!("page: {}", page.display());
        }
        if let Some(number) = kept.number {
            eprintln!("history: run {number} (`rubus history show {number}` shows it again)");
        }
    }
    for trouble in &kept.troubles {
        eprintln!("rubus: {trouble}");
    }
    match &measured.ended_by {
        Some(error) => {
            eprintln!("rubus: {error}");
            Exit::AnswerIsNo
        }
        None => Exit::Fine,
    }
}
