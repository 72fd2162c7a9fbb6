//! `rubus attach` and `rubus detach`: exports as block devices of the kernel.

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::Context;
use rubus_host::clock::{monotonic_ns, sleep};
use rubus_host::programs;
use rubus_host::staying::{self, is_there};
use rubus_nbd::attach::keep::{AttachRequest, Made, is_done, leave, must_be_ours};
use rubus_nbd::attach::records::{Record, Records};
use rubus_nbd::attach::{AttachError, End};
use rubus_nbd::uri::Uri;

use crate::args::{Attach, Detach, General};
use crate::exit::Exit;
use crate::guarding::LiveGuard;
use rubus_command::places::say;
use rubus_command::signals;

/// The watcher's name among the processes; systemd spares what begins with `@` at shutdown.
const WATCHER: &str = "@rubus-attach";
/// How long a watcher may take to notice that its device was detached.
const WATCHER_ENDS: Duration = Duration::from_secs(10);

/// Attaches an export, or shows what is attached.
pub fn run(general: &General, arguments: &Attach) -> anyhow::Result<Exit> {
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
        be_the_watcher(general, arguments, address, &uri)
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
    let mut watcher = staying::background(WATCHER, &words)
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
    address: &str,
    uri: &Uri,
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
    let mut made = Made::new(&request, uri, Arc::new(LiveGuard))?;
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
        staying::let_go().context("cannot leave the terminal")?;
    }
    match made.watch(!arguments.watcher, &stop) {
        End::GivenUp(why) => {
            anyhow::bail!("{path} was failed and not resumed: {why}")
        }
        End::Detached | End::Stopped => Ok(Exit::Fine),
    }
}

/// Detaches a device.
pub fn detach(general: &General, arguments: &Detach) -> anyhow::Result<Exit> {
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
    leave(index, arguments.give_up, &LiveGuard)?;
    let kept = Records::open()?;
    let watcher = record.map_or(0, |record| record.watcher);
    let start_ns = monotonic_ns();
    while kept.has(index) && is_there(watcher) {
        if monotonic_ns() - start_ns > WATCHER_ENDS.as_nanos() as u64 {
            eprintln!(
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
