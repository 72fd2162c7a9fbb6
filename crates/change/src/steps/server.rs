//! Servers of disk images, started by their socket units and asked.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::volume::DiskIdentity;
use rubus_host::{Files, Hands};

use super::commands::{Command, Names, command, for_people, undo_for_people};
use super::units::{SYSTEMD_RUNS, read_units};
use super::{
    Behaviour, Detail, LiveStepRunner, MachineStep, Receipt, Site, StepError, Touches, Trace,
    TraceSite, failed, receipt,
};

/// A server of disk images is started by its socket unit and asked what it has. Undoing stops both units.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
pub struct StartServer {
    /// The name of both units without their endings: "rubus-serve-disk".
    pub unit: String,
    /// The socket unit's Unix socket, which is there as long as it listens.
    pub socket: PathBuf,
    /// What stands behind `rubus nbd` to ask the server, so that it has to start and to open what it serves.
    pub question: Vec<String>,
    /// The disks that its clients may overwrite.
    pub gives_away: Vec<DiskIdentity>,
}

impl Behaviour for StartServer {
    fn title(&self) -> String {
        format!("start {}.socket, and the server behind it with a question", self.unit)
    }

    fn proof_title(&self) -> String {
        "the server answers with what it serves".into()
    }

    fn undo_title(&self) -> String {
        format!("stop {unit}.socket and {unit}.service", unit = self.unit)
    }

    fn commands(&self, _: Names<'_>) -> Vec<Command> {
        let question: Vec<&str> = self.question.iter().map(String::as_str).collect();
        vec![
            read_units(),
            command("systemctl", &["start", &format!("{}.socket", self.unit)]),
            command("rubus", &[&["nbd"][..], &question].concat()),
        ]
    }

    fn undo_commands(&self, _: Names<'_>) -> Vec<Command> {
        let unit = &self.unit;
        vec![command("systemctl", &["stop", &format!("{unit}.socket"), &format!("{unit}.service")])]
    }

    fn details(&self) -> Vec<Detail<'_>> {
        Vec::new()
    }

    fn touches(&self) -> Touches<'_> {
        Touches {
            disks_lost: self.gives_away.iter().collect(),
            others: vec![Path::new("/unit").join(&self.unit)],
            leaves: (!self.gives_away.is_empty()).then(|| {
                let disks: Vec<String> =
                    self.gives_away.iter().map(|disk| disk.path.display().to_string()).collect();
                format!("clients may have written to {}", disks.join(" and "))
            }),
            ..Touches::default()
        }
    }

    fn disks_lost_mut(&mut self) -> Vec<&mut DiskIdentity> {
        self.gives_away.iter_mut().collect()
    }

    fn difference(&self, files: &dyn Files) -> Option<String> {
        let unit = &self.unit;
        (!files.exists(&self.socket))
            .then(|| format!("{unit}.socket does not listen (systemctl status {unit}.socket)"))
    }

    fn shows_completion(&self) -> bool {
        true
    }

    fn obstacle(&self, _: &Path, _: usize, _: &dyn Files) -> Option<String> {
        None
    }

    fn trace(&self, _: &TraceSite<'_>, files: &dyn Files) -> Trace {
        Trace::made(files.exists(&self.socket))
    }
}

impl MachineStep for StartServer {
    fn apply(
        &self,
        runner: &mut LiveStepRunner,
        _: &mut Site<'_>,
        hands: &mut dyn Hands,
    ) -> Result<Receipt, StepError> {
        match runner.run_all(&for_people(self)) {
            Ok(_) => Ok(receipt("the server answers", "the server answers")),
            Err(error) => Err(failed(
                self.title(),
                format!("{error}{}", last_words(&self.unit, hands.files())),
            )),
        }
    }

    fn undo(
        &self,
        runner: &mut LiveStepRunner,
        _: &mut Site<'_>,
        hands: &mut dyn Hands,
    ) -> Result<Receipt, StepError> {
        let StartServer { unit, socket, .. } = self;
        let files = hands.files();
        if files.exists(Path::new(SYSTEMD_RUNS)) {
            let stopped = runner.run_all(&undo_for_people(self));
            // Units that systemd never knew need no stopping.
            if files.exists(socket) {
                stopped?;
            }
            // Nor does it keep in mind that one has failed, where one has.
            let (sockets, service) = (format!("{unit}.socket"), format!("{unit}.service"));
            let _ = runner.run("systemctl", &["reset-failed", &sockets, &service]);
        }
        if files.exists(socket) {
            Err(failed(
                format!("stop {unit}.socket"),
                format!("{} is still there", socket.display()),
            ))
        } else {
            Ok(receipt("not served", "not served"))
        }
    }
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
