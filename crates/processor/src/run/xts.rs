//! AES in XTS mode, as disks are enciphered: whole sectors, many blocks at once.
//!
//! Source: IEEE Std 1619-2007 with its test vectors. Sectors are whole blocks here, so nothing is stolen from the last.

use aes::cipher::{
    Array, BlockCipherDecrypt, BlockCipherEncrypt, BlockSizeUser, KeyInit, consts::U16,
};

/// Blocks that are handed to the cipher together: enough for the widest instructions, and 1 KiB of tweaks.
const TOGETHER: usize = 64;

/// Both keys of a cipher.
pub(super) struct Xts<C> {
    data: C,
    tweak: C,
}

impl<C> Xts<C>
where
    C: KeyInit + BlockCipherEncrypt + BlockCipherDecrypt + BlockSizeUser<BlockSize = U16>,
{
    /// From both keys, one behind the other. Absent when their length is not the cipher's.
    pub(super) fn new(key: &[u8]) -> Option<Self> {
        let (data, tweak) = key.split_at(key.len() / 2);
        Some(Xts { data: C::new_from_slice(data).ok()?, tweak: C::new_from_slice(tweak).ok()? })
    }

    /// Enciphers sectors of `sector_bytes` in place; the first has the number `number`.
    pub(super) fn encrypt(&self, data: &mut [u8], sector_bytes: usize, number: u64) {
        self.sectors(data, sector_bytes, number, |blocks| {
            self.data.encrypt_blocks(blocks);
        });
    }

    /// Deciphers sectors in place, as [`Xts::encrypt`] enciphers them.
    pub(super) fn decrypt(&self, data: &mut [u8], sector_bytes: usize, number: u64) {
        self.sectors(data, sector_bytes, number, |blocks| {
            self.data.decrypt_blocks(blocks);
        });
    }

    #[inline(always)]
    fn sectors(
        &self,
        data: &mut [u8],
        sector_bytes: usize,
        number: u64,
        cipher: impl Fn(&mut [Array<u8, U16>]),
    ) {
        let mut number = number;
        for sector in data.chunks_mut(sector_bytes) {
            let mut first = Array::from(u128::from(number).to_le_bytes());
            self.tweak.encrypt_block(&mut first);
            let mut tweak = u128::from_le_bytes(first.into());
            let (blocks, _) = Array::<u8, U16>::slice_as_chunks_mut(sector);
            for blocks in blocks.chunks_mut(TOGETHER) {
                let mut tweaks = [0_u128; TOGETHER];
                for (block, kept) in blocks.iter_mut().zip(&mut tweaks) {
                    *kept = tweak;
                    add(block, tweak);
                    tweak = doubled(tweak);
                }
                cipher(blocks);
                for (block, tweak) in blocks.iter_mut().zip(tweaks) {
                    add(block, tweak);
                }
            }
            number = number.wrapping_add(1);
        }
    }
}

#[inline(always)]
fn add(block: &mut Array<u8, U16>, tweak: u128) {
    let sum = u128::from_le_bytes((*block).into()) ^ tweak;
    *block = Array::from(sum.to_le_bytes());
}

/// Times x in GF(2^128), with the polynomial of the standard.
#[inline(always)]
fn doubled(tweak: u128) -> u128 {
    (tweak << 1) ^ ((tweak >> 127) * 0x87)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(hexadecimal: &str) -> Vec<u8> {
        let digit = |at: usize| u8::from_str_radix(&hexadecimal[at..at + 2], 16).expect("digits");
        (0..hexadecimal.len()).step_by(2).map(digit).collect()
    }

    #[test]
    fn vectors_of_the_standard() {
        // Vector 1: all zeros.
        let xts = Xts::<aes::Aes128>::new(&[0; 32]).expect("a key");
        let mut data = [0; 32];
        xts.encrypt(&mut data, 32, 0);
        let expected = bytes("917cf69ebd68b2ec9b9fe9a3eadda692cd43d2f59598ed858c02c2652fbf922e");
        assert_eq!(data[..], expected);
        // Vector 2: two keys and a sector number.
        let key = [[0x11; 16], [0x22; 16]].concat();
        let xts = Xts::<aes::Aes128>::new(&key).expect("a key");
        let mut data = [0x44; 32];
        xts.encrypt(&mut data, 32, 0x33_3333_3333);
        let expected = bytes("c454185e6a16936e39334038acef838bfb186fff7480adc4289382ecd6d394f0");
        assert_eq!(data[..], expected);
        xts.decrypt(&mut data, 32, 0x33_3333_3333);
        assert_eq!(data, [0x44; 32]);
    }

    #[test]
    fn sectors_are_enciphered_as_if_alone_and_come_back() {
        let key: Vec<u8> = (0..64).collect();
        let xts = Xts::<aes::Aes256>::new(&key).expect("a key");
        let plain: Vec<u8> = (0..3 * 4096_u32).map(|i| (i * 7) as u8).collect();
        let mut together = plain.clone();
        xts.encrypt(&mut together, 4096, 5);
        for (i, sector) in plain.chunks(4096).enumerate() {
            let mut alone = sector.to_vec();
            xts.encrypt(&mut alone, 4096, 5 + i as u64);
            assert_eq!(alone, together[i * 4096..][..4096]);
        }
        xts.decrypt(&mut together, 4096, 5);
        assert_eq!(together, plain);
    }

    #[test]
    fn a_key_of_another_length_is_none() {
        assert!(Xts::<aes::Aes256>::new(&[0; 32]).is_none());
    }
}
