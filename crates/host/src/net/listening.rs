//! Waiting for other programs: sockets that listen, and one wait for many of them.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, epoll};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrAny, SocketAddrUnix, SocketFlags, SocketType, ipproto, sockopt,
};

use crate::net::Stream;

/// Maximum number of connections waiting to be accepted.
const BACKLOG: i32 = 1024;

/// Why a socket cannot listen, as a message that says what to do.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// Another program listens there.
    #[error("cannot listen on {place}: another program does; stop it, or choose another")]
    InUse {
        /// The address or path.
        place: String,
    },
    /// The machine has no such address.
    #[error(
        "cannot listen on {place}: this machine has no such address (`ip address` shows its own)"
    )]
    NotOurs {
        /// Address that was asked for.
        place: String,
    },
    /// Ports below 1024 are root's.
    #[error(
        "cannot listen on {place}: permission denied; choose a port above 1023, or another directory"
    )]
    Denied {
        /// The address or path.
        place: String,
    },
    /// Something that is no socket has that name.
    #[error(
        "cannot listen on {place}: there is something of that name that is no socket; choose another"
    )]
    NoSocket {
        /// Path that was asked for.
        place: String,
    },
    /// This machine has no such network interface.
    #[error("cannot listen on interface {interface}: it does not exist; `ip link` lists them")]
    NoInterface {
        /// Name that was asked for.
        interface: String,
    },
    /// Any other error.
    #[error("cannot listen on {place}: {error}")]
    Other {
        /// The address or path.
        place: String,
        /// The system's error.
        error: io::Error,
    },
}

impl ListenError {
    fn of(place: String, errno: Errno) -> ListenError {
        match errno {
            Errno::ADDRINUSE => ListenError::InUse { place },
            Errno::ADDRNOTAVAIL => ListenError::NotOurs { place },
            Errno::ACCESS | Errno::PERM => ListenError::Denied { place },
            errno => ListenError::Other { place, error: errno.into() },
        }
    }
}

/// Who has connected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// For people: `192.168.1.7:40312`, `[fe80::1]:40312`, `unix:1234` with the process.
    pub name: String,
    /// Its address; none for a program of this machine on a Unix socket.
    pub address: Option<IpAddr>,
}

/// A socket that listens. One in the filesystem is removed with this value.
#[derive(Debug)]
pub struct Listener {
    fd: OwnedFd,
    place: String,
    address: Option<SocketAddr>,
    /// That of a link-local address.
    interface: Option<String>,
    /// Path, device and inode of a socket that we made.
    made: Option<(PathBuf, u64, u64)>,
}

impl Listener {
    /// Listens on a TCP address. Port 0 is one that is free.
    ///
    /// # Errors
    /// If the address is in use, not this machine's, or needs root.
    pub fn tcp(address: SocketAddr) -> Result<Listener, ListenError> {
        Listener::bound(address, None)
    }

    /// Listens on a link-local address of this interface, which is named or numbered.
    ///
    /// # Errors
    /// If the interface does not exist, or as for [`Listener::tcp`].
    pub fn tcp_on(mut address: SocketAddr, interface: &str) -> Result<Listener, ListenError> {
        if let SocketAddr::V6(address) = &mut address {
            address.set_scope_id(number_of(interface)?);
        }
        Listener::bound(address, Some(interface))
    }

    fn bound(address: SocketAddr, interface: Option<&str>) -> Result<Listener, ListenError> {
        let wrong = |errno| ListenError::of(address.to_string(), errno);
        let family = match address {
            SocketAddr::V4(_) => AddressFamily::INET,
            SocketAddr::V6(_) => AddressFamily::INET6,
        };
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let fd = rustix::net::socket_with(family, SocketType::STREAM, flags, Some(ipproto::TCP))
            .map_err(wrong)?;
        sockopt::set_socket_reuseaddr(&fd, true).map_err(wrong)?;
        if address.is_ipv6() {
            // So that 0.0.0.0 and :: can be listened on side by side.
            sockopt::set_ipv6_v6only(&fd, true).map_err(wrong)?;
        }
        rustix::net::bind(&fd, &address).map_err(wrong)?;
        rustix::net::listen(&fd, BACKLOG).map_err(wrong)?;
        let bound = tcp_address(&fd).unwrap_or(address);
        let interface = interface.map(String::from);
        let place = bound.to_string();
        Ok(Listener { fd, place, address: Some(bound), interface, made: None })
    }

