//! The watcher: what the machine did while something was measured.
//!
//! A thread of its own looks at the processors' time, the traffic of the device, heat and supply a few
//! times a second; what it costs itself is known and taken off the account of the measuring. What
//! the samples mean is decided in `attribution`.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rubus_machine::parse::stat;
use rubus_vocabulary::doubt::Doubt;
use rubus_vocabulary::result::TargetKind;

use crate::far_end::FarEnd;
use crate::sample::{Sample, Traffic};
use rubus_host::ticks::{now_ns, process_cpu_ns, thread_cpu_ns};

/// Time between two looks of the watcher.
const PERIOD: Duration = Duration::from_millis(250);
/// Maximum number of samples kept: those of the last minutes as they came, older ones thinned out.
const MAX_SAMPLES: usize = 4000;
/// How often the sleeping watcher checks whether it is still wanted.
const NAP: Duration = Duration::from_millis(50);
/// A nap that was longer than it should by less than this was merely a slow one.
const MIN_STOP_NS: u64 = 500_000_000;

/// Where to look. Whatever is absent is not watched, and a doubt says so.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WatchPaths {
    /// Kernel name of the block device below the target ("mmcblk0p2"), for the traffic of others.
    pub device: Option<String>,
    /// Files with a temperature in thousandths of a degree Celsius.
    pub temperatures: Vec<PathBuf>,
    /// The Raspberry Pi firmware's word of throttling bits, in hexadecimal
    /// (`/sys/devices/platform/soc/soc:firmware/get_throttled`).
    pub throttled_word: Option<PathBuf>,
    /// A file that reads 1 while the supply voltage is too low (hwmon `in0_lcrit_alarm`).
    pub undervoltage_alarm: Option<PathBuf>,
    /// Counters of throttling events (`thermal_throttle/core_throttle_count`).
    pub throttle_counters: Vec<PathBuf>,
    /// The server of a network disk. It is asked right before and after each job only.
    pub far_end: Option<FarEnd>,
}

/// The traffic of a device in `/proc/diskstats` (kernel documentation, "I/O statistics fields");
/// sectors there are 512 bytes whatever the device says.
pub(crate) fn parse_diskstats(text: &str, device: &str) -> Option<Traffic> {
    let mut lines = text.lines().map(str::split_ascii_whitespace);
    lines.find_map(|line| {
        let fields: Vec<&str> = line.take(10).collect();
        if fields.get(2) != Some(&device) {
            return None;
        }
        let sectors = |index: usize| fields.get(index)?.parse::<u64>().ok();
        Some(Traffic {
            read_bytes: sectors(5)?.checked_mul(512)?,
            written_bytes: sectors(9)?.checked_mul(512)?,
        })
    })
}

fn parse_hexadecimal(text: &str) -> Option<u32> {
    let text = text.trim();
    u32::from_str_radix(text.strip_prefix("0x").unwrap_or(text), 16).ok()
}

fn read(path: &Path) -> Option<String> {
    std::fs::read_to_string(path).ok()
}

fn number<T: std::str::FromStr>(path: &Path) -> Option<T> {
    read(path)?.trim().parse().ok()
}

/// Looks once at everything but this process.
fn look(paths: &WatchPaths) -> Sample {
    let traffic = paths
        .device
        .as_deref()
        .and_then(|device| parse_diskstats(&read(Path::new("/proc/diskstats"))?, device));
    let counters = paths.throttle_counters.iter();
    let counts: Option<Vec<u64>> = counters.map(|path| number(path)).collect();
    let temperatures = paths.temperatures.iter();
    Sample {
        at_ns: now_ns(),
        process_ns: 0,
        server: None,
        stopped_ns: 0,
        cpus: stat::parse(&read(Path::new("/proc/stat")).unwrap_or_default()),
        traffic,
        throttled: paths.throttled_word.as_deref().and_then(|path| parse_hexadecimal(&read(path)?)),
        undervoltage: paths
            .undervoltage_alarm
            .as_deref()
            .and_then(|path| Some(number::<u32>(path)? != 0)),
        throttle_events: counts.filter(|counts| !counts.is_empty()).map(|c| c.iter().sum()),
        hottest_millidegrees: temperatures.filter_map(|path| number(path)).max(),
    }
}

