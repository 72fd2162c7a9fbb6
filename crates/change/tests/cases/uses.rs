//! Devices in use: mounts, swap, loop devices, programs.

use std::fs;
use std::path::Path;

use super::fixtures::{Fixtures, fail, quietly};
use super::{Case, Power, Step, Stop};

pub const CASES: &[Case] = &[
    ("a mounted device", Power::Loop, mounted),
    ("a mounted device, confirmed all the same", Power::Loop, mounted_confirmed),
    ("a device mounted read-only", Power::Loop, mounted_read_only),
    ("the disk under a mounted partition", Power::Loop, disk_under_partition),
    ("the disk under a mounted partition, through a link", Power::Loop, disk_under_linked),
    ("a mounted partition", Power::Loop, mounted_partition),
    ("a blank partition beside a mounted one", Power::Loop, sibling),
    ("a partition of a disk mounted as a whole", Power::Loop, partition_of_mounted),
    ("a device mounted in another mount namespace", Power::Loop, other_namespace),
    ("active swap", Power::Loop, swap),
    ("active swap on a partition", Power::Loop, swap_partition),
    ("the disk under an active swap partition", Power::Loop, disk_under_swap),
    ("a swap file on the device", Power::Loop, swap_file),
    ("a loop device over a swap file", Power::Loop, backing_is_swap),
    ("a device under a loop device", Power::Loop, under_loop),
    ("the disk of a partition under a loop device", Power::Loop, disk_under_loop),
    ("a loop device over a mounted device", Power::Loop, loop_over_mounted),
    ("a loop device over a file of a mounted device", Power::Loop, loop_over_file),
    ("the device of a loop device's file, unmounted lazily", Power::Loop, lazily_unmounted),
    ("two loop devices over one file", Power::Loop, twins),
    ("the file under a mounted loop device", Power::Loop, file_of_mounted),
    ("the file under an idle loop device", Power::Loop, file_of_idle),
    ("an active swap file", Power::Loop, file_is_swap),
    ("a loop device over a file that another process writes to", Power::Loop, backing_written),
    ("a loop device over a hard link of an active swap file", Power::Loop, hard_link_of_swap),
    ("a file that another process writes to", Power::Loop, file_written),
    ("a file that is served read-only", Power::Loop, file_served),
    ("a file that another process has locked", Power::Loop, file_locked),
    (
        "a loop device over a file that another process writes to through a mapping alone",
        Power::Loop,
        backing_mapped,
    ),
    ("a read-only loop device", Power::Loop, read_only),
    ("a device that this process has claimed", Power::Loop, claimed_twice),
    ("a device that another process has claimed", Power::Loop, claimed_by_other),
    ("a device that another process writes to", Power::Loop, open_for_writing),
    (
        "a device that another process writes to through a mapping alone",
        Power::Loop,
        mapped_for_writing,
    ),
    ("the disk of a partition that another process writes to", Power::Loop, partition_written),
    ("a device that another process only reads", Power::Loop, open_for_reading),
    ("a device that is served to others", Power::Loop, served),
    ("a btrfs of two devices, by the device it is mounted from", Power::Btrfs, btrfs_first),
    ("a btrfs of two devices, by the other device", Power::Btrfs, btrfs_second),
    ("a btrfs of two devices, not mounted", Power::Btrfs, btrfs_idle),
];

const TWO_PARTITIONS: &str = "label: gpt\nsize=16MiB\nsize=10MiB\n";

fn mounted(fixtures: &mut Fixtures) -> Step<String> {
    let device = fixtures.blank(32)?;
    fixtures.ext4(&device, "data")?;
    let point = fixtures.mount(&device, "my data")?;
    let reason = format!("{device} is mounted at {} (ext4).", point.display());
    fixtures.refused(&device, None, &[&reason])
}

fn mounted_confirmed(fixtures: &mut Fixtures) -> Step<String> {
    let device = fixtures.blank(32)?;
    fixtures.ext4(&device, "data")?;
    fixtures.mount(&device, "point")?;
    let consent = device.clone();
    fixtures.refused(&device, Some(&consent), &["is mounted at"])
}

