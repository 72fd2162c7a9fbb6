//! The state of changes as text.

use crate::plan::journal::{Receipt, StepState, Way};

use super::COLUMNS;
use rubus_draw::next_step;
use rubus_draw::style::{Style, Tone};
use rubus_draw::text::{clean, hang};
use rubus_vocabulary::next_step::NextStep;

/// A change as the list of changes shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangeLine<'a> {
    /// "0003-zswap".
    pub name: &'a str,
    /// What it does.
    pub title: &'a str,
    /// Which way it goes or went.
    pub way: Way,
    /// Whether it reached the end of its way.
    pub is_finished: bool,
    /// Whether it waits until the machine has come up on trial.
    pub is_on_trial: bool,
    /// Whether all is as planned although the journal does not say that it was finished.
    pub is_ahead_of_journal: bool,
    /// The state of each step, in order.
    pub steps: &'a [StepState],
    /// What is not as it should be now, in words.
    pub differences: Vec<String>,
    /// Promises that do not hold, each with what is the case.
    pub broken: Vec<String>,
    /// What has to be known besides: that a start is missing, or that another root has done the rest.
    pub remarks: Vec<String>,
}

/// A step with what became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepLine<'a> {
    /// What it does.
    pub title: String,
    /// Where it is.
    pub state: StepState,
    /// What it was to give and what it gave, the last time that it was done or undone.
    pub receipt: Option<&'a Receipt>,
}

