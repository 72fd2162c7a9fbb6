//! Paths that are no device, links, and what the guard does with them.

use std::fs;
use std::path::Path;

use rubus_change::guard;

use super::fixtures::{Fixtures, MIB, differences, fail};
use super::{Case, Power, Step, Stop};

pub const CASES: &[Case] = &[
    ("a missing node under /dev", Power::Loop, missing_under_dev),
    ("a missing node in a directory", Power::Loop, missing_elsewhere),
    ("a dangling symbolic link", Power::Loop, dangling),
    ("a directory", Power::Loop, directory),
    ("a regular file", Power::Loop, regular),
    ("a character device", Power::Loop, character),
    ("a named pipe", Power::Loop, pipe),
    ("a loop device without a file", Power::Loop, unbound),
    ("a chain of links to a blank device", Power::Loop, link_chain),
    ("a chain of links to a mounted device", Power::Loop, link_chain_mounted),
    ("another node of a mounted device", Power::Loop, second_node),
    ("the device of the running system", Power::Loop, root_device),
    ("reading only", Power::Loop, reading),
    ("a write that the guard must not do", Power::Loop, write_is_seen),
];

fn missing_under_dev(fixtures: &mut Fixtures) -> Step<String> {
    let path = "/dev/rubus-guard-no-such-disk";
    let answer = fixtures.refused(path, Some(path), &["does not exist"])?;
    if Path::new(path).symlink_metadata().is_ok() {
        return Err(Stop::Fail(format!("{path} was created")));
    }
    Ok(answer)
}

fn missing_elsewhere(fixtures: &mut Fixtures) -> Step<String> {
    let path = fixtures.path("nowhere/disk");
    fixtures.refused(path, None, &["does not exist"])?;
    let path = fixtures.path("disk");
    fixtures.refused(path, None, &["does not exist"])
}

fn dangling(fixtures: &mut Fixtures) -> Step<String> {
    let link = fixtures.link("/dev/rubus-guard-no-such-disk", "link")?;
    let answer =
        fixtures.refused(link, None, &["a symbolic link to /dev/rubus-guard-no-such-disk"])?;
    if Path::new("/dev/rubus-guard-no-such-disk").exists() {
        return Err(Stop::Fail("the link's target was created".into()));
    }
    Ok(answer)
}

fn directory(fixtures: &mut Fixtures) -> Step<String> {
    fixtures.refused("/dev", None, &["is a directory"])
}

fn regular(fixtures: &mut Fixtures) -> Step<String> {
    let image = fixtures.image("plain.img", 1 << 20)?;
    fixtures.refused(image, None, &["is a regular file"])
}

fn character(fixtures: &mut Fixtures) -> Step<String> {
    fixtures.refused("/dev/null", None, &["is a character device"])
}

fn pipe(fixtures: &mut Fixtures) -> Step<String> {
    let path = fixtures.path("pipe");
    fixtures.run("mkfifo", &[&path.to_string_lossy()])?;
    fixtures.refused(path, None, &["is a named pipe"])
}

fn unbound(fixtures: &mut Fixtures) -> Step<String> {
    // An unused number: the node of a device that was there a moment ago.
    let device = fixtures.blank(1)?;
    let number =
        fs::read_to_string(format!("/sys/block/{}/dev", device.trim_start_matches("/dev/")));
    let number = number.map_err(fail)?;
    let own = fixtures.path("node");
    let (major, minor) = number.trim().split_once(':').unwrap_or(("7", "0"));
    fixtures.run("losetup", &["-d", &device])?;
    fixtures.run("mknod", &[&own.to_string_lossy(), "b", major, minor])?;
    let answer = match fixtures.ask(&device, None)? {
        Ok(_) => return Err(Stop::Fail("it was allowed".into())),
        Err(refusal) => refusal.to_string(),
    };
    // Another process may have bound the number by now; then it is theirs and in use.
    if answer.contains("no medium") || answer.contains("does not exist") {
        return Ok("refused: no medium".into());
    }
    Err(Stop::Skip(format!("the device was taken meanwhile: {answer}")))
}

fn link_chain(fixtures: &mut Fixtures) -> Step<String> {
    let device = fixtures.blank(4)?;
    fixtures.link(&device, "dev/sdq")?;
    fixtures.link("../../dev/sdq", "by-id/all/usb-Brand_Stick-0:0")?;
    let link = fixtures.link("by-id/all/usb-Brand_Stick-0:0", "disk")?;
    let claimed = fixtures.allowed(link, None)?;
    if claimed.path() != Path::new(&device) {
        return Err(Stop::Fail(format!("claimed {}", claimed.path().display())));
    }
    Ok("allowed, as the device itself".into())
}

