//! The original of a file that a step replaces: kept beside it, and put back only over what the step made.
//!
//! A note in the directory of the change holds the digests of the original and of every file that the step made. So an
//! original that an earlier change kept is never taken for this change's, and a file that an update has made since is
//! never overwritten. Changes of versions that wrote no note are undone by the name of the kept file alone.

use std::path::Path;

use rubus_host::files::digest;
use rubus_host::files::hands::{parent_of, remove_leftover, replace};
use rubus_host::{Files, Hands, ReadError};
use rubus_vocabulary::units::bytes_iec;

use super::{
    Receipt, Replaced, Site, StepError, Trace, TraceSite, failed, keep_note, make_an_image, receipt,
};

/// Larger than any initial RAM filesystem.
const MAX_BYTES: usize = 512 << 20;
/// How the names of the notes begin.
pub(super) const NOTES: &str = "replaced-";

/// What undoing has to do with a replaced file.
#[derive(Clone, Debug, PartialEq, Eq)]
enum WayBack {
    /// The original is in its place.
    InPlace,
    /// The kept original takes the place of what the step made.
    Restore,
    /// There was none: what the step made is removed.
    Remove,
    /// Something else has put a file there since, and no original waits: it stays.
    Leave,
    /// Nothing may be touched; why, and what to do.
    Stop(String),
}

/// Puts bytes in the place of a file; the original is kept under the name `kept` first, where there is one. Can be begun
/// again after any interruption.
///
/// # Errors
/// [`StepError::Changed`] where something was changed since the plan was made, and nothing was touched; [`StepError::Work`]
/// where there is no room for both files.
pub(super) fn replace_keeping(
    path: &Path,
    kept: Option<&Path>,
    bytes: &[u8],
    site: &Site<'_>,
    hands: &mut dyn Hands,
) -> Result<(), StepError> {
    let mut note = match read_note(site.directory, site.step, hands.files()) {
        Some(note) => note,
        None => first_note(path, kept, site, hands.files())?,
    };
    let live = sum_of(path, hands.files())?;
    let is_known = live == note.was || live.as_ref().is_none_or(|live| note.made.contains(live));
    if !is_known {
        let reason = "something else has rebuilt it while the step was interrupted; `rubus undo` says what can be done";
        return Err(failed(format!("replace {}", path.display()), reason));
    }
    let made = sum(bytes);
    if !note.made.contains(&made) {
        note.made.push(made);
    }
    // Before anything is touched: a file without a note is taken for another program's.
    let text = serde_json::to_string(&note).map_err(|why| failed("note the step", why))?;
    keep_note(site, &note_name(site.step), &text, hands)?;
    keep(path, kept, &note, bytes.len() as u64, site, hands)?;
    put(path, bytes, site, hands)
}

/// What is the case before the step has touched anything.
fn first_note(
    path: &Path,
    kept: Option<&Path>,
    site: &Site<'_>,
    files: &dyn Files,
) -> Result<Replaced, StepError> {
    let live = sum_of(path, files)?;
    let there = kept.map_or(Ok(None), |kept| sum_of(kept, files))?;
    if site.is_begun_again {
        // By a version that wrote no note: what it has kept is the original.
        return Ok(match (kept, there) {
            (Some(_), Some(original)) => {
                Replaced { was: Some(original), made: live.into_iter().collect() }
            }
            (Some(_), None) => Replaced { was: live, made: Vec::new() },
            (None, _) => Replaced { was: None, made: live.into_iter().collect() },
        });
    }
    let changed = |path: &Path| StepError::Changed { path: path.display().to_string() };
    match (kept, &there) {
        (Some(kept), Some(_)) => Err(changed(kept)),
        (Some(_), None) if live.is_none() => Err(changed(path)),
        // The image of before is the way back of a new one.
        (None, _) if live.is_some() && !make_an_image(site.steps) => Err(changed(path)),
        _ => Ok(Replaced { was: live, made: Vec::new() }),
    }
}

