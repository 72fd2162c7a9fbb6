//! What zswap does: its counters explained, and whether it helps.
//!
//! zswap stands before swap: pages on their way out are compressed and kept in memory, and go to the disk only when its
//! pool is full. Sources: Documentation/admin-guide/mm/zswap.rst of the kernel, the comments beside the counters in
//! `mm/zswap.c` (names came and went from 4.x to 6.18), `Zswap` and `Zswapped` in `/proc/meminfo` (5.19), `zswpin`,
//! `zswpout` (5.19) and `zswpwb` (6.8) in `/proc/vmstat`. A page that zswap takes in or gives back is not counted in
//! `pswpout` or `pswpin`; one that it writes back is counted in `pswpout`.

#![deny(clippy::disallowed_methods)]

use serde::{Deserialize, Serialize};

use rubus_machine::swap_place::SwapPlace;
use rubus_vocabulary::fact::Fact;
use rubus_vocabulary::machine::{SwapArea, Zswap};
use rubus_vocabulary::next_step::NextStep;
use rubus_vocabulary::units::{bytes_iec, percent};

use crate::zswap_place::{is_in_zram, turn_on, where_swap_belongs};

/// What the kernel says at one moment. Everything is counted since the start of the machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Reading {
    /// Parameters and counters.
    pub zswap: Zswap,
    /// Active swap areas.
    pub areas: Vec<SwapArea>,
    /// A page of this kernel: 4 KiB, or 16 KiB on a Raspberry Pi 5's own kernel.
    pub page_bytes: Fact<u64>,
    /// The machine's memory.
    pub memory_bytes: Fact<u64>,
    /// Memory that the pool takes.
    pub pool_bytes: Fact<u64>,
    /// Bytes of the pages in it, when expanded.
    pub stored_bytes: Fact<u64>,
    /// Pages that were taken in.
    pub stored_pages: Fact<u64>,
    /// Pages that were given back from the pool.
    pub loaded_pages: Fact<u64>,
    /// Pages that went from the pool to the disk.
    pub written_back_pages: Fact<u64>,
    /// Pages that were read from swap on a device.
    pub read_pages: Fact<u64>,
}

/// One counter, in words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Explained {
    /// The kernel's name of it.
    pub name: String,
    /// What the kernel says, or why that is not known.
    pub value: String,
    /// What it counts.
    pub meaning: String,
}

/// Whether it helps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ZswapState {
    /// The kernel was built without it.
    Absent,
    Off,
    /// It is on, and there is no swap that it could stand before.
    WithoutSwap,
    /// Nothing has been swapped out since the start.
    Idle,
    /// It keeps the disk from most of the work.
    Helps,
    /// It does some, at a price.
    HelpsLittle,
    /// It costs more than it gives.
    DoesNotHelp,
    /// Swap is full: no page can go anywhere any more.
    Full,
    /// The kernel does not tell enough.
    Unknown,
}

/// What zswap holds and did, and whether it helps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Report {
    /// Whether it helps.
    pub standing: ZswapState,
    /// The same in a sentence or two, with the figures.
    pub verdict: String,
    /// What to do next.
    pub next: NextStep,
    /// Memory that the pool takes.
    pub pool_bytes: Option<u64>,
    /// Bytes of the pages in it, when expanded.
    pub stored_bytes: Option<u64>,
    /// Bytes stored by bytes taken, above 1 when it saves memory.
    pub ratio: Option<f64>,
    /// The most that the pool may take.
    pub limit_bytes: Option<u64>,
    /// Of the pages that were needed again, the share that came out of the pool and not from the disk.
    pub hit_share: Option<f64>,
    /// Of the pages that were offered, the share that was refused; without the kernel's count of pages taken in, the
    /// most that it can be.
    pub refused_share: Option<f64>,
    /// Of the pages that were taken in, the share that went on to the disk; without the kernel's count of pages taken in,
    /// the most that it can be.
    pub written_back_share: Option<f64>,
    /// True when the two shares above are upper ends.
    pub shares_are_upper_ends: bool,
    /// Every parameter of this kernel.
    pub parameters: Vec<Explained>,
    /// Every counter of this kernel.
    pub counters: Vec<Explained>,
    /// Why there are no counters, where there are none.
    pub counters_unknown: Option<String>,
}

