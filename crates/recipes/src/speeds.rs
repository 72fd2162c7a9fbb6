//! How fast the disks of a machine are, from what was measured on it before.

use std::collections::BTreeMap;
use std::path::Path;

use super::{DiskSpeed, TogetherSpeed};
use rubus_runs::history::{KeyFigures, RunId};
use rubus_stats::estimate::Estimate;
use rubus_vocabulary::finding::Finding;
use rubus_vocabulary::machine::{BlockDevice, Machine, Mount};
use rubus_vocabulary::result::Run;

/// The speeds of the disks that are here now, by the kernel's current name. A disk is known again by its serial number, or
/// where it says none by model and size, never by its name. Of several runs the first one given counts.
pub fn measured_speeds(machine: &Machine, runs: &[(RunId, Run)]) -> BTreeMap<String, DiskSpeed> {
    let mut speeds = BTreeMap::new();
    for (name, id, run) in runs_of_disks(machine, runs) {
        let figures = KeyFigures::of(run);
        let day = run.started.get(..10).unwrap_or(&run.started);
        let found = DiskSpeed {
            read_bytes_per_second: figures.sequential_read_bytes_per_second,
            write_bytes_per_second: figures.sequential_write_bytes_per_second,
            random_read_iops: figures.random_read_iops,
            random_write_iops: figures.random_write_iops,
            source: format!("measured here on {day}, run {id}"),
        };
        let known = speeds.entry(name).or_insert_with(|| found.clone());
        known.complete(&found);
    }
    speeds
}

/// The runs on disks that are here now and can be told from others, each with the kernel's current name.
pub fn runs_of_disks<'r>(
    machine: &Machine,
    runs: &'r [(RunId, Run)],
) -> Vec<(String, RunId, &'r Run)> {
    let name = |run: &Run| name_now(machine, disk_of(run)?);
    runs.iter().filter_map(|(id, run)| Some((name(run)?, *id, run))).collect()
}

/// What was measured of several disks at once, by the kernel's current names. Runs whose disks are not all here, or cannot
/// be told from others, say nothing.
pub fn measured_together(machine: &Machine, runs: &[(RunId, Run)]) -> Vec<TogetherSpeed> {
    let mut found = Vec::new();
    for (id, run) in runs.iter().filter(|(_, run)| run.on.is_none()) {
        let day = run.started.get(..10).unwrap_or(&run.started);
        for finding in &run.findings {
            let Finding::SharedPipe(pipe) = finding else {
                continue;
            };
            let is_read = match pipe.job.as_str() {
                "sequential-read" => true,
                "sequential-write" => false,
                _ => continue,
            };
            let names = pipe.targets.iter();
            let disks = names.map(|name| name_now(machine, disk_at(&run.machine, name)?));
            let Some(disks) = disks.collect() else {
                continue;
            };
            // On very slow disks not one large request may have come to its end.
            let mut all = pipe.alone.iter().chain(&pipe.together);
            if !all.all(|rate| rate.value > 0.0) {
                continue;
            }
            let values = |estimates: &[Estimate]| estimates.iter().map(|e| e.value).collect();
            found.push(TogetherSpeed {
                disks,
                is_read,
                alone_bytes_per_second: values(&pipe.alone),
                together_bytes_per_second: values(&pipe.together),
                source: format!("measured at once on {day}, run {id}"),
            });
        }
    }
    found
}

/// The disk of a target that was named by its node or by a directory.
fn disk_at<'m>(machine: &'m Machine, target: &str) -> Option<&'m BlockDevice> {
    let mounts = machine.mounts.iter();
    let mut mounts: Vec<&Mount> =
        mounts.filter(|mount| Path::new(target).starts_with(&mount.point)).collect();
    mounts.sort_by_key(|mount| mount.point.len());
    let device = match target.strip_prefix("/dev/") {
        Some(name) => name,
        None => mounts.last()?.device.as_deref()?,
    };
    machine.measured_disk(device)
}

