//! What is served: a file, a directory of images or a block device, with what speaks against it.

use std::path::Path;

use crate::{Answer, Node, NodeKind, PlanBuilder, PlanInput, disks, mounting};
use rubus_change::plan::volume::DiskIdentity;
use rubus_nbd_tools::images;
use rubus_vocabulary::units::{bytes_iec, parse_size};

/// What is below these is gone after a restart, or no image.
const PASSING: [&str; 6] = ["/tmp", "/var/tmp", "/run", "/proc", "/sys", "/dev"];
/// Below these a device has a name that it keeps.
const LASTING: [&str; 3] = ["/dev/disk", "/dev/mapper", "/dev/md"];
/// Maximum length of a unit's name, with what is around it.
const MAX_NAME: usize = 100;

/// What is served, and with which rights.
pub(super) struct Export<'a> {
    /// The path as it was given.
    pub(super) image: &'a str,
    pub(super) kind: NodeKind,
    pub(super) name: String,
    pub(super) is_read_only: bool,
    /// Where the clients' clones are.
    pub(super) clones: Option<&'a str>,
    /// Size in bytes of an image that the recipe makes.
    pub(super) made_bytes: Option<u64>,
    /// Numbers of user and group as whom the server runs, where that is not root.
    pub(super) owner: Option<(u32, u32)>,
    /// The disk that clients may overwrite.
    pub(super) gives_away: Option<DiskIdentity>,
}

/// A path of what can be served, or a sentence that says what one is.
pub(super) fn image(value: &str) -> Result<(), String> {
    if value.ends_with(".toml") {
        Err("the files of a list (TOML) would not be known here; name an image, a directory or a device".into())
    } else {
        place(value)
    }
}

/// A path that a server can be given, or a sentence that says what one is.
pub(super) fn place(value: &str) -> Result<(), String> {
    mounting::place(value).map_err(|_| "write an absolute path, such as /srv/disk.img".into())
}

/// A name that is one of an export, of a unit and of a socket.
pub(super) fn name(value: &str) -> Result<(), String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let begins = value.starts_with(|c: char| c.is_ascii_alphanumeric());
    if begins && value.len() <= MAX_NAME && value.chars().all(is_plain) {
        Ok(())
    } else {
        Err("write letters, digits, '-', '_' and '.', such as kitchen".into())
    }
}

/// The name of an image without its ending, as `rubus serve` has it.
pub(super) fn name_of(image: &str) -> &str {
    let name = images::name_of(Path::new(image));
    name.to_str().unwrap_or(image)
}

/// What is to be served; nothing where it cannot be.
pub(super) fn look<'a>(
    image: &'a str,
    situation: &'a PlanInput<'_>,
    draft: &mut PlanBuilder,
) -> Option<Export<'a>> {
    check_place(image, draft);
    let node = node(image, situation, draft)?;
    let is_read_only = situation.option("read-only") == Some("yes");
    let clones = situation.option("clones");
    let made_bytes = check_size(image, node, situation, draft);
    let kind = node.map_or(NodeKind::File, |node| node.kind);
    check_clones(clones, kind, is_read_only, draft);
    let wished = situation.option("name").unwrap_or(name_of(image));
    draft.check(
        "its name can be that of a unit",
        name(wished).is_ok(),
        format!("'{wished}'"),
        "give it one of letters, digits, '-', '_' and '.', such as name=kitchen",
    );
    let is_given = kind == NodeKind::BlockDevice && !is_read_only;
    let gives_away =
        if is_given { Some(disks::take(Path::new(image), situation, draft)?) } else { None };
    Some(Export {
        image,
        kind,
        name: wished.into(),
        is_read_only,
        clones,
        made_bytes,
        owner: owner(node, clones, situation),
        gives_away,
    })
}

/// Whether what is at a path is gone, or something else, after a restart.
pub(super) fn is_passing(path: &str) -> bool {
    let is_below = |place: &&str| Path::new(path).starts_with(place);
    PASSING.iter().any(is_below) && !LASTING.iter().any(is_below)
}

