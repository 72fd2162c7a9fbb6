//! Owner, mode, attributes, times and flags of an entry: the same in the target as in the source.
//!
//! The order matters: a change of owner takes capabilities and set-user-id away, a change of mode rewrites an access
//! control list, every change but that of the times changes the times of the directory above at most, and after the
//! flags nothing can be changed any more.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use crate::receipt::path_text;
use rubus_host::files::copy_io::{Flags, Kind, Meta, Place, Reason, Times};

use super::trouble::Trouble;

/// What was done to an entry besides its contents.
#[derive(Clone, Debug, Default)]
pub(super) struct AppliedMetadata {
    pub(super) attributes: u64,
    pub(super) is_flagged: bool,
    /// What the target cannot keep.
    pub(super) skipped: Vec<String>,
    /// What should have been kept and was not.
    pub(super) lost: Vec<String>,
}

/// Attributes that belong to one filesystem, and mean something else or nothing on another.
pub(super) fn is_foreign(name: &OsStr) -> bool {
    let name = name.as_bytes();
    let is_list = name == b"system.posix_acl_access" || name == b"system.posix_acl_default";
    name.starts_with(b"btrfs.") || (name.starts_with(b"system.") && !is_list)
}

/// Gives the target what the source has.
pub(super) fn apply_metadata(
    source: Place<'_>,
    target: Place<'_>,
    meta: &Meta,
) -> Result<AppliedMetadata, Trouble> {
    let mut applied = AppliedMetadata::default();
    applied.note(target.set_owner(meta.owner, meta.group).map_err(Trouble::Target))?;
    if meta.kind != Kind::Link {
        applied.note(target.set_mode(meta.mode).map_err(Trouble::Target))?;
    }
    set_attributes(source, target, &mut applied)?;
    let times = Times { accessed: meta.accessed, modified: meta.modified };
    applied.note(target.set_times(&times).map_err(Trouble::Target))?;
    if matches!(meta.kind, Kind::File | Kind::Directory) {
        set_flags(source, target, &mut applied)?;
    }
    Ok(applied)
}

/// Sets the flags that decide how contents are stored, before there are any.
pub(super) fn prepare(source: Place<'_>, target: Place<'_>, applied: &mut AppliedMetadata) {
    let Ok(flags) = source.flags() else { return };
    let wanted = flags.and(Flags::BEFORE_DATA);
    if wanted.is_empty() {
        return;
    }
    let set = target.flags().and_then(|present| target.set_flags(present.or(wanted)));
    match set {
        Ok(()) => applied.is_flagged = true,
        Err(_) => applied.skipped.push(format!(
            "the flags '{}' are not known to the target's filesystem",
            wanted.letters()
        )),
    }
}

impl AppliedMetadata {
    /// Ends with what is fatal or gone, and keeps what is only sad.
    fn note(&mut self, result: Result<(), Trouble>) -> Result<(), Trouble> {
        match result {
            Ok(()) => Ok(()),
            Err(trouble) if trouble.is_fatal() || trouble.is_gone() => Err(trouble),
            Err(trouble) => {
                self.lost.push(trouble.words());
                Ok(())
            }
        }
    }
}

fn set_attributes(
    source: Place<'_>,
    target: Place<'_>,
    applied: &mut AppliedMetadata,
) -> Result<(), Trouble> {
    let names = match source.attributes() {
        Ok(names) => names,
        Err(failure) if failure.reason() == Reason::Unsupported => Vec::new(),
        Err(failure) => return applied.note(Err(Trouble::Source(failure))),
    };
    for name in &names {
        if is_foreign(name) {
            let text = path_text(name.as_bytes());
            applied.skipped.push(format!("the attribute {text} belongs to its filesystem"));
            continue;
        }
        let value = match source.attribute(name) {
            Ok(value) => value,
            // Removed meanwhile: the file's time of change tells the next pass.
            Err(_) if !still_has(source, name) => continue,
            Err(failure) => {
                applied.note(Err(Trouble::Source(failure)))?;
                continue;
            }
        };
        match target.set_attribute(name, &value) {
            Ok(()) => applied.attributes += 1,
            // "No space" may mean that the target has no room for such a long value, though it has for
            // data.
            Err(failure) if failure.reason() == Reason::Device => {
                return Err(Trouble::Target(failure));
            }
            Err(failure) => {
                let text = path_text(name.as_bytes());
                applied.lost.push(format!("the attribute {text}: {failure}"));
            }
        }
    }
    remove_others(target, &names);
    Ok(())
}

fn still_has(place: Place<'_>, name: &OsStr) -> bool {
    place.attributes().is_ok_and(|names| names.iter().any(|n| n == name))
}

/// Removes what the target got from a directory's default list, or has from an earlier pass.
fn remove_others(target: Place<'_>, names: &[std::ffi::OsString]) {
    for name in target.attributes().unwrap_or_default() {
        if !names.contains(&name) && !is_foreign(&name) {
            // A label that the kernel itself puts on every file cannot be removed, and need not be.
            let _ = target.remove_attribute(&name);
        }
    }
}

fn set_flags(
    source: Place<'_>,
    target: Place<'_>,
    applied: &mut AppliedMetadata,
) -> Result<(), Trouble> {
    let Ok(flags) = source.flags() else {
        return Ok(());
    };
    let wanted = flags.and(Flags::KEPT);
    let unknown = flags.without(Flags::KEPT).without(Flags::BEFORE_DATA).without(Flags::INTERNAL);
    if !unknown.is_empty() {
        applied.skipped.push(format!("the flags '{}' belong to its filesystem", unknown.letters()));
    }
    let present = match target.flags() {
        Ok(present) => present,
        Err(_) if wanted.is_empty() => return Ok(()),
        Err(failure) => {
            applied.lost.push(format!("the flags '{}': {failure}", wanted.letters()));
            return Ok(());
        }
    };
    let aim = present.without(Flags::KEPT).or(wanted);
    if aim != present {
        match target.set_flags(aim) {
            Ok(()) => {}
            Err(failure) if failure.reason() == Reason::Device => {
                return Err(Trouble::Target(failure));
            }
            Err(failure) => {
                applied.lost.push(format!("the flags '{}': {failure}", wanted.letters()))
            }
        }
    }
    applied.is_flagged |= !wanted.is_empty();
    Ok(())
}
