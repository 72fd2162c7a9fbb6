//! `rubus nbd`: which of its verbs.

use rubus_nbd::cli::{Nbd, NbdCommand};

use crate::args::General;
use crate::exit::Exit;
use rubus_command::places::say;

/// Does what was asked for.
pub fn run(general: &General, nbd: &Nbd) -> anyhow::Result<Exit> {
    anyhow::ensure!(
        general.machine.is_none(),
        "nbd is about servers and files that are there now; leave --machine out"
    );
    match &nbd.command {
        NbdCommand::Info(info) => say(&info.answer()?)?,
        NbdCommand::List(list) => say(&list.answer()?)?,
        NbdCommand::Copy(copy) => return super::nbd_copy::run(general, copy),
        NbdCommand::Clones(clones) => return super::nbd_clones::run(general, clones),
    }
    Ok(Exit::Fine)
}
