//! Streams to other programs: TCP and Unix sockets.

use std::io::{self, IoSlice, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, ToSocketAddrs, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvFlags, SendAncillaryBuffer, SendFlags, Shutdown,
    recvmsg, sendmsg, sockopt,
};

use crate::clock;
use crate::net::min_rate::MinRate;

pub mod generic_netlink;
pub mod listening;
pub mod min_rate;
pub mod netlink;
pub mod own_names;
pub mod splice;
pub mod ssh;

/// Why there is no stream, in words, with what to do.
#[derive(Debug, thiserror::Error)]
pub enum NetError {
    /// The name has no address.
    #[error(
        "cannot find the address of '{host}': {error}; check the spelling and the name service"
    )]
    Name {
        /// Host name that was asked for.
        host: String,
        /// What the resolver says.
        error: io::Error,
    },
    /// Connection refused: no program listens there.
    #[error("nothing listens on {place}; is the server running, and is that its port?")]
    Refused {
        /// Address that was tried.
        place: String,
    },
    /// The connection timed out.
    #[error(
        "no answer from {place} within {seconds} s; is it on, and does a firewall let it through?"
    )]
    TimedOut {
        /// Address that was tried.
        place: String,
        /// How long it was waited for.
        seconds: u64,
    },
    /// A link-local address could be of any link.
    #[error(
        "cannot connect to {place}: a link-local address needs the interface behind it, such as [fe80::1%eth0]"
    )]
    NoInterface {
        /// Address that was given.
        place: String,
    },
    /// There is no such socket.
    #[error("there is no socket {place}; is the server running?")]
    NoSocket {
        /// Path of the socket.
        place: String,
    },
    /// Any other error.
    #[error("cannot connect to {place}: {error}")]
    Other {
        /// The address or path.
        place: String,
        /// The system's error.
        error: io::Error,
    },
}

/// A connected stream.
#[derive(Debug)]
pub struct Stream {
    fd: OwnedFd,
    /// What it is connected to, as an address or a path.
    pub peer: String,
    /// How long connecting took, in nanoseconds: over TCP one round trip of the network, in which
    /// the other end's kernel answers and not the program.
    pub connect_ns: u64,
}

impl Stream {
    /// Connects over TCP, to each address of the name in turn, at most `most` for each. Small
    /// messages are sent at once (`TCP_NODELAY`), and a dead peer is noticed (keep-alive).
    ///
    /// # Errors
    /// That of the first address, when none can be reached.
    pub fn tcp(host: &str, port: u16, most: Duration) -> Result<Stream, NetError> {
        let mut first = None;
        for address in addresses(host, port)? {
            match one_tcp(address, most) {
                Ok(stream) => return Ok(stream),
                Err(error) => first = first.or(Some(error)),
            }
        }
        Err(first.unwrap_or_else(|| no_address(host, io::ErrorKind::NotFound.into())))
    }

    /// [`Stream::tcp`] to one address.
    ///
    /// # Errors
    /// If the connection is refused, times out, or fails otherwise.
    pub fn tcp_at(address: SocketAddr, most: Duration) -> Result<Stream, NetError> {
        one_tcp(address, most)
    }

    /// Connects to a Unix socket. A path that begins with a zero byte is a name in Linux's abstract
    /// space.
    ///
    /// # Errors
    /// If there is no such socket, or no program listens on it.
    pub fn unix(path: &Path) -> Result<Stream, NetError> {
        let start_ns = clock::monotonic_ns();
        let bytes = path.as_os_str().as_bytes();
        let (place, stream) = match bytes.strip_prefix(b"\0") {
            None => (path.display().to_string(), UnixStream::connect(path)),
            Some(name) => {
                let address = std::os::unix::net::SocketAddr::from_abstract_name(name);
                let stream = address.and_then(|address| UnixStream::connect_addr(&address));
                (format!("@{}", String::from_utf8_lossy(name)), stream)
            }
        };
        match stream {
            Ok(stream) => Ok(Stream {
                fd: stream.into(),
                peer: place,
                connect_ns: clock::monotonic_ns() - start_ns,
            }),
            Err(error) => Err(match error.kind() {
                io::ErrorKind::NotFound => NetError::NoSocket { place },
                io::ErrorKind::ConnectionRefused => NetError::Refused { place },
                _ => NetError::Other { place, error },
            }),
        }
    }

