//! Arrays, made and taken apart with mdadm.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::guard::Released;
use crate::volume::{DiskIdentity, Place};
use rubus_host::{Files, Hands};
use rubus_machine::signature::{END_BYTES, Kind};

use super::behaviour::lost_on;
use super::claim::{around, claim};
use super::commands::{Command, Names, command, with_names};
use super::{
    Behaviour, Detail, LiveStepRunner, MachineStep, Receipt, Site, StepError, Touches, Trace,
    TraceSite, failed, locate, mounts, receipt,
};

/// Disks become one array with mdadm. Undoing stops it and takes the members' superblocks away.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
pub struct MakeArray {
    /// Name below `/dev/md/`.
    pub name: String,
    /// Its UUID, four groups of eight hexadecimal digits with colons, as mdadm writes it.
    pub uuid: String,
    /// The level; only 0 is made.
    pub level: u32,
    /// Bytes of a chunk: that much in turn goes to each member.
    pub chunk_bytes: u64,
    /// The members, in order.
    pub members: Vec<Place>,
}

impl MakeArray {
    fn place(&self) -> Place {
        Place::Array { uuid: self.uuid.clone(), members: self.members.clone() }
    }
}

impl Behaviour for MakeArray {
    fn title(&self) -> String {
        let members: Vec<String> = self.members.iter().map(Place::title).collect();
        format!("make the RAID-{} array {} of {}", self.level, self.name, members.join(" and "))
    }

    fn proof_title(&self) -> String {
        let count = self.members.len();
        format!("the kernel runs the array with {count} of {count} members")
    }

    fn undo_title(&self) -> String {
        format!("stop the array {} and take its marks from the members", self.name)
    }

    fn commands(&self, names: Names<'_>) -> Vec<Command> {
        let mut arguments = vec![
            "--create".into(),
            format!("/dev/md/{}", self.name),
            "--run".into(),
            "--metadata=1.2".into(),
            format!("--level={}", self.level),
            format!("--chunk={}K", self.chunk_bytes / 1024),
            format!("--uuid={}", self.uuid),
            format!("--name={}", self.name),
            // The name holds whatever the machine is called when it starts.
            "--homehost=any".into(),
            format!("--raid-devices={}", self.members.len()),
        ];
        arguments.extend(self.members.iter().map(|member| (names.node)(member)));
        vec![Command { program: "mdadm", arguments }]
    }

    fn undo_commands(&self, names: Names<'_>) -> Vec<Command> {
        let stop = command("mdadm", &["--stop", &format!("/dev/md/{}", self.name)]);
        let members = self.members.iter();
        let clear =
            members.map(|member| command("mdadm", &["--zero-superblock", &(names.node)(member)]));
        std::iter::once(stop).chain(clear).collect()
    }

    fn details(&self) -> Vec<Detail<'_>> {
        Vec::new()
    }

    fn touches(&self) -> Touches<'_> {
        Touches {
            disks_lost: self.members.iter().flat_map(Place::disks).collect(),
            others: vec![Path::new("/dev/md").join(&self.name)],
            leaves: Some(lost_on(&self.place().disks())),
            ..Touches::default()
        }
    }

    fn disks_lost_mut(&mut self) -> Vec<&mut DiskIdentity> {
        self.members.iter_mut().flat_map(Place::disks_mut).collect()
    }

    fn difference(&self, _: &dyn Files) -> Option<String> {
        None
    }

    fn shows_completion(&self) -> bool {
        false
    }

    fn obstacle(&self, _: &Path, _: usize, _: &dyn Files) -> Option<String> {
        None
    }

    fn trace(&self, _: &TraceSite<'_>, files: &dyn Files) -> Trace {
        if is_made(&self.place(), &self.uuid, files) { Trace::Made } else { Trace::Unseen }
    }
}

impl MachineStep for MakeArray {
    fn apply(
        &self,
        runner: &mut LiveStepRunner,
        site: &mut Site<'_>,
        hands: &mut dyn Hands,
    ) -> Result<Receipt, StepError> {
        let tried = self.title();
        let MakeArray { uuid, members, .. } = self;
        let array = self.place();
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
        let commands = with_names(&node, &mounted, |names| self.commands(names));
        let devices: Vec<Released> = claimed.into_iter().map(|(_, device)| device).collect();
        for command in &commands {
            around(&devices, &tried, || runner.run_all(std::slice::from_ref(command)))?;
        }
        if is_made(&array, uuid, hands.files()) {
            Ok(done())
        } else {
            Err(failed(tried, "mdadm made it and it does not run; see /proc/mdstat"))
        }
    }

    fn undo(
        &self,
        runner: &mut LiveStepRunner,
        site: &mut Site<'_>,
        hands: &mut dyn Hands,
    ) -> Result<Receipt, StepError> {
        runner.unmount_everything(&Path::new(mounts::PLACES).join(site.change))?;
        let array = self.place();
        for command in named(hands.files(), |names| self.undo_commands(names)) {
            let is_stop = command.arguments.iter().any(|argument| argument == "--stop");
            if is_stop {
                // By its node: the name below /dev/md is made by udev, which may not be here.
                if let Ok(node) = locate::node_of(hands.files(), &array) {
                    runner.run("mdadm", &["--stop", &node.display().to_string()])?;
                }
                continue;
            }
            let is_marked = command.arguments.last().is_some_and(|node| is_member(Path::new(node)));
            if is_marked {
                runner.run_all(std::slice::from_ref(&command))?;
            }
        }
        Ok(receipt("no array", "no array"))
    }
}

/// Commands with the current nodes.
fn named<T>(files: &dyn Files, act: impl FnOnce(Names<'_>) -> T) -> T {
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
