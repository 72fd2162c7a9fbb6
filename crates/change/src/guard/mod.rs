//! The guard: devices are opened for writing only through [`claim`].
//!
//! Two layers. [`judge`] decides and is pure: facts and consent in, verdict out. [`claim`] gathers
//! the facts at that moment, asks `judge`, opens the device exclusively, gathers the facts once
//! more through the open descriptor and asks again, so that nothing that happens in between goes
//! unseen. The exclusive claim then holds for as long as the returned [`ClaimedDevice`] lives.
//!
//! What the guard refuses, no confirmation overrules: a device that is in use in any way, through
//! its partitions, its disk, what stands on it and what it stands on. What it asks about is
//! content: a partition table, a filesystem, anything that is not zero.
//!
//! A refusal is exit status 3 of the program.

mod contents;
mod disks;
mod exporters;
mod facts;
mod file;
mod identity;
mod judge;
mod patience;
mod refusal;
mod released;
mod sysfs;
mod uses;

use std::path::Path;

use rubus_host::Files;
use rubus_host::block::blockdev::{
    self, BlockReader, ClaimedDevice, DeviceNumber, NodeKind, OpenDevice, OpenError, PinError,
    Pinned,
};
use rubus_host::process::openers::{self, Look};
use rubus_vocabulary::machine::BlockKind;

use crate::unseen::Unseen;

pub use disks::{Disk, all as disks};
pub use facts::{Content, DeviceFacts, Identity, Relation, TargetFacts, Use, UseKind};
pub use file::file_unused;
pub use judge::{Confirmation, ConfirmationKind, Consent, ConsentNeeded, Reason, Verdict, judge};
pub use judge::{confirmation, may_lose};
pub use refusal::{Refusal, card, content_words};
pub use released::{Released, are_the_same, while_the_same};

use patience::look_patiently;
use sysfs::Sys;
use uses::LoopFact;

/// Claims a block device for overwriting, or says why not.
///
/// `path` is what the user gave; symbolic links are followed once and the device is then held.
/// `consent` is what the user typed to confirm the loss of what is on the device; it is needed
/// only when there is something, and when it is given it must always name this very device.
///
/// Programs that only look at new devices (udev's workers, `blkid`, `losetup`, a desktop's disk
/// service) have them open for a moment. A device that is merely open elsewhere is therefore looked
/// at again for two seconds before it is refused. Where udev alone is in the way, it is waited for,
/// some 20 seconds at most.
///
/// Nothing is written, and nothing is created, whatever the answer. The returned device is open
/// for reading and writing, claimed (`O_EXCL`), without `O_DIRECT`.
///
/// # Errors
/// A [`Refusal`] with every reason and what to do about each; [`Refusal::expected_confirmation`]
/// has the words that would be accepted when only consent is missing.
pub fn claim(
    files: &dyn Files,
    path: &Path,
    consent: Option<&Consent>,
) -> Result<ClaimedDevice, Refusal> {
    look_patiently(files, || claim_now(files, path, consent))
}

fn claim_now(
    files: &dyn Files,
    path: &Path,
    consent: Option<&Consent>,
) -> Result<ClaimedDevice, Refusal> {
    let (node, facts) = first_look(files, path);
    allow(judge(&facts, consent), &facts)?;
    // An allowed target is a device, and a device was pinned.
    let (Some(node), TargetFacts::Device(before)) = (node, &facts) else {
        return Err(Refusal::new(
            &facts,
            Verdict::refused(
                "the device went away".into(),
                "Look at the cable and try again.".into(),
            ),
        ));
    };
    let device = ClaimedDevice::claim_for_the_guard(&node)
        .map_err(|error| Refusal::new(&facts, judge::cannot_open(&before.path, &error)))?;
    let after = second_look(files, path, before, &device);
    allow(judge(&after, consent), &after)?;
    Ok(device)
}

