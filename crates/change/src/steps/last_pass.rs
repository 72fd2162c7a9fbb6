//! The last pass of a copy, and the look whether everything is there.
//!
//! A running system goes on changing between the pass and the look. What has changed since the pass began explains its
//! difference, and is told; a difference that nothing explains, and that another pass does not end, is a fault.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use rubus_copy::receipt::{Comparison, CopyReceipt, path_bytes};
use rubus_host::clock;
use rubus_host::files::copy_io::Directory;
use rubus_vocabulary::units::{bytes_iec, counted};

use super::copied::{Onto, Told, in_a_change, losses, words};
use rubus_copy::run::{CompareOptions, CopyOptions, Paths, compare, copy};

/// How much of the contents is read again.
const SAMPLE_BYTES: u64 = 64 << 20;
/// As many differences are named.
const MAX_NAMED: usize = 12;

/// One source that is brought over to its copy for the last time.
pub(super) struct LastPass<'a> {
    pub(super) source: &'a Path,
    pub(super) target: &'a Path,
    pub(super) excludes: Paths,
    pub(super) onto: Onto,
    pub(super) stop: Arc<AtomicBool>,
}

/// Differences, by whether something explains them.
#[derive(Debug, Default, PartialEq, Eq)]
struct Judged {
    explained: Vec<String>,
    unexplained: Vec<String>,
    /// How many were counted and not named.
    unnamed: u64,
}

impl LastPass<'_> {
    /// Copies what has changed and compares; says what was done and found, for the receipt.
    ///
    /// # Errors
    /// What cannot be copied, changes all the time, or differs although it did not change.
    pub(super) fn go(&self, tell: Told<'_>) -> Result<String, String> {
        let (mut copied, mut begun_s) = self.copy(tell)?;
        let (mut found, mut judged) = self.compare(begun_s, tell)?;
        if !judged.is_fine() {
            // A clock that was set back hides that something has changed; another pass then ends the difference.
            (copied, begun_s) = self.copy(tell)?;
            (found, judged) = self.compare(begun_s, tell)?;
        }
        if judged.is_fine() {
            Ok(format!("{}; {}", words(&copied), judged.found(&found)))
        } else {
            Err(judged.fault())
        }
    }

    /// What has changed since, again and again, until nothing changes under the copy's hands but logs; and when the last
    /// time began, in seconds since 1970.
    fn copy(&self, tell: Told<'_>) -> Result<(CopyReceipt, i64), String> {
        const TRIES: usize = 3;
        let options = CopyOptions {
            excludes: self.excludes.clone(),
            again: true,
            is_whole: true,
            stop: Some(Arc::clone(&self.stop)),
            ..CopyOptions::default()
        };
        let mut last = CopyReceipt::default();
        let mut begun_s = 0;
        for _ in 0..TRIES {
            begun_s = clock::date_s();
            let done = copy(self.source, self.target, &options, &mut |progress| tell(&progress));
            last = done.map_err(|error| in_a_change(error, self.onto))?;
            if last.has_losses() {
                return Err(losses(&last));
            }
            if last.is_complete() {
                return Ok((last, begun_s));
            }
        }
        let restless = last.changed.examples.iter().map(String::as_str);
        let restless: Vec<&str> = restless.filter(|path| !may_be_torn(path)).collect();
        if restless.is_empty() {
            Ok((last, begun_s))
        } else {
            Err(format!(
                "{} all the time ({}); stop what writes there, and apply the plan again",
                counted(restless.len() as u64, "file changes", "files change"),
                restless[..restless.len().min(3)].join(", ")
            ))
        }
    }

    fn compare(&self, begun_s: i64, tell: Told<'_>) -> Result<(Comparison, Judged), String> {
        let options = CompareOptions {
            excludes: self.excludes.clone(),
            sample_bytes: SAMPLE_BYTES,
            stop: Some(Arc::clone(&self.stop)),
            ..CompareOptions::default()
        };
        let found = compare(self.source, self.target, &options, &mut |progress| tell(&progress));
        let found = found.map_err(|error| in_a_change(error, self.onto))?;
        let source = Directory::open_root(self.source).map_err(|error| error.to_string())?;
        let is_explained =
            |path: &str| may_be_torn(path) || has_changed(&source, &path_bytes(path), begun_s);
        let judged = judge(&found, &is_explained);
        Ok((found, judged))
    }
}

fn judge(found: &Comparison, is_explained: &dyn Fn(&str) -> bool) -> Judged {
    let differences = &found.differences;
    let mut judged = Judged {
        unnamed: differences.count - differences.examples.len() as u64,
        ..Judged::default()
    };
    for difference in &differences.examples {
        let path = match difference.path.as_str() {
            "" => "the root itself",
            path => path,
        };
        let line = format!("{path} {}", difference.what);
        if is_explained(&difference.path) {
            judged.explained.push(line)
        } else {
            judged.unexplained.push(line)
        }
    }
    judged
}

impl Judged {
    fn is_fine(&self) -> bool {
        self.unexplained.is_empty() && self.unnamed == 0
    }

    /// What was found, where everything is explained.
    fn found(&self, found: &Comparison) -> String {
        let compared = format!(
            "compared {} and {} of contents",
            counted(found.entries.all(), "entry", "entries"),
            bytes_iec(found.compared_bytes)
        );
        if self.explained.is_empty() {
            format!("{compared}: no difference")
        } else {
            format!(
                "{compared}: {} changed since: {}",
                self.explained.len(),
                named(&self.explained)
            )
        }
    }

    fn fault(&self) -> String {
        let which = counted(
            self.unexplained.len() as u64 + self.unnamed,
            "entry of the copy is not as it is",
            "entries of the copy are not as they are",
        );
        format!(
            "{which} on the running root, and did not change meanwhile: {}; the disk may be damaged: look at the kernel log",
            named(&self.unexplained)
        )
    }
}

fn named(lines: &[String]) -> String {
    let mut text = lines[..lines.len().min(MAX_NAMED)].join(", ");
    if lines.len() > MAX_NAMED {
        text += &format!(" and {} more", lines.len() - MAX_NAMED);
    }
    text
}

/// Whether an entry, or the nearest directory above it that is still there, was changed since then. The kernel alone
/// dates such a change. A second is allowed for, since it dates with a clock that stands still between its ticks.
fn has_changed(source: &Directory, path: &[u8], since_s: i64) -> bool {
    let is_new = |changed_s: i64| changed_s >= since_s - 1;
    let split = path.iter().rposition(|&byte| byte == b'/');
    let (parent, name) = match split {
        Some(at) => (&path[..at], &path[at + 1..]),
        None => (&[][..], path),
    };
    if name.is_empty() {
        return source.look().is_ok_and(|meta| is_new(meta.changed.seconds));
    }
    let entry =
        source.open_beneath(parent).and_then(|parent| parent.look_at(OsStr::from_bytes(name)));
    match entry {
        Ok(meta) => is_new(meta.changed.seconds),
        Err(_) => has_changed(source, parent, since_s),
    }
}

/// Files that are only added to, or that are made again when they are missing: a copy that lacks the last moment is
/// as good.
fn may_be_torn(path: &str) -> bool {
    const PLACES: [&str; 4] = ["var/log/", "var/cache/", "var/tmp/", "var/lib/systemd/"];
    let path = path.trim_start_matches('/');
    PLACES.iter().any(|place| path.starts_with(place))
}

#[cfg(test)]
#[path = "last_pass_tests.rs"]
mod tests;
