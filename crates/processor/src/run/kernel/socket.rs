//! A socket through which the kernel enciphers, deciphers or sums what is sent to it (AF_ALG).
//!
//! Source: Documentation/crypto/userspace-if.rst of the kernel, include/uapi/linux/if_alg.h.

use std::io::{Error, Result};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use super::listed::Kind;

/// In include/uapi/linux/if_alg.h.
const DECRYPT: u32 = 0;
const ENCRYPT: u32 = 1;
/// The longest that any cipher here takes: Adiantum's.
const LONGEST_NONCE: usize = 32;
/// Room for what goes along with a message: the direction, and the nonce behind its length.
const CONTROL_WORDS: usize = 16;

/// An algorithm with its key.
pub(super) struct Socket {
    operation: OwnedFd,
    // The key lives as long as this one.
    _algorithm: OwnedFd,
}

impl Socket {
    /// For an algorithm as the kernel calls it.
    ///
    /// # Errors
    /// `EAFNOSUPPORT` where the kernel has no such sockets, `ENOENT` where it has not that kind or algorithm.
    pub(super) fn open(kind: Kind, name: &str, key: &[u8]) -> Result<Socket> {
        // SAFETY: no memory is handed over.
        let algorithm = unsafe {
            owned(libc::socket(libc::AF_ALG, libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC, 0))?
        };
        // SAFETY: zeros are a valid address, whose family and names follow.
        let mut address: libc::sockaddr_alg = unsafe { std::mem::zeroed() };
        address.salg_family = libc::AF_ALG as libc::sa_family_t;
        put(&mut address.salg_type, kind.name())?;
        put(&mut address.salg_name, name)?;
        // SAFETY: the address is as long as it is said to be, and lives until the call ends.
        check(unsafe {
            libc::bind(
                algorithm.as_raw_fd(),
                (&raw const address).cast(),
                size_of_val(&address) as libc::socklen_t,
            )
        })?;
        if !key.is_empty() {
            // SAFETY: as for the address.
            check(unsafe {
                libc::setsockopt(
                    algorithm.as_raw_fd(),
                    libc::SOL_ALG,
                    libc::ALG_SET_KEY,
                    key.as_ptr().cast(),
                    key.len() as libc::socklen_t,
                )
            })?;
        }
        // SAFETY: both pointers are null, so no peer address is written.
        let operation = unsafe {
            owned(libc::accept4(
                algorithm.as_raw_fd(),
                std::ptr::null_mut(),
                std::ptr::null_mut(),
                libc::SOCK_CLOEXEC,
            ))?
        };
        Ok(Socket { operation, _algorithm: algorithm })
    }

    /// Enciphers or deciphers `from` into `to`, which has just the length of the answer.
    ///
    /// # Errors
    /// The system's, such as for a message that was tampered with, or that the answer was shorter.
    ///
    /// # Panics
    /// When the nonce is longer than any cipher's here.
    pub(super) fn cipher(
        &self,
        is_encrypting: bool,
        nonce: &[u8],
        from: &[u8],
        to: &mut [u8],
    ) -> Result<()> {
        assert!(nonce.len() <= LONGEST_NONCE);
        let mut control = [0_u64; CONTROL_WORDS];
        let direction = if is_encrypting { ENCRYPT } else { DECRYPT };
        let mut counted_nonce = [0; size_of::<u32>() + LONGEST_NONCE];
        let (count, rest) = counted_nonce.split_at_mut(size_of::<u32>());
        count.copy_from_slice(&(nonce.len() as u32).to_ne_bytes());
        rest[..nonce.len()].copy_from_slice(nonce);
        let items = [
            (libc::ALG_SET_OP, &direction.to_ne_bytes()[..]),
            (libc::ALG_SET_IV, &counted_nonce[..size_of::<u32>() + nonce.len()]),
        ];
        self.send(from, &mut control, &items)?;
        self.receive(to)
    }

