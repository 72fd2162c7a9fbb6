//! Cases that need more of the kernel than loop devices: software RAID, device mapper, its own
//! reading of partition tables, FAT, network block devices, compressed RAM disks.

use std::fs;
use std::path::Path;
use std::time::Duration;

use super::fixtures::{Fixtures, MIB, fail, quietly, settle};
use super::{Case, Power, Step, Stop};

pub const CASES: &[Case] = &[
    ("a member of an array", Power::Md, md_member),
    ("a member of a mounted array", Power::Md, md_mounted),
    ("the disk of a partition in an array", Power::Md, md_partition),
    ("an array that nobody uses", Power::Md, md_free),
    ("a mounted array", Power::Md, md_itself),
    ("a member of an array that is stopped", Power::Md, md_stopped),
    ("a device under a mapping", Power::Dm, dm_member),
    ("the disk of a partition under a mounted mapping", Power::Dm, dm_mounted),
    ("a mapping that nobody uses", Power::Dm, dm_free),
    ("a mapping beside a mounted one on the same disk", Power::Dm, dm_beside),
    ("a disk whose partitions the kernel found itself", Power::Scan, scanned),
    ("a mounted partition that the kernel found itself", Power::Scan, scanned_mounted),
    ("a mounted FAT", Power::Vfat, vfat),
    ("a connected network device", Power::Nbd, nbd),
    ("a mounted network device", Power::Nbd, nbd_mounted),
    ("a network device without a connection", Power::Nbd, nbd_idle),
    ("a compressed RAM disk", Power::Zram, zram),
];

fn has_driver(name: &str, module: &str) -> bool {
    let known = |word: &str| {
        let devices = fs::read_to_string("/proc/devices").unwrap_or_default();
        devices.lines().any(|line| line.split_whitespace().nth(1) == Some(word))
    };
    known(name) || (quietly("modprobe", &[module]).is_ok() && known(name))
}

/// A mirror of two devices; its node.
fn mirror(fixtures: &mut Fixtures, first: &str, second: &str) -> Step<String> {
    if !has_driver("md", "md_mod")
        || quietly("modprobe", &["raid1"]).is_err() && !personality("raid1")
    {
        return Err(Stop::Skip("this kernel has no software RAID".into()));
    }
    let free = (100..200).find(|number| !Path::new(&format!("/sys/block/md{number}")).exists());
    let node = format!("/dev/md{}", free.unwrap_or(199));
    let arguments = [
        "--create",
        &node,
        "--run",
        "--level=1",
        "--raid-devices=2",
        "--metadata=1.2",
        "--assume-clean",
        "--bitmap=none",
        first,
        second,
    ];
    fixtures.run("mdadm", &arguments)?;
    let own = node.clone();
    fixtures.on_close(&format!("array {node}"), move || {
        settle();
        quietly("mdadm", &["--stop", &own])
    });
    settle();
    Ok(node)
}

/// Mounts an array read-only and waits until its driver has marked it clean: from then on it is not written to.
fn mount_quiet_array(fixtures: &mut Fixtures, array: &str) -> Step<()> {
    fixtures.mount_with(array, "point", &["-o", "ro"])?;
    let name = array.trim_start_matches("/dev/");
    let state = format!("/sys/block/{name}/md/array_state");
    Fixtures::wait_for(|| fs::read_to_string(&state).is_ok_and(|state| state.trim() == "clean"));
    Ok(())
}

fn personality(name: &str) -> bool {
    fs::read_to_string("/proc/mdstat").is_ok_and(|text| text.contains(name))
}

fn md_member(fixtures: &mut Fixtures) -> Step<String> {
    let (first, second) = (fixtures.blank(16)?, fixtures.blank(16)?);
    let array = mirror(fixtures, &first, &second)?;
    let reason =
        format!("{first} is a part of the RAID array {}.", array.trim_start_matches("/dev/"));
    let consent = first.clone();
    fixtures.refused(&first, Some(&consent), &[&reason])
}

