//! More memory than there is, in a control group or on the whole machine: who takes it (`load_process`), what keeps him in
//! (`fence`), what pages go to (`set_up`), who watches and steers (`course`), and who takes everything away again,
//! whatever happens (`keeper`).

mod counters;
pub mod course;
pub mod fence;
pub mod keeper;
pub mod load_process;

pub mod set_up;

use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::Context;

/// Starts this program once more, as one of those that `bench memory` needs, with a line to it and one from it. `tried`
/// says in words what it is for.
///
/// # Errors
/// When it cannot be started.
fn start_own(
    argument: &str,
    tried: &'static str,
) -> anyhow::Result<(Child, ChildStdin, ChildStdout)> {
    let mut child = Command::new("/proc/self/exe")
        .args(["bench", "memory", argument])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .context(tried)?;
    let input = child.stdin.take().context("it has no input")?;
    let output = child.stdout.take().context("it has no output")?;
    Ok((child, input, output))
}
