//! The processor lines of `/proc/stat`: where the time of the cores went. Format: proc_stat(5),
//! Linux man-pages.

use serde::{Deserialize, Serialize};

use rubus_vocabulary::result::CpuShares;

/// Times of one core or of all, in ticks since the start of the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CpuTimes {
    /// In programs, niced ones included.
    pub user: u64,
    /// In the kernel.
    pub system: u64,
    /// Doing nothing.
    pub idle: u64,
    /// Doing nothing while I/O was outstanding.
    pub iowait: u64,
    /// In interrupts.
    pub irq: u64,
    /// In deferred interrupt work.
    pub softirq: u64,
    /// Taken by the hypervisor.
    pub steal: u64,
}

impl CpuTimes {
    /// All of it.
    pub fn total(&self) -> u64 {
        self.user + self.system + self.idle + self.iowait + self.irq + self.softirq + self.steal
    }

    /// The difference to an earlier reading. Kernels are known to let iowait go back a little; that
    /// counts as nothing.
    pub fn since(&self, earlier: &CpuTimes) -> CpuTimes {
        CpuTimes {
            user: self.user.saturating_sub(earlier.user),
            system: self.system.saturating_sub(earlier.system),
            idle: self.idle.saturating_sub(earlier.idle),
            iowait: self.iowait.saturating_sub(earlier.iowait),
            irq: self.irq.saturating_sub(earlier.irq),
            softirq: self.softirq.saturating_sub(earlier.softirq),
            steal: self.steal.saturating_sub(earlier.steal),
        }
    }
}

/// All cores together, then each core. Guest time is part of user time there and not counted again.
pub fn parse(text: &str) -> Vec<CpuTimes> {
    let lines = text.lines().take_while(|line| line.starts_with("cpu"));
    lines
        .map(|line| {
            let mut numbers = line.split_ascii_whitespace().skip(1);
            let mut next = || numbers.next().and_then(|n| n.parse().ok()).unwrap_or(0_u64);
            let (user, nice) = (next(), next());
            CpuTimes {
                user: user.saturating_add(nice),
                system: next(),
                idle: next(),
                iowait: next(),
                irq: next(),
                softirq: next(),
                steal: next(),
            }
        })
        .collect()
}

/// Shares of the processors' time between two readings of [`parse`]; all zero when there is nothing to
/// compare.
pub fn shares(first: &[CpuTimes], last: &[CpuTimes]) -> CpuShares {
    let mut cores = last.iter().zip(first).map(|(last, first)| last.since(first));
    let Some(all) = cores.next() else {
        return CpuShares::default();
    };
    let total = all.total().max(1) as f64;
    let share = |ticks: u64| ticks as f64 / total;
    CpuShares {
        user: share(all.user),
        system: share(all.system),
        irq: share(all.irq),
        softirq: share(all.softirq),
        iowait: share(all.iowait),
        steal: share(all.steal),
        per_core_busy: cores
            .map(|core| {
                let busy = core.total() - core.idle - core.iowait;
                busy as f64 / core.total().max(1) as f64
            })
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_processor_lines() {
        let text = "cpu  10 5 20 300 7 1 2 4 9 0\ncpu0 5 5 10 150 3 1 1 2 9 0\nintr 5\ncpu9 1\n";
        let cpus = parse(text);
        assert_eq!(cpus.len(), 2);
        let all =
            CpuTimes { user: 15, system: 20, idle: 300, iowait: 7, irq: 1, softirq: 2, steal: 4 };
        assert_eq!(cpus[0], all);
        assert_eq!(cpus[0].total(), 349);
        assert_eq!(parse("cpu 1 2 3\n")[0].steal, 0);
    }

    #[test]
    fn time_that_goes_back_is_nothing() {
        let earlier = CpuTimes { iowait: 9, ..CpuTimes::default() };
        assert_eq!(CpuTimes::default().since(&earlier).iowait, 0);
    }

    #[test]
    fn shares_are_of_the_time_in_between() {
        let before = parse("cpu  0 0 100 100 0 0 0 0\ncpu0 0 0 100 100 0 0 0 0\n");
        let after = parse("cpu  30 0 110 150 10 0 0 0\ncpu0 30 0 110 150 10 0 0 0\n");
        let shares = shares(&before, &after);
        assert_eq!((shares.user, shares.system, shares.iowait), (0.3, 0.1, 0.1));
        assert_eq!(shares.per_core_busy, [0.4]);
        assert_eq!(super::shares(&[], &after), CpuShares::default());
    }
}