/// What the watcher and the session share.
#[derive(Debug, Default)]
struct Shared {
    enough: AtomicBool,
    own_cpu_ns: AtomicU64,
    /// How long the process was stopped so far.
    stopped_ns: AtomicU64,
    /// When the watcher went to sleep; 0 while it is awake.
    asleep_ns: AtomicU64,
    samples: Mutex<Vec<Sample>>,
}

/// Watches the machine until it is dropped.
#[derive(Debug)]
pub(crate) struct Watcher {
    paths: WatchPaths,
    shared: Arc<Shared>,
}

impl Watcher {
    /// Begins to watch. If there can be no thread for it, only the moments that the session asks
    /// for are seen.
    pub(crate) fn start(paths: WatchPaths) -> Self {
        let shared = Arc::new(Shared::default());
        // The thread may outlive the watcher, or be cut off when the program ends, so it must not hold the connection to
        // the server: that is closed when the watcher is dropped.
        let watched = WatchPaths { far_end: None, ..paths.clone() };
        let for_thread = Arc::clone(&shared);
        let _ = std::thread::Builder::new()
            .name("watcher".into())
            .stack_size(256 << 10)
            .spawn(move || watch(&for_thread, &watched));
        Watcher { paths, shared }
    }

    /// Looks now; to be asked by the session's own thread.
    pub(crate) fn sample(&self) -> Sample {
        let server = self.paths.far_end.as_ref().and_then(FarEnd::look);
        let others_ns = self.shared.own_cpu_ns.load(Ordering::Relaxed) + thread_cpu_ns();
        let process_ns = process_cpu_ns().saturating_sub(others_ns);
        let sample = Sample {
            process_ns,
            server,
            stopped_ns: self.shared.stopped_ns_now(),
            ..look(&self.paths)
        };
        self.shared.keep(sample.clone());
        sample
    }

    /// What was seen between two moments, in order. What was seen before the first is forgotten.
    pub(crate) fn samples(&self, from_ns: u64, to_ns: u64) -> Vec<Sample> {
        let mut all = self.shared.lock();
        all.sort_by_key(|sample| sample.at_ns);
        all.retain(|sample| sample.at_ns >= from_ns);
        let until = all.iter().take_while(|sample| sample.at_ns <= to_ns);
        until.cloned().collect()
    }

    /// What cannot be watched of a target of that kind, for the session's doubts.
    pub(crate) fn blind_spots(&self, kind: TargetKind) -> Vec<Doubt> {
        let seen = look(&self.paths);
        let mut doubts = Vec::new();
        let mut doubt = |what: String| doubts.push(Doubt::NotWatched { what });
        if seen.cpus.is_empty() {
            doubt("the processors (/proc/stat cannot be read)".into());
        }
        match &self.paths.device {
            // There is no device here that others could use.
            None if matches!(kind, TargetKind::Ram | TargetKind::Network) => {}
            None => doubt("traffic of other programs (no block device is known below)".into()),
            Some(device) if seen.traffic.is_none() => {
                doubt(format!("traffic of other programs ({device} is not in /proc/diskstats)"));
            }
            Some(_) => {}
        }
        if self.paths.throttled_word.is_some() && seen.throttled.is_none() {
            doubt("throttling (the firmware's word cannot be read)".into());
        }
        if rubus_host::process::schedstat::Account::of_this_thread().run_delay_ns().is_none() {
            doubt("waiting for a processor (this kernel does not count it)".into());
        }
        doubts
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.shared.enough.store(true, Ordering::Relaxed);
    }
}

