//! An initial RAM filesystem for another root: made there, looked into, and put where the firmware reads it.
//!
//! The current file is kept whole under another name before anything replaces it (see [`super::kept`]), and the new one
//! takes it by a rename, so that at every moment one of the two is there. On FAT this order, with every file and the
//! directory made durable in between, is the one that leaves old or new and nothing else.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::volume::{DiskIdentity, Place, Volume};
use rubus_boot::initramfs::{self, Listing};
use rubus_boot::modules::{Known, Modules};
use rubus_host::files::hands::{parent_of, remove_leftover};
use rubus_host::files::mounting;
use rubus_host::live::offline_root::Inside;
use rubus_host::{Files, Hands, ReadError};
use rubus_vocabulary::units::bytes_iec;

use super::commands::{Command, INITRAMFS, Names, command, with_names};
use super::copied::{Onto, if_full};
use super::site::place_on;
use super::{
    Action, Behaviour, Detail, LiveStepRunner, MachineStep, Progress, Receipt, Site, StepError,
    Touches, Trace, TraceSite, failed, kept, receipt,
};

/// More than any initial RAM filesystem takes.
const MAX_BYTES: usize = 512 << 20;

/// What stands before the digest in a receipt.
const DIGEST: &str = "SHA-256 ";

/// What is to be made.
#[derive(Clone, Copy)]
pub(super) struct ImageRequest<'a> {
    /// The root that it is for.
    pub root: &'a Volume,
    /// The kernel's release.
    pub release: &'a str,
    /// The file that the firmware reads.
    pub path: &'a Path,
    /// Where the present one is kept.
    pub kept: Option<&'a Path>,
    /// Modules that must be inside, or built in.
    pub modules: &'a [String],
    /// Files that must be inside, by their absolute paths there.
    pub files: &'a [PathBuf],
}

/// An initial RAM filesystem for another root is made on this machine, looked into, and put in the place of
/// the one that is started now, which is kept. Undoing puts the kept one back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
pub struct BuildInitramfs {
    /// The root that it is for; its `initramfs-tools` configuration counts.
    pub root: Volume,
    /// The kernel's release ("6.12.47+rpt-rpi-v8").
    pub release: String,
    /// The file that the firmware reads ("/boot/firmware/initramfs8").
    pub path: PathBuf,
    /// Where the current one is kept; absent when there is none now.
    pub kept: Option<PathBuf>,
    /// Modules that must be inside, or built into the kernel.
    pub modules: Vec<String>,
    /// Files that must be inside, by their absolute paths there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<PathBuf>,
}

impl BuildInitramfs {
    fn request(&self) -> ImageRequest<'_> {
        ImageRequest {
            root: &self.root,
            release: &self.release,
            path: &self.path,
            kept: self.kept.as_deref(),
            modules: &self.modules,
            files: &self.files,
        }
    }
}

impl Behaviour for BuildInitramfs {
    fn title(&self) -> String {
        format!(
            "make a new initial RAM filesystem for {}, as {}",
            self.release,
            self.path.display()
        )
    }

    fn proof_title(&self) -> String {
        proof_of(&self.modules)
    }

    fn undo_title(&self) -> String {
        match &self.kept {
            Some(kept) => format!("put {} back as {}", kept.display(), self.path.display()),
            None => format!("remove {}", self.path.display()),
        }
    }

    fn commands(&self, names: Names<'_>) -> Vec<Command> {
        let top = (names.mounted)(&self.root.uuid).display().to_string();
        vec![command("chroot", &[&top, "mkinitramfs", "-o", INITRAMFS, &self.release])]
    }

    fn undo_commands(&self, _: Names<'_>) -> Vec<Command> {
        Vec::new()
    }