impl Report {
    /// Explains a reading of a machine whose swap is in such a place.
    pub fn of(reading: &Reading, place: SwapPlace) -> Report {
        let sums = Sums::of(reading);
        let (standing, verdict, next) = judge(reading, &sums, place);
        let explain = |settings: &[rubus_vocabulary::machine::Setting]| {
            let one = |setting: &rubus_vocabulary::machine::Setting| Explained {
                name: setting.name.clone(),
                value: match (setting.value.text(), setting.value.reason()) {
                    (Some(text), _) => text.to_string(),
                    (None, reason) => format!("unknown: {}", reason.unwrap_or("not read")),
                },
                meaning: meaning(&setting.name).to_string(),
            };
            settings.iter().map(one).collect()
        };
        Report {
            standing,
            verdict,
            next,
            pool_bytes: sums.pool_bytes,
            stored_bytes: sums.stored_bytes,
            ratio: sums.ratio(),
            limit_bytes: sums.limit_bytes,
            hit_share: sums.hit_share(),
            refused_share: sums.refused_share(),
            written_back_share: sums.written_back_share(),
            shares_are_upper_ends: sums.taken_in.is_none(),
            parameters: explain(&reading.zswap.parameters),
            counters: explain(&reading.zswap.counters),
            counters_unknown: reading.zswap.counters_unknown.clone(),
        }
    }
}

/// What a parameter or counter of zswap is; nothing known about it gives a sentence that says so.
pub fn meaning(name: &str) -> &'static str {
    match name {
        "enabled" => "whether it is on",
        "compressor" => "the kernel's method for new pages",
        "zpool" => "how compressed pages are kept in memory (gone in 6.18)",
        "max_pool_percent" => "the most of the memory that the pool may take, in percent",
        "accept_threshold_percent" => {
            "once full, the pool takes pages again below this share of its limit, in percent"
        }
        "shrinker_enabled" => "whether cold pages go to the disk before the pool is full",
        "same_filled_pages_enabled" => {
            "whether pages filled with one value are kept as that value (gone in 6.9)"
        }
        "non_same_filled_pages_enabled" => "whether all other pages are taken (gone in 6.9)",
        "exclusive_loads" => {
            "whether a page leaves the pool when it is given back (6.5 to 6.6; now always)"
        }
        "stored_pages" => "pages in the pool now",
        "pool_total_size" => "memory that the pool takes now, in bytes",
        "written_back_pages" => "pages that went from the pool to the disk, to make room",
        "pool_limit_hit" => "times that the pool was found full",
        "reject_reclaim_fail" => {
            "pages refused because the pool was full and could not be made smaller"
        }
        "reject_alloc_fail" => "pages refused because there was no memory for them",
        "reject_kmemcache_fail" => {
            "pages refused because there was no memory for the note of where they are"
        }
        "reject_compress_poor" => {
            "pages refused because they hardly compress; they go to the disk as they are"
        }
        "reject_compress_fail" => "pages refused because the compressor failed",
        "decompress_fail" => "pages that could not be expanded again",
        "stored_incompressible_pages" => "pages in the pool that are kept as they are",
        "same_filled_pages" => {
            "pages in the pool that are filled with one value and take almost nothing"
        }
        "duplicate_entry" => "pages stored again while an old copy was there (gone in 6.12)",
        _ => "not known to this program",
    }
}

/// The figures that the judgement is made of; nothing where the kernel does not tell.
struct Sums {
    pool_bytes: Option<u64>,
    stored_bytes: Option<u64>,
    limit_bytes: Option<u64>,
    limit_percent: Option<u64>,
    taken_in: Option<u64>,
    /// Fewer than were taken in: those that are in the pool or went from it to the disk.
    at_least_taken_in: Option<u64>,
    given_back: Option<u64>,
    written_back: Option<u64>,
    refused: Option<u64>,
    refused_poor: Option<u64>,
    pool_full: Option<u64>,
    read: Option<u64>,
    /// Bytes in the pool that are kept as they are.
    as_they_are_bytes: Option<u64>,
}

