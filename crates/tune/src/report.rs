//! What a trial says, and the document that `--json` prints.

use rubus_vocabulary::next_step::NextStep;
use serde::Serialize;

use crate::candidates::Candidates;
use crate::course::{Comparison, Ended, Trial, winners};
use crate::decide::{Effect, Word};
use crate::place::Place;
use crate::setting::{Candidate, NotTried, Risk, Setting, Work};

/// A trial with what it means.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TuneDocument {
    /// The answer, in a sentence; of a list, what would be tried.
    pub answer: String,
    /// What to do next.
    pub next: NextStep,
    /// The directory.
    pub path: String,
    /// Kernel name of the disk below it.
    pub disk: String,
    /// What is tried.
    pub candidates: Vec<CandidateDocument>,
    /// What is not tried, with the reasons.
    pub not_tried: Vec<NotTried>,
    /// Settings that have another value than before the trial, and what there is to know about it; empty where all is
    /// as before.
    pub unrestored: Vec<String>,
    /// What ended the trial early; null: nothing.
    pub ended: Option<String>,
    /// How long it took, in seconds; of a list, how long it would at most.
    pub seconds: f64,
    /// Bytes written to the disk; of a list, at most.
    pub bytes_written: u64,
    /// The recipe that makes what helps last; null: nothing helps, or none can be made.
    pub recipe: Option<String>,
    /// Why there is no recipe although something helps.
    pub no_recipe: Option<String>,
}

/// A value that is tried.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CandidateDocument {
    /// Which setting.
    pub setting: Setting,
    /// Its value before.
    pub from: String,
    /// The value that is tried.
    pub to: String,
    /// It helps, harms no work, and is the best value tried of its setting.
    pub is_winner: bool,
    /// What it does.
    pub does: &'static str,
    /// Where that is written.
    pub source: &'static str,
    /// What it may cost besides speed.
    pub risk: Risk,
    /// Files of this machine that set it.
    pub set_by: Vec<String>,
    /// Its effects on the works; empty for a list.
    pub effects: Vec<EffectDocument>,
    /// Works that can see it.
    pub works: Vec<Work>,
}

/// An effect on a work.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EffectDocument {
    /// What was measured.
    pub work: Work,
    /// Rounds of the comparison.
    pub rounds: usize,
    /// Ratio of the operations per second; null with fewer than two rounds.
    pub effect: Option<Effect>,
    /// What that says.
    pub word: Word,
    /// Why it could not be judged; null: it could.
    pub trouble: Option<String>,
}

/// What else is known of a trial.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Around {
    /// See [`TuneDocument::unrestored`].
    pub unrestored: Vec<String>,
    /// How long it took, in seconds.
    pub seconds: f64,
    /// Bytes written.
    pub bytes_written: u64,
    /// The recipe, or why there is none; absent where nothing helps.
    pub recipe: Option<Result<String, String>>,
}

impl TuneDocument {
    /// Of a trial.
    pub fn new(place: &Place, candidates: &Candidates, trial: &Trial, around: Around) -> Self {
        let best = winners(&candidates.tried, trial);
        let (recipe, no_recipe) = match around.recipe {
            None => (None, None),
            Some(Ok(recipe)) => (Some(recipe), None),
            Some(Err(why)) => (None, Some(why)),
        };
        TuneDocument {
            answer: answer(&candidates.tried, trial, &best),
            next: next(place, trial, &best, no_recipe.as_deref()),
            path: place.path.display().to_string(),
            disk: place.disk.clone(),
            candidates: documents(&candidates.tried, &trial.comparisons, &best),
            not_tried: candidates.not_tried.clone(),
            unrestored: around.unrestored,
            ended: trial.ended.as_ref().map(ended),
            seconds: around.seconds,
            bytes_written: around.bytes_written,
            recipe,
            no_recipe,
        }
    }

    /// Of what would be tried.
    pub fn list(place: &Place, candidates: &Candidates, seconds: f64, bytes_written: u64) -> Self {
        let shown = place.path.display().to_string();
        let (answer, next) = match candidates.tried.len() {
            0 => (
                "There is no setting worth trying on this disk.".to_string(),
                NextStep::by_hand("nothing: no other value is offered here"),
            ),
            count => (
                format!(
                    "{count} {} would be tried on {} and put back.",
                    if count == 1 { "value" } else { "values" },
                    place.disk
                ),
                NextStep::command(&["sudo", "rubus", "tune", &shown], "it tries them in turns"),
            ),
        };
        TuneDocument {
            answer,
            next,
            path: shown,
            disk: place.disk.clone(),
            candidates: documents(&candidates.tried, &[], &[]),
            not_tried: candidates.not_tried.clone(),
            unrestored: Vec::new(),
            ended: None,
            seconds,
            bytes_written,
            recipe: None,
            no_recipe: None,
        }
    }
}

