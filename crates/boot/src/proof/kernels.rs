//! Kernel, device tree and initial RAM filesystem of one way to start.

use super::super::cmdline_txt::CmdlineTxt;
use super::super::config_txt::BootPath;
use super::super::initramfs::Listing;
use super::super::modules::Known;
use super::{Facts, Kernel, check, condition};
use crate::volume::Name;
use rubus_vocabulary::check::Check;
use rubus_vocabulary::units::bytes_iec;

pub(super) fn look(facts: &Facts<'_>, path: &BootPath, checks: &mut Vec<Check>) {
    let when = condition(path);
    checks.push(check(
        format!("the kernel {} is in the boot partition{when}", path.kernel),
        is_there(facts, &path.kernel, "put the kernel there, or name another in config.txt"),
    ));
    if let Some(tree) = &path.device_tree {
        checks.push(check(
            format!("the device tree {tree} is in the boot partition{when}"),
            is_there(facts, tree, "put it there, or take device_tree= out of config.txt"),
        ));
    }
    for image in &path.initramfs {
        checks.push(check(
            format!("the initial RAM filesystem {image} is in the boot partition{when}"),
            is_there(facts, image, "make it with update-initramfs -c -k all"),
        ));
    }
    if path.initramfs.is_empty() {
        checks.push(check(
            format!("{} reaches the root alone{when}", path.kernel),
            reaches_alone(facts, path),
        ));
        return;
    }
    let size = |image: &String| facts.partition.size_bytes(image).unwrap_or(0);
    if path.initramfs.iter().all(|image| size(image) > 0) {
        look_inside(facts, path, &when, checks);
    }
}

fn is_there(facts: &Facts<'_>, path: &str, remedy: &str) -> Result<String, (String, String)> {
    match facts.partition.size_bytes(path) {
        Some(0) => Err((format!("{path} is empty"), remedy.into())),
        Some(bytes) => Ok(format!("{path}, {}", bytes_iec(bytes))),
        None => Err((format!("there is no {path}"), remedy.into())),
    }
}

/// Without an initial RAM filesystem everything must be in the kernel, and `root=` in its own words.
fn reaches_alone(facts: &Facts<'_>, path: &BootPath) -> Result<String, (String, String)> {
    let remedy = "load an initial RAM filesystem: auto_initramfs=1 in config.txt";
    let err = |found: String| Err((found, remedy.to_string()));
    let Some(kernel) = facts.images.kernels.get(&path.kernel) else {
        return err(format!("what {} has was not looked at", path.kernel));
    };
    let outside: Vec<&str> = facts
        .root_modules
        .iter()
        .filter(|group| !is_built_in(kernel, group))
        .filter_map(|group| group.first().map(String::as_str))
        .collect();
    if !outside.is_empty() {
        return err(format!(
            "config.txt loads no initial RAM filesystem, and not in the kernel: {}",
            outside.join(", ")
        ));
    }
    let cmdline = facts.partition.text(&path.cmdline).unwrap_or_default();
    let cmdline = CmdlineTxt::parse(cmdline);
    let name = cmdline.get("root").map(Name::parse);
    match name {
        Some(name) if name.is_known_to_kernel() => {
            Ok(format!("all modules are in the kernel, and it finds {name}"))
        }
        Some(name) => err(format!(
            "config.txt loads no initial RAM filesystem, and the kernel alone does not find {name}"
        )),
        None => err("the command line names no root".into()),
    }
}

fn look_inside(facts: &Facts<'_>, path: &BootPath, when: &str, checks: &mut Vec<Check>) {
    let images = path.initramfs.join(" + ");
    let listings = match listings(facts, path) {
        Ok(listings) => listings,
        Err(outcome) => {
            checks
                .push(check(format!("{images} can be unpacked by the kernel{when}"), Err(outcome)));
            return;
        }
    };
    let members: usize = listings.iter().map(|listing| listing.members.len()).sum();
    checks.push(check(
        format!("{images} can be unpacked by the kernel{when}"),
        Ok(format!("{members} files, unpacked to the end")),
    ));
    let none = Kernel::default();
    let kernel = facts.images.kernels.get(&path.kernel).unwrap_or(&none);
    if facts.root_modules.iter().all(|group| is_built_in(kernel, group)) {
        checks.push(check(
            format!("{} has what it takes to reach the root{when}", path.kernel),
            Ok("all modules are in the kernel".into()),
        ));
        return;
    }
    let release = release_inside(kernel, &listings);
    checks.push(check(
        format!("{images} is for the kernel {}{when}", path.kernel),
        release.clone().map(|release| format!("both are {release}")),
    ));
    let Ok(release) = release else { return };
    for group in facts.root_modules {
        let outcome = group_inside(group, kernel, &release, &listings);
        let what =
            format!("{} for the root is in the kernel or in {images}{when}", alternatives(group));
        checks.push(check(what, outcome));
    }
    if !facts.drivers.is_empty() {
        checks.push(check(
            format!("the drivers on the way to the root are in the kernel or in {images}{when}"),
            drivers_inside(facts.drivers, kernel, &release, &listings),
        ));
    }
}

