//! `rubus survey`: reads the machine, shows it, and saves a capture on request.

use std::path::Path;

use rubus_core::recipe::FROM_CARD;
use rubus_host::Files;
use rubus_host::capture::{self, Identities};
use rubus_host::recorder::Recorder;

use crate::args::{General, Survey};
use crate::exit::Exit;
use crate::places;
use crate::record::{self, Record};
use crate::world::{Terminal, World};

/// Shows the machine.
pub fn run(general: &General, survey: &Survey) -> anyhow::Result<Exit> {
    let world = World::of(general)?;
    let recorder = Recorder::new(world.files());
    let machine = world.survey_through(&recorder);
    if let Some(path) = &survey.save {
        // So that a plan can be made on the capture too.
        for recipe in rubus_core::recipe::ALL {
            rubus_probe::sight::look(
                &recorder,
                &(recipe.look_at)(&machine, &rubus_core::recipe::Wishes::new()).paths,
            );
        }
        // And so that zswap can be explained on it.
        rubus_probe::zswap::zswap(&recorder, &machine);
        save(&recorder, path, survey, &machine.read_at)?;
    }
    if general.records {
        record::send(&Record::Machine(Box::new(machine)));
    } else if survey.json.wanted {
        places::say(&(serde_json::to_string_pretty(&machine)? + "\n"))?;
    } else if !(general.quiet && survey.save.is_some()) {
        let style = Terminal::of(general).style();
        places::say(&rubus_show::survey::render(&machine, style))?;
        if let Ok(why) = recorder.text(Path::new(FROM_CARD)) {
            let why = why.trim();
            places::say(&format!(
                "\nThis start is FROM THE CARD, and not from the network root: {why}\n"
            ))?;
        }
    }
    Ok(Exit::Fine)
}

fn save(recorder: &Recorder, path: &Path, survey: &Survey, read_at: &str) -> anyhow::Result<()> {
    let identities = if survey.with_serials {
        Identities::Keep
    } else {
        Identities::Replace
    };
    let label = format!(
        "recorded by rubus {} on {read_at}",
        env!("CARGO_PKG_VERSION")
    );
    let saved = capture::save(recorder, path, &label, read_at, identities)?;
    let kept = match identities {
        Identities::Keep => "serial numbers, addresses and host names kept".to_string(),
        Identities::Replace => {
            format!(
                "{} serial numbers, addresses and names replaced",
                saved.replaced
            )
        }
    };
    eprintln!(
        "saved {} files to {} ({kept})",
        saved.files,
        saved.path.display()
    );
    Ok(())
}
