//! Every command that the documentation shows is one that this program takes, every link leads somewhere, and every table
//! of data is in a page.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use clap::CommandFactory;
use clap::error::ErrorKind;

use super::{Args, help};

/// A command in a document.
struct Shown {
    /// File and line.
    place: String,
    /// What follows `rubus`.
    text: String,
    /// Whether it is a line to be typed, rather than a mention in a sentence.
    is_whole: bool,
}

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// What a user reads, with its text.
pub(super) fn documents() -> Vec<(PathBuf, String)> {
    let mut todo = vec![workspace().join("docs")];
    let mut paths = Vec::new();
    while let Some(directory) = todo.pop() {
        for entry in fs::read_dir(&directory).expect("there is documentation") {
            let path = entry.expect("an entry").path();
            if path.is_dir() { todo.push(path) } else { paths.push(path) }
        }
    }
    for other in [
        "README.md",
        "CONTRIBUTING.md",
        "SECURITY.md",
        "MODEL.md",
        "BENCHMARKS.md",
        "lab/README.md",
        "captures/README.md",
        "contrib/README.md",
    ] {
        paths.push(workspace().join(other));
    }
    paths.retain(|path| path.extension().is_some_and(|e| e == "md"));
    paths.sort();
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).expect("a document");
        (path, text)
    };
    paths.into_iter().map(read).collect()
}

/// The sources of all crates, by their paths within the workspace.
pub(super) fn sources() -> Vec<(String, String)> {
    let root = workspace();
    let mut todo = vec![root.join("crates")];
    let mut found = Vec::new();
    while let Some(directory) = todo.pop() {
        for entry in fs::read_dir(&directory).expect("a directory of the workspace") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                todo.push(path);
            } else if path.extension().is_some_and(|end| end == "rs") {
                let name = path.strip_prefix(&root).expect("below it");
                let text = fs::read_to_string(&path).expect("a source");
                found.push((name.display().to_string(), text));
            }
        }
    }
    found
}

/// The lines of a document with their numbers, and whether each is in a block of code.
fn lines(text: &str) -> Vec<(usize, &str, bool)> {
    let mut is_fenced = false;
    let mut is_after_text = false;
    let mut found = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            is_fenced = !is_fenced;
            continue;
        }
        // Four spaces below a sentence are a part of it.
        let is_code = is_fenced || (line.starts_with("    ") && !is_after_text);
        is_after_text = !is_code && !line.trim().is_empty();
        found.push((index + 1, line, is_code));
    }
    found
}

/// What is typed after `rubus`, if a line begins with it.
fn typed(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let line = line.strip_prefix("$ ").unwrap_or(line);
    let line = line.strip_prefix("sudo ").unwrap_or(line);
    if line == "rubus" {
        return Some("");
    }
    line.strip_prefix("rubus ")
}

/// All commands in the documents.
fn shown() -> Vec<Shown> {
    let mut found = Vec::new();
    for (path, text) in documents() {
        let name = path.file_name().expect("a name").to_string_lossy();
        // The heading of a run, and of a live view.
        let is_output = |text: &str| {
            let is_a_version = text.starts_with(|c: char| c.is_ascii_digit());
            is_a_version || text.starts_with("watch  ")
        };
        let mut add = |number: usize, text: &str, is_whole| {
            if !is_output(text) {
                found.push(Shown {
                    place: format!("{name}:{number}"),
                    text: text.to_owned(),
                    is_whole,
                });
            }
        };
        for (number, line, is_code) in lines(&text) {
            if is_code {
                if let Some(text) = typed(line) {
                    add(number, text, true);
                }
                continue;
            }
            let parts: Vec<_> = line.split('`').collect();
            // What is not closed goes on in the next line.
            let closed = parts.iter().take(parts.len() - 1);
            for span in closed.skip(1).step_by(2) {
                if let Some(text) = typed(span) {
                    add(number, text, false);
                }
            }
        }
    }
    assert!(found.len() > 200, "the commands were not found");
    found
}

/// The words of a command as a shell would hand them over, without what stands for something else: `…`, and what is
/// optional, in brackets.
fn words(text: &str) -> Vec<String> {
    let mut words = vec!["rubus".to_owned()];
    let mut is_optional = false;
    for word in text.split_whitespace() {
        if word.starts_with('#') || matches!(word, "|" | "&&" | "&" | ">" | ";" | "\\") {
            break;
        }
        is_optional |= word.starts_with('[');
        let is_left_out = is_optional || word == "…";
        is_optional &= !word.ends_with(']');
        if !is_left_out {
            words.push(word.trim_matches('\'').trim_end_matches('…').to_owned());
        }
    }
    words
}

/// Whether a word stands for what a user fills in, such as FILE.
fn is_a_placeholder(word: &str) -> bool {
    word.chars().all(|c| c.is_ascii_uppercase())
}

