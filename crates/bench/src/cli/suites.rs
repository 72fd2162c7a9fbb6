//! `rubus suites`: what can be measured.

use clap::Args;
use rubus_command::{Exit, General, Json, Terminal, places};
use rubus_measure::suites::{LISTED, Listed};
use rubus_vocabulary::spec::SuiteSummary;
use rubus_vocabulary::verb::{PLAIN, Page};

/// Exit statuses and examples.
pub(super) const PAGE: Page = Page {
    name: "rubus-suites",
    statuses: PLAIN,
    examples: &[("rubus suites", "Show what each suite measures and writes.")],
};

/// List the suites: question, data written, duration.
#[derive(Debug, Args)]
pub struct Suites {
    #[command(flatten)]
    pub json: Json,
}

/// Lists the suites.
pub fn run(general: &General, suites: &Suites) -> anyhow::Result<Exit> {
    let listed: Vec<SuiteSummary> = LISTED.iter().filter_map(Listed::summary).collect();
    if suites.json.wanted {
        places::say(&(serde_json::to_string_pretty(&listed)? + "\n"))?;
    } else {
        let style = Terminal::of(general).style();
        places::say(&rubus_verdict::text::suites::render(&listed, style))?;
    }
    Ok(Exit::Fine)
}
