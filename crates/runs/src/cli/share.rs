//! `rubus share`: a run in a file that can be published.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Args;
use rubus_command::{Exit, General, message, places};
use rubus_vocabulary::result::Run;
use rubus_vocabulary::units::bytes_iec;
use rubus_vocabulary::verb::{PLAIN, Page};

use crate::named::{open_history, run_id};
use crate::share::Counts;
use crate::shown::shown;

/// Exit statuses and examples.
pub(super) const PAGE: Page = Page {
    name: "rubus-share",
    statuses: PLAIN,
    examples: &[("rubus share last my-card.json", "Write the last run to a file to publish.")],
};

/// Write a run to a file that can be published: without serial numbers, addresses and names.
///
/// A value is in the file only if a rule lets its field through: numbers, words from closed lists,
/// models, sizes. Serial numbers, UUIDs, servers and paths of your own become counted pseudonyms
/// (server-1); other texts are left out. The label stays. `rubus share last -` shows the file first.
/// `rubus compare` and `rubus gallery` read it, `rubus history import` adds it to a history.
#[derive(Debug, Args)]
pub struct Share {
    /// The run: its number, its label, last, last~1
    #[arg(value_name = "RUN", default_value = "last")]
    pub run: String,
    /// The file; `-` is standard output [default: named for the board, the disk and the day]
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,
}

/// Writes the run.
pub fn run(general: &General, args: &Share) -> anyhow::Result<Exit> {
    let history = open_history()?;
    let id = run_id(&history, &args.run)?;
    let mut bytes = Vec::new();
    let counts = history.export(Some(&[id]), true, &mut bytes)?.counts;
    let text = String::from_utf8(bytes).context("the run is not UTF-8")?;
    let file = match &args.file {
        Some(file) => file.clone(),
        // The name is published with the file.
        None => default_name(&shown(&history.get(id)?.run, false)?),
    };
    let label = history.get(id)?.summary.label;
    if file == Path::new("-") {
        places::say(&text)?;
        if !general.quiet {
            message!("run {id}: {}", counted(counts, label.is_some()));
        }
        return Ok(Exit::Fine);
    }
    // A name that was given may be used again; one of the program's own is not anybody's wish to lose a file.
    if args.file.is_none() && file.exists() {
        bail!(
            "{} exists already; name the file to replace it: rubus share {} {}",
            file.display(),
            args.run,
            file.display()
        );
    }
    places::write_whole(&file, &text)?;
    if !general.quiet {
        message!(
            "wrote run {id} to {} ({}): {}",
            file.display(),
            bytes_iec(text.len() as u64),
            counted(counts, label.is_some())
        );
    }
    Ok(Exit::Fine)
}

/// "812 facts, 14 replaced by pseudonyms, 3 left out, 1 free text (your label)".
fn counted(counts: Counts, has_label: bool) -> String {
    let free = if has_label { "1 free text (your label)" } else { "no free text" };
    format!(
        "{} facts, {} replaced by pseudonyms, {} left out, {free}",
        counts.facts, counts.replaced, counts.dropped
    )
}

/// `rubus-raspberry-pi-3-model-b-sc64g-2026-11-21.json`.
fn default_name(run: &Run) -> PathBuf {
    let device = run.target.device.as_deref();
    let measured = device.and_then(|name| run.machine.measured_device(name));
    let model = measured.and_then(|device| device.model.text());
    let day = run.started.split('T').next();
    let parts = [run.machine.board.model.text(), model.or(device), day];
    let words = parts.into_iter().flatten().map(in_a_name);
    let words: Vec<String> = words.filter(|word| !word.is_empty()).collect();
    PathBuf::from(format!("rubus-{}.json", words.join("-")))
}

/// Small letters and digits, with one dash for everything between them; at most 40.
fn in_a_name(text: &str) -> String {
    let mut name = String::new();
    for c in text.to_lowercase().chars() {
        match c {
            c if c.is_ascii_alphanumeric() => name.push(c),
            _ if !name.is_empty() && !name.ends_with('-') => name.push('-'),
            _ => {}
        }
    }
    name.truncate(40);
    name.trim_end_matches('-').into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rubus_fixtures as fixture;

    #[test]
    fn the_name_says_board_disk_and_day() {
        let name = default_name(&fixture::slow_sd_card_run());
        let name = name.to_str().unwrap();
        assert!(
            name.starts_with("rubus-raspberry-pi-3-model-b") && name.ends_with("-2026-11-21.json"),
            "{name}"
        );
        assert_eq!(in_a_name(" ../A/b  ü! "), "a-b");
    }

    #[test]
    fn the_name_has_nothing_that_the_file_leaves_out() {
        let mut run = fixture::slow_sd_card_run();
        run.target.device = Some("qzalicedisk".into());
        let mac = "b8:27:eb:3a:2b:1c";
        run.machine.board.model = rubus_vocabulary::fact::Fact::known(format!("Pi {mac}"), "x");
        let name = default_name(&shown(&run, false).unwrap()).display().to_string();
        assert!(!name.contains("qzalice") && !name.contains("3a-2b-1c"), "{name}");
    }
}
