//! Copying a disk to another disk, from the journal to what is said at its end.

use std::sync::atomic::AtomicBool;

use rubus_host::clock::monotonic_ns;
use rubus_host::files::kept_file;
use rubus_host::process::standard_error;
use rubus_vocabulary::units::{bytes_iec, percent};

use super::destination::{CopyRequest, Destination};
use super::kept_journal::WhenBegun;
use super::source::Source;
use crate::copy::grid::{Grid, Ledger};
use crate::copy::journal::Head;
use crate::copy::{CopyError, End, Keeper, Options, Progress, compare, copy, cut, recheck};
use crate::disk_copy::{DiskCopy, DiskCopyProgress};

/// The size of requests: a quarter of a mebibyte keeps a link and a disk busy, and sixteen of them are little
/// memory.
const REQUEST_BYTES: u64 = 256 << 10;

/// A copy whose both ends are open.
pub struct DiskCopying {
    source: Source,
    destination: Destination,
    grid: Grid,
    ledger: Ledger,
    options: Options,
    verify: bool,
}

impl DiskCopying {
    /// Begins, or goes on where an earlier run ended.
    ///
    /// # Errors
    /// When the destination is too small, or the journal is about another copy.
    pub fn begin(
        source: Source,
        destination: Destination,
        request: &CopyRequest,
    ) -> anyhow::Result<DiskCopying> {
        let grid = cut(&source.end, &destination.end, REQUEST_BYTES)?;
        let ledger = Ledger::new(grid);
        if let Some(journal) = &destination.journal {
            let head = Head { source: source.mark.clone(), target: destination.mark.clone(), grid };
            let when = match destination.names {
                Some(_) => WhenBegun::WithSections,
                None => WhenBegun::AtOnce,
            };
            journal.begin(&head, &ledger, when)?;
        }
        Ok(DiskCopying {
            options: Options {
                connections: request.connections,
                depth: request.depth,
                target_is_zero: destination.is_zero,
                has_digests: request.verify || destination.journal.is_some(),
                skips_unreadable: request.skip_unreadable,
            },
            verify: request.verify,
            source,
            destination,
            grid,
            ledger,
        })
    }

    /// Copies, and reads back if that is wanted.
    ///
    /// # Errors
    /// Why it ended early; [`DiskCopying::end`] puts it into words.
    pub fn run(
        &self,
        cancel: &AtomicBool,
        tell: &dyn Fn(&DiskCopyProgress),
    ) -> Result<DiskCopy, CopyError> {
        self.work(cancel, tell).run(self.verify)
    }

    fn work<'a>(&'a self, cancel: &'a AtomicBool, tell: &'a dyn Fn(&DiskCopyProgress)) -> Work<'a> {
        Work {
            source: &self.source,
            destination: &self.destination,
            grid: self.grid,
            ledger: &self.ledger,
            options: &self.options,
            cancel,
            tell,
        }
    }

    /// Gives a file its name and removes the journal. Nothing when it was interrupted, which is said on standard error.
    ///
    /// # Errors
    /// In words, with how far it came.
    pub fn end(self, outcome: Result<DiskCopy, CopyError>) -> anyhow::Result<Option<DiskCopy>> {
        match outcome {
            Ok(done) => finish(done, &self.ledger, self.destination).map(Some),
            Err(error) => not_done(error, &self.ledger, &self.destination).map(|()| None),
        }
    }
}

struct Work<'a> {
    source: &'a Source,
    destination: &'a Destination,
    grid: Grid,
    ledger: &'a Ledger,
    options: &'a Options,
    cancel: &'a AtomicBool,
    tell: &'a dyn Fn(&DiskCopyProgress),
}

