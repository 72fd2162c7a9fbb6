//! What a recipe needs to know besides the surveyed machine.

use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use rubus_command::World;
use rubus_host::Files;
use rubus_host::files::directory_size::bytes_below;
use rubus_host::files::filling;
use rubus_host::files::own_files;
use rubus_host::process::starting;
use rubus_machine::not_copied::NotCopied;
use rubus_runs::recent;
use rubus_vocabulary::machine::Machine;

use crate::sight;
use crate::{Facts, Node, NodeKind, Queries, TreeSize};
use rubus_change::steps;
use rubus_change::unseen::Unseen;

/// What a recipe wants to know besides the surveyed machine. Of a captured machine only what was captured.
///
/// # Errors
/// When the kernel gives no random numbers for the identifiers of new disks.
pub fn facts(world: &World, machine: &Machine, look_at: &Queries) -> anyhow::Result<Facts> {
    let files = world.files();
    let mut facts = Facts {
        seen: sight::look(files, &look_at.paths),
        boot_id: steps::boot_id(files),
        ..Facts::default()
    };
    facts.kernels = sight::kernel_releases(files, machine, &facts.seen);
    facts.next_start = sight::next_start(files, machine, &facts.seen);
    facts.volatile_root = sight::volatile_root(files, machine);
    let World::Live(live) = world else {
        // A captured disk cannot be examined again.
        let surveyed = |path: &PathBuf| (path.clone(), crate::surveyed_disk(machine, path));
        facts.disks = look_at.disks.iter().map(surveyed).collect();
        return Ok(facts);
    };
    let identity = |path: &PathBuf| (path.clone(), steps::identity(live, path));
    facts.disks = look_at.disks.iter().map(identity).collect();
    let measured = recent::runs_of_disks();
    facts.speeds = crate::measured_speeds(machine, &measured);
    facts.together = crate::measured_together(machine, &measured);
    let size = |path: &PathBuf| {
        let used = filling::usage(path).ok()?;
        Some((path.clone(), TreeSize { bytes: used.bytes, entries: used.entries }))
    };
    facts.trees = look_at.trees.iter().filter_map(size).collect();
    let bytes = |path: &PathBuf| Some((path.clone(), bytes_below(path).ok()?));
    facts.directories = look_at.directories.iter().filter_map(bytes).collect();
    let node = |path: &PathBuf| (path.clone(), node(path));
    facts.nodes = look_at.nodes.iter().map(node).collect();
    if look_at.compression {
        // One tree is enough: it is the processor that is measured.
        let top = look_at.trees.first().map_or(Path::new("/"), PathBuf::as_path);
        let measured = rubus_processor::files::measure(top, &NotCopied::of(machine));
        facts.compression = measured.speeds;
        facts.sample_bytes_per_second = measured.disk_bytes_per_second;
    }
    if look_at.program_starts {
        facts.program_start_s = starting::short_program_s();
    }
    facts.random = random(live)?;
    Ok(facts)
}

/// What is at the end of a path.
fn node(path: &Path) -> Result<Option<Node>, Unseen> {
    let found = match own_files::metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Unseen::from(&error)),
    };
    let kind = found.file_type();
    Ok(Some(Node {
        kind: match () {
            () if kind.is_file() => NodeKind::File,
            () if kind.is_dir() => NodeKind::Directory,
            () if kind.is_block_device() => NodeKind::BlockDevice,
            () => NodeKind::Other,
        },
        user: found.uid(),
        group: found.gid(),
        size_bytes: if kind.is_file() { found.len() } else { 0 },
    }))
}

/// Random bytes for unique identifiers of new disks and filesystems.
///
/// # Errors
/// When they cannot be read: disks with equal identifiers would be taken for one another.
pub fn random(files: &dyn Files) -> anyhow::Result<[u8; 32]> {
    const SOURCE: &str = "/dev/urandom";
    let bytes = files.read_prefix(Path::new(SOURCE), 32);
    let bytes = bytes.map_err(|why| anyhow::anyhow!("cannot read {SOURCE}: {why}"))?;
    let count = bytes.len();
    let random = bytes.try_into();
    random.map_err(|_| anyhow::anyhow!("cannot read {SOURCE}: it gave {count} bytes instead of 32"))
}

#[cfg(test)]
mod tests {
    use rubus_host::simulated::fake::FakeFiles;

    use super::*;

    #[test]
    fn random_numbers_that_cannot_be_read_are_an_error_and_not_zeros() {
        let missing = random(&FakeFiles::new()).unwrap_err();
        assert!(missing.to_string().starts_with("cannot read /dev/urandom"), "{missing}");
        let short = FakeFiles::new().file("/dev/urandom", "short");
        let short = random(&short).unwrap_err();
        assert!(short.to_string().contains("5 bytes instead of 32"), "{short}");
        let whole = FakeFiles::new().file("/dev/urandom", vec![7; 32]);
        assert_eq!(random(&whole).unwrap(), [7; 32]);
    }
}
