//! Trials as their readers see them.

use rubus_draw::Style;

use crate::candidates::Candidates;
use crate::course::{Comparison, Ended, Trial};
use crate::decide::{Effect, Word};
use crate::place::Place;
use crate::report::{Around, TuneDocument};
use crate::setting::{Candidate, NotTried, Risk, Setting, Work};
use crate::text::render;

fn place() -> Place {
    Place {
        path: "/mnt/ssd".into(),
        filesystem: "ext4".into(),
        disk: "sda".into(),
        stacked_on: None,
        is_loop: false,
        is_usb: true,
        options: Vec::new(),
    }
}

fn candidate(setting: Setting, from: &str, to: &str, works: &[Work]) -> Candidate {
    Candidate {
        setting,
        from: from.into(),
        to: to.into(),
        knobs: Vec::new(),
        works: works.to_vec(),
        does: "does what it does",
        source: "a page",
        risk: if setting == Setting::Governor { Risk::Heat } else { Risk::Latency },
        set_by: Vec::new(),
    }
}

fn candidates() -> Candidates {
    Candidates {
        tried: vec![
            candidate(Setting::ReadAhead, "128", "2048", &[Work::LargeRead]),
            candidate(Setting::Scheduler, "mq-deadline", "bfq", &[Work::DeepRead, Work::MixedRead]),
            candidate(Setting::Governor, "ondemand", "performance", &[Work::SmallRead]),
        ],
        not_tried: vec![NotTried {
            setting: "UAS".into(),
            why: "it cannot be changed safely while the disk is in use; see `rubus recipes usb-quirk`".into(),
        }],
    }
}

fn comparison(
    candidate: usize,
    work: Work,
    [ratio, low, high]: [f64; 3],
    word: Word,
) -> Comparison {
    Comparison {
        candidate,
        work,
        rounds: vec![crate::decide::Round { rates: [1.0, ratio], operations: [1, 1] }; 12],
        effect: Some(Effect { ratio, low, high }),
        word,
        trouble: None,
    }
}

fn trial(comparisons: Vec<Comparison>, ended: Option<Ended>) -> TuneDocument {
    let trial = Trial { comparisons, ended, is_out_of_time: false };
    let around = Around { seconds: 754.0, bytes_written: 1 << 30, ..Around::default() };
    TuneDocument::new(&place(), &candidates(), &trial, around)
}

fn shown(document: &TuneDocument) -> String {
    let text = render(document, Style::PLAIN);
    for line in text.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
    assert!(document.answer.split_whitespace().count() <= 25, "{}", document.answer);
    text
}

#[test]
fn one_that_helps() {
    let document = trial(
        vec![
            comparison(0, Work::LargeRead, [1.18, 1.12, 1.24], Word::Helps),
            comparison(1, Work::DeepRead, [1.002, 0.985, 1.021], Word::NoDifference),
            comparison(1, Work::MixedRead, [0.81, 0.7, 0.93], Word::Hurts),
            comparison(2, Work::SmallRead, [1.04, 0.97, 1.12], Word::NotSettled),
        ],
        None,
    );
    insta::assert_snapshot!(shown(&document));
}

#[test]
fn settings_that_are_right() {
    let none = [1.001, 0.99, 1.012];
    let document = trial(
        vec![
            comparison(0, Work::LargeRead, none, Word::NoDifference),
            comparison(1, Work::DeepRead, none, Word::NoDifference),
            comparison(2, Work::SmallRead, none, Word::NoDifference),
        ],
        None,
    );
    insta::assert_snapshot!(shown(&document));
}

#[test]
fn a_disk_that_went_away_and_a_setting_that_another_program_changed() {
    let mut blind = comparison(0, Work::LargeRead, [1.0; 3], Word::NotSettled);
    blind.trouble = Some(
        "it cannot see sda: of 210 MB read only 3 MB came from it, the rest from a cache above it"
            .into(),
    );
    let mut document = trial(
        vec![blind, comparison(1, Work::DeepRead, [1.3, 0.9, 1.9], Word::NotSettled)],
        Some(Ended::Failed("the target failed during 'small reads': Input/output error".into())),
    );
    document.unrestored =
        vec!["/sys/block/sda/queue/scheduler was changed to kyber by another program meanwhile, and stays".into()];
    insta::assert_snapshot!(shown(&document));
}

#[test]
fn a_list_of_what_would_be_tried() {
    let mut all = candidates();
    all.tried[1].set_by = vec!["/etc/udev/rules.d/60-mine.rules".into()];
    insta::assert_snapshot!(shown(&TuneDocument::list(&place(), &all, 1200.0, 1 << 30)));
}
