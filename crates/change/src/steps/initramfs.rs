//! An initial RAM filesystem for another root: made there, looked into, and put where the firmware reads it.
//!
//! The current file is kept whole under another name before anything replaces it (see [`super::kept`]), and the new one
//! takes it by a rename, so that at every moment one of the two is there. On FAT this order, with every file and the
//! directory made durable in between, is the one that leaves old or new and nothing else.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::plan::Action;
use crate::plan::commands::{INITRAMFS, commands_with};
use crate::plan::journal::Receipt;
use crate::plan::verify::{Answer, PromiseState};
use crate::plan::volume::{Place, Volume};
use rubus_boot::initramfs::{self, Listing};
use rubus_boot::modules::{Known, Modules};
use rubus_host::hands::{parent_of, remove_leftover};
use rubus_host::{Files, Hands, ReadError, mounting};
use rubus_vocabulary::units::bytes_iec;

use crate::apply::{Change, Progress, Site, StepError};

use super::copied::{Onto, if_full};
use super::{LiveStepRunner, failed, kept, receipt, with_names};

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

impl<'a> ImageRequest<'a> {
    /// What an action makes or puts in place; nothing for other actions.
    pub fn of(action: &'a Action) -> Option<ImageRequest<'a>> {
        let (Action::BuildInitramfs { root, release, path, kept, modules, files }
        | Action::InstallInitramfs { root, release, path, kept, modules, files, .. }) = action
        else {
            return None;
        };
        Some(ImageRequest { root, release, path, kept: kept.as_deref(), modules, files })
    }
}

impl LiveStepRunner {
    pub(super) fn build_initramfs(
        &mut self,
        action: &Action,
        wanted: &ImageRequest<'_>,
        site: &mut Site<'_>,
        hands: &mut dyn Hands,
    ) -> Result<Receipt, StepError> {
        let tried = format!("make {}", wanted.path.display());
        let top = self.mount_volume(wanted.root, site.change)?;
        let outside = top.join(INITRAMFS.trim_start_matches('/'));
        if hands.files().exists(&outside) {
            hands.remove(&outside)?;
        }
        (site.tell)(Progress {
            words: format!("building it with mkinitramfs in {}", wanted.root.title),
            share: None,
            left_s: None,
        });
        for place in ["proc", "sys", "dev", "run"] {
            self.bind_into(&Path::new("/").join(place), &top.join(place))?;
        }
        let node = |place: &Place| place.title();
        let mounted = |_: &str| top.clone();
        let commands = with_names(&node, &mounted, |names| commands_with(action, names));
        let made = self.run_all(&commands);
        made.map_err(|error| in_a_full_root(error, self.onto()))?;
        // Hooks write files of their own there, as mdadm's its configuration, and no program that runs there makes them durable. The
        // firmware may be pointed at this root before it is unmounted.
        mounting::sync_filesystem(&top)?;
        let bytes = hands.files().read_prefix(&outside, MAX_BYTES);
        let bytes = bytes.map_err(|why| failed(&tried, why))?;
        let inside = initramfs::list(&bytes[..]).map_err(|why| failed(&tried, why))?;
        let found = prove(wanted, &inside, &top, hands.files());
        let found = found.map_err(|why| failed(&tried, why))?;
        kept::replace_keeping(wanted.path, wanted.kept, &bytes, site, hands)?;
        hands.remove(&outside)?;
        Ok(built(&bytes, &found))
    }

    /// Puts one that was built under another name in its place.
    pub(super) fn install_initramfs(
        &mut self,
        wanted: &ImageRequest<'_>,
        from: &Path,
        site: &mut Site<'_>,
        hands: &mut dyn Hands,
    ) -> Result<Receipt, StepError> {
        let top = self.mount_volume(wanted.root, site.change)?;
        install(wanted, from, &top, site, hands)
    }
}

fn built(bytes: &[u8], found: &str) -> Receipt {
    let size = bytes_iec(bytes.len() as u64);
    let planned = format!("{size} with {found}, {DIGEST}{}", kept::sum(bytes));
    receipt(planned.clone(), planned)
}

/// As [`LiveStepRunner::install_initramfs`], with the root that it is for mounted at `top`.
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

/// What became of the initial RAM filesystems that a change has put in place, where nothing later has taken theirs.
pub fn initramfs_answers(change: &Change, later: &[Change], files: &dyn Files) -> Vec<Answer> {
    let steps = change.steps_in_force(later).into_iter();
    let all = steps.filter_map(|(number, action)| {
        let wanted = ImageRequest::of(action)?;
        Some(look_again(&wanted, change.receipt_of(number), files))
    });
    all.collect()
}

/// Looks whether it is the one that was built and, where it is another, whether that holds what the root needs.
fn look_again(wanted: &ImageRequest<'_>, receipt: Option<&Receipt>, files: &dyn Files) -> Answer {
    let shown = wanted.path.display();
    let answer = |standing, found: String| Answer {
        what: format!("{shown} starts the root"),
        standing,
        found,
    };
    let bytes = match files.read_prefix(wanted.path, MAX_BYTES) {
        Ok(bytes) => bytes,
        Err(ReadError::Absent) => return answer(PromiseState::Broken, format!("{shown} is gone")),
        Err(error) => return answer(PromiseState::Unknown, error.to_string()),
    };
    let built = receipt.and_then(|receipt| receipt.live.rsplit_once(DIGEST));
    if built.is_some_and(|(_, built)| built == kept::sum(&bytes)) {
        return answer(PromiseState::Holds, "it is the one that was proven".into());
    }
    let since = match built {
        Some(_) => "something else has rebuilt it since",
        None => "an older rubus did not note which one it made",
    };
    let inside = match initramfs::list(&bytes[..]) {
        Ok(inside) => inside,
        Err(why) => {
            return answer(PromiseState::Broken, format!("{since}, and it is no whole one: {why}"));
        }
    };
    match prove_any(wanted, &inside, Path::new("/"), files) {
        Ok((release, found)) => {
            answer(PromiseState::Holds, format!("{since}, for {release}, and it has {found}"))
        }
        Err(why) => answer(
            PromiseState::Broken,
            format!("{since}, and {why}; then say `sudo update-initramfs -u -k all`"),
        ),
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
        return Ok(match wanted.modules.is_empty() {
            true => "nothing asked for".into(),
            false => wanted.modules.join(", "),
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
