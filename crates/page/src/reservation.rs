//! What a headline must not hide: how uncertain it is, said in the same paragraph.

use rubus_advise::advice::{Advice, Basis, Candidate};
use rubus_runs::compare::Comparison;
use rubus_runs::text::run::is_checkup;
use rubus_verdict::verdict::Verdict;
use rubus_vocabulary::doubt::Doubt;
use rubus_vocabulary::finding::Finding;
use rubus_vocabulary::result::{JobResult, Run};
use rubus_vocabulary::subject_job::SubjectDoubt;

use rubus_draw::text::listed;

/// Kinds of doubt, as in the JSON of a run, that may have changed a rate. The others limit something
/// else (percentiles, what was watched) and stay in their section.
const DISTURBING: [&str; 15] = [
    "above_ceiling",
    "above_link",
    "cpu_starved",
    "cpu_stolen",
    "direct_is_buffered",
    "drift",
    "holes",
    "loop_through_cache",
    "no_flush",
    "other_traffic",
    "still_in_memory",
    "stopped",
    "throttled",
    "through_page_cache",
    "undervoltage",
];

/// Maximum number of reasons or names in a headline; the others are counted.
const MAX_NAMED: usize = 3;

/// The reservation of a run's headline; of a checkup's, the verdict's own: what could turn the answer round.
pub fn of_run(run: &Run, verdict: &Verdict) -> Option<String> {
    let failed = run.doubts.iter().find(|doubt| matches!(doubt, Doubt::TargetFailed { .. }));
    // Suites with a question of their own say so before their answers.
    let cut_short = failed
        .filter(|_| is_checkup(run) || run.results.is_empty())
        .map(|doubt| format!("Cut short: {}.", doubt.what()));
    if is_checkup(run) {
        return joined([cut_short, verdict.reservation.clone()]);
    }
    let reasons = disturbances(run, &run.results.iter().collect::<Vec<_>>());
    let uncertain = (!reasons.is_empty() && !run.results.is_empty())
        .then(|| format!("Uncertain: {}.", some(&reasons).join("; ")));
    joined([cut_short, uncertain])
}

/// What may have changed the rates of these results, each once.
fn disturbances(run: &Run, results: &[&JobResult]) -> Vec<String> {
    let of_jobs = results.iter().flat_map(|result| &result.doubts);
    let mut said: Vec<String> = Vec::new();
    for doubt in of_jobs.chain(&run.doubts).filter(|doubt| is_disturbing(run, doubt)) {
        let what = doubt.what();
        if !said.contains(&what) {
            said.push(what);
        }
    }
    said
}

/// A rate that falls off a cliff was no disturbance: the cliff is the answer.
fn is_disturbing(run: &Run, doubt: &Doubt) -> bool {
    let is_cliff = |finding: &Finding| matches!(finding, Finding::Cliff(_));
    let is_answer = matches!(doubt, Doubt::Drift { .. }) && run.findings.iter().any(is_cliff);
    !is_answer && DISTURBING.contains(&SubjectDoubt::of(doubt).kind.as_str())
}

/// The reservation of an advice's headline: what was not measured, and whether the gain is certain.
pub fn of_advice(advice: &Advice) -> Option<String> {
    let best = advice.candidates.first()?;
    let now = advice.now().filter(|now| now.name != best.name);
    let compared: Vec<&Candidate> = [Some(best), now].into_iter().flatten().collect();
    let with = |basis: Basis| -> Vec<&str> {
        let known_so = compared.iter().filter(|one| one.basis.time_s == basis);
        known_so.map(|one| one.label()).collect()
    };
    let sentence = |names: Vec<&str>, how: &str| {
        (!names.is_empty()).then(|| format!("The figures of {} are {how}.", list(&names)))
    };
    let overlap = now.is_some_and(|now| best.time_s.high >= now.time_s.low);
    joined([
        sentence(with(Basis::Published), "published ones"),
        sentence(with(Basis::Unsettled), "of runs that did not settle, marked ?"),
        sentence(with(Basis::Assumed), "assumed, marked ~"),
        overlap.then(|| "The intervals overlap: the gain is uncertain.".to_string()),
    ])
}

/// The reservation of what a comparison says of a subject against the baseline.
pub fn of_comparison(comparison: &Comparison, place: usize) -> Option<String> {
    let differs: Vec<&str> = comparison
        .differences
        .iter()
        .filter(|difference| difference.values.first() != difference.values.get(place))
        .map(|difference| difference.what.as_str())
        .collect();
    let is_disturbed = |subject: usize| {
        let mut doubts = comparison.doubts.iter();
        doubts.any(|doubt| doubt.subject == subject && DISTURBING.contains(&doubt.kind.as_str()))
    };
    let disturbed: Vec<&str> = [0, place]
        .into_iter()
        .filter(|subject| is_disturbed(*subject))
        .map(|subject| comparison.subjects[subject].name.as_str())
        .collect();
    let verb = if disturbed.len() == 1 { "was" } else { "were" };
    joined([
        (!differs.is_empty())
            .then(|| format!("Not like for like: they differ in {}.", list(&differs))),
        (!disturbed.is_empty())
            .then(|| format!("Uncertain: {} {verb} disturbed.", list(&disturbed))),
    ])
}

