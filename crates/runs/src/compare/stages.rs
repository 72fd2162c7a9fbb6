//! Which jobs of a job file began together, by the file alone.
//!
//! fio starts jobs together until one has `stonewall`, which waits for all before it. `new_group` begins another group of
//! results and waits for nothing (fio's manual, "Job parameters").

use std::collections::BTreeSet;

use rubus_fio::job_file::options;

/// What a job says of its beginning.
pub(super) struct Start {
    group: u64,
    /// Its group began with the one before it.
    joins: bool,
    /// It began after others of its stage, or after a time.
    waits: bool,
}

impl Start {
    /// Of a job of a reporting group, by the options of all jobs and then its own.
    pub(super) fn of<'a>(group: u64, given: impl Iterator<Item = (&'a str, &'a str)>) -> Start {
        let (mut new_group, mut stonewall, mut waits) = (false, false, false);
        for (name, value) in given {
            let is_on = value.trim() != "0";
            match options::find(name).map_or(name, |option| option.name) {
                "new_group" => new_group = is_on,
                "stonewall" => stonewall = is_on,
                "wait_for" | "startdelay" => waits |= is_on,
                _ => {}
            }
        }
        Start { group, joins: new_group && !stonewall, waits }
    }
}

/// The stage of each of the jobs, which are in their order; absent where a job of the stage waits, which tells nothing
/// of what ran at the same time.
pub(super) fn stages(starts: impl Iterator<Item = Start>) -> Vec<Option<u64>> {
    let mut stages: Vec<u64> = Vec::new();
    let mut waiting = BTreeSet::new();
    let mut last: Option<(u64, u64)> = None;
    for start in starts {
        let stage = match last {
            Some((group, stage)) if start.group == group || start.joins => stage,
            _ => start.group,
        };
        last = Some((start.group, stage));
        stages.push(stage);
        if start.waits {
            waiting.insert(stage);
        }
    }
    stages.into_iter().map(|stage| Some(stage).filter(|stage| !waiting.contains(stage))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stages_of(jobs: &[(u64, &[(&str, &str)])]) -> Vec<Option<u64>> {
        stages(jobs.iter().map(|(group, own)| Start::of(*group, own.iter().copied())))
    }

    #[test]
    fn a_new_group_begins_with_the_one_before_it() {
        let jobs: [(u64, &[(&str, &str)]); 6] = [
            (0, &[]),
            (1, &[("new_group", "1")]),
            (1, &[]),
            (2, &[("stonewall", ""), ("new_group", "")]),
            (3, &[("new_group", "")]),
            (4, &[("wait_for_previous", "1")]),
        ];
        let together = [Some(0), Some(0), Some(0), Some(2), Some(2), Some(4)];
        assert_eq!(stages_of(&jobs), together);
    }

    #[test]
    fn a_stage_with_a_job_that_waits_tells_nothing() {
        let jobs: [(u64, &[(&str, &str)]); 4] = [
            (0, &[]),
            (0, &[("startdelay", "0")]),
            (1, &[("stonewall", "1")]),
            (2, &[("new_group", "1"), ("wait_for", "a")]),
        ];
        assert_eq!(stages_of(&jobs), [Some(0), Some(0), None, None]);
    }
}
