//! What has to be read to see whether promises hold, besides what the survey reads anyway.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::plan::promise::{Look, Promise};
use crate::plan::verify::{ArrayState, Found, Writes, disk_now};
use rubus_host::{Files, ReadError};
use rubus_machine::signature::Window;
use rubus_machine::superblock;
use rubus_vocabulary::machine::Machine;

/// Where the marks of filesystems are; md's is the farthest but one from the start, btrfs's the farthest.
const HEAD_BYTES: usize = 128 << 10;
/// The kernel counts in these whatever the device's own sectors are.
const SECTOR_BYTES: u64 = 512;

/// Looks at everything that the promises are about. `pause` waits a while and says how many seconds that were;
/// it is called only where a disk has to be watched. How files are compressed is not looked at here.
pub fn look(
    files: &dyn Files,
    machine: &Machine,
    promises: &[Promise],
    pause: &mut dyn FnMut() -> f64,
) -> Found {
    let looks = || promises.iter().map(|promise| &promise.look);
    let mut found = Found::default();
    for look in looks() {
        if let Look::Knob { path, .. } = look {
            found.knobs.insert(path.clone(), knob(files, path));
        }
    }
    found.uuids = uuids(files, machine);
    if looks().any(|look| matches!(look, Look::Array { .. })) {
        found.arrays = arrays(files);
    }
    let disks: Vec<&str> = looks()
        .filter_map(|look| match look {
            Look::QuietDisk { disk, partuuid, .. } => disk_now(disk, partuuid.as_deref(), machine),
            _ => None,
        })
        .collect();
    found.writes = writes(files, &disks, pause);
    found
}

fn knob(files: &dyn Files, path: &Path) -> Result<String, String> {
    match files.text(path) {
        Ok(text) => Ok(text),
        Err(ReadError::Absent) => Ok("not there".into()),
        Err(error) => Err(error.to_string()),
    }
}

/// The UUIDs of what is mounted or swapped to, from the superblocks; none of what cannot be read.
fn uuids(files: &dyn Files, machine: &Machine) -> BTreeMap<String, String> {
    let mounted = machine.mounts.iter().filter_map(|mount| mount.device.as_ref());
    let swapped = machine.swap.areas.iter();
    let swapped =
        swapped.filter(|area| area.kind == "partition").filter_map(|area| area.device.value());
    let known =
        mounted.chain(swapped).filter_map(|device| Some((device.clone(), uuid(files, device)?)));
    known.collect()
}

fn uuid(files: &dyn Files, device: &str) -> Option<String> {
    let node = Path::new("/dev").join(device);
    let head = files.read_prefix(&node, HEAD_BYTES).ok()?;
    superblock::identify(&Window::whole(&head))?.uuid
}

/// The arrays that the kernel runs. Files: Documentation/admin-guide/md.rst of the kernel.
fn arrays(files: &dyn Files) -> Vec<ArrayState> {
    let names = files.list(Path::new("/sys/block")).unwrap_or_default();
    names
        .iter()
        .filter(|name| name.starts_with("md"))
        .filter_map(|name| array(files, name))
        .collect()
}

fn array(files: &dyn Files, name: &str) -> Option<ArrayState> {
    let directory = PathBuf::from(format!("/sys/block/{name}/md"));
    let entries = files.list(&directory).ok()?;
    let state = files.text(&directory.join("array_state")).ok()?;
    // A link `rd0` for each place of the array that a member has.
    let is_member = |entry: &&String| {
        let number = entry.strip_prefix("rd");
        number.is_some_and(|number| number.parse::<u32>().is_ok())
    };
    let members = entries.iter().filter(is_member).count();
    // Only newer kernels say it themselves; every member has it.
    let said = files.text(&directory.join("uuid")).ok();
    let said = said.filter(|uuid| !uuid.is_empty());
    let uuid = said.or_else(|| {
        let members = files.list(Path::new(&format!("/sys/block/{name}/slaves"))).ok()?;
        members.iter().find_map(|member| uuid(files, member))
    });
    Some(ArrayState {
        name: name.into(),
        uuid,
        members: u32::try_from(members).unwrap_or(u32::MAX),
        state,
    })
}

/// What is written to disks during a pause.
fn writes(
    files: &dyn Files,
    disks: &[&str],
    pause: &mut dyn FnMut() -> f64,
) -> BTreeMap<String, Result<Writes, String>> {
    if disks.is_empty() {
        return BTreeMap::new();
    }
    let read = || -> Vec<Result<u64, String>> {
        disks.iter().map(|disk| sectors_written(files, disk)).collect()
    };
    let before = read();
    let elapsed_s = pause();
    let after = read();
    let one = |(before, after): (Result<u64, String>, Result<u64, String>)| {
        Ok(Writes { bytes: after?.saturating_sub(before?) * SECTOR_BYTES, elapsed_s })
    };
    let all = disks.iter().zip(before.into_iter().zip(after).map(one));
    all.map(|(disk, writes)| ((*disk).to_string(), writes)).collect()
}

