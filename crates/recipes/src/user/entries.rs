//! The steps, checks and promises that a user's recipe may have, as they are written.

use super::table::{Keys, Reading, did_you_mean};

/// Something in a list, with its line.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Entry<T> {
    pub(super) line: usize,
    /// Why it is done, or what has to hold; empty where it was left out.
    pub(super) words: String,
    /// Of a step its name; of a check its remedy.
    pub(super) extra: Option<String>,
    pub(super) what: T,
}

/// A check of the recipe, before the plan is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Need {
    /// A program in the standard directories.
    Program { program: String, package: Option<String> },
    /// Something at a path.
    File { path: String },
    /// A setting of the kernel that can be read.
    Knob { path: String },
    /// A module of the running kernel, loaded, loadable or built in.
    Module { module: String },
}

/// A step of the recipe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Work {
    WriteFile { path: String, text: String, mode: Option<String> },
    RemoveFile { path: String },
    SetLine { path: String, key: String, value: String, separator: String },
    MakeDirectory { path: String },
    SetLink { path: String, to: String },
    Mask { unit: String },
    SetKnob { path: String, value: String },
    MakeSwapFile { path: String, size: String },
    SwapOn { what: String, priority: Option<String> },
    SwapOff { what: String },
    Mount { what: String, at: String, kind: String, options: String, at_boot: bool },
    Format(Filesystem),
}

/// A filesystem that a recipe makes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Filesystem {
    pub(super) device: String,
    pub(super) kind: String,
    pub(super) label: Option<String>,
    pub(super) at: Option<String>,
    /// Whether a whole disk gets a partition table with one partition.
    pub(super) has_partition: bool,
}

/// A promise of the recipe, which `rubus verify` checks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Pledge {
    Knob { path: String, value: String },
    SwapOn { what: String, priority: Option<String> },
    NoSwapOnDisk { disk: String },
}

const NEEDS: [&str; 4] = ["program", "file", "knob", "module"];
/// Kinds of steps, each with what reads its keys.
const WORKS: [(&str, ReadWork); 12] = [
    ("write_file", write_file),
    ("remove_file", remove_file),
    ("set_line", set_line),
    ("make_directory", make_directory),
    ("set_link", set_link),
    ("mask", mask),
    ("set_knob", set_knob),
    ("make_swap_file", make_swap_file),
    ("swap_on", swap_on),
    ("swap_off", swap_off),
    ("mount", mount),
    ("format", format),
];

/// Their names, as a recipe has them.
#[cfg(test)]
pub(super) fn kinds_of_work() -> [&'static str; WORKS.len()] {
    WORKS.map(|(name, _)| name)
}

