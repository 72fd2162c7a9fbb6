//! What can be said of a machine without measuring: rules that read its facts.
//!
//! A rule is data: a name, the source of what it claims, and a pure function from the machine to what it found. What a
//! fact does not say is not guessed: a rule whose facts are unknown finds nothing. Each finding has its evidence and where that was
//! read, what follows from it in numbers, and what to do.

mod cards;
mod disks;
mod kernel;
mod mounts;
mod network;
mod power;
mod swap;
mod usb;

use serde::{Deserialize, Serialize};

use crate::machine::{BlockDevice, BlockKind, Hop, HopKind, Machine};

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Weight {
    /// Data, or that the machine starts, is at risk.
    Danger,
    /// It makes the machine slower.
    Cost,
    /// Good to know.
    Hint,
}

/// What a rule found on a machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// The rule's name.
    pub rule: String,
    /// How much it matters.
    pub weight: Weight,
    /// The device, filesystem, link or setting that it is about.
    pub about: String,
    /// What was seen.
    pub evidence: String,
    /// Where that was read.
    pub read_from: String,
    /// What follows from it, in numbers where there are any.
    pub consequence: String,
    /// What to do.
    pub fix: String,
    /// The command that does it, where this program has one.
    pub command: Option<String>,
    /// Where the rule's claims come from.
    pub source: String,
}

/// One rule.
pub struct Rule {
    /// Its name, for people and scripts: lower case with hyphens.
    pub name: &'static str,
    /// How much it matters.
    pub weight: Weight,
    /// Where its claims come from.
    pub source: &'static str,
    look: fn(&Machine) -> Vec<Seen>,
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
        power::RULES,
        usb::RULES,
        cards::RULES,
        disks::RULES,
        swap::RULES,
        mounts::RULES,
        network::RULES,
        kernel::RULES,
    ]
    .into_iter()
    .flatten()
}

/// What the rules find on a machine: dangers first, then what costs, then hints; else in the order of the rules.
pub fn findings(machine: &Machine) -> Vec<Finding> {
    let mut found: Vec<Finding> = all()
        .flat_map(|rule| {
            let seen = (rule.look)(machine).into_iter();
            seen.map(|seen| Finding {
                rule: rule.name.into(),
                weight: rule.weight,
                about: seen.about,
                evidence: seen.evidence,
                read_from: seen.read_from,
                consequence: seen.consequence,
                fix: seen.fix,
                command: seen.command,
                source: rule.source.into(),
            })
        })
        .collect();
    found.sort_by_key(|finding| finding.weight);
    found
}

/// A setting's value by its name, with where it was read.
fn setting<'a>(settings: &'a [crate::machine::Setting], name: &str) -> Option<(&'a str, &'a str)> {
    let setting = settings.iter().find(|setting| setting.name == name)?;
    Some((setting.value.text()?, setting.value.source()))
}

/// Disks, cards and sticks: what is made of matter.
fn disks(machine: &Machine) -> impl Iterator<Item = &BlockDevice> {
    let is_one = |device: &&BlockDevice| device.kind == BlockKind::Disk;
    machine.block_devices.iter().filter(is_one)
}

fn is_card(device: &BlockDevice) -> bool {
    let is_sd = |mmc: &crate::machine::Mmc| mmc.kind.text() == Some("SD");
    device.mmc.as_ref().is_some_and(is_sd)
}

/// The last USB hop of a device: the stick or the bridge.
fn usb_device(device: &BlockDevice) -> Option<&Hop> {
    device
        .path
        .iter()
        .find(|hop| hop.kind == HopKind::UsbDevice)
}

/// The mount whose root is the machine's.
fn root(machine: &Machine) -> Option<&crate::machine::Mount> {
    machine.mounts.iter().find(|mount| mount.point == "/")
}

/// What the way to a device carries at most, in bytes per second, and which hop that is.
fn narrowest_hop(device: &BlockDevice) -> Option<(&Hop, f64)> {
    let carried = |hop: &'_ Hop| hop.usable_bytes_per_second.get();
    let hops = device
        .path
        .iter()
        .filter_map(|hop| Some((hop, carried(hop)?)));
    hops.min_by(|a, b| a.1.total_cmp(&b.1))
}

#[cfg(test)]
mod tests;
