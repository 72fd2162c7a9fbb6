//! A plan as people read it before they say yes: what was checked, what it gives, what can go wrong, what is lost,
//! what it takes, every step, and what holds afterwards. The order is that of the questions.

mod changes;
mod left;
mod steps;
pub mod verify;

use crate::on_trial::Tried;
use crate::plan::promise::Promise;
use crate::plan::volume::DiskIdentity;
use crate::plan::{Effort, Gain, Plan, Trial};
use rubus_draw::next_step;
use rubus_vocabulary::check::Check;
use rubus_vocabulary::next_step::NextStep;
use rubus_vocabulary::units::{bytes_si, counted};

use rubus_draw::style::{Style, Tone};
use rubus_draw::text::{begins_with_command, bind_units, clean, hang, pad_right, width};

pub use changes::{ChangeLine, StepLine, receipts, status};
pub use left::{undone, went_back};

pub(crate) const COLUMNS: usize = 80;

/// A plan, whole.
pub fn render(plan: &Plan, style: Style) -> String {
    let mut lines: Vec<String> = hang("", &clean(&plan.title), COLUMNS);
    for line in &mut lines {
        *line = style.paint(Tone::Strong, line);
    }
    for (name, value) in &plan.options {
        lines.push(format!("  {name}={}", clean(value)));
    }
    section(&mut lines, checks(plan, style));
    if let Some(refusal) = refusal(plan) {
        let refusal = hang("", &refusal, COLUMNS);
        section(&mut lines, refusal.iter().map(|line| style.paint(Tone::Bad, line)).collect());
        // What fails is mended first; what a capture does not hold is seen when that is done.
        let mut obstacles: Vec<&Check> = plan.obstacles().collect();
        obstacles.sort_by_key(|check| check.is_unknown);
        let remedies = || obstacles.iter().filter_map(|check| check.remedy.as_deref());
        // One that is done by a command goes before one that has to be thought about.
        let with_command = remedies().find(|remedy| has_command(remedy));
        if let Some(remedy) = with_command.or_else(|| remedies().next()) {
            let step = NextStep::by_hand(remedy);
            lines.extend(next_step::lines(&step, style));
            lines.extend(further_failures(plan));
        }
        return lines.join("\n") + "\n";
    }
    if plan.is_empty() {
        let nothing = "Nothing to do: everything is already in place.";
        section(&mut lines, vec![nothing.into()]);
    } else {
        section(&mut lines, gains(plan, style));
        section(&mut lines, risks(&plan.risks, style));
        section(&mut lines, losses(&plan.disks_lost(), style));
        section(&mut lines, effort(&plan.effort, style));
        section(&mut lines, steps::steps(plan, style));
        section(&mut lines, afterwards(&plan.promises, style));
        section(&mut lines, next_start(plan, style));
    }
    section(&mut lines, notes(plan));
    lines.join("\n") + "\n"
}

/// Why it cannot be applied, in a sentence.
fn refusal(plan: &Plan) -> Option<String> {
    let checks = |is_unknown: bool| {
        let count = plan.obstacles().filter(|check| check.is_unknown == is_unknown).count() as u64;
        (count > 0).then(|| counted(count, "check", "checks"))
    };
    match (checks(false), checks(true)) {
        (None, None) => None,
        (Some(failed), None) => {
            Some(format!("It cannot be applied: {failed} failed. Nothing was changed."))
        }
        (Some(failed), Some(unknown)) => Some(format!(
            "It cannot be applied: {failed} failed, and {unknown} could not be made. Nothing was changed."
        )),
        (None, Some(unknown)) => {
            Some(format!("It cannot be planned here: {unknown} that it needs could not be made."))
        }
    }
}

/// What is said when a change is applied, with the next step. A plan whose effect comes with a start has a note that says
/// what to do when that fails; it is repeated where it is needed.
pub fn applied(name: &str, plan: &Plan) -> String {
    let name = clean(name);
    if !plan.needs_boot {
        return format!("{name} is applied. `rubus undo` puts everything back.\n");
    }
    let next = format!(
        "{name} is applied. Restart now (`sudo reboot`), then `rubus verify`; `rubus undo` puts everything back, before the \
         restart and after it."
    );
    let mut lines = hang("", &next, COLUMNS);
    let notes = plan.notes.iter();
    for rescue in notes.filter(|note| note.starts_with(crate::plan::RESCUE)) {
        lines.extend(hang("", &clean(rescue), COLUMNS));
    }
    lines.join("\n") + "\n"
}

