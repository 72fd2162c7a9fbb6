//! `rubus suites`: what can be measured.

use rubus_measure::suites::{LISTED, Listed};
use rubus_vocabulary::spec::SuiteSummary;

use crate::args::{General, Suites};
use crate::exit::Exit;
use rubus_command::Terminal;
use rubus_command::places;

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
