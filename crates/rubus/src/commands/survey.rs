//! `rubus survey`: reads the machine, shows it, and saves a capture on request.

use std::path::Path;

use anyhow::Context;
use rubus_boot_check::start::{self, Start};
use rubus_host::capture::{self, Identities};
use rubus_host::files::document;
use rubus_host::simulated::recorder::Recorder;
use rubus_machine::text::Extent;
use rubus_machine::{kernel_log, rules};
use rubus_recipes::fallen_back;
use rubus_runs::record::{self, Record};
use rubus_runs::shown::shown;
use rubus_vocabulary::fact::Fact;
use rubus_vocabulary::finding::Finding;
use rubus_vocabulary::kernel_log::KernelTrouble;
use rubus_vocabulary::machine::Machine;
use rubus_vocabulary::rule_finding::RuleFinding;
use rubus_watch::health::{self, DiskHealth, Told};
use rubus_watch::probe::{self, health as health_probe};
use rubus_watch::wear::{self, Wear};

use crate::args::{General, Survey};
use crate::documents::{RuleDocument, SurveyDocument};
use crate::exit::Exit;
use rubus_command::places;
use rubus_command::{Terminal, World};

/// More than any kernel keeps; a file of years may be longer.
const MAX_LOG_BYTES: u64 = 64 << 20;

impl Survey {
    /// How much of a machine is shown.
    pub fn extent(&self) -> Extent {
        Extent { everything: self.verbose, serials: self.serials }
    }
}

/// Shows the machine.
pub fn run(general: &General, survey: &Survey) -> anyhow::Result<Exit> {
    if survey.rules {
        return list_rules(general, survey);
    }
    let world = World::of(general)?;
    let recorder = Recorder::new(world.files());
    let mut machine = world.survey_through(&recorder);
    if let Some(log) = &survey.kernel_log {
        machine.kernel_log = given_log(log)?;
    }
    let mut start = None;
    if let Some(path) = &survey.save {
        // The logs of earlier boots are judged on a capture, too.
        health_probe::told(&recorder, Vec::new());
        // So that a plan can be made on the capture too.
        rubus_recipes::sight::look_for_plans(&recorder, &machine);
        // And so that its start can be followed, and zswap explained, on it.
        start = Some(start::of_machine(&recorder, &machine));
        rubus_memory::zswap_probe::zswap(&recorder, &machine);
        // And what could be tried with `rubus tune`.
        rubus_tune::candidates::look(&recorder, &machine);
        save(&recorder, path, survey, &machine.read_at)?;
    }
    if general.records {
        record::send(&Record::Machine(Box::new(machine)));
    } else if survey.json.wanted {
        let wear = probe::wear::read(world.files(), &machine);
        let beside = beside(&world, &machine, start, &wear);
        let health = health_of(&world, &machine, wear);
        let document = document_with(&machine, &beside, health);
        places::say(&(serde_json::to_string_pretty(&document)? + "\n"))?;
    } else if !(general.quiet && survey.save.is_some()) {
        let style = Terminal::of(general).style();
        let wear = probe::wear::read(world.files(), &machine);
        let beside = beside(&world, &machine, start, &wear);
        let health = health_of(&world, &machine, wear);
        let seen = seen(&machine, survey.serials)?;
        let health = health::text::section(&health, style);
        let extent = survey.extent();
        let text = rubus_machine::text::render_with(&seen, &beside, &health, extent, style);
        places::say(&text)?;
        for words in fallen_back::of_machine(&recorder) {
            places::say(&format!("\n{words}\n"))?;
        }
    }
    Ok(Exit::Fine)
}

/// The machine as the text has it: what stands on a terminal is pasted into forums. What the reader named stays, and so do the
/// firmware's version and the bridges and drivers between a disk and the processor.
pub(super) fn seen(machine: &Machine, with_serials: bool) -> anyhow::Result<Machine> {
    let mut seen = shown(machine, with_serials)?;
    seen.origin = machine.origin.clone();
    seen.board.firmware = machine.board.firmware.clone();
    for (seen, device) in seen.block_devices.iter_mut().zip(&machine.block_devices) {
        seen.path.clone_from(&device.path);
    }
    Ok(seen)
}

/// What a log in a file tells of trouble.
fn given_log(path: &Path) -> anyhow::Result<Fact<Vec<KernelTrouble>>> {
    let shown = path.display();
    let bytes = document::bytes(path, MAX_LOG_BYTES).with_context(|| {
        format!("cannot read the kernel's log {shown} (tail -n 100000 writes a part of one)")
    })?;
    let log = kernel_log::text(&bytes);
    anyhow::ensure!(
        kernel_log::has_messages(&log),
        "{shown} has no message of a kernel; dmesg, journalctl -k and /var/log/kern.log have"
    );
    Ok(Fact::known(kernel_log::troubles(&log), shown.to_string()))
}

/// The machine as one JSON object, with what the rules find on it beside its fields.
pub fn document(machine: &Machine) -> SurveyDocument<'_> {
    document_with(machine, &[], health::of_machine(machine, &Told::default()))
}

fn health_of(world: &World, machine: &Machine, wear: Vec<Wear>) -> Vec<DiskHealth> {
    health::of_machine(machine, &health_probe::told(world.files(), wear))
}

/// [`document()`] with findings from elsewhere.
fn document_with<'a>(
    machine: &'a Machine,
    beside: &[RuleFinding],
    health: Vec<DiskHealth>,
) -> SurveyDocument<'a> {
    let found = rules::with(rules::of_machine(machine), beside);
    let next = rules::next(&found, machine);
    let findings = found.into_iter().map(Finding::Rule).collect();
    SurveyDocument { machine, findings, next, health }
}

/// What needs more than the facts: what the disks themselves say of failing and of being worn out, and what the files of the
/// boot partition say of the next start, where that was not followed yet. The disks' words are not recorded: smartctl's answer has
/// their serial numbers.
pub(super) fn beside(
    world: &World,
    machine: &Machine,
    start: Option<Start>,
    wear: &[Wear],
) -> Vec<RuleFinding> {
    let mut found = wear::findings(wear);
    let start = start.unwrap_or_else(|| start::of_machine(world.files(), machine));
    found.extend(start::findings::findings(&start));
    found
}

fn list_rules(general: &General, survey: &Survey) -> anyhow::Result<Exit> {
    if survey.json.wanted {
        let each = rules::all().map(|rule| RuleDocument {
            rule: rule.name,
            weight: rule.weight,
            when: rule.when,
            needs_figures: rule.needs_figures(),
            source: rule.source,
        });
        let list: Vec<RuleDocument> = each.collect();
        places::say(&(serde_json::to_string_pretty(&list)? + "\n"))?;
    } else {
        let style = Terminal::of(general).style();
        places::say(&rubus_machine::rules_text::list(style.columns, survey.verbose, style))?;
    }
    Ok(Exit::Fine)
}

fn save(recorder: &Recorder, path: &Path, survey: &Survey, read_at: &str) -> anyhow::Result<()> {
    let identities = if survey.with_serials { Identities::Keep } else { Identities::Replace };
    let label = format!("recorded by rubus {} on {read_at}", env!("CARGO_PKG_VERSION"));
    let saved = capture::save(recorder, path, &label, read_at, identities)?;
    let kept = match identities {
        Identities::Keep => "serial numbers, addresses and host names kept".to_string(),
        Identities::Replace => {
            format!("{} serial numbers, addresses and names replaced", saved.replaced)
        }
    };
    rubus_command::message!("saved {} files to {} ({kept})", saved.files, saved.path.display());
    Ok(())
}
