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
    WriteFile {
        path: String,
        text: String,
        mode: Option<String>,
    },
    RemoveFile {
        path: String,
    },
    SetLine {
        path: String,
        key: String,
        value: String,
        separator: String,
    },
    MakeDirectory {
        path: String,
    },
    SetLink {
        path: String,
        to: String,
    },
    Mask {
        unit: String,
    },
    SetKnob {
        path: String,
        value: String,
    },
    MakeSwapFile {
        path: String,
        size: String,
    },
    SwapOn {
        what: String,
        priority: Option<String>,
    },
    SwapOff {
        what: String,
    },
    Mount {
        what: String,
        at: String,
        kind: String,
        options: String,
        at_boot: bool,
    },
    Format {
        device: String,
        filesystem: String,
        label: Option<String>,
        at: Option<String>,
        /// Whether a whole disk gets a partition table with one partition.
        partition: bool,
    },
}

/// A promise of the recipe, which `rubus verify` checks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Pledge {
    Knob { path: String, value: String },
    SwapOn { what: String, priority: Option<String> },
    NoSwapOnDisk { disk: String },
}

const NEEDS: [&str; 4] = ["program", "file", "knob", "module"];
const WORKS: [&str; 12] = [
    "write_file",
    "remove_file",
    "set_line",
    "make_directory",
    "set_link",
    "mask",
    "set_knob",
    "make_swap_file",
    "swap_on",
    "swap_off",
    "mount",
    "format",
];
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
    let what = match kind.as_str() {
        "write_file" | "remove_file" | "set_line" | "make_directory" | "set_link" | "mask"
        | "set_knob" => file_work(&kind, &mut keys, reading),
        "make_swap_file" | "swap_on" | "swap_off" | "mount" => {
            other_work(&kind, &mut keys, reading)
        }
        "format" => format(&mut keys, reading),
        _ => return unknown("step", &kind, &WORKS, keys.line, reading),
    };
    done(keys, words, id, what, reading)
}

fn file_work(kind: &str, keys: &mut Keys<'_, '_>, reading: &mut Reading<'_>) -> Option<Work> {
    if kind == "mask" {
        return keys.must("unit", reading).map(|unit| Work::Mask { unit });
    }
    let path = keys.must("path", reading);
    Some(match kind {
        "write_file" => {
            let mode = keys.text("mode", reading);
            Work::WriteFile { text: keys.must("text", reading)?, path: path?, mode }
        }
        "remove_file" => Work::RemoveFile { path: path? },
        "set_line" => {
            let separator = keys.text("separator", reading).unwrap_or("=".into());
            let (key, value) = (keys.must("key", reading), keys.must("value", reading));
            Work::SetLine { path: path?, key: key?, value: value?, separator }
        }
        "make_directory" => Work::MakeDirectory { path: path? },
        "set_link" => Work::SetLink { to: keys.must("to", reading)?, path: path? },
        _ => Work::SetKnob { value: keys.must("value", reading)?, path: path? },
    })
}

fn other_work(kind: &str, keys: &mut Keys<'_, '_>, reading: &mut Reading<'_>) -> Option<Work> {
    Some(match kind {
        "make_swap_file" => {
            let (path, size) = (keys.must("path", reading), keys.must("size", reading));
            Work::MakeSwapFile { path: path?, size: size? }
        }
        "swap_on" => {
            let priority = keys.text("priority", reading);
            Work::SwapOn { what: keys.must("what", reading)?, priority }
        }
        "swap_off" => Work::SwapOff { what: keys.must("what", reading)? },
        _ => {
            let options = keys.text("options", reading).unwrap_or("defaults".into());
            let at_boot = keys.flag("at_boot", reading);
            let (what, at) = (keys.must("what", reading), keys.must("at", reading));
            Work::Mount {
                kind: keys.must("type", reading)?,
                what: what?,
                at: at?,
                options,
                at_boot,
            }
        }
    })
}

fn format(keys: &mut Keys<'_, '_>, reading: &mut Reading<'_>) -> Option<Work> {
    let bare = keys.flag("bare", reading);
    let device = keys.must("device", reading);
    Some(Work::Format {
        filesystem: keys.text("filesystem", reading).unwrap_or("ext4".into()),
        label: keys.text("label", reading),
        at: keys.text("at", reading),
        partition: !bare,
        device: device?,
    })
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
            Work::Format { device, filesystem, label, at, .. } => {
                let more = [label, at].into_iter().flatten().map(String::as_str);
                [device.as_str(), filesystem].into_iter().chain(more).collect()
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
