//! More memory than there is, in a control group or on the whole machine: who takes it (`load_process`), what keeps him in
//! (`fence`), what pages go to (`set_up`), who watches and steers (`course`), and who takes everything away again,
//! whatever happens (`keeper`).

#![deny(clippy::disallowed_methods)]

mod bounds;
mod counters;
mod course;
mod fence;
pub mod keeper;
pub mod load_process;
mod search;
mod set_up;
pub mod suite;

use std::process::{Child, ChildStdin, ChildStdout};

use anyhow::Context;
use rubus_host::process::programs;

/// Starts this program once more, as one of those that `bench memory` needs, with a line to it and one from it. `tried`
/// says in words what it is for.
///
/// # Errors
/// When it cannot be started.
fn start_own(
    argument: &str,
    tried: &'static str,
) -> anyhow::Result<(Child, ChildStdin, ChildStdout)> {
    let mut child = programs::this_one_again(&["bench", "memory", argument]).context(tried)?;
    let input = child.stdin.take().context("it has no input")?;
    let output = child.stdout.take().context("it has no output")?;
    Ok((child, input, output))
}
