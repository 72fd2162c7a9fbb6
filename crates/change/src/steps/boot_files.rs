//! The files of a FAT filesystem in an image, taken out and put in with mtools: they need no driver of the kernel, and what
//! is put in is taken out again and compared.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use serde::{Deserialize, Serialize};

use crate::guard::Released;
use crate::volume::{DiskIdentity, Place};
use rubus_host::files::hands::parent_of;
use rubus_host::process::programs;
use rubus_host::{Files, Hands, Live};

use super::claim::{around, claim};
use super::commands::{Command, Names};
use super::error::missing_program;
use super::{
    Behaviour, Detail, LiveStepRunner, MachineStep, Progress, Receipt, Site, StepError, Touches,
    Trace, TraceSite, failed, left, locate, receipt,
};

/// More than any file on a boot partition has.
const MAX_BYTES: usize = 512 << 20;

/// Copies all files of a FAT filesystem (`DEVICE` or `FILE@@OFFSET`) into an empty directory.
///
/// # Errors
/// A sentence from mtools.
pub(super) fn take_out(from: &str, to: &str, stop: &AtomicBool) -> Result<(), String> {
    let arguments = ["-s", "-m", "-n", "-Q", "-i", from, "::", to];
    let run = programs::run("mcopy", &arguments, stop);
    run.map(drop).map_err(|error| match error {
        programs::RunError::Missing { program } => missing_program(&program),
        error => error.to_string(),
    })
}

/// Only for an image that is being made: the files of its boot partition, which were prepared in a directory, are
/// put on its FAT filesystem and compared with what was prepared. Undoing leaves them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
pub struct FillBoot {
    /// The partition with the FAT filesystem.
    pub place: Place,
}

impl Behaviour for FillBoot {
    fn title(&self) -> String {
        format!("put the boot files on {}", self.place.title())
    }

    fn proof_title(&self) -> String {
        "every file is read back and compared".into()
    }

    fn undo_title(&self) -> String {
        format!("not needed: they stay on {}", self.place.title())
    }

    fn commands(&self, _: Names<'_>) -> Vec<Command> {
        Vec::new()
    }

    fn undo_commands(&self, _: Names<'_>) -> Vec<Command> {
        Vec::new()
    }

    fn details(&self) -> Vec<Detail<'_>> {
        Vec::new()
    }

    fn touches(&self) -> Touches<'_> {
        Touches::default()
    }

    fn disks_lost_mut(&mut self) -> Vec<&mut DiskIdentity> {
        Vec::new()
    }

    fn difference(&self, _: &dyn Files) -> Option<String> {
        None
    }

    fn shows_completion(&self) -> bool {
        true
    }

    fn obstacle(&self, _: &Path, _: usize, _: &dyn Files) -> Option<String> {
        None
    }

    fn trace(&self, _: &TraceSite<'_>, _: &dyn Files) -> Trace {
        Trace::Unseen
    }
}

impl MachineStep for FillBoot {
    fn apply(
        &self,
        runner: &mut LiveStepRunner,
        site: &mut Site<'_>,
        hands: &mut dyn Hands,
    ) -> Result<Receipt, StepError> {
        let tried = format!("put the boot files on {}", self.place.title());
        let cannot = |why: String| failed(&tried, why);
        let Some(image) = runner.image.clone() else {
            return Err(cannot("this is done only while an image is made".into()));
        };
        let node = locate::node_of(hands.files(), &self.place).map_err(cannot)?;
        let disk = self.place.disks().first().copied();
        let disk = disk.ok_or_else(|| cannot("the plan names no disk for it".into()))?;
        let given = Released::of(claim(&tried, disk, &node, site, hands)?, &node);
        let names = Live.list(&image.boot).map_err(|why| cannot(why.to_string()))?;
        let node = node.display().to_string();
        let files: Vec<String> =
            names.iter().map(|name| image.boot.join(name).display().to_string()).collect();
        let mut arguments = vec!["-s", "-m", "-Q", "-i", node.as_str()];
        arguments.extend(files.iter().map(String::as_str));
        arguments.push("::");
        around(&[given], &tried, || runner.run("mcopy", &arguments))?;
        rubus_host::files::filling::sync_file(Path::new(&node))?;
        (site.tell)(Progress { words: "reading them back".into(), share: None, left_s: None });
        let again = parent_of(&image.boot).join("boot-again");
        hands.make_directory(&again)?;
        let stop = AtomicBool::new(false);
        take_out(&node, &again.display().to_string(), &stop).map_err(cannot)?;
        let same = compare(&image.boot, &again, &Live);
        runner.run("rm", &["-r", "--", &again.display().to_string()])?;
        let count = same.map_err(cannot)?;
        let words = format!("{count} files");
        Ok(receipt(words.clone(), words))
    }

    fn undo(
        &self,
        _: &mut LiveStepRunner,
        _: &mut Site<'_>,
        _: &mut dyn Hands,
    ) -> Result<Receipt, StepError> {
        Ok(left())
    }
}

/// How many files there are in two directories that are alike.
///
/// # Errors
/// What is not.
fn compare(one: &Path, other: &Path, files: &dyn Files) -> Result<usize, String> {
    let list = |path: &Path| {
        let names = files.list(path);
        names.map_err(|why| format!("{}: {why}", path.display()))
    };
    let (names, others) = (list(one)?, list(other)?);
    if names != others {
        return Err(format!(
            "{} holds {} and reads back as {}",
            one.display(),
            names.join(", "),
            others.join(", ")
        ));
    }
    let mut count = 0;
    for name in names {
        let (one, other) = (one.join(&name), other.join(&name));
        if files.list(&one).is_ok() {
            count += compare(&one, &other, files)?;
            continue;
        }
        let read = |path: &Path| files.read_prefix(path, MAX_BYTES);
        match (read(&one), read(&other)) {
            (Ok(one), Ok(other)) if one == other => count += 1,
            _ => return Err(format!("{name} reads back differently")),
        }
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rubus_host::simulated::fake::FakeFiles;

    #[test]
    fn a_missing_and_a_different_file_are_found() {
        let one = || {
            FakeFiles::new()
                .file("/one/config.txt", "a")
                .file("/one/overlays/x.dtbo", "b")
                .file("/other/config.txt", "a")
        };
        let found = |files: &FakeFiles| compare(Path::new("/one"), Path::new("/other"), files);
        assert_eq!(found(&one().file("/other/overlays/x.dtbo", "b")), Ok(2));
        let why = found(&one().file("/other/overlays/x.dtbo", "c")).unwrap_err();
        assert!(why.contains("x.dtbo"), "{why}");
        assert!(found(&one().file("/other/overlays/y.dtbo", "b")).is_err());
        assert!(found(&one()).is_err());
    }
}
