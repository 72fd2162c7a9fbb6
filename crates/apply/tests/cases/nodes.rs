//! Paths that are no device, links, and what the guard does with them.

use std::fs;
use std::path::Path;

use rubus_apply::guard;

use super::yard::{MIB, Yard, differences, fail};
use super::{Case, Power, Step, Stop};

pub const CASES: &[Case] = &[
    ("a missing node under /dev", Power::Loop, missing_under_dev),
    (
        "a missing node in a directory",
        Power::Loop,
        missing_elsewhere,
    ),
    ("a dangling symbolic link", Power::Loop, dangling),
    ("a directory", Power::Loop, directory),
    ("a regular file", Power::Loop, regular),
    ("a character device", Power::Loop, character),
    ("a named pipe", Power::Loop, pipe),
    ("a loop device without a file", Power::Loop, unbound),
    (
        "a chain of links to a blank device",
        Power::Loop,
        link_chain,
    ),
    (
        "a chain of links to a mounted device",
        Power::Loop,
        link_chain_mounted,
    ),
    ("another node of a mounted device", Power::Loop, second_node),
    ("the device of the running system", Power::Loop, root_device),
    ("reading only", Power::Loop, reading),
    (
        "a write that the guard must not do",
        Power::Loop,
        write_is_seen,
    ),
];

fn missing_under_dev(yard: &mut Yard) -> Step<String> {
    let path = "/dev/rubus-guard-no-such-disk";
    let answer = yard.refused(path, Some(path), &["does not exist"])?;
    if Path::new(path).symlink_metadata().is_ok() {
        return Err(Stop::Fail(format!("{path} was created")));
    }
    Ok(answer)
}

fn missing_elsewhere(yard: &mut Yard) -> Step<String> {
    let path = yard.path("nowhere/disk");
    yard.refused(path, None, &["does not exist"])?;
    let path = yard.path("disk");
    yard.refused(path, None, &["does not exist"])
}

fn dangling(yard: &mut Yard) -> Step<String> {
    let link = yard.link("/dev/rubus-guard-no-such-disk", "link")?;
    let answer = yard.refused(
        link,
        None,
        &["a symbolic link to /dev/rubus-guard-no-such-disk"],
    )?;
    if Path::new("/dev/rubus-guard-no-such-disk").exists() {
        return Err(Stop::Fail("the link's target was created".into()));
    }
    Ok(answer)
}

fn directory(yard: &mut Yard) -> Step<String> {
    yard.refused("/dev", None, &["is a directory"])
}

fn regular(yard: &mut Yard) -> Step<String> {
    let image = yard.image("plain.img", 1 << 20)?;
    yard.refused(image, None, &["is a regular file"])
}

fn character(yard: &mut Yard) -> Step<String> {
    yard.refused("/dev/null", None, &["is a character device"])
}

fn pipe(yard: &mut Yard) -> Step<String> {
    let path = yard.path("pipe");
    yard.run("mkfifo", &[&path.to_string_lossy()])?;
    yard.refused(path, None, &["is a named pipe"])
}

fn unbound(yard: &mut Yard) -> Step<String> {
    // A number that nobody is using: the node of a device that was there a moment ago.
    let device = yard.blank(1)?;
    let number = fs::read_to_string(format!(
        "/sys/block/{}/dev",
        device.trim_start_matches("/dev/")
    ));
    let number = number.map_err(fail)?;
    let own = yard.path("node");
    let (major, minor) = number.trim().split_once(':').unwrap_or(("7", "0"));
    yard.run("losetup", &["-d", &device])?;
    yard.run("mknod", &[&own.to_string_lossy(), "b", major, minor])?;
    let answer = match yard.ask(&device, None)? {
        Ok(_) => return Err(Stop::Fail("it was allowed".into())),
        Err(refusal) => refusal.to_string(),
    };
    // Somebody else may have bound the number by now; then it is theirs and in use.
    if answer.contains("no medium") || answer.contains("does not exist") {
        return Ok("refused: no medium".into());
    }
    Err(Stop::Skip(format!(
        "the device was taken meanwhile: {answer}"
    )))
}

