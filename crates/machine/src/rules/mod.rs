//! What can be said of a machine, and of what was measured on it: rules that read facts and figures.
//!
//! A rule is data: a name, when it speaks, the source of what it claims, and a pure function from the machine, or from a
//! run, to what it found. What a fact does not say is not guessed: a rule whose facts are unknown finds nothing. Each finding has its
//! evidence and where that was read, what follows from it in numbers, and what to do. They stand beside the other findings of a
//! run as [`Finding::Rule`](rubus_vocabulary::finding::Finding::Rule).

mod boot;
mod cards;
mod disks;
mod explained;
mod health;
mod kernel;
mod measured;
mod mounts;
pub mod nas;
mod network;
mod power;
mod swap;
mod usb;

pub use explained::{Explained, beside, explained};
use rubus_vocabulary::machine::{BlockDevice, BlockKind, Hop, Machine, Origin};
use rubus_vocabulary::next_step::NextStep;
use rubus_vocabulary::result::Run;
pub use rubus_vocabulary::rule_finding::{RuleFinding, Weight};

pub struct Rule {
    /// Its name, for people and scripts: lower case with hyphens.
    pub name: &'static str,
    /// How much it matters.
    pub weight: Weight,
    /// When it speaks, in words.
    pub when: &'static str,
    /// Where its claims come from.
    pub source: &'static str,
    /// A look or a measurement that would come out otherwise if it were wrong.
    pub disproof: &'static str,
    look: Look,
}

/// What a rule reads.
#[derive(Clone, Copy)]
enum Look {
    /// The facts of a survey.
    Facts(fn(&Machine) -> Vec<Seen>),
    /// The figures of a run.
    Figures(fn(&Run) -> Vec<Seen>),
}

impl Rule {
    /// Whether it needs measured figures; else a survey is enough.
    pub fn needs_figures(&self) -> bool {
        matches!(self.look, Look::Figures(_))
    }

    fn of_machine(&self, machine: &Machine) -> Vec<RuleFinding> {
        let mut found = match self.look {
            Look::Facts(look) => each(self, look(machine)),
            Look::Figures(_) => Vec::new(),
        };
        if machine.system.container.is_some() {
            found.iter_mut().for_each(leave_to_the_host);
        }
        found
    }

    fn found(&self, seen: Seen) -> RuleFinding {
        RuleFinding {
            rule: self.name.into(),
            weight: self.weight,
            about: seen.about,
            evidence: seen.evidence,
            read_from: seen.read_from,
            consequence: seen.consequence,
            fix: seen.fix,
            command: seen.command,
            source: self.source.into(),
        }
    }
}

/// In a container the kernel, the disks and the start are the host's: what is to be done there is not planned here.
fn leave_to_the_host(finding: &mut RuleFinding) {
    finding.fix = format!("{} This is a container: do it on its host.", finding.fix);
    let measures = |command: &String| {
        ["rubus checkup", "rubus advise"].iter().any(|start| command.starts_with(start))
    };
    finding.command = finding.command.take().filter(measures);
}

/// What a rule's function gives.
struct Seen {
    about: String,
    evidence: String,
    read_from: String,
    consequence: String,
    fix: String,
    command: Option<String>,
}

/// All rules, by subject.
pub fn all() -> impl Iterator<Item = &'static Rule> {
    [
        health::RULES,
        power::RULES,
        usb::RULES,
        boot::RULES,
        cards::RULES,
        disks::RULES,
        swap::RULES,
        mounts::RULES,
        network::RULES,
        nas::RULES,
        kernel::RULES,
        measured::RULES,
    ]
    .into_iter()
    .flatten()
}

/// What the rules find on a machine: dangers first, then what costs, then hints; else in the order of the rules.
pub fn of_machine(machine: &Machine) -> Vec<RuleFinding> {
    let mut found: Vec<RuleFinding> = all().flat_map(|rule| rule.of_machine(machine)).collect();
    found.sort_by_key(|finding| finding.weight);
    found
}

/// What the rule of this name finds on a machine; nothing where no rule has it.
pub fn of_rule(name: &str, machine: &Machine) -> Vec<RuleFinding> {
    all().filter(|rule| rule.name == name).flat_map(|rule| rule.of_machine(machine)).collect()
}

/// What rules found, with what was found elsewhere: sorted by weight.
#[must_use]
pub fn with(mut found: Vec<RuleFinding>, beside: &[RuleFinding]) -> Vec<RuleFinding> {
    found.extend(beside.iter().cloned());
    found.sort_by_key(|finding| finding.weight);
    found
}

/// What a survey's reader does next, by its weightiest finding.
#[must_use]
pub fn next(found: &[RuleFinding], machine: &Machine) -> NextStep {
    let step = step(found);
    match &machine.origin {
        Origin::Capture { path, .. } => step.of_capture(path),
        Origin::Live => step,
    }
}

