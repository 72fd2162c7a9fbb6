//! Names of the jobs by which findings and tables find their figures (`docs/reference/suites.md`, "Adding a suite").

use crate::units::block;

/// Writing on and on.
pub const SUSTAINED: &str = "sustained";
/// The same after a rest.
pub const SUSTAINED_AGAIN: &str = "sustained-after-rest";

/// Writing 1 MiB blocks of random data through the page cache, flush included.
pub const STREAM_WRITE: &str = "stream-write";
/// The same with zeros.
pub const STREAM_ZEROS: &str = "stream-write-zeros";
/// Reading the file again, with a cold cache.
pub const STREAM_READ: &str = "stream-read";

/// Commits at the end of a file, back to back.
pub const COMMIT_APPEND: &str = "commit-append";
/// Commits within a file, back to back.
pub const COMMIT_IN_PLACE: &str = "commit-in-place";
/// One commit per second, as a logger does it.
pub const COMMIT_LOGGER: &str = "commit-logger";

/// Writing in order, 4 MiB.
pub const CLASS_WRITE: &str = "sequential-write-4m";
/// Random reads, 4 KiB, one at a time.
pub const CLASS_READ: &str = "random-read";
/// Random reads, 4 KiB, queue depth 32.
pub const CLASS_READ_DEEP: &str = "random-read-deep";
/// Random writes, 4 KiB, one at a time.
pub const CLASS_RANDOM_WRITE: &str = "random-write";
/// Random writes, 4 KiB, queue depth 32.
pub const CLASS_RANDOM_WRITE_DEEP: &str = "random-write-deep";

/// The operations of the table of records, in the order of its columns.
pub const RECORD_OPERATIONS: [&str; 6] =
    ["write", "rewrite", "read", "reread", "random-read", "random-write"];
/// The record sizes of the table, in bytes.
pub const RECORD_SIZES: [u32; 3] = [4 << 10, 512 << 10, 16 << 20];

/// The name of the job that does `operation` in records of `bytes`: "random-read-512k".
pub fn record(operation: &str, bytes: u32) -> String {
    let size = block(bytes).to_lowercase();
    format!("{operation}-{}", size.replace([' ', 'i', 'b'], ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_records_say_their_size() {
        let names: Vec<String> = RECORD_SIZES.iter().map(|size| record("write", *size)).collect();
        assert_eq!(names, ["write-4k", "write-512k", "write-16m"]);
    }
}
