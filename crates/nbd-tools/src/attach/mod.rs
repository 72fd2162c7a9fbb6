//! Exports as block devices of the kernel: its NBD driver, set up through netlink with connections
//! whose handshake is ours, and a watcher that keeps them.
//!
//! The data goes from the kernel to the server and back without this program, which only has to be
//! there when a connection has ended. [`attach`] makes the device, `watch` keeps it.

mod driver;
mod durability;
pub mod keep;
mod message;
pub mod records;
mod watch;

use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rubus_host::net::{NetError, Stream, addresses};
use rubus_host::process::mlocked::KeptDirectory;
use rubus_nbd::client::{ClientError, Extras, Offer, Wish, agree_with};
use rubus_nbd::identity::{Appearance, Uuid};
use rubus_nbd::uri::{Server as Place, Uri};
use rubus_nbd::wire::{Claim, TransmissionFlags};

pub use driver::{DeadLinks, Driver, DriverError};
pub use durability::Counters;
pub use watch::{
    Attached, AttachmentState, End, Kernel, Leave, Pace, SILENCE, Server, Urgency, Watcher,
};

use driver::Setting;

/// How long one step of connecting may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// Default number of connections to a server with multi-conn.
const USUAL_CONNECTIONS: u32 = 4;
/// The kernel's driver takes block sizes from here up to its page size.
const MIN_BLOCK_BYTES: u32 = 512;
const MAX_BLOCK_BYTES: u32 = 4096;

/// How a device is to be attached.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Number of the device; the first free one otherwise.
    pub index: Option<u32>,
    /// How many connections; up to four otherwise, as the server allows.
    pub connections: Option<u32>,
    /// How long a request may take before its connection is given up, in seconds; 0 is for ever.
    pub timeout_s: u32,
    /// How long requests wait for a server that is gone, in seconds.
    pub dead_timeout_s: u32,
    /// Attach the device read-only.
    pub read_only: bool,
    /// A server that does not say who it is may be resumed all the same.
    pub vouched_for: bool,
}

/// Why nothing was attached.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// The address asks for TLS.
    #[error(
        "the kernel speaks to the server itself and knows no TLS: attach nbd:// over a network \
         that you trust, or through a tunnel (WireGuard, `ssh -L`)"
    )]
    Tls,
    /// The server's address cannot be resolved or reached.
    #[error(transparent)]
    Network(#[from] NetError),
    /// The handshake failed, or the server refused the export.
    #[error("{0}")]
    Server(String),
    /// Several connections on a server that does not coordinate them.
    #[error(
        "the server does not promise that all connections see the same data (multi-conn); leave \
         --connections out"
    )]
    OneConnection,
    /// Exports of one name and two kinds.
    #[error("the export changed while it was being connected to; try again")]
    Changed,
    /// An empty export.
    #[error("the export is smaller than one block of {0} bytes")]
    Empty(u32),
    /// A block size that the kernel cannot have.
    #[error("the server wants blocks of {0} bytes; the kernel's driver can do up to 4096")]
    Blocks(u32),
    /// The kernel's driver refused.
    #[error(transparent)]
    Driver(#[from] DriverError),
}

/// The server of an export in the clear, by addresses that were looked up once: the name service may
/// need the very disk that is to be reached.
#[derive(Clone, Debug)]
pub struct Remote {
    export: String,
    way: Way,
    /// By which the server knows that connections belong together.
    attachment: Option<u128>,
    /// Connections that were tried.
    generation: u64,
}

#[derive(Clone, Debug)]
enum Way {
    Tcp(Vec<SocketAddr>),
    Unix(PathBuf),
}