    /// A stream over a socket that is connected already.
    pub fn connected(fd: OwnedFd, peer: String) -> Stream {
        Stream { fd, peer, connect_ns: 0 }
    }

    /// Sends what there is room for; gives how many bytes that was. A connection that is gone is an
    /// error and never a signal.
    ///
    /// # Errors
    /// `WouldBlock` when there is no room now; others when the connection is broken.
    #[inline]
    pub fn send(&self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        loop {
            let mut nothing = SendAncillaryBuffer::default();
            match sendmsg(&self.fd, parts, &mut nothing, flags) {
                Err(Errno::INTR) => {}
                answer => return Ok(answer?),
            }
        }
    }

    /// Receives what is there, and waits for it if `wait`; 0 when the other end has closed.
    ///
    /// # Errors
    /// `WouldBlock` when nothing is there now; others when the connection is broken.
    #[inline]
    pub fn receive(&self, parts: &mut [IoSliceMut<'_>], wait: bool) -> io::Result<usize> {
        let flags = if wait { RecvFlags::empty() } else { RecvFlags::DONTWAIT };
        loop {
            let mut nothing = RecvAncillaryBuffer::default();
            match recvmsg(&self.fd, parts, &mut nothing, flags) {
                Err(Errno::INTR) => {}
                answer => return Ok(answer?.bytes),
            }
        }
    }

    /// How long [`Stream::receive`] that waits and [`Stream::send_all`] wait at most, before they say
    /// `WouldBlock`; none: for ever, as it is at first.
    ///
    /// # Errors
    /// If the socket refuses the timeout, such as one of zero.
    pub fn set_patience(
        &self,
        receiving: Option<Duration>,
        sending: Option<Duration>,
    ) -> io::Result<()> {
        use rustix::net::sockopt::{Timeout, set_socket_timeout};
        set_socket_timeout(&self.fd, Timeout::Recv, receiving)?;
        Ok(set_socket_timeout(&self.fd, Timeout::Send, sending)?)
    }

    /// Sends everything, and waits for room as long as it comes fast enough.
    ///
    /// # Errors
    /// `WouldBlock` when the other end has taken nothing for as long as [`Stream::set_patience`]
    /// says, or too little ([`MinRate`]); others when the connection is broken.
    #[inline]
    pub fn send_all(&self, bytes: &[u8]) -> io::Result<()> {
        self.send_whole(bytes, SendFlags::NOSIGNAL)
    }

    /// [`Stream::send_all`] for data that is followed by more at once, and may wait for it
    /// (`MSG_MORE`).
    ///
    /// # Errors
    /// As for [`Stream::send_all`].
    pub fn send_all_before_more(&self, bytes: &[u8]) -> io::Result<()> {
        self.send_whole(bytes, SendFlags::NOSIGNAL | SendFlags::MORE)
    }

    #[inline]
    fn send_whole(&self, mut bytes: &[u8], flags: SendFlags) -> io::Result<()> {
        let mut rate = MinRate::default();
        while !bytes.is_empty() {
            match rustix::net::send(&self.fd, bytes, flags) {
                Err(Errno::INTR) => {}
                answer => {
                    let sent = answer?;
                    bytes = bytes.get(sent..).unwrap_or_default();
                    // Only then its time was up before there was room for all.
                    if !bytes.is_empty() && rate.is_too_slow(sent, clock::monotonic_ns()) {
                        return Err(io::ErrorKind::WouldBlock.into());
                    }
                }
            }
        }
        Ok(())
    }

    /// [`Stream::receive`] into a single buffer.
    ///
    /// # Errors
    /// As for [`Stream::receive`].
    #[inline]
    pub fn receive_into(&self, memory: &mut [u8], wait: bool) -> io::Result<usize> {
        let flags = if wait { RecvFlags::empty() } else { RecvFlags::DONTWAIT };
        loop {
            match rustix::net::recv(&self.fd, &mut *memory, flags) {
                Err(Errno::INTR) => {}
                answer => return Ok(answer?.0),
            }
        }
    }

    /// Receives nothing more after what has come already; who waits for more is told the end.
    pub fn stop_receiving(&self) {
        // It can only be closed already.
        let _ = rustix::net::shutdown(&self.fd, rustix::net::Shutdown::Read);
    }

    /// Ends the connection at once; who waits for it is woken.
    pub fn hang_up(&self) {
        let _ = rustix::net::shutdown(&self.fd, rustix::net::Shutdown::Both);
    }

    /// Waits until something can be sent; false when that took longer than `most`.
    ///
    /// # Errors
    /// If polling fails.
    pub fn wait_for_room(&self, most: Duration) -> io::Result<bool> {
        let most = Timespec { tv_sec: most.as_secs() as _, tv_nsec: most.subsec_nanos() as _ };
        loop {
            let mut fds = [PollFd::new(&self.fd, PollFlags::OUT)];
            match poll(&mut fds, Some(&most)) {
                Err(Errno::INTR) => {}
                answer => return Ok(answer? > 0),
            }
        }
    }

    /// Waits until something can be received or, if `or_room`, sent; false when that took longer
    /// than `most`.
    ///
    /// # Errors
    /// If polling fails.
    pub fn wait(&self, or_room: bool, most: Option<Duration>) -> io::Result<bool> {
        let mut wanted = PollFlags::IN;
        if or_room {
            wanted |= PollFlags::OUT;
        }
        let most = most.map(|most| Timespec {
            tv_sec: most.as_secs() as _,
            tv_nsec: most.subsec_nanos() as _,
        });
        loop {
            let mut fds = [PollFd::new(&self.fd, wanted)];
            match poll(&mut fds, most.as_ref()) {
                Err(Errno::INTR) => {}
                answer => return Ok(answer? > 0),
            }
        }
    }
}

impl Stream {
    /// Makes the kernel end a TCP connection whose peer does not answer for `after`, whether data
    /// is being sent or not. A slow program does not count: its kernel answers. But a peer that
    /// accepts no data for `after`, while data waits to be sent, is disconnected, too (Linux counts
    /// the time of a closed window).
    ///
    /// # Errors
    /// If the socket refuses the settings. A Unix socket needs none, and this succeeds.
    pub fn notice_silence(&self, after: Duration) -> io::Result<()> {
        const PROBES: u32 = 4;
        if sockopt::socket_domain(&self.fd)? == AddressFamily::UNIX {
            return Ok(());
        }
        let between = (after / (PROBES + 2)).max(Duration::from_secs(1));
        sockopt::set_tcp_keepidle(&self.fd, between * 2)?;
        sockopt::set_tcp_keepintvl(&self.fd, between)?;
        sockopt::set_tcp_keepcnt(&self.fd, PROBES)?;
        sockopt::set_tcp_user_timeout(&self.fd, after.as_millis() as u32)?;
        Ok(())
    }

