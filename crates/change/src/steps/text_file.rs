//! One step, done or undone. Each looks first whether it is already where it should be, so that it
//! can be begun again after any interruption, and reads back afterwards what it did.

use std::path::Path;

use crate::plan::diff::{Line, lines};
use crate::plan::journal::Receipt;
use crate::plan::volume::{FilesystemKind, Volume};
use crate::plan::{Action, Plan, TextFile, knob_says};
use rubus_boot::cmdline_txt::{is_command_line, taken_back};
use rubus_host::hands::{self, parent_of};
use rubus_host::{Files, Hands, ReadError};

use super::{ApplyContext, Change, Event, Progress, Site, StepError, StepRunner};

/// Does a step of a change.
///
/// # Errors
/// [`StepError`]; the step is then undone by [`undo`] like any other.
pub(super) fn apply(
    change: &Change,
    step: usize,
    action: &Action,
    hands: &mut dyn Hands,
    context: &mut ApplyContext<'_>,
) -> Result<Receipt, StepError> {
    if let Some(done) = apply_to_file(action, Path::new("/"), &change.temporary(step), hands) {
        return done;
    }
    with_site(change, step, context, |step_runner, site| match action {
        Action::On { volume, action, .. } => {
            let top = step_runner.mount(volume, site)?;
            let done = apply_to_file(action, &top, &change.temporary(step), hands);
            done.unwrap_or_else(|| step_runner.apply(&below(action, &top), site, hands))
        }
        action => step_runner.apply(action, site, hands),
    })
}

/// Undoes a step that was done, half done, or only announced.
///
/// # Errors
/// [`StepError`]; nothing is lost then.
pub(super) fn undo(
    change: &Change,
    step: usize,
    action: &Action,
    hands: &mut dyn Hands,
    context: &mut ApplyContext<'_>,
) -> Result<Receipt, StepError> {
    let temporary = change.temporary(step);
    if let Some(done) = undo_on_file(action, Path::new("/"), &temporary, hands) {
        return done;
    }
    if let Action::On { volume, action, is_undone: true } = action {
        let back = with_site(change, step, context, |step_runner, site| {
            let top = step_runner.mount(volume, site)?;
            let done = undo_on_file(action, &top, &temporary, hands);
            done.unwrap_or_else(|| step_runner.undo(&below(action, &top), site, hands))
        });
        return match (back, volume.kind) {
            (Err(error), FilesystemKind::Vfat) => Ok(boot_copy_left(volume, &error, context)),
            (Err(error), _) if is_made_by(&change.plan, volume) => {
                Ok(new_root_left(volume, &error, context))
            }
            (back, _) => back,
        };
    }
    if let Action::On { .. } = action {
        // The filesystem is one that this plan made: it stays as it is, and is not used any more.
        return Ok(left());
    }
    with_site(change, step, context, |step_runner, site| step_runner.undo(action, site, hands))
}

fn left() -> Receipt {
    Receipt { planned: "left as it is".into(), live: "left as it is".into() }
}

/// A copy of the boot partition that cannot be changed back, since its disk is not there: no reason to stop, but it has to
/// be known.
fn boot_copy_left(volume: &Volume, error: &StepError, context: &mut ApplyContext<'_>) -> Receipt {
    let words = format!(
        "{} may still start the new root ({error}); before a board with that disk is started again, give its command line the \
         contents of the one on the card, or take the disk off",
        volume.title
    );
    (context.tell)(Event::Remark { words: &words });
    left()
}

/// Whether a filesystem is one that a plan makes.
fn is_made_by(plan: &Plan, volume: &Volume) -> bool {
    plan.steps.iter().any(|step| {
        matches!(&step.action, Action::Format { filesystem, .. } if filesystem.uuid == volume.uuid)
    })
}

/// A new root that cannot be changed back, since its disk is not there: nothing starts it any more.
fn new_root_left(volume: &Volume, error: &StepError, context: &mut ApplyContext<'_>) -> Receipt {
    let words = format!(
        "{} still names itself as the root ({error}); should it be started again, an update there would make that last",
        volume.title
    );
    (context.tell)(Event::Remark { words: &words });
    left()
}

/// Tells whoever has a copy of the journal how far the change has come.
///
/// # Errors
/// [`StepError`] when somebody cannot be told.
pub(super) fn tell_others(
    change: &Change,
    hands: &mut dyn Hands,
    context: &mut ApplyContext<'_>,
) -> Result<(), StepError> {
    let last = change.plan.steps.len().saturating_sub(1);
    with_site(change, last, context, |step_runner, site| step_runner.tell_others(site, hands))
}