impl Remote {
    /// Looks the server's addresses up.
    ///
    /// # Errors
    /// When there are none, or the address asks for TLS.
    pub fn find(uri: &Uri) -> Result<Remote, AttachError> {
        if uri.tls {
            return Err(AttachError::Tls);
        }
        let way = match &uri.server {
            Place::Tcp { host, port } => Way::Tcp(addresses(host, *port)?),
            Place::Unix(path) => Way::Unix(path.clone()),
        };
        Ok(Remote { export: uri.export.clone(), way, attachment: random(), generation: 0 })
    }

    fn stream(&self) -> Result<Stream, NetError> {
        let all = match &self.way {
            Way::Unix(path) => return Stream::unix(path),
            Way::Tcp(all) => all,
        };
        let mut first = None;
        for address in all {
            match Stream::tcp_at(*address, PATIENCE) {
                Ok(stream) => return Ok(stream),
                Err(error) => first = first.or(Some(error)),
            }
        }
        Err(first.unwrap_or_else(|| NetError::Name {
            host: "the server".into(),
            error: std::io::ErrorKind::NotFound.into(),
        }))
    }
}

impl Server for Remote {
    fn connect(&mut self, lane: usize, ended: &[usize]) -> Result<(Stream, Offer), String> {
        self.generation += 1;
        let stream = self.stream().map_err(|error| error.to_string())?;
        let wish = Wish {
            export: self.export.clone(),
            tls: false,
            // The kernel knows simple ones alone.
            structured_replies: false,
        };
        let no_tls = |_| Err(ClientError::Tls("it was not asked for".into()));
        let fence = self.attachment.map(|attachment| Claim {
            attachment,
            generation: self.generation,
            lane: lane as u32,
            ended: bits(ended),
        });
        let extras = Extras { fence, ..Extras::default() };
        agree_with(stream, wish, extras, PATIENCE, no_tls).map_err(|error| error.to_string())
    }
}

/// An unguessable number. Without one, a server could not tell whose connections it ends.
fn random() -> Option<u128> {
    let text = rubus_host::files::clone_file::random_uuid().ok()?;
    Uuid::parse(text.trim()).map(|uuid| uuid.0)
}

/// A bit for each of these, as far as there are bits.
fn bits(lanes: &[usize]) -> u64 {
    let with = |bits: u64, lane: &usize| bits | 1_u64.checked_shl(*lane as u32).unwrap_or(0);
    lanes.iter().fold(0, with)
}

/// A device that was attached.
#[derive(Debug)]
pub struct Device {
    /// Number of the device: N of `/dev/nbdN`.
    pub index: u32,
    /// The name by which the driver knows it.
    pub backend: String,
    /// Its block size.
    pub block_bytes: u32,
    /// The server takes requests up to this size.
    pub max_request_bytes: u32,
    /// What the server said of the export, without its identity.
    pub description: Option<String>,
    /// For the watcher.
    pub attached: Attached,
}

/// The flags that the kernel's driver knows.
const KNOWN_FLAGS: u16 = TransmissionFlags::HAS_FLAGS.0
    | TransmissionFlags::READ_ONLY.0
    | TransmissionFlags::SEND_FLUSH.0
    | TransmissionFlags::SEND_FUA.0
    | TransmissionFlags::ROTATIONAL.0
    | TransmissionFlags::SEND_TRIM.0
    | TransmissionFlags::SEND_WRITE_ZEROES.0
    | TransmissionFlags::CAN_MULTI_CONN.0;

/// How many connections there are to be, of a server that promises that they agree if `multi`.
fn connections_of(asked: Option<u32>, multi: bool) -> Result<u32, AttachError> {
    match (asked, multi) {
        (Some(2..), false) => Err(AttachError::OneConnection),
        (Some(number), _) => Ok(number),
        (None, true) => Ok(USUAL_CONNECTIONS),
        (None, false) => Ok(1),
    }
}

