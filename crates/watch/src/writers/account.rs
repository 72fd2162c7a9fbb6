//! The account: sample after sample in, the report out.

use std::collections::BTreeMap;

use rubus_stats::estimate::Estimate;
use rubus_stats::interval::mean_interval;

use super::{
    DiskWear, DiskWritten, HourWritten, KERNEL, MostWritten, ProgramWritten, Report,
    UnitDiskWritten, UnitWritten,
};
use crate::counters::advance;
use crate::diskstats::{DiskCounters, SECTOR_BYTES};
use crate::recording::Header;
use crate::sample::Sample;
use crate::wear::{findings, years_left};

/// What passes on to other devices, or is memory.
const NOT_A_DISK: [&str; 5] = ["loop", "dm-", "md", "zram", "ram"];
/// Whole hours that it takes to say something of a day.
pub(super) const MIN_HOURS: usize = 24;
/// An hour of which so much was watched counts as whole: a sample may fall to either side of its end.
const WHOLE_HOUR: std::ops::RangeInclusive<f64> = 3500.0..=3700.0;
/// Maximum number of directories named for each program.
const PLACES: usize = 3;

/// Why there is no report: no sample names writers, because it was not recorded by a `rubus` that knows how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoWriters;

/// An account over the samples of one recording, in their order.
pub struct Account {
    header: Header,
    first: Option<Sample>,
    before: Option<Sample>,
    /// Since the last walk over all processes, not yet in the account: what comes after the last one stays out, so that
    /// disks and programs are of the same time.
    pending: Moved,
    total: Moved,
    /// The last moment in the account.
    last: Option<Sample>,
    programs: BTreeMap<(String, String), Program>,
    /// By unit and disk.
    unit_disks: BTreeMap<(String, String), u64>,
    hours: BTreeMap<String, Hour>,
    hidden: u32,
    has_writers: bool,
}

/// What disks and swap did.
#[derive(Default)]
struct Moved {
    disks: BTreeMap<String, DiskWritten>,
    swapped_pages: Option<u64>,
    zram_bytes: u64,
    seconds: f64,
    slept_seconds: f64,
}

#[derive(Default)]
struct Program {
    written_bytes: u64,
    cancelled_bytes: u64,
    /// How likely it wrote there: bytes written while it had files open there, half as many for each likelier place.
    places: BTreeMap<String, u64>,
}

#[derive(Default)]
struct Hour {
    seconds: f64,
    written_bytes_by_disk: BTreeMap<String, u64>,
    units: BTreeMap<String, u64>,
}

impl Hour {
    fn disks_written_bytes(&self) -> u64 {
        self.written_bytes_by_disk.values().sum()
    }
}

impl Account {
    /// An empty one.
    pub fn new(header: Header) -> Account {
        Account {
            header,
            first: None,
            before: None,
            pending: Moved::default(),
            total: Moved::default(),
            last: None,
            programs: BTreeMap::new(),
            unit_disks: BTreeMap::new(),
            hours: BTreeMap::new(),
            hidden: 0,
            has_writers: false,
        }
    }

    /// Adds the next sample.
    pub fn add(&mut self, sample: Sample) {
        if let Some(before) = &self.before {
            self.pending.add(before, &sample);
        }
        if self.first.is_none() {
            self.first = Some(sample.clone());
        }
        if let Some(programs) = &sample.programs {
            self.hidden = self.hidden.max(programs.hidden);
        }
        if let Some(writers) = sample.programs.as_ref().and_then(|p| p.writers.as_ref()) {
            self.has_writers = true;
            let hour = self.hours.entry(hour_of(&sample.at)).or_default();
            hour.seconds += self.pending.seconds;
            for disk in self.pending.disks.values() {
                let written = hour.written_bytes_by_disk.entry(disk.name.clone());
                *written.or_default() += disk.written_bytes;
            }
            for written in writers {
                let key = (written.unit.clone(), name(&written.program));
                let program = self.programs.entry(key).or_default();
                program.written_bytes += written.written_bytes;
                program.cancelled_bytes += written.cancelled_bytes;
                for (rank, place) in (0..).zip(&written.places) {
                    let weight = written.written_bytes.checked_shr(rank).unwrap_or(0);
                    *program.places.entry(place.clone()).or_default() += weight;
                }
                if written.unit != KERNEL {
                    *hour.units.entry(written.unit.clone()).or_default() += written.written_bytes;
                }
            }
            let unit_disks = sample.programs.as_ref().and_then(|p| p.unit_disks.as_ref());
            for one in unit_disks.into_iter().flatten() {
                if !is_disk(&one.disk) {
                    continue;
                }
                let key = (one.unit.clone(), one.disk.clone());
                *self.unit_disks.entry(key).or_default() += one.written_bytes;
            }
            self.total.join(std::mem::take(&mut self.pending));
            self.last = Some(sample.clone());
        }
        self.before = Some(sample);
    }