impl Sums {
    fn of(reading: &Reading) -> Sums {
        let number = |settings: &[rubus_vocabulary::machine::Setting], name: &str| {
            let setting = settings.iter().find(|setting| setting.name == name)?;
            setting.value.text()?.trim().parse::<u64>().ok()
        };
        let counter = |name: &str| number(&reading.zswap.counters, name);
        let page = reading.page_bytes.get();
        let in_pool = counter("stored_pages");
        let stored = in_pool.zip(page).map(|(pages, page)| pages.saturating_mul(page));
        let written_back = reading.written_back_pages.get().or(counter("written_back_pages"));
        let limit = number(&reading.zswap.parameters, "max_pool_percent");
        let refused = reading.zswap.counters.iter().filter_map(|setting| {
            let is_refusal = setting.name.starts_with("reject_");
            is_refusal.then(|| setting.value.text()?.trim().parse::<u64>().ok())?
        });
        let refused = refused
            .fold(None, |sum: Option<u64>, count| Some(sum.unwrap_or(0).saturating_add(count)));
        Sums {
            pool_bytes: reading.pool_bytes.get().or(counter("pool_total_size")),
            stored_bytes: reading.stored_bytes.get().or(stored),
            limit_bytes: limit
                .zip(reading.memory_bytes.get())
                .map(|(percent, memory)| memory / 100 * percent),
            limit_percent: limit,
            taken_in: reading.stored_pages.get(),
            at_least_taken_in: in_pool
                .zip(written_back)
                .map(|(in_pool, back)| in_pool.saturating_add(back)),
            given_back: reading.loaded_pages.get(),
            written_back,
            refused,
            refused_poor: counter("reject_compress_poor"),
            pool_full: counter("pool_limit_hit"),
            read: reading.read_pages.get(),
            as_they_are_bytes: counter("stored_incompressible_pages")
                .zip(page)
                .map(|(pages, page)| pages.saturating_mul(page)),
        }
    }

    /// The pages that were taken in, or the fewest that they can be.
    fn taken(&self) -> Option<u64> {
        self.taken_in.or(self.at_least_taken_in)
    }

    fn ratio(&self) -> Option<f64> {
        let (stored, pool) = self.stored_bytes.zip(self.pool_bytes)?;
        (pool > 0).then(|| stored as f64 / pool as f64)
    }

    fn hit_share(&self) -> Option<f64> {
        let (given, read) = self.given_back.zip(self.read)?;
        share(given, given.saturating_add(read))
    }

    fn refused_share(&self) -> Option<f64> {
        let (refused, taken) = self.refused.zip(self.taken())?;
        share(refused, refused.saturating_add(taken))
    }

    fn written_back_share(&self) -> Option<f64> {
        let (back, taken) = self.written_back.zip(self.taken())?;
        share(back, taken)
    }
}

fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| (part as f64 / whole as f64).min(1.0))
}

/// Below this the pool's own order takes more than what is in it.
const LITTLE_BYTES: u64 = 1 << 20;
/// Pages that must have been needed again before a share of them says anything.
const FEW_PAGES: u64 = 100;

fn judge(reading: &Reading, sums: &Sums, place: SwapPlace) -> (ZswapState, String, NextStep) {
    let turn_on = || turn_on(&reading.areas, place);
    let as_root = || {
        let words = "only root is told, with debugfs mounted on /sys/kernel/debug";
        NextStep::command(&["sudo", "rubus", "zswap"], words)
    };
    match reading.zswap.enabled.get() {
        None if reading.zswap.parameters.is_empty() => {
            let why = reading.zswap.enabled.reason().unwrap_or("it is not known");
            let is_absent = why.contains("no zswap");
            let (standing, next) = if is_absent {
                let words = "nothing here: this kernel was built without zswap";
                (ZswapState::Absent, NextStep::by_hand(words))
            } else {
                (ZswapState::Unknown, as_root())
            };
            return (standing, format!("Nothing can be said: {why}."), next);
        }
        Some(false) if sums.stored_bytes.unwrap_or(0) == 0 => {
            return (ZswapState::Off, "zswap is off.".into(), turn_on());
        }
        Some(false) => {
            let words = format!(
                "zswap is off for new pages and still holds {}.",
                bytes_iec(sums.stored_bytes.unwrap_or(0))
            );
            return (ZswapState::Off, words, turn_on());
        }
        _ => {}
    }
    if reading.areas.is_empty() {
        return (
            ZswapState::WithoutSwap,
            "zswap is on but has nothing to do: it stands before swap, and there is none.".into(),
            where_swap_belongs("it says where to put swap"),
        );
    }
    match (sums.taken(), sums.refused) {
        (Some(0), Some(0) | None) => {
            return (
                ZswapState::Idle,
                "Nothing has been swapped out since the start: the memory has sufficed.".into(),
                NextStep::by_hand("nothing: the memory suffices"),
            );
        }
        (None, _) => {
            return (
                ZswapState::Unknown,
                "This kernel tells only root what zswap does.".into(),
                as_root(),
            );
        }
        _ => {}
    }
    if let Some(words) = full(reading, sums) {
        let next = where_swap_belongs(
            "close programs first, since without room the kernel ends them; then it says where more swap belongs",
        );
        return (ZswapState::Full, words, next);
    }
    let (standing, next) = weigh(reading, sums);
    (standing, in_words(sums, standing), next)
}

