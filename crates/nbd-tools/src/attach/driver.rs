//! The kernel's driver: gives a device a server, replaces dead connections, takes the server away.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::time::Duration;

use rubus_host::net::generic_netlink::{Incoming, MAX_BYTES, Writer, control, family, read};
use rubus_host::net::netlink::Netlink;

use super::message::{is_connected, nbd};

/// The kernel answers at once, or after it has looked for partitions on the device.
const PATIENCE: Duration = Duration::from_secs(120);

const EPERM: i32 = 1;
const ENOENT: i32 = 2;
const EBUSY: i32 = 16;

/// Why the driver did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum DriverError {
    /// It is not there.
    #[error(
        "this kernel has no NBD driver (module nbd); on Debian and Raspberry Pi OS it comes with \
         the kernel: run `modprobe nbd`, or install a kernel with CONFIG_BLK_DEV_NBD"
    )]
    Absent,
    /// Only root may.
    #[error("only root may do that; run it with sudo")]
    Denied,
    /// The device has a server.
    #[error("/dev/nbd{0} is attached already; name another one, or none")]
    Busy(u32),
    /// It said no.
    #[error("the kernel's NBD driver refused to {tried}: {error}{}{}", if .words.is_empty() { "" } else { ": " }, .words)]
    Refused {
        /// As a verb.
        tried: &'static str,
        /// The system's error.
        error: io::Error,
        /// The kernel's words.
        words: String,
    },
    /// It said nothing.
    #[error("the kernel's NBD driver did not answer; look at the kernel log (`dmesg`)")]
    Silent,
    /// It cannot be spoken to.
    #[error("cannot speak to the kernel's NBD driver: {0}")]
    Broken(#[from] io::Error),
}

/// What a device is to be.
#[derive(Debug)]
pub struct Setting<'a> {
    /// Number of the device; the first free one otherwise.
    pub index: Option<u32>,
    pub size_bytes: u64,
    /// Its block size.
    pub block_bytes: u32,
    /// The transmission flags that the kernel is to know.
    pub server_flags: u16,
    /// How long a request may take; 0 is for ever.
    pub timeout_s: u32,
    /// How long requests wait for a new connection when there is none.
    pub dead_timeout_s: u32,
    /// The name that later messages must know.
    pub backend: &'a str,
    /// The connections, after their handshakes.
    pub sockets: Vec<BorrowedFd<'a>>,
}

/// The way to the driver.
#[derive(Debug)]
pub struct Driver {
    socket: Netlink,
    family: u16,
    group: Option<u32>,
    sequence: u32,
    memory: Box<[u8]>,
}