fn md_mounted(fixtures: &mut Fixtures) -> Step<String> {
    let (first, second) = (fixtures.blank(32)?, fixtures.blank(32)?);
    let array = mirror(fixtures, &first, &second)?;
    fixtures.ext4(&array, "array")?;
    mount_quiet_array(fixtures, &array)?;
    let above = format!("{array}, which stands on {second}, is mounted at");
    fixtures.refused(&second, None, &["is a part of the RAID array", &above])
}

fn md_partition(fixtures: &mut Fixtures) -> Step<String> {
    let (first, second) = (fixtures.blank(32)?, fixtures.blank(32)?);
    let nodes = fixtures.partition(&first, "label: gpt\nsize=16MiB\n", 1)?;
    mirror(fixtures, &nodes[0], &second)?;
    let reason = format!("{}, a partition of {first}, is a part of the RAID array", nodes[0]);
    fixtures.refused(&first, None, &[&reason])
}

fn md_free(fixtures: &mut Fixtures) -> Step<String> {
    let (first, second) = (fixtures.blank(16)?, fixtures.blank(16)?);
    let array = mirror(fixtures, &first, &second)?;
    fixtures.allowed(&array, None)?;
    Ok("allowed when blank".into())
}

fn md_itself(fixtures: &mut Fixtures) -> Step<String> {
    let (first, second) = (fixtures.blank(32)?, fixtures.blank(32)?);
    let array = mirror(fixtures, &first, &second)?;
    fixtures.ext4(&array, "array")?;
    mount_quiet_array(fixtures, &array)?;
    let reason = format!("{array} is mounted at");
    fixtures.refused(&array, None, &[&reason])
}

fn md_stopped(fixtures: &mut Fixtures) -> Step<String> {
    let (first, second) = (fixtures.blank(16)?, fixtures.blank(16)?);
    let array = mirror(fixtures, &first, &second)?;
    settle();
    fixtures.run("mdadm", &["--stop", &array])?;
    settle();
    let asked = fixtures.asks(&first, None, &first, &["an md 1.2 member"]);
    // What is taken down on closing has to be there again.
    let _ = quietly("mdadm", &["--assemble", &array, &first, &second]);
    asked
}

/// A linear mapping of a part of a device, offset and length in sectors; its node below /dev/mapper.
fn linear(
    fixtures: &mut Fixtures,
    suffix: &str,
    device: &str,
    offset: u64,
    length: u64,
) -> Step<String> {
    if !has_driver("device-mapper", "dm_mod") {
        return Err(Stop::Skip("this kernel has no device mapper".into()));
    }
    let name = format!("rubus-guard-{}-{suffix}", std::process::id());
    let table = format!("0 {length} linear {device} {offset}");
    fixtures.run("dmsetup", &["create", &name, "--table", &table])?;
    fixtures.run("dmsetup", &["mknodes"])?;
    let own = name.clone();
    fixtures.on_close(&format!("mapping {name}"), move || {
        settle();
        quietly("dmsetup", &["remove", "--retry", &own])
    });
    settle();
    Ok(format!("/dev/mapper/{name}"))
}

fn dm_member(fixtures: &mut Fixtures) -> Step<String> {
    let device = fixtures.blank(16)?;
    linear(fixtures, "a", &device, 0, 16 * MIB / 512)?;
    let reason = format!("{device} is a part of the device-mapper volume rubus-guard-");
    fixtures.refused(&device, None, &[&reason])
}

fn dm_mounted(fixtures: &mut Fixtures) -> Step<String> {
    let device = fixtures.blank(64)?;
    let nodes = fixtures.partition(&device, "label: gpt\nsize=48MiB\n", 1)?;
    let mapping = linear(fixtures, "b", &nodes[0], 0, 32 * MIB / 512)?;
    fixtures.ext4(&mapping, "mapped")?;
    fixtures.mount(&mapping, "point")?;
    let first =
        format!("{}, a partition of {device}, is a part of the device-mapper volume", nodes[0]);
    let second = format!("which stands on {device}, is mounted at");
    fixtures.refused(&device, None, &[&first, &second])
}

