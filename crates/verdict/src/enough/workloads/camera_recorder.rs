//! A recorder of cameras: streams that never wait, of which all must be on the disk in time.

use super::{Jobs, KIB, Limits, MS, Workload, direct_writes, hollow};

pub(super) const CAMERA_RECORDER: Workload = Workload {
    name: "camera-recorder",
    title: "a camera recorder",
    writes: "appends 128 KiB past the page cache, 16 per second: four streams of 4 Mbit/s",
    limits: Limits {
        good_ns: 60 * MS,
        edge_ns: 1000 * MS,
        stall_ns: 2000 * MS,
        keeps_pace: Some(PER_SECOND),
    },
    stall_means: "fills the buffer of a camera, which drops pictures",
    source: "ours: a piece is due every 62 ms; a stream of 4 Mbit/s fills a buffer of 1 MiB in 2 s",
    make,
};

/// Four streams of 4 Mbit/s are 2 MB/s. A recorder leaves the writing to the page cache and flushes nothing; past the cache the
/// disk's own pace shows, which counts once the cache is full.
const PER_SECOND: f64 = 16.0;
const PIECE: u32 = 128 * KIB;
/// A longer recording goes over its beginning again, so that a small disk has room for it.
const MAX_FILE_BYTES: u64 = 1 << 30;

fn make(seconds: f64) -> Jobs {
    let recording = direct_writes(seconds, PER_SECOND, PIECE);
    let file_bytes = recording.stop.max_bytes.min(MAX_FILE_BYTES);
    Jobs { jobs: vec![recording], needs: vec![hollow("recording", file_bytes)] }
}
