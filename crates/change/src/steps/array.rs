//! Arrays, made and taken apart with mdadm.

use std::path::Path;

use crate::plan::Action;
use crate::plan::commands::{commands_with, undo_commands_with};
use crate::plan::journal::Receipt;
use crate::plan::volume::Place;
use rubus_host::{Files, Hands};
use rubus_machine::signature::{END_BYTES, Kind};

use crate::apply::{Site, StepError};
use crate::guard::Released;

use super::claim::{around, claim};
use super::{LiveStepRunner, failed, locate, mounts, receipt, with_names};

impl LiveStepRunner {
    pub(super) fn make_array(
        &mut self,
        action: &Action,
        uuid: &str,
        members: &[Place],
        site: &mut Site<'_>,
        hands: &mut dyn Hands,
    ) -> Result<Receipt, StepError> {
        let tried = action.title();
        let array = Place::Array { uuid: uuid.into(), members: members.to_vec() };
        let planned = format!("array {uuid} of {} members", members.len());
        let done = || receipt(planned.clone(), planned.clone());
        if is_made(&array, uuid, hands.files()) {
            return Ok(done());
        }
        let mut claimed = Vec::new();
        for member in members {
            let node = locate::node_of(hands.files(), member).map_err(|why| failed(&tried, why))?;
            for disk in member.disks() {
                let device = claim(&tried, disk, &node, site, hands)?;
                let size = device.size_bytes();
                let zeros = vec![0_u8; size.min(END_BYTES as u64) as usize];
                let wiped = device
                    .write_at(0, &zeros)
                    .and_then(|()| device.write_at(size - zeros.len() as u64, &zeros))
                    .and_then(|()| device.sync());
                wiped.map_err(|why| failed(&tried, why))?;
                claimed.push((member, Released::of(device, &node)));
            }
        }
        // By the nodes that were claimed, and not by what the members are called now.
        let node = |place: &Place| {
            let mut known = claimed.iter();
            let known = known.find(|(member, _)| *member == place);
            known.map_or_else(|| place.title(), |(_, device)| device.node().display().to_string())
        };
        let mounted = |uuid: &str| Path::new(mounts::PLACES).join(uuid);
        let commands = with_names(&node, &mounted, |names| commands_with(action, names));
        let devices: Vec<Released> = claimed.into_iter().map(|(_, device)| device).collect();
        for command in &commands {
            around(&devices, &tried, || self.run_all(std::slice::from_ref(command)))?;
        }
        match is_made(&array, uuid, hands.files()) {
            true => Ok(done()),
            false => Err(failed(tried, "mdadm made it and it does not run; see /proc/mdstat")),
        }
    }

    pub(super) fn undo_array(
        &mut self,
        action: &Action,
        members: &[Place],
        site: &Site<'_>,
        hands: &mut dyn Hands,
    ) -> Result<Receipt, StepError> {
        self.unmount_everything(&Path::new(mounts::PLACES).join(site.change))?;
        let Action::MakeArray { uuid, .. } = action else {
            return Err(failed(action.title(), "it is no array"));
        };
        let commands = named(hands.files(), |names| undo_commands_with(action, names));
        let array = Place::Array { uuid: uuid.clone(), members: members.to_vec() };
        for command in commands {
            let is_stop = command.arguments.iter().any(|argument| argument == "--stop");
            if is_stop {
                // By its node: the name below /dev/md is made by udev, which may not be here.
                if let Ok(node) = locate::node_of(hands.files(), &array) {
                    self.run("mdadm", &["--stop", &node.display().to_string()])?;
                }
                continue;
            }
            let is_marked = command.arguments.last().is_some_and(|node| is_member(Path::new(node)));
            if is_marked {
                self.run_all(std::slice::from_ref(&command))?;
            }
        }
        Ok(receipt("no array", "no array"))
    }
}

/// Commands with the current nodes.
fn named<T>(files: &dyn Files, act: impl FnOnce(crate::plan::commands::Names<'_>) -> T) -> T {
    let node = |place: &Place| {
        let node = locate::node_of(files, place).map(|node| node.display().to_string());
        // A place that is not there has no node, and the command says so when it is run.
        node.unwrap_or_else(|_| place.title())
    };
    let mounted = |uuid: &str| Path::new(mounts::PLACES).join(uuid);
    with_names(&node, &mounted, act)
}

fn is_made(array: &Place, uuid: &str, files: &dyn Files) -> bool {
    let Ok(node) = locate::node_of(files, array) else {
        return false;
    };
    let told = files.ask("mdadm", &["--detail", "--export", &node.display().to_string()]);
    let told = told.unwrap_or_default();
    told.lines().any(|line| line.strip_prefix("MD_UUID=").is_some_and(|own| own == uuid))
}

/// Whether a device says that it is a member of an array.
fn is_member(node: &Path) -> bool {
    let found = locate::signatures(node).unwrap_or_default();
    let is_md = |kind: Kind| matches!(kind, Kind::Member(name) if name.starts_with("md "));
    found.iter().any(|found| is_md(found.kind))
}
