//! `rubus explain`: a kind of finding by its code.

use anyhow::Context;
use rubus_machine::{rules, rules_text, start};
use rubus_watch::probe;
use rubus_watch::wear;

use crate::args::{Explain, General};
use crate::documents::ExplainDocument;
use crate::exit::Exit;
use rubus_command::places::say;
use rubus_command::{Terminal, World};

/// Explains, and looks whether it is found here.
pub fn run(general: &General, arguments: &Explain) -> anyhow::Result<Exit> {
    let mut kinds = rules::explained();
    let kind = kinds.find(|kind| kind.code == arguments.code).context("no such finding")?;
    let world = World::of(general)?;
    let machine = world.survey();
    let mut beside = wear::findings(&probe::wear::read(world.files(), &machine));
    let start = start::of_machine(world.files(), &machine);
    beside.extend(start::findings::findings(&start));
    let mut here = rules::with(rules::of_machine(&machine), &beside);
    here.retain(|finding| finding.rule == kind.code);
    if arguments.json.wanted {
        let document = ExplainDocument {
            code: kind.code,
            weight: kind.weight,
            when: kind.when,
            needs_figures: kind.needs_figures,
            source: kind.source,
            disproof: kind.disproof,
            here,
        };
        say(&(serde_json::to_string_pretty(&document)? + "\n"))?;
    } else {
        let style = Terminal::of(general).style();
        let lines = rules_text::explanation(&kind, &here, style.columns, style);
        say(&(lines.join("\n") + "\n"))?;
    }
    Ok(Exit::Fine)
}
