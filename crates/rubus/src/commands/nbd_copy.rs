//! `rubus nbd copy`: a disk to another disk.

use rubus_cluster::watch::image::ImageName;
use rubus_cluster::watch::pool_name::PoolName;
use rubus_nbd::cli::NbdCopy;
use rubus_nbd::copying::destination::{self, CopyRequest, Destination};
use rubus_nbd::copying::run::DiskCopying;
use rubus_nbd::copying::source::{self, Source};
use rubus_nbd::disk_copy::{DiskCopy, DiskCopyProgress};
use rubus_nbd::text::{line, receipt};

use crate::args::General;
use crate::exit::Exit;
use crate::guarding::LiveGuard;
use crate::target_name::TargetName;
use rubus_command::Terminal;
use rubus_command::places::say;
use rubus_command::progress::{bar, terminal_columns};
use rubus_command::signals;

/// Copies, and reads back if that is wanted.
pub fn run(general: &General, arguments: &NbdCopy) -> anyhow::Result<Exit> {
    // A file that may not be so large is an error like others.
    signals::survive_large_files();
    let name = |typed| TargetName::parse(typed).map_err(|why| anyhow::anyhow!("{why}"));
    let (from, to) = (name(arguments.source.clone())?, name(arguments.destination.clone())?);
    anyhow::ensure!(from != to, "{from} cannot be copied to itself");
    let request = request(arguments);
    let source = open_source(&from, &request)?;
    let destination = open_destination(&to, source.end.size_bytes(), &request)?;
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
    let done = DiskCopy { source: from.to_string(), destination: to.to_string(), ..done };
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

fn open_source(name: &TargetName, request: &CopyRequest) -> anyhow::Result<Source> {
    match name {
        TargetName::Nbd(address) => source::of_export(address, request.patience),
        TargetName::Ram(_) => anyhow::bail!(
            "memory is nothing to be copied; put ./ before a file whose name begins with ram:"
        ),
        TargetName::Rbd(name) => Err(through_a_server(name, "from")),
        TargetName::Rados(name) => Err(no_disk(name)),
        TargetName::Path(path) => source::of_path(path, &LiveGuard),
    }
}

fn open_destination(
    name: &TargetName,
    bytes: u64,
    request: &CopyRequest,
) -> anyhow::Result<Destination> {
    match name {
        TargetName::Nbd(address) => destination::of_export(address, request),
        TargetName::Ram(_) => anyhow::bail!(
            "memory is no place to copy to; put ./ before a file whose name begins with ram:"
        ),
        TargetName::Rbd(name) => Err(through_a_server(name, "to")),
        TargetName::Rados(name) => Err(no_disk(name)),
        TargetName::Path(path) => destination::of_path(path, bytes, request, &LiveGuard),
    }
}

fn no_disk(name: &PoolName) -> anyhow::Error {
    anyhow::anyhow!(
        "{} is a pool and no disk; name an image in it, such as rbd:{name}/IMAGE",
        name.address()
    )
}

/// How an image of a Ceph cluster is copied "from" or "to".
fn through_a_server(name: &ImageName, way: &str) -> anyhow::Error {
    anyhow::anyhow!(
        "an image of a Ceph cluster is copied {way} a server of it: start `qemu-nbd --socket=/run/rbd.sock {}` \
         and copy {way} nbd+unix:///?socket=/run/rbd.sock (`rbd export` and `rbd import` do it too)",
        name.address()
    )
}