/// Opens a block device for reading only. This needs no consent and does not mind that the device
/// is mounted or otherwise in use, but it is not fooled either: what is no block device is
/// refused, and nothing is ever created.
///
/// # Errors
/// A [`Refusal`] when it is no block device, has no medium, or cannot be opened.
pub fn read_only(path: &Path) -> Result<BlockReader, Refusal> {
    let asked = path.display().to_string();
    let node = match pin(path) {
        Ok(node) => node,
        Err(facts) => return Err(Refusal::new(&facts, judge(&facts, None))),
    };
    let refuse = |error: &OpenError| {
        let facts = TargetFacts::Named { asked: asked.clone() };
        Refusal::new(&facts, judge::cannot_open(&node.path().display().to_string(), error))
    };
    let device = BlockReader::open(&node).map_err(|error| refuse(&error))?;
    if device.size_bytes() == 0 {
        return Err(refuse(&OpenError::NoDevice));
    }
    Ok(device)
}

/// What a path names, who uses it and what is on it. Only looks; a device without another claim is claimed for a
/// moment, so that nothing moves while it is looked at.
pub fn look(files: &dyn Files, path: &Path) -> TargetFacts {
    first_look(files, path).1
}

/// What a path names, when it could be overwritten with the user's consent.
///
/// # Errors
/// A [`Refusal`] when no consent would help: it is in use, no block device, or cannot be seen.
pub fn fit(files: &dyn Files, path: &Path) -> Result<DeviceFacts, Refusal> {
    look_patiently(files, || {
        let facts = look(files, path);
        match (judge(&facts, None), facts) {
            (Verdict::Allowed | Verdict::NeedsConsent(_), TargetFacts::Device(device)) => {
                Ok(*device)
            }
            (verdict, facts) => Err(Refusal::new(&facts, verdict)),
        }
    })
}

/// An unused device, which cannot be mounted or claimed elsewhere while this lives.
#[derive(Debug)]
pub struct Unused(BlockReader);

impl Unused {
    /// Waits until everything that was written to it is on stable storage.
    ///
    /// # Errors
    /// When a write or the flush failed.
    pub fn flush(&self) -> Result<(), OpenError> {
        self.0.flush()
    }
}

/// A device that is to be detached: allowed when nothing uses it in a way that would also forbid overwriting it. Its
/// contents stay and are not looked at: a network disk whose server is gone would not answer.
///
/// # Errors
/// A [`Refusal`] with everything that uses it.
pub fn unused(files: &dyn Files, path: &Path) -> Result<Unused, Refusal> {
    look_patiently(files, || {
        let node = pin(path).map_err(|facts| refuse_use(&facts))?;
        let claimed = BlockReader::open_exclusive(&node);
        let mut facts = gather(files, path, Opened::not(&node), claimed.is_ok());
        if matches!(claimed, Err(OpenError::Busy)) {
            uses::add_claim(files, &mut facts);
        }
        let facts = TargetFacts::Device(Box::new(facts));
        allow(judge::judge_use(&facts), &facts)?;
        claimed.map(Unused).map_err(|error| {
            let path = node.path().display().to_string();
            Refusal::new(&facts, judge::cannot_open(&path, &error))
        })
    })
}

/// Whether an unresponsive device may be detached: allowed when no filesystem, swap, array or mapping stands on it.
/// Programs that have it open do not count: their pending requests can end in no other way. The device is neither
/// opened nor held: it cannot be claimed while another program waits for its partition table, as udev does after every
/// write.
///
/// # Errors
/// A [`Refusal`] with everything that stands on it.
pub fn carries_nothing(files: &dyn Files, path: &Path) -> Result<(), Refusal> {
    look_patiently(files, || {
        let node = pin(path).map_err(|facts| refuse_use(&facts))?;
        let opened = Opened { look: Look::Descriptors, ..Opened::not(&node) };
        let mut facts = gather(files, path, opened, false);
        let is_program = |used: &Use| matches!(used.kind, UseKind::Open { .. });
        facts.uses.retain(|used| !is_program(used));
        let facts = TargetFacts::Device(Box::new(facts));
        allow(judge::judge_use(&facts), &facts)
    })
}

