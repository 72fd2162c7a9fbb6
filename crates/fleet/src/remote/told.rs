//! What a machine at work tells.

use rubus_vocabulary::machine::Machine;
use rubus_vocabulary::result::Run;

/// What a machine's thread tells.
pub enum Told {
    /// A finished run.
    Run(Box<Run>),
    /// The machine's survey.
    Machine(Box<Machine>),
    /// It is done: the exit status there, or why there is none.
    Ended(anyhow::Result<u8>),
}
