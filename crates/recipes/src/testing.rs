//! What the tests of recipes share: facts in few words, and a plan as plain text.

use std::fmt::Write;

use super::{Facts, PathState, Recipe, Seen, Wishes, programs};
use rubus_change::plan::commands::commands;
use rubus_change::plan::diff::{Line, with_context};
use rubus_change::plan::volume::DiskIdentity;
use rubus_change::plan::{Action, Plan, TextFile};
use rubus_change::steps::{MakeDirectory, RemoveFile, SetKnob, SetLink, WriteFile};
use rubus_vocabulary::machine::Machine;

/// A text file.
pub(super) fn text(text: &str) -> PathState {
    PathState::Text(TextFile::public(text))
}

/// Wishes from pairs.
pub(super) fn wishes(pairs: &[(&str, &str)]) -> Wishes {
    let pairs = pairs.iter();
    pairs.map(|(name, value)| (name.to_string(), value.to_string())).collect()
}

/// Facts of a machine where every program is there, nothing else is, but for what is given.
pub(super) fn facts(
    recipe: &Recipe,
    machine: &Machine,
    wished: &[(&str, &str)],
    given: &[(&str, PathState)],
) -> Facts {
    let look_at = (recipe.look_at)(machine, &wishes(wished));
    let mut seen = Seen::new();
    for path in look_at.paths {
        let is_program =
            ["/usr/sbin", "/usr/bin"].iter().any(|directory| path.starts_with(directory));
        let is_usual = [
            "/etc",
            "/etc/systemd",
            "/etc/systemd/system",
            "/etc/sysctl.d",
            "/mnt",
            "/var",
            "/srv",
        ]
        .iter()
        .any(|directory| path.as_os_str() == *directory);
        let sight = match (is_program, is_usual) {
            (true, _) => PathState::Something,
            (_, true) => PathState::Directory(vec!["other".into()]),
            _ => PathState::Absent,
        };
        seen.insert(path, sight);
    }
    for mount in &machine.mounts {
        let holds = PathState::Directory(vec!["other".into()]);
        seen.insert(mount.point.clone().into(), holds);
    }
    for (path, sight) in given {
        seen.insert(path.into(), sight.clone());
    }
    Facts { seen, ..Facts::default() }
}

/// Leaves a machine without a program.
pub(super) fn without(program: &str, facts: &mut Facts) {
    for path in programs::paths([program]) {
        facts.seen.insert(path, PathState::Absent);
    }
}

/// The plan for these facts.
pub(super) fn plan(
    recipe: &Recipe,
    machine: &Machine,
    facts: &Facts,
    wished: &[(&str, &str)],
) -> Plan {
    recipe
        .plan(machine, facts, &wishes(wished), "2026-11-21T01:02:03Z")
        .expect("the wishes make sense")
}

/// What the machine looks like to the same recipe after the steps on files and knobs.
pub(super) fn after(facts: &Facts, plan: &Plan) -> Facts {
    let mut facts = facts.clone();
    for step in &plan.steps {
        let (path, sight) = match &step.action {
            Action::MakeDirectory(MakeDirectory { path }) => {
                (path, PathState::Directory(Vec::new()))
            }
            Action::WriteFile(WriteFile { path, becomes, .. }) => {
                (path, PathState::Text(becomes.clone()))
            }
            Action::SetKnob(SetKnob { path, becomes, .. }) => (path, text(becomes)),
            Action::SetLink(SetLink { path, .. }) => (path, text("")),
            Action::RemoveFile(RemoveFile { path, .. }) => (path, PathState::Absent),
            // What they change is not among the facts of files.
            Action::On(_)
            | Action::Partition(_)
            | Action::MakeArray(_)
            | Action::Format(_)
            | Action::CopyTree(_)
            | Action::BuildInitramfs(_)
            | Action::InstallInitramfs(_)
            | Action::MakeSwapFile(_)
            | Action::SwapOn(_)
            | Action::SwapOff(_)
            | Action::Mount(_)
            | Action::AttachDisk(_)
            | Action::MakeImage(_)
            | Action::ReadUnits(_)
            | Action::RestartService(_)
            | Action::StartServer(_)
            | Action::ProveBoot(_)
            | Action::KeepJournal(_)
            | Action::FillBoot(_) => continue,
        };
        facts.seen.insert(path.clone(), sight);
    }
    facts
}

/// What was checked and is not met.
pub(super) fn obstacles(plan: &Plan) -> Vec<String> {
    let obstacles = plan.obstacles();
    obstacles
        .map(|check| {
            let remedy = check.remedy.as_deref().unwrap_or_default();
            format!("{}: {} -> {remedy}", check.what, check.found)
        })
        .collect()
}

/// A plan as plain text, without the programs that are there.
pub(super) fn shown(plan: &Plan) -> String {
    let mut out = String::new();
    for check in &plan.checks {
        if check.is_met && check.what.starts_with("the program") {
            continue;
        }
        let mark = if check.is_met { "ok" } else { "no" };
        let _ = writeln!(out, "{mark} {}: {}", check.what, check.found);
        if let Some(remedy) = &check.remedy {
            let _ = writeln!(out, "   -> {remedy}");
        }
    }
    for step in &plan.steps {
        let _ = writeln!(out, "* {}: {}", step.id, step.action.title());
        let _ = writeln!(out, "  {}", step.why);
        for command in commands(&step.action) {
            let _ = writeln!(out, "  $ {command}");
        }
        if let Action::WriteFile(WriteFile { was, becomes, .. }) = &step.action {
            let old = was.as_ref().map_or("", |file| file.text.as_str());
            for line in with_context(old, &becomes.text, 1) {
                let _ = match line {
                    None => writeln!(out, "  ..."),
                    Some(Line::Same(text)) => writeln!(out, "    {text}"),
                    Some(Line::Removed(text)) => writeln!(out, "  - {text}"),
                    Some(Line::Added(text)) => writeln!(out, "  + {text}"),
                };
            }
        }
    }
    for risk in &plan.risks {
        let _ = writeln!(out, "risk: {risk}");
    }
    for gain in &plan.gains {
        let _ = writeln!(
            out,
            "gain: {}: {} -> {} (x {:.2}; {})",
            gain.what, gain.now, gain.then, gain.ratio, gain.source
        );
    }
    for promise in &plan.promises {
        let _ = writeln!(out, "promise: {}", promise.what);
    }
    for note in &plan.notes {
        let _ = writeln!(out, "note: {note}");
    }
    if plan.needs_boot {
        out.push_str("needs a boot\n");
    }
    out
}

/// A USB stick with nothing on it.
pub(super) fn disk(path: &str, serial: &str) -> DiskIdentity {
    DiskIdentity {
        path: path.into(),
        size_bytes: 31_004_295_168,
        model: Some("SanDisk Ultra Fit".into()),
        serial: Some(serial.into()),
        wwn: None,
        diskseq: Some(12),
        boot_id: None,
        contents: Vec::new(),
        confirmation: serial.into(),
    }
}

/// Plans of recipes that need more than a captured board shows.
pub(crate) fn further_plans() -> Vec<Plan> {
    let all = [
        super::desktop::tests::usual_plans(),
        super::network_root::tests::usual_plans(),
        super::pcie_gen::tests::usual_plans(),
        super::raid0::tests::usual_plans(),
    ];
    all.into_iter().flatten().collect()
}
