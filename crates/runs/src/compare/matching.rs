//! Which job of one subject is which of another: by what they do, then by their names.

use super::subject::SubjectJob;
use rubus_vocabulary::spec::{Operation, Pattern};
use rubus_vocabulary::subject_job::WriteSync;

/// From this block size on, a published figure of a sequential job may stand against another size.
const LARGE: u32 = 256 << 10;

/// For every job of `ours` the place of its counterpart in `theirs`, if it has one. Every job has at most
/// one counterpart; the best matches are made first, and equally good ones in order.
pub(super) fn counterparts(ours: &[SubjectJob], theirs: &[SubjectJob]) -> Vec<Option<usize>> {
    let mut candidates: Vec<(u32, usize, usize)> = Vec::new();
    for (i, our) in ours.iter().enumerate() {
        for (j, their) in theirs.iter().enumerate() {
            if let Some(score) = likeness(our, their) {
                candidates.push((score, i, j));
            }
        }
    }
    candidates.sort_by_key(|(score, i, j)| (std::cmp::Reverse(*score), *i, *j));
    let mut found = vec![None; ours.len()];
    let mut taken = vec![false; theirs.len()];
    for (_, i, j) in candidates {
        if found[i].is_none() && !taken[j] {
            found[i] = Some(j);
            taken[j] = true;
        }
    }
    found
}

/// How alike two jobs are; nothing when they must not be compared.
fn likeness(a: &SubjectJob, b: &SubjectJob) -> Option<u32> {
    let same_name = a.name == b.name || (a.section.is_some() && a.section == b.section);
    if a.scope != b.scope {
        return None;
    }
    if a.operation != b.operation || a.unit != b.unit {
        return None;
    }
    if a.operation == Operation::Compute && !same_name {
        return None;
    }
    if a.direction != b.direction || a.commit != b.commit || a.copies != b.copies {
        return None;
    }
    // The order of commits differs between programs and means little: each waits for the device.
    if a.pattern != b.pattern && !a.commit {
        return None;
    }
    // What shares the target with another job is slower for it, and only a job of the same name shares
    // it in the same way.
    if a.is_shared != b.is_shared || (a.is_shared && !same_name) {
        return None;
    }
    let mut score = 0;
    score += known_alike(a.queue_depth, b.queue_depth)?;
    score += match known_alike(a.block_bytes, b.block_bytes) {
        Some(score) => 100 * score,
        None => nearness_of_blocks(a, b)?,
    };
    // What is done differently is compared only where it is meant to be the same job.
    let like = |alike: Option<u32>| alike.or(same_name.then_some(0));
    score += 8 * like(alike_syncs(a.sync, b.sync))?;
    score += 4 * like(known_alike(a.access, b.access))?;
    score += 2 * like(known_alike(a.content.as_ref(), b.content.as_ref()))?;
    score += 2 * known_alike(a.on.as_ref(), b.on.as_ref()).unwrap_or(0);
    Some(score + if same_name { 60 } else { 0 } + u32::from(a.name == b.name))
}

/// As [`known_alike`]; commits are also alike when they make the same data durable by another call.
fn alike_syncs(a: Option<WriteSync>, b: Option<WriteSync>) -> Option<u32> {
    if let (Some(a), Some(b)) = (a, b) {
        let commits = a.is_each() && b.is_each();
        if a != b && commits && a.metadata_too() == b.metadata_too() {
            return Some(1);
        }
    }
    known_alike(a, b)
}

/// 2 for equals, 1 where at least one is not known, nothing for different ones.
fn known_alike<T: PartialEq>(a: Option<T>, b: Option<T>) -> Option<u32> {
    match (a, b) {
        (Some(a), Some(b)) if a == b => Some(2),
        (Some(_), Some(_)) => None,
        (None, None) => Some(2),
        _ => Some(1),
    }
}

/// Large sequential blocks of different sizes, for figures that were published: the nearer the
/// better, below anything with equal sizes.
fn nearness_of_blocks(a: &SubjectJob, b: &SubjectJob) -> Option<u32> {
    let published = a.throughput.interval.is_none() || b.throughput.interval.is_none();
    let (a_bytes, b_bytes) = (a.block_bytes?, b.block_bytes?);
    let large = a_bytes.min(b_bytes) >= LARGE && a.pattern == Pattern::Sequential;
    if !published || !large || a.commit {
        return None;
    }
    let apart = (f64::from(a_bytes) / f64::from(b_bytes)).log2().abs();
    Some((60.0 - 10.0 * apart).max(0.0) as u32)
}