impl Work<'_> {
    fn run(&self, verify: bool) -> Result<DiskCopy, CopyError> {
        let (source, target) = (&self.source.end, &self.destination.end);
        let written_at = self.source.written_at();
        let keeper = self.destination.journal.as_ref();
        let keeper = keeper.map(|journal| journal as &dyn Keeper);
        let mut tell = |progress: Progress| self.tell(progress);
        let book = (self.grid, self.ledger);
        let mut remarks = self.source.remarks.clone();
        if self.ledger.done_bytes() > 0 && source.may_have_changed() {
            remarks.extend(self.recheck(verify, &mut tell)?);
        }
        let resumed_bytes = self.ledger.done_bytes();
        let began_ns = monotonic_ns();
        let connections = copy(source, target, book, self.options, keeper, self.cancel, &mut tell)?;
        let copy_s = since_s(began_ns);
        let mut done = DiskCopy {
            size_bytes: self.grid.size_bytes,
            destination_bytes: target.size_bytes(),
            data_bytes: self.ledger.data_bytes(),
            connections: connections as u32,
            copy_s,
            is_durable: target.can_flush(),
            unreadable: self.ledger.unreadable(),
            resumed_bytes,
            remarks,
            ..DiskCopy::default()
        };
        if verify {
            let began_ns = monotonic_ns();
            done.different = self.read_back(&mut tell)?;
            done.verify_s = Some(since_s(began_ns));
        }
        if written_at != self.source.written_at() {
            done.is_doubtful = true;
            done.remarks.push(format!(
                "{} was written to while it was copied: the copy may be of no single moment",
                source.name()
            ));
        }
        for end in [source, target] {
            if let End::Export(export) = end {
                export.end();
            }
        }
        Ok(done)
    }

    /// The places of the destination that are not what was copied. If that does not end, another run can begin with it.
    fn read_back(&self, tell: &mut dyn FnMut(Progress)) -> Result<Vec<(u64, u64)>, CopyError> {
        let target = &self.destination.end;
        if let End::Image { image, .. } = target {
            // Where that cannot be done, memory is read.
            let _ = image.forget();
        }
        let book = (self.grid, self.ledger);
        let compared = compare(target, book, self.options, self.cancel, tell);
        if compared.is_err() {
            keep_the_rest(self.ledger, self.destination)?;
        }
        compared
    }

    /// Whether the source is still what the earlier run has copied; what is not is copied again. Gives what has to
    /// be said.
    fn recheck(
        &self,
        verify: bool,
        tell: &mut dyn FnMut(Progress),
    ) -> Result<Option<String>, CopyError> {
        let source = &self.source.end;
        if !verify {
            return Ok(Some(format!(
                "{} may have been written to since the earlier run, which --no-verify does not look for: \
                 the copy may be of no single moment",
                source.name()
            )));
        }
        let book = (self.grid, self.ledger);
        let changed = recheck(source, book, self.options, self.cancel, tell)?;
        Ok((changed > 0).then(|| {
            format!(
                "{} was written to since the earlier run: {} were copied again",
                source.name(),
                bytes_iec(changed)
            )
        }))
    }

    fn tell(&self, progress: Progress) {
        (self.tell)(&DiskCopyProgress {
            is_verifying: progress.is_verifying,
            done_bytes: progress.done_bytes,
            size_bytes: progress.size_bytes,
            before_bytes: progress.before_bytes,
            elapsed_s: progress.elapsed_s,
        });
    }
}

fn since_s(began_ns: u64) -> f64 {
    (monotonic_ns() - began_ns) as f64 / 1e9
}

/// Records what is on stable storage and was not recorded, since it seemed not to be needed.
fn keep_the_rest(ledger: &Ledger, destination: &Destination) -> Result<(), CopyError> {
    match &destination.journal {
        Some(journal) if destination.end.can_flush() => journal.keep(&ledger.take_finished()),
        _ => Ok(()),
    }
}

/// Gives a file its name, unless it is not what it should be.
fn finish(
    mut done: DiskCopy,
    ledger: &Ledger,
    destination: Destination,
) -> anyhow::Result<DiskCopy> {
    if let Some((partial, path)) = &destination.names {
        if done.different.is_empty() {
            if let Err(error) = kept_file::publish(partial, path) {
                keep_the_rest(ledger, &destination)?;
                let (from, to) = (partial.display(), path.display());
                return Err(
                    anyhow::Error::from(error).context(format!("cannot rename {from} to {to}"))
                );
            }
        } else {
            done.remarks.push(format!(
                "{} was left for you to look at; look at the memory, the cable and the disk of this machine",
                partial.display()
            ))
        }
    }
    if let Some(journal) = destination.journal {
        journal.end();
    }
    Ok(done)
}