    /// Has the kernel ask the other end's whether it still knows this connection, without sending a byte of data. If
    /// it does, [`Stream::heard_ago`] falls; if its machine was restarted, the connection ends.
    /// [`Stream::notice_silence`] has to be called afterwards, since it shares the settings.
    ///
    /// # Errors
    /// If the socket refuses the settings.
    pub fn ask_for_life(&self) -> io::Result<()> {
        if sockopt::socket_domain(&self.fd)? != AddressFamily::UNIX {
            sockopt::set_socket_keepalive(&self.fd, true)?;
            sockopt::set_tcp_keepintvl(&self.fd, Duration::from_secs(1))?;
            // This restarts the timer: it is due when nothing came for that long.
            sockopt::set_tcp_keepidle(&self.fd, Duration::from_secs(1))?;
        }
        Ok(())
    }

    /// How long ago the other end's kernel acknowledged something; none where that is not known, or means little:
    /// this machine's own kernel answers for a tunnel that ends here.
    ///
    /// # Errors
    /// If the socket's state cannot be read.
    pub fn heard_ago(&self) -> io::Result<Option<Duration>> {
        let is_local = match rustix::net::getpeername(&self.fd)? {
            Some(peer) => match SocketAddr::try_from(peer) {
                Ok(peer) => peer.ip().to_canonical().is_loopback(),
                Err(_) => true,
            },
            None => true,
        };
        if is_local { Ok(None) } else { self.acknowledged_ago().map(Some) }
    }

