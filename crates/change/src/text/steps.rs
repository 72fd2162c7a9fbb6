//! The steps of a plan as text: reason, exact change, exact commands, proof, undoing.

use std::path::Path;

use crate::plan::commands::commands;
use crate::plan::diff::{Line, with_context};
use crate::plan::volume::{PartitionRole, PartitionTable, partition_path};
use crate::plan::{Action, Plan, Step, TextFile};
use rubus_vocabulary::units::bytes_iec;

use super::COLUMNS;
use rubus_draw::style::{Style, Tone};
use rubus_draw::text::{clean, hang, pad_left, pad_right};

/// Unchanged lines that are shown around a change.
const AROUND: usize = 2;
const INDENT: &str = "     ";

/// All steps, numbered.
pub(super) fn steps(plan: &Plan, style: Style) -> Vec<String> {
    let mut lines = vec![style.paint(Tone::Strong, "Steps")];
    let trial = plan.trial.as_ref().map(|trial| trial.before_step);
    for (number, step) in plan.steps.iter().enumerate() {
        if trial == Some(number) {
            let title = "After the trial, by `rubus verify`";
            lines.push(style.paint(Tone::Strong, title));
        }
        match filled_by(&plan.steps, number) {
            Some(filled_by) => lines.extend(directory(number, step, filled_by, style)),
            None => lines.extend(one(number, step, style)),
        }
    }
    lines
}

/// The step that a new directory is for: the first one after it with something in it.
fn filled_by(steps: &[Step], number: usize) -> Option<usize> {
    let directory = made_directory(&steps[number].action)?;
    let is_inside = |step: &Step| place(&step.action).is_some_and(|at| at.starts_with(directory));
    let after = steps.iter().enumerate().skip(number + 1);
    let mut inside = after.filter(|(_, step)| is_inside(step));
    inside.next().map(|(number, _)| number)
}

fn made_directory(action: &Action) -> Option<&Path> {
    match action {
        Action::MakeDirectory { path } => Some(path),
        Action::On { action, .. } => made_directory(action),
        _ => None,
    }
}

/// Where an action puts something.
fn place(action: &Action) -> Option<&Path> {
    match action {
        Action::WriteFile { path, .. }
        | Action::SetLink { path, .. }
        | Action::MakeSwapFile { path, .. }
        | Action::Mount { at: path, .. } => Some(path),
        Action::On { action, .. } => place(action),
        _ => None,
    }
}

/// A directory in one sentence: its reason, proof and undoing are those of the step that fills it.
fn directory(number: usize, step: &Step, filled_by: usize, style: Style) -> Vec<String> {
    let first = format!("{:>3}  ", number + 1);
    let title = format!("{}, for step {}", step.action.title(), filled_by + 1);
    painted(hang(&first, &clean(&title), COLUMNS), Tone::Strong, style)
}

fn one(number: usize, step: &Step, style: Style) -> Vec<String> {
    let first = format!("{:>3}  ", number + 1);
    let title = hang(&first, &clean(&step.action.title()), COLUMNS);
    let mut lines = painted(title, Tone::Strong, style);
    lines.extend(hang(INDENT, &clean(&step.why), COLUMNS));
    lines.extend(details(&step.action));
    lines.extend(change(&step.action, style));
    lines.extend(runs(&step.action));
    let faint = |words: String| painted(hang(INDENT, &clean(&words), COLUMNS), Tone::Faint, style);
    lines.extend(faint(format!("Proof: {}.", step.action.proof_title())));
    lines.extend(faint(format!("Undo: {}.", step.action.undo_title())));
    lines
}

