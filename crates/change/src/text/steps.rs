//! The steps of a plan as text: reason, exact change, exact commands, proof, undoing.

use std::path::{Path, PathBuf};

use crate::plan::Plan;
use crate::steps::commands::commands;
use crate::steps::diff::{Line, with_context};
use crate::steps::{Action, Detail, Step, TextFile};
use crate::volume::{PartitionRole, PartitionTable, partition_path};
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
    let directory = steps[number].action.behaviour().touches().makes_directory?;
    let is_inside = |step: &Step| {
        let filled = step.action.behaviour().touches().fills;
        filled.is_some_and(|at| at.starts_with(directory))
    };
    let after = steps.iter().enumerate().skip(number + 1);
    let mut inside = after.filter(|(_, step)| is_inside(step));
    inside.next().map(|(number, _)| number)
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
    for detail in step.action.behaviour().details() {
        lines.extend(shown(detail, style));
    }
    lines.extend(runs(&step.action));
    let faint = |words: String| painted(hang(INDENT, &clean(&words), COLUMNS), Tone::Faint, style);
    lines.extend(faint(format!("Proof: {}.", step.action.proof_title())));
    lines.extend(faint(format!("Undo: {}.", step.action.undo_title())));
    lines
}

/// What belongs to an action besides its title and its commands.
fn shown(detail: Detail<'_>, style: Style) -> Vec<String> {
    let sentence = |text: &str| hang(INDENT, &clean(text), COLUMNS);
    match detail {
        Detail::Table { disk, table } => partitions(disk, table),
        Detail::LeftEmpty(paths) | Detail::LeftOut(paths) if paths.is_empty() => Vec::new(),
        Detail::LeftEmpty(paths) => sentence(&format!("Left empty: {}", names(paths))),
        Detail::LeftOut(paths) => sentence(&format!("Left out: {}", names(paths))),
        Detail::Kept(kept) => sentence(&format!("The current one is kept as {}.", kept.display())),
        Detail::Text { was, becomes } => change(was, becomes, style),
    }
}

fn names(paths: &[PathBuf]) -> String {
    let names: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    names.join(", ")
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
fn change(was: Option<&TextFile>, becomes: Option<&TextFile>, style: Style) -> Vec<String> {
    let text = |file: Option<&TextFile>| file.map_or(String::new(), TextFile::shown);
    let (old, new) = (text(was), text(becomes));
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
    lines.extend(becomes.and_then(|becomes| modes(was, becomes)));
    lines
}

/// A change of the permission bits, or those of a new file that is not world-readable.
fn modes(was: Option<&TextFile>, becomes: &TextFile) -> Option<String> {
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
        lines.extend(wrapped.map(|(i, line)| if i == last { line } else { format!("{line} \\") }));
    }
    lines
}

fn painted(lines: Vec<String>, tone: Tone, style: Style) -> Vec<String> {
    lines.iter().map(|line| style.paint(tone, line)).collect()
}