    fn details(&self) -> Vec<Detail<'_>> {
        self.kept.iter().map(|kept| Detail::Kept(kept)).collect()
    }

    fn touches(&self) -> Touches<'_> {
        Touches { kept: self.kept.as_ref(), ..Touches::path(&self.path) }
    }

    fn disks_lost_mut(&mut self) -> Vec<&mut DiskIdentity> {
        Vec::new()
    }

    fn difference(&self, files: &dyn Files) -> Option<String> {
        (!files.exists(&self.path)).then(|| format!("{} is gone", self.path.display()))
    }

    fn shows_completion(&self) -> bool {
        true
    }

    fn obstacle(&self, directory: &Path, step: usize, files: &dyn Files) -> Option<String> {
        kept::obstacle(&self.path, self.kept.as_deref(), directory, step, files)
    }

    fn trace(&self, site: &TraceSite<'_>, files: &dyn Files) -> Trace {
        kept::trace(&self.path, self.kept.as_deref(), site, files)
    }
}

impl BuildInitramfs {
    fn run_mkinitramfs(&self, runner: &mut LiveStepRunner, top: &Path) -> Result<(), StepError> {
        let mounted = |_: &str| top.to_path_buf();
        let node = |place: &Place| place.title();
        let commands = with_names(&node, &mounted, |names| self.commands(names));
        if runner.image.is_some() {
            return commands.iter().try_for_each(|one| runner.run_shut_in(top, one).map(drop));
        }
        // A copy of the running system is trusted as that is, and looks for its disks.
        for place in ["proc", "sys", "dev", "run"] {
            runner.bind_into(&Path::new("/").join(place), &top.join(place))?;
        }
        runner.run_all(&commands).map(drop)
    }
}

impl MachineStep for BuildInitramfs {
    fn apply(
        &self,
        runner: &mut LiveStepRunner,
        site: &mut Site<'_>,
        hands: &mut dyn Hands,
    ) -> Result<Receipt, StepError> {
        let kept = self.kept.as_deref().map(|kept| site.place(kept)).transpose()?;
        let wanted = &ImageRequest {
            path: &site.place(&self.path)?,
            kept: kept.as_deref(),
            ..self.request()
        };
        let tried = format!("make {}", wanted.path.display());
        let top = runner.mount_volume(wanted.root, site.change)?;
        let outside = place_on(&top, Path::new(INITRAMFS))?;
        if hands.files().exists(&outside) {
            hands.remove(&outside)?;
        }
        (site.tell)(Progress {
            words: format!("building it with mkinitramfs in {}", wanted.root.title),
            share: None,
            left_s: None,
        });
        let made = self.run_mkinitramfs(runner, &top);
        made.map_err(|error| in_a_full_root(error, runner.onto()))?;
        // Hooks write files of their own there, as mdadm's its configuration, and no program that runs there makes them durable. The
        // firmware may be pointed at this root before it is unmounted.
        mounting::sync_filesystem(&top)?;
        // A link that the programs of an image put there must not lead to a file of this machine.
        let bytes = Inside::new(&top).read_prefix(Path::new(INITRAMFS), MAX_BYTES);
        let bytes = bytes.map_err(|why| failed(&tried, why))?;
        let inside = initramfs::list(&bytes[..]).map_err(|why| failed(&tried, why))?;
        let found = prove(wanted, &inside, &top, hands.files());
        let found = found.map_err(|why| failed(&tried, why))?;
        kept::replace_keeping(wanted.path, wanted.kept, &bytes, site, hands)?;
        hands.remove(&outside)?;
        Ok(built(&bytes, &found))
    }

    fn undo(
        &self,
        _: &mut LiveStepRunner,
        site: &mut Site<'_>,
        hands: &mut dyn Hands,
    ) -> Result<Receipt, StepError> {
        let kept = self.kept.as_deref().map(|kept| site.place(kept)).transpose()?;
        kept::put_back(&site.place(&self.path)?, kept.as_deref(), site, hands)
    }
}