/// What a disk is called now.
fn name_now(machine: &Machine, then: &BlockDevice) -> Option<String> {
    let mut alike = machine.block_devices.iter().filter(|now| is_same(now, then));
    match (alike.next(), alike.next()) {
        (Some(now), None) => Some(now.name.clone()),
        _ => None,
    }
}

impl DiskSpeed {
    /// What an older run knows and a newer one does not.
    fn complete(&mut self, older: &DiskSpeed) {
        let pairs = [
            (&mut self.read_bytes_per_second, older.read_bytes_per_second),
            (&mut self.write_bytes_per_second, older.write_bytes_per_second),
            (&mut self.random_read_iops, older.random_read_iops),
            (&mut self.random_write_iops, older.random_write_iops),
        ];
        for (own, other) in pairs {
            *own = own.or(other);
        }
    }
}

/// The disk that a run measured on this machine; none where it measured an array, a loop device or an encrypted volume.
fn disk_of(run: &Run) -> Option<&BlockDevice> {
    let device = run.target.device.as_deref().filter(|_| run.on.is_none())?;
    run.machine.measured_disk(device)
}

fn is_same(now: &BlockDevice, then: &BlockDevice) -> bool {
    let is_disk = now.parent.is_none() && now.below.is_empty();
    let alike =
        now.model.text() == then.model.text() && now.size_bytes.get() == then.size_bytes.get();
    let serials = (now.serial.text(), then.serial.text());
    is_disk
        && match serials {
            (Some(now), Some(then)) => alike && now == then,
            (None, None) => alike && now.model.text().is_some(),
            _ => false,
        }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rubus_fixtures as fixture;
    use rubus_vocabulary::fact::Fact;

    #[test]
    fn disks_measured_at_once_are_known_again() {
        let mut run = fixture::slow_sd_card_run();
        let card = disk_of(&run).expect("the example is on a disk").clone();
        let pipe = |target: &str| {
            Finding::SharedPipe(rubus_vocabulary::finding::SharedPipe {
                targets: vec![format!("/dev/{}", card.name), target.into()],
                job: "sequential-read".into(),
                alone: vec![Estimate::exact(10e6); 2],
                together: vec![Estimate::exact(6e6); 2],
                share: Estimate::exact(0.6),
                is_shared: Some(true),
                suspect: None,
            })
        };
        run.findings = vec![pipe("/"), pipe("/dev/gone")];
        let mut machine = run.machine.clone();
        for device in &mut machine.block_devices {
            if device.name == card.name {
                device.name = "sdx".into();
            }
        }
        let found = measured_together(&machine, &[(RunId(7), run)]);
        assert_eq!(found.len(), 1, "a disk that is gone says nothing");
        assert_eq!(found[0].disks[0], "sdx");
        assert!(found[0].is_read);
        assert_eq!(found[0].together_bytes_per_second, [6e6, 6e6]);
        assert!(found[0].source.ends_with("run 7"), "{}", found[0].source);
    }

    #[test]
    fn a_disk_is_known_again_under_another_name() {
        let run = fixture::slow_sd_card_run();
        let measured = disk_of(&run).expect("the example is on a disk").name.clone();
        let mut machine = run.machine.clone();
        for device in &mut machine.block_devices {
            if device.name == measured {
                device.name = "sdx".into();
            }
        }
        let speeds = measured_speeds(&machine, &[(RunId(7), run.clone())]);
        let speed = &speeds["sdx"];
        assert!(speed.read_bytes_per_second.is_some());
        assert!(speed.source.ends_with("run 7"), "{}", speed.source);
        // Another serial number is another disk.
        for device in &mut machine.block_devices {
            device.serial = Fact::known("other".into(), "test");
        }
        assert!(measured_speeds(&machine, &[(RunId(7), run)]).is_empty());
    }
}
