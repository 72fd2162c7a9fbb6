//! usb-quirk: a bridge between USB and a disk that resets under the driver `uas` is served by the older `usb-storage`.
//!
//! The kernel is told on its command line (Linux, Documentation/admin-guide/kernel-parameters.txt, `usb-storage.quirks`):
//! Raspberry Pi OS has the driver built in, so that a file below /etc/modprobe.d would come too late.

use std::path::{Path, PathBuf};

use super::moving;
use super::moving::current::{self, Start};
use super::moving::raspi_firmware;
use super::moving::steps::{id_of, keep_command_lines, kept_ending, write};
use super::{OptionSpec, PlanBuilder, PlanInput, Queries, Recipe, Wishes, disks};
use rubus_boot::cmdline_txt::CmdlineTxt;
use rubus_change::plan::promise::{Look, Promise};
use rubus_change::plan::{RESCUE, TextFile};
use rubus_vocabulary::machine::{BlockDevice, Hop, Machine};

pub(super) static RECIPE: Recipe = Recipe {
    name: "usb-quirk",
    title: "Have a USB bridge that resets its disk served by the older driver usb-storage instead of uas.",
    guide: super::Guide {
        changes: "Adds usb-storage.quirks= to the kernel's command line (cmdline.txt).",
        needs: "A board that starts from config.txt and cmdline.txt. Takes effect at the next start.",
        example: "sudo rubus plan usb-quirk device=/dev/sda",
    },
    options: &[
        OptionSpec {
            name: "device",
            what: "the disk behind the bridge, such as /dev/sda",
            default: None,
            check: disks::node,
        },
        OptionSpec {
            name: "bridge",
            what: "instead of a disk: the bridge as lsusb shows it, such as 152d:0578",
            default: None,
            check: |value| bridge(value).map(drop),
        },
    ],
    look_at,
    draw_up,
};

const PARAMETER: &str = "usb-storage.quirks";
/// What to do on a machine that does not start as a Raspberry Pi does.
const ELSEWHERE: &str = "this recipe changes cmdline.txt of a Raspberry Pi's boot partition. On other machines, put \
     usb-storage.quirks=VENDOR:PRODUCT:u into the boot loader's settings";
/// `IGNORE_UAS`: uas leaves the bridge to usb-storage.
const IGNORE_UAS: char = 'u';
/// What Debian's package `raspi-firmware` writes into cmdline.txt besides its own words.
const DEBIAN_WORDS: &str = "/etc/default/raspi-extra-cmdline";

/// Vendor and product id, as the kernel writes them: four small hexadecimal digits each.
fn bridge(value: &str) -> Result<String, String> {
    let is_id = |id: &str| id.len() == 4 && id.chars().all(|c| c.is_ascii_hexdigit());
    match value.split_once(':') {
        Some((vendor, product)) if is_id(vendor) && is_id(product) => Ok(value.to_lowercase()),
        _ => Err("write VENDOR:PRODUCT as lsusb shows them, such as 152d:0578".into()),
    }
}

fn look_at(machine: &Machine, _: &Wishes) -> Queries {
    let mut paths = current::boot_paths(&current::boot_point(machine));
    paths.extend([raspi_firmware::HOOK, DEBIAN_WORDS].map(PathBuf::from));
    paths.extend(Path::new(DEBIAN_WORDS).parent().map(PathBuf::from));
    Queries::paths(paths)
}

fn draw_up(situation: &PlanInput<'_>, draft: &mut PlanBuilder) {
    let Some(chip) = chosen(situation, draft) else {
        return;
    };
    let Some(start) = moving::checks::start_is_known(
        situation,
        moving::checks::Edited::CommandLine,
        ELSEWHERE,
        draft,
    ) else {
        return;
    };
    let lines: Vec<(&String, &TextFile, CmdlineTxt)> = start
        .cmdlines
        .iter()
        .filter_map(|(name, file)| Some((name, *file, with_quirk(&file.text, &chip)?)))
        .collect();
    if !fits(situation, &lines, draft) || !is_read(&start, draft) {
        return;
    }
    promise(&chip, draft);
    let is_changed = lines.iter().any(|(_, file, line)| line.text() != file.text);
    if !is_changed {
        return draft.notes.push(format!(
            "The command line says {PARAMETER}={chip}:{IGNORE_UAS} already; it holds from the next start on. `rubus survey` \
             shows which driver serves the disk now."
        ));
    }
    if !has_uas(situation.machine, &chip, draft) {
        return;
    }
    for_debian(situation, &chip, draft);
    keep_command_lines(situation, &start, draft);
    for (name, file, line) in &lines {
        write(
            situation,
            draft,
            &id_of(name),
            "From the next start on, uas leaves this bridge to usb-storage.",
            &start.point.join(name.as_str()),
            TextFile { text: line.text().to_string(), mode: file.mode },
        );
    }
    draft.needs_boot = true;
    told(situation, &chip, &start, draft);
}

