//! fio's JSON (`--output-format=json` and `json+`) as a subject.
//!
//! Fields after "Interpreting the output" and "JSON output" of fio's manual: options as text, and
//! figures in the units of the version that wrote them (`part`).

mod beside;
mod group;
mod interim;
mod pace;
mod part;
mod spread;

use std::collections::BTreeMap;

use serde_json::Value;

use self::beside::Groups;
use self::group::{Group, group};
pub use self::interim::is_interim;
pub(super) use self::pace::held_back;
use self::part::{Part, Units, number};
use super::subject::{Scope, Source, Subject, SubjectDoubt, SubjectJob, WriteSync, distinct};
use rubus_fio::job_file::Asked;
use rubus_fio::job_file::stated::stated;
use rubus_fio::job_file::value::{KbBase, int};
use rubus_vocabulary::figure::{Figure, Named, Unit};
use rubus_vocabulary::result::Access;
use rubus_vocabulary::spec::{Direction, Operation, Pattern};
use rubus_vocabulary::units::{block, bytes_iec};

/// Whether the JSON is fio's.
pub fn is_fio(value: &Value) -> bool {
    value.get("fio version").is_some() && (value.get("jobs").is_some() || has_client_stats(value))
}

fn has_client_stats(value: &Value) -> bool {
    value.get("client_stats").is_some()
}

/// What fio's JSON has one of for each job or group.
fn entries(value: &Value) -> Option<&Vec<Value>> {
    value.get("jobs").or_else(|| value.get("client_stats"))?.as_array()
}

/// Whether a text without JSON is what fio prints by default or as lines of fields
/// (`--output-format=normal` or `terse`).
pub fn is_other_output(text: &str) -> bool {
    let is_terse = |line: &str| {
        let mut fields = line.split(';');
        let version = fields.next().and_then(|field| field.parse::<u32>().ok());
        version.is_some() && fields.next().is_some_and(|field| field.starts_with("fio-"))
    };
    let is_normal = |line: &str| {
        line.contains(": (groupid=") || (line.contains(": (g=") && line.contains(" rw="))
    };
    text.lines().any(|line| is_terse(line) || is_normal(line))
}

/// The jobs of one of fio's JSON objects; a job that reads and writes gives two.
///
/// fio publishes no interval. Where it gives the deviation between its samples, a rough one is made
/// of it (`spread`); where it does not, a doubt of the job says why there is none.
///
/// # Errors
/// A sentence that says what is missing.
pub fn subject(name: &str, value: &Value) -> Result<Subject, String> {
    let list = entries(value).ok_or("it is fio's JSON, but has no list of jobs")?;
    let global = value.get("global options").unwrap_or(&Value::Null);
    let version = value["fio version"].as_str().unwrap_or("fio");
    // The sum of all clients would count everything twice, unless it alone was kept.
    let has_clients = !list.iter().all(is_of_all_clients);
    let entries = list.iter().filter(|entry| !(has_clients && is_of_all_clients(entry)));
    let like = |one: &Value| {
        let of = |entry: &Value| ["jobname", "groupid", "hostname"].map(|key| entry[key].clone());
        list.iter().filter(|other| of(other) == of(one)).count()
    };
    let entries: Vec<Entry<'_>> =
        entries.map(|entry| Entry::of(entry, global, Units::of(version), like(entry))).collect();
    let done = entries.iter().filter(|entry| !entry.parts.is_empty());
    let groups = Groups::of(done.map(|entry| entry.value), global);
    // The jobs of a suite run one after the other, and Rubus writes them as one group.
    let is_by_fio = value.get("rubus version").is_none();
    let beside = |entry: &Entry<'_>| groups.others(entry.value).filter(|_| is_by_fio);
    let jobs = distinct(entries.iter().flat_map(|entry| entry.jobs(beside(entry))).collect());
    let idle = entries.iter().filter(|entry| entry.parts.is_empty());
    let doubts: Vec<SubjectDoubt> = idle.filter_map(Entry::failure).collect();
    if jobs.is_empty() {
        let why: String = doubts.iter().map(|doubt| format!("; {}", doubt.what)).collect();
        return Err(format!("it is fio's JSON, but none of its jobs read or wrote anything{why}"));
    }
    let first = list.first().unwrap_or(&Value::Null);
    let option = |key| option(first, global, key);
    let base = KbBase(if option("kb_base").as_deref() == Some("1000") { 1000 } else { 1024 });
    Ok(Subject {
        name: name.into(),
        source: Source::Fio,
        when: None,
        facts: vec![
            named("target", option("filename").or_else(|| option("directory"))),
            named("region", option("size").map(|text| size(text, base))),
            named("engine", option("ioengine")),
            named("version", Some(version.into())),
        ],
        note: Some(note(&jobs).into()),
        jobs,
        doubts,
        against: None,
        picture: None,
        is_of_guest: false,
    })
}

