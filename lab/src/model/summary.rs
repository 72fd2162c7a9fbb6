//! The page: what is judged, how, and what came out.

use std::fmt::Write as _;

use anyhow::Result;
use rubus_advise::seeds;

use super::case::Kind;
use super::judge::{COVERAGE, DIFFERS_BY, IN_ORDER, Judgement, MEDIAN, NINETIETH, Score};
use super::table;
use super::{Report, Subject};

const INTRODUCTION: &str = "\
# How right the model is

The model of [`rubus advise`](docs/explanation/advise.md) says what a storage path gives from what
its stages give alone. Each case measures the stages alone, predicts, and then measures the whole
path with the engine of `rubus bench`. What a stage was taken from is no case.
Every case is in [MODEL.cases.tsv](MODEL.cases.tsv), misses included, and every prediction in
[MODEL.predictions.jsonl](MODEL.predictions.jsonl).

| to do | command |
|---|---|
| measure everything again (root, about 70 minutes on a quiet machine) | `rubus-lab model --write MODEL.md` |
| measure some subjects again | `rubus-lab model --only SUBJECT --write MODEL.md` |
| make this page again from its table, measuring nothing | `rubus-lab model --judge MODEL.md` |
| print every case, how each subject was measured, and predictions of published figures | `rubus-lab model --show MODEL.md` |

Results differ from run to run. Of four subjects that were measured twice on one virtual machine
(network, cipher, compressing, kernel), the median errors were up to 3 points apart, the 90th
percentiles up to 11, and the coverage up to 4.

## Kinds of cases

The aims are judged by blind cases and compositions alone; the others say little of the model.

- *blind*: the stages were measured alone, the lab throttled nothing, and the whole was predicted
  before it was measured. The model can lose. These are servers of network disks, at depths between
  those that were measured; decoding (LUKS, zlib, zstd) for each read, at other sizes and depths;
  compression by btrfs, from the method's speed outside any filesystem; and on emulated boards the
  kernel's devices and layers, USB bridges and NVMe, measured one by one and never together.
- *composition*: stages that were measured apart, limited by the lab's own throttles and delays:
  stripes, md, ciphers, slow network disks, and commits of several writers.
- *interpolation*: between sizes or depths of one sweep.
- *identity*: the inputs already hold the answer, or only one stage counts: compression that the
  disk limits, commits by one writer, a lone request before a delay, swap, a stripe of one member.

No spinning disk, flash translation layer, card or USB bridge of metal was predicted.

## Columns

- *error*: prediction against measurement, as a share of the measured rate; positive when predicted
  too fast.
- *holds*: the 95 % intervals of prediction and measurement have a number in common. If both were
  right, more than 99 % would. *coverage*: share of the cases that hold.
- *chosen*: something of the model was chosen by looking at the case; the others are *held out*.
  Where a miss taught what must be measured alone, the set-up was changed to one that had not been
  looked at, or is marked.
- *starved*: share of the time in which some program waited for a processor. What hardly needs one
  is measured again, up to twice, when that exceeds 25 %; *disturbed* marks what was disturbed to
  the end. What needs the processors itself is measured several times, and the fastest counts;
  servers that decode are measured once.
- *alternatives*: cases of a subject that serve the same purpose. *in order*: pairs of them whose
  rates differ by more than 20 %, and the faster was predicted faster. *close*: those that differ by
  less than 50 %.

## Results
";

/// What the lines begin with that tell of the run, and that the table of cases does not hold.
pub(super) const FACTS: [&str; 5] =
    [MACHINE, MEASURED_AGAIN, PREDICTIONS, NOT_MEASURED, NOT_JUDGED];
/// Begins the line of the machine.
const MACHINE: &str = "Machine: ";
/// Begins the line of the file of predictions.
const PREDICTIONS: &str = "Predictions: ";
/// Begins the line of subjects that were measured in a run of their own.
pub(super) const MEASURED_AGAIN: &str = "Measured again: ";
/// Begins the line of a subject that could not be measured.
pub(super) const NOT_MEASURED: &str = "Not measured: ";
/// Begins the line of a case that cannot be judged.
pub(super) const NOT_JUDGED: &str = "Not judged: ";

/// The page of a run.
///
/// # Errors
/// When a row cannot be judged.
pub fn of_report(report: &Report) -> Result<String> {
    Ok(page(&facts(report), &table::scores(&report.rows())?))
}

