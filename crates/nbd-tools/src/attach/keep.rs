//! An attached device from its making to its end: who it is, what is said of it, how it is watched and left.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::Context;
use rubus_host::Hands;
use rubus_host::clock::{monotonic_ns, now_rfc3339, sleep};
use rubus_host::files::own_files;
use rubus_host::live::hands::LiveHands;
use rubus_host::process::mlocked::{self, KeptDirectory, KernelLog, is_there};
use rubus_host::process::programs;
use rubus_host::process::standard_error;
use rubus_nbd::uri::Uri;
use rubus_nbd::wire::TransmissionFlags;
use rubus_vocabulary::refused::Refused;
use rubus_vocabulary::units::bytes_si;

use super::records::{Record, Records};
use super::{
    AttachError, AttachmentState, Device, Driver, DriverError, End, Leave, LiveKernel, Remote,
    Server, Settings, Urgency, Watcher, attach, has_server,
};
use crate::guard::Guard;

/// What is to be attached, and how.
#[derive(Clone, Debug)]
pub struct AttachRequest {
    /// The address as it was typed.
    pub address: String,
    /// Number of the device; any free one where none is named.
    pub index: Option<u32>,
    pub connections: Option<u32>,
    pub timeout_s: u32,
    pub dead_timeout_s: u32,
    /// How long a server that is late is waited for.
    pub wait_s: u32,
    pub read_only: bool,
    pub resume_unidentified: bool,
}

/// Between attempts to reach a server that is late.
const BETWEEN_ATTEMPTS: Duration = Duration::from_millis(500);
/// How long those may take who have a device open and only look at it.
const LOOKING_ENDS: Duration = Duration::from_secs(3);

/// The device that is wanted, where it is attached as wanted: a service may be started again.
pub fn is_done(address: &str, index: Option<u32>) -> Option<Record> {
    let records = Records::all().into_iter();
    let mut same = records.filter(|record| Some(record.index) == index);
    same.find(|record| record.backend == backend_of(address) && is_there(record.watcher))
}

/// The name by which the driver knows what was attached: the address as it was typed, so that a plan that names it
/// finds it.
fn backend_of(address: &str) -> String {
    format!("rubus {address}")
}

/// What the watcher holds open from the start, because it may not be reachable later.
pub struct Made {
    kernel: LiveKernel,
    log: KernelLog,
    records: Records,
    pub record: Record,
    nodes: Option<KeptDirectory>,
    device: Device,
    remote: Remote,
    guard: Arc<dyn Guard + Send + Sync>,
}

impl Made {
    /// Attaches a device and opens what watching it needs.
    ///
    /// # Errors
    /// In words; nothing is attached then.
    pub fn new(
        request: &AttachRequest,
        uri: &Uri,
        guard: Arc<dyn Guard + Send + Sync>,
    ) -> anyhow::Result<Made> {
        let trouble = || format!("cannot attach {uri}");
        let (driver, remote, device) = make(request, uri).with_context(trouble)?;
        let record = record_of(&device, request, uri);
        let index = device.index;
        // Without what watching needs, the device would be lost at the first trouble, so it is not kept.
        let made = match Made::open(driver, (device, remote), record, guard) {
            Ok(made) => made,
            Err(error) => {
                drop(Driver::open().and_then(|mut driver| driver.disconnect(index)));
                return Err(error.context(trouble()));
            }
        };
        limit_requests(&made.device);
        Ok(made)
    }

    fn open(
        driver: Driver,
        (device, remote): (Device, Remote),
        record: Record,
        guard: Arc<dyn Guard + Send + Sync>,
    ) -> anyhow::Result<Made> {
        let made = Made {
            kernel: LiveKernel::of(driver, device.index, &device.backend)?,
            log: KernelLog::open().context("cannot open /dev/kmsg")?,
            records: Records::open()?,
            nodes: Some(KeptDirectory::open(Path::new("/dev")).context("cannot open /dev")?),
            record,
            device,
            remote,
            guard,
        };
        made.records.write(&made.record);
        Ok(made)
    }

    /// What is said of it, for people.
    pub fn announcement(&self, request: &AttachRequest) -> String {
        announcement(&self.record, &self.device, request)
    }

    /// Keeps this process from waiting for the device that it keeps, and says in the kernel's log what does not work.
    pub fn stay(&mut self) {
        for why in mlocked::stay() {
            let index = self.device.index;
            self.log.line(4, &format!("rubus: nbd{index}: {why}"));
        }
    }

    /// Watches until `stop` is set or the device has ended; what happens is said in the kernel's log, and to the terminal
    /// if there is one.
    pub fn watch(self, to_terminal: bool, stop: &Arc<AtomicBool>) -> End {
        watch(self, to_terminal, stop)
    }
}

