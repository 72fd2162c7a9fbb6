//! The head of the page: what is judged, how, and what came out.

use std::fmt::Write as _;

use super::Subject;
use super::case::Kind;
use super::judge::{COVERAGE, DIFFERS_BY, IN_ORDER, Judgement, MEDIAN, NINETIETH, Score};

const INTRODUCTION: &str = "\
# How right the model is

Made by `rubus-lab model --write MODEL.md` (root, Linux; about 70 minutes on a quiet machine). The model says what a storage path
gives from what its stages were measured to give alone. Here each case measures the stages alone, predicts, and then measures the
whole path with the engine of `rubus bench`. What a stage was taken from is no case. Every case is in the tables, misses included.
`rubus-lab model --judge MODEL.md` makes this summary again from the digits in the tables, and `--only SUBJECT --write MODEL.md` measures
some of them again. Digits differ from run to run: of four subjects that were measured twice on one virtual machine (network, cipher, compressing,
kernel), the medians of the errors were up to 3 points apart, the 90th percentiles up to 11, and the coverage up to 4.

What a case is worth differs by its *kind*:

- *blind*: the stages were measured alone, the lab throttled nothing, and the whole was predicted before it was measured. The model can lose.
  These are servers of network disks: at depths between two at which they were measured before, and decoding (LUKS, zlib, zstd) for
  each read, at sizes and depths other than the one size from which it is known what decoding takes; compression by btrfs, from the
  method's speed outside any filesystem; and on emulated boards devices and layers of the kernel, USB bridges and NVMe, which were
  measured one by one and never together (of the way to a network disk behind netem, its delay, rate and loss are known).
- *composition*: stages that were measured apart, but their limits are the lab's own throttles and delays: stripes, md, ciphers, slow
  network disks, and commits of several writers, whose shared writes are counted on faster devices.
- *interpolation*: between sizes or depths of one sweep.
- *identity*: what is predicted is held by its inputs, or one stage that was measured alone is all that counts: compression by btrfs that
  the disk limits, commits by one writer or of a single write, a lone request before a delay that was measured with one, swap, and a stripe of one member.

No spinning disk, flash translation layer, card or USB bridge of metal was predicted. The aims are judged by composition and blind cases alone, since
the others say little of the model.

- *error*: predicted against measured, as a share of the measured rate; positive when predicted too fast.
- *coverage*: share of the cases that hold. *holds*: the 95 % intervals of prediction and measurement have a number in common. If both
  were right, more than 99 % would; the others are predicted surer than the model knows.
- *held out*: nothing of the model was chosen by looking at the case; where *chosen* stands, something was. Where a miss taught what must be
  measured alone, the set-up was changed to one that had not been looked at, or is marked.
- *starved*: share of the time in which some program waited for a processor. What hardly needs a processor is measured again, up to
  twice, when that exceeds 25 %; `!` marks what was disturbed to the end. What needs the processors itself is measured more than once, and
  the fastest counts; servers that decode are measured once.
- *alternatives*: what serves the same purpose within one table. *in order*: pairs of them whose measured rates differ by more than 20 %, and
  the faster was predicted faster; *close*: those of them that differ by less than 50 %. Servers of network disks are alternatives at the
  same depth.
";

/// What the lines begin with that tell of the run, and that no table holds.
pub(super) const FACTS: [&str; 5] =
    ["Machine: ", MEASURED_AGAIN, "Predictions: ", NOT_MEASURED, NOT_JUDGED];
/// Begins the line of subjects that were measured in a run of their own.
pub(super) const MEASURED_AGAIN: &str = "Measured again: ";
/// Begins the line of a subject that could not be measured.
pub(super) const NOT_MEASURED: &str = "Not measured: ";
/// Begins the line of a case that cannot be judged.
pub(super) const NOT_JUDGED: &str = "Not judged: ";

/// The line of a case that cannot be judged.
pub(super) fn not_judged(why: &str) -> String {
    format!("{NOT_JUDGED}{why}.")
}

/// Everything above the tables. The facts are lines that begin as [`FACTS`] do.
pub(super) fn head(facts: &[String], scores: &[Score]) -> String {
    let mut head = String::from(INTRODUCTION);
    for fact in facts {
        let _ = writeln!(head, "\n{fact}");
    }
    head.push_str("\n| cases | number | median error | 90th percentile | worst | coverage | pairs in order | close pairs in order |\n|---|---:|---:|---:|---:|---:|---:|---:|\n");
    let is_judged = |score: &&Score| score.kind.is_judged();
    let judged = Judgement::of(scores.iter().filter(is_judged));
    row(&mut head, "**composition and blind**", &judged);
    for kind in Kind::ALL {
        let of_it = scores.iter().filter(|score| score.kind == kind);
        row(&mut head, kind.name(), &Judgement::of(of_it));
    }
    let held_out = scores.iter().filter(is_judged).filter(|score| score.is_held_out);
    row(&mut head, "composition and blind, held out", &Judgement::of(held_out));
    let calm = scores.iter().filter(is_judged).filter(|score| !score.is_disturbed);
    row(&mut head, "composition and blind, undisturbed", &Judgement::of(calm));
    for subject in Subject::ALL {
        let of_it = Judgement::of(scores.iter().filter(|score| score.subject == subject));
        if of_it.cases > 0 {
            row(&mut head, &subject.name(), &of_it);
        }
    }
    let _ = writeln!(head, "\n{}", verdict(&judged));
    head
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

    fn table_and_verdict(scores: &[Score]) -> String {
        let facts = ["Machine: a small one; 5 s.".to_string()];
        let head = head(&facts, scores);
        let rest = head.strip_prefix(INTRODUCTION).expect("the introduction");
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
