//! Blocks that can be checked: each unit of what is written says where it belongs, who wrote it and
//! what the sum of its bytes is.
//!
//! A unit is at most 4 KiB long and begins with (all numbers little-endian):
//!
//! | bytes | what |
//! |---|---|
//! | 0..8 | `rubusver` |
//! | 8..16 | its offset in the file |
//! | 16..24 | seed of the copy of the job that wrote it |
//! | 24..32 | number of the operation that wrote it |
//! | 32..36 | its length |
//! | 36..40 | which sum: 1 is CRC-32C, 2 is XXH64 |
//! | 40..44 | number of the file in the session |
//! | 44..48 | zero |
//! | 48..56 | sum of the unit with these eight bytes zero |
//!
//! So a unit that was changed is found, one that was written to the wrong place, and one whose last
//! writing got lost where it is known which writing was the last.

use rubus_vocabulary::checksum::{crc32c, xxh64};
use rubus_vocabulary::spec::Verify;

use super::script::Operation;

const MAGIC: [u8; 8] = *b"rubusver";
const SUM_AT: usize = 48;
const HEADER_BYTES: usize = 56;
/// The longest unit.
const MAX_UNIT: u32 = 4096;
/// Length of the shortest unit, in bytes.
const MIN_UNIT: u32 = 512;

/// How the operations of one copy are sealed and checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Checks {
    pub(crate) sum: Verify,
    /// Length of a unit.
    pub(crate) unit_bytes: u32,
    /// Numbers in the session of the files of the copy's plan.
    pub(crate) files: Vec<u32>,
    /// Seed of what this copy writes.
    pub(crate) seed: u64,
    /// Whose writing may be found; anybody's if empty.
    pub(crate) writers: Vec<u64>,
    /// What is found must be from the operation that is replayed.
    pub(crate) is_exact: bool,
}

/// The length of the units of blocks that all lie at multiples of `grid_bytes`.
///
/// # Errors
/// In words, when they would be too short.
pub(crate) fn unit_of(grid_bytes: u64) -> Result<u32, String> {
    let unit = (grid_bytes & grid_bytes.wrapping_neg()).min(u64::from(MAX_UNIT));
    match u32::try_from(unit) {
        Ok(unit) if unit >= MIN_UNIT => Ok(unit),
        _ => Err(format!(
            "what is checked has to lie at multiples of {MIN_UNIT} bytes; its blocks lie at multiples of {unit}"
        )),
    }
}

impl Checks {
    /// Puts headers into a block that is about to be written.
    pub(super) fn seal(&self, block: &mut [u8], operation: &Operation) {
        let offsets = (operation.offset..).step_by(self.unit_bytes as usize);
        for (unit, offset) in block.chunks_exact_mut(self.unit_bytes as usize).zip(offsets) {
            let mut header = [0; HEADER_BYTES];
            header[0..8].copy_from_slice(&MAGIC);
            header[8..16].copy_from_slice(&offset.to_le_bytes());
            header[16..24].copy_from_slice(&self.seed.to_le_bytes());
            header[24..32].copy_from_slice(&operation.number.to_le_bytes());
            header[32..36].copy_from_slice(&self.unit_bytes.to_le_bytes());
            header[36..40].copy_from_slice(&code(self.sum).to_le_bytes());
            header[40..44].copy_from_slice(&self.file(operation).to_le_bytes());
            unit[..HEADER_BYTES].copy_from_slice(&header);
            let sum = sum_of(self.sum, unit);
            unit[SUM_AT..HEADER_BYTES].copy_from_slice(&sum.to_le_bytes());
        }
    }

    /// Checks a block that was read. The sums in it are zero afterwards.
    ///
    /// # Errors
    /// What is wrong, in words: where, what was expected and what was found.
    pub(super) fn check(&self, block: &mut [u8], operation: &Operation) -> Result<(), String> {
        let offsets = (operation.offset..).step_by(self.unit_bytes as usize);
        for (unit, offset) in block.chunks_exact_mut(self.unit_bytes as usize).zip(offsets) {
            if let Err(found) = self.check_unit(unit, offset, operation) {
                let unit_bytes = self.unit_bytes;
                return Err(format!(
                    "the {unit_bytes} bytes at byte {offset} do not hold what was written there: {found}"
                ));
            }
        }
        Ok(())
    }