fn link_chain(yard: &mut Yard) -> Step<String> {
    let device = yard.blank(4)?;
    yard.link(&device, "dev/sdq")?;
    yard.link("../../dev/sdq", "by-id/all/usb-Brand_Stick-0:0")?;
    let link = yard.link("by-id/all/usb-Brand_Stick-0:0", "disk")?;
    let claimed = yard.allowed(link, None)?;
    if claimed.path() != Path::new(&device) {
        return Err(Stop::Fail(format!("claimed {}", claimed.path().display())));
    }
    Ok("allowed, as the device itself".into())
}

fn link_chain_mounted(yard: &mut Yard) -> Step<String> {
    let device = yard.blank(32)?;
    yard.ext4(&device, "linked")?;
    yard.mount(&device, "mounted")?;
    yard.link(&device, "dev/sdq")?;
    let link = yard.link("dev/sdq", "disk")?;
    yard.refused(link, Some(&device), &[&format!("{device} is mounted at")])
}

fn second_node(yard: &mut Yard) -> Step<String> {
    let device = yard.blank(32)?;
    yard.ext4(&device, "twice")?;
    yard.mount(&device, "mounted")?;
    let name = device.trim_start_matches("/dev/");
    let number = fs::read_to_string(format!("/sys/block/{name}/dev")).map_err(fail)?;
    let node = yard.path("node");
    let (major, minor) = number.trim().split_once(':').unwrap_or(("7", "0"));
    yard.run("mknod", &[&node.to_string_lossy(), "b", major, minor])?;
    match yard.ask(&node, None)? {
        Err(refusal) if refusal.to_string().contains("is mounted at") => {
            Ok("refused: mounted under its other name".into())
        }
        Err(refusal) => Err(Stop::Fail(refusal.to_string())),
        Ok(_) => Err(Stop::Fail("it was allowed".into())),
    }
}

fn root_device(yard: &mut Yard) -> Step<String> {
    let source = yard.run("findmnt", &["-n", "-o", "SOURCE", "/"])?;
    // "/dev/sda2[/@]" on btrfs.
    let device = source.split('[').next().unwrap_or_default().to_string();
    if !device.starts_with("/dev/") || !Path::new(&device).exists() {
        return Err(Stop::Skip(format!("/ is on {source}, which is no device")));
    }
    match yard.ask(&device, Some(&device))? {
        Err(refusal) if refusal.to_string().contains("This system runs from it.") => {
            Ok("refused: this system runs from it".into())
        }
        Err(refusal) => Err(Stop::Fail(refusal.to_string())),
        Ok(_) => Err(Stop::Fail("it was allowed".into())),
    }
}

fn reading(yard: &mut Yard) -> Step<String> {
    let device = yard.blank(32)?;
    yard.ext4(&device, "reader")?;
    yard.mount(&device, "mounted")?;
    let link = yard.link(&device, "link")?;
    let reader = guard::read_only(&link)
        .map_err(|refusal| Stop::Fail(format!("a mounted device must be readable: {refusal}")))?;
    let bytes = reader.read(1024 + 56, 2).map_err(Stop::Fail)?;
    if bytes != [0x53, 0xEF] || reader.size_bytes() != 32 << 20 {
        return Err(Stop::Fail(format!("read {bytes:?}")));
    }
    for wrong in [
        yard.path("nothing"),
        yard.path("mounted"),
        yard.path("disk0.img"),
    ] {
        if guard::read_only(&wrong).is_ok() {
            return Err(Stop::Fail(format!("{} was opened", wrong.display())));
        }
    }
    if yard.path("nothing").exists() {
        return Err(Stop::Fail("a file was created".into()));
    }
    Ok("allowed for a device, refused for all else".into())
}

/// What all other cases rely on: a byte that changes is seen, wherever it is, and zeros written into a hole are no change.
fn write_is_seen(yard: &mut Yard) -> Step<String> {
    let image = yard.image("written.img", 8 * MIB + 3)?;
    for (place, byte, is_change) in [
        (5 * MIB, 0, false),
        (5 * MIB + 1, 1, true),
        (5 * MIB + 1, 2, true),
        (5 * MIB + 1, 0, true),
        (8 * MIB + 2, 1, true),
    ] {
        let before = yard.state()?;
        yard.write(&image, place, &[byte])?;
        let differences = differences(&before, &yard.state()?);
        if differences.is_empty() == is_change {
            let what = format!("{byte} at {place} is seen as {differences:?}");
            return Err(Stop::Fail(what));
        }
    }
    Ok("seen".into())
}