/// The bridge that is meant, as `152d:0578`.
fn chosen(situation: &PlanInput<'_>, draft: &mut PlanBuilder) -> Option<String> {
    let machine = situation.machine;
    let what = "it is known which bridge is meant";
    let found = match (situation.option("device"), situation.option("bridge")) {
        (Some(node), None) => of_disk(machine, node),
        (None, Some(id)) => bridge(id).map_err(|why| (id.to_string(), why)),
        (Some(_), Some(_)) => {
            Err(("both device= and bridge= are given".into(), "give one of them".into()))
        }
        (None, None) => Err(("neither device= nor bridge= is given".into(), candidates(machine))),
    };
    match found {
        Err((found, remedy)) => {
            draft.check(what, false, found, &remedy);
            None
        }
        Ok(chip) => {
            let mut behind = bridges(machine).filter(|(_, hop)| hop.chip.as_deref() == Some(&chip));
            let plugged_in = behind.next();
            let words = match plugged_in {
                Some((disk, hop)) => format!(
                    "{} ({chip}) before {}; it is served by {}",
                    hop.name,
                    disk.name,
                    hop.driver.text().unwrap_or("an unknown driver")
                ),
                None => format!("{chip}, which is not plugged in"),
            };
            draft.check(what, true, words, "");
            if let Some(speaks) = plugged_in.and_then(|(_, hop)| hop.speaks_bulk_only) {
                let (found, remedy) = if speaks {
                    ("its descriptors show both", "")
                } else {
                    (
                        "its descriptors show UAS alone",
                        "leave the driver as it is: after the next start the disk would not be there. Try another supply, cable or bridge",
                    )
                };
                draft.check("usb-storage can serve the bridge", speaks, found, remedy);
            }
            Some(chip)
        }
    }
}

/// # Errors
/// What was found, and what to do.
fn of_disk(machine: &Machine, node: &str) -> Result<String, (String, String)> {
    let name = current::disk_name(Path::new(node));
    let others = || candidates(machine);
    let device = machine.device(name);
    let device = device.ok_or_else(|| (format!("there is no {node}"), others()))?;
    let name = device.parent.as_deref().unwrap_or(&device.name);
    let mut known = bridges(machine);
    let hop = known.find(|(disk, _)| disk.name == name).map(|(_, hop)| hop);
    let hop = hop.ok_or_else(|| (format!("{node} is not behind a USB bridge"), others()))?;
    hop.chip.clone().ok_or_else(|| {
        (
            format!("{} does not say its ids", hop.name),
            "give them as lsusb shows them: bridge=VENDOR:PRODUCT".into(),
        )
    })
}

/// The disks that are behind a bridge, with it.
fn bridges(machine: &Machine) -> impl Iterator<Item = (&BlockDevice, &Hop)> {
    let disks = machine.block_devices.iter();
    let disks = disks.filter(|device| device.parent.is_none());
    disks.filter_map(|disk| Some((disk, disk.usb_device()?)))
}

fn candidates(machine: &Machine) -> String {
    let words: Vec<String> = bridges(machine)
        .map(|(disk, hop)| format!("device=/dev/{} ({})", disk.name, hop.name))
        .collect();
    if words.is_empty() {
        "plug the disk in, or name its bridge with bridge=VENDOR:PRODUCT: no disk behind a USB bridge is seen".into()
    } else {
        format!("here: {}", words.join("; "))
    }
}

/// A command line with the quirk; other bridges' quirks and other flags of this one stay. Nothing where it cannot be written.
fn with_quirk(text: &str, chip: &str) -> Option<CmdlineTxt> {
    let mut line = CmdlineTxt::parse(text);
    let old = line.get(PARAMETER).unwrap_or_default().to_string();
    let mut is_there = false;
    let mut entries: Vec<String> = Vec::new();
    for entry in old.split(',').filter(|entry| !entry.is_empty()) {
        let (id, flags) = entry.rsplit_once(':').unwrap_or((entry, ""));
        if !id.eq_ignore_ascii_case(chip) {
            entries.push(entry.into());
            continue;
        }
        is_there = true;
        if flags.contains(IGNORE_UAS) {
            entries.push(entry.into())
        } else {
            entries.push(format!("{id}:{flags}{IGNORE_UAS}"))
        }
    }
    if !is_there {
        entries.push(format!("{chip}:{IGNORE_UAS}"));
    }
    let new = entries.join(",");
    // The kernel reads the parameter's other spelling too, which stays where nothing is missing.
    if new != old {
        line.set(PARAMETER, &new).ok()?;
    }
    Some(line)
}