fn documents(
    candidates: &[Candidate],
    comparisons: &[Comparison],
    best: &[(usize, Work)],
) -> Vec<CandidateDocument> {
    let document = |(number, one): (usize, &Candidate)| CandidateDocument {
        setting: one.setting,
        from: one.from.clone(),
        to: one.to.clone(),
        is_winner: best.iter().any(|(winner, _)| *winner == number),
        does: one.does,
        source: one.source,
        risk: one.risk,
        set_by: one.set_by.clone(),
        effects: comparisons
            .iter()
            .filter(|comparison| comparison.candidate == number)
            .map(|comparison| EffectDocument {
                work: comparison.work,
                rounds: comparison.rounds.len(),
                effect: comparison.effect,
                word: comparison.word,
                trouble: comparison.trouble.clone(),
            })
            .collect(),
        works: one.works.clone(),
    };
    candidates.iter().enumerate().map(document).collect()
}

/// What ended a trial early, in words.
fn ended(ended: &Ended) -> String {
    match ended {
        Ended::Stopped => "it was stopped".into(),
        Ended::Failed(why) => why.clone(),
    }
}

fn answer(candidates: &[Candidate], trial: &Trial, best: &[(usize, Work)]) -> String {
    let judged = || trial.comparisons.iter().filter(|one| one.trouble.is_none());
    let open = judged().filter(|one| one.word == Word::NotSettled).count();
    if let Some((number, work)) = best.first() {
        let one = &candidates[*number];
        let comparison = judged().find(|one| one.candidate == *number && one.work == *work);
        let gain = comparison
            .and_then(|one| one.effect)
            .map_or_else(String::new, |effect| faster(&effect));
        let rest = match (best.len(), open) {
            (1, 0) => "nothing else helps".to_string(),
            (1, _) => "of the others nothing is proven to help".to_string(),
            (2, _) => "one other setting helps, too".to_string(),
            (more, _) => format!("{} other settings help, too", more - 1),
        };
        return format!(
            "{} makes {} {gain}; {rest}.",
            one.setting.with_value(&one.to),
            work.object()
        );
    }
    if judged().next().is_none() {
        return "Nothing could be judged here.".into();
    }
    match open {
        0 if judged().any(|one| one.word != Word::NoDifference) => {
            "Nothing tried is better than what is set now.".into()
        }
        0 => "Nothing tried makes a difference larger than 3 %: the settings are right.".into(),
        open => format!(
            "Nothing is proven to help; {open} of {} comparisons are not settled.",
            trial.comparisons.len()
        ),
    }
}

/// "18 % faster (12 to 24 %)".
fn faster(effect: &Effect) -> String {
    format!(
        "{} % faster ({} to {} %)",
        percent(effect.ratio - 1.0),
        percent(effect.low - 1.0),
        percent(effect.high - 1.0)
    )
}

/// A share in percent, with one digit behind the point where it is small.
pub fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent.abs() < 9.95 { format!("{percent:.1}") } else { format!("{percent:.0}") }
}

fn next(place: &Place, trial: &Trial, best: &[(usize, Work)], no_recipe: Option<&str>) -> NextStep {
    let shown = place.path.display().to_string();
    if matches!(trial.ended, Some(Ended::Failed(_))) {
        return NextStep::by_hand("look at the kernel log and at the cable, then try again");
    }
    if let Some(why) = no_recipe {
        return NextStep::by_hand(why);
    }
    if !best.is_empty() {
        let words = "it tries again, then makes what helps last and proves it";
        return NextStep::command(&["sudo", "rubus", "tune", &shown, "--apply"], words);
    }
    let is_open =
        trial.comparisons.iter().any(|one| one.trouble.is_none() && one.word == Word::NotSettled);
    if is_open || trial.ended.is_some() {
        return NextStep::by_hand(
            "leave the settings as they are, or give a longer --time on an idle machine",
        );
    }
    if trial.comparisons.iter().all(|one| one.trouble.is_some()) {
        return NextStep::by_hand("see below why, and name a directory on a disk that can be seen");
    }
    NextStep::by_hand("nothing: the settings are right")
}
