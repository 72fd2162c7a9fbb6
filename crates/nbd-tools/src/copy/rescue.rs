//! What could not be read at first: read again when all else is copied, in smaller and smaller parts, so that
//! only what really cannot be read is left out.

use std::sync::atomic::{AtomicBool, Ordering};

use rubus_nbd::transport::Transport;
use rubus_nbd::wire::{Command, ErrorCode};

use super::error::{is_of_the_disk, not_read, not_written};
use super::grid::{Grid, Ledger, digest, is_zero};
use super::worker::Side;
use super::{CopyError, End};

/// A disk gives and loses no less.
const MIN_OF_EXPORT: u64 = 512;
/// What the kernel reads of a file or a device.
const MIN_OF_FILE: u64 = 4096;

/// Copies the pieces that were set aside. What cannot be read of them becomes zeros, and is in the ledger.
pub(super) fn rescue<T: Transport + 'static>(
    source: &End<T>,
    target: &End<T>,
    (grid, ledger): (Grid, &Ledger),
    cancel: &AtomicBool,
    tell: &mut dyn FnMut(),
) -> Result<(), CopyError> {
    let aside = ledger.take_set_aside();
    if aside.is_empty() {
        return Ok(());
    }
    let least = match source {
        End::Image { .. } => MIN_OF_FILE,
        End::Export(_) => u64::from(source.blocks().1).max(MIN_OF_EXPORT),
    };
    let (mut from_side, mut to_side) = (source.side()?, target.side()?);
    let mut memory = vec![0; grid.piece_bytes as usize];
    for (from, to) in aside {
        let memory = &mut memory[..(to - from) as usize];
        memory.fill(0);
        let mut read = |part_from: u64, part_to: u64| {
            if cancel.load(Ordering::Relaxed) {
                return Err(CopyError::Interrupted);
            }
            let part = (part_from - from) as usize..(part_to - from) as usize;
            let is_read = read(&mut from_side, part_from, &mut memory[part.clone()], cancel)?;
            if !is_read {
                memory[part].fill(0);
            }
            Ok(is_read)
        };
        let lost = parts_that_fail((from, to), least, &mut read)?;
        for (from, to) in lost {
            ledger.is_unreadable(from, to);
        }
        write(&mut to_side, from, memory, cancel)?;
        let data_bytes = if is_zero(memory) { 0 } else { memory.len() as u64 };
        ledger.data_done(from, to, digest(&grid, from, memory), data_bytes);
        tell();
    }
    source.give_back(from_side);
    target.give_back(to_side);
    Ok(())
}

/// Halves what cannot be read until it can be, or is as small as can be asked for; gives what is left then, in the order
/// of the disk.
fn parts_that_fail(
    whole: (u64, u64),
    least: u64,
    read: &mut dyn FnMut(u64, u64) -> Result<bool, CopyError>,
) -> Result<Vec<(u64, u64)>, CopyError> {
    let (mut left, mut failing) = (vec![whole], Vec::new());
    while let Some((from, to)) = left.pop() {
        if read(from, to)? {
            continue;
        }
        let middle = from + ((to - from) / 2).next_multiple_of(least);
        if middle < to {
            left.extend([(middle, to), (from, middle)])
        } else {
            failing.push((from, to))
        }
    }
    Ok(failing)
}

/// Reads, if the disk gives it.
fn read<T: Transport + 'static>(
    side: &mut Side<'_, T>,
    from: u64,
    memory: &mut [u8],
    cancel: &AtomicBool,
) -> Result<bool, CopyError> {
    match side {
        Side::Nowhere => Ok(true),
        Side::File(image, name) => match image.read(from, memory) {
            Ok(()) => Ok(true),
            Err(error) if is_of_the_disk(&error) => Ok(false),
            Err(error) => Err(not_read(name, from, memory.len() as u64, &error)),
        },
        Side::Wire(wired) => match wired.ask(Command::Read, from, memory, cancel)? {
            Some(answer) if answer.error != ErrorCode::IO => {
                Err(wired.failed("reading", from, memory.len() as u64, &answer))
            }
            answer => Ok(answer.is_none()),
        },
    }
}

fn write<T: Transport + 'static>(
    side: &mut Side<'_, T>,
    from: u64,
    memory: &mut [u8],
    cancel: &AtomicBool,
) -> Result<(), CopyError> {
    let bytes = memory.len() as u64;
    match side {
        Side::Nowhere => Ok(()),
        Side::File(image, name) => {
            let written = image.write(from, memory);
            written.map_err(|error| not_written(name, "writing", from, bytes, &error))
        }
        Side::Wire(wired) => match wired.ask(Command::Write, from, memory, cancel)? {
            None => Ok(()),
            Some(answer) => Err(wired.failed("writing", from, bytes, &answer)),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is found of a piece in which these bytes fail, and how often it was read.
    fn found(least: u64, bad: &[std::ops::Range<u64>]) -> (Vec<(u64, u64)>, usize) {
        let mut reads = 0;
        let mut read = |from: u64, to: u64| {
            reads += 1;
            Ok(!bad.iter().any(|bad| bad.start < to && from < bad.end))
        };
        let found = parts_that_fail((1 << 20, (1 << 20) + (256 << 10)), least, &mut read);
        (found.unwrap(), reads)
    }

    #[test]
    fn only_the_least_parts_that_fail_are_left_out() {
        let start = 1 << 20;
        assert_eq!(found(512, &[]), (vec![], 1));
        // One sector: each halving is two reads.
        let sector = start + 7 * 512..start + 8 * 512;
        let (parts, reads) = found(512, std::slice::from_ref(&sector));
        assert_eq!((parts, reads), (vec![(sector.start, sector.end)], 19));
        let (parts, _) = found(4096, &[sector]);
        assert_eq!(parts, [(start, start + 4096)]);
        let two = [start..start + 1, start + 5000..start + 5001];
        let (parts, _) = found(4096, &two);
        assert_eq!(parts, [(start, start + 4096), (start + 4096, start + 8192)]);
    }

    #[test]
    fn a_source_with_large_blocks_is_asked_for_whole_ones_and_an_end_may_be_odd() {
        let mut asked = Vec::new();
        let mut read = |from: u64, to: u64| {
            asked.push((from, to));
            Ok(false)
        };
        let parts = parts_that_fail((0, 2500), 1024, &mut read).unwrap();
        assert_eq!(parts, [(0, 1024), (1024, 2048), (2048, 2500)]);
        assert!(asked.iter().all(|(from, _)| from % 1024 == 0), "{asked:?}");
        let mut lost = |_, _| Err(CopyError::Interrupted);
        assert!(parts_that_fail((0, 512), 512, &mut lost).is_err());
    }
}