    /// `tcpi_last_ack_recv` of `TCP_INFO`.
    fn acknowledged_ago(&self) -> io::Result<Duration> {
        /// Where it stands in `struct tcp_info` of include/uapi/linux/tcp.h, which only grows at its end.
        const AT: usize = 56;
        let mut info = [0_u8; AT + 4];
        let mut length = info.len() as libc::socklen_t;
        // SAFETY: the kernel writes at most `length` bytes into `info`, and to `length` how many these were.
        let answer = unsafe {
            libc::getsockopt(
                self.fd.as_raw_fd(),
                libc::IPPROTO_TCP,
                libc::TCP_INFO,
                info.as_mut_ptr().cast(),
                &raw mut length,
            )
        };
        if answer != 0 {
            return Err(io::Error::last_os_error());
        }
        let Some(&milliseconds) = info[..length as usize].last_chunk::<4>() else {
            return Err(io::ErrorKind::Unsupported.into());
        };
        if length as usize == info.len() {
            Ok(Duration::from_millis(u32::from_ne_bytes(milliseconds).into()))
        } else {
            Err(io::ErrorKind::Unsupported.into())
        }
    }

    /// Whether this is a socket of this machine, whose other end cannot have been restarted without it.
    pub fn is_unix(&self) -> bool {
        sockopt::socket_domain(&self.fd).is_ok_and(|domain| domain == AddressFamily::UNIX)
    }