    /// Time in the account in which the machine was awake, in seconds.
    pub fn seconds(&self) -> f64 {
        self.total.seconds
    }

    /// What it all says.
    ///
    /// # Errors
    /// When no sample names writers.
    pub fn report(&self) -> Result<Report, NoWriters> {
        let (Some(first), Some(last), true) = (&self.first, &self.last, self.has_writers) else {
            return Err(NoWriters);
        };
        let disks_written_bytes = self.total.disks_written_bytes();
        let of_programs = self.programs.iter().filter(|((unit, _), _)| unit != KERNEL);
        let (written, cancelled) = of_programs.fold((0_u64, 0_u64), |(written, cancelled), one| {
            (written + one.1.written_bytes, cancelled + one.1.cancelled_bytes)
        });
        let programs_written_bytes = written.saturating_sub(cancelled);
        let swap_written_bytes = self.total.swapped_pages.map(|pages| {
            let bytes = pages.saturating_mul(self.header.page_bytes);
            bytes.saturating_sub(self.total.zram_bytes)
        });
        let waiting_bytes = waiting(last) - waiting(first);
        let given = signed(programs_written_bytes) + signed(swap_written_bytes.unwrap_or(0));
        Ok(Report {
            machine: self.header.machine.clone(),
            from: first.at.clone(),
            to: last.at.clone(),
            seconds: self.total.seconds,
            slept_seconds: self.total.slept_seconds,
            disks: self.disks(),
            disks_seen: self.total.disks.len(),
            disks_written_bytes,
            programs_written_bytes,
            swap_written_bytes,
            waiting_bytes,
            added_bytes: signed(disks_written_bytes) + waiting_bytes - given,
            per_day: self.per_day(Hour::disks_written_bytes),
            wear: self.wear(),
            findings: findings(&self.header.wear),
            units: self.units(),
            hidden: self.hidden,
            hours: self.hours.iter().map(told).collect(),
        })
    }

    fn disks(&self) -> Vec<DiskWritten> {
        let what = |name: &str| {
            let mut known = self.header.disks.iter();
            known.find(|(known, _)| known == name).map(|(_, what)| what.clone())
        };
        let mut disks: Vec<DiskWritten> = self
            .total
            .disks
            .values()
            .filter(|disk| disk.written_bytes > 0)
            .map(|disk| DiskWritten { what: what(&disk.name), ..disk.clone() })
            .collect();
        disks.sort_by_key(|disk| std::cmp::Reverse(disk.written_bytes));
        disks
    }

    fn units(&self) -> Vec<UnitWritten> {
        let mut units: BTreeMap<&str, UnitWritten> = BTreeMap::new();
        for ((unit, program), written) in &self.programs {
            let entry = units.entry(unit).or_default();
            entry.unit.clone_from(unit);
            entry.written_bytes += written.written_bytes;
            entry.cancelled_bytes += written.cancelled_bytes;
            entry.programs.push(ProgramWritten {
                program: program.clone(),
                written_bytes: written.written_bytes,
                cancelled_bytes: written.cancelled_bytes,
                places: likeliest_first(&written.places),
            });
        }
        for ((unit, disk), written_bytes) in &self.unit_disks {
            let entry = units.entry(unit).or_default();
            entry.unit.clone_from(unit);
            entry.disks.push(UnitDiskWritten { disk: disk.clone(), written_bytes: *written_bytes });
        }
        let mut units: Vec<UnitWritten> = units.into_values().collect();
        for unit in &mut units {
            unit.disks.sort_by_key(|disk| std::cmp::Reverse(disk.written_bytes));
            unit.programs.sort_by_key(|program| std::cmp::Reverse(program.written_bytes));
        }
        units.sort_by_key(|unit| std::cmp::Reverse(unit.written_bytes));
        units
    }

