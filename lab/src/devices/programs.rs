//! Running programs to their end, with errors that say what was run and what it answered.

use std::ffi::OsStr;
use std::process::{Command, Output};

use anyhow::{Context, Result, bail};

/// Directories in which administration programs live but which an ordinary PATH lacks.
const ADMINISTRATION: [&str; 3] = ["/usr/sbin", "/sbin", "/usr/local/sbin"];

/// A command that finds programs of the administrator too.
pub fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.env("PATH", search_path()).env("LC_ALL", "C");
    command
}

/// nbdkit, which ends with who started it; the socket and all else are arguments to come.
pub fn nbdkit() -> Command {
    let mut command = command("nbdkit");
    command.args(["--foreground", "--exit-with-parent"]);
    command
}

/// PATH with the administrator's directories appended.
pub fn search_path() -> String {
    let own = std::env::var("PATH").unwrap_or_default();
    format!("{own}:{}", ADMINISTRATION.join(":"))
}

/// Where a program is, if anywhere on [`search_path`].
pub fn find(program: &str) -> Option<std::path::PathBuf> {
    search_path()
        .split(':')
        .filter(|directory| !directory.is_empty())
        .map(|directory| std::path::Path::new(directory).join(program))
        .find(|path| path.is_file())
}

/// Runs a program and gives what it printed, without the last line break.
///
/// # Errors
/// When it cannot be started or fails; the error has the whole command line and what it complained.
pub fn run(program: &str, arguments: &[&str]) -> Result<String> {
    let output = output(program, arguments)?;
    if !output.status.success() {
        bail!(
            "{program} {}: {}: {}",
            arguments.join(" "),
            output.status,
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_string())
}

/// Runs a program and gives its whole output, whatever its exit status.
///
/// # Errors
/// When it cannot be started.
pub fn output(program: &str, arguments: &[&str]) -> Result<Output> {
    command(program).args(arguments).output().with_context(|| format!("could not start {program}"))
}