    /// Listens on a Unix socket at that path. One that was left behind by a program that is gone is
    /// replaced.
    ///
    /// # Errors
    /// If another program listens there, something else has that name, or the directory cannot be
    /// written to.
    pub fn unix(path: &Path) -> Result<Listener, ListenError> {
        let place = path.display().to_string();
        let wrong = |errno| ListenError::of(place.clone(), errno);
        let address = SocketAddrUnix::new(path).map_err(wrong)?;
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let fd = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)
            .map_err(wrong)?;
        match rustix::net::bind(&fd, &address) {
            Err(Errno::ADDRINUSE) => {
                remove_abandoned(path, &address)?;
                rustix::net::bind(&fd, &address).map_err(wrong)?;
            }
            answer => answer.map_err(wrong)?,
        }
        rustix::net::listen(&fd, BACKLOG).map_err(wrong)?;
        let (device, inode) = which(&rustix::fs::lstat(path).map_err(wrong)?);
        let made = Some((path.to_path_buf(), device, inode));
        Ok(Listener { fd, place, address: None, interface: None, made })
    }

    /// Takes a listening socket that this program was started with, by its number; see
    /// `sd_listen_fds(3)`. Each number may be taken once.
    ///
    /// # Errors
    /// If the descriptor is no listening socket.
    pub fn inherited(number: i32) -> Result<Listener, ListenError> {
        let wrong = |errno| ListenError::of(format!("descriptor {number}"), errno);
        // SAFETY: the program that started us passed this descriptor, and no other code here uses
        // it.
        let fd = unsafe { OwnedFd::from_raw_fd(number) };
        if !sockopt::socket_acceptconn(&fd).map_err(wrong)? {
            return Err(wrong(Errno::INVAL));
        }
        rustix::io::fcntl_setfd(&fd, rustix::io::FdFlags::CLOEXEC).map_err(wrong)?;
        let flags = rustix::fs::fcntl_getfl(&fd).map_err(wrong)?;
        rustix::fs::fcntl_setfl(&fd, flags | rustix::fs::OFlags::NONBLOCK).map_err(wrong)?;
        let address = tcp_address(&fd);
        let place = match address {
            Some(address) => address.to_string(),
            None => unix_path(&fd).unwrap_or_else(|| format!("descriptor {number}")),
        };
        Ok(Listener { fd, place, address, interface: None, made: None })
    }

    /// Where it listens, as an address or a path.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// Where it listens, when that is a TCP address.
    pub fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    /// Name or number of the interface of a link-local address.
    pub fn interface(&self) -> Option<String> {
        let number = match self.address {
            Some(SocketAddr::V6(address)) if address.scope_id() != 0 => Some(address.scope_id()),
            _ => None,
        };
        self.interface.clone().or(number.map(|number| number.to_string()))
    }

    /// Takes the next connection, if there is one. Small messages are sent at once, and a peer that
    /// is gone is noticed within a minute or two.
    ///
    /// # Errors
    /// The system's, such as "too many open files"; the next one may be fine.
    pub fn accept(&self) -> io::Result<Option<(Stream, Caller)>> {
        let (fd, peer) = match rustix::net::acceptfrom_with(&self.fd, SocketFlags::CLOEXEC) {
            Ok(accepted) => accepted,
            // It was there and has gone.
            Err(Errno::AGAIN | Errno::INTR | Errno::CONNABORTED) => return Ok(None),
            Err(errno) => return Err(errno.into()),
        };
        let address = peer.and_then(|peer| SocketAddr::try_from(peer).ok());
        let caller = match address {
            Some(address) => {
                // An address of version 4 in the clothes of version 6 is one of version 4.
                let plain = SocketAddr::new(address.ip().to_canonical(), address.port());
                watch_the_peer(fd.as_fd());
                Caller { name: plain.to_string(), address: Some(plain.ip()) }
            }
            None => Caller {
                name: match sockopt::socket_peercred(&fd) {
                    Ok(peer) => format!("unix:{}", peer.pid.as_raw_nonzero()),
                    Err(_) => "unix".into(),
                },
                address: None,
            },
        };
        Ok(Some((Stream::connected(fd, caller.name.clone()), caller)))
    }
}

