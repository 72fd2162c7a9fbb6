//! etcd: each request is a record in the write-ahead log, durable before it is answered.

use super::{Jobs, KIB, Limits, MS, Workload, hollow, log_commits};

pub(super) const ETCD: Workload = Workload {
    name: "etcd",
    title: "etcd",
    writes: "appends 2 to 8 KiB to one log, fdatasync after each, 200 per second",
    limits: Limits { good_ns: 10 * MS, edge_ns: 20 * MS, stall_ns: 1000 * MS, keeps_pace: None },
    stall_means: "lets the other members elect a new leader",
    source: "etcd's documentation: 99 % of wal_fsync_duration_seconds below 10 ms; election timeout 1000 ms",
    make,
};

/// What etcd's documentation calls a small cluster: fewer requests per second than this.
const PER_SECOND: f64 = 200.0;

fn make(seconds: f64) -> Jobs {
    Jobs {
        jobs: vec![log_commits(seconds, PER_SECOND, (2 * KIB, 8 * KIB))],
        needs: vec![hollow("log", 1 << 20)],
    }
}