/// A work on a filesystem that is mounted elsewhere, with its path as it is from here.
fn below(action: &Action, top: &Path) -> Action {
    let place = |path: &Path| hands::below(top, path);
    match action {
        Action::MakeSwapFile { path, size_bytes } => {
            Action::MakeSwapFile { path: place(path), size_bytes: *size_bytes }
        }
        Action::BuildInitramfs { root, release, path, kept, modules, files } => {
            Action::BuildInitramfs {
                root: root.clone(),
                release: release.clone(),
                path: place(path),
                kept: kept.as_deref().map(place),
                modules: modules.clone(),
                files: files.clone(),
            }
        }
        // What is installed is in the running system's boot partition.
        other => other.clone(),
    }
}

fn with_site<T>(
    change: &Change,
    step: usize,
    context: &mut ApplyContext<'_>,
    act: impl FnOnce(&mut dyn StepRunner, &mut Site<'_>) -> T,
) -> T {
    let consents = change.consents();
    let tell = &mut *context.tell;
    let mut tell = |progress: Progress| {
        tell(Event::Progress { step, progress: &progress });
    };
    let mut site = Site {
        change: &change.name,
        directory: change.directory(),
        plan: &change.plan,
        step,
        is_begun_again: change.was_begun_before(step),
        consents: &consents,
        tell: &mut tell,
    };
    act(&mut *context.step_runner, &mut site)
}

/// Does an action on files and knobs, whose paths begin at `top`; nothing for other actions. `temporary`
/// is the name of a file beside its place that no one else uses.
fn apply_to_file(
    action: &Action,
    top: &Path,
    temporary: &str,
    hands: &mut dyn Hands,
) -> Option<Result<Receipt, StepError>> {
    let place = |path: &Path| hands::below(top, path);
    Some(match action {
        Action::MakeDirectory { path } => make_directory(&place(path), hands),
        Action::WriteFile { path, was, becomes } => {
            put(&place(path), was.as_ref(), Some(becomes), temporary, hands)
        }
        Action::RemoveFile { path, was } => put(&place(path), Some(was), None, temporary, hands),
        Action::SetKnob { path, becomes, .. } => set_knob(path, becomes, hands),
        Action::SetLink { path, was, becomes } => {
            set_link(&place(path), was.as_deref(), becomes.as_deref(), temporary, hands)
        }
        _ => return None,
    })
}

fn undo_on_file(
    action: &Action,
    top: &Path,
    temporary: &str,
    hands: &mut dyn Hands,
) -> Option<Result<Receipt, StepError>> {
    let place = |path: &Path| hands::below(top, path);
    Some(match action {
        Action::MakeDirectory { path } => remove_directory(&place(path), hands),
        Action::WriteFile { path, was, becomes } => {
            put_text_back(&place(path), Some(becomes), was.as_ref(), temporary, hands)
        }
        Action::RemoveFile { path, was } => {
            put_text_back(&place(path), None, Some(was), temporary, hands)
        }
        Action::SetKnob { path, was, .. } => set_knob(path, was, hands),
        Action::SetLink { path, was, becomes } => {
            set_link(&place(path), becomes.as_deref(), was.as_deref(), temporary, hands)
        }
        _ => return None,
    })
}

/// Why an action on files cannot be undone as things are; nothing where it can, and for other actions. Only looks.
pub(super) fn obstacle(action: &Action, files: &dyn Files) -> Option<StepError> {
    let of = |path: &Path, from: Option<&TextFile>, to: Option<&TextFile>| {
        way_back(path, from, to, files).err()
    };
    match action {
        Action::WriteFile { path, was, becomes } => of(path, Some(becomes), was.as_ref()),
        Action::RemoveFile { path, was } => of(path, None, Some(was)),
        Action::SetLink { path, was, becomes } => {
            let live = files.link(path).ok();
            let is_known = live == *was || live == *becomes;
            (!is_known).then(|| StepError::NotOurs {
                path: path.display().to_string(),
                how: "the link leads elsewhere".into(),
            })
        }
        _ => None,
    }
}

/// Brings a text back to what it was before the change. Words that others have added to a command line stay.
fn put_text_back(
    path: &Path,
    ours: Option<&TextFile>,
    was: Option<&TextFile>,
    temporary: &str,
    hands: &mut dyn Hands,
) -> Result<Receipt, StepError> {
    let (from, to) = way_back(path, ours, was, hands.files())?;
    let mut receipt = put(path, from.as_ref(), to.as_ref(), temporary, hands)?;
    if to.as_ref() != was {
        receipt.live += ", with the words that others have added";
        receipt.planned.clone_from(&receipt.live);
    }
    Ok(receipt)
}

type FromTo = (Option<TextFile>, Option<TextFile>);

/// From what to what a text is brought by undoing.
fn way_back(
    path: &Path,
    ours: Option<&TextFile>,
    was: Option<&TextFile>,
    files: &dyn Files,
) -> Result<FromTo, StepError> {
    let keeps_modes = files.keeps_modes(&parent_of(path));
    let now = read(path, files)?;
    let is_emptied = !keeps_modes && now.as_ref().is_some_and(|file| file.text.is_empty());
    let is_known = is_emptied
        || is_same(now.as_ref(), ours, keeps_modes)
        || is_same(now.as_ref(), was, keeps_modes);
    if is_known {
        return Ok((ours.cloned(), was.cloned()));
    }
    let not_ours = |how: String| StepError::NotOurs { path: path.display().to_string(), how };
    match (now, ours, was) {
        (Some(now), Some(ours), Some(was)) if is_command_line(path) => {
            let text = taken_back(&was.text, &ours.text, &now.text).map_err(not_ours)?;
            let back = TextFile { text, mode: now.mode };
            Ok((Some(now), Some(back)))
        }
        (now, ours, _) => Err(not_ours(how_it_differs(ours, now.as_ref(), keeps_modes))),
    }
}

/// In what a file is not as the change left it, in a few words.
fn how_it_differs(ours: Option<&TextFile>, now: Option<&TextFile>, keeps_modes: bool) -> String {
    const MAX_LINES: usize = 4;
    let (ours, now) = match (ours, now) {
        (Some(ours), Some(now)) => (ours, now),
        (None, Some(_)) => return "this change removed it, and it is there again".into(),
        (_, None) => return "it is gone".into(),
    };
    if ours.text == now.text && keeps_modes {
        return format!("its mode is {:o} and was {:o}", now.mode, ours.mode);
    }
    let all = lines(&ours.text, &now.text);
    let changed: Vec<String> = all
        .into_iter()
        .filter_map(|line| match line {
            Line::Same(_) => None,
            Line::Removed(text) => Some(format!("gone: '{}'", text.trim())),
            Line::Added(text) => Some(format!("new: '{}'", text.trim())),
        })
        .collect();
    let mut words = changed[..changed.len().min(MAX_LINES)].join(", ");
    if changed.len() > MAX_LINES {
        words += &format!(" and {} more lines", changed.len() - MAX_LINES);
    }
    words
}

/// Brings a link from one target to another, or from or to nothing.
fn set_link(
    path: &Path,
    from: Option<&Path>,
    to: Option<&Path>,
    temporary: &str,
    hands: &mut dyn Hands,
) -> Result<Receipt, StepError> {
    let directory = parent_of(path);
    let temporary = directory.join(temporary);
    if hands.files().link(&temporary).is_ok() {
        hands.remove(&temporary)?;
    }
    let live = |hands: &dyn Hands| match hands.files().link(path) {
        Ok(target) => Ok(Some(target)),
        Err(ReadError::Absent) => Ok(None),
        Err(reason) => Err(StepError::Unreadable { path: path.display().to_string(), reason }),
    };
    let now = live(hands)?;
    if now.as_deref() != to {
        if now.as_deref() != from {
            return Err(StepError::Changed { path: path.display().to_string() });
        }
        match to {
            None => hands.remove(path)?,
            Some(target) => {
                hands.make_link(&temporary, target)?;
                hands.rename(&temporary, path)?;
            }
        }
    }
    if hands.files().exists(&directory) {
        hands.sync_directory(&directory)?;
    }
    let words = |target: Option<&Path>| match target {
        Some(target) => format!("a link to {}", target.display()),
        None => "absent".into(),
    };
    let (planned, live) = (words(to), words(live(hands)?.as_deref()));
    if planned != live {
        return Err(StepError::NotAsWritten {
            path: path.display().to_string(),
            wanted: planned,
            live,
        });
    }
    Ok(Receipt { planned, live })
}

/// Brings a path from one text to another, or from or to nothing. What is neither is somebody
/// else's work and stays.
fn put(
    path: &Path,
    from: Option<&TextFile>,
    to: Option<&TextFile>,
    temporary: &str,
    hands: &mut dyn Hands,
) -> Result<Receipt, StepError> {
    let directory = parent_of(path);
    let temporary = directory.join(temporary);
    hands::remove_leftover(&temporary, hands)?;
    let keeps_modes = hands.files().keeps_modes(&directory);
    let now = read(path, hands.files())?;
    if !is_same(now.as_ref(), to, keeps_modes) {
        // On FAT a power cut, or `fsck.vfat -a` after one, may leave the name without contents: nobody's work is in it.
        let is_emptied = !keeps_modes && now.as_ref().is_some_and(|file| file.text.is_empty());
        if !is_emptied && !is_same(now.as_ref(), from, keeps_modes) {
            return Err(StepError::Changed { path: path.display().to_string() });
        }
        match to {
            None => hands.remove(path)?,
            Some(file) => {
                let like = from.map(|_| path);
                hands.write_new(&temporary, file.text.as_bytes(), file.mode, like)?;
                hands.rename(&temporary, path)?;
            }
        }
    }
    // Also where nothing had to be done: what an interrupted step did may not be durable yet.
    if hands.files().exists(&directory) {
        hands.sync_directory(&directory)?;
    }
    let live = read(path, hands.files())?;
    if !is_same(live.as_ref(), to, keeps_modes) {
        return Err(StepError::NotAsWritten {
            path: path.display().to_string(),
            wanted: describe(to),
            live: describe(live.as_ref()),
        });
    }
    Ok(Receipt { planned: describe(to), live: describe(live.as_ref()) })
}

/// Whether two are the same as far as their filesystem can tell.
fn is_same(one: Option<&TextFile>, other: Option<&TextFile>, keeps_modes: bool) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => {
            one.text == other.text && (!keeps_modes || one.mode == other.mode)
        }
        (one, other) => one.is_none() == other.is_none(),
    }
}

