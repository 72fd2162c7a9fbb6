//! The program that moves the logs, and the units that run it.

use std::path::PathBuf;

use super::super::units;

/// The program: it copies the logs to memory and back.
pub(super) const PROGRAM: &str = "/usr/local/sbin/rubus-logs";
pub(super) const PROGRAM_TEXT: &str = include_str!("rubus-logs.sh");
/// Its unit, in which the sizes stand.
pub(super) const SERVICE: &str = "rubus-logs.service";
pub(super) const SAVE: &str = "rubus-logs-save.service";
pub(super) const TIMER: &str = "rubus-logs-save.timer";
/// What early boot leads to: whatever is started later finds the logs in memory.
pub(super) const TARGET: &str = "sysinit.target";
const MADE: &str = "# Made by rubus (logs-to-memory). `rubus undo` removes this file.\n";

/// The unit that moves the logs at a start, and back at a stop.
///
/// Those that write logs stop before it, since they start behind it: services by sysinit.target, which they all want, and
/// those of early boot by their names. journald leaves /var/log when systemd-journal-flush.service stops. The mounts are
/// the program's; systemd would unmount them first if this were not said.
pub(super) fn service(size_bytes: u64, journal_bytes: u64) -> String {
    format!(
        "{MADE}\
         [Unit]\n\
         Description=Logs in memory, saved to the disk when the system stops (rubus)\n\
         DefaultDependencies=no\n\
         Conflicts=shutdown.target\n\
         After=local-fs.target var-log.mount run-rubus-logs-disk.mount run-rubus-journal.mount\n\
         Before=sysinit.target shutdown.target systemd-journal-flush.service systemd-tmpfiles-setup.service\n\
         Before=systemd-update-utmp.service auditd.service rsyslog.service syslog-ng.service cloud-init-local.service\n\
         Wants={TIMER}\n\
         IgnoreOnIsolate=yes\n\
         RefuseManualStop=yes\n\
         \n\
         [Service]\n\
         Type=oneshot\n\
         RemainAfterExit=yes\n\
         Environment={SIZE}{} {JOURNAL}{}\n\
         ExecStart={PROGRAM} start\n\
         # A copy, which is there after undoing too.\n\
         ExecStop=/bin/sh /run/rubus/logs/program stop\n\
         TimeoutSec=5min\n\
         \n\
         [Install]\n\
         WantedBy={TARGET}\n",
        size_bytes >> 10,
        journal_bytes >> 10,
    )
}

/// The unit that saves in between.
pub(super) fn save() -> String {
    format!(
        "{MADE}\
         [Unit]\n\
         Description=Saving the logs in memory to the disk (rubus)\n\
         ConditionPathExists=/run/rubus/logs/known\n\
         After={SERVICE} logrotate.service\n\
         \n\
         [Service]\n\
         Type=oneshot\n\
         ExecStart=/bin/sh /run/rubus/logs/program save\n\
         IOSchedulingClass=idle\n"
    )
}

/// What starts that: `hourly`, `daily` or `weekly`.
pub(super) fn timer(when: &str) -> String {
    format!(
        "{MADE}\
         [Unit]\n\
         Description=Saves the logs in memory to the disk (rubus)\n\
         \n\
         [Timer]\n\
         OnCalendar={when}\n\
         AccuracySec=5min\n"
    )
}

const SIZE: &str = "SIZE_KIB=";
const JOURNAL: &str = "JOURNAL_KIB=";

/// The sizes that stand in the unit's text, in bytes: of the memory and of the journal on the disk.
pub(super) fn sizes(text: &str) -> Option<(u64, u64)> {
    let line = text.lines().find_map(|line| line.strip_prefix("Environment="))?;
    let (size, journal) = line.split_once(' ')?;
    let bytes = |word: &str, name| Some(word.strip_prefix(name)?.parse::<u64>().ok()? << 10);
    Some((bytes(size, SIZE)?, bytes(journal, JOURNAL)?))
}

/// What has to be looked at before they are written.
pub(super) fn look_at() -> Vec<PathBuf> {
    let mut paths = units::look_at(SERVICE, TARGET);
    paths.extend([SAVE, TIMER].map(units::path));
    paths.extend(["/usr/local", "/usr/local/sbin", PROGRAM].map(PathBuf::from));
    paths
}
