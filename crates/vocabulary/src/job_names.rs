//! Names of the quick suite's jobs, by which a verdict finds its figures and a text its titles. What else
//! reads them is in `docs/reference/suites.md`, "Adding a suite".

/// Sequential write, 1 MiB.
pub const SEQUENTIAL_WRITE: &str = "sequential-write";
/// Sequential read, 1 MiB.
pub const SEQUENTIAL_READ: &str = "sequential-read";
/// Random read, 4 KiB, queue depth 1.
pub const RANDOM_READ: &str = "random-read";
/// Random read, 4 KiB, queue depth 32.
pub const RANDOM_READ_DEEP: &str = "random-read-deep";
/// Random write, 4 KiB, queue depth 1.
pub const RANDOM_WRITE: &str = "random-write";
/// Random write, 4 KiB, queue depth 32.
pub const RANDOM_WRITE_DEEP: &str = "random-write-deep";
/// Random write, 16 KiB, queue depth 1.
pub const RANDOM_WRITE_16K: &str = "random-write-16k";
/// Commits: 4 KiB appended and made durable.
pub const COMMIT: &str = "commit";
/// The small reader beside a sequential writer.
pub const BYSTANDER_READ: &str = "bystander-read";
/// The sequential writer beside the small reader.
pub const BYSTANDER_WRITE: &str = "bystander-write";