type ReadWork = fn(&mut Keys<'_, '_>, &mut Reading<'_>) -> Option<Work>;

const PLEDGES: [&str; 3] = ["knob", "swap_on", "no_swap_on_disk"];

/// Reads a check.
pub(super) fn need(mut keys: Keys<'_, '_>, reading: &mut Reading<'_>) -> Option<Entry<Need>> {
    let kind = keys.must("kind", reading)?;
    let words = keys.text("what", reading).unwrap_or_default();
    let remedy = keys.text("remedy", reading);
    let mut must = |name| keys.must(name, reading);
    let what = match kind.as_str() {
        "program" => must("program")
            .map(|program| Need::Program { program, package: keys.text("package", reading) }),
        "file" => must("path").map(|path| Need::File { path }),
        "knob" => must("path").map(|path| Need::Knob { path }),
        "module" => must("module").map(|module| Need::Module { module }),
        _ => return unknown("kind of check", &kind, &NEEDS, keys.line, reading),
    };
    done(keys, words, remedy, what, reading)
}

/// Reads a step.
pub(super) fn work(mut keys: Keys<'_, '_>, reading: &mut Reading<'_>) -> Option<Entry<Work>> {
    let kind = keys.must("do", reading)?;
    let words = keys.must("why", reading).unwrap_or_default();
    let id = keys.text("id", reading);
    let Some((_, read)) = WORKS.iter().find(|(name, _)| *name == kind) else {
        return unknown("step", &kind, &WORKS.map(|(name, _)| name), keys.line, reading);
    };
    let what = read(&mut keys, reading);
    done(keys, words, id, what, reading)
}

// Each asks for all of its keys before the first one that is missing ends it, so that each fault is told.

fn write_file(keys: &mut Keys<'_, '_>, reading: &mut Reading<'_>) -> Option<Work> {
    let (path, text) = (keys.must("path", reading), keys.must("text", reading));
    let mode = keys.text("mode", reading);
    Some(Work::WriteFile { path: path?, text: text?, mode })
}

fn remove_file(keys: &mut Keys<'_, '_>, reading: &mut Reading<'_>) -> Option<Work> {
    Some(Work::RemoveFile { path: keys.must("path", reading)? })
}

fn set_line(keys: &mut Keys<'_, '_>, reading: &mut Reading<'_>) -> Option<Work> {
    let path = keys.must("path", reading);
    let separator = keys.text("separator", reading).unwrap_or("=".into());
    let (key, value) = (keys.must("key", reading), keys.must("value", reading));
    Some(Work::SetLine { path: path?, key: key?, value: value?, separator })
}

fn make_directory(keys: &mut Keys<'_, '_>, reading: &mut Reading<'_>) -> Option<Work> {
    Some(Work::MakeDirectory { path: keys.must("path", reading)? })
}

fn set_link(keys: &mut Keys<'_, '_>, reading: &mut Reading<'_>) -> Option<Work> {
    let (path, to) = (keys.must("path", reading), keys.must("to", reading));
    Some(Work::SetLink { path: path?, to: to? })
}

fn mask(keys: &mut Keys<'_, '_>, reading: &mut Reading<'_>) -> Option<Work> {
    Some(Work::Mask { unit: keys.must("unit", reading)? })
}

fn set_knob(keys: &mut Keys<'_, '_>, reading: &mut Reading<'_>) -> Option<Work> {
    let (path, value) = (keys.must("path", reading), keys.must("value", reading));
    Some(Work::SetKnob { path: path?, value: value? })
}

fn make_swap_file(keys: &mut Keys<'_, '_>, reading: &mut Reading<'_>) -> Option<Work> {
    let (path, size) = (keys.must("path", reading), keys.must("size", reading));
    Some(Work::MakeSwapFile { path: path?, size: size? })
}

fn swap_on(keys: &mut Keys<'_, '_>, reading: &mut Reading<'_>) -> Option<Work> {
    let priority = keys.text("priority", reading);
    Some(Work::SwapOn { what: keys.must("what", reading)?, priority })
}

fn swap_off(keys: &mut Keys<'_, '_>, reading: &mut Reading<'_>) -> Option<Work> {
    Some(Work::SwapOff { what: keys.must("what", reading)? })
}

fn mount(keys: &mut Keys<'_, '_>, reading: &mut Reading<'_>) -> Option<Work> {
    let options = keys.text("options", reading).unwrap_or("defaults".into());
    let at_boot = keys.flag("at_boot", reading);
    let (what, at) = (keys.must("what", reading), keys.must("at", reading));
    let kind = keys.must("type", reading);
    Some(Work::Mount { what: what?, at: at?, kind: kind?, options, at_boot })
}

fn format(keys: &mut Keys<'_, '_>, reading: &mut Reading<'_>) -> Option<Work> {
    let bare = keys.flag("bare", reading);
    let device = keys.must("device", reading);
    let kind = keys.text("filesystem", reading).unwrap_or("ext4".into());
    let (label, at) = (keys.text("label", reading), keys.text("at", reading));
    Some(Work::Format(Filesystem { device: device?, kind, label, at, has_partition: !bare }))
}

/// Reads a promise.
pub(super) fn pledge(
    mut keys: Keys<'_, '_>,
    reading: &mut Reading<'_>,
) -> Option<(Entry<Pledge>, bool)> {
    let kind = keys.must("kind", reading)?;
    let words = keys.must("what", reading).unwrap_or_default();
    let needs_boot = keys.flag("needs_boot", reading);
    let what = match kind.as_str() {
        "knob" => {
            let (path, value) = (keys.must("path", reading), keys.must("value", reading));
            path.zip(value).map(|(path, value)| Pledge::Knob { path, value })
        }
        "swap_on" => {
            let priority = keys.text("priority", reading);
            let swap = keys.must("swap", reading);
            swap.map(|what| Pledge::SwapOn { what, priority })
        }
        "no_swap_on_disk" => {
            let disk = keys.must("disk", reading);
            disk.map(|disk| Pledge::NoSwapOnDisk { disk })
        }
        _ => return unknown("kind of promise", &kind, &PLEDGES, keys.line, reading),
    };
    done(keys, words, None, what, reading).map(|entry| (entry, needs_boot))
}

fn unknown<T>(
    what: &str,
    name: &str,
    known: &[&str],
    line: usize,
    reading: &mut Reading<'_>,
) -> Option<T> {
    let hint = did_you_mean(name, known);
    reading.fault(line, format!("there is no {what} '{name}'{hint}"));
    None
}

fn done<T>(
    keys: Keys<'_, '_>,
    words: String,
    extra: Option<String>,
    what: Option<T>,
    reading: &mut Reading<'_>,
) -> Option<Entry<T>> {
    let line = keys.line;
    keys.finish(reading);
    what.map(|what| Entry { line, words, extra, what })
}

/// All texts of a recipe's entries in which options may stand, with their lines.
pub(super) trait Texts {
    fn texts(&self) -> Vec<&str>;
}

impl Texts for Need {
    fn texts(&self) -> Vec<&str> {
        match self {
            Need::Program { program, package } => with(&[program], package),
            Need::File { path } | Need::Knob { path } => vec![path],
            Need::Module { module } => vec![module],
        }
    }
}

impl Texts for Work {
    fn texts(&self) -> Vec<&str> {
        match self {
            Work::WriteFile { path, text, mode } => with(&[path, text], mode),
            Work::SetLine { path, key, value, .. } => vec![path, key, value],
            Work::RemoveFile { path } | Work::MakeDirectory { path } => vec![path],
            Work::SetLink { path, to } => vec![path, to],
            Work::Mask { unit } => vec![unit],
            Work::SetKnob { path, value } => vec![path, value],
            Work::MakeSwapFile { path, size } => vec![path, size],
            Work::SwapOn { what, priority } => with(&[what], priority),
            Work::SwapOff { what } => vec![what],
            Work::Mount { what, at, kind, options, .. } => vec![what, at, kind, options],
            Work::Format(Filesystem { device, kind, label, at, has_partition: _ }) => {
                let more = [label, at].into_iter().flatten().map(String::as_str);
                [device.as_str(), kind].into_iter().chain(more).collect()
            }
        }
    }
}

impl Texts for Pledge {
    fn texts(&self) -> Vec<&str> {
        match self {
            Pledge::Knob { path, value } => vec![path, value],
            Pledge::SwapOn { what, priority } => with(&[what], priority),
            Pledge::NoSwapOnDisk { disk } => vec![disk],
        }
    }
}

fn with<'a>(texts: &[&'a String], more: &'a Option<String>) -> Vec<&'a str> {
    let texts = texts.iter().map(|text| text.as_str());
    texts.chain(more.as_deref()).collect()
}