impl Shared {
    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Sample>> {
        self.samples.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How long the process was stopped until now. After a stop this may be asked before the watcher was woken, who alone
    /// can tell a stop from a missing processor: he gets a moment for that.
    fn stopped_ns_now(&self) -> u64 {
        const MOMENTS: u32 = 20;
        for _ in 0..MOMENTS {
            if !self.is_overdue(now_ns()) {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        self.stopped_ns.load(Ordering::Relaxed)
    }

    /// Whether the watcher should be awake by now.
    fn is_overdue(&self, now_ns: u64) -> bool {
        let since = self.asleep_ns.load(Ordering::Relaxed);
        since != 0 && overslept_ns(now_ns.saturating_sub(since), 0) > 0
    }

    fn keep(&self, sample: Sample) {
        let mut samples = self.lock();
        samples.push(sample);
        if samples.len() > MAX_SAMPLES {
            thin(&mut samples);
        }
    }
}

/// Joins the samples of the older half two by two: the later one of each pair stays, and remembers
/// what was held against the machine in the earlier one. All counters run on, so nothing is lost but
/// resolution.
fn thin(samples: &mut Vec<Sample>) {
    samples.sort_by_key(|sample| sample.at_ns);
    // The first stays: it says what was the case before.
    let recent = samples.split_off(samples.len() / 4 * 2 + 1);
    let mut older = std::mem::take(samples).into_iter();
    let mut thinned: Vec<Sample> = older.next().into_iter().collect();
    while let (Some(earlier), Some(mut later)) = (older.next(), older.next()) {
        later.throttled = later.throttled.map(|bits| bits | earlier.throttled.unwrap_or(0));
        later.undervoltage = match (earlier.undervoltage, later.undervoltage) {
            (Some(before), Some(now)) => Some(before || now),
            (before, now) => now.or(before),
        };
        later.hottest_millidegrees = later.hottest_millidegrees.max(earlier.hottest_millidegrees);
        thinned.push(later);
    }
    thinned.extend(recent);
    *samples = thinned;
}

/// How long a process was stopped that wanted to nap and slept for `slept_ns`. Waiting for a processor, `delayed_ns`,
/// is something else.
fn overslept_ns(slept_ns: u64, delayed_ns: u64) -> u64 {
    let wanted = NAP.as_nanos() as u64;
    let over = slept_ns.saturating_sub(wanted).saturating_sub(delayed_ns);
    if over >= MIN_STOP_NS { over } else { 0 }
}

fn watch(shared: &Shared, paths: &WatchPaths) {
    let account = rubus_host::process::schedstat::Account::of_this_thread();
    let mut next_ns = 0;
    while !shared.enough.load(Ordering::Relaxed) {
        if now_ns() >= next_ns {
            let sample =
                Sample { stopped_ns: shared.stopped_ns.load(Ordering::Relaxed), ..look(paths) };
            next_ns = sample.at_ns + PERIOD.as_nanos() as u64;
            shared.keep(sample);
            shared.own_cpu_ns.store(thread_cpu_ns(), Ordering::Relaxed);
        }
        nap(shared, &account);
    }
}

/// Sleeps, and notes when that took much longer than it should.
fn nap(shared: &Shared, account: &rubus_host::process::schedstat::Account) {
    let (from_ns, delay_ns) = (now_ns(), account.run_delay_ns());
    shared.asleep_ns.store(from_ns, Ordering::Relaxed);
    std::thread::sleep(NAP);
    let slept_ns = now_ns() - from_ns;
    let delayed = account.run_delay_ns().zip(delay_ns);
    // Where the kernel does not count it, a stop cannot be told from a missing processor.
    let stopped_ns =
        delayed.map_or(0, |(now, before)| overslept_ns(slept_ns, now.saturating_sub(before)));
    shared.stopped_ns.fetch_add(stopped_ns, Ordering::Relaxed);
    shared.asleep_ns.store(0, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::far_end::Meter;
    use rubus_vocabulary::result::{ClientEnd, ServerEnd};

    #[test]
    fn finds_the_device_by_its_whole_name() {
        let text =
            " 179 0 mmcblk0 10 0 100 5 20 0 200 9 0 0 0\n 179 1 mmcblk0p1 1 0 8 0 1 0 16 0 0 0 0\n";
        let traffic = parse_diskstats(text, "mmcblk0p1");
        let expected = Traffic { read_bytes: 4096, written_bytes: 8192 };
        assert_eq!(traffic, Some(expected));
        assert_eq!(parse_diskstats(text, "mmcblk"), None);
    }

    #[test]
    fn throttling_bits_are_hexadecimal_with_or_without_prefix() {
        assert_eq!(parse_hexadecimal("0x50005\n"), Some(0x50005));
        assert_eq!(parse_hexadecimal("50005"), Some(0x50005));
        assert_eq!(parse_hexadecimal("throttled"), None);
    }

    #[test]
    fn the_connection_to_a_server_is_closed_with_the_watcher() {
        let meter: Arc<dyn Meter> = Arc::new(Free);
        let paths = WatchPaths {
            far_end: Some(FarEnd::new(Arc::clone(&meter), ClientEnd::Process)),
            ..WatchPaths::default()
        };
        let watcher = Watcher::start(paths);
        assert!(watcher.sample().server.is_some());
        drop(watcher);
        assert_eq!(Arc::strong_count(&meter), 1, "its thread keeps it");
    }

    #[derive(Debug)]
    struct Free;

    impl Meter for Free {
        fn cpu_ns(&self) -> Result<u64, String> {
            Ok(0)
        }

        fn counts(&self) -> ServerEnd {
            ServerEnd::Process
        }
    }

    #[test]
    fn a_day_of_samples_is_thinned_and_forgets_no_trouble() {
        let shared = Shared::default();
        for i in 0..345_600_u64 {
            shared.keep(Sample {
                at_ns: i * 250_000_000,
                throttled: Some(u32::from(i == 777) << 2),
                undervoltage: Some(i == 1001),
                ..Sample::default()
            });
        }
        let samples = shared.lock().clone();
        assert!(samples.len() <= MAX_SAMPLES);
        assert!(samples.is_sorted_by_key(|sample| sample.at_ns));
        assert!(samples.iter().any(|sample| sample.throttled == Some(4)));
        assert!(samples.iter().any(|sample| sample.undervoltage == Some(true)));
        let last_minute = samples.iter().rev().take(240);
        assert_eq!(last_minute.map(|s| s.at_ns).min(), Some(345_360 * 250_000_000));
    }

    #[test]
    fn a_nap_that_lasts_for_seconds_was_a_stop_unless_the_processor_was_missing() {
        let s = 1_000_000_000;
        assert_eq!(overslept_ns(NAP.as_nanos() as u64, 0), 0);
        assert_eq!(overslept_ns(s / 4, 0), 0, "a slow machine");
        assert!(overslept_ns(5 * s, 0) > 4 * s);
        assert_eq!(overslept_ns(5 * s, 5 * s), 0, "no free processor");
    }

    /// The session's thread may be woken before the watcher, and does not judge in his place.
    #[test]
    fn who_wakes_first_sees_that_the_watcher_is_overdue() {
        let shared = Shared::default();
        let s = 1_000_000_000;
        assert!(!shared.is_overdue(9 * s));
        shared.asleep_ns.store(2 * s, Ordering::Relaxed);
        assert!(shared.is_overdue(9 * s));
        assert!(!shared.is_overdue(2 * s + 100_000_000));
    }

    #[test]
    fn a_missing_device_is_a_blind_spot() {
        let watcher = Watcher::start(WatchPaths::default());
        let doubts = watcher.blind_spots(TargetKind::File);
        assert!(doubts.iter().any(|doubt| doubt.what().contains("other programs")));
    }
}