/// Connects to an export and makes it a block device.
///
/// # Errors
/// In words; nothing is attached then.
pub fn attach(
    driver: &mut Driver,
    server: &mut dyn Server,
    backend: &str,
    settings: &Settings,
) -> Result<Device, AttachError> {
    let (first, offer) = server.connect(0, &[]).map_err(AttachError::Server)?;
    let multi = offer.flags.has(TransmissionFlags::CAN_MULTI_CONN);
    let wanted = connections_of(settings.connections, multi)?;
    let blocks = offer.blocks();
    let block_bytes = blocks.min_bytes.max(MIN_BLOCK_BYTES);
    if block_bytes > MAX_BLOCK_BYTES {
        return Err(AttachError::Blocks(block_bytes));
    }
    if offer.size_bytes < u64::from(block_bytes) {
        return Err(AttachError::Empty(block_bytes));
    }
    let mut appearance = Appearance::of(&offer);
    if settings.read_only {
        appearance.flags = appearance.flags.with(TransmissionFlags::READ_ONLY);
    }
    let mut lines = vec![first];
    while (lines.len() as u32) < wanted {
        let (line, another) = match server.connect(lines.len(), &[]) {
            Ok(connected) => connected,
            // The server accepts no further connection; the number was only a default.
            Err(_) if settings.connections.is_none() => break,
            Err(why) => return Err(AttachError::Server(why)),
        };
        let mut seen = Appearance::of(&another);
        if settings.read_only {
            seen.flags = seen.flags.with(TransmissionFlags::READ_ONLY);
        }
        if seen != appearance {
            return Err(AttachError::Changed);
        }
        lines.push(line);
    }
    for line in &lines {
        // Without, only a peer that vanishes is noticed later.
        let _ = line.notice_silence(SILENCE);
    }
    let setting = Setting {
        index: settings.index,
        size_bytes: offer.size_bytes,
        block_bytes,
        server_flags: appearance.flags.0 & KNOWN_FLAGS,
        timeout_s: settings.timeout_s,
        dead_timeout_s: settings.dead_timeout_s,
        backend,
        sockets: lines.iter().map(AsFd::as_fd).collect(),
    };
    let (index, counters) = connect(driver, setting)?;
    Ok(Device {
        index,
        backend: backend.into(),
        block_bytes,
        max_request_bytes: blocks.max_bytes,
        description: offer.description,
        attached: Attached {
            name: format!("nbd{index}"),
            lines,
            appearance,
            counters,
            read_only: settings.read_only,
            vouched_for: settings.vouched_for,
            fenced: offer.fenced,
        },
    })
}

/// Takes the device that is wanted, or the first that is free: the driver itself would pass over those
/// that udev looks at just now, and a different one would be attached each time. Gives also what it had
/// counted before: from then on anybody may write to it.
fn connect(
    driver: &mut Driver,
    mut setting: Setting<'_>,
) -> Result<(u32, Option<Counters>), DriverError> {
    if let Some(index) = setting.index {
        let counters = counters_of(index);
        return Ok((connect_patiently(driver, &setting, NAMED_TRIES)?, counters));
    }
    for index in 0..=MAX_DEVICES {
        if !exists(index) {
            // The driver makes it.
            setting.index = None;
            return Ok((driver.connect(&setting)?, Some(Counters::default())));
        }
        setting.index = Some(index);
        let counters = counters_of(index);
        match connect_patiently(driver, &setting, ANY_TRIES) {
            Err(DriverError::Busy(_)) => {}
            answer => return Ok((answer?, counters)),
        }
    }
    Err(DriverError::Busy(MAX_DEVICES))
}

fn counters_of(index: u32) -> Option<Counters> {
    let block = PathBuf::from(format!("/sys/block/nbd{index}"));
    match KeptDirectory::open(&block) {
        Ok(block) => counters_in(&block),
        // The driver makes it.
        Err(_) => Some(Counters::default()),
    }
}

/// What a device has counted, by its directory in sysfs; none where it does not count.
fn counters_in(block: &KeptDirectory) -> Option<Counters> {
    let counts = block.read("queue/iostats").ok()?;
    (counts.trim() == "1").then_some(())?;
    Counters::parse(&block.read("stat").ok()?)
}

