//! A recipe by its name, a plan as it is shown, and whether the user agrees.

use std::io::IsTerminal;

use anyhow::Context;
use rubus_change::plan::Plan;
use rubus_change::recipe::{self, Recipe};
use rubus_change::text::render;

use crate::args::{General, PlanArgs};
use crate::exit::Exit;
use crate::measuring::nearest;
use rubus_command::Terminal;
use rubus_command::places::say;
use rubus_host::programs::shell_line;

/// The command that applies what was asked for.
fn apply_line(arguments: &PlanArgs) -> String {
    let wishes = arguments.wishes.iter();
    let mut words = vec!["rubus".into(), "apply".into(), arguments.recipe.clone()];
    words.extend(wishes.map(|(name, value)| format!("{name}={value}")));
    if let Some(image) = &arguments.image {
        words.extend(["--image".into(), image.display().to_string()]);
    }
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    shell_line("sudo", &words)
}

/// Shows a plan; the answer is no where something is in its way.
pub(super) fn show(general: &General, arguments: &PlanArgs, plan: &Plan) -> anyhow::Result<Exit> {
    if arguments.json.wanted {
        say(&(serde_json::to_string_pretty(plan)? + "\n"))?;
    } else {
        say(&render(plan, Terminal::of(general).style()))?;
        if plan.obstacles().next().is_none() && !plan.is_empty() {
            say(&format!("\nTo apply: {}\n", apply_line(arguments)))?;
        }
    }
    Ok(match plan.obstacles().next() {
        None => Exit::Fine,
        Some(_) => Exit::AnswerIsNo,
    })
}

pub(super) fn find(name: &str) -> anyhow::Result<&'static Recipe> {
    let names: Vec<&str> = recipe::ALL.iter().map(|recipe| recipe.name).collect();
    recipe::by_name(name).with_context(|| {
        format!(
            "there is no recipe '{name}'; did you mean '{}'? (there are: {})",
            nearest(name, &names),
            names.join(", ")
        )
    })
}

pub(super) fn agreed(yes: bool, question: &str) -> anyhow::Result<bool> {
    if yes {
        return Ok(true);
    }
    anyhow::ensure!(
        std::io::stdin().is_terminal() && std::io::stderr().is_terminal(),
        "not a terminal, cannot ask for confirmation; use --yes"
    );
    eprint!("\n{question} [y/N] ");
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer).context("cannot read the answer")?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes" | "Yes"))
}
