//! How a change goes on, told on standard error.

use rubus_command::{Terminal, message};
use rubus_host::clock;
use rubus_host::process::standard_error;

use rubus_change::apply::{Event, Progress};

/// Tells on standard error how a change goes on: a line for every step, and for long ones a line that is written
/// again and again; without a terminal a new line every ten seconds.
#[derive(Debug)]
pub struct Teller {
    is_quiet: bool,
    is_live: bool,
    /// Whether an unfinished line is on the terminal.
    is_line_open: bool,
    told_ns: u64,
    /// Whether it was told why the change goes back.
    has_said_why: bool,
}

impl Teller {
    /// For this user's terminal.
    pub fn new(terminal: Terminal, is_quiet: bool) -> Self {
        Teller {
            is_quiet,
            is_live: terminal.live,
            is_line_open: false,
            told_ns: 0,
            has_said_why: false,
        }
    }

    /// Tells of one event.
    pub fn tell(&mut self, event: Event<'_>) {
        if self.is_quiet {
            return;
        }
        match event {
            Event::Step { step, of, title, .. } => {
                self.line(&format!("[{}/{of}] {title}", step + 1));
                // A step that ends within ten seconds needs no second line.
                self.told_ns = clock::monotonic_ns();
            }
            Event::Progress { progress, .. } => self.progress(progress),
            Event::Remark { words } => self.line(&format!("rubus: {words}")),
            Event::TurningBack { why } => {
                self.turning_back(why, "putting everything back");
            }
        }
    }

    /// Tells why it does not go on, and what is done instead.
    pub fn turning_back(&mut self, why: &str, instead: &str) {
        if !self.is_quiet {
            self.line(&format!("rubus: {why}\nrubus: {instead}"));
            self.has_said_why = true;
        }
    }

    /// What is said of a change that went back: how all is now, and why, where that was not told when it happened.
    pub fn went_back(&self, why: &str, now: &str) -> String {
        if self.has_said_why {
            format!("rubus: {now}")
        } else {
            format!("rubus: {why}\nrubus: {now}")
        }
    }

    /// Ends the line of the progress.
    pub fn close(&mut self) {
        if self.is_line_open {
            standard_error::write("\r\x1b[K");
            self.is_line_open = false;
        }
    }

    fn line(&mut self, text: &str) {
        self.close();
        message!("{text}");
    }

    fn progress(&mut self, progress: &Progress) {
        const LIVE_EVERY_NS: u64 = 200_000_000;
        const PLAIN_EVERY_NS: u64 = 10_000_000_000;
        let now = clock::monotonic_ns();
        let every = if self.is_live { LIVE_EVERY_NS } else { PLAIN_EVERY_NS };
        if now.saturating_sub(self.told_ns) < every {
            return;
        }
        self.told_ns = now;
        let words = words(progress);
        if self.is_live {
            // Longer than the terminal is wide it would leave its first rows behind.
            let cut: String = words.chars().take(78).collect();
            // A progress that cannot be shown is no reason to stop.
            standard_error::write(&format!("\r\x1b[K      {}", rubus_draw::text::clean(&cut)));
            self.is_line_open = true;
        } else {
            message!("      {words}");
        }
    }
}

fn words(progress: &Progress) -> String {
    let mut text = match progress.share {
        Some(share) => format!("{:>3.0} %  {}", share.clamp(0.0, 1.0) * 100.0, progress.words),
        None => progress.words.clone(),
    };
    if let Some(left_s) = progress.left_s.filter(|left| left.is_finite()) {
        text += &format!(", {} left", about(left_s));
    }
    text
}

/// A time that is an estimate, with as few digits as it deserves.
fn about(seconds: f64) -> String {
    match seconds {
        s if s < 60.0 => format!("about {:.0} s", (s / 5.0).ceil() * 5.0),
        s if s < 5400.0 => format!("about {:.0} min", (s / 60.0).ceil()),
        s => format!("about {:.1} h", s / 3600.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_in_words() {
        let mut progress = Progress {
            words: "copied 12 of 98 files".into(),
            share: Some(0.1234),
            left_s: Some(61.0),
        };
        assert_eq!(words(&progress), " 12 %  copied 12 of 98 files, about 2 min left");
        progress.share = None;
        progress.left_s = Some(3.0);
        assert_eq!(words(&progress), "copied 12 of 98 files, about 5 s left");
        progress.left_s = Some(9000.0);
        assert_eq!(words(&progress), "copied 12 of 98 files, about 2.5 h left");
        progress.left_s = None;
        assert_eq!(words(&progress), "copied 12 of 98 files");
    }
}