fn mounted_read_only(fixtures: &mut Fixtures) -> Step<String> {
    let device = fixtures.blank(32)?;
    fixtures.ext4(&device, "data")?;
    fixtures.mount_with(&device, "point", &["-o", "ro"])?;
    fixtures.refused(&device, None, &["is mounted at"])
}

fn disk_under_partition(fixtures: &mut Fixtures) -> Step<String> {
    let device = fixtures.blank(32)?;
    let nodes = fixtures.partition(&device, TWO_PARTITIONS, 2)?;
    fixtures.ext4(&nodes[0], "data")?;
    fixtures.mount(&nodes[0], "point")?;
    let reason = format!("{}, a partition of {device}, is mounted at", nodes[0]);
    fixtures.refused(&device, None, &[&reason])
}

fn disk_under_linked(fixtures: &mut Fixtures) -> Step<String> {
    let device = fixtures.blank(32)?;
    let nodes = fixtures.partition(&device, TWO_PARTITIONS, 2)?;
    fixtures.ext4(&nodes[0], "data")?;
    let partition = fixtures.link(&nodes[0], "by-id/disk-part1")?;
    fixtures.mount(&partition.to_string_lossy(), "point")?;
    let link = fixtures.link(&device, "by-id/disk")?;
    fixtures.refused(link, None, &["a partition of"])
}

fn mounted_partition(fixtures: &mut Fixtures) -> Step<String> {
    let device = fixtures.blank(32)?;
    let nodes = fixtures.partition(&device, TWO_PARTITIONS, 2)?;
    fixtures.ext4(&nodes[0], "data")?;
    fixtures.mount(&nodes[0], "point")?;
    let reason = format!("{} is mounted at", nodes[0]);
    fixtures.refused(&nodes[0], None, &[&reason])
}

fn sibling(fixtures: &mut Fixtures) -> Step<String> {
    let device = fixtures.blank(32)?;
    let nodes = fixtures.partition(&device, TWO_PARTITIONS, 2)?;
    fixtures.ext4(&nodes[0], "data")?;
    fixtures.mount(&nodes[0], "point")?;
    fixtures.allowed(&nodes[1], None)?;
    Ok("allowed".into())
}

fn partition_of_mounted(fixtures: &mut Fixtures) -> Step<String> {
    let device = fixtures.blank(32)?;
    fixtures.ext4(&device, "whole")?;
    // The first KiB of an ext4 is free: room for a table, and for partitions in the middle of it.
    let nodes = fixtures.partition(&device, "label: dos\nsize=10MiB\n", 1)?;
    fixtures.mount_with(&device, "point", &["-t", "ext4"])?;
    let reason = format!("{device}, the disk that {} is a partition of, is mounted at", nodes[0]);
    fixtures.refused(&nodes[0], None, &[&reason])
}

fn other_namespace(fixtures: &mut Fixtures) -> Step<String> {
    let device = fixtures.blank(32)?;
    fixtures.ext4(&device, "hidden")?;
    let point = fixtures.path("hidden");
    fs::create_dir(&point).map_err(fail)?;
    let script = format!("mount {device} {} && echo ready && read line", point.display());
    fixtures.start("unshare", &["--mount", "sh", "-c", &script], "ready\n")?;
    fixtures.refused(&device, None, &["is mounted in another mount namespace"])
}

fn swap(fixtures: &mut Fixtures) -> Step<String> {
    let device = fixtures.blank(16)?;
    fixtures.swap_on(&device)?;
    let reason = format!("{device} is active swap.");
    fixtures.refused(&device, None, &[&reason])
}

fn swap_partition(fixtures: &mut Fixtures) -> Step<String> {
    let device = fixtures.blank(32)?;
    let nodes = fixtures.partition(&device, TWO_PARTITIONS, 2)?;
    fixtures.swap_on(&nodes[1])?;
    let reason = format!("{} is active swap.", nodes[1]);
    fixtures.refused(&nodes[1], None, &[&reason])
}

fn disk_under_swap(fixtures: &mut Fixtures) -> Step<String> {
    let device = fixtures.blank(32)?;
    let nodes = fixtures.partition(&device, TWO_PARTITIONS, 2)?;
    fixtures.swap_on(&nodes[1])?;
    let reason = format!("{}, a partition of {device}, is active swap.", nodes[1]);
    let consent = device.clone();
    fixtures.refused(&device, Some(&consent), &[&reason])
}

