//! Devices that the kernel itself exports to other machines. It opens them without a claim, and no process has them open.
//!
//! What it says of its exports is in configfs: first as a text that a view of this machine adds, then as a kernel with the targets
//! says it.

use std::fs;
use std::path::{Path, PathBuf};

use rubus_change::guard;
use rubus_host::simulated::fake::FakeFiles;
use rubus_host::{Files, Live, ReadError, Space};

use super::fixtures::{Fixtures, fail, quietly, refused};
use super::{Case, Power, Step, Stop};

pub const CASES: &[Case] = &[
    ("a device that the kernel is said to export", Power::Loop, told),
    ("the disk of a partition that the kernel is said to export", Power::Loop, told_of_partition),
    ("a loop device whose file the kernel is said to export", Power::Loop, told_of_backing),
    ("a device that an NVMe target exports", Power::Targets, nvme),
    ("a device that a SCSI target exports", Power::Targets, scsi),
    ("a device that a USB gadget exports", Power::Targets, gadget),
];

const CONFIG: &str = "/sys/kernel/config";

/// The live machine, with a configfs of its own.
struct Exporting(FakeFiles);

impl Exporting {
    /// A USB gadget that exports this.
    fn gadget(path: &str) -> Self {
        let unit = format!("{CONFIG}/usb_gadget/g1/functions/mass_storage.0/lun.0/file");
        Exporting(FakeFiles::new().file(unit, format!("{path}\n")))
    }

    fn of(&self, path: &Path) -> &dyn Files {
        if path.starts_with(CONFIG) { &self.0 } else { &Live }
    }
}

impl Files for Exporting {
    fn read_prefix(&self, path: &Path, limit: usize) -> Result<Vec<u8>, ReadError> {
        self.of(path).read_prefix(path, limit)
    }

    fn list(&self, path: &Path) -> Result<Vec<String>, ReadError> {
        self.of(path).list(path)
    }

    fn real_path(&self, path: &Path) -> Result<PathBuf, ReadError> {
        self.of(path).real_path(path)
    }

    fn space(&self, path: &Path) -> Result<Space, ReadError> {
        Live.space(path)
    }

    fn ask(&self, program: &str, arguments: &[&str]) -> Result<String, ReadError> {
        Live.ask(program, arguments)
    }

    fn mode(&self, path: &Path) -> Result<u32, ReadError> {
        self.of(path).mode(path)
    }

    fn keeps_modes(&self, path: &Path) -> bool {
        self.of(path).keeps_modes(path)
    }

    fn link(&self, path: &Path) -> Result<PathBuf, ReadError> {
        self.of(path).link(path)
    }

    fn firmware_word(&self, tag: u32) -> Result<u32, ReadError> {
        Live.firmware_word(tag)
    }
}

fn told(fixtures: &mut Fixtures) -> Step<String> {
    let device = fixtures.blank(8)?;
    let link = fixtures.link(&device, "by-id/stick")?;
    fixtures.allowed(&device, None)?;
    // It may have been set up by any name; the guard follows those below /dev.
    for name in [device.clone(), format!("/dev/../{device}")] {
        let consent = device.clone();
        let view = Exporting::gadget(&name);
        let answer = fixtures.ask_through(&view, &link, Some(&consent))?;
        let reason = format!("{device} is exported by the USB gadget g1 (lun.0)");
        refused(answer, &[&reason])?;
    }
    Ok("refused, whatever is confirmed".into())
}

fn told_of_partition(fixtures: &mut Fixtures) -> Step<String> {
    let device = fixtures.blank(32)?;
    let nodes = fixtures.partition(&device, "label: gpt\nsize=16MiB\nsize=10MiB\n", 2)?;
    let answer = fixtures.ask_through(&Exporting::gadget(&nodes[1]), &device, None)?;
    let reason = format!("{}, a partition of {device}, is exported by", nodes[1]);
    let answer = refused(answer, &[&reason])?;
    fixtures
        .ask_through(&Exporting::gadget(&nodes[1]), &nodes[0], None)?
        .map_err(|refusal| Stop::Fail(refusal.to_string()))?;
    Ok(answer)
}

fn told_of_backing(fixtures: &mut Fixtures) -> Step<String> {
    let device = fixtures.blank(8)?;
    let image = fixtures.path("disk0.img");
    let hard_link = fixtures.path("hard-link.img");
    fs::hard_link(&image, &hard_link).map_err(fail)?;
    let link = fixtures.link(&image, "link.img")?;
    let mut said = String::new();
    for name in [&image, &hard_link, &link] {
        let view = Exporting::gadget(&name.display().to_string());
        let answer = fixtures.ask_through(&view, &device, None)?;
        said = refused(answer, &["is exported by the USB gadget g1 (lun.0)"])?;
    }
    // The file itself, which a server or a measurement would write to.
    fixtures.run("losetup", &["-d", &device])?;
    Fixtures::wait_for(|| guard::file_unused(&Live, &image).is_ok());
    let view = Exporting::gadget(&hard_link.display().to_string());
    match guard::file_unused(&view, &image) {
        Err(refusal) if refusal.to_string().contains("It is exported by") => Ok(said),
        other => Err(Stop::Fail(format!("{other:?}"))),
    }
}