fn check_place(image: &str, draft: &mut PlanBuilder) {
    let remedy = if Path::new(image).starts_with("/dev") {
        "name the device by what stays: one of the links in /dev/disk/by-id"
    } else {
        "take a place on a disk, such as /srv/disk.img"
    };
    draft.check("it is in the same place after a restart", !is_passing(image), image, remedy);
}

/// What is at the path: `Some(None)` where nothing is and it is to be made.
fn node(image: &str, situation: &PlanInput<'_>, draft: &mut PlanBuilder) -> Option<Option<Node>> {
    let is_sized = situation.option("size").is_some();
    let what = "it is an image, a directory of images or a block device";
    let (answer, found, node) = match situation.facts.nodes.get(Path::new(image)) {
        Some(Ok(Some(node))) => {
            let words = match node.kind {
                NodeKind::File => format!("a file of {}", bytes_iec(node.size_bytes)),
                NodeKind::Directory => "a directory".into(),
                NodeKind::BlockDevice => "a block device".into(),
                NodeKind::Other => "none of these".into(),
            };
            let is_served = match node.kind {
                NodeKind::File => node.size_bytes > 0,
                kind => kind != NodeKind::Other,
            };
            (Answer::from(is_served), words, Some(*node))
        }
        Some(Ok(None)) if is_sized => (Answer::Holds, "it is not there, and is made".into(), None),
        Some(Ok(None)) => (Answer::Fails, "it is not there".into(), None),
        Some(Err(why)) => (Answer::Fails, format!("it cannot be seen: {why}"), None),
        None => (Answer::Unknown, "not known: the capture does not say".into(), None),
    };
    let remedy = match node {
        None => "say how large it is to be, and it is made: size=32GiB",
        Some(_) => "choose another one; an empty file is removed first and made with size=32GiB",
    };
    draft.check(what, answer, format!("{image}: {found}"), remedy);
    (answer != Answer::Fails).then_some(node)
}

/// How large it is made; nothing where it is there.
fn check_size(
    image: &str,
    node: Option<Node>,
    situation: &PlanInput<'_>,
    draft: &mut PlanBuilder,
) -> Option<u64> {
    let wished = parse_size(situation.option("size")?).ok()?;
    let Some(node) = node else {
        return Some(wished);
    };
    let is_so_large = node.kind == NodeKind::File && node.size_bytes == wished;
    draft.check(
        "it has the wished size",
        is_so_large,
        match node.kind {
            NodeKind::File => format!("{image} has {} bytes, {wished} are wished", node.size_bytes),
            _ => format!("{image} is no file that could be made with a size"),
        },
        "leave size= out to serve it as it is",
    );
    None
}

fn check_clones(clones: Option<&str>, kind: NodeKind, is_read_only: bool, draft: &mut PlanBuilder) {
    let Some(clones) = clones else {
        return;
    };
    draft.check(
        "clones are of one image, and are written",
        kind == NodeKind::File && !is_read_only,
        match kind {
            NodeKind::File if is_read_only => "read-only=yes is set".into(),
            NodeKind::File => format!("in {clones}"),
            _ => "it is no single file".into(),
        },
        "leave clones= or read-only= out, or name one image",
    );
}

/// As whom the server runs: as the owner of what it writes, who needs no right beyond that. Root's own files need
/// root, of whom nothing but the number is left.
fn owner(
    node: Option<Node>,
    clones: Option<&str>,
    situation: &PlanInput<'_>,
) -> Option<(u32, u32)> {
    let written = match clones {
        None => node,
        Some(clones) => match situation.facts.nodes.get(Path::new(clones)) {
            Some(Ok(node)) => *node,
            _ => None,
        },
    };
    let written = written.filter(|node| node.kind != NodeKind::BlockDevice && node.user != 0)?;
    Some((written.user, written.group))
}