/// A file of real blocks on a mounted filesystem; swap takes no holes.
fn filled_file(point: &Path, name: &str, mib: usize) -> Step<String> {
    let path = point.join(name);
    fs::write(&path, vec![0_u8; mib << 20]).map_err(fail)?;
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).map_err(fail)?;
    Ok(path.to_string_lossy().into_owned())
}

fn swap_file(fixtures: &mut Fixtures) -> Step<String> {
    let device = fixtures.blank(64)?;
    fixtures.ext4(&device, "data")?;
    let point = fixtures.mount(&device, "point")?;
    let file = filled_file(&point, "swap file", 8)?;
    fixtures.swap_on(&file)?;
    let reason = format!("The swap file {file} lies on {device}.");
    fixtures.refused(&device, None, &["is mounted at", &reason])
}

fn backing_is_swap(fixtures: &mut Fixtures) -> Step<String> {
    let device = fixtures.blank(64)?;
    fixtures.ext4(&device, "data")?;
    let point = fixtures.mount(&device, "point")?;
    let file = filled_file(&point, "swap", 8)?;
    fixtures.swap_on(&file)?;
    let over = match fixtures.attach(Path::new(&file), &[]) {
        Ok(over) => over,
        // The kernel itself may lock an active swap file.
        Err(_) => return Ok("the kernel refuses to make such a loop device".into()),
    };
    fixtures.refused(&over, None, &["is active swap"])
}

fn under_loop(fixtures: &mut Fixtures) -> Step<String> {
    let device = fixtures.blank(8)?;
    let over = fixtures.attach(Path::new(&device), &[])?;
    let name = over.trim_start_matches("/dev/").to_string();
    let reason = format!("The loop device {name} ({device}) stands on {device}.");
    fixtures.refused(&device, None, &[&reason])
}

fn disk_under_loop(fixtures: &mut Fixtures) -> Step<String> {
    let device = fixtures.blank(32)?;
    let nodes = fixtures.partition(&device, TWO_PARTITIONS, 2)?;
    fixtures.attach(Path::new(&nodes[1]), &[])?;
    let reason = format!("stands on {}, a partition of {device}.", nodes[1]);
    fixtures.refused(&device, None, &[&reason])
}

fn loop_over_mounted(fixtures: &mut Fixtures) -> Step<String> {
    let device = fixtures.blank(32)?;
    fixtures.ext4(&device, "below")?;
    fixtures.mount(&device, "point")?;
    let over = fixtures.attach(Path::new(&device), &[])?;
    let reason = format!("{device}, on which {over} stands, is mounted at");
    fixtures.refused(&over, None, &[&reason])
}

fn loop_over_file(fixtures: &mut Fixtures) -> Step<String> {
    let device = fixtures.blank(64)?;
    fixtures.ext4(&device, "below")?;
    // Reading through the upper device must not touch the file's times on the lower one.
    let point = fixtures.mount_with(&device, "point", &["-o", "noatime"])?;
    let file = filled_file(&point, "disk.img", 8)?;
    let over = fixtures.attach(Path::new(&file), &[])?;
    let reason = format!("({file}) stands on {device}.");
    fixtures.refused(&device, None, &["is mounted at", &reason])?;
    fixtures.allowed(&over, None)?;
    Ok("the upper one is allowed, the lower one refused".into())
}

fn lazily_unmounted(fixtures: &mut Fixtures) -> Step<String> {
    let device = fixtures.blank(64)?;
    fixtures.ext4(&device, "below")?;
    // Reading through the upper device must not touch the file's times on the lower one.
    let point = fixtures.mount_with(&device, "point", &["-o", "noatime"])?;
    let file = filled_file(&point, "disk.img", 8)?;
    fixtures.attach(Path::new(&file), &[])?;
    fixtures.run("umount", &["-l", &point.to_string_lossy()])?;
    fixtures.refused(&device, None, &["The loop device", "The kernel says"])
}