fn dm_free(fixtures: &mut Fixtures) -> Step<String> {
    let device = fixtures.blank(16)?;
    let mapping = linear(fixtures, "c", &device, 0, 16 * MIB / 512)?;
    let claimed = fixtures.allowed(&mapping, None)?;
    if !claimed.path().starts_with("/dev/") {
        return Err(Stop::Fail(format!("{}", claimed.path().display())));
    }
    Ok("allowed when blank".into())
}

fn dm_beside(fixtures: &mut Fixtures) -> Step<String> {
    let device = fixtures.blank(64)?;
    let first = linear(fixtures, "d", &device, 0, 32 * MIB / 512)?;
    let second = linear(fixtures, "e", &device, 32 * MIB / 512, 32 * MIB / 512)?;
    fixtures.ext4(&first, "one")?;
    fixtures.mount(&first, "point")?;
    fixtures.allowed(&second, None)?;
    let consent = first.clone();
    fixtures.refused(&first, Some(&consent), &["is mounted at"])
}

/// A loop device whose partitions come from the kernel's own reading of the table.
fn scanned_disk(fixtures: &mut Fixtures) -> Step<String> {
    let image = fixtures.image("table.img", 32 * MIB)?;
    let script = "label: dos\nsize=10MiB, type=c\nsize=16MiB\n";
    fixtures.table(&image.to_string_lossy(), script)?;
    let device = fixtures.attach(&image, &[])?;
    settle();
    for _ in 0..50 {
        if Path::new(&format!("{device}p2")).exists() {
            return Ok(device);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Err(Stop::Skip("this kernel does not read partition tables".into()))
}

fn scanned(fixtures: &mut Fixtures) -> Step<String> {
    let device = scanned_disk(fixtures)?;
    fixtures.ext4(&format!("{device}p2"), "second")?;
    let shown = format!("{}p2: an ext4 filesystem \"second\"", device.trim_start_matches("/dev/"));
    fixtures.asks(&device, None, &device, &["an MBR partition table", &shown])
}

fn scanned_mounted(fixtures: &mut Fixtures) -> Step<String> {
    let device = scanned_disk(fixtures)?;
    let partition = format!("{device}p2");
    fixtures.ext4(&partition, "second")?;
    fixtures.mount(&partition, "point")?;
    let reason = format!("{partition}, a partition of {device}, is mounted at");
    fixtures.refused(&device, None, &[&reason])
}

fn vfat(fixtures: &mut Fixtures) -> Step<String> {
    let known = || fs::read_to_string("/proc/filesystems").is_ok_and(|text| text.contains("vfat"));
    if !known() && (quietly("modprobe", &["vfat"]).is_err() || !known()) {
        return Err(Stop::Skip("this kernel has no FAT".into()));
    }
    let device = fixtures.blank(64)?;
    let nodes = fixtures.partition(&device, "label: dos\nsize=40MiB, type=c\n", 1)?;
    fixtures.run("mkfs.vfat", &["-n", "BOOTFS", &nodes[0]])?;
    fixtures.mount(&nodes[0], "firmware")?;
    let reason = format!("{}, a partition of {device}, is mounted at", nodes[0]);
    fixtures.refused(&device, None, &[&reason])?;
    fixtures.refused(&nodes[0], None, &["(vfat)"])
}

fn has_nbd() -> bool {
    Path::new("/sys/block/nbd0").exists()
        || (quietly("modprobe", &["nbd"]).is_ok() && Path::new("/sys/block/nbd0").exists())
}

/// A network device that serves a file of the fixtures.
fn connected(fixtures: &mut Fixtures, image: &Path) -> Step<String> {
    if !has_nbd() {
        return Err(Stop::Skip("this kernel has no network block devices".into()));
    }
    let free = (0..16).find(|number| {
        let directory = format!("/sys/block/nbd{number}");
        Path::new(&directory).exists() && !Path::new(&format!("{directory}/pid")).exists()
    });
    let number = free.ok_or_else(|| Stop::Skip("no free network block device".into()))?;
    let node = format!("/dev/nbd{number}");
    match fixtures.run("qemu-nbd", &["-f", "raw", "-c", &node, &image.to_string_lossy()]) {
        Ok(_) => {
            let own = node.clone();
            fixtures.on_close(&format!("connection {node}"), move || {
                quietly("qemu-nbd", &["-d", &own])
            });
        }
        Err(Stop::Skip(_)) => connect_with_nbd_client(fixtures, image, &node)?,
        Err(stop) => return Err(stop),
    }
    let is_there = || {
        let size = fs::read_to_string(format!("/sys/block/nbd{number}/size")).unwrap_or_default();
        size.trim().parse::<u64>().is_ok_and(|sectors| sectors > 0)
    };
    Fixtures::wait_for(is_there);
    if !is_there() {
        return Err(Stop::Fail(format!("{node} was not connected")));
    }
    settle();
    Ok(node)
}

/// The same with the reference server and client, over a socket of the fixtures.
fn connect_with_nbd_client(fixtures: &mut Fixtures, image: &Path, node: &str) -> Step<()> {
    let socket = fixtures.path("socket");
    let settings = fixtures.path("nbd.conf");
    let text = format!(
        "[generic]\n user = root\n group = root\n unixsock = {}\n[disk]\n exportname = {}\n",
        socket.display(),
        image.display()
    );
    fs::write(&settings, text).map_err(fail)?;
    fixtures.start("nbd-server", &["-d", "-C", &settings.to_string_lossy()], "")?;
    Fixtures::wait_for(|| socket.exists());
    fixtures.run("nbd-client", &["-unix", &socket.to_string_lossy(), "-N", "disk", node])?;
    let own = node.to_string();
    fixtures.on_close(&format!("connection {node}"), move || quietly("nbd-client", &["-d", &own]));
    Ok(())
}

fn nbd(fixtures: &mut Fixtures) -> Step<String> {
    let image = fixtures.image("export.img", 32 * MIB)?;
    let device = connected(fixtures, &image)?;
    fixtures.asks(&device, None, &device, &["who else uses it cannot be seen"])?;
    fixtures.ext4(&device, "far")?;
    let consent = device.clone();
    fixtures.asks(&device, None, &device, &["an ext4 filesystem \"far\""])?;
    fixtures.allowed(&device, Some(&consent))?;
    Ok("asks, even when blank".into())
}

fn nbd_mounted(fixtures: &mut Fixtures) -> Step<String> {
    let image = fixtures.image("export.img", 32 * MIB)?;
    let device = connected(fixtures, &image)?;
    fixtures.ext4(&device, "far")?;
    fixtures.mount(&device, "point")?;
    let consent = device.clone();
    let reason = format!("{device} is mounted at");
    fixtures.refused(&device, Some(&consent), &[&reason])
}

fn nbd_idle(fixtures: &mut Fixtures) -> Step<String> {
    if !has_nbd() {
        return Err(Stop::Skip("this kernel has no network block devices".into()));
    }
    let idle = (0..16).rev().find(|number| {
        let directory = format!("/sys/block/nbd{number}");
        Path::new(&directory).exists() && !Path::new(&format!("{directory}/pid")).exists()
    });
    let number = idle.ok_or_else(|| Stop::Skip("no free network block device".into()))?;
    fixtures.refused(format!("/dev/nbd{number}"), None, &["no medium or no device"])
}

fn zram(fixtures: &mut Fixtures) -> Step<String> {
    let add = Path::new("/sys/class/zram-control/hot_add");
    if !add.exists() && (quietly("modprobe", &["zram"]).is_err() || !add.exists()) {
        return Err(Stop::Skip("this kernel has no compressed RAM disks".into()));
    }
    let number = fs::read_to_string(add).map_err(fail)?;
    let number = number.trim().to_string();
    let own = number.clone();
    fixtures.on_close(&format!("zram{number}"), move || {
        let _ = fs::write(format!("/sys/block/zram{own}/reset"), "1");
        fs::write("/sys/class/zram-control/hot_remove", &own).map_err(|error| error.to_string())
    });
    settle();
    let size = format!("/sys/block/zram{number}/disksize");
    fs::write(size, "16M").map_err(fail)?;
    fixtures.refused(format!("/dev/zram{number}"), None, &["is memory"])
}
