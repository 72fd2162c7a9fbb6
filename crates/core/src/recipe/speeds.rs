//! How fast the disks of a machine are, from what was measured on it before.

use std::collections::BTreeMap;

use super::DiskSpeed;
use crate::history::{KeyFigures, RunId};
use crate::machine::{BlockDevice, Machine};
use crate::result::Run;

/// The speeds of the disks that are here now, by the kernel's name of now. A disk is known again by its serial number, or
/// where it says none by model and size, never by its name. Of several runs the first one given counts.
pub fn measured_speeds(machine: &Machine, runs: &[(RunId, Run)]) -> BTreeMap<String, DiskSpeed> {
    let mut speeds = BTreeMap::new();
    for (id, run) in runs {
        let Some(then) = disk_of(run) else {
            continue;
        };
        let mut alike = machine
            .block_devices
            .iter()
            .filter(|now| is_same(now, then));
        let (Some(now), None) = (alike.next(), alike.next()) else {
            continue;
        };
        let figures = KeyFigures::of(run);
        let day = run.started.get(..10).unwrap_or(&run.started);
        let found = DiskSpeed {
            read_bytes_per_second: figures.sequential_read_bytes_per_second,
            write_bytes_per_second: figures.sequential_write_bytes_per_second,
            random_read_iops: figures.random_read_iops,
            random_write_iops: figures.random_write_iops,
            source: format!("measured here on {day}, run {id}"),
        };
        let known = speeds
            .entry(now.name.clone())
            .or_insert_with(|| found.clone());
        known.complete(&found);
    }
    speeds
}

impl DiskSpeed {
    /// What an older run knows and a newer one does not.
    fn complete(&mut self, older: &DiskSpeed) {
        let pairs = [
            (&mut self.read_bytes_per_second, older.read_bytes_per_second),
            (
                &mut self.write_bytes_per_second,
                older.write_bytes_per_second,
            ),
            (&mut self.random_read_iops, older.random_read_iops),
            (&mut self.random_write_iops, older.random_write_iops),
        ];
        for (own, other) in pairs {
            *own = own.or(other);
        }
    }
}

/// The only disk below what a run measured, on this machine.
fn disk_of(run: &Run) -> Option<&BlockDevice> {
    let device = run.target.device.as_deref().filter(|_| run.on.is_none())?;
    match run.machine.disks_below(device)[..] {
        [only] => Some(only),
        _ => None,
    }
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
    use crate::fact::Fact;
    use crate::fixture;

    #[test]
    fn a_disk_is_known_again_under_another_name() {
        let run = fixture::slow_sd_card_run();
        let measured = disk_of(&run)
            .expect("the example is on a disk")
            .name
            .clone();
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