/// Adds a section after an empty line; nothing for an empty one.
fn section(lines: &mut Vec<String>, section: Vec<String>) {
    if !section.is_empty() {
        lines.push(String::new());
        lines.extend(section);
    }
}

/// That the step named is the first of several, where more than one check failed.
fn further_failures(plan: &Plan) -> Vec<String> {
    let failed = plan.obstacles().filter(|check| !check.is_unknown).count() as u64;
    let others = match failed {
        0 | 1 => return Vec::new(),
        2 => "the other check that failed".to_string(),
        failed => format!("the other {} that failed", counted(failed - 1, "check", "checks")),
    };
    hang(&" ".repeat(width(next_step::TITLE)), &format!("Then {others}, above."), COLUMNS)
}

fn has_command(remedy: &str) -> bool {
    begins_with_command(remedy) || remedy.split('`').skip(1).step_by(2).any(begins_with_command)
}

fn checks(plan: &Plan, style: Style) -> Vec<String> {
    if plan.checks.is_empty() {
        return Vec::new();
    }
    let mut lines = vec![style.paint(Tone::Strong, "Checked")];
    for check in &plan.checks {
        let (mark, tone) = match (check.is_met, check.is_unknown) {
            (true, false) => ("ok   ", Tone::Good),
            (true, true) => ("?    ", Tone::Warn),
            (false, true) => ("?    ", Tone::Bad),
            (false, false) => ("FAIL ", Tone::Bad),
        };
        let text = format!("{}: {}", clean(&check.what), clean(&check.found));
        let wrapped = hang("       ", &text, COLUMNS);
        lines.extend(marked(wrapped, &format!("  {}", style.paint(tone, mark))));
        if let Some(remedy) = &check.remedy {
            lines.extend(hang("       → ", &clean(remedy), COLUMNS));
        }
    }
    if plan.checks.iter().any(|check| check.is_met && check.is_unknown) {
        let legend = "  ? could not be checked here: make sure of it before you apply";
        lines.push(style.paint(Tone::Faint, legend));
    }
    lines
}

/// Puts a mark in place of the first indent, which is as wide.
pub(crate) fn marked(mut wrapped: Vec<String>, mark: &str) -> Vec<String> {
    if let Some(first) = wrapped.first_mut() {
        *first = format!("{mark}{}", first.trim_start());
    }
    wrapped
}

/// What it gives, as a table of before and after, each with where the figures come from; and what would have to be measured
/// to say it.
fn gains(plan: &Plan, style: Style) -> Vec<String> {
    let mut lines = foreseen(&plan.gains, style);
    if let Some(unknown) = &plan.gains_unknown {
        if lines.is_empty() {
            lines.push(style.paint(Tone::Strong, "What it gives"));
        }
        let unknown = format!("Not known: {}", clean(unknown));
        lines.extend(hang("  ", &bind_units(&unknown), COLUMNS));
    }
    lines
}

fn foreseen(gains: &[Gain], style: Style) -> Vec<String> {
    if gains.is_empty() {
        return Vec::new();
    }
    let widest = |text: fn(&Gain) -> &str| {
        let widths = gains.iter().map(|gain| width(&clean(text(gain))));
        widths.max().unwrap_or(0)
    };
    let (what, now, then) =
        (widest(|gain| &gain.what), widest(|gain| &gain.now), widest(|gain| &gain.then));
    let mut lines = vec![style.paint(Tone::Strong, "What it gives (predicted)")];
    for gain in gains {
        let columns = [
            pad_right(&clean(&gain.what), what),
            pad_right(&clean(&gain.now), now),
            format!("→ {}", pad_right(&clean(&gain.then), then)),
            format!("{} times", times(gain.ratio)),
        ];
        let row = format!("  {}", columns.join("  "));
        if width(&row) <= COLUMNS {
            lines.push(row)
        } else {
            lines.extend(hang("  ", &clean(&gain.what), COLUMNS));
            let rest = columns[1..].join("  ");
            lines.extend(hang("    ", &rest, COLUMNS));
        }
        let source = hang("    source: ", &clean(&gain.source), COLUMNS);
        lines.extend(source.iter().map(|line| style.paint(Tone::Faint, line)));
    }
    lines
}

