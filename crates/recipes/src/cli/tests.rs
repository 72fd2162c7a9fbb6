//! Documents that no command prints without root are as their schemas say.

use rubus_fixtures::validator::{Document, must_be_valid};
use rubus_machine::parse::btrfs::Compression;
use rubus_vocabulary::next_step::NextStep;
use serde_json::Value;

use super::verify::{
    CompressionAt, CompressionSeen, VerifiedChange, VerifyDocument, ZswapCounters,
};
use rubus_change::fixture::long_plan::big_plan;
use rubus_change::fixture::plans::small_plan;
use rubus_change::plan::journal;
use rubus_change::plan::verify::{Answer, PromiseState};

/// Every kind of line of a journal.
fn journal_lines() -> Vec<journal::Record> {
    use journal::{Receipt, Record, Way};
    let now = || "2026-11-21T01:02:03Z".to_string();
    let receipt = Receipt { planned: "as planned".into(), live: "as found".into() };
    let (way, step) = (Way::Apply, 0);
    let (at, boot) = (now(), Some("a boot".into()));
    let (disk, words) = ("/dev/sda".into(), "SERIAL".into());
    let ends = Some("a sum".into());
    let why = "asked for".into();
    vec![
        Record::Turned { way, why, at },
        Record::Confirmed { disk, words, ends, boot: boot.clone() },
        Record::Begun { step },
        Record::Done { step, receipt },
        Record::Refused { step },
        Record::OnTrial { at: now(), boot },
        Record::Committed { at: now() },
        Record::Finished { way: Way::Undo, at: now(), boot: None },
    ]
}

#[test]
fn plans_journals_and_verifications_are_as_their_schemas_say() {
    let value = |it: &dyn Fn() -> serde_json::Result<Value>| it().expect("JSON");
    let mut all: Vec<Document> = Vec::new();
    for plan in [small_plan(), big_plan()] {
        let plan = value(&|| serde_json::to_value(&plan));
        all.push((format!("plan {}", plan["recipe"]), "plan", plan));
    }
    for line in journal_lines() {
        let line = value(&|| serde_json::to_value(&line));
        all.push((format!("journal {}", line["record"]), "journal", line));
    }
    let compression = Compression::default();
    let seen = CompressionSeen::Known { share: 0.5, files: &compression };
    let unknown = CompressionSeen::Unknown { unknown: "busy" };
    let at = |seen| CompressionAt { at: "/".into(), seen };
    let promises = [Answer {
        what: "swap is on".into(),
        standing: PromiseState::Holds,
        found: "it is".into(),
    }];
    let words = ["a remark".to_string()];
    let verified = VerifyDocument {
        holds: true,
        next: NextStep::by_hand("nothing"),
        changes: vec![VerifiedChange {
            name: "swap-1",
            title: "Swap",
            is_finished: true,
            is_on_trial: false,
            is_kept_now: false,
            started_since: true,
            holds: true,
            promises: &promises,
            compression: vec![at(seen), at(unknown)],
            zswap: ZswapCounters { enabled: Some(true), counters: [("stored_pages", 7)].into() },
            remarks: &words,
        }],
        half_undone: &words,
    };
    let verified = value(&|| serde_json::to_value(&verified));
    all.push(("a verification".into(), "verify", verified));
    must_be_valid(&all);
}