/// Share from which an area or the pool counts as full.
const FULL: f64 = 0.95;

/// How full everything is, where swap has no room left. Each page in the pool has its place in swap, too.
fn full(reading: &Reading, sums: &Sums) -> Option<String> {
    let of = |bytes: fn(&SwapArea) -> u64| reading.areas.iter().map(bytes).sum::<u64>();
    let (used, size) = (of(|area| area.used_bytes), of(|area| area.size_bytes));
    let swap = share(used, size).filter(|share| *share >= FULL)?;
    let pool = sums.pool_bytes.zip(sums.limit_bytes);
    let pool = pool.and_then(|(pool, limit)| share(pool, limit));
    let pool =
        pool.map_or(String::new(), |pool| format!(" and zswap's pool {}", percent(pool.min(1.0))));
    Some(format!("The machine has run out of swap: it is {} full{pool}.", percent(swap)))
}

fn weigh(reading: &Reading, sums: &Sums) -> (ZswapState, NextStep) {
    if is_in_zram(&reading.areas) {
        let next = "turn zram or zswap off: swap is in zram, which compresses too";
        return (ZswapState::DoesNotHelp, NextStep::by_hand(next));
    }
    let refused = sums.refused_share().unwrap_or(0.0);
    let is_poor = sums.refused_poor.zip(sums.refused);
    let is_poor = is_poor.is_some_and(|(poor, all)| poor > all / 2);
    // Where only an upper end is known, a share above the bound is no finding.
    let is_exact = sums.taken_in.is_some();
    if is_exact && refused > 0.5 {
        let next = if is_poor {
            NextStep::by_hand(
                "use plain swap on a fast disk: most of what is swapped does not compress (pictures, video, encrypted \
                 or compressed data)",
            )
        } else {
            larger_pool(sums)
        };
        return (ZswapState::DoesNotHelp, next);
    }
    if sums.ratio().is_some_and(|ratio| ratio < 1.1) && sums.stored_bytes > Some(16 << 20) {
        let next =
            "use plain swap on a fast disk: the pool takes nearly as much memory as it saves";
        return (ZswapState::DoesNotHelp, NextStep::by_hand(next));
    }
    let needed = sums.given_back.zip(sums.read);
    let needed = needed.map_or(0, |(given, read)| given.saturating_add(read));
    let hit = sums.hit_share().filter(|_| needed >= FEW_PAGES);
    if hit.is_some_and(|hit| hit < 0.5) {
        let next = match sums.pool_full {
            Some(0) if is_poor => {
                NextStep::by_hand("nothing: most of what comes back from the disk did not compress")
            }
            Some(0) => NextStep::by_hand(
                "nothing: pages went to the disk before zswap was turned on, or past it",
            ),
            _ => larger_pool(sums),
        };
        return (ZswapState::HelpsLittle, next);
    }
    if is_exact && sums.written_back_share().is_some_and(|share| share > 0.5) {
        return (ZswapState::HelpsLittle, larger_pool(sums));
    }
    (ZswapState::Helps, NextStep::by_hand("nothing: it keeps the disk from most of the work"))
}

/// The pool is too small for what is swapped: half as much again, as far as the recipe goes.
fn larger_pool(sums: &Sums) -> NextStep {
    const MAX_PERCENT: u64 = 50;
    match sums.limit_percent {
        Some(percent) if percent < MAX_PERCENT => {
            let percent = (percent + percent.div_ceil(2)).min(MAX_PERCENT);
            let option = format!("max-pool-percent={percent}");
            let words = "the pool is too small for what is swapped; fewer programs or a faster disk help, too";
            NextStep::command(&["rubus", "plan", "zswap", &option], words)
        }
        Some(_) | None => NextStep::by_hand(
            "run fewer programs, or give swap a faster disk: max_pool_percent does not go further",
        ),
    }
}