/// What the table of cases does not hold.
fn facts(report: &Report) -> Vec<String> {
    let mut facts = vec![
        format!("{MACHINE}{}", on_machine(report)),
        format!(
            "{PREDICTIONS}each was written to `{}` before the whole that it predicts was measured, and is judged as it stands there.",
            report.predictions
        ),
    ];
    for (subject, reason) in &report.left_out {
        facts.push(format!("{NOT_MEASURED}{} ({reason}).", subject.name()));
    }
    let refused = report.refused.iter();
    facts.extend(refused.map(|why| not_judged(why)));
    // One line each, as they are found again.
    facts.iter().map(|fact| fact.replace('\n', " ")).collect()
}

/// Where it was measured, and how long that took.
pub(super) fn on_machine(report: &Report) -> String {
    format!("{}; {:.0} s.", report.machine, report.elapsed_s)
}

/// The line of a case that cannot be judged.
pub(super) fn not_judged(why: &str) -> String {
    format!("{NOT_JUDGED}{why}.")
}

/// The page. The facts are lines that begin as [`FACTS`] do.
pub(super) fn page(facts: &[String], scores: &[Score]) -> String {
    let mut page = String::from(INTRODUCTION);
    for fact in facts {
        let _ = writeln!(page, "\n{fact}");
    }
    page.push_str("\n| cases | number | median error | 90th percentile | worst | coverage | pairs in order | close pairs in order |\n|---|---:|---:|---:|---:|---:|---:|---:|\n");
    let is_judged = |score: &&Score| score.kind.is_judged();
    let judged = Judgement::of(scores.iter().filter(is_judged));
    row(&mut page, "**composition and blind**", &judged);
    for kind in Kind::ALL {
        let of_it = scores.iter().filter(|score| score.kind == kind);
        row(&mut page, kind.name(), &Judgement::of(of_it));
    }
    let held_out = scores.iter().filter(is_judged).filter(|score| score.is_held_out);
    row(&mut page, "composition and blind, held out", &Judgement::of(held_out));
    let calm = scores.iter().filter(is_judged).filter(|score| !score.is_disturbed);
    row(&mut page, "composition and blind, undisturbed", &Judgement::of(calm));
    for subject in Subject::ALL {
        let of_it = Judgement::of(scores.iter().filter(|score| score.subject == subject));
        if of_it.cases > 0 {
            row(&mut page, &subject.name(), &of_it);
        }
    }
    let _ = writeln!(page, "\n{}", verdict(&judged));
    page + &published()
}

/// How many of the figures that others published the model predicts.
fn published() -> String {
    let cases = seeds::cases();
    let agree = cases.iter().filter(|case| case.agrees()).count();
    format!(
        "\nPublished figures, predicted from others of the same article: {agree} of {} agree. They differ by less than {}, or the \
         interval of the prediction holds the figure.\n",
        cases.len(),
        percent(seeds::AGREES_WITHIN)
    )
}

fn row(table: &mut String, name: &str, judged: &Judgement) {
    if judged.cases == 0 {
        let _ = writeln!(table, "| {name} | 0 | | | | | | |");
        return;
    }
    let _ = writeln!(
        table,
        "| {name} | {} | {} | {} | {} | {} | {} of {} | {} of {} |",
        judged.cases,
        percent(judged.median),
        percent(judged.ninetieth),
        percent(judged.worst),
        percent(judged.coverage()),
        judged.in_order,
        judged.pairs,
        judged.close_in_order,
        judged.close
    );
}

fn verdict(judged: &Judgement) -> String {
    let aims = format!(
        "Aimed at, over composition and blind alone: median ≤ {}, 90th percentile ≤ {}, coverage ≥ {}, ≥ {} of the pairs that differ by \
         more than {} in order",
        percent(MEDIAN),
        percent(NINETIETH),
        percent(COVERAGE),
        percent(IN_ORDER),
        percent(DIFFERS_BY)
    );
    if judged.cases == 0 {
        return format!("{aims}: not judged, since no such case was measured.");
    }
    let missed = judged.missed().into_iter();
    let missed: Vec<String> =
        missed.map(|(aim, reached)| format!("{} ({})", aim.name(), percent(reached))).collect();
    match missed.as_slice() {
        [] => format!("{aims}: met."),
        _ => format!("{aims}: **not met**. Missed: {}.", missed.join(", ")),
    }
}