    fn wear(&self) -> Vec<DiskWear> {
        let told = self.header.wear.iter().map(|wear| {
            let of_disk = |hour: &Hour| hour.written_bytes_by_disk.get(&wear.disk).copied();
            let per_day = self.per_day(|hour| of_disk(hour).unwrap_or(0));
            DiskWear {
                wear: wear.clone(),
                per_day,
                years_left: per_day.and_then(|rate| years_left(wear, rate)),
            }
        });
        told.collect()
    }

    fn per_day(&self, written_bytes: impl Fn(&Hour) -> u64) -> Option<Estimate> {
        let whole = self.hours.values().filter(|hour| WHOLE_HOUR.contains(&hour.seconds));
        let bytes: Vec<f64> =
            whole.map(|hour| written_bytes(hour) as f64 * 3600.0 / hour.seconds).collect();
        per_day(&bytes)
    }
}

/// The bytes of a day at the rate of these hours, with a 95 % interval that respects that neighbouring hours resemble each
/// other; none below [`MIN_HOURS`].
pub(super) fn per_day(bytes_by_hour: &[f64]) -> Option<Estimate> {
    if bytes_by_hour.len() < MIN_HOURS {
        return None;
    }
    let hour = mean_interval(bytes_by_hour);
    let low = (hour.mean - hour.below).max(0.0);
    Some(Estimate::new(hour.mean * 24.0, low * 24.0, (hour.mean + hour.above) * 24.0))
}

impl Moved {
    fn add(&mut self, before: &Sample, now: &Sample) {
        let seconds = |later: u64, earlier: u64| later.saturating_sub(earlier) as f64 / 1e9;
        let awake = seconds(now.monotonic_ns, before.monotonic_ns);
        let all = seconds(now.since_boot_ns, before.since_boot_ns);
        self.seconds += awake;
        self.slept_seconds += (all - awake).max(0.0);
        for disk in &now.disks {
            // One that was not there before, or was put in again, has its counters from its start.
            let earlier = before.disks.iter().find(|earlier| earlier.name == disk.name);
            let since = |field: fn(&DiskCounters) -> u64| {
                let earlier = earlier.map_or(0, field);
                advance(earlier, field(disk)).unwrap_or_else(|| field(disk))
            };
            let written_bytes = since(|disk| disk.written_sectors).saturating_mul(SECTOR_BYTES);
            if disk.name.starts_with("zram") {
                self.zram_bytes += written_bytes;
            }
            if !is_disk(&disk.name) {
                continue;
            }
            let (writes, flushes) = (since(|disk| disk.writes), since(|disk| disk.flushes));
            let entry = self.disk(&disk.name);
            entry.written_bytes += written_bytes;
            entry.writes += writes;
            entry.flushes += flushes;
        }
        let swapped = before.events.zip(now.events);
        let swapped =
            swapped.and_then(|(before, now)| advance(before.swapped_out, now.swapped_out));
        if let Some(pages) = swapped {
            *self.swapped_pages.get_or_insert(0) += pages;
        }
    }

    fn disk(&mut self, name: &str) -> &mut DiskWritten {
        self.disks
            .entry(name.to_string())
            .or_insert_with(|| DiskWritten { name: name.to_string(), ..DiskWritten::default() })
    }

    fn join(&mut self, other: Moved) {
        self.seconds += other.seconds;
        self.slept_seconds += other.slept_seconds;
        self.zram_bytes += other.zram_bytes;
        if let Some(pages) = other.swapped_pages {
            *self.swapped_pages.get_or_insert(0) += pages;
        }
        for disk in other.disks.into_values() {
            let entry = self.disk(&disk.name);
            entry.written_bytes += disk.written_bytes;
            entry.writes += disk.writes;
            entry.flushes += disk.flushes;
        }
    }