/// The directory of a kind of exporter, once its modules are there.
fn configured(modules: &[&str], directory: &str) -> Step<PathBuf> {
    for module in modules {
        // What is built in has no module.
        let _ = quietly("modprobe", &[module]);
    }
    if !fs::exists(CONFIG).unwrap_or_default() {
        return Err(Stop::Skip("this kernel has no configfs".into()));
    }
    let is_empty = fs::read_dir(CONFIG).map_err(fail)?.next().is_none();
    if is_empty {
        let _ = quietly("mount", &["-t", "configfs", "none", CONFIG]);
    }
    let path = Path::new(CONFIG).join(directory);
    if path.exists() {
        Ok(path)
    } else {
        Err(Stop::Skip(format!("this kernel has no {}", modules.join(", no "))))
    }
}

/// Makes a directory of configfs, which is an object of the kernel.
fn make(fixtures: &mut Fixtures, path: &Path) -> Step<()> {
    fs::create_dir(path).map_err(fail)?;
    let own = path.to_path_buf();
    fixtures.on_close(&path.display().to_string(), move || {
        fs::remove_dir(&own).map_err(|error| error.to_string())
    });
    Ok(())
}

fn put(path: &Path, value: &str) -> Step<()> {
    let why = |error| Stop::Fail(format!("{} = {value}: {error}", path.display()));
    fs::write(path, value).map_err(why)
}

/// Sets an attribute that has to be reset before its object can go.
fn put_until_closed(fixtures: &mut Fixtures, path: &Path, value: &str, last: &str) -> Step<()> {
    put(path, value)?;
    let (own, last) = (path.to_path_buf(), last.to_string());
    fixtures.on_close(&path.display().to_string(), move || {
        fs::write(&own, &last).map_err(|error| error.to_string())
    });
    Ok(())
}

fn name() -> String {
    format!("rubus-guard-{}", std::process::id())
}

/// Refused while it is exported, and allowed before.
fn exported(
    fixtures: &mut Fixtures,
    by: &str,
    set_up: impl FnOnce(&mut Fixtures, &str) -> Step<()>,
) -> Step<String> {
    let device = fixtures.blank(8)?;
    fixtures.allowed(&device, None)?;
    set_up(fixtures, &device)?;
    let consent = device.clone();
    let reason = format!("{device} is exported by {by}");
    fixtures.refused(&device, Some(&consent), &[&reason])
}

fn nvme(fixtures: &mut Fixtures) -> Step<String> {
    let all = configured(&["nvmet"], "nvmet/subsystems")?;
    let by = format!("the NVMe target {} (namespace 1)", name());
    exported(fixtures, &by, |fixtures, device| {
        let subsystem = all.join(name());
        make(fixtures, &subsystem)?;
        let namespace = subsystem.join("namespaces/1");
        make(fixtures, &namespace)?;
        put(&namespace.join("device_path"), device)?;
        put_until_closed(fixtures, &namespace.join("enable"), "1", "0")
    })
}

/// Through the file interface, which takes no claim.
fn scsi(fixtures: &mut Fixtures) -> Step<String> {
    let modules = ["target_core_mod", "target_core_file"];
    let all = configured(&modules, "target/core")?;
    let by = format!("the SCSI target fileio_7/{}", name());
    exported(fixtures, &by, |fixtures, device| {
        let adapter = all.join("fileio_7");
        make(fixtures, &adapter)?;
        let unit = adapter.join(name());
        make(fixtures, &unit)?;
        let size = 8 << 20;
        let control = format!("fd_dev_name={device},fd_dev_size={size}");
        put(&unit.join("control"), &control)?;
        put(&unit.join("enable"), "1")?;
        // As targetcli does.
        put(&unit.join("udev_path"), device)
    })
}

fn gadget(fixtures: &mut Fixtures) -> Step<String> {
    let modules = ["libcomposite", "usb_f_mass_storage"];
    let all = configured(&modules, "usb_gadget")?;
    let by = format!("the USB gadget {} (lun.0)", name());
    exported(fixtures, &by, |fixtures, device| {
        let gadget = all.join(name());
        make(fixtures, &gadget)?;
        let function = gadget.join("functions/mass_storage.0");
        make(fixtures, &function)?;
        put_until_closed(fixtures, &function.join("lun.0/file"), device, "\n")
    })
}
