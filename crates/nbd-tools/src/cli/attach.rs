//! `rubus attach` and `rubus detach`: exports as block devices of the kernel.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use rubus_command::places::say;
use rubus_command::{Exit, General, Json, message, signals};
use rubus_host::clock::{monotonic_ns, sleep};
use rubus_host::process::mlocked::{self, is_there};
use rubus_host::process::programs;
use rubus_nbd::uri::Uri;
use rubus_vocabulary::verb::{MISTAKE, PLAIN, Page};

use super::Outside;
use crate::attach::keep::{AttachRequest, Made, is_done, leave, must_be_ours};
use crate::attach::records::{Record, Records};
use crate::attach::{AttachError, End};

/// Exit statuses and examples.
pub const PAGE: Page = Page {
    name: "rubus-attach",
    statuses: PLAIN,
    examples: &[
        (
            "sudo rubus attach nbd://192.168.1.5/disk --mount /mnt/disk",
            "Attach a network disk, and mount it.",
        ),
        ("rubus attach", "List attached devices."),
    ],
};

/// Exit statuses and examples.
pub const DETACH_PAGE: Page = Page {
    name: "rubus-detach",
    statuses: &[(0, "detached"), MISTAKE, (3, "refused: the device is in use")],
    examples: &[(
        "sudo rubus detach /dev/nbd0",
        "Write cached data, then detach. Unmount the device first.",
    )],
};

/// Attach an NBD export as a block device, and keep it connected.
///
/// The kernel's own driver moves the data; no other program is needed. A watcher stays in the
/// background: when the server restarts or the network fails, reads and writes wait while it
/// reconnects. They continue if the export is still the same disk with every write. If not, or if
/// that cannot be known, the device fails instead.
///
/// Without an address, lists attached devices.
#[derive(Debug, Args)]
pub struct Attach {
    /// The export, such as nbd://server/disk
    #[arg(value_name = "ADDRESS")]
    pub address: Option<String>,
    /// The device, such as /dev/nbd0 [default: the first free one]
    #[arg(value_name = "DEVICE", value_parser = device)]
    pub device: Option<u32>,
    /// Mount it there
    #[arg(long, value_name = "DIR", requires = "address", value_hint = clap::ValueHint::DirPath)]
    pub mount: Option<PathBuf>,
    /// Number of connections; more than 1 needs a server with multi-conn [default: 4 with
    /// multi-conn, else 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=16))]
    pub connections: Option<u32>,
    /// Drop a connection when a request takes longer; 0 means never: a dead server machine is still
    /// noticed after 30 seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=86_400))]
    pub timeout: u32,
    /// How long reads and writes wait for a lost server before they fail, and any filesystem on the
    /// device with them
    #[arg(long, value_name = "SECONDS", default_value_t = 300, value_parser = clap::value_parser!(u32).range(1..=31_536_000))]
    pub dead_timeout: u32,
    /// How long to retry the first connection
    #[arg(long, value_name = "SECONDS", default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=86_400))]
    pub wait: u32,
    /// Allow no writes
    #[arg(long)]
    pub read_only: bool,
    /// Also resume with a server that does not identify its disk (nbdkit, nbd-server, qemu-nbd);
    /// writes may be lost if its machine was restarted, not just the server program
    #[arg(long)]
    pub resume_unidentified: bool,
    /// Run the watcher in this process instead of the background; Ctrl-C detaches
    #[arg(long)]
    pub foreground: bool,
    /// The watcher that a process in the foreground starts
    #[arg(long, hide = true, conflicts_with = "foreground")]
    pub watcher: bool,
    #[command(flatten)]
    pub json: Json,
}

/// Detach a device from its NBD export.
///
/// Writes cached data first. A device that is mounted, used as swap or otherwise in use is refused.
#[derive(Debug, Args)]
pub struct Detach {
    /// The device, such as /dev/nbd0 [default: the only one]
    #[arg(value_name = "DEVICE", value_parser = device)]
    pub device: Option<u32>,
    /// Do not wait for a lost server: unwritten data is lost
    #[arg(long)]
    pub give_up: bool,
}

fn device(text: &str) -> Result<u32, String> {
    let name = text.strip_prefix("/dev/").unwrap_or(text);
    let number = name.strip_prefix("nbd").and_then(|n| n.parse().ok());
    let plain = |n: &u32| name == format!("nbd{n}") && *n <= 255;
    number.filter(plain).ok_or_else(|| "write it as /dev/nbd0, up to /dev/nbd255".into())
}

/// The watcher's name among the processes; systemd spares what begins with `@` at shutdown.
const WATCHER: &str = "@rubus-attach";
/// How long a watcher may take to notice that its device was detached.
const WATCHER_ENDS: Duration = Duration::from_secs(10);

/// Attaches an export, or shows what is attached.
pub fn run(general: &General, arguments: &Attach, outside: &dyn Outside) -> anyhow::Result<Exit> {
    anyhow::ensure!(general.machine.is_none(), "attach is about this machine; leave --machine out");
    let Some(address) = &arguments.address else {
        return list(arguments);
    };
    let uri = Uri::parse(address)?;
    if uri.tls {
        return Err(AttachError::Tls.into());
    }
    if let Some(record) = is_done(address, arguments.device) {
        let device = record.device;
        say(&format!("{device} is {address} already, and watched.\n"))?;
        return Ok(Exit::Fine);
    }
    if arguments.foreground || arguments.watcher {
        be_the_watcher(general, arguments, (address, &uri), outside)
    } else {
        start_a_watcher(arguments)
    }
}