impl Listener {
    /// Removes its socket from the filesystem, if it made one that is still there.
    pub fn remove(&self) {
        let Some((path, device, inode)) = &self.made else {
            return;
        };
        // Another server may have put its own there since.
        let ours = rustix::fs::lstat(path).is_ok_and(|now| which(&now) == (*device, *inode));
        if ours {
            let _ = rustix::fs::unlink(path);
        }
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.remove();
    }
}

fn number_of(interface: &str) -> Result<u32, ListenError> {
    let flags = SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(AddressFamily::INET6, SocketType::DGRAM, flags, None);
    let socket =
        socket.map_err(|errno| ListenError::of(format!("interface {interface}"), errno))?;
    let found = rustix::net::netdevice::name_to_index(&socket, interface);
    found.or_else(|_| {
        interface.parse().map_err(|_| ListenError::NoInterface { interface: interface.into() })
    })
}

/// Lets this program have as many connections as the machine allows a user, and not only as many as
/// a program that knows nothing better.
pub fn allow_many_files() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // It stays as it was, then.
    let _ = setrlimit(Resource::Nofile, limit);
}

/// Waits until something comes to a socket; false when that took longer than `most`.
///
/// # Errors
/// If polling fails.
pub fn wait_for(socket: impl AsFd, most: Option<Duration>) -> io::Result<bool> {
    let most = most.map(timespec);
    let socket = socket.as_fd();
    let mut fds = [PollFd::from_borrowed_fd(socket, PollFlags::IN)];
    match rustix::event::poll(&mut fds, most.as_ref()) {
        Err(Errno::INTR) => Ok(false),
        answer => Ok(answer? > 0),
    }
}

/// The one connection that a program was started with as its standard input.
///
/// # Errors
/// When standard input is no socket.
pub fn standard_input() -> io::Result<(Stream, Caller)> {
    let fd = rustix::io::fcntl_dupfd_cloexec(std::io::stdin(), 3)?;
    sockopt::socket_type(&fd)?;
    watch_the_peer(fd.as_fd());
    let caller = Caller { name: "standard input".into(), address: None };
    Ok((Stream::connected(fd, caller.name.clone()), caller))
}

/// Device and inode. The types of the fields differ between processors.
#[allow(clippy::unnecessary_cast)]
fn which(stat: &rustix::fs::Stat) -> (u64, u64) {
    (stat.st_dev as u64, stat.st_ino as u64)
}

fn tcp_address(fd: &OwnedFd) -> Option<SocketAddr> {
    SocketAddr::try_from(rustix::net::getsockname(fd).ok()?).ok()
}

fn unix_path(fd: &OwnedFd) -> Option<String> {
    let address: SocketAddrAny = rustix::net::getsockname(fd).ok()?;
    let address = SocketAddrUnix::try_from(address).ok()?;
    Some(String::from_utf8_lossy(address.path_bytes()?).into_owned())
}

/// Sends small messages at once, and notices a peer that is gone without a word: one that has been
/// silent for a minute is asked, and one that takes nothing for two minutes is given up. None of it
/// matters to a Unix socket, which refuses it.
fn watch_the_peer(fd: BorrowedFd<'_>) {
    let _ = sockopt::set_tcp_nodelay(fd, true);
    let _ = sockopt::set_socket_keepalive(fd, true);
    let _ = sockopt::set_tcp_keepidle(fd, Duration::from_secs(60));
    let _ = sockopt::set_tcp_keepintvl(fd, Duration::from_secs(15));
    let _ = sockopt::set_tcp_keepcnt(fd, 4);
    let _ = sockopt::set_tcp_user_timeout(fd, 120_000);
}