/// An initial RAM filesystem that was made under a name of its own takes the place of the one that is started now,
/// which is kept. One that was made there meanwhile for a newer kernel, and that holds what the root needs, stays.
/// Undoing puts the kept one back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
pub struct InstallInitramfs {
    /// The root that it is for.
    pub root: Volume,
    /// The kernel's release that it was made for.
    pub release: String,
    /// Its current name ("/boot/firmware/initramfs-rubus").
    pub from: PathBuf,
    /// The file that the firmware reads ("/boot/firmware/initramfs8").
    pub path: PathBuf,
    /// Where the current one is kept; absent when there is none now.
    pub kept: Option<PathBuf>,
    /// Modules that must be inside, or built into the kernel.
    pub modules: Vec<String>,
    /// Files that must be inside, by their absolute paths there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<PathBuf>,
}

impl InstallInitramfs {
    fn request(&self) -> ImageRequest<'_> {
        ImageRequest {
            root: &self.root,
            release: &self.release,
            path: &self.path,
            kept: self.kept.as_deref(),
            modules: &self.modules,
            files: &self.files,
        }
    }
}

impl Behaviour for InstallInitramfs {
    fn title(&self) -> String {
        format!(
            "put the initial RAM filesystem {} in place, as {}",
            self.from.display(),
            self.path.display()
        )
    }

    fn proof_title(&self) -> String {
        proof_of(&self.modules)
    }

    fn undo_title(&self) -> String {
        match &self.kept {
            Some(kept) => format!("put {} back as {}", kept.display(), self.path.display()),
            None => format!("remove {}", self.path.display()),
        }
    }

    fn commands(&self, _: Names<'_>) -> Vec<Command> {
        Vec::new()
    }

    fn undo_commands(&self, _: Names<'_>) -> Vec<Command> {
        Vec::new()
    }

    fn details(&self) -> Vec<Detail<'_>> {
        self.kept.iter().map(|kept| Detail::Kept(kept)).collect()
    }

    fn touches(&self) -> Touches<'_> {
        Touches { kept: self.kept.as_ref(), takes: Some(&self.from), ..Touches::path(&self.path) }
    }

    fn disks_lost_mut(&mut self) -> Vec<&mut DiskIdentity> {
        Vec::new()
    }

    fn difference(&self, files: &dyn Files) -> Option<String> {
        if !files.exists(&self.path) {
            return Some(format!("{} is gone", self.path.display()));
        }
        files.exists(&self.from).then(|| format!("{} is not in place yet", self.from.display()))
    }

    fn shows_completion(&self) -> bool {
        true
    }

    fn obstacle(&self, directory: &Path, step: usize, files: &dyn Files) -> Option<String> {
        kept::obstacle(&self.path, self.kept.as_deref(), directory, step, files)
    }

    fn trace(&self, site: &TraceSite<'_>, files: &dyn Files) -> Trace {
        kept::trace(&self.path, self.kept.as_deref(), site, files)
    }
}

/// What is installed is in the running system's boot partition, wherever the step acts.
impl MachineStep for InstallInitramfs {
    fn apply(
        &self,
        runner: &mut LiveStepRunner,
        site: &mut Site<'_>,
        hands: &mut dyn Hands,
    ) -> Result<Receipt, StepError> {
        let wanted = &self.request();
        let top = runner.mount_volume(wanted.root, site.change)?;
        install(wanted, &self.from, &top, site, hands)
    }

    fn undo(
        &self,
        _: &mut LiveStepRunner,
        site: &mut Site<'_>,
        hands: &mut dyn Hands,
    ) -> Result<Receipt, StepError> {
        kept::put_back(&self.path, self.kept.as_deref(), site, hands)
    }
}

fn proof_of(modules: &[String]) -> String {
    if modules.is_empty() {
        return "it is unpacked and looked into".into();
    }
    format!(
        "it is unpacked and looked into; these modules must be in it or in the kernel: {}",
        modules.join(", ")
    )
}

