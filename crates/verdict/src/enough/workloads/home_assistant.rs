//! Home Assistant: its recorder keeps states in SQLite with a write-ahead log.

use super::{Jobs, KIB, Limits, MS, Workload, hollow, log_commits, page_writes};

pub(super) const HOME_ASSISTANT: Workload = Workload {
    name: "home-assistant",
    title: "Home Assistant",
    writes: "appends 16 to 64 KiB to SQLite's log, fdatasync after each, 20 per second; 100 pages of 4 KiB per second, with an fsync every 10 s",
    limits: Limits { good_ns: 250 * MS, edge_ns: 500 * MS, stall_ns: 5000 * MS, keeps_pace: None },
    stall_means: "outlasts the recorder's commit interval, and states pile up in memory",
    source: "the recorder's commit_interval of 5 s: a commit with a checkpoint, which makes two flushes, shall take a tenth of it, or \
             a fifth at the edge",
    make,
};

/// The recorder commits once in 5 s; more commits make the slow ones show within a minute.
const PER_SECOND: f64 = 20.0;
/// SQLite's pages, of which it copies 1000 at a time from its log.
const PAGE: u32 = 4 * KIB;
const PAGES: u32 = 1000;
const PAGES_PER_SECOND: f64 = 100.0;

fn make(seconds: f64) -> Jobs {
    let mut commits = log_commits(seconds, PER_SECOND, (16 * KIB, 64 * KIB));
    commits.beside = vec![page_writes(seconds, PAGES_PER_SECOND, PAGE, PAGES)];
    Jobs { jobs: vec![commits], needs: vec![hollow("log", 1 << 20), hollow("database", 64 << 20)] }
}