/// Removes a socket without a listener.
fn remove_abandoned(path: &Path, address: &SocketAddrUnix) -> Result<(), ListenError> {
    let place = path.display().to_string();
    let is_socket = std::fs::symlink_metadata(path).is_ok_and(|it| it.file_type().is_socket());
    if !is_socket {
        return Err(ListenError::NoSocket { place });
    }
    let wrong = |errno| ListenError::of(place.clone(), errno);
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let probe = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)
        .map_err(wrong)?;
    match rustix::net::connect(&probe, address) {
        Err(Errno::CONNREFUSED) => rustix::fs::unlink(path).map_err(wrong),
        _ => Err(ListenError::InUse { place }),
    }
}

/// One wait for many sockets, each with a number of the caller's.
pub struct Poller {
    fd: OwnedFd,
    events: Vec<epoll::Event>,
}

impl std::fmt::Debug for Poller {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Poller").finish_non_exhaustive()
    }
}

impl Poller {
    /// An epoll instance without descriptors.
    ///
    /// # Errors
    /// If the process has too many descriptors.
    pub fn new() -> io::Result<Poller> {
        Ok(Poller {
            fd: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            events: Vec::with_capacity(256),
        })
    }

    /// Adds a descriptor: waits until it is readable, or writable if `or_room`.
    ///
    /// # Errors
    /// If it has been added already, or cannot be polled.
    pub fn add(&self, what: impl AsFd, number: u64, or_room: bool) -> io::Result<()> {
        let data = epoll::EventData::new_u64(number);
        Ok(epoll::add(&self.fd, what, data, wanted(or_room))?)
    }

    /// Changes what to wait for on a descriptor.
    ///
    /// # Errors
    /// If it has not been added.
    pub fn change(&self, what: impl AsFd, number: u64, or_room: bool) -> io::Result<()> {
        let data = epoll::EventData::new_u64(number);
        Ok(epoll::modify(&self.fd, what, data, wanted(or_room))?)
    }

    /// Removes a descriptor.
    ///
    /// # Errors
    /// If it has not been added.
    pub fn remove(&self, what: impl AsFd) -> io::Result<()> {
        Ok(epoll::delete(&self.fd, what)?)
    }

    /// Appends the numbers of the descriptors that are ready, after at most `most`.
    ///
    /// # Errors
    /// If polling fails.
    pub fn wait(&mut self, most: Option<Duration>, numbers: &mut Vec<u64>) -> io::Result<()> {
        let most = most.map(timespec);
        self.events.clear();
        let room = rustix::buffer::spare_capacity(&mut self.events);
        match epoll::wait(&self.fd, room, most.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        numbers.extend(self.events.iter().map(|event| event.data.u64()));
        Ok(())
    }
}

fn wanted(or_room: bool) -> epoll::EventFlags {
    if or_room { epoll::EventFlags::IN | epoll::EventFlags::OUT } else { epoll::EventFlags::IN }
}

fn timespec(time: Duration) -> Timespec {
    Timespec { tv_sec: time.as_secs() as _, tv_nsec: time.subsec_nanos() as _ }
}

/// Wakes a thread that waits for sockets.
#[derive(Debug)]
pub struct Bell(OwnedFd);

impl Bell {
    /// A bell that does not ring.
    ///
    /// # Errors
    /// If the process has too many descriptors.
    pub fn new() -> io::Result<Bell> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        Ok(Bell(rustix::event::eventfd(0, flags)?))
    }

    /// Makes the bell readable until [`Bell::silence`].
    pub fn ring(&self) {
        // It can only be full, and then it rings.
        let _ = rustix::io::write(&self.0, &1_u64.to_ne_bytes());
    }

