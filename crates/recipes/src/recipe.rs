//! What a recipe is: its name, its options, what it looks at, and how it becomes a plan.

use std::collections::BTreeMap;

use rubus_change::plan::{Action, FORMAT, Plan};
use rubus_vocabulary::machine::Machine;
use rubus_vocabulary::spelling::nearest;

use super::{Facts, Guide, PlanBuilder, PlanInput, Queries, desktop, lasting};

/// A way to change a machine.
#[derive(Debug)]
pub struct Recipe {
    /// `kebab-case`.
    pub name: &'static str,
    /// What it does for its user, as a sentence.
    pub title: &'static str,
    /// What it changes, what it needs, and an example.
    pub guide: Guide,
    /// What can be chosen.
    pub options: &'static [OptionSpec],
    /// What to look at.
    pub look_at: fn(&Machine, &Wishes) -> Queries,
    /// Makes the steps.
    pub(crate) draw_up: fn(&PlanInput<'_>, &mut PlanBuilder),
}

/// One thing that can be chosen.
#[derive(Debug)]
pub struct OptionSpec {
    /// `kebab-case`.
    pub name: &'static str,
    /// What it is, with its range.
    pub what: &'static str,
    /// What it is when nothing is chosen; absent: the recipe decides.
    pub default: Option<&'static str>,
    /// What is right, or a sentence that says what is.
    pub check: fn(&str) -> Result<(), String>,
}

/// The check of an option that is on or off.
pub(crate) fn yes_or_no(value: &str) -> Result<(), String> {
    match value {
        "yes" | "no" => Ok(()),
        _ => Err("write yes or no".into()),
    }
}

/// The user's choices.
pub type Wishes = BTreeMap<String, String>;

/// Why there is no plan.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecipeError {
    /// There is no such option.
    #[error("the recipe {recipe} has no option '{name}'{meant} (it has: {known})")]
    NoSuchOption {
        recipe: &'static str,
        /// Name of the unknown option.
        name: String,
        /// The question whether another was meant; empty where none is near.
        meant: String,
        /// Those that there are.
        known: String,
    },
    /// An option cannot have that value.
    #[error("{name}={value}: {reason}")]
    BadValue {
        /// Name of the option.
        name: String,
        value: String,
        /// What would be right.
        reason: String,
    },
}

impl Recipe {
    /// Whether it can also be applied to an image of a card, on another machine.
    pub fn is_for_images(&self) -> bool {
        self.name == desktop::RECIPE.name
    }

    /// The plan for a machine. It may have obstacles ([`Plan::obstacles`]) and must not be applied then; it may
    /// be empty where everything is already as wished.
    ///
    /// # Errors
    /// [`RecipeError`] when a wish makes no sense.
    pub fn plan(
        &self,
        machine: &Machine,
        facts: &Facts,
        wishes: &Wishes,
        made: &str,
    ) -> Result<Plan, RecipeError> {
        let options = self.complete(wishes)?;
        let mut draft = PlanBuilder::default();
        let situation = PlanInput { machine, facts, options: &options };
        (self.draw_up)(&situation, &mut draft);
        lasting::check(&situation, &mut draft);
        lasting::after_the_start(&situation, draft.needs_boot, &mut draft);
        foreign_lines(&mut draft);
        Ok(Plan {
            format: FORMAT,
            recipe: self.name.into(),
            options,
            title: draft.title.unwrap_or_else(|| self.title.into()),
            made: made.into(),
            checks: draft.checks,
            steps: draft.steps,
            notes: draft.notes,
            risks: draft.risks,
            gains: draft.gains,
            gains_unknown: draft.gains_unknown,
            effort: draft.effort,
            promises: draft.promises,
            needs_boot: draft.needs_boot,
            trial: draft.trial,
        })
    }

    /// Refuses wishes that make no sense on any machine: before it is looked at, which can take minutes.
    ///
    /// # Errors
    /// [`RecipeError`] for the first such wish.
    pub(crate) fn check_wishes(&self, wishes: &Wishes) -> Result<(), RecipeError> {
        self.complete(wishes).map(drop)
    }

    /// The wishes, checked, with the defaults.
    fn complete(&self, wishes: &Wishes) -> Result<Wishes, RecipeError> {
        let mut options = Wishes::new();
        for (name, value) in wishes {
            let Some(option) = self.options.iter().find(|option| option.name == name) else {
                let known: Vec<&str> = self.options.iter().map(|option| option.name).collect();
                let meant = nearest(name, &known);
                return Err(RecipeError::NoSuchOption {
                    recipe: self.name,
                    name: name.clone(),
                    meant: meant.map_or(String::new(), |near| format!("; did you mean '{near}'?")),
                    known: known.join(", "),
                });
            };
            (option.check)(value).map_err(|reason| RecipeError::BadValue {
                name: name.clone(),
                value: value.clone(),
                reason,
            })?;
            options.insert(name.clone(), value.clone());
        }
        for option in self.options {
            if let Some(default) = option.default {
                options.entry(option.name.into()).or_insert(default.into());
            }
        }
        Ok(options)
    }
}

/// A line that is not UTF-8 is kept, and never edited.
fn foreign_lines(draft: &mut PlanBuilder) {
    let edited = draft.steps.iter().find_map(|step| {
        let action = match &step.action {
            Action::On(on) => &on.action,
            action => action,
        };
        let Action::WriteFile(write) = action else { return None };
        let line = write.was.as_ref()?.edited_foreign_line(&write.becomes)?;
        Some(format!("{} is not UTF-8 (line {line})", write.path.display()))
    });
    if let Some(found) = edited {
        draft.steps.clear();
        draft.trial = None;
        draft.check(
            "every line that changes is UTF-8",
            false,
            found,
            "write the sign there without its accent, or save the file as UTF-8",
        );
    }
}
