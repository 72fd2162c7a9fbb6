//! `config.txt`: what the firmware of a Raspberry Pi loads, and how.
//!
//! Source: Raspberry Pi documentation, "config.txt": one `name=value` per line, `#` begins a comment line,
//! `initramfs` and `include` are written without equals sign, a filter in brackets holds until another of its kind or
//! `[all]`, the last value wins. Filters whose outcome is unknown beforehand (a monitor, a pin) are taken both ways
//! ([`ConfigTxt::boot_paths`]).

mod filter;
mod form;
mod parameter;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::model::{Kernels, Model};
use filter::{Answer, Filters};
use form::{doubts, is_bare, readings, with_doubts, without_comment};

pub use form::{BARE, CAPITALS, COMMENTED, FORMS, Form, SPACED};
pub use parameter::{NotSet, Switch};

/// Longest line that every firmware reads whole, in characters.
pub const MAX_LINE_CHARACTERS: usize = 98;
/// The largest number of included files that are followed.
const MAX_INCLUDED: usize = 32;
/// Included files may include others; this many levels are followed.
const MAX_LEVELS: usize = 4;
/// All inclusions that are followed while a file is read: files that include one another often would make work without end.
const MAX_INCLUSIONS: usize = 256;
/// The settings that say what is loaded.
const DECIDING: [&str; 10] = [
    "armstub",
    "kernel",
    "arm_64bit",
    "initramfs",
    "ramfsfile",
    "auto_initramfs",
    "cmdline",
    "device_tree",
    "os_prefix",
    "upstream_kernel",
];
/// Ways to take doubtful filters that are tried at most.
const MAX_ASSUMPTIONS: usize = 16;

/// The text of `config.txt`, which can be asked and edited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigTxt {
    text: String,
}

/// The board that reads the file, and how it was started.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    /// Model of the board.
    pub model: &'a Model,
    /// Its serial number, where it is known.
    pub serial: Option<u64>,
    /// Whether this is the one start after `reboot '0 tryboot'`.
    pub tryboot: bool,
    /// The partition that the firmware reads, where that is known.
    pub partition: Option<ReadPartition>,
    /// The texts that `include` lines name.
    pub includes: &'a BTreeMap<String, String>,
}

impl<'a> Reader<'a> {
    /// A board in a usual start, of which neither the serial number nor the partition is known.
    pub fn usual(model: &'a Model, includes: &'a BTreeMap<String, String>) -> Reader<'a> {
        Reader { model, serial: None, tryboot: false, partition: None, includes }
    }
}

/// The partition that the firmware reads, for `[boot_partition=N]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadPartition {
    pub number: u32,
    /// Whether the firmware is known to know that filter.
    pub is_filter_known: bool,
}

/// One setting as it stands in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// What is set.
    pub name: String,
    /// To what, without white space at its ends.
    pub value: String,
    /// Number of its line in the outermost file, from 1.
    pub line: usize,
    /// Whether it counts on the board that was asked about.
    pub counts: Counts,
}

/// Whether a setting counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Counts {
    Yes,
    /// No: its section is for another board or another kind of start.
    No,
    /// It depends on these filters, of which only the board knows at its start.
    If(BTreeSet<String>),
}

