//! A git server: a push of many objects is a pack that is durable before the push is answered, while a repack writes on.

use super::{Jobs, KIB, Limits, MIB, MS, Workload, hollow, log_commits, stream_writes};

pub(super) const GIT_SERVER: Workload = Workload {
    name: "git-server",
    title: "a git server",
    writes: "appends 4 to 256 KiB, fdatasync after each, 10 per second; beside it 4 MB/s of a repack, with an fsync every 32 MiB",
    limits: Limits {
        good_ns: 300 * MS,
        edge_ns: 3000 * MS,
        stall_ns: 10_000 * MS,
        keeps_pace: None,
    },
    stall_means: "makes people who push give up",
    source: "git makes three files durable in a push of 100 objects or more; within 1 s that does not interrupt, within 10 s \
             attention stays (Nielsen, Response Times, 1993)",
    make,
};

/// Many more than pushes of a small team, so that a minute shows the slow ones.
const PER_SECOND: f64 = 10.0;
/// A pack, its index and the reverse index of some hundred objects.
const SIZES: (u32, u32) = (4 * KIB, 256 * KIB);
/// What a small board compresses in a second, in blocks of 128 KiB.
const BLOCKS_PER_SECOND: f64 = 32.0;
const BLOCK: u32 = 128 * KIB;
/// A pack is made durable when it is whole.
const PACK_BYTES: u32 = 32 * MIB;

fn make(seconds: f64) -> Jobs {
    let mut commits = log_commits(seconds, PER_SECOND, SIZES);
    commits.beside = vec![stream_writes(seconds, BLOCKS_PER_SECOND, BLOCK, PACK_BYTES / BLOCK)];
    Jobs { jobs: vec![commits], needs: vec![hollow("packs", 1 << 20), hollow("repack", 1 << 30)] }
}
