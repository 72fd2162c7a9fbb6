//! Words of a verdict: its grades, and its disturbances in groups.

use std::mem::{Discriminant, discriminant};

use crate::verdict::{Disturbance, Grade, Verdict};
use rubus_vocabulary::doubt::Doubt;
use rubus_vocabulary::result::Run;

use rubus_draw::style::Tone;

/// The doubt of a run from which a disturbance was made.
pub fn doubt_of<'a>(run: &'a Run, disturbance: &Disturbance) -> Option<&'a Doubt> {
    let of_jobs = run.results.iter().flat_map(|result| &result.doubts);
    run.doubts.iter().chain(of_jobs).find(|doubt| doubt.what() == disturbance.what)
}

/// The disturbances in groups of the same kind, in the order in which the kinds first appear; those
/// that only say how precise a job is are left out, since every table says it.
pub fn disturbance_groups<'a>(run: &Run, verdict: &'a Verdict) -> Vec<Vec<&'a Disturbance>> {
    let mut groups: Vec<(Option<Discriminant<Doubt>>, Vec<&Disturbance>)> = Vec::new();
    for disturbance in verdict.disturbances.iter().filter(|d| !is_precision(run, d)) {
        let kind = doubt_of(run, disturbance).map(discriminant);
        match groups.iter_mut().find(|(known, _)| kind.is_some() && *known == kind) {
            Some((_, group)) => group.push(disturbance),
            None => groups.push((kind, vec![disturbance])),
        }
    }
    groups.into_iter().map(|(_, group)| group).collect()
}

/// Whether a disturbance only says how precise a job is.
fn is_precision(run: &Run, disturbance: &Disturbance) -> bool {
    matches!(doubt_of(run, disturbance), Some(Doubt::NotPrecise { .. }))
}

/// A grade as a word.
pub fn grade(grade: Grade) -> (&'static str, Tone) {
    match grade {
        Grade::Good => ("good", Tone::Good),
        Grade::Limited => ("usable", Tone::Warn),
        Grade::Poor => ("poor", Tone::Bad),
        Grade::Unknown => ("unknown", Tone::Faint),
    }
}

#[cfg(test)]
mod tests {
    use rubus_fixtures as fixture;

    use super::*;

    #[test]
    fn disturbances_of_one_kind_are_one_group() {
        let mut run = fixture::slow_sd_card_run();
        for (i, result) in run.results.iter_mut().enumerate() {
            result.doubts.push(Doubt::CpuStarved { share: 0.1 + i as f64 / 100.0 });
        }
        let verdict = crate::verdict::verdict(&run);
        let sizes: Vec<usize> = disturbance_groups(&run, &verdict).iter().map(Vec::len).collect();
        assert_eq!(sizes, [1, 1, 10, 1, 1, 1]);
    }
}