fn is_of_all_clients(entry: &Value) -> bool {
    entry["jobname"].as_str() == Some("All clients")
}

fn note(jobs: &[SubjectJob]) -> &'static str {
    if jobs.iter().any(|job| job.throughput.interval.is_some()) {
        "fio gives no intervals; those here are rough, from the deviation between its samples"
    } else {
        "fio gives no intervals, and its samples do not tell any"
    }
}

/// A size of fio's in our words, or as it is.
fn size(text: String, base: KbBase) -> String {
    int(&text, base).map_or(text, bytes_iec)
}

fn named(name: &str, value: Option<String>) -> Named {
    Named { name: name.into(), value }
}

/// An option of the job, or of all jobs.
fn option(job: &Value, global: &Value, key: &str) -> Option<String> {
    let found = job.get("job options").and_then(|options| options.get(key));
    found.or_else(|| global.get(key)).map(text)
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// An entry's options, those of all jobs first; none where the result keeps no options.
fn options<'a>(entry: &'a Value, global: &'a Value) -> Vec<(&'a str, String)> {
    let own = entry.get("job options").and_then(Value::as_object);
    let all = [global.as_object(), own].into_iter().flatten().flatten();
    all.map(|(name, value)| (name.as_str(), text(value))).collect()
}

/// Whether the options say what was done: the sum of all clients has none but those of all jobs, and what is replayed
/// (`read_iolog`) is in a log.
fn say_the_work(options: &[(&str, String)], entry: &Value) -> bool {
    let has = |name: &str| options.iter().any(|(other, _)| *other == name);
    let is_whole = !is_of_all_clients(entry) || has("rw") || has("readwrite");
    !options.is_empty() && is_whole && !has("read_iolog")
}

/// One of fio's results: of a job, or of a group of jobs.
struct Entry<'a> {
    value: &'a Value,
    asked: Option<Asked>,
    /// What else its options say of its work.
    stated: Option<BTreeMap<String, String>>,
    group: Group,
    /// What did anything, and what it is of.
    parts: Vec<(Scope, Direction, Part<'a>)>,
}