pub(super) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if (percent - percent.round()).abs() < 0.05 {
        format!("{percent:.0} %")
    } else {
        format!("{percent:.1} %")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::judge::tests::score;
    use crate::model::reread;
    use crate::model::table::tests::case;

    fn table_and_verdict(scores: &[Score]) -> String {
        let facts = ["Machine: a small one; 5 s.".to_string()];
        let page = page(&facts, scores);
        let rest = page.strip_prefix(INTRODUCTION).expect("the introduction");
        let rest = rest.strip_suffix(&published()).expect("the published figures");
        rest.to_string()
    }

    #[test]
    fn only_what_could_be_wrong_is_judged() {
        let mut scores = vec![score(Kind::Identity, 10.0, 100.0); 3];
        scores.push(score(Kind::Interpolation, 50.0, 100.0));
        scores.extend(vec![score(Kind::Composition, 101.0, 100.0); 19]);
        scores.push(score(Kind::Blind, 110.0, 100.0));
        for score in &mut scores[..4] {
            score.overlaps = false;
        }
        scores[4].is_held_out = false;
        scores[23].is_disturbed = true;
        scores[23].subject = Subject::Network;
        assert_eq!(
            table_and_verdict(&scores),
            "
Machine: a small one; 5 s.

| cases | number | median error | 90th percentile | worst | coverage | pairs in order | close pairs in order |
|---|---:|---:|---:|---:|---:|---:|---:|
| **composition and blind** | 20 | 1 % | 1 % | 10 % | 100 % | 0 of 0 | 0 of 0 |
| blind | 1 | 10 % | 10 % | 10 % | 100 % | 0 of 0 | 0 of 0 |
| composition | 19 | 1 % | 1 % | 1 % | 100 % | 0 of 0 | 0 of 0 |
| interpolation | 1 | 50 % | 50 % | 50 % | 0 % | 0 of 0 | 0 of 0 |
| identity | 3 | 90 % | 90 % | 90 % | 0 % | 0 of 0 | 0 of 0 |
| composition and blind, held out | 19 | 1 % | 1 % | 10 % | 100 % | 0 of 0 | 0 of 0 |
| composition and blind, undisturbed | 19 | 1 % | 1 % | 1 % | 100 % | 0 of 0 | 0 of 0 |
| sizes | 23 | 1 % | 82 % | 90 % | 82.6 % | 0 of 0 | 0 of 0 |
| network | 1 | 10 % | 10 % | 10 % | 100 % | 0 of 0 | 0 of 0 |

Aimed at, over composition and blind alone: median ≤ 10 %, 90th percentile ≤ 25 %, coverage ≥ 95 %, ≥ 95 % of the pairs that \
differ by more than 20 % in order: met.
"
        );
    }

    #[test]
    fn the_page_tells_of_the_run() {
        let report = Report {
            cases: vec![case("one", 1e6, 1.25e6)],
            left_out: vec![(Subject::Swap, "needs\nroot".into())],
            refused: vec!["stripes, three: predicted and never measured".into()],
            predictions: "said.jsonl".into(),
            machine: "a small one".into(),
            elapsed_s: 9.0,
        };
        let page = of_report(&report).unwrap();
        for fact in [
            "\nMachine: a small one; 9 s.\n",
            "\nPredictions: each was written to `said.jsonl` before the whole that it predicts was measured, and is judged as it stands \
             there.\n",
            "\nNot measured: swap (needs root).\n",
            "\nNot judged: stripes, three: predicted and never measured.\n",
        ] {
            assert!(page.contains(fact), "{page}");
        }
        assert_eq!(reread::judge(&page, &report.rows()).unwrap(), page);
    }

    #[test]
    fn each_aim_that_is_missed_is_named() {
        let mut scores = vec![score(Kind::Identity, 100.0, 100.0); 100];
        scores.push(score(Kind::Blind, 140.0, 100.0));
        scores.push(score(Kind::Blind, 120.0, 200.0));
        scores[101].overlaps = false;
        let text = table_and_verdict(&scores);
        assert!(
            text.ends_with(
                "in order: **not met**. Missed: the median error (40 %), the 90th percentile (40 %), the coverage (50 %), \
                 the share of pairs in order (0 %).\n"
            ),
            "{text}"
        );
        let none = table_and_verdict(&scores[..2]);
        assert!(none.contains("| blind | 0 | | | | | | |\n"), "{none}");
        assert!(none.ends_with("not judged, since no such case was measured.\n"), "{none}");
    }
}
