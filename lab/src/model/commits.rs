//! Commits of filesystems on a device with a limit of writes per second, by one writer and by several at once.

use std::path::Path;

use anyhow::{Context, Result};
use rubus_advise::Kind as Pipe;
use rubus_stats::estimate::Estimate;
use tempfile::TempDir;

use super::Subject;
use super::case::{Forecast, Kind, Unit, Whole};
use super::ledger::Ledger;
use super::parts::{even, fixed};
use super::rig::{Job, Measured, Rig};
use crate::devices::needs::Need;
use crate::devices::{LimitForAll, Limits, LoopDevice, mark, programs};

pub(super) const ABOUT: &str = "Filesystems on a device of 250 writes per second. Alone: how many writes a commit is, counted where nothing is limited. \
     Predicted: commits per second at the limit. Several writers that commit at once, each in a file of its own, share the filesystem's own writes as far as their \
     commits meet: how many writes a commit is then is counted with so many writers, on devices of 3000 and 1000 writes per second, because commits meet only while \
     one of them takes its time, and carried on to the slow one.";
pub(super) const NEEDS: &[Need] = &[
    Need::Root,
    Need::Loop,
    Need::ThrottleForAll,
    Need::Program("mkfs.ext4", "e2fsprogs"),
    Need::Program("mkfs.btrfs", "btrfs-progs"),
];

const MIB: u64 = 1 << 20;
const BLOCK: u64 = 4 << 10;
/// Writes per second of the slow device.
const LIMIT: u64 = 250;
/// Writes per second of the devices on which the writes of several writers are counted, the faster one first.
const LIMITS_WHILE_COUNTED: [u64; 2] = [3000, 1000];
const UNLIMITED: u64 = 1_000_000;
/// How many commit at once.
const WRITERS: [u32; 3] = [3, 6, 12];

pub(super) fn wholes(rig: &Rig, ledger: &Ledger) -> Result<Vec<Whole>> {
    let mut wholes = Vec::new();
    for filesystem in ["ext4", "btrfs"] {
        let counted = Counted::new(rig, ledger, filesystem)?;
        wholes.extend(by_one(&counted)?);
        for writers in WRITERS {
            wholes.extend(by_several(&counted, writers)?);
        }
        // What is left to be written need not be waited for.
        counted.limit(UNLIMITED)?;
    }
    Ok(wholes)
}

/// A filesystem that is mounted for as long as this lives.
pub(super) struct Mounted(TempDir);

impl Mounted {
    /// Mounts a device.
    ///
    /// # Errors
    /// When it cannot be mounted.
    pub(super) fn new(device: &Path, options: &str) -> Result<Mounted> {
        let at = mark::directory()?;
        let (node, point) = (device.to_string_lossy(), at.path().to_string_lossy());
        programs::run("mount", &["-o", options, &node, &point])?;
        Ok(Mounted(at))
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let point = self.path().to_string_lossy().into_owned();
        if let Err(error) = programs::run("umount", &[&point]) {
            eprintln!("could not unmount {point}: {error:#}");
        }
    }
}

/// A filesystem on a device whose writes are counted and limited. Fields are dropped in this order.
struct Counted<'a> {
    filesystem: &'static str,
    rig: &'a Rig,
    ledger: &'a Ledger,
    mounted: Mounted,
    limit: LimitForAll,
    _device: LoopDevice,
}