/// The sentences that there are.
pub fn joined<const N: usize>(sentences: [Option<String>; N]) -> Option<String> {
    let said: Vec<String> = sentences.into_iter().flatten().collect();
    (!said.is_empty()).then(|| said.join(" "))
}

/// "a, b and c", of many "a, b, c and 2 more".
fn list(names: &[&str]) -> String {
    listed(&some(names))
}

/// The first few, and how many more there are.
fn some<T: AsRef<str>>(all: &[T]) -> Vec<String> {
    // One more is named rather than counted.
    let is_long = all.len() > MAX_NAMED + 1;
    let named = if is_long { MAX_NAMED } else { all.len() };
    let rest = is_long.then(|| format!("{} more", all.len() - named));
    all[..named].iter().map(|name| name.as_ref().to_string()).chain(rest).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rubus_fixtures as fixture;
    use rubus_runs::compare::{Subject, compare};
    use rubus_stats::estimate::Estimate;
    use rubus_verdict::verdict::verdict;
    use rubus_vocabulary::result::Outcome;

    fn reservation(run: &Run) -> String {
        of_run(run, &verdict(run)).unwrap_or_default()
    }

    fn calm() -> Run {
        let mut run = fixture::slow_sd_card_run();
        run.doubts.clear();
        for result in &mut run.results {
            result.doubts.clear();
            result.outcome = Outcome::Converged;
        }
        run
    }

    #[test]
    fn what_settled_undisturbed_has_none() {
        assert_eq!(reservation(&calm()), "");
    }

    /// The same words as on a terminal.
    #[test]
    fn a_checkup_has_that_of_its_verdict() {
        let mut run = calm();
        for result in &mut run.results {
            result.doubts = vec![Doubt::CpuStarved { share: 0.65 }];
        }
        assert_eq!(reservation(&run), "But the test waited for a processor 65 % of the time.");
    }

    #[test]
    fn a_target_that_failed_is_said_with_the_headline() {
        let said = reservation(&fixture::failed_run());
        assert!(said.starts_with("Cut short: the target failed"), "{said}");
        assert!(!said.contains("Uncertain"), "{said}");
    }

    #[test]
    fn the_fall_that_a_suite_looks_for_is_no_disturbance() {
        let said = reservation(&fixture::sustained_run());
        assert!(said.starts_with("Uncertain: the clock was held down"), "{said}");
        assert!(!said.contains("fell"), "{said}");
    }

    #[test]
    fn every_kind_that_disturbs_is_one_that_exists() {
        for name in DISTURBING {
            let unknown = serde_json::from_value::<Doubt>(serde_json::json!({ "kind": name }));
            let error = unknown.err().map(|error| error.to_string());
            let error = error.unwrap_or_default();
            assert!(!error.contains("unknown variant"), "{error}");
        }
        assert_eq!(SubjectDoubt::of(&Doubt::Undervoltage).kind, "undervoltage");
    }

    #[test]
    fn advice_says_what_was_not_measured_and_whether_the_gain_is_certain() {
        let mut advice = rubus_advise::fixture::advice();
        assert_eq!(of_advice(&advice).as_deref(), Some("The figures of sda are published ones."));
        advice.candidates[0].basis.time_s = Basis::Measured;
        assert_eq!(of_advice(&advice), None);
        advice.candidates[0].time_s = Estimate::new(1.6, 1.0, 9.0);
        let said = of_advice(&advice).expect("they overlap");
        assert_eq!(said, "The intervals overlap: the gain is uncertain.");
        let swap = of_advice(&rubus_advise::fixture::swap_advice()).expect("assumed");
        assert!(swap.contains("are assumed, marked ~"), "{swap}");
        advice.candidates.clear();
        assert_eq!(of_advice(&advice), None);
    }

    #[test]
    fn a_comparison_says_what_differs_and_what_was_disturbed() {
        let calm = Subject::of_run("calm", &calm());
        let other = Subject::of_run("other", &fixture::slow_sd_card_run_a_day_later());
        let said = |a: &Subject, b: &Subject| of_comparison(&compare(&[a.clone(), b.clone()]), 1);
        assert_eq!(said(&calm, &calm), None);
        assert_eq!(
            said(&calm, &other).as_deref(),
            Some(
                "Not like for like: they differ in filesystem and access. Uncertain: other was disturbed."
            )
        );
    }

    #[test]
    fn a_list_names_few_and_counts_many() {
        let of = |names: &[&str]| list(names);
        assert_eq!(of(&["a"]), "a");
        assert_eq!(of(&["a", "b", "c", "d"]), "a, b, c and d");
        assert_eq!(of(&["a", "b", "c", "d", "e"]), "a, b, c and 2 more");
    }
}
