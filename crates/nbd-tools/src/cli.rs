//! The verbs of network disks, each in its file with its arguments, exit statuses, examples and answers. What they need of
//! rooms above goes through [`Outside`].

mod attach;
mod clones;
mod copy;
mod query;
mod serve;

use std::ffi::OsStr;
use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, Subcommand};
use rubus_command::places::say;
use rubus_command::{Exit, General};
use rubus_vocabulary::verb::Page;

use crate::guard::Guard;

/// What the verbs need of rooms above this one.
pub trait Outside {
    /// What stands before devices and files that are to be written.
    fn guard(&self) -> Arc<dyn Guard + Send + Sync>;
    /// The disk that was typed.
    ///
    /// # Errors
    /// When it is the name of no disk.
    fn disk(&self, typed: &OsStr, role: Role) -> anyhow::Result<Disk>;
}

/// What a disk is in a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It is read.
    Source,
    /// It is written.
    Destination,
}

/// A disk that was typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disk {
    /// As it is shown.
    pub name: String,
    /// Where it is; else why it can be neither read nor written here.
    pub place: Result<Place, String>,
}

/// Where a disk is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// An export, by its address.
    Export(String),
    /// A file or a block device.
    Path(PathBuf),
}

/// The verbs. Each is described where its arguments are.
#[derive(Debug, Subcommand)]
pub enum Verb {
    Attach(attach::Attach),
    Detach(attach::Detach),
    Serve(Box<serve::Serve>),
    Nbd(Nbd),
}

/// Query NBD servers, copy exports, manage clones.
#[derive(Debug, Args)]
pub struct Nbd {
    #[command(subcommand)]
    pub command: NbdCommand,
}

/// What `rubus nbd` does.
#[derive(Debug, Subcommand)]
pub enum NbdCommand {
    Info(query::NbdInfo),
    List(query::NbdList),
    Copy(copy::NbdCopy),
    #[command(subcommand)]
    Clones(clones::NbdClones),
}

/// Does what was asked.
///
/// # Errors
/// Wrong arguments, what the guard refuses, and what this machine, the network or a server does not allow.
pub fn run(general: &General, verb: &Verb, outside: &dyn Outside) -> anyhow::Result<Exit> {
    match verb {
        Verb::Attach(attach) => attach::run(general, attach, outside),
        Verb::Detach(detach) => attach::detach(general, detach, outside),
        Verb::Serve(serve) => serve::run(general, serve, outside),
        Verb::Nbd(nbd) => self::nbd(general, nbd, outside),
    }
}

fn nbd(general: &General, nbd: &Nbd, outside: &dyn Outside) -> anyhow::Result<Exit> {
    anyhow::ensure!(
        general.machine.is_none(),
        "nbd is about servers and files that are there now; leave --machine out"
    );
    match &nbd.command {
        NbdCommand::Info(info) => say(&info.answer()?)?,
        NbdCommand::List(list) => say(&list.answer()?)?,
        NbdCommand::Copy(copy) => return copy::run(general, copy, outside),
        NbdCommand::Clones(clones) => return clones::run(general, clones),
    }
    Ok(Exit::Fine)
}

/// Exit statuses and examples, in the order of the commands.
pub const PAGES: &[Page] = &[
    attach::PAGE,
    attach::DETACH_PAGE,
    serve::PAGE,
    query::INFO_PAGE,
    query::LIST_PAGE,
    copy::PAGE,
    clones::LIST_PAGE,
    clones::RESET_PAGE,
    clones::REMOVE_PAGE,
    clones::MERGE_PAGE,
];

/// The record of an attached device, or a list of them where none was named.
#[cfg(feature = "schema")]
#[derive(schemars::JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "only its schema is used")]
enum OneOrList<T> {
    One(T),
    List(Vec<T>),
}

/// The JSON documents that they print.
#[cfg(feature = "schema")]
pub fn documents() -> Vec<rubus_vocabulary::verb::Document> {
    use crate::attach::records::Record;
    use crate::disk_copy::DiskCopy;
    use crate::documents::{NbdClonesDocument, NbdInfoDocument, NbdListDocument};
    use crate::serving::lines::{EventLine, StatusLine};
    use rubus_vocabulary::verb::Document;
    vec![
        Document::of::<OneOrList<Record>>("attach", "rubus attach --json"),
        Document::of::<EventLine<'_>>("serve-event", "a line of rubus serve --json"),
        Document::of::<StatusLine<'_>>("serve-status", "a line of rubus serve --status PLACE"),
        Document::of::<NbdInfoDocument<'_>>("nbd-info", "rubus nbd info --json"),
        Document::of::<NbdListDocument<'_>>("nbd-list", "rubus nbd list --json"),
        Document::of::<NbdClonesDocument>("nbd-clones", "rubus nbd clones list --json"),
        Document::of::<DiskCopy>("nbd-copy", "rubus nbd copy --json"),
    ]
}