    fn disks_written_bytes(&self) -> u64 {
        self.disks.values().map(|disk| disk.written_bytes).sum()
    }
}

fn is_disk(name: &str) -> bool {
    !NOT_A_DISK.iter().any(|start| name.starts_with(start))
}

fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

fn waiting(sample: &Sample) -> i64 {
    let memory = sample.memory.unwrap_or_default();
    signed(memory.dirty_bytes.saturating_add(memory.writeback_bytes))
}

/// The hour of a date as RFC 3339: what stands before its minutes.
fn hour_of(at: &str) -> String {
    at.get(..13).unwrap_or(at).to_string()
}

fn told((hour, watched): (&String, &Hour)) -> HourWritten {
    let most = watched.units.iter().max_by_key(|(_, bytes)| **bytes);
    HourWritten {
        from: format!("{hour}:00:00Z"),
        seconds: watched.seconds,
        disks_written_bytes: watched.disks_written_bytes(),
        most: most
            .filter(|(_, bytes)| **bytes > 0)
            .map(|(unit, bytes)| MostWritten { unit: unit.clone(), written_bytes: *bytes }),
    }
}

fn likeliest_first(places: &BTreeMap<String, u64>) -> Vec<String> {
    let mut places: Vec<(&String, &u64)> = places.iter().collect();
    places.sort_by_key(|(_, weight)| std::cmp::Reverse(**weight));
    let places = places.into_iter().take(PLACES);
    places.map(|(place, _)| place.clone()).collect()
}

