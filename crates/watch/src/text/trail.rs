//! How busy disks were before, for a line of columns.

use std::collections::VecDeque;

use crate::Look;

/// Maximum number of looks to remember.
const MAX: usize = 60;

/// The busy shares of every disk, the last one last.
#[derive(Clone, Debug, Default)]
pub struct Trail {
    disks: Vec<(String, VecDeque<f64>)>,
    gone: Vec<String>,
}

impl Trail {
    /// Remembers a look. A disk that is gone is forgotten.
    pub fn push(&mut self, look: &Look) {
        self.disks.retain(|(name, _)| look.disks.iter().any(|disk| disk.name == *name));
        for name in &look.vanished {
            if !self.gone.contains(name) {
                self.gone.push(name.clone());
            }
        }
        self.gone.retain(|name| look.disks.iter().all(|disk| disk.name != *name));
        for disk in &look.disks {
            let Some(rates) = disk.rates else {
                continue;
            };
            let found = self.disks.iter().position(|(name, _)| *name == disk.name);
            let at = found.unwrap_or_else(|| {
                self.disks.push((disk.name.clone(), VecDeque::new()));
                self.disks.len() - 1
            });
            let shares = &mut self.disks[at].1;
            shares.push_back(rates.busy);
            if shares.len() > MAX {
                shares.pop_front();
            }
        }
    }

    /// Disks that were taken out and did not come back.
    pub(super) fn gone(&self) -> &[String] {
        &self.gone
    }

    /// The latest busy shares of a disk as bars in eighths, at most `columns` of them.
    pub(super) fn line(&self, disk: &str, columns: usize) -> String {
        const LEVELS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
        let found = self.disks.iter().find(|(name, _)| name == disk);
        let Some((_, shares)) = found else {
            return String::new();
        };
        let skipped = shares.len().saturating_sub(columns);
        let level = |share: &f64| {
            let eighths = (share * 8.0).round().clamp(0.0, 8.0) as usize;
            LEVELS[if *share > 0.0 { eighths.max(1) } else { 0 }]
        };
        shares.iter().skip(skipped).map(level).collect()
    }
}
