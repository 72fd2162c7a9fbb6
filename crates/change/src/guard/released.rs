//! A device whose claim was given up for programs that claim it themselves, and go by its name.
//!
//! Between the claim and the program a disk may be pulled out, and another one may get its name. So the kernel's running number of
//! the disk is compared just before each program and just after it.

use std::path::{Path, PathBuf};

use rubus_host::block::blockdev::ClaimedDevice;

/// A device that was claimed a moment ago. Kernels before 5.15 do not number their disks; there nothing is noticed.
#[derive(Debug)]
pub struct Released {
    node: PathBuf,
    sequence: Option<u64>,
}

impl Released {
    /// Gives up the claim of what is at `node`.
    pub fn of(device: ClaimedDevice, node: &Path) -> Self {
        Released { node: node.to_path_buf(), sequence: device.geometry().disk_sequence }
    }

    /// The name by which the programs go.
    pub fn node(&self) -> &Path {
        &self.node
    }

    fn check(&self) -> Result<(), String> {
        same_disk(self.sequence, sequence_of(&self.node), &self.node)
    }
}

/// Runs one program that writes to the devices: only while their names mean the disks that were claimed, and they are looked at
/// afterwards too. `refused` makes an error of the sentence that says what became of one.
///
/// # Errors
/// As the program, and that another disk has the name.
pub fn while_the_same<T, E>(
    devices: &[Released],
    refused: impl Fn(String) -> E,
    act: impl FnOnce() -> Result<T, E>,
) -> Result<T, E> {
    let check = || devices.iter().try_for_each(Released::check);
    check().map_err(&refused)?;
    let done = act()?;
    check().map_err(&refused)?;
    Ok(done)
}

/// Whether the names still mean the disks that were claimed.
pub fn are_the_same(devices: &[Released]) -> bool {
    devices.iter().all(|device| device.check().is_ok())
}

/// The running number of the disk that a node is on now. Each disk that appears gets a new one.
fn sequence_of(node: &Path) -> Result<Option<u64>, String> {
    let device = super::read_only(node).map_err(|refusal| refusal.to_string())?;
    Ok(device.geometry().disk_sequence)
}

/// Whether a name still means the disk that was claimed.
fn same_disk(
    claimed: Option<u64>,
    now: Result<Option<u64>, String>,
    node: &Path,
) -> Result<(), String> {
    if now? == claimed {
        Ok(())
    } else {
        Err(format!(
            "{} became another disk meanwhile; look at the cable, and at what is on the disk that has this name now",
            node.display()
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The programs are run by name, and only on the disk that was claimed.
    #[test]
    fn no_program_is_run_on_a_name_that_is_another_disk_or_none() {
        let gone = Released { node: "/nonexistent/sda1".into(), sequence: Some(7) };
        let mut is_run = false;
        let done = while_the_same(
            &[gone],
            |why| why,
            || {
                is_run = true;
                Ok(())
            },
        );
        assert!(done.is_err() && !is_run, "{done:?}");
    }

    #[test]
    fn a_name_that_went_to_another_disk_is_not_formatted() {
        let node = Path::new("/dev/sda1");
        assert_eq!(same_disk(Some(7), Ok(Some(7)), node), Ok(()));
        assert_eq!(same_disk(None, Ok(None), node), Ok(()), "an old kernel");
        let why = same_disk(Some(7), Ok(Some(9)), node).unwrap_err();
        assert!(why.starts_with("/dev/sda1 became another disk"), "{why}");
        assert!(same_disk(Some(7), Ok(None), node).is_err());
        assert_eq!(same_disk(Some(7), Err("gone".into()), node), Err("gone".into()));
    }
}