/// What is said when it ended early.
fn not_done(error: CopyError, ledger: &Ledger, destination: &Destination) -> anyhow::Result<()> {
    let (done, all) = (ledger.done_bytes(), destination.end.size_bytes());
    let share = percent(done as f64 / all.max(1) as f64);
    let goes_on = if destination.journal.is_some() && destination.end.can_flush() {
        "the same command continues from what is on stable storage"
    } else {
        "to be able to go on after an interruption, give --journal FILE the next time"
    };
    let so_far =
        format!("{} of {} ({share}) were done; {goes_on}", bytes_iec(done), bytes_iec(all));
    match error {
        CopyError::Interrupted => {
            standard_error::write_line(&format!("rubus: the copy was interrupted: {so_far}"));
            Ok(())
        }
        CopyError::Unreadable(why) => Err(anyhow::anyhow!(
            "{why}\n  --skip-unreadable copies all the rest, and then what can be read there\n  {so_far}"
        )),
        error => Err(anyhow::anyhow!("{error}\n  {so_far}")),
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods)] // Files of its own.
mod tests {
    use std::path::Path;
    use std::time::Duration;

    use super::*;
    use crate::copy::journal;
    use crate::copying::{destination, source};
    use crate::guard::testing::OnlyFiles;

    const SIZE: usize = 9 << 20;

    fn copying(from: &Path, to: &Path) -> DiskCopying {
        let request = CopyRequest {
            overwrite: false,
            losses: Vec::new(),
            journal: None,
            starts_over: false,
            skip_unreadable: false,
            verify: true,
            connections: 2,
            depth: 4,
            patience: Duration::from_secs(60),
        };
        let source = source::of_path(from, &OnlyFiles).unwrap();
        let target = destination::of_path(to, SIZE as u64, &request, &OnlyFiles).unwrap();
        DiskCopying::begin(source, target, &request).unwrap()
    }

    #[test]
    fn what_was_copied_is_recorded_when_reading_it_back_does_not_end_well() {
        let directory = tempfile::tempdir().unwrap();
        let (from, to) = (directory.path().join("from"), directory.path().join("to"));
        std::fs::write(&from, vec![7; SIZE]).unwrap();
        let first = copying(&from, &to);
        let (cancel, tell) = (AtomicBool::new(false), |_: &DiskCopyProgress| {});
        first.work(&cancel, &tell).run(false).unwrap();
        let kept = directory.path().join("to.partial.journal");
        assert_eq!(std::fs::read(&kept).unwrap(), b"", "a copy that ends well needs none");

        let partial = directory.path().join("to.partial");
        let file = std::fs::OpenOptions::new().write(true).open(&partial).unwrap();
        file.set_len(SIZE as u64 - 5).unwrap();
        let failed = first.work(&cancel, &tell).read_back(&mut |_| {});
        assert!(matches!(failed, Err(CopyError::Trouble(_))), "{failed:?}");
        file.set_len(SIZE as u64).unwrap();
        drop(first);
        let done = journal::parse(&std::fs::read(&kept).unwrap()).unwrap().done;
        assert_eq!(done.len(), SIZE.div_ceil(4 << 20));

        // The same command begins with reading back, and finds what the accident has left.
        let again = copying(&from, &to);
        let outcome = again.run(&cancel, &tell).unwrap();
        assert_eq!(outcome.resumed_bytes, SIZE as u64);
        assert_eq!(outcome.different, [(8 << 20, SIZE as u64)]);
    }

    #[test]
    fn what_was_copied_is_recorded_when_it_cannot_get_its_name() {
        let directory = tempfile::tempdir().unwrap();
        let (from, to) = (directory.path().join("from"), directory.path().join("to"));
        std::fs::write(&from, vec![7; SIZE]).unwrap();
        let first = copying(&from, &to);
        let outcome = first.run(&AtomicBool::new(false), &|_| {});
        std::fs::create_dir(&to).unwrap();
        let error = first.end(outcome).unwrap_err();
        assert!(format!("{error:#}").contains("cannot rename"), "{error:#}");
        let kept = std::fs::read(directory.path().join("to.partial.journal")).unwrap();
        assert_eq!(journal::parse(&kept).unwrap().done.len(), SIZE.div_ceil(4 << 20));
    }
}