    /// Ends the connection for all owners of this socket.
    pub fn end(&self) {
        // It may have ended already.
        let _ = rustix::net::shutdown(&self.fd, Shutdown::Both);
    }
}

/// Waits until something can be received from one of the sockets or, where that is true, sent; false
/// when that took longer than `most`, or a signal came.
///
/// # Errors
/// If polling fails.
pub fn wait_for_any(sockets: &[(BorrowedFd<'_>, bool)], most: Duration) -> io::Result<bool> {
    let wanted = |or_room| if or_room { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
    let fds = sockets.iter();
    let fds = fds.map(|(socket, or_room)| PollFd::from_borrowed_fd(*socket, wanted(*or_room)));
    let mut fds: Vec<PollFd<'_>> = fds.collect();
    let most = Timespec { tv_sec: most.as_secs() as _, tv_nsec: most.subsec_nanos() as _ };
    match poll(&mut fds, Some(&most)) {
        Ok(ready) => Ok(ready > 0),
        Err(Errno::INTR) => Ok(false),
        Err(errno) => Err(errno.into()),
    }
}

/// Waits at most `most` until one of the sockets has ended, or something can be received from
/// `other`. Returns which of the sockets have ended.
///
/// # Errors
/// If polling fails.
pub fn wait_for_ends(
    sockets: &[&Stream],
    other: BorrowedFd<'_>,
    most: Duration,
) -> io::Result<Vec<bool>> {
    let ended = PollFlags::RDHUP | PollFlags::HUP | PollFlags::ERR;
    let mut fds = vec![PollFd::from_borrowed_fd(other, PollFlags::IN)];
    let watched =
        sockets.iter().map(|socket| PollFd::from_borrowed_fd(socket.as_fd(), PollFlags::RDHUP));
    fds.extend(watched);
    let most = Timespec { tv_sec: most.as_secs() as _, tv_nsec: most.subsec_nanos() as _ };
    match poll(&mut fds, Some(&most)) {
        // A signal is a reason to look around, too.
        Ok(_) | Err(Errno::INTR) => {}
        Err(errno) => return Err(errno.into()),
    }
    let is_over = |fd: &PollFd<'_>| fd.revents().intersects(ended);
    Ok(fds[1..].iter().map(is_over).collect())
}

/// Which of the sockets have ended: the other end has closed, or the connection broke. It does not wait.
///
/// # Errors
/// When the system does not say.
pub fn ended(sockets: &[&Stream]) -> io::Result<Vec<bool>> {
    let ended = PollFlags::RDHUP | PollFlags::HUP | PollFlags::ERR;
    let watched =
        sockets.iter().map(|socket| PollFd::from_borrowed_fd(socket.as_fd(), PollFlags::RDHUP));
    let mut fds: Vec<PollFd<'_>> = watched.collect();
    poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }))?;
    Ok(fds.iter().map(|fd| fd.revents().intersects(ended)).collect())
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// The addresses of a name; there is at least one.
///
/// # Errors
/// If the name cannot be resolved.
pub fn addresses(host: &str, port: u16) -> Result<Vec<SocketAddr>, NetError> {
    let found = (host, port).to_socket_addrs();
    let found: Vec<SocketAddr> = found.map_err(|error| no_address(host, error))?.collect();
    if found.is_empty() { Err(no_address(host, io::ErrorKind::NotFound.into())) } else { Ok(found) }
}

/// The address of this machine from which it would speak to that one; nothing is sent.
pub fn own_address_towards(peer: IpAddr) -> Option<IpAddr> {
    let any: IpAddr = match peer {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0)).ok()?;
    // Of a datagram socket, this only looks the route up. 9 is the port "discard".
    socket.connect((peer, 9)).ok()?;
    Some(socket.local_addr().ok()?.ip())
}

fn no_address(host: &str, error: io::Error) -> NetError {
    NetError::Name { host: host.into(), error }
}

fn is_of_any_link(address: &SocketAddr) -> bool {
    match address {
        SocketAddr::V4(_) => false,
        SocketAddr::V6(v6) => v6.ip().is_unicast_link_local() && v6.scope_id() == 0,
    }
}

fn one_tcp(address: SocketAddr, most: Duration) -> Result<Stream, NetError> {
    let place = address.to_string();
    if is_of_any_link(&address) {
        return Err(NetError::NoInterface { place });
    }
    let start_ns = clock::monotonic_ns();
    let connected = TcpStream::connect_timeout(&address, most).and_then(|stream| {
        let connect_ns = clock::monotonic_ns() - start_ns;
        stream.set_nodelay(true)?;
        sockopt::set_socket_keepalive(&stream, true)?;
        Ok((stream, connect_ns))
    });
    match connected {
        Ok((stream, connect_ns)) => Ok(Stream { fd: stream.into(), peer: place, connect_ns }),
        Err(error) => Err(match error.kind() {
            io::ErrorKind::ConnectionRefused => NetError::Refused { place },
            io::ErrorKind::TimedOut => NetError::TimedOut { place, seconds: most.as_secs() },
            _ => NetError::Other { place, error },
        }),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::TcpListener;
    use std::os::unix::net::UnixListener;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn bytes_go_both_ways_and_the_end_is_seen() {
        let (ours, mut theirs) = UnixStream::pair().expect("a pair of sockets");
        let stream = Stream::connected(ours.into(), "pair".into());
        let mut memory = [0; 8];
        let error = stream.receive(&mut [IoSliceMut::new(&mut memory)], false).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        assert!(!stream.wait(false, Some(Duration::ZERO)).unwrap());
        assert!(stream.wait(true, Some(SECOND)).unwrap(), "there is room");
        theirs.write_all(b"abc").unwrap();
        assert!(stream.wait(false, Some(SECOND)).unwrap());
        let (head, tail) = memory.split_at_mut(1);
        let mut parts = [IoSliceMut::new(head), IoSliceMut::new(tail)];
        assert_eq!(stream.receive(&mut parts, true).unwrap(), 3);
        assert_eq!(&memory[..3], b"abc");
        drop(theirs);
        let mut parts = [IoSliceMut::new(&mut memory)];
        assert_eq!(stream.receive(&mut parts, true).unwrap(), 0);
        let error = stream.send(&[IoSlice::new(b"x")]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    }

    #[test]
    fn a_full_socket_does_not_block_the_sender() {
        let (ours, _theirs) = UnixStream::pair().expect("a pair of sockets");
        let stream = Stream::connected(ours.into(), "pair".into());
        let block = vec![0; 1 << 20];
        let error = loop {
            match stream.send(&[IoSlice::new(&block)]) {
                Ok(sent) => assert!(sent > 0),
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
    }

    #[test]
    fn what_is_wrong_is_said() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("socket");
        assert!(matches!(Stream::unix(&path), Err(NetError::NoSocket { .. })));
        let listener = UnixListener::bind(&path).expect("a socket");
        assert_eq!(Stream::unix(&path).expect("somebody listens").peer, path.display().to_string());
        drop(listener);
        assert!(matches!(Stream::unix(&path), Err(NetError::Refused { .. })));

        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let stream = Stream::tcp("127.0.0.1", port, SECOND).expect("somebody listens");
        assert_eq!(stream.peer, format!("127.0.0.1:{port}"));
        assert!(stream.connect_ns > 0);
        drop(listener);
        assert!(matches!(Stream::tcp("127.0.0.1", port, SECOND), Err(NetError::Refused { .. })));
        // RFC 2606 keeps this name free of addresses.
        assert!(matches!(Stream::tcp("rubus.invalid", 1, SECOND), Err(NetError::Name { .. })));
    }

    #[test]
    fn an_idle_connection_says_when_its_other_end_was_heard_and_can_be_asked() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let stream = Stream::tcp("127.0.0.1", port, SECOND).expect("somebody listens");
        let (_theirs, _) = listener.accept().expect("a connection");
        // A tunnel that ends on this machine may be it.
        assert_eq!(stream.heard_ago().unwrap(), None);
        assert!(!stream.is_unix());
        clock::sleep(SECOND * 3 / 2);
        let idle = stream.acknowledged_ago().unwrap();
        assert!(idle >= SECOND, "{idle:?}");
        stream.ask_for_life().unwrap();
        let start_ns = clock::monotonic_ns();
        while stream.acknowledged_ago().unwrap() >= SECOND {
            assert!(clock::monotonic_ns() - start_ns < 20_000_000_000, "nothing came");
            clock::sleep(Duration::from_millis(10));
        }
        let (ours, _kept) = UnixStream::pair().expect("a pair of sockets");
        let unix = Stream::connected(ours.into(), "pair".into());
        unix.ask_for_life().unwrap();
        assert!(unix.is_unix());
        assert_eq!(unix.heard_ago().unwrap(), None);
    }

    #[test]
    fn an_end_is_noticed_and_silence_can_be() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let first = Stream::tcp("127.0.0.1", port, SECOND).expect("somebody listens");
        let (theirs, _) = listener.accept().expect("a connection");
        let (ours, kept) = UnixStream::pair().expect("a pair of sockets");
        let second = Stream::connected(ours.into(), "pair".into());
        for stream in [&first, &second] {
            stream.notice_silence(Duration::from_secs(30)).unwrap();
        }
        let (other, sender) = UnixStream::pair().expect("a pair of sockets");
        let look = || wait_for_ends(&[&first, &second], other.as_fd(), Duration::ZERO).unwrap();
        assert_eq!(look(), [false, false]);
        let wait = || wait_for_ends(&[&first, &second], other.as_fd(), SECOND * 60).unwrap();
        (&sender).write_all(b"x").unwrap();
        assert_eq!(wait(), [false, false]);
        drop(theirs);
        // The other socket has ended the wait before already, so the end of this one may not be there yet.
        while look() != [true, false] {
            clock::sleep(Duration::from_millis(1));
        }
        second.end();
        assert_eq!(wait(), [true, true]);
        drop(kept);
    }

    #[test]
    fn an_abstract_name_is_no_path() {
        let name = format!("rubus-test-{}", std::process::id());
        let address = std::os::unix::net::SocketAddr::from_abstract_name(&name).expect("a name");
        let _listener = UnixListener::bind_addr(&address).expect("a socket");
        let path = format!("\0{name}");
        let stream = Stream::unix(Path::new(&path)).expect("somebody listens");
        assert_eq!(stream.peer, format!("@{name}"));
    }
}