/// A ratio with two figures where it is small, and whole where it is large.
fn times(ratio: f64) -> String {
    match ratio {
        ratio if ratio >= 20.0 => format!("{ratio:.0}"),
        ratio if ratio >= 1.95 => format!("{ratio:.1}"),
        ratio => format!("{ratio:.2}"),
    }
}

fn risks(risks: &[String], style: Style) -> Vec<String> {
    if risks.is_empty() {
        return Vec::new();
    }
    let mut lines = vec![style.paint(Tone::Strong, "What can go wrong")];
    for risk in risks {
        lines.extend(hang("  - ", &bind_units(&clean(risk)), COLUMNS));
    }
    lines
}

/// The disks that lose everything, one card each, where they cannot be overlooked: before the steps.
fn losses(disks: &[&DiskIdentity], style: Style) -> Vec<String> {
    let title = match disks {
        [] => return Vec::new(),
        [_] => "EVERYTHING ON THIS DISK IS LOST",
        _ => "EVERYTHING ON THESE DISKS IS LOST",
    };
    let mut lines = vec![style.paint(Tone::Bad, title)];
    for disk in disks {
        lines.extend(card(disk));
    }
    lines
}

/// What to do about disks that cannot be told from one another.
const ALIKE: &str =
    "unplug such disks until the change is applied; after a power cut rubus asks before it goes on";

/// One disk: its node, model, size and serial number, and what is on it now.
pub fn card(disk: &DiskIdentity) -> Vec<String> {
    let model = disk.model.as_deref().unwrap_or("of unknown make");
    let serial = match (&disk.serial, &disk.wwn) {
        (Some(serial), _) => format!("serial number {serial}"),
        (None, Some(wwn)) => format!("world-wide name {wwn}"),
        (None, None) => "no serial number".into(),
    };
    let name = format!(
        "{}: {}, {}, {}",
        disk.path.display(),
        model.trim(),
        bytes_si(disk.size_bytes),
        serial
    );
    let mut lines = hang("  ", &bind_units(&clean(&name)), COLUMNS);
    if disk.model.is_some() && !disk.has_own_number() {
        let words = match disk.serial {
            Some(_) => "another disk says this number too",
            None => "another disk of its model looks the same",
        };
        lines.extend(hang("    ", &format!("{words}: {ALIKE}"), COLUMNS));
    }
    if disk.contents.is_empty() {
        lines.push("    on it now: nothing found".into());
    }
    for (i, content) in disk.contents.iter().enumerate() {
        let first = if i == 0 { "    on it now: " } else { "               " };
        lines.extend(hang(first, &bind_units(&clean(content)), COLUMNS));
    }
    lines
}

fn effort(effort: &Effort, style: Style) -> Vec<String> {
    let mut parts = Vec::new();
    if effort.written_bytes > 0 {
        parts.push(format!("writes {}", bytes_si(effort.written_bytes)));
    }
    if effort.most_s > 0.0 {
        parts.push(span(effort.least_s, effort.most_s));
    }
    if parts.is_empty() {
        return Vec::new();
    }
    let mut lines =
        vec![style.paint(Tone::Strong, "What it takes"), format!("  {}", parts.join(", "))];
    if !effort.source.is_empty() {
        lines.extend(hang("    ", &bind_units(&clean(&effort.source)), COLUMNS));
    }
    lines
}

/// A span of time as people say it.
fn span(least_s: f64, most_s: f64) -> String {
    let (unit, seconds) = match most_s {
        most if most < 120.0 => ("s", 1.0),
        most if most < 7_200.0 => ("minutes", 60.0),
        _ => ("hours", 3_600.0),
    };
    let figure = |s: f64| {
        let count = s / seconds;
        if count < 10.0 && unit == "hours" {
            format!("{count:.1}")
        } else {
            format!("{:.0}", count.ceil())
        }
    };
    let (least, most) = (figure(least_s), figure(most_s));
    if least == most { format!("about {most} {unit}") } else { format!("{least} to {most} {unit}") }
}

