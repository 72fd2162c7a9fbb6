//! Checksums of blocks: CRC-32C and 64-bit xxHash.
//!
//! Both notice a changed block; neither is for secrets. They are computed by portable code with tables
//! of constants, at a few hundred megabytes per second on small boards.
//!
//! Sources: RFC 3720, 12.1 (the Castagnoli polynomial as used by iSCSI) with the test patterns of
//! its appendix B.4; Kounavis and Berry, "A systematic approach to building high performance,
//! software-based, CRC generators" (ISCC 2005), for eight bytes at a time; Yann Collet, "xxHash fast
//! digest algorithm", specification of XXH64.

/// The reversed Castagnoli polynomial.
const POLYNOMIAL: u32 = 0x82f6_3b78;

/// `TABLES[k][b]` is what byte `b` does to the sum when `k` more bytes follow.
static TABLES: [[u32; 256]; 8] = tables();

const fn tables() -> [[u32; 256]; 8] {
    let mut tables = [[0_u32; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        let mut sum = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            sum = (sum >> 1) ^ if sum & 1 == 1 { POLYNOMIAL } else { 0 };
            bit += 1;
        }
        tables[0][byte] = sum;
        byte += 1;
    }
    let mut more = 1;
    while more < 8 {
        let mut byte = 0;
        while byte < 256 {
            let before = tables[more - 1][byte];
            tables[more][byte] = (before >> 8) ^ tables[0][(before & 0xff) as usize];
            byte += 1;
        }
        more += 1;
    }
    tables
}

/// CRC-32C (Castagnoli) of the bytes.
pub fn crc32c(bytes: &[u8]) -> u32 {
    let mut sum = u32::MAX;
    let mut words = bytes.chunks_exact(8);
    for word in &mut words {
        let [a, b, c, d, e, f, g, h] = (word_64(word) ^ u64::from(sum)).to_le_bytes();
        sum = TABLES[7][usize::from(a)]
            ^ TABLES[6][usize::from(b)]
            ^ TABLES[5][usize::from(c)]
            ^ TABLES[4][usize::from(d)]
            ^ TABLES[3][usize::from(e)]
            ^ TABLES[2][usize::from(f)]
            ^ TABLES[1][usize::from(g)]
            ^ TABLES[0][usize::from(h)];
    }
    for &byte in words.remainder() {
        sum = (sum >> 8) ^ TABLES[0][((sum ^ u32::from(byte)) & 0xff) as usize];
    }
    !sum
}

/// The five primes of XXH64.
mod prime {
    pub(super) const P1: u64 = 0x9e37_79b1_85eb_ca87;
    pub(super) const P2: u64 = 0xc2b2_ae3d_27d4_eb4f;
    pub(super) const P3: u64 = 0x1656_67b1_9e37_79f9;
    pub(super) const P4: u64 = 0x85eb_ca77_c2b2_ae63;
    pub(super) const P5: u64 = 0x27d4_eb2f_1656_67c5;
}

fn round(accumulator: u64, lane: u64) -> u64 {
    accumulator
        .wrapping_add(lane.wrapping_mul(prime::P2))
        .rotate_left(31)
        .wrapping_mul(prime::P1)
}

fn merge(accumulator: u64, lane: u64) -> u64 {
    (accumulator ^ round(0, lane))
        .wrapping_mul(prime::P1)
        .wrapping_add(prime::P4)
}

/// The number in eight bytes, lowest first; in fewer bytes with zeros above.
#[inline(always)]
fn word_64(bytes: &[u8]) -> u64 {
    match <[u8; 8]>::try_from(bytes) {
        Ok(word) => u64::from_le_bytes(word),
        Err(_) => bytes
            .iter()
            .rev()
            .fold(0, |word, &byte| word << 8 | u64::from(byte)),
    }
}

/// XXH64 of the bytes.
pub fn xxh64(bytes: &[u8], seed: u64) -> u64 {
    let mut rest = bytes;
    let mut sum = if bytes.len() >= 32 {
        let mut lanes = [
            seed.wrapping_add(prime::P1).wrapping_add(prime::P2),
            seed.wrapping_add(prime::P2),
            seed,
            seed.wrapping_sub(prime::P1),
        ];
        while rest.len() >= 32 {
            let (stripe, after) = rest.split_at(32);
            for (lane, word) in lanes.iter_mut().zip(stripe.chunks_exact(8)) {
                *lane = round(*lane, word_64(word));
            }
            rest = after;
        }
        let turns = [1, 7, 12, 18];
        let joined = lanes.iter().zip(turns);
        let sum = joined.fold(0_u64, |sum, (lane, turn)| {
            sum.wrapping_add(lane.rotate_left(turn))
        });
        lanes.iter().fold(sum, |sum, &lane| merge(sum, lane))
    } else {
        seed.wrapping_add(prime::P5)
    };
    sum = sum.wrapping_add(bytes.len() as u64);
    while rest.len() >= 8 {
        let (word, after) = rest.split_at(8);
        sum = (sum ^ round(0, word_64(word))).rotate_left(27);
        sum = sum.wrapping_mul(prime::P1).wrapping_add(prime::P4);
        rest = after;
    }
    if rest.len() >= 4 {
        let (word, after) = rest.split_at(4);
        sum = (sum ^ word_64(word).wrapping_mul(prime::P1)).rotate_left(23);
        sum = sum.wrapping_mul(prime::P2).wrapping_add(prime::P3);
        rest = after;
    }
    for &byte in rest {
        sum = (sum ^ u64::from(byte).wrapping_mul(prime::P5)).rotate_left(11);
        sum = sum.wrapping_mul(prime::P1);
    }
    sum = (sum ^ (sum >> 33)).wrapping_mul(prime::P2);
    sum = (sum ^ (sum >> 29)).wrapping_mul(prime::P3);
    sum ^ (sum >> 32)
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
        assert_eq!(
            xxh64(b"Nobody inspects the spammish repetition", 0),
            0xfbce_a83c_8a37_8bf1
        );
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