/// Every driver that the kernel has as files must be inside with all it needs.
fn drivers_inside(
    drivers: &[String],
    kernel: &Kernel,
    release: &str,
    listings: &[&Listing],
) -> Result<String, (String, String)> {
    let mut found = Vec::new();
    for name in drivers {
        match kernel.modules.find(name) {
            Known::No => {}
            _ => found.push(group_inside(std::slice::from_ref(name), kernel, release, listings)?),
        }
    }
    if found.is_empty() {
        Ok(format!("the kernel has none of {}", drivers.join(", ")))
    } else {
        Ok(found.join("; "))
    }
}

fn is_built_in(kernel: &Kernel, group: &[String]) -> bool {
    let mut modules = group.iter();
    modules.any(|name| kernel.modules.find(name) == Known::BuiltIn)
}

fn alternatives(group: &[String]) -> String {
    match group {
        [one] => format!("the module {one}"),
        // The list would hide the sentence.
        _ => "a driver of the controller".to_string(),
    }
}

fn listings<'a>(facts: &Facts<'a>, path: &BootPath) -> Result<Vec<&'a Listing>, (String, String)> {
    let remedy = || "make it again with update-initramfs -u -k all".to_string();
    path.initramfs
        .iter()
        .map(|image| match facts.images.initramfs.get(image) {
            Some(Ok(listing)) => Ok(listing),
            Some(Err(why)) => Err((format!("{image}: {why}"), remedy())),
            None => Err((format!("{image} was not looked into"), remedy())),
        })
        .collect()
}

/// The kernel's release, which must be one of those inside.
fn release_inside(kernel: &Kernel, listings: &[&Listing]) -> Result<String, (String, String)> {
    let remedy = "make it for this kernel with update-initramfs -c -k and the release";
    let releases: Vec<&str> = listings.iter().flat_map(|listing| listing.releases()).collect();
    let inside = if releases.is_empty() {
        "no modules of any release are inside".to_string()
    } else {
        format!("inside are modules of {}", releases.join(", "))
    };
    match &kernel.release {
        Some(release) if releases.contains(&release.as_str()) => Ok(release.clone()),
        Some(release) => Err((format!("the kernel is {release}; {inside}"), remedy.into())),
        None => Err((
            format!("the kernel's release could not be read; {inside}"),
            "look with file(1) whether the kernel's file is one".into(),
        )),
    }
}

/// One module of the group must be in the kernel, or inside with all it needs.
fn group_inside(
    group: &[String],
    kernel: &Kernel,
    release: &str,
    listings: &[&Listing],
) -> Result<String, (String, String)> {
    if kernel.modules.is_empty() {
        return Err((
            format!("the lists of modules of {release} could not be read"),
            format!("install the modules of {release} in /lib/modules"),
        ));
    }
    let is_inside = |name: &str| {
        let mut listings = listings.iter();
        listings.any(|listing| listing.module(release, name).is_some())
    };
    let mut nearly = None;
    for name in group {
        match kernel.modules.find(name) {
            Known::BuiltIn => return Ok(format!("{name} is in the kernel")),
            Known::Files(files) => {
                let absent: Vec<String> =
                    files.into_iter().filter(|file| !is_inside(file)).collect();
                if absent.is_empty() {
                    return Ok(format!("{name} is inside with all it needs"));
                }
                nearly.get_or_insert((name, absent));
            }
            Known::No => {}
        }
    }
    match nearly {
        Some((name, absent)) => Err((
            format!("not inside: {}", absent.join(", ")),
            format!(
                "write {name} into /etc/initramfs-tools/modules of the new root and run update-initramfs -u -k {release}"
            ),
        )),
        None => Err((
            format!("the kernel {release} has no {}", group.join(", no ")),
            "use a kernel that has it".into(),
        )),
    }
}