fn twins(fixtures: &mut Fixtures) -> Step<String> {
    let device = fixtures.blank(32)?;
    fixtures.ext4(&device, "twin")?;
    let image = fixtures.path("disk0.img");
    let other = fixtures.attach(&image, &[])?;
    let same_file = "stand on the same file";
    fixtures.refused(&other, None, &[same_file])?;
    fixtures.mount(&device, "point")?;
    fixtures.refused(&other, None, &[same_file, "is mounted at"])
}

/// The guard must refuse the file, for this reason.
fn file_refused(path: &Path, reason: &str) -> Step<String> {
    match rubus_change::guard::file_unused(&rubus_host::Live, path) {
        Ok(()) => Err(Stop::Fail("it was allowed".into())),
        Err(refusal) if refusal.to_string().contains(reason) => Ok(format!("refused: {reason}")),
        Err(refusal) => Err(Stop::Fail(format!("'{reason}' is no reason in\n{refusal}"))),
    }
}

fn file_of_mounted(fixtures: &mut Fixtures) -> Step<String> {
    let device = fixtures.blank(32)?;
    fixtures.ext4(&device, "data")?;
    let point = fixtures.mount(&device, "my data")?;
    let image = fixtures.path("disk0.img");
    let other_name = fixtures.path("hard-link.img");
    fs::hard_link(&image, &other_name).map_err(fail)?;
    let reason = format!("{device}, which is mounted at {}", point.display());
    file_refused(&image, &reason)?;
    file_refused(&other_name, &reason)
}

fn file_of_idle(fixtures: &mut Fixtures) -> Step<String> {
    let device = fixtures.blank(8)?;
    let image = fixtures.path("disk0.img");
    file_refused(&image, &format!("the loop device {device}"))?;
    fixtures.run("losetup", &["-d", &device])?;
    Fixtures::wait_for(|| rubus_change::guard::file_unused(&rubus_host::Live, &image).is_ok());
    match rubus_change::guard::file_unused(&rubus_host::Live, &image) {
        Ok(()) => Ok("refused until it is detached".into()),
        Err(refusal) => Err(Stop::Fail(refusal.to_string())),
    }
}

fn file_is_swap(fixtures: &mut Fixtures) -> Step<String> {
    let device = fixtures.blank(64)?;
    fixtures.ext4(&device, "data")?;
    let point = fixtures.mount(&device, "point")?;
    let file = filled_file(&point, "swap", 8)?;
    fixtures.swap_on(&file)?;
    file_refused(Path::new(&file), "It is active swap")
}

fn hard_link_of_swap(fixtures: &mut Fixtures) -> Step<String> {
    let device = fixtures.blank(64)?;
    fixtures.ext4(&device, "data")?;
    let point = fixtures.mount(&device, "point")?;
    let file = filled_file(&point, "swap", 8)?;
    let other_name = point.join("other-name");
    fs::hard_link(&file, &other_name).map_err(fail)?;
    fixtures.swap_on(&file)?;
    file_refused(&other_name, "It is active swap")?;
    let over = fixtures.attach(&other_name, &[])?;
    fixtures.refused(&over, None, &["is active swap"])
}

/// Each of its names, while the process runs.
fn file_in_use(fixtures: &mut Fixtures, script: &str, reason: &str) -> Step<String> {
    let image = fixtures.image("used.img", 8 << 20)?;
    let other_name = fixtures.path("used-too.img");
    fs::hard_link(&image, &other_name).map_err(fail)?;
    let script = script.replace("IMAGE", &image.display().to_string());
    fixtures.start("bash", &["-c", &script], "ready\n")?;
    file_refused(&image, reason)?;
    file_refused(&other_name, reason)
}

fn file_written(fixtures: &mut Fixtures) -> Step<String> {
    file_in_use(fixtures, "exec 3<>IMAGE; echo ready; read line", "which may write to it")
}

fn file_served(fixtures: &mut Fixtures) -> Step<String> {
    let named = "exec 3<IMAGE; echo -n nbd-serves >/proc/$$/comm; echo ready; read line";
    file_in_use(fixtures, named, "which serves it to others")
}

fn file_locked(fixtures: &mut Fixtures) -> Step<String> {
    let image = fixtures.image("locked.img", 8 << 20)?;
    let script = format!("exec 3<{}; flock -s 3; echo ready; read line", image.display());
    fixtures.start("bash", &["-c", &script], "ready\n")?;
    if rubus_host::files::own_files::is_locked(&image) {
        Ok("another program's lock is seen".into())
    } else {
        Err(Stop::Fail("the lock was not seen".into()))
    }
}