/// What belongs to an action besides its title, its change and its commands.
fn details(action: &Action) -> Vec<String> {
    match action {
        Action::Partition { disk, table } => partitions(&disk.path, table),
        Action::CopyTree { without_contents_of, without, .. } => {
            let names = |paths: &[std::path::PathBuf]| {
                let names: Vec<String> =
                    paths.iter().map(|path| path.display().to_string()).collect();
                names.join(", ")
            };
            let mut lines = Vec::new();
            for (words, paths) in [("Left empty: ", without_contents_of), ("Left out: ", without)] {
                if !paths.is_empty() {
                    let text = format!("{words}{}", names(paths));
                    lines.extend(hang(INDENT, &clean(&text), COLUMNS));
                }
            }
            lines
        }
        Action::BuildInitramfs { kept: Some(kept), .. }
        | Action::InstallInitramfs { kept: Some(kept), .. } => {
            let text = format!("The current one is kept as {}.", kept.display());
            hang(INDENT, &clean(&text), COLUMNS)
        }
        _ => Vec::new(),
    }
}

fn partitions(disk: &Path, table: &PartitionTable) -> Vec<String> {
    let row = |partition: &crate::plan::volume::Partition| {
        let role = match partition.role {
            PartitionRole::Boot => "boot (FAT32)",
            PartitionRole::Linux => "files",
            PartitionRole::Swap => "swap",
            PartitionRole::Raid => "array",
        };
        let name = partition_path(disk, partition.number);
        format!(
            "{INDENT}| {} {} {} {}",
            pad_right(&clean(&name), 16),
            pad_left(&bytes_iec(partition.size_bytes), 10),
            pad_right(role, 13),
            clean(&partition.partuuid),
        )
    };
    table.partitions.iter().map(row).collect()
}

/// The exact change of a file.
fn change(action: &Action, style: Style) -> Vec<String> {
    let text = |file: Option<&TextFile>| file.map_or(String::new(), |file| file.text.clone());
    let (old, new) = match action {
        Action::WriteFile { was, becomes, .. } => (text(was.as_ref()), text(Some(becomes))),
        Action::RemoveFile { was, .. } => (text(Some(was)), String::new()),
        Action::On { action, .. } => return change(action, style),
        _ => return Vec::new(),
    };
    let lines = with_context(&old, &new, AROUND);
    let lines = lines.into_iter().map(|line| {
        let (mark, tone, text) = match line {
            None => (' ', Tone::Faint, "…"),
            Some(Line::Same(text)) => (' ', Tone::Plain, text),
            Some(Line::Removed(text)) => ('-', Tone::Bad, text),
            Some(Line::Added(text)) => ('+', Tone::Good, text),
        };
        // Never wrapped or cut: this is the exact change.
        style.paint(tone, &format!("{INDENT}{mark} {}", clean(text)))
    });
    let mut lines: Vec<String> = lines.collect();
    lines.extend(modes(action));
    lines
}

/// A change of the permission bits, or those of a new file that not everybody may read.
fn modes(action: &Action) -> Option<String> {
    let Action::WriteFile { was, becomes, .. } = action else {
        return None;
    };
    match was {
        Some(was) if was.mode != becomes.mode => {
            Some(format!("{INDENT}  permissions {:o}, were {:o}", becomes.mode, was.mode))
        }
        None if becomes.mode != 0o644 => Some(format!("{INDENT}  permissions {:o}", becomes.mode)),
        _ => None,
    }
}

/// The exact commands, one a line, as a shell would take them: a long one goes on after a backslash.
fn runs(action: &Action) -> Vec<String> {
    let mut lines = Vec::new();
    for command in commands(action) {
        let text = clean(&command.to_string());
        let wrapped = hang(&format!("{INDENT}$ "), &text, COLUMNS - 2);
        let last = wrapped.len() - 1;
        let wrapped = wrapped.into_iter().enumerate();
        lines.extend(wrapped.map(|(i, line)| match i == last {
            true => line,
            false => format!("{line} \\"),
        }));
    }
    lines
}

fn painted(lines: Vec<String>, tone: Tone, style: Style) -> Vec<String> {
    lines.iter().map(|line| style.paint(tone, line)).collect()
}
