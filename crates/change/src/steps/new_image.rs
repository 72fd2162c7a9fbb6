//! A disk image that is all hole.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::volume::DiskIdentity;
use rubus_host::files::new_file::{NewFile, size_of_file};
use rubus_host::{Files, Hands};
use rubus_vocabulary::units::bytes_iec;

use super::commands::{Command, Names};
use super::{
    Behaviour, Detail, LiveStepRunner, MachineStep, Receipt, Site, StepError, Touches, Trace,
    TraceSite, failed, left, receipt,
};

/// A disk image full of zeros is made; it takes room as it is written. Undoing leaves it: it may have been written to since.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
pub struct MakeImage {
    /// Absolute path; its directory exists.
    pub path: PathBuf,
    /// Its size in bytes.
    pub size_bytes: u64,
}

impl Behaviour for MakeImage {
    fn title(&self) -> String {
        format!("make the disk image {} of {}", self.path.display(), bytes_iec(self.size_bytes))
    }

    fn proof_title(&self) -> String {
        "its size is read back".into()
    }

    fn undo_title(&self) -> String {
        format!("not needed: {} stays, with what is on it", self.path.display())
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
        Touches {
            leaves: Some(format!("{} stays, with what is on it", self.path.display())),
            ..Touches::path(&self.path)
        }
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

    fn obstacle(&self, _: &Path, _: usize, _: &dyn Files) -> Option<String> {
        None
    }

    fn trace(&self, _: &TraceSite<'_>, files: &dyn Files) -> Trace {
        Trace::made(files.exists(&self.path))
    }
}

impl MachineStep for MakeImage {
    fn apply(
        &self,
        _: &mut LiveStepRunner,
        _: &mut Site<'_>,
        _: &mut dyn Hands,
    ) -> Result<Receipt, StepError> {
        make_image(&self.path, self.size_bytes)
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

/// Makes an image that is all hole. One of that size that is there already was made before an interruption.
fn make_image(path: &Path, size_bytes: u64) -> Result<Receipt, StepError> {
    let tried = || format!("make the disk image {}", path.display());
    let words = |bytes| format!("a file of {}", bytes_iec(bytes));
    let made = match size_of_file(path) {
        Ok(bytes) => bytes,
        Err(_) => {
            let cannot = |error| failed(tried(), error);
            let Some(mut file) = NewFile::begin(path).map_err(cannot)? else {
                return Err(failed(tried(), "another program makes it just now"));
            };
            file.resize(size_bytes).map_err(cannot)?;
            file.finish().map_err(cannot)?;
            size_of_file(path).map_err(cannot)?
        }
    };
    if made == size_bytes {
        Ok(receipt(words(size_bytes), words(made)))
    } else {
        Err(failed(tried(), format!("it is there with {made} bytes, and {size_bytes} are planned")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_made_once_and_none_is_replaced() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("disk.img");
        for _ in 0..2 {
            let made = make_image(&path, 5 << 20).expect("it is made");
            assert_eq!(made.planned, "a file of 5.00 MiB");
            assert_eq!(made.live, made.planned);
        }
        let error = make_image(&path, 6 << 20).expect_err("it is another one");
        let words = error.to_string();
        assert!(words.contains("it is there with 5242880 bytes"), "{words}");
        assert_eq!(size_of_file(&path).expect("it stays"), 5 << 20);
    }
}