fn make(request: &AttachRequest, uri: &Uri) -> anyhow::Result<(Driver, Remote, Device)> {
    let mut driver = driver()?;
    let settings = Settings {
        index: request.index,
        connections: request.connections,
        timeout_s: request.timeout_s,
        dead_timeout_s: request.dead_timeout_s,
        read_only: request.read_only,
        vouched_for: request.resume_unidentified,
    };
    let backend = backend_of(&request.address);
    let start_ns = monotonic_ns();
    let max_ns = u64::from(request.wait_s) * 1_000_000_000;
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

fn record_of(device: &Device, request: &AttachRequest, uri: &Uri) -> Record {
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
        dead_timeout_s: request.dead_timeout_s,
        since: now_rfc3339(),
        watcher: std::process::id(),
        trouble: None,
    }
}

/// A server that takes smaller requests than the kernel would send.
fn limit_requests(device: &Device) {
    let knob = PathBuf::from(format!("/sys/block/nbd{}/queue/max_sectors_kb", device.index));
    let max_kib = device.max_request_bytes / 1024;
    let now = own_files::text(&knob).unwrap_or_default();
    if now.trim().parse::<u32>().is_ok_and(|now| now > max_kib) {
        // The server would answer a request that is too long with an error, and the kernel log has it.
        let _ = LiveHands::new().set_knob(&knob, &max_kib.max(4).to_string());
    }
}

fn announcement(record: &Record, device: &Device, request: &AttachRequest) -> String {
    let Record { device: path, address, dead_timeout_s, .. } = record;
    let flags = device.attached.appearance.flags;
    let size = bytes_si(record.size_bytes);
    let how = if record.read_only { ", for reading only" } else { "" };
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
        text += if request.resume_unidentified {
            "This server does not say which disk it serves; it is resumed all the same, as asked for.\n"
        } else {
            "This server does not say which disk it serves. When its connection ends after writes that were not\n\
                 flushed, the device is failed; --resume-unidentified resumes it, which is safe as long as the\n\
                 server's machine is not restarted.\n"
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

fn watch(made: Made, to_terminal: bool, stop: &Arc<AtomicBool>) -> End {
    let Made { mut kernel, log, records, mut record, nodes, device, mut remote, guard } = made;
    let mut line = |urgency: Urgency, text: &str| {
        let number = match urgency {
            Urgency::Error => 3,
            Urgency::Warning => 4,
            Urgency::Note => 5,
        };
        log.line(number, &format!("rubus: {text}"));
        if to_terminal {
            standard_error::write_line(&format!("rubus: {text}"));
        }
    };
    let index = device.index;
    let mut tell = |state: &AttachmentState| {
        record.update(state);
        records.write(&record);
    };
    let server: &mut dyn Server = &mut remote;
    let leaves: Leave =
        Arc::new(move || leave(index, false, &*guard).map_err(|why| format!("{why:#}")));
    let attached = device.attached;
    let mut watcher =
        Watcher::new(attached, &mut kernel, server, &mut line, &mut tell, stop, leaves);
    if let Some(nodes) = nodes {
        watcher = watcher.flushing_in(nodes);
    }
    let end = watcher.run();
    drop(watcher);
    if end == End::Stopped {
        line(Urgency::Note, &format!("nbd{index}: detached"));
    }
    records.remove(index);
    end
}

/// A device that another program attached is that one's to detach.
///
/// # Errors
/// When it was, or is not attached at all.
pub fn must_be_ours(index: u32, record: Option<&Record>) -> anyhow::Result<()> {
    if record.is_some() || backend_in_use(index).starts_with("rubus ") {
        return Ok(());
    }
    if has_server(index) {
        anyhow::bail!(
            "/dev/nbd{index} was attached by another program; for nbd-client: nbd-client -d /dev/nbd{index}"
        )
    } else {
        anyhow::bail!("/dev/nbd{index} is not attached")
    }
}

/// The name by which the driver knows an attached device. Kernels before 5.14 do not tell, nor ask for it.
fn backend_in_use(index: u32) -> String {
    let path = format!("/sys/block/nbd{index}/backend");
    let backend = own_files::text(Path::new(&path)).unwrap_or_default();
    backend.trim_end_matches('\n').to_owned()
}

/// Flushes a device's caches and disconnects the device if it is not in use.
///
/// # Errors
/// If the device is in use ([`Refused`]), or its caches cannot be flushed.
pub fn leave(index: u32, give_up: bool, guard: &dyn Guard) -> anyhow::Result<()> {
    let path = PathBuf::from(format!("/dev/nbd{index}"));
    if give_up {
        // Opening it would wait for the server, and closing it once more.
        guard.carries_nothing(&path).map_err(Refused)?;
        return Ok(Driver::open()?.disconnect(index)?);
    }
    let claim = || guard.unused(&path).map_err(Refused);
    let unused = claim()?;
    let mut driver = Driver::open()?;
    unused.flush().with_context(|| {
        format!(
            "what was written to {} cannot be made durable; --give-up detaches it all the same",
            path.display()
        )
    })?;
    // If an open device loses its server, its users keep reading and flushing, and the kernel log fills with
    // errors that look like a broken disk. So the driver disconnects it on its last close.
    let backend = backend_in_use(index);
    driver.disconnect_on_close(index, &backend, true)?;
    drop(unused);
    if is_gone_soon(index) {
        return Ok(());
    }
    // A reader that never ends is no reason to stay attached, unless the device was mounted meanwhile.
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
