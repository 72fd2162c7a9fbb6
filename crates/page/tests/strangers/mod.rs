//! The doors through which files and answers of strangers come in: runs, galleries, fleets, surveys of boards, journals, inventories,
//! answers of smartctl. Whatever comes through one is refused with words, or shown. Tests and fuzzers (`fuzz/`) try them.

use rubus_change::plan::Plan;
use rubus_change::plan::journal::{self, State};
use rubus_draw::style::Style;
use rubus_fleet::compare::{Document, Fleet, compare as compare_fleets};
use rubus_fleet::compare_text;
use rubus_fleet::inventory;
use rubus_machine::text::Extent;
use rubus_runs::compare::{Subject, compare};
use rubus_runs::gallery::entries;
use rubus_runs::text;
use rubus_verdict::text::checkup::Detail;
use rubus_verdict::verdict::verdict;
use rubus_vocabulary::checked_json::from_str;
use rubus_vocabulary::machine::Machine;
use rubus_vocabulary::result::Run;
use rubus_watch::wear;

/// Every part of a survey.
const ALL_OF_IT: Extent = Extent { everything: true, serials: true };

/// What reads the bytes of strangers.
type Reader = fn(&[u8]);

/// All of them, with the names of their corpora.
pub const ALL: [(&str, Reader); 7] = [
    ("run", run),
    ("gallery", gallery),
    ("fleet", fleet),
    ("survey", survey),
    ("journal", journal),
    ("inventory", inventory),
    ("smart", smart),
];

fn is_error(error: &str) -> bool {
    !error.is_empty()
}

/// A run: shown as text and as a page, and compared with itself.
pub fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    match from_str::<Run>(text) {
        Ok(run) => show(&run),
        Err(error) => assert!(is_error(&error)),
    }
}

fn show(run: &Run) {
    assert!(shown(run).len() > 2);
    let _ = rubus_page::render(run, &verdict(run));
    let subjects = [Subject::of_run("before", run), Subject::of_run("after", run)];
    let _ = rubus_page::compare::render(&compare(&subjects));
}

/// What a terminal shows of a run, in each way.
pub fn shown(run: &Run) -> Vec<(&'static str, String)> {
    let verdict = verdict(run);
    let style = Style::PLAIN;
    let subjects = [Subject::of_run("before", run), Subject::of_run("after", run)];
    let comparison = compare(&subjects);
    let of_gallery = entries(&[(None, run.clone())]);
    vec![
        ("the text", text::run::render(run, &verdict, Detail::All, style)),
        ("the headline of a comparison", text::compare::headline(&comparison, 1)),
        ("the gallery", text::gallery::render(&of_gallery, style)),
        ("the survey", rubus_machine::text::render(&run.machine, ALL_OF_IT, style)),
    ]
}

/// A gallery: a run a line.
pub fn gallery(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let runs = text.lines().take(20).filter_map(|line| from_str::<Run>(line).ok());
    let runs: Vec<(Option<String>, Run)> = runs.map(|run| (None, run)).collect();
    let entries = entries(&runs);
    let _ = text::gallery::render(&entries, Style::PLAIN);
    let _ = rubus_page::gallery::render(&entries, "1");
}

/// The document of a fleet, compared with itself.
pub fn fleet(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let Ok(document) = from_str::<Document>(text) else {
        return;
    };
    let fleet = Fleet { name: "fleet", document: &document };
    let comparison = compare_fleets(fleet, fleet);
    let _ = compare_text::render(&comparison, Style::PLAIN);
}

/// What a board says of itself.
pub fn survey(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    if let Ok(machine) = from_str::<Machine>(text) {
        let _ = rubus_machine::text::render(&machine, ALL_OF_IT, Style::PLAIN);
    }
}

/// A plan and, after a line of its own, the journal of its application.
pub fn journal(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let (plan, records) = text.split_once("\n---\n").unwrap_or(("", &text));
    let whole = journal::whole_bytes(records);
    assert!(records.is_char_boundary(whole));
    let Ok(records) = journal::parse(records) else {
        return;
    };
    if let Ok(plan) = from_str::<Plan>(plan)
        && let Ok(state) = State::replay(&plan, &records)
    {
        let _ = (state.next(), state.is_half_done(), state.not_done_after_trial());
    }
}

/// An inventory, in whatever form it looks like.
pub fn inventory(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    for file in ["hosts", "hosts.yml", "fleet.toml"] {
        if let Err(error) = inventory::read(file, &text) {
            assert!(is_error(&error));
        }
    }
}

/// An answer of smartctl.
pub fn smart(bytes: &[u8]) {
    let answer = String::from_utf8_lossy(bytes);
    let told = wear::smart::parse("sda", &answer).with_filesystems(Some(1 << 40));
    let _ = wear::text::lines(&told, wear::text::Years::NoRate);
    let _ = wear::findings(&[told]);
}