/// Keeps the original under its second name, if that was not done before.
fn keep(
    path: &Path,
    kept: Option<&Path>,
    note: &Replaced,
    new_bytes: u64,
    site: &Site<'_>,
    hands: &mut dyn Hands,
) -> Result<(), StepError> {
    let directory = parent_of(path);
    let tried = format!("keep {}", path.display());
    let original = match kept {
        Some(kept) if sum_of(kept, hands.files())? != note.was => {
            let original = read(path, hands.files())?;
            match original {
                Some(bytes) if Some(sum(&bytes)) == note.was => Some((kept, bytes)),
                _ => return Err(failed(tried, "the original is gone")),
            }
        }
        _ => None,
    };
    let wanted_bytes = new_bytes + original.as_ref().map_or(0, |(_, bytes)| bytes.len() as u64);
    let space = hands.files().space(&directory);
    let space = space.map_err(|why| failed(&tried, why))?;
    if space.available_bytes < wanted_bytes {
        return Err(failed(
            tried,
            format!(
                "{} has {} free, and the old and the new one together take {}; remove what is not needed there",
                directory.display(),
                bytes_iec(space.available_bytes),
                bytes_iec(wanted_bytes)
            ),
        ));
    }
    match original {
        Some((kept, bytes)) => put(kept, &bytes, site, hands),
        None => Ok(()),
    }
}

/// Puts the original back in its place, or removes what the step made where there was none.
///
/// # Errors
/// [`StepError::Work`] where the file is not what the step made, or its original is gone; nothing is touched then.
pub(super) fn put_back(
    path: &Path,
    kept: Option<&Path>,
    site: &Site<'_>,
    hands: &mut dyn Hands,
) -> Result<Receipt, StepError> {
    let tried = format!("put {} back", path.display());
    let note = read_note(site.directory, site.step, hands.files());
    let back = judge(path, kept, note.as_ref(), hands.files())?;
    if let WayBack::Stop(why) = &back {
        return Err(failed(tried, why));
    }
    remove_leftover(&site.fresh_name(path), hands)?;
    if let Some(kept) = kept {
        remove_leftover(&site.fresh_name(kept), hands)?;
    }
    match &back {
        WayBack::Restore => {
            let kept = kept.ok_or_else(|| failed(&tried, "no original was kept"))?;
            let original = read(kept, hands.files())?.unwrap_or_default();
            let space = hands.files().space(&parent_of(path));
            let space = space.map_err(|why| failed(&tried, why))?;
            if space.available_bytes >= original.len() as u64 {
                put(path, &original, site, hands)?;
                hands.remove(kept)?;
            } else {
                // No room for a copy. A power cut in the middle of this may cost the original on FAT, but never the start:
                // what the step made is in its place then, and starts either root.
                hands.rename(kept, path)?;
            }
        }
        WayBack::Remove => hands.remove(path)?,
        WayBack::InPlace => {
            if let Some(kept) = kept {
                let note = note.as_ref();
                let theirs = sum_of(kept, hands.files())?;
                // What is neither whole nor empty was not kept by this step.
                let is_ours = theirs.is_none() || note.is_none_or(|note| note.was == theirs);
                if is_ours && hands.files().exists(kept) {
                    hands.remove(kept)?;
                }
            }
        }
        WayBack::Leave | WayBack::Stop(_) => {}
    }
    let directory = parent_of(path);
    if hands.files().exists(&directory) {
        hands.sync_directory(&directory)?;
    }
    Ok(match back {
        WayBack::Leave => {
            let words = "left as it is: something else has made it since";
            receipt(words, words)
        }
        _ => receipt("as it was", "as it was"),
    })
}

/// Why the original cannot be put back as things are, and what to do; nothing where it can. Only looks.
pub(super) fn obstacle(
    path: &Path,
    kept: Option<&Path>,
    directory: &Path,
    step: usize,
    files: &dyn Files,
) -> Option<String> {
    let note = read_note(directory, step, files);
    match judge(path, kept, note.as_ref(), files) {
        Ok(WayBack::Stop(why)) => Some(format!("{}: {why}", path.display())),
        Ok(_) => None,
        Err(error) => Some(error.to_string()),
    }
}

/// What is there of a step that replaces a file: without its note it has touched nothing.
pub(super) fn trace(
    path: &Path,
    kept: Option<&Path>,
    site: &TraceSite<'_>,
    files: &dyn Files,
) -> Trace {
    if site.has_leftover(path, files) {
        return Trace::Made;
    }
    let Some(note) = read_note(site.directory, site.step, files) else {
        return Trace::Untouched;
    };
    match judge(path, kept, Some(&note), files) {
        Ok(WayBack::InPlace) => Trace::made(kept.is_some_and(|kept| {
            sum_of(kept, files).is_ok_and(|sum| sum.is_some() && sum == note.was)
        })),
        Ok(WayBack::Restore | WayBack::Remove) => Trace::Made,
        Ok(WayBack::Leave) => Trace::Foreign("something else has made it since".into()),
        Ok(WayBack::Stop(why)) => Trace::Foreign(why),
        Err(error) => Trace::Foreign(error.to_string()),
    }
}