const MAX_DEVICES: u32 = 255;

fn exists(index: u32) -> bool {
    KeptDirectory::open(Path::new(&format!("/sys/block/nbd{index}"))).is_ok()
}

/// How often a device is tried that a program merely has open, every [`PAUSE`]: one that was asked for, and one of many. With
/// the driver, sixteen devices appear at once, and udev on a slow and busy processor takes seconds to look at them all.
const NAMED_TRIES: u32 = 400;
const ANY_TRIES: u32 = 40;
const PAUSE: Duration = Duration::from_millis(50);

/// To the driver, a device that a program merely has open is busy; those that only look are gone soon.
fn connect_patiently(
    driver: &mut Driver,
    setting: &Setting<'_>,
    tries: u32,
) -> Result<u32, DriverError> {
    for _ in 0..tries {
        match driver.connect(setting) {
            Err(DriverError::Busy(index)) if !has_server(index) => rubus_host::clock::sleep(PAUSE),
            answer => return answer,
        }
    }
    driver.connect(setting)
}

/// Whether a device has a server, dead or alive. [`Driver::is_connected`] also says so of an open device without
/// one.
pub fn has_server(index: u32) -> bool {
    let block = KeptDirectory::open(Path::new(&format!("/sys/block/nbd{index}")));
    block.is_ok_and(|block| block.read("pid").is_ok())
}

/// The kernel's side of a device, as the watcher needs it.
#[derive(Debug)]
pub struct LiveKernel {
    driver: Driver,
    dead_links: DeadLinks,
    index: u32,
    backend: String,
    /// Its directory in sysfs.
    block: KeptDirectory,
}

impl LiveKernel {
    /// Of a device that was attached through this driver.
    ///
    /// # Errors
    /// When the kernel does not tell of dead connections, or has no sysfs.
    pub fn of(driver: Driver, index: u32, backend: &str) -> Result<LiveKernel, DriverError> {
        let block = PathBuf::from(format!("/sys/block/nbd{index}"));
        Ok(LiveKernel {
            dead_links: driver.dead_links()?,
            driver,
            index,
            backend: backend.into(),
            block: KeptDirectory::open(Path::new(&block))?,
        })
    }
}

impl Kernel for LiveKernel {
    fn reconnect(&mut self, socket: BorrowedFd<'_>) -> Result<(), DriverError> {
        self.driver.reconnect(self.index, &self.backend, socket)
    }

    fn disconnect(&mut self) -> Result<(), DriverError> {
        self.driver.disconnect(self.index)
    }

    fn is_connected(&mut self) -> bool {
        // A driver that cannot be asked has not told that the device is gone.
        self.driver.is_connected(self.index).unwrap_or(true)
    }

    fn take_dead(&mut self) -> u32 {
        self.dead_links.take(self.index)
    }

    fn tells(&self) -> BorrowedFd<'_> {
        self.dead_links.as_fd()
    }

    fn counters(&mut self) -> Option<Counters> {
        counters_in(&self.block)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_are_told_as_bits() {
        assert_eq!(bits(&[]), 0);
        assert_eq!(bits(&[0, 3, 63]), 1 << 63 | 0b1001);
        assert_eq!(bits(&[64, 1000]), 0);
    }

    #[test]
    fn several_connections_are_used_where_the_server_promises_that_they_agree() {
        assert_eq!(connections_of(None, true).unwrap(), 4);
        assert_eq!(connections_of(None, false).unwrap(), 1);
        assert_eq!(connections_of(Some(1), true).unwrap(), 1);
        assert_eq!(connections_of(Some(9), true).unwrap(), 9);
        assert_eq!(connections_of(Some(1), false).unwrap(), 1);
        let refused = connections_of(Some(2), false);
        assert!(matches!(refused, Err(AttachError::OneConnection)));
    }
}