fn backing_written(fixtures: &mut Fixtures) -> Step<String> {
    let device = fixtures.blank(8)?;
    let image = fixtures.path("disk0.img").display().to_string();
    let script = format!("exec 3<>{image}; echo ready; read line");
    fixtures.start("sh", &["-c", &script], "ready\n")?;
    fixtures.refused(&device, None, &["The backing file of"])
}

fn read_only(fixtures: &mut Fixtures) -> Step<String> {
    let image = fixtures.image("protected.img", 8 << 20)?;
    let device = fixtures.attach(&image, &["-r"])?;
    let reason = format!("{device} is write-protected.");
    fixtures.refused(&device, None, &[&reason])
}

fn claimed_twice(fixtures: &mut Fixtures) -> Step<String> {
    let device = fixtures.blank(32)?;
    fixtures.ext4(&device, "claimed")?;
    let consent = device.clone();
    let claimed = fixtures.allowed(&device, Some(&consent))?;
    let own = format!("in process {}", std::process::id());
    fixtures.refused(&device, Some(&consent), &[&own])?;
    // As long as the claim lives, the kernel keeps all other programs away as well.
    if fixtures.mount(&device, "point").is_ok() {
        return Err(Stop::Fail("a claimed device could be mounted".into()));
    }
    drop(claimed);
    fixtures.mount(&device, "point")?;
    Ok("refused until the claim is dropped".into())
}

fn claimed_by_other(fixtures: &mut Fixtures) -> Step<String> {
    let device = fixtures.blank(32)?;
    let nodes = fixtures.partition(&device, TWO_PARTITIONS, 2)?;
    let holder = std::env::current_exe().map_err(fail)?;
    // This very program, in another role, claims the partition.
    let holder = holder.to_string_lossy().into_owned();
    let script = format!("exec '{holder}' {HOLD} {}", nodes[0]);
    fixtures.start("sh", &["-c", &script], "claimed\n")?;
    fixtures.refused(&device, None, &["is open in process"])
}

/// With this word and a path as arguments the program claims a device and waits for the end of its
/// input: the other process of [`claimed_by_other`].
pub const HOLD: &str = "--hold-for-a-case";

/// Plays the other process, when the arguments ask for it. Returns false otherwise.
pub fn hold_if_asked() -> bool {
    let arguments: Vec<String> = std::env::args().collect();
    let Some(at) = arguments.iter().position(|word| word == HOLD) else {
        return false;
    };
    let Some(path) = arguments.get(at + 1) else {
        return false;
    };
    match rubus_change::guard::claim(&rubus_host::Live, Path::new(path), None) {
        Ok(_claimed) => {
            println!("claimed");
            let mut line = String::new();
            let _ = std::io::stdin().read_line(&mut line);
        }
        Err(refusal) => eprintln!("{refusal}"),
    }
    true
}

fn open_for_writing(fixtures: &mut Fixtures) -> Step<String> {
    let device = fixtures.blank(8)?;
    let script = format!("exec 3<>{device}; echo ready; read line");
    fixtures.start("sh", &["-c", &script], "ready\n")?;
    fixtures.refused(&device, None, &["(sh), which may write to it."])
}

fn mapped_for_writing(fixtures: &mut Fixtures) -> Step<String> {
    let device = fixtures.blank(8)?;
    map_and_close(fixtures, &device)?;
    fixtures.refused(&device, None, &["(perl), which may write to it."])
}

fn backing_mapped(fixtures: &mut Fixtures) -> Step<String> {
    let device = fixtures.blank(8)?;
    let image = fixtures.path("disk0.img").display().to_string();
    map_and_close(fixtures, &image)?;
    fixtures.refused(&device, None, &["The backing file of"])
}