fn built(bytes: &[u8], found: &str) -> Receipt {
    let size = bytes_iec(bytes.len() as u64);
    let planned = format!("{size} with {found}, {DIGEST}{}", kept::sum(bytes));
    receipt(planned.clone(), planned)
}

/// Puts one that was built under another name in its place, with the root that it is for mounted at `top`.
fn install(
    wanted: &ImageRequest<'_>,
    from: &Path,
    top: &Path,
    site: &Site<'_>,
    hands: &mut dyn Hands,
) -> Result<Receipt, StepError> {
    let tried = format!("put {} in place", from.display());
    let read = |path: &Path, files: &dyn Files| {
        let bytes = files.read_prefix(path, MAX_BYTES);
        bytes.map_err(|why| format!("{}: {why}", path.display()))
    };
    if hands.files().exists(from) {
        if let Some(newer) = newer(wanted, top, hands.files()) {
            remove_leftover(from, hands)?;
            hands.sync_directory(&parent_of(from))?;
            return Ok(newer);
        }
        let bytes = read(from, hands.files()).map_err(|why| failed(&tried, why))?;
        let inside = initramfs::list(&bytes[..]).map_err(|why| failed(&tried, why))?;
        prove(wanted, &inside, top, hands.files()).map_err(|why| failed(&tried, why))?;
        // A rename would do on other filesystems; on FAT a power cut may take the one name and not give the other.
        kept::replace_keeping(wanted.path, wanted.kept, &bytes, site, hands)?;
        hands.remove(from)?;
    }
    hands.sync_directory(&parent_of(wanted.path))?;
    // Also where an attempt that was interrupted has put it there.
    let bytes = read(wanted.path, hands.files()).map_err(|why| failed(&tried, why))?;
    let inside = initramfs::list(&bytes[..]).map_err(|why| failed(&tried, why))?;
    let found = prove_any(wanted, &inside, top, hands.files());
    let (_, found) = found.map_err(|why| failed(&tried, why))?;
    Ok(built(&bytes, &found))
}

/// The receipt of one that was made in its place meanwhile, for another kernel than the one that waits, with all that the
/// root needs.
fn newer(wanted: &ImageRequest<'_>, top: &Path, files: &dyn Files) -> Option<Receipt> {
    let bytes = files.read_prefix(wanted.path, MAX_BYTES).ok()?;
    let inside = initramfs::list(&bytes[..]).ok()?;
    if inside.releases().contains(wanted.release) {
        return None;
    }
    let (_, found) = prove_any(wanted, &inside, top, files).ok()?;
    Some(built(&bytes, &found))
}

/// As [`prove`], for any of the releases that it is for: which one, and what was found.
fn prove_any(
    wanted: &ImageRequest<'_>,
    inside: &Listing,
    top: &Path,
    files: &dyn Files,
) -> Result<(String, String), String> {
    let mut why = None;
    for release in inside.releases() {
        let wanted = ImageRequest { release, ..*wanted };
        match prove(&wanted, inside, top, files) {
            Ok(found) => return Ok((release.into(), found)),
            Err(reason) => why = Some(reason),
        }
    }
    match why {
        Some(why) => Err(why),
        // All modules may be in the kernel.
        None => prove(wanted, inside, top, files).map(|found| (wanted.release.into(), found)),
    }
}

/// What became of an initial RAM filesystem that a step has put in place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ImageState {
    /// It starts the root; how that is known.
    Starts(String),
    /// It does not, or is gone; why.
    Broken(String),
    /// It cannot be read; why.
    Unknown(String),
}

/// Which file an action has put in place for the firmware, and what became of it; nothing for an action that puts none there.
pub(crate) fn image_state(
    action: &Action,
    receipt: Option<&Receipt>,
    files: &dyn Files,
) -> Option<(PathBuf, ImageState)> {
    let wanted = match action {
        Action::BuildInitramfs(step) => step.request(),
        Action::InstallInitramfs(step) => step.request(),
        _ => return None,
    };
    Some((wanted.path.into(), look_again(&wanted, receipt, files)))
}

