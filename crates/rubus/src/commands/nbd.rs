//! `rubus nbd`: which of its verbs.

use crate::args::{General, Nbd, NbdCommand};
use crate::exit::Exit;

/// Does what was asked for.
pub fn run(general: &General, nbd: &Nbd) -> anyhow::Result<Exit> {
    anyhow::ensure!(
        general.machine.is_none(),
        "nbd is about servers and files that are there now; leave --machine out"
    );
    match &nbd.command {
        NbdCommand::Info(info) => super::nbd_info::info(info),
        NbdCommand::List(list) => super::nbd_info::list(list),
        NbdCommand::Copy(copy) => super::nbd_copy::run(general, copy),
        NbdCommand::Clones(clones) => super::nbd_clones::run(general, clones),
    }
}