impl Driver {
    /// Finds the driver.
    ///
    /// # Errors
    /// [`DriverError::Absent`] when the module is not loaded.
    pub fn open() -> Result<Driver, DriverError> {
        let socket = Netlink::generic()?;
        socket.ask_for_words();
        let mut driver = Driver {
            socket,
            family: control::FAMILY,
            group: None,
            sequence: 0,
            memory: vec![0; MAX_BYTES].into_boxed_slice(),
        };
        let ask = |writer: Writer| writer.text(control::FAMILY_NAME, nbd::NAME);
        let mut found = None;
        let take = &mut |incoming: &Incoming<'_>| {
            if let Incoming::Message { attributes, .. } = incoming {
                found = family(*attributes, nbd::GROUP);
            }
        };
        match driver.request("tell its number", control::GET_FAMILY, ask, take) {
            Err(DriverError::Refused { error, .. }) if error.raw_os_error() == Some(ENOENT) => {
                return Err(DriverError::Absent);
            }
            answer => answer?,
        }
        (driver.family, driver.group) = found.ok_or(DriverError::Absent)?;
        Ok(driver)
    }

    /// Opens a second socket, on which the driver reports dead connections.
    ///
    /// # Errors
    /// If no netlink socket can be opened, or it cannot join the driver's multicast group.
    pub fn dead_links(&self) -> Result<DeadLinks, DriverError> {
        let socket = Netlink::generic()?;
        if let Some(group) = self.group {
            socket.join(group)?;
        }
        Ok(DeadLinks { socket, family: self.family, memory: vec![0; MAX_BYTES].into_boxed_slice() })
    }

    /// Gives a device its server; gives the number of the device.
    ///
    /// # Errors
    /// [`DriverError::Busy`] when it has one.
    pub fn connect(&mut self, setting: &Setting<'_>) -> Result<u32, DriverError> {
        let write = |writer: Writer| {
            let writer = match setting.index {
                Some(index) => writer.u32(nbd::INDEX, index),
                None => writer,
            };
            writer
                .u64(nbd::SIZE_BYTES, setting.size_bytes)
                .u64(nbd::BLOCK_BYTES, setting.block_bytes.into())
                .u64(nbd::TIMEOUT, setting.timeout_s.into())
                .u64(nbd::DEAD_TIMEOUT, setting.dead_timeout_s.into())
                .u64(nbd::SERVER_FLAGS, setting.server_flags.into())
                .text(nbd::BACKEND, setting.backend)
                .nested(nbd::SOCKETS, |list| sockets(list, &setting.sockets))
        };
        let mut index = None;
        let take = &mut |incoming: &Incoming<'_>| {
            if let Incoming::Message { attributes, .. } = incoming {
                index = attributes.u32(nbd::INDEX);
            }
        };
        match self.request("attach the device", nbd::CONNECT, write, take) {
            Err(DriverError::Refused { error, .. }) if error.raw_os_error() == Some(EBUSY) => {
                return Err(DriverError::Busy(setting.index.unwrap_or_default()));
            }
            answer => answer?,
        }
        index.or(setting.index).ok_or(DriverError::Silent)
    }

    /// Replaces one dead connection of a device. A connection that the driver does not hold for
    /// dead is not replaced, and the driver does not say so.
    ///
    /// # Errors
    /// When the device has no server, or was attached under another name.
    pub fn reconnect(
        &mut self,
        index: u32,
        backend: &str,
        socket: BorrowedFd<'_>,
    ) -> Result<(), DriverError> {
        let write = |writer: Writer| {
            let writer = writer.u32(nbd::INDEX, index).text(nbd::BACKEND, backend);
            writer.nested(nbd::SOCKETS, |list| sockets(list, &[socket]))
        };
        let tried = "take a new connection";
        self.request(tried, nbd::RECONFIGURE, write, &mut |_| {})
    }

    /// Takes a device its server. What waits fails.
    ///
    /// # Errors
    /// When there is no such device.
    pub fn disconnect(&mut self, index: u32) -> Result<(), DriverError> {
        let write = |writer: Writer| writer.u32(nbd::INDEX, index);
        self.request("detach the device", nbd::DISCONNECT, write, &mut |_| {})
    }

    /// Makes the driver disconnect a device on its last close, or cancels that. The driver disconnects within that
    /// close: no open device loses its server, and the next open finds an empty device.
    ///
    /// # Errors
    /// When the device has no server, or was attached under another name.
    pub fn disconnect_on_close(
        &mut self,
        index: u32,
        backend: &str,
        wanted: bool,
    ) -> Result<(), DriverError> {
        let flags = if wanted { nbd::DISCONNECT_ON_CLOSE } else { 0 };
        let write = |writer: Writer| {
            let writer = writer.u32(nbd::INDEX, index).text(nbd::BACKEND, backend);
            writer.u64(nbd::CLIENT_FLAGS, flags)
        };
        let tried = "detach the device when it is closed";
        self.request(tried, nbd::RECONFIGURE, write, &mut |_| {})
    }

    /// Whether a device has a server.
    ///
    /// # Errors
    /// When the driver does not answer.
    pub fn is_connected(&mut self, index: u32) -> Result<bool, DriverError> {
        let write = |writer: Writer| writer.u32(nbd::INDEX, index);
        let mut connected = None;
        let take = &mut |incoming: &Incoming<'_>| {
            if let Incoming::Message { attributes, .. } = incoming {
                connected = is_connected(*attributes, index);
            }
        };
        self.request("tell its devices", nbd::STATUS, write, take)?;
        Ok(connected.unwrap_or(false))
    }

    /// Sends a request and takes what answers it up to its acknowledgement.
    fn request(
        &mut self,
        tried: &'static str,
        command: u8,
        write: impl FnOnce(Writer) -> Writer,
        take: &mut dyn FnMut(&Incoming<'_>),
    ) -> Result<(), DriverError> {
        self.sequence += 1;
        let ours = self.sequence;
        let message = write(Writer::request(self.family, command, ours)).finish();
        self.socket.send(&message)?;
        loop {
            let bytes = self.socket.receive(&mut self.memory, PATIENCE)?;
            let bytes = bytes.ok_or(DriverError::Silent)?;
            for incoming in read(&self.memory[..bytes]) {
                match incoming {
                    Incoming::Done { sequence } if sequence == ours => return Ok(()),
                    Incoming::Refused { sequence, errno, words } if sequence == ours => {
                        return Err(match errno {
                            EPERM => DriverError::Denied,
                            _ => DriverError::Refused {
                                tried,
                                error: io::Error::from_raw_os_error(errno),
                                words: words.unwrap_or_default(),
                            },
                        });
                    }
                    Incoming::Message { sequence, .. } if sequence == ours => take(&incoming),
                    _ => {}
                }
            }
        }
    }
}

fn sockets(list: Writer, sockets: &[BorrowedFd<'_>]) -> Writer {
    sockets.iter().fold(list, |list, socket| {
        let fd = socket.as_raw_fd() as u32;
        list.nested(nbd::SOCKET, |one| one.u32(nbd::SOCKET_FD, fd))
    })
}

/// What the driver tells of dead connections.
#[derive(Debug)]
pub struct DeadLinks {
    socket: Netlink,
    family: u16,
    memory: Box<[u8]>,
}

impl DeadLinks {
    /// How many connections of the device it has told of since the last look.
    pub fn take(&mut self, index: u32) -> u32 {
        let mut count = 0;
        // When it told more than there was room for, the sockets' own ends have to do.
        while let Ok(Some(bytes)) = self.socket.receive(&mut self.memory, Duration::ZERO) {
            for incoming in read(&self.memory[..bytes]) {
                if let Incoming::Message { family, command: nbd::LINK_DEAD, attributes, .. } =
                    incoming
                {
                    let is_ours = family == self.family;
                    count += u32::from(is_ours && attributes.u32(nbd::INDEX) == Some(index));
                }
            }
        }
        count
    }
}

impl AsFd for DeadLinks {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
