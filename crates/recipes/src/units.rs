//! Units of systemd that recipes write: where they are, how words stand in them, what enables them.

use std::path::{Path, PathBuf};

use super::{Answer, PathState, PlanBuilder, PlanInput};
use rubus_change::plan::Action;
pub use rubus_change::steps::SYSTEMD_RUNS;
use rubus_change::steps::SetLink;
use rubus_vocabulary::machine::{Machine, Origin};

/// Where an administrator's units are.
pub(super) const UNITS: &str = "/etc/systemd/system";

/// The directories that a unit needs.
pub(super) fn directories() -> [PathBuf; 2] {
    ["/etc/systemd", UNITS].map(PathBuf::from)
}

/// The file of a unit.
pub(super) fn path(unit: &str) -> PathBuf {
    Path::new(UNITS).join(unit)
}

/// What has to be looked at before a unit can be written, enabled for a target and started.
pub(super) fn look_at(unit: &str, target: &str) -> Vec<PathBuf> {
    let mut paths = vec![path(unit), link(unit, target)];
    paths.extend(first_programs());
    paths.extend(directories());
    paths.push(wants(target));
    paths
}

/// The directory of the links of a target.
pub(super) fn wants(target: &str) -> PathBuf {
    path(&format!("{target}.wants"))
}

/// Where the link is by which a target wants a unit.
pub(super) fn link(unit: &str, target: &str) -> PathBuf {
    wants(target).join(unit)
}

/// What only other first programs have.
const OTHERS: [(&str, &str); 3] =
    [("/sbin/openrc", "OpenRC"), ("/etc/runit", "runit"), ("/etc/inittab", "init")];
/// Systems without systemd, by `ID` in os-release(5).
const SYSTEMS_OF_OTHERS: [&str; 6] =
    ["alpine", "artix", "devuan", "openwrt", "postmarketos", "void"];
const SYSTEMD: &str = "/lib/systemd/systemd";

/// What shows which program starts the services.
pub(super) fn first_programs() -> impl Iterator<Item = PathBuf> {
    let others = OTHERS.iter().map(|(path, _)| *path);
    others.chain([SYSTEMD_RUNS, SYSTEMD]).map(PathBuf::from)
}

/// Why another program than systemd starts the services of a captured machine, where the capture shows that.
fn other(situation: &PlanInput<'_>) -> Option<String> {
    let is_there = |path: &str| situation.is_there(Path::new(path));
    if is_there(SYSTEMD) {
        return None;
    }
    if let Some((path, name)) = OTHERS.iter().find(|(path, _)| is_there(path)) {
        return Some(format!("{name} does: {path} is there"));
    }
    system_of_others(situation.machine).map(|id| format!("no: the system is {id}"))
}

/// The system's `ID` where it is known as one without systemd.
pub(super) fn system_of_others(machine: &Machine) -> Option<&str> {
    let id = machine.system.os_ids.first()?.as_str();
    SYSTEMS_OF_OTHERS.contains(&id).then_some(id)
}

/// Checks that systemd starts the services of this machine; `remedy` is for one where something else does.
pub(super) fn check_running(remedy: &str, situation: &PlanInput<'_>, draft: &mut PlanBuilder) {
    let is_captured = matches!(situation.machine.origin, Origin::Capture { .. });
    let is_there = situation.is_there(Path::new(SYSTEMD_RUNS));
    let other = other(situation).filter(|_| is_captured && !is_there);
    draft.check(
        "systemd starts the services of this machine",
        match (is_captured && !is_there, &other) {
            (true, None) => Answer::Unknown,
            (_, Some(_)) => Answer::Fails,
            (false, None) => Answer::from(is_there),
        },
        match (is_there, is_captured) {
            (true, _) => format!("{SYSTEMD_RUNS} is there"),
            (_, true) => other.unwrap_or_else(|| "not known: the capture does not say".into()),
            _ => format!("there is no {SYSTEMD_RUNS}"),
        },
        remedy,
    );
}

/// Lets a target, which is reached at each boot, want a unit: what `systemctl enable` does.
pub(super) fn enable(
    unit: &str,
    target: &str,
    why: &str,
    situation: &PlanInput<'_>,
    draft: &mut PlanBuilder,
) {
    let was = match situation.facts.seen.get(&link(unit, target)) {
        // What it leads to is there, so it leads to the unit.
        Some(PathState::Text(_) | PathState::Something) => return,
        Some(PathState::Dangling(target)) if *target == path(unit) => return,
        Some(PathState::Dangling(target)) => Some(target.clone()),
        _ => None,
    };
    draft.directory("enabled-directory", "The link below needs it.", &wants(target), situation);
    draft.step(
        "enabled",
        why,
        Action::SetLink(SetLink { path: link(unit, target), was, becomes: Some(path(unit)) }),
    );
}

/// A text in a unit. systemd reads % as the beginning of a name of its own.
pub(super) fn text(text: &str) -> String {
    text.replace('%', "%%")
}

/// A word of a command line, behind the program.
pub(super) fn word(word: &str) -> String {
    // There $ begins the name of a variable.
    quoted(&text(word).replace('$', "$$"), "")
}

/// A path in a list of them.
pub(super) fn path_word(path: &str) -> String {
    // There : stands between a path and another.
    quoted(&text(path), ":")
}

/// A word of systemd.syntax(7): in quotes where it holds what would end it, or one of `others`.
fn quoted(text: &str, others: &str) -> String {
    let is_plain = |c: char| !c.is_whitespace() && !"\"'\\;#".contains(c) && !others.contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        text.into()
    } else {
        format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_what_systemd_reads_as_such() {
        for (plain, written) in [
            ("/srv/disk.img", "/srv/disk.img"),
            ("192.168.1.0/24", "192.168.1.0/24"),
            ("/srv/50% of $it", r#""/srv/50%% of $$it""#),
            (r#"/srv/a"b\c"#, r#""/srv/a\"b\\c""#),
            ("/srv/a:b", "/srv/a:b"),
            (";", r#"";""#),
            ("", r#""""#),
        ] {
            assert_eq!(word(plain), written, "{plain}");
        }
        assert_eq!(path_word("/srv/a:$b"), r#""/srv/a:$b""#);
    }
}