    /// Sums up `from`; `to` has the length of the sum.
    ///
    /// # Errors
    /// As above.
    pub(super) fn digest(&self, from: &[u8], to: &mut [u8]) -> Result<()> {
        self.send(from, &mut [], &[])?;
        self.receive(to)
    }

    /// Sends a message with what goes along.
    fn send(&self, data: &[u8], control: &mut [u64], items: &[(libc::c_int, &[u8])]) -> Result<()> {
        let mut part =
            libc::iovec { iov_base: data.as_ptr().cast_mut().cast(), iov_len: data.len() };
        // SAFETY: zeros are a message without anything.
        let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        if !items.is_empty() {
            message.msg_control = control.as_mut_ptr().cast();
            let space = |(_, bytes): &(_, &[u8])| {
                // SAFETY: arithmetic only.
                unsafe { libc::CMSG_SPACE(bytes.len() as u32) as usize }
            };
            let length: usize = items.iter().map(space).sum();
            assert!(length <= size_of_val(control));
            message.msg_controllen = length as _;
            // SAFETY: the headers that these give lie within `control`, which is long enough for all items, as was
            // just seen, and aligned for them.
            unsafe {
                let mut header = libc::CMSG_FIRSTHDR(&raw const message);
                for (kind, bytes) in items {
                    (*header).cmsg_level = libc::SOL_ALG;
                    (*header).cmsg_type = *kind;
                    (*header).cmsg_len = libc::CMSG_LEN(bytes.len() as u32) as _;
                    libc::CMSG_DATA(header).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
                    header = libc::CMSG_NXTHDR(&raw const message, header);
                }
            }
        }
        // What does not fit into the socket would wait for a reader for ever.
        let flags = libc::MSG_DONTWAIT;
        // SAFETY: the message and all that it points to live until the call ends.
        let sent = unsafe { libc::sendmsg(self.operation.as_raw_fd(), &raw const message, flags) };
        whole(sent, data.len())
    }

    fn receive(&self, to: &mut [u8]) -> Result<()> {
        // SAFETY: `to` is as long as it is said to be.
        let received =
            unsafe { libc::read(self.operation.as_raw_fd(), to.as_mut_ptr().cast(), to.len()) };
        whole(received, to.len())
    }
}

/// Puts a name into a field that ends in a zero.
fn put(field: &mut [u8], name: &str) -> Result<()> {
    let most = field.len().saturating_sub(1);
    let Some(room) = field[..most].get_mut(..name.len()) else {
        return Err(Error::from_raw_os_error(libc::ENAMETOOLONG));
    };
    room.copy_from_slice(name.as_bytes());
    Ok(())
}

fn check(result: libc::c_int) -> Result<libc::c_int> {
    match result {
        -1 => Err(Error::last_os_error()),
        number => Ok(number),
    }
}

/// # Safety
/// The number must be a file descriptor without another owner, or -1 right after a call that failed.
unsafe fn owned(number: libc::c_int) -> Result<OwnedFd> {
    let number = check(number)?;
    // SAFETY: the caller's.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// Whether all bytes went over.
fn whole(moved: isize, wanted: usize) -> Result<()> {
    match usize::try_from(moved) {
        Err(_) => Err(Error::last_os_error()),
        Ok(moved) if moved == wanted => Ok(()),
        Ok(moved) => Err(Error::other(format!("{moved} of {wanted} bytes"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_fits_with_its_zero_or_is_an_error() {
        let mut field = [9; 5];
        put(&mut field, "aead").expect("it fits");
        assert_eq!(&field, b"aead\x09");
        assert!(put(&mut [0; 4], "aead").is_err());
    }

    #[test]
    fn half_a_message_is_an_error() {
        assert!(whole(4, 4).is_ok());
        let short = whole(3, 4).expect_err("one is missing");
        assert_eq!(short.to_string(), "3 of 4 bytes");
    }
}
