//! Checksums of blocks: CRC-32C and 64-bit xxHash.
//!
//! Both notice a changed block; neither is for secrets.

/// CRC-32C (Castagnoli) of the bytes, as in RFC 3720, 12.1.
pub fn crc32c(bytes: &[u8]) -> u32 {
    ::crc32c::crc32c(bytes)
}

/// XXH64 of the bytes.
pub fn xxh64(bytes: &[u8], seed: u64) -> u64 {
    twox_hash::XxHash64::oneshot(seed, bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crc32c_gives_the_published_values() {
        let ascending: Vec<u8> = (0..32).collect();
        let descending: Vec<u8> = (0..32).rev().collect();
        assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
        assert_eq!(crc32c(&[0xff; 32]), 0x62a8_ab43);
        assert_eq!(crc32c(&ascending), 0x46dd_794e);
        assert_eq!(crc32c(&descending), 0x113f_db5c);
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        assert_eq!(crc32c(b""), 0);
    }

    #[test]
    fn xxh64_gives_the_published_values() {
        assert_eq!(xxh64(b"", 0), 0xef46_db37_51d8_e999);
        assert_eq!(xxh64(b"a", 0), 0xd24e_c4f1_a98c_6e5b);
        assert_eq!(xxh64(b"abc", 0), 0x44bc_2cf5_ad77_0999);
        assert_eq!(xxh64(b"Nobody inspects the spammish repetition", 0), 0xfbce_a83c_8a37_8bf1);
    }

    #[test]
    fn every_changed_byte_is_noticed_at_every_length() {
        for length in 0..80 {
            let block: Vec<u8> = (0..length).map(|i| (i * 7) as u8).collect();
            for place in 0..length {
                let mut changed = block.clone();
                changed[place] ^= 0x10;
                assert_ne!(crc32c(&block), crc32c(&changed));
                assert_ne!(xxh64(&block, 1), xxh64(&changed, 1));
            }
        }
    }
}