/// Looks whether it is the one that was built and, where it is another, whether that holds what the root needs.
fn look_again(
    wanted: &ImageRequest<'_>,
    receipt: Option<&Receipt>,
    files: &dyn Files,
) -> ImageState {
    let shown = wanted.path.display();
    let bytes = match files.read_prefix(wanted.path, MAX_BYTES) {
        Ok(bytes) => bytes,
        Err(ReadError::Absent) => return ImageState::Broken(format!("{shown} is gone")),
        Err(error) => return ImageState::Unknown(error.to_string()),
    };
    let built = receipt.and_then(|receipt| receipt.live.rsplit_once(DIGEST));
    if built.is_some_and(|(_, built)| built == kept::sum(&bytes)) {
        return ImageState::Starts("it is the one that was proven".into());
    }
    let since = match built {
        Some(_) => "something else has rebuilt it since",
        None => "an older rubus did not note which one it made",
    };
    let inside = match initramfs::list(&bytes[..]) {
        Ok(inside) => inside,
        Err(why) => {
            return ImageState::Broken(format!("{since}, and it is no whole one: {why}"));
        }
    };
    match prove_any(wanted, &inside, Path::new("/"), files) {
        Ok((release, found)) => {
            ImageState::Starts(format!("{since}, for {release}, and it has {found}"))
        }
        Err(why) => ImageState::Broken(format!(
            "{since}, and {why}; then say `sudo update-initramfs -u -k all`"
        )),
    }
}

/// `mkinitramfs` works in `/var/tmp` of the root that it is for, and what it says of a full one names neither that nor a
/// remedy.
fn in_a_full_root(error: StepError, onto: Onto) -> StepError {
    match error {
        // As strerror(3) has it: programs are run without a language.
        StepError::Work { tried, reason } if reason.contains("No space left on device") => {
            failed(tried, format!("{reason}; {}", if_full(onto)))
        }
        other => other,
    }
}

/// Every wished module, and everything that it needs, is inside or in the kernel itself.
fn prove(
    wanted: &ImageRequest<'_>,
    inside: &Listing,
    top: &Path,
    files: &dyn Files,
) -> Result<String, String> {
    const MAX_LIST_BYTES: usize = 16 << 20;
    let directory = top.join("lib/modules").join(wanted.release);
    let text = |name: &str| {
        let bytes = files.read_prefix(&directory.join(name), MAX_LIST_BYTES);
        String::from_utf8_lossy(&bytes.unwrap_or_default()).into_owned()
    };
    let modules = Modules::parse(&text("modules.dep"), &text("modules.builtin"));
    let mut missing = BTreeSet::new();
    for module in wanted.modules {
        let needed = match modules.find(module) {
            Known::BuiltIn => Vec::new(),
            Known::Files(all) => all,
            Known::No => vec![module.clone()],
        };
        let is_missing = |module: &String| inside.module(wanted.release, module).is_none();
        missing.extend(needed.into_iter().filter(is_missing));
    }
    let absent: Vec<String> = wanted
        .files
        .iter()
        .filter(|file| !inside.has(file.to_string_lossy().trim_start_matches('/')))
        .map(|file| file.display().to_string())
        .collect();
    if !absent.is_empty() {
        return Err(format!(
            "it lacks {}: look at the hooks in /etc/initramfs-tools/hooks there",
            absent.join(", ")
        ));
    }
    if missing.is_empty() {
        return Ok(if wanted.modules.is_empty() {
            "nothing asked for".into()
        } else {
            wanted.modules.join(", ")
        });
    }
    Err(format!(
        "it lacks {} of {}: a machine that starts with it would not find its root; add them to \
         /etc/initramfs-tools/modules there, or install the kernel's modules",
        missing.into_iter().collect::<Vec<_>>().join(", "),
        wanted.release
    ))
}

#[cfg(test)]
mod tests;