fn afterwards(promises: &[Promise], style: Style) -> Vec<String> {
    if promises.is_empty() {
        return Vec::new();
    }
    let mut lines = vec![style.paint(Tone::Strong, "Afterwards (`rubus verify` checks all of it)")];
    let groups = [(false, "at once:"), (true, "after the restart:")];
    for (needs_boot, title) in groups {
        let group: Vec<&Promise> =
            promises.iter().filter(|promise| promise.needs_boot == needs_boot).collect();
        if !group.is_empty() {
            lines.push(format!("  {title}"));
        }
        for promise in group {
            lines.extend(hang("    - ", &bind_units(&clean(&promise.what)), COLUMNS));
        }
    }
    lines
}

fn next_start(plan: &Plan, style: Style) -> Vec<String> {
    if let Some(trial) = &plan.trial {
        return on_trial(trial, Tried::of(&plan.promises), style);
    }
    if !plan.needs_boot {
        return Vec::new();
    }
    let text = "Part of this takes effect only after a restart. `rubus undo` works before the restart and after it.";
    let mut lines = vec![style.paint(Tone::Strong, "At the next start")];
    lines.extend(hang("  ", text, COLUMNS));
    lines
}

fn on_trial(trial: &Trial, Tried { new, old, holds }: Tried, style: Style) -> Vec<String> {
    let start = format!(
        "`{}` starts {new} once. If it comes up, run `rubus verify` there: it checks everything that is promised, and does the \
         remaining steps if {holds}.",
        clean(&trial.start)
    );
    let failed = format!(
        "If it does not come up, turn the power off and on: the firmware tries only once, then starts {old}, which has lost \
         nothing."
    );
    let until = format!(
        "Until then every normal start is {old}, and `rubus status` says ON TRIAL. `rubus undo` takes everything back, from \
         either of them, now and later."
    );
    let texts = [start, failed, until];
    let mut lines = vec![style.paint(Tone::Strong, "The trial")];
    for text in &texts {
        lines.extend(hang("  - ", text, COLUMNS));
    }
    lines
}

