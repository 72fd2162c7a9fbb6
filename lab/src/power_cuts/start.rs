//! Says what the firmware would start from the disks of a board that is off.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::board::Board;
use crate::firmware::{self, Media, Switches};
use crate::kit::Kit;
use crate::tools;

/// What the firmware would start.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Start {
    /// The sum of the kernel.
    kernel: String,
    /// The sum of the initial RAM filesystem.
    initramfs: String,
    cmdline: String,
}

impl Start {
    /// What names the root on the command line. Where it names one of the network, the one of `root=` stands in when the server is
    /// not there.
    pub(super) fn root(&self) -> &str {
        let named = |key: &str| {
            let mut words = self.cmdline.split_whitespace();
            words.find_map(|word| word.strip_prefix(key)?.strip_prefix('='))
        };
        named("rubus.root").or_else(|| named("root")).unwrap_or_default()
    }
}

/// What the firmware would start, with its mark for a trial or without. It reads the boot partition before anything mends it. What
/// it reads comes into a new directory.
pub(super) fn start(kit: &Kit, tryboot: bool, place: &Path) -> Result<Start> {
    fs::create_dir(place)?;
    let card = kit.sd();
    let media = Media { card: Some(&card), usb: Vec::new() };
    let switches = Switches { tryboot, ..Switches::default() };
    let boot = firmware::read(Board::Pc, &media, switches, place)?;
    let initramfs = boot.initramfs.as_deref().context("no initial RAM filesystem")?;
    Ok(Start { kernel: sum(&boot.kernel)?, initramfs: sum(initramfs)?, cmdline: boot.cmdline })
}

fn sum(file: &Path) -> Result<String> {
    let said = tools::run(tools::command("b2sum").arg("--").arg(file))?;
    let said = String::from_utf8_lossy(&said).into_owned();
    let sum = said.split_whitespace().next().context("b2sum said nothing")?;
    Ok(sum.to_owned())
}

/// What of a start is in none of the states.
pub(super) fn unknown(states: &[&Start], start: &Start) -> Vec<String> {
    let parts = |start: &Start| [&start.kernel, &start.initramfs, &start.cmdline].map(Clone::clone);
    let names = ["kernel", "initial RAM filesystem", "command line"];
    let found = parts(start).into_iter().zip(names).enumerate();
    let is_unknown = |(number, (part, _)): &(usize, (String, &str))| {
        !states.iter().any(|state| parts(state)[*number] == *part)
    };
    let unknown = found.filter(is_unknown);
    unknown.map(|(_, (_, name))| format!("starts an unknown {name}")).collect()
}

/// A start of which all but the command line is called by one letter.
#[cfg(test)]
pub(super) fn with_command_line(cmdline: &str) -> Start {
    Start { kernel: "k".into(), initramfs: "i".into(), cmdline: cmdline.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_root_of_the_network_comes_first() {
        assert_eq!(with_command_line("quiet root=UUID=1 ro").root(), "UUID=1");
        let both = with_command_line("root=UUID=1 rubus.root=nbd://h:1/root");
        assert_eq!(both.root(), "nbd://h:1/root");
        assert_eq!(with_command_line("quiet").root(), "");
    }
}