/// Every step of a change with its receipt: the planned and the live value.
pub fn receipts(steps: &[StepLine<'_>], style: Style) -> String {
    let mut lines = Vec::new();
    for (number, step) in steps.iter().enumerate() {
        let (word, tone) = match step.state {
            StepState::Done => ("done", Tone::Good),
            StepState::InDoubt => ("in doubt", Tone::Bad),
            StepState::NotDone => ("not done", Tone::Plain),
        };
        let title = format!("{}: ", clean(&step.title));
        let text = format!("{title}{word}");
        let mut wrapped = hang(&format!("{:>5}  ", number + 1), &text, COLUMNS);
        if let Some(last) = wrapped.last_mut().filter(|last| last.ends_with(word)) {
            last.truncate(last.len() - word.len());
            last.push_str(&style.paint(tone, word));
        }
        lines.extend(wrapped);
        let Some(receipt) = step.receipt else {
            continue;
        };
        let words = if receipt.planned == receipt.live {
            format!("as planned: {}", receipt.live)
        } else {
            format!("planned {}, live {}", receipt.planned, receipt.live)
        };
        let words = hang("       ", &clean(&words), COLUMNS);
        lines.extend(words.iter().map(|line| style.paint(Tone::Faint, line)));
    }
    lines.join("\n") + "\n"
}

/// The changes of this machine, oldest first.
pub fn status(changes: &[ChangeLine<'_>], style: Style) -> String {
    if changes.is_empty() {
        let mut lines = vec!["No recipe has been applied on this machine.".to_string()];
        lines.extend(next_step::lines(&next(changes), style));
        return lines.join("\n") + "\n";
    }
    let mut lines = Vec::new();
    for change in changes {
        let (tone, words) = state(change);
        lines.push(format!(
            "{}  {}",
            style.paint(Tone::Strong, &clean(change.name)),
            style.paint(tone, &words)
        ));
        lines.extend(hang("  ", &clean(change.title), COLUMNS));
        for difference in &change.differences {
            lines.extend(hang("  differs: ", &clean(difference), COLUMNS));
        }
        for broken in &change.broken {
            lines.extend(hang("  does not hold: ", &clean(broken), COLUMNS));
        }
        for remark in &change.remarks {
            lines.extend(hang("  ", &clean(remark), COLUMNS));
        }
    }
    lines.extend(next_step::lines(&next(changes), style));
    lines.join("\n") + "\n"
}

/// What the changes of a machine ask for: the one that needs a hand most, the newest of several.
fn next(changes: &[ChangeLine<'_>]) -> NextStep {
    let newest = |is_it: fn(&ChangeLine<'_>) -> bool| changes.iter().rev().find(|line| is_it(line));
    let is_half_done =
        |line: &ChangeLine<'_>| !line.is_finished && !line.is_on_trial && !line.is_ahead_of_journal;
    if newest(is_half_done).is_some() {
        return NextStep::command(&["sudo", "rubus", "resume"], "a change is half done");
    }
    if newest(|line| line.is_on_trial).is_some() {
        let words = "restart if you did not yet; it keeps the change or says what is wrong";
        return NextStep::command(&["sudo", "rubus", "verify"], words);
    }
    let is_applied = |line: &ChangeLine<'_>| line.way == Way::Apply;
    let differs = |line: &ChangeLine<'_>| {
        line.way == Way::Apply && !(line.differences.is_empty() && line.broken.is_empty())
    };
    if let Some(line) = newest(differs) {
        let words = "what it promises, and what to do about what does not hold";
        return NextStep::command(&["sudo", "rubus", "verify", line.name], words);
    }
    match newest(is_applied) {
        Some(_) => NextStep::by_hand("nothing: every change is as it was applied"),
        None => NextStep::command(&["rubus", "advise"], "what a change would gain here"),
    }
}

fn state(change: &ChangeLine<'_>) -> (Tone, String) {
    let of = change.steps.len();
    let done = change.steps.iter().filter(|step| **step == StepState::Done);
    let done = done.count();
    match (change.is_finished, change.way) {
        (true, Way::Apply) if change.differences.is_empty() && change.broken.is_empty() => {
            (Tone::Good, "applied".into())
        }
        (true, Way::Apply) if change.differences.is_empty() => {
            (Tone::Warn, "applied, but not all holds".into())
        }
        (true, Way::Apply) => (Tone::Warn, "applied, and changed since".into()),
        (true, Way::Undo) => (Tone::Plain, "undone".into()),
        (false, Way::Apply) if change.is_on_trial => {
            (Tone::Warn, format!("ON TRIAL, {done} of {of} steps: not kept yet"))
        }
        (false, Way::Apply) if change.is_ahead_of_journal => {
            (Tone::Warn, "applied, but the journal on this root ends early".into())
        }
        (false, Way::Apply) => (
            Tone::Bad,
            format!(
                "HALF DONE, {done} of {of} steps: `rubus resume` goes on, `rubus undo` goes back"
            ),
        ),
        (false, Way::Undo) => {
            (Tone::Bad, format!("HALF UNDONE, {done} of {of} steps left: `rubus resume` goes on"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_of_changes() {
        let (done, half) = ([StepState::Done; 2], [StepState::Done, StepState::InDoubt]);
        let line = |name, way, is_finished, steps| ChangeLine {
            name,
            title: "Show each kind of step.",
            way,
            is_finished,
            is_on_trial: false,
            is_ahead_of_journal: false,
            steps,
            differences: Vec::new(),
            broken: Vec::new(),
            remarks: Vec::new(),
        };
        let mut changed = line("0001-example", Way::Apply, true, &done[..]);
        changed.differences = vec!["/etc/old.conf was changed".into()];
        let mut later = line("0005-example", Way::Apply, true, &done[..]);
        later.remarks = vec!["It is in force after the next start.".into()];
        let mut broken = line("0006-example", Way::Apply, true, &done[..]);
        broken.broken = vec!["no swap lies on the SD card (on mmcblk0: /var/swap)".into()];
        let mut ahead = line("0007-example", Way::Apply, false, &half[..]);
        ahead.is_ahead_of_journal = true;
        let mut tried = line("0008-example", Way::Apply, false, &half[..]);
        tried.is_on_trial = true;
        tried.remarks = vec!["It waits for its trial.".into()];
        let all = [
            tried,
            ahead,
            later,
            broken,
            changed,
            line("0002-example", Way::Apply, false, &half[..]),
            line("0003-example", Way::Undo, false, &half[..]),
            line("0004-example", Way::Apply, true, &done[..]),
        ];
        insta::assert_snapshot!(status(&all, Style::PLAIN));
        let typed = |changes: &[ChangeLine<'_>]| {
            let step = next(changes);
            step.command.map_or(step.words, |command| command.join(" "))
        };
        assert_eq!(typed(&[]), "rubus advise");
        assert_eq!(typed(&all), "sudo rubus resume");
        assert_eq!(typed(&all[..5]), "sudo rubus verify");
        assert_eq!(typed(&all[2..5]), "sudo rubus verify 0001-example");
        assert_eq!(typed(&all[2..4]), "sudo rubus verify 0006-example");
        assert_eq!(typed(&all[7..]), "nothing: every change is as it was applied");
        assert_eq!(typed(&all[2..3]), "nothing: every change is as it was applied");
    }

    #[test]
    fn receipts_have_the_planned_and_the_live_value() {
        let receipt =
            |planned: &str, live: &str| Receipt { planned: planned.into(), live: live.into() };
        let (same, other) = (receipt("20", "20"), receipt("1", "Y"));
        let step = |title: &str, state, receipt| StepLine { title: title.into(), state, receipt };
        let steps = [
            step("set /sys/example/size from 10 to 20", StepState::Done, Some(&same)),
            step("set /sys/example/enabled from N to 1", StepState::Done, Some(&other)),
            step("change /boot/firmware/cmdline.txt", StepState::InDoubt, None),
            step("remove /etc/gone.conf", StepState::NotDone, None),
        ];
        insta::assert_snapshot!(receipts(&steps, Style::PLAIN));
    }
}