fn fits(
    situation: &PlanInput<'_>,
    lines: &[(&String, &TextFile, CmdlineTxt)],
    draft: &mut PlanBuilder,
) -> bool {
    let is_32_bit_arm = situation.has_32_bit_arm_kernel();
    let too_long = lines.iter().find_map(|(_, _, line)| line.fits(is_32_bit_arm).err());
    if let Some(why) = &too_long {
        draft.check(
            "cmdline.txt has room",
            false,
            why.to_string(),
            "take words out of it that you do not need",
        );
    }
    too_long.is_none()
}

/// What usb-storage serves already gains nothing.
fn has_uas(machine: &Machine, chip: &str, draft: &mut PlanBuilder) -> bool {
    let mut behind = bridges(machine).filter(|(_, hop)| hop.chip.as_deref() == Some(chip));
    let is_served = behind.any(|(_, hop)| hop.driver.text() == Some("usb-storage"));
    if is_served {
        draft.check(
            "uas serves the bridge",
            false,
            "usb-storage serves it already, so the quirk would change nothing",
            "look for another cause of its resets: power supply, cable, hub, or the disk itself (`rubus survey`)",
        );
    }
    !is_served
}

/// The firmware hands on the first line alone: words that are put there are lost to a kernel that finds its root in another.
fn is_read(start: &Start<'_>, draft: &mut PlanBuilder) -> bool {
    let mut wrong: Vec<String> = Vec::new();
    for (name, file) in &start.cmdlines {
        let line = CmdlineTxt::parse(file.text.as_str());
        let first = line.line();
        let is_elsewhere = |line: &str| CmdlineTxt::parse(line).get("root").is_some();
        let begins = match (first.is_empty(), first.starts_with('#')) {
            (true, _) => "an empty line",
            (_, true) => "a comment, which the kernel reads as words",
            _ if line.get("root").is_none() && line.ignored_lines().any(is_elsewhere) => {
                "a line without root="
            }
            _ => continue,
        };
        wrong.push(format!("{name} begins with {begins}"));
    }
    let names: Vec<&str> = start.cmdlines.keys().map(String::as_str).collect();
    draft.check(
        "the line that the firmware reads is the kernel's command line",
        wrong.is_empty(),
        if wrong.is_empty() { format!("the first line of {}", names.join(", ")) } else { wrong.join(", ") },
        "write all words into the first line, and nothing before it: the firmware hands no other to the kernel",
    );
    wrong.is_empty()
}

/// Debian's own images: without it the next update of a kernel takes the quirk away.
fn for_debian(situation: &PlanInput<'_>, chip: &str, draft: &mut PlanBuilder) {
    if !raspi_firmware::rewrites_command_line(situation) {
        return;
    }
    let path = Path::new(DEBIAN_WORDS);
    let Some(line) = with_quirk(situation.text(path), chip) else {
        return;
    };
    draft.write(
        "raspi-firmware",
        "raspi-firmware rewrites cmdline.txt with each update, with the words of this file.",
        path,
        format!("{}\n", line.text().trim()),
        situation,
    );
}

fn promise(chip: &str, draft: &mut PlanBuilder) {
    draft.promises.push(Promise {
        what: format!("usb-storage serves the bridge {chip}"),
        look: Look::UsbDriver { chip: chip.into(), driver: "usb-storage".into() },
        needs_boot: true,
    });
}

fn told(situation: &PlanInput<'_>, chip: &str, start: &Start<'_>, draft: &mut PlanBuilder) {
    let machine = situation.machine;
    let mut behind = bridges(machine).filter(|(_, hop)| hop.chip.as_deref() == Some(chip));
    let disk = behind.next();
    draft.gains_unknown = Some(
        "The resets should end, which cannot be predicted in figures; `dmesg | grep -i uas` lists those so far. Measure before \
         and after: `--measure=DIR` with a directory on that disk, then `rubus verify --measure`."
            .into(),
    );
    draft.risks.push(
        "The older driver has one command at a time: work with a queue of requests becomes slower. Single requests, one after \
         the other, hardly change."
            .into(),
    );
    if disk.and_then(|(_, hop)| hop.speaks_bulk_only).is_none() {
        draft.risks.push(
            "A bridge that speaks UAS alone is not there after the restart, and a system on its disk does not start. Nearly all \
             speak both: `lsusb -v` shows bInterfaceProtocol 80 beside 98."
                .into(),
        );
    }
    draft.notes.push(
        "It holds for every device with these ids, at each port. The power supply is the other usual cause of resets: look at \
         `rubus survey` for undervoltage first."
            .into(),
    );
    let usual = start.paths.iter().find(|path| path.only_if.is_empty());
    let name = usual.map_or("cmdline.txt", |path| path.cmdline.as_str());
    draft.notes.push(format!(
        "{RESCUE} {} and, on its FAT partition ({} here), delete {name} and rename {name}.{} to \
         {name}.",
        current::way_to_boot_files(machine),
        start.point.display(),
        kept_ending(start)
    ));
}

#[cfg(test)]
mod tests;