fn list(arguments: &Attach) -> anyhow::Result<Exit> {
    let records = Records::all();
    if arguments.json.wanted {
        say(&(serde_json::to_string_pretty(&records)? + "\n"))?;
    } else if records.is_empty() {
        say("Nothing is attached. To attach: rubus attach nbd://SERVER/EXPORT\n")?;
    } else {
        let lines: Vec<String> = records.iter().map(Record::line).collect();
        say(&lines.concat())?;
    }
    Ok(Exit::Fine)
}

/// Starts this program again in the background, and waits until its device is there.
fn start_a_watcher(arguments: &Attach) -> anyhow::Result<Exit> {
    let mut words: Vec<OsString> = std::env::args_os().skip(1).collect();
    words.push("--watcher".into());
    let mut watcher = mlocked::background(WATCHER, &words)
        .context("cannot start the watcher in the background")?;
    let said = watcher.hear().context("cannot hear the watcher")?;
    let Some((record, text)) = said.split_once('\n') else {
        // It has said why on standard error.
        let status = watcher.end().context("cannot wait for the watcher")?;
        let code = status.code().and_then(|code| u8::try_from(code).ok());
        return Ok(Exit::Status(code.filter(|code| *code != 0).unwrap_or(2)));
    };
    if arguments.json.wanted {
        let record: Record = serde_json::from_str(record)?;
        say(&(serde_json::to_string_pretty(&record)? + "\n"))?;
    } else {
        say(text)?;
    }
    match &arguments.mount {
        Some(directory) => mount(record, directory),
        None => Ok(Exit::Fine),
    }
}

fn mount(record: &str, directory: &Path) -> anyhow::Result<Exit> {
    let record: Record = serde_json::from_str(record)?;
    let at = directory.to_string_lossy();
    let never = AtomicBool::new(false);
    let mut words = vec![record.device.as_str(), &at];
    if record.read_only {
        words.splice(0..0, ["-o", "ro"]);
    }
    programs::run("mount", &words, &never).with_context(|| {
        format!(
            "{device} is attached, but cannot be mounted at {at} (`rubus detach {device}` detaches it)",
            device = record.device
        )
    })?;
    say(&format!("Mounted at {at}.\n"))?;
    Ok(Exit::Fine)
}

/// Attaches and watches, in this process.
fn be_the_watcher(
    general: &General,
    arguments: &Attach,
    (address, uri): (&str, &Uri),
    outside: &dyn Outside,
) -> anyhow::Result<Exit> {
    let request = AttachRequest {
        address: address.into(),
        index: arguments.device,
        connections: arguments.connections,
        timeout_s: arguments.timeout,
        dead_timeout_s: arguments.dead_timeout,
        wait_s: arguments.wait,
        read_only: arguments.read_only,
        resume_unidentified: arguments.resume_unidentified,
    };
    let mut made = Made::new(&request, uri, outside.guard())?;
    let path = made.record.device.clone();
    let text = made.announcement(&request);
    if arguments.watcher {
        say(&format!("{}\n{text}", serde_json::to_string(&made.record)?))?;
    } else if !general.quiet {
        say(&text)?;
        if let Some(directory) = &arguments.mount {
            mount(&serde_json::to_string(&made.record)?, directory)?;
        }
    }
    let stop = signals::asked_flag()?;
    made.stay();
    if arguments.watcher {
        mlocked::let_go().context("cannot leave the terminal")?;
    }
    match made.watch(!arguments.watcher, &stop) {
        End::GivenUp(why) => {
            anyhow::bail!("{path} was failed and not resumed: {why}")
        }
        End::Detached | End::Stopped => Ok(Exit::Fine),
    }
}

/// Detaches a device.
pub fn detach(
    general: &General,
    arguments: &Detach,
    outside: &dyn Outside,
) -> anyhow::Result<Exit> {
    anyhow::ensure!(general.machine.is_none(), "detach is about this machine; leave --machine out");
    let records = Records::all();
    let index = match (arguments.device, records.as_slice()) {
        (Some(index), _) => index,
        (None, [only]) => only.index,
        (None, []) => anyhow::bail!("nothing is attached"),
        (None, several) => {
            let names: Vec<&str> = several.iter().map(|one| one.device.as_str()).collect();
            anyhow::bail!("which one? Attached are {}", names.join(", "))
        }
    };
    let record = records.iter().find(|record| record.index == index);
    must_be_ours(index, record)?;
    leave(index, arguments.give_up, &*outside.guard())?;
    let kept = Records::open()?;
    let watcher = record.map_or(0, |record| record.watcher);
    let start_ns = monotonic_ns();
    while kept.has(index) && is_there(watcher) {
        if monotonic_ns() - start_ns > WATCHER_ENDS.as_nanos() as u64 {
            message!(
                "rubus: the watcher of /dev/nbd{index} (process {watcher}) still runs; it ends when no program has \
                 the device open"
            );
            break;
        }
        sleep(Duration::from_millis(20));
    }
    kept.remove(index);
    if !general.quiet {
        say(&format!("/dev/nbd{index} is detached.\n"))?;
    }
    Ok(Exit::Fine)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_whole_and_written_as_the_kernel_does() {
        assert_eq!(device("/dev/nbd0"), Ok(0));
        assert_eq!(device("nbd12"), Ok(12));
        for wrong in ["", "nbd", "/dev/sda", "nbd0p1", "nbd00", "nbd256", "0"] {
            assert!(device(wrong).is_err(), "{wrong}");
        }
    }
}
