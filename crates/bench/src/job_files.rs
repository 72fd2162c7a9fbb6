//! Where the jobs of a job file work: from the names in the file to files and devices of this
//! machine.
//!
//! What exists is used as it is, and written to only with consent. What does not exist is never made
//! under its name: a nameless file of our own in the same directory stands for it.

use std::path::{Path, PathBuf};

use rubus_fio::job_file::{FileFacts, Lowered, Plan, WantedFile};
use rubus_host::files::Files;
use rubus_host::files::own_files;
use rubus_vocabulary::machine::Machine;
use rubus_vocabulary::refused::Refused;
use rubus_vocabulary::spec::{FileNeed, FileStart};
use rubus_vocabulary::units::{bytes_iec, percent};

use crate::measuring::Places;
use crate::target::{self, Allowance, OpenTarget};
use crate::target_name::TargetName;

/// The files of a job file on this machine.
pub struct Placed {
    /// What stands for the whole run: the first of the files.
    pub target: OpenTarget,
    /// The others, in the order of their numbers.
    pub files: Vec<OpenTarget>,
    /// What each wanted file is, for the lowering.
    pub facts: Vec<FileFacts>,
}

/// Finds the place of every file: where the job file says, or all on `target` if it is given.
///
/// # Errors
/// When a place does not exist, cannot be used, or is to be written and holds data whose loss is
/// not confirmed ([`Refused`]).
pub fn place(
    plan: &Plan,
    target: Option<&TargetName>,
    machine: &Machine,
    files: &dyn Files,
    allowance: &Allowance,
) -> anyhow::Result<Placed> {
    let mut found: Vec<(Spot, OpenTarget)> = Vec::new();
    let mut facts = Vec::new();
    for wanted in &plan.files {
        let spot = spot(wanted, target);
        let known = found.iter().position(|(other, _)| *other == spot);
        let number = match known {
            Some(number) => number,
            None => {
                // All jobs of the place count: one that writes is enough to need consent.
                let is_written = plan
                    .files
                    .iter()
                    .any(|file| file.is_written && self::spot(file, target) == spot);
                let resolved = resolved(&spot, is_written, machine, files, allowance)?;
                found.push((spot, resolved));
                found.len() - 1
            }
        };
        let resolved = &found[number].1;
        facts.push(FileFacts {
            number: u32::try_from(number).unwrap_or(u32::MAX),
            size_bytes: (!resolved.target.is_own_file()).then_some(resolved.room_bytes),
        });
    }
    let mut all = found.into_iter().map(|(_, resolved)| resolved);
    let first = all.next();
    let target = first.ok_or_else(|| anyhow::anyhow!("{} names no file", plan.file))?;
    Ok(Placed { target, files: all.collect(), facts })
}

/// A place before it is opened; equal spots are one file.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Spot {
    /// Something that exists.
    There(TargetName),
    /// A nameless file in a directory, standing for a name.
    Nameless { directory: PathBuf, name: String },
}

fn spot(wanted: &WantedFile, target: Option<&TargetName>) -> Spot {
    let directory = match target {
        Some(TargetName::Path(path)) if path.is_dir() => Some(path.clone()),
        Some(other) => return Spot::There(other.clone()),
        None => wanted.directory.as_ref().map(PathBuf::from),
    };
    let name = Path::new(&wanted.name);
    let directory = directory.unwrap_or_else(|| PathBuf::from("."));
    if !wanted.is_named {
        // What an earlier run has made under this name is read; it is never written over.
        let made = directory.join(&wanted.name);
        if wanted.is_formatted && !wanted.is_written && made.exists() {
            let real = own_files::real_path(&made).unwrap_or(made);
            return Spot::There(TargetName::Path(real));
        }
        return Spot::Nameless { directory, name: wanted.name.clone() };
    }
    let path = match (target, name.file_name()) {
        // Where the user says the place, only the last part of a name is left of it.
        (Some(_), Some(last)) => directory.join(last),
        _ if wanted.directory.is_none() => name.to_path_buf(),
        _ => directory.join(name),
    };
    if path.exists() {
        let real = own_files::real_path(&path).unwrap_or(path);
        return Spot::There(TargetName::Path(real));
    }
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    Spot::Nameless {
        directory: parent.unwrap_or(Path::new(".")).to_path_buf(),
        name: path.display().to_string(),
    }
}