fn judge(
    path: &Path,
    kept: Option<&Path>,
    note: Option<&Replaced>,
    files: &dyn Files,
) -> Result<WayBack, StepError> {
    let live = sum_of(path, files)?;
    let original = kept.map_or(Ok(None), |kept| sum_of(kept, files))?;
    let Some(note) = note else {
        return Ok(judge_by_name(live, kept, original, files.exists(path)));
    };
    if live == note.was {
        return Ok(if live.is_none() && files.exists(path) {
            WayBack::Remove
        } else {
            WayBack::InPlace
        });
    }
    let is_ours = live.as_ref().is_none_or(|live| note.made.contains(live));
    let has_original = original.is_some() && original == note.was;
    Ok(match (is_ours, kept) {
        (true, None) => WayBack::Remove,
        (true, Some(_)) if has_original => WayBack::Restore,
        (true, Some(kept)) => WayBack::Stop(format!(
            "the original was kept as {}, which is gone or was changed; make a new one with `sudo update-initramfs -u`, then \
             go on",
            kept.display()
        )),
        (false, Some(kept)) if has_original => WayBack::Stop(format!(
            "it is not the file that this change made: something else has made it since, such as an update of the kernel. To \
             keep it (right after an update of the kernel): `sudo rm {kept}`. To have the original back: `sudo mv {kept} \
             {path}`. Then go on",
            kept = kept.display(),
            path = path.display()
        )),
        (false, _) => WayBack::Leave,
    })
}

/// For changes without a note.
fn judge_by_name(
    live: Option<String>,
    kept: Option<&Path>,
    original: Option<String>,
    exists: bool,
) -> WayBack {
    match kept {
        Some(_) if original.is_some() && original != live => WayBack::Restore,
        // Without a whole one, the original is still in its place.
        Some(_) => WayBack::InPlace,
        None if exists => WayBack::Remove,
        None => WayBack::InPlace,
    }
}

/// Puts bytes in the place of a file: whole and durable under a new name first, then renamed, then read back.
fn put(path: &Path, bytes: &[u8], site: &Site<'_>, hands: &mut dyn Hands) -> Result<(), StepError> {
    replace(path, &site.fresh_name(path), bytes, 0o644, hands)?;
    let live = sum_of(path, hands.files())?.unwrap_or_default();
    if live == sum(bytes) {
        Ok(())
    } else {
        Err(StepError::NotAsWritten { path: path.display().to_string(), wanted: sum(bytes), live })
    }
}

fn note_name(step: usize) -> String {
    format!("{NOTES}{step}.json")
}

fn read_note(directory: &Path, step: usize, files: &dyn Files) -> Option<Replaced> {
    let text = files.text(&directory.join(note_name(step))).ok()?;
    serde_json::from_str(&text).ok()
}

/// The names of the notes in the directory of a change.
pub(super) fn notes_in(directory: &Path, files: &dyn Files) -> Vec<String> {
    let names = files.list(directory).unwrap_or_default();
    let is_note = |name: &String| name.starts_with(NOTES) && name.ends_with(".json");
    names.into_iter().filter(is_note).collect()
}

/// SHA-256 of a file; nothing for one that is absent or empty: on FAT a power cut may leave a name without contents.
fn sum_of(path: &Path, files: &dyn Files) -> Result<Option<String>, StepError> {
    let bytes = read(path, files)?;
    Ok(bytes.filter(|bytes| !bytes.is_empty()).map(|bytes| sum(&bytes)))
}

fn read(path: &Path, files: &dyn Files) -> Result<Option<Vec<u8>>, StepError> {
    match files.read_prefix(path, MAX_BYTES) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(ReadError::Absent) => Ok(None),
        Err(reason) => Err(StepError::Unreadable { path: path.display().to_string(), reason }),
    }
}

/// SHA-256 in hexadecimal digits.
pub(super) fn sum(mut bytes: &[u8]) -> String {
    // Reading from memory does not fail.
    digest::sha256(&mut bytes).map(|(sum, _)| sum).unwrap_or_default()
}

#[cfg(test)]
#[path = "kept_tests.rs"]
mod tests;