/// The kernel's workers have a number that says nothing, and after it what they work on: "kworker/u8:1-loop0" is
/// "kworker-loop0".
fn name(program: &str) -> String {
    let Some(worker) = program.strip_prefix("kworker/") else {
        return program.to_string();
    };
    match worker.find(['-', '+']) {
        Some(at) => format!("kworker-{}", &worker[at + 1..]),
        None => "kworker".to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wear::{Used, Wear};
    use crate::{Events, Memory, Programs, Written};

    const SECOND_NS: u64 = 1_000_000_000;

    fn disk(name: &str, written_bytes: u64) -> DiskCounters {
        DiskCounters {
            name: name.into(),
            writes: 1,
            written_sectors: written_bytes / 512,
            ..DiskCounters::default()
        }
    }

    fn written(unit: &str, program: &str, written_bytes: u64, places: &[&str]) -> Written {
        Written {
            unit: unit.into(),
            program: program.into(),
            written_bytes,
            places: places.iter().map(ToString::to_string).collect(),
            ..Written::default()
        }
    }

    fn sample(at_s: u64, disks: Vec<DiskCounters>, writers: Option<Vec<Written>>) -> Sample {
        Sample {
            at: format!(
                "2026-11-22T{:02}:{:02}:{:02}.000Z",
                at_s / 3600,
                at_s % 3600 / 60,
                at_s % 60
            ),
            monotonic_ns: at_s * SECOND_NS,
            since_boot_ns: at_s * SECOND_NS,
            disks,
            programs: writers
                .map(|writers| Programs { writers: Some(writers), ..Programs::default() }),
            ..Sample::default()
        }
    }

    fn report(samples: Vec<Sample>) -> Report {
        report_of(samples, Vec::new())
    }

    fn report_of(samples: Vec<Sample>, wear: Vec<Wear>) -> Report {
        let mut account = Account::new(Header {
            page_bytes: 4096,
            disks: vec![("mmcblk0".into(), "SC64G, 64.0 GB".into())],
            wear,
            ..Header::default()
        });
        samples.into_iter().for_each(|sample| account.add(sample));
        account.report().unwrap()
    }

    #[test]
    fn disks_and_programs_are_of_the_same_time() {
        let report = report(vec![
            sample(10, vec![disk("mmcblk0", 512_000)], None),
            sample(11, vec![disk("mmcblk0", 1_024_000)], None),
            sample(
                12,
                vec![disk("mmcblk0", 2_048_000)],
                Some(vec![written("cron.service", "find", 1_000_000, &[])]),
            ),
            // After the last walk.
            sample(13, vec![disk("mmcblk0", 9_216_000)], None),
        ]);
        assert_eq!(report.disks_written_bytes, 1_536_000);
        assert_eq!(report.programs_written_bytes, 1_000_000);
        assert_eq!(report.added_bytes, 536_000);
        assert_eq!(report.seconds, 2.0);
        assert_eq!(report.to, "2026-11-22T00:00:12.000Z");
        assert_eq!(report.disks[0].what.as_deref(), Some("SC64G, 64.0 GB"));
    }

    #[test]
    fn what_passes_on_to_disks_is_not_counted_again() {
        let all = |bytes: u64| {
            let names = ["mmcblk0", "loop0", "dm-0", "md127", "zram0", "ram0"];
            names.map(|name| disk(name, bytes)).to_vec()
        };
        let report =
            report(vec![sample(10, all(0), None), sample(15, all(51_200), Some(Vec::new()))]);
        assert_eq!(report.disks_written_bytes, 51_200);
        assert_eq!(report.disks.len(), 1);
    }

    #[test]
    fn a_disk_that_was_put_in_again_counts_from_its_start() {
        let report = report(vec![
            sample(10, vec![disk("sda", 1 << 40)], None),
            sample(15, vec![disk("sda", 1024), disk("sdb", 2048)], Some(Vec::new())),
        ]);
        let written: Vec<u64> = report.disks.iter().map(|disk| disk.written_bytes).collect();
        assert_eq!(written, [2048, 1024]);
    }

    #[test]
    fn swap_to_memory_is_no_wear_and_what_waits_in_memory_is_no_addition() {
        let mut first = sample(10, vec![disk("sda", 0), disk("zram0", 0)], None);
        let later = vec![disk("sda", 81_920), disk("zram0", 40_960)];
        let writers = vec![written("a.service", "a", 100_000, &[])];
        let mut last = sample(15, later, Some(writers));
        let events = |swapped_out| Some(Events { swapped_out, ..Events::default() });
        (first.events, last.events) = (events(5), events(35));
        let memory = |dirty_bytes| Some(Memory { dirty_bytes, ..Memory::default() });
        (first.memory, last.memory) = (memory(5_000), memory(105_000));
        let report = report(vec![first, last]);
        assert_eq!(report.swap_written_bytes, Some(30 * 4096 - 40_960));
        assert_eq!(report.waiting_bytes, 100_000);
        assert_eq!(report.added_bytes, 81_920 + 100_000 - 100_000 - 81_920);
    }

    #[test]
    fn the_likelier_place_is_told_first_wherever_it_stands_in_the_alphabet() {
        let given = vec![written("a.service", "fio", 900, &["/tmp/own", "/srv/log"])];
        let report =
            report(vec![sample(10, Vec::new(), None), sample(15, Vec::new(), Some(given))]);
        let places = &report.units[0].programs[0].places;
        assert_eq!(*places, ["/tmp/own", "/srv/log"]);
    }

    #[test]
    fn programs_are_told_by_unit_with_the_places_where_they_wrote_most() {
        let first = sample(10, Vec::new(), None);
        let writers = vec![
            written("ha.service", "python3", 700, &["/var/lib/ha"]),
            written("ha.service", "git", 100, &[]),
            written("kernel", "kworker/u8:1-loop0", 50, &[]),
            written("kernel", "kworker/u8:3+loop0", 60, &[]),
            written("kernel", "kworker/0:0", 5, &[]),
        ];
        let again = vec![written("ha.service", "python3", 900, &["/var/lib/ha", "/tmp"])];
        let report = report(vec![
            first,
            sample(15, Vec::new(), Some(writers)),
            sample(20, Vec::new(), Some(again)),
        ]);
        assert_eq!(report.units[0].unit, "ha.service");
        assert_eq!(report.units[0].written_bytes, 1_700);
        let python = &report.units[0].programs[0];
        assert_eq!(python.written_bytes, 1_600);
        assert_eq!(python.places, ["/var/lib/ha", "/tmp"]);
        let kernel: Vec<(&str, u64)> = report.units[1]
            .programs
            .iter()
            .map(|program| (program.program.as_str(), program.written_bytes))
            .collect();
        assert_eq!(kernel, [("kworker-loop0", 110), ("kworker", 5)]);
        assert_eq!(report.programs_written_bytes, 1_700);
    }

    #[test]
    fn deleted_before_it_was_written_is_not_written() {
        let mut cancelled = written("a.service", "a", 1_000, &[]);
        cancelled.cancelled_bytes = 400;
        let report = report(vec![
            sample(10, Vec::new(), None),
            sample(15, Vec::new(), Some(vec![cancelled])),
        ]);
        assert_eq!(report.programs_written_bytes, 600);
        assert_eq!(report.units[0].cancelled_bytes, 400);
    }

    #[test]
    fn a_day_takes_twenty_four_whole_hours() {
        let hourly = |hours: u64| {
            let each = |hour: u64| {
                let bytes = hour * 1_024_000;
                sample(hour * 3600, vec![disk("sda", bytes)], Some(Vec::new()))
            };
            // The first sample's hour has nothing in it.
            (0..=hours).map(each).collect::<Vec<Sample>>()
        };
        assert_eq!(report(hourly(23)).per_day, None);
        let report = report(hourly(24));
        assert_eq!(report.hours.len(), 25);
        let per_day = report.per_day.unwrap();
        assert_eq!(per_day.value, 24.0 * 1_024_000.0);
    }

    #[test]
    fn each_disk_lasts_as_long_as_its_own_writes_let_it() {
        let day_of = |hours: u64| {
            let each = |hour: u64| {
                let disks = vec![disk("sda", hour * 1_024_000), disk("sdb", hour * 102_400)];
                sample(hour * 3600, disks, Some(Vec::new()))
            };
            (0..=hours).map(each).collect::<Vec<Sample>>()
        };
        let wear = |name: &str| Wear {
            disk: name.into(),
            used: Some(Used { min_percent: 50.0, max_percent: Some(50.0) }),
            written_bytes: Some(24 * 1_024_000 * 3_652),
            ..Wear::default()
        };
        let wears = vec![wear("sda"), wear("sdb"), wear("sdc")];
        let short = report_of(day_of(23), wears.clone());
        assert_eq!(short.wear[0].wear, wear("sda"));
        assert_eq!((short.wear[0].per_day, short.wear[0].years_left), (None, None));
        let report = report_of(day_of(24), wears);
        let years = |at: usize| report.wear[at].years_left.map(|left| left.min_years);
        let (busy, quiet) = (years(0).unwrap(), years(1).unwrap());
        assert!((busy - 10.0).abs() < 0.01, "{busy}");
        assert!((quiet - 100.0).abs() < 0.1, "{quiet}");
        // One that is not written to wears by nothing that is known.
        assert_eq!(years(2), None);
    }

    #[test]
    fn units_are_told_with_the_disks_that_they_wrote_to() {
        let mut account = Account::new(Header::default());
        account.add(sample(10, Vec::new(), None));
        for at in [15, 20] {
            let mut later = sample(at, Vec::new(), Some(Vec::new()));
            let to = |unit: &str, disk: &str, written_bytes| crate::UnitDisk {
                unit: unit.into(),
                disk: disk.into(),
                written_bytes,
            };
            later.programs.as_mut().unwrap().unit_disks = Some(vec![
                to("cron.service", "sda", 10),
                to("cron.service", "mmcblk0", 30),
                to("cron.service", "dm-0", 30),
            ]);
            account.add(later);
        }
        // As an older program recorded it.
        account.add(sample(25, Vec::new(), Some(Vec::new())));
        let report = account.report().unwrap();
        let disks = &report.units[0].disks;
        let disks: Vec<_> =
            disks.iter().map(|disk| (disk.disk.as_str(), disk.written_bytes)).collect();
        assert_eq!(report.units[0].unit, "cron.service");
        assert_eq!(disks, [("mmcblk0", 60), ("sda", 20)]);
    }

    #[test]
    fn an_older_recording_names_no_writers() {
        let mut account = Account::new(Header::default());
        account.add(sample(10, Vec::new(), None));
        let mut later = sample(15, Vec::new(), None);
        later.programs = Some(Programs::default());
        account.add(later);
        assert_eq!(account.report(), Err(NoWriters));
    }
}