fn read(path: &Path, files: &dyn Files) -> Result<Option<TextFile>, StepError> {
    const MAX_BYTES: usize = 1 << 20;
    let unreadable = |reason| StepError::Unreadable { path: path.display().to_string(), reason };
    let bytes = match files.read_prefix(path, MAX_BYTES) {
        Ok(bytes) => bytes,
        Err(ReadError::Absent) => return Ok(None),
        Err(reason) => return Err(unreadable(reason)),
    };
    Ok(Some(TextFile {
        text: String::from_utf8_lossy(&bytes).into_owned(),
        mode: files.mode(path).map_err(unreadable)?,
    }))
}

fn describe(file: Option<&TextFile>) -> String {
    match file {
        None => "absent".into(),
        Some(file) => format!("{} bytes, mode {:o}", file.text.len(), file.mode),
    }
}

fn make_directory(path: &Path, hands: &mut dyn Hands) -> Result<Receipt, StepError> {
    if !hands.files().exists(path) {
        hands.make_directory(path)?;
    }
    hands.sync_directory(&parent_of(path))?;
    Ok(there())
}

/// A directory in which somebody has put something stays.
fn remove_directory(path: &Path, hands: &mut dyn Hands) -> Result<Receipt, StepError> {
    let is_empty = hands.files().list(path).map(|names| names.is_empty());
    if is_empty == Ok(true) {
        hands.remove_directory(path)?;
    }
    let parent = parent_of(path);
    if hands.files().exists(&parent) {
        hands.sync_directory(&parent)?;
    }
    Ok(match hands.files().exists(path) {
        true => there(),
        false => Receipt { planned: "absent".into(), live: "absent".into() },
    })
}

fn there() -> Receipt {
    Receipt { planned: "a directory".into(), live: "a directory".into() }
}

fn set_knob(path: &Path, wanted: &str, hands: &mut dyn Hands) -> Result<Receipt, StepError> {
    let mut live = knob(path, hands)?;
    if !knob_says(&live, wanted) {
        hands.set_knob(path, wanted)?;
        live = knob(path, hands)?;
    }
    if !knob_says(&live, wanted) {
        return Err(StepError::Ignored {
            path: path.display().to_string(),
            wanted: wanted.into(),
            live,
        });
    }
    Ok(Receipt { planned: wanted.into(), live })
}

fn knob(path: &Path, hands: &dyn Hands) -> Result<String, StepError> {
    hands
        .files()
        .text(path)
        .map_err(|reason| StepError::Unreadable { path: path.display().to_string(), reason })
}
