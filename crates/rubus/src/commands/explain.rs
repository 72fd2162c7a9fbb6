//! `rubus explain`: a kind of finding by its code.

use anyhow::Context;
use rubus_draw::text::listed;
use rubus_machine::{rules, rules_text};
use rubus_vocabulary::machine::Machine;
use rubus_vocabulary::spelling::no_such;
use rubus_watch::probe::wear;

use super::survey::{beside, seen};
use crate::args::{Explain, General};
use crate::documents::ExplainDocument;
use crate::exit::Exit;
use rubus_command::places::say;
use rubus_command::{Terminal, World};

/// Explains, and looks whether it is found here.
pub fn run(general: &General, arguments: &Explain) -> anyhow::Result<Exit> {
    let mut kinds = rules::explained();
    let kind = kinds.find(|kind| kind.code == arguments.code);
    let kind = kind.with_context(|| no_such_finding(&arguments.code))?;
    let world = World::of(general)?;
    let machine = world.survey();
    let wear = wear::read(world.files(), &machine);
    let mut beside = beside(&world, &machine, None, &wear);
    beside.retain(|finding| finding.rule == kind.code);
    let found_on = |machine: &Machine| rules::with(rules::of_rule(kind.code, machine), &beside);
    if arguments.json.wanted {
        let document = ExplainDocument {
            code: kind.code,
            weight: kind.weight,
            when: kind.when,
            needs_figures: kind.needs_figures,
            source: kind.source,
            disproof: kind.disproof,
            here: found_on(&machine),
        };
        say(&(serde_json::to_string_pretty(&document)? + "\n"))?;
    } else {
        let here = found_on(&seen(&machine, false)?);
        let style = Terminal::of(general).style();
        let lines = rules_text::explanation(&kind, &here, style.columns, style);
        say(&(lines.join("\n") + "\n"))?;
    }
    Ok(Exit::Fine)
}

/// A code that does not exist, with those that it may have been meant for.
fn no_such_finding(typed: &str) -> String {
    let codes: Vec<&str> = rules::explained().map(|kind| kind.code).collect();
    let has_it = |code: &&&str| !typed.is_empty() && code.contains(typed);
    let alike: Vec<&str> = codes.iter().filter(has_it).copied().collect();
    let words = no_such("finding", typed, &codes);
    match &alike[..] {
        [] => format!("{words}\nThe codes: rubus survey --rules"),
        alike => format!("{words}\nCodes with that in them: {}", listed(alike)),
    }
}
