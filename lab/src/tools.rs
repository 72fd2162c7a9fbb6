//! External programs: which ones the lab needs, in which Debian package they are, and running them
//! so that a failure says what was run and what the program complained of.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// A program and the Debian package that has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tool {
    /// Name of the program.
    pub program: &'static str,
    /// Name of the Debian 12 package.
    pub package: &'static str,
}

const fn tool(program: &'static str, package: &'static str) -> Tool {
    Tool { program, package }
}

/// What building any board's disks needs.
pub const BUILD: &[Tool] = &[
    tool("apt-get", "apt"),
    tool("mmdebstrap", "mmdebstrap"),
    tool("depmod", "kmod"),
    tool("modprobe", "kmod"),
    tool("xz", "xz-utils"),
    tool("sfdisk", "fdisk"),
    tool("mkfs.vfat", "dosfstools"),
    tool("mcopy", "mtools"),
    tool("mke2fs", "e2fsprogs"),
    tool("dtc", "device-tree-compiler"),
];

/// What playing the firmware of a board needs.
pub const FIRMWARE: &[Tool] = &[
    tool("mcopy", "mtools"),
    tool("fdtoverlay", "device-tree-compiler"),
    tool("fdtput", "device-tree-compiler"),
];

/// What keeps a board's writes apart from the disks in the cache.
pub const OVERLAY: Tool = tool("qemu-img", "qemu-utils");

/// What ties an emulator to the life of this process.
pub const KEEPER: Tool = tool("setpriv", "util-linux");

/// Directories that hold programs on Debian and may be missing from an ordinary user's `PATH`.
const SYSTEM_DIRECTORIES: [&str; 2] = ["/usr/sbin", "/sbin"];

/// The search path used for every program: the caller's, then the system directories.
#[must_use]
pub fn search_path() -> String {
    let mut path = std::env::var("PATH").unwrap_or_default();
    for directory in SYSTEM_DIRECTORIES {
        path.push(':');
        path.push_str(directory);
    }
    path
}

/// Where a program is, or `None`.
#[must_use]
pub fn find(program: &str) -> Option<PathBuf> {
    search_path()
        .split(':')
        .filter(|directory| !directory.is_empty())
        .map(|directory| PathBuf::from(directory).join(program))
        .find(|path| path.is_file())
}

/// The tools of the list that this machine lacks.
#[must_use]
pub fn missing(tools: &[Tool]) -> Vec<Tool> {
    let mut absent: Vec<Tool> = Vec::new();
    for tool in tools {
        if find(tool.program).is_none() && !absent.contains(tool) {
            absent.push(*tool);
        }
    }
    absent
}

/// One line naming absent programs and what installs them.
#[must_use]
pub fn remedy(absent: &[Tool]) -> String {
    let mut programs: Vec<&str> = absent.iter().map(|tool| tool.program).collect();
    let mut packages: Vec<&str> = absent.iter().map(|tool| tool.package).collect();
    programs.dedup();
    packages.sort_unstable();
    packages.dedup();
    format!("missing {}; on Debian: apt-get install {}", programs.join(", "), packages.join(" "))
}

/// A command for a program that is looked up in [`search_path`].
#[must_use]
pub fn command(program: &str) -> Command {
    let mut command = Command::new(find(program).unwrap_or_else(|| PathBuf::from(program)));
    command.env("PATH", search_path()).env("LC_ALL", "C.UTF-8");
    command.stdin(Stdio::null());
    command
}

/// Runs a command to its end and gives its standard output.
///
/// # Errors
/// When it cannot be started or ends with a status other than 0; the message has the command line
/// and the end of what it wrote to standard error.
pub fn run(command: &mut Command) -> Result<Vec<u8>> {
    let shown = format!("{command:?}");
    let output = command.output().with_context(|| format!("could not start {shown}"))?;
    if !output.status.success() {
        let complaint = String::from_utf8_lossy(&output.stderr);
        bail!("{shown} failed ({}):\n{}", output.status, tail(&complaint, 20));
    }
    Ok(output.stdout)
}

/// The last lines of a text.
#[must_use]
pub fn tail(text: &str, lines: usize) -> String {
    let all: Vec<&str> = text.trim_end().lines().collect();
    all[all.len().saturating_sub(lines)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remedy_names_programs_and_each_package_once() {
        let text = remedy(&[tool("depmod", "kmod"), tool("modprobe", "kmod"), tool("dtc", "x")]);
        assert_eq!(text, "missing depmod, modprobe, dtc; on Debian: apt-get install kmod x");
    }

    #[test]
    fn failure_quotes_the_complaint() {
        let error = run(command("sh").args(["-c", "echo broken >&2; exit 3"])).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("broken") && text.contains("exit status: 3"), "{text}");
    }

    #[test]
    fn tail_keeps_the_end() {
        assert_eq!(tail("a\nb\nc\n", 2), "b\nc");
        assert_eq!(tail("", 2), "");
    }
}
