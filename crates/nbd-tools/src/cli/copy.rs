//! `rubus nbd copy`: a disk to another disk.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use rubus_command::places::say;
use rubus_command::progress::{bar, terminal_columns};
use rubus_command::{Exit, General, Terminal, signals};
use rubus_vocabulary::verb::{GUARDED, MISTAKE, Page};

use super::{Outside, Place, Role};
use crate::copying::destination::{self, CopyRequest};
use crate::copying::run::DiskCopying;
use crate::copying::source;
use crate::disk_copy::{DiskCopy, DiskCopyProgress};
use crate::text::{line, receipt};

/// Exit statuses and examples.
pub(super) const PAGE: Page = Page {
    name: "rubus-nbd-copy",
    statuses: &[
        (0, "complete"),
        (1, "cut short, or parts of SRC could not be read"),
        MISTAKE,
        GUARDED,
    ],
    examples: &[(
        "rubus nbd copy nbd://192.168.1.5/disk disk.img",
        "Copy a network disk to a file. Repeat the command to resume.",
    )],
};

/// Copy a disk from or to an export, and resume an interrupted copy.
///
/// SRC and DST are exports, files or block devices.
/// Skips zeros; a file stays sparse. At the end everything is flushed and read back. A file gets
/// its name only when it is complete; until then it is DST.partial, with a journal beside it, and
/// the same command resumes it.
#[derive(Debug, Args)]
pub struct NbdCopy {
    /// What to copy: nbd://server/disk, a file or a block device
    #[arg(value_name = "SRC", value_hint = clap::ValueHint::AnyPath)]
    pub source: OsString,
    /// Where to: an export, a file or a block device, at least as large
    #[arg(value_name = "DST", value_hint = clap::ValueHint::AnyPath)]
    pub destination: OsString,
    /// Do not read back what was written
    #[arg(long)]
    pub no_verify: bool,
    /// Replace an existing file DST once the copy is complete
    #[arg(long)]
    pub overwrite: bool,
    /// Confirm that everything on the device with this serial number, or on the
    /// export with this address, is lost
    #[arg(long, value_name = "SERIAL")]
    pub i_will_lose_everything_on: Vec<String>,
    /// Keep the journal in this file, so that a copy to an export or a device can be resumed
    /// [default for a file: DST.partial.journal]
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub journal: Option<PathBuf>,
    /// Continue past unreadable parts of SRC (bad sectors): retry them at the end in smaller parts,
    /// leave zeros for the rest, and list it [exit status 1]
    #[arg(long)]
    pub skip_unreadable: bool,
    /// Start over, whatever the journal says
    #[arg(long, alias = "anew")]
    pub restart: bool,
    /// Connections to a server that promises multi-conn
    #[arg(long, value_name = "N", default_value = "4", value_parser = clap::value_parser!(u8).range(1..=64))]
    pub connections: u8,
    /// Requests in flight on each connection
    #[arg(long, value_name = "N", default_value = "16", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub depth: u16,
    /// Seconds to wait for an answer while the server's machine is reachable: its disk may take
    /// minutes to write back cached data
    #[arg(long, value_name = "SECONDS", default_value = "600", value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub patience: u32,
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
}

impl NbdCopy {
    /// How long a server may take for an answer.
    pub fn patience(&self) -> Duration {
        Duration::from_secs(self.patience.into())
    }
}

/// Copies, and reads back if that is wanted.
pub fn run(general: &General, arguments: &NbdCopy, outside: &dyn Outside) -> anyhow::Result<Exit> {
    // A file that may not be so large is an error like others.
    signals::survive_large_files();
    let from = outside.disk(&arguments.source, Role::Source)?;
    let to = outside.disk(&arguments.destination, Role::Destination)?;
    anyhow::ensure!(from.name != to.name, "{} cannot be copied to itself", from.name);
    let guard = outside.guard();
    let request = request(arguments);
    let source = match from.place.map_err(anyhow::Error::msg)? {
        Place::Export(address) => source::of_export(&address, request.patience)?,
        Place::Path(path) => source::of_path(&path, &*guard)?,
    };
    let bytes = source.end.size_bytes();
    let destination = match to.place.map_err(anyhow::Error::msg)? {
        Place::Export(address) => destination::of_export(&address, &request)?,
        Place::Path(path) => destination::of_path(&path, bytes, &request, &*guard)?,
    };
    let copying = DiskCopying::begin(source, destination, &request)?;
    let terminal = Terminal::of(general);
    let cancel = signals::cancel_flag()?;
    let bar = bar(terminal);
    let tell = |progress: &DiskCopyProgress| {
        let columns = usize::from(terminal_columns()).saturating_sub(3);
        bar.set_message(line(progress, columns));
    };
    let outcome = copying.run(&cancel, &tell);
    bar.finish_and_clear();
    let Some(done) = copying.end(outcome)? else {
        return Ok(Exit::AnswerIsNo);
    };
    let done = DiskCopy { source: from.name, destination: to.name, ..done };
    if arguments.json {
        say(&(serde_json::to_string_pretty(&done)? + "\n"))?;
    } else if !general.quiet || !done.is_good() {
        say(&receipt(&done, terminal.style()))?;
    }
    Ok(if done.is_good() { Exit::Fine } else { Exit::AnswerIsNo })
}

fn request(arguments: &NbdCopy) -> CopyRequest {
    CopyRequest {
        overwrite: arguments.overwrite,
        losses: arguments.i_will_lose_everything_on.clone(),
        journal: arguments.journal.clone(),
        starts_over: arguments.restart,
        skip_unreadable: arguments.skip_unreadable,
        verify: !arguments.no_verify,
        connections: usize::from(arguments.connections),
        depth: usize::from(arguments.depth),
        patience: arguments.patience(),
    }
}
