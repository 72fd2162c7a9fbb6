//! A database server: each transaction is durable in the log, and pages follow in checkpoints.

use super::{Jobs, KIB, Limits, MS, Workload, hollow, log_commits, page_writes};

pub(super) const DATABASE: Workload = Workload {
    name: "database",
    title: "a database",
    writes: "appends 8 KiB to a log, fdatasync after each, 100 transactions per second; writes 50 pages of 8 KiB per second, and fsyncs them every 10 s",
    limits: Limits { good_ns: 10 * MS, edge_ns: 100 * MS, stall_ns: 1000 * MS, keeps_pace: None },
    stall_means: "interrupts the users",
    source: "10 transactions in a row within 0.1 s feel instant, within 1 s do not interrupt (Nielsen, Response Times, 1993)",
    make,
};

const PER_SECOND: f64 = 100.0;
/// PostgreSQL's pages.
const PAGE: u32 = 8 * KIB;
const PAGES_PER_SECOND: f64 = 50.0;
const PAGES: u32 = 500;

fn make(seconds: f64) -> Jobs {
    let mut commits = log_commits(seconds, PER_SECOND, (PAGE, PAGE));
    commits.beside = vec![page_writes(seconds, PAGES_PER_SECOND, PAGE, PAGES)];
    Jobs { jobs: vec![commits], needs: vec![hollow("log", 1 << 20), hollow("pages", 64 << 20)] }
}
