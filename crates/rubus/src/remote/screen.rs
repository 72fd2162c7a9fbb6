//! What the user sees of several machines at work: a line for each while there is a terminal, and the
//! machines' words with their names in front.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use rubus_measure::text::progress::{self, Progress};
use rubus_remote::Destination;

use crate::progress::terminal_columns;
use crate::world::Terminal;

/// Standard error, shared by all machines.
pub struct Screen {
    live: bool,
    quiet: bool,
    /// Of one width, so that what follows stands below one another.
    names: Vec<String>,
    all: MultiProgress,
    /// Only machines that do something have a line.
    bars: Vec<Mutex<Option<ProgressBar>>>,
}

impl Screen {
    /// For these machines.
    pub fn new(terminal: Terminal, quiet: bool, machines: &[Destination]) -> Self {
        let target = match terminal.live {
            true => ProgressDrawTarget::stderr_with_hz(10),
            false => ProgressDrawTarget::hidden(),
        };
        let widths = machines.iter().map(|name| name.as_str().chars().count());
        let width = widths.max().unwrap_or(0) + 1;
        let names = machines.iter().map(Destination::as_str);
        Screen {
            live: terminal.live,
            quiet,
            names: names
                .map(|name| format!("{:width$}", format!("{name}:")))
                .collect(),
            all: MultiProgress::with_draw_target(target),
            bars: machines.iter().map(|_| Mutex::new(None)).collect(),
        }
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
            let bar = self.all.insert(machine, ProgressBar::new_spinner());
            // The template is a constant without fields that could be wrong.
            bar.set_style(
                ProgressStyle::with_template("{spinner} {prefix} {msg}")
                    .expect("a constant template"),
            );
            bar.set_prefix(self.names[machine].clone());
            bar.enable_steady_tick(Duration::from_millis(250));
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
        self.bars[machine]
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// A line of a machine that lives only on a terminal, such as a finished job.
    pub fn done(&self, machine: usize, line: &str) {
        if self.live {
            self.from(machine, line);
        }
    }

    /// A line for those who did not ask for quiet.
    pub fn note(&self, machine: usize, line: &str) {
        if !self.quiet {
            self.from(machine, line);
        }
    }

    /// A line of a machine, with its name in front.
    pub fn from(&self, machine: usize, line: &str) {
        self.say(&format!(
            "{} {}",
            self.names[machine],
            without_controls(line)
        ));
    }

    /// A line of our own.
    pub fn say(&self, line: &str) {
        self.around(|| eprintln!("{line}"));
    }

    /// Does something that writes to the terminal, with the live lines out of the way.
    pub fn around<T>(&self, act: impl FnOnce() -> T) -> T {
        self.all.suspend(act)
    }
}

/// What comes from another machine must not move the cursor or change colours here.
fn without_controls(line: &str) -> String {
    line.chars()
        .map(|c| match c {
            '\t' => ' ',
            c if c.is_control() => '\u{fffd}',
            c => c,
        })
        .collect::<String>()
        .trim_end_matches('\u{fffd}')
        .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_machine_cannot_write_over_the_screen() {
        assert_eq!(without_controls("a\tb\u{1b}[2Jc\r"), "a b\u{fffd}[2Jc");
    }
}