/// What the firmware loads in one case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BootPath {
    /// The kernel's path in the boot partition.
    pub kernel: String,
    /// The initial RAM filesystems, joined in this order; none: the kernel starts without.
    pub initramfs: Vec<String>,
    /// Whether they follow from the kernel's name (`auto_initramfs`), so that a missing one is passed over.
    pub is_auto_initramfs: bool,
    /// The file with the kernel's command line.
    pub cmdline: String,
    /// The device tree, where the file names one.
    pub device_tree: Option<String>,
    /// The program that the processors run before the kernel, where the file names one.
    pub armstub: Option<String>,
    /// The filters that have to apply for this case; empty for the usual one.
    pub only_if: BTreeSet<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Line<'a> {
    Filter(&'a str),
    Include(&'a str),
    Setting(&'a str, &'a str),
    Other,
}

impl ConfigTxt {
    /// Accepts any text.
    pub fn parse(text: impl Into<String>) -> Self {
        ConfigTxt { text: text.into() }
    }

    /// The whole text, to be written back.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The files that it includes, those of all sections.
    pub fn includes(&self) -> Vec<&str> {
        let lines = self.text.lines().map(line_of);
        lines
            .filter_map(|line| match line {
                Line::Include(name) => Some(name),
                _ => None,
            })
            .collect()
    }

    /// The texts of all files that are included, and of those that these include, by name. One that is not there is passed
    /// over, as the firmware does; files that include each other end where each is known.
    pub fn included(&self, text_of: &dyn Fn(&str) -> Option<String>) -> BTreeMap<String, String> {
        let mut found = BTreeMap::new();
        let mut todo: Vec<String> = self.includes().into_iter().map(str::to_string).collect();
        while let Some(name) = todo.pop() {
            if found.contains_key(&name) || found.len() >= MAX_INCLUDED {
                continue;
            }
            let Some(text) = text_of(&name) else { continue };
            todo.extend(ConfigTxt::parse(text.as_str()).includes().into_iter().map(str::to_string));
            found.insert(name, text);
        }
        found
    }

    /// What this file names beside itself, in any of its sections: files that it includes, command lines, and the
    /// directories (with a slash at their end) from which kernels, initial RAM filesystems and device trees are loaded. Paths in the
    /// boot partition.
    pub fn companions(&self) -> BTreeSet<String> {
        let settings = self.text.lines().filter_map(|line| match line_of(line) {
            Line::Setting(name, value) if !value.is_empty() => Some((name, value)),
            _ => None,
        });
        let settings: Vec<(&str, &str)> = settings.collect();
        let of = |name: &str| {
            let values = settings.iter().filter(|(setting, _)| *setting == name);
            let values = values.flat_map(|(_, value)| readings(name, value));
            values.collect::<Vec<&str>>()
        };
        let mut prefixes = vec![""];
        prefixes.extend(of("os_prefix"));
        if !of("upstream_kernel").is_empty() {
            prefixes.push("upstream/");
        }
        let mut lines = vec!["cmdline.txt"];
        lines.extend(of("cmdline"));
        let files_of_start = ["kernel", "initramfs", "ramfsfile", "device_tree", "armstub"];
        // An `initramfs` line has the address behind the name.
        let names = |value: &str| value.split_whitespace().next().unwrap_or_default().to_string();
        let files_of_start: Vec<String> =
            files_of_start.iter().flat_map(|setting| of(setting)).map(names).collect();
        let mut named: BTreeSet<String> = self.includes().into_iter().map(str::to_string).collect();
        for prefix in prefixes {
            named.extend(lines.iter().map(|line| prefixed(prefix, line)));
            let files = files_of_start.iter().map(|file| prefixed(prefix, file));
            let files = files.chain(std::iter::once(prefixed(prefix, "kernel")));
            let directory = |path: String| path.rfind('/').map(|at| path[..=at].to_string());
            named.extend(files.filter_map(directory));
        }
        named
    }

    /// The files that are named as kernels in any section, with each prefix that is named; for the firmware's own choice, the
    /// prefixes with "kernel" behind them stand.
    pub fn kernels(&self) -> BTreeSet<String> {
        let of = |wanted: &str| {
            let values = self.text.lines().filter_map(|line| match line_of(line) {
                Line::Setting(name, value) if name == wanted && !value.is_empty() => Some(value),
                _ => None,
            });
            values.flat_map(|value| readings(wanted, value)).collect::<Vec<&str>>()
        };
        let prefixes = std::iter::once("").chain(of("os_prefix"));
        let names = std::iter::once("kernel").chain(of("kernel"));
        let names: Vec<&str> = names.collect();
        prefixes.flat_map(|prefix| names.iter().map(move |name| prefixed(prefix, name))).collect()
    }

    /// Numbers of the lines, from 1, that say what is loaded and of which an older firmware reads only the
    /// beginning.
    pub fn long_lines(&self) -> Vec<usize> {
        let decides = |line: &str| match line_of(line) {
            Line::Setting(name, _) => DECIDING.contains(&name),
            Line::Filter(_) | Line::Include(_) => true,
            Line::Other => false,
        };
        let lines = self.text.lines().enumerate();
        lines
            .filter(|(_, line)| decides(line))
            .filter(|(_, line)| line.trim_end().chars().count() > MAX_LINE_CHARACTERS)
            .map(|(index, _)| index + 1)
            .collect()
    }

    /// Every setting in order, those of included files in their place.
    pub fn settings(&self, reader: &Reader<'_>) -> Vec<Setting> {
        let mut found = Vec::new();
        let mut filters = Filters::default();
        let mut left = MAX_INCLUSIONS;
        collect(&self.text, reader, (0, 0), &mut left, &mut filters, &mut found);
        found
    }

    /// The value that counts on a board, doubtful filters taken as not applying; absent: the default.
    pub fn get(&self, name: &str, reader: &Reader<'_>) -> Option<String> {
        let settings = self.settings(reader).into_iter();
        settings
            .filter(|setting| setting.name == name && setting.counts == Counts::Yes)
            .map(|setting| setting.value)
            .next_back()
    }

    /// Everything that the firmware may load on a board, the usual case first. `exists` tells whether a
    /// path is in the boot partition. Kernels that are not there are left out where another can be loaded instead.
    pub fn boot_paths(&self, reader: &Reader<'_>, exists: &dyn Fn(&str) -> bool) -> Vec<BootPath> {
        let settings = self.settings(reader);
        let mut paths: Vec<BootPath> = Vec::new();
        for assumed in assumptions(&settings) {
            let values = effective(&settings, &assumed);
            for path in load(&values, reader.model, exists, &assumed) {
                let is_known = paths.iter().any(|known| {
                    BootPath { only_if: path.only_if.clone(), ..known.clone() } == path
                });
                if !is_known {
                    paths.push(path);
                }
            }
        }
        paths
    }

    /// Everything that the firmware of any known board may load, for a card that may be put into each. A board whose
    /// kernel is not there is none that the card is for.
    pub fn boot_paths_anywhere(
        &self,
        includes: &BTreeMap<String, String>,
        exists: &dyn Fn(&str) -> bool,
    ) -> Vec<BootPath> {
        self.boot_paths_where(&|_| true, includes, exists)
    }

    /// What of that the boards with these default kernels load.
    pub fn boot_paths_of(
        &self,
        kernels: Kernels,
        includes: &BTreeMap<String, String>,
        exists: &dyn Fn(&str) -> bool,
    ) -> Vec<BootPath> {
        self.boot_paths_where(&|model| model.kernels == kernels, includes, exists)
    }

    fn boot_paths_where(
        &self,
        is_meant: &dyn Fn(&Model) -> bool,
        includes: &BTreeMap<String, String>,
        exists: &dyn Fn(&str) -> bool,
    ) -> Vec<BootPath> {
        let mut all: Vec<BootPath> = Vec::new();
        for model in Model::every().iter().filter(|model| is_meant(model)) {
            let reader = Reader::usual(model, includes);
            let paths = self.boot_paths(&reader, exists);
            if !paths.iter().all(|path| exists(&path.kernel)) {
                continue;
            }
            for path in paths {
                if !all.contains(&path) {
                    all.push(path);
                }
            }
        }
        all
    }

    /// The boards that a card starts, one of each that loads something else.
    pub fn models_started(
        &self,
        includes: &BTreeMap<String, String>,
        exists: &dyn Fn(&str) -> bool,
    ) -> Vec<Model> {
        let mut known: Vec<Vec<BootPath>> = Vec::new();
        let mut models = Vec::new();
        for model in Model::every() {
            let reader = Reader::usual(&model, includes);
            let paths = self.boot_paths(&reader, exists);
            let is_for_it = !paths.is_empty() && paths.iter().all(|path| exists(&path.kernel));
            if is_for_it && !known.contains(&paths) {
                known.push(paths);
                models.push(model);
            }
        }
        models
    }

    /// Gives a setting one value that counts on every board: in its place if its last line holds for
    /// all, else in a new line under `[all]` at the end. `initramfs` is written in its own way.
    pub fn set(&mut self, name: &str, value: &str) {
        let written = line_with(name, value);
        match self.last_line_of(name) {
            Some((span, true)) => self.text.replace_range(span, &written),
            _ => self.append(&written),
        }
    }

    /// Removes the lines of a setting that hold for every board. Those under a filter stay. How many
    /// were removed.
    pub fn remove(&mut self, name: &str) -> usize {
        let mut filters = Filters::default();
        let mut kept = String::with_capacity(self.text.len());
        let mut removed = 0;
        for line in self.text.split_inclusive('\n') {
            match line_of(line) {
                Line::Filter(name) => filters.meet(name),
                Line::Setting(setting, _) if setting == name && filters.is_for_all() => {
                    removed += 1;
                    continue;
                }
                Line::Include(_) => filters.meet_inclusion(),
                _ => {}
            }
            kept.push_str(line);
        }
        self.text = kept;
        removed
    }

    /// Where the last line of a setting is, without white space at its ends, and whether it holds for
    /// all boards with nothing included behind it.
    fn last_line_of(&self, name: &str) -> Option<(Range<usize>, bool)> {
        let mut filters = Filters::default();
        let mut last = None;
        let mut start = 0;
        for line in self.text.split_inclusive('\n') {
            match line_of(line) {
                Line::Filter(name) => filters.meet(name),
                Line::Setting(setting, _) if setting == name => {
                    let begin = start + line.len() - line.trim_start().len();
                    let end = start + line.trim_end().len();
                    last = Some((begin..end, filters.is_for_all()));
                }
                Line::Include(_) => {
                    filters.meet_inclusion();
                    last = last.map(|(span, _)| (span, false));
                }
                _ => {}
            }
            start += line.len();
        }
        last
    }

    /// Gives settings values that count under a filter, in a section of their own at the end.
    pub fn set_under(&mut self, filter: &str, settings: &[(&str, &str)]) {
        self.append(&format!("[{filter}]"));
        for (name, value) in settings {
            self.push_line(&line_with(name, value));
        }
        self.push_line("[all]");
    }

    fn append(&mut self, line: &str) {
        let mut filters = Filters::default();
        for line in self.text.lines() {
            match line_of(line) {
                Line::Filter(name) => filters.meet(name),
                Line::Include(_) => filters.meet_inclusion(),
                _ => {}
            }
        }
        if !filters.is_for_all() {
            self.push_line("[all]");
        }
        self.push_line(line);
    }

    fn push_line(&mut self, line: &str) {
        let end = match self.text.find('\n') {
            Some(at) if self.text[..at].ends_with('\r') => "\r\n",
            _ => "\n",
        };
        if !self.text.is_empty() && !self.text.ends_with('\n') {
            self.text.push_str(end);
        }
        self.text.push_str(line);
        self.text.push_str(end);
    }
}

fn line_with(name: &str, value: &str) -> String {
    match name {
        "initramfs" | "include" => format!("{name} {value}"),
        _ => format!("{name}={value}"),
    }
}

/// The initial RAM filesystem that `auto_initramfs` loads with a kernel: `initramfs8` with `kernel8.img`; none where the
/// kernel's name has no "kernel" in it, as `vmlinuz`.
pub fn initramfs_of(kernel: &str) -> Option<String> {
    let (directory, name) = match kernel.rfind('/') {
        Some(at) => kernel.split_at(at + 1),
        None => ("", kernel),
    };
    let name = name.strip_suffix(".img").unwrap_or(name);
    name.contains("kernel")
        .then(|| format!("{directory}{}", name.replacen("kernel", "initramfs", 1)))
}

fn line_of(line: &str) -> Line<'_> {
    let line = line.trim();
    if line.starts_with('#') {
        return Line::Other;
    }
    if let Some(rest) = line.strip_prefix('[') {
        return match rest.split_once(']') {
            Some((name, _)) => Line::Filter(name.trim()),
            None => Line::Other,
        };
    }
    let word = line.split(char::is_whitespace).next().unwrap_or_default();
    if is_bare(line) {
        return Line::Setting(word, line[word.len()..].trim());
    }
    if word == "initramfs" || word == "include" {
        let rest = line[word.len()..].trim();
        return match word {
            "include" => Line::Include(rest),
            _ => Line::Setting("initramfs", rest),
        };
    }
    match line.split_once('=') {
        // Source: Raspberry Pi documentation, "initramfs": it has no equals sign.
        Some((name, _)) if name.trim() == "initramfs" => Line::Other,
        Some((name, value)) => Line::Setting(name.trim(), value.trim()),
        None => Line::Other,
    }
}

