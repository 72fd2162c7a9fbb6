//! `rubus attach` and `rubus detach`: exports as block devices of the kernel.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::Context;
use rubus_change::guard;
use rubus_host::clock::{monotonic_ns, now_rfc3339, sleep};
use rubus_host::staying::{self, KeptDirectory, KernelLog, is_there};
use rubus_host::{Hands, Live, live_hands::LiveHands, programs};
use rubus_nbd::attach::records::{Record, Records};
use rubus_nbd::attach::{
    AttachError, Device, Driver, DriverError, End, Leave, LiveKernel, Remote, Server, Settings,
    Urgency, Watcher, attach, has_server,
};
use rubus_nbd::uri::Uri;
use rubus_nbd::wire::TransmissionFlags;
use rubus_vocabulary::units::bytes_si;

use crate::args::{Attach, Detach, General};
use crate::exit::{Exit, Refused};
use crate::places::say;
use crate::signals;

/// The watcher's name among the processes; systemd spares what begins with `@` at shutdown.
const WATCHER: &str = "@rubus-attach";
/// Between attempts to reach a server that is late.
const BETWEEN_ATTEMPTS: Duration = Duration::from_millis(500);
/// How long those may take who have a device open and only look at it.
const LOOKING_ENDS: Duration = Duration::from_secs(3);
/// How long a watcher may take to notice that its device was detached.
const WATCHER_ENDS: Duration = Duration::from_secs(10);

/// Attaches an export, or shows what is attached.
pub fn run(general: &General, arguments: &Attach) -> anyhow::Result<Exit> {
    anyhow::ensure!(
        general.machine.is_none(),
        "attach is about this machine; leave --machine out"
    );
    let Some(address) = &arguments.address else {
        return list(arguments);
    };
    let uri = Uri::parse(address)?;
    if uri.tls {
        return Err(AttachError::Tls.into());
    }
    if let Some(record) = is_done(address, arguments) {
        let device = record.device;
        say(&format!("{device} is {address} already, and watched.\n"))?;
        return Ok(Exit::Fine);
    }
    match arguments.foreground || arguments.watcher {
        true => be_the_watcher(general, arguments, &uri),
        false => start_a_watcher(arguments),
    }
}

/// The device that is wanted, where it is attached as wanted: a service may be started again.
fn is_done(address: &str, arguments: &Attach) -> Option<Record> {
    let records = Records::all().into_iter();
    let mut same = records.filter(|record| Some(record.index) == arguments.device);
    same.find(|record| record.backend == backend_of(address) && is_there(record.watcher))
}

