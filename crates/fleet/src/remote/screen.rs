//! What the user sees of several machines at work: a line for each while there is a terminal, and the
//! machines' words with their names in front.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use rubus_draw::text::clean;
use rubus_verdict::text::progress::{self, Progress};

use rubus_command::progress::terminal_columns;
use rubus_command::{Terminal, message};

/// Standard error, shared by all machines.
pub struct Screen {
    live: bool,
    quiet: bool,
    /// Of one width, so that what follows stands below one another.
    names: Vec<String>,
    all: MultiProgress,
    /// Only machines that do something have a line.
    bars: Vec<Mutex<Option<ProgressBar>>>,
    /// How far the fleet is, below all lines; none for one machine.
    fleet: Option<Fleet>,
}

/// How many machines are done.
struct Fleet {
    bar: ProgressBar,
    count: Mutex<Count>,
}

#[derive(Clone, Copy, Default)]
struct Count {
    all: usize,
    begun: usize,
    done: usize,
    failed: usize,
}

impl Count {
    /// "3 of 20 done, 1 without a result, 8 at work".
    fn words(self) -> String {
        let failed = match self.failed {
            0 => String::new(),
            some => format!(", {some} without a result"),
        };
        format!("{} of {} done{failed}, {} at work", self.done, self.all, self.begun - self.done)
    }
}

impl Screen {
    /// For these machines.
    pub fn new(terminal: Terminal, quiet: bool, machines: &[&str], is_fleet: bool) -> Self {
        let target = if terminal.live {
            ProgressDrawTarget::stderr_with_hz(10)
        } else {
            ProgressDrawTarget::hidden()
        };
        let widths = machines.iter().map(|name| name.chars().count());
        // The name of a host has at most 255 letters (RFC 1035), and a format's width ends at 65,535.
        let width = widths.max().unwrap_or(0).min(255) + 1;
        let all = MultiProgress::with_draw_target(target);
        let fleet = is_fleet.then(|| Fleet {
            bar: all.add(spinner("{spinner} {msg}")),
            count: Mutex::new(Count { all: machines.len(), ..Count::default() }),
        });
        Screen {
            live: terminal.live,
            quiet,
            names: machines.iter().map(|name| format!("{:width$}", format!("{name}:"))).collect(),
            all,
            bars: machines.iter().map(|_| Mutex::new(None)).collect(),
            fleet,
        }
    }

    pub fn is_of_fleet(&self) -> bool {
        self.fleet.is_some()
    }

    /// A machine's turn has come.
    pub fn begin(&self) {
        self.count(|count| count.begun += 1);
    }

    /// A machine is done.
    pub fn end(&self, machine: usize, has_failed: bool) {
        self.clear(machine);
        let now = self.count(|count| {
            count.done += 1;
            count.failed += usize::from(has_failed);
        });
        if let Some(now) = now.filter(|_| !has_failed && !self.live) {
            self.note(machine, &format!("done ({} of {})", now.done, now.all));
        }
    }

    /// Takes the fleet's line away.
    pub fn finish(&self) {
        if let Some(fleet) = &self.fleet {
            fleet.bar.finish_and_clear();
        }
    }

    fn count(&self, change: impl FnOnce(&mut Count)) -> Option<Count> {
        let fleet = self.fleet.as_ref()?;
        // Numbers that a panicking thread held are as good as any.
        let mut count = fleet.count.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut count);
        fleet.bar.set_message(count.words());
        Some(*count)
    }

    /// Lets ssh ask on the terminal, without lines that are drawn over its question.
    pub fn while_asking<T>(&self, ask: impl FnOnce() -> T) -> T {
        static TURN: Mutex<()> = Mutex::new(());
        let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.live {
            return ask();
        }
        self.all.suspend(|| ());
        self.all.set_draw_target(ProgressDrawTarget::hidden());
        let answer = ask();
        self.all.set_draw_target(ProgressDrawTarget::stderr_with_hz(10));
        answer
    }

    /// What a machine is doing that has no figures.
    pub fn status(&self, machine: usize, what: &str) {
        self.show(machine, what.to_string());
    }

    /// What a machine is measuring.
    pub fn progress(&self, machine: usize, at: &Progress) {
        // The spinner, the name and the spaces after them.
        let taken = self.names[machine].chars().count() + 4;
        let columns = usize::from(terminal_columns()).saturating_sub(taken);
        self.show(machine, progress::line(at, columns));
    }

    fn show(&self, machine: usize, text: String) {
        let mut bar = self.bar(machine);
        let bar = bar.get_or_insert_with(|| {
            let bar = spinner("{spinner} {prefix} {msg}");
            let bar = match &self.fleet {
                Some(fleet) => self.all.insert_before(&fleet.bar, bar),
                None => self.all.insert(machine, bar),
            };
            bar.set_prefix(self.names[machine].clone());
            bar
        });
        bar.set_message(text);
    }

    /// Takes a machine's line away.
    pub fn clear(&self, machine: usize) {
        if let Some(bar) = self.bar(machine).take() {
            bar.finish_and_clear();
            self.all.remove(&bar);
        }
    }

    fn bar(&self, machine: usize) -> MutexGuard<'_, Option<ProgressBar>> {
        // A line that a panicking thread held is as good as any.
        self.bars[machine].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A line of a machine that lives only on a terminal, such as a finished job.
    pub fn done(&self, machine: usize, line: &str) {
        if self.live {
            self.from(machine, line);
        }
    }

    /// A line of a machine that `--quiet` leaves out.
    pub fn note(&self, machine: usize, line: &str) {
        if !self.quiet {
            self.from(machine, line);
        }
    }

    /// A line of a machine, with its name in front.
    pub fn from(&self, machine: usize, line: &str) {
        self.say(&format!("{} {}", self.names[machine], harmless(line)));
    }

    /// A line of our own.
    pub fn say(&self, line: &str) {
        self.around(|| message!("{line}"));
    }

    /// Does something that writes to the terminal, with the live lines out of the way.
    pub fn around<T>(&self, act: impl FnOnce() -> T) -> T {
        self.all.suspend(act)
    }
}

fn spinner(template: &str) -> ProgressBar {
    let bar = ProgressBar::new_spinner();
    // The templates are constants without fields that could be wrong.
    bar.set_style(ProgressStyle::with_template(template).expect("a constant template"));
    bar.enable_steady_tick(Duration::from_millis(250));
    bar
}

/// What comes from another machine must not move the cursor, change colours or hide words here.
fn harmless(line: &str) -> String {
    clean(&line.replace('\t', " ")).trim_end_matches('\u{fffd}').to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_machine_cannot_write_over_the_screen() {
        assert_eq!(harmless("a\tb\u{1b}[2Jc\r"), "a b\u{fffd}[2Jc");
        assert_eq!(harmless("a\u{202e}b"), "a\u{fffd}b");
    }
}