/// Adds the settings of a text that stands at a level of inclusion, behind a line of the outermost file. `left` is how many more
/// inclusions are followed.
fn collect<'a>(
    text: &'a str,
    reader: &Reader<'a>,
    (level, outer_line): (usize, usize),
    left: &mut usize,
    filters: &mut Filters,
    found: &mut Vec<Setting>,
) {
    for (index, line) in text.lines().enumerate() {
        let number = if level == 0 { index + 1 } else { outer_line };
        match line_of(line) {
            Line::Filter(name) => filters.meet(name),
            Line::Setting(name, value) => {
                let counts = with_doubts(&doubts(line), counts(filters, reader));
                let setting =
                    Setting { name: name.into(), value: value.into(), line: number, counts };
                let read_so = without_comment(name, value).map(|value| Setting {
                    value: value.into(),
                    counts: with_doubts(&[COMMENTED], setting.counts.clone()),
                    ..setting.clone()
                });
                found.push(setting);
                found.extend(read_so);
            }
            Line::Include(name) if level < MAX_LEVELS && *left > 0 => {
                // Whether a filter would keep the inclusion out is decided for each of its lines.
                if let Some(text) = reader.includes.get(name) {
                    *left -= 1;
                    collect(text, reader, (level + 1, number), left, filters, found);
                }
            }
            Line::Include(_) | Line::Other => {}
        }
    }
}