fn in_words(sums: &Sums, standing: ZswapState) -> String {
    let mut words = match standing {
        ZswapState::Helps => "It helps".to_string(),
        ZswapState::HelpsLittle => "It helps a little".to_string(),
        _ => "It does not help".to_string(),
    };
    if let Some((stored, pool)) = sums.stored_bytes.zip(sums.pool_bytes) {
        match pool {
            _ if stored < LITTLE_BYTES => words.push_str(": it holds next to nothing now"),
            _ => words.push_str(&format!(
                ": it holds {} in {} of memory",
                bytes_iec(stored),
                bytes_iec(pool)
            )),
        }
    }
    words.push('.');
    if let Some((as_is, (pool, stored))) = sums
        .as_they_are_bytes
        .zip(sums.pool_bytes.zip(sums.stored_bytes))
        .filter(|(as_is, (pool, stored))| *stored >= LITTLE_BYTES && *as_is > pool / 4)
    {
        words.push_str(&format!(
            " {} of that does not compress and takes {} of its memory.",
            percent(as_is as f64 / stored as f64),
            percent((as_is as f64 / pool as f64).min(1.0))
        ));
    }
    if let (Some(hit), Some(given)) = (sums.hit_share(), sums.given_back) {
        words.push_str(&format!(
            " Of the pages that were needed again, {} ({given}) came out of memory and not from the disk.",
            percent(hit)
        ));
    }
    let most = if sums.taken_in.is_none() { "at most " } else { "" };
    if let (Some(share), Some(refused)) = (sums.refused_share(), sums.refused) {
        if refused > 0 {
            words.push_str(&format!(
                " It refused {most}{} of the pages that were offered",
                percent(share)
            ));
            match sums.refused_poor {
                Some(poor) if poor > refused / 2 => {
                    words.push_str(", most of them because they hardly compress.");
                }
                _ => words.push('.'),
            }
        }
    }
    if let (Some(share), Some(back)) = (sums.written_back_share(), sums.written_back) {
        if back > 0 {
            words.push_str(&format!(
                " {}{} of what it took went on to the disk to make room.",
                if most.is_empty() { "" } else { "At most " },
                percent(share)
            ));
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use rubus_vocabulary::machine::Setting;

    fn setting(name: &str, value: impl ToString) -> Setting {
        Setting { name: name.into(), value: Fact::known(value.to_string(), "a file") }
    }

    fn unknown() -> Fact<u64> {
        Fact::unknown("no such line", "/proc/vmstat")
    }

    fn known(number: u64) -> Fact<u64> {
        Fact::known(number, "a file")
    }

    /// With swap on a disk that takes it.
    fn of(reading: &Reading) -> Report {
        Report::of(reading, SwapPlace::OnDisks)
    }

    /// What the article about the desktop shows, on a Raspberry Pi 3 with 15 % for the pool.
    fn article() -> Reading {
        let counters = [
            ("stored_pages", 75_693_u64),
            ("pool_total_size", 115_769_344),
            ("duplicate_entry", 0),
            ("written_back_pages", 32_420),
            ("reject_compress_poor", 67_240),
            ("reject_kmemcache_fail", 0),
            ("reject_alloc_fail", 0),
            ("reject_reclaim_fail", 7),
            ("pool_limit_hit", 12_045),
        ];
        Reading {
            zswap: Zswap {
                enabled: Fact::known(true, "a file"),
                parameters: vec![setting("enabled", "Y"), setting("max_pool_percent", 15)],
                counters: counters.iter().map(|(name, value)| setting(name, value)).collect(),
                counters_unknown: None,
            },
            areas: vec![area("sda3")],
            page_bytes: known(4096),
            memory_bytes: known(944_264 * 1024),
            pool_bytes: unknown(),
            stored_bytes: unknown(),
            stored_pages: unknown(),
            loaded_pages: unknown(),
            written_back_pages: unknown(),
            read_pages: unknown(),
        }
    }

    fn area(device: &str) -> SwapArea {
        SwapArea {
            path: format!("/dev/{device}"),
            kind: "partition".into(),
            size_bytes: 2 << 30,
            used_bytes: 0,
            priority: -2,
            device: Fact::known(device.into(), "a file"),
        }
    }

    /// A new kernel that tells everything, with some pages taken in, given back and read from the disk.
    fn today(taken: u64, given: u64, read: u64) -> Reading {
        Reading {
            pool_bytes: known(100 << 20),
            stored_bytes: known(300 << 20),
            stored_pages: known(taken),
            loaded_pages: known(given),
            written_back_pages: known(0),
            read_pages: known(read),
            ..article()
        }
    }

    #[test]
    fn the_article_s_figures_are_read_as_it_reads_them() {
        let report = of(&article());
        assert_eq!(report.standing, ZswapState::Helps);
        // 75 693 pages of 4 KiB in 115.8 MB.
        assert_eq!(report.stored_bytes, Some(310_038_528));
        assert!((report.ratio.unwrap() - 2.678).abs() < 0.001);
        assert!(report.shares_are_upper_ends);
        assert!((report.refused_share.unwrap() - 0.3835).abs() < 0.001);
        insta::assert_snapshot!(report.verdict, @"It helps: it holds 296 MiB in 110 MiB of memory. It refused at most 38 % of the pages that were offered, most of them because they hardly compress. At most 30 % of what it took went on to the disk to make room.");
        assert!(report.counters.iter().all(|counter| !counter.meaning.contains("not known")));
    }

    #[test]
    fn full_swap_is_no_help() {
        let mut reading = today(900_000, 5_000, 100);
        reading.areas[0].used_bytes = reading.areas[0].size_bytes;
        reading.pool_bytes = known(10 << 30);
        let report = of(&reading);
        assert_eq!(report.standing, ZswapState::Full);
        let words = "The machine has run out of swap: it is 100 % full and zswap's pool 100 %.";
        assert_eq!(report.verdict, words);
        reading.areas[0].used_bytes /= 2;
        reading.pool_bytes = known(100 << 20);
        assert_eq!(of(&reading).standing, ZswapState::Helps);
    }

    #[test]
    fn what_comes_from_the_disk_decides() {
        assert_eq!(of(&today(900_000, 5_000, 100)).standing, ZswapState::Helps);
        let little = of(&today(900_000, 100, 5_000));
        assert_eq!(little.standing, ZswapState::HelpsLittle);
        assert!(little.next.command.unwrap().join(" ").contains("max-pool-percent="));
        // Too few to say.
        assert_eq!(of(&today(900_000, 1, 50)).standing, ZswapState::Helps);
    }

    #[test]
    fn pages_that_do_not_compress_are_not_helped() {
        let poor = of(&today(1_000, 5_000, 100));
        assert_eq!(poor.standing, ZswapState::DoesNotHelp);
        assert!(poor.next.words.contains("does not compress"));
        let mut flat = today(900_000, 5_000, 100);
        flat.pool_bytes = known(299 << 20);
        assert_eq!(of(&flat).standing, ZswapState::DoesNotHelp);
    }

    #[test]
    fn what_does_not_compress_is_told_apart() {
        let mut reading = today(900_000, 5_000, 100);
        let pages = setting("stored_incompressible_pages", (60 << 20) / 4096);
        reading.zswap.counters.push(pages);
        let verdict = of(&reading).verdict;
        assert!(
            verdict.contains("20 % of that does not compress and takes 60 % of its memory."),
            "{verdict}"
        );
        reading.stored_bytes = known(40_960);
        let verdict = of(&reading).verdict;
        assert!(verdict.contains("it holds next to nothing now"), "{verdict}");
    }

    #[test]
    fn off_without_swap_unused_and_untold_are_said() {
        let mut reading = today(0, 0, 0);
        reading.zswap.counters.clear();
        assert_eq!(of(&reading).standing, ZswapState::Idle);
        reading.areas[0].device = Fact::known("zram0".into(), "a file");
        reading.stored_pages = known(10);
        assert_eq!(of(&reading).standing, ZswapState::DoesNotHelp);
        reading.areas.clear();
        assert_eq!(of(&reading).standing, ZswapState::WithoutSwap);
        reading.zswap.enabled = Fact::known(false, "a file");
        reading.stored_bytes = known(0);
        assert_eq!(of(&reading).standing, ZswapState::Off);
        let mut user = article();
        user.zswap.counters.clear();
        user.zswap.counters_unknown = Some("only root may".into());
        let report = of(&user);
        assert_eq!(report.standing, ZswapState::Unknown);
        assert_eq!(report.counters_unknown.as_deref(), Some("only root may"));
        user.zswap.enabled = Fact::unknown("this kernel has no zswap", "a file");
        user.zswap.parameters.clear();
        assert_eq!(of(&user).standing, ZswapState::Absent);
    }
}
