//! A disk as the survey saw it, for plans on captured machines, which cannot be examined again.

use std::path::{Path, PathBuf};

use rubus_change::plan::volume::DiskIdentity;
use rubus_change::unseen::Unseen;
use rubus_vocabulary::machine::{BlockDevice, BlockKind, Machine};
use rubus_vocabulary::units::bytes_iec;

/// The disk at a path of a surveyed machine.
///
/// # Errors
/// Why it is none that could be given a new content, as a sentence.
pub fn surveyed_disk(machine: &Machine, path: &Path) -> Result<DiskIdentity, Unseen> {
    let shown = path.display();
    let name = path.strip_prefix("/dev").ok().and_then(Path::to_str);
    let device = name.and_then(|name| machine.device(name));
    let device = device.ok_or_else(|| format!("this machine shows no disk {shown}"))?;
    if device.kind != BlockKind::Disk {
        let of = device.parent.as_ref().map(|disk| format!(" of /dev/{disk}"));
        return Err(
            format!("{shown} is a part{}; name a whole disk", of.unwrap_or_default()).into()
        );
    }
    if device.read_only.get() == Some(true) {
        return Err(format!("{shown} is read-only").into());
    }
    let size = device.size_bytes.get().filter(|size| *size > 0);
    let size_bytes = size.ok_or_else(|| format!("the size of {shown} is not known"))?;
    let text = |fact: &rubus_vocabulary::fact::Fact<String>| fact.text().map(str::to_string);
    let (vendor, model) = (text(&device.vendor), text(&device.model));
    let serial = text(&device.serial);
    Ok(DiskIdentity {
        path: PathBuf::from("/dev").join(&device.name),
        size_bytes,
        model: match (vendor, model) {
            (Some(vendor), Some(model)) if !model.starts_with(&vendor) => {
                Some(format!("{vendor} {model}"))
            }
            (_, model) => model,
        },
        confirmation: serial.clone().unwrap_or_else(|| shown.to_string()),
        serial,
        wwn: None,
        diskseq: None,
        boot_id: None,
        contents: contents(machine, device),
    })
}

fn contents(machine: &Machine, disk: &BlockDevice) -> Vec<String> {
    let parts = machine
        .block_devices
        .iter()
        .filter(|device| device.name == disk.name || device.parent.as_ref() == Some(&disk.name));
    let words = parts.filter_map(|device| {
        let content = device.content.text()?;
        let label = device.identity.label.as_ref();
        let label = label.map_or(String::new(), |label| format!(" \"{label}\""));
        let size = device.size_bytes.get().map(|size| format!(" of {}", bytes_iec(size)));
        Some(format!("{content}{label}{} ({})", size.unwrap_or_default(), device.name))
    });
    words.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rubus_fixtures as fixture;
    use rubus_vocabulary::fact::Fact;

    #[test]
    fn a_disk_is_what_the_survey_saw() {
        let machine = fixture::pi3_with_usb_ssd();
        let disk = surveyed_disk(&machine, Path::new("/dev/sda")).expect("there is one");
        assert_eq!(disk.path, Path::new("/dev/sda"));
        assert_eq!(
            disk.contents,
            ["partition table (gpt) of 29.8 GiB (sda)", "btrfs \"data\" of 29.8 GiB (sda1)"]
        );
        let mut locked = machine.clone();
        let disk = locked.block_devices.iter_mut().find(|device| device.name == "sda");
        disk.expect("there is one").read_only = Fact::known(true, "a test");
        assert_eq!(
            surveyed_disk(&locked, Path::new("/dev/sda")),
            Err(Unseen::Other("/dev/sda is read-only".into()))
        );
        let part = surveyed_disk(&machine, Path::new("/dev/sda1"));
        assert_eq!(
            part,
            Err(Unseen::Other("/dev/sda1 is a part of /dev/sda; name a whole disk".into()))
        );
        assert!(surveyed_disk(&machine, Path::new("/dev/sdz")).is_err());
    }
}
