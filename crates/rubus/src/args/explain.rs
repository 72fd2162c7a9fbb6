//! Arguments of `rubus explain`.

use clap::Args as ClapArgs;

use super::Json;

/// Explain a finding: when it speaks, the source of its claims, how to disprove it.
///
/// A code stands in brackets behind each finding of a survey or a checkup; `rubus survey --rules` lists them.
/// Also says what of it is found on this machine.
#[derive(Debug, ClapArgs)]
pub struct Explain {
    /// Code of the finding
    #[arg(value_name = "CODE")]
    pub code: String,
    #[command(flatten)]
    pub json: Json,
}