fn resolved(
    spot: &Spot,
    is_written: bool,
    machine: &Machine,
    files: &dyn Files,
    allowance: &Allowance,
) -> anyhow::Result<OpenTarget> {
    // What is only read needs no consent, and a consent for something else is none of its business.
    let allowance = if is_written {
        allowance.clone()
    } else {
        Allowance { read_only: true, may_lose: Vec::new(), ..allowance.clone() }
    };
    let name = match spot {
        Spot::There(name) => name,
        Spot::Nameless { directory, name } => {
            anyhow::ensure!(
                directory.is_dir(),
                "the job file wants {name} in {}, which is no directory; make it, or name another \
                 place: rubus bench --fio-job FILE DIRECTORY",
                directory.display()
            );
            let name = TargetName::Path(directory.clone());
            return target::resolve(&name, machine, files, &allowance);
        }
    };
    let resolved = target::resolve(name, machine, files, &allowance).map_err(with_own_hint)?;
    anyhow::ensure!(
        !resolved.target.is_own_file() || resolved.is_memory(),
        "the job file names {name} as a file, and it is a directory; say directory= instead"
    );
    if is_written && !resolved.target.may_write() {
        return Err(Refused(format!(
            "the job file writes to {name}, which exists: WHAT IS THERE WOULD BE LOST\n  \
             to overwrite it, give --i-will-lose-everything-on={name}\n  \
             to leave it alone, name a directory: rubus bench --fio-job FILE DIRECTORY"
        ))
        .into());
    }
    Ok(resolved)
}

/// A refusal with what can be done about it in a job file.
fn with_own_hint(error: anyhow::Error) -> anyhow::Error {
    let Some(Refused(text)) = error.downcast_ref::<Refused>() else {
        return error;
    };
    let hint = "\n\nTo leave it alone, name another place: rubus bench --fio-job FILE DIRECTORY";
    Refused(text.replace(target::READ_ONLY_HINT, hint)).into()
}

impl Placed {
    fn all(&self) -> impl Iterator<Item = &OpenTarget> {
        std::iter::once(&self.target).chain(&self.files)
    }

    /// The files of our own with what they need, by their directories.
    fn own<'a>(&'a self, lowered: &'a Lowered) -> Vec<(&'a OpenTarget, Vec<&'a FileNeed>)> {
        let mut places: Vec<(&OpenTarget, Vec<&FileNeed>)> = Vec::new();
        for (resolved, need) in self.all().zip(&lowered.needs) {
            if !resolved.target.is_own_file() || resolved.is_memory() {
                continue;
            }
            match places.iter_mut().find(|(place, _)| place.identity.path == resolved.identity.path)
            {
                Some((_, needs)) => needs.push(need),
                None => places.push((resolved, vec![need])),
            }
        }
        places
    }

    /// The files with what they need, for the session.
    pub fn places(self, lowered: &Lowered) -> Places {
        let more_files = self.files.into_iter().map(|resolved| resolved.target);
        Places {
            target: self.target,
            more_files: more_files.collect(),
            needs: lowered.needs.clone(),
        }
    }

    /// Whether the files of our own fit: into nine tenths of what is free.
    ///
    /// # Errors
    /// When they do not.
    pub fn must_have_room(&self, lowered: &Lowered) -> anyhow::Result<()> {
        for (place, needs) in self.own(lowered) {
            let needed = total(needs.iter().copied());
            let most = place.room_bytes / 10 * 9;
            anyhow::ensure!(
                needed <= most,
                "{} needs files of {} under {}, where at most {} may be used (nine tenths of what is \
                 free); lower its sizes, or name another place: rubus bench --fio-job FILE DIRECTORY",
                lowered.job_file.path,
                bytes_iec(needed),
                place.identity.path.display(),
                bytes_iec(most)
            );
        }
        Ok(())
    }

    /// What is made and what is overwritten, one sentence each.
    pub fn announced(&self, lowered: &Lowered) -> Vec<String> {
        let mut sentences = Vec::new();
        for (place, needs) in self.own(lowered) {
            let needed = total(needs.iter().copied());
            let share = needed as f64 / place.room_bytes.max(1) as f64;
            let filled = total(needs.iter().copied().filter(|n| n.start == FileStart::Filled));
            let files = match needs.len() {
                1 => "a nameless file of".to_string(),
                count => format!("{count} nameless files, in all"),
            };
            let first = match filled {
                0 => String::new(),
                bytes => format!(" {} are written before the first job.", bytes_iec(bytes)),
            };
            sentences.push(format!(
                "Under {}: {files} {} ({} of what is free), gone at the end.{first}",
                place.identity.path.display(),
                bytes_iec(needed),
                percent(share),
            ));
        }
        for (resolved, need) in self.all().zip(&lowered.needs) {
            if resolved.target.is_own_file() {
                continue;
            }
            sentences.push(if resolved.target.may_write() {
                format!(
                    "On {}: the first {}; WHAT IS THERE IS LOST.",
                    resolved.identity.path.display(),
                    bytes_iec(need.region_bytes)
                )
            } else {
                format!("From {}: nothing is written there.", resolved.identity.path.display())
            });
        }
        sentences
    }
}

fn total<'a>(needs: impl Iterator<Item = &'a FileNeed>) -> u64 {
    needs.fold(0, |sum, need| sum.saturating_add(need.region_bytes))
}
