//! All hands, no knowledge: the only door to files, block devices, programs, mounts and clocks.
//!
//! Nothing here knows what a Raspberry Pi, a swap policy or a confidence interval is.

#![warn(missing_docs)]

pub mod affinity;
mod answering;
pub mod beside;
pub mod block_writing;
pub mod blockdev;
pub mod btrfs;
pub mod buffers;
pub mod capture;
pub mod clock;
pub mod clone_file;
pub mod conduit;
pub mod copy_io;
pub mod digest;
pub mod disk_bytes;
pub mod ended_tasks;
pub mod fake;
mod fat;
pub mod files;
pub mod filling;
mod full_read;
pub mod generic_netlink;
pub mod hands;
pub mod image;
pub mod inside;
pub mod kept_file;
pub mod listening;
pub mod live;
pub mod live_hands;
pub mod live_words;
pub mod loop_device;
mod mailbox;
mod mapped;
pub mod memory_group;
pub mod min_rate;
pub mod mounting;
pub mod net;
pub mod netlink;
pub mod new_file;
pub mod openers;
pub mod output_file;
pub mod own_files;
pub mod own_names;
pub mod polled_file;
pub mod process_stat;
pub mod programs;
pub mod recorder;
pub mod rehearsal;
pub mod schedstat;
pub mod shareable;
pub mod shared_mapping;
pub mod signals;
pub mod ssh;
pub mod standard_error;
pub mod starting;
pub mod staying;
pub mod syncs;
pub mod ticks;
mod tree;

pub use files::{Files, ReadError, Space};
pub use hands::{Hands, Twin, WriteError};
pub use live::Live;