fn counts(filters: &Filters, reader: &Reader<'_>) -> Counts {
    match filters.answer(reader) {
        Answer::Yes => Counts::Yes,
        Answer::No => Counts::No,
        Answer::If(names) => Counts::If(names),
    }
}

/// The ways to take the doubtful filters: none of them, each alone, all.
fn assumptions(settings: &[Setting]) -> Vec<BTreeSet<String>> {
    let mut doubtful: BTreeSet<&BTreeSet<String>> = BTreeSet::new();
    for setting in settings {
        if let (Counts::If(names), true) = (&setting.counts, DECIDING.contains(&&*setting.name)) {
            doubtful.insert(names);
        }
    }
    let all: BTreeSet<String> = doubtful.iter().flat_map(|names| (*names).clone()).collect();
    let mut ways = vec![BTreeSet::new()];
    ways.extend(doubtful.into_iter().take(MAX_ASSUMPTIONS).cloned());
    if !ways.contains(&all) {
        ways.push(all);
    }
    ways
}

fn effective<'a>(
    settings: &'a [Setting],
    assumed: &BTreeSet<String>,
) -> BTreeMap<&'a str, &'a str> {
    let counting = settings.iter().filter(|setting| match &setting.counts {
        Counts::Yes => true,
        Counts::No => false,
        Counts::If(names) => names.is_subset(assumed),
    });
    counting.map(|setting| (setting.name.as_str(), setting.value.as_str())).collect()
}

