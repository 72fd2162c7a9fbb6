//! The sizes of a job's operations.

use rubus_vocabulary::spec::Sizes;

use super::settings::Settings;

/// The size of all operations, where they have one.
pub(super) fn one_block(settings: &Settings) -> Option<u64> {
    let [read, write] = [0, 1].map(|side| settings.fixed_block(side));
    let block = match (settings.reads, settings.writes) {
        (true, true) => read.filter(|_| read == write),
        (true, false) => read,
        (false, _) => write,
    };
    block.map(u64::from)
}

/// Sizes of reads and of writes: all that are not simply [`block_bytes`] are said.
pub(super) fn sizes(settings: &Settings, block_bytes: u32) -> [Option<Sizes>; 2] {
    [0, 1].map(|side| {
        if let Some(split) = &settings.block_split[side] {
            return Some(split.clone());
        }
        if let Some((low, high)) = settings.block_range[side] {
            return (low != high || low != block_bytes).then_some(Sizes::Range(low, high));
        }
        let block = settings.block[side].unwrap_or(4096);
        (block != block_bytes).then_some(Sizes::Range(block, block))
    })
}

/// The one size that a result shows: of reads, or of writes where there are no reads.
pub(super) fn block_bytes(settings: &Settings) -> u32 {
    let side = usize::from(!settings.reads);
    if let Some(Sizes::Split(shares)) = &settings.block_split[side] {
        // The most frequent one says most.
        let most = shares.iter().max_by_key(|(_, share)| *share);
        return most.map_or(4096, |(size, _)| *size);
    }
    match settings.block_range[side] {
        Some((low, _)) => low,
        None => settings.block[side].unwrap_or(4096),
    }
}

pub(super) fn longest_block(settings: &Settings) -> u32 {
    let block = block_bytes(settings);
    let used = [settings.reads, settings.writes];
    let longest = sizes(settings, block).into_iter().zip(used).filter(|(_, used)| *used);
    let longest = longest.map(|(sizes, _)| match sizes {
        None => block,
        Some(Sizes::Range(_, high)) => high,
        Some(Sizes::Split(shares)) => shares.iter().map(|(size, _)| *size).max().unwrap_or(block),
    });
    longest.max().unwrap_or(block)
}

/// The smallest operation of either kind, done or not: by which fio aligns shares.
pub(super) fn shortest_block(settings: &Settings) -> u32 {
    let block = block_bytes(settings);
    let shortest = sizes(settings, block).into_iter().map(|sizes| match sizes {
        None => block,
        Some(Sizes::Range(low, _)) => low,
        Some(Sizes::Split(shares)) => shares.iter().map(|(size, _)| *size).min().unwrap_or(block),
    });
    shortest.min().unwrap_or(block)
}