impl<'a> Counted<'a> {
    fn new(rig: &'a Rig, ledger: &'a Ledger, filesystem: &'static str) -> Result<Counted<'a>> {
        let device = LoopDevice::new(384 * MIB)?;
        let node = device.path().display().to_string();
        match filesystem {
            "ext4" => programs::run("mkfs.ext4", &["-q", "-F", &node])?,
            _ => programs::run("mkfs.btrfs", &["-q", "-f", "-m", "single", &node])?,
        };
        // The throttle counts only where there is some limit.
        let limit = LimitForAll::new(device.number()?, writes_per_second(UNLIMITED))?;
        Ok(Counted {
            filesystem,
            rig,
            ledger,
            mounted: Mounted::new(device.path(), "noatime")?,
            limit,
            _device: device,
        })
    }

    fn limit(&self, writes: u64) -> Result<()> {
        self.limit.change(writes_per_second(writes))
    }

    fn run(&self, job: &Job) -> Result<Vec<Measured>> {
        let jobs = std::slice::from_ref(job);
        self.rig.jobs(None, Some(self.mounted.path()), jobs)
    }

    fn writes_of(&self, job: &Job) -> Result<u64> {
        let before = self.limit.writes()?;
        self.run(job)?;
        Ok(self.limit.writes()?.saturating_sub(before))
    }

    /// Device writes for each commit, from two runs of a job: one makes `commits` commits, the other five times as
    /// many.
    fn writes_per_commit(&self, commits: u64, job: &dyn Fn(u64) -> Job) -> Result<f64> {
        let many = 5 * commits;
        let few_writes = self.writes_of(&job(commits))?;
        let many_writes = self.writes_of(&job(many))?;
        Ok(each((commits, few_writes), (many, many_writes)))
    }

    /// A case of `writers` writers whose commits take `each` device writes: this job, at the limit.
    fn whole(&self, name: &str, writers: u32, each: Estimate, job: &Job) -> Result<Whole> {
        let commit_s = each.scaled(1.0 / LIMIT as f64);
        let path = [fixed(Pipe::Filesystem, "device", 1, commit_s)];
        let group = match writers {
            1 => "commits".to_string(),
            _ => format!("commits, {writers} at once"),
        };
        let filesystem = self.filesystem;
        let forecast = Forecast::new(
            Subject::Commits,
            kind(writers, each.value),
            format!("{filesystem}: {name} ({:.1} writes per commit)", each.value),
            group,
            Unit::Iops,
            (&path, even(BLOCK, writers)),
        );
        self.ledger.write([&forecast])?;
        self.limit(LIMIT)?;
        let found = self.rig.undisturbed(|| self.run(job))?;
        let found = found.first().context("the commits were not measured")?;
        Ok(forecast.whole(found))
    }
}

/// What a case is worth. The number of writes that a lone writer's commit is holds what is predicted. Several share writes, and how
/// many depends on the device's speed, which is another one where they are counted; unless there is but one write, which is not shared.
fn kind(writers: u32, each: f64) -> Kind {
    if writers > 1 && each > 1.1 { Kind::Composition } else { Kind::Identity }
}

/// Writes for each commit, from a few and from many of them. What making their files costs is in both, and so in neither.
fn each(few: (u64, u64), many: (u64, u64)) -> f64 {
    let commits = many.0.saturating_sub(few.0).max(1);
    let writes = many.1.saturating_sub(few.1);
    (writes as f64 / commits as f64).max(0.1)
}

/// Writes for each commit on the slow device, from those on the two faster ones. The slower a device, the more of the time its writes
/// take, and the more commits meet. What is left of the time is the processor's, which takes the same with each: so the numbers go in a line
/// with the rate. They lie anywhere from staying as they are to a line with its logarithm.
fn carried_on(on_faster: f64, on_slower: f64) -> Estimate {
    let [faster, slower] = LIMITS_WHILE_COUNTED.map(|limit| limit as f64);
    let limit = LIMIT as f64;
    let grows = on_slower - on_faster;
    let (in_a_line, by_logarithm) =
        ((slower - limit) / (faster - slower), (slower / limit).ln() / (faster / slower).ln());
    let at = |share: f64| (on_slower + share * grows).max(0.1);
    let (near, far) = (at(0.0), at(by_logarithm));
    Estimate::new(at(in_a_line), near.min(far), near.max(far))
}

fn writes_per_second(writes: u64) -> Limits {
    Limits { write_iops: Some(writes), ..Limits::default() }
}

/// A job that writes `blocks` blocks, each made durable before the next.
fn commits(how: &str, blocks: u64) -> Job {
    Job::once("job", "write", BLOCK, blocks * BLOCK).with(how, 1).with("fallocate", "none")
}

/// One commit after the other.
fn by_one(on: &Counted<'_>) -> Result<Vec<Whole>> {
    let overwrite = |blocks: u64| commits("fdatasync", blocks).with("overwrite", 1);
    // These numbers of commits take some seconds at the limit, so that the throttle's initial burst does not count.
    type Way<'a> = (&'a str, u64, &'a dyn Fn(u64) -> Job);
    let ways: [Way<'_>; 3] = [
        ("append, fsync", 160, &|blocks| commits("fsync", blocks)),
        ("append, fdatasync", 160, &|blocks| commits("fdatasync", blocks)),
        ("overwrite, fdatasync", 600, &overwrite),
    ];
    let case = |(name, blocks, of): Way<'_>| {
        on.limit(UNLIMITED)?;
        let each = on.writes_per_commit(blocks, of)?;
        on.whole(name, 1, Estimate::exact(each), &of(blocks))
    };
    ways.into_iter().map(case).collect()
}

