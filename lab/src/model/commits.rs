//! Filesystems' commits on a device that lets so many writes per second through.

use std::path::Path;

use anyhow::Result;
use rubus_core::estimate::Estimate;
use rubus_model::Kind as Pipe;
use tempfile::TempDir;

use super::Kind;
use super::case::{Case, Unit};
use super::parts::{even, fixed};
use super::rig::{Job, Rig};
use crate::devices::needs::Need;
use crate::devices::{LimitForAll, Limits, LoopDevice, mark, programs};

pub(super) const ABOUT: &str = "Filesystems on a device of 300 writes per second. Alone: how many writes a commit is, counted where nothing is limited. \
     Predicted: commits per second at the limit.";
pub(super) const NEEDS: &[Need] = &[
    Need::Root,
    Need::Loop,
    Need::ThrottleForAll,
    Need::Program("mkfs.ext4", "e2fsprogs"),
    Need::Program("mkfs.btrfs", "btrfs-progs"),
];

const MIB: u64 = 1 << 20;
const BLOCK: u64 = 4 << 10;
const FILESYSTEM_IOPS: u64 = 300;

pub(super) fn cases(rig: &Rig) -> Result<Vec<Case>> {
    let mut cases = Vec::new();
    for filesystem in ["ext4", "btrfs"] {
        cases.extend(on_a_filesystem(rig, filesystem)?);
    }
    Ok(cases)
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

fn on_a_filesystem(rig: &Rig, filesystem: &str) -> Result<Vec<Case>> {
    let device = LoopDevice::new(384 * MIB)?;
    let node = device.path().display().to_string();
    match filesystem {
        "ext4" => programs::run("mkfs.ext4", &["-q", "-F", &node])?,
        _ => programs::run("mkfs.btrfs", &["-q", "-f", "-m", "single", &node])?,
    };
    // The throttle counts only where there is some limit.
    let nothing = Limits {
        write_iops: Some(1_000_000),
        ..Limits::default()
    };
    let limit = LimitForAll::new(device.number()?, nothing)?;
    let mounted = Mounted::new(device.path(), "noatime")?;
    let once = |how: &str, commits: u64| {
        Job::once("job", "write", BLOCK, commits * BLOCK)
            .with(how, 1)
            .with("fallocate", "none")
    };
    let overwrite = |commits: u64| once("fdatasync", commits).with("overwrite", 1);
    // So many commits last some seconds at the limit, so that what the throttle lets through at first does not count.
    type Way<'a> = (&'a str, u64, &'a dyn Fn(u64) -> Job);
    let ways: [Way<'_>; 3] = [
        ("append, fsync", 160, &|commits| once("fsync", commits)),
        ("append, fdatasync", 160, &|commits| {
            once("fdatasync", commits)
        }),
        ("overwrite, fdatasync", 600, &overwrite),
    ];
    let mut cases = Vec::new();
    for (name, commits, of) in ways {
        let run = || rig.jobs(None, Some(mounted.path()), &[of(commits)]);
        limit.change(nothing)?;
        // What making the file costs is told apart by making it several times as long.
        let writes = |commits: u64| {
            let before = limit.writes()?;
            rig.jobs(None, Some(mounted.path()), &[of(commits)])?;
            Ok::<_, anyhow::Error>(limit.writes()?.saturating_sub(before) as f64)
        };
        let many = 5 * commits;
        let each = (writes(many)? - writes(commits)?) / (many - commits) as f64;
        limit.change(Limits {
            write_iops: Some(FILESYSTEM_IOPS),
            ..Limits::default()
        })?;
        let found = rig.undisturbed(run)?;
        let commit_s = Estimate::exact(each.max(0.1) / FILESYSTEM_IOPS as f64);
        let path = [fixed(Pipe::Filesystem, "device", 1, commit_s)];
        cases.push(Case::new(
            Kind::Commits,
            format!("{filesystem}: {name} ({each:.1} writes per commit)"),
            "commits",
            Unit::Iops,
            (&path, even(BLOCK, 1)),
            &found[0],
        ));
    }
    limit.change(nothing)?;
    Ok(cases)
}
