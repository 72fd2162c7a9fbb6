//! Servers of disk images: the image that is made, systemd's units, and the server that is started and asked; and other
//! services that are restarted.

use std::path::{Path, PathBuf};

use crate::plan::Action;
use crate::plan::commands::{Command, commands, undo_commands_with};
use crate::plan::journal::Receipt;
use crate::plan::volume::Place;
use crate::recipe::SYSTEMD_RUNS;
use rubus_host::Files;
use rubus_host::new_file::{NewFile, size_of_file};
use rubus_vocabulary::units::bytes_iec;

use crate::apply::StepError;

use super::{LiveStepRunner, failed, receipt, with_names};

/// Makes an image that is all hole. One of that size that is there already was made before an interruption.
pub(super) fn make_image(path: &Path, size_bytes: u64) -> Result<Receipt, StepError> {
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
    match made == size_bytes {
        true => Ok(receipt(words(size_bytes), words(made))),
        false => Err(failed(
            tried(),
            format!("it is there with {made} bytes, and {size_bytes} are planned"),
        )),
    }
}

impl LiveStepRunner {
    /// A machine without systemd has nobody who keeps units in mind.
    pub(super) fn read_units(
        &mut self,
        action: &Action,
        files: &dyn Files,
    ) -> Result<Receipt, StepError> {
        if !files.exists(Path::new(SYSTEMD_RUNS)) {
            return Ok(receipt("read at the next start", "no systemd runs"));
        }
        self.run_all(&commands(action))?;
        Ok(receipt("the units are read", "the units are read"))
    }

    /// A service reads its settings at its next start anyway, where no systemd runs.
    pub(super) fn restart(
        &mut self,
        commands: &[Command],
        files: &dyn Files,
    ) -> Result<Receipt, StepError> {
        if !files.exists(Path::new(SYSTEMD_RUNS)) {
            return Ok(receipt("restarted at the next start", "no systemd runs"));
        }
        self.run_all(commands)?;
        Ok(receipt("it is active", "it is active"))
    }

    pub(super) fn start_server(
        &mut self,
        action: &Action,
        unit: &str,
        files: &dyn Files,
    ) -> Result<Receipt, StepError> {
        match self.run_all(&commands(action)) {
            Ok(_) => Ok(receipt("the server answers", "the server answers")),
            Err(error) => {
                Err(failed(action.title(), format!("{error}{}", last_words(unit, files))))
            }
        }
    }

    pub(super) fn stop_server(
        &mut self,
        action: &Action,
        unit: &str,
        socket: &Path,
        files: &dyn Files,
    ) -> Result<Receipt, StepError> {
        if files.exists(Path::new(SYSTEMD_RUNS)) {
            let node = |place: &Place| place.title();
            let mounted = |_: &str| PathBuf::new();
            let commands = with_names(&node, &mounted, |names| undo_commands_with(action, names));
            let stopped = self.run_all(&commands);
            // Units that systemd never knew need no stopping.
            if files.exists(socket) {
                stopped?;
            }
            // Nor does it keep in mind that one has failed, where one has.
            let (sockets, service) = (format!("{unit}.socket"), format!("{unit}.service"));
            let _ = self.run("systemctl", &["reset-failed", &sockets, &service]);
        }
        match files.exists(socket) {
            false => Ok(receipt("not served", "not served")),
            true => Err(failed(
                format!("stop {unit}.socket"),
                format!("{} is still there", socket.display()),
            )),
        }
    }
}

/// What is not as starting left it.
pub(super) fn difference(unit: &str, socket: &Path, files: &dyn Files) -> Option<String> {
    (!files.exists(socket))
        .then(|| format!("{unit}.socket does not listen (systemctl status {unit}.socket)"))
}

/// What the server said last, for a sentence.
fn last_words(unit: &str, files: &dyn Files) -> String {
    let service = format!("{unit}.service");
    // Its own words, and not those of systemd about it.
    let own = format!("_SYSTEMD_UNIT={service}");
    let arguments = [&own, "-n", "2", "-o", "cat", "--no-pager", "-q"];
    let said = files.ask("journalctl", &arguments).unwrap_or_default();
    let mut lines: Vec<&str> = said.lines().map(str::trim).collect();
    lines.dedup();
    match lines.join("; ") {
        none if none.is_empty() => format!("; look with `journalctl -u {service}`"),
        lines => format!("; {service} said last: {lines}"),
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