impl<'a> Entry<'a> {
    fn of(value: &'a Value, global: &'a Value, units: Units, like_it: usize) -> Entry<'a> {
        let options = options(value, global);
        let pairs = || options.iter().map(|(name, value)| (*name, value.as_str()));
        let is_told = !options.is_empty();
        let asked = say_the_work(&options, value).then(|| Asked::of(pairs()));
        let stated = is_told.then(|| stated(pairs()));
        let part = |key: &str| Part::of(&value[key], units);
        let one_way = |direction, key| Some((Scope::OneDirection, direction, part(key)?));
        let halves = [
            one_way(Direction::Read, "read"),
            one_way(Direction::Write, "write"),
            part("trim").map(|part| (Scope::Discards, Direction::Write, part)),
        ];
        let mut parts: Vec<_> = halves.into_iter().flatten().collect();
        // One result for all directions stands under "mixed", or in some versions under "read".
        let together = match (&parts[..], &asked) {
            ([], _) => part("mixed"),
            ([(_, Direction::Read, part)], Some(asked)) if asked.is_unified => Some(*part),
            _ => None,
        };
        if let Some(part) = together {
            let (scope, direction) = asked.as_ref().map_or(BOTH, unified);
            parts = vec![(scope, direction, part)];
        }
        let figures: Vec<Part<'_>> = parts.iter().map(|(_, _, part)| *part).collect();
        let group = if is_of_all_clients(value) {
            Group { copies: 1, is_of_several_sections: false }
        } else {
            group(value, &figures, asked.as_ref(), like_it)
        };
        Entry { value, asked, stated, group, parts }
    }

    /// Its jobs; `beside` is the number of others that ran at the same time.
    fn jobs(&self, beside: Option<u32>) -> Vec<SubjectJob> {
        let parts = self.parts.iter();
        let jobs = parts.map(|(scope, direction, part)| self.job(*scope, *direction, part));
        jobs.map(|job| SubjectJob { beside, ..job }).collect()
    }

    fn job(&self, scope: Scope, direction: Direction, part: &Part<'_>) -> SubjectJob {
        let asked = self.asked.as_ref();
        let is_of_several = self.group.is_of_several_sections;
        // The options are those of the first section and say nothing of the others.
        let of_all = asked.filter(|_| !is_of_several);
        let pattern = if asked.is_some_and(|asked| asked.is_random) {
            Pattern::Random
        } else {
            Pattern::Sequential
        };
        let stated = of_all.and_then(|asked| asked.block_bytes[side(direction)]);
        let stated = stated.filter(|_| !is_of_all_clients(self.value));
        let block_bytes = stated.or(part.mean_block());
        let sync = match (direction, scope) {
            (Direction::Write, Scope::OneDirection) => of_all.map(|asked| asked.sync),
            _ => None,
        };
        let commit = sync.is_some_and(WriteSync::is_each);
        let name = self.value["jobname"].as_str().unwrap_or("job").to_string();
        let depth = of_all.map(|asked| asked.depth);
        let copies = self.group.copies;
        let (throughput, unknown) = spread::rate(part, copies);
        let mut doubts: Vec<SubjectDoubt> = unknown
            .map(|why| SubjectDoubt { kind: why.kind().into(), what: why.what().into() })
            .into_iter()
            .collect();
        doubts.extend(self.failure());
        doubts.extend(
            is_of_all_clients(self.value).then(|| SubjectDoubt {
                kind: "all_clients".into(),
                what: "it is the sum of all clients of fio, which does not say how many there were"
                    .into(),
            }),
        );
        doubts.extend(self.stated.as_ref().and_then(pace::doubt));
        let pattern_said = asked.map(|_| pattern);
        let words = Words { scope, direction, pattern: pattern_said, block_bytes, sync };
        SubjectJob {
            title: words.title(depth, copies, is_of_several),
            section: Some(name.clone()),
            name,
            direction,
            pattern,
            block_bytes,
            queue_depth: depth,
            copies,
            commit,
            sync,
            access: of_all
                .map(|asked| if asked.is_buffered { Access::Buffered } else { Access::Direct }),
            content: None,
            on: self.host(),
            is_shared: self.parts.len() > 1 || is_of_several,
            beside: None,
            operation: Operation::Block,
            scope,
            stated: self.stated.clone().filter(|_| !is_of_several),
            throughput,
            unit: Unit::BytesPerSecond,
            p50_ns: percentile(part, "50.000000", sync, 2),
            p99_ns: percentile(part, "99.000000", sync, 100),
            doubts,
        }
    }

    /// The machine that did it, in the result of a client; all of them are asked for the same jobs.
    fn host(&self) -> Option<String> {
        // The sum of all clients has the host of the last one.
        let host = self.value["hostname"].as_str().filter(|_| !is_of_all_clients(self.value));
        host.filter(|host| !host.is_empty()).map(String::from)
    }

    fn failure(&self) -> Option<SubjectDoubt> {
        let error = number(&self.value["error"]).filter(|error| *error > 0.0)?;
        let job = match (self.parts.is_empty(), self.value["jobname"].as_str()) {
            (true, Some(name)) => format!("the job {name}"),
            (true, None) => "a job".into(),
            (false, _) => "this job".into(),
        };
        Some(SubjectDoubt {
            kind: "target_failed".into(),
            what: format!("fio ended {job} with error {error}"),
        })
    }
}