/// Why a command is none, or nothing.
fn fault(shown: &Shown) -> Option<String> {
    let words = words(&shown.text);
    let matches = match Args::command().try_get_matches_from(&words) {
        Ok(matches) => matches,
        Err(error) => {
            let is_only_a_part = match error.kind() {
                ErrorKind::MissingRequiredArgument
                | ErrorKind::MissingSubcommand
                | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => true,
                ErrorKind::InvalidValue
                | ErrorKind::ValueValidation
                | ErrorKind::InvalidSubcommand => {
                    let text = error.to_string();
                    let mut placeholders = words.iter().filter(|word| is_a_placeholder(word));
                    placeholders.any(|word| text.contains(&format!("'{word}'")))
                }
                _ => false,
            };
            let is_help =
                matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
            let is_fine = is_help || (is_only_a_part && !shown.is_whole);
            let first = error.to_string().lines().next().unwrap_or_default().to_owned();
            return (!is_fine).then_some(first);
        }
    };
    let (verb, arguments) = matches.subcommand()?;
    if !matches!(verb, "plan" | "apply") {
        return None;
    }
    let mut rest = words.iter().skip_while(|word| *word != verb).skip(1);
    let name = rest.next()?;
    let is_a_name = name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
    if !is_a_name || arguments.subcommand().is_some() {
        return None;
    }
    let Some(recipe) = rubus_recipes::by_name(name) else {
        return Some(format!("there is no recipe {name}"));
    };
    rest.filter(|word| !word.starts_with('-'))
        .filter_map(|word| word.split_once('='))
        .find(|(option, _)| !recipe.options.iter().any(|known| known.name == *option))
        .map(|(option, _)| format!("{name} has no option {option}="))
}

/// The name by which a link reaches a heading, as GitHub makes it.
fn anchor(heading: &str) -> String {
    heading
        .to_lowercase()
        .chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'))
        .map(|c| if c == ' ' { '-' } else { c })
        .collect()
}

/// Whether a document has a heading with this anchor.
fn has_heading(path: &Path, wanted: &str) -> bool {
    let text = fs::read_to_string(path).expect("a document");
    let is_it =
        |line: &str| line.starts_with('#') && anchor(line.trim_start_matches('#').trim()) == wanted;
    lines(&text).iter().any(|(_, line, is_code)| !is_code && is_it(line))
}

