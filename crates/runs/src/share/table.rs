//! The tables of rules: a section for each type, a line for each of its fields.

use std::collections::BTreeMap;
use std::sync::OnceLock;

/// What a field may hold for others to see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Numbers and booleans.
    Number,
    /// One of a closed set of words.
    Words(Vec<String>),
    /// An object, or a list of them, with rules of its own.
    Object(String),
    /// A fact: its value has a rule, and its source and reason theirs.
    Fact(Box<Rule>),
    /// A text with a form.
    Text(TextRule),
    /// Nothing: the field is dropped.
    Drop,
}

/// The forms that a text may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextRule {
    /// Digits with punctuation: "179:2", "0-3", "03/2024".
    Digits,
    /// A moment, RFC 3339.
    Time,
    /// A version number.
    Release,
    /// Public words, with numbers and the kernel's names.
    Phrase,
    /// The words of an error that are public.
    Reason,
    /// The name of a product.
    Model,
    /// Who a card was made for: two characters of its register, or their number.
    Oem,
    /// The device tree's names of a board.
    Compatible,
    /// A firmware's version and date.
    Firmware,
    /// The version of OpenSSH.
    Openssh,
    /// The version of TLS and its cipher.
    Tls,
    /// Names of kernel settings and their values.
    Setting,
    /// Where a fact was read.
    Source,
    /// A block device.
    Device,
    /// A network interface.
    Interface,
    /// A device of a bus.
    Bus,
    /// A serial number.
    Serial,
    /// An identity of a filesystem or partition.
    Uuid,
    /// A label of a filesystem or partition.
    Label,
    /// A path.
    Path,
    /// A path, device or address.
    Target,
    /// What is mounted.
    Volume,
    /// What is on a device.
    Content,
    /// A server.
    Server,
    /// A machine that takes part.
    Host,
    /// A pool or image.
    Pool,
    /// A program.
    Program,
    /// A job.
    Job,
    /// What a job is called.
    Title,
    /// A suite.
    Suite,
    /// Options of a mount.
    MountOptions,
    /// All options of a line of fstab, which has some.
    LineOptions,
    /// Options of a job file, by their names.
    JobOptions,
    /// Settings of programs that configure swap.
    SwapSettings,
    /// The kernel's command line.
    CommandLine,
}

const TEXTS: &[(&str, TextRule)] = &[
    ("digits", TextRule::Digits),
    ("time", TextRule::Time),
    ("release", TextRule::Release),
    ("phrase", TextRule::Phrase),
    ("reason", TextRule::Reason),
    ("model", TextRule::Model),
    ("oem", TextRule::Oem),
    ("compatible", TextRule::Compatible),
    ("firmware", TextRule::Firmware),
    ("openssh", TextRule::Openssh),
    ("tls", TextRule::Tls),
    ("setting", TextRule::Setting),
    ("source", TextRule::Source),
    ("device", TextRule::Device),
    ("interface", TextRule::Interface),
    ("bus", TextRule::Bus),
    ("serial", TextRule::Serial),
    ("uuid", TextRule::Uuid),
    ("label", TextRule::Label),
    ("path", TextRule::Path),
    ("target", TextRule::Target),
    ("volume", TextRule::Volume),
    ("content", TextRule::Content),
    ("server", TextRule::Server),
    ("host", TextRule::Host),
    ("pool", TextRule::Pool),
    ("program", TextRule::Program),
    ("job", TextRule::Job),
    ("title", TextRule::Title),
    ("suite", TextRule::Suite),
    ("mount_options", TextRule::MountOptions),
    ("line_options", TextRule::LineOptions),
    ("job_options", TextRule::JobOptions),
    ("swap_settings", TextRule::SwapSettings),
    ("command_line", TextRule::CommandLine),
];

impl TextRule {
    /// All rules for texts.
    #[cfg(test)]
    pub(super) fn all() -> Vec<TextRule> {
        TEXTS.iter().map(|(_, rule)| *rule).collect()
    }
}

/// The rules of one record.
#[derive(Debug)]
pub struct Table {
    root: String,
    /// By type and field; a type that is a word or number by itself has them under `=`.
    rules: BTreeMap<String, BTreeMap<String, Rule>>,
}

impl Table {
    fn parse(root: &str, text: &str) -> Table {
        let mut rules: BTreeMap<String, BTreeMap<String, Rule>> = BTreeMap::new();
        let mut section = String::new();
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
            if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
                section = name.to_string();
                rules.entry(section.clone()).or_default();
            } else if let Some((field, rule)) = line.rsplit_once(" = ") {
                let rule = parse_rule(rule).unwrap_or(Rule::Drop);
                rules.entry(section.clone()).or_default().insert(field.to_string(), rule);
            }
        }
        Table { root: root.into(), rules }
    }

    /// The type of the whole record.
    pub fn root(&self) -> &str {
        &self.root
    }

    /// The rule of a field; none where there is no line for it.
    pub fn rule(&self, object: &str, field: &str) -> Option<&Rule> {
        self.rules.get(object)?.get(field)
    }

    /// The fields of a type that have a rule.
    pub fn fields(&self, object: &str) -> Vec<&str> {
        self.rules
            .get(object)
            .into_iter()
            .flat_map(|fields| fields.keys().map(String::as_str))
            .collect()
    }
}

/// A rule as a line has it; none where it is not one.
fn parse_rule(text: &str) -> Option<Rule> {
    if let Some(inner) = text.strip_prefix("fact ") {
        return Some(Rule::Fact(Box::new(parse_rule(inner)?)));
    }
    if let Some(name) = text.strip_prefix("-> ") {
        return Some(Rule::Object(name.to_string()));
    }
    if let Some(words) = text.strip_prefix("words ") {
        return Some(Rule::Words(words.split('|').map(str::to_string).collect()));
    }
    match text {
        "number" => Some(Rule::Number),
        "drop" => Some(Rule::Drop),
        name => TEXTS.iter().find(|(known, _)| *known == name).map(|(_, rule)| Rule::Text(*rule)),
    }
}

const RUN: &str = include_str!("run.rules");
const COMPARISON: &str = include_str!("comparison.rules");

pub(super) fn run() -> &'static Table {
    static TABLE: OnceLock<Table> = OnceLock::new();
    TABLE.get_or_init(|| Table::parse("Run", RUN))
}

pub(super) fn machine() -> &'static Table {
    static TABLE: OnceLock<Table> = OnceLock::new();
    TABLE.get_or_init(|| Table::parse("Machine", RUN))
}

pub(super) fn comparison() -> &'static Table {
    static TABLE: OnceLock<Table> = OnceLock::new();
    TABLE.get_or_init(|| Table::parse("Comparison", COMPARISON))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_a_rule_and_every_object_has_a_section() {
        for (text, table) in [(RUN, run()), (COMPARISON, comparison())] {
            let lines = text.lines().filter(|line| line.contains(" = "));
            for line in lines {
                let (_, rule) = line.rsplit_once(" = ").expect("a line has one");
                let parsed = parse_rule(rule).unwrap_or_else(|| panic!("no rule: {line}"));
                let named = match &parsed {
                    Rule::Object(name) => Some(name.clone()),
                    Rule::Fact(inner) => match inner.as_ref() {
                        Rule::Object(name) => Some(name.clone()),
                        _ => None,
                    },
                    _ => None,
                };
                assert!(
                    named.is_none_or(|name| table.rules.contains_key(&name)),
                    "no section: {line}"
                );
            }
            assert!(table.rules.contains_key(table.root()));
        }
    }
}