fn step(found: &[RuleFinding]) -> NextStep {
    let Some(worst) = found.iter().min_by_key(|finding| finding.weight) else {
        return NextStep::by_hand("nothing: no known problem was found");
    };
    match worst.weight {
        Weight::Danger => NextStep::by_hand(&against(worst)),
        Weight::Cost => {
            let has_plans = found.iter().any(|finding| {
                finding.command.as_ref().is_some_and(|command| command.starts_with("rubus plan"))
            });
            let words = if has_plans {
                "what another disk would give; each finding below has its own fix, and `rubus plan` changes nothing"
            } else {
                "what another disk would give; each finding below has its own fix"
            };
            NextStep::command(&["rubus", "advise"], words)
        }
        Weight::Hint => NextStep::by_hand("nothing is urgent: these are only hints"),
    }
}

/// What is done first against a danger, and what then.
fn against(danger: &RuleFinding) -> String {
    let (first, _) = danger.fix.split_once(". ").unwrap_or((&danger.fix, ""));
    let first = first.trim_end_matches('.');
    let mut letters = first.chars();
    // A word in capitals, as a name has them, stays.
    let is_word = first.chars().nth(1).is_some_and(char::is_lowercase);
    let first = match letters.next() {
        Some(letter) if is_word => letter.to_lowercase().chain(letters).collect(),
        _ => first.to_string(),
    };
    format!(
        "first, for {}: {first}; then `rubus advise`, which says what another disk would give",
        danger.about
    )
}

/// What the rules find in a run and on its machine: sorted by weight; of one weight what was measured and what is about its
/// target come first.
pub fn of_run(run: &Run) -> Vec<RuleFinding> {
    let own = target_names(run);
    let figures = all().flat_map(|rule| match rule.look {
        Look::Figures(look) => each(rule, look(run)),
        Look::Facts(_) => Vec::new(),
    });
    let mut found: Vec<RuleFinding> = figures.collect();
    let measured = found.len();
    found.extend(of_machine(&run.machine));
    for finding in &mut found {
        // Who has just measured is not told to do that.
        if finding.command.as_deref() == Some("rubus checkup") {
            finding.command = None;
        }
    }
    let mut ranked: Vec<(usize, RuleFinding)> = found.into_iter().enumerate().collect();
    ranked.sort_by_key(|(place, finding)| {
        let is_near = *place < measured || own.contains(&finding.about);
        (finding.weight, !is_near)
    });
    ranked.into_iter().map(|(_, finding)| finding).collect()
}

fn each(rule: &Rule, seen: Vec<Seen>) -> Vec<RuleFinding> {
    seen.into_iter().map(|seen| rule.found(seen)).collect()
}

/// What a run was measured on, by all names that a finding may give it.
fn target_names(run: &Run) -> Vec<String> {
    let machine = &run.machine;
    let mut names = Vec::new();
    if let Some(device) = &run.target.device {
        names.push(device.clone());
        let below = machine.disks_below(device).into_iter();
        names.extend(below.map(|disk| disk.name.clone()));
        let mounts = machine.mounts.iter();
        let on_it = mounts.filter(|mount| mount.device.as_ref() == Some(device));
        names.extend(on_it.map(|mount| mount.point.clone()));
    }
    let buses = machine.shared_buses.iter();
    let shared = buses.filter(|bus| bus.members.iter().any(|member| names.contains(member)));
    let shared: Vec<String> = shared.map(|bus| bus.name.clone()).collect();
    names.extend(shared);
    names
}

/// A setting's value by its name, with where it was read.
fn setting<'a>(
    settings: &'a [rubus_vocabulary::machine::Setting],
    name: &str,
) -> Option<(&'a str, &'a str)> {
    let setting = settings.iter().find(|setting| setting.name == name)?;
    Some((setting.value.text()?, setting.value.source()))
}

/// Disks, cards and sticks: what is made of matter.
fn disks(machine: &Machine) -> impl Iterator<Item = &BlockDevice> {
    let is_one = |device: &&BlockDevice| device.kind == BlockKind::Disk;
    machine.block_devices.iter().filter(is_one)
}

fn is_card(device: &BlockDevice) -> bool {
    let is_sd = |mmc: &rubus_vocabulary::machine::Mmc| mmc.kind.text() == Some("SD");
    device.mmc.as_ref().is_some_and(is_sd)
}

/// The mount whose root is the machine's.
fn root(machine: &Machine) -> Option<&rubus_vocabulary::machine::Mount> {
    machine.mounts.iter().find(|mount| mount.point == "/")
}

/// What the way to a device carries at most, in bytes per second, and which hop that is.
fn narrowest_hop(device: &BlockDevice) -> Option<(&Hop, f64)> {
    let carried = |hop: &'_ Hop| hop.usable_bytes_per_second.get();
    let hops = device.path.iter().filter_map(|hop| Some((hop, carried(hop)?)));
    hops.min_by(|a, b| a.1.total_cmp(&b.1))
}

#[cfg(test)]
mod tests;