fn refuse_use(facts: &TargetFacts) -> Refusal {
    Refusal::new(facts, judge::judge_use(facts))
}

fn allow(verdict: Verdict, facts: &TargetFacts) -> Result<(), Refusal> {
    match verdict {
        Verdict::Allowed => Ok(()),
        other => Err(Refusal::new(facts, other)),
    }
}

/// Holds what the path names, if it is a block device; else says what it is instead.
fn pin(path: &Path) -> Result<Pinned, TargetFacts> {
    let asked = path.display().to_string();
    let node = Pinned::new(path).map_err(|error| match error {
        PinError::Missing => TargetFacts::Missing { asked: asked.clone() },
        PinError::Dangling { target } => {
            TargetFacts::Dangling { asked: asked.clone(), target: target.display().to_string() }
        }
        PinError::Denied => TargetFacts::Unreachable {
            asked: asked.clone(),
            why: Unseen::Denied("permission denied".into()),
        },
        PinError::Other(why) => {
            TargetFacts::Unreachable { asked: asked.clone(), why: Unseen::Other(why) }
        }
    })?;
    let what = match node.kind() {
        NodeKind::Block(_) => return Ok(node),
        NodeKind::Character(_) => "a character device",
        NodeKind::Directory => "a directory",
        NodeKind::Regular => "a regular file",
        NodeKind::Fifo => "a named pipe",
        NodeKind::Socket => "a socket",
        NodeKind::Unknown => "something that this program does not know",
    };
    Err(TargetFacts::NotBlock { asked, what })
}

/// Facts before anything is opened for writing. On an unclaimed device, the look itself holds a claim, so that the
/// device cannot be mounted meanwhile.
fn first_look(files: &dyn Files, path: &Path) -> (Option<Pinned>, TargetFacts) {
    let node = match pin(path) {
        Ok(node) => node,
        Err(facts) => return (None, facts),
    };
    let (reader, claimed_by_others) = match BlockReader::open_exclusive(&node) {
        Err(OpenError::Busy) => (BlockReader::open(&node), true),
        other => (other, false),
    };
    let facts = match reader {
        Ok(reader) => {
            let mut facts = gather(files, path, Opened::from(&*reader), false);
            if claimed_by_others {
                uses::add_claim(files, &mut facts);
            }
            TargetFacts::Device(Box::new(facts))
        }
        Err(OpenError::NoDevice) => TargetFacts::NoMedium { asked: path.display().to_string() },
        // Who uses it can be told without opening it, and is the better reason.
        Err(error) => {
            let mut facts = gather(files, path, Opened::not(&node), false);
            let why = format!("{} cannot be opened: {error}", facts.path);
            facts.unreadable.push(why);
            facts.is_denied = error == OpenError::Denied;
            TargetFacts::Device(Box::new(facts))
        }
    };
    (Some(node), facts)
}

/// The same facts again, now that the device is claimed. What changed since the first look is added as a reason of its
/// own.
fn second_look(
    files: &dyn Files,
    path: &Path,
    before: &DeviceFacts,
    device: &ClaimedDevice,
) -> TargetFacts {
    // Not from memory: what a partition's own cache wrote meanwhile must be seen. Where direct
    // reading is not supported the page cache has to do.
    let direct = device.set_direct(true).is_ok();
    let mut after = gather(files, path, Opened::from(&**device), true);
    if direct {
        // Cannot fail: it was off before.
        let _ = device.set_direct(false);
    }
    let same = after.geometry == before.geometry
        && device.geometry_now().ok() == before.geometry
        && after.name == before.name;
    if !same {
        after.unreadable.push(format!(
            "{} is not the device any more that was looked at a moment ago",
            before.path
        ));
    }
    TargetFacts::Device(Box::new(after))
}