fn link_chain_mounted(fixtures: &mut Fixtures) -> Step<String> {
    let device = fixtures.blank(32)?;
    fixtures.ext4(&device, "linked")?;
    fixtures.mount(&device, "mounted")?;
    fixtures.link(&device, "dev/sdq")?;
    let link = fixtures.link("dev/sdq", "disk")?;
    fixtures.refused(link, Some(&device), &[&format!("{device} is mounted at")])
}

fn second_node(fixtures: &mut Fixtures) -> Step<String> {
    let device = fixtures.blank(32)?;
    fixtures.ext4(&device, "twice")?;
    fixtures.mount(&device, "mounted")?;
    let name = device.trim_start_matches("/dev/");
    let number = fs::read_to_string(format!("/sys/block/{name}/dev")).map_err(fail)?;
    let node = fixtures.path("node");
    let (major, minor) = number.trim().split_once(':').unwrap_or(("7", "0"));
    fixtures.run("mknod", &[&node.to_string_lossy(), "b", major, minor])?;
    match fixtures.ask(&node, None)? {
        Err(refusal) if refusal.to_string().contains("is mounted at") => {
            Ok("refused: mounted under its other name".into())
        }
        Err(refusal) => Err(Stop::Fail(refusal.to_string())),
        Ok(_) => Err(Stop::Fail("it was allowed".into())),
    }
}

fn root_device(fixtures: &mut Fixtures) -> Step<String> {
    let source = fixtures.run("findmnt", &["-n", "-o", "SOURCE", "/"])?;
    // "/dev/sda2[/@]" on btrfs.
    let device = source.split('[').next().unwrap_or_default().to_string();
    if !device.starts_with("/dev/") || !Path::new(&device).exists() {
        return Err(Stop::Skip(format!("/ is on {source}, which is no device")));
    }
    match fixtures.ask(&device, Some(&device))? {
        Err(refusal) if refusal.to_string().contains("This system runs from it.") => {
            Ok("refused: this system runs from it".into())
        }
        Err(refusal) => Err(Stop::Fail(refusal.to_string())),
        Ok(_) => Err(Stop::Fail("it was allowed".into())),
    }
}

fn reading(fixtures: &mut Fixtures) -> Step<String> {
    let device = fixtures.blank(32)?;
    fixtures.ext4(&device, "reader")?;
    fixtures.mount(&device, "mounted")?;
    let link = fixtures.link(&device, "link")?;
    let reader = guard::read_only(&link)
        .map_err(|refusal| Stop::Fail(format!("a mounted device must be readable: {refusal}")))?;
    let bytes = reader.read(1024 + 56, 2).map_err(Stop::Fail)?;
    if bytes != [0x53, 0xEF] || reader.size_bytes() != 32 << 20 {
        return Err(Stop::Fail(format!("read {bytes:?}")));
    }
    for wrong in [fixtures.path("nothing"), fixtures.path("mounted"), fixtures.path("disk0.img")] {
        if guard::read_only(&wrong).is_ok() {
            return Err(Stop::Fail(format!("{} was opened", wrong.display())));
        }
    }
    if fixtures.path("nothing").exists() {
        return Err(Stop::Fail("a file was created".into()));
    }
    Ok("allowed for a device, refused for all else".into())
}

/// What all other cases rely on: a byte that changes is seen, wherever it is, and zeros written into a hole are no change.
fn write_is_seen(fixtures: &mut Fixtures) -> Step<String> {
    let image = fixtures.image("written.img", 8 * MIB + 3)?;
    for (place, byte, is_change) in [
        (5 * MIB, 0, false),
        (5 * MIB + 1, 1, true),
        (5 * MIB + 1, 2, true),
        (5 * MIB + 1, 0, true),
        (8 * MIB + 2, 1, true),
    ] {
        let before = fixtures.state()?;
        fixtures.write(&image, place, &[byte])?;
        let differences = differences(&before, &fixtures.state()?);
        if differences.is_empty() == is_change {
            let what = format!("{byte} at {place} is seen as {differences:?}");
            return Err(Stop::Fail(what));
        }
    }
    Ok("seen".into())
}