/// Sectors that were written to a disk since it appeared. Columns: Documentation/block/stat.rst of the kernel.
fn sectors_written(files: &dyn Files, disk: &str) -> Result<u64, String> {
    let path = format!("/sys/block/{disk}/stat");
    let text = files.text(Path::new(&path)).map_err(|error| error.to_string())?;
    let column = text.split_ascii_whitespace().nth(6);
    column.and_then(|column| column.parse().ok()).ok_or_else(|| format!("{path} says '{text}'"))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use crate::fixture::long_plan::big_plan;
    use rubus_fixtures::pi3_with_usb_ssd;
    use rubus_host::files::Space;
    use rubus_host::simulated::fake::FakeFiles;

    use super::*;

    /// The fake, with a disk to which something is written at each look.
    struct Busy {
        files: FakeFiles,
        looks: Cell<u64>,
    }

    impl Files for Busy {
        fn read_prefix(&self, path: &Path, limit: usize) -> Result<Vec<u8>, ReadError> {
            if path == Path::new("/sys/block/mmcblk0/stat") {
                let looks = self.looks.get();
                self.looks.set(looks + 1);
                return Ok(format!(" 1 2 3 4 5 6 {} 8 9 10 11\n", 100 + looks * 8).into_bytes());
            }
            Files::read_prefix(&self.files, path, limit)
        }
        fn list(&self, path: &Path) -> Result<Vec<String>, ReadError> {
            Files::list(&self.files, path)
        }
        fn real_path(&self, path: &Path) -> Result<PathBuf, ReadError> {
            Files::real_path(&self.files, path)
        }
        fn space(&self, path: &Path) -> Result<Space, ReadError> {
            Files::space(&self.files, path)
        }
        fn ask(&self, program: &str, arguments: &[&str]) -> Result<String, ReadError> {
            Files::ask(&self.files, program, arguments)
        }
        fn mode(&self, path: &Path) -> Result<u32, ReadError> {
            Files::mode(&self.files, path)
        }
        fn keeps_modes(&self, path: &Path) -> bool {
            Files::keeps_modes(&self.files, path)
        }
        fn link(&self, path: &Path) -> Result<PathBuf, ReadError> {
            Files::link(&self.files, path)
        }
        fn firmware_word(&self, tag: u32) -> Result<u32, ReadError> {
            Files::firmware_word(&self.files, tag)
        }
    }

    #[test]
    fn everything_that_promises_are_about_is_looked_at() {
        let mut member = vec![0; 8192];
        member[4096..4104].copy_from_slice(&[0xFC, 0x4E, 0x2B, 0xA9, 1, 0, 0, 0]);
        member[4096 + 16..4096 + 32].copy_from_slice(&[0x3a; 16]);
        let files = FakeFiles::new()
            .file("/sys/module/zswap/parameters/enabled", "Y\n")
            .file("/sys/block/md127/md/array_state", "clean\n")
            .file("/sys/block/md127/md/rd0/state", "in_sync\n")
            .file("/sys/block/md127/md/rd1/state", "in_sync\n")
            .file("/sys/block/md127/md/raid_disks", "2\n")
            .file("/sys/block/md127/slaves/sda4/size", "8\n")
            .file("/dev/sda4", member);
        let files = Busy { files, looks: Cell::new(0) };
        let plan = big_plan();
        let mut pauses = 0;
        let found = look(&files, &pi3_with_usb_ssd(), &plan.promises, &mut || {
            pauses += 1;
            5.0
        });
        assert_eq!(pauses, 1);
        let knob = Path::new("/sys/module/zswap/parameters/enabled");
        assert_eq!(found.knobs[knob], Ok("Y".into()));
        let writes = found.writes["mmcblk0"].clone().unwrap();
        assert_eq!((writes.bytes, writes.elapsed_s), (8 * 512, 5.0));
        let array = &found.arrays[0];
        assert_eq!((array.members, array.state.as_str()), (2, "clean"));
        let digits: String = array.uuid.clone().unwrap();
        assert_eq!(digits.matches("3a").count(), 16, "{digits}");
    }

    #[test]
    fn a_setting_that_the_kernel_lacks_is_not_the_wanted_one() {
        let found = look(&FakeFiles::new(), &pi3_with_usb_ssd(), &big_plan().promises, &mut || 1.0);
        let knob = Path::new("/sys/module/zswap/parameters/enabled");
        assert_eq!(found.knobs[knob], Ok("not there".into()));
        assert!(found.writes["mmcblk0"].is_err());
    }
}