/// Scope and direction of a result of all directions, as far as nothing else is known.
const BOTH: (Scope, Direction) = (Scope::BothDirections, Direction::Read);

/// What a result of all directions is of when the job has one only.
fn unified(asked: &Asked) -> (Scope, Direction) {
    match (asked.reads, asked.writes, asked.discards) {
        (true, false, false) => (Scope::OneDirection, Direction::Read),
        (false, true, false) => (Scope::OneDirection, Direction::Write),
        (false, false, true) => (Scope::Discards, Direction::Write),
        _ => BOTH,
    }
}

fn side(direction: Direction) -> usize {
    match direction {
        Direction::Read => 0,
        Direction::Write => 1,
    }
}

/// A percentile of the latency. fio times a flush apart from the writes before it, so a percentile that
/// would hold a flush is not the latency of what was done: with a flush after up to `writes` writes.
fn percentile(part: &Part<'_>, key: &str, sync: Option<WriteSync>, most: u32) -> Option<Figure> {
    let holds_flush = matches!(sync, Some(WriteSync::Flush { writes, .. }) if writes <= most);
    part.percentile(key).filter(|_| !holds_flush).map(Figure::bare)
}

/// What a job does, for its title.
struct Words {
    scope: Scope,
    direction: Direction,
    /// None where the result keeps no options, as those of fio before 2.14.
    pattern: Option<Pattern>,
    block_bytes: Option<u32>,
    sync: Option<WriteSync>,
}

impl Words {
    fn title(&self, depth: Option<u32>, copies: u32, is_of_several: bool) -> String {
        let size = self.block_bytes.map_or(String::new(), |bytes| block(bytes) + " ");
        let what = self.what();
        let depth = match depth {
            Some(depth) if depth > 1 => format!(" ×{depth}"),
            _ => String::new(),
        };
        let copies = match (copies, is_of_several) {
            (copies, true) => format!(", {copies} jobs of several sections"),
            (1, false) => String::new(),
            (copies, false) => format!(", {copies} copies"),
        };
        format!("{size}{what}{depth}{copies}")
    }

    fn what(&self) -> String {
        let call = |metadata_too| if metadata_too { "fsync" } else { "fdatasync" };
        let flushes = match self.sync {
            None | Some(WriteSync::Never) => String::new(),
            // What a commit is everywhere in this program.
            Some(WriteSync::Flush { writes: 1, metadata_too: false }) => return "commits".into(),
            Some(WriteSync::Flush { writes: 1, metadata_too: true }) => {
                return "commits (fsync)".into();
            }
            Some(WriteSync::Open { metadata_too: true }) => return "commits (sync)".into(),
            Some(WriteSync::Open { metadata_too: false }) => return "commits (dsync)".into(),
            Some(WriteSync::Flush { writes, metadata_too }) => {
                format!(", {} after each {writes}", call(metadata_too))
            }
        };
        let order = match self.pattern {
            Some(Pattern::Sequential) => "sequential ",
            Some(Pattern::Random) => "random ",
            None => "",
        };
        let operations = match (self.scope, self.direction) {
            (Scope::OneDirection, Direction::Read) => "reads",
            (Scope::OneDirection, Direction::Write) => "writes",
            (Scope::BothDirections, _) => "reads and writes",
            (Scope::Discards, _) => "discards",
        };
        format!("{order}{operations}{flushes}")
    }
}

#[cfg(test)]
mod tests;