    /// Stops ringing: the bell is no longer readable.
    pub fn silence(&self) {
        let _ = rustix::io::read(&self.0, &mut [0; 8]);
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// What came first of what [`first_of`] waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Came {
    /// Something can be received, or the other end has closed.
    pub bytes: bool,
    /// The bell rings.
    pub bell: bool,
}

/// Waits until something can be received from a socket or the bell rings; neither when that took
/// longer than `most`. A socket that is not given is not waited for.
///
/// # Errors
/// If polling fails.
pub fn first_of(
    socket: Option<BorrowedFd<'_>>,
    bell: &Bell,
    most: Option<Duration>,
) -> io::Result<Came> {
    let most = most.map(timespec);
    let mut fds = [
        PollFd::from_borrowed_fd(bell.as_fd(), PollFlags::IN),
        PollFd::from_borrowed_fd(socket.unwrap_or(bell.as_fd()), PollFlags::IN),
    ];
    let count = if socket.is_some() { 2 } else { 1 };
    match rustix::event::poll(&mut fds[..count], most.as_ref()) {
        Ok(_) | Err(Errno::INTR) => {}
        Err(errno) => return Err(errno.into()),
    }
    Ok(Came {
        bytes: count == 2 && !fds[1].revents().is_empty(),
        bell: !fds[0].revents().is_empty(),
    })
}

#[cfg(test)]
mod tests {
    use std::io::IoSlice;
    use std::net::TcpStream;
    use std::os::unix::net::UnixStream;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_caller_over_tcp_has_an_address_and_bytes_come() {
        let listener = Listener::tcp("127.0.0.1:0".parse().unwrap()).unwrap();
        assert!(listener.accept().unwrap().is_none(), "nobody has called");
        let mut poller = Poller::new().unwrap();
        poller.add(&listener, 7, false).unwrap();
        let mut numbers = Vec::new();
        poller.wait(Some(Duration::ZERO), &mut numbers).unwrap();
        assert!(numbers.is_empty());
        let theirs = TcpStream::connect(listener.place()).unwrap();
        poller.wait(Some(SECOND), &mut numbers).unwrap();
        assert_eq!(numbers, [7]);
        let (ours, caller) = listener.accept().unwrap().expect("somebody has called");
        assert_eq!(caller.name, theirs.local_addr().unwrap().to_string());
        assert_eq!(caller.address, Some([127, 0, 0, 1].into()));
        assert_eq!(ours.send(&[IoSlice::new(b"x")]).unwrap(), 1);
        let second = Listener::tcp(listener.address().unwrap());
        assert!(matches!(second, Err(ListenError::InUse { .. })));
        let elsewhere = Listener::tcp("192.0.2.1:10809".parse().unwrap());
        assert!(matches!(elsewhere, Err(ListenError::NotOurs { .. })));
    }

    #[test]
    fn a_unix_socket_goes_with_its_listener_and_an_abandoned_one_is_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("socket");
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        assert!(path.exists(), "left behind");
        let listener = Listener::unix(&path).unwrap();
        let second = Listener::unix(&path);
        assert!(matches!(second, Err(ListenError::InUse { .. })));
        let _theirs = UnixStream::connect(&path).unwrap();
        let (_, caller) = listener.accept().unwrap().expect("somebody has called");
        assert_eq!(caller.name, format!("unix:{}", std::process::id()));
        assert_eq!(caller.address, None);
        drop(listener);
        assert!(!path.exists());
        std::fs::write(&path, "mine").unwrap();
        let third = Listener::unix(&path);
        assert!(matches!(third, Err(ListenError::NoSocket { .. })));
        assert_eq!(std::fs::read(&path).unwrap(), b"mine");
    }

    #[test]
    fn a_socket_of_another_server_is_not_removed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("socket");
        let old = Listener::unix(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let _new = Listener::unix(&path).unwrap();
        drop(old);
        assert!(path.exists());
    }

    #[test]
    fn a_bell_wakes() {
        let bell = Bell::new().unwrap();
        let nothing = Came { bytes: false, bell: false };
        let came = || first_of(None, &bell, Some(Duration::ZERO)).unwrap();
        assert_eq!(came(), nothing);
        bell.ring();
        bell.ring();
        assert!(came().bell);
        bell.silence();
        assert_eq!(came(), nothing);
        let (ours, theirs) = UnixStream::pair().unwrap();
        let came = || first_of(Some(ours.as_fd()), &bell, Some(Duration::ZERO)).unwrap();
        assert_eq!(came(), nothing);
        drop(theirs);
        assert!(came().bytes);
    }
}
