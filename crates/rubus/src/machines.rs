//! Which machines `--on` means: those that are typed, and those that files list.

use std::path::Path;

use anyhow::{Context, anyhow};
use rubus_fleet::inventory::{self, Board, Inventory, Named};

use crate::args::Remote;

/// The machines of a command.
pub struct Machines {
    pub boards: Vec<Board>,
    /// Whether there is more than one, or a file lists them: results come as one table and one
    /// document.
    pub is_fleet: bool,
    /// What of the files is not followed.
    pub notes: Vec<String>,
}

impl Machines {
    /// Those that are meant, each once.
    ///
    /// # Errors
    /// When a file cannot be read or is wrong, or a machine is there twice.
    pub fn of(way: &Remote) -> anyhow::Result<Machines> {
        Machines::named(&way.on, "--on")
    }

    /// Those that an option names, each once.
    ///
    /// # Errors
    /// As of [`Machines::of`].
    pub fn named(all: &[Named], option: &str) -> anyhow::Result<Machines> {
        let mut machines = Machines { boards: Vec::new(), is_fleet: false, notes: Vec::new() };
        for named in all {
            match named {
                Named::Boards(boards) => machines.boards.extend(boards.iter().cloned()),
                Named::File(typed) => {
                    let listed = listed(typed, option)?;
                    machines.boards.extend(listed.boards);
                    machines.notes.extend(listed.notes);
                    machines.is_fleet = true;
                }
            }
        }
        machines.is_fleet |= machines.boards.len() > 1;
        inventory::check(&machines.boards).map_err(|error| anyhow!("{option}: {error}"))?;
        Ok(machines)
    }
}

/// What a file, or one of its groups, lists.
fn listed(typed: &str, option: &str) -> anyhow::Result<Inventory> {
    let (file, group) = match typed.rsplit_once(':') {
        Some((file, group)) if !Path::new(typed).exists() => (file, Some(group)),
        _ => (typed, None),
    };
    let text = std::fs::read_to_string(file)
        .with_context(|| format!("cannot read the machines of {option} from {file}"))?;
    let mut inventory = inventory::read(file, &text).map_err(anyhow::Error::msg)?;
    if let Some(group) = group {
        inventory.boards = inventory::group(&inventory.boards, group)
            .map_err(|error| anyhow!("cannot take machines from {file}: {error}"))?;
    }
    Ok(inventory)
}
