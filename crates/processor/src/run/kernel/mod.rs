//! Ciphers and checksums in the kernel: each message is sent there, and what comes of it is read back.

mod listed;
mod socket;

use std::io::ErrorKind;
use std::sync::atomic::{AtomicBool, Ordering};

use aes::{Aes128, Aes256};
use ring::aead::{AES_256_GCM, Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use ring::digest;
use rubus_vocabulary::processor::ciphers::{Algorithm, Place, Row, Work};
use rubus_vocabulary::processor::implementation::Implementation;
use rubus_vocabulary::spec::Content;

use self::listed::{Kind, Refusal, driver, left_out, name};
use self::socket::Socket;
use super::ciphers::{KEY, LARGE, RECORD, SECTOR, TAG_BYTES};
use super::timed::{self, rates};
use super::xts::Xts;
use crate::offer::of_driver;
use rubus_host::block::buffers::Buffers;

/// What is measured, in this order.
const WHAT: [(Algorithm, Work, u32); 17] = [
    (Algorithm::AesXts256, Work::Encrypt, LARGE),
    (Algorithm::AesXts256, Work::Decrypt, LARGE),
    (Algorithm::AesXts512, Work::Encrypt, LARGE),
    (Algorithm::AesXts512, Work::Decrypt, LARGE),
    (Algorithm::AesXts512, Work::Encrypt, SECTOR),
    (Algorithm::AesXts512, Work::Decrypt, SECTOR),
    (Algorithm::Adiantum, Work::Encrypt, LARGE),
    (Algorithm::Adiantum, Work::Decrypt, LARGE),
    (Algorithm::Adiantum, Work::Encrypt, SECTOR),
    (Algorithm::Adiantum, Work::Decrypt, SECTOR),
    (Algorithm::Aes256Gcm, Work::Encrypt, RECORD),
    (Algorithm::Aes256Gcm, Work::Decrypt, RECORD),
    (Algorithm::ChaCha20Poly1305, Work::Encrypt, RECORD),
    (Algorithm::ChaCha20Poly1305, Work::Decrypt, RECORD),
    (Algorithm::Sha256, Work::Digest, RECORD),
    (Algorithm::Xxh64, Work::Digest, RECORD),
    (Algorithm::Crc32c, Work::Digest, RECORD),
];

/// Measures all that this kernel offers to programs, and says what it does not. `says` hears what comes next.
pub fn kernel_ciphers(
    cores: u32,
    seconds: f64,
    cancel: &AtomicBool,
    says: &mut dyn FnMut(&str),
) -> (Vec<Row>, Vec<String>) {
    let mut rows: Vec<Row> = Vec::new();
    let mut refused: Vec<(Algorithm, Refusal)> = Vec::new();
    for (algorithm, work, block_bytes) in WHAT {
        if cancel.load(Ordering::Relaxed) {
            break;
        }
        let Some((kind, name)) = name(algorithm) else {
            continue;
        };
        says(&format!("{}, {}, kernel", algorithm.name(), work.name()));
        let prepare = || Turns::new(algorithm, work, block_bytes as usize);
        match rates(cores, seconds, cancel, &prepare) {
            Ok(rates) => rows.push(Row {
                algorithm,
                work,
                place: Place::Kernel,
                block_bytes,
                implementation: implementation(kind, name),
                rates,
            }),
            Err(why) => refused.push((algorithm, why)),
        }
    }
    let measured: Vec<Algorithm> = rows.iter().map(|row| row.algorithm).collect();
    (rows, left_out(&refused, &measured))
}

/// By whom the kernel has it done. Its list is complete once a socket was opened, which loads what is missing.
fn implementation(kind: Kind, name: &str) -> Implementation {
    let listing = std::fs::read_to_string("/proc/crypto").unwrap_or_default();
    let driver = driver(&listing, kind, name);
    Implementation {
        uses: of_driver(driver.as_deref().unwrap_or_default()),
        name: driver.unwrap_or_else(|| "an unnamed driver".into()),
    }
}

/// The work of one thread: the same message again and again.
struct Turns {
    socket: Socket,
    work: Work,
    nonce: Vec<u8>,
    // In whole pages: an answer that begins within a page would come in two parts.
    from: Buffers,
    to: Buffers,
    bytes: u64,
}

impl timed::Work for Turns {
    fn once(&mut self) -> u64 {
        // A message that was not done counts for nothing.
        self.turn().map_or(0, |()| self.bytes)
    }
}

impl Turns {
    /// Opens the socket, and does one message to see whether the answer is right.
    fn new(algorithm: Algorithm, work: Work, bytes: usize) -> Result<Turns, Refusal> {
        let (kind, name) = name(algorithm).ok_or(Refusal::Absent)?;
        let (key_bytes, nonce_bytes) = lengths(algorithm);
        let key = &KEY[..key_bytes];
        let socket = Socket::open(kind, name, key).map_err(refusal)?;
        let message = |bytes| Buffers::new(1, bytes, Content::Incompressible, 1).map_err(refusal);
        let tag_bytes = match kind {
            Kind::Authenticated => TAG_BYTES,
            Kind::Cipher | Kind::Hash => 0,
        };
        let mut plain = message(bytes)?;
        let (done, expected) = match work {
            Work::Digest => {
                let sum = sum(algorithm, plain.first_mut()).ok_or(Refusal::Absent)?;
                (message(sum.len())?, Some(sum))
            }
            _ => {
                let ours = enciphered(algorithm, plain.first_mut());
                (message(bytes + tag_bytes)?, ours)
            }
        };
        let mut turns = Turns {
            socket,
            work: if work == Work::Digest { work } else { Work::Encrypt },
            nonce: vec![0; nonce_bytes],
            from: plain,
            to: done,
            bytes: bytes as u64,
        };
        turns.turn().map_err(refusal)?;
        if expected.is_some_and(|expected| expected != turns.to.first_mut()) {
            return Err(Refusal::Wrong);
        }
        if work == Work::Decrypt {
            let plain = turns.from.first_mut().to_vec();
            turns.work = work;
            std::mem::swap(&mut turns.from, &mut turns.to);
            turns.to.first_mut().fill(0);
            turns.turn().map_err(refusal)?;
            if turns.to.first_mut() != plain {
                return Err(Refusal::Wrong);
            }
        }
        Ok(turns)
    }

    fn turn(&mut self) -> std::io::Result<()> {
        let (from, to) = (self.from.first_mut(), self.to.first_mut());
        match self.work {
            Work::Digest => self.socket.digest(from, to),
            work => {
                let is_encrypting = work == Work::Encrypt;
                self.socket.cipher(is_encrypting, &self.nonce, from, to)
            }
        }
    }
}

/// Bytes of the key and of the number that each message has.
fn lengths(algorithm: Algorithm) -> (usize, usize) {
    match algorithm {
        Algorithm::AesXts256 => (32, 16),
        Algorithm::AesXts512 => (64, 16),
        Algorithm::Adiantum => (32, 32),
        Algorithm::Aes256Gcm | Algorithm::ChaCha20Poly1305 => (32, 12),
        Algorithm::Sha256 | Algorithm::Xxh3 | Algorithm::Xxh64 | Algorithm::Crc32c => (0, 0),
    }
}

/// What this program makes of a message with the number zero. Absent for what it does not have.
fn enciphered(algorithm: Algorithm, plain: &[u8]) -> Option<Vec<u8>> {
    let (key_bytes, _) = lengths(algorithm);
    let (key, mut data) = (&KEY[..key_bytes], plain.to_vec());
    let sector = data.len();
    let authenticated = match algorithm {
        Algorithm::AesXts256 => {
            Xts::<Aes128>::new(key)?.encrypt(&mut data, sector, 0);
            return Some(data);
        }
        Algorithm::AesXts512 => {
            Xts::<Aes256>::new(key)?.encrypt(&mut data, sector, 0);
            return Some(data);
        }
        Algorithm::Aes256Gcm => &AES_256_GCM,
        Algorithm::ChaCha20Poly1305 => &CHACHA20_POLY1305,
        _ => return None,
    };
    let key = LessSafeKey::new(UnboundKey::new(authenticated, key).ok()?);
    let nonce = Nonce::assume_unique_for_key([0; 12]);
    key.seal_in_place_append_tag(nonce, Aad::empty(), &mut data).ok()?;
    Some(data)
}

/// The sum of a message, in the order of bytes in which the kernel gives it.
fn sum(algorithm: Algorithm, message: &[u8]) -> Option<Vec<u8>> {
    Some(match algorithm {
        Algorithm::Sha256 => digest::digest(&digest::SHA256, message).as_ref().to_vec(),
        Algorithm::Xxh64 => twox_hash::XxHash64::oneshot(0, message).to_le_bytes().to_vec(),
        Algorithm::Crc32c => crc32c::crc32c(message).to_le_bytes().to_vec(),
        _ => return None,
    })
}

fn refusal(error: std::io::Error) -> Refusal {
    match (error.raw_os_error(), error.kind()) {
        (Some(libc::EAFNOSUPPORT), _) => Refusal::NoSockets,
        (_, ErrorKind::NotFound) => Refusal::Absent,
        (_, ErrorKind::PermissionDenied) => Refusal::Denied,
        _ => Refusal::Failed(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_on_the_list_has_a_name_and_something_to_compare_with() {
        for (algorithm, work, bytes) in WHAT {
            assert!(name(algorithm).is_some(), "{algorithm:?}");
            let message = vec![7; bytes as usize];
            let ours = match work {
                Work::Digest => sum(algorithm, &message),
                _ => enciphered(algorithm, &message),
            };
            assert_eq!(ours.is_none(), algorithm == Algorithm::Adiantum);
        }
    }

    #[test]
    fn what_the_kernel_says_is_told_apart() {
        let of = |number| refusal(std::io::Error::from_raw_os_error(number));
        assert_eq!(of(libc::EAFNOSUPPORT), Refusal::NoSockets);
        assert_eq!(of(libc::ENOENT), Refusal::Absent);
        assert_eq!(of(libc::EACCES), Refusal::Denied);
        assert_eq!(of(libc::EPERM), Refusal::Denied);
        assert!(matches!(of(libc::EINVAL), Refusal::Failed(_)));
    }

    /// On a kernel without such sockets it says so; on one with them it measures.
    #[test]
    fn a_kernel_gives_figures_or_a_reason() {
        let (rows, refused) = kernel_ciphers(1, 0.01, &AtomicBool::new(false), &mut |_| {});
        assert!(!rows.is_empty() || !refused.is_empty());
        for row in &rows {
            let rate = row.rates.one_core.as_ref().expect("it was measured");
            assert!(rate.per_second.value > 0.0, "{row:?}");
        }
    }
}
