//! Arguments of `rubus explain`.

use clap::Args as ClapArgs;
use clap::builder::PossibleValuesParser;
use rubus_machine::rules;

use super::Json;

/// Explain a finding: when it speaks, the source of its claims, how to disprove it.
///
/// A code stands in brackets behind each finding of a survey or a checkup; `rubus survey --rules` lists them.
/// Also says what of it is found on this machine.
#[derive(Debug, ClapArgs)]
pub struct Explain {
    /// Code of the finding
    #[arg(value_name = "CODE", hide_possible_values = true,
        value_parser = PossibleValuesParser::new(rules::explained().map(|kind| kind.code)))]
    pub code: String,
    #[command(flatten)]
    pub json: Json,
}
