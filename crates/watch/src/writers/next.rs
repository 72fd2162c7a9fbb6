//! What to do next about who wrote.

use rubus_draw::text::clean;
use rubus_draw::words::span;
use rubus_vocabulary::next_step::NextStep;
use rubus_vocabulary::units::{bytes_si, percent};

use super::{KERNEL, Report};
use crate::wear::YearsLeft;

/// From this share of all on, a unit is worth a change.
const MUCH: f64 = 0.25;
/// A disk that lasts longer than this at its rate is none that writing wears out.
const LONG_YEARS: f64 = 10.0;

impl Report {
    /// Which program had most written, how much, and its share: the answer.
    pub fn answer(&self) -> String {
        let programs = || self.units.iter().flat_map(|unit| &unit.programs);
        let all: u64 = programs().map(|program| program.written_bytes).sum();
        let most = programs().max_by_key(|program| program.written_bytes);
        let Some(most) = most.filter(|program| program.written_bytes > 0) else {
            return "No program had anything written.".into();
        };
        let share = percent(most.written_bytes as f64 / all as f64);
        let (own, all) = (bytes_si(most.written_bytes), bytes_si(all));
        let name = clean(&most.program);
        format!("{name} wrote most: {own} of {all} in {}, {share}.", span(self.seconds))
    }

    /// What to do next: about a disk that fails or is worn out, then about what writes most.
    pub fn next(&self) -> NextStep {
        if let Some(finding) = self.findings.first() {
            let fix = finding.fix.trim_end_matches('.');
            return NextStep::by_hand(&format!("{}: {fix}", finding.about));
        }
        if self.disks_written_bytes == 0 && self.programs_written_bytes == 0 {
            return NextStep::by_hand("nothing: nothing was written");
        }
        let years = self.wear.iter().filter_map(|wear| wear.years_left.as_ref());
        let lasts = |years: &YearsLeft| years.min_years >= LONG_YEARS;
        let mut known = years.clone().peekable();
        if known.peek().is_some() && years.clone().all(lasts) && known.count() == self.disks.len() {
            return NextStep::by_hand("nothing: the disks last longer than 10 years at this rate");
        }
        if self.writes_much(self.swap_written_bytes.unwrap_or(0)) {
            let words = "swap writes most of it, which zswap keeps in memory";
            return NextStep::command(&["rubus", "plan", "zswap"], words);
        }
        self.about_units().unwrap_or_else(|| {
            if self.per_day.is_some() {
                return NextStep::by_hand("nothing: no single program writes much of it");
            }
            let words = "24 h of it say who writes, and how long the disks last";
            NextStep::command(&["sudo", "rubus", "writers", "--time", "24h"], words)
        })
    }

    /// About the unit that wrote most, where a recipe or its owner can change that.
    fn about_units(&self) -> Option<NextStep> {
        let unit = self.units.iter().find(|unit| unit.unit != KERNEL)?;
        if !self.writes_much(unit.written_bytes) {
            return None;
        }
        let share = percent(unit.written_bytes as f64 / self.all_bytes());
        let plan = |recipe: &str| {
            let words = format!("{} wrote {share} of all", unit.unit);
            NextStep::command(&["rubus", "plan", recipe], &words)
        };
        Some(match unit.unit.as_str() {
            "systemd-journald.service" => plan("journal-to-memory"),
            "rsyslog.service" | "syslog-ng.service" => plan("logs-to-memory"),
            "" => return None,
            other => NextStep::by_hand(&format!(
                "see whether {other} can write less: it wrote {share} of all"
            )),
        })
    }

    fn writes_much(&self, bytes: u64) -> bool {
        bytes as f64 >= MUCH * self.all_bytes()
    }

    /// Where no disk is known, what programs had written.
    fn all_bytes(&self) -> f64 {
        self.disks_written_bytes.max(self.programs_written_bytes).max(1) as f64
    }
}
