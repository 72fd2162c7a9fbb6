//! The works of a trial as jobs of the engine, and what they write at most.

use rubus_measure::suites::Endurance;
use rubus_vocabulary::spec::{
    Content, Direction, Durability, Job, Pattern, Shape, StopSpec, Suite,
};

use crate::candidates::Candidates;
use crate::decide::LOOKS;
use crate::setting::Work;

const KIB: u32 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
/// A turn that writes has at least this.
const MIN_TURN_BYTES: u64 = MIB / 2;
/// Share of the free space that the test file may have.
const SHARE_OF_FREE: u64 = 10;
/// Smallest test file.
pub const MIN_REGION: u64 = 64 * MIB;

/// What a trial writes at most, and on how large a file it works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Volume {
    /// Size of the test file.
    pub region_bytes: u64,
    /// What one turn of a work that writes may write.
    pub turn_bytes: u64,
    /// What is written at most in all.
    pub most_bytes: u64,
}

/// The works that a purpose is made of.
pub fn works_of(purpose: Purpose) -> &'static [Work] {
    match purpose {
        Purpose::Everything => &Work::ALL,
        Purpose::Files => &[Work::LargeRead, Work::MixedRead],
        Purpose::Database => &[Work::SmallRead, Work::DeepRead, Work::MixedRead, Work::Commit],
    }
}

/// What the disk is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Purpose {
    /// All works
    #[default]
    Everything,
    /// Large files that are read, beside writing
    Files,
    /// Small reads and commits
    Database,
}

/// The volume of a trial of these candidates, within the room and the wear that the disk allows.
///
/// # Errors
/// In words, when there is too little room.
pub fn volume(
    candidates: &Candidates,
    free_bytes: u64,
    endurance: Endurance,
) -> Result<Volume, String> {
    let (wanted, budget) = match endurance {
        Endurance::Low => (256 * MIB, GIB),
        Endurance::High => (GIB, 4 * GIB),
    };
    let region_bytes = wanted.min(free_bytes / SHARE_OF_FREE) / MIB * MIB;
    if region_bytes < MIN_REGION {
        return Err(format!(
            "{} MiB are free, and the test file, a tenth of that at most, needs {} MiB: free some space",
            free_bytes / MIB,
            MIN_REGION / MIB
        ));
    }
    let writing: usize = candidates
        .tried
        .iter()
        .map(|candidate| candidate.works.iter().filter(|work| work.writes()).count())
        .sum();
    // Few comparisons need more rounds than that, and then what is left of the budget decides.
    const USUAL_ROUNDS: usize = LOOKS[LOOKS.len() - 2];
    let turns = (writing * 2 * USUAL_ROUNDS) as u64;
    // The proof after `--apply` is a trial, too, with a file of its own, so half is left for it.
    let for_turns = budget.min(free_bytes / 2).saturating_sub(2 * region_bytes) / 2;
    let turn_bytes = match turns {
        0 => 0,
        turns => (for_turns / turns).clamp(MIN_TURN_BYTES, 64 * MIB),
    };
    let written = for_turns.min(turns.saturating_mul(2 * turn_bytes));
    Ok(Volume { region_bytes, turn_bytes, most_bytes: region_bytes + written })
}

/// The suite: a job for each work, in the order of [`Work::ALL`].
pub fn suite(volume: &Volume) -> Suite {
    Suite {
        name: "tune".into(),
        region_bytes: volume.region_bytes,
        content: Content::Incompressible,
        seed: 1,
        max_seconds: None,
        jobs: Work::ALL.map(|work| job(work, volume)).into(),
    }
}

fn job(work: Work, volume: &Volume) -> Job {
    let limited =
        |bytes: u64, job: Job| Job { stop: StopSpec { max_bytes: bytes, ..job.stop }, ..job };
    let plain = |direction, pattern, block_bytes, queue_depth| {
        Job::new(work.title(), direction, pattern, block_bytes, queue_depth)
    };
    let turn_bytes = volume.turn_bytes.max(MIN_TURN_BYTES);
    match work {
        // Once through the file at most: what is read twice comes from memory.
        Work::LargeRead => Job {
            through_cache: true,
            ..limited(
                volume.region_bytes,
                plain(Direction::Read, Pattern::Sequential, 128 * KIB, 1),
            )
        },
        Work::SmallRead => plain(Direction::Read, Pattern::Random, 4 * KIB, 1),
        Work::DeepRead => plain(Direction::Read, Pattern::Random, 4 * KIB, 32),
        Work::MixedRead => Job {
            shape: Some(Box::new(Shape {
                read_percent: Some(70),
                time_based: true,
                ..Shape::default()
            })),
            // Of what is moved, three tenths are written.
            ..limited(turn_bytes / 3 * 10, plain(Direction::Read, Pattern::Random, 4 * KIB, 16))
        },
        Work::Commit => Job {
            durability: Durability::EachInPlace,
            ..limited(turn_bytes, plain(Direction::Write, Pattern::Random, 4 * KIB, 1))
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setting::{Candidate, Risk, Setting};

    fn candidates(count: usize) -> Candidates {
        let one = Candidate {
            setting: Setting::Scheduler,
            from: "none".into(),
            to: "bfq".into(),
            knobs: Vec::new(),
            works: Work::ALL.into(),
            does: "",
            source: "",
            risk: Risk::None,
            set_by: Vec::new(),
        };
        Candidates { tried: vec![one; count], not_tried: Vec::new() }
    }

    #[test]
    fn a_card_is_written_a_gibibyte_at_most_and_an_ssd_four() {
        for (endurance, most) in [(Endurance::Low, GIB), (Endurance::High, 4 * GIB)] {
            for count in 0..6 {
                let volume = volume(&candidates(count), 1 << 40, endurance).unwrap();
                assert!(volume.most_bytes <= most, "{endurance:?} {count}: {volume:?}");
            }
        }
    }

    #[test]
    fn a_full_disk_is_refused() {
        let refused = volume(&candidates(1), 100 * MIB, Endurance::High).unwrap_err();
        assert!(refused.contains("free some space"), "{refused}");
    }

    #[test]
    fn every_work_has_its_job() {
        let volume = volume(&candidates(1), 1 << 40, Endurance::High).unwrap();
        let suite = suite(&volume);
        for (work, job) in Work::ALL.iter().zip(&suite.jobs) {
            assert_eq!(job.name, work.title());
            assert_eq!(work.writes(), rubus_measure::suites::writes(job), "{work:?}");
        }
    }
}