fn notes(plan: &Plan) -> Vec<String> {
    let notes = plan.notes.iter();
    notes.flat_map(|note| hang("", &clean(note), COLUMNS)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{long_plan::big_plan, plans::small_plan};

    #[test]
    fn what_is_applied_names_the_restart_and_what_to_do_if_it_fails() {
        let mut plan = small_plan();
        plan.needs_boot = true;
        plan.notes = vec![
            "Compression: zstd:1.".into(),
            "If the board does not come up: put the card into any PC.".into(),
        ];
        let said = applied("0001-desktop", &plan);
        for words in ["sudo reboot", "`rubus verify`", "put the card into any PC"] {
            assert!(said.contains(words), "{said}");
        }
        assert!(!said.contains("Compression"), "{said}");
        plan.needs_boot = false;
        assert!(!applied("0001-zswap", &plan).contains("reboot"));
    }

    #[test]
    fn a_plan_with_each_kind_of_step() {
        insta::assert_snapshot!(render(&small_plan(), Style::PLAIN));
    }

    #[test]
    fn a_plan_with_everything() {
        insta::assert_snapshot!(render(&big_plan(), Style::PLAIN));
    }

    #[test]
    fn only_exact_changes_are_wider_than_a_terminal() {
        let text = render(&big_plan(), Style::PLAIN);
        for line in text.lines().filter(|line| width(line) > COLUMNS) {
            let is_change = ["     + ", "     - ", "       "];
            assert!(is_change.iter().any(|start| line.starts_with(start)), "{line}");
        }
    }

    #[test]
    fn a_plan_with_an_obstacle_shows_no_steps() {
        let mut plan = big_plan();
        plan.checks[0].is_met = false;
        plan.checks[0].remedy = Some("use a kernel that has it".into());
        let text = render(&plan, Style::PLAIN);
        assert!(text.contains("  FAIL the kernel has the example"), "{text}");
        assert!(text.contains("→ use a kernel that has it"), "{text}");
        assert!(!text.contains("Steps"), "{text}");
        assert!(!text.contains("LOST"), "{text}");
        let end = "It cannot be applied: 1 check failed. Nothing was changed.\nTo do: Use a kernel that has it\n";
        assert!(text.ends_with(end), "{text}");
    }

    #[test]
    fn a_plan_with_several_obstacles_says_that_its_step_is_the_first() {
        let mut plan = big_plan();
        plan.checks[0].is_met = false;
        plan.checks[0].remedy = Some("use a kernel that has it".into());
        let second = Check { remedy: Some("plug it in".into()), ..plan.checks[0].clone() };
        plan.checks.push(second.clone());
        let text = render(&plan, Style::PLAIN);
        let end =
            "To do: Use a kernel that has it\n       Then the other check that failed, above.\n";
        assert!(text.ends_with(end), "{text}");
        plan.checks.push(second);
        let text = render(&plan, Style::PLAIN);
        assert!(text.ends_with("       Then the other 2 checks that failed, above.\n"), "{text}");
    }

    #[test]
    fn what_a_capture_does_not_hold_is_no_failure() {
        let mut plan = big_plan();
        plan.checks[0].is_met = false;
        plan.checks[0].is_unknown = true;
        plan.checks[0].remedy = Some("make the plan on the machine itself".into());
        let text = render(&plan, Style::PLAIN);
        assert!(text.contains("  ?    the kernel has the example"), "{text}");
        assert!(!text.contains("FAIL") && !text.contains("could not be checked here"), "{text}");
        let end = "It cannot be planned here: 1 check that it needs could not be made.\nTo do: Make the plan on the machine itself\n";
        assert!(text.ends_with(end), "{text}");
        let remedy = Some("use another kernel".into());
        plan.checks.push(Check { is_unknown: false, remedy, ..plan.checks[0].clone() });
        let text = render(&plan, Style::PLAIN);
        let end = "It cannot be applied: 1 check failed, and 1 check could not be made. Nothing was\nchanged.\nTo do: Use another kernel\n";
        assert!(text.ends_with(end), "{text}");
    }

    #[test]
    fn a_disk_that_looks_like_others_is_marked() {
        let plan = big_plan();
        let mut disk = plan.disks_lost()[0].clone();
        assert!(!card(&disk).join("\n").contains(ALIKE));
        disk.confirmation = "/dev/sda".into();
        let shared = card(&disk).join(" ");
        assert!(shared.contains("another disk says this number too"), "{shared}");
        disk.serial = None;
        let nameless = card(&disk).join(" ");
        assert!(nameless.contains("another disk of its model looks the same"), "{nameless}");
        let network = DiskIdentity {
            model: Some("nbd://192.168.1.2/root".into()),
            confirmation: "nbd://192.168.1.2/root".into(),
            ..disk
        };
        assert!(!card(&network).join(" ").contains("looks the same"));
    }

    #[test]
    fn what_could_not_be_checked_has_a_mark_of_its_own() {
        let mut plan = small_plan();
        plan.checks[0].is_unknown = true;
        let text = render(&plan, Style::PLAIN);
        assert!(text.contains("  ?    the kernel has the example"), "{text}");
        assert!(text.contains("? could not be checked here"), "{text}");
        assert!(!text.contains("  ok   "), "{text}");
    }

    #[test]
    fn what_was_not_measured_is_no_figure() {
        let mut plan = small_plan();
        plan.gains_unknown = Some("sdb was not measured.".into());
        let text = render(&plan, Style::PLAIN);
        assert!(text.contains("What it gives\n  Not known: sdb was not measured."), "{text}");
    }

    #[test]
    fn names_of_disks_cannot_move_the_cursor() {
        let mut plan = big_plan();
        for step in &mut plan.steps {
            if let crate::plan::Action::Partition(step) = &mut step.action {
                step.disk.model = Some("\x1b[2JSafe\u{202e}disk".into());
            }
        }
        let text = render(&plan, Style::PLAIN);
        assert!(text.contains("Safe"), "{text}");
        assert!(!text.contains('\x1b') && !text.contains('\u{202e}'), "{text}");
    }

    #[test]
    fn times_and_spans_read_like_speech() {
        assert_eq!([times(1.08), times(6.84), times(123.4)], ["1.08", "6.8", "123"]);
        assert_eq!(span(3.0, 8.0), "3 to 8 s");
        assert_eq!(span(420.0, 1_500.0), "7 to 25 minutes");
        assert_eq!(span(3_600.0, 9_000.0), "1.0 to 2.5 hours");
        assert_eq!(span(60.0, 60.0), "about 60 s");
    }
}