/// A job of several writers, each of which makes `blocks` blocks of its own file durable.
fn several(writers: u32, is_in_place: bool, blocks: u64) -> Job {
    commits("fdatasync", blocks)
        .with("overwrite", u8::from(is_in_place))
        .with("numjobs", writers)
        .with("group_reporting", 1)
}

/// Several that commit at once.
fn by_several(on: &Counted<'_>, writers: u32) -> Result<Vec<Whole>> {
    // What all of them commit while their writes are counted.
    const COMMITS: u64 = 480;
    let case = |(name, is_in_place, file_bytes): (&str, bool, u64)| {
        let counted = |commits: u64| several(writers, is_in_place, commits / u64::from(writers));
        let at = |limit: u64| {
            on.limit(limit)?;
            on.writes_per_commit(COMMITS, &counted)
        };
        let [faster, slower] = LIMITS_WHILE_COUNTED.map(at);
        let each = carried_on(faster?, slower?);
        // By the clock: of a number of commits the last ones would be made by fewer writers, when others have done theirs.
        let timed = several(writers, is_in_place, file_bytes / BLOCK)
            .with("time_based", 1)
            .with("ramp_time", "500ms")
            .with("runtime", "5s");
        let name = format!("{name}, {writers} writers at once");
        on.whole(&name, writers, each, &timed)
    };
    // A file that is appended to does not come to its end at the limit; one that is overwritten is written as a whole before.
    let ways = [("append, fdatasync", false, 8 * MIB), ("overwrite, fdatasync", true, MIB)];
    ways.into_iter().map(case).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::rig::job_file;

    #[test]
    fn what_files_cost_is_no_part_of_a_commit() {
        assert_eq!(each((160, 40 + 960), (800, 40 + 4800)), 6.0);
        // Something else wrote while the few were counted.
        assert_eq!(each((160, 1000), (800, 900)), 0.1);
    }

    #[test]
    fn fewer_writes_on_slower_devices_go_on_growing_fewer() {
        let found = carried_on(5.0, 4.0);
        assert!((found.value - 3.625).abs() < 1e-9, "{found:?}");
        // A quarter is 1.26 times a third, by the logarithm.
        assert!((found.low - 2.738).abs() < 1e-3 && found.high == 4.0, "{found:?}");
        assert_eq!(carried_on(4.0, 4.0), Estimate::exact(4.0));
    }

    #[test]
    fn only_writes_that_are_shared_can_be_predicted_wrong() {
        assert_eq!(kind(1, 6.0), Kind::Identity);
        assert_eq!(kind(4, 1.0), Kind::Identity);
        assert_eq!(kind(4, 4.3), Kind::Composition);
    }

    #[test]
    fn several_writers_are_one_result_and_have_files_of_their_own() {
        let text = job_file(&[several(4, true, 80)]);
        for line in ["numjobs=4", "group_reporting=1", "overwrite=1", "size=327680"] {
            assert!(text.contains(line), "{text}");
        }
        assert!(!text.contains("filename"), "{text}");
    }
}
