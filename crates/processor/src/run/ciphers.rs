//! Ciphers and checksums in this program.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};

use aes::{Aes128, Aes256};
use ring::aead::{AES_256_GCM, Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use ring::digest;
use rubus_stats::estimate::Estimate;
use rubus_vocabulary::processor::ciphers::{Algorithm, Place, Row, Work};

use super::timed::rates;
use super::xts::Xts;
use crate::offer::Offer;

/// A message as `cryptsetup benchmark` takes them.
pub(super) const LARGE: u32 = 64 << 10;
/// A record of TLS, and the largest message of `openssl speed`.
pub(super) const RECORD: u32 = 16 << 10;
/// A sector as LUKS2 has them on today's disks.
pub(super) const SECTOR: u32 = 4 << 10;
pub(super) const TAG_BYTES: usize = 16;
/// What everything is enciphered with; who needs less takes the beginning.
pub(super) const KEY: [u8; 64] = {
    let mut key = [0; 64];
    let mut i = 0;
    while i < key.len() {
        key[i] = i as u8 * 3 + 1;
        i += 1;
    }
    key
};

/// What is measured, in this order.
const WHAT: [(Algorithm, Work, u32); 14] = [
    (Algorithm::AesXts256, Work::Encrypt, LARGE),
    (Algorithm::AesXts256, Work::Decrypt, LARGE),
    (Algorithm::AesXts512, Work::Encrypt, LARGE),
    (Algorithm::AesXts512, Work::Decrypt, LARGE),
    (Algorithm::AesXts512, Work::Encrypt, SECTOR),
    (Algorithm::AesXts512, Work::Decrypt, SECTOR),
    (Algorithm::Aes256Gcm, Work::Encrypt, RECORD),
    (Algorithm::Aes256Gcm, Work::Decrypt, RECORD),
    (Algorithm::ChaCha20Poly1305, Work::Encrypt, RECORD),
    (Algorithm::ChaCha20Poly1305, Work::Decrypt, RECORD),
    (Algorithm::Sha256, Work::Digest, RECORD),
    (Algorithm::Xxh3, Work::Digest, RECORD),
    (Algorithm::Xxh64, Work::Digest, RECORD),
    (Algorithm::Crc32c, Work::Digest, RECORD),
];

/// Measures all of them. `says` hears what comes next.
pub fn ciphers(
    cores: u32,
    seconds: f64,
    offer: &Offer<'_>,
    cancel: &AtomicBool,
    says: &mut dyn FnMut(&str),
) -> Vec<Row> {
    let mut rows = Vec::new();
    for (algorithm, work, block_bytes) in WHAT {
        if cancel.load(Ordering::Relaxed) {
            break;
        }
        says(&format!("{}, {}", algorithm.name(), work.name()));
        let prepare = || prepared(algorithm, work, block_bytes as usize);
        let Ok(rates) = rates(cores, seconds, cancel, &prepare) else {
            continue;
        };
        rows.push(Row {
            algorithm,
            work,
            place: Place::Program,
            block_bytes,
            implementation: offer.chosen(algorithm),
            rates,
        });
    }
    rows
}

/// How fast one thread does one of them, for a comparison with what was measured just before or after.
pub fn one_core(
    algorithm: Algorithm,
    work: Work,
    block_bytes: u32,
    seconds: f64,
    cancel: &AtomicBool,
) -> Option<Estimate> {
    let prepare = || prepared(algorithm, work, block_bytes as usize);
    let rates = rates(1, seconds, cancel, &prepare).ok()?;
    Some(rates.one_core?.per_second)
}

type Prepared = Box<dyn FnMut() -> u64>;

/// The work of one thread on a message of its own. Fails for what is not computed here.
fn prepared(algorithm: Algorithm, work: Work, bytes: usize) -> Result<Prepared, ()> {
    // Not all zeros: no library may have a short cut for what it happens to see.
    let mut data: Vec<u8> = (0..bytes).map(|i| (i * 37 + 11) as u8).collect();
    let done = bytes as u64;
    Ok(match algorithm {
        Algorithm::AesXts256 => xts(Xts::<Aes128>::new(&KEY[..32]).ok_or(())?, work, data),
        Algorithm::AesXts512 => xts(Xts::<Aes256>::new(&KEY).ok_or(())?, work, data),
        Algorithm::Aes256Gcm => aead(&AES_256_GCM, &KEY[..32], work, data)?,
        Algorithm::ChaCha20Poly1305 => aead(&CHACHA20_POLY1305, &KEY[..32], work, data)?,
        Algorithm::Sha256 => Box::new(move || {
            black_box(digest::digest(&digest::SHA256, black_box(&data)));
            done
        }),
        Algorithm::Xxh3 => Box::new(move || {
            black_box(twox_hash::XxHash3_64::oneshot(black_box(&data)));
            done
        }),
        Algorithm::Xxh64 => Box::new(move || {
            black_box(twox_hash::XxHash64::oneshot(0, black_box(&data)));
            done
        }),
        Algorithm::Crc32c => Box::new(move || {
            black_box(crc32c::crc32c(black_box(&data)));
            // What comes next is not the same again.
            data[0] = data[0].wrapping_add(1);
            done
        }),
        Algorithm::Adiantum => return Err(()),
    })
}

fn xts<C>(xts: Xts<C>, work: Work, mut data: Vec<u8>) -> Prepared
where
    C: aes::cipher::KeyInit
        + aes::cipher::BlockCipherEncrypt
        + aes::cipher::BlockCipherDecrypt
        + aes::cipher::BlockSizeUser<BlockSize = aes::cipher::consts::U16>
        + 'static,
{
    let (sector, mut number) = (data.len(), 0_u64);
    Box::new(move || {
        let data = black_box(&mut data[..]);
        match work {
            Work::Decrypt => xts.decrypt(data, sector, number),
            _ => xts.encrypt(data, sector, number),
        }
        number = number.wrapping_add(1);
        sector as u64
    })
}

fn aead(
    algorithm: &'static ring::aead::Algorithm,
    key: &[u8],
    work: Work,
    mut data: Vec<u8>,
) -> Result<Prepared, ()> {
    let key = LessSafeKey::new(UnboundKey::new(algorithm, key).map_err(|_| ())?);
    let bytes = data.len();
    let mut number = 0_u64;
    let nonce = |number: u64| {
        let mut nonce = [0; 12];
        nonce[4..].copy_from_slice(&number.to_be_bytes());
        Nonce::assume_unique_for_key(nonce)
    };
    if work == Work::Encrypt {
        return Ok(Box::new(move || {
            number += 1;
            let data = black_box(&mut data[..]);
            let tag = key.seal_in_place_separate_tag(nonce(number), Aad::empty(), data);
            black_box(tag.is_ok());
            bytes as u64
        }));
    }
    let tag = key.seal_in_place_separate_tag(nonce(0), Aad::empty(), &mut data);
    data.extend_from_slice(tag.map_err(|_| ())?.as_ref());
    let sealed = data.clone();
    debug_assert_eq!(sealed.len(), bytes + TAG_BYTES);
    // Opening overwrites the message, so each time begins with a copy: one in tens of memory's speed.
    Ok(Box::new(move || {
        data.copy_from_slice(&sealed);
        let opened = key.open_in_place(nonce(0), Aad::empty(), black_box(&mut data[..]));
        // A message that did not open was not deciphered, and counts for nothing.
        opened.map_or(0, |plain| plain.len() as u64)
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_on_the_list_can_be_done_and_counts_its_bytes() {
        for (algorithm, work, bytes) in WHAT {
            let mut once = prepared(algorithm, work, bytes as usize).expect("it is on the list");
            assert_eq!(once(), u64::from(bytes), "{algorithm:?}");
            assert_eq!(once(), u64::from(bytes), "{algorithm:?} again");
        }
        assert!(prepared(Algorithm::Adiantum, Work::Encrypt, 4096).is_err());
    }

    #[test]
    fn a_stopped_bench_has_no_rows() {
        let offer = Offer { architecture: std::env::consts::ARCH, features: &[] };
        let rows = ciphers(1, 0.01, &offer, &AtomicBool::new(true), &mut |_| {});
        assert!(rows.is_empty());
    }
}
