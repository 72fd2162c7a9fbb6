//! Talking to drivers of the kernel over generic netlink sockets: bytes both ways, and who sent them.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, bind, netlink, recvfrom, sendto,
    socket_with, sockopt,
};

/// A socket to the kernel's generic netlink.
#[derive(Debug)]
pub struct Netlink {
    fd: OwnedFd,
}

impl Netlink {
    /// A socket with an address that the kernel chooses.
    ///
    /// # Errors
    /// When the kernel has no netlink, or this program may not use it.
    pub fn generic() -> io::Result<Netlink> {
        let fd = socket_with(
            AddressFamily::NETLINK,
            SocketType::RAW,
            SocketFlags::CLOEXEC,
            Some(netlink::GENERIC),
        )?;
        bind(&fd, &SocketAddrNetlink::new(0, 0))?;
        Ok(Netlink { fd })
    }

    /// Receives from now on what the kernel sends to a group.
    ///
    /// # Errors
    /// When there is no such group.
    pub fn join(&self, group: u32) -> io::Result<()> {
        self.set(libc::NETLINK_ADD_MEMBERSHIP, group)
    }

    /// Asks the kernel to say in words what is wrong with a request. Old kernels cannot.
    pub fn ask_for_words(&self) {
        let _ = self.set(libc::NETLINK_EXT_ACK, 1);
    }

    fn set(&self, option: libc::c_int, value: u32) -> io::Result<()> {
        // SAFETY: the value is a 32-bit number that lives until the call returns, as both options want it.
        let answer = unsafe {
            libc::setsockopt(
                self.fd.as_raw_fd(),
                libc::SOL_NETLINK,
                option,
                std::ptr::from_ref(&value).cast(),
                size_of::<u32>() as libc::socklen_t,
            )
        };
        match answer {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Makes room for so much that the kernel says between two readings, as far as this program may.
    pub fn make_room(&self, bytes: usize) {
        // The first ignores the system-wide limit, which needs a privilege; where neither works, the default size
        // stays.
        let forced = sockopt::set_socket_recv_buffer_size_force(&self.fd, bytes);
        if forced.is_err() {
            let _ = sockopt::set_socket_recv_buffer_size(&self.fd, bytes);
        }
    }

    /// Sends a message to the kernel.
    ///
    /// # Errors
    /// If the kernel does not accept the message.
    pub fn send(&self, message: &[u8]) -> io::Result<()> {
        let kernel = SocketAddrNetlink::new(0, 0);
        loop {
            match sendto(&self.fd, message, SendFlags::NOSIGNAL, &kernel) {
                Err(Errno::INTR) => {}
                answer => return answer.map(drop).map_err(Into::into),
            }
        }
    }

    /// Receives one datagram of the kernel; none when nothing came within `most`. What another
    /// program sent is passed over.
    ///
    /// # Errors
    /// `ENOBUFS` when the kernel had more to say than there was room for, others of the system;
    /// `InvalidData` when the datagram is longer than the memory for it.
    pub fn receive(&self, into: &mut [u8], most: Duration) -> io::Result<Option<usize>> {
        loop {
            if !self.wait(most)? {
                return Ok(None);
            }
            let flags = RecvFlags::DONTWAIT | RecvFlags::TRUNC;
            let (bytes, from) = match recvfrom(&self.fd, &mut *into, flags) {
                Ok((_, bytes, from)) => (bytes, from),
                Err(Errno::INTR | Errno::AGAIN) => continue,
                Err(errno) => return Err(errno.into()),
            };
            let sender = from.and_then(|address| SocketAddrNetlink::try_from(address).ok());
            if sender.is_none_or(|sender| sender.pid() != 0) {
                continue;
            }
            if bytes > into.len() {
                return Err(io::ErrorKind::InvalidData.into());
            }
            return Ok(Some(bytes));
        }
    }

    fn wait(&self, most: Duration) -> io::Result<bool> {
        let most = Timespec { tv_sec: most.as_secs() as _, tv_nsec: most.subsec_nanos() as _ };
        loop {
            let mut fds = [PollFd::new(&self.fd, PollFlags::IN)];
            match poll(&mut fds, Some(&most)) {
                Err(Errno::INTR) => {}
                answer => return Ok(answer? > 0),
            }
        }
    }
}

impl AsFd for Netlink {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_answers() {
        let socket = Netlink::generic().expect("every Linux has generic netlink");
        socket.ask_for_words();
        let mut memory = [0; 4096];
        let nothing = socket.receive(&mut memory, Duration::ZERO).unwrap();
        assert_eq!(nothing, None);
        // NLMSG_NOOP with NLM_F_REQUEST | NLM_F_ACK: the kernel only acknowledges it.
        let mut message = Vec::new();
        message.extend_from_slice(&16_u32.to_ne_bytes());
        message.extend_from_slice(&1_u16.to_ne_bytes());
        message.extend_from_slice(&5_u16.to_ne_bytes());
        message.extend_from_slice(&7_u32.to_ne_bytes());
        message.extend_from_slice(&0_u32.to_ne_bytes());
        socket.send(&message).unwrap();
        let bytes = socket.receive(&mut memory, Duration::from_secs(5)).unwrap();
        assert!(bytes.is_some_and(|bytes| bytes >= 36), "{bytes:?}");
        // NLMSG_ERROR, the same number, error 0.
        assert_eq!(&memory[4..6], 2_u16.to_ne_bytes());
        assert_eq!(&memory[8..12], 7_u32.to_ne_bytes());
        assert_eq!(&memory[16..20], 0_i32.to_ne_bytes());
        assert!(socket.join(u32::MAX).is_err());
    }
}