/// What is loaded with these values: one case for each kernel that may be.
fn load(
    values: &BTreeMap<&str, &str>,
    model: &Model,
    exists: &dyn Fn(&str) -> bool,
    assumed: &BTreeSet<String>,
) -> Vec<BootPath> {
    let text = |name: &str| values.get(name).copied().filter(|value| !value.is_empty());
    let is_on = |name: &str| text(name).and_then(number).is_some_and(|value| value != 0);
    let arm_64bit = text("arm_64bit").and_then(number).map(|value| value != 0);
    let wished_prefix =
        text("os_prefix").unwrap_or(if is_on("upstream_kernel") { "upstream/" } else { "" });
    let names = match text("kernel") {
        Some(name) => vec![name],
        None => model.kernels.names(arm_64bit).to_vec(),
    };
    // The firmware passes over a prefix under which it finds no kernel.
    let prefix = if names.iter().any(|name| exists(&prefixed(wished_prefix, name))) {
        wished_prefix
    } else {
        ""
    };
    let mut there: Vec<&str> = names.clone();
    there.retain(|name| exists(&prefixed(prefix, name)));
    if there.is_empty() {
        there.extend(names.first());
    } else if model.kernels.first_wins() {
        there.truncate(1);
    }
    let named = text("initramfs").or_else(|| text("ramfsfile"));
    there
        .into_iter()
        .map(|kernel| BootPath {
            kernel: prefixed(prefix, kernel),
            initramfs: match (named, is_on("auto_initramfs")) {
                (Some(line), _) => named_initramfs(prefix, line),
                (None, true) => initramfs_of(&prefixed(prefix, kernel)).into_iter().collect(),
                (None, false) => Vec::new(),
            },
            is_auto_initramfs: named.is_none() && is_on("auto_initramfs"),
            cmdline: prefixed(prefix, text("cmdline").unwrap_or("cmdline.txt")),
            device_tree: text("device_tree").map(|name| prefixed(prefix, name)),
            armstub: text("armstub").map(|name| prefixed(prefix, name)),
            only_if: assumed.clone(),
        })
        .collect()
}

/// A path that begins with a slash is not prefixed.
fn prefixed(prefix: &str, name: &str) -> String {
    match name.strip_prefix('/') {
        Some(absolute) => absolute.into(),
        None => format!("{prefix}{name}"),
    }
}

/// The files of an `initramfs` line: names joined by commas, then perhaps an address.
fn named_initramfs(prefix: &str, line: &str) -> Vec<String> {
    let names = line.split_whitespace().next().unwrap_or_default();
    let names = names.split(',').filter(|name| !name.is_empty());
    names.map(|name| prefixed(prefix, name)).collect()
}

fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests;