/// The device that facts are gathered about, open if it could be opened.
struct Opened<'a> {
    path: &'a Path,
    number: DeviceNumber,
    device: Option<&'a OpenDevice>,
    /// How its users are looked for.
    look: Look,
}

impl<'a> From<&'a OpenDevice> for Opened<'a> {
    fn from(device: &'a OpenDevice) -> Self {
        Opened {
            path: device.path(),
            number: device.number(),
            device: Some(device),
            look: Look::Whole,
        }
    }
}

impl<'a> Opened<'a> {
    fn not(node: &'a Pinned) -> Self {
        Opened {
            path: node.path(),
            // `pin` lets only block devices through; 0:0 is none, and nothing is found under it.
            number: node.block_number().unwrap_or(DeviceNumber { major: 0, minor: 0 }),
            device: None,
            look: Look::Whole,
        }
    }
}

fn gather(files: &dyn Files, asked: &Path, opened: Opened<'_>, claimed_by_us: bool) -> DeviceFacts {
    let sys = Sys::new(files);
    let mut facts = DeviceFacts {
        asked: asked.display().to_string(),
        path: opened.path.display().to_string(),
        name: opened.number.to_string(),
        number: opened.number,
        kind: BlockKind::Disk,
        disk: None,
        geometry: opened.device.map(|device| device.geometry()),
        identity: Identity::default(),
        uses: Vec::new(),
        contents: Vec::new(),
        unreadable: Vec::new(),
        is_denied: false,
    };
    let node = match sys.by_number(opened.number) {
        Ok(node) => node,
        Err(why) => {
            facts.unreadable.push(why);
            return facts;
        }
    };
    let spans = match sys.partition_spans(&node) {
        Ok(spans) => spans,
        Err(why) => {
            facts.unreadable.push(why);
            Vec::new()
        }
    };
    facts.kind = node.kind();
    facts.disk = node.parent_name();
    facts.contents = match opened.device {
        Some(device) => contents::look(device, &spans),
        None => Vec::new(),
    };
    facts.identity = identity::read(&sys, &node);
    let loops = loops(&sys, &mut facts.unreadable);
    let mut found = uses::find(&sys, &node, &loops);
    let numbers: Vec<_> = found.numbers.iter().map(|(_, _, number)| *number).collect();
    let openers = openers::openers(&numbers, opened.look);
    uses::add_openers(&sys, &mut found, &openers, claimed_by_us);
    let own_loops = uses::own_loops(&sys, &node, &loops);
    let mut files = own_loops.iter().filter_map(|own| own.backing);
    if let Some(backing) = files.find(|backing| backing.block.is_none()) {
        let openers = openers::file_openers(backing.on_device, backing.inode);
        uses::add_backing_openers(&node, &mut found, &openers);
    }
    facts.uses = found.uses;
    facts.unreadable.extend(found.unreadable);
    facts.name = node.name;
    facts
}

/// The loop devices that have a backing, with what the loop driver says about each.
fn loops(sys: &Sys<'_>, unreadable: &mut Vec<String>) -> Vec<LoopFact> {
    let names = match sys.loop_names() {
        Ok(names) => names,
        Err(why) => {
            unreadable.push(why);
            return Vec::new();
        }
    };
    let mut loops = Vec::new();
    for name in names {
        let Some(backing_path) = sys.loop_backing_path(&name) else {
            continue;
        };
        let asked = Pinned::new(Path::new(&format!("/dev/{name}")))
            .ok()
            .and_then(|node| blockdev::loop_backing(&node).ok())
            .or_else(|| backing_by_path(&backing_path));
        loops.push(LoopFact { name, backing_path, backing: asked });
    }
    loops
}

/// Where the loop driver cannot be asked, the backing file's path has to do.
fn backing_by_path(path: &str) -> Option<blockdev::LoopBacking> {
    let node = Pinned::new(Path::new(path)).ok()?;
    Some(blockdev::LoopBacking {
        on_device: node.on_device(),
        inode: node.inode(),
        block: node.block_number(),
    })
}