/// A process that has mapped a device or file for writing and closed it: the mapping stays, and nothing in /proc/PID/fd tells of it.
fn map_and_close(fixtures: &mut Fixtures, path: &str) -> Step<()> {
    // By its number in the kernel's table: Perl has no function for it.
    let mmap = match std::env::consts::ARCH {
        "x86_64" => 9,
        "aarch64" => 222,
        other => return Err(Stop::Skip(format!("mmap has no number here for {other}"))),
    };
    let script = format!(
        "$| = 1; open(my $disk, '+<', '{path}') or die; \
         my $at = syscall({mmap}, 0, 4096, 3, 1, fileno($disk), 0); die if $at == -1; \
         close($disk); print \"ready\\n\"; <STDIN>"
    );
    fixtures.start("perl", &["-e", &script], "ready\n").map(drop)
}

fn partition_written(fixtures: &mut Fixtures) -> Step<String> {
    let device = fixtures.blank(32)?;
    let nodes = fixtures.partition(&device, TWO_PARTITIONS, 2)?;
    let script = format!("exec 3<>{}; echo ready; read line", nodes[1]);
    fixtures.start("sh", &["-c", &script], "ready\n")?;
    let reason = format!("{}, a partition of {device}, is open in process", nodes[1]);
    fixtures.refused(&device, None, &[&reason])
}

fn open_for_reading(fixtures: &mut Fixtures) -> Step<String> {
    let device = fixtures.blank(8)?;
    let script = format!("exec 3<{device}; echo ready; read line");
    fixtures.start("sh", &["-c", &script], "ready\n")?;
    fixtures.allowed(&device, None)?;
    Ok("allowed".into())
}

fn served(fixtures: &mut Fixtures) -> Step<String> {
    let device = fixtures.blank(8)?;
    let socket = fixtures.path("socket").to_string_lossy().into_owned();
    let arguments = ["-r", "-t", "-f", "raw", "-k", &socket, &device];
    match fixtures.start("qemu-nbd", &arguments, "") {
        Ok(_) => Fixtures::wait_for(|| Path::new(&socket).exists()),
        // A shell under the name of such a server does as well: it has the device open.
        Err(Stop::Skip(_)) => {
            let server = fixtures.path("nbdkit");
            fs::copy("/bin/sh", &server).map_err(fail)?;
            let script = format!("exec 3<{device}; echo ready; read line");
            fixtures.start(&server.to_string_lossy(), &["-c", &script], "ready\n")?;
        }
        Err(stop) => return Err(stop),
    }
    let answer = fixtures.refused(&device, None, &["which serves it to others"]);
    let _ = fs::remove_file(&socket);
    answer
}

/// A btrfs over two loop devices.
fn btrfs(fixtures: &mut Fixtures) -> Step<[String; 2]> {
    let known = fs::read_to_string("/proc/filesystems").unwrap_or_default();
    if !known.contains("btrfs") && quietly("modprobe", &["btrfs"]).is_err() {
        return Err(Stop::Skip("this kernel has no btrfs".into()));
    }
    let devices = [fixtures.blank(128)?, fixtures.blank(128)?];
    fixtures.run("mkfs.btrfs", &["-q", "-L", "pool", &devices[0], &devices[1]])?;
    let _ = quietly("btrfs", &["device", "scan", &devices[0], &devices[1]]);
    for device in devices.clone() {
        // The kernel remembers the members of a volume by their names, also when they are gone.
        let forget = device.clone();
        fixtures.on_close(&format!("btrfs knowledge of {device}"), move || {
            let _ = quietly("btrfs", &["device", "scan", "--forget", &forget]);
            Ok(())
        });
    }
    Ok(devices)
}

fn btrfs_first(fixtures: &mut Fixtures) -> Step<String> {
    let devices = btrfs(fixtures)?;
    let point = fixtures.mount(&devices[0], "pool")?;
    let reason = format!("which is mounted at {}.", point.display());
    fixtures.refused(&devices[0], None, &[&reason])
}

fn btrfs_second(fixtures: &mut Fixtures) -> Step<String> {
    let devices = btrfs(fixtures)?;
    fixtures.mount(&devices[0], "pool")?;
    let reason = format!("{} belongs to the btrfs filesystem pool", devices[1]);
    fixtures.refused(&devices[1], None, &[&reason])
}

fn btrfs_idle(fixtures: &mut Fixtures) -> Step<String> {
    let devices = btrfs(fixtures)?;
    fixtures.asks(&devices[1], None, &devices[1], &["a btrfs filesystem \"pool\""])
}