    fn check_unit(
        &self,
        unit: &mut [u8],
        offset: u64,
        operation: &Operation,
    ) -> Result<(), String> {
        if unit[0..8] != MAGIC {
            return Err(describe(unit));
        }
        let number = |from: usize| number_64(&unit[from..from + 8]);
        let (at, seed, by) = (number(8), number(16), number(24));
        let of_file = number_32(&unit[40..44]);
        if (at, of_file) != (offset, self.file(operation)) {
            return Err(format!("found the block of byte {at} of file {of_file} instead"));
        }
        let sum = match number_32(&unit[36..40]) {
            1 => Verify::Crc32c,
            2 => Verify::Xxhash,
            code => return Err(format!("found a header with an unknown sum ({code})")),
        };
        let stated = number(SUM_AT);
        unit[SUM_AT..HEADER_BYTES].fill(0);
        let computed = sum_of(sum, unit);
        if stated != computed {
            return Err(format!(
                "expected the sum {stated:#x}, found bytes with the sum {computed:#x}"
            ));
        }
        let is_ours = self.writers.is_empty() || self.writers.contains(&seed);
        let is_last = !self.is_exact || by == operation.number;
        if is_ours && is_last {
            Ok(())
        } else {
            Err(format!(
                "expected what operation {} wrote, found an older or other writing (operation {by} of \
                 the job with the seed {seed:#x}): the last one got lost",
                operation.number
            ))
        }
    }

    fn file(&self, operation: &Operation) -> u32 {
        self.files.get(operation.file as usize).copied().unwrap_or(0)
    }
}

/// What stands where a header should.
fn describe(unit: &[u8]) -> String {
    if unit.iter().all(|&byte| byte == 0) {
        return "found only zeros".into();
    }
    let first = unit.iter().take(8).map(|byte| format!("{byte:02x}"));
    format!("found no header, but {}…", first.collect::<String>())
}

fn code(sum: Verify) -> u32 {
    match sum {
        Verify::Crc32c => 1,
        Verify::Xxhash => 2,
    }
}

fn sum_of(sum: Verify, unit: &[u8]) -> u64 {
    match sum {
        Verify::Crc32c => u64::from(crc32c(unit)),
        Verify::Xxhash => xxh64(unit, 0),
    }
}

fn number_64(bytes: &[u8]) -> u64 {
    bytes.try_into().map_or(0, u64::from_le_bytes)
}

fn number_32(bytes: &[u8]) -> u32 {
    bytes.try_into().map_or(0, u32::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn checks(sum: Verify) -> Checks {
        Checks {
            sum,
            unit_bytes: 1024,
            files: vec![3, 5],
            seed: 77,
            writers: vec![77, 78],
            is_exact: true,
        }
    }

    fn operation(offset: u64) -> Operation {
        Operation {
            number: 9,
            is_write: true,
            file: 1,
            offset,
            bytes: 4096,
            due_ns: 0,
            scheduled_ns: None,
            spin_ns: 0,
            flush: None,
            drops: None,
        }
    }

    fn sealed(checks: &Checks, offset: u64) -> Vec<u8> {
        let mut block: Vec<u8> = (0..4096_u32).map(|i| (i * 31) as u8).collect();
        checks.seal(&mut block, &operation(offset));
        block
    }

    #[test]
    fn what_was_sealed_is_found_again() {
        for sum in [Verify::Crc32c, Verify::Xxhash] {
            let checks = checks(sum);
            let mut block = sealed(&checks, 8192);
            assert_eq!(checks.check(&mut block, &operation(8192)), Ok(()));
        }
    }

    proptest! {
        #[test]
        fn any_changed_bit_is_noticed(place in 0_usize..4096, bit in 0_u32..8, xxhash in any::<bool>()) {
            let checks = checks(if xxhash { Verify::Xxhash } else { Verify::Crc32c });
            let mut block = sealed(&checks, 8192);
            block[place] ^= 1 << bit;
            let error = checks.check(&mut block, &operation(8192)).expect_err("a bit is wrong");
            let unit = 8192 + place as u64 / 1024 * 1024;
            let named = format!("at byte {unit} ");
            prop_assert!(error.contains(&named), "{}", error);
        }
    }

    #[test]
    fn a_misplaced_a_stale_and_a_missing_block_are_told_apart() {
        let checks = checks(Verify::Crc32c);
        let error = |block: &mut Vec<u8>, operation: &Operation| {
            checks.check(block, operation).expect_err("something is wrong")
        };
        let mut block = sealed(&checks, 8192);
        let misplaced = error(&mut block, &operation(4096));
        let later = Operation { number: 10, ..operation(8192) };
        let stale = error(&mut sealed(&checks, 8192), &later);
        let zeros = error(&mut vec![0; 4096], &operation(0));
        let foreign = error(&mut vec![0xab; 4096], &operation(0));
        insta::assert_snapshot!([misplaced, stale, zeros, foreign].join("\n"), @r"
        the 1024 bytes at byte 4096 do not hold what was written there: found the block of byte 8192 of file 5 instead
        the 1024 bytes at byte 8192 do not hold what was written there: expected what operation 10 wrote, found an older or other writing (operation 9 of the job with the seed 0x4d): the last one got lost
        the 1024 bytes at byte 0 do not hold what was written there: found only zeros
        the 1024 bytes at byte 0 do not hold what was written there: found no header, but abababababababab…
        ");
    }

    #[test]
    fn units_are_powers_of_two_that_fit_the_grid() {
        assert_eq!(unit_of(1 << 20), Ok(4096));
        assert_eq!(unit_of(6144), Ok(2048));
        assert_eq!(unit_of(512), Ok(512));
        assert!(unit_of(768).is_err());
    }
}