#[test]
fn every_command_in_the_documentation_is_one() {
    let faults: Vec<_> = shown()
        .iter()
        .filter_map(|shown| {
            Some(format!("{}: rubus {}: {}", shown.place, shown.text, fault(shown)?))
        })
        .collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn every_example_in_the_help_is_a_command() {
    let examples = help::pages().flat_map(|page| page.examples);
    let faults: Vec<_> = examples
        .filter_map(|(line, _)| {
            let shown = Shown {
                place: String::new(),
                text: typed(line).expect("an example begins with rubus").to_owned(),
                is_whole: true,
            };
            Some(format!("{line}: {}", fault(&shown)?))
        })
        .collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// A command that the program prints, with a device for what is filled in behind a path, and without what stands for words. An
/// option at its end is only mentioned.
fn filled(text: &str) -> String {
    let mut words = Vec::new();
    for word in text.split_whitespace() {
        match word.split_once('{') {
            Some(("", _)) => {}
            Some((before, _)) => words.push(format!("{before}nbd0")),
            None => words.push(word.into()),
        }
    }
    while words.last().is_some_and(|word| word.starts_with("--")) {
        words.pop();
    }
    words.join(" ")
}

/// The commands in a source's literals: whole ones, and in a sentence those between backquotes.
fn in_literals(source: &str) -> Vec<String> {
    let source = source.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
    let parts = source.split("\\\n").enumerate();
    let joined = parts.map(|(at, part)| if at == 0 { part } else { part.trim_start() });
    let joined: Vec<&str> = joined.collect();
    let program = Args::command();
    let is_verb = |text: &str| {
        let first = text.split_whitespace().next().unwrap_or_default();
        program.find_subcommand(first).is_some() && !text.contains(',')
    };
    let mut found = Vec::new();
    for line in joined.concat().lines().filter(|line| !line.trim_start().starts_with("//")) {
        for literal in line.split('"').skip(1).step_by(2) {
            // Other sentences may begin with the program's name.
            let whole = literal.strip_prefix("rubus ").filter(|text| is_verb(text));
            let spans = literal.split('`').skip(1).step_by(2).filter_map(typed);
            found.extend(whole.into_iter().chain(spans).map(filled));
        }
    }
    found
}

/// Every command that a finding, advice, a plan or a message tells to type.
#[test]
fn every_command_in_the_words_of_the_program_is_one() {
    let mut faults = Vec::new();
    let mut count = 0;
    for (name, source) in sources() {
        let is_test = name.contains("test") || name.contains("fixture");
        if is_test || !name.contains("/src/") {
            continue;
        }
        for text in in_literals(&source) {
            count += 1;
            let shown = Shown { place: name.clone(), text, is_whole: false };
            if let Some(fault) = fault(&shown) {
                faults.push(format!("{name}: rubus {}: {fault}", shown.text));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(count > 100, "{count} commands: the literals were not found");
}

#[test]
fn a_wrong_command_in_a_document_is_found() {
    for wrong in [
        "plan desktop disk=/dev/sda",
        "plan dektop device=/dev/sda",
        "history: list",
        "bench . --suit quick",
        "copy /home",
    ] {
        let shown = Shown { place: String::new(), text: wrong.to_owned(), is_whole: true };
        assert!(fault(&shown).is_some(), "{wrong} passes");
    }
}

#[test]
fn every_link_in_the_documentation_leads_somewhere() {
    let mut faults = Vec::new();
    for (path, text) in documents() {
        for (number, line, is_code) in lines(&text) {
            if is_code {
                continue;
            }
            for part in line.split("](").skip(1) {
                let target = part.split(')').next().unwrap_or_default();
                // The page of releases is not a file but beside the files, where a web server shows them.
                if target.contains("://") || target == "../../releases" {
                    continue;
                }
                let (file, heading) = target.split_once('#').unwrap_or((target, ""));
                let file = if file.is_empty() {
                    path.clone()
                } else {
                    path.parent().expect("a directory").join(file)
                };
                let is_there = file.exists();
                if !is_there || (!heading.is_empty() && !has_heading(&file, heading)) {
                    let name = path.file_name().expect("a name").to_string_lossy();
                    faults.push(format!("{name}:{number}: {target}"));
                }
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn the_index_has_every_page() {
    let docs = workspace().join("docs");
    let index = fs::read_to_string(docs.join("README.md")).expect("an index");
    let paths = documents().into_iter().map(|(path, _)| path);
    let pages = paths.filter_map(|path| Some(path.strip_prefix(&docs).ok()?.to_owned()));
    let pages: Vec<_> = pages.filter(|page| page != Path::new("README.md")).collect();
    assert!(pages.len() > 30, "the pages were not found");
    for page in pages {
        let page = page.display();
        assert!(index.contains(&format!("]({page}")), "docs/README.md has no link to {page}");
    }
}

/// The tables of data that the book puts into the pages.
fn tables() -> BTreeSet<PathBuf> {
    let file = |line: &str| {
        let file = line.strip_prefix("<!-- table ")?.strip_suffix(" -->")?;
        Some(workspace().join(file))
    };
    let documents = documents();
    documents.iter().flat_map(|(_, text)| text.lines().filter_map(file)).collect()
}

#[test]
fn every_table_of_data_is_shown_in_a_page_and_has_as_many_cells_in_each_row() {
    let shown = tables();
    let kept = fs::read_dir(workspace().join("docs/data")).expect("the tables");
    for table in kept.map(|entry| entry.expect("an entry").path()) {
        assert!(shown.contains(&table), "no page shows {}", table.display());
    }
    for table in shown {
        let text = fs::read_to_string(&table);
        let text = text.unwrap_or_else(|why| panic!("{}: {why}", table.display()));
        let cells: BTreeSet<usize> = text.lines().map(|line| line.split('\t').count()).collect();
        assert_eq!(cells.len(), 1, "cells in the rows of {}", table.display());
        assert!(text.lines().count() > 1, "{} has no rows", table.display());
    }
}

#[test]
fn the_readme_is_short() {
    let text = fs::read_to_string(workspace().join("README.md")).expect("a README");
    let count = text.split_whitespace().count();
    assert!(count <= 900, "{count} words");
    assert!(text.contains("scripts/test"), "it says how to test");
}

#[test]
fn the_dashboard_and_the_alerts_use_metrics_that_are_written() {
    let written = sources().into_iter();
    let mut writers = written.filter(|(name, _)| name.ends_with("/prometheus.rs"));
    let (_, writer) = writers.next().expect("what writes the metrics");
    for name in ["rubus-alerts.yml", "grafana-dashboard.json"] {
        let text = fs::read_to_string(workspace().join("contrib").join(name)).expect(name);
        let is_in_a_name = |c: char| c.is_ascii_lowercase() || c == '_';
        let metrics: Vec<_> = text
            .split("rubus_")
            .skip(1)
            .filter_map(|rest| rest.split(|c| !is_in_a_name(c)).next())
            .collect();
        assert!(metrics.len() > 5, "{name} has no metrics");
        for metric in metrics {
            let is_written = writer.contains(&format!("\"{metric}\""));
            assert!(is_written, "{name}: rubus_{metric} is written nowhere");
        }
    }
}