/// The name by which the driver knows what was attached: the address as it was typed, so that a plan that names it
/// finds it.
fn backend_of(address: &str) -> String {
    format!("rubus {address}")
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
fn be_the_watcher(general: &General, arguments: &Attach, uri: &Uri) -> anyhow::Result<Exit> {
    let trouble = || format!("cannot attach {uri}");
    let (driver, mut remote, device) = make(arguments, uri).with_context(trouble)?;
    let record = record_of(&device, arguments, uri);
    let path = record.device.clone();
    // Without what watching needs, the device would be lost at the first trouble, so it is not kept.
    let mut made = match Made::open(driver, &device, &record) {
        Ok(made) => made,
        Err(error) => {
            let index = device.index;
            drop(Driver::open().and_then(|mut driver| driver.disconnect(index)));
            return Err(error.context(trouble()));
        }
    };
    limit_requests(&device);
    let text = announcement(&record, &device, arguments);
    if arguments.watcher {
        say(&format!("{}\n{text}", serde_json::to_string(&record)?))?;
    } else if !general.quiet {
        say(&text)?;
        if let Some(directory) = &arguments.mount {
            mount(&serde_json::to_string(&record)?, directory)?;
        }
    }
    let stop = signals::asked_flag()?;
    let refused = staying::stay();
    for why in refused {
        made.log
            .line(4, &format!("rubus: nbd{}: {why}", device.index));
    }
    if arguments.watcher {
        staying::let_go().context("cannot leave the terminal")?;
    }
    let end = watch(&mut made, &mut remote, device, arguments, &stop);
    made.records.remove(record.index);
    match end {
        End::GivenUp(why) => {
            anyhow::bail!("{path} was failed and not resumed: {why}")
        }
        End::Detached | End::Stopped => Ok(Exit::Fine),
    }
}

/// What the watcher holds open from the start, because it may not be reachable later.
struct Made {
    kernel: LiveKernel,
    log: KernelLog,
    records: Records,
    record: Record,
    nodes: Option<KeptDirectory>,
}

impl Made {
    fn open(driver: Driver, device: &Device, record: &Record) -> anyhow::Result<Made> {
        let made = Made {
            kernel: LiveKernel::of(driver, device.index, &device.backend)?,
            log: KernelLog::open().context("cannot open /dev/kmsg")?,
            records: Records::open()?,
            record: record.clone(),
            nodes: Some(KeptDirectory::open(Path::new("/dev")).context("cannot open /dev")?),
        };
        made.records.write(record);
        Ok(made)
    }
}

fn make(arguments: &Attach, uri: &Uri) -> anyhow::Result<(Driver, Remote, Device)> {
    let mut driver = driver()?;
    let settings = Settings {
        index: arguments.device,
        connections: arguments.connections,
        timeout_s: arguments.timeout,
        dead_timeout_s: arguments.dead_timeout,
        read_only: arguments.read_only,
        vouched_for: arguments.resume_unidentified,
    };
    let backend = backend_of(arguments.address.as_deref().unwrap_or_default());
    let start_ns = monotonic_ns();
    let max_ns = u64::from(arguments.wait) * 1_000_000_000;
    loop {
        let attempt = Remote::find(uri).and_then(|mut remote| {
            let device = attach(&mut driver, &mut remote, &backend, &settings)?;
            Ok((remote, device))
        });
        match attempt {
            Ok((remote, device)) => return Ok((driver, remote, device)),
            Err(error) => {
                // A server or a name service that is late may still come.
                let may_come = matches!(error, AttachError::Server(_) | AttachError::Network(_));
                if !may_come || monotonic_ns() - start_ns >= max_ns {
                    return Err(error.into());
                }
            }
        }
        sleep(BETWEEN_ATTEMPTS);
    }
}

/// The driver, with its module loaded where that is needed.
fn driver() -> Result<Driver, DriverError> {
    match Driver::open() {
        Err(DriverError::Absent) => {
            let never = AtomicBool::new(false);
            // What is missing is said by the second attempt.
            let _ = programs::run("modprobe", &["nbd"], &never);
            Driver::open()
        }
        answer => answer,
    }
}

fn record_of(device: &Device, arguments: &Attach, uri: &Uri) -> Record {
    let appearance = device.attached.appearance;
    Record {
        device: format!("/dev/nbd{}", device.index),
        index: device.index,
        address: uri.to_string(),
        backend: device.backend.clone(),
        size_bytes: appearance.size_bytes,
        read_only: appearance.flags.has(TransmissionFlags::READ_ONLY),
        connections: device.attached.lines.len(),
        alive: device.attached.lines.len(),
        replaced: 0,
        unflushed: false,
        identity: appearance.identity.map(|identity| identity.to_string()),
        dead_timeout_s: arguments.dead_timeout,
        since: now_rfc3339(),
        watcher: std::process::id(),
        trouble: None,
    }
}

/// A server that takes smaller requests than the kernel would send.
fn limit_requests(device: &Device) {
    let knob = PathBuf::from(format!(
        "/sys/block/nbd{}/queue/max_sectors_kb",
        device.index
    ));
    let max_kib = device.max_request_bytes / 1024;
    let now = std::fs::read_to_string(&knob).unwrap_or_default();
    if now.trim().parse::<u32>().is_ok_and(|now| now > max_kib) {
        // The server would answer a request that is too long with an error, and the kernel log has it.
        let _ = LiveHands::new().set_knob(&knob, &max_kib.max(4).to_string());
    }
}

fn announcement(record: &Record, device: &Device, arguments: &Attach) -> String {
    let Record {
        device: path,
        address,
        dead_timeout_s,
        ..
    } = record;
    let flags = device.attached.appearance.flags;
    let size = bytes_si(record.size_bytes);
    let how = if record.read_only {
        ", for reading only"
    } else {
        ""
    };
    let lines = match record.connections {
        1 => String::new(),
        n => format!(", {n} connections"),
    };
    let mut text = format!(
        "{path} is {address}: {size}{how}{lines}.\n\
         When the server is gone, reads and writes wait up to {dead_timeout_s} s for it.\n"
    );
    if let (false, Some(identity)) = (record.read_only, device.attached.appearance.identity) {
        if !identity.sync {
            text += "If the server's machine is restarted after writes that were not flushed, the device is failed.\n";
        }
    }
    if record.identity.is_none() && !record.read_only {
        text += match arguments.resume_unidentified {
            true => {
                "This server does not say which disk it serves; it is resumed all the same, as asked for.\n"
            }
            false => {
                "This server does not say which disk it serves. When its connection ends after writes that were not\n\
                 flushed, the device is failed; --resume-unidentified resumes it, which is safe as long as the\n\
                 server's machine is not restarted.\n"
            }
        };
    }
    if !device.attached.fenced && !record.read_only {
        text += "This server does not fence: after a lost connection it may still carry out old writes, over newer ones, if it is\n\
                 slow. Leave --timeout out, or take one well above its slowest request.\n";
    }
    if !flags.has(TransmissionFlags::SEND_FLUSH) && !record.read_only {
        text += "This server does not know flushes: nothing is known to be durable.\n";
    }
    text
}

fn watch(
    made: &mut Made,
    remote: &mut Remote,
    device: Device,
    arguments: &Attach,
    stop: &Arc<AtomicBool>,
) -> End {
    let Made {
        kernel,
        log,
        records,
        record,
        nodes,
    } = made;
    let to_terminal = !arguments.watcher;
    let mut line = |urgency: Urgency, text: &str| {
        let number = match urgency {
            Urgency::Error => 3,
            Urgency::Warning => 4,
            Urgency::Note => 5,
        };
        log.line(number, &format!("rubus: {text}"));
        if to_terminal {
            eprintln!("rubus: {text}");
        }
    };
    let index = device.index;
    let mut tell = |state: &rubus_nbd::attach::AttachmentState| {
        record.update(state);
        records.write(record);
    };
    let server: &mut dyn Server = remote;
    let leaves: Leave = Arc::new(move || leave(index, false).map_err(|why| format!("{why:#}")));
    let attached = device.attached;
    let mut watcher = Watcher::new(attached, kernel, server, &mut line, &mut tell, stop, leaves);
    if let Some(nodes) = nodes.take() {
        watcher = watcher.flushing_in(nodes);
    }
    let end = watcher.run();
    drop(watcher);
    if end == End::Stopped {
        line(Urgency::Note, &format!("nbd{index}: detached"));
    }
    end
}

/// Detaches a device.
pub fn detach(general: &General, arguments: &Detach) -> anyhow::Result<Exit> {
    anyhow::ensure!(
        general.machine.is_none(),
        "detach is about this machine; leave --machine out"
    );
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
    leave(index, arguments.give_up)?;
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

/// A device that another program attached is that one's to detach.
fn must_be_ours(index: u32, record: Option<&Record>) -> anyhow::Result<()> {
    if record.is_some() || backend_in_use(index).starts_with("rubus ") {
        return Ok(());
    }
    match has_server(index) {
        true => anyhow::bail!(
            "/dev/nbd{index} was attached by another program; for nbd-client: nbd-client -d /dev/nbd{index}"
        ),
        false => anyhow::bail!("/dev/nbd{index} is not attached"),
    }
}

/// The name by which the driver knows an attached device. Kernels before 5.14 do not tell, nor ask for it.
fn backend_in_use(index: u32) -> String {
    let path = format!("/sys/block/nbd{index}/backend");
    let backend = std::fs::read_to_string(path).unwrap_or_default();
    backend.trim_end_matches('\n').to_owned()
}

/// Writes what is in caches and takes the device its server, if nobody uses it.
fn leave(index: u32, give_up: bool) -> anyhow::Result<()> {
    let path = PathBuf::from(format!("/dev/nbd{index}"));
    let refused = |why: guard::Refusal| Refused(why.to_string());
    if give_up {
        // Opening it would wait for the server, and closing it once more.
        guard::carries_nothing(&Live::new(), &path).map_err(refused)?;
        return Ok(Driver::open()?.disconnect(index)?);
    }
    let claim = || guard::unused(&Live::new(), &path).map_err(refused);
    let unused = claim()?;
    let mut driver = Driver::open()?;
    unused.flush().with_context(|| {
        format!(
            "what was written to {} cannot be made durable; --give-up detaches it all the same",
            path.display()
        )
    })?;
    // Of a device that loses its server while it is open, whoever has it open reads and flushes on, and the kernel
    // log gets errors that look like a broken disk. So the driver is to do it when nobody has it open.
    let backend = backend_in_use(index);
    driver.disconnect_on_close(index, &backend, true)?;
    drop(unused);
    if is_gone_soon(index) {
        return Ok(());
    }
    // Somebody only reads it and does not end: no reason not to detach it, unless it was mounted meanwhile.
    let unused = claim();
    if !has_server(index) {
        return Ok(());
    }
    driver.disconnect_on_close(index, &backend, false)?;
    let _unused = unused?;
    Ok(driver.disconnect(index)?)
}

/// Waits until the driver has taken the device its server, for as long as a look at it may take.
fn is_gone_soon(index: u32) -> bool {
    let start_ns = monotonic_ns();
    while has_server(index) {
        if monotonic_ns() - start_ns > LOOKING_ENDS.as_nanos() as u64 {
            return false;
        }
        sleep(Duration::from_millis(10));
    }
    true
}
