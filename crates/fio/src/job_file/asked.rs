//! What the options of one job ask for, read from a result instead of a job file.
//!
//! fio's results and Rubus's runs of job files keep the options of each job. Both are read here, so
//! that two results of one job file are compared with their counterparts.

use rubus_vocabulary::subject_job::WriteSync;

use super::options;
use super::settings::{Settings, Taken};
use super::value::{KbBase, switch};

/// What a job asked for, with fio's defaults where it says nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    pub reads: bool,
    pub writes: bool,
    /// It discards blocks, alone or before it writes them.
    pub discards: bool,
    pub is_random: bool,
    /// Bytes of a read and of a write; absent where they differ between operations.
    pub block_bytes: [Option<u32>; 2],
    /// Operations that are really kept in flight: 1 of an engine that works one at a time.
    pub depth: u32,
    pub copies: u32,
    /// All copies, and all sections of the group, are one result. Absent where nothing says so:
    /// fio's result leaves out an option that was given without a value.
    pub is_grouped: Option<bool>,
    /// Reads and writes are one result.
    pub is_unified: bool,
    pub is_buffered: bool,
    pub sync: WriteSync,
    /// What was written is read back.
    pub verifies: bool,
}

impl Asked {
    /// Of options by their names or aliases, a later one replacing an earlier one. A flag has the
    /// value 1 or none. What cannot be understood is left at fio's default.
    pub fn of<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Asked {
        let Options { pairs, settings, .. } = Options::of(pairs);
        let last = |name: &str| last(&pairs, name);
        let rw = last("rw").unwrap_or("read");
        let unified = last("unified_rw_reporting");
        // An engine that is not here keeps as many in flight as it was told.
        let is_known = last("ioengine").is_none_or(|engine| engine == settings.engine);
        Asked {
            reads: settings.reads,
            writes: settings.writes,
            discards: rw.contains("trim"),
            is_random: settings.is_random_in_effect(),
            block_bytes: [0, 1].map(|side| settings.fixed_block(side)),
            depth: if is_known { settings.effective_depth() } else { settings.depth },
            copies: settings.copies,
            is_grouped: last("group_reporting").map(|_| settings.group_reporting),
            is_unified: unified
                .is_some_and(|text| matches!(text, "mixed") || switch(Some(text)).unwrap_or(false)),
            is_buffered: settings.is_buffered,
            sync: sync(&settings, last("sync")),
            verifies: settings.verify.is_some(),
        }
    }
}

/// The options of one job, a later one replacing an earlier one. What cannot be understood is left at fio's default.
pub(super) struct Options<'a> {
    /// By their main names, in their order.
    pub(super) pairs: Vec<(&'a str, &'a str)>,
    pub(super) settings: Settings,
    pub(super) base: KbBase,
}

impl<'a> Options<'a> {
    pub(super) fn of(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Options<'a> {
        let pairs: Vec<(&str, &str)> = pairs
            .into_iter()
            .map(|(name, value)| (options::find(name).map_or(name, |option| option.name), value))
            .collect();
        let base = KbBase(if last(&pairs, "kb_base") == Some("1000") { 1000 } else { 1024 });
        let mut settings = Settings::default();
        for (name, value) in &pairs {
            // What this program cannot do, fio has done nevertheless.
            let _: Result<Taken, String> = settings.take(name, Some(value), base);
        }
        let rw = last(&pairs, "rw").unwrap_or("read");
        if rw.contains("trim") {
            settings.reads = false;
            settings.writes = !is_of_trims_alone(rw);
            settings.is_random = rw.starts_with("rand");
        }
        Options { pairs, settings, base }
    }
}

/// The value of an option that counts.
pub(super) fn last<'a>(pairs: &[(&'a str, &'a str)], name: &str) -> Option<&'a str> {
    let mut found = pairs.iter().rev();
    found.find_map(|(other, value)| (*other == name).then_some(*value))
}

/// Whether a job discards and does nothing else, by its `rw`.
pub(super) fn is_of_trims_alone(rw: &str) -> bool {
    rw.contains("trim") && !rw.contains("trimwrite")
}

fn sync(settings: &Settings, stated: Option<&str>) -> WriteSync {
    if settings.each_durable {
        return WriteSync::Open { metadata_too: stated != Some("dsync") };
    }
    match settings.flush_every {
        Some(every) => {
            WriteSync::Flush { writes: every.writes.max(1), metadata_too: every.metadata_too }
        }
        None => WriteSync::Never,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_mean_the_same_as_in_a_job_file() {
        let asked =
            Asked::of([("readwrite", "randwrite"), ("blocksize", "8k,16k"), ("iodepth", "4")]);
        assert_eq!((asked.writes, asked.is_random, asked.depth), (true, true, 1));
        assert_eq!(asked.block_bytes, [Some(8192), Some(16384)]);
        let pairs = [("ioengine", "libaio"), ("iodepth", "4"), ("buffered", "0")];
        let asked = Asked::of(pairs);
        assert_eq!((asked.depth, asked.is_buffered), (4, false));
        assert_eq!(Asked::of([("bssplit", "4k/50:8k/50")]).block_bytes, [None, None]);
        assert_eq!(Asked::of([("group_reporting", "0")]).is_grouped, Some(false));
        assert_eq!(Asked::of([("group_reporting", "")]).is_grouped, Some(true));
        assert_eq!(Asked::of([("rw", "read")]).is_grouped, None);
    }

    #[test]
    fn every_way_of_a_commit_is_told_apart() {
        let sync = |name, value| Asked::of([(name, value)]).sync;
        assert_eq!(sync("fsync", "1"), WriteSync::Flush { writes: 1, metadata_too: true });
        assert_eq!(sync("fdatasync", "8"), WriteSync::Flush { writes: 8, metadata_too: false });
        assert_eq!(sync("sync", "1"), WriteSync::Open { metadata_too: true });
        assert_eq!(sync("sync", "dsync"), WriteSync::Open { metadata_too: false });
        assert_eq!(sync("sync", "0"), WriteSync::Never);
        assert!(!sync("fdatasync", "8").is_each() && sync("sync", "dsync").is_each());
    }

    #[test]
    fn discards_are_no_reads() {
        let asked = Asked::of([("rw", "randtrim")]);
        assert_eq!((asked.reads, asked.writes, asked.discards), (false, false, true));
        assert!(asked.is_random);
    }

    #[test]
    fn a_job_that_is_random_in_name_alone_is_sequential() {
        let is_random = |rw, percent, direct| {
            let pairs = [("rw", rw), ("percentage_random", percent), ("direct", direct)];
            Asked::of(pairs).is_random
        };
        assert!(!is_random("randread", "0", "1"));
        assert!(!is_random("randread", "0,100", "1"), "of writes, which it does not do");
        assert!(!is_random("randrw", "0", "1"));
        assert!(is_random("randread", "0", "0"), "the kernel reads nothing ahead");
        assert!(is_random("randrw", "0,100", "1"));
        assert!(is_random("randread", "1", "1"));
        assert!(is_random("randtrim", "0", "1"));
    }
}
